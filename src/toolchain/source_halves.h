/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_halves.h - which lines of a candidate its device half and its plan half see.
 *
 * Follows #ifdef CUTEGEN_DEVICE / CUTEGEN_HOST / CUTEGEN_EXPORT and their
 * #ifndef, #if defined() forms, #else and #endif; other conditions are left
 * to the compilers.
 */
#ifndef TOOLCHAIN_SOURCE_HALVES_H
#define TOOLCHAIN_SOURCE_HALVES_H

#include "toolchain/lex.h"

enum half { HALF_DEVICE = 1, HALF_HOST = 2 };

struct halves {
    unsigned char
        *seen; /* per line, from 1: the halves that include it; 0 for the #ifdef lines themselves */
    int lines;
};

struct halves halves_of(struct text source, struct tokens t, struct arena *a);

/*
 * One half of the source, with other lines blank so that line numbers are kept. NVRTC needs this,
 * because it precompiles only headers outside every #if.
 */
struct text halves_view(struct text source, enum half half, struct arena *a);

#endif
