/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export.h - the plan half under nvcc: included by kernel.h.
 *
 * The same macros as plan.h, but the plan really launches, on the caller's
 * stream, and this header adds the entry that C, CuPy, JAX or a torch
 * extension calls. C++17.
 *
 * Invariants
 * 1. Arguments are checked against the kernel's own parameter list while
 *    compiling: count, size, and float against integer.
 * 2. Workspace lives from the plan's request to the end of its work on the
 *    stream (cudaMallocAsync, cudaFreeAsync), also when the plan fails.
 * 3. The first error wins and is written to the caller's buffer; nothing throws.
 */
#ifndef CUTEGEN_EXPORT_H
#define CUTEGEN_EXPORT_H

#include <cuda.h>
#include <cuda_runtime.h>
#include <stdio.h>
#include <string.h>
#include <type_traits>
#include <utility>

static_assert(sizeof(struct cutegen_map) == sizeof(CUtensorMap), "a map is a CUtensorMap");

enum {
    CUTEGEN_MAX_WORKSPACES = 512,
    CUTEGEN_MAX_EXPORT_TENSORS = 512,
    CUTEGEN_MAX_EXPORT_DIMS = 16
};

struct cutegen_export_state {
    cudaStream_t stream;
    char *error;
    size_t error_len;
    int failed;
    int captured;     /* into a graph, where memory is a node like any other */
    int after_launch; /* there is a launch right before, for the next one to overlap with */
    void *workspaces[CUTEGEN_MAX_WORKSPACES];
    int workspace_count;
};

static inline int cutegen_note(struct cutegen_call *call, int line, const char *what,
                               const char *text)
{
    struct cutegen_export_state *s = (struct cutegen_export_state *)call->state;
    if (!s->failed && s->error && s->error_len)
        snprintf(s->error, s->error_len, "line %d: %s%s%s", line, what, text ? ": " : "",
                 text ? text : "");
    s->failed = 1;
    return 1;
}

static inline int cutegen_cuda(struct cutegen_call *call, int line, const char *what, cudaError_t e)
{
    return e == cudaSuccess ? 0 : cutegen_note(call, line, what, cudaGetErrorString(e));
}

#define CUTEGEN_PLAN(call)       static int cutegen_plan(struct cutegen_call *call)
#define CUTEGEN_FAIL(call, text) (cutegen_note((call), __LINE__, (text), nullptr))
#define CUTEGEN_REQUIRE(call, condition, text)                                                     \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return CUTEGEN_FAIL(call, text);                                                       \
    } while (0)
#define CUTEGEN_TRY(step)                                                                          \
    do {                                                                                           \
        int cutegen_try_ = (step);                                                                 \
        if (cutegen_try_ != 0)                                                                     \
            return cutegen_try_;                                                                   \
    } while (0)
#define CUTEGEN_DATA(type, tensor)                                                                 \
    (reinterpret_cast<type *>((tensor)->data ? (char *)(tensor)->data + (tensor)->byte_offset      \
                                             : nullptr))
#define CUTEGEN_AT(type, tensor, index)                                                            \
    (reinterpret_cast<type *>((char *)(tensor)->data + (tensor)->byte_offset +                     \
                              (int64_t)(index) * ((tensor)->dtype.bits / 8)))
#define cutegen_workspace(call, bytes) (cutegen_workspace_at((call), __LINE__, (int64_t)(bytes)))
#define cutegen_memset(call, ptr, value, bytes)                                                    \
    (cutegen_memset_at((call), __LINE__, (ptr), (value), (int64_t)(bytes)))
