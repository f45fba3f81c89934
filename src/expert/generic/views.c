/* SPDX-License-Identifier: Apache-2.0 */
/* views.c - operators that only move elements: maps an index of the result to an index of the
 * argument. */
#include "expert/generic/generic.h"

#include <string.h>

static bool op_in(const struct node *given, const char *const *names, size_t count)
{
    struct node first = *given, *n = &first;

    n->op = operator_name(given);
    for (size_t i = 0; i < count; i++)
        if (graph_op_is(n, names[i]))
            return true;
    return false;
}

/* ---- reshape ------------------------------------------------------------------- */

struct group {
    int64_t to[MAX_DIMS], from[MAX_DIMS];
    const char *at[MAX_DIMS];
    int to_count, from_count, from_dim[MAX_DIMS];
};

static void group_place(struct kernel *k, struct group *g, struct coords *out)
{
    const char *linear = g->at[0];
    int64_t stride = 1;

    if (g->to_count == 1 && g->from_count == 1) {
        out->at[g->from_dim[0]] = g->at[0];
        return;
    }
    for (int i = 1; i < g->to_count; i++)
        linear = arena_printf(k->in->a, "(%s * %lld + %s)", linear, (long long)g->to[i], g->at[i]);
    linear = kernel_index(k, "%s", linear);
    for (int i = g->from_count; i-- > 0; stride *= g->from[i]) {
        const char *text = linear;

        if (stride > 1)
            text = arena_printf(k->in->a, "%s / %lld", text, (long long)stride);
        if (i > 0)
            text = arena_printf(k->in->a, "%s %% %lld", text, (long long)g->from[i]);
        out->at[g->from_dim[i]] = kernel_index(k, "%s", text);
    }
}

/* Groups of neighbouring dimensions with equal products, each by itself. */
static void reshape_place(struct kernel *k, const struct tensor *to, const struct coords *at,
                          const struct tensor *from, struct coords *out)
{
    int i = 0, j = 0;

    for (int d = 0; d < from->dims; d++)
        out->at[d] = "0";
    for (;;) {
        struct group g = {.to_count = 0};
        int64_t to_size = 1, from_size = 1;

        while ((i < to->dims || j < from->dims) &&
               !(g.to_count && g.from_count && to_size == from_size)) {
            while (i < to->dims && to->shape[i] == 1)
                i++;
            while (j < from->dims && from->shape[j] == 1)
                j++;
            if (i < to->dims && (to_size <= from_size || j == from->dims)) {
                g.at[g.to_count] = at->at[i];
                g.to[g.to_count++] = to->shape[i];
                to_size *= to->shape[i++];
            } else if (j < from->dims) {
                g.from_dim[g.from_count] = j;
                g.from[g.from_count++] = from->shape[j];
                from_size *= from->shape[j++];
            }
        }
        if (!g.to_count || !g.from_count)
            return;
        group_place(k, &g, out);
    }
}

/* ---- the other views -------------------------------------------------------------- */

static bool place_permuted(const struct node *n, const struct node *x, const struct coords *at,
                           struct coords *out)
{
    int64_t order[MAX_DIMS] = {0}, i = -2, j = -1;
    int dims = x->t.dims;

    for (int d = 0; d < dims; d++)
        out->at[d] = at->at[d];
    if (graph_op_is(n, "aten.permute")) {
        if (graph_arg_ints(n, 1, "dims", order) != dims)
            return false;
        for (int d = 0; d < dims; d++)
            out->at[dim_wrap(order[d], dims)] = at->at[d];
        return true;
    }
    if (graph_op_is(n, "aten.numpy_T")) {
        for (int d = 0; d < dims; d++)
            out->at[dims - 1 - d] = at->at[d];
        return true;
    }
    if (graph_op_is(n, "aten.transpose") || graph_op_is(n, "aten.swapaxes")) {
        if (!graph_arg_int(n, 1, "dim0", &i) || !graph_arg_int(n, 2, "dim1", &j))
            return false;
    }
    if (dims < 2)
        return true;
    out->at[dim_wrap(i, dims)] = at->at[dim_wrap(j, dims)];
    out->at[dim_wrap(j, dims)] = at->at[dim_wrap(i, dims)];
    return true;
}

static const char *shifted(struct kernel *k, const char *at, int64_t from, int64_t step)
{
    int64_t number;

    if (is_number(at, &number))
        return arena_printf(k->in->a, "%lld", (long long)(from + number * step));
    if (step == 1 && from == 0)
        return at;
    if (step == 1)
        return kernel_index(k, "%s + %lld", at, (long long)from);
    return from ? kernel_index(k, "%s * %lld + %lld", at, (long long)step, (long long)from)
                : kernel_index(k, "%s * %lld", at, (long long)step);
}

