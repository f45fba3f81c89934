/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emit.c - one kernel as a C function: its blocks, and the segments in them.
 */
#include "simt/emit/emit.h"

#include "simt/ir/affine_groups.h"
#include "simt/ir/list_schedule.h"
#include "simt/ptx/call_kinds.h"

#include <inttypes.h>
#include <string.h>

enum { MANY_BLOCKS = 12, MAX_GROUPS = 16, MANY_PAIRS = 64 };

bool emit_fail(struct emit *e, const struct insn *in, const char *why)
{
    if (e->failed)
        return false;
    e->failed = true;
    int len = in->text_len < 160 ? in->text_len : 160;
    struct simt_refusal *r = e->unit->refusal;
    if (r) {
        int at = in->loc;
        while (at >= 0 && e->unit->m->locs[at].inlined_at >= 0)
            at = e->unit->m->locs[at].inlined_at;
        r->kernel = e->k->fn->name;
        r->instruction = arena_strndup(e->a, in->text, (size_t)len);
        r->ptx_line = in->line;
        if (at >= 0) {
            const struct ptx_loc *l = &e->unit->m->locs[at];
            r->file = l->file < e->unit->m->file_count ? e->unit->m->files[l->file] : NULL;
            r->line = l->line;
        }
    }
    error_set(e->err, ERROR_JUDGED, "kernel %s, %s: %s: '%.*s'", e->k->fn->name,
              ptx_where(e->unit->m, in, e->a), why, len, in->text);
    return false;
}

bool emit_by_table(struct emit *e, const struct insn *in, const struct emit_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (rows[i].op != in->op)
            continue;
        if (in->arg_count < rows[i].args)
            emit_fail(e, in, "too few operands");
        else
            rows[i].write(e, in);
        return true;
    }
    return false;
}

bool emit_defines(const struct emit *e, const int *insn, int count, int reg)
{
    int regs[MAX_INSN_REGS];
    for (int i = 0; i < count; i++)
        for (int n = insn_defs(&e->k->insn[insn[i]], regs); n-- > 0;)
            if (regs[n] == reg)
                return true;
    return false;
}

/* ---- where variables are ---- */

static void place_variables(struct emit *e)
{
    bool uses_extern = false;
    for (int i = 0; i < e->k->local_count; i++) {
        struct ptx_var *v = e->k->locals[i];
        uint64_t *top = v->space == PS_SHARED ? &e->shared_static : &e->local_bytes;
        *top = (*top + v->align - 1) / v->align * v->align;
        v->offset = *top;
        *top += v->bytes;
        if (v->space == PS_SHARED && v->align > e->shared_align)
            e->shared_align = v->align;
    }
    /* Only the module's shared variables that this kernel names. */
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < e->unit->m->var_count; i++) {
            struct ptx_var *v = e->unit->m->var[i];
            if (v->space != PS_SHARED || v->external != (pass == 1))
                continue;
            bool named = false;
            for (int j = 0; j < e->k->insn_count && !named; j++)
                for (int q = 0; q < e->k->insn[j].arg_count; q++)
                    named |= e->k->insn[j].args[q].var == v;
            if (!named)
                continue;
            if (v->align > e->shared_align)
                e->shared_align = v->align;
            uint64_t at = (e->shared_static + v->align - 1) / v->align * v->align;
            v->offset = at;
            if (!v->external)
                e->shared_static = at + v->bytes;
            else
                e->shared_static = at;
            uses_extern |= v->external;
        }
    }
    e->uses_dynamic = uses_extern;
    e->local_bytes = (e->local_bytes + 15) / 16 * 16;
}

/* ---- items ---- */

static void write_call(struct emit *e, const struct insn *in)
{
    e->scratch = 0;
    e->regs_at = e->reg_count;
    buf_puts(e->out, "{ ");
    if (in->pred >= 0) {
        struct opnd g = {.kind = OPND_REG, .reg = in->pred, .reg2 = -1, .not = in->pred_not};
        buf_printf(e->out, "u32 mm = m & %s; if (mm) {\n", pred_bits(e, in, &g));
    } else {
        buf_puts(e->out, "const u32 mm = m; {\n");
    }
    emit_call(e, in);
    buf_puts(e->out, "} }\n");
}

