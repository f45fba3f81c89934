/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sorts.c - indices of a row's elements in sorted order: a block per row, or per part of one.
 *
 * Rows lie along the innermost dimension (oracle/formulas_sort.py turns the
 * others). generic.sort_rows sorts a whole row in shared memory. Longer ones are sorted in tiles
 * (sort_tiles: elements as 64-bit keys) and merged pairwise (sort_merge; the last merge writes
 * indices). generic.sort_top finds the first few of a row, sort_nth one. Functions:
 * recipes/sorts.cuh. generic.search(row, value) bisects a row that is sorted already, a thread per
 * value.
 */
#include "expert/generic/generic.h"

#include <string.h>

enum {
    MERGE_THREADS = 256,
    MERGE_EACH = 8, /* elements of a thread */
    MERGE_TILE = MERGE_THREADS * MERGE_EACH,
    TOP_THREADS = 256,
    KEPT_KEYS = 16384, /* of a row, in shared memory */
    ROUNDS_READ = 6,   /* how often a row is read that does not fit in shared memory */
    EACH_MOST = 16,
    ROW_MOST = 8192, /* of elements that a block sorts */
    TOP_MOST = 4096,
    WARP_THREADS = 32
};

bool sort_is_pass(const struct node *n)
{
    return strncmp(n->op, "generic.sort_", 13) == 0;
}

static bool is_form(const struct node *n, const char *form)
{
    return strcmp(n->op + 13, form) == 0;
}

static int64_t row_of(const struct node *n)
{
    return n->t.dims ? n->t.shape[n->t.dims - 1] : 1;
}

double sort_steps(const struct graph *g, const struct node *n)
{
    const struct node *x = graph_first(g, n);
    double row, made = (double)row_of(n);

    if (!x || made < 1 || !(is_form(n, "top") || is_form(n, "nth")))
        return 1;
    row = (double)row_of(x);
    return (row > KEPT_KEYS ? ROUNDS_READ * row : row) / made;
}

struct sort_form {
    const struct node *x;
    int64_t row, width, count; /* of x's elements; of a tile or a run; of what is looked for */
    int each;                  /* elements of a thread */
    bool down;
    struct coords at; /* of the row */
};

static int64_t power_of_two(int64_t least, int64_t n)
{
    while (least < n)
        least *= 2;
    return least;
}

/* A block sorts this many elements. */
static void block_of(struct kernel *k, struct sort_form *f, int64_t elements)
{
    int64_t all = power_of_two(2 * WARP_THREADS, elements);

    f->each = (int)(all / WARP_THREADS < EACH_MOST ? all / WARP_THREADS : EACH_MOST);
    k->threads = (int)(all / f->each);
    k->shared_bytes = (int)((all + all / 16) * 8);
}

/* The lambda `entry` of a place of the row: what is sorted; of a merge, what was. */
static bool put_entry(struct kernel *k, struct sort_form *f, bool merge)
{
    int mark = kernel_open(k, true, "auto const entry = [&](int s) -> uint64_t");
    const char *v;

    f->at.at[f->x->t.dims - 1] = "s";
    v = value_at(k, f->x, &f->at);
    if (!v)
        return false;
    if (merge)
        kernel_line(k, "return %s;", v);
    else
        kernel_line(k, "return sort_entry<%s>(%s, s);", f->down ? "true" : "false", v);
    kernel_close(k, mark, true);
    k->body.len--;
    buf_puts(&k->body, ";\n");
    return true;
}

static int64_t tiles_of(const struct sort_form *f, int64_t tile)
{
    return (f->row + tile - 1) / tile;
}

