/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ptx_module.c - check PTX written entirely by foreign code: only parts of a module of kernels are
 * allowed.
 *
 * NVRTC writes the module around a candidate's kernels, so for a .cu file only inline assembly in
 * functions is the author's. PTX from a process with foreign code is foreign from the first line.
 * What is outside functions must be on a short list; ptx_check_state() checks the inside.
 */
#include "toolchain/ptx_check.h"

#include "base/text.h"
#include "toolchain/ptx_statements.h"

#include <ctype.h>
#include <string.h>

static struct text next_word(struct text *rest)
{
    struct text t = text_trim_left(*rest);
    size_t n = 0;

    while (n < t.len && !isspace((unsigned char)t.data[n]))
        n++;
    *rest = (struct text){t.data + n, t.len - n};
    return (struct text){t.data, n};
}

static bool is_one_of(struct text word, const char *const *list)
{
    for (; *list; list++)
        if (text_equal(word, text_of(*list)))
            return true;
    return false;
}

/* Is this statement outside functions allowed in a module of kernels? */
static bool is_usual(struct text line)
{
    static const char *const plain[] = {"{", "}", ".version", ".target", ".file", ".address_size",
                                        NULL};
    static const char *const linkage[] = {".visible", ".weak", ".extern", NULL};
    static const char *const things[] = {".entry", ".func", ".global", ".const", ".shared", NULL};
    static const char *const foreign[] = {".shared", ".func",
                                          NULL}; /* the latter is reported later */
    struct text rest = line, word = next_word(&rest);
    bool outside = false;

    if (is_one_of(word, plain))
        return true;
    while (is_one_of(word, linkage)) {
        outside = outside || text_equal(word, text_of(".extern"));
        word = next_word(&rest);
    }
    return is_one_of(word, outside ? foreign : things);
}

bool ptx_check_module(const struct ptx_subject *s, struct arena *a, struct verdict *out)
{
    struct ptx_statements all;
    struct text rest, line;

    ptx_statements(s->ptx, a, &all);
    for (rest = all.text; text_next_line(&rest, &line);) {
        if (line.len == 0 || *line.data == '\t' || is_usual(line))
            continue;
        *out =
            (struct verdict){.kind = VERDICT_REFUSED,
                             .summary = arena_printf(
                                 a, "%s: its PTX has what a module of kernels does not need: %.*s",
                                 s->name, (int)(line.len < 80 ? line.len : 80), line.data),
                             .detail = ""};
        return false;
    }
    return true;
}
