/* SPDX-License-Identifier: Apache-2.0 */
/* device.c - the device's life, its allocations and its modules. */
#include "base/cpus.h"
#include "simt/blackwell/blackwell.h"
#include "simt/check/global_shadow.h"
#include "simt/hopper/hopper.h"

#include "simt/device/convert.h"
#include "simt/ptx/call_kinds.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

static u64 dev_cvt(u32 how, u64 bits)
{
    return convert_bits(how, bits);
}

static void dev_fence(struct sw_warp *sw, u32 site)
{
    struct warp *w = warp_of(sw);
    w->last_site = site;
    if (!(site_of(w, site)->kind & FENCE_BLOCK))
        block_fences(w);
    if (w->blk->cell)
        lock_releases(w);
    atomic_thread_fence(memory_order_seq_cst);
}

static const struct sw_ops ops = {
    .ld = dev_ld,
    .st = dev_st,
    .lds = dev_lds,
    .sts = dev_sts,
    .strip = dev_strip,
    .lda = dev_lda,
    .sta = dev_sta,
    .quads = dev_quads,
    .ldu = dev_ldu,
    .ldun = dev_ldun,
    .atom = dev_atom,
    .shfl = dev_shfl,
    .shflu = dev_shflu,
    .match = dev_match,
    .redux = dev_redux,
    .sync = dev_sync,
    .bar = dev_bar,
    .fence = dev_fence,
    .grid = dev_grid,
    .cp_async = dev_cp_async,
    .cp_commit = dev_cp_commit,
    .cp_wait = dev_cp_wait,
    .cp_mbar = dev_cp_mbar,
    .ldmatrix = dev_ldmatrix,
    .stmatrix = dev_stmatrix,
    .movmatrix = dev_movmatrix,
    .mma = dev_mma,
    .wmma = dev_wmma,
    .mbar = dev_mbar,
    .trap = dev_trap,
    .print = dev_print,
    .tick = dev_tick,
    .clock = dev_clock,
    .isspace = dev_isspace,
    .f32_op = math_f32,
    .f64_op = math_f64,
    .cvt = dev_cvt,
    .math = math_fn,
    .cl_ld = dev_cl_ld,
    .cl_st = dev_cl_st,
    .cl_atom = dev_cl_atom,
    .cl_bar = dev_cl_bar,
    .mapa = dev_mapa,
    .st_async = dev_st_async,
    .bulk = dev_bulk,
    .bulk_group = dev_bulk_group,
    .wgmma = dev_wgmma,
    .tc = dev_tc,
    .wg_sync = dev_wg_sync,
    .wg_touch = dev_wg_touch,
    .proxy = dev_proxy,
};

bool simt_open(const struct simt_config *config, struct simt **out, struct error *err)
{
    (void)err;
    struct simt *dev = xmalloc(sizeof *dev);
    dev->config = *config;
    struct simt_config *c = &dev->config;
    if (c->threads <= 0)
        c->threads = cpus_usable();
    if (c->threads > 256)
        c->threads = 256;
    c->watchdog_ms = c->watchdog_ms > 0 ? c->watchdog_ms : 60000;
    c->max_threads = c->max_threads ? c->max_threads : 1024;
    c->max_shared_bytes = c->max_shared_bytes ? c->max_shared_bytes : 227 << 10;
    c->max_findings = c->max_findings ? c->max_findings : 32;
    dev->ops = ops;
    if (c->profile)
        profile_table(&dev->ops);
    dev->a = arena_new();
    pthread_mutex_init(&dev->lock, NULL);
    *out = dev;
    return true;
}

void simt_close(struct simt *dev)
{
    if (!dev)
        return;
    for (struct simt_module *m = dev->modules; m; m = m->next)
        dlclose(m->handle);
    for (size_t i = 0; i < dev->alloc_count; i++) {
        xfree(dev->alloc[i].name);
        shadow_free(dev->alloc[i].shadow);
    }
    xfree(dev->alloc);
    spare_release(dev);
    pthread_mutex_destroy(&dev->lock);
    arena_free(dev->a);
    xfree(dev);
}

/* ---- allocations, sorted by address ---- */

void simt_alloc_register(struct simt *dev, void *base, size_t bytes, const char *name,
                         unsigned flags)
{
    uint64_t lo = (uint64_t)(uintptr_t)base;
    simt_alloc_forget(dev, base);
    /* What was there before and is gone makes room. */
    size_t kept = 0;
    for (size_t i = 0; i < dev->alloc_count; i++) {
        struct alloc *x = &dev->alloc[i];
        if (x->gone && x->lo < lo + bytes && lo < x->hi) {
            xfree(x->name);
            shadow_free(x->shadow);
        } else {
            dev->alloc[kept++] = *x;
        }
    }
    dev->alloc_count = kept;
    if (dev->alloc_count == dev->alloc_cap) {
        dev->alloc_cap = dev->alloc_cap ? dev->alloc_cap * 2 : 16;
        dev->alloc = xrealloc(dev->alloc, dev->alloc_cap * sizeof *dev->alloc);
    }
    size_t at = dev->alloc_count++;
    while (at && dev->alloc[at - 1].lo > lo) {
        dev->alloc[at] = dev->alloc[at - 1];
        at--;
    }
    dev->alloc[at] = (struct alloc){
        .lo = lo, .hi = lo + bytes, .name = xstrdup(name ? name : "buffer"), .flags = flags};
    bool constant = flags & SIMT_ALLOC_READONLY && flags & SIMT_ALLOC_WRITTEN;
    if (dev->config.check == SIMT_CHECK_FULL && !constant)
        dev->alloc[at].shadow = shadow_new(bytes, flags & SIMT_ALLOC_WRITTEN);
}

