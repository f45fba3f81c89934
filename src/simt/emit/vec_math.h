/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vec_math.h - arithmetic and conversions of LANES lanes, after vec.h.
 *
 * S_ is of one lane, V_ of a vector.
 */
/* ---- arithmetic that C has no operator for ---- */
AI float S_fma(float x, float y, float z)
{
    return __builtin_fmaf(x, y, z);
}
AI F V_fma(F x, F y, F z)
{
#if defined(__AVX512F__) && LANES == 16
    return (F)__builtin_ia32_vfmaddps512_mask(x, y, z, (u16)-1, 4);
#elif defined(__FMA__) && LANES == 8
    return (F)__builtin_ia32_vfmaddps256(x, y, z);
#elif defined(__FMA__) && LANES == 4
    return (F)__builtin_ia32_vfmaddps(x, y, z);
#elif defined(NEON) && !defined(__clang__)
    return (F)__builtin_aarch64_fmav4sf(x, y, z);
#elif defined(__aarch64__) && LANES == 4
    __asm__("fmla %0.4s, %1.4s, %2.4s" : "+w"(z) : "w"(x), "w"(y));
    return z;
#else
    F r;
    for (int i = 0; i < LANES; i++)
        r[i] = __builtin_fmaf(x[i], y[i], z[i]);
    return r;
#endif
}
/* y the same for all lanes */
AI F V_fma_one(F x, float y, F z)
{
#if defined(NEON)
    __asm__("fmla %0.4s, %1.4s, %2.s[0]" : "+w"(z) : "w"(x), "w"(y));
    return z;
#else
    return V_fma(x, F_spl(y), z);
#endif
}
/* The same into a sum that has a machine register of its own (emit_accumulators.c). */
#if defined(NEON)
#define SUM_IN(n)          __asm__("v" #n)
#define V_sum_one(z, x, y) __asm__("fmla %0.4s, %1.4s, %2.s[0]" : "+w"(z) : "w"(x), "w"(y))
#else
#define SUM_IN(n)
#define V_sum_one(z, x, y) (z = V_fma_one(x, y, z))
#endif
AI double S_fmad(double x, double y, double z)
{
    return __builtin_fma(x, y, z);
}
AI VD V_fmad(VD x, VD y, VD z)
{
#if defined(__AVX512F__) && LANES == 16
    return (VD)__builtin_ia32_vfmaddpd512_mask(x, y, z, (u8)-1, 4);
#elif defined(__FMA__) && LANES == 8
    return (VD)__builtin_ia32_vfmaddpd256(x, y, z);
#elif defined(__aarch64__) && LANES == 4
    __asm__("fmla %0.2d, %1.2d, %2.2d" : "+w"(z) : "w"(x), "w"(y));
    return z;
#else
    VD r;
    for (int i = 0; i < LANES / 2; i++)
        r[i] = __builtin_fma(x[i], y[i], z[i]);
    return r;
#endif
}
AI float S_sqrt(float x)
{
    return __builtin_sqrtf(x);
}
AI F V_sqrt(F x)
{
#if defined(__AVX512F__) && LANES == 16 && defined(__clang__)
    return (F)__builtin_ia32_sqrtps512(x, 4);
#elif defined(__AVX512F__) && LANES == 16
    return (F)__builtin_ia32_sqrtps512_mask(x, x, (u16)-1, 4);
#elif defined(__AVX__) && LANES == 8
    return (F)__builtin_ia32_sqrtps256(x);
#elif defined(NEON)
    F r;
    NEON1("fsqrt", r, x);
    return r;
#else
    F r;
    for (int i = 0; i < LANES; i++)
        r[i] = __builtin_sqrtf(x[i]);
    return r;
#endif
}
AI u64 S_mulws(s32 x, s32 y)
{
    return (u64)((s64)x * y);
}
AI u64 S_mulwu(u32 x, u32 y)
{
    return (u64)x * y;
}
AI Q V_mulws(S x, S y)
{
#if defined(NEON)
    Q r;
    __asm__("smull %0.2d, %1.2s, %2.2s" : "=w"(r.a) : "w"(x), "w"(y));
    __asm__("smull2 %0.2d, %1.4s, %2.4s" : "=w"(r.b) : "w"(x), "w"(y));
    return r;
#endif
    Q a = Q_ws((I)x), b = Q_ws((I)y);
#if defined(__AVX2__) && LANES == 8
    typedef int v8 __attribute__((vector_size(32)));
    return (Q){(VQ)__builtin_ia32_pmuldq256((v8)a.a, (v8)b.a),
               (VQ)__builtin_ia32_pmuldq256((v8)a.b, (v8)b.b)};
#else
    return (Q){a.a * b.a, a.b * b.b};
#endif
}
AI Q V_mulwu(I x, I y)
{
#if defined(NEON)
    Q r;
    __asm__("umull %0.2d, %1.2s, %2.2s" : "=w"(r.a) : "w"(x), "w"(y));
    __asm__("umull2 %0.2d, %1.4s, %2.4s" : "=w"(r.b) : "w"(x), "w"(y));
    return r;
#endif
    Q a = Q_wu(x), b = Q_wu(y);
#if defined(__AVX2__) && LANES == 8
    typedef int v8 __attribute__((vector_size(32)));
    return (Q){(VQ)__builtin_ia32_pmuludq256((v8)a.a, (v8)b.a),
               (VQ)__builtin_ia32_pmuludq256((v8)a.b, (v8)b.b)};
#else
    return (Q){a.a * b.a, a.b * b.b};
#endif
}
AI u32 S_mulhs(s32 x, s32 y)
{
    return (u32)((u64)((s64)x * y) >> 32);
}
AI u32 S_mulhu(u32 x, u32 y)
{
    return (u32)(((u64)x * y) >> 32);
}
AI I V_mulhs(S x, S y)
{
    Q p = V_mulws(x, y);
    return Q_nar((Q){p.a >> 32, p.b >> 32});
}
AI I V_mulhu(I x, I y)
{
    Q p = V_mulwu(x, y);
    return Q_nar((Q){p.a >> 32, p.b >> 32});
}

