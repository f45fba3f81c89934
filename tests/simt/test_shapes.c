/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_shapes.c - blocks of any shape read and write global memory: the values and the findings of
 * accesses whose lanes lie in groups (lane_groups.h, spread_access.c).
 *
 * The kernel is a product of whole numbers, one sum for each thread, for elements of every width,
 * with lanes in order and backwards. It is run in shapes that fill warps in many ways.
 */
#include "support.h"

enum { N = 40, K = 37, ROWS = 27, TEXT = 4096 };

/* @T: type; @S: bytes; @N: bytes of a row of weights; @R: register class; @B: bits of sums. Row and
 * column come from y and x. */
static const char product[] =
    ".version 7.8\n.target sm_80\n.address_size 64\n"
    ".visible .entry k(.param .u64 a, .param .u64 b, .param .u64 out, .param .u32 back)\n{\n"
    ".reg .pred %p<5>;\n.reg .b32 %r<20>;\n.reg .b64 %rd<20>;\n.reg .@R %v<4>;\n"
    "ld.param.u64 %rd1, [a];\nld.param.u64 %rd2, [b];\nld.param.u64 %rd3, [out];\n"
    "ld.param.u32 %r9, [back];\n"
    "mov.u32 %r1, %tid.x;\nmov.u32 %r2, %ntid.x;\nmov.u32 %r3, %ctaid.x;\n"
    "mad.lo.u32 %r1, %r3, %r2, %r1;\n"
    "mov.u32 %r4, %tid.y;\nmov.u32 %r5, %ntid.y;\nmov.u32 %r6, %ctaid.y;\n"
    "mad.lo.u32 %r4, %r6, %r5, %r4;\n"
    "setp.ge.u32 %p1, %r1, 40;\nsetp.ge.u32 %p2, %r4, 27;\nor.pred %p1, %p1, %p2;\n@%p1 bra END;\n"
    "setp.ne.u32 %p3, %r9, 0;\nsub.u32 %r7, 39, %r1;\nselp.u32 %r1, %r7, %r1, %p3;\n"
    "mul.lo.u32 %r8, %r4, 37;\nmul.wide.u32 %rd4, %r8, @S;\nadd.s64 %rd4, %rd1, %rd4;\n"
    "mul.wide.u32 %rd5, %r1, @S;\nadd.s64 %rd5, %rd2, %rd5;\n"
    "mov.u32 %r10, 0;\nmov.@B %v1, 0;\n"
    "TURN:\nld.global.@T %v2, [%rd4];\nld.global.@T %v3, [%rd5];\n"
    "mad.lo.@B %v1, %v2, %v3, %v1;\n"
    "add.s64 %rd4, %rd4, @S;\nadd.s64 %rd5, %rd5, @N;\nadd.u32 %r10, %r10, 1;\n"
    "setp.lt.u32 %p4, %r10, 37;\n@%p4 bra TURN;\n"
    "mad.lo.u32 %r11, %r4, 40, %r1;\nmul.wide.u32 %rd6, %r11, @S;\nadd.s64 %rd6, %rd3, %rd6;\n"
    "st.global.@T [%rd6], %v1;\nEND:\nret;\n}\n";

static const struct width {
    const char *type, *reg, *sum;
    int bytes;
    bool sign;
} widths[] = {{"u8", "b32", "u32", 1, false},  {"s8", "b32", "u32", 1, true},
              {"u16", "b32", "u32", 2, false}, {"s16", "b32", "u32", 2, true},
              {"u32", "b32", "u32", 4, false}, {"u64", "b64", "u64", 8, false}};

static const uint32_t shapes[][2] = {{32, 8}, {16, 16}, {8, 8},  {8, 32}, {4, 64}, {24, 24},
                                     {17, 3}, {1, 33},  {40, 1}, {2, 2},  {5, 7},  {64, 2}};

static char *text_of_width(const struct width *w, struct arena *a)
{
    char *out = arena_alloc(a, TEXT), *to = out;
    for (const char *p = product; *p; p++) {
        if (*p != '@' || !strchr("TSRBN", p[1])) {
            *to++ = *p;
            continue;
        }
        p++;
        to += *p == 'S' || *p == 'N' ? snprintf(to, 8, "%d", *p == 'N' ? N * w->bytes : w->bytes)
                                     : snprintf(to, 8, "%s",
                                                *p == 'T'   ? w->type
                                                : *p == 'R' ? w->reg
                                                            : w->sum);
    }
    *to = 0;
    return out;
}

struct fixture {
    struct arena *a;
    struct simt *dev;
    struct simt_module *m;
    unsigned char *in, *weights, *out;
    size_t bytes; /* of an element */
};

static uint64_t element(const unsigned char *p, const struct width *w, int i)
{
    uint64_t x = 0;
    memcpy(&x, p + (size_t)i * (size_t)w->bytes, (size_t)w->bytes);
    if (w->sign && x >> (8 * w->bytes - 1))
        x -= UINT64_C(1) << 8 * w->bytes;
    return x;
}

