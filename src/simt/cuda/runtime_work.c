/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_work.c - the runtime interface: memory, copies, symbols, streams, events. */
#include "simt/cuda/copy.h"
#include "simt/cuda/runtime.h"

#include <string.h>

/* ---- memory ------------------------------------------------------------------- */

static int alloc(struct cuda *c, void **out, size_t bytes, enum memory_kind kind)
{
    if (!out)
        return CU_INVALID_VALUE;
    *out = bytes ? memory_alloc(c, bytes, kind) : NULL;
    return *out || !bytes ? CU_OK : CU_OUT_OF_MEMORY;
}

API int cudaMalloc(void **out, size_t bytes)
{
    RUNTIME(alloc(c, out, bytes, MEMORY_DEVICE));
}

API int cudaMallocManaged(void **out, size_t bytes, unsigned flags)
{
    (void)flags;
    RUNTIME(alloc(c, out, bytes, MEMORY_MANAGED));
}

API int cudaMallocHost(void **out, size_t bytes)
{
    RUNTIME(alloc(c, out, bytes, MEMORY_PINNED));
}

API int cudaHostAlloc(void **out, size_t bytes, unsigned flags)
{
    (void)flags;
    RUNTIME(alloc(c, out, bytes, MEMORY_PINNED));
}

API int cudaFree(void *at)
{
    RUNTIME(memory_free(c, at));
}

API int cudaFreeHost(void *at)
{
    RUNTIME(memory_free(c, at));
}

static int alloc_pitch(struct cuda *c, void **out, size_t *pitch, size_t width, size_t height)
{
    *pitch = (width + 511) / 512 * 512;
    return alloc(c, out, *pitch * height, MEMORY_DEVICE);
}

API int cudaMallocPitch(void **out, size_t *pitch, size_t width, size_t height)
{
    RUNTIME(alloc_pitch(c, out, pitch, width, height));
}

struct rt_pitched {
    void *at;
    size_t pitch, width, height;
};
struct rt_extent {
    size_t width, height, depth;
};

API int cudaMalloc3D(struct rt_pitched *out, struct rt_extent n)
{
    *out = (struct rt_pitched){.width = n.width, .height = n.height};
    RUNTIME(alloc_pitch(c, &out->at, &out->pitch, n.width, n.height * n.depth));
}

static int alloc_async(struct cuda *c, void **out, size_t bytes, void *stream)
{
    struct cu_work w = {.kind = WORK_ALLOC};
    int rc = alloc(c, out, bytes, MEMORY_DEVICE);

    return rc ? rc : work_submit(c, stream, &w);
}

API int cudaMallocAsync(void **out, size_t bytes, void *stream)
{
    RUNTIME(alloc_async(c, out, bytes, stream));
}
PER_THREAD(cudaMallocAsync, _ptsz)

API int cudaMallocFromPoolAsync(void **out, size_t bytes, void *pool, void *stream)
{
    (void)pool;
    RUNTIME(alloc_async(c, out, bytes, stream));
}
PER_THREAD(cudaMallocFromPoolAsync, _ptsz)

/* A captured free may run many times and its allocation ran once: it is left to the end. */
static int free_async(struct cuda *c, void *at, void *stream)
{
    struct cu_stream *s = stream_of(stream);
    struct cu_work w = {.kind = WORK_NONE};

    return s && s->capture ? work_submit(c, stream, &w) : memory_free(c, at);
}

API int cudaFreeAsync(void *at, void *stream)
{
    RUNTIME(free_async(c, at, stream));
}
PER_THREAD(cudaFreeAsync, _ptsz)

API int cudaHostRegister(void *at, size_t bytes, unsigned flags)
{
    (void)flags;
    RUNTIME(memory_register(c, at, bytes, true));
}

API int cudaHostUnregister(void *at)
{
    RUNTIME(memory_unregister(c, at));
}

API int cudaHostGetDevicePointer(void **out, void *host, unsigned flags)
{
    (void)flags;
    *out = host;
    RUNTIME(memory_find(host) ? CU_OK : CU_INVALID_VALUE);
}

API int cudaHostGetFlags(unsigned *flags, void *host)
{
    *flags = 2;
    RUNTIME(memory_find(host) ? CU_OK : CU_INVALID_VALUE);
}

API int cudaMemGetInfo(size_t *available, size_t *total)
{
    RUNTIME((*total = c->gpu.memory_bytes, *available = *total - memory_used(), CU_OK));
}

struct rt_pointer {
    int type, device;
    void *device_pointer, *host_pointer;
    long reserved[8];
};

static int pointer_attributes(struct rt_pointer *out, const void *at)
{
    static const int types[] = {
        [MEMORY_DEVICE] = 2, [MEMORY_MANAGED] = 3, [MEMORY_PINNED] = 1, [MEMORY_REGISTERED] = 1};
    const struct cu_memory *m = memory_find(at);
    void *p = (void *)(uintptr_t)at;

    memset(out, 0, sizeof *out);
    out->device = -2;
    if (!m) {
        out->host_pointer = p;
        return CU_OK;
    }
    out->type = types[m->kind];
    out->device = 0;
    out->device_pointer = p;
    out->host_pointer = m->kind == MEMORY_DEVICE ? NULL : p;
    return CU_OK;
}

