/* SPDX-License-Identifier: Apache-2.0 */
/* layers.h - the individual layers (private to src/confine). */
#ifndef CONFINE_LAYERS_H
#define CONFINE_LAYERS_H

#include "confine/confine.h"

/* root.c: a root that holds only the policy's paths. */
enum confine_root {
    CONFINE_ROOT_OLD, /* not permitted here; the process still sees the machine's files */
    CONFINE_ROOT_OWN,
    CONFINE_ROOT_BROKEN, /* partly set up: do not continue */
};
enum confine_root confine_root(const struct confine_policy *p);
/* Maps our own user and group; to be called first in a new user namespace. */
bool confine_map_ids(unsigned uid, unsigned gid);

/* landlock.c: returns the ABI that holds, 0 when the kernel has none. */
int confine_landlock(const struct confine_policy *p, struct error *err);
int confine_landlock_abi(void);

/* filter.c */
bool confine_filter(const struct confine_policy *p, struct error *err);

#endif
