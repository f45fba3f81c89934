/*
 * test_expert.c - the built-in engineer's ladders, asked as the loop asks.
 *
 * The files of tasks/ are descriptions as the oracle writes them, small. Recipes are
 * read from the source tree ($CUTEGEN_HOME).
 */
#include "bench.h"

#include "base/parts.h"
#include "base/sanitized.h"
#include "base/tunables.h"
#include "expert/compose/launch_order.h"
#include "expert/match/match.h"
#include "llm/edit/edit.h"
#include "llm/edit/fence.h"

#include <ctype.h>
#include <string.h>

/* Sets of steps of longer ladders are sampled; under sanitizers, six times slower, more of them. */
#ifdef SANITIZED
enum { FEW_STEPS = 5, SAMPLED_SETS = 31, EACH_LADDER = 4 };
#else
enum { FEW_STEPS = 8, SAMPLED_SETS = 7, EACH_LADDER = 1 };
#endif

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
    {"long_attention@sm_90a", "attention_sm90", {"tensor", "turns", "close"}},
    {"many_keys_attention@sm_90a", "attention_sm90", {"tensor", "turns"}},
    {"relu_attention", "attention", {"tiles", "tensor"}},
    {"relu_attention@sm_90a", "attention_sm90", {"tensor", "turns"}},
    {"biased_attention", "attention", {"tiles"}}, /* baddbmm */
    {"biased_attention@sm_90a", "attention_split_sm90", {"tensor", "overlap"}},
    {"attention_by_hand", "attention", {"tiles"}}, /* exp, sum, quotient */
    {"attention_by_hand@sm_90a", "attention_split_sm90", {"tensor", "overlap"}},
    {"picture_attention", "attention", {"tiles"}}, /* V P^T of pixels */
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
    {"thin_half@sm_90a", "gemm_thin_half_sm90", {"split_k", "overlap", "in_place", "pair"}},
    {"thin_columns", "gemm_thin", {"ahead", "lines", "split_k"}},
    {"diagonal", "pointwise", {"vectorise", "launch_shape"}},
    {"matrix_scalar", "pointwise", {"vectorise", "launch_shape"}},
    {"softmax",
     "row_reduction",
     {"shuffles", "vectorise", "registers", "one_pass", "warps", "fast_math"}},
    {"safe_softmax",
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
    {"two_losses", "split_reduction", {"shuffles", "vectorise"}},
    {"rotated", "pointwise", {"vectorise", "launch_shape"}},
    {"turned_sum", "pointwise", {"launch_shape", "turn", "tiles"}},
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
    {"conv_last", "convolution", {"tensor"}},
    {"conv_last@sm_90a", "convolution", {"tensor", "wgmma", "boxes", "overlap"}},
    {"conv_norm@sm_90a", "convolution", {"tensor", "single", "wgmma", "share", "overlap"}},
    {"conv_deep@sm_90a",
     "convolution",
     {"tensor", "single", "wgmma", "share", "split_sums", "overlap"}},
    {"conv_strided_back@sm_90a", "convolution", {"tensor", "wgmma", "share", "turns", "overlap"}},
    {"conv_wide_rows@sm_90a",
     "convolution",
     {"tensor", "wgmma", "share", "aligned", "turns", "overlap"}},
    {"depthwise", "convolution", {"columns"}},
    {"top_k", "generic", {"launch_shape"}},
    {"empty_part", "generic", {"launch_shape"}},
    {"whole_sum", "generic", {"launch_shape"}}, /* of numbers that a float does not hold */
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

/* Has it a step after which its launches overlap, which no recipe declares? */
static bool may_overlap(const struct bench *b, const struct recipe *r, struct text source)
{
    return strcmp(b->device.arch, "sm_90a") == 0 && launches_several(source) &&
           !strstr(r->body.data, "CUTEGEN_OVERLAP");
}

static struct text compose(struct bench *b, const struct match *m, const struct recipe *r,
                           unsigned steps)
{
    struct error err = {0};
    struct text source;

    if (!recipe_compose(r, m->scope, steps, b->a, &source, &err))
        fail_msg("%s: %s", b->task.name, err.text);
    return may_overlap(b, r, source) ? launches_ordered(source, false, b->a) : source;
}

/* The last step of a ladder: the plan alone changes. */
static void overlap_follows(struct bench *b, struct text *source)
{
    struct text before = *source;
    const char *change, *host = strstr(before.data, "#ifdef CUTEGEN_HOST");

    *source = bench_step(b, before, &change);
    if (!source->data)
        fail_msg("%s ends before launches overlap", b->task.name);
    assert_string_equal(change, "let every launch begin while the one before ends");
    assert_memory_equal(source->data, before.data, (size_t)(host - before.data));
    assert_non_null(strstr(source->data, launches_overlap));
    bench_remember(b, change, "pass");
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
        source = bench_synthesize(&b);
        assert_string_equal(source.data, compose(&b, &m, &r, 0).data);
        for (int k = 0; c->steps[k]; k++) {
            int at = step_index(&r, c->steps[k]);

            taken &= ~r.steps[at].excludes;

            source = bench_step(&b, source, &change);
            if (!source.data)
                fail_msg("%s ends before %s", c->task, c->steps[k]);
            assert_string_equal(change, r.steps[at].words);
            taken |= 1u << at;
            assert_string_equal(source.data, compose(&b, &m, &r, taken).data);
            bench_remember(&b, change, "pass");
        }
        if (may_overlap(&b, &r, source))
            overlap_follows(&b, &source);
        assert_null(bench_step(&b, source, &change).data);
        bench_close(&b);
    }
}

