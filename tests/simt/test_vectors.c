/*
 * test_vectors.c - every row of vectors.def, on varying and on uniform
 * registers, and for every width of vectors the host can run.
 *
 * All vectors become one kernel: operands come from memory at a place that
 * either depends on the lane (adding lane times zero) or does not.
 */
#include "support.h"

#include "base/buf.h"

#include <inttypes.h>
#include <stdio.h>

static const struct vector {
    const char *op, *sig;
    uint64_t want, x[4];
} vectors[] = {
#define V(op, sig, want, a, b, c, d) {op, sig, want, {a, b, c, d}},
#include "vectors.def"
#undef V
};

static const char *reg_type(char c)
{
    return c == 'd' ? "b64" : c == 'h' ? "b16" : c == 'p' ? "pred" : "b32";
}

static void write_vector(struct buf *b, size_t i, const char *in, const char *out)
{
    const struct vector *v = &vectors[i];
    const char *args = v->sig + 2;
    buf_puts(b, "{\n");
    buf_printf(b, ".reg .%s res;\n", reg_type(v->sig[0]));
    for (size_t a = 0; args[a]; a++) {
        buf_printf(b, ".reg .%s x%zu;\n", reg_type(args[a]), a);
        if (args[a] == 'p')
            buf_printf(b,
                       ".reg .b32 y%zu; ld.global.b32 y%zu, [%s+%zu]; setp.ne.u32 x%zu, y%zu, 0;\n",
                       a, a, in, 32 * i + 8 * a, a, a);
        else
            buf_printf(b, "ld.global.%s x%zu, [%s+%zu];\n", reg_type(args[a]), a, in,
                       32 * i + 8 * a);
    }
    buf_printf(b, "%s res", v->op);
    for (size_t a = 0; args[a]; a++)
        buf_printf(b, ", x%zu", a);
    buf_puts(b, ";\n");
    if (v->sig[0] == 'p')
        buf_printf(b, ".reg .b32 z; selp.b32 z, 1, 0, res; st.global.b32 [%s+%zu], z;\n", out,
                   8 * i);
    else
        buf_printf(b, "st.global.%s [%s+%zu], res;\n", reg_type(v->sig[0]), out, 8 * i);
    buf_puts(b, "}\n");
}

static struct text write_module(struct arena *a)
{
    struct buf b = buf_init(1 << 22);
    buf_puts(&b, ".version 8.0\n.target sm_89\n.address_size 64\n");
    for (int varying = 0; varying < 2; varying++) {
        buf_printf(&b,
                   ".visible .entry %s(.param .u64 p_in, .param .u64 p_out)\n{\n.reg .b64 "
                   "%%rd<8>;\n.reg .b32 %%r<4>;\n",
                   varying ? "varying" : "uniform");
        buf_puts(&b, "ld.param.u64 %rd1, [p_in];\nld.param.u64 %rd2, [p_out];\n");
        if (varying)
            buf_puts(&b, "mov.u32 %r1, %laneid;\nmul.wide.u32 %rd3, %r1, 0;\nadd.s64 %rd1, %rd1, "
                         "%rd3;\nadd.s64 %rd2, %rd2, %rd3;\n");
        for (size_t i = 0; i < ARRAY_LEN(vectors); i++)
            write_vector(&b, i, "%rd1", "%rd2");
        buf_puts(&b, "ret;\n}\n");
    }
    struct text t = buf_copy(&b, a);
    assert_false(b.overflowed);
    buf_release(&b);
    return t;
}

static uint64_t in[ARRAY_LEN(vectors)][4], out[ARRAY_LEN(vectors)];

static void run_all(const char *so, const char *kernel, int lanes)
{
    struct simt_config c = {.threads = 1, .check = SIMT_CHECK_MEMORY};
    struct simt *dev;
    struct simt_module *m;
    struct simt_result r;
    struct error err = {0};
    struct arena *a = arena_new();
    int bad = 0;
    assert_true(simt_open(&c, &dev, &err));
    for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
        memcpy(in[i], vectors[i].x, sizeof in[i]);
        out[i] = 0;
    }
    simt_alloc_register(dev, in, sizeof in, "in", SIMT_ALLOC_WRITTEN);
    simt_alloc_register(dev, out, sizeof out, "out", SIMT_ALLOC_WRITTEN);
    if (!simt_load(dev, so, &m, &err))
        fail_msg("%s", err.text);
    const void *params[] = {in, out};
    struct simt_launch l = {.kernel = kernel,
                            .grid = {1, 1, 1},
                            .block = {32, 1, 1},
                            .params = params,
                            .param_bytes = sizeof params};
    assert_true(simt_launch(dev, m, &l, a, &r, &err));
    if (r.outcome != SIMT_OK)
        fail_msg("%s: %s", kernel, r.text);
    for (size_t i = 0; i < ARRAY_LEN(vectors); i++)
        if (out[i] != vectors[i].want) {
            print_error("%s, %d lanes: %s of %" PRIx64 " %" PRIx64 " %" PRIx64 " gives %" PRIx64
                        ", not %" PRIx64 "\n",
                        kernel, lanes, vectors[i].op, vectors[i].x[0], vectors[i].x[1],
                        vectors[i].x[2], out[i], vectors[i].want);
            bad++;
        }
    simt_close(dev);
    arena_free(a);
    if (bad)
        fail_msg("%d of %zu vectors are wrong", bad, ARRAY_LEN(vectors));
}

static void vectors_hold(int lanes)
{
    static const char *const names[] = {"uniform", "varying"};
    struct arena *a = arena_new();
    struct error err = {0};
    struct simt_options opt = {.cache_dir = cache_dir(a), .lanes = lanes};
    struct simt_built built;
    if (!simt_compile(write_module(a), names, 2, &opt, a, &built, &err))
        fail_msg("%s", err.text);
    run_all(built.so_path, "uniform", lanes);
    run_all(built.so_path, "varying", lanes);
    arena_free(a);
}

static void every_vector_holds_at_the_width_of_this_host(void **state)
{
    (void)state;
    vectors_hold(0);
}

static void every_vector_holds_four_lanes_at_a_time(void **state)
{
    (void)state;
    vectors_hold(4);
}

static void every_vector_holds_eight_lanes_at_a_time(void **state)
{
    (void)state;
    vectors_hold(8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_vector_holds_at_the_width_of_this_host),
        cmocka_unit_test(every_vector_holds_four_lanes_at_a_time),
        cmocka_unit_test(every_vector_holds_eight_lanes_at_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
