#!/usr/bin/env bash
# aarch64.sh - the whole tree compiled for aarch64 with -Werror on another machine, and its unit tests run by qemu.
#
#     tests/aarch64.sh            SWEEP=aarch64 make sweep
#
# Needs (Debian): qemu-user, gcc-aarch64-linux-gnu, libcmocka-dev:arm64 and the :arm64 packages of setup/dist.sh; without
# them it ends with 77 and says which. qemu shows what the C code does, not how fast. A child that an emulated process
# forks does not run in Debian 12's qemu (7.2): tests that start processes are left out, and so are simt's, which start a
# compiler. CI has a machine of that architecture for all of them.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 3
MESON=${MESON:-$(command -v meson || echo "${XDG_DATA_HOME:-$HOME/.local/share}/cutegen/venv/bin/meson")}
build=build/aarch64
cc=aarch64-linux-gnu-gcc
root=/usr/aarch64-linux-gnu
EMULATED='^(base_ (cpus|data|seal|text|tunables)|toolchain_ (gate|diag|text|errors)|'
EMULATED+='eval_ (foreign|modelled|ncu|simt_profile|trust|witness)|runner_ (plan|plans are interpreted)|expert_ .*|'
EMULATED+='report_ (a diff|no byte|page).*|llm (edit|fence|prompt|sse)|'
EMULATED+='store_ (a call|runs move|old runs).*|configuration|live progress|MCP messages.*|'
EMULATED+='a resumed run goes by.*|agent install keeps.*)$'

for tool in qemu-aarch64 $cc; do
    command -v $tool >/dev/null || { echo "aarch64.sh: no $tool: apt-get install qemu-user gcc-aarch64-linux-gnu" >&2; exit 77; }
done
[ -e /usr/lib/aarch64-linux-gnu/libcmocka.so ] || { echo "aarch64.sh: no libcmocka-dev:arm64" >&2; exit 77; }
mkdir -p build
cat >$build.ini <<END
[binaries]
c = [$(command -v ccache >/dev/null && echo "'ccache', ")'$cc']
ar = 'aarch64-linux-gnu-ar'
strip = 'aarch64-linux-gnu-strip'
pkgconfig = 'pkg-config'
exe_wrapper = ['qemu-aarch64', '-L', '$root']
[properties]
pkg_config_libdir = '/usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig'
[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'aarch64'
endian = 'little'
END
[ -f $build/build.ninja ] || "$MESON" setup $build --cross-file $build.ini >$build.log 2>&1 || { tail -20 $build.log; exit 1; }
ninja -C $build >$build/compile.log 2>&1 || { grep -E 'error|warning|FAILED' $build/compile.log | head -20; exit 1; }
mapfile -t names < <("$MESON" introspect $build --tests | python3 -c 'import json, sys; [print(t["name"]) for t in json.load(sys.stdin)]' |
    grep -E "$EMULATED" | grep -v ', on a server$')
[ ${#names[@]} -ge 25 ] || { echo "aarch64.sh: only ${#names[@]} tests are known by name"; exit 1; }
"$MESON" test -C $build --no-rebuild --num-processes "${JOBS:-$(nproc)}" --print-errorlogs \
    --timeout-multiplier 0.1 "${names[@]}" # what hangs in qemu ends after twelve minutes
