/* SPDX-License-Identifier: Apache-2.0 */
/* prune_test.c - what stays of an old run, and that tables of an older version are backed up first.
 */
#include "support.h"

#include "base/clock.h"
#include "base/fs.h"
#include "store/copy.h"
#include "store/jobs.h"
#include "store/prune.h"
#include "store/sql.h"

#include <string.h>

static void run_sql(struct store *s, const char *sql)
{
    struct error err = {0};

    assert_ok(s->engine->script(s, sql, &err));
}

/* Four attempts, each quicker than the one before; the second was exported. */
static const char *old_run(struct place *p)
{
    struct run *r = small_run(p);
    const char *id = arena_strdup(p->a, run_id(r));
    struct error err = {0};

    for (int i = 1; i <= 4; i++)
        assert_ok(whole_attempt(r, i, &err));
    assert_ok(run_end(r, RUN_DONE, "", &err));
    run_release(r);
    assert_ok(store_export_add(p->s, id, 2, "/export", &err));
    return id;
}

static void the_best_and_what_was_exported_stay(void **state)
{
    struct place *p = *state;
    const char *id = old_run(p);
    struct prune_rules rules = {.before_ms = clock_unix_ms() + 1000};
    struct prune_done done;
    struct store_faults faults;
    struct run_history h;
    struct error err = {0};
    struct run *r;

    assert_ok(store_prune(p->s, &(struct prune_rules){rules.before_ms, true}, &done, &err));
    assert_int_equal(done.runs, 1);
    assert_ok(store_prune(p->s, &rules, &done, &err));
    assert_int_equal(done.runs, 1);
    assert_true(done.texts >= 4 && done.bytes > 0);
    assert_ok(store_run_history(p->s, id, p->a, &h, &err));
    assert_int_equal(h.attempt_count, 4);
    assert_int_equal(h.info.best_attempt, 4);
    for (int i = 1; i <= 4; i++) {
        const char *source = h.attempts[i - 1].candidate.source.data;
        bool kept = i == 2 || i == 4;

        assert_int_equal(strcmp(source, source_text(p->a, i)) == 0, kept);
        assert_int_equal(h.attempts[i - 1].outcome.verdict.kind, VERDICT_PASS);
        assert_true(h.attempts[i - 1].outcome.measurement->time_us > 0);
    }
    assert_null(strstr(h.calls[0].reply.text.data, "reply 1"));
    run_history_release(&h);
    assert_ok(store_check(p->s, p->a, &faults, &err));
    assert_int_equal(faults.count, 0);
    assert_false(run_take(p->s, id, &r, &err)); /* its kernels are gone */
    assert_non_null(strstr(err.text, "pruned"));
    err = (struct error){0};
    assert_ok(store_prune(p->s, &rules, &done, &err));
    assert_int_equal(done.runs, 0);
}

static void what_is_new_or_runs_stays_whole(void **state)
{
    struct place *p = *state;
    const char *id = old_run(p);
    struct run *running = small_run(p);
    struct prune_rules rules = {.before_ms = clock_unix_ms() - 60000};
    struct prune_done done;
    struct run_history h;
    struct error err = {0};

    assert_ok(whole_attempt(running, 1, &err));
    assert_ok(store_prune(p->s, &rules, &done, &err));
    assert_int_equal(done.runs, 0);
    rules.before_ms = clock_unix_ms() + 1000;
    assert_ok(store_prune(p->s, &rules, &done, &err));
    assert_int_equal(done.runs, 1);
    assert_ok(store_run_history(p->s, run_id(running), p->a, &h, &err));
    assert_string_equal(h.attempts[0].candidate.source.data, source_text(p->a, 1));
    run_history_release(&h);
    assert_ok(store_run_history(p->s, id, p->a, &h, &err));
    run_history_release(&h);
    run_release(running);
}

