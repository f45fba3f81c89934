/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work.c - turn a job of the queue into a cutegen command, and collect its result.
 *
 *     kind       command                          result
 *     run        run TASK, or resume RUN          of its best kernel
 *     eval       eval TASK KERNEL                 verdict, time, baselines, machine
 *     measure    eval RUN --all-baselines         likewise
 *     profile    eval RUN --profile               likewise, with the profile
 *     export     eval RUN                         likewise; whoever asked writes the files
 *     compile    compile KERNEL NAME...           whether the store has it
 *
 * Invariants
 * 1. What comes from the queue is checked before it becomes a word of a command: names match a
 *    pattern, paths are absolute, flags are on a list.
 * 2. A result is read from the store, so a job that ran twice still has one result.
 */
#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "loop/suite.h"
#include "stage/settings.h"
#include "store/queue.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_WORDS = 512,
    NAME_BYTES = 200,
    FLAG_BYTES = 1000,
    TASK_BYTES = 4 << 20,
    RESULT_BYTES = 1 << 18,
};

/* ---- what a job may contain ------------------------------------------------------ */

/* Flags about effort and judging. Deliberately not listed: everything that names a program, a file,
 * a key or an address. */
static const char *const allowed[] = {
    "depth",        "repairs",        "patience",      "profile-from",   "width",
    "seed",         "fresh",          "advance",       "search",         "beam",
    "restarts",     "parallel-calls", "floor-stop",    "memory",         "example",
    "simt-as",      "target",         "simt-arch",     "check",          "draws",
    "accept",       "scale",          "set",           "shapes",         "backward",
    "allow-tf32",   "effort",         "temperature",   "max-tokens",     "build-deadline",
    "run-deadline", "task-deadline",  "call-deadline", "stall",          "look",
    "budget-usd",   "budget-tokens",  "budget-calls",  "budget-minutes", "baseline",
    "compile",      "compile-on",     "ahead",         "order",          "tune",
};

/* Models are asked with this worker's key; exec:COMMAND would run a command here. */
static bool model_allowed(const char *value)
{
    static const char *const providers[] = {"builtin", "openai:", "responses:", "anthropic:"};

    for (size_t i = 0; i < ARRAY_LEN(providers); i++)
        if (!strncmp(value, providers[i], strlen(providers[i])))
            return true;
    return false;
}

bool worker_flag_allowed(const char *flag)
{
    const char *name = flag, *equals = strchr(flag, '=');
    size_t len;

    if (strncmp(name, "--", 2) != 0)
        return false;
    name += 2;
    if (!equals && !strncmp(name, "no-", 3))
        name += 3;
    len = equals ? (size_t)(equals - name) : strlen(name);
    if (equals && len == 5 && !strncmp(name, "model", 5))
        return model_allowed(equals + 1);
    for (size_t i = 0; i < ARRAY_LEN(allowed); i++)
        if (strlen(allowed[i]) == len && !strncmp(allowed[i], name, len))
            return true;
    return false;
}

/* Names of runs and suites become folders and command arguments here. */
bool worker_name_allowed(const char *name)
{
    size_t len = strlen(name);

    return len > 0 && len <= NAME_BYTES && isalnum((unsigned char)name[0]) &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == len;
}

static bool is_printable(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 127)
            return false;
    return true;
}

/* A task is a Python file. Its origin does not matter: its code runs confined, like every task. */
bool worker_path_allowed(const char *path)
{
    size_t len = strlen(path);

    return path[0] == '/' && len > 4 && len < PATH_MAX && !strcmp(path + len - 3, ".py") &&
           is_printable(path);
}

/* Compares after resolving links. The run itself refuses a missing file. */
static bool lies_in(const char *path, const char *folder)
{
    char *file = realpath(path, NULL), *dir = realpath(folder, NULL);
    size_t len = dir ? strlen(dir) : 0;
    bool in = !file || (dir && (len == 1 || (!strncmp(file, dir, len) && file[len] == '/')));

    free(file);
    free(dir);
    return in;
}

static const char *refused(struct arena *a, const char *what, const char *text)
{
    char shown[64];
    size_t n = 0;

    for (; text[n] && n < sizeof(shown) - 1; n++)
        shown[n] = text[n] < ' ' || text[n] == 127 ? '?' : text[n];
    shown[n] = '\0';
    return arena_printf(a, "a worker does not accept this %s from the queue: %s", what, shown);
}

