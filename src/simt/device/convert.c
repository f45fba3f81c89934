/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convert.c - cvt, one value at a time, with every rounding mode.
 *
 * A source becomes an exact value (an integer, or a double that holds every
 * f32, f16, bf16 and f8 exactly) and is then rounded once into the result.
 */
#include "simt/device/convert.h"

#include <math.h>
#include <string.h>

enum { ROUND_RN, ROUND_RZ, ROUND_RM, ROUND_RP, ROUND_RNA };
/* A conversion: the result's type, the source's type, the rounding, flags. */
enum { CODE_TYPE = 0xff, CODE_FROM_SHIFT = 8, CODE_ROUND_SHIFT = 16, CODE_ROUND = 7 };
enum {
    CODE_SAT = 1 << 20,
    CODE_FTZ = 1 << 21,
    CODE_RELU = 1 << 22,
    CODE_INT = 1 << 23,
    CODE_FINITE = 1 << 24,
    CODE_OK = 1 << 30
};

static const struct float_form {
    enum ptx_type type;
    int exp_bits, frac_bits;
    bool no_inf;   /* e4m3: the top exponent holds numbers */
    bool all_real; /* no NaN either: every code is a number */
} forms[] = {
    {PT_F16, 5, 10, false, false},  {PT_BF16, 8, 7, false, false},  {PT_F32, 8, 23, false, false},
    {PT_F64, 11, 52, false, false}, {PT_TF32, 8, 10, false, false}, {PT_E4M3, 4, 3, true, false},
    {PT_E5M2, 5, 2, false, false},  {PT_E3M2, 3, 2, true, true},    {PT_E2M3, 2, 3, true, true},
    {PT_E2M1, 2, 1, true, true},    {PT_UE8M0, 8, 0, true, false},
};

static const struct float_form *form_of(enum ptx_type t)
{
    for (size_t i = 0; i < ARRAY_LEN(forms); i++)
        if (forms[i].type == t)
            return &forms[i];
    return NULL;
}

static bool type_signed(enum ptx_type t)
{
    return t == PT_S8 || t == PT_S16 || t == PT_S32 || t == PT_S64;
}

static bool type_int(enum ptx_type t)
{
    return type_signed(t) || t == PT_U8 || t == PT_U16 || t == PT_U32 || t == PT_U64 ||
           t == PT_B8 || t == PT_B16 || t == PT_B32 || t == PT_B64;
}

/* f16x2 and the like convert their halves as f16. */
static enum ptx_type half_type(enum ptx_type t)
{
    switch (t) {
    case PT_F16X2:
        return PT_F16;
    case PT_BF16X2:
        return PT_BF16;
    case PT_E4M3X2:
        return PT_E4M3;
    case PT_E5M2X2:
        return PT_E5M2;
    case PT_E3M2X2:
        return PT_E3M2;
    case PT_E2M3X2:
        return PT_E2M3;
    case PT_E2M1X2:
        return PT_E2M1;
    case PT_UE8M0X2:
        return PT_UE8M0;
    default:
        return t;
    }
}

uint32_t convert_code(const struct insn *in)
{
    static const struct {
        enum ptx_mod mod;
        uint32_t bits;
    } mods[] = {
        {MOD_RN, ROUND_RN << CODE_ROUND_SHIFT},
        {MOD_RZ, ROUND_RZ << CODE_ROUND_SHIFT},
        {MOD_RM, ROUND_RM << CODE_ROUND_SHIFT},
        {MOD_RP, ROUND_RP << CODE_ROUND_SHIFT},
        {MOD_RNA, ROUND_RNA << CODE_ROUND_SHIFT},
        {MOD_RNI, ROUND_RN << CODE_ROUND_SHIFT | CODE_INT},
        {MOD_RZI, ROUND_RZ << CODE_ROUND_SHIFT | CODE_INT},
        {MOD_RMI, ROUND_RM << CODE_ROUND_SHIFT | CODE_INT},
        {MOD_RPI, ROUND_RP << CODE_ROUND_SHIFT | CODE_INT},
        {MOD_SAT, CODE_SAT},
        {MOD_FTZ, CODE_FTZ},
        {MOD_RELU, CODE_RELU},
        {MOD_SATFINITE, CODE_FINITE},
    };
    uint32_t code = (uint32_t)CODE_OK | (uint32_t)in->type2 | (uint32_t)in->type << CODE_FROM_SHIFT;
    enum ptx_type to = half_type(in->type2), from = half_type(in->type);
    if ((!type_int(to) && !form_of(to)) || (!type_int(from) && !form_of(from)))
        return 0;
    for (int i = 0; i < in->mod_count; i++) {
        bool known = ptx_mod_type(in->mods[i]) != PT_NONE;
        for (size_t m = 0; m < ARRAY_LEN(mods); m++)
            if (in->mods[i] == mods[m].mod) {
                code |= mods[m].bits;
                known = true;
            }
        if (!known)
            return 0;
    }
    return code;
}

