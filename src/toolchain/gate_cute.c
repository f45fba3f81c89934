/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate_cute.c - check before compiling that a source claims to use CuTe.
 *
 * A kernel, and a header of CuTe. Whether CuTe does the work is decided from
 * the compiled code (ptx_cute.h), by the files its lines come from; so no candidate may claim that
 * a line comes from another file.
 */
#include "toolchain/gate.h"

#include <ctype.h>
#include <string.h>

static bool includes_cute(const struct gate *g)
{
    for (size_t i = 0; i + 3 < g->t.count; i++)
        if (g->t.at[i].first && token_is(&g->t.at[i], "#") &&
            token_is(&g->t.at[i + 1], "include") && (gate_sees(g, i) & HALF_DEVICE)) {
            const struct token *t = &g->t.at[i + 2];
            if (text_starts(t->text, "\"cute/") ||
                (token_is(t, "<") &&
                 (token_is(&g->t.at[i + 3], "cute") || token_is(&g->t.at[i + 3], "cutlass"))))
                return true;
        }
    return false;
}

/* ---- #line, however it is spelled ---------------------------------------- */

/* Skips blanks and comments, which may span lines. */
static const char *skip_blanks(const char *p, const char *end)
{
    for (;;) {
        while (p < end && (*p == ' ' || *p == '\t' || *p == '\v' || *p == '\f'))
            p++;
        if (end - p < 2 || p[0] != '/' || p[1] != '*')
            return p;
        p = memmem(p + 2, (size_t)(end - p - 2), "*/", 2);
        if (!p)
            return end;
        p += 2;
    }
}

static bool is_line_directive(const char *p, const char *end)
{
    struct text rest;

    p = skip_blanks(p, end);
    rest = (struct text){p, (size_t)(end - p)};
    if (text_starts(rest, "#"))
        p += 1;
    else if (text_starts(rest, "%:"))
        p += 2;
    else if (text_starts(rest, "?\?="))
        p += 3;
    else
        return false;
    p = skip_blanks(p, end);
    rest = (struct text){p, (size_t)(end - p)};
    return (p < end && isdigit((unsigned char)*p)) ||
           (text_starts(rest, "line") && (end - p == 4 || !isalnum((unsigned char)p[4])));
}

/* The text without "\\ newline"; with blanks between the two, which compilers do not agree on. */
static struct text spliced(struct text source, struct arena *a)
{
    char *out = arena_alloc(a, source.len + 1);
    size_t n = 0;

    for (size_t i = 0; i < source.len; i++) {
        size_t k = i + 1;

        while (source.data[i] == '\\' && k < source.len && strchr(" \t\v\f\r", source.data[k]))
            k++;
        if (source.data[i] == '\\' && k < source.len && source.data[k] == '\n')
            i = k;
        else
            out[n++] = source.data[i];
    }
    return (struct text){out, n};
}

/* Checks every place where a directive could possibly begin: at the start of a line and at the end
 * of a comment. So the result does not depend on how a lexer reads the
 * source. */
static bool moves_lines(struct text t)
{
    const char *end = t.data + t.len;

    for (const char *p = t.data; p < end; p++) {
        bool begins = p == t.data || p[-1] == '\n' || p[-1] == '\r' ||
                      (p - t.data >= 2 && p[-2] == '*' && p[-1] == '/');

        if (begins && is_line_directive(p, end))
            return true;
    }
    return false;
}

void gate_check_cute(struct gate *g)
{
    int kernel_line = 0;

    for (size_t i = 0; i < g->t.count && kernel_line == 0; i++)
        if ((gate_sees(g, i) & HALF_DEVICE) && token_is(&g->t.at[i], "__global__"))
            kernel_line = g->t.at[i].line;
    if (kernel_line == 0)
        gate_add(g, 0, "no kernel", "no __global__ function under #ifdef CUTEGEN_DEVICE");
    else if (!includes_cute(g))
        gate_add(g, kernel_line, "no CuTe",
                 "the kernel must be written in CuTe: include "
                 "<cute/tensor.hpp> and index through its tensors");
    if (g->out->finding_count == 0 &&
        (moves_lines(g->source) || moves_lines(spliced(g->source, g->a))))
        gate_add(g, 0, "directive", "#line may not be used, nor a line that begins like one");
}

void gate_check_cuda(struct gate *g)
{
    int kernel_line = 0;

    for (size_t i = 0; i < g->t.count && !kernel_line; i++)
        if ((gate_sees(g, i) & HALF_DEVICE) && token_is(&g->t.at[i], "__global__"))
            kernel_line = g->t.at[i].line;
    if (kernel_line == 0)
        gate_add(g, 0, "no kernel", "no __global__ function under #ifdef CUTEGEN_DEVICE");
    else if (includes_cute(g))
        gate_add(g, kernel_line, "CuTe",
                 "the target is plain CUDA C++: include no header of CuTe or CUTLASS");
}
