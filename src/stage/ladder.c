/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ladder.c - the built-in engineer's kernels, compiled before they are asked for.
 *
 * What is compiled is found in the cache later: by this run, which then does not wait for a
 * compiler, or by a run on another machine that the cache was carried to.
 */
#include "base/cpus.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "expert/expert.h"
#include "stage/workshop.h"

#include <stdlib.h>
#include <unistd.h>

enum { BUILDER_BYTES = 2000000000, FIRST_NUMBER = 100000 }; /* number: of no attempt of a run */

/* How many builders fit into half of the memory that is free. */
static long builders_that_fit(void)
{
    double bytes = (double)sysconf(_SC_AVPHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);

    return (long)(bytes / 2 / BUILDER_BYTES);
}

/* How many builders may run beside each other. Few cores have none to spare. */
static size_t builders_ahead(const struct stage *st)
{
    enum { LEAST_CORES = 4 };
    long cores = cpus_usable(), most = builders_that_fit();

    if (st->settings.ahead >= 0)
        return (size_t)st->settings.ahead;
    if (cores < LEAST_CORES)
        return 0;
    return (size_t)(most < cores - 1 ? (most > 0 ? most : 0) : cores - 1);
}

/* The kernels that lead on from `current`, into the request's order. */
static int next_kernels(struct stage *st, const struct question *q, struct text *sources, int most,
                        struct arena *a)
{
    struct proposal p;
    struct error why = {0};
    int n = 0;

    workshop_request(st, STAGE_OPTIMIZE, q, &p);
    if (!expert_ahead(&p.request, sources, most, &n, a, &why))
        log_info("nothing is compiled ahead: %s", why.text);
    return n;
}

static void prepare_jobs(const struct text *sources, int n, struct candidate *cands,
                         struct build_result *builds, struct build_job *jobs)
{
    for (int i = 0; i < n; i++) {
        cands[i] = (struct candidate){.attempt = FIRST_NUMBER + i, .source = sources[i]};
        jobs[i] = (struct build_job){.cand = &cands[i], .a = arena_new(), .out = &builds[i]};
    }
}

static void release_jobs(struct build_job *jobs, int n)
{
    for (int i = 0; i < n; i++)
        arena_free(jobs[i].a);
}

void stage_ladder_ahead(struct stage *st, const struct task *task, const struct candidate *current,
                        json_t *history)
{
    struct question q = {.task = task, .current = current, .history = history};
    struct text sources[LADDER_MOST];
    struct build_job jobs[LADDER_MOST];
    struct candidate cands[LADDER_MOST];
    struct build_result builds[LADDER_MOST];
    size_t step = builders_ahead(st);
    struct arena *a;
    int n;

    if (!st->builtin || step < 2 || st->shape_count > 1)
        return;
    a = arena_new();
    n = next_kernels(st, &q, sources, LADDER_MOST, a);
    prepare_jobs(sources, n, cands, builds, jobs);
    if (n > 1) {
        log_info("%d kernels are compiled ahead, %zu at a time", n, step);
        workshop_build_jobs(st, task, jobs, (size_t)n, step);
    }
    release_jobs(jobs, n);
    arena_free(a);
}

/* ---- for a machine that need not be this one --------------------------------------- */

/* The first kernel, as a run begins; sources[0], and what an optimize question says of it. */
static bool first_kernel(struct stage *st, const struct task *task, struct arena *a,
                         struct candidate *first, json_t *history, const char **why_not,
                         struct error *err)
{
    struct question q = {.task = task, .history = history};
    struct proposal p;

    if (!stage_synthesize(st, &q, a, &p, err))
        return false;
    if (p.done || p.verdict.kind != VERDICT_PASS) {
        *why_not =
            p.done ? arena_strndup(a, p.reply.text.data, p.reply.text.len) : p.verdict.summary;
        return true;
    }
    *first = (struct candidate){.source = p.source, .change = p.change, .steps = p.steps};
    json_array_append_new(history, json_pack("{s:s, s:s}", "change", p.change, "verdict",
                                             verdict_names[VERDICT_PASS]));
    return true;
}

static size_t builders_now(int kernels)
{
    long cores = cpus_usable(), fit = builders_that_fit(), most = cores < fit ? cores : fit;

    return (size_t)(most < 1 ? 1 : most < kernels ? most : kernels);
}

/* What became of the jobs; the first error of a broken machine is the answer. */
static bool add_up(const struct build_job *jobs, int n, struct arena *a, struct ladder_built *out,
                   struct error *err)
{
    for (int i = 0; i < n; i++) {
        const struct verdict *v = &jobs[i].out->verdict;

        if (!jobs[i].ok) {
            *err = jobs[i].err;
            return false;
        }
        out->kernels++;
        out->found += v->kind == VERDICT_PASS && jobs[i].out->cached;
        out->failed += v->kind != VERDICT_PASS;
        if (v->kind != VERDICT_PASS && !out->why_failed)
            out->why_failed = arena_printf(a, "%s: %s", verdict_names[v->kind], v->summary);
    }
    return true;
}

/* DIR/NAME.cu, .cubin and .json: a kernel with all that a launcher needs (oracle/exported); the
 * next ones are NAME~1, NAME~2, ... */
static bool write_kernel(const struct stage *st, const struct task *task,
                         const struct build_job *job, int number, const char *dir, struct arena *a,
                         struct error *err)
{
    static const char *const parts[] = {"workspace", "ops", "maps"};
    const char *path = path_join(a, dir, task->name);
    json_t *j = json_object();
    char *text;
    bool ok;

    if (number > 0)
        path = arena_printf(a, "%s~%d", path, number);
    json_object_set_new(j, "arch", json_string(st->device.arch));
    json_object_set(j, "inputs", json_object_get(task->description, "inputs"));
    json_object_set(j, "outputs", json_object_get(task->description, "outputs"));
    json_object_set(j, "names", job->out->names);
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        json_object_set(j, parts[i], json_object_get(job->out->launches, parts[i]));
    text = json_dumps(j, JSON_COMPACT | JSON_SORT_KEYS);
    ok = text && dir_make(dir, err) &&
         file_write(arena_printf(a, "%s.cu", path), job->cand->source, err) &&
         file_write(arena_printf(a, "%s.cubin", path), job->out->code, err) &&
         file_write(arena_printf(a, "%s.json", path), text_of(text), err);
    free(text);
    json_decref(j);
    return ok;
}

bool stage_ladder_build(struct stage *st, const struct task *task, int depth, const char *dir,
                        struct arena *a, struct ladder_built *out, struct error *err)
{
    struct text sources[LADDER_MOST + 1];
    struct build_job jobs[LADDER_MOST + 1];
    struct candidate cands[LADDER_MOST + 1], first = {0};
    struct build_result builds[LADDER_MOST + 1] = {0};
    json_t *history = json_array();
    struct question q = {.task = task, .current = &first, .history = history};
    int n = 1;
    bool ok = first_kernel(st, task, a, &first, history, &out->why_not, err);

    if (ok && !out->why_not) {
        sources[0] = first.source;
        n += next_kernels(st, &q, sources + 1, depth < LADDER_MOST ? depth : LADDER_MOST, a);
        prepare_jobs(sources, n, cands, builds, jobs);
        workshop_build_jobs(st, task, jobs, (size_t)n, builders_now(n));
        ok = add_up(jobs, n, a, out, err);
        for (int i = 0; i < n && ok && dir; i++)
            if (builds[i].verdict.kind == VERDICT_PASS)
                ok = write_kernel(st, task, &jobs[i], i, dir, a, err);
        release_jobs(jobs, n);
    }
    json_decref(history);
    return ok;
}
