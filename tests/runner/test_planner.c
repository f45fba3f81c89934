/*
 * test_planner.c - the interpreter of plans: what it computes, what it refuses, and that no text
 * and no request can lead it out of its memory.
 *
 * TEST_ROUNDS sets how many damaged plans are tried; sanitizers see what they do.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/fs.h"
#include "base/json.h"
#include "base/kernel_name.h"
#include "runner/plan/planner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char request_text[] =
    "{\"inputs\": [{\"name\": \"x\", \"dtype\": \"f32\", \"shape\": [16, 128], \"strides\": [128, "
    "1]}], \"outputs\": [{\"name\": \"y\", \"dtype\": \"f32\", \"shape\": [16, 128], \"strides\": "
    "[128, 1]}, {\"name\": \"sum\", \"dtype\": \"f32\", \"shape\": [16], \"strides\": [1]}], "
    "\"scalars\": [{\"name\": \"scale\", \"type\": \"float\", \"value\": 1.5}], \"device\": "
    "{\"arch\": 90, \"sm_count\": 132, \"smem_block_bytes\": 232448}}";

/* The answer as text; *returned is what the plan gave back. */
static char *run(struct arena *a, struct text ptx, uint64_t max_steps, int *returned)
{
    struct planner *p = arena_alloc(a, sizeof *p);
    struct error err = {0};
    json_t *request = NULL, *answer;
    char *line;
    p->arena = a;
    p->max_steps = max_steps;
    if (!json_parse(text_of(request_text), "request", &request, &err) ||
        !planner_load(p, request, &err))
        fail_msg("%s", err.text);
    *returned = planner_run(p, ptx);
    answer = planner_answer(p, *returned);
    assert_non_null(answer);
    line = json_line(answer, a);
    json_decref(answer);
    json_decref(request);
    planner_release(p);
    return line;
}

static char *module(struct arena *a, const char *before, const char *body)
{
    return arena_printf(
        a,
        ".version 9.0\n.target sm_80\n.address_size 64\n.file 1 \"candidate.cu\"\n"
        ".extern .func cutegen_plan_return (.param .b32 p);\n%s\n"
        ".visible .entry cutegen_plan_abi_2(.param .u64 call)\n{\n"
        ".local .align 8 .b8 depot[64];\n"
        ".reg .pred %%p<8>;\n.reg .b16 %%rs<8>;\n.reg .b32 %%r<16>;\n.reg .b64 %%rd<16>;\n"
        ".reg .f32 %%f<8>;\n.reg .f64 %%fd<8>;\n.loc 1 7 0\n%s\n"
        "{ .param .b32 param0; st.param.b32 [param0+0], %%r0; call.uni cutegen_plan_return, "
        "(param0); }\nret;\n}\n",
        before, body);
}

/* ---- arithmetic: %r0 at the end ------------------------------------------------------ */

