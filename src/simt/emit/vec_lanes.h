/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vec_lanes.h - the rest of what translated kernels are written in, after vec.h: helpers of one
 * lane, carries, 64-bit lanes, base + stride * lane, and lanes that wait.
 */
/* ---- integer helpers, one lane ---- */
AI u32 bfe_u(u32 a, u32 p, u32 n)
{
    p &= 255;
    n &= 255;
    if (p > 31 || !n)
        return 0;
    a >>= p;
    return n > 31 ? a : a & ((1u << n) - 1);
}
AI u32 bfe_s(u32 a, u32 p, u32 n)
{
    p &= 255;
    n &= 255;
    if (!n)
        return 0;
    u32 top = p + n - 1 > 31 ? 31 : p + n - 1, s = (a >> top) & 1, r = p > 31 ? 0 : a >> p;
    u32 w = p > 31 ? 0 : top - p + 1;
    return w > 31 ? r : (r & ((1u << w) - 1)) | (s ? ~0u << w : 0);
}
/* unlike the 32-bit forms these use all bits of p and n */
AI u64 bfe64_u(u64 a, u32 p, u32 n)
{
    if (p > 63 || !n)
        return 0;
    a >>= p;
    return n > 63 ? a : a & ((1ull << n) - 1);
}
AI u64 bfe64_s(u64 a, u32 p, u32 n)
{
    if (!n)
        return 0;
    u32 top = p > 63 || n > 63 || p + n > 64 ? 63 : p + n - 1;
    u64 s = (a >> top) & 1, r = p > 63 ? 0 : a >> p;
    u32 w = p > 63 ? 0 : top - p + 1;
    return w > 63 ? r : (r & ((1ull << w) - 1)) | (s ? ~0ull << w : 0);
}
AI u64 bfi64(u64 a, u64 b, u32 p, u32 n, u32 w)
{
    if (w == 32) {
        p &= 255;
        n &= 255;
    }
    if (p >= w || !n)
        return b;
    if (n > w - p)
        n = w - p;
    u64 m = (n > 63 ? ~0ull : (1ull << n) - 1) << p;
    return (b & ~m) | ((a << p) & m);
}
AI u32 brev32(u32 x)
{
    x = (x >> 16) | (x << 16);
    x = ((x & 0xff00ff00u) >> 8) | ((x & 0x00ff00ffu) << 8);
    x = ((x & 0xf0f0f0f0u) >> 4) | ((x & 0x0f0f0f0fu) << 4);
    x = ((x & 0xccccccccu) >> 2) | ((x & 0x33333333u) << 2);
    return ((x & 0xaaaaaaaau) >> 1) | ((x & 0x55555555u) << 1);
}
AI u64 brev64(u64 x)
{
    return (u64)brev32((u32)x) << 32 | brev32((u32)(x >> 32));
}
AI u32 prmt_d(u32 a, u32 b, u32 c)
{
    u64 v = (u64)b << 32 | a;
    u32 r = 0;
    for (int i = 0; i < 4; i++) {
        u32 s = (c >> (4 * i)) & 15, x = (u32)(v >> (8 * (s & 7))) & 255;
        if (s & 8)
            x = x & 128 ? 255 : 0;
        r |= x << (8 * i);
    }
    return r;
}
AI u32 prmt_mode(u32 a, u32 b, u32 c, u32 mode)
{
    u64 v = (u64)b << 32 | a;
    u32 r = 0;
    c &= 3;
    for (u32 i = 0; i < 4; i++) {
        u32 s = 0;
        switch (mode) {
        case 1:
            s = c + i;
            break; /* f4e */
        case 2:
            s = (c - i) & 7;
            break; /* b4e */
        case 3:
            s = c;
            break; /* rc8 */
        case 4:
            s = i > c ? i : c;
            break; /* ecl */
        case 5:
            s = i < c ? i : c;
            break; /* ecr */
        default:
            s = (c & 1) * 2 + (i & 1);
            break; /* rc16 */
        }
        r |= ((u32)(v >> (8 * (s & 7))) & 255) << (8 * i);
    }
    return r;
}
AI u32 sat_s32(s64 x)
{
    return x > 2147483647 ? 0x7fffffffu : x < -2147483647 - 1 ? 0x80000000u : (u32)x;
}
AI u32 bfind_u(u32 x, u32 amt)
{
    return !x ? ~0u : amt ? (u32)__builtin_clz(x) : 31u - (u32)__builtin_clz(x);
}
AI u32 bfind64_u(u64 x, u32 amt)
{
    return !x ? ~0u : amt ? (u32)__builtin_clzll(x) : 63u - (u32)__builtin_clzll(x);
}
AI u64 mulhi64_u(u64 x, u64 y)
{
    return (u64)(((unsigned __int128)x * y) >> 64);
}
AI u64 mulhi64_s(s64 x, s64 y)
{
    return (u64)((unsigned __int128)((__int128)x * y) >> 64);
}
AI s32 dp4(u32 a, u32 b, int as, int bs)
{
    s32 r = 0;
    for (int i = 0; i < 4; i++) {
        u32 x = (a >> (8 * i)) & 255, y = (b >> (8 * i)) & 255;
        r += (as ? (s32)(signed char)x : (s32)x) * (bs ? (s32)(signed char)y : (s32)y);
    }
    return r;
}
AI s32 dp2(u32 a, u32 b, int as, int bs, int hi)
{
    s32 r = 0;
    for (int i = 0; i < 2; i++) {
        u32 x = (a >> (16 * i)) & 0xffff, y = (b >> (8 * (i + 2 * hi))) & 255;
        r += (as ? (s32)(s16)x : (s32)x) * (bs ? (s32)(signed char)y : (s32)y);
    }
    return r;
}
AI u32 fns32(u32 mask, u32 base, s32 n)
{
    if (n == 0)
        return base < 32 && (mask >> base & 1) ? base : ~0u;
    s32 step = n > 0 ? 1 : -1, left = n > 0 ? n : -n;
    for (s32 i = (s32)base; i >= 0 && i < 32; i += step)
        if (mask >> i & 1 && --left == 0)
            return (u32)i;
    return ~0u;
}
/* To float, rounded to odd, so that the rounding that follows is the only one. */
AI float to_odd(double d)
{
    float f = (float)d;
    u32 u = f2u(f);
    if ((double)f != d && f == f && (u & 0x7f800000u) != 0x7f800000u) {
        int away = (d > 0) == ((double)f > d);
        if (d != 0 && away)
            u -= 1;
        u |= 1;
    }
    return u2f(u);
}
/* Half-precision fma: the exact sum fits a double whenever the result is finite. */
AI float fma_h(u32 a, u32 b, u32 c)
{
    double d = (double)S_h2f(a) * (double)S_h2f(b) + (double)S_h2f(c);
    return to_odd(d);
}
AI u32 fma_b(u32 a, u32 b, u32 c, int relu)
{
    double p = (double)S_b2f(a) * (double)S_b2f(b), z = (double)S_b2f(c), d = p + z;
    if (d == d && d - d == 0) { /* round to odd by the error of the sum */
        double t = d - p, e = (p - (d - t)) + (z - t);
        u64 w = d2u(d);
        if (e != 0 && !(w & 1))
            d = u2d((e > 0) == (d > 0) ? w + 1 : w - 1);
    }
    u32 r = S_f2b(to_odd(d));
    return relu && (r & 0x8000u) && (r & 0x7fffu) <= 0x7f80u ? 0 : r;
}
/* f16 and bf16 with modifiers, lane by lane */
enum { HF_RELU = 1, HF_FTZ = 2, HF_SAT = 4, HF_MAX = 16, HF_NAN = 32, HF_BF = 64 };
AI u32 ftz_h(u32 x)
{
    return x & 0x7c00u ? x : x & 0x8000u;
}
AI u32 ftz_h2(u32 x)
{
    return ftz_h(x & 0xffffu) | ftz_h(x >> 16) << 16;
}
AI u32 fma_hx(u32 a, u32 b, u32 c, int flags)
{
    if (flags & HF_FTZ)
        a = ftz_h(a), b = ftz_h(b), c = ftz_h(c);
    float x = fma_h(a, b, c);
    u32 r = S_f2h(flags & HF_FTZ ? S_ftzh(x, 1) : x);
    if ((flags & HF_RELU) && (r & 0x8000u) && (r & 0x7fffu) <= 0x7c00u)
        r = 0;
    if (flags & HF_SAT)
        r = (r & 0x7fffu) > 0x7c00u || r >> 15 ? 0 : r > 0x3c00u ? 0x3c00u : r;
    return r;
}
AI u32 fma_hx2(u32 a, u32 b, u32 c, int flags)
{
    return fma_hx(a & 0xffffu, b & 0xffffu, c & 0xffffu, flags) |
           fma_hx(a >> 16, b >> 16, c >> 16, flags) << 16;
}
/* The same of all lanes. */
AI F V_fma_odd(F x, F y, F z)
{
    VD p = __builtin_convertvector((HF)LO_HALF(x), VD) *
           __builtin_convertvector((HF)LO_HALF(y), VD),
       q = __builtin_convertvector((HF)HI_HALF(x), VD) *
           __builtin_convertvector((HF)HI_HALF(y), VD);
    p = p + __builtin_convertvector((HF)LO_HALF(z), VD);
    q = q + __builtin_convertvector((HF)HI_HALF(z), VD);
    HF f = __builtin_convertvector(p, HF), g = __builtin_convertvector(q, HF);
    VD b = __builtin_convertvector(f, VD), d = __builtin_convertvector(g, VD);
    I u = (I)JOIN(f, g), e = u & 0x7f800000u;
    M off = Q_narm((VQ)(b != p), (VQ)(d != q)) & (M)(e != 0x7f800000u);
    M away = Q_narm((VQ)(~((p > 0) ^ (b > p)) & (p != 0)), (VQ)(~((q > 0) ^ (d > q)) & (q != 0)));
    return (F)sel_I(off, (u + (I)away) | 1u, u);
}
NI I V_fma_hx(I a, I b, I c)
{
    return V_f2h(V_fma_odd(V_h2f(a), V_h2f(b), V_h2f(c)));
}
NI I V_fma_hx2(I a, I b, I c)
{
    return V_f2h(V_fma_odd(V_h2f(a & 0xffffu), V_h2f(b & 0xffffu), V_h2f(c & 0xffffu))) |
           V_f2h(V_fma_odd(V_h2f(a >> 16), V_h2f(b >> 16), V_h2f(c >> 16))) << 16;
}
AI u32 S_fma_hx(u32 a, u32 b, u32 c)
{
    return fma_hx(a, b, c, 0);
}
AI u32 S_fma_hx2(u32 a, u32 b, u32 c)
{
    return fma_hx2(a, b, c, 0);
}
AI u32 fma_bx(u32 a, u32 b, u32 c, int flags)
{
    return fma_b(a, b, c, flags & HF_RELU);
}
AI u32 fma_bx2(u32 a, u32 b, u32 c, int flags)
{
    return fma_bx(a & 0xffffu, b & 0xffffu, c & 0xffffu, flags) |
           fma_bx(a >> 16, b >> 16, c >> 16, flags) << 16;
}
AI float xorsign(float r, float x, float y)
{
    return r != r ? r : u2f((f2u(r) & 0x7fffffffu) | ((f2u(x) ^ f2u(y)) & 0x80000000u));
}
AI u32 xorsign_h(u32 a, u32 b, int flags)
{
    u32 x = a & 0x7fffu, y = b & 0x7fffu, inf = flags & HF_BF ? 0x7f80u : 0x7c00u;
    if (flags & HF_FTZ)
        x = ftz_h(x), y = ftz_h(y);
    if (x > inf && y > inf)
        return 0x7fffu;
    if (x > inf || y > inf) {
        if (flags & HF_NAN)
            return 0x7fffu;
        x = x > inf ? y : x;
    } else if (flags & HF_MAX ? y > x : y < x) {
        x = y;
    }
    return x | ((a ^ b) & 0x8000u);
}
AI u32 xorsign_h2(u32 a, u32 b, int flags)
{
    return xorsign_h(a & 0xffffu, b & 0xffffu, flags) | xorsign_h(a >> 16, b >> 16, flags) << 16;
}
AI u32 minmax_relu2(u32 a, u32 b, int max)
{
    u32 r = 0;
    for (int i = 0; i < 32; i += 16) {
        s32 x = (s16)(a >> i), y = (s16)(b >> i), z = (x < y) != (max != 0) ? x : y;
        r |= (u32)(z > 0 ? z : 0) << i;
    }
    return r;
}
/* vabsdiff2 and 4: the pieces, or their sum on top of c */
AI u32 vabsdiff(u32 a, u32 b, u32 c, u32 bits, int add)
{
    u32 r = 0, sum = c, mask = (1u << bits) - 1;
    for (u32 i = 0; i < 32; i += bits) {
        u32 x = a >> i & mask, y = b >> i & mask, d = x < y ? y - x : x - y;
        r |= d << i;
        sum += d;
    }
    return add ? sum : r;
}
/* cvt.pack: two s32 become the lower pieces, c the upper ones */
AI u32 pack_sat(u32 a, u32 b, u32 c, int bits, int is_signed)
{
    s32 lo = is_signed ? -(1 << (bits - 1)) : 0,
        hi = is_signed ? (1 << (bits - 1)) - 1 : (1 << bits) - 1;
    s32 x = (s32)a, y = (s32)b;
    x = x < lo ? lo : x > hi ? hi : x;
    y = y < lo ? lo : y > hi ? hi : y;
    u32 mask = (1u << bits) - 1, r = ((u32)x & mask) << bits | ((u32)y & mask);
    return bits == 16 ? r : c << (2 * bits) | r;
}

