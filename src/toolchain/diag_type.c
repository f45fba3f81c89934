/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diag_type.c - shorten C++ type names to CuTe's notation.
 *
 * A compiler prints cute::Layout<cute::tuple<cute::_8, cute::C<4>>, ...>; the
 * user thinks (_8,_4):(_1,_8). A small recursive reader of name<arguments>;
 * unknown names are copied without namespaces.
 */
#include "base/buf.h"
#include "toolchain/diag.h"

#include <ctype.h>
#include <string.h>

enum { MAX_ARGUMENTS = 16, MAX_NESTING = 40, OUT_LIMIT = 4096 };

struct type_reader {
    const char *p, *end;
    struct arena *a;
    int depth;
};

static char *read_type(struct type_reader *r);

static void skip_spaces(struct type_reader *r)
{
    while (r->p < r->end && *r->p == ' ')
        r->p++;
}

/* "cute::detail::Layout" -> "Layout"; cuda::std::__4:: likewise. */
static char *read_word(struct type_reader *r)
{
    const char *begin = r->p, *last = r->p;
    while (r->p < r->end && (isalnum((unsigned char)*r->p) || *r->p == '_' || *r->p == ':')) {
        if (*r->p == ':')
            last = r->p + 1;
        r->p++;
    }
    if (r->p == begin && r->p < r->end) /* '*', '&', '(' ... one by one */
        return arena_strndup(r->a, r->p++, 1);
    return arena_strndup(r->a, last, (size_t)(r->p - last));
}

static char *join(struct arena *a, char *const *args, int count, const char *open,
                  const char *close)
{
    struct buf b = buf_init(OUT_LIMIT);
    buf_puts(&b, open);
    for (int i = 0; i < count; i++) {
        if (i > 0)
            buf_putc(&b, ',');
        buf_puts(&b, args[i]);
    }
    buf_puts(&b, close);
    char *out = arena_strndup(a, b.data ? b.data : "", b.len);
    buf_release(&b);
    return out;
}

static bool is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

/* Integral constants lose their suffix: C<4UL> -> _4. */
static char *constant(struct arena *a, const char *value)
{
    size_t n = strcspn(value, "uUlL");
    return arena_printf(a, "_%.*s", (int)n, value);
}

static char *spell(struct type_reader *r, const char *word, char **args, int n)
{
    struct arena *a = r->a;
    if (is(word, "tuple") || is(word, "Shape") || is(word, "Stride") || is(word, "Step") ||
        is(word, "Coord") || is(word, "Tile"))
        return join(a, args, n, "(", ")");
    if ((is(word, "C") || is(word, "Int") || is(word, "integral_constant")) && n > 0)
        return constant(a, args[n - 1]);
    if (is(word, "ScaledBasis") && n > 1)
        return arena_printf(a, "%s@%s", args[0], args[1]);
    if (is(word, "Layout") && n == 2)
        return arena_printf(a, "%s:%s", args[0], args[1]);
    if (is(word, "ComposedLayout") && n == 3)
        return arena_printf(a, "%s o %s o %s", args[0], args[1], args[2]);
    if (is(word, "Swizzle") && n == 3)
        return arena_printf(a, "Sw<%s,%s,%s>", args[0], args[1], args[2]);
    if (is(word, "ViewEngine") && n >= 1)
        return args[0];
    if (is(word, "ArrayEngine") && n >= 1)
        return arena_printf(a, "registers %s", args[0]);
    if ((is(word, "gmem_ptr") || is(word, "smem_ptr") || is(word, "rmem_ptr") ||
         is(word, "tmem_ptr")) &&
        n == 1)
        return arena_printf(a, "%.4s %s", word, args[0]);
    if (is(word, "Tensor") && n == 2)
        return arena_printf(a, "Tensor[%s %s]", args[0], args[1]);
    return arena_printf(a, "%s%s", word, join(a, args, n, "<", ">"));
}

static int read_arguments(struct type_reader *r, char **args)
{
    int n = 0;
    r->p++; /* '<' */
    skip_spaces(r);
    while (r->p < r->end && *r->p != '>') {
        char *one = read_type(r);
        if (n < MAX_ARGUMENTS)
            args[n++] = one;
        if (r->p < r->end && *r->p == ',')
            r->p++;
        skip_spaces(r);
    }
    if (r->p < r->end)
        r->p++;
    return n;
}

/* Words up to ',' or '>' of the surrounding list. */
static char *read_type(struct type_reader *r)
{
    struct buf b = buf_init(OUT_LIMIT);
    char *out;
    skip_spaces(r);
    if (++r->depth > MAX_NESTING)
        r->p = r->end;
    while (r->p < r->end && *r->p != ',' && *r->p != '>') {
        char *word, *args[MAX_ARGUMENTS];
        if (*r->p == ' ') {
            r->p++;
            if (b.len > 0 && r->p < r->end && *r->p != ',' && *r->p != '>' && *r->p != ' ')
                buf_putc(&b, ' ');
            continue;
        }
        word = read_word(r);
        if (r->p < r->end && *r->p == '<') {
            int n = read_arguments(r, args);
            word = spell(r, word, args, n);
        }
        buf_puts(&b, word);
    }
    r->depth--;
    out = arena_strndup(r->a, b.data ? b.data : "", b.len);
    buf_release(&b);
    return out;
}

char *diag_type(struct text type, struct arena *a)
{
    struct type_reader r = {.p = type.data, .end = type.data + type.len, .a = a};
    struct buf b = buf_init(OUT_LIMIT);
    char *out;
    while (r.p < r.end) { /* more than one type: a list of arguments */
        buf_puts(&b, read_type(&r));
        if (r.p < r.end)
            buf_putc(&b, *r.p++);
    }
    out = arena_strndup(a, b.data ? b.data : "", b.len);
    buf_release(&b);
    return out;
}
