/* foreign.c - somebody else's ModelNew as a candidate; see foreign.h. */
#include "eval/foreign.h"

#include "base/fs.h"

enum { BUILD_MS = 400000 }; /* torch's load_inline takes a minute and more */

/* The sizes the task was loaded with, where they are not as written: {"N": 256}. */
static json_t *changed_sizes(const struct task *task)
{
    json_t *scaled = json_object_get(task->description, "scaled"), *out = json_object(), *pair;
    const char *name;

    json_object_foreach(scaled, name, pair) json_object_set(out, name, json_array_get(pair, 1));
    return out;
}

json_t *foreign_request(const struct task *task, const char *path, bool allow_torch)
{
    return json_pack("{s:s, s:s, s:o, s:O, s:O, s:b}", "module", path, "task", task->path, "values",
                     changed_sizes(task), "inputs", json_object_get(task->description, "inputs"),
                     "outputs", json_object_get(task->description, "outputs"), "allow_torch",
                     (int)allow_torch);
}

bool foreign_runner(const struct judge_config *config, struct arena *a, struct runner_config *rc,
                    struct error *err)
{
    const char **wrapper = arena_array(a, 3, sizeof *wrapper);
    char *script;

    if (!home_data("oracle/guest.py", a, &script, err))
        return false;
    wrapper[0] = oracle_python(config->python, a);
    wrapper[1] = "-u";
    wrapper[2] = NULL;
    rc->wrapper = wrapper;
    rc->program = script;
    rc->python = true;
    rc->load_ms = BUILD_MS;
    return true;
}
