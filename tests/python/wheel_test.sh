#!/usr/bin/env bash
# wheel_test.sh BUILD - the wheel of a build: the same bytes twice, installed in an empty venv with an empty HOME it
# judges a kernel, and uninstalling leaves nothing. TAP.
#
# Nothing is downloaded: CuTe and NVRTC are set-up's. `SWEEP=wheel make sweep` installs the dependencies too, and asks
# auditwheel.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "$1" && pwd)
tools=${CUTEGEN_TOOLS:-${XDG_DATA_HOME:-$HOME/.local/share}/cutegen}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
n=0
failed=0

ok()
{
    n=$((n + 1))
    if [ "$2" = 0 ]; then echo "ok $n - $1"; else echo "not ok $n - $1"; failed=1; fi
}

meson=$tools/venv/bin/meson
[ -x "$meson" ] || meson=meson
DESTDIR=$work/tree "$meson" install -C "$build" --no-rebuild --quiet --strip >"$work/install.log" 2>&1 || sed 's/^/# /' "$work/install.log"
tree=$(dirname "$(dirname "$(find "$work/tree" -path '*/bin/cutegen' | head -1)")")
[ -x "$tree/bin/cutegen" ]
ok "the build installs a tree" $?
# As in a tree of setup/dist.sh: without a folder in between.
libexec=$(dirname "$(find "$work/tree" -name cutegen-builder | head -1)")
[ "$libexec" = "$tree/libexec/cutegen" ] || { mkdir -p "$tree/libexec" && mv "$libexec" "$tree/libexec/cutegen"; }

arch=$(uname -m)
export SOURCE_DATE_EPOCH=1700000000
"$root/setup/wheel.py" --tree "$tree" "$arch" "$work/a" >/dev/null
ok "a wheel is made" $?
wheel=$(echo "$work"/a/*.whl)
touch "$tree/bin/cutegen"
"$root/setup/wheel.py" --tree "$tree" "$arch" "$work/b" >/dev/null
cmp -s "$wheel" "$work/b/$(basename "$wheel")"
ok "twice the same bytes" $?
[ "$(stat -c %s "$wheel")" -le 20971520 ]
ok "at most 20 MB" $?
python3 - "$wheel" <<'END'
import sys, zipfile
names = zipfile.ZipFile(sys.argv[1]).namelist()
info = [n for n in names if n.endswith(".dist-info/METADATA")][0]
text = zipfile.ZipFile(sys.argv[1]).read(info).decode()
wanted = ["Requires-Dist: torch\n", "Requires-Dist: nvidia-cutlass==", "Requires-Dist: nvidia-cuda-nvrtc", "License-File: LICENSE"]
sys.exit(not (all(w in text for w in wanted) and any(n.endswith("licenses/LICENSE") for n in names) and "cutegen/py.typed" in names))
END
ok "licence, types and dependencies are inside" $?

# ---- installed ------------------------------------------------------------------------
python3 -m venv --without-pip "$work/venv"
python=$work/venv/bin/python
pip() { "$tools/venv/bin/pip" --python "$python" -q --disable-pip-version-check "$@"; }
list() { (cd "$work/venv" && find . -not -name '*.pyc' -not -name __pycache__ | sort); }
list >"$work/before"
pip install --no-index --no-deps "$wheel"
ok "pip installs it" $?
mkdir "$work/home" && cd "$work/home" || exit 3
torch=${CUTEGEN_PYTHON:-/usr/bin/python3}
cutlass=${CUTLASS_PATH:-$(echo "$tools"/venv/lib/python3*/site-packages/cutlass_library/source/include)}
plain() { env -i HOME="$work/home" PATH="$PATH" CUTEGEN_SERVER=no "${known[@]}" "$@"; }
known=(CUTLASS_PATH="$cutlass" CUTEGEN_PYTHON="$torch")
for name in CUDA_HOME CUDA_PATH; do [ -z "${!name:-}" ] || known+=("$name=${!name}"); done
cuda=$(echo "$tools"/venv/lib/python3*/site-packages/nvidia/cu13)
[ -d /usr/local/cuda ] || [ ! -d "$cuda" ] || known+=(CUTEGEN_CUDA="$tools/venv")

version=$(sed -n "s/^ *version: '\(.*\)',/\1/p" "$root/meson.build" | head -1)
[ "$(plain "$work/venv/bin/cutegen" --version)" = "cutegen $version" ]
ok "the console script has the version of meson.build" $?
[ "$(plain "$python" -m cutegen --version)" = "cutegen $version" ]
ok "python -m cutegen too" $?
plain "$python" -c "import cutegen, sys; sys.exit(cutegen.__version__ != '$version')"
ok "and import cutegen" $?
plain "$work/venv/bin/cutegen" doctor --json >"$work/doctor" 2>&1
grep -q '"name":"CuTe","state":"ok"' "$work/doctor" && grep -q '"name":"PyTorch","state":"ok"' "$work/doctor"
ok "doctor finds what is needed" $?
[ "$(env -i HOME="$work/home" PATH="$PATH" CUTEGEN_TOOLS="$work/none" "$work/venv/bin/cutegen" config --json |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["python"]["value"])')" = "$python" ]
ok "its Python is the one it was installed in, unless another is named" $?
said=$(plain CUTEGEN_TOOLS="$work/none" PATH=/nonexistent "$python" -m cutegen eval "$root/examples/swish.py" \
    "$root/examples/kernels/swish.cu" --device simt --cc /no/cc 2>&1)
grep -q 'apt-get install gcc' <<<"$said"
ok "without a C compiler it says how to install one" $?
plain CUTEGEN_DRAWS=1 "$python" - "$root" >"$work/verdict" 2>&1 <<'END'
import sys
import cutegen
root = sys.argv[1]
print(cutegen.judge(root + "/examples/swish.py", open(root + "/examples/kernels/swish.cu").read(), device="simt"))
END
grep -q "Verdict(kind='pass'" "$work/verdict"
ok "a first verdict" $?
[ $failed = 0 ] || { sed 's/^/# /' "$work/verdict" "$work/doctor"; echo "# $said"; }

pip uninstall -y cutegen
list | cmp -s "$work/before" -
ok "uninstalling leaves nothing" $?
! find "$work/venv" -path '*cutegen*' | grep -q .
ok "no compiled file either" $?
echo "1..$n"
exit $failed
