/* SPDX-License-Identifier: Apache-2.0 */
/* driver.c - the driver interface: devices, contexts, modules, libraries, functions. */
#include "simt/cuda/call.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/fs.h"

#include <stdio.h>
#include <string.h>

enum { DRIVER_VERSION = 13000, MAX_IMAGE = 1 << 30, CONTEXTS = 16 };

/* ---- start and devices ------------------------------------------------------- */

API int cuInit(unsigned flags)
{
    return flags ? CU_INVALID_VALUE : cuda_get() ? CU_OK : CU_NO_DEVICE;
}

API int cuDriverGetVersion(int *version)
{
    *version = DRIVER_VERSION;
    return CU_OK;
}

API int cuDeviceGetCount(int *count)
{
    *count = 1;
    return CU_OK;
}

API int cuDeviceGet(int *device, int ordinal)
{
    *device = 0;
    return ordinal == 0 ? CU_OK : CU_INVALID_DEVICE;
}

API int cuDeviceGetName(char *name, int len, int device)
{
    struct cuda *c = cuda_get();

    if (!c || device)
        return c ? CU_INVALID_DEVICE : CU_NO_DEVICE;
    snprintf(name, len > 0 ? (size_t)len : 0, "%s", c->gpu.name);
    return CU_OK;
}

API int cuDeviceGetUuid_v2(char uuid[16], int device)
{
    memcpy(uuid, "cutegen simt GPU", 16);
    return device ? CU_INVALID_DEVICE : CU_OK;
}

API int cuDeviceGetUuid(char uuid[16], int device)
{
    return cuDeviceGetUuid_v2(uuid, device);
}

API int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    struct cuda *c = cuda_get();

    if (!c || device)
        return c ? CU_INVALID_DEVICE : CU_NO_DEVICE;
    *bytes = c->gpu.memory_bytes;
    return CU_OK;
}

API int cuDeviceGetAttribute(int *out, int attribute, int device)
{
    struct cuda *c = cuda_get();

    if (!c || device)
        return c ? CU_INVALID_DEVICE : CU_NO_DEVICE;
    *out = gpu_attribute(&c->gpu, attribute);
    return CU_OK;
}

API int cuDeviceComputeCapability(int *major, int *minor, int device)
{
    int rc = cuDeviceGetAttribute(major, 75, device);

    return rc ? rc : cuDeviceGetAttribute(minor, 76, device);
}

API int cuDeviceGetPCIBusId(char *out, int len, int device)
{
    snprintf(out, len > 0 ? (size_t)len : 0, "0000:00:00.0");
    return device ? CU_INVALID_DEVICE : CU_OK;
}

API int cuDeviceGetByPCIBusId(int *device, const char *id)
{
    (void)id;
    *device = 0;
    return CU_OK;
}

API int cuDeviceCanAccessPeer(int *out, int device, int peer)
{
    (void)device;
    (void)peer;
    *out = 0;
    return CU_OK;
}

API int cuCtxEnablePeerAccess(void *context, unsigned flags)
{
    (void)context;
    (void)flags;
    return CU_PEER_UNSUPPORTED;
}

API int cuDeviceGetDefaultMemPool(void **pool, int device)
{
    *pool = (void *)&cuDeviceGetDefaultMemPool;
    return device ? CU_INVALID_DEVICE : CU_OK;
}

API int cuDeviceGetMemPool(void **pool, int device)
{
    return cuDeviceGetDefaultMemPool(pool, device);
}

API int cuDeviceSetMemPool(int device, void *pool)
{
    (void)pool;
    return device ? CU_INVALID_DEVICE : CU_OK;
}

/* ---- contexts: all are the one device ----------------------------------------- */

struct cu_context {
    unsigned flags;
};

static struct cu_context primary;
static _Thread_local struct cu_context *stack[CONTEXTS];
static _Thread_local int depth;

static struct cu_context *current(void)
{
    return depth ? stack[depth - 1] : NULL;
}

API int cuDevicePrimaryCtxRetain(void **out, int device)
{
    *out = &primary;
    return device ? CU_INVALID_DEVICE : cuda_get() ? CU_OK : CU_NO_DEVICE;
}

