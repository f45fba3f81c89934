/* SPDX-License-Identifier: Apache-2.0 */
/* verdict_text.h - word the evidence so that a person or a model can act on it (private to
 * src/eval). */
#ifndef EVAL_VERDICT_TEXT_H
#define EVAL_VERDICT_TEXT_H

#include "eval/evidence.h"

void words_finding(const struct evidence *e, const struct seen *s, struct finding *out);
const char *words_summary(const struct evidence *e, enum verdict_kind kind);
const char *words_detail(const struct evidence *e, enum verdict_kind kind);
const char *words_advice(const struct evidence *e, enum verdict_kind kind); /* may be NULL */
/* Line number (from 1) of a source, without indentation; "" when there is none. */
const char *words_source_line(struct text source, int line, struct arena *a);

#endif
