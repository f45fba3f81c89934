/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.h - messages for a person at a terminal, on stderr.
 *
 * Levels by -v, -vv and --quiet. Results never go through here (stdout), nor do events for programs
 * (the store).
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stddef.h>

enum log_level { LOG_QUIET, LOG_WARN, LOG_INFO, LOG_DEBUG };

void log_set_level(enum log_level level);
enum log_level log_level(void);
/* Replaces how a line is written to stderr. The text has no line end. */
typedef void log_put(void *ctx, const char *text, size_t len);
void log_set_put(log_put *put, void *ctx);
void log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
