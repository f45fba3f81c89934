/*
 * test_low.c - f8, f6 and f4: conversions and mma.sync, with and without block scales, against the
 * rules of PTX written down a second time here, in double and without sharing code.
 *
 * One thing at a time is exhaustive: every byte with every byte, at every k in turn, for each pair
 * of types, so all pairs of f4, f6 and f8. Whole sums and scales are drawn.
 */
#include "support.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

enum {
    LANES = 32,
    WORDS = 13, /* a0..a3 b0 b1 c0..c3 scales of A, of B, selectors */
    TYPES = 5,
    PAIRS = TYPES * TYPES,
    DRAWN = 64
};

static const struct format {
    const char *name;
    int exp_bits, frac_bits, shift; /* shift: where it begins in its byte */
    int special;                    /* 0: all numbers, 1: NaN in the last code, 2: IEEE */
} formats[TYPES] = {{"e4m3", 4, 3, 0, 1},
                    {"e5m2", 5, 2, 0, 2},
                    {"e3m2", 3, 2, 0, 0},
                    {"e2m3", 2, 3, 0, 0},
                    {"e2m1", 2, 1, 2, 0}};

static double code_value(const struct format *f, unsigned code)
{
    unsigned frac = code & ((1u << f->frac_bits) - 1), top = (1u << f->exp_bits) - 1;
    unsigned exp = code >> f->frac_bits & top;
    int bias = (1 << (f->exp_bits - 1)) - 1;
    double sign = code >> (f->exp_bits + f->frac_bits) & 1 ? -1 : 1;
    if (f->special == 1 && exp == top && frac == (1u << f->frac_bits) - 1)
        return (double)NAN;
    if (f->special == 2 && exp == top)
        return frac ? (double)NAN : sign * (double)INFINITY;
    return exp ? sign * ldexp(1 + (double)frac / (1 << f->frac_bits), (int)exp - bias)
               : sign * ldexp((double)frac / (1 << f->frac_bits), 1 - bias);
}

static double byte_value(const struct format *f, unsigned byte)
{
    return code_value(f, byte >> f->shift & ((1u << (1 + f->exp_bits + f->frac_bits)) - 1));
}

static double scale_value(bool ue4m3, unsigned byte)
{
    if (ue4m3)
        return code_value(&formats[0], byte & 127);
    return byte == 255 ? (double)NAN : ldexp(1, (int)byte - 127);
}

