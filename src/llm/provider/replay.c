/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.c - replay:FILE: play back a transcript, without network.
 *
 * FILE is lines of JSON as transcript.c writes them, or by hand:
 *
 *     {"stage": "synthesize", "reply": "```cpp\n..."}
 *     {"stage": "repair", "reply": ["a list", "is joined", "with newlines"]}
 *     {"stage": "optimize", "reply_file": "step-2.md"}
 *
 * Each entry is used once. A request is answered by:
 * 1. the first entry with exactly the same messages;
 * 2. else the first whose messages differ only in numbers: times, seeds and worst elements vary
 *    between runs;
 * 3. else the first without messages that is for this stage or for any.
 * When none is left, the reply is `done`. If entries are left but their prompts differ, it is an
 * error that shows the first difference.
 */
#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "llm/provider/provider.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { MAX_TRANSCRIPT = 256 << 20, MAX_REPLY_FILE = 16 << 20 };

struct replay_entry {
    json_t *json;
    int line;
    const char *stage; /* NULL: any */
    bool has_prompt, used;
    char exact[65], loose[65];
    struct text reply;
};

struct replay {
    struct replay_entry *entries;
    size_t count;
};

/* Replaces every run of characters that may belong to a number by one '#'. */
static void add_loose(struct hash *h, struct text t)
{
    static const char marks[] = "0123456789.+-";

    for (size_t i = 0; i < t.len;) {
        size_t end = i;
        bool digit = false;

        while (end < t.len && (isxdigit((unsigned char)t.data[end]) || t.data[end] == 'x' ||
                               (t.data[end] && strchr(marks, t.data[end])))) {
            digit |= isdigit((unsigned char)t.data[end]) != 0;
            end++;
        }
        if (end == i)
            end++;
        if (digit)
            hash_add(h, "#", 1);
        else
            hash_add(h, t.data + i, end - i);
        i = end;
    }
    hash_add(h, "\0", 1);
}

static void loose_hash(const struct request *req, char out[65])
{
    struct hash h = hash_init();

    for (size_t i = 0; i < req->message_count; i++) {
        hash_add_text(&h, text_of(req->messages[i].role));
        add_loose(&h, req->messages[i].content);
    }
    hash_hex(&h, out);
}

/* ---- reading ----------------------------------------------------------------------- */

static bool read_reply(struct llm *llm, struct replay_entry *e, struct error *err)
{
    const json_t *v = json_object_get(e->json, "reply"), *part;
    const char *file = json_string_or(e->json, "reply_file", NULL), *slash;
    struct buf b;
    size_t i;

    if (json_is_string(v)) {
        e->reply = arena_text(llm->arena, json_string_value(v), json_string_length(v));
        return true;
    }
    if (json_is_array(v)) {
        b = buf_init(MAX_REPLY_FILE);
        json_array_foreach(v, i, part)
        {
            buf_puts(&b, json_is_string(part) ? json_string_value(part) : "");
            buf_putc(&b, '\n');
        }
        e->reply = buf_copy(&b, llm->arena);
        buf_release(&b);
        return true;
    }
    if (file) {
        slash = strrchr(llm->model, '/');
        if (file[0] != '/' && slash)
            file = arena_printf(llm->arena, "%.*s/%s", (int)(slash - llm->model), llm->model, file);
        return file_read(file, MAX_REPLY_FILE, llm->arena, &e->reply, err);
    }
    if (json_bool_or(e->json, "done", false)) {
        e->reply = text_of("");
        return true;
    }
    return error_set(err, ERROR_USE, "neither \"reply\" nor \"reply_file\"");
}

/* The entry's recorded messages as a request, for comparison with the current one. */
static void entry_request(const struct replay_entry *e, struct arena *a, struct request *out)
{
    const json_t *list = json_object_get(e->json, "messages"), *m;
    struct message *messages;
    size_t i, n = json_array_size(list);
    const char *prompt = json_string_or(e->json, "prompt", NULL);

    memset(out, 0, sizeof(*out));
    messages = arena_array(a, n + 1, sizeof(*messages));
    json_array_foreach(list, i, m)
    {
        const json_t *content = json_object_get(m, "content");

        messages[i].role = json_string_or(m, "role", "user");
        messages[i].content = json_is_string(content) ? (struct text){json_string_value(content),
                                                                      json_string_length(content)}
                                                      : text_of("");
    }
    if (n == 0 && prompt) {
        messages[0] = (struct message){"user", text_of(prompt)};
        n = 1;
    }
    out->messages = messages;
    out->message_count = n;
    for (int s = 0; s < STAGE_KIND_COUNT; s++)
        if (e->stage && strcmp(e->stage, stage_names[s]) == 0)
            out->stage = (enum stage_kind)s;
}

