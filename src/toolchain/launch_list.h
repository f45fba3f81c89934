/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch_list.h - check and copy a launch list that comes from a process with foreign code.
 *
 * A plan in a .cu file is interpreted by cutegen-planner, which is trusted. A plan in Python runs
 * as foreign code and may answer anything. Known members of its list are copied into a new one
 * after the planner's own checks (limits, names, offsets); everything else is dropped.
 *
 *     if (!launch_list_take(said, &where, a, &list, &verdict)) ...     BAD_PLAN or BAD_LAUNCH
 */
#ifndef TOOLCHAIN_LAUNCH_LIST_H
#define TOOLCHAIN_LAUNCH_LIST_H

#include "model.h"

struct launch_subject {
    int in_count, out_count; /* buffers that exist beside workspace */
    struct text source;      /* for the verdict's lines */
    const char *name;        /* of the file, "candidate.py" */
};

/* *out is a new reference when true. */
bool launch_list_take(const json_t *said, const struct launch_subject *subject, struct arena *a,
                      json_t **out, struct verdict *v);

#endif
