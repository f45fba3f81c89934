/* SPDX-License-Identifier: Apache-2.0 */
/*
 * builder_main.c - cutegen-builder NVRTC [--version | --warm REQUEST] [--learn MS]
 *
 * Holds NVRTC and answers compile requests, one JSON line each, until its
 * input ends (docs/architecture.md, Builder). Bad source is an answer ("compiled": false with a
 * log); the client must survive whatever NVRTC does to this process on strange input. Sources and
 * code travel in the lines: the process is confined (confine/roles.c) and cannot access the
 * client's folders.
 *
 * Invariants
 * 1. The program name NVRTC sees and the options are the same for every
 *    request with the same arch, includes and defines: its automatic
 *    precompiled header is only found again then.
 * 2. Only NVRTC's precompiled headers are written, in TMPDIR.
 * 3. A plan ({"do": "plan"}) is compiled with its headers in memory and no
 *    folder to search; absolute names can still be opened if confinement allows them.
 * 4. After a compile of MS or longer, a second process precompiles that kernel (precompiler.h); the
 *    generated code is the same either way.
 */
#include "base/base64.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/text.h"
#include "base/vault.h"
#include "confine/confine.h"
#include "toolchain/builder_limits.h"
#include "toolchain/marked_header.h"
#include "toolchain/nvrtc_api.h"
#include "toolchain/pch_memory.h"
#include "toolchain/precompiler.h"
#include "toolchain/ptx.h"
#include "toolchain/source_halves.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_OPTIONS = 256 };
enum { NVRTC_OUT_OF_MEMORY = 1, NVRTC_COMPILATION = 6, NVRTC_INTERNAL_ERROR = 11 };
#define PROGRAM_NAME "candidate.cu"

struct options {
    const char *at[MAX_OPTIONS];
    int count;
};

/*
 * NVRTC opens its builtins by their bare name. Those of a wheel lie in no
 * folder the loader looks in; once loaded from beside NVRTC, the loader knows the name.
 */
static void nvrtc_open_builtins(const char *path, const struct nvrtc_api *api)
{
    const char *slash = strrchr(path, '/');
    char builtins[4096];
    int major, minor;

    if (!slash || api->version(&major, &minor) != 0)
        return;
    snprintf(builtins, sizeof(builtins), "%.*s/libnvrtc-builtins.so.%d.%d", (int)(slash - path),
             path, major, minor);
    dlopen(builtins, RTLD_NOW | RTLD_GLOBAL); /* a toolkit's NVRTC finds its own */
}

static bool nvrtc_open(const char *path, struct nvrtc_api *api, struct error *err)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        error_set(err, ERROR_MACHINE, "loading NVRTC: %s", dlerror());
        return error_hint(err, "run `make demo` once (it installs what is missing), or name a CUDA "
                               "toolkit: --cuda PATH");
    }
#define NVRTC_LOAD(member, symbol, required, type, parameters)                                     \
    *(void **)&api->member = dlsym(library, symbol);                                               \
    if (required && *(void **)&api->member == NULL)                                                \
        return error_set(err, ERROR_MACHINE, "%s has no %s: too old", path, symbol);
    NVRTC_FUNCTIONS(NVRTC_LOAD)
#undef NVRTC_LOAD
    nvrtc_open_builtins(path, api);
    return true;
}

static void add_option(struct options *o, const char *text)
{
    if (o->count == MAX_OPTIONS)
        BUG("more than %d compiler options", MAX_OPTIONS);
    o->at[o->count++] = text;
}

static bool add_list(struct options *o, const json_t *request, const char *key, const char *prefix,
                     struct arena *a, struct error *err)
{
    const json_t *list = json_object_get(request, key);
    if (json_array_size(list) > MAX_OPTIONS / 4)
        return error_set(err, ERROR_USE, "too many %s", key);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *value = json_string_value(json_array_get(list, i));
        if (value == NULL)
            return error_set(err, ERROR_USE, "%s[%zu] is not a string", key, i);
        add_option(o, arena_printf(a, "%s%s", prefix, value));
    }
    return true;
}

