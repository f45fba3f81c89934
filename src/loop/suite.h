/* SPDX-License-Identifier: Apache-2.0 */
/* suite.h - what suite.c, worker.c and workers.c share; private to this room. */
#ifndef LOOP_SUITE_H
#define LOOP_SUITE_H

#include "loop/loop.h"
#include "store/store.h"

/* The text of the last {"error": ...} line among a command's lines of JSON, or NULL. */
const char *suite_error_line(struct text out, struct arena *a);

/* A flag that a worker takes from the queue (worker.c). */
bool worker_flag_allowed(const char *flag);
/* A suite's or run's name, a task's path, that it takes from there. */
bool worker_name_allowed(const char *name);
bool worker_path_allowed(const char *path);

/* Has the suite's tasks done by workers (workers.c). `ended` is called for each that ends. */
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
