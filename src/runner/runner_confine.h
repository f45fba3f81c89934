/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runner_confine.h - what a candidate's process may do once its code is in it.
 *
 * For simt only: there the kernels run in this very process. Called after the
 * module is loaded and before any of its kernels runs. Existing files may
 * still be opened and mapped (the oracle's buffers); nothing can be created,
 * removed, executed or sent anywhere.
 */
#ifndef RUNNER_CONFINE_H
#define RUNNER_CONFINE_H

#include "base/error.h"

bool runner_confine(struct error *err);

#endif
