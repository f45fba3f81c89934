#!/usr/bin/env bash
# ships.sh - what an export owes beyond exports.sh, in little time: gradients judged, training, random shapes, calls.
#
#     bench/gpu/ships.sh PATH-TO-CUTEGEN OUT-FOLDER PART...
#
#   twelve      exports of every kind, one with its backward: all of exports.py, in one process
#   again       four of them judged and exported three times: how far two times of the judge lie apart
#   gradients   the tasks of tests/expert/backward: their gradients judged on the GPU; a table
#   train       five layers with their backwards, exported; 200 steps beside PyTorch and float64
#   calls       twelve examples at small sizes: host time of a call, opcheck, torch.compile, torch.export; hashes
#   products    two products at full size: exported time beside the judged one
#   hashes      every example (NAMES), sizes at most CAP: the exported code is the judged code
#   shapes      ten tasks judged at four shapes each; fifty random calls of each export
#   networks    five networks (NETWORKS): called, in a CUDA graph, inside torch.compile; then the same with other weights
#
# DEVICE=simt does all but calls and products without a GPU (tests/sweep.sh, SWEEP=exports). Exit status 1: a check failed.
# First everything is judged and exported, JOBS at a time, then each part is checked by itself. BUILD=for:H200 only compiles
# the kernels of these parts into CUTEGEN_CACHE, to be carried to a machine with such a GPU; there, CUTEGEN_CACHE names them, and
# three JOBS are best: that many oracles are kept warm. APART=1 gives each job a lease, a server and an oracle of its own, so that all
# judge at once: for verdicts and hashes, not for times (root only: a mount of its own over /run/lock). KEEP=FILE.tar.xz keeps the exports;
# RENEW=LOADER.so gives those that are trained another loader (renew.py).
set -u
here=$(cd "$(dirname "$0")" && pwd)
repo=$(cd "$here/../.." && pwd)
program=$(readlink -f "$1") out=$(readlink -f "$2")
shift 2
work=$(mktemp -d)
stop_servers() { for rt in "$work"/rt*; do [ -d "$rt" ] && CUTEGEN_RUNTIME=$rt "$program" server stop; done >/dev/null 2>&1; }
trap 'stop_servers; rm -rf "$work"' EXIT
trap 'exit 143' TERM
export CUTEGEN_CACHE=${CUTEGEN_CACHE:-$work/cache} CUTEGEN_RUNS=$work/runs CUTEGEN_RUNTIME=$work/rt CUTEGEN_SERVER=yes CUTEGEN_DEVICE=${DEVICE:-cuda:0}
export CUTEGEN_PYTHON=${CUTEGEN_PYTHON:-$(command -v python3)}
export cutegen=$program CUTEGEN_PROGRAM=$program work repo
begin=$(date +%s) failed=0
say() { echo "[$(($(date +%s) - begin)) s] $*"; }
mkdir -p "$work/tasks" "$CUTEGEN_RUNS"
backwards=${BACKWARDS:-relu gelu silu tanh exponential softmax log_softmax rms_norm layer_norm linear affine_norm cross_entropy}
forwards="relu gelu silu tanh exponential softmax log_softmax rms_norm layer_norm cross_entropy"

# judged ARGUMENTS...: cutegen run; with APART under a lease of this job's own
judged()
{
    if [ "${APART:-}" ]; then
        export CUTEGEN_RUNTIME=$work/rt$SLOT
        mkdir -p /run/lock "$work/lock$SLOT"
        unshare --mount bash -c 'mount --bind "$1" /run/lock && shift && exec "$@"' - "$work/lock$SLOT" "$cutegen" run "$@"
    else
        "$cutegen" run "$@"
    fi
}

