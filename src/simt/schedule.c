/*
 * schedule.c - a list scheduler over one block's dependences.
 *
 * Hides: the dependence edges (read after write, write after read, write
 * after write, calls in order).
 */
#include "simt/schedule.h"

#include "simt/emit.h"

#include <string.h>

enum { MAX_REGS = 160, MAX_SEGMENT = 800 };

struct edge {
    int to, next;
};

struct graph {
    struct arena *a;
    struct edge *edge;
    int edges, cap;
    int *first, *waits;
};

enum item_kind insn_kind(const struct ir *ir, const struct insn *in)
{
    if (emit_is_call(in))
        return ITEM_CALL;
    int regs[MAX_REGS], n = insn_defs(in, regs, MAX_REGS);
    for (int i = 0; i < n; i++)
        if (ir->varying[regs[i]])
            return ITEM_SEGMENT;
    return ITEM_SCALAR;
}

static void edge_add(struct graph *g, int from, int to)
{
    if (from < 0 || from == to)
        return;
    GROW(g->a, g->edge, g->edges, g->cap);
    g->edge[g->edges] = (struct edge){to, g->first[from]};
    g->first[from] = g->edges++;
    g->waits[to]++;
}

/* Readers of a register since it was last written, as a chain. */
struct reader {
    int at, next;
};

static void build(struct graph *g, const struct ir *ir, const struct block *bl,
                  const enum item_kind *kind)
{
    int regs[MAX_REGS], last_call = -1, cap = 0, readers = 0;
    int nr = ir->k->reg_count;
    int *writer = arena_array(g->a, (size_t)nr + 1, sizeof *writer);
    int *chain = arena_array(g->a, (size_t)nr + 1, sizeof *chain);
    struct reader *reader = NULL;
    memset(writer, 0xff, ((size_t)nr + 1) * sizeof *writer);
    memset(chain, 0xff, ((size_t)nr + 1) * sizeof *chain);
    for (int i = 0; i < bl->count; i++) {
        const struct insn *in = &ir->k->insn[bl->insn[i]];
        int n = insn_uses(in, regs, MAX_REGS);
        int d[MAX_REGS], nd = insn_defs(in, d, MAX_REGS);
        for (int j = 0; j < n; j++)
            edge_add(g, writer[regs[j]], i);
        for (int j = 0; j < nd; j++) {
            edge_add(g, writer[d[j]], i);
            for (int q = chain[d[j]]; q >= 0; q = reader[q].next)
                edge_add(g, reader[q].at, i);
        }
        for (int j = 0; j < n; j++) {
            GROW(g->a, reader, readers, cap);
            reader[readers] = (struct reader){i, chain[regs[j]]};
            chain[regs[j]] = readers++;
        }
        for (int j = 0; j < nd; j++) {
            writer[d[j]] = i;
            chain[d[j]] = -1;
        }
        if (kind[i] == ITEM_CALL) {
            edge_add(g, last_call, i);
            last_call = i;
        }
    }
}

static void finish(struct graph *g, int i, int *state)
{
    state[i] = 2;
    for (int q = g->first[i]; q >= 0; q = g->edge[q].next)
        g->waits[g->edge[q].to]--;
}

struct item *schedule_block(const struct ir *ir, int block, struct arena *a, int *count)
{
    const struct block *bl = &ir->block[block];
    int n = bl->count, items = 0, done = 0, start = 0;
    enum item_kind *kind = arena_array(a, (size_t)n + 1, sizeof *kind);
    struct item *item = arena_array(a, (size_t)n + 1, sizeof *item);
    int *state = arena_array(a, (size_t)n + 1, sizeof *state);
    struct graph g = {.a = a};
    g.first = arena_array(a, (size_t)n + 1, sizeof *g.first);
    g.waits = arena_array(a, (size_t)n + 1, sizeof *g.waits);
    memset(g.first, 0xff, ((size_t)n + 1) * sizeof *g.first);
    for (int i = 0; i < n; i++)
        kind[i] = insn_kind(ir, &ir->k->insn[bl->insn[i]]);
    build(&g, ir, bl, kind);
    int *flat = arena_array(a, (size_t)n + 1, sizeof *flat), used = 0;
    while (done < n) {
        while (start < n && state[start])
            start++;
        bool progress = false;
        for (int i = start; i < n; i++) {
            if (state[i] || g.waits[i] || kind[i] == ITEM_SEGMENT)
                continue;
            flat[used] = bl->insn[i];
            item[items++] = (struct item){kind[i], &flat[used++], 1};
            finish(&g, i, state);
            done++;
            progress = true;
        }
        if (progress)
            continue;
        struct item seg = {ITEM_SEGMENT, &flat[used], 0};
        for (int i = start; i < n && seg.count < MAX_SEGMENT; i++) {
            if (state[i] || g.waits[i] || kind[i] != ITEM_SEGMENT)
                continue;
            flat[used++] = bl->insn[i];
            seg.count++;
            finish(&g, i, state);
            done++;
        }
        item[items++] = seg;
        if (!seg.count)
            BUG("block %d cannot be ordered", block);
    }
    *count = items;
    return item;
}
