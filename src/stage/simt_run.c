/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simt_run.c - run one kernel file by hand on simt: results, findings, counters, modelled time.
 *
 * No task and no reference: tensors are described in words
 * ("f32[16,128]=normal"), filled here, and the first elements of the outputs
 * shown. Build and runner are those of every judged candidate.
 */
#include "base/fs.h"
#include "base/json.h"
#include "eval/modelled.h"
#include "eval/runner_client.h"
#include "stage/workshop.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_SOURCE = 4 << 20, GUARD = 4096, SHOWN = 8, SAMPLED_FILL = 64 << 20 };
#define MAX_TENSOR_BYTES  ((int64_t)1 << 30)
#define MAX_SAMPLED_BYTES ((int64_t)1 << 36) /* a sample touches little of it */

static const struct dtype {
    const char *name;
    int bytes;
} dtypes[] = {{"f64", 8}, {"f32", 4}, {"f16", 2}, {"bf16", 2}, {"i64", 8},
              {"i32", 4}, {"i16", 2}, {"i8", 1},  {"u8", 1},   {"bool", 1}};

static const struct dtype *dtype_find(const char *name, size_t len)
{
    for (size_t i = 0; i < ARRAY_LEN(dtypes); i++)
        if (strlen(dtypes[i].name) == len && strncmp(dtypes[i].name, name, len) == 0)
            return &dtypes[i];
    return NULL;
}

static bool too_large(const char *words, int64_t most, struct error *err)
{
    error_set(err, ERROR_USE, "'%s' is larger than %lld GiB", words, (long long)(most >> 30));
    return most > MAX_TENSOR_BYTES
               ? false
               : error_hint(err, "--sample BLOCKS takes larger ones: only what is touched counts");
}

/* "f32[16,128]=normal" */
static bool parse_tensor(const char *words, const char *role, int number, int64_t most,
                         struct arena *a, struct tensor_info *out, const char **fill,
                         int64_t *bytes, struct error *err)
{
    const char *bracket = strchr(words, '['), *p = bracket;
    const struct dtype *dtype = bracket ? dtype_find(words, (size_t)(bracket - words)) : NULL;
    int64_t step = 1;

    *out = (struct tensor_info){.name = arena_printf(a, "%s%d", role, number), .role = role};
    while (dtype && p && (*p == '[' || *p == ',') && out->dims < MAX_DIMS) {
        char *end;

        out->shape[out->dims] = strtoll(p + 1, &end, 10);
        if (end == p + 1 || out->shape[out->dims] <= 0 || out->shape[out->dims] > most) {
            p = NULL;
            break;
        }
        out->dims++;
        p = end;
    }
    if (!dtype || !p || *p != ']' || (p[1] && p[1] != '=')) {
        error_set(err, ERROR_USE, "'%s' is not a tensor", words);
        return error_hint(err, "write DTYPE[SIZE,SIZE]=FILL, for example f32[16,128]=normal");
    }
    out->dtype = dtype->name;
    for (int d = out->dims - 1; d >= 0; d--) {
        out->strides[d] = step;
        if (out->shape[d] > most / step)
            return too_large(words, most, err);
        step *= out->shape[d];
    }
    *bytes = step * dtype->bytes;
    if (*bytes > most)
        return too_large(words, most, err);
    *fill = p[1] == '=' ? p + 2 : "normal";
    return true;
}

/* A small generator: the same words give the same numbers. */
static double next_uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) / 9007199254740992.0;
}

/* Of the whole name: in1 and in11 are different tensors. FNV-1a. */
static uint64_t first_state(const char *key)
{
    uint64_t state = 0xcbf29ce484222325u;

    for (; *key; key++)
        state = (state ^ (unsigned char)*key) * 0x100000001b3u;
    return state;
}

static bool fill_value(const char *fill, int64_t i, uint64_t *state, double *out)
{
    if (strcmp(fill, "normal") == 0)
        *out =
            sqrt(-2 * log(1 - next_uniform(state))) * cos(6.283185307179586 * next_uniform(state));
    else if (strcmp(fill, "uniform") == 0)
        *out = next_uniform(state);
    else if (strcmp(fill, "index") == 0)
        *out = (double)i;
    else if (strcmp(fill, "ones") == 0)
        *out = 1;
    else if (strcmp(fill, "zeros") == 0)
        *out = 0;
    else
        return false;
    return true;
}

