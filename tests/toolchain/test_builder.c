/* test_builder.c - the builder with a real NVRTC and CuTe; skipped where there is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/fs.h"
#include "base/json.h"
#include "base/sanitized.h"
#include "confine/confine.h"
#include "toolchain/build_cache.h"
#include "toolchain/builder.h"
#include "toolchain/gate.h"
#include "toolchain/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

struct fixture {
    struct arena *a;
    struct tools tools;
    struct builder *builder;
    char *dir;
    struct text example;
};

static void check_machine(bool ok, const struct error *err)
{
    if (!ok)
        fail_msg("the machine: %s (%s)", err->text, err->hint);
}

static int fixture_open(void **state)
{
    struct fixture *f = xmalloc(sizeof *f);
    struct error err = {0};
    f->a = arena_new();
    *state = f;
    if (!dir_temp("builder", f->a, &f->dir, &err))
        return -1;
    setenv("CUTEGEN_CACHE", path_join(f->a, f->dir, "cache"), 1); /* nothing from before */
    if (!tools_find(&(struct tools_config){0}, f->a, &f->tools, &err)) {
        print_message("[  SKIPPED ] %s\n", err.text);
        return 0;
    }
    if (!file_read(arena_printf(f->a, "%s/../abi/example.cu", getenv("TEST_SOURCES")), 1 << 20,
                   f->a, &f->example, &err))
        return -1;
    if (!builder_start(&(struct builder_config){.tools = &f->tools, .warm_arch = "compute_80"},
                       &f->builder, &err)) {
        print_message("%s\n", err.text);
        return -1;
    }
    return 0;
}

static int fixture_close(void **state)
{
    struct fixture *f = *state;
    struct error err = {0};
    builder_stop(f->builder);
    dir_remove(f->dir, &err);
    arena_free(f->a);
    xfree(f);
    return 0;
}

static struct build_result build(struct fixture *f, struct text source, const char *names,
                                 const char *arch, int deadline_ms)
{
    static int count;
    struct error err = {0};
    struct build_result r = {0};
    json_t *list = NULL;
    char *work = arena_printf(f->a, "%s/work%d", f->dir, count++);
    check_machine(dir_make(work, &err), &err);
    check_machine(json_parse(text_of(names), "names", &list, &err), &err);
    struct build_request req = {.source = source,
                                .name = "mine.cu",
                                .arch = arch,
                                .cubin = true,
                                .work_dir = work,
                                .deadline_ms = deadline_ms};
    if (json_is_array(list))
        req.names = list;
    else
        req.launches = list;
    check_machine(builder_compile(f->builder, &req, f->a, &r, &err), &err);
    json_decref(list);
    return r;
}

static long file_size(const char *path)
{
    struct stat st;
    return path != NULL && stat(path, &st) == 0 ? (long)st.st_size : -1;
}

static const char names[] = "[\"swish<256>\", \"row_sum<128>\"]";

static void test_builds(void **state)
{
    struct fixture *f = *state;
    if (f->builder == NULL)
        return;
    struct build_result r = build(f, f->example, names, "compute_80", 120000);
    if (r.verdict.kind != VERDICT_PASS)
        fail_msg("%s\n%s", r.verdict.summary, r.verdict.detail);
    const char *lowered = json_string_value(json_object_get(r.names, "swish<256>"));
    assert_non_null(lowered);
    assert_true(json_int_or(json_object_get(r.resources, lowered), "registers", 0) > 0);
    assert_true(file_size(r.ptx_path) > 1000 && file_size(r.ptx_path) < 40000); /* stripped */
    assert_true(file_size(r.cubin_path) > 1000);
    assert_false(r.cached);

    struct build_result again = build(f, f->example, names, "compute_80", 120000);
    assert_true(again.cached);
    assert_int_equal(again.verdict.kind, VERDICT_PASS);
    assert_true(json_equal(r.names, again.names));
    assert_true(json_equal(r.resources, again.resources));
    assert_int_equal(file_size(r.ptx_path), file_size(again.ptx_path));

    struct text planned = text_of(arena_printf(
        f->a, "%s#ifdef CUTEGEN_HOST\n/* more of a plan */\n#endif\n", f->example.data));
    struct build_result plan_only = build(f, planned, names, "compute_80", 120000);
    assert_true(plan_only.cached); /* the plan is not NVRTC's to compile */
    assert_true(json_equal(r.names, plan_only.names));

    struct build_result other = build(f, f->example, "[\"swish<128>\"]", "compute_80", 120000);
    assert_false(other.cached); /* another name is another build */
    json_decref(r.names), json_decref(r.resources);
    json_decref(again.names), json_decref(again.resources);
    json_decref(plan_only.names), json_decref(plan_only.resources);
    json_decref(other.names), json_decref(other.resources);
}

