/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fence.c - the fenced blocks of a reply, found line by line.
 *
 * Hides how models write fences: indented, in quotes and lists, after prose on the same line,
 * opened and closed on one line, closed at the end of the last line of code, or never closed.
 *
 * Invariants
 * 1. Reasoning and the rest are scanned separately: a fence left open in reasoning does not swallow
 *    the answer.
 * 2. A block's body is a run of the reply's bytes without the fence's indentation; nothing else is
 *    removed at either end.
 */
#include "llm/edit/fence.h"

#include "base/buf.h"
#include "base/text.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum { MAX_BLOCKS = 4096, MAX_REGIONS = 256, MAX_DEPTH = 8 };

struct fence_line {
    size_t begin, end, next; /* end: without "\n" and "\r" */
};

struct fence_scan {
    const char *s;
    struct arena *arena;
    struct fence *items;
    size_t count, cap;
};

/* An opening or closing fence found in a line. */
struct mark {
    char c;
    size_t run;                /* how many of them */
    size_t at;                 /* where they begin */
    struct text info, inside;  /* inside: body on the same line */
    bool one_line, first_body; /* first_body: `inside` is the first line of the body */
};

static struct fence_line line_at(const char *s, size_t begin, size_t limit)
{
    const char *nl = memchr(s + begin, '\n', limit - begin);
    struct fence_line l = {begin, nl ? (size_t)(nl - s) : limit, nl ? (size_t)(nl - s) + 1 : limit};

    if (l.end > l.begin && s[l.end - 1] == '\r')
        l.end--;
    return l;
}

static bool one_of(char c, const char *set)
{
    return c && strchr(set, c);
}

/* Position of the first character after indentation, quote marks and list markers. */
static size_t after_prefix(const char *s, struct fence_line l)
{
    size_t i = l.begin, digits;

    while (i < l.end && (s[i] == ' ' || s[i] == '\t' || s[i] == '>'))
        i++;
    if (i + 1 < l.end && (s[i] == '-' || s[i] == '*' || s[i] == '+') && s[i + 1] == ' ')
        i += 2;
    for (digits = i; digits < l.end && isdigit((unsigned char)s[digits]);)
        digits++;
    if (digits > i && digits + 1 < l.end && (s[digits] == '.' || s[digits] == ')') &&
        s[digits + 1] == ' ')
        i = digits + 2;
    while (i < l.end && (s[i] == ' ' || s[i] == '\t'))
        i++;
    return i;
}

static size_t run_of(const char *s, size_t at, size_t end, char c)
{
    size_t n = 0;

    while (at + n < end && s[at + n] == c)
        n++;
    return n;
}

static bool info_is_code(struct text info)
{
    if (!info.len || (info.data[0] == '{' && info.data[info.len - 1] == '}' &&
                      !memchr(info.data, '"', info.len)))
        return false; /* "{.cpp}" */
    if (info.data[0] == '#' || info.data[0] == '[' || info.data[0] == '{' || info.data[0] == '<')
        return true;
    for (size_t i = 0; i < info.len; i++)
        if (one_of(info.data[i], ";(){}<>[]"))
            return true;
    return false;
}

/* Splits the text after an opening fence into a language and code on the same line. */
static void mark_info(struct mark *m, struct text rest)
{
    struct text t = text_trim(rest);
    size_t word = 0;

    m->info = t;
    if (!info_is_code(t))
        return;
    m->first_body = true;
    m->inside = rest;
    m->info = (struct text){"", 0};
    while (word < t.len && (isalnum((unsigned char)t.data[word]) || t.data[word] == '+'))
        word++;
    if (word && word < t.len && one_of(t.data[word], " \t")) {
        struct text tail = text_trim((struct text){t.data + word, t.len - word});

        if (tail.len && (tail.data[0] == '[' || tail.data[0] == '{')) {
            m->info = (struct text){t.data, word};
            m->inside = tail;
        }
    }
}

/* "Here it is: ```cpp": the only run of backticks in the line, followed by at most one word, not
 * inside a string. */
