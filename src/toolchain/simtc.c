/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simtc.c - translate PTX to a shared object that the simt device loads: the client side.
 *
 * The object is made in a separate folder. The cache is on this, the trusted side: cutegen-simtc
 * and the compiler it starts can access only the PTX, the compiler and that folder.
 */
#include "toolchain/simtc.h"

#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/proc.h"
#include "confine/confine.h"
#include "toolchain/build_cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    MAX_KERNELS = 1024, /* as simtc_main.c takes them */
    MAX_BLOCKS = 8,
    WALL_FACTOR = 10,
    PTX_LIMIT = 64 << 20,
    CPU_BYTES = 16 << 10
};
#define DISK_BYTES ((uint64_t)4 << 30)

static const char *const kept_files[] = {"kernel.so"};

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

/* Accepts only a plain file: a link could make us read what the compiler must not. */
static bool move_object(const char *made, const char *so)
{
    struct stat st;

    return lstat(made, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1 &&
           rename(made, so) == 0;
}

/* `made` is the path of the object; whatever the answer says, no other is used. */
static bool take(const struct proc_result *r, const char *made, char *so, struct arena *a,
                 struct build_result *build, struct error *err)
{
    json_t *answer = NULL, *error;
    build->module_path = NULL;
    if (r->end == PROC_DEADLINE || proc_out_of_cpu(r)) {
        memset(&build->verdict, 0, sizeof build->verdict);
        build->verdict.kind = VERDICT_COMPILE_TIMEOUT;
        build->verdict.summary =
            arena_printf(a, "simt's C compiler was stopped after %d s", r->cpu_ms / 1000);
        build->verdict.detail = "";
        return true;
    }
    if (r->end == PROC_MEMORY || r->end == PROC_DISK) {
        memset(&build->verdict, 0, sizeof build->verdict);
        build->verdict.kind = VERDICT_COMPILE_ERROR;
        build->verdict.summary = arena_printf(a, "simt's C compiler: %s", proc_end_text(r, a));
        build->verdict.detail = "";
        return true;
    }
    if (r->out.len == 0 || !json_parse(r->out, "cutegen-simtc's answer", &answer, err)) {
        error_set(err, ERROR_MACHINE, "cutegen-simtc gave no answer (%s): %.300s",
                  proc_end_text(r, a), r->err.data);
        return false;
    }
    error = json_object_get(answer, "error");
    if (json_string_or(answer, "so", NULL) != NULL && move_object(made, so))
        build->module_path = so;
    else if (strcmp(json_string_or(error, "kind", ""), "kernel") == 0)
        verdict_of(error, a, &build->verdict);
    else
        error_set(err, ERROR_MACHINE, "%s", json_string_or(error, "text", "cutegen-simtc failed"));
    if (err->kind != ERROR_NONE && *json_string_or(error, "hint", "") != '\0')
        error_hint(err, "%s", json_string_or(error, "hint", ""));
    json_decref(answer);
    return build->module_path != NULL || build->verdict.kind != VERDICT_PASS;
}

/* The block sizes with which the plan launches a kernel, so that it is translated only for those.
 * With more than a few it is translated for any. */
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

/* Identifies this machine's processor, for which the object is compiled. */
static struct text processor(struct arena *a)
{
    static const char *const words[] = {"\nflags", "\nFeatures"};
    char *info = arena_alloc(a, CPU_BYTES + 1); /* the first of many that are alike */
    FILE *f = fopen("/proc/cpuinfo", "r");

    if (!f)
        return text_of("");
    (void)!fread(info, 1, CPU_BYTES, f);
    fclose(f);
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        const char *line = strstr(info, words[i]);

        if (line)
            return (struct text){line + 1, strcspn(line + 1, "\n")};
    }
    return text_of("");
}

