/* test_source.c - what the built-in engineer writes: plain kernels, parts, examples; and what it
 * refuses. */
#include "bench.h"

#include "base/buf.h"
#include "expert/match/size_constants.h"

#include <string.h>

static const struct refusal_case {
    const char *task, *words[4];
} refusals[] = {
    {"hidden", {"is not covered", "does not show everything"}},
    {"last_softmax", {"is not covered", "lies channels last"}},
    {"places", {"is not covered", "aten.nonzero.default", "depends on values"}},
    {"sparse", {"is not covered", "aten._to_sparse.default"}},
    {"too_long", {"is not covered", "more than the", "give the task in parts"}},
};

static void what_it_cannot_write_it_says_and_names_what_it_saw(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
        const struct refusal_case *c = &refusals[i];
        const char *recipe, *why;
        struct reply reply;
        struct bench b;

        bench_open(&b, c->task);
        assert_false(expert_can(&b.task, b.a, &recipe, &why));
        assert_null(recipe);
        reply = bench_ask(&b, STAGE_SYNTHESIZE, (struct text){NULL, 0});
        assert_true(reply.done);
        for (int k = 0; c->words[k]; k++) {
            if (!strstr(why, c->words[k]) || !strstr(reply.text.data, c->words[k]))
                fail_msg("%s: no '%s' in: %s", c->task, c->words[k], why);
        }
        bench_close(&b);
    }
}

static void more_arguments_than_a_launch_takes_are_not_pointwise(void **state)
{
    const char *recipe, *why;
    struct bench b;

    (void)state;
    bench_open(&b, "side_by_side");
    assert_true(expert_can(&b.task, b.a, &recipe, &why));
    assert_string_equal(recipe, "generic");
    bench_close(&b);
}

/* Tables with a place for every node of a graph took half a megabyte for each operator. */
static void composing_takes_memory_by_what_is_written(void **state)
{
    struct bench b;

    (void)state;
    bench_open(&b, "crowded");
    assert_true(bench_synthesize(&b).len > 0);
    if (arena_bytes(b.a) > (size_t)16 << 20)
        fail_msg("%zu bytes", arena_bytes(b.a));
    bench_close(&b);
}

/* Whatever came after half a megabyte was cut off. */
static void a_long_kernel_gets_its_requirement_and_keeps_its_end(void **state)
{
    struct arena *a = arena_new();
    struct graph *g = arena_alloc(a, sizeof(*g));
    struct buf b = buf_init(1 << 20);
    struct text made;

    (void)state;
    while (b.len < 600 * 1024)
        buf_puts(&b, "// a line of a long kernel\n");
    buf_puts(&b, "CUTEGEN_PLAN(call)\n{\n    return 0;\n}\n");
    g->size_unknown = true;
    g->in_count = 1;
    g->in[0].dims = 1;
    g->in[0].shape[0] = 7;
    made = size_constants_require(g, 0, buf_text(&b), a);
    assert_true(made.len > b.len);
    assert_non_null(strstr(made.data, "shape[0] == 7"));
    assert_non_null(strstr(made.data, "    return 0;\n}\n"));
    buf_release(&b);
    arena_free(a);
}

