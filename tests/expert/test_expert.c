/*
 * test_expert.c - the built-in engineer, asked as the loop asks it.
 *
 * The files of tasks/ are descriptions as the oracle writes them, small. Recipes are
 * read from the source tree ($CUTEGEN_HOME).
 */
#include "base/fs.h"
#include "base/json.h"
#include "expert/expert.h"
#include "expert/match/match.h"
#include "llm/edit/edit.h"
#include "llm/edit/fence.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct bench {
    struct arena *a;
    struct task task;
    json_t *history;
    struct device device;
    bool predicted; /* begins with the composition predicted to be best */
};

/* "swish": for simt; "swish@sm_90a": for that device. */
static void bench_open(struct bench *b, const char *task)
{
    size_t len = strcspn(task, "@");
    const char *name;
    struct error err = {0};
    struct text text;
    char *path;

    memset(b, 0, sizeof(*b));
    b->a = arena_new();
    b->history = json_array();
    b->device = (struct device){.arch = task[len] ? task + len + 1 : "compute_80", .sm_count = 132};
    b->device.kind = task[len] ? DEVICE_CUDA : DEVICE_SIMT;
    name = arena_strndup(b->a, task, len);
    path = arena_printf(b->a, "%s/%s.json", getenv("EXPERT_TASKS"), name);
    if (!file_read(path, 1 << 20, b->a, &text, &err) ||
        !json_parse(text, path, &b->task.description, &err))
        fail_msg("%s", err.text);
    b->task.name = arena_strdup(b->a, name);
}

static void bench_close(struct bench *b)
{
    json_decref(b->history);
    json_decref(b->task.description);
    arena_free(b->a);
}

static struct reply ask_from(struct bench *b, enum stage_kind stage,
                             const struct candidate *current)
{
    struct request req = {.stage = stage,
                          .task = &b->task,
                          .device = &b->device,
                          .current = current,
                          .history = b->history,
                          .predicted = b->predicted};
    struct error err = {0};
    struct reply reply;

    if (!expert_ask(&req, b->a, &reply, &err))
        fail_msg("%s: %s", b->task.name, err.text);
    return reply;
}

static struct reply ask(struct bench *b, enum stage_kind stage, struct text source)
{
    struct candidate current = {.source = source};

    return ask_from(b, stage, source.data ? &current : NULL);
}

static struct text synthesize(struct bench *b)
{
    struct reply reply = ask(b, STAGE_SYNTHESIZE, (struct text){NULL, 0});
    struct text source;
    const char *reason;

    assert_false(reply.done);
    if (!fence_code(reply.text, b->a, &source, &reason))
        fail_msg("%s: %s", b->task.name, reason);
    return source;
}

static void remember(struct bench *b, const char *change, const char *verdict)
{
    json_array_append_new(b->history, json_pack("{s:s,s:s}", "change", change, "verdict", verdict));
}

/* One optimise request; the kernel it leads to. */
static struct text step(struct bench *b, struct text source, const char **change)
{
    struct reply reply = ask(b, STAGE_OPTIMIZE, source);
    struct edit_result r;

    *change = fence_change(reply.text, b->a);
    if (reply.done)
        return (struct text){NULL, 0};
    edit_apply(source, reply.text, b->a, &r);
    if (r.status != EDIT_APPLIED)
        fail_msg("%s: %s\n%s", b->task.name, r.reason, reply.text.data);
    assert_int_equal(r.format, EDIT_SEARCH);
    return r.source;
}

