/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runner_plan.c - read and check a launch list.
 *
 * Invariants
 * 1. No value of the list is used before it was checked: counts, names,
 *    offsets and sizes all have limits.
 * 2. After plan_check() every launch has a function and arguments of exactly
 *    the sizes the kernel takes.
 * 3. After plan_bind() every pointer argument points into, or one past the end
 *    of, the buffer it names.
 */
#include "runner/runner_plan.h"

#include "base/json.h"
#include "runner/device.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARG_MAX_BYTES = 4096, MAX_WORKSPACES = 512 };

/* The position in the list, for messages. */
struct list_reader {
    struct plan *plan;
    struct arena *a;
    const json_t *names;
    struct outcome *said;
    int op;
};

const char *plan_op_text(const struct plan *plan, size_t op, char *out, size_t size)
{
    const struct plan_op *o = &plan->ops[op];
    const char *what = o->kind == PLAN_LAUNCH && o->kernel ? o->kernel : "memset";

    if (o->line > 0)
        snprintf(out, size, "%s (step %zu of the plan, line %d)", what, op + 1, o->line);
    else
        snprintf(out, size, "%s (step %zu of the plan)", what, op + 1);
    return out;
}

struct plan_buffer *plan_buffer_find(struct plan *plan, const char *name)
{
    for (size_t i = 0; i < plan->buffer_count; i++)
        if (strcmp(plan->buffers[i].name, name) == 0)
            return &plan->buffers[i];
    return NULL;
}

static bool buffer_kind_of(const char *name, enum buffer_kind *kind)
{
    static const char *const prefixes[] = {
        [BUFFER_IN] = "in", [BUFFER_OUT] = "out", [BUFFER_WORKSPACE] = "ws"};

    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
        size_t n = strlen(prefixes[i]);
        size_t digits = strspn(name + (strncmp(name, prefixes[i], n) == 0 ? n : 0), "0123456789");

        if (strncmp(name, prefixes[i], n) == 0 && digits > 0 && digits < 5 && !name[n + digits]) {
            *kind = (enum buffer_kind)i;
            return true;
        }
    }
    return false;
}

/* Index of a buffer, which is added on first use; -1 after a fault. */
static int buffer_index(struct list_reader *r, const char *name)
{
    struct plan *p = r->plan;
    struct plan_buffer *b = plan_buffer_find(p, name);
    enum buffer_kind kind;

    if (b)
        return (int)(b - p->buffers);
    if (!buffer_kind_of(name, &kind) || kind == BUFFER_WORKSPACE) {
        outcome_set(r->said, OUTCOME_BAD_LAUNCH, r->op, "step %d of the plan uses buffer %s, %s",
                    r->op + 1, name, "which does not exist");
        return -1;
    }
    if (p->buffer_count == PLAN_MAX_BUFFERS) {
        outcome_set(r->said, OUTCOME_BAD_LAUNCH, r->op, "the plan uses more than %d buffers",
                    PLAN_MAX_BUFFERS);
        return -1;
    }
    b = &p->buffers[p->buffer_count++];
    snprintf(b->name, sizeof b->name, "%s", name);
    b->kind = kind;
    return (int)(b - p->buffers);
}

static bool list_fault(struct list_reader *r, const char *what)
{
    return outcome_set(r->said, OUTCOME_BAD_LAUNCH, r->op,
                       "step %d of the plan is not understood: %s", r->op + 1, what);
}

/* A non-negative integer below 2^62. */
static bool get_count(struct list_reader *r, const json_t *obj, const char *key, uint64_t *out)
{
    const json_t *v = json_object_get(obj, key);

    if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) > INT64_MAX / 2)
        return list_fault(r, key);
    *out = (uint64_t)json_integer_value(v);
    return true;
}

