/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_machine.c - run a plan's code: memory, control flow, the step count.
 *
 * Invariants
 * 1. Only find() turns a number of the plan into an address of this process, after checking the
 *    whole access.
 * 2. frame[depth].regs + reg_count <= PLAN_REG_FILE, and the frame of each
 *    function lies inside the stack.
 */
#include "runner/plan/plan_machine.h"

#include "runner/plan/plan_compute.h"

#include <inttypes.h>
#include <string.h>

struct plan_frame {
    int fn, at;            /* at: the next instruction */
    uint32_t regs, memory; /* where its registers and its frame begin */
};

/* ---- memory ------------------------------------------------------------------- */

void plan_machine_region(struct plan_machine *m, struct plan_region region)
{
    if (m->region_count == PLAN_MAX_REGIONS)
        BUG("more than %d regions", PLAN_MAX_REGIONS);
    m->region[m->region_count++] = region;
}

/* NULL: not entirely inside a region that allows this access. */
static unsigned char *find(const struct plan_machine *m, uint64_t address, uint64_t bytes,
                           bool writing)
{
    for (int i = 0; i < m->region_count; i++) {
        const struct plan_region *r = &m->region[i];
        uint64_t at = address - r->base;
        if (at < r->bytes && bytes <= r->bytes - at)
            return writing && !r->writable ? NULL : r->host + at;
    }
    return NULL;
}

static bool refuse_access(const struct plan_machine *m, uint64_t address, uint64_t bytes,
                          bool writing, struct error *err)
{
    if (writing && find(m, address, bytes, false) != NULL)
        return error_set(err, ERROR_JUDGED,
                         "the plan writes where it may only read: tensors, tables and static "
                         "variables stay as they are");
    error_set(err, ERROR_JUDGED, "the plan %s %" PRIu64 " bytes at 0x%" PRIx64 ", %s",
              writing ? "writes" : "reads", bytes, address,
              address < 4096 ? "a null pointer" : "which is outside its memory");
    return error_hint(err, "tensor data cannot be read in a plan; check indices into shape, "
                           "strides, in and out");
}

bool plan_machine_read(const struct plan_machine *m, uint64_t address, void *to, size_t bytes,
                       struct error *err)
{
    const unsigned char *from = find(m, address, bytes, false);
    if (from == NULL)
        return refuse_access(m, address, bytes, false, err);
    memcpy(to, from, bytes);
    return true;
}

bool plan_machine_write(const struct plan_machine *m, uint64_t address, const void *from,
                        size_t bytes, struct error *err)
{
    unsigned char *to = find(m, address, bytes, true);
    if (to == NULL)
        return refuse_access(m, address, bytes, true, err);
    memcpy(to, from, bytes);
    return true;
}

bool plan_machine_text(const struct plan_machine *m, uint64_t address, size_t limit,
                       struct arena *a, char **out, bool *whole, struct error *err)
{
    char *text = arena_alloc(a, limit + 1);
    for (size_t i = 0; i < limit; i++) {
        if (!plan_machine_read(m, address + i, &text[i], 1, err))
            return false;
        if (text[i] == '\0') {
            *out = text;
            *whole = true;
            return true;
        }
    }
    *out = text;
    *whole = false;
    return true;
}

/* ---- instructions -------------------------------------------------------------- */

struct plan_run_state {
    struct plan_machine *m;
    struct plan_frame *f;
    uint64_t *r; /* registers of the function that runs */
    int pc;
    bool ended;
};

static uint64_t value(const struct plan_run_state *x, struct plan_operand o)
{
    switch (o.kind) {
    case FROM_REG:
        return x->r[o.reg];
    case FROM_FRAME:
        return PLAN_STACK_BASE + x->f->memory + o.bits;
    default:
        return o.bits;
    }
}

