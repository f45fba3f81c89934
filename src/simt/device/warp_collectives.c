/* SPDX-License-Identifier: Apache-2.0 */
/* warp_collectives.c - shuffles, matches, reductions over a warp; printing; the clock. */
#include "simt/device/device.h"
#include "simt/device/lane_transpose.h"
#include "simt/ptx/call_kinds.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>

/* outside: lanes that read from a missing lane and so get an undefined value. At the end of a sum
 * or a scan some lanes do, and their values are not used; so only the lane with the result is
 * checked: the first, or the last. */
static void shuffle_check(struct warp *w, u32 m, u32 mode, u32 outside, const u8 *from, u32 site)
{
    u32 first = m & (0 - m), last = UINT32_C(1) << (31 - __builtin_clz(m));
    u32 counts = mode == SHFL_DOWN ? first : mode == SHFL_UP ? last : m;
    if (!(outside & counts) || w->t->l->dev->config.check == SIMT_CHECK_OFF)
        return;
    u32 lane = (u32)__builtin_ctz(outside & counts);
    finding_add(&(struct finding_where){w, lane, site}, SIMT_SHUFFLE, 0, NULL, -1, -1, -1,
                "lane %u reads from lane %u, which %s (%08x do): its value is undefined", lane,
                from[lane],
                w->w.live >> from[lane] & 1 ? "does not take part" : "has left or is no thread", m);
}

u32 dev_shfl(struct sw_warp *sw, u32 m, u32 mode, void *dst, const void *src, const u32 *b,
             const u32 *c, u32 members, u32 site)
{
    u32 out[WARP], p = 0, outside = 0;
    u8 reads[WARP];
    const u32 *from = src;
    dev_sync(sw, m, members, site);
    for (u32 i = 0; i < WARP; i++) {
        u32 bv = b[i] & 31, cv = c[i] & 31, mask = c[i] >> 8 & 31;
        u32 max = (i & mask) | (cv & ~mask), j;
        bool in;
        switch (mode) {
        case SHFL_UP:
            j = i - bv;
            in = (s32)j >= (s32)max;
            break;
        case SHFL_DOWN:
            j = i + bv;
            in = j <= max;
            break;
        case SHFL_BFLY:
            j = i ^ bv;
            in = j <= max;
            break;
        default:
            j = (i & mask) | (bv & ~mask);
            in = j <= max;
            break;
        }
        if (!in)
            j = i;
        p |= (u32)in << i;
        out[i] = from[j & 31];
        reads[i] = (u8)(j & 31);
        outside |= (u32) !(m >> (j & 31) & 1) << i;
    }
    if (outside & m)
        shuffle_check(warp_of(sw), m, mode, outside & m, reads, site);
    if (dst && m == ~0u)
        memcpy(dst, out, sizeof out);
    else
        for (; dst && m; m &= m - 1)
            ((u32 *)dst)[__builtin_ctz(m)] = out[__builtin_ctz(m)];
    return p;
}

#if defined(__x86_64__)
/* The butterfly of a constant distance: the compiler makes shuffles of it. */
static inline __attribute__((always_inline)) void butterfly(u32 *out, const u32 *from, const u32 by)
{
    for (u32 i = 0; i < WARP; i++)
        out[i] = from[i ^ by];
}
#else
/* The same where it does not: four lanes change places, or fours do. out may be from. */
static inline __attribute__((always_inline)) void butterfly(u32 *out, const u32 *from, const u32 by)
{
    quad r[WARP / 4];
#pragma GCC unroll 8
    for (u32 i = 0; i < WARP / 4; i++) {
        r[i] = ((const quad *)from)[i ^ by / 4];
        if (by & 1)
            r[i] = __builtin_shufflevector(r[i], r[i], 1, 0, 3, 2);
        if (by & 2)
            r[i] = __builtin_shufflevector(r[i], r[i], 2, 3, 0, 1);
    }
#pragma GCC unroll 8
    for (u32 i = 0; i < WARP / 4; i++)
        ((quad *)out)[i] = r[i];
}
#endif

static inline __attribute__((always_inline)) void butterfly_to(u32 *out, const u32 *from, u32 by)
{
    switch (by) {
    case SHFL_DOWN:
        butterfly(out, from, 1);
        break;
    case SHFL_BFLY:
        butterfly(out, from, 2);
        break;
    case 4:
        butterfly(out, from, 4);
        break;
    case 8:
        butterfly(out, from, 8);
        break;
    case 16:
        butterfly(out, from, 16);
        break;
    default:
        butterfly(out, from, by);
        break;
    }
}

HOT u32 dev_shflu(struct sw_warp *sw, u32 m, u32 mode, void *dst, const void *src, u32 b, u32 c,
                  u32 members, u32 site)
{
    const u32 *from = src;
    u32 out[WARP];
    b &= 31;
    if (m != ~0u || members != ~0u || !dst || c > 31 || (mode == SHFL_UP ? c != 0 : c != 31)) {
        u32 bs[WARP], cs[WARP];
        for (int i = 0; i < WARP; i++) {
            bs[i] = b;
            cs[i] = c;
        }
        return dev_shfl(sw, m, mode, dst, src, bs, cs, members, site);
    }
    warp_of(sw)->last_site = site;
    clock_tick(warp_of(sw));
    u32 p = ~0u;
#if !defined(__x86_64__)
    if (mode == SHFL_BFLY) {
        butterfly_to(dst, from, b);
        return p;
    }
#endif
    switch (mode) {
    case SHFL_UP:
        memcpy(out, from, sizeof out);
        memcpy(out + b, from, (WARP - b) * sizeof *out);
        p = ~0u << b;
        break;
    case SHFL_DOWN:
        memcpy(out, from + b, (WARP - b) * sizeof *out);
        memcpy(out + (WARP - b), from + (WARP - b), b * sizeof *out);
        p = ~0u >> b;
        break;
    case SHFL_BFLY:
        butterfly_to(out, from, b);
        break;
    default:
        for (int i = 0; i < WARP; i++)
            out[i] = from[b];
        break;
    }
    for (int i = 0; i < WARP; i++)
        ((u32 *)dst)[i] = out[i];
    return p;
}

