/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_edits.c - the difference between two sources, as edits for a reply.
 *
 * Lines are matched by base/diff. A hunk whose old lines are empty or not unique in the source is
 * extended by adjacent lines as context until it is unique; adjacent hunks are merged.
 *
 * Invariant: hunks are ordered and disjoint in both sources, and the text between them is equal, so
 * applying all of them gives `to` exactly. In the worst case one hunk covers the whole file, which
 * is unique.
 */
#include "expert/compose/source_edits.h"

#include "base/buf.h"
#include "base/diff.h"
#include "base/error.h"
#include "base/text.h"

#include <string.h>

struct lines {
    struct text *at;
    size_t count;
};

struct hunk {
    size_t a0, a1, b0, b1; /* lines [a0,a1) of `from` become [b0,b1) of `to` */
};

static struct lines lines_of(struct text t, struct arena *a)
{
    struct lines l;

    l.at = text_lines(t, a, &l.count);
    return l;
}

static size_t hunks_find(struct text from, struct text to, struct arena *a, struct hunk *out)
{
    struct diff d = diff_make(from, to, a);
    size_t count = 0, i = 0, j = 0;

    for (size_t k = 0; k < d.count; k++) {
        enum diff_kind kind = d.lines[k].kind;

        if (kind != DIFF_SAME && (!count || out[count - 1].a1 != i || out[count - 1].b1 != j))
            out[count++] = (struct hunk){i, i, j, j};
        i += kind != DIFF_NEW;
        j += kind != DIFF_GONE;
        if (kind != DIFF_SAME)
            out[count - 1].a1 = i, out[count - 1].b1 = j;
    }
    return count;
}

static bool unique(const struct lines *x, size_t from, size_t to)
{
    size_t found = 0;

    if (from == to)
        return false;
    for (size_t i = 0; i + (to - from) <= x->count && found < 2; i++) {
        size_t k = 0;

        while (k < to - from && text_equal(x->at[i + k], x->at[from + k]))
            k++;
        found += k == to - from;
    }
    return found == 1;
}

static bool blank(const struct lines *x, size_t from, size_t to)
{
    for (; from < to; from++)
        if (x->at[from].len)
            return false;
    return true;
}

/* Adds a line of context on both sides, within the file. */
static void widen(struct hunk *h, const struct lines *x)
{
    if (h->a0 > 0)
        h->a0--, h->b0--;
    if (h->a1 < x->count)
        h->a1++, h->b1++;
}

static size_t hunks_merge(struct hunk *h, size_t count)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        if (kept && h[i].a0 <= h[kept - 1].a1 + 1) {
            if (h[i].a1 > h[kept - 1].a1) {
                h[kept - 1].a1 = h[i].a1;
                h[kept - 1].b1 = h[i].b1;
            }
        } else {
            h[kept++] = h[i];
        }
    }
    return kept;
}

static void put_lines(struct buf *out, const struct lines *l, size_t from, size_t to)
{
    for (; from < to; from++) {
        buf_add(out, l->at[from].data, l->at[from].len);
        buf_putc(out, '\n');
    }
}

struct text change_blocks(struct text from, struct text to, struct arena *a)
{
    struct lines x = lines_of(from, a), y = lines_of(to, a);
    struct hunk *h = arena_array(a, x.count + y.count + 1, sizeof(*h));
    struct buf out = buf_init(4 * (from.len + to.len) + 4096);
    size_t count = hunks_merge(h, hunks_find(from, to, a, h));
    struct text result;

    for (bool again = true; again;) {
        again = false;
        for (size_t i = 0; i < count; i++) {
            bool whole = h[i].a0 == 0 && h[i].a1 == x.count;

            if (!whole && (!unique(&x, h[i].a0, h[i].a1) || blank(&x, h[i].a0, h[i].a1))) {
                widen(&h[i], &x);
                again = true;
            }
        }
        count = hunks_merge(h, count);
    }
    for (size_t i = 0; i < count; i++) {
        buf_puts(&out, "<<<<<<< SEARCH\n");
        put_lines(&out, &x, h[i].a0, h[i].a1);
        buf_puts(&out, "=======\n");
        put_lines(&out, &y, h[i].b0, h[i].b1);
        buf_puts(&out, ">>>>>>> REPLACE\n");
    }
    if (out.overflowed)
        BUG("edits longer than both sources");
    result = buf_copy(&out, a);
    buf_release(&out);
    return result;
}
