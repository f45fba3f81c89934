/* SPDX-License-Identifier: Apache-2.0 */
/* doctor.c - what this machine has, for `cutegen doctor`. */
#include "stage/workshop.h"
#include "toolchain/probe.h"

bool stage_doctor(const struct settings *settings, struct arena *a, json_t **report,
                  struct error *err)
{
    json_t *providers = llm_providers();
    struct probe_request req = {.cc = settings->cc,
                                .python = settings->python,
                                .cuda = settings->cuda,
                                .cutlass = settings->cutlass,
                                .runs_dir = settings->runs_dir,
                                .model = settings->model,
                                .providers = providers};
    bool ok = probe_machine(&req, a, report, err);

    json_decref(providers);
    return ok;
}
