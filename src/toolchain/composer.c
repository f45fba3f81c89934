/* SPDX-License-Identifier: Apache-2.0 */
/*
 * composer.c - a candidate in Python: its file to PTX, cubin and launch list; see composer.h.
 *
 * Invariants
 * 1. What is run is what was checked: kernel.ptx is written here from the answer, inspected, and
 *    the cubin is made from that file by a process that no foreign code was in.
 * 2. The cache key covers all that decides the result: source, sizes, device, the versions of
 *    the language and ptxas, the guest's own text. What failed is not kept.
 */
#include "toolchain/composer.h"

#include "base/clock.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/proc.h"
#include "base/text.h"
#include "base/vault.h"
#include "confine/confine.h"
#include "toolchain/build_cache.h"
#include "toolchain/diag.h"
#include "toolchain/launch_list.h"
#include "toolchain/plan.h"
#include "toolchain/ptx.h"
#include "toolchain/ptx_check.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    FIND_MS = 120000, /* a Python that starts; a slow disk is not a missing package */
    WALL_FACTOR = 10,
    ANSWER_LIMIT = 48 << 20,
    KEPT_LIMIT = 4 << 20,
    LOG_LIMIT = 1 << 20,
    CUBIN_LIMIT = 64 << 20,
    PTX_LIMIT = 32 << 20,
    DISK_BYTES = 1 << 30,
    SCRIPT_LIMIT = 1 << 20,
    DEFAULT_PTX = 87,
};

static const char ptx_file[] = "kernel.ptx", cubin_file[] = "kernel.cubin",
                  log_file[] = "compile.log", answer_file[] = "build.json";
static const char *const kept_files[] = {ptx_file, cubin_file, log_file, answer_file};
static const char *const scripts[] = {"oracle/plan_guest.py", "oracle/plan_objects.py",
                                      "oracle/plan_ptx.py", "oracle/plan_launch.py"};

/* What differs between the languages. */
static const struct composing {
    const char *package, *distributions; /* what is imported; names it is installed by */
    const char *script;                  /* of the guest */
    const char *setting;                 /* names the Python */
} composings[LANGUAGE_COUNT] = {
    [LANGUAGE_TRITON] = {"triton", "triton pytorch-triton triton-nightly", "oracle/plan_triton.py",
                         "--python"},
    [LANGUAGE_CUTEDSL] = {"nvidia_cutlass_dsl", "nvidia-cutlass-dsl", "oracle/plan_cutedsl.py",
                          "--dsl-python"},
};

static void verdict_set(struct verdict *v, enum verdict_kind kind, const char *summary,
                        const char *detail, const char *advice)
{
    *v = (struct verdict){.kind = kind, .summary = summary, .detail = detail, .advice = advice};
}

/* ---- what is installed --------------------------------------------------------------- */

/* Finds a language without importing it: its package, then its distributions' names. */
static const char find_script[] =
    "import importlib.metadata as m, importlib.util as u, json, os, sys\n"
    "spec = u.find_spec(sys.argv[1])\n"
    "root = list(spec.submodule_search_locations)[0] if spec else ''\n"
    "names = [n for n in sys.argv[2].split() if root]\n"
    "def version(n):\n"
    "    try: return m.version(n)\n"
    "    except Exception: return ''\n"
    "said = [v for v in map(version, names) if v]\n"
    "p = os.path.join(root, 'backends', 'nvidia', 'bin', 'ptxas')\n"
    "print(json.dumps({'root': root, 'version': (said or [''])[0],\n"
    "                  'ptxas': p if root and os.access(p, os.X_OK) else ''}))\n";

static bool missing(const struct composer *t, struct error *err)
{
    const char *names = composings[t->language].distributions;

    error_set(err, ERROR_MACHINE, "%s has no %s, which these kernels are written in", t->python,
              languages[t->language].name);
    return error_hint(err, "%s -m pip install %.*s, or name a Python that has it (%s)", t->python,
                      (int)strcspn(names, " "), names, composings[t->language].setting);
}

