/* SPDX-License-Identifier: Apache-2.0 */
/* error.c - fill in struct error: the first cause wins, context goes in front. */
#include "base/error.h"

#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool error_set(struct error *err, enum error_kind kind, const char *fmt, ...)
{
    va_list ap;

    if (err->kind != ERROR_NONE)
        return false;
    err->kind = kind;
    va_start(ap, fmt);
    text_format(err->text, sizeof(err->text), fmt, ap);
    va_end(ap);
    return false;
}

bool error_add(struct error *err, const char *fmt, ...)
{
    char context[512], cause[sizeof(err->text)];
    va_list ap;

    va_start(ap, fmt);
    text_format(context, sizeof(context), fmt, ap);
    va_end(ap);
    if (err->kind == ERROR_NONE)
        BUG("context '%s' added to no error", context);
    memcpy(cause, err->text, sizeof(cause));
    /* A cause that is too long loses its end, never its beginning. */
    snprintf(err->text, sizeof(err->text), "%s: %.*s", context,
             (int)text_cut(text_of(cause), sizeof(cause) - 520).len, cause);
    return false;
}

bool error_hint(struct error *err, const char *fmt, ...)
{
    va_list ap;

    if (err->hint[0])
        return false;
    va_start(ap, fmt);
    text_format(err->hint, sizeof(err->hint), fmt, ap);
    va_end(ap);
    return false;
}

int error_exit_code(const struct error *err)
{
    switch (err->kind) {
    case ERROR_NONE:
        return 0;
    case ERROR_JUDGED:
        return 1;
    case ERROR_USE:
    case ERROR_MEMORY:
        return 2;
    case ERROR_MACHINE:
    case ERROR_BUSY:
        return 3;
    case ERROR_BUDGET:
        return 4;
    case ERROR_INTERRUPTED:
        return 130;
    }
    BUG("error kind %d", (int)err->kind);
}

const char *error_kind_name(enum error_kind kind)
{
    switch (kind) {
    case ERROR_NONE:
        return "none";
    case ERROR_JUDGED:
        return "judged";
    case ERROR_USE:
        return "use";
    case ERROR_MACHINE:
        return "machine";
    case ERROR_BUSY:
        return "busy";
    case ERROR_BUDGET:
        return "budget";
    case ERROR_INTERRUPTED:
        return "interrupted";
    case ERROR_MEMORY:
        return "memory";
    }
    BUG("error kind %d", (int)kind);
}

_Noreturn void bug_at(const char *file, int line, const char *fmt, ...)
{
    va_list ap;

    fprintf(stderr, "cutegen: bug at %s:%d: ", file, line);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    abort();
}
