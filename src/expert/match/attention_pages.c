/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention_pages.c - paged attention: keys in pages that a table names, K = cache[table].
 *
 * Gathered, K has the table's dimensions (batch, pages of a sequence) and then
 * those of a page. Nests of K and V are taken apart into the cache's own
 * dimensions and the table's: a key is (page, place in it), a batch a row of
 * the table. So nothing is gathered; loads go through the table.
 */
#include "expert/match/attention.h"

#include <string.h>

static void add(struct nest *v, int *count, struct strand s)
{
    v->s[(*count)++] = s;
}

/* Of the gathered tensor's strand, what is the cache's or the table's; else a broadcast. */
static struct strand strand_of(const struct strand *s, const struct tensor *t, int first, int last,
                               int shift)
{
    if (s->dim < first || s->dim >= last)
        return (struct strand){.size = s->size, .dim = -1};
    return (struct strand){s->size, t->strides[s->dim + shift] * s->times, s->dim + shift, s->times,
                           s->whole};
}

/* Keys are pages and places in them: two strands, the outer one of the table. */
static bool split_rows(const struct nest *v, int tables, struct strand *page, struct strand *place)
{
    int i = v->first[v->dims - 2];

    if (v->first[v->dims - 1] - i != 2 || v->s[i].dim < 0 || v->s[i].dim >= tables ||
        v->s[i + 1].dim < tables || !v->s[i + 1].whole)
        return false;
    *page = v->s[i];
    *place = v->s[i + 1];
    return true;
}

/* Takes K or V apart: it becomes the cache's nest, `table` the table's. */
static bool take_apart(struct attention *q, int t, const struct node *pages, struct nest *table)
{
    const struct graph *g = q->g;
    const struct node *cache = graph_arg(g, pages, 0);
    const json_t *list = json_object_get(graph_arg_json(pages, 1, "indices"), "list");
    const struct node *index = graph_node(g, graph_id(json_array_get(list, 0)));
    struct nest from = q->nests[t], *v = &q->nests[t];
    int tables = index->t.dims, all = pages->t.dims, own = 0, theirs = 0;
    struct strand page, place;

    for (int d = 0; d < all; d++)
        if (from.from[d])
            return false;
    if (!split_rows(&from, tables, &page, &place))
        return false;
    q->page = place.size;
    *v = (struct nest){.input = cache->index, .dims = from.dims, .factor = from.factor};
    *table = (struct nest){.input = index->index, .dims = from.dims, .factor = 1};
    for (int d = 0; d < from.dims; d++) {
        v->first[d] = own;
        table->first[d] = theirs;
        for (int i = from.first[d]; i < from.first[d + 1] && d < from.dims - 2; i++) {
            add(v, &own, strand_of(&from.s[i], &cache->t, tables, all, 1 - tables));
            add(table, &theirs, strand_of(&from.s[i], &index->t, 0, tables, 0));
        }
        if (d == from.dims - 2)
            add(v, &own, strand_of(&place, &cache->t, tables, all, 1 - tables));
        if (d < from.dims - 1)
            continue;
        add(table, &theirs, strand_of(&page, &index->t, 0, tables, 0));
        for (int i = from.first[d]; i < from.first[d + 1]; i++) {
            if (from.s[i].dim < tables)
                return false;
            add(v, &own, strand_of(&from.s[i], &cache->t, tables, all, 1 - tables));
        }
    }
    v->first[v->dims] = own;
    table->first[table->dims] = theirs;
    return table->s[theirs - 1].whole;
}

bool attention_find_pages(struct attention *q, struct match *out)
{
    const struct node *k = attention_pages(q->g, q->core.k), *v = attention_pages(q->g, q->core.v);
    struct nest *table = &q->nests[AT_TABLE], other;

    if (!k || !v || !take_apart(q, AT_K, k, table))
        return match_no(out, q->a, "pages of keys in another order");
    int64_t page = q->page;
    if (!take_apart(q, AT_V, v, &other) || q->page != page || other.input != table->input ||
        memcmp(other.first, table->first, sizeof(other.first)) != 0)
        return match_no(out, q->a, "K and V in different pages");
    for (int i = 0; i < table->first[table->dims]; i++)
        if (other.s[i].size != table->s[i].size || other.s[i].dim != table->s[i].dim)
            return match_no(out, q->a, "K and V in different pages");
    q->names[AT_TABLE] = "Table";
    q->first_leaf = q->tensors = AT_TABLE + 1;
    return true;
}

void attention_fill_pages(struct attention *q, struct scope *s)
{
    scope_fact(s, "paged");
    scope_set(s, "page", "%lld", (long long)q->page);
    scope_set(s, "table_index", "%d", q->nests[AT_TABLE].input);
    scope_set(s, "table_ndim", "%d", attention_tensor(q, AT_TABLE)->dims);
}
