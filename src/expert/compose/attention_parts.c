/* SPDX-License-Identifier: Apache-2.0 */
/* attention_parts.c - see attention_parts.h. */
#include "expert/compose/attention_parts.h"

#include "expert/compose/joined_weights.h"

#include <string.h>

enum { Q_K_V = 3, TOGETHER = 64 /* rows that have one scale */, WIDEST_PIECE = 128 };

unsigned attention_parts_excludes(const struct recipe *r)
{
    static const char *const names[] = {"split_k", "both", "triangle"};
    unsigned set = 0;

    for (int i = 0; i < r->step_count; i++)
        for (size_t k = 0; k < ARRAY_LEN(names); k++)
            if (strcmp(r->steps[i].name, names[k]) == 0)
                set |= 1u << i;
    return set;
}

/* ---- which ------------------------------------------------------------------------- */

/* Columns of the product's result; 0: it is not a product that can write parts. */
static int64_t columns_of(const struct part *part)
{
    static const char *const unfit[] = {"long_sums", "upper_upper", "lower_lower"};

    if (part->out >= 0)
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(unfit); i++)
        if (scope_has(part->match.scope, unfit[i]))
            return 0;
    return part->match.columns;
}

/* Are there pieces of a tile that consist of whole heads? Of 96 columns only where B lies along K:
 * the other layout is brought 64 columns at a time. */
static bool fits_head(const struct part *part, int64_t head)
{
    return head == 32 || head == 64 || head == 128 ||
           (head == 96 && scope_has(part->match.scope, "b_k_major"));
}

/* Do the rows and columns that attention reads lie in the result as the scales require? Fills the
 * columns of all heads, from *from on. */
static bool lies_well(const struct match_read *r, int64_t columns, int64_t *from, int64_t *until)
{
    *from = r->offset;
    *until = r->offset + r->head;
    if (r->row != columns || columns % r->head || r->offset % r->head)
        return false;
    for (int i = 0; i < r->modes; i++) {
        int64_t step = r->step[i];

        if (step < columns && step % r->head)
            return false;
        if (step < columns)
            *until += (r->size[i] - 1) * step;
        else if (r->size[i] > 1 && step % (TOGETHER * columns))
            return false;
    }
    return *until <= columns;
}

/* Does nothing else read the product, and the attention itself no more of it than Q, K and V? */
static bool alone_reads(const struct parts *p, int reader, int product)
{
    const struct part *part = &p->at[reader];

    for (int i = 0; i < part->match.beside_count; i++)
        if (part->from[part->match.beside[i]] == -1 - product)
            return false;
    for (int j = 0; j < p->count; j++)
        for (int k = 0; j != reader && k < p->at[j].g->in_count; k++)
            if (p->at[j].from[k] == -1 - product)
                return false;
    return true;
}

/* Notes what one operand of an attention asks of the product that makes it. */
static bool take_read(struct attention_parts *h, int reader, int t)
{
    const struct part *part = &h->p->at[reader];
    const struct match_read *r = &part->match.reads[t];
    int product = -1 - part->from[r->input];
    int64_t columns, from, until;

    if (product < 0 || !(columns = columns_of(&h->p->at[product])) ||
        !lies_well(r, columns, &from, &until) || !fits_head(&h->p->at[product], r->head) ||
        !alone_reads(h->p, reader, product) ||
        (h->reader[product] && h->head[product] != (int)r->head))
        return false;
    if (!h->reader[product])
        h->count++;
    h->reader[product] = reader + 1;
    h->head[product] = (int)r->head;
    h->columns[product] = columns;
    if (t == Q_K_V - 1)
        h->v_from[product] = from, h->v_until[product] = until;
    return true;
}

static bool has_steps(const struct attention_parts *h, int part, const struct recipe *recipes,
                      const unsigned *steps, const char *name)
{
    int form = h->p->at[part].form;

    return !steps || joined_has_step(&recipes[form], steps[form], name);
}

static void take_attention(struct attention_parts *h, int reader, const struct recipe *recipes,
                           const unsigned *steps)
{
    const struct part *part = &h->p->at[reader];
    struct attention_parts before = *h;
    bool ok = part->match.reads && has_steps(h, reader, recipes, steps, "tensor");

    for (int t = 0; t < Q_K_V && ok; t++)
        ok = take_read(h, reader, t) &&
             has_steps(h, -1 - part->from[part->match.reads[t].input], recipes, steps, "ring");
    if (!ok)
        *h = before;
    h->given[reader] = ok;
}

