/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_cuda.c - kernels on an NVIDIA GPU, through the driver API.
 *
 * Hides the driver. The oracle's buffers come in as IPC handles; workspace is
 * ours, with guard zones around it. The first run executes step by step and waits after each, so
 * that a fault names its launch; later runs replay a graph captured from the same steps. The graph
 * is timed, or the launch itself if it is the only step.
 *
 * Invariants
 * 1. Everything goes to one stream, in the order of the plan.
 * 2. After a fault the context is lost: the outcome is fatal, no further driver call is made, and
 *    the process ends.
 * 3. Workspace holds a NaN pattern when a run begins: nothing can be kept
 *    there from one run to the next.
 */
#include "runner/device_cuda.h"

#include "base/fs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

static const size_t module_limit_bytes = 512u << 20;

static const char *error_text(struct cuda_device *d, int result, char *out, size_t size)
{
    const char *name = NULL, *text = NULL;

    if (d->api.error_name(result, &name) != CUDA_OK || !name)
        name = "unknown CUDA error";
    if (d->api.error_string(result, &text) != CUDA_OK || !text)
        text = "no description";
    snprintf(out, size, "%s (%d): %s", name, result, text);
    return out;
}

bool cuda_error(struct cuda_device *d, int result, const char *what, struct error *err)
{
    char text[512];

    return error_set(err, ERROR_MACHINE, "%s: %s", what, error_text(d, result, text, sizeof text));
}

bool cuda_fault(struct cuda_device *d, const struct plan *plan, int op, int result,
                struct outcome *said)
{
    enum outcome_kind kind = OUTCOME_CRASH;
    char text[512], who[512] = "the plan";

    if (result == CUDA_OUT_OF_MEMORY)
        kind = OUTCOME_OUT_OF_MEMORY;
    else if (result == CUDA_LAUNCH_TIMEOUT)
        kind = OUTCOME_HANG;
    else if (result == CUDA_INVALID_VALUE || result == CUDA_LAUNCH_OUT_OF_RESOURCES ||
             result == CUDA_INVALID_CLUSTER_SIZE)
        kind = OUTCOME_BAD_LAUNCH;
    if (op >= 0)
        plan_op_text(plan, (size_t)op, who, sizeof who);
    said->fatal = true;
    return outcome_set(said, kind, op, "%s: %s", who, error_text(d, result, text, sizeof text));
}

/* ---- opening ------------------------------------------------------------ */

static uint64_t attribute(struct cuda_device *d, int which)
{
    int value = 0;

    if (d->api.device_attribute(&value, which, d->device) != CUDA_OK || value < 0)
        return 0;
    return (uint64_t)value;
}

static void read_facts(struct cuda_device *d)
{
    struct device_facts *f = &d->facts;
    size_t memory = 0;

    if (d->api.device_name(f->name, (int)sizeof f->name, d->device) != CUDA_OK)
        snprintf(f->name, sizeof f->name, "CUDA device %d", d->device);
    snprintf(f->place, sizeof f->place, "%04x:%02x:%02x",
             (unsigned)attribute(d, CUDA_ATTR_PCI_DOMAIN) & 0xffff,
             (unsigned)attribute(d, CUDA_ATTR_PCI_BUS) & 0xff,
             (unsigned)attribute(d, CUDA_ATTR_PCI_DEVICE) & 0xff);
    (void)d->api.device_memory(&memory, d->device);
    f->memory_bytes = memory;
    f->arch = (int)(attribute(d, CUDA_ATTR_MAJOR) * 10 + attribute(d, CUDA_ATTR_MINOR));
    f->sm_count = (int)attribute(d, CUDA_ATTR_SM_COUNT);
    for (int i = 0; i < 3; i++) {
        f->grid[i] = attribute(d, CUDA_ATTR_GRID_X + i);
        f->block[i] = attribute(d, CUDA_ATTR_BLOCK_X + i);
    }
    f->threads_block = attribute(d, CUDA_ATTR_THREADS_BLOCK);
    f->smem_block_bytes = attribute(d, CUDA_ATTR_SMEM_OPTIN);
    f->l2_bytes = attribute(d, CUDA_ATTR_L2_BYTES);
    /* 8 is portable; up to 16 is asked for with an attribute and may be refused. */
    f->cluster_blocks = attribute(d, CUDA_ATTR_CLUSTER_LAUNCH) ? 16 : 1;
    f->tensor_maps = attribute(d, CUDA_ATTR_TENSOR_MAP) != 0 && d->api.map_encode;
}