/* "Cuda compilation tools, release 12.8, V12.8.93" */
static const char *ptxas_version(const char *ptxas, struct arena *a)
{
    const char *argv[] = {ptxas, "--version", NULL}, *at;
    struct proc_spec spec = {.argv = argv, .deadline_ms = FIND_MS};
    struct error ignored = {0};
    struct proc_result r;
    int major, minor;

    if (!proc_run(&spec, a, &r, &ignored) || r.end != PROC_EXITED || r.code != 0)
        return NULL;
    at = strstr(r.out.data, "release ");
    return at && sscanf(at, "release %d.%d", &major, &minor) == 2
               ? arena_printf(a, "%d.%d", major, minor)
               : NULL;
}

bool composer_find(enum language language, const char *python, const struct tools *tools,
                   struct arena *a, struct composer *out, struct error *err)
{
    const struct composing *how = &composings[language];
    const char *argv[] = {python, "-I", "-B", "-c", find_script, how->package, how->distributions,
                          NULL};
    struct proc_spec spec = {.argv = argv, .deadline_ms = FIND_MS};
    struct error bad = {0};
    struct proc_result r;
    json_t *said = NULL;

    *out = (struct composer){.language = language, .python = python};
    if (!proc_run(&spec, a, &r, err))
        return error_add(err, "looking for %s", languages[language].words);
    if (r.end != PROC_EXITED || r.code != 0 || !json_parse(r.out, "Python", &said, &bad)) {
        error_set(err, ERROR_MACHINE, "%s cannot say whether it has %s (%s): %.300s", python,
                  languages[language].words, proc_end_text(&r, a), r.err.data);
        return error_hint(err, "is this a Python of 3.9 or later? %s names another", how->setting);
    }
    json_own(a, said);
    if (*json_string_or(said, "root", "") == '\0')
        return missing(out, err);
    out->version = json_string_or(said, "version", "");
    out->ptxas = json_string_or(said, "ptxas", "");
    if (*out->ptxas == '\0')
        out->ptxas = tools->ptxas;
    out->ptxas_version = out->ptxas ? ptxas_version(out->ptxas, a) : NULL;
    if (!out->ptxas_version)
        out->ptxas = NULL;
    return true;
}

/* The newest PTX that this ptxas takes: 12.8 -> 8.7, 13.0 -> 9.0. */
static int ptx_version(const struct composer *t)
{
    int major = 0, minor = 0;

    if (!t->ptxas_version || sscanf(t->ptxas_version, "%d.%d", &major, &minor) != 2)
        return DEFAULT_PTX;
    if (major == 12)
        return minor < 6 ? 80 + minor : 79 + minor;
    return major >= 13 ? 90 + 10 * (major - 13) + minor : DEFAULT_PTX;
}

/* ---- asking the guest ------------------------------------------------------------------ */

static bool cache_key(const struct composer *t, const char *request, struct text source,
                      struct arena *a, char key[65], struct error *err)
{
    struct hash h = hash_init();

    hash_add_text(&h, text_of("cutegen composer 2 " CUTEGEN_VERSION));
    hash_add_text(&h, source);
    hash_add_text(&h, text_of(request));
    hash_add_text(&h, text_of(t->version));
    hash_add_text(&h, text_of(t->ptxas_version ? t->ptxas_version : "none"));
    for (size_t i = 0; i <= ARRAY_LEN(scripts); i++) {
        const char *name = i < ARRAY_LEN(scripts) ? scripts[i] : composings[t->language].script;
        struct text script;
        char *path;

        if (!home_data(name, a, &path, err) || !file_read(path, SCRIPT_LIMIT, a, &script, err))
            return false;
        hash_add_text(&h, script);
    }
    hash_hex(&h, key);
    return true;
}

static const char *const *environment(struct arena *a)
{
    const char **env = arena_array(a, 4, sizeof *env);
    size_t n = 0;

    env[n++] = "LC_ALL=C";
    env[n++] = "USER=guest";
    if (getenv("LD_LIBRARY_PATH"))
        env[n++] = arena_printf(a, "LD_LIBRARY_PATH=%s", getenv("LD_LIBRARY_PATH"));
    return env;
}