void attention_parts_find(const struct parts *p, const struct recipe *recipes,
                          const unsigned *steps, struct attention_parts *out)
{
    memset(out, 0, sizeof(*out));
    out->p = p;
    for (int i = 0; i < p->count; i++)
        take_attention(out, i, recipes, steps);
}

bool attention_parts_any(const struct parts *p)
{
    struct attention_parts h;

    attention_parts_find(p, NULL, NULL, &h);
    return h.count > 0;
}

bool attention_parts_alike(const struct attention_parts *h, int a, int b)
{
    return h->p->at[a].form == h->p->at[b].form && h->given[a] == h->given[b] &&
           h->head[a] == h->head[b];
}

struct scope *attention_parts_scope(const struct attention_parts *h, int part, struct arena *a)
{
    struct scope *s = scope_new(a, h->p->at[part].match.scope);

    if (h->given[part])
        scope_fact(s, "given");
    if (h->reader[part]) {
        scope_fact(s, "planes");
        scope_set(s, "plane_head", "%d", h->head[part]);
        scope_set(s, "plane_piece", "%d", WIDEST_PIECE / h->head[part] * h->head[part]);
    }
    return s;
}

/* ---- in the plan --------------------------------------------------------------------- */

void attention_parts_put_types(const struct attention_parts *h, struct buf *out)
{
    if (h->count)
        buf_puts(out,
                 "struct part_rows { // Q, K or V among the two fp16 parts of a product's "
                 "result\n"
                 "    int64_t apart, from; // elements: from high parts to low ones; before the "
                 "first row\n"
                 "    int lost;            // the place of its flags: the result is there in "
                 "fp32\n"
                 "    int row, mode[3];    // scales: from 64 rows to the next; in the batch's "
                 "dimensions\n"
                 "};\n"
                 "struct part_planes { // of a product, for its plan and attention's\n"
                 "    uint16_t *planes; // high parts, low ones, scales: (rows / 64, columns / "
                 "head)\n"
                 "    int64_t apart, columns;\n"
                 "    int32_t *lost;\n"
                 "    int number, from, until; // columns: of a product those of V; of an operand "
                 "its first\n"
                 "};\n");
}

void attention_parts_put_start(const struct attention_parts *h, struct buf *out)
{
    if (h->count)
        buf_printf(out,
                   "    int32_t *lost = (int32_t *)cutegen_workspace(call, %d);\n"
                   "    CUTEGEN_TRY(cutegen_memset(call, lost, 0, %d));\n",
                   h->count * 8, h->count * 8);
}

static void put_product(const struct attention_parts *h, int part, struct buf *out)
{
    long long columns = h->columns[part];
    int number = 0, n = part + 1;

    for (int i = 0; i < part; i++)
        number += h->reader[i] > 0;
    buf_printf(out,
               "    int64_t size%d = cutegen_numel(&t%d), scales%d = "
               "cutegen_ceil_div(size%d, 64 * %lld) * %lld;\n",
               n, n, n, n, columns, columns / h->head[part]);
    buf_printf(out,
               "    struct part_planes of_parts%d[] = {{(uint16_t *)pooled(call, &pool, %d, "
               "(size%d + scales%d) * 4), size%d, %lld, lost + %d, %d, %lld, %lld}};\n",
               n, n, n, n, n, columns, 2 * number, number, (long long)h->v_from[part],
               (long long)h->v_until[part]);
}

static void put_attention(const struct attention_parts *h, int part, struct buf *out)
{
    const struct part *at = &h->p->at[part];

    buf_printf(out, "    struct part_planes of_parts%d[] = {", part + 1);
    for (int t = 0; t < Q_K_V; t++)
        buf_printf(out, "%sof_parts%d[0]", t ? ", " : "", -at->from[at->match.reads[t].input]);
    buf_puts(out, "};\n");
    for (int t = 0; t < Q_K_V; t++)
        buf_printf(out, "    of_parts%d[%d].from = %lld;\n", part + 1, t,
                   (long long)at->match.reads[t].offset);
}

void attention_parts_put_part(const struct attention_parts *h, int part, struct buf *out)
{
    if (h->reader[part])
        put_product(h, part, out);
    if (h->given[part])
        put_attention(h, part, out);
}
