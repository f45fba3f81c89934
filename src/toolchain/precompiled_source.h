/* SPDX-License-Identifier: Apache-2.0 */
/*
 * precompiled_source.h - turn a candidate into a header whose templates are precompiled for the
 * next edit.
 *
 * NVRTC spends most of its time for a CuTe kernel on instantiating templates, and an edit changes
 * few of them. A header that instantiates the last version, in its own namespace and without
 * kernels, precompiles them; the generated code is the same.
 */
#ifndef TOOLCHAIN_PRECOMPILED_SOURCE_H
#define TOOLCHAIN_PRECOMPILED_SOURCE_H

#include "base/mem.h"

#include <jansson.h>

/*
 * The header for a device half that compiled, and its own include lines.
 * False: this source cannot be used. The only directives allowed are #include (before all code) and
 * #pragma, so that no text can leave the namespace or change its meaning there.
 */
bool learn_header(struct text device, const json_t *names, struct arena *a, struct text *header);

/* The include lines that a source begins with, one per line; the same restrictions apply. */
bool learn_includes(struct text device, struct arena *a, struct text *includes);

#endif