static bool mark_behind_prose(const char *s, struct fence_line l, struct mark *m)
{
    const char *tick = memmem(s + l.begin, l.end - l.begin, "```", 3);
    size_t quotes = 0;
    struct text rest;

    if (!tick)
        return false;
    m->c = '`';
    m->at = (size_t)(tick - s);
    m->run = run_of(s, m->at, l.end, '`');
    rest = (struct text){s + m->at + m->run, l.end - m->at - m->run};
    m->info = text_trim(rest);
    if (m->info.len && m->info.data != rest.data)
        return false; /* "``` word": a language has no blank before it */
    for (size_t k = 0; k < m->info.len; k++)
        if (!isalnum((unsigned char)m->info.data[k]) && !one_of(m->info.data[k], "+#-_."))
            return false;
    for (size_t k = l.begin; k < m->at; k++)
        quotes += s[k] == '"';
    return quotes % 2 == 0 && !memchr(s + l.begin, '`', m->at - l.begin);
}

/* Is there an opening fence in this line? */
static bool mark_open(const char *s, struct fence_line l, struct mark *m)
{
    size_t i = after_prefix(s, l), tail;
    struct text rest;

    memset(m, 0, sizeof(*m));
    m->c = i < l.end && (s[i] == '`' || s[i] == '~') ? s[i] : 0;
    m->run = m->c ? run_of(s, i, l.end, m->c) : 0;
    m->at = i;
    if (m->run < 3)
        return mark_behind_prose(s, l, m);
    rest = (struct text){s + i + m->run, l.end - i - m->run};
    tail = rest.len;
    while (tail && one_of(rest.data[tail - 1], " \t"))
        tail--;
    if (m->c == '`' && tail > m->run &&
        run_of(rest.data, tail - m->run, tail, '`') == m->run) { /* opened and closed on one line */
        struct text body = {rest.data, tail - m->run};

        m->one_line = true;
        mark_info(m, body);
        if (!m->first_body)
            m->inside = body, m->info = (struct text){"", 0};
        return !memchr(m->inside.data, '`', m->inside.len);
    }
    if (m->c == '`' && memchr(rest.data, '`', rest.len))
        return false; /* inline code, not a fence */
    mark_info(m, rest);
    return true;
}

static bool mark_closes(const char *s, struct fence_line l, const struct mark *open)
{
    size_t i = l.begin, n;

    while (i < l.end && (s[i] == ' ' || s[i] == '\t' || s[i] == '>'))
        i++;
    n = run_of(s, i, l.end, open->c);
    if (n < open->run)
        return false;
    for (i += n; i < l.end; i++)
        if (s[i] != ' ' && s[i] != '\t')
            return false;
    return true;
}

static void scan_add(struct fence_scan *sc, struct fence f)
{
    if (sc->count == MAX_BLOCKS)
        return;
    sc->items = arena_grow(sc->arena, sc->items, sc->count, &sc->cap, sizeof(*sc->items));
    sc->items[sc->count++] = f;
}

/* Removes the fence's indentation (or quote marks) from every line. */
static struct text body_unindent(struct fence_scan *sc, struct text body, const char *prefix,
                                 size_t width)
{
    struct buf out = buf_init(body.len + 1);
    struct text t;

    for (size_t i = 0; i < body.len;) {
        struct fence_line l = line_at(body.data, i, body.len);
        size_t k = 0;

        for (; k < width && l.begin < l.end; k++) {
            char c = body.data[l.begin];
            bool same = prefix[k] == '>' ? c == '>' : (c == ' ' || c == '\t');

            if (!same)
                break;
            l.begin++;
        }
        buf_add(&out, body.data + l.begin, l.next - l.begin);
        i = l.next;
    }
    t = buf_copy(&out, sc->arena);
    buf_release(&out);
    return t;
}

static bool info_is(struct text info, const char *const *words)
{
    size_t n = 0;

    while (n < info.len && !isspace((unsigned char)info.data[n]) && info.data[n] != '{' &&
           info.data[n] != ':')
        n++;
    for (; *words; words++)
        if (strlen(*words) == n && strncasecmp(info.data, *words, n) == 0)
            return true;
    return false;
}

