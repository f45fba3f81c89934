/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exported.h - the files of an export: made by export.c, placed by export_layout.c (private to
 * src/stage).
 */
#ifndef STAGE_EXPORTED_H
#define STAGE_EXPORTED_H

#include "stage/stage.h"

enum { EXPORT_MAX_FILES = 256 };

struct export_file {
    const char *name;
    struct text data;
};

struct export_package {
    const char *name; /* a Python identifier */
    const char *version;
    const char *source; /* how the kernel's source is called: "swish.cu" */
    struct export_file files[EXPORT_MAX_FILES];
    size_t count;
};

void export_add(struct export_package *p, const char *name, struct text data);
bool export_place(const struct export_package *p, enum export_layout layout, const char *dir,
                  struct arena *a, struct export_files *out, struct error *err);

#endif
