/* test_gate.c - what the gate refuses, and what it must let through. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "toolchain/gate.h"

#include <string.h>

static const char head[] = "#include <cutegen/kernel.h>\n#ifdef CUTEGEN_DEVICE\n"
                           "#include <cute/tensor.hpp>\n"; /* 3 lines */
static const char kernel[] =
    "__global__ void k(float const *x, float *y, int n)\n{\n"
    "    cute::Tensor X = cute::make_tensor(cute::make_gmem_ptr(x), cute::make_layout(n));\n"
    "    y[threadIdx.x] = X(threadIdx.x);\n}\n#endif\n"; /* 6 lines */
static const char plan_open[] = "#ifdef CUTEGEN_HOST\n"; /* line 11 when `device` is one line */
static const char plan[] =
    "CUTEGEN_PLAN(call)\n{\n    return CUTEGEN_LAUNCH(call, k, cutegen_dim3(1, 1, 1), "
    "cutegen_dim3(1, 1, 1), 0, CUTEGEN_DATA(float const, &call->in[0]), "
    "CUTEGEN_DATA(float, &call->out[0]), 1);\n}\n#endif\n";

/* A whole candidate with one line put into each half. */
static struct text whole(struct arena *a, const char *device, const char *host)
{
    return text_of(
        arena_printf(a, "%s%s\n%s%s%s\n%s", head, device, kernel, plan_open, host, plan));
}

