/* SPDX-License-Identifier: Apache-2.0 */
/* tunables.c - see tunables.h. */
#include "base/tunables.h"

#include "base/buf.h"
#include "base/text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 32, MAX_SOURCE = 8 << 20 };

/* ---- finding declarations --------------------------------------------------- */

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* The end of the comment, string or directive that begins at p; p itself if none does. */
static const char *skip_text(const char *p, const char *end, const char *begin)
{
    if (*p == '#' && (p == begin || p[-1] == '\n')) { /* for example the macro's own definition */
        while (p < end && *p != '\n')
            p += *p == '\\' && p + 1 < end ? 2 : 1;
        return p;
    }
    if (*p == '/' && p + 1 < end && p[1] == '/') {
        while (p < end && *p != '\n')
            p++;
        return p;
    }
    if (*p == '/' && p + 1 < end && p[1] == '*') {
        for (p += 2; p + 1 < end && !(p[0] == '*' && p[1] == '/');)
            p++;
        return p + 1 < end ? p + 2 : end;
    }
    if (*p == '"') {
        for (p++; p < end && *p != '"' && *p != '\n';)
            p += *p == '\\' && p + 1 < end ? 2 : 1;
        return p < end ? p + 1 : end;
    }
    return p;
}

/* The place after `word` and its "(" if the source has them at p; else NULL. */
static const char *call_of(const char *p, const char *end, const char *begin, const char *word)
{
    size_t len = strlen(word);

    if ((size_t)(end - p) <= len || strncmp(p, word, len) != 0 || is_word(p[len]) ||
        (p > begin && is_word(p[-1])))
        return NULL;
    for (p += len; p < end && isspace((unsigned char)*p);)
        p++;
    return p < end && *p == '(' ? p + 1 : NULL;
}

static const char *closing(const char *p, const char *end)
{
    int depth = 1;

    for (; p < end && *p != ';'; p++) {
        depth += (*p == '(') - (*p == ')');
        if (depth == 0)
            return p;
    }
    return NULL;
}

static bool bad(struct error *err, const char *text, size_t len)
{
    error_set(err, ERROR_USE, "CUTEGEN_TUNE(%.*s) cannot be read", (int)(len < 80 ? len : 80),
              text);
    return error_hint(err, "a name and 1 to %d different integers: CUTEGEN_TUNE(BM, 64, 128)",
                      TUNABLE_VALUES_MAX);
}

static int by_value(const void *x, const void *y)
{
    int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;

    return (a > b) - (a < b);
}

/* "BM, 64, 128, 256" */
static bool read_tunable(const char *p, const char *close, const char *begin, struct arena *a,
                         struct tunable *t, struct error *err)
{
    const char *from = p, *name;
    int64_t first = 0;

    while (p < close && isspace((unsigned char)*p))
        p++;
    for (name = p; p < close && is_word(*p);)
        p++;
    *t = (struct tunable){.name = arena_strndup(a, name, (size_t)(p - name))};
    while (p < close && isspace((unsigned char)*p))
        p++;
    if (!*t->name || isdigit((unsigned char)*t->name) || p == close || *p != ',')
        return bad(err, from, (size_t)(close - from));
    t->begin = (size_t)(p + 1 - begin);
    t->end = (size_t)(close - begin);
    while (p < close) {
        char *after;
        int64_t v = strtoll(p + 1, &after, 0); /* p is at a comma */

        if (after == p + 1 || after > close || t->count == TUNABLE_VALUES_MAX)
            return bad(err, from, (size_t)(close - from));
        for (p = after; p < close && isspace((unsigned char)*p);)
            p++;
        for (int i = 0; i < t->count; i++)
            if (t->values[i] == v)
                return bad(err, from, (size_t)(close - from));
        if (p < close && *p != ',')
            return bad(err, from, (size_t)(close - from));
        first = t->count ? first : v;
        t->values[t->count++] = v;
    }
    qsort(t->values, (size_t)t->count, sizeof(*t->values), by_value);
    while (t->values[t->now] != first)
        t->now++;
    return true;
}

bool tunables_read(struct text source, struct arena *a, struct tunables *out, struct error *err)
{
    const char *begin = source.data, *end = begin + source.len;

    *out = (struct tunables){0};
    for (const char *p = begin; p < end;) {
        const char *next = skip_text(p, end, begin), *in, *close;

        if (next > p) {
            p = next;
            continue;
        }
        if ((in = call_of(p, end, begin, "CUTEGEN_TUNE")) != NULL) {
            close = closing(in, end);
            if (!close || out->count == TUNABLES_MAX)
                return error_set(err, ERROR_USE,
                                 close ? "a kernel may have %d tunables"
                                       : "a CUTEGEN_TUNE without its ) (of at most %d)",
                                 TUNABLES_MAX);
            if (!read_tunable(in, close, begin, a, &out->list[out->count++], err))
                return false;
            p = close;
        } else if ((in = call_of(p, end, begin, "CUTEGEN_TUNE_IF")) != NULL) {
            close = closing(in, end);
            if (!close || out->condition_count == TUNABLE_CONDITIONS_MAX)
                return error_set(err, ERROR_USE,
                                 close ? "a kernel may have %d conditions on its tunables"
                                       : "a CUTEGEN_TUNE_IF without its ) (of at most %d)",
                                 TUNABLE_CONDITIONS_MAX);
            out->conditions[out->condition_count++] = arena_strndup(a, in, (size_t)(close - in));
            p = close;
        } else {
            p++;
        }
    }
    return true;
}