/* One call for loads from, or stores to, one register: their sites follow each other. */
static void write_group(struct emit *e, const struct item *it)
{
    bool loads = it->kind == ITEM_LOADS;
    const struct insn *first = &e->k->insn[it->insn[0]];
    int site = e->site_count;
    int64_t lo = INT64_MAX, hi = INT64_MIN;
    for (int i = 0; i < it->count; i++) {
        const struct opnd *o = &e->k->insn[it->insn[i]].args[loads];
        lo = o->off < lo ? o->off : lo;
        hi = o->off > hi ? o->off : hi;
    }
    e->scratch = 0;
    for (int i = 0; i < it->count && !e->failed; i++) {
        e->regs_at = e->reg_count;
        emit_group_site(e, &e->k->insn[it->insn[i]]);
    }
    int width = first->args[0].kind == OPND_VEC ? first->args[0].count : 1;
    buf_printf(e->out, "R->%s(W, m, %d, %d, %" PRId64 ", %" PRId64 ");\n", loads ? "lds" : "sts",
               site, it->count, lo, hi + width * (int64_t)ptx_type_bytes(first->type));
}

void write_scalar(struct emit *e, const struct insn *in)
{
    bool affine = in->args[0].kind == OPND_REG && e->ir->varying[in->args[0].reg] &&
                  is_affine(e, in->args[0].reg);
    if (!affine && (insn_bits(in) || insn_tests_row(e->ir, in)) &&
        e->ir->varying[in->args[0].reg]) {
        emit_bits(e, in);
        return;
    }
    if (in->pred >= 0)
        buf_printf(e->out, "if (%sr%d) ", in->pred_not ? "!" : "", in->pred);
    buf_puts(e->out, "{\n");
    if (affine)
        emit_affine(e, in);
    else if (insn_masks_tid(e->ir, in, true) && !e->ir->varying[in->args[0].reg])
        buf_printf(e->out, "r%d = W->tx0 %s 0x%xu;\n", in->args[0].reg,
                   in->op == OP_AND ? "&" : ">>", (unsigned)in->args[2].bits);
    else
        emit_alu(e, in);
    buf_puts(e->out, "}\n");
}

/* A result that is needed after its segment goes to the frame as soon as it is final. */
static void write_result(struct emit *e, int r)
{
    static const char letters[] = "MIFQ";
    enum reg_class c = reg_class(e, r);
    char l = letters[c];
    int v = e->version[r];
    if (e->loaded[r] != e->stamp)
        return;
    if (c == CLASS_P)
        buf_printf(e->out, "n%d |= M_bits(v%d_%d) << c;\n", r, r, v);
    else if (keeps(e, r))
        buf_printf(e->out, "%c_put(fr + %d, c, mv, m, v%d_%d);\n", l, reg_slot(e, r), r, v);
    else
        buf_printf(e->out, "%c_st(fr + %d, c, v%d_%d);\n", l, reg_slot(e, r), r, v);
}

static void write_bits(struct emit *e, int r)
{
    if (keeps(e, r))
        buf_printf(e->out, "p%d = (p%d & ~m) | (n%d & m);\n", r, r, r);
    else
        buf_printf(e->out, "p%d = n%d;\n", r, r);
}

/* last[r]: index of the last item that reads r; big when r lives on. */
static void write_segment_once(struct emit *e, const struct item *it, int index, const int *last,
                               const int *groups, int count)
{
    int regs[MAX_INSN_REGS];
    bool mask = false;
    buf_puts(e->out, "{\n");
    for (int i = 0; i < it->count; i++) {
        int n = insn_defs(&e->k->insn[it->insn[i]], regs);
        for (int j = 0; j < n; j++) {
            if (last[regs[j]] <= index || quad_holds(e, regs[j]))
                continue;
            bool first = e->final[regs[j]] < 0;
            e->final[regs[j]] = i;
            if (reg_class(e, regs[j]) != CLASS_P)
                mask |= keeps(e, regs[j]);
            else if (first)
                buf_printf(e->out, "u32 n%d = 0;\n", regs[j]);
        }
    }
    buf_puts(e->out, "for (int c = 0; c < upto; c += LANES) {\n");
    for (int i = 0; i < count; i++)
        buf_printf(e->out, "const u8 *s%d = B->smem + o%d[c / LANES];\n", groups[i], groups[i]);
    if (mask)
        buf_puts(e->out, "const M mv = M_ld(m, c);\n");
    e->stamp++;
    e->vec = true;
    bool sums = sums_begin(e, it);
    for (int i = 0; i < it->count && !e->failed; i++) {
        const struct insn *in = &e->k->insn[it->insn[i]];
        if (sums)
            emit_sum(e, in);
        else
            emit_alu(e, in);
        int n = insn_defs(in, regs);
        for (int j = 0; j < n; j++)
            if (e->final[regs[j]] == i)
                write_result(e, regs[j]);
    }
    if (sums)
        sums_end(e, it);
    quad_write(e);
    e->vec = false;
    buf_puts(e->out, "}\n");
    for (int i = 0; i < it->count; i++) {
        int n = insn_defs(&e->k->insn[it->insn[i]], regs);
        for (int j = 0; j < n; j++) {
            int r = regs[j];
            if (e->final[r] == i && reg_class(e, r) == CLASS_P)
                write_bits(e, r);
            if (e->final[r] == i)
                e->final[r] = -1;
        }
    }
    buf_puts(e->out, "}\n");
}

