/* SPDX-License-Identifier: Apache-2.0 */
/* core.c - the one device of the process: opening, its properties, errors as text. */
#include "simt/cuda/cuda.h"

#include "base/error.h"
#include "base/json.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct cuda the_device = {.report_fd = -1};
static bool opened, failed;
static pthread_mutex_t lock;
static pthread_once_t lock_once = PTHREAD_ONCE_INIT;

static void lock_make(void)
{
    pthread_mutexattr_t a;

    pthread_mutexattr_init(&a);
    pthread_mutexattr_settype(&a, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&lock, &a);
    pthread_mutexattr_destroy(&a);
}

void cuda_lock(void)
{
    pthread_once(&lock_once, lock_make);
    pthread_mutex_lock(&lock);
}

void cuda_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

void cuda_say(const char *fmt, ...)
{
    enum { KEPT = 64 };
    static char *said[KEPT];
    static size_t count;
    char line[2048];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    cuda_lock();
    for (size_t i = 0; i < count; i++)
        if (strcmp(said[i], line) == 0) {
            cuda_unlock();
            return;
        }
    if (count < KEPT)
        said[count++] = xstrdup(line);
    cuda_unlock();
    fprintf(stderr, "cutegen simt: %s\n", line);
}

int cuda_unsupported(const char *name)
{
    cuda_say("%s is not supported: this device has no such thing", name);
    return CU_NOT_SUPPORTED;
}

static void read_gpu(const json_t *v, struct cu_gpu *g)
{
    *g = (struct cu_gpu){.name = "NVIDIA H200",
                         .major = 9,
                         .sms = 132,
                         .clock_khz = 1980000,
                         .threads_sm = 2048,
                         .blocks_sm = 32,
                         .regs_sm = 65536,
                         .smem_sm_bytes = 228 << 10,
                         .smem_block_bytes = 227 << 10,
                         .l2_bytes = 60 << 20,
                         .memory_bytes = (uint64_t)16 << 30};
    snprintf(g->name, sizeof g->name, "%s", json_string_or(v, "name", g->name));
    g->major = (int)json_int_or(v, "major", g->major);
    g->minor = (int)json_int_or(v, "minor", g->minor);
    g->sms = (int)json_int_or(v, "sms", g->sms);
    g->clock_khz = (int)json_int_or(v, "clock_khz", g->clock_khz);
    g->threads_sm = (int)json_int_or(v, "threads_sm", g->threads_sm);
    g->blocks_sm = (int)json_int_or(v, "blocks_sm", g->blocks_sm);
    g->regs_sm = (int)json_int_or(v, "regs_sm", g->regs_sm);
    g->smem_sm_bytes = (int)json_int_or(v, "smem_sm_bytes", g->smem_sm_bytes);
    g->smem_block_bytes = (int)json_int_or(v, "smem_block_bytes", g->smem_block_bytes);
    g->l2_bytes = (int)json_int_or(v, "l2_bytes", g->l2_bytes);
    g->memory_bytes = (uint64_t)json_int_or(v, "memory_bytes", (int64_t)g->memory_bytes);
}

static enum simt_check check_of(const char *name)
{
    return strcmp(name, "off") == 0      ? SIMT_CHECK_OFF
           : strcmp(name, "memory") == 0 ? SIMT_CHECK_MEMORY
                                         : SIMT_CHECK_FULL;
}

