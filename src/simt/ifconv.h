/*
 * ifconv.h - short conditional code as predicated instructions.
 *
 * A branch over a few plain instructions becomes a guard on each of them, as
 * ptxas does it too: one block instead of three, no lanes that wait.
 */
#ifndef SIMT_IFCONV_H
#define SIMT_IFCONV_H

#include "simt/ptx.h"

void if_convert(struct ptx_kernel *k);

#endif
