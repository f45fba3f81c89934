/* store_test.c - what is put into the store comes out of it, and misuse is reported. */
#include "support.h"

#include "base/fs.h"
#include "base/hash.h"
#include "base/text.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- what comes out ------------------------------------------------------ */

static void a_text_is_stored_once_and_comes_back_byte_for_byte(void **state)
{
    struct place *p = *state;
    struct error err = {0};
    static const char bytes[] = "null \0 bytes, \xff\xfe, and \n lines";
    struct text in = {bytes, sizeof(bytes) - 1}, out;
    char first[65], second[65], want[65];

    assert_ok(blob_put(p->s, in, first, &err));
    assert_ok(blob_put(p->s, in, second, &err));
    hash_text(in, want);
    assert_string_equal(first, want);
    assert_string_equal(second, want);
    assert_ok(blob_get(p->s, first, p->a, &out, &err));
    assert_true(text_equal(in, out));
    assert_ok(blob_put(p->s, (struct text){0}, first, &err));
    assert_ok(blob_get(p->s, first, p->a, &out, &err));
    assert_int_equal(out.len, 0);
    assert_false(blob_get(p->s, "0123", p->a, &out, &err));
    assert_int_equal(err.kind, ERROR_MACHINE);
}

static void runs_are_named_by_day_task_and_number(void **state)
{
    struct place *p = *state;
    struct task t = {.name = "../A b<c>\xc3\xa9", .path = "/x.py"};
    struct run_spec spec = {.task = &t, .device = &small_device, .model = "builtin"};
    struct error err = {0};
    struct run *one, *two;

    assert_ok(run_create(p->s, &spec, &one, &err));
    /* An unknown folder is left alone. */
    char *three = arena_strdup(p->a, run_dir(one));
    three[strlen(three) - 1] = '2';
    assert_ok(dir_make(three, &err));
    assert_ok(run_create(p->s, &spec, &two, &err));
    assert_string_equal(run_id(one) + 10, "----a-b-c----1");
    assert_string_equal(run_id(two) + 10, "----a-b-c----3");
    assert_true(file_exists(run_dir(two)));
    run_release(one);
    run_release(two);
}

static struct verdict race_verdict(void)
{
    struct verdict v = {
        .kind = VERDICT_RACE,
        .summary = "shared-memory race at kernel.cu:87",
        .detail = "two\nlines, \"quotes\", \xff",
        .advice = "__syncthreads()",
        .finding_count = 2,
    };
    v.findings[0] = (struct finding){"shared-memory race", "kernel.cu:87", "gemm(\xfe);", "thread"};
    v.findings[1] = (struct finding){"guard", NULL, NULL, "12 bytes"};
    return v;
}

/* A server keeps texts as UTF-8; BLOBs, where sources and replies are, come back byte for byte. */
static const char *as_kept(struct place *p, const char *s)
{
    return test_url() ? text_clean(text_of(s), p->a).data : s;
}

static void assert_race_comes_back(struct place *p, const struct verdict *v)
{
    struct verdict want = race_verdict();

    assert_int_equal(v->kind, want.kind);
    assert_string_equal(v->summary, want.summary);
    assert_string_equal(v->detail, as_kept(p, want.detail));
    assert_string_equal(v->advice, want.advice);
    assert_int_equal(v->finding_count, 2);
    assert_string_equal(v->findings[0].line, as_kept(p, want.findings[0].line));
    assert_string_equal(v->findings[1].where, "");
}

