/* SPDX-License-Identifier: Apache-2.0 */
/*
 * precompiled_source.c - a candidate as a header; see precompiled_source.h.
 *
 * Kernels become static device functions without a caller: NVRTC instantiates what they need while
 * it precompiles, but emits no code for them.
 */
#include "toolchain/precompiled_source.h"

#include "base/buf.h"
#include "toolchain/lex.h"

enum { HEADER_LIMIT = 8 << 20, MAX_NAMES = 64 };

/* Qualifiers that only a kernel may have. */
static bool is_kernel_word(const struct token *t, bool *has_list)
{
    static const struct {
        const char *word;
        bool list;
    } words[] = {{"__global__", false},
                 {"__grid_constant__", false},
                 {"__launch_bounds__", true},
                 {"__cluster_dims__", true},
                 {"__maxnreg__", true}};

    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (token_is(t, words[i].word)) {
            *has_list = words[i].list;
            return true;
        }
    return false;
}

/* One past the ")" that closes the "(" at `i`; `i` where there is none. */
static size_t after_list(struct tokens t, size_t i)
{
    size_t open = 0, from = i;

    for (; i < t.count; i++) {
        open += token_is(&t.at[i], "(");
        if (token_is(&t.at[i], ")") && --open == 0)
            return i + 1;
        if (open == 0)
            break;
    }
    return from;
}

static void put_tokens(struct buf *b, struct tokens t, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        buf_add(b, t.at[i].text.data, t.at[i].text.len);
        /* "<<" comes as two tokens */
        if (t.at[i].kind != TOKEN_PUNCT || i + 1 >= t.count || t.at[i + 1].kind != TOKEN_PUNCT)
            buf_puts(b, " ");
    }
}

/* Splits into include lines and the rest; false if precompiled_source.h's restrictions are
 * violated. */
static bool split(struct tokens t, struct buf *includes, struct buf *code)
{
    bool begun = false;

    for (size_t i = 0; i < t.count;) {
        const struct token *k = &t.at[i];
        bool list = false;

        if (k->first && token_is(k, "#")) {
            size_t end = lex_directive_end(t, i);
            bool pragma = i + 1 < end && token_is(&t.at[i + 1], "pragma");

            if (!pragma && (begun || i + 1 >= end || !token_is(&t.at[i + 1], "include")))
                return false;
            if (pragma)
                buf_puts(code, "\n");
            put_tokens(pragma ? code : includes, t, i, end);
            buf_puts(pragma ? code : includes, "\n");
            i = end;
            continue;
        }
        begun = true;
        if (k->kind == TOKEN_NAME && token_is(k, "extern") && i + 1 < t.count &&
            t.at[i + 1].kind == TOKEN_STRING)
            return false; /* extern "C" ignores namespaces */
        if (k->kind == TOKEN_NAME && is_kernel_word(k, &list)) {
            if (token_is(k, "__global__"))
                buf_puts(code, "static __attribute__((unused)) __device__ ");
            i = list ? after_list(t, i + 1) : i + 1;
            continue;
        }
        put_tokens(code, t, i, i + 1);
        i++;
    }
    return begun;
}

/* "#include < cute / tensor . hpp >" must be one again. */
static void close_up(struct buf *b)
{
    size_t n = 0;
    bool inside = false;

    for (size_t i = 0; i < b->len; i++) {
        char c = b->data[i];

        inside = c == '<' || (inside && c != '>' && c != '\n');
        if (c == ' ' && (inside || (i + 1 < b->len && b->data[i + 1] == '>')))
            continue;
        b->data[n++] = c;
    }
    b->len = n;
}

bool learn_includes(struct text device, struct arena *a, struct text *includes)
{
    struct buf lines = buf_init(HEADER_LIMIT), code = buf_init(HEADER_LIMIT);
    bool ok = split(lex(device, a), &lines, &code);

    close_up(&lines);
    *includes = arena_text(a, lines.data ? lines.data : "", lines.len);
    buf_release(&lines);
    buf_release(&code);
    return ok;
}

bool learn_header(struct text device, const json_t *names, struct arena *a, struct text *header)
{
    struct buf lines = buf_init(HEADER_LIMIT), code = buf_init(HEADER_LIMIT);
    struct buf out = buf_init(2 * HEADER_LIMIT);
    size_t count = json_array_size(names);
    bool ok = split(lex(device, a), &lines, &code) && count > 0 && count <= MAX_NAMES;

    if (ok) {
        close_up(&lines);
        buf_printf(&out, "%.*snamespace cutegen_learned {\n%.*s\n", (int)lines.len, lines.data,
                   (int)code.len, code.data);
        for (size_t i = 0; i < count; i++)
            buf_printf(&out,
                       "static __attribute__((unused)) __device__ void cutegen_use_%zu() "
                       "{ auto p = &%s; (void)p; }\n",
                       i, json_string_value(json_array_get(names, i)));
        buf_puts(&out, "}\n");
        *header = arena_text(a, out.data, out.len);
    }
    buf_release(&lines);
    buf_release(&code);
    buf_release(&out);
    return ok;
}
