/* SPDX-License-Identifier: Apache-2.0 */
/* driver_graph.c - the driver interface: capture and graphs. */
#include "simt/cuda/call.h"
#include "simt/cuda/copy.h"

#include <string.h>

/* ---- capture --------------------------------------------------------------------- */

API int cuStreamBeginCapture_v2(void *stream, int mode)
{
    (void)mode;
    CALL(stream_begin_capture(stream, NULL));
}

API int cuStreamBeginCaptureToGraph(void *stream, void *graph, void **after, const void *edges,
                                    size_t count, int mode)
{
    (void)after;
    (void)edges;
    (void)count;
    (void)mode;
    CALL(stream_begin_capture(stream, graph));
}

API int cuStreamEndCapture(void *stream, void **graph)
{
    CALL(stream_end_capture(stream, (struct cu_graph **)graph));
}

static int capture_info(void *stream, int *status, uint64_t *id, void **graph, void ***after,
                        size_t *count)
{
    struct cu_stream *s = stream_of(stream);

    if (!s)
        return CU_INVALID_HANDLE;
    *status = s->capture != NULL;
    if (id)
        *id = (uint64_t)(uintptr_t)s->capture;
    if (graph)
        *graph = s->capture;
    if (after)
        *after = (void **)s->last;
    if (count)
        *count = s->last_count;
    return CU_OK;
}

API int cuStreamIsCapturing(void *stream, int *status)
{
    CALL(capture_info(stream, status, NULL, NULL, NULL, NULL));
}

API int cuStreamGetCaptureInfo_v2(void *stream, int *status, uint64_t *id, void **graph,
                                  void ***after, size_t *count)
{
    CALL(capture_info(stream, status, id, graph, after, count));
}

API int cuStreamGetCaptureInfo_v3(void *stream, int *status, uint64_t *id, void **graph,
                                  void ***after, const void **edges, size_t *count)
{
    if (edges)
        *edges = NULL;
    CALL(capture_info(stream, status, id, graph, after, count));
}

API int cuThreadExchangeStreamCaptureMode(int *mode)
{
    (void)mode;
    return CU_OK;
}

/* ---- graphs ------------------------------------------------------------------------ */

API int cuGraphCreate(void **out, unsigned flags)
{
    *out = graph_new();
    return flags ? CU_INVALID_VALUE : CU_OK;
}

API int cuGraphDestroy(void *graph)
{
    graph_free(graph);
    return CU_OK;
}

API int cuGraphClone(void **out, void *graph)
{
    *out = graph_clone(graph);
    return CU_OK;
}

API int cuGraphInstantiateWithFlags(void **out, void *graph, uint64_t flags)
{
    (void)flags;
    CALL(graph_instantiate(graph, (struct cu_graph **)out));
}

API int cuGraphInstantiateWithParams(void **out, void *graph, void *params)
{
    (void)params;
    return cuGraphInstantiateWithFlags(out, graph, 0);
}

API int cuGraphExecDestroy(void *exec)
{
    graph_free(exec);
    return CU_OK;
}

static int launch(struct cuda *c, struct cu_graph *exec, void *stream)
{
    struct cu_work w = {.kind = WORK_GRAPH, .graph = exec};

    return exec ? work_submit(c, stream, &w) : CU_INVALID_VALUE;
}

API int cuGraphLaunch(void *exec, void *stream)
{
    CALL(launch(c, exec, stream));
}

API int cuGraphUpload(void *exec, void *stream)
{
    (void)exec;
    (void)stream;
    return CU_OK;
}

static int update(struct cu_graph *exec, const struct cu_graph *from, int *result)
{
    *result = exec->count == from->count ? 0 : 2; /* the topology changed */
    for (size_t i = 0; i < exec->count && !*result; i++)
        if (exec->node[i]->work.kind != from->node[i]->work.kind)
            *result = 3;
    for (size_t i = 0; i < exec->count && !*result; i++)
        graph_set(exec->node[i], &from->node[i]->work);
    return *result ? 910 : CU_OK;
}

