/* SPDX-License-Identifier: Apache-2.0 */
/*
 * precompiled_source.h - a candidate made into a header, so that its templates are precompiled for
 * the next edit.
 *
 * Most of the time NVRTC takes for a CuTe kernel goes into instantiating
 * templates, and an edit leaves most of them as they are. A header that
 * instantiates the last version, in a namespace of its own and without any
 * kernel, precompiles them; the code that comes out is the same.
 */
#ifndef TOOLCHAIN_PRECOMPILED_SOURCE_H
#define TOOLCHAIN_PRECOMPILED_SOURCE_H

#include "base/mem.h"

#include <jansson.h>

/*
 * The header for a device half that compiled, and its own include lines.
 * False: this source is not taken. Only #include (before all code) and
 * #pragma are allowed as directives, so that no text can reach out of the
 * namespace or mean something else there.
 */
bool learn_header(struct text device, const json_t *names, struct arena *a, struct text *header);

/* The include lines a source begins with, one per line; where that is all it has, as above. */
bool learn_includes(struct text device, struct arena *a, struct text *includes);

#endif