static const struct ladder_case {
    const char *task, *recipe;
    const char *steps[12]; /* names in the recipe, in the order they come */
} ladders[] = {
    {"swish", "pointwise", {"vectorise", "launch_shape", "fast_math"}},
    {"bias_gelu", "pointwise", {"vectorise", "launch_shape"}},
    {"masked_half", "pointwise", {"vectorise", "launch_shape"}},
    {"transposed_add", "pointwise", {"launch_shape", "turn"}},
    {"softplus", "pointwise", {"vectorise", "launch_shape", "fast_math"}},
    {"square_matmul", "gemm", {"tiles", "registers", "vectorise", "pipeline", "split_k", "wide"}},
    {"linear_relu", "gemm", {"tiles", "registers", "vectorise", "pipeline", "padding"}},
    {"bmm_transposed", "gemm", {"tiles", "registers", "pipeline", "padding"}},
    {"matmul_3d", "gemm", {"tiles", "registers", "vectorise", "pipeline"}},
    {"lower_triangle", "gemm", {"tiles", "registers", "vectorise", "pipeline", "wide", "triangle"}},
    {"big_matmul@sm_90a",
     "gemm_sm90",
     {"tensor", "ring", "wide", "raster", "cluster", "overlap", "fuse", "store", "once", "both"}},
    {"short_sum@sm_90a",
     "gemm_sm90",
     {"tensor", "ring", "wide", "raster", "overlap", "store", "once"}},
    {"odd_batch@sm_90a",
     "gemm_sm90",
     {"tensor", "ring", "wide", "raster", "cluster", "overlap", "once"}},
    {"long_sum@sm_90a",
     "gemm_sm90",
     {"tensor", "ring", "wide", "raster", "cluster", "overlap", "split_k", "fuse", "store", "once",
      "both"}},
    {"triangles@sm_90a",
     "gemm_sm90",
     {"tensor", "ring", "wide", "raster", "cluster", "overlap", "triangle", "store", "once"}},
    {"attention", "attention", {"tiles"}},
    {"fused_attention", "attention", {"tiles"}},
    {"half_attention", "attention", {"tiles", "tensor"}},
    {"fused_attention@sm_90a", "attention_split_sm90", {"tensor"}},
    {"half_attention@sm_90a", "attention_sm90", {"tensor", "turns"}},
    {"relu_attention", "attention", {"tiles", "tensor"}},
    {"relu_attention@sm_90a", "attention_sm90", {"tensor", "turns"}},
    {"decode_attention", "attention_decode", {"split"}},
    {"decode_attention@sm_90a", "attention_decode", {"split", "early"}},
    {"paged_attention", "attention_decode", {"split"}},
    {"attention_gradient", "attention_backward", {"tensor"}},
    {"attention_gradient@sm_90a", "attention_backward_sm90", {"tensor", "wgmma"}},
    {"tf32_matmul",
     "gemm",
     {"tiles", "registers", "vectorise", "pipeline", "split_k", "wide", "tensor"}},
    {"big_half", "gemm", {"tiles", "registers", "padding", "wide", "tensor"}},
    {"big_half@sm_90a", "gemm_half_sm90", {"tensor", "ring", "raster", "cluster", "store", "hold"}},
    {"small_half@sm_90a",
     "gemm_half_sm90",
     {"tensor", "ring", "raster", "cluster", "slim", "store", "hold"}},
    {"half_gelu@sm_90a",
     "gemm_half_sm90",
     {"tensor", "ring", "raster", "cluster", "fast_math", "store", "hold"}},
    {"big_half@sm_100a",
     "gemm_half_sm100",
     {"tensor", "ring", "overlap", "raster", "pair", "store"}},
    {"small_half@sm_100a",
     "gemm_half_sm100",
     {"tensor", "ring", "overlap", "raster", "pair", "slim", "store"}},
    {"half_gelu@sm_100a",
     "gemm_half_sm100",
     {"tensor", "ring", "overlap", "raster", "pair", "fast_math", "store"}},
    {"square_matmul@sm_90a",
     "gemm",
     {"tiles", "registers", "vectorise", "pipeline", "split_k", "wide"}},
    {"thin_matmul", "gemm_thin", {"ahead", "lines", "split_k"}},
    {"thin_matmul@sm_90a", "gemm_thin_sm90", {"split_k", "overlap", "pair"}},
    {"thin_half@sm_90a", "gemm_thin_half_sm90", {"split_k", "overlap"}},
    {"thin_columns", "gemm_thin", {"ahead", "lines", "split_k"}},
    {"diagonal", "pointwise", {"vectorise", "launch_shape"}},
    {"matrix_scalar", "pointwise", {"vectorise", "launch_shape"}},
    {"softmax",
     "row_reduction",
     {"shuffles", "vectorise", "registers", "one_pass", "warps", "fast_math"}},
    {"long_softmax", "row_reduction", {"shuffles", "vectorise", "one_pass", "fast_math"}},
    {"layer_norm", "row_reduction", {"shuffles", "vectorise", "registers", "one_pass", "warps"}},
    {"wide_norm@sm_90a",
     "row_reduction",
     {"shuffles", "vectorise", "registers", "one_pass", "retain", "more_threads", "fewer_threads"}},
    {"row_sum", "row_reduction", {"shuffles", "vectorise"}},
    {"cross_entropy",
     "row_reduction",
     {"shuffles", "vectorise", "registers", "one_pass", "fast_math"}},
    {"cross_entropy@sm_80",
     "row_reduction",
     {"shuffles", "vectorise", "registers", "one_pass", "fast_math", "more_threads",
      "fewer_threads"}},
    {"max_dim@sm_80", "column_reduction", {"team", "unroll", "split", "super_rows", "bigger_team"}},
    {"half_max", "row_reduction", {"shuffles", "peel", "warps"}},
    {"odd_argmin", "row_reduction", {"shuffles", "peel", "groups"}},
    {"odd_argmin@sm_90a",
     "row_reduction",
     {"shuffles", "peel", "groups", "unroll", "once", "more_threads", "fewer_threads"}},
    {"max_first", "column_reduction", {"vectorise", "wide"}},
    {"rms_norm", "column_reduction", {"team", "vectorise", "registers", "fast_math"}},
    {"max_dim", "column_reduction", {"team", "split", "super_rows"}},
    {"argmax", "column_reduction", {"team", "split", "super_rows"}},
    {"layer_norm_3d", "split_reduction", {"shuffles", "vectorise", "one_pass", "together"}},
    {"group_norm", "split_reduction", {"shuffles", "vectorise", "one_pass", "once"}},
    {"matvec", "row_reduction", {"shuffles", "vectorise"}},
    {"cumsum", "scan", {"shuffles", "vectorise", "registers"}},
    {"reverse_cumsum", "scan", {"shuffles", "vectorise"}},
    {"exclusive_cumsum", "scan", {"shuffles", "vectorise", "registers"}},
    {"exclusive_cumprod", "scan", {"shuffles", "vectorise", "registers"}},
    {"max_pool", "pooling", {"launch_shape", "columns", "vectorise", "bands", "walk"}},
    {"avg_pool", "pooling", {"launch_shape", "columns", "vectorise"}},
    {"concat", "concat", {"vectorise", "launch_shape"}},
    {"conv", "convolution", {NULL}},
    {"conv_wide", "convolution", {"tensor", "single"}},
    {"conv_wide@sm_90a", "convolution", {"tensor", "single", "wgmma", "share", "overlap"}},
    {"conv_1x1@sm_90a", "convolution", {"tensor", "wgmma", "direct"}},
    {"conv_norm@sm_90a", "convolution", {"tensor", "single", "wgmma", "share", "overlap"}},
    {"conv_strided_back@sm_90a", "convolution", {"tensor", "wgmma", "share", "turns", "overlap"}},
    {"conv_wide_rows@sm_90a",
     "convolution",
     {"tensor", "wgmma", "share", "aligned", "turns", "overlap"}},
    {"depthwise", "convolution", {"columns"}},
    {"top_k", "generic", {"launch_shape"}},
    {"batch_norm", "pointwise", {"vectorise", "launch_shape"}},
    {"rope", "pointwise", {"vectorise", "launch_shape"}},
    {"long_softmax@sm_90a",
     "row_reduction",
     {"shuffles", "vectorise", "one_pass", "unroll", "cluster", "fast_math"}},
};