/* Of integers: one instruction on NEON, which gcc does not find. */
#if defined(NEON)
#define PICK(r, x, y, less, neon) NEON2(neon, r, x, y)
#else
#define PICK(r, x, y, less, neon) r = ((I)(x less y) & (I)x) | (~(I)(x less y) & (I)y)
#endif
#define MIN_MAX_LANE(name, type, less)                                                             \
    AI u32 name(type x, type y)                                                                    \
    {                                                                                              \
        return (u32)(x less y ? x : y);                                                            \
    }
#define MIN_MAX(name, vector, less, neon)                                                          \
    AI I name(vector x, vector y)                                                                  \
    {                                                                                              \
        I r;                                                                                       \
        PICK(r, x, y, less, neon);                                                                 \
        return r;                                                                                  \
    }
MIN_MAX_LANE(S_mins, s32, <)
MIN_MAX_LANE(S_minu, u32, <)
MIN_MAX_LANE(S_maxs, s32, >)
MIN_MAX_LANE(S_maxu, u32, >)
MIN_MAX(V_mins, S, <, "smin")
MIN_MAX(V_minu, I, <, "umin")
MIN_MAX(V_maxs, S, >, "smax")
MIN_MAX(V_maxu, I, >, "umax")

/* PTX min and max: a NaN loses, -0 is below +0, two NaNs give the canonical one. */
NI float S_fmin(float x, float y)
{
    if (x != x && y != y)
        return u2f(0x7fffffff);
    if (x == y)
        return u2f(f2u(x) | f2u(y));
    return (x < y || y != y) ? x : y;
}
NI float S_fmax(float x, float y)
{
    if (x != x && y != y)
        return u2f(0x7fffffff);
    if (x == y)
        return u2f(f2u(x) & f2u(y));
    return (x > y || y != y) ? x : y;
}
#if defined(NEON)
AI F V_fmin(F x, F y)
{
    F r;
    NEON2("fminnm", x, x, x); /* a signalling NaN would win */
    NEON2("fminnm", y, y, y);
    NEON2("fminnm", r, x, y);
    return r;
}
#else
NI F V_fmin(F x, F y)
{
    M nx = x != x, ny = y != y;
#if defined(__AVX512DQ__) && LANES == 16
    F a = (F)__builtin_ia32_rangeps512_mask(x, y, 4, x, (u16)-1, 4);
    a = sel_F(ny, x, sel_F(nx, y, a)); /* a signalling NaN would win */
    return sel_F(nx & ny, (F)((I){0} + 0x7fffffffu), a);
#else
    F r = sel_F((M)(x < y) | ny, x, y);
    r = sel_F((M)(x == y), (F)((I)x | (I)y), r);
    return sel_F(nx & ny, (F)((I){0} + 0x7fffffffu), r);
#endif
}
#endif
#if defined(NEON)
AI F V_fmax(F x, F y)
{
    F r;
    NEON2("fmaxnm", x, x, x); /* a signalling NaN would win */
    NEON2("fmaxnm", y, y, y);
    NEON2("fmaxnm", r, x, y);
    return r;
}
#else
NI F V_fmax(F x, F y)
{
    M nx = x != x, ny = y != y;
#if defined(__AVX512DQ__) && LANES == 16
    F a = (F)__builtin_ia32_rangeps512_mask(x, y, 5, x, (u16)-1, 4);
    a = sel_F(ny, x, sel_F(nx, y, a)); /* a signalling NaN would win */
    return sel_F(nx & ny, (F)((I){0} + 0x7fffffffu), a);
#else
    F r = sel_F((M)(x > y) | ny, x, y);
    r = sel_F((M)(x == y), (F)((I)x & (I)y), r);
    return sel_F(nx & ny, (F)((I){0} + 0x7fffffffu), r);
#endif
}
#endif
AI float S_fminn(float x, float y)
{
    return x != x || y != y ? u2f(0x7fffffff) : S_fmin(x, y);
}
AI float S_fmaxn(float x, float y)
{
    return x != x || y != y ? u2f(0x7fffffff) : S_fmax(x, y);
}
NI F V_fminn(F x, F y)
{
    return sel_F((M)(x != x) | (M)(y != y), (F)((I){0} + 0x7fffffffu), V_fmin(x, y));
}
NI F V_fmaxn(F x, F y)
{
    return sel_F((M)(x != x) | (M)(y != y), (F)((I){0} + 0x7fffffffu), V_fmax(x, y));
}
AI float S_rsqrt(float x)
{
    return 1.0f / __builtin_sqrtf(x);
}
AI F V_rsqrt(F x)
{
    return 1.0f / V_sqrt(x);
}
AI float S_tanh(float x)
{
    return R->math(SW_TANH, x);
}
NI F V_tanh(F x)
{
    F r;
    for (int i = 0; i < LANES; i++)
        r[i] = R->math(SW_TANH, x[i]);
    return r;
}
AI float S_ftz(float x)
{
    return (f2u(x) & 0x7f800000u) ? x : u2f(f2u(x) & 0x80000000u);
}
AI F V_ftz(F x)
{
    M z = (M)(((I)x & 0x7f800000u) == 0);
    return (F)((I)x & ~((I)z & 0x7fffffffu));
}
/* The same for what was an f16 (result: 0) or becomes one. A result counts as
 * subnormal when it would be with as many bits and any exponent. */
