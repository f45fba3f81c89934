/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify.c - check that an exported folder is what was judged and still passes.
 *
 *     files      every file has the hash that the record names
 *     python     what an import runs is this cutegen's own, and there is no other file
 *     store      the code is what the run judged, where this machine's store has that run
 *     source     the source, built again for the device it was judged on, gives that very code
 *     launches   its plan gives that very launch list
 *     judge      the exported code itself passes on this machine
 *     cases      the last three at every other judged shape
 *
 * A folder whose code was neither built again nor judged here is not verified, though nothing
 * differs. The folder is untrusted data: no other step relies on what its record claims.
 */
#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "loop/loop.h"
#include "stage/stage.h"
#include "store/store.h"

#include <string.h>

enum { MAX_FILE_BYTES = 256 << 20 };

static void note(struct verify_summary *s, const char *name, enum verify_kind kind,
                 const char *text)
{
    if (s->count < VERIFY_STEPS)
        s->steps[s->count++] = (struct verify_step){name, kind, text};
    s->ok = s->ok && kind != VERIFY_DIFFERS;
}

static const char *short_hash(const char *hash, struct arena *a)
{
    return arena_printf(a, "%.16s...", hash ? hash : "none");
}

/* ---- hashes --------------------------------------------------------------------- */

/* A file's name within the folder of the gradients' kernel, or within the export itself. */
static const char *inner_name(const char *name)
{
    static const char within[] = EXPORT_BACKWARD "/";

    return strncmp(name, within, strlen(within)) ? name : name + strlen(within);
}

static void verify_files(const struct exported *e, struct arena *a, struct verify_summary *s)
{
    json_t *files = json_object_get(e->record, "files"), *hash;
    const char *name, *bad = NULL;

    json_object_foreach(files, name, hash)
    {
        struct error why = {0};
        struct text data;
        char hex[65] = "";

        if (!strchr(inner_name(name), '/') &&
            file_read(path_join(a, e->dir, name), MAX_FILE_BYTES, a, &data, &why))
            hash_text(data, hex);
        if (strcmp(hex, json_string_value(hash) ? json_string_value(hash) : "?") != 0 && !bad)
            bad = name;
    }
    if (bad || json_object_size(files) == 0)
        note(s, "files", VERIFY_DIFFERS,
             bad ? arena_printf(a, "%s is not what the record says", bad)
                 : "the record names no files");
    else
        note(s, "files", VERIFY_SAME,
             arena_printf(a, "%zu files as in record.json", json_object_size(files)));
}

static bool verify_python(const struct exported *e, struct arena *a, struct verify_summary *s,
                          struct error *err)
{
    const char *why;

    if (!stage_export_python(e, a, &why, err))
        return false;
    note(s, "python", why ? VERIFY_DIFFERS : VERIFY_SAME,
         why ? why : "as this cutegen writes it; reference.py is the task's");
    return true;
}

static void verify_native(const struct exported *e, struct arena *a, struct verify_summary *s)
{
    const char *name = "";

    switch (stage_export_native(e, a, &name)) {
    case EXPORT_NATIVE_NONE:
        break;
    case EXPORT_NATIVE_SAME:
        note(s, "loader", VERIFY_SAME, arena_printf(a, "%s is this cutegen's", name));
        break;
    case EXPORT_NATIVE_DIFFERS:
        note(s, "loader", VERIFY_DIFFERS,
             arena_printf(a,
                          "%s is not this cutegen's: verify it with the cutegen that wrote it (the "
                          "export says %s), or export again before you import it",
                          name, json_string_or(e->record, "cutegen", "nothing")));
        break;
    case EXPORT_NATIVE_ELSEWHERE:
        note(s, "loader", VERIFY_NOT_HERE,
             arena_printf(a, "%s is for another processor: verify it there", name));
        break;
    }
}

static const char *case_hash(const struct exported *e, size_t number)
{
    json_t *one = json_array_get(json_object_get(e->table, "cases"), number);
    size_t module = (size_t)json_int_or(one, "module", 0);

    return json_string_or(json_array_get(json_object_get(e->table, "modules"), module), "sha256",
                          "");
}

static void verify_store(const struct settings *settings, const struct exported *e, struct arena *a,
                         struct verify_summary *s)
{
    const char *id = s->run_id, *stored = NULL, *found;
    struct run_history h = {0};
    struct store *store = NULL;
    struct error why = {0};

