/*
 * foreign.h - somebody else's ModelNew as a candidate (private to src/eval, and for stage/build.c).
 *
 * It cannot be taken apart into kernels and a plan, so it is run whole, by
 * oracle/guest.py in a process of its own that speaks the runner's protocol.
 * Everything after that is as for a .cu file: the oracle's buffers, secret
 * draws, the comparison outside. What is weaker is told in docs/tasks.md.
 */
#ifndef EVAL_FOREIGN_H
#define EVAL_FOREIGN_H

#include "eval/judge.h"
#include "eval/runner_client.h"

/* For build_result.foreign: a new reference. */
json_t *foreign_request(const struct task *task, const char *path, bool allow_torch);
/* Makes *rc start the guest instead of cutegen-runner. */
bool foreign_runner(const struct judge_config *config, struct arena *a, struct runner_config *rc,
                    struct error *err);

#endif
