/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels.c - write a graph without a recipe as kernels: their text, workspace and launches.
 *
 * Kernels of equal text are one kernel, launched with other tensors. Places in the workspace are
 * assigned by lifetime: two results share memory if the first is not read after the second is
 * written.
 */
#include "expert/generic/generic.h"

#include "base/json.h"
#include "expert/match/match.h"

#include <string.h>

enum { TEAM_BLOCK = 128, LARGEST_TEAM = 1024, WARP = 32, ALIGNMENT = 256 };
/* A thread with only one load in flight leaves most of the memory bandwidth unused. */
enum { AT_ONCE = 4, MANY_RESULTS = 1 << 20, SHORT_BODY = 3000 };
/* Number of 4-byte elements in a memory sector. */
enum { ACROSS = 8 };

struct kernel_launch {
    const struct node *n;
    const char *text; /* of its kernel, but for the name */
    int kernel;       /* number of the kernel with this text */
    int reads[GENERIC_ARGS], read_count;
    int64_t count;  /* of threads */
    bool block;     /* a team is a block */
    int64_t blocks; /* of its own form; 0: as many as `count` needs */
    int threads, shared_bytes;
};

struct kept_buffer {
    const struct node *n;
    int out; /* the task's output it stores; -1: it is in the workspace */
    int64_t bytes, offset;
    int first, last; /* launches that write it, and read it last */
};

struct writing {
    struct generic in;
    struct kept_buffer *buffers; /* by position of the node */
    struct kernel_launch *launches;
    int launch_count, kernel_count;
    int64_t workspace;
};

/* ---- text of a kernel ------------------------------------------------------------------ */

static bool is_wide(const struct generic *in)
{
    for (int i = 0; i < in->g->count; i++)
        if (tensor_numel(&in->g->nodes[i].t) > INT32_MAX / 4)
            return true;
    return false;
}

static int64_t stride_of(const struct writing *w, const struct node *n, int d)
{
    const struct kept_buffer *b = &w->buffers[n - w->in.g->nodes];
    int64_t stride = 1;

    if (strcmp(n->op, "input") == 0)
        return w->in.g->in[n->index].strides[d];
    if (b->out >= 0)
        return w->in.g->out[b->out].strides[d];
    for (int i = n->t.dims - 1; i > d; i--)
        stride *= n->t.shape[i];
    return stride;
}

/* Tensor x = make_tensor(...); // (3,4) */
static void put_tensor(const struct writing *w, struct buf *out, const char *name,
                       const char *pointer, const struct node *n, bool wide)
{
    const char *cast = wide ? "int64_t" : "";

    buf_printf(out, "    Tensor %s = make_tensor(make_gmem_ptr(%s), make_layout(make_shape(", name,
               pointer);
    for (int d = 0; d < n->t.dims; d++)
        buf_printf(out, "%s%s(%lld)", d ? ", " : "", cast, (long long)n->t.shape[d]);
    buf_printf(out, "%s), make_stride(", n->t.dims ? "" : "1");
    for (int d = 0; d < n->t.dims; d++)
        buf_printf(out, "%s%s(%lld)", d ? ", " : "", cast, (long long)stride_of(w, n, d));
    buf_printf(out, "%s))); // (", n->t.dims ? "" : "1");
    for (int d = 0; d < n->t.dims; d++)
        buf_printf(out, "%s%lld", d ? "," : "", (long long)n->t.shape[d]);
    buf_puts(out, ")\n");
}

const char *place_text(const struct node *n, const struct coords *at, struct arena *a)
{
    const char *text = "";

    for (int d = 0; d < n->t.dims; d++)
        text = arena_printf(a, "%s%s%s", text, d ? ", " : "", at->at[d]);
    return *text ? text : "0";
}

/* Coordinates of element `i`, dimension `without` left out (-1: none). */
struct coords coordinates(struct kernel *k, const struct node *n, int without)
{
    struct coords p = {{NULL}};
    int64_t stride = 1, all = tensor_numel(&n->t);

