/* SPDX-License-Identifier: Apache-2.0 */
/* runtime.h - what the files of the runtime interface share. */
#ifndef SIMT_CUDA_RUNTIME_H
#define SIMT_CUDA_RUNTIME_H

#include "simt/cuda/cuda.h"

enum {
    RUNTIME_VERSION = 13000,
    RT_INVALID_CONFIGURATION = 9,
    RT_INVALID_SYMBOL = 13,
    RT_INVALID_FUNCTION = 98,
};

struct rt_dim3 {
    unsigned x, y, z;
};

/* Remembers an error for cudaGetLastError() of this thread; returns it. */
int runtime_result(int rc);

/* The body of an entry point: `expr` may use `c`. */
#define RUNTIME(expr)                                                                              \
    do {                                                                                           \
        struct cuda *c = cuda_get();                                                               \
        int rc_;                                                                                   \
        if (!c)                                                                                    \
            return runtime_result(CU_NO_DEVICE);                                                   \
        cuda_lock();                                                                               \
        (void)c;                                                                                   \
        rc_ = c->sticky ? c->sticky : (expr);                                                      \
        cuda_unlock();                                                                             \
        return runtime_result(rc_);                                                                \
    } while (0)

/* The forms for programs built with a default stream per thread. */
#define PER_THREAD(name, suffix)                                                                   \
    extern __typeof(name) name##suffix __attribute__((alias(#name), visibility("default")));

/* A kernel by its host function or its handle. */
int runtime_function(struct cuda *c, const void *symbol, struct cu_function **out);
int cudaFuncSetAttribute(const void *symbol, int attribute, int value);
/* A device variable by its host shadow. */
int runtime_variable(struct cuda *c, const void *symbol, void **base, size_t *bytes);

#endif
