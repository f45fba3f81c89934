/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runner_client.c - one candidate's process; see runner_client.h.
 *
 * The candidate's kernels run in or through that process, so whatever comes back must be checked.
 * {"ok": false} means that the machine is at fault, according to the runner; every other failure
 * there is the candidate's verdict.
 */
#include "eval/runner_client.h"

#include "base/base64.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/proc.h"
#include "confine/confine.h"
#include "eval/child_protocol.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEFAULT_LOAD_MS = 60000,
    DEFAULT_RUN_MS = 60000,
    DEFAULT_TIME_MS = 300000,
    ANSWER_LIMIT = 32 << 20,
    LAST_WORDS = 600,
    MAX_FINDINGS_TAKEN = 1000,
    MAX_LAUNCHES_TAKEN = 4096, /* of a plan */
    MAX_ENV = 24,
    MAX_TEXT = 8000,
    MAX_ARGV = 24,
    END_MS = 15000,
    WORKSHOP_DISK = 1 << 30,
    IMAGE_LIMIT = 40 << 20, /* in base64 it fits the runner's longest line */
};

struct runner {
    struct child *child;
    struct runner_config config;
    bool plain;    /* unconfined: start_plain() */
    bool unopened; /* it could not open its device */
    /* it holds foreign code: its claim that the machine is at fault is not trusted */
    bool doubted;
    bool wants_build; /* a guest failed after it tried to start a program */
    bool dead;        /* the process has ended: every call returns the verdict below */
    enum verdict_kind verdict;
    char why[1024];
};

/* ---- life --------------------------------------------------------------- */

/* A clean environment with only those of our variables that the loader and the driver read. A guest
 * gets neither HOME nor PATH, since it needs nothing there. */
static void pass_environment(const struct runner_config *config, struct arena *a, const char **out)
{
    static const char *const names[] = {
        "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_MPS_PIPE_DIRECTORY",
        /* the following only for a guest that compiles */
        "PATH", "CUDA_HOME", "CUDA_PATH", "TORCH_CUDA_ARCH_LIST", "CXX", "MAX_JOBS",
        /* the following not for a guest */
        "HOME", "TMPDIR", "CUDA_CACHE_PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS"};
    const size_t for_guests = 4, for_builds = 10;
    size_t n = 0, count = config->building ? for_builds
                          : config->guest  ? for_guests
                                           : ARRAY_LEN(names);

    for (size_t i = 0; i < count && n + 2 < MAX_ENV; i++) {
        const char *value = getenv(names[i]);

        if (value)
            out[n++] = arena_printf(a, "%s=%s", names[i], value);
    }
    if (config->guest) /* torch wants it, and would otherwise read /etc/passwd */
        out[n++] = "USER=guest";
    if (config->recorder && n + 3 < MAX_ENV) {
        out[n++] = arena_printf(a, "CUDA_INJECTION64_PATH=%s", config->recorder);
        out[n++] = arena_printf(a, "CUTEGEN_RECORD=%s", config->record);
    }
    out[n] = NULL;
}

/* May its process be one that opened its device in advance? It still serves only one candidate. */
static bool is_warm(const struct runner_config *config)
{
    return config->source && !config->wrapper && config->device->kind == DEVICE_CUDA;
}

static void join_argv(const char *const *wrapper, const char *program, const char **out)
{
    size_t n = 0;

    for (; wrapper && wrapper[n]; n++) {
        if (n + 2 >= MAX_ARGV)
            BUG("a wrapper of more than %d arguments", MAX_ARGV - 2);
        out[n] = wrapper[n];
    }
    out[n] = program;
}

/* Tools that wrap a runner (ncu, compute-sanitizer) need more rights than the runner. */
static bool is_confined(const struct runner_config *config)
{
    return !config->wrapper && config->module;
}

static bool has_driver(const char *dir, struct arena *a)
{
    return file_exists(path_join(a, dir, "libcuda.so.1"));
}

/* Allows the folder in which LD_LIBRARY_PATH finds the driver's library. */
static void allow_driver(struct confine_policy *p, bool cuda, struct arena *a)
{
    const char *path = cuda ? getenv("LD_LIBRARY_PATH") : NULL;

    while (path && *path) {
        size_t len = strcspn(path, ":");
        const char *dir = arena_strndup(a, path, len);

        if (dir[0] == '/' && len > 1 && has_driver(dir, a))
            confine_allow(p, dir, CONFINE_READ);
        path += len + (path[len] == ':');
    }
}

