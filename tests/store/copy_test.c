/* SPDX-License-Identifier: Apache-2.0 */
/* copy_test.c - a store copied into another and back is the same; a damaged one is told. */
#include "support.h"

#include "base/fs.h"
#include "store/copy.h"
#include "store/sql.h"

#include <string.h>

enum { RUNS = 3, ATTEMPTS = 4 };

static struct store *open_file(struct place *p, const char *name)
{
    struct error err = {0};
    struct store *s;

    assert_ok(store_open(path_join(p->a, p->dir, name), NULL, STORE_WRITE, &s, &err));
    return s;
}

/* Runs that go on side by side, as those of several workers: their rows' numbers interleave. */
static void fill(struct place *p)
{
    struct run *runs[RUNS];
    struct error err = {0};

    for (int i = 0; i < RUNS; i++)
        runs[i] = small_run(p);
    for (int k = 1; k <= ATTEMPTS; k++)
        for (int i = 0; i < RUNS; i++)
            assert_ok(whole_attempt(runs[i], k, &err));
    for (int i = 0; i < RUNS; i++) {
        assert_ok(run_event_add(runs[i], "something", NULL, &err));
        assert_ok(run_end(runs[i], RUN_DONE, "enough", &err));
        run_release(runs[i]);
    }
}

/* Everything that a reader sees of a store, in one text. */
static const char *picture(struct place *p, struct store *s)
{
    struct run_info *list;
    struct error err = {0};
    char *all = "";
    size_t n;

    assert_ok(store_run_list(s, NULL, p->a, &list, &n, &err));
    for (size_t i = 0; i < n; i++) {
        struct run_history h;

        assert_ok(store_run_history(s, list[i].id, p->a, &h, &err));
        all = arena_printf(p->a, "%s%s %s %lld %lld\n", all, h.info.id, h.info.reason,
                           (long long)h.info.started_ms, (long long)h.info.ended_ms);
        for (size_t k = 0; k < h.attempt_count; k++) {
            const struct attempt_record *t = &h.attempts[k];
            all = arena_printf(p->a, "%s%d %d %s %s %s %g\n", all, t->candidate.attempt, t->parent,
                               t->candidate.change, t->candidate.source.data,
                               t->outcome.verdict.summary, t->outcome.measurement->time_us);
        }
        for (size_t k = 0; k < h.call_count; k++)
            all = arena_printf(p->a, "%s%d %s %s\n", all, h.calls[k].attempt,
                               h.calls[k].messages[1].content.data, h.calls[k].reply.text.data);
        all = arena_printf(p->a, "%s%zu events\n", all, h.event_count);
        run_history_release(&h);
    }
    return all;
}

static void there_and_back_is_the_same(void **state)
{
    struct place *p = *state;
    struct store_copied done;
    struct error err = {0};

    fill(p);
    struct store *other = open_file(p, "other"), *back = open_file(p, "back");
    const char *want = picture(p, p->s);
    assert_ok(store_copy(p->s, other, &done, &err));
    assert_int_equal(done.runs, RUNS);
    assert_string_equal(picture(p, other), want);
    assert_ok(store_copy(other, back, &done, &err));
    assert_string_equal(picture(p, back), want);
    /* Again, and into a store that has runs of its own: nothing is doubled, numbers do not mix. */
    assert_ok(store_copy(back, p->s, &done, &err));
    assert_int_equal(done.runs, 0);
    assert_int_equal(done.known, RUNS);
    assert_string_equal(picture(p, p->s), want);
    store_close(other);
    store_close(back);
}

static void from_a_file_to_wherever_the_tests_are(void **state)
{
    struct place *p = *state;
    struct place file = {.a = p->a, .dir = p->dir, .s = open_file(p, "file")};
    struct store_faults faults;
    struct store_copied done;
    struct error err = {0};

    fill(&file);
    assert_ok(store_copy(file.s, p->s, &done, &err));
    assert_string_equal(picture(p, p->s), picture(p, file.s));
    assert_ok(store_check(p->s, p->a, &faults, &err));
    assert_int_equal(faults.count, 0);
    assert_int_equal(faults.runs, RUNS);
    store_close(file.s);
}

static void faults_are_found(void **state)
{
    struct place *p = *state;
    struct text spoilt = text_of("x");
    struct store_faults faults;
    struct error err = {0};

    fill(p);
    assert_ok(store_check(p->s, p->a, &faults, &err));
    assert_int_equal(faults.count, 0);
    assert_true(faults.texts > RUNS * ATTEMPTS);
    assert_ok(sql_run(p->s, &err,
                      "UPDATE blobs SET data = ? WHERE sha256 = "
                      "(SELECT source FROM candidates ORDER BY id LIMIT 1)",
                      "b", &spoilt));
    assert_ok(store_check(p->s, p->a, &faults, &err));
    assert_int_equal(faults.count, 1);
    assert_non_null(strstr(faults.first[0], "is not what its name says"));
    assert_ok(p->s->engine->script(p->s,
                                   "DELETE FROM baselines; DELETE FROM measurements; "
                                   "DELETE FROM findings; DELETE FROM verdicts",
                                   &err));
    assert_ok(store_check(p->s, p->a, &faults, &err));
    assert_int_equal(faults.count, 1 + RUNS * ATTEMPTS);
}

static bool is_copied(const char *table)
{
    for (size_t i = 0; store_table_name(i); i++)
        if (!strcmp(store_table_name(i), table))
            return true;
    return false;
}

/* A table that somebody adds must be added to copy.c, too. */
static void every_table_is_known_to_copying(void **state)
{
    struct place *p = *state;
    struct store *file = open_file(p, "file");
    struct error err = {0};
    struct query q;
    int n = 0;

    assert_ok(sql_query(file, &q, &err,
                        "SELECT name FROM sqlite_schema WHERE type = 'table' "
                        "AND name NOT LIKE 'sqlite_%'",
                        ""));
    while (sql_next(&q, &err)) {
        const char *name = col_text(&q, 0, p->a);
        if (!is_copied(name))
            fail_msg("copy.c does not know the table %s", name);
        n++;
    }
    assert_true(sql_done(&q));
    assert_true(n > 15);
    store_close(file);
}

#define COPY_TEST(f) cmocka_unit_test_setup_teardown(f, place_set_up, place_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        COPY_TEST(there_and_back_is_the_same),
        COPY_TEST(from_a_file_to_wherever_the_tests_are),
        COPY_TEST(faults_are_found),
        COPY_TEST(every_table_is_known_to_copying),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
