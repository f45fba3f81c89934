/* SPDX-License-Identifier: Apache-2.0 */
/*
 * values.c - statements that compute one element of a node.
 *
 * A named value is not computed again within its block: the memo holds the names in scope.
 */
#include "expert/generic/generic.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { TABLE_TEXT = 64 << 10 }; /* of the numbers of a constant tensor */

/* ---- statements ------------------------------------------------------------- */

static void indent(struct kernel *k)
{
    for (int i = 0; i < k->depth; i++)
        buf_puts(&k->body, "    ");
}

static void put(struct kernel *k, const char *fmt, va_list ap)
{
    indent(k);
    buf_vprintf(&k->body, fmt, ap);
}

void kernel_line(struct kernel *k, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    put(k, fmt, ap);
    va_end(ap);
    buf_putc(&k->body, '\n');
}

static const char *name_value(struct kernel *k, char letter, const char *type, const char *text)
{
    const char *name = arena_printf(k->in->a, "%c%d", letter, ++k->names);

    kernel_line(k, "%s const %s = %s;", type, name, text);
    return name;
}

const char *kernel_name(struct kernel *k, const char *type, const char *fmt, ...)
{
    const char *text;
    va_list ap;

    va_start(ap, fmt);
    text = arena_vprintf(k->in->a, fmt, ap);
    va_end(ap);
    return name_value(k, 'v', type, text);
}

bool is_number(const char *text, int64_t *out)
{
    char *end;

    *out = strtoll(text, &end, 10);
    return end != text && *end == '\0';
}

const char *kernel_index(struct kernel *k, const char *fmt, ...)
{
    const char *text;
    int64_t number;
    va_list ap;

    va_start(ap, fmt);
    text = arena_vprintf(k->in->a, fmt, ap);
    va_end(ap);
    if (is_number(text, &number) || !strpbrk(text, " +-*/%?("))
        return text;
    return name_value(k, 'i', k->index, text);
}

int kernel_open(struct kernel *k, bool loop, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    put(k, fmt, ap);
    va_end(ap);
    buf_puts(&k->body, " {\n");
    k->depth++;
    k->loops += loop;
    return k->memo_count;
}

void kernel_close(struct kernel *k, int mark, bool loop)
{
    k->depth--;
    k->loops -= loop;
    k->memo_count = mark;
    kernel_line(k, "}");
}

/* ---- arguments and types ------------------------------------------------------ */

int64_t arg_int_or(const struct node *n, size_t index, const char *keyword, int64_t fallback)
{
    int64_t value;

    return graph_arg_int(n, index, keyword, &value) ? value : fallback;
}

int dim_wrap(int64_t dim, int dims)
{
    int64_t last = dims > 0 ? dims - 1 : 0;

    dim += dim < 0 ? last + 1 : 0;
    return (int)(dim < 0 ? 0 : dim > last ? last : dim); /* a graph may say anything */
}

const char *operator_name(const struct node *n)
{
    return n->op + (graph_other_result(n) ? strlen("result of ") : 0);
}

const char *value_type(const struct node *n)
{
    return expr_value_type(n->t.dtype);
}

const char *value_float(const struct node *n)
{
    return strcmp(n->t.dtype, "f64") == 0 ? "double" : "float";
}

const char *value_memory(const struct generic *in, const struct node *n)
{
    bool kept_wide = n->inner && strstr(n->t.dtype, "f16");

    for (int k = 0; kept_wide && k < in->g->out_count; k++)
        kept_wide = in->g->result[k] != n->id;
    return kept_wide ? "float" : expr_memory_type(n->t.dtype);
}

const char *value_no(struct kernel *k, const struct node *n, const char *reason)
{
    if (!k->in->why)
        k->in->why = arena_printf(k->in->a, "%s: %s", n->op, reason);
    return NULL;
}

struct coords place_broadcast(const struct coords *at, const struct tensor *from,
                              const struct tensor *to)
{
    struct coords p = {{NULL}};
    int skip = to->dims - from->dims;

    for (int d = 0; d < from->dims; d++)
        p.at[d] = from->shape[d] == 1 || d + skip < 0 ? "0" : at->at[d + skip];
    return p;
}

/* ---- values -------------------------------------------------------------------- */

static const char *key_of(struct kernel *k, const struct node *n, const struct coords *at)
{
    const char *key = "";

    for (int d = 0; d < n->t.dims; d++)
        key = arena_printf(k->in->a, "%s%s,", key, at->at[d]);
    return key;
}

