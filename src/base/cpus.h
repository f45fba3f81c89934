/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpus.h - how many cores this process may use.
 *
 * A batch system gives a job some cores of a large machine. Threads for the whole machine would
 * compete for those few.
 */
#ifndef BASE_CPUS_H
#define BASE_CPUS_H

int cpus_usable(void); /* at least 1 */

#endif
