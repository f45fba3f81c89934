/*
 * vec.h - lane-parallel C for translated kernels, in compiler vector types.
 *
 * LANES lanes at a time: 4 (16 bytes: NEON and the plain form), 8 (AVX2) or
 * 16 (AVX-512). I u32, S s32, F f32, M mask (0 or -1); Q and D are 64-bit
 * lanes as two vectors, low lanes first. A machine builtin stands only where
 * portable C does not give one instruction.
 */
#define AI          static inline __attribute__((always_inline, unused))
#define NI          static __attribute__((noinline, unused))
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define AL          __attribute__((aligned(64)))
#define VBYTES      (4 * LANES)
typedef u32 I __attribute__((vector_size(VBYTES)));
typedef s32 S __attribute__((vector_size(VBYTES)));
typedef s32 M __attribute__((vector_size(VBYTES)));
typedef float F __attribute__((vector_size(VBYTES)));
typedef u64 VQ __attribute__((vector_size(VBYTES)));
typedef s64 VT __attribute__((vector_size(VBYTES)));
typedef double VD __attribute__((vector_size(VBYTES)));
typedef u32 HI __attribute__((vector_size(VBYTES / 2)));
typedef s32 HS __attribute__((vector_size(VBYTES / 2)));
typedef float HF __attribute__((vector_size(VBYTES / 2)));
typedef u16 HU16 __attribute__((vector_size(VBYTES / 2)));
typedef struct {
    VQ a, b;
} Q;
typedef struct {
    VT a, b;
} T;
typedef struct {
    VD a, b;
} D;
#if LANES == 4
#define LO_HALF(x)  __builtin_shufflevector(x, x, 0, 1)
#define HI_HALF(x)  __builtin_shufflevector(x, x, 2, 3)
#define JOIN(x, y)  __builtin_shufflevector(x, y, 0, 1, 2, 3)
#define EVENS(x, y) __builtin_shufflevector(x, y, 0, 2, 4, 6)
#define IOTA                                                                                       \
    {                                                                                              \
        0, 1, 2, 3                                                                                 \
    }
#define BITW                                                                                       \
    {                                                                                              \
        1, 2, 4, 8                                                                                 \
    }
#elif LANES == 8
#define LO_HALF(x)  __builtin_shufflevector(x, x, 0, 1, 2, 3)
#define HI_HALF(x)  __builtin_shufflevector(x, x, 4, 5, 6, 7)
#define JOIN(x, y)  __builtin_shufflevector(x, y, 0, 1, 2, 3, 4, 5, 6, 7)
#define EVENS(x, y) __builtin_shufflevector(x, y, 0, 2, 4, 6, 8, 10, 12, 14)
#define IOTA                                                                                       \
    {                                                                                              \
        0, 1, 2, 3, 4, 5, 6, 7                                                                     \
    }
#define BITW                                                                                       \
    {                                                                                              \
        1, 2, 4, 8, 16, 32, 64, 128                                                                \
    }
