/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tools.h - find and describe the programs and headers that building needs.
 *
 *     struct tools t;
 *     tools_look(&config, a, &t);                   never fails: NULL is "not there"
 *     if (!tools_find(&config, a, &t, err)) ...     a required one is missing: text and hint
 *
 * Looked for in this order: the configuration, the environment ($CC,
 * $CUDA_HOME, $CUTLASS_PATH), the toolkit in /usr/local/cuda or of the nvcc on
 * PATH, the tools venv that `make demo` makes, the given Python's packages
 * (wheels, or those beside torch), the system's folders, the bundled ones. NVRTC and the CUDA
 * headers come from the same place if one has both.
 */
#ifndef TOOLCHAIN_TOOLS_H
#define TOOLCHAIN_TOOLS_H

#include "base/error.h"
#include "base/mem.h"

struct tools_config {
    const char *cc, *cuda, *cutlass, *python; /* all may be NULL */
};

struct tools {
    const char *cc;                             /* path of a C compiler, for simt */
    const char *cc_version;                     /* "gcc 12.2.0" */
    const char *cc_failure;                     /* why one that is there was not taken */
    const char *nvrtc;                          /* path of libnvrtc.so.* */
    const char *nvrtc_version;                  /* "13.0" */
    const char *nvrtc_from;                     /* "toolkit", "wheel", "system" */
    const char *cuda_include;                   /* folder of cuda_fp16.h */
    const char *cccl_include;                   /* folder of cuda/std/; may be the same */
    const char *cutlass_include;                /* folder of cute/tensor.hpp */
    const char *cutlass_version;                /* "4.2.0" */
    const char *kernel_include;                 /* folder of cutegen/kernel.h */
    const char *includes[8];                    /* all of them in order, NULL-terminated */
    const char *nvcc, *ptxas, *ncu, *sanitizer; /* NULL: not there */
};

void tools_look(const struct tools_config *config, struct arena *a, struct tools *out);
bool tools_find(const struct tools_config *config, struct arena *a, struct tools *out,
                struct error *err);
/* simt needs a C compiler, because kernels run as C there; a GPU does not. */
bool tools_for_simt(const struct tools_config *config, const struct tools *t, struct error *err);

#endif
