/*
 * emit.c - one kernel as a C function: blocks, segments, branches.
 *
 * Hides: the machinery of waiting lanes. pend[b] are lanes that wait to run
 * block b; the lowest waiting block goes first, so lanes meet again at the
 * join. Lanes at a barrier or a collective under divergence park in cw[b]
 * until every lane it needs is there or nothing else can run.
 */
#include "simt/emit.h"

#include "simt/schedule.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_REGS = 160 };

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

static void write_scalar(struct emit *e, const struct insn *in)
{
    buf_puts(e->out, "{ ");
    if (in->pred >= 0)
        buf_printf(e->out, "if (%sr%d) ", in->pred_not ? "!" : "", in->pred);
    buf_puts(e->out, "{\n");
    emit_alu(e, in);
    buf_puts(e->out, "} }\n");
}

/* last[r]: index of the last item that reads r; big when r lives on. */
static void write_segment(struct emit *e, const struct item *it, int index, const int *last)
{
    int *written = arena_array(e->a, (size_t)it->count * 4 + 4, sizeof *written), n = 0;
    int regs[MAX_REGS];
    for (int i = 0; i < it->count; i++) {
        int nd = insn_defs(&e->k->insn[it->insn[i]], regs, MAX_REGS);
        for (int j = 0; j < nd; j++)
            if (last[regs[j]] > index && e->loaded[regs[j]] != -e->stamp - 1) {
                e->loaded[regs[j]] = -e->stamp - 1; /* collected once */
                if (n < it->count * 4)
                    written[n++] = regs[j];
            }
    }
    buf_puts(e->out, "{\n");
    for (int i = 0; i < n; i++)
        if (reg_class(e, written[i]) == CLASS_P)
            buf_printf(e->out, "u32 n%d = 0;\n", written[i]);
    /* Unrolled, the compiler would work on twice the code for nothing. */
    buf_puts(e->out, "#pragma GCC unroll 1\nfor (int c = 0; c < 32; c += LANES) {\n");
    e->stamp++;
    e->vec = true;
    for (int i = 0; i < it->count && !e->failed; i++)
        emit_alu(e, &e->k->insn[it->insn[i]]);
    bool mask = false;
    for (int i = 0; i < n; i++) {
        static const char letters[] = "MIFQ";
        int r = written[i];
        enum reg_class c = reg_class(e, r);
        char l = letters[c];
        if (e->loaded[r] != e->stamp)
            continue;
        if (c == CLASS_P) {
            buf_printf(e->out, "n%d |= M_bits(v%d_%d) << c;\n", r, r, e->version[r]);
        } else if (e->blend && !e->ir->local[r]) {
            if (!mask)
                buf_puts(e->out, "const M mv = M_ld(m, c);\n");
            mask = true;
            buf_printf(e->out, "%c_st(fr + %d, c, sel_%c(mv, v%d_%d, %c_ld(fr + %d, c)));\n", l,
                       reg_slot(e, r), l, r, e->version[r], l, reg_slot(e, r));
        } else {
            buf_printf(e->out, "%c_st(fr + %d, c, v%d_%d);\n", l, reg_slot(e, r), r, e->version[r]);
        }
    }
    e->vec = false;
    buf_puts(e->out, "}\n");
    for (int i = 0; i < n; i++)
        if (reg_class(e, written[i]) == CLASS_P) {
            int r = written[i];
            if (e->blend && !e->ir->local[r])
                buf_printf(e->out, "p%d = (p%d & ~m) | (n%d & m);\n", r, r, r);
            else
                buf_printf(e->out, "p%d = n%d;\n", r, r);
        }
    buf_puts(e->out, "}\n");
}

static void write_items(struct emit *e, int b)
{
    const struct block *bl = &e->ir->block[b];
    int count, regs[MAX_REGS];
    struct item *item = e->plan[b].item;
    count = e->plan[b].count;
    int *last = arena_array(e->a, (size_t)e->k->reg_count + 1, sizeof *last);
    memset(last, 0xff, ((size_t)e->k->reg_count + 1) * sizeof *last);
    for (int i = 0; i < count; i++)
        for (int j = 0; j < item[i].count; j++) {
            const struct insn *in = &e->k->insn[item[i].insn[j]];
            int n = insn_uses(in, regs, MAX_REGS);
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
        if (item[i].kind == ITEM_SEGMENT)
            write_segment(e, &item[i], i, last);
        else if (item[i].kind == ITEM_CALL)
            write_call(e, in);
        else
            write_scalar(e, in);
    }
}

/* ---- control flow ---- */

static void write_goto(struct emit *e, int from, int to)
{
    if (to >= e->ir->block_count) {
        buf_puts(e->out, "{ W->live &= ~m; m = 0; goto done; }\n");
        return;
    }
    if (to <= from)
        buf_printf(e->out, "{ if (UNLIKELY(--W->fuel < 0)) TICK(%d) goto B%d; }\n", to, to);
    else
        buf_printf(e->out, "goto B%d;\n", to);
}