static uint32_t next(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* ---- running ---- */

static const char head[] =
    ".version 9.0\n.target sm_120a\n.address_size 64\n"
    ".visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
    ".reg .b32 %w<32>; .reg .b16 %h<8>; .reg .b64 %p<8>; .reg .f32 %f<32>; .reg .b8 %b<4>;\n"
    "ld.param.u64 %p0, [in]; ld.param.u64 %p1, [out];\n"
    "mov.u32 %w30, %tid.x; mov.u32 %w31, %ctaid.x;\n";

/* Runs the body in `blocks` blocks of one warp. */
static void run(const char *body, const void *in, size_t in_bytes, void *out, size_t out_bytes,
                uint32_t blocks)
{
    struct arena *a = arena_new();
    struct error err = {0};
    struct simt_config config = {.threads = 1, .check = SIMT_CHECK_MEMORY, .watchdog_ms = 1200000};
    char *so = compile_text(text_of(arena_printf(a, "%s%s\nret;\n}\n", head, body)), a);
    struct simt *dev;
    struct simt_module *mod;
    struct simt_result r;
    struct bench_args x = {0};

    assert_true(simt_open(&config, &dev, &err));
    simt_alloc_register(dev, (void *)(uintptr_t)in, in_bytes, "in",
                        SIMT_ALLOC_READONLY | SIMT_ALLOC_WRITTEN);
    simt_alloc_register(dev, out, out_bytes, "out", 0);
    if (!simt_load(dev, so, &mod, &err))
        fail_msg("%s", err.text);
    put_arg(&x, &in, 8);
    put_arg(&x, &out, 8);
    struct simt_launch l = {.kernel = "k",
                            .grid = {blocks, 1, 1},
                            .block = {LANES, 1, 1},
                            .params = x.data,
                            .param_bytes = x.len};
    if (!simt_launch(dev, mod, &l, a, &r, &err))
        fail_msg("%s", err.text);
    if (r.outcome != SIMT_OK || r.finding_count)
        fail_msg("%s", r.finding_count ? r.findings[0].text : r.text);
    simt_close(dev);
    arena_free(a);
}

/* ---- matrices ---- */

/* A product of 16 rows, 8 columns and k up to 64 as bytes (or nibbles), and its scales. */
struct product {
    unsigned char a[16][64], b[8][64];
    float c[16][8];
    uint32_t scale_a[LANES], scale_b[LANES];
    unsigned byte_a, lanes_a, byte_b, lanes_b;
};

/* Into the registers of a warp, as PTX draws the fragments. per: elements of a register. */
static void spread(const struct product *p, unsigned per, uint32_t (*w)[LANES])
{
    unsigned bits = 32 / per;
    memset(w, 0, WORDS * sizeof *w);
    for (unsigned lane = 0; lane < LANES; lane++) {
        unsigned g = lane / 4, t = lane % 4;
        for (unsigned e = 0; e < per; e++) {
            for (unsigned i = 0; i < 4; i++)
                w[i][lane] |= (uint32_t)p->a[g + 8 * (i % 2)][t * per + e + 4 * per * (i / 2)]
                              << (bits * e);
            for (unsigned i = 0; i < 2; i++)
                w[4 + i][lane] |= (uint32_t)p->b[g][t * per + e + 4 * per * i] << (bits * e);
        }
        for (unsigned i = 0; i < 4; i++)
            memcpy(&w[6 + i][lane], &p->c[g + 8 * (i / 2)][t * 2 + i % 2], 4);
        w[10][lane] = p->scale_a[lane];
        w[11][lane] = p->scale_b[lane];
        w[12][lane] = p->byte_a | p->lanes_a << 8 | p->byte_b << 16 | p->lanes_b << 24;
    }
}

static double scale_of_row(const struct product *p, bool ue4m3, unsigned row, unsigned block)
{
    uint32_t word = p->scale_a[4 * (row % 8) + 2 * p->lanes_a + row / 8];
    return scale_value(ue4m3, word >> (8 * (p->byte_a + block)) & 255);
}

static double scale_of_column(const struct product *p, bool ue4m3, unsigned col, unsigned block)
{
    uint32_t word = p->scale_b[4 * col + p->lanes_b];
    return scale_value(ue4m3, word >> (8 * (p->byte_b + block)) & 255);
}

struct form {
    const struct format *a, *b;
    unsigned k, blocks; /* blocks 0: no scales */
    bool ue4m3, half, packed;
};

/* The value, and how far from it a sum in f32 may be. */
static double expected(const struct product *p, const struct form *f, unsigned row, unsigned col,
                       double *slack)
{
    unsigned blocks = f->blocks ? f->blocks : 1;
    double sum = (double)p->c[row][col], size = fabs(sum);
    for (unsigned k = 0; k < f->k; k++) {
        unsigned n = k / (f->k / blocks);
        double s = f->blocks
                       ? scale_of_row(p, f->ue4m3, row, n) * scale_of_column(p, f->ue4m3, col, n)
                       : 1;
        double x = f->packed ? code_value(f->a, p->a[row][k]) : byte_value(f->a, p->a[row][k]);
        double y = f->packed ? code_value(f->b, p->b[col][k]) : byte_value(f->b, p->b[col][k]);
        sum += x * y * s;
        size += fabs(x * y * s);
    }
    *slack = size * (f->half ? 0x1p-10 : 0x1p-18) + (f->half ? 0x1p-24 : 0x1p-149);
    return sum;
}

static float half_value(unsigned h)
{
    float m = (float)((h & 0x3ff) + (h & 0x7c00 ? 1024 : 0));
    float v = (h & 0x7c00) == 0x7c00 ? (h & 0x3ff ? NAN : INFINITY)
                                     : ldexpf(m, (h & 0x7c00 ? (int)(h >> 10 & 31) : 1) - 25);
    return h & 0x8000 ? -v : v;
}

/* Results of a warp against the rules; exact: bit by bit what the double says, rounded once. */
static void compare(const struct product *p, const struct form *f, uint32_t (*d)[LANES], bool exact,
                    const char *what)
{
    for (unsigned lane = 0; lane < LANES; lane++)
        for (unsigned i = 0; i < 4; i++) {
            unsigned row = lane / 4 + 8 * (i / 2), col = lane % 4 * 2 + i % 2;
            double slack, want = expected(p, f, row, col, &slack);
            float got;
            if (f->half)
                got = half_value(d[i / 2][lane] >> (16 * (i % 2)) & 0xffff);
            else
                memcpy(&got, &d[i][lane], 4);
            double most = f->half ? 65520.0 : 0x1.ffffffp127;
            bool ok = isnan(want)          ? isnan(got)
                      : fabs(want) >= most ? isinf(got) && (got > 0) == (want > 0)
                      : exact && !f->half  ? got == (float)want
                                           : fabs((double)got - want) <= slack;
            if (!ok)
                fail_msg("%s: row %u, column %u: %g, want %g", what, row, col, (double)got, want);
        }
}

/* Every byte with every byte: 16 of A's and 8 of B's in a product, at one k. */
static void fill_pairs(struct product *p, unsigned number, unsigned k, unsigned codes)
{
    unsigned columns = codes / 8;
    memset(p, 0, sizeof *p);
    for (unsigned i = 0; i < 16; i++)
        p->a[i][number % k] = (unsigned char)(number / columns * 16 % codes + i);
    for (unsigned i = 0; i < 8; i++)
        p->b[i][number % k] = (unsigned char)(number % columns * 8 + i);
    for (unsigned lane = 0; lane < LANES; lane++)
        p->scale_a[lane] = p->scale_b[lane] = 0x7f7f7f7f; /* 1 in ue8m0 */
}

static void fill_drawn(struct product *p, uint32_t *seed, unsigned k, unsigned codes, bool ue4m3)
{
    memset(p, 0, sizeof *p);
    for (unsigned i = 0; i < 16; i++)
        for (unsigned j = 0; j < k; j++)
            p->a[i][j] = (unsigned char)(next(seed) % codes);
    for (unsigned i = 0; i < 8; i++)
        for (unsigned j = 0; j < k; j++)
            p->b[i][j] = (unsigned char)(next(seed) % codes);
    for (unsigned i = 0; i < 128; i++)
        p->c[i / 8][i % 8] = (float)((int)(next(seed) % 2001) - 1000) / 8;
    for (unsigned lane = 0; lane < LANES; lane++)
        for (unsigned byte = 0; byte < 4; byte++) {
            p->scale_a[lane] |= (ue4m3 ? next(seed) % 127 : 117 + next(seed) % 20) << (8 * byte);
            p->scale_b[lane] |= (ue4m3 ? next(seed) % 127 : 117 + next(seed) % 20) << (8 * byte);
        }
    p->lanes_a = next(seed) % 2;
    p->lanes_b = next(seed) % 2;
}

static const char loads[] =
    "mul.lo.u32 %w29, %w31, 1664; mad.wide.u32 %p2, %w29, 1, %p0; mul.wide.u32 %p3, %w30, 4;\n"
    "add.s64 %p2, %p2, %p3;\n"
    "ld.global.b32 %w0, [%p2]; ld.global.b32 %w1, [%p2+128]; ld.global.b32 %w2, [%p2+256];\n"
    "ld.global.b32 %w3, [%p2+384]; ld.global.b32 %w4, [%p2+512]; ld.global.b32 %w5, [%p2+640];\n"
    "ld.global.f32 %f0, [%p2+768]; ld.global.f32 %f1, [%p2+896];\n"
    "ld.global.f32 %f2, [%p2+1024]; ld.global.f32 %f3, [%p2+1152];\n"
    "ld.global.b32 %w6, [%p2+1280]; ld.global.b32 %w7, [%p2+1408]; ld.global.b32 %w8, [%p2+1536];\n"
    "cvt.u16.u32 %h0, %w8; and.b16 %h0, %h0, 255; shr.u32 %w9, %w8, 8; cvt.u16.u32 %h1, %w9;\n"
    "and.b16 %h1, %h1, 255; shr.u32 %w9, %w8, 16; cvt.u16.u32 %h2, %w9; and.b16 %h2, %h2, 255;\n"
    "shr.u32 %w9, %w8, 24; cvt.u16.u32 %h3, %w9;\n"
    "cvt.rn.f16x2.f32 %w10, %f1, %f0; cvt.rn.f16x2.f32 %w11, %f3, %f2;\n";

static const char scales[] = ", {%w6}, {%h0, %h1}, {%w7}, {%h2, %h3}";

/* Appends an instruction and the stores of its four results, number `at` of `count`. */
static char *append(struct arena *a, const char *text, const char *name, bool half, bool scaled,
                    int at, int count)
{
    const char *stores = "";
    for (int i = 0; i < (half ? 2 : 4); i++)
        stores = arena_printf(a, "%sst.global.b32 [%%p4+%d], %s%d;\n", stores, i * 128,
                              half ? "%w1" : "%f1", half ? 2 + i : i);
    return arena_printf(
        a,
        "%smul.lo.u32 %%w29, %%w31, %d; add.u32 %%w29, %%w29, %d; mad.wide.u32 %%p4, %%w29, 1, "
        "%%p1; add.s64 %%p4, %%p4, %%p3;\n%s %s, {%%w0, %%w1, %%w2, %%w3}, {%%w4, %%w5}, %s%s;\n%s",
        text, count * 512, at * 512, name, half ? "{%w12, %w13}" : "{%f10, %f11, %f12, %f13}",
        half ? "{%w10, %w11}" : "{%f0, %f1, %f2, %f3}", scaled ? scales : "", stores);
}

/* A slow build (sanitizers) takes a part of the products; the *exact ones come first. */
static unsigned some(struct product *p, unsigned count, unsigned *exact)
{
    const char *slow = getenv("SIMT_VECTORS_EVERY");
    unsigned every = slow ? (unsigned)strtoul(slow, NULL, 10) : 1, n = 0;
    for (unsigned i = 0; i < count; i += every)
        p[n++] = p[i];
    *exact = (*exact + every - 1) / every;
    return n;
}

/* All products through all forms, which differ in name only. */
static void judge(struct product *p, unsigned count, const struct form *forms, char *const *names,
                  unsigned form_count, unsigned exact)
{
    struct arena *a = arena_new();
    const char *text = loads;
    count = some(p, count, &exact);
    uint32_t(*in)[LANES] = xmalloc(count * WORDS * sizeof *in);
    uint32_t(*out)[LANES] = xmalloc((size_t)count * form_count * 4 * sizeof *out);
    for (unsigned i = 0; i < form_count; i++)
        text =
            append(a, text, names[i], forms[i].half, forms[i].blocks > 0, (int)i, (int)form_count);
    for (unsigned i = 0; i < count; i++)
        spread(&p[i], forms->packed ? 8 : 4, in + i * WORDS);
    run(text, in, count * WORDS * sizeof *in, out, (size_t)count * form_count * 4 * sizeof *out,
        count);
    for (unsigned i = 0; i < count; i++)
        for (unsigned f = 0; f < form_count; f++)
            compare(&p[i], &forms[f], out + ((size_t)i * form_count + f) * 4, i < exact, names[f]);
    xfree(in);
    xfree(out);
    arena_free(a);
}

static void bytes_with_bytes(bool half, bool scaled)
{
    enum { ALL = 512 };
    struct arena *a = arena_new();
    struct product *p = xmalloc((ALL + DRAWN) * sizeof *p);
    struct form forms[PAIRS];
    char *names[PAIRS];
    uint32_t seed = half ? 5 : 9;
    for (int i = 0; i < PAIRS; i++) {
        forms[i] = (struct form){.a = &formats[i / TYPES],
                                 .b = &formats[i % TYPES],
                                 .k = 32,
                                 .blocks = scaled,
                                 .half = half};
        names[i] =
            arena_printf(a, "mma.sync.aligned.%sm16n8k32.row.col.%s.%s.%s.%s%s",
                         scaled ? "kind::mxf8f6f4.block_scale.scale_vec::1X." : "kind::f8f6f4.",
                         half ? "f16" : "f32", forms[i].a->name, forms[i].b->name,
                         half ? "f16" : "f32", scaled ? ".ue8m0" : "");
    }
    for (unsigned i = 0; i < ALL; i++)
        fill_pairs(&p[i], i, 32, 256);
    for (unsigned i = 0; i < DRAWN; i++) {
        fill_drawn(&p[ALL + i], &seed, 32, 256, false);
        p[ALL + i].byte_a = next(&seed) % 4;
        p[ALL + i].byte_b = next(&seed) % 4;
    }
    judge(p, ALL + DRAWN, forms, names, PAIRS, ALL);
    xfree(p);
    arena_free(a);
}

static void every_byte_times_every_byte_with_sums_in_f32(void **state)
{
    (void)state;
    bytes_with_bytes(false, false);
}

static void every_byte_times_every_byte_with_sums_in_f16(void **state)
{
    (void)state;
    bytes_with_bytes(true, false);
}

static void every_byte_times_every_byte_with_scales(void **state)
{
    (void)state;
    bytes_with_bytes(false, true);
}

/* f4 packed: 16 x 16 codes are two products, at each of 64 places. */
static void packed_fours_with_scales(void **state)
{
    enum { ALL = 128 };
    static const struct {
        const char *kind, *type;
        unsigned blocks;
    } kinds[] = {{"kind::mxf4.block_scale.scale_vec::2X", "ue8m0", 2},
                 {"kind::mxf4.block_scale", "ue8m0", 2},
                 {"kind::mxf4nvf4.block_scale.scale_vec::2X", "ue8m0", 2},
                 {"kind::mxf4nvf4.block_scale.scale_vec::4X", "ue8m0", 4},
                 {"kind::mxf4nvf4.block_scale.scale_vec::4X", "ue4m3", 4}};
    struct product *p = xmalloc((ALL + DRAWN) * sizeof *p);
    (void)state;
    for (size_t n = 0; n < ARRAY_LEN(kinds); n++) {
        struct arena *a = arena_new();
        bool ue4m3 = strcmp(kinds[n].type, "ue4m3") == 0;
        struct form form = {.a = &formats[4],
                            .b = &formats[4],
                            .k = 64,
                            .blocks = kinds[n].blocks,
                            .ue4m3 = ue4m3,
                            .packed = true};
        char *name = arena_printf(a, "mma.sync.aligned.%s.m16n8k64.row.col.f32.e2m1.e2m1.f32.%s",
                                  kinds[n].kind, kinds[n].type);
        uint32_t seed = 77 + (uint32_t)n;
        for (unsigned i = 0; i < ALL; i++) {
            fill_pairs(&p[i], i, 64, 16);
            for (unsigned lane = 0; lane < LANES && ue4m3; lane++)
                p[i].scale_a[lane] = p[i].scale_b[lane] = 0x38383838; /* 1 */
        }
        for (unsigned i = 0; i < DRAWN; i++) {
            fill_drawn(&p[ALL + i], &seed, 64, 16, ue4m3);
            if (kinds[n].blocks == 2) {
                p[ALL + i].byte_a = next(&seed) % 2 * 2;
                p[ALL + i].byte_b = next(&seed) % 2 * 2;
            }
        }
        judge(p, ALL + DRAWN, &form, &name, 1, ALL);
        arena_free(a);
    }
    xfree(p);
}

/* What sm_89 has without a kind. */
static void f8_without_a_kind(void **state)
{
    struct form forms[4] = {{&formats[0], &formats[1], 32, 0, false, false, false},
                            {&formats[1], &formats[0], 32, 0, false, true, false}};
    char *names[] = {(char[]){"mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32"},
                     (char[]){"mma.sync.aligned.m16n8k32.row.col.f16.e5m2.e4m3.f16"}};
    struct product p[DRAWN];
    uint32_t seed = 3;
    (void)state;
    for (unsigned i = 0; i < DRAWN; i++)
        fill_drawn(&p[i], &seed, 32, 64, false);
    judge(p, DRAWN, forms, names, 2, 0);
}

/* ---- conversions ---- */

/* The nearest code, the even one of two; what is beyond goes to the largest. */
static unsigned nearest(const struct format *f, double x)
{
    unsigned width = 1u + (unsigned)f->exp_bits + (unsigned)f->frac_bits, best = 0;
    unsigned sign = signbit(x) ? 1u << (width - 1) : 0;
    double least = INFINITY;
    if (isnan(x))
        return (1u << (width - 1)) - 1; /* or, of those that have none, the largest number */
    for (unsigned code = 0; code < 1u << (width - 1); code++) {
        double v = code_value(f, code), off = fabs(fabs(x) - v);
        if (!isfinite(v))
            continue;
        if (fabs(x) > 1e6) /* far off: differences are not exact */
            off = -v;
        if (off < least || (off == least && !(code & 1))) {
            least = off;
            best = code;
        }
    }
    return sign | best;
}

static void conversions_round_to_the_nearest_code(void **state)
{
    enum { COUNT = 4096 };
    struct arena *a = arena_new();
    float *in = xmalloc(COUNT * sizeof *in);
    uint32_t *out = xmalloc((size_t)COUNT * TYPES * sizeof *out), seed = 1;
    const char *text = "mad.lo.u32 %w0, %w31, 32, %w30; mul.wide.u32 %p2, %w0, 4;"
                       "add.s64 %p3, %p0, %p2; ld.global.f32 %f0, [%p3];"
                       "neg.f32 %f1, %f0; add.s64 %p4, %p1, %p2;\n";
    (void)state;
    for (int i = 0; i < COUNT; i++) {
        uint32_t bits = next(&seed) << 8 ^ next(&seed);
        memcpy(&in[i], &bits, 4);
        if (i % 4) /* sizes that matter, halves and quarters of steps among them */
            in[i] = ldexpf((float)((int)(next(&seed) % 129) - 64), (int)(next(&seed) % 24) - 18);
    }
    for (int t = 0; t < TYPES; t++) {
        const char *name = formats[t].name;
        if (t < 4)
            text = arena_printf(a,
                                "%scvt.rn.satfinite.%sx2.f32 %%h0, %%f1, %%f0; cvt.u32.u16 "
                                "%%w1, %%h0; cvt.rn.f16x2.%sx2 %%w2, %%h0;\n",
                                text, name, name);
        else
            text = arena_printf(a,
                                "%scvt.rn.satfinite.%sx2.f32 %%b0, %%f1, %%f0; mov.b16 %%h0, "
                                "{%%b0, 0}; cvt.u32.u16 %%w1, %%h0; mov.b16 {%%b1, %%b2}, %%h0; "
                                "cvt.rn.f16x2.%sx2 %%w2, %%b1;\n",
                                text, name, name);
        /* back again: the code as f16, compared in place */
        text = arena_printf(a,
                            "%sand.b32 %%w3, %%w2, 0xffff; shl.b32 %%w3, %%w3, 16; and.b32 "
                            "%%w1, %%w1, 0xffff; or.b32 %%w1, %%w1, %%w3; st.global.b32 "
                            "[%%p4+%d], %%w1;\n",
                            text, t * COUNT * 4);
    }
    run(text, in, COUNT * sizeof *in, out, (size_t)COUNT * TYPES * sizeof *out, COUNT / LANES);
    for (int t = 0; t < TYPES; t++)
        for (int i = 0; i < COUNT; i++) {
            const struct format *f = &formats[t];
            unsigned bits = t == 4 ? 4 : 8, code = out[t * COUNT + i] & 0xffff;
            unsigned low = nearest(f, (double)in[i]), high = nearest(f, -(double)in[i]);
            bool nan = isnan(in[i]);
            if (code != (low | high << bits) && !nan)
                fail_msg("%s of %g: %x, want %x", f->name, (double)in[i], code, low | high << bits);
            if (nan && (code & ((1u << bits) - 1)) != low)
                fail_msg("%s of NaN: %x, want %x", f->name, code, low);
            float back = half_value(out[t * COUNT + i] >> 16);
            double v = code_value(f, code & ((1u << bits) - 1));
            if (isnan(v) ? !isnan(back) : (double)back != v)
                fail_msg("%s %x back: %g, want %g", f->name, code, (double)back, v);
        }
    xfree(in);
    xfree(out);
    arena_free(a);
}

static void scales_are_powers_of_two(void **state)
{
    static const struct {
        float x;
        unsigned down, up, up_finite;
    } cases[] = {{0, 0, 0, 0},
                 {1, 127, 127, 127},
                 {-1, 127, 127, 127},
                 {1.5f, 127, 128, 128},
                 {0x1p-127f, 0, 0, 0},
                 {0x1.8p-127f, 0, 1, 1},
                 {0x1p-149f, 0, 0, 0},
                 {0x1p127f, 254, 254, 254},
                 {0x1.8p127f, 254, 255, 254},
                 {INFINITY, 255, 255, 254},
                 {NAN, 255, 255, 255}};
    float in[LANES] = {0};
    uint32_t out[4][LANES];
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        in[i] = cases[i].x;
    run("mul.wide.u32 %p2, %w30, 4; add.s64 %p3, %p0, %p2; ld.global.f32 %f0, [%p3]; mov.f32 %f1, "
        "0f3F800000; add.s64 %p4, %p1, %p2;\n"
        "cvt.rz.ue8m0x2.f32 %h0, %f1, %f0; cvt.u32.u16 %w0, %h0; st.global.b32 [%p4], %w0;\n"
        "cvt.rp.ue8m0x2.f32 %h0, %f1, %f0; cvt.u32.u16 %w0, %h0; st.global.b32 [%p4+128], %w0;\n"
        "cvt.rp.satfinite.ue8m0x2.f32 %h0, %f1, %f0; cvt.u32.u16 %w0, %h0;\n"
        "st.global.b32 [%p4+256], %w0; cvt.rn.bf16x2.ue8m0x2 %w1, %h0; st.global.b32 [%p4+384], "
        "%w1;",
        in, sizeof in, out, sizeof out, 1);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(out[0][i], 127u << 8 | cases[i].down);
        assert_int_equal(out[1][i], 127u << 8 | cases[i].up);
        assert_int_equal(out[2][i], 127u << 8 | cases[i].up_finite);
        unsigned code = cases[i].up_finite, bf = out[3][i] & 0xffff;
        assert_int_equal(bf, code == 255 ? 0x7fff : code ? code << 7 : 0x40);
    }
}