    all /= without >= 0 && n->t.shape[without] ? n->t.shape[without] : k->across ? ACROSS : 1;
    for (int d = n->t.dims; d-- > 0;) {
        int64_t size = n->t.shape[d] / (d + 1 == k->across ? ACROSS : 1);
        const char *text = "i";

        if (d == without || n->t.shape[d] == 1) {
            p.at[d] = "0";
            continue;
        }
        if (stride > 1)
            text = arena_printf(k->in->a, "%s / %lld", text, (long long)stride);
        if (stride * size < all)
            text = arena_printf(k->in->a, "%s %% %lld", text, (long long)size);
        if (d + 1 == k->across)
            text = arena_printf(k->in->a, "%s * %d + u", text, ACROSS);
        p.at[d] = kernel_index(k, "%s", text);
        stride *= size;
    }
    return p;
}

/* The elements of `value`, into the memory of the root. */
static bool write_map(struct kernel *k, const struct node *value)
{
    struct coords at = k->here = coordinates(k, k->root, -1);
    const char *v = value_at(k, value, &at), *to = place_text(k->root, &at, k->in->a);
    const char *type = value_memory(k->in, k->root);

    if (!v)
        return false;
    if (k->team > 1)
        kernel_line(k, "if (threadIdx.x %% %d == 0)", k->team);
    kernel_line(k, "%sy(%s) = %s(%s);", k->team > 1 ? "    " : "", to, type, v);
    return true;
}

static struct kernel *kernel_start(struct writing *w, const struct node *n, int team)
{
    struct kernel *k = arena_alloc(w->in.a, sizeof(*k));

    *k = (struct kernel){.in = &w->in, .root = n, .team = team, .depth = 2};
    k->index = is_wide(&w->in) ? "int64_t" : "int";
    k->body = buf_init(GENERIC_BYTES);
    return k;
}

/* For few results with long sums: a warp or a block per result; the largest block where there are
 * so few results that smaller ones would leave most of the device without work. */
static int team_for(const struct kernel *k, int64_t results)
{
    if (k->terms < 64 || (results >= 65536 && !k->along))
        return 1;
    if (k->terms >= 8192 && results <= 512)
        return LARGEST_TEAM;
    return k->terms >= 1024 && results <= 8192 ? TEAM_BLOCK : WARP;
}

/* A kernel's parameter: the plan has no name for 16-bit floats, so in workspace they are bits. */
static const char *parameter_type(const struct writing *w, const struct node *n)
{
    const char *memory = value_memory(&w->in, n);
    bool workspace = strcmp(n->op, "input") != 0 && w->buffers[n - w->in.g->nodes].out < 0;

    return workspace && (strcmp(memory, "half_t") == 0 || strcmp(memory, "bfloat16_t") == 0)
               ? "uint16_t"
               : memory;
}

static const char *pointer_in_kernel(const struct writing *w, const struct node *n,
                                     const char *name, const char *qualifier)
{
    const char *memory = value_memory(&w->in, n);

    return strcmp(memory, parameter_type(w, n)) == 0
               ? name
               : arena_printf(w->in.a, "reinterpret_cast<%s%s *>(%s)", memory, qualifier, name);
}

/* Which results are this thread's. */
static void put_items(const struct kernel *k, int64_t items, struct buf *out)
{
    if (k->blocks)
        return;
    if (k->at_once > 1)
        buf_printf(out, "    CUTE_UNROLL\n    for (int u = 0; u < %d; u++) {\n", k->at_once);
    if (k->across) {
        buf_printf(out, "        %s const i = %s(blockIdx.x) * THREADS + threadIdx.x;\n", k->index,
                   k->index);
        buf_printf(out, "        if (i < %lld) {\n", (long long)(items / ACROSS));
        return;
    }
    if (k->at_once > 1) {
        buf_printf(out, "        %s const i = (%s(blockIdx.x) * %d + u) * THREADS + threadIdx.x;\n",
                   k->index, k->index, k->at_once);
        buf_printf(out, "        if (%lld %% (%d * THREADS) == 0 || i < %lld) {\n",
                   (long long)items, k->at_once, (long long)items);
        return;
    }
    buf_printf(out, "    %s const i = (%s(blockIdx.x) * THREADS + threadIdx.x)", k->index,
               k->index);
    if (k->team > 1)
        buf_printf(out, " / %d", k->team);
    buf_printf(out, ";\n    if (i < %lld) {\n", (long long)items);
}

/* Its lines, one level deeper inside of a loop. */
static void put_body(const struct kernel *k, struct buf *out)
{
    const char *at = k->body.data, *end = at + k->body.len;

    while (at < end) {
        const char *line = memchr(at, '\n', (size_t)(end - at)), *next = line ? line + 1 : end;

        if (k->at_once > 1)
            buf_puts(out, "    ");
        buf_add(out, at, (size_t)(next - at));
        at = next;
    }
}

