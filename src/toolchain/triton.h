/* SPDX-License-Identifier: Apache-2.0 */
/*
 * triton.h - a candidate in Triton: its file to PTX, cubin and launch list.
 *
 *     if (!triton_find(python, &tools, a, &t, err)) ...     Triton is missing: text and hint
 *     if (!triton_build(&t, &req, a, &build, err)) ...      the machine is broken
 *     if (build.verdict.kind != VERDICT_PASS) ...           the candidate is bad
 *
 * The file is foreign Python. It runs in oracle/plan_guest.py, confined (ROLE_COMPOSER), where its
 * plan(p) is called and its kernels become PTX. That process sees neither the task nor any input,
 * and is not believed: the launch list is checked (launch_list.h), the PTX is inspected like that
 * of any kernel (ptx_check.h), and the cubin is made from this PTX here, by ptxas in a process
 * without foreign code. docs/triton.md has the whole.
 */
#ifndef TOOLCHAIN_TRITON_H
#define TOOLCHAIN_TRITON_H

#include "base/error.h"
#include "model.h"
#include "toolchain/tools.h"

#define TRITON_SOURCE_NAME "candidate.py" /* how verdicts call the file */

struct triton {
    const char *python;        /* that has it */
    const char *version;       /* "3.5.1" */
    const char *ptxas;         /* Triton's own, or the toolkit's; NULL: none */
    const char *ptxas_version; /* "12.8" */
};

struct triton_request {
    struct text source; /* borrowed */
    const struct task *task;
    const struct device *device;
    const char *work_dir; /* exists; takes the files */
    const struct shared_files *share;
    int deadline_ms; /* of CPU time */
};

bool triton_find(const char *python, const struct tools *tools, struct arena *a, struct triton *out,
                 struct error *err);
/* Fills verdict, the paths, names, launches, resources, build_ms and cached; module_path is the
 * cubin's where there is one. names, launches and resources are new references. */
bool triton_build(const struct triton *t, const struct triton_request *req, struct arena *a,
                  struct build_result *out, struct error *err);

#endif