/* ---- words ------------------------------------------------------------------ */

struct word_list {
    const char **list;
    size_t count;
};

static void add(struct word_list *w, const char *word)
{
    if (w->count < MAX_WORDS - 1)
        w->list[w->count++] = word;
}

/* Adds this worker's own flags, which flags of a job may override. */
static void add_own(struct word_list *w, const char *const *flags)
{
    for (; flags && *flags; flags++)
        add(w, *flags);
}

static void add_place(struct word_list *w, const struct work_place *p)
{
    add(w, "--device");
    add(w, p->settings->device);
    add(w, "--runs");
    add(w, store_dir(p->store));
    add(w, "--store");
    add(w, p->settings->store_url);
    w->list[w->count] = NULL;
}

static const char *flag_problem(const char *flag, struct arena *a)
{
    if (strlen(flag) > FLAG_BYTES || !is_printable(flag))
        return refused(a, "flag", flag);
    if (!worker_flag_allowed(flag))
        return arena_printf(a, "%s; set it when starting the worker", refused(a, "flag", flag));
    return NULL;
}

static const char *path_problem(const struct work_place *p, const char *path, struct arena *a)
{
    if (!worker_path_allowed(path))
        return refused(a, "path", path);
    if (!lies_in(path, p->folder)) /* a link that leads out of the folder */
        return arena_printf(a, "%s; it serves %s", refused(a, "path", path), p->folder);
    return NULL;
}

/* ---- a task of a suite -------------------------------------------------------- */

static const char *suite_problem(const struct work_place *p, const struct suite_record *suite,
                                 const struct suite_task *t, struct arena *a)
{
    const char *problem;

    if (!worker_name_allowed(suite->name))
        return refused(a, "suite", suite->name);
    problem = path_problem(p, t->path, a);
    if (!problem && t->run && !worker_name_allowed(t->run))
        problem = refused(a, "run", t->run);
    for (size_t i = 0; !problem && suite->flags[i]; i++)
        problem = i >= MOST_FLAGS ? "a worker does not accept that many flags from the queue"
                                  : flag_problem(suite->flags[i], a);
    return problem;
}

static bool prepare_task(const struct work_place *p, const struct job *job, struct arena *a,
                         struct job_work *out, struct error *err)
{
    struct word_list w = {arena_array(a, MAX_WORDS, sizeof(char *)), 0};
    struct suite_record suite;
    const struct suite_task *t;

    if (!suite_read_task(p->store, job->suite, job->number, a, &suite, err))
        return false;
    t = &suite.tasks[0];
    out->run = t->run ? t->run : "";
    out->problem = suite_problem(p, &suite, t, a);
    add(&w, p->program);
    add(&w, t->run ? "resume" : "run");
    add(&w, t->run ? t->run : t->path);
    add(&w, "--json");
    add(&w, "--suite");
    add(&w, suite.name);
    add_own(&w, p->own_flags);
    for (size_t i = 0; !out->problem && suite.flags[i]; i++)
        add(&w, suite.flags[i]);
    add_place(&w, p);
    out->words = w.list;
    return true;
}

/* ---- single jobs ---------------------------------------------------------- */

/* The file must be unchanged since the job was added: that is what was meant to be judged. */
static const char *task_problem(const struct job *job, const json_t *payload, struct arena *a)
{
    const char *want = json_string_or(payload, "task", NULL);
    struct error why = {0};
    struct text now;
    char is[65];

    if (!want)
        return NULL;
    if (!file_read(job->path, TASK_BYTES, a, &now, &why))
        return arena_strdup(a, why.text);
    hash_text(now, is);
    return strcmp(want, is) ? "the task file has changed since the job was put into the queue"
                            : NULL;
}

