/* SPDX-License-Identifier: Apache-2.0 */
/*
 * planner_api.c - check a plan's requests and build its launch list.
 *
 * Hides how addresses encode buffers and how requests become JSON. Every request comes from the
 * plan and is untrusted: names, sizes, counts and offsets are checked before they are recorded.
 */
#include "base/json.h"
#include "base/kernel_name.h"
#include "runner/plan/planner.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MAX_ARG_BYTES = 4096, MAX_ALL_ARG_BYTES = 1 << 20 };
#define MAX_TENSOR_BYTES    ((int64_t)1 << 40)
#define MAX_WORKSPACE_BYTES ((int64_t)1 << 40)

static const struct dtype_size {
    const char *name;
    uint8_t code, bits;
} dtypes[] = {
    {"f64", 2, 64}, {"f32", 2, 32}, {"f16", 2, 16}, {"bf16", 4, 16}, {"i64", 0, 64},
    {"i32", 0, 32}, {"i16", 0, 16}, {"i8", 0, 8},   {"u8", 1, 8},    {"bool", 6, 8},
};

static const char *dtype_name(int code)
{
    for (size_t i = 0; i < ARRAY_LEN(dtypes); i++)
        if ((dtypes[i].code << 8 | dtypes[i].bits) == code)
            return dtypes[i].name;
    return NULL;
}

/* ---- errors of the plan --------------------------------------------------- */

/* A copy of at most `limit` bytes in which everything is printable ASCII. */
static char *printable(struct arena *a, const char *s, size_t limit)
{
    size_t len = s ? strnlen(s, limit) : 0;
    char *copy = arena_strndup(a, s ? s : "", len);
    for (size_t i = 0; i < len; i++)
        if (copy[i] < ' ' || copy[i] > '~')
            copy[i] = '?';
    return copy;
}

