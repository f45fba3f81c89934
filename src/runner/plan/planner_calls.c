/* SPDX-License-Identifier: Apache-2.0 */
/*
 * planner_calls.c - a plan's run: its input as memory, its requests as calls.
 *
 * Hides the image of struct cutegen_call at the addresses the plan sees, and
 * how a request is copied out of the plan's memory before planner_api.c reads
 * it. The structs of kernel.h are laid out alike here and under NVRTC: both
 * sides are LP64 and little-endian.
 */
#include "base/kernel_name.h"
#include "runner/plan/plan_machine.h"
#include "runner/plan/planner.h"

#include <string.h>

enum { MAX_VALUE_BYTES = 4096 };

struct image {
    struct cutegen_call call;
    struct cutegen_tensor in[PLANNER_MAX_TENSORS], out[PLANNER_MAX_TENSORS];
    struct cutegen_scalar scalars[PLANNER_MAX_TENSORS];
    int64_t dims[2 * PLANNER_MAX_TENSORS][2][PLANNER_MAX_DIMS]; /* shape, strides */
};

struct plan_run {
    struct planner *p;
    bool returned;
    int result;
};

/* ---- what the plan sees ---------------------------------------------------------- */

/* The plan's address of a place in the image. */
static void *seen(const struct image *m, const void *place)
{
    uint64_t at = (uint64_t)((const char *)place - (const char *)m);
    return (void *)(uintptr_t)(PLANNER_IMAGE_BASE + at);
}

static void put_tensors(struct image *m, const struct cutegen_tensor *from, int count,
                        struct cutegen_tensor *to, int first)
{
    for (int i = 0; i < count; i++) {
        int64_t(*dims)[PLANNER_MAX_DIMS] = m->dims[first + i];
        to[i] = from[i];
        memcpy(dims[0], from[i].shape, sizeof dims[0]);
        memcpy(dims[1], from[i].strides, sizeof dims[1]);
        to[i].shape = seen(m, dims[0]);
        to[i].strides = seen(m, dims[1]);
    }
}

static struct image *image_of(const struct planner *p)
{
    struct image *m = arena_alloc(p->arena, sizeof *m);
    m->call = p->call;
    m->call.in = seen(m, m->in);
    m->call.out = seen(m, m->out);
    m->call.scalar = seen(m, m->scalars);
    m->call.state = NULL;
    memcpy(m->scalars, p->scalars, sizeof m->scalars);
    put_tensors(m, p->in, p->call.in_count, m->in, 0);
    put_tensors(m, p->out, p->call.out_count, m->out, PLANNER_MAX_TENSORS);
    return m;
}

/* ---- requests ---------------------------------------------------------------------- */

static uint64_t address_of(const void *p)
{
    return (uint64_t)(uintptr_t)p;
}

/* Copies the argument list up to its terminator, with the values in our memory. */
static bool copy_args(struct plan_machine *m, struct planner *p, const void *list,
                      struct cutegen_arg to[CUTEGEN_MAX_ARGS + 1], struct error *err)
{
    for (int i = 0; i <= CUTEGEN_MAX_ARGS; i++) {
        struct cutegen_arg *arg = &to[i];
        void *value;
        if (!plan_machine_read(m, address_of(list) + (uint64_t)i * sizeof *arg, arg, sizeof *arg,
                               err))
            return false;
        if (arg->kind == CUTEGEN_ARG_END)
            return true;
        if (arg->kind < 0 || arg->kind > CUTEGEN_ARG_OTHER || arg->bytes > MAX_VALUE_BYTES ||
            (arg->kind == CUTEGEN_ARG_MAP && arg->bytes != sizeof(struct cutegen_map)))
            return error_set(err, ERROR_JUDGED, "argument %d has %u bytes", i + 1, arg->bytes);
        value = arena_alloc(p->arena, arg->bytes + 1);
        if (!plan_machine_read(m, address_of(arg->value), value, arg->bytes, err))
            return false;
        arg->value = value;
    }
    return error_set(err, ERROR_JUDGED, "more than %d arguments", CUTEGEN_MAX_ARGS);
}

