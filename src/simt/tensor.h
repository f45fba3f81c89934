/* tensor.h - matrix products rounded as the tensor cores round them. */
#ifndef SIMT_TENSOR_H
#define SIMT_TENSOR_H

#include "simt/mma.h"
#include "simt/simt.h"

/* Whose flops an instruction of this kind counts; flops: of one warp. */
enum simt_tensor_type mma_type(uint32_t kind, uint64_t *flops);
enum simt_tensor_type wgmma_type(uint32_t kind, uint64_t *flops);

/* One element: bits of k factors each and of the accumulator as f32; the result's bits
 * are of the type the shape gives. */
uint32_t tensor_exact(const struct mma_shape *s, const uint32_t *a, const uint32_t *b, uint32_t c);

/* A wgmma's: all k products and the accumulator at once. a and b hold the values of factors of
 * that type (b_step floats apart); half: the result is rounded to f16. */
uint32_t wgmma_exact(enum ptx_type ta, enum ptx_type tb, const float *a, const float *b,
                     size_t b_step, int k, uint32_t c, bool half);

#endif
