/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suite.c - run many tasks, several at a time, until all have ended.
 *
 * Every task is a `cutegen run` (or `resume`) in a process of its own, so a task that crashes it
 * affects no other. The suite's runs share one budget through a file in its folder; on a GPU they
 * take turns through the device's lease (stage/workshop.h), so that timings never overlap.
 *
 * Invariants
 * 1. What to do next follows from the store alone: a suite that was killed is
 *    resumed by reading it again.
 * 2. A task has ended when its run is done, or when it cannot have one (it does
 *    not load). Interrupted, out of budget, killed, broken machine: not ended.
 * 3. A task that the machine failed is tried again by the same command, after the others, a few
 *    times. Such retries are counted separately (suite_tasks.retries) and do not count against the
 *    task.
 */
#include "loop/suite.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/text.h"
#include "base/vault.h"
#include "loop/loop.h"
#include "stage/stage.h"
#include "store/store.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MAX_TASKS = 10000,
    MAX_LIST_BYTES = 1 << 20,
    MAX_JOBS = 64,
    OUTPUT_BYTES = 4 << 20,
    MAX_RETRIES = 2, /* of one task, within one command */
    MAX_WORDS = 160
};

const char *suite_budget_path(struct arena *a, const char *runs_dir, const char *suite)
{
    return path_join(a, path_join(a, runs_dir, suite), "budget.json");
}

/* ---- the list of tasks ----------------------------------------------------------- */

struct task_list {
    const char *paths[MAX_TASKS];
    size_t count;
};

/* "2_x" before "10_x": KernelBench numbers its files. */
static int by_number(const void *x, const void *y)
{
    const char *a = *(const char *const *)x, *b = *(const char *const *)y;

    while (*a && *b) {
        if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
            char *after_a, *after_b;
            unsigned long m = strtoul(a, &after_a, 10), n = strtoul(b, &after_b, 10);

            if (m != n)
                return m < n ? -1 : 1;
            a = after_a;
            b = after_b;
        } else if (*a != *b) {
            return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
        } else {
            a++;
            b++;
        }
    }
    return (*a != 0) - (*b != 0);
}

