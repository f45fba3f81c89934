/*
 * kernels.h - the kernels of kernels.def: their inputs, and what they ought to
 * give, in double. For test_kernels.c (simt) and bench/simt/differential.c (a
 * GPU). No dependency but libc.
 */
#ifndef TESTS_SIMT_KERNELS_H
#define TESTS_SIMT_KERNELS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct kernel_row {
    const char *name, *file;
    uint32_t grid[3], block[2], shared_bytes;
    const char *types; /* of a, b, c, out */
    int count[4];
    int m, n, k;
    void (*reference)(const struct kernel_row *, const double *a, const double *b, const double *c,
                      double *out);
    double tolerance;
};

/* ---- numbers of all types as double ---- */

static inline size_t kernel_bytes(char type)
{
    return type == 'D' ? 8 : type == 'F' || type == 'I' ? 4 : type == 'H' || type == 'B' ? 2 : 1;
}

static inline double small_float(uint32_t bits, int exp_bits, int frac_bits)
{
    int top = (1 << exp_bits) - 1, e = (int)(bits >> frac_bits) & top, bias = top >> 1;
    double f = bits & ((1u << frac_bits) - 1);
    double x = e == top && exp_bits > 4 ? (f != 0 ? (double)NAN : (double)INFINITY)
               : e                      ? ldexp(1 + ldexp(f, -frac_bits), e - bias)
                                        : ldexp(f, 1 - bias - frac_bits);
    return bits >> (exp_bits + frac_bits) & 1 ? -x : x;
}

static inline double kernel_get(char type, const void *p, int i)
{
    switch (type) {
    case 'F':
        return (double)((const float *)p)[i];
    case 'D':
        return ((const double *)p)[i];
    case 'I':
        return ((const int32_t *)p)[i];
    case 'C':
        return ((const int8_t *)p)[i];
    case 'U':
        return ((const uint8_t *)p)[i];
    case 'H':
        return small_float(((const uint16_t *)p)[i], 5, 10);
    case 'B':
        return small_float(((const uint16_t *)p)[i], 8, 7);
    default:
        return small_float(((const uint8_t *)p)[i], 4, 3);
    }
}

static inline uint64_t kernel_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* Numbers in [-1, 1), or any integers. */
static inline void kernel_fill(const struct kernel_row *row, int which, void *p)
{
    for (int i = 0; i < row->count[which]; i++) {
        uint64_t r = kernel_mix((uint64_t)which << 32 | (uint32_t)i);
        uint32_t frac = (uint32_t)(r >> 20), sign = (uint32_t)(r & 1);
        double x = ldexp((double)(r >> 40), -23) - 1;
        switch (row->types[which]) {
        case 'F':
            ((float *)p)[i] = (float)x;
            break;
        case 'D':
            ((double *)p)[i] = x;
            break;
        case 'H': /* exponents of a quarter to below one */
            ((uint16_t *)p)[i] = (uint16_t)(sign << 15 | (13 + r / 2 % 2) << 10 | (frac & 1023));
            break;
        case 'B':
            ((uint16_t *)p)[i] = (uint16_t)(sign << 15 | (125 + r / 2 % 2) << 7 | (frac & 127));
            break;
        case 'E':
            ((uint8_t *)p)[i] = (uint8_t)(sign << 7 | (5 + r / 2 % 2) << 3 | (frac & 7));
            break;
        case 'I':
            ((int32_t *)p)[i] = (int32_t)(r >> 32);
            break;
        default:
            ((uint8_t *)p)[i] = (uint8_t)(r >> 32);
        }
    }
}

/* ---- references ---- */

#define REF(name)                                                                                  \
    static inline void ref_##name(const struct kernel_row *r, const double *a, const double *b,    \
                                  const double *c, double *out)
#define UNUSED (void)r, (void)a, (void)b, (void)c, (void)out
#define POINT(name, text)                                                                          \
    REF(name)                                                                                      \
    {                                                                                              \
        UNUSED;                                                                                    \
        for (int i = 0; i < r->count[3]; i++) {                                                    \
            double x = a[i];                                                                       \
            (void)x;                                                                               \
            out[i] = (text);                                                                       \
        }                                                                                          \
    }