static const char *remember(struct kernel *k, const struct node *n, const char *key,
                            const char *value)
{
    if (value && k->memo_count < GENERIC_MEMO) {
        k->memo[k->memo_count].n = n;
        k->memo[k->memo_count].key = key;
        k->memo[k->memo_count++].value = value;
    }
    return value;
}

static int read_number(struct kernel *k, const struct node *n)
{
    int position = (int)(n - k->in->g->nodes);

    for (int i = 0; i < k->read_count; i++)
        if (k->reads[i] == position)
            return i;
    if (k->read_count == GENERIC_ARGS)
        return -1;
    k->reads[k->read_count] = position;
    return k->read_count++;
}

/* Along which of the result's dimensions are the operand's elements contiguous in memory? */
static void note_direction(struct kernel *k, const struct node *n, const struct coords *at)
{
    bool input = strcmp(n->op, "input") == 0;
    int last = k->root->t.dims - 1;

    if (tensor_numel(&n->t) != tensor_numel(&k->root->t))
        return;
    for (int d = 0; d < n->t.dims; d++) {
        bool beside = input ? k->in->g->in[n->index].strides[d] == 1 : d == n->t.dims - 1;

        for (int e = 0; beside && n->t.shape[d] > 1 && e < last; e++)
            if (k->here.at[e] && strcmp(k->here.at[e], at->at[d]) == 0)
                k->crosses = e + 1;
    }
}

/* An element that lies in memory. */
static const char *value_loaded(struct kernel *k, const struct node *n, const struct coords *at)
{
    const char *type = value_type(n), *list = "";
    int number = read_number(k, n);

    if (number < 0)
        return value_no(k, k->root, "it reads more tensors than a kernel takes");
    note_direction(k, n, at);
    for (int d = 0; d < n->t.dims; d++)
        list = arena_printf(k->in->a, "%s%s%s", list, d ? ", " : "", at->at[d]);
    return kernel_name(k, type, "%s(x%d(%s))", type, number, *list ? list : "0");
}

const char *value_of_arg(struct kernel *k, const struct node *n, size_t arg,
                         const struct coords *at)
{
    const struct node *x = graph_arg(k->in->g, n, arg);
    struct coords p;

    if (!x)
        return value_no(k, n, "an argument is missing");
    p = place_broadcast(at, &x->t, &n->t);
    return value_at(k, x, &p);
}

struct operands {
    struct kernel *k;
    const struct node *n;
    const struct coords *at;
};

static const char *operand(void *self, const struct node *x)
{
    const struct operands *o = self;
    struct coords p = place_broadcast(o->at, &x->t, &o->n->t);

    return value_at(o->k, x, &p);
}

/* Integers of fewer than 32 bits wrap at their own width. */
static const char *wrapped(const struct node *n, const char *text, struct arena *a)
{
    const char *type = expr_memory_type(n->t.dtype);

    if (strcmp(n->t.dtype, "u8") == 0 || strcmp(n->t.dtype, "i8") == 0 ||
        strcmp(n->t.dtype, "i16") == 0)
        return arena_printf(a, "%s(%s)", type, text);
    return text;
}

static const char *value_pointwise(struct kernel *k, const struct node *n, const struct coords *at)
{
    struct operands o = {k, n, at};
    int dims = n->t.dims;
    struct expr_source source = {operand, &o, dims > 1 ? at->at[dims - 2] : NULL,
                                 dims > 1 ? at->at[dims - 1] : NULL};
    const char *text, *why = NULL;

    if (!expr_operator(k->in->g, n, &source, k->in->a, &text, &why)) {
        if (!k->in->why)
            k->in->why = why;
        return NULL;
    }
    return kernel_name(k, value_type(n), "%s", wrapped(n, text, k->in->a));
}

/* Functions of recipes/special.cuh. */
static const char *const special_functions[] = {
    "special_digamma", "special_trigamma", "special_zeta",
    "special_igamma",  "special_igammac",  "special_order",
};

static const char *special_find(const struct node *n)
{
    for (size_t i = 0; i < ARRAY_LEN(special_functions); i++)
        if (strncmp(n->op, "generic.", 8) == 0 && strcmp(n->op + 8, special_functions[i]) == 0)
            return special_functions[i];
    return NULL;
}