static int step_index(const struct recipe *r, const char *name)
{
    for (int i = 0; i < r->step_count; i++)
        if (strcmp(r->steps[i].name, name) == 0)
            return i;
    fail_msg("%s has no step %s", r->name, name);
    return -1;
}

/* The recipe behind a task, filled: what the answers are compared with. */
static void load(struct bench *b, struct match *m, struct recipe *r)
{
    struct graph *g = arena_alloc(b->a, sizeof(*g));
    struct error err = {0};

    if (!graph_read(b->task.description, b->a, g, &m->why_not))
        fail_msg("%s: %s", b->task.name, m->why_not);
    graph_device(g, &b->device);
    if (!match_graph(g, b->a, m))
        fail_msg("%s: %s", b->task.name, m->why_not);
    if (!recipe_load(m->recipe, b->a, r, &err))
        fail_msg("%s", err.text);
}

static struct text compose(struct bench *b, const struct match *m, const struct recipe *r,
                           unsigned steps)
{
    struct error err = {0};
    struct text source;

    if (!recipe_compose(r, m->scope, steps, b->a, &source, &err))
        fail_msg("%s: %s", b->task.name, err.text);
    return source;
}

static void every_ladder_goes_step_by_step_to_its_end(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ladders); i++) {
        const struct ladder_case *c = &ladders[i];
        struct bench b;
        struct match m;
        struct recipe r;
        struct text source;
        const char *change;
        unsigned taken = 0;

        bench_open(&b, c->task);
        load(&b, &m, &r);
        assert_string_equal(m.recipe, c->recipe);
        source = synthesize(&b);
        assert_string_equal(source.data, compose(&b, &m, &r, 0).data);
        for (int k = 0; c->steps[k]; k++) {
            int at = step_index(&r, c->steps[k]);

            taken &= ~r.steps[at].excludes;

            source = step(&b, source, &change);
            if (!source.data)
                fail_msg("%s ends before %s", c->task, c->steps[k]);
            assert_string_equal(change, r.steps[at].words);
            taken |= 1u << at;
            assert_string_equal(source.data, compose(&b, &m, &r, taken).data);
            remember(&b, change, "pass");
        }
        assert_null(step(&b, source, &change).data);
        bench_close(&b);
    }
}