/* With a cubin wanted, compute_80 becomes sm_80: PTX comes out of both. */
static bool make_options(const json_t *request, const struct nvrtc_api *nvrtc, struct arena *a,
                         struct options *o, struct error *err)
{
    const char *arch;
    if (!json_get_string(request, "arch", &arch, err))
        return false;
    if (json_bool_or(request, "cubin", false) && strncmp(arch, "compute_", 8) == 0)
        arch = arena_printf(a, "sm_%s", arch + 8);
    add_option(o, arena_printf(a, "-arch=%s", arch));
    add_option(o, "-std=c++17");
    add_option(o, "-default-device"); /* CUTLASS has constexpr functions without a space */
    add_option(o, "-lineinfo");
    add_option(o, "--no-source-include");
    add_option(o, "-DCUTEGEN_DEVICE=1");
    if (strncmp(arch, "sm_", 3) == 0)
        add_option(o, "--ptxas-options=-v");
    if (nvrtc->pch_heap != NULL && !json_object_get(request, "mark"))
        add_option(o, "-pch");
    return add_list(o, request, "defines", "-D", a, err) &&
           add_list(o, request, "includes", "-I", a, err);
}

/* Lines about precompiled headers say nothing about the kernel. */
static struct text clean_log(const char *log, struct arena *a)
{
    struct text rest = text_of(log);
    char *out = arena_alloc(a, rest.len + 1);
    size_t n = 0;
    for (struct text line; text_next_whole_line(&rest, &line);)
        if (memmem(line.data, line.len, "precompiled header file", 23) == NULL) {
            memcpy(out + n, line.data, line.len);
            n += line.len;
        }
    return (struct text){out, n};
}

static char *read_log(const struct nvrtc_api *nvrtc, nvrtc_program p, struct arena *a)
{
    size_t size = 0;
    nvrtc->log_size(p, &size);
    char *log = arena_alloc(a, size + 1);
    if (size > 0)
        nvrtc->log(p, log);
    return log;
}

/* PTX that ptxas rejects is returned only if no cubin was requested. */
static struct text ptx_again(const struct nvrtc_api *nvrtc, struct text source,
                             const struct options *options, const json_t *names, struct arena *a)
{
    struct options o = {.count = 0};
    struct text ptx = {"", 0};
    nvrtc_program p = NULL;
    size_t size = 0;
    for (int i = 0; i < options->count; i++)
        if (strncmp(options->at[i], "-arch=sm_", 9) == 0)
            add_option(&o, arena_printf(a, "-arch=compute_%s", options->at[i] + 9));
        else if (strncmp(options->at[i], "--ptxas-options", 15) != 0)
            add_option(&o, options->at[i]);
    if (nvrtc->create(&p, source.data, PROGRAM_NAME, 0, NULL, NULL) != 0)
        return ptx;
    for (size_t i = 0; i < json_array_size(names); i++)
        nvrtc->add_name(p, json_string_value(json_array_get(names, i)));
    if (nvrtc->compile(p, o.count, o.at) == 0 && nvrtc->ptx_size(p, &size) == 0 && size > 0) {
        char *text = arena_alloc(a, size + 1);
        nvrtc->ptx(p, text);
        ptx = text_of(text);
    }
    nvrtc->destroy(&p);
    return ptx;
}

/* ptxas names lines of PTX that the user never sees: puts the candidate's lines before its own
 * words. */
static char *place_ptxas_errors(const char *log, struct text ptx, struct arena *a)
{
    static const char mark[] = "ptx input, line ";
    struct buf b = buf_init(1 << 20);
    char *out;
    for (const char *p = strstr(log, mark); p != NULL; p = strstr(p + 1, mark)) {
        int number = (int)strtol(p + strlen(mark), NULL, 10);
        int line = ptx_source_line(ptx, number, PROGRAM_NAME);
        struct text code = ptx_line(ptx, number);
        const char *colon = strstr(p, ": "), *end = strchr(p, '\n');
        if (line <= 0 || colon == NULL || (end != NULL && colon > end))
            continue;
        buf_printf(&b, "%s(%d): error: ptxas: %.*s in: %.*s\n\n", PROGRAM_NAME, line,
                   (int)(end ? end - colon - 2 : (long)strlen(colon + 2)), colon + 2, (int)code.len,
                   code.data);
    }
    buf_puts(&b, log);
    out = arena_strndup(a, b.data, b.len);
    buf_release(&b);
    return out;
}

