/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ask.c - ask the model or the built-in engineer, and extract code from the reply.
 *
 * The four asking stages differ only in what they do with the reply. This file makes the request:
 * the same facts as messages for a language model and as data for the built-in engineer.
 */
#include "base/log.h"
#include "base/text.h"
#include "expert/expert.h"
#include "llm/edit/edit.h"
#include "llm/edit/fence.h"
#include "llm/prompt/retrieve.h"
#include "stage/workshop.h"

#include <ctype.h>
#include <string.h>

enum { MAX_CHANGE = 100, MAX_PASSAGES = 3 };

/* The first words of a reply as one printable line. */
static const char *change_line(struct text reply, const char *fallback, struct arena *a)
{
    const char *marked = fence_change(reply, a);
    struct text line = marked ? text_of(marked) : reply;
    size_t len = 0;
    char *out;

    while (line.len && (isspace((unsigned char)*line.data) || *line.data == '#'))
        line.data++, line.len--;
    while (len < line.len && len < MAX_CHANGE && line.data[len] != '\n')
        len++;
    if (len == 0 || line.data[0] == '`' || line.data[0] == '<' || line.data[0] == '[' ||
        line.data[0] == '{')
        return fallback;
    out = arena_strndup(a, line.data, text_cut((struct text){line.data, len}, len).len);
    for (char *p = out; *p; p++)
        if ((unsigned char)*p < ' ')
            *p = ' ';
    return out;
}

static bool ask_builtin(struct stage *st, const struct question *q, struct arena *a,
                        struct proposal *out, struct error *err)
{
    struct budget_want nothing = {0}; /* it costs only a call and its time */
    struct budget_grant grant;
    bool ok;

    if (q->recorded) {
        out->reply = *q->recorded;
        budget_charge(st->budget, 0, 0);
        return true;
    }
    if (!budget_reserve(st->budget, &nothing, &grant, err))
        return false;
    ok = expert_ask(&out->request, a, &out->reply, err);
    budget_settle(st->budget, &grant, 0, 0);
    return ok;
}

/* Passages of CuTe's headers about the names in a compile error; empty on failure. */
static struct text passages_for(struct stage *st, const struct verdict *v, struct arena *a)
{
    struct error why = {0};

    if (!v || v->kind != VERDICT_COMPILE_ERROR || st->settings.target != LANGUAGE_CUTE)
        return text_of("");
    if (!st->retriever && !retrieve_open(st->tools.cutlass_include, &st->retriever, &why)) {
        log_warn("no passages of CuTe for this error: %s", why.text);
        return text_of("");
    }
    return retrieve_text(st->retriever, text_of(v->detail),
                         v->finding_count && v->findings[0].line ? v->findings[0].line : "",
                         MAX_PASSAGES, a);
}

/* The kernel's time, and the most that can still be gained. */
static const char *time_words(const struct measurement *t, struct arena *a)
{
    const char *now;

    if (!t)
        return "";
    now = arena_printf(a, "%.4g us (%s), %.0f %% of the roofline, bound by %s", t->time_us,
                       t->modelled ? measurement_words(t) : "measured",
                       t->time_us > 0 ? 100 * t->floor_us / t->time_us : 0,
                       t->bound ? t->bound : "what is not known");
    if (t->floor_us <= 0 || t->time_us <= 0)
        return now;
    return arena_printf(a,
                        "%s. No kernel for this task can take less than %.4g us: at most %.2fx "
                        "is left to gain",
                        now, t->floor_us, t->time_us / t->floor_us);
}

/* The parts of the kernel that is improved, or of the example that was written for this task. */
static void set_plan(struct prompt_slots *slots, enum stage_kind kind, const struct question *q,
                     struct text recipe, struct arena *a)
{
    const char *plan = "", *name, *why_not;
    int costliest = 0;

    if (kind == STAGE_OPTIMIZE)
        plan = workshop_plan(q->current->source, q, a, &costliest);
    else if (kind == STAGE_SYNTHESIZE && recipe.len && expert_can(q->task, a, &name, &why_not))
        plan = workshop_plan(recipe, NULL, a, &costliest);
    prompt_set_string(slots, "plan", plan);
    prompt_set_string(slots, "plan_part", arena_printf(a, "%d", costliest));
}

static bool render(struct stage *st, enum stage_kind kind, const struct question *q,
                   struct arena *a, struct proposal *out, struct error *err)
{
    const char *name = prompt_name(kind, q->task->class, q->profile != NULL);
    struct prompt_slots *slots = arena_alloc(a, sizeof(*slots));
    const char *example = st->settings.example ? st->settings.example : "best", *recipe_name = "";
    struct text recipe = text_of("");
    struct prompt prompt;