/* The cache key: PTX, options, translator, compiler and processor. */
static bool cache_key(const struct tools *tools, const char *ptx_path, const char *const *argv,
                      int asked, struct arena *a, char key[65], struct error *err)
{
    struct hash h = hash_init();
    struct text ptx;
    struct stat st;

    if (!file_read(ptx_path, PTX_LIMIT, a, &ptx, err))
        return false;
    if (stat(argv[0], &st) != 0)
        return error_set(err, ERROR_MACHINE, "there is no %s", argv[0]);
    hash_add_text(&h, text_of("cutegen simt 2 " CUTEGEN_VERSION));
    hash_add(&h, &st.st_mtim, sizeof st.st_mtim);
    hash_add(&h, &st.st_size, sizeof st.st_size);
    hash_add_text(&h, ptx);
    for (int i = 0; i < asked; i++)
        hash_add_text(&h, text_of(argv[i]));
    hash_add_text(&h, text_of(tools->cc_version ? tools->cc_version : ""));
    hash_add_text(&h, processor(a));
    hash_hex(&h, key);
    return true;
}

/* Only what the loader and the compiler's driver need. */
static const char *const *environment(struct arena *a)
{
    static const char *const names[] = {"PATH", "LD_LIBRARY_PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS"};
    const char **env = arena_array(a, ARRAY_LEN(names) + 3, sizeof *env);
    size_t n = 0;

    env[n++] = "LC_ALL=C";
    env[n++] = "CCACHE_DISABLE=1"; /* its cache is out of reach */
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (getenv(names[i]))
            env[n++] = arena_printf(a, "%s=%s", names[i], getenv(names[i]));
    return env;
}

/* Runs cutegen-simtc, confined; `made` is the object it was asked for. */
static bool run_confined(const struct tools *tools, const char *const *argv, const char *ptx_path,
                         const char *folder, int deadline_ms, struct arena *a,
                         struct proc_result *r, struct error *err)
{
    const char *const read[] = {ptx_path, NULL};
    struct confine_place place = {
        .program = argv[0], .compiler = tools->cc, .read = read, .work = folder};
    struct confine_policy policy;
    struct proc_cage cage;
    struct proc_spec spec = {
        .argv = argv,
        .env = environment(a),
        .clean_env = true,
        .private_tmp = true,
        /* wall time, with a margin for a busy machine */
        .deadline_ms = deadline_ms < INT32_MAX / WALL_FACTOR ? WALL_FACTOR * deadline_ms : 0,
        .cpu_limit_s = deadline_ms / 1000,
        .output_limit = 1 << 20,
        .resident_limit_bytes = confine_memory(ROLE_SIMTC),
        .disk_limit_bytes = DISK_BYTES,
        .watch_dir = folder,
        .address_limit_bytes = PROC_OWN_ADDRESS_LIMIT((uint64_t)8 << 30)};

    if (!dir_make(folder, err))
        return false;
    confine_role(&policy, ROLE_SIMTC, &place, a);
    spec.cage = confine_cage(&policy, &cage);
    return proc_run(&spec, a, r, err);
}

bool simtc_translate(const struct tools *tools, int deadline_ms, struct arena *a,
                     struct build_result *build, struct error *err)
{
    const char **argv, *key;
    char *program, *so = path_join(a, build->work_dir, kept_files[0]), cache[65];
    char *folder = path_join(a, build->work_dir, "simtc");
    char *made = path_join(a, folder, kept_files[0]);
    struct proc_result r;
    json_t *value;
    int n = 0, kernels = 0;

    if (!home_program("cutegen-simtc", a, &program, err))
        return false;
    argv =
        arena_array(a, (2 + 2 * MAX_BLOCKS) * json_object_size(build->names) + 16, sizeof(*argv));
    argv[n++] = program;
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
    if (!cache_key(tools, build->ptx_path, argv, n, a, cache, err))
        return error_add(err, "translating PTX for simt");
    if (build_cache_fetch(cache, build->work_dir, kept_files, ARRAY_LEN(kept_files), a)) {
        build->module_path = so;
        return true;
    }
    argv[n++] = "--ptx";
    argv[n++] = build->ptx_path;
    argv[n++] = "--so";
    argv[n++] = made;
    argv[n] = NULL;
    if (!run_confined(tools, argv, build->ptx_path, folder, deadline_ms, a, &r, err) ||
        !take(&r, made, so, a, build, err))
        return error_add(err, "translating PTX for simt");
    if (build->module_path)
        build_cache_keep(cache, build->work_dir, kept_files, ARRAY_LEN(kept_files), a);
    return true;
}
