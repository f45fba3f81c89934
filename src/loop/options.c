/*
 * options.c - what a run was started with, as the store keeps it.
 *
 * Everything that decides what the loop does or how a kernel is judged is
 * here; what belongs to the machine or to the one who resumes (folders, keys,
 * deadlines, budgets) is not.
 */
#include "loop/loop.h"

#include "base/json.h"

#include <limits.h>
#include <string.h>

enum {
    PROFILE_FROM_GEMM = 11, /* structure first (the paper's schedule) */
    PROFILE_FROM_OTHERS = 1,
    PROFILE_NEVER = INT_MAX,
};

/* The built-in engineer reads no profile: simt's counters are there anyway, ncu would be run for
 * nobody. */
int run_profile_depth(const struct settings *s, const struct run_options *o, enum kernel_class of,
                      enum device_kind on)
{
    if (o->profile_from >= 0)
        return o->profile_from;
    if (on == DEVICE_CUDA && !strcmp(s->model, "builtin"))
        return PROFILE_NEVER;
    return of == CLASS_GEMM ? PROFILE_FROM_GEMM : PROFILE_FROM_OTHERS;
}

json_t *run_options_json(const struct settings *s, const struct run_options *o)
{
    json_t *set = json_array();

    for (size_t i = 0; s->set && s->set[i]; i++)
        json_array_append_new(set, json_string(s->set[i]));
    return json_pack(
        "{ss ss ss ss si si si si ss so sb si ss si sb sb sb sb}", "model", s->model, "device",
        s->device, "models", s->models, "simt_arch", s->simt_arch, "max_depth", o->max_depth,
        "max_repairs", o->max_repairs, "patience", o->patience, "profile_from", o->profile_from,
        "advance", o->advance == ADVANCE_BEST ? "best" : "last", "set", set, "scale", s->scale,
        "draws", s->draws, "check", s->check, "width", o->width, "seed_builtin", o->seed_builtin,
        "target_cuda", s->target_cuda, "accept", s->accept, "allow_tf32", s->allow_tf32);
}

/* A resumed run goes by what it was started with, whatever the flags say now. */
bool run_options_restore(const json_t *j, struct arena *a, struct settings *s,
                         struct run_options *o, struct error *err)
{
    json_t *set = json_object_get(j, "set");
    const char **names = arena_array(a, json_array_size(set) + 1, sizeof(*names));

    if (!strcmp(json_string_or(j, "kind", ""), "eval")) {
        error_set(err, ERROR_USE,
                  "%s is one verdict (cutegen eval): there is nothing to go on with", o->resume_id);
        return error_hint(err, "cutegen show %s shows it; cutegen eval judges again", o->resume_id);
    }
    for (size_t i = 0; i < json_array_size(set); i++)
        names[i] = arena_strdup(a, json_string_value(json_array_get(set, i)));
    s->set = names;
    s->model = arena_strdup(a, json_string_or(j, "model", s->model));
    s->device = arena_strdup(a, json_string_or(j, "device", s->device));
    s->models = arena_strdup(a, json_string_or(j, "models", s->models));
    s->simt_arch = arena_strdup(a, json_string_or(j, "simt_arch", s->simt_arch));
    s->check = arena_strdup(a, json_string_or(j, "check", s->check));
    s->scale = json_bool_or(j, "scale", s->scale);
    s->draws = (int)json_int_or(j, "draws", s->draws);
    s->accept = json_bool_or(j, "accept", s->accept);
    s->allow_tf32 = json_bool_or(j, "allow_tf32", false);
    s->target_cuda = json_bool_or(j, "target_cuda", false);
    o->max_depth = (int)json_int_or(j, "max_depth", o->max_depth);
    o->max_repairs = (int)json_int_or(j, "max_repairs", o->max_repairs);
    o->patience = (int)json_int_or(j, "patience", o->patience);
    o->profile_from = (int)json_int_or(j, "profile_from", o->profile_from);
    o->width = (int)json_int_or(j, "width", 1);
    o->seed_builtin = json_bool_or(j, "seed_builtin", false);
    o->advance =
        strcmp(json_string_or(j, "advance", "best"), "last") == 0 ? ADVANCE_LAST : ADVANCE_BEST;
    return true;
}
