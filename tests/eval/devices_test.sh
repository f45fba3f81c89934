#!/usr/bin/env bash
# devices_test.sh - several that ask for the device at once do not start the driver all together.
#
#     tests/eval/devices_test.sh ASK_DEVICE
#
# The runner beside ASK_DEVICE is played by a script that notes whom it met.
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export WORK=$work CUTEGEN_RUNTIME=$work/rt
cp "$1" "$work/ask"
cat >"$work/cutegen-runner" <<'END'
#!/bin/sh
[ -e "$WORK/dead" ] && { echo "no such GPU here" >&2; exit 1; }
mkdir "$WORK/asking" 2>/dev/null || echo met >>"$WORK/met"
read -r request
# The others are there and have had time to come here too; less of it only makes the test weaker.
until [ -e "$WORK/started.3" ]; do sleep 0.01; done
sleep 0.3
rmdir "$WORK/asking" 2>/dev/null
echo '{"ok": true, "device": {"name": "Some GPU", "arch": 90}}'
read -r end
END
chmod +x "$work/cutegen-runner"
failed=0
check() { # NUMBER SENTENCE CONDITION...
    local number=$1 sentence=$2
    shift 2
    if "$@"; then echo "ok $number - $sentence"; else echo "not ok $number - $sentence"; failed=1; fi
}
echo 1..3
pids=()
for i in 1 2 3; do
    (: >"$work/started.$i" && exec "$work/ask" >"$work/said.$i" 2>&1) &
    pids+=($!)
done
wait "${pids[@]}"
check 1 "three at once are all answered" [ "$(sort -u "$work"/said.*)" = "Some GPU" ]
check 2 "and ask the driver one after the other" [ ! -e "$work/met" ]
touch "$work/dead"
rm -rf "$work/rt"
check 3 "a runner that ends is quoted" [ "$("$work/ask")" = "the driver did not describe cuda:0: the process that asked the driver ended: no such GPU here" ]
exit $failed
