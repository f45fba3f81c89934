/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch_list.c - see launch_list.h.
 *
 * Invariants
 * 1. The result contains only checked data: strings, numbers and lists are created anew.
 * 2. The limits are the planner's (runner/plan/planner_api.c): a list that passes here could have
 *    come from there.
 */
#include "toolchain/launch_list.h"

#include "base/json.h"
#include "base/kernel_name.h"
#include "toolchain/diag.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_OPS = 4096,
    MAX_WORKSPACES = 512,
    MAX_ARGS = 64,
    MAX_ARG_BYTES = 4096,
    MAX_POINTERS = 64, /* in one argument */
    MAX_MAPS = 256,
    MAX_RANK = 5,
    MAX_ALL_ARG_BYTES = 1 << 20,
    MAX_BUFFER_NAME = 8,
    MAX_LINE = 1 << 20,
};
#define MAX_BYTES ((json_int_t)1 << 40)

struct list {
    const struct launch_subject *subject;
    struct arena *a;
    struct verdict *v;
    json_int_t workspace[MAX_WORKSPACES];
    size_t workspaces, maps, arg_bytes;
    size_t step; /* from 1 */
    int line;
};

static bool refuse(struct list *l, enum verdict_kind kind, const char *what)
{
    const char *name = l->subject->name;
    const char *step = l->step ? arena_printf(l->a, "step %zu of the plan: ", l->step) : "";
    const char *text = arena_printf(l->a, "%s%s", step, what);

    *l->v = (struct verdict){.kind = kind, .summary = text, .detail = ""};
    if (l->line > 0) {
        l->v->findings[0] = (struct finding){
            .kind = verdict_names[kind],
            .where = arena_printf(l->a, "%s:%d", name, l->line),
            .line = diag_source_line(l->subject->source, l->line, l->a),
            .text = text,
        };
        l->v->finding_count = 1;
        l->v->detail = arena_printf(l->a, "%s: %s\n    %s\n", l->v->findings[0].where, text,
                                    l->v->findings[0].line);
    }
    return false;
}

static bool number(const json_t *v, json_int_t least, json_int_t most, json_int_t *out)
{
    *out = json_integer_value(v);
    return json_is_integer(v) && *out >= least && *out <= most;
}

/* "in0", "out1", "ws2" that exist. */
static bool buffer_exists(const struct list *l, const char *name)
{
    static const char *const kinds[] = {"in", "out", "ws"};
    const size_t counts[] = {(size_t)l->subject->in_count, (size_t)l->subject->out_count,
                             l->workspaces};

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        size_t n = strlen(kinds[i]), digits;

        if (strncmp(name, kinds[i], n) != 0)
            continue;
        digits = strspn(name + n, "0123456789");
        return digits > 0 && n + digits < MAX_BUFFER_NAME && name[n + digits] == '\0' &&
               strtoul(name + n, NULL, 10) < counts[i];
    }
    return false;
}

/* A place in a buffer; sizes of inputs and outputs are checked when they are bound. */
static bool take_place(struct list *l, const json_t *v, json_t *to)
{
    const char *name = json_string_value(json_object_get(v, "buffer"));
    json_int_t offset;

    if (!name || !buffer_exists(l, name))
        return refuse(l, VERDICT_BAD_LAUNCH, "a buffer that does not exist");
    if (!number(json_object_get(v, "offset"), 0, MAX_BYTES, &offset) ||
        (name[0] == 'w' && offset > l->workspace[strtoul(name + 2, NULL, 10)]))
        return refuse(l, VERDICT_BAD_LAUNCH, "an offset outside of its buffer");
    json_object_set_new(to, "buffer", json_string(name));
    json_object_set_new(to, "offset", json_integer(offset));
    return true;
}

/* Pointers inside of a struct of so many bytes. */
static bool take_pointers(struct list *l, const json_t *list, size_t bytes, json_t *to)
{
    json_t *made = json_array();

    json_object_set_new(to, "pointers", made);
    if (!json_is_array(list) || json_array_size(list) > MAX_POINTERS)
        return refuse(l, VERDICT_BAD_LAUNCH, "an argument with more than 64 pointers inside");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *v = json_array_get(list, i);
        json_t *pointer = json_object();
        json_int_t at;

        json_array_append_new(made, pointer);
        if (!number(json_object_get(v, "at"), 0, (json_int_t)bytes - 8, &at))
            return refuse(l, VERDICT_BAD_LAUNCH, "a pointer outside of its argument");
        json_object_set_new(pointer, "at", json_integer(at));
        if (!take_place(l, v, pointer))
            return false;
    }
    return true;
}

static bool take_bytes(struct list *l, const json_t *v, json_t *to)
{
    const char *hex = json_string_value(json_object_get(v, "bytes"));
    const char *type = json_string_or(v, "type", "");
    size_t len = hex ? strlen(hex) : 0;

    if (len == 0 || len % 2 || len / 2 > MAX_ARG_BYTES || strspn(hex, "0123456789abcdef") != len)
        return refuse(l, VERDICT_BAD_LAUNCH, "an argument that is neither bytes nor a buffer");
    l->arg_bytes += len / 2;
    if (l->arg_bytes > MAX_ALL_ARG_BYTES)
        return refuse(l, VERDICT_BAD_LAUNCH, "more than 1 MiB of arguments");
    json_object_set_new(to, "bytes", json_string(hex));
    if (!strcmp(type, "int") || !strcmp(type, "float"))
        json_object_set_new(to, "type", json_string(type));
    return !json_object_get(v, "pointers") ||
           take_pointers(l, json_object_get(v, "pointers"), len / 2, to);
}

