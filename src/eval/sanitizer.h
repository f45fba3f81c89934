/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sanitizer.h - turn compute-sanitizer's output into findings (private to src/eval).
 *
 * A GPU only reports that something went wrong. When a test on CUDA fails, the judge runs the
 * candidate once more under compute-sanitizer, whose log names lines and threads.
 */
#ifndef EVAL_SANITIZER_H
#define EVAL_SANITIZER_H

#include "model.h"

/* "memcheck", "racecheck", or NULL: this verdict needs no further explanation. */
const char *sanitizer_tool(enum verdict_kind kind);
/* List of FINDING (docs/architecture.md); a new reference, empty when the log
 * holds none. source_file: base name of the candidate's file as compiled. */
json_t *sanitizer_findings(struct text log, const char *source_file);

#endif