/* Scales by 2^-112, so that f32's exponent range becomes f16's; ties go to even. */
static uint16_t to_half(double v, bool bf16)
{
    float f = (float)v, small;
    uint32_t bits, sign;

    memcpy(&bits, &f, sizeof(bits));
    if (bf16)
        return (uint16_t)((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
    sign = bits >> 16 & 0x8000;
    if (!(fabsf(f) < 65520.0f))
        return (uint16_t)(sign | (isnan(f) ? 0x7E00 : 0x7C00));
    if (fabsf(f) < 0x1p-14f) /* subnormal: in steps of 2^-24 */
        return (uint16_t)(sign | (uint32_t)lrintf(fabsf(f) * 0x1p24f));
    small = fabsf(f) * 0x1p-112f;
    memcpy(&bits, &small, sizeof(bits));
    return (uint16_t)(sign | (bits + 0xFFF + ((bits >> 13) & 1)) >> 13);
}

static double from_half(uint16_t h, bool bf16)
{
    uint32_t bits = (uint32_t)h << 16;
    int exponent = h >> 10 & 31, mantissa = h & 1023;
    double value;
    float f;

    memcpy(&f, &bits, sizeof(f));
    if (bf16)
        return (double)f;
    if (exponent == 31)
        value = mantissa ? (double)NAN : (double)INFINITY;
    else
        value = exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);
    return h & 0x8000 ? -value : value;
}

static void put_value(char *p, const char *dtype, double v)
{
    bool bf16 = strcmp(dtype, "bf16") == 0;

    if (strcmp(dtype, "f64") == 0)
        memcpy(p, &v, 8);
    else if (strcmp(dtype, "f32") == 0)
        memcpy(p, &(float){(float)v}, 4);
    else if (bf16 || strcmp(dtype, "f16") == 0)
        memcpy(p, &(uint16_t){to_half(v, bf16)}, 2);
    else if (strcmp(dtype, "i64") == 0)
        memcpy(p, &(int64_t){(int64_t)v}, 8);
    else if (strcmp(dtype, "i32") == 0)
        memcpy(p, &(int32_t){(int32_t)v}, 4);
    else if (strcmp(dtype, "i16") == 0)
        memcpy(p, &(int16_t){(int16_t)v}, 2);
    else
        *p = (char)(int)v;
}

static double get_value(const char *p, const char *dtype)
{
    union {
        double f64;
        float f32;
        uint16_t u16;
        int64_t i64;
        int32_t i32;
        int16_t i16;
    } u;
    bool bf16 = strcmp(dtype, "bf16") == 0;

    memcpy(&u, p, (size_t)dtype_find(dtype, strlen(dtype))->bytes);
    if (strcmp(dtype, "f64") == 0)
        return u.f64;
    if (strcmp(dtype, "f32") == 0)
        return (double)u.f32;
    if (bf16 || strcmp(dtype, "f16") == 0)
        return from_half(u.u16, bf16);
    if (strcmp(dtype, "i64") == 0)
        return (double)u.i64;
    if (strcmp(dtype, "i32") == 0)
        return u.i32;
    if (strcmp(dtype, "i16") == 0)
        return u.i16;
    return strcmp(dtype, "i8") == 0 ? (double)(signed char)*p : (double)(unsigned char)*p;
}

/* Raw bytes of a file: "@PATH". */
static bool fill_from_file(const char *path, char *data, int64_t bytes, struct arena *a,
                           struct error *err)
{
    struct text t;

    if (!file_read(path, (size_t)MAX_TENSOR_BYTES, a, &t, err)) {
        err->kind = ERROR_USE;
        return false;
    }
    if ((int64_t)t.len != bytes)
        return error_set(err, ERROR_USE, "%s has %zu bytes, the tensor %lld", path, t.len,
                         (long long)bytes);
    memcpy(data, t.data, t.len);
    return true;
}

/* A file of zeros with holes, but for its beginning. */
static bool sparse_file(const char *path, const char *data, size_t len, int64_t bytes,
                        struct error *err)
{
    int fd;

    if (!file_write(path, (struct text){data, len}, err))
        return false;
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || ftruncate(fd, bytes) != 0)
        error_set(err, ERROR_MACHINE, "cannot make %s as large as %lld bytes: %s", path,
                  (long long)bytes, strerror(errno));
    if (fd >= 0)
        close(fd);
    return !err->kind;
}