static bool take_map_number(struct list *l, const json_t *v, json_t *to)
{
    json_int_t map;

    if (!number(v, 0, (json_int_t)l->maps - 1, &map))
        return refuse(l, VERDICT_BAD_LAUNCH, "a tensor map that does not exist");
    json_object_set_new(to, "map", json_integer(map));
    return true;
}

static bool take_arg(struct list *l, const json_t *v, json_t *to)
{
    const json_t *map = json_object_get(v, "map");

    if (map)
        return take_map_number(l, map, to);
    return json_object_get(v, "buffer") ? take_place(l, v, to) : take_bytes(l, v, to);
}

static bool take_args(struct list *l, const json_t *args, json_t *to)
{
    if (!json_is_array(args) || json_array_size(args) > MAX_ARGS)
        return refuse(l, VERDICT_BAD_LAUNCH,
                      arena_printf(l->a, "no list of at most %d arguments", MAX_ARGS));
    for (size_t i = 0; i < json_array_size(args); i++) {
        const json_t *v = json_array_get(args, i);
        json_t *arg = json_object();

        json_array_append_new(to, arg);
        if (!take_arg(l, v, arg))
            return false;
    }
    return true;
}

static bool take_extents(struct list *l, const json_t *op, const char *key, json_int_t most,
                         json_t *to)
{
    const json_t *from = json_object_get(op, key);
    json_t *list = json_array();

    json_object_set_new(to, key, list);
    for (size_t i = 0; i < 3; i++) {
        json_int_t n;

        if (json_array_size(from) != 3 || !number(json_array_get(from, i), 1, most, &n))
            return refuse(
                l, VERDICT_BAD_LAUNCH,
                arena_printf(l->a, "its %s is not three numbers from 1 to %lld", key, most));
        json_array_append_new(list, json_integer(n));
    }
    return true;
}

static bool take_launch(struct list *l, const json_t *op, json_t *to)
{
    const char *kernel = json_string_value(json_object_get(op, "kernel")), *why = "";
    json_t *args = json_array();
    json_int_t smem;

    json_object_set_new(to, "args", args);
    if (!kernel || !kernel_name_ok(kernel, &why))
        return refuse(l, VERDICT_BAD_LAUNCH, arena_printf(l->a, "a kernel's name %s", why));
    if (!take_extents(l, op, "grid", INT32_MAX, to) || !take_extents(l, op, "block", 1024, to) ||
        !take_extents(l, op, "cluster", 16, to))
        return false;
    if (!number(json_object_get(op, "smem"), 0, 1 << 20, &smem))
        return refuse(l, VERDICT_BAD_LAUNCH, "shared memory that no device has");
    json_object_set_new(to, "kernel", json_string(kernel));
    json_object_set_new(to, "smem", json_integer(smem));
    if (json_bool_or(op, "overlap", false))
        json_object_set_new(to, "overlap", json_true());
    return take_args(l, json_object_get(op, "args"), args);
}

static bool take_memset(struct list *l, const json_t *op, json_t *to)
{
    const char *buffer = json_string_or(op, "buffer", "");
    json_int_t bytes, value;

    if (!take_place(l, op, to))
        return false;
    if (strncmp(buffer, "in", 2) == 0)
        return refuse(l, VERDICT_BAD_PLAN, "memset of an input");
    if (!number(json_object_get(op, "bytes"), 0, MAX_BYTES, &bytes) ||
        !number(json_object_get(op, "value"), 0, 255, &value))
        return refuse(l, VERDICT_BAD_LAUNCH, "a memset without bytes and a value of one byte");
    json_object_set_new(to, "bytes", json_integer(bytes));
    json_object_set_new(to, "value", json_integer(value));
    return true;
}

static bool take_op(struct list *l, const json_t *op, json_t *to)
{
    const char *what = json_string_or(op, "op", "");
    bool launch = strcmp(what, "launch") == 0;
    json_int_t line;

    l->line = number(json_object_get(op, "line"), 1, MAX_LINE, &line) ? (int)line : 0;
    if (!launch && strcmp(what, "memset") != 0)
        return refuse(l, VERDICT_BAD_PLAN, "neither a launch nor a memset");
    json_object_set_new(to, "op", json_string(launch ? "launch" : "memset"));
    json_object_set_new(to, "line", json_integer(l->line));
    return launch ? take_launch(l, op, to) : take_memset(l, op, to);
}

