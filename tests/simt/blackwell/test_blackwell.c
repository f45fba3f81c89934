/*
 * test_blackwell.c - tcgen05: products of every kind against sums in double, every shape of load
 * and store, and injected mistakes with their twins.
 *
 * The PTX is checked in: ../ptx/blackwell_*.ptx are made by make_ptx.sh.
 *
 *     test_simt_blackwell [ORDERS]        orders of warps for the mistakes; 1 unless given
 */
#include "../support.h"

#include <math.h>
#include <stdio.h>

enum { THREADS = 128, SM_BYTES = 14368, MAX_BUGS = 64 };

static char *kernels_so, *bugs_so;
static int orders = 1;

struct run {
    struct arena *a;
    struct simt *dev;
    struct simt_module *mod;
};

static struct run run_begin(char *so, uint64_t seed)
{
    struct simt_config c = {
        .threads = 1, .check = SIMT_CHECK_FULL, .watchdog_ms = 1200000, .warp_order_seed = seed};
    struct run r = {.a = arena_new()};
    struct error err = {0};
    assert_true(simt_open(&c, &r.dev, &err));
    if (!simt_load(r.dev, so, &r.mod, &err))
        fail_msg("%s", err.text);
    return r;
}

static struct simt_result run_grid(struct run *r, const char *name, const struct bench_args *x,
                                   uint32_t wide, uint32_t high)
{
    bool pair = strncmp(name, "pair_", 5) == 0;
    struct simt_launch l = {.kernel = name,
                            .grid = {wide, high, 1},
                            .block = {THREADS, 1, 1},
                            .cluster = {pair ? 2 : 1, 1, 1},
                            .shared_bytes = SM_BYTES,
                            .params = x->data,
                            .param_bytes = x->len};
    struct simt_result out;
    struct error err = {0};
    if (!simt_launch(r->dev, r->mod, &l, r->a, &out, &err))
        fail_msg("%s: %s", name, err.text);
    return out;
}

static struct simt_result run_kernel(struct run *r, const char *name, const struct bench_args *x)
{
    return run_grid(r, name, x, strncmp(name, "pair_", 5) == 0 ? 2 : 1, 1);
}

static void run_end(struct run *r)
{
    simt_close(r->dev);
    arena_free(r->a);
}

static void give(struct run *r, const void *at, size_t bytes, const char *name)
{
    simt_alloc_register(r->dev, (void *)(uintptr_t)at, bytes, name,
                        SIMT_ALLOC_READONLY | SIMT_ALLOC_WRITTEN);
}

static const char *said(const struct simt_result *r)
{
    return r->finding_count ? r->findings[0].text : r->text ? r->text : "nothing";
}

/* ---- products ---- */

enum type { F16, BF16, TF32, U8, S8, E4M3, E5M2, E2M3, E3M2, E2M1, PACKED };

static const struct {
    int exp_bits, frac_bits, bits; /* bits: of an element in memory, padding included */
    unsigned format;               /* in the instruction descriptor */
} types[] = {
    [F16] = {5, 10, 16, 0}, [BF16] = {8, 7, 16, 1}, [TF32] = {8, 10, 32, 2}, [U8] = {0, 0, 8, 0},
    [S8] = {0, 0, 8, 1},    [E4M3] = {4, 3, 8, 0},  [E5M2] = {5, 2, 8, 1},   [E2M3] = {2, 3, 8, 3},
    [E3M2] = {3, 2, 8, 4},  [E2M1] = {2, 1, 8, 5},  [PACKED] = {2, 1, 4, 5}};

static double value_of(enum type t, unsigned code)
{
    int e = types[t].exp_bits, f = types[t].frac_bits, bias = e ? (1 << (e - 1)) - 1 : 0;
    if (t == U8)
        return code;
    if (t == S8)
        return (signed char)code;
    unsigned frac = code & ((1u << f) - 1), exp = code >> f & ((1u << e) - 1);
    double sign = code >> (e + f) & 1 ? -1 : 1;
    return sign * (exp ? ldexp(1 + (double)frac / (1 << f), (int)exp - bias)
                       : ldexp((double)frac / (1 << f), 1 - bias));
}