/* From the prediction on: no kernel twice, at most one per step, and an end that says why. Each
 * neighbour is told to bring nothing, so that all of them are proposed. */
static void a_predicted_ladder_tries_its_neighbours_once_and_ends(void **state)
{
    int begun = 0;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ladders); i += EACH_LADDER) {
        struct bench b;
        struct match m;
        struct recipe r;
        struct text plain, first, back;
        const char *change, *reason, *seen[2 * RECIPE_STEPS + 1];
        struct candidate failed = {0};
        int count = 0;

        bench_open(&b, ladders[i].task);
        load(&b, &m, &r);
        plain = bench_synthesize(&b);
        b.predicted = true;
        first = bench_synthesize(&b);
        b.steps = b.replied;
        assert_null(strstr(first.data, "//!"));
        begun += !text_equal(first, plain);
        for (struct text s; (s = bench_step(&b, first, &change)).data;) {
            for (int k = 0; k < count; k++)
                assert_string_not_equal(seen[k], change);
            assert_true(count < 2 * RECIPE_STEPS);
            assert_false(text_equal(s, first));
            if (strcmp(ladders[i].task, "triangles@sm_90a") ==
                0) /* pairs and triangles exclude each other */
                assert_null(strstr(change, "pair blocks"));
            seen[count++] = change;
            bench_remember(&b, change, "pass");
        }
        assert_non_null(strstr(bench_ask(&b, STAGE_OPTIMIZE, first).text.data, "predicted to win"));
        failed.source = first;
        failed.steps = b.steps;
        if (!text_equal(first, plain)) {
            assert_false(bench_ask_from(&b, STAGE_DIAGNOSE, &failed).done);
            assert_true(fence_code(bench_ask_from(&b, STAGE_REPAIR, &failed).text, LANGUAGE_CUTE,
                                   b.a, &back, &reason));
            assert_string_equal(back.data, plain.data);
        }
        failed.source = plain; /* there is nothing plainer */
        failed.steps = "";
        assert_true(bench_ask_from(&b, STAGE_DIAGNOSE, &failed).done);
        bench_close(&b);
    }
    assert_true(begun > 0);
}

