/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.c - check a launch like a real device, run it, collect its result.
 */
#include "simt/check/early_access.h"
#include "simt/check/global_shadow.h"
#include "simt/hopper/hopper.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>

/* Warps of a grid that publish; stack of a warp. */
enum { MAX_FENCED = 1 << 22, MAX_STACK = 256 << 20, GRID_SPACE = 64 };

static bool refuse(struct simt_result *out, struct arena *a, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static bool refuse(struct simt_result *out, struct arena *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    out->outcome = SIMT_BAD_LAUNCH;
    out->text = arena_vprintf(a, fmt, ap);
    va_end(ap);
    return false;
}

static bool launch_allowed(const struct simt *dev, const struct sw_kernel *k,
                           const struct simt_launch *s, struct arena *a, struct simt_result *out)
{
    static const char axis[] = "xyz";
    static const uint32_t grid_max[] = {0x7fffffff, 65535, 65535}, block_max[] = {1024, 1024, 64};
    uint64_t threads = 1, blocks = 1;
    for (int i = 0; i < 3; i++) {
        if (!s->grid[i] || s->grid[i] > grid_max[i])
            return refuse(out, a, "grid.%c is %u; it must be 1 to %u", axis[i], s->grid[i],
                          grid_max[i]);
        if (!s->block[i] || s->block[i] > block_max[i])
            return refuse(out, a, "block.%c is %u; it must be 1 to %u", axis[i], s->block[i],
                          block_max[i]);
        threads *= s->block[i];
        blocks *= s->grid[i];
        if (s->cluster[i] > 1 && s->grid[i] % s->cluster[i])
            return refuse(out, a, "grid.%c is %u, no multiple of cluster.%c, %u", axis[i],
                          s->grid[i], axis[i], s->cluster[i]);
        if (k->req[i] && k->req[i] != s->block[i])
            return refuse(out, a, "the kernel requires block.%c to be %u, not %u", axis[i],
                          k->req[i], s->block[i]);
    }
    uint64_t cluster = (uint64_t)(s->cluster[0] ? s->cluster[0] : 1) *
                       (s->cluster[1] ? s->cluster[1] : 1) * (s->cluster[2] ? s->cluster[2] : 1);
    if (cluster > CLUSTER_MAX)
        return refuse(out, a, "a cluster of %llu blocks; at most %d fit",
                      (unsigned long long)cluster, CLUSTER_MAX);
    if (threads > dev->config.max_threads)
        return refuse(out, a, "a block of %llu threads; at most %u fit",
                      (unsigned long long)threads, dev->config.max_threads);
    if (k->max_threads && threads > k->max_threads)
        return refuse(out, a, "a block of %llu threads; the kernel was built for at most %u",
                      (unsigned long long)threads, k->max_threads);
    if (s->cooperative && blocks > MAX_RESIDENT)
        return refuse(out, a, "a cooperative grid of %llu blocks; at most %d run at the same time",
                      (unsigned long long)blocks, MAX_RESIDENT);
    if (blocks > UINT64_C(1) << 40)
        return refuse(out, a, "a grid of %llu blocks", (unsigned long long)blocks);
    uint64_t shared = (uint64_t)k->static_smem + s->shared_bytes;
    if (shared > dev->config.max_shared_bytes)
        return refuse(out, a, "%llu bytes of shared memory per block; at most %u fit",
                      (unsigned long long)shared, dev->config.max_shared_bytes);
    if (k->static_smem > 48 << 10)
        return refuse(out, a, "%u bytes of static shared memory; at most 49152 fit",
                      k->static_smem);
    if (s->param_bytes < k->param_bytes || (k->param_bytes && !s->params))
        return refuse(out, a, "%zu bytes of arguments; %s takes %u", s->param_bytes, k->name,
                      k->param_bytes);
    return true;
}

/* What an instruction did without calls. */
static void add_alone(const struct sw_site *s, const struct sw_fast *f, struct simt_counters *c)
{
    uint64_t bytes = (uint64_t)s->esize * s->vec, row = bytes * WARP;
    if (!f->hits)
        return;
    if (s->space == SW_SHARED) {
        c->shared_requests += f->hits;
        c->shared_wavefronts += f->hits;
    } else if (!s->stride) {
        c->global_load_requests += f->hits;
        c->global_load_sectors += f->hits;
        c->global_load_lines += f->hits;
        c->global_load_bytes += f->more * bytes;
    } else if (s->role == SW_R_STORE) {
        c->global_store_requests += f->hits;
        c->global_store_sectors += f->hits * (row / 32) + f->more;
        c->global_store_lines += f->hits + f->more;
        c->global_store_bytes += f->hits * row;
    } else {
        c->global_load_requests += f->hits;
        c->global_load_sectors += f->hits * (row / 32) + f->more;
        c->global_load_lines += f->hits + f->more;
        c->global_load_bytes += f->hits * row;
    }
}

static void add_counts(const struct worker *t, struct simt_counters *c)
{
    const struct sw_form *f = t->l->form;
    const uint64_t *from = (const uint64_t *)&t->n;
    uint64_t *to = (uint64_t *)c;
    for (size_t i = 0; i < sizeof *c / sizeof *to; i++)
        to[i] += from[i];
    for (u32 i = 0; i < t->l->k->site_count && t->l->dev->config.counters; i++)
        add_alone(&t->l->k->sites[i], &t->fast[i], c);
    for (u32 b = 0; b < f->block_count; b++) {
        uint64_t runs = t->counts[2 * b], lanes = t->counts[2 * b + 1];
        for (int i = 0; i < SW_C_COUNT; i++) {
            c->by_class[i] += runs * f->classes[b][i];
            c->threads_by_class[i] += lanes * f->classes[b][i];
            c->warp_instructions += runs * f->classes[b][i];
            c->thread_instructions += lanes * f->classes[b][i];
        }
        c->fp32_flops += lanes * (2u * f->classes[b][SW_C_FMA] + f->classes[b][SW_C_FADD] +
                                  f->classes[b][SW_C_FMUL]);
        c->tensor_flops += runs * f->tensor_flops[b];
        c->global_load_batches += f->classes[b][SW_C_LDG] ? runs : 0;
        c->shared_load_batches += f->classes[b][SW_C_LDS] ? runs : 0;
    }
}

/* Without checks every address is inside one great allocation. */
static const struct alloc anything;

/* No two threads write to one line of the host's cache. */
static void *apart(size_t bytes)
{
    return xmalloc(bytes + 128);
}

static void *worker_thread(void *arg)
{
    struct worker *t = arg;
    const struct launch *l = t->l;
    t->memo = apart((size_t)MEMO_WAYS * (l->k->site_count + 1) * sizeof *t->memo);
    t->cache = apart((l->k->site_count + 1) * sizeof *t->cache);
    t->wanted = apart(l->k->site_count + 1);
    t->spread = apart((l->k->site_count + 1) * sizeof *t->spread);
    t->told = apart((l->k->site_count + 1) * sizeof *t->told);
    if (l->dev->config.check == SIMT_CHECK_FULL)
        t->sure = apart((l->k->site_count + 1) * sizeof *t->sure);
    for (u32 site = 0; l->dev->config.check == SIMT_CHECK_OFF && site < l->k->site_count; site++)
        t->cache[site] = (struct range){0, UINT64_MAX, (struct alloc *)&anything, 0};
    if (l->dev->config.profile)
        t->use = apart((l->k->site_count + 1) * sizeof *t->use);
    worker_run(t);
    return NULL;
}

/* Shared state exists before any of them runs; each allocates the rest itself. */
static void run_workers(struct launch *l)
{
    uint64_t want = (uint64_t)l->dev->config.threads;
    l->worker_count = (int)(want < l->sample ? want : l->sample);
    l->workers = xmalloc((size_t)l->worker_count * sizeof *l->workers);
    for (int i = 0; i < l->worker_count; i++) {
        struct worker *t = &l->workers[i];
        t->l = l;
        t->share = l->sample / (uint64_t)l->worker_count;
        t->fast = apart((l->k->site_count + 1) * sizeof *t->fast);
        t->counts = apart((2 * (size_t)l->form->block_count + 2) * sizeof *t->counts);
    }
    for (int i = 1; i < l->worker_count; i++)
        l->workers[i].started =
            pthread_create(&l->workers[i].thread, NULL, worker_thread, &l->workers[i]) == 0;
    worker_thread(&l->workers[0]);
    for (int i = 1; i < l->worker_count; i++)
        if (l->workers[i].started)
            pthread_join(l->workers[i].thread, NULL);
}

/* The asynchronous proxy wants to know of every store whether it was fenced. */
static bool uses_proxy(const struct sw_kernel *k)
{
    for (u32 i = 0; i < k->site_count; i++)
        if (k->sites[i].role & SW_R_PROXY)
            return true;
    return false;
}

static void begin_shadows(struct launch *l)
{
    if (l->spec->overlap && l->dev->config.check == SIMT_CHECK_FULL)
        l->earlier = l->dev->last;
    for (size_t i = 0; i < l->dev->alloc_count; i++)
        if (l->dev->alloc[i].shadow)
            shadow_begin(l->dev->alloc[i].shadow, l->marks, l->published != NULL, l->earlier.begin,
                         l->spec->overlapped);
}

/* Scales a sample's counters to the whole grid. */
static void scale_counters(const struct launch *l, struct simt_counters *c)
{
    uint64_t *v = (uint64_t *)c;
    for (size_t i = 0; l->sample < l->blocks && i < sizeof *c / sizeof *v; i++)
        v[i] = (uint64_t)((double)v[i] * (double)l->blocks / (double)l->sample);
    c->launches = 1;
}

static uint64_t atomic_span(const struct launch *l)
{
    uint64_t low = UINT64_MAX, high = 0;
    for (int i = 0; i < l->worker_count; i++)
        if (l->workers[i].atomic_high) {
            low = l->workers[i].atomic_low < low ? l->workers[i].atomic_low : low;
            high = l->workers[i].atomic_high > high ? l->workers[i].atomic_high : high;
        }
    return high ? high - low + 4 : 0;
}

static void gather(struct launch *l, struct arena *a, struct simt_result *out)
{
    struct simt_finding *f = arena_array(a, l->slots + 1, sizeof *f);
    for (size_t i = 0; i < l->slots; i++)
        f[i] = l->slot[i].f;
    out->findings = f;
    out->finding_count = l->slots;
    out->findings_dropped = l->dropped;
    out->outcome = l->outcome;
    out->counters.launches = 1;
    for (int i = 0; i < l->worker_count; i++)
        add_counts(&l->workers[i], &out->counters);
    scale_counters(l, &out->counters);
    reuse_total(l, &out->counters);
    out->counters.atomic_span = atomic_span(l);
    if (l->dev->config.profile)
        profile_lines(l, a, out);
    out->printed = arena_strndup(a, l->printed.data ? l->printed.data : "", l->printed.len);
    if (out->outcome == SIMT_OK)
        for (size_t i = 0; i < l->slots; i++)
            if (f[i].kind == SIMT_OUT_OF_BOUNDS || f[i].kind == SIMT_MISALIGNED ||
                f[i].kind == SIMT_TRAP || f[i].kind == SIMT_ASSERTION ||
                f[i].kind == SIMT_WRITE_TO_INPUT || f[i].kind == SIMT_TENSOR_MAP)
                out->outcome = SIMT_FAULT;
    if (out->outcome == SIMT_OK && atomic_load(&l->stop))
        out->outcome = SIMT_FAULT; /* a grid that was cut short is not ok */
    if (out->outcome != SIMT_OK && l->slots)
        out->text = f[l->slots - 1].text;
}

/* Where a tensor map among the parameters is as aligned as it says. */
static const void *aligned_params(const struct simt_launch *s, struct arena *a)
{
    char *room = arena_alloc(a, s->param_bytes + 256);
    char *p = (char *)(((uintptr_t)room + 127) & ~(uintptr_t)127);
    if (s->param_bytes)
        memcpy(p, s->params, s->param_bytes);
    return p;
}

static const struct sw_kernel *kernel_named(const struct simt_module *m, const char *name)
{
    for (u32 i = 0; i < m->sw->kernel_count; i++)
        if (strcmp(m->sw->kernels[i].name, name) == 0)
            return &m->sw->kernels[i];
    return NULL;
}

/* Releases what the grid used; false: a worker had no memory for its stacks. */
static bool end_launch(struct launch *l)
{
    bool ok = true;

    for (int i = 0; i < l->worker_count; i++) {
        ok = ok && !l->workers[i].failed;
        worker_release(&l->workers[i]);
    }
    if (l->grid_space)
        simt_alloc_forget(l->dev, l->grid_space);
    xfree(l->grid_space);
    xfree(l->workers);
    xfree(l->published);
    buf_release(&l->printed);
    return ok;
}

bool simt_launch(struct simt *dev, struct simt_module *m, const struct simt_launch *given,
                 struct arena *a, struct simt_result *out, struct error *err)
{
    struct simt_launch own = *given, *spec = &own;
    const struct sw_kernel *k = kernel_named(m, spec->kernel);

    *out = (struct simt_result){.text = "", .printed = ""};
    if (!k)
        return error_set(err, ERROR_USE, "the module has no kernel %s", spec->kernel);
    if (!launch_allowed(dev, k, spec, a, out))
        return true;
    for (int i = 0; i < 3; i++)
        own.cluster[i] = given->cluster[i] ? given->cluster[i] : 1;
    own.params = aligned_params(given, a);
    struct launch l = {.dev = dev,
                       .mod = m->sw,
                       .k = k,
                       .spec = spec,
                       .a = a,
                       .max_slots = dev->config.max_findings,
                       .printed = buf_init(1 << 20),
                       .outcome = SIMT_OK};
    l.nthreads = spec->block[0] * spec->block[1] * spec->block[2];
    l.nwarps = (l.nthreads + WARP - 1) / WARP;
    l.blocks = l.marks = (uint64_t)spec->grid[0] * spec->grid[1] * spec->grid[2];
    l.direct = spec->cluster[0] * spec->cluster[1] * spec->cluster[2] > 1 || uses_proxy(k);
    for (int i = 0; i < 3; i++)
        l.blocks /= spec->cluster[i] > 1 ? spec->cluster[i] : 1; /* clusters from here on */
    l.sample = spec->sample && spec->sample < l.blocks ? spec->sample : l.blocks;
    l.smem_bytes = k->static_smem + spec->shared_bytes;
    l.form = sw_form_for(spec->block) == SW_ROWS ? &k->rows : &k->general;
    if (!l.form->fn)
        return error_set(err, ERROR_USE, "%s was translated for other blocks than %ux%ux%u",
                         spec->kernel, spec->block[0], spec->block[1], spec->block[2]);
    if (stack_bytes(&l) > MAX_STACK) {
        refuse(out, a,
               "%s needs a stack of %zu bytes per warp on this device; at most %d fit: split the "
               "kernel, or unroll less",
               k->name, stack_bytes(&l), MAX_STACK);
        return true;
    }
    l.slot = arena_array(a, l.max_slots + 1, sizeof *l.slot);
    l.started_ms = clock_ms();
    l.deadline_ms = l.started_ms + dev->config.watchdog_ms;
    int64_t start_us = clock_us();
    l.orders =
        k->strong & SW_K_ORDERS || spec->cluster[0] * spec->cluster[1] * spec->cluster[2] > 1;
    l.clustered = spec->cluster[0] * spec->cluster[1] * spec->cluster[2] > 1;
    if (l.orders && dev->config.check == SIMT_CHECK_FULL && l.marks * l.nwarps <= MAX_FENCED)
        l.published = xmalloc(l.marks * l.nwarps * sizeof *l.published);
    if (spec->cooperative) {
        l.grid_space = xmalloc(GRID_SPACE);
        simt_alloc_register(dev, l.grid_space, GRID_SPACE, "barrier of the grid",
                            SIMT_ALLOC_WRITTEN);
    }
    begin_shadows(&l);
    run_workers(&l);
    dev->last = early_left(&l);
    out->seconds = (double)(clock_us() - start_us) * 1e-6;
    gather(&l, a, out);
    out->stopped = atomic_load(&l.stop) != 0;
    if (!end_launch(&l))
        return error_set(err, ERROR_MACHINE,
                         "no memory for the stacks of %s: %zu bytes for each of "
                         "%u warps",
                         k->name, stack_bytes(&l), l.nwarps);
    return true;
}
