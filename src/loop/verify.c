/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify.c - check that an exported folder is what was judged and still passes.
 *
 *     files      every file has the hash that the record names
 *     python the Python that an import runs is this cutegen's own, and there is no other file store
 *     the code is what the run judged, where this machine's store has that run source the source,
 *     built again for the device it was judged on, gives exactly that code launches its plan gives
 *     exactly that launch list judge the exported code itself passes on this machine
 *
 * The folder is untrusted data: no other step relies on what its record claims.
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

/* Only the first of several judged shapes is built and judged again. */
static void verify_cases(const struct exported *e, struct arena *a, struct verify_summary *s)
{
    size_t count = json_array_size(json_object_get(e->table, "cases"));

    if (count > 1)
        note(s, "cases", VERIFY_NOT_HERE,
             arena_printf(a, "the first of %zu is verified, the others are not", count));
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
                          struct arena *a, struct verify_summary *s, struct error *err)
{
    struct candidate cand = {.attempt = 1, .change = "", .source = e->source};
    struct build_result *built = arena_alloc(a, sizeof(*built));
    const json_t *one = json_array_get(json_object_get(e->table, "cases"), 0);
    const char *other = other_tools(st, e, a);

    if (!stage_build_for(st, &e->device, task, &cand, a, built, err))
        return false;
    if (built->verdict.kind != VERDICT_PASS) {
        note(s, "source", VERIFY_DIFFERS,
             arena_printf(a, "%s: %s", verdict_names[built->verdict.kind], built->verdict.summary));
        return true;
    }
    if (strcmp(built->code_hash, case_hash(e, 0)) == 0)
        note(s, "source", VERIFY_SAME,
             arena_printf(a, "built again: %s", short_hash(built->code_hash, a)));
    else
        note(s, "source", other ? VERIFY_NOT_HERE : VERIFY_DIFFERS,
             other ? other
                   : arena_printf(a, "built again it is %s, exported is %s",
                                  short_hash(built->code_hash, a), short_hash(case_hash(e, 0), a)));
    note(s, "launches", same_list(built->launches, one) ? VERIFY_SAME : VERIFY_DIFFERS,
         same_list(built->launches, one) ? "the plan gives this list"
                                         : "the plan gives another launch list");
    return true;
}

/* ---- judge ----------------------------------------------------------------------- */

static bool judge_code(struct stage *st, const struct task *task, const struct exported *e,
                       struct arena *a, struct verify_summary *s, struct error *err)
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
    if (!stage_adopt(st, e, 0, a, build, err))
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

/* Do the judged shapes equal those of reference.py? */
static bool same_shapes(const struct task *task, const struct exported *e)
{
    const json_t *one = json_array_get(json_object_get(e->table, "cases"), 0);

    return json_equal(json_object_get(task->description, "inputs"), json_object_get(one, "inputs"));
}

static void tell(struct progress *progress, const char *stage, const struct task *task,
                 const struct device *device)
{
    struct event ev = {.kind = EVENT_STAGE, .text = stage, .task = task, .device = device};

    if (progress)
        progress->event(progress, &ev);
}

static bool verify_here(const struct settings *own, const struct exported *e,
                        struct progress *progress, struct arena *a, struct verify_summary *s,
                        struct error *err)
{
    struct task *task = arena_alloc(a, sizeof(*task));
    struct stage *st = NULL;
    bool ok = stage_open(own, &st, err) &&
              stage_describe(st, path_join(a, e->dir, "reference.py"), a, task, err);

    if (ok && !same_shapes(task, e))
        note(s, "shapes", VERIFY_DIFFERS, "reference.py has other shapes than the launch list");
    if (ok) {
        tell(progress, "build", task, stage_device(st));
        ok = verify_source(st, task, e, a, s, err);
    }
    if (ok) {
        tell(progress, "test", task, stage_device(st));
        ok = judge_code(st, task, e, a, s, err);
    }
    stage_close(st);
    return ok;
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
    verify_cases(&e, a, out);
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
    if (!verify_here(&own, &e, progress, a, out, err))
        return false;
    if (strcmp(json_string_or(e.table, "gradients", ""), "kernel") != 0 || own.backward)
        return true;
    out->backward = arena_alloc(a, sizeof(*out->backward));
    if (!loop_verify(settings, path_join(a, e.dir, EXPORT_BACKWARD), device_named, progress, a,
                     out->backward, err))
        return error_add(err, "verifying the gradients' kernel of %s", dir);
    out->ok = out->ok && out->backward->ok;
    return true;
}
