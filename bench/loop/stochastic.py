"""stochastic.py SEED COUNTER [NAME=RATE...] - a model for exec: that draws steps and faults at given rates.

Answers every stage for examples/swish.py from a family of kernels with four parameters (threads, vector width, vectors per
thread, their order). A step changes one parameter, mostly by one notch; a fault is put into it at a rate. COUNTER is a file
with the number of the next draw: the n-th answer of a run is the same for the same SEED, however the calls are made.

    fault=0.3    a new kernel has a fault: it does not compile, is wrong, or leaves its tail unwritten
    repair=0.7   a repair removes it
    jump=0.1     a step changes the order of the vectors, which no small step does
    read=0.6     with a profile in the prompt, the step is one that moves more bytes per access, if there is one
"""
import fcntl
import os
import random
import re
import sys

THREADS, VEC, PER = [32, 64, 128, 256, 512, 1024], [1, 2, 4], [1, 2, 4, 8, 16]
KERNEL = '''// state: threads=%(threads)d vec=%(vec)d per=%(per)d order=%(order)s fault=%(fault)s
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
INDEX = {"strided": "(int)((blockIdx.x * PER + k) * THREADS + threadIdx.x)", "blocked": "(int)((blockIdx.x * THREADS + threadIdx.x) * PER + k)"}


def draw_number(path):
    """The next number, one for each call, also when calls are made at the same time."""
    with open(path, "a+") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        f.seek(0)
        n = len(f.read())
        f.write(".")
        return n


def source(state):
    fault = state["fault"]
    return KERNEL % dict(state, index=INDEX[state["order"]], tail=" - 1" if fault == "tail" else "",
                         factor="1.02f * " if fault == "wrong" else "", semicolon="" if fault == "compile" else ";")


def state_of(prompt):
    found = re.findall(r"// state: threads=(\d+) vec=(\d+) per=(\d+) order=(\w+) fault=(\w+)", prompt)
    if not found:
        return None
    t, v, p, order, fault = found[-1]
    return {"threads": int(t), "vec": int(v), "per": int(p), "order": order, "fault": fault}


def notch(dice, values, now):
    at = values.index(now) + dice.choice([-1, 1])
    return values[min(max(at, 0), len(values) - 1)]


def step(dice, state, rates, profiled):
    if profiled and state["vec"] < 4 and dice.random() < rates["read"]:
        return dict(state, vec=state["vec"] * 2), "wider vectors"
    if dice.random() < rates["jump"]:
        return dict(state, order="strided" if state["order"] == "blocked" else "blocked"), "the other order of vectors"
    name = dice.choice(["threads", "vec", "per"])
    values = {"threads": THREADS, "vec": VEC, "per": PER}[name]
    value = notch(dice, values, state[name])
    return dict(state, **{name: value}), "%s %d" % (name, value)


def main():
    rates = {"fault": 0.3, "repair": 0.7, "jump": 0.1, "read": 0.6}
    rates.update((w.split("=")[0], float(w.split("=")[1])) for w in sys.argv[3:])
    dice = random.Random("%s:%d" % (sys.argv[1], draw_number(sys.argv[2])))
    prompt, stage = sys.stdin.read(), os.environ["CUTEGEN_STAGE"]
    state = state_of(prompt)
    if stage == "diagnose":
        print("The fault is where the evidence says.")
        return
    if stage == "synthesize" or state is None:
        state = {"threads": dice.choice(THREADS), "vec": 1, "per": dice.choice(PER), "order": dice.choice(["strided", "blocked"])}
        what = "a first kernel"
    elif stage == "repair":
        what = "repair"
        if dice.random() >= rates["repair"]:
            state["fault"] = dice.choice(["compile", "wrong", "tail"])
            print("CHANGE: a repair that does not help\n\n```cpp\n%s```" % source(state))
            return
    else:
        state, what = step(dice, state, rates, "# Its profile" in prompt)
    state["fault"] = "none"
    if stage != "repair" and dice.random() < rates["fault"]:
        state["fault"] = dice.choice(["compile", "wrong", "tail"])
    print("CHANGE: %s\n\n```cpp\n%s```" % (what, source(state)))


main()