static const struct value_case {
    const char *body;
    uint32_t want;
} values[] = {
    {"mov.u32 %r0, 7;", 7},
    {"mov.u32 %r1, 7; sub.s32 %r0, %r1, 9;", 0xfffffffe},
    {"mov.u32 %r1, -7; div.s32 %r0, %r1, 2;", 0xfffffffd},
    {"mov.u32 %r1, -7; rem.s32 %r0, %r1, 2;", 0xffffffff},
    {"mov.u32 %r1, -7; div.u32 %r0, %r1, 2;", 0x7ffffffc},
    {"mov.u32 %r1, 0x80000000; div.s32 %r0, %r1, -1;", 0x80000000},
    {"mov.u64 %rd1, 0x8000000000000000; rem.s64 %rd2, %rd1, -1; cvt.u32.u64 %r0, %rd2;", 0},
    {"mov.u32 %r1, 0x10000; mul.hi.u32 %r0, %r1, 0x30000;", 3},
    {"mov.u32 %r1, -2; mul.wide.s32 %rd1, %r1, 3; shr.u64 %rd2, %rd1, 32; cvt.u32.u64 %r0, %rd2;",
     0xffffffff},
    {"mov.u64 %rd1, -1; mul.hi.u64 %rd2, %rd1, 5; cvt.u32.u64 %r0, %rd2;", 4},
    {"mov.u64 %rd1, -1; mul.hi.s64 %rd2, %rd1, 5; cvt.u32.u64 %r0, %rd2;", 0xffffffff},
    {"mov.u32 %r1, 3; mad.lo.s32 %r0, %r1, 5, -1;", 14},
    {"mov.u32 %r1, 1; shl.b32 %r0, %r1, 33;", 0},
    {"mov.u32 %r1, -8; shr.s32 %r0, %r1, 40;", 0xffffffff},
    {"mov.u32 %r1, -8; shr.u32 %r0, %r1, 1;", 0x7ffffffc},
    {"mov.u32 %r1, 5; min.s32 %r0, %r1, -3;", 0xfffffffd},
    {"mov.u32 %r1, 5; min.u32 %r0, %r1, -3;", 5},
    {"mov.u32 %r1, -5; abs.s32 %r0, %r1;", 5},
    {"mov.u32 %r1, 0xf0; not.b32 %r2, %r1; and.b32 %r0, %r2, 0xff;", 0x0f},
    {"mov.u32 %r1, 0x00f00000; clz.b32 %r2, %r1; popc.b32 %r3, %r1; shl.b32 %r4, %r2, 8; "
     "or.b32 %r0, %r4, %r3;",
     0x804},
    {"mov.u32 %r1, 0x44332211; mov.u32 %r2, 0x88776655; prmt.b32 %r0, %r1, %r2, 0x7a40;",
     0x88005511},
    {"mov.u16 %rs1, 0x1ff; cvt.s32.s8 %r0, %rs1;", 0xffffffff},
    {"mov.u16 %rs1, 0x1ff; cvt.u32.u8 %r0, %rs1;", 0xff},
    {"setp.lt.s32 %p1, -1, 1; selp.b32 %r0, 10, 20, %p1;", 10},
    {"setp.lt.u32 %p1, -1, 1; selp.b32 %r0, 10, 20, %p1;", 20},
    {"setp.ne.s32 %p1, 1, 1; not.pred %p2, %p1; xor.pred %p3, %p2, %p1; selp.b32 %r0, 1, 2, %p3;",
     1},
    {"mov.u32 %r0, 1; setp.eq.s32 %p1, 1, 1; @!%p1 mov.u32 %r0, 2;", 1},
    {"mov.f64 %fd1, 0d7FF8000000000000; setp.neu.f64 %p1, %fd1, %fd1; selp.b32 %r0, 1, 2, %p1;", 1},
    {"mov.f64 %fd1, 0d7FF8000000000000; setp.ne.f64 %p1, %fd1, %fd1; selp.b32 %r0, 1, 2, %p1;", 2},
    {"mov.f64 %fd1, 0d7FF8000000000000; cvt.rzi.s32.f64 %r0, %fd1;", 0},
    {"mov.f64 %fd1, 0d7FE0000000000000; cvt.rzi.s32.f64 %r0, %fd1;", 0x7fffffff},
    {"mov.f64 %fd1, 0dC004000000000000; cvt.rzi.s32.f64 %r0, %fd1;", 0xfffffffe},
    {"mov.f64 %fd1, 0dC004000000000000; cvt.rmi.s32.f64 %r0, %fd1;", 0xfffffffd},
    {"mov.f64 %fd1, 0dC004000000000000; cvt.rpi.f64.f64 %fd2, %fd1; cvt.rzi.s32.f64 %r0, %fd2;",
     0xfffffffe},
    {"mov.f64 %fd1, 0d4004000000000000; cvt.rni.s32.f64 %r0, %fd1;", 2},
    {"mov.f64 %fd1, 0dBFF0000000000000; cvt.rzi.u32.f64 %r0, %fd1;", 0},
    {"mov.u64 %rd1, -1; cvt.rn.f32.u64 %f1, %rd1; mov.b32 %r0, %f1;", 0x5f800000},
    {"mov.u64 %rd1, -1; cvt.rn.f32.s64 %f1, %rd1; mov.b32 %r0, %f1;", 0xbf800000},
    {"mov.f32 %f1, 0f3F800000; div.rn.f32 %f2, %f1, 0f40400000; mov.b32 %r0, %f2;", 0x3eaaaaab},
    {"mov.f64 %fd1, 0d4000000000000000; sqrt.rn.f64 %fd2, %fd1; cvt.rn.f32.f64 %f1, %fd2; "
     "mov.b32 %r0, %f1;",
     0x3fb504f3},
    {"mov.u64 %rd1, depot; cvta.local.u64 %rd2, %rd1; st.u32 [%rd2+60], 9; ld.u16 %r0, [%rd2+60];",
     9},
    {"mov.u64 %rd1, depot; st.v2.u32 [%rd1+8], {3, 4}; ld.v2.u32 {%r1, %r2}, [%rd1+8]; "
     "shl.b32 %r3, %r1, 4; or.b32 %r0, %r3, %r2;",
     0x34},
    {"ld.param.u64 %rd1, [call]; ld.u32 %r0, [%rd1+4];", 1},
    {"mov.u32 %r1, 2; t: .branchtargets a, b, c; brx.idx %r1, t; a: mov.u32 %r0, 1; bra.uni e; "
     "b: mov.u32 %r0, 2; bra.uni e; c: mov.u32 %r0, 3; e:",
     3},
    {"mov.u32 %r0, 0; l: add.s32 %r0, %r0, 3; setp.lt.s32 %p1, %r0, 30; @%p1 bra l;", 30},
};

