/* SPDX-License-Identifier: Apache-2.0 */
/* cpus.c - the cores that the scheduler lets this process run on. */
#include "base/cpus.h"

#include <sched.h>
#include <unistd.h>

int cpus_usable(void)
{
    cpu_set_t set;
    long all;

    if (sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 0)
        return CPU_COUNT(&set);
    all = sysconf(_SC_NPROCESSORS_ONLN); /* where a cpu_set_t has fewer bits than there are cores */
    return all > 0 ? (int)all : 1;
}