static bool on_launch(struct plan_machine *m, struct planner *p, uint64_t address, uint64_t *result,
                      struct error *err)
{
    struct cutegen_arg args[CUTEGEN_MAX_ARGS + 1];
    struct cutegen_launch l;
    char *name;
    bool whole;
    if (!plan_machine_read(m, address, &l, sizeof l, err) ||
        !plan_machine_text(m, address_of(l.kernel), KERNEL_NAME_MAX + 16, p->arena, &name, &whole,
                           err) ||
        !copy_args(m, p, l.args, args, err))
        return false;
    l.kernel = name; /* even truncated, a longer name is too long for kernel_name_ok() */
    l.args = args;
    *result = (uint64_t)planner_launch(p, &l);
    return true;
}

static bool on_map(struct plan_machine *m, struct planner *p, const uint64_t *args,
                   uint64_t *result, struct error *err)
{
    struct cutegen_map_spec spec;
    struct cutegen_map map;
    if (!plan_machine_read(m, args[1], &spec, sizeof spec, err))
        return false;
    *result = (uint64_t)planner_map(p, (int)args[0], &spec, &map);
    return plan_machine_write(m, args[2], &map, sizeof map, err);
}

static bool on_fail(struct plan_machine *m, struct planner *p, const uint64_t *args,
                    uint64_t *result, struct error *err)
{
    char *text = "";
    bool whole;
    if (args[1] != 0 &&
        !plan_machine_text(m, args[1], PLANNER_MAX_TEXT, p->arena, &text, &whole, err))
        return false;
    *result = (uint64_t)planner_fail(p, (int)args[0], text);
    return true;
}

static bool on_call(struct plan_machine *m, enum plan_call which, const uint64_t *args,
                    uint64_t *result, struct error *err)
{
    struct plan_run *run = m->state;
    struct planner *p = run->p;
    if (p->error != NULL && which != PLAN_CALL_RETURN) {
        *result = which != PLAN_CALL_WORKSPACE;
        return true; /* only the first error counts */
    }
    switch (which) {
    case PLAN_CALL_LAUNCH:
        return on_launch(m, p, args[0], result, err);
    case PLAN_CALL_CLEAR:
        *result = (uint64_t)planner_clear(p, (int)args[0], args[1], (int)args[2], (int64_t)args[3]);
        return true;
    case PLAN_CALL_WORKSPACE:
        *result = planner_workspace(p, (int)args[0], (int64_t)args[1]);
        return true;
    case PLAN_CALL_MAP:
        return on_map(m, p, args, result, err);
    case PLAN_CALL_FAIL:
        return on_fail(m, p, args, result, err);
    case PLAN_CALL_RETURN:
        run->returned = true;
        run->result = (int)args[0];
        return true;
    default:
        BUG("call %d", (int)which);
    }
}

/* ---- the run -------------------------------------------------------------------------- */

int planner_run(struct planner *p, struct text ptx)
{
    struct plan_run run = {.p = p};
    struct plan_code code;
    struct plan_machine m = {
        .code = &code, .call = on_call, .state = &run, .max_steps = p->max_steps};
    struct image *image = image_of(p);
    struct error why = {0};
    int line = 0;

    if (!plan_code_read(ptx, p->arena, &code, &line, &why)) {
        planner_stop(p, line, why.text, why.hint);
        return 1;
    }
    plan_machine_region(
        &m, (struct plan_region){PLANNER_IMAGE_BASE, sizeof *image, (unsigned char *)image, false});
    if (!plan_machine_run(&m, PLANNER_IMAGE_BASE, &why))
        planner_stop(p, m.line, why.text, why.hint);
    else if (!run.returned)
        planner_stop(p, 0, "the plan ended without a result", "");
    plan_machine_release(&m);
    return run.result;
}
