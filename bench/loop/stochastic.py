"""stochastic.py SEED COUNTER [NAME=VALUE...] - a model for exec: that draws steps and faults at given rates.

Answers every stage for one of three tasks from a family of kernels with a few parameters: examples/swish.py (threads, vector
width, vectors per thread), row_sum.py (threads, vector width, rows per block) and square_matmul.py (tile, padding), each with two
orders of its inner loop. A step changes one parameter, mostly by one notch; a fault is put into it at a rate. COUNTER is a file
with the number of the next draw: the n-th answer of a run is the same for the same SEED, however the calls are made.

    task=swish   or row_sum, square_matmul
    fault=0.3    a new kernel has a fault: it does not compile, is wrong, or leaves its tail out
    repair=0.7   a repair removes it
    jump=0.1     a step changes the order, which no small step does
    read=0.6     with a profile in the prompt, the step is the one that its bound asks for, if there is one
"""
import fcntl
import os
import random
import re
import sys

SWISH = '''// state: %(state)s
#include <cutegen/kernel.h>

#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;

template <int THREADS, int VEC, int PER>
__global__ void __launch_bounds__(THREADS) swish_kernel(float const *x, float *y, int n)
{
    using Vector = AutoVectorizingCopyWithAssumedAlignment<VEC * 32>;
    Tensor mX = make_tensor(make_gmem_ptr(x), make_shape(Int<VEC>{}, n / VEC)); // (VEC,n/VEC)
    Tensor mY = make_tensor(make_gmem_ptr(y), make_shape(Int<VEC>{}, n / VEC)); // (VEC,n/VEC)
    for (int k = 0; k < PER; ++k) {
        int const i = %(index)s;
        if (i < n / VEC%(tail)s) {
            Tensor rX = make_tensor<float>(Int<VEC>{}); // (VEC)
            copy(Vector{}, mX(_, i), rX);
            CUTE_UNROLL
            for (int v = 0; v < VEC; ++v)
                rX(v) = %(factor)srX(v) / (1.0f + expf(-rX(v)));
            copy(Vector{}, rX, mY(_, i))%(semicolon)s
        }
    }
}
#endif

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    const struct cutegen_tensor *x = &call->in[0];
    int64_t n = cutegen_numel(x);

    CUTEGEN_REQUIRE(call, cutegen_contiguous(x) && cutegen_aligned(x, 16) && n %% 4 == 0, "x must be dense, in whole vectors");
    return CUTEGEN_LAUNCH(call, (swish_kernel<%(threads)d, %(vec)d, %(per)d>),
                          cutegen_dim3(cutegen_ceil_div(n / %(vec)d, %(threads)d * %(per)d), 1, 1), cutegen_dim3(%(threads)d, 1, 1), 0,
                          CUTEGEN_DATA(float const, x), CUTEGEN_DATA(float, &call->out[0]), (int)n);
}
#endif
'''
ROW_SUM = '''// state: %(state)s
#include <cutegen/kernel.h>

#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;

template <int THREADS, int VEC, int ROWS>
__global__ void __launch_bounds__(THREADS) row_sum_kernel(float const *x, float *y, int rows, int columns)
{
    using Vector = AutoVectorizingCopyWithAssumedAlignment<VEC * 32>;
    Tensor mX = make_tensor(make_gmem_ptr(x), make_shape(Int<VEC>{}, columns / VEC, rows),
                            make_stride(_1{}, Int<VEC>{}, columns)); // (VEC,columns/VEC,rows)
    Tensor mY = make_tensor(make_gmem_ptr(y), make_shape(rows));     // (rows)
    __shared__ float part[THREADS];
    int const thread = int(threadIdx.x);

    for (int r = 0; r < ROWS; ++r) {
        int const row = int(blockIdx.x) * ROWS + r;
        if (row >= rows)
            break;
        float sum = 0;
        for (int i = thread; i < columns / VEC%(tail)s; i += THREADS) {
            Tensor rX = make_tensor<float>(Int<VEC>{}); // (VEC)
            copy(Vector{}, mX(_, i, row), rX);
            CUTE_UNROLL
            for (int v = 0; v < VEC; ++v)
                sum += rX(v);
        }
%(reduce)s
        if (thread == 0)
            mY(row) = %(factor)ssum%(semicolon)s
        __syncthreads();
    }
}
#endif

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    const struct cutegen_tensor *x = &call->in[0];

    CUTEGEN_REQUIRE(call, x->ndim == 2 && cutegen_contiguous(x) && cutegen_aligned(x, 16) && x->shape[1] %% 4 == 0,
                    "x must be a dense matrix, in whole vectors");
    return CUTEGEN_LAUNCH(call, (row_sum_kernel<%(threads)d, %(vec)d, %(per)d>), cutegen_dim3(cutegen_ceil_div(x->shape[0], %(per)d), 1, 1),
                          cutegen_dim3(%(threads)d, 1, 1), 0, CUTEGEN_DATA(float const, x), CUTEGEN_DATA(float, &call->out[0]),
                          (int)x->shape[0], (int)x->shape[1]);
}
#endif
'''
TREE = '''        part[thread] = sum;
        __syncthreads();
        for (int half = THREADS / 2; half > 0; half /= 2) {
            if (thread < half)
                part[thread] += part[thread + half];
            __syncthreads();
        }
        sum = part[0];'''