/* Only the log shows whether precompiled headers were involved. */
static const char *pch_use(const char *log)
{
    return strstr(log, "using precompiled header")      ? "used"
           : strstr(log, "creating precompiled header") ? "made"
                                                        : "none";
}

static void put_log(const struct nvrtc_api *nvrtc, const char *log, int result, struct arena *a,
                    json_t *answer)
{
    struct text text = clean_log(log, a);

    if (text.len == 0 && result != 0)
        text = text_of(nvrtc->error_string(result));
    if (text.len > BUILDER_LOG_LIMIT)
        text.len = BUILDER_LOG_LIMIT;
    json_object_set_new(answer, "log", text.len ? json_from_text(text) : json_string(""));
}

/* Unbounded output is the source's fault. */
static void put_too_large(json_t *answer, const char *what)
{
    json_object_set_new(answer, "compiled", json_false());
    json_object_set_new(answer, "log",
                        json_sprintf("%s(1): error: more than %d MiB of %s\n", PROGRAM_NAME,
                                     BUILDER_CODE_LIMIT >> 20, what));
}

static bool read_ptx(const struct nvrtc_api *nvrtc, nvrtc_program p, struct arena *a,
                     struct text *out, struct error *err)
{
    size_t size = 0;
    char *code;

    if (nvrtc->ptx_size(p, &size) != 0 || size == 0)
        return error_set(err, ERROR_MACHINE, "NVRTC compiled, but gives no PTX");
    code = arena_alloc(a, size + 1);
    nvrtc->ptx(p, code);
    *out = text_of(code);
    return true;
}

static bool put_code(const struct nvrtc_api *nvrtc, nvrtc_program p, bool cubin, struct arena *a,
                     json_t *answer, struct error *err)
{
    struct text ptx;
    size_t size = 0;
    char *code, *letters;

    if (!read_ptx(nvrtc, p, a, &ptx, err))
        return false;
    ptx = ptx_strip(ptx, a);
    if (cubin && (nvrtc->cubin_size(p, &size) != 0 || size == 0))
        return error_set(err, ERROR_MACHINE, "NVRTC compiled, but gives no cubin");
    if (ptx.len > BUILDER_CODE_LIMIT || size > BUILDER_CODE_LIMIT) {
        put_too_large(answer, "code");
        return true;
    }
    json_object_set_new(answer, "ptx", json_from_text(ptx));
    if (!cubin)
        return true;
    code = arena_alloc(a, size);
    nvrtc->cubin(p, code);
    letters = arena_alloc(a, BASE64_ROOM(size));
    base64_encode(code, size, "+/", letters);
    json_object_set_new(answer, "cubin", json_string(letters));
    return true;
}

static json_t *lowered_names(const struct nvrtc_api *nvrtc, nvrtc_program p, const json_t *names)
{
    json_t *out = json_object();
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i)), *lowered = NULL;
        if (nvrtc->lowered_name(p, name, &lowered) == 0 && lowered != NULL)
            json_object_set_new(out, name, json_string(lowered));
    }
    return out;
}

/* An unknown option or a missing builtins library is not the candidate's fault. */
static bool about_source(int result)
{
    return result == 0 || result == NVRTC_COMPILATION || result == NVRTC_OUT_OF_MEMORY ||
           result == NVRTC_INTERNAL_ERROR;
}

/* `marked`: in place of CuTe's own header (marked_header.h), or NULL. */
static int create(const struct nvrtc_api *nvrtc, struct text source, const struct prelude *prelude,
                  const char *marked, nvrtc_program *p)
{
    const char *names[] = {prelude ? PRELUDE_NAME : MARKED_HEADER_NAME};
    const char *texts[] = {prelude ? prelude->header : marked};

    return nvrtc->create(p, source.data, PROGRAM_NAME, texts[0] ? 1 : 0, texts[0] ? texts : NULL,
                         texts[0] ? names : NULL);
}

