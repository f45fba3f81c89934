/* SPDX-License-Identifier: Apache-2.0 */
/* jobs_test.c - the queue: claims, leases that run out, returns, many workers at once. */
#include "support.h"

#include "base/clock.h"
#include "base/shared.h"
#include "store/queue.h"
#include "store/sql.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MANY = 400, WORKERS = 8 };

static const char *add_suite(struct place *p, size_t count, const struct job_needs *needs,
                             int priority)
{
    const char **paths = arena_array(p->a, count, sizeof(*paths));
    struct error err = {0};
    const char *name;

    for (size_t i = 0; i < count; i++)
        paths[i] = arena_printf(p->a, "/tasks/t%zu.py", i);
    assert_ok(suite_create(p->s, "/tasks", paths, count, NULL, p->a, &name, &err));
    assert_ok(jobs_add_suite(p->s, name, needs, priority, &err));
    return name;
}

static struct queue_worker new_worker(struct place *p, const char *kind, const char *gpu)
{
    struct queue_worker w = {.has = {.kind = kind, .gpu = gpu, .memory_bytes = 1 << 20}};
    struct error err = {0};

    assert_ok(worker_begin(p->s, &w, &err));
    return w;
}

static bool claim(struct place *p, const struct queue_worker *w, struct job *out)
{
    struct error err = {0};
    bool found;

    assert_ok(job_claim(p->s, w, p->a, out, &found, &err));
    return found;
}

static void run_sql(struct place *p, const char *sql)
{
    struct error err = {0};

    assert_ok(p->s->engine->script(p->s, sql, &err));
}

static struct job_counts counts(struct place *p, const char *suite)
{
    struct job_counts c;
    struct error err = {0};

    assert_ok(jobs_count(p->s, suite, &c, &err));
    return c;
}

static void jobs_go_by_priority_then_by_age_and_only_once(void **state)
{
    struct place *p = *state;
    struct queue_worker w = new_worker(p, "simt", "");
    const char *low = add_suite(p, 2, &(struct job_needs){0}, 0);
    const char *high = add_suite(p, 1, &(struct job_needs){0}, 5);
    struct error err = {0};
    struct job j;

    assert_true(claim(p, &w, &j));
    assert_string_equal(j.suite, high);
    assert_int_equal(j.tries, 1);
    for (int i = 0; i < 2; i++) {
        assert_true(claim(p, &w, &j));
        assert_string_equal(j.suite, low);
        assert_int_equal(j.number, i);
    }
    assert_false(claim(p, &w, &j));
    /* The same suite again adds nothing while its jobs are under way. */
    assert_ok(jobs_add_suite(p->s, low, &(struct job_needs){0}, 0, &err));
    assert_false(claim(p, &w, &j));
}

static void a_job_goes_to_who_has_what_it_needs(void **state)
{
    struct place *p = *state;
    struct queue_worker simt = new_worker(p, "simt", ""), h200 = new_worker(p, "cuda", "H200");
    struct job j;

    add_suite(p, 1, &(struct job_needs){.kind = "cuda", .gpu = "H200"}, 0);
    add_suite(p, 1, &(struct job_needs){.kind = "cuda", .gpu = "B200"}, 0);
    add_suite(p, 1, &(struct job_needs){.memory_bytes = (int64_t)1 << 40}, 0);
    assert_false(claim(p, &simt, &j));
    assert_true(claim(p, &h200, &j));
    assert_false(claim(p, &h200, &j));
}