/* It reads Python, its own scripts and the candidate's copy; it writes its answer. */
static bool run_guest(const struct composer *t, const struct composer_request *req,
                      const char *module, const char *line, struct arena *a, struct proc_result *r,
                      struct error *err)
{
    char *script;
    const char *argv[] = {t->python, "-I", "-B", "-u", NULL, NULL};
    const char *read[] = {NULL, module, NULL};
    struct confine_place place = {.program = path_find_program(a, t->python), .read = read};
    struct confine_policy policy;
    struct proc_cage cage;
    struct proc_spec spec = {.argv = argv,
                             .env = environment(a),
                             .clean_env = true,
                             .no_network = true,
                             .private_tmp = true,
                             .dir = "/",
                             .input = text_of(arena_printf(a, "%s\n", line)),
                             .deadline_ms = req->deadline_ms < INT32_MAX / WALL_FACTOR
                                                ? WALL_FACTOR * req->deadline_ms
                                                : 0,
                             .cpu_limit_s = req->deadline_ms / 1000,
                             .output_limit = ANSWER_LIMIT,
                             .resident_limit_bytes = confine_memory(ROLE_COMPOSER),
                             .disk_limit_bytes = DISK_BYTES};

    if (!home_data(scripts[0], a, &script, err))
        return false;
    argv[4] = path_from_here(a, script);
    read[0] = arena_strndup(a, argv[4], (size_t)(path_base(argv[4]) - argv[4]));
    confine_role(&policy, ROLE_COMPOSER, &place, a);
    spec.cage = confine_cage(&policy, &cage);
    return proc_run(&spec, a, r, err);
}

/* The guest ended without an answer. */
static void ended(const struct proc_result *r, const struct composer_request *req, struct arena *a,
                  struct verdict *v)
{
    if (r->end == PROC_DEADLINE || proc_out_of_cpu(r)) {
        verdict_set(v, VERDICT_COMPILE_TIMEOUT,
                    arena_printf(a, "importing, planning and compiling was stopped after %d s",
                                 req->deadline_ms / 1000),
                    "",
                    "smaller blocks and fewer unrolled loops compile faster; a file does no "
                    "work when it is imported");
        return;
    }
    verdict_set(v, VERDICT_BAD_PLAN,
                arena_printf(a, "the plan ended without an answer: %s", proc_end_text(r, a)),
                vault_scrub(r->err.len > 1500 ? (struct text){r->err.data, 1500} : r->err, a).data,
                "a plan only computes sizes and launches kernels; it has no data, no files and no "
                "network");
}

/* The guest says why not. */
static void refused(const json_t *said, const struct composer_request *req, struct arena *a,
                    struct verdict *v)
{
    static const struct {
        const char *kind;
        enum verdict_kind verdict;
    } kinds[] = {{"plan", VERDICT_BAD_PLAN},
                 {"launch", VERDICT_BAD_LAUNCH},
                 {"compile", VERDICT_COMPILE_ERROR}};
    const char *kind = json_string_or(said, "kind", "plan");
    const char *text = arena_strdup(a, json_string_or(said, "text", "the plan failed"));
    int line = (int)json_int_or(said, "line", 0);
    enum verdict_kind found = VERDICT_BAD_PLAN;

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (!strcmp(kind, kinds[i].kind))
            found = kinds[i].verdict;
    verdict_set(v, found, text, text, NULL);
    if (line <= 0)
        return;
    v->findings[0] = (struct finding){.kind = verdict_names[found],
                                      .where = arena_printf(a, "%s:%d", COMPOSER_SOURCE_NAME, line),
                                      .line = diag_source_line(req->source, line, a),
                                      .text = text};
    v->finding_count = 1;
    v->summary = arena_printf(a, "%s: %s", v->findings[0].where, text);
    v->detail =
        arena_printf(a, "%s: %s\n    %s\n", v->findings[0].where, text, v->findings[0].line);
}

/* ---- its answer ------------------------------------------------------------------------- */

static bool is_identifier(const char *name)
{
    for (const char *p = name; *p; p++)
        if (!(isalnum((unsigned char)*p) || *p == '_' || *p == '$'))
            return false;
    return *name && !isdigit((unsigned char)*name);
}

