/* SPDX-License-Identifier: Apache-2.0 */
/* driver_work.c - the driver interface: memory, copies, launches, streams, events. */
#include "simt/cuda/call.h"
#include "simt/cuda/copy.h"

#include "base/clock.h"

#include <string.h>

/* ---- memory ------------------------------------------------------------------- */

static int alloc(struct cuda *c, void **out, size_t bytes, enum memory_kind kind)
{
    if (!out || !bytes)
        return CU_INVALID_VALUE;
    *out = memory_alloc(c, bytes, kind);
    return *out ? CU_OK : CU_OUT_OF_MEMORY;
}

API int cuMemAlloc_v2(void **out, size_t bytes)
{
    CALL(alloc(c, out, bytes, MEMORY_DEVICE));
}

static int alloc_pitch(struct cuda *c, void **out, size_t *pitch, size_t width, size_t height)
{
    *pitch = (width + 511) / 512 * 512;
    return alloc(c, out, *pitch * height, MEMORY_DEVICE);
}

API int cuMemAllocPitch_v2(void **out, size_t *pitch, size_t width, size_t height, unsigned element)
{
    (void)element;
    CALL(alloc_pitch(c, out, pitch, width, height));
}

API int cuMemAllocManaged(void **out, size_t bytes, unsigned flags)
{
    (void)flags;
    CALL(alloc(c, out, bytes, MEMORY_MANAGED));
}

API int cuMemHostAlloc(void **out, size_t bytes, unsigned flags)
{
    (void)flags;
    CALL(alloc(c, out, bytes, MEMORY_PINNED));
}

API int cuMemAllocHost_v2(void **out, size_t bytes)
{
    CALL(alloc(c, out, bytes, MEMORY_PINNED));
}

API int cuMemFree_v2(void *at)
{
    CALL(memory_free(c, at));
}

API int cuMemFreeHost(void *at)
{
    CALL(memory_free(c, at));
}

/* While a stream is captured the address is needed at once; it belongs to the graph's user. */
static int alloc_async(struct cuda *c, void **out, size_t bytes, void *stream)
{
    struct cu_work w = {.kind = WORK_ALLOC};
    int rc = alloc(c, out, bytes, MEMORY_DEVICE);

    return rc ? rc : work_submit(c, stream, &w);
}

API int cuMemAllocAsync(void **out, size_t bytes, void *stream)
{
    CALL(alloc_async(c, out, bytes, stream));
}

API int cuMemAllocFromPoolAsync(void **out, size_t bytes, void *pool, void *stream)
{
    (void)pool;
    return cuMemAllocAsync(out, bytes, stream);
}

/* A captured free may run many times and its allocation ran once: it is left to the end. */
static int free_async(struct cuda *c, void *at, void *stream)
{
    struct cu_stream *s = stream_of(stream);
    struct cu_work w = {.kind = WORK_NONE};

    return s && s->capture ? work_submit(c, stream, &w) : memory_free(c, at);
}

API int cuMemFreeAsync(void *at, void *stream)
{
    CALL(free_async(c, at, stream));
}

API int cuMemHostRegister_v2(void *at, size_t bytes, unsigned flags)
{
    (void)flags;
    CALL(memory_register(c, at, bytes, true));
}

API int cuMemHostUnregister(void *at)
{
    CALL(memory_unregister(c, at));
}

API int cuMemHostGetDevicePointer_v2(void **out, void *host, unsigned flags)
{
    (void)flags;
    *out = host;
    CALL(memory_find(host) ? CU_OK : CU_INVALID_VALUE);
}

API int cuMemHostGetFlags(unsigned *flags, void *host)
{
    *flags = 3;
    CALL(memory_find(host) ? CU_OK : CU_INVALID_VALUE);
}

API int cuMemGetInfo_v2(size_t *available, size_t *total)
{
    struct cuda *c = cuda_get();

    if (!c)
        return CU_NO_DEVICE;
    *total = c->gpu.memory_bytes;
    *available = *total - memory_used();
    return CU_OK;
}

