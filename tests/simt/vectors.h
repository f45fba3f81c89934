/*
 * vectors.h - the vectors of vectors.txt as PTX and as inputs, for the test
 * that runs them on simt and for bench/simt/vectors.c, which runs them on a GPU.
 *
 * A line is   NAME SIGNATURE [BOUND] [: PTX]
 *
 * SIGNATURE  result=operands. A letter is a kind of value, a digit after it
 *            makes the operand a vector of so many registers:
 *              h r d integers of 16, 32 and 64 bits   p predicate
 *              e b f g  f16 bf16 f32 f64              k l  f16x2 bf16x2
 *              s a shift count   n a small signed number   w near a limit
 *              y z e4m3x2 e5m2x2
 *            and for matrices, in mixes without too many NaN:
 *              K L T F G  f16x2 bf16x2 tf32 f32 f64   Y Z B R  four e4m3, e5m2,
 *              bytes; s32
 * BOUND      none: results are equal bit by bit, any NaN as good as another.
 *            Else how far apart approximate results may be (test_vectors.c).
 * PTX        what to write instead of "NAME $d, $a, $b, $c;". $d is the result,
 *            $a $b $c $e the operands ($a0 a register of a vector), $p $h $r $x
 *            $y $q scratch registers, $m 16 bytes of the thread's own in global
 *            memory, $s in shared memory, $w 8 KiB of the warp's own in global
 *            memory; $4 $8 $u $v are $w plus lane * 4, 8, 16 and 32.
 *
 * Inputs follow from the name, so lines can come and go. No dependency but libc.
 */
#ifndef TESTS_SIMT_VECTORS_H
#define TESTS_SIMT_VECTORS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    VECTOR_INPUTS = 4096, /* per line; one thread each */
    VECTOR_BLOCK = 128,
    VECTOR_GROUP = 24, /* lines per kernel */
    VECTOR_ARGS = 4,
    VECTOR_REGS = 8, /* per operand */
    VECTOR_SCRATCH = VECTOR_INPUTS / 32 * 8192
};

struct vector_line {
    char name[80], sig[32], bound[24], *ptx;
    char letter[1 + VECTOR_ARGS]; /* the result, then the operands */
    int regs[1 + VECTOR_ARGS];    /* 0: not a vector */
    int args;
};

static inline bool vector_parse(const char *text, struct vector_line *v)
{
    char head[256] = "";
    const char *colon = strstr(text, " : ");
    size_t n = colon ? (size_t)(colon - text) : strcspn(text, "\n");
    memset(v, 0, sizeof *v);
    if (n >= sizeof head)
        return false;
    memcpy(head, text, n);
    if (sscanf(head, "%79s %31s %23s", v->name, v->sig, v->bound) < 2 || v->name[0] == '#')
        return false;
    if (colon) {
        size_t len = strcspn(colon + 3, "\n");
        v->ptx = calloc(len + 1, 1);
        if (v->ptx)
            memcpy(v->ptx, colon + 3, len);
    }
    int at = 0;
    for (const char *p = v->sig; *p; p++) {
        if (*p == '=')
            continue;
        if (*p >= '1' && *p <= '8') {
            if (at)
                v->regs[at - 1] = *p - '0';
            continue;
        }
        if (at > VECTOR_ARGS)
            return false;
        v->letter[at++] = *p;
    }
    v->args = at - 1;
    return at >= 1;
}

static inline struct vector_line *vectors_read(const char *path, size_t *count)
{
    FILE *f = fopen(path, "r");
    struct vector_line *all = NULL;
    size_t n = 0;
    char line[4096];
    while (f && fgets(line, sizeof line, f)) {
        struct vector_line v;
        if (!vector_parse(line, &v))
            continue;
        struct vector_line *more = realloc(all, (n + 1) * sizeof v);
        if (!more)
            break;
        all = more;
        all[n++] = v;
    }
    if (f)
        fclose(f);
    *count = n;
    return all;
}

/* ---- PTX ---- */

static inline int vector_bytes(char letter)
{
    return strchr("dgG", letter) ? 8 : strchr("hebyz", letter) ? 2 : 4;
}

static inline const char *vector_reg(char letter)
{
    int n = vector_bytes(letter);
    return letter == 'p' ? "pred" : n == 8 ? "b64" : n == 2 ? "b16" : "b32";
}

static inline int vector_width(const struct vector_line *v, int i)
{
    return v->regs[i] ? v->regs[i] : 1;
}

/* Registers of operand i: d0 d1..., a0 a1... */
static inline void vector_operand(FILE *f, const struct vector_line *v, int i)
{
    char name = "dabce"[i];
    if (!v->regs[i]) {
        fprintf(f, "%c0", name);
        return;
    }
    for (int k = 0; k < v->regs[i]; k++)
        fprintf(f, "%s%c%d", k ? ", " : "{", name, k);
    fputs("}", f);
}

