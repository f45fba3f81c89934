/* SPDX-License-Identifier: Apache-2.0 */
/* index_space.c - several tensors over one index space with the fewest possible dimensions. */
#include "expert/graph/index_space.h"

#include <string.h>

void modes_start(struct modes *m, const struct view *lead)
{
    memset(m, 0, sizeof(*m));
    m->count = lead->dims;
    m->tensors = 1;
    for (int d = 0; d < lead->dims; d++) {
        int mode = lead->dims - 1 - d; /* fastest first */

        m->size[mode] = lead->axes[d].size;
        m->axis[0][mode] = lead->axes[d];
    }
}

bool modes_add(struct modes *m, const struct view *v)
{
    struct axis *to = m->axis[m->tensors];

    if (v->dims > m->count || m->tensors == MAX_TENSORS * 2)
        return false;
    for (int mode = 0; mode < m->count; mode++) {
        int d = v->dims - 1 - mode;

        to[mode] = (struct axis){.size = m->size[mode]};
        if (d < 0 || (v->axes[d].size == 1 && m->size[mode] != 1))
            continue;
        if (v->axes[d].size != m->size[mode])
            return false;
        to[mode] = v->axes[d];
        if (to[mode].stride == 0)
            to[mode].first = to[mode].last = 0;
    }
    m->tensors++;
    return true;
}

static void drop(struct modes *m, int mode)
{
    size_t rest = (size_t)(m->count - mode - 1);

    memmove(m->size + mode, m->size + mode + 1, rest * sizeof(*m->size));
    for (int t = 0; t < m->tensors; t++)
        memmove(m->axis[t] + mode, m->axis[t] + mode + 1, rest * sizeof(struct axis));
    m->count--;
}

static void swap(struct modes *m, int i, int j)
{
    int64_t size = m->size[i];

    m->size[i] = m->size[j];
    m->size[j] = size;
    for (int t = 0; t < m->tensors; t++) {
        struct axis axis = m->axis[t][i];

        m->axis[t][i] = m->axis[t][j];
        m->axis[t][j] = axis;
    }
}

/* Can modes `fast` and fast + 1 be one for this tensor? */
static bool mergeable(const struct axis *fast, const struct axis *slow)
{
    bool broadcast = fast->first == fast->last;

    if (broadcast != (slow->first == slow->last))
        return false;
    return broadcast || (slow->last <= fast->first && slow->stride == fast->stride * fast->size);
}

static void merge(struct modes *m, int fast)
{
    m->size[fast] *= m->size[fast + 1];
    for (int t = 0; t < m->tensors; t++) {
        struct axis *x = &m->axis[t][fast], *slow = &m->axis[t][fast + 1];

        /* Dimensions that are not neighbours: the size is not the product of those between. */
        x->split = x->split || slow->split || slow->last != x->first;
        if (x->first != x->last)
            x->first = slow->first;
        x->size = m->size[fast];
    }
    drop(m, fast + 1);
}

void modes_merge(struct modes *m)
{
    for (int i = m->count; i-- > 0 && m->count > 1;)
        if (m->size[i] == 1)
            drop(m, i);
    for (int i = 1; i < m->count; i++) /* by the leader's stride, stable */
        for (int k = i; k > 0 && m->axis[0][k].stride < m->axis[0][k - 1].stride; k--)
            swap(m, k, k - 1);
    for (int fast = 0; fast + 1 < m->count;) {
        bool all = true;

        for (int t = 0; t < m->tensors && all; t++)
            all = mergeable(&m->axis[t][fast], &m->axis[t][fast + 1]);
        if (all)
            merge(m, fast);
        else
            fast++;
    }
    if (m->count == 0) { /* a single element */
        m->count = 1;
        m->size[0] = 1;
        for (int t = 0; t < m->tensors; t++)
            m->axis[t][0] = (struct axis){.size = 1};
    }
}