/* ---- carry: kind 0 add, 1 sub, 2 mad.lo, 3 mad.hi, 4 the same signed ----
 * c and the carry out are 0 or -1. A difference is x + ~y + 1, so its carry is set when nothing
 * was borrowed: programs that go from sub.cc to addc see that. */
AI u32 S_carry32(u32 kind, u32 x, u32 y, u32 z, s32 c, s32 *out)
{
    u64 t;
    if (kind == 1)
        y = ~y;
    u32 a = kind == 2 ? x * y : kind == 3 ? S_mulhu(x, y) : kind == 4 ? S_mulhs((s32)x, (s32)y) : x;
    t = (u64)a + (kind > 1 ? z : y) + (c ? 1 : 0);
    *out = -(s32)(t >> 32);
    return (u32)t;
}
AI u64 S_carry64(u32 kind, u64 x, u64 y, u64 z, s32 c, s32 *out)
{
    unsigned __int128 t;
    if (kind == 1)
        y = ~y;
    u64 a = kind == 2   ? x * y
            : kind == 3 ? mulhi64_u(x, y)
            : kind == 4 ? mulhi64_s((s64)x, (s64)y)
                        : x;
    t = (unsigned __int128)a + (kind > 1 ? z : y) + (c ? 1 : 0);
    *out = -(s32)(u32)(t >> 64);
    return (u64)t;
}
NI I V_carry32(u32 kind, I x, I y, I z, M c, M *out)
{
    I r;
    for (int i = 0; i < LANES; i++)
        r[i] = S_carry32(kind, x[i], y[i], z[i], c[i], (s32 *)out + i);
    return r;
}
NI Q V_carry64(u32 kind, Q x, Q y, Q z, M c, M *out)
{
    Q r;
    for (int i = 0; i < LANES; i++)
        ((u64 *)&r)[i] =
            S_carry64(kind, ((u64 *)&x)[i], ((u64 *)&y)[i], ((u64 *)&z)[i], c[i], (s32 *)out + i);
    return r;
}