static const struct source_case {
    const char *task, *has[6];
} sources[] = {
    {"swish",
     {"float const sigmoid = 1.0f / (1.0f + expf(-x));", "return x * sigmoid;",
      "make_tensor(make_gmem_ptr(x), n); // (n)"}},
    {"bias_gelu",
     {"make_tensor(make_gmem_ptr(linear_bias), shape, make_stride(_1{}, _0{}))",
      "0.5f * add * (1.0f + erff(0.707106781f * add))"}},
    {"double", {"double const *p0", "0.5 * v3 * (1.0 + erf(0.70710678118654757 * v3))"}},
    {"fractions", {"= 0.3f * float(", "< 2.5f", "< 0.5f", "float(__int_as_float(0xff800000))"}},
    {"expanded_sum", {"int64_t K = 7;", "int64_t n = 3;"}},
    {"masked_half", {"half_t const *x", "mask ? mul : x", "half_t(y0_value(float(gX(i)), "}},
    {"transposed_add", {"x + 2.0f * y_view", "make_stride(y_view_stride0, y_view_stride1)"}},
    {"linear_relu",
     {"float const sum = acc + linear_bias;", "int64_t M = C->shape[0] * C->shape[1];",
      "make_shape(N, K), make_stride(b_n, _1{})"}},
    {"changed_operand",
     {"return x * 0.25f;", "acc += mA(m, k) * changed_operand_b(mB(n, k));",
      "return acc < 0.0f ? 0.0f : acc;"}},
    {"bmm_transposed", {"int const l = blockIdx.z;", "A + l * int64_t(a_l)", ", L)"}},
    {"batch_pieces",
     {"A + l % a_count2 * int64_t(a_l2) + l / a_count2 % a_count1 * int64_t(a_l1) + ",
      "l / b_count2 / b_count1 * int64_t(b_l0)", "CUTEGEN_AT(float const, A, A->strides[2] * 4)",
      "the shape of A is written into the kernel", "L == B->shape[0] * B->shape[3] * B->shape[1]"}},
    {"merged_pieces", /* a count of two dimensions is one argument */
     {"(int)(A->shape[1] * A->shape[2])"}},
    {"layer_norm",
     {"rsqrtf(part_scale.value / count + 1e-05f)",
      "(x - row_mean) * row_scale * norm_weight + norm_bias",
      "int64_t rows = x->shape[0] * x->shape[1];"}},
    {"rms_norm", {"row_sqrt[v] = rms_norm_sqrt(row_mean[v]);", "return x / row_sqrt;"}},
    {"cross_entropy", {"gTarget(row) == -100 ? 0 : int(gTarget(row))", "total_loss / total_rows"}},
    {"group_norm",
     {"make_shape(n0, n1)", "(x - row_mean) * row_scale * norm_weight + norm_bias",
      "the shape of x is written into the kernel"}},
    {"batch_norm", {"(x - norm_running_mean) * rsqrtf(norm_running_var + 1e-05f)"}},
    {"max_pool", {"w * 2 - 1 + a * 1", "at_w < 0 || at_w >= width"}},
    {"avg_pool", {"value / float(3 * 3 * 1)"}},
    {"concat", {"int64_t rows = y->shape[0]", "CUTEGEN_AT(float, y, from)"}},
    {"conv",
     {"convolve(x, w, n, k, p, ", "C_IN = 3, C_OUT = 8", "sizes of x are written into the kernel"}},
    {"conv_wide", {"float const sum = acc + conv_bias;", "y->shape[1] == 72 && y->shape[2] == 10"}},
    {"conv_norm",
     {"float const sum = acc + conv_bias;",
      "(sum - bn_running_mean) * rsqrtf(bn_running_var + 1e-05f)"}},
    {"spaced", {"half < 8 ? -3.0f + half * 0.375f : 3.0f - "}},
    {"crowded", {"crowded_4", "cutegen_workspace(call, 768)"}},
    {"top_k", {"sort_entry<true>(", "block_top<THREADS, 2, 5>(", "cutegen_workspace(call, "}},
    {"scatter_add", {"atomicAdd(&y(", "CUTEGEN_DATA(float, &call->out[0])));\n    return 0;"}},
    {"crossed", {"for (int u = 0; u < 8; u++)", "i / 4096 * 8 + u"}},
    {"reduced_twice", {"#pragma unroll 8\n        for (int r2 = threadIdx.x % 128"}},
    {"pooled_product",
     {"// 2 parts", "pooled_product_1_finish(", "part_2::pooled_product_2_1<", "larger(acc"}},
    {"reverse_cumsum", {"in ? n - 1 - k : 0"}},
    {"scaled_cumsum", {"return value * 2.0f;", "gY(i) = finish("}},
    {"exclusive_cumsum", {"threadIdx.x ? values[threadIdx.x - 1] : none()"}},
    {"exclusive_cumprod", {"threadIdx.x ? values[threadIdx.x - 1] : none()"}},
    {"batch_statistics", {"(x - row_mean) * row_scale * norm_weight + norm_bias"}},
    {"slices",
     {"CUTEGEN_AT(float const, x, x->strides[1] * 9)",
      "CUTEGEN_AT(float const, x, x->strides[1] * 32)", "(x->strides[1] * 2)",
      "the shape of x is written into the kernel"}},
    {"two_losses",
     {"part_loss.add(two_losses_loss(gX(i), gY(i)));\n        part_mean.add(",
      "parts_of<Sum>(parts, 1, rows, slices)(slice, row) = part_mean;\n    }\n}"}},
    {"rotated",
     {"float const neg = -x_view;", "gY_part1(i) = y_part1_value(",
      "CUTEGEN_AT(float, y, y->strides[2] * 512)", "int64_t n0 = 512"}},
    {"turned_sum", {"gY(i) = turned_sum_value(gX_view(i), gB__view(i));", "(int)x->strides[0]"}},
    {"rope",
     {"gY_part0(i) = y_part0_value(", "CUTEGEN_AT(float, y, y->strides[3] * 16)", "int64_t n0 = 16",
      "the shape of y is written into the kernel"}},
    {"var_mean", {"float const sub = x - row_mean", "gY1(row) = row_mean"}},
    {"argmax", {"part_argmax[v].add(rX(v), i)", "int64_t *y"}},
    {"lower_triangle", {"return n <= m ? acc : 0.0f;", "lower_triangle_finish(acc, m, n)"}},
    {"diagonal", {"return A_view * B;", "make_stride(_0{}, A_view_stride1)"}},
    {"matrix_scalar", {"return A * 3.14f;", "call->scalar[0].f == 3.14"}},
    {"matvec", {"return A * B;"}},
    {"row_sum", {"gY(row) = row_sum;"}},
    {"flags", {"flags_y(bool row_all, bool row_any)"}},
    {"named_apart",
     {"float const *A, float const *B, float const *a_, float const *scale_, float const *A_2"}},
};

