/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expert.h - the built-in engineer: a deterministic model that needs no key.
 *
 * It answers through the same interface as a language model. From the operator
 * graph of the task (task->description) it picks a recipe (recipes/), answers
 * STAGE_SYNTHESIZE with the plain kernel in a ```cuda block and each
 * STAGE_OPTIMIZE with the next step of the recipe's ladder as SEARCH/REPLACE
 * edits. The first line of a reply says the change in words; it is what
 * `history[].change` should hold when the next question is asked.
 *
 * Invariants
 * 1. Stateless: the next step depends only on req->task, req->current and req->history, so a
 *    resumed run continues where it stopped.
 * 2. A step is proposed once: one that is in the history (kept, failed or too
 *    slow) is not proposed again, so every ladder ends. At its end, and for STAGE_DIAGNOSE and
 *    STAGE_REPAIR (it undoes its step instead of guessing), reply.done is true and the text says
 *    why.
 * 3. A task that it cannot write is answered with reply.done and the reason in the text;
 *    expert_can() tells this in advance. A struct error means that the
 *    machine is broken: a recipe file is missing or does not parse.
 */
#ifndef EXPERT_EXPERT_H
#define EXPERT_EXPERT_H

#include "base/error.h"
#include "model.h"

/* Can it write this task? If so *recipe is the recipe's name; if not *why_not says what it
 * recognised and what it cannot write. Both in the arena; never fails. */
bool expert_can(const struct task *task, struct arena *a, const char **recipe,
                const char **why_not);

/* The kernels that the next optimize questions probably lead to, up to `most`, in order: assuming
 * that every step gains (from the plain kernel) or none does (from the predicted one). */
bool expert_ahead(const struct request *asked, struct text *sources, int most, int *count,
                  struct arena *a, struct error *err);
bool expert_ask(const struct request *req, struct arena *a, struct reply *out, struct error *err);

/* The steps of the kernel in such a reply ("a b c", for candidate.steps); NULL: unknown. If known,
 * the next question composes only one set of steps instead of all. */
const char *expert_steps(struct text reply, struct arena *a);

/* A worked example for a prompt: a whole kernel in the ABI of cutegen/kernel.h. Unless `other`, it
 * is the recipe nearest to the task, at the top of its ladder, written for this task itself if
 * expert_can(). With `other`, it is about an operator that the task does not have, of the same
 * class if possible: it shows style and ABI, not the answer. */
bool expert_recipe_text(const struct task *task, bool other, struct arena *a, const char **recipe,
                        struct text *out, struct error *err);

#endif