/* Without a "source" nothing is returned: it is a warm-up. A failure caused by the prelude gives no
 * answer. */
static bool compile(const struct nvrtc_api *nvrtc, const json_t *request, struct text source,
                    const struct prelude *prelude, struct arena *a, json_t **answer,
                    struct error *err)
{
    const json_t *names = json_object_get(request, "names");
    struct options options = {.count = 0};
    const bool asked = json_object_get(request, "source") != NULL;
    const char *mark = json_string_or(request, "mark", NULL);
    const char *marked = mark ? marked_header(json_object_get(request, "includes"), mark, a) : NULL;
    int64_t begin = clock_ms();
    nvrtc_program p = NULL;
    bool ok = false;
    char *log;
    const char *pch;
    int result;

    if (mark && !marked) { /* an unknown version of CuTe's header */
        *answer = json_pack("{s:b, s:b}", "ok", 1, "compiled", 0);
        return true;
    }
    if (!make_options(request, nvrtc, a, &options, err))
        return false;
    if (prelude) {
        add_option(&options, arena_printf(a, "-pch-dir=%s", prelude->dir));
        add_option(&options, "-include=" PRELUDE_NAME);
    }
    if (create(nvrtc, source, prelude, marked, &p) != 0)
        return error_set(err, ERROR_MACHINE, "NVRTC makes no program");
    for (size_t i = 0; asked && i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        if (name != NULL)
            nvrtc->add_name(p, name);
    }
    result = nvrtc->compile(p, options.count, options.at);
    log = read_log(nvrtc, p, a);
    if (!about_source(result)) {
        error_set(err, ERROR_MACHINE, "NVRTC: %s: %.500s", nvrtc->error_string(result), log);
        error_hint(err,
                   "NVRTC may be too old, or not whole: run `make demo` once, or name another: "
                   "--cuda PATH");
        goto done;
    }
    if (result != 0 && prelude && (!asked || strstr(log, "cutegen_learned") != NULL)) {
        error_set(err, ERROR_MACHINE, "what was learned does not go with this source");
        goto done;
    }
    pch = pch_use(log);
    if (result != 0 && strstr(log, "ptx input, line") != NULL)
        log = place_ptxas_errors(log, ptx_again(nvrtc, source, &options, names, a), a);
    *answer = json_pack("{s:b, s:b, s:o, s:s, s:I}", "ok", 1, "compiled", result == 0, "names",
                        result == 0 && asked ? lowered_names(nvrtc, p, names) : json_object(),
                        "pch", pch, "ms", (json_int_t)(clock_ms() - begin));
    if (asked)
        put_log(nvrtc, log, result, a, *answer);
    ok = result != 0 || !asked ||
         put_code(nvrtc, p, json_bool_or(request, "cubin", false), a, *answer, err);
    if (!ok) {
        json_decref(*answer);
        *answer = NULL;
    }
done:
    nvrtc->destroy(&p);
    return ok;
}

/* ---- plans ------------------------------------------------------------------- */

/* Everything a plan may include is passed in memory; no folder is searched. */
static const char *const plan_headers[] = {"cutegen/kernel.h", "cutegen/arith.h", "cutegen/plan.h"};
static const char *const plan_shims[] = {"stdint.h", "cstdint", "stddef.h", "cstddef", "stdbool.h"};
enum { PLAN_HEADERS = ARRAY_LEN(plan_headers) + ARRAY_LEN(plan_shims), HEADER_LIMIT = 1 << 20 };

static bool create_plan(const struct nvrtc_api *nvrtc, struct text source, const char *include,
                        struct arena *a, nvrtc_program *p, struct error *err)
{
    const char *names[PLAN_HEADERS], *texts[PLAN_HEADERS];
    size_t n = 0;

    for (size_t i = 0; i < ARRAY_LEN(plan_headers); i++, n++) {
        struct text t;
        if (!file_read(path_join(a, include, plan_headers[i]), HEADER_LIMIT, a, &t, err))
            return false;
        names[n] = plan_headers[i];
        texts[n] = t.data;
    }
    for (size_t i = 0; i < ARRAY_LEN(plan_shims); i++, n++) {
        names[n] = plan_shims[i];
        texts[n] = ""; /* kernel.h has all of it */
    }
    if (nvrtc->create(p, source.data, PROGRAM_NAME, (int)n, texts, names) != 0)
        return error_set(err, ERROR_MACHINE, "NVRTC makes no program");
    return true;
}

