// recipes/recurrent.cu - recurrent layers: all steps of LSTM, GRU and plain cells in one kernel.
//
// Lines that begin with //! direct the composer (docs/recipes.md); all else is the kernel's text.
// What the first layer gets was multiplied beforehand, for all steps (`gates`). Layers that run one
// way follow each other step by step: each tells how many steps it has done, and the next one waits
// for that. Who starts first takes the lowest layer (`sync[0]` counts), so that whoever waits, waits
// for someone who runs, however few blocks the GPU holds.
//
//! recipe recurrent: a block for a layer, a direction and some rows of the batch; weights are read at every step
//! fact lstm: cells have a state beside what they give
//! fact gru: cells have two gates
//! fact rectified: a plain cell with relu; else with tanh
//! fact biases: the products of h have a bias
//! fact both: a second direction runs from the end to the beginning
//! fact stacked: there are several layers
//! fact starts: h begins with a tensor
//! fact starts_c: c begins with a tensor
//! fact makes_y: h of every step is asked for
//! fact makes_h: the last h is asked for
//! fact makes_c: the last c is asked for
//! fact hopper: clusters are possible
//! fact fits: the registers of a cluster hold all weights of a layer
//!
//! step cluster: hold the weights in registers of a cluster, and exchange h through its shared memory
//!   why: A step waits for one exchange between blocks, not for all weights to come from the L2 cache.
//!   when: hopper and fits
//! text
// $kernel: $ops, one kernel for all steps.
#include <cutegen/kernel.h>
constexpr int STEPS = $steps, BATCH = $batch, HIDDEN = $hidden, GATES = $gates;
constexpr int LAYERS = $layers, WAYS = $ways; // WAYS: directions
//! if cluster
constexpr int CTAS = $ctas; // blocks of a cluster: they share the units of a layer
constexpr int UNITS = $units, ROWS = GATES * UNITS; // of a block
constexpr int TILE = $cluster_tile, PITCH = $pitch; // rows of the batch that a cluster takes; the pitch keeps banks apart
constexpr int SLICES = 8; // warps that multiply
constexpr int SLICE_H = $slice_h, SLICE_X = $slice_x; // elements of h or x that a warp of the first layer, of another, multiplies
constexpr int THREADS = 32 * (SLICES + 2); // with a warp that loads and one that signals
constexpr int PADDED = $padded; // elements of h and x that are multiplied, zeros at the end
constexpr int SMEM = 4 * PITCH * (4 * PADDED + SLICES * ROWS);
//! else
constexpr int TILE = $tile; // rows of the batch that a block takes
constexpr int THREADS = 256;
//! end
constexpr int TILES = (BATCH + TILE - 1) / TILE;
constexpr int LINE = 32; // words between two counters
//! if cluster
constexpr int BETWEEN = STEPS * HIDDEN * PITCH; // h of one layer and tile: (STEPS,HIDDEN,PITCH)
//! else
constexpr int BETWEEN = STEPS * HIDDEN * TILE; // h of one layer and tile: (STEPS,HIDDEN,TILE)
//! end

#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
//! if cluster
#include <cute/arch/cluster_sm90.hpp>
//! end

using namespace cute;

__device__ inline float sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

// One cell: of what comes from x and from h, gate by gate, the new h.
//! if lstm
__device__ inline float cell(float const (&x)[GATES], float const (&in)[GATES], float &c, float)
{
    c = sigmoid(x[1] + in[1]) * c + sigmoid(x[0] + in[0]) * tanhf(x[2] + in[2]);
    return sigmoid(x[3] + in[3]) * tanhf(c);
}
//! elif gru
__device__ inline float cell(float const (&x)[GATES], float const (&in)[GATES], float &, float h)
{
    float const z = sigmoid(x[1] + in[1]);
    float const n = tanhf(x[2] + sigmoid(x[0] + in[0]) * in[2]);
    return (1.0f - z) * n + z * h;
}
//! elif rectified
__device__ inline float cell(float const (&x)[GATES], float const (&in)[GATES], float &, float)
{
    float const v = x[0] + in[0];
    return v < 0.0f ? 0.0f : v; // NaN stays
}
//! else
__device__ inline float cell(float const (&x)[GATES], float const (&in)[GATES], float &, float)
{
    return tanhf(x[0] + in[0]);
}
//! end

// Steps that a layer has done.
__device__ inline int acquired(int const *at)
{
    int steps;
    asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(steps) : "l"(at) : "memory");
    return steps;
}
__device__ inline void release(int *at, int steps)
{
    asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(at), "r"(steps) : "memory");
}

//! if cluster
//! include recurrent_cluster
//! else
//! include recurrent_block
//! end
#endif

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
//! each check
    CUTEGEN_REQUIRE(call, $condition, "$text");
//! end
    int *sync = (int *)cutegen_workspace(call, 4 * LINE * (1 + LAYERS * TILES));
//! if stacked
    float *between = (float *)cutegen_workspace(call, 4 * (int64_t)BETWEEN * (LAYERS - 1) * TILES);
//! end
    CUTEGEN_TRY(cutegen_memset(call, sync, 0, 4 * LINE * (1 + LAYERS * TILES)));
//! if cluster
    return CUTEGEN_LAUNCH_CLUSTER(call, ${kernel}_kernel, cutegen_dim3(LAYERS * WAYS * TILES * CTAS, 1, 1), cutegen_dim3(THREADS, 1, 1), cutegen_dim3(CTAS, 1, 1), SMEM, $args);
//! else
    return CUTEGEN_LAUNCH(call, ${kernel}_kernel, cutegen_dim3(LAYERS * WAYS * TILES, 1, 1), cutegen_dim3(THREADS, 1, 1), 0, $args);
//! end
}
#endif
