/* test_text.c - tokens, halves and PTX, read without a compiler. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/json.h"
#include "toolchain/precompiled_source.h"
#include "toolchain/ptx.h"
#include "toolchain/ptx_check.h"
#include "toolchain/ptx_cute.h"
#include "toolchain/source_halves.h"

#include <string.h>

/* ---- tokens ---------------------------------------------------------------- */

static const struct lex_case {
    const char *source, *tokens; /* tokens joined by spaces, each with :line */
} lexed[] = {
    {"a b", "a:1 b:1"},
    {"a\\\nb c", "ab:1 c:2"},
    {"// x \\\n y\nz", "z:3"},
    {"/* # */ a /*\n*/ b", "a:1 b:2"},
    {"\"a // b\" c", "\"a // b\":1 c:1"},
    {"'\"' \"\\\"\" x", "'\"':1 \"\\\"\":1 x:1"},
    {"R\"(a\n\")\" b", "R\"(a\n\")\":1 b:2"},
    {"R\"x()\")x\" b", "R\"x()\")x\":1 b:1"},
    {"1'000 1e+5 .5f a.b", "1'000:1 1e+5:1 .5f:1 a:1 .:1 b:1"},
    {"a::b->c", "a:1 :::1 b:1 ->:1 c:1"},
    {"\"open\nnext", "\"open:1 next:2"},
    {"/* open", ""},
};

static void test_lex(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lexed); i++) {
        struct arena *a = arena_new();
        struct tokens t = lex(text_of(lexed[i].source), a);
        char *got = "";
        for (size_t k = 0; k < t.count; k++)
            got = arena_printf(a, "%s%s%.*s:%d", got, k ? " " : "", (int)t.at[k].text.len,
                               t.at[k].text.data, t.at[k].line);
        assert_string_equal(got, lexed[i].tokens);
        arena_free(a);
    }
}

/* ---- halves ------------------------------------------------------------------ */

static const struct half_case {
    const char *source, *device, *host;
} halves[] = {
    {"a\n#ifdef CUTEGEN_DEVICE\nb\n#endif\nc\n", "a\n\nb\n\nc\n", "a\n\n\n\nc\n"},
    {"#if defined(CUTEGEN_HOST)\na\n#else\nb\n#endif\n", "\n\n\nb\n\n", "\na\n\n\n\n"},
    {"#ifndef CUTEGEN_HOST\na\n#endif\nb", "\na\n\nb", "\n\n\nb"},
    {"#ifdef CUTEGEN_DEVICE\n#if X\na\n#else\nb\n#endif\n#endif\n",
     "\n#if X\na\n#else\nb\n#endif\n\n", "\n\n\n\n\n\n\n"},
    {"#if X\n#ifdef CUTEGEN_HOST\na\n#endif\n#endif\n", "#if X\n\n\n\n#endif\n",
     "#if X\n\na\n\n#endif\n"},
    {"/*\n#ifdef CUTEGEN_HOST\n*/\na\n", "/*\n#ifdef CUTEGEN_HOST\n*/\na\n",
     "/*\n#ifdef CUTEGEN_HOST\n*/\na\n"},
    {"#ifdef \\\nCUTEGEN_HOST\na\n#endif\nb\n", "\n\n\n\nb\n", "\n\na\n\nb\n"},
    {"#if defined(CUTEGEN_HOST) && X\na\n#endif\n", "#if defined(CUTEGEN_HOST) && X\na\n#endif\n",
     "#if defined(CUTEGEN_HOST) && X\na\n#endif\n"},
    {"#endif\n#else\na\n", "#endif\n#else\na\n", "#endif\n#else\na\n"},
};

static void test_halves(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(halves); i++) {
        struct arena *a = arena_new();
        struct text d = halves_view(text_of(halves[i].source), HALF_DEVICE, a);
        struct text h = halves_view(text_of(halves[i].source), HALF_HOST, a);
        assert_string_equal(d.data, halves[i].device);
        assert_string_equal(h.data, halves[i].host);
        arena_free(a);
    }
}