static inline void vector_body(FILE *f, const struct vector_line *v)
{
    static const char names[] = "dabce";
    if (!v->ptx) {
        fprintf(f, "%s ", v->name);
        for (int i = 0; i <= v->args; i++) {
            fputs(i ? ", " : "", f);
            vector_operand(f, v, i);
        }
        fputs(";\n", f);
        return;
    }
    for (const char *p = v->ptx; *p; p++) {
        if (*p != '$') {
            fputc(*p, f);
            continue;
        }
        const char *which = strchr(names, *++p);
        if (!which)
            fprintf(f, "%%t%c", *p);
        else if (p[1] >= '0' && p[1] <= '9')
            fprintf(f, "%c", *p);
        else
            vector_operand(f, v, (int)(which - names));
    }
    fputs("\n", f);
}

/* Line number `slot` of its kernel: operands at in + (slot * ARGS * REGS + ...) * INPUTS * 8. */
static inline void vector_write(FILE *f, const struct vector_line *v, int slot)
{
    fputs("{\n", f);
    for (int i = 0; i <= v->args; i++)
        fprintf(f, ".reg .%s %c<%d>;\n", vector_reg(v->letter[i]), "dabce"[i], vector_width(v, i));
    fputs(".reg .pred %tp, %pp; .reg .b16 %th; .reg .b32 %tr, %tx, %ty, %pr; .reg .b64 %tq;\n", f);
    for (int i = 1; i <= v->args; i++)
        for (int k = 0; k < vector_width(v, i); k++) {
            size_t at = (((size_t)slot * VECTOR_ARGS + (size_t)i - 1) * VECTOR_REGS + (size_t)k) *
                        VECTOR_INPUTS * 8;
            char c = "dabce"[i];
            if (v->letter[i] == 'p')
                fprintf(f, "ld.global.b32 %%pr, [%%in+%zu]; setp.ne.u32 %c%d, %%pr, 0;\n", at, c,
                        k);
            else
                fprintf(f, "ld.global.%s %c%d, [%%in+%zu];\n", vector_reg(v->letter[i]), c, k, at);
        }
    vector_body(f, v);
    for (int k = 0; k < vector_width(v, 0); k++) {
        size_t at = ((size_t)slot * VECTOR_REGS + (size_t)k) * VECTOR_INPUTS * 8;
        if (v->letter[0] == 'p')
            fprintf(f, "selp.b32 %%pr, 1, 0, d%d; st.global.b32 [%%out+%zu], %%pr;\n", k, at);
        else
            fprintf(f, "st.global.%s [%%out+%zu], d%d;\n", vector_reg(v->letter[0]), at, k);
    }
    fputs("}\n", f);
}

/* One kernel of the lines given. uniform: the block's number says which input. */
static inline void vectors_kernel(FILE *f, const char *name, const struct vector_line *const *v,
                                  int count, bool uniform)
{
    fprintf(f, ".visible .entry %s(.param .u64 p_in, .param .u64 p_out, .param .u64 p_m)\n{\n",
            name);
    fprintf(f, ".shared .align 16 .b8 %s_s[%d];\n", name, VECTOR_BLOCK * 16);
    fputs(".reg .b64 %in, %out, %tm, %tw, %tu, %tv, %t4, %t8, %o; .reg .b32 %ts, %i, %id, %k;\n"
          "ld.param.u64 %in, [p_in]; ld.param.u64 %out, [p_out]; ld.param.u64 %tm, [p_m];\n"
          "mov.u32 %i, %ctaid.x;\n",
          f);
    if (!uniform)
        fprintf(f, "mov.u32 %%id, %%tid.x; mad.lo.u32 %%i, %%i, %d, %%id;\n", VECTOR_BLOCK);
    else
        fputs("mov.u32 %id, 0;\n", f);
    fprintf(f,
            "shl.b32 %%k, %%id, 4; mov.u32 %%ts, %s_s; add.u32 %%ts, %%ts, %%k;\n"
            "shr.u32 %%k, %%i, 5; mul.wide.u32 %%o, %%k, 8192; add.u64 %%tw, %%tm, %%o;\n"
            "and.b32 %%k, %%i, 31; mul.wide.u32 %%o, %%k, 16; add.u64 %%tu, %%tw, %%o;\n"
            "add.u64 %%tv, %%tu, %%o; mul.wide.u32 %%o, %%k, 4; add.u64 %%t4, %%tw, %%o;\n"
            "add.u64 %%t8, %%t4, %%o; mul.wide.u32 %%o, %%i, 16; add.u64 %%tm, %%tm, %%o;\n"
            "mul.wide.u32 %%o, %%i, 8; add.u64 %%in, %%in, %%o; add.u64 %%out, %%out, %%o;\n",
            name);
    for (int i = 0; i < count; i++)
        vector_write(f, v[i], i);
    fputs("ret;\n}\n", f);
}

