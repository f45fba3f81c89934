/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index_space.h - several tensors over one index space with the fewest possible dimensions.
 *
 * All tensors are broadcast to one shape; dimensions of size 1 are removed, the others ordered by
 * the first tensor's strides, and adjacent ones merged if every tensor allows it. The remaining
 * modes are listed fastest first, as in CuTe.
 */
#ifndef EXPERT_INDEX_SPACE_H
#define EXPERT_INDEX_SPACE_H

#include "expert/graph/view.h"

struct modes {
    int count; /* at least 1 */
    int tensors;
    int64_t size[MAX_DIMS];
    struct axis axis[MAX_TENSORS * 2][MAX_DIMS]; /* [tensor][mode]; stride 0: broadcast */
};

/* Starts from the shape of the first tensor, which determines the order. */
void modes_start(struct modes *m, const struct view *lead);
/* Adds a tensor seen through v, broadcast to the leading shape. False: it does not fit. */
bool modes_add(struct modes *m, const struct view *v);
void modes_merge(struct modes *m);

#endif
