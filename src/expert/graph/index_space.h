/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index_space.h - several tensors over one index space, with as few dimensions as they allow.
 *
 * All tensors are brought to one shape by broadcasting; dimensions of size 1
 * go, the rest is ordered by the first tensor's strides, and neighbours are
 * merged where every tensor allows it. What is left are modes, the one that
 * runs fastest first, as CuTe writes them.
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

/* Starts from the shape of the first tensor as it is seen, which leads. */
void modes_start(struct modes *m, const struct view *lead);
/* Adds a tensor seen through v, broadcast to the leading shape. False: it does not fit. */
bool modes_add(struct modes *m, const struct view *v);
void modes_merge(struct modes *m);

#endif
