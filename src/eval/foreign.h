/* SPDX-License-Identifier: Apache-2.0 */
/*
 * foreign.h - a foreign ModelNew as a candidate (private to src/eval, and for stage/build.c).
 *
 * It cannot be taken apart into kernels and a plan, so it is run whole, by
 * oracle/guest.py in a process of its own that speaks the runner's protocol:
 * the guest. It gets a copy of its file and plain data; neither the task nor
 * anything that judges is in its process. Inputs and outputs go through files
 * in its exchange folder, which the oracle copies before it compares. What it
 * computes with cannot be proven, so it passes as VERDICT_UNATTESTED at best,
 * and its time is its own word (docs/tasks.md).
 */
#ifndef EVAL_FOREIGN_H
#define EVAL_FOREIGN_H

#include "eval/judge.h"
#include "eval/runner_client.h"

/* Copies the module into build->work_dir. build->foreign is a new reference. */
bool foreign_prepare(const struct task *task, const struct candidate *cand, bool allow_torch,
                     struct arena *a, struct build_result *build, struct error *err);
/* Makes *rc start the guest instead of cutegen-runner, and the exchange folder. */
bool foreign_runner(const struct judge_config *config, const struct build_result *build,
                    struct arena *a, struct runner_config *rc, struct error *err);
/* Removes the exchange folder, once no guest runs; also after errors and for other candidates. */
void foreign_end(const struct runner_config *rc);
/* For a module that compiles for itself: a process that may start programs makes it once, without
 * inputs; guests find what it built in build->work_dir/extensions. *said is why not. */
bool foreign_build(const struct judge_config *config, const struct build_result *build,
                   struct oracle_draw draw, struct arena *a, struct runner_answer *said,
                   struct error *err);
/* One draw, as far as the run: the candidate's process has its inputs, or *said is why not. */
bool foreign_draw(struct oracle *oracle, struct runner *r, const struct oracle_draw *draw,
                  struct arena *a, struct runner_answer *said, struct error *err);

#endif
