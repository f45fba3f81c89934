/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pools.c - windows: mean, maximum and its index, with fixed or adaptive window sizes.
 *
 * Sizes follow PyTorch's own definitions: the divisor of a window at the border follows
 * count_include_pad, an adapted one begins at floor(o in / out) and ends before ceil((o + 1) in /
 * out).
 */
#include "expert/generic/generic.h"

#include <string.h>

struct window_op {
    const struct node *x;
    int dims, first; /* spatial dimensions, and where they begin */
    bool largest, adaptive, pads_count, place;
    int64_t kernel[MAX_DIMS], stride[MAX_DIMS], padding[MAX_DIMS], dilation[MAX_DIMS];
    int64_t divisor; /* 0: the window's size */
};

static int sizes_or(const struct node *n, size_t index, const char *keyword, int dims, int64_t *out,
                    const int64_t *fallback, int64_t number)
{
    int count = graph_arg_ints(n, index, keyword, out);

    for (int d = 0; d < dims; d++)
        if (count < 1)
            out[d] = fallback ? fallback[d] : number;
        else if (count == 1)
            out[d] = out[0];
    return count;
}

/* The widest window of an adapted pool. */
static int64_t widest(int64_t in, int64_t out)
{
    int64_t most = 1;

    for (int64_t o = 0; o < out; o++) {
        int64_t size = ((o + 1) * in + out - 1) / out - o * in / out;

        most = size > most ? size : most;
    }
    return most;
}

static bool pool_read(const struct graph *g, const struct node *n, struct window_op *p)
{
    const char *op = operator_name(n), *pool = strstr(op, "_pool");
    bool known =
        pool && (strncmp(op, "aten.max_pool", 13) == 0 || strncmp(op, "aten.avg_pool", 13) == 0 ||
                 strncmp(op, "aten.adaptive_max_pool", 22) == 0 ||
                 strncmp(op, "aten._adaptive_avg_pool", 23) == 0 ||
                 strncmp(op, "aten.adaptive_avg_pool", 22) == 0 ||
                 strncmp(op, "aten.mkldnn_max_pool", 20) == 0);

    *p = (struct window_op){.x = known ? graph_first(g, n) : NULL};
    if (!p->x || strstr(op, "backward"))
        return false;
    p->dims = pool[5] - '0';
    p->first = p->x->t.dims - p->dims;
    p->largest = strstr(op, "max_pool") != NULL;
    p->adaptive = strstr(op, "adaptive") != NULL;
    p->place = graph_other_result(n);
    if (p->dims < 1 || p->dims > 3 || p->first < 0)
        return false;
    if (p->adaptive) {
        for (int d = 0; d < p->dims; d++)
            p->kernel[d] = widest(p->x->t.shape[p->first + d], n->t.shape[p->first + d]);
        return true;
    }
    if (sizes_or(n, 1, "kernel_size", p->dims, p->kernel, NULL, 1) < 1)
        return false;
    sizes_or(n, 2, "stride", p->dims, p->stride, p->kernel, 1);
    sizes_or(n, 3, "padding", p->dims, p->padding, NULL, 0);
    if (p->largest) {
        sizes_or(n, 4, "dilation", p->dims, p->dilation, NULL, 1);
        return true;
    }
    for (int d = 0; d < p->dims; d++)
        p->dilation[d] = 1;
    p->pads_count = arg_int_or(n, 5, "count_include_pad", 1);
    p->divisor = arg_int_or(n, 6, "divisor_override", 0);
    return true;
}

int pool_dims(const struct node *n, const struct graph *g, double *terms)
{
    struct window_op p;

    *terms = 1;
    if (!pool_read(g, n, &p))
        return 0;
    for (int d = 0; d < p.dims; d++)
        *terms *= (double)p.kernel[d];
    return p.dims;
}

