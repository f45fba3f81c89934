/* SPDX-License-Identifier: Apache-2.0 */
/* wgmma_in_flight.h - checks before reads of a wgmma's result that may come too early. */
#ifndef SIMT_WGMMA_IN_FLIGHT_H
#define SIMT_WGMMA_IN_FLIGHT_H

#include "simt/ptx/ptx.h"

/* Puts OP_WGTOUCH where a register may still be under way. Before ir_build(). */
void wgmma_mark(struct ptx_kernel *k, struct arena *a);

#endif