static const char *payload_problem(const struct work_place *p, const struct job *job,
                                   const json_t *payload, const json_t *flags, struct arena *a)
{
    const char *run = json_string_or(payload, "run", "");
    const char *problem = NULL;

    if (!json_is_object(payload) || !json_is_array(flags))
        return "a worker does not accept this payload from the queue";
    if (job->kind != JOB_COMPILE)
        problem = path_problem(p, job->path, a);
    if (!problem && job->kind != JOB_COMPILE && job->kind != JOB_RUN && job->kind != JOB_EVAL &&
        !worker_name_allowed(run))
        problem = refused(a, "run", run);
    if (!problem && *job->run && !worker_name_allowed(job->run))
        problem = refused(a, "run", job->run);
    for (size_t i = 0; !problem && i < json_array_size(flags); i++) {
        const char *flag = json_string_value(json_array_get(flags, i));

        problem = i >= MOST_FLAGS ? "a worker does not accept that many flags from the queue"
                                  : flag_problem(flag ? flag : "", a);
    }
    return problem ? problem : task_problem(job, payload, a);
}

/* Writes a kernel from the store to a file. Its name is for people; only safe characters are
 * kept. */
static bool write_kernel(const struct work_place *p, const struct job *job, const json_t *payload,
                         struct arena *a, struct job_work *out, const char **path,
                         struct error *err)
{
    const char *name = json_string_or(payload, "name", "");
    bool python = json_bool_or(payload, "python", false);
    struct text source;
    char *dir = NULL;

    if (!blob_get(p->store, job->source, a, &source, err) || !dir_temp("cutegen-job", a, &dir, err))
        return false;
    out->dir = dir;
    *path = path_join(a, dir,
                      arena_printf(a, "%s.%s", worker_name_allowed(name) ? name : "candidate",
                                   python ? "py" : "cu"));
    return file_write(*path, source, err);
}

/* Names are checked by the builder, before anything is compiled. */
static void add_kernels(struct word_list *w, const json_t *payload, struct arena *a)
{
    json_t *names = json_object_get(payload, "names"), *name;
    const char *arch = json_string_or(payload, "arch", "");
    size_t i;

    add(w, arena_printf(a, "--arch=%s", arch));
    add(w, json_bool_or(payload, "cute", true) ? "--target=cute" : "--target=cuda");
    add(w, "--");
    json_array_foreach(names, i, name)
    {
        add(w, arena_strdup(a, json_is_string(name) ? json_string_value(name) : ""));
    }
}

static bool add_words(const struct work_place *p, const struct job *job, const json_t *payload,
                      const json_t *flags, struct word_list *w, struct arena *a,
                      struct job_work *out, struct error *err)
{
    bool resumes = job->kind == JOB_RUN && *job->run, compiles = job->kind == JOB_COMPILE;
    const char *kernel = NULL;

    if ((compiles || job->kind == JOB_EVAL) && !write_kernel(p, job, payload, a, out, &kernel, err))
        return false;
    add(w, p->program);
    add(w, resumes ? "resume" : compiles ? "compile" : job->kind == JOB_RUN ? "run" : "eval");
    add(w, resumes    ? job->run
           : compiles ? kernel
           : job->kind == JOB_RUN || job->kind == JOB_EVAL
               ? job->path
               : arena_strdup(a, json_string_or(payload, "run", "")));
    if (job->kind == JOB_EVAL)
        add(w, kernel);
    add(w, "--json");
    if (job->kind == JOB_MEASURE)
        add(w, "--all-baselines");
    if (job->kind == JOB_PROFILE)
        add(w, "--profile");
    if (!compiles && !resumes)
        add(w, arena_printf(a, "--job=%lld", (long long)job->id));
    add_own(w, job->kind == JOB_RUN ? p->own_flags : p->own_judging);
    for (size_t i = 0; i < json_array_size(flags); i++)
        add(w, arena_strdup(a, json_string_value(json_array_get(flags, i))));
    add_place(w, p);
    if (compiles)
        add_kernels(w, payload, a);
    w->list[w->count] = NULL;
    return true;
}

static bool prepare_single(const struct work_place *p, const struct job *job, struct arena *a,
                           struct job_work *out, struct error *err)
{
    struct word_list w = {arena_array(a, MAX_WORDS, sizeof(char *)), 0};
    json_t *payload = NULL, *flags = NULL;
    struct error bad = {0};
    bool ok = true;

