/* SPDX-License-Identifier: Apache-2.0 */
/*
 * retrieve.h - passages of the installed CuTe headers that concern a compile error.
 *
 *     if (!retrieve_open("/path/to/cutlass/include", &r, err)) ...
 *     struct text t = retrieve_text(r, log, failing_line, 3, a);   for the slot "passages"
 *     retrieve_close(r);
 *
 * The headers are cut into passages (a declaration with its comment) and
 * indexed once per installation with SQLite FTS5, in the cache folder. An
 * error that names a place in a header gets that place; otherwise the names
 * in its first message, then those of the user's own line, decide.
 */
#ifndef LLM_RETRIEVE_H
#define LLM_RETRIEVE_H

#include "base/error.h"
#include "base/mem.h"

struct retriever;

struct passage {
    const char *where; /* "cute/algorithm/gemm.hpp:240" */
    const char *names; /* what it declares, blank-separated */
    struct text text;
};

bool retrieve_open(const char *include_dir, struct retriever **out, struct error *err);
/* log: the compiler's; line: the user's line it points at, or "". Best first, at most max. */
size_t retrieve_find(struct retriever *r, struct text log, const char *line, size_t max,
                     struct passage *out, struct arena *a);
struct text retrieve_text(struct retriever *r, struct text log, const char *line, size_t max,
                          struct arena *a);
void retrieve_close(struct retriever *r); /* NULL is fine */

#endif
