/* SPDX-License-Identifier: Apache-2.0 */
/* responses.c - the responses dialect of OpenAI and of servers that follow it. */
#include "base/json.h"
#include "llm/provider/openai.h"

#include <stdio.h>
#include <string.h>

static json_t *responses_body(const struct wire *w)
{
    json_t *o = json_object(), *effort;

    json_object_set_new(o, "model", json_string(w->model));
    json_object_set_new(o, "input", openai_messages(w));
    json_object_set_new(o, "max_output_tokens", json_integer(w->max_output_tokens));
    json_object_set_new(o, "stream", json_true());
    json_object_set_new(o, "store", json_false()); /* the provider should store nothing */
    if (w->config->temperature >= 0 && !(w->drop & DROP_TEMPERATURE))
        json_object_set_new(o, "temperature", json_real(w->config->temperature));
    if (w->config->effort && !(w->drop & DROP_EFFORT)) {
        effort = json_object();
        json_object_set_new(effort, "effort", json_string(w->config->effort));
        json_object_set_new(o, "reasoning", effort);
    }
    return o;
}

static void responses_headers(const char *key, struct buf *out)
{
    if (*key)
        buf_printf(out, "Authorization: Bearer %s\n", key);
}

static void take_usage(struct answer *a, const json_t *u)
{
    if (!json_is_object(u))
        return;
    a->prompt_tokens = json_int_or(u, "input_tokens", a->prompt_tokens);
    a->output_tokens = json_int_or(u, "output_tokens", a->output_tokens);
    a->cached_tokens =
        json_int_or(json_object_get(u, "input_tokens_details"), "cached_tokens", a->cached_tokens);
}

/* All text of the output, for answers that were not streamed. */
static void take_output(struct answer *a, const json_t *output)
{
    const json_t *item, *part;
    size_t i, k;

    json_array_foreach(output, i, item)
    {
        json_array_foreach(json_object_get(item, "content"), k, part)
        {
            const json_t *t = json_object_get(part, "text");

            if (strcmp(json_string_or(part, "type", ""), "output_text") == 0 && json_is_string(t))
                buf_add(&a->text, json_string_value(t), json_string_length(t));
        }
    }
}

/* Reads the response object that ends a stream or is the whole answer. */
static void take_response(struct answer *a, const json_t *r)
{
    const char *status = json_string_or(r, "status", "completed");
    const char *why = json_string_or(json_object_get(r, "incomplete_details"), "reason", "");
    const char *model = json_string_or(r, "model", NULL);

    if (model)
        snprintf(a->model, sizeof(a->model), "%s", model);
    take_usage(a, json_object_get(r, "usage"));
    if (strcmp(status, "failed") == 0 || strcmp(status, "cancelled") == 0) {
        openai_problem(a, json_object_get(r, "error"));
        if (!a->problem[0])
            snprintf(a->problem, sizeof(a->problem), "the response was %s", status);
        return;
    }
    a->finished = true;
    a->cut = strcmp(status, "incomplete") == 0 && strstr(why, "max_output_tokens");
    snprintf(a->finish, sizeof(a->finish), "%s",
             a->cut                              ? "length"
             : strcmp(status, "incomplete") == 0 ? why
                                                 : "stop");
    if (a->text.len == 0)
        take_output(a, json_object_get(r, "output"));
}

static void responses_event(struct answer *a, const json_t *v)
{
    const char *type = json_string_or(v, "type", "");
    const json_t *delta = json_object_get(v, "delta");

    if (strcmp(type, "response.output_text.delta") == 0 && json_is_string(delta))
        buf_add(&a->text, json_string_value(delta), json_string_length(delta));
    else if (strcmp(type, "response.completed") == 0 || strcmp(type, "response.incomplete") == 0 ||
             strcmp(type, "response.failed") == 0)
        take_response(a, json_object_get(v, "response"));
    else if (strcmp(type, "error") == 0)
        openai_problem(a, json_object_get(v, "error") ? json_object_get(v, "error") : v);
}

static void responses_whole(struct answer *a, const json_t *v)
{
    const json_t *e = json_object_get(v, "error");

    if (json_is_object(e) || json_is_string(e))
        openai_problem(a, e);
    else if (json_object_get(v, "output"))
        take_response(a, v);
}

static const struct dialect responses = {
    .base_url = "https://api.openai.com/v1",
    .base_env = "OPENAI_BASE_URL",
    .key_env = "OPENAI_API_KEY",
    .path = "/responses",
    .body = responses_body,
    .headers = responses_headers,
    .event = responses_event,
    .whole = responses_whole,
};

const struct provider responses_provider = {
    .scheme = "responses",
    .title = "OpenAI-compatible responses",
    .dialect = &responses,
    .open = http_open,
    .attempt = http_attempt,
    .close = http_close,
};