static const char *value_special(struct kernel *k, const struct node *n, const struct coords *at,
                                 bool *mine)
{
    const char *call = special_find(n), *args = "", *type = value_float(n);

    *mine = call != NULL;
    if (!call)
        return NULL;
    k->in->special = true;
    for (size_t i = 0; i < json_array_size(n->args); i++) {
        const char *value = value_of_arg(k, n, i, at);

        if (!value)
            return NULL;
        if (strcmp(call, "special_order") == 0)
            type = "double";
        args = arena_printf(k->in->a, "%s%s%s(%s)", args, i ? ", " : "", type, value);
    }
    return kernel_name(k, value_type(n), "%s(%s)", call, args);
}

/* Values of a tensor that is neither argument nor part of the model; NULL: unknown. */
static const json_t *table_of(const struct node *n)
{
    const json_t *values = json_object_get(n->whole, "values");

    return strcmp(n->op, "constant") == 0 && !n->value &&
                   (int64_t)json_array_size(values) == tensor_numel(&n->t)
               ? values
               : NULL;
}

/* An element of a constant tensor: its numbers are a table of the kernel. */
static const char *value_tabled(struct kernel *k, const struct node *n, const struct coords *at)
{
    const json_t *values = table_of(n);
    const char *type = value_type(n), *name, *place = "0";
    struct buf b = buf_init(TABLE_TEXT);
    const json_t *item;
    size_t i;

    json_array_foreach(values, i, item)
    {
        double number;

        if (!graph_number(item, &number)) {
            buf_release(&b);
            return value_no(k, n, "a number of its constant does not read");
        }
        buf_printf(&b, "%s%s", i ? ", " : "", expr_literal(number, type, k->in->a));
    }
    for (int d = 0; d < n->t.dims; d++)
        place = d ? arena_printf(k->in->a, "(%s) * %lld + %s", place, (long long)n->t.shape[d],
                                 at->at[d])
                  : at->at[d];
    name = arena_printf(k->in->a, "t%d", ++k->names);
    kernel_line(k, "%s const %s[] = {%s};", type, name, b.data);
    buf_release(&b);
    return kernel_name(k, type, "%s[%s]", name, place);
}

static const char *value_constant(struct kernel *k, const struct node *n)
{
    double number = 0;

    if (!n->value || !graph_number(n->value, &number))
        return value_no(k, n, "a tensor that is neither argument nor part of the model");
    return arena_printf(k->in->a, "%s(%s)", value_type(n),
                        expr_literal(number, value_type(n), k->in->a));
}

static const char *value_computed(struct kernel *k, const struct node *n, const struct coords *at)
{
    static const char *(*const families[])(struct kernel *, const struct node *,
                                           const struct coords *, bool *) = {
        value_moved,  value_made,     value_reduced, value_product,
        value_pooled, value_searched, value_special};
    const struct node *from;
    struct coords place;
    int seen = view_place(k, n, at, &from, &place);

    if (seen < 0)
        return NULL;
    if (seen > 0) {
        const char *value = value_at(k, from, &place);

        return value && strcmp(value_type(from), value_type(n)) != 0
                   ? kernel_name(k, value_type(n), "%s(%s)", value_type(n), value)
                   : value;
    }
    for (size_t i = 0; i < ARRAY_LEN(families); i++) {
        bool mine = false;
        const char *value = families[i](k, n, at, &mine);

        if (mine)
            return value;
    }
    return value_pointwise(k, n, at);
}

const char *value_at(struct kernel *k, const struct node *n, const struct coords *at)
{
    const char *key;

    if (!n || n->id < 0)
        return value_no(k, k->root, "an argument of its graph is not a tensor");
    if ((n->value && strcmp(n->op, "input") != 0) ||
        (strcmp(n->op, "constant") == 0 && !table_of(n)))
        return value_constant(k, n);
    if (!value_type(n))
        return value_no(k, n,
                        arena_printf(k->in->a, "%s is not a type it computes with", n->t.dtype));
    key = key_of(k, n, at);
    for (int i = k->memo_count; i-- > 0;)
        if (k->memo[i].n == n && strcmp(k->memo[i].key, key) == 0)
            return k->memo[i].value;
    if (table_of(n))
        return remember(k, n, key, value_tabled(k, n, at));
    if (strcmp(n->op, "input") == 0 || (k->in->kept[n - k->in->g->nodes] && n != k->root))
        return remember(k, n, key, value_loaded(k, n, at));
    return remember(k, n, key, value_computed(k, n, at));
}
