/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emit_flow.c - branches, and the machinery of waiting lanes.
 *
 * Hides: pend[b] are lanes that wait to run block b; the lowest waiting block
 * goes first, so lanes meet again at the join. Lanes at a barrier or a
 * collective under divergence park in cw[b] until every lane it needs is there
 * or nothing else can run.
 */
#include "simt/emit/emit.h"

#include "simt/ptx/call_kinds.h"

/* Lanes may wait there, for this block or one before it. */
static bool has_head(const struct emit *e, int b)
{
    return e->divided && (e->ir->block[b].div || e->ir->block[b].join);
}

/* There every lane goes on together, also those that are parked. */
static bool has_head_of_all(const struct emit *e, int b)
{
    return e->parks && !e->ir->block[b].div;
}

static void write_goto(struct emit *e, int from, int to)
{
    if (to >= e->ir->block_count)
        buf_puts(e->out, "goto leave;\n");
    else if (to > from)
        buf_printf(e->out, "goto B%d;\n", to);
    else if (!has_head(e, to) || has_head_of_all(e, to))
        buf_printf(e->out, "{ if (UNLIKELY(--W->fuel < 0)) R->tick(W, 0, 0); goto B%d; }\n", to);
    else
        buf_printf(e->out, "TURN(%d, %s)\n", to,
                   e->ir->block[to].div && loop_polls(e->ir, to, from) ? "polls" : "turns");
}

static void write_leave(struct emit *e, const char *lanes)
{
    buf_printf(e->out, "{ u32 t = %s; if (t) { W->live &= ~t; m &= ~t; if (!m) goto done; } }\n",
               lanes);
}

void write_branch(struct emit *e, int b)
{
    const struct block *bl = &e->ir->block[b];
    if (bl->term < 0) {
        write_goto(e, b, bl->fall);
        return;
    }
    const struct insn *t = &e->k->insn[bl->term];
    if (t->pred < 0) {
        write_goto(e, b, bl->target);
        return;
    }
    if (!e->ir->varying[t->pred]) {
        buf_printf(e->out, "if (%sr%d) ", t->pred_not ? "!" : "", t->pred);
        write_goto(e, b, bl->target);
        write_goto(e, b, bl->fall);
        return;
    }
    const char *take = arena_printf(e->a, t->pred_not ? "(m & ~p%d)" : "(m & p%d)", t->pred);
    const char *stay = arena_printf(e->a, t->pred_not ? "(m & p%d)" : "(m & ~p%d)", t->pred);
    if (block_leaves(e->ir, bl->target)) {
        write_leave(e, take);
        write_goto(e, b, bl->fall);
        return;
    }
    if (block_leaves(e->ir, bl->fall)) {
        write_leave(e, stay);
        write_goto(e, b, bl->target);
        return;
    }
    /* The lower block goes first, lanes that go to the other wait there. */
    if (bl->target < bl->fall) {
        buf_printf(e->out, "{ u32 t = %s; if (t) { if (t != m) m = part_at(&D, %d, m & ~t, m);\n",
                   take, bl->fall);
        write_goto(e, b, bl->target);
        buf_puts(e->out, "} }\n");
    } else {
        buf_printf(e->out, "{ u32 t = %s; if (t == m) ", take);
        write_goto(e, b, bl->target);
        buf_printf(e->out, "if (t) m = part_at(&D, %d, t, m); }\n", bl->target);
    }
    write_goto(e, b, bl->fall);
}

static bool is_block_barrier(const struct insn *in)
{
    return (in->op == OP_BAR || in->op == OP_BARRIER) && !insn_has_mod(in, MOD_WARP);
}

/* Which lanes a collective in a block of its own needs before it can run. */
static void write_gather(struct emit *e, int b)
{
    const struct insn *in = &e->k->insn[e->ir->block[b].insn[0]];
    const char *need = "W->live";
    e->scratch = 0;
    int at = insn_members(in);
    buf_printf(e->out, "if (UNLIKELY(D.parked)) m |= unpark(&D, %d);\n", b);
    if (at >= 0 && !operand_uniform(e, &in->args[at])) {
        /* Threads whose tile is complete go on. */
        buf_printf(e->out,
                   "if (m != W->live) { u32 go = all_there(m, W->live, (const u32 *)%s); if (go != "
                   "m) park_at(&D, %d, m & ~go); m = go; if (!m) goto next; }\n",
                   lanes_of(e, in, &in->args[at], false), b);
    } else {
        if (at >= 0)
            need = arena_printf(e->a, "(W->live & %s)", scalar_value(e, in, &in->args[at], 'I'));
        buf_printf(e->out, "if (m != W->live && (%s & ~m)) { at = %d; goto park; }\n", need, b);
    }
    buf_printf(e->out, "O%d:;\n", b);
}

