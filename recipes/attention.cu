// recipes/attention.cu - attention: softmax(scores) V, where scores come of Q K^T, in one pass over the keys.
//
// Lines that begin with //! direct the composer (docs/recipes.md); all else is the kernel's text.
// Rows without keys give zeros where PyTorch's operator does (`safe`), and NaN where a softmax does.
//
//! recipe attention: O = softmax(scores) V for each head, scores from Q K^T, accumulated in fp32
//! fact words: elements have 4 bytes
//! fact narrow: elements have 2 bytes, as the tensor cores take them
//! fact scaled: a score is a product times a positive number
//! fact linear: weights are the scores themselves, there is no softmax
//! fact paged: keys lie in pages that a table names (attention_decode)
//! fact causal: a query sees the keys up to its own place
//! fact safe: a row without keys gives zeros
//! fact vectors: rows of Q, K and V start on 16 bytes and are a multiple of them
//! fact short_heads: a tile of Q, K and V fits shared memory
//! fact planes: operands are split into fp16 parts (attention_split_sm90)
//! fact given: the parts are there before (attention_split_sm90)
//!
//! step tiles: share tiles of K and V through shared memory
//!   why: Each element of K and V fetched from global memory is used by all queries of a block.
//!   when: short_heads
//! step tensor: multiply on the tensor cores (mma.sync)
//!   why: A warp multiplies fragments of 16x8 at many times the rate of the FMA units; weights stay in its registers.
//!   when: narrow and short_heads
//!   needs: tiles
//! text
// $kernel: $ops as softmax(scores) V.
#include <cutegen/kernel.h>

constexpr int HEAD = $head;     // columns of Q and K
constexpr int HEAD_V = $head_v; // columns of V and O
//! if tensor
constexpr int WIDTH = (HEAD + 15) / 16 * 16, WIDTH_V = (HEAD_V + 15) / 16 * 16; // in shared memory: zeros behind the end
constexpr int PITCH = WIDTH + 8, PITCH_V = WIDTH_V + 8; // of a row: neighbours start in different banks
constexpr int TILE_N = WIDTH > 128 || WIDTH_V > 128 ? 32 : 64; // keys
constexpr int SMEM_BYTES = ((64 + TILE_N) * PITCH + TILE_N * PITCH_V) * 2;
//! elif tiles
constexpr int WARPS = 8;
constexpr int ROWS = 4;         // queries of a warp
constexpr int PITCH = (HEAD + 3) / 4 * 4 + 4; // of a row of K in shared memory: rows start in different banks
constexpr int SMEM_BYTES = (32 * PITCH + 32 * HEAD_V + WARPS * ROWS * HEAD) * 4;
//! else
constexpr int WARPS = 4;
//! end

#ifdef CUTEGEN_DEVICE
#include <cuda/std/limits>
#include <cute/tensor.hpp>

using namespace cute;

//! include attention_score
//! if tensor
//! include attention_mma
//! elif tiles
//! include attention_fma
//! else
//! include attention_rows
//! end
#endif

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
//! include attention_head
//! if tensor
//! if vectors
//! each vector_check
    CUTEGEN_REQUIRE(call, $condition, "$text");
//! end
//! end
    int64_t tiles = cutegen_ceil_div(queries, 64) * $heads;
    return CUTEGEN_LAUNCH(call, ${kernel}_tensor, cutegen_dim3(tiles, 1, 1), cutegen_dim3(128, 1, 1), SMEM_BYTES, $args);
//! elif tiles
    int64_t tiles = cutegen_ceil_div(queries, WARPS * ROWS) * $heads;
    return CUTEGEN_LAUNCH(call, ${kernel}_tiles, cutegen_dim3(tiles, 1, 1), cutegen_dim3(WARPS * 32, 1, 1), SMEM_BYTES,
                          $args);
//! else
    int64_t tiles = cutegen_ceil_div(queries, WARPS) * $heads;
    return CUTEGEN_LAUNCH(call, ${kernel}_rows, cutegen_dim3(tiles, 1, 1), cutegen_dim3(WARPS * 32, 1, 1), 0, $args);
//! end
}
#endif