/* A code of a number that is not large. */
static unsigned draw(enum type t, uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    unsigned x = *seed >> 8, e = (unsigned)types[t].exp_bits, f = (unsigned)types[t].frac_bits;
    if (!e)
        return x & 255;
    unsigned bias = (1u << (e - 1)) - 1;
    unsigned exp = e <= 3 ? x >> 12 & ((1u << e) - 1) : bias - 2 + (x >> 12) % 4;
    return (x & ((1u << f) - 1)) | exp << f | (x >> 20 & 1) << (e + f);
}

/* Element k of a row of 32 bytes: cores of 8 rows and 16 bytes. Fours and sixes in bytes are packed
 * at the beginning of each 16. */
static void put(uint8_t *to, enum type t, unsigned row, unsigned k, unsigned code)
{
    unsigned per = 128u / (unsigned)types[t].bits, c = k / per, in = k % per;
    unsigned wide = t == E2M3 || t == E3M2 ? 6 : t == E2M1 ? 4 : (unsigned)types[t].bits;
    uint8_t *at = to + row / 8 * 256 + c * 128 + row % 8 * 16;
    uint32_t v = t == TF32 ? code << 13 : code;
    for (unsigned b = 0; b < wide; b++)
        if (v >> b & 1)
            at[(in * wide + b) / 8] |= (uint8_t)(1u << ((in * wide + b) % 8));
}

static const struct product {
    const char *kernel;
    enum type a, b;
    int m, n, k, blocks, what;
    bool half, ue4m3;
} products[] = {
    {"f16", F16, F16, 128, 64, 16, 0, 0, false, false},
    {"f16", F16, F16, 128, 256, 16, 0, 1, false, false},
    {"f16", BF16, BF16, 128, 32, 16, 0, 2, false, false},
    {"f16", F16, F16, 128, 32, 16, 0, 0, true, false},
    {"f16", F16, F16, 64, 24, 16, 0, 1, false, false},
    {"f16_memory", F16, F16, 128, 48, 16, 0, 1, false, false},
    {"f16_memory", BF16, BF16, 128, 16, 16, 0, 0, false, false},
    {"tf32", TF32, TF32, 128, 64, 8, 0, 1, false, false},
    {"i8", U8, S8, 128, 32, 32, 0, 1, false, false},
    {"i8", S8, S8, 64, 8, 32, 0, 0, false, false},
    {"f8f6f4", E4M3, E5M2, 128, 64, 32, 0, 0, false, false},
    {"f8f6f4", E2M3, E3M2, 128, 32, 32, 0, 1, false, false},
    {"f8f6f4", E2M1, E4M3, 128, 32, 32, 0, 0, false, false},
    {"f8f6f4", E5M2, E2M1, 64, 16, 32, 0, 0, true, false},
    {"mxf8f6f4", E4M3, E4M3, 128, 64, 32, 1, 0, false, false},
    {"mxf8f6f4", E2M1, E3M2, 128, 256, 32, 1, 1, false, false},
    {"mxf4", PACKED, PACKED, 128, 64, 64, 2, 1, false, false},
    {"mxf4nvf4", PACKED, PACKED, 128, 128, 64, 4, 0, false, true},
    {"mxf4nvf4", PACKED, PACKED, 128, 32, 64, 4, 1, false, false},
};

struct drawn {
    unsigned a[128][64], b[256][64];
    unsigned char sa[128][4], sb[256][4];
    uint8_t memory_a[4096], memory_b[8192], scales[1536];
};