/* Slices, single places, pieces: dimension d begins at `from`. */
static void place_part(struct kernel *k, const struct node *n, const struct node *x,
                       const struct coords *at, struct coords *out)
{
    bool slice = graph_op_is(n, "aten.slice"), select = graph_op_is(n, "aten.select");
    bool unbind = graph_op_is(n, "aten.unbind"), drops = select || unbind;
    int d = dim_wrap(arg_int_or(n, slice || drops ? 1 : 2, "dim", 0), x->t.dims);
    int64_t from = 0, step = 1;

    if (slice) {
        from = arg_int_or(n, 2, "start", 0);
        step = arg_int_or(n, 4, "step", 1);
    } else if (select) {
        from = arg_int_or(n, 2, "index", 0);
    } else if (unbind) {
        from = n->part;
    } else {
        const json_t *parts = json_object_get(n->whole, "parts");

        for (int p = 0; p < n->part; p++)
            from += json_integer_value(json_array_get(
                json_object_get(json_array_get(parts, (size_t)p), "shape"), (size_t)d));
    }
    from += from < 0 ? x->t.shape[d] : 0;
    from = from < 0 ? 0 : from > x->t.shape[d] ? x->t.shape[d] : from;
    for (int i = 0, j = 0; i < x->t.dims; i++) {
        if (i == d)
            out->at[i] = shifted(k, drops ? "0" : at->at[j++], from, step);
        else
            out->at[i] = at->at[j++];
    }
}

static void place_flipped(struct kernel *k, const struct node *n, const struct node *x,
                          const struct coords *at, struct coords *out)
{
    int64_t dims[MAX_DIMS];
    int count = graph_arg_ints(n, 1, "dims", dims);

    *out = *at;
    for (int i = 0; i < count; i++) {
        int d = dim_wrap(dims[i], x->t.dims);

        out->at[d] = kernel_index(k, "%lld - %s", (long long)x->t.shape[d] - 1, at->at[d]);
    }
}

/* Without dimensions, the tensor is rolled as one row. */
static void place_rolled(struct kernel *k, const struct node *n, const struct node *x,
                         const struct coords *at, struct coords *out)
{
    int64_t shifts[MAX_DIMS], dims[MAX_DIMS];
    int count = graph_arg_ints(n, 1, "shifts", shifts), over = graph_arg_ints(n, 2, "dims", dims);

    *out = *at;
    for (int i = 0; i < count && i < over; i++) {
        int d = dim_wrap(dims[i], x->t.dims);
        int64_t size = x->t.shape[d] > 0 ? x->t.shape[d] : 1;
        int64_t by = (size - (shifts[i] % size + size) % size) % size;

        if (by)
            out->at[d] =
                kernel_index(k, "(%s + %lld) %% %lld", out->at[d], (long long)by, (long long)size);
    }
    if (over <= 0 && count == 1) {
        struct tensor row = {.dims = 1, .shape = {tensor_numel(&x->t)}};
        struct coords flat = {{NULL}};
        int64_t size = row.shape[0] > 0 ? row.shape[0] : 1;
        int64_t by = (size - (shifts[0] % size + size) % size) % size;

        reshape_place(k, &x->t, at, &row, &flat);
        flat.at[0] =
            kernel_index(k, "(%s + %lld) %% %lld", flat.at[0], (long long)by, (long long)size);
        reshape_place(k, &row, &flat, &x->t, out);
    }
}

static void place_repeated(struct kernel *k, const struct node *n, const struct node *x,
                           const struct coords *at, struct coords *out)
{
    int skip = n->t.dims - x->t.dims;

    for (int d = 0; d < x->t.dims; d++) {
        const char *i = d + skip < 0 ? "0" : at->at[d + skip];

        if (x->t.shape[d] == 1 || d + skip < 0)
            out->at[d] = "0";
        else if (x->t.shape[d] == n->t.shape[d + skip])
            out->at[d] = i;
        else
            out->at[d] = kernel_index(k, "%s %% %lld", i, (long long)x->t.shape[d]);
    }
}

/* diagonal(x, offset, dim1, dim2): the last dimension runs along it. */
static void place_diagonal(struct kernel *k, const struct node *n, const struct node *x,
                           const struct coords *at, struct coords *out)
{
    int64_t offset = arg_int_or(n, 1, "offset", 0);
    int p = dim_wrap(arg_int_or(n, 2, "dim1", 0), x->t.dims);
    int q = dim_wrap(arg_int_or(n, 3, "dim2", 1), x->t.dims);
    const char *last = n->t.dims > 0 ? at->at[n->t.dims - 1] : "0";

    for (int d = 0, j = 0; d < x->t.dims; d++)
        if (d != p && d != q)
            out->at[d] = at->at[j++];
    out->at[p] = shifted(k, last, offset < 0 ? -offset : 0, 1);
    out->at[q] = shifted(k, last, offset > 0 ? offset : 0, 1);
}

/* unfold(x, dim, size, step): windows in dim, their elements in a last dimension. */
static void place_unfolded(struct kernel *k, const struct node *n, const struct node *x,
                           const struct coords *at, struct coords *out)
{
    int d = dim_wrap(arg_int_or(n, 1, "dimension", 0), x->t.dims);
    int64_t step = arg_int_or(n, 3, "step", 1);

    for (int i = 0; i < x->t.dims; i++)
        out->at[i] = at->at[i];
    out->at[d] = kernel_index(k, "%s * %lld + %s", at->at[d], (long long)step, at->at[x->t.dims]);
}