/* Drops debug information, which is more than half of the text and comes last. */
static bool put_plan(const struct nvrtc_api *nvrtc, nvrtc_program p, struct arena *a,
                     json_t *answer, struct error *err)
{
    const char *sections;
    struct text ptx;

    if (!read_ptx(nvrtc, p, a, &ptx, err))
        return false;
    sections = strstr(ptx.data, "\n\t.section");
    if (sections)
        ptx.len = (size_t)(sections + 1 - ptx.data);
    if (ptx.len > BUILDER_CODE_LIMIT)
        put_too_large(answer, "code");
    else
        json_object_set_new(answer, "ptx", json_from_text(ptx));
    return true;
}

/*
 * -G takes half the time of optimised code and keeps line numbers exact; without fused
 * multiply-add, floats equal the exported plan's; every supported NVRTC knows compute_80, and a
 * plan is independent of the device.
 */
static bool compile_plan(const struct nvrtc_api *nvrtc, const json_t *request, struct text source,
                         struct arena *a, json_t **answer, struct error *err)
{
    static const char *const options[] = {
        "-arch=compute_80", "-std=c++17",          "-default-device",  "-G",
        "-fmad=false",      "--no-source-include", "-DCUTEGEN_HOST=1", "-w"};
    const char *include;
    int64_t begin = clock_ms();
    nvrtc_program p = NULL;
    bool ok = false;
    int result;

    if (!json_get_string(request, "include", &include, err) ||
        !create_plan(nvrtc, source, include, a, &p, err))
        return false;
    result = nvrtc->compile(p, (int)ARRAY_LEN(options), options);
    if (!about_source(result)) {
        error_set(err, ERROR_MACHINE, "NVRTC: %s: %.500s", nvrtc->error_string(result),
                  read_log(nvrtc, p, a));
        goto done;
    }
    *answer = json_pack("{s:b, s:b, s:I}", "ok", 1, "compiled", result == 0, "ms",
                        (json_int_t)(clock_ms() - begin));
    put_log(nvrtc, read_log(nvrtc, p, a), result, a, *answer);
    ok = result != 0 || put_plan(nvrtc, p, a, *answer, err);
    if (!ok) {
        json_decref(*answer);
        *answer = NULL;
    }
done:
    nvrtc->destroy(&p);
    return ok;
}

/* ---- requests ------------------------------------------------------------------ */

static const char usual[] = "#include <cutegen/kernel.h>\n#include <cute/tensor.hpp>\n"
                            "__global__ void cutegen_warm(float *x) { *x = 0; }\n";

/* The bytes of "source" as they were, whatever their encoding. */
static bool read_source(const json_t *request, struct arena *a, struct text *out, struct error *err)
{
    const char *letters;
    size_t chars, len;
    char *bytes;

    if (!json_get_string(request, "source", &letters, err))
        return false;
    chars = strlen(letters);
    bytes = arena_alloc(a, BASE64_BYTES(chars) + 1);
    if (!base64_decode(letters, chars, bytes, &len))
        return error_set(err, ERROR_USE, "the source of a request is not base64");
    if (len > BUILDER_SOURCE_LIMIT)
        return error_set(err, ERROR_USE, "a source of more than %d MiB",
                         BUILDER_SOURCE_LIMIT >> 20);
    bytes[len] = '\0';
    *out = (struct text){bytes, len};
    return true;
}

/* In the precompiler's process. */
static json_t *compile_learned(void *ctx, const json_t *request, const struct prelude *prelude,
                               struct arena *a)
{
    const bool asked = json_object_get(request, "source") != NULL;
    struct text source = text_of(arena_printf(a, "%s", usual));
    struct error ignored = {0};
    json_t *answer = NULL;