static void put_failed_attempt(struct run *r)
{
    struct candidate c = {.attempt = 1, .source = text_of("int a;\n"), .change = "plain"};
    struct build_result b = {
        .build_ms = 412, .cached = true, .code = text_of("CODE"), .ptx = text_of("PTX")};
    struct test_result t = {.seed = "81c3",
                            .test_ms = 33,
                            .accuracy = {.max_abs = NAN, .max_rel = INFINITY, .draws = 5}};
    struct attempt_outcome o = {
        .step = STEP_TEST, .verdict = race_verdict(), .build = &b, .test = &t};
    struct error err = {0};
    char code[65], ptx[65];

    b.launches = json_pack("{s:[]}", "ops");
    hash_text(b.code, code);
    hash_text(b.ptx, ptx);
    b.code_hash = code;
    b.ptx_hash = ptx;
    t.counters = json_pack("[{s:i}]", "sectors", 4);
    assert_ok(run_attempt_begin(r, &c, STAGE_SYNTHESIZE, 0, &err));
    assert_ok(run_attempt_end(r, 1, &o, &err));
    json_decref(b.launches);
    json_decref(t.counters);
}

static void put_good_attempt(struct run *r)
{
    struct candidate c = {.attempt = 2,
                          .repair = 1,
                          .source = text_of("int b;\n"),
                          .change = "a barrier",
                          .steps = "tiles ring"};
    struct test_result t = {.seed = "77", .deterministic = true, .accuracy_class = "TF32-class"};
    struct measurement m = {.time_us = 3.5,
                            .trivial = "zeros would pass too",
                            .warm_us = 3.25,
                            .spread = 0.004,
                            .floor_us = 3,
                            .bound = "memory",
                            .baselines = {{"eager", 14, 13}, {"compile", 7, 6.5}},
                            .baseline_count = 2};
    struct attempt_outcome o = {.step = STEP_MEASURE,
                                .verdict = {.kind = VERDICT_PASS},
                                .test = &t,
                                .measurement = &m,
                                .kept = true};
    struct profile prof = {.source = "ncu", .text = "dram 91 %"};
    struct error err = {0};

    m.parts = json_pack("{s:f}", "dram", 2.5);
    prof.data = json_pack("{s:i}", "registers", 40);
    assert_ok(run_attempt_begin(r, &c, STAGE_REPAIR, 1, &err));
    assert_ok(run_attempt_end(r, 2, &o, &err));
    assert_ok(run_profile_add(r, 2, &prof, &err));
    assert_ok(run_profile_add(r, 2, &prof, &err));
    json_decref(m.parts);
    json_decref(prof.data);
}

static void put_refusal(struct run *r)
{
    struct acceptance refusal = {.verdict = {.kind = VERDICT_RACE, .summary = "line 7"}};
    struct error err = {0};

    assert_ok(run_accept_add(r, 2, &refusal, &err));
}

static void put_call(struct run *r)
{
    struct message m[] = {{"system", text_of("you")}, {"user", text_of("")}};
    struct request req = {
        .stage = STAGE_REPAIR, .messages = m, .message_count = 2, .prompt_hash = "abc"};
    struct reply reply = {.text = {"a\0b", 3},
                          .model = "m-1",
                          .finish_reason = "stop",
                          .prompt_tokens = 1000,
                          .cached_tokens = 800,
                          .output_tokens = -1,
                          .cost_usd = 0.25,
                          .latency_ms = 1200,
                          .retries = 2,
                          .done = true};
    struct error err = {0};

    assert_ok(run_call_add(r, 2, 0, &req, &reply, &err));
}

