/* SPDX-License-Identifier: Apache-2.0 */
/* match.c - try every matcher; helpers that they share. */
#include "expert/match/match.h"

#include "base/buf.h"
#include "base/json.h"
#include "expert/graph/sink.h"
#include "expert/match/attention.h"
#include "expert/match/partition.h"

#include <ctype.h>
#include <string.h>

static const struct matcher {
    const char *recipe;
    bool (*match)(const struct graph *g, struct arena *a, struct match *out);
    bool any_order; /* can also write channels-last results */
} matchers[] = {
    {"pointwise", match_pointwise, false},
    {"row_reduction", match_rows, false},
    {"scan", match_scan, false},
    {"pooling", match_pooling, false},
    {"concat", match_concat, false},
    {"gemm", match_gemm, false},
    {"convolution", match_convolution, true},
    {"attention", match_attention, false},
    {"recurrent", match_recurrent, false},
};

static bool contiguous_outputs(const struct graph *g)
{
    bool all = true;

    for (int i = 0; i < g->out_count; i++)
        all = all && tensor_contiguous(&g->out[i]);
    return all;
}

bool match_channels_last(const struct tensor *t)
{
    int64_t step = t->shape[1];
    bool ok = t->dims > 2 && (t->strides[1] == 1 || t->shape[1] == 1);

    for (int d = t->dims - 1; d >= 0; d--) {
        ok = ok && (d == 1 || t->strides[d] == step || t->shape[d] == 1);
        step *= d == 1 ? 1 : t->shape[d];
    }
    return ok;
}

/* Where the matcher has not said what its kernels move: everything once. */
static void add_cost(const struct graph *g, struct match *out)
{
    if (out->launches)
        return;
    out->launches = 1;
    for (int i = 0; i < g->in_count; i++)
        out->moved += (double)tensor_numel(&g->in[i]) * expr_bytes(g->in[i].dtype);
    for (int k = 0; k < g->out_count; k++)
        out->moved += (double)tensor_numel(&g->out[k]) * expr_bytes(g->out[k].dtype);
}

/* Recipes compute in float. */
static bool has_doubles(const struct graph *g)
{
    for (int i = 0; i < g->count; i++)
        if (g->nodes[i].t.dtype && strcmp(g->nodes[i].t.dtype, "f64") == 0 &&
            (!g->nodes[i].value || strcmp(g->nodes[i].op, "input") == 0))
            return true;
    return false;
}

static bool match_as_it_is(const struct graph *g, struct arena *a, struct match *out)
{
    struct buf why = buf_init(2000);

    if (has_doubles(g)) {
        *out = (struct match){.recipe = NULL};
        return match_no(out, a, "recipes do not compute in f64");
    }
    for (size_t i = 0; i < ARRAY_LEN(matchers); i++) {
        *out = (struct match){.recipe = matchers[i].recipe, .why_not = ""};
        if (!matchers[i].any_order && !contiguous_outputs(g))
            match_no(out, a, "an output is not contiguous");
        else if (matchers[i].match(g, a, out)) {
            add_cost(g, out);
            buf_release(&why);
            return true;
        }
        buf_printf(&why, "%s%s: %s", why.len ? "; " : "", matchers[i].recipe, out->why_not);
    }
    *out = (struct match){.why_not = buf_copy(&why, a).data};
    buf_release(&why);
    return false;
}

bool match_one(const struct graph *g, struct arena *a, struct match *out)
{
    struct match moved = {.recipe = NULL};
    struct graph *s;

    if (match_as_it_is(g, a, out))
        return true;
    s = graph_sink(g, a);
    if (!s || !match_as_it_is(s, a, &moved) || moved.scattered)
        return false; /* generic kernels have a form for what lies apart */
    *out = moved;
    return true;
}

/* Round numbers of a device with 4 TB/s; generic kernels reach less of it than recipes do. */
#define LAUNCH_NS         3000.0
#define BYTES_PER_NS      4000.0
#define GENERIC_IS_SLOWER 1.4

double match_cost(const struct match *m)
{
    return (double)m->launches * LAUNCH_NS + m->moved / BYTES_PER_NS;
}

