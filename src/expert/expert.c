/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expert.c - the built-in engineer: choose the next step and write the reply.
 *
 * A reply names the steps of its kernel, and the store keeps them with the
 * kernel. A kernel without stored steps is recognised by composing the recipe
 * for every set of steps until one equals it. If a step needs another that the current kernel lacks
 * (because that gained nothing by itself), both are proposed together.
 */
#include "expert/expert.h"

#include "base/buf.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "base/tunables.h"
#include "expert/compose/launch_order.h"
#include "expert/compose/source_edits.h"
#include "expert/match/match.h"
#include "expert/match/partition.h"
#include "expert/match/size_constants.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_OVERLAP = 90 }; /* the architecture that has dependent launches */

/* The recipe that answers a question, with its slots filled. */
struct work {
    struct graph graph;
    struct match match;
    struct recipe recipe;
    struct chain *chain; /* of a task that takes several kernels; else NULL */
    unsigned possible;   /* steps that apply to this task */
    unsigned overlap;    /* the step after which launches overlap; 0: there is none */
    unsigned planes;     /* the step after which products write what attention reads; 0: none */
};

static bool recognise(const struct task *task, const struct device *device, struct arena *a,
                      struct work *w)
{
    w->match = (struct match){.why_not = "the description has no operator graph"};
    w->match.refused = json_string_or(task->description, "other_dtypes", NULL);
    if (w->match.refused) { /* a recipe writes the dtypes of one graph into the kernel */
        w->match.why_not = w->match.refused =
            arena_printf(a, "one dtype for each input, and %s", w->match.refused);
        return false;
    }
    if (!task->description || !graph_read(task->description, a, &w->graph, &w->match.why_not)) {
        w->match.refused = w->match.why_not;
        return false;
    }
    graph_device(&w->graph, device);
    if (!match_graph(&w->graph, a, &w->match))
        return false;
    if (w->match.graph)
        w->graph = *w->match.graph;
    return true;
}

/* A recipe whose own steps order its launches has no other for that. */
static bool may_overlap(const struct work *w)
{
    return w->graph.arch >= FIRST_OVERLAP && w->recipe.step_count < RECIPE_STEPS &&
           (w->chain || !strstr(w->recipe.body.data, "CUTEGEN_OVERLAP"));
}

/* Products on the tensor cores can write the parts of Q, K and V. */
static void prepare_planes(struct work *w)
{
    static const struct recipe_step planes = {
        .name = "planes",
        .words = "write Q, K and V in fp16 parts as products make them",
        .why = "Attention reads what the products' epilogues write: no launch reads it all again "
               "to split it.",
    };
    static const char *const below[] = {"ring", "tensor"};
    struct recipe *r = &w->recipe;
    struct recipe_step step = planes;

    for (size_t k = 0; k < ARRAY_LEN(below) && !step.needs; k++)
        for (int i = 0; i < r->step_count; i++)
            if (strcmp(r->steps[i].name, below[k]) == 0)
                step.needs = 1u << i;
    if (!w->chain || r->step_count >= RECIPE_STEPS || !chain_has_attention_parts(w->chain))
        return;
    w->planes = 1u << r->step_count;
    w->possible |= w->planes;
    r->steps[r->step_count++] = step;
}

static bool prepare(struct work *w, struct arena *a, struct error *err)
{
    static const struct recipe_step overlap = {
        .name = "dependent",
        .words = "let every launch begin while the one before ends",
        .why = "The blocks of the next kernel are on their SMs when this one ends. Only the plan "
               "changes.",
        .likely = "never", /* what it gains is measured */
    };
    struct recipe *r = &w->recipe;

    w->chain = NULL;
    w->overlap = w->planes = 0;
    if (!recipe_load(w->match.recipe, a, r, err) ||
        !(w->match.parts ? chain_open(w->match.parts, a, &w->chain, &w->possible, err)
                         : recipe_steps(r, w->match.scope, &w->possible, err)))
        return false;
    prepare_planes(w);
    if (may_overlap(w)) {
        w->overlap = 1u << r->step_count;
        w->possible |= w->overlap;
        r->steps[r->step_count++] = overlap;
    }
    return true;
}

static bool compose(const struct work *w, unsigned steps, struct arena *a, struct text *out,
                    struct error *err)
{
    uint64_t literal = 0; /* numbers derived from sizes that are literals in the text */
    bool overlap = steps & w->overlap, planes = steps & w->planes;

