#!/usr/bin/env bash
# cutedsl_programs.sh - prepares the CuTe DSL kernels of tests/simt for a GPU whose machine has no CuTe DSL.
#
#     bench/gpu/cutedsl_programs.sh FOLDER                        here; no GPU is needed
#     python3 bench/gpu/cutedsl_programs.py run FOLDER OUT.md     there, with NumPy and the toolkit's libcudart
#
# The DSL compiles each kernel for sm_90a and exports it with its own launch code; all of them become one shared library
# with the DSL's small static runtime. FOLDER also gets the inputs, NumPy's results and those of simt. What `run` does
# there is then tried here on simt, with the PTX of the same compilation in place of the machine code.
#
# $CUTEGEN_DSL_PYTHON (default: python3) must have nvidia-cutlass-dsl and NumPy; nvcc must be there to link; $CUTEGEN is
# the program (default: build/release/src/cutegen).
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
python=${CUTEGEN_DSL_PYTHON:-python3}
cutegen=${CUTEGEN:-$root/build/release/src/cutegen}
me=$root/bench/gpu/cutedsl_programs
mkdir -p "$1"
folder=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PYTHONWARNINGS=ignore

static=$("$python" -c 'import cutlass, pathlib
print(next(pathlib.Path(cutlass.__file__).parents[2].rglob("libcuda_dialect_runtime_static.a")))')
cuda=$(dirname "$(dirname "$(realpath "$(command -v nvcc)")")")

CUTE_DSL_ARCH=sm_90a CUTE_DSL_KEEP=ptx CUTE_DSL_DUMP_DIR=$work "$python" "$me.py" export "$folder"
cc -O2 -fPIC -I"$cuda/include" -c "$me.c" -o "$work/code.o"
cc -shared -o "$folder/libcutedsl_programs.so" "$work/code.o" "$folder"/*.o "$static" \
    -Wl,--wrap=_cudaLibraryLoadData -Wl,-z,defs -Wl,--gc-sections -L"$cuda/lib64" -l:libcudart.so.13
"$cutegen" simt exec -- "$python" "$me.py" simt "$folder"
"$cutegen" simt exec -- "$python" "$me.py" run "$folder" "$work/trial.md" --ptx
du -sh "$folder"