static const struct verdict_case {
    const char *name, *device, *asked; /* names, or a launch list */
    const char *arch;
    enum verdict_kind kind;
    const char *text;
} verdicts[] = {
    {"a compile error has the user's file and line", "__global__ void k(float *y) { y[0] = z; }",
     "[\"k\"]", "compute_80", VERDICT_COMPILE_ERROR,
     "mine.cu:4: __global__ void k(float *y) { y[0] = z; }: identifier \"z\" is undefined"},
    {"a kernel that is not there", "__global__ void k(float *y) { y[0] = 1; }", "[\"other<3>\"]",
     "compute_80", VERDICT_COMPILE_ERROR, "a kernel the plan launches"},
    {"a compile error comes from the cache alike", "__global__ void k(float *y) { y[0] = z; }",
     "[\"k\"]", "compute_80", VERDICT_COMPILE_ERROR,
     "mine.cu:4: __global__ void k(float *y) { y[0] = z; }: identifier \"z\" is undefined"},
    {"state in a variable without a word",
     "int calls;\n__global__ void k(float *y) { y[0] = ++calls; }", "[\"k\"]", "compute_80",
     VERDICT_REFUSED, "mine.cu:5: writes a module variable"},
    {"state in an initialised table",
     "float kept[4] = {1, 2, 3, 4};\n__global__ void k(float *y) { y[0] = kept[threadIdx.x]; "
     "kept[threadIdx.x] = "
     "2; }",
     "[\"k\"]", "compute_80", VERDICT_REFUSED, "mine.cu:5: writes a module variable"},
    {"a constant table is not state",
     "constexpr float t[4] = {1, 2, 3, 4};\n__global__ void k(float *y) { y[0] = t[threadIdx.x]; }",
     "[\"k\"]", "compute_80", VERDICT_PASS, "built"},
    {"an argument of the wrong kind", "__global__ void k(float *y, float s) { y[0] = s; }",
     "{\"ops\": [{\"op\": \"launch\", \"kernel\": \"k\", \"line\": 4, \"block\": [1, 1, 1], "
     "\"args\": "
     "[{\"buffer\": \"out0\", \"offset\": 0}, {\"bytes\": \"01000000\", \"type\": \"int\"}]}]}",
     "compute_80", VERDICT_BAD_LAUNCH, "mine.cu:4: launch of k: argument 2 is an integer"},
    {"tensor maps on sm_90a",
     "__global__ void k(const __grid_constant__ CUtensorMap m, float *y) {\n"
     "  __shared__ alignas(128) float s[64]; __shared__ uint64_t bar;\n"
     "  cute::SM90_TMA_LOAD_2D::copy(&m, &bar, 0, s, 0, 0); y[0] = s[0]; }",
     "{\"ops\": [{\"op\": \"launch\", \"kernel\": \"k\", \"line\": 4, \"block\": [1, 1, 1], "
     "\"args\": "
     "[{\"map\": 0}, {\"buffer\": \"out0\", \"offset\": 0}]}]}",
     "sm_90a", VERDICT_PASS, "built"},
};

