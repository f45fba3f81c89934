/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff.h - which lines of one text became which lines of another.
 *
 * The shortest edit script by lines, as Myers finds it. Texts that have too
 * little in common to be worth the search come out as all removed, all added.
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