static bool access_memory(struct plan_run_state *x, const struct plan_insn *in, struct error *err)
{
    bool writing = in->op == OP_st;
    size_t size = ptx_type_bytes((enum ptx_type)in->type);
    uint64_t address = value(x, in->address), bytes = size * in->count;
    unsigned char *at;
    if (in->address.kind == FROM_REG)
        address += in->address.bits;
    at = find(x->m, address, bytes, writing);
    if (at == NULL)
        return refuse_access(x->m, address, bytes, writing, err);
    for (int i = 0; i < in->count; i++, at += size) {
        uint64_t word = writing ? value(x, in->a[i]) : 0;
        if (writing) {
            memcpy(at, &word, size);
        } else {
            memcpy(&word, at, size);
            x->r[in->a[i].reg] = plan_narrow((enum ptx_type)in->type, word);
        }
    }
    return true;
}

static void copy_slot(struct plan_run_state *x, const struct plan_slot *from, uint32_t from_frame,
                      const struct plan_slot *to, uint32_t to_frame)
{
    uint32_t bytes = from->bytes < to->bytes ? from->bytes : to->bytes;
    memmove(x->m->stack + to_frame + to->at, x->m->stack + from_frame + from->at, bytes);
}

/* Calls one of the planner's functions, whose arguments have at most 8 bytes each. */
static bool call_planner(struct plan_run_state *x, const struct plan_insn *in,
                         const struct plan_function *to, struct error *err)
{
    const struct plan_function *me = &x->m->code->fn[x->f->fn];
    uint64_t args[PLAN_MAX_PARAMS] = {0}, result = 0;
    for (int i = 0; i < in->list_count; i++) {
        const struct plan_slot *from = &me->slot[in->list[i]];
        memcpy(&args[i], x->m->stack + x->f->memory + from->at,
               from->bytes < sizeof result ? from->bytes : sizeof result);
    }
    if (!x->m->call(x->m, to->call, args, &result, err))
        return false;
    if (in->result >= 0) {
        const struct plan_slot *slot = &me->slot[in->result];
        memcpy(x->m->stack + x->f->memory + slot->at, &result,
               slot->bytes < sizeof result ? slot->bytes : sizeof result);
    }
    return true;
}

static bool enter(struct plan_run_state *x, int fn, uint32_t regs, uint32_t memory,
                  struct error *err)
{
    struct plan_machine *m = x->m;
    const struct plan_function *f = &m->code->fn[fn];
    if (m->depth == PLAN_MAX_DEPTH || f->frame_bytes > PLAN_STACK_BYTES - memory ||
        (uint32_t)f->reg_count > PLAN_REG_FILE - regs)
        return error_set(err, ERROR_JUDGED, "the plan's functions call each other too deep");
    x->f = &m->frame[m->depth++];
    *x->f = (struct plan_frame){.fn = fn, .at = f->first, .regs = regs, .memory = memory};
    x->r = m->regs + regs;
    x->pc = f->first;
    memset(x->r, 0, (size_t)f->reg_count * sizeof *x->r);
    return true;
}

static bool call(struct plan_run_state *x, const struct plan_insn *in, struct error *err)
{
    const struct plan_code *c = x->m->code;
    const struct plan_function *to = &c->fn[in->target], *me = &c->fn[x->f->fn];
    struct plan_frame *caller = x->f;
    if (to->call != PLAN_CALL_NONE)
        return call_planner(x, in, to, err);
    caller->at = x->pc;
    if (!enter(x, in->target, caller->regs + (uint32_t)me->reg_count,
               (caller->memory + me->frame_bytes + 255) / 256 * 256, err))
        return false;
    for (int i = 0; i < in->list_count; i++)
        copy_slot(x, &me->slot[in->list[i]], caller->memory, &to->slot[to->param_first + i],
                  x->f->memory);
    return true;
}

static void leave(struct plan_run_state *x)
{
    const struct plan_code *c = x->m->code;
    const struct plan_function *from = &c->fn[x->f->fn], *me;
    uint32_t memory = x->f->memory;
    const struct plan_insn *in;
    if (--x->m->depth == 0) {
        x->ended = true;
        return;
    }
    x->f--;
    x->pc = x->f->at;
    x->r = x->m->regs + x->f->regs;
    me = &c->fn[x->f->fn];
    in = &c->insn[x->pc - 1]; /* the call */
    if (in->result >= 0 && from->result >= 0)
        copy_slot(x, &from->slot[from->result], memory, &me->slot[in->result], x->f->memory);
}