static int address_range(void **base, size_t *bytes, void *at)
{
    const struct cu_memory *m = memory_find(at);

    if (!m)
        return CU_NOT_FOUND;
    if (base)
        *base = (void *)m->base;
    if (bytes)
        *bytes = m->bytes;
    return CU_OK;
}

API int cuMemGetAddressRange_v2(void **base, size_t *bytes, void *at)
{
    CALL(address_range(base, bytes, at));
}

/* Of CUpointer_attribute; those of pools and of sharing are not known. */
static int pointer_attribute(void *out, int attribute, void *at)
{
    const struct cu_memory *m = memory_find(at);

    if (!m)
        return CU_INVALID_VALUE;
    switch (attribute) {
    case 1:
    case 4:
        *(void **)out = attribute == 4 && m->kind != MEMORY_DEVICE ? at : NULL;
        return attribute == 4 && m->kind == MEMORY_DEVICE ? CU_INVALID_VALUE : CU_OK;
    case 2:
        *(unsigned *)out = m->kind == MEMORY_PINNED || m->kind == MEMORY_REGISTERED ? 1 : 2;
        return CU_OK;
    case 3:
        *(void **)out = at;
        return CU_OK;
    case 6:
    case 8:
        *(unsigned *)out = attribute == 8 && m->kind == MEMORY_MANAGED;
        return CU_OK;
    case 7:
        *(uint64_t *)out = m->number;
        return CU_OK;
    case 9:
    case 10:
        *(int *)out = 0;
        return CU_OK;
    case 11:
        *(void **)out = (void *)m->base;
        return CU_OK;
    case 12:
        *(size_t *)out = m->bytes;
        return CU_OK;
    case 13:
        *(char *)out = 1;
        return CU_OK;
    default:
        return CU_NOT_SUPPORTED;
    }
}

API int cuPointerGetAttribute(void *out, int attribute, void *at)
{
    CALL(pointer_attribute(out, attribute, at));
}

static int pointer_attributes(unsigned count, const int *attributes, void **out, void *at)
{
    for (unsigned i = 0; i < count; i++)
        if (pointer_attribute(out[i], attributes[i], at) && attributes[i] != 7)
            *(int *)out[i] = 0;
    return CU_OK;
}

API int cuPointerGetAttributes(unsigned count, const int *attributes, void **out, void *at)
{
    CALL(pointer_attributes(count, attributes, out, at));
}

API int cuMemAdvise_v2(void *at, size_t bytes, int advice, uint64_t location)
{
    (void)bytes;
    (void)advice;
    (void)location;
    CALL(memory_find(at) ? CU_OK : CU_INVALID_VALUE);
}

API int cuMemPrefetchAsync_v2(void *at, size_t bytes, uint64_t location, unsigned flags,
                              void *stream)
{
    (void)bytes;
    (void)location;
    (void)flags;
    (void)stream;
    CALL(memory_find(at) ? CU_OK : CU_INVALID_VALUE);
}

/* ---- copies and fills: every kind is the same here ------------------------------- */

#define COPY(name)                                                                                 \
    API int name(void *to, const void *from, size_t bytes)                                         \
    {                                                                                              \
        CALL(work_copy(c, NULL, to, from, bytes));                                                 \
    }
#define COPY_ASYNC(name)                                                                           \
    API int name(void *to, const void *from, size_t bytes, void *stream)                           \
    {                                                                                              \
        CALL(work_copy(c, stream, to, from, bytes));                                               \
    }
COPY(cuMemcpy)
COPY(cuMemcpyHtoD_v2)
COPY(cuMemcpyDtoH_v2)
COPY(cuMemcpyDtoD_v2)
COPY_ASYNC(cuMemcpyAsync)
COPY_ASYNC(cuMemcpyHtoDAsync_v2)
COPY_ASYNC(cuMemcpyDtoHAsync_v2)
COPY_ASYNC(cuMemcpyDtoDAsync_v2)

