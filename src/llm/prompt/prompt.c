/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prompt.c - read templates, put slots in, cut into messages.
 *
 * Hides the template language (prompt.h has it). A template is read once per
 * book: a folder edited during a run does not change that run.
 */
#include "llm/prompt/prompt.h"

#include "base/buf.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum {
    MAX_TEMPLATE = 1 << 20,
    MAX_TEMPLATES = 64,
    MAX_MESSAGES = 16,
    MAX_NESTING = 8,
    MAX_RENDERED = 32 << 20,
    MAX_NAME = 64,
};

struct template
{
    char name[MAX_NAME];
    struct text text;
};

struct prompt_book {
    const char *folder; /* NULL: none but the product's own */
    enum language target;
    struct arena *arena;
    struct template templates[MAX_TEMPLATES];
    size_t count;
};

/* One rendering under way. */
struct render {
    struct prompt_book *book;
    const struct prompt_slots *slots;
    struct arena *arena;
    struct message messages[MAX_MESSAGES];
    size_t message_count;
    struct buf text; /* of the message being filled */
    const char *role;
    struct hash hash;
    int depth;
};

bool prompt_open(const char *folder, enum language target, struct arena *a,
                 struct prompt_book **out, struct error *err)
{
    struct prompt_book *b = arena_alloc(a, sizeof(*b));

    if (folder && !file_exists(folder))
        return error_set(err, ERROR_USE, "there is no prompts folder %s", folder);
    b->folder = folder ? arena_strdup(a, folder) : NULL;
    b->target = target;
    b->arena = a;
    *out = b;
    return true;
}

void prompt_set(struct prompt_slots *s, const char *name, struct text value)
{
    size_t i = 0;

    while (i < s->count && strcmp(s->items[i].name, name) != 0)
        i++;
    if (i == PROMPT_MAX_SLOTS)
        BUG("more than %d slots", PROMPT_MAX_SLOTS);
    s->items[i].name = name;
    s->items[i].value = value;
    if (i == s->count)
        s->count++;
}

void prompt_set_string(struct prompt_slots *s, const char *name, const char *value)
{
    prompt_set(s, name, text_of(value ? value : ""));
}

static const struct text *slot_find(const struct prompt_slots *s, struct text name)
{
    for (size_t i = 0; i < s->count; i++)
        if (text_equal(text_of(s->items[i].name), name))
            return &s->items[i].value;
    return NULL;
}

/* ---- templates ------------------------------------------------------------------- */

/* A comment at the very front is for people who read the file. */
static struct text skip_comment(struct text t)
{
    const char *end;

    if (!text_starts(t, "<!--"))
        return t;
    end = memmem(t.data, t.len, "-->", 3);
    if (!end)
        return t;
    t.len -= (size_t)(end + 3 - t.data);
    t.data = end + 3;
    while (t.len && (*t.data == '\n' || *t.data == '\r'))
        t.data++, t.len--;
    return t;
}

/* The file of a template: of all folders for the language, the one that is nearest to it. */
static bool template_path(struct prompt_book *b, const char *name, char **path, struct error *err)
{
    const struct language_facts *target = &languages[b->target];
    const char *const within[] = {target->python ? target->name : NULL,
                                  target->python ? "python" : NULL, ""};
    struct error ignored = {0};

    for (size_t i = 0; i < ARRAY_LEN(within); i++) {
        const char *file;

        if (!within[i])
            continue;
        file = arena_printf(b->arena, "%s%s%s.md", within[i], *within[i] ? "/" : "", name);
        *path = b->folder ? path_join(b->arena, b->folder, file) : NULL;
        if (*path && file_exists(*path))
            return true;
        file = arena_printf(b->arena, "prompts/%s", file);
        if (home_data(file, b->arena, path, *within[i] ? &ignored : err))
            return true;
    }
    return error_add(err, "looking for the prompt template %s", name);
}

static bool template_load(struct prompt_book *b, struct text name, const struct template **out,
                          struct error *err)
{
    struct template *t;
    char *path = NULL;

    for (size_t i = 0; i < b->count; i++) {
        if (text_equal(text_of(b->templates[i].name), name)) {
            *out = &b->templates[i];
            return true;
        }
    }
    if (b->count == MAX_TEMPLATES || name.len >= MAX_NAME)
        return error_set(err, ERROR_USE, "too many prompt templates, or a name too long");
    t = &b->templates[b->count];
    memcpy(t->name, name.data, name.len);
    t->name[name.len] = 0;
    if (!template_path(b, t->name, &path, err))
        return false;
    if (!file_read(path, MAX_TEMPLATE, b->arena, &t->text, err))
        return error_add(err, "reading the prompt template %s", t->name);
    t->text = skip_comment(t->text);
    b->count++;
    *out = t;
    return true;
}

