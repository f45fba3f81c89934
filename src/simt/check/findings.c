/* SPDX-License-Identifier: Apache-2.0 */
/*
 * findings.c - collect findings, one per cause and bounded in number.
 *
 * A cause is a kind and a line of the user's. Repetitions only increment a counter, so a kernel
 * that is wrong everywhere still runs to its end.
 */
#include "simt/device/device.h"

#include <stdio.h>
#include <string.h>

enum { MAX_PATH = 16 };

static const char *const names[SIMT_FINDING_KINDS] = {
    [SIMT_OUT_OF_BOUNDS] = "out_of_bounds",
    [SIMT_MISALIGNED] = "misaligned",
    [SIMT_WRITE_TO_INPUT] = "write_to_input",
    [SIMT_UNINITIALISED] = "uninitialised",
    [SIMT_RACE_SHARED] = "race_shared",
    [SIMT_RACE_GLOBAL] = "race_global",
    [SIMT_ASYNC_NOT_WAITED] = "async_not_waited",
    [SIMT_ASYNC_OVERWRITE] = "async_overwrite",
    [SIMT_DIVERGENT_BARRIER] = "divergent_barrier",
    [SIMT_DIVERGENT_COLLECTIVE] = "divergent_collective",
    [SIMT_DEADLOCK] = "deadlock",
    [SIMT_TIMEOUT] = "timeout",
    [SIMT_TRAP] = "trap",
    [SIMT_ASSERTION] = "failed_assertion",
    [SIMT_MBARRIER] = "mbarrier",
    [SIMT_PROXY] = "missing_proxy_fence",
    [SIMT_TENSOR_MAP] = "tensor_map",
    [SIMT_CLUSTER] = "cluster",
    [SIMT_WGMMA] = "wgmma_not_waited",
    [SIMT_WGMMA_FENCE] = "missing_wgmma_fence",
    [SIMT_TENSOR_MEMORY] = "tensor_memory",
    [SIMT_TENSOR_FENCE] = "missing_tcgen05_fence",
    [SIMT_SHUFFLE] = "shuffle_outside_mask",
    [SIMT_MISSING_FENCE] = "missing_fence",
    [SIMT_SAME_VALUE] = "same_value_store",
    [SIMT_BARRIER_EXIT] = "barrier_after_exit",
    [SIMT_PROXY_READ] = "read_before_copy",
    [SIMT_COPY_EXIT] = "copy_after_exit",
};

const char *simt_finding_name(enum simt_finding_kind kind)
{
    return kind < SIMT_FINDING_KINDS ? names[kind] : "unknown";
}

bool simt_finding_warns(enum simt_finding_kind kind)
{
    return kind == SIMT_SAME_VALUE || kind == SIMT_BARRIER_EXIT || kind == SIMT_PROXY_READ ||
           kind == SIMT_COPY_EXIT;
}

const char *simt_outcome_name(enum simt_outcome outcome)
{
    static const char *const text[] = {"ok", "fault", "hang", "bad_launch"};
    return text[outcome];
}

const char *simt_class_name(int cls)
{
    static const char *const text[SW_C_COUNT] = {
        "fp32_fma", "fp32_add",  "fp32_mul",  "fp64",      "half",      "int",    "sfu",
        "cvt",      "ld_global", "st_global", "ld_shared", "st_shared", "atomic", "tensor",
        "barrier",  "branch",    "other",     "shuffle",   "division"};
    return cls >= 0 && cls < SW_C_COUNT ? text[cls] : "unknown";
}

const char *simt_tensor_name(enum simt_tensor_type type)
{
    static const char *const text[SIMT_TENSOR_TYPES] = {"f16", "bf16", "tf32", "f8",
                                                        "f4",  "int",  "f64"};
    return text[type];
}

/* Places of a site, innermost first, as indices into locs. *mine: how many up to the user's line,
 * which is the innermost one of the file the kernel stands in; the rest called it. */