    if (store_open(settings->runs_dir, settings->store_url, STORE_READ, &store, &why) &&
        store_run_find(store, id, a, &found, &why) && !strcmp(found, id) &&
        store_run_history(store, id, a, &h, &why) && h.info.best_attempt > 0 &&
        h.attempts[h.info.best_attempt - 1].outcome.build)
        stored = h.attempts[h.info.best_attempt - 1].outcome.build->code_hash;
    if (!stored)
        note(s, "store", VERIFY_NOT_HERE, arena_printf(a, "run %s is not in this store", id));
    else
        note(s, "store", strcmp(stored, case_hash(e, 0)) ? VERIFY_DIFFERS : VERIFY_SAME,
             arena_printf(a, "run %s judged %s", id, short_hash(stored, a)));
    run_history_release(&h);
    store_close(store);
}

/* ---- source --------------------------------------------------------------------- */

/* Different compiler versions give different code, which is not the export's fault. */
static const char *other_tools(struct stage *st, const struct exported *e, struct arena *a)
{
    static const char *const cuda[] = {"nvrtc", "cutlass"}, *const python[] = {"triton"};
    const char *const *names = languages[e->target].python ? python : cuda;
    size_t count = languages[e->target].python ? ARRAY_LEN(python) : ARRAY_LEN(cuda);
    json_t *here = json_own(a, stage_environment(st));
    const json_t *there = json_object_get(e->record, "environment");

    for (size_t i = 0; i < count; i++) {
        const char *was = json_string_or(there, names[i], "?");
        const char *is = json_string_or(here, names[i], "?");

        if (strcmp(was, is) != 0)
            return arena_printf(a, "built with %s %s, here is %s: not comparable", names[i], was,
                                is);
    }
    return NULL;
}

static bool same_list(const json_t *one, const json_t *two)
{
    static const char *const parts[] = {"workspace", "ops", "maps"};

    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        json_t *p = json_object_get(one, parts[i]), *q = json_object_get(two, parts[i]);

        if (json_array_size(p) + json_array_size(q) > 0 && !json_equal(p, q))
            return false;
    }
    return true;
}

static bool verify_source(struct stage *st, const struct task *task, const struct exported *e,
                          size_t number, struct arena *a, struct verify_summary *s,
                          struct error *err)
{
    struct candidate cand = {.attempt = 1, .change = "", .source = e->source};
    struct build_result *built = arena_alloc(a, sizeof(*built));
    const json_t *one = json_array_get(json_object_get(e->table, "cases"), number);
    const char *hash = case_hash(e, number), *other = other_tools(st, e, a);

    if (!stage_build_for(st, &e->device, task, &cand, a, built, err))
        return false;
    if (built->verdict.kind != VERDICT_PASS) {
        note(s, "source", VERIFY_DIFFERS,
             arena_printf(a, "%s: %s", verdict_names[built->verdict.kind], built->verdict.summary));
        return true;
    }
    if (strcmp(built->code_hash, hash) == 0)
        note(s, "source", VERIFY_SAME,
             arena_printf(a, "built again: %s", short_hash(built->code_hash, a)));
    else
        note(s, "source", other ? VERIFY_NOT_HERE : VERIFY_DIFFERS,
             other ? other
                   : arena_printf(a, "built again it is %s, exported is %s",
                                  short_hash(built->code_hash, a), short_hash(hash, a)));
    note(s, "launches", same_list(built->launches, one) ? VERIFY_SAME : VERIFY_DIFFERS,
         same_list(built->launches, one) ? "the plan gives this list"
                                         : "the plan gives another launch list");
    return true;
}

/* ---- judge ----------------------------------------------------------------------- */

static bool judge_code(struct stage *st, const struct task *task, const struct exported *e,
                       size_t number, struct arena *a, struct verify_summary *s, struct error *err)
{
    struct candidate cand = {.attempt = 1, .change = "", .source = e->source};
    struct build_result *build = arena_alloc(a, sizeof(*build));
    struct test_result *test = arena_alloc(a, sizeof(*test));
    const struct device *here = stage_device(st);
    const struct verdict *verdict = &build->verdict;

    if (here->kind != e->device.kind ||
        (here->kind == DEVICE_CUDA && strcmp(here->arch, e->device.arch) != 0)) {
        note(s, "judge", VERIFY_NOT_HERE,
             arena_printf(a, "this code runs on %s (%s); here is %s", e->device.name,
                          e->device.arch, here->name));
        return true;
    }
    if (!stage_adopt(st, e, number, a, build, err))
        return err->kind == ERROR_JUDGED
                   ? (note(s, "judge", VERIFY_DIFFERS, arena_strdup(a, err->text)),
                      *err = (struct error){0}, true)
                   : false;
    if (verdict->kind == VERDICT_PASS) {
        if (!stage_test(st, task, &cand, build, a, test, err))
            return false;
        verdict = &test->verdict;
    }
    note(s, "judge", verdict->kind == VERDICT_PASS ? VERIFY_SAME : VERIFY_DIFFERS,
         verdict->kind == VERDICT_PASS
             ? arena_printf(a, "pass on %s: %d draws", here->name, test->accuracy.draws)
             : arena_printf(a, "%s: %s", verdict_names[verdict->kind], verdict->summary));
    return true;
}