static void test_verdicts(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < ARRAY_LEN(verdicts) && f->builder != NULL; i++) {
        const struct verdict_case *c = &verdicts[i];
        char *source = arena_printf(f->a,
                                    "#include <cutegen/kernel.h>\n#ifdef CUTEGEN_DEVICE\n"
                                    "#include <cute/tensor.hpp>\n%s\n#endif\n",
                                    c->device);
        struct build_result r = build(f, text_of(source), c->asked, c->arch, 120000);
        if (r.verdict.kind != c->kind || strstr(r.verdict.summary, c->text) == NULL)
            fail_msg("%s: '%s': %s\n%s", c->name, verdict_names[r.verdict.kind], r.verdict.summary,
                     r.verdict.detail);
        json_decref(r.names), json_decref(r.resources);
    }
}

/* A compile that is stopped is a verdict, and the next one works. The process that follows one that
 * was stopped precompiles CuTe first: that time is not the source's. */
static void test_deadline(void **state)
{
    struct fixture *f = *state;
    if (f->builder == NULL)
        return;
    struct text source = text_of(arena_printf(f->a, "// again\n%s", f->example.data));
    struct build_result r = build(f, source, names, "compute_80", 5);
    assert_int_equal(r.verdict.kind, VERDICT_COMPILE_TIMEOUT);
    r = build(f, source, names, "compute_80", 5);
    assert_int_equal(r.verdict.kind, VERDICT_COMPILE_TIMEOUT);
    r = build(f, source, names, "compute_80", 120000);
    assert_int_equal(r.verdict.kind, VERDICT_PASS);
    assert_false(r.cached);
    json_decref(r.names), json_decref(r.resources);
}

static void test_broken_nvrtc(void **state)
{
    struct fixture *f = *state;
    struct error err = {0};
    struct build_result r = {0};
    struct tools broken = f->tools;
    struct builder *b = NULL;
    if (f->builder == NULL)
        return;
    broken.nvrtc = "/nowhere/libnvrtc.so.13";
    check_machine(
        builder_start(&(struct builder_config){.tools = &broken, .no_cache = true}, &b, &err),
        &err);
    assert_false(builder_compile(
        b,
        &(struct build_request){
            .source = f->example, .arch = "compute_80", .work_dir = f->dir, .deadline_ms = 1000},
        f->a, &r, &err));
    assert_int_equal(err.kind, ERROR_MACHINE);
    assert_non_null(strstr(err.text, "/nowhere/libnvrtc.so.13"));
    builder_stop(b);
}

#ifndef SANITIZED /* NVRTC's work is the same there, and precompiler.c has a test of its own */
/* What was learned from a kernel makes no difference to the code of the next. */
static void test_learning(void **state)
{
    struct fixture *f = *state;
    struct builder *plain = f->builder, *b = NULL;
    struct error err = {0};
    struct text ptx, other, answer;
    struct statvfs room;
    bool learned = false;

    if (plain == NULL)
        return;
    if (statvfs(f->dir, &room) != 0 || (uint64_t)room.f_bavail * room.f_frsize < (uint64_t)9
                                                                                     << 30) {
        print_message("[  SKIPPED ] no room for what is learned\n");
        return;
    }
    check_machine(
        builder_start(&(struct builder_config){.tools = &f->tools, .learn_ms = 1}, &b, &err), &err);
    f->builder = b;
    for (int i = 0; !learned; i++) { /* as long as it takes: a busy machine is slow */
        struct text source = text_of(arena_printf(f->a, "// edit %d\n%s", i, f->example.data));
        struct build_result r = build(f, source, names, "compute_80", 120000);

        assert_int_equal(r.verdict.kind, VERDICT_PASS);
        check_machine(
            file_read(path_join(f->a, r.work_dir, "build.json"), 1 << 20, f->a, &answer, &err) &&
                file_read(r.ptx_path, 1 << 24, f->a, i ? &other : &ptx, &err),
            &err);
        assert_true(i == 0 || text_equal(ptx, other));
        learned = strstr(answer.data, "\"learned\"") != NULL;
        json_decref(r.names), json_decref(r.resources);
        sleep(5); /* each further compile takes time from what is learned */
    }
    f->builder = plain;
    builder_stop(b);
}
#endif

