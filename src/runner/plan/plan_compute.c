/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_compute.c - arithmetic of a plan.
 *
 * As PTX defines it, except that an integer division by 0 is an error, because the exported plan
 * would crash.
 */
#include "runner/plan/plan_compute.h"

#include "base/float_bits.h"

#include <tgmath.h>

static bool is_signed(enum ptx_type t)
{
    return t == PT_S8 || t == PT_S16 || t == PT_S32 || t == PT_S64;
}

static bool is_float(enum ptx_type t)
{
    return t == PT_F32 || t == PT_F64;
}

uint64_t plan_narrow(enum ptx_type type, uint64_t v)
{
    switch (type) {
    case PT_PRED:
        return v & 1;
    case PT_B8:
    case PT_U8:
        return (uint8_t)v;
    case PT_S8:
        return (uint64_t)(int64_t)(int8_t)v;
    case PT_B16:
    case PT_U16:
        return (uint16_t)v;
    case PT_S16:
        return (uint64_t)(int64_t)(int16_t)v;
    case PT_B32:
    case PT_U32:
    case PT_F32:
        return (uint32_t)v;
    case PT_S32:
        return (uint64_t)(int64_t)(int32_t)v;
    default:
        return v;
    }
}

/* ---- floats ------------------------------------------------------------------- */

static bool refuse(const struct plan_insn *in, struct error *err)
{
    return error_set(err, ERROR_JUDGED, "a plan may not compute %s of %s", plan_op_names[in->op],
                     ptx_type_name((enum ptx_type)in->type));
}

static float as_f32(uint64_t v)
{
    return f32_of_bits((uint32_t)v);
}

/* One switch for both widths, using <tgmath.h>. */
#define FLOAT_COMPUTE(name, type, of, bits)                                                        \
    static bool name(const struct plan_insn *in, const uint64_t v[3], uint64_t *out,               \
                     struct error *err)                                                            \
    {                                                                                              \
        type x = of(v[0]), y = of(v[1]), r;                                                        \
        switch (in->op) {                                                                          \
        case OP_add:                                                                               \
            r = x + y;                                                                             \
            break;                                                                                 \
        case OP_sub:                                                                               \
            r = x - y;                                                                             \
            break;                                                                                 \
        case OP_mul:                                                                               \
            r = x * y;                                                                             \
            break;                                                                                 \
        case OP_div:                                                                               \
            r = x / y;                                                                             \
            break;                                                                                 \
        case OP_fma:                                                                               \
            r = fma(x, y, of(v[2]));                                                               \
            break;                                                                                 \
        case OP_min:                                                                               \
            r = fmin(x, y);                                                                        \
            break;                                                                                 \
        case OP_max:                                                                               \
            r = fmax(x, y);                                                                        \
            break;                                                                                 \
        case OP_neg:                                                                               \
            r = -x;                                                                                \
            break;                                                                                 \
        case OP_abs:                                                                               \
            r = fabs(x);                                                                           \
            break;                                                                                 \
        case OP_sqrt:                                                                              \
            r = sqrt(x);                                                                           \
            break;                                                                                 \
        case OP_rcp:                                                                               \
            r = 1 / x;                                                                             \
            break;                                                                                 \
        default:                                                                                   \
            return refuse(in, err);                                                                \
        }                                                                                          \
        *out = bits(r);                                                                            \
        return true;                                                                               \
    }
FLOAT_COMPUTE(compute_f32, float, as_f32, bits_of_f32)
FLOAT_COMPUTE(compute_f64, double, f64_of_bits, bits_of_f64)

/* ---- conversions ---------------------------------------------------------------- */

static double round_as(enum plan_round how, double d)
{
    switch (how) {
    case ROUND_ZERO:
        return trunc(d);
    case ROUND_DOWN:
        return floor(d);
    case ROUND_UP:
        return ceil(d);
    default:
        return rint(d);
    }
}

/* Saturates values out of range; NaN becomes 0. */
static uint64_t to_integer(enum ptx_type to, double d)
{
    unsigned bits = 8 * ptx_type_bytes(to);
    double top = ldexp(1.0, (int)(is_signed(to) ? bits - 1 : bits));
    if (isnan(d))
        return 0;
    if (is_signed(to)) {
        uint64_t least = UINT64_C(1) << (bits - 1);
        return d >= top ? least - 1 : d < -top ? plan_narrow(to, least) : (uint64_t)(int64_t)d;
    }
    return d <= 0 ? 0 : d >= top ? plan_narrow(to, UINT64_MAX) : (uint64_t)d;
}

