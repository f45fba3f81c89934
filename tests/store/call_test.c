/* SPDX-License-Identifier: Apache-2.0 */
/* call_test.c - model calls whose run was killed: replies that came, may come, and cannot come. */
#include "support.h"

#include "store/sql.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SILENT_MS = 400 };

static const struct message prompt[] = {{"user", {"why?", 4}}};
static const struct request question = {
    .stage = STAGE_REPAIR, .messages = prompt, .message_count = 1, .prompt_hash = ""};
static const struct reply bound = {.text = {"", 0}, .output_tokens = 3000, .cost_usd = 2};
static const struct reply answer = {.text = {"because", 7},
                                    .model = "m",
                                    .finish_reason = "stop",
                                    .output_tokens = 7,
                                    .cost_usd = 1};

/* A run with a call in flight. */
static struct run *flying(struct place *p, int64_t *call)
{
    struct run *r = small_run(p);
    struct error err = {0};

    assert_ok(run_call_begin(r, 1, 0, &question, &bound, call, &err));
    return r;
}

static const char *reason(struct place *p, int64_t call)
{
    struct error err = {0};
    const char *text = "";
    struct query q;

    assert_ok(sql_query(p->s, &q, &err, "SELECT finish_reason FROM calls WHERE id = ?", "l", call));
    if (sql_next(&q, &err))
        text = col_text(&q, 0, p->a);
    assert_true(sql_done(&q));
    return text;
}

static struct settle_how settle(struct run *r)
{
    struct settle_how how = {.silent_ms = SILENT_MS};
    struct error err = {0};

    assert_ok(run_calls_settle(r, &how, &err));
    return how;
}

static void a_reply_that_was_kept_is_stored(void **state)
{
    struct place *p = *state;
    int64_t call;
    struct run *r = flying(p, &call);
    struct settle_how how;

    run_reply_keep(r, call, &answer);
    how = settle(r);
    assert_int_equal(how.count, 1);
    assert_int_equal(how.killed, 0);
    assert_string_equal(reason(p, call), "stop");
    run_release(r);
}

static void without_a_sign_of_life_it_is_booked_as_killed(void **state)
{
    struct place *p = *state;
    int64_t call;
    struct run *r = flying(p, &call);

    assert_int_equal(settle(r).killed, 1);
    assert_string_equal(reason(p, call), CALL_KILLED);
    run_release(r);
}

static void of_a_process_that_ended_here_nothing_is_waited_for(void **state)
{
    struct place *p = *state;
    int64_t call;
    struct run *r = flying(p, &call);
    struct settle_how how = {.silent_ms = 3600 * 1000};
    struct error err = {0};
    int hold = run_call_hold(r, call);

    assert_true(hold >= 0);
    close(hold); /* as a kill does */
    assert_ok(run_calls_settle(r, &how, &err));
    assert_int_equal(how.killed, 1);
    run_release(r);
}

/* ---- one that lives ---------------------------------------------------------- */

/* Whoever makes the call, between two looks of whoever waits for it: so no clock decides. */
struct other {
    struct place *p;
    struct call_place at;
    int hold;
    int looks; /* until its reply comes: together longer than anybody waits in silence */
    bool beats;
};

static bool make_call(void *self)
{
    struct other *o = self;
    struct error err = {0};

    if (--o->looks > 0) {
        usleep(SILENT_MS * 1000 / 2);
        if (o->beats)
            assert_ok(store_call_beat(o->p->s, &o->at, 100 - o->looks, &err));
        return false;
    }
    assert_ok(store_call_end(o->p->s, &o->at, &answer, &err));
    if (o->hold >= 0)
        close(o->hold);
    return false;
}

static void wait_for(struct place *p, struct run *r, struct other *o)
{
    struct settle_how how = {.silent_ms = SILENT_MS, .stop = make_call, .stop_ctx = o};
    struct error err = {0};

    assert_ok(run_calls_settle(r, &how, &err));
    assert_int_equal(how.killed, 0);
    assert_int_equal(o->looks, 0);
    assert_string_equal(reason(p, o->at.call), "stop");
}

