/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oracle.c - talks to oracle/main.py; see oracle.h.
 *
 * The oracle is trusted and ours: a missing member, or a late or malformed answer, is a broken
 * machine. Its stderr is quoted, because Python's own message best explains what went wrong in a
 * user's task.
 */
#include "eval/oracle.h"

#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/proc.h"
#include "eval/child_protocol.h"
#include "eval/oracle_cage.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    DEFAULT_DEADLINE_MS = 300000,
    REST_MS = 10000,
    ASK_MS = 120000,
    ANSWER_LIMIT = 16 << 20,
    LAST_WORDS = 1200
};

struct oracle {
    struct child *child;
    struct arena *a;
    struct oracle_config config; /* we own its strings */
    const char *python;
    int deadline_ms;
    uint64_t memory_bytes;
    const char *own;     /* private folder of its process; NULL: none */
    const char *folder;  /* of the buffers */
    bool loaded, broken; /* broken: must not be asked or lent any more */
    bool plain;          /* unconfined, because the CUDA driver does not start in confinement */
};

/* ---- start -------------------------------------------------------------- */

/* For a script that starts a Python, like pyenv's shims: the Python it starts, which can be
 * confined. `program` itself if it is not a script or does not tell. */
static const char *behind_script(const char *program, struct arena *a)
{
    const char *argv[] = {program, "-I", "-c", "import sys; print(sys.executable)", NULL};
    struct proc_spec spec = {.argv = argv, .deadline_ms = ASK_MS, .output_limit = PATH_MAX};
    struct error ignored = {0};
    struct proc_result r;
    char begin[2] = "", path[PATH_MAX];
    FILE *f = fopen(program, "re");
    bool script = f && fread(begin, sizeof begin, 1, f) == 1 && memcmp(begin, "#!", 2) == 0;

    if (f)
        fclose(f);
    if (script && proc_run(&spec, a, &r, &ignored) && r.end == PROC_EXITED && r.code == 0 &&
        sscanf(r.out.data, "%4095[^\n]", path) == 1 && *path == '/' && access(path, X_OK) == 0)
        return arena_strdup(a, path);
    return program;
}

/* Returns a full path: the policy of a confined process is fixed before it starts, and it has no
 * PATH. */
const char *oracle_python(const char *asked, struct arena *a)
{
    struct error ignored = {0};
    const char *name = asked ? asked : "python3", *found;
    char *venv;

    if (!asked && home_tools("venv/bin/python3", a, &venv, &ignored) && file_exists(venv))
        return venv;
    found = strchr(name, '/') ? path_from_here(a, name) : path_find_program(a, name);
    return found ? behind_script(found, a) : name;
}

/* Starts its process; with `source` it may be a process that others have used. */
static bool start_process(struct oracle *o, const struct child_source *source, struct error *err)
{
    const char *script = o->config.script;
    struct proc_spec spec = {.output_limit = 64 << 10,
                             /* for its buffers; torch leaves folders there, too */
                             .private_tmp = true,
                             .tmp_in_memory = true,
                             /* It enforces its own limit; this outer limit also catches mapped
                              * memory and tasks that evade it. */
                             .resident_limit_bytes = o->memory_bytes / 4 * 5,
                             .disk_limit_bytes = o->memory_bytes};
    struct oracle_cage cage;
    struct error ignored = {0};
    char *found, *errors = NULL;

    if (!script) {
        if (!home_data("oracle/main.py", o->a, &found, err))
            return false;
        script = found;
    }
    /* Optional: torch does the same, only slower. */
    home_program("cutegen-errors.so", o->a, &errors, &ignored);
    /* Isolated: no PYTHON* variable, no user site, nothing from the working folder. */
    spec.argv =
        (const char *const[]){o->python,
                              "-I",
                              "-B",
                              "-u",
                              script,
                              "--memory",
                              arena_printf(o->a, "%llu", (unsigned long long)o->memory_bytes),
                              "--errors",
                              errors ? errors : "",
                              "--private",
                              o->config.cuda ? "--cuda" : NULL,
                              NULL};
    if (!o->config.cuda) /* whose driver wants a process that began as one */
        spec.copier =
            arena_printf(o->a, "%.*scopier.py", (int)(path_base(script) - script), script);
    if (!o->plain)
        oracle_confine(&o->config, script, errors, o->a, &cage, &spec);
    if (child_obtain(source, "oracle", o->config.tag, &spec, &o->child, err))
        return true;
    return error_hint(err,
                      "run `make demo` once (it installs what is missing), or name a Python that "
                      "has PyTorch: --python PATH, or python = PATH in cutegen.ini");
}