static const char *const markdown_words[] = {"markdown", "md", NULL};

/* Where the block that opened before `begin` ends; sets *body_end and *closed. A block of markdown
 * may contain fences of its own, which are counted. */
static size_t block_end(const char *s, size_t begin, size_t limit, const struct mark *open,
                        size_t *body_end, bool *closed)
{
    bool page = info_is(open->info, markdown_words);
    int depth = 0;
    struct mark inner;

    for (size_t i = begin; i < limit;) {
        struct fence_line l = line_at(s, i, limit);

        if (mark_closes(s, l, open)) {
            if (depth == 0) {
                *body_end = l.begin;
                *closed = true;
                return l.next;
            }
            depth--;
        } else if (page && mark_open(s, l, &inner) && inner.info.len && !inner.one_line) {
            depth++;
        }
        i = l.next;
    }
    for (size_t i = begin; i < limit;) { /* closed at the end of a code line: "}```" */
        struct fence_line l = line_at(s, i, limit);
        size_t end = l.end;

        while (end > l.begin && one_of(s[end - 1], " \t"))
            end--;
        if (end - l.begin > open->run && open->c == '`' &&
            run_of(s, end - open->run, end, '`') == open->run) {
            *body_end = end - open->run;
            *closed = true;
            return l.next;
        }
        i = l.next;
    }
    *body_end = limit;
    *closed = false;
    return limit;
}

static void scan_region(struct fence_scan *sc, const char *s, size_t begin, size_t limit,
                        bool reasoning, int depth)
{
    for (size_t i = begin; i < limit && sc->count < MAX_BLOCKS;) {
        struct fence_line l = line_at(s, i, limit);
        struct fence f = {.begin = l.begin, .end = l.next, .closed = true, .reasoning = reasoning};
        size_t body_end = 0, body_begin;
        struct mark m;

        if (!mark_open(s, l, &m)) {
            i = l.next;
            continue;
        }
        f.info = m.info;
        f.body = m.inside;
        if (!m.one_line) {
            body_begin = m.first_body ? (size_t)(m.inside.data - s) : l.next;
            f.end = block_end(s, l.next, limit, &m, &body_end, &f.closed);
            if (body_end < body_begin)
                body_end = body_begin;
            f.body = (struct text){s + body_begin, body_end - body_begin};
            if (m.at > l.begin && after_prefix(s, l) == m.at && f.body.len)
                f.body = body_unindent(sc, f.body, s + l.begin, m.at - l.begin);
        }
        scan_add(sc, f);
        if (depth < MAX_DEPTH && info_is(f.info, markdown_words) && f.body.len) {
            size_t first = sc->count;

            scan_region(sc, f.body.data, 0, f.body.len, reasoning, depth + 1);
            for (size_t k = first; k < sc->count; k++) /* convert offsets to the whole reply's */
                sc->items[k].begin = f.begin, sc->items[k].end = f.end;
        }
        i = f.end;
    }
}

struct region {
    size_t begin, end;
};

/* The reasoning sections. A closing tag without an opening one means that the provider's template
 * opened it: all before it is reasoning. */
static size_t find_reasoning(struct text t, struct region *out)
{
    static const char *const tags[] = {"think", "thinking", "reasoning", "analysis", "thought"};
    size_t count = 0;

    for (size_t k = 0; k < ARRAY_LEN(tags); k++) {
        char open[16], close[16];
        size_t open_len = strlen(tags[k]) + 2, at = 0;

        open[0] = '<', close[0] = '<', close[1] = '/';
        memcpy(open + 1, tags[k], open_len - 2);
        memcpy(close + 2, tags[k], open_len - 2);
        open[open_len - 1] = close[open_len] = '>';
        while (at < t.len && count < MAX_REGIONS) {
            const char *rest = t.data + at;
            const char *o = memmem(rest, t.len - at, open, open_len);
            const char *c = memmem(rest, t.len - at, close, open_len + 1);

            if (!o && !c)
                break;
            if (c && (!o || c < o)) { /* never opened: only possible for the first section */
                if (at == 0)
                    out[count++] = (struct region){0, (size_t)(c - t.data) + open_len + 1};
                at = (size_t)(c - t.data) + open_len + 1;
                continue;
            }
            c = memmem(o, t.len - (size_t)(o - t.data), close, open_len + 1);
            out[count].begin = (size_t)(o - t.data);
            out[count].end = c ? (size_t)(c - t.data) + open_len + 1 : t.len;
            at = out[count++].end;
        }
    }
    return count;
}

