/*
 * kill_test.c - a writer killed with SIGKILL at random points loses nothing it was promised.
 *
 * The writer acknowledges over a pipe each step that the store said is in. It
 * is killed after a random number of acknowledgements and a random time
 * more. Then: the file is sound, every acknowledged row is there with
 * the right text, and the next writer goes on with the same run.
 */
#include "support.h"

#include "base/clock.h"
#include "base/fs.h"
#include "base/sanitized.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef SANITIZED /* a start takes several times as long there */
enum { KILLS = 80 };
#else
enum { KILLS = 240 };
#endif
enum { RUNS_EVERY = 20, ACKS_MAX = 14, DELAY_MAX_US = 1500 };

/* What the writer says is in the store. */
enum ack_kind { ACK_TAKEN, ACK_CALL, ACK_BEGIN, ACK_END };

struct ack {
    enum ack_kind kind;
    int number;
    char id[96];
};

/* The newest of what was acknowledged about the run at hand. */
struct promise {
    char id[96];
    int calls, begun, ended;
};

static void say(int fd, enum ack_kind kind, int number, const struct run *r)
{
    struct ack k = {.kind = kind, .number = number};
    snprintf(k.id, sizeof(k.id), "%s", run_id(r));
    if (write(fd, &k, sizeof(k)) != sizeof(k))
        _exit(4);
}

/* What loop.c does on resume: the first attempt that has not ended, and whether its reply was
 * already paid for. */
static int next_attempt(struct store *s, const char *id, bool *paid, struct arena *a,
                        struct error *err)
{
    struct run_history h;
    int n;

    if (!store_run_history(s, id, a, &h, err))
        return -1;
    n = (int)h.attempt_count + 1;
    if (h.attempt_count && !h.attempts[h.attempt_count - 1].ended_ms)
        n--;
    *paid = h.call_count && h.calls[h.call_count - 1].attempt == n;
    run_history_release(&h);
    return n;
}

static bool write_step(struct run *r, int n, bool paid, int fd, struct arena *a, struct error *err)
{
    struct message m = {"user", text_of(arena_printf(a, "attempt %d", n))};
    struct request req = {.stage = STAGE_OPTIMIZE, .messages = &m, .message_count = 1};
    struct reply reply = {.text = text_of(reply_text(a, n)), .cost_usd = 0.01};
    struct candidate c = {.depth = n, .attempt = n, .source = text_of(source_text(a, n))};
    struct attempt_outcome o = {.step = STEP_BUILD, .verdict = {.kind = VERDICT_COMPILE_ERROR}};

    if (!paid) {
        if (!run_call_add(r, n, 0, &req, &reply, err))
            return false;
        say(fd, ACK_CALL, n, r);
    }
    if (!run_attempt_begin(r, &c, STAGE_OPTIMIZE, n - 1, err))
        return false;
    say(fd, ACK_BEGIN, n, r);
    o.verdict.summary = arena_printf(a, "verdict %d", n);
    if (!run_attempt_end(r, n, &o, err))
        return false;
    say(fd, ACK_END, n, r);
    return true;
}

/* Ends only by being killed, or with an exit status that fails the test. */
static void writer(const char *dir, const char *id, int fd)
{
    struct place p = {.a = arena_new(), .dir = arena_strdup(arena_new(), dir)};
    struct error err = {0};
    struct run *r;
    bool paid;

    if (!store_open(dir, test_url(), STORE_WRITE, &p.s, &err))
        _exit(2);
    if (*id && !run_take(p.s, id, &r, &err))
        _exit(3);
    if (!*id)
        r = small_run(&p);
    say(fd, ACK_TAKEN, 0, r);
    int n = next_attempt(p.s, run_id(r), &paid, p.a, &err);
    while (n > 0 && write_step(r, n, paid, fd, p.a, &err)) {
        n++;
        paid = false;
    }
    fprintf(stderr, "writer: %s\n", err.text);
    _exit(5);
}

static void remember(struct promise *p, const struct ack *k)
{
    memcpy(p->id, k->id, sizeof(p->id));
    if (k->kind == ACK_CALL)
        p->calls = k->number;
    if (k->kind == ACK_BEGIN)
        p->begun = k->number;
    if (k->kind == ACK_END)
        p->ended = k->number;
}

static void write_until_killed(const char *dir, struct promise *p, unsigned *seed)
{
    struct ack k;
    int pipes[2], status;
    int wanted = (int)((unsigned)rand_r(seed) % ACKS_MAX);

    assert_int_equal(pipe(pipes), 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(pipes[0]);
        writer(dir, p->id, pipes[1]);
    }
    close(pipes[1]);
    for (int i = 0; i < wanted && read(pipes[0], &k, sizeof(k)) == sizeof(k); i++)
        remember(p, &k);
    usleep((unsigned)rand_r(seed) % DELAY_MAX_US);
    kill(pid, SIGKILL);
    while (read(pipes[0], &k, sizeof(k)) == sizeof(k)) /* said before the end came */
        remember(p, &k);
    close(pipes[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!WIFSIGNALED(status))
        fail_msg("the writer ended by itself: status %d", WEXITSTATUS(status));
}

static void assert_promise_kept(const char *dir, const struct promise *p)
{
    struct arena *a = arena_new();
    struct error err = {0};
    struct run_history h = {0};
    struct store *s;

    assert_string_equal(store_health(dir, a), "ok");
    assert_ok(store_open(dir, test_url(), STORE_WRITE, &s, &err));
    if (*p->id) {
        assert_ok(store_run_history(s, p->id, a, &h, &err));
        assert_true(h.call_count >= (size_t)p->calls);
        assert_true(h.attempt_count >= (size_t)p->begun);
        for (int i = 0; i < p->calls; i++)
            assert_string_equal(h.calls[i].reply.text.data, reply_text(a, i + 1));
        for (int i = 0; i < p->begun; i++)
            assert_string_equal(h.attempts[i].candidate.source.data, source_text(a, i + 1));
        for (int i = 0; i < p->ended; i++) {
            assert_true(h.attempts[i].ended_ms > 0);
            assert_string_equal(h.attempts[i].outcome.verdict.summary,
                                arena_printf(a, "verdict %d", i + 1));
        }
    }
    run_history_release(&h);
    store_close(s);
    arena_free(a);
}

static void nothing_acknowledged_is_lost_and_the_run_goes_on(void **state)
{
    struct place *p = *state;
    struct promise promise = {0};
    unsigned seed = (unsigned)clock_us();
    int attempts = 0;

    print_message("seed %u\n", seed);
    store_close(p->s);
    p->s = NULL;
    for (int i = 0; i < KILLS; i++) {
        if (i % RUNS_EVERY == 0) {
            attempts += promise.ended;
            promise = (struct promise){0};
        }
        write_until_killed(p->dir, &promise, &seed);
        assert_promise_kept(p->dir, &promise);
    }
    print_message("%d kills, %d attempts acknowledged and found\n", KILLS,
                  attempts + promise.ended);
    assert_true(attempts > KILLS / 4); /* the test is not vacuous */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_acknowledged_is_lost_and_the_run_goes_on,
                                        place_set_up, place_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
