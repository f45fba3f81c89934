/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scatters.c - elements written to indexed places: a thread per written element.
 *
 * generic.scatter_add(x, index, source) adds to a copy of x, scatter_max keeps
 * the larger number, scatter_mul multiplies. Several threads may write to one place, so writes are
 * atomic: float sums are rounded in varying order, as PyTorch's are on a GPU; integers do not
 * depend on the order.
 */
#include "expert/generic/generic.h"

#include <string.h>

bool scatter_is(const struct node *n)
{
    return strncmp(n->op, "generic.scatter_", 16) == 0;
}

/* The atomic call up to its first argument; NULL: none exists for this type. */
static const char *atomic_call(struct generic *in, const struct node *n)
{
    static const struct {
        const char *op, *memory, *call;
    } rows[] = {{"add", "float", "atomicAdd("},
                {"add", "double", "atomicAdd("},
                {"add", "int32_t", "atomicAdd("},
                {"add", "int64_t", "atomicAdd((unsigned long long *)"},
                {"max", "int32_t", "atomicMax("},
                {"max", "int64_t", "atomicMax((long long *)"},
                {"max", "float", "scatter_max("},
                {"max", "double", "scatter_max("},
                {"mul", "float", "scatter_product("},
                {"mul", "double", "scatter_product("}};
    const char *memory = value_memory(in, n);

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (strcmp(n->op + strlen("generic.scatter_"), rows[i].op) == 0 &&
            strcmp(memory, rows[i].memory) == 0) {
            in->scatters = in->scatters || strncmp(rows[i].call, "scatter_", 8) == 0;
            return rows[i].call;
        }
    return NULL;
}

bool scatter_fits(const struct graph *g, const struct node *n)
{
    const struct node *x = graph_first(g, n), *index = graph_arg(g, n, 1),
                      *source = graph_arg(g, n, 2);

    if (!x || !index || !source || n->t.dims < 1 || x->t.dims != n->t.dims ||
        index->t.dims != n->t.dims || source->t.dims != n->t.dims)
        return false;
    for (int d = 0; d < n->t.dims; d++)
        if (x->t.shape[d] != n->t.shape[d] || source->t.shape[d] != index->t.shape[d])
            return false;
    return true;
}

double scatter_writers(const struct graph *g, const struct node *n)
{
    const struct node *index = graph_arg(g, n, 1);

    return index ? (double)tensor_numel(&index->t) : 0;
}

bool write_scatter(struct kernel *k)
{
    const struct node *n = k->root, *index = graph_arg(k->in->g, n, 1),
                      *source = graph_arg(k->in->g, n, 2);
    int d = dim_wrap(arg_int_or(n, 9, "dim", 0), n->t.dims);
    const char *call = atomic_call(k->in, n), *when = "", *v, *i;
    struct coords at = coordinates(k, index, -1), to = at;
    int mark;

    if (!call)
        return value_no(k, n, arena_printf(k->in->a, "no atomic operation for %s", n->t.dtype)) !=
               NULL;
    i = index_value(k, index, &at, n->t.shape[d]);
    v = value_at(k, source, &at);
    if (!i || !v)
        return false;
    to.at[d] = i;
    for (int j = 0; j < n->t.dims; j++)
        if (j == d || index->t.shape[j] > n->t.shape[j])
            when = index_bounds(k, when, to.at[j], n->t.shape[j]);
    mark = kernel_open(k, false, "if (%s)", when);
    kernel_line(k, "%s&y(%s), %s(%s));", call, place_text(n, &to, k->in->a),
                strstr(call, "unsigned") ? "(unsigned long long)" : value_type(n), v);
    kernel_close(k, mark, false);
    return true;
}
