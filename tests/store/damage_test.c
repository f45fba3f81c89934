/* damage_test.c - a damaged, foreign or read-only store file is reported with what to do next. */
#include "support.h"

#include "base/fs.h"

#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void sql(struct place *p, const char *text)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path_join(p->a, p->dir, "store.db"), &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void make_newer(struct place *p)
{
    sql(p, "PRAGMA user_version = 999");
}

static void make_foreign(struct place *p)
{
    sql(p, "PRAGMA application_id = 7");
}

static void make_garbage(struct place *p)
{
    struct error err = {0};
    char *text = arena_alloc(p->a, 8193);
    memset(text, 'x', 8192);
    assert_ok(file_write(path_join(p->a, p->dir, "store.db"), text_of(text), &err));
}

/* The first pages are as they were, those of the tables are not. */
static void make_damaged(struct place *p)
{
    struct error err = {0};
    struct text t;
    char *path = path_join(p->a, p->dir, "store.db");
    assert_ok(file_read(path, 64 << 20, p->a, &t, &err));
    char *copy = arena_strndup(p->a, t.data, t.len);
    memset(copy + 4096, 0x5a, t.len - 4096);
    assert_ok(file_write(path, (struct text){copy, t.len}, &err));
}

static void make_gone(struct place *p)
{
    unlink(path_join(p->a, p->dir, "store.db"));
}

static const struct damage_case {
    const char *name;
    void (*make)(struct place *);
    enum store_mode mode;
    enum error_kind kind;
    const char *says;
} damages[] = {
    {"a newer file", make_newer, STORE_WRITE, ERROR_MACHINE, "newer cutegen"},
    {"a newer file, read", make_newer, STORE_READ, ERROR_MACHINE, "newer cutegen"},
    {"another program's file", make_foreign, STORE_WRITE, ERROR_MACHINE, "another program"},
    {"no database at all", make_garbage, STORE_WRITE, ERROR_MACHINE, "damaged"},
    {"pages overwritten", make_damaged, STORE_READ, ERROR_MACHINE, "damaged"},
    {"no file to read", make_gone, STORE_READ, ERROR_USE, "no runs yet"},
};

static void damage_is_reported_with_what_to_do_next(void **state)
{
    struct place *p = *state;

    for (size_t i = 0; i < ARRAY_LEN(damages); i++) {
        const struct damage_case *c = &damages[i];
        struct error err = {0};
        struct run_info *list;
        size_t n;

        assert_ok(dir_remove(p->dir, &err));
        place_reopen(p);
        run_release(small_run(p));
        store_close(p->s);
        p->s = NULL;
        c->make(p);
        bool ok = store_open(p->dir, NULL, c->mode, &p->s, &err);
        if (ok) {
            ok = store_run_list(p->s, NULL, p->a, &list, &n, &err);
            store_close(p->s);
            p->s = NULL;
        }
        if (ok || err.kind != c->kind || !strstr(err.text, c->says) || !*err.hint)
            fail_msg("%s: got \"%s\" (%s)", c->name, err.text, err.hint);
    }
}

/* Root writes where it may not: try as nobody. */
static void a_folder_that_may_not_be_written_can_still_be_read(void **state)
{
    struct place *p = *state;
    int status;

    run_release(small_run(p));
    store_close(p->s);
    p->s = NULL;
    char *top = arena_strndup(p->a, p->dir, (size_t)(strrchr(p->dir, '/') - p->dir));
    assert_int_equal(chmod(top, 0755), 0);
    assert_int_equal(chmod(p->dir, 0555), 0);
    assert_int_equal(chmod(path_join(p->a, p->dir, "store.db"), 0444), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct error err = {0};
        struct run_info *list;
        struct store *s;
        size_t n;
        if (getuid() == 0 && setuid(65534) != 0)
            _exit(77);
        if (store_open(p->dir, NULL, STORE_WRITE, &s, &err) || !strstr(err.text, "may not write"))
            _exit(1);
        err = (struct error){0};
        if (!store_open(p->dir, NULL, STORE_READ, &s, &err) ||
            !store_run_list(s, NULL, p->a, &list, &n, &err) || n != 1)
            _exit(2);
        char sha[65];
        _exit(blob_put(s, text_of("x"), sha, &err) || !*err.hint ? 3 : 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    chmod(p->dir, 0755);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(status, 0);
}

#define STORE_TEST(f) cmocka_unit_test_setup_teardown(f, place_set_up, place_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(damage_is_reported_with_what_to_do_next),
        STORE_TEST(a_folder_that_may_not_be_written_can_still_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