/* {int result; node; node} */
API int cuGraphExecUpdate_v2(void *exec, void *graph, void **info)
{
    int result = 0, rc = update(exec, graph, &result);

    if (info) {
        memset(info, 0, 3 * sizeof *info);
        memcpy(info, &result, sizeof result);
    }
    return rc;
}

static int list(struct cu_node *const *from, size_t n, void **out, size_t *count)
{
    if (out)
        for (size_t i = 0; i < *count; i++)
            out[i] = i < n ? from[i] : NULL;
    *count = out && *count < n ? *count : n;
    return CU_OK;
}

API int cuGraphGetNodes(void *graph, void **out, size_t *count)
{
    struct cu_graph *g = graph;

    return list(g->node, g->count, out, count);
}

API int cuGraphGetRootNodes(void *graph, void **out, size_t *count)
{
    struct cu_graph *g = graph;
    struct cu_node **roots = xmalloc((g->count + 1) * sizeof *roots);
    size_t n = 0;

    for (size_t i = 0; i < g->count; i++)
        if (!g->node[i]->after_count)
            roots[n++] = g->node[i];
    list(roots, n, out, count);
    xfree(roots);
    return CU_OK;
}

API int cuGraphNodeGetDependencies_v2(void *node, void **out, void *edges, size_t *count)
{
    struct cu_node *n = node;

    (void)edges;
    return list(n->after, n->after_count, out, count);
}

API int cuGraphNodeGetType(void *node, int *type)
{
    static const int types[] = {
        [WORK_NONE] = 5,  [WORK_LAUNCH] = 0, [WORK_COPY] = 1,  [WORK_FILL] = 2, [WORK_HOST] = 3,
        [WORK_EVENT] = 7, [WORK_ALLOC] = 10, [WORK_FREE] = 11, [WORK_GRAPH] = 4};

    *type = types[((struct cu_node *)node)->work.kind];
    return CU_OK;
}

API int cuGraphAddDependencies_v2(void *graph, void **from, void **to, const void *edges,
                                  size_t count)
{
    int rc = CU_OK;

    (void)graph;
    (void)edges;
    for (size_t i = 0; i < count && !rc; i++)
        rc = graph_depend(from[i], to[i]);
    return rc;
}

API int cuGraphNodeSetEnabled(void *exec, void *node, unsigned enabled)
{
    struct cu_node *n = graph_counterpart(exec, node);

    if (n)
        n->disabled = !enabled;
    return n ? CU_OK : CU_INVALID_VALUE;
}

API int cuGraphNodeGetEnabled(void *exec, void *node, unsigned *enabled)
{
    struct cu_node *n = graph_counterpart(exec, node);

    if (n)
        *enabled = !n->disabled;
    return n ? CU_OK : CU_INVALID_VALUE;
}

/* ---- nodes ---------------------------------------------------------------------------- */

static int add(void **out, struct cu_graph *g, void *const *after, size_t count,
               const struct cu_work *w)
{
    if (!g)
        return CU_INVALID_VALUE;
    *out = graph_add(g, w, (struct cu_node *const *)after, count);
    return CU_OK;
}

API int cuGraphAddEmptyNode(void **out, void *graph, void *const *after, size_t count)
{
    struct cu_work w = {.kind = WORK_NONE};

    CALL(add(out, graph, after, count, &w));
}

API int cuGraphAddChildGraphNode(void **out, void *graph, void *const *after, size_t count,
                                 void *child)
{
    struct cu_work w = {.kind = WORK_GRAPH, .graph = child};

    CALL(add(out, graph, after, count, &w));
}

API int cuGraphAddEventRecordNode(void **out, void *graph, void *const *after, size_t count,
                                  void *event)
{
    struct cu_work w = {.kind = WORK_EVENT, .event = event};

    CALL(add(out, graph, after, count, &w));
}

