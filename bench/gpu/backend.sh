#!/usr/bin/env bash
# backend.sh - the wheel on a GPU machine without network: installed, then bench/gpu/backend.py.
#
#     [CACHE=cache.txz] bench/gpu/backend.sh WHEEL CUTLASS.txz DEADLINE [NAME...]
#
# CUTLASS.txz: cute/ and cutlass/ below include/, which pip would have brought. NVRTC and PyTorch are the machine's own.
# CACHE: a cache folder that `cutegen build --device for:H200` filled elsewhere (backend.py --tasks).
set -u
here=$(cd "$(dirname "$0")" && pwd)
wheel=$1 headers=$2 deadline=$3
shift 3
work=$(mktemp -d)
begin=$(date +%s)
say() { echo "[$(($(date +%s) - begin)) s] $*"; }
python=$(command -v python3)
"$python" -m pip -q install --no-index --no-deps --no-compile --target "$work/site" "$wheel" 2>"$work/pip.log" ||
    { tail -2 "$work/pip.log"; "$python" -m zipfile -e "$wheel" "$work/site"; chmod +x "$work"/site/cutegen/_tree/bin/* "$work"/site/cutegen/_tree/libexec/cutegen/*; }
mkdir -p "$work/cutlass" && tar xJf "$headers" -C "$work/cutlass"
mkdir -p "$work/cache" && { [ -z "${CACHE:-}" ] || tar xJf "$CACHE" -C "$work/cache"; }
export PYTHONPATH=$work/site CUTLASS_PATH=$work/cutlass/include CUTEGEN_CACHE=$work/cache CUTEGEN_RUNS=$work/runs CUTEGEN_RUNTIME=$work/rt
export TORCHINDUCTOR_CACHE_DIR=$work/inductor TRITON_CACHE_DIR=$work/triton TORCHINDUCTOR_COMPILE_THREADS=1
say "installed: $("$python" -m cutegen --version)"
"$python" -u "$here/backend.py" "$deadline" "$@"
say "done"
"$python" -m cutegen server stop >/dev/null 2>&1
[ -z "${OUT:-}" ] || tar cJf "$OUT/found.txz" -C "$work/cache" --exclude runs python 2>/dev/null # a CACHE for the next time
rm -rf "$work" 2>/dev/null
