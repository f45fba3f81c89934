/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edit_diff.c - unified diffs as models write them.
 *
 * A hunk is placed by its lines, not by its header: the header's line number is where the search
 * begins, and its counts only tell how many blank lines at a hunk's end belong to it. Only lines
 * marked - and + become edits; context keeps the source's text.
 *
 * Invariants
 * 1. A line without a mark is context; an empty line is blank context.
 * 2. A hunk without old lines is placed by its number alone (after line N of -N,0).
 */
#include "base/text.h"
#include "llm/edit/edit_parse.h"

#include <ctype.h>
#include <string.h>

struct diff_hunk {
    int number;
    size_t line, old_counted, new_counted; /* of the header; line 0: none */
    bool counted;
    struct text *lines; /* including their marks */
    size_t count;
};

static bool is_hunk_header(struct text l)
{
    return l.len >= 2 && memcmp(l.data, "@@", 2) == 0;
}

/* "--- a" directly above "+++ b" names files and is not a deleted line. */
static bool is_file_header(const struct text *lines, size_t count, size_t i)
{
    return i + 2 < count && text_starts(lines[i], "--- ") && text_starts(lines[i + 1], "+++ ") &&
           is_hunk_header(lines[i + 2]);
}

bool edit_diff_is(struct text block)
{
    bool header = false, change = false;

    for (struct text l; text_next_line(&block, &l);) {
        header |= is_hunk_header(l);
        change |= header && l.len && (l.data[0] == '+' || l.data[0] == '-');
    }
    return header && change;
}

static bool read_number(const char **p, const char *end, size_t *out)
{
    size_t v = 0;
    const char *s = *p;

    while (s < end && isdigit((unsigned char)*s) && v < 100000000)
        v = v * 10 + (size_t)(*s++ - '0');
    if (s == *p)
        return false;
    *p = s;
    *out = v;
    return true;
}

/* "@@ -12,3 +12,4 @@"; a header without numbers is fine too. */
static void read_header(struct text l, struct diff_hunk *h)
{
    const char *p = memchr(l.data, '-', l.len), *end = l.data + l.len;
    size_t new_line = 0;

    h->old_counted = h->new_counted = 1;
    if (!p || !(p++, read_number(&p, end, &h->line)))
        return;
    if (p < end && *p == ',' && (p++, !read_number(&p, end, &h->old_counted)))
        return;
    p = memchr(p, '+', (size_t)(end - p));
    if (!p || !(p++, read_number(&p, end, &new_line)))
        return;
    if (p < end && *p == ',' && (p++, !read_number(&p, end, &h->new_counted)))
        return;
    h->counted = true;
}

static char line_mark(struct text l)
{
    if (!l.len)
        return ' ';
    return l.data[0] == '+' || l.data[0] == '-' || l.data[0] == ' ' || l.data[0] == '\\'
               ? l.data[0]
               : 'x'; /* no mark: context */
}

static struct text line_body(struct text l)
{
    if (l.len && line_mark(l) != 'x')
        l.data++, l.len--;
    return l;
}

/* Empty lines at the end beyond the header's counts belong to the reply, not to the
 * hunk. */
static void drop_tail(struct diff_hunk *h)
{
    size_t old = 0, fresh = 0;

    for (size_t i = 0; i < h->count; i++) {
        char m = line_mark(h->lines[i]);

        old += m != '+' && m != '\\';
        fresh += m != '-' && m != '\\';
    }
    while (h->count && h->lines[h->count - 1].len == 0 &&
           (!h->counted || (old > h->old_counted && fresh > h->new_counted))) {
        h->count--;
        old--;
        fresh--;
    }
}

/* One op per run of - and + lines. */
static void hunk_ops(struct edit_set *set, const struct diff_hunk *h, size_t line)
{
    size_t i = 0;

    while (i < h->count) {
        char m = line_mark(h->lines[i]);
        struct edit_op op = {.number = h->number, .line = line};
        struct text *fresh;

        if (m == '\\' || m == ' ' || m == 'x') {
            line += m != '\\';
            i++;
            continue;
        }
        fresh = arena_array(set->arena, h->count - i, sizeof(*fresh));
        for (; i < h->count; i++) {
            m = line_mark(h->lines[i]);
            if (m == '-')
                op.count++;
            else if (m == '+')
                fresh[op.new_count++] = line_body(h->lines[i]);
            else if (m != '\\')
                break;
        }
        op.new_lines = fresh;
        line += op.count;
        edit_set_add(set, op);
    }
}

static void hunk_place(struct edit_set *set, struct diff_hunk *h)
{
    struct text *old = arena_array(set->arena, h->count + 1, sizeof(*old));
    size_t count = 0;
    struct edit_found f;

    drop_tail(h);
    for (size_t i = 0; i < h->count; i++)
        if (line_mark(h->lines[i]) != '+' && line_mark(h->lines[i]) != '\\')
            old[count++] = line_body(h->lines[i]);
    if (count == 0) {
        if (!h->counted)
            edit_set_fail(set, h->number,
                          "has only added lines and no line number: nothing says "
                          "where they go; add context lines");
        else if (h->line > set->source->count)
            edit_set_fail(set, h->number, "adds after line %zu, but the source has %zu lines",
                          h->line, set->source->count);
        else
            hunk_ops(set, h, h->line + 1);
        return;
    }
    f = edit_locate(set->source, old, count, h->line);
    if (f.how != FOUND) {
        edit_fail_found(set, h->number, "its old lines", old, h->line, f);
        return;
    }
    if (h->line && f.line != h->line)
        edit_set_note(set, "edit %d was found at line %zu, not %zu", h->number, f.line, h->line);
    if (f.loose)
        edit_set_note(set, "edit %d matched line %zu except for white space", h->number, f.line);
    hunk_ops(set, h, f.line);
}

void edit_diff_read(struct edit_set *set, struct text block)
{
    size_t count, i = 0, files = 0;
    const struct text *lines = edit_split(block, set->arena, &count);
    struct text first_file = {0};

    for (size_t k = 0; k + 1 < count; k++) {
        struct text name = lines[k + 1];

        if (!is_file_header(lines, count, k))
            continue;
        if (files++ == 0)
            first_file = name;
        else if (!text_equal(first_file, name)) {
            edit_set_fail(set, set->edits + 1, "the diff changes two files; there is only one");
            return;
        }
    }
    while (i < count) {
        struct diff_hunk h = {0};
        size_t begin;

        if (!is_hunk_header(lines[i])) {
            i++;
            continue;
        }
        h.number = ++set->edits;
        read_header(lines[i], &h);
        for (begin = ++i; i < count && !is_hunk_header(lines[i]) &&
                          !is_file_header(lines, count, i) &&
                          !text_starts(lines[i], "diff --git ");)
            i++;
        h.count = i - begin;
        h.lines = arena_array(set->arena, h.count + 1, sizeof(*h.lines));
        for (size_t k = 0; k < h.count; k++)
            h.lines[k] = lines[begin + k];
        hunk_place(set, &h);
    }
}