/* Names where a window begins; for an adapted one also how long it is. */
static void window(struct kernel *k, const struct node *n, const struct window_op *p,
                   const struct coords *at, const char **start, const char **length)
{
    for (int d = 0; d < p->dims; d++) {
        const char *o = at->at[p->first + d];
        long long in = (long long)p->x->t.shape[p->first + d];
        long long out = (long long)n->t.shape[p->first + d];
        long long s = (long long)p->stride[d], pad = (long long)p->padding[d];
        long long size = (long long)p->kernel[d];

        if (p->adaptive) {
            start[d] = kernel_index(k, "%s * %lld / %lld", o, in, out);
            length[d] = kernel_index(k, "((%s + 1) * %lld + %lld) / %lld - %s", o, in, out - 1, out,
                                     start[d]);
            continue;
        }
        start[d] = kernel_index(k, "%s * %lld - %lld", o, s, pad);
        if (p->pads_count)
            length[d] = kernel_index(k, "(%s + %lld < %lld ? %s + %lld : %lld) - %s", start[d],
                                     size, in + pad, start[d], size, in + pad, start[d]);
        else
            length[d] = kernel_index(k, "(%s + %lld < %lld ? %s + %lld : %lld) - (%s > 0 ? %s : 0)",
                                     start[d], size, in, start[d], size, in, start[d], start[d]);
    }
}

/* The element of each tap, and the condition that it is one. */
static const char *taps(struct kernel *k, const struct window_op *p, const char *const *start,
                        const char *const *length, const char *const *names, struct coords *at)
{
    const char *when = "";

    for (int d = 0; d < p->dims; d++) {
        const char *i;

        if (p->adaptive) {
            i = kernel_index(k, "%s + %s", start[d], names[d]);
            when = arena_printf(k->in->a, "%s%s%s < %s", when, *when ? " && " : "", names[d],
                                length[d]);
        } else {
            i = kernel_index(k, "%s + %s * %lld", start[d], names[d], (long long)p->dilation[d]);
            when = arena_printf(k->in->a, "%s%s%s >= 0 && %s < %lld", when, *when ? " && " : "", i,
                                i, (long long)p->x->t.shape[p->first + d]);
        }
        at->at[p->first + d] = i;
    }
    return when;
}

static const char *pooled(struct kernel *k, const struct node *n, const struct window_op *p,
                          const struct coords *at)
{
    const char *start[3], *length[3], *names[3], *v, *i, *sizes = "";
    const char *acc = arena_printf(k->in->a, "acc%d", ++k->names), *type = value_float(p->x);
    bool shared = loops_shared(k);
    struct coords place = *at;
    int mark, inside;

    window(k, n, p, at, start, length);
    kernel_line(k, p->largest ? "Best<%s> %s = {-__int_as_float(0x7f800000), -1};" : "%s %s = 0;",
                type, acc);
    mark = loops_open(k, p->kernel, p->dims, names);
    inside = kernel_open(k, false, "if (%s)", taps(k, p, start, length, names, &place));
    v = value_at(k, p->x, &place);
    if (!v)
        return NULL;
    i = place.at[p->first];
    for (int d = 1; d < p->dims; d++)
        i = arena_printf(k->in->a, "(%s) * %lld + %s", i, (long long)p->x->t.shape[p->first + d],
                         place.at[p->first + d]);
    if (p->largest)
        kernel_line(k, "%s = better<true>(%s, {%s(%s), %s});", acc, acc, type, v, i);
    else
        kernel_line(k, "%s += %s;", acc, v);
    kernel_close(k, inside, false);
    loops_close(k, mark);
    if (shared)
        kernel_line(k, p->largest ? "%s = team_best<%d, true>(%s);" : "%s = team_sum<%d>(%s);", acc,
                    k->team, acc);
    if (p->largest)
        return kernel_name(k, value_type(n), "%s(%s.%s)", value_type(n), acc,
                           p->place ? "at" : "value");
    if (p->divisor)
        return kernel_name(k, value_type(n), "%s / %lld.0f", acc, (long long)p->divisor);
    for (int d = 0; d < p->dims; d++)
        sizes = arena_printf(k->in->a, "%s%s%s", sizes, d ? " * " : "", length[d]);
    return kernel_name(k, value_type(n), "%s / %s(%s)", acc, type, sizes);
}

const char *value_pooled(struct kernel *k, const struct node *n, const struct coords *at,
                         bool *mine)
{
    struct window_op p;

    *mine = pool_read(k->in->g, n, &p);
    return *mine ? pooled(k, n, &p, at) : NULL;
}