static const char *own(const char *text, struct arena *a)
{
    return text ? arena_strdup(a, text) : NULL;
}

bool oracle_start(const struct oracle_config *config, struct oracle **out, struct error *err)
{
    struct oracle *o = xmalloc(sizeof *o);

    o->a = arena_new();
    o->config = *config;
    o->config.script = own(config->script, o->a);
    o->config.tag = own(config->tag, o->a);
    o->config.task = own(config->task, o->a);
    o->deadline_ms = config->deadline_ms > 0 ? config->deadline_ms : DEFAULT_DEADLINE_MS;
    o->memory_bytes = config->memory_bytes ? config->memory_bytes : machine_memory() / 4 * 3;
    o->python = arena_strdup(o->a, oracle_python(config->python, o->a));
    if (!start_process(o, config->source, err)) {
        error_add(err, "cannot start the oracle");
        oracle_stop(o);
        return false;
    }
    *out = o;
    return true;
}

/* Releases buffers and draws; the task stays loaded for the next user. */
static bool rests(struct oracle *o)
{
    struct error ignored = {0};
    json_t *answer;
    bool ok = talk(o->child, json_pack("{s:s}", "do", "rest"), REST_MS, ANSWER_LIMIT, &answer,
                   &ignored) == TALK_ANSWER &&
              talk_ok(answer, &ignored);

    json_decref(answer);
    return ok;
}

void oracle_rest(struct oracle *o)
{
    if (o && o->child && o->loaded && !o->broken)
        o->broken = !rests(o);
}

void oracle_stop(struct oracle *o)
{
    if (!o)
        return;
    if (o->child && child_is_lent(o->child) && o->loaded && !o->broken && rests(o))
        child_return(o->child);
    else
        child_stop(o->child);
    arena_free(o->a);
    xfree(o);
}

bool oracle_lost(const struct oracle *o)
{
    return o->child && child_lost(o->child);
}

/* ---- ask ---------------------------------------------------------------- */

static bool no_torch(const char *words)
{
    return strstr(words, "No module named 'torch'") || strstr(words, "No module named torch");
}

static bool oracle_broke(struct oracle *o, const char *what, enum talk_end end,
                         const struct error *why, struct error *err)
{
    const char *words = talk_last_words(o->child, LAST_WORDS, o->a);

    o->broken = true;
    if (no_torch(words)) {
        error_set(err, ERROR_MACHINE, "cannot start the oracle: %s has no torch", o->python);
        return error_hint(err,
                          "run `make demo` once (it installs what is missing), or name a Python "
                          "that has it: --python PATH, or python = PATH in cutegen.ini");
    }
    if (end == TALK_LATE)
        error_set(err, ERROR_MACHINE, "the oracle gave no answer to %s within %d s", what,
                  o->deadline_ms / 1000),
            error_hint(err, "try it with plain PyTorch: a forward that does not end, or takes "
                            "minutes at these sizes, cannot be judged; smaller: --set N=512");
    else if (end == TALK_ENDED)
        error_set(err, ERROR_MACHINE, "the oracle (%s) ended during %s%s%s", o->python, what,
                  *words ? ":\n" : "", words),
            error_hint(
                err,
                "check that this works: %s -I -c 'import torch'; a task that takes more than %llu "
                "MiB (--task-memory) is killed like this too",
                o->python, (unsigned long long)(o->memory_bytes >> 20));
    else
        error_set(err, ERROR_MACHINE, "the oracle's answer to %s: %s", what, why->text);
    return false;
}

