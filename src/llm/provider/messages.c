/* SPDX-License-Identifier: Apache-2.0 */
/*
 * messages.c - the messages dialect.
 *
 * Each message of a request becomes a text block of one turn, and all blocks but the last are
 * marked as cacheable, since they are ordered from what never changes to what changes most.
 */
#include "base/json.h"
#include "llm/provider/provider.h"

#include <stdio.h>
#include <string.h>

enum { MAX_CACHE_MARKS = 4 };

static json_t *text_block(struct text t, bool cache)
{
    json_t *o = json_object();

    json_object_set_new(o, "type", json_string("text"));
    json_object_set_new(o, "text", json_from_text(t.data ? t : text_of("")));
    if (cache)
        json_object_set_new(o, "cache_control", json_pack("{s:s}", "type", "ephemeral"));
    return o;
}

static void add_messages(const struct wire *w, json_t *o)
{
    json_t *system = json_array(), *turns = json_array(), *content = NULL;
    const char *role = "";
    int marks = 0;

    for (size_t i = 0; i < w->message_count; i++) {
        const struct message *m = &w->messages[i];
        bool cache = i + 1 < w->message_count && marks < MAX_CACHE_MARKS &&
                     i < w->req->message_count && m->content.len > 0;

        marks += cache;
        if (m->content.len == 0)
            continue; /* empty blocks are refused */
        if (strcmp(m->role, "system") == 0) {
            json_array_append_new(system, text_block(m->content, cache));
            continue;
        }
        if (strcmp(m->role, role) != 0) {
            json_t *turn = json_object();

            content = json_array();
            role = m->role;
            json_object_set_new(turn, "role", json_string(role));
            json_object_set_new(turn, "content", content);
            json_array_append_new(turns, turn);
        }
        json_array_append_new(content, text_block(m->content, cache));
    }
    if (json_array_size(system))
        json_object_set(o, "system", system);
    json_decref(system);
    json_object_set_new(o, "messages", turns);
}

static int thinking_tokens(const char *effort, int max_output)
{
    int want = strcmp(effort, "low") == 0 ? 2048 : strcmp(effort, "medium") == 0 ? 8192 : 24576;

    return want < max_output / 2 ? want : max_output / 2;
}

static json_t *anthropic_body(const struct wire *w)
{
    json_t *o = json_object();
    bool think = w->config->effort && strcmp(w->config->effort, "none") != 0 &&
                 !(w->drop & DROP_EFFORT) && w->max_output_tokens >= 2048;

    json_object_set_new(o, "model", json_string(w->model));
    json_object_set_new(o, "max_tokens", json_integer(w->max_output_tokens));
    json_object_set_new(o, "stream", json_true());
    add_messages(w, o);
    if (think)
        json_object_set_new(o, "thinking",
                            json_pack("{s:s, s:i}", "type", "enabled", "budget_tokens",
                                      thinking_tokens(w->config->effort, w->max_output_tokens)));
    else if (w->config->temperature >= 0 && !(w->drop & DROP_TEMPERATURE))
        json_object_set_new(o, "temperature", json_real(w->config->temperature));
    return o;
}

static void anthropic_headers(const char *key, struct buf *out)
{
    buf_puts(out, "anthropic-version: 2023-06-01\n");
    if (*key)
        buf_printf(out, "x-api-key: %s\n", key);
}

/* This API counts cached tokens separately; we count them as part of the prompt. */
static void take_usage(struct answer *a, const json_t *u)
{
    int64_t plain = json_int_or(u, "input_tokens", -1);

    if (plain >= 0) {
        a->cached_tokens = json_int_or(u, "cache_read_input_tokens", 0);
        a->cache_write_tokens = json_int_or(u, "cache_creation_input_tokens", 0);
        a->prompt_tokens = plain + a->cached_tokens + a->cache_write_tokens;
    }
    a->output_tokens = json_int_or(u, "output_tokens", a->output_tokens);
}

static void take_stop(struct answer *a, const char *reason)
{
    if (!reason)
        return;
    a->cut =
        strcmp(reason, "max_tokens") == 0 || strcmp(reason, "model_context_window_exceeded") == 0;
    snprintf(a->finish, sizeof(a->finish), "%s",
             a->cut                            ? "length"
             : strcmp(reason, "end_turn") == 0 ? "stop"
                                               : reason);
}

static void take_problem(struct answer *a, const json_t *e)
{
    const char *type = json_string_or(e, "type", "error");

    snprintf(a->problem, sizeof(a->problem), "%s (%s)", json_string_or(e, "message", "an error"),
             type);
    a->problem_passes = strcmp(type, "overloaded_error") == 0 || strcmp(type, "api_error") == 0 ||
                        strcmp(type, "rate_limit_error") == 0 || strcmp(type, "timeout_error") == 0;
}

static void take_model(struct answer *a, const json_t *message)
{
    const char *model = json_string_or(message, "model", NULL);

    if (model)
        snprintf(a->model, sizeof(a->model), "%s", model);
}

static void anthropic_event(struct answer *a, const json_t *v)
{
    const char *type = json_string_or(v, "type", "");
    const json_t *delta = json_object_get(v, "delta"), *message = json_object_get(v, "message");
    const json_t *text = json_object_get(delta, "text");

    if (strcmp(type, "content_block_delta") == 0 && json_is_string(text)) {
        buf_add(&a->text, json_string_value(text), json_string_length(text));
    } else if (strcmp(type, "message_start") == 0) {
        take_model(a, message);
        take_usage(a, json_object_get(message, "usage"));
    } else if (strcmp(type, "message_delta") == 0) {
        take_stop(a, json_string_value(json_object_get(delta, "stop_reason")));
        take_usage(a, json_object_get(v, "usage"));
    } else if (strcmp(type, "message_stop") == 0) {
        a->finished = true;
    } else if (strcmp(type, "error") == 0) {
        take_problem(a, json_object_get(v, "error"));
    }
}

static void anthropic_whole(struct answer *a, const json_t *v)
{
    const json_t *part;
    size_t i;

    if (strcmp(json_string_or(v, "type", ""), "error") == 0) {
        take_problem(a, json_object_get(v, "error"));
        return;
    }
    json_array_foreach(json_object_get(v, "content"), i, part)
    {
        const json_t *t = json_object_get(part, "text");

        if (json_is_string(t))
            buf_add(&a->text, json_string_value(t), json_string_length(t));
    }
    take_model(a, v);
    take_usage(a, json_object_get(v, "usage"));
    take_stop(a, json_string_value(json_object_get(v, "stop_reason")));
    a->finished = json_is_array(json_object_get(v, "content"));
}

static const struct dialect messages = {
    .base_url = "https://api.anthropic.com/v1",
    .base_env = "ANTHROPIC_BASE_URL",
    .key_env = "ANTHROPIC_API_KEY",
    .path = "/messages",
    .body = anthropic_body,
    .headers = anthropic_headers,
    .event = anthropic_event,
    .whole = anthropic_whole,
};

const struct provider anthropic_provider = {
    .scheme = "anthropic",
    .title = "Anthropic messages",
    .dialect = &messages,
    .open = http_open,
    .attempt = http_attempt,
    .close = http_close,
};