/* Over the memory of an argument without gaps. */
static bool place_strided(struct kernel *k, const struct node *n, const struct node *x,
                          const struct coords *at, struct coords *out)
{
    int64_t strides[MAX_DIMS], offset = arg_int_or(n, 3, "storage_offset", 0);
    struct tensor row = {.dims = 1, .shape = {tensor_numel(&x->t)}};
    struct coords flat = {{NULL}};
    const char *text = arena_printf(k->in->a, "%lld", (long long)offset);

    if (!tensor_contiguous(&x->t) || graph_arg_ints(n, 2, "stride", strides) != n->t.dims)
        return false;
    for (int d = 0; d < n->t.dims; d++)
        text = arena_printf(k->in->a, "%s + %s * %lld", text, at->at[d], (long long)strides[d]);
    flat.at[0] = kernel_index(k, "%s", text);
    reshape_place(k, &row, &flat, &x->t, out);
    return true;
}

static const char *const same[] = {"aten.clone",    "aten.contiguous", "aten.detach",
                                   "aten.alias",    "aten.lift_fresh", "aten.lift_fresh_copy",
                                   "aten._to_copy", "aten.to",         "aten.positive",
                                   "aten.lift",     "aten.dropout",    "aten.type_as"};
static const char *const reshapes[] = {
    "aten.view",    "aten._unsafe_view", "aten.reshape",   "aten._reshape_alias", "aten.unsqueeze",
    "aten.squeeze", "aten.flatten",      "aten.unflatten", "aten.view_copy"};
static const char *const turns[] = {"aten.permute", "aten.transpose", "aten.t",
                                    "aten.mT",      "aten.numpy_T",   "aten.swapaxes"};
static const char *const takes[] = {"aten.slice",
                                    "aten.select",
                                    "aten.unbind",
                                    "aten.split",
                                    "aten.split_with_sizes",
                                    "aten.unsafe_split",
                                    "aten.unsafe_split_with_sizes"};
static const char *const others[] = {"aten.expand", "aten.flip",       "aten.roll",
                                     "aten.repeat", "aten.tile",       "aten.diagonal",
                                     "aten.unfold", "aten.as_strided", "aten.copy"};

bool is_generic_view(const struct node *n)
{
    return op_in(n, same, ARRAY_LEN(same)) || op_in(n, reshapes, ARRAY_LEN(reshapes)) ||
           op_in(n, turns, ARRAY_LEN(turns)) || op_in(n, takes, ARRAY_LEN(takes)) ||
           op_in(n, others, ARRAY_LEN(others));
}

static bool place_other(struct kernel *k, const struct node *n, const struct node *x,
                        const struct coords *at, struct coords *out)
{
    if (graph_op_is(n, "aten.flip"))
        place_flipped(k, n, x, at, out);
    else if (graph_op_is(n, "aten.roll"))
        place_rolled(k, n, x, at, out);
    else if (graph_op_is(n, "aten.repeat") || graph_op_is(n, "aten.tile"))
        place_repeated(k, n, x, at, out);
    else if (graph_op_is(n, "aten.diagonal"))
        place_diagonal(k, n, x, at, out);
    else if (graph_op_is(n, "aten.unfold"))
        place_unfolded(k, n, x, at, out);
    else if (graph_op_is(n, "aten.as_strided"))
        return place_strided(k, n, x, at, out);
    else
        *out = place_broadcast(at, &x->t, &n->t);
    return true;
}

int view_place(struct kernel *k, const struct node *n, const struct coords *at,
               const struct node **from, struct coords *out)
{
    bool copies = graph_op_is(n, "aten.copy"); /* into its first argument, of its second */
    const struct node *x = graph_arg(k->in->g, n, copies ? 1 : 0);
    bool ok = true;

    if (!is_generic_view(n) || (graph_other_result(n) && !op_in(n, takes, ARRAY_LEN(takes))))
        return 0;
    if (!x || strcmp(n->op, "aten.view.dtype") == 0) {
        value_no(k, n, x ? "bits of one type read as another" : "an argument is missing");
        return -1;
    }
    *out = (struct coords){{NULL}};
    *from = x;
    if (op_in(n, same, ARRAY_LEN(same)) && x->t.dims == n->t.dims)
        *out = *at;
    else if (op_in(n, reshapes, ARRAY_LEN(reshapes)) || op_in(n, same, ARRAY_LEN(same)))
        reshape_place(k, &n->t, at, &x->t, out);
    else if (op_in(n, turns, ARRAY_LEN(turns)))
        ok = place_permuted(n, x, at, out);
    else if (op_in(n, takes, ARRAY_LEN(takes)))
        place_part(k, n, x, at, out);
    else
        ok = place_other(k, n, x, at, out);
    if (!ok)
        value_no(k, n, "a view with these arguments");
    return ok ? 1 : -1;
}