static void test_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        struct arena *a = arena_new();
        int got;
        char *answer = run(a, text_of(module(a, "", values[i].body)), 10000, &got);
        bool ended = strstr(answer, "the plan returned") || strstr(answer, "launched nothing");
        if ((uint32_t)got != values[i].want || !ended)
            fail_msg("%s: 0x%x in place of 0x%x: %s", values[i].body, (unsigned)got, values[i].want,
                     answer);
        arena_free(a);
    }
}

/* ---- what is refused --------------------------------------------------------------------- */

static const struct refusal {
    const char *before, *body, *says;
} refusals[] = {
    {"", "ld.u32 %r0, [%rd9];", "reads 4 bytes at 0x0, a null pointer"},
    {"", "mov.u64 %rd1, depot; ld.u64 %rd2, [%rd1+1048576];", "outside its memory"},
    {"", "mov.u64 %rd1, depot; ld.u64 %rd2, [%rd1-64];", "outside its memory"},
    {"", "mov.u64 %rd1, -4; ld.u64 %rd2, [%rd1];", "outside its memory"},
    {"", "ld.param.u64 %rd1, [call]; st.u32 [%rd1], 1;", "may only read"},
    {".global .u32 state = 1;", "mov.u64 %rd1, state; st.u32 [%rd1], 1;", "may only read"},
    {"", "l: bra l;", "did not return within 10000 steps"},
    {"", "mov.u32 %r1, 3; t: .branchtargets a; brx.idx %r1, t; a:", "goes nowhere"},
    {"", "mov.u32 %r1, 0; div.u32 %r0, %r1, %r1;", "divides by 0"},
    {"", "bra nowhere;", "jump to nowhere"},
    {"", "mov.u32 %r0, %laneid;", "%laneid"},
    {"", "mov.u32 %r0, %r99;", "%r99"},
    {"", "mov.u32 %r0, %r4294967297;", "%r4294967297"},
    {"", "bar.sync 0;", "bar.sync"},
    {"", "add.f16 %rs1, %rs1, %rs1;", "add.f16"},
    {"", "add %r0, %r1, %r2;", "without a type"},
    {"", "add.u32 5, %r1, %r2;", "not a register"},
    {"", ".shared .b32 s[4];", ".shared"},
    {"", "ld.shared.u32 %r0, [%rd1];", "ld.shared.u32"},
    {"", "mov.u64 %rd1, cutegen_plan_return;", "address of a function"},
    {"", "call.uni cutegen_plan_abi_2, (call);", "other arguments"},
    {"", "call.uni cutegen_plan_return;", "other arguments"},
    {"", "call.uni %rd1, (call);", "through a pointer"},
    {".extern .func fork;", "call.uni fork;", "may not call fork"},
    {".extern .func cutegen_plan_launch (.param .b64 a, .param .b64 b);", "",
     "declared in another way"},
    {".global .b8 big[2000000];", "", "more than 1048576 bytes"},
    {".global .b8 few[2] = {1, 2, 3};", "", "more values than room"},
    {".global .u64 p[1] = {generic(cutegen_plan_return)};", "", "not a table"},
    {".shared .b8 s[8];", "", "no shared"},
    {"", ".reg .b32 %q<70000>;", "in range"},
    {"", ".local .b8 big[2000000];", "more than 1048576 bytes of variables"},
    {"", "} } } {", "PTX line"},
    {"", "exit;", "stops itself"},
    {"", "ret;", "without a result"},
    {".func deep() { call.uni deep; }", "call.uni deep;", "too deep"},
};

static void test_refusals(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
        struct arena *a = arena_new();
        int got;
        char *answer =
            run(a, text_of(module(a, refusals[i].before, refusals[i].body)), 10000, &got);
        if (strstr(answer, "\"ok\":false") == NULL || strstr(answer, refusals[i].says) == NULL)
            fail_msg("%s %s: %s", refusals[i].before, refusals[i].body, answer);
        arena_free(a);
    }
}