/* On simt the kernels run in the runner itself, which can read only its module and its buffers. On
 * a GPU it has the driver and its devices; the module is sent over its pipe, since the process may
 * have started before the module existed. */
static void confine_runner(const struct runner_config *config, struct arena *a,
                           struct confine_policy *policy, struct proc_cage *cage,
                           struct proc_spec *spec)
{
    bool cuda = config->device->kind == DEVICE_CUDA;
    const char *const read[] = {cuda ? NULL : config->module, NULL};
    struct confine_place place = {.program = spec->argv[0],
                                  .read = read,
                                  .buffers = cuda ? NULL : config->buffers,
                                  .cuda = cuda};

    if (!is_confined(config))
        return;
    confine_role(policy, ROLE_RUNNER, &place, a);
    allow_driver(policy, cuda, a);
    spec->resident_limit_bytes = cuda ? 0 : confine_memory(ROLE_RUNNER);
    spec->cage = confine_cage(policy, cage);
}

/* The compiler that torch would choose: CXX, or c++ on PATH. NULL: none. */
static const char *compiler(struct arena *a)
{
    const char *named = getenv("CXX");

    return path_find_program(a, named && *named ? named : "c++");
}

/* A guest can read Python, our package, its module's folder and the folder where it exchanges
 * data. */
static void confine_guest(const struct runner_config *config, struct arena *a,
                          struct confine_policy *policy, struct proc_cage *cage,
                          struct proc_spec *spec)
{
    const char *script = config->program;
    const char *package = arena_strndup(a, script, (size_t)(path_base(script) - script));
    const char *folder =
        arena_strndup(a, config->module, (size_t)(path_base(config->module) - config->module));
    const char *const read[] = {package, folder, config->recorder, NULL};
    const struct confine_place place = {.program = path_find_program(a, spec->argv[0]),
                                        .compiler = config->building ? compiler(a) : NULL,
                                        .read = read,
                                        .work = config->exchange,
                                        .cuda = config->device->kind == DEVICE_CUDA};

    confine_role(policy, config->building ? ROLE_WORKSHOP : ROLE_GUEST, &place, a);
    if (config->extensions) /* it loads what it compiled and can no longer change it */
        confine_allow(policy, config->extensions,
                      config->building ? CONFINE_READ | CONFINE_WRITE | CONFINE_EXECUTE
                                       : CONFINE_READ);
    allow_driver(policy, place.cuda, a);
    spec->cage = confine_cage(policy, cage);
    if (config->building) {
        spec->resident_limit_bytes = confine_memory(ROLE_WORKSHOP);
        spec->file_limit_bytes = policy->file_bytes;
        spec->disk_limit_bytes = WORKSHOP_DISK;
        spec->watch_dir = config->extensions;
        return;
    }
    policy->file_bytes = config->file_bytes;
}

static int or_default(int value, int fallback)
{
    return value > 0 ? value : fallback;
}

static bool start_child(struct runner *r, const char *program, struct arena *a, struct error *err)
{
    const struct runner_config *config = &r->config;
    const char *env[MAX_ENV], *argv[MAX_ARGV] = {NULL};
    bool warm = is_warm(config) && !r->plain;
    struct proc_spec spec = {
        .argv = argv,
        .env = env,
        .clean_env = true,
        /* On a GPU confinement takes care of this: libcuda does not start without a socket of its
         * own. */
        .no_network = config->device->kind == DEVICE_SIMT,
        .private_tmp = config->guest,
        /* the data it exchanges is in the machine's memory (tmpfs) */
        .watch_dir = config->exchange,
        .disk_limit_bytes = config->exchange ? config->memory_bytes : 0,
        .resident_limit_bytes = config->memory_bytes / 4 * 5,
        .file_limit_bytes = config->file_bytes,
        .output_limit = 64 << 10,
    };
    struct confine_policy policy;
    struct proc_cage cage;

    pass_environment(config, a, env);
    join_argv(config->wrapper, program, argv);
    if (config->guest && !r->plain)
        confine_guest(config, a, &policy, &cage, &spec);
    else if (!r->plain)
        confine_runner(config, a, &policy, &cage, &spec);
    if (warm) {
        argv[1] = "--warm";
        argv[2] = arena_printf(a, "cuda:%d", config->device->index);
        return child_obtain(config->source, "runner", NULL, &spec, &r->child, err);
    }
    return child_start(&spec, &r->child, err);
}