/* Scales: row r is word r / 32 of row r % 32 of 16 bytes; more than 128 follow 512 bytes on. */
static void draw_product(const struct product *p, struct drawn *d, uint32_t *seed)
{
    memset(d, 0, sizeof *d);
    for (int r = 0; r < p->m; r++)
        for (int k = 0; k < p->k; k++)
            put(d->memory_a, p->a, (unsigned)r, (unsigned)k, d->a[r][k] = draw(p->a, seed));
    for (int r = 0; r < p->n; r++)
        for (int k = 0; k < p->k; k++)
            put(d->memory_b, p->b, (unsigned)r, (unsigned)k, d->b[r][k] = draw(p->b, seed));
    for (int r = 0; r < 384; r++)
        for (int i = 0; i < 4; i++) {
            unsigned char *s = r < 128 ? &d->sa[r][i] : &d->sb[r - 128][i];
            int row = r < 128 ? r : r - 128, base = r < 128 ? 0 : 512 + row / 128 * 512;
            *seed = *seed * 1664525u + 1013904223u;
            *s = (unsigned char)(p->ue4m3 ? 40 + (*seed >> 20) % 40 : 120 + (*seed >> 20) % 14);
            d->scales[base + row % 32 * 16 + row % 128 / 32 * 4 + i] = *s;
        }
}

static double scale_of(const struct product *p, unsigned char s)
{
    return p->ue4m3 ? value_of(E4M3, s) : ldexp(1, s - 127);
}

/* The sum, and the sum of its terms' sizes. */
static double expected(const struct product *p, const struct drawn *d, int row, int col,
                       double *size)
{
    double sum = 0, times = p->what & 1 ? 2 : 1;
    *size = 0;
    for (int k = 0; k < p->k; k++) {
        int n = p->blocks ? k / (p->k / p->blocks) : 0;
        double s = p->blocks ? scale_of(p, d->sa[row][n]) * scale_of(p, d->sb[col][n]) : 1;
        double x = value_of(p->a, d->a[row][k]) * value_of(p->b, d->b[col][k]) * s;
        sum += x;
        *size += fabs(x);
    }
    return times * sum;
}

static void check_product(const struct product *p, const struct drawn *d, const uint32_t *out)
{
    bool ints = strcmp(p->kernel, "i8") == 0;
    for (int r = 0; r < p->m; r++)
        for (int c = 0; c < p->n; c++) {
            uint32_t word = out[r * p->n + c];
            double size, want = expected(p, d, r, c, &size);
            float f;
            memcpy(&f, &word, 4);
            double got = ints ? (int32_t)word : p->half ? value_of(F16, word & 0xffff) : (double)f;
            if (!(fabs(got - want) <= (ints ? 0 : size * (p->half ? 1e-3 : 1e-5))))
                fail_msg("%s, M %d, N %d, row %d, column %d: %g, want %g", p->kernel, p->m, p->n, r,
                         c, got, want);
        }
}

static uint32_t descriptor_of(const struct product *p)
{
    uint32_t sums = strcmp(p->kernel, "i8") == 0 ? 2 : p->half ? 0 : 1;
    return types[p->a].format << 7 | types[p->b].format << 10 | (uint32_t)p->n / 8 << 17 |
           (uint32_t)p->m / 16 << 24 | (p->blocks ? (uint32_t)(p->ue4m3 ? 0 : 1) << 23 : sums << 4);
}

static void products_of_every_kind_are_right(void **state)
{
    struct drawn *d = xmalloc(sizeof *d);
    uint32_t *out = xmalloc(128 * 256 * sizeof *out), seed = 3;
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(products); i++) {
        const struct product *p = &products[i];
        struct run r = run_begin(kernels_so, 0);
        struct bench_args x = {0};
        const void *from[] = {d->memory_a, d->memory_b, d->scales, out};
        uint32_t idesc = descriptor_of(p);
        draw_product(p, d, &seed);
        give(&r, d->memory_a, sizeof d->memory_a, "a");
        give(&r, d->memory_b, sizeof d->memory_b, "b");
        give(&r, d->scales, sizeof d->scales, "scales");
        simt_alloc_register(r.dev, out, (size_t)p->m * (size_t)p->n * 4, "out", 0);
        for (size_t k = 0; k < ARRAY_LEN(from); k++)
            put_arg(&x, &from[k], 8);
        put_arg(&x, &idesc, 4);
        put_arg(&x, &p->m, 4);
        put_arg(&x, &p->n, 4);
        put_arg(&x, &p->what, 4);
        struct simt_result result = run_kernel(&r, p->kernel, &x);
        if (result.outcome != SIMT_OK || result.finding_count)
            fail_msg("%s, M %d, N %d: %s", p->kernel, p->m, p->n, said(&result));
        assert_true(result.counters.wgmma_flops > 0);
        check_product(p, d, out);
        run_end(&r);
    }
    xfree(d);
    xfree(out);
}

