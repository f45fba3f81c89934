/* SPDX-License-Identifier: Apache-2.0 */
/* ptx_lex.c - one pass over the bytes; "::" joins a word, ':' ends a label. */
#include "simt/ptx/ptx_lex.h"

#include <stdlib.h>
#include <string.h>

static bool word_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$' || c == '%' || c == '.';
}

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

static void skip_blank(struct ptx_lexer *lx)
{
    while (lx->p < lx->end) {
        char c = *lx->p;
        size_t left = (size_t)(lx->end - lx->p);
        if (c == '\n') {
            lx->line++;
            lx->p++;
        } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
            lx->p++;
        } else if (left >= 2 && c == '/' && lx->p[1] == '/') {
            const char *nl = memchr(lx->p, '\n', left);
            lx->p = nl ? nl : lx->end;
        } else if (left >= 2 && c == '/' && lx->p[1] == '*') {
            lx->p += 2;
            while (lx->p < lx->end &&
                   !(lx->end - lx->p >= 2 && lx->p[0] == '*' && lx->p[1] == '/')) {
                lx->line += *lx->p == '\n';
                lx->p++;
            }
            lx->p = lx->end - lx->p >= 2 ? lx->p + 2 : lx->end;
        } else {
            return;
        }
    }
}

static void lex_string(struct ptx_lexer *lx, struct ptx_token *t)
{
    lx->p++;
    t->s = lx->p;
    while (lx->p < lx->end && *lx->p != '"' && *lx->p != '\n')
        lx->p += (*lx->p == '\\' && lx->end - lx->p > 1 && lx->p[1] != '\n') ? 2 : 1;
    t->kind = TOKEN_STRING;
    t->len = (size_t)(lx->p - t->s);
    if (lx->p < lx->end && *lx->p == '"')
        lx->p++;
}

struct ptx_token lex_next(struct ptx_lexer *lx)
{
    skip_blank(lx);
    struct ptx_token t = {.kind = TOKEN_END, .s = lx->p, .len = 0, .line = lx->line};
    if (lx->p >= lx->end)
        return t;
    if (*lx->p == '"') {
        lex_string(lx, &t);
        return t;
    }
    if (!word_char(*lx->p)) {
        t.kind = TOKEN_MARK;
        t.len = 1;
        lx->p++;
        return t;
    }
    t.kind = digit(*lx->p) ? TOKEN_NUMBER : TOKEN_WORD;
    while (lx->p < lx->end) {
        if (word_char(*lx->p)) {
            lx->p++;
        } else if (t.kind == TOKEN_WORD && lx->end - lx->p > 2 && lx->p[0] == ':' &&
                   lx->p[1] == ':' && word_char(lx->p[2])) {
            lx->p += 2;
        } else {
            break;
        }
    }
    t.len = (size_t)(lx->p - t.s);
    return t;
}

struct ptx_token lex_peek(const struct ptx_lexer *lx)
{
    struct ptx_lexer copy = *lx;
    return lex_next(&copy);
}

bool lex_skip_balanced(struct ptx_lexer *lx, char open, char close)
{
    int depth = 1;
    while (depth) {
        struct ptx_token t = lex_next(lx);
        if (t.kind == TOKEN_END)
            return false;
        depth += token_mark(t, open);
        depth -= token_mark(t, close);
    }
    return true;
}

bool token_is(struct ptx_token t, const char *s)
{
    return t.kind == TOKEN_WORD && strlen(s) == t.len && memcmp(t.s, s, t.len) == 0;
}

bool token_mark(struct ptx_token t, char c)
{
    return t.kind == TOKEN_MARK && *t.s == c;
}

static bool hex_bits(const char *s, size_t digits, size_t len, uint64_t *bits)
{
    if (len != digits)
        return false;
    *bits = 0;
    for (size_t i = 0; i < len; i++) {
        char c = s[i];
        unsigned v;
        if (digit(c))
            v = (unsigned)(c - '0');
        else if (c >= 'a' && c <= 'f')
            v = (unsigned)(c - 'a' + 10);
        else if (c >= 'A' && c <= 'F')
            v = (unsigned)(c - 'A' + 10);
        else
            return false;
        *bits = *bits << 4 | v;
    }
    return true;
}

enum number_kind token_number(struct ptx_token t, uint64_t *bits)
{
    char copy[64];
    if (t.kind != TOKEN_NUMBER || t.len >= sizeof copy || !t.len)
        return NUMBER_BAD;
    if (t.len > 2 && t.s[0] == '0' && (t.s[1] == 'f' || t.s[1] == 'F'))
        return hex_bits(t.s + 2, 8, t.len - 2, bits) ? NUMBER_F32 : NUMBER_BAD;
    if (t.len > 2 && t.s[0] == '0' && (t.s[1] == 'd' || t.s[1] == 'D'))
        return hex_bits(t.s + 2, 16, t.len - 2, bits) ? NUMBER_F64 : NUMBER_BAD;
    memcpy(copy, t.s, t.len);
    copy[t.len] = '\0';
    char *end;
    if (strchr(copy, '.')) {
        double d = strtod(copy, &end);
        memcpy(bits, &d, sizeof d);
        return *end ? NUMBER_BAD : NUMBER_F64;
    }
    bool binary = copy[0] == '0' && (copy[1] == 'b' || copy[1] == 'B');
    *bits = strtoull(binary ? copy + 2 : copy, &end, binary ? 2 : 0);
    if (*end == 'U')
        end++;
    return *end ? NUMBER_BAD : NUMBER_INT;
}
