/*
 * simtc.c - PTX to a shared object that the simt device loads: the asking side.
 */
#include "toolchain/simtc.h"

#include "base/fs.h"
#include "base/json.h"
#include "base/proc.h"

#include <stdio.h>
#include <string.h>

enum { MAX_KERNELS = 64, MAX_BLOCKS = 8, WALL_FACTOR = 10 };

static void verdict_of(const json_t *error, struct arena *a, struct verdict *v)
{
    const char *text = json_string_or(error, "text", "simt cannot translate this PTX");
    memset(v, 0, sizeof *v);
    v->kind = VERDICT_COMPILE_ERROR;
    v->summary = arena_printf(a, "simt: %s", text);
    v->detail = arena_printf(a, "%s\n%s", v->summary, json_string_or(error, "detail", ""));
    if (json_int_or(error, "line", 0) > 0) {
        v->findings[0] = (struct finding){
            .kind = "compile error",
            .where = arena_printf(a, "%s:%d", json_string_or(error, "file", "candidate.cu"),
                                  (int)json_int_or(error, "line", 0)),
            .line = "",
            .text = v->summary};
        v->finding_count = 1;
    }
}

static bool take(const struct proc_result *r, struct arena *a, struct build_result *build,
                 struct error *err)
{
    json_t *answer = NULL, *error;
    const char *so;
    build->module_path = NULL;
    if (r->end == PROC_DEADLINE || proc_out_of_cpu(r)) {
        memset(&build->verdict, 0, sizeof build->verdict);
        build->verdict.kind = VERDICT_COMPILE_TIMEOUT;
        build->verdict.summary =
            arena_printf(a, "simt's C compiler was stopped after %d s", r->cpu_ms / 1000);
        build->verdict.detail = "";
        return true;
    }
    if (r->out.len == 0 || !json_parse(r->out, "cutegen-simtc's answer", &answer, err)) {
        error_set(err, ERROR_MACHINE, "cutegen-simtc gave no answer (%s): %.300s",
                  proc_end_text(r, a), r->err.data);
        return false;
    }
    error = json_object_get(answer, "error");
    so = json_string_or(answer, "so", NULL);
    if (so != NULL)
        build->module_path = arena_strdup(a, so);
    else if (strcmp(json_string_or(error, "kind", ""), "kernel") == 0)
        verdict_of(error, a, &build->verdict);
    else
        error_set(err, ERROR_MACHINE, "%s", json_string_or(error, "text", "cutegen-simtc failed"));
    if (err->kind != ERROR_NONE && *json_string_or(error, "hint", "") != '\0')
        error_hint(err, "%s", json_string_or(error, "hint", ""));
    json_decref(answer);
    return build->module_path != NULL || build->verdict.kind != VERDICT_PASS;
}

/* The blocks the plan launches a kernel with, so that it is translated for those alone. Past a
 * few it is translated for any. */
static int add_blocks(const json_t *launches, const char *kernel, struct arena *a,
                      const char **argv)
{
    const json_t *ops = json_object_get(launches, "ops");
    int n = 0;
    for (size_t i = 0; i < json_array_size(ops); i++) {
        const json_t *op = json_array_get(ops, i), *block = json_object_get(op, "block");
        if (strcmp(json_string_or(op, "kernel", ""), kernel) != 0)
            continue;
        if (json_array_size(block) != 3 || n == 2 * MAX_BLOCKS)
            return 0;
        argv[n++] = "--block";
        argv[n++] = arena_printf(a, "%d,%d,%d", (int)json_integer_value(json_array_get(block, 0)),
                                 (int)json_integer_value(json_array_get(block, 1)),
                                 (int)json_integer_value(json_array_get(block, 2)));
    }
    return n;
}

bool simtc_translate(const struct tools *tools, int deadline_ms, struct arena *a,
                     struct build_result *build, struct error *err)
{
    const char *argv[(2 + 2 * MAX_BLOCKS) * MAX_KERNELS + 16], *key;
    char *program, *cache;
    struct proc_spec spec = {
        .argv = argv,
        .no_network = true,
        /* by the clock: as much more as a busy machine may need */
        .deadline_ms = deadline_ms < INT32_MAX / WALL_FACTOR ? WALL_FACTOR * deadline_ms : 0,
        .cpu_limit_s = deadline_ms / 1000,
        .output_limit = 1 << 20,
        .address_limit_bytes = PROC_OWN_ADDRESS_LIMIT((uint64_t)8 << 30)};
    struct proc_result r;
    json_t *value;
    int n = 0, kernels = 0;

    if (!home_program("cutegen-simtc", a, &program, err) || !home_cache("simt", a, &cache, err))
        return false;
    argv[n++] = program;
    argv[n++] = "--ptx";
    argv[n++] = build->ptx_path;
    json_object_foreach(build->names, key, value)
    {
        if (kernels++ == MAX_KERNELS)
            return error_set(err, ERROR_USE, "more than %d kernels in one plan", MAX_KERNELS);
        argv[n++] = "--kernel";
        argv[n++] = json_string_value(value);
        n += add_blocks(build->launches, key, a, argv + n);
    }
    argv[n++] = "--cc";
    argv[n++] = tools->cc;
    argv[n++] = "--cache";
    argv[n++] = cache;
    argv[n] = NULL;
    if (!proc_run(&spec, a, &r, err) || !take(&r, a, build, err))
        return error_add(err, "translating PTX for simt");
    return true;
}
