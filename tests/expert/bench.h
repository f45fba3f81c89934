/*
 * bench.h - a task, and the built-in engineer asked about it as the loop does.
 *
 * Tasks are the files of $EXPERT_TASKS. Every function fails the test that
 * calls it when the answer is an error.
 */
#ifndef TESTS_EXPERT_BENCH_H
#define TESTS_EXPERT_BENCH_H

#include "expert/expert.h"

/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>

struct bench {
    struct arena *a;
    struct task task;
    json_t *history;
    struct device device;
    bool predicted; /* begins with the composition predicted to be best */
    /* Steps of the kernel that is asked about, as the store has them; NULL: found by its source,
     * which takes all sets of them. */
    const char *steps;
    const char *replied; /* steps of the last reply's kernel */
};

/* "swish": for simt; "swish@sm_90a": for that device. */
void bench_open(struct bench *b, const char *task);
void bench_close(struct bench *b);

struct reply bench_ask_from(struct bench *b, enum stage_kind stage,
                            const struct candidate *current);
struct reply bench_ask(struct bench *b, enum stage_kind stage, struct text source);
/* The first kernel. */
struct text bench_synthesize(struct bench *b);
/* Adds a change and what became of it to the history. */
void bench_remember(struct bench *b, const char *change, const char *verdict);
/* One optimise request; the kernel it leads to, or no text at the end of the ladder. */
struct text bench_step(struct bench *b, struct text source, const char **change);

#endif
