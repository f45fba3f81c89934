/* SPDX-License-Identifier: Apache-2.0 */
/*
 * findings.c - what the checker saw, once per place and bounded in number.
 */
#include "simt/device/device.h"

#include <stdio.h>
#include <string.h>

/* Reports of one place, and places without room, before the kernel is stopped. */
enum { MAX_TIMES = 100000, MAX_DROPPED = 10000 };

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
    [SIMT_MBARRIER] = "mbarrier",
    [SIMT_PROXY] = "missing_proxy_fence",
    [SIMT_TENSOR_MAP] = "tensor_map",
    [SIMT_CLUSTER] = "cluster",
    [SIMT_WGMMA] = "wgmma_not_waited",
};

const char *simt_finding_name(enum simt_finding_kind kind)
{
    return kind < SIMT_FINDING_KINDS ? names[kind] : "unknown";
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
    static const char *const text[SIMT_TENSOR_TYPES] = {"f16", "bf16", "tf32", "f8", "int", "f64"};
    return text[type];
}

/* The chain of a site: the user's line, and from there into headers. The user's is
 * the innermost one of the file the kernel stands in; its callers are left out. */
static size_t place_path(struct launch *l, uint32_t site, const struct simt_place **out)
{
    const struct sw_kernel *k = l->k;
    struct simt_place chain[16];
    size_t n = 0;
    int at = site < k->site_count ? k->sites[site].loc : -1;
    while (at >= 0 && (u32)at < k->loc_count && n < ARRAY_LEN(chain)) {
        int file = k->locs[at].file;
        chain[n++] = (struct simt_place){
            file >= 0 && (u32)file < l->mod->file_count && l->mod->files[file] ? l->mod->files[file]
                                                                               : "?",
            k->locs[at].line};
        at = k->locs[at].inlined_at;
    }
    size_t mine = n;
    for (size_t i = 0; i < n && mine == n; i++)
        if (strcmp(chain[i].file, chain[n - 1].file) == 0)
            mine = i + 1;
    struct simt_place *path = arena_array(l->a, mine + 1, sizeof *path);
    for (size_t i = 0; i < mine; i++)
        path[i] = (struct simt_place){arena_strdup(l->a, chain[mine - 1 - i].file),
                                      chain[mine - 1 - i].line};
    *out = path;
    return mine;
}

static void fill_side(struct launch *l, struct simt_side *s, const struct warp *w, uint32_t lane,
                      uint32_t site)
{
    const struct simt_place *path;
    size_t n = place_path(l, site, &path);
    lane &= 31;
    for (int i = 0; i < 3; i++) {
        s->block[i] = w->blk->b.ctaid[i];
        s->thread[i] = w->w.tid[i][lane];
    }
    if (n)
        s->at = path[0];
    s->ptx_line = site < l->k->site_count ? l->k->sites[site].line : 0;
    s->op = site < l->k->site_count && l->k->sites[site].op
                ? arena_strdup(l->a, l->k->sites[site].op)
                : "?";
}

static struct finding_slot *same_place(struct launch *l, enum simt_finding_kind kind, uint32_t site,
                                       uint32_t other)
{
    for (size_t i = 0; i < l->slots; i++)
        if (l->slot[i].f.kind == kind && l->slot[i].site == site && l->slot[i].other_site == other)
            return &l->slot[i];
    return NULL;
}

bool finding_add(const struct finding_where *at, enum simt_finding_kind kind, uint64_t address,
                 const struct alloc *near, int other_warp, int other_lane, int other_site,
                 const char *fmt, ...)
{
    struct launch *l = at->w->t->l;
    pthread_mutex_lock(&l->dev->lock);
    struct finding_slot *s = same_place(l, kind, at->site, (uint32_t)other_site);
    bool go = true;
    if (s) {
        s->f.times++;
        /* A broken kernel would otherwise report for ever. */
        go = s->f.times < MAX_TIMES;
    } else if (l->slots == l->max_slots) {
        l->dropped++;
        go = l->dropped < MAX_DROPPED;
    } else {
        s = &l->slot[l->slots++];
        *s = (struct finding_slot){.site = at->site, .other_site = (uint32_t)other_site};
        struct simt_finding *f = &s->f;
        *f = (struct simt_finding){
            .kind = kind, .kernel = arena_strdup(l->a, l->k->name), .address = address, .times = 1};
        f->path_len = place_path(l, at->site, &f->path);
        fill_side(l, &f->here, at->w, at->lane, at->site);
        if (other_warp >= 0 && (uint32_t)other_warp < l->nwarps)
            fill_side(l, &f->other, &at->w->blk->warp[other_warp], (uint32_t)other_lane,
                      (uint32_t)other_site);
        if (near) {
            f->allocation = arena_strdup(l->a, near->name);
            f->overrun = address >= near->hi  ? (int64_t)(address - near->hi) + 1
                         : address < near->lo ? -(int64_t)(near->lo - address)
                                              : 0;
        }
        va_list ap;
        va_start(ap, fmt);
        f->what = arena_vprintf(l->a, fmt, ap);
        va_end(ap);
        const struct simt_side *h = &f->here;
        const char *place = f->path_len
                                ? arena_printf(l->a, "%s:%d", f->path[0].file, f->path[0].line)
                                : arena_printf(l->a, "PTX line %d", h->ptx_line);
        f->text = arena_printf(l->a, "%s: %s in block (%u,%u,%u) thread (%u,%u,%u): %s", place,
                               l->k->name, h->block[0], h->block[1], h->block[2], h->thread[0],
                               h->thread[1], h->thread[2], f->what);
        if (f->other.op)
            f->text = arena_printf(l->a, "%s; the other is thread (%u,%u,%u) at %s:%d", f->text,
                                   f->other.thread[0], f->other.thread[1], f->other.thread[2],
                                   f->other.at.file ? f->other.at.file : "PTX",
                                   f->other.at.file ? f->other.at.line : f->other.ptx_line);
    }
    pthread_mutex_unlock(&l->dev->lock);
    return go;
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