/* ---- 64-bit lanes, and lanes for calls ---- */
AI Q Q_add(Q x, Q y)
{
    return (Q){x.a + y.a, x.b + y.b};
}
AI Q Q_sub(Q x, Q y)
{
    return (Q){x.a - y.a, x.b - y.b};
}
AI Q Q_or(Q x, Q y)
{
    return (Q){x.a | y.a, x.b | y.b};
}
AI Q Q_up(Q x, int n)
{
    return (Q){x.a << n, x.b << n};
}
AI Q Q_down(Q x, int n)
{
    return (Q){x.a >> n, x.b >> n};
}
AI Q Q_local(struct sw_warp *W, int c)
{
    Q r;
    for (int i = 0; i < LANES; i++)
        ((u64 *)&r)[i] = (u64)W->local + W->local_bytes * (u64)(c + i);
    return r;
}
NI I V_cvt3232(u32 how, I x)
{
    I r;
    for (int i = 0; i < LANES; i++)
        r[i] = (u32)R->cvt(how, x[i]);
    return r;
}
NI Q V_cvt3264(u32 how, I x)
{
    Q r;
    for (int i = 0; i < LANES; i++)
        ((u64 *)&r)[i] = R->cvt(how, x[i]);
    return r;
}
NI I V_cvt6432(u32 how, Q x)
{
    I r;
    for (int i = 0; i < LANES; i++)
        r[i] = (u32)R->cvt(how, ((u64 *)&x)[i]);
    return r;
}
NI Q V_cvt6464(u32 how, Q x)
{
    Q r;
    for (int i = 0; i < LANES; i++)
        ((u64 *)&r)[i] = R->cvt(how, ((u64 *)&x)[i]);
    return r;
}
NI void fill32(void *t, u32 x)
{
    for (int c = 0; c < 32; c += LANES)
        I_st(t, c, I_spl(x));
}
NI void fill64(void *t, u64 x)
{
    const Q q = Q_spl(x);
    for (int c = 0; c < 32; c += LANES)
        Q_st(t, c, q);
}
/* ---- base + stride * lane ---- */
AI I I_aff(u32 base, s32 stride, int c)
{
    const I lane = IOTA;
    return (base + (u32)stride * (u32)c) + lane * (u32)stride;
}
NI void aff32(void *t, u32 base, s32 stride)
{
    for (int c = 0; c < 32; c += LANES)
        I_st(t, c, I_aff(base, stride, c));
}
NI void aff64(void *t, u64 base, s64 stride, u32 w, s64 wrap)
{
    for (int i = 0; i < 32; i++)
        ((u64 *)t)[i] = base + (u64)stride * (u64)i + ((w >> i & 1) ? (u64)wrap : 0);
}
NI Q Q_aff(u64 base, s64 stride, u32 w, s64 wrap, int c)
{
    Q r;
    for (int i = 0; i < LANES; i++)
        ((u64 *)&r)[i] = base + (u64)stride * (u64)(c + i) + ((w >> (c + i) & 1) ? (u64)wrap : 0);
    return r;
}
/* Lanes behind the place where 32 bits wrap. */
NI u32 wraps_u(u32 base, s64 stride)
{
    u32 w = 0;
    for (int i = 0; i < 32; i++)
        w |= (u32)((u64)((s64)base + stride * i) >> 32 != 0) << i;
    return w;
}
NI u32 wraps_s(u32 base, s64 stride)
{
    u32 w = 0;
    for (int i = 0; i < 32; i++) {
        s64 x = (s64)(s32)base + stride * i;
        w |= (u32)(x != (s32)x) << i;
    }
    return w;
}
#define WRAPS_U(x, k) (UNLIKELY((u64)((s64)(u32)(x) + 31 * (k)) >> 32) ? wraps_u((u32)(x), k) : 0)
#define WRAPS_S(x, k)                                                                              \
    (UNLIKELY((s64)(s32)(x) + 31 * (k) != (s32)((s64)(s32)(x) + 31 * (k))) ? wraps_s((u32)(x), k)  \
                                                                           : 0)