/* One tensor as a file the runner maps: guard, data, guard. A sample's is filled at its beginning
 * only: its counters are wanted, not its results. */
static bool make_buffer(struct stage *st, const struct tensor_info *t, const char *key,
                        const char *fill, int64_t bytes, bool sampled, struct arena *a,
                        json_t *buffers, struct error *err)
{
    int64_t held = sampled && bytes > SAMPLED_FILL ? SAMPLED_FILL : bytes;
    char *data = xmalloc((size_t)held + 2 * GUARD), *path = path_join(a, st->work_dir, key);
    int width = dtype_find(t->dtype, strlen(t->dtype))->bytes;
    uint64_t state = first_state(key);
    bool ok = true;
    double v;

    memset(data, 0xFF, (size_t)held + 2 * GUARD);
    if (fill && *fill == '@') {
        ok = held == bytes ? fill_from_file(fill + 1, data + GUARD, bytes, a, err)
                           : error_set(err, ERROR_USE, "a sample reads no file of that size");
        fill = NULL;
    }
    for (int64_t i = 0; fill && ok && i < held / width; i++) {
        ok = fill_value(fill, i, &state, &v);
        if (ok)
            put_value(data + GUARD + i * width, t->dtype, v);
    }
    if (!ok && fill) {
        error_set(err, ERROR_USE, "'%s' does not say how to fill a tensor", fill);
        error_hint(err, "ways: normal, uniform, index, ones, zeros, @FILE");
    }
    ok = ok && sparse_file(path, data, (size_t)held + 2 * GUARD, bytes + 2 * GUARD, err);
    if (ok)
        json_object_set_new(buffers, key,
                            json_pack("{s:s, s:i, s:I}", "path", path, "offset", GUARD, "bytes",
                                      (json_int_t)bytes));
    xfree(data);
    return ok;
}

static bool make_buffers(struct stage *st, const struct simt_options *o, struct task *task,
                         struct arena *a, json_t *buffers, struct error *err)
{
    int64_t bytes, most = o->sample ? MAX_SAMPLED_BYTES : MAX_TENSOR_BYTES;
    const char *fill;

    for (int i = 0; o->inputs && o->inputs[i] && i < MAX_TENSORS; i++, task->in_count++)
        if (!parse_tensor(o->inputs[i], "input", i, most, a, &task->in[i], &fill, &bytes, err) ||
            !make_buffer(st, &task->in[i], arena_printf(a, "in%d", i), fill, bytes, o->sample > 0,
                         a, buffers, err))
            return false;
    for (int i = 0; o->outputs && o->outputs[i] && i < MAX_TENSORS; i++, task->out_count++) {
        if (!parse_tensor(o->outputs[i], "output", i, most, a, &task->out[i], &fill, &bytes, err) ||
            !make_buffer(st, &task->out[i], arena_printf(a, "out%d", i), NULL, bytes, o->sample > 0,
                         a, buffers, err))
            return false;
        task->bytes_min += (double)bytes;
    }
    return true;
}

/* The first elements of every output, as the kernel left them. */
static json_t *show_outputs(const struct stage *st, const struct task *task, struct arena *a)
{
    json_t *list = json_array();
    struct error ignored = {0};
    struct text t;

    for (int i = 0; i < task->out_count; i++) {
        int width = dtype_find(task->out[i].dtype, strlen(task->out[i].dtype))->bytes;
        json_t *first = json_array();

        if (!file_read(path_join(a, st->work_dir, arena_printf(a, "out%d", i)),
                       (size_t)MAX_TENSOR_BYTES + 2 * GUARD, a, &t, &ignored))
            t = (struct text){"", 0};
        for (int k = 0; k < SHOWN && (size_t)(GUARD * 2 + (k + 1) * width) <= t.len; k++)
            json_array_append_new(
                first, json_number(get_value(t.data + GUARD + k * width, task->out[i].dtype)));
        json_array_append_new(list,
                              json_pack("{s:s, s:o}", "name", task->out[i].name, "first", first));
    }
    return list;
}

