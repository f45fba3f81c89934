/*
 * test_calls.c - calls through pointers, virtual functions, functions that call themselves: right
 * in lanes that take different ways, and a trap that says why where they cannot be followed.
 *
 * The PTX is checked in: ptx/calls.ptx is made by ptx.sh.
 */
#include "support.h"

enum { LANES = 32 };

static char *so;

/* `out` first, then one more parameter of `size` bytes. */
static struct simt_result run(const char *kernel, int32_t out[LANES], const void *more, size_t size,
                              struct arena *a)
{
    struct simt_config c = {.threads = 1, .check = SIMT_CHECK_FULL, .watchdog_ms = 1200000};
    struct error err = {0};
    struct bench_args x = {0};
    struct simt_module *mod;
    struct simt_result r;
    struct simt *dev;

    assert_true(simt_open(&c, &dev, &err));
    if (!simt_load(dev, so, &mod, &err))
        fail_msg("%s", err.text);
    simt_alloc_register(dev, out, LANES * sizeof *out, "out", SIMT_ALLOC_WRITTEN);
    put_arg(&x, &out, 8);
    if (size == 8)
        simt_alloc_register(dev, *(void *const *)more, LANES * sizeof *out, "which",
                            SIMT_ALLOC_READONLY | SIMT_ALLOC_WRITTEN);
    if (size)
        put_arg(&x, more, size);
    struct simt_launch l = {.kernel = kernel,
                            .grid = {1, 1, 1},
                            .block = {LANES, 1, 1},
                            .params = x.data,
                            .param_bytes = x.len};
    if (!simt_launch(dev, mod, &l, a, &r, &err))
        fail_msg("%s: %s", kernel, err.text);
    simt_close(dev);
    return r;
}

static void clean(const struct simt_result *r)
{
    if (r->outcome != SIMT_OK || r->finding_count)
        fail_msg("%s", r->finding_count ? r->findings[0].text : r->text);
}

static void trapped(const struct simt_result *r, const char *why)
{
    assert_int_not_equal(r->outcome, SIMT_OK);
    assert_int_equal(r->finding_count, 1);
    assert_int_equal(r->findings[0].kind, SIMT_TRAP);
    assert_non_null(strstr(r->findings[0].text, why));
    assert_true(r->findings[0].path_len > 0);
}

static void pointers_call_what_they_name(void **state)
{
    struct arena *a = arena_new();
    int32_t out[LANES], which[LANES], *p = which;
    (void)state;
    for (int i = 0; i < LANES; i++)
        which[i] = i / 3 % 2;
    struct simt_result r = run("pointers", out, &p, 8, a);
    clean(&r);
    for (int i = 0; i < LANES; i++)
        assert_int_equal(out[i], which[i] ? i * 7 : i + 7);
    which[5] = 2;
    r = run("pointers", out, &p, 8, a);
    trapped(&r, "no function");
    arena_free(a);
}

static int factorial(int n)
{
    return n < 2 ? 1 : n * factorial(n - 1) + (n & 1);
}

static int fibonacci(int n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

static void functions_call_themselves_so_deep(void **state)
{
    struct arena *a = arena_new();
    int32_t out[LANES];
    int depth = 12;
    (void)state;
    struct simt_result r = run("recursion", out, &depth, 4, a);
    clean(&r);
    for (int i = 0; i < LANES; i++)
        assert_int_equal(out[i], factorial(i == 31 ? depth : i % 9) + 1000 * fibonacci(i % 7));
    depth = 1000;
    r = run("recursion", out, &depth, 4, a);
    trapped(&r, "calls itself");
    arena_free(a);
}

static void virtual_functions_are_called(void **state)
{
    struct arena *a = arena_new();
    int32_t out[LANES];
    (void)state;
    struct simt_result r = run("shapes", out, NULL, 0, a);
    clean(&r);
    for (int i = 0; i < LANES; i++)
        assert_int_equal(out[i], i % 3 ? i * i + i : i * 3 - i);
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pointers_call_what_they_name),
        cmocka_unit_test(functions_call_themselves_so_deep),
        cmocka_unit_test(virtual_functions_are_called),
    };
    struct arena *a = arena_new();
    so = compile_file("calls.ptx", a);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    arena_free(a);
    return failed;
}