static void one_that_lives_here_is_waited_for(void **state)
{
    struct place *p = *state;
    int64_t call;
    struct run *r = flying(p, &call);
    struct other o = {p, {run_dir(r), run_id(r), call}, run_call_hold(r, call), 5, false};

    assert_true(o.hold >= 0);
    wait_for(p, r, &o);
    run_release(r);
}

/* Its lock, if it is there at all, is that of another machine. */
static void one_that_lives_elsewhere_is_waited_for_while_it_says_so(void **state)
{
    struct place *p = *state;
    int64_t call;
    struct run *r;
    struct other o;
    char *path;
    int fd;

    if (!test_url())
        skip(); /* the runs of a file are this machine's */
    r = flying(p, &call);
    o = (struct other){p, {run_dir(r), run_id(r), call}, -1, 5, true};
    path = arena_printf(p->a, "%s/call-%lld.lock", run_dir(r), (long long)call);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_int_equal(write(fd, "another machine", 15), 15);
    close(fd);
    wait_for(p, r, &o);
    run_release(r);
}

static bool at_once(void *ctx)
{
    (void)ctx;
    return true;
}

static void waiting_can_be_stopped(void **state)
{
    struct place *p = *state;
    int64_t call;
    struct run *r = flying(p, &call);
    struct settle_how how = {.stop = at_once};
    struct error err = {0};
    int hold = run_call_hold(r, call);

    assert_false(run_calls_settle(r, &how, &err));
    assert_int_equal(err.kind, ERROR_INTERRUPTED);
    assert_string_equal(reason(p, call), CALL_IN_FLIGHT);
    close(hold);
    run_release(r);
}

/* ---- late replies -------------------------------------------------------------- */

static void a_late_reply_is_used_unless_it_was_asked_again(void **state)
{
    struct place *p = *state;
    int64_t first, again;
    struct run *r = flying(p, &first);
    struct call_place at = {run_dir(r), run_id(r), first};
    struct error err = {0};

    settle(r);
    assert_string_equal(reason(p, first), CALL_KILLED);
    assert_ok(store_call_end(p->s, &at, &answer, &err));
    assert_string_equal(reason(p, first), "stop");

    assert_ok(run_call_begin(r, 2, 0, &question, &bound, &first, &err));
    settle(r);
    assert_ok(run_call_begin(r, 2, 0, &question, &bound, &again, &err));
    at.call = first;
    assert_ok(store_call_end(p->s, &at, &answer, &err));
    assert_string_equal(reason(p, first), CALL_KILLED);
    assert_string_equal(reason(p, again), CALL_IN_FLIGHT);
    run_release(r);
}

/* Whose lease ran out has no business with the run: another may have ended it. */
static void collecting_replies_leaves_the_run_alone(void **state)
{
    struct place *p = *state;
    int64_t call;
    struct run *r = flying(p, &call);
    struct error err = {0};
    struct run_info *runs;
    const char *id = arena_strdup(p->a, run_id(r));
    size_t n;

    run_reply_keep(r, call, &answer);
    assert_ok(run_end(r, RUN_DONE, "", &err));
    run_release(r);
    assert_ok(store_replies_collect(p->s, id, &err));
    assert_string_equal(reason(p, call), "stop");
    assert_ok(store_run_list(p->s, NULL, p->a, &runs, &n, &err));
    assert_int_equal(n, 1);
    assert_int_equal(runs[0].state, RUN_DONE);
}

#define CALL_TEST(f) cmocka_unit_test_setup_teardown(f, place_set_up, place_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CALL_TEST(a_reply_that_was_kept_is_stored),
        CALL_TEST(without_a_sign_of_life_it_is_booked_as_killed),
        CALL_TEST(of_a_process_that_ended_here_nothing_is_waited_for),
        CALL_TEST(one_that_lives_here_is_waited_for),
        CALL_TEST(one_that_lives_elsewhere_is_waited_for_while_it_says_so),
        CALL_TEST(waiting_can_be_stopped),
        CALL_TEST(a_late_reply_is_used_unless_it_was_asked_again),
        CALL_TEST(collecting_replies_leaves_the_run_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
