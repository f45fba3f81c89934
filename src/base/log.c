/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.c - lines on stderr by level.
 *
 * The level and the writer are process-wide state: main.c sets them once before anything runs.
 */
#include "base/log.h"

#include "base/vault.h"

#include <stdarg.h>
#include <stdio.h>

static void put_whole(void *ctx, const char *text, size_t len)
{
    (void)ctx;
    fprintf(stderr, "%.*s\n", (int)len, text);
}

static struct {
    enum log_level level;
    log_put *put;
    void *ctx;
} current_log = {LOG_WARN, put_whole, NULL};

void log_set_level(enum log_level level)
{
    current_log.level = level;
}

enum log_level log_level(void)
{
    return current_log.level;
}

void log_set_put(log_put *put, void *ctx)
{
    current_log.put = put;
    current_log.ctx = ctx;
}

static void log_line(enum log_level level, const char *prefix, const char *fmt, va_list ap)
{
    struct arena *a;
    struct text line;

    if (level > current_log.level)
        return;
    a = arena_new();
    line = vault_scrub(text_of(arena_vprintf(a, fmt, ap)), a);
    line = text_of(arena_printf(a, "cutegen: %s%.*s", prefix, (int)line.len, line.data));
    flockfile(stderr); /* threads log too */
    current_log.put(current_log.ctx, line.data, line.len);
    funlockfile(stderr);
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
