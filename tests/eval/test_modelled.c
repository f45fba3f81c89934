/* test_modelled.c - better kernels get smaller modelled times; floors are floors. */
#include "base/fs.h"
#include "base/json.h"
#include "eval/devices.h"
#include "eval/modelled.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Counters of one launch over 1 MiB of f32 in and out, or of a 256^3 product. */
struct counts {
    double blocks, threads, smem, load_requests, load_sectors, store_requests, store_sectors,
        unique, shared_requests, shared_wavefronts, fma, integer, sfu, barriers, instructions;
};

#define POINTWISE_SCALAR                                                                           \
    {                                                                                              \
        .blocks = 1024, .threads = 256, .load_requests = 8192, .load_sectors = 32768,              \
        .store_requests = 8192, .store_sectors = 32768, .unique = 65536, .fma = 16384,             \
        .integer = 40000, .sfu = 16384, .instructions = 120000                                     \
    }
#define POINTWISE_VECTOR                                                                           \
    {                                                                                              \
        .blocks = 256, .threads = 256, .load_requests = 2048, .load_sectors = 32768,               \
        .store_requests = 2048, .store_sectors = 32768, .unique = 65536, .fma = 16384,             \
        .integer = 10000, .sfu = 16384, .instructions = 60000                                      \
    }
#define POINTWISE_STRIDED                                                                          \
    {                                                                                              \
        .blocks = 1024, .threads = 256, .load_requests = 8192, .load_sectors = 262144,             \
        .store_requests = 8192, .store_sectors = 262144, .unique = 65536, .fma = 16384,            \
        .integer = 40000, .sfu = 16384, .instructions = 120000                                     \
    }
#define THREE_PASSES                                                                               \
    {                                                                                              \
        .blocks = 256, .threads = 256, .load_requests = 24576, .load_sectors = 393216,             \
        .store_requests = 8192, .store_sectors = 131072, .unique = 262144, .fma = 200000,          \
        .integer = 400000, .sfu = 65536, .barriers = 5120, .instructions = 1650000                 \
    }
#define ROW_KEPT                                                                                   \
    {                                                                                              \
        .blocks = 256, .threads = 256, .load_requests = 8192, .load_sectors = 131072,              \
        .store_requests = 8192, .store_sectors = 131072, .unique = 262144, .fma = 200000,          \
        .integer = 300000, .sfu = 65536, .barriers = 5120, .instructions = 1480000                 \
    }
#define GEMM_NAIVE                                                                                 \
    {                                                                                              \
        .blocks = 256, .threads = 256, .load_requests = 1048576, .load_sectors = 2621440,          \
        .store_requests = 2048, .store_sectors = 8192, .unique = 24576, .fma = 524288,             \
        .integer = 524288, .instructions = 2700000                                                 \
    }
#define GEMM_SHARED                                                                                \
    {                                                                                              \
        .blocks = 256, .threads = 256, .smem = 2048, .load_requests = 65536,                       \
        .load_sectors = 262144, .store_requests = 2048, .store_sectors = 8192, .unique = 24576,    \
        .shared_requests = 1114112, .shared_wavefronts = 1114112, .fma = 524288,                   \
        .integer = 200000, .barriers = 65536, .instructions = 2000000                              \
    }
#define GEMM_TILED                                                                                 \
    {                                                                                              \
        .blocks = 16, .threads = 256, .smem = 16384, .load_requests = 4096, .load_sectors = 65536, \
        .store_requests = 512, .store_sectors = 8192, .unique = 24576, .shared_requests = 140000,  \
        .shared_wavefronts = 140000, .fma = 524288, .integer = 40000, .barriers = 4096,            \
        .instructions = 760000                                                                     \
    }
#define GEMM_CONFLICTS                                                                             \
    {                                                                                              \
        .blocks = 16, .threads = 256, .smem = 16384, .load_requests = 4096, .load_sectors = 65536, \
        .store_requests = 512, .store_sectors = 8192, .unique = 24576, .shared_requests = 140000,  \
        .shared_wavefronts = 1120000, .fma = 524288, .integer = 40000, .barriers = 4096,           \
        .instructions = 760000                                                                     \
    }