/* torch was not found in confinement. It may exist outside: a .pth file in site-packages can point
 * anywhere. */
static bool without_torch(const struct oracle *o, const json_t *answer, struct error *err)
{
    const char *argv[] = {
        o->python, "-I", "-c",
        "import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))", NULL};
    struct proc_spec spec = {.argv = argv, .deadline_ms = ASK_MS, .output_limit = PATH_MAX};
    struct error ignored = {0};
    struct proc_result r;
    char folder[PATH_MAX];

    if (o->plain || !proc_run(&spec, o->a, &r, &ignored) || r.end != PROC_EXITED || r.code != 0 ||
        sscanf(r.out.data, "%4095[^\n]", folder) != 1)
        return talk_ok(answer, err);
    error_set(err, ERROR_MACHINE, "%s has torch in %s, which confined tasks cannot read", o->python,
              folder);
    return error_hint(err,
                      "they can read only Python's own folders: install PyTorch there (%s -m pip "
                      "install torch), or name a Python that has it: --python PATH",
                      o->python);
}

/* Takes ownership of the request; *answer is a new reference. */
static bool ask(struct oracle *o, const char *what, json_t *request_take, json_t **answer,
                struct error *err)
{
    struct error why = {0};
    enum talk_end end = talk(o->child, request_take, o->deadline_ms, ANSWER_LIMIT, answer, &why);

    if (end != TALK_ANSWER)
        return oracle_broke(o, what, end, &why, err);
    if (strcmp(json_string_or(*answer, "missing", ""), "torch") == 0)
        (void)without_torch(o, *answer, err);
    else if (talk_ok(*answer, err))
        return true;
    json_decref(*answer);
    *answer = NULL;
    return error_add(err, "%s", what);
}

/* False: the process itself reports that its driver did not start (`opened`); any other failure
 * will show up again. */
static bool opens(struct oracle *o, const char *device, struct error *why)
{
    json_t *answer = NULL;
    enum talk_end end = talk(o->child, json_pack("{s:s, s:s}", "do", "ready", "device", device),
                             o->deadline_ms, ANSWER_LIMIT, &answer, why);
    bool closed =
        end == TALK_ANSWER && !talk_ok(answer, why) && !json_bool_or(answer, "opened", true);

    if (end != TALK_ANSWER)
        o->broken = true;
    json_decref(answer);
    return !closed;
}

static bool start_again(struct oracle *o, bool plain)
{
    struct error why = {0};

    child_stop(o->child);
    o->child = NULL;
    o->plain = plain;
    o->broken = !start_process(o, plain ? o->config.source : NULL, &why);
    return !o->broken;
}

/* A process that has run a task may claim anything: only a new, confined process that was not lent
 * is trusted when it reports that the driver does not start. */
void oracle_ready(struct oracle *o, const char *device)
{
    struct error why = {0}, plain = {0};

    if (opens(o, device, &why) || o->plain || !o->config.cuda)
        return;
    if (child_is_lent(o->child) && (!start_again(o, false) || opens(o, device, &why)))
        return;
    if (start_again(o, true) && opens(o, device, &plain))
        log_warn("the CUDA driver does not start in confinement (%s); the task runs "
                 "without it",
                 why.text);
}

bool oracle_is_confined(const struct oracle *o)
{
    return !o->plain;
}

/* ---- load --------------------------------------------------------------- */

static bool read_extents(const json_t *obj, const char *key, int64_t *out, int *dims,
                         struct error *err)
{
    json_t *list;

    if (!json_get_array(obj, key, &list, err))
        return false;
    if (json_array_size(list) > MAX_DIMS)
        return error_set(err, ERROR_USE, "a tensor of %zu dimensions; at most %d are supported",
                         json_array_size(list), MAX_DIMS);
    *dims = (int)json_array_size(list);
    for (int i = 0; i < *dims; i++)
        out[i] = json_integer_value(json_array_get(list, (size_t)i));
    return true;
}

