/* SPDX-License-Identifier: Apache-2.0 */
/* foreign.c - a foreign ModelNew as a candidate; see foreign.h. */
#include "eval/foreign.h"

#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"

#include <string.h>

enum {
    LOAD_MS = 120000,
    BUILD_MS = 600000,
    RECORD_LIMIT = 16 << 20,
    PARTS_LIMIT = 256 << 20, /* all of them together */
    PARTS_MOST = 1024
};

/* The sizes that differ from those written in the task: {"N": 256}. */
static json_t *changed_sizes(const struct task *task)
{
    json_t *scaled = json_object_get(task->description, "scaled"), *out = json_object(), *pair;
    const char *name;

    json_object_foreach(scaled, name, pair) json_object_set(out, name, json_array_get(pair, 1));
    return out;
}

/* Copies one file that a record names if its hash matches; reduces the bytes left for the
 * others. */
static bool copy_part(const char *from, const char *to, const char *name, const char *wanted,
                      size_t *left, struct error *err)
{
    struct arena *scratch = arena_new();
    struct text part;
    char hex[65];
    bool ok = file_read(path_join(scratch, from, name), *left, scratch, &part, err);

    if (ok) {
        hash_text(part, hex);
        *left -= part.len;
        ok = strcmp(hex, wanted) == 0
                 ? file_write(path_join(scratch, to, name), part, err)
                 : error_set(err, ERROR_USE, "%s is not the file that record.json names", name);
    }
    arena_free(scratch);
    return ok;
}

/* A module written by `cutegen export` comes with files that its record lists with their hashes;
 * these are copied too. Of any other module only the file itself is copied. */
static bool copy_parts(const char *module, const char *to, struct arena *a, struct error *err)
{
    const char *from = arena_strndup(a, module, (size_t)(path_base(module) - module));
    const char *path = path_join(a, from, "record.json"), *name;
    struct text text;
    json_t *record = NULL, *hash;
    size_t left = PARTS_LIMIT;
    bool ok = true;

    if (!file_exists(path))
        return true;
    if (!file_read(path, RECORD_LIMIT, a, &text, err) ||
        !json_parse(text, "record.json", &record, err))
        return false;
    if (json_object_size(json_object_get(record, "files")) > PARTS_MOST)
        ok = error_set(err, ERROR_USE, "record.json names more than %d files", PARTS_MOST);
    json_object_foreach(json_object_get(record, "files"), name, hash)
    {
        const char *wanted = json_string_value(hash);

        if (!ok || !wanted || strchr(name, '/') || name[0] == '.' ||
            strcmp(name, path_base(module)) == 0)
            continue;
        ok = copy_part(from, to, name, wanted, &left, err);
    }
    json_decref(record);
    return ok && file_write(path_join(a, to, "record.json"), text, err);
}

bool foreign_prepare(const struct task *task, const struct candidate *cand, bool allow_torch,
                     struct arena *a, struct build_result *build, struct error *err)
{
    const char *folder = path_join(a, build->work_dir, "module");
    const char *copy = path_join(a, folder, path_base(cand->foreign));

    if (!dir_make(folder, err) || !copy_parts(cand->foreign, folder, a, err) ||
        !file_write(copy, cand->source, err) ||
        !dir_make(path_join(a, build->work_dir, "extensions"), err))
        return error_add(err, "preparing the module");
    build->foreign =
        json_pack("{s:s, s:o, s:O, s:O, s:b}", "module", copy, "values", changed_sizes(task),
                  "inputs", json_object_get(task->description, "inputs"), "outputs",
                  json_object_get(task->description, "outputs"), "allow_torch", (int)allow_torch);
    if (!build->foreign)
        BUG("a task without inputs or outputs");
    return true;
}

static uint64_t bytes_of(const struct tensor_info *t)
{
    uint64_t bytes = 8;

    for (int i = 0; i < t->dims; i++)
        bytes *= (uint64_t)(t->shape[i] > 0 ? t->shape[i] : 1);
    return bytes;
}

/* Memory for PyTorch and a dozen copies of all tensors, but at most half of what the machine
 * has. */