static void assert_attempts_come_back(struct place *p, const struct run_history *h)
{
    const struct attempt_record *a = h->attempts;
    char code[65];

    assert_int_equal(h->attempt_count, 2);
    assert_int_equal(a[0].outcome.step, STEP_TEST);
    assert_race_comes_back(p, &a[0].outcome.verdict);
    assert_int_equal(a[0].outcome.build->verdict.kind, VERDICT_PASS);
    assert_int_equal(a[0].outcome.test->verdict.kind, VERDICT_RACE);
    assert_int_equal(a[0].outcome.build->build_ms, 412);
    assert_true(a[0].outcome.build->cached);
    assert_non_null(json_object_get(a[0].outcome.build->launches, "ops"));
    hash_text(text_of("CODE"), code);
    assert_string_equal(a[0].outcome.build->code_hash, code);
    hash_text(text_of("PTX"), code);
    assert_string_equal(a[0].outcome.build->ptx_hash, code);
    assert_true(isnan(a[0].outcome.test->accuracy.max_abs));
    assert_true(isinf(a[0].outcome.test->accuracy.max_rel));
    assert_int_equal(json_array_size(a[0].outcome.test->counters), 1);
    assert_null(a[0].outcome.measurement);
    assert_null(a[0].profile);
    assert_int_equal(a[1].parent, 1);
    assert_int_equal(a[1].candidate.repair, 1);
    assert_int_equal(a[1].stage, STAGE_REPAIR);
    assert_string_equal(a[1].candidate.source.data, "int b;\n");
    assert_string_equal(a[1].candidate.change, "a barrier");
    assert_null(a[0].candidate.steps); /* not known */
    assert_string_equal(a[1].candidate.steps, "tiles ring");
    assert_true(a[1].outcome.kept && a[1].ended_ms >= a[1].started_ms);
    assert_null(a[1].outcome.build);
    assert_true(a[1].outcome.measurement->time_us == 3.5);
    assert_string_equal(a[1].outcome.measurement->trivial, "zeros would pass too");
    assert_string_equal(a[1].outcome.test->accuracy_class, "TF32-class");
    assert_string_equal(a[0].outcome.test->accuracy_class, "");
    assert_int_equal(a[1].outcome.measurement->baseline_count, 2);
    assert_string_equal(a[1].outcome.measurement->baselines[1].name, "compile");
    assert_non_null(json_object_get(a[1].outcome.measurement->parts, "dram"));
    assert_string_equal(a[1].profile->text, "dram 91 %");
    assert_null(a[0].acceptance);
    assert_int_equal(a[1].acceptance->verdict.kind, VERDICT_RACE);
    assert_string_equal(a[1].acceptance->verdict.summary, "line 7");
}

/* Beside more baselines, after the last step: it takes the place of the first measurement. */
static void the_last_measurement_takes_the_place_of_the_first(void **state)
{
    struct place *p = *state;
    struct measurement m = {
        .time_us = 3.25,
        .bound = "memory",
        .baselines = {{"eager", 13, 12}, {"compile", 7, 6}, {"eager tf32", 5, 4}},
        .baseline_count = 3};
    struct run_history h = {0};
    struct error err = {0};
    struct run *r = small_run(p);
    const char *id = arena_strdup(p->a, run_id(r));

    put_failed_attempt(r);
    put_good_attempt(r);
    assert_ok(run_measured_again(r, 2, &m, &err));
    run_release(r);
    assert_ok(store_run_history(p->s, id, p->a, &h, &err));
    assert_true(h.attempts[1].outcome.measurement->time_us == 3.25);
    assert_int_equal(h.attempts[1].outcome.measurement->baseline_count, 3);
    assert_string_equal(h.attempts[1].outcome.measurement->baselines[2].name, "eager tf32");
    run_history_release(&h);
}

static void assert_call_comes_back(const struct run_history *h)
{
    const struct call_record *c = h->calls;

    assert_int_equal(h->call_count, 1);
    assert_int_equal(c->stage, STAGE_REPAIR);
    assert_int_equal(c->attempt, 2);
    assert_int_equal(c->message_count, 2);
    assert_string_equal(c->messages[0].content.data, "you");
    assert_int_equal(c->messages[1].content.len, 0);
    assert_int_equal(c->reply.text.len, 3);
    assert_memory_equal(c->reply.text.data, "a\0b", 3);
    assert_int_equal(c->reply.cached_tokens, 800);
    assert_int_equal(c->reply.output_tokens, -1);
    assert_true(c->reply.done && c->reply.cost_usd == 0.25 && c->reply.retries == 2);
    assert_string_equal(c->prompt_hash, "abc");
}

