/* test_diag.c - real compiler logs (logs/NAME.log of logs/NAME.cu), boiled down. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/fs.h"
#include "toolchain/diag.h"

#include <stdlib.h>
#include <string.h>

static const struct diag_case {
    const char *log, *where, *line; /* the finding that leads */
    const char *says[4];            /* all in the detail */
} cases[] = {
    {"undeclared",
     "candidate.cu:8",
     "y[threadIdx.x] = X(threadIdx.x) * scale;",
     {"identifier \"scale\" is undefined"}},
    {"semicolon",
     "candidate.cu:7",
     "Tensor X = make_tensor(make_gmem_ptr(x), make_layout(n))",
     {"expected a \";\" at the end of this line"}},
    {"rank",
     "candidate.cu:8",
     "y[threadIdx.x] = X(1, 2, 3);",
     {"Mismatched Ranks", "raised at cute/stride.hpp:108", "Layout=(int,int):(_1,int)",
      "one index"}},
    {"tiler", "candidate.cu:9", "y[0] = t(0, 0);", {"Mismatched Ranks", "Layout=((_16)):((_1))"}},
    {"copy_static",
     "candidate.cu:8",
     "Tensor r = make_tensor<float>(make_layout(n));",
     {"Dynamic owning tensors", "Args=<int:_1>", "known at compile time", "candidate.cu:9: error"}},
    {"tiled_copy",
     "candidate.cu:8",
     NULL,
     {"too few vals", "ThrLayout=(_4,_8):(_1,_4)", "value layout of 4", "candidate.cu:11: error"}},
    {"gemm_shape",
     "candidate.cu:15",
     "gemm(mma, a, b, c);",
     {"size<2>(A) == size<2>(B)", "ALayout=(_1,_4,_16):(_0,_1,_4)", "BLayout=(_1,_4,_8)",
      "K must agree"}},
    {"ldsm",
     "candidate.cu:13",
     "copy(c, src(_, _, 0), a(_, _, 0));",
     {"failed to vectorize", "SrcLayout=((_8,_1),_1):((_32,_0),_0)", "SM75_U32x4_LDSM_N"}},
    {"const_write", "candidate.cu:8", "X(threadIdx.x) = 1.0f;", {"modifiable lvalue", "read-only"}},
    {"member",
     "candidate.cu:8",
     "y[0] = X.at(3);",
     {"class \"Tensor[gmem const float * int:_1]\" has no member \"at\""}},
    {"no_template",
     "candidate.cu:7",
     "y[0] = cute::wiggle<N>(x);",
     {"namespace \"cute\" has no member \"wiggle\""}},
    {"host_call",
     "candidate.cu:7",
     "printf2(\"%f\", x[0]);",
     {"identifier \"printf2\" is undefined",
      "candidate.cu:8: error: namespace \"std\" has no member"}},
    {"args",
     "candidate.cu:8",
     "y[0] = twice(x[0], 3);",
     {"no instance of function template \"twice\"", "argument types are: (const float,int)"}},
    {"include", "candidate.cu:5", "#include <cute/nothing.hpp>", {"cannot open source file"}},
    {"smem_big", "candidate.cu", "", {"262144 bytes of static shared memory", "extern __shared__"}},
    {"bad_asm",
     "candidate.cu:8",
     "asm volatile(\"mul.f33 %0, %1, %1;\" : \"=f\"(v) : \"f\"(x[0]));",
     {"ptxas: Unknown modifier '.f33'"}},
    {"asm_inlined", "candidate.cu:8", NULL, {"Unknown modifier '.f32x' in: mul.f32x"}},
    {"name_missing",
     "candidate.cu:13",
     NULL,
     {"a kernel the plan launches: identifier \"k\" is undefined", "does not define"}},
    {"undefined_size",
     "candidate.cu:8",
     "Tensor X = make_tensor(make_gmem_ptr(x), Shape<_30, _8>{});",
     {"identifier \"_30\" is undefined"}},
    {"smem_dynamic", "candidate.cu:8", "__shared__ float s[n];", {"must have a constant value"}},
    {"coordinates",
     "candidate.cu:9",
     "Tensor t = local_tile(X, Shape<_4, _4, _2>{}, make_coord(0, 0, 0));",
     {"Too many modes in tiler"}},
    {"missing_mma",
     "candidate.cu:8",
     "TiledMMA mma = make_tiled_mma(SM90_64x64x16_F32F16F16_TN{});",
     {"\"SM90_64x64x16_F32F16F16_TN\" is undefined"}},
    {"wrong_partition",
     "candidate.cu:11",
     "Tensor s = thr.partition_A(X);",
     {"has no member \"partition_A\""}},
    {"int_template",
     "candidate.cu:8",
     "Tensor r = make_tensor<float>(Int<n>{});",
     {"must have a constant value"}},
    {"cp_async_types",
     "candidate.cu:11",
     "copy(Copy_Atom<SM80_CP_ASYNC_CACHEALWAYS<uint16_t>, float>{}, X, S);",
     {"cp.async sizeof(TS) is not supported"}},
    {"stride_rank", "candidate.cu:9", "y[0] = X(0, 0);", {"Mismatched Ranks"}},
    {"template_args",
     "candidate.cu:9",
     "Tensor t = local_tile(X, Shape<_32>{});",
     {"\"local_tile\" matches the argument list"}},
    {"assign_tensor",
     "candidate.cu:10",
     "Y(threadIdx.x) = X;",
     {"no suitable conversion function", "Tensor[gmem const float *"}},
    {"gemm_rows", "candidate.cu:12", "gemm(mma, a, b, c);", {"size<1>"}},
    {"half_store",
     "candidate.cu:10",
     "y[threadIdx.x] = __hmul2(h, h);",
     {"\"__hmul2\" matches the argument list", "half_t"}},
    {"mma_tiler", "candidate.cu:8", NULL, {"\"make_tiled_mma\" matches the argument list"}},
    {"loop_constant", "candidate.cu:10", "r(Int<i>{}) = x[i];", {"must have a constant value"}},
    {"pipeline", "candidate.cu:9", "cp_async_wait<n>();", {"must have a constant value"}},
    {"plan_gcc", "candidate.cu:7", NULL, {"undeclared (first use in this function)"}},
    {"plan_clang", "candidate.cu:7", NULL, {"use of undeclared identifier 'm'"}},
    {"plan_tcc", "candidate.cu:7", NULL, {"'m' undeclared"}},
    {"plan_link",
     "candidate.cu:6",
     "return puts(\"x\");",
     {"undefined reference to `puts'", "plan API"}},
};