static bool read_entry(struct llm *llm, struct replay *r, struct text line, int number,
                       struct error *err)
{
    struct replay_entry *e = &r->entries[r->count];
    struct request recorded;

    if (!json_parse(line, "a line of the transcript", &e->json, err))
        return false;
    r->count++; /* from here on replay_close releases it */
    e->used = strcmp(json_string_or(e->json, "finish_reason", ""), LLM_INTERRUPTED) == 0;
    e->line = number;
    e->stage = json_string_or(e->json, "stage", NULL);
    if (!json_is_object(e->json) || !read_reply(llm, e, err))
        return error_set(err, ERROR_USE, "not an object with \"reply\"");
    e->has_prompt = json_object_get(e->json, "messages") || json_object_get(e->json, "prompt") ||
                    json_object_get(e->json, "request_hash");
    if (e->has_prompt) {
        struct arena *a = arena_new();

        entry_request(e, a, &recorded);
        record_request_hash(&recorded, e->exact);
        loose_hash(&recorded, e->loose);
        if (recorded.message_count == 0)
            snprintf(e->exact, sizeof(e->exact), "%s", json_string_or(e->json, "request_hash", ""));
        arena_free(a);
    }
    return true;
}

static bool replay_missing(struct error *err)
{
    err->kind = ERROR_USE;
    error_add(err, "opening the transcript");
    return error_hint(err, "a transcript is what --record FILE wrote; see examples/replays");
}

static bool replay_open(struct llm *llm, struct error *err)
{
    struct replay *r = xmalloc(sizeof(*r));
    struct text t, line;

    llm->state = r;
    if (!file_read(llm->model, MAX_TRANSCRIPT, llm->arena, &t, err))
        return replay_missing(err);
    r->entries = arena_array(llm->arena, text_line_count(t), sizeof(*r->entries));
    for (int number = 1; text_next_line(&t, &line); number++) {
        line = text_trim(line);
        if (line.len && line.data[0] != '#' && !read_entry(llm, r, line, number, err))
            return error_add(err, "%s:%d", llm->model, number);
    }
    return true;
}

static void replay_close(struct llm *llm)
{
    struct replay *r = llm->state;

    if (!r)
        return;
    for (size_t i = 0; i < r->count; i++)
        json_decref(r->entries[i].json);
    xfree(r);
    llm->state = NULL;
}

/* ---- matching ------------------------------------------------------------------------ */

static bool for_stage(const struct replay_entry *e, const struct request *req)
{
    return !e->stage || strcmp(e->stage, stage_names[req->stage]) == 0;
}

static struct replay_entry *find(struct replay *r, const struct request *req)
{
    char exact[65], loose[65];

    record_request_hash(req, exact);
    loose_hash(req, loose);
    for (int way = 0; way < 3; way++) {
        for (size_t i = 0; i < r->count; i++) {
            struct replay_entry *e = &r->entries[i];

            if (e->used || (way < 2) != e->has_prompt || (way > 0 && !for_stage(e, req)))
                continue;
            if (way == 2 || strcmp(way == 0 ? e->exact : e->loose, way == 0 ? exact : loose) == 0) {
                if (way == 1)
                    log_info("transcript line %d: the prompt differs only in numbers", e->line);
                return e;
            }
        }
    }
    return NULL;
}

