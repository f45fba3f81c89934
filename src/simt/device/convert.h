/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convert.h - exact conversions between the number types of PTX.
 *
 * convert_code() packs the types and modifiers of a cvt into a number;
 * convert_bits() does one conversion on raw bits, with the same result on every host.
 */
#ifndef SIMT_CONVERT_H
#define SIMT_CONVERT_H

#include "simt/ptx/ptx.h"

uint32_t convert_code(const struct insn *in); /* 0: no such conversion */
uint64_t convert_bits(uint32_t code, uint64_t bits);

#endif