static bool read_tensor(const json_t *v, struct arena *a, struct tensor_info *out,
                        struct error *err)
{
    const char *name, *dtype, *role;
    int strides;

    if (!json_get_string(v, "name", &name, err) || !json_get_string(v, "dtype", &dtype, err) ||
        !json_get_string(v, "role", &role, err) ||
        !read_extents(v, "shape", out->shape, &out->dims, err) ||
        !read_extents(v, "strides", out->strides, &strides, err))
        return false;
    if (strides != out->dims)
        return error_set(err, ERROR_MACHINE, "tensor %s has %d sizes and %d strides", name,
                         out->dims, strides);
    out->name = arena_strdup(a, name);
    out->dtype = arena_strdup(a, dtype);
    out->role = arena_strdup(a, role);
    return true;
}

static bool read_tensors(const json_t *obj, const char *key, struct arena *a,
                         struct tensor_info *out, int *count, struct error *err)
{
    json_t *list;

    if (!json_get_array(obj, key, &list, err))
        return false;
    if (json_array_size(list) > MAX_TENSORS)
        return error_set(err, ERROR_USE, "the task has %zu %s; at most %d are supported",
                         json_array_size(list), key, MAX_TENSORS);
    *count = (int)json_array_size(list);
    for (int i = 0; i < *count; i++)
        if (!read_tensor(json_array_get(list, (size_t)i), a, &out[i], err))
            return error_add(err, "%s %d", key, i);
    return true;
}

static enum kernel_class class_of(const char *name)
{
    for (int i = 0; i < CLASS_COUNT; i++)
        if (strcmp(name, class_names[i]) == 0)
            return (enum kernel_class)i;
    return CLASS_OTHER;
}

/* {"N": [4096, 256]} -> "N 4096 -> 256" */
static const char *scaled_text(const json_t *scaled, struct arena *a)
{
    const char *key, *text = NULL;
    json_t *v;

    json_object_foreach((json_t *)scaled, key, v)
    {
        long long from = json_integer_value(json_array_get(v, 0));
        long long to = json_integer_value(json_array_get(v, 1));

        text = arena_printf(a, "%s%s%s %lld -> %lld", text ? text : "", text ? ", " : "", key, from,
                            to);
    }
    return text;
}

static bool read_task(json_t *d, const struct oracle_load *load, struct arena *a, struct task *out,
                      struct error *err)
{
    memset(out, 0, sizeof *out);
    out->path = arena_strdup(a, load->task_path);
    out->name = arena_strdup(a, json_string_or(d, "name", path_stem(a, load->task_path)));
    if (!read_tensors(d, "inputs", a, out->in, &out->in_count, err) ||
        !read_tensors(d, "outputs", a, out->out, &out->out_count, err) ||
        !file_read(load->task_path, 16 << 20, a, &out->source, err))
        return false;
    out->class = class_of(json_string_or(d, "class", "other"));
    out->class_evidence = arena_strdup(a, json_string_or(d, "evidence", ""));
    out->scaled = scaled_text(json_object_get(d, "scaled"), a);
    out->bytes_min = json_double_or(d, "bytes_min", 0);
    out->flops_min = json_double_or(d, "flops_min", 0);
    out->description = json_incref(d);
    return true;
}

const char *oracle_folder(const struct oracle *o)
{
    return o->folder;
}

bool oracle_exchange(const struct oracle *o, struct arena *a, const char **out, struct error *err)
{
    char *path = path_join(a, o->own ? o->own : o->folder, "guest-XXXXXX");

    if (!mkdtemp(path))
        return error_set(err, ERROR_MACHINE, "cannot make %s: %s", path, strerror(errno));
    *out = path;
    return true;
}

bool oracle_load(struct oracle *o, const struct oracle_load *load, struct arena *a,
                 struct task *out, struct error *err)
{
    const char *own = child_tmp(o->child);
    const char *folder = own ? path_join(o->a, own, "buffers") : load->work_dir;
    json_t *request = json_pack("{s:s, s:s, s:s, s:s}", "do", "load", "task", load->task_path,
                                "device", load->device, "work", folder);
    json_t *answer, *description;
    char *here = path_absolute(o->a, ".");
    bool ok;