# one KEY TASK OPTIONS...: judges the first kernel and exports it as $work/exports/KEY; one line
one()
{
    local key=$1 task=$2 said id code=cubin
    shift 2
    mkdir -p "$(dirname "$work/tasks/$key")" "$(dirname "$work/$key")"
    cp "$task" "$work/tasks/$key.py"
    if [ "${BUILD:-}" ]; then
        "$cutegen" build "$work/tasks/$key.py" --device "$BUILD" --depth 0 "$@" 2>&1 | tail -1
        return
    fi
    said=$(judged "$work/tasks/$key.py" --depth 0 --ahead 0 --no-report --compile none --tune 0 "$@" 2>&1)
    id=$(sed -n 's/^run  *//p' <<<"$said")
    echo "$id" >"$work/$key.run"
    "$cutegen" export "$id" --output "$work/exports/$key" >"$work/$key.export" 2>&1 || {
        echo "| $key | $(grep -m1 -E '^ +0 |ended|cutegen:' <<<"$said") $(head -1 "$work/$key.export") | |"
        return
    }
    [ -f "$work/exports/$key/kernel-0.$code" ] || code=ptx
    echo "| $key | $(sed -n 's/^checked  *//p' <<<"$said") | $(sed -n 's/^best  *depth 0, //p' <<<"$said") | $(
        attempt=$(sed -n 's/^ *"attempt": \([0-9]*\),$/\1/p' "$work/exports/$key/record.json" | head -1)
        judged=$("$cutegen" show "$id" --attempt "$attempt" --json | sed -n 's/.*"code":"\([0-9a-f]*\)".*/\1/p')
        [ "$(sha256sum <"$work/exports/$key/kernel-0.$code" | cut -d' ' -f1)" = "$judged" ] && echo same || echo "OTHER than attempt $attempt, $judged"
    ) |"
}
export -f one judged

# sized NAME TASK CONSTANT=VALUE...: the line of a task with these sizes written in; --set would keep `build` from tracing it
sized()
{
    local name=$1 task=$2 edits=(-e '')
    shift 2
    mkdir -p "$(dirname "$work/$name")"
    for value in "$@"; do edits+=(-e "s/^${value%=*} = .*/${value%=*} = ${value#*=}/"); done
    sed "${edits[@]}" "$task" >"$work/$name.sized"
    echo "$name $work/$name.sized"
}

# jobs_PART: the arguments of `one`, a line each; check_PART: what is done with the exports.
jobs_gradients()
{
    for name in $backwards; do
        grep -v '^BACKWARD' "$repo/tests/expert/backward/$name.py" >"$work/$name.forward"
        echo "$(sized "grad_$name" "$work/$name.forward" "ROWS=${ROWS:-4096}" "COLUMNS=${COLUMNS:-1024}") --backward"
    done
}
check_gradients()
{
    local judged same
    judged=$(grep -c '^| grad_' "$out/ships_judged.md") same=$(grep -c '^| grad_.*| same |$' "$out/ships_judged.md")
    echo "gradients of $same of $judged tasks judged right; the exported code is the judged code"
    [ "$same" = "$judged" ]
}

# Kinds: pointwise, reduction, norm, loss, product, chain, 16 bits, softmax, scan, pool, attention, backward.
jobs_twelve()
{
    while read -r name size; do
        task=$repo/examples/$name.py
        [ -f "$task" ] || task=$here/tasks/$name.py
        [ "$CUTEGEN_DEVICE" = simt ] && size= # its own, reduced as usual
        sized "$name" "$task" $size
    done <<'END'
attention BATCH=2
square_matmul N=4096
linear_gelu BATCH=4096
bfloat16_matmul N=4096
half_linear_gelu BATCH=4096
swish DIM=32768
softmax DIM=32768
cumsum BATCH=4096
cross_entropy BATCH=32768
row_sum COLUMNS=32768
max_pool2d BATCH=32
layer_norm TOKENS=32768
END
    grep -v '^BACKWARD' "$repo/tests/expert/backward/gelu.py" >"$work/gelu.both"
    [ "$CUTEGEN_DEVICE" = simt ] || size="ROWS=32768 COLUMNS=4096"
    sized gelu "$work/gelu.both" $size
    echo "$(sized gelu_backward "$work/gelu.both" $size) --backward"
}
check_twelve()
{
    local folders=()
    "$cutegen" export "$(cat "$work/gelu.run")" --gradients "$(cat "$work/gelu_backward.run")" --output "$work/exports/gelu" >/dev/null
    for name in gelu softmax layer_norm cross_entropy square_matmul linear_gelu swish row_sum cumsum max_pool2d bfloat16_matmul half_linear_gelu attention; do
        [ -d "$work/exports/$name" ] && folders+=("$work/exports/$name")
    done
    COMPILE=${COMPILE:-aot_eager} "$CUTEGEN_PYTHON" -u "$here/exports.py" "${folders[@]}" || failed=1
    for name in softmax square_matmul; do
        echo "-- $name loaded, called and forked at once"
        "$CUTEGEN_PYTHON" -u "$repo/tests/export/together.py" "$work/exports/$name"
    done
}