/* The row, or one of its tiles, into shared memory, sorted there. */
static bool write_rows(struct kernel *k, struct sort_form *f, bool tiles)
{
    const char *s = tiles ? "first + s" : "s";

    block_of(k, f, tiles ? f->width : f->row);
    if (!put_entry(k, f, false))
        return false;
    if (tiles)
        kernel_line(k, "int const first = blockIdx.x %% %lld * %lld;",
                    (long long)tiles_of(f, f->width), (long long)f->width);
    kernel_line(k, "for (int s = threadIdx.x; s < %d * THREADS; s += THREADS)", f->each);
    kernel_line(k, "    entries[sort_slot(s)] = %s < %lld ? entry(%s) : SORT_LAST;", s,
                (long long)f->row, s);
    kernel_line(k, "__syncthreads();");
    kernel_line(k, "block_sort<THREADS, %d>(entries);", f->each);
    return true;
}

/* Two sorted runs into one; a block makes a tile of it. */
static bool write_merge(struct kernel *k, struct sort_form *f)
{
    k->threads = MERGE_THREADS;
    k->shared_bytes = MERGE_TILE * 17 / 16 * 8;
    kernel_line(k, "int const first = blockIdx.x %% %lld * %d;", (long long)tiles_of(f, MERGE_TILE),
                MERGE_TILE);
    if (!put_entry(k, f, true))
        return false;
    kernel_line(k, "merge_tile<THREADS, %d>(entry, %lld, %lld, first, entries);", MERGE_EACH,
                (long long)f->row, (long long)f->width);
    return true;
}

static bool write_top(struct kernel *k, struct sort_form *f, bool nth)
{
    bool kept = f->row <= KEPT_KEYS;
    int64_t all = power_of_two(2 * TOP_THREADS, f->count);
    const char *entry = kept ? "kept_entry" : "entry";

    k->threads = TOP_THREADS;
    f->each = (int)(all / TOP_THREADS);
    all = nth ? 2 : all + all / 16;
    k->shared_bytes = (int)(all * 8 + (kept ? f->row * 4 : 0));
    if (!put_entry(k, f, false))
        return false;
    if (kept) {
        kernel_line(k, "uint32_t *const kept = reinterpret_cast<uint32_t *>(entries + %lld);",
                    (long long)all);
        kernel_line(k, "for (int s = threadIdx.x; s < %lld; s += THREADS)", (long long)f->row);
        kernel_line(k, "    kept[s] = entry(s) >> 32;");
        kernel_line(k, "__syncthreads();");
        kernel_line(k, "auto const kept_entry = [&](int s) { return uint64_t(kept[s]) << 32 | "
                       "uint32_t(s); };");
    }
    if (nth)
        kernel_line(k, "block_nth<THREADS, %lld>(%s, %lld, entries);", (long long)f->count, entry,
                    (long long)f->row);
    else
        kernel_line(k, "block_top<THREADS, %d, %lld>(%s, %lld, entries);", f->each,
                    (long long)f->count, entry, (long long)f->row);
    return true;
}

/* Writes sorted entries or their indices to the result. A tile may extend beyond the row. */
static void put_results(struct kernel *k, struct sort_form *f, int64_t tile, bool places)
{
    const struct node *n = k->root;
    long long row = (long long)row_of(n);
    int mark;

    if (tile)
        mark = kernel_open(k, true,
                           "for (int j = threadIdx.x; j < %lld && first + j < %lld; j += THREADS)",
                           (long long)tile, row);
    else
        mark = kernel_open(k, true, "for (int j = threadIdx.x; j < %lld; j += THREADS)", row);
    f->at.at[n->t.dims - 1] = tile ? "first + j" : "j";
    kernel_line(k, "y(%s) = %s(entries[sort_slot(j)]);", place_text(n, &f->at, k->in->a),
                places ? "uint32_t" : "int64_t");
    kernel_close(k, mark, true);
}

