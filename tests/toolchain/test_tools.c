/* test_tools.c - tools are found where distributions, toolkits and wheels put them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/fs.h"
#include "toolchain/tools.h"

#include <stdlib.h>
#include <string.h>

static char *root; /* of one test, an empty folder */
static struct arena *a;

static int set_up(void **state)
{
    struct error err = {0};
    (void)state;
    a = arena_new();
    return dir_temp("tools", a, &root, &err) ? 0 : -1;
}

static int tear_down(void **state)
{
    struct error err = {0};
    (void)state;
    dir_remove(root, &err);
    arena_free(a);
    return 0;
}

static void put(const char *relative, const char *text)
{
    struct error err = {0};
    char *path = path_join(a, root, relative), *dir = arena_strdup(a, path);
    *strrchr(dir, '/') = '\0';
    if (!dir_make(dir, &err) || !file_write(path, text_of(text), &err))
        fail_msg("%s", err.text);
}

static void put_cutlass(const char *dir)
{
    put(arena_printf(a, "%s/cute/tensor.hpp", dir), "");
    put(arena_printf(a, "%s/cutlass/version.h", dir),
        "#define CUTLASS_MAJOR 4\n#define CUTLASS_MINOR 2\n#define CUTLASS_PATCH 1\n");
}

static void test_toolkit(void **state)
{
    struct tools t;
    struct tools_config config = {.cuda = root, .cutlass = path_join(a, root, "mine")};
    (void)state;
    put("lib64/libnvrtc.so.13", "");
    put("lib64/libnvrtc-builtins.so.13.0.88", "");
    put("include/cuda_fp16.h", "");
    put("include/cccl/cuda/std/cstdint", "");
    put_cutlass("mine/include");
    tools_look(&config, a, &t);
    assert_string_equal(t.nvrtc, path_join(a, root, "lib64/libnvrtc.so.13"));
    assert_string_equal(t.nvrtc_version, "13.0");
    assert_string_equal(t.cuda_include, path_join(a, root, "include"));
    assert_string_equal(t.cccl_include, path_join(a, root, "include/cccl"));
    assert_string_equal(t.cutlass_include, path_join(a, root, "mine/include"));
    assert_string_equal(t.cutlass_version, "4.2.1");
}

static void test_wheels(void **state)
{
    struct tools t;
    struct tools_config config = {.cuda = root};
    (void)state;
    put("lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13", "");
    put("lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc-builtins.so.13.1", "");
    put("lib/python3.12/site-packages/nvidia/cu13/include/cuda_fp16.h", "");
    put("lib/python3.12/site-packages/nvidia/cu13/include/cccl/cuda/std/cstdint", "");
    put_cutlass("lib/python3.12/site-packages/cutlass_library/source/include");
    setenv("CUTLASS_PATH", path_join(a, root, "lib/python3.12/site-packages"), 1);
    tools_look(&config, a, &t);
    unsetenv("CUTLASS_PATH");
    assert_non_null(strstr(t.nvrtc, "nvidia/cu13/lib/libnvrtc.so.13"));
    assert_string_equal(t.nvrtc_version, "13.1");
    assert_string_equal(t.nvrtc_from, "wheel");
    assert_non_null(strstr(t.cccl_include, "cu13/include/cccl"));
    assert_non_null(strstr(t.cutlass_include, "cutlass_library/source/include"));
}

static void test_wheels_of_cuda_12(void **state)
{
    struct tools t;
    struct tools_config config = {.cuda = root};
    (void)state;
    put("lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12", "");
    put("lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc-builtins.so.12.8", "");
    put("lib/python3.11/site-packages/nvidia/cuda_runtime/include/cuda_fp16.h", "");
    put("lib/python3.11/site-packages/nvidia/cuda_cccl/include/cuda/std/cstdint", "");
    tools_look(&config, a, &t);
    assert_non_null(strstr(t.nvrtc, "cuda_nvrtc/lib/libnvrtc.so.12"));
    assert_string_equal(t.nvrtc_version, "12.8");
    assert_non_null(strstr(t.cuda_include, "cuda_runtime/include"));
    assert_non_null(strstr(t.cccl_include, "cuda_cccl/include"));
}

