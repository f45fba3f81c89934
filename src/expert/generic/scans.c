/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scans.c - running sums, products, extremes and their places, log-sum-exp: a thread per row.
 *
 * Extremes and log-sum-exp along the innermost dimension use a warp per row, 32 adjacent elements
 * at a time: five shuffles combine each element with those before it.
 */
#include "expert/generic/generic.h"

#include <string.h>

static const struct scan_op {
    const char *op, *start;
    bool extreme;
} scans[] = {
    {"aten.cumsum", "0", false}, {"aten.cumprod", "1", false},      {"aten.cummax", "0", true},
    {"aten.cummin", "0", true},  {"aten.logcumsumexp", "0", false},
};

static const struct scan_op *scan_find(const struct node *n)
{
    struct node first = *n;

    first.op = operator_name(n);
    for (size_t i = 0; i < ARRAY_LEN(scans); i++)
        if (graph_op_is(&first, scans[i].op))
            return &scans[i];
    return NULL;
}

bool scan_is(const struct node *n)
{
    return scan_find(n) != NULL;
}

int scan_dim(const struct node *n)
{
    return dim_wrap(arg_int_or(n, 1, "dim", 0), n->t.dims);
}

static const char *log_sum(bool wide)
{
    return wide ? "log1p(exp" : "log1pf(expf";
}

/* Updates the running value with the row's next element, `v`. */
static void put_step(struct kernel *k, const struct scan_op *scan, const char *type, const char *v)
{
    bool wide = strcmp(type, "double") == 0;

    if (scan->extreme) {
        bool largest = strcmp(scan->op, "aten.cummax") == 0;
        int mark = kernel_open(k, false, "if (s == 0 || (acc == acc && (%s %s acc || %s != %s)))",
                               v, largest ? ">=" : "<=", v, v);

        kernel_line(k, "acc = %s;", v);
        kernel_line(k, "where = s;");
        kernel_close(k, mark, false);
    } else if (strcmp(scan->op, "aten.logcumsumexp") == 0) {
        kernel_line(k, "%s const most = s == 0 ? %s : larger(acc, %s);", type, v, v);
        kernel_line(k, "acc = s == 0 || fabs(most) == __int_as_float(0x7f800000) ? most");
        kernel_line(k, "      : most + %s(-fabs(acc - %s)));", log_sum(wide), v);
    } else if (strcmp(scan->op, "aten.cumsum") == 0 && strcmp(type, "int64_t") != 0) { /* Kahan's */
        kernel_line(k, "%s const term = %s - lost, next = acc + term;", type, v);
        kernel_line(k, "lost = fabs(next) < __int_as_float(0x7f800000) ? (next - acc) - term : 0;");
        kernel_line(k, "acc = next;");
    } else {
        kernel_line(k, "acc %s %s;", strcmp(scan->op, "aten.cumsum") == 0 ? "+=" : "*=", v);
    }
}

int scan_team(const struct node *n)
{
    const struct scan_op *scan = scan_find(n);
    bool meets = scan && (scan->extreme || strcmp(scan->op, "aten.logcumsumexp") == 0);

    return meets && n->t.dims && scan_dim(n) == n->t.dims - 1 && n->t.shape[n->t.dims - 1] >= 64
               ? 32
               : 1;
}

/* Combines `acc` (one or several elements) with the `earlier` ones. */
static void put_meeting(struct kernel *k, const struct scan_op *scan, const char *type,
                        const char *when, const char *earlier, const char *earlier_where)
{
    int mark = kernel_open(k, false, "if (%s)", when);

    if (scan->extreme) {
        int inner =
            kernel_open(k, false, "if (%s != %s || !(acc %s %s || acc != acc))", earlier, earlier,
                        strcmp(scan->op, "aten.cummax") == 0 ? ">=" : "<=", earlier);

        kernel_line(k, "acc = %s;", earlier);
        kernel_line(k, "where = %s;", earlier_where);
        kernel_close(k, inner, false);
    } else {
        kernel_line(k, "%s const most = larger(%s, acc);", type, earlier);
        kernel_line(k, "acc = fabs(most) == __int_as_float(0x7f800000) ? most");
        kernel_line(k, "      : most + %s(-fabs(acc - %s)));", log_sum(strcmp(type, "double") == 0),
                    earlier);
    }
    kernel_close(k, mark, false);
}