static void the_plain_kernel_says_what_the_graph_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(sources); i++) {
        struct bench b;
        struct text source;

        bench_open(&b, sources[i].task);
        source = bench_synthesize(&b);
        for (int k = 0; sources[i].has[k]; k++)
            if (!strstr(source.data, sources[i].has[k]))
                fail_msg("%s: no '%s' in:\n%s", sources[i].task, sources[i].has[k], source.data);
        bench_close(&b);
    }
}

static const struct parts_case {
    const char *task;
    int steps;         /* of its ladder, at least */
    const char *forms; /* what is written: the parts that need kernels of their own */
    const char *has[6];
} several[] = {
    {"mlp",
     5,
     "13",
     {"int64_t shape1[2] = {call->in[0].shape[0], call->in[1].shape[0]}, strides1[2];",
      "in2[] = {call->in[4], t1, call->in[3]};", "CUTEGEN_TRY(do_part_1(call, &pool, in2, &t2));",
      "return do_part_3(call, &pool, in3, &call->out[0]);"}},
    {"mlp@sm_90a", 8, "123", {"part_1::mlp_1_plain", "part_3::mlp_3_pack"}},
    {"two_products", 4, "12", {"in2[] = {t1, call->in[0]};"}},
    {"residual", /* what the sum adds is computed once, and the sum is the end of the product */
     4,
     "123",
     {"// residual_1: tanh", "// residual_2: mm, add as", "// residual_3: sin",
      "return do_part_2(call, &pool, in4, &call->out[0]);"}},
    {"two_ways", /* columns, and the values of the rows before beside them */
     3,
     "12",
     {"two_ways_1_kernel", "in2[] = {call->in[0], t1};",
      "row_mean[v] = ", "int const block = gridDim.x - 1 - blockIdx.x;"}},
    {"two_convs",
     1,
     "12",
     {"C_IN = 3, C_OUT = 16,", "PIXELS_2 = OUT_D_2 * OUT_H_2 * OUT_W_2;",
      "int64_t shape1[4] = {call->in[0].shape[0], 16, 12, 12}, strides1[4];",
      "part_2::two_convs_2_plain"}},
    {"attention_block",
     3,
     "123",
     {"int64_t shape2[2] = {", "attention_block_2: ", "do_part_3(call, &pool, in3,"}},
    {"named_mask", /* computed, and given to attention by name */
     1,
     "12",
     {"in2[] = {call->in[0], call->in[1], call->in[2], t1};", "float acc, float in_"}},
    {"lstm",
     0,
     "12",
     {"float const *const all_w_ih[] = {w_ih0};", "while (acquired(done - LINE",
      "return do_part_2(call, &pool, in2, &call->out[0]);"}},
    {"lstm@sm_90a", 1, "12", {"float const *const all_w_hh[] = {w_hh0, w_hh1};"}},
};

