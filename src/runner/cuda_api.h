/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_api.h - the part of the CUDA driver API that the runner uses.
 *
 * Declared here so that building needs no CUDA header, and loaded with dlopen so that the same
 * program runs without a GPU. The table names each entry point as the library exports it; NVIDIA's
 * header maps plain names to the "_v2" ones.
 *
 * To add a call: one row in CUDA_CALLS (or CUDA_OPTIONAL_CALLS, NULL where the
 * driver lacks it), then use cuda->name(...).
 */
#ifndef RUNNER_CUDA_API_H
#define RUNNER_CUDA_API_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum {
    CUDA_OK = 0,
    CUDA_INVALID_VALUE = 1,
    CUDA_OUT_OF_MEMORY = 2,
    CUDA_NO_DEVICE = 100,
    CUDA_LAUNCH_OUT_OF_RESOURCES = 701,
    CUDA_LAUNCH_TIMEOUT = 702,
    CUDA_INVALID_CLUSTER_SIZE = 912,
    /* CUdevice_attribute */
    CUDA_ATTR_THREADS_BLOCK = 1,
    CUDA_ATTR_BLOCK_X = 2, /* y, z follow */
    CUDA_ATTR_GRID_X = 5,  /* y, z follow */
    CUDA_ATTR_SM_COUNT = 16,
    CUDA_ATTR_L2_BYTES = 38,
    CUDA_ATTR_PCI_BUS = 33,
    CUDA_ATTR_PCI_DEVICE = 34,
    CUDA_ATTR_PCI_DOMAIN = 50,
    CUDA_ATTR_MAJOR = 75,
    CUDA_ATTR_MINOR = 76,
    CUDA_ATTR_SMEM_OPTIN = 97,
    CUDA_ATTR_CLUSTER_LAUNCH = 120,
    CUDA_ATTR_TENSOR_MAP = 127,
    /* CUfunction_attribute */
    CUDA_FUNC_MAX_THREADS = 0,
    CUDA_FUNC_STATIC_SMEM = 1,
    CUDA_FUNC_LOCAL_BYTES = 3,
    CUDA_FUNC_REGISTERS = 4,
    CUDA_FUNC_DYNAMIC_SMEM = 8,
    CUDA_FUNC_CLUSTER_MUST_BE_SET = 10,
    CUDA_FUNC_NON_PORTABLE_CLUSTER = 14,
    /* CUjit_option */
    CUDA_JIT_ERROR_LOG = 5,
    CUDA_JIT_ERROR_LOG_BYTES = 6,
    /* the rest */
    CUDA_LAUNCH_CLUSTER_DIMENSION = 4,
    CUDA_LAUNCH_PROGRAMMATIC_SERIALIZATION = 6,
    CUDA_STREAM_NON_BLOCKING = 1,
    CUDA_CAPTURE_THREAD_LOCAL = 1,
    CUDA_IPC_LAZY_PEER_ACCESS = 1,
    CUDA_IPC_HANDLE_BYTES = 64,
};

struct cuda_ipc_handle {
    char reserved[CUDA_IPC_HANDLE_BYTES];
};

struct cuda_launch_attribute {
    int id;
    char pad[4];
    union {
        char pad[64];
        unsigned cluster[3];
        int programmatic;
        uint64_t align; /* the driver's union holds pointers */
    } value;
};

struct cuda_launch_config {
    unsigned grid[3], block[3], smem;
    void *stream;
    struct cuda_launch_attribute *attributes;
    unsigned attribute_count;
};

struct cuda_tensor_map {
    _Alignas(64) uint64_t opaque[16];
};

/* X(name, arguments, symbol); everything returns CUresult, an int. Handles
 * (context, module, function, stream, event, graph) are pointers. */