AI float S_ftzh(float x, int result)
{
    return (f2u(x) & 0x7fffffffu) < (result ? 0x387ff000u : 0x38800000u) ? u2f(f2u(x) & 0x80000000u)
                                                                         : x;
}
AI F V_ftzh(F x, int result)
{
    I u = (I)x;
    return (F)(u & ((I)((u & 0x7fffffffu) >= (result ? 0x387ff000u : 0x38800000u)) | 0x80000000u));
}
/* r flushed if scaled, the same result times 2^64, is below the normal numbers */
AI float tiny_ftz(float r, float scaled)
{
    return (f2u(scaled) & 0x7fffffffu) < 0x20800000u ? u2f(f2u(r) & 0x80000000u) : r;
}
AI float S_mulftz(float x, float y)
{
    return tiny_ftz(x * y, x * 0x1p64f * y);
}
AI F V_mulftz(F x, F y)
{
    F r = x * y, scaled = x * 0x1p64f * y;
    M z = (M)(((I)scaled & 0x7fffffffu) < 0x20800000u);
    return (F)((I)r & ~((I)z & 0x7fffffffu));
}
AI double ftz_d(double x)
{
    return d2u(x) & 0x7ff0000000000000ull ? x : u2d(d2u(x) & 0x8000000000000000ull);
}
/* the bits that the approximate f64 instructions use */
AI double upper_d(double x)
{
    return u2d(d2u(x) & 0xffffffff00000000ull);
}
/* The reciprocal of a divisor above 2^126 is flushed to zero. */
AI float S_divapprox(float x, float y)
{
    return (f2u(y) & 0x7fffffffu) - 0x7e800001u < 0x00ffffffu ? x * u2f(f2u(y) & 0x80000000u)
                                                              : x / y;
}
AI F V_divapprox(F x, F y)
{
#if defined(NEON)
    /* times 0 for those, else 1: nothing waits for the comparison */
    F limit = (F){0} + 0x1p126f;
    I small;
    NEON2("facge", small, limit, y);
    return x / y * (F)(small & 0x3f800000u);
#else
    M big = (M)((((I)y & 0x7fffffffu) - 0x7e800001u) < 0x00ffffffu);
    return sel_F(big, x * (F)((I)y & 0x80000000u), x / y);
#endif
}
AI float S_satf(float x)
{
    return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f;
}
NI F V_satf(F x)
{
    F one = (F){0} + 1.0f;
    F r = sel_F((M)(x < one), x, one);
    return (F)((I)(M)(x > 0.0f) & (I)r);
}
/* Rounds to the nearest integer, halves to even, by the largest exact float. */
AI F V_rint(F x)
{
#if defined(__AVX512F__) && LANES == 16
    return (F)__builtin_ia32_rndscaleps_mask(x, 8, x, (u16)-1, 4);
#elif defined(__AVX__) && LANES == 8
    return (F)__builtin_ia32_roundps256(x, 8);
#elif defined(NEON)
    F r;
    NEON1("frintn", r, x);
    return r;
#else
    F big = (F)(((I)x & 0x80000000u) | 0x4b000000u);
    F r = (x + big) - big;
    M small = (M)(((I)x & 0x7fffffffu) < 0x4b000000u);
    return sel_F(small, (F)((I)r | ((I)x & 0x80000000u)), x);
#endif
}
AI float S_rint(float x)
{
    return __builtin_rintf(x);
}
AI F V_trunc(F x)
{
#if defined(__AVX512F__) && LANES == 16
    return (F)__builtin_ia32_rndscaleps_mask(x, 11, x, (u16)-1, 4);
#elif defined(__AVX__) && LANES == 8
    return (F)__builtin_ia32_roundps256(x, 11);
#elif defined(NEON)
    F r;
    NEON1("frintz", r, x);
    return r;
#else
    F r = V_rint(x), a = (F)((I)x & 0x7fffffffu), ra = (F)((I)r & 0x7fffffffu);
    r = sel_F((M)(ra > a), (F)((I)(ra - 1.0f) | ((I)x & 0x80000000u)), r);
    return r;
#endif
}
NI F V_floor(F x)
{
#if defined(NEON)
    NEON1("frintm", x, x);
    return x;
#endif
    F r = V_rint(x);
    F d = r - 1.0f;
    return sel_F((M)(r > x), d, r);
}
NI F V_ceil(F x)
{
#if defined(NEON)
    NEON1("frintp", x, x);
    return x;
#endif
    F r = V_rint(x);
    F d = r + 1.0f;
    return sel_F((M)(r < x), (F)((I)d | ((I)x & 0x80000000u)), r);
}
AI float S_trunc(float x)
{
    return __builtin_truncf(x);
}
AI float S_floor(float x)
{
    return __builtin_floorf(x);
}
AI float S_ceil(float x)
{
    return __builtin_ceilf(x);
}

