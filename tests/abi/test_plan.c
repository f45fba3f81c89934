/* test_plan.c - what a plan may say, what it may not, and what comes out of it. */
#include "support.h"

#include <dirent.h>

static char *candidate(struct arena *a, const char *body)
{
    return arena_printf(a,
                        "#include <cutegen/kernel.h>\n"
                        "#ifdef CUTEGEN_HOST\n"
                        "CUTEGEN_PLAN(call)\n"
                        "{\n"
                        "    const struct cutegen_tensor *x = &call->in[0];\n"
                        "    struct cutegen_tensor *y = &call->out[0];\n"
                        "    struct cutegen_dim one = cutegen_dim3(1, 1, 1);\n"
                        "    (void)x, (void)y, (void)one;\n"
                        "%s\n" /* line 9 */
                        "}\n"
                        "#endif\n",
                        body);
}

static const struct plan_case {
    const char *name, *body;
    enum verdict_kind kind;
    const char *text; /* in the summary or detail */
} bad_plans[] = {
    {"launches nothing", "return 0;", VERDICT_BAD_PLAN, "launched nothing"},
    {"returns an error of its own", "return 7;", VERDICT_BAD_PLAN, "returned 7"},
    {"a failed requirement names its line",
     "CUTEGEN_REQUIRE(call, x->ndim == 3, \"x must have 3 dimensions\"); return 0;",
     VERDICT_BAD_PLAN, "candidate.cu:9: plan: x must have 3 dimensions"},
    {"an empty grid", "return CUTEGEN_LAUNCH(call, k, cutegen_dim3(0, 1, 1), one, 0);",
     VERDICT_BAD_PLAN, "grid is (0, 1, 1)"},
    {"a negative block", "return CUTEGEN_LAUNCH(call, k, one, cutegen_dim3(-32, 1, 1), 0);",
     VERDICT_BAD_PLAN, "block is (-32, 1, 1)"},
    {"a block no device takes", "return CUTEGEN_LAUNCH(call, k, one, cutegen_dim3(2048, 1, 1), 0);",
     VERDICT_BAD_LAUNCH, "block is (2048, 1, 1)"},
    {"a block whose product is too large",
     "return CUTEGEN_LAUNCH(call, k, one, cutegen_dim3(64, 64, 1), 0);", VERDICT_BAD_LAUNCH,
     "larger than any device takes"},
    {"a grid too tall", "return CUTEGEN_LAUNCH(call, k, cutegen_dim3(1, 70000, 1), one, 0);",
     VERDICT_BAD_LAUNCH, "grid is (1, 70000, 1)"},
    {"a grid that is not a multiple of the cluster",
     "return CUTEGEN_LAUNCH_CLUSTER(call, k, cutegen_dim3(3, 1, 1), one, cutegen_dim3(2, 1, 1), "
     "0);",
     VERDICT_BAD_LAUNCH, "multiple of the cluster"},
    {"more shared memory than a block may have",
     "return CUTEGEN_LAUNCH(call, k, one, one, 300000);", VERDICT_BAD_LAUNCH, "300000 bytes"},
    {"a pointer past the end of its tensor",
     "return CUTEGEN_LAUNCH(call, k, one, one, 0, CUTEGEN_AT(float, x, 16 * 128 + 1));",
     VERDICT_BAD_PLAN, "argument 1: in0 + 8196"},
    {"a pointer before the start of its tensor",
     "return CUTEGEN_LAUNCH(call, k, one, one, 0, CUTEGEN_AT(float, y, -1));", VERDICT_BAD_PLAN,
     "points outside every buffer"},
    {"a pointer of the host", "int local = 1; return CUTEGEN_LAUNCH(call, k, one, one, 0, &local);",
     VERDICT_BAD_PLAN, "argument 1 is a pointer that belongs to no tensor"},
    {"a struct that holds a tensor's address",
     "struct pair { void *p; int n; } s; s.p = CUTEGEN_DATA(float, x); s.n = 1;\n"
     "return CUTEGEN_LAUNCH(call, k, one, one, 0, s);",
     VERDICT_BAD_PLAN, "pass pointers on their own"},
    {"a tensor map out of thin air",
     "struct cutegen_map m; m.opaque[0] = 1; return CUTEGEN_LAUNCH(call, k, one, one, 0, m);",
     VERDICT_BAD_PLAN, "cutegen_map_tiled did not make"},
    {"clearing an input", "return cutegen_memset(call, CUTEGEN_DATA(float, x), 0, 16);",
     VERDICT_BAD_PLAN, "memset of an input"},
    {"clearing past the end", "return cutegen_memset(call, CUTEGEN_DATA(float, y), 0, 8193);",
     VERDICT_BAD_PLAN, "outside the buffer's 8192 bytes"},
    {"clearing a negative number of bytes",
     "return cutegen_memset(call, CUTEGEN_DATA(float, y), 0, -4);", VERDICT_BAD_PLAN, "outside"},
    {"a negative workspace", "return cutegen_workspace(call, -1) != NULL;", VERDICT_BAD_PLAN,
     "workspace 0 of -1 bytes"},
    {"an error that the plan ignores still counts",
     "cutegen_memset(call, NULL, 0, 4); return CUTEGEN_LAUNCH(call, k, one, one, 0);",
     VERDICT_BAD_PLAN, "memset of an address that belongs to no buffer"},
    {"reading a tensor's data names the line", "return (int)*(float *)CUTEGEN_DATA(float, x);",
     VERDICT_BAD_PLAN, "candidate.cu:9: the plan reads 4 bytes at 0xc0000000000000"},
    {"dividing by 0 names the line", "return (int)(x->shape[0] / (call->in_count - 1));",
     VERDICT_BAD_PLAN, "candidate.cu:9: the plan divides by 0"},
    {"a map whose stride is not a multiple of 16",
     "struct cutegen_map_spec s = {0}; s.data = CUTEGEN_DATA(float, x); s.dtype = CUTEGEN_F32;\n"
     "s.rank = 2; s.dims[0] = 128; s.dims[1] = 16; s.strides_bytes[0] = 500; s.box[0] = 32; "
     "s.box[1] = 8;\n"
     "struct cutegen_map m = cutegen_map_tiled(call, &s); return CUTEGEN_LAUNCH(call, k, one, one, "
     "0, m);",
     VERDICT_BAD_LAUNCH, "multiple of 16 bytes"},
    {"a map that reaches past its tensor",
     "struct cutegen_map_spec s = {0}; s.data = CUTEGEN_DATA(float, x); s.dtype = CUTEGEN_F32;\n"
     "s.rank = 2; s.dims[0] = 128; s.dims[1] = 17; s.strides_bytes[0] = 512; s.box[0] = 32; "
     "s.box[1] = 8;\n"
     "struct cutegen_map m = cutegen_map_tiled(call, &s); return CUTEGEN_LAUNCH(call, k, one, one, "
     "0, m);",
     VERDICT_BAD_PLAN, "outside the buffer's 8192 bytes"},
    {"calling the C library", "return puts(\"hello\");", VERDICT_COMPILE_ERROR, "puts"},
    {"including the C library", "return 0;\n}\n#include <stdio.h>\nint unused(void) {",
     VERDICT_COMPILE_ERROR, "stdio.h"},
    {"33 arguments",
     "return CUTEGEN_LAUNCH(call, k, one, one, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, "
     "15, 16,"
     " 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33);",
     VERDICT_COMPILE_ERROR, "at most 32 arguments"},
    {"a syntax error names the user's line", "int n = 3\nreturn 0;", VERDICT_COMPILE_ERROR,
     "candidate.cu:"},
};