static bool in_regions(size_t at, const struct region *r, size_t count, size_t *next)
{
    bool inside = false;

    for (size_t i = 0; i < count; i++) {
        if (at >= r[i].begin && at < r[i].end) {
            inside = true;
            if (r[i].end < *next)
                *next = r[i].end;
        } else if (r[i].begin > at && r[i].begin < *next) {
            *next = r[i].begin;
        }
    }
    return inside;
}

struct fence_list fence_find(struct text reply, struct arena *a)
{
    struct region regions[MAX_REGIONS];
    struct fence_scan sc = {.s = reply.data, .arena = a};
    size_t count = find_reasoning(reply, regions);

    for (size_t at = 0; at < reply.len;) {
        size_t next = reply.len;
        bool reasoning = in_regions(at, regions, count, &next);

        scan_region(&sc, reply.data, at, next, reasoning, 0);
        at = next;
    }
    return (struct fence_list){sc.items, sc.count};
}

/* ---- which block is the source ------------------------------------------- */

/* Skips a string, character or comment that begins at i; returns i if there is none. */
static size_t skip_quoted(struct text t, size_t i)
{
    char c = t.data[i];

    if (c == '/' && i + 1 < t.len && t.data[i + 1] == '/') {
        while (i < t.len && t.data[i] != '\n')
            i++;
    } else if (c == '/' && i + 1 < t.len && t.data[i + 1] == '*') {
        const char *e = memmem(t.data + i + 2, t.len - i - 2, "*/", 2);
        i = e ? (size_t)(e - t.data) + 2 : t.len;
    } else if (c == '"') {
        for (i++; i < t.len && t.data[i] != '"' && t.data[i] != '\n'; i++)
            if (t.data[i] == '\\')
                i++;
        i = i < t.len ? i + 1 : t.len;
    } else if (c == '\'' && i + 2 < t.len && (t.data[i + 2] == '\'' || t.data[i + 1] == '\\')) {
        i += t.data[i + 1] == '\\' ? 4 : 3;
        if (i > t.len)
            i = t.len;
    }
    return i;
}

/* Are all braces and #ifs closed? Required of an unclosed block. */
static bool code_is_whole(struct text t)
{
    long braces = 0, ifs = 0;
    bool line_start = true;

    for (size_t i = 0; i < t.len;) {
        size_t past = skip_quoted(t, i);

        if (past > i) {
            i = past;
            continue;
        }
        if (line_start && t.data[i] == '#') {
            size_t k = i + 1;

            while (k < t.len && (t.data[k] == ' ' || t.data[k] == '\t'))
                k++;
            ifs += t.len - k >= 2 && memcmp(t.data + k, "if", 2) == 0;
            ifs -= t.len - k >= 5 && memcmp(t.data + k, "endif", 5) == 0;
        }
        braces += t.data[i] == '{';
        braces -= t.data[i] == '}';
        if (t.data[i] == '\n')
            line_start = true;
        else if (t.data[i] != ' ' && t.data[i] != '\t')
            line_start = false;
        i++;
    }
    return braces == 0 && ifs == 0 && t.len > 0;
}

static bool text_has(struct text t, const char *needle)
{
    return memmem(t.data, t.len, needle, strlen(needle)) != NULL;
}

