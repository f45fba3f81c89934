/* SPDX-License-Identifier: Apache-2.0 */
/*
 * witness.h - does a ModelNew launch only its own kernels? (private to src/eval)
 *
 * A second process runs the module on a GPU while runner/recorder.c, which the driver loads before
 * the module, writes every launch into our pipe. A launch by PyTorch, cuBLAS or cuDNN makes the
 * verdict `refused`. An empty record proves nothing (docs/security.md): a pass stays unattested.
 */
#ifndef EVAL_WITNESS_H
#define EVAL_WITNESS_H

#include "eval/judge.h"
#include "eval/oracle.h"

/* *refused: why the candidate is refused, in `a`; NULL: no such launch was seen, or recording
 * failed. */
bool witness_launches(const struct judge_config *config, const struct build_result *build,
                      struct oracle_draw draw, struct arena *a, const char **refused,
                      struct error *err);

/* The first launch in a record (one "LIBRARY KERNEL" per line) that is not the candidate's own, in
 * `a`; NULL: there is none. */
const char *witness_finds(struct text record, struct arena *a);

#endif
