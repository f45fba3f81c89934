#!/usr/bin/env bash
# sweep.sh - the large generated sweeps, of which `make test` runs a sample. Hours on two cores.
#
#     tests/sweep.sh                      all of them
#     SWEEP="coverage gemm" tests/sweep.sh
#
#   coverage   every generated task of the built-in engineer (SEED, COUNT)
#   attention  ATTENTIONS generated attentions, for sm_80 and sm_90a (SEED; operators need a PyTorch that has them); those behind
#              products that write what they read
#   modules    modules of every operator family, chains and small networks; 200 composed at random (SEED); forty as people
#              write them, and 199 as other people's repositories hold them; every core ATen operator in every dtype; 48 with f64 inside
#              (SEED); gradients
#   networks   small networks of every style; recurrent ones in the form for Hopper, too
#   conv       200 random convolutions, half of them in the form for Hopper, half of those with TF32 allowed; 30 of small
#              images; 60 chains; 40 of 16 bits that lie channels last
#   gemm       random matrix products: first kernels, whole ladders, Hopper's recipes, every step of its ladders
#   cards      every form of every recipe planned for each GPU that simt stands in for; examples, and generated tasks of
#              every recipe, judged as each of them and with the code of each: a table
#   forms      every form of every recipe compiled by plain nvcc
#   errors     every wrong kernel of tests/toolchain/errors with NVRTC and nvcc
#   kill       a run killed at KILLS random moments and resumed
#   calls      a run killed at KILLS random events while a model is asked
#   programs   every CUDA program of tests/simt/programs on simt, both runtimes, with and without its bug
#   mcp        every MCP tool by the reference client at every revision and transport; broken messages, FUZZ of them
#   examples   every example (make test: each fourth) with a right kernel and with one that is wrong in each way
#   clients    CLIENTS candidates of four clients through one warm server, with kills
#   blackwell  the CuTe tutorials for sm_100a that come with CUTLASS, on simt; which forms of its instructions are taken; every step
#              of the product for sm_100a
#   cutlass    products built by CUTLASS' CollectiveBuilder for sm_100a and sm_120a, on simt (minutes of nvcc and 5 GB for each)
#   triton     every Triton kernel of tests/simt/triton on simt (CUTEGEN_PYTHON with torch and Triton), and every cheat in it
#   cutedsl    every CuTe DSL kernel of tests/simt/cutedsl on simt, every cheat in it, and the examples (CUTEGEN_DSL_PYTHON, or
#              installed from the network: 320 MB)
#   cluster    suites by workers, CLUSTER_KILLS SIGKILLs, and dropped connections, full disks, wrong clocks
#   bugs       the injected bugs of simt and their twins in BUG_ORDERS orders of warps: a table
#   wheel      the wheels, built twice; one with all that it depends on (from the network) in an empty venv (gigabytes)
#   exports    every example exported: hashes; gradients judged; 200 steps of training; random shapes; twelve kinds checked
#              whole; five networks with weights changed afterwards (bench/gpu/ships.sh; opcheck needs a PyTorch that has it)
#   packages   the Debian package, twice the same bytes; its program, unpacked
#   attacks    ATTACKS attacks and as many candidates through one warm server
#   sanitizers the end-to-end tests that make test runs in release only, under sanitizers
#   aarch64    on x86_64: the tree compiled for aarch64, its unit tests run by qemu (tests/aarch64.sh)
#
# The last line is `N passed, N failed`; each sweep counts as one.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 3
build=build/release
cutegen=$build/src/cutegen
seed=${SEED:-1}
count=${COUNT:-176}
kills=${KILLS:-100}
attacks=${ATTACKS:-100}
clients=${CLIENTS:-400}
cluster_kills=${CLUSTER_KILLS:-200}
passed=0
failed=0
bad=()
CUTEGEN_PYTHON=${CUTEGEN_PYTHON:-$(cat "${TOOLS:-${XDG_DATA_HOME:-$HOME/.local/share}/cutegen}/python" 2>/dev/null || true)}
export CUTEGEN_PYTHON CUTEGEN_HOME=$PWD JOBS=${JOBS:-$(nproc)}

# sweep NAME COMMAND... : one sweep, if it is wanted.
sweep()
{
    local name=$1
    shift
    printf '\n== %s\n' "$*"
    if "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        bad+=("$name: $*")
    fi
}

