/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list_schedule.c - a list scheduler over one block's dependences.
 *
 * Hides: the dependence edges (read after write, write after read, write
 * after write, calls in order).
 */
#include "simt/ir/list_schedule.h"

#include "simt/ir/affine.h"
#include "simt/ir/affine_groups.h"

#include <string.h>

/* In a very long block shorter ones: gcc's time for one grows faster than its length. */
enum { MAX_SEGMENT = 2000, LONG_BLOCK = 5000, SHORT_SEGMENT = 500 };
enum { MAX_LOADS = 64, TILE = 16, MANY_FMAS = 64, MIN_STRIPS = 16 };
enum { MAX_OFFSET = 1 << 20 }; /* of accesses that are done together */

struct edge {
    int to, next;
};

struct dep_graph {
    struct arena *a;
    struct edge *edge;
    int edges, cap;
    int *first, *waits;
};

enum item_kind insn_kind(const struct ir *ir, const struct insn *in)
{
    if (insn_is_call(in))
        return ITEM_CALL;
    if ((insn_bits(in) && !ir->lanewise[in->args[0].reg]) || insn_tests_row(ir, in))
        return ITEM_SCALAR;
    int regs[MAX_INSN_REGS], n = insn_defs(in, regs);
    for (int i = 0; i < n; i++)
        if (ir->varying[regs[i]] && ir->affine[regs[i]].is != AFFINE_YES)
            return ITEM_SEGMENT;
    return ITEM_SCALAR;
}

static void edge_add(struct dep_graph *g, int from, int to)
{
    if (from < 0 || from == to)
        return;
    GROW(g->a, g->edge, g->edges, g->cap);
    g->edge[g->edges] = (struct edge){to, g->first[from]};
    g->first[from] = g->edges++;
    g->waits[to]++;
}

/* Readers of a register since it was last written, as a chain. */
struct reg_reader {
    int at, next;
};

static void build(struct dep_graph *g, const struct ir *ir, const int *list, int count,
                  const enum item_kind *kind)
{
    int regs[MAX_INSN_REGS], last_call = -1, cap = 0, readers = 0;
    int nr = ir->k->reg_count;
    int *writer = arena_array(g->a, (size_t)nr + 1, sizeof *writer);
    int *chain = arena_array(g->a, (size_t)nr + 1, sizeof *chain);
    struct reg_reader *reader = NULL;
    memset(writer, 0xff, ((size_t)nr + 1) * sizeof *writer);
    memset(chain, 0xff, ((size_t)nr + 1) * sizeof *chain);
    for (int i = 0; i < count; i++) {
        const struct insn *in = &ir->k->insn[list[i]];
        int n = insn_uses(in, regs);
        int d[MAX_INSN_REGS], nd = insn_defs(in, d);
        for (int j = 0; j < n; j++)
            edge_add(g, writer[regs[j]], i);
        for (int j = 0; j < nd; j++) {
            edge_add(g, writer[d[j]], i);
            for (int q = chain[d[j]]; q >= 0; q = reader[q].next)
                edge_add(g, reader[q].at, i);
        }
        for (int j = 0; j < n; j++) {
            GROW(g->a, reader, readers, cap);
            reader[readers] = (struct reg_reader){i, chain[regs[j]]};
            chain[regs[j]] = readers++;
        }
        for (int j = 0; j < nd; j++) {
            writer[d[j]] = i;
            chain[d[j]] = -1;
        }
        if (kind && kind[i] == ITEM_CALL) {
            edge_add(g, last_call, i);
            last_call = i;
        }
    }
}

static void finish(struct dep_graph *g, int i, int *state)
{
    state[i] = 2;
    for (int q = g->first[i]; q >= 0; q = g->edge[q].next)
        g->waits[g->edge[q].to]--;
}

static void graph_init(struct dep_graph *g, struct arena *a, int n)
{
    *g = (struct dep_graph){.a = a};
    g->first = arena_array(a, (size_t)n + 1, sizeof *g->first);
    g->waits = arena_array(a, (size_t)n + 1, sizeof *g->waits);
    memset(g->first, 0xff, ((size_t)n + 1) * sizeof *g->first);
}

/* ---- loads from one register ---- */

/* Loads that may change places with each other. */
static bool loose_load(const struct insn *in)
{
    if (in->op != OP_LD || in->arg_count != 2 || in->pred >= 0)
        return false;
    return !insn_has_any(in, MOD_VOLATILE, MOD_RELAXED, MOD_ACQUIRE, MOD_MMIO, MOD_PARAM, MOD_LOCAL,
                         MOD_PARAM_ENTRY);
}