/* For many results without loops: several per thread. */
static int results_at_once(const struct kernel *k, int64_t items)
{
    const char *body = arena_strndup(k->in->a, k->body.data, k->body.len);

    return items >= MANY_RESULTS && k->team == 1 && k->body.len < SHORT_BODY &&
                   !strstr(body, "for (") && !strstr(body, "while (")
               ? AT_ONCE
               : 1;
}

static const char *kernel_text(struct writing *w, struct kernel *k, int64_t items)
{
    bool wide = strcmp(k->index, "int64_t") == 0;
    struct buf out = buf_init(GENERIC_BYTES * 2);
    const char *text;

    for (int i = 0; i < k->read_count; i++)
        buf_printf(&out, "%s const *p%d, ", parameter_type(w, &w->in.g->nodes[k->reads[i]]), i);
    /* The result alone is __restrict__: a const pointer that is, too, would be read with
     * ld.global.nc, which may be moved above the wait for the launch before. */
    buf_printf(&out, "%s *%spy)\n{\n", parameter_type(w, k->root),
               k->at_once > 1 ? "__restrict__ " : "");
    for (int i = 0; i < k->read_count; i++) {
        const struct node *n = &w->in.g->nodes[k->reads[i]];

        put_tensor(w, &out, arena_printf(w->in.a, "x%d", i),
                   pointer_in_kernel(w, n, arena_printf(w->in.a, "p%d", i), " const"), n, wide);
    }
    put_tensor(w, &out, "y", pointer_in_kernel(w, k->root, "py", ""), k->root, wide);
    put_items(k, items, &out);
    put_body(k, &out);
    buf_puts(&out, k->blocks ? "}" : k->at_once > 1 ? "        }\n    }\n}" : "    }\n}");
    text = out.overflowed || k->body.overflowed ? NULL : buf_copy(&out, w->in.a).data;
    buf_release(&out);
    if (!text)
        value_no(k, k->root, "its kernel is too long");
    return text;
}

/* Adds a finished kernel as the next launch. */
static bool add_launch(struct writing *w, struct kernel *k, int64_t items, bool ok)
{
    struct kernel_launch *l = &w->launches[w->launch_count];

    *l = (struct kernel_launch){.n = k->root,
                                .text = ok ? kernel_text(w, k, items) : NULL,
                                .read_count = k->read_count,
                                .count = (items * k->team + k->at_once - 1) / k->at_once,
                                .block = k->team == TEAM_BLOCK,
                                .blocks = k->team == LARGEST_TEAM ? items : k->blocks,
                                .threads = k->team == LARGEST_TEAM ? LARGEST_TEAM : k->threads,
                                .shared_bytes = k->shared_bytes};
    memcpy(l->reads, k->reads, sizeof(l->reads));
    buf_release(&k->body);
    if (!l->text)
        return false;
    l->kernel = w->kernel_count;
    for (int i = 0; i < w->launch_count && l->kernel == w->kernel_count; i++)
        if (strcmp(w->launches[i].text, l->text) == 0)
            l->kernel = w->launches[i].kernel;
    w->kernel_count += l->kernel == w->kernel_count;
    w->launch_count++;
    return true;
}

/* An operand is transposed, so that threads of a warp would read far apart: let each thread read
 * contiguous elements instead. */
static bool crosses(const struct writing *w, const struct kernel *k)
{
    const struct node *n = k->root;
    int last = n->t.dims - 1;

    return k->crosses && n->t.shape[k->crosses - 1] % ACROSS == 0 && n->t.shape[last] >= WARP &&
           stride_of(w, n, last) == 1;
}

/* Adds a kernel that writes each element of n as `value` computes it. */
static bool add_map(struct writing *w, const struct node *n, const struct node *value)
{
    int64_t items = tensor_numel(&n->t);
    struct kernel *k = kernel_start(w, n, 1);
    bool ok = write_map(k, value);
    int team = team_for(k, items);

    if (ok && team > 1) {
        buf_release(&k->body);
        k = kernel_start(w, n, team);
        ok = write_map(k, value);
    }
    k->at_once = ok ? results_at_once(k, items) : 1;
    if (k->at_once > 1 && crosses(w, k)) {
        int across = k->crosses;

        buf_release(&k->body);
        k = kernel_start(w, n, 1);
        k->across = across;
        k->at_once = ACROSS;
        ok = write_map(k, value);
    }
    return add_launch(w, k, items, ok);
}

