/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expert.h - the built-in engineer: a deterministic model that needs no key.
 *
 * It answers through the same seam as a language model. From the operator
 * graph of the task (task->description) it picks a recipe (recipes/),
 * answers STAGE_SYNTHESIZE with the plain kernel in a ```cuda block and each
 * STAGE_OPTIMIZE with the next step of the recipe's ladder as SEARCH/REPLACE
 * edits. The first line of a reply says the change in words; it is what
 * `history[].change` should hold when the next question is asked.
 *
 * Invariants
 * 1. Stateless: which step is next follows from req->task, req->current and
 *    req->history alone, so a resumed run goes on where it stopped.
 * 2. A step is proposed once: one that is in the history (kept, failed or too
 *    slow) is not proposed again, so every ladder ends. At its end, and for
 *    STAGE_DIAGNOSE and STAGE_REPAIR (it takes its step back rather than
 *    guess), reply.done is true and the text says why.
 * 3. What it cannot write is an answer too (reply.done, the reason in the
 *    text; expert_can() asks beforehand). A struct error means that the
 *    machine is broken: a recipe file is missing or does not parse.
 */
#ifndef EXPERT_EXPERT_H
#define EXPERT_EXPERT_H

#include "base/error.h"
#include "model.h"

/* Can it write this task? Yes: *recipe is the recipe's name. No: *why_not says what it
 * recognised and what it cannot write. Both in the arena; never fails. */
bool expert_can(const struct task *task, struct arena *a, const char **recipe,
                const char **why_not);

/* The kernels that optimise questions are likely to lead to from here, up to `most`, in their
 * order: as if each step paid (from the plain kernel) or none did (from the predicted one). */
bool expert_ahead(const struct request *asked, struct text *sources, int most, int *count,
                  struct arena *a, struct error *err);
bool expert_ask(const struct request *req, struct arena *a, struct reply *out, struct error *err);

/* Which steps the kernel of such a reply has ("a b c", for candidate.steps); NULL: it does not say.
 * With them the next question composes one set instead of all. */
const char *expert_steps(struct text reply, struct arena *a);

/* A worked example for a prompt: a whole kernel in the ABI of cutegen/kernel.h. Unless `other`, it
 * is the recipe nearest to the task at the top of its ladder, written for this very task where
 * expert_can(). With `other`, it is about an operator that the task does not have, of the same
 * class where there is one: style and ABI, not the answer. */
bool expert_recipe_text(const struct task *task, bool other, struct arena *a, const char **recipe,
                        struct text *out, struct error *err);

#endif
