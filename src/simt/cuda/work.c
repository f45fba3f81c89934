/* SPDX-License-Identifier: Apache-2.0 */
/* work.c - launches, copies and fills: pack, check and execute them. */
#include "simt/cuda/cuda.h"

#include "base/clock.h"
#include "base/error.h"

#include <string.h>

/* ---- launches --------------------------------------------------------------- */

/* The error that a real device would return from now on. An out-of-bounds access was dropped and
 * the kernel continued, as it may on a GPU. */
static int failure(const struct simt_result *r)
{
    int rc = r->outcome == SIMT_HANG ? CU_TIMEOUT : CU_OK;

    for (size_t i = 0; i < r->finding_count && rc != CU_ASSERT; i++) {
        const struct simt_finding *f = &r->findings[i];

        if (f->kind == SIMT_ASSERTION || f->kind == SIMT_TRAP)
            rc = f->kind == SIMT_ASSERTION ? CU_ASSERT : CU_LAUNCH_FAILED;
        else if (f->kind == SIMT_MISALIGNED && !rc)
            rc = CU_MISALIGNED;
    }
    return rc;
}

static int refusal(const struct cu_work *w)
{
    const struct cu_shape *s = &w->shape;
    uint64_t threads = (uint64_t)s->block[0] * s->block[1] * s->block[2];

    if (s->cluster[0] > 1 || s->cluster[1] > 1 || s->cluster[2] > 1)
        return CU_INVALID_CLUSTER;
    return w->function->info.max_threads && threads > w->function->info.max_threads
               ? CU_OUT_OF_RESOURCES
               : CU_INVALID_VALUE;
}

static int launch_run(struct cuda *c, const struct cu_work *w, const void *order)
{
    const struct cu_shape *s = &w->shape;
    struct simt_launch launch = {.kernel = w->function->name,
                                 .shared_bytes = s->shared,
                                 .params = w->params,
                                 .param_bytes = w->param_bytes,
                                 .overlap = s->overlap && c->order == order,
                                 .overlapped = c->overlaps,
                                 .cooperative = s->cooperative};
    struct simt_result r = {0};
    struct error err = {0};
    struct arena *a;
    int rc = function_ready(c, w->function);

    if (rc)
        return rc;
    memcpy(launch.grid, s->grid, sizeof launch.grid);
    memcpy(launch.block, s->block, sizeof launch.block);
    memcpy(launch.cluster, s->cluster, sizeof launch.cluster);
    if ((int)s->shared > w->function->max_dynamic) {
        cuda_say("%s: %u bytes of dynamic shared memory, and only %d are allowed; see "
                 "cudaFuncAttributeMaxDynamicSharedMemorySize",
                 w->function->name, s->shared, w->function->max_dynamic);
        return CU_INVALID_VALUE;
    }
    a = arena_new();
    c->launches++;
    c->order = order;
    c->overlaps |= s->overlap;
    if (!simt_launch(c->simt, w->function->code, &launch, a, &r, &err)) {
        report_refusal(c, w->function->name, &err);
        rc = CU_OUT_OF_RESOURCES;
    } else {
        report_launch(c, w->function->name, &r);
        rc = r.outcome == SIMT_BAD_LAUNCH ? refusal(w) : CU_OK;
        if (r.outcome != SIMT_BAD_LAUNCH && failure(&r))
            c->sticky = failure(&r);
    }
    arena_free(a);
    return rc;
}

int work_pack(struct cuda *c, struct cu_function *f, void **params, void **extra, struct cu_work *w)
{
    int rc = function_ready(c, f);

    if (rc)
        return rc;
    w->kind = WORK_LAUNCH;
    w->function = f;
    w->param_bytes = f->info.param_bytes;
    w->params = xmalloc(w->param_bytes + 16);
    if (params) {
        for (size_t i = 0; i < f->info.param_count; i++)
            memcpy(w->params + f->info.params[i].offset, params[i], f->info.params[i].bytes);
    } else if (extra) {
        const void *from = NULL;
        size_t bytes = 0;

        for (size_t i = 0; extra[i] && i < 4; i += 2) {
            if ((uintptr_t)extra[i] == 1)
                from = extra[i + 1];
            else if ((uintptr_t)extra[i] == 2)
                bytes = *(size_t *)extra[i + 1];
        }
        if (from)
            memcpy(w->params, from, bytes < w->param_bytes ? bytes : w->param_bytes);
    } else if (w->param_bytes) {
        xfree(w->params);
        return CU_INVALID_VALUE;
    }
    return CU_OK;
}

