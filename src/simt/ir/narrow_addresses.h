/* SPDX-License-Identifier: Apache-2.0 */
/*
 * narrow_addresses.h - addresses of shared memory in 32 bits.
 *
 * nvcc computes them so, NVRTC in 64 bits. Hardware has 32, and all fast paths for shared memory
 * here (load_store.c, batched_access.c, affine_groups.c, shared_race_deferred.c) expect 32.
 */
#ifndef SIMT_NARROW_ADDRESSES_H
#define SIMT_NARROW_ADDRESSES_H

#include "simt/ptx/ptx.h"

void narrow_shared(struct ptx_kernel *k);

#endif