API int cuDevicePrimaryCtxRelease_v2(int device)
{
    return device ? CU_INVALID_DEVICE : CU_OK;
}

API int cuDevicePrimaryCtxReset_v2(int device)
{
    struct cuda *c = cuda_get();

    if (c)
        c->sticky = CU_OK;
    return device ? CU_INVALID_DEVICE : CU_OK;
}

API int cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags)
{
    primary.flags = flags;
    return device ? CU_INVALID_DEVICE : CU_OK;
}

API int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
    *flags = primary.flags;
    *active = 1;
    return device ? CU_INVALID_DEVICE : CU_OK;
}

API int cuCtxPushCurrent_v2(void *context)
{
    if (depth == CONTEXTS)
        return CU_INVALID_VALUE;
    stack[depth++] = context;
    return CU_OK;
}

API int cuCtxPopCurrent_v2(void **out)
{
    if (!depth)
        return CU_INVALID_CONTEXT;
    depth--;
    if (out)
        *out = stack[depth];
    return CU_OK;
}

API int cuCtxSetCurrent(void *context)
{
    if (depth)
        depth--;
    return context ? cuCtxPushCurrent_v2(context) : CU_OK;
}

API int cuCtxGetCurrent(void **out)
{
    *out = current();
    return CU_OK;
}

API int cuCtxCreate_v2(void **out, unsigned flags, int device)
{
    struct cu_context *x;

    if (device || !cuda_get())
        return device ? CU_INVALID_DEVICE : CU_NO_DEVICE;
    x = xmalloc(sizeof *x);
    x->flags = flags;
    *out = x;
    return cuCtxPushCurrent_v2(x);
}

API int cuCtxCreate_v4(void **out, const void *params, unsigned flags, int device)
{
    (void)params;
    return cuCtxCreate_v2(out, flags, device);
}

API int cuCtxDestroy_v2(void *context)
{
    if (current() == context)
        depth--;
    if (context != &primary)
        xfree(context);
    return CU_OK;
}

API int cuCtxGetDevice(int *device)
{
    *device = 0;
    return current() ? CU_OK : CU_INVALID_CONTEXT;
}

API int cuCtxGetId(void *context, uint64_t *id)
{
    *id = (uint64_t)(uintptr_t)(context ? context : current());
    return CU_OK;
}

API int cuCtxGetFlags(unsigned *flags)
{
    *flags = current() ? current()->flags : 0;
    return CU_OK;
}

API int cuCtxGetApiVersion(void *context, unsigned *version)
{
    (void)context;
    *version = 3020;
    return CU_OK;
}

API int cuCtxSynchronize(void)
{
    CALL(CU_OK);
}

API int cuCtxGetLimit(size_t *value, int limit)
{
    static const size_t limits[] = {1024, 1 << 20, 8 << 20};

    *value = limit >= 0 && limit < 3 ? limits[limit] : 0;
    return CU_OK;
}

API int cuCtxSetLimit(int limit, size_t value)
{
    (void)limit;
    (void)value;
    return CU_OK;
}

API int cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return CU_OK;
}

API int cuCtxSetCacheConfig(int config)
{
    (void)config;
    return CU_OK;
}

API int cuCtxGetCacheConfig(int *config)
{
    *config = 0;
    return CU_OK;
}

API int cuCtxResetPersistingL2Cache(void)
{
    return CU_OK;
}

API int cuProfilerStart(void)
{
    return CU_OK;
}

API int cuProfilerStop(void)
{
    return CU_OK;
}

/* ---- errors -------------------------------------------------------------------- */

API int cuGetErrorName(int error, const char **out)
{
    *out = cuda_error_name(error);
    return *out ? CU_OK : CU_INVALID_VALUE;
}

API int cuGetErrorString(int error, const char **out)
{
    *out = cuda_error_text(error);
    return *out ? CU_OK : CU_INVALID_VALUE;
}

/* ---- modules -------------------------------------------------------------------- */

API int cuModuleLoadData(void **out, const void *image)
{
    CALL(module_load(c, image, (struct cu_module **)out));
}

