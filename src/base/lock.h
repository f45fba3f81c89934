/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock.h - one holder at a time, or several that share, across processes.
 *
 * A lock is a file; the system releases it when its holder dies, however it dies. The file stays.
 *
 *     if (!lock_take(path, 60000, &l, err)) ...     another process holds it that long
 *     lock_drop(l);                                 NULL is fine
 *
 * All users of a path call lock_take(), or all call lock_enter().
 */
#ifndef BASE_LOCK_H
#define BASE_LOCK_H

#include "base/error.h"

struct lock;
/* wait_ms 0: do not wait; < 0: wait without limit. Users who share the folder share the
 * lock. */
bool lock_take(const char *path, int wait_ms, struct lock **out, struct error *err);
/* Alone, or together with others that are not. Everybody waits at a gate (a second file), so that
 * those who come and go together cannot keep out one who waits to be alone. */
bool lock_enter(const char *path, bool alone, int wait_ms, struct lock **out, struct error *err);
void lock_drop(struct lock *l);

#endif