static json_t *as_json(const struct counts *c)
{
    json_t *v = json_object(), *classes = json_object();

#define PUT(key, member)   json_object_set_new(v, key, json_real(c->member))
#define CLASS(key, member) json_object_set_new(classes, key, json_real(c->member))
    PUT("blocks", blocks);
    PUT("threads_block", threads);
    PUT("smem_bytes", smem);
    PUT("global_load_requests", load_requests);
    PUT("global_load_sectors", load_sectors);
    PUT("global_store_requests", store_requests);
    PUT("global_store_sectors", store_sectors);
    PUT("unique_sectors", unique);
    PUT("shared_requests", shared_requests);
    PUT("shared_wavefronts", shared_wavefronts);
    CLASS("fp32_fma", fma);
    CLASS("int", integer);
    CLASS("sfu", sfu);
    PUT("barriers", barriers);
    PUT("warp_instructions", instructions);
#undef PUT
#undef CLASS
    json_object_set_new(v, "warp_instructions_by_class", classes);
    json_object_set_new(v, "kernel", json_string("k"));
    return v;
}

static struct modelled model(const struct counts *c, int launches, double share)
{
    json_t *list = json_array();
    struct error err = {0};
    struct modelled m;

    for (int i = 0; i < launches; i++)
        json_array_append_new(list, as_json(c));
    assert_true(modelled_time(
        &(struct modelled_input){.gpu = gpu_find("H200"), .counters = list, .share = share}, &m,
        &err));
    json_decref(list);
    return m;
}

static const struct order_case {
    const char *name;
    struct counts better, worse;
    double gain; /* at least this much */
} order_cases[] = {
    {"16-byte accesses beat 4-byte ones", POINTWISE_VECTOR, POINTWISE_SCALAR, 1.03},
    {"coalesced beats strided", POINTWISE_SCALAR, POINTWISE_STRIDED, 1.5},
    {"reading a row once beats three passes that outgrow L2", ROW_KEPT, THREE_PASSES, 1.3},
    {"shared memory beats re-reading", GEMM_SHARED, GEMM_NAIVE, 1.3},
    {"register tiles beat plain shared memory", GEMM_TILED, GEMM_SHARED, 1.5},
    {"no bank conflicts beats eight-way ones", GEMM_TILED, GEMM_CONFLICTS, 1.5},
};

static void the_better_kernel_has_the_smaller_time(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(order_cases); i++) {
        const struct order_case *c = &order_cases[i];
        struct modelled better = model(&c->better, 1, 1.0 / 256);
        struct modelled worse = model(&c->worse, 1, 1.0 / 256);

        if (worse.time_us < c->gain * better.time_us)
            fail_msg("%s: %.3f us (%s) against %.3f us (%s)", c->name, better.time_us, better.bound,
                     worse.time_us, worse.bound);
        print_message("%-45s %8.3f us (%s)  %8.3f us (%s)\n", c->name, better.time_us, better.bound,
                      worse.time_us, worse.bound);
        json_decref(better.parts);
        json_decref(worse.parts);
    }
}

static void a_perfect_copy_is_near_the_floor_and_never_below(void **state)
{
    struct counts c = POINTWISE_VECTOR;
    struct modelled m = model(&c, 1, 1.0 / 256);
    struct task task = {
        .class = CLASS_POINTWISE, .in_count = 1, .out_count = 1, .bytes_min = 2097152};
    struct floor f;

    (void)state;
    task.in[0] = task.out[0] = (struct tensor_info){.dtype = "f32", .dims = 1, .shape = {262144}};
    f = peaks_floor(gpu_find("H200"), gpu_find("H200"), &task);
    assert_true(m.time_us >= f.us);
    assert_true(m.time_us < 1.6 * f.us);
    assert_string_equal(m.bound, "dram");
    json_decref(m.parts);
}

static void every_launch_costs(void **state)
{
    struct counts c = POINTWISE_VECTOR;
    struct modelled one = model(&c, 1, 1), two = model(&c, 2, 1);
    const json_t *launch = json_array_get(json_object_get(one.parts, "launches"), 0);

    (void)state;
    assert_true(one.time_us > json_double_or(launch, "time_us", 0) + 1);
    assert_true(fabs(two.time_us - 2 * one.time_us) < 1e-6);
    json_decref(one.parts);
    json_decref(two.parts);
}

