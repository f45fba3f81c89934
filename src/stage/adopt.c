/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adopt.c - turn an exported folder back into something to judge: its code, launch list and source.
 *
 * A folder is untrusted. The runner checks its launch list like any candidate's, and its code is
 * loaded only if it has the hash that the table names.
 */
#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "stage/workshop.h"
#include "toolchain/simtc.h"

#include <string.h>

enum { MAX_JSON_BYTES = 64 << 20, MAX_CODE_BYTES = 256 << 20, MAX_SOURCE_BYTES = 4 << 20 };

static bool read_json(const char *dir, const char *name, struct arena *a, json_t **out,
                      struct error *err)
{
    struct text t;

    if (!file_read(path_join(a, dir, name), MAX_JSON_BYTES, a, &t, err) ||
        !json_parse(t, name, out, err)) {
        err->kind = ERROR_USE;
        error_add(err, "reading the export %s", dir);
        return error_hint(err, "name a folder that `cutegen export` wrote");
    }
    json_own(a, *out);
    return true;
}

static bool table_whole(const json_t *table, struct error *err)
{
    static const char *const lists[] = {"modules", "cases"};
    int64_t format = json_int_or(table, "format", 0);

    if (format != 1)
        return error_set(err, ERROR_USE, "its format is %lld; this cutegen reads 1",
                         (long long)format);
    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        if (json_array_size(json_object_get(table, lists[i])) == 0)
            return error_set(err, ERROR_USE, "launches.json has no %s", lists[i]);
    return true;
}

enum language stage_export_target(const json_t *record)
{
    return language_named(json_string_or(json_object_get(record, "options"), "target", ""));
}

const char *stage_export_source(const char *name, enum language target, struct arena *a)
{
    return arena_printf(a, "%s.%s", name, languages[target].python ? languages[target].name : "cu");
}

bool stage_export_read(const char *dir, struct arena *a, struct exported *out, struct error *err)
{
    const json_t *d;

    *out = (struct exported){.dir = path_absolute(a, dir)};
    if (!read_json(out->dir, "launches.json", a, &out->table, err) ||
        !read_json(out->dir, "record.json", a, &out->record, err))
        return false;
    if (!table_whole(out->table, err))
        return error_add(err, "reading the export %s", dir);
    out->name = json_string_or(out->table, "name", "");
    if (strchr(out->name, '/'))
        return error_set(err, ERROR_USE, "the export %s has a name that is not one", dir);
    d = json_object_get(out->table, "device");
    out->device = (struct device){
        .kind = strcmp(json_string_or(d, "kind", ""), "cuda") ? DEVICE_SIMT : DEVICE_CUDA,
        .name = json_string_or(d, "name", "?"),
        .arch = json_string_or(d, "arch", "?"),
        .sm_count = (int)json_int_or(d, "sm_count", 0),
        .smem_block_bytes = json_int_or(d, "smem_block_bytes", 0),
        .l2_bytes = json_int_or(d, "l2_bytes", 0),
    };
    out->target = stage_export_target(out->record);
    if (file_read(path_join(a, out->dir, stage_export_source(out->name, out->target, a)),
                  MAX_SOURCE_BYTES, a, &out->source, err))
        return true;
    err->kind = ERROR_USE;
    return error_add(err, "reading the export %s", dir);
}

/* Has a case what its readers take for granted? Launch lists are checked by the runner. */
static bool case_whole(const json_t *one, struct error *err)
{
    static const char *const lists[] = {"inputs", "outputs", "workspace", "ops", "maps"};
    json_t *names = json_object_get(one, "names"), *value;
    const char *key;

    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        if (!json_is_array(json_object_get(one, lists[i])))
            return error_set(err, ERROR_USE, "a case of launches.json has no list of %s", lists[i]);
    if (!json_is_object(names))
        return error_set(err, ERROR_USE, "a case of launches.json has no names of kernels");
    json_object_foreach(
        names, key,
        value) if (!json_is_string(value) ||
                   !json_string_length(
                       value)) return error_set(err, ERROR_USE,
                                                "launches.json has no name for the kernel %s", key);
    return true;
}

/* The code file of a case, if it has the table's hash. */
static bool take_code(const struct exported *from, const json_t *entry, struct arena *a,
                      struct build_result *out, struct error *err)
{
    const char *name = json_string_or(entry, "file", "");
    char hex[65];

    if (!*name || strchr(name, '/'))
        return error_set(err, ERROR_USE, "'%s' is not the name of a code file", name);
    if (!file_read(path_join(a, from->dir, name), MAX_CODE_BYTES, a, &out->code, err)) {
        err->kind = ERROR_USE;
        return false;
    }
    hash_text(out->code, hex);
    if (strcmp(hex, json_string_or(entry, "sha256", "")) != 0) {
        error_set(err, ERROR_JUDGED, "%s is not the code that was judged: its SHA-256 is %.16s...",
                  name, hex);
        return error_hint(err, "export it again: cutegen export %s",
                          json_string_or(from->record, "run", "RUN"));
    }
    out->code_hash = arena_strdup(a, hex);
    return true;
}

/* Translates PTX for simt. */
static bool translate(struct stage *st, struct arena *a, struct build_result *out,
                      struct error *err)
{
    struct text module;
    char hex[65];

    if (!simtc_translate(&st->tools, st->settings.build_deadline_s * 1000, a, out, err))
        return false;
    if (out->verdict.kind != VERDICT_PASS)
        return true;
    if (!file_read(out->module_path, MAX_CODE_BYTES, a, &module, err))
        return false;
    hash_text(module, hex);
    out->module_hash = arena_strdup(a, hex);
    return true;
}

bool stage_adopt(struct stage *st, const struct exported *from, size_t number, struct arena *a,
                 struct build_result *out, struct error *err)
{
    json_t *one = json_array_get(json_object_get(from->table, "cases"), number);
    json_t *modules = json_object_get(from->table, "modules");
    bool simt = from->device.kind == DEVICE_SIMT;
    const char *path;

    *out = (struct build_result){
        .verdict = {.kind = VERDICT_PASS, .summary = "", .detail = ""},
        .work_dir = path_join(a, st->work_dir, arena_printf(a, "export-%zu", number)),
        .launches = one,
        .names = json_object_get(one, "names"),
    };
    if (!one)
        return error_set(err, ERROR_USE, "%s has no case %zu", from->dir, number);
    if (!case_whole(one, err))
        return error_add(err, "loading the export %s", from->dir);
    path = path_join(a, out->work_dir, simt ? "kernel.ptx" : "kernel.cubin");
    if (!dir_make(out->work_dir, err) ||
        !take_code(from, json_array_get(modules, (size_t)json_int_or(one, "module", 0)), a, out,
                   err) ||
        !file_write(path, out->code, err))
        return error_add(err, "loading the export %s", from->dir);
    out->module_path = path;
    out->module_hash = out->code_hash;
    if (!simt)
        return true;
    out->ptx_path = path;
    return translate(st, a, out, err);
}