static void test_bad_plans(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; f->builder != NULL && i < ARRAY_LEN(bad_plans); i++) {
        const struct plan_case *c = &bad_plans[i];
        json_t *launches;
        struct verdict v = judge(f, candidate(f->a, c->body), &launches);
        if (v.kind != c->kind || !(has(v.summary, c->text) || has(v.detail, c->text)))
            fail_msg("%s: got '%s': %s\n%s", c->name, verdict_names[v.kind], v.summary, v.detail);
        assert_null(launches);
    }
}

static const struct plan_case good_plans[] = {
    {"32 arguments",
     "return CUTEGEN_LAUNCH(call, k, one, one, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, "
     "15, 16,"
     " 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32);",
     VERDICT_PASS, "\"bytes\":\"20000000\""},
    {"no arguments", "return CUTEGEN_LAUNCH(call, k, one, one, 0);", VERDICT_PASS, "\"args\":[]"},
    {"a kernel's template arguments, without the parentheses",
     "return CUTEGEN_LAUNCH(call, (ns::gemm<128, 64, (1 + 2)>), one, one, 0);", VERDICT_PASS,
     "\"kernel\":\"ns::gemm<128, 64, (1 + 2)>\""},
    {"macros in a kernel's name are expanded",
     "\n#define TILE 64\nreturn CUTEGEN_LAUNCH(call, (gemm<TILE>), one, one, 0);", VERDICT_PASS,
     "\"kernel\":\"gemm<64>\""},
    {"values of every size",
     "char c = -1; short s = 2; long l = 3; double d = 1.0; float g = 0.5f; bool b = true;\n"
     "return CUTEGEN_LAUNCH(call, k, one, one, 0, c, s, l, d, g, b);",
     VERDICT_PASS,
     "[{\"bytes\":\"ff\",\"type\":\"int\"},{\"bytes\":\"0200\",\"type\":\"int\"},"
     "{\"bytes\":\"0300000000000000\",\"type\":\"int\"},{\"bytes\":\"000000000000f03f\",\"type\":"
     "\"float\"},"
     "{\"bytes\":\"0000003f\",\"type\":\"float\"},{\"bytes\":\"01\",\"type\":\"int\"}]"},
    {"a pointer into a tensor, to its end, and none",
     "return CUTEGEN_LAUNCH(call, k, one, one, 0, CUTEGEN_AT(float, x, 3), CUTEGEN_AT(float, y, "
     "2048),"
     " (float *)NULL);",
     VERDICT_PASS,
     "[{\"buffer\":\"in0\",\"offset\":12},{\"buffer\":\"out0\",\"offset\":8192},"
     "{\"bytes\":\"0000000000000000\"}]"},
    {"types C does not know",
     "return CUTEGEN_LAUNCH(call, k, one, one, 0, CUTEGEN_DATA(cute::half_t, x));", VERDICT_PASS,
     "{\"buffer\":\"in0\",\"offset\":0}"},
    {"workspace, and typed arithmetic on it",
     "float *w = (float *)cutegen_workspace(call, 1024); void *v = cutegen_workspace(call, 64);\n"
     "return CUTEGEN_LAUNCH(call, k, one, one, 0, w + 10, v);",
     VERDICT_PASS, "[{\"buffer\":\"ws0\",\"offset\":40},{\"buffer\":\"ws1\",\"offset\":0}]"},
    {"a cluster and an overlapped launch",
     "CUTEGEN_TRY(CUTEGEN_LAUNCH(call, k, one, one, 0));\n"
     "return CUTEGEN_LAUNCH_EX(call, k, cutegen_dim3(8, 1, 1), one, cutegen_dim3(4, 1, 1), 1024,"
     " CUTEGEN_OVERLAP);",
     VERDICT_PASS, "\"cluster\":[4,1,1],\"smem\":1024,\"args\":[],\"overlap\":true"},
    {"the first launch has none to overlap with",
     "return CUTEGEN_LAUNCH_EX(call, k, one, one, one, 1024, CUTEGEN_OVERLAP);", VERDICT_PASS,
     "\"smem\":1024,\"args\":[]}]"},
    {"nor has one after a memset",
     "CUTEGEN_TRY(CUTEGEN_LAUNCH(call, k, one, one, 0));\n"
     "CUTEGEN_TRY(cutegen_memset(call, CUTEGEN_DATA(float, y), 0, 4));\n"
     "return CUTEGEN_LAUNCH_EX(call, k, one, one, one, 1024, CUTEGEN_OVERLAP);",
     VERDICT_PASS, "\"smem\":1024,\"args\":[]}]"},
    {"flags for all launches of a plan",
     "call->launch_flags = CUTEGEN_OVERLAP;\n"
     "CUTEGEN_TRY(CUTEGEN_LAUNCH(call, k, one, one, 8));\n"
     "return CUTEGEN_LAUNCH(call, k, one, one, 1024);",
     VERDICT_PASS, "\"smem\":1024,\"args\":[],\"overlap\":true}]"},
    {"launches that belong to parts of a plan, and to none",
     "call->launch_flags = CUTEGEN_OVERLAP;\n"
     "CUTEGEN_TRY(CUTEGEN_LAUNCH(call, k, one, one, 8));\n"
     "cutegen_part(call, 1);\n"
     "CUTEGEN_TRY(CUTEGEN_LAUNCH(call, k, one, one, 16));\n"
     "cutegen_part(call, 300);\n"
     "CUTEGEN_TRY(CUTEGEN_LAUNCH(call, k, one, one, 24));\n"
     "cutegen_part(call, 0);\n"
     "return CUTEGEN_LAUNCH(call, k, one, one, 1024);",
     VERDICT_PASS, "\"smem\":24,\"args\":[],\"overlap\":true,\"part\":300}"},
    {"a tensor map",
     "struct cutegen_map_spec s = {0}; s.data = CUTEGEN_DATA(float, x); s.dtype = CUTEGEN_F32;\n"
     "s.rank = 2; s.dims[0] = 128; s.dims[1] = 16; s.strides_bytes[0] = 512; s.box[0] = 32; "
     "s.box[1] = 8;\n"
     "s.swizzle = CUTEGEN_SWIZZLE_128; s.l2 = CUTEGEN_L2_256;\n"
     "struct cutegen_map m = cutegen_map_tiled(call, &s);\n"
     "return CUTEGEN_LAUNCH(call, k, one, one, 0, m, 5);",
     VERDICT_PASS,
     "\"maps\":[{\"buffer\":\"in0\",\"offset\":0,\"dtype\":\"f32\",\"dims\":[128,16],\"strides_"
     "bytes\":[512],"
     "\"box\":[32,8],\"element_strides\":[1,1],\"swizzle\":\"128\",\"fill\":\"zero\",\"l2\":"
     "\"256\"}]"},
    {"scalars, sizes and the device",
     "return CUTEGEN_LAUNCH(call, k, cutegen_dim3(call->device.sm_count, 1, 1), one, 0,\n"
     "(float)call->scalar[0].f, (int)call->scalar[0].i, call->in_count, call->out_count,\n"
     "(int)cutegen_numel(x), (int)cutegen_bytes(x), (float)cutegen_sqrt(2.25));",
     VERDICT_PASS,
     "\"grid\":[132,1,1],\"block\":[1,1,1],\"cluster\":[1,1,1],\"smem\":0,\"args\":["
     "{\"bytes\":\"0000c03f\",\"type\":\"float\"},{\"bytes\":\"01000000\",\"type\":\"int\"},"
     "{\"bytes\":\"01000000\",\"type\":\"int\"},{\"bytes\":\"02000000\",\"type\":\"int\"},"
     "{\"bytes\":\"00080000\",\"type\":\"int\"},{\"bytes\":\"00200000\",\"type\":\"int\"},"
     "{\"bytes\":\"0000c03f\",\"type\":\"float\"}]"},
    {"big structs are copied",
     "struct big { int v[64]; } b = {{1}}; struct big c = b;\n"
     "return CUTEGEN_LAUNCH(call, k, one, one, 0, c.v[0]);",
     VERDICT_PASS, "\"bytes\":\"01000000\""},
    {"truth has one byte, as in the exported file",
     "return CUTEGEN_LAUNCH(call, k, one, one, 0, true, x->ndim > 1, CUTEGEN_F32);", VERDICT_PASS,
     "[{\"bytes\":\"01\",\"type\":\"int\"},{\"bytes\":\"01\",\"type\":\"int\"},"
     "{\"bytes\":\"20020000\",\"type\":\"int\"}]"},
    {"the line of a launch is its first",
     "\n\nreturn CUTEGEN_LAUNCH(call, k,\n                      one, one,\n                      "
     "0);",
     VERDICT_PASS, "\"line\":11"},
    {"constants of both halves, and tables",
     "constexpr int kTile = 64; static const int sizes[3] = {1, 2, 4};\n"
     "return CUTEGEN_LAUNCH(call, (gemm<kTile>), one, one, 0, sizes[call->out_count]);",
     VERDICT_PASS, "\"bytes\":\"04000000\""},
    {"sums of floats are not fused, as on the host",
     "volatile double a = 1.0 + 1e-8, b = 1.0 - 1e-8; volatile float c = 0.1f, d = 3.0f;\n"
     "return CUTEGEN_LAUNCH(call, k, one, one, 0, a * b - 1.0, c * d - 0.3f);",
     VERDICT_PASS,
     "{\"bytes\":\"000000000000b0bc\",\"type\":\"float\"},"
     "{\"bytes\":\"00000000\",\"type\":\"float\"}"},
};

