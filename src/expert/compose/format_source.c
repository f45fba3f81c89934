/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format_source.c - format composed source like hand-written source.
 *
 * A recipe aligns its shape comments for its slot names; filling the slots moves the columns. Runs
 * of adjacent lines that end in a comment are aligned again if the lines stay within the maximal
 * width. A longer code line is broken at the last comma that fits.
 */
#include "expert/compose/format_source.h"

#include "base/buf.h"
#include "base/text.h"

#include <stdint.h>
#include <string.h>

enum { WIDTH = 110 };

struct line {
    struct text text;
    size_t code; /* bytes before the trailing comment and its blanks; 0: no comment */
};

/* Finds the ` // ` of a trailing comment, outside strings. */
static size_t code_length(struct text t)
{
    bool string = false;

    for (size_t i = 0; i + 2 < t.len; i++) {
        if (t.data[i] == '"' && (i == 0 || t.data[i - 1] != '\\'))
            string = !string;
        if (!string && memcmp(t.data + i, "// ", 3) == 0) {
            while (i > 0 && t.data[i - 1] == ' ')
                i--;
            return i;
        }
    }
    return 0;
}

static struct text stripped(struct text t)
{
    while (t.len && (t.data[t.len - 1] == ' ' || t.data[t.len - 1] == '\t'))
        t.len--;
    return t;
}

static size_t split(struct text source, struct line *lines)
{
    size_t count = 0;

    for (struct text t; text_next_line(&source, &t);) {
        t = stripped(t);
        if (t.len == 0 && (count == 0 || lines[count - 1].text.len == 0))
            continue;
        lines[count++] = (struct line){t, code_length(t)};
    }
    while (count && lines[count - 1].text.len == 0)
        count--;
    return count;
}

/* Is byte i of the line a comma at this depth of parentheses, outside strings? Fills depth[]. */
static void depths(struct text t, unsigned char *depth)
{
    unsigned char now = 0;
    bool string = false;

    for (size_t i = 0; i < t.len; i++) {
        char c = t.data[i];

        if (c == '"' && (i == 0 || t.data[i - 1] != '\\'))
            string = !string;
        if (!string && (c == ')' || c == '}') && now > 0)
            now--;
        depth[i] = string ? UINT8_MAX : now;
        if (!string && (c == '(' || c == '{') && now < UINT8_MAX - 1)
            now++;
    }
}

/* The outermost list of the line: the depth of its commas, and the column its items begin at. */
static size_t list_level(struct text t, const unsigned char *depth, size_t indent, size_t *open)
{
    size_t level = UINT8_MAX, first = 0;

    for (size_t i = 0; i < t.len; i++)
        if (t.data[i] == ',' && depth[i] < level) {
            level = depth[i];
            first = i;
        }
    *open = indent;
    for (size_t i = 0; level < UINT8_MAX && i < first; i++)
        if ((t.data[i] == '(' || t.data[i] == '{') && (size_t)depth[i] + 1 == level)
            *open = i + 1;
    return level;
}

/* Breaks a long line at the commas of its outermost list, under the list's first item. */
static void put_code(struct buf *out, struct text t, struct arena *a)
{
    unsigned char *depth = arena_alloc(a, t.len + 1);
    size_t indent = 0, from = 0, column = 0, level, open;

    depths(t, depth);
    while (indent < t.len && t.data[indent] == ' ')
        indent++;
    if (indent + 1 < t.len && t.data[indent] == '/' && t.data[indent + 1] == '/') {
        buf_add(out, t.data, t.len); /* a comment has no list to break */
        return;
    }
    level = list_level(t, depth, indent, &open);
    if (open > WIDTH * 2 / 3)
        open = indent + 4;
    for (size_t i = 0; t.len > WIDTH && i + 1 < t.len; i++) {
        size_t to = i + 2;

        if (t.data[i] != ',' || t.data[i + 1] != ' ' || depth[i] != level)
            continue;
        while (to + 1 < t.len && !(t.data[to] == ',' && depth[to] == level))
            to++;
        if (column + (to - from) < WIDTH)
            continue;
        buf_add(out, t.data + from, i + 1 - from);
        buf_printf(out, "\n%*s", (int)open, "");
        from = i + 2;
        column = open;
    }
    buf_add(out, t.data + from, t.len - from);
}

static void put(struct buf *out, struct line l, size_t column, struct arena *a)
{
    const char *comment;
    size_t indent = 0;

    while (indent < l.text.len && l.text.data[indent] == ' ')
        indent++;
    if (!l.code && l.text.len - indent >= 2 && memcmp(l.text.data + indent, "//", 2) == 0) {
        buf_add(out, l.text.data,
                l.text.len); /* the whole line is a comment: its commas do not separate a list */
    } else if (!l.code) {
        put_code(out, l.text, a);
    } else {
        put_code(out, (struct text){l.text.data, l.code}, a);
        for (size_t i = l.code; i < column; i++)
            buf_putc(out, ' ');
        comment = memchr(l.text.data + l.code, '/', l.text.len - l.code);
        buf_add(out, comment, (size_t)(l.text.data + l.text.len - comment));
    }
    buf_putc(out, '\n');
}

struct text tidy_source(struct text source, struct arena *a)
{
    struct line *lines = arena_array(a, text_line_count(source) + 1, sizeof(*lines));
    size_t count = split(source, lines);
    struct buf out = buf_init(source.len * 4 + 1024);
    struct text result;

    for (size_t i = 0, end; i < count; i = end) {
        size_t column = 0;

        for (end = i; end < count && lines[end].code; end++) {
            size_t comment = lines[end].text.len - lines[end].code;

            if (lines[end].code + 1 > column && lines[end].code + 1 + comment <= WIDTH)
                column = lines[end].code + 1;
        }
        if (end == i)
            put(&out, lines[end++], 0, a);
        else
            for (size_t k = i; k < end; k++)
                put(&out, lines[k], lines[k].code + 1 > column ? lines[k].code + 1 : column, a);
    }
    result = buf_copy(&out, a);
    buf_release(&out);
    return result;
}