static void write_leave(struct emit *e, const char *lanes)
{
    buf_printf(e->out, "{ u32 t = %s; if (t) { W->live &= ~t; m &= ~t; if (!m) goto done; } }\n",
               lanes);
}

static void write_branch(struct emit *e, int b)
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
    int lo = bl->target < bl->fall ? bl->target : bl->fall;
    int hi = bl->target < bl->fall ? bl->fall : bl->target;
    buf_printf(e->out, "{ u32 t = %s; if (t == m) ", take);
    write_goto(e, b, bl->target);
    buf_printf(e->out, "if (t) { u32 f = m & ~t; WAIT(%d, %s); m = %s; ", hi,
               lo == bl->target ? "f" : "t", lo == bl->target ? "t" : "f");
    write_goto(e, b, lo);
    buf_puts(e->out, "} }\n");
    write_goto(e, b, bl->fall);
}

/* Which lanes a collective in a block of its own needs before it can run. */
static void write_gather(struct emit *e, int b)
{
    const struct insn *in = &e->k->insn[e->ir->block[b].insn[0]];
    bool bar =
        (strcmp(in->op, "bar") == 0 || strcmp(in->op, "barrier") == 0) && !insn_has(in, "warp");
    const char *need = "W->live";
    int at = strcmp(in->op, "shfl") == 0 ? 4 : strcmp(in->op, "bar") == 0 ? 0 : 2;
    if (!bar && at < in->arg_count && operand_uniform(e, &in->args[at]))
        need = arena_printf(e->a, "(W->live & %s)", scalar_value(e, in, &in->args[at], 'I'));
    else if (!bar && at < in->arg_count && in->args[at].kind == OPND_REG)
        need = arena_printf(e->a, "(W->live & ((const u32 *)(fr + %d))[first_lane(m)])",
                            reg_slot(e, in->args[at].reg));
    buf_printf(e->out, "m |= cw[%d]; cw[%d] = 0; UNSET(cset, %d);\n", b, b, b);
    buf_printf(e->out,
               "if (m != W->live && (%s & ~m)) { cw[%d] = m; SET(cset, %d); m = 0; goto next; }\n",
               need, b, b);
    buf_printf(e->out, "O%d:;\n", b);
}

static void write_block(struct emit *e, int b, bool divided)
{
    const struct block *bl = &e->ir->block[b];
    e->block = b;
    e->blend = bl->div;
    buf_printf(e->out, "B%d:;\n", b);
    if (divided && (bl->div || bl->join))
        buf_printf(e->out, e->parks && !bl->div ? "HEAD_ALL(%d)\n" : "HEAD(%d)\n", b);
    if (divided)
        buf_printf(e->out, "E%d:;\n", b);
    if (bl->collective)
        write_gather(e, b);
    buf_printf(e->out, "COUNT(%d)\n", b);
    write_items(e, b);
    write_branch(e, b);
}

static void write_scheduler(struct emit *e)
{
    const struct ir *ir = e->ir;
    buf_puts(e->out, "done:;\nnext:;\n");
    if (e->parks) {
        /* Parked lanes let others of the divided region go on; those that
         * wait outside of it would run apart there, so they wait longer. */
        buf_puts(e->out,
                 "if (lowest(cset, NW) < NB) {\n"
                 "for (int k = low; k < NB; k++) if (pend[k] && isdiv[k]) { turn = k + 1; goto "
                 "sched; }\n"
                 "int b = lowest(cset, NW); m = cw[b] & W->live; cw[b] = 0; UNSET(cset, b);\n"
                 "if (!m) goto next;\n"
                 "if (isbar[b]) for (int k = b + 1; k < NB; k++) if (isbar[k] && cw[k]) { extra |= "
                 "cw[k] & "
                 "W->live; pend[k + 1] |= cw[k] & W->live; SET(pset, k + 1); cw[k] = 0; "
                 "UNSET(cset, k); }\n"
                 "low = lowest(pset, NW);\nswitch (b) {\n");
        for (int b = 0; b < ir->block_count; b++)
            if (ir->block[b].collective)
                buf_printf(e->out, "case %d: goto O%d;\n", b, b);
        buf_puts(e->out, "} }\nif (low < NB) goto sched;\n");
    } else {
        buf_puts(e->out, "if (low < NB) goto sched;\n");
    }
    buf_puts(e->out,
             "return;\nsched: { int b = low; if (turn) { if (turn > 1) b = turn - 1; else for (int "
             "k = low + 1; k < NB; k++) if (pend[k] && isdiv[k]) { b = k; break; } turn = 0; }\n"
             "m = pend[b] & W->live; pend[b] = 0; UNSET(pset, b); low = lowest(pset, NW); "
             "if (!m) goto next; switch (b) {\n");
    for (int b = 0; b < ir->block_count; b++)
        buf_printf(e->out, "case %d: goto E%d;\n", b, b);
    buf_puts(e->out, "} }\nreturn;\n");
}