/* ---- conditions ---------------------------------------------------------------- */

struct reading {
    const char *p;
    const struct tunables *t;
    const int *at;
    const char *why; /* why it cannot be read; NULL: it can */
    bool undefined;  /* a division by zero, an overflow */
    int depth;
};

static void blanks(struct reading *r)
{
    while (isspace((unsigned char)*r->p))
        r->p++;
}

static bool take(struct reading *r, const char *word)
{
    blanks(r);
    if (strncmp(r->p, word, strlen(word)) != 0)
        return false;
    r->p += strlen(word);
    return true;
}

static int64_t read_or(struct reading *r);

static int64_t read_name(struct reading *r)
{
    const char *from = r->p;

    while (is_word(*r->p))
        r->p++;
    for (int i = 0; i < r->t->count; i++)
        if (strlen(r->t->list[i].name) == (size_t)(r->p - from) &&
            strncmp(r->t->list[i].name, from, (size_t)(r->p - from)) == 0)
            return r->t->list[i].values[r->at[i]];
    r->why = "it names something that is not a tunable";
    return 0;
}

static int64_t read_atom(struct reading *r)
{
    int64_t v = 0;
    char *after;

    if (++r->depth > MAX_DEPTH) {
        r->why = "it is nested too deeply";
    } else if (take(r, "!")) {
        v = !read_atom(r);
    } else if (take(r, "-")) {
        r->undefined |= __builtin_sub_overflow(0, read_atom(r), &v);
    } else if (take(r, "(")) {
        v = read_or(r);
        if (!take(r, ")") && !r->why)
            r->why = "a ) is missing";
    } else if (isdigit((unsigned char)*r->p)) {
        v = strtoll(r->p, &after, 0);
        r->p = after;
    } else if (is_word(*r->p)) {
        v = read_name(r);
    } else if (!r->why) {
        r->why = "a number or a name is missing";
    }
    r->depth--;
    return v;
}

static int64_t read_product(struct reading *r)
{
    int64_t v = read_atom(r);

    for (; !r->why; blanks(r)) {
        char op = (blanks(r), *r->p);
        int64_t w;

        if (!op || !strchr("*/%", op))
            return v;
        r->p++;
        w = read_atom(r);
        if (op == '*')
            r->undefined |= __builtin_mul_overflow(v, w, &v);
        else if (w == 0 || w == -1) /* -1: INT64_MIN cannot be negated */
            r->undefined = true;
        else
            v = op == '/' ? v / w : v % w;
    }
    return v;
}

static int64_t read_sum(struct reading *r)
{
    int64_t v = read_product(r);

    for (;;) {
        if (r->why)
            return v;
        if (take(r, "+"))
            r->undefined |= __builtin_add_overflow(v, read_product(r), &v);
        else if (take(r, "-"))
            r->undefined |= __builtin_sub_overflow(v, read_product(r), &v);
        else
            return v;
    }
}

static int64_t read_comparison(struct reading *r)
{
    int64_t v = read_sum(r);

    if (take(r, "<="))
        return v <= read_sum(r);
    if (take(r, ">="))
        return v >= read_sum(r);
    if (take(r, "=="))
        return v == read_sum(r);
    if (take(r, "!="))
        return v != read_sum(r);
    if (take(r, "<"))
        return v < read_sum(r);
    if (take(r, ">"))
        return v > read_sum(r);
    return v;
}

static int64_t read_and(struct reading *r)
{
    int64_t v = read_comparison(r);

    while (!r->why && take(r, "&&")) {
        int64_t w = read_comparison(r);

        v = v && w;
    }
    return v;
}

static int64_t read_or(struct reading *r)
{
    int64_t v = read_and(r);

    while (!r->why && take(r, "||")) {
        int64_t w = read_and(r);

        v = v || w;
    }
    return v;
}

bool tunables_hold(const struct tunables *t, const int *at, struct error *err)
{
    for (int i = 0; i < t->condition_count; i++) {
        struct reading r = {.p = t->conditions[i], .t = t, .at = at};
        int64_t v = read_or(&r);

        blanks(&r);
        if (!r.why && *r.p)
            r.why = "something follows it";
        if (r.why)
            return error_set(err, ERROR_USE, "CUTEGEN_TUNE_IF(%.80s): %s", t->conditions[i], r.why);
        if (!v || r.undefined)
            return false;
    }
    return true;
}

/* ---- writing --------------------------------------------------------------------- */

struct text tunables_set(struct text source, const struct tunables *t, const int *at,
                         struct arena *a)
{
    struct buf b = buf_init(MAX_SOURCE);
    struct text out;
    size_t from = 0;

    for (int i = 0; i < t->count; i++) {
        const struct tunable *x = &t->list[i];

        buf_add(&b, source.data + from, x->begin - from);
        buf_printf(&b, " %lld", (long long)x->values[at[i]]);
        for (int k = 0; k < x->count; k++)
            if (k != at[i])
                buf_printf(&b, ", %lld", (long long)x->values[k]);
        from = x->end;
    }
    buf_add(&b, source.data + from, source.len - from);
    out = buf_copy(&b, a);
    buf_release(&b);
    return out;
}

const char *tunables_words(const struct tunables *t, const int *at, struct arena *a)
{
    const char *words = "";

    for (int i = 0; i < t->count; i++)
        words = arena_printf(a, "%s%s%s %lld", words, i ? ", " : "", t->list[i].name,
                             (long long)t->list[i].values[at[i]]);
    return words;
}
