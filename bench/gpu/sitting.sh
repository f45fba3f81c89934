#!/usr/bin/env bash
# sitting.sh - all measurements that are owed on an H200, as steps: what is built before, what runs there, what it updates.
#
#     bench/gpu/sitting.sh plan                              the steps, their seconds, their documents
#     bench/gpu/sitting.sh prepare FOLDER [STEP...]          anywhere, no GPU: FOLDER/tree.tgz and FOLDER/STEP; again: what is missing
#     bench/gpu/sitting.sh gpu FOLDER [STEP...]              on the GPU, from the root of this checkout: OUT/STEP.tar.xz, OUT/STEP.txt
#
# A sitting has half an hour, a command ten minutes, and 64 MiB travel with it. So: prepare into build/sitting (git ignores it), carry
# FOLDER with the steps of one call (`plan` has them; FOLDER/OTHER may stay behind), run that call, unpack OUT/*.tar.xz, go on with the
# next one. Each step ends by its seconds, and leaves what it has. Its commands are below, under its name, to be run by hand too.
# JOBS: compilers at a time in `prepare`. LIMIT: of a step's seconds, in per cent. OUT: FOLDER/out, unless it is set.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)

# step | seconds on the GPU | call | what is prepared on a CPU | which documents it updates
steps()
{
    cat <<'END'
networks|100|1|5 networks into a cache|results/export.md: networks, by hand from ships_networks.md
attention|170|1|kernels by nvcc|attention.md, by attention_table.py
gemm|160|1|24 kernels into a cache|gemm.md: tables.py write, then bench/results.py
tuner|80|1|-|real_sizes.md: the tuner's table, by hand from tuner.md
suite|420|2|40 tasks into a cache|real_sizes.md: six at a time and one, by hand from suite.txt
memory|270|3|22 kernels into a cache|memory.md: as gemm
further|230|3|21 kernels|memory.md: as gemm
conv|560|4|39 shapes, twice|conv.md: tables.py show
halves|400|5|38 kernels|memory.md: as gemm
ladder|120|5|-|real_sizes.md: ladder times on 16 cores, by hand from ladder.md (no GPU is used)
convrun|570|6|-|conv.md: cutegen run on ten shapes, by hand from judged.md
netrun|570|7|-|networks.md: cutegen run on vit and gru, by hand from judged.md
END
}
names() { steps | cut -d'|' -f1; }

plan()
{
    echo "| step | s on the GPU | call | prepared on a CPU | updates |"
    echo "|---|---|---|---|---|"
    steps | sed 's/|/ | /g; s/^/| /; s/$/ |/'
    steps | awk -F'|' '{ sum[$3] += $2; names[$3] = names[$3] " " $1 } END { for (c = 1; c in sum; c++) printf "call %d:%s, %d s\n", c, names[c], sum[c] }'
    echo "Calls 1 to 3 fit one sitting of half an hour, 4 and 5 another, 6 and 7 a third. A machine that is not there yet takes a minute or two more."
}

# ---- on a CPU ---------------------------------------------------------------------------------------------

kernels_of() { python3 "$here/tables.py" prepare "$tree/bin/cutegen" "$folder/$1" "$1"; }
prepare_networks() { BUILD=for:H200 CUTEGEN_CACHE=$folder/networks/cache "$here/ships.sh" "$tree/bin/cutegen" "$folder/networks" networks; }
prepare_attention()
{
    local cutlass=${CUTLASS_PATH:-$tree/share/cutegen/cutlass/include} ladder=$root/build/release/tests/expert/expert_ladder
    python3 "$here/attention_kernels.py" "$tree/bin/cutegen" "$ladder" "$folder/attention" ${ATTENTION:-}
    export cutlass tree
    find "$folder/attention" -name '*.cu' -print0 | xargs -0 -P "${JOBS:-1}" -I{} bash -c '
        [ -s "$(dirname {})/$(basename {} .cu).so" ] || nvcc -std=c++17 -O3 -arch=sm_90a --expt-relaxed-constexpr -shared -Xcompiler -fPIC -diag-suppress 177 \
            -DCUTEGEN_EXPORT=1 -I "$tree/share/cutegen/include" -isystem "$cutlass" {} -o "$(dirname {})/$(basename {} .cu).so" -lcuda'
}
prepare_suite()
{
    python3 "$here/sizes.py" forty "$folder/suite/tasks"
    find "$folder/suite/tasks" -name '*.py' | sort | head -n "${TASKS:-40}" |
        CUTEGEN_CACHE=$folder/suite/cache xargs -P "${JOBS:-1}" -n 1 "$tree/bin/cutegen" build --depth 0 --device for:H200
}
prepare_memory() { kernels_of memory; }
prepare_further() { kernels_of further; }
prepare_halves() { kernels_of halves; }
prepare_gemm() { kernels_of gemm; }
prepare_conv() { kernels_of conv; }