/* A launch of 8192 blocks of 256 threads that reads 64 MiB, with `more` in its counters. */
static double time_with(const char *more, char *bound)
{
    static const char base[] =
        "[{\"blocks\": 8192, \"threads_block\": 256, \"global_load_requests\": 131072,"
        " \"global_load_sectors\": 2097152, \"global_load_lines\": 524288,"
        " \"block_load_sectors\": 2097152, \"far_load_sectors\": 2097152,"
        " \"block_load_chunks\": 1048576, \"warp_instructions\": 4000000, %s}]";
    char text[2048];
    struct error err = {0};
    struct modelled m = {0};

    snprintf(text, sizeof text, base, more);
    json_t *list = json_loads(text, 0, NULL);
    assert_non_null(list);
    assert_true(modelled_time(&(struct modelled_input){.gpu = gpu_find("H200"), .counters = list},
                              &m, &err));
    snprintf(bound, 16, "%s", m.bound);
    json_decref(m.parts);
    json_decref(list);
    return m.time_us;
}

static void atomics_queue_up_at_one_line(void **state)
{
    static const char hot[] = "\"global_atomics\": 2097152, \"global_atomic_requests\": 65536,"
                              " \"global_atomic_lines\": 65536, \"atomic_span\": 4,"
                              " \"global_atomic_conflicts\": 2031616";
    static const char spread[] = "\"global_atomics\": 2097152, \"global_atomic_requests\": 65536,"
                                 " \"global_atomic_lines\": 65536, \"atomic_span\": 8388608";
    char bound[16];

    (void)state;
    assert_true(time_with(spread, bound) < 1.5 * time_with("\"atomics\": 0", bound));
    assert_true(time_with(hot, bound) > 10 * time_with(spread, bound));
    time_with(hot, bound);
    assert_string_equal(bound, "atomics");
}

/* 1.5 M of the sectors are of a buffer that is read again and again: 32 KiB stay in L1, 8 MiB in
 * L2, of 256 MiB most comes from DRAM each time. */
static void what_comes_back_is_kept_while_it_fits(void **state)
{
    char bound[16];
    double l1 = time_with("\"buffers\": [[33554432, 524288], [32768, 1572864]]", bound),
           l2 = time_with("\"buffers\": [[33554432, 524288], [8388608, 1572864]]", bound),
           dram = time_with("\"buffers\": [[33554432, 524288], [268435456, 1572864]]", bound);

    (void)state;
    assert_true(l1 < l2);
    assert_true(l2 < dram);
}

static void a_grid_that_leaves_the_chip_empty_is_slower(void **state)
{
    struct counts many = POINTWISE_VECTOR, few = POINTWISE_VECTOR;
    struct modelled full, empty;

    (void)state;
    few.blocks = 1;
    full = model(&many, 1, 1);
    empty = model(&few, 1, 1);
    assert_true(empty.time_us > 3 * full.time_us);
    json_decref(full.parts);
    json_decref(empty.parts);
}

static void nothing_counted_is_an_error_and_not_a_time(void **state)
{
    struct error err = {0};
    struct modelled m;

    (void)state;
    assert_false(modelled_time(&(struct modelled_input){.gpu = gpu_find("H200")}, &m, &err));
    assert_int_equal(err.kind, ERROR_MACHINE);
}

static void garbage_in_counters_never_gives_a_nan(void **state)
{
    json_t *list =
        json_pack("[{s:f, s:s, s:s}]", "blocks", -5.0, "global_load_sectors", "nan", "fma", "inf");
    struct error err = {0};
    struct modelled m;

    (void)state;
    assert_true(modelled_time(&(struct modelled_input){.gpu = gpu_find("A100"), .counters = list},
                              &m, &err));
    assert_true(m.time_us >= 0 && m.time_us < 1e9);
    json_decref(m.parts);
    json_decref(list);
}

/* ---- the table ---------------------------------------------------------- */

