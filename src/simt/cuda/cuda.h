/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda.h - the CUDA driver and runtime interfaces on top of simt: declarations shared by their
 * files.
 *
 * One shared object is libcuda.so.1 and libcudart.so.13 of a program that
 * `cutegen simt exec` starts. The program's calls become struct cu_work (a launch,
 * a copy, a fill, ...), which is executed at once or, while its stream is captured, added to a
 * graph.
 *
 * Invariants
 * 1. Work is done before the call returns, in the order of the calls: this satisfies any stream
 *    ordering that a program can rely on, and nothing is ever pending.
 * 2. Device addresses are host addresses of this process.
 * 3. One lock (cuda_lock) is held over each call; it is recursive, so that host functions may call
 *    back.
 *
 * Results are CUresult, an int; cudaError_t has the same numbers.
 */
#ifndef SIMT_CUDA_CUDA_H
#define SIMT_CUDA_CUDA_H

#include "simt/simt.h"

#include "base/mem.h"

#include <stddef.h>
#include <stdint.h>

#define API __attribute__((visibility("default")))

enum cuda_result {
    CU_OK = 0,
    CU_INVALID_VALUE = 1,
    CU_OUT_OF_MEMORY = 2,
    CU_NOT_INITIALIZED = 3,
    CU_NO_DEVICE = 100,
    CU_INVALID_DEVICE = 101,
    CU_INVALID_IMAGE = 200,
    CU_INVALID_CONTEXT = 201,
    CU_NO_BINARY = 209,
    CU_INVALID_PTX = 218,
    CU_FILE_NOT_FOUND = 301,
    CU_OPERATING_SYSTEM = 304,
    CU_INVALID_HANDLE = 400,
    CU_NOT_FOUND = 500,
    CU_ILLEGAL_ADDRESS = 700,
    CU_OUT_OF_RESOURCES = 701,
    CU_TIMEOUT = 702,
    CU_PEER_UNSUPPORTED = 217,
    CU_ASSERT = 710,
    CU_ALREADY_REGISTERED = 712,
    CU_NOT_REGISTERED = 713,
    CU_MISALIGNED = 716,
    CU_LAUNCH_FAILED = 719,
    CU_NOT_SUPPORTED = 801,
    CU_CAPTURE_UNSUPPORTED = 900,
    CU_CAPTURE_UNMATCHED = 903,
    CU_INVALID_CLUSTER = 912,
    CU_UNKNOWN = 999,
};

/* ---- the device (core.c) ------------------------------------------------ */

/* The device's properties; from $CUTEGEN_SIMT_EXEC, else an H200's. */
struct cu_gpu {
    char name[64];
    int major, minor, sms, clock_khz;
    int threads_sm, blocks_sm, regs_sm;
    int smem_sm_bytes, smem_block_bytes, l2_bytes;
    uint64_t memory_bytes;
};

struct cuda {
    struct simt *simt;
    struct cu_gpu gpu;
    int report_fd;     /* JSON lines; -1: none */
    int sticky;        /* a launch failed: every later call returns the error */
    uint64_t launches; /* so far */
    const void *order; /* the stream or graph of the last launch; NULL: other work came after it */
    bool overlaps;     /* there was a launch that may overlap the one before it */
};

/* Opens the device on the first call; NULL: it cannot be opened, and stderr says why. */
struct cuda *cuda_get(void);
void cuda_lock(void);
void cuda_unlock(void);
/* Prints a line on stderr, once per text. */
void cuda_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* A call that this device does not have; CU_NOT_SUPPORTED. */
int cuda_unsupported(const char *name);
int gpu_attribute(const struct cu_gpu *g, int attribute); /* CUdevice_attribute */
const char *cuda_error_name(int error);
const char *cuda_error_text(int error);
const char *runtime_error_name(int error);

/* ---- findings (report.c) -------------------------------------------------- */

void report_launch(struct cuda *c, const char *kernel, const struct simt_result *r);
void report_refusal(struct cuda *c, const char *kernel, const struct error *err);

/* ---- memory (memory.c) ---------------------------------------------------- */

enum memory_kind { MEMORY_DEVICE, MEMORY_MANAGED, MEMORY_PINNED, MEMORY_REGISTERED };

struct cu_memory {
    uintptr_t base;
    size_t bytes;
    enum memory_kind kind;
    void *map; /* with guard pages; NULL: not ours */
    size_t map_bytes;
    uint64_t number;
};

void *memory_alloc(struct cuda *c, size_t bytes, enum memory_kind kind);
int memory_free(struct cuda *c, void *base);
int memory_register(struct cuda *c, void *base, size_t bytes, bool written);
int memory_unregister(struct cuda *c, void *base);
const struct cu_memory *memory_find(const void *at); /* NULL: not the device's */
/* May this many bytes be copied from or to it? True for host memory and within one allocation. */
bool memory_allows(const void *at, size_t bytes);
void memory_module_variable(void *base, size_t bytes);
uint64_t memory_used(void);

/* ---- modules (module.c, fatbin.c) ----------------------------------------- */

/* The PTX of an image for this device, in the arena. Images: PTX text, a fat binary, its
 * wrapper. */
int fatbin_ptx(const void *image, const struct cu_gpu *g, struct arena *a, struct text *out);