/* ---- reading a float of any form as a double ---- */

static double bits_double(uint64_t u)
{
    double d;
    memcpy(&d, &u, sizeof d);
    return d;
}

static double float_value(const struct float_form *f, uint64_t bits)
{
    if (f->type == PT_F64)
        return bits_double(bits);
    if (f->type == PT_F32 || f->type == PT_TF32) {
        uint32_t u = (uint32_t)bits;
        float x;
        memcpy(&x, &u, sizeof x);
        return (double)x;
    }
    if (f->type == PT_UE8M0)
        return (bits & 255) == 255 ? (double)NAN : ldexp(1.0, (int)(bits & 255) - 127);
    int width = 1 + f->exp_bits + f->frac_bits, bias = (1 << (f->exp_bits - 1)) - 1;
    uint64_t frac = bits & ((UINT64_C(1) << f->frac_bits) - 1);
    int top = (1 << f->exp_bits) - 1, exp = (int)(bits >> f->frac_bits) & top;
    double sign = bits >> (width - 1) & 1 ? -1.0 : 1.0;
    if (exp == top && !f->no_inf)
        return frac ? (double)NAN : sign * (double)INFINITY;
    if (exp == top && f->no_inf && !f->all_real && frac == (UINT64_C(1) << f->frac_bits) - 1)
        return (double)NAN;
    double m = ldexp((double)frac, -f->frac_bits);
    return exp ? sign * ldexp(1.0 + m, exp - bias) : sign * ldexp(m, 1 - bias);
}

/* ---- rounding ---- */

static double round_to_integer(double x, uint32_t mode)
{
    switch (mode) {
    case ROUND_RZ:
        return trunc(x);
    case ROUND_RM:
        return floor(x);
    case ROUND_RP:
        return ceil(x);
    case ROUND_RNA:
        return round(x);
    default:
        return nearbyint(x);
    }
}

/* The power of two of a scale, toward zero or up; the sign does not count. */
static uint64_t scale_bits(double x, uint32_t code)
{
    uint64_t most = code & CODE_FINITE ? 254 : 255;
    double a = fabs(x);
    if (isnan(x))
        return 255;
    if (isinf(x))
        return most;
    if (a <= 0x1p-127)
        return 0;
    int e;
    double m = frexp(a, &e); /* a = m * 2^e, m in [0.5, 1) */
    uint64_t r = (uint64_t)(e - 1 + 127);
    if ((code >> CODE_ROUND_SHIFT & CODE_ROUND) == ROUND_RP && m != 0.5)
        r++;
    return r < most ? r : most;
}