static void test_good_plans(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; f->builder != NULL && i < ARRAY_LEN(good_plans); i++) {
        const struct plan_case *c = &good_plans[i];
        json_t *launches;
        struct verdict v = judge(f, candidate(f->a, c->body), &launches);
        if (v.kind != VERDICT_PASS)
            fail_msg("%s: %s\n%s", c->name, v.summary, v.detail);
        if (!has(json_line(launches, f->a), c->text))
            fail_msg("%s: %s", c->name, json_line(launches, f->a));
        json_decref(launches);
    }
}

/* The same list whatever the machine: docs/kernel-abi.md shows it. */
static void test_example(void **state)
{
    static const char want[] =
        "{\"ok\":true,\"workspace\":[{\"bytes\":64}],\"ops\":[{\"op\":\"memset\",\"buffer\":"
        "\"ws0\","
        "\"offset\":0,\"bytes\":64,\"value\":0,\"line\":50},{\"op\":\"launch\",\"kernel\":"
        "\"swish<256>\",\"line\":51,\"grid\":[8,1,1],\"block\":[256,1,1],\"cluster\":[1,1,1],"
        "\"smem\":0,\"args\":[{\"buffer\":\"in0\",\"offset\":0},{\"buffer\":\"out0\",\"offset\":0},"
        "{\"bytes\":\"0008000000000000\",\"type\":\"int\"},{\"bytes\":\"0000c03f\",\"type\":"
        "\"float\"}]},{\"op\":\"launch\",\"kernel\":\"row_sum<128>\",\"line\":54,\"grid\":[16,1,1],"
        "\"block\":[128,1,1],\"cluster\":[1,1,1],\"smem\":0,\"args\":[{\"buffer\":\"out0\","
        "\"offset\":0},{\"buffer\":\"ws0\",\"offset\":0},{\"buffer\":\"out1\",\"offset\":0},"
        "{\"bytes\":\"80000000\",\"type\":\"int\"}]}],\"maps\":[]}";
    struct fixture *f = *state;
    struct error err = {0};
    struct text source;
    struct verdict v;
    json_t *launches;
    if (f->builder == NULL)
        return;
    check_machine(file_read(path_join(f->a, getenv("TEST_SOURCES"), "example.cu"), 1 << 20, f->a,
                            &source, &err),
                  &err);
    v = judge(f, source.data, &launches);
    if (v.kind != VERDICT_PASS)
        fail_msg("%s\n%s", v.summary, v.detail);
    assert_string_equal(json_line(launches, f->a), want);
    json_decref(launches);
}

