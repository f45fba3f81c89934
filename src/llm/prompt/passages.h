/* SPDX-License-Identifier: Apache-2.0 */
/* passages.h - private: CuTe's headers cut into declarations with their comments. */
#ifndef LLM_PASSAGES_H
#define LLM_PASSAGES_H

#include "base/error.h"
#include "base/mem.h"

/* file: from "cute/" on; names: what the passage declares, blank-separated. */
typedef void passage_fn(void *ctx, const char *file, int line, int lines, const char *names,
                        struct text text);

/* Every header under include_dir/cute that concerns sm_75 to sm_90. */
bool passages_read(const char *include_dir, passage_fn *each, void *ctx, struct error *err);

#endif