/* Lanes whose base + lane is below a limit; what is above top wraps. */
NI u32 row_below_wrapped(s64 base, s64 limit, s64 top)
{
    u32 r = 0;
    for (int i = 0; i < 32; i++)
        r |= (u32)((base + i > top ? base + i - 0x100000000ll : base + i) < limit) << i;
    return r;
}
AI u32 row_below(s64 base, s64 limit, s64 top)
{
    s64 n = limit - base;
    if (UNLIKELY(base + 31 > top))
        return row_below_wrapped(base, limit, top);
    return n > 31 ? ~0u : n > 0 ? (1u << n) - 1 : 0;
}
/* ---- memory without a call: where the device has let this instruction go before (abi.h) ---- */
AI F F_ldu(const u8 *p, int c)
{
    typedef F FU __attribute__((aligned(4)));
    return *(const FU *)(p + 4 * c);
}
AI I I_ldu(const u8 *p, int c)
{
    typedef I IU __attribute__((aligned(4)));
    return *(const IU *)(p + 4 * c);
}
/* A chunk of lanes in shared memory: side by side, or at one place (affine_groups.h). */
AI F F_row(const u8 *p)
{
    return F_ldu(p, 0);
}
AI I I_row(const u8 *p)
{
    return I_ldu(p, 0);
}
AI F F_one(const u8 *p)
{
    return F_spl(*(const float *)p);
}
AI I I_one(const u8 *p)
{
    return I_spl(*(const u32 *)p);
}
/* One place for all lanes; base: 0, or shared memory. */
AI u32 one_word(struct sw_warp *W, u32 m, u64 a, s64 off, const u8 *base, u32 site)
{
    struct sw_fast *f = &W->fast[site];
    u64 at = a + (u64)off;
    if (UNLIKELY(at - f->lo >= f->room || at & 3))
        return (u32)R->ldu(W, m, a, site);
    f->hits++;
    f->more += (u64)__builtin_popcount(m);
    return *(const u32 *)(base + at);
}
/* 32 words in a row: where, or 0. */
AI u8 *row_at(struct sw_warp *W, u32 m, u64 a, s64 off, u32 wraps, const u8 *base, u32 site)
{
    struct sw_fast *f = &W->fast[site];
    u64 at = a + (u64)off;
    if (UNLIKELY(at - f->lo >= f->room || at & 3 || ~m || wraps))
        return 0;
    f->hits++;
    f->more += (at & 31) != 0;
    return (u8 *)base + at;
}
/* The checker wants to hear of reads of shared memory; 0: only a call will do. */
AI u32 logged(struct sw_warp *W, u32 m, u64 at, u32 site)
{
    u64 *l = W->log;
    if (l) {
        if (l == W->log_end || ~m)
            return 0;
        *l = at | (u64)site << 32;
        W->log = l + 1;
    }
    return 1;
}
/* The same of shared memory, to read. */
AI u32 one_shared(struct sw_warp *W, u32 m, u64 a, s64 off, const u8 *base, u32 site)
{
    struct sw_fast *f = &W->fast[site];
    u64 at = a + (u64)off;
    if (UNLIKELY(at - f->lo >= f->room || at & 3 || !logged(W, m, at, site)))
        return (u32)R->ldu(W, m, a, site);
    f->hits++;
    return *(const u32 *)(base + at);
}
AI u8 *row_shared(struct sw_warp *W, u32 m, u64 a, s64 off, u32 wraps, const u8 *base, u32 site)
{
    struct sw_fast *f = &W->fast[site];
    u64 at = a + (u64)off;
    if (UNLIKELY(at - f->lo >= f->room || at & 3 || ~m || wraps || !logged(W, m, at, site)))
        return 0;
    f->hits++;
    return (u8 *)base + at;
}
AI void row_copy(u8 *to, const u8 *from)
{
    typedef I IU __attribute__((aligned(4)));
    for (int c = 0; c < 32; c += LANES)
        *(IU *)(to + 4 * c) = *(const IU *)(from + 4 * c);
}
/* The same out of line, where they run once and there are many. */
NI u32 one_word_once(struct sw_warp *W, u32 m, u64 a, s64 off, const u8 *base, u32 site)
{
    return one_word(W, m, a, off, base, site);
}
NI u32 one_shared_once(struct sw_warp *W, u32 m, u64 a, s64 off, const u8 *base, u32 site)
{
    return one_shared(W, m, a, off, base, site);
}
#define LOAD_ROW(name, find, base)                                                                 \
    NI void name(struct sw_warp *W, u32 m, u64 a, s64 off, u32 site, void *to, u32 wraps)          \
    {                                                                                              \
        const u8 *q = find(W, m, a, off, wraps, base, site);                                       \
        if (UNLIKELY(!q))                                                                          \
            R->lda(W, m, a, wraps, site);                                                          \
        else                                                                                       \
            row_copy(to, q);                                                                       \
    }