/* Rows of the same number as x's, of a size that goes with the form. */
static bool fits(const struct node *n, const struct sort_form *f)
{
    const struct tensor *x = f->x ? &f->x->t : NULL;

    if (!x || x->dims < 1 || x->dims != n->t.dims || f->row < 1 || f->row > INT32_MAX / 4)
        return false;
    for (int d = 0; d + 1 < x->dims; d++)
        if (x->shape[d] != n->t.shape[d])
            return false;
    if (is_form(n, "top") || is_form(n, "nth"))
        return f->count >= 1 && f->count <= f->row && row_of(n) <= TOP_MOST &&
               row_of(n) == (is_form(n, "top") ? f->count : 1);
    if (row_of(n) != f->row || (is_form(n, "rows") && f->row > ROW_MOST))
        return false;
    return is_form(n, "rows") ||
           (f->width <= ROW_MOST && f->width >= MERGE_TILE && f->width % MERGE_TILE == 0) ||
           (is_form(n, "merge") && f->width % MERGE_TILE == 0 && f->width >= MERGE_TILE &&
            f->width < f->row);
}

bool write_sort(struct kernel *k)
{
    const struct node *n = k->root;
    struct sort_form f = {.x = graph_first(k->in->g, n),
                          .width = arg_int_or(n, 9, "width", 0),
                          .count = arg_int_or(n, 9, "count", 0),
                          .down = arg_int_or(n, 9, "descending", 0)};
    bool tiles = is_form(n, "tiles"), merge = is_form(n, "merge"), ok;
    int64_t tile = tiles ? f.width : merge ? MERGE_TILE : 0;

    f.row = f.x ? row_of(f.x) : 0;
    if (!fits(n, &f))
        return value_no(k, n, "sizes that do not go together") != NULL;
    k->in->sorts = true;
    k->blocks = tensor_numel(&f.x->t) / f.row * (tile ? tiles_of(&f, tile) : 1);
    if (k->blocks > INT32_MAX)
        return value_no(k, n, "more rows than a launch has blocks") != NULL;
    kernel_line(k, "extern __shared__ uint64_t entries[];");
    if (tile)
        kernel_line(k, "%s const i = blockIdx.x / %lld;", k->index, (long long)tiles_of(&f, tile));
    else
        kernel_line(k, "%s const i = blockIdx.x;", k->index);
    f.at = coordinates(k, f.x, f.x->t.dims - 1);
    if (is_form(n, "top") || is_form(n, "nth"))
        ok = write_top(k, &f, is_form(n, "nth"));
    else
        ok = merge ? write_merge(k, &f) : write_rows(k, &f, tiles);
    if (ok)
        put_results(k, &f, tile, strcmp(n->t.dtype, "i32") == 0);
    return ok;
}

/* How many elements of a sorted row come before the value; right: those that equal it, too. */
const char *value_searched(struct kernel *k, const struct node *n, const struct coords *at,
                           bool *mine)
{
    const struct node *row = graph_first(k->in->g, n), *value = graph_arg(k->in->g, n, 1);
    bool right = arg_int_or(n, 9, "right", 0);
    struct coords p = {{NULL}};
    const char *low, *v, *x;
    int mark, last;

    *mine = strcmp(n->op, "generic.search") == 0;
    if (!*mine)
        return NULL;
    if (!row || !value || row->t.dims < 1 || value->t.dims != n->t.dims ||
        (row->t.dims > 1 && row->t.dims != n->t.dims))
        return value_no(k, n, "sizes that do not go together");
    last = row->t.dims - 1;
    for (int d = 0; d < last; d++)
        p.at[d] = at->at[d];
    v = value_at(k, value, at);
    if (!v)
        return NULL;
    low = arena_printf(k->in->a, "low%d", ++k->names);
    kernel_line(k, "%s %s = 0, high%d = %lld;", k->index, low, k->names,
                (long long)row->t.shape[last]);
    mark = kernel_open(k, true, "while (%s < high%s)", low, low + 3);
    kernel_line(k, "%s const half = (%s + high%s) / 2;", k->index, low, low + 3);
    p.at[last] = "half";
    x = value_at(k, row, &p);
    if (!x)
        return NULL;
    kernel_line(k, "if (!(%s %s %s))", x, right ? ">" : ">=", v); /* NaN comes last */
    kernel_line(k, "    %s = half + 1;", low);
    kernel_line(k, "else");
    kernel_line(k, "    high%s = half;", low + 3);
    kernel_close(k, mark, true);
    return kernel_name(k, value_type(n), "%s", low);
}