    steps &= ~(w->overlap | w->planes);
    if (!(w->chain ? chain_compose(w->chain, steps, overlap, planes, a, out, &literal, err)
                   : recipe_compose(&w->recipe, w->match.scope, steps, a, out, err)))
        return false;
    if (!w->chain)
        *out = size_constants_pass(&w->graph, "call", *out, a, &literal);
    *out = size_constants_require(&w->graph, literal, *out, a);
    if (w->overlap && launches_several(*out))
        *out = launches_ordered(*out, overlap, a);
    return true;
}

/* The short reason; match.why_not has each recipe's reason. */
static const char *cannot(const struct task *task, const struct work *w, struct arena *a)
{
    const char *ops = w->graph.count ? graph_ops(&w->graph, a) : NULL;

    if (w->match.refused)
        return arena_printf(a, "%s is not covered by the built-in engineer (%s): configure a model",
                            task->name ? task->name : "the task", w->match.refused);
    if (!ops)
        return arena_printf(a, "%s is not covered by the built-in engineer (%s): configure a model",
                            task->name ? task->name : "the task", w->match.why_not);
    return arena_printf(a, "%s%s is not covered by the built-in engineer: configure a model",
                        strchr(ops, ',') ? "a graph of " : "", ops);
}

bool expert_can(const struct task *task, struct arena *a, const char **recipe, const char **why_not)
{
    struct work *w = arena_alloc(a, sizeof(*w));
    bool can = recognise(task, NULL, a, w);

    *recipe = can ? w->match.recipe : NULL;
    *why_not = can ? NULL : cannot(task, w, a);
    return can;
}

/* ---- the ladder ------------------------------------------------------------ */

static unsigned needs_of(const struct recipe *r, unsigned steps)
{
    unsigned all = steps, before;

    do {
        before = all;
        for (int i = 0; i < r->step_count; i++)
            if (all >> i & 1)
                all |= r->steps[i].needs;
    } while (all != before);
    return all;
}

static unsigned excluded_by(const struct recipe *r, unsigned steps)
{
    unsigned all = 0;

    for (int i = 0; i < r->step_count; i++)
        if (steps >> i & 1)
            all |= r->steps[i].excludes;
    return all;
}

/* Can these steps be taken together for this task? */
static bool is_set(const struct work *w, unsigned set)
{
    return !(set & ~w->possible) && needs_of(&w->recipe, set) == set &&
           !(excluded_by(&w->recipe, set) & set);
}

/* The source with each tunable set to its smallest value: a kernel before and after tuning gives
 * the same text. */
static struct text untuned(struct text source, struct arena *a)
{
    static const int least[TUNABLES_MAX];
    struct tunables t;
    struct error ignored = {0};

    return tunables_read(source, a, &t, &ignored) ? tunables_set(source, &t, least, a) : source;
}

static bool composes(const struct work *w, unsigned set, struct text source, bool *equal,
                     struct error *err)
{
    struct arena *scratch = arena_new();
    struct text composed;
    bool ok = compose(w, set, scratch, &composed, err);

    *equal = ok && text_equal(untuned(composed, scratch), untuned(source, scratch));
    arena_free(scratch);
    return ok;
}

static const char steps_mark[] = "STEPS:";

static const char *step_names(const struct recipe *r, unsigned set, struct arena *a)
{
    const char *names = "";

    for (int i = 0; i < r->step_count; i++)
        if (set >> i & 1)
            names = arena_printf(a, "%s %s", names, r->steps[i].name);
    return names;
}

const char *expert_steps(struct text reply, struct arena *a)
{
    for (struct text line; text_next_line(&reply, &line);)
        if (text_starts(line, steps_mark)) {
            line.data += strlen(steps_mark);
            line.len -= strlen(steps_mark);
            line = text_trim(line);
            return arena_strndup(a, line.data, line.len);
        }
    return NULL;
}

/* The steps with these names, as a set; false: one of them is not a step of this recipe. */
static bool set_of_names(const struct recipe *r, const char *names, unsigned *out)
{
    *out = 0;
    for (size_t len; *names; names += len + strspn(names + len, " ")) {
        int i = 0;

        len = strcspn(names, " ");
        while (i < r->step_count &&
               (strlen(r->steps[i].name) != len || strncmp(r->steps[i].name, names, len) != 0))
            i++;
        if (i == r->step_count)
            return false;
        *out |= 1u << i;
    }
    return true;
}

