/* SPDX-License-Identifier: Apache-2.0 */
/* format_source.h - format composed source like hand-written source. */
#ifndef EXPERT_FORMAT_SOURCE_H
#define EXPERT_FORMAT_SOURCE_H

#include "base/mem.h"

/* Aligns trailing comments of adjacent lines, reduces blank lines to one and removes them at start
 * and end, and wraps long lists at a comma under their parenthesis. In the arena. */
struct text tidy_source(struct text source, struct arena *a);

#endif