static void a_run_comes_back_whole_in_another_process(void **state)
{
    struct place *p = *state;
    struct run_history h;
    struct error err = {0};
    struct run *r = small_run(p);
    const char *id = arena_strdup(p->a, run_id(r));
    json_t *data = json_pack("{s:s}", "path", "report.html");

    put_failed_attempt(r);
    put_call(r);
    put_good_attempt(r);
    put_refusal(r);
    assert_ok(run_event_add(r, "report", data, &err));
    assert_ok(run_end(r, RUN_DONE, "all depths done", &err));
    run_release(r);
    json_decref(data);
    place_reopen(p);
    assert_ok(store_run_history(p->s, id, p->a, &h, &err));
    assert_attempts_come_back(p, &h);
    assert_call_comes_back(&h);
    assert_int_equal(h.event_count, 1);
    assert_string_equal(json_string_value(json_object_get(h.events[0].data, "path")),
                        "report.html");
    assert_string_equal(h.task.name, "swish");
    assert_string_equal(h.task.scaled, "N 2048 -> 256");
    assert_int_equal(h.task.in_count, 1);
    assert_int_equal(h.task.in[0].shape[1], 128);
    assert_int_equal(h.task.class, CLASS_POINTWISE);
    assert_string_equal(h.device.arch, "compute_80");
    assert_string_equal(h.info.device, "simt as H200");
    assert_int_equal(h.info.state, RUN_DONE);
    assert_string_equal(h.info.reason, "all depths done");
    assert_int_equal(h.info.best_attempt, 2);
    assert_int_equal(h.info.accepted, ACCEPTED_NO);
    assert_string_equal(h.info.accepted_why, "race: line 7");
    assert_true(h.info.best_us == 3.5 && h.info.eager_us == 14 && h.info.tokens == 1000);
    run_history_release(&h);
}

static void the_list_has_the_newest_first_and_knows_who_is_alive(void **state)
{
    struct place *p = *state;
    struct error err = {0};
    struct run_info *list;
    size_t n;
    struct run *one = small_run(p), *two = small_run(p), *three = small_run(p);

    assert_ok(run_end(one, RUN_FAILED, "no GPU", &err));
    run_release(two); /* as if killed */
    assert_ok(store_run_list(p->s, NULL, p->a, &list, &n, &err));
    assert_int_equal(n, 3);
    assert_string_equal(list[0].id, run_id(three));
    assert_true(list[0].alive && list[0].state == RUN_RUNNING);
    assert_true(!list[1].alive && list[1].state == RUN_RUNNING);
    assert_true(!list[2].alive && list[2].state == RUN_FAILED);
    assert_int_equal(list[0].best_depth, -1);
    assert_ok(store_run_list(p->s, "no such suite", p->a, &list, &n, &err));
    assert_int_equal(n, 0);
    run_release(one);
    run_release(three);
}

static void the_best_kernel_of_other_runs_of_the_task_is_known(void **state)
{
    struct place *p = *state;
    struct error err = {0};
    struct run *one = small_run(p), *two;
    struct text source;
    const char *by = NULL, *steps;

    put_failed_attempt(one);
    put_good_attempt(one);
    assert_ok(run_known_best(one, p->a, &source, &steps, &by, &err));
    assert_null(source.data); /* its own do not count */
    two = small_run(p);
    assert_ok(run_known_best(two, p->a, &source, &steps, &by, &err));
    assert_string_equal(source.data, "int b;\n");
    assert_string_equal(by, run_id(one));
    assert_string_equal(steps, "tiles ring");
    put_refusal(one);
    assert_ok(run_known_best(two, p->a, &source, &steps, &by, &err));
    assert_null(source.data); /* nor does one that was not accepted */
    run_release(one);
    run_release(two);
}

/* ---- finding a run by name ----------------------------------------------- */

