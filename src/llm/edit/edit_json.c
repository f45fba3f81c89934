/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edit_json.c - line edits as JSON: with the old text as anchor, or by number alone.
 *
 *     {"action": "replace", "line_number": 12, "old_code": ["a;"], "new_code": ["b;"]}
 *     {"action": "insert", "line_number": 20, "new_code": "before line 20"}
 *     {"action": "delete", "line_number": 31, "num_lines": 2}
 *
 * A list of them, one alone, one per line, or a list inside {"edits": ...}.
 * The most frequent mistakes of models are corrected without guessing: raw newlines in strings and
 * commas before a closing bracket.
 */
#include "base/text.h"
#include "llm/edit/edit_parse.h"

#include <ctype.h>
#include <jansson.h>
#include <string.h>
#include <strings.h>

enum { MAX_UNFENCED_TRIES = 200 };

struct fields {
    const char *action;
    int64_t line, count; /* -1: not given */
    const struct text *old, *fresh;
    size_t old_count, fresh_count;
    bool has_old, has_fresh;
};

static bool has(struct text t, const char *needle)
{
    return memmem(t.data, t.len, needle, strlen(needle)) != NULL;
}

static bool is_empty_list(struct text t)
{
    t = text_trim_left(t);
    if (!t.len || t.data[0] != '[')
        return false;
    t = text_trim_left((struct text){t.data + 1, t.len - 1});
    if (!t.len || t.data[0] != ']')
        return false;
    return text_trim_left((struct text){t.data + 1, t.len - 1}).len == 0;
}

bool edit_json_is(struct text block)
{
    struct text t = text_trim_left(block);

    if (is_empty_list(t))
        return true;
    return t.len && (t.data[0] == '[' || t.data[0] == '{') &&
           (has(t, "\"action\"") || has(t, "'action'"));
}

bool edit_json_is_list(struct text block)
{
    struct text t = text_trim_left(block);

    return t.len && (t.data[0] == '[' || has(t, "\"edits\""));
}

/* Copies one string of a JSON text, starting at its quote; escapes raw control characters. */
static size_t copy_string(struct text t, size_t i, struct buf *out)
{
    buf_putc(out, t.data[i++]);
    while (i < t.len) {
        char c = t.data[i++];

        if (c == '\n')
            buf_puts(out, "\\n");
        else if (c == '\r' && i < t.len && t.data[i] == '\n')
            continue;
        else if ((unsigned char)c < 0x20)
            buf_printf(out, "\\u%04x", (unsigned)c);
        else
            buf_putc(out, c);
        if (c == '\\' && i < t.len && t.data[i] != '\n')
            buf_putc(out, t.data[i++]);
        else if (c == '"')
            break;
    }
    return i;
}

static bool comma_is_last(struct text t, size_t i)
{
    struct text rest = text_trim_left((struct text){t.data + i + 1, t.len - i - 1});

    return rest.len && (rest.data[0] == ']' || rest.data[0] == '}');
}

/* Copies and corrects one value that begins with a bracket; returns its length in bytes, or 0 if
 * its brackets never close. */
static size_t copy_value(struct text t, struct buf *out)
{
    size_t depth = 0, i = 0;

    while (i < t.len) {
        char c = t.data[i];

        if (c == '"') {
            i = copy_string(t, i, out);
            continue;
        }
        i++;
        if (c == ',' && comma_is_last(t, i - 1))
            continue;
        buf_putc(out, c);
        depth += c == '[' || c == '{';
        if ((c == ']' || c == '}') && --depth == 0)
            return i;
    }
    return 0;
}

static int64_t int_field(const json_t *o, const char *key, const char *other)
{
    const json_t *v = json_object_get(o, key);
    const char *s;
    int64_t n = 0;

    if (!v)
        v = json_object_get(o, other);
    if (!v || json_is_null(v))
        return -1;
    if (json_is_integer(v))
        return json_integer_value(v) < 0 ? -2 : json_integer_value(v);
    if (json_is_real(v) && json_real_value(v) >= 0 && json_real_value(v) < 1e9)
        return (double)(int64_t)json_real_value(v) == json_real_value(v)
                   ? (int64_t)json_real_value(v)
                   : -2;
    s = json_string_value(v);
    for (; s && isdigit((unsigned char)*s) && n < 1000000000; s++)
        n = n * 10 + (*s - '0');
    return s && !*s && s != json_string_value(v) ? n : -2;
}

