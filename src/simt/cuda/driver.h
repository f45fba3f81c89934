/* SPDX-License-Identifier: Apache-2.0 */
/* driver.h - driver entry points that the runtime interface uses. */
#ifndef SIMT_CUDA_DRIVER_H
#define SIMT_CUDA_DRIVER_H

#include "simt/cuda/copy.h"

int cuLibraryLoadData(void **out, const void *image, int *jit, void **jit_values,
                      unsigned jit_count, int *options, void **values, unsigned count);
int cuLibraryLoadFromFile(void **out, const char *path, int *jit, void **jit_values,
                          unsigned jit_count, int *options, void **values, unsigned count);
int cuLibraryUnload(void *library);
int cuLibraryGetKernel(void **out, void *library, const char *name);
int cuLibraryGetGlobal(uint64_t *at, size_t *bytes, void *library, const char *name);
int cuLibraryGetManaged(uint64_t *at, size_t *bytes, void *library, const char *name);
int cuLibraryGetKernelCount(unsigned *count, void *library);
int cuLibraryEnumerateKernels(void **out, unsigned count, void *library);
int cuLaunchHostFunc(void *stream, void (*fn)(void *), void *arg);
int cuStreamAddCallback(void *stream, void (*fn)(void *, int, void *), void *arg, unsigned flags);
int cuStreamCreateWithPriority(void **out, unsigned flags, int priority);
int cuStreamCreate(void **out, unsigned flags);
int cuStreamDestroy_v2(void *stream);
int cuStreamSynchronize(void *stream);
int cuStreamQuery(void *stream);
int cuStreamWaitEvent(void *stream, void *event, unsigned flags);
int cuStreamGetPriority(void *stream, int *out);
int cuStreamGetFlags(void *stream, unsigned *out);
int cuStreamGetId(void *stream, uint64_t *out);
int cuEventCreate(void **out, unsigned flags);
int cuEventDestroy_v2(void *event);
int cuEventRecord(void *event, void *stream);
int cuEventRecordWithFlags(void *event, void *stream, unsigned flags);
int cuEventQuery(void *event);
int cuEventSynchronize(void *event);
int cuEventElapsedTime_v2(float *ms, void *start, void *end);
int cuStreamBeginCapture_v2(void *stream, int mode);
int cuStreamBeginCaptureToGraph(void *stream, void *graph, void **after, const void *edges,
                                size_t count, int mode);
int cuStreamEndCapture(void *stream, void **graph);
int cuStreamIsCapturing(void *stream, int *status);
int cuStreamGetCaptureInfo_v3(void *stream, int *status, uint64_t *id, void **graph, void ***after,
                              const void **edges, size_t *count);
int cuThreadExchangeStreamCaptureMode(int *mode);
int cuGraphCreate(void **out, unsigned flags);
int cuGraphDestroy(void *graph);
int cuGraphClone(void **out, void *graph);
int cuGraphInstantiateWithFlags(void **out, void *graph, uint64_t flags);
int cuGraphInstantiateWithParams(void **out, void *graph, void *params);
int cuGraphExecDestroy(void *exec);
int cuGraphLaunch(void *exec, void *stream);
int cuGraphUpload(void *exec, void *stream);
int cuGraphExecUpdate_v2(void *exec, void *graph, void **info);
int cuGraphGetNodes(void *graph, void **out, size_t *count);
int cuGraphGetRootNodes(void *graph, void **out, size_t *count);
int cuGraphNodeGetDependencies_v2(void *node, void **out, void *edges, size_t *count);
int cuGraphNodeGetType(void *node, int *type);
int cuGraphAddDependencies_v2(void *graph, void **from, void **to, const void *edges, size_t count);
int cuGraphNodeSetEnabled(void *exec, void *node, unsigned enabled);
int cuGraphNodeGetEnabled(void *exec, void *node, unsigned *enabled);
int cuGraphAddEmptyNode(void **out, void *graph, void *const *after, size_t count);
int cuGraphAddChildGraphNode(void **out, void *graph, void *const *after, size_t count,
                             void *child);
int cuGraphAddEventRecordNode(void **out, void *graph, void *const *after, size_t count,
                              void *event);
int cuGraphAddEventWaitNode(void **out, void *graph, void *const *after, size_t count, void *event);
int cuGraphAddHostNode(void **out, void *graph, void *const *after, size_t count,
                       const struct cu_host_params *p);
int cuGraphAddMemsetNode(void **out, void *graph, void *const *after, size_t count,
                         const struct cu_fill_params *p, void *context);
int cuGraphExecMemsetNodeSetParams(void *exec, void *node, const struct cu_fill_params *p,
                                   void *context);
int cuGraphAddMemcpyNode(void **out, void *graph, void *const *after, size_t count,
                         const struct cu_copy_3d *p, void *context);
int cuGraphExecMemcpyNodeSetParams(void *exec, void *node, const struct cu_copy_3d *p,
                                   void *context);
int cuGraphAddKernelNode_v2(void **out, void *graph, void *const *after, size_t count,
                            const struct cu_kernel_params *p);
int cuGraphKernelNodeSetParams_v2(void *node, const struct cu_kernel_params *p);
int cuGraphExecKernelNodeSetParams_v2(void *exec, void *node, const struct cu_kernel_params *p);

#endif
