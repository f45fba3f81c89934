/*
 * plan.c - the plan half: compile it with a C compiler, run it in the planner.
 *
 * Hides the flags that leave a plan nothing but kernel.h: no system header, no
 * library, no undefined symbol.
 */
#include "toolchain/plan.h"

#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/proc.h"
#include "toolchain/build_cache.h"
#include "toolchain/diag.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

enum {
    COMPILE_CPU_S =
        20, /* and ten times that by the clock: a busy machine is not the plan's fault */
    COMPILE_DEADLINE_MS = 10 * COMPILE_CPU_S * 1000,
    PLAN_DEADLINE_MS = 20000, /* the planner limits its own CPU time to far less */
    ANSWER_LIMIT = 8 << 20,
    MAX_FLAGS = 40,
};

static void verdict_set(struct verdict *v, enum verdict_kind kind, const char *summary)
{
    memset(v, 0, sizeof *v);
    v->kind = kind;
    v->summary = summary;
    v->detail = "";
}

/* Headers come as system headers, so that warnings in our macros stay ours. */
static void compile_flags(const struct tools *tools, struct arena *a, const char *in,
                          const char *out, const char **argv)
{
    static const char *const common[] = {"-nostdinc", "-nostdlib", "-shared", "-DCUTEGEN_HOST=1"};
    static const char *const full[] = {"-x",
                                       "c",
                                       "-std=gnu17",
                                       "-O0",
                                       "-fPIC",
                                       "-fno-stack-protector",
                                       "-Wl,-z,defs",
                                       "-Wl,--build-id=none",
                                       "-Werror=pointer-arith",
                                       "-Werror=implicit-function-declaration",
                                       "-Werror=incompatible-pointer-types",
                                       "-Werror=implicit-int",
                                       "-Werror=return-type",
                                       "-Werror=int-conversion"};
    int n = 0;
    argv[n++] = tools->cc;
    for (size_t i = 0; i < ARRAY_LEN(common); i++)
        argv[n++] = common[i];
    for (size_t i = 0; i < ARRAY_LEN(full) && !tools->cc_is_tcc; i++)
        argv[n++] = full[i];
    if (!tools->cc_is_tcc && tools->cc_version && strncmp(tools->cc_version, "gcc", 3) == 0) {
        argv[n++] = "-Werror=c++-compat"; /* export compiles the plan as C++ */
        argv[n++] = "-fno-diagnostics-show-caret";
    }
    argv[n++] = "-isystem";
    argv[n++] = tools->kernel_include;
    argv[n++] = "-isystem";
    argv[n++] = path_join(a, tools->kernel_include, "cutegen/shim");
    argv[n++] = "-o";
    argv[n++] = out;
    argv[n++] = in;
    argv[n] = NULL;
}

/* tcc links what it cannot resolve; the loader would find out too late. */
static bool has_undefined(const struct tools *tools, struct text log)
{
    return tools->cc_is_tcc && log.len && memmem(log.data, log.len, "undefined", 9) != NULL;
}

static const char *const plan_file[] = {"plan.so"};

static bool plan_key(const struct tools *tools, struct text source, const char *name,
                     struct arena *a, char key[65], struct error *err)
{
    struct hash h = hash_init();
    char headers[65];
    if (!build_cache_headers(tools->kernel_include, a, headers, err))
        return false;
    hash_add_text(&h, text_of("cutegen plan 1 " CUTEGEN_VERSION));
    hash_add_text(&h, source);
    hash_add_text(&h, text_of(name));
    hash_add_text(&h, text_of(tools->cc));
    hash_add_text(&h, text_of(tools->cc_version ? tools->cc_version : ""));
    hash_add_text(&h, text_of(headers));
    hash_hex(&h, key);
    return true;
}