#define ref_none NULL
POINT(add, x + b[i])
POINT(mul, x *b[i])
POINT(fma, fma(x, b[i], c[i]))
POINT(axpy, fmax(x * 1.5 + b[i], -0.25))
POINT(relu, x > 0 ? x : 0)
POINT(gelu, 0.5 * x * (1 + erf(x / sqrt(2.0))))
POINT(silu, x / (1 + exp(-x)))
POINT(sigmoid, 1 / (1 + exp(-x)))
POINT(tanh_poly, tanh(x) + log(2 + x) + sqrt(1.5 + x) + 1 / sqrt(1.25 + x))
POINT(pow_mix, pow(1.5 + x, 1 + b[i]) + sin(3 * x) * cos(3 * b[i]))
POINT(exp, exp(x))
POINT(square, x *x + 1)
POINT(quant, fmin(127, fmax(-128, (double)rintf((float)x * 150.0f))))
POINT(transpose, a[i % r->m * r->n + i / r->m])
POINT(xor_five, a[i ^ 5])
POINT(reverse_tiles, 2 * a[i / 128 * 128 + 127 - i % 128])
POINT(reverse_eights, a[i / 8 * 8 + 7 - i % 8])
POINT(reverse_plus, a[i / 64 * 64 + 63 - i % 64] + 1)
POINT(gather, a[((int)b[i / r->n] & (r->m - 1)) * r->n + i % r->n])
POINT(permute,
      a[((i / (8 * r->n * r->k) * r->n + i / 8 % r->n) * r->k + i / (8 * r->n) % r->k) * 8 + i % 8])

