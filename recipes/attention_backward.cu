// recipes/attention_backward.cu - gradients of attention: of Q, K and V, given that of O.
//
// Lines that begin with //! direct the composer (docs/recipes.md); all else is the kernel's text.
//
// First come two numbers of every row: the logarithm of its sum of weights, and the sum of its weights times dO V^T, in
// which a weight of 1 leaves its product as it is: where one key has all the weight, gradients are exactly zero. Then dQ is summed up along the keys, dK and dV along the queries, each element by one warp in one
// order: repeated runs give the same bits.
//
//! recipe attention_backward: dQ, dK and dV of softmax(scores) V, scores from Q K^T, accumulated in fp32
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
//! fact summed: sums of two heads fit the registers
//!
//! step tensor: multiply on the tensor cores (mma.sync)
//!   why: A warp multiplies fragments of 16x8 at many times the rate of the FMA units; scores stay in its registers.
//!   when: narrow and summed
//! text
// $kernel: $ops as gradients of softmax(scores) V.
#include <cutegen/kernel.h>

constexpr int HEAD = $head;     // columns of Q and K
constexpr int HEAD_V = $head_v; // columns of V and O
//! include attention_backward_sizes

// Elements from one batch, head, row or column to the next.
struct Strides {
    long long l0, l1, l2, row, col;
};

#ifdef CUTEGEN_DEVICE
#include <cuda/std/limits>
#include <cute/tensor.hpp>

using namespace cute;

//! include attention_score
//! include attention_backward_lse
//! if tensor
//! include attention_backward_mma
//! else
//! include attention_backward_rows
//! end
#endif

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
//! include attention_backward_head
    int64_t padded = cutegen_ceil_div(queries, 64) * 64; // queries of a head in the tables below
    void *lse = cutegen_workspace(call, padded * $heads * 4), *delta = cutegen_workspace(call, padded * $heads * 4);
//! if tensor
//! if vectors
//! each vector_check
    CUTEGEN_REQUIRE(call, $condition, "$text");
//! end
//! end
//! end
//! include attention_backward_launches
}
#endif
