/* tensor.h - matrix products rounded as the tensor cores round them. */
#ifndef SIMT_TENSOR_H
#define SIMT_TENSOR_H

#include "simt/mma.h"

/* One element: bits of k factors each and of the accumulator as f32; the result's bits
 * are of the type the shape gives. */
uint32_t tensor_exact(const struct mma_shape *s, const uint32_t *a, const uint32_t *b, uint32_t c);

#endif