/* From the prediction on: no kernel twice, at most one per step, and an end that says why. Each
 * neighbour is told to bring nothing, so that all of them are proposed. */
static void a_predicted_ladder_tries_its_neighbours_once_and_ends(void **state)
{
    int begun = 0;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ladders); i++) {
        struct bench b;
        struct match m;
        struct recipe r;
        struct text plain, first, back;
        const char *change, *reason, *seen[2 * RECIPE_STEPS + 1];
        struct candidate failed = {0};
        int count = 0;

        bench_open(&b, ladders[i].task);
        load(&b, &m, &r);
        plain = synthesize(&b);
        b.predicted = true;
        first = synthesize(&b);
        assert_null(strstr(first.data, "//!"));
        begun += !text_equal(first, plain);
        for (struct text s; (s = step(&b, first, &change)).data;) {
            for (int k = 0; k < count; k++)
                assert_string_not_equal(seen[k], change);
            assert_true(count < 2 * RECIPE_STEPS);
            assert_false(text_equal(s, first));
            if (strcmp(ladders[i].task, "triangles@sm_90a") ==
                0) /* pairs and triangles exclude each other */
                assert_null(strstr(change, "pair blocks"));
            seen[count++] = change;
            remember(&b, change, "pass");
        }
        assert_non_null(strstr(ask(&b, STAGE_OPTIMIZE, first).text.data, "predicted to win"));
        failed.source = first;
        if (!text_equal(first, plain)) {
            assert_false(ask_from(&b, STAGE_DIAGNOSE, &failed).done);
            assert_true(fence_code(ask_from(&b, STAGE_REPAIR, &failed).text, b.a, &back, &reason));
            assert_string_equal(back.data, plain.data);
        }
        failed.source = plain; /* there is nothing plainer */
        assert_true(ask_from(&b, STAGE_DIAGNOSE, &failed).done);
        bench_close(&b);
    }
    assert_true(begun > 0);
}