/* ---- PTX ------------------------------------------------------------------------ */

static const char ptx[] = ".version 9.0\n"
                          ".global .align 1 .u8 unused = 1;\n"
                          ".global .align 4 .u32 table[2] = {1, 2};\n"
                          ".global .align 8 .u64 root = generic(leaf);\n"
                          ".global .align 4 .u32 leaf;\n"
                          ".visible .entry _Z1kPfif(\n"
                          "\t.param .u64 _Z1kPfif_param_0,\n"
                          "\t.param .u32 _Z1kPfif_param_1,\n"
                          "\t.param .f32 _Z1kPfif_param_2,\n"
                          "\t.param .align 64 .b8 _Z1kPfif_param_3[128]\n"
                          ")\n.maxntid 256, 1, 1\n{\n"
                          "\t.loc\t1 7 5\n"
                          "\tmov.u64 \t%rd1, table;\n"
                          "\tadd.s64 \t%rd2, %rd1, 4;\n"
                          "\t.loc\t2 9 1, function_name $L1, inlined_at 1 8 3\n"
                          "\tld.global.u32 \t%r1, [%rd2];\n"
                          "\tld.global.u64 \t%rd3, [root];\n";
static const char ptx_end[] =
    "\tret;\n}\n"
    "\t.file\t1 \"candidate.cu\"\n\t.file\t2 \"/opt/cutlass/include/cute/layout.hpp\"\n";

static struct text ptx_with(struct arena *a, const char *line)
{
    return text_of(arena_printf(a, "%s%s%s", ptx, line, ptx_end));
}

static void test_strip(void **state)
{
    struct arena *a = arena_new();
    struct text out = ptx_strip(ptx_with(a, ""), a);
    (void)state;
    assert_null(strstr(out.data, "unused"));
    assert_non_null(strstr(out.data, "table[2] = {1, 2}"));
    assert_non_null(strstr(out.data, "root = generic(leaf)"));
    assert_non_null(strstr(out.data, ".u32 leaf;")); /* named by an initialiser that stays */
    assert_non_null(strstr(out.data, "\tret;\n}\n"));
    arena_free(a);
}

static void test_source_lines(void **state)
{
    struct arena *a = arena_new();
    struct text p = ptx_with(a, "");
    (void)state;
    assert_int_equal(ptx_source_line(p, 15, "candidate.cu"), 7);
    assert_int_equal(ptx_source_line(p, 18, "candidate.cu"), 8); /* through the inlining */
    assert_int_equal(ptx_source_line(p, 3, "candidate.cu"), 0);
    assert_int_equal(ptx_source_line(p, 18, "other.cu"), 0);
    arena_free(a);
}