/* Lanes of other barriers, when nothing else runs, wait behind theirs. */
static bool may_wait(const struct emit *e, int b)
{
    return has_head(e, b) || (e->divided && b && e->ir->block[b - 1].collective);
}

/* Where a block begins, for lanes that come to it and for lanes that waited. */
void write_head(struct emit *e, int b)
{
    buf_printf(e->out, "B%d:;\n", b);
    if (has_head(e, b))
        buf_printf(e->out, has_head_of_all(e, b) ? "HEAD_ALL(%d)\n" : "HEAD(%d)\n", b);
    if (may_wait(e, b))
        buf_printf(e->out, "E%d:;\n", b);
    if (e->ir->block[b].collective)
        write_gather(e, b);
}

/* Where lanes wait, and which blocks they may wait in. */
void write_waits(const struct emit *e, struct buf *out)
{
    const struct ir *ir = e->ir;
    buf_puts(out, "u32 pend[NB + 1] = {0}, cw[NB + 1] = {0}; u64 pset[NW] = {0}, cset[NW] = "
                  "{0}; struct waits D = {pend, cw, pset, cset, 1 << 30, NW, 0, 0}; int at = 0;\n");
    buf_puts(out, "static const u8 isbar[NB + 1] = {");
    for (int b = 0; b < ir->block_count; b++)
        buf_printf(out, "%d,",
                   ir->block[b].collective && is_block_barrier(&e->k->insn[ir->block[b].insn[0]]));
    buf_puts(out, "}, isdiv[NB + 1] = {");
    for (int b = 0; b < ir->block_count; b++)
        buf_printf(out, "%d,", ir->block[b].div);
    buf_puts(out, "};\n");
}

/* What seldom happens in a block is done here for all of them: `at` is the block to run. */
void write_scheduler(struct emit *e)
{
    const struct ir *ir = e->ir;
    buf_puts(e->out,
             "polls: if (R->tick(W, D.low < NB, 0)) { wait_at(&D, at, m); m = 0; D.turn = 1; goto "
             "sched; }\nif (D.low <= at) goto meet; goto run;\n"
             "turns: R->tick(W, 0, 0); if (D.low > at) goto run;\n"
             "meet: m = meet_at(&D, at, m); if (!m) goto next; goto run;\n");
    if (e->parks)
        buf_puts(e->out, "meet_all: if (!D.parked) goto meet; wait_at(&D, at, m); goto next;\n"
                         "park: park_at(&D, at, m); m = 0; goto next;\n");
    buf_puts(e->out, "leave: W->live &= ~m; m = 0;\ndone:;\nnext:;\n");
    if (e->parks) {
        /* Parked lanes let others of the divided region go on; those that
         * wait outside of it would run apart there, so they wait longer. */
        buf_puts(e->out,
                 "if (D.parked) {\n"
                 "for (int k = D.low; k < NB; k++) if (pend[k] && isdiv[k]) { D.turn = k + 1; goto "
                 "sched; }\n"
                 "int b = lowest(D.cset, NW); m = unpark(&D, b) & W->live;\n"
                 "if (!m) goto next;\n"
                 "if (isbar[b]) for (int k = b + 1; k < NB; k++) if (isbar[k] && cw[k]) { u32 q = "
                 "unpark(&D, k) & W->live; extra |= q; wait_at(&D, k + 1, q); }\n"
                 "switch (b) {\n");
        for (int b = 0; b < ir->block_count; b++)
            if (ir->block[b].collective)
                buf_printf(e->out, "case %d: goto O%d;\n", b, b);
        buf_puts(e->out, "} }\n");
    }
    buf_puts(
        e->out,
        "if (D.low >= NB) return;\n"
        "sched: at = D.low; if (D.turn) { if (D.turn > 1) at = D.turn - 1; else for (int "
        "k = D.low + 1; k < NB; k++) if (pend[k] && isdiv[k]) { at = k; break; } D.turn = 0; }\n"
        "m = pend[at] & W->live; pend[at] = 0; UNSET(pset, at); D.low = lowest(pset, NW); "
        "if (!m) goto next;\nrun: switch (at) {\n");
    for (int b = 0; b < ir->block_count; b++)
        if (may_wait(e, b))
            buf_printf(e->out, "case %d: goto E%d;\n", b, b);
    buf_puts(e->out, "}\nreturn;\n");
}
