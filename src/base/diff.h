/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff.h - line differences between two texts.
 *
 * The shortest edit script by lines, as Myers finds it. Texts with too little in common are
 * reported as all lines removed, then all lines added.
 */
#ifndef BASE_DIFF_H
#define BASE_DIFF_H

#include "base/mem.h"

enum diff_kind { DIFF_SAME, DIFF_GONE, DIFF_NEW };

struct diff_line {
    enum diff_kind kind;
    struct text text;   /* without its newline; borrowed from the input */
    int old_at, new_at; /* line numbers from 1; 0: not in that text */
};

struct diff {
    struct diff_line *lines;
    size_t count;
    int gone, added;
};

struct diff diff_make(struct text before, struct text after, struct arena *a);

#endif