static bool plain_load(const struct ir *ir, const struct insn *in)
{
    if (!loose_load(in) || in->args[1].kind != OPND_ADDR || in->args[1].reg < 0 ||
        !ir->varying[in->args[1].reg] || ir->affine[in->args[1].reg].is == AFFINE_YES)
        return false;
    unsigned bytes = ptx_type_bytes(in->type);
    if (bytes != 4 && bytes != 8)
        return false;
    int n = in->args[0].kind == OPND_VEC ? in->args[0].count : 1;
    if (in->args[1].off % (int64_t)((unsigned)n * bytes) || in->args[1].off > MAX_OFFSET ||
        in->args[1].off < -MAX_OFFSET)
        return false;
    return true;
}

static bool same_mods(const struct insn *x, const struct insn *y)
{
    return x->mod_count == y->mod_count &&
           memcmp(x->mods, y->mods, (size_t)x->mod_count * sizeof x->mods[0]) == 0;
}

static bool alike(const struct ir *ir, int xi, int yi)
{
    const struct insn *x = &ir->k->insn[xi], *y = &ir->k->insn[yi];
    if (x->args[1].reg != y->args[1].reg || x->args[0].kind != y->args[0].kind ||
        ir->strips[xi] != ir->strips[yi] ||
        (x->args[0].kind == OPND_VEC && x->args[0].count != y->args[0].count))
        return false;
    return same_mods(x, y);
}

/* Their order matters: one gives another its address, or two write one register. */
static bool writes_address(const struct ir *ir, const struct item *run, int n)
{
    int regs[MAX_INSN_REGS];
    int *seen = arena_array(ir->a, (size_t)ir->k->reg_count + 1, sizeof *seen);
    for (int i = 0; i < n; i++) {
        int d = insn_defs(&ir->k->insn[run[i].insn[0]], regs);
        for (int j = 0; j < d; j++)
            if (seen[regs[j]]++)
                return true;
    }
    for (int i = 0; i < n; i++) {
        const struct opnd *o = &ir->k->insn[run[i].insn[0]].args[1];
        if (o->reg >= 0 && seen[o->reg])
            return true;
    }
    return false;
}

/* A run of loads: those from the same register at several offsets, together. */
static int group_run(const struct ir *ir, const struct item *run, int n, struct arena *a,
                     struct item *out)
{
    int count = 0;
    bool *done = arena_array(a, (size_t)n + 1, sizeof *done);
    for (int i = 0; i < n; i++) {
        if (done[i])
            continue;
        int *list = arena_array(a, (size_t)(n - i), sizeof *list), k = 0;
        bool plain = plain_load(ir, &ir->k->insn[run[i].insn[0]]);
        for (int j = i; j < (plain ? n : i + 1) && k < MAX_LOADS; j++)
            if (!done[j] && alike(ir, run[i].insn[0], run[j].insn[0]) &&
                (j == i || plain_load(ir, &ir->k->insn[run[j].insn[0]]))) {
                list[k++] = run[j].insn[0];
                done[j] = true;
            }
        out[count++] =
            (struct item){k > 1 ? ITEM_LOADS : ITEM_CALL, list, k, k > 1 && ir->strips[list[0]]};
    }
    return count;
}

/* A store whose value and address are lanes in the frame. */
static bool plain_store(const struct ir *ir, const struct insn *in)
{
    if (in->op != OP_ST || in->arg_count != 2 || in->pred >= 0 || in->args[0].kind != OPND_ADDR ||
        in->args[0].reg < 0 || in->args[1].kind != OPND_REG || in->args[1].reg2 >= 0 ||
        ptx_type_bytes(in->type) != 4 ||
        insn_has_any(in, MOD_VOLATILE, MOD_RELAXED, MOD_RELEASE, MOD_MMIO, MOD_LOCAL))
        return false;
    int to = in->args[0].reg, from = in->args[1].reg;
    return ir->varying[to] && ir->affine[to].is != AFFINE_YES && ir->varying[from] &&
           ir->affine[from].is != AFFINE_YES && ptx_type_bytes(ir->k->reg_type[from]) == 4 &&
           in->args[0].off % 4 == 0 && in->args[0].off < MAX_OFFSET &&
           in->args[0].off > -MAX_OFFSET;
}

/* Stores that follow each other, to one register's address at several offsets. */
static int stores_here(const struct ir *ir, const struct item *item, int left)
{
    int n = 0;
    const struct insn *first = &ir->k->insn[item[0].insn[0]];
    while (n < left && n < MAX_LOADS && item[n].kind == ITEM_CALL &&
           plain_store(ir, &ir->k->insn[item[n].insn[0]]) &&
           ir->k->insn[item[n].insn[0]].args[0].reg == first->args[0].reg &&
           same_mods(first, &ir->k->insn[item[n].insn[0]]))
        n++;
    return n;
}

