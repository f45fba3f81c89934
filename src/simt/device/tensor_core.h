/* SPDX-License-Identifier: Apache-2.0 */
/* tensor_core.h - matrix products with the rounding of tensor cores. */
#ifndef SIMT_TENSOR_CORE_H
#define SIMT_TENSOR_CORE_H

#include "simt/ptx/mma_shapes.h"
#include "simt/simt.h"

/* The type under which an instruction of this kind is counted; flops: per warp. */
enum simt_tensor_type mma_type(uint32_t kind, uint64_t *flops);
enum simt_tensor_type wgmma_type(uint32_t kind, uint64_t *flops);

/* Factors of eight bits and fewer, in one warp's registers: d, a, b, c and those of the scales. */
void mma_low(const struct mma_shape *s, uint32_t kind, void *const *regs);
/* The value of such a factor or of a scale (ue8m0, ue4m3), from its low bits. */
float low_value(enum ptx_type type, uint32_t bits);

/* One element: bits of k factors each and of the accumulator as f32; the result's bits
 * are of the type the shape gives. */
uint32_t tensor_exact(const struct mma_shape *s, const uint32_t *a, const uint32_t *b, uint32_t c);

/* A wgmma's: all k products and the accumulator at once; half: the result is rounded to f16. */
struct exact_factor {
    int32_t sig; /* signed; the value is sig * 2^(exp - frac) */
    int16_t exp;
    uint8_t frac, what; /* 0: finite */
};
struct exact_factor exact_factor(enum ptx_type type, float value); /* a value that type has */
uint32_t wgmma_exact(const struct exact_factor *a, const struct exact_factor *b, int k, uint32_t c,
                     bool f8, bool half);

#endif