API int cuModuleLoadDataEx(void **out, const void *image, unsigned count, int *options,
                           void **values)
{
    (void)count;
    (void)options;
    (void)values;
    return cuModuleLoadData(out, image);
}

API int cuModuleLoadFatBinary(void **out, const void *image)
{
    return cuModuleLoadData(out, image);
}

/* The image of a file is not needed once its PTX is out. */
static int load_file(struct cuda *c, const char *path, struct cu_module **out)
{
    struct arena *a = arena_new();
    struct error err = {0};
    struct text data;
    int rc = CU_FILE_NOT_FOUND;

    if (file_read(path, MAX_IMAGE, a, &data, &err))
        rc = data.len < 4 ? CU_INVALID_IMAGE : module_load(c, data.data, out);
    arena_free(a);
    return rc;
}

API int cuModuleLoad(void **out, const char *path)
{
    CALL(load_file(c, path, (struct cu_module **)out));
}

API int cuModuleUnload(void *module)
{
    CALL((module_unload(module), CU_OK));
}

API int cuModuleGetFunction(void **out, void *module, const char *name)
{
    CALL(module_function(module, name, (struct cu_function **)out));
}

API int cuModuleGetFunctionCount(unsigned *count, void *module)
{
    *count = (unsigned)((struct cu_module *)module)->kernel_count;
    return CU_OK;
}

API int cuModuleGetGlobal_v2(uint64_t *at, size_t *bytes, void *module, const char *name)
{
    void *base = NULL;
    size_t n = 0;
    struct cuda *c = cuda_get();
    int rc;

    if (!c)
        return CU_NO_DEVICE;
    cuda_lock();
    rc = module_variable(c, module, name, &base, &n);
    cuda_unlock();
    if (at)
        *at = (uint64_t)(uintptr_t)base;
    if (bytes)
        *bytes = n;
    return rc;
}

API int cuModuleGetLoadingMode(int *mode)
{
    *mode = 2; /* lazy */
    return CU_OK;
}

/* ---- libraries: a module that belongs to no context -------------------------------- */

API int cuLibraryLoadData(void **out, const void *image, int *jit, void **jit_values,
                          unsigned jit_count, int *options, void **values, unsigned count)
{
    (void)jit;
    (void)jit_values;
    (void)jit_count;
    (void)options;
    (void)values;
    (void)count;
    return cuModuleLoadData(out, image);
}

API int cuLibraryLoadFromFile(void **out, const char *path, int *jit, void **jit_values,
                              unsigned jit_count, int *options, void **values, unsigned count)
{
    (void)jit;
    (void)jit_values;
    (void)jit_count;
    (void)options;
    (void)values;
    (void)count;
    return cuModuleLoad(out, path);
}

API int cuLibraryUnload(void *library)
{
    return cuModuleUnload(library);
}

API int cuLibraryGetKernel(void **out, void *library, const char *name)
{
    return cuModuleGetFunction(out, library, name);
}

API int cuLibraryGetModule(void **out, void *library)
{
    *out = library;
    return CU_OK;
}

API int cuLibraryGetGlobal(uint64_t *at, size_t *bytes, void *library, const char *name)
{
    return cuModuleGetGlobal_v2(at, bytes, library, name);
}

API int cuLibraryGetManaged(uint64_t *at, size_t *bytes, void *library, const char *name)
{
    return cuModuleGetGlobal_v2(at, bytes, library, name);
}

API int cuLibraryGetKernelCount(unsigned *count, void *library)
{
    return cuModuleGetFunctionCount(count, library);
}

static int enumerate(struct cu_module *m, void **out, unsigned count)
{
    int rc = CU_OK;

    for (size_t i = 0; i < m->kernel_count && i < count && !rc; i++)
        rc = module_function(m, m->kernels[i], (struct cu_function **)&out[i]);
    return rc;
}

API int cuLibraryEnumerateKernels(void **out, unsigned count, void *library)
{
    CALL(enumerate(library, out, count));
}

API int cuModuleEnumerateFunctions(void **out, unsigned count, void *module)
{
    CALL(enumerate(module, out, count));
}

API int cuKernelGetFunction(void **out, void *kernel)
{
    *out = kernel;
    return CU_OK;
}

