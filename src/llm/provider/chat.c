/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chat.c - the chat completions dialect: OpenAI, vLLM, SGLang, llama.cpp, Ollama,
 * OpenRouter, LiteLLM and most others.
 *
 * Adjacent messages of one role are merged: some chat templates refuse two user turns in a row.
 */
#include "base/json.h"
#include "llm/provider/openai.h"
#include "llm/provider/provider.h"

#include <stdio.h>
#include <string.h>

json_t *openai_messages(const struct wire *w)
{
    json_t *list = json_array();

    for (size_t i = 0; i < w->message_count;) {
        const char *role = w->messages[i].role;
        struct buf b = buf_init(SIZE_MAX / 2);
        struct text t;
        json_t *m = json_object();

        for (size_t k = i; i < w->message_count && strcmp(w->messages[i].role, role) == 0; i++) {
            if (i > k)
                buf_puts(&b, "\n\n");
            buf_add(&b, w->messages[i].content.data, w->messages[i].content.len);
        }
        t = buf_text(&b);
        json_object_set_new(m, "role", json_string(role));
        json_object_set_new(m, "content", json_from_text(t.data ? t : text_of("")));
        json_array_append_new(list, m);
        buf_release(&b);
    }
    return list;
}

void openai_problem(struct answer *a, const json_t *e)
{
    const char *type = json_string_or(e, "type", ""), *code = json_string_or(e, "code", "");
    const char *text = json_is_string(e) ? json_string_value(e) : json_string_or(e, "message", "");

    snprintf(a->problem, sizeof(a->problem), "%s%s%s", text, type[0] ? " " : "", type);
    a->problem_passes = strstr(type, "server") || strstr(type, "overload") ||
                        strstr(type, "rate") || strstr(type, "timeout") || strstr(code, "rate") ||
                        strstr(code, "server") || json_int_or(e, "code", 0) >= 500 ||
                        json_int_or(e, "code", 0) == 429;
}

static json_t *chat_body(const struct wire *w)
{
    json_t *o = json_object(), *options = json_object();
    bool official = http_is_official(w->config, openai_provider.dialect);
    bool other_name = (w->drop & DROP_MAX_TOKENS_NAME) != 0;

    json_object_set_new(o, "model", json_string(w->model));
    json_object_set_new(o, "messages", openai_messages(w));
    json_object_set_new(o, official != other_name ? "max_completion_tokens" : "max_tokens",
                        json_integer(w->max_output_tokens));
    json_object_set_new(o, "stream", json_true());
    json_object_set_new(options, "include_usage", json_true());
    if (!(w->drop & DROP_STREAM_OPTIONS))
        json_object_set(o, "stream_options", options);
    json_decref(options);
    if (w->config->temperature >= 0 && !(w->drop & DROP_TEMPERATURE))
        json_object_set_new(o, "temperature", json_real(w->config->temperature));
    if (w->config->effort && !(w->drop & DROP_EFFORT))
        json_object_set_new(o, "reasoning_effort", json_string(w->config->effort));
    return o;
}

static void chat_headers(const char *key, struct buf *out)
{
    if (*key)
        buf_printf(out, "Authorization: Bearer %s\n", key);
}

static void take_finish(struct answer *a, const char *reason)
{
    if (!reason)
        return;
    snprintf(a->finish, sizeof(a->finish), "%s", reason);
    a->finished = true;
    a->cut = strcmp(reason, "length") == 0;
}

static void take_text(struct answer *a, const json_t *content)
{
    const json_t *part;
    size_t i;

    if (json_is_string(content))
        buf_add(&a->text, json_string_value(content), json_string_length(content));
    json_array_foreach(content, i, part)
    {
        const json_t *t = json_object_get(part, "text");

        if (json_is_string(t))
            buf_add(&a->text, json_string_value(t), json_string_length(t));
    }
}

static void take_usage(struct answer *a, const json_t *u)
{
    if (!json_is_object(u))
        return;
    a->prompt_tokens = json_int_or(u, "prompt_tokens", a->prompt_tokens);
    a->output_tokens = json_int_or(u, "completion_tokens", a->output_tokens);
    a->cached_tokens = json_int_or(json_object_get(u, "prompt_tokens_details"), "cached_tokens",
                                   json_int_or(u, "prompt_cache_hit_tokens", a->cached_tokens));
}

static void chat_take(struct answer *a, const json_t *v, const char *part)
{
    const json_t *choice = json_array_get(json_object_get(v, "choices"), 0);
    const json_t *e = json_object_get(v, "error");
    const char *model = json_string_or(v, "model", NULL);

    if (e && !json_is_null(e)) {
        openai_problem(a, e);
        return;
    }
    if (model)
        snprintf(a->model, sizeof(a->model), "%s", model);
    take_text(a, json_object_get(json_object_get(choice, part), "content"));
    take_finish(a, json_string_value(json_object_get(choice, "finish_reason")));
    take_usage(a, json_object_get(v, "usage"));
}

static void chat_event(struct answer *a, const json_t *v)
{
    chat_take(a, v, "delta");
}

static void chat_whole(struct answer *a, const json_t *v)
{
    chat_take(a, v, "message");
    if (json_is_array(json_object_get(v, "choices")))
        a->finished = true;
}

static const struct dialect chat = {
    .base_url = "https://api.openai.com/v1",
    .base_env = "OPENAI_BASE_URL",
    .key_env = "OPENAI_API_KEY",
    .path = "/chat/completions",
    .body = chat_body,
    .headers = chat_headers,
    .event = chat_event,
    .whole = chat_whole,
};

const struct provider openai_provider = {
    .scheme = "openai",
    .title = "OpenAI-compatible chat completions",
    .dialect = &chat,
    .open = http_open,
    .attempt = http_attempt,
    .close = http_close,
};
