/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime.c - the runtime interface: what nvcc's generated code registers, launches, the device.
 *
 * Constructors of the program register fat binaries, kernels and variables before main(); nothing
 * is loaded until one of them is used.
 */
#include "simt/cuda/runtime.h"
#include "simt/cuda/copy.h"

#include <stdio.h>
#include <string.h>

static _Thread_local int last_error;

int runtime_result(int rc)
{
    if (rc)
        last_error = rc;
    return rc;
}

/* ---- registered code ------------------------------------------------------------ */

struct rt_binary {
    const void *wrapper;
    struct cu_module *module;
    bool tried, gone;
    int rc;
};

struct rt_symbol {
    struct rt_binary *binary;
    const void *host;
    const char *name;
    void **managed; /* the program's pointer to a managed variable */
    struct cu_function *function;
};

static struct rt_symbol *kernels, *variables;
static size_t kernel_count, kernel_cap, variable_count, variable_cap;

static void add_symbol(struct rt_symbol **list, size_t *count, size_t *cap,
                       const struct rt_symbol *s)
{
    cuda_lock();
    if (*count == *cap) {
        *cap = *cap ? *cap * 2 : 32;
        *list = xrealloc(*list, *cap * sizeof **list);
    }
    (*list)[(*count)++] = *s;
    cuda_unlock();
}

static int binary_ready(struct cuda *c, struct rt_binary *b)
{
    if (!b->tried) {
        b->tried = true;
        b->rc = module_load(c, b->wrapper, &b->module);
    }
    return b->rc;
}

API void **__cudaRegisterFatBinary(void *wrapper)
{
    struct rt_binary *b = xmalloc(sizeof *b);

    b->wrapper = wrapper;
    return (void **)b;
}

API void __cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle;
}

API void __cudaUnregisterFatBinary(void **handle)
{
    struct rt_binary *b = (struct rt_binary *)handle;

    if (b)
        b->gone = true;
}

API void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                                int thread_limit, void *tid, void *bid, void *block, void *grid,
                                int *warp)
{
    struct rt_symbol s = {.binary = (struct rt_binary *)handle, .host = host, .name = name};

    (void)device;
    (void)thread_limit;
    (void)tid;
    (void)bid;
    (void)block;
    (void)grid;
    (void)warp;
    add_symbol(&kernels, &kernel_count, &kernel_cap, &s);
}

API void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external,
                           size_t bytes, int constant, int global)
{
    struct rt_symbol s = {.binary = (struct rt_binary *)handle, .host = host, .name = name};

    (void)device;
    (void)external;
    (void)bytes;
    (void)constant;
    (void)global;
    add_symbol(&variables, &variable_count, &variable_cap, &s);
}

API void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name,
                                  int external, size_t bytes, int constant, int global)
{
    struct rt_symbol s = {
        .binary = (struct rt_binary *)handle, .host = host, .name = name, .managed = host};

    (void)device;
    (void)external;
    (void)bytes;
    (void)constant;
    (void)global;
    add_symbol(&variables, &variable_count, &variable_cap, &s);
}

/* The program is about to use a managed variable: its pointer is filled in. */
API char __cudaInitModule(void **handle)
{
    struct cuda *c = cuda_get();
    size_t bytes;

    cuda_lock();
    for (size_t i = 0; c && i < variable_count; i++) {
        struct rt_symbol *s = &variables[i];

        if (s->binary == (struct rt_binary *)handle && s->managed && !binary_ready(c, s->binary))
            module_variable(c, s->binary->module, s->name, s->managed, &bytes);
    }
    cuda_unlock();
    return 1;
}

int runtime_function(struct cuda *c, const void *symbol, struct cu_function **out)
{
    for (size_t i = 0; i < kernel_count; i++) {
        struct rt_symbol *s = &kernels[i];
        int rc;

        if (s->host != symbol || s->binary->gone)
            continue;
        rc = binary_ready(c, s->binary);
        if (!rc && !s->function)
            rc = module_function(s->binary->module, s->name, &s->function);
        *out = s->function;
        return rc == CU_NOT_FOUND ? RT_INVALID_FUNCTION : rc;
    }
    *out = (struct cu_function *)(uintptr_t)symbol;
    return is_function(symbol) ? CU_OK : RT_INVALID_FUNCTION;
}