static bool get_counts(struct list_reader *r, const json_t *obj, const char *key, uint64_t *out,
                       size_t count)
{
    const json_t *list = json_object_get(obj, key);

    if (!json_is_array(list) || json_array_size(list) != count)
        return list_fault(r, key);
    for (size_t i = 0; i < count; i++) {
        const json_t *v = json_array_get(list, i);

        if (!json_is_integer(v) || json_integer_value(v) < 0)
            return list_fault(r, key);
        out[i] = (uint64_t)json_integer_value(v);
    }
    return true;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

static bool parse_bytes(struct list_reader *r, const char *hex, struct plan_arg *arg)
{
    size_t len = strlen(hex);

    if (len == 0 || len % 2 || len / 2 > ARG_MAX_BYTES)
        return list_fault(r, "the bytes of an argument");
    arg->size = len / 2;
    arg->data = arena_alloc(r->a, arg->size);
    for (size_t i = 0; i < arg->size; i++) {
        int high = hex_digit(hex[2 * i]), low = hex_digit(hex[2 * i + 1]);

        if (high < 0 || low < 0)
            return list_fault(r, "the bytes of an argument");
        arg->data[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

/* "pointers": [{"at", "buffer", "offset"}] inside of an argument's bytes */
static bool parse_pointers(struct list_reader *r, const json_t *list, struct plan_arg *arg)
{
    size_t count = json_array_size(list);

    if (count > PLAN_MAX_POINTERS)
        return list_fault(r, "too many pointers in an argument");
    arg->pointers = arena_array(r->a, count + 1, sizeof *arg->pointers);
    arg->pointer_count = count;
    for (size_t i = 0; i < count; i++) {
        const json_t *v = json_array_get(list, i);
        const char *buffer = json_string_value(json_object_get(v, "buffer"));
        struct plan_pointer *p = &arg->pointers[i];
        uint64_t at = 0;

        if (!buffer || !get_count(r, v, "at", &at) || !get_count(r, v, "offset", &p->offset) ||
            arg->size < sizeof(uint64_t) || at > arg->size - sizeof(uint64_t))
            return list_fault(r, "a pointer inside of an argument");
        p->at = (size_t)at;
        p->buffer = buffer_index(r, buffer);
        if (p->buffer < 0)
            return false;
    }
    return true;
}

static bool parse_arg(struct list_reader *r, const json_t *v, struct plan_arg *arg)
{
    const char *buffer = json_string_value(json_object_get(v, "buffer"));
    const char *bytes = json_string_value(json_object_get(v, "bytes"));
    const json_t *map = json_object_get(v, "map");

    arg->buffer = arg->map = -1;
    arg->type = strcmp(json_string_or(v, "type", ""), "float") == 0 ? "float"
                : strcmp(json_string_or(v, "type", ""), "int") == 0 ? "int"
                                                                    : "";
    if (bytes)
        return parse_bytes(r, bytes, arg) && parse_pointers(r, json_object_get(v, "pointers"), arg);
    if (json_is_integer(map)) {
        if (json_integer_value(map) < 0 ||
            json_integer_value(map) >= (json_int_t)r->plan->map_count)
            return list_fault(r, "a tensor map that does not exist");
        arg->map = (int)json_integer_value(map);
        arg->size = MAP_BYTES;
        arg->data = r->plan->maps[arg->map].encoded;
        return true;
    }
    if (!buffer || !get_count(r, v, "offset", &arg->offset))
        return list_fault(r, "an argument");
    arg->buffer = buffer_index(r, buffer);
    arg->size = sizeof(uint64_t);
    arg->data = arena_alloc(r->a, arg->size);
    return arg->buffer >= 0;
}

static bool parse_launch(struct list_reader *r, const json_t *v, struct plan_op *op)
{
    const json_t *args = json_object_get(v, "args");
    const char *kernel = json_string_value(json_object_get(v, "kernel"));
    const char *lowered = kernel ? json_string_value(json_object_get(r->names, kernel)) : NULL;

    op->kind = PLAN_LAUNCH;
    if (!kernel)
        return list_fault(r, "kernel");
    op->kernel = arena_strdup(r->a, kernel);
    if (!lowered)
        return outcome_set(r->said, OUTCOME_BAD_LAUNCH, r->op, "no kernel %s was built", kernel);
    op->lowered = arena_strdup(r->a, lowered);
    if (!get_counts(r, v, "grid", op->grid, 3) || !get_counts(r, v, "block", op->block, 3) ||
        !get_counts(r, v, "cluster", op->cluster, 3) || !get_count(r, v, "smem", &op->smem))
        return false;
    if (!json_is_array(args) || json_array_size(args) > PLAN_MAX_ARGS)
        return list_fault(r, "args");
    op->overlap = json_bool_or(v, "overlap", false);
    op->arg_count = json_array_size(args);
    op->args = arena_array(r->a, op->arg_count + 1, sizeof *op->args);
    for (size_t i = 0; i < op->arg_count; i++)
        if (!parse_arg(r, json_array_get(args, i), &op->args[i]))
            return false;
    return true;
}

static bool parse_memset(struct list_reader *r, const json_t *v, struct plan_op *op)
{
    const char *buffer = json_string_value(json_object_get(v, "buffer"));
    uint64_t value = 0;

    op->kind = PLAN_MEMSET;
    if (!buffer || !get_count(r, v, "offset", &op->offset) ||
        !get_count(r, v, "bytes", &op->bytes) || !get_count(r, v, "value", &value))
        return list_fault(r, "memset");
    if (value > 255)
        return list_fault(r, "the value of a memset is not a byte");
    op->value = (unsigned char)value;
    op->buffer = buffer_index(r, buffer);
    if (op->buffer < 0)
        return false;
    if (r->plan->buffers[op->buffer].kind == BUFFER_IN)
        return outcome_set(r->said, OUTCOME_BAD_LAUNCH, r->op, "memset of input %s", buffer);
    return true;
}

static bool parse_ops(struct list_reader *r, const json_t *list)
{
    struct plan *p = r->plan;

    if (!json_is_array(list) || json_array_size(list) > PLAN_MAX_OPS)
        return outcome_set(r->said, OUTCOME_BAD_LAUNCH, -1,
                           "the plan has no list of launches, or one longer than %d", PLAN_MAX_OPS);
    if (json_array_size(list) == 0)
        return outcome_set(r->said, OUTCOME_BAD_LAUNCH, -1, "the plan launches nothing");
    p->ops = arena_array(r->a, json_array_size(list), sizeof *p->ops);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *v = json_array_get(list, i);
        const char *what = json_string_or(v, "op", "");
        struct plan_op *op = &p->ops[i];

        r->op = (int)i;
        p->op_count = i + 1;
        op->line = (int)json_int_or(v, "line", 0);
        op->buffer = -1;
        if (strcmp(what, "launch") == 0   ? !parse_launch(r, v, op)
            : strcmp(what, "memset") == 0 ? !parse_memset(r, v, op)
                                          : !list_fault(r, "neither a launch nor a memset"))
            return false;
    }
    r->op = -1;
    return true;
}

static bool parse_map(struct list_reader *r, const json_t *v, struct plan_map *m)
{
    const char *buffer = json_string_value(json_object_get(v, "buffer"));
    size_t rank = json_array_size(json_object_get(v, "dims"));
    size_t strides = json_array_size(json_object_get(v, "strides_bytes"));
    uint64_t box[MAP_MAX_RANK], elements[MAP_MAX_RANK];

    if (!buffer || rank < 1 || rank > MAP_MAX_RANK || strides > MAP_MAX_RANK ||
        strides + 1 < rank || !get_count(r, v, "offset", &m->offset) ||
        !get_counts(r, v, "dims", m->dims, rank) ||
        !get_counts(r, v, "strides_bytes", m->strides_bytes, strides) ||
        !get_counts(r, v, "box", box, rank) || !get_counts(r, v, "element_strides", elements, rank))
        return list_fault(r, "a tensor map");
    m->rank = (int)rank;
    for (size_t i = 0; i < rank; i++) {
        if (box[i] > 256 || elements[i] > 8)
            return list_fault(r, "a tensor map's box is over 256 wide, or its stride over 8");
        m->box[i] = (uint32_t)box[i];
        m->element_strides[i] = (uint32_t)elements[i];
    }
    m->dtype = arena_strdup(r->a, json_string_or(v, "dtype", ""));
    m->swizzle = arena_strdup(r->a, json_string_or(v, "swizzle", "none"));
    m->fill = arena_strdup(r->a, json_string_or(v, "fill", "zero"));
    m->l2 = arena_strdup(r->a, json_string_or(v, "l2", "none"));
    m->buffer = buffer_index(r, buffer);
    return m->buffer >= 0;
}

static bool parse_maps(struct list_reader *r, const json_t *list)
{
    struct plan *p = r->plan;
    size_t count = json_array_size(list);
    char *memory;

    if (count > PLAN_MAX_MAPS)
        return outcome_set(r->said, OUTCOME_BAD_LAUNCH, -1, "the plan has more than %d tensor maps",
                           PLAN_MAX_MAPS);
    memory = arena_alloc(r->a, (count + 1) * sizeof *p->maps); /* room to align */
    p->maps = (struct plan_map *)(((uintptr_t)memory + 63) & ~(uintptr_t)63);
    p->map_count = count;
    for (size_t i = 0; i < count; i++)
        if (!parse_map(r, json_array_get(list, i), &p->maps[i]))
            return false;
    return true;
}

static bool parse_workspace(struct list_reader *r, const json_t *list)
{
    struct plan *p = r->plan;

    if (json_array_size(list) > MAX_WORKSPACES)
        return outcome_set(r->said, OUTCOME_BAD_LAUNCH, -1,
                           "the plan asks for too many workspaces");
    for (size_t i = 0; i < json_array_size(list); i++) {
        struct plan_buffer *b = &p->buffers[p->buffer_count++];

        snprintf(b->name, sizeof b->name, "ws%zu", i);
        b->kind = BUFFER_WORKSPACE;
        if (!get_count(r, json_array_get(list, i), "bytes", &b->bytes))
            return false;
    }
    return true;
}

void plan_parse(const json_t *list, const json_t *names, struct arena *a, struct plan *out,
                struct outcome *said)
{
    struct list_reader r = {.plan = out, .a = a, .names = names, .said = said, .op = -1};

    memset(out, 0, sizeof *out);
    if (!parse_workspace(&r, json_object_get(list, "workspace")) ||
        !parse_maps(&r, json_object_get(list, "maps")))
        return;
    parse_ops(&r, json_object_get(list, "ops"));
}

/* ---- against the kernels and the device --------------------------------- */

/* "8 bytes (a pointer)", "4 bytes (int)" */
static const char *arg_text(const struct plan_arg *arg, char *out, size_t size)
{
    const char *what = arg->buffer >= 0 ? "a pointer" : arg->map >= 0 ? "a tensor map" : arg->type;

    snprintf(out, size, "%zu bytes%s%s%s", arg->size, *what ? " (" : "", what, *what ? ")" : "");
    return out;
}

static bool check_args(const struct plan_op *op, size_t index, const char *who,
                       const struct kernel_facts *k, struct outcome *said)
{
    char text[64];

    if (!k->params_known)
        return true;
    for (size_t i = 0; i < op->arg_count && i < k->param_count; i++) {
        if (op->args[i].size == k->param_bytes[i])
            continue;
        return outcome_set(said, OUTCOME_BAD_LAUNCH, (int)index,
                           "argument %zu of %s is %s, the kernel takes %zu", i + 1, who,
                           arg_text(&op->args[i], text, sizeof text), k->param_bytes[i]);
    }
    if (op->arg_count != k->param_count)
        return outcome_set(said, OUTCOME_BAD_LAUNCH, (int)index,
                           "%s is given %zu arguments, the kernel takes %zu", who, op->arg_count,
                           k->param_count);
    return true;
}

static bool check_dims(const struct plan_op *op, size_t index, const char *who,
                       const struct device_facts *f, struct outcome *said)
{
    static const char axis[] = "xyz";

    for (int i = 0; i < 3; i++) {
        if (op->grid[i] == 0 || op->grid[i] > f->grid[i])
            return outcome_set(said, OUTCOME_BAD_LAUNCH, (int)index,
                               "%s: grid.%c is %" PRIu64 ", the device takes 1 to %" PRIu64, who,
                               axis[i], op->grid[i], f->grid[i]);
        if (op->block[i] == 0 || op->block[i] > f->block[i])
            return outcome_set(said, OUTCOME_BAD_LAUNCH, (int)index,
                               "%s: block.%c is %" PRIu64 ", the device takes 1 to %" PRIu64, who,
                               axis[i], op->block[i], f->block[i]);
        if (op->cluster[i] == 0 || op->cluster[i] > f->cluster_blocks)
            return outcome_set(said, OUTCOME_BAD_LAUNCH, (int)index,
                               "%s: cluster.%c is %" PRIu64 ", the device takes 1 to %" PRIu64, who,
                               axis[i], op->cluster[i], f->cluster_blocks);
        if (op->grid[i] % op->cluster[i])
            return outcome_set(said, OUTCOME_BAD_LAUNCH, (int)index,
                               "%s: grid.%c is %" PRIu64 ", no multiple of cluster.%c, %" PRIu64,
                               who, axis[i], op->grid[i], axis[i], op->cluster[i]);
    }
    return true;
}

static bool check_sizes(const struct plan_op *op, size_t index, const char *who,
                        const struct device_facts *f, const struct kernel_facts *k,
                        struct outcome *said)
{
    uint64_t threads = op->block[0] * op->block[1] * op->block[2];
    uint64_t blocks = op->cluster[0] * op->cluster[1] * op->cluster[2];
    uint64_t smem = op->smem + k->static_smem_bytes;

    if (threads > f->threads_block)
        return outcome_set(said, OUTCOME_BAD_LAUNCH, (int)index,
                           "%s: %" PRIu64 " threads in a block, the device takes %" PRIu64, who,
                           threads, f->threads_block);
    if (k->max_threads && threads > k->max_threads)
        return outcome_set(said, OUTCOME_BAD_LAUNCH, (int)index,
                           "%s: %" PRIu64 " threads in a block, the kernel allows %" PRIu64
                           " (its __launch_bounds__ or its registers)",
                           who, threads, k->max_threads);
    if (blocks > f->cluster_blocks)
        return outcome_set(said, OUTCOME_BAD_LAUNCH, (int)index,
                           "%s: %" PRIu64 " blocks in a cluster, the device takes %" PRIu64, who,
                           blocks, f->cluster_blocks);
    if (smem > f->smem_block_bytes)
        return outcome_set(said, OUTCOME_BAD_LAUNCH, (int)index,
                           "%s: %" PRIu64 " bytes of shared memory (%" PRIu64 " dynamic + %" PRIu64
                           " static), the device takes %" PRIu64 " per block",
                           who, smem, op->smem, k->static_smem_bytes, f->smem_block_bytes);
    return true;
}

void plan_check(struct plan *plan, struct run_device *device, struct outcome *said)
{
    struct device_facts facts;
    char who[512];

    device->ops->facts(device, &facts);
    if (plan->map_count > 0 && !facts.tensor_maps) {
        outcome_set(said, OUTCOME_BAD_LAUNCH, -1, "%s has no tensor maps (TMA)", facts.name);
        return;
    }
    for (size_t i = 0; i < plan->op_count; i++) {
        struct plan_op *op = &plan->ops[i];
        struct kernel_facts k = {0};

        if (op->kind != PLAN_LAUNCH)
            continue;
        plan_op_text(plan, i, who, sizeof who);
        if (!device->ops->kernel(device, op->lowered, &k)) {
            outcome_set(said, OUTCOME_BAD_LAUNCH, (int)i, "the module has no kernel %s", who);
            return;
        }
        op->function = k.function;
        if (!check_args(op, i, who, &k, said) || !check_dims(op, i, who, &facts, said) ||
            !check_sizes(op, i, who, &facts, &k, said))
            return;
    }
}

/* ---- against the buffers ------------------------------------------------ */

/* Does the buffer exist, and is [offset, offset + bytes] inside it? */
static bool check_range(const struct plan *plan, int buffer, uint64_t offset, uint64_t bytes,
                        int op, const char *who, struct outcome *said)
{
    const struct plan_buffer *b = &plan->buffers[buffer];

    if (b->address == 0)
        return outcome_set(said, OUTCOME_BAD_LAUNCH, op, "%s uses %s, which this task has not", who,
                           b->name);
    if (offset > b->bytes || bytes > b->bytes - offset)
        return outcome_set(said, OUTCOME_BAD_LAUNCH, op,
                           "%s reaches %" PRIu64 " bytes from offset %" PRIu64
                           " of %s, which has %" PRIu64,
                           who, bytes, offset, b->name, b->bytes);
    return true;
}

/* Its address into an argument. */
static bool bind_pointer(const struct plan *plan, size_t index, const char *who, int buffer,
                         uint64_t offset, unsigned char *to, struct outcome *said)
{
    uint64_t address;

    if (!check_range(plan, buffer, offset, 0, (int)index, who, said))
        return false;
    address = plan->buffers[buffer].address + offset;
    memcpy(to, &address, sizeof address);
    return true;
}

static bool bind_launch(struct plan *plan, size_t index, struct outcome *said)
{
    struct plan_op *op = &plan->ops[index];
    char who[512], full[640];

    plan_op_text(plan, index, who, sizeof who);
    for (size_t i = 0; i < op->arg_count; i++) {
        struct plan_arg *arg = &op->args[i];

        snprintf(full, sizeof full, "argument %zu of %s", i + 1, who);
        if (arg->buffer >= 0 &&
            !bind_pointer(plan, index, full, arg->buffer, arg->offset, arg->data, said))
            return false;
        for (size_t j = 0; j < arg->pointer_count; j++) {
            const struct plan_pointer *p = &arg->pointers[j];

            if (!bind_pointer(plan, index, full, p->buffer, p->offset, arg->data + p->at, said))
                return false;
        }
    }
    return true;
}

/* Bytes from the first to the last element that a map reaches; UINT64_MAX: more than memory. */
static uint64_t map_reach(const struct plan_map *m)
{
    static const struct {
        const char *dtype;
        int bytes;
    } sizes[] = {{"u8", 1},   {"i8", 1},  {"bool", 1}, {"u16", 2}, {"i16", 2}, {"f16", 2},
                 {"bf16", 2}, {"u32", 4}, {"i32", 4},  {"f32", 4}, {"tf32", 4}};
    double reach, item = 8;

    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        if (!strcmp(m->dtype, sizes[i].dtype))
            item = sizes[i].bytes;
    reach = (double)m->dims[0] * item;
    for (int i = 1; i < m->rank; i++)
        reach += ((double)m->dims[i] - 1) * (double)m->strides_bytes[i - 1];
    return reach < 0 || reach > 9e15 ? UINT64_MAX : (uint64_t)reach;
}

void plan_bind(struct plan *plan, struct run_device *device, struct outcome *said)
{
    char why[1024], who[64];

    for (size_t i = 0; i < plan->map_count; i++) {
        struct plan_map *m = &plan->maps[i];

        snprintf(who, sizeof who, "tensor map %zu", i);
        if (!check_range(plan, m->buffer, m->offset, map_reach(m), -1, who, said))
            return;
        if (!device->ops->encode_map(device, plan, m, why, sizeof why)) {
            outcome_set(said, OUTCOME_BAD_LAUNCH, -1, "tensor map %zu (of %s): %s", i,
                        plan->buffers[m->buffer].name, why);
            return;
        }
    }
    for (size_t i = 0; i < plan->op_count; i++) {
        const struct plan_op *op = &plan->ops[i];

        if (op->kind == PLAN_LAUNCH
                ? !bind_launch(plan, i, said)
                : !check_range(plan, op->buffer, op->offset, op->bytes, (int)i, "memset", said))
            return;
    }
}
