/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line_profile.c - counters by source line.
 *
 * Instructions are known per basic block: how often each ran, times what it
 * holds of each line (sw_form.lines). Traffic is known per instruction: during a profile the
 * device's table has these wrappers around the functions that access memory; they measure what each
 * call adds to the counters. Without a profile none of this runs.
 */
#include "simt/hopper/hopper.h"

#include "simt/device/tensor_core.h"

#include <stdlib.h>
#include <string.h>

/* ---- around what touches memory ---- */

struct before {
    uint64_t sectors, requests, waves, conflicts;
};

static struct before look(const struct simt_counters *n)
{
    return (struct before){n->global_load_sectors + n->global_store_sectors,
                           n->global_load_requests + n->global_store_requests, n->shared_wavefronts,
                           n->shared_conflicts};
}

static void add(struct sw_warp *sw, u32 site, struct before b)
{
    struct warp *w = warp_of(sw);
    struct before now = look(&w->t->n);
    struct site_use *u = &w->t->use[site];
    u->sectors += now.sectors - b.sectors;
    u->requests += now.requests - b.requests;
    u->waves += now.waves - b.waves;
    u->conflicts += now.conflicts - b.conflicts;
}

#define AROUND(call)                                                                               \
    do {                                                                                           \
        struct before b_ = look(&warp_of(sw)->t->n);                                               \
        call;                                                                                      \
        add(sw, site, b_);                                                                         \
    } while (0)

/* Likewise for two counters of the instruction's own. */
#define AROUND_TWO(first, second, call)                                                            \
    do {                                                                                           \
        struct worker *t_ = warp_of(sw)->t;                                                        \
        uint64_t x_ = t_->n.first, y_ = t_->n.second;                                              \
        call;                                                                                      \
        t_->use[site].runs += t_->n.first - x_;                                                    \
        t_->use[site].extra += t_->n.second - y_;                                                  \
    } while (0)

static void p_ld(struct sw_warp *sw, u32 m, u32 site)
{
    AROUND(dev_ld(sw, m, site));
}

static void p_st(struct sw_warp *sw, u32 m, u32 site)
{
    AROUND(dev_st(sw, m, site));
}

/* Every access must be counted, so none may be done without a call. */
static u8 *p_quads(struct sw_warp *sw, u32 m, u32 site, u32 write)
{
    (void)sw;
    (void)m;
    (void)site;
    (void)write;
    return NULL;
}

static void p_lds(struct sw_warp *sw, u32 m, u32 site, u32 n, s64 lo, s64 hi)
{
    AROUND(dev_lds(sw, m, site, n, lo, hi));
}

static void p_lda(struct sw_warp *sw, u32 m, u64 base, u32 wrapped, u32 site)
{
    AROUND(dev_lda(sw, m, base, wrapped, site));
}

static void p_sta(struct sw_warp *sw, u32 m, u64 base, u32 wrapped, u32 site)
{
    AROUND(dev_sta(sw, m, base, wrapped, site));
}

static u64 p_ldu(struct sw_warp *sw, u32 m, u64 addr, u32 site)
{
    u64 x;
    AROUND(x = dev_ldu(sw, m, addr, site));
    return x;
}

static void p_ldun(struct sw_warp *sw, u32 m, u64 addr, u32 site, u64 *out)
{
    AROUND(dev_ldun(sw, m, addr, site, out));
}

static void p_atom(struct sw_warp *sw, u32 m, const void *addr, u32 site, void *dst, const void *b,
                   const void *c)
{
    AROUND(AROUND_TWO(atomics, atomic_conflicts, dev_atom(sw, m, addr, site, dst, b, c)));
}

static void p_cp_async(struct sw_warp *sw, u32 m, const void *dst, const u64 *src, const u32 *bytes,
                       u32 site)
{
    AROUND(AROUND_TWO(async_copies, launches, dev_cp_async(sw, m, dst, src, bytes, site)));
}

static void p_bulk(struct sw_warp *sw, u32 m, u32 site, const struct sw_bulk *x)
{
    AROUND_TWO(async_copies, launches, dev_bulk(sw, m, site, x));
}

static void p_cp_wait(struct sw_warp *sw, u32 left, u32 site)
{
    AROUND_TWO(async_waits, async_left, dev_cp_wait(sw, left, site));
}

