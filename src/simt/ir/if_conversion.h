/* SPDX-License-Identifier: Apache-2.0 */
/*
 * if_conversion.h - short conditional code as predicated instructions.
 *
 * A branch over a few plain instructions becomes a guard on each of them, as ptxas does, too: one
 * block instead of three, and no waiting lanes.
 */
#ifndef SIMT_IF_CONVERSION_H
#define SIMT_IF_CONVERSION_H

#include "simt/ptx/ptx.h"

void if_convert(struct ptx_kernel *k);

#endif
