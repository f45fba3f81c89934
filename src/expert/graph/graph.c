/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.c - read the operator graph.
 *
 * Names are compared without their overload where the overload does not
 * matter ("aten.mul" of "aten.mul.Tensor").
 */
#include "expert/graph/graph.h"

#include "base/buf.h"
#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SECOND_ID = GRAPH_IDS }; /* added to the id of a node: its second result */
enum { NEAR = 16 };

int64_t tensor_numel(const struct tensor *t)
{
    int64_t n = 1;

    for (int i = 0; i < t->dims; i++)
        n *= t->shape[i];
    return n;
}

bool tensor_contiguous(const struct tensor *t)
{
    int64_t stride = 1;

    for (int i = t->dims; i-- > 0;) {
        if (t->shape[i] != 1 && t->strides[i] != stride)
            return tensor_numel(t) == 0; /* nothing lies anywhere */
        stride *= t->shape[i];
    }
    return true;
}

static bool read_ints(const json_t *list, int64_t out[MAX_DIMS], int *count)
{
    size_t n = json_array_size(list);

    if (!json_is_array(list) || n > MAX_DIMS)
        return false;
    for (size_t i = 0; i < n; i++)
        out[i] = json_integer_value(json_array_get(list, i));
    *count = (int)n;
    return true;
}

static bool read_tensor(const json_t *obj, struct tensor *out)
{
    int strides = 0;

    if (!graph_tensor_reads(obj))
        return false;
    out->name = json_string_or(obj, "name", "");
    out->dtype = json_string_or(obj, "dtype", "");
    if (!read_ints(json_object_get(obj, "shape"), out->shape, &out->dims))
        return false;
    if (json_object_get(obj, "strides"))
        return read_ints(json_object_get(obj, "strides"), out->strides, &strides) &&
               strides == out->dims;
    for (int64_t i = out->dims, s = 1; i-- > 0; s *= out->shape[i])
        out->strides[i] = s;
    return true;
}

static bool read_tensors(const json_t *list, struct tensor *out, int *count)
{
    size_t n = json_array_size(list);

    if (n > MAX_TENSORS)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!read_tensor(json_array_get(list, i), &out[i]))
            return false;
    *count = (int)n;
    return true;
}

/* Nodes stand in the order of their ids, further results behind the first one; only bodies of
 * operators (generic/lower.c) stand before nodes of smaller ids. */
static bool stands_before(int id, int other)
{
    int a = id % SECOND_ID, b = other % SECOND_ID;

    return a < b || (a == b && id < other);
}

const struct node *graph_node(const struct graph *g, int id)
{
    int low = 0, high = g->count;

    while (low < high) {
        int middle = low + (high - low) / 2;

        if (g->nodes[middle].id == id)
            return &g->nodes[middle];
        if (stands_before(g->nodes[middle].id, id))
            low = middle + 1;
        else
            high = middle;
    }
    for (int i = 0; i < g->count; i++)
        if (g->nodes[i].id == id)
            return &g->nodes[i];
    return NULL;
}

int graph_id(const json_t *arg)
{
    int64_t node = json_integer_value(json_object_get(arg, "node"));
    int64_t part = json_int_or(arg, "part", 0);

    if (node < 0 || node >= SECOND_ID || part < 0 || part >= GRAPH_PARTS)
        return -1; /* no node's */
    return (int)(node + SECOND_ID * part);
}

bool graph_is_result(const struct graph *g, const struct node *n)
{
    for (int k = 0; k < g->out_count; k++)
        if (g->result[k] == n->id)
            return true;
    return false;
}

const struct node *graph_arg(const struct graph *g, const struct node *n, size_t index)
{
    const json_t *arg = json_array_get(n->args, index);
    ptrdiff_t at = n - g->nodes;
    int id;

    if (!json_object_get(arg, "node"))
        return NULL;
    id = graph_id(arg);
    for (ptrdiff_t i = at; at < g->count && i-- > 0 && i >= at - NEAR;)
        if (g->nodes[i].id == id)
            return &g->nodes[i]; /* an argument mostly stands right before its user */
    return graph_node(g, id);
}

const struct node *graph_first(const struct graph *g, const struct node *n)
{
    static const struct node missing = {
        .id = -1, .op = "missing", .t = {.name = "", .dtype = "f32"}, .index = -1};
    const struct node *first = graph_arg(g, n, 0);

    return first ? first : &missing;
}

const json_t *graph_arg_json(const struct node *n, size_t index, const char *keyword)
{
    const json_t *arg = json_array_get(n->args, index);

    if (!arg && keyword)
        arg = json_object_get(n->kwargs, keyword);
    if (!arg || json_is_true(json_object_get(arg, "none")))
        return NULL;
    return arg;
}