int work_launch(struct cuda *c, void *stream, struct cu_function *f, const struct cu_shape *shape,
                void **params, void **extra)
{
    struct cu_work w = {.shape = *shape};
    int rc = is_function(f) ? work_pack(c, f, params, extra, &w) : CU_INVALID_HANDLE;

    if (rc)
        return rc;
    rc = work_submit(c, stream, &w);
    xfree(w.params);
    return rc;
}

/* ---- copies and fills --------------------------------------------------------- */

static int copy_run(struct cuda *c, const struct cu_work *w)
{
    const struct cu_area *n = &w->area;

    for (size_t z = 0; z < n->depth; z++)
        for (size_t y = 0; y < n->height; y++) {
            char *to = w->to.at + z * w->to.slice + y * w->to.pitch;
            const char *from = w->from.at + z * w->from.slice + y * w->from.pitch;

            if (!memory_allows(to, n->width) || !memory_allows(from, n->width)) {
                cuda_say("a copy of %zu bytes reaches past the end of an allocation", n->width);
                return CU_INVALID_VALUE;
            }
            memmove(to, from, n->width);
            if (memory_find(to))
                simt_alloc_written(c->simt, to, n->width);
        }
    return CU_OK;
}

static int fill_run(struct cuda *c, const struct cu_work *w)
{
    for (size_t y = 0; y < w->area.height; y++) {
        char *to = w->to.at + y * w->to.pitch;
        size_t bytes = w->area.width * w->value_bytes;

        if (!memory_find(to) || !memory_allows(to, bytes)) {
            cuda_say("a memset of %zu bytes is not inside an allocation", bytes);
            return CU_INVALID_VALUE;
        }
        if (w->value_bytes == 1)
            memset(to, (int)w->value, bytes);
        else
            for (size_t i = 0; i < w->area.width; i++)
                memcpy(to + i * w->value_bytes, &w->value, w->value_bytes);
        simt_alloc_written(c->simt, to, bytes);
    }
    return CU_OK;
}

int work_run(struct cuda *c, const struct cu_work *w, const void *order)
{
    if (w->kind != WORK_LAUNCH)
        c->order = NULL;
    switch (w->kind) {
    case WORK_LAUNCH:
        return launch_run(c, w, order);
    case WORK_COPY:
        return copy_run(c, w);
    case WORK_FILL:
        return fill_run(c, w);
    case WORK_HOST:
        w->host(w->arg);
        return CU_OK;
    case WORK_EVENT:
        w->event->us = clock_us();
        return CU_OK;
    case WORK_FREE:
        return memory_free(c, w->arg);
    case WORK_GRAPH:
        return graph_run(c, w->graph);
    case WORK_ALLOC: /* made when the graph was */
    case WORK_NONE:
        return CU_OK;
    }
    return CU_UNKNOWN;
}

int work_copy(struct cuda *c, void *stream, void *to, const void *from, size_t bytes)
{
    struct cu_work w = {.kind = WORK_COPY,
                        .to = {to, bytes, bytes},
                        .from = {(char *)(uintptr_t)from, bytes, bytes},
                        .area = {bytes, 1, 1}};

    if (!bytes)
        return CU_OK;
    return to && from ? work_submit(c, stream, &w) : CU_INVALID_VALUE;
}

int work_fill(struct cuda *c, void *stream, void *to, size_t pitch, unsigned value,
              unsigned value_bytes, size_t width, size_t height)
{
    struct cu_work w = {.kind = WORK_FILL,
                        .to = {to, pitch, 0},
                        .area = {width, height, 1},
                        .value = value,
                        .value_bytes = value_bytes};

    if (!width || !height)
        return CU_OK;
    return to ? work_submit(c, stream, &w) : CU_INVALID_VALUE;
}
