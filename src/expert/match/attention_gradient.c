/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention_gradient.c - gradients of attention: recognize their operators and fill their recipes.
 *
 * A task that is the backward of attention has the forward's operator and one that computes the
 * gradients of Q, K and V. The recipes recompute what the latter takes from the former. K and V
 * that several heads share have gradients summed over these: modes of the batch that dK does not
 * have.
 */
#include "expert/match/attention.h"

#include "base/buf.h"

#include <math.h>
#include <string.h>

/* Where each operator has its arguments behind the gradient, Q, K and V; -1: it has none. */
static const struct gradient_form {
    const char *op;
    int mask, dropout, causal;
} forms[] = {
    {"aten._scaled_dot_product_flash_attention_for_cpu_backward", -1, 6, 7},
    {"aten._scaled_dot_product_flash_attention_backward", -1, 10, 11},
    {"aten._scaled_dot_product_efficient_attention_backward", 4, 9, 11},
    {"aten._scaled_dot_product_cudnn_attention_backward", 8, 13, 14},
};

static bool flag(const struct node *n, int index, const char *keyword)
{
    const json_t *arg = graph_arg_json(n, (size_t)index, keyword);
    double number = 0;

    return json_is_true(json_object_get(arg, "value")) ||
           (graph_number(arg, &number) && number > 0);
}

static bool find_operator(const struct graph *g, const struct node *n,
                          const struct gradient_form *f, struct attention_core *out)
{
    const json_t *mask = json_object_get(n->kwargs, "attn_mask");

    *out = (struct attention_core){
        .scores = n, .weights = n, .values = n, .fused = true, .safe = true};
    out->upstream = graph_arg(g, n, 0);
    out->q = graph_arg(g, n, 1);
    out->k = graph_arg(g, n, 2);
    out->v = graph_arg(g, n, 3);
    if (!out->upstream || !out->q || !out->k || !out->v || out->q->t.dims != 4 ||
        flag(n, f->dropout, "dropout_p") || n + 3 > g->nodes + g->count)
        return false;
    for (int k = 0; k < 3; k++) { /* further results stand behind the first */
        out->made[k] = &n[k];
        if (n[k].whole != n->whole)
            return false;
    }
    if (f->mask >= 0)
        out->mask = graph_arg(g, n, (size_t)f->mask);
    if (json_object_get(mask, "node"))
        out->mask = graph_node(g, graph_id(mask));
    out->mask = attention_mask(g, out->mask);
    out->causal = flag(n, f->causal, "is_causal");
    if (!graph_number(json_object_get(n->kwargs, "scale"), &out->scale))
        out->scale = 1 / sqrt((double)out->q->t.shape[3]);
    return !(out->causal && out->mask);
}

bool attention_find_gradient(const struct graph *g, struct attention_core *out)
{
    for (int i = 0; i < g->count; i++)
        for (size_t k = 0; k < ARRAY_LEN(forms); k++)
            if (graph_op_is(&g->nodes[i], forms[k].op))
                return find_operator(g, &g->nodes[i], &forms[k], out);
    return false;
}

bool attention_find_gradients(struct attention *q, struct match *out)
{
    bool found[3] = {false};

    if (!nest_of(q->g, q->core.upstream, NULL, NEST_PLAIN, &q->nests[AT_O]))
        return match_no(out, q->a, "the gradient of attention's result is computed");
    if (q->g->out_count != 3)
        return match_no(out, q->a, "other results than the gradients of Q, K and V");
    for (int k = 0; k < 3; k++) {
        bool fits = false;

        for (int i = 0; i < 3 && !fits; i++) {
            fits = !found[i] && attention_output(q, q->core.made[i], k, &q->nests[AT_DQ + i]);
            if (fits) {
                found[i] = true;
                q->nests[AT_DQ + i].input = k;
            }
        }
        if (!fits)
            return match_no(out, q->a, "more follows the gradients than rearrangements");
    }
    q->names[AT_O] = "dO";
    q->first_leaf = q->tensors = AT_DV + 1;
    return true;
}

/* ---- slots ----------------------------------------------------------------------------------- */

/* Where a head begins, its strides, and the struct that hands them over. */
static void fill_tensor(struct attention *q, struct scope *s, int t)
{
    const char *name = match_lower(q->names[t], q->a), *at = "", *values = "";
    struct scope *item = scope_item(s, "strides");
    bool dense = q->col[t].stride == 1;

    for (int i = 0; i < ATTENTION_MODES; i++) {
        const char *text = i < q->mode_count ? attention_stride(q, t, &q->modes[i].at[t]) : "0";

        values = arena_printf(q->a, "%s%s, ", values, text);
        if (strcmp(text, "0") != 0)
            at = arena_printf(q->a, "%s%sl%d * %s_by.l%d", at, *at ? " + " : "", i, name, i);
    }
    scope_set(item, "name", "%s_by", name);
    scope_set(item, "values", "%s%s, %s", values, attention_stride(q, t, &q->row[t]),
              attention_stride(q, t, &q->col[t]));
    scope_set(s, arena_printf(q->a, "%s_at", name), "%s", *at ? at : "0");
    scope_set(s, arena_printf(q->a, "%s_row", name), "%s_by.row", name);
    scope_set(s, arena_printf(q->a, "%s_col", name), "%s%s", dense ? "_1{}" : name,
              dense ? "" : "_by.col");
    if (dense) {
        struct scope *check = scope_item(s, "check");

        scope_set(check, "condition", "%s->strides[%d] == 1", q->names[t], q->col[t].dim);
        scope_set(check, "text", "dimension %d of %s must be contiguous", q->col[t].dim,
                  q->names[t]);
    }
}