/* x, exact, into a form; the result's bits. sticky: something below x was lost. */
static uint64_t float_bits(const struct float_form *f, double x, uint32_t code)
{
    if (f->type == PT_UE8M0)
        return scale_bits(x, code);
    uint32_t mode = code >> CODE_ROUND_SHIFT & CODE_ROUND;
    int width = 1 + f->exp_bits + f->frac_bits, bias = (1 << (f->exp_bits - 1)) - 1;
    int top = (1 << f->exp_bits) - 1;
    uint64_t sign = (uint64_t)(signbit(x) != 0) << (width - 1);
    uint64_t frac_mask = (UINT64_C(1) << f->frac_bits) - 1;
    uint64_t inf = (uint64_t)top << f->frac_bits, largest = f->all_real ? inf | frac_mask
                                                            : f->no_inf ? inf | (frac_mask - 1)
                                                                        : inf - 1;
    if (isnan(x)) {
        if (f->all_real)
            return largest; /* positive */
        if (f->type == PT_TF32 || f->type == PT_F32)
            return 0x7fffffffu;
        if (f->type == PT_F64)
            return UINT64_C(0x7fffffffffffffff);
        return f->no_inf ? inf | frac_mask : inf | frac_mask;
    }
    if ((code & CODE_RELU) && signbit(x))
        return 0;
    if (isinf(x)) {
        uint64_t r = code & CODE_FINITE || f->no_inf ? largest : inf;
        return f->type == PT_TF32 ? (sign | r) << 13 : sign | r;
    }
    double a = fabs(x);
    int e;
    if (a == 0)
        return f->type == PT_TF32 ? sign << 13 : sign;
    (void)frexp(a, &e);
    e -= 1; /* a = 1.xxx * 2^e */
    if (e < 1 - bias)
        e = 1 - bias;
    double scaled = ldexp(a, f->frac_bits - e); /* exact: below 2^(frac_bits + 1) */
    uint32_t magnitude_mode = mode;
    if (sign && mode == ROUND_RM)
        magnitude_mode = ROUND_RP;
    else if (sign && mode == ROUND_RP)
        magnitude_mode = ROUND_RM;
    uint64_t m = (uint64_t)round_to_integer(scaled, magnitude_mode);
    uint64_t r = ((uint64_t)(e + bias - 1) << f->frac_bits) + m; /* the hidden bit adds one */
    if (r > largest) {
        bool away = mode == ROUND_RN || mode == ROUND_RNA || (mode == ROUND_RP && !sign) ||
                    (mode == ROUND_RM && sign);
        r = code & CODE_FINITE || f->no_inf || !away ? largest : inf;
    }
    if (f->type == PT_TF32) /* kept in the upper bits of an f32 */
        return (sign | r) << 13;
    return sign | r;
}

static double flushed(double x, enum ptx_type t, uint32_t code)
{
    if ((code & CODE_FTZ) && (t == PT_F32 || t == PT_BF16) && fabs(x) < 0x1p-126)
        return signbit(x) ? -0.0 : 0.0;
    return x;
}

static uint64_t double_to_int(double x, enum ptx_type to, enum ptx_type from, uint32_t mode)
{
    int bits = 8 * (int)ptx_type_bytes(to);
    if (isnan(x)) /* the smallest signed number where either side has 64 bits */
        return bits != 64 && from != PT_F64 ? 0
               : type_signed(to)            ? ~UINT64_C(0) << (bits - 1)
                                            : UINT64_C(1) << (bits - 1);
    x = round_to_integer(x, mode);
    if (type_signed(to)) {
        double lim = ldexp(1.0, bits - 1);
        int64_t v = x >= lim   ? (int64_t)((UINT64_C(1) << (bits - 1)) - 1)
                    : x < -lim ? (int64_t)(~UINT64_C(0) << (bits - 1))
                               : (int64_t)x;
        return (uint64_t)v;
    }
    double lim = ldexp(1.0, bits);
    return x >= lim ? ~UINT64_C(0) >> (64 - bits) : x <= 0 ? 0 : (uint64_t)x;
}

/* An integer rounded once into a float form, also beyond 53 bits. */
static uint64_t int_to_float(uint64_t bits, bool is_signed, const struct float_form *f,
                             uint32_t code)
{
    bool neg = is_signed && (int64_t)bits < 0;
    if (code & CODE_SAT)
        return float_bits(f, neg || !bits ? 0 : 1, code);
    uint64_t mag = neg ? 0 - bits : bits;
    /* Round to odd at 53 bits: the rounding into the form sees what was lost. */
    int shift = mag >> 53 ? 11 - __builtin_clzll(mag) : 0;
    uint64_t kept = shift > 0 ? mag >> shift : mag;
    if (f->type == PT_F64 && shift > 0) {
        uint32_t mode = code >> CODE_ROUND_SHIFT & CODE_ROUND;
        uint64_t rest = mag & ((UINT64_C(1) << shift) - 1), half = UINT64_C(1) << (shift - 1);
        bool up = mode == ROUND_RN
                      ? rest > half || (rest == half && (kept & 1))
                      : (mode == ROUND_RP && !neg && rest) || (mode == ROUND_RM && neg && rest);
        double d = ldexp((double)(kept + up), shift);
        d = neg ? -d : d;
        uint64_t u;
        memcpy(&u, &d, sizeof u);
        return u;
    }
    if (shift > 0 && (mag & ((UINT64_C(1) << shift) - 1)))
        kept |= 1;
    double d = ldexp((double)kept, shift > 0 ? shift : 0);
    return float_bits(f, neg ? -d : d, code);
}