/* A compiler that dies is a verdict with advice: the name that kills ptxas where it is there. */
static void test_crashing_nvrtc(void **state)
{
    static const struct {
        const char *source, *advice;
    } cases[] = {{"__global__ void k() { __shared__ float SMEM[4]; }", "rename SMEM"},
                 {"__global__ void k() { __shared__ float SMEM_A[4], MY_SMEM; }", "simplify"},
                 {"__global__ void k() {}", "simplify"}};
    struct fixture *f = *state;
    struct tools crashing = f->tools;
    struct error err = {0};
    struct builder *b = NULL;

    if (f->builder == NULL)
        return;
    crashing.nvrtc = getenv("CRASH_NVRTC");
    check_machine(
        builder_start(&(struct builder_config){.tools = &crashing, .no_cache = true}, &b, &err),
        &err);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct build_result r = {0};
        struct build_request req = {.source = text_of(cases[i].source),
                                    .arch = "compute_80",
                                    .work_dir = f->dir,
                                    .deadline_ms = 60000};

        check_machine(builder_compile(b, &req, f->a, &r, &err), &err);
        assert_int_equal(r.verdict.kind, VERDICT_COMPILE_ERROR);
        assert_non_null(strstr(r.verdict.summary, "crashed"));
        assert_non_null(strstr(r.verdict.advice, cases[i].advice));
    }
    builder_stop(b);
}

static const struct cute_case {
    const char *name, *body;
    bool refused;
} cute_cases[] = {
    {"tensors", "Tensor gY = make_tensor(make_gmem_ptr(y), n); gY(i) = gX(i);", false},
    {"a loop whose addresses the compiler counts up",
     "Tensor gY = make_tensor(make_gmem_ptr(y), n);\n"
     "float p = 1; for (int k = 0; k < n; k++) gY(k) = p *= gX(k);",
     false},
    {"sums whose result is stored plainly",
     "float s = 0; for (int k = i; k < n; k += 128) s += gX(k); y[blockIdx.x] = s;", false},
    {"a layout for show", "auto l = make_layout(1); int j = i + l(0); y[j] = x[j];", true},
    {"a tensor for show", "y[i] = x[i]; y[i + n] = x[i + n] + 0 * gX(0);", true},
    {"plain accesses in a lambda", "for_each(make_int_sequence<1>{}, [&](auto) { y[i] = x[i]; });",
     true},
};

/* A refusal compiles again without precompiled headers: sanitizers see one of each. */
#ifdef SANITIZED
enum { EACH_CUTE_CASE = 3 };
#else
enum { EACH_CUTE_CASE = 1 };
#endif

