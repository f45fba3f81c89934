/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_simt.c - kernels on the CPU, through simt.
 *
 * The oracle's buffers are files: inputs are mapped private and read-only,
 * outputs shared. Each tensor is registered as an allocation of exactly its size, so that an access
 * one byte past it is a finding even though guard memory follows. Workspace is ours.
 *
 * Invariants
 * 1. When a run begins, outputs and workspace count as never written and
 *    workspace holds a NaN pattern: nothing is kept from run to run.
 * 2. No file is written except through the outputs' mappings.
 */
#include "runner/device.h"

#include "base/finding_kind.h"
#include "base/json.h"
#include "simt/simt.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_MAPPINGS = 256, POISON = 0xFF };

/* The maximum of all GPUs that simt models. */
static const uint64_t most_smem_bytes = 227 << 10, most_cluster_blocks = 16;

struct mapping {
    void *base;
    size_t bytes;
};

struct simt_device {
    struct run_device base;
    struct simt *simt;
    struct simt_module *module;
    bool counters, profile;
    uint64_t sample, smem_block_bytes, cluster_blocks;
    struct mapping mappings[MAX_MAPPINGS]; /* of the current binding */
    size_t mapping_count;
    struct mapping workspace[PLAN_MAX_BUFFERS]; /* by buffer index */
};

/* ---- opening ------------------------------------------------------------ */

static void unmap_all(struct simt_device *d)
{
    for (size_t i = 0; i < d->mapping_count; i++)
        munmap(d->mappings[i].base, d->mappings[i].bytes);
    d->mapping_count = 0;
}

static void device_close(struct run_device *base)
{
    struct simt_device *d = (struct simt_device *)base;

    simt_close(d->simt);
    unmap_all(d);
    for (size_t i = 0; i < PLAN_MAX_BUFFERS; i++)
        if (d->workspace[i].base)
            munmap(d->workspace[i].base, d->workspace[i].bytes);
    xfree(d);
}

static bool check_named(const char *name, enum simt_check *out, struct error *err)
{
    static const char *const names[] = {
        [SIMT_CHECK_OFF] = "off", [SIMT_CHECK_MEMORY] = "memory", [SIMT_CHECK_FULL] = "full"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(name, names[i]) == 0) {
            *out = (enum simt_check)i;
            return true;
        }
    return error_set(err, ERROR_USE, "no check is called %s (off, memory, full)", name);
}

/* The requested amount, if the GPU has that much; 0 means all of it. */
static uint64_t limit_of(uint64_t asked, uint64_t most)
{
    return asked > 0 && asked < most ? asked : most;
}

static bool device_open(const struct device_config *config, struct run_device **out,
                        struct error *err)
{
    uint64_t smem = limit_of(config->smem_block_bytes, most_smem_bytes);
    struct simt_config sc = {.threads = config->threads,
                             .counters = config->counters,
                             .profile = config->profile,
                             .warp_order_seed = config->warp_seed,
                             .watchdog_ms = config->watchdog_ms,
                             .max_shared_bytes = (uint32_t)smem};
    struct simt_device *d;

    if (!check_named(config->check, &sc.check, err))
        return false;
    d = xmalloc(sizeof *d);
    d->base.ops = &device_simt_ops;
    d->counters = config->counters;
    d->profile = config->profile;
    d->sample = config->sample;
    d->smem_block_bytes = smem;
    d->cluster_blocks = limit_of(config->cluster_blocks, most_cluster_blocks);
    if (!simt_open(&sc, &d->simt, err)) {
        xfree(d);
        return false;
    }
    *out = &d->base;
    return true;
}

static void device_facts(struct run_device *base, struct device_facts *out)
{
    const struct simt_device *d = (const struct simt_device *)base;

    *out = (struct device_facts){.name = "simt",
                                 .arch = 80,
                                 .sm_count = 1,
                                 .grid = {INT32_MAX, 65535, 65535},
                                 .block = {1024, 1024, 64},
                                 .threads_block = 1024,
                                 .smem_block_bytes = d->smem_block_bytes,
                                 .cluster_blocks = d->cluster_blocks,
                                 .tensor_maps = d->cluster_blocks > 1};
}

static bool device_load(struct run_device *base, const char *path, struct outcome *said,
                        struct error *err)
{
    struct simt_device *d = (struct simt_device *)base;

    (void)said;
    return simt_load(d->simt, path, &d->module, err);
}

