/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recurrent.c - recurrent layers: all steps in one kernel.
 *
 * The node's arguments are lists: gates (one per direction), w_hh, b_hh, w_ih, b_ih, and the
 * first h and c or none (oracle/recurrent.py). All of them must be inputs without gaps; sizes are
 * written into the kernel.
 */
#include "expert/match/recurrent.h"

#include "base/json.h"

#include <string.h>

enum { ARG_GATES, ARG_W_HH, ARG_B_HH, ARG_W_IH, ARG_B_IH, ARG_H, ARG_C, ARGS };
enum { MOST_LAYERS = 6, MOST_HIDDEN = 2048, MOST_CTAS = 16, MOST_WEIGHTS = 136, SLICES = 8 };

static const char *const arg_names[ARGS] = {"gates", "w_hh", "b_hh", "w_ih", "b_ih", "h0", "c0"};

struct recurrent {
    const struct graph *g;
    const struct node *n;
    const char *kind, *result;
    int64_t steps, batch, hidden, gates, layers, ways;
    struct arena *a;
    struct scope *s;
};

bool recurrent_is(const struct node *n)
{
    return strcmp(n->op, "cutegen.recurrent.default") == 0;
}

/* ---- operands -------------------------------------------------------------------------- */

/* Tensor k of argument `arg`, or NULL. */
static const struct node *operand(const struct graph *g, const struct node *n, int arg, size_t k)
{
    const json_t *given = json_array_get(n->args, (size_t)arg);
    const json_t *list = json_object_get(given, "list");

    if (list)
        given = json_array_get(list, k);
    else if (k > 0)
        return NULL;
    return json_object_get(given, "node") ? graph_node(g, graph_id(given)) : NULL;
}

/* The input behind it, at most reshaped; NULL: it is computed, or not contiguous. */
static const struct node *plain(const struct graph *g, const struct node *n)
{
    while (n && graph_reshapes(n))
        n = graph_arg(g, n, 0);
    return n && strcmp(n->op, "input") == 0 && tensor_contiguous(&g->in[n->index]) ? n : NULL;
}

const struct node *recurrent_unreadable(const struct graph *g, const struct node *n)
{
    for (int arg = 0; arg < ARGS; arg++) {
        const struct node *x;

        for (size_t k = 0; (x = operand(g, n, arg, k)); k++)
            if (!plain(g, x))
                return x;
    }
    return NULL;
}

static bool has_shape(const struct node *x, int dims, int64_t a, int64_t b, int64_t c)
{
    const int64_t want[3] = {a, b, c};

    if (!x || x->t.dims != dims || strcmp(x->t.dtype, "f32") != 0)
        return false;
    for (int d = 0; d < dims; d++)
        if (x->t.shape[d] != want[d])
            return false;
    return true;
}

/* Are the lists as long as they must be, of tensors that fit each other? */
static bool shapes_fit(const struct recurrent *q)
{
    const struct graph *g = q->g;
    int64_t rows = q->gates * q->hidden, states = q->layers * q->ways;
    bool biases = operand(g, q->n, ARG_B_HH, 0) != NULL, ok = true;

    for (int64_t k = 0; k < q->ways; k++)
        ok = ok && has_shape(operand(g, q->n, ARG_GATES, (size_t)k), 3, q->steps, q->batch, rows);
    for (int64_t k = 0; k < states; k++)
        ok = ok && has_shape(operand(g, q->n, ARG_W_HH, (size_t)k), 2, rows, q->hidden, 0) &&
             (!biases || has_shape(operand(g, q->n, ARG_B_HH, (size_t)k), 1, rows, 0, 0));
    for (int64_t k = 0; k + 1 < q->layers; k++)
        ok = ok && has_shape(operand(g, q->n, ARG_W_IH, (size_t)k), 2, rows, q->hidden, 0) &&
             (!biases || has_shape(operand(g, q->n, ARG_B_IH, (size_t)k), 1, rows, 0, 0));
    for (int arg = ARG_H; arg <= ARG_C; arg++)
        ok = ok && (!operand(g, q->n, arg, 0) ||
                    has_shape(operand(g, q->n, arg, 0), 3, states, q->batch, q->hidden));
    return ok;
}

static const char *text_argument(const struct node *n, const char *key)
{
    return json_string_or(json_object_get(n->kwargs, key), "text", "");
}

