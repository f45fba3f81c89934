#!/usr/bin/env bash
# programs.sh - CUDA programs, built by plain nvcc, run on simt: right and without findings; with
# their BUG, found at the line marked `// here`.
#
#     tests/simt/programs.sh CUTEGEN [all | NAME...]
#
# all: each program with the static and the shared runtime. NAME: with the one that `:shared` or
# nothing (static) says. Exit 77: there is no nvcc of CUDA 13 that can link a program.
set -uo pipefail
cutegen=$(realpath "$1")
shift
here=$(cd "$(dirname "$0")/programs" && pwd)
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
[ -n "$nvcc" ] || { echo "programs: SKIP, there is no nvcc"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$nvcc" --version | grep -q 'release 13\.' || { echo "programs: SKIP, nvcc is not of CUDA 13"; exit 77; }
echo 'int main() { return cudaFree(nullptr) == 12345; }' >"$work/probe.cu"
for runtime in static shared; do
    "$nvcc" -cudart $runtime -o "$work/probe" "$work/probe.cu" >"$work/err" 2>&1 ||
        { echo "programs: SKIP, nvcc cannot link the $runtime runtime: $(tail -1 "$work/err")"; exit 77; }
done
CUTEGEN_CACHE=${CUTEGEN_CACHE:-$work/cache}
export CUTEGEN_CACHE
failed=0 passed=0

fail()
{
    echo "programs: FAILED $*"
    sed 's/^/    /' "$work/out" "$work/err" 2>/dev/null | tail -20
    failed=$((failed + 1))
}

# build NAME RUNTIME FLAGS... -> $work/program
build()
{
    local name=$1 runtime=$2 arch=()
    shift 2
    case $name in cluster_tma | overlap) arch=(-arch=sm_90a) ;; esac
    "$nvcc" -lineinfo -cudart "$runtime" "${arch[@]}" "$@" -o "$work/program" "$here/$name.cu" >"$work/out" 2>"$work/err"
}

run()
{
    "$cutegen" simt exec --format json --output "$work/report" -- "$work/program" >"$work/out" 2>"$work/err"
}

clean()
{
    local name=$1 runtime=$2 code
    build "$name" "$runtime" || { fail "$name: nvcc"; return; }
    run
    code=$?
    if [ $code != 0 ] || [ "$(tail -1 "$work/out")" != ok ] || ! grep -q '"findings":\[\]' <(tr -d ' ' <"$work/report"); then
        fail "$name, $runtime runtime: exit $code"
        return
    fi
    passed=$((passed + 1))
}

# The kind is in the first lines, after `with BUG:`; the line is marked.
bug()
{
    local name=$1 runtime=$2 kind line code
    kind=$(sed -n '1,3p' "$here/$name.cu" | tr '\n/' '  ' | sed 's/.*with BUG: *\([a-z_]*\).*/\1/')
    line=$(grep -n '// here' "$here/$name.cu" | cut -d: -f1)
    build "$name" "$runtime" -DBUG || { fail "$name with its bug: nvcc"; return; }
    run
    code=$?
    if [ $code != 1 ] || ! python3 - "$work/report" "$kind" "$name.cu" "$line" <<'P'; then
import json, sys
report, kind, file, line = json.load(open(sys.argv[1])), sys.argv[2], sys.argv[3], int(sys.argv[4])
sys.exit(not any(f["kind"] == kind and f.get("file", "").endswith(file) and f.get("line") == line
                 for f in report["findings"]))
P
        fail "$name with its bug, $runtime runtime: exit $code, no $kind at line $line"
        return
    fi
    passed=$((passed + 1))
    [ "$name" = vector_add ] && annotated "$line"
}

# The same bug as an annotation of a CI run.
annotated()
{
    (cd "$here" && GITHUB_ACTIONS=true ../../../setup/simt_ci.sh --cutegen "$cutegen" --sarif "$work/sarif" -- "$work/program") \
        >"$work/out" 2>"$work/err"
    if [ $? != 1 ] || ! grep -q "^::error file=vector_add.cu,line=$1,title=simt out_of_bounds::" "$work/out"; then
        fail "vector_add: no annotation of line $1"
        return
    fi
    passed=$((passed + 1))
}

both()
{
    clean "$1" "$2" && bug "$1" "$2"
}

names=("$@")
if [ "${1:-all}" = all ]; then
    names=()
    for file in "$here"/*.cu; do
        name=$(basename "$file" .cu)
        names+=("$name" "$name:shared")
    done
fi
for one in "${names[@]}"; do
    runtime=static
    [ "${one%:shared}" = "$one" ] || runtime=shared
    both "${one%:shared}" $runtime
done
echo "programs: $passed passed, $failed failed"
[ $failed = 0 ]