/* Kernels have the same name in the list and in the module. New reference. */
static json_t *names_of(const json_t *launches, struct verdict *v)
{
    json_t *list = plan_kernel_names(launches), *names = json_object();

    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));

        if (!is_identifier(name))
            verdict_set(v, VERDICT_BAD_PLAN, "a kernel's name is not one of PTX", "", NULL);
        json_object_set_new(names, name, json_string(name));
    }
    json_decref(list);
    return names;
}

static bool take_answer(const json_t *said, const struct composer_request *req, struct arena *a,
                        struct build_result *out, struct error *err)
{
    const struct launch_subject subject = {.in_count = req->task->in_count,
                                           .out_count = req->task->out_count,
                                           .source = req->source,
                                           .name = COMPOSER_SOURCE_NAME};
    const char *ptx = json_string_or(said, "ptx", "");
    struct ptx_subject code = {
        .ptx = text_of(ptx), .source = req->source, .name = COMPOSER_SOURCE_NAME};

    if (*ptx == '\0' || code.ptx.len > PTX_LIMIT) {
        verdict_set(&out->verdict, VERDICT_BAD_PLAN, "the plan gave no PTX, or too much", "", NULL);
        return true;
    }
    if (!launch_list_take(json_object_get(said, "launches"), &subject, a, &out->launches,
                          &out->verdict))
        return true;
    out->names = names_of(out->launches, &out->verdict);
    if (out->verdict.kind == VERDICT_PASS && ptx_check_module(&code, a, &out->verdict) &&
        ptx_check_state(&code, a, &out->verdict) &&
        !ptx_check_launches(&code, out->names, out->launches, a, &out->verdict))
        out->verdict.advice = "pass the kernel what its parameters want; constexpr arguments by "
                              "name";
    out->ptx_path = path_join(a, req->work_dir, ptx_file);
    return file_write(out->ptx_path, code.ptx, err);
}

/* ---- ptxas ------------------------------------------------------------------------------ */

/* "compute_80", "sm_90a" -> "sm_80", "sm_90a": from Hopper on code is for one GPU. */
static const char *gpu_name(const struct device *device, struct arena *a)
{
    const char *number = strchr(device->arch, '_');
    int n = number ? (int)strtol(number + 1, NULL, 10) : 80;

    return arena_printf(a, "sm_%d%s", n, n >= 90 ? "a" : "");
}

/* "ptxas /w/kernel.ptx, line 35; error   : Unknown instruction ..." */
static void ptxas_verdict(struct text log, const struct composer_request *req, struct text ptx,
                          struct arena *a, struct verdict *v)
{
    const char *said = arena_strndup(a, log.data, log.len < 1500 ? log.len : 1500);
    const char *error = strstr(said, "error"), *at = strstr(said, ", line ");
    int number = at ? (int)strtol(at + 7, NULL, 10) : 0;
    int line = ptx_source_line(ptx, number, COMPOSER_SOURCE_NAME);
    const char *text = arena_printf(a, "ptxas: %.*s", error ? (int)strcspn(error, "\n") : 40,
                                    error ? error : "rejects the PTX of this kernel");

    verdict_set(v, VERDICT_COMPILE_ERROR, text, said,
                strstr(text, "Unsupported .version")
                    ? "the compiler of this language is newer than ptxas: --cuda names a newer "
                      "toolkit"
                    : NULL);
    if (line > 0) {
        v->findings[0] =
            (struct finding){.kind = "compile error",
                             .where = arena_printf(a, "%s:%d", COMPOSER_SOURCE_NAME, line),
                             .line = diag_source_line(req->source, line, a),
                             .text = text};
        v->finding_count = 1;
    }
}

/* A plain file, or it is not taken. */
static bool is_plain(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1;
}

