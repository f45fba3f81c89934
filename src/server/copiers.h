/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copiers.h - the warm server's copiers: processes that make programs as copies of themselves.
 *
 *     if (!copiers_copy(copiers, wish, &spec, &child)) ...   none is ready: start the program
 * itself copiers_tend(copiers, quiet, idle);                    periodically
 *
 * A wish with a "copier" has its command, to which the descriptor for requests is added, and with
 * "copies" what its copies have in common: command and environment. The second such wish has one
 * started, or the first when nothing was asked for a while after it.
 *
 * Invariants
 * 1. A copier is started only while nothing is timed.
 * 2. One that ends or fails costs nothing but time: the program is started by exec.
 */
#ifndef SERVER_COPIERS_H
#define SERVER_COPIERS_H

#include "base/proc.h"

#include <jansson.h>

struct copiers;

struct copiers *copiers_new(int idle_ms); /* one that made nothing for so long is ended */
void copiers_free(struct copiers *c);     /* ends them, and waits */

bool copiers_copy(struct copiers *c, const json_t *wish, const struct proc_spec *spec,
                  struct child **out);
/* quiet: nothing is timed; idle: nothing is lent. */
void copiers_tend(struct copiers *c, bool quiet, bool idle);
uint64_t copiers_memory(const struct copiers *c);
bool copiers_wanted(const struct copiers *c); /* one is to be started once it is quiet */
void copiers_trim(struct copiers *c);         /* ends all */
json_t *copiers_status(const struct copiers *c);

#endif