/* ---- shapes ---- */

/* What a thread's register of a store becomes: lane (of its quarter) and column. */
static void place(int shape, int thread, int reg, int *lane, int *column)
{
    if (shape == 9) { /* 16x32bx2, two columns in a register, eight between the halves */
        *lane = thread % 16;
        *column = reg + thread / 16 * 4;
    } else if (shape == 1) { /* 16x64b */
        *lane = thread % 2 * 8 + thread / 4;
        *column = thread / 2 % 2 + reg * 2;
    } else if (shape == 2) {
        *lane = thread / 4 + reg * 8;
        *column = thread % 4;
    } else {
        *lane = thread / 4 + reg / 2 * 8;
        *column = thread % 4 * 2 + reg % 2;
    }
}

static void loads_and_stores_have_their_shapes(void **state)
{
    static const struct {
        const char *kernel;
        int shape, regs;
    } shapes[] = {{"shape_16x64", 1, 2},       {"shape_16x128", 2, 2},
                  {"shape_16x256", 3, 4},      {"shape_pack", 5, 2},
                  {"shape_pack_16x64", 6, 2},  {"shape_pack_16x128", 7, 2},
                  {"shape_pack_16x256", 8, 4}, {"shape_pack_16x32x2", 9, 2}};
    uint32_t out[THREADS][20], want[THREADS][16];
    void *p = out;
    (void)state;
    for (size_t s = 0; s < ARRAY_LEN(shapes); s++) {
        struct run r = run_begin(kernels_so, 0);
        struct bench_args x = {0};
        put_arg(&x, &p, 8);
        simt_alloc_register(r.dev, out, sizeof out, "out", 0);
        struct simt_result result = run_kernel(&r, shapes[s].kernel, &x);
        if (result.outcome != SIMT_OK || result.finding_count)
            fail_msg("%s: %s", shapes[s].kernel, said(&result));
        for (int i = 0; i < THREADS * 16; i++)
            want[i / 16][i % 16] = 1000000 + (uint32_t)i / 16 * 100 + (uint32_t)i % 8;
        for (int t = 0; t < THREADS; t++)
            for (int i = 0; i < shapes[s].regs; i++) {
                uint32_t v = (uint32_t)(shapes[s].shape * 100000 + t * 100 + i);
                int lane, column;
                if (shapes[s].shape == 5) {
                    lane = t % 32;
                    column = i;
                } else {
                    int packed = shapes[s].shape > 5 && shapes[s].shape < 9;
                    place(shapes[s].shape - (packed ? 5 : 0), t % 32, i, &lane, &column);
                }
                if (shapes[s].shape >= 5) {
                    want[t / 32 * 32 + lane][2 * column] = v & 0xffff;
                    want[t / 32 * 32 + lane][2 * column + 1] = v >> 16;
                } else {
                    want[t / 32 * 32 + lane][column] = v;
                }
                assert_int_equal(out[t][16 + i], v);
            }
        for (int t = 0; t < THREADS; t++)
            assert_memory_equal(out[t], want[t], sizeof want[t]);
        run_end(&r);
    }
}

static void a_store_may_have_128_registers_of_constants(void **state)
{
    static uint32_t out[THREADS * 128];
    struct run r = run_begin(kernels_so, 0);
    struct bench_args x = {0};
    void *p = out;
    int seven = 7;
    (void)state;
    put_arg(&x, &p, 8);
    put_arg(&x, &seven, 4);
    simt_alloc_register(r.dev, out, sizeof out, "out", 0);
    struct simt_result result = run_kernel(&r, "constants", &x);
    if (result.outcome != SIMT_OK || result.finding_count)
        fail_msg("%s", said(&result));
    for (uint32_t i = 0; i < THREADS * 128; i++)
        assert_int_equal(out[i], i % 2 * 7);
    run_end(&r);
}