static bool convert(const struct plan_insn *in, uint64_t v, uint64_t *out, struct error *err)
{
    enum ptx_type to = (enum ptx_type)in->type, from = (enum ptx_type)in->from;
    if (to == PT_PRED || from == PT_PRED || (is_float(to) && !in->to_integer && in->round != 0))
        return refuse(in, err);
    if (is_float(from)) {
        double d = from == PT_F64 ? f64_of_bits(v) : (double)as_f32(v);
        if (in->to_integer)
            d = round_as((enum plan_round)in->round, d);
        *out = to == PT_F64   ? bits_of_f64(d)
               : to == PT_F32 ? bits_of_f32((float)d)
                              : to_integer(to, round_as((enum plan_round)in->round, d));
        return true;
    }
    v = plan_narrow(from, v);
    if (to == PT_F64)
        *out = bits_of_f64(is_signed(from) ? (double)(int64_t)v : (double)v);
    else if (to == PT_F32)
        *out = bits_of_f32(is_signed(from) ? (float)(int64_t)v : (float)v);
    else
        *out = plan_narrow(to, v);
    return true;
}

static bool holds(enum plan_compare c, bool less, bool equal)
{
    switch (c) {
    case CMP_EQ:
        return equal;
    case CMP_NE:
        return !equal;
    case CMP_LT:
        return less;
    case CMP_LE:
        return less || equal;
    case CMP_GT:
        return !less && !equal;
    case CMP_GE:
        return !less;
    default: /* CMP_NUM, CMP_NAN: both are numbers */
        return c == CMP_NUM;
    }
}

static uint64_t compare(const struct plan_insn *in, uint64_t x, uint64_t y)
{
    enum ptx_type t = (enum ptx_type)in->type;
    enum plan_compare c = (enum plan_compare)in->compare;
    if (is_float(t)) {
        double a = t == PT_F64 ? f64_of_bits(x) : (double)as_f32(x);
        double b = t == PT_F64 ? f64_of_bits(y) : (double)as_f32(y);
        return isnan(a) || isnan(b) ? in->unordered : holds(c, a < b, a == b);
    }
    x = plan_narrow(t, x);
    y = plan_narrow(t, y);
    return holds(c, is_signed(t) ? (int64_t)x < (int64_t)y : x < y, x == y);
}

/* ---- integers ------------------------------------------------------------------- */

__extension__ typedef __int128 wide_signed;
__extension__ typedef unsigned __int128 wide_unsigned;

static uint64_t high_part(enum ptx_type t, uint64_t x, uint64_t y)
{
    unsigned bits = 8 * ptx_type_bytes(t);
    if (bits < 64)
        return is_signed(t) ? (uint64_t)((int64_t)(x * y) >> bits) : x * y >> bits;
    return is_signed(t) ? (uint64_t)(((wide_signed)(int64_t)x * (int64_t)y) >> 64)
                        : (uint64_t)(((wide_unsigned)x * y) >> 64);
}

static uint64_t multiply(const struct plan_insn *in, uint64_t x, uint64_t y, uint64_t z)
{
    enum ptx_type t = (enum ptx_type)in->type;
    uint64_t r = in->part == PART_HI ? high_part(t, x, y) : x * y;
    if (in->op == OP_mad)
        r += z;
    if (in->part == PART_WIDE)
        return ptx_type_bytes(t) == 2 ? (uint32_t)r : r;
    return plan_narrow(t, r);
}

static bool divide(const struct plan_insn *in, uint64_t x, uint64_t y, uint64_t *out,
                   struct error *err)
{
    bool rest = in->op == OP_rem, sign = is_signed((enum ptx_type)in->type);
    uint64_t r;
    if (y == 0)
        return error_set(err, ERROR_JUDGED, "the plan divides by 0");
    if (sign && (int64_t)y == -1) /* the most negative number has no positive counterpart */
        r = rest ? 0 : 0 - x;
    else if (sign)
        r = (uint64_t)(rest ? (int64_t)x % (int64_t)y : (int64_t)x / (int64_t)y);
    else
        r = rest ? x % y : x / y;
    *out = plan_narrow((enum ptx_type)in->type, r);
    return true;
}

