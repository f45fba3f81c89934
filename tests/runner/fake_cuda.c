/*
 * fake_cuda.c - a libcuda.so.1 that is host memory and a log.
 *
 * For testing what the runner asks of the driver where there is no GPU.
 * Device memory is host memory; an IPC handle holds the path of a file to
 * map; a module is text, one kernel per line: NAME PARAM_BYTES...
 *
 *     scale OUT IN COUNT     out[i] = 2 * in[i], floats
 *     stomp OUT BYTES        writes BYTES bytes of zeros from OUT on
 *     hoard AT BYTES         another bit at AT + BYTES, from its 30th run to the 199th
 *     stray AT BYTES         the same in the buffer that was opened first, wherever AT is
 *     others                 do nothing
 *
 * Every call that does something goes to the file $FAKE_CUDA_LOG.
 * $FAKE_CUDA_FAIL is "CALL:NUMBER:RESULT": that call's NUMBER-th use fails.
 */
#include "runner/cuda_api.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { MAX_KERNELS = 16, MAX_PARAMS = 8, MAX_STEPS = 64, PARAM_ROOM = 128 };

struct kernel {
    char name[64];
    size_t params[MAX_PARAMS];
    size_t count;
};

struct step {
    struct kernel *kernel; /* NULL: memset */
    unsigned char params[MAX_PARAMS][PARAM_ROOM];
    uint64_t address;
    unsigned char value;
    size_t bytes;
    unsigned cluster, overlap, grid, smem;
};

struct graph {
    struct step steps[MAX_STEPS];
    size_t count;
};

static struct kernel kernels[MAX_KERNELS];
static size_t kernel_count;
static struct graph *capturing;
static float now_ms;
static int lazy_runs, hoard_runs;
static struct mapping {
    uint64_t start;
    size_t size;
} mapped[64];
static size_t mapped_count;

static void note(const char *what)
{
    const char *path = getenv("FAKE_CUDA_LOG");
    FILE *f = path ? fopen(path, "a") : NULL;

    if (!f)
        return;
    fprintf(f, "%s\n", what);
    fclose(f);
}

/* The result this use of the call shall have. */
static int fate(const char *call)
{
    static struct {
        char name[64];
        int count;
    } uses[64];
    const char *wanted = getenv("FAKE_CUDA_FAIL");
    char name[64] = "";
    int number = 0, result = 0;
    size_t i = 0;

    while (i < 63 && uses[i].name[0] && strcmp(uses[i].name, call) != 0)
        i++;
    snprintf(uses[i].name, sizeof uses[i].name, "%s", call);
    uses[i].count++;
    if (wanted && sscanf(wanted, "%63[^:]:%d:%d", name, &number, &result) == 3 &&
        strcmp(name, call) == 0 && number == uses[i].count)
        return result;
    return 0;
}

#define CALL(name, ...)                                                                            \
    int name(__VA_ARGS__);                                                                         \
    int name(__VA_ARGS__)

/* As driver 580 begins: it names a thread through /proc, where one that is not dumpable has nothing
 * of its own, and listens at a socket. */
static bool begins(void)
{
    struct sockaddr_un own = {.sun_family = AF_UNIX};
    char path[64];
    int name, s;
    bool ok;

    snprintf(path, sizeof path, "/proc/self/task/%d/comm", (int)gettid());
    name = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    snprintf(own.sun_path + 1, 64, "fake-cuda-%d", (int)getpid());
    ok = name >= 0 && prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 1 && s >= 0 &&
         bind(s, (const struct sockaddr *)&own, sizeof own) == 0 && listen(s, 8) == 0;
    if (name >= 0)
        close(name);
    return ok; /* the socket stays */
}

CALL(cuInit, unsigned flags)
{
    static bool begun;

    (void)flags;
    if (!begun && !begins())
        return 304;
    begun = true;
    return fate("cuInit");
}

CALL(cuDriverGetVersion, int *version)
{
    *version = 13000;
    return 0;
}

CALL(cuGetErrorName, int error, const char **out)
{
    *out = error == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_OTHER";
    return 0;
}

