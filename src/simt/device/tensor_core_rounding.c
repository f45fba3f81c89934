/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensor_core_rounding.c - one element of a matrix product with the rounding of tensor cores.
 *
 * A tensor core takes the products of a step of k and the accumulator, shifts
 * each to the largest exponent among them, drops what falls below a fixed
 * number of fraction bits, adds the rest exactly and cuts the sum to f32. The
 * exponent of a product is the sum of its factors' exponents, whether or not
 * its value reaches 2. The number of products per step and of bits kept depends on the GPU; here
 * they are the H200's (tests/simt/hardware.txt). m8n8k4 of f16, which no machine since sm_70 has in
 * hardware, is only summed exactly.
 *
 * wgmma takes all products of an instruction in one step. With factors of 8
 * bits it keeps 13 fraction bits, in the terms and in the sum
 * (tests/simt/hopper/h200.def).
 */
#include "simt/device/tensor_core.h"

#include "simt/device/convert.h"

#include <string.h>

struct addend {
    int64_t sig; /* signed */
    int exp;     /* the value is sig * 2^(exp - frac) */
    int frac;
};

enum what { FINITE, INFINITE, NOT_A_NUMBER };

static const struct element_form {
    enum ptx_type type;
    int exp_bits, frac_bits;
} forms[] = {
    {PT_F16, 5, 10}, {PT_BF16, 8, 7}, {PT_TF32, 8, 10},
    {PT_F32, 8, 23}, {PT_E4M3, 4, 3}, {PT_E5M2, 5, 2},
};

/* How the H200 does it. */
enum { KEEPS = 25, KEEPS_F8 = 13 }; /* fraction bits below the largest exponent */

static int step_of(const struct mma_shape *s)
{
    if (s->a == PT_TF32)
        return s->op == MMA_WMMA_ROW ? 4 : 8;
    return 16;
}

static enum what read_element(enum ptx_type t, uint32_t bits, struct addend *out)
{
    const struct element_form *f = forms;
    while (f->type != t)
        f++;
    if (t == PT_TF32)
        bits >>= 13;
    int top = (1 << f->exp_bits) - 1, bias = top >> 1;
    int e = (int)(bits >> f->frac_bits) & top;
    int64_t frac = (int64_t)(bits & ((1u << f->frac_bits) - 1));
    bool neg = bits >> (f->exp_bits + f->frac_bits) & 1;
    *out = (struct addend){0, 0, f->frac_bits};
    if (t == PT_E4M3) {
        if (e == top && frac == 7)
            return NOT_A_NUMBER;
    } else if (e == top) {
        out->sig = neg ? -1 : 1;
        return frac ? NOT_A_NUMBER : INFINITE;
    }
    out->sig = e ? frac | (int64_t)1 << f->frac_bits : frac;
    out->exp = (e ? e : 1) - bias;
    if (neg)
        out->sig = -out->sig;
    return FINITE;
}

static int64_t cut(int64_t x, int shift)
{
    if (shift <= 0)
        return -shift > 40 ? 0 : x * ((int64_t)1 << -shift);
    if (shift > 62)
        return 0;
    return x < 0 ? -(-x >> shift) : x >> shift;
}

/* sum * 2^(exp - keeps) cut to f32, or rounded to the nearest f16. */
static uint32_t to_float(int64_t sum, int exp, int keeps, bool half)
{
    uint64_t mag = sum < 0 ? (uint64_t)-sum : (uint64_t)sum;
    int frac = half ? 10 : 23, least = half ? -14 : -126, most = half ? 15 : 127;
    uint32_t sign = sum < 0 ? (half ? 0x8000u : 0x80000000u) : 0;
    uint32_t inf = half ? 0x7c00u : 0x7f800000u;
    if (!mag)
        return 0;
    int top = 63 - __builtin_clzll(mag), e = exp - keeps + top; /* mag is 2^top and more */
    if (e > most)
        return sign | inf;
    int last = (e < least ? least : e) - frac, shift = last - (exp - keeps);
    uint64_t m = shift <= 0 ? mag << -shift : shift > 63 ? 0 : mag >> shift;
    if (half && shift > 0 && shift <= 63) {
        uint64_t rest = mag & ((UINT64_C(1) << shift) - 1), tie = UINT64_C(1) << (shift - 1);
        m += rest > tie || (rest == tie && (m & 1));
    }
    if (half && !m)
        return 0;
    /* The hidden bit adds one to the exponent. */
    return sign | (uint32_t)(((uint64_t)(e < least ? 0 : e - least) << frac) + m);
}

/* Terms of one step, and what is not finite among them. */
struct terms {
    struct addend p[33];
    int count, largest;
    bool nan, pos, neg;
};

static void term_add(struct terms *t, enum what wx, struct addend x, enum what wy, struct addend y)
{
    if (wx == NOT_A_NUMBER || wy == NOT_A_NUMBER) {
        t->nan = true;
    } else if (wx == INFINITE || wy == INFINITE) {
        int64_t sg = x.sig * y.sig;
        t->nan |= sg == 0;
        t->pos |= sg > 0;
        t->neg |= sg < 0;
    } else if (x.sig && y.sig) {
        struct addend *p = &t->p[t->count++];
        *p = (struct addend){x.sig * y.sig, x.exp + y.exp, x.frac + y.frac};
        t->largest = p->exp > t->largest ? p->exp : t->largest;
    }
}

