/* SPDX-License-Identifier: Apache-2.0 */
/* part_table.c - the comment lines that describe the parts of a file; see part_table.h. */
#include "expert/compose/part_table.h"

#include "base/parts.h"

#include <string.h>

enum { NAMES_SHOWN = 6, NAME_BYTES = 60, OPS_SHOWN = 12 };

/* Names come from tasks: only letters, digits and . _ - are written into a comment. */
static bool is_plain(const char *name)
{
    return *name && strlen(name) <= NAME_BYTES &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
               strlen(name);
}

/* What it computes, in order, each name once. */
static void put_ops(const struct graph *g, struct arena *a, struct buf *out)
{
    const char *shown[OPS_SHOWN];
    int count = 0;

    for (int i = 0; i < g->count && count < OPS_SHOWN; i++) {
        const struct node *n = &g->nodes[i];
        bool seen = !strchr(n->op, '.') || graph_rearranges(n);
        const char *name = seen ? "" : graph_short_name(n->op, a);

        for (int k = 0; k < count && !seen; k++)
            seen = strcmp(shown[k], name) == 0;
        if (seen || !is_plain(name))
            continue;
        buf_printf(out, "%s%s", count ? ", " : "", name);
        shown[count++] = name;
    }
    if (!count)
        buf_puts(out, graph_ops(g, a)); /* it only moves elements */
    else if (count == OPS_SHOWN)
        buf_puts(out, ", ...");
}

/* The results of parts first: they make the data flow. Then names of the task's inputs. */
static void put_reads(const struct part *part, struct buf *out)
{
    int shown = 0, inputs = 0;

    for (int k = 0; k < part->g->in_count; k++)
        if (part->from[k] < 0)
            buf_printf(out, "%spart %d", shown++ ? ", " : PARTS_READS, -part->from[k]);
    for (int k = 0; k < part->g->in_count; k++) {
        const char *name = part->g->in[k].name;

        if (part->from[k] < 0 || inputs++ >= NAMES_SHOWN)
            continue;
        buf_puts(out, shown++ ? ", " : PARTS_READS);
        if (name && is_plain(name))
            buf_puts(out, name);
        else
            buf_printf(out, "input %d", part->from[k]);
    }
    if (inputs > NAMES_SHOWN)
        buf_printf(out, ", %d more", inputs - NAMES_SHOWN);
}

/* The bytes of what a tensor's elements occupy: a repeated dimension counts once. */
static double bytes_of(const struct tensor *t)
{
    double n = expr_bytes(t->dtype);

    for (int d = 0; d < t->dims; d++)
        n *= t->strides[d] == 0 ? 1 : (double)t->shape[d];
    return n;
}

static double traffic(const struct part *part)
{
    double sum = bytes_of(&part->g->out[0]);

    for (int k = 0; k < part->g->in_count; k++)
        sum += bytes_of(&part->g->in[k]);
    return sum;
}

void part_table_put(const struct parts *p, struct arena *a, struct buf *out)
{
    for (int i = 0; i < p->count; i++) {
        const struct part *part = &p->at[i];
        const struct tensor *y = &part->g->out[0];

        buf_printf(out, PARTS_LINE "%d, %s: ", i + 1, part->match.recipe);
        put_ops(part->g, a, out);
        put_reads(part, out);
        buf_puts(out, PARTS_MAKES "(");
        for (int d = 0; d < y->dims; d++)
            buf_printf(out, "%s%lld", d ? ", " : "", (long long)y->shape[d]);
        buf_printf(out, ") %s" PARTS_MOVES "%.0f bytes\n", y->dtype, traffic(part));
    }
}

void part_table_put_mark(int part, struct buf *out)
{
    buf_printf(out, "    cutegen_part(call, %d);\n", part + 1);
}
