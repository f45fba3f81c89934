/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensor_core_low.c - mma.sync of f8, f6 and f4, with and without block scales.
 *
 * In kinds f8f6f4 and mxf8f6f4 each factor has a byte: f6 its low six bits, f4
 * the four in the middle. mxf4 and mxf4nvf4 have eight f4 in a register.
 *
 * Scales are bytes of one register each for A and B. Of each quad of lanes,
 * which holds rows g and g + 8 of A and column g of B, the selectors name the
 * lanes that have them: two for A (rows g, g + 8), one for B. A row's K is cut
 * into as many blocks as it has scales.
 *
 * Products of a block are summed in f32 in order of k (exact for f4 and f6), a
 * block's sum times its scales is added in double, and rounded once.
 */
#include "base/float_bits.h"
#include "simt/device/device.h"

#include "simt/device/convert.h"
#include "simt/device/tensor_core.h"

#include <math.h>

enum { MAX_K = 64, ROWS = 16, COLUMNS = 8, MAX_BLOCKS = 4 };

float low_value(enum ptx_type type, uint32_t bits)
{
    switch (type) {
    case PT_E2M1:
        bits = bits >> 2 & 15;
        break;
    case PT_E2M1X2:
        type = PT_E2M1;
        bits &= 15;
        break;
    case PT_E3M2:
    case PT_E2M3:
        bits &= 63;
        break;
    case PT_UE4M3:
        type = PT_E4M3;
        bits &= 127;
        break;
    default:
        bits &= 255;
        break;
    }
    return f32_of_bits((u32)convert_bits((u32)PT_F32 | (u32)type << 8, bits));
}

/* A row of A or a column of B: lane 4 * at + t has bytes 4 * t and on of each half of k. */
static void read_factors(enum ptx_type type, const void *const *regs, int count, int step, u32 at,
                         float *out)
{
    u32 bits = type == PT_E2M1X2 ? 4 : 8, per = 32 / bits;
    for (int i = 0; i < count; i++)
        for (u32 t = 0; t < 4; t++) {
            u32 word = ((const u32 *)regs[i * step])[4 * at + t];
            for (u32 e = 0; e < per; e++)
                out[(u32)i * 4 * per + t * per + e] = low_value(type, word >> (bits * e));
        }
}

struct scales {
    int blocks; /* of each row and column */
    float a[ROWS][MAX_BLOCKS], b[COLUMNS][MAX_BLOCKS];
};

/* regs: scales of A, byte, lanes; scales of B, byte, lanes. */
static void read_scales(uint32_t kind, void *const *regs, struct scales *s)
{
    enum ptx_type type = kind & MMA_UE4M3 ? PT_UE4M3 : PT_UE8M0;
    const u32 *a = regs[0], *b = regs[3];
    u32 byte_a = *(const u32 *)regs[1] & 3, lanes_a = *(const u32 *)regs[2] & 1,
        byte_b = *(const u32 *)regs[4] & 3, lanes_b = *(const u32 *)regs[5] & 3;
    s->blocks = 1 << ((kind >> MMA_SCALE_SHIFT & MMA_SCALES) - 1);
    for (u32 n = 0; n < (u32)s->blocks; n++) {
        for (u32 row = 0; row < ROWS; row++)
            s->a[row][n] = low_value(type, a[4 * (row % 8) + 2 * lanes_a + row / 8] >>
                                               (8 * ((byte_a + n) & 3)));
        for (u32 col = 0; col < COLUMNS; col++)
            s->b[col][n] = low_value(type, b[4 * col + lanes_b] >> (8 * ((byte_b + n) & 3)));
    }
}

static double product(const float *a, const float *b, int k, const float *scale_a,
                      const float *scale_b, int blocks)
{
    double total = 0;
    for (int n = 0; n < blocks; n++) {
        float sum = 0;
        for (int i = k / blocks * n; i < k / blocks * (n + 1); i++)
            sum += a[i] * b[i];
        total += (double)sum * (double)scale_a[n] * (double)scale_b[n];
    }
    return total;
}

static float read_c(const struct mma_shape *s, const void *const *c, u32 lane, u32 e)
{
    if (s->c == PT_F16)
        return f32_of_bits((u32)convert_bits((u32)PT_F32 | (u32)PT_F16 << 8,
                                             ((const u32 *)c[e / 2])[lane] >> (16 * (e % 2))));
    return ((const float *)c[e])[lane];
}

void mma_low(const struct mma_shape *s, uint32_t kind, void *const *regs)
{
    const void *const *a = (const void *const *)regs + s->d_regs, *const *b = a + s->a_regs,
                      *const *c = b + s->b_regs;
    float A[ROWS][MAX_K], B[COLUMNS][MAX_K], C[WARP][4];
    struct scales scales = {.blocks = 1};
    for (u32 row = 0; row < ROWS; row++) {
        read_factors(s->a, a + row / 8, s->a_regs / 2, 2, row % 8, A[row]);
        scales.a[row][0] = 1;
    }
    for (u32 col = 0; col < COLUMNS; col++) {
        read_factors(s->b, b, s->b_regs, 1, col, B[col]);
        scales.b[col][0] = 1;
    }
    if (kind >> MMA_SCALE_SHIFT & MMA_SCALES)
        read_scales(kind, regs + s->d_regs + s->a_regs + s->b_regs + s->c_regs, &scales);
    for (u32 lane = 0; lane < WARP; lane++)
        for (u32 e = 0; e < 4; e++) /* the result may take the place of an operand */
            C[lane][e] = read_c(s, c, lane, e);
    for (u32 lane = 0; lane < WARP; lane++)
        for (u32 e = 0; e < 4; e++) {
            u32 row = (lane >> 2) + 8 * (e / 2), col = (lane & 3) * 2 + e % 2;
            float d =
                (float)(product(A[row], B[col], s->k, scales.a[row], scales.b[col], scales.blocks) +
                        (double)C[lane][e]);
            if (s->d == PT_F16) {
                u32 *at = (u32 *)regs[e / 2] + lane, shift = 16 * (e % 2);
                *at = (*at & ~(0xffffu << shift)) |
                      (u32)convert_bits((u32)PT_F16 | (u32)PT_F32 << 8, bits_of_f32(d)) << shift;
            } else {
                ((float *)regs[e])[lane] = d;
            }
        }
}