static void rows_are_shifted_by_one(void **state)
{
    uint32_t out[THREADS * 8];
    struct run r = run_begin(kernels_so, 0);
    struct bench_args x = {0};
    void *p = out;
    (void)state;
    put_arg(&x, &p, 8);
    simt_alloc_register(r.dev, out, sizeof out, "out", 0);
    struct simt_result result = run_kernel(&r, "shift", &x);
    if (result.outcome != SIMT_OK || result.finding_count)
        fail_msg("%s", said(&result));
    for (uint32_t i = 0; i < THREADS * 8; i++)
        assert_int_equal(out[i], i < 8 ? i : i - 8);
    run_end(&r);
}

static void blocks_that_have_not_begun_are_taken_over(void **state)
{
    enum { WIDE = 3, HIGH = 4 };
    uint32_t out[WIDE * HIGH + 1] = {0};
    struct run r = run_begin(kernels_so, 0);
    struct bench_args x = {0};
    void *p = out;
    (void)state;
    put_arg(&x, &p, 8);
    simt_alloc_register(r.dev, out, sizeof out, "out", SIMT_ALLOC_WRITTEN);
    struct simt_result result = run_grid(&r, "cancel", &x, WIDE, HIGH);
    if (result.outcome != SIMT_OK || result.finding_count)
        fail_msg("%s", said(&result));
    for (int i = 0; i < WIDE * HIGH; i++)
        assert_int_equal(out[i], 1);
    assert_int_equal(out[WIDE * HIGH], 1); /* one host thread: the first block takes them all */
    run_end(&r);
}

static void tiles_of_four_bits_are_copied_as_bytes(void **state)
{
    enum { ROWS = 6, BYTES = 96 };
    _Alignas(16) static uint8_t in[ROWS][BYTES];
    uint32_t out[32];
    struct simt_map s = {.address = (uint64_t)(uintptr_t)in,
                         .dtype = "u4",
                         .rank = 2,
                         .dims = {2 * BYTES, ROWS},
                         .strides_bytes = {BYTES},
                         .box = {64, 4},
                         .element_strides = {1, 1}};
    unsigned char map[128];
    char why[200] = "";
    void *p = out;
    struct bench_args x = {0};
    (void)state;
    for (int i = 0; i < ROWS * BYTES; i++)
        in[i / BYTES][i % BYTES] = (uint8_t)(i * 7 + i / 256);
    struct run r = run_begin(kernels_so, 0);
    if (!simt_map_encode(&s, map, why, sizeof why))
        fail_msg("%s", why);
    put_arg(&x, map, sizeof map);
    put_arg(&x, &p, 8);
    give(&r, in, sizeof in, "in");
    simt_alloc_register(r.dev, out, sizeof out, "out", 0);
    struct simt_result result = run_kernel(&r, "nibbles", &x);
    if (result.outcome != SIMT_OK || result.finding_count)
        fail_msg("%s", said(&result));
    for (int row = 0; row < 4; row++)
        assert_memory_equal(&out[8 * row], &in[1 + row][32], 32);
    s.box[0] = 63;
    assert_false(simt_map_encode(&s, map, why, sizeof why));
    run_end(&r);
}