API int cuGraphAddEventWaitNode(void **out, void *graph, void *const *after, size_t count,
                                void *event)
{
    (void)event;
    return cuGraphAddEmptyNode(out, graph, after, count);
}

API int cuGraphAddHostNode(void **out, void *graph, void *const *after, size_t count,
                           const struct cu_host_params *p)
{
    struct cu_work w = {.kind = WORK_HOST, .host = p->fn, .arg = p->arg};

    CALL(add(out, graph, after, count, &w));
}

static struct cu_work fill_work(const struct cu_fill_params *p)
{
    return (struct cu_work){.kind = WORK_FILL,
                            .to = {p->to, p->pitch, 0},
                            .area = {p->width, p->height, 1},
                            .value = p->value,
                            .value_bytes = p->element_bytes};
}

API int cuGraphAddMemsetNode(void **out, void *graph, void *const *after, size_t count,
                             const struct cu_fill_params *p, void *context)
{
    struct cu_work w = fill_work(p);

    (void)context;
    CALL(add(out, graph, after, count, &w));
}

API int cuGraphExecMemsetNodeSetParams(void *exec, void *node, const struct cu_fill_params *p,
                                       void *context)
{
    struct cu_node *n = graph_counterpart(exec, node);
    struct cu_work w = fill_work(p);

    (void)context;
    if (n)
        graph_set(n, &w);
    return n ? CU_OK : CU_INVALID_VALUE;
}

API int cuGraphAddMemcpyNode(void **out, void *graph, void *const *after, size_t count,
                             const struct cu_copy_3d *p, void *context)
{
    struct cu_work w;
    int rc = copy_work(p, &w);

    (void)context;
    if (rc)
        return rc;
    CALL(add(out, graph, after, count, &w));
}

API int cuGraphExecMemcpyNodeSetParams(void *exec, void *node, const struct cu_copy_3d *p,
                                       void *context)
{
    struct cu_node *n = graph_counterpart(exec, node);
    struct cu_work w;
    int rc = copy_work(p, &w);

    (void)context;
    if (n && !rc)
        graph_set(n, &w);
    return rc ? rc : n ? CU_OK : CU_INVALID_VALUE;
}

static int kernel_work(struct cuda *c, const struct cu_kernel_params *p, struct cu_work *w)
{
    struct cu_function *f = p->function ? p->function : p->kernel;

    *w = (struct cu_work){.shape = {.shared = p->shared}};
    memcpy(w->shape.grid, p->grid, sizeof p->grid);
    memcpy(w->shape.block, p->block, sizeof p->block);
    return is_function(f) ? work_pack(c, f, p->params, p->extra, w) : CU_INVALID_HANDLE;
}

static int add_kernel(struct cuda *c, void **out, void *graph, void *const *after, size_t count,
                      const struct cu_kernel_params *p)
{
    struct cu_work w;
    int rc = kernel_work(c, p, &w);

    if (rc)
        return rc;
    rc = add(out, graph, after, count, &w);
    xfree(w.params);
    return rc;
}

API int cuGraphAddKernelNode_v2(void **out, void *graph, void *const *after, size_t count,
                                const struct cu_kernel_params *p)
{
    CALL(add_kernel(c, out, graph, after, count, p));
}

static int set_kernel(struct cuda *c, struct cu_node *n, const struct cu_kernel_params *p)
{
    struct cu_work w;
    int rc = n ? kernel_work(c, p, &w) : CU_INVALID_VALUE;

    if (rc)
        return rc;
    graph_set(n, &w);
    xfree(w.params);
    return CU_OK;
}

API int cuGraphKernelNodeSetParams_v2(void *node, const struct cu_kernel_params *p)
{
    CALL(set_kernel(c, node, p));
}

API int cuGraphExecKernelNodeSetParams_v2(void *exec, void *node, const struct cu_kernel_params *p)
{
    CALL(set_kernel(c, graph_counterpart(exec, node), p));
}