/* The set of steps that composes to this kernel: the stored set if it still does, else the first
 * one found. */
static bool steps_of(const struct work *w, const struct candidate *c, unsigned *out, bool *found,
                     struct error *err)
{
    unsigned has = (strstr(c->source.data, launches_overlap) ? w->overlap : 0) |
                   (strstr(c->source.data, "struct part_planes") ? w->planes : 0);

    *found = false;
    if (c->steps && set_of_names(&w->recipe, c->steps, out) && is_set(w, *out) &&
        !composes(w, *out, c->source, found, err))
        return false;
    for (unsigned set = 0; set < 1u << w->recipe.step_count && !*found; set++) {
        if ((set & (w->overlap | w->planes)) == has && is_set(w, set) &&
            !composes(w, set, c->source, found, err))
            return false;
        *out = set;
    }
    return true;
}

/* The set predicted to be fastest: every step that probably gains; of two incompatible ones the
 * later. */
static bool predicted_set(const struct work *w, unsigned *out, struct error *err)
{
    const struct recipe *r = &w->recipe;
    unsigned likely, set = 0, before;

    if (!recipe_likely(r, w->match.scope, &likely, err))
        return false;
    for (int i = 0; i < r->step_count; i++) {
        unsigned want = needs_of(r, 1u << i);

        if ((w->possible & likely) >> i & 1 && !(want & ~w->possible))
            set = (set & ~excluded_by(r, want)) | want;
    }
    do { /* drop steps that lost one they need */
        before = set;
        for (int i = 0; i < r->step_count; i++)
            if (set >> i & 1 && r->steps[i].needs & ~set)
                set &= ~(1u << i);
    } while (set != before);
    *out = is_set(w, set) ? set : 0;
    return true;
}

/* The result of an earlier attempt at a step. */
enum tried { TRIED_NOT, TRIED_PASSED, TRIED_FAILED };

/* A change begins with the words of its step. Steps added because it needs them do not count. */
static enum tried tried_before(const json_t *history, const char *words)
{
    enum tried how = TRIED_NOT;
    size_t i;
    const json_t *entry;

    json_array_foreach(history, i, entry)
    {
        const char *verdict = json_string_or(entry, "verdict", "pass");
        const char *change = json_string_or(entry, "change", "");

        if (strncmp(change, "CHANGE: ", strlen("CHANGE: ")) == 0)
            change += strlen("CHANGE: ");
        if (strncmp(change, words, strlen(words)) == 0)
            how = strcmp(verdict, verdict_names[VERDICT_PASS]) == 0 ? TRIED_PASSED : TRIED_FAILED;
    }
    return how;
}

/* The next step of the ladder and the resulting set of steps, skipping the steps in `not`; false:
 * the end of the ladder. After a prediction the step that compiles no kernel comes first. */
static bool next_step(const struct work *w, const struct request *req, unsigned now, unsigned not,
                      int *step, unsigned *next)
{
    const struct recipe *r = &w->recipe;
    int first = req->predicted && w->overlap ? r->step_count - 1 : 0;
    unsigned failed = 0;

    for (int i = 0; i < r->step_count; i++)
        if (tried_before(req->history, r->steps[i].words) == TRIED_FAILED)
            failed |= 1u << i;
    for (int k = 0; k < r->step_count; k++) {
        int i = (k + first) % r->step_count;
        unsigned want = needs_of(r, 1u << i);

        if (!(w->possible >> i & 1) || (now >> i & 1) || (not >> i & 1) ||
            tried_before(req->history, r->steps[i].words) != TRIED_NOT || (want & failed))
            continue;
        *next = (now & ~excluded_by(r, want)) | want;
        if (!is_set(w, *next)) /* something it needs was excluded, or something excludes it */
            continue;
        *step = i;
        return true;
    }
    return false;
}

static const char without[] = "leave out: ";

/* A neighbour without one step: the last one on the ladder that no other step needs. */
static bool one_less(const struct work *w, const json_t *history, unsigned now, unsigned not,
                     int *step, unsigned *next, struct arena *a)
{
    const struct recipe *r = &w->recipe;

    for (int i = r->step_count - 1; i >= 0; i--) {
        const char *words = arena_printf(a, "%s%s", without, r->steps[i].words);

        *next = now & ~(1u << i);
        if (!((now & ~not ) >> i & 1) || !is_set(w, *next) ||
            tried_before(history, words) != TRIED_NOT)
            continue;
        *step = i;
        return true;
    }
    return false;
}