static void fill_leaf(struct attention *q, struct scope *s, int i)
{
    struct scope *item = scope_item(s, "leaf");
    int t = q->first_leaf + i;
    const char *name = q->names[t], *low = match_lower(name, q->a);

    scope_set(item, "x", "%s", name);
    scope_set(item, "X", "%s", match_capital(name, q->a));
    scope_set(item, "k", "%d", q->nests[t].input);
    scope_set(item, "ndim", "%d", attention_tensor(q, t)->dims);
    scope_set(item, "x_at", "%s", scope_get(s, arena_printf(q->a, "%s_at", low)));
    scope_set(item, "m", "%s", scope_get(s, arena_printf(q->a, "%s_row", low)));
    scope_set(item, "n", "%s", scope_get(s, arena_printf(q->a, "%s_col", low)));
}

static void fill_signature(struct attention *q, struct scope *s)
{
    struct buf params = buf_init(4096), args = buf_init(4096);

    for (int t = 0; t < q->tensors; t++) {
        bool made = t >= AT_DQ && t <= AT_DV;
        const char *type = expr_memory_type(attention_tensor(q, t)->dtype);

        fill_tensor(q, s, t);
        buf_printf(&params, "%s %s*%s, ", type, made ? "" : "const ", q->names[t]);
        buf_printf(&args, "%s, ", attention_pointer(q, t, !made));
    }
    for (int i = 0; i < q->leaf_count; i++)
        fill_leaf(q, s, i);
    for (int t = 0; t < q->tensors; t++) {
        const char *name = match_lower(q->names[t], q->a);

        buf_printf(&params, "Strides %s_by, ", name);
        buf_printf(&args, "%s_by, ", name);
    }
    buf_printf(&params, "int queries, int keys");
    buf_printf(&args, "(int)queries, (int)keys");
    for (int i = 0; i < q->mode_count; i++) {
        buf_printf(&params, ", int n%d", i);
        buf_printf(&args, ", (int)n%d", i);
    }
    scope_set(s, "params", "%s", buf_text(&params).data);
    scope_set(s, "args", "%s", buf_text(&args).data);
    buf_release(&params);
    buf_release(&args);
}

/* Heads of K, those of Q that share one, and the head of Q that is number g of those that share
 * h. */
static void fill_heads(struct attention *q, struct scope *s)
{
    const char *own = "", *shared = "", *below = "", *l = "";

    for (int i = 0; i < q->mode_count; i++) {
        bool shares = q->modes[i].at[AT_DK].stride == 0;
        const char **all = shares ? &shared : &own;
        const char *from = shares ? "g" : "h", *place;

        place = **all ? arena_printf(q->a, "%s / (%s) %% n%d", from, *all, i)
                      : arena_printf(q->a, "%s %% n%d", from, i);
        l = *l ? arena_printf(q->a, "%s + %s * (%s)", l, below, place)
               : arena_printf(q->a, "%s", place);
        *all = arena_printf(q->a, "%s%sn%d", *all, **all ? " * " : "", i);
        below = arena_printf(q->a, "%s%sn%d", below, *below ? " * " : "", i);
    }
    if (!*shared || !*l)
        l = "h";
    scope_set(s, "key_heads", "%s", *own ? own : "1");
    scope_set(s, "sharing", "%s", *shared ? shared : "1");
    scope_set(s, "key_l", "%s%s%s", *shared ? "(" : "", l, *shared ? ")" : "");
}

void attention_fill_gradient(struct attention *q, struct match *out)
{
    static const char *const names[] = {"do", "q", "k", "v", "dq", "dk", "dv"};
    struct scope *s = out->scope;

    out->recipe = "attention_backward";
    if (q->head <= ATTENTION_WIDEST_SUMS && q->head_v <= ATTENTION_WIDEST_SUMS)
        scope_fact(s, "summed");
    for (int t = AT_O; t <= AT_DV; t++)
        scope_set(s, arena_printf(q->a, "%s_index", names[t]), "%d", q->nests[t].input);
    fill_signature(q, s);
    fill_heads(q, s);
    attention_fill_sm90_gradient(q, out);
}
