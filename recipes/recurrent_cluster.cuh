// recurrent_cluster.cuh - a cluster for a layer, a direction and some rows of the batch. Included by recurrent.cu.
//
// Each block has some units of the layer. A warp holds its slice of their weights: lanes are rows (gate, unit), a
// slice is of k. Of a layer above the first, half of the warps multiply x, which came a step before, while the
// others still wait for the h of other blocks.
__device__ inline void store_at(float *here, int rank, float value)
{
    uint32_t there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(cast_smem_ptr_to_uint(here)), "r"(rank));
    asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(there), "f"(value) : "memory");
}

__device__ inline void copy16(float *to, float const *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(cast_smem_ptr_to_uint(to)), "l"(from) : "memory");
}

constexpr int PER_LANE = (ROWS + 31) / 32; // rows of a lane

constexpr int QUADS = (TILE + 3) / 4;
using Sums = float[PER_LANE][4 * QUADS]; // (row,b)

// Sums over one slice of k, for all rows of this block: weights in registers, vectors (k,b) in shared memory.
template <int SLICE>
__device__ inline void multiply(float const (&w)[PER_LANE][SLICE], float const *vectors, Sums &acc)
{
    CUTE_UNROLL
    for (int k = 0; k < SLICE; ++k) {
        float v[4 * QUADS];
        CUTE_UNROLL
        for (int q = 0; q < QUADS; ++q)
            *reinterpret_cast<float4 *>(&v[4 * q]) = *reinterpret_cast<float4 const *>(&vectors[k * PITCH + 4 * q]);
        CUTE_UNROLL
        for (int r = 0; r < PER_LANE; ++r)
            CUTE_UNROLL
            for (int b = 0; b < TILE; ++b)
                acc[r][b] = fmaf(w[r][k], v[b], acc[r][b]);
    }
}

__device__ inline void keep(Sums const &acc, float *to)
{
    CUTE_UNROLL
    for (int r = 0; r < PER_LANE; ++r) {
        int const row = threadIdx.x % 32 + 32 * r;
        if (row < ROWS)
            CUTE_UNROLL
            for (int q = 0; q < QUADS; ++q)
                *reinterpret_cast<float4 *>(&to[row * PITCH + 4 * q]) = *reinterpret_cast<float4 const *>(&acc[r][4 * q]);
    }
}

struct Layer {
    float const *gates, *w_hh, *b_hh, *w_ih, *b_ih, *h0, *c0; // gates: of the first layer
    float const *below;                                       // (STEPS,HIDDEN,PITCH)
    float *above, *y, *h_last, *c_last;                       // above: as below, for the next layer
    int *done_below, *done;                                   // steps
    int way, first, rows;                                     // rows of the batch, from `first` on
};