int runtime_variable(struct cuda *c, const void *symbol, void **base, size_t *bytes)
{
    for (size_t i = 0; i < variable_count; i++) {
        struct rt_symbol *s = &variables[i];
        int rc;

        if (s->host != symbol)
            continue;
        rc = binary_ready(c, s->binary);
        return rc ? rc : module_variable(c, s->binary->module, s->name, base, bytes);
    }
    return RT_INVALID_SYMBOL;
}

/* ---- launches --------------------------------------------------------------------- */

struct rt_call {
    struct rt_dim3 grid, block;
    size_t shared;
    void *stream;
};

enum { NESTED = 16 };
static _Thread_local struct rt_call pushed[NESTED];
static _Thread_local int pushed_count;

API unsigned __cudaPushCallConfiguration(struct rt_dim3 grid, struct rt_dim3 block, size_t shared,
                                         void *stream)
{
    if (pushed_count == NESTED)
        return CU_INVALID_VALUE;
    pushed[pushed_count++] = (struct rt_call){grid, block, shared, stream};
    return CU_OK;
}

API int __cudaPopCallConfiguration(struct rt_dim3 *grid, struct rt_dim3 *block, size_t *shared,
                                   void **stream)
{
    if (!pushed_count)
        return runtime_result(CU_INVALID_VALUE);
    pushed_count--;
    *grid = pushed[pushed_count].grid;
    *block = pushed[pushed_count].block;
    *shared = pushed[pushed_count].shared;
    *stream = pushed[pushed_count].stream;
    return CU_OK;
}

static int launch(struct cuda *c, const void *symbol, struct cu_shape *s, void **args, void *stream)
{
    struct cu_function *f;
    int rc = runtime_function(c, symbol, &f);

    for (int i = 0; i < 3 && !rc; i++)
        if (!s->grid[i] || !s->block[i])
            rc = RT_INVALID_CONFIGURATION;
    if (!rc && (uint64_t)s->block[0] * s->block[1] * s->block[2] > 1024)
        rc = RT_INVALID_CONFIGURATION;
    return rc ? rc : work_launch(c, stream, f, s, args, NULL);
}

static struct cu_shape shape_of(struct rt_dim3 grid, struct rt_dim3 block, size_t shared)
{
    return (struct cu_shape){.grid = {grid.x, grid.y, grid.z},
                             .block = {block.x, block.y, block.z},
                             .shared = (unsigned)shared};
}

API int cudaLaunchKernel(const void *symbol, struct rt_dim3 grid, struct rt_dim3 block, void **args,
                         size_t shared, void *stream)
{
    struct cu_shape s = shape_of(grid, block, shared);

    RUNTIME(launch(c, symbol, &s, args, stream));
}
PER_THREAD(cudaLaunchKernel, _ptsz)

API int __cudaLaunchKernel(void *kernel, struct rt_dim3 grid, struct rt_dim3 block, void **args,
                           size_t shared, void *stream)
{
    return cudaLaunchKernel(kernel, grid, block, args, shared, stream);
}
PER_THREAD(__cudaLaunchKernel, _ptsz)

API int cudaLaunchCooperativeKernel(const void *symbol, struct rt_dim3 grid, struct rt_dim3 block,
                                    void **args, size_t shared, void *stream)
{
    struct cu_shape s = shape_of(grid, block, shared);

    s.cooperative = true;
    RUNTIME(launch(c, symbol, &s, args, stream));
}
PER_THREAD(cudaLaunchCooperativeKernel, _ptsz)

struct rt_launch_config {
    struct rt_dim3 grid, block;
    size_t shared;
    void *stream;
    struct cu_launch_attribute *attributes;
    unsigned attribute_count;
};

API int cudaLaunchKernelExC(const struct rt_launch_config *config, const void *symbol, void **args)
{
    struct cu_shape s = shape_of(config->grid, config->block, config->shared);

    launch_attributes(config->attributes, config->attribute_count, &s);
    RUNTIME(launch(c, symbol, &s, args, config->stream));
}
PER_THREAD(cudaLaunchKernelExC, _ptsz)

