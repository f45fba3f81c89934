/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export.c - the judged kernel as files to use: its very code, its launch list, a loader.
 *
 * Nothing is compiled here, nor by the user of the export: the code is the
 * bytes that were judged, the launch list is the data that was judged. The
 * source goes along for people. oracle/exported/ has the loader and the
 * module's template, whose @SLOTS@ are filled once and never searched again.
 *
 * Invariants
 * 1. Every file is made in memory first; layouts only place them (export_layout.c).
 * 2. record.json names the SHA-256 of every other file.
 * 3. The kernel of the gradients is an export of its own, in the folder backward/.
 */
#include "base/buf.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "stage/exported.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

enum { MAX_FILE_BYTES = 4 << 20, FORMAT = 1 };

/* ---- names --------------------------------------------------------------------- */

/* Words that cannot be imported, and packages that an installed wheel would overwrite or hide
 * behind. */
static bool is_taken(const char *name)
{
    static const char *const words[] = {
        "False",    "None",     "True",        "and",      "as",        "assert", "async",
        "await",    "break",    "class",       "continue", "def",       "del",    "elif",
        "else",     "except",   "finally",     "for",      "from",      "global", "if",
        "import",   "in",       "is",          "lambda",   "nonlocal",  "not",    "or",
        "pass",     "raise",    "return",      "try",      "while",     "with",   "yield",
        "array",    "code",     "collections", "copy",     "ctypes",    "enum",   "functools",
        "hashlib",  "heapq",    "inspect",     "io",       "json",      "math",   "numbers",
        "operator", "os",       "queue",       "random",   "re",        "select", "statistics",
        "string",   "struct",   "sys",         "test",     "threading", "time",   "types",
        "typing",   "warnings", "cutegen",     "kernels",  "numpy",     "torch",  "triton",
    };

    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (!strcmp(name, words[i]))
            return true;
    return false;
}

/* A Python identifier: "3d-conv" becomes "_3d_conv", "class" becomes "class_kernel". */
static const char *identifier(const char *name, struct arena *a)
{
    char *out = arena_printf(a, "%s%s%s", isdigit((unsigned char)*name) || !*name ? "_" : "", name,
                             is_taken(name) ? "_kernel" : "");

    for (char *p = out; *p; p++)
        if (!isalnum((unsigned char)*p))
            *p = '_';
    return out;
}

void export_add(struct export_package *p, const char *name, struct text data)
{
    if (p->count == EXPORT_MAX_FILES)
        BUG("more than %d files in an export", EXPORT_MAX_FILES);
    p->files[p->count++] = (struct export_file){name, data};
}

static struct text pretty(const json_t *v, struct arena *a)
{
    char *text = json_dumps(v, JSON_INDENT(1)), *copy;

    copy = arena_printf(a, "%s\n", text ? text : "{}");
    free(text); /* jansson's own allocation */
    return text_of(copy);
}

/* ---- launches.json --------------------------------------------------------------- */

static json_t *device_entry(const struct device *d)
{
    return json_pack("{s:s, s:s, s:s, s:i, s:I, s:I}", "kind",
                     d->kind == DEVICE_CUDA ? "cuda" : "simt", "name", d->name, "arch", d->arch,
                     "sm_count", d->sm_count, "smem_block_bytes", (json_int_t)d->smem_block_bytes,
                     "l2_bytes", (json_int_t)d->l2_bytes);
}

static json_t *or_null(json_t *v)
{
    return v ? json_incref(v) : json_null();
}

static json_t *case_entry(const struct export_case *c, size_t module)
{
    static const char *const parts[] = {"workspace", "ops", "maps"};
    json_t *j = json_object(), *scalars = json_object_get(c->description, "scalars");

    json_object_set_new(j, "module", json_integer((json_int_t)module));
    json_object_set_new(j, "label", json_string(c->label ? c->label : ""));
    json_object_set_new(j, "inputs", or_null(json_object_get(c->description, "inputs")));
    json_object_set_new(j, "outputs", or_null(json_object_get(c->description, "outputs")));
    json_object_set_new(j, "scalars", scalars ? json_incref(scalars) : json_array());
    json_object_set_new(j, "call", or_null(json_object_get(c->description, "call")));
    json_object_set(j, "names", (json_t *)c->build->names);
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        json_t *part = json_object_get(c->build->launches, parts[i]);

        json_object_set_new(j, parts[i], part ? json_incref(part) : json_array());
    }
    return j;
}