/* Outputs that were given a file: --output f32[16]=@PATH. */
static bool save_outputs(const struct stage *st, const struct simt_options *o, struct arena *a,
                         struct error *err)
{
    for (int i = 0; o->outputs && o->outputs[i] && i < MAX_TENSORS; i++) {
        const char *to = strstr(o->outputs[i], "=@");
        struct text t;

        if (!to)
            continue;
        if (!file_read(path_join(a, st->work_dir, arena_printf(a, "out%d", i)),
                       (size_t)MAX_TENSOR_BYTES + 2 * GUARD, a, &t, err))
            return false;
        if (!file_write(to + 2, (struct text){t.data + GUARD, t.len - 2 * (size_t)GUARD}, err))
            return false;
    }
    return true;
}

/* "float=1.5", "int=3", "bool=1": the plan's scalars. */
static bool take_scalars(const struct simt_options *o, json_t *description, struct error *err)
{
    json_t *list = json_array();

    json_object_set_new(description, "scalars", list);
    for (int i = 0; o->scalars && o->scalars[i]; i++) {
        const char *words = o->scalars[i], *equals = strchr(words, '=');
        size_t len = equals ? (size_t)(equals - words) : 0;
        char *end = NULL;
        double v = equals ? strtod(equals + 1, &end) : 0;
        bool real = len == 5 && !strncmp(words, "float", 5);
        bool flag = len == 4 && !strncmp(words, "bool", 4);

        if (!end || end == equals + 1 || *end ||
            !(real || flag || (len == 3 && !strncmp(words, "int", 3)))) {
            error_set(err, ERROR_USE, "'%s' is not a scalar", words);
            return error_hint(err, "write int=3, float=1.5 or bool=1");
        }
        json_array_append_new(list, json_pack("{s:s, s:s, s:o}", "name", "scalar", "type",
                                              real   ? "float"
                                              : flag ? "bool"
                                                     : "int",
                                              "value",
                                              real   ? json_real(v)
                                              : flag ? json_boolean(v != 0)
                                                     : json_integer((json_int_t)v)));
    }
    return true;
}

/* Kernels are built under a name of our own; the user sees the name of the file. */
static char *user_name(const char *text, const char *file, struct arena *a)
{
    const char *at = text ? strstr(text, "candidate.cu") : NULL;
    int head;

    if (!at)
        return arena_strdup(a, text ? text : "");
    for (head = (int)(at - text); head && !strchr(" \n(\"'", text[head - 1]);)
        head--; /* with the folder it was built in */
    return arena_printf(a, "%.*s%s%s", head, text, file,
                        user_name(at + strlen("candidate.cu"), file, a));
}

static void name_findings(json_t *findings, const char *file, struct arena *a)
{
    json_t *f;
    size_t i;

    json_array_foreach(findings, i, f) json_object_set_new(
        f, "file", json_string(user_name(json_string_or(f, "file", ""), file, a)));
}

static bool run_built(struct stage *st, const struct task *task, const struct build_result *build,
                      json_t *buffers, const struct simt_options *o, struct arena *a,
                      json_t *report, struct error *err)
{
    struct runner_config config = {.device = &st->device,
                                   .module = build->module_path,
                                   .buffers = st->work_dir,
                                   /* the shadow of a full check is as large as the buffers */
                                   .check =
                                       o->sample && !strcmp(o->check, "full") ? "memory" : o->check,
                                   .counters = true,
                                   .profile = o->profile,
                                   .sample = o->sample};
    struct runner_answer said = {0};
    struct modelled time = {0};
    struct runner *r = NULL;
    bool ok = false;

    if (!runner_start(&config, &r, err) || !runner_load(r, build, a, &said, err))
        goto done;
    if (said.verdict == VERDICT_PASS && !runner_bind(r, buffers, a, &said, err))
        goto done;
    if (said.verdict == VERDICT_PASS && !runner_run(r, false, a, &said, err))
        goto done;
    json_object_set_new(
        report, "outcome",
        json_string(said.verdict == VERDICT_PASS ? "ok" : verdict_names[said.verdict]));
    json_object_set_new(report, "text", json_string(user_name(said.text, o->file, a)));
    if (said.findings) {
        name_findings(said.findings, o->file, a);
        json_object_set(report, "findings", said.findings);
    }
    if (said.counters) {
        json_object_set(report, "counters", said.counters);
        for (size_t i = 0; i < json_array_size(said.counters); i++)
            name_findings(json_object_get(json_array_get(said.counters, i), "lines"), o->file, a);
        struct modelled_input in = {.gpu = gpu_find(st->device.models),
                                    .counters = said.counters,
                                    .resources = build->resources};

        if (!modelled_time(&in, &time, err))
            goto done;
        json_object_set_new(report, "time_us", json_number(time.time_us));
        json_object_set_new(report, "models", json_string(st->device.models));
        json_object_set_new(report, "unvalidated",
                            json_boolean(!modelled_validated(st->device.models)));
        json_object_set_new(report, "parts", time.parts);
    }
    json_object_set_new(report, "outputs", show_outputs(st, task, a));
    ok = true;
done:
    runner_answer_release(&said);
    runner_stop(r);
    return ok;
}