#else
#define LO_HALF(x) __builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7)
#define HI_HALF(x) __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15)
#define JOIN(x, y)                                                                                 \
    __builtin_shufflevector(x, y, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#define EVENS(x, y)                                                                                \
    __builtin_shufflevector(x, y, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)
#define IOTA                                                                                       \
    {                                                                                              \
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15                                       \
    }
#define BITW                                                                                       \
    {                                                                                              \
        1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768                \
    }
#endif
static const struct sw_ops *R;

/* ---- bits of scalars ---- */
AI float u2f(u32 u)
{
    union {
        u32 u;
        float f;
    } c = {u};
    return c.f;
}
AI u32 f2u(float f)
{
    union {
        float f;
        u32 u;
    } c = {f};
    return c.u;
}
AI double u2d(u64 u)
{
    union {
        u64 u;
        double f;
    } c = {u};
    return c.f;
}
AI u64 d2u(double f)
{
    union {
        double f;
        u64 u;
    } c = {f};
    return c.u;
}
#define SMASK(c)  (-(u32)(c))
#define SMASKQ(c) (-(u64)(c))
#define VMASK(c)  ((I)(c))
#define VMASKQ(c) ((VQ)(c))

/* ---- load, store, splat ---- */
AI I I_ld(const void *p, int c)
{
    return *(const I *)((const u32 *)p + c);
}
AI F F_ld(const void *p, int c)
{
    return *(const F *)((const u32 *)p + c);
}
AI Q Q_ld(const void *p, int c)
{
    const VQ *q = (const VQ *)((const u64 *)p + c);
    return (Q){q[0], q[1]};
}
AI void I_st(void *p, int c, I x)
{
    *(I *)((u32 *)p + c) = x;
}
AI void F_st(void *p, int c, F x)
{
    *(F *)((u32 *)p + c) = x;
}
AI void Q_st(void *p, int c, Q x)
{
    VQ *q = (VQ *)((u64 *)p + c);
    q[0] = x.a;
    q[1] = x.b;
}
AI I I_spl(u32 x)
{
    return (I){0} + x;
}
AI F F_spl(float x)
{
    return (F)((I){0} + f2u(x));
}
AI Q Q_spl(u64 x)
{
    VQ v = (VQ){0} + x;
    return (Q){v, v};
}
AI M M_spl(s32 x)
{
    return (M){0} + x;
}
AI M M_ld(u32 bits, int c)
{
    const I w = BITW;
    return (M)((((I){0} + (bits >> c)) & w) != 0);
}
AI u32 M_bits(M m)
{
#if defined(__AVX512F__) && defined(__AVX512DQ__) && LANES == 16
    typedef int v16 __attribute__((vector_size(64)));
    return (u32)(u16)__builtin_ia32_cvtd2mask512((v16)m);
#elif defined(__AVX__) && LANES == 8
    return (u32)__builtin_ia32_movmskps256((F)m);
#elif defined(__SSE__) && LANES == 4
    return (u32)__builtin_ia32_movmskps((F)m);
#else
    const I w = BITW;
    I x = (I)m & w;
    u32 r = 0;
    for (int i = 0; i < LANES; i++)
        r |= x[i];
    return r;
#endif
}
AI I sel_I(M m, I x, I y)
{
    return ((I)m & x) | (~(I)m & y);
}
AI F sel_F(M m, F x, F y)
{
    return (F)(((I)m & (I)x) | (~(I)m & (I)y));
}
AI M sel_M(M m, M x, M y)
{
    return (m & x) | (~m & y);
}
AI Q Q_ws(I x)
{
    return (Q){(VQ) __builtin_convertvector((HS)LO_HALF((S)x), VT),
               (VQ) __builtin_convertvector((HS)HI_HALF((S)x), VT)};
}
AI Q Q_wu(I x)
{
    return (Q){__builtin_convertvector((HI)LO_HALF(x), VQ),
               __builtin_convertvector((HI)HI_HALF(x), VQ)};
}
AI I Q_nar(Q x)
{
    return (I)EVENS((I)x.a, (I)x.b);
}
AI M Q_narm(VQ a, VQ b)
{
    return (M)EVENS((I)a, (I)b);
}
AI Q sel_Q(M m, Q x, Q y)
{
    Q w = Q_ws((I)m);
    return (Q){(w.a & x.a) | (~w.a & y.a), (w.b & x.b) | (~w.b & y.b)};
}
AI D Q2D(Q x)
{
    return (D){(VD)x.a, (VD)x.b};
}
AI Q D2Q(D x)
{
    return (Q){(VQ)x.a, (VQ)x.b};
}

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
#if defined(__AVX512F__) && LANES == 16
    return (F)__builtin_ia32_sqrtps512_mask(x, x, (u16)-1, 4);
#elif defined(__AVX__) && LANES == 8
    return (F)__builtin_ia32_sqrtps256(x);
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
NI F V_fmin(F x, F y)
{
    M nx = x != x, ny = y != y;
    F r = sel_F((M)(x < y) | ny, x, y);
    r = sel_F((M)(x == y), (F)((I)x | (I)y), r);
    return sel_F(nx & ny, (F)((I){0} + 0x7fffffffu), r);
}
NI F V_fmax(F x, F y)
{
    M nx = x != x, ny = y != y;
    F r = sel_F((M)(x > y) | ny, x, y);
    r = sel_F((M)(x == y), (F)((I)x & (I)y), r);
    return sel_F(nx & ny, (F)((I){0} + 0x7fffffffu), r);
}
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
/* what the approximate f64 instructions look at */
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
    M big = (M)((((I)y & 0x7fffffffu) - 0x7e800001u) < 0x00ffffffu);
    return sel_F(big, x * (F)((I)y & 0x80000000u), x / y);
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
#else
    F r = V_rint(x), a = (F)((I)x & 0x7fffffffu), ra = (F)((I)r & 0x7fffffffu);
    r = sel_F((M)(ra > a), (F)((I)(ra - 1.0f) | ((I)x & 0x80000000u)), r);
    return r;
#endif
}
NI F V_floor(F x)
{
    F r = V_rint(x);
    F d = r - 1.0f;
    return sel_F((M)(r > x), d, r);
}
NI F V_ceil(F x)
{
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

/* 2^x to 2 ulp, also into the subnormals. */
NI F V_ex2(F x)
{
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
#if defined(__F16C__) && LANES == 8
    typedef short v8h __attribute__((vector_size(16)));
    return (F)__builtin_ia32_vcvtph2ps256((v8h) __builtin_convertvector(h, HU16));
#else
    I s = (h & 0x8000u) << 16, a = h & 0x7fffu;
    F r = (F)(a << 13) * 5.192296858534828e33f; /* 2^112 */
    M inf = (M)(a >= 0x7c00u);
    r = sel_F(inf, (F)((a << 13) | 0x7f800000u), r);
    return (F)((I)r | s);
#endif
}
NI I V_f2h(F x)
{
    I u = (I)x, s = (u >> 16) & 0x8000u, a = u & 0x7fffffffu;
    I odd = (a >> 13) & 1u;
    I norm = (a - 0x38000000u + 0xfffu + odd) >> 13;
    I sub = (I)((F)a + 0.5f) - 0x3f000000u;
    I r = sel_I((M)(a < 0x38800000u), sub, norm);
    r = sel_I((M)(a >= 0x477ff000u), (I){0} + 0x7c00u, r);
    r = r | s;
    return sel_I((M)(a > 0x7f800000u), (I){0} + 0x7fffu, r);
}
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
/* unlike the 32-bit forms these look at all bits of p and n */
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
/* Half-precision fma: the exact sum fits a double whenever the result is finite. */
AI float fma_h(u32 a, u32 b, u32 c)
{
    double d = (double)S_h2f(a) * (double)S_h2f(b) + (double)S_h2f(c);
    float f = (float)d;
    u32 u = f2u(f);
    /* Round to odd on the way down, so that the second rounding is the only one. */
    if ((double)f != d && f == f && (u & 0x7f800000u) != 0x7f800000u) {
        int away = (d > 0) == ((double)f > d);
        if (d != 0 && away)
            u -= 1;
        u |= 1;
    }
    return u2f(u);
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
    float f = (float)d;
    u32 u = f2u(f);
    if ((double)f != d && f == f && (u & 0x7f800000u) != 0x7f800000u) {
        int away = (d > 0) == ((double)f > d);
        if (d != 0 && away)
            u -= 1;
        u |= 1;
    }
    u32 r = S_f2b(u2f(u));
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
    for (int c = 0; c < 32; c += LANES)
        Q_st(t, c, Q_spl(x));
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
NI void lanes32(void *t, const void *s)
{
    for (int c = 0; c < 32; c += LANES)
        I_st(t, c, Q_nar(Q_ld(s, c)));
}
NI void lanes64(void *t, const void *s)
{
    for (int c = 0; c < 32; c += LANES)
        Q_st(t, c, Q_wu(I_ld(s, c)));
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
AI u32 first_lane(u32 m)
{
    return (u32)__builtin_ctz(m);
}

/* ---- waiting lanes (emit.c): out of line, because every block has some ---- */
struct waits {
    u32 *pend, *cw;   /* per block: lanes that wait to run it; parked at its collective */
    u64 *pset, *cset; /* which of them are not 0 */
    int low, words, turn;
};
#define SET(s, b)   ((s)[(b) >> 6] |= 1ull << ((b)&63))
#define UNSET(s, b) ((s)[(b) >> 6] &= ~(1ull << ((b)&63)))
NI int lowest(const u64 *s, int n)
{
    for (int i = 0; i < n; i++)
        if (s[i])
            return i * 64 + __builtin_ctzll(s[i]);
    return 1 << 30;
}
NI void wait_at(struct waits *d, int b, u32 lanes)
{
    d->pend[b] |= lanes;
    SET(d->pset, b);
    if (b < d->low)
        d->low = b;
}
/* Lanes that wait for this block join; 0: others go first. */
NI u32 meet_at(struct waits *d, int b, u32 m)
{
    if (d->low != b) {
        wait_at(d, b, m);
        return 0;
    }
    m |= d->pend[b];
    d->pend[b] = 0;
    UNSET(d->pset, b);
    d->low = lowest(d->pset, d->words);
    return m;
}
NI void park_at(struct waits *d, int b, u32 m)
{
    d->cw[b] = m;
    SET(d->cset, b);
}
NI u32 unpark(struct waits *d, int b)
{
    u32 m = d->cw[b];
    d->cw[b] = 0;
    UNSET(d->cset, b);
    return m;
}
#define HEAD(b)                                                                                    \
    if (UNLIKELY(D.low <= (b)) && !(m = meet_at(&D, b, m)))                                        \
        goto next;
#define HEAD_ALL(b)                                                                                \
    if (UNLIKELY(lowest(D.cset, NW) < NB)) {                                                       \
        wait_at(&D, b, m);                                                                         \
        goto next;                                                                                 \
    }                                                                                              \
    HEAD(b)
#define COUNT(b)                                                                                   \
    C[2 * (b)]++;                                                                                  \
    C[2 * (b) + 1] += (u64)__builtin_popcount(m);
