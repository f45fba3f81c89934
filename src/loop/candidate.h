/* SPDX-License-Identifier: Apache-2.0 */
/*
 * candidate.h - judge one candidate, for `run` and for `eval`; private to this room.
 *
 *     judge_candidate()    build -> test -> measure; the first step that fails decides.
 *                          With several shapes it must pass at each of them
 *     accept_candidate()   with --accept: sanitizers and simt on a kernel that passed
 *
 * Neither writes the store: the caller does, before it starts anything else.
 */
#ifndef LOOP_CANDIDATE_H
#define LOOP_CANDIDATE_H

#include "base/error.h"
#include "store/record.h"

struct settings;
struct stage;

struct judging {
    struct stage *st;
    const struct task *task;
    /* Called when a step begins: "build", "test", "measure". */
    void (*tell)(void *ctx, const char *step, const struct candidate *cand);
    void *ctx;
};

/* The results; `outcome` points to the other three. */
struct judged {
    struct build_result *build;
    struct test_result *test;
    struct measurement *time;
    struct attempt_outcome *outcome;
    bool built; /* `build` is already filled in */
};

bool judge_candidate(const struct judging *j, const struct candidate *cand, struct arena *a,
                     const struct judged *out, struct error *err);

/*
 * On a GPU: repeats the test under compute-sanitizer's tools, and runs the kernel on simt with
 * every check, at sizes that fit. On simt: runs the full check if it was judged with less. A
 * refusal is a verdict in out->verdict; false: the machine is broken.
 */
struct acceptance_request {
    const struct settings *settings;
    struct stage *st;
    const struct task *task;
    const struct candidate *cand;
    const struct build_result *build; /* NULL where accept_is_cheap() */
};
bool accept_candidate(const struct acceptance_request *req, struct arena *a, struct acceptance *out,
                      struct error *err);
/* The test itself has already made every check, so that nothing is left to run. */
bool accept_is_cheap(const struct settings *settings, const struct device *device);

#endif