bool graph_arg_int(const struct node *n, size_t index, const char *keyword, int64_t *out)
{
    const json_t *v = json_object_get(graph_arg_json(n, index, keyword), "value");

    if (!json_is_integer(v) && !json_is_boolean(v))
        return false;
    *out = json_is_true(v) ? 1 : json_integer_value(v);
    return true;
}

int graph_arg_ints(const struct node *n, size_t index, const char *keyword, int64_t out[MAX_DIMS])
{
    const json_t *arg = graph_arg_json(n, index, keyword);
    int count;

    if (graph_arg_int(n, index, keyword, out))
        return 1;
    return read_ints(json_object_get(arg, "ints"), out, &count) ? count : -1;
}

bool graph_number(const json_t *arg, double *out)
{
    const json_t *value = json_object_get(arg, "value");
    const char *text = json_string_value(json_object_get(arg, "text"));

    if (json_is_number(value) || json_is_boolean(value)) {
        *out = json_is_true(value) ? 1 : json_number_value(value);
        return true;
    }
    if (text &&
        (strcmp(text, "inf") == 0 || strcmp(text, "-inf") == 0 || strcmp(text, "nan") == 0)) {
        *out = text[0] == 'n' ? NAN : (text[0] == '-' ? -INFINITY : INFINITY);
        return true;
    }
    return false;
}

/* ---- reading ------------------------------------------------------------- */

static void count_uses(struct graph *g, const struct node *n)
{
    size_t i;
    const json_t *arg;

    json_array_foreach(n->args, i, arg)
    {
        struct node *used = (struct node *)graph_arg(g, n, i);

        if (used)
            used->uses++;
    }
}

/* Operators with two results, as the two operators that give one each. */
static const struct two_results {
    const char *op, *first, *second;
} two_results[] = {
    {"aten.max.dim", "aten.max.dim", "aten.argmax.default"},
    {"aten.min.dim", "aten.min.dim", "aten.argmin.default"},
    {"aten.var_mean.correction", "aten.var.correction", "aten.mean.dim"},
    {"aten.std_mean.correction", "aten.std.correction", "aten.mean.dim"},
};

static const char other_result[] = "result of ";

bool graph_other_result(const struct node *n)
{
    return strncmp(n->op, other_result, strlen(other_result)) == 0;
}

bool graph_gives_parts(const struct node *n)
{
    return graph_op_is(n, "aten.split") || graph_op_is(n, "aten.split_with_sizes") ||
           graph_op_is(n, "aten.unbind");
}

/* The node just read, when it has several results that are used: one node for each. */
static bool split_results(struct graph *g, const json_t *obj, struct arena *a)
{
    const json_t *parts = json_object_get(obj, "parts");
    struct node *n = &g->nodes[g->count - 1];
    bool two = false;

    for (size_t i = 0; i < ARRAY_LEN(two_results); i++)
        two = two || strcmp(n->op, two_results[i].op) == 0;
    for (size_t k = 1; !(two && json_array_size(parts) == 2) && k < json_array_size(parts); k++) {
        if (g->count == GRAPH_NODES)
            return false;
        n[k] = *n;
        if (!graph_gives_parts(n)) /* no matcher may take it for the first */
            n[k].op = arena_printf(a, "%s%s", other_result, n->op);
        n[k].part = (int)k;
        n[k].id += SECOND_ID * (int)k;
        g->count++;
        if (!read_tensor(json_array_get(parts, k), &n[k].t))
            return false;
    }
    for (size_t i = 0; i < ARRAY_LEN(two_results); i++) {
        if (strcmp(n->op, two_results[i].op) != 0 || json_array_size(parts) != 2)
            continue;
        if (g->count == GRAPH_NODES)
            return false;
        n->op = two_results[i].first;
        n[1] = *n;
        n[1].op = two_results[i].second;
        n[1].id += SECOND_ID;
        g->count++;
        return read_tensor(json_array_get(parts, 1), &n[1].t);
    }
    return true;
}

/* The arguments, and behind them the mask that was given by name: what goes from arguments to nodes
 * goes to it, too. Where other arguments would stand, there is none. */
static const json_t *with_mask(const struct node *n, struct arena *a)
{
    enum { BEHIND = 5 }; /* Q, K, V, dropout, causal */
    json_t *mask = json_object_get(n->kwargs, "attn_mask"), *all;

    if (!json_object_get(mask, "node"))
        return n->args;
    all = json_own(a, json_copy((json_t *)(uintptr_t)n->args));
    while (json_array_size(all) < BEHIND)
        json_array_append_new(all, json_pack("{s:b}", "none", 1));
    json_array_append(all, mask);
    return all;
}

