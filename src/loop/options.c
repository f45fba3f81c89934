/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.c - a run's options, as stored with it.
 *
 * Stored are options that decide what the loop does, how a kernel is judged, and which model is
 * asked where; not those of the machine or of the user who resumes (folders, keys, deadlines,
 * budgets). A flag given with `resume` overrides what may change; any other causes a warning.
 */
#include "loop/loop.h"

#include "base/json.h"
#include "base/log.h"

#include <limits.h>
#include <string.h>

enum {
    PROFILE_FROM_OTHERS = 1,
    PROFILE_NEVER = INT_MAX,
};

/*
 * For gemm, convolution and attention the structure comes first and the profile later, as in the
 * paper: from half of the depths on. The paper's depth 11 is beyond what a run of 12 with patience
 * reaches. The built-in engineer reads no profile.
 */
int run_profile_depth(const struct settings *s, const struct run_options *o, enum kernel_class of)
{
    bool products = of == CLASS_GEMM || of == CLASS_CONVOLUTION || of == CLASS_ATTENTION;

    if (o->profile_from >= 0)
        return o->profile_from;
    if (!strcmp(s->model, "builtin"))
        return PROFILE_NEVER;
    return products && o->max_depth > 2 ? o->max_depth / 2 : PROFILE_FROM_OTHERS;
}

static const char *const search_names[] = {
    [SEARCH_REFINE] = "refine", [SEARCH_BEAM] = "beam", [SEARCH_RESTARTS] = "restarts"};

/* The string settings about the model, by the key of their flag; may be NULL. */
struct named {
    const char *flag, *key;
    const char **at;
};
enum { MODEL_STRINGS = 8 };

static void model_strings(struct settings *s, struct named out[MODEL_STRINGS])
{
    const struct named list[MODEL_STRINGS] = {
        {"base-url", "base_url", &s->base_url}, {"key-env", "key_env", &s->key_env},
        {"key-file", "key_file", &s->key_file}, {"effort", "effort", &s->effort},
        {"ca-file", "ca_file", &s->ca_file},    {"proxy", "proxy", &s->proxy},
        {"prices", "prices", &s->price_file},   {"prompts", "prompts", &s->prompts},
    };

    memcpy(out, list, sizeof(list));
}

static void add_model(json_t *o, const struct settings *s)
{
    struct settings copy = *s;
    struct named list[MODEL_STRINGS];

    model_strings(&copy, list);
    for (size_t i = 0; i < MODEL_STRINGS; i++)
        if (*list[i].at && !strchr(*list[i].at, '@')) /* a proxy's password stays private */
            json_object_set_new(o, list[i].key, json_from_string(*list[i].at));
    json_object_set_new(o, "temperature", json_real(s->temperature));
    json_object_set_new(o, "max_tokens", json_integer(s->max_tokens));
}

static bool said(const struct run_options *o, const char *flag)
{
    for (size_t i = 0; o->said && o->said[i]; i++)
        if (strcmp(o->said[i], flag) == 0)
            return true;
    return false;
}

static void restore_model(const json_t *j, struct arena *a, struct settings *s,
                          const struct run_options *o)
{
    struct named list[MODEL_STRINGS];

    if (!json_object_get(j, "max_tokens"))
        return; /* stored by a version that did not keep them */
    model_strings(s, list);
    for (size_t i = 0; i < MODEL_STRINGS; i++) {
        const char *kept = json_string_or(j, list[i].key, NULL);

        if (!said(o, list[i].flag))
            *list[i].at = kept ? arena_strdup(a, kept) : NULL;
    }
    if (!said(o, "temperature"))
        s->temperature = json_double_or(j, "temperature", s->temperature);
    if (!said(o, "max-tokens"))
        s->max_tokens = (int)json_int_or(j, "max_tokens", s->max_tokens);
}

/* Warns about flags given with `resume` that were fixed when the run began. */
static void tell_ignored(const struct run_options *o)
{
    static const char *const fixed[] = {
        "backward", "model",    "device",         "models",   "simt-arch", "set",          "shapes",
        "scale",    "draws",    "check",          "repairs",  "advance",   "profile-from", "width",
        "seed",     "target",   "accept",         "baseline", "fresh",     "example",      "search",
        "beam",     "restarts", "parallel-calls", "memory"};

    for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
        if (said(o, fixed[i]))
            log_warn("--%s is ignored: run %s keeps its original value", fixed[i], o->resume_id);
}