CALL(cuGetErrorString, int error, const char **out)
{
    (void)error;
    *out = "as told";
    return 0;
}

CALL(cuDeviceGet, int *device, int ordinal)
{
    *device = ordinal;
    return ordinal == 0 ? 0 : 101;
}

CALL(cuDeviceGetName, char *name, int len, int device)
{
    (void)device;
    snprintf(name, (size_t)len, "NVIDIA Fake");
    return 0;
}

CALL(cuDeviceGetAttribute, int *out, int attribute, int device)
{
    (void)device;
    *out = attribute == CUDA_ATTR_MAJOR                                         ? 9
           : attribute == CUDA_ATTR_MINOR                                       ? 0
           : attribute == CUDA_ATTR_SM_COUNT                                    ? 4
           : attribute == CUDA_ATTR_L2_BYTES                                    ? 1 << 20
           : attribute == CUDA_ATTR_SMEM_OPTIN                                  ? 232448
           : attribute >= CUDA_ATTR_BLOCK_X && attribute < CUDA_ATTR_GRID_X + 3 ? 1024
           : attribute == CUDA_ATTR_THREADS_BLOCK                               ? 1024
                                                                                : 1;
    return 0;
}

CALL(cuDeviceTotalMem_v2, size_t *bytes, int device)
{
    (void)device;
    *bytes = (size_t)1 << 30;
    return 0;
}

CALL(cuDevicePrimaryCtxRetain, void **context, int device)
{
    (void)device;
    *context = kernels;
    return 0;
}

CALL(cuCtxSetCurrent, void *context)
{
    (void)context;
    return 0;
}

CALL(cuModuleLoadDataEx, void **module, const void *image, unsigned count, int *options,
     void **values)
{
    const char *text = image;
    int used;

    (void)count;
    (void)options;
    (void)values;
    *module = kernels;
    if (strncmp(text, ".version", 8) == 0) { /* the runner's own tools */
        static const struct {
            const char *name;
            size_t params;
        } tools[] = {{"cutegen_flush", 3},
                     {"cutegen_wait", 1},
                     {"cutegen_hash", 4},
                     {"cutegen_fill", 3},
                     {"cutegen_scrub", 1}};

        for (size_t t = 0; t < sizeof tools / sizeof *tools; t++) {
            struct kernel *k = &kernels[kernel_count++];

            snprintf(k->name, sizeof k->name, "%s", tools[t].name);
            k->count = tools[t].params;
            for (size_t i = 0; i < k->count; i++)
                k->params[i] = 8;
        }
        return 0;
    }
    while (sscanf(text, " %63s%n", kernels[kernel_count].name, &used) == 1) {
        struct kernel *k = &kernels[kernel_count++];

        text += used;
        while (*text == ' ' && sscanf(text, "%zu%n", &k->params[k->count], &used) == 1) {
            k->count++;
            text += used;
        }
    }
    return fate("cuModuleLoadDataEx");
}

CALL(cuModuleGetFunction, void **function, void *module, const char *name)
{
    (void)module;
    for (size_t i = 0; i < kernel_count; i++)
        if (strcmp(kernels[i].name, name) == 0) {
            *function = &kernels[i];
            return 0;
        }
    return 500;
}

CALL(cuFuncGetAttribute, int *out, int attribute, void *function)
{
    (void)function;
    *out = attribute == CUDA_FUNC_MAX_THREADS ? 1024 : 0;
    return 0;
}

CALL(cuFuncSetAttribute, void *function, int attribute, int value)
{
    char line[128];

    (void)function;
    snprintf(line, sizeof line, "set attribute %d to %d", attribute, value);
    note(line);
    return 0;
}

CALL(cuFuncGetParamInfo, void *function, size_t index, size_t *offset, size_t *size)
{
    const struct kernel *k = function;

    if (index >= k->count)
        return CUDA_INVALID_VALUE;
    *offset = 8 * index;
    *size = k->params[index];
    return 0;
}

CALL(cuMemAlloc_v2, uint64_t *address, size_t bytes)
{
    *address = (uint64_t)(uintptr_t)calloc(1, bytes);
    return fate("cuMemAlloc_v2");
}