/* What the table says of every call, against the task: how results are nested, what the forward
 * writes, where buffers begin. Whether there are gradients or a fallback is the exporter's choice.
 */
static const char *other_header(const struct task *task, const struct exported *e)
{
    static const char *const names[][2] = {{"returns", "returns"},
                                           {"call", "call"},
                                           {"written", "writes"},
                                           {"training", "training"},
                                           {"constants", "constants"}};
    const json_t *d = task->description;

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        json_t *told = json_object_get(e->table, names[i][1]),
               *is = json_object_get(d, names[i][0]);

        if (!json_equal(told, is) && !(json_is_null(told) && !is))
            return names[i][1];
    }
    if (json_int_or(e->table, "alignment", 0) != EXPORT_ALIGNMENT)
        return "alignment";
    return json_int_or(e->table, "upstream", -1) == json_int_or(d, "upstream", 0) ? NULL
                                                                                  : "upstream";
}

/* A case's tensors and call against those of the reference beside them. */
static bool same_shapes(const struct task *task, const json_t *one)
{
    const json_t *d = task->description;

    return json_equal(json_object_get(d, "inputs"), json_object_get(one, "inputs")) &&
           json_equal(json_object_get(d, "outputs"), json_object_get(one, "outputs")) &&
           json_equal(json_object_get(d, "scalars"), json_object_get(one, "scalars")) &&
           (!json_object_get(one, "call") ||
            json_equal(json_object_get(d, "call"), json_object_get(one, "call")));
}

static void tell(struct progress *progress, const char *stage, const struct task *task,
                 const struct device *device)
{
    struct event ev = {.kind = EVENT_STAGE, .text = stage, .task = task, .device = device};

    if (progress)
        progress->event(progress, &ev);
}

/* "N=64 M=3 inputs 1": the constants of a case, as --set has them. */
static const char *const *label_constants(const char *label, struct arena *a)
{
    const char **out = arena_array(a, strlen(label) + 2, sizeof(*out));
    struct text rest = text_of(label), word;
    size_t n = 0;

    while (rest.len) {
        const char *space = memchr(rest.data, ' ', rest.len);
        size_t len = space ? (size_t)(space - rest.data) : rest.len;

        word = (struct text){rest.data, len};
        if (len && memchr(word.data, '=', len))
            out[n++] = arena_strndup(a, word.data, len);
        rest = (struct text){rest.data + len + (space ? 1 : 0), rest.len - len - (space ? 1 : 0)};
    }
    return n ? out : NULL;
}

/* The task at the sizes of a case, among those that get_inputs_list() gives; false: there is none.
 */
static bool load_case(struct stage *st, const struct exported *e, const json_t *one,
                      struct arena *a, struct task *task, bool *found, struct error *err)
{
    if (!stage_describe(st, path_join(a, e->dir, "reference.py"), a, task, err))
        return false;
    *found = same_shapes(task, one);
    for (int i = 0; !*found && i < stage_shape_count(st); i++) {
        if (!stage_shape(st, i, a, task, err))
            return false;
        *found = same_shapes(task, one);
    }
    return true;
}

static bool verify_case(const struct settings *own, const struct exported *e, size_t number,
                        struct progress *progress, struct arena *a, struct verify_summary *s,
                        struct error *err)
{
    const json_t *one = json_array_get(json_object_get(e->table, "cases"), number);
    struct task *task = arena_alloc(a, sizeof(*task));
    struct settings here = *own;
    struct stage *st = NULL;
    bool found = false, ok;

