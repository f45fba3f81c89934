/*
 * cases.h - what the two hosts of the Hopper cases share: the table, how
 * buffers are filled, how a map is written in words, and the hash of a result.
 * Plain C that is also C++.
 */
#ifndef HOPPER_CASES_H
#define HOPPER_CASES_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct hopper_case {
    const char *name, *kernel;
    uint32_t gx, gy, block, cluster, shared;
    const char *map[3], *fill[3];
    uint32_t bytes[3];
    int m, n, k;
};

static const struct hopper_case hopper_cases[] = {
#define CASE(name, kernel, gx, gy, block, cluster, shared, mapa, mapb, mapc, fa, ba, fb, bb, fc,   \
             bc, m, n, k)                                                                          \
    {name,         #kernel,      gx, gy, block, cluster, shared, {mapa, mapb, mapc},               \
     {fa, fb, fc}, {ba, bb, bc}, m,  n,  k},
#include "cases.def"
#undef CASE
};
enum { HOPPER_CASES = sizeof hopper_cases / sizeof *hopper_cases };

/* A map in words, read: sizes fastest first, dense. */
struct hopper_map {
    char type[8];
    int rank;
    uint64_t dims[5];
    uint32_t box[5], steps[5];
    unsigned swizzle;
    int nan, im2col, lower[3], upper[3];
    uint32_t channels, pixels;
};

static int hopper_numbers(const char **p, int64_t *out, int max)
{
    int n = 0;
    char *end;
    while (n < max) {
        out[n] = strtoll(*p, &end, 10);
        if (end == *p)
            break;
        n++;
        *p = end;
        if (**p != ',')
            break;
        ++*p;
    }
    return n;
}

static int hopper_map_read(const char *s, struct hopper_map *m)
{
    int64_t v[5];
    const char *p = strchr(s, '/');
    memset(m, 0, sizeof *m);
    if (!p)
        return 0;
    memcpy(m->type, s, (size_t)(p - s));
    p++;
    m->rank = hopper_numbers(&p, v, 5);
    for (int i = 0; i < m->rank; i++) {
        m->dims[i] = (uint64_t)v[i];
        m->steps[i] = 1;
    }
    p++;
    if (*p == 'i') { /* im2col: corners, channels, pixels */
        m->im2col = 1;
        p++;
        for (int i = hopper_numbers(&p, v, 3); i-- > 0;)
            m->lower[i] = (int)v[i];
        p++;
        for (int i = hopper_numbers(&p, v, 3); i-- > 0;)
            m->upper[i] = (int)v[i];
        p++;
        hopper_numbers(&p, v, 1);
        m->channels = (uint32_t)v[0];
        p++;
        hopper_numbers(&p, v, 1);
        m->pixels = (uint32_t)v[0];
    } else {
        int n = hopper_numbers(&p, v, 5);
        for (int i = 0; i < n; i++)
            m->box[i] = (uint32_t)v[i];
    }
    p++;
    hopper_numbers(&p, v, 1);
    m->swizzle = (unsigned)v[0];
    m->nan = strchr(p, 'n') != NULL;
    p = strchr(p, 's');
    if (p) {
        p++;
        int n = hopper_numbers(&p, v, 5);
        for (int i = 0; i < n; i++)
            m->steps[i] = (uint32_t)v[i];
    }
    return 1;
}

static unsigned hopper_type_bytes(const char *t)
{
    return strcmp(t, "u8") == 0                              ? 1
           : strcmp(t, "f16") == 0 || strcmp(t, "bf16") == 0 ? 2
           : strcmp(t, "f64") == 0                           ? 8
                                                             : 4;
}

static unsigned hopper_fill_step(const char *type)
{
    return strcmp(type, "f32") == 0                                ? 4
           : strcmp(type, "f16") == 0 || strcmp(type, "bf16") == 0 ? 2
                                                                   : 1;
}

/* Numbers of any size, none infinite: 16 exponents, or all that f8 has. */
static uint32_t hopper_any(const char *type, uint32_t x, uint32_t y)
{
    uint32_t sign = x >> 31, e = (y >> 24) % 16;
    if (strcmp(type, "f32") == 0)
        return sign << 31 | (119 + e) << 23 | (x >> 8 & 0x7fffff);
    if (strcmp(type, "bf16") == 0)
        return sign << 15 | (119 + e) << 7 | (x >> 16 & 127);
    if (strcmp(type, "f16") == 0)
        return sign << 15 | (3 + e) << 10 | (x >> 16 & 1023);
    if (strcmp(type, "e4m3") == 0)
        return (x >> 16 & 0x7f) == 0x7f ? 0 : x >> 16 & 0xff;
    return (x >> 16 & 0x7c) == 0x7c ? 0 : x >> 16 & 0xff;
}

/* "any TYPE": numbers whose sums are rounded; "one TYPE", "two TYPE": likewise, but zero past the
 * first one or two 32 bytes of every 128, which is what that many wgmmas multiply. */
static void hopper_fill_any(const char *fill, uint8_t *p, uint32_t bytes, uint32_t x)
{
    const char *type = fill + 4;
    uint32_t step = hopper_fill_step(type), upto = *fill == 'a' ? 128 : *fill == 'o' ? 32 : 64;
    for (uint32_t i = 0; i + step <= bytes; i += step) {
        x = x * 1664525 + 1013904223;
        uint32_t first = x;
        x = x * 1664525 + 1013904223;
        uint32_t v = i % 128 < upto ? hopper_any(type, first, x) : 0;
        memcpy(p + i, &v, step);
    }
}

static void hopper_fill(const char *fill, uint8_t *p, uint32_t bytes, uint32_t seed)
{
    static const uint8_t e4m3[] = {0x00, 0x38, 0x40, 0x44, 0x48, 0xb8, 0xc0, 0xc4, 0xc8};
    static const uint8_t e5m2[] = {0x00, 0x3c, 0x40, 0x42, 0x44, 0xbc, 0xc0, 0xc2, 0xc4};
    static const uint16_t f16[] = {0,      0x3c00, 0x4000, 0x4200, 0x4400,
                                   0xbc00, 0xc000, 0xc200, 0xc400};
    uint32_t x = seed * 2654435761u + 12345;
    unsigned step = hopper_fill_step(fill);
    if (!*fill) {
        memset(p, 0, bytes);
        return;
    }
    if (strlen(fill) > 4 && fill[3] == ' ') {
        hopper_fill_any(fill, p, bytes, x);
        return;
    }
    for (uint32_t i = 0; i + step <= bytes; i += step) {
        x = x * 1664525 + 1013904223;
        uint32_t q = (x >> 16) % 9;
        float f = (float)(q < 5 ? (int)q : 4 - (int)q);
        if (strcmp(fill, "bits") == 0) {
            p[i] = (uint8_t)(x >> 20);
        } else if (strcmp(fill, "f32") == 0) {
            memcpy(p + i, &f, 4);
        } else if (strcmp(fill, "f16") == 0) {
            memcpy(p + i, &f16[q], 2);
        } else if (strcmp(fill, "bf16") == 0) {
            uint32_t u;
            memcpy(&u, &f, 4);
            u >>= 16;
            memcpy(p + i, &u, 2);
        } else {
            p[i] = strcmp(fill, "e4m3") == 0 ? e4m3[q] : e5m2[q];
        }
    }
}

static uint64_t hopper_hash(const uint8_t *p, uint32_t bytes)
{
    uint64_t h = 1469598103934665603u;
    for (uint32_t i = 0; i < bytes; i++)
        h = (h ^ p[i]) * 1099511628211u;
    return h;
}

#endif