/* Sixteen elements of a row, packed, become bytes. */
static void rows_of_fours_and_sixes_become_bytes(void **state)
{
    uint32_t in[2][LANES], out[2][LANES];
    unsigned char bytes[128], got[2][128];
    (void)state;
    for (int i = 0; i < 128; i++)
        bytes[i] = (unsigned char)(i * 37 + 11);
    memcpy(in[0], bytes, sizeof bytes);
    memset(in[1], 0, sizeof in[1]);
    run(".shared .align 16 .b8 s[128]; mov.u32 %w10, s; mul.wide.u32 %p2, %w30, 4; add.s64 %p3, "
        "%p0,"
        " %p2; ld.global.b32 %w0, [%p3]; mad.lo.u32 %w1, %w30, 4, %w10; st.shared.b32 [%w1], %w0;\n"
        "bar.sync 0; and.b32 %w2, %w30, 7; mad.lo.u32 %w3, %w2, 16, %w10; add.s64 %p4, %p1, %p2;\n"
        "ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b4x16_p64 {%w4}, [%w3];\n"
        "ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b6x16_p32 {%w5}, [%w3];\n"
        "st.global.b32 [%p4], %w4; st.global.b32 [%p4+128], %w5;",
        in, sizeof in, out, sizeof out, 1);
    memcpy(got, out, sizeof got);
    for (int row = 0; row < 8; row++)
        for (int i = 0; i < 16; i++) {
            int four = bytes[row * 16 + i / 2] >> (4 * (i % 2)) & 15, six = 0;
            for (int bit = 0; bit < 6; bit++)
                six |= (bytes[row * 16 + (6 * i + bit) / 8] >> ((6 * i + bit) % 8) & 1) << bit;
            assert_int_equal(got[0][row * 16 + i], four);
            assert_int_equal(got[1][row * 16 + i], six);
        }
}