static bool start(struct runner *r, struct error *err)
{
    struct arena *a = arena_new();
    char *program = NULL;
    bool ok = (r->config.program || home_program("cutegen-runner", a, &program, err)) &&
              start_child(r, r->config.program ? r->config.program : program, a, err);

    arena_free(a);
    return ok || error_add(err, "cannot start the runner");
}

bool runner_start(const struct runner_config *config, struct runner **out, struct error *err)
{
    struct runner *r = xmalloc(sizeof *r);

    r->config = *config;
    r->config.load_ms = or_default(config->load_ms, DEFAULT_LOAD_MS);
    r->config.run_ms = or_default(config->run_ms, DEFAULT_RUN_MS);
    r->config.time_ms = or_default(config->time_ms, DEFAULT_TIME_MS);
    if (!start(r, err)) {
        runner_stop(r);
        return false;
    }
    *out = r;
    return true;
}

/* For a driver that does not start in confinement: kernels have no code on the host, so they run
 * unconfined; a guest only if the user trusts it. */
static bool start_plain(struct runner *r, struct error *err)
{
    bool may = r->config.device->kind == DEVICE_CUDA && !r->plain && !r->doubted &&
               err->kind == ERROR_MACHINE &&
               (r->config.guest ? r->config.trusted : r->unopened && is_confined(&r->config));

    if (!may)
        return false;
    log_warn("the CUDA driver does not start in confinement (%s); trying without it", err->text);
    *err = (struct error){0};
    child_stop(r->child);
    r->child = NULL;
    r->plain = true;
    r->dead = false;
    return start(r, err);
}

bool runner_is_confined(const struct runner *r)
{
    return !r->plain;
}

void runner_end(struct runner *r)
{
    struct error ignored = {0};
    json_t *answer = NULL;

    if (r->dead || !r->child)
        return;
    if (talk(r->child, json_pack("{s:s}", "do", "end"), END_MS, ANSWER_LIMIT, &answer, &ignored) ==
        TALK_ANSWER) {
        json_decref(answer);
        /* The process answers this request by ending. */
        (void)talk(r->child, json_object(), END_MS, ANSWER_LIMIT, &answer, &ignored);
        json_decref(answer);
    }
}

void runner_stop(struct runner *r)
{
    if (!r)
        return;
    child_stop(r->child);
    xfree(r);
}

void runner_answer_release(struct runner_answer *said)
{
    json_decref(said->findings);
    json_decref(said->counters);
    memset(said, 0, sizeof *said);
}

/* ---- ask ---------------------------------------------------------------- */

static void bury(struct runner *r, enum verdict_kind verdict, const char *what, const char *words)
{
    r->dead = true;
    r->verdict = verdict;
    snprintf(r->why, sizeof r->why, "%s%s%.600s", what, *words ? ": " : "", words);
}

static void bury_by(struct runner *r, enum talk_end end, const char *what, int deadline_ms,
                    const struct error *why)
{
    struct arena *a = arena_new();
    char text[256];

    if (end == TALK_LATE) {
        snprintf(text, sizeof text, "no end of %s within %.3g s", what, deadline_ms / 1000.0);
        bury(r, VERDICT_HANG, text, "");
    } else if (end == TALK_ENDED) {
        snprintf(text, sizeof text, "the candidate's process died during %s", what);
        bury(r, VERDICT_CRASH, text, talk_last_words(r->child, LAST_WORDS, a));
    } else {
        snprintf(text, sizeof text, "the candidate's process gave a malformed answer during %s",
                 what);
        bury(r, VERDICT_CRASH, text, why->text);
    }
    arena_free(a);
    /* Late: it may still be running. It is not asked again. */
    child_stop(r->child);
    r->child = NULL;
}