static int refuse(struct planner *p, int line, const char *kind, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

static int refuse(struct planner *p, int line, const char *kind, const char *fmt, ...)
{
    va_list ap;
    if (p->error != NULL)
        return 1;
    va_start(ap, fmt);
    p->error = arena_vprintf(p->arena, fmt, ap);
    va_end(ap);
    p->error_kind = kind;
    p->error_line = line;
    return 1;
}

int planner_fail(struct planner *p, int line, const char *text)
{
    return refuse(p, line, "plan", "plan: %s", printable(p->arena, text, PLANNER_MAX_TEXT));
}

void planner_stop(struct planner *p, int line, const char *text, const char *advice)
{
    refuse(p, line, "plan", "%s", printable(p->arena, text, PLANNER_MAX_TEXT));
    if (p->error_advice == NULL)
        p->error_advice = arena_strdup(p->arena, advice);
}

/* ---- addresses ------------------------------------------------------------ */

static uint64_t slot_address(int slot)
{
    return PLANNER_BASE + (uint64_t)slot * PLANNER_SLOT_BYTES;
}

static bool is_symbol(uint64_t address)
{
    return address >= PLANNER_BASE && address < slot_address(PLANNER_SLOTS);
}

static const char *slot_name(struct arena *a, int slot)
{
    if (slot < PLANNER_MAX_TENSORS)
        return arena_printf(a, "in%d", slot);
    if (slot < 2 * PLANNER_MAX_TENSORS)
        return arena_printf(a, "out%d", slot - PLANNER_MAX_TENSORS);
    return arena_printf(a, "ws%d", slot - 2 * PLANNER_MAX_TENSORS);
}

/* Finds buffer and offset; `span` bytes from there must be inside the buffer. */
static bool resolve(struct planner *p, int line, const char *what, uint64_t address, int64_t span,
                    const char **name, int64_t *offset)
{
    int slot = (int)((address - PLANNER_BASE) / PLANNER_SLOT_BYTES);
    *offset = (int64_t)((address - PLANNER_BASE) % PLANNER_SLOT_BYTES);
    if (p->bytes[slot] < 0 || *offset > (int64_t)(PLANNER_SLOT_BYTES / 2)) {
        refuse(p, line, "plan", "%s points outside every buffer (before the start of %s)", what,
               slot + 1 < PLANNER_SLOTS ? slot_name(p->arena, slot + 1) : "none");
        return false;
    }
    *name = slot_name(p->arena, slot);
    if (span < 0 || *offset > p->bytes[slot] || span > p->bytes[slot] - *offset) {
        refuse(p, line, "plan",
               "%s: %s + %" PRId64 " .. %" PRId64 " is outside the buffer's %" PRId64 " bytes",
               what, *name, *offset, *offset + span, p->bytes[slot]);
        return false;
    }
    return true;
}

/* ---- launches ------------------------------------------------------------- */

/* "( gemm<1, 2> )" -> "gemm<1, 2>": the parentheses only keep commas together. */
static char *kernel_name(struct arena *a, const char *written)
{
    char *s = arena_strdup(a, written);
    size_t len = strlen(s);
    for (;;) {
        while (len > 0 && s[len - 1] == ' ')
            s[--len] = '\0';
        while (*s == ' ')
            s++, len--;
        if (len < 2 || s[0] != '(' || s[len - 1] != ')')
            return s;
        s[--len] = '\0';
        s++, len--;
    }
}

static json_t *dim_json(struct cutegen_dim d)
{
    return json_pack("[I, I, I]", (json_int_t)d.x, (json_int_t)d.y, (json_int_t)d.z);
}

static bool check_dims(struct planner *p, const struct cutegen_launch *l)
{
    const struct {
        const char *what;
        struct cutegen_dim d;
        int64_t x, y, z, product;
    } rows[] = {
        {"grid", l->grid, INT32_MAX, 65535, 65535, INT64_MAX},
        {"block", l->block, 1024, 1024, 64, 1024},
        {"cluster", l->cluster, 16, 16, 16, 16},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct cutegen_dim d = rows[i].d;
        bool positive = d.x > 0 && d.y > 0 && d.z > 0;
        if (!positive || d.x > rows[i].x || d.y > rows[i].y || d.z > rows[i].z ||
            d.x * d.y * d.z > rows[i].product) {
            refuse(p, l->line, positive ? "launch" : "plan",
                   "%s is (%" PRId64 ", %" PRId64 ", %" PRId64 "): %s", rows[i].what, d.x, d.y, d.z,
                   positive ? "larger than any device takes"
                            : "every dimension must be at least 1");
            return false;
        }
    }
    if (l->grid.x % l->cluster.x || l->grid.y % l->cluster.y || l->grid.z % l->cluster.z) {
        refuse(p, l->line, "launch", "the grid is not a multiple of the cluster");
        return false;
    }
    if (l->smem < 0 || l->smem > p->call.device.smem_block_bytes) {
        refuse(p, l->line, l->smem < 0 ? "plan" : "launch",
               "%" PRId64 " bytes of dynamic shared memory asked for, a block may have %" PRId64,
               l->smem, p->call.device.smem_block_bytes);
        return false;
    }
    return true;
}

static json_t *bytes_json(struct planner *p, const struct cutegen_arg *arg)
{
    static const char digits[] = "0123456789abcdef";
    static const char *const types[] = {[CUTEGEN_ARG_INT] = "int", [CUTEGEN_ARG_FLOAT] = "float"};
    const unsigned char *v = arg->value;
    char *hex = arena_alloc(p->arena, 2 * (size_t)arg->bytes + 1);
    json_t *out;
    for (uint32_t i = 0; i < arg->bytes; i++) {
        hex[2 * i] = digits[v[i] >> 4];
        hex[2 * i + 1] = digits[v[i] & 15];
    }
    out = json_pack("{s:s}", "bytes", hex);
    if (arg->kind == CUTEGEN_ARG_INT || arg->kind == CUTEGEN_ARG_FLOAT)
        json_object_set_new(out, "type", json_string(types[arg->kind]));
    return out;
}

/* NULL after refusing. */
static json_t *arg_json(struct planner *p, const struct cutegen_launch *l, int index)
{
    const struct cutegen_arg *arg = &l->args[index];
    char *what = arena_printf(p->arena, "argument %d", index + 1);
    uint64_t word = 0;
    const char *name;
    int64_t offset;

    if (arg->kind == CUTEGEN_ARG_MAP) {
        const struct cutegen_map *m = arg->value;
        if (m->opaque[0] != PLANNER_BASE || m->opaque[1] >= json_array_size(p->maps)) {
            refuse(p, l->line, "plan", "%s is a tensor map that cutegen_map_tiled did not make",
                   what);
            return NULL;
        }
        return json_pack("{s:I}", "map", (json_int_t)m->opaque[1]);
    }
    if (arg->bytes == 0 || arg->bytes > MAX_ARG_BYTES) {
        refuse(p, l->line, "plan", "%s has %u bytes", what, arg->bytes);
        return NULL;
    }
    p->arg_bytes += arg->bytes;
    if (p->arg_bytes > MAX_ALL_ARG_BYTES) {
        refuse(p, l->line, "plan", "the arguments of all launches have more than %d bytes",
               MAX_ALL_ARG_BYTES);
        return NULL;
    }
    for (uint32_t at = 0; at + sizeof word <= arg->bytes; at += sizeof word) {
        memcpy(&word, (const char *)arg->value + at, sizeof word);
        if (is_symbol(word) && arg->bytes > sizeof word) {
            refuse(p, l->line, "plan",
                   "%s is a struct that holds a tensor's address: pass pointers on their own",
                   what);
            return NULL;
        }
    }
    if (arg->bytes == sizeof word && is_symbol(word)) {
        if (!resolve(p, l->line, what, word, 0, &name, &offset))
            return NULL;
        return json_pack("{s:s, s:I}", "buffer", name, "offset", (json_int_t)offset);
    }
    if (arg->bytes == sizeof word && arg->kind == CUTEGEN_ARG_OTHER && word != 0) {
        refuse(p, l->line, "plan", "%s is a pointer that belongs to no tensor and no workspace",
               what);
        return NULL;
    }
    return bytes_json(p, arg);
}

/* There is a launch right before, for the next one to overlap with. */
static bool after_launch(const struct planner *p)
{
    size_t count = json_array_size(p->ops);

    return count > 0 &&
           strcmp(json_string_or(json_array_get(p->ops, count - 1), "op", ""), "launch") == 0;
}

int planner_launch(struct planner *p, const struct cutegen_launch *l)
{
    const char *name, *why;
    json_t *args, *op;

    if (p->error != NULL)
        return 1;
    name = kernel_name(p->arena, l->kernel);
    if (!kernel_name_ok(name, &why))
        return refuse(p, l->line, "plan", "the kernel's name '%s' %s",
                      printable(p->arena, name, 80), why);
    if (json_array_size(p->ops) == PLANNER_MAX_OPS)
        return refuse(p, l->line, "plan", "more than %d launches and memsets", PLANNER_MAX_OPS);
    if (!check_dims(p, l))
        return 1;
    args = json_array();
    for (int i = 0; l->args[i].kind != CUTEGEN_ARG_END; i++) {
        json_t *arg = i < CUTEGEN_MAX_ARGS ? arg_json(p, l, i) : NULL;
        if (arg == NULL) {
            json_decref(args);
            return refuse(p, l->line, "plan", "more than %d arguments", CUTEGEN_MAX_ARGS);
        }
        json_array_append_new(args, arg);
    }
    op = json_pack("{s:s, s:s, s:i, s:o, s:o, s:o, s:I, s:o}", "op", "launch", "kernel", name,
                   "line", l->line, "grid", dim_json(l->grid), "block", dim_json(l->block),
                   "cluster", dim_json(l->cluster), "smem", (json_int_t)l->smem, "args", args);
    if ((l->flags & CUTEGEN_OVERLAP) && after_launch(p))
        json_object_set_new(op, "overlap", json_true());
    if (l->flags >> CUTEGEN_PART_SHIFT)
        json_object_set_new(op, "part", json_integer(l->flags >> CUTEGEN_PART_SHIFT));
    json_array_append_new(p->ops, op);
    return 0;
}

int planner_clear(struct planner *p, int line, uint64_t address, int value, int64_t bytes)
{
    const char *name;
    int64_t offset;

    if (p->error != NULL)
        return 1;
    if (json_array_size(p->ops) == PLANNER_MAX_OPS)
        return refuse(p, line, "plan", "more than %d launches and memsets", PLANNER_MAX_OPS);
    if (!is_symbol(address))
        return refuse(p, line, "plan", "memset of an address that belongs to no buffer");
    if (!resolve(p, line, "memset", address, bytes, &name, &offset))
        return 1;
    if (name[0] == 'i')
        return refuse(p, line, "plan", "memset of an input (%s)", name);
    if (bytes > 0)
        json_array_append_new(p->ops,
                              json_pack("{s:s, s:s, s:I, s:I, s:i, s:i}", "op", "memset", "buffer",
                                        name, "offset", (json_int_t)offset, "bytes",
                                        (json_int_t)bytes, "value", value & 255, "line", line));
    return 0;
}

uint64_t planner_workspace(struct planner *p, int line, int64_t bytes)
{
    int slot = 2 * PLANNER_MAX_TENSORS + p->workspace_count;

    if (p->error != NULL)
        return 0;
    if (bytes < 0 || bytes > MAX_WORKSPACE_BYTES || p->workspace_count == PLANNER_MAX_WORKSPACES) {
        refuse(p, line, "plan", "workspace %d of %" PRId64 " bytes", p->workspace_count, bytes);
        return 0;
    }
    bytes = bytes == 0 ? 1 : bytes;
    p->workspace_count++;
    p->bytes[slot] = bytes;
    json_array_append_new(p->workspace, json_pack("{s:I}", "bytes", (json_int_t)bytes));
    return slot_address(slot);
}

/* ---- tensor maps ---------------------------------------------------------- */

static bool check_map(struct planner *p, int line, const struct cutegen_map_spec *s)
{
    int64_t item = (s->dtype & 255) / 8;
    int64_t inner;
    if (dtype_name(s->dtype) == NULL || s->rank < 1 || s->rank > CUTEGEN_MAP_RANK)
        return refuse(p, line, "plan", "tensor map: dtype or rank %d is none there is", s->rank),
               false;
    if ((uintptr_t)s->data % 16 != 0)
        return refuse(p, line, "launch", "tensor map: the address must be a multiple of 16"), false;
    for (int i = 0; i < s->rank; i++) {
        if (s->dims[i] < 1 || s->dims[i] > ((int64_t)1 << 32) || s->box[i] < 1 || s->box[i] > 256)
            return refuse(p, line, "launch",
                          "tensor map: dimension %d has size %" PRId64
                          " (1 to 2^32) and box %d (1 to 256)",
                          i, s->dims[i], s->box[i]),
                   false;
        if (s->element_strides[i] < 0 || s->element_strides[i] > 8)
            return refuse(p, line, "launch", "tensor map: element stride %d",
                          s->element_strides[i]),
                   false;
        if (i > 0 && (s->strides_bytes[i - 1] <= 0 || s->strides_bytes[i - 1] % 16 != 0 ||
                      s->strides_bytes[i - 1] >= ((int64_t)1 << 40)))
            return refuse(p, line, "launch",
                          "tensor map: stride %" PRId64
                          " of dimension %d must be a multiple of 16 bytes",
                          s->strides_bytes[i - 1], i),
                   false;
    }
    if (s->swizzle < 0 || s->swizzle > CUTEGEN_SWIZZLE_128 || s->fill < 0 ||
        s->fill > CUTEGEN_FILL_NAN || s->l2 < 0 || s->l2 > CUTEGEN_L2_256)
        return refuse(p, line, "plan", "tensor map: swizzle, fill or l2 is none there is"), false;
    inner = item * s->box[0];
    if (inner % 16 != 0 || (s->swizzle != 0 && inner > 16 << s->swizzle))
        return refuse(p, line, "launch",
                      "tensor map: the box is %" PRId64
                      " bytes wide; it must be a multiple of 16 and at most the swizzle",
                      inner),
               false;
    return true;
}

/* Bytes from the first to the last element the map can reach. */
static int64_t map_span(const struct cutegen_map_spec *s)
{
    double span = (double)s->dims[0] * ((s->dtype & 255) / 8);
    for (int i = 1; i < s->rank; i++)
        span += (double)(s->dims[i] - 1) * (double)s->strides_bytes[i - 1];
    return span > 9e15 ? INT64_MAX / 2 : (int64_t)span;
}

static json_t *map_json(const struct cutegen_map_spec *s, const char *name, int64_t offset)
{
    static const char *const swizzles[] = {"none", "32", "64", "128"};
    static const char *const l2s[] = {"none", "64", "128", "256"};
    json_t *dims = json_array(), *strides = json_array(), *box = json_array(),
           *steps = json_array();
    for (int i = 0; i < s->rank; i++) {
        json_array_append_new(dims, json_integer(s->dims[i]));
        json_array_append_new(box, json_integer(s->box[i]));
        json_array_append_new(steps,
                              json_integer(s->element_strides[i] ? s->element_strides[i] : 1));
        if (i > 0)
            json_array_append_new(strides, json_integer(s->strides_bytes[i - 1]));
    }
    return json_pack("{s:s, s:I, s:s, s:o, s:o, s:o, s:o, s:s, s:s, s:s}", "buffer", name, "offset",
                     (json_int_t)offset, "dtype", dtype_name(s->dtype), "dims", dims,
                     "strides_bytes", strides, "box", box, "element_strides", steps, "swizzle",
                     swizzles[s->swizzle], "fill", s->fill == CUTEGEN_FILL_NAN ? "nan" : "zero",
                     "l2", l2s[s->l2]);
}

int planner_map(struct planner *p, int line, const struct cutegen_map_spec *given,
                struct cutegen_map *out)
{
    struct cutegen_map_spec s = *given;
    const char *name;
    int64_t offset;

    memset(out, 0, sizeof *out);
    if (p->error != NULL)
        return 1;
    if (json_array_size(p->maps) == PLANNER_MAX_MAPS)
        return refuse(p, line, "plan", "more than %d tensor maps", PLANNER_MAX_MAPS);
    if (!is_symbol((uintptr_t)s.data))
        return refuse(p, line, "plan", "tensor map: the address belongs to no buffer");
    if (!check_map(p, line, &s) ||
        !resolve(p, line, "tensor map", (uintptr_t)s.data, map_span(&s), &name, &offset))
        return 1;
    out->opaque[0] = PLANNER_BASE; /* marks it as ours */
    out->opaque[1] = json_array_size(p->maps);
    json_array_append_new(p->maps, map_json(&s, name, offset));
    return 0;
}

/* ---- the request and the answer ------------------------------------------- */

static bool read_shape(struct planner *p, const json_t *info, struct cutegen_tensor *t,
                       int64_t *bytes, struct error *err)
{
    json_t *shape, *strides;
    double last = 0;
    bool empty = false;

    if (!json_get_array(info, "shape", &shape, err) ||
        !json_get_array(info, "strides", &strides, err))
        return false;
    t->ndim = (int32_t)json_array_size(shape);
    if (t->ndim > PLANNER_MAX_DIMS || json_array_size(strides) != (size_t)t->ndim)
        return error_set(err, ERROR_USE, "shape and strides must have the same 0 to %d entries",
                         PLANNER_MAX_DIMS);
    t->shape = arena_array(p->arena, PLANNER_MAX_DIMS, sizeof(int64_t));
    t->strides = arena_array(p->arena, PLANNER_MAX_DIMS, sizeof(int64_t));
    for (int i = 0; i < t->ndim; i++) {
        t->shape[i] = json_integer_value(json_array_get(shape, (size_t)i));
        t->strides[i] = json_integer_value(json_array_get(strides, (size_t)i));
        if (t->shape[i] < 0 || t->strides[i] < 0)
            return error_set(err, ERROR_USE, "shapes and strides are not negative");
        empty = empty || t->shape[i] == 0;
        last += (double)(t->shape[i] - 1) * (double)t->strides[i];
    }
    last = empty ? 0 : (last + 1) * (t->dtype.bits / 8);
    if (last > (double)MAX_TENSOR_BYTES)
        return error_set(err, ERROR_USE, "a tensor of %.3g bytes", last);
    *bytes = (int64_t)last;
    return true;
}

static bool read_tensor(struct planner *p, const json_t *info, int slot, struct cutegen_tensor *t,
                        struct error *err)
{
    const char *dtype;
    if (!json_get_string(info, "dtype", &dtype, err))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(dtypes); i++)
        if (strcmp(dtypes[i].name, dtype) == 0)
            t->dtype = (struct cutegen_dtype){dtypes[i].code, dtypes[i].bits, 1};
    if (t->dtype.bits == 0)
        return error_set(err, ERROR_USE, "no dtype is called '%s'", dtype);
    t->data = (void *)(uintptr_t)slot_address(slot);
    t->device = (struct cutegen_place){.type = 2, .id = 0};
    return read_shape(p, info, t, &p->bytes[slot], err);
}