/* Bytes of 16x16 matrices as the B of a product of bytes: four rows of one column in a register.
 * And back again, as sums of a product: 16x8, each column a row of memory. */
static void matrices_of_bytes_are_transposed(void **state)
{
    enum { BYTES = 512, REGS = 4 };
    unsigned char in[BYTES], back[BYTES];
    uint32_t out[REGS + 4][LANES];
    (void)state;
    for (int i = 0; i < BYTES; i++)
        in[i] = (unsigned char)(i * 37 + i / 256 + 11);
    run(".shared .align 16 .b8 s[512]; .shared .align 16 .b8 t[512]; mov.u32 %w10, s; mov.u32 "
        "%w11, "
        "t; mul.wide.u32 %p2, %w30, 16; add.s64 %p3, %p0, %p2; mad.lo.u32 %w1, %w30, 16, %w10;\n"
        "ld.global.v4.b32 {%w2, %w3, %w4, %w5}, [%p3]; st.shared.v4.b32 [%w1], {%w2, %w3, %w4, "
        "%w5};\n"
        "bar.sync 0; mul.wide.u32 %p4, %w30, 4; add.s64 %p4, %p1, %p4;\n"
        "ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8 {%w6, %w7, %w8, %w9}, [%w1];\n"
        "st.global.b32 [%p4], %w6; st.global.b32 [%p4+128], %w7; st.global.b32 [%p4+256], %w8; "
        "st.global.b32 [%p4+384], %w9;\n"
        "mad.lo.u32 %w12, %w30, 16, %w11;\n"
        "stmatrix.sync.aligned.m16n8.x4.trans.shared.b8 [%w12], {%w6, %w7, %w8, %w9};\n"
        "bar.sync 0; ld.shared.v4.b32 {%w2, %w3, %w4, %w5}, [%w12]; add.s64 %p5, %p1, %p2;\n"
        "st.global.v4.b32 [%p5+512], {%w2, %w3, %w4, %w5};",
        in, sizeof in, out, sizeof out, 1);
    memcpy(back, out[REGS], sizeof back);
    for (unsigned lane = 0; lane < LANES; lane++)
        for (unsigned r = 0; r < REGS; r++)
            for (unsigned b = 0; b < 4; b++) {
                unsigned row = 16 * (r / 2) + 4 * (lane % 4) + b, column = lane / 4 + 8 * (r % 2);
                unsigned got = out[r][lane] >> (8 * b) & 255;
                assert_int_equal(got, in[16 * row + column]);
                assert_int_equal(back[16 * (8 * r + 2 * (lane % 4) + b % 2) + lane / 4 + b / 2 * 8],
                                 got);
            }
}

