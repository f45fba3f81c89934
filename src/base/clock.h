/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h - time that only goes forward, and time of day for people. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

int64_t clock_ms(void); /* monotonic */
int64_t clock_us(void); /* monotonic */
int64_t clock_unix_ms(void);
void clock_date(int64_t unix_ms, char out[11]);  /* 2026-11-15, local */
void clock_stamp(int64_t unix_ms, char out[25]); /* 2026-11-15T10:20:30.123Z */

#endif