static struct text read_file(struct arena *a, const char *name, const char *extension)
{
    struct error err = {0};
    struct text out;
    char *path = arena_printf(a, "%s/logs/%s.%s", getenv("TEST_SOURCES"), name, extension);
    if (!file_read(path, 1 << 20, a, &out, &err))
        fail_msg("%s", err.text);
    return out;
}

static void test_logs(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct diag_case *c = &cases[i];
        struct arena *a = arena_new();
        struct verdict v;
        diag_compile_error(read_file(a, c->log, "log"), read_file(a, c->log, "cu"), "candidate.cu",
                           a, &v);
        assert_int_equal(v.kind, VERDICT_COMPILE_ERROR);
        assert_true(v.finding_count > 0);
        if (strcmp(v.findings[0].where, c->where) != 0 ||
            (c->line != NULL && strcmp(v.findings[0].line, c->line) != 0))
            fail_msg("%s: %s '%s'\n%s", c->log, v.findings[0].where, v.findings[0].line, v.detail);
        for (size_t k = 0; k < ARRAY_LEN(c->says) && c->says[k] != NULL; k++)
            if (strstr(v.detail, c->says[k]) == NULL)
                fail_msg("%s lacks '%s':\n%s", c->log, c->says[k], v.detail);
        assert_true(strlen(v.detail) <= DIAG_DETAIL_MAX);
        if (c->line != NULL && *c->line && strstr(v.detail, c->line) == NULL)
            fail_msg("%s: the detail does not hold the user's line:\n%s", c->log, v.detail);
        assert_null(strchr(v.summary, '\n'));
        arena_free(a);
    }
}

static const struct type_case {
    const char *type, *want;
} types[] = {
    {"cute::tuple<cute::C<4>, int>", "(_4,int)"},
    {"cute::Layout<cute::tuple<cute::_8, cute::_4>, cute::tuple<cute::_1, cute::C<8>>>",
     "(_8,_4):(_1,_8)"},
    {"cute::Int<16UL>", "_16"},
    {"cute::Tensor<cute::ViewEngine<cute::smem_ptr<cutlass::half_t *>>, cute::Layout<int, "
     "cute::C<1>>>",
     "Tensor[smem half_t * int:_1]"},
    {"float const *", "float const *"},
    {"(const float, int)", "(const float,int)"},
    {"cuda::std::__4::integral_constant<int, 3>", "_3"},
    {"", ""},
    {"cute::tuple<cute::tuple<", "(())"},
};

static void test_types(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        struct arena *a = arena_new();
        assert_string_equal(diag_type(text_of(types[i].type), a), types[i].want);
        arena_free(a);
    }
}

static void test_silent_log(void **state)
{
    struct arena *a = arena_new();
    struct verdict v;
    (void)state;
    diag_compile_error(text_of("Killed\n"), text_of(""), "candidate.cu", a, &v);
    assert_int_equal(v.kind, VERDICT_COMPILE_ERROR);
    assert_string_equal(v.detail, "Killed");
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_logs),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_silent_log),
    };
    return cmocka_run_group_tests_name("a compiler's log becomes one error at the user's own line",
                                       tests, NULL, NULL);
}