/* ---- answers ---------------------------------------------------------------- */

static void say(struct reply *out, struct arena *a, bool done, const char *text)
{
    *out = (struct reply){.text = arena_text(a, text, strlen(text)),
                          .model = "builtin",
                          .finish_reason = "stop",
                          .done = done};
}

static bool plain(const struct work *w, struct arena *a, struct reply *out, struct error *err)
{
    struct text source;

    if (!compose(w, 0, a, &source, err))
        return false;
    say(out, a, false,
        arena_printf(a, "CHANGE: the plain %s kernel\n%s\n\n%s: %s.\n\n```cuda\n%s```\n",
                     w->recipe.name, steps_mark, w->recipe.name, w->recipe.words, source.data));
    return true;
}

/* The best kernel of an earlier run, if the recipe still composes it; else the plain form. */
static bool synthesize(const struct request *req, const struct work *w, struct arena *a,
                       struct reply *out, struct error *err)
{
    struct text source;
    unsigned steps;
    bool found = false;

    if (req->current && !steps_of(w, req->current, &steps, &found, err))
        return false;
    if (found) {
        say(out, a, false,
            arena_printf(a, "CHANGE: %s\n%s%s\n\n```cuda\n%s```\n", req->current->change,
                         steps_mark, step_names(&w->recipe, steps, a), req->current->source.data));
        return true;
    }
    if (req->predicted && !predicted_set(w, &steps, err))
        return false;
    if (req->predicted && steps) {
        if (!compose(w, steps, a, &source, err))
            return false;
        say(out, a, false,
            arena_printf(
                a, "CHANGE: the %s kernel that is predicted to be best\n%s%s\n\n```cuda\n%s```\n",
                w->recipe.name, steps_mark, step_names(&w->recipe, steps, a), source.data));
        return true;
    }
    return plain(w, a, out, err);
}

/* A kernel with several steps may fail where the plain one passes. */
static bool step_back(const struct request *req, const struct work *w, struct arena *a,
                      struct reply *out, bool *back, struct error *err)
{
    unsigned steps;
    bool found = false;

    *back = req->predicted && req->current && req->current->depth == 0;
    if (*back && !steps_of(w, req->current, &steps, &found, err))
        return false;
    *back = *back && found && steps;
    if (!*back || req->stage == STAGE_REPAIR)
        return !*back || plain(w, a, out, err);
    say(out, a, false, "All steps at once do not work here: the plain kernel comes first.\n");
    return true;
}

/* The change's text: "share tiles through shared memory", and the steps added with it. */
static const char *change_words(const struct recipe *r, int step, unsigned added, struct arena *a)
{
    const char *words = r->steps[step].words;

    for (int i = 0; i < r->step_count; i++)
        if (i != step && (added >> i & 1))
            words = arena_printf(a, "%s; with it: %s", words, r->steps[i].words);
    return words;
}

static const char *at_end(const struct request *req, const struct work *w, struct arena *a)
{
    return arena_printf(a, "The %s ladder is at its end: %s.\n", w->recipe.name,
                        req->predicted ? "nothing untried is predicted to win"
                                       : "every step that applies was tried");
}

/* The next neighbour to try; *more false: the end of the ladder. */
struct neighbour {
    int step;
    bool less;     /* without that step, not with it */
    unsigned next; /* the steps it has */
    struct text source;
};

static bool next_neighbour(const struct request *req, const struct work *w, unsigned now,
                           struct arena *a, struct neighbour *out, bool *more, struct error *err)
{
    unsigned idle = 0;

    do {
        out->less = false;
        *more = next_step(w, req, now, idle, &out->step, &out->next);
        if (!*more)
            *more = out->less =
                req->predicted && one_less(w, req->history, now, idle, &out->step, &out->next, a);
        if (!*more)
            return true;
        if (!compose(w, out->next, a, &out->source, err))
            return false;
        idle |= 1u << out->step; /* it may change nothing given the present steps */
    } while (text_equal(req->current->source, out->source));
    return true;
}

static const char *neighbour_words(const struct work *w, const struct neighbour *n, unsigned now,
                                   struct arena *a)
{
    return arena_printf(a, "%s%s", n->less ? without : "",
                        change_words(&w->recipe, n->step, n->next & ~now, a));
}

static bool optimize(const struct request *req, const struct work *w, struct arena *a,
                     struct reply *out, struct error *err)
{
    struct neighbour n;
    struct text blocks;
    unsigned now = 0;
    bool found, more;