    if (kind == STAGE_SYNTHESIZE && strcmp(example, "none") != 0 &&
        !workshop_example(st, q->task, !strcmp(example, "other"), a, &recipe_name, &recipe, err))
        return false;
    prompt_fill(&out->request, a, slots);
    prompt_set_string(slots, "recipe_name", recipe_name);
    prompt_set(slots, "recipe", recipe);
    set_plan(slots, kind, q, strcmp(example, "other") != 0 ? recipe : text_of(""), a);
    prompt_set_string(slots, "diagnosis", q->diagnosis);
    prompt_set_string(slots, "rejected", q->rejected);
    prompt_set_string(slots, "time", time_words(q->time, a));
    if (kind == STAGE_OPTIMIZE)
        prompt_set_string(slots, "reached", workshop_reached(q->task->class, a));
    prompt_set_string(slots, "known", q->known);
    prompt_set_string(slots, "note", q->note);
    prompt_set(slots, "passages", passages_for(st, q->verdict, a));
    if (!prompt_render(st->book, name, slots, a, &prompt, err))
        return false;
    out->request.messages = prompt.messages;
    out->request.message_count = prompt.message_count;
    out->request.prompt_hash = prompt.hash;
    return true;
}

void workshop_request(const struct stage *st, enum stage_kind kind, const struct question *q,
                      struct proposal *out)
{
    memset(out, 0, sizeof(*out));
    out->request = (struct request){
        .stage = kind,
        .max_output_tokens = st->settings.max_tokens,
        .target = st->settings.target,
        .task = q->task,
        .device = &st->device,
        .current = q->current,
        .verdict = q->verdict,
        .profile = q->profile,
        .history = q->history,
        .predicted = st->settings.order && strcmp(st->settings.order, "auto") != 0
                         ? strcmp(st->settings.order, "predicted") == 0
                         : st->device.kind == DEVICE_CUDA,
        .watch = q->watch,
    };
}

bool workshop_render(struct stage *st, enum stage_kind kind, const struct question *q,
                     struct arena *a, struct proposal *out, struct error *err)
{
    workshop_request(st, kind, q, out);
    return render(st, kind, q, a, out, err);
}

static bool ask_model(struct stage *st, enum stage_kind kind, const struct question *q,
                      struct arena *a, struct proposal *out, struct error *err)
{
    struct llm *llm = NULL;
    bool ok;

    pthread_mutex_lock(&st->asking);
    ok = render(st, kind, q, a, out, err) && workshop_llm(st, q->slot, &llm, err);
    pthread_mutex_unlock(&st->asking);
    if (!ok)
        return false;
    if (!q->recorded)
        return llm_ask(llm, &out->request, a, &out->reply, err);
    out->reply = *q->recorded;
    return llm_recall(st->llm, &out->request, &out->reply, err);
}

bool workshop_ask(struct stage *st, enum stage_kind kind, const struct question *q, struct arena *a,
                  struct proposal *out, struct error *err)
{
    bool builtin = st->builtin || q->builtin;

    workshop_request(st, kind, q, out);
    if (!(builtin ? ask_builtin(st, q, a, out, err) : ask_model(st, kind, q, a, out, err)))
        return false;
    if (builtin)
        out->steps = expert_steps(out->reply.text, a);
    out->done = out->reply.done;
    out->change = change_line(out->reply.text, stage_names[kind], a);
    return true;
}

void workshop_no_code(struct proposal *out, const char *summary, const char *detail)
{
    out->verdict = (struct verdict){
        .kind = VERDICT_NO_CODE, .summary = summary, .detail = detail, .advice = NULL};
}

void workshop_take_edits(const struct candidate *current, struct arena *a, struct proposal *out)
{
    const char *reason = "";
    struct edit_result r;

    if (out->done)
        return;
    edit_apply(current->source, out->reply.text, a, &r);
    if (r.status == EDIT_APPLIED) {
        out->source = r.source;
        return;
    }
    /* A complete file instead of edits: larger than asked for, but acceptable. */
    if (r.status == EDIT_NOTHING &&
        fence_code(out->reply.text, out->request.target, a, &out->source, &reason))
        return;
    if (r.status == EDIT_NOTHING)
        out->stop = fence_stop(out->reply.text, a);
    workshop_no_code(out,
                     r.status == EDIT_NOTHING ? "the reply holds no edits"
                                              : "the edits do not apply; nothing was changed",
                     r.reason);
}