static bool is_folder(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Is it a Python file with a Model? Helper modules beside tasks have none. */
static bool is_task(const char *path)
{
    size_t len = strlen(path);
    struct arena *a;
    struct error ignored = {0};
    struct text t;
    bool yes;

    if (len < 4 || strcmp(path + len - 3, ".py") != 0)
        return false;
    a = arena_new();
    yes = file_read(path, MAX_LIST_BYTES, a, &t, &ignored) && strstr(t.data, "class Model") != NULL;
    arena_free(a);
    return yes;
}

static bool add_task(struct task_list *l, const char *path, struct error *err)
{
    if (l->count == MAX_TASKS)
        return error_set(err, ERROR_USE, "more than %d tasks", MAX_TASKS);
    l->paths[l->count++] = path;
    return true;
}

/* The tasks in a folder, or in its subfolders (level1, level2, ...) if it has none itself. */
static bool list_folder(const char *dir, bool deeper, struct arena *a, struct task_list *l,
                        struct error *err)
{
    const char *folders[256];
    size_t folder_count = 0, before = l->count;
    DIR *d = opendir(dir);
    struct dirent *e;
    bool ok = true;

    if (!d)
        return error_set(err, ERROR_USE, "cannot open the folder %s: %s", dir, strerror(errno));
    while (ok && (e = readdir(d)) != NULL) {
        const char *path = path_join(a, dir, e->d_name);

        if (e->d_name[0] == '.' || e->d_name[0] == '_')
            continue;
        if (is_folder(path) && folder_count < ARRAY_LEN(folders))
            folders[folder_count++] = path;
        else if (is_task(path))
            ok = add_task(l, path, err);
    }
    closedir(d);
    qsort(l->paths + before, l->count - before, sizeof(*l->paths), by_number);
    if (!ok || l->count > before || !deeper)
        return ok;
    qsort(folders, folder_count, sizeof(*folders), by_number);
    for (size_t i = 0; ok && i < folder_count; i++)
        ok = list_folder(folders[i], false, a, l, err);
    return ok;
}

/* One path per line, relative to the list's folder; # begins a comment. */
static bool list_file(const char *file, struct arena *a, struct task_list *l, struct error *err)
{
    const char *slash = strrchr(file, '/');
    const char *dir = slash ? arena_strndup(a, file, (size_t)(slash - file)) : ".";
    struct text t;
    int number = 0;

    if (!file_read(file, MAX_LIST_BYTES, a, &t, err))
        return false;
    for (struct text whole; text_next_line(&t, &whole);) {
        const char *comment = memchr(whole.data, '#', whole.len);
        struct text name = text_trim(
            (struct text){whole.data, comment ? (size_t)(comment - whole.data) : whole.len});
        const char *line = arena_strndup(a, name.data, name.len), *path;

        number++;
        if (!*line)
            continue;
        path = path_absolute(a, *line == '/' ? line : path_join(a, dir, line));
        if (!file_exists(path)) {
            error_set(err, ERROR_USE, "%s:%d: there is no task file %s", file, number, path);
            return false;
        }
        if (!add_task(l, path, err))
            return false;
    }
    return true;
}

static bool list_tasks(const char *source, struct arena *a, struct task_list *l, struct error *err)
{
    const char *path = path_absolute(a, source);
    size_t len = strlen(path);
    bool ok;

    if (is_folder(path))
        ok = list_folder(path, true, a, l, err);
    else if (len > 3 && strcmp(path + len - 3, ".py") == 0 && file_exists(path))
        ok = add_task(l, path, err);
    else
        ok = list_file(path, a, l, err);
    if (!ok) {
        err->kind = ERROR_USE;
        return false;
    }
    if (l->count)
        return true;
    error_set(err, ERROR_USE, "there is no task in %s", source);
    return error_hint(err, "a task is a .py file with a class Model; a list has one path per line");
}

/* ---- one task -------------------------------------------------------------- */

struct suite_slot {
    pthread_t thread;
    bool busy, finished;
    size_t number;
    struct arena *a;
    struct proc_spec spec;
    const char *argv[MAX_WORDS];
    struct proc_result result;
    struct error err;
    bool ok;
    int64_t began_ms, wall_ms;
    struct suite *suite;
};

struct suite {
    const struct settings *settings;
    const struct suite_options *options;
    struct suite_progress *progress;
    struct store *store;
    struct arena *a;
    const char *name, *program;
    const char *env[8];
    struct suite_record record;
    struct suite_slot slots[MAX_JOBS];
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t next, done, running;
    /* tasks that failed because of the machine, to be retried after the others */
    size_t *again, again_count;
    unsigned char *tries; /* tries of each task by this command */
    bool out_of_budget;
    struct error broken; /* the first task that met a broken machine */
};

static bool stop_now(void *ctx)
{
    (void)ctx;
    return loop_interrupts > 1;
}

static void *run_task(void *self)
{
    struct suite_slot *s = self;

    s->ok = proc_run(&s->spec, s->a, &s->result, &s->err);
    s->wall_ms = clock_ms() - s->began_ms;
    pthread_mutex_lock(&s->suite->lock);
    s->finished = true;
    pthread_cond_signal(&s->suite->changed);
    pthread_mutex_unlock(&s->suite->lock);
    return NULL;
}

static void tell(struct suite *u, enum suite_event_kind kind, const struct suite_task *task)
{
    struct suite_event ev = {.kind = kind,
                             .suite = u->name,
                             .task = task,
                             .done = u->done,
                             .running = u->running,
                             .count = u->record.count};

    if (u->progress)
        u->progress->event(u->progress, &ev);
}

static void fill_words(struct suite *u, struct suite_slot *s, const struct suite_task *t)
{
    size_t n = 0;

    s->argv[n++] = u->program;
    s->argv[n++] = t->run ? "resume" : "run";
    s->argv[n++] = t->run ? t->run : t->path;
    s->argv[n++] = "--json";
    s->argv[n++] = "--suite";
    s->argv[n++] = u->name;
    for (size_t i = 0; u->record.flags[i] && n < ARRAY_LEN(s->argv) - 5; i++)
        s->argv[n++] = u->record.flags[i];
    /* Flags given when the suite is resumed come last and override: a larger budget, another
     * deadline. */
    for (size_t i = 0;
         u->options->resume && i < json_array_size(u->options->flags) && n < ARRAY_LEN(s->argv) - 5;
         i++)
        s->argv[n++] = json_string_value(json_array_get(u->options->flags, i));
    s->argv[n++] = "--runs";
    s->argv[n++] = store_dir(u->store);
    s->argv[n++] = "--store";
    s->argv[n++] = u->settings->store_url;
    s->argv[n] = NULL;
}

static void start_task(struct suite *u, struct suite_slot *s, size_t number)
{
    const struct suite_task *t = &u->record.tasks[number];

    *s = (struct suite_slot){.busy = true, .number = number, .suite = u, .a = arena_new()};
    fill_words(u, s, t);
    s->spec = (struct proc_spec){
        .argv = s->argv, .env = u->env, .output_limit = OUTPUT_BYTES, .stop = stop_now};
    s->began_ms = clock_ms();
    u->running++;
    tell(u, SUITE_TASK_BEGINS, t);
    if (pthread_create(&s->thread, NULL, run_task, s) != 0)
        BUG("cannot start a thread for a task");
}

const char *suite_error_line(struct text out, struct arena *a)
{
    const char *found = NULL;

    for (struct text line; text_next_line(&out, &line);) {
        struct error ignored = {0};
        json_t *o = NULL;
        const char *text;

        if (!text_starts(line, "{") || !json_parse(line, "a line of a run", &o, &ignored))
            continue;
        text = json_string_or(json_object_get(o, "error"), "text", NULL);
        if (text)
            found = arena_strdup(a, text);
        json_decref(o);
    }
    return found;
}

/* Interprets how a task's process ended. *failed: because of the machine, not the task. */
static void judge_end(struct suite *u, struct suite_slot *s, bool *ended, bool *failed,
                      const char **problem)
{
    const struct proc_result *r = &s->result;
    const char *said = s->ok ? suite_error_line(r->out, s->a) : s->err.text;

    *ended = *failed = false;
    *problem = said ? said : "";
    if (!s->ok || r->end != PROC_EXITED) {
        *failed = true;
        if (!said)
            *problem = proc_end_text(r, s->a);
        return;
    }
    switch (r->code) {
    case 0: /* the run says whether there is a kernel */
    case 1:
        *ended = true;
        *problem = "";
        break;
    case 2:
        *ended = true; /* it would not load next time either */
        break;
    case 4:
        u->out_of_budget = true;
        break;
    case 3:
        *failed = true;
        break;
    default:
        break;
    }
}

/* Queues the task for another try after the others, or reports a machine that stays broken. */
static bool try_again(struct suite *u, size_t number, const char *problem, struct error *err)
{
    if (loop_interrupts || u->tries[number] >= MAX_RETRIES) {
        if (u->broken.kind == ERROR_NONE && *problem)
            error_set(&u->broken, ERROR_MACHINE, "%s", problem);
        return true;
    }
    u->tries[number]++;
    u->again[u->again_count++] = number;
    log_info("%s: the machine failed (%s); trying again", u->record.tasks[number].name, problem);
    return suite_task_retry(u->store, u->name, number, err);
}

static bool finish_task(struct suite *u, struct suite_slot *s, struct error *err)
{
    struct suite_task *t = &u->record.tasks[s->number];
    struct suite_record now;
    const char *problem;
    bool ended, failed, ok;

    pthread_join(s->thread, NULL);
    judge_end(u, s, &ended, &failed, &problem);
    ok = (!failed || try_again(u, s->number, problem, err)) &&
         suite_task_set(u->store, u->name, s->number, ended, problem, s->wall_ms, err) &&
         suite_read(u->store, u->name, u->a, &now, err);
    if (ok)
        *t = now.tasks[s->number];
    arena_free(s->a);
    s->busy = false;
    u->running--;
    u->done += ended;
    tell(u, SUITE_TASK_ENDS, t);
    return ok;
}

/* ---- by workers ------------------------------------------------------------- */

static void workers_did(void *ctx, const struct suite_record *now, size_t running)
{
    struct suite *u = ctx;

    u->running = running;
    for (size_t i = 0; i < u->record.count; i++) {
        struct suite_task *t = &u->record.tasks[i];

        if (!now->tasks[i].ended && *now->tasks[i].problem && u->broken.kind == ERROR_NONE)
            error_set(&u->broken, ERROR_MACHINE, "%s", now->tasks[i].problem);
        if (t->ended || !now->tasks[i].ended)
            continue;
        t->ended = true;
        t->problem = arena_strdup(u->a, now->tasks[i].problem);
        t->run = now->tasks[i].run ? arena_strdup(u->a, now->tasks[i].run) : NULL;
        t->wall_ms = now->tasks[i].wall_ms;
        t->state = now->tasks[i].state;
        u->done++;
        tell(u, SUITE_TASK_ENDS, t);
    }
}

static bool have_it_done(struct suite *u, struct error *err)
{
    struct suite_watch watch = {.settings = u->settings,
                                .options = u->options,
                                .store = u->store,
                                .name = u->name,
                                .program = u->program,
                                .env = u->env,
                                .changed = workers_did,
                                .ctx = u};

    for (size_t i = 0; i < u->record.count; i++)
        u->done += u->record.tasks[i].ended;
    tell(u, SUITE_BEGINS, NULL);
    return suite_watch_workers(&watch, err);
}

/* A worker accepts only some flags from the queue; the others are given when it is started. */
static json_t *flags_to_store(const struct suite_options *options)
{
    json_t *list = json_array(), *flag;
    size_t i;

    json_array_foreach(options->flags, i, flag)
    {
        if (!options->workers || worker_flag_allowed(json_string_value(flag)))
            json_array_append(list, flag);
    }
    return list;
}

/* ---- all of them ----------------------------------------------------------- */

static bool may_start(const struct suite *u)
{
    return (u->next < u->record.count || u->again_count) && !loop_interrupts && !u->out_of_budget;
}

/* The first task that has not ended; then those to be retried, the one waiting longest first.
 * False: none is left. */
static bool next_task(struct suite *u, size_t *number)
{
    while (u->next < u->record.count && u->record.tasks[u->next].ended)
        u->next++;
    if (u->next < u->record.count) {
        *number = u->next++;
        return true;
    }
    if (!u->again_count)
        return false;
    *number = u->again[0];
    memmove(u->again, u->again + 1, --u->again_count * sizeof(*u->again));
    return true;
}

static void fill_slots(struct suite *u, int jobs)
{
    for (int i = 0; i < jobs && may_start(u); i++) {
        size_t number;

        if (!u->slots[i].busy && next_task(u, &number))
            start_task(u, &u->slots[i], number);
    }
}

/* The slot of a task that has finished; waits for one. */
static struct suite_slot *wait_for_one(struct suite *u, int jobs)
{
    struct suite_slot *found = NULL;

    pthread_mutex_lock(&u->lock);
    while (!found) {
        for (int i = 0; i < jobs && !found; i++)
            if (u->slots[i].busy && u->slots[i].finished)
                found = &u->slots[i];
        if (!found)
            pthread_cond_wait(&u->changed, &u->lock);
    }
    pthread_mutex_unlock(&u->lock);
    return found;
}

static bool run_all(struct suite *u, struct error *err)
{
    int jobs = u->options->jobs < 1 ? 1 : u->options->jobs > MAX_JOBS ? MAX_JOBS : u->options->jobs;
    bool ok = true;

    u->again = arena_array(u->a, u->record.count * (MAX_RETRIES + 1) + 1, sizeof(*u->again));
    u->tries = arena_array(u->a, u->record.count + 1, sizeof(*u->tries));
    for (size_t i = 0; i < u->record.count; i++)
        u->done += u->record.tasks[i].ended;
    tell(u, SUITE_BEGINS, NULL);
    fill_slots(u, jobs);
    while (u->running) {
        ok = finish_task(u, wait_for_one(u, jobs), err) && ok;
        if (ok)
            fill_slots(u, jobs);
    }
    return ok;
}

static bool say_why(const struct suite *u, struct error *err)
{
    if (loop_interrupts)
        error_set(err, ERROR_INTERRUPTED, "stopped after %zu of %zu tasks", u->done,
                  u->record.count);
    else if (u->out_of_budget)
        error_set(err, ERROR_BUDGET, "the budget was spent after %zu of %zu tasks", u->done,
                  u->record.count);
    else if (u->done < u->record.count)
        error_set(err, ERROR_MACHINE, "%zu of %zu tasks did not finish: %s",
                  u->record.count - u->done, u->record.count,
                  u->broken.kind ? u->broken.text : "their processes were killed");
    else
        return true;
    return error_hint(err, "continue with: cutegen suite --resume %s", u->name);
}

/* Our own program needs the keys that other programs must not see. */
static void pass_keys(struct suite *u)
{
    size_t n = 0;

    for (size_t i = 0; i < ARRAY_LEN(u->options->key_names); i++) {
        const char *name = u->options->key_names[i], *value = name ? vault_get(name) : NULL;

        if (value)
            u->env[n++] = arena_printf(u->a, "%s=%s", name, value);
    }
}

/* Reads the list before opening the store, so that wrong use leaves nothing behind. */
static bool begin_suite(struct suite *u, struct error *err)
{
    struct task_list *l = xmalloc(sizeof(*l));
    json_t *flags = flags_to_store(u->options);
    bool ok;

    ok = list_tasks(u->options->source, u->a, l, err) &&
         store_open(u->settings->runs_dir, u->settings->store_url, STORE_WRITE, &u->store, err) &&
         suite_create(u->store, path_absolute(u->a, u->options->source), l->paths, l->count, flags,
                      u->a, &u->name, err);
    json_decref(flags);
    xfree(l);
    return ok;
}

static bool go_on(struct suite *u, struct error *err)
{
    const struct shared_text *shared;
    const char *budget;

    if (!store_open(u->settings->runs_dir, u->settings->store_url, STORE_WRITE, &u->store, err) ||
        !suite_find(u->store, u->options->resume, u->a, &u->name, err))
        return false;
    shared = suite_budget(u->store, u->name, "", u->a);
    if (shared)
        return stage_budget_unpause_shared(shared, err);
    budget = suite_budget_path(u->a, u->settings->runs_dir, u->name);
    return !file_exists(budget) || stage_budget_unpause(budget, err);
}

bool loop_suite(const struct settings *settings, const struct suite_options *options,
                struct suite_progress *progress, struct arena *a, const char **name,
                struct error *err)
{
    struct suite *u = xmalloc(sizeof(*u));
    char *program = realpath("/proc/self/exe", NULL);
    int lock = -1, server = -1;
    bool ok = false;

    *name = NULL;
    u->settings = settings;
    u->options = options;
    u->progress = progress;
    u->a = a;
    pthread_mutex_init(&u->lock, NULL);
    pthread_cond_init(&u->changed, NULL);
    pass_keys(u);
    if (!program) {
        error_set(err, ERROR_MACHINE, "cannot find our own program: %s", strerror(errno));
        goto done;
    }
    u->program = program;
    if (!(options->resume ? go_on(u, err) : begin_suite(u, err)))
        goto done;
    *name = u->name;
    server = stage_server_hold(settings);
    ok = suite_lock(u->store, u->name, &lock, err) &&
         suite_read(u->store, u->name, a, &u->record, err) &&
         (options->workers ? have_it_done(u, err) : run_all(u, err)) && say_why(u, err);
done:
    if (lock >= 0)
        close(lock);
    if (server >= 0)
        close(server);
    store_close(u->store);
    pthread_mutex_destroy(&u->lock);
    pthread_cond_destroy(&u->changed);
    free(program);
    xfree(u);
    return ok;
}
