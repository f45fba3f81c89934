/*
 * test_recorder.c - launches are written to the pipe at once, with the library they come from.
 *
 * CUPTI is fake_cupti.c, cuBLAS is fake_cublas.c. Which launches refuse a candidate is tested with
 * the record of tests/eval/test_witness.c.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void *library(const char *variable)
{
    const char *path = getenv(variable);
    void *lib = path ? dlopen(path, RTLD_NOW | RTLD_GLOBAL) : NULL;

    if (!lib)
        fail_msg("%s: %s", variable, path ? dlerror() : "not set");
    return lib;
}

typedef int number(void);

static number *function(void *lib, const char *name)
{
    number *f = (number *)(uintptr_t)dlsym(lib, name);

    assert_non_null(f);
    return f;
}

static void launches_are_written_with_their_library(void **state)
{
    char dir[] = "/tmp/recorder-test-XXXXXX", path[64], text[4096];
    ssize_t n;
    int fd;

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/launches", dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    setenv("CUTEGEN_RECORD", path, 1);
    library("CUTEGEN_CUPTI");
    assert_int_equal(function(library("RECORDER"), "InitializeInjection")(), 1);
    assert_int_equal(function(library("FAKE_CUBLAS"), "cublas_launches")(), 1);
    n = read(fd, text, sizeof text - 1);
    assert_true(n > 0);
    text[n] = '\0';
    assert_string_equal(text, "! recording\nlibcublasfake.so sm80_xmma_gemm_f32\n");
    close(fd);
    unlink(path);
    rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(launches_are_written_with_their_library)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