enum { TYPE_HOST = 1, TYPE_ARRAY = 3 };

static struct cu_side side_of(const struct cu_copy_side *s, size_t width, size_t height)
{
    char *base = s->type == TYPE_HOST ? s->host : s->device ? s->device : s->host;
    size_t pitch = s->pitch ? s->pitch : width, rows = s->height ? s->height : height;

    return (struct cu_side){base + s->z * pitch * rows + s->y * pitch + s->x, pitch, pitch * rows};
}

int copy_work(const struct cu_copy_3d *p, struct cu_work *out)
{
    *out = (struct cu_work){.kind = WORK_COPY,
                            .to = side_of(&p->to, p->width, p->height),
                            .from = side_of(&p->from, p->width, p->height),
                            .area = {p->width, p->height, p->depth}};
    return p->to.type == TYPE_ARRAY || p->from.type == TYPE_ARRAY
               ? cuda_unsupported("a copy from or to an array (textures)")
               : CU_OK;
}

static int copy_3d(struct cuda *c, const struct cu_copy_3d *p, void *stream)
{
    struct cu_work w;
    int rc = copy_work(p, &w);

    return rc ? rc : work_submit(c, stream, &w);
}

static struct cu_copy_side widen(const struct cu_copy_side_2d *s)
{
    return (struct cu_copy_side){.x = s->x,
                                 .y = s->y,
                                 .type = s->type,
                                 .host = s->host,
                                 .device = s->device,
                                 .array = s->array,
                                 .pitch = s->pitch};
}

static int copy_2d(struct cuda *c, const struct cu_copy_2d *p, void *stream)
{
    struct cu_copy_3d q = {.from = widen(&p->from),
                           .to = widen(&p->to),
                           .width = p->width,
                           .height = p->height,
                           .depth = 1};

    return copy_3d(c, &q, stream);
}

API int cuMemcpy2D_v2(const struct cu_copy_2d *p)
{
    CALL(copy_2d(c, p, NULL));
}

API int cuMemcpy2DUnaligned_v2(const struct cu_copy_2d *p)
{
    CALL(copy_2d(c, p, NULL));
}

API int cuMemcpy2DAsync_v2(const struct cu_copy_2d *p, void *stream)
{
    CALL(copy_2d(c, p, stream));
}

API int cuMemcpy3D_v2(const struct cu_copy_3d *p)
{
    CALL(copy_3d(c, p, NULL));
}

API int cuMemcpy3DAsync_v2(const struct cu_copy_3d *p, void *stream)
{
    CALL(copy_3d(c, p, stream));
}

#define FILL(bits, type)                                                                           \
    API int cuMemsetD##bits##_v2(void *to, type value, size_t n)                                   \
    {                                                                                              \
        CALL(work_fill(c, NULL, to, 0, value, bits / 8, n, 1));                                    \
    }                                                                                              \
    API int cuMemsetD##bits##Async(void *to, type value, size_t n, void *stream)                   \
    {                                                                                              \
        CALL(work_fill(c, stream, to, 0, value, bits / 8, n, 1));                                  \
    }                                                                                              \
    API int cuMemsetD2D##bits##_v2(void *to, size_t pitch, type value, size_t w, size_t h)         \
    {                                                                                              \
        CALL(work_fill(c, NULL, to, pitch, value, bits / 8, w, h));                                \
    }                                                                                              \
    API int cuMemsetD2D##bits##Async(void *to, size_t pitch, type value, size_t w, size_t h,       \
                                     void *stream)                                                 \
    {                                                                                              \
        CALL(work_fill(c, stream, to, pitch, value, bits / 8, w, h));                              \
    }
FILL(8, unsigned char)
FILL(16, unsigned short)
FILL(32, unsigned)

/* ---- launches ----------------------------------------------------------------------- */

API int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                       unsigned by, unsigned bz, unsigned shared, void *stream, void **params,
                       void **extra)
{
    struct cu_shape s = {.grid = {gx, gy, gz}, .block = {bx, by, bz}, .shared = shared};

    CALL(work_launch(c, stream, function, &s, params, extra));
}

