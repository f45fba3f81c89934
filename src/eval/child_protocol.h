/* SPDX-License-Identifier: Apache-2.0 */
/* child_protocol.h - one JSON question to a child process, one JSON answer back (private to
 * src/eval). */
#ifndef EVAL_CHILD_PROTOCOL_H
#define EVAL_CHILD_PROTOCOL_H

#include "base/error.h"
#include "base/proc.h"

#include <jansson.h>

enum talk_end {
    TALK_ANSWER,  /* *answer is an object, a new reference */
    TALK_LATE,    /* no answer within the deadline */
    TALK_ENDED,   /* the process has ended */
    TALK_GARBAGE, /* a line that is not a JSON object, or far too long; why says which */
};

/* Takes ownership of the request. */
enum talk_end talk(struct child *c, json_t *request_take, int deadline_ms, size_t answer_limit,
                   json_t **answer, struct error *why);
/* The last lines that a child wrote to stderr, at most max bytes; "" if none. */
const char *talk_last_words(const struct child *c, size_t max, struct arena *a);
/* Turns {"ok": false, ...} into an error; true when the answer is ok. */
bool talk_ok(const json_t *answer, struct error *err);

#endif