static void gpus_are_found_by_any_of_their_names(void **state)
{
    static const struct {
        const char *asked, *found;
    } cases[] = {{"H200", "H200"},
                 {"NVIDIA H200", "H200"},
                 {"h100", "H100"},
                 {"NVIDIA H100 80GB HBM3", "H100"},
                 {"NVIDIA A100-SXM4-80GB", "A100"},
                 {"NVIDIA GeForce RTX 4090", "RTX 4090"},
                 {"rtx4090", "RTX 4090"},
                 {"NVIDIA B200", "B200"},
                 {"NVIDIA GeForce RTX 5090", "RTX 5090"},
                 {"rtx5090", "RTX 5090"},
                 {"Voodoo 2", NULL},
                 {"", NULL}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct gpu *g = gpu_find(cases[i].asked);

        if (cases[i].found ? !g || strcmp(g->name, cases[i].found) != 0 : g != NULL)
            fail_msg("%s: got %s", cases[i].asked, g ? g->name : "nothing");
    }
}

static void cards_have_limits_a_source_and_run_their_own_code(void **state)
{
    static const struct {
        const char *card, *arch;
        bool runs;
        int smem_kib, cluster;
    } cases[] = {{"a100", "80", true, 163, 1},     {"a100", "86", false, 0, 0},
                 {"rtx4090", "89", true, 99, 1},   {"rtx4090", "90a", false, 0, 0},
                 {"h100", "90a", true, 227, 16},   {"h200", "90a", true, 227, 16},
                 {"h200", "100a", false, 0, 0},    {"b200", "100a", true, 227, 16},
                 {"b200", "90a", false, 0, 0},     {"b200", "80", true, 227, 16},
                 {"rtx5090", "120a", true, 99, 8}, {"rtx5090", "89", true, 99, 8},
                 {"rtx5090", "100a", false, 0, 0}, {"voodoo2", "80", false, 0, 0}};
    struct arena *a = arena_new();
    size_t count;
    const struct gpu *list = gpu_list(&count);

    (void)state;
    for (size_t i = 0; i < count; i++)
        assert_true(strlen(list[i].source) > 10);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct error err = {0};
        struct device d = {0};
        bool ok = devices_find("simt", cases[i].card, cases[i].arch, a, &d, &err);

        if (ok != cases[i].runs || (ok && (d.smem_block_bytes != cases[i].smem_kib * 1024 ||
                                           d.cluster_blocks != cases[i].cluster)))
            fail_msg("%s for sm_%s: %s", cases[i].card, cases[i].arch, ok ? "limits" : err.text);
        if (!ok)
            assert_true(strlen(err.hint) > 10);
    }
    arena_free(a);
}

static void a_time_is_called_unvalidated_unless_the_gpu_was_measured(void **state)
{
    size_t count;
    const struct gpu *list = gpu_list(&count);
    struct measurement m = {.parts = json_pack("{s:s}", "gpu", "B200")};

    (void)state;
    for (size_t i = 0; i < count; i++)
        assert_string_equal(modelled_words(list[i].name), strcmp(list[i].name, "H200") == 0
                                                              ? "modelled"
                                                              : "modelled, unvalidated");
    assert_string_equal(measurement_words(&m), "modelled, unvalidated");
    json_decref(m.parts);
}

static const struct floor_case {
    const char *name;
    enum kernel_class class;
    const char *dtype;
    double in, out, bytes, flops; /* in and out: elements */
    double us, strict_us;
    const char *bound;
} floor_cases[] = {
    /* 2 x 2.1 GB at the mixed peak; strict: 63 MB may stay in L2, at the best peak, 7 % margin */
    {"copy", CLASS_POINTWISE, "f32", 536870912, 536870912, 4294967296, 1e9, 1008.2, 842.9,
     "memory"},
    {"read only", CLASS_REDUCTION, "f32", 536870912, 1, 2147483652, 1e9, 477.2, 427.7, "memory"},
    {"write only", CLASS_POINTWISE, "f32", 1, 536870912, 2147483652, 1, 459.8, 415.1, "memory"},
    /* 2 * 4096^3 through three fp16 products */
    {"fp32 product", CLASS_GEMM, "f32", 33554432, 16777216, 201326592, 137438953472, 416.9, 387.7,
     "tensor (3 x f16)"},
    {"fp16 product", CLASS_GEMM, "f16", 33554432, 16777216, 100663296, 137438953472, 139.0, 129.2,
     "tensor (f16)"},
};

