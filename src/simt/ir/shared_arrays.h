/* SPDX-License-Identifier: Apache-2.0 */
/* shared_arrays.h - which array of shared memory an address points into. */
#ifndef SIMT_SHARED_ARRAYS_H
#define SIMT_SHARED_ARRAYS_H

#include "simt/ptx/ptx.h"

/* Per register: the array it is an address in, or NULL: unknown, or not one. In the arena. */
const struct ptx_var **shared_arrays(const struct ptx_kernel *k, struct arena *a);
/* The array that an address operand is in; of_reg as above. */
const struct ptx_var *shared_array_of(const struct opnd *o, const struct ptx_var *const *of_reg);

#endif