static void test_cute_is_used(void **state)
{
    struct fixture *f = *state;
    struct error err = {0};

    struct tools elsewhere = f->tools;
    struct builder *other = NULL;

    if (f->builder == NULL)
        return;
    elsewhere.nvrtc = "/nowhere/libnvrtc.so.13"; /* nothing is compiled there */
    memset(elsewhere.includes, 0, sizeof elsewhere.includes);
    elsewhere.includes[0] = "/nowhere/include";
    check_machine(builder_start(&(struct builder_config){.tools = &elsewhere}, &other, &err), &err);
    for (size_t i = 0; i < ARRAY_LEN(cute_cases); i += EACH_CUTE_CASE) {
        const struct cute_case *c = &cute_cases[i];
        struct build_result r[3] = {0};
        json_t *list = json_pack("[s]", "k");
        struct build_request req = {
            .source = text_of(
                arena_printf(f->a,
                             "#include <cute/tensor.hpp>\nusing namespace cute;\n"
                             "extern \"C\" __global__ void k(float const *x, float *y, int n) {\n"
                             "int i = blockIdx.x * 128 + threadIdx.x;\n"
                             "Tensor gX = make_tensor(make_gmem_ptr(x), n);\n%s }\n",
                             c->body)),
            .names = list,
            .arch = "compute_80",
            .cute = true,
            .work_dir = arena_printf(f->a, "%s/cute%zu", f->dir, i),
            .deadline_ms = 120000};

        check_machine(dir_make(req.work_dir, &err), &err);
        for (int k = 0; k < 3;
             k++) { /* again from the cache; then where the headers lie elsewhere */
            check_machine(builder_compile(k < 2 ? f->builder : other, &req, f->a, &r[k], &err),
                          &err);
            assert_int_equal(r[k].cached, k > 0);
            if ((r[k].verdict.kind == VERDICT_REFUSED) != c->refused ||
                (!c->refused && r[k].verdict.kind != VERDICT_PASS))
                fail_msg("%s: %s\n%s", c->name, r[k].verdict.summary, r[k].verdict.detail);
            assert_true(!c->refused || strstr(r[k].verdict.findings[0].kind, "fake CuTe"));
            json_decref(r[k].names), json_decref(r[k].resources);
        }
        json_decref(list);
    }
    builder_stop(other);
}

/* Many writers of one entry: one wins, all can read it. */
static void test_cache_race(void **state)
{
    static const char *const files[] = {"kernel.ptx", "build.json", "missing"};
    static const char key[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    struct fixture *f = *state;
    struct error err = {0};
    struct text got;
    char *from = path_join(f->a, f->dir, "from"), *to = path_join(f->a, f->dir, "to");
    pid_t pids[8];
    check_machine(dir_make(from, &err) && dir_make(to, &err), &err);
    check_machine(file_write(path_join(f->a, from, "kernel.ptx"), text_of("ptx"), &err) &&
                      file_write(path_join(f->a, from, "build.json"), text_of("{}"), &err),
                  &err);
    assert_false(build_cache_fetch(key, to, files, ARRAY_LEN(files), f->a));
    for (size_t i = 0; i < ARRAY_LEN(pids); i++)
        if ((pids[i] = fork()) == 0) {
            build_cache_keep(key, from, files, ARRAY_LEN(files), f->a);
            _exit(0);
        }
    for (size_t i = 0; i < ARRAY_LEN(pids); i++)
        waitpid(pids[i], NULL, 0);
    assert_true(build_cache_fetch(key, to, files, ARRAY_LEN(files), f->a));
    check_machine(file_read(path_join(f->a, to, "kernel.ptx"), 100, f->a, &got, &err), &err);
    assert_string_equal(got.data, "ptx");
    build_cache_prune(0, f->a);
    assert_false(build_cache_fetch(key, to, files, ARRAY_LEN(files), f->a));
}

/* From the text of a candidate to code, as a stage does it. */
static void test_whole_way(void **state)
{
    static const char request[] =
        "{\"inputs\": [{\"dtype\": \"f32\", \"shape\": [16, 128], \"strides\": [128, 1]}], "
        "\"outputs\": "
        "[{\"dtype\": \"f32\", \"shape\": [16, 128], \"strides\": [128, 1]}, {\"dtype\": \"f32\", "
        "\"shape\": [16], "
        "\"strides\": [1]}], \"scalars\": [{\"type\": \"float\", \"value\": 2.0}], \"device\": "
        "{\"arch\": 80, "
        "\"sm_count\": 108, \"smem_block_bytes\": 166912, \"l2_bytes\": 41943040}}";
    struct fixture *f = *state;
    struct error err = {0};
    struct verdict v;
    struct build_result r = {0};
    json_t *asked = NULL, *launches = NULL;
    const char *ptx;
    if (f->builder == NULL)
        return;
    assert_false(gate_refuses(f->example, "example.cu", f->a, &v));
    check_machine(plan_compile(f->builder, f->example, "example.cu", f->dir, f->a, &ptx, &v, &err),
                  &err);
    assert_int_equal(v.kind, VERDICT_PASS);
    check_machine(json_parse(text_of(request), "request", &asked, &err), &err);
    check_machine(plan_run(ptx, asked, f->example, "example.cu", f->a, &launches, &v, &err), &err);
    assert_int_equal(v.kind, VERDICT_PASS);
    check_machine(builder_compile(f->builder,
                                  &(struct build_request){.source = f->example,
                                                          .name = "example.cu",
                                                          .launches = launches,
                                                          .arch = "compute_80",
                                                          .cubin = true,
                                                          .work_dir = f->dir,
                                                          .deadline_ms = 120000},
                                  f->a, &r, &err),
                  &err);
    if (r.verdict.kind != VERDICT_PASS)
        fail_msg("%s", r.verdict.summary);
    assert_int_equal(json_object_size(r.names), 2);
    json_decref(r.names), json_decref(r.resources), json_decref(launches), json_decref(asked);
}

/* A name reaches the compiler as it is: what is no name never does. */
static void test_names_that_are_none(void **state)
{
    static const char *const wrong[] = {"k);\n#include \"/etc/passwd\"\n(k", "k; int x", "k)(", ""};
    struct fixture *f = *state;
    if (f->builder == NULL)
        return;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct build_result r = {0};
        struct error err = {0};
        json_t *list = json_pack("[s]", wrong[i]);
        check_machine(
            builder_compile(f->builder,
                            &(struct build_request){.source = text_of("__global__ void k() {}\n"),
                                                    .names = list,
                                                    .arch = "compute_80",
                                                    .work_dir = f->dir,
                                                    .deadline_ms = 120000},
                            f->a, &r, &err),
            &err);
        assert_int_equal(r.verdict.kind, VERDICT_BAD_PLAN);
        json_decref(list), json_decref(r.names), json_decref(r.resources);
    }
}