static void fixture_begin(struct fixture *f, const struct width *w, enum simt_check check,
                          bool counters, int weights_short)
{
    struct error err = {0};
    struct simt_config c = {.threads = 1, .check = check, .counters = counters};
    *f = (struct fixture){.a = arena_new(), .bytes = (size_t)w->bytes};
    if (!simt_open(&c, &f->dev, &err) ||
        !simt_load(f->dev, compile_text(text_of(text_of_width(w, f->a)), f->a), &f->m, &err))
        fail_msg("%s", err.text);
    size_t in = f->bytes * ROWS * K, weights = f->bytes * N * K, out = f->bytes * ROWS * N;
    f->in = aligned_alloc(64, (in + 63) / 64 * 64);
    f->weights = aligned_alloc(64, (weights + 63) / 64 * 64);
    f->out = calloc(1, out);
    for (size_t i = 0; i < in; i++)
        f->in[i] = (unsigned char)(i * 37 + 11);
    for (size_t i = 0; i < weights; i++)
        f->weights[i] = (unsigned char)(i * 101 + 7);
    simt_alloc_register(f->dev, f->in, in, "in", SIMT_ALLOC_WRITTEN);
    simt_alloc_register(f->dev, f->weights, weights - f->bytes * (size_t)weights_short, "weights",
                        SIMT_ALLOC_WRITTEN);
    simt_alloc_register(f->dev, f->out, out, "out", 0);
}

static void fixture_run(struct fixture *f, const uint32_t shape[2], uint32_t back,
                        struct simt_result *r)
{
    struct error err = {0};
    struct bench_args x = {0};
    put_arg(&x, &f->in, 8);
    put_arg(&x, &f->weights, 8);
    put_arg(&x, &f->out, 8);
    put_arg(&x, &back, 4);
    struct simt_launch l = {
        .kernel = "k",
        .grid = {(N + shape[0] - 1) / shape[0], (ROWS + shape[1] - 1) / shape[1], 1},
        .block = {shape[0], shape[1], 1},
        .params = x.data,
        .param_bytes = x.len};
    if (!simt_launch(f->dev, f->m, &l, f->a, r, &err))
        fail_msg("%s", err.text);
}

static void fixture_end(struct fixture *f)
{
    simt_close(f->dev);
    free(f->in);
    free(f->weights);
    free(f->out);
    arena_free(f->a);
}

static void compare(const struct fixture *f, const struct width *w, const uint32_t shape[2])
{
    for (int y = 0; y < ROWS; y++)
        for (int x = 0; x < N; x++) {
            uint64_t sum = 0,
                     mask = w->bytes == 8 ? ~UINT64_C(0) : (UINT64_C(1) << 8 * w->bytes) - 1;
            for (int k = 0; k < K; k++)
                sum += element(f->in, w, y * K + k) * element(f->weights, w, k * N + x);
            if ((element(f->out, w, y * N + x) & mask) != (sum & mask))
                fail_msg("%s, blocks of %u x %u: element %d, %d is wrong", w->type, shape[0],
                         shape[1], y, x);
        }
}

static void every_shape_and_width_gives_the_product(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(widths); i++)
        for (int how = 0; how < 4; how++) {
            struct fixture f;
            fixture_begin(&f, &widths[i], how & 1 ? SIMT_CHECK_FULL : SIMT_CHECK_MEMORY, how & 2,
                          0);
            for (size_t s = 0; s < ARRAY_LEN(shapes); s++)
                for (uint32_t back = 0; back < 2; back++) {
                    struct simt_result r;
                    memset(f.out, 0xa5, f.bytes * ROWS * N);
                    fixture_run(&f, shapes[s], back, &r);
                    assert_int_equal(r.outcome, SIMT_OK);
                    if (r.finding_count)
                        fail_msg("%s %ux%u: %s", widths[i].type, shapes[s][0], shapes[s][1],
                                 r.findings[0].text);
                    compare(&f, &widths[i], shapes[s]);
                }
            fixture_end(&f);
        }
}

static void the_last_element_out_of_bounds_is_found_in_every_shape(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(widths); i++)
        for (size_t s = 0; s < ARRAY_LEN(shapes); s++)
            for (uint32_t back = 0; back < 2; back++) {
                struct fixture f;
                struct simt_result r;
                fixture_begin(&f, &widths[i], SIMT_CHECK_MEMORY, false, 1);
                fixture_run(&f, shapes[s], back, &r);
                assert_int_equal(r.finding_count, 1);
                assert_int_equal(r.findings[0].kind, SIMT_OUT_OF_BOUNDS);
                assert_int_equal(r.findings[0].times, ROWS); /* once for each row */
                fixture_end(&f);
            }
}

static void counters_do_not_depend_on_the_short_way(void **state)
{
    (void)state;
    struct fixture f;
    struct simt_result r;
    fixture_begin(&f, &widths[4], SIMT_CHECK_MEMORY, true, 0);
    fixture_run(&f, shapes[1], 0, &r);
    /* 27 rows in two blocks of 16; 40 columns in three: of in, each turn a word of each row. */
    assert_int_equal(r.counters.global_store_bytes, 4 * ROWS * N);
    assert_int_equal(r.counters.global_load_bytes, 2 * 4 * ROWS * N * K);
    fixture_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_shape_and_width_gives_the_product),
        cmocka_unit_test(the_last_element_out_of_bounds_is_found_in_every_shape),
        cmocka_unit_test(counters_do_not_depend_on_the_short_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