json_t *run_options_json(const struct settings *s, const struct run_options *o)
{
    json_t *set = json_array();

    for (size_t i = 0; s->set && s->set[i]; i++)
        json_array_append_new(set, json_string(s->set[i]));
    json_t *out =
        json_pack("{ss ss ss ss ss si si si si ss so sb si ss si sb sb sb ss}", "model", s->model,
                  "device", s->device, "models", s->models, "simt_arch", s->simt_arch, "example",
                  s->example ? s->example : "best", "max_depth", o->max_depth, "max_repairs",
                  o->max_repairs, "patience", o->patience, "profile_from", o->profile_from,
                  "advance", o->advance == ADVANCE_BEST ? "best" : "last", "set", set, "scale",
                  s->scale, "draws", s->draws, "check", s->check, "width", o->width, "seed_builtin",
                  o->seed_builtin, "target_cuda", s->target == LANGUAGE_CUDA, "accept", s->accept,
                  "baseline", s->baseline ? s->baseline : "defaults");
    json_object_set_new(out, "target", json_string(languages[s->target].name));
    json_object_set_new(out, "search", json_string(search_names[o->search]));
    json_object_set_new(out, "beam", json_integer(o->beam));
    json_object_set_new(out, "restarts", json_integer(o->restarts));
    json_object_set_new(out, "share_depth",
                        json_integer(o->share_depth ? o->share_depth : o->max_depth));
    json_object_set_new(out, "parallel_calls", json_integer(o->parallel_calls));
    json_object_set_new(out, "floor_stop", json_integer(o->floor_stop));
    json_object_set_new(out, "memory", json_boolean(o->memory));
    json_object_set_new(out, "tune", json_integer(o->tune));
    json_object_set_new(out, "order", json_string(s->order ? s->order : "auto"));
    if (o->given)
        json_object_set_new(out, "given", json_true());
    add_model(out, s);
    json_object_set_new(out, "backward", json_boolean(s->backward));
    if (s->shapes) {
        json_t *shapes = json_array();

        for (size_t i = 0; s->shapes[i]; i++)
            json_array_append_new(shapes, json_string(s->shapes[i]));
        json_object_set_new(out, "shapes", shapes);
    }
    return out;
}

/* A stored list of words, NULL-terminated. */
static const char *const *words(const json_t *list, struct arena *a)
{
    const char **out = arena_array(a, json_array_size(list) + 1, sizeof(*out));

    for (size_t i = 0; i < json_array_size(list); i++)
        out[i] = arena_strdup(a, json_string_value(json_array_get(list, i)));
    return out;
}

/* Restores how the run searches, including parallel calls, which change the order of attempts. */
static void restore_search(const json_t *j, struct run_options *o)
{
    const char *name = json_string_or(j, "search", "refine");

    o->search = SEARCH_REFINE;
    for (size_t i = 0; i < ARRAY_LEN(search_names); i++)
        if (strcmp(search_names[i], name) == 0)
            o->search = (enum search)i;
    o->beam = (int)json_int_or(j, "beam", 1);
    o->restarts = (int)json_int_or(j, "restarts", 1);
    o->share_depth = (int)json_int_or(j, "share_depth", json_int_or(j, "max_depth", 0));
    o->parallel_calls = (int)json_int_or(j, "parallel_calls", 1);
    o->memory = json_bool_or(j, "memory", false);
    o->given = json_bool_or(j, "given", false);
    if (!said(o, "tune"))
        o->tune = (int)json_int_or(j, "tune", 0);
    if (!said(o, "floor-stop")) /* runs of earlier versions had no such stop */
        o->floor_stop = (int)json_int_or(j, "floor_stop", 0);
}

/* A resumed run keeps its original options, except those that its flags may change. */
bool run_options_restore(const json_t *j, struct arena *a, struct settings *s,
                         struct run_options *o, struct error *err)
{

    if (!strcmp(json_string_or(j, "kind", ""), "eval")) {
        error_set(err, ERROR_USE,
                  "%s is a single verdict (cutegen eval): there is nothing to resume",
                  o->resume_id);
        return error_hint(err, "cutegen show %s shows it; cutegen eval judges again", o->resume_id);
    }
    s->set = words(json_object_get(j, "set"), a);
    s->shapes = words(json_object_get(j, "shapes"), a);
    s->model = arena_strdup(a, json_string_or(j, "model", s->model));
    s->device = arena_strdup(a, json_string_or(j, "device", s->device));
    s->models = arena_strdup(a, json_string_or(j, "models", s->models));
    s->simt_arch = arena_strdup(a, json_string_or(j, "simt_arch", s->simt_arch));
    s->check = arena_strdup(a, json_string_or(j, "check", s->check));
    s->example = arena_strdup(a, json_string_or(j, "example", s->example));
    s->scale = json_bool_or(j, "scale", s->scale);
    s->draws = (int)json_int_or(j, "draws", s->draws);
    s->accept = json_bool_or(j, "accept", s->accept);
    s->backward = json_bool_or(j, "backward", false);
    /* Runs stored before the settings had names allowed TF32 everywhere or nowhere. */
    s->baseline = arena_strdup(
        a, json_string_or(j, "baseline", json_bool_or(j, "allow_tf32", false) ? "tf32" : "strict"));
    /* Runs stored before there were three languages only say whether it is CUDA C++. */
    s->target = language_named(
        json_string_or(j, "target", json_bool_or(j, "target_cuda", false) ? "cuda" : "cute"));
    s->order = arena_strdup(a, json_string_or(j, "order", "steps"));
    restore_model(j, a, s, o);
    tell_ignored(o);
    if (!said(o, "depth"))
        o->max_depth = (int)json_int_or(j, "max_depth", o->max_depth);
    o->max_repairs = (int)json_int_or(j, "max_repairs", o->max_repairs);
    if (!said(o, "patience"))
        o->patience = (int)json_int_or(j, "patience", o->patience);
    o->profile_from = (int)json_int_or(j, "profile_from", o->profile_from);
    o->width = (int)json_int_or(j, "width", 1);
    o->seed_builtin = json_bool_or(j, "seed_builtin", false);
    restore_search(j, o);
    o->advance =
        strcmp(json_string_or(j, "advance", "best"), "last") == 0 ? ADVANCE_LAST : ADVANCE_BEST;
    return true;
}