/* The tables as they were before the last step, with a job that waits. */
static void make_older(struct place *p)
{
    static const char older[] =
        "DROP TABLE jobs;"
        "ALTER TABLE workers DROP COLUMN takes;"
        "CREATE TABLE jobs (id INTEGER PRIMARY KEY, suite TEXT NOT NULL, number INTEGER NOT NULL,"
        " state TEXT NOT NULL, priority INTEGER NOT NULL, needs_kind TEXT NOT NULL,"
        " needs_gpu TEXT NOT NULL, needs_bytes INTEGER NOT NULL, tries INTEGER NOT NULL DEFAULT 0,"
        " problem TEXT NOT NULL DEFAULT '', worker INTEGER REFERENCES workers,"
        " added_ms INTEGER NOT NULL, after_ms INTEGER NOT NULL DEFAULT 0, claimed_ms INTEGER,"
        " lease_ms INTEGER NOT NULL DEFAULT 0, ended_ms INTEGER, UNIQUE (suite, number),"
        " FOREIGN KEY (suite, number) REFERENCES suite_tasks) STRICT;"
        "INSERT INTO suites (name, source, flags, started_ms) VALUES ('s', '/', '[]', 1);"
        "INSERT INTO suite_tasks (suite, number, path) VALUES ('s', 0, '/tasks/old.py');"
        "INSERT INTO jobs (suite, number, state, priority, needs_kind, needs_gpu, needs_bytes,"
        " added_ms) VALUES ('s', 0, 'waiting', 3, '', '', 0, 1)";

    run_sql(p->s, p->s->engine->schema(older, p->a));
    if (test_url())
        run_sql(p->s, "UPDATE cutegen_store SET version = version - 1");
    else
        run_sql(p->s, arena_printf(p->a, "PRAGMA user_version = %d", store_version() - 1));
}

static void assert_job_waits(struct place *p)
{
    struct queue_worker w = {.has = {.kind = "simt", .gpu = ""}, .folder = "/tasks/"};
    struct error err = {0};
    struct job job;
    bool found;

    assert_ok(worker_begin(p->s, &w, &err));
    assert_ok(job_claim(p->s, &w, p->a, &job, &found, &err));
    assert_true(found);
    assert_string_equal(job.path, "/tasks/old.py");
    assert_int_equal(job.kind, JOB_RUN);
}

static void tables_of_an_older_version_are_backed_up_first(void **state)
{
    struct place *p = *state;
    const char *backup = arena_printf(p->a, "%s/store.db.v%d", p->dir, store_version() - 1);
    struct error err = {0};
    struct run *r = small_run(p);
    const char *id = arena_strdup(p->a, run_id(r)), *found;

    run_release(r);
    make_older(p);
    store_close(p->s);
    p->s = NULL;
    if (test_url()) { /* others may be at work: the owner says when */
        assert_false(store_open(p->dir, test_url(), STORE_WRITE, &p->s, &err));
        assert_non_null(strstr(err.hint, "store upgrade"));
        err = (struct error){0};
    }
    assert_ok(store_open(p->dir, test_url(), STORE_UPGRADE, &p->s, &err));
    assert_ok(store_run_find(p->s, id, p->a, &found, &err));
    assert_ok(store_export_add(p->s, id, 1, "/x", &err));
    if (!test_url())
        assert_true(file_exists(backup));
    assert_job_waits(p);
    place_reopen(p);
}

static void kernels_compiled_long_ago_go(void **state)
{
    struct place *p = *state;
    struct prune_done done;
    struct text data = text_of("x");
    struct error err = {0};
    int64_t left;

    for (int i = 0; i < 2; i++)
        assert_ok(
            sql_begin(p->s, &err) &&
            sql_end(
                p->s,
                sql_run(p->s, &err,
                        "INSERT INTO kernels (key, sha256, made_ms, data) VALUES (?, 'x', ?, ?)",
                        "tib", i ? "new" : "old", i ? 1000 : 10, &data),
                &err));
    assert_ok(store_prune(p->s, &(struct prune_rules){.before_ms = 500, .dry = true}, &done, &err));
    assert_ok(sql_int(p->s, 0, &left, &err, "SELECT count(*) FROM kernels", ""));
    assert_int_equal(left, 2);
    assert_ok(store_prune(p->s, &(struct prune_rules){.before_ms = 500}, &done, &err));
    assert_ok(sql_int(p->s, 0, &left, &err, "SELECT count(*) FROM kernels WHERE key = 'new'", ""));
    assert_int_equal(left, 1);
    assert_ok(sql_int(p->s, 0, &left, &err, "SELECT count(*) FROM kernels", ""));
    assert_int_equal(left, 1);
}

static void a_run_has_an_owner(void **state)
{
    struct place *p = *state;
    struct run *r = small_run(p);
    struct run_info *list;
    struct error err = {0};
    size_t n;

    assert_ok(store_run_list(p->s, NULL, p->a, &list, &n, &err));
    assert_true(*list[0].owner);
    if (test_url())
        assert_string_equal(list[0].owner, "cutegen"); /* as the server knows us */
    run_release(r);
}

#define PRUNE_TEST(f) cmocka_unit_test_setup_teardown(f, place_set_up, place_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PRUNE_TEST(the_best_and_what_was_exported_stay),
        PRUNE_TEST(what_is_new_or_runs_stays_whole),
        PRUNE_TEST(tables_of_an_older_version_are_backed_up_first),
        PRUNE_TEST(kernels_compiled_long_ago_go),
        PRUNE_TEST(a_run_has_an_owner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
