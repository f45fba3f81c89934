// recipes/attention_backward_sm90.cu - gradients of attention in fp16 or bf16 on Hopper's tensor cores.
//
// Lines that begin with //! direct the composer (docs/recipes.md); all else is the kernel's text.
//
// First come two numbers of every row (attention_backward.cu). With the step `wgmma` a block then
// has 128 keys and walks along the queries: it keeps dK and dV in registers and adds its part of dQ to sums in memory, in
// no fixed order. Without it dQ is computed by a pass of its own and repeated runs give the same bits.
//
//! recipe attention_backward_sm90: dQ, dK and dV of softmax(scores) V in fp16 or bf16, on sm_90a
//! fact words: elements have 4 bytes
//! fact narrow: elements have 2 bytes, as the tensor cores take them
//! fact scaled: a score is a product times a positive number
//! fact linear: weights are the scores themselves, there is no softmax
//! fact paged: keys lie in pages that a table names (attention_decode)
//! fact causal: a query sees the keys up to its own place
//! fact safe: a row without keys gives zeros
//! fact vectors: rows of Q, K, V and the gradient of O start on 16 bytes and are a multiple of them
//! fact short_heads: a tile of Q, K and V fits shared memory
//! fact planes: operands are split into fp16 parts (attention_split_sm90)
//! fact given: the parts are there before (attention_split_sm90)
//! fact o_vectors: rows of dQ, dK and dV are contiguous, start on 16 bytes and are a multiple of 64
//! fact turns: warpgroups take turns (attention_sm90)
//! fact counted: blocks take tiles from a counter
//! fact close: exponents are fused where scores are small (attention_sm90)
//!
//! step tensor: multiply on the tensor cores (mma.sync)
//!   why: A warp multiplies fragments of 16x8 at many times the rate of the FMA units; scores stay in its registers.
//! step wgmma: multiply by wgmma, tiles brought by TMA; all gradients in one pass, dQ summed up in memory
//!   why: Five products instead of seven, at twice the rate; dQ's sums come in any order, so its last bits vary.
//!   needs: tensor
//! text
// $kernel: $ops as gradients of softmax(scores) V.
#include <cutegen/kernel.h>

constexpr int HEAD = $head;     // columns of Q and K
constexpr int HEAD_V = $head_v; // columns of V and O
//! if wgmma
constexpr int GROUPS = 3; // warpgroups that compute the numbers of rows, 64 queries each
constexpr int TILE_M = 64 * GROUPS;
constexpr int TILE_N = 128; // keys
constexpr int WIDTH = $width, WIDTH_V = WIDTH; // in shared memory: zeros behind the end
constexpr int CHUNK = 64, CHUNK_V = 64; // columns that TMA brings together
constexpr int SLOT = TILE_N * WIDTH; // elements
constexpr int STAGES = $stages;
constexpr int QUEUE = 2; // tiles: of Q and of dO
constexpr int SIZE_Q = TILE_M * WIDTH; // elements of such a tile
constexpr int SMEM_BYTES = 1024 + (QUEUE * SIZE_Q + STAGES * SLOT) * 2 + 256;
static_assert(SMEM_BYTES <= 232448, "shared memory of a block");
constexpr int ROWS = WIDTH == 64 ? 128 : 64; // queries of a step along them
constexpr int STEPS = 2; // whose tiles are in shared memory
constexpr int TILE = ROWS * WIDTH; // elements of Q or dO in a step
constexpr int GRADIENT_BYTES = 1024 + (2 * SLOT + 2 * STEPS * TILE + 2 * ROWS * TILE_N) * 2 + 2 * STEPS * ROWS * 4 + 256;
static_assert(GRADIENT_BYTES <= 232448, "shared memory of a block");
//! else
//! include attention_backward_sizes
//! end

// Elements from one batch, head, row or column to the next.
struct Strides {
    long long l0, l1, l2, row, col;
};

#ifdef CUTEGEN_DEVICE
#include <cuda/std/limits>
#include <cute/tensor.hpp>
//! if wgmma
#include <cutlass/arch/reg_reconfig.h>
#include <cutlass/numeric_conversion.h>
//! end

