/* SPDX-License-Identifier: Apache-2.0 */
/* What a process with foreign code says of its launches and gives as PTX: tables of what is taken.
 */
#include "base/fs.h"
#include "base/json.h"
#include "toolchain/composer.h"
#include "toolchain/launch_list.h"
#include "toolchain/ptx_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#define LAUNCH                                                                                     \
    "\"op\": \"launch\", \"line\": 2, \"kernel\": \"k\", \"grid\": [8, 1, 1], "                    \
    "\"block\": [128, 1, 1], \"cluster\": [1, 1, 1], \"smem\": 16, "
#define ONE(op) "{\"workspace\": [{\"bytes\": 64}], \"ops\": [{" op "}]}"

#define OVERLAPS LAUNCH "\"overlap\": true, \"args\": []"
#define POINTER(pointer)                                                                           \
    ONE(LAUNCH "\"args\": [{\"bytes\": \"00000000000000000000000000000000\", "                     \
               "\"pointers\": [" pointer "]}]")
#define MAP_OF(dtype, dims, swizzle)                                                               \
    "{\"buffer\": \"in0\", \"offset\": 0, \"dtype\": " dtype ", \"dims\": " dims                   \
    ", \"strides_bytes\": [256], \"box\": [32, 2], \"element_strides\": [1, 1], "                  \
    "\"swizzle\": " swizzle ", \"fill\": \"zero\", \"l2\": \"none\"}"
#define MAP MAP_OF("\"f32\"", "[64, 2]", "\"128\"")
#define MAPPED(map, number)                                                                        \
    "{\"workspace\": [], \"maps\": [" map "], \"ops\": [{" LAUNCH "\"args\": [{\"map\": " number   \
    "}]}]}"

static const struct list_case {
    const char *name, *list;
    enum verdict_kind want;
    const char *says;
} lists[] = {
    {"takes a launch",
     ONE(LAUNCH "\"args\": [{\"buffer\": \"in0\", \"offset\": 0}, {\"buffer\": \"ws0\", "
                "\"offset\": 64}, {\"bytes\": \"401f0000\", \"type\": \"int\"}]"),
     VERDICT_PASS, ""},
    {"takes a memset of workspace",
     ONE("\"op\": \"memset\", \"buffer\": \"ws0\", \"offset\": 0, \"bytes\": 64, \"value\": 255"),
     VERDICT_PASS, ""},
    {"refuses a memset of an input",
     ONE("\"op\": \"memset\", \"buffer\": \"in0\", \"offset\": 0, \"bytes\": 64, \"value\": 0"),
     VERDICT_BAD_PLAN, "input"},
    {"refuses an empty list", "{\"workspace\": [], \"ops\": []}", VERDICT_BAD_PLAN, "1 to"},
    {"refuses what is no list", "[1, 2]", VERDICT_BAD_PLAN, "1 to"},
    {"refuses another step", ONE("\"op\": \"copy\""), VERDICT_BAD_PLAN, "neither"},
    {"refuses a buffer that is not there",
     ONE(LAUNCH "\"args\": [{\"buffer\": \"in1\", \"offset\": 0}]"), VERDICT_BAD_LAUNCH,
     "does not exist"},
    {"refuses a buffer of no kind", ONE(LAUNCH "\"args\": [{\"buffer\": \"inx\", \"offset\": 0}]"),
     VERDICT_BAD_LAUNCH, "does not exist"},
    {"refuses a negative offset", ONE(LAUNCH "\"args\": [{\"buffer\": \"in0\", \"offset\": -4}]"),
     VERDICT_BAD_LAUNCH, "offset"},
    {"refuses an offset past workspace",
     ONE(LAUNCH "\"args\": [{\"buffer\": \"ws0\", \"offset\": 65}]"), VERDICT_BAD_LAUNCH, "offset"},
    {"refuses bytes that are none", ONE(LAUNCH "\"args\": [{\"bytes\": \"4g\"}]"),
     VERDICT_BAD_LAUNCH, "neither bytes"},
    {"refuses half a byte", ONE(LAUNCH "\"args\": [{\"bytes\": \"401\"}]"), VERDICT_BAD_LAUNCH,
     "neither bytes"},
    {"takes a struct with a pointer inside",
     POINTER("{\"at\": 8, \"buffer\": \"out0\", "
             "\"offset\": 4}"),
     VERDICT_PASS, ""},
    {"refuses a pointer past the end of its struct",
     POINTER("{\"at\": 9, \"buffer\": \"out0\", \"offset\": 4}"), VERDICT_BAD_LAUNCH, "outside of"},
    {"refuses a pointer into what is not there",
     POINTER("{\"at\": 0, \"buffer\": \"out1\", \"offset\": 4}"), VERDICT_BAD_LAUNCH,
     "does not exist"},
    {"refuses a pointer in less than 8 bytes",
     ONE(LAUNCH "\"args\": [{\"bytes\": \"00\", \"pointers\": [{\"at\": 0, \"buffer\": \"in0\", "
                "\"offset\": 0}]}]"),
     VERDICT_BAD_LAUNCH, "outside of"},
    {"takes a tensor map", MAPPED(MAP, "0"), VERDICT_PASS, ""},
    {"refuses a tensor map that is not there", MAPPED(MAP, "1"), VERDICT_BAD_LAUNCH,
     "map that does not exist"},
    {"refuses a tensor map of what is not there",
     MAPPED("{\"buffer\": \"in3\", \"offset\": 0, \"dims\": [1]}", "0"), VERDICT_BAD_LAUNCH,
     "buffer that does not exist"},
    {"refuses a tensor map of six dimensions",
     MAPPED("{\"buffer\": \"in0\", \"offset\": 0, \"dims\": [1, 1, 1, 1, 1, 1]}", "0"),
     VERDICT_BAD_LAUNCH, "1 to 5"},
    {"refuses a tensor map of no type", MAPPED(MAP_OF("\"f33\"", "[64, 2]", "\"128\""), "0"),
     VERDICT_BAD_LAUNCH, "no such dtype"},
    {"refuses a tensor map of no size", MAPPED(MAP_OF("\"f32\"", "[64, 0]", "\"128\""), "0"),
     VERDICT_BAD_LAUNCH, "dims of a tensor map"},
    {"refuses a tensor map of no swizzle", MAPPED(MAP_OF("\"f32\"", "[64, 2]", "\"129\""), "0"),
     VERDICT_BAD_LAUNCH, "no such swizzle"},
    {"refuses an argument of another kind", ONE(LAUNCH "\"args\": [7]"), VERDICT_BAD_LAUNCH,
     "neither bytes"},
    {"refuses a launch without arguments' list", ONE(LAUNCH "\"args\": {}"), VERDICT_BAD_LAUNCH,
     "arguments"},
    {"refuses a name that is an expression",
     ONE("\"op\": \"launch\", \"kernel\": \"k; int x\", \"args\": []"), VERDICT_BAD_LAUNCH, "name"},
    {"refuses an empty grid",
     ONE("\"op\": \"launch\", \"kernel\": \"k\", \"grid\": [0, 1, 1], \"args\": []"),
     VERDICT_BAD_LAUNCH, "grid"},
    {"refuses a block that no device has",
     ONE("\"op\": \"launch\", \"kernel\": \"k\", \"grid\": [1, 1, 1], \"block\": [4096, 1, 1], "
         "\"args\": []"),
     VERDICT_BAD_LAUNCH, "block"},
    {"refuses workspace that no device has", "{\"workspace\": [{\"bytes\": -1}], \"ops\": [{}]}",
     VERDICT_BAD_PLAN, "workspace"},
};

