/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows_total.c - reductions of the rows' results over all rows, such as the mean of a loss per row.
 *
 * Each is a stage with `total` set: the rows' kernel writes a value per row to workspace, and a
 * second kernel reduces those.
 */
#include "expert/match/reduction_ops.h"
#include "expert/match/rows.h"

#include <string.h>

static struct row_stage *total_add(struct rows *q, const char *wanted, const char *combine,
                                   const char *result)
{
    struct row_stage *s = rows_stage(q, wanted);

    if (!s)
        return NULL;
    s->name = names_add(&q->names, arena_printf(q->a, "total_%s", wanted), q->a);
    s->total = true;
    s->combine = combine;
    s->result = result;
    return s;
}

/* The elements that class numbers point at, as a stage; rows with `ignore` do not count. */
static bool nll_picked(struct rows *q, const struct node *n, int64_t *reduction, int64_t *ignore,
                       const char **class, const char **picked)
{
    const struct node *x = graph_arg(q->g, n, 0), *target = graph_arg(q->g, n, 1);
    const char *C;
    struct row_stage *s;

    *reduction = 1;
    *ignore = -100;
    graph_arg_int(n, 3, NULL, reduction);
    graph_arg_int(n, 4, NULL, ignore);
    if (!x || !target || graph_arg_json(n, 2, NULL) || x->t.dims != 2 || q->full.dims != 2 ||
        !q->reduced[1])
        return match_no(q->out, q->a, "a negative log likelihood with weights, or not of rows");
    if (!rows_element(q, x) || !rows_leaf(q, target, &q->kept))
        return false;
    *class = q->e.leaf[target - q->g->nodes];
    s = rows_stage(q, "picked");
    if (!s || !rows_function(q, x, "picked", &s->f))
        return false;
    C = match_capital(*class, q->a);
    s->place = arena_printf(q->a, "g%s(row) == %lld ? 0 : int(g%s(row))", C, (long long)*ignore, C);
    q->stage_count++;
    *picked = s->name;
    return true;
}

bool rows_nll(struct rows *q, const struct node *n)
{
    const char *class, *picked;
    int64_t reduction, ignore;

    if (q->e.special[n - q->g->nodes])
        return true;
    if (!nll_picked(q, n, &reduction, &ignore, &class, &picked))
        return false;
    q->e.special[n - q->g->nodes] =
        arena_printf(q->a, "%s == %lld ? 0.0f : -%s", class, (long long)ignore, picked);
    return true;
}

/* The mean or sum of what class numbers point at. */
static bool nll_loss(struct rows *q, const struct node *n)
{
    const char *class, *picked, *other;
    int64_t reduction, ignore;
    struct row_stage *s;

    if (!nll_picked(q, n, &reduction, &ignore, &class, &picked))
        return false;
    other = arena_printf(q->a, "g%s(row) == %lld", match_capital(class, q->a), (long long)ignore);
    class = picked;
    s = total_add(q, "loss", "Sum", "$it");
    if (!s)
        return false;
    s->text = arena_printf(q->a, "%s ? 0.0f : -%s", other, class);
    q->stage_count++;
    q->e.special[n - q->g->nodes] = s->name;
    if (reduction == 2)
        return true;
    class = s->name;
    s = total_add(q, "rows", "Sum", "$it");
    if (!s)
        return false;
    s->text = arena_printf(q->a, "%s ? 0.0f : 1.0f", other);
    q->stage_count++;
    q->e.special[n - q->g->nodes] = arena_printf(q->a, "%s / %s", class, s->name);
    return true;
}

/* A reduction over all elements: of each row first, then of what the rows gave. A mean is the mean
 * of the rows' means. */
static bool total_elements(struct rows *q, const struct node *n, const struct pass_form *p)
{
    size_t at = (size_t)(n - q->g->nodes);
    const char *row;
    struct row_stage *s;

    if (!rows_element(q, graph_arg(q->g, n, 0)))
        return false;
    s = rows_stage(q, p->name);
    q->e.special[at] = p->element;
    if (!s || !rows_function(q, n, p->name, &s->f))
        return false;
    q->e.special[at] = NULL;
    s->pass = true;
    s->f.value = "float";
    s->combine = p->combine;
    s->result = strstr(p->result, "count") ? p->result : "$it";
    q->stage_count++;
    row = s->name;
    s = total_add(q, p->name, p->combine, p->result);
    if (!s)
        return false;
    s->text = row;
    q->stage_count++;
    q->e.leaf[at] = s->name;
    return true;
}

/* A reduction of a row's value over all rows. */
static bool total_reduce(struct rows *q, const struct node *n, const struct row_form *f)
{
    const struct pass_form *p = &f->passes[0];
    const struct node *x = graph_arg(q->g, n, 0);
    struct row_stage *s;

    if (f->passes[1].name || f->dims_arg < 0 || strncmp(p->combine, "Arg", 3) == 0)
        return match_no(q->out, q->a, "%s over what rows gave", n->op);
    if (!rows_is_row(q, x))
        return total_elements(q, n, p);
    if (!rows_value(q, x))
        return false;
    s = total_add(q, p->name, p->combine, p->result);
    if (!s)
        return false;
    q->e.special[n - q->g->nodes] = p->element;
    if (!rows_function(q, n, p->name, &s->f))
        return false;
    q->e.special[n - q->g->nodes] = NULL;
    s->f.value = "float";
    q->stage_count++;
    q->e.leaf[n - q->g->nodes] = s->name;
    return true;
}

/* Makes everything known that a total is computed from. */
static bool total_value(struct rows *q, const struct node *n)
{
    const struct row_form *f = row_form_of(q->g, n);
    size_t i;
    const json_t *arg;

    if (q->ready[n - q->g->nodes] || n->value)
        return true;
    q->ready[n - q->g->nodes] = true;
    if (graph_op_is(n, ROWS_NLL))
        return nll_loss(q, n);
    if (f)
        return total_reduce(q, n, f);
    if (!rows_is_total(q, n) || (!graph_reshapes(n) && !expr_knows(n, q->a)))
        return match_no(q->out, q->a, "%s beside a total", n->op);
    json_array_foreach(n->args, i, arg)
    {
        const struct node *used = graph_arg(q->g, n, i);

        if (used && !total_value(q, used))
            return false;
    }
    return true;
}

bool rows_total_output(struct rows *q, int k)
{
    const struct graph *g = q->g;
    const struct node *n = graph_node(g, g->result[k]);
    struct row_tensor *t;

    if (!total_value(q, n))
        return false;
    t = rows_tensor_add(q, NULL, g->out_count == 1 ? "y" : arena_printf(q->a, "y%d", k),
                        g->out[k].dtype, k);
    if (!t || !rows_function(q, n, t->name, &q->outputs[k]))
        return false;
    t->total = t->per_row = true;
    return true;
}
