/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emit_loop.c - a loop of one block that only computes: each chunk of lanes iterates by itself, in
 * machine registers, until its lanes are done.
 *
 * Hides: that finished lanes keep their values, and that a chunk with many iterations returns to
 * the warp's loop, where the device gets control (tick): other warps run, or the launch ends.
 *
 * The block is a loop of itself by a predicate that varies; nothing in it is a
 * call; scalars in it do not change from turn to turn. What is needed after
 * the loop is in the block's `keep`, because lanes that left the loop wait
 * while others turn.
 */
#include "simt/emit/emit.h"

#include "simt/ir/list_schedule.h"

#include <ctype.h>
#include <string.h>

enum { MAX_BODY = 200, MAX_PAIR = 40 };

static bool per_lane(const struct emit *e, const struct insn *in)
{
    int regs[MAX_INSN_REGS];
    int n = insn_defs(in, regs);
    for (int i = 0; i < n; i++)
        if (e->ir->varying[regs[i]] && !is_affine(e, regs[i]))
            return true;
    return false;
}

static bool reads_clock(const struct opnd *o)
{
    return o->kind == OPND_SREG &&
           (o->sreg == SREG_CLOCK || o->sreg == SREG_CLOCK_HI || o->sreg == SREG_CLOCK64);
}

/* A scalar that is the same in every turn. */
static bool invariant(const struct emit *e, const struct block *bl, const struct insn *in)
{
    int regs[MAX_INSN_REGS];
    if (in->pred >= 0)
        return false;
    for (int n = insn_uses(in, regs); n-- > 0;)
        if (emit_defines(e, bl->insn, bl->count, regs[n]))
            return false;
    for (int n = insn_defs(in, regs); n-- > 0;)
        if (set_has(bl->live_in, regs[n]))
            return false;
    for (int i = 0; i < in->arg_count; i++)
        if (reads_clock(&in->args[i]))
            return false;
    return true;
}

bool loop_alone(const struct emit *e, int b)
{
    const struct block *bl = &e->ir->block[b];
    int regs[MAX_INSN_REGS];
    if (bl->term < 0 || bl->target != b || bl->count > MAX_BODY || bl->collective)
        return false;
    const struct insn *t = &e->k->insn[bl->term];
    if (t->pred < 0 || !e->ir->varying[t->pred] || !emit_defines(e, bl->insn, bl->count, t->pred))
        return false;
    for (int i = 0; i < bl->count; i++) {
        const struct insn *in = &e->k->insn[bl->insn[i]];
        if (insn_is_call(in) || (!per_lane(e, in) && !invariant(e, bl, in)))
            return false;
        for (int n = insn_defs(in, regs); n-- > 0;)
            if (reg_class(e, regs[n]) == CLASS_P && e->ir->varying[regs[n]] &&
                (set_has(bl->live_out, regs[n]) || set_has(bl->live_in, regs[n])))
                return false;
    }
    return true;
}

/* Lanes that are done keep what they have; what only the next turn reads need not. */
static void write_turn(struct emit *e, const struct block *bl, const bool *carried)
{
    static const char letters[] = "MIFQ";
    for (int r = 0; r < e->k->reg_count; r++) {
        if (!carried[r] || !e->version[r])
            continue;
        char l = letters[reg_class(e, r)];
        if (block_keeps(bl, r))
            buf_printf(e->out, "v%d_0 = sel_%c(mk, v%d_%d, v%d_0);\n", r, l, r, e->version[r], r);
        else
            buf_printf(e->out, "v%d_0 = v%d_%d;\n", r, r, e->version[r]);
    }
}

/* A chunk waits for its own results most of the time. Short vectors turn in pairs, so that the
 * machine has two sums to work on; more do not fit its registers. */
static bool in_pairs(const struct emit *e, const struct block *bl)
{
    return e->unit->lanes == 4 && bl->count <= MAX_PAIR;
}

static void write_body(struct emit *e, const struct block *bl, bool *carried)
{
    const struct insn *t = &e->k->insn[bl->term];
    int regs[MAX_INSN_REGS];
    e->stamp++;
    e->vec = true;
    for (int i = 0; i < bl->count; i++) {
        const struct insn *in = &e->k->insn[bl->insn[i]];
        for (int n = per_lane(e, in) ? insn_defs(in, regs) : 0; n-- > 0;)
            if (set_has(bl->live_out, regs[n])) {
                carried[regs[n]] = true;
                segment_value(e, regs[n]);
            }
    }
    for (int i = 0; i < bl->count && !e->failed; i++)
        if (per_lane(e, &e->k->insn[bl->insn[i]]))
            emit_alu(e, &e->k->insn[bl->insn[i]]);
    write_turn(e, bl, carried);
    struct opnd go = {.kind = OPND_REG, .reg = t->pred, .reg2 = -1, .not = t->pred_not};
    buf_printf(e->out, "%smk = mk & %s;\n", in_pairs(e, bl) ? "" : "busy -= (I)mk; ",
               value(e, t, &go, 'P'));
    e->vec = false;
}