#define CUDA_CALLS(X)                                                                              \
    X(init, (unsigned flags), "cuInit")                                                            \
    X(driver_version, (int *version), "cuDriverGetVersion")                                        \
    X(error_name, (int error, const char **out), "cuGetErrorName")                                 \
    X(error_string, (int error, const char **out), "cuGetErrorString")                             \
    X(device_get, (int *device, int ordinal), "cuDeviceGet")                                       \
    X(device_name, (char *name, int len, int device), "cuDeviceGetName")                           \
    X(device_attribute, (int *out, int attribute, int device), "cuDeviceGetAttribute")             \
    X(device_memory, (size_t * bytes, int device), "cuDeviceTotalMem_v2")                          \
    X(context_retain, (void **context, int device), "cuDevicePrimaryCtxRetain")                    \
    X(context_set, (void *context), "cuCtxSetCurrent")                                             \
    X(module_load,                                                                                 \
      (void **module, const void *image, unsigned count, int *options, void **values),             \
      "cuModuleLoadDataEx")                                                                        \
    X(module_function, (void **function, void *module, const char *name), "cuModuleGetFunction")   \
    X(function_get, (int *out, int attribute, void *function), "cuFuncGetAttribute")               \
    X(function_set, (void *function, int attribute, int value), "cuFuncSetAttribute")              \
    X(alloc, (uint64_t * address, size_t bytes), "cuMemAlloc_v2")                                  \
    X(release, (uint64_t address), "cuMemFree_v2")                                                 \
    X(memset8, (uint64_t address, unsigned char value, size_t count, void *stream),                \
      "cuMemsetD8Async")                                                                           \
    X(copy_to_host, (void *to, uint64_t from, size_t bytes, void *stream), "cuMemcpyDtoHAsync_v2") \
    X(ipc_open, (uint64_t * address, struct cuda_ipc_handle handle, unsigned flags),               \
      "cuIpcOpenMemHandle_v2")                                                                     \
    X(address_range, (uint64_t * base, size_t * size, uint64_t address),                           \
      "cuMemGetAddressRange_v2")                                                                   \
    X(stream_create, (void **stream, unsigned flags), "cuStreamCreate")                            \
    X(stream_wait, (void *stream), "cuStreamSynchronize")                                          \
    X(capture_begin, (void *stream, int mode), "cuStreamBeginCapture_v2")                          \
    X(capture_end, (void *stream, void **graph), "cuStreamEndCapture")                             \
    X(graph_instantiate, (void **exec, void *graph, unsigned long long flags),                     \
      "cuGraphInstantiateWithFlags")                                                               \
    X(graph_launch, (void *exec, void *stream), "cuGraphLaunch")                                   \
    X(graph_upload, (void *exec, void *stream), "cuGraphUpload")                                   \
    X(graph_destroy, (void *graph), "cuGraphDestroy")                                              \
    X(exec_destroy, (void *exec), "cuGraphExecDestroy")                                            \
    X(launch_ex,                                                                                   \
      (const struct cuda_launch_config *config, void *function, void **params, void **extra),      \
      "cuLaunchKernelEx")                                                                          \
    X(event_create, (void **event, unsigned flags), "cuEventCreate")                               \
    X(event_record, (void *event, void *stream), "cuEventRecord")                                  \
    X(event_elapsed, (float *ms, void *start, void *end), "cuEventElapsedTime")

#define CUDA_OPTIONAL_CALLS(X)                                                                     \
    X(reset_kept, (void), "cuCtxResetPersistingL2Cache")                                           \
    X(function_param, (void *function, size_t index, size_t *offset, size_t *size),                \
      "cuFuncGetParamInfo")                                                                        \
    X(map_encode,                                                                                  \
      (struct cuda_tensor_map * map, int dtype, uint32_t rank, void *address,                      \
       const uint64_t *dims, const uint64_t *strides, const uint32_t *box,                         \
       const uint32_t *element_strides, int interleave, int swizzle, int l2, int fill),            \
      "cuTensorMapEncodeTiled")

struct cuda_api {
#define CUDA_MEMBER(name, args, symbol) int(*name) args;
    CUDA_CALLS(CUDA_MEMBER)
    CUDA_OPTIONAL_CALLS(CUDA_MEMBER)
#undef CUDA_MEMBER
};

/* Loads libcuda.so.1; the library stays for the life of the process. */
bool cuda_api_open(struct cuda_api *out, struct error *err);

#endif