static bool read_tensors(struct planner *p, const json_t *request, const char *key, int first_slot,
                         struct cutegen_tensor *to, int32_t *count, struct error *err)
{
    json_t *list;
    if (!json_get_array(request, key, &list, err))
        return false;
    if (json_array_size(list) > PLANNER_MAX_TENSORS)
        return error_set(err, ERROR_USE, "more than %d %s", PLANNER_MAX_TENSORS, key);
    *count = (int32_t)json_array_size(list);
    for (int i = 0; i < *count; i++)
        if (!read_tensor(p, json_array_get(list, (size_t)i), first_slot + i, &to[i], err))
            return error_add(err, "%s[%d]", key, i);
    return true;
}

static bool read_scalars(struct planner *p, const json_t *request, struct error *err)
{
    json_t *list = json_object_get(request, "scalars");
    if (json_array_size(list) > PLANNER_MAX_TENSORS)
        return error_set(err, ERROR_USE, "more than %d scalars", PLANNER_MAX_TENSORS);
    p->call.scalar_count = (int32_t)json_array_size(list);
    for (int i = 0; i < p->call.scalar_count; i++) {
        const json_t *item = json_array_get(list, (size_t)i);
        const json_t *value = json_object_get(item, "value");
        const char *type = json_string_or(item, "type", "");
        struct cutegen_scalar *s = &p->scalars[i];
        if (json_is_boolean(value) || strcmp(type, "bool") == 0) {
            s->type = CUTEGEN_SCALAR_BOOL;
            s->i = json_is_true(value) || json_integer_value(value) != 0;
            s->f = (double)s->i;
        } else if (json_is_integer(value) && strcmp(type, "float") != 0) {
            s->type = CUTEGEN_SCALAR_INT;
            s->i = json_integer_value(value);
            s->f = (double)s->i;
        } else if (json_is_number(value)) {
            s->type = CUTEGEN_SCALAR_FLOAT;
            s->f = json_number_value(value);
            s->i = s->f > -9e18 && s->f < 9e18 ? (int64_t)s->f : 0;
        } else {
            return error_set(err, ERROR_USE, "scalars[%d] is not a number", i);
        }
    }
    return true;
}