/* To be read where it lies, or else at `to`. */
#define FIND_ROW(name, find, base)                                                                 \
    NI const u8 *name(struct sw_warp *W, u32 m, u64 a, s64 off, u32 site, u8 *to, u32 wraps)       \
    {                                                                                              \
        const u8 *q = find(W, m, a, off, wraps, base, site);                                       \
        if (UNLIKELY(!q)) {                                                                        \
            R->lda(W, m, a, wraps, site);                                                          \
            q = to;                                                                                \
        }                                                                                          \
        return q;                                                                                  \
    }
#define STORE_ROW(name, base)                                                                      \
    NI void name(struct sw_warp *W, u32 m, u64 a, s64 off, u32 site, const u8 *from, u32 wraps)    \
    {                                                                                              \
        u8 *q = row_at(W, m, a, off, wraps, base, site);                                           \
        if (UNLIKELY(!q))                                                                          \
            R->sta(W, m, a, wraps, site);                                                          \
        else                                                                                       \
            row_copy(q, from);                                                                     \
    }
LOAD_ROW(row_load_at, row_at, (const u8 *)0)
LOAD_ROW(row_load_shared, row_shared, W->b->smem)
FIND_ROW(row_find_at, row_at, (const u8 *)0)
FIND_ROW(row_find_shared, row_shared, W->b->smem)
STORE_ROW(row_store_at, (const u8 *)0)
STORE_ROW(row_store_shared, W->b->smem)
NI void lanes32(void *t, const void *s)
{
    for (int c = 0; c < 32; c += LANES)
        I_st(t, c, Q_nar(Q_ld(s, c)));
}
NI void lanes64(void *t, const void *s)
{
    for (int c = 0; c < 32; c += LANES) {
        const Q q = Q_wu(I_ld(s, c));
        Q_st(t, c, q);
    }
}
NI void put32(void *p, u32 m, u32 x)
{
    for (; m; m &= m - 1)
        ((u32 *)p)[__builtin_ctz(m)] = x;
}
NI void put64(void *p, u32 m, u64 x)
{
    for (; m; m &= m - 1)
        ((u64 *)p)[__builtin_ctz(m)] = x;
}
/* A load or store at one place for all lanes, whose addresses go to `at`. */
NI void ld_one(struct sw_warp *W, u32 m, u32 site, void *at, u64 a)
{
    fill64(at, a);
    R->ld(W, m, site);
}
NI void st_one(struct sw_warp *W, u32 m, u32 site, void *at, u64 a)
{
    fill64(at, a);
    R->st(W, m, site);
}
AI u32 first_lane(u32 m)
{
    return (u32)__builtin_ctz(m);
}

