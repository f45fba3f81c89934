/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zip.h - a ZIP archive in memory, its files stored without compression.
 *
 *     struct zip z = zip_init(limit);
 *     zip_add(&z, "pkg/__init__.py", data);        in any order, each name once
 *     struct text archive = zip_end(&z);           borrowed until zip_release()
 *     zip_release(&z);
 *
 * Times are fixed, so the same files give the same bytes. At most 65535 files and 4 GiB.
 */
#ifndef BASE_ZIP_H
#define BASE_ZIP_H

#include "base/buf.h"

struct zip {
    struct buf files, directory;
    size_t count;
};

struct zip zip_init(size_t limit);
void zip_add(struct zip *z, const char *name, struct text data);
/* Empty data: it became larger than the limit. */
struct text zip_end(struct zip *z);
void zip_release(struct zip *z);

#endif
