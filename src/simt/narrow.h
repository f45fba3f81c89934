/*
 * narrow.h - addresses of shared memory in 32 bits.
 *
 * nvcc computes them so, NVRTC in 64 bits; the machine has 32, and everything that is quick about
 * shared memory here (access.c, loads.c, strips.c, race_late.c) knows those.
 */
#ifndef SIMT_NARROW_H
#define SIMT_NARROW_H

#include "simt/ptx.h"

void narrow_shared(struct ptx_kernel *k);

#endif
