/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shapes.c - one task at many shapes: list them, and load one of them.
 *
 * --shapes BATCH=1,8,64 gives a constant of the task several values, BATCH=1..512
 * a range: its ends and some values between them. A task with get_inputs_list() has several sets of
 * inputs. All combinations are shapes. The main shape, whose description an engineer reads, is the
 * one that moves most bytes.
 *
 * Invariants
 * 1. The oracle has the shape loaded that shape_now names.
 * 2. The values chosen from a range depend only on its text, so that a resumed run has the same
 *    ones.
 * 3. Weights apply to the geometric mean of times: VALUE:WEIGHT, default 1.
 */
#include "base/hash.h"
#include "base/json.h"
#include "stage/workshop.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { RANGE_BETWEEN = 2 };

static bool bad_shapes(const char *text, struct error *err)
{
    error_set(err, ERROR_USE, "--shapes %s is not NAME=NUMBER,NUMBER,... or NAME=LEAST..MOST",
              text);
    return error_hint(err,
                      "for example --shapes BATCH=1,8,64 or BATCH=1..512; NUMBER:WEIGHT counts "
                      "more often");
}

/* Combines one value of a constant with every shape so far. */
static bool add_value(struct stage *st, const struct task_shape *before, int count,
                      const char *name, long long value, double weight, struct error *err)
{
    for (int i = 0; i < count; i++) {
        struct task_shape *s = &st->shapes[st->shape_count];
        const char *label = before[i].label;

        if (st->shape_count == MAX_SHAPES)
            return error_set(err, ERROR_USE, "more than %d shapes", MAX_SHAPES);
        *s = before[i];
        s->set = json_own(st->a, json_deep_copy(before[i].set));
        json_object_set_new(s->set, name, json_integer(value));
        s->label = arena_printf(st->a, "%s%s%s=%lld", label, *label ? " " : "", name, value);
        s->weight *= weight;
        st->shape_count++;
    }
    return true;
}

/* Both ends of a range and up to two numbers between; returns how many. */
static int range_members(const char *text, long long least, long long most, long long *out)
{
    int count = 0;

    out[count++] = least;
    for (int k = 0; k < RANGE_BETWEEN && most - least > 1; k++) {
        char hex[65], first[16];
        long long member;

        hash_text((struct text){text, strlen(text)}, hex);
        memcpy(first, hex + 15 * k, 15);
        first[15] = '\0';
        member = least + 1 +
                 (long long)(strtoull(first, NULL, 16) % (unsigned long long)(most - least - 1));
        if (member != out[count - 1])
            out[count++] = member;
    }
    if (most > least)
        out[count++] = most;
    return count;
}

/* Reads one number or a range: stores the values and where the text continues; returns how many, 0
 * if neither. */
static int read_values(const char *text, const char *p, long long *out, char **end)
{
    long long most;
    char *dots;

    errno = 0;
    out[0] = strtoll(p, &dots, 10);
    *end = dots;
    if (dots == p || errno || out[0] < 1)
        return 0;
    if (strncmp(dots, "..", 2) != 0)
        return 1;
    most = strtoll(dots + 2, end, 10);
    if (*end == dots + 2 || errno || most < out[0])
        return 0;
    return range_members(text, out[0], most, out);
}

/* Combines "BATCH=1,8:2,64" or "BATCH=1..512" with all shapes so far. */
static bool multiply(struct stage *st, const char *text, struct error *err)
{
    const char *equals = strchr(text, '='), *p = equals ? equals + 1 : text;
    struct task_shape before[MAX_SHAPES];
    int count = st->shape_count;
    const char *name;

    if (!equals || equals == text || !*p)
        return bad_shapes(text, err);
    name = arena_strndup(st->a, text, (size_t)(equals - text));
    memcpy(before, st->shapes, sizeof(before));
    st->shape_count = 0;
    while (*p) {
        long long values[RANGE_BETWEEN + 2];
        double weight = 1;
        char *end;
        int members = read_values(text, p, values, &end);

        if (members == 0)
            return bad_shapes(text, err);
        if (*end == ':') {
            p = end + 1;
            weight = strtod(p, &end);
            if (end == p || !(weight > 0) || weight > 1e6)
                return bad_shapes(text, err);
        }
        if ((*end && *end != ',') || (*end == ',' && !end[1]))
            return bad_shapes(text, err);
        for (int i = 0; i < members; i++)
            if (!add_value(st, before, count, name, values[i], weight, err))
                return false;
        p = *end ? end + 1 : end;
    }
    return true;
}

