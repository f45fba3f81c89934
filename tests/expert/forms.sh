#!/usr/bin/env bash
# forms.sh - every form that a recipe composes stands on its own: plain nvcc compiles it without a warning, and its text
# is clean (no directive, slot, tab, blank at a line's end or line over 200 characters is left).
#
#     tests/expert/forms.sh LADDER CUTEGEN [EVERY [JOBS [TASKS]]]
#
# The forms are the kernels of the ladders of each TASKSth (1) of tests/expert/tasks, for simt, sm_90a and sm_100a; equal ones
# count once. The text of each is checked, and each EVERYth is compiled (1: all, hours on two cores). Without nvcc: a named skip
# (77).
set -u
ladder=$(readlink -f "$1") cutegen=$(readlink -f "$2") every=${3:-1} jobs=${4:-$(nproc)} tasks=${5:-1}
root=$(readlink -f "$(dirname "$0")/../..")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CUTEGEN_HOME=$root

tool() { "$cutegen" doctor --json | python3 -c 'import json, sys
print(next((c.get("path", "") for c in json.load(sys.stdin)["checks"] if c["name"] == sys.argv[1]), ""))' "$1"; }
nvcc=$(tool nvcc) cutlass=$(tool CuTe)
[ -n "$nvcc" ] && [ -n "$cutlass" ] || { echo "skipped: no nvcc or no CUTLASS on this machine"; exit 77; }

# Kernels by architecture; a description that no recipe takes has none.
number=0
for task in "$root"/tests/expert/tasks/*.json; do
    # attention_gradient's second form once had a loop that nvcc never reaches: always compiled
    [ $((number++ % tasks)) = 0 ] || [ "${task##*/}" = attention_gradient.json ] || continue
    "$ladder" "$task" "$work/80" >/dev/null || exit 1
    for arch in 90a 100a; do "$ladder" "$task" "$work/$arch" sm_$arch >/dev/null || exit 1; done
done
for kernel in "$work"/{90a,100a}/*.cu; do # what is written alike is compiled for the older one
    for older in 80 90a; do
        if [[ $kernel != */$older/* ]] && cmp -s "$kernel" "$work/$older/${kernel##*/}"; then rm -f "$kernel"; fi
    done
done
forms=("$work"/80/*.cu "$work"/90a/*.cu "$work"/100a/*.cu)
[ ${#forms[@]} -ge $((300 / tasks)) ] || { echo "only ${#forms[@]} forms"; exit 1; }

if LC_ALL=C.UTF-8 grep -nE '//!|\$[a-z_]|	| $|^.{201,}' "${forms[@]}" | sed "s|$work/||" | head -20 | grep .; then
    echo "the text of a form is not clean"
    exit 1
fi

# 177: a form need not use every index that the recipe names.
compile()
{
    local arch=${1%/*}
    arch=${arch##*/}
    "$nvcc" -c -std=c++17 -gencode "arch=compute_$arch,code=sm_$arch" --expt-relaxed-constexpr -O1 -Xptxas -O0 \
        -Werror all-warnings -diag-suppress 177 -Xcompiler -Wall -DCUTEGEN_EXPORT=1 -I "$root/include" \
        -isystem "$cutlass" -o "$1.o" "$1" >"$1.log" 2>&1 ||
        { echo "${1#"$work"/}: nvcc does not take it:"; head -5 "$1.log"; return 1; }
    rm -f "$1.o" "$1.log"
}
export -f compile
export nvcc root cutlass work
picked=()
for ((i = 0; i < ${#forms[@]}; i++)); do
    if [ $((i % every)) = $((every / 2)) ] || [[ ${forms[i]} = */80/attention_gradient.1.cu ]]; then picked+=("${forms[i]}"); fi
done
printf '%s\0' "${picked[@]}" | xargs -0 -n 1 -P "$jobs" bash -c 'compile "$1"' _ || exit 1
echo "${#forms[@]} forms are clean, ${#picked[@]} of them compiled by $nvcc"