API int cuLaunchCooperativeKernel(void *function, unsigned gx, unsigned gy, unsigned gz,
                                  unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                  void *stream, void **params)
{
    struct cu_shape s = {
        .grid = {gx, gy, gz}, .block = {bx, by, bz}, .shared = shared, .cooperative = true};

    CALL(work_launch(c, stream, function, &s, params, NULL));
}

void launch_attributes(const struct cu_launch_attribute *list, unsigned count, struct cu_shape *s)
{
    for (unsigned i = 0; i < count; i++) {
        if (list[i].id == ATTRIBUTE_CLUSTER)
            memcpy(s->cluster, list[i].value.cluster, sizeof s->cluster);
        else if (list[i].id == ATTRIBUTE_COOPERATIVE)
            s->cooperative = list[i].value.number != 0;
        else if (list[i].id == ATTRIBUTE_OVERLAP)
            s->overlap = list[i].value.number != 0;
    }
}

struct cu_launch_config {
    unsigned grid[3], block[3], shared;
    void *stream;
    struct cu_launch_attribute *attributes;
    unsigned attribute_count;
};

API int cuLaunchKernelEx(const struct cu_launch_config *config, void *function, void **params,
                         void **extra)
{
    struct cu_shape s = {.shared = config->shared};

    memcpy(s.grid, config->grid, sizeof s.grid);
    memcpy(s.block, config->block, sizeof s.block);
    launch_attributes(config->attributes, config->attribute_count, &s);
    CALL(work_launch(c, config->stream, function, &s, params, extra));
}

API int cuOccupancyMaxActiveClusters(int *out, void *function,
                                     const struct cu_launch_config *config)
{
    struct cuda *c = cuda_get();

    (void)function;
    (void)config;
    if (!c)
        return CU_NO_DEVICE;
    *out = c->gpu.major >= 9 ? c->gpu.sms / 2 : 0;
    return CU_OK;
}

API int cuOccupancyMaxPotentialClusterSize(int *out, void *function,
                                           const struct cu_launch_config *config)
{
    struct cu_function *f = function;

    (void)config;
    *out = f && f->cluster_allowed ? 16 : 8;
    return CU_OK;
}

API int cuLaunchHostFunc(void *stream, void (*fn)(void *), void *arg)
{
    struct cu_work w = {.kind = WORK_HOST, .host = fn, .arg = arg};

    CALL(work_submit(c, stream, &w));
}

API int cuStreamAddCallback(void *stream, void (*fn)(void *, int, void *), void *arg,
                            unsigned flags)
{
    (void)flags;
    fn(stream, CU_OK, arg);
    return CU_OK;
}

/* ---- streams and events ---------------------------------------------------------------- */

API int cuStreamCreateWithPriority(void **out, unsigned flags, int priority)
{
    CALL(stream_create(flags, priority, out));
}

API int cuStreamCreate(void **out, unsigned flags)
{
    CALL(stream_create(flags, 0, out));
}

API int cuStreamDestroy_v2(void *stream)
{
    CALL(stream_destroy(stream));
}

API int cuStreamSynchronize(void *stream)
{
    CALL(stream_of(stream) ? CU_OK : CU_INVALID_HANDLE);
}

API int cuStreamQuery(void *stream)
{
    CALL(stream_of(stream) ? CU_OK : CU_INVALID_HANDLE);
}

API int cuStreamWaitEvent(void *stream, void *event, unsigned flags)
{
    (void)flags;
    CALL(stream_wait(stream, event));
}

API int cuStreamGetPriority(void *stream, int *out)
{
    CALL(stream_of(stream) ? (*out = stream_of(stream)->priority, CU_OK) : CU_INVALID_HANDLE);
}

API int cuStreamGetFlags(void *stream, unsigned *out)
{
    CALL(stream_of(stream) ? (*out = stream_of(stream)->flags, CU_OK) : CU_INVALID_HANDLE);
}

