/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prompt.h - the words sent to a model: templates with named slots.
 *
 *     struct prompt_book *book;
 *     if (!prompt_open(NULL, LANGUAGE_CUTE, a, &book, err)) ...  NULL: the product's own prompts/
 *     struct prompt_slots s = {0};
 *     prompt_set(&s, "task_source", task->source);
 *     if (!prompt_render(book, prompt_name(stage, class, false), &s, a, &p, err)) ...
 *     request.messages = p.messages; request.prompt_hash = p.hash; ...
 *
 * A template is prompts/NAME.md; for a language of Python, prompts/LANGUAGE/NAME.md or
 * prompts/python/NAME.md where there is one. {{slot}} is replaced by the slot's text,
 * {{> part}} by another template, {{?slot}}...{{/slot}} stays only when the slot
 * is set and not empty. {{~word slot}} is the slot's text as a fenced block marked
 * with that word. "=== system" and "=== user" lines begin a message.
 *
 * Invariants
 * 1. Slot texts are put in as they are, never read as a template.
 * 2. A {{slot}} that is not set is an error that names template and slot.
 * 3. What never changes comes first: system, then ABI and guide, then task, then
 *    candidate, then evidence. Providers cache the common front.
 * 4. Text that a candidate or a program wrote is quoted: nothing in it can close the
 *    fence of {{~word slot}}; what stands in a sentence is one line of limited length.
 * 5. The hash covers every template the rendering used, not the slots.
 */
#ifndef LLM_PROMPT_H
#define LLM_PROMPT_H

#include "base/error.h"
#include "model.h"

enum { PROMPT_MAX_SLOTS = 48 };

struct prompt_slots {
    struct {
        const char *name;
        struct text value;
    } items[PROMPT_MAX_SLOTS];
    size_t count;
};

struct prompt {
    const struct message *messages;
    size_t message_count;
    const char *hash;
};

struct prompt_book;

/* Reads nothing yet. folder: NULL, or one whose files win over the product's of the same name. */
bool prompt_open(const char *folder, enum language target, struct arena *a,
                 struct prompt_book **out, struct error *err);
void prompt_set(struct prompt_slots *s, const char *name, struct text value);
void prompt_set_string(struct prompt_slots *s, const char *name, const char *value); /* NULL: "" */
/* name: "synthesize", "diagnose", "repair", "optimize-gemm", "optimize-profile-gemm", ... */
bool prompt_render(struct prompt_book *book, const char *name, const struct prompt_slots *slots,
                   struct arena *a, struct prompt *out, struct error *err);

/* The template a stage uses for a request: class and the presence of a profile decide. */
const char *prompt_name(enum stage_kind stage, enum kernel_class class, bool profile);

/* Fills every slot that can be known from the request's data (task, device, current,
 * verdict, profile, history); the caller adds the rest. Slots: docs/models.md. */
void prompt_fill(const struct request *req, struct arena *a, struct prompt_slots *s);

#endif