static bool open_device(struct cuda *c, struct error *err)
{
    const char *text = getenv("CUTEGEN_SIMT_EXEC"), *report;
    struct simt_config config = {0};
    json_t *v = NULL;
    bool ok;

    if (text && *text && !json_parse(text_of(text), "CUTEGEN_SIMT_EXEC", &v, err))
        return false;
    read_gpu(v, &c->gpu);
    config.check = check_of(json_string_or(v, "check", "full"));
    config.threads = (int)json_int_or(v, "threads", 0);
    config.watchdog_ms = (int)json_int_or(v, "watchdog_ms", 600000);
    config.max_shared_bytes = (uint32_t)c->gpu.smem_block_bytes;
    report = json_string_or(v, "report", "");
    if (*report)
        c->report_fd = open(report, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    ok = simt_open(&config, &c->simt, err);
    json_decref(v);
    return ok;
}

struct cuda *cuda_get(void)
{
    struct error err = {0};

    cuda_lock();
    if (!opened && !failed) {
        if (open_device(&the_device, &err)) {
            opened = true;
        } else {
            failed = true;
            fprintf(stderr, "cutegen simt: %s\n", err.text);
        }
    }
    cuda_unlock();
    return opened ? &the_device : NULL;
}

/* Attributes that are what this device is, by number of CUdevice_attribute; all others are 0. */
int gpu_attribute(const struct cu_gpu *g, int attribute)
{
    static const struct {
        int attribute, value;
    } fixed[] = {
        {1, 1024},  {2, 1024},     {3, 1024},  {4, 64},         {5, INT32_MAX},   {6, 65535},
        {7, 65535}, {8, 48 << 10}, {9, 65536}, {10, 32},        {11, INT32_MAX},  {14, 512},
        {15, 1},    {19, 1},       {30, 512},  {31, 1},         {32, 1},          {36, 3200000},
        {37, 6144}, {40, 3},       {41, 1},    {51, 32},        {78, 1},          {79, 1},
        {80, 1},    {83, 1},       {87, 2},    {89, 1},         {90, 1},          {91, 1},
        {95, 1},    {99, 1},       {100, 0},   {108, 32 << 20}, {109, 128 << 20}, {111, 1024},
        {113, 1},   {115, 1},      {126, 4},   {129, 1},
    };

    switch (attribute) {
    case 12:
    case 82:
        return g->regs_sm;
    case 13:
        return g->clock_khz;
    case 16:
        return g->sms;
    case 38:
        return g->l2_bytes;
    case 39:
        return g->threads_sm;
    case 75:
        return g->major;
    case 76:
        return g->minor;
    case 81:
        return g->smem_sm_bytes;
    case 97:
        return g->smem_block_bytes;
    case 106:
        return g->blocks_sm;
    case 120: /* clusters, tensor maps */
    case 127:
        return g->major >= 9;
    default:
        for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
            if (fixed[i].attribute == attribute)
                return fixed[i].value;
        return 0;
    }
}

static const struct cu_error {
    int number;
    const char *driver, *runtime, *text;
} errors[] = {
    {CU_OK, "CUDA_SUCCESS", "cudaSuccess", "no error"},
    {CU_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "cudaErrorInvalidValue", "invalid argument"},
    {CU_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "cudaErrorMemoryAllocation", "out of memory"},
    {CU_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "cudaErrorInitializationError",
     "initialization error"},
    {98, "CUDA_ERROR_UNKNOWN", "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {9, "CUDA_ERROR_UNKNOWN", "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {13, "CUDA_ERROR_UNKNOWN", "cudaErrorInvalidSymbol", "invalid device symbol"},
    {CU_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "cudaErrorNoDevice",
     "no CUDA-capable device is detected"},
    {CU_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "cudaErrorInvalidDevice",
     "invalid device ordinal"},
    {CU_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "cudaErrorInvalidKernelImage",
     "device kernel image is invalid"},
    {CU_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "cudaErrorDeviceUninitialized",
     "invalid device context"},
    {CU_NO_BINARY, "CUDA_ERROR_NO_BINARY_FOR_GPU", "cudaErrorNoKernelImageForDevice",
     "no kernel image is available for execution on the device"},
    {CU_PEER_UNSUPPORTED, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", "cudaErrorPeerAccessUnsupported",
     "peer access is not supported between these two devices"},
    {CU_INVALID_PTX, "CUDA_ERROR_INVALID_PTX", "cudaErrorInvalidPtx",
     "a PTX JIT compilation failed"},
    {CU_FILE_NOT_FOUND, "CUDA_ERROR_FILE_NOT_FOUND", "cudaErrorFileNotFound", "file not found"},
    {CU_OPERATING_SYSTEM, "CUDA_ERROR_OPERATING_SYSTEM", "cudaErrorOperatingSystem",
     "OS call failed or operation not supported on this OS"},
    {CU_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "cudaErrorInvalidResourceHandle",
     "invalid resource handle"},
    {CU_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "cudaErrorSymbolNotFound", "named symbol not found"},
    {600, "CUDA_ERROR_NOT_READY", "cudaErrorNotReady", "device not ready"},
    {CU_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "cudaErrorIllegalAddress",
     "an illegal memory access was encountered"},
    {CU_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "cudaErrorLaunchOutOfResources",
     "too many resources requested for launch"},
    {CU_TIMEOUT, "CUDA_ERROR_LAUNCH_TIMEOUT", "cudaErrorLaunchTimeout",
     "the launch timed out and was terminated"},
    {CU_ASSERT, "CUDA_ERROR_ASSERT", "cudaErrorAssert", "device-side assert triggered"},
    {CU_ALREADY_REGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
     "cudaErrorHostMemoryAlreadyRegistered", "part or all of the memory is already mapped"},
    {CU_NOT_REGISTERED, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "cudaErrorHostMemoryNotRegistered",
     "pointer does not correspond to a registered memory region"},
    {CU_MISALIGNED, "CUDA_ERROR_MISALIGNED_ADDRESS", "cudaErrorMisalignedAddress",
     "misaligned address"},
    {CU_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "cudaErrorLaunchFailure",
     "unspecified launch failure"},
    {CU_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "cudaErrorNotSupported",
     "operation not supported"},
    {CU_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "cudaErrorStreamCaptureUnsupported", "operation not permitted when stream is capturing"},
    {CU_CAPTURE_UNMATCHED, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "cudaErrorStreamCaptureUnmatched",
     "capture was not initiated in this stream"},
    {CU_INVALID_CLUSTER, "CUDA_ERROR_INVALID_CLUSTER_SIZE", "cudaErrorInvalidClusterSize",
     "the cluster dimensions are not valid"},
    {CU_UNKNOWN, "CUDA_ERROR_UNKNOWN", "cudaErrorUnknown", "unknown error"},
};

static const struct cu_error *error_row(int error)
{
    for (size_t i = 0; i < ARRAY_LEN(errors); i++)
        if (errors[i].number == error)
            return &errors[i];
    return NULL;
}

const char *cuda_error_name(int error)
{
    const struct cu_error *r = error_row(error);

    return r ? r->driver : NULL;
}

const char *cuda_error_text(int error)
{
    const struct cu_error *r = error_row(error);

    return r ? r->text : NULL;
}

const char *runtime_error_name(int error)
{
    const struct cu_error *r = error_row(error);

    return r ? r->runtime : NULL;
}