void dev_match(struct sw_warp *sw, u32 m, u32 kind, u32 *dst, u32 *pred, const void *src,
               u32 members)
{
    bool all = kind & MATCH_ALL, wide = kind & MATCH_WIDE;
    u32 among = m & members, same_all = 0, first = 0;
    clock_tick(warp_of(sw));
    for (u32 left = among; left; left &= left - 1) {
        u32 i = (u32)__builtin_ctz(left), same = 0;
        u64 x = wide ? ((const u64 *)src)[i] : ((const u32 *)src)[i];
        for (u32 o = among; o; o &= o - 1) {
            u32 j = (u32)__builtin_ctz(o);
            u64 y = wide ? ((const u64 *)src)[j] : ((const u32 *)src)[j];
            same |= (u32)(x == y) << j;
        }
        if (!first++)
            same_all = same;
        dst[i] = all ? (same_all == among ? among : 0) : same;
    }
    *pred = same_all == among ? m : 0;
}

u32 dev_redux(struct sw_warp *sw, u32 m, u32 kind, const u32 *src, u32 members)
{
    u32 among = m & members, r = 0;
    bool first = true, is_signed = kind & REDUX_SIGNED;
    clock_tick(warp_of(sw));
    for (; among; among &= among - 1) {
        u32 x = src[__builtin_ctz(among)];
        if (first) {
            r = x;
            first = false;
            continue;
        }
        bool less = is_signed ? (s32)x < (s32)r : x < r;
        switch (kind & REDUX_OP) {
        case REDUX_ADD:
            r += x;
            break;
        case REDUX_MIN:
            r = less ? x : r;
            break;
        case REDUX_MAX:
            r = less ? r : x;
            break;
        case REDUX_AND:
            r &= x;
            break;
        case REDUX_OR:
            r |= x;
            break;
        default:
            r ^= x;
            break;
        }
    }
    return r;
}

u64 dev_clock(struct sw_warp *sw)
{
    (void)sw;
    return (u64)clock_us() * 1000;
}

/* ---- printf ---- */

/* A string in registered memory, or NULL. */
static const char *device_string(struct warp *w, u64 at)
{
    struct alloc *x = alloc_find(w->t->l->dev, at, 1);
    if (!x || !memchr((const void *)(uintptr_t)at, 0, x->hi - at))
        return NULL;
    return (const char *)(uintptr_t)at;
}

static void print_spec(struct warp *w, struct buf *out, const char *spec, size_t len,
                       const u8 **args)
{
    char form[40];
    char conv = spec[len - 1];
    bool wide = memchr(spec, 'l', len) || memchr(spec, 'z', len) || memchr(spec, 'j', len);
    size_t flags = 1 + strspn(spec + 1, "-+ #0123456789.");
    if (flags > 24)
        flags = 24;
    memcpy(form, spec, flags);
    u64 bits = 0;
    bool is_float = strchr("fFeEgGaA", conv) != NULL,
         eight = wide || is_float || conv == 's' || conv == 'p';
    uintptr_t at = (uintptr_t)*args;
    if (eight)
        at = (at + 7) & ~(uintptr_t)7;
    memcpy(&bits, (const void *)at, eight ? 8 : 4);
    *args = (const u8 *)at + (eight ? 8 : 4);
    if (is_float) {
        double d;
        memcpy(&d, &bits, sizeof d);
        snprintf(form + flags, sizeof form - flags, "%c", conv);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        buf_printf(out, form, d);
    } else if (conv == 's') {
        const char *s = device_string(w, bits);
        buf_puts(out, s ? s : "(bad string)");
    } else if (conv == 'c') {
        buf_putc(out, (char)bits);
    } else {
        snprintf(form + flags, sizeof form - flags, "ll%c", conv == 'p' ? 'x' : conv);
        long long v = wide || conv == 'p'          ? (long long)bits
                      : conv == 'd' || conv == 'i' ? (long long)(s32)bits
                                                   : (long long)(u32)bits;
        buf_printf(out, form, v);
#pragma GCC diagnostic pop
    }
}

void dev_print(struct sw_warp *sw, u32 m, const u64 *format, const u64 *args)
{
    struct warp *w = warp_of(sw);
    struct launch *l = w->t->l;
    pthread_mutex_lock(&l->dev->lock);
    for (; m; m &= m - 1) {
        u32 i = (u32)__builtin_ctz(m);
        const char *f = device_string(w, format[i]);
        uint64_t local = args[i] - (uint64_t)(uintptr_t)sw->local;
        bool ok = args[i] && sw->local && local < sw->local_bytes * WARP;
        const u8 *p = (const u8 *)(uintptr_t)args[i];
        while (f && *f) {
            if (*f != '%' || f[1] == '%') {
                buf_putc(&l->printed, *f);
                f += 1 + (*f == '%');
                continue;
            }
            size_t len = 1 + strspn(f + 1, "-+ #0123456789.hlzjt");
            if (!f[len])
                break;
            if (ok && (uint64_t)(p - sw->local) + 16 <= sw->local_bytes * WARP + 8)
                print_spec(w, &l->printed, f, len + 1, &p);
            f += len + 1;
        }
    }
    pthread_mutex_unlock(&l->dev->lock);
}
