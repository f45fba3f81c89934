#!/usr/bin/env bash
# setup_test.sh - set-up on this machine: quick when all is there, no network, clear when it cannot.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
n=0
failed=0

ok()
{
    n=$((n + 1))
    if [ "$2" = 0 ]; then
        echo "ok $n - $1"
    else
        echo "not ok $n - $1"
        failed=1
    fi
}

# Package managers that must not be called, and a PATH in which they come first.
mkdir "$work/bin"
for tool in apt-get pip sudo curl wget; do
    printf '#!/bin/sh\necho "called: %s" >>%s/called\nexit 1\n' "$tool" "$work" >"$work/bin/$tool"
    chmod +x "$work/bin/$tool"
done

if ! out=$(PATH=$work/bin:$PATH "$root/setup/setup.sh" run 2>&1); then
    echo "1..0 # SKIP this machine is not set up: $(head -1 <<<"$out")"
    exit 0
fi
[ ! -e "$work/called" ]
ok "a machine that is set up needs no package manager" $?
[ -z "$out" ]
ok "and there is nothing to say about it" $?

# In processor time, so that a busy machine does not count.
TIMEFORMAT='%U %S'
took=$({ time "$root/setup/setup.sh" run; } 2>&1 | awk '{ print int(($1 + $2) * 1000) }')
echo "# $took ms"
[ "$took" -lt 10000 ]
ok "the second time takes seconds at most" $?

# Nothing is installed into an empty tools folder without a network, and the message says so.
mkdir "$work/packages" "$work/empty"
out=$(PATH=$work/bin:$PATH CUTEGEN_TOOLS=$work/tools CUTEGEN_PACKAGES=$work/packages "$root/setup/setup.sh" run 2>&1)
code=$?
[ $code = 3 ]
ok "without its packages set-up fails with exit code 3" $?
grep -q 'CUTLASS' <<<"$out"
ok "it says what is missing" $?
grep -q 'CUTEGEN_PACKAGES\|setup.sh download' <<<"$out"
ok "it says what to do" $?
[ ! -e "$work/called" ] || ! grep -q 'curl\|wget' "$work/called"
ok "it does not go to the network" $?

# A torch that is only a name, as a wheel in a folder: what is shown is the way, not the gigabytes.
version=$(sed -n 's/^TORCH=//p' "$root/setup/versions")
python3 - "$work/packages" "$version" <<'END'
import sys, zipfile
folder, version = sys.argv[1:]
info = f"torch-{version}.dist-info"
with zipfile.ZipFile(f"{folder}/torch-{version}-py3-none-any.whl", "w") as wheel:
    wheel.writestr("torch/__init__.py", f"__version__ = '{version}'\ndef zeros(n): return [0] * n\n")
    wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n")
    wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr(f"{info}/RECORD", "")
END
out=$(PATH=$work/bin:$PATH CUTEGEN_TOOLS=$work/new CUTEGEN_PACKAGES=$work/packages CUTEGEN_PYTHON='' make -s -C "$root" torch 2>&1)
[ $? = 0 ] && [ "$(cat "$work/new/python")" = "$work/new/venv/bin/python" ]
ok "make torch installs a current one and remembers its Python" $?
printf '%s\n' "$out" | sed 's/^/# /'
out=$(PATH=$work/bin:$PATH CUTEGEN_TOOLS=$work/new CUTEGEN_PACKAGES=$work/empty CUTEGEN_PYTHON='' "$root/setup/setup.sh" torch 2>&1)
[ $? = 0 ] && [ -z "$out" ]
ok "the second time there is nothing to do" $?

out=$("$root/setup/setup.sh" nonsense 2>&1)
[ $? = 3 ] && grep -q 'setup/setup.sh \[run' <<<"$out"
ok "wrong use is told" $?

echo "1..$n"
exit $failed
