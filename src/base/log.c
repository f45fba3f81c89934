/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.c - lines on stderr by level.
 *
 * The level is the one piece of process-wide state in base: it is set once by
 * main.c before anything runs.
 */
#include "base/log.h"

#include "base/vault.h"

#include <stdarg.h>
#include <stdio.h>

static enum log_level current_level = LOG_WARN;

void log_set_level(enum log_level level)
{
    current_level = level;
}

enum log_level log_level(void)
{
    return current_level;
}

static void log_line(enum log_level level, const char *prefix, const char *fmt, va_list ap)
{
    struct arena *a;
    struct text line;

    if (level > current_level)
        return;
    a = arena_new();
    line = vault_scrub(text_of(arena_vprintf(a, fmt, ap)), a);
    fprintf(stderr, "cutegen: %s%.*s\n", prefix, (int)line.len, line.data);
    arena_free(a);
}

#define LOG_FUNCTION(name, level, prefix)                                                          \
    void name(const char *fmt, ...)                                                                \
    {                                                                                              \
        va_list ap;                                                                                \
                                                                                                   \
        va_start(ap, fmt);                                                                         \
        log_line(level, prefix, fmt, ap);                                                          \
        va_end(ap);                                                                                \
    }

LOG_FUNCTION(log_warn, LOG_WARN, "warning: ")
LOG_FUNCTION(log_info, LOG_INFO, "")
LOG_FUNCTION(log_debug, LOG_DEBUG, "debug: ")