/* Four words are read where they lie, or none of them. */
static void settle_quads(struct emit *e, int b)
{
    for (int i = 0; i < e->plan[b].count; i++) {
        const struct insn *in = &e->k->insn[e->plan[b].item[i].insn[0]];
        if (e->plan[b].item[i].kind != ITEM_CALL || !is_quad_load(e, in))
            continue;
        bool all = true;
        for (int k = 0; k < 4; k++)
            all &= e->direct[in->args[0].list[k].reg] == b + 1;
        for (int k = 0; k < 4 && !all; k++)
            e->direct[in->args[0].list[k].reg] = -1;
    }
}

/* A row that only segments read, before anything else is done to memory, is not copied. */
static void find_direct(struct emit *e, int b)
{
    const struct item *item = e->plan[b].item;
    int count = e->plan[b].count, regs[MAX_INSN_REGS], writes = -1;
    int *from = arena_array(e->a, (size_t)e->k->reg_count + 1, sizeof *from);
    for (int i = 0; i < count; i++) {
        const struct insn *in = &e->k->insn[item[i].insn[0]];
        bool load = item[i].kind == ITEM_LOADS || (item[i].kind == ITEM_CALL && in->op == OP_LD);
        if ((item[i].kind == ITEM_CALL && !load) || item[i].kind == ITEM_STORES)
            writes = i;
        for (int j = 0; j < item[i].count; j++) {
            in = &e->k->insn[item[i].insn[j]];
            for (int n = insn_uses(in, regs); n-- > 0;)
                if (e->direct[regs[n]] == b + 1 &&
                    (item[i].kind != ITEM_SEGMENT || writes > from[regs[n]]))
                    e->direct[regs[n]] = -1;
            for (int n = insn_defs(in, regs); n-- > 0;)
                if (e->direct[regs[n]] == b + 1)
                    e->direct[regs[n]] = -1;
        }
        int r = in->args[0].reg;
        if (load && item[i].kind == ITEM_CALL && emit_loads_row(e, in) && e->ir->local[r] &&
            !keeps(e, r) && e->direct[r] >= 0) {
            e->direct[r] = b + 1;
            e->quad[r] = 0;
            from[r] = i;
        }
        for (int k = 0; load && item[i].kind == ITEM_CALL && is_quad_load(e, in) && k < 4; k++) {
            r = in->args[0].list[k].reg;
            e->direct[r] = e->direct[r] < 0 ? -1 : b + 1;
            e->quad[r] = item[i].insn[0] + 1;
            from[r] = i;
        }
    }
    settle_quads(e, b);
}

/* The groups of loads a segment can do itself; *set: the check that says whether it may. */
static int strip_groups(const struct emit *e, const struct item *it, int *groups, int *set)
{
    int regs[MAX_INSN_REGS], count = 0;
    for (int i = 0; i < it->count; i++)
        for (int n = insn_uses(&e->k->insn[it->insn[i]], regs); n-- > 0;) {
            const struct strip_reg *s = &e->strip[regs[n]];
            bool known = s->block != e->block + 1;
            for (int j = 0; j < count && !known; j++)
                known = groups[j] == s->group;
            if (known)
                continue;
            *set = s->set;
            if (count < MAX_GROUPS)
                groups[count++] = s->group;
        }
    return count;
}

static void write_segment(struct emit *e, const struct item *it, int index, const int *last)
{
    int groups[MAX_GROUPS], set = 0, count = strip_groups(e, it, groups, &set);
    if (!count) {
        write_segment_once(e, it, index, last, NULL, 0);
        return;
    }
    buf_printf(e->out, "if (!UNLIKELY(!k%d)) ", set);
    e->strips = true;
    write_segment_once(e, it, index, last, groups, count);
    e->strips = false;
    buf_puts(e->out, "else ");
    write_segment_once(e, it, index, last, NULL, 0);
}