/* Quotients and remainders; nothing is divided by 0. */
AI u32 S_divs(s32 x, s32 y)
{
    return y == 0 ? ~0u : y == -1 ? 0u - (u32)x : (u32)(x / y);
}
AI u32 S_divu(u32 x, u32 y)
{
    return y == 0 ? ~0u : x / y;
}
AI u32 S_rems(s32 x, s32 y)
{
    return y == 0 ? ~0u : y == -1 ? 0u : (u32)(x % y);
}
AI u32 S_remu(u32 x, u32 y)
{
    return y == 0 ? ~0u : x % y;
}
#if defined(NEON)
/* In f64: a quotient of 32 bits that is not an integer is further from the next one than the 53
 * bits of its rounding. */
#define QUOTIENT(x, y, q, wide, to, from)                                                          \
    do {                                                                                           \
        Q a_ = wide(x), b_ = wide(y);                                                              \
        __asm__(to " %0.2d, %0.2d\n\t" to " %1.2d, %1.2d\n\tfdiv %0.2d, %0.2d, %1.2d\n\t" from     \
                   " %0.2d, %0.2d"                                                                 \
                : "+w"(a_.a), "+w"(b_.a));                                                         \
        __asm__(to " %0.2d, %0.2d\n\t" to " %1.2d, %1.2d\n\tfdiv %0.2d, %0.2d, %1.2d\n\t" from     \
                   " %0.2d, %0.2d"                                                                 \
                : "+w"(a_.b), "+w"(b_.b));                                                         \
        q = Q_nar(a_);                                                                             \
    } while (0)
