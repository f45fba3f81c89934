#!/usr/bin/env bash
# wheel_sweep.sh - both wheels, built twice from nothing: the same bytes. This machine's, with all that it depends on, in
# an empty venv with an empty HOME: doctor, a first verdict, optimize() and the backend. Needs the network. TAP.
#
#     tests/python/wheel_sweep.sh [VENV]     VENV: has the wheel already; only the second half
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root" || exit 3
arch=$(uname -m)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
n=0
failed=0

ok()
{
    n=$((n + 1))
    if [ "$2" = 0 ]; then echo "ok $n - $1"; else echo "not ok $n - $1"; failed=1; fi
}

if [ $# = 0 ]; then
    for turn in first second; do
        rm -rf build/dist-x86_64 build/dist-aarch64 dist/*.whl
        setup/wheel.py >&2
        ok "both wheels, $turn time" $?
        sha256sum dist/*.whl | sort >"$work/$turn"
    done
    cmp "$work/first" "$work/second" >&2
    ok "the same bytes" $?
    python3 -m venv "$work/venv"
    "$work/venv/bin/pip" -q install --no-cache-dir dist/cutegen-*_"$arch".whl >&2
    ok "installs with its dependencies" $?
fi
venv=${1:-$work/venv}
mkdir "$work/home"
plain() { env -i HOME="$work/home" PATH=/usr/bin:/bin CUTEGEN_SERVER=no "$@"; }
plain "$venv/bin/cutegen" doctor >&2
ok "doctor" $?
begin=$(date +%s)
plain "$venv/bin/cutegen" eval examples/swish.py examples/kernels/swish.cu --device simt --runs "$work/runs" >&2
ok "a first verdict" $?
echo "# after $(($(date +%s) - begin)) s"
cd "$work/home" || exit 3
plain "$venv/bin/python" "$root/tests/python/three_modules.py" >&2
ok "optimize() of three modules on simt, torch.compile of five" $?
[ $# != 0 ] || {
    "$venv/bin/pip" -q uninstall -y cutegen
    ! find "$venv" -path '*cutegen*' | grep -q .
    ok "uninstalling leaves nothing" $?
}
echo "1..$n"
exit $failed