static const struct gate_case {
    const char *name, *device, *host;
    const char *refused; /* NULL: let through; else part of the summary */
} cases[] = {
    {"a plain candidate", "", "", NULL},
    /* includes */
    {"cutlass and cuda headers", "#include <cutlass/numeric_types.h>\n#include <cuda/std/array>",
     "", NULL},
    {"half precision", "#include <cuda_fp16.h>\n#include \"cute/algorithm/gemm.hpp\"", "", NULL},
    {"stdint out of habit", "#include <cstdint>", "#include <stdint.h>", NULL},
    {"a system header", "#include <vector>", "", "<vector> may not be included"},
    {"a system header in the plan", "", "#include <stdio.h>", "candidate.cu:12: <stdio.h>"},
    {"a device header in the plan", "", "#include <cute/tensor.hpp>",
     "put it under #ifdef CUTEGEN_DEVICE"},
    {"an absolute path", "#include \"/etc/passwd\"", "", "may not be included"},
    {"a climbing path", "#include <cute/../../secret.h>", "", "may not be included"},
    {"an include by macro", "#define H <vector>\n#include H", "", "must name its header"},
    {"an include hidden by a splice", "#inc\\\nlude <vector>", "", "<vector>"},
    {"an include after a comment", "/* x */ #include <vector>", "", "<vector>"},
    {"an include by digraph", "%:include <vector>", "", "%: may not stand for #"},
    {"an include in a comment", "// #include <vector>\n/*\n#include <vector>\n*/", "", NULL},
    {"an include in a raw string",
     "__device__ constexpr char const *s = R\"x(\n#include <vector>\n)x\";", "", NULL},
    {"include_next", "#include_next <stdio.h>", "", "#include_next may not be used"},
    {"the export half by hand", "#include <cutegen/export.h>", "", "may not be included"},
    /* preprocessor */
    {"a line directive", "#line 5 \"x\"", "", "#line may not be used"},
    {"an error of the user's own", "#ifndef __CUDA_ARCH__\n#endif", "", NULL},
    {"another behaviour when exported", "#ifdef CUTEGEN_EXPORT\n#endif", "", "CUTEGEN_EXPORT"},
    {"another behaviour under nvcc", "#if defined(__NVCC__)\n#endif", "", "__NVCC__"},
    {"another plan in C++", "", "#ifdef __cplusplus\n#endif", "__cplusplus"},
    {"another plan by compiler", "", "#if __GNUC__ > 4\n#endif", "__GNUC__"},
    {"redefining the ABI", "", "#define CUTEGEN_REQUIRE(a, b, c)", "may not be defined"},
    {"pasting tokens in the plan", "", "#define J(a, b) a##b", "## may not be used"},
    {"pasting tokens in device code", "#define J(a, b) a##b", "", NULL},
    {"a pragma in the plan", "", "#pragma GCC poison x", "no #pragma"},
    {"unrolling", "#pragma unroll 4", "", NULL},
    {"a comment in assembly", "__device__ void f() { asm(\"// end inline asm\"); }", "",
     "no comments in assembly"},
    {"one in two strings", "__device__ void f() { asm(\"/\" \"/ x\"); }", "",
     "no comments in assembly"},
    {"one by escapes", "__device__ void f() { asm(\"\\57\\x2f x\"); }", "",
     "no comments in assembly"},
    {"one in a raw string", "__device__ void f() { asm(R\"(/* x */)\"); }", "",
     "no comments in assembly"},
    {"assembly with a slash", "__device__ void f() { asm(\"a / b\"); }", "", NULL},
    /* the plan */
    {"assembly in the plan", "", "void f(void) { __asm__(\"nop\"); }", "no assembly in a plan"},
    {"assembly in device code", "__device__ void f() { asm volatile(\"nop;\"); }", "", NULL},
    {"assembly in a comment of the plan", "", "/* asm */ // __asm__", NULL},
    {"attributes in the plan", "", "__attribute__((constructor)) static void f(void) {}",
     "no attributes in a plan"},
    {"built-ins in the plan", "", "int f(void) { return __builtin_trap(), 0; }",
     "no compiler built-ins"},
    {"foreign declarations in the plan", "", "extern int puts(const char *);",
     "declares nothing from outside"},
    {"a splice that is none for some compilers", "", "int f(void) { return 1 + \\ \n2; }",
     "candidate.cu:12: a backslash"},
    {"a splice that all compilers see", "#define TWO(a) \\\n    (a)", "", NULL},
    {"static state in the plan", "", "static int calls;", "a plan keeps no state"},
    {"static constants and functions in the plan", "",
     "static const int sizes[2] = {1, 2};\nstatic int twice(int n) { return 2 * n; }", NULL},
    /* state of kernels */
    {"a device variable", "__device__ float cache[1024];", "", "kernels keep no state"},
    {"an initialised device variable", "__device__ int counter = 0;", "", "kernels keep no state"},
    {"a device variable, words in another order", "static __device__ int counter;", "", "no state"},
    {"a device variable with attributes", "__device__ __align__(16) float cache[4];", "",
     "no state"},
    {"a static local", "__device__ int f() { static int n; return n++; }", "", "no state"},
    {"a managed variable", "__managed__ int n;", "", "__managed__"},
    {"constant tables",
     "__device__ constexpr int t[2] = {1, 2};\nstatic constexpr int kTile = 64;\n"
     "constexpr __device__ int one = 1;\n__constant__ float c[4];",
     "", NULL},
    {"device functions of all kinds",
     "template <class T> __device__ __forceinline__ T id(T v) { return v; }\n"
     "struct op { __device__ float operator()(float v) const { return v; }\n"
     "__host__ __device__ op &operator=(op const &) = default; };",
     "", NULL},
    {"a deduced device variable", "__device__ auto add = 0;", "", "no state"},
    {"lambdas",
     "__device__ float g(float v) { auto f = [=] __device__ (float w) { return w; }; return f(v); "
     "}",
     "", NULL},
    {"shared memory",
     "__global__ void s() { __shared__ float t[32]; static __shared__ int u; extern "
     "__shared__ char v[]; t[0] = u + v[0]; }",
     "", NULL},
    {"static members",
     "struct T { static constexpr int n = 4; static __device__ int f() { return n; } };", "", NULL},
    {"printing", "__device__ void p() { printf(\"x\"); }", "", "kernels do not print"},
    {"allocating", "__device__ float *p() { return new float[3]; }", "", "kernels do not allocate"},
    {"launching from a kernel", "__global__ void l() { k2<<<1, 1>>>(); }", "", "not <<<>>>"},
    {"shifting", "__device__ int sh(int v) { return v << 2 >> 1; }", "", NULL},
    {"libraries", "__device__ void p() { cublasCreate(0); }", "", "no libraries"},
    {"operators named after libraries",
     "__device__ float cudnn_batch_norm(float x) { float cublas_value = x; return cublas_value; }",
     "", NULL},
    {"dates", "__device__ char const *d() { return __DATE__; }", "", "when they are compiled"},
};

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct gate_case *c = &cases[i];
        struct arena *a = arena_new();
        struct verdict v;
        bool refused = gate_refuses(whole(a, c->device, c->host), "candidate.cu", a, &v);
        if (refused != (c->refused != NULL))
            fail_msg("%s: %s", c->name, v.summary);
        if (refused && (v.kind != VERDICT_REFUSED || strstr(v.summary, c->refused) == NULL))
            fail_msg("%s: '%s' lacks '%s'", c->name, v.summary, c->refused);
        arena_free(a);
    }
}

