/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edit_parse.h - private to edit*.c: a source as lines, and edits before they are applied.
 *
 * Each format's file turns a block into ops (edit_set_add) or reports what is wrong with it
 * (edit_set_fail). edit.c checks all ops together and applies them.
 */
#ifndef LLM_EDIT_PARSE_H
#define LLM_EDIT_PARSE_H

#include "base/buf.h"
#include "llm/edit/edit.h"

#include <stdint.h>

enum { EDIT_MODES = 3 }; /* exact; without trailing blanks; blanks collapsed */

struct edit_line {
    struct text text; /* without its line end */
    struct text end;  /* "\n", "\r\n" or "" */
    uint64_t hash[EDIT_MODES];
};

struct edit_source {
    struct edit_line *lines;
    size_t count;
    struct text eol; /* line end of new lines */
    bool indented;   /* Python: blanks at the beginning of a line are never passed over */
};

/* `count` lines from `line` on become new_lines; count 0 inserts before `line`. */
struct edit_op {
    size_t line, count;
    const struct text *new_lines;
    size_t new_count;
    int number; /* number of the edit in the reply, from 1 */
    int block;  /* block of the reply; the same edit in two blocks counts once */
};

struct edit_set {
    const struct edit_source *source;
    struct arena *arena;
    struct edit_op *ops;
    size_t count, cap;
    int edits, block;
    struct buf reasons, notes;
};

struct edit_found {
    enum { FOUND, FOUND_NOT, FOUND_TWICE } how;
    size_t line, other; /* 1-based; other: the second place if FOUND_TWICE */
    bool loose;         /* it matched except for white space */
};

struct edit_source edit_source_of(struct text t, struct arena *a);
/* Finds these lines: at `hint` (0: none), else at the only place where they occur. */
struct edit_found edit_locate(const struct edit_source *s, const struct text *want, size_t count,
                              size_t hint);
/* Splits at newlines; a final newline does not begin another line. */
const struct text *edit_split(struct text t, struct arena *a, size_t *count);
/* Do these lines begin with line numbers as in prompts ("  12| code")? */
bool edit_has_numbers(const struct text *lines, size_t count);

void edit_set_add(struct edit_set *set, struct edit_op op);
/* Adds ops for those lines that differ between the quoted and the new lines. */
void edit_set_add_quoted(struct edit_set *set, int number, size_t line, const struct text *old,
                         size_t old_count, const struct text *new_lines, size_t new_count);
void edit_set_fail(struct edit_set *set, int number, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void edit_set_note(struct edit_set *set, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Reports why `want` could not be placed, with the text found at the expected place. */
void edit_fail_found(struct edit_set *set, int number, const char *what, const struct text *want,
                     size_t hint, struct edit_found f);

/* Is this text an edit of that format, even a broken one? */
bool edit_json_is(struct text block);
bool edit_json_is_list(struct text block);
void edit_json_read(struct edit_set *set, struct text block);
/* Finds edits in prose without a fence; returns the last one. */
bool edit_json_unfenced(struct text prose, struct text *out);
bool edit_search_is(struct text block);
void edit_search_read(struct edit_set *set, struct text block);
bool edit_diff_is(struct text block);
void edit_diff_read(struct edit_set *set, struct text block);

#endif
