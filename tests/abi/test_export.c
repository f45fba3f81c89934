/* test_export.c - the same candidate as one nvcc translation unit, and what it refuses to compile.
 */
#include "support.h"

#include <dlfcn.h>

struct cutegen_tensor;
struct cutegen_scalar;

static struct proc_result nvcc(struct fixture *f, const char *in, const char *out, const char *mode)
{
    struct proc_result r;
    struct error err = {0};
    const char *argv[] = {f->tools.nvcc,
                          "-std=c++17",
                          "-arch=sm_80",
                          "--expt-relaxed-constexpr",
                          "-O1",
                          "-Xcompiler",
                          "-fPIC",
                          mode,
                          "-DCUTEGEN_EXPORT=1",
                          "-I",
                          f->tools.kernel_include,
                          "-I",
                          f->tools.cutlass_include ? f->tools.cutlass_include : ".",
                          "-o",
                          out,
                          in,
                          NULL};
    struct proc_spec spec = {
        .argv = argv, .deadline_ms = 3000000, .merge_stderr = true, .dir = f->dir};
    check_machine(proc_run(&spec, f->a, &r, &err), &err);
    return r;
}

static bool no_nvcc(const struct fixture *f)
{
    if (f->tools.nvcc == NULL)
        print_message("[  SKIPPED ] no nvcc on this machine: export is not tested\n");
    return f->tools.nvcc == NULL;
}

static void test_whole(void **state)
{
    struct fixture *f = *state;
    char *in = path_join(f->a, getenv("TEST_SOURCES"), "example.cu");
    char *out = path_join(f->a, f->dir, "example.so"), text[256] = "";
    int (*version)(void);
    int (*call)(const struct cutegen_tensor *, int, struct cutegen_tensor *, int,
                const struct cutegen_scalar *, int, void *, char *, size_t);
    struct proc_result r;
    void *library;
    if (no_nvcc(f))
        return;
    if (f->tools.cutlass_include == NULL) {
        print_message("[  SKIPPED ] no CuTe headers on this machine\n");
        return;
    }
    r = nvcc(f, in, out, "-shared");
    if (r.end != PROC_EXITED || r.code != 0)
        fail_msg("nvcc: %s", r.out.data);
    library = dlopen(out, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        fail_msg("%s", dlerror());
    *(void **)&version = dlsym(library, "cutegen_abi_version");
    *(void **)&call = dlsym(library, "cutegen_call_kernel");
    assert_non_null(version);
    assert_non_null(call);
    assert_int_equal(version(), 2);
    /* needs no GPU: refused before anything is asked of one */
    assert_int_equal(call(NULL, 513, NULL, 0, NULL, 0, NULL, text, sizeof text), 1);
    assert_true(has(text, "too many tensors"));
}

static const struct launch_case {
    const char *name, *arguments, *says; /* NULL: compiles */
} launches[] = {
    {"arguments that fit", "CUTEGEN_DATA(float const, x), CUTEGEN_DATA(float, y), n, 1.0f, m",
     NULL},
    {"one too few", "CUTEGEN_DATA(float const, x), CUTEGEN_DATA(float, y), n, 1.0f",
     "one argument for each parameter"},
    {"int64_t for int", "CUTEGEN_DATA(float const, x), CUTEGEN_DATA(float, y), (int64_t)n, 1.0f, m",
     "differs in size or kind"},
    {"int for float", "CUTEGEN_DATA(float const, x), CUTEGEN_DATA(float, y), n, 1, m",
     "differs in size or kind"},
    {"double for float", "CUTEGEN_DATA(float const, x), CUTEGEN_DATA(float, y), n, 1.0, m",
     "differs in size or kind"},
};

static void test_launch_arguments(void **state)
{
    struct fixture *f = *state;
    struct error err = {0};
    if (no_nvcc(f))
        return;
    for (size_t i = 0; i < ARRAY_LEN(launches); i++) {
        char *in = path_join(f->a, f->dir, "launch.cu");
        char *source = arena_printf(
            f->a,
            "#include <cutegen/kernel.h>\n#ifdef CUTEGEN_DEVICE\n"
            "template <int N> __global__ void k(float const *x, float *y, int n, float s,\n"
            "                                  const __grid_constant__ CUtensorMap m) { y[n] = "
            "x[N] * s; }\n"
            "#endif\n#ifdef CUTEGEN_HOST\nCUTEGEN_PLAN(call)\n{\n"
            "    const struct cutegen_tensor *x = &call->in[0];\n    struct cutegen_tensor *y = "
            "&call->out[0];\n"
            "    struct cutegen_map_spec spec = {0};\n    spec.data = CUTEGEN_DATA(float, x);\n"
            "    struct cutegen_map m = cutegen_map_tiled(call, &spec);\n"
            "    int n = (int)cutegen_numel(x);\n    float *w = cutegen_workspace(call, 64);\n"
            "    CUTEGEN_TRY(cutegen_memset(call, w, 0, 64));\n    cutegen_part(call, 1);\n"
            "    return CUTEGEN_LAUNCH_EX(call, (k<3>), cutegen_dim3(2, 1, 1), cutegen_dim3(1, 1, "
            "1),\n"
            "                             cutegen_dim3(2, 1, 1), 100000, CUTEGEN_OVERLAP, "
            "%s);\n}\n#endif\n",
            launches[i].arguments);
        struct proc_result r;
        check_machine(file_write(in, text_of(source), &err), &err);
        r = nvcc(f, in, path_join(f->a, f->dir, "launch.o"), "-c");
        if (launches[i].says == NULL && r.code != 0)
            fail_msg("%s: %s", launches[i].name, r.out.data);
        if (launches[i].says != NULL && (r.code == 0 || !has(r.out.data, launches[i].says)))
            fail_msg("%s: %s", launches[i].name, r.out.data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_launch_arguments),
        cmocka_unit_test(test_whole),
    };
    return cmocka_run_group_tests_name("nvcc takes the same file and checks its launches", tests,
                                       fixture_open, fixture_close);
}