static void test_line(void **state)
{
    struct arena *a = arena_new();
    int got;
    (void)state;
    assert_non_null(
        strstr(run(a, text_of(module(a, "", ".loc 1 31 5\nld.u32 %r0, [%rd9];")), 100, &got),
               "\"line\":31"));
    arena_free(a);
}

/* ---- kernel names ---------------------------------------------------------------------------- */

static void test_names(void **state)
{
    static const char *const good[] = {"k", "ns::gemm<128, 64, (1 + 2)>", "::k<true>", "k<a < b>",
                                       "k<float *, int const &>"};
    static const char *const bad[] = {"",     " k",  "1k",  "k;", "k\n#include", "k#",   "k\"x\"",
                                      "k'x'", "k{}", "k\\", "k)", "(k",          "k(]",  "k//x",
                                      "k/*x", "k@",  "k`",  "k$", "k\t",         "k\x80"};
    const char *why;
    char *longest = xmalloc(KERNEL_NAME_MAX + 2);
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        if (!kernel_name_ok(good[i], &why))
            fail_msg("'%s' %s", good[i], why);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (kernel_name_ok(bad[i], &why))
            fail_msg("'%s' was taken", bad[i]);
    memset(longest, 'k', KERNEL_NAME_MAX + 1);
    assert_false(kernel_name_ok(longest, &why));
    longest[KERNEL_NAME_MAX] = '\0';
    assert_true(kernel_name_ok(longest, &why));
    xfree(longest);
}

/* ---- damaged plans ----------------------------------------------------------------------------
 */

static uint64_t seed = 0x9e3779b97f4a7c15;

static size_t draw(size_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (size_t)(seed % below);
}

/* One change: a byte, a line moved, a number made extreme, a piece left out. */
static void damage(char *s, size_t *len, size_t cap)
{
    static const char *const numbers[] = {
        "0", "-1", "65535", "4294967295", "18446744073709551615", "9223372036854775808"};
    size_t at = draw(*len), n = draw(40) + 1;
    const char *number = numbers[draw(ARRAY_LEN(numbers))];
    n = n < *len - at ? n : *len - at;
    switch (draw(4)) {
    case 0:
        s[at] = (char)draw(256);
        return;
    case 1: /* leave a piece out */
        memmove(s + at, s + at + n, *len - at - n);
        *len -= n;
        return;
    case 2: { /* copy a piece over another */
        size_t to = draw(*len);
        memmove(s + to, s + at, n < *len - to ? n : *len - to);
        return;
    }
    default: /* a number becomes extreme */
        while (at < *len && (s[at] < '0' || s[at] > '9'))
            at++;
        for (n = at; n < *len && s[n] >= '0' && s[n] <= '9';)
            n++;
        if (at == *len || *len + 32 > cap)
            return;
        memmove(s + at + strlen(number), s + n, *len - n);
        memcpy(s + at, number, strlen(number));
        *len = *len - (n - at) + strlen(number);
    }
}

static void test_damaged(void **state)
{
    const char *asked = getenv("TEST_ROUNDS");
    long rounds = asked ? strtol(asked, NULL, 10) : 2000, whole = 0;
    struct arena *keep = arena_new();
    struct error err = {0};
    struct text sample;
    (void)state;
    if (!file_read(getenv("TEST_PLAN"), 1 << 20, keep, &sample, &err))
        fail_msg("%s", err.text);
    for (long i = 0; i < rounds; i++) {
        struct arena *a = arena_new();
        size_t cap = sample.len + 1024, len = sample.len;
        char *copy = xmalloc(cap), *exact;
        int got;
        memcpy(copy, sample.data, len);
        for (size_t k = draw(4) + (i > 0); k > 0; k--)
            damage(copy, &len, cap);
        exact = xmalloc(len ? len : 1); /* no byte more: reading past it is seen */
        memcpy(exact, copy, len);
        whole += strstr(run(a, (struct text){exact, len}, 20000, &got), "\"ok\":true") != NULL;
        xfree(exact);
        xfree(copy);
        arena_free(a);
    }
    assert_true(whole > 0); /* not all damage hurts: the sample is a good plan */
    arena_free(keep);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values), cmocka_unit_test(test_refusals), cmocka_unit_test(test_line),
        cmocka_unit_test(test_names),  cmocka_unit_test(test_damaged),
    };
    return cmocka_run_group_tests_name("a plan's code computes, and stays in its memory", tests,
                                       NULL, NULL);
}