/* Adds a code file; the number of its entry in `modules`. Equal code is one file. */
static size_t add_code(struct export_package *p, json_t *modules, struct text code,
                       const char *hash, const char *kind, bool judged, struct arena *a)
{
    size_t n = json_array_size(modules);
    const char *name = arena_printf(a, "kernel-%zu.%s", n, kind);

    for (size_t i = 0; i < n; i++)
        if (!strcmp(json_string_or(json_array_get(modules, i), "sha256", ""), hash))
            return i;
    json_array_append_new(modules, json_pack("{s:s, s:s, s:s, s:b}", "file", name, "kind", kind,
                                             "sha256", hash, "judged", (int)judged));
    export_add(p, name, code);
    return n;
}

static json_t *table(const struct export_request *req, struct export_package *p, struct arena *a)
{
    const json_t *d = req->task->description;
    bool cuda = req->device->kind == DEVICE_CUDA;
    json_t *modules = json_array(), *cases = json_array(), *j = json_object();

    for (size_t i = 0; i < req->case_count; i++) {
        const struct build_result *b = req->cases[i].build;
        size_t at = add_code(p, modules, b->code, b->code_hash, cuda ? "cubin" : "ptx", true, a);

        if (cuda && req->ptx)
            json_object_set_new(json_array_get(modules, at), "ptx",
                                json_integer((json_int_t)add_code(p, modules, b->ptx, b->ptx_hash,
                                                                  "ptx", false, a)));
        json_array_append_new(cases, case_entry(&req->cases[i], at));
    }
    json_object_set_new(j, "format", json_integer(FORMAT));
    json_object_set_new(j, "name", json_string(p->name));
    json_object_set_new(j, "device", device_entry(req->device));
    json_object_set_new(j, "gradients",
                        json_string(req->backward    ? "kernel"
                                    : req->gradients ? "reference"
                                                     : "none"));
    json_object_set_new(j, "upstream", json_integer(json_int_or(d, "upstream", 0)));
    json_object_set_new(j, "fallback", json_boolean(req->fallback));
    json_object_set_new(j, "scaled", json_string(req->task->scaled ? req->task->scaled : ""));
    json_object_set_new(j, "training", json_boolean(json_bool_or(d, "training", true)));
    json_object_set_new(j, "returns", or_null(json_object_get(d, "returns")));
    json_object_set_new(j, "call", or_null(json_object_get(d, "call")));
    json_object_set_new(j, "writes", or_null(json_object_get(d, "written")));
    json_object_set_new(j, "constants", or_null(json_object_get(d, "constants")));
    json_object_set_new(j, "alignment", json_integer(EXPORT_ALIGNMENT));
    json_object_set_new(j, "modules", modules);
    json_object_set_new(j, "cases", cases);
    return j;
}

/* ---- texts ------------------------------------------------------------------------ */

static bool own_file(const char *name, struct arena *a, struct text *out, struct error *err)
{
    char *path;

    return home_data(arena_printf(a, "oracle/exported/%s", name), a, &path, err) &&
           file_read(path, MAX_FILE_BYTES, a, out, err);
}

/* The operator in C, for this processor: others launch from Python (oracle/exported/native.py). */
static bool add_library(struct export_package *p, struct arena *a, struct error *err)
{
    struct utsname host;
    struct text file;
    char *path;

    if (uname(&host))
        return error_set(err, ERROR_MACHINE, "uname: %s", strerror(errno));
    if (!home_program("cutegen-loader.so", a, &path, err) ||
        !file_read(path, MAX_FILE_BYTES, a, &file, err))
        return false;
    export_add(p, arena_printf(a, "loader-%s.so", host.machine), file);
    return true;
}

struct slot {
    const char *name; /* with its @ signs */
    struct text value;
};

static struct text fill(struct text template, const struct slot *slots, size_t count,
                        struct arena *a)
{
    struct buf out = buf_init(MAX_FILE_BYTES);
    struct text made;

    for (size_t i = 0; i < template.len;) {
        const char *p = template.data + i;
        size_t s = 0;

        while (s < count && strncmp(p, slots[s].name, strlen(slots[s].name)) != 0)
            s++;
        if (*p == '@' && s < count) {
            buf_add(&out, slots[s].value.data, slots[s].value.len);
            i += strlen(slots[s].name);
        } else {
            buf_putc(&out, *p);
            i++;
        }
    }
    made = buf_copy(&out, a);
    buf_release(&out);
    return made;
}

static const char *shapes_text(const struct export_request *req, struct arena *a)
{
    struct buf b = buf_init(MAX_FILE_BYTES);
    const char *text;

    for (size_t i = 0; i < req->case_count; i++) {
        const json_t *inputs = json_object_get(req->cases[i].description, "inputs");

        for (size_t k = 0; k < json_array_size(inputs); k++) {
            const json_t *t = json_array_get(inputs, k);

            buf_printf(&b, "%s%s %s %s",
                       k   ? ", "
                       : i ? "\n"
                           : "",
                       json_string_or(t, "name", "?"), json_string_or(t, "dtype", "?"),
                       json_line(json_object_get(t, "shape"), a));
        }
    }
    text = buf_copy(&b, a).data;
    buf_release(&b);
    return text;
}