/* The tuner puts other values first; the kernel is the recipe's still. */
static void a_tuned_kernel_is_where_it_goes_on(void **state)
{
    static const int most[TUNABLES_MAX] = {2};
    struct bench b;
    struct tunables t;
    struct error err = {0};
    struct text first, tuned;
    const char *change;

    (void)state;
    bench_open(&b, "max_pool");
    b.predicted = true;
    first = bench_synthesize(&b);
    assert_true(tunables_read(first, b.a, &t, &err));
    assert_int_equal(t.count, 1);
    tuned = tunables_set(first, &t, most, b.a);
    assert_false(text_equal(first, tuned));
    assert_non_null(bench_step(&b, tuned, &change).data);
    bench_close(&b);
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
            if (r.step_count > FEW_STEPS && set % SAMPLED_SETS && set != possible)
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

/* How often a name gets a value in front of the device half. */
static int declared(const char *source, const char *name)
{
    const char *end = strstr(source, "#ifdef CUTEGEN_DEVICE");
    size_t len = strlen(name);
    int count = 0;

    for (const char *p = source; (p = strstr(p, name)) && p < end; p += len)
        count +=
            !isalnum((unsigned char)p[-1]) && p[-1] != '_' && text_starts(text_of(p + len), " = ");
    return count;
}

static void parts_of_other_forms_declare_names_of_their_own(void **state)
{
    static const struct {
        const char *task, *name;
    } rows[] = {{"conv_pair@sm_90a", "STAGES_P"},
                {"conv_pair@sm_90a", "STAGES_P_2"},
                {"conv_pair_last@sm_90a", "STAGES_W"},
                {"conv_pair_last@sm_90a", "STAGES_W_2"}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct bench b;

        bench_open(&b, rows[i].task);
        b.predicted = true;
        assert_int_equal(declared(bench_synthesize(&b).data, rows[i].name), 1);
        bench_close(&b);
    }
}

/* Reports and prompts read the parts from the file, and time by part from the labels. */
static void a_file_of_several_parts_describes_them_and_labels_their_launches(void **state)
{
    static const char *const tasks[] = {"mlp", "mlp@sm_90a", "conv_pair@sm_90a", "residual",
                                        "pooled_product"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(tasks); i++) {
        struct bench b;
        struct kernel_parts p;
        struct text source;
        const char *at;

        bench_open(&b, tasks[i]);
        b.predicted = true;
        source = bench_synthesize(&b);
        parts_read(source, b.a, &p);
        at = strstr(source.data, "CUTEGEN_PLAN(call)");
        if (p.count < 2 || !at)
            fail_msg("%s has %d parts", tasks[i], p.count);
        for (int k = 0; k < p.count; k++) {
            at = strstr(at, arena_printf(b.a, "    cutegen_part(call, %d);\n", k + 1));
            if (!at || !strstr(at, "do_part_"))
                fail_msg("%s: the launches of part %d have no label", tasks[i], k + 1);
            assert_true(*p.at[k].recipe && *p.at[k].ops && *p.at[k].made && p.at[k].bytes > 0);
        }
        assert_true(p.at[p.count - 1].from_count > 0);
        bench_close(&b);
    }
}

static void a_part_is_described_by_what_it_computes_reads_and_makes(void **state)
{
    static const struct {
        const char *task, *lines[4];
    } rows[] = {
        {"residual",
         {"// part 1, pointwise: tanh; reads x; makes (64, 64) f32; moves 32768 bytes\n",
          "// part 2, gemm: mm, add; reads part 1, x, w; makes (64, 64) f32; moves 65536 bytes\n",
          "// part 4, gemm: mm, add; reads part 2, part 3, w; makes (64, 64) f32; moves "}},
        {"lstm",
         {"// part 1, gemm: addmm; reads ", "// part 2, recurrent: recurrent; reads part 1, "}},
        /* wide heads: products, a softmax between them; in 16 bits the division is behind them */
        {"wide_attention",
         {"// part 1, gemm: bmm, mul; reads q, k; makes (2, 192, 256) f32; ",
          "// part 2, row_reduction: softmax; reads part 1; makes (2, 192, 256) f32; ",
          "// part 3, gemm: bmm; reads part 2, v; makes (1, 2, 192, 1024) f32; "}},
        {"wide_attention@sm_90a",
         {"// part 1, gemm_sm90: bmm, mul; ", "// part 3, gemm_sm90: bmm; "}},
        {"wide_half_attention@sm_90a", /* heads that share K and V are rows of one matrix */
         {"// part 1, gemm_half_sm90: bmm, mul, causal; reads q, k; makes (1, 544, 256) f32; ",
          "// part 2, row_reduction: amax, clamp_min, sub, exp, to_copy; reads part 1; makes (1, "
          "544, "
          "256) f16; ",
          "// part 3, row_reduction: to_copy, sum, clamp_min; reads part 2; makes (1, 544, 1) "
          "f32; ",
          "// part 4, gemm_half_sm90: bmm, div, to_copy; reads part 2, part 3, v; makes (1, 4, "
          "136, "
          "512) f16; "}},
        {"wide_masked_attention@sm_90a",
         {"// part 1, gemm_half_sm90: bmm, mul, where; reads mask, q, k; makes (1, 2, 192, 264) "
          "f32; ",
          "// part 4, gemm_half_sm90: bmm, div, to_copy; "}},
        {"wide_decode@sm_90a", {NULL}},
        {"swish", {NULL}},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct bench b;
        struct text source;

        bench_open(&b, rows[i].task);
        source = bench_synthesize(&b);
        for (size_t k = 0; k < ARRAY_LEN(rows[i].lines) && rows[i].lines[k]; k++)
            if (!strstr(source.data, rows[i].lines[k]))
                fail_msg("%s: %s in\n%.800s", rows[i].task, rows[i].lines[k], source.data);
        if (!rows[i].lines[0])
            assert_true(!strstr(source.data, "// part ") && !strstr(source.data, "cutegen_part"));
        bench_close(&b);
    }
}

/* A memset between two launches would keep them apart. */
static void what_parts_clear_is_cleared_before_the_first_launch_that_overlaps(void **state)
{
    struct bench b;
    struct text first, source;
    const char *plan, *clears, *part;

    (void)state;
    bench_open(&b, "lstm@sm_90a");
    b.predicted = true;
    first = bench_synthesize(&b);
    assert_non_null(strstr(first.data, "cutegen_memset(call, sync"));
    b.steps = b.replied;
    source = first;
    overlap_follows(&b, &source);
    assert_non_null(strstr(source.data, "cleared(call, sync"));
    plan = strstr(source.data, "CUTEGEN_PLAN(call)");
    clears = strstr(plan, "cutegen_memset(call, pool.clear, 0, CLEAR_BYTES)");
    part = strstr(plan, "do_part_1(");
    assert_true(clears && part && clears < part);
    bench_close(&b);
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
    plain = bench_synthesize(&b);
    next = bench_step(&b, plain, &change);
    bench_remember(&b, change, "wrong values");
    assert_non_null(next.data);
    assert_null(bench_step(&b, plain, &change).data); /* everything needs the tiles */
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
    plain = bench_synthesize(&b);
    bench_step(&b, plain, &change);
    bench_remember(&b, change, "pass"); /* but slower: the loop stays with the plain kernel */
    next = bench_step(&b, plain, &change);
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
    plain = bench_synthesize(&b);
    bench_step(&b, plain, &change);
    bench_remember(&b, change, "crash");
    next = bench_step(&b, plain, &change);
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
    known = bench_step(&b, bench_synthesize(&b), &change);
    before.source = known;
    reply = bench_ask_from(&b, STAGE_SYNTHESIZE, &before);
    assert_string_equal(fence_change(reply.text, b.a), "the best kernel of run 7");
    assert_non_null(strstr(reply.text.data, known.data));
    before.source = foreign; /* a recipe that has changed since */
    reply = bench_ask_from(&b, STAGE_SYNTHESIZE, &before);
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
    c.source = bench_synthesize(&b);
    assert_string_equal(
        expert_steps(bench_ask(&b, STAGE_SYNTHESIZE, (struct text){NULL, 0}).text, b.a), "");
    reply = bench_ask(&b, STAGE_OPTIMIZE, c.source);
    assert_string_equal(expert_steps(reply.text, b.a), "vectorise");
    edit_apply(c.source, reply.text, b.a, &r);
    c.source = r.source;
    for (size_t i = 0; i < ARRAY_LEN(stored); i++) {
        c.steps = stored[i];
        reply = bench_ask_from(&b, STAGE_OPTIMIZE, &c);
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
    reply = bench_ask(&b, STAGE_REPAIR, text_of("anything"));
    assert_true(reply.done);
    reply = bench_ask(&b, STAGE_DIAGNOSE, text_of("anything"));
    assert_true(reply.done);
    reply = bench_ask(&b, STAGE_OPTIMIZE, text_of("__global__ void mine() {}\n"));
    assert_true(reply.done);
    assert_non_null(strstr(reply.text.data, "not one of the pointwise recipe"));
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_ladder_goes_step_by_step_to_its_end),
        cmocka_unit_test(a_predicted_ladder_tries_its_neighbours_once_and_ends),
        cmocka_unit_test(a_tuned_kernel_is_where_it_goes_on),
        cmocka_unit_test(every_set_of_steps_composes_to_plain_source),
        cmocka_unit_test(parts_of_other_forms_declare_names_of_their_own),
        cmocka_unit_test(a_file_of_several_parts_describes_them_and_labels_their_launches),
        cmocka_unit_test(a_part_is_described_by_what_it_computes_reads_and_makes),
        cmocka_unit_test(what_parts_clear_is_cleared_before_the_first_launch_that_overlaps),
        cmocka_unit_test(
            what_the_tensor_cores_cut_off_is_made_up_for_where_cublas_is_more_accurate),
        cmocka_unit_test(a_step_that_failed_is_not_proposed_again_nor_what_needs_it),
        cmocka_unit_test(a_step_that_brought_nothing_comes_along_with_what_needs_it),
        cmocka_unit_test(independent_steps_go_on_from_the_best_kernel),
        cmocka_unit_test(a_kernel_found_before_is_where_it_begins),
        cmocka_unit_test(the_steps_of_a_kernel_come_with_it),
        cmocka_unit_test(repairs_are_declined_and_a_foreign_kernel_is_left_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