/* First a copy of the destination, then the writers. */
static bool add_scatter(struct writing *w, const struct node *n)
{
    int64_t writers = (int64_t)scatter_writers(w->in.g, n);
    struct kernel *k;
    bool ok;

    if (!scatter_fits(w->in.g, n)) {
        w->in.why = arena_printf(w->in.a, "%s: sizes that do not go together", n->op);
        return false;
    }
    if (!add_map(w, n, graph_first(w->in.g, n)))
        return false;
    if (writers == 0)
        return true;
    k = kernel_start(w, n, 1);
    ok = write_scatter(k);
    k->at_once = ok ? results_at_once(k, writers) : 1;
    return add_launch(w, k, writers, ok);
}

static bool write_kernel(struct writing *w, const struct node *n)
{
    int64_t items = tensor_numel(&n->t);
    struct kernel *k;
    bool ok;

    if (items == 0)
        return true;
    if (scatter_is(n))
        return add_scatter(w, n);
    if (!storage_alone(n))
        return add_map(w, n, n);
    k = kernel_start(w, n, sort_is_pass(n) ? 1 : scan_team(n));
    k->depth = sort_is_pass(n) ? 1 : 2;
    ok = sort_is_pass(n) ? write_sort(k) : write_scan(k);
    k->at_once = 1;
    if (scan_is(n) && n->t.dims && n->t.shape[scan_dim(n)] > 0)
        items /= n->t.shape[scan_dim(n)];
    return add_launch(w, k, items, ok);
}

/* ---- workspace --------------------------------------------------------------------------- */

static void note_lifetimes(struct writing *w)
{
    for (int j = 0; j < w->launch_count; j++) {
        struct kernel_launch *l = &w->launches[j];
        struct kept_buffer *b = &w->buffers[l->n - w->in.g->nodes];

        b->first = b->first < 0 ? j : b->first;
        b->last = j;
        for (int i = 0; i < l->read_count; i++)
            w->buffers[l->reads[i]].last = j;
    }
}

/* The lowest offset at which b overlaps none of `placed` in memory and lifetime. */
static int64_t lowest_offset(const struct kept_buffer *b, struct kept_buffer **placed, int count)
{
    int64_t offset = 0;
    bool moved = true;

    while (moved) {
        moved = false;
        for (int i = 0; i < count; i++) {
            const struct kept_buffer *o = placed[i];

            if (o->first > b->last || b->first > o->last || o->offset >= offset + b->bytes ||
                offset >= o->offset + o->bytes)
                continue;
            offset = o->offset + o->bytes;
            moved = true;
        }
    }
    return offset;
}

/* Largest first. */
static void plan_workspace(struct writing *w)
{
    struct kept_buffer **todo =
        arena_array(w->in.a, (size_t)w->in.g->count, sizeof(struct kept_buffer *));
    int count = 0;

    note_lifetimes(w);
    for (int j = 0; j < w->launch_count; j++) {
        struct kept_buffer *b = &w->buffers[w->launches[j].n - w->in.g->nodes];
        int at = count;

        if (b->out >= 0 || b->first != j)
            continue;
        while (at > 0 && todo[at - 1]->bytes < b->bytes) {
            todo[at] = todo[at - 1];
            at--;
        }
        todo[at] = b;
        count++;
    }
    for (int i = 0; i < count; i++) {
        struct kept_buffer *b = todo[i];

        b->offset = lowest_offset(b, todo, i);
        if (b->offset + b->bytes > w->workspace)
            w->workspace = b->offset + b->bytes;
    }
}

/* ---- slots ----------------------------------------------------------------------------------- */

static int type_bytes(const char *memory)
{
    static const struct {
        const char *type;
        int bytes;
    } rows[] = {{"float", 4},   {"double", 8},  {"half_t", 2},  {"bfloat16_t", 2}, {"uint8_t", 1},
                {"int32_t", 4}, {"int64_t", 8}, {"int16_t", 2}, {"int8_t", 1}};

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (strcmp(rows[i].type, memory) == 0)
            return rows[i].bytes;
    return 8;
}