static void p_bulk_group(struct sw_warp *sw, u32 m, u32 kind, u32 left, u32 site)
{
    AROUND_TWO(async_waits, async_left, dev_bulk_group(sw, m, kind, left, site));
}

static u32 p_mbar(struct sw_warp *sw, u32 m, const u64 *addr, u32 site, u64 *state,
                  const u32 *count)
{
    u32 x;
    AROUND_TWO(async_waits, async_left, x = dev_mbar(sw, m, addr, site, state, count));
    return x;
}

static void p_mma(struct sw_warp *sw, u32 site)
{
    warp_of(sw)->t->use[site].runs++;
    dev_mma(sw, site);
}

static void p_wgmma(struct sw_warp *sw, u32 m, u32 site, void *const *d, const void *const *a,
                    u64 adesc, u64 bdesc, u32 scale_d)
{
    warp_of(sw)->t->use[site].runs++;
    dev_wgmma(sw, m, site, d, a, adesc, bdesc, scale_d);
}

static void p_ldmatrix(struct sw_warp *sw, u32 m, u32 site)
{
    AROUND(dev_ldmatrix(sw, m, site));
}

static void p_stmatrix(struct sw_warp *sw, u32 m, u32 site)
{
    AROUND(dev_stmatrix(sw, m, site));
}

void profile_table(struct sw_ops *ops)
{
    ops->ld = p_ld;
    ops->st = p_st;
    ops->lds = p_lds;
    ops->lda = p_lda;
    ops->sta = p_sta;
    ops->quads = p_quads;
    ops->ldu = p_ldu;
    ops->ldun = p_ldun;
    ops->atom = p_atom;
    ops->cp_async = p_cp_async;
    ops->cp_wait = p_cp_wait;
    ops->bulk = p_bulk;
    ops->bulk_group = p_bulk_group;
    ops->mbar = p_mbar;
    ops->mma = p_mma;
    ops->wgmma = p_wgmma;
    ops->ldmatrix = p_ldmatrix;
    ops->stmatrix = p_stmatrix;
}

/* ---- by line ---- */

struct tally {
    struct simt_line *line;
    size_t count, cap;
    struct launch *l;
};

/* The user's line of a place: the innermost one in the kernel's own file. */
static bool user_line(const struct launch *l, s32 loc, const char **file, int *line)
{
    const struct sw_kernel *k = l->k;
    s32 outer = loc;
    if (loc < 0 || (u32)loc >= k->loc_count)
        return false;
    while (k->locs[outer].inlined_at >= 0 && (u32)k->locs[outer].inlined_at < k->loc_count)
        outer = k->locs[outer].inlined_at;
    while (loc != outer && k->locs[loc].file != k->locs[outer].file)
        loc = k->locs[loc].inlined_at;
    s32 f = k->locs[loc].file;
    *file = f >= 0 && (u32)f < l->mod->file_count ? l->mod->files[f] : "?";
    *line = k->locs[loc].line;
    return true;
}

static struct simt_line *line_of(struct tally *t, s32 loc)
{
    const char *file;
    int line;
    if (!user_line(t->l, loc, &file, &line))
        file = "?", line = 0;
    for (size_t i = 0; i < t->count; i++)
        if (t->line[i].at.line == line && strcmp(t->line[i].at.file, file) == 0)
            return &t->line[i];
    if (t->count == t->cap) {
        t->cap = t->cap ? t->cap * 2 : 64;
        t->line = xrealloc(t->line, t->cap * sizeof *t->line);
    }
    t->line[t->count] = (struct simt_line){.at = {file, line}};
    return &t->line[t->count++];
}

static int heavier(const void *x, const void *y)
{
    const struct simt_line *a = x, *b = y;
    uint64_t wa = a->instructions + 4 * (a->sectors + a->shared_wavefronts),
             wb = b->instructions + 4 * (b->sectors + b->shared_wavefronts);
    return wa < wb ? 1 : wa > wb ? -1 : a->at.line - b->at.line;
}