/* The test moves the lease, not a clock. */
static void whoever_lost_a_lease_changes_nothing(void **state)
{
    struct place *p = *state;
    const char *suite = add_suite(p, 1, &(struct job_needs){0}, 0);
    struct queue_worker slow = new_worker(p, "simt", ""), other = new_worker(p, "simt", "");
    struct suite_record record;
    struct error err = {0};
    struct job a, b;
    bool mine;

    assert_true(claim(p, &slow, &a));
    assert_ok(job_beat(p->s, &slow, &a, &mine, &err));
    assert_true(mine);
    assert_false(claim(p, &other, &b));
    run_sql(p, "UPDATE jobs SET lease_ms = 1");
    assert_true(claim(p, &other, &b));
    assert_int_equal(b.id, a.id);
    assert_int_equal(b.tries, 2);
    assert_ok(job_beat(p->s, &slow, &a, &mine, &err));
    assert_false(mine);
    assert_ok(job_end(p->s, &slow, &a, &(struct job_end){.problem = "late"}, &err));
    assert_ok(job_return(p->s, &slow, &a, true, 0, "late", &err));
    assert_int_equal(counts(p, suite).of[JOB_LEASED], 1);
    assert_ok(job_end(p->s, &other, &b, &(struct job_end){.ended = true, .wall_ms = 7}, &err));
    assert_ok(suite_read(p->s, suite, p->a, &record, &err));
    assert_true(record.tasks[0].ended);
    assert_string_equal(record.tasks[0].problem, "");
    assert_int_equal(record.tasks[0].wall_ms, 7);
    assert_int_equal(counts(p, suite).of[JOB_DONE], 1);
}

static void a_job_is_tried_so_often_and_no_more(void **state)
{
    struct place *p = *state;
    const char *suite = add_suite(p, 2, &(struct job_needs){0}, 0);
    struct queue_worker w = new_worker(p, "simt", "");
    struct suite_record record;
    struct error err = {0};
    struct job j;

    for (int i = 0; i < JOB_TRIES; i++) { /* it breaks the machine each time */
        assert_true(claim(p, &w, &j));
        assert_int_equal(j.number, 0);
        assert_ok(job_return(p->s, &w, &j, true, 0, "no memory", &err));
    }
    for (int i = 0; i < JOB_TRIES; i++) { /* its worker is lost each time */
        assert_true(claim(p, &w, &j));
        assert_int_equal(j.number, 1);
        run_sql(p, "UPDATE jobs SET lease_ms = 1");
    }
    assert_false(claim(p, &w, &j));
    assert_int_equal(counts(p, suite).of[JOB_FAILED], 2);
    assert_ok(suite_read(p->s, suite, p->a, &record, &err));
    assert_false(record.tasks[0].ended);
    assert_string_equal(record.tasks[0].problem, "no memory");
    /* Asked for again, they are tried again. */
    assert_ok(jobs_add_suite(p->s, suite, &(struct job_needs){0}, 0, &err));
    assert_true(claim(p, &w, &j));
    assert_int_equal(j.tries, 1);
}

static void a_job_given_back_waits_and_may_not_count(void **state)
{
    struct place *p = *state;
    struct queue_worker w = new_worker(p, "simt", "");
    struct error err = {0};
    struct job j;

    add_suite(p, 1, &(struct job_needs){0}, 0);
    assert_true(claim(p, &w, &j));
    assert_ok(job_return(p->s, &w, &j, false, 3600 * 1000, NULL, &err));
    assert_false(claim(p, &w, &j));
    run_sql(p, "UPDATE jobs SET after_ms = 0");
    assert_true(claim(p, &w, &j));
    assert_int_equal(j.tries, 1);
}

/* Claims and ends until there is nothing left; says which jobs it had. */
static void work(const char *dir, int fd)
{
    struct place p = {.a = arena_new()};
    struct error err = {0};
    struct queue_worker w = {.has = {.kind = "simt", .gpu = ""}};
    struct job j;
    bool found = true;

    if (!store_open(dir, test_url(), STORE_WRITE, &p.s, &err) || !worker_begin(p.s, &w, &err))
        _exit(2);
    while (job_claim(p.s, &w, p.a, &j, &found, &err) && found &&
           job_end(p.s, &w, &j, &(struct job_end){.ended = true}, &err))
        if (write(fd, &j.number, sizeof(j.number)) != sizeof(j.number))
            _exit(3);
    if (err.kind)
        fprintf(stderr, "%s\n", err.text);
    _exit(err.kind ? 4 : 0);
}

