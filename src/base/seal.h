/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seal.h - files that are trusted only if this user's cutegen wrote them, for this purpose.
 *
 *     seal_save(path, "build/3f.../kernel.ptx", data, err);
 *     if (seal_load(path, "build/3f.../kernel.ptx", limit, a, &data)) ...   exactly what was saved
 *
 * A sealed file ends with a keyed digest (HMAC-SHA-256) of its name and its
 * bytes. The key is in the cache folder (0700) in a file of mode 0600 that no confined process can
 * read. So neither a changed file nor one put in another's place is ever used.
 *
 * seal_load() returns the very bytes that were checked: a caller that needs a file writes them to a
 * place of its own. A file that does not match its seal is removed, with a warning, and treated as
 * missing.
 */
#ifndef BASE_SEAL_H
#define BASE_SEAL_H

#include "base/error.h"
#include "base/mem.h"

bool seal_save(const char *path, const char *name, struct text data, struct error *err);
bool seal_load(const char *path, const char *name, size_t limit, struct arena *a, struct text *out);

#endif