/* Lanes with the mask of the first of them; those whose masks name no other living lane. */
NI u32 same_members(u32 m, const u32 *members)
{
    u32 r = 0, first = members[first_lane(m)];
    for (; m; m &= m - 1)
        r |= (u32)(members[first_lane(m)] == first) << first_lane(m);
    return r;
}
NI u32 all_there(u32 m, u32 live, const u32 *members)
{
    u32 r = 0;
    for (u32 x = m; x; x &= x - 1)
        r |= (u32) !(members[first_lane(x)] & live & ~m) << first_lane(x);
    return r;
}

#if LANES == 4
/* ---- four words of each lane, as they lie in memory ---- */
struct quads {
    I a, b, c, d;
};
/* Rows to columns; its own inverse. */
AI struct quads quads_turn(I r0, I r1, I r2, I r3)
{
    I a = __builtin_shufflevector(r0, r1, 0, 4, 1, 5),
      b = __builtin_shufflevector(r0, r1, 2, 6, 3, 7),
      c = __builtin_shufflevector(r2, r3, 0, 4, 1, 5),
      d = __builtin_shufflevector(r2, r3, 2, 6, 3, 7);
    return (struct quads){
        __builtin_shufflevector(a, c, 0, 1, 4, 5), __builtin_shufflevector(a, c, 2, 3, 6, 7),
        __builtin_shufflevector(b, d, 0, 1, 4, 5), __builtin_shufflevector(b, d, 2, 3, 6, 7)};
}
AI struct quads quads_get(const u8 *q, int c)
{
    const I *p = (const I *)(q + 16 * c);
    return quads_turn(p[0], p[1], p[2], p[3]);
}
AI void quads_put(u8 *q, int c, I r0, I r1, I r2, I r3)
{
    I *p = (I *)(q + 16 * c);
    struct quads t = quads_turn(r0, r1, r2, r3);
    p[0] = t.a;
    p[1] = t.b;
    p[2] = t.c;
    p[3] = t.d;
}
/* What is written at `to` is not read at q, n bytes, by a later chunk. */
AI u32 quads_apart(u64 to, const u8 *q, u32 n)
{
    return (to == (u64)q && n == 512) || (to - (u64)q >= n && (u64)q - to >= 512);
}
/* Four registers in the frame, and what memory would have of them. */
NI u8 *quads_join(u8 *at)
{
    u32 from[128], *to = (u32 *)at;
    for (int i = 0; i < 128; i++)
        from[i] = to[i];
    for (int i = 0; i < 128; i++)
        to[i] = from[i % 4 * 32 + i / 4];
    return at;
}
NI void quads_split(u8 *at)
{
    u32 from[128], *to = (u32 *)at;
    for (int i = 0; i < 128; i++)
        from[i] = to[i];
    for (int i = 0; i < 128; i++)
        to[i % 4 * 32 + i / 4] = from[i];
}
#endif
