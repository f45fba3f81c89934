/* SPDX-License-Identifier: Apache-2.0 */
/*
 * retrieve.c - the index of passages and the questions put to it.
 *
 * Invariants
 * 1. An index is built in memory and kept sealed (base/seal.h), by one rename:
 *    two processes may build it at the same time, none reads half of one, and
 *    what was not written by us is built again.
 * 2. Its name has the headers' path, version and our own format in it: a new
 *    CUTLASS gets a new index.
 * 3. Nothing here fails a run: what cannot be found is left out.
 */
#include "llm/prompt/retrieve.h"

#include "base/buf.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/seal.h"
#include "llm/prompt/overloads.h"
#include "llm/prompt/passages.h"

#include <ctype.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    FORMAT = 6,
    MAX_WORDS = 40,
    MAX_WORD = 80,
    LOG_READ = 6000,
    MAX_HEADS = 4000, /* bytes of a list of overloads */
    MAX_VERSION = 64 << 10,
    MAX_INDEX = 256 << 20
};

struct retriever {
    struct arena *a; /* holds the index */
    sqlite3 *db;
    sqlite3_stmt *by_place, *by_name, *by_file, *by_text;
};

/* ---- the index ------------------------------------------------------------------------ */

static bool sql_error(sqlite3 *db, const char *what, struct error *err)
{
    return error_set(err, ERROR_MACHINE, "the index of CuTe's headers: %s: %s", what,
                     db ? sqlite3_errmsg(db) : "no memory");
}

struct adding {
    sqlite3_stmt *insert;
    bool ok;
};

static void add_passage(void *ctx, const char *file, int line, int lines, const char *names,
                        struct text text)
{
    struct adding *a = ctx;

    sqlite3_bind_text(a->insert, 1, names, -1, SQLITE_TRANSIENT);
    sqlite3_bind_text(a->insert, 2, text.data, (int)text.len, SQLITE_TRANSIENT);
    sqlite3_bind_text(a->insert, 3, file, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int(a->insert, 4, line);
    sqlite3_bind_int(a->insert, 5, line + lines - 1);
    a->ok &= sqlite3_step(a->insert) == SQLITE_DONE;
    sqlite3_reset(a->insert);
}

/* The index as bytes; keeping them for the next time may fail. */
static bool index_build(const char *include_dir, const char *path, struct arena *a,
                        struct text *out, struct error *err)
{
    struct adding adding = {.ok = true};
    struct error ignored = {0};
    sqlite3_int64 bytes = 0;
    unsigned char *image = NULL;
    sqlite3 *db = NULL;
    bool ok;