static bool is_folder(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool same_tensors(const json_t *judged, const struct tensor_info *given, int count,
                         const char *what, struct error *err)
{
    if (json_array_size(judged) != (size_t)count)
        return error_set(err, ERROR_USE, "it was judged with %zu %ss, %d are given",
                         json_array_size(judged), what, count);
    for (int i = 0; i < count; i++) {
        const json_t *t = json_array_get(judged, (size_t)i), *shape = json_object_get(t, "shape");
        int64_t here = 1, there = 1;

        for (int d = 0; d < given[i].dims; d++)
            here *= given[i].shape[d];
        for (size_t d = 0; d < json_array_size(shape); d++)
            there *= json_integer_value(json_array_get(shape, d));
        if (here != there || strcmp(given[i].dtype, json_string_or(t, "dtype", "")) != 0)
            return error_set(err, ERROR_USE, "%s %d was judged as %lld elements of %s", what, i,
                             (long long)there, json_string_or(t, "dtype", "?"));
    }
    return true;
}

/* An exported folder: its judged code, at the shapes it was judged with. */
static bool adopt(struct stage *st, const struct simt_options *o, const struct task *task,
                  struct arena *a, struct build_result *build, struct error *err)
{
    struct exported *from = arena_alloc(a, sizeof(*from));

    if (!stage_export_read(o->file, a, from, err))
        return false;
    if (from->device.kind != DEVICE_SIMT) {
        error_set(err, ERROR_USE, "%s was judged on %s: simt does not run its code", o->file,
                  from->device.name);
        return error_hint(err, "run its source: cutegen simt run %s/%s.cu ...", o->file,
                          from->name);
    }
    if (!stage_adopt(st, from, (size_t)o->number, a, build, err))
        return false;
    return same_tensors(json_object_get(build->launches, "inputs"), task->in, task->in_count,
                        "input", err) &&
           same_tensors(json_object_get(build->launches, "outputs"), task->out, task->out_count,
                        "output", err);
}

bool stage_simt_run(const struct settings *settings, const struct simt_options *options,
                    struct arena *a, json_t **report, struct error *err)
{
    struct settings own = *settings;
    struct candidate cand = {.attempt = 1, .change = ""};
    struct task task = {.name = path_stem(a, options->file)};
    struct build_result build = {0};
    json_t *buffers = json_object();
    struct stage *st = NULL;
    bool ok = false, folder = is_folder(options->file);

    own.device = "simt";
    own.model = "builtin"; /* no model is asked */
    *report = json_object();
    task.description = json_object();
    if (!folder && !file_read(options->file, MAX_SOURCE, a, &cand.source, err)) {
        err->kind = ERROR_USE;
        goto done;
    }
    /* No verdict here: a kernel may run whether it is written in CuTe or not. */
    own.target =
        folder || (!strstr(cand.source.data, "cute/") && !strstr(cand.source.data, "cutlass/"))
            ? LANGUAGE_CUDA
            : LANGUAGE_CUTE;
    if (!take_scalars(options, task.description, err) || !stage_open(&own, &st, err) ||
        !make_buffers(st, options, &task, a, buffers, err) ||
        !(folder ? adopt(st, options, &task, a, &build, err)
                 : stage_build(st, &task, &cand, a, &build, err)))
        goto done;
    if (build.verdict.kind != VERDICT_PASS) {
        json_object_set_new(*report, "verdict", json_string(verdict_names[build.verdict.kind]));
        json_object_set_new(*report, "text",
                            json_string(user_name(build.verdict.detail, options->file, a)));
        ok = true;
        goto done;
    }
    ok = run_built(st, &task, &build, buffers, options, a, *report, err) &&
         save_outputs(st, options, a, err);
done:
    stage_close(st);
    json_decref(buffers);
    json_decref(task.description);
    if (!ok) {
        json_decref(*report);
        *report = NULL;
    }
    return ok;
}