static void several_products_are_parts_of_one_file(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(several); i++) {
        const struct parts_case *c = &several[i];
        struct bench b;
        struct text source, next;
        const char *change;
        int steps = 0;

        bench_open(&b, c->task);
        source = bench_synthesize(&b);
        b.steps = b.replied;
        for (int k = 0; c->has[k]; k++)
            if (!strstr(source.data, c->has[k]))
                fail_msg("%s: no '%s' in:\n%s", c->task, c->has[k], source.data);
        for (int part = 1; part <= 4; part++) {
            const char *plan = arena_printf(b.a, "static int do_part_%d(", part);

            assert_true((strstr(source.data, plan) != NULL) ==
                        (strchr(c->forms, '0' + part) != NULL));
        }
        for (; (next = bench_step(&b, source, &change)).data; steps++) {
            assert_null(strstr(next.data, "//!"));
            bench_remember(&b, change, "pass");
            b.steps = b.replied;
            source = next;
        }
        assert_true(steps >= c->steps);
        bench_close(&b);
    }
}

/* A convolution's weights need no launch of its own, nor does the largest magnitude of its x, where
 * the convolution before says it. */
static void weights_of_several_convolutions_are_prepared_by_one_launch(void **state)
{
    static const struct {
        const char *task, *has[5], *lacks[3];
    } rows[] = {
        {"conv_pair@sm_90a",
         {"part_1::join_weights(w1, weights, kept, line);", "note_top(top, mine);",
          "ready1 = {weights1, state + 0, state + 32, state + 128, (int)tops};",
          "ready2 = {weights2, state + 64, state + 96, state + 32, 32};",
          "WEIGHTS_BYTES_2 = (int64_t(ROWS_2) *"},
         {"conv_pair_1_prepare", "conv_pair_2_prepare"}},
        {"conv_pair_last@sm_90a",
         {"part_2::join_weights(w2, weights, kept, line);",
          "ready2 = {weights2, state + 64, state + 96, 0, 0};"},
         {"_prepare(", "note_top(", "_largest("}},
        /* one convolution has planes: nothing to join */
        {"two_convs@sm_90a", {"part_2::two_convs_2_prepare, "}, {"prepare_weights_1", "note_top("}},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct bench b;
        struct text source;
        const char *joined, *part;

        bench_open(&b, rows[i].task);
        b.predicted = true;
        source = bench_synthesize(&b);
        for (int k = 0; k < 5 && rows[i].has[k]; k++)
            if (!strstr(source.data, rows[i].has[k]))
                fail_msg("%s: no '%s' in:\n%s", rows[i].task, rows[i].has[k], source.data);
        for (int k = 0; k < 3 && rows[i].lacks[k]; k++)
            assert_null(strstr(source.data, rows[i].lacks[k]));
        joined = strstr(source.data, "CUTEGEN_LAUNCH(call, prepare_weights_1, ");
        part = strstr(strstr(source.data, "CUTEGEN_PLAN(call)"), "do_part_1(");
        assert_true(part && (!joined || joined < part));
        bench_close(&b);
    }
}

/* Where nothing but attention reads what products make, they write it split, and nothing splits it
 * again: rows that share a scale must be of one batch. */
static void products_write_what_attention_reads(void **state)
{
    static const struct {
        const char *task, *has[4];
    } rows[] = {
        {"packed_qkv@sm_90a",
         {"constexpr int PLANE_HEAD = 96;", "SM90_64x96x16_F32F16F16_SS<MAJOR_A, MAJOR_B>",
          "of_parts2[2].from = 384;", "lost + 0, 0, 384, 576}"}},
        /* a form for the three, and one for what they make */
        {"three_products@sm_90a",
         {"constexpr int PLANE_HEAD = 32;", "SM90_64x128x16_F32F16F16_SS<MAJOR_A, MAJOR_B>",
          "of_parts4[] = {of_parts1[0], of_parts2[0], of_parts3[0]}", "lost + 4, 2, 0, 128}"}},
        {"qkv_read_twice@sm_90a", {NULL}},    /* by a sum, too */
        {"qkv_beside_scores@sm_90a", {NULL}}, /* the product has columns for the scores, too */
        {"qkv_uneven@sm_90a", {NULL}},        /* two batches of 100 rows */
        {"attention_block@sm_90a", {NULL}},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct bench b;
        struct text source;

        bench_open(&b, rows[i].task);
        b.predicted = true;
        source = bench_synthesize(&b);
        assert_true((strstr(source.data, "part_planes") != NULL) == (rows[i].has[0] != NULL));
        assert_false(rows[i].has[0] && strstr(source.data, "_split<HEAD"));
        for (int k = 0; k < 4 && rows[i].has[k]; k++)
            if (!strstr(source.data, rows[i].has[k]))
                fail_msg("%s: no '%s' in:\n%s", rows[i].task, rows[i].has[k], source.data);
        bench_close(&b);
    }
}

