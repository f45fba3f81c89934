/* SPDX-License-Identifier: Apache-2.0 */
/*
 * overloads.c - the heads of a function's overloads; see overloads.h.
 *
 * CuTe writes a function as comment, template line, CUTE_HOST_DEVICE, type and
 * then the name at the beginning of a line. Nothing is parsed beyond that.
 */
#include "llm/prompt/overloads.h"

#include "base/buf.h"
#include "base/text.h"

#include <ctype.h>
#include <string.h>

enum { MAX_HEAD = 900, MAX_REMARK = 100 };

/* Where a line begins with `name` and a parenthesis. */
static const char *find_name(struct text t, const char *name)
{
    const char *end = t.data + t.len;
    size_t n = strlen(name);

    for (const char *p = t.data; (p = memmem(p, (size_t)(end - p), name, n)) != NULL; p++)
        if ((p == t.data || p[-1] == '\n') && p + n < end && p[n] == '(')
            return p;
    return NULL;
}

static const char *after_parameters(const char *p, const char *end)
{
    int open = 0;

    for (; p < end; p++) {
        open += *p == '(' ? 1 : *p == ')' ? -1 : 0;
        if (*p == ')' && open == 0)
            return p + 1;
    }
    return NULL;
}

/* The last "template" that begins a line before `p`; `p` itself when there is none. */
static const char *find_template(const char *begin, const char *p)
{
    for (const char *q = p; q > begin; q--)
        if ((q == begin || q[-1] == '\n') && strncmp(q, "template", 8) == 0)
            return q;
    return strncmp(begin, "template", 8) == 0 ? begin : p;
}

/* Runs of white space become one blank. */
static void put_squeezed(struct buf *b, const char *p, const char *end)
{
    for (bool blank = false; p < end; p++) {
        if (isspace((unsigned char)*p)) {
            blank = b->len > 0;
            continue;
        }
        if (blank && b->len > 0 && b->data[b->len - 1] != '(')
            buf_putc(b, ' ');
        blank = false;
        buf_putc(b, *p);
    }
}

/* The last line that says something of the comment right above `p`, without its slashes. */
static struct text remark_above(const char *begin, const char *p)
{
    while (p > begin) {
        const char *stop = p, *line;

        while (stop > begin && isspace((unsigned char)stop[-1]))
            stop--;
        for (line = stop; line > begin && line[-1] != '\n';)
            line--;
        if (stop - line < 2 || line[0] != '/' || line[1] != '/')
            break;
        p = line;
        line += strspn(line, "/ ");
        if (line < stop)
            return (struct text){line, (size_t)(stop - line)};
    }
    return (struct text){"", 0};
}

/* Whether the first of "template <class T, ..." is named by the parameters, and so deduced. */
static bool is_deduced(const char *first, const char *parameters, const char *stop)
{
    const char *end = first + strcspn(first, ",>="), *name;

    while (end > first && !isalnum((unsigned char)end[-1]) && end[-1] != '_')
        end--;
    for (name = end; name > first && (isalnum((unsigned char)name[-1]) || name[-1] == '_');)
        name--;
    return memmem(parameters, (size_t)(stop - parameters), name, (size_t)(end - name)) != NULL;
}

/* "requires DLayout::rank == 3 && ...": what the template line asks of its arguments. */
static void put_requirement(struct buf *b, const char *first, const char *at)
{
    static const char word[] = "__CUTE_REQUIRES";
    const char *p = memmem(first, (size_t)(at - first), word, strlen(word)), *stop;

    stop = p ? after_parameters(p, at) : NULL;
    if (!stop || stop - p > MAX_HEAD / 2)
        return;
    buf_puts(b, " requires ");
    put_squeezed(b, p + strlen(word) + 1, stop - 1);
}

char *overload_head(struct text passage, const char *name, struct arena *a)
{
    const char *end = passage.data + passage.len, *at = find_name(passage, name), *stop, *first,
               *angle;
    struct buf b = buf_init(MAX_HEAD + 16);
    struct text remark;
    char *out;

    stop = at ? after_parameters(at, end) : NULL;
    if (!stop || stop - at > MAX_HEAD / 2)
        return NULL;
    first = find_template(passage.data, at);
    angle = memchr(first, '\n', (size_t)(at - first));
    while (angle && angle < at && angle[-1] != '>') /* the template line may go on */
        angle = memchr(angle + 1, '\n', (size_t)(at - angle - 1));
    if (first < at && angle && angle - first < MAX_HEAD / 3 && !is_deduced(first, at, stop)) {
        put_squeezed(&b, first, angle);
        buf_putc(&b, ' ');
    }
    put_squeezed(&b, at, stop);
    put_requirement(&b, first, at);
    remark = remark_above(passage.data, first);
    if (remark.len > 0 && remark.len < MAX_REMARK)
        buf_printf(&b, "  // %.*s", (int)remark.len, remark.data);
    out = arena_strndup(a, b.data, b.len);
    buf_release(&b);
    return out;
}
