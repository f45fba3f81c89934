/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warm.h - get processes from the warm server, or start them here without it.
 *
 *     w = warm_open(&config);
 *     builder_config.source = warm_source(w);     builders and oracles are lent when they can be
 *     ...
 *     warm_close(w);                              loans keep their own connections
 *
 * The server is started when it is first needed. A problem with it is reported once and is not an
 * error: the process is then started here. A server older than this program, or with lower resource
 * limits, is told to end and is replaced; it keeps serving its open loans. A newer one that speaks
 * our protocol is used.
 */
#ifndef SERVER_WARM_H
#define SERVER_WARM_H

#include "base/proc.h"

#include <jansson.h>

struct warm;

struct warm_config {
    int idle_s;     /* the server ends after so long without a client; 0: 600 */
    int memory_mib; /* memory its idle processes may hold; 0: an eighth of the machine's */
};

struct warm *warm_open(const struct warm_config *config);
const struct child_source *warm_source(struct warm *w);
/*
 * Starts the server now, so that it is not a descendant of a process whose descendants get killed.
 * Returns a connection that keeps it running until closed, or -1.
 */
int warm_hold(struct warm *w);
/* Ends all idle processes of the server, to free their memory. */
void warm_trim(struct warm *w);
/*
 * Starts a program of ours (argv[0]: its name) that outlives this one, with fds[0], fds[1] and
 * fds[2] as its 0, 1 and 3. The server starts it, because under a supervisor our own children end
 * with us (base/proc.h); we start it ourselves without a supervisor, or if w is NULL.
 */
bool warm_leave(struct warm *w, const char *const *argv, const int fds[3], struct error *err);
void warm_close(struct warm *w); /* NULL is fine */

/* For `cutegen server`: the running server's status, NULL in *out if none runs; and telling it to
 * end. */
bool warm_status(json_t **out, struct error *err);
bool warm_stop(bool *was_there, struct error *err);

#endif