/*
 * Plans of the built-in engineer, without their kernels, and the lists that
 * version 1 of the ABI made of them as native code (true in names was 1 then).
 */
static void test_launches(void **state)
{
    struct fixture *f = *state;
    char *folder = path_join(f->a, getenv("TEST_SOURCES"), "launches");
    DIR *d = opendir(folder);
    struct dirent *e;
    int count = 0;
    assert_non_null(d);
    while (f->builder != NULL && (e = readdir(d)) != NULL) {
        struct fixture other = *f;
        struct error err = {0};
        struct text source, record;
        json_t *kept = NULL, *launches;
        struct verdict v;
        size_t len = strlen(e->d_name);
        if (len < 4 || strcmp(e->d_name + len - 3, ".cu") != 0)
            continue;
        char *path = path_join(f->a, folder, e->d_name);
        char *list = arena_printf(f->a, "%.*s.json", (int)strlen(path) - 3, path);
        check_machine(file_read(path, 1 << 20, f->a, &source, &err) &&
                          file_read(list, 1 << 20, f->a, &record, &err) &&
                          json_parse(record, list, &kept, &err),
                      &err);
        other.request = json_object_get(kept, "request");
        v = judge(&other, source.data, &launches);
        if (v.kind != VERDICT_PASS)
            fail_msg("%s: %s\n%s", e->d_name, v.summary, v.detail);
        if (!json_equal(launches, json_object_get(kept, "launches")))
            fail_msg("%s: %s", e->d_name, json_line(launches, f->a));
        json_decref(launches);
        json_decref(kept);
        count++;
    }
    closedir(d);
    assert_true(f->builder == NULL || count > 8);
}