static void takes_what_the_planner_would_give(void **state)
{
    const struct launch_subject subject = {
        .in_count = 1, .out_count = 1, .source = text_of("a\nb\n"), .name = "candidate.py"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        struct arena *a = arena_new();
        struct verdict v = {.kind = VERDICT_PASS, .summary = ""};
        struct error err = {0};
        json_t *said = NULL, *taken = NULL;
        bool ok;

        assert_true(json_parse(text_of(lists[i].list), "a list", &said, &err));
        ok = launch_list_take(said, &subject, a, &taken, &v);
        if (v.kind != lists[i].want || ok != (lists[i].want == VERDICT_PASS) ||
            !strstr(v.summary, lists[i].says))
            fail_msg("%s: %s: %s", lists[i].name, verdict_names[v.kind], v.summary);
        assert_int_equal(ok, taken != NULL);
        json_decref(taken);
        json_decref(said);
        arena_free(a);
    }
}

/* A list that is taken, of a task with one input. */
static json_t *taken_list(const char *text)
{
    const struct launch_subject subject = {.in_count = 1, .name = "candidate.py"};
    struct arena *a = arena_new();
    struct verdict v = {.kind = VERDICT_PASS};
    struct error err = {0};
    json_t *said = NULL, *taken = NULL;

    assert_true(json_parse(text_of(text), "a list", &said, &err));
    assert_true(launch_list_take(said, &subject, a, &taken, &v));
    json_decref(said);
    arena_free(a);
    return taken;
}

/* What is not known of a list does not get through. */
static void copies_only_what_was_checked(void **state)
{
    json_t *taken = taken_list(ONE(LAUNCH "\"module\": \"/etc/passwd\", \"args\": [{\"buffer\": "
                                          "\"in0\", \"offset\": 0, \"bytes\": \"00\"}]"));

    (void)state;
    json_t *op = json_array_get(json_object_get(taken, "ops"), 0);
    json_t *arg = json_array_get(json_object_get(op, "args"), 0);
    assert_null(json_object_get(op, "module"));
    assert_non_null(json_object_get(arg, "buffer"));
    assert_null(json_object_get(arg, "bytes"));
    json_decref(taken);
}