bool match_graph(const struct graph *g, struct arena *a, struct match *out)
{
    struct match parts = {.recipe = NULL}, generic = {.recipe = "generic"};
    const struct graph *products = contiguous_outputs(g) ? attention_as_products(g, a) : NULL;

    if (products && match_parts(products, a, &parts)) {
        *out = parts;
        out->graph = products;
        return true;
    }
    parts = (struct match){.recipe = NULL};
    if (match_one(g, a, out))
        return true;
    if (!contiguous_outputs(g)) {
        out->refused = "an output that lies channels last is not that of one convolution";
        return false;
    }
    if (match_parts(g, a, &parts)) {
        *out = parts;
        return true;
    }
    if (match_generic(g, a, &generic)) {
        *out = generic;
        if (!parts.why_not && match_sums(g, a, match_cost(&generic) * GENERIC_IS_SLOWER, &parts))
            *out = parts;
        return true;
    }
    if (parts.why_not)
        out->why_not = arena_printf(a, "%s; several kernels: %s", out->why_not, parts.why_not);
    out->why_not = arena_printf(a, "%s; generic: %s", out->why_not, generic.why_not);
    out->refused = generic.why_not;
    return false;
}

/* A small graph of its kind, for prompts about tasks no recipe fits. */
#define TENSOR   "\"dtype\": \"f32\", \"shape\": [4096, 4096], \"strides\": [4096, 1]"
#define INPUT(i) "{\"id\": " #i ", \"op\": \"input\", \"index\": " #i ", " TENSOR "}"
#define OP(id, op, args)                                                                           \
    "{\"id\": " #id ", \"op\": \"" op "\", \"args\": [" args "], \"kwargs\": {}, " TENSOR "}"
#define GRAPH(name, inputs, nodes, result)                                                         \
    "{\"name\": \"" name "\", \"inputs\": [" inputs "], \"outputs\": [{\"name\": \"y\", " TENSOR   \
    "}], \"graph\": [" nodes ", {\"op\": \"output\", \"args\": [{\"node\": " #result               \
    "}], \"index\": 0}]}"

#define PIXELS "\"dtype\": \"f32\", \"shape\": [8, 64, 56, 56], \"strides\": [200704, 3136, 56, 1]"
#define FILTER "\"dtype\": \"f32\", \"shape\": [64, 64, 3, 3], \"strides\": [576, 9, 3, 1]"
#define HEADS                                                                                      \
    "\"dtype\": \"f16\", \"shape\": [4, 16, 1024, 64], "                                           \
    "\"strides\": [1048576, 65536, 64, 1]"
#define HEAD_INPUT(i) "{\"id\": " #i ", \"op\": \"input\", \"index\": " #i ", " HEADS "}"

static const struct example {
    enum kernel_class class;
    const char *recipe, *description;
} examples[] = {
    {CLASS_POINTWISE, "pointwise",
     GRAPH("swish", "{\"name\": \"x\", " TENSOR "}",
           INPUT(0) ", " OP(1, "aten.sigmoid.default", "{\"node\": 0}") ", " OP(
               2, "aten.mul.Tensor", "{\"node\": 0}, {\"node\": 1}"),
           2)},
    {CLASS_REDUCTION, "row_reduction",
     GRAPH("softmax", "{\"name\": \"x\", " TENSOR "}",
           INPUT(0) ", " OP(1, "aten._softmax.default", "{\"node\": 0}, {\"value\": 1}"), 1)},
    {CLASS_OTHER, "scan",
     GRAPH("cumsum", "{\"name\": \"x\", " TENSOR "}",
           INPUT(0) ", " OP(1, "aten.cumsum.default", "{\"node\": 0}, {\"value\": 1}"), 1)},
    {CLASS_POINTWISE, "pointwise",
     GRAPH("tanh", "{\"name\": \"x\", " TENSOR "}",
           INPUT(0) ", " OP(1, "aten.tanh.default", "{\"node\": 0}"), 1)},
    {CLASS_CONVOLUTION, "convolution",
     "{\"name\": \"conv\", \"inputs\": [{\"name\": \"x\", " PIXELS "}, {\"name\": \"w\", " FILTER
     "}], \"outputs\": [{\"name\": \"y\", " PIXELS "}], \"graph\": ["
     "{\"id\": 0, \"op\": \"input\", \"index\": 0, " PIXELS "}, "
     "{\"id\": 1, \"op\": \"input\", \"index\": 1, " FILTER "}, "
     "{\"id\": 2, \"op\": \"aten.convolution.default\", \"args\": [{\"node\": 0}, {\"node\": 1}, "
     "{\"none\": true}, {\"ints\": [1, 1]}, {\"ints\": [1, 1]}, {\"ints\": [1, 1]}, "
     "{\"value\": false}, {\"ints\": [0, 0]}, {\"value\": 1}], \"kwargs\": {}, " PIXELS "}, "
     "{\"op\": \"output\", \"args\": [{\"node\": 2}], \"index\": 0}]}"},
    {CLASS_GEMM, "gemm",
     GRAPH("matmul", "{\"name\": \"A\", " TENSOR "}, {\"name\": \"B\", " TENSOR "}",
           INPUT(0) ", " INPUT(1) ", " OP(2, "aten.mm.default", "{\"node\": 0}, {\"node\": 1}"),
           2)},
    {CLASS_ATTENTION, "attention",
     "{\"name\": \"attention\", \"inputs\": [{\"name\": \"q\", " HEADS "}, {\"name\": \"k\", " HEADS
     "}, {\"name\": \"v\", " HEADS "}], \"outputs\": [{\"name\": \"y\", " HEADS
     "}], \"graph\": [" HEAD_INPUT(0) ", " HEAD_INPUT(1) ", " HEAD_INPUT(
         2) ", {\"id\": 3, \"op\": \"aten.scaled_dot_product_attention.default\", \"args\": "
            "[{\"node\": 0}, {\"node\": 1}, {\"node\": 2}], \"kwargs\": {}, " HEADS
            "}, {\"op\": \"output\", \"args\": [{\"node\": 3}], \"index\": 0}]}"},
};