static bool run_ptxas(const struct composer *t, const struct composer_request *req,
                      const char *folder, const char *made, const char *ptx_path, struct arena *a,
                      struct proc_result *r, struct error *err)
{
    const char *argv[] = {t->ptxas,
                          "-v",
                          "-lineinfo",
                          arena_printf(a, "-arch=%s", gpu_name(req->device, a)),
                          path_from_here(a, ptx_path),
                          "-o",
                          path_from_here(a, made),
                          NULL};
    const char *const read[] = {argv[4], NULL}, *const env[] = {"LC_ALL=C", NULL};
    struct confine_place place = {.program = t->ptxas, .read = read, .work = folder};
    struct confine_policy policy;
    struct proc_cage cage;
    struct proc_spec spec = {.argv = argv,
                             .env = env,
                             .clean_env = true,
                             .no_network = true,
                             .private_tmp = true,
                             .deadline_ms = req->deadline_ms < INT32_MAX / WALL_FACTOR
                                                ? WALL_FACTOR * req->deadline_ms
                                                : 0,
                             .cpu_limit_s = req->deadline_ms / 1000,
                             .output_limit = LOG_LIMIT,
                             .merge_stderr = true,
                             .resident_limit_bytes = confine_memory(ROLE_COMPILER),
                             .disk_limit_bytes = DISK_BYTES,
                             .watch_dir = folder};

    if (!dir_make(folder, err))
        return false;
    confine_role(&policy, ROLE_COMPILER, &place, a);
    spec.cage = confine_cage(&policy, &cage);
    return proc_run(&spec, a, r, err);
}

/* From the PTX that was checked, by a process without foreign code. */
static bool assemble(const struct composer *t, const struct composer_request *req, struct arena *a,
                     struct build_result *out, struct error *err)
{
    const char *folder = path_join(a, req->work_dir, "ptxas");
    const char *made = path_join(a, folder, cubin_file);
    const char *cubin = path_join(a, req->work_dir, cubin_file);
    struct proc_result r;
    struct text ptx;

    if (!run_ptxas(t, req, folder, made, out->ptx_path, a, &r, err) ||
        !file_read(out->ptx_path, PTX_LIMIT, a, &ptx, err) ||
        !file_write(path_join(a, req->work_dir, log_file), r.out, err))
        return error_add(err, "assembling the kernel");
    if (r.end == PROC_DEADLINE || proc_out_of_cpu(&r)) {
        verdict_set(&out->verdict, VERDICT_COMPILE_TIMEOUT,
                    arena_printf(a, "ptxas was stopped after %d s", req->deadline_ms / 1000), "",
                    "smaller blocks or fewer stages");
        return true;
    }
    if (r.end != PROC_EXITED || r.code != 0 || !is_plain(made)) {
        ptxas_verdict(r.out, req, ptx, a, &out->verdict);
        return true;
    }
    return rename(made, cubin) == 0 ||
           error_set(err, ERROR_MACHINE, "%s cannot be moved to %s", made, cubin);
}

/* ---- the whole ----------------------------------------------------------------------------- */

static bool fetch(const struct composer_request *req, const char *key, struct arena *a,
                  struct build_result *out)
{
    struct error ignored = {0};
    struct text line;
    json_t *kept = NULL;

    if (!build_cache_find(req->share, key, req->work_dir, kept_files, ARRAY_LEN(kept_files), a) ||
        !file_read(path_join(a, req->work_dir, answer_file), KEPT_LIMIT, a, &line, &ignored) ||
        !json_parse(line, "a cached build", &kept, &ignored))
        return false;
    out->launches = json_incref(json_object_get(kept, "launches"));
    out->names = json_incref(json_object_get(kept, "names"));
    json_decref(kept);
    return out->launches && out->names;
}

static void keep(const struct composer_request *req, const char *key, struct arena *a,
                 const struct build_result *out)
{
    json_t *kept = json_pack("{s:O, s:O}", "launches", out->launches, "names", out->names);
    struct error ignored = {0};

    if (file_write(path_join(a, req->work_dir, answer_file), text_of(json_line(kept, a)), &ignored))
        build_cache_add(req->share, key, req->work_dir, kept_files, ARRAY_LEN(kept_files), a);
    json_decref(kept);
}

/* The guest's first line was written before foreign code ran: only it can say that the machine is
 * at fault. *answer is what follows, empty when nothing does. */
static bool was_ready(const struct composer *t, const struct proc_result *r, struct arena *a,
                      struct text *answer, struct error *err)
{
    struct error ignored = {0};
    struct text first;
    json_t *said = NULL;
    bool ready;

