/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adapt.c - retry a refused request without the parameter that was refused.
 *
 * Servers differ in which parameters they know and in how much output they
 * allow. Only the parameter that the refusal names is changed (`param` of the error, else the first
 * parameter name in its text): a complaint about the temperature says nothing about tokens.
 */
#include "base/log.h"
#include "llm/provider/provider.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_OUTPUT = 128 };

static const struct request_parameter {
    const char *name;
    unsigned drop;
} parameters[] = {
    {"max_completion_tokens", DROP_MAX_TOKENS_NAME},
    {"max_output_tokens", DROP_MAX_TOKENS_NAME},
    {"max_tokens", DROP_MAX_TOKENS_NAME},
    {"temperature", DROP_TEMPERATURE},
    {"reasoning_effort", DROP_EFFORT},
    {"reasoning", DROP_EFFORT},
    {"thinking", DROP_EFFORT},
    {"stream_options", DROP_STREAM_OPTIONS},
};

static bool in_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Finds the name as a whole word; NULL: it does not occur. */
static const char *word_at(const char *words, const char *name)
{
    size_t n = strlen(name);

    for (const char *p = words; (p = strstr(p, name)) != NULL; p += n)
        if (!in_name(p[n]) && (p == words || !in_name(p[-1])))
            return p;
    return NULL;
}

/* The parameter that a refusal is about; NULL: none that we send. */
static const struct request_parameter *named(const struct refusal *r)
{
    const struct request_parameter *first = NULL;
    const char *at = NULL;

    for (size_t i = 0; i < ARRAY_LEN(parameters); i++) {
        const char *text = *r->param ? r->param : r->words;
        const char *p = word_at(text, parameters[i].name);

        if (p && (!at || p < at)) {
            at = p;
            first = &parameters[i];
        }
    }
    return first;
}

static bool says(const struct refusal *r, const char *word)
{
    return strcasestr(r->words, word) || strcasestr(r->code, word);
}

/* Is the parameter's name refused, rather than its value? */
static bool name_is_refused(const struct refusal *r)
{
    return says(r, "unsupported_parameter") || says(r, "unknown_parameter") ||
           says(r, "unsupported parameter") || says(r, "unknown parameter") ||
           says(r, "unrecognized") || says(r, "not supported") || says(r, "extra inputs");
}

/* The largest number below `asked` in the message, taken as the server's limit; 0: none. */
static int allowed(const char *words, int asked)
{
    long best = 0;

    for (const char *p = words; *p; p++) {
        char *end;
        long n;

        if (!isdigit((unsigned char)*p) || (p > words && in_name(p[-1])))
            continue;
        n = strtol(p, &end, 10);
        if (n < asked && n > best && !in_name(*end) && *end != '.')
            best = n;
        p = end - 1;
    }
    return (int)best;
}

/* Asks for fewer output tokens: the number that the server names, else half. A limit of the model
 * applies from now on; a full context only to this call. */
static bool ask_for_less(struct llm *llm, struct wire *w, const struct refusal *r, struct fault *f)
{
    bool context = says(r, "context");
    int less = context ? 0 : allowed(r->words, w->max_output_tokens);

    if (less < LEAST_OUTPUT)
        less = w->max_output_tokens / 2;
    if (less < LEAST_OUTPUT)
        return false;
    w->max_output_tokens = less;
    if (!context)
        llm->token_cap = less;
    f->again = true;
    log_info("%s allows fewer tokens: asking for %d", llm->config.model, less);
    return true;
}

bool adapt_request(struct llm *llm, struct wire *w, const struct refusal *r, struct fault *f)
{
    const struct request_parameter *p = named(r);

    if (!p)
        return says(r, "context_length_exceeded") && ask_for_less(llm, w, r, f);
    if (p->drop == DROP_MAX_TOKENS_NAME && !name_is_refused(r))
        return ask_for_less(llm, w, r, f);
    if (llm->drop & p->drop)
        return false;
    llm->drop |= p->drop;
    f->again = true;
    log_info("%s refuses %s: asking without it", llm->config.model, p->name);
    return true;
}