/* A launch that nothing comes before has only launches of the call before to overlap with. */
static void launches_overlap_with_a_launch_right_before_them_alone(void **state)
{
    static const bool want[] = {false, true, false, false, true};
    json_t *taken =
        taken_list("{\"workspace\": [{\"bytes\": 64}], \"ops\": [{" OVERLAPS "}, {" OVERLAPS
                   "}, {\"op\": \"memset\", \"buffer\": \"ws0\", \"offset\": 0, "
                   "\"bytes\": 64, \"value\": 0}, {" OVERLAPS "}, {" OVERLAPS "}]}");

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(want); i++)
        assert_int_equal(
            json_bool_or(json_array_get(json_object_get(taken, "ops"), i), "overlap", false),
            want[i]);
    json_decref(taken);
}

#define HEAD   ".version 8.0\n.target sm_80\n.address_size 64\n"
#define KERNEL ".visible .entry k(.param .u64 k_param_0)\n.reqntid 128\n{\n\tret;\n}\n"

static const struct module_case {
    const char *name, *ptx, *says; /* NULL: taken */
} modules[] = {
    {"takes what Triton writes",
     HEAD ".extern .shared .align 16 .b8 global_smem[];\n" KERNEL "\t.file\t1 \"candidate.py\"\n",
     NULL},
    {"takes constants", HEAD ".global .align 4 .b8 table[4] = {1, 2, 3, 4};\n" KERNEL, NULL},
    {"refuses a second name", HEAD KERNEL ".alias other, k;\n", ".alias"},
    {"refuses a variable of elsewhere", HEAD ".extern .global .u32 counter;\n" KERNEL, ".extern"},
    {"refuses a section", HEAD KERNEL "\t.section .debug_info\n\t{\n.b8 1\n\t}\n", ".section"},
    {"refuses a texture", HEAD ".tex .u32 picture;\n" KERNEL, ".tex"},
};

static void a_module_has_kernels_and_nothing_else(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(modules); i++) {
        struct arena *a = arena_new();
        struct ptx_subject s = {.ptx = text_of(modules[i].ptx), .name = "candidate.py"};
        struct verdict v = {.kind = VERDICT_PASS, .summary = ""};
        bool ok = ptx_check_module(&s, a, &v);

        if (ok != (modules[i].says == NULL) || (!ok && !strstr(v.summary, modules[i].says)))
            fail_msg("%s: %s: %s", modules[i].name, verdict_names[v.kind], v.summary);
        arena_free(a);
    }
}

/* Where such a string ends is a matter of opinion, and code could hide behind it. */
static void a_string_has_no_escapes(void **state)
{
    static const char ptx[] =
        HEAD ".global .u32 counter;\n.visible .entry k()\n{\n"
             "\t.pragma \"\\\"\"; st.global.u32 [counter], 1; \"\n\tret;\n}\n";
    struct arena *a = arena_new();
    struct ptx_subject s = {.ptx = text_of(ptx), .name = "candidate.py"};
    struct verdict v = {.kind = VERDICT_PASS};

    (void)state;
    assert_false(ptx_check_state(&s, a, &v));
    assert_int_equal(v.kind, VERDICT_REFUSED);
    arena_free(a);
}

/* A Python that sees no packages. */
static void a_missing_language_is_told_with_its_remedy(void **state)
{
    static const char script[] = "#!/bin/sh\nexec python3 -S \"$@\"\n";
    struct arena *a = arena_new();
    struct tools tools = {0};
    struct error err = {0};
    struct composer t;
    char *dir, *bare;

    (void)state;
    assert_true(dir_temp("triton-test", a, &dir, &err));
    bare = path_join(a, dir, "bare");
    assert_true(file_write(bare, text_of(script), &err));
    assert_int_equal(chmod(bare, 0700), 0);
    assert_false(composer_find(LANGUAGE_TRITON, bare, &tools, a, &t, &err));
    assert_int_equal(err.kind, ERROR_MACHINE);
    assert_non_null(strstr(err.text, "has no triton"));
    assert_non_null(strstr(err.hint, "bare -m pip install triton, or"));
    err = (struct error){0};
    assert_false(composer_find(LANGUAGE_CUTEDSL, bare, &tools, a, &t, &err));
    assert_non_null(strstr(err.text, "has no cutedsl"));
    assert_non_null(strstr(err.hint, "pip install nvidia-cutlass-dsl, or"));
    assert_non_null(strstr(err.hint, "--dsl-python"));
    dir_remove(dir, &err);
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_what_the_planner_would_give),
        cmocka_unit_test(copies_only_what_was_checked),
        cmocka_unit_test(launches_overlap_with_a_launch_right_before_them_alone),
        cmocka_unit_test(a_module_has_kernels_and_nothing_else),
        cmocka_unit_test(a_string_has_no_escapes),
        cmocka_unit_test(a_missing_language_is_told_with_its_remedy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