/* NVRTC opens absolute names, however they are spelled, and quotes what it does not understand. No
 * gate stands before it here. */
static const struct {
    const char *before, *after;
} spellings[] = {
    {"#include \"", "\"\n"},
    {"%:include \"", "\"\n"},
    {"#define WHERE \"", "\"\n#include WHERE\n"},
    {"#inc\\\nlude \"", "\"\n"},
    {"#include \"/usr/..", "\"\n"},
    {"#include \"/proc/self/root", "\"\n"},
};

static const char *spell(struct fixture *f, size_t i, const char *path)
{
    return arena_printf(f->a, "%s%s%s", spellings[i].before, path, spellings[i].after);
}

/* `planted`: what the file holds, or how it begins. */
static void check_out_of_reach(struct fixture *f, const char *path, const char *planted)
{
    for (size_t i = 0; i < ARRAY_LEN(spellings); i++) {
        const char *device = arena_printf(f->a, "%s__global__ void k() {}\n", spell(f, i, path));
        struct build_result r = build(f, text_of(device), "[\"k\"]", "compute_80", 120000);
        const char *ptx,
            *plan = arena_printf(f->a, "#ifdef CUTEGEN_HOST\n%s#endif\n", spell(f, i, path));
        struct error err = {0};
        struct verdict v;
        struct text log;

        check_machine(file_read(r.log_path, 1 << 20, f->a, &log, &err), &err);
        if (r.verdict.kind != VERDICT_COMPILE_ERROR || !strstr(log.data, "open source file") ||
            strstr(log.data, planted) || strstr(r.verdict.detail, planted))
            fail_msg("a kernel's %s: %s\n%s", spell(f, i, path), r.verdict.summary, log.data);
        json_decref(r.names), json_decref(r.resources);
        check_machine(plan_compile(f->builder, text_of(plan), "p.cu", f->dir, f->a, &ptx, &v, &err),
                      &err);
        if (v.kind != VERDICT_COMPILE_ERROR || !strstr(v.summary, "open source file") ||
            strstr(v.detail, planted))
            fail_msg("a plan's %s: %s\n%s", spell(f, i, path), v.summary, v.detail);
    }
}