static inline void vectors_head(FILE *f)
{
    fputs(".version 8.4\n.target sm_90\n.address_size 64\n", f);
}

/* ---- inputs ---- */

static inline uint64_t vector_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static inline uint64_t vector_hash(const void *data, size_t n, uint64_t h)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 0x100000001b3u;
    return h;
}

/* A float of the form sign, exponent, fraction: an edge, any bits, or of middling size. */
static inline uint64_t vector_float(uint64_t r, int exp_bits, int frac_bits)
{
    uint64_t frac = ((uint64_t)1 << frac_bits) - 1, top = ((uint64_t)1 << exp_bits) - 1;
    uint64_t bias = top >> 1, sign = r >> 63 << (exp_bits + frac_bits), f = r >> 8 & frac;
    uint64_t edge[] = {0,
                       1,
                       frac,
                       (uint64_t)1 << frac_bits,
                       (uint64_t)1 << (frac_bits - 1),
                       bias << frac_bits,
                       (bias << frac_bits) + 1,
                       (bias << frac_bits) - 1,
                       (bias + 1) << frac_bits,
                       (bias - 1) << frac_bits,
                       ((bias - 1) << frac_bits) - 1,
                       bias << frac_bits | (uint64_t)1 << (frac_bits - 1),
                       (bias + 1) << frac_bits | (uint64_t)1 << (frac_bits - 2),
                       ((top - 1) << frac_bits) | frac,
                       top << frac_bits,
                       top << frac_bits | (uint64_t)1 << (frac_bits - 1),
                       top << frac_bits | 1,
                       top << frac_bits | frac,
                       (bias + (uint64_t)frac_bits) << frac_bits,
                       (bias + (uint64_t)frac_bits + 1) << frac_bits};
    /* Powers of two at which integers and smaller forms end, and just below. */
    static const int limit[] = {7, 8, 9, 15, 16, 31, 32, 63, 64, -6, -9, -10, -14, -24, -25, -126};
    switch (r & 7) {
    case 0:
    case 1:
        return sign | edge[(r >> 3) % (sizeof edge / sizeof *edge)];
    case 2: {
        int64_t e = (int64_t)bias + limit[(r >> 3) % (sizeof limit / sizeof *limit)];
        if (e < 1 || e >= (int64_t)top)
            return sign | f; /* subnormal */
        uint64_t at = (uint64_t)e << frac_bits;
        return sign | (at + (r >> 20) % 3 - 1);
    }
    case 3:
        return (sign | r >> 9) & (((uint64_t)1 << (exp_bits + frac_bits) << 1) - 1);
    default: {
        int64_t e = (int64_t)bias + (int64_t)((r >> 3) % 25) - 12;
        e = e < 0 ? 0 : e >= (int64_t)top ? (int64_t)top - 1 : e;
        if ((r & 7) == 7)
            f &= frac << (frac_bits / 2); /* few bits: ties and exact results */
        return sign | (uint64_t)e << frac_bits | f;
    }
    }
}

static inline uint64_t vector_int(uint64_t r, int bits)
{
    uint64_t top = (uint64_t)1 << (bits - 1), x = r >> 12;
    switch (r & 7) {
    case 0:
        x = (r >> 3) % 5 - 2;
        break;
    case 1:
        x = top + (r >> 3) % 5 - 2;
        break;
    case 2:
        x = ((uint64_t)1 << (r >> 3) % (uint64_t)bits) + (r >> 10) % 3 - 1;
        break;
    case 3:
        x = (r >> 3) % 100;
        break;
    case 4:
        x = 0 - (r >> 3) % 100;
        break;
    default:
        x = vector_mix(r);
    }
    return bits == 64 ? x : x & (((uint64_t)1 << bits) - 1);
}

