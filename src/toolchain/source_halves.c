/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_halves.c - which lines of a candidate its device half and its plan half see.
 *
 * A stack of the open conditionals; each knows the halves that include its content. A conditional
 * that is not about CUTEGEN_* hides nothing and is kept.
 */
#include "toolchain/source_halves.h"

#include "base/text.h"

#include <string.h>

enum { MAX_NESTING = 64, BOTH = HALF_DEVICE | HALF_HOST };

struct open_if {
    int before; /* what was seen outside */
    int inside; /* what is seen now */
    bool ours;  /* about CUTEGEN_* */
};

struct splitter {
    struct halves *h;
    struct open_if stack[MAX_NESTING];
    int depth, lost; /* lost: nesting beyond the stack, left alone */
    int seen;
    int next_line; /* first line not yet given a mask */
};

/* The halves in which a condition holds; -1: not ours. `t` begins after "#". */
static int condition(const struct token *t, size_t n)
{
    bool negative = n > 0 && token_is(&t[0], "ifndef");
    size_t i = 1;
    int mask;
    if (n < 2)
        return -1;
    if (token_is(&t[0], "if")) {
        if (i < n && token_is(&t[i], "!")) {
            negative = true;
            i++;
        }
        if (i >= n || !token_is(&t[i++], "defined"))
            return -1;
        if (i < n && token_is(&t[i], "("))
            i++;
    }
    if (i >= n)
        return -1;
    if (token_is(&t[i], "CUTEGEN_DEVICE"))
        mask = HALF_DEVICE;
    else if (token_is(&t[i], "CUTEGEN_HOST"))
        mask = HALF_HOST;
    else if (token_is(&t[i], "CUTEGEN_EXPORT"))
        mask = 0;
    else
        return -1;
    for (i++; i < n; i++)
        if (!token_is(&t[i], ")"))
            return -1; /* && and the like */
    return negative ? BOTH & ~mask : mask;
}

/* Gives the lines before `line` the mask of what surrounds them. */
static void fill(struct splitter *s, int line)
{
    for (; s->next_line < line && s->next_line <= s->h->lines; s->next_line++)
        s->h->seen[s->next_line] = (unsigned char)s->seen;
}

static void open_conditional(struct splitter *s, int mask)
{
    if (s->depth == MAX_NESTING) {
        s->lost++;
        return;
    }
    s->stack[s->depth].before = s->seen;
    s->stack[s->depth].ours = mask >= 0;
    s->seen = mask >= 0 ? s->seen & mask : s->seen;
    s->stack[s->depth].inside = s->seen;
    s->depth++;
}

/* Returns whether the directive's own lines must be removed. */
static bool follow(struct splitter *s, const struct token *t, size_t n)
{
    struct open_if *top = s->depth > 0 ? &s->stack[s->depth - 1] : NULL;
    if (n == 0)
        return false;
    if (token_is(&t[0], "if") || token_is(&t[0], "ifdef") || token_is(&t[0], "ifndef")) {
        int mask = condition(t, n);
        open_conditional(s, mask);
        return mask >= 0;
    }
    if (top == NULL || (s->lost > 0 && !token_is(&t[0], "endif")))
        return false;
    if (token_is(&t[0], "else") && top->ours) {
        s->seen = top->before & ~top->inside;
        return true;
    }
    if (token_is(&t[0], "endif")) {
        if (s->lost > 0) {
            s->lost--;
            return false;
        }
        s->seen = top->before;
        s->depth--;
        return top->ours;
    }
    return false;
}

struct halves halves_of(struct text source, struct tokens t, struct arena *a)
{
    struct halves h = {.lines = (int)text_line_count(source) + 1};
    struct splitter s = {.h = &h, .seen = BOTH, .next_line = 1};

    h.seen = arena_alloc(a, (size_t)h.lines + 2);
    for (size_t i = 0; i < t.count; i++) {
        size_t end;
        if (!t.at[i].first || !token_is(&t.at[i], "#"))
            continue;
        end = lex_directive_end(t, i);
        fill(&s, t.at[i].line);
        if (follow(&s, &t.at[i + 1], end - i - 1))
            s.next_line = t.at[end - 1].last_line + 1; /* their mask stays 0 */
        i = end - 1;
    }
    fill(&s, h.lines + 1);
    return h;
}

struct text halves_view(struct text source, enum half half, struct arena *a)
{
    struct halves h = halves_of(source, lex(source, a), a);
    char *out = arena_alloc(a, source.len + 1);
    size_t n = 0;
    int line = 1;
    for (size_t i = 0; i < source.len; i++) {
        if (source.data[i] == '\n' || (h.seen[line] & half))
            out[n++] = source.data[i];
        line += source.data[i] == '\n';
    }
    return (struct text){out, n};
}