    ok = sqlite3_open(":memory:", &db) == SQLITE_OK &&
         sqlite3_exec(db,
                      "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN;"
                      "CREATE VIRTUAL TABLE passage USING fts5(names, body, file UNINDEXED, first "
                      "UNINDEXED, last UNINDEXED, tokenize=\"unicode61 tokenchars '_'\")",
                      NULL, NULL, NULL) == SQLITE_OK &&
         sqlite3_prepare_v2(db, "INSERT INTO passage VALUES (?,?,?,?,?)", -1, &adding.insert,
                            NULL) == SQLITE_OK;
    if (!ok)
        sql_error(db, "cannot be made", err);
    ok = ok && passages_read(include_dir, add_passage, &adding, err);
    if (ok && (!adding.ok || sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK))
        ok = sql_error(db, "cannot be written", err);
    sqlite3_finalize(adding.insert);
    if (ok && !(image = sqlite3_serialize(db, "main", &bytes, 0)))
        ok = sql_error(db, "cannot be copied", err);
    if (ok) {
        *out = arena_text(a, (const char *)image, (size_t)bytes);
        seal_save(path, path_base(path), *out, &ignored);
    }
    sqlite3_free(image);
    sqlite3_close(db);
    return ok;
}

/* From the bytes that were checked, not from the file. */
static bool index_open(struct retriever *r, struct text image, struct error *err)
{
    if (sqlite3_open(":memory:", &r->db) == SQLITE_OK &&
        sqlite3_deserialize(r->db, "main", (unsigned char *)(uintptr_t)image.data,
                            (sqlite3_int64)image.len, (sqlite3_int64)image.len,
                            SQLITE_DESERIALIZE_READONLY) == SQLITE_OK)
        return true;
    return sql_error(r->db, "cannot be opened", err);
}

/* The index's file: a name that changes with the headers. */
static bool index_path(const char *include_dir, struct arena *a, char **out, struct error *err)
{
    struct text version = {"", 0};
    struct error none = {0};
    struct hash h = hash_init();
    char hex[65], *dir;

    file_read(path_join(a, include_dir, "cutlass/version.h"), MAX_VERSION, a, &version, &none);
    hash_add_text(&h, text_of(include_dir));
    hash_add_text(&h, version);
    hash_add_text(&h, text_of(arena_printf(a, "%d", FORMAT)));
    hash_hex(&h, hex);
    if (!home_cache("", a, &dir, err))
        return false;
    *out = arena_printf(a, "%s/cute-%.16s.sqlite", dir, hex);
    return true;
}

bool retrieve_open(const char *include_dir, struct retriever **out, struct error *err)
{
    static const char columns[] = "SELECT file, first, names, body FROM passage ";
    struct retriever *r = xmalloc(sizeof(*r));
    struct arena *a = arena_new();
    struct text image;
    char *path = NULL;
    bool ok = index_path(include_dir, a, &path, err) &&
              (seal_load(path, path_base(path), MAX_INDEX, a, &image) ||
               index_build(include_dir, path, a, &image, err)) &&
              index_open(r, image, err);

    r->a = a;
    if (ok &&
        (sqlite3_prepare_v2(r->db,
                            arena_printf(a, "%s%s", columns,
                                         "WHERE file = ? AND first <= ? AND last >= ? LIMIT 1"),
                            -1, &r->by_place, NULL) != SQLITE_OK ||
         sqlite3_prepare_v2(r->db,
                            arena_printf(a, "%s%s", columns,
                                         "WHERE passage MATCH ? ORDER BY bm25(passage, 12, 1), "
                                         "length(body) LIMIT 2"),
                            -1, &r->by_name, NULL) != SQLITE_OK ||
         sqlite3_prepare_v2(r->db,
                            arena_printf(a, "%s%s", columns,
                                         "WHERE passage MATCH ? ORDER BY file, first LIMIT 60"),
                            -1, &r->by_file, NULL) != SQLITE_OK ||
         sqlite3_prepare_v2(r->db,
                            arena_printf(a, "%s%s", columns,
                                         "WHERE passage MATCH ? ORDER BY bm25(passage, 6, 1) "
                                         "LIMIT ?"),
                            -1, &r->by_text, NULL) != SQLITE_OK))
        ok = sql_error(r->db, "cannot be asked", err);
    if (!ok) {
        retrieve_close(r);
        return false;
    }
    *out = r;
    return true;
}

void retrieve_close(struct retriever *r)
{
    if (!r)
        return;
    sqlite3_finalize(r->by_place);
    sqlite3_finalize(r->by_name);
    sqlite3_finalize(r->by_file);
    sqlite3_finalize(r->by_text);
    sqlite3_close(r->db);
    arena_free(r->a);
    xfree(r);
}

/* ---- finding ----------------------------------------------------------------------------- */

struct found {
    struct passage *items;
    size_t count, max;
    struct arena *arena;
};

static void take_rows(sqlite3_stmt *s, struct found *f)
{
    while (f->count < f->max && sqlite3_step(s) == SQLITE_ROW) {
        const char *file = (const char *)sqlite3_column_text(s, 0);
        const char *where = arena_printf(f->arena, "%s:%d", file, sqlite3_column_int(s, 1));
        const char *body = (const char *)sqlite3_column_text(s, 3);
        bool again = false;

        for (size_t i = 0; i < f->count; i++)
            again |= strcmp(f->items[i].where, where) == 0;
        if (again || !body)
            continue;
        f->items[f->count++] = (struct passage){
            .where = where,
            .names = arena_strdup(f->arena, (const char *)sqlite3_column_text(s, 2)),
            .text = arena_text(f->arena, body, strlen(body)),
        };
    }
    sqlite3_reset(s);
}

/* "…/cute/algorithm/gemm.hpp(248)" or "….hpp:248" at p: the file from "cute/" on, and the line. */
static bool read_place(const char *p, const char *end, char file[160], int *line)
{
    const char *stop = p;
    size_t n;

    while (stop < end && (isalnum((unsigned char)*stop) || strchr("_/.-", *stop)) && *stop)
        stop++;
    n = (size_t)(stop - p);
    if (n < 10 || n >= 160 || stop == end || (*stop != '(' && *stop != ':') ||
        memcmp(stop - 4, ".hpp", 4) != 0)
        return false;
    memcpy(file, p, n);
    file[n] = 0;
    *line = (int)strtol(stop + 1, NULL, 10);
    return *line > 0;
}

static void find_places(struct retriever *r, struct text log, struct found *f)
{
    const char *end = log.data + log.len, *p = log.data;
    size_t most = f->count + 1; /* the first place is where the assertion stands */

    while (f->count < most && f->count < f->max &&
           (p = memmem(p, (size_t)(end - p), "cute/", 5)) != NULL) {
        char file[160];
        int line;

        if (read_place(p, end, file, &line)) {
            sqlite3_bind_text(r->by_place, 1, file, -1, SQLITE_TRANSIENT);
            sqlite3_bind_int(r->by_place, 2, line);
            sqlite3_bind_int(r->by_place, 3, line);
            take_rows(r->by_place, f);
        }
        p += 5;
    }
}

/* Words of C++ and of compilers, which say nothing about CuTe. */
static bool is_noise(const char *w)
{
    static const char *const noise[] = {
        "error",    "static",   "assertion", "failed",    "instantiation", "function",
        "template", "argument", "types",     "are",       "const",         "auto",
        "int",      "float",    "class",     "struct",    "typename",      "constexpr",
        "cute",     "with",     "from",      "detected",  "during",        "type",
        "value",    "object",   "include",   "namespace", "instance",      "overloaded",
        "matches",  "list",     "line",      "line_",     "note",          "here",
        "the",      "and",      "not",       "has",       "cannot",        "return",
        "void",     "bool",     "true",      "false",     "size",          "Tensor",
        "Layout",   "Shape",    "Stride",    "for",       "number",        "expression",
        "must",     "constant",
    };

    if (strlen(w) < 4)
        return true;
    for (size_t i = 0; i < ARRAY_LEN(noise); i++)
        if (strcmp(noise[i], w) == 0)
            return true;
    return false;
}

static size_t words_of(struct text t, char words[][MAX_WORD], size_t count)
{
    for (size_t i = 0; i < t.len && count < MAX_WORDS;) {
        size_t n = 0;
        bool known = false;

        while (i + n < t.len && (isalnum((unsigned char)t.data[i + n]) || t.data[i + n] == '_'))
            n++;
        if (n && n < MAX_WORD && !isdigit((unsigned char)t.data[i])) {
            char *w = words[count];

            memcpy(w, t.data + i, n);
            w[n] = 0;
            for (size_t k = 0; k < count; k++)
                known |= strcmp(words[k], w) == 0;
            if (!known && !is_noise(w))
                count++;
        }
        i += n ? n : 1;
    }
    return count;
}

/* The first error with its place and its instantiation trail, up to the next error. */
static struct text first_message(struct text log)
{
    const char *e = memmem(log.data, log.len, "error", 5), *end = NULL;
    struct text t = log;