    out->run = job->run;
    if (!json_parse(text_of(job->payload), "a payload", &payload, &bad) ||
        !json_parse(text_of(job->flags), "flags", &flags, &bad))
        out->problem = refused(a, "payload", job->payload);
    else
        out->problem = payload_problem(p, job, payload, flags, a);
    if (!out->problem)
        ok = add_words(p, job, payload, flags, &w, a, out, err);
    out->words = w.list;
    json_decref(payload);
    json_decref(flags);
    return ok;
}

bool work_prepare(const struct work_place *p, const struct job *job, struct arena *a,
                  struct job_work *out, struct error *err)
{
    *out = (struct job_work){.run = ""};
    return job->suite ? prepare_task(p, job, a, out, err) : prepare_single(p, job, a, out, err);
}

void work_release(struct job_work *w)
{
    struct error ignored = {0};

    if (w->dir)
        dir_remove(w->dir, &ignored);
}

/* ---- results ------------------------------------------------------------------ */

static json_t *time_json(const struct measurement *m)
{
    json_t *o = json_pack("{s:o, s:o, s:b}", "time_us", json_number(m->time_us), "floor_us",
                          json_number(m->floor_us), "modelled", (int)m->modelled);
    json_t *baselines = json_object(), *machine = NULL;
    struct error ignored = {0};

    if (!m->modelled)
        json_object_set_new(o, "warm_us", json_number(m->warm_us));
    for (int i = 0; i < m->baseline_count; i++)
        json_object_set_new(baselines, m->baselines[i].name, json_number(m->baselines[i].cold_us));
    json_object_set_new(o, "baselines_us", baselines);
    if (m->machine && *m->machine &&
        json_parse(text_of(m->machine), "a machine", &machine, &ignored))
        json_object_set_new(o, "machine", machine);
    return o;
}

static json_t *run_json(const struct run_history *h)
{
    size_t number = h->info.best_attempt ? (size_t)h->info.best_attempt : h->attempt_count;
    json_t *o = json_pack("{s:s, s:s, s:i}", "run", h->info.id, "state",
                          run_state_names[h->info.state], "attempts", (int)h->attempt_count);
    const struct attempt_record *t;

    json_object_set_new(o, "device", json_from_string(h->device.name));
    if (!number)
        return o;
    t = &h->attempts[number - 1];
    json_object_set_new(o, "verdict", json_string(verdict_names[t->outcome.verdict.kind]));
    json_object_set_new(o, "summary", json_from_string(t->outcome.verdict.summary));
    if (t->outcome.build)
        json_object_set_new(o, "cached", json_boolean(t->outcome.build->cached));
    if (t->outcome.build && t->outcome.build->code_hash)
        json_object_set_new(o, "code", json_string(t->outcome.build->code_hash));
    if (t->outcome.measurement)
        json_object_update_new(o, time_json(t->outcome.measurement));
    if (t->profile)
        json_object_set_new(o, "profile", json_from_string(t->profile->text));
    return o;
}

/* Did it succeed? The store has the result that others wait for. */
static bool compile_result(struct store *s, const struct job *job, struct arena *a,
                           const char **result, struct error *err)
{
    struct error ignored = {0};
    json_t *payload = NULL;
    bool has = false, ok;

    if (!json_parse(text_of(job->payload), "a payload", &payload, &ignored))
        return true;
    ok = store_has_kernel(s, json_string_or(payload, "key", ""), &has, err);
    json_decref(payload);
    *result = has ? "{\"made\": true}" : "{\"made\": false}";
    (void)a;
    return ok;
}

bool work_result(struct store *s, const struct job *job, struct arena *a, const char **result,
                 bool *done, struct error *err)
{
    struct queue_entry now;
    struct run_history h = {0};
    json_t *o;

    *result = "";
    *done = false;
    if (job->suite)
        return true;
    if (job->kind == JOB_COMPILE)
        return compile_result(s, job, a, result, err);
    if (!queue_read(s, job->id, a, &now, err) || !*now.run)
        return err->kind == ERROR_NONE;
    if (!store_run_history(s, now.run, a, &h, err))
        return false;
    o = run_json(&h);
    *done = h.info.state == RUN_DONE;
    *result = json_line(o, a);
    if (strlen(*result) > RESULT_BYTES) { /* the run has the complete result */
        json_object_del(o, "profile");
        *result = json_line(o, a);
    }
    json_decref(o);
    run_history_release(&h);
    return true;
}