static void set_limits(const struct task *task, struct runner_config *rc)
{
    const uint64_t gib = (uint64_t)1 << 30;
    uint64_t all = 0, largest = 0, half = machine_memory() / 2;

    for (int i = 0; i < task->in_count + task->out_count; i++) {
        uint64_t one = bytes_of(i < task->in_count ? &task->in[i] : &task->out[i - task->in_count]);

        all += one;
        largest = one > largest ? one : largest;
    }
    rc->memory_bytes = (rc->device->kind == DEVICE_CUDA ? 16 : 2) * gib + 12 * all;
    if (rc->memory_bytes > half)
        rc->memory_bytes = half;
    rc->file_bytes = largest + gib / 16;
}

bool foreign_runner(const struct judge_config *config, const struct build_result *build,
                    struct arena *a, struct runner_config *rc, struct error *err)
{
    static const char *const flags[] = {"-I", "-B", "-u"}; /* no user site, no PYTHON* variable */
    const char **wrapper = arena_array(a, ARRAY_LEN(flags) + 2, sizeof *wrapper);
    char *script;

    if (!home_data("oracle/guest.py", a, &script, err) ||
        !oracle_exchange(config->oracle, a, &rc->exchange, err))
        return false;
    wrapper[0] = oracle_python(config->python, a);
    for (size_t i = 0; i < ARRAY_LEN(flags); i++)
        wrapper[i + 1] = flags[i];
    rc->wrapper = wrapper;
    rc->program = script;
    rc->guest = true;
    rc->trusted = build->trusted;
    rc->module = json_string_value(json_object_get(build->foreign, "module"));
    rc->extensions = path_join(a, build->work_dir, "extensions");
    rc->load_ms = LOAD_MS;
    set_limits(config->task, rc);
    return true;
}

void foreign_end(const struct runner_config *rc)
{
    struct error why = {0};

    if (rc->exchange && !dir_remove(rc->exchange, &why))
        log_debug("%s", why.text);
}

bool foreign_build(const struct judge_config *config, const struct build_result *build,
                   struct oracle_draw draw, struct arena *a, struct runner_answer *said,
                   struct error *err)
{
    struct runner_config rc = {.device = config->device, .building = true};
    struct runner *r = NULL;
    json_t *binding = NULL;
    bool ok = foreign_runner(config, build, a, &rc, err);

    draw.guest = rc.exchange;
    rc.load_ms = BUILD_MS;
    ok = ok && runner_start(&rc, &r, err) && runner_load(r, build, a, said, err);
    if (ok && said->verdict == VERDICT_PASS) {
        runner_answer_release(said);
        ok = oracle_draw(config->oracle, &draw, &binding, err) &&
             runner_make(r, binding, a, said, err);
    }
    if (ok && said->verdict == VERDICT_PASS) {
        runner_answer_release(said);
        ok = runner_rehearse(r, a, said, err);
        if (ok && *said->text)
            log_info("the module fails in a trial call: %.600s", said->text);
    }
    json_decref(binding);
    runner_stop(r);
    foreign_end(&rc);
    return ok || error_add(err, "building what the module compiles");
}

bool foreign_draw(struct oracle *oracle, struct runner *r, const struct oracle_draw *draw,
                  struct arena *a, struct runner_answer *said, struct error *err)
{
    json_t *binding;
    bool ok;

    if (!oracle_draw(oracle, draw, &binding, err))
        return false;
    if (!draw->guest) {
        ok = runner_bind(r, binding, a, said, err);
        json_decref(binding);
        return ok;
    }
    /* Keep the same module when only a few elements changed: this finds one that caches answers. */
    if (!draw->near) {
        ok = runner_make(r, binding, a, said, err);
        json_decref(binding);
        if (!ok || said->verdict != VERDICT_PASS)
            return ok;
        runner_answer_release(said);
    } else {
        json_decref(binding);
    }
    if (!oracle_hand(oracle, &binding, err))
        return false;
    ok = runner_take(r, binding, a, said, err);
    json_decref(binding);
    return ok;
}
