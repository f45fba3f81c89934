/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simtc.h - translate PTX to a shared object that the simt device loads.
 *
 * Runs cutegen-simtc. What it cannot translate is a verdict (an instruction
 * simt does not know is reported with its line); a program that cannot be started
 * or dies is a struct error.
 */
#ifndef TOOLCHAIN_SIMTC_H
#define TOOLCHAIN_SIMTC_H

#include "base/error.h"
#include "model.h"
#include "toolchain/tools.h"

/*
 * Needs build->ptx_path and build->names; sets build->module_path, and the
 * verdict when it is not PASS. `deadline_ms` covers the C compiler too.
 */
bool simtc_translate(const struct tools *tools, int deadline_ms, struct arena *a,
                     struct build_result *build, struct error *err);

#endif
