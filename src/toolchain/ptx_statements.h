/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ptx_statements.h - normalise PTX to one statement per line.
 *
 * Inline assembly is a candidate's own text: statements may share a line or span several, and
 * braces may be anywhere. Searches in PTX use this form:
 *
 *     .visible .global .align 4 .u32 counter;      module scope: at the line's beginning
 *     {                                            so do the braces around a function's body
 *     <tab>mov.u32 %r1, %tid.x;                    inside a body: behind a tab
 *     }
 *
 * White space between words is one space; comments are gone.
 */
#ifndef TOOLCHAIN_PTX_STATEMENTS_H
#define TOOLCHAIN_PTX_STATEMENTS_H

#include "base/mem.h"

struct ptx_statements {
    struct text text; /* in the arena */
    int *line;        /* of the PTX, from 1, where line i + 1 of `text` began; in the arena */
    int count;
    /* 0, or the line of something that no compiler emits; the rest must not be used */
    int odd_line;
    const char *odd; /* "a comment within the line", ... */
};

void ptx_statements(struct text ptx, struct arena *a, struct ptx_statements *out);

#endif
