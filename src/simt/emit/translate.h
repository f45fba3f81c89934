/* SPDX-License-Identifier: Apache-2.0 */
/*
 * translate.h - PTX to C to a shared object the device can load.
 *
 *     struct translate_options opt = {0};                    every member has a default
 *     if (!simt_compile(ptx, names, n, &opt, a, &built, err)) ...
 *     built.so_path                                     load it with simt_load()
 *
 * Runs in a trusted process: it starts the host's C compiler and writes to the
 * cache. A kernel that cannot be translated is an ERROR_JUDGED error that names
 * the instruction, the user's line and the kernel; a missing or failing
 * compiler is ERROR_MACHINE.
 *
 * The cache is content-addressed: translator version, compiler and its flags,
 * and the C text made from the PTX. Files are created by rename, so always complete; two processes
 * may work on the same entry. cutegen itself uses so_path: its own cache is on the trusted side
 * (toolchain/simtc.c).
 */
#ifndef SIMT_TRANSLATE_H
#define SIMT_TRANSLATE_H

#include "base/error.h"
#include "base/mem.h"

/* Where a translation failed, for programs; the struct error has it for people. */
struct simt_refusal {
    const char *kernel, *instruction, *file;
    int line, ptx_line;
};

struct translate_options {
    const char *cc;               /* NULL: $CUTEGEN_CC, else gcc, cc or clang on $PATH */
    const char *cache_dir;        /* NULL: the product's cache */
    const char *so_path;          /* write it here and do not use the cache; NULL: use the cache */
    int lanes;                    /* per vector: 4, 8, 16; 0: what this host has */
    bool no_cache;                /* compile even when the cache has it */
    int deadline_ms;              /* of the compiler; 0: ten minutes */
    const unsigned *forms;        /* per kernel, enum sw_forms that are wanted; NULL or 0: all */
    struct simt_refusal *refusal; /* filled when an instruction is refused; may be NULL */
};

struct simt_built {
    char *so_path;
    bool cached;
    int ms;
    int instructions;
};

bool simt_translate(struct text ptx, const char *const *kernels, size_t n,
                    const struct translate_options *opt, struct arena *a, struct text *c_source,
                    int *instructions, struct error *err);
bool simt_compile(struct text ptx, const char *const *kernels, size_t n,
                  const struct translate_options *opt, struct arena *a, struct simt_built *out,
                  struct error *err);
/* Names of all kernels of a module, in the arena. */
bool simt_kernel_names(struct text ptx, struct arena *a, const char ***names, size_t *n,
                       struct error *err);

#endif