API int cudaPointerGetAttributes(struct rt_pointer *out, const void *at)
{
    RUNTIME(pointer_attributes(out, at));
}

API int cudaMemAdvise(const void *at, size_t bytes, int advice, uint64_t location)
{
    (void)bytes;
    (void)advice;
    (void)location;
    RUNTIME(memory_find(at) ? CU_OK : CU_INVALID_VALUE);
}

API int cudaMemPrefetchAsync(const void *at, size_t bytes, uint64_t location, unsigned flags,
                             void *stream)
{
    (void)bytes;
    (void)location;
    (void)flags;
    (void)stream;
    RUNTIME(memory_find(at) ? CU_OK : CU_INVALID_VALUE);
}
PER_THREAD(cudaMemPrefetchAsync, _ptsz)

/* Pools: there is one, and it keeps nothing. */
API int cudaMemPoolSetAttribute(void *pool, int attribute, void *value)
{
    (void)pool;
    (void)attribute;
    (void)value;
    return CU_OK;
}

API int cudaMemPoolGetAttribute(void *pool, int attribute, void *value)
{
    (void)pool;
    (void)attribute;
    *(uint64_t *)value = 0;
    return CU_OK;
}

API int cudaMemPoolTrimTo(void *pool, size_t keep)
{
    (void)pool;
    (void)keep;
    return CU_OK;
}

API int cudaMemPoolCreate(void **pool, const void *properties)
{
    (void)properties;
    *pool = xmalloc(8);
    return CU_OK;
}

API int cudaMemPoolDestroy(void *pool)
{
    xfree(pool);
    return CU_OK;
}

/* ---- copies and fills -------------------------------------------------------------- */

enum { TO_DEVICE = 1, TO_HOST = 2, ON_DEVICE = 3 };

/* Where the program says which side is the device's, it is. */
static int copy(struct cuda *c, void *to, const void *from, size_t bytes, int kind, void *stream)
{
    if (bytes && (kind == TO_DEVICE || kind == ON_DEVICE) && !memory_find(to)) {
        cuda_say("cudaMemcpy: the destination %p is not device memory", to);
        return CU_INVALID_VALUE;
    }
    if (bytes && (kind == TO_HOST || kind == ON_DEVICE) && !memory_find(from)) {
        cuda_say("cudaMemcpy: the source %p is not device memory", from);
        return CU_INVALID_VALUE;
    }
    return work_copy(c, stream, to, from, bytes);
}

API int cudaMemcpy(void *to, const void *from, size_t bytes, int kind)
{
    RUNTIME(copy(c, to, from, bytes, kind, NULL));
}
PER_THREAD(cudaMemcpy, _ptds)

API int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream)
{
    RUNTIME(copy(c, to, from, bytes, kind, stream));
}
PER_THREAD(cudaMemcpyAsync, _ptsz)

API int cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes)
{
    RUNTIME(to_device || from_device ? CU_INVALID_DEVICE
                                     : copy(c, to, from, bytes, ON_DEVICE, NULL));
}

static int copy_rows(struct cuda *c, void *to, size_t to_pitch, const void *from, size_t from_pitch,
                     size_t width, size_t height, void *stream)
{
    struct cu_work w = {.kind = WORK_COPY,
                        .to = {to, to_pitch, 0},
                        .from = {(char *)(uintptr_t)from, from_pitch, 0},
                        .area = {width, height, 1}};

    if (!width || !height)
        return CU_OK;
    return to_pitch < width || from_pitch < width ? CU_INVALID_VALUE : work_submit(c, stream, &w);
}

API int cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                     size_t height, int kind)
{
    (void)kind;
    RUNTIME(copy_rows(c, to, to_pitch, from, from_pitch, width, height, NULL));
}
PER_THREAD(cudaMemcpy2D, _ptds)

API int cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                          size_t width, size_t height, int kind, void *stream)
{
    (void)kind;
    RUNTIME(copy_rows(c, to, to_pitch, from, from_pitch, width, height, stream));
}
PER_THREAD(cudaMemcpy2DAsync, _ptsz)

struct rt_position {
    size_t x, y, z;
};
struct rt_copy_params {
    void *from_array;
    struct rt_position from_at;
    struct rt_pitched from;
    void *to_array;
    struct rt_position to_at;
    struct rt_pitched to;
    struct rt_extent n;
    int kind;
};

static struct cu_side side_of(const struct rt_pitched *p, const struct rt_position *at,
                              const struct rt_extent *n)
{
    size_t rows = p->height ? p->height : n->height;

    return (struct cu_side){(char *)p->at + at->z * p->pitch * rows + at->y * p->pitch + at->x,
                            p->pitch, p->pitch * rows};
}

