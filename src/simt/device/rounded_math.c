/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rounded_math.c - arithmetic in the rounding modes the host's compiler will not
 * write, and the special functions that go lane by lane.
 */
#include "simt/device/device.h"

#include <fenv.h>
#include <math.h>

static const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};

/* volatile keeps the compiler from computing before the mode is set. */
float math_f32(u32 op, u32 mode, float x, float y, float z)
{
    volatile float a = x, b = y, c = z, r;
    fesetround(modes[mode & 3]);
    switch (op) {
    case SW_ADD:
        r = a + b;
        break;
    case SW_SUB:
        r = a - b;
        break;
    case SW_MUL:
        r = a * b;
        break;
    case SW_DIV:
        r = a / b;
        break;
    case SW_FMA:
        r = fmaf(a, b, c);
        break;
    default:
        r = sqrtf(a);
        break;
    }
    fesetround(FE_TONEAREST);
    return r;
}

double math_f64(u32 op, u32 mode, double x, double y, double z)
{
    volatile double a = x, b = y, c = z, r;
    fesetround(modes[mode & 3]);
    switch (op) {
    case SW_ADD:
        r = a + b;
        break;
    case SW_SUB:
        r = a - b;
        break;
    case SW_MUL:
        r = a * b;
        break;
    case SW_DIV:
        r = a / b;
        break;
    case SW_FMA:
        r = fma(a, b, c);
        break;
    default:
        r = sqrt(a);
        break;
    }
    fesetround(FE_TONEAREST);
    return r;
}

float math_fn(u32 fn, float x)
{
    switch (fn) {
    case SW_LG2:
        return log2f(x);
    case SW_SIN:
        return sinf(x);
    case SW_COS:
        return cosf(x);
    case SW_TANH:
        return tanhf(x);
    case SW_EX2:
        return exp2f(x);
    default:
        return 1.0f / sqrtf(x);
    }
}
