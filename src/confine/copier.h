/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copier.h - make programs as copies of this process.
 *
 * Each is a fork with a supervisor of its own, limited and confined (confine.h) like a program that
 * was started by exec, before it continues in `born`. The copier itself runs no foreign code.
 *
 *     while (copier_serve(fd, &hooks, &err)) ...      one program a call
 *
 * Invariants
 * 1. Nothing of the copier's is open in a copy but its three streams.
 * 2. A copy has the copier's memory: a copier holds no secret, and no data of another program.
 */
#ifndef CONFINE_COPIER_H
#define CONFINE_COPIER_H

#include "base/error.h"

struct copier_hooks {
    /* Around the fork, in this process; in the copy once it is confined. May be NULL. */
    void (*before)(void), (*parent)(void), (*child)(void);
    /* The copy continues: `words` is a JSON object with "argv" and "env". If it returns, the copy
     * ends with that status. */
    int (*born)(const char *words);
};

/* Makes the program of the next request. false: there will be none; err says why, or is empty when
 * the lender has gone. */
bool copier_serve(int fd, const struct copier_hooks *hooks, struct error *err);

#endif
