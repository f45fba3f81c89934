/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.c - the plan half: compile it to PTX and let the planner interpret it.
 *
 * Hides both protocols and the meaning of an exit without an answer. The planner is our program and
 * runs no code of the candidate; still, if it ends without answering, the plan is blamed.
 */
#include "toolchain/plan.h"

#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/proc.h"
#include "confine/confine.h"
#include "toolchain/build_cache.h"
#include "toolchain/diag.h"
#include "toolchain/source_halves.h"

#include <string.h>

enum {
    COMPILE_CPU_MS = 10000, /* CPU time of the compiler; a plan takes a hundredth of this */
    /* a safeguard against our own bugs, since the planner counts steps */
    PLAN_DEADLINE_MS = 120000,
    ANSWER_LIMIT = 8 << 20,
};

static const char source_file[] = "candidate.cu", ptx_file[] = "plan.ptx";
static const char *const kept_files[] = {ptx_file};

static void verdict_set(struct verdict *v, enum verdict_kind kind, const char *summary)
{
    memset(v, 0, sizeof *v);
    v->kind = kind;
    v->summary = summary;
    v->detail = "";
}

/* The plan as the compiler sees it, with its line numbers; later kernels may change. */
static struct text plan_half(struct text source, struct arena *a)
{
    struct text view = halves_view(source, HALF_HOST, a);
    while (view.len > 0 && view.data[view.len - 1] == '\n')
        view.len--;
    return view;
}

static void plan_key(const struct builder *b, struct text source, struct arena *a, char key[65])
{
    const struct tools *tools = builder_tools(b);
    struct hash h = hash_init();
    hash_add_text(&h, text_of("cutegen plan 2 " CUTEGEN_VERSION));
    hash_add_text(&h, plan_half(source, a));
    hash_add_text(&h, text_of(tools->nvrtc_version ? tools->nvrtc_version : tools->nvrtc));
    hash_add_text(&h, text_of(builder_headers(b)));
    hash_hex(&h, key);
}

static char *plan_question(const struct builder *b, struct text source, struct arena *a)
{
    json_t *r = json_pack("{s:s, s:s, s:s}", "do", "plan", "include",
                          path_absolute(a, builder_tools(b)->kernel_include), "source",
                          builder_source(source, a));
    char *line = json_line(r, a);
    json_decref(r);
    return line;
}

static void refuse(const json_t *answer, struct text source, const char *name, struct arena *a,
                   struct verdict *v)
{
    diag_compile_error(text_of(arena_strdup(a, json_string_or(answer, "log", ""))), source,
                       source_file, a, v);
    if (v->advice == NULL || *v->advice == '\0')
        v->advice = "a plan is CUDA C++ that computes sizes and calls kernel.h, nothing else: no C "
                    "library, no forms of C alone (docs/kernel-abi.md, Versions)";
    if (strcmp(name, source_file) != 0)
        diag_rename(v, source_file, name, a);
}

bool plan_compile(struct builder *b, struct text source, const char *name, const char *dir,
                  struct arena *a, const char **ptx_path, struct verdict *verdict,
                  struct error *err)
{
    struct builder_question q = {plan_question(b, source, a), source, COMPILE_CPU_MS};
    json_t *answer = NULL;
    bool ok = true;
    char key[65];

    verdict_set(verdict, VERDICT_PASS, "the plan compiles");
    *ptx_path = path_join(a, dir, ptx_file);
    plan_key(b, source, a, key);
    if (builder_caches(b) &&
        build_cache_find(builder_share(b), key, dir, kept_files, ARRAY_LEN(kept_files), a) &&
        file_exists(*ptx_path))
        return true;
    if (!builder_ask(b, &q, a, &answer, verdict, err))
        return error_add(err, "compiling the plan");
    if (answer == NULL) /* it was late or died, which the verdict says */
        return true;
    if (!json_bool_or(answer, "compiled", false)) {
        refuse(answer, source, path_base(name), a, verdict);
    } else {
        ok = file_write(*ptx_path, text_of(json_string_or(answer, "ptx", "")), err);
        if (ok && builder_caches(b))
            build_cache_add(builder_share(b), key, dir, kept_files, ARRAY_LEN(kept_files), a);
    }
    json_decref(answer);
    return ok || error_add(err, "compiling the plan");
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

/* The planner ended without an answer. */
static void ended(const struct proc_result *r, struct arena *a, struct verdict *v)
{
    verdict_set(v, VERDICT_BAD_PLAN,
                arena_printf(a, "the plan ended without an answer: %s", proc_end_text(r, a)));
    v->advice = "a plan only computes sizes and describes launches: make it smaller";
    v->detail = arena_printf(a, "%s\n%s", v->summary, v->advice);
}

static void refused(const json_t *answer, struct text source, const char *name, struct arena *a,
                    struct verdict *v)
{
    const char *text = arena_strdup(a, json_string_or(answer, "text", "the plan failed"));
    int line = (int)json_int_or(answer, "line", 0);
    bool launch = strcmp(json_string_or(answer, "kind", ""), "launch") == 0;
    const char *hint = json_string_or(answer, "hint", "");
    verdict_set(v, launch ? VERDICT_BAD_LAUNCH : VERDICT_BAD_PLAN, text);
    if (*hint != '\0')
        v->advice = arena_strdup(a, hint);
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

/* It may read the plan's PTX and write its answer; it adds its own filter (planner_confine.c). */
static void confine_planner(const char *program, const char *ptx_path, struct arena *a,
                            struct confine_policy *policy)
{
    const char *const read[] = {ptx_path, NULL};
    struct confine_place place = {.program = program, .read = read};

    confine_role(policy, ROLE_PLANNER, &place, a);
}

bool plan_run(const char *ptx_path, const json_t *request, struct text source, const char *name,
              struct arena *a, json_t **launches, struct verdict *verdict, struct error *err)
{
    char *planner;
    const char *argv[] = {NULL, path_from_here(a, ptx_path), NULL}, *env[] = {"LC_ALL=C", NULL};
    struct confine_policy policy;
    struct proc_cage cage;
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
    confine_planner(planner, argv[1], a, &policy);
    spec.cage = confine_cage(&policy, &cage);
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
