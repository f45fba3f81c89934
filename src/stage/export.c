/*
 * export.c - the winner as files to use: a ModelNew module, the .cu, its headers, a record.
 *
 * The module is oracle/model_new.py.in with its @SLOTS@ filled. It is one
 * file that needs nothing of cutegen: the kernel and the ABI headers are
 * inside it. Slot texts are put in as they are and never searched again.
 */
#include "base/buf.h"
#include "base/fs.h"
#include "base/json.h"
#include "stage/stage.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_FILE_BYTES = 4 << 20, MAX_MODULE_BYTES = 16 << 20 };

static const char *const header_names[] = {"kernel.h", "arith.h", "each.h", "plan.h", "export.h"};

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
        json_object_set_new(one, "dtype", json_string(t[i].dtype));
        json_object_set_new(one, "shape", shape);
        json_object_set_new(one, "strides", strides);
        json_array_append_new(list, one);
    }
    return list;
}

/* JSON with only strings, numbers, lists and objects is Python too. */
static const char *spec_literal(const struct task *task, struct arena *a)
{
    json_t *spec = json_object();
    const char *text;

    json_object_set_new(spec, "inputs", tensors_json(task->in, task->in_count));
    json_object_set_new(spec, "outputs", tensors_json(task->out, task->out_count));
    json_object_set_new(spec, "scaled", json_string(task->scaled ? task->scaled : ""));
    text = json_line(spec, a);
    json_decref(spec);
    return text;
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
    struct text template;
    char *template_path;
    bool ok = false;

    if (!home_data("oracle/model_new.py.in", a, &template_path, err) ||
        !file_read(template_path, MAX_FILE_BYTES, a, &template, err))
        goto done;
    python_string(&kernel, req->best->source);
    const struct slot slots[] = {
        {"@NAME@", text_of(req->task->name)},
        {"@RUN@", text_of(json_string_or(req->record, "run", "?"))},
        {"@SUMMARY@", text_of(summary_text(req, a))},
        {"@TASK@", req->task->source},
        {"@SPEC@", text_of(spec_literal(req->task, a))},
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
    buf_release(&out);
    return ok;
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
    if (!dir_make(out->header_path, err) || !headers_literal(req->dir, a, &headers, err) ||
        !file_write(out->source_path, req->best->source, err) ||
        !file_write(out->record_path, text_of(copy), err) ||
        !write_module(req, buf_text(&headers), a, out->module_path, err))
        error_add(err, "exporting to %s", req->dir);
    else
        ok = true;
    buf_release(&headers);
    return ok;
}