static bool outcome_verdict(const char *name, enum verdict_kind *out)
{
    static const struct {
        const char *name;
        enum verdict_kind verdict;
    } outcomes[] = {{"ok", VERDICT_PASS},
                    {"bad launch", VERDICT_BAD_LAUNCH},
                    {"crash", VERDICT_CRASH},
                    {"hang", VERDICT_HANG},
                    {"out of memory", VERDICT_OUT_OF_MEMORY},
                    {"refused", VERDICT_REFUSED},
                    {"compile error", VERDICT_COMPILE_ERROR},
                    {"wrong values", VERDICT_WRONG_VALUES}};

    for (size_t i = 0; i < ARRAY_LEN(outcomes); i++)
        if (strcmp(name, outcomes[i].name) == 0) {
            *out = outcomes[i].verdict;
            return true;
        }
    return false;
}

static json_t *take_list(const json_t *answer, const char *key, size_t most)
{
    json_t *list = json_object_get(answer, key);

    if (!json_is_array(list) || json_array_size(list) > most)
        return NULL;
    return json_incref(list);
}

/* Asks and fills *out; *answer (may be NULL) is a new reference or NULL when
 * the runner is gone. */
static bool ask(struct runner *r, const char *what, json_t *request_take, int deadline_ms,
                struct arena *a, struct runner_answer *out, json_t **answer, struct error *err)
{
    struct error why = {0};
    int64_t start = clock_ms();
    json_t *said = NULL;
    enum talk_end end;

    memset(out, 0, sizeof *out);
    out->op = -1;
    out->text = "";
    if (answer)
        *answer = NULL;
    if (r->dead) {
        json_decref(request_take);
    } else {
        end = talk(r->child, request_take, deadline_ms, ANSWER_LIMIT, &said, &why);
        if (end == TALK_ENDED && child_lost(r->child))
            return error_set(err, ERROR_MACHINE, "the warm server ended during %s", what);
        if (end == TALK_ANSWER && r->doubted && !json_bool_or(said, "ok", false)) {
            error_set(&why, ERROR_MACHINE, "%.200s", json_string_or(said, "text", "no reason"));
            end = TALK_GARBAGE;
        }
        if (end == TALK_ANSWER && !talk_ok(said, err)) {
            r->unopened = !json_bool_or(said, "opened", true);
            json_decref(said);
            return error_add(err, "the runner, %s", what);
        }
        if (end == TALK_ANSWER &&
            !outcome_verdict(json_string_or(said, "outcome", "ok"), &out->verdict)) {
            error_set(&why, ERROR_MACHINE, "an unknown outcome");
            end = TALK_GARBAGE;
        }
        if (end != TALK_ANSWER)
            bury_by(r, end, what, deadline_ms, &why);
    }
    out->wall_ms = (int)(clock_ms() - start);
    if (r->dead) {
        json_decref(said);
        out->verdict = r->verdict;
        out->text = arena_strdup(a, r->why);
        return true;
    }
    out->text = arena_printf(a, "%.*s", MAX_TEXT, json_string_or(said, "text", ""));
    out->op = (int)json_int_or(said, "op", -1);
    out->stopped = json_bool_or(said, "stopped", false);
    r->wants_build |= r->config.guest && json_bool_or(said, "build", false);
    out->findings = take_list(said, "findings", MAX_FINDINGS_TAKEN);
    out->counters = take_list(said, "counters", MAX_LAUNCHES_TAKEN);
    if (answer)
        *answer = said;
    else
        json_decref(said);
    return true;
}

/* The last answer that is trusted: the module is not loaded yet. */
static bool open_guest(struct runner *r, const char *device, struct arena *a,
                       struct runner_answer *out, struct error *err)
{
    json_t *request =
        json_pack("{s:s, s:s, s:I, s:b}", "do", "open", "device", device, "memory",
                  (json_int_t)r->config.memory_bytes, "build", (int)r->config.building);

    if (!ask(r, "its start", request, r->config.load_ms, a, out, NULL, err))
        return false;
    if (r->dead)
        return error_set(err, ERROR_MACHINE, "a process for the module cannot be started: %s",
                         r->why);
    r->doubted = true;
    return true;
}

