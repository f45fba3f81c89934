// attention_tiles.cuh - tiles of attention in shared memory and their order; a part of attention's recipes for sm_90a.
//! include attention_layouts
// A place in a ring, and the parity of its turn.
struct Place {
    int slot, turn;
    template <int SLOTS>
    __device__ void next()
    {
        if (++slot == SLOTS)
            slot = 0, turn ^= 1;
    }
};

// Queries of a head, and how many blocks of keys they see.
struct Span {
    int m, l, blocks;
};

// The tiles of a block, one after the other. `together`: heads whose K and V fit the L2 cache.
struct Walk {
    int queries, keys, heads, together, t; // t: the number of a tile
//! if counted
    // Processors are not equally fast, and causal tiles not equally long: the thread that fetches takes numbers from a
    // counter, and hands them to the others.
    unsigned *counter;
    volatile int *numbers;
    uint64_t *full, *empty;
    Place p;
//! end

    __device__ bool span(Span &tile) const
    {
        int const tiles = (queries + TILE_M - 1) / TILE_M, blocks = (keys + TILE_N - 1) / TILE_N;
        if (t >= tiles * heads)
            return false;
//! if causal
        // Of some heads the longest tiles first.
        int const first = t / (together * tiles) * together, some = cute::min(together, heads - first);
        int const left = t - first * tiles, m = tiles - 1 - left / some;
        tile.l = first + left % some;
        tile.m = m * TILE_M;
        tile.blocks = cute::min(blocks, (tile.m + TILE_M + TILE_N - 1) / TILE_N);
//! else
        tile.l = t / tiles;
        tile.m = t % tiles * TILE_M;
        tile.blocks = blocks;
//! end
        return true;
    }

    // The next tile, for the thread that fetches.
    __device__ bool lead(Span &tile)
    {
//! if counted
        wait_barrier(empty[p.slot], p.turn ^ 1);
        numbers[p.slot] = t;
        arrive_barrier(full[p.slot]);
        p.next<2>();
        bool const more = span(tile);
        if (more)
            t = gridDim.x + atomicAdd(counter, 1u);
//! else
        bool const more = span(tile);
        t += gridDim.x;
//! end
        return more;
    }

    // The next tile, for the threads that compute.
    __device__ bool follow(Span &tile)
    {
//! if counted
        wait_barrier(full[p.slot], p.turn);
        t = numbers[p.slot];
        arrive_barrier(empty[p.slot]);
        p.next<2>();
        return span(tile);
//! else
        return lead(tile);
//! end
    }
};

__device__ inline float quick_exp2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

//! if turns
// The warpgroups issue products one after the other.
__device__ inline void take_turn(int half)
{
    asm volatile("bar.sync %0, 256;" ::"r"(half + 1) : "memory");
}

__device__ inline void give_turn(int half)
{
    asm volatile("bar.arrive %0, 256;" ::"r"(half + 1) : "memory");
}

//! end
//! if o_vectors and narrow
// Of four groups of eight columns each of four lanes gets one.
__device__ inline void exchange(unsigned (&v)[4], int lane)
{
    CUTE_UNROLL
    for (int bit = 1; bit < 4; bit *= 2) {
        CUTE_UNROLL
        for (int i = 0; i < 4; ++i) {
            if (i & bit)
                continue;
            unsigned const x = __shfl_xor_sync(~0u, lane & bit ? v[i] : v[i | bit], bit);
            if (lane & bit)
                v[i] = x;
            else
                v[i | bit] = x;
        }
    }
}

//! end