static bool take_workspace(struct list *l, const json_t *list, json_t *to)
{
    if (json_array_size(list) > MAX_WORKSPACES)
        return refuse(l, VERDICT_BAD_PLAN,
                      arena_printf(l->a, "more than %d workspaces", MAX_WORKSPACES));
    for (; l->workspaces < json_array_size(list); l->workspaces++) {
        json_int_t bytes;

        if (!number(json_object_get(json_array_get(list, l->workspaces), "bytes"), 0, MAX_BYTES,
                    &bytes))
            return refuse(l, VERDICT_BAD_PLAN, "workspace that no device has");
        l->workspace[l->workspaces] = bytes;
        json_array_append_new(to, json_pack("{s:I}", "bytes", bytes));
    }
    return true;
}

/* ---- tensor maps: what one describes; the runner has the device encode it ------------------ */

static bool take_numbers(struct list *l, const json_t *v, const char *key, size_t count,
                         json_int_t least, json_int_t most, json_t *to)
{
    const json_t *from = json_object_get(v, key);
    json_t *list = json_array();

    json_object_set_new(to, key, list);
    for (size_t i = 0; i < count; i++) {
        json_int_t n;

        if (json_array_size(from) != count || !number(json_array_get(from, i), least, most, &n))
            return refuse(l, VERDICT_BAD_LAUNCH,
                          arena_printf(l->a, "%s of a tensor map are not %zu numbers it can have",
                                       key, count));
        json_array_append_new(list, json_integer(n));
    }
    return true;
}

static bool take_choice(struct list *l, const json_t *v, const char *key,
                        const char *const *choices, json_t *to)
{
    const char *said = json_string_or(v, key, "");

    for (; *choices; choices++)
        if (!strcmp(said, *choices)) {
            json_object_set_new(to, key, json_string(*choices));
            return true;
        }
    return refuse(l, VERDICT_BAD_LAUNCH, arena_printf(l->a, "no such %s of a tensor map", key));
}

static bool take_map(struct list *l, const json_t *v, json_t *to)
{
    static const char *const dtypes[] = {"u8",  "u16", "u32", "i32",  "u64",  "i64",
                                         "f16", "f32", "f64", "bf16", "tf32", NULL};
    static const char *const swizzles[] = {"none", "32", "64", "128", NULL};
    static const char *const fills[] = {"zero", "nan", NULL};
    static const char *const l2s[] = {"none", "64", "128", "256", NULL};
    const json_int_t size = (json_int_t)1 << 32, stride = ((json_int_t)1 << 40) - 1;
    size_t rank = json_array_size(json_object_get(v, "dims"));

    if (rank < 1 || rank > MAX_RANK)
        return refuse(l, VERDICT_BAD_LAUNCH, "a tensor map without 1 to 5 dimensions");
    return take_place(l, v, to) && take_numbers(l, v, "dims", rank, 1, size, to) &&
           take_numbers(l, v, "strides_bytes", rank - 1, 0, stride, to) &&
           take_numbers(l, v, "box", rank, 1, 256, to) &&
           take_numbers(l, v, "element_strides", rank, 1, 8, to) &&
           take_choice(l, v, "dtype", dtypes, to) && take_choice(l, v, "swizzle", swizzles, to) &&
           take_choice(l, v, "fill", fills, to) && take_choice(l, v, "l2", l2s, to);
}

static bool take_maps(struct list *l, const json_t *list, json_t *to)
{
    if (json_array_size(list) > MAX_MAPS)
        return refuse(l, VERDICT_BAD_PLAN, "more than 256 tensor maps");
    for (; l->maps < json_array_size(list); l->maps++) {
        json_t *map = json_object();

        json_array_append_new(to, map);
        if (!take_map(l, json_array_get(list, l->maps), map))
            return false;
    }
    return true;
}

/* There is a launch right before, for this one to overlap with. */
static bool after_launch(const json_t *ops, size_t i)
{
    return i > 0 && strcmp(json_string_or(json_array_get(ops, i - 1), "op", ""), "launch") == 0;
}

bool launch_list_take(const json_t *said, const struct launch_subject *subject, struct arena *a,
                      json_t **out, struct verdict *v)
{
    struct list l = {.subject = subject, .a = a, .v = v};
    const json_t *ops = json_object_get(said, "ops");
    json_t *made = json_array(), *workspace = json_array(), *maps = json_array();
    json_t *list = json_pack("{s:b, s:o, s:o, s:o}", "ok", 1, "workspace", workspace, "maps", maps,
                             "ops", made);
    bool ok = take_workspace(&l, json_object_get(said, "workspace"), workspace) &&
              take_maps(&l, json_object_get(said, "maps"), maps);

    if (ok && (json_array_size(ops) == 0 || json_array_size(ops) > MAX_OPS))
        ok = refuse(&l, VERDICT_BAD_PLAN,
                    arena_printf(a, "no list of 1 to %d launches and memsets", MAX_OPS));
    for (size_t i = 0; ok && i < json_array_size(ops); i++) {
        json_t *op = json_object();

        l.step = i + 1;
        json_array_append_new(made, op);
        ok = take_op(&l, json_array_get(ops, i), op);
        if (!after_launch(made, i)) /* not even with the launches of the call before */
            json_object_del(op, "overlap");
    }
    *out = ok ? list : NULL;
    if (!ok)
        json_decref(list);
    return ok;
}