static void test_files_out_of_reach(void **state)
{
    static const char planted[] = "planted_word another_planted_word";
    struct fixture *f = *state;
    struct error err = {0};
    struct confine_report report;
    struct text users;
    char *home, *near;
    int fd;

    if (f->builder == NULL)
        return;
    if (!confine_probe(&report, &err) || !confine_holds_files(&report)) {
        print_message("[  SKIPPED ] neither Landlock nor namespaces here\n");
        return;
    }
    check_machine(file_read("/etc/passwd", 1 << 20, f->a, &users, &err), &err);
    check_out_of_reach(f, "/etc/passwd",
                       arena_strndup(f->a, users.data, strcspn(users.data, "\n")));
    near = path_join(f->a, f->dir, "near.h"); /* in the asking command's own folder */
    check_machine(file_write(near, text_of(planted), &err), &err);
    check_out_of_reach(f, near, "planted_word");
    home = arena_printf(f->a, "%s/.cutegen-test-XXXXXX", getenv("HOME") ? getenv("HOME") : "");
    if ((fd = mkstemp(home)) < 0)
        return; /* no home to plant in */
    close(fd);
    check_machine(file_write(home, text_of(planted), &err), &err);
    check_out_of_reach(f, home, "planted_word");
    unlink(home);
}

/* A source need not be UTF-8, though requests are. */
static void test_source_of_any_bytes(void **state)
{
    static const char source[] = "// caf\xe9 is served\n"
                                 "extern \"C\" __global__ void k(int *y) { y[0] = 1; }\n";
    struct fixture *f = *state;
    if (f->builder == NULL)
        return;
    struct build_result r = build(f, text_of(source), "[\"k\"]", "compute_80", 120000);
    if (r.verdict.kind != VERDICT_PASS)
        fail_msg("%s\n%s", r.verdict.summary, r.verdict.detail);
    json_decref(r.names), json_decref(r.resources);
}

/* A header that was precompiled inside is found again. */
static void test_precompiled_header_is_used(void **state)
{
    struct fixture *f = *state;
    struct error err = {0};
    struct text answer;

    for (int i = 0; f->builder != NULL && i < 2; i++) {
        struct text source = text_of(arena_printf(f->a, "%s// header %d\n", f->example.data, i));
        struct build_result r = build(f, source, names, "compute_80", 120000);

        assert_int_equal(r.verdict.kind, VERDICT_PASS);
        check_machine(
            file_read(path_join(f->a, r.work_dir, "build.json"), 1 << 20, f->a, &answer, &err),
            &err);
        if (i == 1 && !strstr(answer.data, "\"used\""))
            fail_msg("%s", answer.data);
        json_decref(r.names), json_decref(r.resources);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_builds),
        cmocka_unit_test(test_verdicts),
        cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_broken_nvrtc),
        cmocka_unit_test(test_crashing_nvrtc),
#ifndef SANITIZED
        cmocka_unit_test(test_learning),
#endif
        cmocka_unit_test(test_cache_race),
        cmocka_unit_test(test_whole_way),
        cmocka_unit_test(test_names_that_are_none),
        cmocka_unit_test(test_cute_is_used),
        cmocka_unit_test(test_files_out_of_reach),
        cmocka_unit_test(test_source_of_any_bytes),
        cmocka_unit_test(test_precompiled_header_is_used),
    };
    return cmocka_run_group_tests_name("a builder turns candidates into code or verdicts", tests,
                                       fixture_open, fixture_close);
}
