/* SPDX-License-Identifier: Apache-2.0 */
/* suite.h - what suite.c, worker.c and workers.c share; private to this room. */
#ifndef LOOP_SUITE_H
#define LOOP_SUITE_H

#include "loop/loop.h"
#include "store/store.h"

/* The text of the last {"error": ...} line among a command's lines of JSON, or NULL. */
const char *suite_error_line(struct text out, struct arena *a);

/* May a worker accept this name of a suite or run, or this task path, from the queue? */
bool worker_name_allowed(const char *name);
bool worker_path_allowed(const char *path);

/* The command that a job becomes on this machine (work.c). */
enum { MOST_FLAGS = 140 };
struct work_place {
    const struct settings *settings;
    struct store *store;
    const char *program;
    const char *folder; /* it takes only tasks below this folder; absolute, no links */
    const char *const *own_flags, *const *own_judging; /* the worker's own flags (loop.h) */
};
struct job_work {
    const char *const *words;
    const char *problem; /* why the job is not allowed; NULL: it is */
    const char *run;     /* the job's run from an earlier try; "": none */
    char *dir;           /* folder with files for the process */
};
bool work_prepare(const struct work_place *p, const struct job *job, struct arena *a,
                  struct job_work *out, struct error *err);
void work_release(struct job_work *w); /* also after errors */
/* The result as JSON, from what the store has of the job; *done: its run has completed. */
bool work_result(struct store *s, const struct job *job, struct arena *a, const char **result,
                 bool *done, struct error *err);

/* Lets workers run the suite's tasks (workers.c). `ended` is called for each that ends. */
struct suite_watch {
    const struct settings *settings;
    const struct suite_options *options;
    struct store *store;
    const char *name, *program;
    const char *const *env;
    void (*changed)(void *ctx, const struct suite_record *now, size_t running);
    void *ctx;
};
bool suite_watch_workers(const struct suite_watch *watch, struct error *err);

#endif