prepare()
{
    mkdir -p "$folder"
    if [ ! -s "$folder/tree.tgz" ]; then
        "$root/setup/dist.sh" x86_64 && cp "$(ls -t "$root"/dist/cutegen-*-x86_64.tar.gz | head -1)" "$folder/tree.tgz" || exit 3
    fi
    unpack
    export CUTEGEN_SERVER=no OMP_NUM_THREADS=1
    for step in "$@"; do
        [ "$(type -t "prepare_$step")" = function ] || continue
        mkdir -p "$folder/$step"
        echo "== $step"
        "prepare_$step"
    done
    du -sh "$folder"/*
}

# ---- on the GPU -------------------------------------------------------------------------------------------

judged() { python3 -u "$here/tables.py" judge "$tree/bin/cutegen" "$folder/$1" "$to" "$(($2 - 20))"; }
gpu_networks() { JOBS=3 CUTEGEN_CACHE=$folder/networks/cache "$here/ships.sh" "$tree/bin/cutegen" "$to" networks; }
gpu_attention() { LIMIT=$1 "$here/attention.sh" "$folder/attention" "$to" ${ROWS:+"$ROWS"}; }
gpu_tuner() { python3 -u "$here/tuner.py" "$tree/bin/cutegen" "$to"; }
gpu_suite()
{
    local tasks
    mapfile -t tasks < <(find "$folder/suite/tasks" -name '*.py' | sort | head -n "${TASKS:-40}")
    CUTEGEN_CACHE=$folder/suite/cache python3 -u "$here/suite_time.py" "$tree/bin/cutegen" "$to" 6,1 "$(($1 * 6 / 10))" "${tasks[@]}" -- --device "${DEVICE:-cuda:0}" --depth 0 --compile none --tune 0 --fresh |
        tee "$to/suite.txt"
}
gpu_memory() { judged memory "$1"; }
gpu_further() { judged further "$1"; }
gpu_halves() { judged halves "$1"; }
gpu_gemm() { judged gemm "$1"; }
gpu_conv() { judged conv "$1"; }
gpu_convrun()
{
    local shapes
    mapfile -t shapes < <(python3 "$here/conv.py" ten)
    "$here/modules_judged.sh" "$tree" "$to" 120 "${shapes[@]}"
}
gpu_netrun() { "$here/modules_judged.sh" "$tree" "$to" 280 vit gru; }
gpu_ladder() { "$here/ladder_time.sh" "$tree/bin/cutegen" "$to/ladder.md"; }

gpu()
{
    local out=${OUT:-$folder/out} begin=$SECONDS limit step
    unset OUT # of tools that read it
    unpack
    mkdir -p "$out"
    export CUTEGEN_PYTHON=${CUTEGEN_PYTHON:-$(command -v python3)} CUTEGEN_RUNS=$work/runs CUTEGEN_RUNTIME=$work/rt
    nvidia-smi --query-gpu=name,clocks.max.sm,power.limit --format=csv,noheader 2>/dev/null
    for step in "$@"; do
        limit=$(($(steps | awk -F'|' -v s="$step" '$1 == s { print $2 }') * ${LIMIT:-100} / 100)) to=$work/results/$step
        mkdir -p "$to"
        export to folder tree here
        echo "== $step, at most $limit s"
        timeout -k 10 "$limit" bash -c "$(declare -f "gpu_$step" judged); gpu_$step $limit" 2>&1 | tee "$out/$step.txt"
        find "$to" -name runs -prune -exec rm -rf {} +
        tar cJf "$out/$step.tar.xz" -C "$work/results" "$step"
        echo "== $step: $((SECONDS - begin)) s since the beginning"
    done
    "$tree/bin/cutegen" server stop >/dev/null 2>&1
}

unpack()
{
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    tar xzf "$folder/tree.tgz" -C "$work" || exit 3
    tree=$(echo "$work"/cutegen-*)
    export CUTEGEN_HOME=$tree/share/cutegen
}

case ${1:-} in
plan) plan ;;
prepare | gpu)
    what=$1
    mkdir -p "${2:?FOLDER}"
    folder=$(readlink -f "$2")
    shift 2
    for step in "$@"; do names | grep -qx "$step" || { echo "sitting.sh: no step $step" >&2; exit 2; }; done
    [ $# -gt 0 ] || mapfile -t all < <(names)
    [ $# -gt 0 ] || set -- "${all[@]}"
    "$what" "$@"
    ;;
*)
    sed -n '2,11s/^# \{0,1\}//p' "$0"
    exit 2
    ;;
esac