void simt_alloc_written(struct simt *dev, const void *at, size_t bytes)
{
    struct alloc *x = alloc_find(dev, (uint64_t)(uintptr_t)at, bytes);
    if (x && x->shadow && bytes)
        shadow_ever(x->shadow, (uint64_t)(uintptr_t)at - x->lo, bytes);
}

void simt_alloc_forget(struct simt *dev, const void *base)
{
    for (size_t i = 0; i < dev->alloc_count; i++)
        if (dev->alloc[i].lo == (uint64_t)(uintptr_t)base)
            dev->alloc[i].gone = true;
}

static size_t alloc_below(const struct simt *dev, uint64_t addr)
{
    size_t lo = 0, hi = dev->alloc_count; /* first with .lo > addr */
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (dev->alloc[mid].lo <= addr)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

struct alloc *alloc_find(const struct simt *dev, uint64_t addr, uint64_t bytes)
{
    size_t i = alloc_below(dev, addr);
    if (!i)
        return NULL;
    struct alloc *x = &dev->alloc[i - 1];
    return !x->gone && addr >= x->lo && addr < x->hi && bytes <= x->hi - addr ? x : NULL;
}

struct alloc *alloc_nearest(const struct simt *dev, uint64_t addr)
{
    size_t i = alloc_below(dev, addr);
    struct alloc *under = i ? &dev->alloc[i - 1] : NULL;
    struct alloc *over = i < dev->alloc_count ? &dev->alloc[i] : NULL;
    if (!under || !over)
        return under ? under : over;
    uint64_t past = addr >= under->hi ? addr - under->hi : 0;
    return past <= over->lo - addr ? under : over;
}

/* ---- modules ---- */

bool simt_load(struct simt *dev, const char *so_path, struct simt_module **out, struct error *err)
{
    void *h = dlopen(so_path, RTLD_NOW | RTLD_LOCAL);
    if (!h)
        return error_set(err, ERROR_MACHINE, "cannot load %s: %s", so_path, dlerror());
    const struct sw_module *sw = dlsym(h, "simt_module");
    if (!sw || sw->abi != SIMT_ABI_VERSION) {
        dlclose(h);
        return error_set(err, ERROR_MACHINE, "%s was not made by this version's translator",
                         so_path);
    }
    *sw->ops = &dev->ops;
    struct simt_module *m = arena_alloc(dev->a, sizeof *m);
    m->handle = h;
    m->sw = sw;
    m->params = arena_array(dev->a, sw->kernel_count + 1, sizeof *m->params);
    for (u32 k = 0; k < sw->kernel_count; k++) {
        m->params[k] = arena_array(dev->a, sw->kernels[k].param_count + 1, sizeof **m->params);
        for (u32 i = 0; i < sw->kernels[k].param_count; i++) {
            const struct sw_param *p = &sw->kernels[k].params[i];
            m->params[k][i] = (struct simt_param){p->offset, p->bytes, p->align};
        }
    }
    for (u32 i = 0; i < sw->var_count; i++)
        simt_alloc_register(dev, sw->vars[i].data, sw->vars[i].bytes, sw->vars[i].name,
                            SIMT_ALLOC_WRITTEN | (sw->vars[i].readonly ? SIMT_ALLOC_READONLY : 0u));
    m->next = dev->modules;
    dev->modules = m;
    *out = m;
    return true;
}

bool simt_kernel_info(const struct simt_module *m, const char *name, struct simt_kernel_info *out)
{
    for (u32 i = 0; i < m->sw->kernel_count; i++) {
        const struct sw_kernel *k = &m->sw->kernels[i];
        if (strcmp(k->name, name) != 0)
            continue;
        *out = (struct simt_kernel_info){.name = k->name,
                                         .params = m->params[i],
                                         .param_count = k->param_count,
                                         .param_bytes = k->param_bytes,
                                         .static_shared = k->static_smem,
                                         .local_bytes = k->local_bytes,
                                         .max_threads = k->max_threads,
                                         .instructions = k->insn_count,
                                         .uses_dynamic_shared = k->uses_dynamic != 0};
        return true;
    }
    return false;
}

bool simt_module_variable(const struct simt_module *m, const char *name, void **base, size_t *bytes)
{
    for (u32 i = 0; i < m->sw->var_count; i++)
        if (strcmp(m->sw->vars[i].name, name) == 0) {
            *base = m->sw->vars[i].data;
            *bytes = m->sw->vars[i].bytes;
            return true;
        }
    return false;
}
