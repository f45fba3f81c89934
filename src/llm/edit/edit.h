/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edit.h - apply the edits of a reply to a source, all of them or none.
 *
 *     struct edit_result r;
 *     edit_apply(source, reply.text, a, &r);
 *     EDIT_APPLIED   r.source is the new text, r.changes what was done
 *     EDIT_NOTHING   the reply has no edit; r.reason says what was searched for
 *     EDIT_REJECTED  r.source is the old text; r.reason tells the model why, per edit
 *
 * It never fails: a reply is data. docs/edits.md has the formats and the
 * rules for which block wins.
 *
 * Invariants
 * 1. All line numbers refer to the original source; edits do not shift each other.
 * 2. Any edit that does not fit (out of range, overlapping, anchor missing or ambiguous, no effect,
 *    unreadable) rejects the whole reply.
 * 3. Bytes outside the edited lines are unchanged; new lines get the source's line ending.
 */
#ifndef LLM_EDIT_H
#define LLM_EDIT_H

#include "base/mem.h"

#include <jansson.h>

enum edit_status { EDIT_APPLIED, EDIT_NOTHING, EDIT_REJECTED };
enum edit_format { EDIT_NONE, EDIT_JSON, EDIT_SEARCH, EDIT_DIFF };

struct edit_result {
    enum edit_status status;
    enum edit_format format;
    struct text source;  /* the resulting text, new or unchanged */
    const char *reason;  /* for the model; "" when applied */
    const char *changes; /* one line for people: "3 edits: lines 12-14, after 20, 31" */
    /* small corrections that were made ("edit 2 found 3 lines below"), or "" */
    const char *note;
    int edits; /* number of edits in the reply */
    int lines_added, lines_removed;
};

extern const char *const edit_status_names[3]; /* "applied" "nothing" "rejected" */
extern const char *const edit_format_names[4]; /* "none" "json" "search/replace" "diff" */

void edit_apply(struct text source, struct text reply, struct arena *a, struct edit_result *out);

/* {"status", "format", "edits", "reason", "changes", "note", "lines_added", "lines_removed"};
 * the caller json_decref()s it. */
json_t *edit_json(const struct edit_result *r);

/* The source as it appears in prompts, every line with its number: "  12| code". */
struct text edit_numbered(struct text source, struct arena *a);

#endif