/* Sixteen elements of four or six bits come to 16 bytes. */
static void tiles_of_padded_elements_are_spread(void **state)
{
    enum { ROWS = 4, GROUPS = 16, BOX = 8 };
    _Alignas(32) static uint8_t in[ROWS][GROUPS * 12];
    (void)state;
    for (size_t i = 0; i < sizeof in; i++)
        in[i / sizeof in[0]][i % sizeof in[0]] = (uint8_t)(i * 7 + i / 256);
    for (uint64_t group = 8; group <= 12; group += 4) {
        struct simt_map s = {.address = (uint64_t)(uintptr_t)in,
                             .dtype = group == 8 ? "u4_align16" : "u6_align16",
                             .rank = 2,
                             .dims = {GROUPS * 16, ROWS},
                             .strides_bytes = {sizeof in[0]},
                             .box = {BOX * 16, 2},
                             .element_strides = {1, 1}};
        int bytes = 2 * BOX * (int)group;
        uint8_t out[2][BOX][16];
        unsigned char map[128];
        char why[200] = "";
        void *p = out;
        struct bench_args x = {0};
        struct run r = run_begin(kernels_so, 0);
        if (!simt_map_encode(&s, map, why, sizeof why))
            fail_msg("%s", why);
        put_arg(&x, map, sizeof map);
        put_arg(&x, &p, 8);
        put_arg(&x, &bytes, 4);
        give(&r, in, sizeof in, "in");
        simt_alloc_register(r.dev, out, sizeof out, "out", 0);
        struct simt_result result = run_kernel(&r, "padded", &x);
        if (result.outcome != SIMT_OK || result.finding_count)
            fail_msg("%d: %s", (int)group, said(&result));
        for (size_t row = 0; row < 2; row++)
            for (size_t g = 0; g < BOX; g++)
                assert_memory_equal(out[row][g], &in[1 + row][(BOX + g) * group], group);
        run_end(&r);
        s.box[0] = 64;
        assert_false(simt_map_encode(&s, map, why, sizeof why));
    }
}

static void copies_of_a_pair_tell_the_block_that_the_address_names(void **state)
{
    enum { ROWS = 6, BYTES = 96 };
    _Alignas(16) static uint8_t in[ROWS][BYTES];
    struct simt_map s = {.address = (uint64_t)(uintptr_t)in,
                         .dtype = "u4",
                         .rank = 2,
                         .dims = {2 * BYTES, ROWS},
                         .strides_bytes = {BYTES},
                         .box = {64, 4},
                         .element_strides = {1, 1}};
    uint32_t out[64];
    unsigned char map[128];
    char why[200] = "";
    void *p = out;
    (void)state;
    for (int i = 0; i < ROWS * BYTES; i++)
        in[i / BYTES][i % BYTES] = (uint8_t)(i * 5 + i / 256);
    if (!simt_map_encode(&s, map, why, sizeof why))
        fail_msg("%s", why);
    for (int own = 0; own < 2; own++) {
        struct run r = run_begin(kernels_so, 0);
        struct bench_args x = {0};
        memset(out, 0, sizeof out);
        put_arg(&x, map, sizeof map);
        put_arg(&x, &p, 8);
        put_arg(&x, &own, 4);
        give(&r, in, sizeof in, "in");
        simt_alloc_register(r.dev, out, sizeof out, "out", SIMT_ALLOC_WRITTEN);
        struct simt_result result = run_kernel(&r, "pair_copy", &x);
        if (result.outcome != SIMT_OK || result.finding_count)
            fail_msg("own %d: %s", own, said(&result));
        for (int b = 0; b < 2; b++)
            for (int row = 0; row < 4; row++)
                assert_memory_equal(&out[32 * b + 8 * row], &in[b + row][32], 32);
        run_end(&r);
    }
}

/* ---- mistakes ---- */

struct bug {
    char name[40], kind[64];
    int line;
};

static size_t read_bugs(struct bug *bugs, struct arena *a)
{
    struct error err = {0};
    struct text src;
    size_t n = 0;
    int line = 1;
    if (!file_read(SIMT_TESTS_DIR "/blackwell/bugs.cu", 1 << 20, a, &src, &err))
        fail_msg("%s", err.text);
    char *text = arena_strndup(a, src.data, src.len);
    for (char *at = text, *end; *at; line++, at = end ? end + 1 : at + strlen(at)) {
        end = strchr(at, '\n');
        if (end)
            *end = '\0';
        const char *mark = strstr(at, "// BUG:");
        if (mark && n < MAX_BUGS &&
            sscanf(mark, "// BUG:%39s %63s", bugs[n].name, bugs[n].kind) == 2)
            bugs[n++].line = line;
    }
    return n;
}