static const struct text *join_lines(struct edit_set *set, const json_t *list, size_t *count)
{
    size_t cap = 0, n = 0, k;
    struct text *all;
    const json_t *item;

    json_array_foreach(list, k, item)
    {
        if (!json_is_string(item))
            return NULL;
        for (const char *s = json_string_value(item); *s; s++)
            cap += *s == '\n';
        cap++;
    }
    all = arena_array(set->arena, cap + 1, sizeof(*all));
    json_array_foreach(list, k, item)
    {
        const char *s = json_string_value(item);
        size_t part;
        const struct text *lines =
            edit_split(arena_text(set->arena, s, json_string_length(item)), set->arena, &part);

        for (size_t i = 0; i < part; i++)
            all[n++] = lines[i];
    }
    *count = n;
    return all;
}

/* Converts a string or a list of strings to lines. False: it is neither. */
static bool lines_field(struct edit_set *set, const json_t *o, const char *const *keys, bool *given,
                        const struct text **out, size_t *count)
{
    const json_t *v = NULL;

    for (; *keys && !v; keys++)
        v = json_object_get(o, *keys);
    *given = v && !json_is_null(v);
    if (!*given)
        return true;
    if (json_is_string(v)) {
        struct text t = arena_text(set->arena, json_string_value(v), json_string_length(v));

        *out = edit_split(t, set->arena, count);
        return true;
    }
    if (!json_is_array(v))
        return false;
    *out = join_lines(set, v, count);
    return *out != NULL;
}

static bool read_fields(struct edit_set *set, const json_t *o, int number, struct fields *f)
{
    static const char *const old_keys[] = {"old_code", "old", "anchor", NULL};
    static const char *const new_keys[] = {"new_code", "new", NULL};
    int64_t end;

    f->action = json_string_value(json_object_get(o, "action"));
    if (!f->action) {
        edit_set_fail(set, number, "has no \"action\" (replace, insert or delete)");
        return false;
    }
    f->line = int_field(o, "line_number", "line");
    f->count = int_field(o, "num_lines", "count");
    end = int_field(o, "end_line", "end");
    if (f->count == -1 && end >= 0 && f->line >= 1)
        f->count = end - f->line + 1;
    if (f->line == -2 || f->count < -1 || f->count == 0) {
        edit_set_fail(set, number, "has a %s that is not a whole number of at least 1",
                      f->line == -2 ? "line_number" : "num_lines");
        return false;
    }
    if (!lines_field(set, o, old_keys, &f->has_old, &f->old, &f->old_count) ||
        !lines_field(set, o, new_keys, &f->has_fresh, &f->fresh, &f->fresh_count)) {
        edit_set_fail(set, number, "has code that is neither a string nor a list of strings");
        return false;
    }
    if (f->line == -1 && !f->has_old) {
        edit_set_fail(set, number, "has neither \"line_number\" nor \"old_code\"");
        return false;
    }
    if (f->has_fresh && edit_has_numbers(f->fresh, f->fresh_count)) {
        edit_set_fail(set, number,
                      "has new_code with line numbers in it (\"12| ...\"); give the "
                      "code alone");
        return false;
    }
    return true;
}

/* Finds the anchor and moves the edit to it if it is elsewhere. */
static bool place_anchor(struct edit_set *set, int number, struct fields *f)
{
    size_t hint = f->line > 0 ? (size_t)f->line : 0;
    struct edit_found found;

    if (edit_has_numbers(f->old, f->old_count)) { /* copied with the prompt's line numbers */
        struct text *bare = arena_array(set->arena, f->old_count, sizeof(*bare));

        for (size_t i = 0; i < f->old_count; i++) {
            const char *bar = memchr(f->old[i].data, '|', f->old[i].len);
            size_t skip = (size_t)(bar - f->old[i].data) + 1;

            skip += skip < f->old[i].len && f->old[i].data[skip] == ' ';
            bare[i] = (struct text){f->old[i].data + skip, f->old[i].len - skip};
        }
        f->old = bare;
    }
    found = edit_locate(set->source, f->old, f->old_count, hint);
    if (found.how != FOUND) {
        edit_fail_found(set, number, "old_code", f->old, hint, found);
        return false;
    }
    if (hint && found.line != hint)
        edit_set_note(set, "edit %d was found at line %zu, not %zu", number, found.line, hint);
    if (found.loose)
        edit_set_note(set, "edit %d matched line %zu except for white space", number, found.line);
    f->line = (int64_t)found.line;
    return true;
}

static bool one_of_actions(const char *action, const char *x, const char *y)
{
    return strcasecmp(action, x) == 0 || strcasecmp(action, y) == 0;
}