static bool read_sizes(struct recurrent *q, struct match *out)
{
    static const struct {
        const char *kind;
        int gates;
    } kinds[] = {{"lstm", 4}, {"gru", 3}, {"tanh", 1}, {"relu", 1}};
    const struct node *w = operand(q->g, q->n, ARG_W_HH, 0), *x = operand(q->g, q->n, 0, 0);

    q->kind = text_argument(q->n, "kind");
    q->result = text_argument(q->n, "result");
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (strcmp(kinds[i].kind, q->kind) == 0)
            q->gates = kinds[i].gates;
    q->layers = json_int_or(json_object_get(q->n->kwargs, "layers"), "value", 0);
    q->ways = operand(q->g, q->n, ARG_GATES, 1) ? 2 : 1;
    if (!w || !x || w->t.dims != 2 || x->t.dims != 3 || !q->gates || q->layers < 1)
        return match_no(out, q->a, "recurrent layers that do not read");
    q->hidden = w->t.shape[1];
    q->steps = x->t.shape[0];
    q->batch = x->t.shape[1];
    if (q->layers > MOST_LAYERS || q->hidden > MOST_HIDDEN || q->hidden < 1 || q->steps < 1 ||
        q->batch < 1 || (q->ways == 2 && q->layers > 1) ||
        q->steps * q->batch * q->hidden * 4 > INT32_MAX / 8)
        return match_no(out, q->a, "recurrent layers of this size");
    if (!shapes_fit(q) || recurrent_unreadable(q->g, q->n))
        return match_no(out, q->a, "recurrent layers of other types, or of something computed");
    return true;
}

/* ---- slots ------------------------------------------------------------------------------- */

static void require(struct recurrent *q, const struct node *x)
{
    const struct tensor *t = &q->g->in[x->index];

    for (int d = 0; d < t->dims; d++) {
        struct scope *item = scope_item(q->s, "check");

        scope_set(item, "condition",
                  "call->in[%d].ndim == %d && call->in[%d].shape[%d] == %lld && "
                  "(call->in[%d].shape[%d] == 1 || call->in[%d].strides[%d] == %lld)",
                  x->index, t->dims, x->index, d, (long long)t->shape[d], x->index, d, x->index, d,
                  (long long)t->strides[d]);
        scope_set(item, "text", "the shape and strides of input %d are written into the kernel",
                  x->index);
    }
}

/* Parameters, arguments and lists of names. */
static void fill_operands(struct recurrent *q, const char **params, const char **args)
{
    for (int arg = 0; arg < ARGS; arg++) {
        const char *list = "";
        const struct node *x;

        for (size_t k = 0; (x = operand(q->g, q->n, arg, k)); k++) {
            const char *name =
                arg >= ARG_H ? arg_names[arg] : arena_printf(q->a, "%s%zu", arg_names[arg], k);

            x = plain(q->g, x);
            require(q, x);
            list = arena_printf(q->a, "%s%s%s", list, k ? ", " : "", name);
            *params = arena_printf(q->a, "%sfloat const *%s, ", *params, name);
            *args =
                arena_printf(q->a, "%sCUTEGEN_DATA(float const, &call->in[%d]), ", *args, x->index);
        }
        scope_set(q->s, arena_printf(q->a, "%s_list", arg_names[arg]), "%s", list);
    }
}

static void fill_results(struct recurrent *q, const char **params, const char **args)
{
    static const struct {
        const char *result, *fact, *name;
    } rows[] = {{"y", "makes_y", "y"}, {"h", "makes_h", "h_last"}, {"c", "makes_c", "c_last"}};
    int64_t at = 0, state = q->layers * q->ways * q->batch * q->hidden;
    bool all = strcmp(q->result, "all") == 0;

    if (q->layers > 1) {
        scope_fact(q->s, "stacked");
        *params = arena_printf(q->a, "%sfloat *between, ", *params);
        *args = arena_printf(q->a, "%sbetween, ", *args);
    }
    *params = arena_printf(q->a, "%sint *sync", *params);
    *args = arena_printf(q->a, "%ssync", *args);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (i == 2 && strcmp(q->kind, "lstm") != 0)
            break;
        if (all || strcmp(q->result, rows[i].result) == 0) {
            scope_fact(q->s, rows[i].fact);
            *params = arena_printf(q->a, "%s, float *%s", *params, rows[i].name);
            *args = arena_printf(q->a, "%s, CUTEGEN_AT(float, &call->out[0], %lld)", *args,
                                 (long long)(all ? at : 0));
        }
        at += i == 0 ? q->steps * q->batch * q->ways * q->hidden : state;
    }
}

