// recurrent_block.cuh - a block for a layer, a direction and some rows of the batch. Included by recurrent.cu.
__global__ void __launch_bounds__(THREADS) ${kernel}_kernel($params)
{
    __shared__ float sH[2][HIDDEN][TILE], sC[HIDDEN][TILE], sX[HIDDEN][TILE];
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
    int const warp = threadIdx.x / 32, lane = threadIdx.x % 32;

    if (threadIdx.x == 0)
        sTicket = atomicAdd(sync, 1);
    __syncthreads();
    int const layer = sTicket / (WAYS * TILES), way = sTicket / TILES % WAYS, tile = sTicket % TILES;
    int const first = tile * TILE, rows = min(TILE, BATCH - first), state = layer * WAYS + way;
    float const *const gates = all_gates[way], *const w_hh = all_w_hh[state];
//! if biases
    float const *const b_hh = all_b_hh[state];
//! end
    int *const done = sync + LINE * (1 + layer * TILES + tile);

    for (int i = threadIdx.x; i < HIDDEN * TILE; i += THREADS) {
        int const u = i % HIDDEN, b = i / HIDDEN;
//! if starts
        sH[0][u][b] = b < rows ? h0[(state * BATCH + first + b) * HIDDEN + u] : 0.0f;
//! else
        sH[0][u][b] = 0.0f;
//! end
        sH[1][u][b] = 0.0f;
//! if starts_c
        sC[u][b] = b < rows ? c0[(state * BATCH + first + b) * HIDDEN + u] : 0.0f;
//! else
        sC[u][b] = 0.0f;
//! end
        sX[u][b] = 0.0f;
    }
    __syncthreads();

    for (int t = 0; t < STEPS; ++t) {
        int const at = way ? STEPS - 1 - t : t, now = t % 2;
//! if stacked
        if (layer > 0) {
            float const *const below = between + int64_t((layer - 1) * TILES + tile) * BETWEEN + t * HIDDEN * TILE;
            if (threadIdx.x == 0)
                while (acquired(done - LINE * TILES) <= t)
                    ;
            __syncthreads();
            for (int i = threadIdx.x; i < HIDDEN * TILE; i += THREADS)
                sX[i / TILE][i % TILE] = __ldcg(below + i);
            __syncthreads();
        }
//! end
        for (int u = warp; u < HIDDEN; u += THREADS / 32) {
            float in[GATES][TILE] = {}, x[GATES][TILE] = {}; // sums over h, over what the layer below gives
            for (int k = lane; k < HIDDEN; k += 32)
                CUTE_UNROLL
                for (int g = 0; g < GATES; ++g) {
                    float const w = w_hh[(g * HIDDEN + u) * HIDDEN + k];
                    CUTE_UNROLL
                    for (int b = 0; b < TILE; ++b)
                        in[g][b] += w * sH[now][k][b];
                }
//! if stacked
            if (layer > 0)
                for (int k = lane; k < HIDDEN; k += 32)
                    CUTE_UNROLL
                    for (int g = 0; g < GATES; ++g) {
                        float const w = all_w_ih[layer - 1][(g * HIDDEN + u) * HIDDEN + k];
                        CUTE_UNROLL
                        for (int b = 0; b < TILE; ++b)
                            x[g][b] += w * sX[k][b];
                    }
//! end
            float mine_in[GATES] = {}, mine_x[GATES] = {}; // of the row that this lane finishes
            CUTE_UNROLL
            for (int g = 0; g < GATES; ++g)
                CUTE_UNROLL
                for (int b = 0; b < TILE; ++b) {
                    CUTE_UNROLL
                    for (int d = 16; d > 0; d /= 2) {
                        in[g][b] += __shfl_xor_sync(0xffffffff, in[g][b], d);
//! if stacked
                        x[g][b] += __shfl_xor_sync(0xffffffff, x[g][b], d);
//! end
                    }
                    mine_in[g] = lane == b ? in[g][b] : mine_in[g];
                    mine_x[g] = lane == b ? x[g][b] : mine_x[g];
                }
            if (lane < rows) {
                int const row = first + lane;
                CUTE_UNROLL
                for (int g = 0; g < GATES; ++g) {
//! if biases
                    mine_in[g] += b_hh[g * HIDDEN + u];
//! end
                    if (layer == 0)
                        mine_x[g] = gates[int64_t(at * BATCH + row) * GATES * HIDDEN + g * HIDDEN + u];
//! if stacked and biases
                    else
                        mine_x[g] += all_b_ih[layer - 1][g * HIDDEN + u];
//! end
                }
                float const h = cell(mine_x, mine_in, sC[u][lane], sH[now][u][lane]);
                sH[1 - now][u][lane] = h;
//! if makes_y
                if (layer + 1 == LAYERS)
                    y[(int64_t(at * BATCH + row) * WAYS + way) * HIDDEN + u] = h;
//! end
            }
        }
        __syncthreads();
//! if stacked
        if (layer + 1 < LAYERS) {
            float *const made = between + int64_t(layer * TILES + tile) * BETWEEN + t * HIDDEN * TILE;
            for (int i = threadIdx.x; i < HIDDEN * TILE; i += THREADS)
                made[i] = sH[1 - now][i / TILE][i % TILE];
            __syncthreads();
            if (threadIdx.x == 0)
                release(done, t + 1);
        }
//! end
    }
//! if makes_h or makes_c
    for (int i = threadIdx.x; i < HIDDEN * rows; i += THREADS) {
        int const u = i % HIDDEN, b = i / HIDDEN;
//! if makes_h
        h_last[(state * BATCH + first + b) * HIDDEN + u] = sH[STEPS % 2][u][b];
//! end
//! if makes_c
        c_last[(state * BATCH + first + b) * HIDDEN + u] = sC[u][b];
//! end
    }
//! end
}