static void read_edit(struct edit_set *set, const json_t *o)
{
    int number = ++set->edits;
    struct fields f = {0};
    struct edit_op op = {.number = number};
    bool replace, insert, after, remove;

    if (!json_is_object(o)) {
        edit_set_fail(set, number, "is not an object with \"action\" and \"line_number\"");
        return;
    }
    if (!read_fields(set, o, number, &f))
        return;
    replace = strcasecmp(f.action, "replace") == 0;
    insert = one_of_actions(f.action, "insert", "insert_before");
    after = strcasecmp(f.action, "insert_after") == 0;
    remove = strcasecmp(f.action, "delete") == 0;
    if (!replace && !insert && !after && !remove)
        edit_set_fail(set, number,
                      "has the action \"%.40s\"; only replace, insert and delete exist", f.action);
    else if ((replace || insert || after) && !f.has_fresh)
        edit_set_fail(set, number, "has no \"new_code\"");
    else if (remove && f.has_fresh && f.fresh_count && f.fresh[0].len)
        edit_set_fail(set, number, "deletes, yet has \"new_code\": use replace");
    else if (f.has_old && f.old_count == 0)
        edit_set_fail(set, number, "has an empty old_code");
    else if (f.has_old && (replace || remove) && f.count > 0 && (size_t)f.count < f.old_count)
        edit_set_fail(set, number, "has num_lines %lld but %zu lines of old_code",
                      (long long)f.count, f.old_count);
    else if (!f.has_old || place_anchor(set, number, &f)) {
        op.line = (size_t)f.line + (after ? (f.has_old ? f.old_count : 1) : 0);
        if (replace || remove)
            op.count = f.count > 0 ? (size_t)f.count : f.has_old ? f.old_count : 1;
        op.new_lines = f.fresh;
        op.new_count = remove ? 0 : f.fresh_count;
        edit_set_add(set, op);
    }
}

static void read_value(struct edit_set *set, const json_t *v)
{
    static const char *const wrappers[] = {"edits", "patches", "changes"};
    const json_t *item;
    size_t k;

    if (json_is_array(v)) {
        json_array_foreach(v, k, item) read_edit(set, item);
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(wrappers); i++) {
        const json_t *list = json_object_get(v, wrappers[i]);

        if (json_is_array(list) || json_is_object(list)) {
            read_value(set, list);
            return;
        }
    }
    read_edit(set, v);
}

void edit_json_read(struct edit_set *set, struct text block)
{
    struct text t = text_trim_left(block);
    struct buf b = buf_init(block.len * 6 + 64);

    while (t.len && (t.data[0] == '[' || t.data[0] == '{')) {
        json_error_t why;
        json_t *v = NULL;
        size_t took;

        buf_clear(&b);
        took = copy_value(t, &b);
        if (took)
            v = json_loadb(b.data, b.len, 0, &why);
        if (!v) {
            edit_set_fail(set, 0, "the block of edits is not JSON: %s%s",
                          took ? why.text : "its brackets or quotes do not close",
                          took ? ". Quotes and backslashes inside code must be escaped" : "");
            break;
        }
        read_value(set, v);
        json_decref(v);
        t = text_trim_left((struct text){t.data + took, t.len - took});
        if (t.len && t.data[0] == ',')
            t = text_trim_left((struct text){t.data + 1, t.len - 1});
    }
    buf_release(&b);
}

static bool value_is_edits(const json_t *v)
{
    const json_t *first = json_is_array(v) ? json_array_get(v, 0) : v;

    return json_is_string(json_object_get(first, "action")) ||
           json_is_array(json_object_get(first, "edits"));
}

bool edit_json_unfenced(struct text prose, struct text *out)
{
    struct buf b = buf_init(prose.len * 6 + 64);
    int tries = 0;
    bool found = false;

    if (!has(prose, "\"action\""))
        tries = MAX_UNFENCED_TRIES;
    for (size_t i = 0; i < prose.len && tries < MAX_UNFENCED_TRIES; i++) {
        struct text t = {prose.data + i, prose.len - i};
        size_t took = 0;
        struct text inner;
        json_t *v;

        if (t.data[0] != '[' && t.data[0] != '{')
            continue;
        inner = text_trim_left((struct text){t.data + 1, t.len - 1});
        if (!inner.len || (inner.data[0] != '{' && inner.data[0] != '"'))
            continue;
        tries++;
        buf_clear(&b);
        took = copy_value(t, &b);
        v = took ? json_loadb(b.data, b.len, 0, NULL) : NULL;
        if (v && value_is_edits(v)) {
            *out = (struct text){t.data, took};
            found = true;
            i += took - 1;
        } else if (!v && has((struct text){t.data, took ? took : t.len}, "\"action\"")) {
            *out = t; /* broken: an edit inside it must not be taken for the only one */
            found = true;
            tries = MAX_UNFENCED_TRIES;
        }
        json_decref(v);
    }
    buf_release(&b);
    return found;
}
