/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runner_confine.h - restrict a candidate's process before its code runs.
 *
 * For simt only, where the kernels run in this process. Called after the module
 * is loaded and before any of its kernels runs. Existing files may still be
 * opened and mapped (the oracle's buffers); nothing can be created, removed, executed or sent.
 */
#ifndef RUNNER_CONFINE_H
#define RUNNER_CONFINE_H

#include "base/error.h"

bool runner_confine(struct error *err);

#endif