static void a_run_is_found_by_id_beginning_or_last(void **state)
{
    struct place *p = *state;
    struct run *r[11];
    const char *id;

    for (size_t i = 0; i < ARRAY_LEN(r); i++)
        r[i] = small_run(p);
    const char *stem = arena_strndup(p->a, run_id(r[0]), strlen(run_id(r[0])) - 1);
    const struct {
        const char *name, *want, *says;
    } cases[] = {
        {"last", run_id(r[10]), NULL},
        {run_id(r[0]), run_id(r[0]), NULL}, /* though ...-10 and ...-11 begin so too */
        {run_id(r[4]), run_id(r[4]), NULL},
        {arena_printf(p->a, "%s11", stem), run_id(r[10]), NULL},
        {stem, NULL, "11 runs"},
        {"", NULL, "11 runs"},
        {"2001", NULL, "no run 2001"},
        {"%", NULL, "no run %"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct error err = {0};
        bool ok = store_run_find(p->s, cases[i].name, p->a, &id, &err);
        assert_int_equal(ok, cases[i].want != NULL);
        if (ok)
            assert_string_equal(id, cases[i].want);
        else
            assert_non_null(strstr(err.text, cases[i].says));
    }
    for (size_t i = 0; i < ARRAY_LEN(r); i++)
        run_release(r[i]);
}

/* ---- going on ------------------------------------------------------------ */

static void a_run_is_not_driven_twice_at_once(void **state)
{
    struct place *p = *state;
    struct error err = {0};
    struct run *r = small_run(p), *again;
    const char *id = arena_strdup(p->a, run_id(r));

    assert_false(run_take(p->s, id, &again, &err));
    assert_int_equal(err.kind, ERROR_USE);
    assert_non_null(strstr(err.text, arena_printf(p->a, "pid %d", (int)getpid())));
    run_release(r);
    err = (struct error){0};
    assert_ok(run_take(p->s, id, &again, &err));
    run_release(again);
    assert_false(run_take(p->s, "nothing", &again, &err));
    assert_int_equal(err.kind, ERROR_USE);
}

static void an_attempt_cut_short_begins_again_with_the_same_number(void **state)
{
    struct place *p = *state;
    struct error err = {0};
    struct run_history h;
    struct run *r = small_run(p);
    struct candidate c = {.attempt = 2, .source = text_of("first try"), .change = "x"};
    const char *id = arena_strdup(p->a, run_id(r));

    assert_ok(whole_attempt(r, 1, &err));
    assert_ok(run_attempt_begin(r, &c, STAGE_OPTIMIZE, 1, &err));
    assert_ok(run_end(r, RUN_STOPPED, "budget", &err));
    run_release(r);
    assert_ok(run_take(p->s, id, &r, &err));
    assert_ok(store_run_history(p->s, id, p->a, &h, &err));
    assert_int_equal(h.info.state, RUN_RUNNING);
    assert_int_equal(h.attempt_count, 2);
    assert_int_equal(h.attempts[1].ended_ms, 0);
    assert_string_equal(h.attempts[1].candidate.source.data, "first try");
    run_history_release(&h);
    assert_ok(whole_attempt(r, 2, &err));
    assert_ok(whole_attempt(r, 3, &err));
    assert_ok(store_run_history(p->s, id, p->a, &h, &err));
    assert_int_equal(h.attempt_count, 3);
    assert_string_equal(h.attempts[1].candidate.source.data, source_text(p->a, 2));
    run_history_release(&h);
    run_release(r);
}

/* Runs `what` in a process of its own; true when it ended by SIGABRT, as BUG() does. */
static bool is_bug(void (*what)(struct run *), struct run *r)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        (void)!freopen("/dev/null", "w", stderr);
        what(r);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void begin_the_third(struct run *r)
{
    struct candidate c = {.attempt = 3, .source = text_of("")};
    struct error err = {0};
    run_attempt_begin(r, &c, STAGE_OPTIMIZE, 0, &err);
}

static void end_the_second(struct run *r)
{
    struct attempt_outcome o = {0};
    struct error err = {0};
    run_attempt_end(r, 2, &o, &err);
}

static void a_gap_in_the_numbers_is_our_own_mistake(void **state)
{
    struct place *p = *state;
    struct run *r = small_run(p);
    struct error err = {0};

    assert_ok(whole_attempt(r, 1, &err));
    assert_true(is_bug(begin_the_third, r));
    assert_true(is_bug(end_the_second, r));
    run_release(r);
}

/* ---- several processes ---------------------------------------------------- */

static void drive_one_run(const char *dir)
{
    struct place p = {.a = arena_new(), .dir = arena_strdup(arena_new(), dir)};
    struct error err = {0};
    bool ok = store_open(dir, test_url(), STORE_WRITE, &p.s, &err);

    if (ok) {
        struct run *r = small_run(&p);
        for (int i = 1; i <= 25 && ok; i++)
            ok = whole_attempt(r, i, &err);
        run_release(r);
    }
    if (!ok)
        fprintf(stderr, "%s\n", err.text);
    _exit(ok ? 0 : 1);
}

static void four_processes_write_one_store_and_nothing_is_lost(void **state)
{
    struct place *p = *state;
    struct error err = {0};
    struct run_info *list;
    size_t n;
    pid_t pids[4];

    place_empty(p); /* the four also race to make it */
    for (size_t i = 0; i < ARRAY_LEN(pids); i++)
        if ((pids[i] = fork()) == 0)
            drive_one_run(p->dir);
    for (size_t i = 0; i < ARRAY_LEN(pids); i++) {
        int status;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    place_reopen(p);
    assert_ok(store_run_list(p->s, NULL, p->a, &list, &n, &err));
    assert_int_equal(n, 4);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(list[i].attempts, 25);
    assert_string_equal(store_health(p->dir, p->a), "ok");
}

enum { THREAD_ATTEMPTS = 150 };

struct thread_run {
    struct run *run;
    bool ok;
    struct error err;
};

static void *drive_in_thread(void *self)
{
    struct thread_run *t = self;

    t->ok = true;
    for (int i = 1; i <= THREAD_ATTEMPTS && t->ok; i++)
        t->ok = whole_attempt(t->run, i, &t->err);
    return NULL;
}

/* A loop that asks several questions at once stores their calls from several threads. */
static void threads_that_share_a_store_take_turns(void **state)
{
    struct place *p = *state;
    struct thread_run runs[3] = {{0}};
    pthread_t threads[3];
    struct error err = {0};
    struct run_info *list;
    size_t n;

    for (size_t i = 0; i < ARRAY_LEN(runs); i++)
        runs[i].run = small_run(p);
    for (size_t i = 0; i < ARRAY_LEN(runs); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, drive_in_thread, &runs[i]), 0);
    for (size_t i = 0; i < ARRAY_LEN(runs); i++) {
        pthread_join(threads[i], NULL);
        if (!runs[i].ok)
            fail_msg("%s", runs[i].err.text);
        run_release(runs[i].run);
    }
    assert_ok(store_run_list(p->s, NULL, p->a, &list, &n, &err));
    for (size_t i = 0; i < n; i++)
        assert_int_equal(list[i].attempts, THREAD_ATTEMPTS);
}

enum { QUESTIONS = 500 };

static void *ask_whether_possible(void *dir)
{
    struct error err = {0};

    for (int i = 0; i < QUESTIONS; i++)
        if (!store_possible(dir, &err))
            return dir;
    return NULL;
}

/* Commands that start at once: what one of them has just made stays. */
static void asking_whether_a_store_is_possible_makes_and_removes_no_folder_of_runs(void **state)
{
    struct place *p = *state;
    char *dir = path_join(p->a, p->dir, "new");
    pthread_t thread;
    void *failed;

    assert_int_equal(pthread_create(&thread, NULL, ask_whether_possible, dir), 0);
    for (int i = 0; i < QUESTIONS; i++) {
        assert_int_equal(mkdir(dir, 0777), 0);
        assert_int_equal(rmdir(dir), 0);
    }
    pthread_join(thread, &failed);
    assert_null(failed);
    assert_false(file_exists(dir));
}

/* ---- suites -------------------------------------------------------------- */

static void a_suite_remembers_its_tasks_and_finds_their_runs(void **state)
{
    struct place *p = *state;
    const char *paths[] = {"/somewhere/small.py", "/somewhere/broken.py"};
    json_t *flags = json_pack("[s, s]", "--depth=2", "--device=simt");
    struct task t = small_task(p->a);
    struct run_spec spec = {.task = &t, .device = &small_device, .model = "builtin"};
    struct suite_record suite;
    struct error err = {0};
    struct run *run;
    const char *name, *found, *id;
    int lock, second;

    paths[0] = t.path;
    assert_ok(suite_create(p->s, "/somewhere/level 1", paths, 2, flags, p->a, &name, &err));
    assert_non_null(strstr(name, "-suite-level-1-1"));
    spec.suite = name;
    assert_ok(run_create(p->s, &spec, &run, &err));
    assert_ok(suite_task_set(p->s, name, 1, true, "it does not load", 700, &err));
    assert_ok(suite_task_set(p->s, name, 1, true, "it does not load", 50, &err));
    assert_ok(suite_task_retry(p->s, name, 1, &err));
    assert_ok(suite_task_retry(p->s, name, 1, &err));
    assert_ok(suite_find(p->s, "last", p->a, &found, &err));
    assert_string_equal(found, name);
    id = arena_strdup(p->a, run_id(run));
    run_release(run);
    place_reopen(p);
    assert_ok(suite_read(p->s, name, p->a, &suite, &err));
    assert_int_equal(suite.count, 2);
    assert_string_equal(suite.flags[1], "--device=simt");
    assert_null(suite.flags[2]);
    assert_string_equal(suite.tasks[0].run, id);
    assert_int_equal(suite.tasks[0].state, RUN_RUNNING);
    assert_false(suite.tasks[0].ended);
    assert_null(suite.tasks[1].run);
    assert_true(suite.tasks[1].ended);
    assert_int_equal(suite.tasks[1].wall_ms, 750);
    assert_int_equal(suite.tasks[0].retries, 0);
    assert_int_equal(suite.tasks[1].retries, 2);
    assert_string_equal(suite.tasks[1].problem, "it does not load");
    assert_ok(suite_lock(p->s, name, &lock, &err));
    assert_false(suite_lock(p->s, name, &second, &err));
    assert_int_equal(err.kind, ERROR_USE);
    close(lock);
    memset(&err, 0, sizeof(err));
    assert_false(suite_find(p->s, "no-such", p->a, &found, &err));
    assert_int_equal(err.kind, ERROR_USE);
    json_decref(flags);
    json_decref(t.description);
}

#define STORE_TEST(f) cmocka_unit_test_setup_teardown(f, place_set_up, place_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(a_text_is_stored_once_and_comes_back_byte_for_byte),
        STORE_TEST(runs_are_named_by_day_task_and_number),
        STORE_TEST(a_run_comes_back_whole_in_another_process),
        STORE_TEST(the_last_measurement_takes_the_place_of_the_first),
        STORE_TEST(the_list_has_the_newest_first_and_knows_who_is_alive),
        STORE_TEST(the_best_kernel_of_other_runs_of_the_task_is_known),
        STORE_TEST(a_run_is_found_by_id_beginning_or_last),
        STORE_TEST(a_run_is_not_driven_twice_at_once),
        STORE_TEST(an_attempt_cut_short_begins_again_with_the_same_number),
        STORE_TEST(a_gap_in_the_numbers_is_our_own_mistake),
        STORE_TEST(four_processes_write_one_store_and_nothing_is_lost),
        STORE_TEST(threads_that_share_a_store_take_turns),
        STORE_TEST(asking_whether_a_store_is_possible_makes_and_removes_no_folder_of_runs),
        STORE_TEST(a_suite_remembers_its_tasks_and_finds_their_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
