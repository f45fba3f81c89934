/*
 * full_test.c - a full disk stops the work, says so, and leaves the store whole.
 *
 * Each way of writing is tried with the disk full from its first, second,
 * third... write on, until it has enough to succeed.
 */
#include "faulty.h"
#include "support.h"

#include "base/fs.h"

#include <signal.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static bool add_call(struct place *p, struct run *r, struct error *err)
{
    char *big = arena_alloc(p->a, 30001);
    memset(big, 'k', 30000);
    struct message m = {"user", {big, 20000}};
    struct request req = {.stage = STAGE_OPTIMIZE, .messages = &m, .message_count = 1};
    struct reply reply = {.text = {big, 30000}, .cost_usd = 1};
    return run_call_add(r, 2, 0, &req, &reply, err);
}

static bool begin_attempt(struct place *p, struct run *r, struct error *err)
{
    struct candidate c = {
        .attempt = 2, .depth = 1, .source = text_of(source_text(p->a, 69)), .change = "x"};
    return run_attempt_begin(r, &c, STAGE_OPTIMIZE, 1, err);
}

static bool end_attempt(struct place *p, struct run *r, struct error *err)
{
    struct attempt_outcome o = {.step = STEP_BUILD, .verdict = {.kind = VERDICT_COMPILE_ERROR}};
    char *detail = arena_alloc(p->a, 20001);
    memset(detail, 'd', 20000);
    o.verdict.detail = detail;
    return run_attempt_end(r, 2, &o, err);
}

static bool create_run(struct place *p, struct run *r, struct error *err)
{
    struct task t = small_task(p->a);
    struct run_spec spec = {.task = &t, .device = &small_device, .model = "builtin"};
    struct run *another = NULL;
    bool ok = run_create(p->s, &spec, &another, err);

    (void)r;
    json_decref(t.description);
    run_release(another);
    return ok;
}

static bool end_run(struct place *p, struct run *r, struct error *err)
{
    (void)p;
    return run_end(r, RUN_DONE, "done", err);
}

static bool nothing(struct place *p, struct run *r, struct error *err)
{
    (void)p, (void)r, (void)err;
    return true;
}

static const struct write_case {
    const char *name;
    bool (*before)(struct place *, struct run *, struct error *);
    bool (*write)(struct place *, struct run *, struct error *);
} writes[] = {
    {"a call", nothing, add_call},
    {"an attempt begins", nothing, begin_attempt},
    {"an attempt ends", begin_attempt, end_attempt},
    {"a run is created", nothing, create_run},
    {"a run ends", nothing, end_run},
};

/* All that a reader can see, in one line. */
static const char *visible(struct place *p)
{
    struct error err = {0};
    struct run_info *list;
    struct run_history h;
    size_t n;
    char *s = arena_strdup(p->a, "");

    assert_ok(store_run_list(p->s, NULL, p->a, &list, &n, &err));
    for (size_t i = 0; i < n; i++) {
        assert_ok(store_run_history(p->s, list[i].id, p->a, &h, &err));
        int ended = 0;
        for (size_t k = 0; k < h.attempt_count; k++)
            ended += h.attempts[k].ended_ms > 0;
        s = arena_printf(p->a, "%s %s:%zu calls, %zu begun, %d ended, %s", s, list[i].id,
                         h.call_count, h.attempt_count, ended, run_state_names[list[i].state]);
        run_history_release(&h);
    }
    return s;
}

static int count_folders(struct place *p)
{
    int n = 0;
    for (int i = 1; i < 10; i++) {
        struct run_info *list;
        size_t count;
        struct error err = {0};
        assert_ok(store_run_list(p->s, NULL, p->a, &list, &count, &err));
        char *id = arena_strdup(p->a, list[count - 1].id);
        id[strlen(id) - 1] = (char)('0' + i);
        n += file_exists(path_join(p->a, p->dir, id));
    }
    return n;
}