SHUFFLE = '''        CUTE_UNROLL
        for (int half = 16; half > 0; half /= 2)
            sum += __shfl_xor_sync(0xffffffff, sum, half);
        if (thread % 32 == 0)
            part[thread / 32] = sum;
        __syncthreads();
        sum = 0;
        for (int w = 0; w < THREADS / 32; ++w)
            sum += part[w];'''
MATMUL = '''// state: %(state)s
#include <cutegen/kernel.h>

#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;

template <int BLK_M, int BLK_N, int PAD>
__global__ void __launch_bounds__(256) matmul_kernel(float const *A, float const *B, float *C, int M, int N, int K)
{
    constexpr int BLK_K = 16;
    Tensor mA = make_tensor(make_gmem_ptr(A), make_shape(M, K), make_stride(K, _1{})); // (M,K)
    Tensor mB = make_tensor(make_gmem_ptr(B), make_shape(N, K), make_stride(_1{}, N)); // (N,K)
    Tensor mC = make_tensor(make_gmem_ptr(C), make_shape(M, N), make_stride(N, _1{})); // (M,N)
    Tensor gA = local_tile(mA, make_shape(Int<BLK_M>{}, Int<BLK_K>{}), make_coord(blockIdx.y, _));          // (BLK_M,BLK_K,k)
    Tensor gB = local_tile(mB, make_shape(Int<BLK_N>{}, Int<BLK_K>{}), make_coord(blockIdx.x, _));          // (BLK_N,BLK_K,k)
    Tensor gC = local_tile(mC, make_shape(Int<BLK_M>{}, Int<BLK_N>{}), make_coord(blockIdx.y, blockIdx.x)); // (BLK_M,BLK_N)
    __shared__ float smem_a[(BLK_M + PAD) * BLK_K];
    __shared__ float smem_b[BLK_N * BLK_K];
    Tensor sA = make_tensor(make_smem_ptr(smem_a), make_shape(Int<BLK_M>{}, Int<BLK_K>{}),
                            make_stride(_1{}, Int<BLK_M + PAD>{}));                         // (BLK_M,BLK_K)
    Tensor sB = make_tensor(make_smem_ptr(smem_b), make_shape(Int<BLK_N>{}, Int<BLK_K>{})); // (BLK_N,BLK_K)
    auto thr_a = Layout<Shape<_16, _16>, Stride<_16, _1>>{};
    auto thr_b = Layout<Shape<_16, _16>>{};
    auto thr_c = %(index)s{};
    Tensor tAgA = local_partition(gA, thr_a, threadIdx.x);                // (BLK_M/16,BLK_K/16,k)
    Tensor tAsA = local_partition(sA, thr_a, threadIdx.x);                // (BLK_M/16,BLK_K/16)
    Tensor tBgB = local_partition(gB, thr_b, threadIdx.x);                // (BLK_N/16,BLK_K/16,k)
    Tensor tBsB = local_partition(sB, thr_b, threadIdx.x);                // (BLK_N/16,BLK_K/16)
    Tensor tCsA = local_partition(sA, thr_c, threadIdx.x, Step<_1, X>{}); // (BLK_M/16,BLK_K)
    Tensor tCsB = local_partition(sB, thr_c, threadIdx.x, Step<X, _1>{}); // (BLK_N/16,BLK_K)
    Tensor tCgC = local_partition(gC, thr_c, threadIdx.x);                // (BLK_M/16,BLK_N/16)
    Tensor tCrC = make_tensor<float>(shape(tCgC));                        // (BLK_M/16,BLK_N/16)
    clear(tCrC);
    for (int k = 0; k < size<2>(gA)%(tail)s; ++k) {
        copy(tAgA(_, _, k), tAsA);
        copy(tBgB(_, _, k), tBsB);
        __syncthreads();
        CUTE_NO_UNROLL
        for (int kk = 0; kk < BLK_K; ++kk)
            CUTE_UNROLL
            for (int i = 0; i < size(tCrC); ++i)
                tCrC(i) += tCsA(i %% size<0>(tCrC), kk) * tCsB(i / size<0>(tCrC), kk);
        __syncthreads()%(semicolon)s
    }
    CUTE_UNROLL
    for (int i = 0; i < size(tCrC); ++i)
        tCgC(i) = %(factor)stCrC(i);
}
#endif

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    const struct cutegen_tensor *A = &call->in[0], *B = &call->in[1], *C = &call->out[0];
    int64_t M = A->shape[0], K = A->shape[1], N = B->shape[1];

    CUTEGEN_REQUIRE(call, cutegen_contiguous(A) && cutegen_contiguous(B) && cutegen_contiguous(C), "all must be contiguous");
    CUTEGEN_REQUIRE(call, M %% 128 == 0 && N %% 128 == 0 && K %% 16 == 0, "whole tiles only");
    return CUTEGEN_LAUNCH(call, (matmul_kernel<%(m)d, %(n)d, %(pad)d>), cutegen_dim3(N / %(n)d, M / %(m)d, 1), cutegen_dim3(256, 1, 1), 0,
                          CUTEGEN_DATA(float const, A), CUTEGEN_DATA(float const, B), CUTEGEN_DATA(float, C), (int)M, (int)N, (int)K);
}
#endif
'''
# Of each task: its kernel, what a parameter may be, what a first kernel has, the two orders, and what a reader of the profile
# does, in this order, as long as it can.
TASKS = {
    "swish": {
        "kernel": SWISH,
        "values": {"threads": [32, 64, 128, 256, 512, 1024], "vec": [1, 2, 4], "per": [1, 2, 4, 8, 16]},
        "first": {"vec": 1},
        "asked": ["vec"],
        "orders": {"strided": ("index", "(int)((blockIdx.x * PER + k) * THREADS + threadIdx.x)"),
                   "blocked": ("index", "(int)((blockIdx.x * THREADS + threadIdx.x) * PER + k)")},
    },
    "row_sum": {
        "kernel": ROW_SUM,
        "values": {"threads": [32, 64, 128, 256, 512, 1024], "vec": [1, 2, 4], "per": [1, 2, 4, 8]},
        "first": {"vec": 1},
        "asked": ["vec"],
        "orders": {"tree": ("reduce", TREE), "shuffle": ("reduce", SHUFFLE)},
    },
    "square_matmul": {
        "kernel": MATMUL,
        "values": {"m": [16, 32, 64, 128], "n": [16, 32, 64, 128], "pad": [0, 4]},
        "first": {"pad": 0, "m": 16},
        "asked": ["m", "n", "pad"],
        "orders": {"along_n": ("index", "Layout<Shape<_16, _16>, Stride<_16, _1>>"), "along_m": ("index", "Layout<Shape<_16, _16>>")},
    },
}