/* ---- rendering -------------------------------------------------------------------- */

/* Three or more newlines in a row come from parts that were left out; two are enough. Slot
 * texts are put in afterwards and keep theirs. */
static void add_plain(struct buf *b, struct text t)
{
    for (size_t i = 0; i < t.len; i++) {
        if (t.data[i] == '\n' && b->len >= 2 && b->data[b->len - 1] == '\n' &&
            b->data[b->len - 2] == '\n')
            continue;
        buf_putc(b, t.data[i]);
    }
}

static bool end_message(struct render *r, struct error *err)
{
    struct text t = text_trim(buf_text(&r->text));

    if (t.len && r->message_count == MAX_MESSAGES)
        return error_set(err, ERROR_USE, "a prompt of more than %d messages", MAX_MESSAGES);
    if (t.len)
        r->messages[r->message_count++] =
            (struct message){r->role, arena_text(r->arena, t.data, t.len)};
    buf_clear(&r->text);
    return true;
}

static bool name_ok(struct text t)
{
    for (size_t i = 0; i < t.len; i++)
        if (!islower((unsigned char)t.data[i]) && !isdigit((unsigned char)t.data[i]) &&
            t.data[i] != '_' && t.data[i] != '-')
            return false;
    return t.len > 0 && islower((unsigned char)t.data[0]);
}

static bool render_text(struct render *r, const char *where, struct text t, struct error *err);

static bool render_part(struct render *r, struct text name, struct error *err)
{
    const struct template *part = NULL;
    bool ok;

    if (r->depth == MAX_NESTING)
        return error_set(err, ERROR_USE, "prompt templates include each other too deeply (%.*s)",
                         (int)name.len, name.data);
    if (!template_load(r->book, name, &part, err))
        return false;
    hash_add_text(&r->hash, text_of(part->name));
    hash_add_text(&r->hash, part->text);
    r->depth++;
    ok = render_text(r, part->name, part->text, err);
    r->depth--;
    return ok;
}

/* {{?slot}}...{{/slot}}: *rest is what follows it. */
static bool render_section(struct render *r, const char *where, struct text name, struct text t,
                           struct text *rest, struct error *err)
{
    char close[MAX_NAME + 8];
    const struct text *value = slot_find(r->slots, name);
    const char *end;
    size_t n;

    n = (size_t)snprintf(close, sizeof(close), "{{/%.*s}}", (int)name.len, name.data);
    end = n < sizeof(close) ? memmem(t.data, t.len, close, n) : NULL;
    if (!end)
        return error_set(err, ERROR_USE, "prompt template %s: {{?%.*s}} is not closed", where,
                         (int)name.len, name.data);
    *rest = (struct text){end + n, t.len - (size_t)(end + n - t.data)};
    if (!value || text_trim(*value).len == 0)
        return true;
    return render_text(r, where, (struct text){t.data, (size_t)(end - t.data)}, err);
}

/* "~WORD slot": the slot of a quoting tag, and the word that marks its fence. */
static bool quote_parts(struct text tag, struct text *word, struct text *slot)
{
    const char *space = tag.len > 1 ? memchr(tag.data + 1, ' ', tag.len - 1) : NULL;

    if (!space || tag.data[0] != '~')
        return false;
    *word = (struct text){tag.data + 1, (size_t)(space - tag.data) - 1};
    *slot = text_trim((struct text){space, tag.len - (size_t)(space - tag.data)});
    return name_ok(*word) && name_ok(*slot);
}