static const char *summary_text(const struct export_request *req, struct arena *a)
{
    const json_t *time = json_object_get(req->record, "time");

    return arena_printf(
        a, "Judged on %s (%s), %s %.3f us. Shapes: %s.%s%s%s", req->device->name, req->device->arch,
        !json_bool_or(time, "modelled", false)     ? "measured time"
        : json_bool_or(time, "unvalidated", false) ? "modelled, unvalidated time"
                                                   : "modelled time",
        json_double_or(time, "time_us", 0), shapes_text(req, a),
        req->task->scaled ? " Sizes were reduced: " : "",
        req->task->scaled ? req->task->scaled : "",
        json_bool_or(req->record, "forced", false) ? " NOT ACCEPTED; exported by --force." : "");
}

static bool add_texts(const struct export_request *req, struct export_package *p, struct arena *a,
                      struct error *err)
{
    const char *judged = json_string_or(req->task->description, "judged_source", NULL);
    bool python = languages[stage_export_target(req->record)].python;
    const struct slot slots[] = {
        {"@NAME@", text_of(p->name)},
        {"@TASK@", text_of(req->task->name)},
        {"@RUN@", text_of(json_string_or(req->record, "run", "?"))},
        {"@SUMMARY@", text_of(summary_text(req, a))},
        {"@ARCH@", text_of(req->device->arch)},
        {"@SOURCE@", text_of(p->source)},
        {"@FLAGS@", text_of(python ? arena_printf(a, " (called `%s.py`)", p->name) : "")},
    };
    static const char *const same[] = {"loader.py", "native.py", "launcher.py", "gradients.py",
                                       "facts.py"};
    struct text template, file, readme, package;

    if (!own_file("model_new.py.in", a, &template, err) ||
        !own_file("README.md.in", a, &readme, err) || !own_file("__init__.py.in", a, &package, err))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(same); i++) {
        if (!own_file(same[i], a, &file, err))
            return false;
        export_add(p, same[i], file);
    }
    export_add(p, arena_printf(a, "%s_new.py", p->name),
               fill(template, slots, ARRAY_LEN(slots), a));
    export_add(p, "__init__.py", fill(package, slots, ARRAY_LEN(slots), a));
    export_add(p, "reference.py", judged ? text_of(judged) : req->task->source);
    export_add(p, p->source, req->best->source);
    export_add(p, "README.md", fill(readme, slots, ARRAY_LEN(slots), a));
    return true;
}

/* Last: it names all others. */
static void add_record(const struct export_request *req, struct export_package *p, struct arena *a)
{
    json_t *files = json_object(), *record = json_deep_copy(req->record);
    char hex[65];

    for (size_t i = 0; i < p->count; i++) {
        hash_text(p->files[i].data, hex);
        json_object_set_new(files, p->files[i].name, json_string(hex));
    }
    json_object_set_new(record, "files", files);
    export_add(p, "record.json", pretty(record, a));
    json_decref(record);
}

static bool make_package(const struct export_request *req, struct arena *a,
                         struct export_package **out, struct error *err)
{
    struct export_package *p = arena_alloc(a, sizeof(*p)), *backward;
    json_t *launches;

    p->name = identifier(req->task->name, a);
    p->version = json_string_or(req->record, "cutegen", "0");
    p->source = stage_export_source(p->name, stage_export_target(req->record), a);
    launches = table(req, p, a);
    export_add(p, "launches.json", pretty(launches, a));
    json_decref(launches);
    if (!add_texts(req, p, a, err) || (req->device->kind == DEVICE_CUDA && !add_library(p, a, err)))
        return false;
    if (req->backward) {
        if (!make_package(req->backward, a, &backward, err))
            return false;
        for (size_t i = 0; i < backward->count; i++)
            export_add(p, arena_printf(a, EXPORT_BACKWARD "/%s", backward->files[i].name),
                       backward->files[i].data);
    }
    add_record(req, p, a);
    *out = p;
    return true;
}

bool stage_export(const struct export_request *req, struct arena *a, struct export_files *out,
                  struct error *err)
{
    struct export_package *p;

    if (!make_package(req, a, &p, err) || !export_place(p, req->layout, req->dir, a, out, err))
        return error_add(err, "exporting to %s", req->dir);
    return true;
}