static const struct state_case {
    const char *name, *line;
    const char *refused; /* NULL: no state */
} states[] = {
    {"reads only", "", NULL},
    {"stores to its parameter", "\tst.global.f32 \t[%rd9], %f1;\n", NULL},
    {"stores by name", "\tst.global.u32 \t[leaf], %r1;\n", "candidate.cu:8"},
    {"stores through an address", "\tst.global.u32 \t[%rd2+4], %r1;\n", "outlives the launch"},
    {"counts atomically", "\tatom.global.add.u32 \t%r3, [leaf], 1;\n", "outlives"},
    {"reduces under a guard", "\t@%p1 red.global.add.u32 \t[%rd2], 1;\n", "outlives"},
    {"stores through a copy", "\tcvta.global.u64 \t%rd7, %rd2;\n\tst.u32 \t[%rd7], %r1;\n",
     "outlives"},
    {"has two on a line", "\t{ add.u64 %rd7, %rd2, 0; st.global.u32 \t[%rd7], 1; }\n", "outlives"},
    {"has a comment within", "\tst/**/.global.u32 \t[%rd2], 1;\n", "comment"},
    {"hides a variable", "\t{ .global .u32 hidden; st.global.u32 \t[hidden], 1; }\n",
     "candidate.cu:8: declares a module variable"},
    {"gives an address to shared memory", "\tst.shared.u64 \t[%rd9], %rd2;\n",
     "gives its address away"},
    {"gives an address to a function", "\tst.param.b64 \t[param0+0], %rd2;\n",
     "gives its address away"},
    {"takes an address apart",
     "\tmov.b64 \t{%r7, %r8}, %rd2;\n\tmov.b64 \t%rd8, {%r9, %r8};\n\tst.u32 \t[%rd8], %r1;\n",
     "outlives"},
    {"stores through an address that was kept", "\tst.global.u32 \t[%rd3], %r1;\n", "outlives"},
    {"stores through half of one that was kept",
     "\tld.global.v2.u32 \t{%r7, %r8}, [root];\n\tmov.b64 \t%rd8, {%r7, %r8};\n"
     "\tst.u32 \t[%rd8], %r1;\n",
     "outlives"},
    {"hides a variable across lines",
     "\t{\n}\n.global\n.u32 hidden;\nred.global.add.u32 [hidden], 1;\n",
     "declares a module variable"},
    {"hides one behind braces", "\t{ } .global .u32 hidden; red.global.add.u32 [hidden], 1;\n",
     "declares a module variable"},
    {"stores across lines", "\tst.global.u32\n[leaf],\n%r1;\n", "outlives the launch"},
    {"stores behind a brace at the line's beginning", "{\n}\n\tst.global.u32 \t[leaf], %r1;\n",
     "outlives the launch"},
    {"stores behind a line mark", "\t.loc 1 1 1 st.global.u32 [leaf], %r1;\n",
     "behind a line mark"},
    {"has a brace too many", "\t}\n}\n", "a brace too many"},
    {"has a brace that does not end", "\tmov.b64 {%r1,\n", "does not end"},
    {"marks lines itself",
     "\t// begin inline asm\n\t.loc 1 1 1\n\tld.global.u32 %r1, [%rd9];\n\t// end inline asm\n",
     "a line mark in assembly"},
    {"has an empty block", "{\n}\n\tst.global.f32 \t[%rd9], %f1;\n", NULL},
    {"counts launches across lines", "\tmov.u64 \t%rd7,\n%gridid;\n", "reads %gridid"},
    {"counts launches by conversion", "\tcvt.u32.u64 \t%r7, %gridid;\n", "reads %gridid"},
    {"knows its graph", "\tmov.u64 \t%rd7, %current_graph_exec;\n", "reads %current_graph_exec"},
    {"reads a counter of events", "\tmov.u32 \t%r7, %pm3;\n", "reads %pm"},
    {"counts launches", "\tmov.u64 \t%rd7, %gridid;\n", "candidate.cu:8: reads %gridid"},
    {"knows the date", "\tmov.u64 \t%rd7, %globaltimer;\n", "reads %globaltimer"},
    {"knows the date, in halves", "\tmov.u32 \t%r7, %globaltimer_hi;\n", "reads %globaltimer_hi"},
    {"has a clock", "\tmov.u64 \t%rd7, %clock64;\n", "reads %clock64"},
    {"has a short clock", "\tmov.u32 \t%r7, %clock;\n", "reads %clock"},
    {"has a register of such a name", "\tmov.u64 \t%rd7, %my%pmx;\n", NULL},
    {"stores a value that was loaded", "\tst.global.u32 \t[%rd9], %r1;\n", NULL},
};

static void test_state(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(states); i++) {
        struct arena *a = arena_new();
        struct ptx_subject s = {
            .ptx = ptx_with(a, states[i].line), .source = text_of(""), .name = "candidate.cu"};
        struct verdict v;
        bool fine = ptx_check_state(&s, a, &v);
        if (fine != (states[i].refused == NULL))
            fail_msg("%s", states[i].name);
        if (!fine && (v.kind != VERDICT_REFUSED || strstr(v.summary, states[i].refused) == NULL))
            fail_msg("%s: %s", states[i].name, v.summary);
        arena_free(a);
    }
}

