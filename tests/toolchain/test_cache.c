/* test_cache.c - many processes keep, fetch and drop the same entries; no process ever gets half of
 * one. */
#include "base/fs.h"
#include "base/shared.h"
#include "toolchain/build_cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROCESSES = 12, ROUNDS = 150, KEYS = 6, LIMIT = 3 };

static const char *const files[] = {"kernel.ptx", "kernel.cubin", "build.json"};

static const char *key_of(int number, struct arena *a)
{
    return arena_printf(a, "%064d", number);
}

/* All files of an entry say the same, and how long they are. */
static char *content(int number, struct arena *a)
{
    char *text = arena_printf(a, "%*d entry %d", 4000 + 100 * number, number, number);
    return text;
}

static bool put_files(const char *dir, int number, struct arena *a)
{
    struct error err = {0};
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        if (!file_write(path_join(a, dir, files[i]), text_of(content(number, a)), &err))
            return false;
    return true;
}

static bool whole(const char *dir, int number, struct arena *a)
{
    struct error err = {0};
    struct text text;
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        if (!file_read(path_join(a, dir, files[i]), 1 << 20, a, &text, &err) ||
            strcmp(text.data, content(number, a)) != 0)
            return false;
    return true;
}

/* Exit status: 0 all was whole. */
static int work(int process)
{
    struct error err = {0};
    int fetched = 0;
    srandom((unsigned)process);
    for (int round = 0; round < ROUNDS; round++) {
        struct arena *a = arena_new();
        int number = (int)(random() % KEYS);
        char *dir;
        if (!dir_temp("cache-test", a, &dir, &err))
            return 2;
        if (build_cache_fetch(key_of(number, a), dir, files, ARRAY_LEN(files), a)) {
            fetched++;
            if (!whole(dir, number, a))
                return 1;
        } else {
            if (!put_files(dir, number, a))
                return 2;
            build_cache_keep(key_of(number, a), dir, files, ARRAY_LEN(files), a);
        }
        if (random() % 4 == 0)
            build_cache_prune(LIMIT, a);
        dir_remove(dir, &err);
        arena_free(a);
    }
    return fetched > 0 ? 0 : 3;
}

static void no_process_gets_half_an_entry(void **state)
{
    struct arena *a = arena_new();
    struct error err = {0};
    pid_t pids[PROCESSES];
    char *cache;
    (void)state;
    assert_true(dir_temp("cache-test", a, &cache, &err));
    setenv("CUTEGEN_CACHE", cache, 1);
    for (int i = 0; i < PROCESSES; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            _exit(work(i));
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    assert_true(dir_remove(cache, &err));
    arena_free(a);
}

/* ---- between machines ---------------------------------------------------------- */

struct other_machine {
    struct text kept;
    struct arena *a;
    int puts;
};

static bool other_get(void *ctx, const char *key, struct arena *a, struct text *data)
{
    struct other_machine *o = ctx;

    (void)key, (void)a;
    *data = o->kept;
    return o->kept.data != NULL;
}

static void other_put(void *ctx, const char *key, struct text data)
{
    struct other_machine *o = ctx;

    (void)key;
    o->kept = arena_text(o->a, data.data, data.len);
    o->puts++;
}

static char *new_cache(struct arena *a)
{
    struct error err = {0};
    char *cache;

    assert_true(dir_temp("cache-test", a, &cache, &err));
    setenv("CUTEGEN_CACHE", cache, 1);
    return cache;
}

static void a_machine_gets_what_another_made_and_nothing_else(void **state)
{
    struct arena *a = arena_new();
    struct other_machine other = {.a = a};
    const struct shared_files share = {.get = other_get, .put = other_put, .ctx = &other};
    struct error err = {0};
    char *here = new_cache(a), *there, *dir;
    static const char *const bad[] = {
        "",
        "cutegen kernel 1 KEY\n../escaped 1\nx",
        "cutegen kernel 1 KEY\nkernel.ptx 1000\nx",
        "cutegen kernel 1 KEY\nkernel.ptx -1\nx",
        "cutegen kernel 1 KEY\nkernel.ptx\n",
        "cutegen kernel 1 KEY\nkernel.ptx 1",
    };

    (void)state;
    assert_true(dir_temp("cache-test", a, &dir, &err) && put_files(dir, 3, a));
    assert_false(build_cache_find(&share, key_of(3, a), dir, files, ARRAY_LEN(files), a));
    build_cache_add(&share, key_of(3, a), dir, files, ARRAY_LEN(files), a);
    assert_int_equal(other.puts, 1);
    there = new_cache(a);
    assert_true(dir_temp("cache-test", a, &dir, &err));
    assert_false(build_cache_find(NULL, key_of(3, a), dir, files, ARRAY_LEN(files), a));
    assert_false(build_cache_find(&share, key_of(4, a), dir, files, ARRAY_LEN(files), a));
    assert_true(build_cache_find(&share, key_of(3, a), dir, files, ARRAY_LEN(files), a));
    assert_true(whole(dir, 3, a));
    assert_true(
        build_cache_find(NULL, key_of(3, a), dir, files, ARRAY_LEN(files), a)); /* it stays */
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        const char *at = strstr(bad[i], "KEY");

        other.kept = text_of(
            at ? arena_printf(a, "%.*s%s%s", (int)(at - bad[i]), bad[i], key_of(4, a), at + 3)
               : bad[i]);
        if (build_cache_find(&share, key_of(4, a), dir, files, ARRAY_LEN(files), a))
            fail_msg("taken: %s", bad[i]);
    }
    assert_false(file_exists(arena_printf(a, "%s/../escaped", dir)));
    assert_true(dir_remove(here, &err) && dir_remove(there, &err) && dir_remove(dir, &err));
    arena_free(a);
}

/* ---- headers ------------------------------------------------------------------- */

/* What a copy of a library's headers is known by. */
static void library(const char *include, char hex[65])
{
    static const char *const folders[2] = {"cute", "cutlass"};
    build_cache_library(include, folders, hex);
}

static void copies_of_a_library_are_one_wherever_they_lie(void **state)
{
    struct arena *a = arena_new();
    struct error err = {0};
    char *copy[2], hex[3][65];
    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_true(dir_temp("cache-test", a, &copy[i], &err));
        assert_true(dir_make(path_join(a, copy[i], "cute"), &err));
        assert_true(dir_make(path_join(a, copy[i], "cute/atom"), &err));
        assert_true(dir_make(path_join(a, copy[i], "cutlass"), &err));
        assert_true(file_write(path_join(a, copy[i], "cute/tensor.hpp"), text_of("t"), &err));
        assert_true(file_write(path_join(a, copy[i], "cute/atom/copy.hpp"), text_of("c"), &err));
        library(copy[i], hex[i]);
    }
    assert_string_equal(hex[0], hex[1]);
    assert_true(file_write(path_join(a, copy[1], "cute/atom/copy.hpp"), text_of("changed"), &err));
    library(copy[1], hex[2]);
    assert_string_not_equal(hex[0], hex[2]);
    assert_true(file_write(path_join(a, copy[0], "cutlass/more.h"), text_of(""), &err));
    library(copy[0], hex[2]);
    assert_string_not_equal(hex[0], hex[2]);
    for (int i = 0; i < 2; i++)
        assert_true(dir_remove(copy[i], &err));
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_process_gets_half_an_entry),
        cmocka_unit_test(a_machine_gets_what_another_made_and_nothing_else),
        cmocka_unit_test(copies_of_a_library_are_one_wherever_they_lie),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