static bool open_context(struct cuda_device *d, int index, struct error *err)
{
    int result;

    /* The driver names its threads through /proc/self and gives up (error 304) where it cannot;
     * that folder belongs to root if the process is not dumpable. This process holds no secrets. */
    (void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    result = d->api.init(0);
    if (result != CUDA_OK)
        return cuda_error(d, result, "cuInit", err);
    result = d->api.device_get(&d->device, index);
    if (result != CUDA_OK)
        return error_set(err, ERROR_USE, "there is no CUDA device %d", index);
    result = d->api.context_retain(&d->context, d->device);
    if (result == CUDA_OK)
        result = d->api.context_set(d->context);
    if (result == CUDA_OK)
        result = d->api.stream_create(&d->stream, CUDA_STREAM_NON_BLOCKING);
    if (result != CUDA_OK)
        return cuda_error(d, result, "making a CUDA context", err);
    read_facts(d);
    return true;
}

static void cuda_close(struct run_device *base)
{
    struct cuda_device *d = (struct cuda_device *)base;

    /* The driver frees everything when the process ends; after a fault no other call is allowed. */
    arena_free(d->a);
    xfree(d);
}

static bool cuda_open(const struct device_config *config, struct run_device **out,
                      struct error *err)
{
    struct cuda_device *d = xmalloc(sizeof *d);

    d->base.ops = &device_cuda_ops;
    d->a = arena_new();
    /* A kernel loaded lazily could be loaded inside a capture, which fails. */
    setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    if (!cuda_api_open(&d->api, err) || !open_context(d, config->index, err)) {
        cuda_close(&d->base);
        return false;
    }
    *out = &d->base;
    return true;
}

static void cuda_facts(struct run_device *base, struct device_facts *out)
{
    *out = ((struct cuda_device *)base)->facts;
}

/* ---- loading ------------------------------------------------------------ */

static bool cuda_load(struct run_device *base, const char *path, struct outcome *said,
                      struct error *err)
{
    struct cuda_device *d = (struct cuda_device *)base;
    struct text image;
    char log[4096] = "", text[512];
    int options[] = {CUDA_JIT_ERROR_LOG, CUDA_JIT_ERROR_LOG_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    int result;

    if (!file_read(path, module_limit_bytes, d->a, &image, err))
        return error_add(err, "loading the candidate's module");
    result = d->api.module_load(&d->module, image.data, 2, options, values);
    if (result == CUDA_OK)
        return true;
    if (result == CUDA_OUT_OF_MEMORY)
        return outcome_set(said, OUTCOME_OUT_OF_MEMORY, -1, "the module does not fit the device"),
               true;
    log[sizeof log - 1] = '\0';
    return error_set(err, ERROR_MACHINE, "loading %s on %s: %s %.1000s", path, d->facts.name,
                     error_text(d, result, text, sizeof text), log);
}

static bool cuda_kernel(struct run_device *base, const char *lowered, struct kernel_facts *out)
{
    struct cuda_device *d = (struct cuda_device *)base;
    int value = 0;
    size_t offset, size;

    memset(out, 0, sizeof *out);
    if (d->api.module_function(&out->function, d->module, lowered) != CUDA_OK)
        return false;
    if (d->api.function_get(&value, CUDA_FUNC_MAX_THREADS, out->function) == CUDA_OK && value > 0)
        out->max_threads = (uint64_t)value;
    if (d->api.function_get(&value, CUDA_FUNC_STATIC_SMEM, out->function) == CUDA_OK && value > 0)
        out->static_smem_bytes = (uint64_t)value;
    if (d->api.function_get(&value, CUDA_FUNC_LOCAL_BYTES, out->function) == CUDA_OK &&
        value > d->local_bytes)
        d->local_bytes = value;
    if (!d->api.function_param)
        return true; /* a driver before CUDA 12.4 cannot say */
    out->params_known = true;
    while (out->param_count < KERNEL_MAX_PARAMS &&
           d->api.function_param(out->function, out->param_count, &offset, &size) == CUDA_OK)
        out->param_bytes[out->param_count++] = size;
    return true;
}

/* ---- binding ------------------------------------------------------------ */

static bool hex_handle(const char *hex, struct cuda_ipc_handle *out)
{
    if (!hex || strlen(hex) != 2 * sizeof out->reserved)
        return false;
    for (size_t i = 0; i < sizeof out->reserved; i++) {
        char digits[3] = {hex[2 * i], hex[2 * i + 1], '\0'};
        char *end;

        out->reserved[i] = (char)strtoul(digits, &end, 16);
        if (*end)
            return false;
    }
    return true;
}

/* One mapping per handle: several tensors may lie in one allocation. */
static bool map_handle(struct cuda_device *d, const char *hex, uint64_t *address, struct error *err)
{
    struct cuda_mapping *m;
    struct cuda_ipc_handle handle;
    int result;

    if (!hex_handle(hex, &handle))
        return error_set(err, ERROR_USE, "an IPC handle is not %d hex digits",
                         2 * CUDA_IPC_HANDLE_BYTES);
    for (size_t i = 0; i < d->mapping_count; i++)
        if (memcmp(&d->mappings[i].handle, &handle, sizeof handle) == 0) {
            *address = d->mappings[i].address;
            return true;
        }
    if (d->mapping_count == CUDA_MAX_MAPPINGS)
        return error_set(err, ERROR_USE, "more than %d IPC handles", CUDA_MAX_MAPPINGS);
    m = &d->mappings[d->mapping_count];
    result = d->api.ipc_open(&m->address, handle, CUDA_IPC_LAZY_PEER_ACCESS);
    if (result != CUDA_OK)
        return cuda_error(d, result, "opening the oracle's buffer (cuIpcOpenMemHandle)", err);
    m->handle = handle;
    d->mapping_count++;
    *address = m->address;
    return true;
}

static bool bind_shared(struct cuda_device *d, struct plan_buffer *b, const json_t *given,
                        struct error *err)
{
    json_int_t offset = json_integer_value(json_object_get(given, "offset"));
    json_int_t bytes = json_integer_value(json_object_get(given, "bytes"));
    uint64_t base = 0, start;
    size_t size;

    b->address = 0;
    if (!given)
        return true; /* plan_bind() reports it */
    if (offset < 0 || bytes < 0)
        return error_set(err, ERROR_USE, "buffer %s has no offset or size", b->name);
    if (!map_handle(d, json_string_value(json_object_get(given, "ipc")), &base, err))
        return error_add(err, "buffer %s", b->name);
    b->address = base + (uint64_t)offset;
    b->bytes = (uint64_t)bytes;
    if (d->api.address_range(&start, &size, b->address) == CUDA_OK &&
        (b->address < start || b->address - start + b->bytes > size))
        return error_set(err, ERROR_USE, "buffer %s reaches past its allocation", b->name);
    return true;
}

/* The rest of its pieces of memory is guard. */
uint64_t cuda_guard_after(const struct plan_buffer *b)
{
    uint64_t used = CUDA_GUARD_BYTES + b->bytes, all = used + CUDA_GUARD_BYTES;

    return (all + CUDA_UNIT_BYTES - 1) / CUDA_UNIT_BYTES * CUDA_UNIT_BYTES - used;
}

/* False with an outcome or an error: only a lack of memory is the candidate's fault. */
static bool bind_workspace(struct cuda_device *d, struct plan_buffer *b, struct outcome *said,
                           struct error *err)
{
    uint64_t base;
    int result;

    if (b->address)
        return true;
    if (b->bytes > d->facts.memory_bytes)
        result = CUDA_OUT_OF_MEMORY;
    else
        result = d->api.alloc(&base, CUDA_GUARD_BYTES + b->bytes + cuda_guard_after(b));
    if (result == CUDA_OK)
        result = d->api.memset8(base, CUDA_GUARD_VALUE, CUDA_GUARD_BYTES, d->stream);
    if (result == CUDA_OK)
        result = d->api.memset8(base + CUDA_GUARD_BYTES + b->bytes, CUDA_GUARD_VALUE,
                                cuda_guard_after(b), d->stream);
    if (result == CUDA_OUT_OF_MEMORY)
        return outcome_set(said, OUTCOME_OUT_OF_MEMORY, -1, "workspace %s of %" PRIu64 " bytes",
                           b->name, b->bytes);
    if (result != CUDA_OK) {
        cuda_error(d, result, "preparing it", err);
        return error_add(err, "workspace %s of %" PRIu64 " bytes", b->name, b->bytes);
    }
    b->address = base + CUDA_GUARD_BYTES;
    return true;
}

/* Saves the outputs' initial content, which is restored before each timed sample, so that no kernel
 * can distinguish a timed run from a tested one. */
static bool remember_fresh(struct cuda_device *d, const struct plan *plan, struct error *err)
{
    int result = CUDA_OK;

    for (size_t i = 0; i < plan->buffer_count && result == CUDA_OK; i++) {
        const struct plan_buffer *b = &plan->buffers[i];
        size_t size = b->bytes < sizeof d->fresh[i] ? b->bytes : sizeof d->fresh[i];

        d->fresh[i] = 0;
        if (b->kind == BUFFER_OUT && b->address && size > 0)
            result = d->api.copy_to_host(&d->fresh[i], b->address, size, d->stream);
    }
    if (result == CUDA_OK)
        result = d->api.stream_wait(d->stream);
    return result == CUDA_OK || cuda_error(d, result, "reading the outputs as they are", err);
}

static bool cuda_bind(struct run_device *base, struct plan *plan, const json_t *buffers,
                      struct outcome *said, struct error *err)
{
    struct cuda_device *d = (struct cuda_device *)base;

    if (d->exec)
        (void)d->api.exec_destroy(d->exec);
    d->exec = NULL;
    d->audited = false;
    for (size_t i = 0; i < plan->buffer_count; i++) {
        struct plan_buffer *b = &plan->buffers[i];

        if (b->kind == BUFFER_WORKSPACE) {
            if (!bind_workspace(d, b, said, err))
                return err->kind == ERROR_NONE;
        } else if (!bind_shared(d, b, json_object_get(buffers, b->name), err)) {
            return false;
        }
    }
    return remember_fresh(d, plan, err);
}

/* Index of a name in a list, or -1. */
static int choice(const char *name, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (list[i] && strcmp(name, list[i]) == 0)
            return (int)i;
    return -1;
}

static bool cuda_encode_map(struct run_device *base, const struct plan *plan, struct plan_map *m,
                            char *why, size_t why_size)
{
    /* Positions are the driver's enum values. */
    static const char *const dtypes[] = {"u8",  "u16", "u32", "i32",  "u64",     "i64",
                                         "f16", "f32", "f64", "bf16", "f32_ftz", "tf32"};
    static const char *const swizzles[] = {"none", "32", "64", "128"};
    static const char *const promotions[] = {"none", "64", "128", "256"};
    struct cuda_device *d = (struct cuda_device *)base;
    struct cuda_tensor_map *encoded = (struct cuda_tensor_map *)(void *)m->encoded;
    const char *name = m->dtype;
    int dtype, swizzle = choice(m->swizzle, swizzles, ARRAY_LEN(swizzles));
    int l2 = choice(m->l2, promotions, ARRAY_LEN(promotions));
    int result;

    if (strcmp(name, "i8") == 0 || strcmp(name, "bool") == 0)
        name = "u8";
    if (strcmp(name, "i16") == 0)
        name = "u16";
    dtype = choice(name, dtypes, ARRAY_LEN(dtypes));
    if (dtype < 0 || swizzle < 0 || l2 < 0) {
        snprintf(why, why_size, "no tensor map of %s with swizzle %s and L2 promotion %s", m->dtype,
                 m->swizzle, m->l2);
        return false;
    }
    result = d->api.map_encode(encoded, dtype, (uint32_t)m->rank,
                               (void *)(uintptr_t)(plan->buffers[m->buffer].address + m->offset),
                               m->dims, m->strides_bytes, m->box, m->element_strides, 0, swizzle,
                               l2, strcmp(m->fill, "nan") == 0);
    if (result == CUDA_OK)
        return true;
    error_text(d, result, why, why_size);
    return false;
}

/* ---- running ------------------------------------------------------------ */

static int set_function(struct cuda_device *d, const struct plan *plan, const struct plan_op *op)
{
    uint64_t smem = 0, blocks = op->cluster[0] * op->cluster[1] * op->cluster[2];
    int result = CUDA_OK;

    /* The attribute belongs to the function, so it must suit all its launches. */
    for (size_t i = 0; i < plan->op_count; i++)
        if (plan->ops[i].function == op->function && plan->ops[i].smem > smem)
            smem = plan->ops[i].smem;
    if (smem > 0)
        result = d->api.function_set(op->function, CUDA_FUNC_DYNAMIC_SMEM, (int)smem);
    if (result == CUDA_OK && blocks > 8)
        result = d->api.function_set(op->function, CUDA_FUNC_NON_PORTABLE_CLUSTER, 1);
    return result;
}

static int enqueue_launch(struct cuda_device *d, const struct plan *plan, const struct plan_op *op)
{
    struct cuda_launch_attribute attributes[2] = {0};
    struct cuda_launch_config config = {
        .smem = (unsigned)op->smem, .stream = d->stream, .attributes = attributes};
    void *params[PLAN_MAX_ARGS + 1];
    int result = set_function(d, plan, op), must = 0;

    if (result != CUDA_OK)
        return result;
    for (int i = 0; i < 3; i++) {
        config.grid[i] = (unsigned)op->grid[i];
        config.block[i] = (unsigned)op->block[i];
    }
    (void)d->api.function_get(&must, CUDA_FUNC_CLUSTER_MUST_BE_SET, op->function);
    if (must || op->cluster[0] * op->cluster[1] * op->cluster[2] > 1) {
        struct cuda_launch_attribute *at = &attributes[config.attribute_count++];

        at->id = CUDA_LAUNCH_CLUSTER_DIMENSION;
        for (int i = 0; i < 3; i++)
            at->value.cluster[i] = (unsigned)op->cluster[i];
    }
    if (op->overlap) {
        struct cuda_launch_attribute *at = &attributes[config.attribute_count++];

        at->id = CUDA_LAUNCH_PROGRAMMATIC_SERIALIZATION;
        at->value.programmatic = 1;
    }
    for (size_t i = 0; i < op->arg_count; i++)
        params[i] = op->args[i].data;
    return d->api.launch_ex(&config, op->function, params, NULL);
}

int cuda_enqueue(struct cuda_device *d, const struct plan *plan, size_t index)
{
    const struct plan_op *op = &plan->ops[index];

    if (op->kind == PLAN_LAUNCH)
        return enqueue_launch(d, plan, op);
    if (op->bytes == 0)
        return CUDA_OK;
    return d->api.memset8(plan->buffers[op->buffer].address + op->offset, op->value, op->bytes,
                          d->stream);
}

bool cuda_poison(struct cuda_device *d, const struct plan *plan, struct error *err)
{
    for (size_t i = 0; i < plan->buffer_count; i++) {
        const struct plan_buffer *b = &plan->buffers[i];
        int result = CUDA_OK;

        if (b->bytes > 0 && b->kind == BUFFER_WORKSPACE)
            result = d->api.memset8(b->address, CUDA_POISON, b->bytes, d->stream);
        if (result != CUDA_OK)
            return cuda_error(d, result, "filling a buffer", err);
    }
    return true;
}

/* One step at a time, so that a fault names its launch. */
static bool run_steps(struct cuda_device *d, const struct plan *plan, struct outcome *said)
{
    for (size_t i = 0; i < plan->op_count; i++) {
        int result = cuda_enqueue(d, plan, i);

        if (result == CUDA_OK)
            result = d->api.stream_wait(d->stream);
        if (result != CUDA_OK)
            return cuda_fault(d, plan, (int)i, result, said);
    }
    d->ran = true;
    return true;
}

static bool build_graph(struct cuda_device *d, const struct plan *plan, struct outcome *said)
{
    void *graph = NULL;
    int result = d->api.capture_begin(d->stream, CUDA_CAPTURE_THREAD_LOCAL), ended;
    size_t op = 0;

    if (result != CUDA_OK)
        return cuda_fault(d, plan, -1, result, said);
    for (; op < plan->op_count && result == CUDA_OK; op++)
        result = cuda_enqueue(d, plan, op);
    ended = d->api.capture_end(d->stream, &graph);
    if (result != CUDA_OK)
        return cuda_fault(d, plan, (int)op - 1, result, said);
    if (ended == CUDA_OK)
        ended = d->api.graph_instantiate(&d->exec, graph, 0);
    if (graph)
        (void)d->api.graph_destroy(graph);
    if (ended == CUDA_OK)
        ended = d->api.graph_upload(d->exec, d->stream);
    if (ended != CUDA_OK)
        return cuda_fault(d, plan, -1, ended, said);
    return true;
}

bool cuda_prepare(struct cuda_device *d, struct plan *plan, struct outcome *said, struct error *err)
{
    if (!d->ran && (!cuda_poison(d, plan, err) || !run_steps(d, plan, said)))
        return false;
    return d->exec || build_graph(d, plan, said);
}

/* Workspace is ours, so its guards are too; a hit is a finding. */
static bool check_guards(struct cuda_device *d, const struct plan *plan, struct outcome *said,
                         struct error *err)
{
    for (size_t i = 0; i < plan->buffer_count; i++) {
        const struct plan_buffer *b = &plan->buffers[i];

        if (b->kind != BUFFER_WORKSPACE)
            continue;
        if (!d->guard)
            d->guard = arena_alloc(d->a, CUDA_UNIT_BYTES + 2 * CUDA_GUARD_BYTES);
        for (int after = 0; after < 2; after++) {
            uint64_t at = after ? b->address + b->bytes : b->address - CUDA_GUARD_BYTES;
            size_t size = after ? cuda_guard_after(b) : CUDA_GUARD_BYTES;
            int result = d->api.copy_to_host(d->guard, at, size, d->stream);
            int hits = 0;

            if (result == CUDA_OK)
                result = d->api.stream_wait(d->stream);
            if (result != CUDA_OK)
                return cuda_error(d, result, "reading the workspace's guards", err);
            for (size_t k = 0; k < size; k++)
                hits += d->guard[k] != CUDA_GUARD_VALUE;
            if (hits == 0)
                continue;
            if (!said->findings)
                said->findings = json_array();
            json_array_append_new(
                said->findings,
                json_pack("{s:s, s:s, s:o}", "kind", "out-of-bounds write", "kernel", "", "text",
                          json_sprintf("%d bytes just %s workspace %s (%" PRIu64
                                       " bytes) were overwritten",
                                       hits, after ? "after" : "before", b->name, b->bytes)));
        }
    }
    return true;
}

static bool cuda_run(struct run_device *base, struct plan *plan, struct outcome *said,
                     struct error *err)
{
    struct cuda_device *d = (struct cuda_device *)base;
    int result;

    if (!cuda_poison(d, plan, err))
        return false;
    if (!d->ran) {
        if (!run_steps(d, plan, said))
            return true;
    } else {
        if (!d->exec && !build_graph(d, plan, said))
            return true;
        result = d->api.graph_launch(d->exec, d->stream);
        if (result == CUDA_OK)
            result = d->api.stream_wait(d->stream);
        if (result != CUDA_OK) {
            cuda_fault(d, plan, plan->op_count == 1 ? 0 : -1, result, said);
            return true;
        }
    }
    return check_guards(d, plan, said, err);
}

/* ---- warming up ---------------------------------------------------------- */

static void cuda_warm(struct run_device *base)
{
    struct error ignored = {0}; /* reported when it is needed */

    (void)cuda_tools((struct cuda_device *)base, &ignored);
}

const struct device_ops device_cuda_ops = {
    .open = cuda_open,
    .facts = cuda_facts,
    .load = cuda_load,
    .kernel = cuda_kernel,
    .bind = cuda_bind,
    .encode_map = cuda_encode_map,
    .run = cuda_run,
    .time = cuda_time,
    .hash = cuda_hash,
    .warm = cuda_warm,
    .close = cuda_close,
};