bool graph_add_node(struct graph *g, const json_t *obj, struct arena *a, const char **why)
{
    struct node *n = &g->nodes[g->count];
    const json_t *arg = json_array_get(json_object_get(obj, "args"), 0);
    const char *fault = graph_node_fault(g, obj);

    if (fault) {
        *why = arena_printf(a, "the graph's node %lld does not read: %s",
                            (long long)json_int_or(obj, "id", -1), fault);
        return false;
    }
    *n = (struct node){.id = (int)json_int_or(obj, "id", -1),
                       .op = json_string_or(obj, "op", ""),
                       .args = json_object_get(obj, "args"),
                       .kwargs = json_object_get(obj, "kwargs"),
                       .t = {.name = "", .dtype = ""},
                       .whole = obj,
                       .index = (int)json_int_or(obj, "index", -1)};
    n->args = with_mask(n, a);
    if (strcmp(n->op, "constant") == 0 && graph_number(obj, &(double){0}))
        n->value = obj;
    if (graph_op_is(n, "aten.scalar_tensor"))
        n->value = arg;
    if (graph_op_is(n, "aten.full") && json_array_size(json_object_get(obj, "shape")) == 0)
        n->value = json_array_get(n->args, 1);
    if (strcmp(n->op, "output") == 0) {
        if (n->index < 0 || n->index >= MAX_TENSORS) {
            *why = "the graph has an output without an index";
            return false;
        }
        g->result[n->index] = graph_id(arg);
        return true;
    }
    if (json_object_get(obj, "shape") && !read_tensor(obj, &n->t)) {
        *why = arena_printf(a, "the graph's node %d (%s) has a shape that does not read", n->id,
                            n->op);
        return false;
    }
    if (strcmp(n->op, "input") == 0 && n->index >= 0 && n->index < g->in_count &&
        g->in[n->index].dims == n->t.dims)
        memcpy(n->t.strides, g->in[n->index].strides,
               sizeof(n->t.strides)); /* as the call has it */
    g->count++;
    count_uses(g, n);
    if (!split_results(g, obj, a)) {
        *why = arena_printf(a, "the second result of %s does not read", n->op);
        return false;
    }
    return true;
}

/* ---- numbers that follow from sizes ---------------------------------------- */

static bool read_term(const json_t *obj, struct size_term *out)
{
    const json_t *places = json_object_get(obj, "places");
    size_t n = json_array_size(places);

    if (n == 0 || n > SIZE_PLACES)
        return false;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < 2; k++)
            out->places[i][k] =
                (int)json_integer_value(json_array_get(json_array_get(places, i), k));
    out->place_count = (int)n;
    out->shift = (int)json_int_or(obj, "shift", 0);
    out->power = json_number_value(json_object_get(obj, "power"));
    return true;
}

static bool read_size_constant(const json_t *arg, const json_t *obj, struct arena *a,
                               struct size_constant *out)
{
    const json_t *terms = json_object_get(obj, "terms");
    size_t n = json_array_size(terms);

    *out = (struct size_constant){.id = (int)json_int_or(obj, "id", SIZE_CONSTANTS),
                                  .factor = json_number_value(json_object_get(obj, "factor"))};
    if (n == 0 || n > SIZE_TERMS || out->id < 0 || out->id >= SIZE_CONSTANTS ||
        !graph_number(arg, &out->value))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!read_term(json_array_get(terms, i), &out->terms[i]))
            return false;
    out->term_count = (int)n;
    out->name = arena_printf(a, "of_sizes%d", out->id);
    return true;
}

static void add_size_constant(struct graph *g, struct size_constant *list, const json_t *arg,
                              struct arena *a)
{
    const json_t *obj = json_object_get(arg, "of_sizes");

    if (!obj || graph_of_sizes(g, arg))
        return;
    if (g->size_count < SIZE_CONSTANTS && read_size_constant(arg, obj, a, &list[g->size_count]))
        g->size_count++;
    else
        g->size_unknown = true;
}

void graph_find_sizes(struct graph *g, struct arena *a)
{
    struct size_constant *list = arena_array(a, SIZE_CONSTANTS, sizeof(*list));

    g->sizes = list;
    g->size_count = 0;
    g->size_unknown = false;
    for (int i = 0; i < g->count; i++) {
        const struct node *n = &g->nodes[i];
        const char *key;
        json_t *arg;
        size_t k;

        if (strcmp(n->op, "input") == 0)
            continue; /* a part's input may keep the arguments of what made it */
        if (n->value)
            add_size_constant(g, list, n->value, a);
        else if (strcmp(n->op, "constant") == 0)
            add_size_constant(g, list, n->whole, a);
        json_array_foreach(n->args, k, arg) add_size_constant(g, list, arg, a);
        json_object_foreach((json_t *)(uintptr_t)n->kwargs, key, arg)
            add_size_constant(g, list, arg, a);
    }
}