static uint32_t terms_sum(const struct terms *t, int keeps, bool half)
{
    if (t->nan || (t->pos && t->neg))
        return half ? 0x7fffu : 0x7fffffffu;
    if (t->pos || t->neg)
        return half ? (t->pos ? 0x7c00u : 0xfc00u) : t->pos ? 0x7f800000u : 0xff800000u;
    int64_t sum = 0;
    for (int i = 0; i < t->count; i++)
        sum += cut(t->p[i].sig, t->p[i].frac - keeps + (t->largest - t->p[i].exp));
    return to_float(sum, t->largest, keeps, half);
}

static uint32_t one_step(const struct mma_shape *s, const uint32_t *a, const uint32_t *b, int n,
                         uint32_t c, bool half)
{
    struct terms t = {.largest = -100000};
    struct addend x, y;
    for (int i = 0; i < n; i++) {
        enum what wx = read_element(s->a, a[i], &x), wy = read_element(s->b, b[i], &y);
        term_add(&t, wx, x, wy, y);
    }
    term_add(&t, read_element(PT_F32, c, &x), x, FINITE, (struct addend){1, 0, 0});
    return terms_sum(&t, KEEPS, half);
}

struct exact_factor exact_factor(enum ptx_type type, float value)
{
    const struct element_form *f = forms;
    struct addend x;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    enum what w = read_element(PT_F32, bits, &x);
    while (f->type != type)
        f++;
    int least = 2 - (1 << (f->exp_bits - 1)), down = x.exp < least ? least - x.exp : 0;
    if (w == FINITE) {
        /* The bits below the type's fraction are zero. */
        x.sig /= (int64_t)1 << (23 - f->frac_bits + (down > 24 ? 24 : down));
        x.exp += down;
        x.frac = f->frac_bits;
    }
    return (struct exact_factor){(int32_t)x.sig, (int16_t)x.exp, (uint8_t)x.frac, (uint8_t)w};
}

static struct addend part_of(const struct exact_factor *x)
{
    return (struct addend){x->sig, x->exp, x->frac};
}

/* Products of finite factors, one loop to find the largest exponent, one to add. */
static uint32_t finite_sum(const struct exact_factor *a, const struct exact_factor *b, int k,
                           struct addend c, int keeps, bool half)
{
    int64_t sum = 0;
    int largest = c.sig ? c.exp : -100000, frac = a[0].frac + b[0].frac;
    for (int i = 0; i < k; i++) {
        int e = a[i].exp + b[i].exp;
        if (a[i].sig && b[i].sig && e > largest)
            largest = e;
    }
    for (int i = 0; i < k; i++)
        sum += cut((int64_t)a[i].sig * b[i].sig, frac - keeps + largest - a[i].exp - b[i].exp);
    sum += c.sig ? cut(c.sig, c.frac - keeps + (largest - c.exp)) : 0;
    return to_float(sum, largest, keeps, half);
}

uint32_t wgmma_exact(const struct exact_factor *a, const struct exact_factor *b, int k, uint32_t c,
                     bool f8, bool half)
{
    struct addend acc;
    enum what wc = read_element(PT_F32, c, &acc);
    int keeps = f8 ? KEEPS_F8 : KEEPS;
    unsigned odd = wc;
    uint32_t sum;
    for (int i = 0; i < k; i++)
        odd |= (unsigned)a[i].what | b[i].what;
    if (!odd) {
        sum = finite_sum(a, b, k, acc, keeps, half);
    } else {
        struct terms t = {.largest = -100000};
        for (int i = 0; i < k; i++)
            term_add(&t, (enum what)a[i].what, part_of(&a[i]), (enum what)b[i].what,
                     part_of(&b[i]));
        term_add(&t, wc, acc, FINITE, (struct addend){1, 0, 0});
        sum = terms_sum(&t, keeps, half);
    }
    /* Nothing to cut from what is not finite. */
    bool finite = (sum & 0x7f800000u) != 0x7f800000u;
    return f8 && !half && finite ? sum & ~((1u << (23 - KEEPS_F8)) - 1) : sum;
}

/* f8 goes through the f16 units: first the lower pair of every four, then the
 * upper one, and the accumulator is added last. */
static uint32_t f8_sum(const struct mma_shape *s, const uint32_t *a, const uint32_t *b, uint32_t c)
{
    struct mma_shape half = *s;
    uint32_t x[32], y[32], sum = 0;
    float f, g;
    half.a = half.b = PT_F16;
    for (int k = 0; k < 32; k++) {
        int at = k % 4 / 2 * 16 + k / 4 * 2 + k % 2;
        x[at] = (uint32_t)convert_bits((uint32_t)PT_F16 | (uint32_t)s->a << 8, a[k]);
        y[at] = (uint32_t)convert_bits((uint32_t)PT_F16 | (uint32_t)s->b << 8, b[k]);
    }
    for (int k = 0; k < 32; k += 16)
        sum = one_step(&half, x + k, y + k, 16, sum, false);
    memcpy(&f, &sum, sizeof f);
    memcpy(&g, &c, sizeof g);
    f += g;
    memcpy(&sum, &f, sizeof f);
    return sum;
}

uint32_t tensor_exact(const struct mma_shape *s, const uint32_t *a, const uint32_t *b, uint32_t c)
{
    int step = step_of(s);
    bool half = s->d == PT_F16 && s->c == PT_F16;
    if (s->a == PT_E4M3 || s->a == PT_E5M2)
        return f8_sum(s, a, b, c);
    for (int k = 0; k < s->k; k += step) {
        int n = s->k - k < step ? s->k - k : step;
        c = one_step(s, a + k, b + k, n, c, half && k + step >= s->k);
    }
    /* wmma from f32 to f16 is an f32 product and a conversion */
    return s->d == PT_F16 && !half
               ? (uint32_t)convert_bits((uint32_t)PT_F16 | (uint32_t)PT_F32 << 8, c)
               : c;
}
