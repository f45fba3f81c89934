/* SPDX-License-Identifier: Apache-2.0 */
/*
 * builder.c - turn device code into PTX and cubin: the client side.
 *
 * Hides the builder process, its restarts, and the cache in front of it.
 *
 * Invariants
 * 1. After a late or dead process `child` is NULL, and the next compile starts
 *    a new one.
 * 2. If a process ended with the server that lent it, there is no verdict: the same request goes to
 *    a process of our own.
 * 3. The cache key covers everything that decides the result: the device half, names,
 *    arch, defines, the versions of NVRTC and CUTLASS, names and sizes of CUTLASS' headers,
 *    kernel.h's own text. Not their paths, so that a build of one machine is found on another.
 *    Timeouts are never cached.
 * 4. The process is confined and may be shared with other commands: it cannot access our folders.
 *    Source and code travel over the pipe; files are written here.
 */
#include "toolchain/builder.h"

#include "base/base64.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/kernel_name.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/shared.h"
#include "base/vault.h"
#include "confine/confine.h"
#include "toolchain/build_cache.h"
#include "toolchain/builder_limits.h"
#include "toolchain/diag.h"
#include "toolchain/plan.h"
#include "toolchain/ptx.h"
#include "toolchain/ptx_check.h"
#include "toolchain/ptx_cute.h"
#include "toolchain/source_halves.h"

#include <ctype.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum {
    KEPT_LIMIT = 1 << 20,
    LOG_LIMIT = 4 << 20,
    PTX_LIMIT = 64 << 20,
    WARM_MS = 200000, /* CPU time to get ready: longer means a broken machine, not a slow one */
    FIRST_MS = 20000, /* extra time for the first compile of a builder that was not warmed */
    WALL_FACTOR = 10, /* ratio of wall time to CPU time at which a compile counts as stuck */
    PRUNE_EVERY = 16,
    MAX_READ = 48
};
/* limit on address space, because sampling memory would cost CPU */
#define BUILDER_BYTES ((uint64_t)16 << 30)

static const char source_file[] = "candidate.cu", ptx_file[] = "kernel.ptx",
                  cubin_file[] = "kernel.cubin", log_file[] = "compile.log",
                  answer_file[] = "build.json", cute_file[] = "cute.json";
static const char *const kept_files[] = {ptx_file, cubin_file, log_file, answer_file};

struct builder {
    struct builder_config config;
    struct arena *a;
    char *program;
    char *warm_request; /* NULL: none */
    char *headers_hash; /* of include/cutegen */
    char *library_hash; /* identifies CUTLASS, wherever it is */
    struct child *child;
    bool warming; /* the process may still be precompiling: give it more time */
};

static json_t *include_list(const struct tools *t)
{
    json_t *list = json_array();
    struct arena *a = arena_new(); /* the process may have another working folder */
    for (int i = 0; t->includes[i] != NULL; i++)
        json_array_append_new(list, json_string(path_absolute(a, t->includes[i])));
    arena_free(a);
    return list;
}

static bool hash_headers(struct builder *b, struct error *err)
{
    static const char *const folders[2] = {"cute", "cutlass"};
    char hex[65];

    build_cache_library(b->config.tools->cutlass_include, folders, hex);
    b->library_hash = arena_strdup(b->a, hex);
    if (!build_cache_headers(b->config.tools->kernel_include, b->a, hex, err))
        return false;
    b->headers_hash = arena_strdup(b->a, hex);
    return true;
}

/* Must use the options of a real request, or the precompiled header is not found again. */
static char *warm_request(struct builder *b, const char *arch)
{
    json_t *r = json_pack("{s:s, s:[], s:o, s:[], s:b}", "arch", arch, "names", "includes",
                          include_list(b->config.tools), "defines", "cubin", 1);
    char *line = json_line(r, b->a);
    json_decref(r);
    return line;
}

/* ---- starting it --------------------------------------------------------------- */

struct readable {
    const char *at[MAX_READ + 1]; /* NULL-terminated */
    size_t count;
};

static void add_readable(struct readable *r, const char *path)
{
    if (r->count < MAX_READ)
        r->at[r->count++] = path;
}

