/* SPDX-License-Identifier: Apache-2.0 */
/* atomic.c - atom and red: lane after lane, with the host's atomics. */
#include "base/float_bits.h"
#include "simt/check/global_shadow.h"
#include "simt/device/device.h"

#include "simt/device/convert.h"
#include "simt/ptx/atomic_ops.h"

#include <math.h>
#include <string.h>

static float as_float(u64 u)
{
    return f32_of_bits((u32)u);
}

/* f16 and bf16 through the exact conversions. */
static float half_in(u64 bits, bool bf)
{
    u32 code = (u32)PT_F32 | (u32)(bf ? PT_BF16 : PT_F16) << 8;
    return as_float(convert_bits(code, bits & 0xffff));
}

static u64 half_out(float f, bool bf)
{
    u32 code = (u32)(bf ? PT_BF16 : PT_F16) | (u32)PT_F32 << 8;
    return convert_bits(code, bits_of_f32(f));
}

/* A NaN loses to a number; -0 is less than +0. */
static float less(float x, float y)
{
    if (x != x || y != y)
        return x != x ? y : x;
    return y < x || (x == y && signbit(y)) ? y : x;
}

static u64 half_op(enum atom_op op, u64 old, u64 b, bool bf)
{
    float x = half_in(old, bf), y = half_in(b, bf);
    return half_out(op == ATOM_ADD ? x + y : op == ATOM_MIN ? less(x, y) : -less(-x, -y), bf);
}

/* In global memory the sum of f32 is taken without subnormals, in and out. */
static float flushed(float x)
{
    return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x;
}

static u64 float_op(enum atom_op op, enum ptx_type t, bool flush, u64 old, u64 b)
{
    switch (t) {
    case PT_F32:
        return bits_of_f32(flush ? flushed(flushed(as_float(old)) + flushed(as_float(b)))
                                 : as_float(old) + as_float(b));
    case PT_F64:
        return bits_of_f64(f64_of_bits(old) + f64_of_bits(b));
    case PT_F16:
    case PT_BF16:
        return half_op(op, old, b, t == PT_BF16);
    default: { /* pairs */
        bool bf = t == PT_BF16X2;
        return half_op(op, old & 0xffff, b & 0xffff, bf) |
               half_op(op, old >> 16 & 0xffff, b >> 16 & 0xffff, bf) << 16;
    }
    }
}

static bool is_float(enum ptx_type t)
{
    return t == PT_F32 || t == PT_F64 || t == PT_F16 || t == PT_BF16 || t == PT_F16X2 ||
           t == PT_BF16X2;
}

static u64 combine(u32 kind, bool flush, u64 old, u64 b, u64 c)
{
    enum atom_op op = atom_op_of(kind);
    enum ptx_type t = atom_type_of(kind);
    bool is_signed = t == PT_S32 || t == PT_S64;
    if (is_float(t) && (op == ATOM_ADD || op == ATOM_MIN || op == ATOM_MAX))
        return float_op(op, t, flush, old, b);
    s64 so = t == PT_S32 ? (s32)old : (s64)old, sb = t == PT_S32 ? (s32)b : (s64)b;
    switch (op) {
    case ATOM_ADD:
        return old + b;
    case ATOM_MIN:
        return is_signed ? (sb < so ? b : old) : (b < old ? b : old);
    case ATOM_MAX:
        return is_signed ? (sb > so ? b : old) : (b > old ? b : old);
    case ATOM_AND:
        return old & b;
    case ATOM_OR:
        return old | b;
    case ATOM_XOR:
        return old ^ b;
    case ATOM_EXCH:
        return b;
    case ATOM_CAS:
        return old == b ? c : old;
    case ATOM_INC:
        return old >= b ? 0 : old + 1;
    case ATOM_DEC:
        return old == 0 || old > b ? b : old - 1;
    default:
        return old;
    }
}

u64 atom_combine(u32 kind, u64 old, u64 b, u64 c)
{
    return combine(kind, false, old, b, c);
}