static void test_foreign_call(void **state)
{
    struct arena *a = arena_new();
    struct verdict v;
    struct ptx_subject s = {
        .ptx = text_of(".extern .func  (.param .b32 func_retval0) vprintf\n(\n)\n;\n"),
        .source = text_of(""),
        .name = "candidate.cu"};
    (void)state;
    assert_false(ptx_check_state(&s, a, &v));
    assert_non_null(strstr(v.summary, "calls vprintf"));
    arena_free(a);
}

static const struct launch_case {
    const char *name, *args, *block;
    const char *fault;
} launches[] = {
    {"fits",
     "[{\"buffer\":\"in0\",\"offset\":0},{\"bytes\":\"01000000\",\"type\":\"int\"},"
     "{\"bytes\":\"0000803f\",\"type\":\"float\"},{\"map\":0}]",
     "[256,1,1]", NULL},
    {"too few", "[{\"buffer\":\"in0\",\"offset\":0}]", "[256,1,1]",
     "1 arguments, but the kernel has 4"},
    {"a long for an int",
     "[{\"buffer\":\"in0\",\"offset\":0},{\"bytes\":\"0100000000000000\",\"type\":\"int\"},"
     "{\"bytes\":\"0000803f\",\"type\":\"float\"},{\"map\":0}]",
     "[256,1,1]", "argument 2 is an integer of 8 bytes"},
    {"an int for a float",
     "[{\"buffer\":\"in0\",\"offset\":0},{\"bytes\":\"01000000\",\"type\":\"int\"},"
     "{\"bytes\":\"01000000\",\"type\":\"int\"},{\"map\":0}]",
     "[256,1,1]", "argument 3 is an integer of 4 bytes, the kernel wants a float"},
    {"a float for an int",
     "[{\"buffer\":\"in0\",\"offset\":0},{\"bytes\":\"0000803f\",\"type\":\"float\"},"
     "{\"bytes\":\"0000803f\",\"type\":\"float\"},{\"map\":0}]",
     "[256,1,1]", "argument 2 is floating point"},
    {"a pointer for a map",
     "[{\"buffer\":\"in0\",\"offset\":0},{\"bytes\":\"01000000\",\"type\":\"int\"},"
     "{\"bytes\":\"0000803f\",\"type\":\"float\"},{\"buffer\":\"in0\",\"offset\":0}]",
     "[256,1,1]", "argument 4 is a pointer, the kernel wants a struct of 128 bytes"},
    {"more threads than the bounds",
     "[{\"buffer\":\"in0\",\"offset\":0},{\"bytes\":\"01000000\",\"type\":\"int\"},"
     "{\"bytes\":\"0000803f\",\"type\":\"float\"},{\"map\":0}]",
     "[512,1,1]", "512 threads in a block, but __launch_bounds__ allows 256"},
};

static void test_launches(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(launches); i++) {
        struct arena *a = arena_new();
        struct error err = {0};
        struct ptx_subject s = {
            .ptx = ptx_with(a, ""), .source = text_of("one\ntwo\n"), .name = "candidate.cu"};
        json_t *list = NULL, *names = json_pack("{s:s}", "k", "_Z1kPfif");
        struct verdict v;
        char *text = arena_printf(
            a,
            "{\"ops\":[{\"op\":\"launch\",\"kernel\":\"k\",\"line\":2,\"block\":%s,\"args\":%s}]}",
            launches[i].block, launches[i].args);
        assert_true(json_parse(text_of(text), "launches", &list, &err));
        bool fine = ptx_check_launches(&s, names, list, a, &v);
        if (fine != (launches[i].fault == NULL))
            fail_msg("%s: %s", launches[i].name, fine ? "let through" : v.summary);
        if (!fine &&
            (v.kind != VERDICT_BAD_LAUNCH || strstr(v.summary, launches[i].fault) == NULL ||
             strncmp(v.summary, "candidate.cu:2", 14) != 0))
            fail_msg("%s: %s", launches[i].name, v.summary);
        json_decref(list);
        json_decref(names);
        arena_free(a);
    }
}

