// recipes/attention_decode.cu - attention of few queries with many keys, at the speed of memory.
//
// Lines that begin with //! direct the composer (docs/recipes.md); all else is the kernel's text.
//
// Queries of the heads that share K and V are rows of one tile. The keys are divided among blocks and, within a block,
// among warps; each warp has a ring of its own in shared memory and waits for no other until its keys are done. What
// warps and blocks found is brought together through the maxima and sums of their rows, always in the same order.
//
//! recipe attention_decode: O = softmax(scores) V for few queries and many keys, the keys divided among blocks
//! fact words: elements have 4 bytes
//! fact narrow: elements have 2 bytes, as the tensor cores take them
//! fact scaled: a score is a product times a positive number
//! fact linear: weights are the scores themselves, there is no softmax
//! fact causal: a query sees the keys up to its own place
//! fact safe: a row without keys gives zeros
//! fact paged: keys lie in pages that a table names
//! fact vectors: rows of Q, K and V start on 16 bytes and are a multiple of them
//! fact short_heads: a tile of Q, K and V fits shared memory
//! fact planes: operands are split into fp16 parts (attention_split_sm90)
//! fact given: the parts are there before (attention_split_sm90)
//! fact dependent: a launch can begin while the one before it ends
//! fact tma: one thread of a warp brings its tiles by TMA
//!
//! step split: divide the keys among blocks and warps, each with a ring of tiles in flight
//!   why: One query gives too little work to read the cache at the speed of memory; its keys, divided, do.
//! step early: launch what brings the parts together while the parts are computed
//!   why: Its blocks start as soon as there is room, and only wait for the last part.
//!   when: dependent
//!   needs: split
//! text
// $kernel: $ops as softmax(scores) V.
#include <cutegen/kernel.h>

constexpr int HEAD = $head;     // columns of Q and K
constexpr int HEAD_V = $head_v; // columns of V and O
//! if split
constexpr int ROWS = $rows; // queries of a tile, of all heads that share K and V
//! if narrow
constexpr int TALL = 16; // rows of Q in shared memory: mma.sync takes no less
constexpr int TILE_N = 16; // keys that a warp takes at a time
//! if tma
constexpr int WIDTH = (HEAD + 31) / 32 * 32, WIDTH_V = (HEAD_V + 31) / 32 * 32; // in shared memory: zeros behind the end
constexpr int CHUNK = WIDTH % 64 == 0 ? 64 : 32, CHUNK_V = WIDTH_V % 64 == 0 ? 64 : 32; // columns that TMA brings together
//! else
constexpr int WIDTH = (HEAD + 15) / 16 * 16, WIDTH_V = (HEAD_V + 15) / 16 * 16; // in shared memory: zeros behind the end
//! end
constexpr int VECTOR = 8; // elements of 16 bytes
//! else
constexpr int TALL = ROWS;
constexpr int TILE_N = 8; // keys that a warp takes at a time
constexpr int WIDTH = HEAD, WIDTH_V = HEAD_V;
constexpr int VECTOR = 4; // elements of 16 bytes
//! end
constexpr int PITCH = WIDTH + VECTOR; // of a row: neighbours start in different banks
//! if tma
constexpr int SLOT = TILE_N * (WIDTH + WIDTH_V); // elements
constexpr int EXTRA_BYTES = 1024 + 256; // tiles start on 1024 bytes; barriers
//! else
constexpr int PITCH_V = WIDTH_V + VECTOR;
constexpr int SLOT = TILE_N * (PITCH + PITCH_V); // elements
constexpr int EXTRA_BYTES = 0;
//! end
constexpr int FIT = $fit - TALL * PITCH * (16 / VECTOR) - EXTRA_BYTES; // bytes for the rings
constexpr int PAIRS = FIT / (2 * SLOT * (16 / VECTOR)); // of tiles
constexpr int WARPS = PAIRS >= 8 ? 8 : PAIRS >= 4 ? 4 : 2; // of one block to a processor: the fewest parts to bring together
constexpr int RING_BYTES = WARPS * SLOT * (16 / VECTOR);
constexpr int STAGES = FIT / RING_BYTES < 2 ? 2 : FIT / RING_BYTES > 4 ? 4 : FIT / RING_BYTES;
constexpr int SUMS_BYTES = WARPS * ROWS * (HEAD_V + 2) * 4; // what warps found takes the ring's place
constexpr int SMEM_BYTES = EXTRA_BYTES + TALL * PITCH * (16 / VECTOR) + (STAGES * RING_BYTES > SUMS_BYTES ? STAGES * RING_BYTES : SUMS_BYTES);
static_assert(SMEM_BYTES <= 232448, "shared memory of a block");
constexpr int PARTS = 256; // at most; as many threads bring them together
//! else
constexpr int WARPS = 4;
//! end
//! if paged
constexpr int PAGE = $page; // keys of a page
//! end

