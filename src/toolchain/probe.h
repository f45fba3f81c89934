/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe.h - find out what this machine has, for `cutegen doctor`.
 *
 * Looks at compilers, NVRTC, CuTe, PyTorch, GPUs, profilers, models and disk,
 * in parallel and each with a deadline, so that everything takes at most PROBE_DEADLINE_MS. What
 * can hang or crash (a driver, a foreign library) is examined in a separate process.
 *
 *     probe_machine(&request, a, &report, err);      report is a new reference
 *
 * report: {"ok": true, "summary": "...", "checks": [CHECK]}
 * CHECK:  {"name": "NVRTC", "state": "ok|missing|broken|none", "text": "13.0 (toolkit)",
 *          "todo": "what to do" | "", "needed": true, ...what is known: "version", "path"}
 */
#ifndef TOOLCHAIN_PROBE_H
#define TOOLCHAIN_PROBE_H

#include "base/error.h"
#include "base/mem.h"

#include <jansson.h>

enum { PROBE_DEADLINE_MS = 30000 }; /* long, because a busy machine is slow, not broken */

struct probe_request {
    const char *cc, *python, *cuda, *cutlass; /* as configured; NULL: found */
    const char *runs_dir;
    const char *model;       /* as configured: "builtin", "openai:..." */
    const json_t *providers; /* llm_providers(): which keys are set; NULL: unknown */
};

bool probe_machine(const struct probe_request *req, struct arena *a, json_t **report,
                   struct error *err);

#endif