/* Describes the first difference between the recorded prompt and the current one. */
static void tell_difference(const struct request *was, const struct request *is, struct fault *f,
                            int line)
{
    size_t n = was->message_count < is->message_count ? was->message_count : is->message_count;

    for (size_t i = 0; i < n; i++) {
        struct text x = was->messages[i].content, y = is->messages[i].content;
        size_t k = 0, row = 1;
        struct text lx, ly;

        if (text_equal(x, y))
            continue;
        while (k < x.len && k < y.len && x.data[k] == y.data[k])
            row += x.data[k++] == '\n';
        lx = text_line_around(x, k);
        ly = text_line_around(y, k);
        fault_set(f, false,
                  "the transcript does not know this prompt. Against line %d of it, message %zu "
                  "(%s) differs first in its line %zu: recorded \"%.*s\", now \"%.*s\"",
                  line, i + 1, is->messages[i].role, row, (int)(lx.len < 200 ? lx.len : 200),
                  lx.data, (int)(ly.len < 200 ? ly.len : 200), ly.data);
        return;
    }
    fault_set(f, false,
              "the transcript does not know this prompt: it has %zu messages, that of line %d has "
              "%zu",
              is->message_count, line, was->message_count);
}

static bool unknown_prompt(struct replay *r, struct wire *w, struct fault *f)
{
    for (int any = 0; any < 2; any++) {
        for (size_t i = 0; i < r->count; i++) {
            const struct replay_entry *e = &r->entries[i];
            struct request was;

            if (e->used || !e->has_prompt || (!any && !for_stage(e, w->req)))
                continue;
            if (any)
                fault_set(f, false,
                          "the transcript's next reply (line %d) is for the stage \"%s\", asked "
                          "is \"%s\"",
                          e->line, e->stage, stage_names[w->req->stage]);
            else {
                entry_request(e, w->arena, &was);
                tell_difference(&was, w->req, f, e->line);
            }
            f->kind = ERROR_USE;
            return fault_hint(f, "replay the same task with the same settings and prompts, or take "
                                 "\"messages\" out of the transcript to play it by stage");
        }
    }
    return true;
}

static void take(const struct replay_entry *e, struct answer *out)
{
    const json_t *cost = json_object_get(e->json, "cost_usd");

    buf_add(&out->text, e->reply.data, e->reply.len);
    snprintf(out->model, sizeof(out->model), "%s", json_string_or(e->json, "model", "replay"));
    snprintf(out->finish, sizeof(out->finish), "%s",
             json_string_or(e->json, "finish_reason", "stop"));
    out->prompt_tokens = json_int_or(e->json, "prompt_tokens", -1);
    out->cached_tokens = json_int_or(e->json, "cached_tokens", -1);
    out->output_tokens = json_int_or(e->json, "output_tokens", -1);
    out->cost_usd = json_is_number(cost) ? json_number_value(cost) : -1;
    out->done = json_bool_or(e->json, "done", false);
    out->finished = true;
}

static bool replay_attempt(struct llm *llm, struct wire *w, struct answer *out, struct fault *f)
{
    struct replay *r = llm->state;
    struct replay_entry *e = find(r, w->req);

    if (!e && !unknown_prompt(r, w, f))
        return false;
    if (e) {
        e->used = true;
        take(e, out);
    } else if (w->req->stage == STAGE_DIAGNOSE) {
        /* hand-written transcripts often leave these out */
        buf_puts(&out->text, "(the transcript has no diagnosis)");
        snprintf(out->finish, sizeof(out->finish), "stop");
    } else {
        char note[120];

        snprintf(note, sizeof(note), "the transcript has no further reply for %s",
                 stage_names[w->req->stage]);
        buf_puts(&out->text, note);
        snprintf(out->finish, sizeof(out->finish), "stop");
        out->done = true;
    }
    if (!out->model[0])
        snprintf(out->model, sizeof(out->model), "replay");
    if (llm->config.on_text && out->text.len)
        llm->config.on_text(llm->config.on_text_ctx, out->text.data, out->text.len);
    out->finished = true;
    return true;
}

static bool replay_recall(struct llm *llm, const struct request *req, struct error *err)
{
    struct replay_entry *e = find(llm->state, req);

    (void)err;
    if (e)
        e->used = true;
    return true;
}

const struct provider replay_provider = {
    .scheme = "replay",
    .title = "a recorded transcript, without network",
    .open = replay_open,
    .attempt = replay_attempt,
    .recall = replay_recall,
    .close = replay_close,
};
