/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pch_memory.h - the heap NVRTC parses in.
 *
 * In a program that links pch_memory.c and exports its symbols, this heap has large pages.
 */
#ifndef TOOLCHAIN_PCH_MEMORY_H
#define TOOLCHAIN_PCH_MEMORY_H

#include <stddef.h>

#define PCH_HEAP_BYTES ((size_t)1 << 30)

#endif