CALL(cuMemFree_v2, uint64_t address)
{
    free((void *)(uintptr_t)address);
    return 0;
}

CALL(cuIpcOpenMemHandle_v2, uint64_t *address, struct cuda_ipc_handle handle, unsigned flags)
{
    struct stat st;
    int fd = open(handle.reserved, O_RDWR);

    (void)flags;
    note("open handle");
    if (fd < 0 || fstat(fd, &st) != 0)
        return CUDA_INVALID_VALUE;
    *address = (uint64_t)(uintptr_t)mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE,
                                         MAP_SHARED, fd, 0);
    close(fd);
    mapped[mapped_count++ % 64] = (struct mapping){*address, (size_t)st.st_size};
    return 0;
}

CALL(cuMemGetAddressRange_v2, uint64_t *base, size_t *size, uint64_t address)
{
    for (size_t i = 0; i < 64; i++)
        if (address - mapped[i].start < mapped[i].size) {
            *base = mapped[i].start;
            *size = mapped[i].size;
            return 0;
        }
    return CUDA_INVALID_VALUE;
}

CALL(cuStreamCreate, void **stream, unsigned flags)
{
    (void)flags;
    *stream = kernels;
    return 0;
}

CALL(cuCtxResetPersistingL2Cache, void)
{
    note("nothing is kept");
    return 0;
}

CALL(cuStreamSynchronize, void *stream)
{
    (void)stream;
    return fate("cuStreamSynchronize");
}

/* ---- steps -------------------------------------------------------------- */

static uint64_t word(const struct step *s, int index)
{
    uint64_t v = 0;

    memcpy(&v, s->params[index], s->kernel->params[index] < 8 ? s->kernel->params[index] : 8);
    return v;
}

static void carry_out(const struct step *s)
{
    char line[256];

    now_ms += 0.01f;
    if (!s->kernel) {
        snprintf(line, sizeof line, "memset %02x %zu", s->value, s->bytes);
        note(line);
        memset((void *)(uintptr_t)s->address, s->value, s->bytes);
        return;
    }
    snprintf(line, sizeof line, "launch %s grid %u cluster %u overlap %u smem %u", s->kernel->name,
             s->grid, s->cluster, s->overlap, s->smem);
    note(line);
    if (strcmp(s->kernel->name, "scale") == 0)
        for (uint64_t i = 0; i < word(s, 2); i++)
            ((float *)(uintptr_t)word(s, 0))[i] = 2 * ((float *)(uintptr_t)word(s, 1))[i];
    if (strcmp(s->kernel->name, "cutegen_fill") == 0)
        for (uint64_t i = 0; i < word(s, 1); i++)
            ((uint64_t *)(uintptr_t)word(s, 0))[i] = word(s, 2);
    if (strcmp(s->kernel->name, "cutegen_hash") == 0)
        for (uint64_t i = 0; i < word(s, 1); i++)
            *(uint64_t *)(uintptr_t)word(s, 3) +=
                (2 * i + 1) * ((const uint64_t *)(uintptr_t)word(s, 0))[i];
    if (strcmp(s->kernel->name, "lazy") == 0 && ++lazy_runs % 2) /* every other time it works */
        for (uint64_t i = 0; i < word(s, 2); i++)
            ((float *)(uintptr_t)word(s, 0))[i] = 2 * ((float *)(uintptr_t)word(s, 1))[i];
    if (strcmp(s->kernel->name, "hoard") == 0 && (++hoard_runs == 30 || hoard_runs == 200))
        *(unsigned char *)(uintptr_t)(word(s, 0) + word(s, 1)) ^= 1;
    if (strcmp(s->kernel->name, "stray") == 0 && (++hoard_runs == 30 || hoard_runs == 200))
        *(unsigned char *)(uintptr_t)(mapped[0].start + word(s, 1)) ^= 1;
    if (strcmp(s->kernel->name, "stomp") == 0)
        memset((void *)(uintptr_t)word(s, 0), 0, word(s, 1));
}