/* Two f32 in 64 bits: what one f32 gives, twice. */
static void pairs_of_f32_are_two_of_one(void **state)
{
    enum { COUNT = 1024, OPS = 5 };
    static const char *const ops[OPS] = {
        "add.rn.f32x2 %p6, %p5, %p4;", "mul.rn.f32x2 %p6, %p5, %p4;",
        "fma.rn.f32x2 %p6, %p5, %p4, %p5;", "fma.rn.ftz.f32x2 %p6, %p5, %p4, %p5;",
        "sub.rn.f32x2 %p6, %p5, %p4;"};
    struct arena *a = arena_new();
    float *in = xmalloc(2 * COUNT * sizeof *in);
    float(*out)[COUNT] = xmalloc(OPS * sizeof *out);
    uint32_t seed = 5;
    const char *text =
        "mad.lo.u32 %w0, %w31, 32, %w30; mul.wide.u32 %p2, %w0, 8; add.s64 %p3, %p0, "
        "%p2; ld.global.b64 %p5, [%p3]; ld.global.b64 %p4, [%p3+4096]; add.s64 %p7, "
        "%p1, %p2;\n";
    (void)state;
    for (int i = 0; i < 2 * COUNT; i++) {
        uint32_t bits = next(&seed) << 8 ^ next(&seed);
        memcpy(&in[i], &bits, 4);
        if (i % 4 == 3)
            in[i] = ldexpf(in[i], -140); /* small ones */
        if (isnan(in[i]))
            in[i] = 1.0f;
    }
    for (int op = 0; op < OPS; op++)
        text =
            arena_printf(a, "%s%s st.global.b64 [%%p7+%d], %%p6;\n", text, ops[op], op * COUNT * 4);
    run(text, in, 2 * COUNT * sizeof *in, out, OPS * sizeof *out, COUNT / 2 / LANES);
    for (int i = 0; i < COUNT; i++) {
        float x = in[i], y = in[COUNT + i], z = fmaf(x, y, x), ftz = z;
        float fx = fabsf(x) < FLT_MIN ? copysignf(0, x) : x,
              fy = fabsf(y) < FLT_MIN ? copysignf(0, y) : y;
        ftz = fmaf(fx, fy, fx);
        ftz = fabsf(ftz) < FLT_MIN ? copysignf(0, ftz) : ftz;
        const float want[OPS] = {x + y, x * y, z, ftz, x - y};
        for (int op = 0; op < OPS; op++)
            if (!(isnan(want[op]) && isnan(out[op][i])))
                assert_memory_equal(&out[op][i], &want[op], 4);
    }
    xfree(in);
    xfree(out);
    arena_free(a);
}

