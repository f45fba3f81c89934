/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lex.h - split C++ source into tokens, enough to check it without compiling.
 *
 * Line splices, comments, strings, raw strings and characters are handled as
 * a compiler would, so that nothing hides in them; there is no preprocessing.
 * Everything lives in the arena; token text is borrowed from it.
 */
#ifndef TOOLCHAIN_LEX_H
#define TOOLCHAIN_LEX_H

#include "base/mem.h"

enum token_kind { TOKEN_NAME, TOKEN_NUMBER, TOKEN_STRING, TOKEN_CHAR, TOKEN_PUNCT };

struct token {
    enum token_kind kind;
    struct text text; /* a string with its quotes */
    int line;         /* line of the file, from 1 */
    int last_line;    /* where it ends */
    bool first;       /* on its logical line: '#' here begins a directive */
};

struct tokens {
    const struct token *at;
    size_t count;
};

struct tokens lex(struct text source, struct arena *a);
bool token_is(const struct token *t, const char *text);
/* One past the last token of the directive that begins at `i`. */
size_t lex_directive_end(struct tokens t, size_t i);

#endif