#define cutegen_map_tiled(call, spec) (cutegen_map_at((call), __LINE__, (spec)))
#define CUTEGEN_LAUNCH_EX(call, kernel, grid, block, cluster, smem, flags, ...)                    \
    (cutegen_launch_at((call), __LINE__, kernel, (grid), (block), (cluster), (int64_t)(smem),      \
                       (unsigned)(flags) | (call)->launch_flags, ##__VA_ARGS__))
#define CUTEGEN_LAUNCH_CLUSTER(call, kernel, grid, block, cluster, smem, ...)                      \
    CUTEGEN_LAUNCH_EX(call, kernel, grid, block, cluster, smem, 0, ##__VA_ARGS__)
#define CUTEGEN_LAUNCH(call, kernel, grid, block, smem, ...)                                       \
    CUTEGEN_LAUNCH_EX(call, kernel, grid, block, cutegen_dim3(1, 1, 1), smem, 0, ##__VA_ARGS__)

/* C turns void * into any pointer by itself; this lets the same plan line do so in C++. */
struct cutegen_pointer {
    void *p;
    template <class T> operator T *() const
    {
        return static_cast<T *>(p);
    }
    explicit operator bool() const
    {
        return p != nullptr;
    }
};

static inline struct cutegen_pointer cutegen_workspace_at(struct cutegen_call *call, int line,
                                                          int64_t bytes)
{
    struct cutegen_export_state *s = (struct cutegen_export_state *)call->state;
    struct cutegen_pointer out = {nullptr};
    if (bytes < 0 || s->workspace_count == CUTEGEN_MAX_WORKSPACES) {
        cutegen_note(call, line, "workspace", bytes < 0 ? "negative size" : "too many");
        return out;
    }
    if (s->captured)
        s->after_launch = 0;
    if (cutegen_cuda(call, line, "workspace",
                     cudaMallocAsync(&out.p, bytes ? (size_t)bytes : 1, s->stream)) == 0)
        s->workspaces[s->workspace_count++] = out.p;
    return out;
}

static inline int cutegen_memset_at(struct cutegen_call *call, int line, void *ptr, int value,
                                    int64_t bytes)
{
    struct cutegen_export_state *s = (struct cutegen_export_state *)call->state;
    if (s->failed)
        return 1;
    s->after_launch = 0;
    return cutegen_cuda(call, line, "memset",
                        cudaMemsetAsync(ptr, value, (size_t)bytes, s->stream));
}

static inline int cutegen_map_dtype(int dtype)
{
    switch (dtype) {
    case CUTEGEN_U8:
    case CUTEGEN_I8:
    case CUTEGEN_BOOL:
        return CU_TENSOR_MAP_DATA_TYPE_UINT8;
    case CUTEGEN_I16:
        return CU_TENSOR_MAP_DATA_TYPE_UINT16;
    case CUTEGEN_I32:
        return CU_TENSOR_MAP_DATA_TYPE_INT32;
    case CUTEGEN_I64:
        return CU_TENSOR_MAP_DATA_TYPE_INT64;
    case CUTEGEN_F16:
        return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case CUTEGEN_BF16:
        return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case CUTEGEN_F32:
        return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    case CUTEGEN_F64:
        return CU_TENSOR_MAP_DATA_TYPE_FLOAT64;
    default:
        return -1;
    }
}

typedef CUresult (*cutegen_encode_fn)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *,
                                      const cuuint64_t *, const cuuint64_t *, const cuuint32_t *,
                                      const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                                      CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

static inline struct cutegen_map cutegen_map_at(struct cutegen_call *call, int line,
                                                const struct cutegen_map_spec *spec)
{
    struct cutegen_map out = {};
    cuuint64_t dims[CUTEGEN_MAP_RANK], strides[CUTEGEN_MAP_RANK];
    cuuint32_t box[CUTEGEN_MAP_RANK], steps[CUTEGEN_MAP_RANK];
    void *entry = nullptr;
    cudaDriverEntryPointQueryResult found;
    int dtype = cutegen_map_dtype(spec->dtype);

    if (spec->rank < 1 || spec->rank > CUTEGEN_MAP_RANK || dtype < 0) {
        cutegen_note(call, line, "tensor map", "rank or dtype");
        return out;
    }
    for (int i = 0; i < spec->rank; i++) {
        dims[i] = (cuuint64_t)spec->dims[i];
        strides[i] = (cuuint64_t)spec->strides_bytes[i];
        box[i] = (cuuint32_t)spec->box[i];
        steps[i] = spec->element_strides[i] ? (cuuint32_t)spec->element_strides[i] : 1;
    }
    if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault,
                                         &found) != cudaSuccess ||
        found != cudaDriverEntryPointSuccess) {
        cutegen_note(call, line, "tensor map", "the driver has no cuTensorMapEncodeTiled");
        return out;
    }
    if (((cutegen_encode_fn)entry)((CUtensorMap *)&out, (CUtensorMapDataType)dtype,
                                   (cuuint32_t)spec->rank, spec->data, dims, strides, box, steps,
                                   CU_TENSOR_MAP_INTERLEAVE_NONE, (CUtensorMapSwizzle)spec->swizzle,
                                   (CUtensorMapL2promotion)spec->l2,
                                   (CUtensorMapFloatOOBfill)spec->fill) != CUDA_SUCCESS)
        cutegen_note(call, line, "tensor map", "the driver rejects it");
    return out;
}

template <class P, class A> constexpr bool cutegen_fits()
{
    return sizeof(P) == sizeof(A) &&
           std::is_floating_point<P>::value == std::is_floating_point<A>::value;
}

template <class... P> struct cutegen_parameters {
    template <class... A> static constexpr bool fit()
    {
        if constexpr (sizeof...(P) == sizeof...(A))
            return (cutegen_fits<P, A>() && ...);
        else
            return true; /* the count has an assert of its own */
    }
};

template <class... P, class... A>
static inline int cutegen_launch_at(struct cutegen_call *call, int line, void (*kernel)(P...),
                                    struct cutegen_dim grid, struct cutegen_dim block,
                                    struct cutegen_dim cluster, int64_t smem, unsigned flags,
                                    A... args)
{
    static_assert(sizeof...(P) == sizeof...(A),
                  "CUTEGEN_LAUNCH: one argument for each parameter of the kernel");
    static_assert(
        cutegen_parameters<P...>::template fit<A...>(),
        "CUTEGEN_LAUNCH: an argument differs in size or kind from the kernel's parameter");
    struct cutegen_export_state *s = (struct cutegen_export_state *)call->state;
    void *values[] = {(void *)&args..., nullptr};
    cudaLaunchAttribute attributes[2] = {};
    cudaLaunchConfig_t config = {};

    if (s->failed)
        return 1;
    if (smem > 48 * 1024 &&
        cutegen_cuda(call, line, "shared memory",
                     cudaFuncSetAttribute((const void *)kernel,
                                          cudaFuncAttributeMaxDynamicSharedMemorySize, (int)smem)))
        return 1;
    config.gridDim = dim3((unsigned)grid.x, (unsigned)grid.y, (unsigned)grid.z);
    config.blockDim = dim3((unsigned)block.x, (unsigned)block.y, (unsigned)block.z);
    config.dynamicSmemBytes = (size_t)smem;
    config.stream = s->stream;
    config.attrs = attributes;
    if (cluster.x * cluster.y * cluster.z > 1) {
        cudaLaunchAttribute *a = &attributes[config.numAttrs++];
        a->id = cudaLaunchAttributeClusterDimension;
        a->val.clusterDim.x = (unsigned)cluster.x;
        a->val.clusterDim.y = (unsigned)cluster.y;
        a->val.clusterDim.z = (unsigned)cluster.z;
        if (cluster.x * cluster.y * cluster.z > 8)
            cudaFuncSetAttribute((const void *)kernel,
                                 cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    }
    if ((flags & CUTEGEN_OVERLAP) && s->after_launch) {
        cudaLaunchAttribute *a = &attributes[config.numAttrs++];
        a->id = cudaLaunchAttributeProgrammaticStreamSerialization;
        a->val.programmaticStreamSerializationAllowed = 1;
    }
    s->after_launch = 1;
    return cutegen_cuda(call, line, "launch",
                        cudaLaunchKernelExC(&config, (const void *)kernel, values));
}

/* ---- the entry ---------------------------------------------------------- */

static int cutegen_plan(struct cutegen_call *call);

static inline cudaError_t cutegen_this_device(struct cutegen_device *d)
{
    int id = 0, major = 0, minor = 0, sms = 0, smem = 0, l2 = 0;
    cudaError_t e = cudaGetDevice(&id);
    if (e == cudaSuccess)
        e = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, id);
    if (e == cudaSuccess)
        e = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, id);
    if (e == cudaSuccess)
        e = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, id);
    if (e == cudaSuccess)
        e = cudaDeviceGetAttribute(&smem, cudaDevAttrMaxSharedMemoryPerBlockOptin, id);
    if (e == cudaSuccess)
        e = cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, id);
    d->arch = major * 10 + minor;
    d->sm_count = sms;
    d->smem_block_bytes = smem;
    d->l2_bytes = l2;
    return e;
}

