/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.h - byte strings: lines, white space, UTF-8.
 *
 * A struct text (mem.h) borrows its bytes; what these functions return points into the same bytes
 * unless an arena is given. Text from outside may hold anything: NUL, no last newline, no UTF-8.
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include "base/mem.h"

#include <stdint.h>

/*
 * Takes the next line off `rest`, without its newline; false: nothing is left.
 *
 *     for (struct text line; text_next_line(&rest, &line);)
 */
bool text_next_line(struct text *rest, struct text *line);
/* The same, with its newline. */
bool text_next_whole_line(struct text *rest, struct text *line);
/* All lines; a final newline does not begin another one. */
struct text *text_lines(struct text t, struct arena *a, size_t *count);
size_t text_line_count(struct text t);
/* The line with this number, from 1; empty if there is none. */
struct text text_line(struct text t, int number);
/* The line that byte `at` is in. */
struct text text_line_around(struct text t, size_t at);
/* Without the white space (ASCII) at both ends. */
struct text text_trim(struct text t);
struct text text_trim_left(struct text t);

/* Length of t's first character, and its code; 0: t is empty or does not begin with valid UTF-8. */
size_t text_first_character(struct text t, uint32_t *code);
/* The same bytes if they are UTF-8 without NUL; else a copy with U+FFFD for each bad byte. */
struct text text_clean(struct text t, struct arena *a);
/* At most that many bytes, without half a character at the end. */
struct text text_cut(struct text t, size_t most);
/* Like vsnprintf(), but truncates between two characters. */
void text_format(char *out, size_t size, const char *fmt, va_list ap);

#endif
