/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fence.h - find the fenced blocks of a reply, which contain code and edits.
 *
 * A reply is prose around fenced blocks. This finds every block, whatever comes before it, and
 * returns its content unchanged, without the fence lines and, if the fence is indented, without
 * that indentation.
 *
 * Which block is the candidate's source (fence_code), in this order:
 * 1. Blocks inside reasoning (<think>...</think> and its kin) count only when
 *    no block outside it qualifies.
 * 2. A block with a CUTEGEN_PLAN is preferred to one with only a __global__, and that one to any
 *    other block of a C-like language. For a language of Python: def plan,
 *    then a kernel's decorator, then any block marked python. Code in another language
 *    than the one asked for is no source.
 * 3. Among equals the last one wins: a model's second thoughts come later.
 * 4. A block that is never closed counts only if its braces and its #if are
 *    (Python: its brackets and strings): half a file is of no use.
 * 5. Without any fence, a reply that has CUTEGEN_PLAN, or begins as a Python file and has
 *    def plan, is code as a whole.
 */
#ifndef LLM_FENCE_H
#define LLM_FENCE_H

#include "model.h"

struct fence {
    struct text info;  /* the text after the opening fence: "cpp", "json", "" */
    struct text body;  /* borrowed from the reply; in the arena if indentation was removed */
    size_t begin, end; /* bytes of the reply, fence lines included */
    bool closed;
    bool reasoning; /* is inside a reasoning section */
};

struct fence_list {
    const struct fence *items;
    size_t count;
};

struct fence_list fence_find(struct text reply, struct arena *a);

/* The candidate's source, in that language, out of a synthesis reply. False: there is none, and
 * *reason says why in words for the model. */
bool fence_code(struct text reply, enum language want, struct arena *a, struct text *out,
                const char **reason);

/* The one-line summary a reply may carry ("CHANGE: ..." outside the blocks), or NULL. */
const char *fence_change(struct text reply, struct arena *a);
/* The reason after "STOP:" at the beginning of a line: the model has nothing more to propose. */
const char *fence_stop(struct text reply, struct arena *a);

#endif