static int group_loads(const struct ir *ir, struct item *item, int count, struct arena *a)
{
    int kept = 0;
    struct item *out = arena_array(a, (size_t)count + 1, sizeof *out);
    for (int i = 0; i < count;) {
        int n = 0;
        while (i + n < count && item[i + n].kind == ITEM_CALL &&
               loose_load(&ir->k->insn[item[i + n].insn[0]]))
            n++;
        int stores = n ? 0 : stores_here(ir, item + i, count - i);
        if (stores > 1) {
            int *list = arena_array(a, (size_t)stores, sizeof *list);
            for (int j = 0; j < stores; j++)
                list[j] = item[i + j].insn[0];
            out[kept++] = (struct item){ITEM_STORES, list, stores, false};
            i += stores;
        } else if (n > 1 && !writes_address(ir, item + i, n)) {
            kept += group_run(ir, item + i, n, a, out + kept);
            i += n;
        } else {
            n = n ? n : 1;
            memcpy(out + kept, item + i, (size_t)n * sizeof *out);
            kept += n;
            i += n;
        }
    }
    memcpy(item, out, (size_t)kept * sizeof *item);
    return kept;
}

/* ---- loads from shared memory inside segments ---- */

static bool strip_load(const struct ir *ir, const struct block *bl, const struct insn *in)
{
    if (!plain_load(ir, in) || in->args[0].kind != OPND_REG || in->args[0].reg2 >= 0 ||
        !(insn_shared(in)) || ptx_type_bytes(in->type) != 4)
        return false;
    const struct strip *s = &ir->strip[in->args[1].reg];
    int r = in->args[0].reg;
    return s->is && s->group >= ir->lanes && (s->stride == 0 || s->stride == 4) && ir->local[r] &&
           ir->varying[r] && ptx_type_bytes(ir->k->reg_type[r]) == 4 &&
           ptx_type_bytes(ir->k->reg_type[in->args[1].reg]) == 4 && !block_keeps(bl, r);
}

/* Where only segments read what was loaded, and can do so before anything is written or waited
 * for, they may load it themselves: then what reads it goes before the next such call. */
static void find_strips(struct dep_graph *g, const struct ir *ir, const struct block *bl,
                        const enum item_kind *kind)
{
    int n = bl->count, regs[MAX_INSN_REGS], good = 0, next_call = n;
    int *next = arena_array(g->a, (size_t)n + 1, sizeof *next);
    int *after = arena_array(g->a, (size_t)n + 1, sizeof *after);
    int *owner = arena_array(g->a, (size_t)ir->k->reg_count + 1, sizeof *owner);
    memset(after, 0xff, ((size_t)n + 1) * sizeof *after);
    for (int i = n - 1; i >= 0; i--) {
        next[i] = next_call;
        if (kind[i] == ITEM_CALL && !loose_load(&ir->k->insn[bl->insn[i]]))
            next_call = i;
    }
    for (int i = 0; i < n; i++) {
        bool writes = kind[i] == ITEM_CALL && !loose_load(&ir->k->insn[bl->insn[i]]);
        int at = writes ? i : after[i];
        for (int q = g->first[i]; q >= 0; q = g->edge[q].next)
            after[g->edge[q].to] = at > after[g->edge[q].to] ? at : after[g->edge[q].to];
    }
    for (int i = 0; i < n; i++) {
        const struct insn *in = &ir->k->insn[bl->insn[i]];
        for (int u = insn_uses(in, regs); u-- > 0;) {
            int load = owner[regs[u]] - 1;
            if (load >= 0 && (kind[i] != ITEM_SEGMENT || after[i] >= next[load]))
                ir->strips[bl->insn[load]] = false;
        }
        for (int d = insn_defs(in, regs); d-- > 0;)
            if (owner[regs[d]])
                ir->strips[bl->insn[owner[regs[d]] - 1]] = false;
        if (kind[i] == ITEM_CALL && strip_load(ir, bl, in) && !owner[in->args[0].reg]) {
            owner[in->args[0].reg] = i + 1;
            ir->strips[bl->insn[i]] = true;
        }
    }
    for (int i = 0; i < n; i++)
        good += ir->strips[bl->insn[i]];
    for (int i = 0; i < n; i++) {
        if (good < MIN_STRIPS)
            ir->strips[bl->insn[i]] = false;
        for (int u = insn_uses(&ir->k->insn[bl->insn[i]], regs); u-- > 0;) {
            int load = owner[regs[u]] - 1;
            if (load >= 0 && good >= MIN_STRIPS && ir->strips[bl->insn[load]] && next[load] < n)
                edge_add(g, i, next[load]);
        }
    }
}