/* What an instruction's two own counters were about. */
static void add_own(struct simt_line *q, const struct sw_site *s, const struct site_use *u)
{
    uint64_t flops;
    switch (s->role & SW_R_BITS) {
    case SW_R_MMA: {
        enum simt_tensor_type type = u->runs ? mma_type(s->kind, &flops) : SIMT_TENSOR_F16;
        q->tensor_flops[type] += u->runs ? u->runs * flops : 0;
        break;
    }
    case SW_R_WGMMA: {
        enum simt_tensor_type type = wgmma_type(s->kind, &flops);
        q->tensor_flops[type] += u->runs * flops;
        break;
    }
    case SW_R_ATOMIC:
        q->atomics += u->runs;
        q->atomic_conflicts += u->extra;
        break;
    case SW_R_WAIT:
        q->async_waits += u->runs;
        q->async_left += u->extra;
        break;
    default:
        q->async_copies += u->runs;
        break;
    }
}

void profile_lines(struct launch *l, struct arena *a, struct simt_result *out)
{
    const struct sw_form *f = l->form;
    struct tally t = {.l = l};
    double scale = (double)l->blocks / (double)l->sample;
    for (int w = 0; w < l->worker_count; w++) {
        const struct worker *x = &l->workers[w];
        for (u32 i = 0; i < f->line_count; i++) {
            const struct sw_line *e = &f->lines[i];
            uint64_t runs = x->counts[2 * e->block], lanes = x->counts[2 * e->block + 1];
            struct simt_line *q = line_of(&t, e->loc);
            q->instructions += runs * e->count;
            q->lanes += lanes * e->count;
            q->by_class[e->cls] += runs * e->count;
        }
        for (u32 s = 0; x->use && s < l->k->site_count; s++) {
            const struct site_use *u = &x->use[s];
            if (!u->requests && !u->waves && !u->runs)
                continue;
            struct simt_line *q = line_of(&t, l->k->sites[s].loc);
            add_own(q, &l->k->sites[s], u);
            q->requests += u->requests;
            q->sectors += u->sectors;
            q->shared_wavefronts += u->waves;
            q->shared_conflicts += u->conflicts;
        }
    }
    struct simt_line *all = arena_array(a, t.count + 1, sizeof *all);
    for (size_t i = 0; i < t.count; i++) {
        all[i] = t.line[i];
        all[i].at.file = arena_strdup(a, all[i].at.file);
        uint64_t *v = &all[i].instructions;
        for (size_t k = 0; scale > 1 && k < SIMT_LINE_COUNTS; k++)
            v[k] = (uint64_t)((double)v[k] * scale);
    }
    qsort(all, t.count, sizeof *all, heavier);
    out->lines = all;
    out->line_count = t.count;
    xfree(t.line);
}

static void put_some(json_t *v, const char *key, uint64_t n)
{
    if (n)
        json_object_set_new(v, key, json_integer((json_int_t)n));
}

json_t *simt_lines_json(const struct simt_result *r)
{
    json_t *list = json_array();
    for (size_t i = 0; i < r->line_count; i++) {
        const struct simt_line *q = &r->lines[i];
        json_t *classes = json_object();
        for (int c = 0; c < SW_C_COUNT; c++)
            if (q->by_class[c])
                json_object_set_new(classes, simt_class_name(c),
                                    json_integer((json_int_t)q->by_class[c]));
        json_t *v = json_pack("{s:s, s:i, s:I, s:I, s:I, s:I, s:I, s:I}", "file", q->at.file,
                              "line", q->at.line, "instructions", (json_int_t)q->instructions,
                              "thread_instructions", (json_int_t)q->lanes, "requests",
                              (json_int_t)q->requests, "sectors", (json_int_t)q->sectors,
                              "shared_wavefronts", (json_int_t)q->shared_wavefronts,
                              "shared_conflicts", (json_int_t)q->shared_conflicts);
        put_some(v, "atomics", q->atomics);
        put_some(v, "atomic_conflicts", q->atomic_conflicts);
        put_some(v, "async_copies", q->async_copies);
        put_some(v, "async_waits", q->async_waits);
        put_some(v, "async_left", q->async_left);
        json_object_set_new(v, "by_class", classes);
        json_object_set_new(v, "tensor_flops_by_type", simt_tensor_json(q->tensor_flops));
        json_array_append_new(list, v);
    }
    return list;
}