    o->own = own ? arena_strdup(o->a, own) : NULL;
    o->folder = arena_strdup(o->a, folder);
    if (!dir_make(folder, err)) {
        json_decref(request);
        return error_add(err, "a folder for the buffers");
    }
    json_object_set_new(request, "dir", json_string(here));
    json_object_set_new(request, "set", load->set ? json_incref(load->set) : json_object());
    json_object_set_new(request, "max_elements",
                        load->max_elements > 0 ? json_integer(load->max_elements) : json_null());
    json_object_set_new(request, "baseline",
                        json_string(load->baseline ? load->baseline : "defaults"));
    if (load->as_written)
        json_object_set_new(request, "as_written", json_true());
    if (load->backward)
        json_object_set_new(request, "backward", json_true());
    if (load->variant > 0)
        json_object_set_new(request, "variant", json_integer(load->variant));
    if (load->import_s > 0)
        json_object_set_new(request, "import_s", json_integer(load->import_s));
    if (!ask(o, arena_printf(o->a, "loading %s", load->task_path), request, &answer, err))
        return false;
    ok = json_get_object(answer, "task", &description, err) &&
         read_task(description, load, a, out, err);
    json_decref(answer);
    o->loaded = ok;
    return ok || error_add(err, "the oracle's description of %s", load->task_path);
}

/* ---- draw, compare ------------------------------------------------------ */

/* The part of an answer that is passed on to a guest. */
static json_t *binding_of(const json_t *answer)
{
    static const char *const keys[] = {"buffers", "call", "init", "tensors"};
    json_t *out = json_object();

    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (json_object_get(answer, keys[i]))
            json_object_set(out, keys[i], json_object_get(answer, keys[i]));
    return out;
}

bool oracle_draw(struct oracle *o, const struct oracle_draw *draw, json_t **buffers,
                 struct error *err)
{
    json_t *request =
        json_pack("{s:s, s:s, s:s, s:i, s:b, s:b, s:b}", "do", "draw", "seed", draw->seed,
                  "distribution", draw->distribution, "shift", draw->shift, "stale",
                  (int)draw->stale, "near", (int)draw->near, "anew", (int)draw->anew);
    json_t *answer, *found;
    bool ok;

    *buffers = NULL;
    if (draw->guest)
        json_object_set_new(request, "guest", json_string(draw->guest));
    if (!ask(o, "drawing inputs", request, &answer, err))
        return false;
    ok = json_get_object(answer, draw->guest ? "init" : "buffers", &found, err);
    if (ok)
        *buffers = draw->guest ? binding_of(answer) : json_incref(found);
    json_decref(answer);
    return ok || error_add(err, "drawing inputs");
}

bool oracle_hand(struct oracle *o, json_t **binding, struct error *err)
{
    json_t *answer, *found;
    bool ok;

    *binding = NULL;
    if (!ask(o, "handing the inputs to the module", json_pack("{s:s}", "do", "hand"), &answer, err))
        return false;
    ok = json_get_object(answer, "buffers", &found, err);
    if (ok)
        *binding = binding_of(answer);
    json_decref(answer);
    return ok || error_add(err, "handing the inputs to the module");
}

static void read_worst(const json_t *list, struct comparison *out)
{
    for (size_t i = 0; i < json_array_size(list) && out->worst_count < MAX_WORST; i++) {
        const json_t *v = json_array_get(list, i), *index = json_object_get(v, "index");
        struct worst_element *w = &out->worst[out->worst_count++];

        for (size_t k = 0; k < json_array_size(index) && w->dims < MAX_DIMS; k++)
            w->index[w->dims++] = json_integer_value(json_array_get(index, k));
        w->expected = json_double_or(v, "expected", 0);
        w->got = json_double_or(v, "got", 0);
    }
}