static void add_step(const struct step *s)
{
    if (capturing)
        capturing->steps[capturing->count++] = *s;
    else
        carry_out(s);
}

CALL(cuMemsetD8Async, uint64_t address, unsigned char value, size_t count, void *stream)
{
    struct step s = {.address = address, .value = value, .bytes = count};

    (void)stream;
    add_step(&s);
    return fate("cuMemsetD8Async");
}

CALL(cuMemcpyDtoHAsync_v2, void *to, uint64_t from, size_t bytes, void *stream)
{
    (void)stream;
    memcpy(to, (void *)(uintptr_t)from, bytes);
    return 0;
}

CALL(cuLaunchKernelEx, const struct cuda_launch_config *config, void *function, void **params,
     void **extra)
{
    struct step s = {.kernel = function, .grid = config->grid[0], .smem = config->smem};

    (void)extra;
    for (unsigned i = 0; i < config->attribute_count; i++) {
        const struct cuda_launch_attribute *a = &config->attributes[i];

        if (a->id == CUDA_LAUNCH_CLUSTER_DIMENSION)
            s.cluster = a->value.cluster[0] * a->value.cluster[1] * a->value.cluster[2];
        if (a->id == CUDA_LAUNCH_PROGRAMMATIC_SERIALIZATION)
            s.overlap = (unsigned)a->value.programmatic;
    }
    for (size_t i = 0; i < s.kernel->count; i++)
        memcpy(s.params[i], params[i], s.kernel->params[i]);
    add_step(&s);
    return fate("cuLaunchKernelEx");
}

CALL(cuStreamBeginCapture_v2, void *stream, int mode)
{
    (void)stream;
    (void)mode;
    note("begin capture");
    capturing = calloc(1, sizeof *capturing);
    return 0;
}

CALL(cuStreamEndCapture, void *stream, void **graph)
{
    (void)stream;
    note("end capture");
    *graph = capturing;
    capturing = NULL;
    return 0;
}

CALL(cuGraphInstantiateWithFlags, void **exec, void *graph, unsigned long long flags)
{
    (void)flags;
    *exec = calloc(1, sizeof(struct graph));
    memcpy(*exec, graph, sizeof(struct graph));
    return fate("cuGraphInstantiateWithFlags");
}

CALL(cuGraphLaunch, void *exec, void *stream)
{
    const struct graph *g = exec;

    (void)stream;
    note("graph");
    for (size_t i = 0; i < g->count; i++)
        carry_out(&g->steps[i]);
    return fate("cuGraphLaunch");
}

CALL(cuGraphUpload, void *exec, void *stream)
{
    (void)exec;
    (void)stream;
    return 0;
}

CALL(cuGraphDestroy, void *graph)
{
    free(graph);
    return 0;
}

CALL(cuGraphExecDestroy, void *exec)
{
    free(exec);
    return 0;
}

CALL(cuEventCreate, void **event, unsigned flags)
{
    (void)flags;
    *event = calloc(1, sizeof(float));
    return 0;
}

CALL(cuEventRecord, void *event, void *stream)
{
    (void)stream;
    note("event");
    *(float *)event = now_ms;
    return 0;
}

CALL(cuEventElapsedTime, float *ms, void *start, void *end)
{
    *ms = *(float *)end - *(float *)start;
    return 0;
}

CALL(cuTensorMapEncodeTiled, struct cuda_tensor_map *map, int dtype, uint32_t rank, void *address,
     const uint64_t *dims, const uint64_t *strides, const uint32_t *box, const uint32_t *steps,
     int interleave, int swizzle, int l2, int fill)
{
    char line[256];

    (void)address;
    (void)strides;
    (void)interleave;
    memset(map, 0, sizeof *map);
    snprintf(line, sizeof line,
             "map dtype %d rank %u dims %llu %llu box %u step %u swizzle %d l2 %d fill %d", dtype,
             rank, (unsigned long long)dims[0], (unsigned long long)dims[1], box[0], steps[0],
             swizzle, l2, fill);
    note(line);
    return (uintptr_t)map % 64 ? CUDA_INVALID_VALUE : fate("cuTensorMapEncodeTiled");
}
