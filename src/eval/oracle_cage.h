/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oracle_cage.h - what the oracle's process may do (private to src/eval).
 *
 * A task is the user's Python: it sees Python, the oracle's package and the task's own folder,
 * writes into the folder of its process and, unless asked for, has no network. The task's file is
 * part of the policy, so the warm server lends a confined oracle only for the same task.
 */
#ifndef EVAL_ORACLE_CAGE_H
#define EVAL_ORACLE_CAGE_H

#include "confine/confine.h"
#include "eval/oracle.h"

struct oracle_cage {
    struct confine_policy policy;
    struct proc_cage cage;
};

/* Adds to *spec what confines it, and the environment; `c` lives as long as the spec. */
void oracle_confine(const struct oracle_config *config, const char *script, const char *errors,
                    struct arena *a, struct oracle_cage *c, struct proc_spec *spec);

#endif