# Those whose judged time and time in a graph were furthest apart.
jobs_again()
{
    while read -r name task sizes; do
        for turn in 1 2 3; do echo "$(sized "again$turn/$name" "$task" "$sizes") --fresh"; done
    done <<END
attention $repo/examples/attention.py BATCH=2
half_linear_gelu $repo/examples/half_linear_gelu.py BATCH=4096
linear_gelu $repo/examples/linear_gelu.py BATCH=4096
max_pool2d $here/tasks/max_pool2d.py BATCH=32
END
}
check_again()
{
    local turn failed=0
    for turn in 1 2 3; do # a process each: other memory
        ONLY=check "$CUTEGEN_PYTHON" -u "$here/exports.py" "$work/exports/again$turn"/* || failed=1
    done
    return $failed
}

# Five layers of a network of ROWS INPUTS WIDTH CLASSES, forward and backward (NET; tests/export/layers.sh has the same five).
jobs_train()
{
    local rows inputs width classes
    read -r rows inputs width classes <<<"${NET:-256 64 256 10}"
    while read -r name task sizes; do
        grep -v '^BACKWARD' "$repo/tests/expert/backward/$task.py" >"$work/$name.layer"
        for kind in no-backward backward; do
            echo "$(sized "net_${name}_$kind" "$work/$name.layer" $sizes) --$kind"
        done
    done <<END
linear1 linear ROWS=$rows COLUMNS=$inputs WIDTH=$width
norm affine_norm ROWS=$rows COLUMNS=$width
gelu gelu ROWS=$rows COLUMNS=$width
linear2 linear ROWS=$rows COLUMNS=$width WIDTH=$classes
loss cross_entropy ROWS=$rows COLUMNS=$classes
END
}
check_train()
{
    for name in linear1 norm gelu linear2 loss; do
        "$cutegen" export "$(cat "$work/net_${name}_no-backward.run")" --gradients "$(cat "$work/net_${name}_backward.run")" \
            --output "$work/exports/net/$name" 2>&1 | grep '^cutegen:'
    done
    [ "${RENEW:-}" ] && "$CUTEGEN_PYTHON" "$here/renew.py" "$RENEW" "$work"/exports/net/*
    "$CUTEGEN_PYTHON" "$repo/tests/export/train.py" "$work/exports/net" "${STEPS:-200}"
}

jobs_calls()
{
    while read -r name set; do
        sized "$name" "$repo/examples/$name.py" $set
    done <<'END'
swish BATCH=256 DIM=4096
gelu BATCH=256 DIM=4096
row_sum ROWS=256 COLUMNS=4096
softmax BATCH=256 DIM=4096
layer_norm TOKENS=256 DIM=1024
rms_norm BATCH=4 FEATURES=64 HEIGHT=64 WIDTH=64
cross_entropy BATCH=256 CLASSES=1024
hinge_loss BATCH=256 DIM=1024
square_matmul N=512
bfloat16_matmul N=512
linear_gelu BATCH=256 FEATURES_IN=256 FEATURES_OUT=512
half_linear_gelu BATCH=256 FEATURES_IN=256 FEATURES_OUT=512
END
}
check_calls()
{
    local folders=()
    for name in rms_norm cross_entropy hinge_loss square_matmul bfloat16_matmul linear_gelu half_linear_gelu swish gelu row_sum softmax layer_norm; do
        [ -d "$work/exports/$name" ] && folders+=("$work/exports/$name")
    done
    ONLY="calls citizen" COMPILE=${COMPILE:-aot_eager} "$CUTEGEN_PYTHON" -u "$here/exports.py" "${folders[@]}"
}

jobs_hashes()
{
    for task in "$repo"/examples/*.py; do
        name=$(basename "$task" .py)
        awk -v cap="${CAP:-0}" 'cap && /^[A-Z_]+ = [0-9]+$/ && $3 > cap { $3 = cap } { print }' "$task" >"$work/$name.capped"
        case " ${NAMES:-$name} " in *" $name "*) echo "hash_$name $work/$name.capped" ;; esac
    done
}
check_hashes()
{
    local judged same
    judged=$(grep -c '^| hash_' "$out/ships_judged.md") same=$(grep -c '^| hash_.*| same |$' "$out/ships_judged.md")
    echo "$same of $judged examples: the exported code is the judged code"
    [ "$same" = "$judged" ]
}

jobs_products() { :; }
check_products()
{
    for name in square_matmul half_linear_gelu; do
        one "full_$name" "$repo/examples/$name.py"
        ONLY=check "$CUTEGEN_PYTHON" -u "$here/exports.py" "$work/exports/full_$name"
    done
}

jobs_shapes()
{
    for name in $forwards; do
        grep -v '^BACKWARD' "$repo/tests/expert/backward/$name.py" >"$work/$name.at"
        echo "at_$name $work/$name.at --shapes ROWS=64,3 --shapes COLUMNS=256,100"
    done
}
check_shapes()
{
    local folders=()
    for name in $forwards; do folders+=("$work/exports/at_$name"); done
    "$CUTEGEN_PYTHON" "$repo/tests/export/random_shapes.py" "${CALLS:-50}" "${folders[@]}"
}

# Whole networks of bench/gpu/networks; without a GPU at small sizes.
jobs_networks()
{
    while IFS='|' read -r name size; do
        case " ${NETWORKS:-mlp gpt gru resnet18 mamba} " in *" $name "*) ;; *) continue ;; esac
        [ "$CUTEGEN_DEVICE" = simt ] || size=
        sized "net_$name" "$here/networks/$name.py" ${size:+"$size"}
    done <<'END'
resnet18|BATCH, SIZE, CLASSES, WIDTH=1, 32, 10, 8
gpt|BATCH, TOKENS, WIDTH, HEADS, BLOCKS, WORDS=2, 16, 32, 2, 2, 64
gru|STEPS, LAYERS, HIDDEN, BATCH, FEATURES=5, 2, 16, 3, 8
mamba|BATCH, STEPS, HEADS, WIDTH, STATE, CHUNK=2, 32, 2, 8, 4, 8
mlp|BATCH, FEATURES, WIDTH, CLASSES=4, 32, 48, 10
vgg16|BATCH, SIZE, CLASSES=1, 32, 10
mobilenet|BATCH, SIZE, CLASSES=1, 32, 10
vit|BATCH, SIZE, PATCH, WIDTH, HEADS, BLOCKS, CLASSES=2, 32, 8, 32, 2, 2, 10
lstm|STEPS, LAYERS, HIDDEN, BATCH, FEATURES=5, 2, 16, 3, 8
bigru|STEPS, LAYERS, HIDDEN, BATCH, FEATURES=5, 2, 16, 3, 8
END
}
check_networks()
{
    local folders=() name missing=0
    for name in ${NETWORKS:-mlp gpt gru resnet18 mamba}; do
        [ -d "$work/exports/net_$name" ] && folders+=("$work/exports/net_$name") || { echo "$name: no export" && missing=1; }
    done
    ONLY=weights COMPILE=${COMPILE:-aot_eager} "$CUTEGEN_PYTHON" -u "$here/exports.py" "${folders[@]}" && [ "$missing" = 0 ]
}

echo "| export | checked | time | code as judged |" | tee "$out/ships_judged.md"
for part in "$@"; do "jobs_$part"; done | xargs -P "${JOBS:-12}" --process-slot-var=SLOT -I{} bash -c 'one {}' | tee -a "$out/ships_judged.md"
say "judged and exported"
[ "${BUILD:-}" ] && exit
[ "${KEEP:-}" ] && tar cJf "$KEEP" -C "$work" exports # to be checked again elsewhere
for part in "$@"; do
    echo "== $part"
    "check_$part" >"$out/ships_$part.md" 2>&1 || failed=1 # in this shell: a check may set it too
    cat "$out/ships_$part.md"
    say "$part"
done
exit "$failed"
