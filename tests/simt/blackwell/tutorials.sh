#!/usr/bin/env bash
# tutorials.sh - the CuTe tutorials for sm_100a that come with CUTLASS, built by nvcc and run on simt as a B200: each
# compares its product with its own reference, bit by bit, and simt must find nothing.
#
#     tests/simt/blackwell/tutorials.sh CUTEGEN [NAME...]
#
# One tile of K: with more of them nothing keeps the tutorials' warps within a phase of each other, and a warp that is
# two phases behind at an mbarrier waits for ever (docs/simt.md, Blackwell). 05 does so with one tile, too: its epilogue
# uses the main loop's mbarrier again; it is run when it is named. 01 has no fence.proxy.async between its stores and
# the product: that finding is expected.
# Exit 77: there is no nvcc of CUDA 13, or no CUTLASS with its examples.
set -uo pipefail
cutegen=$(realpath "$1")
shift
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
include=$("$cutegen" doctor --json | python3 -c 'import json, sys
print(next((c.get("path", "") for c in json.load(sys.stdin)["checks"] if c["name"] == "CuTe"), ""))')
tutorials=$include/../examples/cute/tutorial/blackwell
[ -n "$nvcc" ] && [ -d "$tutorials" ] || { echo "tutorials: SKIP, no nvcc or no examples of CUTLASS"; exit 77; }
"$nvcc" --version | grep -q 'release 13\.' || { echo "tutorials: SKIP, nvcc is not of CUDA 13"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
names=("$@")
[ ${#names[@]} -gt 0 ] || names=(01_mma_sm100 02_mma_tma_sm100 03_mma_tma_multicast_sm100 04_mma_tma_2sm_sm100)
failed=0
for name in "${names[@]}"; do
    "$nvcc" -std=c++17 -arch=compute_100a -lineinfo -cudart shared -DCUTLASS_ARCH_MMA_SM100_SUPPORTED --expt-relaxed-constexpr -diag-suppress 177 \
        -I "$include" -I "$include/../tools/util/include" -I "$tutorials" -o "$work/$name" "$tutorials/$name.cu" >"$work/log" 2>&1 ||
        { echo "$name: FAILED, nvcc: $(tail -1 "$work/log")"; failed=1; continue; }
    "$cutegen" simt exec --simt-as b200 --format json --output "$work/report" -- "$work/$name" 512 1024 64 >"$work/out" 2>"$work/err"
    found=$(grep -o '"kind": *"[a-z_]*"' "$work/report" | sort -u | tr -d ' "\n')
    expected=
    [ "$name" != 01_mma_sm100 ] || expected=kind:missing_proxy_fence
    if grep -q 'Execution is successful' "$work/out" && [ "$found" = "$expected" ]; then
        echo "$name: right, found: ${found:-nothing}"
    else
        echo "$name: FAILED"
        tail -3 "$work/out"
        tail -20 "$work/err"
        failed=1
    fi
done
exit $failed
