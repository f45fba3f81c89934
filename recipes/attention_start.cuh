// attention_start.cuh - shared memory, barriers and tiles: how attention's kernels for sm_90a begin.
//! if planes
    using Element = half_t; // a part of a number
//! else
    using Element = $type;
//! end
    extern __shared__ unsigned char memory[];
    unsigned const skip = -cast_smem_ptr_to_uint(memory) % 1024; // tiles start on 1024 bytes
    Element *smem_q = reinterpret_cast<Element *>(memory + skip), *ring = smem_q + QUEUE * SIZE_Q;
    uint64_t *full = reinterpret_cast<uint64_t *>(ring + STAGES * SLOT), *empty = full + STAGES;
    uint64_t *full_q = empty + STAGES, *empty_q = full_q + QUEUE;
    int const group = threadIdx.x / 128;
    Span tile;
//! if counted
    uint64_t *full_t = empty_q + QUEUE, *empty_t = full_t + 2;
    Walk walk = {queries, keys, heads, together, int(blockIdx.x), counter, reinterpret_cast<int *>(empty_t + 2), full_t, empty_t, {0, 0}};
//! else
    Walk walk = {queries, keys, heads, together, int(blockIdx.x)};
//! end

    if (threadIdx.x == 0) {
//! if counted
        for (int i = 0; i < 2; ++i) {
            initialize_barrier(full_t[i], 1);
            initialize_barrier(empty_t[i], 128 * GROUPS);
        }
//! end
        for (int i = 0; i < STAGES; ++i) {
            initialize_barrier(full[i], 1);
            initialize_barrier(empty[i], GROUPS);
        }
        for (int i = 0; i < QUEUE; ++i) {
            initialize_barrier(full_q[i], 1);
            initialize_barrier(empty_q[i], GROUPS);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();
