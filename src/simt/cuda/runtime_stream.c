/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_stream.c - the runtime interface: streams, events, graphs. The driver's calls do the
 * work. */
#include "simt/cuda/copy.h"
#include "simt/cuda/driver.h"
#include "simt/cuda/runtime.h"

#include <string.h>

/* X(runtime name, driver name, arguments, arguments to pass) */
#define SAME(name, driver, takes, passes)                                                          \
    API int name takes                                                                             \
    {                                                                                              \
        return runtime_result(driver passes);                                                      \
    }

SAME(cudaStreamCreate, cuStreamCreate, (void **out), (out, 0))
SAME(cudaStreamCreateWithFlags, cuStreamCreate, (void **out, unsigned flags), (out, flags))
SAME(cudaStreamCreateWithPriority, cuStreamCreateWithPriority,
     (void **out, unsigned flags, int priority), (out, flags, priority))
SAME(cudaStreamDestroy, cuStreamDestroy_v2, (void *stream), (stream))
SAME(cudaStreamSynchronize, cuStreamSynchronize, (void *stream), (stream))
SAME(cudaStreamQuery, cuStreamQuery, (void *stream), (stream))
SAME(cudaStreamWaitEvent, cuStreamWaitEvent, (void *stream, void *event, unsigned flags),
     (stream, event, flags))
SAME(cudaStreamGetPriority, cuStreamGetPriority, (void *stream, int *out), (stream, out))
SAME(cudaStreamGetFlags, cuStreamGetFlags, (void *stream, unsigned *out), (stream, out))
SAME(cudaStreamGetId, cuStreamGetId, (void *stream, uint64_t *out), (stream, out))
SAME(cudaStreamAddCallback, cuStreamAddCallback,
     (void *stream, void (*fn)(void *, int, void *), void *arg, unsigned flags),
     (stream, fn, arg, flags))
SAME(cudaLaunchHostFunc, cuLaunchHostFunc, (void *stream, void (*fn)(void *), void *arg),
     (stream, fn, arg))
SAME(cudaEventCreate, cuEventCreate, (void **out), (out, 0))
SAME(cudaEventCreateWithFlags, cuEventCreate, (void **out, unsigned flags), (out, flags))
SAME(cudaEventDestroy, cuEventDestroy_v2, (void *event), (event))
SAME(cudaEventRecord, cuEventRecord, (void *event, void *stream), (event, stream))
SAME(cudaEventRecordWithFlags, cuEventRecordWithFlags, (void *event, void *stream, unsigned flags),
     (event, stream, flags))
SAME(cudaEventQuery, cuEventQuery, (void *event), (event))
SAME(cudaEventSynchronize, cuEventSynchronize, (void *event), (event))
SAME(cudaEventElapsedTime, cuEventElapsedTime_v2, (float *ms, void *start, void *end),
     (ms, start, end))
SAME(cudaStreamBeginCapture, cuStreamBeginCapture_v2, (void *stream, int mode), (stream, mode))
SAME(cudaStreamBeginCaptureToGraph, cuStreamBeginCaptureToGraph,
     (void *stream, void *graph, void **after, const void *edges, size_t count, int mode),
     (stream, graph, after, edges, count, mode))
SAME(cudaStreamEndCapture, cuStreamEndCapture, (void *stream, void **graph), (stream, graph))
SAME(cudaStreamIsCapturing, cuStreamIsCapturing, (void *stream, int *status), (stream, status))
SAME(cudaStreamGetCaptureInfo, cuStreamGetCaptureInfo_v3,
     (void *stream, int *status, uint64_t *id, void **graph, void ***after, const void **edges,
      size_t *count),
     (stream, status, id, graph, after, edges, count))
SAME(cudaThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode, (int *mode), (mode))
PER_THREAD(cudaStreamSynchronize, _ptsz)
PER_THREAD(cudaStreamQuery, _ptsz)
PER_THREAD(cudaStreamWaitEvent, _ptsz)
PER_THREAD(cudaStreamGetPriority, _ptsz)
PER_THREAD(cudaStreamGetFlags, _ptsz)
PER_THREAD(cudaStreamGetId, _ptsz)
PER_THREAD(cudaStreamAddCallback, _ptsz)
PER_THREAD(cudaLaunchHostFunc, _ptsz)
PER_THREAD(cudaEventRecord, _ptsz)
PER_THREAD(cudaEventRecordWithFlags, _ptsz)
PER_THREAD(cudaStreamBeginCapture, _ptsz)
PER_THREAD(cudaStreamEndCapture, _ptsz)
PER_THREAD(cudaStreamIsCapturing, _ptsz)
PER_THREAD(cudaStreamGetCaptureInfo, _ptsz)

SAME(cudaGraphCreate, cuGraphCreate, (void **out, unsigned flags), (out, flags))
SAME(cudaGraphDestroy, cuGraphDestroy, (void *graph), (graph))
SAME(cudaGraphClone, cuGraphClone, (void **out, void *graph), (out, graph))
SAME(cudaGraphInstantiate, cuGraphInstantiateWithFlags, (void **out, void *graph, uint64_t flags),
     (out, graph, flags))
SAME(cudaGraphInstantiateWithFlags, cuGraphInstantiateWithFlags,
     (void **out, void *graph, uint64_t flags), (out, graph, flags))
SAME(cudaGraphInstantiateWithParams, cuGraphInstantiateWithParams,
     (void **out, void *graph, void *params), (out, graph, params))