void match_nearest(enum kernel_class class, const char **recipe, const char **description)
{
    const struct example *e = NULL;

    for (size_t i = 0; i < ARRAY_LEN(examples) && !e; i++)
        if (examples[i].class == (class == CLASS_OTHER ? CLASS_GEMM : class))
            e = &examples[i];
    e = e ? e : &examples[0];
    *recipe = e->recipe;
    *description = e->description;
}

/* Whether the task has the operator that an example is about; a product is one in any form. */
static bool has_operator(const json_t *task, const struct example *e)
{
    static const struct {
        const char *recipe, *parts[4];
    } about[] = {{"pointwise", {"sigmoid", "silu", "tanh"}},
                 {"row_reduction", {"softmax"}},
                 {"scan", {"cumsum", "cumprod"}},
                 {"convolution", {"convolution"}},
                 {"gemm", {"mm", "matmul", "linear"}},
                 {"attention", {"attention", "softmax"}}};
    const json_t *node;
    size_t i;

    json_array_foreach(json_object_get(task, "graph"), i, node)
    {
        const char *op = json_string_or(node, "op", "");

        for (size_t k = 0; k < ARRAY_LEN(about); k++)
            for (size_t p = 0; !strcmp(about[k].recipe, e->recipe) && about[k].parts[p]; p++)
                if (strstr(op, about[k].parts[p]) && (strcmp(e->recipe, "pointwise") != 0 ||
                                                      strstr(e->description, about[k].parts[p])))
                    return true;
    }
    return false;
}

void match_other(enum kernel_class class, const json_t *task, const char **recipe,
                 const char **description)
{
    const struct example *e = NULL;

    for (size_t i = 0; i < ARRAY_LEN(examples) && !e; i++)
        if (examples[i].class == class && !has_operator(task, &examples[i]))
            e = &examples[i];
    for (size_t i = 0; i < ARRAY_LEN(examples) && !e; i++) /* none of the class: take any other */
        if (examples[i].class != class && !has_operator(task, &examples[i]))
            e = &examples[i];
    e = e ? e : &examples[0];
    *recipe = e->recipe;
    *description = e->description;
}

bool match_no(struct match *out, struct arena *a, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    out->why_not = arena_vprintf(a, fmt, ap);
    va_end(ap);
    return false;
}

const char *match_fixed_norm(const struct graph *g, const struct node *n, struct arena *a)
{
    bool fixed = strstr(n->op, "no_training") != NULL;
    double training = 0, eps = 0;
    const char *form;

    if (!strstr(n->op, "batch_norm") || n->t.dims < 2 || !graph_arg(g, n, 0) ||
        !graph_arg(g, n, 3) || !graph_arg(g, n, 4) ||
        !graph_number(graph_arg_json(n, fixed ? 6 : 7, NULL), &eps) ||
        (!fixed && (!graph_number(graph_arg_json(n, 5, NULL), &training) || training > 0)))
        return NULL;
    form = arena_printf(a, "($0 - $3) * rsqrtf($4 + %s)", expr_literal(eps, "float", a));
    if (graph_arg(g, n, 1))
        form = arena_printf(a, "%s * $1", form);
    if (graph_arg(g, n, 2))
        form = arena_printf(a, "%s + $2", form);
    return form;
}