/* The text once more, for the chunk beside this one: its values have names of their own. */
static void write_twin(struct buf *out, const struct buf *text)
{
    const char *p = text->data, *end = p + text->len;
    while (p < end) {
        const char *word = p;
        while (p < end && (isalnum((unsigned char)*p) || *p == '_'))
            p++;
        size_t n = (size_t)(p - word);
        bool value = n > 1 && (*word == 'v' || *word == 'x') && isdigit((unsigned char)word[1]);
        buf_add(out, word, n);
        if (value || (n == 2 && memcmp(word, "mk", 2) == 0))
            buf_puts(out, "b");
        else if (n == 1 && *word == 'c')
            buf_puts(out, " + LANES");
        if (p < end)
            buf_add(out, p++, 1);
    }
}

static void write_text(struct buf *out, const struct buf *text, bool pair)
{
    buf_add(out, text->data ? text->data : "", text->len);
    if (pair)
        write_twin(out, text);
}

static void write_turns(struct buf *out, const struct buf *loads, const struct buf *body,
                        const struct buf *stores, bool pair)
{
    buf_puts(out, pair ? "for (int c = 0; c < upto; c += 2 * LANES) {\n"
                         "M mk = M_ld(m, c), mkb = M_ld(m, c + LANES); u32 n = 0;\n"
                         "u64 on = M_pair(mk, mkb);\n"
                         "if (!on) continue;\n"
                       : "for (int c = 0; c < upto; c += LANES) {\n"
                         "M mk = M_ld(m, c); u32 n = 0;\n"
                         "if (!M_any(mk)) continue;\n");
    write_text(out, loads, pair);
    buf_puts(out, pair ? "do {\nlanes += pair_lanes(on);\n" : "do {\n");
    write_text(out, body, pair);
    buf_puts(out, pair ? "on = M_pair(mk, mkb);\n} while (++n < limit && on);\n"
                       : "} while (++n < limit && M_any(mk));\n");
    write_text(out, stores, pair);
    buf_puts(out, "turns = n > turns ? n : turns;\n}\n");
    if (!pair)
        buf_puts(out, "lanes = I_total(busy);\n");
}

void write_loop_alone(struct emit *e, int b)
{
    static const char letters[] = "MIFQ";
    const struct block *bl = &e->ir->block[b];
    const struct insn *t = &e->k->insn[bl->term];
    struct buf body = buf_init((size_t)1 << 30), loads = buf_init((size_t)1 << 30),
               stores = buf_init((size_t)1 << 30), *out = e->out;
    bool *carried = arena_array(e->a, (size_t)e->k->reg_count + 1, sizeof *carried);
    for (int i = 0; i < bl->count; i++)
        if (!per_lane(e, &e->k->insn[bl->insn[i]]))
            write_scalar(e, &e->k->insn[bl->insn[i]]);
    e->out = &body;
    e->loads = &loads;
    write_body(e, bl, carried);
    e->out = out;
    e->loads = NULL;
    for (int r = 0; r < e->k->reg_count; r++)
        if (carried[r])
            buf_printf(&stores, "%c_st(fr + %d, c, v%d_0);\n", letters[reg_class(e, r)],
                       reg_slot(e, r), r);
    buf_puts(&stores, "rest |= M_bits(mk) << (c);\n");
    buf_puts(out, "{ u32 rest = 0, turns = 0, lanes = 0; I busy = {0};\n"
                  "const u32 limit = W->fuel > 64 ? (u32)W->fuel : 64;\n");
    write_turns(out, &loads, &body, &stores, in_pairs(e, bl));
    buf_printf(out,
               "C[%d] += turns - 1; C[%d] += lanes - (u32)__builtin_popcount(m);\n"
               "W->fuel -= (s32)turns - 1; p%d = %srest; }\n",
               2 * b, 2 * b + 1, t->pred, t->pred_not ? "~" : "");
    buf_release(&body);
    buf_release(&loads);
    buf_release(&stores);
}