API int __cudaGetKernel(void **out, const void *symbol)
{
    RUNTIME(runtime_function(c, symbol, (struct cu_function **)out));
}

API int cudaGetKernel(void **out, const void *symbol)
{
    return __cudaGetKernel(out, symbol);
}

API int cudaGetFuncBySymbol(void **out, const void *symbol)
{
    return __cudaGetKernel(out, symbol);
}

/* ---- functions ------------------------------------------------------------------------ */

/* cudaFuncAttributes */
struct rt_attributes {
    size_t shared, constant, local;
    int threads, registers, ptx, binary, cache, dynamic, carveout, cluster_must, cluster[3];
    int scheduling, non_portable, reserved[16];
};

static int attributes_of(struct cuda *c, struct rt_attributes *out, const void *symbol)
{
    struct cu_function *f;
    int rc = runtime_function(c, symbol, &f), v[16] = {0};

    for (int i = 0; i < 16 && !rc; i++)
        rc = function_attribute(c, f, i, &v[i]);
    if (rc)
        return rc;
    memset(out, 0, sizeof *out);
    out->shared = (size_t)v[1];
    out->local = (size_t)v[3];
    out->threads = v[0];
    out->registers = v[4];
    out->ptx = v[5];
    out->binary = v[6];
    out->dynamic = v[8];
    out->carveout = v[9];
    out->non_portable = v[14];
    return CU_OK;
}

API int cudaFuncGetAttributes(struct rt_attributes *out, const void *symbol)
{
    RUNTIME(attributes_of(c, out, symbol));
}

static int set_attribute(struct cuda *c, const void *symbol, int attribute, int value)
{
    struct cu_function *f;
    int rc = runtime_function(c, symbol, &f);

    if (!rc && attribute == 8 && value > c->gpu.smem_block_bytes)
        return CU_INVALID_VALUE;
    return rc ? rc : function_set(f, attribute, value);
}

API int cudaFuncSetAttribute(const void *symbol, int attribute, int value)
{
    RUNTIME(set_attribute(c, symbol, attribute, value));
}

API int cudaFuncSetCacheConfig(const void *symbol, int config)
{
    (void)symbol;
    (void)config;
    return CU_OK;
}

API int cudaFuncGetName(const char **out, const void *symbol)
{
    struct cu_function *f;

    RUNTIME((rc_ = runtime_function(c, symbol, &f)) ? rc_ : (*out = f->name, CU_OK));
}

static int occupancy(struct cuda *c, int *out, const void *symbol, int threads, size_t dynamic)
{
    struct cu_function *f;
    int rc = runtime_function(c, symbol, &f);

    return rc ? rc : function_occupancy(c, f, threads, dynamic, out);
}

API int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *out, const void *symbol, int threads,
                                                      size_t dynamic)
{
    RUNTIME(occupancy(c, out, symbol, threads, dynamic));
}

API int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *out, const void *symbol,
                                                               int threads, size_t dynamic,
                                                               unsigned flags)
{
    (void)flags;
    RUNTIME(occupancy(c, out, symbol, threads, dynamic));
}

API int cudaOccupancyMaxActiveClusters(int *out, const void *symbol, const void *config)
{
    (void)symbol;
    (void)config;
    RUNTIME((*out = c->gpu.major >= 9 ? c->gpu.sms / 2 : 0, CU_OK));
}

API int cudaOccupancyMaxPotentialClusterSize(int *out, const void *symbol, const void *config)
{
    (void)symbol;
    (void)config;
    *out = 8;
    return CU_OK;
}

API int cudaOccupancyAvailableDynamicSMemPerBlock(size_t *out, const void *symbol, int blocks,
                                                  int threads)
{
    (void)symbol;
    (void)threads;
    RUNTIME(blocks > 0 ? (*out = (size_t)(c->gpu.smem_sm_bytes / blocks - 1024), CU_OK)
                       : CU_INVALID_VALUE);
}