/* Groups of loads that follow each other, and whether segments may do them. */
static void write_strips(struct emit *e, const struct item *it, int n)
{
    struct buf check = buf_init((size_t)1 << 30), yes = buf_init((size_t)1 << 30),
               no = buf_init((size_t)1 << 30);
    int set = e->site_count;
    for (int g = 0; g < n; g++) {
        const struct insn *first = &e->k->insn[it[g].insn[0]];
        int site = e->site_count, addr = first->args[1].reg;
        int64_t lo = INT64_MAX, hi = INT64_MIN;
        e->scratch = 0;
        for (int i = 0; i < it[g].count && !e->failed; i++) {
            const struct insn *in = &e->k->insn[it[g].insn[i]];
            lo = in->args[1].off < lo ? in->args[1].off : lo;
            hi = in->args[1].off > hi ? in->args[1].off : hi;
            e->regs_at = e->reg_count;
            emit_group_site(e, in);
            e->strip[in->args[0].reg] =
                (struct strip_reg){e->block + 1, site, set, addr, in->args[1].off};
        }
        const char *what = arena_printf(e->a, "W, m, %d, %d, %" PRId64 ", %" PRId64, site,
                                        it[g].count, lo, hi + 4);
        buf_printf(&check, "%sR->strip(%s, %d)", g ? " && " : "", what,
                   e->unit->lanes << STRIP_LANES_SHIFT |
                       (e->ir->strip[addr].stride ? STRIP_ROW : STRIP_SAME));
        buf_printf(e->out, "u32 o%d[32 / LANES];\n", site);
        buf_printf(&yes,
                   "R->strip(%s, 0); for (int i = 0; i < 32 / LANES; i++) o%d[i] = ((const u32 "
                   "*)(fr + %d))[i * LANES];\n",
                   what, site, reg_slot(e, addr));
        buf_printf(&no, "R->lds(%s);\n", what);
    }
    buf_printf(e->out, "const u32 k%d = %s; if (!UNLIKELY(!k%d)) {\n%s} else {\n%s}\n", set,
               check.data, set, yes.data, no.data);
    buf_release(&check);
    buf_release(&yes);
    buf_release(&no);
}

static int strips_here(const struct item *item, int left)
{
    int n = 0;
    while (n < left && n < MAX_GROUPS && item[n].kind == ITEM_LOADS && item[n].strip)
        n++;
    return n;
}

/* A segment can ask one check only: where one would need two, the later loads are plain. */
static void settle_strips(struct emit *e, int b)
{
    struct item *item = e->plan[b].item;
    int count = e->plan[b].count, regs[MAX_INSN_REGS];
    int *set = arena_array(e->a, (size_t)e->k->reg_count + 1, sizeof *set);
    for (int i = 0; i < count; i++) {
        int n = strips_here(item + i, count - i);
        for (int j = i; j < i + n; j++)
            for (int q = 0; q < item[j].count; q++)
                set[e->k->insn[item[j].insn[q]].args[0].reg] = i + 1;
        i += n ? n - 1 : 0;
    }
    for (int i = 0; i < count; i++) {
        int first = 0;
        for (int j = 0; item[i].kind == ITEM_SEGMENT && j < item[i].count; j++)
            for (int n = insn_uses(&e->k->insn[item[i].insn[j]], regs); n-- > 0;) {
                int s = set[regs[n]];
                if (!s || s == first)
                    continue;
                if (!first)
                    first = s;
                else
                    for (int q = s - 1, left = strips_here(item + s - 1, count - s + 1); left-- > 0;
                         q++)
                        item[q].strip = false;
            }
    }
}