static enum relation relation_of(const char *name)
{
    static const char *const names[] = {
        [RELATION_NONE] = "",
        [RELATION_ZEROS] = "zeros",
        [RELATION_FACTOR] = "factor",
        [RELATION_OFFSET] = "offset",
        [RELATION_TRANSPOSED] = "transposed",
        [RELATION_SHIFTED] = "shifted",
        [RELATION_REVERSED] = "reversed",
    };

    for (size_t i = 1; i < ARRAY_LEN(names); i++)
        if (strcmp(name, names[i]) == 0)
            return (enum relation)i;
    return RELATION_NONE;
}

static bool read_comparison(const json_t *v, struct arena *a, struct comparison *out,
                            struct error *err)
{
    const json_t *tolerance = json_object_get(v, "tolerance");
    struct accuracy *acc = &out->accuracy;
    const char *name;

    memset(out, 0, sizeof *out);
    /* Members that decide are required; those that only explain are optional. */
    if (!json_get_string(v, "name", &name, err) ||
        !json_get_int(v, "elements", &out->elements, err) ||
        !json_get_int(v, "wrong", &out->wrong, err) || !json_get_int(v, "nan", &out->nan, err) ||
        !json_get_int(v, "inf", &out->inf, err) ||
        !json_get_int(v, "unwritten", &out->unwritten, err) ||
        !json_get_bool(v, "imprecise", &out->imprecise, err))
        return false;
    out->name = arena_strdup(a, name);
    acc->max_abs = json_double_or(v, "max_abs", 0);
    acc->max_rel = json_double_or(v, "max_rel", 0);
    acc->rms_rel = json_double_or(v, "rms_rel", 0);
    acc->reference_max_abs = json_double_or(v, "reference_max_abs", 0);
    acc->reference_max_rel = json_double_or(v, "reference_max_rel", 0);
    acc->reference_rms_rel = json_double_or(v, "reference_rms_rel", 0);
    out->rtol = json_double_or(tolerance, "rtol", 0);
    out->atol = json_double_or(tolerance, "atol", 0);
    out->rms_factor = json_double_or(tolerance, "rms_factor", 0);
    out->pattern = arena_strdup(a, json_string_or(v, "pattern", ""));
    out->relation = relation_of(json_string_or(v, "relation", ""));
    out->accuracy_class = arena_strdup(a, json_string_or(v, "class", ""));
    read_worst(json_object_get(v, "worst"), out);
    return true;
}

static bool read_comparisons(const json_t *answer, struct arena *a, struct comparison_set *out,
                             struct error *err)
{
    json_t *outputs, *modified, *guards;

    memset(out, 0, sizeof *out);
    if (json_object_get(answer, "hash"))
        out->hash = arena_strdup(a, json_string_or(answer, "hash", ""));
    if (!json_get_array(answer, "outputs", &outputs, err) ||
        !json_get_array(answer, "inputs_modified", &modified, err) ||
        !json_get_array(answer, "guards_hit", &guards, err))
        return false;
    if (json_array_size(outputs) == 0)
        return error_set(err, ERROR_MACHINE, "no output was compared");
    for (size_t i = 0; i < json_array_size(outputs) && i < MAX_TENSORS; i++)
        if (!read_comparison(json_array_get(outputs, i), a, &out->outputs[out->output_count++],
                             err))
            return false;
    for (size_t i = 0; i < json_array_size(modified) && i < MAX_TENSORS; i++) {
        const char *name = json_string_value(json_array_get(modified, i));

        out->inputs_modified[out->modified_count++] = arena_strdup(a, name ? name : "an input");
    }
    for (size_t i = 0; i < json_array_size(guards) && i < MAX_TENSORS; i++) {
        const json_t *v = json_array_get(guards, i);

        out->guards[out->guard_count++] = (struct guard_hit){
            .buffer = arena_strdup(a, json_string_or(v, "buffer", "?")),
            .side = arena_strdup(a, json_string_or(v, "side", "around")),
            .bytes = json_int_or(v, "bytes", 0),
        };
    }
    out->way = arena_strdup(a, json_string_or(answer, "way", "whole"));
    if (json_is_string(json_array_get(json_object_get(answer, "trivial"), 0)))
        out->trivial = arena_strdup(
            a, json_string_value(json_array_get(json_object_get(answer, "trivial"), 0)));
    return true;
}