    if (!steps_of(w, req->current, &now, &found, err))
        return false;
    if (!found) {
        say(out, a, true,
            arena_printf(a,
                         "The current kernel is not one of the %s recipe; the built-in "
                         "engineer has no step for it.\n",
                         w->recipe.name));
        return true;
    }
    if (!next_neighbour(req, w, now, a, &n, &more, err))
        return false;
    if (!more) {
        say(out, a, true, at_end(req, w, a));
        return true;
    }
    blocks = change_blocks(req->current->source, n.source, a);
    say(out, a, false,
        arena_printf(a, "CHANGE: %s\n%s%s\n\n%s\n\n```\n%s```\n", neighbour_words(w, &n, now, a),
                     steps_mark, step_names(&w->recipe, n.next, a),
                     n.less ? "" : w->recipe.steps[n.step].why, blocks.data));
    return true;
}

bool expert_ahead(const struct request *asked, struct text *sources, int most, int *count,
                  struct arena *a, struct error *err)
{
    struct work *w = arena_alloc(a, sizeof(*w));
    struct candidate current = *asked->current;
    struct request req = *asked;
    struct neighbour n;
    unsigned now = 0;
    bool found = false, more = true, ok;

    *count = 0;
    if (!recognise(req.task, req.device, a, w))
        return true;
    if (!prepare(w, a, err) || !steps_of(w, &current, &now, &found, err))
        return false;
    req.current = &current;
    req.history = json_deep_copy(asked->history);
    for (ok = true; ok && found && more && *count < most;) {
        ok = next_neighbour(&req, w, now, a, &n, &more, err);
        if (!ok || !more)
            break;
        sources[(*count)++] = n.source;
        json_array_append_new(req.history,
                              json_pack("{s:s, s:s}", "change", neighbour_words(w, &n, now, a),
                                        "verdict", verdict_names[VERDICT_PASS]));
        if (!req.predicted) { /* assume that each step gains and the next builds on it */
            now = n.next;
            current.source = n.source;
        }
    }
    json_decref(req.history);
    return ok;
}

static const char no_repair[] =
    "The built-in engineer does not guess at repairs: it takes the step back.\n";

bool expert_ask(const struct request *req, struct arena *a, struct reply *out, struct error *err)
{
    struct work *w = arena_alloc(a, sizeof(*w));

    bool repair = req->stage == STAGE_DIAGNOSE || req->stage == STAGE_REPAIR, back = false;

    if (repair && !req->predicted) {
        say(out, a, true, no_repair);
        return true;
    }
    if (!recognise(req->task, req->device, a, w)) {
        log_info("the recipes object: %s", w->match.why_not);
        say(out, a, true, arena_printf(a, "%s.\n", cannot(req->task, w, a)));
        return true;
    }
    if (!prepare(w, a, err))
        return false;
    if (repair) {
        if (!step_back(req, w, a, out, &back, err))
            return false;
        if (!back)
            say(out, a, true, no_repair);
        return true;
    }
    if (req->stage == STAGE_SYNTHESIZE)
        return synthesize(req, w, a, out, err);
    if (!req->current)
        BUG("an optimise request without a current kernel");
    return optimize(req, w, a, out, err);
}

bool expert_recipe_text(const struct task *task, bool other, struct arena *a, const char **recipe,
                        struct text *out, struct error *err)
{
    struct work *w = arena_alloc(a, sizeof(*w));
    const char *description;
    json_t *example = NULL;
    unsigned all;
    bool ok = !other && recognise(task, NULL, a, w);

    if (!ok || strcmp(w->match.recipe, "generic") == 0) { /* nothing to learn from that one */
        if (other)
            match_other(task->class, task->description, recipe, &description);
        else
            match_nearest(task->class, recipe, &description);
        if (!json_parse(text_of(description), "an example graph", &example, err))
            return false;
        ok = graph_read(example, a, &w->graph, &w->match.why_not) &&
             match_graph(&w->graph, a, &w->match);
        if (!ok)
            BUG("the example graph of %s does not match: %s", *recipe, w->match.why_not);
    }
    *recipe = w->match.recipe;
    ok = prepare(w, a, err);
    all = w->possible;
    for (int i = 0; ok && i < w->recipe.step_count; i++)
        if (all >> i & 1)
            all &= ~w->recipe.steps[i].excludes;
    ok = ok && compose(w, all, a, out, err);
    json_decref(example);
    return ok;
}