static const struct cute_case {
    const char *name, *device;
    const char *refused;
} cute_cases[] = {
    {"no kernel at all", "#include <cute/tensor.hpp>\n", "no __global__ function"},
    {"plain CUDA", "__global__ void k(float *y) { y[0] = 1; }\n", "must be written in CuTe"},
    {"a line directive behind a comment of two lines",
     "#include <cute/tensor.hpp>\n__global__ void k() {}\n#/*\n*/line 5 \"x\"\n", "#"},
    {"a line marker", "#include <cute/tensor.hpp>\n__global__ void k() {}\n# 5 \"x\"\n", "#"},
    {"a line directive split where lexers do not agree",
     "#include <cute/tensor.hpp>\n__global__ void k() {}\n#li\\ \nne 5 \"x\"\n",
     "a backslash with nothing but space behind it"},
    {"a line directive that a lexer may take for a comment",
     "#include <cute/tensor.hpp>\n__global__ void k() {}\n// x \\ \n#line 5 \"x\"\n",
     "a backslash with nothing but space behind it"},
    {"a line directive that a lexer may take for a string",
     "#include <cute/tensor.hpp>\n__global__ void k() { R\"(\n)\"; }\n/* R\"( */ #line 5\n",
     "#line"},
    {"a comment with a number sign",
     "#include <cute/tensor.hpp>\n__global__ void k() {} // step #2\n/* lines: #5 */\n", NULL},
    {"a layout that indexes",
     "#include <cute/layout.hpp>\n__global__ void k(float *y) { auto l = cute::make_layout(4); "
     "y[l(2)] = 1; }\n",
     NULL},
    {"a tensor that is copied",
     "#include <cute/tensor.hpp>\nusing namespace cute;\n__global__ void k(float *y) { "
     "copy(make_tensor(y, _4{}), "
     "make_tensor(y + 4, _4{})); }\n",
     NULL},
};

static void test_cute(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cute_cases); i++) {
        const struct cute_case *c = &cute_cases[i];
        struct arena *a = arena_new();
        struct verdict v;
        struct text source = text_of(arena_printf(
            a,
            "#include <cutegen/kernel.h>\n#ifdef CUTEGEN_DEVICE\n%s#endif\n#ifdef CUTEGEN_HOST\n%s",
            c->device, plan));
        bool refused = gate_refuses(source, "candidate.cu", a, &v);
        if (refused != (c->refused != NULL) || (refused && strstr(v.summary, c->refused) == NULL))
            fail_msg("%s: %s", c->name, v.summary);
        arena_free(a);
    }
}

static void test_limits(void **state)
{
    struct arena *a = arena_new();
    struct verdict v;
    char *big = arena_alloc(a, GATE_SOURCE_MAX + 2);
    (void)state;
    memset(big, ' ', GATE_SOURCE_MAX + 1);
    assert_true(gate_refuses((struct text){big, GATE_SOURCE_MAX + 1}, "x.cu", a, &v));
    assert_true(gate_refuses((struct text){"a\0b", 3}, "x.cu", a, &v));
    assert_true(gate_refuses(text_of(""), "x.cu", a, &v));
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_cute),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests_name("the gate refuses what must not run and nothing else", tests,
                                       NULL, NULL);
}
