/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ptx_cute.h - does compiled code access global memory through CuTe?
 *
 * Decided from line information in the PTX, not from the source text. An access goes through CuTe
 * if it, or an instruction that computes its address, comes from a header of CuTe or CUTLASS. Only
 * the innermost place counts: a plain access inside a lambda that CuTe calls is a plain access.
 */
#ifndef TOOLCHAIN_PTX_CUTE_H
#define TOOLCHAIN_PTX_CUTE_H

#include "base/mem.h"

struct cute_use {
    int accesses, through;      /* global memory accesses in all functions; those through CuTe */
    int stores, stores_through; /* of these, the ones that write */
};

/* `includes`: absolute folders, NULL-terminated; headers are identified by their full path below
 * one of them, which no #line of a candidate names: gate_cute.c refuses those. `mark`: of
 * marked_header.h, where the code was built with it; else NULL. */
struct cute_use ptx_cute_use(struct text ptx, const char *const *includes, const char *mark,
                             struct arena *a);

/* True for a store through CuTe, or half of all accesses: addresses that the compiler increments
 * itself lose their line, so all accesses cannot be required. */
bool ptx_cute_enough(const struct cute_use *use);

#endif
