/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ptx.h - read information from PTX text, and remove unused variables.
 */
#ifndef TOOLCHAIN_PTX_H
#define TOOLCHAIN_PTX_H

#include "base/mem.h"

#include <jansson.h>

/*
 * Removes module variables that no kernel uses: NVRTC in default-device mode emits every constant
 * of every header.
 */
struct text ptx_strip(struct text ptx, struct arena *a);

/*
 * The line of `file` that line `number` of the PTX came from (through
 * -lineinfo's inlining, the innermost place in that file); 0: unknown.
 */
int ptx_source_line(struct text ptx, int number, const char *file);

/* Line `number` of the PTX, trimmed; borrowed. */
struct text ptx_line(struct text ptx, int number);

/*
 * ptxas -v's figures in a compiler log, by lowered kernel name: {"_Z5swish...": {"registers": 15,
 * "smem": 0, "stack": 0, "spill_stores": 0, "spill_loads": 0, "barriers": 0, "cmem": 376}}. A new
 * reference; empty if there are none.
 */
json_t *ptx_resources(struct text log);

#endif
