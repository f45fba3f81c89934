/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvcc.h - a candidate as a shared object of its own, for export.
 *
 * Minutes rather than seconds: only what has won is built this way. A source
 * that nvcc rejects is a verdict; a missing nvcc is a struct error.
 */
#ifndef TOOLCHAIN_NVCC_H
#define TOOLCHAIN_NVCC_H

#include "base/error.h"
#include "model.h"
#include "toolchain/tools.h"

struct nvcc_request {
    const char *source_path; /* the .cu file */
    const char *arch;        /* "sm_90a" */
    const char *out_path;    /* the .so */
    int deadline_ms;
};

bool nvcc_shared(const struct tools *tools, const struct nvcc_request *req, struct arena *a,
                 struct verdict *verdict, struct error *err);

#endif
