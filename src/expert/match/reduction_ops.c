/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduction_ops.c - reduction operators, and the dimensions that they reduce.
 *
 * reduction_ops.def lists the passes of each.
 */
#include "expert/match/reduction_ops.h"

#include <math.h>
#include <string.h>

static const struct row_form forms[] = {
#define ANY                                                                                        \
    {                                                                                              \
        -1, 0, 0                                                                                   \
    }
#define IF(arg, value, fallback)                                                                   \
    {                                                                                              \
        arg, value, fallback                                                                       \
    }
#define PASS(name, combine, element, result) {name, combine, element, result},
#define ROW(op, kind, dims, choice, pair, value, passes)                                           \
    {op, kind, dims, choice, pair, value, {passes}},
#include "expert/match/reduction_ops.def"
#undef ROW
#undef PASS
#undef IF
#undef ANY
};

static bool chosen(const struct node *n, const struct choice *c)
{
    double value = c->fallback;

    if (c->arg < 0)
        return true;
    if (graph_arg_json(n, (size_t)c->arg, NULL) &&
        !graph_number(graph_arg_json(n, (size_t)c->arg, NULL), &value))
        return false;
    return value >= c->value && value <= c->value;
}

const struct row_form *row_form_of(const struct graph *g, const struct node *n)
{
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        if (!graph_op_is(n, forms[i].op) || !chosen(n, &forms[i].choice))
            continue;
        if (strstr(n->op, ".other"))
            return NULL; /* the maximum of two tensors */
        if (forms[i].dims_arg == OPERANDS) {
            const struct node *b = graph_arg(g, n, 1);

            return b && b->t.dims > 0 &&
                           b->t.shape[b->t.dims - 1] == (b->t.dims == 1 ? b->t.shape[0] : 1)
                       ? &forms[i]
                       : NULL;
        }
        return &forms[i];
    }
    return NULL;
}

/* A group norm sees its input as (batch, groups, channels of a group, the rest). */
static bool grouped(const struct node *n, struct tensor *x)
{
    struct tensor t = *x;
    int64_t groups;

    if (!graph_arg_int(n, 6, NULL, &groups) || x->dims < 2 || groups < 1 || x->shape[1] % groups ||
        x->dims + 1 > MAX_DIMS)
        return false;
    t.dims = x->dims + 1;
    t.shape[1] = groups;
    t.shape[2] = x->shape[1] / groups;
    t.strides[1] = x->strides[1] * t.shape[2];
    t.strides[2] = x->strides[1];
    for (int d = 2; d < x->dims; d++) {
        t.shape[d + 1] = x->shape[d];
        t.strides[d + 1] = x->strides[d];
    }
    *x = t;
    return true;
}

/* Which dimensions of its argument the operator reduces; *x becomes the shape they are of. */
bool row_form_dims(const struct node *n, const struct row_form *f, struct tensor *x,
                   bool out[MAX_DIMS])
{
    int64_t dims[MAX_DIMS];
    int count = 0;

    memset(out, 0, sizeof(bool) * MAX_DIMS);
    if (f->dims_arg == OPERANDS) {
        out[x->dims - 1] = true;
        return true;
    }
    if (f->dims_arg == LAST) {
        count = graph_arg_ints(n, 1, "normalized_shape", dims);
        for (int d = x->dims - count; count > 0 && d < x->dims; d++)
            out[d] = true;
        return count > 0;
    }
    if (f->dims_arg == GROUPS && !grouped(n, x))
        return false;
    if (f->dims_arg >= 0 && graph_arg_json(n, (size_t)f->dims_arg, "dim"))
        count = graph_arg_ints(n, (size_t)f->dims_arg, "dim", dims);
    for (int i = 0; i < count; i++) {
        int64_t d = dims[i] < 0 ? dims[i] + x->dims : dims[i];

        if (d < 0 || d >= x->dims)
            return false;
        out[d] = true;
    }
    for (int d = 0; d < x->dims && count == 0; d++)
        out[d] = f->dims_arg == CHANNELS ? d != 1 : f->dims_arg != GROUPS || d > 1;
    return count >= 0;
}