/* Independent steps: any set that has what it needs is a kernel, free of directives. */
static void every_set_of_steps_composes_to_plain_source(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ladders); i++) {
        struct bench b;
        struct match m;
        struct recipe r;
        struct error err = {0};
        unsigned possible;

        bench_open(&b, ladders[i].task);
        load(&b, &m, &r);
        assert_true(recipe_steps(&r, m.scope, &possible, &err));
        for (unsigned set = 0; set < 1u << r.step_count; set++) {
            struct text source;

            if (set & ~possible)
                continue;
            if (r.step_count > 8 && set % 7 && set != possible)
                continue; /* a sample of the many */
            source = compose(&b, &m, &r, set);
            assert_null(strstr(source.data, "//!"));
            assert_null(strchr(source.data, '$'));
            assert_null(strstr(source.data, "\n\n\n"));
            assert_non_null(strstr(source.data, "CUTEGEN_PLAN(call)"));
        }
        bench_close(&b);
    }
}

/* The tensor cores truncate: sums are made as it takes to be as accurate as cuBLAS. */
static void what_the_tensor_cores_cut_off_is_made_up_for_where_cublas_is_more_accurate(void **state)
{
    static const struct {
        const char *task, *step, *has, *has_not;
    } sums[] = {
        {"big_matmul@sm_90a", "tensor", "TERMS = 64;", "CUT ="},
        {"middling_matmul@sm_90a", "tensor", "CUT =", "TERMS = 32;"},
        {"short_sum@sm_90a", "tensor", "TERMS = 32;", "CUT ="},
        {"divided_matmul@sm_90a", "tensor", "CUT =", "add_parts"},
        {"divided_matmul@sm_90a", "ring", "add_parts", "TERMS = 32;"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(sums); i++) {
        struct bench b;
        struct match m;
        struct recipe r;
        struct text source;

        bench_open(&b, sums[i].task);
        load(&b, &m, &r);
        source = compose(&b, &m, &r,
                         1u << step_index(&r, "tensor") | 1u << step_index(&r, sums[i].step));
        assert_non_null(strstr(source.data, sums[i].has));
        assert_null(strstr(source.data, sums[i].has_not));
        bench_close(&b);
    }
}

static void a_step_that_failed_is_not_proposed_again_nor_what_needs_it(void **state)
{
    const char *change;
    struct bench b;
    struct text plain, next;

    (void)state;
    bench_open(&b, "square_matmul");
    plain = synthesize(&b);
    next = step(&b, plain, &change);
    remember(&b, change, "wrong values");
    assert_non_null(next.data);
    assert_null(step(&b, plain, &change).data); /* everything needs the tiles */
    bench_close(&b);
}

static void a_step_that_brought_nothing_comes_along_with_what_needs_it(void **state)
{
    const char *change;
    struct bench b;
    struct match m;
    struct recipe r;
    struct text plain, next;

    (void)state;
    bench_open(&b, "square_matmul");
    load(&b, &m, &r);
    plain = synthesize(&b);
    step(&b, plain, &change);
    remember(&b, change, "pass"); /* but slower: the loop stays with the plain kernel */
    next = step(&b, plain, &change);
    assert_non_null(strstr(change, r.steps[step_index(&r, "registers")].words));
    assert_non_null(strstr(change, r.steps[step_index(&r, "tiles")].words));
    assert_string_equal(
        next.data,
        compose(&b, &m, &r, 1u << step_index(&r, "tiles") | 1u << step_index(&r, "registers"))
            .data);
    bench_close(&b);
}

static void independent_steps_go_on_from_the_best_kernel(void **state)
{
    const char *change;
    struct bench b;
    struct text plain, next;

    (void)state;
    bench_open(&b, "swish");
    plain = synthesize(&b);
    step(&b, plain, &change);
    remember(&b, change, "crash");
    next = step(&b, plain, &change);
    assert_string_equal(change, "launch blocks of 128 threads");
    assert_non_null(strstr(next.data, "swish_kernel<128>"));
    assert_null(strstr(next.data, "VEC"));
    bench_close(&b);
}

static void a_kernel_found_before_is_where_it_begins(void **state)
{
    const char *change;
    struct bench b;
    struct text known, foreign = text_of("__global__ void mine() {}\n");
    struct candidate before = {.change = "the best kernel of run 7"};
    struct reply reply;

    (void)state;
    bench_open(&b, "swish");
    known = step(&b, synthesize(&b), &change);
    before.source = known;
    reply = ask_from(&b, STAGE_SYNTHESIZE, &before);
    assert_string_equal(fence_change(reply.text, b.a), "the best kernel of run 7");
    assert_non_null(strstr(reply.text.data, known.data));
    before.source = foreign; /* a recipe that has changed since */
    reply = ask_from(&b, STAGE_SYNTHESIZE, &before);
    assert_string_equal(fence_change(reply.text, b.a), "the plain pointwise kernel");
    bench_close(&b);
}

/* Stored steps only save the search: without them, and with stale ones, the answer is the same. */
static void the_steps_of_a_kernel_come_with_it(void **state)
{
    static const char *const stored[] = {NULL, "", "vectorise", "vectorise launch_shape",
                                         "no_such"};
    struct bench b;
    struct reply reply = {0};
    struct candidate c = {.change = ""};
    struct edit_result r;
    char *first = NULL;

    (void)state;
    bench_open(&b, "swish");
    c.source = synthesize(&b);
    assert_string_equal(expert_steps(ask(&b, STAGE_SYNTHESIZE, (struct text){NULL, 0}).text, b.a),
                        "");
    reply = ask(&b, STAGE_OPTIMIZE, c.source);
    assert_string_equal(expert_steps(reply.text, b.a), "vectorise");
    edit_apply(c.source, reply.text, b.a, &r);
    c.source = r.source;
    for (size_t i = 0; i < ARRAY_LEN(stored); i++) {
        c.steps = stored[i];
        reply = ask_from(&b, STAGE_OPTIMIZE, &c);
        assert_string_equal(expert_steps(reply.text, b.a), "vectorise launch_shape");
        if (!first)
            first = arena_strndup(b.a, reply.text.data, reply.text.len);
        assert_string_equal(reply.text.data, first);
    }
    assert_null(expert_steps(text_of("CHANGE: a model's\n\n```\n```\n"), b.a));
    bench_close(&b);
}

static void repairs_are_declined_and_a_foreign_kernel_is_left_alone(void **state)
{
    struct bench b;
    struct reply reply;

    (void)state;
    bench_open(&b, "swish");
    reply = ask(&b, STAGE_REPAIR, text_of("anything"));
    assert_true(reply.done);
    reply = ask(&b, STAGE_DIAGNOSE, text_of("anything"));
    assert_true(reply.done);
    reply = ask(&b, STAGE_OPTIMIZE, text_of("__global__ void mine() {}\n"));
    assert_true(reply.done);
    assert_non_null(strstr(reply.text.data, "not one of the pointwise recipe"));
    bench_close(&b);
}

static const struct refusal_case {
    const char *task, *words[4];
} refusals[] = {
    {"double", {"is not covered", "f64"}},
    {"hidden", {"is not covered", "does not show everything"}},
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
        reply = ask(&b, STAGE_SYNTHESIZE, (struct text){NULL, 0});
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

static const struct source_case {
    const char *task, *has[6];
} sources[] = {
    {"swish",
     {"float const sigmoid = 1.0f / (1.0f + expf(-x));", "return x * sigmoid;",
      "make_tensor(make_gmem_ptr(x), n); // (n)"}},
    {"bias_gelu",
     {"make_tensor(make_gmem_ptr(linear_bias), shape, make_stride(_1{}, _0{}))",
      "0.5f * add * (1.0f + erff(0.707106781f * add))"}},
    {"masked_half", {"half_t const *x", "mask ? mul : x", "half_t(y0_value(float(gX(i)), "}},
    {"transposed_add", {"x + 2.0f * y_view", "make_stride(y_view_stride0, y_view_stride1)"}},
    {"linear_relu",
     {"float const sum = acc + linear_bias;", "int64_t M = C->shape[0] * C->shape[1];",
      "make_shape(N, K), make_stride(b_n, _1{})"}},
    {"changed_operand",
     {"return x * 0.25f;", "acc += mA(m, k) * changed_operand_b(mB(n, k));",
      "return acc < 0.0f ? 0.0f : acc;"}},
    {"bmm_transposed", {"int const l = blockIdx.z;", "A + l * int64_t(a_l)", ", L)"}},
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
    {"top_k", {"sorts_before<true>(", "cutegen_workspace(call, "}},
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
};

static void the_plain_kernel_says_what_the_graph_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(sources); i++) {
        struct bench b;
        struct text source;

        bench_open(&b, sources[i].task);
        source = synthesize(&b);
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
      "in2[] = {call->in[4], t1, call->in[3]};", "CUTEGEN_TRY(do_part_1(call, in2, &t2));",
      "return do_part_3(call, in3, &call->out[0]);"}},
    {"mlp@sm_90a", 8, "123", {"part_1::mlp_1_plain", "part_3::mlp_3_pack"}},
    {"two_products", 4, "12", {"in2[] = {t1, call->in[0]};"}},
    {"two_convs",
     1,
     "12",
     {"C_IN = 3, C_OUT = 16,", "PIXELS_2 = OUT_D_2 * OUT_H_2 * OUT_W_2;",
      "int64_t shape1[4] = {call->in[0].shape[0], 16, 12, 12}, strides1[4];",
      "part_2::two_convs_2_plain"}},
    {"attention_block",
     3,
     "123",
     {"int64_t shape2[2] = {", "attention_block_2: ", "do_part_3(call, in3,"}},
    {"lstm",
     0,
     "12",
     {"float const *const all_w_ih[] = {w_ih0};", "while (acquired(done - LINE",
      "return do_part_2(call, in2, &call->out[0]);"}},
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
        source = synthesize(&b);
        for (int k = 0; c->has[k]; k++)
            if (!strstr(source.data, c->has[k]))
                fail_msg("%s: no '%s' in:\n%s", c->task, c->has[k], source.data);
        for (int part = 1; part <= 4; part++) {
            const char *plan = arena_printf(b.a, "static int do_part_%d(", part);

            assert_true((strstr(source.data, plan) != NULL) ==
                        (strchr(c->forms, '0' + part) != NULL));
        }
        for (; (next = step(&b, source, &change)).data; steps++) {
            assert_null(strstr(next.data, "//!"));
            remember(&b, change, "pass");
            source = next;
        }
        assert_true(steps >= c->steps);
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
        source = synthesize(&b);
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
        cmocka_unit_test(every_ladder_goes_step_by_step_to_its_end),
        cmocka_unit_test(a_predicted_ladder_tries_its_neighbours_once_and_ends),
        cmocka_unit_test(every_set_of_steps_composes_to_plain_source),
        cmocka_unit_test(
            what_the_tensor_cores_cut_off_is_made_up_for_where_cublas_is_more_accurate),
        cmocka_unit_test(a_step_that_failed_is_not_proposed_again_nor_what_needs_it),
        cmocka_unit_test(a_step_that_brought_nothing_comes_along_with_what_needs_it),
        cmocka_unit_test(independent_steps_go_on_from_the_best_kernel),
        cmocka_unit_test(a_kernel_found_before_is_where_it_begins),
        cmocka_unit_test(the_steps_of_a_kernel_come_with_it),
        cmocka_unit_test(repairs_are_declined_and_a_foreign_kernel_is_left_alone),
        cmocka_unit_test(what_it_cannot_write_it_says_and_names_what_it_saw),
        cmocka_unit_test(more_arguments_than_a_launch_takes_are_not_pointwise),
        cmocka_unit_test(the_plain_kernel_says_what_the_graph_says),
        cmocka_unit_test(several_products_are_parts_of_one_file),
        cmocka_unit_test(attention_refuses_calls_it_was_not_written_for),
        cmocka_unit_test(a_prompt_gets_a_worked_example_for_any_task),
        cmocka_unit_test(another_operator_is_the_example_where_the_nearest_would_be_the_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
