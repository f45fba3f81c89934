/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peer_addresses.h - addresses of shared memory whose bit 24 is cleared.
 *
 * Hardware has a block's rank in its cluster above bit 24 of shared addresses, its own included, so
 * CUTLASS names the even block of a pair by `address & 0xFEFFFFFF`. Here an address in the own
 * block has no rank (hopper.h): such an `and` becomes an instruction of its own, OP_EVENBLOCK.
 */
#ifndef SIMT_PEER_ADDRESSES_H
#define SIMT_PEER_ADDRESSES_H

#include "simt/ptx/ptx.h"

/* Only where the result is an address, or what an address is computed from: of 32 bits, so of
 * shared memory. */
void peer_addresses(struct ptx_kernel *k, struct arena *a);

#endif