/* ---- errors ----------------------------------------------------------------------------- */

API int cudaGetLastError(void)
{
    int rc = last_error;

    last_error = CU_OK;
    return rc;
}

API int cudaPeekAtLastError(void)
{
    return last_error;
}

API const char *cudaGetErrorString(int error)
{
    const char *s = cuda_error_text(error);

    return s ? s : "unrecognized error code";
}

API const char *cudaGetErrorName(int error)
{
    const char *s = runtime_error_name(error);

    return s ? s : "unrecognized error code";
}

/* ---- the device ---------------------------------------------------------------------------- */

API int cudaGetDeviceCount(int *count)
{
    RUNTIME((*count = 1, CU_OK));
}

API int cudaGetDevice(int *device)
{
    *device = 0;
    return CU_OK;
}

API int cudaSetDevice(int device)
{
    return runtime_result(device ? CU_INVALID_DEVICE : CU_OK);
}

API int cudaInitDevice(int device, unsigned flags, unsigned more)
{
    (void)flags;
    (void)more;
    return cudaSetDevice(device);
}

API int cudaSetDeviceFlags(unsigned flags)
{
    (void)flags;
    return CU_OK;
}

API int cudaGetDeviceFlags(unsigned *flags)
{
    *flags = 0;
    return CU_OK;
}

API int cudaChooseDevice(int *device, const void *properties)
{
    (void)properties;
    *device = 0;
    return CU_OK;
}

API int cudaDeviceSynchronize(void)
{
    RUNTIME(CU_OK);
}

API int cudaDeviceReset(void)
{
    struct cuda *c = cuda_get();

    if (c)
        c->sticky = CU_OK;
    last_error = CU_OK;
    return CU_OK;
}

API int cudaDriverGetVersion(int *version)
{
    *version = RUNTIME_VERSION;
    return CU_OK;
}

API int cudaRuntimeGetVersion(int *version)
{
    *version = RUNTIME_VERSION;
    return CU_OK;
}

API int cudaDeviceGetAttribute(int *out, int attribute, int device)
{
    RUNTIME(device ? CU_INVALID_DEVICE : (*out = gpu_attribute(&c->gpu, attribute), CU_OK));
}

API int cudaDeviceGetPCIBusId(char *out, int len, int device)
{
    snprintf(out, len > 0 ? (size_t)len : 0, "0000:00:00.0");
    return runtime_result(device ? CU_INVALID_DEVICE : CU_OK);
}

API int cudaDeviceCanAccessPeer(int *out, int device, int peer)
{
    (void)device;
    (void)peer;
    *out = 0;
    return CU_OK;
}

API int cudaDeviceEnablePeerAccess(int device, unsigned flags)
{
    (void)device;
    (void)flags;
    return runtime_result(CU_PEER_UNSUPPORTED);
}

API int cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return CU_OK;
}

API int cudaDeviceSetLimit(int limit, size_t value)
{
    (void)limit;
    (void)value;
    return CU_OK;
}

API int cudaDeviceGetLimit(size_t *value, int limit)
{
    static const size_t limits[] = {1024, 1 << 20, 8 << 20};

    *value = limit >= 0 && limit < 3 ? limits[limit] : 0;
    return CU_OK;
}

API int cudaDeviceSetCacheConfig(int config)
{
    (void)config;
    return CU_OK;
}

API int cudaDeviceGetCacheConfig(int *config)
{
    *config = 0;
    return CU_OK;
}

API int cudaDeviceGetDefaultMemPool(void **pool, int device)
{
    *pool = (void *)&cudaDeviceGetDefaultMemPool;
    return runtime_result(device ? CU_INVALID_DEVICE : CU_OK);
}

API int cudaDeviceGetMemPool(void **pool, int device)
{
    return cudaDeviceGetDefaultMemPool(pool, device);
}

API int cudaCtxResetPersistingL2Cache(void)
{
    return CU_OK;
}

API int cudaProfilerStart(void)
{
    return CU_OK;
}

API int cudaProfilerStop(void)
{
    return CU_OK;
}