NI I V_divs(S x, S y)
{
    I q;
    QUOTIENT((I)x, (I)y, q, Q_ws, "scvtf", "fcvtzs");
    return q | (I)(y == 0);
}
NI I V_divu(I x, I y)
{
    I q;
    QUOTIENT(x, y, q, Q_wu, "ucvtf", "fcvtzu");
    return q | (I)(y == 0);
}
NI I V_rems(S x, S y)
{
    I q;
    QUOTIENT((I)x, (I)y, q, Q_ws, "scvtf", "fcvtzs");
    return ((I)x - q * (I)y) | (I)(y == 0);
}
NI I V_remu(I x, I y)
{
    I q;
    QUOTIENT(x, y, q, Q_wu, "ucvtf", "fcvtzu");
    return (x - q * y) | (I)(y == 0);
}
#else
#define EACH_LANE(name, lane, V)                                                                   \
    NI I name(V x, V y)                                                                            \
    {                                                                                              \
        I r;                                                                                       \
        for (int i = 0; i < LANES; i++)                                                            \
            r[i] = lane(x[i], y[i]);                                                               \
        return r;                                                                                  \
    }
EACH_LANE(V_divs, S_divs, S)
EACH_LANE(V_divu, S_divu, I)
EACH_LANE(V_rems, S_rems, S)
EACH_LANE(V_remu, S_remu, I)
#endif

/* 2^x to 2 ulp, also into the subnormals. */
#if defined(NEON)
#define EACH(x)                                                                                    \
    {                                                                                              \
        x, x, x, x                                                                                 \
    }
static const F ex2_sum[] = {EACH(1.33322754e-3f), EACH(5.55041343e-2f), EACH(6.93147180e-1f),
                            EACH(1.0f)};
/* fmla overwrites what it adds to. A constant comes from memory each time: to copy a register takes
 * the vector units longer than the sum itself. */
AI F V_fma_of(F x, F y, const F *z)
{
    F r;
    __asm__("ldr %q0, %3\n\tfmla %0.4s, %1.4s, %2.4s" : "=&w"(r) : "w"(x), "w"(y), "m"(*z));
    return r;
}
/* The whole part is even and half of it scales twice; the sum is long enough for parts from -1 to
 * 1, and exact at both. It is added in pairs, since what uses it waits for it. Inside the segment
 * where gcc puts several of them side by side. */