/* Adds the module's bytes, for a process that cannot open its file. */
static bool add_image(json_t *request, const char *path, struct arena *a, struct error *err)
{
    struct text image;
    char *letters;

    if (!file_exists(path))
        return true; /* the runner will report it */
    if (!file_read(path, IMAGE_LIMIT, a, &image, err))
        return error_add(err, "reading the candidate's module");
    letters = arena_alloc(a, BASE64_ROOM(image.len));
    base64_encode(image.data, image.len, "+/", letters);
    json_object_set_new(request, "image", json_string(letters));
    return true;
}

/* Sends a guest what it needs to load its module. */
static bool load_guest(struct runner *r, const struct build_result *build, const char *device,
                       struct arena *a, struct runner_answer *out, struct error *err)
{
    json_t *request;

    if (!open_guest(r, device, a, out, err) &&
        (!start_plain(r, err) || !open_guest(r, device, a, out, err)))
        return false;
    runner_answer_release(out);
    request = json_copy(build->foreign);
    json_object_set_new(request, "do", json_string("load"));
    json_object_set_new(request, "device", json_string(device));
    if (r->config.record) /* what the recorder sees decides, not the guest's own check */
        json_object_set_new(request, "allow_torch", json_true());
    if (r->config.extensions)
        json_object_set_new(request, "extensions", json_string(r->config.extensions));
    return ask(r, "loading the module", request, r->config.load_ms, a, out, NULL, err);
}

static json_t *load_request(const struct runner *r, const struct build_result *build,
                            const char *device)
{
    const struct runner_config *c = &r->config;
    json_t *request = json_pack(
        "{s:s, s:s, s:s, s:O, s:O, s:s, s:b, s:I, s:i, s:i}", "do", "load", "device", device,
        "module", build->module_path, "names", build->names, "plan", build->launches, "check",
        c->check ? c->check : "full", "counters", (int)c->counters, "warp_seed",
        (json_int_t)(c->warp_seed & INT64_MAX), "threads", c->threads,
        /* earlier than our deadline, so that simt ends the run and can report where it was */
        "watchdog_ms", c->run_ms - c->run_ms / 8);

    if (!request)
        BUG("a build result without module, names or launch list");
    if (c->device->kind == DEVICE_SIMT && c->device->smem_block_bytes > 0)
        json_object_set_new(request, "smem_block_bytes",
                            json_integer((json_int_t)c->device->smem_block_bytes));
    if (c->device->kind == DEVICE_SIMT && c->device->cluster_blocks > 0)
        json_object_set_new(request, "cluster_blocks", json_integer(c->device->cluster_blocks));
    if (c->profile)
        json_object_set_new(request, "profile", json_true());
    if (c->sample > 0)
        json_object_set_new(request, "sample", json_integer(c->sample));
    if (build->module_hash)
        json_object_set_new(request, "sha256", json_string(build->module_hash));
    return request;
}

bool runner_load(struct runner *r, const struct build_result *build, struct arena *a,
                 struct runner_answer *out, struct error *err)
{
    const struct runner_config *c = &r->config;
    char device[32] = "simt";
    json_t *request;

    if (c->device->kind == DEVICE_CUDA)
        snprintf(device, sizeof device, "cuda:%d", c->device->index);
    if (build->foreign)
        return load_guest(r, build, device, a, out, err);
    request = load_request(r, build, device);
    if (c->device->kind == DEVICE_CUDA && is_confined(c) &&
        !add_image(request, build->module_path, a, err)) {
        json_decref(request);
        return false;
    }
    if (ask(r, "loading the module", json_incref(request), c->load_ms, a, out, NULL, err)) {
        json_decref(request);
        return true;
    }
    if (!start_plain(r, err)) {
        json_decref(request);
        return false;
    }
    return ask(r, "loading the module", request, c->load_ms, a, out, NULL, err);
}

static bool tell(struct runner *r, const char *doing, const char *what, json_t *binding,
                 struct arena *a, struct runner_answer *out, struct error *err)
{
    json_t *request = json_copy(binding);

    json_object_set_new(request, "do", json_string(doing));
    return ask(r, what, request, r->config.load_ms, a, out, NULL, err);
}

bool runner_make(struct runner *r, json_t *binding, struct arena *a, struct runner_answer *out,
                 struct error *err)
{
    return tell(r, "make", "making the module", binding, a, out, err);
}