static uint64_t shift(const struct plan_insn *in, uint64_t x, uint64_t by)
{
    enum ptx_type t = (enum ptx_type)in->type;
    uint64_t bits = 8 * (uint64_t)ptx_type_bytes(t), k = (uint32_t)by;
    if (in->op == OP_shl)
        return k >= bits ? 0 : plan_narrow(t, x << k);
    if (!is_signed(t))
        return k >= bits ? 0 : x >> k;
    return (uint64_t)((int64_t)x >> (k >= bits ? bits - 1 : k));
}

/* Four of the eight bytes of y:x, each chosen by 4 bits. */
static uint64_t permute(uint64_t x, uint64_t y, uint64_t choice)
{
    uint64_t both = (y << 32) | (uint32_t)x, r = 0;
    for (int i = 0; i < 4; i++) {
        uint64_t c = choice >> (4 * i), byte = (both >> (8 * (c & 7))) & 255;
        if (c & 8)
            byte = byte & 128 ? 255 : 0;
        r |= byte << (8 * i);
    }
    return r;
}

static uint64_t count_zeros(enum ptx_type t, uint64_t x)
{
    uint64_t n = 0, bits = 8 * (uint64_t)ptx_type_bytes(t);
    while (n < bits && !(x >> (bits - 1 - n) & 1))
        n++;
    return n;
}

static uint64_t count_ones(uint64_t x)
{
    uint64_t n = 0;
    for (; x != 0; x &= x - 1)
        n++;
    return n;
}

static bool compute_integer(const struct plan_insn *in, const uint64_t v[3], uint64_t *out,
                            struct error *err)
{
    enum ptx_type t = (enum ptx_type)in->type;
    bool sign = is_signed(t);
    uint64_t x = plan_narrow(t, v[0]), y = plan_narrow(t, v[1]), r;
    bool less = sign ? (int64_t)x < (int64_t)y : x < y;
    switch (in->op) {
    case OP_add:
        r = x + y;
        break;
    case OP_sub:
        r = x - y;
        break;
    case OP_mul:
    case OP_mad:
        *out = multiply(in, x, y, v[2]);
        return true;
    case OP_div:
    case OP_rem:
        return divide(in, x, y, out, err);
    case OP_min:
        r = less ? x : y;
        break;
    case OP_max:
        r = less ? y : x;
        break;
    case OP_neg:
        r = 0 - x;
        break;
    case OP_abs:
        r = (int64_t)x < 0 ? 0 - x : x;
        break;
    case OP_shl:
    case OP_shr:
        *out = shift(in, x, v[1]);
        return true;
    case OP_prmt:
        r = permute(x, y, v[2]);
        break;
    case OP_popc:
        r = count_ones(x);
        break;
    case OP_clz:
        r = count_zeros(t, x);
        break;
    default:
        return refuse(in, err);
    }
    *out = plan_narrow(t, r);
    return true;
}

bool plan_compute(const struct plan_insn *in, const uint64_t v[3], uint64_t *out, struct error *err)
{
    enum ptx_type t = (enum ptx_type)in->type;
    switch (in->op) {
    case OP_mov:
    case OP_cvta:
        *out = plan_narrow(t, v[0]);
        return true;
    case OP_cvt:
        return convert(in, v[0], out, err);
    case OP_setp:
        *out = compare(in, v[0], v[1]);
        return true;
    case OP_selp:
        *out = plan_narrow(t, v[2] & 1 ? v[0] : v[1]);
        return true;
    case OP_and:
        *out = plan_narrow(t, v[0] & v[1]);
        return true;
    case OP_or:
        *out = plan_narrow(t, v[0] | v[1]);
        return true;
    case OP_xor:
        *out = plan_narrow(t, v[0] ^ v[1]);
        return true;
    case OP_not:
        *out = plan_narrow(t, ~v[0]);
        return true;
    default:
        break;
    }
    if (t == PT_F32)
        return compute_f32(in, v, out, err);
    if (t == PT_F64)
        return compute_f64(in, v, out, err);
    return compute_integer(in, v, out, err);
}