SAME(cudaGraphExecDestroy, cuGraphExecDestroy, (void *exec), (exec))
SAME(cudaGraphLaunch, cuGraphLaunch, (void *exec, void *stream), (exec, stream))
SAME(cudaGraphUpload, cuGraphUpload, (void *exec, void *stream), (exec, stream))
SAME(cudaGraphExecUpdate, cuGraphExecUpdate_v2, (void *exec, void *graph, void **info),
     (exec, graph, info))
SAME(cudaGraphGetNodes, cuGraphGetNodes, (void *graph, void **out, size_t *count),
     (graph, out, count))
SAME(cudaGraphGetRootNodes, cuGraphGetRootNodes, (void *graph, void **out, size_t *count),
     (graph, out, count))
SAME(cudaGraphNodeGetType, cuGraphNodeGetType, (void *node, int *type), (node, type))
SAME(cudaGraphNodeGetDependencies, cuGraphNodeGetDependencies_v2,
     (void *node, void **out, void *edges, size_t *count), (node, out, edges, count))
SAME(cudaGraphAddDependencies, cuGraphAddDependencies_v2,
     (void *graph, void **from, void **to, const void *edges, size_t count),
     (graph, from, to, edges, count))
SAME(cudaGraphAddEmptyNode, cuGraphAddEmptyNode,
     (void **out, void *graph, void *const *after, size_t count), (out, graph, after, count))
SAME(cudaGraphAddChildGraphNode, cuGraphAddChildGraphNode,
     (void **out, void *graph, void *const *after, size_t count, void *child),
     (out, graph, after, count, child))
SAME(cudaGraphAddEventRecordNode, cuGraphAddEventRecordNode,
     (void **out, void *graph, void *const *after, size_t count, void *event),
     (out, graph, after, count, event))
SAME(cudaGraphAddEventWaitNode, cuGraphAddEventWaitNode,
     (void **out, void *graph, void *const *after, size_t count, void *event),
     (out, graph, after, count, event))
SAME(cudaGraphAddHostNode, cuGraphAddHostNode,
     (void **out, void *graph, void *const *after, size_t count, const struct cu_host_params *p),
     (out, graph, after, count, p))
SAME(cudaGraphAddMemsetNode, cuGraphAddMemsetNode,
     (void **out, void *graph, void *const *after, size_t count, const struct cu_fill_params *p),
     (out, graph, after, count, p, NULL))
SAME(cudaGraphExecMemsetNodeSetParams, cuGraphExecMemsetNodeSetParams,
     (void *exec, void *node, const struct cu_fill_params *p), (exec, node, p, NULL))
SAME(cudaGraphNodeSetEnabled, cuGraphNodeSetEnabled, (void *exec, void *node, unsigned enabled),
     (exec, node, enabled))
SAME(cudaGraphNodeGetEnabled, cuGraphNodeGetEnabled, (void *exec, void *node, unsigned *enabled),
     (exec, node, enabled))
PER_THREAD(cudaGraphLaunch, _ptsz)
PER_THREAD(cudaGraphUpload, _ptsz)

/* ---- nodes whose parameters differ ------------------------------------------------------ */

/* cudaKernelNodeParams: a symbol in place of a function. */
struct rt_node_params {
    void *symbol;
    unsigned grid[3], block[3], shared;
    void **params, **extra;
};

static int driver_params(struct cuda *c, const struct rt_node_params *p,
                         struct cu_kernel_params *out)
{
    struct cu_function *f = NULL;
    int rc = runtime_function(c, p->symbol, &f);

    *out = (struct cu_kernel_params){
        .function = f, .shared = p->shared, .params = p->params, .extra = p->extra};
    memcpy(out->grid, p->grid, sizeof out->grid);
    memcpy(out->block, p->block, sizeof out->block);
    return rc;
}

API int cudaGraphAddKernelNode(void **out, void *graph, void *const *after, size_t count,
                               const struct rt_node_params *p)
{
    struct cu_kernel_params k;

    RUNTIME((rc_ = driver_params(c, p, &k))
                ? rc_
                : cuGraphAddKernelNode_v2(out, graph, after, count, &k));
}

API int cudaGraphKernelNodeSetParams(void *node, const struct rt_node_params *p)
{
    struct cu_kernel_params k;

    RUNTIME((rc_ = driver_params(c, p, &k)) ? rc_ : cuGraphKernelNodeSetParams_v2(node, &k));
}

API int cudaGraphExecKernelNodeSetParams(void *exec, void *node, const struct rt_node_params *p)
{
    struct cu_kernel_params k;

    RUNTIME((rc_ = driver_params(c, p, &k)) ? rc_
                                            : cuGraphExecKernelNodeSetParams_v2(exec, node, &k));
}

static struct cu_copy_3d plain_copy(void *to, const void *from, size_t bytes)
{
    return (struct cu_copy_3d){
        .from = {.device = (void *)(uintptr_t)from, .pitch = bytes, .height = 1},
        .to = {.device = to, .pitch = bytes, .height = 1},
        .width = bytes,
        .height = 1,
        .depth = 1};
}

API int cudaGraphAddMemcpyNode1D(void **out, void *graph, void *const *after, size_t count,
                                 void *to, const void *from, size_t bytes, int kind)
{
    struct cu_copy_3d p = plain_copy(to, from, bytes);

    (void)kind;
    return runtime_result(cuGraphAddMemcpyNode(out, graph, after, count, &p, NULL));
}

API int cudaGraphExecMemcpyNodeSetParams1D(void *exec, void *node, void *to, const void *from,
                                           size_t bytes, int kind)
{
    struct cu_copy_3d p = plain_copy(to, from, bytes);

    (void)kind;
    return runtime_result(cuGraphExecMemcpyNodeSetParams(exec, node, &p, NULL));
}