static size_t place_chain(const struct launch *l, uint32_t site, int chain[MAX_PATH], size_t *mine)
{
    const struct sw_kernel *k = l->k;
    int at = site < k->site_count ? k->sites[site].loc : -1;
    size_t n = 0;
    for (; at >= 0 && (u32)at < k->loc_count && n < MAX_PATH; at = k->locs[at].inlined_at)
        chain[n++] = at;
    *mine = n;
    for (size_t i = 0; i < n && *mine == n; i++)
        if (k->locs[chain[i]].file == k->locs[chain[n - 1]].file)
            *mine = i + 1;
    return n;
}

static struct simt_place place_of(struct launch *l, int loc)
{
    int file = l->k->locs[loc].file;
    bool known = file >= 0 && (u32)file < l->mod->file_count && l->mod->files[file];
    return (struct simt_place){known ? arena_strdup(l->a, l->mod->files[file]) : "?",
                               l->k->locs[loc].line};
}

static void fill_path(struct launch *l, struct simt_finding *f, uint32_t site)
{
    int chain[MAX_PATH];
    size_t mine, n = place_chain(l, site, chain, &mine);
    struct simt_place *path = arena_array(l->a, n + 1, sizeof *path);
    for (size_t i = 0; i < mine; i++)
        path[i] = place_of(l, chain[mine - 1 - i]);
    for (size_t i = mine; i < n; i++)
        path[i] = place_of(l, chain[i]);
    f->path = path;
    f->path_len = mine;
    f->callers = path + mine;
    f->caller_count = n - mine;
}

static void fill_side(struct launch *l, struct simt_side *s, const struct warp *w, uint32_t lane,
                      uint32_t site)
{
    int chain[MAX_PATH];
    size_t mine;
    lane &= 31;
    for (int i = 0; i < 3; i++) {
        s->block[i] = w->blk->b.ctaid[i];
        s->thread[i] = w->w.tid[i][lane];
    }
    if (place_chain(l, site, chain, &mine))
        s->at = place_of(l, chain[mine - 1]);
    s->ptx_line = site < l->k->site_count ? l->k->sites[site].line : 0;
    s->op = site < l->k->site_count && l->k->sites[site].op
                ? arena_strdup(l->a, l->k->sites[site].op)
                : "?";
}

/* The finding of this cause; *key: a new one of it. */
static struct finding_slot *same_cause(const struct launch *l, enum simt_finding_kind kind,
                                       uint32_t site, struct finding_slot *key)
{
    int chain[MAX_PATH];
    size_t mine;
    *key = (struct finding_slot){.file = -1, .f.kind = kind};
    if (place_chain(l, site, chain, &mine)) {
        key->file = l->k->locs[chain[mine - 1]].file;
        key->line = l->k->locs[chain[mine - 1]].line;
    } else if (site < l->k->site_count) {
        key->line = l->k->sites[site].line;
    }
    for (size_t i = 0; i < l->slots; i++)
        if (l->slot[i].f.kind == kind && l->slot[i].file == key->file &&
            l->slot[i].line == key->line)
            return &l->slot[i];
    return NULL;
}

/* "k.cu:12 (called from k.cu:40, k.cu:51)" */
static const char *place_text(struct launch *l, const struct simt_finding *f)
{
    const char *text = f->path_len ? arena_printf(l->a, "%s:%d", f->path[0].file, f->path[0].line)
                                   : arena_printf(l->a, "PTX line %d", f->here.ptx_line);
    for (size_t i = 0; i < f->caller_count; i++)
        text = arena_printf(l->a, "%s%s%s:%d", text, i ? ", " : " (called from ",
                            f->callers[i].file, f->callers[i].line);
    return f->caller_count ? arena_printf(l->a, "%s)", text) : text;
}