static int entry_point(const char *name, void **out, int version, int *status)
{
    *out = entry_find(name, version);
    if (status)
        *status = *out ? 0 : 1;
    return *out ? CU_OK : CU_NOT_FOUND;
}

API int cudaGetDriverEntryPointByVersion(const char *name, void **out, unsigned version,
                                         uint64_t flags, int *status)
{
    (void)flags;
    return runtime_result(entry_point(name, out, (int)version, status));
}
PER_THREAD(cudaGetDriverEntryPointByVersion, _ptsz)

API int cudaGetDriverEntryPoint(const char *name, void **out, uint64_t flags, int *status)
{
    (void)flags;
    return runtime_result(entry_point(name, out, RUNTIME_VERSION, status));
}
PER_THREAD(cudaGetDriverEntryPoint, _ptsz)

/* ---- properties ---------------------------------------------------------------------------- */

/* Offsets of cudaDeviceProp of CUDA 13 after name, uuid and luid; arrays of numbers are ints. */
struct rt_properties {
    char name[256], uuid[16], luid[8];
    unsigned luid_mask;
    size_t memory, shared_block;
    int regs_block, warp;
    size_t pitch;
    int threads_block, block[3], grid[3];
    size_t constant;
    int major, minor;
    size_t texture_align, texture_pitch_align;
    int sms, integrated, map_host, textures[2 + 2 + 2 + 3 + 2 + 3 + 3 + 1 + 2 + 3 + 2];
    int surfaces[1 + 2 + 3 + 2 + 3 + 1 + 2];
    size_t surface_align;
    int concurrent, ecc, pci[3], tcc, engines, unified, bus_bits, l2, l2_kept, threads_sm;
    int priorities, l1_global, l1_local;
    size_t shared_sm;
    int regs_sm, managed, board, board_id, native_atomics, pageable, concurrent_managed, preemption;
    int host_pointers, cooperative;
    size_t shared_optin;
    int page_tables, direct_managed, blocks_sm, window;
    size_t shared_reserved;
    int host_register, sparse, host_readonly, timeline, pools, rdma;
    unsigned rdma_options;
    int rdma_order;
    unsigned pool_handles;
    int deferred, ipc_events, clusters, function_pointers, numa[2], mps, host_numa;
    unsigned pci_device, pci_subsystem;
    int multinode, reserved[56];
};

static int properties(struct cuda *c, struct rt_properties *p, int device)
{
    const struct cu_gpu *g = &c->gpu;

    if (device)
        return CU_INVALID_DEVICE;
    memset(p, 0, sizeof *p);
    memcpy(p->name, g->name, sizeof g->name);
    memcpy(p->uuid, "cutegen simt GPU", 16);
    p->memory = g->memory_bytes;
    p->shared_block = 48 << 10;
    p->regs_block = p->regs_sm = g->regs_sm;
    p->warp = 32;
    p->pitch = INT32_MAX;
    p->threads_block = 1024;
    p->block[0] = p->block[1] = 1024;
    p->block[2] = 64;
    p->grid[0] = INT32_MAX;
    p->grid[1] = p->grid[2] = 65535;
    p->constant = 65536;
    p->major = g->major;
    p->minor = g->minor;
    p->texture_align = p->surface_align = 512;
    p->texture_pitch_align = 32;
    p->sms = g->sms;
    p->map_host = p->concurrent = p->ecc = p->unified = p->priorities = p->l1_global = 1;
    p->l1_local = p->managed = p->concurrent_managed = p->preemption = p->host_pointers = 1;
    p->cooperative = p->host_register = p->pools = p->function_pointers = 1;
    p->engines = 3;
    p->bus_bits = 6144;
    p->l2 = g->l2_bytes;
    p->threads_sm = g->threads_sm;
    p->shared_sm = (size_t)g->smem_sm_bytes;
    p->shared_optin = (size_t)g->smem_block_bytes;
    p->blocks_sm = g->blocks_sm;
    p->shared_reserved = 1024;
    p->clusters = g->major >= 9;
    return CU_OK;
}

API int cudaGetDeviceProperties(struct rt_properties *p, int device)
{
    RUNTIME(properties(c, p, device));
}
