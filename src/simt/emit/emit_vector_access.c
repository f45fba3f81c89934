/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emit_vector_access.c - four words of each lane, contiguous in global memory, which segments read
 * and write directly.
 *
 * Hides: that a chunk then waits for its own part of memory only, while the others compute; and
 * where lanes do not lie side by side (R->quads says so), that the values go by way of 512 bytes of
 * the frame which look as memory would.
 *
 * A row that is written must not overlap one that the same segment still reads.
 */
#include "simt/emit/emit.h"

#include "simt/ir/list_schedule.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_READ = 8, BYTES = 4 * SLOT_BYTES };

/* A plain access of four words in a row, at an address of 64 bits that every lane has. */
static bool is_quad(const struct emit *e, const struct insn *in, enum ptx_op op, int addr)
{
    if (e->unit->lanes != 4 || in->op != op || in->pred >= 0 || in->arg_count != 2 ||
        !insn_has_mod(in, MOD_GLOBAL) || ptx_type_bytes(in->type) != 4 ||
        (e->once && e->once[e->block]) ||
        insn_has_any(in, MOD_VOLATILE, MOD_RELAXED, MOD_ACQUIRE, MOD_RELEASE, MOD_MMIO))
        return false;
    const struct opnd *at = &in->args[addr], *v = &in->args[1 - addr];
    if (at->kind != OPND_ADDR || at->reg < 0 || !e->ir->varying[at->reg] || is_affine(e, at->reg) ||
        reg_class(e, at->reg) != CLASS_Q || v->kind != OPND_VEC || v->count != 4)
        return false;
    for (int i = 0; i < 4; i++) {
        int r = v->list[i].kind == OPND_REG ? v->list[i].reg : -1;
        if (r < 0 || !e->ir->varying[r] || is_affine(e, r) || !e->ir->local[r] || keeps(e, r) ||
            ptx_type_bytes(e->k->reg_type[r]) != 4)
            return false;
        for (int j = 0; j < i; j++)
            if (v->list[j].reg == r)
                return false;
    }
    return true;
}

bool is_quad_load(const struct emit *e, const struct insn *in)
{
    return is_quad(e, in, OP_LD, 1);
}

/* Their places in the frame, one after the other. */
int quad_slots(struct emit *e, const struct opnd *v)
{
    int at = (e->frame + 63) / 64 * 64;
    e->frame = at + BYTES;
    for (int i = 0; i < 4; i++)
        e->slot[v->list[i].reg] = at + i * SLOT_BYTES;
    return at;
}

/* All four into the segment, at the first use of one. */
void quad_read(struct emit *e, int reg)
{
    static const char part[] = "abcd";
    const struct opnd *v = &e->k->insn[e->quad[reg] - 1].args[0];
    int first = v->list[0].reg;
    buf_printf(e->out, "const struct quads g%d = quads_get(q%d, c);\n", first, first);
    for (int i = 0; i < 4; i++) {
        int r = v->list[i].reg;
        const char *l = reg_class(e, r) == CLASS_F ? "F" : "I";
        buf_printf(e->out, "%s v%d_0 = (%s)g%d.%c;\n", l, r, l, first, part[i]);
        e->loaded[r] = e->stamp;
        e->version[r] = 0;
    }
}

/* ---- stores ---- */

/* Defined once in the block, for all lanes. */
static bool defined_once(const struct emit *e, int reg)
{
    const struct block *bl = &e->ir->block[e->block];
    int regs[MAX_INSN_REGS], defs = 0;
    for (int i = 0; i < bl->count; i++) {
        const struct insn *in = &e->k->insn[bl->insn[i]];
        for (int n = insn_defs(in, regs); n-- > 0;)
            defs += regs[n] != reg ? 0 : in->pred >= 0 ? 2 : 1;
    }
    return defs == 1;
}

/* What the segment reads where it lies, without what it reads twice; -1: too much. */
static int rows_read(const struct emit *e, const struct item *seg, int *rows)
{
    int regs[MAX_INSN_REGS], count = 0;
    for (int i = 0; i < seg->count; i++)
        for (int n = insn_uses(&e->k->insn[seg->insn[i]], regs); n-- > 0;) {
            int r = regs[n];
            if (e->direct[r] != e->block + 1)
                continue;
            if (e->quad[r])
                r = e->k->insn[e->quad[r] - 1].args[0].list[0].reg;
            bool known = false;
            for (int j = 0; j < count; j++)
                known |= rows[j] == r;
            if (known)
                continue;
            if (count == MAX_READ)
                return -1;
            rows[count++] = r;
        }
    return count;
}

bool quad_store_begin(struct emit *e, const struct item *seg, const struct item *next, int index,
                      const int *last)
{
    const struct insn *in = &e->k->insn[next->insn[0]];
    int rows[MAX_READ], count;
    if (next->kind != ITEM_CALL || !is_quad(e, in, OP_ST, 0) ||
        emit_defines(e, seg->insn, seg->count, in->args[0].reg))
        return false;
    for (int i = 0; i < 4; i++) {
        int r = in->args[1].list[i].reg;
        if (!emit_defines(e, seg->insn, seg->count, r) || !defined_once(e, r) ||
            last[r] != index + 1)
            return false;
    }
    if ((count = rows_read(e, seg, rows)) < 0)
        return false;
    int at = quad_slots(e, &in->args[1]);
    e->scratch = 0;
    e->regs_at = e->reg_count;
    e->quad_site = emit_group_site(e, in);
    buf_printf(e->out, "{ const u64 to = *(const u64 *)(fr + %d) + %" PRId64 "ll;\nu8 *w = ",
               reg_slot(e, in->args[0].reg), in->args[0].off);
    for (int i = 0; i < count; i++)
        buf_printf(e->out, "!quads_apart(to, q%d, %d) ? 0 : ", rows[i],
                   e->quad[rows[i]] ? BYTES : SLOT_BYTES);
    buf_printf(e->out, "R->quads(W, m, %d, 1);\n", e->quad_site);
    buf_printf(e->out, "const u32 by_frame = !w; if (UNLIKELY(by_frame)) w = fr + %d;\n", at);
    e->quad_store = in;
    return true;
}

bool quad_holds(const struct emit *e, int reg)
{
    for (int i = 0; i < 4 && e->quad_store; i++)
        if (e->quad_store->args[1].list[i].reg == reg)
            return true;
    return false;
}

void quad_write(struct emit *e)
{
    if (!e->quad_store)
        return;
    buf_puts(e->out, "quads_put(w, c");
    for (int i = 0; i < 4; i++)
        buf_printf(e->out, ", (I)%s", segment_value(e, e->quad_store->args[1].list[i].reg));
    buf_puts(e->out, ");\n");
}

void quad_store_end(struct emit *e)
{
    buf_printf(e->out, "if (UNLIKELY(by_frame)) { quads_split(w); R->st(W, m, %d); } }\n",
               e->quad_site);
    e->quad_store = NULL;
}