static void fill_text(struct launch *l, struct simt_finding *f)
{
    const struct simt_side *h = &f->here, *o = &f->other;
    f->text = arena_printf(l->a, "%s: %s in block (%u,%u,%u) thread (%u,%u,%u): %s",
                           place_text(l, f), l->k->name, h->block[0], h->block[1], h->block[2],
                           h->thread[0], h->thread[1], h->thread[2], f->what);
    if (o->op)
        f->text =
            arena_printf(l->a, "%s; the other is thread (%u,%u,%u) at %s:%d", f->text, o->thread[0],
                         o->thread[1], o->thread[2], o->at.file ? o->at.file : "PTX",
                         o->at.file ? o->at.line : o->ptx_line);
}

static void fill_near(struct launch *l, struct simt_finding *f, const struct alloc *near)
{
    if (!near)
        return;
    f->allocation = arena_strdup(l->a, near->name);
    f->overrun = f->address >= near->hi  ? (int64_t)(f->address - near->hi) + 1
                 : f->address < near->lo ? -(int64_t)(near->lo - f->address)
                                         : 0;
}

void finding_add(const struct finding_where *at, enum simt_finding_kind kind, uint64_t address,
                 const struct alloc *near, int other_warp, int other_lane, int other_site,
                 const char *fmt, ...)
{
    struct worker *t = at->w->t;
    struct launch *l = t->l;
    struct finding_slot *told = at->site < l->k->site_count ? t->told[at->site] : NULL;
    if (told && told->f.kind == kind) {
        __atomic_fetch_add(&told->f.times, 1, __ATOMIC_RELAXED);
        return;
    }
    pthread_mutex_lock(&l->dev->lock);
    struct finding_slot key, *s = same_cause(l, kind, at->site, &key);
    if (s) {
        __atomic_fetch_add(&s->f.times, 1, __ATOMIC_RELAXED);
    } else if (l->slots == l->max_slots) {
        l->dropped++;
    } else {
        struct simt_finding *f = &key.f;
        f->kernel = arena_strdup(l->a, l->k->name);
        f->address = address;
        f->times = 1;
        fill_path(l, f, at->site);
        fill_side(l, &f->here, at->w, at->lane, at->site);
        if (other_warp >= 0 && (uint32_t)other_warp < l->nwarps)
            fill_side(l, &f->other, &at->w->blk->warp[other_warp], (uint32_t)other_lane,
                      (uint32_t)other_site);
        fill_near(l, f, near);
        va_list ap;
        va_start(ap, fmt);
        f->what = arena_vprintf(l->a, fmt, ap);
        va_end(ap);
        fill_text(l, f);
        s = &l->slot[l->slots++];
        *s = key;
    }
    if (s && at->site < l->k->site_count)
        t->told[at->site] = s;
    pthread_mutex_unlock(&l->dev->lock);
}

/* ---- JSON ---- */

static json_t *triple(const uint32_t v[3])
{
    return json_pack("[i,i,i]", (int)v[0], (int)v[1], (int)v[2]);
}

static json_t *side_json(const struct simt_side *s)
{
    json_t *j =
        json_pack("{s:o, s:o, s:i, s:s}", "block", triple(s->block), "thread", triple(s->thread),
                  "ptx_line", s->ptx_line, "instruction", s->op ? s->op : "");
    if (s->at.file) {
        json_object_set_new(j, "file", json_string(s->at.file));
        json_object_set_new(j, "line", json_integer(s->at.line));
    }
    return j;
}

json_t *simt_finding_json(const struct simt_finding *f)
{
    json_t *j = json_object(), *path = json_array();
    json_object_set_new(j, "kind", json_string(simt_finding_name(f->kind)));
    json_object_set_new(j, "kernel", json_string(f->kernel));
    json_object_set_new(j, "text", json_string(f->text));
    if (f->path_len) {
        json_object_set_new(j, "file", json_string(f->path[0].file));
        json_object_set_new(j, "line", json_integer(f->path[0].line));
    }
    for (size_t i = 0; i < f->path_len; i++)
        json_array_append_new(
            path, json_pack("{s:s, s:i}", "file", f->path[i].file, "line", f->path[i].line));
    json_object_set_new(j, "path", path);
    json_t *callers = json_array();
    for (size_t i = 0; i < f->caller_count; i++)
        json_array_append_new(callers, json_pack("{s:s, s:i}", "file", f->callers[i].file, "line",
                                                 f->callers[i].line));
    json_object_set_new(j, "callers", callers);
    json_object_set_new(j, "warning", json_boolean(simt_finding_warns(f->kind)));
    json_object_set_new(j, "here", side_json(&f->here));
    if (f->other.op)
        json_object_set_new(j, "other", side_json(&f->other));
    json_object_set_new(j, "address", json_integer((json_int_t)f->address));
    if (f->allocation) {
        json_object_set_new(j, "allocation", json_string(f->allocation));
        json_object_set_new(j, "overrun", json_integer(f->overrun));
    }
    json_object_set_new(j, "times", json_integer((json_int_t)f->times));
    return j;
}