def draw_number(path):
    """The next number, one for each call, also when calls are made at the same time."""
    with open(path, "a+") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        f.seek(0)
        n = len(f.read())
        f.write(".")
        return n


def source(task, state):
    fault = state["fault"]
    hole, code = task["orders"][state["order"]]
    return task["kernel"] % dict(state, **{hole: code}, state=" ".join("%s=%s" % item for item in state.items()),
                                 tail=" - 1" if fault == "tail" else "", factor="1.02f * " if fault == "wrong" else "",
                                 semicolon="" if fault == "compile" else ";")


def state_of(prompt):
    found = re.findall(r"// state: (\w+=\w+(?: \w+=\w+)*)", prompt)
    if not found:
        return None
    pairs = (w.split("=") for w in found[-1].split())
    return {k: int(v) if v.isdigit() else v for k, v in pairs}


def notch(dice, values, now):
    at, by = values.index(now), dice.choice([-1, 1])
    return values[at + (by if 0 <= at + by < len(values) else -by)]


def step(dice, task, state, rates, profiled):
    asked = [n for n in task["asked"] if state[n] < task["values"][n][-1]]
    if profiled and asked and dice.random() < rates["read"]:
        name = asked[0]
        return dict(state, **{name: task["values"][name][task["values"][name].index(state[name]) + 1]}), "a larger %s" % name
    if dice.random() < rates["jump"]:
        return dict(state, order=[o for o in task["orders"] if o != state["order"]][0]), "the other order"
    name = dice.choice(list(task["values"]))
    value = notch(dice, task["values"][name], state[name])
    return dict(state, **{name: value}), "%s %d" % (name, value)


def first(dice, task):
    state = {name: task["first"].get(name) if name in task["first"] else dice.choice(values) for name, values in task["values"].items()}
    return dict(state, order=dice.choice(list(task["orders"])))


def main():
    rates = {"task": "swish", "fault": 0.3, "repair": 0.7, "jump": 0.1, "read": 0.6}
    rates.update(w.split("=") for w in sys.argv[3:])
    task = TASKS[rates.pop("task")]
    rates = {k: float(v) for k, v in rates.items()}
    dice = random.Random("%s:%d" % (sys.argv[1], draw_number(sys.argv[2])))
    prompt, stage = sys.stdin.read(), os.environ["CUTEGEN_STAGE"]
    state = state_of(prompt)
    if stage == "diagnose":
        print("The fault is where the evidence says.")
        return
    if stage == "synthesize" or state is None:
        state, what = first(dice, task), "a first kernel"
    elif stage == "repair":
        what = "repair"
        if dice.random() >= rates["repair"]:
            state["fault"] = dice.choice(["compile", "wrong", "tail"])
            print("CHANGE: a repair that does not help\n\n```cpp\n%s```" % source(task, state))
            return
    else:
        state, what = step(dice, task, state, rates, "# Its profile" in prompt)
    state["fault"] = "none"
    if stage != "repair" and dice.random() < rates["fault"]:
        state["fault"] = dice.choice(["compile", "wrong", "tail"])
    print("CHANGE: %s\n\n```cpp\n%s```" % (what, source(task, state)))


main()