/* What does not exist is refused with its line, not guessed. */
static void other_combinations_are_refused(void **state)
{
    static const char *const names[] = {
        "mma.sync.aligned.m16n8k32.row.col.f32.e2m1.e2m1.f32", /* no kind */
        "mma.sync.aligned.kind::mxf4.block_scale.scale_vec::4X.m16n8k64.row.col.f32.e2m1.e2m1.f32."
        "ue8m0",
        "mma.sync.aligned.kind::mxf4nvf4.block_scale.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue8m0",
        "mma.sync.aligned.kind::f8f6f4.m16n8k64.row.col.f32.e2m1.e2m1.f32",
        "mma.sync.aligned.kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col.f32.e4m3.e4m3."
        "f32.ue4m3"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct arena *a = arena_new();
        struct error err = {0};
        struct translate_options opt = {.cache_dir = cache_dir(a)};
        struct simt_built built;
        const char *kernel = "k";
        bool scaled = strstr(names[i], "block_scale") != NULL;
        const char *text = append(a, loads, names[i], false, scaled, 0, 1);
        assert_false(simt_compile(text_of(arena_printf(a, "%s%s\nret;\n}\n", head, text)), &kernel,
                                  1, &opt, a, &built, &err));
        assert_non_null(strstr(err.text, "matrix shape"));
        assert_non_null(strstr(err.text, "line"));
        arena_free(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_times_every_byte_with_sums_in_f32),
        cmocka_unit_test(every_byte_times_every_byte_with_sums_in_f16),
        cmocka_unit_test(every_byte_times_every_byte_with_scales),
        cmocka_unit_test(packed_fours_with_scales),
        cmocka_unit_test(f8_without_a_kind),
        cmocka_unit_test(conversions_round_to_the_nearest_code),
        cmocka_unit_test(scales_are_powers_of_two),
        cmocka_unit_test(rows_of_fours_and_sixes_become_bytes),
        cmocka_unit_test(matrices_of_bytes_are_transposed),
        cmocka_unit_test(pairs_of_f32_are_two_of_one),
        cmocka_unit_test(other_combinations_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
