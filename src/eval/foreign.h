/* SPDX-License-Identifier: Apache-2.0 */
/*
 * foreign.h - a foreign ModelNew as a candidate (private to src/eval, and for stage/build.c).
 *
 * It cannot be split into kernels and a plan, so oracle/guest.py runs it as a whole in a process of
 * its own that speaks the runner's protocol: the guest. The guest gets a copy of the file and plain
 * data; neither the task nor any part of the judge is in its process. Inputs and outputs are
 * exchanged through files in its exchange folder, which the oracle copies before it compares. Which
 * code computed them cannot be proven, so VERDICT_UNATTESTED is the best verdict, and its time is
 * only a claim (docs/tasks.md).
 */
#ifndef EVAL_FOREIGN_H
#define EVAL_FOREIGN_H

#include "eval/judge.h"
#include "eval/runner_client.h"

/* Copies the module into build->work_dir. build->foreign is a new reference. */
bool foreign_prepare(const struct task *task, const struct candidate *cand, bool allow_torch,
                     struct arena *a, struct build_result *build, struct error *err);
/* Makes *rc start the guest instead of cutegen-runner, and creates the exchange folder. */
bool foreign_runner(const struct judge_config *config, const struct build_result *build,
                    struct arena *a, struct runner_config *rc, struct error *err);
/* Removes the exchange folder, once no guest runs; also after errors and for other candidates. */
void foreign_end(const struct runner_config *rc);
/* For a module that compiles code itself: a process that may start programs makes and calls it
 * once, without the judged inputs; guests find what it built in build->work_dir/extensions. *said
 * is the reason when it fails. */
bool foreign_build(const struct judge_config *config, const struct build_result *build,
                   struct oracle_draw draw, struct arena *a, struct runner_answer *said,
                   struct error *err);
/* One draw up to the run: afterwards the candidate's process has its inputs, or *said is the reason
 * why not. */
bool foreign_draw(struct oracle *oracle, struct runner *r, const struct oracle_draw *draw,
                  struct arena *a, struct runner_answer *said, struct error *err);

#endif