static inline int cutegen_captured(cudaStream_t stream)
{
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    return cudaStreamIsCapturing(stream, &status) == cudaSuccess &&
           status != cudaStreamCaptureStatusNone;
}

/* DLPack lets strides be NULL for row-major; plans need not know. */
static inline int cutegen_take_tensors(const struct cutegen_tensor *from, int count,
                                       struct cutegen_tensor *to,
                                       int64_t (*strides)[CUTEGEN_MAX_EXPORT_DIMS])
{
    if (count < 0 || count > CUTEGEN_MAX_EXPORT_TENSORS)
        return 0;
    for (int i = 0; i < count; i++) {
        int64_t step = 1;
        to[i] = from[i];
        if (from[i].ndim > CUTEGEN_MAX_EXPORT_DIMS)
            return 0;
        for (int d = from[i].ndim - 1; d >= 0; d--) {
            strides[i][d] = from[i].strides ? from[i].strides[d] : step;
            step *= from[i].shape[d];
        }
        to[i].strides = strides[i];
    }
    return 1;
}

/* Runs the kernel on `stream`. Returns 0, or 1 with the reason in `error`. */
extern "C" __attribute__((visibility("default"))) int
cutegen_call_kernel(const struct cutegen_tensor *in, int in_count, struct cutegen_tensor *out,
                    int out_count, const struct cutegen_scalar *scalars, int scalar_count,
                    void *stream, char *error, size_t error_len)
{
    struct cutegen_tensor ins[CUTEGEN_MAX_EXPORT_TENSORS], outs[CUTEGEN_MAX_EXPORT_TENSORS];
    int64_t in_strides[CUTEGEN_MAX_EXPORT_TENSORS][CUTEGEN_MAX_EXPORT_DIMS];
    int64_t out_strides[CUTEGEN_MAX_EXPORT_TENSORS][CUTEGEN_MAX_EXPORT_DIMS];
    struct cutegen_export_state state = {};
    struct cutegen_call call = {};

    state.stream = (cudaStream_t)stream;
    state.captured = cutegen_captured(state.stream);
    state.error = error;
    state.error_len = error_len;
    call.state = &state;
    call.abi_version = CUTEGEN_ABI_VERSION;
    call.in_count = in_count;
    call.out_count = out_count;
    call.scalar_count = scalar_count;
    call.in = ins;
    call.out = outs;
    call.scalar = scalars;
    if (!cutegen_take_tensors(in, in_count, ins, in_strides) ||
        !cutegen_take_tensors(out, out_count, outs, out_strides))
        return cutegen_note(&call, 0, "too many tensors or dimensions", nullptr);
    if (cutegen_cuda(&call, 0, "reading the device", cutegen_this_device(&call.device)))
        return 1;
    if (cutegen_plan(&call) != 0)
        cutegen_note(&call, 0, "the plan failed", nullptr);
    for (int i = 0; i < state.workspace_count; i++)
        cudaFreeAsync(state.workspaces[i], state.stream);
    return state.failed;
}

extern "C" __attribute__((visibility("default"))) int cutegen_abi_version(void)
{
    return CUTEGEN_ABI_VERSION;
}

#endif
