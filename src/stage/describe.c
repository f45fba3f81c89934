/* SPDX-License-Identifier: Apache-2.0 */
/*
 * describe.c - what is the task: operators, shapes, class, unavoidable work.
 *
 * Starts the oracle and keeps it: the same process draws inputs and compares
 * later, so the task that is tested is the one that was described.
 */
#include "base/fs.h"
#include "base/json.h"
#include "stage/workshop.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SIMT_MAX_ELEMENTS = 1 << 20 }; /* a tensor simt works through in a fraction of a second */

/* "N=512" pairs as {"N": 512}. */
static bool overrides_json(const char *const *set, json_t **out, struct error *err)
{
    *out = json_object();
    for (size_t i = 0; set && set[i]; i++) {
        const char *equals = strchr(set[i], '=');
        char name[128], *end;
        long long value;

        errno = 0;
        value = equals ? strtoll(equals + 1, &end, 10) : 0;
        if (!equals || equals == set[i] || end == equals + 1 || *end || errno ||
            (size_t)(equals - set[i]) >= sizeof(name)) {
            error_set(err, ERROR_USE, "--set %s is not NAME=NUMBER", set[i]);
            return error_hint(err,
                              "for example --set N=512, NAME being a constant of the task file");
        }
        memcpy(name, set[i], (size_t)(equals - set[i]));
        name[equals - set[i]] = '\0';
        json_object_set_new(*out, name, json_integer(value));
    }
    return true;
}

bool stage_describe(struct stage *st, const char *task_path, struct arena *a, struct task *out,
                    struct error *err)
{
    const struct settings *s = &st->settings;
    bool ok, here = st->device.kind == DEVICE_SIMT || st->device.absent; /* on this CPU */

    if (!file_exists(task_path)) {
        error_set(err, ERROR_USE, "there is no task file %s", task_path);
        return error_hint(err,
                          "a task is a Python file with a Model and get_inputs(); see examples/");
    }
    st->load = (struct oracle_load){
        .task_path = path_absolute(st->a, task_path),
        .device = here ? "cpu" : arena_printf(st->a, "cuda:%d", st->device.index),
        .work_dir = st->work_dir,
        .max_elements = here && s->scale ? SIMT_MAX_ELEMENTS : 0,
        .as_written = st->device.absent,
        .baseline = s->baseline ? s->baseline : "defaults",
        .backward = s->backward,
        .import_s = s->task_deadline_s,
    };
    if (!json_can_name(st->load.task_path, err))
        return false;
    ok = overrides_json(s->set, &st->load.set, err);
    json_own(st->a, st->load.set);
    if (!ok || !shapes_read(st, err))
        return false;
    st->load.set = st->shapes[0].set;
    if (!workshop_oracle(st, a, out, err))
        return error_add(err, "describing %s", task_path);
    json_own(a, out->description);
    if (!shapes_describe(st, a, out, err))
        return false;
    st->torch_version = arena_strdup(st->a, json_string_or(out->description, "torch", "?"));
    return workshop_meet_task(st, out, err);
}