static int64_t divided(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* A cluster per layer, direction and tile of the batch: units by block, weights in registers. */
static void fill_cluster(struct recurrent *q)
{
    int64_t ctas = MOST_CTAS, units, tile, rows, slice_h, slice_x, padded, per_lane, pitch;
    bool stacked = q->layers > 1;

    while (ctas > 2 && q->hidden / ctas < 4)
        ctas /= 2;
    units = divided(q->hidden, ctas);
    tile = divided(q->batch, divided(q->batch, 16));
    if (units <= 256 && tile * units > 256)
        tile = 256 / units;
    pitch = tile <= 4 ? 4 : tile <= 12 ? 12 : 20;
    rows = q->gates * units;
    slice_h = divided(q->hidden, SLICES);
    slice_x = stacked ? divided(q->hidden, SLICES / 2) : 1;
    padded = stacked ? slice_x * (SLICES / 2) : slice_h * SLICES;
    padded = padded < slice_h * SLICES ? slice_h * SLICES : padded;
    per_lane = divided(rows, 32);
    scope_set(q->s, "ctas", "%lld", (long long)ctas);
    scope_set(q->s, "units", "%lld", (long long)units);
    scope_set(q->s, "cluster_tile", "%lld", (long long)tile);
    scope_set(q->s, "pitch", "%lld", (long long)pitch);
    scope_set(q->s, "slice_h", "%lld", (long long)slice_h);
    scope_set(q->s, "slice_x", "%lld", (long long)slice_x);
    scope_set(q->s, "padded", "%lld", (long long)padded);
    if (q->g->arch >= 90)
        scope_fact(q->s, "hopper");
    if (per_lane * (slice_h > slice_x ? slice_h : slice_x) <= MOST_WEIGHTS && units <= 256 &&
        4 * pitch * (4 * padded + SLICES * rows) <= 220000)
        scope_fact(q->s, "fits");
}

static void fill_facts(struct recurrent *q)
{
    int64_t tile = 2500 / q->hidden;

    tile = tile < 1 ? 1 : tile > 4 ? 4 : tile;
    scope_set(q->s, "tile", "%lld", (long long)(tile < q->batch ? tile : q->batch));
    if (q->gates == 4)
        scope_fact(q->s, "lstm");
    if (q->gates == 3)
        scope_fact(q->s, "gru");
    if (strcmp(q->kind, "relu") == 0)
        scope_fact(q->s, "rectified");
    if (q->ways == 2)
        scope_fact(q->s, "both");
    if (operand(q->g, q->n, ARG_B_HH, 0))
        scope_fact(q->s, "biases");
    if (operand(q->g, q->n, ARG_H, 0))
        scope_fact(q->s, "starts");
    if (operand(q->g, q->n, ARG_C, 0))
        scope_fact(q->s, "starts_c");
}

bool match_recurrent(const struct graph *g, struct arena *a, struct match *out)
{
    struct recurrent q = {.g = g, .a = a, .n = graph_node(g, g->result[0])};
    const char *params = "", *args = "";

    while (q.n && graph_reshapes(q.n))
        q.n = graph_arg(g, q.n, 0);
    if (g->out_count != 1 || !q.n || !recurrent_is(q.n))
        return match_no(out, a, "no recurrent layers are what it returns");
    if (!read_sizes(&q, out) || !tensor_contiguous(&g->out[0]))
        return out->why_not && *out->why_not ? false : match_no(out, a, "a result with gaps");
    q.s = out->scope = scope_new(a, NULL);
    scope_set(q.s, "kernel", "%s", match_kernel_name(g, a));
    scope_set(q.s, "ops", "%s", strcmp(q.kind, "relu") == 0 || q.gates == 1 ? "rnn" : q.kind);
    scope_set(q.s, "steps", "%lld", (long long)q.steps);
    scope_set(q.s, "batch", "%lld", (long long)q.batch);
    scope_set(q.s, "hidden", "%lld", (long long)q.hidden);
    scope_set(q.s, "gates", "%lld", (long long)q.gates);
    scope_set(q.s, "layers", "%lld", (long long)q.layers);
    scope_set(q.s, "ways", "%lld", (long long)q.ways);
    fill_facts(&q);
    fill_cluster(&q);
    fill_operands(&q, &params, &args);
    fill_results(&q, &params, &args);
    scope_set(q.s, "params", "%s", params);
    scope_set(q.s, "args", "%s", args);
    match_scalars(g, q.s);
    return true;
}
