/* test_seal.c - what was changed, swapped, cut or written by somebody else is not believed. */
#include "base/fs.h"
#include "base/log.h"
#include "base/seal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct fixture {
    struct arena *a;
    char *dir, *one, *two;
    struct error err;
};

static int set_up(void **state)
{
    struct fixture *f = xmalloc(sizeof(*f));

    f->a = arena_new();
    if (!dir_temp("test-seal", f->a, &f->dir, &f->err))
        return -1;
    setenv("CUTEGEN_CACHE", path_join(f->a, f->dir, "cache"), 1);
    f->one = path_join(f->a, f->dir, "one");
    f->two = path_join(f->a, f->dir, "two");
    *state = f;
    return seal_save(f->one, "x/one", text_of("first"), &f->err) &&
                   seal_save(f->two, "x/two", text_of("other"), &f->err)
               ? 0
               : -1;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    dir_remove(f->dir, &f->err);
    arena_free(f->a);
    xfree(f);
    return 0;
}

static bool loads(struct fixture *f, const char *path, const char *name, const char *want)
{
    struct text t;

    return seal_load(path, name, 100, f->a, &t) && t.len == strlen(want) &&
           strcmp(t.data, want) == 0;
}

static struct text raw(struct fixture *f, const char *path)
{
    struct text t = {"", 0};

    assert_true(file_read(path, 1000, f->a, &t, &f->err));
    return t;
}

static void what_was_saved_comes_back_byte_for_byte(void **state)
{
    struct fixture *f = *state;
    static const char bytes[] = "a\0b\ncutegen seal 1 \n";
    struct text t;

    assert_true(loads(f, f->one, "x/one", "first"));
    assert_true(seal_save(f->one, "x/one", (struct text){bytes, sizeof(bytes)}, &f->err));
    assert_true(seal_load(f->one, "x/one", 100, f->a, &t));
    assert_int_equal(t.len, sizeof(bytes));
    assert_memory_equal(t.data, bytes, sizeof(bytes));
    assert_true(seal_save(f->one, "x/one", text_of(""), &f->err));
    assert_true(loads(f, f->one, "x/one", ""));
}

static void a_changed_byte_is_noticed_and_the_file_removed(void **state)
{
    struct fixture *f = *state;
    struct text t = raw(f, f->one);

    for (size_t i = 0; i < t.len; i++) {
        char *copy = arena_strndup(f->a, t.data, t.len);

        copy[i] ^= 1;
        assert_true(file_write(f->one, (struct text){copy, t.len}, &f->err));
        assert_false(loads(f, f->one, "x/one", "first"));
        assert_false(file_exists(f->one));
    }
    for (size_t len = 0; len < t.len; len++) {
        assert_true(file_write(f->one, (struct text){t.data, len}, &f->err));
        assert_false(loads(f, f->one, "x/one", "first"));
    }
}

static void a_valid_file_in_the_place_of_another_is_noticed(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(rename(f->two, f->one), 0);
    assert_false(loads(f, f->one, "x/one", "other"));
}

static void a_file_sealed_with_another_key_is_noticed(void **state)
{
    struct fixture *f = *state;
    char *key = path_join(f->a, getenv("CUTEGEN_CACHE"), "seal.key");
    struct stat st;

    assert_int_equal(stat(getenv("CUTEGEN_CACHE"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_int_equal(stat(key, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(unlink(key), 0);
    assert_false(loads(f, f->one, "x/one", "first"));
}

static void a_key_that_others_can_read_is_not_used(void **state)
{
    struct fixture *f = *state;
    char *key = path_join(f->a, getenv("CUTEGEN_CACHE"), "seal.key");

    assert_int_equal(chmod(key, 0644), 0);
    assert_false(loads(f, f->one, "x/one", "first"));
    assert_true(seal_save(f->one, "x/one", text_of("again"), &f->err));
    assert_true(loads(f, f->one, "x/one", "again"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_saved_comes_back_byte_for_byte, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_changed_byte_is_noticed_and_the_file_removed, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_valid_file_in_the_place_of_another_is_noticed, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_file_sealed_with_another_key_is_noticed, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_key_that_others_can_read_is_not_used, set_up, tear_down),
    };

    log_set_level(LOG_QUIET);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