#ifdef CUTEGEN_DEVICE
#include <cuda/std/limits>
#include <cute/tensor.hpp>

using namespace cute;

//! include attention_score
//! if split
//! include attention_warp
//! if tma
//! include attention_layouts
//! end
//! include attention_keys
//! else
//! include attention_rows
//! end
#endif

#ifdef CUTEGEN_HOST
//! if split and tma
//! include attention_map
//! end
CUTEGEN_PLAN(call)
{
//! include attention_head
//! if split
//! each vector_check
    CUTEGEN_REQUIRE(call, $condition, "$text");
//! end
    int64_t heads = $heads / $shared, tiles = cutegen_ceil_div(queries * $shared, ROWS) * heads;
    int64_t slots = call->device.sm_count * (233472 / (SMEM_BYTES + 1024)); // blocks at the same time
    int64_t most = cutegen_ceil_div(keys, WARPS * TILE_N * 2), splits = 1;
    // The fewest parts that keep nearly all processors busy to the end, in thousandths of them.
    for (int64_t s = 1, best = 0; s <= cutegen_min(most, PARTS); s++) {
        int64_t busy = 1000 * tiles * s / (cutegen_ceil_div(tiles * s, slots) * slots);
        if (busy > best + 40)
            best = busy, splits = s;
    }
    int64_t span = cutegen_ceil_div(cutegen_ceil_div(keys, splits), TILE_N) * TILE_N;
    splits = cutegen_ceil_div(keys, span);
    int64_t rows = heads * queries * $shared;
    void *sums = cutegen_workspace(call, splits > 1 ? splits * rows * HEAD_V * 4 : 16);
    void *tops = cutegen_workspace(call, splits > 1 ? splits * rows * 8 : 16);
//! if tma
    struct cutegen_map map_k = rows_map(call, $map_type, $k_data, HEAD, keys, $k_row_stride, CHUNK, TILE_N, $k_modes);
    struct cutegen_map map_v = rows_map(call, $map_type, $v_data, HEAD_V, keys, $v_row_stride, CHUNK_V, TILE_N, $v_modes);
//! end
    CUTEGEN_TRY(CUTEGEN_LAUNCH(call, ${kernel}_decode, cutegen_dim3(tiles * splits, 1, 1), cutegen_dim3(WARPS * 32, 1, 1),
                               SMEM_BYTES,
//! if tma
                               map_k, map_v,
//! end
                               (float *)sums, (float2 *)tops, (int)splits, (int)span, $args));
    if (splits == 1)
        return 0;
//! if early
    return CUTEGEN_LAUNCH_EX(call, ${kernel}_merge, cutegen_dim3(rows, 1, 1), cutegen_dim3(PARTS, 1, 1),
                             cutegen_dim3(1, 1, 1), 0, CUTEGEN_OVERLAP, (float const *)sums, (float2 const *)tops,
                             (int)splits, $args);
//! else
    return CUTEGEN_LAUNCH(call, ${kernel}_merge, cutegen_dim3(rows, 1, 1), cutegen_dim3(PARTS, 1, 1), 0,
                          (float const *)sums, (float2 const *)tops, (int)splits, $args);
//! end
//! else
    int64_t tiles = cutegen_ceil_div(queries, WARPS) * $heads;
    return CUTEGEN_LAUNCH(call, ${kernel}_rows, cutegen_dim3(tiles, 1, 1), cutegen_dim3(WARPS * 32, 1, 1), 0, $args);
//! end
}
#endif
