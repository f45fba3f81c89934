/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export.c - the winner as files to use: a ModelNew module, the .cu, a shared object, headers, a
 * record.
 *
 * The module is oracle/model_new.py.in with its @SLOTS@ filled. It is one
 * file that needs nothing of cutegen: the kernel and the ABI headers are
 * inside it. Slot texts are put in as they are and never searched again.
 */
#include "base/buf.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "stage/settings.h"
#include "stage/stage.h"
#include "toolchain/nvcc.h"
#include "toolchain/tools.h"

#include <ctype.h>

#include <stdlib.h>
#include <string.h>

enum { MAX_FILE_BYTES = 4 << 20, MAX_MODULE_BYTES = 16 << 20, NVCC_MS = 600000 };

static const char *const header_names[] = {"kernel.h", "arith.h", "plan.h", "export.h"};

/* A Python literal: a readable raw string where that is safe, else an escaped one. */
static void python_string(struct buf *out, struct text t)
{
    bool raw = t.len && !memmem(t.data, t.len, "'''", 3) && t.data[t.len - 1] == '\n' &&
               !memchr(t.data, '\r', t.len) && !memchr(t.data, '\0', t.len);
    json_t *s;
    char *line;

    if (raw) {
        buf_puts(out, "r'''");
        buf_add(out, t.data, t.len);
        buf_puts(out, "'''");
        return;
    }
    s = json_stringn_nocheck(t.data, t.len);
    struct arena *a = arena_new();
    line = json_line(s, a);
    buf_puts(out, line);
    arena_free(a);
    json_decref(s);
}

static json_t *tensors_json(const struct tensor_info *t, int count)
{
    json_t *list = json_array();

    for (int i = 0; i < count; i++) {
        json_t *shape = json_array(), *strides = json_array(), *one = json_object();

        for (int d = 0; d < t[i].dims; d++) {
            json_array_append_new(shape, json_integer(t[i].shape[d]));
            json_array_append_new(strides, json_integer(t[i].strides[d]));
        }
        json_object_set_new(one, "name", json_string(t[i].name));
        json_object_set_new(one, "role", json_string(t[i].role));
        json_object_set_new(one, "dtype", json_string(t[i].dtype));
        json_object_set_new(one, "shape", shape);
        json_object_set_new(one, "strides", strides);
        json_array_append_new(list, one);
    }
    return list;
}

static void spec_literal(const struct export_request *req, struct buf *out)
{
    const struct task *task = req->task;
    json_t *spec = json_object(), *returns = json_object_get(task->description, "returns");
    struct arena *a = arena_new();

    json_object_set_new(spec, "inputs", tensors_json(task->in, task->in_count));
    json_object_set_new(spec, "outputs", tensors_json(task->out, task->out_count));
    json_object_set_new(spec, "scaled", json_string(task->scaled ? task->scaled : ""));
    json_object_set_new(spec, "fallback", json_boolean(req->fallback));
    json_object_set_new(spec, "returns", returns ? json_incref(returns) : json_integer(0));
    python_string(out, text_of(arena_printf(a, "%s\n", json_line(spec, a))));
    json_decref(spec);
    arena_free(a);
}

/* "cutegen_softmax_1f0a2b3c": the operator's namespace belongs to one kernel alone. */
static const char *operator_name(const struct export_request *req, struct arena *a)
{
    char hex[65], *name = arena_strdup(a, req->task->name);

    for (char *p = name; *p; p++)
        if (!isalnum((unsigned char)*p))
            *p = '_';
    hash_text(req->best->source, hex);
    return arena_printf(a, "cutegen_%s_%.8s", name, hex);
}

static bool headers_literal(const char *dir, struct arena *a, struct buf *out, struct error *err)
{
    buf_puts(out, "{\n");
    for (size_t i = 0; i < ARRAY_LEN(header_names); i++) {
        char *relative = arena_printf(a, "cutegen/%s", header_names[i]), *path;
        struct text t;

        if (!home_data(arena_printf(a, "include/%s", relative), a, &path, err) ||
            !file_read(path, MAX_FILE_BYTES, a, &t, err) ||
            !file_write(path_join(a, dir, relative), t, err))
            return false;
        buf_printf(out, "    \"%s\": ", relative);
        python_string(out, t);
        buf_puts(out, ",\n");
    }
    buf_puts(out, "}");
    return true;
}

static const char *summary_text(const struct export_request *req, struct arena *a)
{
    json_t *time = json_object_get(req->record, "time");
    double us = json_double_or(time, "time_us", 0);

    return arena_printf(a, "\nDevice %s, depth %d, %s %.3f us.%s%s", req->device->name,
                        req->best->depth,
                        json_bool_or(time, "modelled", false) ? "modelled time" : "measured time",
                        us, req->task->scaled ? " Sizes were reduced: " : "",
                        req->task->scaled ? req->task->scaled : "");
}

struct slot {
    const char *name; /* with its @ signs */
    struct text value;
};

static void fill(struct text template, const struct slot *slots, size_t count, struct buf *out)
{
    for (size_t i = 0; i < template.len;) {
        const char *p = template.data + i;
        size_t s = 0;

        while (s < count && strncmp(p, slots[s].name, strlen(slots[s].name)) != 0)
            s++;
        if (*p == '@' && s < count) {
            buf_add(out, slots[s].value.data, slots[s].value.len);
            i += strlen(slots[s].name);
        } else {
            buf_putc(out, *p);
            i++;
        }
    }
}