bool plan_compile(const struct tools *tools, struct text source, const char *name, const char *dir,
                  struct arena *a, const char **so_path, struct verdict *verdict, struct error *err)
{
    const char *argv[MAX_FLAGS], *env[] = {"PATH=/usr/bin:/bin:/usr/local/bin", "LC_ALL=C", NULL};
    const char *base = path_base(name);
    const char *file = tools->cc_is_tcc ? arena_printf(a, "%s.c", base) : base; /* tcc goes by it */
    struct proc_spec spec = {.argv = argv,
                             .env = env,
                             .clean_env = true,
                             .no_network = true,
                             .merge_stderr = true,
                             .dir = dir,
                             .deadline_ms = COMPILE_DEADLINE_MS,
                             .cpu_limit_s = COMPILE_CPU_S,
                             .output_limit = 256 << 10,
                             .address_limit_bytes = (uint64_t)2 << 30,
                             .file_limit_bytes = (uint64_t)64 << 20};
    struct proc_result r;
    char key[65];

    verdict_set(verdict, VERDICT_PASS, "the plan compiles");
    *so_path = path_join(a, dir, plan_file[0]);
    if (!plan_key(tools, source, base, a, key, err))
        return false;
    if (build_cache_fetch(key, dir, plan_file, ARRAY_LEN(plan_file), a) && file_exists(*so_path))
        return true;
    if (!file_write(path_join(a, dir, file), source, err))
        return error_add(err, "compiling the plan");
    compile_flags(tools, a, file, "plan.so", argv);
    if (!proc_run(&spec, a, &r, err))
        return error_add(err, "compiling the plan");
    if (r.end == PROC_DEADLINE || proc_out_of_cpu(&r)) {
        verdict_set(
            verdict, VERDICT_COMPILE_TIMEOUT,
            arena_printf(a, "the plan did not compile within %d s of CPU time", COMPILE_CPU_S));
        return true;
    }
    if (r.end == PROC_EXITED && r.code == 0 && !has_undefined(tools, r.out)) {
        build_cache_keep(key, dir, plan_file, ARRAY_LEN(plan_file), a);
        return true;
    }
    diag_compile_error(r.out, source, base, a, verdict);
    if (verdict->finding_count == 0)
        verdict->summary = arena_printf(a, "the plan does not compile (%s)", proc_end_text(&r, a));
    return true;
}

static json_t *tensor_json(const struct tensor_info *t)
{
    json_t *shape = json_array(), *strides = json_array();
    for (int i = 0; i < t->dims; i++) {
        json_array_append_new(shape, json_integer(t->shape[i]));
        json_array_append_new(strides, json_integer(t->strides[i]));
    }
    return json_pack("{s:s, s:s, s:s, s:o, s:o}", "name", t->name ? t->name : "", "role",
                     t->role ? t->role : "", "dtype", t->dtype, "shape", shape, "strides", strides);
}

/* "sm_90a" and "compute_80" -> 90, 80 */
static int arch_number(const char *arch)
{
    int n = 0;
    for (const char *p = arch ? strchr(arch, '_') : NULL; p && *++p >= '0' && *p <= '9';)
        n = n * 10 + (*p - '0');
    return n > 0 ? n : 80;
}

json_t *plan_request(const struct task *task, const struct device *device)
{
    json_t *in = json_array(), *out = json_array();
    json_t *scalars = json_object_get(task->description, "scalars");
    for (int i = 0; i < task->in_count; i++)
        json_array_append_new(in, tensor_json(&task->in[i]));
    for (int i = 0; i < task->out_count; i++)
        json_array_append_new(out, tensor_json(&task->out[i]));
    return json_pack("{s:o, s:o, s:O, s:{s:i, s:i, s:I, s:I}}", "inputs", in, "outputs", out,
                     "scalars", scalars ? scalars : json_array(), "device", "arch",
                     arch_number(device->arch), "sm_count", device->sm_count, "smem_block_bytes",
                     (json_int_t)device->smem_block_bytes, "l2_bytes",
                     (json_int_t)device->l2_bytes);
}

/* SIGKILL is the hard limit, for plans that caught SIGXCPU. */
static bool used_up_cpu(const struct proc_result *r)
{
    return r->end == PROC_SIGNALED && (r->code == SIGXCPU || r->code == SIGKILL);
}

static const char *end_advice(const struct proc_result *r)
{
    if (r->end == PROC_DEADLINE || used_up_cpu(r))
        return "a plan only computes sizes and describes launches: look for an endless loop";
    if (r->end == PROC_SIGNALED && r->code == SIGSYS)
        return "a plan may not make system calls: no files, processes, sockets or threads";
    if (r->end == PROC_SIGNALED)
        return "tensor data cannot be read in a plan; check indices into shape, strides, in and "
               "out";
    return "end the plan with `return CUTEGEN_LAUNCH(...)`";
}