/* ---- tiles of multiply-adds ---- */

/* Sums in the order they first appear; -1 for what is not a multiply-add. */
static int number_chains(const struct ir *ir, const struct item *seg, int *chain, struct arena *a)
{
    int *of_reg = arena_array(a, (size_t)ir->k->reg_count + 1, sizeof *of_reg), chains = 0;
    for (int i = 0; i < seg->count; i++) {
        const struct insn *in = &ir->k->insn[seg->insn[i]];
        chain[i] = -1;
        if (in->op != OP_FMA || in->type != PT_F32 || in->pred >= 0 || in->arg_count != 4 ||
            in->args[0].kind != OPND_REG || in->args[3].kind != OPND_REG)
            continue;
        int *from = &of_reg[in->args[3].reg];
        chain[i] = *from ? *from - 1 : chains++;
        of_reg[in->args[0].reg] = chain[i] + 1;
    }
    return chains;
}

/* A segment as several: what comes before the multiply-adds, tiles of them, the rest. */
static int tile_segment(const struct ir *ir, const struct item *seg, struct arena *a,
                        struct item *out)
{
    int n = seg->count, used = 0, fmas = 0, count = 0;
    int *chain = arena_array(a, (size_t)n + 1, sizeof *chain);
    int chains = number_chains(ir, seg, chain, a);
    out[0] = *seg;
    for (int i = 0; i < n; i++)
        fmas += chain[i] >= 0;
    if (fmas < MANY_FMAS || chains <= TILE || fmas < 2 * chains)
        return 1;
    struct dep_graph g;
    graph_init(&g, a, n);
    build(&g, ir, seg->insn, n, NULL);
    int *order = arena_array(a, (size_t)n + 1, sizeof *order);
    int *state = arena_array(a, (size_t)n + 1, sizeof *state);
    int tiles = (chains + TILE - 1) / TILE;
    for (int t = -1; used < n; t++) {
        int before = used;
        for (int i = 0; i < n; i++) {
            if (state[i] || g.waits[i] ||
                (chain[i] >= 0 ? chain[i] / TILE > t : t >= 0 && t < tiles))
                continue;
            order[used++] = seg->insn[i];
            finish(&g, i, state);
        }
        if (used > before)
            out[count++] = (struct item){ITEM_SEGMENT, seg->insn + before, used - before, false};
    }
    memcpy(seg->insn, order, (size_t)n * sizeof *order);
    return count;
}

struct item *schedule_block(const struct ir *ir, int block, struct arena *a, int *count)
{
    const struct block *bl = &ir->block[block];
    int n = bl->count, items = 0, done = 0, start = 0;
    int longest = n > LONG_BLOCK ? SHORT_SEGMENT : MAX_SEGMENT;
    enum item_kind *kind = arena_array(a, (size_t)n + 1, sizeof *kind);
    struct item *item = arena_array(a, (size_t)n + 1, sizeof *item);
    int *state = arena_array(a, (size_t)n + 1, sizeof *state);
    struct dep_graph g;
    graph_init(&g, a, n);
    for (int i = 0; i < n; i++)
        kind[i] = insn_kind(ir, &ir->k->insn[bl->insn[i]]);
    build(&g, ir, bl->insn, n, kind);
    find_strips(&g, ir, bl, kind);
    int *flat = arena_array(a, (size_t)n + 1, sizeof *flat), used = 0;
    while (done < n) {
        while (start < n && state[start])
            start++;
        bool progress = false;
        for (int i = start; i < n; i++) {
            if (state[i] || g.waits[i] || kind[i] == ITEM_SEGMENT)
                continue;
            flat[used] = bl->insn[i];
            item[items++] = (struct item){kind[i], &flat[used++], 1, false};
            finish(&g, i, state);
            done++;
            progress = true;
        }
        if (progress)
            continue;
        struct item seg = {ITEM_SEGMENT, &flat[used], 0, false};
        for (int i = start; i < n && seg.count < longest; i++) {
            if (state[i] || g.waits[i] || kind[i] != ITEM_SEGMENT)
                continue;
            flat[used++] = bl->insn[i];
            seg.count++;
            finish(&g, i, state);
            done++;
        }
        if (!seg.count)
            BUG("block %d cannot be ordered", block);
        items += tile_segment(ir, &seg, a, item + items);
    }
    *count = group_loads(ir, item, items, a);
    return item;
}