/* One of the kinds that the mark names, "a|b". */
static bool kind_is(const struct bug *b, const char *kind)
{
    size_t n = strlen(kind);
    const char *at = strstr(b->kind, kind);
    return at && (at == b->kind || at[-1] == '|') && (at[n] == '\0' || at[n] == '|');
}

static struct simt_result run_bug(struct run *r, const char *name)
{
    static uint8_t memory[3][8192];
    static uint32_t out[THREADS * 8];
    struct bench_args x = {0};
    const void *p[] = {memory[0], memory[1], memory[2], out};
    for (int i = 0; i < 3; i++)
        give(r, memory[i], sizeof memory[i], "in");
    simt_alloc_register(r->dev, out, sizeof out, "out", SIMT_ALLOC_WRITTEN);
    for (int i = 0; i < 4; i++)
        put_arg(&x, &p[i], 8);
    return run_kernel(r, name, &x);
}

static bool found_on_its_line(const struct bug *b, const struct simt_result *r)
{
    for (size_t k = 0; k < r->finding_count; k++)
        if (kind_is(b, simt_finding_name(r->findings[k].kind)) && r->findings[k].path_len &&
            r->findings[k].path[0].line == b->line)
            return true;
    return false;
}

static void mistakes_are_found_on_their_lines_and_twins_are_clean(void **state)
{
    struct arena *a = arena_new();
    struct bug bugs[MAX_BUGS];
    size_t n = read_bugs(bugs, a);
    int missed = 0, false_findings = 0;
    (void)state;
    assert_true(n >= 20);
    for (size_t i = 0; i < n * (size_t)orders; i++) {
        const struct bug *b = &bugs[i / (size_t)orders];
        uint64_t seed = i % (size_t)orders;
        struct run r = run_begin(bugs_so, seed), twin = run_begin(bugs_so, seed);
        struct simt_result bad = run_bug(&r, arena_printf(a, "%s_bug", b->name));
        struct simt_result good = run_bug(&twin, arena_printf(a, "%s_ok", b->name));
        if (!found_on_its_line(b, &bad)) {
            print_message(
                "%s (line %d, %s): %s, %s, line %d\n", b->name, b->line, b->kind, said(&bad),
                bad.finding_count ? simt_finding_name(bad.findings[0].kind) : "",
                bad.finding_count && bad.findings[0].path_len ? bad.findings[0].path[0].line : 0);
            missed++;
        }
        if (good.finding_count || good.outcome != SIMT_OK) {
            print_message("%s, twin: %s\n", b->name, said(&good));
            false_findings++;
        }
        run_end(&r);
        run_end(&twin);
    }
    print_message("%zu mistakes, %d orders of warps: %d missed, %d false findings\n", n, orders,
                  missed, false_findings);
    assert_int_equal(missed, 0);
    assert_int_equal(false_findings, 0);
    arena_free(a);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_of_every_kind_are_right),
        cmocka_unit_test(loads_and_stores_have_their_shapes),
        cmocka_unit_test(rows_are_shifted_by_one),
        cmocka_unit_test(a_store_may_have_128_registers_of_constants),
        cmocka_unit_test(blocks_that_have_not_begun_are_taken_over),
        cmocka_unit_test(tiles_of_four_bits_are_copied_as_bytes),
        cmocka_unit_test(tiles_of_padded_elements_are_spread),
        cmocka_unit_test(copies_of_a_pair_tell_the_block_that_the_address_names),
        cmocka_unit_test(mistakes_are_found_on_their_lines_and_twins_are_clean),
    };
    struct arena *a = arena_new();
    orders = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 1;
    kernels_so = compile_file("blackwell_kernels.ptx", a);
    bugs_so = compile_file("blackwell_bugs.ptx", a);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    arena_free(a);
    return failed;
}