/* An element of a matrix. mode: what the warp's numbers are like. */
static inline uint64_t vector_element(uint64_t r, int mode, int exp_bits, int frac_bits)
{
    uint64_t frac = ((uint64_t)1 << frac_bits) - 1, top = ((uint64_t)1 << exp_bits) - 1;
    uint64_t sign = r >> 63 << (exp_bits + frac_bits), f = r >> 8 & frac;
    int64_t bias = (int64_t)(top >> 1), e = bias;
    int64_t spread = bias > 15 ? 20 : bias > 7 ? 12 : 6;
    switch (mode) {
    case 0: /* near one */
        e -= (int64_t)(r % 2);
        break;
    case 1:
        e += (int64_t)(r % 9) - 4;
        break;
    case 2: /* all over */
        e += (int64_t)(r % (uint64_t)(2 * spread + 1)) - spread;
        break;
    case 3: /* positive */
        sign = 0;
        e -= (int64_t)(r % 3);
        break;
    case 4: /* mostly zero */
        if (r % 4)
            return r % 8 == 1 ? sign : 0;
        e += (int64_t)(r >> 3) % 17 - 8;
        break;
    case 5: /* tiny */
        e = (int64_t)(r % 4);
        break;
    case 6: /* huge */
        e = (int64_t)top - 1 - (int64_t)(r % 4);
        break;
    default: /* a few that are no numbers */
        if (r % 97 == 0)
            return sign | top << frac_bits | (r % 194 ? frac : 0);
        e += (int64_t)(r % 5) - 2;
    }
    e = e < 0 ? 0 : e >= (int64_t)top ? (int64_t)top - 1 : e;
    return sign | (uint64_t)e << frac_bits | f;
}

static inline uint64_t vector_input(const struct vector_line *v, int arg, int reg, uint32_t i)
{
    uint64_t h = vector_hash(v->name, strlen(v->name), 0xcbf29ce484222325u);
    uint64_t r = vector_mix(h ^ vector_mix((uint64_t)i << 8 | (uint64_t)arg << 4 | (uint64_t)reg));
    uint64_t r2 = vector_mix(r);
    int mode = (int)(i / 32 % 8);
    switch (v->letter[arg]) {
    case 'h':
        return vector_int(r, 16);
    case 'r':
        return vector_int(r, 32);
    case 'd':
        return vector_int(r, 64);
    case 'p':
        return r & 1;
    case 's':
        return r & 1 ? (r >> 1) % 72 : r & 2 ? (r >> 2) % 300 : r >> 32;
    case 'n':
        return (uint32_t)(r % 9 - 4);
    case 'w':
        return r & 1 ? vector_int(r >> 1, 32) : (uint32_t)((r >> 1) % 1000 - 500);
    case 'e':
        return vector_float(r, 5, 10);
    case 'b':
        return vector_float(r, 8, 7);
    case 'f':
        return vector_float(r, 8, 23);
    case 'g':
        return vector_float(r, 11, 52);
    case 'k':
        return vector_float(r, 5, 10) | vector_float(r2, 5, 10) << 16;
    case 'l':
        return vector_float(r, 8, 7) | vector_float(r2, 8, 7) << 16;
    case 'K':
        return vector_element(r, mode, 5, 10) | vector_element(r2, mode, 5, 10) << 16;
    case 'L':
        return vector_element(r, mode, 8, 7) | vector_element(r2, mode, 8, 7) << 16;
    case 'T':
        return vector_element(r, mode, 8, 10) << 13 | (r2 & 0x1fff);
    case 'F':
        return vector_element(r, mode, 8, 23);
    case 'G':
        return vector_element(r, mode, 11, 52);
    case 'Y':
    case 'Z': {
        uint64_t x = 0;
        int e = v->letter[arg] == 'Y' ? 4 : 5;
        for (int k = 0; k < 4; k++, r = vector_mix(r))
            x |= vector_element(r, mode, e, 7 - e) << (8 * k);
        return x;
    }
    case 'B':
        return mode < 3 ? r >> 32 & 0x0f0f0f0f : r >> 32;
    case 'R':
        return mode == 6 ? vector_int(r, 32) : (uint32_t)((r >> 3) % 100000 - 50000);
    default: /* y z: any bits */
        return r >> 16 & 0xffff;
    }
}

/* ---- results ---- */

/* Every NaN becomes one. */
static inline uint64_t vector_canonical(char letter, uint64_t x)
{
    switch (letter) {
    case 'f':
    case 'F':
    case 'T':
        return (x & 0x7fffffff) > 0x7f800000 ? 0x7fffffff : x & 0xffffffff;
    case 'g':
    case 'G':
        return (x & 0x7fffffffffffffff) > 0x7ff0000000000000 ? 0x7fffffffffffffff : x;
    case 'e':
        return (x & 0x7fff) > 0x7c00 ? 0x7fff : x & 0xffff;
    case 'b':
        return (x & 0x7fff) > 0x7f80 ? 0x7fff : x & 0xffff;
    case 'k':
    case 'K':
        return vector_canonical('e', x) | vector_canonical('e', x >> 16) << 16;
    case 'l':
    case 'L':
        return vector_canonical('b', x) | vector_canonical('b', x >> 16) << 16;
    default:
        return x;
    }
}

#endif