AI F ex2_of(F x)
{
    F lo = (F){0} - 151.0f, hi = (F){0} + 128.5f, even = (F){0} + 0x1.8p24f;
    NEON2("fmax", x, x, lo);
    NEON2("fmin", x, x, hi);
    F t = x + even, f = x - (t - even);
    F f2 = f * f;
    F low = V_fma_of(f, (F){0} + 2.40226653e-1f, &ex2_sum[2]),
      mid = V_fma_of(f, (F){0} + 9.61696212e-3f, &ex2_sum[1]),
      high = V_fma_of(f, (F){0} + 1.56363954e-4f, &ex2_sum[0]);
    high = V_fma((F){0} + 1.54575505e-5f, f2, high);
    low = V_fma(mid, f2, low);
    F p = V_fma_of(V_fma(high, f2 * f2, low), f, &ex2_sum[3]);
    F s = (F)(((I)t << 23) + 0x3f800000u);
    return p * s * s;
}
#if defined(SCHEDULED)
AI F V_ex2(F x)
{
    return ex2_of(x);
}
#else
NI F V_ex2(F x)
{
    return ex2_of(x);
}
#endif
#else
NI F V_ex2(F x)
{
#if defined(__AVX512F__) && LANES == 16
    F whole = V_rint(x), part = x - whole;
    F s = (F){0} + 1.535336188319500e-4f;
    s = V_fma(s, part, (F){0} + 1.339887440266574e-3f);
    s = V_fma(s, part, (F){0} + 9.618437357674640e-3f);
    s = V_fma(s, part, (F){0} + 5.550332471162809e-2f);
    s = V_fma(s, part, (F){0} + 2.402264791363012e-1f);
    s = V_fma(s, part, (F){0} + 6.931472028550421e-1f);
    s = V_fma(s, part, (F){0} + 1.0f);
    /* infinities have no part: the one operand that scales decides */
    s = sel_F((M)(part != part), (F){0} + 1.0f, s);
    return (F)__builtin_ia32_scalefps512_mask(s, whole, s, (u16)-1, 4);
#endif
    F lo = (F){0} - 151.0f, hi = (F){0} + 128.5f;
    F y = sel_F((M)(x < lo), lo, x);
    y = sel_F((M)(y > hi), hi, y);
    F n = V_rint(y), f = y - n;
    S i = __builtin_convertvector(n, S);
    F p = (F){0} + 1.535336188319500e-4f;
    p = V_fma(p, f, (F){0} + 1.339887440266574e-3f);
    p = V_fma(p, f, (F){0} + 9.618437357674640e-3f);
    p = V_fma(p, f, (F){0} + 5.550332471162809e-2f);
    p = V_fma(p, f, (F){0} + 2.402264791363012e-1f);
    p = V_fma(p, f, (F){0} + 6.931472028550421e-1f);
    p = V_fma(p, f, (F){0} + 1.0f);
    S h = i >> 1, k = i - h;
    F r = p * (F)((h + 127) << 23) * (F)((k + 127) << 23);
    return sel_F((M)(x != x), x, r);
}
#endif
AI float S_ex2(float x)
{
    F v = F_spl(x);
    return V_ex2(v)[0];
}

/* ---- conversions ---- */
AI F V_s2f(I x)
{
    return __builtin_convertvector((S)x, F);
}
NI F V_u2f(I x)
{
#if LANES == 16
    return __builtin_convertvector(x, F);
#elif defined(NEON)
    F r;
    NEON1("ucvtf", r, x);
    return r;
#else
    /* Two exact halves and one rounding. */
    F hi = __builtin_convertvector((S)(x >> 16), F) * 65536.0f;
    F lo = __builtin_convertvector((S)(x & 0xffffu), F);
    return hi + lo;
#endif
}
/* NaN gives 0, out of range saturates. x is already rounded to an integer. */
NI I V_f2s(F x)
{
#if defined(NEON)
    I n;
    NEON1("fcvtzs", n, x);
    return n;
#endif
    M big = (M)(x >= 2147483648.0f), nan = (M)(x != x), low = (M)(x < -2147483648.0f);
    F safe = (F)((I)x & ~(I)(big | nan | low));
    I r = (I) __builtin_convertvector(safe, S);
    r = sel_I(big, (I){0} + 0x7fffffffu, r);
    return sel_I(low, (I){0} + 0x80000000u, r);
}
AI u32 S_f2s(float x)
{
    return x != x               ? 0
           : x >= 2147483648.0f ? 0x7fffffffu
           : x < -2147483648.0f ? 0x80000000u
                                : (u32)(s32)x;
}
NI I V_f2u(F x)
{
#if defined(NEON)
    I n;
    NEON1("fcvtzu", n, x);
    return n;
#endif
    M neg = (M)(x < 0.0f), nan = (M)(x != x), over = (M)(x >= 4294967296.0f),
      up = (M)(x >= 2147483648.0f);
    F y = sel_F(up, x - 2147483648.0f, x);
    y = (F)((I)y & ~(I)(neg | nan | over));
    I r = (I) __builtin_convertvector(y, S) + ((I)up & 0x80000000u);
    r = (I)(r & ~(I)(neg | nan));
    return r | (I)over;
}
AI u32 S_f2u(float x)
{
    return x != x || x < 0 ? 0 : x >= 4294967296.0f ? 0xffffffffu : (u32)x;
}

