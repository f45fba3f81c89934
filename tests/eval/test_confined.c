/*
 * test_confined.c - a kernel's process on a GPU is shut in, and has all it needs.
 *
 * The driver is tests/runner/fake_cuda.c, found by LD_LIBRARY_PATH as a user's may be.
 */
#include "base/fs.h"
#include "base/json.h"
#include "eval/runner_client.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const struct device gpu = {.kind = DEVICE_CUDA, .name = "fake", .arch = "sm_90a"};

struct bench {
    struct arena *a;
    char *dir;
    struct build_result build;
    struct runner_config config;
    struct error err;
};

static json_t *parse(const char *text)
{
    json_t *v = json_loads(text, 0, NULL);

    assert_non_null(v);
    return v;
}

static void open_bench(struct bench *b)
{
    memset(b, 0, sizeof *b);
    b->a = arena_new();
    assert_true(dir_temp("confined-test", b->a, &b->dir, &b->err));
    b->build.module_path = path_join(b->a, b->dir, "module");
    b->build.names = parse("{\"scale<2>\": \"scale\"}");
    b->build.launches = parse(
        "{\"workspace\": [], \"maps\": [], \"ops\": [{\"op\": \"launch\", \"kernel\": \"scale<2>\","
        "\"line\": 9, \"grid\": [4, 1, 1], \"block\": [64, 1, 1], \"cluster\": [1, 1, 1], "
        "\"smem\": 0,"
        "\"args\": [{\"buffer\": \"out0\", \"offset\": 0}, {\"buffer\": \"in0\", \"offset\": 0},"
        "{\"bytes\": \"00010000\"}]}]}");
    assert_true(file_write(b->build.module_path, text_of("scale 8 8 4\n"), &b->err));
    b->config = (struct runner_config){.device = &gpu,
                                       .program = getenv("RUNNER"),
                                       .module = b->build.module_path,
                                       .buffers = b->dir};
}

static void close_bench(struct bench *b)
{
    json_decref(b->build.names);
    json_decref(b->build.launches);
    assert_true(dir_remove(b->dir, &b->err));
    arena_free(b->a);
}

static int parent_of(int pid)
{
    char path[64], name[64];
    int parent = 0;
    FILE *f;

    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    f = fopen(path, "re");
    if (f && fscanf(f, "%*d (%63[^)]) %*c %d", name, &parent) != 2)
        parent = 0;
    if (f)
        fclose(f);
    return parent;
}

static bool is_ours(int pid)
{
    for (int up = pid, n = 0; up > 1 && n < 8; up = parent_of(up), n++)
        if (up == (int)getpid())
            return true;
    return false;
}

/* Of our processes, those that run cutegen-runner: how many, and how many with a filter. */
static void count_runners(struct bench *b, int *all, int *filtered)
{
    DIR *d = opendir("/proc");
    struct dirent *e;

    *all = *filtered = 0;
    while (d && (e = readdir(d))) {
        const char *status = arena_printf(b->a, "/proc/%s/status", e->d_name);
        struct error ignored = {0};
        struct text text;

        if (!is_ours(atoi(e->d_name)) || !file_read(status, 1 << 16, b->a, &text, &ignored) ||
            strncmp(text.data, "Name:\tcutegen-runner", 20) != 0)
            continue;
        ++*all;
        *filtered += strstr(text.data, "Seccomp:\t2") != NULL;
    }
    if (d)
        closedir(d);
}

static void a_kernel_is_loaded_inside_the_confinement(void **state)
{
    struct runner_answer said;
    struct runner *r;
    struct bench b;
    int all, filtered;

    (void)state;
    open_bench(&b);
    if (!runner_start(&b.config, &r, &b.err) || !runner_load(r, &b.build, b.a, &said, &b.err))
        fail_msg("%s", b.err.text);
    assert_int_equal(said.verdict, VERDICT_PASS);
    count_runners(&b, &all, &filtered);
    assert_int_equal(all, 1);
    assert_int_equal(filtered, 1);
    runner_answer_release(&said);
    runner_stop(r);
    close_bench(&b);
}

/* Here the module is another than was built: the one in the request is looked at, too. */
static void another_module_than_was_built_is_not_loaded(void **state)
{
    struct runner_answer said;
    struct runner *r;
    struct bench b;

    (void)state;
    open_bench(&b);
    b.build.module_hash = "00";
    if (!runner_start(&b.config, &r, &b.err))
        fail_msg("%s", b.err.text);
    assert_false(runner_load(r, &b.build, b.a, &said, &b.err));
    assert_non_null(strstr(b.err.text, "not the module that was built"));
    runner_stop(r);
    close_bench(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kernel_is_loaded_inside_the_confinement),
        cmocka_unit_test(another_module_than_was_built_is_not_loaded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