static void test_resources(void **state)
{
    struct arena *a = arena_new();
    json_t *r = ptx_resources(text_of(
        "ptxas info    : 2852 bytes gmem\n"
        "ptxas info    : Compiling entry function '_Z1kPf' for 'sm_80'\n"
        "ptxas info    : Function properties for _Z1kPf\n"
        "ptxas         .     16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n"
        "ptxas info    : Used 31 registers, used 1 barriers, 4096 bytes smem, 380 bytes "
        "cmem[0]\n"));
    (void)state;
    assert_string_equal(
        json_line(r, a),
        "{\"_Z1kPf\":{\"smem\":4096,\"stack\":16,\"spill_stores\":8,\"spill_loads\":12,"
        "\"registers\":31,\"barriers\":1,\"cmem\":380}}");
    json_decref(r);
    arena_free(a);
}

/* ---- what a builder learns --------------------------------------------------- */

static const struct learn_case {
    const char *name, *source, *want; /* want NULL: not taken */
} learned[] = {
    {"a kernel becomes a function that is not emitted",
     "#include <cute/tensor.hpp>\ntemplate <int N> __global__ void __launch_bounds__(256)\n"
     "k(const __grid_constant__ T m) { a << b; x->y::z(); }",
     "# include <cute/tensor.hpp> \nnamespace cutegen_learned {\n"
     "template < int N > static __attribute__((unused)) __device__ void k ( const T m ){ a << b ; "
     "x "
     "-> y :: z ();} \nstatic __attribute__((unused)) __device__ void cutegen_use_0() "
     "{ auto p = &k<3>; (void)p; }\n}\n"},
    {"a pragma keeps its line", "void f() {\n#pragma unroll\nx; }",
     "void f (){\n# pragma unroll \nx ;} \n"},
    {"macros may mean something else the next time", "#define N 3\nint x;", NULL},
    {"conditions likewise", "#ifdef X\nint x;\n#endif", NULL},
    {"an include among the code", "int x;\n#include <cute/tensor.hpp>", NULL},
    {"linkage knows no namespaces", "extern \"C\" __global__ void k() {}", NULL},
    {"shared memory without a size is none of that", "void f() { extern __shared__ int s[]; }",
     "extern __shared__ int s []"},
    {"nothing", "", NULL},
};

static void test_learn(void **state)
{
    json_t *names = json_pack("[s]", "k<3>");
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(learned); i++) {
        const struct learn_case *c = &learned[i];
        struct arena *a = arena_new();
        struct text header = {"", 0};
        bool taken = learn_header(text_of(c->source), names, a, &header);

        if (taken != (c->want != NULL) || (taken && strstr(header.data, c->want) == NULL))
            fail_msg("%s: %s\n%s", c->name, taken ? "taken" : "not taken", header.data);
        arena_free(a);
    }
    json_decref(names);
}

/* ---- CuTe ------------------------------------------------------------------ */

#define FILES                                                                                      \
    "\t.file\t1 \"/candidate.cu\"\n\t.file\t2 \"/cutlass/include/cute/tensor_impl.hpp\"\n"         \
    "\t.file\t3 \"/elsewhere/cute/tensor_impl.hpp\"\n"                                             \
    "\t.file\t4 \"/cutlass/include/cutlass/half.h\"\n"