static void attention_refuses_calls_it_was_not_written_for(void **state)
{
    static const char *const wants[][2] = {
        {"decode_attention", "dimension 2 of Q must be 1"}, /* dimensions of one have no stride */
        {"attention_gradient", "dimension 3 of dK must be 32"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wants); i++) {
        struct bench b;
        struct text source;

        bench_open(&b, wants[i][0]);
        source = bench_synthesize(&b);
        if (!strstr(source.data, wants[i][1]))
            fail_msg("%s: no '%s' in:\n%s", wants[i][0], wants[i][1], source.data);
        bench_close(&b);
    }
}

static void a_prompt_gets_a_worked_example_for_any_task(void **state)
{
    static const struct {
        const char *task;
        enum kernel_class class;
        const char *recipe;
    } cases[] = {{"softmax", CLASS_REDUCTION, "row_reduction"},
                 {"conv", CLASS_CONVOLUTION, "convolution"},
                 {"top_k", CLASS_CONVOLUTION, "convolution"},
                 {"top_k", CLASS_GEMM, "gemm"},
                 {"top_k", CLASS_POINTWISE, "pointwise"},
                 {"top_k", CLASS_REDUCTION, "row_reduction"},
                 {"top_k", CLASS_ATTENTION, "attention"},
                 {"paged_attention", CLASS_ATTENTION, "attention_decode"},
                 {"top_k", CLASS_OTHER, "gemm"}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct error err = {0};
        const char *recipe;
        struct text text;
        struct bench b;

        bench_open(&b, cases[i].task);
        b.task.class = cases[i].class;
        assert_true(expert_recipe_text(&b.task, false, b.a, &recipe, &text, &err));
        assert_string_equal(recipe, cases[i].recipe);
        assert_non_null(strstr(text.data, "CUTEGEN_PLAN(call)"));
        assert_null(strstr(text.data, "//!"));
        bench_close(&b);
    }
}

/* What measures a model must not be told to it. */
static void another_operator_is_the_example_where_the_nearest_would_be_the_answer(void **state)
{
    static const struct {
        const char *task;
        enum kernel_class class;
        const char *recipe, *lacks;
    } cases[] = {{"softmax", CLASS_REDUCTION, "pointwise", "softmax"},
                 {"swish", CLASS_POINTWISE, "pointwise", "sigmoid"},
                 {"square_matmul", CLASS_GEMM, "pointwise", "mma"},
                 {"fused_attention", CLASS_ATTENTION, "pointwise", "softmax"},
                 {"conv", CLASS_OTHER, "scan", "conv"}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct error err = {0};
        const char *recipe;
        struct text text;
        struct bench b;

        bench_open(&b, cases[i].task);
        b.task.class = cases[i].class;
        assert_true(expert_recipe_text(&b.task, true, b.a, &recipe, &text, &err));
        if (strcmp(recipe, cases[i].recipe) != 0 || strstr(text.data, cases[i].lacks))
            fail_msg("%s: %s\n%s", cases[i].task, recipe, text.data);
        assert_non_null(strstr(text.data, "CUTEGEN_PLAN(call)"));
        bench_close(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_it_cannot_write_it_says_and_names_what_it_saw),
        cmocka_unit_test(more_arguments_than_a_launch_takes_are_not_pointwise),
        cmocka_unit_test(composing_takes_memory_by_what_is_written),
        cmocka_unit_test(a_long_kernel_gets_its_requirement_and_keeps_its_end),
        cmocka_unit_test(the_plain_kernel_says_what_the_graph_says),
        cmocka_unit_test(several_products_are_parts_of_one_file),
        cmocka_unit_test(weights_of_several_convolutions_are_prepared_by_one_launch),
        cmocka_unit_test(products_write_what_attention_reads),
        cmocka_unit_test(attention_refuses_calls_it_was_not_written_for),
        cmocka_unit_test(a_prompt_gets_a_worked_example_for_any_task),
        cmocka_unit_test(another_operator_is_the_example_where_the_nearest_would_be_the_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
