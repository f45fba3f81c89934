/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wrap.c - lines that fit the terminal.
 *
 * On a terminal, text is wrapped between words and indented. In a pipe or a file every line stays
 * whole, for programs and grep. Help is for people, also in a pager, so it is always wrapped.
 */
#include "cli/cmd.h"

#include "base/buf.h"
#include "base/text.h"

#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { LEAST = 40, PAGE = 80 };

int terminal_columns(FILE *to)
{
    struct winsize size;

    if (!isatty(fileno(to)) || ioctl(fileno(to), TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return 0;
    return size.ws_col < LEAST ? LEAST : size.ws_col;
}

/* Columns that UTF-8 text takes. */
static int columns_of(const char *text, size_t len)
{
    int n = 0;

    for (size_t i = 0; i < len; i++) {
        if (text[i] == '\033') /* colour escapes take no column */
            while (i < len && text[i] != 'm')
                i++;
        else
            n += (text[i] & 0xC0) != 0x80;
    }
    return n;
}

typedef void put_fn(FILE *to, const char *text, size_t len);

static void put_plain(FILE *to, const char *text, size_t len)
{
    fwrite(text, 1, len, to);
}

/* Width 0: everything on one line. */
static void put_words(FILE *to, const char *text, size_t len, int width, int used, int indent,
                      put_fn *put)
{
    if (!width) {
        put(to, text, len);
        fputc('\n', to);
        return;
    }
    for (size_t at = 0; at < len;) {
        size_t blank = strspn(text + at, " "), end;

        blank = at + blank > len ? len - at : blank;
        for (end = at + blank; end < len && text[end] != ' ';)
            end++;
        if (used + columns_of(text + at, end - at) > width && used > indent) {
            fprintf(to, "\n%*s", indent, "");
            used = indent;
            at += blank;
        }
        put(to, text + at, end - at);
        used += columns_of(text + at, end - at);
        at = end;
    }
    fputc('\n', to);
}

void print_wrapped(FILE *to, const char *text, size_t len, int used, int indent)
{
    put_words(to, text, len, terminal_columns(to), used, indent, print_visible);
}

void print_help(FILE *to, const char *text, size_t len, int used, int indent)
{
    int width = terminal_columns(to);

    put_words(to, text, len, width ? width : PAGE, used, indent, print_visible);
}

void print_page(const struct buf *page, int indent)
{
    struct text rest = {page->data, page->len}, line;

    while (text_next_line(&rest, &line))
        put_words(stdout, line.data, line.len, terminal_columns(stdout), 0, indent, put_plain);
}

void print_log(void *ctx, const char *text, size_t len)
{
    (void)ctx;
    print_wrapped(stderr, text, len, 0, 2);
}

void print_fit(int indent, const char *fmt, ...)
{
    struct buf b = buf_init(64 << 10);
    va_list ap;

    va_start(ap, fmt);
    buf_vprintf(&b, fmt, ap);
    va_end(ap);
    put_words(stdout, b.data ? b.data : "", b.len, terminal_columns(stdout), 0, indent, put_plain);
    buf_release(&b);
}