/* NVRTC opens its own parts beside it. The whole folder is not allowed, since others may write
 * there. */
static void add_library(struct readable *r, const char *path, struct arena *a)
{
    size_t folder = (size_t)(path_base(path) - path);
    glob_t found;

    add_readable(r, path);
    if (glob(arena_printf(a, "%.*slibnvrtc*.so*", (int)folder, path), 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc; i++)
            add_readable(r, arena_strdup(a, found.gl_pathv[i]));
    globfree(&found);
}

/* It may read NVRTC and headers, and write only to its own folder. */
static void confine_builder(const struct builder *b, struct confine_policy *policy)
{
    const struct tools *t = b->config.tools;
    struct readable r = {.count = 0};
    struct confine_place place = {.program = b->program, .read = r.at};

    for (int i = 0; t->includes[i] != NULL; i++)
        add_readable(&r, path_absolute(b->a, t->includes[i]));
    add_readable(&r, path_absolute(b->a, t->kernel_include));
    add_library(&r, path_from_here(b->a, t->nvrtc), b->a);
    add_library(&r, path_absolute(b->a, t->nvrtc), b->a);
    confine_role(policy, ROLE_BUILDER, &place, b->a);
}

/* Only what the loader needs. */
static const char *const *environment(struct arena *a)
{
    static const char *const names[] = {"LD_LIBRARY_PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS"};
    const char **env = arena_array(a, ARRAY_LEN(names) + 2, sizeof *env);
    size_t n = 0;

    env[n++] = "LC_ALL=C";
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (getenv(names[i]))
            env[n++] = arena_printf(a, "%s=%s", names[i], getenv(names[i]));
    return env;
}

static bool start_child(struct builder *b, struct error *err)
{
    struct confine_policy policy;
    struct proc_cage cage;
    const char *argv[8] = {b->program, path_absolute(b->a, b->config.tools->nvrtc)};
    size_t n = 2;
    struct proc_spec spec = {.argv = argv,
                             .env = environment(b->a),
                             .clean_env = true,
                             .dir = "/",
                             .no_network = true,
                             .private_tmp = true, /* NVRTC's precompiled headers: hundreds of MB */
                             .output_limit = 64 << 10,
                             .address_limit_bytes = PROC_OWN_ADDRESS_LIMIT(BUILDER_BYTES)};
    if (b->config.learn_ms > 0) {
        argv[n++] = "--learn";
        argv[n++] = arena_printf(b->a, "%d", b->config.learn_ms);
    }
    if (b->warm_request) {
        argv[n++] = "--warm";
        argv[n++] = b->warm_request;
    }
    confine_builder(b, &policy);
    spec.cage = confine_cage(&policy, &cage);
    if (!child_obtain(b->config.source, "builder", NULL, &spec, &b->child, err))
        return error_add(err, "starting the builder");
    b->warming = true;
    return true;
}

bool builder_start(const struct builder_config *config, struct builder **out, struct error *err)
{
    struct builder *b = xmalloc(sizeof *b);
    b->config = *config;
    b->a = arena_new();
    if (!home_program("cutegen-builder", b->a, &b->program, err) || !hash_headers(b, err)) {
        builder_stop(b);
        return false;
    }
    if (!config->no_cache && getpid() % PRUNE_EVERY == 0)
        build_cache_prune(BUILD_CACHE_ENTRIES, b->a);
    if (config->warm_arch != NULL) {
        b->warm_request = warm_request(b, config->warm_arch);
        if (!start_child(b, err)) {
            builder_stop(b);
            return false;
        }
    }
    *out = b;
    return true;
}

const struct tools *builder_tools(const struct builder *b)
{
    return b->config.tools;
}

bool builder_caches(const struct builder *b)
{
    return !b->config.no_cache;
}

const struct shared_files *builder_share(const struct builder *b)
{
    return b->config.share;
}

const char *builder_headers(const struct builder *b)
{
    return b->headers_hash;
}

void builder_stop(struct builder *b)
{
    if (b == NULL)
        return;
    child_return(b->child); /* it answered every request (invariant 1) */
    arena_free(b->a);
    xfree(b);
}

/* ---- one compile ------------------------------------------------------------------- */

/* The device half with its line numbers; the plan may change without a new build. */
static struct text device_half(struct text source, struct arena *a)
{
    struct text view = halves_view(source, HALF_DEVICE, a);

    while (view.len > 0 && view.data[view.len - 1] == '\n')
        view.len--;
    return view;
}

static void cache_key(const struct builder *b, const struct build_request *req, struct arena *a,
                      char key[65])
{
    const struct tools *t = b->config.tools;
    struct hash h = hash_init();
    hash_add_text(&h, text_of("cutegen build 3 " CUTEGEN_VERSION));
    hash_add_text(&h, device_half(req->source, a));
    hash_add_text(&h, text_of(req->names ? json_line(req->names, a) : "[]"));
    hash_add_text(&h, text_of(req->arch));
    hash_add_text(&h, text_of(req->cubin ? "cubin" : "ptx"));
    hash_add_text(&h, text_of(t->nvrtc_version ? t->nvrtc_version : t->nvrtc));
    hash_add_text(&h, text_of(t->cutlass_version ? t->cutlass_version : ""));
    hash_add_text(&h, text_of(b->headers_hash));
    hash_add_text(&h, text_of(b->library_hash));
    for (int i = 0; req->defines && req->defines[i] != NULL; i++)
        hash_add_text(&h, text_of(req->defines[i]));
    hash_hex(&h, key);
}

const char *builder_source(struct text source, struct arena *a)
{
    char *letters = arena_alloc(a, BASE64_ROOM(source.len));

    base64_encode(source.data, source.len, "+/", letters);
    return letters;
}

static char *request_line(const struct builder *b, const struct build_request *req, struct arena *a)
{
    json_t *defines = json_array(), *r;
    char *line;
    for (int i = 0; req->defines && req->defines[i] != NULL; i++)
        json_array_append_new(defines, json_string(req->defines[i]));
    r = json_pack("{s:s, s:b, s:o, s:o}", "arch", req->arch, "cubin", (int)req->cubin, "includes",
                  include_list(b->config.tools), "defines", defines);
    json_object_set_new(r, "deadline_ms", json_integer(req->deadline_ms));
    json_object_set_new(r, "names", req->names ? json_deep_copy(req->names) : json_array());
    if (req->mark)
        json_object_set_new(r, "mark", json_string(req->mark));
    json_object_set_new(r, "source", json_string(builder_source(req->source, a)));
    line = json_line(r, a);
    json_decref(r);
    return line;
}

static void verdict_plain(struct verdict *v, enum verdict_kind kind, const char *summary,
                          const char *detail, const char *advice)
{
    memset(v, 0, sizeof *v);
    v->kind = kind;
    v->summary = summary;
    v->detail = detail;
    v->advice = advice;
}

static void verdict_late(const struct builder_question *q, struct arena *a, struct verdict *v)
{
    verdict_plain(
        v, VERDICT_COMPILE_TIMEOUT,
        arena_printf(a, "the compiler was stopped after %d s of CPU time", q->deadline_ms / 1000),
        "",
        "fewer or smaller template instantiations: large unrolled loops over static "
        "layouts take longest");
}

static bool in_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* A known bug of ptxas 13.0: it crashes on a variable of this name in kernels that use TMA. */
static bool has_fatal_name(struct text source)
{
    static const char word[] = "SMEM";
    size_t len = sizeof(word) - 1;

    for (size_t i = 0; i + len < source.len; i++)
        if (memcmp(source.data + i, word, len) == 0 && !in_name(source.data[i + len]) &&
            (i == 0 || !in_name(source.data[i - 1])))
            return true;
    return false;
}

static bool machine_answer(const json_t *answer, struct error *err)
{
    error_set(err, ERROR_MACHINE, "%s", json_string_or(answer, "text", "the builder failed"));
    if (*json_string_or(answer, "hint", "") != '\0')
        error_hint(err, "%s", json_string_or(answer, "hint", ""));
    return error_add(err, "building");
}

static bool ask_child(struct builder *b, const char *question, int cpu_ms, struct arena *a,
                      enum child_answer *how, struct text *line, struct error *err)
{
    struct child_limits limits = {.cpu_ms = cpu_ms};

    limits.wall_ms = cpu_ms < INT32_MAX / WALL_FACTOR ? WALL_FACTOR * cpu_ms : 0;
    if (child_ask_within(b->child, text_of(question), limits, BUILDER_ANSWER_LIMIT, a, how, line,
                         err))
        return true;
    child_stop(b->child);
    b->child = NULL;
    return error_add(err, "asking the builder");
}

static bool read_answer(struct text line, json_t **answer, struct error *err)
{
    if (!json_parse(line, "the builder's answer", answer, err))
        return false;
    if (json_bool_or(*answer, "ok", false))
        return true;
    machine_answer(*answer, err);
    json_decref(*answer);
    *answer = NULL;
    return false;
}

/* Waits until the process has finished precompiling, so that this does not count against a source's
 * deadline. A process that has ended is noticed by the request. */
static bool await_warm(struct builder *b, struct arena *a, struct error *err)
{
    enum child_answer how;
    struct text line;
    json_t *answer;

    if (!ask_child(b, "{\"do\": \"ready\"}", WARM_MS, a, &how, &line, err))
        return false;
    if (how == CHILD_LATE) {
        child_stop(b->child);
        b->child = NULL;
        return error_set(err, ERROR_MACHINE, "the builder was not ready after %d s of CPU time",
                         WARM_MS / 1000);
    }
    if (how == CHILD_ENDED)
        return true;
    if (!read_answer(line, &answer, err))
        return false;
    json_decref(answer);
    b->warming = false;
    return true;
}

bool builder_ask(struct builder *b, const struct builder_question *q, struct arena *a,
                 json_t **answer, struct verdict *v, struct error *err)
{
    enum child_answer how;
    struct text line, said;

    *answer = NULL;
    if (b->child == NULL && !start_child(b, err))
        return false;
    if (b->warming && b->warm_request && !await_warm(b, a, err))
        return false;
    if (!ask_child(b, q->line, q->deadline_ms + (b->warming ? FIRST_MS : 0), a, &how, &line, err))
        return false;
    if (how == CHILD_ENDED && child_lost(b->child)) {
        log_warn("the warm server ended; building without it");
        child_stop(b->child);
        b->child = NULL;
        b->config.source = NULL;
        return builder_ask(b, q, a, answer, v, err);
    }
    if (how == CHILD_LINE) {
        b->warming = false;
        if (!read_answer(line, answer, err))
            return false;
        log_debug("compiled in %d ms, precompiled header %s%s", (int)json_int_or(*answer, "ms", 0),
                  json_string_or(*answer, "pch", "not used"),
                  json_bool_or(*answer, "learned", false) ? ", from what was learned" : "");
        return true;
    }
    said = child_stderr(b->child, a);
    child_stop(b->child);
    b->child = NULL;
    if (how == CHILD_LATE) {
        verdict_late(q, a, v);
        return true;
    }
    verdict_plain(v, VERDICT_COMPILE_ERROR,
                  "the compiler crashed or ran out of memory on this source",
                  arena_strndup(a, said.data, said.len < 800 ? said.len : 800),
                  has_fatal_name(q->source)
                      ? "rename SMEM: ptxas falls over a variable of that name"
                      : "simplify the newest templates; very deep or very large instantiations "
                        "do this");
    return true;
}

/* A name reaches the compiler as an expression: it must be one (kernel_name.h). */
static bool names_allowed(const struct build_request *req, struct arena *a, struct verdict *v)
{
    for (size_t i = 0; i < json_array_size(req->names); i++) {
        const char *name = json_string_value(json_array_get(req->names, i)), *why;
        if (name != NULL && kernel_name_ok(name, &why))
            continue;
        verdict_plain(v, VERDICT_BAD_PLAN,
                      name ? arena_printf(a, "a kernel's name %s", why) : "a kernel without a name",
                      "", "launch kernels by the names they have in the file");
        return false;
    }
    return true;
}

/* Every name must be in the result, or the launch list cannot be executed. */
static bool names_whole(const struct build_request *req, const json_t *names, struct arena *a,
                        struct verdict *v)
{
    for (size_t i = 0; i < json_array_size(req->names); i++) {
        const char *name = json_string_value(json_array_get(req->names, i));
        if (json_object_get(names, name) != NULL)
            continue;
        verdict_plain(v, VERDICT_COMPILE_ERROR,
                      arena_printf(a, "no kernel came out for '%s', which the plan launches", name),
                      "", "the name in CUTEGEN_LAUNCH must be a __global__ function of this file");
        return false;
    }
    return true;
}

/* ---- CuTe -------------------------------------------------------------------------- */

static struct cute_use count_cute(const struct builder *b, struct text ptx, const char *mark,
                                  struct arena *a)
{
    const char *const *given = b->config.tools->includes;
    const char **includes;
    size_t n = 0;

    while (given[n])
        n++;
    includes = arena_array(a, n + 1, sizeof *includes);
    for (size_t i = 0; i < n; i++)
        includes[i] = path_absolute(a, given[i]);
    return ptx_cute_use(ptx, includes, mark, a);
}

/* Compiles again with CuTe's accesses marked, so that moved lines do not matter. If that fails *use
 * is unchanged and decides. */
static bool count_marked(struct builder *b, const struct build_request *asked, struct arena *a,
                         struct cute_use *use, struct verdict *v, struct error *err)
{
    struct build_request req = *asked;
    struct builder_question question;
    json_t *answer = NULL;
    unsigned char raw[16];
    char *mark = arena_alloc(a, 2 * sizeof raw + 1);
    bool ok;

    if (getrandom(raw, sizeof raw, 0) != (ssize_t)sizeof raw)
        return error_set(err, ERROR_MACHINE, "the system gives no random bytes");
    for (size_t i = 0; i < sizeof raw; i++)
        snprintf(mark + 2 * i, 3, "%02x", raw[i]);
    req.mark = mark;
    req.cubin = false;
    question = (struct builder_question){request_line(b, &req, a), req.source, req.deadline_ms};
    ok = builder_ask(b, &question, a, &answer, v, err);
    if (ok && json_bool_or(answer, "compiled", false)) {
        *use = count_cute(b, text_of(json_string_or(answer, "ptx", "")), mark, a);
    } else if (ok)
        log_info("CuTe's accesses could not be marked; line information decides");
    json_decref(answer);
    return ok;
}

static void refuse_fake(const struct cute_use *use, struct arena *a, struct verdict *v)
{
    verdict_plain(v, VERDICT_REFUSED,
                  arena_printf(a,
                               "%s: CuTe is included but does not index global memory: in the "
                               "compiled code %d of %d accesses go through it, and %d of %d stores",
                               source_file, use->through, use->accesses, use->stores_through,
                               use->stores),
                  "An access counts when it or its address comes from a header of CuTe.\n",
                  "index global memory through CuTe tensors: make_tensor(make_gmem_ptr(y), ...), "
                  "then gY(i) = v or copy(...)");
    v->findings[0] =
        (struct finding){.kind = "fake CuTe", .where = source_file, .line = "", .text = v->summary};
    v->finding_count = 1;
}

/* Reads the counts made when the code was built. Its line information has that machine's paths:
 * counted again elsewhere, no access would be in CuTe, and all would be compiled again. */
static bool find_counts(const struct builder *b, const struct build_request *req, const char *key,
                        struct arena *a, struct cute_use *use)
{
    const char *kept[] = {cute_file};
    struct error ignored = {0};
    struct text line;
    json_t *counts = NULL;

    if (b->config.no_cache ||
        !build_cache_find(b->config.share, key, req->work_dir, kept, ARRAY_LEN(kept), a) ||
        !file_read(path_join(a, req->work_dir, cute_file), KEPT_LIMIT, a, &line, &ignored) ||
        !json_parse(line, "counts", &counts, &ignored))
        return false;
    *use = (struct cute_use){.accesses = (int)json_int_or(counts, "accesses", 0),
                             .through = (int)json_int_or(counts, "through", 0),
                             .stores = (int)json_int_or(counts, "stores", 0),
                             .stores_through = (int)json_int_or(counts, "stores_through", 0)};
    json_decref(counts);
    return true;
}

static void keep_counts(const struct builder *b, const struct build_request *req, const char *key,
                        const struct cute_use *use, struct arena *a)
{
    const char *kept[] = {cute_file};
    struct error ignored = {0};
    json_t *counts =
        json_pack("{s:i, s:i, s:i, s:i}", "accesses", use->accesses, "through", use->through,
                  "stores", use->stores, "stores_through", use->stores_through);

    if (!b->config.no_cache &&
        file_write(path_join(a, req->work_dir, cute_file), text_of(json_line(counts, a)), &ignored))
        build_cache_add(b->config.share, key, req->work_dir, kept, ARRAY_LEN(kept), a);
    json_decref(counts);
}

/* Is CuTe really used, or only included? The counts are stored beside the code. */
static bool check_cute(struct builder *b, const struct build_request *req, const char *key,
                       struct arena *a, struct build_result *out, struct error *err)
{
    char counts_key[65];
    struct cute_use use;
    struct text ptx;

    hash_text(text_of(arena_printf(a, "%s cute", key)), counts_key);
    if (!find_counts(b, req, counts_key, a, &use)) {
        if (!file_read(out->ptx_path, PTX_LIMIT, a, &ptx, err))
            return false;
        use = count_cute(b, ptx, NULL, a);
        if (!ptx_cute_enough(&use) && !count_marked(b, req, a, &use, &out->verdict, err))
            return false;
        if (out->verdict.kind != VERDICT_PASS)
            return true;
        keep_counts(b, req, counts_key, &use, a);
    }
    if (!ptx_cute_enough(&use))
        refuse_fake(&use, a, &out->verdict);
    return true;
}

/* Checks the PTX itself; false: the verdict says what is wrong. */
static bool code_passes(const struct build_request *req, struct text ptx, const json_t *names,
                        struct arena *a, struct verdict *v)
{
    const struct ptx_subject subject = {.ptx = ptx, .source = req->source, .name = source_file};
    return ptx_check_state(&subject, a, v) &&
           (req->launches == NULL || ptx_check_launches(&subject, names, req->launches, a, v));
}

static bool write_cubin(const char *path, const json_t *letters, struct arena *a, struct error *err)
{
    size_t chars = json_string_length(letters), len = 0;
    char *bytes = arena_alloc(a, BASE64_BYTES(chars) + 1);

    if (chars == 0 || !base64_decode(json_string_value(letters), chars, bytes, &len))
        return error_set(err, ERROR_MACHINE, "the builder's answer has no cubin");
    return file_write(path, (struct text){bytes, len}, err);
}

/* Writes the files that the process may not write, and removes them from the answer. */
static bool write_files(const struct build_request *req, json_t *answer, struct arena *a,
                        struct error *err)
{
    bool compiled = json_bool_or(answer, "compiled", false);
    const char *ptx = json_string_or(answer, "ptx", "");
    bool ok = file_write(path_join(a, req->work_dir, log_file),
                         text_of(json_string_or(answer, "log", "")), err);

    if (ok && compiled && *ptx == '\0')
        ok = error_set(err, ERROR_MACHINE, "the builder's answer has no PTX");
    if (ok && compiled)
        ok = file_write(path_join(a, req->work_dir, ptx_file), text_of(ptx), err);
    if (ok && compiled && req->cubin)
        ok = write_cubin(path_join(a, req->work_dir, cubin_file), json_object_get(answer, "cubin"),
                         a, err);
    json_object_del(answer, "log");
    json_object_del(answer, "ptx");
    json_object_del(answer, "cubin");
    return ok || error_add(err, "building");
}

static bool take_answer(const struct build_request *req, const json_t *answer, struct arena *a,
                        struct build_result *out, struct error *err)
{
    struct text log, ptx;
    out->log_path = path_join(a, req->work_dir, log_file);
    if (!file_read(out->log_path, LOG_LIMIT, a, &log, err))
        return error_add(err, "building");
    log = vault_scrub(log, a); /* it quotes whatever the source includes */
    if (!json_bool_or(answer, "compiled", false)) {
        diag_compile_error(log, req->source, source_file, a, &out->verdict);
        return true;
    }
    out->names = json_incref(json_object_get(answer, "names"));
    if (!names_whole(req, out->names, a, &out->verdict))
        return true;
    out->resources = ptx_resources(log);
    out->ptx_path = path_join(a, req->work_dir, ptx_file);
    out->cubin_path = req->cubin ? path_join(a, req->work_dir, cubin_file) : NULL;
    out->module_path = out->cubin_path;
    if (!file_read(out->ptx_path, PTX_LIMIT, a, &ptx, err))
        return error_add(err, "building");
    if (!code_passes(req, ptx, out->names, a, &out->verdict))
        return true;
    verdict_plain(&out->verdict, VERDICT_PASS, "built", "", NULL);
    return true;
}

/* The answer is stored beside the code, so that a cache hit gives the same result as a build. */
static bool fetch_answer(const struct builder *b, const struct build_request *req, const char *key,
                         struct arena *a, json_t **answer)
{
    struct error ignored = {0};
    struct text line;
    return build_cache_find(b->config.share, key, req->work_dir, kept_files, ARRAY_LEN(kept_files),
                            a) &&
           file_read(path_join(a, req->work_dir, answer_file), KEPT_LIMIT, a, &line, &ignored) &&
           json_parse(line, "a cached build", answer, &ignored);
}

/* Lets other machines compile it, if configured and available. */
static bool made_elsewhere(const struct builder *b, const struct build_request *req,
                           const char *key, struct arena *a)
{
    const struct shared_files *share = b->config.share;
    json_t *r;
    bool made;

    if (!req->cubin || req->mark || req->defines)
        return false; /* not needed for a judgement */
    r = json_pack("{s:s, s:s, s:O?, s:b}", "key", key, "arch", req->arch, "names", req->names,
                  "cute", (int)req->cute);
    made = share->make(share->ctx, key, req->source, json_line(r, a));
    json_decref(r);
    return made;
}

static void keep_answer(const struct builder *b, const struct build_request *req, const char *key,
                        const json_t *answer, struct arena *a)
{
    struct error ignored = {0};
    if (file_write(path_join(a, req->work_dir, answer_file), text_of(json_line(answer, a)),
                   &ignored))
        build_cache_add(b->config.share, key, req->work_dir, kept_files, ARRAY_LEN(kept_files), a);
}

bool builder_compile(struct builder *b, const struct build_request *asked, struct arena *a,
                     struct build_result *out, struct error *err)
{
    int64_t begin = clock_ms();
    json_t *answer = NULL, *names = asked->launches ? plan_kernel_names(asked->launches) : NULL;
    struct build_request whole = *asked, *req = &whole;
    bool ok = false;
    char key[65];

    if (names != NULL)
        whole.names = names;

    out->work_dir = req->work_dir;
    out->ptx_path = out->cubin_path = out->log_path = out->module_path = NULL;
    out->names = out->resources = NULL;
    if (!names_allowed(req, a, &out->verdict)) {
        ok = true;
        goto done;
    }
    cache_key(b, req, a, key);
    out->cached = !b->config.no_cache &&
                  (fetch_answer(b, req, key, a, &answer) ||
                   (b->config.share && b->config.share->make && made_elsewhere(b, req, key, a) &&
                    fetch_answer(b, req, key, a, &answer)));
    if (!out->cached) {
        const struct builder_question question = {request_line(b, req, a), req->source,
                                                  req->deadline_ms};
        if (!builder_ask(b, &question, a, &answer, &out->verdict, err) ||
            (answer != NULL && !write_files(req, answer, a, err)))
            goto done;
        if (answer != NULL && !b->config.no_cache)
            keep_answer(b, req, key, answer, a);
    }
    ok = answer == NULL || take_answer(req, answer, a, out, err);
    if (ok && answer != NULL && req->cute && out->verdict.kind == VERDICT_PASS)
        ok = check_cute(b, req, key, a, out, err);
    if (ok && req->name != NULL && strcmp(path_base(req->name), source_file) != 0)
        diag_rename(&out->verdict, source_file, path_base(req->name), a);
done:
    out->build_ms = (int)(clock_ms() - begin);
    json_decref(answer);
    json_decref(names);
    return ok;
}