/* A warp per row. */
static bool write_by_warp(struct kernel *k, const struct scan_op *scan, struct coords at,
                          const char *type)
{
    const struct node *n = k->root, *x = graph_first(k->in->g, n);
    int d = n->t.dims - 1, mark, inner;
    long long size = (long long)n->t.shape[d];
    const char *v;

    kernel_line(k, "int const lane = threadIdx.x %% 32;");
    kernel_line(k, "%s carry = 0;", type);
    kernel_line(k, "int carry_where = 0;");
    mark = kernel_open(k, true, "for (int base = 0; base < %lld; base += 32)", size);
    kernel_line(k, "int const s = base + lane;");
    kernel_line(k, "%s acc = 0;", type);
    kernel_line(k, "int where = s;");
    at.at[d] = "s";
    inner = kernel_open(k, false, "if (s < %lld)", size);
    v = value_at(k, x, &at);
    if (!v)
        return false;
    kernel_line(k, "acc = %s;", v);
    kernel_close(k, inner, false);
    inner = kernel_open(k, true, "for (int apart = 1; apart < 32; apart *= 2)");
    kernel_line(k, "%s const before = __shfl_up_sync(0xffffffff, acc, apart);", type);
    kernel_line(k, "int const before_where = __shfl_up_sync(0xffffffff, where, apart);");
    put_meeting(k, scan, type, "lane >= apart", "before", "before_where");
    kernel_close(k, inner, true);
    put_meeting(k, scan, type, "base > 0", "carry", "carry_where");
    kernel_line(k, "if (s < %lld)", size);
    kernel_line(k, "    y(%s) = %s(%s);", place_text(n, &at, k->in->a), value_memory(k->in, n),
                graph_other_result(n) ? "where" : "acc");
    kernel_line(k, "carry = __shfl_sync(0xffffffff, acc, 31);");
    kernel_line(k, "carry_where = __shfl_sync(0xffffffff, where, 31);");
    kernel_close(k, mark, true);
    return true;
}

bool write_scan(struct kernel *k)
{
    const struct node *n = k->root, *x = graph_first(k->in->g, n);
    const struct scan_op *scan = scan_find(n);
    int d = n->t.dims ? scan_dim(n) : -1, mark;
    struct coords at = coordinates(k, n, d);
    const struct node *of = scan && scan->extreme ? x : n;
    const char *v, *type;

    if (!scan || !value_type(of))
        return value_no(k, n, "a running value it does not know") != NULL;
    type = strcmp(value_type(of), value_float(of)) == 0 ? value_float(of) : "int64_t";
    if (k->team > 1)
        return write_by_warp(k, scan, at, type);
    kernel_line(k, "%s acc = %s;", type, scan->start);
    if (scan->extreme)
        kernel_line(k, "%s where = 0;", k->index);
    if (strcmp(scan->op, "aten.cumsum") == 0 && strcmp(type, "int64_t") != 0)
        kernel_line(k, "%s lost = 0; // to rounding", type);
    mark = kernel_open(k, true, "for (%s s = 0; s < %lld; s++)", k->index,
                       (long long)(d < 0 ? 1 : n->t.shape[d]));
    if (d >= 0)
        at.at[d] = "s";
    v = value_at(k, x, &at);
    if (!v)
        return false;
    put_step(k, scan, type, v);
    kernel_line(k, "y(%s) = %s(%s);", place_text(n, &at, k->in->a), value_memory(k->in, n),
                graph_other_result(n) ? "where" : "acc");
    kernel_close(k, mark, true);
    return true;
}