/* In a fence longer than any in the text itself: nothing in it can close it. */
static void add_quoted(struct buf *b, struct text word, struct text t)
{
    size_t longest = 0, run = 0, ticks;

    for (size_t i = 0; i < t.len; i++) {
        run = t.data[i] == '`' ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    ticks = longest < 3 ? 3 : longest + 1;
    for (size_t i = 0; i < ticks; i++)
        buf_putc(b, '`');
    buf_add(b, word.data, word.len);
    buf_putc(b, '\n');
    buf_add(b, t.data, t.len);
    if (t.len && t.data[t.len - 1] != '\n')
        buf_putc(b, '\n');
    for (size_t i = 0; i < ticks; i++)
        buf_putc(b, '`');
}

/* What stands between {{ and }}; *rest is what follows. False with err set, or true. */
static bool render_tag(struct render *r, const char *where, struct text tag, struct text *rest,
                       struct error *err)
{
    struct text word = {NULL, 0};
    const struct text *value;

    if (tag.data[0] == '>')
        return render_part(r, text_trim((struct text){tag.data + 1, tag.len - 1}), err);
    if (tag.data[0] == '?')
        return render_section(r, where, (struct text){tag.data + 1, tag.len - 1}, *rest, rest, err);
    quote_parts(tag, &word, &tag);
    value = slot_find(r->slots, tag);
    if (!value)
        return error_set(err, ERROR_USE, "prompt template %s: there is no slot {{%.*s}}", where,
                         (int)tag.len, tag.data);
    if (word.len)
        add_quoted(&r->text, word, *value);
    else
        buf_add(&r->text, value->data, value->len);
    return true;
}

/* The tag that begins at t.data ("{{"), or a text of length 0 when it is none. */
static struct text tag_at(struct text t)
{
    const char *end = t.len > 4 ? memmem(t.data, t.len < 100 ? t.len : 100, "}}", 2) : NULL;
    struct text tag = {t.data + 2, end ? (size_t)(end - t.data) - 2 : 0}, name = tag, word;

    if (!tag.len)
        return (struct text){NULL, 0};
    if (tag.data[0] == '>' || tag.data[0] == '?')
        name = text_trim((struct text){tag.data + 1, tag.len - 1});
    if (quote_parts(tag, &word, &name))
        return tag;
    return name_ok(name) ? tag : (struct text){NULL, 0};
}

/* A line "=== role" begins a message. */
static bool role_at(struct text t, const char **role, size_t *len)
{
    static const char *const roles[] = {"system", "user", "assistant"};

    for (size_t i = 0; i < ARRAY_LEN(roles); i++) {
        size_t n = strlen(roles[i]) + 4;

        if (t.len >= n && memcmp(t.data, "=== ", 4) == 0 &&
            memcmp(t.data + 4, roles[i], n - 4) == 0 && (t.len == n || t.data[n] == '\n')) {
            *role = roles[i];
            *len = t.len == n ? n : n + 1;
            return true;
        }
    }
    return false;
}

static bool render_text(struct render *r, const char *where, struct text t, struct error *err)
{
    bool line_start = true;

    while (t.len) {
        const char *role;
        size_t n = 0;
        struct text tag = {NULL, 0};

        if (line_start && role_at(t, &role, &n)) {
            if (!end_message(r, err))
                return false;
            r->role = role;
            t.data += n, t.len -= n;
            continue;
        }
        if (t.len > 4 && t.data[0] == '{' && t.data[1] == '{')
            tag = tag_at(t);
        if (tag.len) {
            struct text rest = {tag.data + tag.len + 2, t.len - tag.len - 4};

            if (!render_tag(r, where, tag, &rest, err))
                return false;
            t = rest;
            line_start = false;
            continue;
        }
        while (n < t.len && (n == 0 || !(t.data[n] == '{' && t.data[n - 1] != '{')) &&
               !(n && t.data[n - 1] == '\n'))
            n++;
        add_plain(&r->text, (struct text){t.data, n});
        line_start = t.data[n - 1] == '\n';
        t.data += n, t.len -= n;
    }
    return true;
}

bool prompt_render(struct prompt_book *book, const char *name, const struct prompt_slots *slots,
                   struct arena *a, struct prompt *out, struct error *err)
{
    struct render r = {
        .book = book,
        .slots = slots,
        .arena = a,
        .text = buf_init(MAX_RENDERED),
        .role = "user",
        .hash = hash_init(),
    };
    char hash[65];
    struct message *messages;
    bool ok = render_part(&r, text_of(name), err) && end_message(&r, err);

    if (ok && r.text.overflowed)
        ok = error_set(err, ERROR_USE, "the prompt %s is larger than %d bytes", name, MAX_RENDERED);
    if (ok && r.message_count == 0)
        ok = error_set(err, ERROR_USE, "the prompt %s is empty", name);
    buf_release(&r.text);
    if (!ok)
        return false;
    messages = arena_array(a, r.message_count, sizeof(*messages));
    memcpy(messages, r.messages, r.message_count * sizeof(*messages));
    hash_hex(&r.hash, hash);
    *out = (struct prompt){messages, r.message_count, arena_strdup(a, hash)};
    return true;
}

const char *prompt_name(enum stage_kind stage, enum kernel_class class, bool profile)
{
    static const char *const plain[CLASS_COUNT] = {"optimize-pointwise", "optimize-reduction",
                                                   "optimize-gemm",      "optimize-convolution",
                                                   "optimize-attention", "optimize-other"};
    static const char *const profiled[CLASS_COUNT] = {
        "optimize-profile-pointwise",   "optimize-profile-reduction", "optimize-profile-gemm",
        "optimize-profile-convolution", "optimize-profile-attention", "optimize-profile-other"};

    switch (stage) {
    case STAGE_SYNTHESIZE:
        return "synthesize";
    case STAGE_DIAGNOSE:
        return "diagnose";
    case STAGE_REPAIR:
        return "repair";
    case STAGE_OPTIMIZE:
        return (profile ? profiled : plain)[class];
    default:
        BUG("no prompt for stage %d", (int)stage);
    }
}