static void test_names(void **state)
{
    struct fixture *f = *state;
    json_t *launches;
    if (f->builder == NULL)
        return;
    struct verdict v =
        judge(f,
              candidate(f->a, "CUTEGEN_TRY(CUTEGEN_LAUNCH(call, (a<1>), one, one, 0));\n"
                              "CUTEGEN_TRY(CUTEGEN_LAUNCH(call, b, one, one, 0));\n"
                              "return CUTEGEN_LAUNCH(call, (a<1>), one, one, 0);"),
              &launches);
    assert_int_equal(v.kind, VERDICT_PASS);
    json_t *names = plan_kernel_names(launches);
    assert_string_equal(json_line(names, f->a), "[\"a<1>\",\"b\"]");
    json_decref(names);
    json_decref(launches);
}

static void test_plan_is_also_cpp(void **state)
{
    struct fixture *f = *state;
    json_t *launches;
    if (f->builder == NULL)
        return;
    struct verdict v =
        judge(f, candidate(f->a, "void *v = 0; float *w = v; return w != 0;"), &launches);
    assert_int_equal(v.kind, VERDICT_COMPILE_ERROR);
    assert_true(has(v.detail, "candidate.cu:9"));
}

/* Other kernels beside the same plan: its code comes from the cache, and no process is asked. */
static void test_cached(void **state)
{
    static const char before[] = "#include <cutegen/kernel.h>\n#ifdef CUTEGEN_DEVICE\n"
                                 "__global__ void k() { %s }\n#endif\n"
                                 "#ifdef CUTEGEN_HOST\nCUTEGEN_PLAN(call)\n{ %s return "
                                 "CUTEGEN_LAUNCH(call, k, cutegen_dim3(1, 1, 1), "
                                 "cutegen_dim3(1, 1, 1), 0); }\n#endif\n";
    struct fixture *f = *state, other = *f;
    struct tools broken = f->tools;
    struct error err = {0};
    struct verdict v;
    json_t *launches;
    const char *ptx, *home = getenv("HOME") ? getenv("HOME") : "";
    if (f->builder == NULL)
        return;
    setenv("HOME", f->dir, 1);
    check_machine(builder_start(&(struct builder_config){.tools = &f->tools}, &other.builder, &err),
                  &err);
    v = judge(&other, arena_printf(f->a, before, "", "int n = 1; (void)n;"), &launches);
    builder_stop(other.builder);
    assert_int_equal(v.kind, VERDICT_PASS);
    json_decref(launches);

    broken.nvrtc = "/nowhere/libnvrtc.so"; /* whoever asks its process gets an error */
    check_machine(builder_start(&(struct builder_config){.tools = &broken}, &other.builder, &err),
                  &err);
    v = judge(&other, arena_printf(f->a, before, "__syncthreads();", "int n = 1; (void)n;"),
              &launches);
    assert_int_equal(v.kind, VERDICT_PASS);
    json_decref(launches);
    assert_false(plan_compile(other.builder,
                              text_of(arena_printf(f->a, before, "", "int n = 2; (void)n;")),
                              "candidate.cu", f->dir, f->a, &ptx, &v, &err));
    builder_stop(other.builder);
    setenv("HOME", home, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_plans), cmocka_unit_test(test_good_plans),
        cmocka_unit_test(test_example),   cmocka_unit_test(test_launches),
        cmocka_unit_test(test_names),     cmocka_unit_test(test_plan_is_also_cpp),
        cmocka_unit_test(test_cached),
    };
    return cmocka_run_group_tests_name("a plan becomes a launch list, or a verdict with its line",
                                       tests, fixture_open, fixture_close);
}
