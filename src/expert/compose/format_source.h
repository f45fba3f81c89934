/* SPDX-License-Identifier: Apache-2.0 */
/* format_source.h - lay out composed source like hand-written source. */
#ifndef EXPERT_FORMAT_SOURCE_H
#define EXPERT_FORMAT_SOURCE_H

#include "base/mem.h"

/* Comments at the ends of neighbouring lines start in one column, blank lines
 * come singly and none stands at the start or the end, and long lists are
 * broken at a comma and go on under their parenthesis. In the arena. */
struct text tidy_source(struct text source, struct arena *a);

#endif