    here.set = number ? label_constants(json_string_or(one, "label", ""), a) : NULL;
    ok = stage_open(&here, &st, err) && load_case(st, e, one, a, task, &found, err);
    if (ok && !found)
        note(s, "shapes", VERIFY_DIFFERS, "reference.py has other shapes than the launch list");
    else if (ok && here.set && !json_bool_or(task->description, "same_forward", false))
        note(s, "shapes", VERIFY_DIFFERS,
             "reference.py is another function with the constants that launches.json names");
    if (ok && number == 0 && other_header(task, e))
        note(s, "table", VERIFY_DIFFERS,
             arena_printf(a, "%s in launches.json is not the task's", other_header(task, e)));
    if (ok && (found || number == 0)) {
        tell(progress, "build", task, stage_device(st));
        ok = verify_source(st, task, e, number, a, s, err);
        if (ok)
            tell(progress, "test", task, stage_device(st));
        ok = ok && judge_code(st, task, e, number, a, s, err);
    }
    stage_close(st);
    return ok;
}

/* Every further judged shape; one step for all of them, which says what the first bad one has. */
static bool verify_cases(const struct settings *own, const struct exported *e,
                         struct progress *progress, struct arena *a, struct verify_summary *s,
                         struct error *err)
{
    size_t count = json_array_size(json_object_get(e->table, "cases"));
    enum verify_kind kind = VERIFY_SAME;
    const char *text = arena_printf(a, "all %zu judged shapes", count);

    for (size_t i = 1; i < count && kind != VERIFY_DIFFERS; i++) {
        struct verify_summary mine = {.ok = true};

        if (!verify_case(own, e, i, progress, a, &mine, err))
            return error_add(err, "verifying case %zu", i);
        for (int k = 0; k < mine.count && kind != VERIFY_DIFFERS; k++)
            if (mine.steps[k].kind != VERIFY_SAME && kind != mine.steps[k].kind) {
                kind = mine.steps[k].kind;
                text =
                    arena_printf(a, "case %zu: %s: %s", i, mine.steps[k].name, mine.steps[k].text);
            }
    }
    if (count > 1)
        note(s, "cases", kind, text);
    return true;
}

/* Was the code of the main shape built again, or judged? Else nothing here vouches for it. */
static bool vouched(const struct verify_summary *s)
{
    for (int i = 0; i < s->count; i++)
        if (s->steps[i].kind == VERIFY_SAME &&
            (!strcmp(s->steps[i].name, "source") || !strcmp(s->steps[i].name, "judge")))
            return true;
    return false;
}

bool loop_verify(const struct settings *settings, const char *dir, bool device_named,
                 struct progress *progress, struct arena *a, struct verify_summary *out,
                 struct error *err)
{
    struct settings own = *settings;
    struct exported e;

    *out = (struct verify_summary){.ok = true};
    if (!stage_export_read(dir, a, &e, err))
        return false;
    out->run_id = json_string_or(e.record, "run", "?");
    out->code_hash = case_hash(&e, 0);
    verify_files(&e, a, out);
    if (!verify_python(&e, a, out, err))
        return false;
    verify_native(&e, a, out);
    verify_store(settings, &e, a, out);
    own.model = "builtin"; /* no model is asked */
    own.budget_file = NULL;
    own.budget_text = NULL;
    own.scale = false; /* reference.py has the judged sizes */
    own.set = NULL;
    if (languages[e.target].python)
        own.target = e.target;
    else if (!strstr(e.source.data, "cute/") && !strstr(e.source.data, "cutlass/"))
        own.target = LANGUAGE_CUDA;
    if (e.device.kind == DEVICE_SIMT && !device_named)
        own.device = "simt";
    if (e.device.kind == DEVICE_SIMT && !strncmp(e.device.arch, "compute_", 8))
        own.simt_arch = e.device.arch + 8;
    own.backward = json_int_or(e.table, "upstream", 0) > 0;
    if (!verify_case(&own, &e, 0, progress, a, out, err) ||
        !verify_cases(&own, &e, progress, a, out, err))
        return false;
    out->unknown = out->ok && !vouched(out);
    out->ok = out->ok && !out->unknown;
    if (strcmp(json_string_or(e.table, "gradients", ""), "kernel") != 0 || own.backward)
        return true;
    out->backward = arena_alloc(a, sizeof(*out->backward));
    if (!loop_verify(settings, path_join(a, e.dir, EXPORT_BACKWARD), device_named, progress, a,
                     out->backward, err))
        return error_add(err, "verifying the gradients' kernel of %s", dir);
    out->unknown = (out->ok || out->unknown) && (out->backward->ok || out->backward->unknown) &&
                   (out->unknown || out->backward->unknown);
    out->ok = out->ok && out->backward->ok;
    return true;
}
