/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error.h - a broken machine or wrong use, reported to the user.
 *
 * A function that can fail takes `struct error *err` last (never NULL) and
 * returns bool. On success *err is untouched. The first cause wins; callers
 * add context in front of it:
 *
 *     if (!file_read(path, limit, a, &text, err))
 *         return error_add(err, "reading the task");
 *
 * A bad kernel is not an error but a verdict (model.h). Our own mistake is
 * BUG(). Only main.c prints an error and turns its kind into an exit code.
 * A caller decides by the kind, never by the text.
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <stdbool.h>

enum error_kind {
    ERROR_NONE,
    ERROR_JUDGED,      /* the judged thing failed: exit 1 */
    ERROR_USE,         /* wrong use: exit 2 */
    ERROR_MACHINE,     /* the machine lacks something or broke: exit 3 */
    ERROR_BUSY,        /* other processes hold the device's memory; retry later: exit 3 */
    ERROR_BUDGET,      /* a budget ran out: exit 4 */
    ERROR_INTERRUPTED, /* Ctrl-C: exit 130 */
    ERROR_MEMORY,      /* the task needs more memory than there is: exit 2, as wrong use */
};

struct error {
    enum error_kind kind;
    char text[2048]; /* what was tried, on what, why it failed */
    char hint[1024]; /* what to do next; may be empty */
};

/* Both return false, so that `return error_set(...)` reads well. */
bool error_set(struct error *err, enum error_kind kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
bool error_add(struct error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Says what to do next; the first hint wins. Returns false. */
bool error_hint(struct error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

int error_exit_code(const struct error *err);
const char *error_kind_name(enum error_kind kind); /* its name in JSON: docs/commands.md */

#define BUG(...) bug_at(__FILE__, __LINE__, __VA_ARGS__)
_Noreturn void bug_at(const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
