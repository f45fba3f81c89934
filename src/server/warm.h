/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warm.h - processes from the warm server, or, without it, started here.
 *
 *     w = warm_open(&config);
 *     builder_config.source = warm_source(w);     builders and oracles are lent when they can be
 *     ...
 *     warm_close(w);                              what was lent keeps its own connection
 *
 * The server is started when it is first needed. Whatever is wrong with it is
 * reported once and is not an error: the process is then started here. A server older
 * than this program is told to end and replaced; it keeps serving the loans
 * that are out. A newer one that speaks our protocol is used as it is.
 */
#ifndef SERVER_WARM_H
#define SERVER_WARM_H

#include "base/proc.h"

#include <jansson.h>

struct warm;

struct warm_config {
    int idle_s;     /* the server ends after so long without a client; 0: 600 */
    int memory_mib; /* its processes that wait may hold; 0: an eighth of the machine's */
};

struct warm *warm_open(const struct warm_config *config);
const struct child_source *warm_source(struct warm *w);
/*
 * Starts the server now, so that it is not a descendant of a process that is ended with all it
 * started; -1, or a connection that keeps it from ending until it is closed.
 */
int warm_hold(struct warm *w);
/* Ends all processes that wait for a borrower: their memory is needed. */
void warm_trim(struct warm *w);
/*
 * Starts a program of ours (argv[0]: its name) that outlives this one, with fds[0], fds[1] and
 * fds[2] as its 0, 1 and 3. By the server, because what we start ourselves is ended with us where
 * a supervisor runs us (base/proc.h); by ourselves where there is none, or w is NULL.
 */
bool warm_leave(struct warm *w, const char *const *argv, const int fds[3], struct error *err);
void warm_close(struct warm *w); /* NULL is fine */

/* By hand: what the running server has, or NULL in *out when there is none; tells it to end. */
bool warm_status(json_t **out, struct error *err);
bool warm_stop(bool *was_there, struct error *err);

#endif