static const char *pointer_text(const struct writing *w, const struct node *n, bool written)
{
    const struct kept_buffer *b = &w->buffers[n - w->in.g->nodes];
    const char *type = arena_printf(w->in.a, "%s%s", parameter_type(w, n), written ? "" : " const");

    if (strcmp(n->op, "input") == 0)
        return arena_printf(w->in.a, "CUTEGEN_DATA(%s, &call->in[%d])", type, n->index);
    if (b->out >= 0)
        return arena_printf(w->in.a, "CUTEGEN_DATA(%s, &call->out[%d])", type, b->out);
    return arena_printf(w->in.a, "(%s *)(ws + %lld)", type, (long long)b->offset);
}

static void require(struct scope *s, const char *tensor, const char *condition)
{
    struct scope *item = scope_item(s, "check");

    scope_set(item, "condition", "%s", condition);
    scope_set(item, "text", "the shape and strides of %s are written into the kernel", tensor);
}

static void require_shape(struct scope *s, const char *tensor, const struct tensor *t,
                          struct arena *a)
{
    require(s, tensor, arena_printf(a, "%s.ndim == %d", tensor, t->dims));
    for (int d = 0; d < t->dims; d++) {
        const char *size =
            arena_printf(a, "%s.shape[%d] == %lld", tensor, d, (long long)t->shape[d]);

        require(s, tensor,
                t->shape[d] == 1 ? size
                                 : arena_printf(a, "%s && %s.strides[%d] == %lld", size, tensor, d,
                                                (long long)t->strides[d]));
    }
}

static void fill_kernels(const struct writing *w, struct scope *s)
{
    int done = 0;

    for (int j = 0; j < w->launch_count; j++) {
        const struct kernel_launch *l = &w->launches[j];
        struct scope *item;

        if (l->kernel != done)
            continue;
        done++;
        item = scope_item(s, "generic");
        scope_set(item, "number", "%d", done);
        scope_set(item, "makes", "%s", graph_short_name(l->n->op, w->in.a));
        scope_set(item, "text", "%s", l->text);
    }
}

static void fill_launches(const struct writing *w, struct scope *s)
{
    for (int j = 0; j < w->launch_count; j++) {
        const struct kernel_launch *l = &w->launches[j];
        struct scope *item = scope_item(s, "launch");
        const char *args = "";

        for (int i = 0; i < l->read_count; i++)
            args = arena_printf(w->in.a, "%s%s, ", args,
                                pointer_text(w, &w->in.g->nodes[l->reads[i]], false));
        scope_set(item, "number", "%d", l->kernel + 1);
        scope_set(item, "args", "%s%s", args, pointer_text(w, l->n, true));
        scope_set(item, "blocks", "%lld", (long long)((l->count + 255) / 256));
        scope_set(item, "small_blocks", "%lld", (long long)((l->count + 127) / 128));
        if (l->block)
            scope_fact(item, "team_block");
        if (l->blocks) {
            scope_fact(item, "own_blocks");
            scope_set(item, "threads", "%d", l->threads);
            scope_set(item, "own_blocks", "%lld", (long long)l->blocks);
            scope_set(item, "shared_bytes", "%d", l->shared_bytes);
        }
    }
}

static struct scope *fill_scope(const struct writing *w, const struct graph *g)
{
    struct scope *s = scope_new(w->in.a, NULL);

    scope_set(s, "kernel", "%s", match_kernel_name(g, w->in.a));
    scope_set(s, "ops", "%s", graph_ops(g, w->in.a));
    scope_set(s, "bytes", "%lld", (long long)(w->workspace ? w->workspace : ALIGNMENT));
    if (w->workspace)
        scope_fact(s, "workspace");
    if (w->in.special)
        scope_fact(s, "special");
    if (w->in.sorts)
        scope_fact(s, "sorts");
    if (w->in.scatters)
        scope_fact(s, "scatters");
    for (int i = 0; i < g->in_count; i++)
        require_shape(s, arena_printf(w->in.a, "call->in[%d]", i), &g->in[i], w->in.a);
    for (int i = 0; i < g->out_count; i++)
        require_shape(s, arena_printf(w->in.a, "call->out[%d]", i), &g->out[i], w->in.a);
    match_scalars(g, s);
    fill_kernels(w, s);
    fill_launches(w, s);
    return s;
}