// All steps of one layer. FIRST: its input was multiplied beforehand.
template <bool FIRST>
__device__ inline void run_layer(Layer const &p, float *smem)
{
    constexpr int SLICE = FIRST ? SLICE_H : SLICE_X, OF_X = FIRST ? 0 : SLICES / 2; // warps below OF_X multiply x
    float *const sH = smem, *const sX = smem + 2 * PADDED * PITCH; // (2,PADDED,PITCH)
    float *const sSums = smem + 4 * PADDED * PITCH;                // (SLICES,ROWS,PITCH)
    int const warp = threadIdx.x / 32, lane = threadIdx.x % 32, rank = int(block_rank_in_cluster());
    bool const of_x = warp < OF_X, of_h = !of_x && warp < SLICES;
    int const k0 = (of_x ? warp : warp - OF_X) * SLICE;
    // One result of a step: this thread's unit and row of the batch.
    int const b = threadIdx.x % TILE, u = threadIdx.x / TILE, unit = rank * UNITS + u, row = p.first + b;
    bool const finishes = u < UNITS && unit < HIDDEN, real = finishes && b < p.rows;

    float w[PER_LANE][SLICE]; // (row,k)
    CUTE_UNROLL
    for (int r = 0; r < PER_LANE; ++r) {
        int const mine = lane + 32 * r, of = rank * UNITS + mine % UNITS;
        float const *const from = (of_x ? p.w_ih : p.w_hh) + int64_t(mine / UNITS * HIDDEN + of) * HIDDEN;
        CUTE_UNROLL
        for (int k = 0; k < SLICE; ++k)
            w[r][k] = warp < SLICES && mine < ROWS && of < HIDDEN && k0 + k < HIDDEN ? from[k0 + k] : 0.0f;
    }
    float c = 0.0f, h = 0.0f, in_bias[GATES] = {}, given[GATES] = {};
    if (real) {
        h = p.h0 ? p.h0[row * HIDDEN + unit] : 0.0f;
        c = p.c0 ? p.c0[row * HIDDEN + unit] : 0.0f;
        CUTE_UNROLL
        for (int g = 0; g < GATES; ++g) {
            in_bias[g] = p.b_hh ? p.b_hh[g * HIDDEN + unit] : 0.0f;
            given[g] = !FIRST && p.b_ih ? p.b_ih[g * HIDDEN + unit] : 0.0f;
        }
    }
    auto const fetch = [&](int t) {
        int const at = p.way ? STEPS - 1 - t : t;
        CUTE_UNROLL
        for (int g = 0; g < GATES; ++g)
            given[g] = real ? p.gates[int64_t(at * BATCH + row) * GATES * HIDDEN + g * HIDDEN + unit] : 0.0f;
    };
    // x of step t, by the warp that loads; the layer below has done it.
    auto const load = [&](int t) {
        for (int i = 4 * lane; i < HIDDEN * PITCH; i += 4 * 32)
            copy16(sX + (t % 2) * PADDED * PITCH + i, p.below + int64_t(t) * HIDDEN * PITCH + i);
    };
    auto const await = [&](int steps) {
        if (lane == 0)
            while (acquired(p.done_below) < min(steps, STEPS))
                ;
        __syncwarp();
    };

    for (int i = threadIdx.x; i < 4 * PADDED * PITCH; i += THREADS)
        smem[i] = 0.0f;
    cluster_sync();
    if (finishes)
        for (int i = 0; i < CTAS; ++i)
            store_at(sH + unit * PITCH + b, i, h);
    if (FIRST) {
        fetch(0);
    } else if (warp == SLICES) {
        await(2);
        load(0);
        asm volatile("cp.async.wait_all;" ::: "memory");
    }
    __syncthreads();
    cluster_arrive();

    for (int t = 0; t < STEPS; ++t) {
        int const now = t % 2, at = p.way ? STEPS - 1 - t : t;
        if (of_x) {
            Sums acc = {};
            multiply(w, sX + (now * PADDED + k0) * PITCH, acc);
            cluster_wait(); // what the step before made of the sums is there
            keep(acc, sSums + warp * ROWS * PITCH);
        } else if (of_h) {
            Sums acc = {};
            cluster_wait();
            multiply(w, sH + (now * PADDED + k0) * PITCH, acc);
            keep(acc, sSums + warp * ROWS * PITCH);
        } else if (warp == SLICES) {
            if (!FIRST && t + 1 < STEPS) {
                load(t + 1);
                await(t + 3);
                asm volatile("cp.async.wait_all;" ::: "memory");
            }
            cluster_wait();
        } else {
            cluster_wait();
            if (p.above && t > 0 && rank == 0 && lane == 0)
                release(p.done, t);
        }
        __syncthreads();
        float x[GATES], in[GATES];
        CUTE_UNROLL
        for (int g = 0; g < GATES; ++g) {
            x[g] = given[g];
            in[g] = in_bias[g];
        }
        if (FIRST && t + 1 < STEPS)
            fetch(t + 1);
        if (finishes) {
            CUTE_UNROLL
            for (int g = 0; g < GATES; ++g)
                CUTE_UNROLL
                for (int s = 0; s < SLICES; ++s)
                    (s < OF_X ? x[g] : in[g]) += sSums[(s * ROWS + g * UNITS + u) * PITCH + b];
            h = cell(x, in, c, h);
            for (int i = 0; i < CTAS; ++i)
                store_at(sH + ((1 - now) * PADDED + unit) * PITCH + b, i, h);
            if (p.above) {
                p.above[(int64_t(t) * HIDDEN + unit) * PITCH + b] = h;
                for (int more = TILE + b; more < PITCH; more += TILE)
                    p.above[(int64_t(t) * HIDDEN + unit) * PITCH + more] = 0.0f;
            }
            if (p.y && real)
                p.y[(int64_t(at * BATCH + row) * WAYS + p.way) * HIDDEN + unit] = h;
        }
        cluster_arrive();
    }
    cluster_wait();
    if (p.above && threadIdx.x == 0 && rank == 0)
        release(p.done, STEPS);
    if (p.h_last && real)
        p.h_last[row * HIDDEN + unit] = h;
    if (p.c_last && real)
        p.c_last[row * HIDDEN + unit] = c;
}

__global__ void __launch_bounds__(THREADS, 1) ${kernel}_kernel($params)
{
    static_assert(TILE * UNITS <= THREADS && SLICE_H * SLICES <= PADDED && SLICE_X * (SLICES / 2) <= PADDED);
    extern __shared__ __align__(16) float smem[];
    __shared__ int sTicket;
    float const *const all_gates[] = {$gates_list};
    float const *const all_w_hh[] = {$w_hh_list};
//! if biases
    float const *const all_b_hh[] = {$b_hh_list};
//! end
//! if stacked
    float const *const all_w_ih[] = {$w_ih_list};
//! if biases
    float const *const all_b_ih[] = {$b_ih_list};
//! end
//! end

    cluster_sync(); // all blocks have begun: their memory may be written
    if (threadIdx.x == 0 && block_rank_in_cluster() == 0) {
        int const ticket = atomicAdd(sync, 1);
        for (int i = 0; i < CTAS; ++i)
            store_at(reinterpret_cast<float *>(&sTicket), i, __int_as_float(ticket));
    }
    cluster_sync();
    int const layer = sTicket / (WAYS * TILES), way = sTicket / TILES % WAYS, tile = sTicket % TILES;
    int const state = layer * WAYS + way, all = state * BATCH * HIDDEN;
    Layer p = {};
    p.gates = all_gates[way];
    p.w_hh = all_w_hh[state];
//! if biases
    p.b_hh = all_b_hh[state];
//! end
//! if starts
    p.h0 = h0 + all;
//! end
//! if starts_c
    p.c0 = c0 + all;
//! end
//! if makes_h
    p.h_last = h_last + all;
//! end
//! if makes_c
    p.c_last = c_last + all;
//! end
    p.done = sync + LINE * (1 + layer * TILES + tile);
    p.way = way;
    p.first = tile * TILE;
    p.rows = min(TILE, BATCH - p.first);
//! if stacked
    if (layer + 1 < LAYERS)
        p.above = between + int64_t(layer * TILES + tile) * BETWEEN;
//! end
//! if makes_y
    if (layer + 1 == LAYERS)
        p.y = y;
//! end
//! if stacked
    if (layer > 0) {
        p.w_ih = all_w_ih[layer - 1];
//! if biases
        p.b_ih = all_b_ih[layer - 1];
//! end
        p.below = between + int64_t((layer - 1) * TILES + tile) * BETWEEN;
        p.done_below = p.done - LINE * TILES;
        run_layer<false>(p, smem);
        return;
    }
//! end
    run_layer<true>(p, smem);
}
