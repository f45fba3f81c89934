#!/usr/bin/env bash
# cutlass.sh - products built by CUTLASS' CollectiveBuilder for sm_100a and sm_120a, compiled by nvcc and run on simt as a
# B200 and an RTX 5090: dense and block-scaled, right against a reference on the host, no findings; a matrix that is too
# short is found.
#
#     tests/simt/cutlass.sh CUTEGEN [NAME...]      f16 pair mxf8 nvf4 geforce_nvf4 geforce_mxf8 bug
#
# A program takes minutes and up to 5 GB to compile. $CUTLASS_PROGRAMS: a folder that keeps them.
# Two warnings are known (docs/simt.md, Blackwell) and are no findings. Exit 77: there is no nvcc of CUDA 13 or no CUTLASS.
set -uo pipefail
cutegen=$(realpath "$1")
shift
here=$(cd "$(dirname "$0")/cutlass" && pwd)
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
include=$("$cutegen" doctor --json | python3 -c 'import json, sys
print(next((c.get("path", "") for c in json.load(sys.stdin)["checks"] if c["name"] == "CuTe"), ""))')
[ -n "$nvcc" ] && [ -d "$include/../tools/util/include" ] || { echo "cutlass: SKIP, no nvcc or no CUTLASS with its tools"; exit 77; }
"$nvcc" --version | grep -q 'release 13\.' || { echo "cutlass: SKIP, nvcc is not of CUDA 13"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
programs=${CUTLASS_PROGRAMS:-$work}
mkdir -p "$programs"
names=("$@")
[ ${#names[@]} -gt 0 ] || names=(f16 pair mxf8 nvf4 geforce_nvf4 geforce_mxf8 bug)
failed=0
for name in "${names[@]}"; do
    arch=100a card=b200 want=right flags=()
    case $name in
    f16) flags=(-DKIND=KIND_F16) ;;
    pair) flags=(-DKIND=KIND_F16 -DTWO_BLOCKS) ;;
    mxf8) flags=(-DKIND=KIND_MXF8) ;;
    nvf4) flags=(-DKIND=KIND_NVF4) ;;
    geforce_nvf4) arch=120a card=rtx5090 flags=(-DKIND=KIND_NVF4 -DGEFORCE) ;;
    geforce_mxf8) arch=120a card=rtx5090 flags=(-DKIND=KIND_MXF8 -DGEFORCE) ;;
    bug) flags=(-DKIND=KIND_F16 -DBUG) want=out_of_bounds ;;
    *) echo "cutlass: no program '$name'"; exit 2 ;;
    esac
    [ -x "$programs/$name" ] ||
        "$nvcc" -std=c++17 -arch=compute_$arch -cudart shared --expt-relaxed-constexpr -diag-suppress 177 "${flags[@]}" -I "$include" \
            -I "$include/../tools/util/include" -o "$programs/$name" "$here/collective.cu" >"$work/log" 2>&1 ||
        { echo "$name: FAILED, nvcc: $(grep -m1 error "$work/log" || tail -1 "$work/log")"; failed=1; continue; }
    "$cutegen" simt exec --simt-as $card --format json --output "$work/report" -- "$programs/$name" >"$work/out" 2>"$work/err"
    code=$?
    found=$(python3 -c 'import json, sys
r = json.load(open(sys.argv[1]))
print(" ".join(sorted({f["kind"] for f in r["findings"]} - {"read_before_copy", "copy_after_exit"})), end="")' "$work/report")
    if [ $want = right ] && [ $code = 0 ] && [ "$(tail -1 "$work/out")" = right ] && [ -z "$found" ]; then
        echo "$name: right as $card, no findings"
    elif [ $want != right ] && [ $code = 1 ] && [ "$found" = $want ]; then
        echo "$name: $found as $card"
    else
        echo "$name: FAILED as $card, exit $code, found: ${found:-nothing}"
        tail -3 "$work/out"
        tail -5 "$work/err" | cut -c1-400
        failed=1
    fi
done
exit $failed