/* Checks that an error which the oracle planted into a correct result (oracle/canary.py) was found
 * by its comparison and by our reading of it. */
static bool canary_seen(const json_t *answer, struct arena *a, struct error *err)
{
    const json_t *canary = json_object_get(answer, "canary");
    struct comparison found;

    if (!canary) {
        error_set(err, ERROR_MACHINE, "the oracle is of another version: it planted no error");
        return error_hint(err, "run `cutegen server stop` and try again");
    }
    if (json_is_null(canary)) /* nothing in this result can be distinguished from noise */
        return true;
    if (!read_comparison(canary, a, &found, err))
        return false;
    if (found.wrong > 0)
        return true;
    error_set(err, ERROR_MACHINE,
              "the comparison does not work here: an error planted into a right result was not "
              "found");
    return error_hint(err, "run `cutegen server stop` and try again; if it persists, install "
                           "PyTorch and cutegen again");
}

bool oracle_compare(struct oracle *o, struct arena *a, struct comparison_set *out,
                    struct error *err)
{
    json_t *answer;
    bool ok;

    if (!ask(o, "comparing with the reference", json_pack("{s:s}", "do", "compare"), &answer, err))
        return false;
    ok = read_comparisons(answer, a, out, err) && canary_seen(answer, a, err);
    json_decref(answer);
    return ok || error_add(err, "comparing with the reference");
}

/* ---- other requests ----------------------------------------------------- */

bool oracle_trivial(struct oracle *o, struct arena *a, const char **passes, struct error *err)
{
    json_t *answer, *list;
    bool ok;

    *passes = "";
    if (!ask(o, "trying trivial answers", json_pack("{s:s}", "do", "trivial"), &answer, err))
        return false;
    ok = json_get_array(answer, "passes", &list, err);
    for (size_t i = 0; ok && i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));

        *passes = arena_printf(a, "%s%s%s", *passes, i ? ", " : "", name ? name : "?");
    }
    json_decref(answer);
    return ok || error_add(err, "trying trivial answers");
}

static double *read_samples(const json_t *list, struct arena *a, size_t *count)
{
    double *out = arena_array(a, json_array_size(list) + 1, sizeof *out);

    *count = json_array_size(list);
    for (size_t i = 0; i < *count; i++)
        out[i] = json_number_value(json_array_get(list, i));
    return out;
}

bool oracle_baseline(struct oracle *o, const struct oracle_timing *timing, struct arena *a,
                     struct time_samples *out, struct error *err)
{
    json_t *answer;

    if (!ask(o, "timing a baseline",
             json_pack("{s:s, s:s, s:s, s:i, s:i, s:i}", "do", "baseline", "name", timing->name,
                       "turn", timing->turn ? timing->turn : "", "cold", timing->cold, "warm",
                       timing->warm, "budget_ms", timing->budget_ms),
             &answer, err))
        return error_add(err, "baseline %s", timing->name);
    *out = (struct time_samples){0};
    out->cold_us = read_samples(json_object_get(answer, "cold_us"), a, &out->cold_count);
    out->warm_us = read_samples(json_object_get(answer, "warm_us"), a, &out->warm_count);
    json_decref(answer);
    return true;
}

const char *oracle_clocks(struct oracle *o, struct arena *a)
{
    struct error ignored = {0};
    json_t *answer = NULL;
    const char *line = "";

    if (!o || !o->child || !o->loaded || o->broken)
        return line;
    if (ask(o, "reading clocks", json_pack("{s:s}", "do", "clocks"), &answer, &ignored))
        line = arena_strdup(a, json_string_or(answer, "line", ""));
    json_decref(answer);
    return line;
}