static uint64_t int_to_int(uint64_t bits, enum ptx_type from, enum ptx_type to, uint32_t code)
{
    int w = 8 * (int)ptx_type_bytes(to);
    if (code & CODE_SAT) {
        int64_t s = (int64_t)bits;
        if (type_signed(to)) {
            int64_t hi = (int64_t)(~UINT64_C(0) >> (65 - w)), lo = -hi - 1;
            if (!type_signed(from) && bits > (uint64_t)hi)
                return (uint64_t)hi;
            s = s > hi ? hi : s < lo ? lo : s;
            return (uint64_t)s;
        }
        if (type_signed(from) && s < 0)
            return 0;
        uint64_t hi = ~UINT64_C(0) >> (64 - w);
        return bits > hi ? hi : bits;
    }
    if (w == 64)
        return bits;
    uint64_t low = bits & (~UINT64_C(0) >> (64 - w));
    return type_signed(to) && low >> (w - 1) ? low | ~UINT64_C(0) << w : low;
}

static uint64_t convert_one(enum ptx_type to, enum ptx_type from, uint32_t code, uint64_t bits)
{
    const struct float_form *ff = form_of(from), *ft = form_of(to);
    if (!ff) {
        int w = 8 * (int)ptx_type_bytes(from);
        uint64_t low = w == 64 ? bits : bits & (~UINT64_C(0) >> (64 - w));
        if (w < 64 && type_signed(from) && low >> (w - 1))
            low |= ~UINT64_C(0) << w;
        return ft ? int_to_float(low, type_signed(from), ft, code)
                  : int_to_int(low, from, to, code);
    }
    /* .ftz says nothing of the source where the result is an f16 */
    if (to == PT_TF32 && (code >> CODE_ROUND_SHIFT & CODE_ROUND) == ROUND_RNA &&
        (bits & 0x7fffffffu) > 0x7f800000u && ((bits + 0x1000) & 0x7fffe000u) == 0x7f800000u)
        bits &= 0xff800000u; /* a NaN of low bits alone is not seen */
    double x = flushed(float_value(ff, bits), to == PT_F16 ? PT_NONE : from, code);
    if (!ft)
        return double_to_int(x, to, from, code >> CODE_ROUND_SHIFT & CODE_ROUND);
    if (code & CODE_INT)
        x = copysign(round_to_integer(x, code >> CODE_ROUND_SHIFT & CODE_ROUND), x);
    if (code & CODE_SAT)
        x = x > 0 ? (x > 1 ? 1 : x) : 0;
    uint64_t r = float_bits(ft, x, code);
    if ((code & CODE_FTZ) && to == PT_F32 && !(r & 0x7f800000u))
        r &= 0x80000000u;
    return r;
}

uint64_t convert_bits(uint32_t code, uint64_t bits)
{
    enum ptx_type to = (enum ptx_type)(code & CODE_TYPE),
                  from = (enum ptx_type)(code >> CODE_FROM_SHIFT & CODE_TYPE);
    enum ptx_type t1 = half_type(to), f1 = half_type(from);
    if (t1 == to && f1 == from)
        return convert_one(to, from, code, bits);
    /* Pairs: two f32 (b low, a high), or packed halves. */
    unsigned from_bits = f1 == from ? 32 : 8 * ptx_type_bytes(from) / 2;
    unsigned to_bits = 8 * ptx_type_bytes(to) / 2;
    uint64_t mask = ~UINT64_C(0) >> (64 - from_bits);
    uint64_t lo = convert_one(t1, f1, code, bits & mask);
    uint64_t hi = convert_one(t1, f1, code, bits >> from_bits & mask);
    return lo | hi << to_bits;
}