static void write_declarations(struct emit *e, struct buf *out)
{
    static const char *const types[] = {"s32", "u32", "float", "u64"};
    for (int r = 0; r < e->k->reg_count; r++) {
        enum reg_class c = reg_class(e, r);
        if (!e->ir->varying[r])
            buf_printf(out, "%s r%d = 0; (void)r%d;\n", types[c], r, r);
        else if (c == CLASS_P)
            buf_printf(out, "u32 p%d = 0; (void)p%d;\n", r, r);
    }
}

bool emit_kernel(struct emit_unit *unit, struct ptx_kernel *k, bool rows, int number,
                 struct buf *out, struct emit *state, struct error *err)
{
    struct ir *ir = arena_alloc(unit->a, sizeof *ir);
    struct emit *e = state;
    struct buf body = buf_init((size_t)1 << 30), *sites = state->sites, *regs = state->regs;
    int site_count = state->site_count, reg_count = state->reg_count;
    if (!ir_build(k, rows, unit->a, ir, err))
        return false;
    *e = (struct emit){.unit = unit, .ir = ir, .k = k, .a = unit->a, .out = &body, .err = err};
    e->sites = sites;
    e->regs = regs;
    e->site_count = site_count;
    e->reg_count = reg_count;
    e->slot = arena_array(unit->a, (size_t)k->reg_count + 1, sizeof(int));
    e->plan = arena_array(unit->a, (size_t)ir->block_count + 1, sizeof *e->plan);
    for (int b = 0; b < ir->block_count; b++)
        e->plan[b].item = schedule_block(ir, b, unit->a, &e->plan[b].count);
    e->frame = frame_plan(ir, e->plan, unit->a, e->slot);
    e->version = arena_array(unit->a, (size_t)k->reg_count + 1, sizeof(int));
    e->loaded = arena_array(unit->a, (size_t)k->reg_count + 1, sizeof(int));
    place_variables(e);
    bool divided = false;
    for (int b = 0; b < ir->block_count; b++)
        divided |= ir->block[b].div;
    for (int b = 0; b < ir->block_count; b++)
        e->parks |= ir->block[b].collective;
    for (int b = 0; b < ir->block_count && !e->failed; b++)
        write_block(e, b, divided);
    if (divided)
        write_scheduler(e);
    else
        buf_puts(&body, "done: return;\n");
    int words = (ir->block_count + 64) / 64;
    buf_printf(out, "#define NB %d\n#define NW %d\n", ir->block_count, words);
    buf_printf(out, "static void k%d_%s(struct sw_warp *W)\n{\n", number,
               rows ? "rows" : "general");
    buf_puts(out, "const struct sw_block *const B = W->b; u64 *const C = W->counts; u32 m = "
                  "W->live, extra = 0; (void)B; (void)C; (void)extra;\n");
    buf_printf(out, "u8 fr[%d] AL; W->fr = fr;\n", e->frame + SLOT_BYTES);
    if (divided) {
        buf_puts(out, "u32 pend[NB + 1] = {0}, cw[NB + 1] = {0}; u64 pset[NW] = {0}, cset[NW] = "
                      "{0}; int low = 1 << 30, turn = 0; (void)cw; (void)cset; (void)turn;\n");
        buf_puts(out, "static const u8 isbar[NB + 1] = {");
        for (int b = 0; b < ir->block_count; b++) {
            const struct insn *in = ir->block[b].collective ? &k->insn[ir->block[b].insn[0]] : NULL;
            bool bar = in && (strcmp(in->op, "bar") == 0 || strcmp(in->op, "barrier") == 0) &&
                       !insn_has(in, "warp");
            buf_printf(out, "%d,", bar);
        }
        buf_puts(out, "}, isdiv[NB + 1] = {");
        for (int b = 0; b < ir->block_count; b++)
            buf_printf(out, "%d,", ir->block[b].div);
        buf_puts(out, "}; (void)isbar; (void)isdiv;\n");
    }
    buf_printf(out, "#undef TICK\n#define TICK(b) %s\n",
               divided
                   ? "{ if (R->tick(W, low < NB, 0)) { WAIT(b, m); m = 0; turn = 1; goto sched; } }"
                   : "R->tick(W, 0, 0);");
    write_declarations(e, out);
    buf_add(out, body.data ? body.data : "", body.len);
    buf_puts(out, "}\n#undef NB\n#undef NW\n");
    bool fits = !body.overflowed;
    buf_release(&body);
    if (!fits)
        return error_set(err, ERROR_JUDGED, "kernel %s is too large", k->fn->name);
    return !e->failed;
}
