/* SPDX-License-Identifier: Apache-2.0 */
/* used_text.h - of a library of C text, what other text uses. */
#ifndef SIMT_USED_TEXT_H
#define SIMT_USED_TEXT_H

#include "base/buf.h"

/* Adds to `out` what `users` name of the library, directly or through each other, in its order:
 * macros, functions that begin with AI or NI, and what lines such as MAKE(name, ...) make. A name
 * must stand there in full (no ##). All else of the library is always there, but comments. */
void used_text(struct text library, const struct text *users, size_t n, struct arena *a,
               struct buf *out);

#endif
