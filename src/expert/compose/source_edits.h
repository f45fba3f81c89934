/* SPDX-License-Identifier: Apache-2.0 */
/* source_edits.h - the difference between two sources, as edits for a reply. */
#ifndef EXPERT_SOURCE_EDITS_H
#define EXPERT_SOURCE_EDITS_H

#include "base/mem.h"

/* SEARCH/REPLACE blocks that turn `from` into `to`: few, small, none
 * overlapping, and each SEARCH text stands exactly once in `from`. Empty when
 * both are equal. In the arena. */
struct text change_blocks(struct text from, struct text to, struct arena *a);

#endif
