/*
 * test_ncu.c - ncu's own outputs, from an H200 (tests/eval/ncu), become the right figures in the
 * right units.
 *
 * What is expected was read off ncu's details page by hand; where it can be
 * known from the task alone (bytes that must move, threads, sectors of a
 * coalesced access) it is that.
 */
#include "eval/ncu.h"

#include "base/fs.h"
#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct text page(const char *name, const char *kind, struct arena *a)
{
    const char *dir = getenv("NCU_PAGES");
    struct error err = {0};
    struct text t;

    if (!file_read(arena_printf(a, "%s/%s.%s.csv", dir ? dir : "tests/eval/ncu", name, kind),
                   1 << 20, a, &t, &err))
        fail_msg("%s", err.text);
    return t;
}

static const struct figure {
    const char *kernel, *key;
    double want, within; /* relative */
} figures[] = {
    /* 4096 x 131072 floats read three times and written once; hits in L2 take some of it off. */
    {"softmax", "registers", 28, 0.5},
    {"softmax", "load_sectors_per_request", 4, 0},
    {"softmax", "dram_write_bytes", 2147483648.0, 0.01},
    {"softmax", "dram_pct", 72.84, 0.01},
    {"softmax", "occupancy_theoretical_pct", 100, 0},
    {"matmul", "time_us", 4260.672, 0},
    {"matmul", "registers", 125, 0},
    {"matmul", "smem_static", 32768, 0},
    {"matmul", "smem_dynamic", 0, 0},
    {"matmul", "waves", 3.88, 0},
    {"matmul", "load_sectors_per_request", 16, 0},
    {"matmul", "store_sectors_per_request", 16, 0},
    {"matmul", "shared_store_conflicts", 50397942, 0},
    {"matmul", "shared_wavefronts_over_ideal", 1.1154, 0.001},
    {"matmul", "dram_read_bytes", 611399424, 0},
    {"matmul", "dram_gbps", 158.335, 0.001},
    {"matmul", "occupancy_pct", 23.62, 0},
    {"matmul", "occupancy_theoretical_pct", 25, 0},
    {"matmul", "ipc", 3.32, 0},
    {"matmul", "compute_pct", 80.54, 0},
    {"matmul", "fma_pct", 65.84, 0},
    /* 2 * 4096^3 operations in 4.26 ms */
    {"matmul", "tflops_fp32", 32.26, 0.01},
    {"swish", "load_sectors_per_request", 16, 0},
    {"swish", "dram_read_bytes", 2147483648.0, 0.01},
    {"swish", "dram_write_bytes", 2147483648.0, 0.02},
    {"swish", "smem_static", 0, 0},
};

static void figures_are_those_of_ncu_in_base_units(void **state)
{
    struct arena *a = arena_new();

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(figures); i++) {
        const struct figure *f = &figures[i];
        json_t *kernels = ncu_summary(page(f->kernel, "raw", a), page(f->kernel, "details", a));
        const json_t *v = json_object_get(json_array_get(kernels, 0), f->key);

        assert_int_equal(json_array_size(kernels), 1);
        if (!json_is_number(v) ||
            fabs(json_number_value(v) - f->want) > f->within * fabs(f->want) + 1e-9)
            fail_msg("%s of %s: %g, wanted %g", f->key, f->kernel, json_number_value(v), f->want);
        json_decref(kernels);
    }
    arena_free(a);
}

static void names_shapes_limits_and_advice_are_there(void **state)
{
    struct arena *a = arena_new();
    json_t *kernels = ncu_summary(page("matmul", "raw", a), page("matmul", "details", a)), *o;
    double sum = 0;
    size_t i;
    const char *key;
    json_t *v;

    (void)state;
    o = json_array_get(kernels, 0);
    assert_string_equal(json_string_or(o, "kernel", ""), "matmul_kernel<128, 128, 16>");
    assert_int_equal(json_integer_value(json_array_get(json_object_get(o, "block"), 0)), 256);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(o, "grid"), 1)), 32);
    assert_string_equal(json_string_or(o, "occupancy_limit", ""), "registers");
    json_object_foreach(json_object_get(o, "stalls"), key, v) sum += json_real_value(v);
    assert_true(fabs(sum - 1) < 1e-6);
    assert_in_range(json_array_size(json_object_get(o, "advice")), 1, 3);
    json_array_foreach(json_object_get(o, "advice"), i, v)
        assert_true(strlen(json_string_or(v, "text", "")) > 20);
    json_decref(kernels);
    arena_free(a);
}

static void the_text_says_what_a_person_would_look_for(void **state)
{
    static const char *const wanted[] = {
        "kernel matmul_kernel<128, 128, 16>  grid (32, 32, 1)  block (256, 1, 1)",
        "125 registers per thread, 32.8 kB of shared memory per block, 3.88 waves",
        "compute 81 %",
        "FMA pipe 66 %",
        "611 MB read",
        "24 % achieved of 25 % possible, limited by registers",
        "16.0 sectors per load, 16.0 per store",
        "1.12 wavefronts for each that is needed",
        "warps wait for",
        "ncu's advice",
    };
    struct arena *a = arena_new();
    json_t *kernels = ncu_summary(page("matmul", "raw", a), page("matmul", "details", a));
    struct buf b = buf_init(1 << 16);

    (void)state;
    ncu_text(kernels, &b);
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
        if (!strstr(b.data, wanted[i]))
            fail_msg("missing: %s\n%s", wanted[i], b.data);
    assert_null(strstr(b.data, "nan"));
    buf_release(&b);
    json_decref(kernels);
    arena_free(a);
}

static void what_is_no_page_gives_no_kernel(void **state)
{
    static const char *const texts[] = {
        "",
        "\n\n",
        "==PROF== Connected to process 7\n==ERROR== ERR_NVGPUCTRPERM\n",
        "\"",
        "\"a",
        "\"ID\",\"Kernel Name\"\n",
        "\"ID\"\n\"\"\n",
        "\"ID\",\"x\"\n\"\",\"\"\n\"0\"\n",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        json_t *kernels = ncu_summary(text_of(texts[i]), text_of(texts[ARRAY_LEN(texts) - 1 - i]));

        assert_in_range(json_array_size(kernels), 0, 1);
        json_decref(kernels);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_are_those_of_ncu_in_base_units),
        cmocka_unit_test(names_shapes_limits_and_advice_are_there),
        cmocka_unit_test(the_text_says_what_a_person_would_look_for),
        cmocka_unit_test(what_is_no_page_gives_no_kernel),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
