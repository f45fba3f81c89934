/* test_fs.c - files are read within a limit and written whole or not at all. */
#include "base/fs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct fixture {
    struct arena *a;
    char *dir;
    struct error err;
};

static int set_up(void **state)
{
    struct fixture *f = xmalloc(sizeof(*f));

    f->a = arena_new();
    *state = f;
    return dir_temp("test-fs", f->a, &f->dir, &f->err) ? 0 : -1;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    bool ok = dir_remove(f->dir, &f->err) && !file_exists(f->dir);

    arena_free(f->a);
    xfree(f);
    return ok ? 0 : -1;
}

static void what_is_written_is_read_back(void **state)
{
    struct fixture *f = *state;
    char *path = path_join(f->a, f->dir, "x");
    struct text t;

    assert_true(file_write(path, (struct text){"a\0b", 3}, &f->err));
    assert_true(file_read(path, 100, f->a, &t, &f->err));
    assert_int_equal(t.len, 3);
    assert_memory_equal(t.data, "a\0b", 3);
}

static void a_file_over_the_limit_is_an_error_that_names_it(void **state)
{
    struct fixture *f = *state;
    char *path = path_join(f->a, f->dir, "big");
    struct text t;

    assert_true(file_write(path, text_of("12345"), &f->err));
    assert_false(file_read(path, 4, f->a, &t, &f->err));
    assert_non_null(strstr(f->err.text, "big"));
    f->err = (struct error){0};
    assert_false(file_read("/no/such/file", 4, f->a, &t, &f->err));
    assert_non_null(strstr(f->err.text, "/no/such/file"));
}

static void only_regular_files_are_read_and_nothing_waits(void **state)
{
    struct fixture *f = *state;
    char *fifo = path_join(f->a, f->dir, "fifo"), *link = path_join(f->a, f->dir, "link");
    const struct {
        const char *path, *kind;
    } cases[] = {{fifo, "a FIFO"}, {link, "a device"}, {f->dir, "a folder"}};
    struct text t;

    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(symlink("/dev/zero", link), 0);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        f->err = (struct error){0};
        assert_false(file_read(cases[i].path, 1 << 20, f->a, &t, &f->err));
        assert_non_null(strstr(f->err.text, cases[i].kind));
        assert_int_equal(f->err.kind, ERROR_USE);
        assert_true(f->err.hint[0]);
    }
}

/* In a child, because a file-size limit cannot be taken back. */
static void a_write_that_fails_leaves_the_old_file_and_nothing_else(void **state)
{
    struct fixture *f = *state;
    char *path = path_join(f->a, f->dir, "kept"), *big = xmalloc(100000);
    struct text t;
    int status;
    pid_t pid;

    assert_true(file_write(path, text_of("old"), &f->err));
    pid = fork();
    if (pid == 0) {
        struct rlimit limit = {4096, 4096};

        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &limit);
        _exit(file_write(path, (struct text){big, 100000}, &f->err) ? 1 : 0);
    }
    waitpid(pid, &status, 0);
    xfree(big);
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_true(file_read(path, 100, f->a, &t, &f->err));
    assert_string_equal(t.data, "old");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(f->dir), 0); /* no temporary file is left */
    assert_true(dir_make(f->dir, &f->err));
}

static void folders_are_made_with_parents_and_removed_with_content(void **state)
{
    struct fixture *f = *state;
    char *deep = path_join(f->a, f->dir, "a/b/c");

    assert_true(dir_make(deep, &f->err));
    assert_true(dir_make(deep, &f->err));
    assert_true(file_write(path_join(f->a, deep, "x"), text_of("x"), &f->err));
    assert_int_equal(symlink("/", path_join(f->a, deep, "root")), 0);
    assert_true(dir_remove(path_join(f->a, f->dir, "a"), &f->err));
    assert_false(file_exists(path_join(f->a, f->dir, "a")));
    assert_true(file_exists("/"));
    assert_true(file_write(path_join(f->a, f->dir, "file"), text_of("x"), &f->err));
    assert_false(dir_make(path_join(f->a, f->dir, "file/x"), &f->err));
}

static void path_parts_are_cut_as_people_read_them(void **state)
{
    struct fixture *f = *state;

    assert_string_equal(path_stem(f->a, "/x/swish.py"), "swish");
    assert_string_equal(path_stem(f->a, "a.b.cu"), "a.b");
    assert_string_equal(path_stem(f->a, ".hidden"), ".hidden");
    assert_string_equal(path_base("/x/y"), "y");
    assert_string_equal(path_join(f->a, "/x/", "y"), "/x/y");
    assert_string_equal(path_absolute(f->a, "/usr/../usr"), "/usr");
    assert_int_equal(symlink("/usr", path_join(f->a, f->dir, "link")), 0);
    assert_string_equal(path_absolute(f->a, path_join(f->a, f->dir, "link")), "/usr");
    assert_string_equal(path_from_here(f->a, path_join(f->a, f->dir, "link")),
                        path_join(f->a, f->dir, "link"));
}

static void a_home_beside_us_is_named_from_the_root(void **state)
{
    struct fixture *f = *state;
    char *found = NULL;

    assert_int_equal(setenv("CUTEGEN_HOME", ".", 1), 0);
    assert_true(home_data("", f->a, &found, &f->err));
    assert_int_equal(unsetenv("CUTEGEN_HOME"), 0);
    assert_int_equal(found[0], '/');
}

static void programs_are_found_on_path_only(void **state)
{
    struct fixture *f = *state;
    char *plain = path_join(f->a, f->dir, "plain");

    assert_non_null(path_find_program(f->a, "sh"));
    assert_null(path_find_program(f->a, "no-such-program-here"));
    assert_true(file_write(plain, text_of("x"), &f->err));
    assert_null(path_find_program(f->a, plain)); /* not executable */
    assert_null(path_find_program(f->a, f->dir));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_is_written_is_read_back),
        TEST(a_file_over_the_limit_is_an_error_that_names_it),
        TEST(only_regular_files_are_read_and_nothing_waits),
        TEST(a_write_that_fails_leaves_the_old_file_and_nothing_else),
        TEST(folders_are_made_with_parents_and_removed_with_content),
        TEST(path_parts_are_cut_as_people_read_them),
        TEST(a_home_beside_us_is_named_from_the_root),
        TEST(programs_are_found_on_path_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
