/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader.h - queues an exported kernel's launch list from inside PyTorch, in one call.
 *
 * The library is part of an export (cutegen-loader.so); oracle/exported/native.py opens it and is
 * its only caller. It links with neither torch nor CUDA: native.py looks up torch's stable C
 * functions and the driver's, and hands over their addresses. One binary therefore serves every
 * version.
 *
 *     loader_torch()         addresses of torch's functions; the type of the device, torch's "CUDA"
 *     loader_operator()      a slot for an operator: how many tensors, which callback
 *     loader_case()          a judged case as words: shapes, workspace, tensor maps, launches
 *     loader_register()      from here on torch calls us for CUDA tensors
 *     loader_driver()        addresses of the driver's functions; before the first loader_ready()
 *     loader_ready()         a case's kernels, loaded on one device by launcher.py
 *     loader_launch()        queues a case with given addresses, as the operator itself does
 *
 * Invariants
 * 1. Words and sizes come from a file, so each is checked before it is used; an index, an offset or
 *    a count out of range refuses the case, and loader_said() tells which.
 * 2. Nothing is allocated here: the caller gives memory for each case and each device, and keeps it
 *    as long as the process lives.
 * 3. A block of arguments is filled and read under its lock. Torch's functions are not called
 *    under it.
 */
#ifndef LOADER_LOADER_H
#define LOADER_LOADER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LOADER_VERSION = 1,
    LOADER_OPERATORS = 64, /* operators in one process that share this library */
    LOADER_CASES = 128,
    LOADER_DEVICES = 64,
    LOADER_RANK = 16,
    LOADER_TENSORS = 512, /* inputs and outputs of a case */
    LOADER_BUFFERS = 1024 /* inputs, outputs and workspaces */
};

/* ---- what torch and the driver give (declared here, resolved by native.py) ----------- */

typedef void *torch_tensor; /* AtenTensorHandle */

struct torch_calls {
    int32_t (*sizes)(torch_tensor, int64_t **);
    int32_t (*strides)(torch_tensor, int64_t **);
    int32_t (*rank)(torch_tensor, int64_t *);
    int32_t (*dtype)(torch_tensor, int32_t *);
    int32_t (*device_type)(torch_tensor, int32_t *);
    int32_t (*device_index)(torch_tensor, int32_t *);
    int32_t (*data)(torch_tensor, void **);
    int32_t (*empty)(int64_t rank, const int64_t *sizes, const int64_t *strides, int32_t dtype,
                     int32_t device_type, int32_t device_index, torch_tensor *);
    int32_t (*copy)(torch_tensor to, torch_tensor from, int32_t non_blocking);
    int32_t (*delete)(torch_tensor);
    int32_t (*stream)(int32_t device_index, void **);
    int32_t (*library_init)(const char *space, const char *key, const char *file, uint32_t line,
                            void **library);
    int32_t (*library_impl)(void *library, const char *name,
                            void (*kernel)(uint64_t *stack, uint64_t inputs, uint64_t outputs));
    void (*check)(bool ok, const char *function, const char *file, uint32_t line, const char *text);
};

struct driver_attribute { /* CUlaunchAttribute */
    int32_t id, pad;
    uint32_t value[16];
};

struct driver_config { /* CUlaunchConfig */
    uint32_t grid[3], block[3], smem;
    void *stream;
    struct driver_attribute *attributes;
    uint32_t attribute_count;
};

struct driver_calls {
    int (*current)(void **context);
    int (*push)(void *context);
    int (*pop)(void **context);
    int (*set)(uint64_t address, unsigned char value, size_t bytes, void *stream);
    int (*encode)(void *map, int dtype, uint32_t rank, void *address, const uint64_t *dims,
                  const uint64_t *strides, const uint32_t *box, const uint32_t *element_strides,
                  int interleave, int swizzle, int l2, int fill);
    int (*launch)(const struct driver_config *, void *function, void **params, void **extra);
};

/* Callback into native.py: prepares a case on a device, or words a refusal; 0: done. */
typedef int (*loader_ask)(int32_t slot, int32_t number, int32_t device, const int64_t *words,
                          int64_t count);