static void write_items(struct emit *e, int b)
{
    const struct block *bl = &e->ir->block[b];
    int count, regs[MAX_INSN_REGS];
    struct item *item = e->plan[b].item;
    count = e->plan[b].count;
    find_direct(e, b);
    settle_strips(e, b);
    int *last = arena_array(e->a, (size_t)e->k->reg_count + 1, sizeof *last);
    memset(last, 0xff, ((size_t)e->k->reg_count + 1) * sizeof *last);
    for (int i = 0; i < count; i++)
        for (int j = 0; j < item[i].count; j++) {
            const struct insn *in = &e->k->insn[item[i].insn[j]];
            int n = insn_uses(in, regs);
            for (int q = 0; q < n; q++)
                last[regs[q]] = i;
            /* Where the guard is false, the old value stays: it is read. */
            n = in->pred >= 0 ? insn_defs(in, regs) : 0;
            for (int q = 0; q < n; q++)
                last[regs[q]] = i;
        }
    if (bl->term >= 0 && e->k->insn[bl->term].pred >= 0)
        last[e->k->insn[bl->term].pred] = count;
    for (int r = 0; r < e->k->reg_count; r++)
        if (set_has(bl->live_out, r))
            last[r] = count + 1;
    for (int i = 0; i < count && !e->failed; i++) {
        const struct insn *in = &e->k->insn[item[i].insn[0]];
        if (item[i].kind == ITEM_SEGMENT) {
            bool store = i + 1 < count && quad_store_begin(e, &item[i], &item[i + 1], i, last);
            write_segment(e, &item[i], i, last);
            if (store) {
                quad_store_end(e);
                i++;
            }
        } else if (item[i].kind == ITEM_LOADS && item[i].strip) {
            int n = strips_here(item + i, count - i);
            write_strips(e, item + i, n);
            i += n - 1;
        } else if (item[i].kind == ITEM_LOADS || item[i].kind == ITEM_STORES)
            write_group(e, &item[i]);
        else if (item[i].kind == ITEM_CALL)
            write_call(e, in);
        else
            write_scalar(e, in);
    }
}

static void write_block(struct emit *e, int b)
{
    e->block = b;
    write_head(e, b);
    buf_printf(e->out, "COUNT(%d)\n", b);
    if (loop_alone(e, b))
        write_loop_alone(e, b);
    else
        write_items(e, b);
    write_branch(e, b);
}

/* In a kernel of many blocks, what lives from block to block is kept in the
 * frame: as C variables such registers would meet at every block's head. */
static bool in_frame(const struct emit *e, int r)
{
    return e->ir->block_count > MANY_BLOCKS && !e->ir->local[r];
}

static void declare(struct emit *e, struct buf *out, char name, int r, const char *type)
{
    if (in_frame(e, r)) {
        buf_printf(out, "#define %c%d (*(%s *)(fr + %d))\n", name, r, type, e->frame);
        e->frame += 8;
    } else {
        buf_printf(out, "%s %c%d = 0;\n", type, name, r);
    }
}

static void write_declarations(struct emit *e, struct buf *out)
{
    static const char *const types[] = {"s32", "u32", "float", "u64"};
    for (int r = 0; r < e->k->reg_count; r++) {
        enum reg_class c = reg_class(e, r);
        if (!e->ir->varying[r])
            declare(e, out, 'r', r, types[c]);
        else if (c == CLASS_P)
            declare(e, out, 'p', r, "u32");
        else if (is_affine(e, r))
            declare(e, out, 'a', r, types[c]);
        if (e->direct[r])
            buf_printf(out, "const u8 *q%d = 0;\n", r);
        if (is_affine(e, r) && e->ir->affine[r].wrap)
            declare(e, out, 'w', r, "u32");
    }
}

static void forget_declarations(struct emit *e, struct buf *out)
{
    for (int r = 0; r < e->k->reg_count; r++)
        if (in_frame(e, r) && (!e->ir->varying[r] || reg_class(e, r) == CLASS_P || is_affine(e, r)))
            buf_printf(out, "#undef r%d\n#undef p%d\n#undef a%d\n#undef w%d\n", r, r, r, r);
}

enum { MANY_ONCE = 16 };

/* Which blocks no loop is around, if there is much in them. */
static bool *blocks_once(const struct ir *ir, struct arena *a)
{
    bool *once = arena_array(a, (size_t)ir->block_count + 1, sizeof *once);
    int loop_end = -1, found = 0;
    int *end = arena_array(a, (size_t)ir->block_count + 1, sizeof *end);
    for (int b = 0; b < ir->block_count; b++)
        end[b] = -1;
    for (int b = 0; b < ir->block_count; b++) {
        int to = ir->block[b].target;
        if (to >= 0 && to <= b && end[to] < b)
            end[to] = b;
    }
    for (int b = 0; b < ir->block_count; b++) {
        loop_end = end[b] > loop_end ? end[b] : loop_end;
        once[b] = b > loop_end;
        for (int i = 0; once[b] && i < ir->block[b].count; i++) {
            enum ptx_op op = ir->k->insn[ir->block[b].insn[i]].op;
            found += op == OP_LD || op == OP_ST;
        }
    }
    return found > MANY_ONCE ? once : NULL;
}

static int *per_register(const struct emit *e)
{
    return arena_array(e->a, (size_t)e->k->reg_count + 1, sizeof(int));
}

