/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h - the plan half: compile it to PTX and let the planner interpret it.
 *
 *     plan_compile(builder, source, "candidate.cu", dir, a, &ptx, &verdict, err)
 *     plan_run(ptx, request, source, "candidate.cu", a, &launches, &verdict, err)
 *
 * Both return false only for a broken machine. What is wrong with the plan is
 * a verdict: COMPILE_ERROR, COMPILE_TIMEOUT, BAD_PLAN (also when it does not
 * return, leaves its memory, or does what a plan may not), or BAD_LAUNCH (a
 * launch no device takes). PASS: go on.
 *
 * A plan compiled earlier, even with other kernels beside it, comes from the cache without asking
 * the builder's process.
 */
#ifndef TOOLCHAIN_PLAN_H
#define TOOLCHAIN_PLAN_H

#include "base/error.h"
#include "model.h"
#include "toolchain/builder.h"

/* `name` is the user's name for the file; the PTX is written to `dir`. */
bool plan_compile(struct builder *b, struct text source, const char *name, const char *dir,
                  struct arena *a, const char **ptx_path, struct verdict *verdict,
                  struct error *err);

/* The planner's request for a task on a device (docs/architecture.md, Planner). New reference. */
json_t *plan_request(const struct task *task, const struct device *device);

/* `launches` is a new reference if the verdict is PASS, else NULL. `source` and `name` are for the
 * verdict's lines. */
bool plan_run(const char *ptx_path, const json_t *request, struct text source, const char *name,
              struct arena *a, json_t **launches, struct verdict *verdict, struct error *err);

/* The distinct kernel names of a launch list, in order. New reference. */
json_t *plan_kernel_names(const json_t *launches);

#endif
