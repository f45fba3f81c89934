/* SPDX-License-Identifier: Apache-2.0 */
/* float_bits.h - the bits of floating-point numbers. */
#ifndef BASE_FLOAT_BITS_H
#define BASE_FLOAT_BITS_H

#include <stdint.h>
#include <string.h>

static inline float f32_of_bits(uint32_t u)
{
    float f;

    memcpy(&f, &u, sizeof f);
    return f;
}

static inline uint32_t bits_of_f32(float f)
{
    uint32_t u;

    memcpy(&u, &f, sizeof u);
    return u;
}

static inline double f64_of_bits(uint64_t u)
{
    double d;

    memcpy(&d, &u, sizeof d);
    return d;
}

static inline uint64_t bits_of_f64(double d)
{
    uint64_t u;

    memcpy(&u, &d, sizeof u);
    return u;
}

/* The nearest half, ties to even; any NaN becomes 0x7fff. */
static inline uint32_t half_of_f32(float x)
{
    uint32_t u = bits_of_f32(x), s = u >> 16 & 0x8000u, a = u & 0x7fffffffu;

    if (a > 0x7f800000u)
        return 0x7fff;
    if (a >= 0x477ff000u)
        return s | 0x7c00u;
    if (a < 0x38800000u)
        return s | (bits_of_f32(f32_of_bits(a) + 0.5f) - 0x3f000000u);
    return s | ((a - 0x38000000u + 0xfffu + (a >> 13 & 1)) >> 13);
}

#endif