    if (asked && !read_source(request, a, &source, &ignored))
        return NULL;
    if (asked)
        source = halves_view(source, HALF_DEVICE, a);
    compile(ctx, request, source, prelude, a, &answer, &ignored);
    return answer;
}

/* Compiles a file with the usual includes, so that the first candidate finds them precompiled.
 * Failure does not matter. */
static void warm(const struct nvrtc_api *nvrtc, const char *request_line)
{
    struct arena *a = arena_new();
    struct error err = {0};
    json_t *request = NULL, *answer = NULL;
    if (json_parse(text_of(request_line), "the warm-up", &request, &err))
        compile(nvrtc, request, text_of(usual), NULL, a, &answer, &err);
    json_decref(request);
    json_decref(answer);
    arena_free(a);
}

static void put_answer(json_t *answer, struct arena *a)
{
    printf("%s\n", json_line(answer, a));
    fflush(stdout);
}

static bool is_do(const json_t *request, const char *what)
{
    return strcmp(json_string_or(request, "do", ""), what) == 0;
}

/* Answers one request; only then lets the precompiler see it. */
static void serve(struct nvrtc_api *nvrtc, struct precompiler *precompiler, struct text line,
                  struct arena *a)
{
    json_t *request = NULL, *answer = NULL;
    struct text source, device = {"", 0};
    struct error err = {0};
    bool plan = false;

    if (line.len > BUILDER_REQUEST_LIMIT)
        error_set(&err, ERROR_USE, "a request of %zu bytes", line.len);
    else if (json_parse(line, "the request", &request, &err) && is_do(request, "ready"))
        answer = json_pack("{s:b}", "ok", 1);
    else if (request && read_source(request, a, &source, &err)) {
        plan = is_do(request, "plan");
        device = halves_view(source, plan ? HALF_HOST : HALF_DEVICE, a);
        if (plan)
            compile_plan(nvrtc, request, device, a, &answer, &err);
        else if (json_object_get(request, "mark") ||
                 !precompiler_ask(precompiler, request, device, line, a, &answer))
            compile(nvrtc, request, device, NULL, a, &answer, &err);
    }
    if (answer == NULL)
        answer = json_error(&err);
    put_answer(answer, a);
    if (request && !plan && !json_object_get(request, "mark"))
        precompiler_see(precompiler, request, device, answer, compile_learned, nvrtc);
    json_decref(answer);
    json_decref(request);
}

static int serve_all(struct nvrtc_api *nvrtc, int learn_ms)
{
    struct precompiler *precompiler = precompiler_new(learn_ms);
    char *line = NULL;
    size_t cap = 0;
    ssize_t len;
    while ((len = getline(&line, &cap, stdin)) > 0) {
        struct arena *a = arena_new();
        serve(nvrtc, precompiler, (struct text){line, (size_t)len}, a);
        arena_free(a);
    }
    free(line);
    return 0;
}

int main(int argc, char **argv)
{
    struct nvrtc_api nvrtc = {0};
    struct error err = {0};
    int major = 0, minor = 0, learn_ms = 0;

    vault_private();
    if (argc < 2) {
        fprintf(stderr, "usage: cutegen-builder NVRTC [--version | --warm REQUEST] [--learn MS]\n");
        return 2;
    }
    if (!confine_seal(CONFINE_NO_EXEC, &err) || !nvrtc_open(argv[1], &nvrtc, &err)) {
        struct arena *a = arena_new();
        put_answer(json_error(&err), a);
        return 3;
    }
    if (argc == 3 && strcmp(argv[2], "--version") == 0) {
        nvrtc.version(&major, &minor);
        printf("{\"ok\": true, \"major\": %d, \"minor\": %d}\n", major, minor);
        return 0;
    }
    if (nvrtc.pch_heap != NULL)
        nvrtc.pch_heap(PCH_HEAP_BYTES);
    for (int i = 2; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--warm") == 0)
            warm(&nvrtc, argv[i + 1]);
        if (strcmp(argv[i], "--learn") == 0 && nvrtc.pch_heap != NULL)
            learn_ms = (int)strtol(argv[i + 1], NULL, 10);
    }
    return serve_all(&nvrtc, learn_ms);
}