static bool write_module(const struct export_request *req, struct text headers, struct arena *a,
                         const char *path, struct error *err)
{
    struct buf kernel = buf_init(MAX_MODULE_BYTES), out = buf_init(MAX_MODULE_BYTES);
    struct buf spec = buf_init(MAX_FILE_BYTES);
    struct text template;
    char *template_path;
    bool ok = false;

    if (!home_data("oracle/model_new.py.in", a, &template_path, err) ||
        !file_read(template_path, MAX_FILE_BYTES, a, &template, err))
        goto done;
    python_string(&kernel, req->best->source);
    spec_literal(req, &spec);
    const struct slot slots[] = {
        {"@NAME@", text_of(req->task->name)},
        {"@RUN@", text_of(json_string_or(req->record, "run", "?"))},
        {"@SUMMARY@", text_of(summary_text(req, a))},
        {"@TASK@", req->task->source},
        {"@SPEC@", buf_text(&spec)},
        {"@OPERATOR@", text_of(operator_name(req, a))},
        {"@KERNEL@", buf_text(&kernel)},
        {"@HEADERS@", headers},
    };
    fill(template, slots, ARRAY_LEN(slots), &out);
    if (out.overflowed) {
        error_set(err, ERROR_USE, "the exported module would be larger than %d bytes",
                  MAX_MODULE_BYTES);
        goto done;
    }
    ok = file_write(path, buf_text(&out), err);
done:
    buf_release(&kernel);
    buf_release(&spec);
    buf_release(&out);
    return ok;
}

/* ---- without Python -------------------------------------------------------- */

static void describe_tensors(struct buf *out, const char *what, const struct tensor_info *t,
                             int count)
{
    for (int i = 0; i < count; i++) {
        buf_printf(out, " *     %s[%d]  %s  %s (", what, i, t[i].name, t[i].dtype);
        for (int d = 0; d < t[i].dims; d++)
            buf_printf(out, "%s%lld", d ? ", " : "", (long long)t[i].shape[d]);
        buf_puts(out, ")\n");
    }
}

static bool write_header(const struct export_request *req, const char *path, struct error *err)
{
    struct buf out = buf_init(MAX_FILE_BYTES);
    const char *name = req->task->name;
    bool ok;

    buf_printf(&out, "/*\n * %s.h - the kernel in %s.so, for C, C++ and whatever calls C.\n *\n",
               name, name);
    describe_tensors(&out, "in", req->task->in, req->task->in_count);
    describe_tensors(&out, "out", req->task->out, req->task->out_count);
    buf_puts(
        &out,
        " *\n"
        " * struct cutegen_tensor is DLPack's DLTensor, byte for byte; data lies on the device.\n"
        " * Work is queued on `stream` (a cudaStream_t). Returns 0, or 1 with the reason in\n"
        " * `error`; nothing throws.\n"
        " */\n"
        "#include \"cutegen/kernel.h\"\n"
        "#ifdef __cplusplus\n"
        "extern \"C\" {\n"
        "#endif\n"
        "int cutegen_call_kernel(const struct cutegen_tensor *in, int in_count,\n"
        "                        struct cutegen_tensor *out, int out_count,\n"
        "                        const struct cutegen_scalar *scalars, int scalar_count,\n"
        "                        void *stream, char *error, size_t error_len);\n"
        "int cutegen_abi_version(void);\n"
        "#ifdef __cplusplus\n"
        "}\n"
        "#endif\n");
    ok = file_write(path, buf_text(&out), err);
    buf_release(&out);
    return ok;
}

/* By nvcc where there is one; without it the reason is told and the rest is exported. */
static bool write_shared(const struct export_request *req, struct arena *a,
                         struct export_files *out, struct error *err)
{
    const struct settings *s = req->settings;
    struct tools_config config = {
        .cc = s->cc, .cuda = s->cuda, .cutlass = s->cutlass, .python = s->python};
    struct nvcc_request build = {
        .source_path = out->source_path,
        .arch = req->device->arch,
        .out_path = path_join(a, req->dir, arena_printf(a, "%s.so", req->task->name)),
        .deadline_ms = NVCC_MS,
    };
    struct verdict verdict;
    struct tools tools;

    tools_look(&config, a, &tools);
    if (!tools.nvcc || !tools.cutlass_include) {
        out->no_shared = tools.nvcc ? "no CUTLASS headers were found" : "no nvcc was found";
        return true;
    }
    if (!nvcc_shared(&tools, &build, a, &verdict, err))
        return false;
    if (verdict.kind == VERDICT_PASS)
        out->shared_path = build.out_path;
    else
        out->no_shared = verdict.summary;
    return true;
}

bool stage_export(const struct export_request *req, struct arena *a, struct export_files *out,
                  struct error *err)
{
    struct buf headers = buf_init(MAX_FILE_BYTES);
    char *record = json_dumps(req->record, JSON_INDENT(2)), *copy;
    bool ok = false;

    copy = arena_printf(a, "%s\n", record ? record : "{}");
    free(record); /* jansson's own allocation */
    *out = (struct export_files){
        .module_path = path_join(a, req->dir, arena_printf(a, "%s_new.py", req->task->name)),
        .source_path = path_join(a, req->dir, arena_printf(a, "%s.cu", req->task->name)),
        .header_path = path_join(a, req->dir, "cutegen"),
        .record_path = path_join(a, req->dir, "record.json"),
    };
    const char *header = path_join(a, req->dir, arena_printf(a, "%s.h", req->task->name));

    if (!dir_make(out->header_path, err) || !headers_literal(req->dir, a, &headers, err) ||
        !file_write(out->source_path, req->best->source, err) ||
        !file_write(out->record_path, text_of(copy), err) ||
        !write_module(req, buf_text(&headers), a, out->module_path, err) ||
        !write_header(req, header, err) || (req->shared && !write_shared(req, a, out, err)))
        error_add(err, "exporting to %s", req->dir);
    else
        ok = true;
    buf_release(&headers);
    return ok;
}