using namespace cute;

//! include attention_score
//! include attention_backward_lse
//! if wgmma
//! include attention_tiles
//! include attention_backward_numbers
//! include attention_backward_wgmma
//! elif tensor
//! include attention_backward_mma
//! else
//! include attention_backward_rows
//! end
#endif

#ifdef CUTEGEN_HOST
//! if wgmma
//! include attention_map
//! end
CUTEGEN_PLAN(call)
{
//! include attention_backward_head
    int64_t padded = cutegen_ceil_div(queries, 128) * 128; // queries of a head in the tables below
    void *lse = cutegen_workspace(call, padded * $heads * 4), *delta = cutegen_workspace(call, padded * $heads * 4);
//! if tensor
//! each vector_check
    CUTEGEN_REQUIRE(call, $condition, "$text");
//! end
//! end
//! if wgmma
    struct cutegen_map map_q = rows_map(call, $map_type, $q_data, HEAD, queries, $q_row_stride, CHUNK, TILE_M, $q_modes);
    struct cutegen_map map_k = rows_map(call, $map_type, $k_data, HEAD, keys, $k_row_stride, CHUNK, TILE_N, $k_modes);
    struct cutegen_map map_v = rows_map(call, $map_type, $v_data, HEAD_V, keys, $v_row_stride, CHUNK, TILE_N, $v_modes);
    struct cutegen_map map_q_step = rows_map(call, $map_type, $q_data, HEAD, queries, $q_row_stride, CHUNK, ROWS, $q_modes);
    struct cutegen_map map_o = rows_map(call, $map_type, $do_data, HEAD_V, queries, $do_row_stride, CHUNK, TILE_M, $do_modes);
    struct cutegen_map map_do = rows_map(call, $map_type, $do_data, HEAD_V, queries, $do_row_stride, CHUNK, ROWS, $do_modes);
    int64_t heads = $heads, tiles = cutegen_ceil_div(queries, TILE_M) * heads, steps = cutegen_ceil_div(queries, ROWS);
    int64_t room = (32 << 20) / (keys * (HEAD + HEAD_V) * 2) * $sharing; // heads whose K and V stay in L2 together
    int64_t together = room < 1 ? 1 : cutegen_min(room, heads);
    void *sums = cutegen_workspace(call, heads * steps * TILE * 4);
//! if counted
    void *counter = cutegen_workspace(call, 4);
    CUTEGEN_TRY(cutegen_memset(call, counter, 0, 4));
//! end
    CUTEGEN_TRY(cutegen_memset(call, sums, 0, heads * steps * TILE * 4));
    CUTEGEN_TRY(CUTEGEN_LAUNCH(call, ${kernel}_numbers, cutegen_dim3(cutegen_min(call->device.sm_count, tiles), 1, 1),
                               cutegen_dim3(128 * (GROUPS + 1), 1, 1), SMEM_BYTES, map_q, map_k, map_v, map_o,
//! if counted
                               (unsigned *)counter,
//! end
                               (int)heads, (int)together, (float *)lse, (float *)delta, (int)padded, $args));
    int64_t tiles_k = cutegen_ceil_div(keys, TILE_N), heads_k = $key_heads;
//! if causal
    int64_t filling = cutegen_ceil_div(2 * call->device.sm_count, tiles_k); // heads whose blocks keep all processors busy twice
    int64_t groups = heads_k < 2 * filling ? 1 : heads_k / filling;
//! end
    CUTEGEN_TRY(CUTEGEN_LAUNCH(call, ${kernel}_backward, cutegen_dim3(tiles_k * heads_k, 1, 1), cutegen_dim3(384, 1, 1),
                               GRADIENT_BYTES, map_q_step, map_k, map_v, map_do, (float const *)lse,
                               (float const *)delta, (float *)sums, (int)padded,
//! if causal
                               (int)groups,
//! end
                               $args));
    return CUTEGEN_LAUNCH(call, ${kernel}_finish, cutegen_dim3(heads * steps, 1, 1), cutegen_dim3(256, 1, 1), 0,
                          (float const *)sums, $args);
//! else
//! include attention_backward_launches
//! end
}
#endif
