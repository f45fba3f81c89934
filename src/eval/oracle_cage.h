/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oracle_cage.h - confinement of the oracle's process (private to src/eval).
 *
 * A task is the user's Python: it may read Python, the oracle's package and the task's own folder,
 * may write to the folder of its process and has no network unless asked for. The task's file is
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

/* Adds the confinement and the environment to *spec; `c` must live as long as the spec. */
void oracle_confine(const struct oracle_config *config, const char *script, const char *errors,
                    struct arena *a, struct oracle_cage *c, struct proc_spec *spec);

#endif