static int copy_3d(struct cuda *c, const struct rt_copy_params *p, void *stream)
{
    struct cu_work w = {.kind = WORK_COPY,
                        .to = side_of(&p->to, &p->to_at, &p->n),
                        .from = side_of(&p->from, &p->from_at, &p->n),
                        .area = {p->n.width, p->n.height, p->n.depth}};

    if (p->from_array || p->to_array)
        return cuda_unsupported("a copy from or to an array (textures)");
    return work_submit(c, stream, &w);
}

API int cudaMemcpy3D(const struct rt_copy_params *p)
{
    RUNTIME(copy_3d(c, p, NULL));
}
PER_THREAD(cudaMemcpy3D, _ptds)

API int cudaMemcpy3DAsync(const struct rt_copy_params *p, void *stream)
{
    RUNTIME(copy_3d(c, p, stream));
}
PER_THREAD(cudaMemcpy3DAsync, _ptsz)

API int cudaMemset(void *to, int value, size_t bytes)
{
    RUNTIME(work_fill(c, NULL, to, 0, (unsigned)value & 255, 1, bytes, 1));
}
PER_THREAD(cudaMemset, _ptds)

API int cudaMemsetAsync(void *to, int value, size_t bytes, void *stream)
{
    RUNTIME(work_fill(c, stream, to, 0, (unsigned)value & 255, 1, bytes, 1));
}
PER_THREAD(cudaMemsetAsync, _ptsz)

API int cudaMemset2D(void *to, size_t pitch, int value, size_t width, size_t height)
{
    RUNTIME(work_fill(c, NULL, to, pitch, (unsigned)value & 255, 1, width, height));
}
PER_THREAD(cudaMemset2D, _ptds)

API int cudaMemset2DAsync(void *to, size_t pitch, int value, size_t width, size_t height,
                          void *stream)
{
    RUNTIME(work_fill(c, stream, to, pitch, (unsigned)value & 255, 1, width, height));
}
PER_THREAD(cudaMemset2DAsync, _ptsz)

static int fill_box(struct cuda *c, void *stream, struct rt_pitched to, int value,
                    struct rt_extent n)
{
    int rc = CU_OK;

    for (size_t z = 0; z < n.depth && !rc; z++)
        rc = work_fill(c, stream, (char *)to.at + z * to.pitch * to.height, to.pitch,
                       (unsigned)value & 255, 1, n.width, n.height);
    return rc;
}

API int cudaMemset3D(struct rt_pitched to, int value, struct rt_extent n)
{
    RUNTIME(fill_box(c, NULL, to, value, n));
}
PER_THREAD(cudaMemset3D, _ptds)

API int cudaMemset3DAsync(struct rt_pitched to, int value, struct rt_extent n, void *stream)
{
    RUNTIME(fill_box(c, stream, to, value, n));
}
PER_THREAD(cudaMemset3DAsync, _ptsz)

/* ---- symbols ---------------------------------------------------------------------------- */

static int copy_symbol(struct cuda *c, const void *symbol, void *host, size_t bytes, size_t offset,
                       bool to_symbol, void *stream)
{
    void *base;
    size_t size;
    int rc = runtime_variable(c, symbol, &base, &size);

    if (rc)
        return rc;
    if (offset > size || bytes > size - offset)
        return CU_INVALID_VALUE;
    return to_symbol ? work_copy(c, stream, (char *)base + offset, host, bytes)
                     : work_copy(c, stream, host, (char *)base + offset, bytes);
}

API int cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset,
                           int kind)
{
    (void)kind;
    RUNTIME(copy_symbol(c, symbol, (void *)(uintptr_t)from, bytes, offset, true, NULL));
}
PER_THREAD(cudaMemcpyToSymbol, _ptds)

API int cudaMemcpyFromSymbol(void *to, const void *symbol, size_t bytes, size_t offset, int kind)
{
    (void)kind;
    RUNTIME(copy_symbol(c, symbol, to, bytes, offset, false, NULL));
}
PER_THREAD(cudaMemcpyFromSymbol, _ptds)

API int cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t bytes, size_t offset,
                                int kind, void *stream)
{
    (void)kind;
    RUNTIME(copy_symbol(c, symbol, (void *)(uintptr_t)from, bytes, offset, true, stream));
}
PER_THREAD(cudaMemcpyToSymbolAsync, _ptsz)

API int cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t bytes, size_t offset,
                                  int kind, void *stream)
{
    (void)kind;
    RUNTIME(copy_symbol(c, symbol, to, bytes, offset, false, stream));
}
PER_THREAD(cudaMemcpyFromSymbolAsync, _ptsz)

API int cudaGetSymbolAddress(void **out, const void *symbol)
{
    size_t bytes;

    RUNTIME(runtime_variable(c, symbol, out, &bytes));
}

API int cudaGetSymbolSize(size_t *out, const void *symbol)
{
    void *base;

    RUNTIME(runtime_variable(c, symbol, &base, out));
}
