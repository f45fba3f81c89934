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

/* A function and its kernel; %s: the label that the call names as its prototype. */
static const char named[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".func (.param .b32 r) twice(.param .b32 a)\n"
    "{ .reg .b32 %%r<3>; ld.param.u32 %%r1, [a]; add.s32 %%r2, %%r1, %%r1;"
    " st.param.b32 [r+0], %%r2; ret; }\n"
    ".func (.param .b32 r) thrice(.param .b32 a)\n"
    "{ .reg .b32 %%r<3>; ld.param.u32 %%r1, [a]; mul.lo.s32 %%r2, %%r1, 3;"
    " st.param.b32 [r+0], %%r2; ret; }\n"
    ".global .align 8 .u64 callback = twice;\n"
    ".visible .entry named(.param .u64 out)\n"
    "{ .reg .pred %%p<2>; .reg .b32 %%r<4>; .reg .b64 %%rd<7>;\n"
    "ld.param.u64 %%rd1, [out]; mov.u32 %%r1, %%tid.x; mul.wide.u32 %%rd2, %%r1, 4;\n"
    "add.s64 %%rd3, %%rd1, %%rd2; ld.global.u64 %%rd5, [callback];\n"
    "{ and.b32 %%r2, %%r1, 1; } // callseq 0\n"
    "mov.u64 %%rd4, thrice; setp.eq.u32 %%p1, %%r2, 0; selp.b64 %%rd6, %%rd5, %%rd4, %%p1;\n"
    "{ .param .b32 param0; st.param.b32 [param0+0], %%r1; .param .b32 retval0;\n"
    "proto : .callprototype (.param .b32 _) _ (.param .b32 _);\n"
    "call (retval0), %%rd6, (param0), %s; ld.param.b32 %%r3, [retval0+0]; }\n"
    "st.global.u32 [%%rd3], %%r3; ret; }\n";

static struct text named_text(const char *prototype, struct arena *a)
{
    char *text = arena_printf(a, named, prototype);
    return (struct text){text, strlen(text)};
}

/* A variable's name, or a comment before, that begins as `call` does is no call. */
static void an_address_is_found_whatever_stands_before_it(void **state)
{
    struct arena *a = arena_new();
    char *others = so;
    int32_t out[LANES];
    (void)state;
    so = compile_text(named_text("proto", a), a);
    struct simt_result r = run("named", out, NULL, 0, a);
    so = others;
    clean(&r);
    for (int i = 0; i < LANES; i++)
        assert_int_equal(out[i], i % 2 ? 3 * i : 2 * i);
    arena_free(a);
}

static void a_prototype_must_be_there(void **state)
{
    struct arena *a = arena_new();
    struct translate_options opt = {.cache_dir = cache_dir(a)};
    const char *names[] = {"named"};
    struct simt_built built;
    struct error err = {0};
    (void)state;
    assert_false(simt_compile(named_text("none", a), names, 1, &opt, a, &built, &err));
    assert_non_null(strstr(err.text, "names no prototype"));
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pointers_call_what_they_name),
        cmocka_unit_test(functions_call_themselves_so_deep),
        cmocka_unit_test(virtual_functions_are_called),
        cmocka_unit_test(an_address_is_found_whatever_stands_before_it),
        cmocka_unit_test(a_prototype_must_be_there),
    };
    struct arena *a = arena_new();
    so = compile_file("calls.ptx", a);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    arena_free(a);
    return failed;
}
