/* SPDX-License-Identifier: Apache-2.0 */
/* clock.c - monotonic and wall-clock time. */
#include "base/clock.h"

#include <stdio.h>
#include <time.h>

int64_t clock_us(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t clock_ms(void)
{
    return clock_us() / 1000;
}

int64_t clock_unix_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

void clock_date(int64_t unix_ms, char out[11])
{
    time_t t = (time_t)(unix_ms / 1000);
    struct tm tm;

    localtime_r(&t, &tm);
    strftime(out, 11, "%Y-%m-%d", &tm);
}

void clock_stamp(int64_t unix_ms, char out[25])
{
    time_t t = (time_t)(unix_ms / 1000);
    struct tm tm;
    unsigned ms = (unsigned)(unix_ms % 1000);

    gmtime_r(&t, &tm);
    strftime(out, 25, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(out + 19, 6, ".%03uZ", ms % 1000);
}