    while (e && e > log.data && e[-1] != '\n')
        e--;
    if (e) {
        t.len -= (size_t)(e - log.data);
        t.data = e;
    }
    for (size_t i = 1; i + 1 < t.len && !end; i++) /* an empty line ends it */
        if (t.data[i] == '\n' && t.data[i + 1] == '\n')
            end = t.data + i;
    if (end)
        t.len = (size_t)(end - t.data);
    if (t.len > LOG_READ)
        t.len = LOG_READ;
    return t;
}

/* Asks for a declared name; `prefix` takes what begins with it too. */
static void ask_name(struct retriever *r, const char *word, bool prefix, struct found *f)
{
    char query[MAX_WORD + 16];

    snprintf(query, sizeof(query), "names:\"%s\"%s", word, prefix ? "*" : "");
    sqlite3_bind_text(r->by_name, 1, query, -1, SQLITE_TRANSIENT);
    take_rows(r->by_name, f);
}

/* identifier "X" is undefined, has no member "X": most often a name nearly right, so what begins as
 * it does is shown. */
static void find_undefined(struct retriever *r, struct text message, struct found *f)
{
    static const char *const before[] = {"identifier \"", "no member \"", "class \"", "name \"",
                                         "error: "}; /* X is not a template */
    size_t most = f->count + 2;

    for (size_t k = 0; k < ARRAY_LEN(before) && f->count < most; k++) {
        const char *p = memmem(message.data, message.len, before[k], strlen(before[k]));
        const char *end = message.data + message.len;
        char word[MAX_WORD];
        size_t n = 0, had = f->count;

        if (!p)
            continue;
        p += strlen(before[k]);
        for (const char *q = p; q < end && (isalnum((unsigned char)*q) || strchr("_:", *q)) && *q;
             q++)
            if (*q == ':')
                p = q + 1; /* behind the last namespace */
        while (p + n < end && n + 1 < MAX_WORD && (isalnum((unsigned char)p[n]) || p[n] == '_'))
            n++;
        memcpy(word, p, n);
        word[n] = 0;
        if (before[k][0] == 'e' &&
            !text_starts((struct text){p + n, (size_t)(end - p) - n}, " is not"))
            continue;
        for (size_t least = n * 6 / 10 < 2 ? 2 : n * 6 / 10; n >= least && f->count == had; n--) {
            word[n] = 0;
            ask_name(r, word, true, f);
        }
    }
}

/* The word at `p`, behind its namespaces and without template arguments. */
static bool read_name(const char *p, const char *end, char word[MAX_WORD])
{
    size_t len = 0;

    for (const char *q = p; q < end && (isalnum((unsigned char)*q) || *q == '_' || *q == ':'); q++)
        if (*q == ':')
            p = q + 1;
    while (p + len < end && len + 1 < MAX_WORD && (isalnum((unsigned char)p[len]) || p[len] == '_'))
        len++;
    memcpy(word, p, len);
    word[len] = 0;
    return len > 0;
}

/* All heads of `name` as one passage: which of them was meant, only the reader knows. */
static void take_heads(struct retriever *r, const char *name, struct found *f)
{
    struct buf b = buf_init(MAX_HEADS);
    const char *file = NULL;
    char query[MAX_WORD + 16];

    snprintf(query, sizeof(query), "names:\"%s\"", name);
    sqlite3_bind_text(r->by_file, 1, query, -1, SQLITE_TRANSIENT);
    while (f->count < f->max && sqlite3_step(r->by_file) == SQLITE_ROW) {
        const char *body = (const char *)sqlite3_column_text(r->by_file, 3);
        char *head = body ? overload_head(text_of(body), name, f->arena) : NULL;

        if (!head || (b.len > 0 && memmem(b.data, b.len, head, strlen(head))) ||
            b.len + strlen(head) + 2 > MAX_HEADS)
            continue;
        file =
            file ? file : arena_strdup(f->arena, (const char *)sqlite3_column_text(r->by_file, 0));
        buf_printf(&b, "%s\n", head);
    }
    sqlite3_reset(r->by_file);
    if (file)
        f->items[f->count++] = (struct passage){
            .where = arena_printf(f->arena, "the overloads of %s, %s", name, file),
            .names = arena_strdup(f->arena, name),
            .text = arena_text(f->arena, b.data, b.len - 1),
        };
    buf_release(&b);
}

/* no instance of overloaded function "cute::gemm" ...: the overloads that there are. */
static void find_overloads(struct retriever *r, struct text message, struct found *f)
{
    static const char *const before[] = {"no instance of ", "more than one instance of "};
    const char *end = message.data + message.len;
    char word[MAX_WORD];

    for (size_t k = 0; k < ARRAY_LEN(before); k++) {
        const char *p = memmem(message.data, message.len, before[k], strlen(before[k]));

        p = p ? memchr(p, '"', (size_t)(end - p)) : NULL;
        if (p && read_name(p + 1, end, word))
            take_heads(r, word, f);
    }
}

/* The functions of CuTe that were being instantiated, the user's own call first: the outermost of a
 * compiler's log, or the one that a boiled-down error names ("in cute::gemm with ..."). */
static void find_trail(struct retriever *r, struct text message, struct found *f)
{
    static const char *const marks[] = {"instantiation of ", "\n  in "};
    const char *at[64], *end = message.data + message.len;
    size_t n = 0, most = f->count + 1;

    for (size_t k = 0; k < ARRAY_LEN(marks); k++)
        for (const char *p = message.data;
             n < ARRAY_LEN(at) &&
             (p = memmem(p, (size_t)(end - p), marks[k], strlen(marks[k]))) != NULL;
             p++)
            at[n++] = p + 1;
    while (n-- > 0 && f->count < most) {
        const char *name = memmem(at[n], (size_t)(end - at[n]), "cute::", 6);
        char word[MAX_WORD];

        if (!name || memchr(at[n], '\n', (size_t)(name - at[n])))
            continue;
        if (read_name(name, end, word) && !is_noise(word))
            ask_name(r, word, false, f);
    }
}

static void find_names(struct retriever *r, char words[][MAX_WORD], size_t count, struct found *f)
{
    for (size_t i = 0; i < count && f->count < f->max; i++)
        ask_name(r, words[i], false, f);
}

/* What is left is filled by the passages that hold most of the words. */
static void find_texts(struct retriever *r, char words[][MAX_WORD], size_t count, struct found *f)
{
    struct buf q = buf_init(4096);

    for (size_t i = 0; i < count; i++)
        buf_printf(&q, "%s\"%s\"", i ? " OR " : "", words[i]);
    if (q.len && f->count < f->max) {
        sqlite3_bind_text(r->by_text, 1, q.data, (int)q.len, SQLITE_TRANSIENT);
        sqlite3_bind_int(r->by_text, 2, (int)f->max * 2);
        take_rows(r->by_text, f);
    }
    buf_release(&q);
}

size_t retrieve_find(struct retriever *r, struct text log, const char *line, size_t max,
                     struct passage *out, struct arena *a)
{
    struct found f = {.items = out, .max = max, .arena = a};
    char(*words)[MAX_WORD] = xmalloc(MAX_WORDS * sizeof(*words));
    struct text message = first_message(log);
    size_t count;

    find_places(r, message, &f);
    find_undefined(r, message, &f);
    find_overloads(r, message, &f);
    find_trail(r, message, &f);
    count = words_of(text_of(line), words, 0);
    find_names(r, words, count, &f);
    count = words_of(message, words, count);
    find_names(r, words, count, &f);
    find_texts(r, words, count, &f);
    xfree(words);
    return f.count;
}

struct text retrieve_text(struct retriever *r, struct text log, const char *line, size_t max,
                          struct arena *a)
{
    struct passage *found = arena_array(a, max + 1, sizeof(*found));
    size_t n = retrieve_find(r, log, line, max, found, a);
    struct buf b = buf_init(64 << 10);
    struct text t;

    for (size_t i = 0; i < n; i++)
        buf_printf(&b, "%s%s\n\n```cpp\n%.*s\n```\n", i ? "\n" : "", found[i].where,
                   (int)found[i].text.len, found[i].text.data);
    t = buf_copy(&b, a);
    buf_release(&b);
    return t;
}