static void many_workers_take_each_job_once(void **state)
{
    struct place *p = *state;
    const char *suite = add_suite(p, MANY, &(struct job_needs){0}, 0);
    int pipes[2], number, seen[MANY] = {0}, status;
    pid_t pids[WORKERS];
    int64_t began;

    store_close(p->s);
    p->s = NULL;
    assert_int_equal(pipe(pipes), 0);
    began = clock_ms();
    for (size_t i = 0; i < WORKERS; i++)
        if ((pids[i] = fork()) == 0)
            work(p->dir, pipes[1]);
    close(pipes[1]);
    while (read(pipes[0], &number, sizeof(number)) == sizeof(number))
        seen[number]++;
    for (size_t i = 0; i < WORKERS; i++) {
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    print_message("%d jobs by %d workers in %d ms\n", MANY, WORKERS, (int)(clock_ms() - began));
    close(pipes[0]);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(seen[i], 1);
    place_reopen(p);
    assert_int_equal(counts(p, suite).of[JOB_DONE], MANY);
}

static void workers_are_seen_with_what_they_do(void **state)
{
    struct place *p = *state;
    struct queue_worker busy = new_worker(p, "simt", ""), idle = new_worker(p, "cuda", "H200");
    struct worker_info *list;
    struct error err = {0};
    struct job j;
    size_t n;

    add_suite(p, 1, &(struct job_needs){0}, 0);
    assert_true(claim(p, &busy, &j));
    assert_ok(workers_list(p->s, p->a, &list, &n, &err));
    assert_int_equal(n, 2);
    assert_string_equal(list[0].task, "/tasks/t0.py");
    assert_null(list[1].task);
    assert_string_equal(list[1].gpu, "H200");
    assert_int_equal(list[0].pid, getpid());
    assert_ok(worker_end(p->s, &idle, &err));
    assert_ok(workers_list(p->s, p->a, &list, &n, &err));
    assert_int_equal(n, 1);
}

/* So many processes add one to a suite's budget, so often; none of it is lost. */
static void add_to_budget(const char *dir, const char *suite, int times)
{
    struct arena *a = arena_new();
    struct store *s = NULL;
    struct error err = {0};
    struct text t;

    if (!store_open(dir, test_url(), STORE_WRITE, &s, &err))
        _exit(2);
    const struct shared_text *budget = suite_budget(s, suite, "me", a);
    for (int i = 0; i < times; i++)
        if (!budget->begin(budget->ctx, a, &t, &err) ||
            !budget->end(budget->ctx, arena_printf(a, "%ld", strtol(t.data, NULL, 10) + 1), &err))
            _exit(3);
    _exit(0);
}

static void a_budget_is_changed_in_turns(void **state)
{
    struct place *p = *state;
    const char *suite = add_suite(p, 1, &(struct job_needs){0}, 0);
    const struct shared_text *budget;
    struct error err = {0};
    struct text t;
    int status;

    if (!test_url()) { /* one machine: a file does */
        assert_null(suite_budget(p->s, suite, "me", p->a));
        return;
    }
    for (int i = 0; i < 4; i++)
        if (fork() == 0)
            add_to_budget(p->dir, suite, 25);
    for (int i = 0; i < 4; i++) {
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    budget = suite_budget(p->s, suite, "me", p->a);
    assert_ok(budget->begin(budget->ctx, p->a, &t, &err));
    assert_string_equal(t.data, "100");
    assert_ok(budget->end(budget->ctx, NULL, &err));
}

static void a_job_goes_on_on_the_kind_of_gpu_it_began_on(void **state)
{
    struct place *p = *state;
    struct queue_worker h200 = new_worker(p, "cuda", "H200"), b200 = new_worker(p, "cuda", "B200");
    struct job j;

    add_suite(p, 1, &(struct job_needs){0}, 0);
    assert_true(claim(p, &h200, &j));
    run_sql(p, "UPDATE jobs SET lease_ms = 1"); /* it is lost */
    assert_false(claim(p, &b200, &j));
    assert_true(claim(p, &h200, &j));
}

static void a_worker_claims_only_what_lies_in_its_folder(void **state)
{
    struct place *p = *state;
    struct queue_worker here = new_worker(p, "simt", ""), there = here, linked = here;
    struct error err = {0};
    const char *path;
    struct job j;

    here.folder = here.real_folder = "/task/"; /* not a folder of /tasks/t0.py */
    there.folder = there.real_folder = "/tasks/";
    linked.folder = "/link/";
    linked.real_folder = "/tasks/";
    add_suite(p, 2, &(struct job_needs){0}, 0);
    assert_false(claim(p, &here, &j));
    assert_ok(jobs_elsewhere(p->s, &here, p->a, &path, &err));
    assert_string_equal(path, "/tasks/t0.py");
    assert_ok(jobs_elsewhere(p->s, &linked, p->a, &path, &err));
    assert_null(path);
    assert_true(claim(p, &there, &j));
    assert_true(claim(p, &linked, &j));
}

static void what_is_done_is_known_without_counting(void **state)
{
    struct place *p = *state;
    struct queue_worker w = new_worker(p, "simt", "");
    struct error err = {0};
    struct job j;

    add_suite(p, 5, &(struct job_needs){0}, 0);
    for (int i = 0; i < 3; i++) {
        assert_true(claim(p, &w, &j));
        assert_ok(job_end(p->s, &w, &j, &(struct job_end){.ended = i < 2}, &err));
    }
    assert_true(claim(p, &w, &j));
    struct job_counts c = counts(p, NULL);
    assert_int_equal(c.of[JOB_DONE], 2);
    assert_int_equal(c.of[JOB_FAILED], 1);
    assert_int_equal(c.of[JOB_LEASED], 1);
    assert_int_equal(c.of[JOB_WAITING], 1);
}

static void a_kernel_of_another_machine_is_what_that_machine_put(void **state)
{
    struct place *p = *state;
    const struct shared_files *f = store_kernels(p->s, COMPILED_HERE, p->a);
    struct text data;

    if (!test_url()) { /* a file is one machine's */
        assert_null(f);
        return;
    }
    assert_false(f->get(f->ctx, "k", p->a, &data));
    f->put(f->ctx, "k", (struct text){"a\0b", 3});
    f->put(f->ctx, "k", text_of("somebody was faster"));
    assert_true(f->get(f->ctx, "k", p->a, &data));
    assert_int_equal(data.len, 3);
    assert_memory_equal(data.data, "a\0b", 3);
    run_sql(p, "UPDATE kernels SET data = 'other'");
    assert_false(f->get(f->ctx, "k", p->a, &data));
}

static struct queue_order some_order(enum job_kind kind, const char *path)
{
    return (struct queue_order){.kind = kind, .path = path};
}

static int64_t put(struct place *p, const struct queue_order *order, enum job_state want)
{
    struct error err = {0};
    enum job_state state;
    int64_t id;

    assert_ok(queue_add(p->s, order, &id, &state, &err));
    assert_int_equal(state, want);
    return id;
}

static void the_same_asked_twice_is_one_job_with_one_result(void **state)
{
    struct place *p = *state;
    struct queue_order one = some_order(JOB_EVAL, "/tasks/a.py"), other = one;
    struct queue_worker w = new_worker(p, "simt", "");
    struct queue_entry e;
    struct error err = {0};
    struct job j;
    int64_t id;

    one.source = text_of("kernel one");
    other.source = text_of("kernel two");
    id = put(p, &one, JOB_WAITING);
    assert_int_equal(put(p, &one, JOB_WAITING), id);
    assert_int_not_equal(put(p, &other, JOB_WAITING), id);
    assert_true(claim(p, &w, &j));
    assert_int_equal(j.id, id);
    assert_int_equal(j.kind, JOB_EVAL);
    assert_null(j.suite);
    assert_string_equal(j.path, "/tasks/a.py");
    assert_int_equal(put(p, &one, JOB_LEASED), id);
    assert_ok(job_end(p->s, &w, &j, &(struct job_end){.ended = true, .result = "{\"a\":1}"}, &err));
    assert_int_equal(put(p, &one, JOB_DONE), id);
    assert_ok(queue_read(p->s, id, p->a, &e, &err));
    assert_string_equal(e.result, "{\"a\":1}");
    /* Whoever lost the lease changes neither. */
    assert_ok(job_end(p->s, &w, &j, &(struct job_end){.ended = true, .result = "late"}, &err));
    assert_ok(queue_read(p->s, id, p->a, &e, &err));
    assert_string_equal(e.result, "{\"a\":1}");
}

static void what_failed_or_was_cancelled_is_tried_when_asked_again(void **state)
{
    struct place *p = *state;
    struct queue_order order = some_order(JOB_RUN, "/tasks/a.py");
    struct queue_worker w = new_worker(p, "simt", "");
    struct error err = {0};
    struct job j;
    bool was;
    int64_t id = put(p, &order, JOB_WAITING);

    assert_ok(queue_cancel(p->s, id, &was, &err));
    assert_true(was);
    assert_false(claim(p, &w, &j));
    assert_ok(queue_cancel(p->s, id, &was, &err));
    assert_false(was);
    assert_int_equal(put(p, &order, JOB_WAITING), id);
    assert_true(claim(p, &w, &j));
    assert_ok(queue_cancel(p->s, id, &was, &err));
    assert_false(was);
    assert_ok(job_end(p->s, &w, &j, &(struct job_end){.problem = "no budget"}, &err));
    assert_int_equal(put(p, &order, JOB_WAITING), id);
    assert_false(queue_read(p->s, 4711, p->a, &(struct queue_entry){0}, &err));
    assert_int_equal(err.kind, ERROR_USE);
}

static void compile_jobs_go_to_who_compiles_and_come_first(void **state)
{
    struct place *p = *state;
    struct queue_worker gpu = new_worker(p, "cuda", "H200"), cpu = new_worker(p, "simt", ""),
                        both = new_worker(p, "simt", "");
    struct queue_order order = {.kind = JOB_COMPILE, .source = text_of("code")};
    struct queue_order next = {.kind = JOB_COMPILE, .source = text_of("more code")};
    struct error err = {0};
    struct job j;

    gpu.takes = TAKE_JUDGE;
    cpu.takes = TAKE_COMPILE;
    cpu.suite = "somebody's"; /* whoever compiles does so for all */
    cpu.folder = cpu.real_folder = "/elsewhere/";
    add_suite(p, 2, &(struct job_needs){0}, 0);
    put(p, &order, JOB_WAITING);
    put(p, &next, JOB_WAITING);
    assert_true(claim(p, &gpu, &j));
    assert_int_equal(j.kind, JOB_RUN);
    assert_true(claim(p, &cpu, &j));
    assert_int_equal(j.kind, JOB_COMPILE);
    assert_int_equal(strlen(j.source), 64);
    assert_ok(job_return(p->s, &cpu, &j, true, 0, "", &err));
    for (int i = 0; i < 3; i++) {
        assert_true(claim(p, &both, &j));
        assert_int_equal(j.kind, i < 2 ? JOB_COMPILE : JOB_RUN);
    }
    assert_false(claim(p, &cpu, &j));
    assert_false(claim(p, &gpu, &j));
}

static void a_job_goes_to_a_gpu_with_memory_and_architecture(void **state)
{
    struct place *p = *state;
    struct queue_worker small = new_worker(p, "cuda", "A10"), large = new_worker(p, "cuda", "H200");
    struct queue_order order = some_order(JOB_MEASURE, "/tasks/a.py");
    struct job j;

    small.has.arch = "86";
    large.has.arch = "90";
    large.has.memory_bytes = (int64_t)141 << 30;
    order.needs =
        (struct job_needs){.kind = "cuda", .arch = "90", .memory_bytes = (int64_t)80 << 30};
    put(p, &order, JOB_WAITING);
    assert_false(claim(p, &small, &j));
    small.has.memory_bytes = large.has.memory_bytes;
    assert_false(claim(p, &small, &j));
    assert_true(claim(p, &large, &j));
}

/* A worker was lost between its run's end and its job's: the next one finds one run, not two. */
static void a_job_has_one_run_and_a_cut_judgement_starts_over(void **state)
{
    struct place *p = *state;
    struct queue_order order = some_order(JOB_EVAL, "/tasks/a.py");
    struct task task = small_task(p->a);
    struct run_spec spec = {.task = &task, .device = &small_device, .model = "eval"};
    struct run_history h;
    struct queue_entry e;
    struct error err = {0};
    struct run *run = NULL, *second = NULL;

    spec.job = put(p, &order, JOB_WAITING);
    assert_ok(run_create(p->s, &spec, &run, &err));
    assert_ok(queue_read(p->s, spec.job, p->a, &e, &err));
    assert_string_equal(e.run, run_id(run));
    assert_false(run_create(p->s, &spec, &second, &err));
    assert_int_equal(err.kind, ERROR_USE);
    err = (struct error){0};
    assert_ok(whole_attempt(run, 1, &err));
    run_release(run);
    assert_ok(run_take(p->s, e.run, &run, &err));
    assert_ok(run_start_over(run, &err));
    assert_ok(whole_attempt(run, 1, &err));
    assert_ok(run_end(run, RUN_DONE, "", &err));
    run_release(run);
    assert_ok(store_run_history(p->s, e.run, p->a, &h, &err));
    assert_int_equal(h.attempt_count, 1);
    run_history_release(&h);
    json_decref(task.description);
}

/* Somebody compiles, and says so; or is gone, and the asker does it. */
static void compile_for_others(const char *dir)
{
    struct place p = {.a = arena_new()};
    struct queue_worker w = {.has = {.kind = "simt", .gpu = ""}, .takes = TAKE_COMPILE};
    const struct shared_files *f;
    struct error err = {0};
    bool found = false;
    struct job j;

    if (!store_open(dir, test_url(), STORE_WRITE, &p.s, &err) || !worker_begin(p.s, &w, &err))
        _exit(2);
    f = store_kernels(p.s, COMPILED_FOR_QUEUE, p.a);
    while (!found) {
        if (!job_claim(p.s, &w, p.a, &j, &found, &err) || !jobs_wait(p.s, 20, &err))
            _exit(3);
    }
    f->put(f->ctx, "key", text_of("machine code"));
    _exit(!job_end(p.s, &w, &j, &(struct job_end){.ended = true}, &err) ||
          !worker_end(p.s, &w, &err));
}

static void what_others_compile_is_waited_for_while_they_live(void **state)
{
    struct place *p = *state;
    const struct shared_files *f = store_kernels(p->s, COMPILED_BY_QUEUE, p->a);
    struct error err = {0};
    int64_t compilers = 0;
    struct text data;
    int status;
    pid_t pid;

    assert_false(f->make(f->ctx, "key", text_of("source"), "{\"key\": \"key\"}"));
    store_close(p->s);
    if ((pid = fork()) == 0)
        compile_for_others(p->dir);
    p->s = NULL;
    place_reopen(p);
    f = store_kernels(p->s, COMPILED_BY_QUEUE, p->a);
    while (!compilers)
        assert_ok(workers_who_compile(p->s, &compilers, &err) && jobs_wait(p->s, 20, &err));
    assert_true(f->make(f->ctx, "key", text_of("source"), "{\"key\": \"key\"}"));
    assert_true(f->get(f->ctx, "key", p->a, &data));
    assert_int_equal(data.len, strlen("machine code"));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_false(f->make(f->ctx, "other", text_of("source"), "{\"key\": \"other\"}"));
}

#define JOBS_TEST(f) cmocka_unit_test_setup_teardown(f, place_set_up, place_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        JOBS_TEST(jobs_go_by_priority_then_by_age_and_only_once),
        JOBS_TEST(a_job_goes_to_who_has_what_it_needs),
        JOBS_TEST(whoever_lost_a_lease_changes_nothing),
        JOBS_TEST(a_job_is_tried_so_often_and_no_more),
        JOBS_TEST(a_job_given_back_waits_and_may_not_count),
        JOBS_TEST(many_workers_take_each_job_once),
        JOBS_TEST(workers_are_seen_with_what_they_do),
        JOBS_TEST(a_budget_is_changed_in_turns),
        JOBS_TEST(a_job_goes_on_on_the_kind_of_gpu_it_began_on),
        JOBS_TEST(a_worker_claims_only_what_lies_in_its_folder),
        JOBS_TEST(what_is_done_is_known_without_counting),
        JOBS_TEST(a_kernel_of_another_machine_is_what_that_machine_put),
        JOBS_TEST(the_same_asked_twice_is_one_job_with_one_result),
        JOBS_TEST(what_failed_or_was_cancelled_is_tried_when_asked_again),
        JOBS_TEST(compile_jobs_go_to_who_compiles_and_come_first),
        JOBS_TEST(a_job_goes_to_a_gpu_with_memory_and_architecture),
        JOBS_TEST(a_job_has_one_run_and_a_cut_judgement_starts_over),
        JOBS_TEST(what_others_compile_is_waited_for_while_they_live),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