static bool many_pairs(const struct ptx_kernel *k)
{
    int n = 0;
    for (int i = 0; i < k->insn_count; i++)
        n += k->insn[i].type == PT_F16X2 || k->insn[i].type == PT_BF16X2;
    return n > MANY_PAIRS;
}

/* Schedules, places in the frame, and what the writers note per register. */
static void plan_kernel(struct emit *e)
{
    struct ir *ir = e->ir;
    size_t regs = (size_t)e->k->reg_count + 1;
    ir->lanes = e->unit->lanes;
    e->many_pairs = many_pairs(e->k);
    ir->strip = strips_find(ir, e->a);
    ir->strips = arena_array(e->a, (size_t)e->k->insn_count + 1, sizeof *ir->strips);
    e->slot = per_register(e);
    e->plan = arena_array(e->a, (size_t)ir->block_count + 1, sizeof *e->plan);
    for (int b = 0; b < ir->block_count; b++)
        e->plan[b].item = schedule_block(ir, b, e->a, &e->plan[b].count);
    e->frame = frame_plan(ir, e->plan, e->a, e->slot);
    e->version = per_register(e);
    e->loaded = per_register(e);
    e->blend = arena_array(e->a, regs, sizeof *e->blend);
    e->strip = arena_array(e->a, regs, sizeof *e->strip);
    e->quad = per_register(e);
    e->home = per_register(e);
    e->direct = per_register(e);
    e->final = per_register(e);
    memset(e->final, 0xff, regs * sizeof(int));
    e->once = blocks_once(ir, e->a);
    for (int b = 0; b < ir->block_count; b++)
        e->parks |= ir->block[b].collective;
}

/* The function around the body: what comes before it needs the whole frame's size. */
static void write_function(struct emit *e, const char *name, const struct buf *body,
                           struct buf *out)
{
    int words = (e->ir->block_count + 64) / 64;
    struct buf names = buf_init((size_t)1 << 30);
    buf_printf(out, "#define NB %d\n#define NW %d\n", e->ir->block_count, words);
    buf_printf(out, "static void %s(struct sw_warp *W)\n{\n", name);
    buf_puts(out, "const struct sw_block *const B = W->b; u64 *const C = W->counts; u32 m = "
                  "W->live, extra = 0;\n");
    write_declarations(e, &names);
    e->frame = (e->frame + SLOT_BYTES - 1) / SLOT_BYTES * SLOT_BYTES;
    /* Unrolled, the compiler would work on twice the code for nothing: hide the count. */
    buf_printf(out, "u8 fr[%d] AL; W->fr = fr; int upto = 32; __asm__(\"\" : \"+r\"(upto));\n",
               e->frame + SLOT_BYTES);
    if (e->divided)
        write_waits(e, out);
    buf_add(out, names.data ? names.data : "", names.len);
    buf_add(out, body->data ? body->data : "", body->len);
    buf_puts(out, "}\n#undef NB\n#undef NW\n");
    forget_declarations(e, out);
    buf_release(&names);
}

bool emit_kernel(struct emit_unit *unit, struct ptx_kernel *k, bool rows, int number,
                 struct buf *out, struct emit *state, struct error *err)
{
    struct ir *ir = arena_alloc(unit->a, sizeof *ir);
    struct buf body = buf_init((size_t)1 << 30);
    if (!ir_build(k, rows, unit->a, ir, err))
        return false;
    /* Both forms of a kernel have their sites in one table. */
    *state = (struct emit){.unit = unit,
                           .ir = ir,
                           .k = k,
                           .a = unit->a,
                           .out = &body,
                           .err = err,
                           .sites = state->sites,
                           .regs = state->regs,
                           .site_count = state->site_count,
                           .reg_count = state->reg_count};
    plan_kernel(state);
    place_variables(state);
    state->arrays = shared_arrays(k, unit->a);
    for (int b = 0; b < ir->block_count; b++)
        state->divided |= ir->block[b].div;
    for (int b = 0; b < ir->block_count && !state->failed; b++)
        write_block(state, b);
    if (state->divided)
        write_scheduler(state);
    else
        buf_puts(&body, "leave: W->live &= ~m;\ndone: return;\n");
    const char *name = arena_printf(unit->a, "k%d_%s", number, rows ? "rows" : "general");
    write_function(state, name, &body, out);
    bool fits = !body.overflowed;
    buf_release(&body);
    if (!fits)
        return error_set(err, ERROR_JUDGED, "kernel %s is too large", k->fn->name);
    return !state->failed;
}