API int cuStreamGetId(void *stream, uint64_t *out)
{
    CALL(stream_of(stream) ? (*out = stream_of(stream)->id, CU_OK) : CU_INVALID_HANDLE);
}

API int cuStreamGetCtx(void *stream, void **out)
{
    extern int cuDevicePrimaryCtxRetain(void **, int);

    (void)stream;
    return cuDevicePrimaryCtxRetain(out, 0);
}

API int cuStreamGetDevice(void *stream, int *device)
{
    (void)stream;
    *device = 0;
    return CU_OK;
}

API int cuStreamAttachMemAsync(void *stream, void *at, size_t bytes, unsigned flags)
{
    (void)stream;
    (void)at;
    (void)bytes;
    (void)flags;
    return CU_OK;
}

API int cuEventCreate(void **out, unsigned flags)
{
    struct cu_event *e = xmalloc(sizeof *e);

    e->flags = flags;
    *out = e;
    return CU_OK;
}

API int cuEventDestroy_v2(void *event)
{
    struct cu_event *e = event;

    if (!e)
        return CU_INVALID_HANDLE;
    xfree(e->at);
    xfree(e);
    return CU_OK;
}

API int cuEventRecord(void *event, void *stream)
{
    CALL(event_record(c, event, stream));
}

API int cuEventRecordWithFlags(void *event, void *stream, unsigned flags)
{
    (void)flags;
    return cuEventRecord(event, stream);
}

API int cuEventQuery(void *event)
{
    CALL(event ? CU_OK : CU_INVALID_HANDLE);
}

API int cuEventSynchronize(void *event)
{
    CALL(event ? CU_OK : CU_INVALID_HANDLE);
}

API int cuEventElapsedTime_v2(float *ms, void *start, void *end)
{
    struct cu_event *a = start, *b = end;

    if (!a || !b || !a->us || !b->us)
        return CU_INVALID_HANDLE;
    *ms = (float)(b->us - a->us) / 1000.0f;
    return CU_OK;
}

API int cuEventElapsedTime(float *ms, void *start, void *end)
{
    return cuEventElapsedTime_v2(ms, start, end);
}

/* ---- tensor maps ------------------------------------------------------------------------- */

API int cuTensorMapEncodeTiled(unsigned char *out, int type, uint32_t rank, void *address,
                               const uint64_t *dims, const uint64_t *strides, const uint32_t *box,
                               const uint32_t *element_strides, int interleave, int swizzle, int l2,
                               int fill)
{
    static const char *const types[] = {"u8",   "u16", "u32",        "i32",       "u64", "i64",
                                        "f16",  "f32", "f64",        "bf16",      "f32", "tf32",
                                        "tf32", "u4",  "u4_align16", "u6_align16"};
    struct simt_map m = {.address = (uint64_t)(uintptr_t)address,
                         .rank = (int)rank,
                         .swizzle = (unsigned)swizzle,
                         .fill_nan = fill != 0};
    char why[256] = "";

    (void)l2;
    if (rank < 1 || rank > 5 || type < 0 || (size_t)type >= ARRAY_LEN(types))
        return CU_INVALID_VALUE;
    if (interleave || swizzle > 3) {
        cuda_say("cuTensorMapEncodeTiled: interleaved layouts and this swizzle are not supported");
        return CU_NOT_SUPPORTED;
    }
    m.dtype = types[type];
    memcpy(m.dims, dims, rank * sizeof *dims);
    if (rank > 1)
        memcpy(m.strides_bytes, strides, (rank - 1) * sizeof *strides);
    memcpy(m.box, box, rank * sizeof *box);
    memcpy(m.element_strides, element_strides, rank * sizeof *element_strides);
    if (simt_map_encode(&m, out, why, sizeof why))
        return CU_OK;
    cuda_say("cuTensorMapEncodeTiled: %s", why);
    return CU_INVALID_VALUE;
}