bool runner_take(struct runner *r, json_t *binding, struct arena *a, struct runner_answer *out,
                 struct error *err)
{
    return tell(r, "bind", "taking the inputs", binding, a, out, err);
}

bool runner_rehearse(struct runner *r, struct arena *a, struct runner_answer *out,
                     struct error *err)
{
    return ask(r, "a rehearsal", json_pack("{s:s}", "do", "rehearse"), r->config.load_ms, a, out,
               NULL, err);
}

bool runner_witness(struct runner *r, struct arena *a, struct runner_answer *out, struct error *err)
{
    return ask(r, "recorded calls", json_pack("{s:s}", "do", "witness"), r->config.run_ms, a, out,
               NULL, err);
}

bool runner_wants_build(const struct runner *r)
{
    return r->wants_build;
}

bool runner_bind(struct runner *r, json_t *buffers, struct arena *a, struct runner_answer *out,
                 struct error *err)
{
    return ask(r, "binding the buffers", json_pack("{s:s, s:O}", "do", "bind", "buffers", buffers),
               r->config.load_ms, a, out, NULL, err);
}

bool runner_run(struct runner *r, bool hash_outputs, struct arena *a, struct runner_answer *out,
                struct error *err)
{
    json_t *answer;
    const char *hash;

    if (!ask(r, "the run", json_pack("{s:s, s:b}", "do", "run", "hash", (int)hash_outputs),
             r->config.run_ms, a, out, &answer, err))
        return false;
    hash = json_string_or(answer, "hash", NULL);
    out->output_hash = hash ? arena_strdup(a, hash) : NULL;
    json_decref(answer);
    return true;
}

/* Times must be finite and positive; anything else is not a sample. */
static double *take_samples(const json_t *list, struct arena *a, size_t *count)
{
    double *out = arena_array(a, json_array_size(list) + 1, sizeof *out);

    *count = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        double v = json_number_value(json_array_get(list, i));

        if (isfinite(v) && v > 0)
            out[(*count)++] = v;
    }
    return out;
}

bool runner_time(struct runner *r, int cold, int warm, struct arena *a, struct runner_answer *out,
                 struct time_samples *samples, struct error *err)
{
    json_t *answer;

    memset(samples, 0, sizeof *samples);
    if (!ask(r, "timing",
             json_pack("{s:s, s:i, s:i, s:i}", "do", "time", "cold", cold, "warm", warm,
                       "budget_ms",
                       r->config.budget_ms ? r->config.budget_ms : r->config.time_ms / 2),
             r->config.time_ms, a, out, &answer, err))
        return false;
    samples->cold_us = take_samples(json_object_get(answer, "cold_us"), a, &samples->cold_count);
    samples->warm_us = take_samples(json_object_get(answer, "warm_us"), a, &samples->warm_count);
    samples->wall_us = json_double_or(answer, "wall_us", 0);
    samples->other_outputs = (int)json_int_or(answer, "other_outputs", 0);
    json_decref(answer);
    return true;
}

/* A burst must take much longer than the pipe's delay, yet not keep the user waiting. */
static int burst_calls(double about_us)
{
    const double least_us = 20e3;
    double calls = about_us > 0 ? least_us / about_us : 16;

    return calls < 2 ? 2 : calls > 2000 ? 2000 : (int)calls;
}

bool runner_burst(struct runner *r, double about_us, struct arena *a, struct runner_answer *out,
                  double *call_us, bool *captured, struct error *err)
{
    int calls[] = {burst_calls(about_us), 3 * burst_calls(about_us)};
    int64_t took_us[] = {0, 0};
    json_t *answer;

    *call_us = 0;
    for (int i = 0; i < 2; i++) {
        int64_t start = clock_us();

        if (!ask(r, "a burst of calls", json_pack("{s:s, s:i}", "do", "burst", "calls", calls[i]),
                 r->config.time_ms, a, out, &answer, err))
            return false;
        took_us[i] = clock_us() - start;
        *captured = json_bool_or(answer, "captured", false);
        json_decref(answer);
        if (out->verdict != VERDICT_PASS)
            return true;
        if (i == 0)
            runner_answer_release(out);
    }
    *call_us = (double)(took_us[1] - took_us[0]) / (calls[1] - calls[0]);
    return true;
}
