/* test_foreign.c - what goes along with a module: the files that its record names, and no others.
 */
#include "eval/foreign.h"

#include "base/buf.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

struct bench {
    struct arena *a;
    char *dir;
    struct error err;
};

static void open_bench(struct bench *b)
{
    *b = (struct bench){.a = arena_new()};
    assert_true(dir_temp("foreign-test", b->a, &b->dir, &b->err));
}

static void close_bench(struct bench *b)
{
    struct error ignored = {0};

    assert_true(dir_remove(b->dir, &ignored));
    arena_free(b->a);
}

static void put(struct bench *b, const char *name, const char *text)
{
    assert_true(file_write(path_join(b->a, b->dir, name), text_of(text), &b->err));
}

/* With module.py and a record of these files. */
static bool prepare(struct bench *b, const char *files)
{
    struct task task = {.description = json_pack("{s:[], s:[]}", "inputs", "outputs")};
    struct candidate cand = {.foreign = path_join(b->a, b->dir, "module.py"),
                             .source = text_of("class ModelNew: pass\n")};
    struct build_result build = {.work_dir = path_join(b->a, b->dir, "work")};
    bool ok;

    put(b, "module.py", "class ModelNew: pass\n");
    put(b, "record.json", arena_printf(b->a, "{\"files\": {%s}}", files));
    assert_true(dir_make(build.work_dir, &b->err));
    ok = foreign_prepare(&task, &cand, false, b->a, &build, &b->err);
    json_decref(build.foreign);
    json_decref(task.description);
    return ok;
}

static bool came_along(struct bench *b, const char *name)
{
    return file_exists(path_join(b->a, b->dir, arena_printf(b->a, "work/module/%s", name)));
}

static const char *named(struct bench *b, const char *name, const char *text)
{
    char hex[65];

    hash_text(text_of(text), hex);
    return arena_printf(b->a, "\"%s\": \"%s\"", name, hex);
}

static void a_file_with_its_hash_goes_along(void **state)
{
    struct bench b;

    (void)state;
    open_bench(&b);
    put(&b, "kernel.cubin", "code");
    put(&b, "other", "not named");
    assert_true(prepare(&b, named(&b, "kernel.cubin", "code")));
    assert_true(came_along(&b, "kernel.cubin"));
    assert_true(came_along(&b, "module.py"));
    assert_false(came_along(&b, "other"));
    close_bench(&b);
}

static void another_file_under_that_name_is_refused(void **state)
{
    struct bench b;

    (void)state;
    open_bench(&b);
    put(&b, "kernel.cubin", "other code");
    assert_false(prepare(&b, named(&b, "kernel.cubin", "code")));
    assert_non_null(strstr(b.err.text, "is not the file that record.json names"));
    close_bench(&b);
}

static void files_elsewhere_stay_there(void **state)
{
    struct bench b;

    (void)state;
    open_bench(&b);
    put(&b, "outside", "secret");
    assert_true(prepare(&b, arena_printf(b.a, "%s, %s", named(&b, "../outside", "secret"),
                                         named(&b, ".hidden", "secret"))));
    assert_false(came_along(&b, "outside"));
    close_bench(&b);
}

static void a_record_that_names_no_file_but_a_pipe_is_refused(void **state)
{
    struct bench b;

    (void)state;
    open_bench(&b);
    assert_int_equal(mkfifo(path_join(b.a, b.dir, "kernel.cubin"), 0600), 0);
    assert_false(prepare(&b, named(&b, "kernel.cubin", "code")));
    close_bench(&b);
}

/* Each may be as large as all: read one after the other, they would fill the machine. */
static void a_record_of_files_without_end_is_refused(void **state)
{
    struct bench b;
    struct buf list = buf_init(1 << 20);

    (void)state;
    open_bench(&b);
    put(&b, "part", "code");
    for (int i = 0; i < 2000; i++)
        buf_printf(&list, "%s\"part%d\": \"0\"", i ? ", " : "", i);
    assert_false(prepare(&b, buf_text(&list).data));
    assert_non_null(strstr(b.err.text, "names more than"));
    buf_release(&list);
    close_bench(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_with_its_hash_goes_along),
        cmocka_unit_test(another_file_under_that_name_is_refused),
        cmocka_unit_test(files_elsewhere_stay_there),
        cmocka_unit_test(a_record_that_names_no_file_but_a_pipe_is_refused),
        cmocka_unit_test(a_record_of_files_without_end_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