/* The planner ended without an answer: whatever the cause, the plan did it. */
static void ended(const struct proc_result *r, struct arena *a, struct verdict *v)
{
    const char *how =
        r->end == PROC_DEADLINE
            ? arena_printf(a, "the plan did not return within %d s", PLAN_DEADLINE_MS / 1000)
            : arena_printf(a, "the plan ended without an answer: %s", proc_end_text(r, a));
    verdict_set(v, VERDICT_BAD_PLAN, how);
    if (used_up_cpu(r))
        v->summary = "the plan did not return: it used up its CPU time";
    v->advice = end_advice(r);
    v->detail = arena_printf(a, "%s\n%s", v->summary, v->advice);
}

static void refused(const json_t *answer, struct text source, const char *name, struct arena *a,
                    struct verdict *v)
{
    const char *text = arena_strdup(a, json_string_or(answer, "text", "the plan failed"));
    int line = (int)json_int_or(answer, "line", 0);
    bool launch = strcmp(json_string_or(answer, "kind", ""), "launch") == 0;
    verdict_set(v, launch ? VERDICT_BAD_LAUNCH : VERDICT_BAD_PLAN, text);
    if (line <= 0)
        return;
    v->findings[0] = (struct finding){.kind = launch ? "bad launch" : "bad plan",
                                      .where = arena_printf(a, "%s:%d", path_base(name), line),
                                      .line = diag_source_line(source, line, a),
                                      .text = text};
    v->finding_count = 1;
    v->detail =
        arena_printf(a, "%s: %s\n    %s\n", v->findings[0].where, text, v->findings[0].line);
}

bool plan_run(const char *so_path, const json_t *request, struct text source, const char *name,
              struct arena *a, json_t **launches, struct verdict *verdict, struct error *err)
{
    char *planner;
    const char *argv[] = {NULL, so_path, NULL}, *env[] = {"LC_ALL=C", NULL};
    struct proc_spec spec = {.argv = argv,
                             .env = env,
                             .clean_env = true,
                             .no_network = true,
                             .deadline_ms = PLAN_DEADLINE_MS,
                             .output_limit = ANSWER_LIMIT};
    struct proc_result r;
    struct error bad = {0};
    json_t *answer = NULL;
    const char *kind;

    *launches = NULL;
    if (!home_program("cutegen-planner", a, &planner, err))
        return false;
    argv[0] = planner;
    spec.input = text_of(arena_printf(a, "%s\n", json_line(request, a)));
    if (!proc_run(&spec, a, &r, err))
        return error_add(err, "running the plan");
    if (r.end != PROC_EXITED || r.code != 0 || r.out.len == 0 ||
        !json_parse(r.out, "the planner's answer", &answer, &bad)) {
        ended(&r, a, verdict);
        return true;
    }
    kind = json_string_or(answer, "kind", "");
    if (json_bool_or(answer, "ok", false)) {
        verdict_set(verdict, VERDICT_PASS, "the plan describes its launches");
        *launches = answer;
        return true;
    }
    if (strcmp(kind, "machine") == 0) {
        error_set(err, ERROR_MACHINE, "%s", json_string_or(answer, "text", "the planner failed"));
        if (*json_string_or(answer, "hint", "") != '\0')
            error_hint(err, "%s", json_string_or(answer, "hint", ""));
        json_decref(answer);
        return error_add(err, "running the plan");
    }
    refused(answer, source, name, a, verdict);
    json_decref(answer);
    return true;
}

json_t *plan_kernel_names(const json_t *launches)
{
    json_t *names = json_array();
    const json_t *ops = json_object_get(launches, "ops");
    for (size_t i = 0; i < json_array_size(ops); i++) {
        const char *kernel = json_string_or(json_array_get(ops, i), "kernel", NULL);
        bool known = kernel == NULL;
        for (size_t k = 0; k < json_array_size(names) && !known; k++)
            known = strcmp(json_string_value(json_array_get(names, k)), kernel) == 0;
        if (!known)
            json_array_append_new(names, json_string(kernel));
    }
    return names;
}
