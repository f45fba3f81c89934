/* SPDX-License-Identifier: Apache-2.0 */
/*
 * composer.h - a candidate in Python (Triton, the CuTe DSL): its file to PTX, cubin, launch list.
 *
 *     if (!composer_find(language, python, &tools, a, &t, err)) ...   it is missing: text, hint
 *     if (!composer_build(&t, &req, a, &build, err)) ...      the machine is broken
 *     if (build.verdict.kind != VERDICT_PASS) ...           the candidate is bad
 *
 * The file is foreign Python. It runs in oracle/plan_guest.py, confined (ROLE_COMPOSER), where its
 * plan(p) is called and its kernels become PTX. That process sees neither the task nor any input,
 * and is not believed: the launch list is checked (launch_list.h), the PTX is inspected like that
 * of any kernel (ptx_check.h), and the cubin is made from this PTX here, by ptxas in a process
 * without foreign code. docs/triton.md and docs/cutedsl.md have the whole.
 */
#ifndef TOOLCHAIN_COMPOSER_H
#define TOOLCHAIN_COMPOSER_H

#include "base/error.h"
#include "model.h"
#include "toolchain/tools.h"

#define COMPOSER_SOURCE_NAME "candidate.py" /* how verdicts call the file */

struct composer {
    enum language language;
    const char *python;        /* that has it */
    const char *version;       /* "3.5.1" */
    const char *ptxas;         /* Triton's own, or the toolkit's; NULL: none */
    const char *ptxas_version; /* "12.8" */
};

struct composer_request {
    struct text source; /* borrowed */
    const struct task *task;
    const struct device *device;
    const char *work_dir; /* exists; takes the files */
    const struct shared_files *share;
    int deadline_ms; /* of CPU time */
};

bool composer_find(enum language language, const char *python, const struct tools *tools,
                   struct arena *a, struct composer *out, struct error *err);
/* Fills verdict, the paths, names, launches, resources, build_ms and cached; module_path is the
 * cubin's where there is one. names, launches and resources are new references. */
bool composer_build(const struct composer *t, const struct composer_request *req, struct arena *a,
                    struct build_result *out, struct error *err);

#endif
