/* SPDX-License-Identifier: Apache-2.0 */
/*
 * single_steps.c - single steps by hand: ask, models, prompt, edit apply.
 *
 * Thin doors for the command line to what the loop uses, so that what a
 * person tries out is what a run does.
 */
#include "base/fs.h"
#include "base/json.h"
#include "llm/edit/edit.h"
#include "stage/workshop.h"

#include <string.h>

bool stage_ask(const struct settings *settings, struct text prompt,
               void (*on_text)(void *ctx, const char *text, size_t len), void *ctx, struct arena *a,
               struct reply *out, struct error *err)
{
    struct llm_config config = workshop_llm_config(settings);
    struct message message = {.role = "user", .content = prompt};
    struct request req = {.stage = STAGE_DIAGNOSE,
                          .messages = &message,
                          .message_count = 1,
                          .max_output_tokens = settings->max_tokens,
                          .prompt_hash = ""};
    struct llm *llm = NULL;
    bool ok;

    if (strcmp(settings->model, "builtin") == 0) {
        error_set(err, ERROR_USE, "the built-in engineer answers no free questions");
        return error_hint(err, "name a model: --model openai:NAME, anthropic:NAME, exec:COMMAND");
    }
    config.on_text = on_text;
    config.on_text_ctx = ctx;
    ok = llm_open(&config, &llm, err) && llm_ask(llm, &req, a, out, err);
    llm_close(llm);
    return ok;
}

bool stage_models(const struct settings *settings, struct arena *a, json_t **out, struct error *err)
{
    struct llm_config config = workshop_llm_config(settings);

    (void)a;
    (void)err;
    *out = json_object();
    if (strcmp(settings->model, "builtin") == 0)
        json_object_set_new(*out, "configured",
                            json_pack("{s:s, s:s}", "model", "builtin", "provider", "builtin"));
    else
        json_object_set_new(*out, "configured", llm_describe(&config));
    json_object_set_new(*out, "providers", llm_providers());
    return true;
}

/* Evidence for a prompt that is only shown: what a real request would carry. */
static struct verdict sample_verdict(void)
{
    return (struct verdict){.kind = VERDICT_WRONG_VALUES,
                            .summary = "(the verdict's summary)",
                            .detail = "(the evidence: worst elements, pattern, findings)"};
}

bool stage_prompt(const struct settings *settings, const struct prompt_preview *what,
                  struct arena *a, struct request *out, struct error *err)
{
    enum stage_kind stage = what->stage;
    struct settings shown = *settings;
    struct verdict verdict = sample_verdict();
    struct candidate *current = arena_alloc(a, sizeof(*current));
    struct task *task = arena_alloc(a, sizeof(*task));
    struct proposal p;
    struct stage *st = NULL;
    json_t *history = json_array();
    bool asks_about_kernel = stage != STAGE_SYNTHESIZE;
    struct question q = {.task = task, .history = history};
    bool ok = false;

    shown.model = "builtin";      /* no model is asked */
    shown.target = LANGUAGE_CUTE; /* nothing is built: what builds it need not be there */
    if (!stage_open(&shown, &st, err) || !stage_describe(st, what->task_path, a, task, err))
        goto done;
    if (what->known && !what->known(what->ctx, task, &st->device, a, &q.known, err))
        goto done;
    if (asks_about_kernel) {
        current->change = "(the kernel given)";
        if (!file_read(what->source_path, 4 << 20, a, &current->source, err))
            goto done;
        q.current = current;
    }
    if (stage == STAGE_DIAGNOSE || stage == STAGE_REPAIR)
        q.verdict = what->verdict ? what->verdict : &verdict;
    if (stage == STAGE_REPAIR && !what->verdict)
        q.diagnosis = "(what the diagnosis said)";
    st->settings.target = settings->target;
    if (!prompt_open(settings->prompts, settings->target, st->a, &st->book, err) ||
        !workshop_render(st, stage, &q, a, &p, err))
        goto done;
    *out = p.request;
    ok = true;
done:
    json_decref(history);
    stage_close(st);
    return ok;
}

enum edit_outcome stage_edit(struct text source, struct text reply, struct arena *a,
                             struct text *result, const char **reason, json_t **report)
{
    static const enum edit_outcome outcomes[] = {[EDIT_APPLIED] = EDITED,
                                                 [EDIT_NOTHING] = EDIT_NOT_FOUND,
                                                 [EDIT_REJECTED] = EDIT_NOT_APPLIED};
    struct edit_result r;

    edit_apply(source, reply, a, &r);
    *result = r.source;
    *reason = r.reason;
    *report = edit_json(&r);
    return outcomes[r.status];
}