/* True while the write still fails. */
static bool try_full(struct place *p, const struct write_case *c, int n, int code)
{
    struct error err = {0};

    assert_ok(dir_remove(p->dir, &err));
    place_reopen(p);
    struct run *r = small_run(p);
    assert_ok(whole_attempt(r, 1, &err));
    assert_ok(c->before(p, r, &err));
    const char *before = visible(p);
    faulty_from(n, code);
    bool ok = c->write(p, r, &err);
    bool failed = faulty_hits() > 0;
    faulty_from(-1, 0);
    assert_int_equal(ok, !failed);
    if (failed) {
        assert_int_equal(err.kind, ERROR_MACHINE);
        assert_non_null(strstr(err.text, code == SQLITE_FULL ? "disk is full" : "failed"));
        assert_true(*err.hint);
        assert_string_equal(visible(p), before);
        assert_int_equal(count_folders(p), 1);
        err = (struct error){0};
        assert_ok(c->write(p, r, &err)); /* space was made: it goes on in the same process */
    }
    const char *after = visible(p);
    assert_string_not_equal(after, before);
    run_release(r);
    place_reopen(p);
    assert_string_equal(visible(p), after);
    assert_string_equal(store_health(p->dir, p->a), "ok");
    return failed;
}

static void a_full_disk_at_any_write_leaves_all_or_nothing(void **state)
{
    struct place *p = *state;
    static const int codes[] = {SQLITE_FULL, SQLITE_IOERR_WRITE};

    for (size_t k = 0; k < ARRAY_LEN(codes); k++) {
        for (size_t i = 0; i < ARRAY_LEN(writes); i++) {
            int n = 0;
            while (try_full(p, &writes[i], n, codes[k]))
                n++;
            print_message("%s: failed at each of %d writes\n", writes[i].name, n);
            assert_true(n >= 2);
        }
    }
}

static void making_the_store_on_a_full_disk_can_be_done_again(void **state)
{
    struct place *p = *state;
    int n = 0;

    for (bool failed = true; failed; n++) {
        struct error err = {0};
        store_close(p->s);
        p->s = NULL;
        assert_ok(dir_remove(p->dir, &err));
        faulty_from(n, SQLITE_FULL);
        bool ok = store_open(p->dir, NULL, STORE_WRITE, &p->s, &err);
        failed = faulty_hits() > 0;
        faulty_from(-1, 0);
        assert_int_equal(ok, !failed);
        if (failed)
            assert_non_null(strstr(err.text, "disk is full"));
        place_reopen(p);
        run_release(small_run(p));
        assert_string_equal(store_health(p->dir, p->a), "ok");
    }
    assert_true(n > 2);
}

/* The kernel's own limit, through the real VFS as well: the writer stops with an error and not by
 * a signal, and what was there stays. */
static void a_file_size_limit_is_told_and_nothing_is_lost(void **state)
{
    struct place *p = *state;
    struct error err = {0};
    struct run_info *list;
    size_t n;
    int status, pipes[2], done = 0;

    store_close(p->s);
    p->s = NULL;
    assert_int_equal(pipe(pipes), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit limit = {400 << 10, 400 << 10};
        signal(SIGXFSZ, SIG_IGN);
        place_reopen(p);
        struct run *r = small_run(p);
        setrlimit(RLIMIT_FSIZE, &limit);
        int i = 1;
        while (i < 2000 && whole_attempt(r, i, &err))
            i++;
        i--;
        (void)!write(pipes[1], &i, sizeof(i));
        _exit(i < 1999 && *err.hint && err.kind == ERROR_MACHINE ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(read(pipes[0], &done, sizeof(done)), sizeof(done));
    close(pipes[0]);
    close(pipes[1]);
    place_reopen(p);
    assert_ok(store_run_list(p->s, NULL, p->a, &list, &n, &err));
    assert_true(done > 3);
    assert_true(list[0].attempts == done || list[0].attempts == done + 1);
    assert_string_equal(store_health(p->dir, p->a), "ok");
}

#define STORE_TEST(f) cmocka_unit_test_setup_teardown(f, place_set_up, place_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(a_full_disk_at_any_write_leaves_all_or_nothing),
        STORE_TEST(making_the_store_on_a_full_disk_can_be_done_again),
        STORE_TEST(a_file_size_limit_is_told_and_nothing_is_lost),
    };
    faulty_install();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