NI float S_h2f(u32 h)
{
    u32 s = (h & 0x8000u) << 16, e = (h >> 10) & 31, f = h & 1023;
    if (e == 31)
        return u2f(s | 0x7f800000u | f << 13);
    if (e)
        return u2f(s | (e + 112) << 23 | f << 13);
    float r = (float)f * 5.9604644775390625e-08f;
    return u2f(f2u(r) | s);
}
NI u32 S_f2h(float x)
{
    u32 u = f2u(x), s = (u >> 16) & 0x8000u, a = u & 0x7fffffffu;
    if (a > 0x7f800000u)
        return 0x7fff;
    if (a >= 0x477ff000u)
        return s | 0x7c00u;
    if (a < 0x38800000u) { /* subnormal: let the adder round */
        float r = u2f(a) + 0.5f;
        return s | (f2u(r) - 0x3f000000u);
    }
    u32 odd = (a >> 13) & 1;
    return s | ((a - 0x38000000u + 0xfffu + odd) >> 13);
}
AI F V_h2f(I h)
{
#if defined(__AVX512F__) && LANES == 16
    typedef short v16h __attribute__((vector_size(32)));
    return (F)__builtin_ia32_vcvtph2ps512_mask((v16h) __builtin_convertvector(h, HU16), (F){0},
                                               (u16)-1, 4);
#elif defined(__F16C__) && LANES == 8
    typedef short v8h __attribute__((vector_size(16)));
    return (F)__builtin_ia32_vcvtph2ps256((v8h) __builtin_convertvector(h, HU16));
#elif defined(NEON)
    F r;
    __asm__("xtn %0.4h, %1.4s\n\tfcvtl %0.4s, %0.4h" : "=w"(r) : "w"(h));
    return r;
#else
    I s = (h & 0x8000u) << 16, a = h & 0x7fffu;
    F r = (F)(a << 13) * 5.192296858534828e33f; /* 2^112 */
    M inf = (M)(a >= 0x7c00u);
    r = sel_F(inf, (F)((a << 13) | 0x7f800000u), r);
    return (F)((I)r | s);
#endif
}
#if defined(__F16C__) && (LANES == 8 || (LANES == 16 && defined(__AVX512F__)))
AI I V_f2h(F x)
{
#if LANES == 16
    typedef short v16h __attribute__((vector_size(32)));
    HU16 n = (HU16)__builtin_ia32_vcvtps2ph512_mask(x, 0, (v16h){0}, (u16)-1);
#else
    HU16 n = (HU16)__builtin_ia32_vcvtps2ph256(x, 0);
#endif
    return sel_I((M)(x == x), __builtin_convertvector(n, I), (I){0} + 0x7fffu);
}
#else
NI I V_f2h(F x)
{
#if defined(NEON)
    I n;
    __asm__("fcvtn %0.4h, %1.4s\n\tuxtl %0.4s, %0.4h" : "=&w"(n) : "w"(x));
    return sel_I((M)(x == x), n, (I){0} + 0x7fffu);
#endif
    I u = (I)x, s = (u >> 16) & 0x8000u, a = u & 0x7fffffffu;
    I odd = (a >> 13) & 1u;
    I norm = (a - 0x38000000u + 0xfffu + odd) >> 13;
    I sub = (I)((F)a + 0.5f) - 0x3f000000u;
    I r = sel_I((M)(a < 0x38800000u), sub, norm);
    r = sel_I((M)(a >= 0x477ff000u), (I){0} + 0x7c00u, r);
    r = r | s;
    return sel_I((M)(a > 0x7f800000u), (I){0} + 0x7fffu, r);
}
#endif
AI float S_b2f(u32 b)
{
    return u2f(b << 16);
}
AI F V_b2f(I b)
{
    return (F)(b << 16);
}
AI u32 S_f2b(float x)
{
    u32 u = f2u(x);
    if ((u & 0x7fffffffu) > 0x7f800000u)
        return 0x7fff;
    return (u + 0x7fffu + ((u >> 16) & 1)) >> 16;
}
AI I V_f2b(F x)
{
    I u = (I)x, r = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    return sel_I((M)((u & 0x7fffffffu) > 0x7f800000u), (I){0} + 0x7fffu, r);
}
