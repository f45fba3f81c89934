/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edit_parse.h - private to edit*.c: a source as lines, and edits before they are applied.
 *
 * Each format's file turns a block into ops (edit_set_add) or says what is
 * wrong with it (edit_set_fail). edit.c checks all ops together and applies them.
 */
#ifndef LLM_EDIT_PARSE_H
#define LLM_EDIT_PARSE_H

#include "base/buf.h"
#include "llm/edit/edit.h"

#include <stdint.h>

enum { EDIT_MODES = 3 }; /* exact; without trailing blanks; blanks collapsed */

struct edit_line {
    struct text text; /* without its end */
    struct text end;  /* "\n", "\r\n" or "" */
    uint64_t hash[EDIT_MODES];
};

struct edit_source {
    struct edit_line *lines;
    size_t count;
    struct text eol; /* what new lines get */
    bool indented;   /* Python: blanks at the beginning of a line are never passed over */
};

/* `count` lines from `line` on become new_lines; count 0 inserts before `line`. */
struct edit_op {
    size_t line, count;
    const struct text *new_lines;
    size_t new_count;
    int number; /* of the edit in the reply, from 1 */
    int block;  /* of the reply; the same edit in two blocks counts once */
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
    size_t line, other; /* 1-based; other: the second place when FOUND_TWICE */
    bool loose;         /* blanks differ */
};

struct edit_source edit_source_of(struct text t, struct arena *a);
/* Where these lines stand: at `hint` (0: none) or else at the only place there is. */
struct edit_found edit_locate(const struct edit_source *s, const struct text *want, size_t count,
                              size_t hint);
/* Splits at newlines; one newline at the end ends the last line and adds none. */
const struct text *edit_split(struct text t, struct arena *a, size_t *count);
/* Do these lines carry the numbers that prompts show ("  12| code")? */
bool edit_has_numbers(const struct text *lines, size_t count);

void edit_set_add(struct edit_set *set, struct edit_op op);
/* Turns "these lines become those" into the ops for the lines that differ. */
void edit_set_add_quoted(struct edit_set *set, int number, size_t line, const struct text *old,
                         size_t old_count, const struct text *new_lines, size_t new_count);
void edit_set_fail(struct edit_set *set, int number, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void edit_set_note(struct edit_set *set, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Says why `want` could not be placed, with what stands where it was expected. */
void edit_fail_found(struct edit_set *set, int number, const char *what, const struct text *want,
                     size_t hint, struct edit_found f);

/* Each answers: is this text an edit of my kind (even a broken one)? */
bool edit_json_is(struct text block);
bool edit_json_is_list(struct text block);
void edit_json_read(struct edit_set *set, struct text block);
/* Finds edits that stand in prose without a fence; the last such value. */
bool edit_json_unfenced(struct text prose, struct text *out);
bool edit_search_is(struct text block);
void edit_search_read(struct edit_set *set, struct text block);
bool edit_diff_is(struct text block);
void edit_diff_read(struct edit_set *set, struct text block);

#endif
