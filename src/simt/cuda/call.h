/* SPDX-License-Identifier: Apache-2.0 */
/* call.h - the common body of entry points: the device, the lock, sticky errors. */
#ifndef SIMT_CUDA_CALL_H
#define SIMT_CUDA_CALL_H

#include "simt/cuda/cuda.h"

/* The body of an entry point: `expr` may use `c`. */
#define CALL(expr)                                                                                 \
    do {                                                                                           \
        struct cuda *c = cuda_get();                                                               \
        int rc_;                                                                                   \
        if (!c)                                                                                    \
            return CU_NO_DEVICE;                                                                   \
        cuda_lock();                                                                               \
        (void)c;                                                                                   \
        rc_ = c->sticky ? c->sticky : (expr);                                                      \
        cuda_unlock();                                                                             \
        return rc_;                                                                                \
    } while (0)

#endif
