/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search.c - search CuTe's headers and our guides for some words or a compile error.
 *
 * Headers come from the index that repairs use. Guides are split at their headings; a section is
 * ranked by how many of the query's words it contains.
 */
#include "base/fs.h"
#include "base/json.h"
#include "base/text.h"
#include "llm/prompt/retrieve.h"
#include "stage/workshop.h"

#include <ctype.h>
#include <string.h>

enum { MAX_GUIDE = 1 << 20, MAX_SECTION = 3000, MAX_WORDS = 24, MAX_PASSAGES = 10 };

struct section {
    const char *where;
    struct text text;
    int score;
};

static const char *const guides[] = {"guide",           "abi",         "class-pointwise",
                                     "class-reduction", "class-gemm",  "class-convolution",
                                     "class-attention", "class-other", "profile-reading"};
static const char *const python_guides[] = {"triton/guide", "triton/abi", "cutedsl/guide",
                                            "cutedsl/abi"};

/* The query's words of three letters or more, each once. */
static size_t words_of(const char *query, struct text *out)
{
    size_t count = 0;

    while (*query && count < MAX_WORDS) {
        size_t n = 0;
        bool known = false;

        while (isalnum((unsigned char)query[n]) || query[n] == '_')
            n++;
        for (size_t i = 0; i < count; i++)
            known = known || (out[i].len == n && !strncasecmp(out[i].data, query, n));
        if (n > 2 && !known)
            out[count++] = (struct text){query, n};
        query += n ? n : 1;
    }
    return count;
}

static bool has_word(struct text t, struct text word)
{
    for (size_t i = 0; i + word.len <= t.len; i++)
        if (!strncasecmp(t.data + i, word.data, word.len) &&
            (i == 0 || !isalnum((unsigned char)t.data[i - 1])))
            return true;
    return false;
}

/* A word in the heading counts more than one below it. */
static int score_of(struct text section, const struct text *words, size_t count)
{
    const char *end = memchr(section.data, '\n', section.len);
    struct text head = {section.data, end ? (size_t)(end - section.data) : section.len};
    int score = 0;

    for (size_t i = 0; i < count; i++)
        score += has_word(section, words[i]) + 2 * has_word(head, words[i]);
    return score;
}

/* Inserts it among the best so far. */
static void keep_section(struct section *best, size_t max, struct section s)
{
    for (size_t i = 0; i < max && s.score > 0; i++) {
        if (best[i].score < s.score) {
            struct section worse = best[i];

            best[i] = s;
            s = worse;
        }
    }
}

static void search_guide(const char *name, const struct text *words, size_t count, size_t max,
                         struct arena *a, struct section *best)
{
    struct error ignored = {0};
    struct text rest, line, section = {0};
    char *path = NULL;

    if (!home_data(arena_printf(a, "prompts/%s.md", name), a, &path, &ignored) ||
        !file_read(path, MAX_GUIDE, a, &rest, &ignored))
        return;
    while (rest.len || section.len) {
        bool more = text_next_whole_line(&rest, &line);

        if (section.len && (!more || text_starts(line, "#"))) {
            const char *where = arena_printf(a, "guide %s: %.*s", name,
                                             (int)strcspn(section.data, "\n"), section.data);

            keep_section(best, max,
                         (struct section){where, text_cut(section, MAX_SECTION),
                                          score_of(section, words, count)});
            section = (struct text){0};
        }
        if (!more)
            return;
        if (!section.len && text_starts(line, "#"))
            section = line;
        else if (section.len)
            section.len += line.len;
    }
}

static void add_passage(json_t *list, const char *where, struct text text)
{
    json_array_append_new(list, json_pack("{s:o, s:o}", "where", json_from_string(where), "text",
                                          json_from_text(text)));
}

bool stage_search(const struct settings *settings, const char *query, int max, struct arena *a,
                  json_t **out, struct error *err)
{
    struct passage found[MAX_PASSAGES];
    struct section best[2] = {{0}};
    struct text words[MAX_WORDS];
    size_t count = words_of(query, words), n;
    struct retriever *r = NULL;
    struct stage *st = NULL;
    bool error_like = strstr(query, "error") != NULL;
    json_t *list;

    if (!stage_open(settings, &st, err) || !retrieve_open(st->tools.cutlass_include, &r, err)) {
        stage_close(st);
        return false;
    }
    n = retrieve_find(r, text_of(query), error_like ? "" : query,
                      max < MAX_PASSAGES ? (size_t)max : MAX_PASSAGES, found, a);
    for (size_t i = 0; i < ARRAY_LEN(guides); i++)
        search_guide(guides[i], words, count, ARRAY_LEN(best), a, best);
    for (size_t i = 0; i < ARRAY_LEN(python_guides); i++)
        search_guide(python_guides[i], words, count, ARRAY_LEN(best), a, best);
    list = json_array();
    for (size_t i = 0; i < n; i++)
        add_passage(list, found[i].where, found[i].text);
    for (size_t i = 0; i < ARRAY_LEN(best); i++)
        if (best[i].score * 2 > (int)count)
            add_passage(list, best[i].where, best[i].text);
    *out = json_pack("{s:o}", "passages", list);
    retrieve_close(r);
    stage_close(st);
    return true;
}