/* ---- the matcher ------------------------------------------------------------------ */

/* A result that is also an input or another result gets a copy node. */
static void own_results(struct graph *p, struct arena *a)
{
    struct node *more = arena_array(a, (size_t)p->count + MAX_TENSORS, sizeof(*more));

    memcpy(more, p->nodes, (size_t)p->count * sizeof(*more));
    p->nodes = more;
    for (int k = 0; k < p->out_count; k++) {
        const struct node *n = graph_node(p, p->result[k]);
        struct node *copy = &p->nodes[p->count];
        bool twice = strcmp(n->op, "input") == 0 || strcmp(n->op, "constant") == 0 || n->value;

        for (int j = 0; j < k; j++)
            twice = twice || p->result[j] == p->result[k];
        if (!twice)
            continue;
        *copy = *n;
        copy->op = "aten.alias.default";
        copy->value = NULL;
        copy->args = json_own(
            a, json_pack("[{s:i,s:i}]", "node", n->id & ((1 << 20) - 1), "part", n->id >> 20));
        copy->id = (1 << 19) + k;
        copy->inner = false;
        p->result[k] = copy->id;
        p->count++;
    }
}

/* A node with its own form of kernel is written directly as the result; copying it would cost
 * another pass. */
static void write_results_directly(struct graph *p)
{
    for (int k = 0; k < p->out_count; k++) {
        const struct node *n = graph_node(p, p->result[k]);
        const struct node *x = n && graph_op_is(n, "aten.alias") ? graph_first(p, n) : NULL;

        if (!x || !storage_alone(x) || graph_is_result(p, x) || x->t.dims != n->t.dims ||
            strcmp(x->t.dtype, n->t.dtype) != 0)
            continue;
        if (memcmp(x->t.shape, n->t.shape, (size_t)x->t.dims * sizeof(*x->t.shape)) == 0)
            p->result[k] = x->id;
    }
}

static void name_buffers(struct writing *w)
{
    const struct graph *g = w->in.g;

    w->buffers = arena_array(w->in.a, (size_t)g->count, sizeof(*w->buffers));
    for (int i = 0; i < g->count; i++) {
        struct kept_buffer *b = &w->buffers[i];

        *b = (struct kept_buffer){.n = &g->nodes[i], .out = -1, .first = -1, .last = -1};
        for (int k = 0; k < g->out_count; k++)
            if (g->result[k] == g->nodes[i].id)
                b->out = k;
        if (!w->in.kept[i])
            continue;
        b->bytes =
            tensor_numel(&g->nodes[i].t) *
            type_bytes(expr_value_type(g->nodes[i].t.dtype) ? value_memory(&w->in, b->n) : "");
        b->bytes = (b->bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
}

static double bytes_of(const struct writing *w, int position)
{
    const struct tensor *t = &w->in.g->nodes[position].t;

    return (double)tensor_numel(t) * expr_bytes(t->dtype);
}

/* What the launches read and write. */
static void add_cost(const struct writing *w, struct match *out)
{
    out->launches = w->launch_count;
    out->moved = 0;
    for (int j = 0; j < w->launch_count; j++) {
        const struct kernel_launch *l = &w->launches[j];

        out->moved += bytes_of(w, (int)(l->n - w->in.g->nodes));
        for (int i = 0; i < l->read_count; i++)
            out->moved += bytes_of(w, l->reads[i]);
    }
}

bool match_generic(const struct graph *g, struct arena *a, struct match *out)
{
    struct writing *w = arena_alloc(a, sizeof(*w));
    const char *why = NULL;
    struct graph *p = graph_lower(g, a, &why);

    if (!p)
        return match_no(out, a, "%s", why);
    own_results(p, a);
    write_results_directly(p);
    w->in = (struct generic){.g = p, .a = a};
    storage_decide(&w->in);
    name_buffers(w);
    w->launches = arena_array(a, 2 * (size_t)p->count, sizeof(*w->launches));
    for (int i = 0; i < p->count; i++)
        if (w->in.kept[i] && !write_kernel(w, &p->nodes[i]))
            return match_no(out, a, "%s",
                            w->in.why ? w->in.why : "a kernel that cannot be written");
    if (w->launch_count == 0)
        return match_no(out, a, "nothing is computed");
    plan_workspace(w);
    add_cost(w, out);
    out->scope = fill_scope(w, g);
    return true;
}