static bool device_kernel(struct run_device *base, const char *lowered, struct kernel_facts *out)
{
    struct simt_device *d = (struct simt_device *)base;
    struct simt_kernel_info info;

    memset(out, 0, sizeof *out);
    if (!simt_kernel_info(d->module, lowered, &info) || info.param_count > KERNEL_MAX_PARAMS)
        return false;
    out->params_known = true;
    out->param_count = info.param_count;
    for (size_t i = 0; i < info.param_count; i++)
        out->param_bytes[i] = info.params[i].bytes;
    out->max_threads = info.max_threads;
    out->static_smem_bytes = info.static_shared;
    return true;
}

/* ---- binding ------------------------------------------------------------ */

static bool map_file(struct simt_device *d, const char *path, bool writable, struct mapping **out,
                     struct error *err)
{
    int fd = open(path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    struct mapping *m = &d->mappings[d->mapping_count];
    struct stat st;
    bool ok = fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0;

    if (ok) {
        m->bytes = (size_t)st.st_size;
        m->base = mmap(NULL, m->bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ,
                       writable ? MAP_SHARED : MAP_PRIVATE, fd, 0);
        ok = m->base != MAP_FAILED;
    }
    if (!ok)
        error_set(err, ERROR_MACHINE, "mapping the buffer %s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    if (!ok)
        return false;
    d->mapping_count++;
    *out = m;
    return true;
}

static bool bind_shared(struct simt_device *d, struct plan_buffer *b, const json_t *given,
                        struct error *err)
{
    const char *path = json_string_value(json_object_get(given, "path"));
    json_int_t offset = json_integer_value(json_object_get(given, "offset"));
    json_int_t bytes = json_integer_value(json_object_get(given, "bytes"));
    struct mapping *m;

    b->address = 0;
    if (!given)
        return true; /* plan_bind() says what that means */
    if (!path || offset < 0 || bytes < 0 || d->mapping_count == MAX_MAPPINGS)
        return error_set(err, ERROR_USE, "buffer %s has no path, offset or size", b->name);
    if (!map_file(d, path, b->kind == BUFFER_OUT, &m, err))
        return error_add(err, "buffer %s", b->name);
    if ((uint64_t)offset > m->bytes || (uint64_t)bytes > m->bytes - (uint64_t)offset)
        return error_set(err, ERROR_USE, "buffer %s reaches past its file", b->name);
    b->address = (uint64_t)(uintptr_t)m->base + (uint64_t)offset;
    b->bytes = (uint64_t)bytes;
    return true;
}

/* Maps a page before and after, so that adjacent memory belongs to no tensor. */
static bool bind_workspace(struct simt_device *d, size_t index, struct plan_buffer *b,
                           struct outcome *said)
{
    static const uint64_t limit_bytes = (uint64_t)2 << 30, page = 65536;
    struct mapping *w = &d->workspace[index];

    if (b->bytes > limit_bytes)
        return outcome_set(said, OUTCOME_OUT_OF_MEMORY, -1,
                           "workspace %s of %" PRIu64 " bytes; simt gives at most %" PRIu64,
                           b->name, b->bytes, limit_bytes);
    if (!w->base) {
        w->bytes = b->bytes + 2 * page;
        w->base = mmap(NULL, w->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (w->base == MAP_FAILED) {
            w->base = NULL;
            return outcome_set(said, OUTCOME_OUT_OF_MEMORY, -1, "workspace %s of %" PRIu64 " bytes",
                               b->name, b->bytes);
        }
    }
    b->address = (uint64_t)(uintptr_t)w->base + page;
    return true;
}

static bool device_bind(struct run_device *base, struct plan *plan, const json_t *buffers,
                        struct outcome *said, struct error *err)
{
    struct simt_device *d = (struct simt_device *)base;

    for (size_t i = 0; i < plan->buffer_count; i++)
        if (plan->buffers[i].address)
            simt_alloc_forget(d->simt, (void *)(uintptr_t)plan->buffers[i].address);
    unmap_all(d);
    for (size_t i = 0; i < plan->buffer_count; i++) {
        struct plan_buffer *b = &plan->buffers[i];

        if (b->kind == BUFFER_WORKSPACE) {
            if (!bind_workspace(d, i, b, said))
                return true;
        } else if (!bind_shared(d, b, json_object_get(buffers, b->name), err)) {
            return false;
        }
    }
    return true;
}

static bool device_encode_map(struct run_device *base, const struct plan *plan, struct plan_map *m,
                              char *why, size_t why_size)
{
    static const char *const swizzles[] = {"none", "32", "64", "128"};
    struct simt_map s = {.address = plan->buffers[m->buffer].address + m->offset,
                         .dtype = m->dtype,
                         .rank = m->rank,
                         .swizzle = ARRAY_LEN(swizzles),
                         .fill_nan = strcmp(m->fill, "nan") == 0};

    (void)base;
    for (unsigned i = 0; i < ARRAY_LEN(swizzles); i++)
        if (strcmp(m->swizzle, swizzles[i]) == 0)
            s.swizzle = i;
    memcpy(s.dims, m->dims, sizeof s.dims);
    memcpy(s.strides_bytes, m->strides_bytes, sizeof s.strides_bytes);
    memcpy(s.box, m->box, sizeof s.box);
    memcpy(s.element_strides, m->element_strides, sizeof s.element_strides);
    return simt_map_encode(&s, m->encoded, why, why_size);
}

/* ---- running ------------------------------------------------------------ */

static bool is_cleared(const struct plan *plan, size_t buffer)
{
    for (size_t i = 0; i < plan->op_count; i++)
        if (plan->ops[i].kind == PLAN_MEMSET && plan->ops[i].buffer == (int)buffer)
            return true;
    return false;
}

/* Registered again for every run, so that what an earlier run wrote does not count as written. */
static void register_buffers(struct simt_device *d, const struct plan *plan)
{
    for (size_t i = 0; i < plan->buffer_count; i++) {
        const struct plan_buffer *b = &plan->buffers[i];
        void *at = (void *)(uintptr_t)b->address;
        unsigned flags = b->kind == BUFFER_IN ? SIMT_ALLOC_READONLY | SIMT_ALLOC_WRITTEN : 0;

        if (!b->address)
            continue;
        if (is_cleared(plan, i))
            flags |= SIMT_ALLOC_WRITTEN;
        if (b->kind == BUFFER_WORKSPACE)
            memset(at, POISON, b->bytes);
        simt_alloc_forget(d->simt, at);
        simt_alloc_register(d->simt, at, b->bytes, b->name, flags);
    }
}

/* Of a buffer, when it is met for the first time. */
static uint64_t sectors_once(const struct plan *plan, int buffer, bool *counted)
{
    if (buffer < 0 || counted[buffer])
        return 0;
    counted[buffer] = true;
    return (plan->buffers[buffer].bytes + 31) / 32;
}

/* Distinct sectors a launch can touch: at most all of the buffers it is given. */
static uint64_t reachable_sectors(const struct plan *plan, const struct plan_op *op)
{
    bool counted[PLAN_MAX_BUFFERS] = {false};
    uint64_t sectors = 0;

    for (size_t i = 0; i < op->arg_count; i++) {
        const struct plan_arg *arg = &op->args[i];
        int buffer = arg->map >= 0 ? plan->maps[arg->map].buffer : arg->buffer;

        sectors += sectors_once(plan, buffer, counted);
        for (size_t j = 0; j < arg->pointer_count; j++)
            sectors += sectors_once(plan, arg->pointers[j].buffer, counted);
    }
    return sectors;
}

static void put(json_t *v, const char *key, uint64_t value)
{
    json_object_set_new(v, key, json_integer((json_int_t)value));
}

/* simt's counters, and what else the time model needs. */
static json_t *launch_counters(struct simt_device *d, const struct plan *plan,
                               const struct plan_op *op, const struct simt_counters *c)
{
    uint64_t reachable = reachable_sectors(plan, op);
    uint64_t sectors = c->global_load_sectors + c->global_store_sectors;
    struct kernel_facts k;
    json_t *v = simt_counters_json(c);

    device_kernel(&d->base, op->lowered, &k);
    json_object_set_new(v, "kernel", json_string(op->kernel));
    json_object_set_new(v, "lowered", json_string(op->lowered));
    json_object_set_new(v, "grid",
                        json_pack("[I, I, I]", (json_int_t)op->grid[0], (json_int_t)op->grid[1],
                                  (json_int_t)op->grid[2]));
    json_object_set_new(v, "block",
                        json_pack("[I, I, I]", (json_int_t)op->block[0], (json_int_t)op->block[1],
                                  (json_int_t)op->block[2]));
    put(v, "blocks", op->grid[0] * op->grid[1] * op->grid[2]);
    put(v, "threads_block", op->block[0] * op->block[1] * op->block[2]);
    put(v, "smem_bytes", op->smem + k.static_smem_bytes);
    put(v, "unique_sectors", sectors < reachable ? sectors : reachable);
    return v;
}

static const char *finding_name(enum simt_finding_kind kind)
{
    static const enum finding_kind kinds[SIMT_FINDING_KINDS] = {
        [SIMT_OUT_OF_BOUNDS] = FINDING_OUT_OF_BOUNDS,
        [SIMT_MISALIGNED] = FINDING_MISALIGNED,
        [SIMT_WRITE_TO_INPUT] = FINDING_WRITE_TO_INPUT,
        [SIMT_UNINITIALISED] = FINDING_UNINITIALISED,
        [SIMT_RACE_SHARED] = FINDING_RACE_SHARED,
        [SIMT_RACE_GLOBAL] = FINDING_RACE_GLOBAL,
        [SIMT_ASYNC_NOT_WAITED] = FINDING_ASYNC_NOT_WAITED,
        [SIMT_ASYNC_OVERWRITE] = FINDING_ASYNC_OVERWRITE,
        [SIMT_DIVERGENT_BARRIER] = FINDING_DIVERGENT_BARRIER,
        [SIMT_DIVERGENT_COLLECTIVE] = FINDING_DIVERGENT_COLLECTIVE,
        [SIMT_DEADLOCK] = FINDING_DEADLOCK,
        [SIMT_TIMEOUT] = FINDING_TIMEOUT,
        [SIMT_TRAP] = FINDING_TRAP,
        [SIMT_ASSERTION] = FINDING_ASSERTION,
        [SIMT_MBARRIER] = FINDING_MBARRIER,
        [SIMT_PROXY] = FINDING_PROXY,
        [SIMT_TENSOR_MAP] = FINDING_TENSOR_MAP,
        [SIMT_CLUSTER] = FINDING_CLUSTER,
        [SIMT_WGMMA] = FINDING_WGMMA,
        [SIMT_WGMMA_FENCE] = FINDING_WGMMA_FENCE,
        [SIMT_TENSOR_MEMORY] = FINDING_TENSOR_MEMORY,
        [SIMT_TENSOR_FENCE] = FINDING_TENSOR_FENCE,
        [SIMT_SHUFFLE] = FINDING_SHUFFLE,
        [SIMT_MISSING_FENCE] = FINDING_MISSING_FENCE,
        [SIMT_SAME_VALUE] = FINDING_SAME_VALUE,
        [SIMT_BARRIER_EXIT] = FINDING_BARRIER_EXIT,
        [SIMT_PROXY_READ] = FINDING_PROXY_READ,
        [SIMT_COPY_EXIT] = FINDING_COPY_EXIT,
    };

    return finding_kind_name(kind < SIMT_FINDING_KINDS ? kinds[kind] : FINDING_UNKNOWN);
}

static json_t *triple(const uint32_t v[3])
{
    return json_pack("[I, I, I]", (json_int_t)v[0], (json_int_t)v[1], (json_int_t)v[2]);
}

/* FINDING of docs/architecture.md */
static json_t *finding_json(const struct plan_op *op, const struct simt_finding *f)
{
    json_t *path = json_array();
    json_t *v =
        json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "kind", finding_name(f->kind), "kernel",
                  op->kernel, "block", triple(f->here.block), "thread", triple(f->here.thread),
                  "text", json_from_string(f->what ? f->what : ""), "path", path);

    if (f->path_len > 0) {
        json_object_set_new(v, "file", json_from_string(f->path[0].file));
        put(v, "line", (uint64_t)f->path[0].line);
    }
    for (size_t i = 1; i < f->path_len; i++)
        json_array_append_new(path, json_sprintf("%s:%d", f->path[i].file, f->path[i].line));
    if (f->caller_count > 0) {
        json_t *callers = json_array();

        for (size_t i = 0; i < f->caller_count; i++)
            json_array_append_new(callers,
                                  json_sprintf("%s:%d", f->callers[i].file, f->callers[i].line));
        json_object_set_new(v, "callers", callers);
    }
    if (simt_finding_warns(f->kind))
        json_object_set_new(v, "warning", json_true());
    if (f->other.op)
        json_object_set_new(v, "other",
                            json_pack("{s:i, s:o}", "line", f->other.at.file ? f->other.at.line : 0,
                                      "thread", triple(f->other.thread)));
    put(v, "count", f->times ? f->times : 1);
    return v;
}

static void take_findings(const struct plan_op *op, const struct simt_result *r,
                          struct outcome *said)
{
    if (r->finding_count > 0 && !said->findings)
        said->findings = json_array();
    for (size_t i = 0; i < r->finding_count; i++)
        json_array_append_new(said->findings, finding_json(op, &r->findings[i]));
}

static void take_outcome(const struct plan *plan, size_t op, const struct simt_result *r,
                         struct outcome *said)
{
    static const enum outcome_kind kinds[] = {[SIMT_OK] = OUTCOME_OK,
                                              [SIMT_FAULT] = OUTCOME_CRASH,
                                              [SIMT_HANG] = OUTCOME_HANG,
                                              [SIMT_BAD_LAUNCH] = OUTCOME_BAD_LAUNCH};
    char who[512];

    if (r->outcome != SIMT_OK)
        outcome_set(said, kinds[r->outcome], (int)op, "%s: %s",
                    plan_op_text(plan, op, who, sizeof who), r->text ? r->text : "");
}

/* Packs the arguments as the kernel lays them out. */
static void pack_params(const struct plan_op *op, const struct simt_kernel_info *info,
                        unsigned char *params)
{
    for (size_t i = 0; i < op->arg_count && i < info->param_count; i++)
        memcpy(params + info->params[i].offset, op->args[i].data, info->params[i].bytes);
}

static bool run_launch(struct simt_device *d, const struct plan *plan, size_t index,
                       struct arena *a, struct outcome *said, struct error *err)
{
    const struct plan_op *op = &plan->ops[index];
    struct simt_launch launch = {.kernel = op->lowered,
                                 .shared_bytes = (uint32_t)op->smem,
                                 .sample = d->sample,
                                 .overlap = op->overlap && index > 0 && op[-1].kind == PLAN_LAUNCH,
                                 .overlapped = index + 1 < plan->op_count &&
                                               op[1].kind == PLAN_LAUNCH && op[1].overlap};
    struct simt_kernel_info info;
    struct simt_result result = {0};
    unsigned char *params;

    if (!simt_kernel_info(d->module, op->lowered, &info))
        BUG("kernel %s was there at load", op->lowered);
    params = arena_alloc(a, info.param_bytes + 16);
    pack_params(op, &info, params);
    launch.params = params;
    launch.param_bytes = info.param_bytes;
    for (int i = 0; i < 3; i++) {
        launch.grid[i] = (uint32_t)op->grid[i];
        launch.block[i] = (uint32_t)op->block[i];
        launch.cluster[i] = (uint32_t)op->cluster[i];
    }
    if (!simt_launch(d->simt, d->module, &launch, a, &result, err))
        return false;
    if (result.printed && *result.printed)
        fputs(result.printed, stderr);
    take_findings(op, &result, said);
    take_outcome(plan, index, &result, said);
    said->stopped |= result.stopped;
    if (d->counters) {
        json_t *v = launch_counters(d, plan, op, &result.counters);

        if (d->profile)
            json_object_set_new(v, "lines", simt_lines_json(&result));
        json_array_append_new(said->counters, v);
    }
    return true;
}

static void run_memset(struct simt_device *d, const struct plan *plan, const struct plan_op *op)
{
    void *at = (void *)(uintptr_t)(plan->buffers[op->buffer].address + op->offset);

    memset(at, op->value, op->bytes);
    simt_alloc_written(d->simt, at, op->bytes);
}

static bool device_run(struct run_device *base, struct plan *plan, struct outcome *said,
                       struct error *err)
{
    struct simt_device *d = (struct simt_device *)base;
    struct arena *a = arena_new();
    bool ok = true;

    register_buffers(d, plan);
    if (d->counters)
        said->counters = json_array();
    for (size_t i = 0; i < plan->op_count && ok && said->kind == OUTCOME_OK; i++) {
        const struct plan_op *op = &plan->ops[i];

        if (op->kind == PLAN_LAUNCH)
            ok = run_launch(d, plan, i, a, said, err);
        else
            run_memset(d, plan, op);
    }
    arena_free(a);
    return ok;
}

static bool device_time(struct run_device *base, struct plan *plan, struct runner_samples *samples,
                        struct outcome *said, struct error *err)
{
    (void)base;
    (void)plan;
    (void)samples;
    (void)said;
    return error_set(err, ERROR_USE, "simt has no clock: its times are modelled from counters");
}

static bool device_hash(struct run_device *base, const struct plan *plan, uint64_t *out,
                        struct error *err)
{
    uint64_t h = 1;

    (void)base;
    (void)err;
    for (size_t i = 0; i < plan->buffer_count; i++) {
        const struct plan_buffer *b = &plan->buffers[i];

        if (b->kind == BUFFER_OUT && b->address)
            h = device_hash_bytes(h, (void *)(uintptr_t)b->address, b->bytes);
    }
    *out = h;
    return true;
}

const struct device_ops device_simt_ops = {
    .open = device_open,
    .facts = device_facts,
    .load = device_load,
    .kernel = device_kernel,
    .bind = device_bind,
    .encode_map = device_encode_map,
    .run = device_run,
    .time = device_time,
    .hash = device_hash,
    .close = device_close,
};