/* Does a line begin like this? */
static bool line_begins(struct text t, const char *begin)
{
    for (struct text line; text_next_line(&t, &line);)
        if (text_starts(line, begin))
            return true;
    return false;
}

/* Brackets and strings of a Python file are closed. */
static bool python_is_whole(struct text t)
{
    long open = 0;

    for (size_t i = 0; i < t.len; i++) {
        char c = t.data[i];

        if (c == '#') {
            while (i < t.len && t.data[i] != '\n')
                i++;
        } else if (c == '"' || c == '\'') {
            const char triple[] = {c, c, c};
            bool is_long = t.len - i >= 3 && !memcmp(t.data + i, triple, 3);
            size_t width = is_long ? 3 : 1;

            for (i += width; i + width <= t.len && memcmp(t.data + i, triple, width) != 0; i++)
                if (t.data[i] == '\\')
                    i++;
                else if (!is_long && t.data[i] == '\n')
                    return false;
            if (i + width > t.len)
                return false;
            i += width - 1;
        } else {
            open += c == '(' || c == '[' || c == '{';
            open -= c == ')' || c == ']' || c == '}';
        }
    }
    return open == 0 && t.len > 0;
}

/* 0: not a source; higher is better. */
static int cpp_rank(const struct fence *f)
{
    static const char *const code_words[] = {"c",  "cpp", "c++", "cu",  "cuda",
                                             "cc", "cxx", "h",   "hpp", NULL};

    if (!f->closed && !code_is_whole(f->body))
        return 0;
    if (text_has(f->body, "CUTEGEN_PLAN"))
        return 3;
    if (text_has(f->body, "__global__"))
        return 2;
    return info_is(f->info, code_words) ? 1 : 0;
}

static int python_rank(const struct fence *f)
{
    static const char *const code_words[] = {"python", "py", "python3", "triton", NULL};

    if (!f->closed && !python_is_whole(f->body))
        return 0;
    if (line_begins(f->body, "def plan"))
        return 3;
    if (line_begins(f->body, "@triton.jit") || line_begins(f->body, "@cute."))
        return 2;
    return info_is(f->info, code_words) && !text_has(f->body, "CUTEGEN_PLAN") ? 1 : 0;
}

/* Likewise, and *python: which of the two it is. */
static int code_rank(const struct fence *f, bool *python)
{
    int cpp, py;

    *python = false;
    if (text_has(f->body, "<<<<<<<") && text_has(f->body, ">>>>>>>"))
        return 0;
    if (text_starts(f->body, "--- ") || text_starts(f->body, "@@ ") ||
        text_starts(f->body, "diff "))
        return 0;
    if (info_is(f->info, markdown_words))
        return 0; /* the blocks inside it are listed separately */
    cpp = cpp_rank(f);
    py = python_rank(f);
    *python = py > cpp || (py == cpp && py > 1);
    return *python ? py : cpp;
}

/* The best block in C++ (python: in Python). *cut: some block is not closed. */
static const struct fence *best_block(const struct fence_list *list, bool python, bool *cut)
{
    const struct fence *best = NULL;

    for (int reasoning = 0; reasoning < 2 && !best; reasoning++) {
        int rank = 1;

        for (size_t i = 0; i < list->count; i++) {
            const struct fence *f = &list->items[i];
            bool is_python;
            int found = code_rank(f, &is_python);

            if (f->reasoning == (reasoning == 1) && is_python == python && found >= rank) {
                best = f;
                rank = found;
            }
            *cut |= !f->closed;
        }
    }
    return best;
}

/* Written for the other of the two languages of Python? By what it imports. */
static bool other_python(struct text code, enum language want)
{
    bool triton = line_begins(code, "@triton.") || line_begins(code, "import triton") ||
                  line_begins(code, "from triton");
    bool dsl = line_begins(code, "@cute.") || line_begins(code, "import cutlass") ||
               line_begins(code, "from cutlass");

    return want == LANGUAGE_TRITON ? dsl && !triton : triton && !dsl;
}

