/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edit_search.c - SEARCH/REPLACE blocks.
 *
 *     <<<<<<< SEARCH
 *     lines exactly as in the source
 *     =======
 *     lines that replace them
 *     >>>>>>> REPLACE
 *
 * Any number of them, in one fenced block, in several, or without a fence. The quoted lines must
 * occur exactly once. The divider has as many signs as the opening marker, so that a shorter or
 * longer rule counts as code.
 */
#include "base/text.h"
#include "llm/edit/edit_parse.h"

#include <string.h>
#include <strings.h>

struct cursor {
    struct text text;
    size_t at;
};

static bool next_line(struct cursor *c, struct text *out, size_t *begin)
{
    struct text rest = {c->text.data + c->at, c->text.len - c->at};

    *begin = c->at;
    if (!text_next_line(&rest, out))
        return false;
    c->at = c->text.len - rest.len;
    while (out->len && (out->data[out->len - 1] == '\r' || out->data[out->len - 1] == ' '))
        out->len--;
    return true;
}

/* Length of the run of `sign` that begins a marker line with this word, or 0. */
static size_t marker(struct text line, char sign, const char *word)
{
    size_t n = 0, skip, len = strlen(word);

    while (line.len && (line.data[0] == ' ' || line.data[0] == '\t'))
        line.data++, line.len--;
    while (n < line.len && line.data[n] == sign)
        n++;
    if (n < 5)
        return 0;
    for (skip = n; skip < line.len && line.data[skip] == ' ';)
        skip++;
    if (line.len - skip < len || strncasecmp(line.data + skip, word, len) != 0)
        return 0;
    if (len == 0 && skip < line.len)
        return 0;
    return n;
}

bool edit_search_is(struct text block)
{
    struct cursor c = {block, 0};
    struct text line;
    size_t begin;

    while (next_line(&c, &line, &begin))
        if (marker(line, '<', "SEARCH"))
            return true;
    return false;
}

static void replace_found(struct edit_set *set, int number, struct text search, struct text replace)
{
    size_t old_count = 0, new_count = 0;
    const struct text *old = NULL, *new_lines = NULL;
    struct edit_found f;

    if (replace.len)
        new_lines = edit_split(replace, set->arena, &new_count);
    if (!search.len) {
        if (set->source->count == 0) {
            edit_set_add_quoted(set, number, 1, NULL, 0, new_lines, new_count);
            return;
        }
        edit_set_fail(set, number, "its SEARCH part is empty; quote the lines to change");
        return;
    }
    old = edit_split(search, set->arena, &old_count);
    f = edit_locate(set->source, old, old_count, 0);
    if (f.how != FOUND) {
        edit_fail_found(set, number, "the SEARCH lines", old, 0, f);
        return;
    }
    if (f.loose)
        edit_set_note(set, "edit %d matched line %zu except for white space", number, f.line);
    edit_set_add_quoted(set, number, f.line, old, old_count, new_lines, new_count);
}

/* Reads the rest of a block after its opening marker. */
static void read_one(struct edit_set *set, struct cursor *c, size_t run)
{
    size_t search_begin = c->at, search_end = 0, replace_begin = 0, begin;
    int number = ++set->edits, dividers = 0;
    struct text line;

    while (next_line(c, &line, &begin)) {
        if (marker(line, '<', "SEARCH")) {
            c->at = begin;
            break;
        }
        if (marker(line, '=', "") == run) {
            if (dividers++ == 0) {
                search_end = begin;
                replace_begin = c->at;
            }
        } else if (dividers && marker(line, '>', "REPLACE")) {
            if (dividers > 1) {
                edit_set_fail(set, number, "has %d dividers (=======); there must be one",
                              dividers);
                return;
            }
            replace_found(set, number,
                          (struct text){c->text.data + search_begin, search_end - search_begin},
                          (struct text){c->text.data + replace_begin, begin - replace_begin});
            return;
        }
    }
    edit_set_fail(set, number, "is not finished: no %s line follows its SEARCH",
                  dividers ? ">>>>>>> REPLACE" : "=======");
}

void edit_search_read(struct edit_set *set, struct text block)
{
    struct cursor c = {block, 0};
    struct text line;
    size_t begin, run;

    while (next_line(&c, &line, &begin)) {
        run = marker(line, '<', "SEARCH");
        if (run)
            read_one(set, &c, run);
    }
}