for name in ${SWEEP:-coverage modules networks conv attention gemm forms cards errors kill calls examples clients programs blackwell cutlass triton cutedsl mcp cluster attacks bugs wheel exports packages sanitizers aarch64}; do
    case $name in
    coverage)
        ninja -C $build tests/expert/expert_ladder >/dev/null || exit 3
        sweep coverage tests/expert/coverage.sh $build "$count" "$seed" 1
        ;;
    modules)
        ninja -C $build tests/expert/expert_ladder >/dev/null || exit 3
        sweep modules env GENERATE="$PWD/tests/expert/modules.py" tests/expert/coverage.sh $build \
            "$(python3 tests/expert/modules.py --count)" "$seed" 1
        sweep modules env GENERATE="$PWD/tests/expert/chains.py" tests/expert/coverage.sh $build 51 "$seed" 1
        sweep modules env GENERATE="$PWD/tests/expert/chains.py" ARCH=sm_90a SIMT_ARCH=90a tests/expert/coverage.sh $build 51 "$seed" 1
        sweep modules env GENERATE="$PWD/tests/expert/compositions.py" tests/expert/coverage.sh $build \
            "$(python3 tests/expert/compositions.py --count)" "$seed" 1
        for generator in styles strangers visitors doubles core_operators; do
            sweep modules env GENERATE="$PWD/tests/expert/$generator.py" tests/expert/coverage.sh $build \
                "$(python3 "tests/expert/$generator.py" --count)" "$seed" 1
        done
        visitors=$(python3 tests/expert/visitors.py --count) # those that read masks come last
        sweep modules env GENERATE="$PWD/tests/expert/visitors.py" ARCH=sm_90a SIMT_ARCH=90a START=$((visitors - 13)) tests/expert/coverage.sh \
            $build "$visitors" "$seed" 1
        sweep modules env GENERATE="$PWD/tests/expert/batches.py" tests/expert/coverage.sh $build 40 "$seed" 1
        sweep modules env GENERATE="$PWD/tests/expert/batches.py" ARCH=sm_90a SIMT_ARCH=90a tests/expert/coverage.sh $build 40 "$((seed + 1))" 1
        sweep modules tests/expert/backward_test.sh $cutegen all
        sweep modules tests/expert/sizes_test.sh $cutegen all
        sweep modules tests/expert/overlap_test.sh $build/tests/expert/expert_ladder $cutegen all
        ;;
    networks)
        ninja -C $build tests/expert/expert_ladder >/dev/null || exit 3
        generated=$PWD/tests/expert/networks.py
        recurrent="lstm lstm_states lstm_last_c bilstm gru bigru rnn seq2seq conv_lstm"
        sweep networks env GENERATE="$generated" tests/expert/coverage.sh $build "$(python3 "$generated" --count)" "$seed" 1
        sweep networks env GENERATE="$generated" NETWORKS="$recurrent" ARCH=sm_90a SIMT_ARCH=90a tests/expert/coverage.sh $build \
            "$(wc -w <<<"$recurrent")" "$seed" 1
        ;;
    conv)
        ninja -C $build tests/expert/expert_ladder >/dev/null || exit 3
        generated=$PWD/tests/expert/convolutions.py
        sweep conv env GENERATE="$generated" BASELINE=strict tests/expert/coverage.sh $build 100 "$seed" 1
        sweep conv env GENERATE="$generated" BASELINE=strict ARCH=sm_90a SIMT_ARCH=90a tests/expert/coverage.sh $build 50 "$((seed + 1))" 1
        sweep conv env GENERATE="$generated" ARCH=sm_90a SIMT_ARCH=90a tests/expert/coverage.sh $build 50 "$((seed + 2))" 1
        sweep conv env GENERATE="$generated" BASELINE=strict CHAINS=1 tests/expert/coverage.sh $build 30 "$((seed + 3))" 1
        sweep conv env GENERATE="$generated" BASELINE=strict CHAINS=1 ARCH=sm_90a SIMT_ARCH=90a tests/expert/coverage.sh $build 30 "$((seed + 4))" 1
        sweep conv env GENERATE="$generated" CHAINS=1 ARCH=sm_90a SIMT_ARCH=90a tests/expert/coverage.sh $build 12 5 1
        sweep conv env GENERATE="$generated" DEEP=1 ARCH=sm_90a SIMT_ARCH=90a tests/expert/coverage.sh $build 20 "$((seed + 7))" 1
        sweep conv env GENERATE="$generated" DEEP=1 BASELINE=strict ARCH=sm_90a SIMT_ARCH=90a tests/expert/coverage.sh $build 10 "$((seed + 8))" 1
        sweep conv env GENERATE="$PWD/tests/expert/conv_layers.py" BASELINE=strict ARCH=sm_90a SIMT_ARCH=90a tests/expert/coverage.sh $build 18 1 1
        sweep conv env GENERATE="$PWD/tests/expert/conv_layers.py" ARCH=sm_90a SIMT_ARCH=90a tests/expert/coverage.sh $build 18 1 1
        sweep conv env GENERATE="$generated" LAST=1 ARCH=sm_90a SIMT_ARCH=90a tests/expert/coverage.sh $build 30 "$((seed + 5))" 1
        sweep conv env GENERATE="$generated" LAST=many ARCH=sm_90a SIMT_ARCH=90a tests/expert/coverage.sh $build 10 "$((seed + 6))" 1
        ;;
    attention)
        ninja -C $build tests/expert/expert_ladder >/dev/null || exit 3
        written=1
        "${CUTEGEN_PYTHON:-python3}" -c 'from torch.nn.functional import scaled_dot_product_attention' 2>/dev/null && written=
        for arch in "" 90a; do
            sweep attention env GENERATE="$PWD/tests/expert/attentions.py" WRITTEN=$written ARCH="${arch:+sm_$arch}" \
                SIMT_ARCH="$arch" tests/expert/coverage.sh $build "${ATTENTIONS:-150}" "$seed" 1
            [ -n "$written" ] || sweep gradients env GENERATE="$PWD/tests/expert/attentions.py" BACKWARD=1 \
                ARCH="${arch:+sm_$arch}" SIMT_ARCH="$arch" tests/expert/coverage.sh $build 24 "$seed" 1
            [ -n "$written" ] || sweep wide env GENERATE="$PWD/tests/expert/attentions.py" WIDE=1 \
                ARCH="${arch:+sm_$arch}" SIMT_ARCH="$arch" tests/expert/coverage.sh $build 27 "$seed" 1
        done
        for skip in "" "split A and B;divide K" "split A and B;divide K;split A in registers"; do # forms of the product
            sweep attention env GENERATE="$PWD/tests/expert/attention_layers.py" SKIP="$skip" ARCH=sm_90a SIMT_ARCH=90a \
                tests/expert/coverage.sh $build 13 "$seed" 1
        done
        ;;
    gemm)
        sweep gemm bench/gemm_coverage.sh $cutegen simt 120 "$seed" 0
        sweep gemm bench/gemm_coverage.sh $cutegen simt 24 77 12 --patience 0
        sweep gemm bench/gemm_coverage.sh $cutegen simt 8 78 1 --simt-arch 90a
        ninja -C $build tests/expert/expert_ladder >/dev/null || exit 3
        sweep gemm tests/expert/hopper.sh $build/tests/expert/expert_ladder $cutegen all
        ;;
    forms)
        ninja -C $build tests/expert/expert_ladder >/dev/null || exit 3
        sweep forms tests/expert/forms.sh $build/tests/expert/expert_ladder $cutegen 1
        ;;
    cards)
        ninja -C $build tests/expert/expert_ladder tests/expert/expert_plans >/dev/null || exit 3
        sweep cards tests/expert/cards.sh $build/tests/expert/expert_ladder $build/tests/expert/expert_plans $cutegen 1
        sweep cards python3 tests/examples/judge_all.py $cutegen --jobs "$JOBS" --wrong 0 --as a100,rtx4090,h100,h200,b200,rtx5090
        for card in rtx4090:86 rtx4090:89 rtx5090:120 rtx5090:120a b200:100a h100:90a; do
            sweep cards python3 tests/examples/judge_all.py $cutegen --jobs "$JOBS" --wrong 0 --as ${card%:*} --arch ${card#*:}
        done
        sweep cards python3 tests/expert/judge_cards.py $cutegen $build/tests/expert/expert_ladder --jobs "$JOBS" --seed "$seed"
        ;;
    programs)
        sweep programs tests/simt/programs.sh "$PWD/$cutegen" all
        ;;
    blackwell)
        ninja -C $build tests/expert/expert_ladder >/dev/null || exit 3
        sweep blackwell tests/simt/blackwell/tutorials.sh "$PWD/$cutegen"
        sweep blackwell tests/simt/blackwell/forms.py $build/src/simt/cutegen-simtc
        sweep blackwell tests/expert/blackwell.sh $build/tests/expert/expert_ladder $cutegen all
        ;;
    cutlass) sweep cutlass tests/simt/cutlass.sh "$PWD/$cutegen" ;;
    triton)
        sweep triton tests/simt/triton.sh "$PWD/$cutegen"
        sweep triton tests/cheats/run.py "$PWD/$cutegen" --triton --jobs "$JOBS"
        ;;
    cutedsl)
        if [ -z "${CUTEGEN_DSL_PYTHON:-}" ]; then
            dsl=${TOOLS:-${XDG_DATA_HOME:-$HOME/.local/share}/cutegen}/cutedsl
            [ -x "$dsl/bin/python" ] || { python3 -m venv "$dsl" && "$dsl/bin/pip" install -q nvidia-cutlass-dsl numpy; } || exit 3
            export CUTEGEN_DSL_PYTHON=$dsl/bin/python
        fi
        sweep cutedsl tests/simt/cutedsl.sh "$PWD/$cutegen"
        sweep cutedsl tests/cheats/run.py "$PWD/$cutegen" --cutedsl --jobs "$JOBS"
        for kernel in examples/cutedsl/*.py; do
            sweep cutedsl $cutegen eval "examples/${kernel##*/}" "$kernel" --device simt
        done
        ;;
    errors)
        ninja -C $build tests/toolchain/test_toolchain_errors >/dev/null || exit 3
        sweep errors tests/toolchain/errors.py $build
        ;;
    kill) sweep kill env SEED="$seed" python3 tests/e2e/kill_test.py $cutegen "$kills" ;;
    calls) sweep calls env SEED="$seed" python3 tests/e2e/kill_call_test.py $cutegen "$kills" ;;
    bugs)
        ninja -C $build tests/simt/test_simt_bug_table tests/simt/test_simt_bugs >/dev/null || exit 3
        sweep bugs $build/tests/simt/test_simt_bug_table "${BUG_ORDERS:-8}"
        sweep bugs $build/tests/simt/test_simt_bugs
        ninja -C $build tests/simt/test_simt_blackwell >/dev/null || exit 3
        sweep bugs $build/tests/simt/test_simt_blackwell "${BUG_ORDERS:-8}"
        ;;
    mcp)
        sweep mcp python3 tests/mcp/protocol_test.py $cutegen "${FUZZ:-20000}" "$seed"
        sweep mcp python3 tests/mcp/judge_test.py $cutegen full
        ;;
    examples) sweep examples python3 tests/examples/judge_all.py $cutegen --jobs "$JOBS" --wrong 7 ;;
    clients) sweep clients env CUTEGEN_TEST_CANDIDATES="$clients" tests/server/clients_test.sh $cutegen ;;
    cluster) sweep cluster env SEED="$seed" BUILDERS=slurm:1 KILL_RUNS=1 tests/e2e/cluster.sh $cutegen 12 "$cluster_kills" 4 30 ;;
    wheel) sweep wheel tests/python/wheel_sweep.sh ;;
    exports)
        table=$(mktemp -d)
        sweep exports env DEVICE=simt JOBS="$JOBS" ROWS=16 COLUMNS=32 NET="16 12 8 4" bench/gpu/ships.sh $cutegen "$table" \
            hashes gradients train shapes twelve networks
        rm -rf "$table"
        ;;
    packages) sweep packages tests/python/packages_sweep.sh ;;
    sanitizers) # build/debug is that of run.sh
        [ -f build/debug/build.ninja ] || CC=${CC:-gcc} "${MESON:-meson}" setup build/debug -Ddebug=true -Dc_args=-g1 -Doptimization=g \
            -Db_sanitize=address,undefined -Db_lundef=false >/dev/null || exit 3
        ninja -C build/debug >/dev/null || exit 3
        sweep sanitizers env ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
            "${MESON:-meson}" test -C build/debug --no-rebuild --suite sampled
        ;;
    aarch64) [ "$(uname -m)" = aarch64 ] || sweep aarch64 tests/aarch64.sh ;;
    attacks) sweep attacks python3 tests/cheats/after_attacks.py $cutegen "$attacks" ;;
    *)
        echo "sweep.sh: no sweep '$name': coverage, modules, networks, conv, attention, gemm, forms, cards, errors, kill, calls, examples, clients, programs, blackwell, cutlass, triton, cutedsl, mcp, cluster, attacks, bugs, wheel, exports, packages, sanitizers or aarch64" >&2
        exit 2
        ;;
    esac
done

echo
for name in "${bad[@]}"; do echo "failed: $name"; done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