static void the_floor_is_the_larger_of_bytes_and_flops(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(floor_cases); i++) {
        const struct floor_case *c = &floor_cases[i];
        struct task task = {.class = c->class,
                            .in_count = 1,
                            .out_count = 1,
                            .bytes_min = c->bytes,
                            .flops_min = c->flops};
        struct floor f;

        task.in[0] = (struct tensor_info){.dtype = c->dtype, .dims = 1, .shape = {(int64_t)c->in}};
        task.out[0] =
            (struct tensor_info){.dtype = c->dtype, .dims = 1, .shape = {(int64_t)c->out}};
        f = peaks_floor(gpu_find("H200"), gpu_find("H200"), &task);
        if (f.us < 0.999 * c->us || f.us > 1.001 * c->us || strcmp(f.bound, c->bound) != 0 ||
            f.strict_us < 0.999 * c->strict_us || f.strict_us > 1.001 * c->strict_us)
            fail_msg("%s: floor %.1f us by %s, strict %.1f", c->name, f.us, f.bound, f.strict_us);
    }
}

static void measured_peaks_are_kept_used_and_doubted(void **state)
{
    struct arena *a = arena_new();
    struct error err = {0};
    struct gpu g, best;
    json_t *figures, *report;
    struct device simt = {.kind = DEVICE_SIMT, .name = "simt", .models = "H200"};
    char *dir;

    (void)state;
    assert_true(dir_temp("peaks", a, &dir, &err));
    setenv("CUTEGEN_TOOLS", dir, 1);
    assert_true(peaks_find("NVIDIA H200", a, &g, &best));
    assert_true(fabs(g.read_gbps - 4500) < 1); /* the table's */
    assert_false(peaks_find("NVIDIA Unheard-of 9", a, &g, &best));

    figures =
        json_pack("{s:s, s:f, s:f, s:f, s:f, s:f}", "device", "NVIDIA H200", "read_gbps", 4000.0,
                  "write_gbps", 4800.0, "mixed_gbps", 4.0e5, "fp32_tflops", 50.0, "launch_us", 1.5);
    assert_true(peaks_save("NVIDIA H200", figures, a, &err));
    assert_non_null(json_object_get(json_object_get(figures, "implausible"), "mixed_gbps"));
    assert_true(peaks_find("NVIDIA H200", a, &g, &best));
    assert_true(fabs(g.read_gbps - 4000) < 1);    /* measured: the roofline */
    assert_true(fabs(best.read_gbps - 4500) < 1); /* a slow day makes nothing possible impossible */
    assert_true(fabs(best.write_gbps - 4800) < 1);
    assert_true(fabs(g.mixed_gbps - 4260) < 1); /* what cannot be is not used */
    json_decref(figures);

    figures = json_pack("{s:f, s:f, s:f, s:f, s:f, s:f}", "read_gbps", 900.0, "write_gbps", 900.0,
                        "mixed_gbps", 850.0, "fp32_tflops", 40.0, "fp64_tflops", 1.0,
                        "tensor_f16_tflops", 150.0);
    assert_true(peaks_save("NVIDIA Unheard-of 9", figures, a, &err));
    assert_true(
        peaks_find("NVIDIA Unheard-of 9", a, &g, &best)); /* a GPU in no table has a floor now */
    json_decref(figures);

    report = peaks_report(&simt, a);
    assert_string_equal(json_string_value(json_object_get(report, "source")), "table");
    json_decref(report);
    dir_remove(dir, &err);
    unsetenv("CUTEGEN_TOOLS");
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(measured_peaks_are_kept_used_and_doubted),
        cmocka_unit_test(the_better_kernel_has_the_smaller_time),
        cmocka_unit_test(a_perfect_copy_is_near_the_floor_and_never_below),
        cmocka_unit_test(every_launch_costs),
        cmocka_unit_test(atomics_queue_up_at_one_line),
        cmocka_unit_test(what_comes_back_is_kept_while_it_fits),
        cmocka_unit_test(a_grid_that_leaves_the_chip_empty_is_slower),
        cmocka_unit_test(nothing_counted_is_an_error_and_not_a_time),
        cmocka_unit_test(garbage_in_counters_never_gives_a_nan),
        cmocka_unit_test(gpus_are_found_by_any_of_their_names),
        cmocka_unit_test(cards_have_limits_a_source_and_run_their_own_code),
        cmocka_unit_test(a_time_is_called_unvalidated_unless_the_gpu_was_measured),
        cmocka_unit_test(the_floor_is_the_larger_of_bytes_and_flops),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