json_t *simt_tensor_json(const uint64_t *flops)
{
    json_t *v = json_object();
    for (int i = 0; i < SIMT_TENSOR_TYPES; i++)
        if (flops[i])
            json_object_set_new(v, simt_tensor_name((enum simt_tensor_type)i),
                                json_integer((json_int_t)flops[i]));
    return v;
}

static const struct counter_row {
    const char *name;
    size_t at;
} counter_rows[] = {
#define ROW(x)                                                                                     \
    {                                                                                              \
#x, offsetof(struct simt_counters, x)                                                      \
    }
    ROW(warp_instructions),
    ROW(fp32_flops),
    ROW(tensor_flops),
    ROW(wgmma_flops),
    ROW(global_load_requests),
    ROW(global_load_sectors),
    ROW(global_load_bytes),
    ROW(global_store_requests),
    ROW(global_store_sectors),
    ROW(global_store_bytes),
    ROW(shared_requests),
    ROW(shared_wavefronts),
    ROW(shared_conflicts),
    ROW(global_load_lines),
    ROW(global_store_lines),
    ROW(barriers),
    ROW(atomics),
    ROW(blocks),
    ROW(launches),
    ROW(cluster_requests),
    ROW(bulk_requests),
    ROW(bulk_bytes),
    ROW(thread_instructions),
    ROW(global_load_batches),
    ROW(shared_load_batches),
    ROW(atomic_conflicts),
    ROW(global_atomics),
    ROW(global_atomic_requests),
    ROW(global_atomic_sectors),
    ROW(global_atomic_lines),
    ROW(global_atomic_conflicts),
    ROW(atomic_span),
    ROW(async_copies),
    ROW(async_bytes),
    ROW(async_waits),
    ROW(async_left),
    ROW(block_load_sectors),
    ROW(block_store_sectors),
    ROW(block_load_chunks),
    ROW(block_store_chunks),
    ROW(far_load_sectors),
#undef ROW
};

json_t *simt_counters_json(const struct simt_counters *c)
{
    json_t *j = json_object(), *classes = json_object(), *threads = json_object();
    for (size_t i = 0; i < ARRAY_LEN(counter_rows); i++) {
        uint64_t v;
        memcpy(&v, (const char *)c + counter_rows[i].at, sizeof v);
        json_object_set_new(j, counter_rows[i].name, json_integer((json_int_t)v));
    }
    for (int i = 0; i < SW_C_COUNT; i++) {
        json_object_set_new(classes, simt_class_name(i), json_integer((json_int_t)c->by_class[i]));
        json_object_set_new(threads, simt_class_name(i),
                            json_integer((json_int_t)c->threads_by_class[i]));
    }
    json_object_set_new(j, "thread_instructions_by_class", threads);
    json_object_set_new(j, "warp_instructions_by_class", classes);
    json_t *buffers = json_array();
    for (int i = 0; i < SIMT_BUFFERS; i++)
        if (c->buffer_sectors[i])
            json_array_append_new(buffers, json_pack("[I, I]", (json_int_t)c->buffer_bytes[i],
                                                     (json_int_t)c->buffer_sectors[i]));
    json_object_set_new(j, "buffers", buffers);
    json_object_set_new(j, "tensor_flops_by_type", simt_tensor_json(c->tensor_flops_of));
    return j;
}