bool shapes_read(struct stage *st, struct error *err)
{
    st->shape_count = 1;
    st->shapes[0] =
        (struct task_shape){.label = "", .set = st->load.set, .variant = 0, .weight = 1};
    st->shape_now = st->shape_main = 0;
    for (size_t i = 0; st->settings.shapes && st->settings.shapes[i]; i++)
        if (!multiply(st, st->settings.shapes[i], err))
            return false;
    return true;
}

/* For a task with several sets of inputs: combines each with each shape. */
static bool add_variants(struct stage *st, int variants, struct error *err)
{
    int count = st->shape_count;

    for (int v = 1; v < variants; v++)
        for (int i = 0; i < count; i++) {
            if (st->shape_count == MAX_SHAPES)
                return error_set(err, ERROR_USE,
                                 "get_inputs_list() and --shapes give more than %d shapes",
                                 MAX_SHAPES);
            st->shapes[st->shape_count] = st->shapes[i];
            st->shapes[st->shape_count++].variant = v;
        }
    for (int i = 0; variants > 1 && i < st->shape_count; i++)
        st->shapes[i].label = arena_printf(st->a, "%s%sinputs %d", st->shapes[i].label,
                                           *st->shapes[i].label ? " " : "", st->shapes[i].variant);
    return true;
}

static void select_shape(struct stage *st, int shape)
{
    st->load.set = st->shapes[shape].set;
    st->load.variant = st->shapes[shape].variant;
    st->shape_now = shape;
}

bool stage_shape(struct stage *st, int shape, struct arena *a, struct task *out, struct error *err)
{
    bool ok, held = st->lease != NULL;

    select_shape(st, shape);
    if (!workshop_lease(st, err))
        return false;
    ok = oracle_load(st->oracle, &st->load, a, out, err);
    if (!held)
        workshop_unlease(st);
    if (!ok && !workshop_renew(st, err))
        return error_add(err, "loading the shape %s", st->shapes[shape].label);
    if (!ok && !oracle_load(st->oracle, &st->load, a, out, err))
        return error_add(err, "loading the shape %s", st->shapes[shape].label);
    json_own(a, out->description);
    return true;
}

/* In words, the first input that has another dtype in `one`; NULL: none has. */
static const char *other_dtype(const struct task *first, const struct task *one, const char *label,
                               struct arena *a)
{
    for (int i = 0; i < first->in_count && i < one->in_count; i++)
        if (strcmp(first->in[i].dtype, one->in[i].dtype) != 0)
            return arena_printf(a, "at %s %s is %s, otherwise %s", label, one->in[i].name,
                                one->in[i].dtype, first->in[i].dtype);
    return NULL;
}

bool shapes_describe(struct stage *st, struct arena *a, struct task *out, struct error *err)
{
    double most = out->bytes_min;
    const char *dtypes = NULL;
    struct task *one;

    if (!add_variants(st, (int)json_int_or(out->description, "variants", 1), err))
        return false;
    if (st->shape_count == 1)
        return true;
    one = arena_alloc(a, sizeof(*one));
    for (int i = 1; i < st->shape_count; i++) {
        if (!stage_shape(st, i, a, one, err))
            return false;
        if (one->bytes_min > most) {
            most = one->bytes_min;
            st->shape_main = i;
        }
        dtypes = dtypes ? dtypes : other_dtype(out, one, st->shapes[i].label, a);
    }
    if (!stage_shape(st, st->shape_main, a, out, err))
        return false;
    if (dtypes)
        json_object_set_new(out->description, "other_dtypes", json_string(dtypes));
    return true;
}

int stage_shape_count(const struct stage *st)
{
    return st->shape_count;
}

int stage_shape_main(const struct stage *st)
{
    return st->shape_main;
}

const char *stage_shape_label(const struct stage *st, int shape, double *weight)
{
    *weight = st->shapes[shape].weight;
    return st->shapes[shape].label;
}