struct cu_function {
    struct cu_module *module;
    const char *name;
    int max_dynamic, carveout, cluster_allowed;
    bool ready;
    struct simt_module *code;
    struct simt_kernel_info info;
    struct cu_function *next;
};

/* A kernel with an instruction that is refused. */
struct left_out {
    const char *kernel;
    struct error err;
    struct left_out *next;
};

struct cu_module {
    struct arena *a;
    struct text ptx;
    const char **kernels;
    size_t kernel_count;
    bool has_variables;
    struct simt_module *code;  /* of all its kernels; NULL: not yet, or one by one */
    int refused;               /* why code cannot be */
    struct left_out *left_out; /* of code */
    struct cu_function *functions;
    struct cu_module *next;
};

int module_load(struct cuda *c, const void *image, struct cu_module **out);
void module_unload(struct cu_module *m);
int module_function(struct cu_module *m, const char *name, struct cu_function **out);
int module_variable(struct cuda *c, struct cu_module *m, const char *name, void **base,
                    size_t *bytes);
int function_ready(struct cuda *c, struct cu_function *f); /* translated and loaded */
bool is_function(const void *handle);
int function_attribute(struct cuda *c, struct cu_function *f, int attribute, int *out);
int function_set(struct cu_function *f, int attribute, int value);
int function_occupancy(struct cuda *c, struct cu_function *f, int threads, size_t dynamic,
                       int *out);

/* ---- work, streams, events, graphs ----------------------------------------- */

struct cu_shape {
    unsigned grid[3], block[3], cluster[3];
    unsigned shared;
    bool cooperative, overlap; /* overlap: programmatic dependent launch */
};

struct cu_area { /* of a copy or a fill: rows of slices */
    size_t width, height, depth;
};

struct cu_side {
    char *at;
    size_t pitch, slice; /* bytes from row to row, from slice to slice */
};

enum work_kind {
    WORK_NONE,
    WORK_LAUNCH,
    WORK_COPY,
    WORK_FILL,
    WORK_HOST,
    WORK_EVENT,
    WORK_ALLOC,
    WORK_FREE,
    WORK_GRAPH
};

struct cu_work {
    enum work_kind kind;
    struct cu_function *function;
    struct cu_shape shape;
    unsigned char *params; /* packed; owned when in a graph */
    size_t param_bytes;
    struct cu_side to, from;
    struct cu_area area;
    unsigned value, value_bytes;
    void (*host)(void *);
    void *arg;
    struct cu_event *event;
    struct cu_graph *graph;
};

struct cu_node {
    struct cu_work work;
    struct cu_graph *graph;
    struct cu_node **after; /* what it waits for */
    size_t after_count;
    bool disabled;
};

struct cu_graph {
    struct cu_node **node;
    size_t count, cap;
    bool is_exec;
};

struct cu_stream {
    unsigned flags;
    int priority;
    struct cu_graph *capture; /* NULL: not captured */
    bool capture_owner, capture_given;
    struct cu_node **last; /* dependencies of the next captured work */
    size_t last_count;
    uint64_t id;
    struct cu_stream *next;
};

struct cu_event {
    unsigned flags;
    int64_t us; /* 0: never recorded */
    struct cu_graph *capture;
    struct cu_node **at;
    size_t at_count;
};

/* order: the stream or graph whose work it is */
int work_run(struct cuda *c, const struct cu_work *w, const void *order);
/* Executes or captures it. Streams NULL, 1 and 2 are the default streams. */
int work_submit(struct cuda *c, void *stream, struct cu_work *w);
/* Packs kernel arguments; both forms of the driver's. */
int work_launch(struct cuda *c, void *stream, struct cu_function *f, const struct cu_shape *shape,
                void **params, void **extra);
int work_pack(struct cuda *c, struct cu_function *f, void **params, void **extra,
              struct cu_work *w);
int work_copy(struct cuda *c, void *stream, void *to, const void *from, size_t bytes);
int work_fill(struct cuda *c, void *stream, void *to, size_t pitch, unsigned value,
              unsigned value_bytes, size_t width, size_t height);

struct cu_stream *stream_of(void *handle);
int stream_create(unsigned flags, int priority, void **out);
int stream_destroy(void *handle);
int stream_begin_capture(void *handle, struct cu_graph *into);
int stream_end_capture(void *handle, struct cu_graph **out);
int stream_wait(void *handle, struct cu_event *e);
int event_record(struct cuda *c, struct cu_event *e, void *stream);

struct cu_graph *graph_new(void);
void graph_free(struct cu_graph *g);
struct cu_graph *graph_clone(const struct cu_graph *g);
/* The arguments of a launch are copied. */
struct cu_node *graph_add(struct cu_graph *g, const struct cu_work *w, struct cu_node *const *after,
                          size_t count);
void graph_set(struct cu_node *n, const struct cu_work *w);
int graph_depend(struct cu_node *from, struct cu_node *to);
int graph_instantiate(const struct cu_graph *g, struct cu_graph **out);
int graph_run(struct cuda *c, const struct cu_graph *g);
/* In an instantiated graph, the copy of a node of the graph it was made from. */
struct cu_node *graph_counterpart(struct cu_graph *exec, const struct cu_node *n);

/* ---- entry points (entries.c) ----------------------------------------------- */

/* Finds an entry point by name and by the CUDA version of the caller; NULL: none. */
void *entry_find(const char *name, int version);

#endif
