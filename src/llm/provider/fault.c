/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault.c - describe a failed attempt, and how long to wait before the next.
 *
 * Pauses double from backoff_ms to backoff_max_ms, each drawn at random from its upper half, so
 * that parallel runs do not retry at the same moment. A server's Retry-After is honoured.
 */
#include "llm/provider/provider.h"

#include "base/text.h"

#include <ctype.h>
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool fault_set(struct fault *f, bool passes, const char *fmt, ...)
{
    va_list ap;

    f->passes = passes;
    f->kind = ERROR_MACHINE;
    va_start(ap, fmt);
    text_format(f->text, sizeof(f->text), fmt, ap);
    va_end(ap);
    for (char *p = f->text; *p; p++) /* servers may send any bytes */
        if ((unsigned char)*p < ' ' || *p == 127)
            *p = ' ';
    return false;
}

bool fault_hint(struct fault *f, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    text_format(f->hint, sizeof(f->hint), fmt, ap);
    va_end(ap);
    return false;
}

int fault_pause_ms(const struct llm_config *c, const struct fault *f, int attempt, unsigned *seed)
{
    int64_t full = c->backoff_ms;

    if (f->retry_after_ms >= 0)
        return f->retry_after_ms;
    for (int i = 0; i < attempt && full < c->backoff_max_ms; i++)
        full *= 2;
    if (full > c->backoff_max_ms)
        full = c->backoff_max_ms;
    if (full <= 1)
        return (int)full;
    return (int)(full / 2 + rand_r(seed) % (full / 2 + 1));
}

int retry_after_ms(const char *value, int64_t now_unix_ms)
{
    char *end;
    double seconds;
    time_t when;

    while (*value == ' ')
        value++;
    if (isdigit((unsigned char)*value)) {
        seconds = strtod(value, &end);
        while (isspace((unsigned char)*end))
            end++;
        if (!*end && seconds < 1e6)
            return (int)(seconds * 1000);
        return -1;
    }
    when = curl_getdate(value, NULL);
    if (when == (time_t)-1)
        return -1;
    seconds = (double)when - (double)now_unix_ms / 1000;
    return seconds <= 0 ? 0 : seconds < 1e6 ? (int)(seconds * 1000) : -1;
}