/* ---- a case -------------------------------------------------------------------------- */

struct loader_tensor {
    int32_t dtype, rank; /* torch's number of the dtype */
    int64_t sizes[LOADER_RANK], strides[LOADER_RANK], bytes;
};

struct loader_source { /* a pointer argument: the address of a buffer plus an offset */
    int32_t buffer;
    int64_t offset;
};

struct loader_map {
    struct loader_source at;
    int32_t dtype, rank, swizzle, l2, fill;
    uint64_t dims[5], strides[5];
    uint32_t box[5], element_strides[5];
};

struct loader_argument {
    enum { ARGUMENT_POINTER, ARGUMENT_BYTES, ARGUMENT_MAP } kind;
    struct loader_source at; /* POINTER */
    const void *bytes;       /* BYTES: a copy in the case's memory */
    int32_t map;             /* MAP */
};

struct loader_step {
    bool is_launch, overlap;
    int32_t function;
    uint32_t grid[3], block[3], cluster[3], smem;
    int32_t argument_count;
    struct loader_argument *arguments;
    struct loader_source at; /* memset */
    int64_t bytes;
    unsigned char value;
};

struct loader_device;

struct loader_case {
    int32_t input_count, output_count, workspace_count, map_count, function_count, step_count;
    struct loader_tensor *tensors; /* inputs, then outputs */
    int64_t buffer_bytes[LOADER_BUFFERS], workspace_at[LOADER_BUFFERS], workspace_bytes;
    struct loader_map *maps;
    struct loader_step *steps;
    _Atomic(struct loader_device *) devices[LOADER_DEVICES];
};

/* A case on one device, with its argument blocks laid out: only addresses change between calls. */
struct loader_launch_block {
    struct driver_config config;
    struct driver_attribute attributes[2];
    void *function, **params;
};

struct loader_device {
    pthread_mutex_t lock;
    void *context;
    unsigned char *maps; /* 128 bytes each, 64-byte aligned */
    uint64_t *map_addresses, *slots;
    struct loader_launch_block *launches; /* one per step */
};

/* ---- parts --------------------------------------------------------------------------- */

/* The caller's memory, handed out in pieces; NULL when it is used up. */
struct loader_room {
    unsigned char *at, *end;
};

void *room_take(struct loader_room *room, size_t count, size_t each, size_t align);

/* Keeps the first text until the next call from outside. Returns false, for `return
 * loader_tell(...)`. */
bool loader_tell(const char *format, ...) __attribute__((format(printf, 1, 2)));
void loader_quiet(void);

struct loader_case *case_read(const int64_t *words, size_t count, const char *blob, size_t bytes,
                              struct loader_room *room);
struct loader_device *device_lay(const struct loader_case *c, void *context,
                                 const uint64_t *functions, const int32_t *must_cluster,
                                 struct loader_room *room);
/* 0, or the driver's result, with loader_said(). */
int device_launch(const struct driver_calls *driver, const struct loader_case *c,
                  struct loader_device *d, void *stream, uint64_t *addresses, uint64_t workspace);

/* ---- native.py's view ---------------------------------------------------------------- */

int loader_version(void);
const char *loader_said(void);
void loader_say(const char *text);
int loader_torch(const void *const *functions, size_t count, int32_t device_type,
                 int32_t byte_dtype);
int loader_driver(const void *const *functions, size_t count);
int loader_operator(loader_ask ask, int32_t inputs, int32_t outputs, int64_t alignment);
int loader_case(int32_t slot, const int64_t *words, size_t count, const char *blob, size_t bytes,
                void *memory, size_t memory_bytes);
int loader_register(int32_t slot, const char *space, const char *name, const char *key);
int loader_ready(int32_t slot, int32_t number, int32_t device, void *context,
                 const uint64_t *functions, const int32_t *must_cluster, size_t function_count,
                 void *memory, size_t memory_bytes);
int loader_launch(int32_t slot, int32_t number, int32_t device, void *stream,
                  const uint64_t *addresses, size_t address_count, uint64_t workspace);

#endif