bool match_epilogue(const struct epilogue *e, const struct node *n, struct match *out)
{
    size_t i;
    const json_t *arg;

    if (e->seen[n - e->g->nodes] || n == e->core || n->value)
        return true;
    e->seen[n - e->g->nodes] = true;
    if (e->own && e->own(e->owner, n, out))
        return match_epilogue(e, graph_arg(e->g, n, 0), out);
    if (!graph_reshapes(n) && !e->knows(n, e->a))
        return match_no(out, e->a, "%s after the %s", n->op, e->what);
    if (tensor_numel(&n->t) != tensor_numel(&e->core->t))
        return match_no(out, e->a, "%s changes the %s's size", n->op, e->what);
    json_array_foreach(n->args, i, arg)
    {
        const struct node *used = graph_arg(e->g, n, i);
        struct view v;
        bool ok = true;

        if (used && !e->seen[used - e->g->nodes] && graph_view(e->g, used, &v)) {
            e->seen[used - e->g->nodes] = true;
            ok = e->leaf(e->owner, used, &n->t, out);
        } else if (used) {
            ok = match_epilogue(e, used, out);
        }
        if (!ok)
            return false;
    }
    return true;
}

void match_scalars(const struct graph *g, struct scope *s)
{
    size_t i;
    const json_t *scalar;

    json_array_foreach(g->scalars, i, scalar)
    {
        double value;
        struct scope *item;

        if (!graph_number(scalar, &value))
            continue;
        item = scope_item(s, "scalar");
        scope_set(item, "k", "%zu", i);
        scope_set(item, "name", "%s", json_string_or(scalar, "name", "a scalar"));
        scope_set(item, "value", "%.17g", value);
    }
}

const char *match_kernel_name(const struct graph *g, struct arena *a)
{
    const char *from = g->name;
    char *name;

    while (*from && !isalpha((unsigned char)*from))
        from++;
    name = arena_strdup(a, *from ? from : "task");
    for (char *p = name; *p; p++)
        *p = isalnum((unsigned char)*p) ? (char)tolower((unsigned char)*p) : '_';
    return name;
}

char *match_capital(const char *name, struct arena *a)
{
    char *text = arena_strdup(a, name);

    text[0] = (char)toupper((unsigned char)text[0]);
    return text;
}

char *match_lower(const char *name, struct arena *a)
{
    char *text = arena_strdup(a, name);

    for (char *p = text; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    return text;
}

const char *match_size_text(const char *tensor, int first, int last, struct arena *a)
{
    const char *text = "";

    for (int d = first; d < last; d++)
        text = arena_printf(a, "%s%s%s->shape[%d]", text, *text ? " * " : "", tensor, d);
    return *text ? text : "1";
}

const char *match_axis_size(const char *tensor, const struct axis *x, struct arena *a)
{
    return x->split ? arena_printf(a, "%lld", (long long)x->size)
                    : match_size_text(tensor, x->first, x->last, a);
}

const char *match_axis_stride(const char *tensor, const struct axis *x, struct arena *a)
{
    const char *stride = arena_printf(a, "%s->strides[%d]", tensor, x->last - 1);

    return x->times > 1 ? arena_printf(a, "(%s * %lld)", stride, (long long)x->times) : stride;
}

const char *match_offset(const char *tensor, const int64_t from[MAX_DIMS], struct arena *a)
{
    const char *offset = "";

    for (int d = 0; d < MAX_DIMS; d++)
        if (from[d])
            offset = arena_printf(a, "%s%s%s->strides[%d] * %lld", offset, *offset ? " + " : "",
                                  tensor, d, (long long)from[d]);
    return offset;
}

const char *match_pointer(const char *type, const char *tensor, const int64_t from[MAX_DIMS],
                          struct arena *a)
{
    const char *offset = match_offset(tensor, from, a);

    return *offset ? arena_printf(a, "CUTEGEN_AT(%s, %s, %s)", type, tensor, offset)
                   : arena_printf(a, "CUTEGEN_DATA(%s, %s)", type, tensor);
}

bool match_split_checks(struct scope *s, const char *tensor, const struct tensor *t,
                        const struct axis *axes, int count, struct arena *a)
{
    bool split = false;
    const char *shape = "";

    for (int i = 0; i < count; i++)
        split = split || axes[i].split;
    for (int d = 0; split && d < t->dims; d++)
        shape = arena_printf(a, "%s%s%s->shape[%d] == %lld", shape, *shape ? " && " : "", tensor, d,
                             (long long)t->shape[d]);
    if (*shape) {
        struct scope *item = scope_item(s, "check");

        scope_set(item, "condition", "%s", shape);
        scope_set(item, "text", "the shape of %s is written into the kernel", tensor);
    }
    return *shape != '\0';
}
