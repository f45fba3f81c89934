#!/usr/bin/env bash
# overlap.sh - plans of several launches on a GPU, in order and with launches that overlap (NAME~1): the same code, judged and
# timed in one run, in turn. Chains with a product, with a convolution and with neither, reductions in parts, whole networks.
#
#     bench/gpu/overlap.sh prepare TREE FOLDER [JOBS [TASK...]]   anywhere: FOLDER has all that the GPU needs; again: what is missing
#     FOLDER/overlap.sh OUT [SECONDS [NAME...]]                   on the GPU: OUT/overlap.jsonl, OUT/overlap.txt, OUT/overlap.md
#     bench/gpu/overlap.sh simt TREE OUT [TASK...]                the same steps without a GPU: judged with every check
#
# TREE is what setup/dist.sh packs. TASKS are names of modules_tasks.py and of networks/. A task whose plan has one launch is left
# out: its second kernel is another. What a row has: modules.py.
set -u
here=$(cd "$(dirname "$0")" && pwd)
chains="c01 c02 c03 c04 c05 c06 c07 c08 c09 c10 c11 c12 c13 c14 c15 c16"
products="p02 p04 p05 p06 p10 p12 p14 p18 p20 p24"
convolutions="v01 v06 v08 v09 v11 v12 v18 v19"
reductions="g_sum_middle g_sum_ends g_var_ends g_sum_outer g_softmax_outer g_logsumexp_middle g_instance_norm"
networks="mlp vit gpt mamba lstm gru bigru mobilenet vgg16 resnet18"

# tasks_of FOLDER [TASK...]: their files, and the list `names`
tasks_of() {
    local folder=$1 name
    shift
    read -r -a names <<<"${*:-$networks $chains $products $convolutions $reductions}"
    mkdir -p "$folder"
    python3 "$here/modules_tasks.py" "$folder" "${names[@]}"
    for name in "${names[@]}"; do
        [ -s "$folder/$name.py" ] || cp "$here/networks/$name.py" "$folder" || exit 2
    done
}

# build_both NAME: the first kernel, then the next one, whose code is found. Networks take minutes.
build_both() {
    local said begin=$SECONDS depth
    [ ! -s "$kernels/$1.done" ] || return 0
    export CUTEGEN_RUNTIME=$work/rt-$SLOT
    for depth in 0 1; do
        said=$("$tree/bin/cutegen" build "$tasks/$1.py" --depth $depth --device for:H200 --build-deadline 900 --out "$work/$1" 2>&1 | tail -1)
    done
    if grep -q '"overlap":true' "$work/$1/$1~1.json" 2>/dev/null && cmp -s "$work/$1/$1.cubin" "$work/$1/$1~1.cubin"; then
        ln -f "$work/$1/$1.cubin" "$work/$1/$1~1.cubin" # once in the archive
        cp -l "$work/$1/$1"*.json "$work/$1/$1"*.cubin "$kernels/"
    elif [ -s "$work/$1/$1.json" ]; then
        said="left out: no launches that overlap"
    fi
    [ ! -s "$work/$1/$1.json" ] || echo "$said" >"$kernels/$1.done"
    echo "$1: $said, $((SECONDS - begin)) s"
}

# judge_both NAME: the kernel predicted to be best, then with the step, at reduced sizes
judge_both() {
    export CUTEGEN_RUNTIME=$work/rt-$SLOT
    "$tree/bin/cutegen" run "$tasks/$1.py" --device simt --simt-arch 90a --order predicted --depth 1 --fresh --tune 0 --no-report \
        --runs "$work/runs-$1" --json >"$out/$1.json" 2>"$out/$1.txt"
    python3 - "$1" "$out/$1.json" <<'END'
import json
import sys

rows = [json.loads(line) for line in open(sys.argv[2]) if line.startswith("{")]
tried = [(r.get("change", ""), r["judgement"]["verdict"]) for r in rows if r.get("event") == "attempt"]
overlap = [v for change, v in tried if change.startswith("let every launch begin")]
first = tried[0][1] if tried else "not written"
print(f"{sys.argv[1]}: first kernel {first}; launches that overlap: {overlap[-1] if overlap else 'no such step'}")
END
}

end() {
    local runtime
    for runtime in "$work"/rt-*; do
        [ ! -d "$runtime" ] || CUTEGEN_RUNTIME=$runtime "$tree/bin/cutegen" server stop >/dev/null 2>&1
    done
    rm -rf "$work"
}

case "${1:-}" in
    prepare | simt)
        tree=$(readlink -f "$2") work=$(mktemp -d)
        trap end EXIT
        mkdir -p "$3"
        out=$(readlink -f "$3") tasks=$work/tasks
        export tree work out tasks CUTEGEN_HOME=$tree/share/cutegen CUTEGEN_PYTHON=${CUTEGEN_PYTHON:-$(command -v python3)} OMP_NUM_THREADS=1
        ;;&
    prepare)
        jobs=${4:-1} kernels=$work/kernels
        export kernels CUTEGEN_SERVER=no CUTEGEN_CACHE=${CUTEGEN_CACHE:-$work/cache}
        tasks_of "$tasks" "${@:5}"
        mkdir -p "$kernels" "$CUTEGEN_CACHE" "$out/tasks"
        [ ! -s "$out/kernels.tgz" ] || tar xzf "$out/kernels.tgz" -C "$work"
        cp "$here/modules.py" "$here/overlap.sh" "$here/../../oracle/exported/launcher.py" "$out"
        cp "$tasks"/*.py "$out/tasks"
        export -f build_both
        printf '%s\n' "${names[@]}" | xargs --process-slot-var=SLOT -P "$jobs" -I{} bash -c 'build_both {}'
        tar czf "$out/kernels.tgz" -C "$work" kernels
        ;;
    simt)
        tasks_of "$tasks" "${@:4}"
        SLOT=0 CUTEGEN_SERVER=yes
        export SLOT CUTEGEN_SERVER
        for name in "${names[@]}"; do
            judge_both "$name"
        done
        ;;
    *)
        out=$1
        mkdir -p "$out"
        work=$(mktemp -d)
        tar xzf "$here/kernels.tgz" -C "$work"
        env LAUNCHER=launcher.py COMPILE=0 SECONDS="${2:-240}" CALLS="${CALLS:-10}" python3 "$here/modules.py" "$here/tasks" \
            "$work/kernels" "$out/overlap.jsonl" "${@:3}" 2>&1 | tee "$out/overlap.txt"
        python3 "$here/modules.py" others "$out/overlap.jsonl" | tee "$out/overlap.md"
        rm -rf "$work"
        ;;
esac
