/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runner_outcome.h - the outcome of running a candidate: data, not an error.
 *
 * The names are those of the Runner protocol (docs/architecture.md). The
 * first fault wins: outcome_set() on an outcome that is not OK does nothing.
 */
#ifndef RUNNER_OUTCOME_H
#define RUNNER_OUTCOME_H

#include <jansson.h>
#include <stdbool.h>

#define OUTCOMES(X)                                                                                \
    X(OK, "ok")                                                                                    \
    X(BAD_LAUNCH, "bad launch")                                                                    \
    X(CRASH, "crash")                                                                              \
    X(HANG, "hang")                                                                                \
    X(OUT_OF_MEMORY, "out of memory")

enum outcome_kind {
#define OUTCOME_ENUM(id, name) OUTCOME_##id,
    OUTCOMES(OUTCOME_ENUM)
#undef OUTCOME_ENUM
};

struct outcome {
    enum outcome_kind kind;
    int op; /* index into the launch list; -1: no particular one */
    char text[2048];
    json_t *findings, *counters; /* owned; NULL: none */
    bool stopped;                /* a kernel was stopped before its end: outputs are incomplete */
    bool fatal;                  /* the device is lost: the process must end */
};

void outcome_init(struct outcome *o);
void outcome_release(struct outcome *o);
/* Returns false, so that `return outcome_set(...)` reads well. */
bool outcome_set(struct outcome *o, enum outcome_kind kind, int op, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
const char *outcome_name(enum outcome_kind kind);

#endif