    *answer = r->out;
    if (!text_next_line(answer, &first) || !json_parse(first, "the guest", &said, &ignored))
        return true; /* it was ended before */
    json_own(a, said);
    ready = json_bool_or(said, "ok", false);
    if (ready)
        return true;
    error_set(err, ERROR_MACHINE, "%s %s could not be used: %.600s", languages[t->language].name,
              t->version, json_string_or(said, "text", "?"));
    return error_hint(err, "does it work outside of cutegen? is it a version that %s names?",
                      languages[t->language].page);
}

static bool make(const struct composer *t, const struct composer_request *req, const char *line,
                 struct arena *a, struct build_result *out, struct error *err)
{
    const char *module = path_join(a, req->work_dir, COMPOSER_SOURCE_NAME);
    struct error bad = {0};
    struct proc_result r;
    json_t *said = NULL;
    struct text answer;
    bool ok = true;

    if (!file_write(module, req->source, err) ||
        !run_guest(t, req, path_from_here(a, module), line, a, &r, err))
        return false;
    if (!was_ready(t, &r, a, &answer, err))
        return false;
    if (r.end != PROC_EXITED || r.code != 0 || r.out_cut ||
        !json_parse(answer, "the plan's answer", &said, &bad)) {
        ended(&r, req, a, &out->verdict);
        return true;
    }
    if (json_bool_or(said, "ok", false))
        ok = take_answer(said, req, a, out, err);
    else
        refused(said, req, a, &out->verdict);
    json_decref(said);
    if (ok && out->verdict.kind == VERDICT_PASS && t->ptxas)
        ok = assemble(t, req, a, out, err);
    return ok;
}

static char *request_line(const struct composer *t, const struct composer_request *req,
                          struct arena *a)
{
    json_t *r = plan_request(req->task, req->device);
    char *line;

    json_object_set_new(r, "language", json_string(languages[t->language].name));
    json_object_set_new(r, "ptx_version", json_integer(ptx_version(t)));
    line = json_line(r, a);
    json_decref(r);
    return line;
}

/* Where the copy lies is not part of what was asked. */
static char *with_module(const char *line, const char *module, struct arena *a)
{
    struct error ignored = {0};
    json_t *r = NULL;
    char *out;

    if (!json_parse(text_of(line), "our request", &r, &ignored))
        BUG("a request that is not JSON");
    json_object_set_new(r, "module", json_string(module));
    out = json_line(r, a);
    json_decref(r);
    return out;
}

bool composer_build(const struct composer *t, const struct composer_request *req, struct arena *a,
                    struct build_result *out, struct error *err)
{
    int64_t begin = clock_ms();
    const char *asked = request_line(t, req, a);
    const char *module = path_from_here(a, path_join(a, req->work_dir, COMPOSER_SOURCE_NAME));
    struct error ignored = {0};
    struct text log = text_of("");
    char key[65];

    verdict_set(&out->verdict, VERDICT_PASS, "built", "", NULL);
    if (!t->ptxas && req->device->kind == DEVICE_CUDA) {
        error_set(err, ERROR_MACHINE, "there is no ptxas to make a cubin of %s's PTX",
                  languages[t->language].name);
        return error_hint(err, "it comes with Triton's wheel and with CUDA's toolkit (--cuda DIR)");
    }
    if (!cache_key(t, asked, req->source, a, key, err))
        return error_add(err, "building");
    out->cached = fetch(req, key, a, out);
    if (!out->cached && !make(t, req, with_module(asked, module, a), a, out, err))
        return error_add(err, "building");
    if (out->verdict.kind != VERDICT_PASS)
        return true;
    out->ptx_path = path_join(a, req->work_dir, ptx_file);
    out->log_path = path_join(a, req->work_dir, log_file);
    out->cubin_path = t->ptxas ? path_join(a, req->work_dir, cubin_file) : NULL;
    out->module_path = out->cubin_path;
    if (file_exists(out->log_path))
        file_read(out->log_path, LOG_LIMIT, a, &log, &ignored);
    out->resources = ptx_resources(log);
    if (!out->cached)
        keep(req, key, a, out);
    out->build_ms = (int)(clock_ms() - begin);
    return true;
}
