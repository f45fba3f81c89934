/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ptx_lex.h - words, numbers, strings and marks of PTX text.
 *
 * A lexer is a value over borrowed text: copy it to look ahead. It never fails; an unknown
 * character becomes a one-character mark, and the reader reports what it expected.
 */
#ifndef SIMT_PTX_LEX_H
#define SIMT_PTX_LEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum token_kind { TOKEN_END, TOKEN_WORD, TOKEN_NUMBER, TOKEN_STRING, TOKEN_MARK };

struct ptx_token {
    enum token_kind kind;
    const char *s; /* inside the text; a string without its quotes */
    size_t len;
    int line;
};

struct ptx_lexer {
    const char *p, *end;
    int line;
};

struct ptx_token lex_next(struct ptx_lexer *lx);
struct ptx_token lex_peek(const struct ptx_lexer *lx);
/* After the opening mark was read: moves past the matching closing one.
 * False when the text ends first. */
bool lex_skip_balanced(struct ptx_lexer *lx, char open, char close);

bool token_is(struct ptx_token t, const char *s);
bool token_mark(struct ptx_token t, char c);

enum number_kind { NUMBER_BAD, NUMBER_INT, NUMBER_F32, NUMBER_F64 };
enum number_kind token_number(struct ptx_token t, uint64_t *bits);

#endif