static const struct cute_case {
    const char *name, *body;
    int accesses, through, stores, stores_through;
} cute_cases[] = {
    {"a plain access", ".loc 1 5 1\nadd.s64 %rd2, %rd1, 4;\nst.global.f32 [%rd2], %f1;", 1, 0, 1,
     0},
    {"an address that CuTe computes",
     ".loc 2 5 1, function_name $L, inlined_at 1 9 9\nadd.s64 %rd2, %rd1, 4;\n.loc 1 9 9\n"
     "st.global.f32 [%rd2], %f1;",
     1, 1, 1, 1},
    {"an address that goes on from there",
     ".loc 4 5 1\nmul.wide.s32 %rd2, %r1, 4;\n.loc 1 9 9\nadd.s64 %rd3, %rd1, %rd2;\n"
     "ld.global.f32 %f1, [%rd3+16];",
     1, 1, 0, 0},
    {"an access of CuTe's own",
     ".loc 2 5 1\n@%p1 ld.global.nc.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];", 1, 1, 0, 0},
    {"a lambda that CuTe calls",
     ".loc 1 5 1, function_name $L, inlined_at 2 9 9\n"
     "add.s64 %rd2, %rd1, 4;\nst.global.f32 [%rd2], %f1;",
     1, 0, 1, 0},
    {"a header of another folder", ".loc 3 5 1\nadd.s64 %rd2, %rd1, 4;\nst.global.f32 [%rd2], %f1;",
     1, 0, 1, 0},
    {"a loop, where the address comes later",
     ".loc 1 5 1\n$L1:\nld.global.f32 %f1, [%rd2];\nmov.u64 %rd2, %rd3;\n.loc 2 1 1\n"
     "add.s64 %rd3, %rd2, 4;\n@%p1 bra $L1;",
     1, 1, 0, 0},
    {"a pointer that CuTe only holds",
     ".loc 2 5 1\ncvta.to.global.u64 %rd2, %rd1;\nmov.u64 %rd3, %rd2;\n.loc 1 1 1\n"
     "st.global.f32 [%rd3], %f1;",
     1, 0, 1, 0},
    {"an index from memory, which CuTe loaded",
     ".loc 2 5 1\nld.global.u64 %rd2, [%rd1];\n.loc 1 1 1\nst.global.f32 [%rd2], %f1;", 2, 1, 1, 0},
    {"shared, local and constant memory do not count",
     ".loc 2 1 1\nld.shared.f32 %f1, [%r1];\nst.local.u32 [%rd1], %r2;\nld.param.u64 %rd1, [p];", 0,
     0, 0, 0},
    {"copies to and from shared memory",
     ".loc 2 1 1\ncp.async.cg.shared.global [%r1], [%rd1], 16;\n"
     "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd2, {%r1, %r2}], [%r3];",
     2, 2, 1, 1},
    {"assembly with a scope of its own before it",
     ".loc 1 1 1\n\t// begin inline asm\n\t{\n.reg .pred P1;\nWAIT: \n@!P1 bra WAIT;\n}\n\t// end "
     "inline asm\n"
     ".loc 2 1 1\ncp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
     "[%r1], [%rd1, {%r2, "
     "%r3}], [%r4];",
     1, 1, 0, 0},
    {"a mark",
     ".loc 1 1 1\nmov.b64 %rd2, %rd1; // 0123abcd\nst.f32 [%rd2], %f1;\nst.f32 [%rd1], "
     "%f1;",
     2, 1, 2, 1},
};

static void test_cute(void **state)
{
    const char *const includes[] = {"/usr/include", "/cutlass/include", NULL};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cute_cases); i++) {
        const struct cute_case *c = &cute_cases[i];
        struct arena *a = arena_new();
        struct text code =
            text_of(arena_printf(a, ".visible .entry k(\n)\n{\n%s\nret;\n}\n" FILES, c->body));
        struct cute_use use = ptx_cute_use(code, includes, "0123abcd", a);

        if (use.accesses != c->accesses || use.through != c->through || use.stores != c->stores ||
            use.stores_through != c->stores_through)
            fail_msg("%s: %d of %d, stores %d of %d", c->name, use.through, use.accesses,
                     use.stores_through, use.stores);
        arena_free(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lex),      cmocka_unit_test(test_halves),
        cmocka_unit_test(test_strip),    cmocka_unit_test(test_source_lines),
        cmocka_unit_test(test_state),    cmocka_unit_test(test_foreign_call),
        cmocka_unit_test(test_launches), cmocka_unit_test(test_resources),
        cmocka_unit_test(test_learn),    cmocka_unit_test(test_cute),
    };
    return cmocka_run_group_tests_name("sources and PTX are read as a compiler would", tests, NULL,
                                       NULL);
}