static bool jump_by_table(struct plan_run_state *x, const struct plan_insn *in, struct error *err)
{
    uint64_t i = value(x, in->a[1]) & UINT32_MAX;
    if (i >= (uint64_t)in->list_count)
        return error_set(err, ERROR_JUDGED, "a switch of the plan goes nowhere");
    x->pc = in->list[i];
    return true;
}

static bool step(struct plan_run_state *x, const struct plan_insn *in, struct error *err)
{
    switch (in->op) {
    case OP_ld:
    case OP_st:
        return access_memory(x, in, err);
    case OP_bra:
        x->pc = in->target;
        return true;
    case OP_brx:
        return jump_by_table(x, in, err);
    case OP_call:
        return call(x, in, err);
    case OP_ret:
        leave(x);
        return true;
    case OP_exit:
    case OP_trap:
        return error_set(err, ERROR_JUDGED, "the plan stops itself");
    default: {
        uint64_t v[3] = {value(x, in->a[1]), value(x, in->a[2]), value(x, in->a[3])};
        return plan_compute(in, v, &x->r[in->a[0].reg], err);
    }
    }
}

static bool run_all(struct plan_run_state *x, struct error *err)
{
    const struct plan_insn *insn = x->m->code->insn;
    while (!x->ended) {
        const struct plan_insn *in = &insn[x->pc++];
        if (++x->m->steps > x->m->max_steps) {
            error_set(err, ERROR_JUDGED, "the plan did not return within %" PRIu64 " steps",
                      x->m->max_steps);
            return error_hint(err, "a plan only computes sizes and describes launches: look for an "
                                   "endless loop");
        }
        if (in->pred >= 0 && (x->r[in->pred] & 1) == in->pred_not)
            continue;
        if (!step(x, in, err))
            return false;
    }
    return true;
}

/* The innermost line of the candidate in the call stack where it stopped. */
static int where(const struct plan_run_state *x)
{
    const struct plan_insn *insn = x->m->code->insn;
    int line = insn[x->pc > 0 ? x->pc - 1 : 0].line;
    for (int d = x->m->depth - 2; line == 0 && d >= 0; d--)
        line = insn[x->m->frame[d].at - 1].line;
    return line;
}

bool plan_machine_run(struct plan_machine *m, uint64_t argument, struct error *err)
{
    const struct plan_code *c = m->code;
    struct plan_run_state x = {.m = m};
    bool ok;

    m->regs = xmalloc(PLAN_REG_FILE * sizeof *m->regs);
    m->stack = xmalloc(PLAN_STACK_BYTES);
    m->frame = xmalloc(PLAN_MAX_DEPTH * sizeof *m->frame);
    plan_machine_region(m, (struct plan_region){PLAN_STACK_BASE, PLAN_STACK_BYTES, m->stack, true});
    plan_machine_region(
        m, (struct plan_region){PLAN_CONST_BASE, c->constant_bytes, c->constants, false});
    if (m->max_steps == 0)
        m->max_steps = PLAN_MAX_STEPS;
    ok = enter(&x, c->entry, 0, 0, err);
    if (ok) {
        const struct plan_slot *to = &c->fn[c->entry].slot[c->fn[c->entry].param_first];
        memcpy(m->stack + to->at, &argument, to->bytes < 8 ? to->bytes : 8);
        ok = run_all(&x, err);
    }
    m->line = ok ? 0 : where(&x);
    return ok;
}

void plan_machine_release(struct plan_machine *m)
{
    xfree(m->regs);
    xfree(m->stack);
    xfree(m->frame);
    m->regs = NULL;
    m->stack = NULL;
    m->frame = NULL;
}
