/* SPDX-License-Identifier: Apache-2.0 */
/*
 * narrow_addresses.h - addresses of shared memory in 32 bits.
 *
 * nvcc computes them so, NVRTC in 64 bits; the machine has 32, and everything that is quick about
 * shared memory here (load_store.c, batched_access.c, affine_groups.c, shared_race_deferred.c)
 * knows those.
 */
#ifndef SIMT_NARROW_ADDRESSES_H
#define SIMT_NARROW_ADDRESSES_H

#include "simt/ptx/ptx.h"

void narrow_shared(struct ptx_kernel *k);

#endif
