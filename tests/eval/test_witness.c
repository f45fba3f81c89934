/* test_witness.c - which recorded launches refuse a ModelNew; names as an H200 with torch 2.11 gave
 * them. */
#include "eval/witness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const struct witness_case {
    const char *name, *record, *wanted; /* NULL: nothing is found */
} cases[] = {
    {"an empty record", "", NULL},
    {"its own kernel", "own_swish.so _Z5swishPKfPfi\n", NULL},
    {"a Triton kernel", "__triton_launcher.cpython-312-x86_64-linux-gnu.so swish_kernel\n", NULL},
    {"torch fills memory",
     "libtorch_cuda.so _ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEE\n",
     NULL},
    {"torch copies memory",
     "libtorch_cuda.so _ZN2at6native18elementwise_kernelIZZZNS0_23direct_copy_kernel_cudaERNS_\n",
     NULL},
    {"torch computes",
     "own.so mine\nlibtorch_cuda.so "
     "_ZN2at6native29vectorized_elementwise_kernelILi4EZZZNS0_4clamp\n",
     "libtorch_cuda.so"},
    {"cuBLAS", "libcublasLt.so.13 sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize64x64x8\n",
     "libcublasLt.so.13"},
    {"cuDNN", "libcudnn_engines_precompiled.so.9 sm80_xmma_fprop_implicit_gemm_f32f32\n",
     "libcudnn"},
    {"cuBLAS, with a stack that says nothing", "- void cublasLt::splitKreduce_kernel\n",
     "cublasLt"},
    {"a line that is cut off", "libcublas.so.13 gemv2T", "libcublas.so.13"},
    {"a line without a kernel", "libcublas.so.13\n", NULL},
};

static void launches_are_told_apart(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct arena *a = arena_new();
        const char *found = witness_finds(text_of(cases[i].record), a);

        if (cases[i].wanted ? !found || !strstr(found, cases[i].wanted) : found != NULL)
            fail_msg("%s: %s", cases[i].name, found ? found : "nothing");
        arena_free(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(launches_are_told_apart)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
