/* support.h - what the tests of simt share: compile a PTX file, run a kernel. */
#ifndef TESTS_SIMT_SUPPORT_H
#define TESTS_SIMT_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "simt/emit/translate.h"
#include "simt/simt.h"

#include "base/fs.h"

#include <stdlib.h>
#include <string.h>

#ifndef SIMT_TESTS_DIR
#define SIMT_TESTS_DIR "tests/simt"
#endif

struct bench_args {
    unsigned char data[256];
    size_t len;
};

static inline void put_arg(struct bench_args *x, const void *v, size_t n)
{
    x->len = (x->len + n - 1) / n * n;
    memcpy(x->data + x->len, v, n);
    x->len += n;
}

static inline char *cache_dir(struct arena *a)
{
    struct error err = {0};
    char *dir = NULL;
    if (!home_cache("simt-tests", a, &dir, &err))
        fail_msg("%s", err.text);
    return dir;
}

/* The shared object of all kernels of a PTX text. */
static inline char *compile_text(struct text ptx, struct arena *a)
{
    struct error err = {0};
    struct translate_options opt = {.cache_dir = cache_dir(a)};
    struct simt_built built;
    const char **names;
    size_t n;
    if (!simt_kernel_names(ptx, a, &names, &n, &err) ||
        !simt_compile(ptx, names, n, &opt, a, &built, &err))
        fail_msg("%s", err.text);
    return built.so_path;
}

static inline char *compile_file(const char *name, struct arena *a)
{
    struct error err = {0};
    struct text ptx;
    if (!file_read(path_join(a, SIMT_TESTS_DIR "/ptx", name), 64 << 20, a, &ptx, &err))
        fail_msg("%s", err.text);
    return compile_text(ptx, a);
}

#endif
