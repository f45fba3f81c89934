/* SPDX-License-Identifier: Apache-2.0 */
/* overloads.h - the heads of a function's overloads, out of passages that declare them. */
#ifndef LLM_OVERLOADS_H
#define LLM_OVERLOADS_H

#include "base/mem.h"

/* "template <class T> gemm(T const& a)  // what the comment above says", in one line; NULL when
 * the passage declares no function `name`. */
char *overload_head(struct text passage, const char *name, struct arena *a);

#endif