API int cuKernelGetLibrary(void **out, void *kernel)
{
    *out = ((struct cu_function *)kernel)->module;
    return CU_OK;
}

API int cuKernelGetName(const char **out, void *kernel)
{
    *out = ((struct cu_function *)kernel)->name;
    return CU_OK;
}

API int cuKernelGetAttribute(int *out, int attribute, void *kernel, int device)
{
    (void)device;
    CALL(function_attribute(c, kernel, attribute, out));
}

API int cuKernelSetAttribute(int attribute, int value, void *kernel, int device)
{
    (void)device;
    CALL(function_set(kernel, attribute, value));
}

API int cuKernelSetCacheConfig(void *kernel, int config, int device)
{
    (void)kernel;
    (void)config;
    (void)device;
    return CU_OK;
}

/* ---- functions -------------------------------------------------------------------- */

API int cuFuncGetAttribute(int *out, int attribute, void *function)
{
    CALL(function_attribute(c, function, attribute, out));
}

API int cuFuncSetAttribute(void *function, int attribute, int value)
{
    CALL(function_set(function, attribute, value));
}

API int cuFuncSetCacheConfig(void *function, int config)
{
    (void)function;
    (void)config;
    return CU_OK;
}

API int cuFuncGetModule(void **out, void *function)
{
    return cuKernelGetLibrary(out, function);
}

API int cuFuncGetName(const char **out, void *function)
{
    return cuKernelGetName(out, function);
}

API int cuFuncIsLoaded(int *state, void *function)
{
    (void)function;
    *state = 1;
    return CU_OK;
}

API int cuFuncLoad(void *function)
{
    CALL(function_ready(c, function));
}

static int param_info(struct cuda *c, struct cu_function *f, size_t index, size_t *offset,
                      size_t *bytes)
{
    int rc = function_ready(c, f);

    if (rc || index >= f->info.param_count)
        return rc ? rc : CU_INVALID_VALUE;
    *offset = f->info.params[index].offset;
    if (bytes)
        *bytes = f->info.params[index].bytes;
    return CU_OK;
}

API int cuFuncGetParamInfo(void *function, size_t index, size_t *offset, size_t *bytes)
{
    CALL(param_info(c, function, index, offset, bytes));
}

API int cuKernelGetParamInfo(void *kernel, size_t index, size_t *offset, size_t *bytes)
{
    CALL(param_info(c, kernel, index, offset, bytes));
}

API int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *out, void *function, int threads,
                                                    size_t dynamic)
{
    CALL(function_occupancy(c, function, threads, dynamic, out));
}

API int cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *out, void *function, int threads,
                                                             size_t dynamic, unsigned flags)
{
    (void)flags;
    return cuOccupancyMaxActiveBlocksPerMultiprocessor(out, function, threads, dynamic);
}

static int potential(struct cuda *c, int *grid, int *block, struct cu_function *f,
                     size_t (*of_block)(int), size_t dynamic, int limit)
{
    int best = 0, blocks, rc = CU_OK;

    *block = 32;
    for (int t = limit > 0 && limit < 1024 ? limit / 32 * 32 : 1024; t >= 32 && !rc; t -= 32) {
        rc = function_occupancy(c, f, t, of_block ? of_block(t) : dynamic, &blocks);
        if (!rc && blocks * t > best) {
            best = blocks * t;
            *block = t;
            *grid = blocks * c->gpu.sms;
        }
    }
    return rc;
}

API int cuOccupancyMaxPotentialBlockSize(int *grid, int *block, void *function,
                                         size_t (*of_block)(int), size_t dynamic, int limit)
{
    CALL(potential(c, grid, block, function, of_block, dynamic, limit));
}

API int cuOccupancyAvailableDynamicSMemPerBlock(size_t *out, void *function, int blocks,
                                                int threads)
{
    struct cuda *c = cuda_get();

    (void)function;
    (void)threads;
    if (!c || blocks <= 0)
        return c ? CU_INVALID_VALUE : CU_NO_DEVICE;
    *out = (size_t)(c->gpu.smem_sm_bytes / blocks - 1024);
    return CU_OK;
}