static void test_a_place_with_both_is_taken_first(void **state)
{
    struct tools t;
    char *toolkit = path_join(a, root, "toolkit");
    (void)state;
    put("lib64/libnvrtc.so.13", ""); /* without headers */
    put("toolkit/lib64/libnvrtc.so.12", "");
    put("toolkit/include/cuda_fp16.h", "");
    put("toolkit/include/cuda/std/cstdint", "");
    setenv("CUDA_HOME", root, 1);
    setenv("CUDA_PATH", toolkit, 1);
    tools_look(&(struct tools_config){0}, a, &t);
    unsetenv("CUDA_HOME");
    unsetenv("CUDA_PATH");
    assert_string_equal(t.nvrtc, path_join(a, toolkit, "lib64/libnvrtc.so.12"));
    assert_string_equal(t.cccl_include, path_join(a, toolkit, "include"));
}

static void test_a_version_cutlass_does_not_go_with_comes_last(void **state)
{
    struct tools t;
    char *fits = path_join(a, root, "fits"), *newer = path_join(a, root, "newer");
    (void)state;
    put("newer/lib64/libnvrtc.so.13", "");
    put("newer/include/cuda_fp16.h", "");
    put("newer/include/cuda.h", "#define CUDA_VERSION 13030\n");
    put("newer/include/cccl/cuda/std/cstdint", "");
    put("fits/lib64/libnvrtc.so.13", "");
    put("fits/include/cuda_fp16.h", "");
    put("fits/include/cuda.h", "#define CUDA_VERSION 13000\n");
    put("fits/include/cccl/cuda/std/cstdint", "");
    setenv("CUDA_HOME", newer, 1);
    setenv("CUDA_PATH", fits, 1);
    tools_look(&(struct tools_config){0}, a, &t);
    assert_string_equal(t.nvrtc, path_join(a, fits, "lib64/libnvrtc.so.13"));
    unsetenv("CUDA_PATH");
    unsetenv("CUDA_HOME");
    tools_look(&(struct tools_config){.cuda = newer}, a, &t);
    assert_string_equal(t.nvrtc, path_join(a, newer, "lib64/libnvrtc.so.13"));
}

static void test_a_toolkit_that_is_named_is_the_one(void **state)
{
    struct tools t;
    struct error err = {0};
    (void)state;
    assert_false(tools_find(&(struct tools_config){.cuda = root}, a, &t, &err));
    assert_int_equal(err.kind, ERROR_MACHINE);
    assert_non_null(strstr(err.text, root));
    assert_non_null(strstr(err.hint, "--cuda PATH"));
}

static void test_a_compiler_that_is_named_is_the_one(void **state)
{
    struct tools_config config = {.cc = "/nowhere/cc"};
    struct tools t;
    struct error err = {0};
    (void)state;
    tools_look(&config, a, &t);
    assert_null(t.cc);
    assert_false(tools_for_simt(&config, &t, &err));
    assert_int_equal(err.kind, ERROR_MACHINE);
    assert_non_null(strstr(err.text, "/nowhere/cc"));
    assert_non_null(strstr(err.hint, "--cc PATH"));
}

static void test_named_cutlass_that_is_not_there(void **state)
{
    struct tools t;
    (void)state;
    put_cutlass("other/include");
    setenv("CUTLASS_PATH", path_join(a, root, "other"), 1);
    tools_look(&(struct tools_config){.cutlass = path_join(a, root, "empty")}, a, &t);
    unsetenv("CUTLASS_PATH");
    assert_true(t.cutlass_include == NULL || strstr(t.cutlass_include, "other") == NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_toolkit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_wheels, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_wheels_of_cuda_12, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_place_with_both_is_taken_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_version_cutlass_does_not_go_with_comes_last, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_toolkit_that_is_named_is_the_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_compiler_that_is_named_is_the_one, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_named_cutlass_that_is_not_there, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("tools are found where they are", tests, NULL, NULL);
}