static u64 apply(void *p, u32 esize, u32 kind, bool flush, u64 b, u64 c)
{
    if (esize == 8) {
        u64 *q = p, old = __atomic_load_n(q, __ATOMIC_RELAXED), want;
        do {
            want = combine(kind, flush, old, b, c);
        } while (
            !__atomic_compare_exchange_n(q, &old, want, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
        return old;
    }
    if (esize == 2) {
        u16 *q = p, old = __atomic_load_n(q, __ATOMIC_RELAXED), want;
        do {
            want = (u16)combine(kind, flush, old, b & 0xffff, c & 0xffff);
        } while (
            !__atomic_compare_exchange_n(q, &old, want, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
        return old;
    }
    u32 *q = p, old = __atomic_load_n(q, __ATOMIC_RELAXED), want;
    do {
        want = (u32)combine(kind, flush, old, (u32)b, (u32)c);
    } while (
        !__atomic_compare_exchange_n(q, &old, want, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
    return old;
}

/* Compare-and-swap and exchange acquire and release locks: accesses under a lock are ordered before
 * those of its next holder. All locks of a block count as one. */
void lock_acquires(struct warp *w)
{
    const uint32_t *locks = w->blk->locks;
    for (uint32_t i = 0; i < w->blk->b.nwarps; i++)
        w->clock[i] = w->clock[i] > locks[i] ? w->clock[i] : locks[i];
}

void lock_releases(struct warp *w)
{
    uint32_t *locks = w->blk->locks;
    for (uint32_t i = 0; i < w->blk->b.nwarps; i++)
        locks[i] = w->clock[i] > locks[i] ? w->clock[i] : locks[i];
    clock_tick(w);
    locks[w->w.id] = w->clock[w->w.id];
    clock_tick(w);
}

static void lock_orders(struct warp *w)
{
    lock_acquires(w);
    lock_releases(w);
}

static void note(struct warp *w, u32 lane, uint64_t host, u32 bytes, u32 site)
{
    struct blk *b = w->blk;
    uint64_t at = host - (uint64_t)(uintptr_t)b->b.smem;
    bool locks = atom_locks(site_of(w, site)->kind);
    if (at < b->b.smem_bytes) {
        if (!b->cell)
            return;
        race_atomic(w, lane, at, bytes, site);
        if (locks)
            lock_orders(w);
        return;
    }
    struct alloc *x = locks ? alloc_find(w->t->l->dev, host, bytes) : NULL;
    if (x && x->shadow) {
        shadow_ever(x->shadow, host - x->lo, bytes);
        lock_orders(w);
    }
}

/* All lanes at once; a lock is not data. */
static void note_global(struct warp *w, u32 m, const uint64_t *host, u32 bytes, u32 site)
{
    const struct sw_site *s = site_of(w, site);
    if (s->flags & SW_RELEASE)
        block_fences(w);
    block_publishes(w);
    block_listens(w);
    if (!atom_locks(s->kind))
        shadow_atomic(w, m, host, bytes, site);
}

void dev_atom(struct sw_warp *sw, u32 m, const void *addr, u32 site, void *dst, const void *b,
              const void *c)
{
    struct warp *w = warp_of(sw);
    const struct sw_site *s = site_of(w, site);
    uint64_t host[WARP];
    enum sw_space space;
    u32 asked = m;
    bool wide = s->esize == 8;
    lanes_resolve(w, &m, addr, site, s->esize, true, host, &space);
    count_atomic(w, m, host, s->esize, site, space == SW_SHARED);
    if (space != SW_SHARED && w->t->l->dev->config.check == SIMT_CHECK_FULL)
        note_global(w, m, host, s->esize, site);
    for (u32 left = asked; left; left &= left - 1) {
        u32 i = (u32)__builtin_ctz(left);
        u64 x = wide ? ((const u64 *)b)[i] : ((const u32 *)b)[i];
        u64 y = !c ? 0 : wide ? ((const u64 *)c)[i] : ((const u32 *)c)[i];
        u64 old = 0;
        if (m >> i & 1) {
            if (w->t->l->dev->config.check == SIMT_CHECK_FULL)
                note(w, i, host[i], s->esize, site);
            old = apply((void *)(uintptr_t)host[i], s->esize, s->kind, space != SW_SHARED, x, y);
        }
        if (dst && wide)
            ((u64 *)dst)[i] = old;
        else if (dst)
            ((u32 *)dst)[i] = (u32)old;
    }
    /* A polling warp must not keep the others from running. */
    if (atom_locks(s->kind)) {
        w->polled = true;
        if (sw->fuel > 64)
            sw->fuel = 64;
    }
}
