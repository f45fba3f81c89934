/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copier.h - what is said between a lender and a copier.
 *
 * A copier is a process that has loaded what certain programs need and makes each of them as a fork
 * of itself (confine/copier.h): importing PyTorch takes seconds, such a fork 20 ms. A request is
 * one packet: the plan of a supervisor as JSON, with the five descriptors of the plan.
 */
#ifndef BASE_COPIER_H
#define BASE_COPIER_H

#include "base/supervise.h"

enum { COPIER_FDS = 5 };

/* Only what copies can have: no descriptors to keep, no deadline, both streams apart. */
bool copier_send(int fd, const struct supervise_plan *plan, struct error *err);

/* Waits for a request. false: the lender is gone, or sent what is none. The strings of `spec` and
 * `plan` lie in the arena; spec->cage is the receiver's to set, from `*confine` (NULL: none; it
 * lives as long as `*request`). */
bool copier_receive(int fd, struct arena *a, json_t **request, struct proc_spec *spec,
                    struct supervise_plan *plan, const json_t **confine);

#endif
