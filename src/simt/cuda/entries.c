/* SPDX-License-Identifier: Apache-2.0 */
/*
 * entries.c - entry points by name, and an error for missing ones.
 *
 * The names are this library's own exported symbols. The driver's private tables for its runtime
 * are not provided: NVIDIA's runtime verifies that the driver is NVIDIA's, and this one is not.
 * Programs linked with that runtime get this library's instead (hook.c).
 */
#include "simt/cuda/cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static void *own_handle(void)
{
    static void *handle;
    Dl_info info;

    if (!handle && dladdr((void *)&own_handle, &info))
        handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    return handle;
}

/* The CUDA version from which a plain name means the form with this suffix. */
static const struct {
    const char *name;
    int version;
} later[] = {
    {"cuCtxCreate_v4", 12050},          {"cuStreamGetCaptureInfo_v3", 12030},
    {"cuGraphExecUpdate_v2", 12000},    {"cuGraphAddDependencies_v2", 12030},
    {"cuEventElapsedTime_v2", 12080},   {"cuGraphNodeGetDependencies_v2", 12030},
    {"cuMemAdvise_v2", 12020},          {"cuMemPrefetchAsync_v2", 12020},
    {"cuGraphAddKernelNode_v2", 12000}, {"cuGraphExecKernelNodeSetParams_v2", 12000},
};

static bool too_new(const char *name, int version)
{
    for (size_t i = 0; i < ARRAY_LEN(later); i++)
        if (strcmp(later[i].name, name) == 0)
            return version < later[i].version;
    return false;
}

void *entry_find(const char *name, int version)
{
    char full[128];
    void *h = own_handle(), *at;

    if (strcmp(name, "cuGraphInstantiate") == 0)
        name = "cuGraphInstantiateWithFlags";
    for (int v = 4; h && v >= 2; v--) {
        snprintf(full, sizeof full, "%s_v%d", name, v);
        if (!too_new(full, version) && (at = dlsym(h, full)))
            return at;
    }
    return h ? dlsym(h, name) : NULL;
}

API int cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags, int *status)
{
    (void)flags;
    *out = entry_find(name, version);
    if (status)
        *status = *out ? 0 : 1;
    return *out ? CU_OK : CU_NOT_FOUND;
}

API int cuGetProcAddress(const char *name, void **out, int version, uint64_t flags)
{
    return cuGetProcAddress_v2(name, out, version, flags, NULL);
}

API int cuGetExportTable(const void **out, const void *id)
{
    (void)id;
    *out = NULL;
    cuda_say("a copy of NVIDIA's runtime is linked into the program or one of its libraries and "
             "cannot be replaced; link it with nvcc -cudart shared, or keep its symbols");
    return CU_NOT_FOUND;
}

/* All other calls of the driver and the runtime, which are not supported. */
#define UNSUPPORTED(name)                                                                          \
    API int name(void);                                                                            \
    API int name(void)                                                                             \
    {                                                                                              \
        return cuda_unsupported(#name);                                                            \
    }
#include "simt/cuda/unsupported.def"
