/*
 * plan.h - the plan half: compile it with a C compiler, run it in the planner.
 *
 *     plan_compile(&tools, source, "candidate.cu", dir, a, &so, &verdict, err)
 *     plan_run(so, request, a, &launches, &verdict, err)
 *
 * Both return false only for a broken machine. What is wrong with the plan is
 * a verdict: COMPILE_ERROR, BAD_PLAN (also when it crashes, does not return,
 * or does what the planner's confinement forbids), or BAD_LAUNCH (a launch no
 * device takes). PASS: go on.
 */
#ifndef TOOLCHAIN_PLAN_H
#define TOOLCHAIN_PLAN_H

#include "base/error.h"
#include "model.h"
#include "toolchain/tools.h"

/* `name` is what the user calls the file; `dir` takes the shared object. */
bool plan_compile(const struct tools *tools, struct text source, const char *name, const char *dir,
                  struct arena *a, const char **so_path, struct verdict *verdict,
                  struct error *err);

/* The planner's request for a task on a device (docs/architecture.md, Planner). New reference. */
json_t *plan_request(const struct task *task, const struct device *device);

/* `launches` is a new reference when the verdict is PASS; else NULL. `source` and `name` are for
 * the verdict's lines. */
bool plan_run(const char *so_path, const json_t *request, struct text source, const char *name,
              struct arena *a, json_t **launches, struct verdict *verdict, struct error *err);

/* The distinct kernel names of a launch list, in order. New reference. */
json_t *plan_kernel_names(const json_t *launches);

#endif