const struct size_constant *graph_of_sizes(const struct graph *g, const json_t *arg)
{
    const json_t *obj = json_object_get(arg, "of_sizes");
    int id = (int)json_int_or(obj, "id", -1);

    for (int i = 0; obj && i < g->size_count; i++)
        if (g->sizes[i].id == id)
            return &g->sizes[i];
    return NULL;
}

bool graph_read(const json_t *description, struct arena *a, struct graph *out, const char **why)
{
    const json_t *nodes = json_object_get(description, "graph"), *node;
    size_t i, room = 0;

    memset(out, 0, sizeof(*out));
    out->name = json_string_or(description, "name", "task");
    out->scalars = json_object_get(description, "scalars");
    out->structure = json_object_get(description, "structure");
    out->tf32 = json_bool_or(description, "tf32", false) &&
                json_bool_or(description, "tf32_products", true);
    out->tf32_convolutions = json_bool_or(description, "tf32", false) &&
                             json_bool_or(description, "tf32_convolutions", true);
    if (!read_tensors(json_object_get(description, "inputs"), out->in, &out->in_count) ||
        !read_tensors(json_object_get(description, "outputs"), out->out, &out->out_count)) {
        *why = "the description's tensors do not read";
        return false;
    }
    for (int k = 0; k < out->in_count; k++)
        out->origin[k] = k;
    if (json_array_size(nodes) == 0) {
        *why = "the description has no operator graph";
        return false;
    }
    json_array_foreach(nodes, i, node) room += 1 + json_array_size(json_object_get(node, "parts"));
    if (room > GRAPH_NODES) {
        *why = arena_printf(a, "the graph has %zu results, more than %d", room, GRAPH_NODES);
        return false;
    }
    out->nodes = arena_array(a, room, sizeof(*out->nodes));
    if (json_bool_or(description, "graph_truncated", false)) {
        *why = arena_printf(a,
                            "the graph has more than the %zu operators that are described: give "
                            "the task in parts",
                            json_array_size(nodes));
        return false;
    }
    if (!json_bool_or(description, "graph_exact", true)) {
        *why = json_string_or(description, "graph_gap",
                              "the graph does not show everything that happens");
        return false;
    }
    for (int k = 0; k < MAX_TENSORS; k++)
        out->result[k] = -1;
    json_array_foreach(nodes, i, node)
    {
        if (!graph_add_node(out, node, a, why))
            return false;
    }
    for (int k = 0; k < out->out_count; k++)
        if (!graph_node(out, out->result[k])) {
            *why = "the graph has no node for an output";
            return false;
        }
    graph_find_sizes(out, a);
    return true;
}

void graph_device(struct graph *g, const struct device *device)
{
    const char *digits = device && device->arch ? strpbrk(device->arch, "0123456789") : NULL;

    g->measured = device && device->kind == DEVICE_CUDA;
    g->arch = digits ? (int)strtol(digits, NULL, 10) : 80;
    g->sm_count = device && device->sm_count > 0 ? device->sm_count : 132;
    g->smem_block_bytes = device ? device->smem_block_bytes : 0;
}

/* ---- names --------------------------------------------------------------- */

bool graph_op_is(const struct node *n, const char *base)
{
    size_t len = strlen(base);

    if (strncmp(n->op, base, len) != 0)
        return false;
    len += n->op[len] == '_'; /* in place: the same value */
    return n->op[len] == '\0' || n->op[len] == '.';
}

char *graph_short_name(const char *op, struct arena *a)
{
    const char *dot = strchr(op, '.'), *from = dot ? dot + 1 : op, *to = strchr(from, '.');

    while (*from == '_')
        from++;
    return arena_strndup(a, from, to ? (size_t)(to - from) : strlen(from));
}

const char *graph_ops(const struct graph *g, struct arena *a)
{
    struct buf b = buf_init(600);
    const char *text;

    for (int i = 0; i < g->count; i++) {
        bool seen = strncmp(g->nodes[i].op, "aten.", 5) != 0;

        for (int k = 0; k < i && !seen; k++)
            seen = strcmp(g->nodes[k].op, g->nodes[i].op) == 0;
        if (!seen)
            buf_printf(&b, "%s%s", b.len ? ", " : "", graph_short_name(g->nodes[i].op, a));
    }
    text = b.len ? buf_copy(&b, a).data : "nothing";
    buf_release(&b);
    return text;
}
