/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ptx_statements.h - PTX with one statement on a line, however it was written.
 *
 * Inline assembly is a candidate's own text: statements may share a line or be spread over several,
 * and braces stand where they like. A search in PTX uses this form of it:
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
    int odd_line; /* 0, or where something is that no compiler writes; the rest is not to be read */
    const char *odd; /* "a comment within the line", ... */
};

void ptx_statements(struct text ptx, struct arena *a, struct ptx_statements *out);

#endif
