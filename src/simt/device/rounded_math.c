/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rounded_math.c - arithmetic in the rounding modes the host's compiler will not
 * write, and the special functions that go lane by lane.
 */
#include "simt/device/device.h"

#include <fenv.h>
#include <tgmath.h>

static const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};

/* volatile keeps the compiler from computing before the mode is set; fma and sqrt are
 * <tgmath.h>'s. */
#define ROUNDED(name, type)                                                                        \
    type name(u32 op, u32 mode, type x, type y, type z)                                            \
    {                                                                                              \
        volatile type a = x, b = y, c = z, r;                                                      \
        fesetround(modes[mode & 3]);                                                               \
        switch (op) {                                                                              \
        case SW_ADD:                                                                               \
            r = a + b;                                                                             \
            break;                                                                                 \
        case SW_SUB:                                                                               \
            r = a - b;                                                                             \
            break;                                                                                 \
        case SW_MUL:                                                                               \
            r = a * b;                                                                             \
            break;                                                                                 \
        case SW_DIV:                                                                               \
            r = a / b;                                                                             \
            break;                                                                                 \
        case SW_FMA:                                                                               \
            r = fma(a, b, c);                                                                      \
            break;                                                                                 \
        default:                                                                                   \
            r = sqrt(a);                                                                           \
            break;                                                                                 \
        }                                                                                          \
        fesetround(FE_TONEAREST);                                                                  \
        return r;                                                                                  \
    }
ROUNDED(math_f32, float)
ROUNDED(math_f64, double)

float math_fn(u32 fn, float x)
{
    switch (fn) {
    case SW_LG2:
        return log2(x);
    case SW_SIN:
        return sin(x);
    case SW_COS:
        return cos(x);
    case SW_TANH:
        return tanh(x);
    case SW_EX2:
        return exp2(x);
    default:
        return 1.0f / sqrt(x);
    }
}
