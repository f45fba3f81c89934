/* SPDX-License-Identifier: Apache-2.0 */
/*
 * witness.h - whose kernels does a ModelNew launch? (private to src/eval)
 *
 * A second process runs the module on a GPU while runner/recorder.c, which the driver loads before
 * the module is there, writes every launch into our pipe. Launches by PyTorch, cuBLAS or cuDNN
 * refuse the candidate. An empty record proves nothing (docs/security.md): a pass stays unattested.
 */
#ifndef EVAL_WITNESS_H
#define EVAL_WITNESS_H

#include "eval/judge.h"
#include "eval/oracle.h"

/* *refused: why the candidate is refused, in `a`; NULL: nothing was seen, or nothing could be. */
bool witness_launches(const struct judge_config *config, const struct build_result *build,
                      struct oracle_draw draw, struct arena *a, const char **refused,
                      struct error *err);

/* Of a record ("LIBRARY KERNEL" a line), the first launch that is not the candidate's own, in `a`;
 * NULL: there is none. */
const char *witness_finds(struct text record, struct arena *a);

#endif