bool planner_load(struct planner *p, const json_t *request, struct error *err)
{
    const json_t *device = json_object_get(request, "device");

    for (int i = 0; i < PLANNER_SLOTS; i++)
        p->bytes[i] = -1;
    p->ops = json_array();
    p->maps = json_array();
    p->workspace = json_array();
    p->call.abi_version = CUTEGEN_ABI_VERSION;
    p->call.in = p->in;
    p->call.out = p->out;
    p->call.scalar = p->scalars;
    p->call.device = (struct cutegen_device){
        .arch = (int32_t)json_int_or(device, "arch", 80),
        .sm_count = (int32_t)json_int_or(device, "sm_count", 108),
        .smem_block_bytes = json_int_or(device, "smem_block_bytes", 49152),
        .l2_bytes = json_int_or(device, "l2_bytes", 0),
    };
    return read_tensors(p, request, "inputs", 0, p->in, &p->call.in_count, err) &&
           read_tensors(p, request, "outputs", PLANNER_MAX_TENSORS, p->out, &p->call.out_count,
                        err) &&
           read_scalars(p, request, err);
}

void planner_release(struct planner *p)
{
    json_decref(p->ops);
    json_decref(p->maps);
    json_decref(p->workspace);
    p->ops = p->maps = p->workspace = NULL;
}

json_t *planner_answer(struct planner *p, int returned)
{
    if (p->error == NULL && returned != 0)
        refuse(p, 0, "plan", "the plan returned %d", returned);
    if (p->error == NULL && json_array_size(p->ops) == 0)
        refuse(p, 0, "plan", "the plan launched nothing");
    if (p->error != NULL)
        return json_pack("{s:b, s:s, s:o, s:i, s:o}", "ok", 0, "kind", p->error_kind, "text",
                         json_from_string(p->error), "line", p->error_line, "hint",
                         json_from_string(p->error_advice ? p->error_advice : ""));
    return json_pack("{s:b, s:O, s:O, s:O}", "ok", 1, "workspace", p->workspace, "ops", p->ops,
                     "maps", p->maps);
}