static const char *wrong_language(const char *is, enum language want, struct arena *a)
{
    if (!languages[want].python)
        return arena_printf(a,
                            "the kernel of the reply is written in %s, and this run wants %s. Send "
                            "the whole .cu file, with CUTEGEN_PLAN, in one fenced block (```cpp "
                            "... ```).",
                            is, want == LANGUAGE_CUDA ? "CUDA C++" : "CuTe C++");
    return arena_printf(a,
                        "the kernel of the reply is written in %s, and this run wants %s: one "
                        "Python file with kernels and def plan(p). Send the whole file in one "
                        "fenced block (```python ... ```).",
                        is, languages[want].words);
}

static const char *no_code(bool cut, enum language want, struct arena *a)
{
    bool python = languages[want].python;

    if (cut)
        return arena_printf(a,
                            "the code block of the reply ends in the middle: %s are left open. "
                            "Send the whole file in one fenced block.",
                            python ? "brackets or strings" : "braces or #if");
    return arena_printf(a,
                        "the reply has no fenced block with a kernel in it. Send the whole file in "
                        "one fenced block (```%s ... ```).",
                        python ? "python" : "cpp");
}

/* A reply that is nothing but the file. */
static bool reply_is_code(struct text reply, bool python)
{
    if (!python)
        return text_has(reply, "CUTEGEN_PLAN") && code_is_whole(reply);
    return line_begins(reply, "def plan") && python_is_whole(reply) &&
           (text_starts(text_trim(reply), "import ") || text_starts(text_trim(reply), "from ") ||
            text_starts(text_trim(reply), "\"\"\"") || text_starts(text_trim(reply), "#"));
}

bool fence_code(struct text reply, enum language want, struct arena *a, struct text *out,
                const char **reason)
{
    bool python = languages[want].python, cut = false;
    struct fence_list list = fence_find(reply, a);
    const struct fence *best = best_block(&list, python, &cut);
    struct text code = best ? best->body : reply;

    if (!best && (list.count != 0 || !reply_is_code(reply, python))) {
        *reason = best_block(&list, !python, &cut)
                      ? wrong_language(python ? "CUDA C++" : "Python", want, a)
                      : no_code(cut, want, a);
        return false;
    }
    if (python && other_python(code, want)) {
        *reason = wrong_language(
            languages[want == LANGUAGE_TRITON ? LANGUAGE_CUTEDSL : LANGUAGE_TRITON].words, want, a);
        return false;
    }
    *out = arena_text(a, code.data, code.len);
    return true;
}

/* Is this line outside all blocks? */
static bool is_prose(const struct fence_list *list, size_t at)
{
    for (size_t i = 0; i < list->count; i++)
        if (at >= list->items[i].begin && at < list->items[i].end)
            return false;
    return true;
}

/* The text after `word` at the beginning of a line of prose; the last one if there are several. */
static const char *marked_line(struct text reply, const char *word, struct arena *a)
{
    size_t n = strlen(word);
    struct fence_list list = fence_find(reply, a);
    const char *found = NULL;

    for (size_t i = 0; i < reply.len;) {
        struct fence_line l = line_at(reply.data, i, reply.len);
        struct text t = text_trim((struct text){reply.data + l.begin, l.end - l.begin});

        while (t.len && one_of(t.data[0], "*#_> "))
            t.data++, t.len--;
        if (t.len > n && strncasecmp(t.data, word, n) == 0 && is_prose(&list, l.begin)) {
            t = text_trim((struct text){t.data + n, t.len - n});
            while (t.len && one_of(t.data[0], "*_ "))
                t.data++, t.len--;
            while (t.len && one_of(t.data[t.len - 1], "*_ "))
                t.len--;
            if (t.len)
                found = arena_strndup(a, t.data, t.len < 200 ? t.len : 200);
        }
        i = l.next;
    }
    return found;
}

const char *fence_change(struct text reply, struct arena *a)
{
    return marked_line(reply, "change:", a);
}

const char *fence_stop(struct text reply, struct arena *a)
{
    return marked_line(reply, "stop:", a);
}
