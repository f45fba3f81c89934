/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vec.h - lane-parallel C for translated kernels, in compiler vector types.
 *
 * LANES lanes at a time: 4 (16 bytes: NEON and the plain form), 8 (AVX2) or
 * 16 (AVX-512). I u32, S s32, F f32, M mask (0 or -1); Q and D are 64-bit
 * lanes as two vectors, low lanes first. A machine builtin stands only where
 * portable C does not give one instruction.
 */
#if defined(__OPTIMIZE__)
#define AI static inline __attribute__((always_inline, unused))
#else /* without its optimiser gcc takes minutes for what many copies leave behind */
#define AI static __attribute__((unused))
#endif
#define NI static __attribute__((noinline, unused))
#if defined(QUICK) /* there gcc only takes longer over it */
#define UNLIKELY(x) (x)
#else
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#endif
#define AL     __attribute__((aligned(64)))
#define VBYTES (4 * LANES)
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
#if defined(__aarch64__) && LANES == 4
/* Instructions by name, because without its combiner gcc finds none that do more than one thing. */
#define NEON
#define NEON1(op, r, x)    __asm__(op " %0.4s, %1.4s" : "=w"(r) : "w"(x))
#define NEON2(op, r, x, y) __asm__(op " %0.4s, %1.4s, %2.4s" : "=w"(r) : "w"(x), "w"(y))
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
/* No functions: gcc -Og would copy both vectors through memory on their way. x is a name. */
#define Q_AT(p, c) ((VQ *)((u64 *)(void *)(p) + (c)))
#define Q_ld(p, c) ((Q){Q_AT(p, c)[0], Q_AT(p, c)[1]})
AI void I_st(void *p, int c, I x)
{
    *(I *)((u32 *)p + c) = x;
}
AI void F_st(void *p, int c, F x)
{
    *(F *)((u32 *)p + c) = x;
}
#define Q_st(p, c, x)                                                                              \
    do {                                                                                           \
        Q_AT(p, c)[0] = (x).a;                                                                     \
        Q_AT(p, c)[1] = (x).b;                                                                     \
    } while (0)
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
#if defined(NEON)
    I b = (I){0} + (bits >> c);
    M r;
    NEON2("cmtst", r, b, w);
    return r;
#else
    return (M)((((I){0} + (bits >> c)) & w) != 0);
#endif
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
#elif defined(NEON)
    const I w = BITW;
    I x = (I)m & w;
    u32 r;
    __asm__("addv %s1, %1.4s\n\tfmov %w0, %s1" : "=r"(r), "+w"(x));
    return r;
#else
    const I w = BITW;
    I x = (I)m & w;
    u32 r = 0;
    for (int i = 0; i < LANES; i++)
        r |= x[i];
    return r;
#endif
}
AI u32 M_any(M m)
{
#if defined(NEON)
    u64 r;
    __asm__("xtn %1.4h, %1.4s\n\tfmov %x0, %d1" : "=r"(r), "+w"(m));
    return r != 0;
#elif LANES == 4 && !defined(__SSE__)
    VQ q = (VQ)m;
    return (q[0] | q[1]) != 0;
#else
    return M_bits(m) != 0;
#endif
}
/* Lanes of two masks: 0 where there are none, and how many. */
AI u64 M_pair(M x, M y)
{
#if defined(NEON)
    u64 r;
    __asm__("uzp1 %1.8h, %1.8h, %2.8h\n\txtn %1.8b, %1.8h\n\tfmov %x0, %d1"
            : "=r"(r), "+w"(x)
            : "w"(y));
    return r;
#else
    return M_bits(x) | M_bits(y) << LANES;
#endif
}
AI u32 pair_lanes(u64 pair)
{
#if defined(NEON)
    return (u32)((pair & 0x0101010101010101ull) * 0x0101010101010101ull >> 56);
#else
    return (u32)__builtin_popcountll(pair);
#endif
}
NI u32 I_total(I x)
{
    u32 r = 0;
    for (int i = 0; i < LANES; i++)
        r += ((const u32 *)&x)[i];
    return r;
}
/* Into the frame, of the lanes m (mv) alone. */
#if defined(__AVX512F__) && LANES == 16
typedef int put16 __attribute__((vector_size(64)));
typedef long long put8 __attribute__((vector_size(64)));
AI void I_put(void *p, int c, M mv, u32 m, I x)
{
    (void)mv;
    __builtin_ia32_movdqa32store512_mask((put16 *)((u32 *)p + c), (put16)x, (u16)(m >> c));
}
AI void F_put(void *p, int c, M mv, u32 m, F x)
{
    I_put(p, c, mv, m, (I)x);
}
AI void Q_put(void *p, int c, M mv, u32 m, Q x)
{
    put8 *q = (put8 *)((u64 *)p + c);
    (void)mv;
    __builtin_ia32_movdqa64store512_mask(q, (put8)x.a, (u8)(m >> c));
    __builtin_ia32_movdqa64store512_mask(q + 1, (put8)x.b, (u8)(m >> (c + 8)));
}
#else
#define I_put(p, c, mv, m, x) I_st(p, c, sel_I(mv, x, I_ld(p, c)))
#define F_put(p, c, mv, m, x) F_st(p, c, sel_F(mv, x, F_ld(p, c)))
#define Q_put(p, c, mv, m, x)                                                                      \
    do {                                                                                           \
        const Q q_put = sel_Q(mv, x, Q_ld(p, c));                                                  \
        Q_st(p, c, q_put);                                                                         \
    } while (0)
#endif
#if defined(NEON)
AI I sel_I(M m, I x, I y)
{
    __asm__("bit %0.16b, %1.16b, %2.16b" : "+w"(y) : "w"(x), "w"(m));
    return y;
}
AI F sel_F(M m, F x, F y)
{
    return (F)sel_I(m, (I)x, (I)y);
}
AI M sel_M(M m, M x, M y)
{
    return (M)sel_I(m, (I)x, (I)y);
}
#else
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
#endif
AI Q Q_ws(I x)
{
#if defined(NEON)
    Q r;
    __asm__("sxtl %0.2d, %1.2s" : "=w"(r.a) : "w"(x));
    __asm__("sxtl2 %0.2d, %1.4s" : "=w"(r.b) : "w"(x));
    return r;
#endif
    return (Q){(VQ) __builtin_convertvector((HS)LO_HALF((S)x), VT),
               (VQ) __builtin_convertvector((HS)HI_HALF((S)x), VT)};
}
AI Q Q_wu(I x)
{
#if defined(NEON)
    Q r;
    __asm__("uxtl %0.2d, %1.2s" : "=w"(r.a) : "w"(x));
    __asm__("uxtl2 %0.2d, %1.4s" : "=w"(r.b) : "w"(x));
    return r;
#endif
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
#if defined(NEON)
    return (Q){(VQ)sel_I((M)w.a, (I)x.a, (I)y.a), (VQ)sel_I((M)w.b, (I)x.b, (I)y.b)};
#endif
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