REF(horner)
{
    UNUSED;
    for (int i = 0; i < r->n; i++) {
        double y = 1.0 / 5040;
        for (int j = 0; j < 6; j++)
            y = fma(y, a[i], 1.0 / (j + 1));
        out[i] = y / (1.5 + a[i]) + sqrt(1.5 + b[i]) + exp(a[i]);
    }
}
REF(rope)
{
    UNUSED;
    int half = r->n / 2;
    for (int i = 0; i < r->m; i++)
        for (int j = 0; j < half; j++) {
            double t = (double)((float)i * exp2f(-8.0f * (float)j / (float)half));
            double x = a[i * r->n + j], y = a[i * r->n + half + j];
            out[i * r->n + j] = x * cos(t) - y * sin(t);
            out[i * r->n + half + j] = x * sin(t) + y * cos(t);
        }
}
REF(row_sum)
{
    UNUSED;
    for (int i = 0; i < r->m; i++) {
        out[i] = 0;
        for (int j = 0; j < r->n; j++)
            out[i] += a[i * r->n + j];
    }
}
/* Only the sum is of interest: what else lies in out depends on who came last. */
REF(first_sum)
{
    ref_row_sum(r, a, b, c, out);
    for (int i = 1; i < r->count[3]; i++)
        out[i] = (double)NAN;
}
REF(short_rows)
{
    UNUSED;
    for (int i = 0; i < r->m; i++) {
        out[i] = 0;
        for (int j = 0; j < r->k; j++)
            out[i] += a[i * r->n + j];
    }
}
REF(row_dot)
{
    UNUSED;
    for (int i = 0; i < r->m; i++) {
        out[i] = 0;
        for (int j = 0; j < r->n; j++)
            out[i] += a[i * r->n + j] * b[i * r->n + j];
    }
}
REF(row_argmax)
{
    UNUSED;
    for (int i = 0; i < r->m; i++) {
        int at = 0;
        for (int j = 1; j < r->n; j++)
            if (a[i * r->n + j] > a[i * r->n + at])
                at = j;
        out[i] = at;
    }
}
REF(row_max)
{
    ref_row_argmax(r, a, b, c, out);
    for (int i = 0; i < r->m; i++)
        out[i] = a[i * r->n + (int)out[i]];
}
REF(logsumexp)
{
    UNUSED;
    for (int i = 0; i < r->m; i++) {
        double s = 0;
        for (int j = 0; j < r->n; j++)
            s += exp(a[i * r->n + j]);
        out[i] = log(s);
    }
}
REF(softmax)
{
    ref_logsumexp(r, a, b, c, out);
    for (int i = r->m - 1; i >= 0; i--) {
        double s = out[i];
        for (int j = r->n - 1; j >= 0; j--)
            out[i * r->n + j] = exp(a[i * r->n + j] - s);
    }
}
REF(layernorm)
{
    UNUSED;
    for (int i = 0; i < r->m; i++) {
        double s = 0, q = 0;
        for (int j = 0; j < r->n; j++)
            s += a[i * r->n + j] / r->n;
        for (int j = 0; j < r->n; j++)
            q += (a[i * r->n + j] - s) * (a[i * r->n + j] - s) / r->n;
        for (int j = 0; j < r->n; j++)
            out[i * r->n + j] = (a[i * r->n + j] - s) / sqrt(q + 1e-5) * b[j] + c[j];
    }
}
REF(rmsnorm)
{
    UNUSED;
    for (int i = 0; i < r->m; i++) {
        double q = 0;
        for (int j = 0; j < r->n; j++)
            q += a[i * r->n + j] * a[i * r->n + j] / r->n;
        for (int j = 0; j < r->n; j++)
            out[i * r->n + j] = a[i * r->n + j] / sqrt(q + 1e-5) * b[j];
    }
}
REF(scan)
{
    UNUSED;
    for (int i = 0; i < r->m * r->n; i++)
        out[i] = a[i] + (i % r->n ? out[i - 1] : 0);
}
REF(histogram)
{
    UNUSED;
    for (int i = 0; i < 64; i++)
        out[i] = 0;
    for (int i = 0; i < r->n; i++)
        out[(int64_t)a[i] & 63]++;
}
REF(conv1d)
{
    UNUSED;
    for (int i = 0; i < r->n; i++) {
        out[i] = 0;
        for (int j = 0; j < 9; j++)
            if (i + j - 4 >= 0 && i + j - 4 < r->n)
                out[i] += a[i + j - 4] * b[j];
    }
}
REF(conv2d)
{
    UNUSED;
    for (int i = 0; i < r->k * r->m * r->n; i++) {
        int f = i / (r->m * r->n), y = i / r->n % r->m, x = i % r->n;
        out[i] = 0;
        for (int t = 0; t < 9; t++) {
            int yy = y + t / 3 - 1, xx = x + t % 3 - 1;
            if (yy >= 0 && yy < r->m && xx >= 0 && xx < r->n)
                out[i] += a[yy * r->n + xx] * b[f * 9 + t];
        }
    }
}
REF(maxpool)
{
    UNUSED;
    for (int y = 0; y < r->m / 2; y++)
        for (int x = 0; x < r->n / 2; x++) {
            const double *p = a + 2 * y * r->n + 2 * x;
            out[y * (r->n / 2) + x] = fmax(fmax(p[0], p[1]), fmax(p[r->n], p[r->n + 1]));
        }
}
REF(stencil)
{
    UNUSED;
    for (int y = 0; y < r->m; y++)
        for (int x = 0; x < r->n; x++) {
            int u = y ? y - 1 : 0, d = y + 1 < r->m ? y + 1 : y, l = x ? x - 1 : 0,
                e = x + 1 < r->n ? x + 1 : x;
            out[y * r->n + x] = 0.5 * a[y * r->n + x] + 0.125 * (a[u * r->n + x] + a[d * r->n + x] +
                                                                 a[y * r->n + l] + a[y * r->n + e]);
        }
}
static inline void product(int m, int n, int k, const double *a, const double *b, double *out)
{
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double x = 0;
            for (int p = 0; p < k; p++)
                x += a[i * k + p] * b[j * k + p];
            out[i * n + j] = x;
        }
}
REF(gemm)
{
    UNUSED;
    product(r->m, r->n, r->k, a, b, out);
}
REF(gemm_half)
{
    ref_gemm(r, a, b, c, out);
    for (int i = 0; i < r->m * r->n; i++)
        out[i] *= 0.5;
}
REF(gemm_bias_relu)
{
    ref_gemm(r, a, b, c, out);
    for (int i = 0; i < r->m * r->n; i++)
        out[i] = fmax(out[i] + c[i % r->n], 0);
}
REF(gemm_batched)
{
    UNUSED;
    for (int z = 0; z < 3; z++)
        product(r->m, r->n, r->k, a + z * r->m * r->k, b + z * r->n * r->k, out + z * r->m * r->n);
}
REF(attention)
{
    UNUSED;
    for (int i = 0; i < r->m; i++) {
        double s = 0, o[32] = {0};
        for (int j = 0; j < r->k; j++) {
            double x = 0;
            for (int d = 0; d < 32; d++)
                x += a[i * 32 + d] * b[j * 32 + d];
            x = exp(x / sqrt(32.0));
            s += x;
            for (int d = 0; d < 32; d++)
                o[d] += x * c[j * 32 + d];
        }
        for (int d = 0; d < 32; d++)
            out[i * 32 + d] = o[d] / s;
    }
}

static const struct kernel_row kernel_rows[] = {
#define K(name, file, gx, gy, gz, bx, by, smem, ta, na, tb, nb, tc, nc, to, no, m, n, k, ref, tol) \
    {#name, file, {gx, gy, gz}, {bx, by}, smem, #ta #tb #tc #to, {na, nb, nc, no}, m,              \
     n,     k,    ref_##ref,    tol},
#include "kernels.def"
#undef K
};
enum { KERNELS = sizeof kernel_rows / sizeof *kernel_rows };

#endif
