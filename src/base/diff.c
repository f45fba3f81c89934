/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff.c - Myers' O(ND) search between the lines both texts do not share at their ends.
 *
 * Invariants
 * 1. Reading SAME and GONE lines gives the old text, SAME and NEW the new one.
 * 2. The search keeps one row of diagonals per edit: EDITS_MAX bounds its
 *    memory and time whatever the texts are.
 */
#include "base/diff.h"

#include "base/text.h"

#include <string.h>

enum { EDITS_MAX = 2000 };

struct sides {
    const struct text *old, *new;
    int old_count, new_count; /* lines of the middle parts */
    int shared;               /* lines before the middles */
};

static void add_line(struct diff *d, enum diff_kind kind, struct text t, int old_at, int new_at)
{
    d->lines[d->count++] =
        (struct diff_line){.kind = kind, .text = t, .old_at = old_at + 1, .new_at = new_at + 1};
    if (kind == DIFF_GONE)
        d->lines[d->count - 1].new_at = 0;
    if (kind == DIFF_NEW)
        d->lines[d->count - 1].old_at = 0;
    d->gone += kind == DIFF_GONE;
    d->added += kind == DIFF_NEW;
}

/* The furthest x on diagonal k after one more edit; v is the previous row. */
static int step_from(const int *v, int k, int edits)
{
    if (k == -edits || (k != edits && v[k - 1] < v[k + 1]))
        return v[k + 1]; /* down: a line was added */
    return v[k - 1] + 1; /* right: a line was removed */
}

/* Rows of the search, rows[d] before edit d; the number of edits, or -1: too many. */
static int search(const struct sides *s, int **rows, struct arena *a)
{
    int total = s->old_count + s->new_count;
    int most = total < EDITS_MAX ? total : EDITS_MAX;
    int *v = (int *)arena_array(a, (size_t)(2 * most + 3), sizeof(int)) + most + 1;

    for (int d = 0; d <= most; d++) {
        rows[d] = (int *)arena_array(a, (size_t)(2 * d + 3), sizeof(int)) + d + 1;
        memcpy(rows[d] - d - 1, v - d - 1, (size_t)(2 * d + 3) * sizeof(int));
        for (int k = -d; k <= d; k += 2) {
            int x = step_from(v, k, d), y = x - k;
            while (x < s->old_count && y < s->new_count && text_equal(s->old[x], s->new[y]))
                x++, y++;
            v[k] = x;
            if (x >= s->old_count && y >= s->new_count)
                return d;
        }
    }
    return -1;
}

/* Walks the search back from its end; lines come out last first. */
static void walk_back(const struct sides *s, int edits, int **rows, struct diff *d)
{
    int x = s->old_count, y = s->new_count;

    for (int e = edits; e > 0; e--) {
        int k = x - y, from = step_from(rows[e], k, e);
        bool down = k == -e || (k != e && rows[e][k - 1] < rows[e][k + 1]);
        while (x > from && y > from - k) {
            x--, y--;
            add_line(d, DIFF_SAME, s->old[x], s->shared + x, s->shared + y);
        }
        if (down) {
            y--;
            add_line(d, DIFF_NEW, s->new[y], 0, s->shared + y);
        } else {
            x--;
            add_line(d, DIFF_GONE, s->old[x], s->shared + x, 0);
        }
    }
    while (x > 0 && y > 0) {
        x--, y--;
        add_line(d, DIFF_SAME, s->old[x], s->shared + x, s->shared + y);
    }
}

static void reverse(struct diff_line *lines, size_t count)
{
    for (size_t i = 0; i < count / 2; i++) {
        struct diff_line t = lines[i];
        lines[i] = lines[count - 1 - i];
        lines[count - 1 - i] = t;
    }
}

static void diff_middle(const struct sides *s, struct diff *d)
{
    size_t start = d->count;
    struct arena *work = arena_new();
    int total = s->old_count + s->new_count;
    int **rows =
        arena_array(work, (size_t)(total < EDITS_MAX ? total : EDITS_MAX) + 1, sizeof(*rows));
    int edits = search(s, rows, work);

    if (edits >= 0) {
        walk_back(s, edits, rows, d);
        reverse(d->lines + start, d->count - start);
    } else {
        for (int i = 0; i < s->old_count; i++)
            add_line(d, DIFF_GONE, s->old[i], s->shared + i, 0);
        for (int i = 0; i < s->new_count; i++)
            add_line(d, DIFF_NEW, s->new[i], 0, s->shared + i);
    }
    arena_free(work);
}

struct diff diff_make(struct text before, struct text after, struct arena *a)
{
    size_t n, m, head = 0, tail = 0;
    struct text *old = text_lines(before, a, &n), *new = text_lines(after, a, &m);
    struct diff d = {.lines = arena_array(a, n + m + 1, sizeof(*d.lines))};

    while (head < n && head < m && text_equal(old[head], new[head]))
        head++;
    while (tail < n - head && tail < m - head && text_equal(old[n - 1 - tail], new[m - 1 - tail]))
        tail++;
    for (size_t i = 0; i < head; i++)
        add_line(&d, DIFF_SAME, old[i], (int)i, (int)i);
    struct sides s = {.old = old + head,
                      .new = new + head,
                      .old_count = (int)(n - head - tail),
                      .new_count = (int)(m - head - tail),
                      .shared = (int)head};
    diff_middle(&s, &d);
    for (size_t i = 0; i < tail; i++)
        add_line(&d, DIFF_SAME, old[n - tail + i], (int)(n - tail + i), (int)(m - tail + i));
    return d;
}
