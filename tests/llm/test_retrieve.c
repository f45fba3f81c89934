/*
 * test_retrieve.c - is the right passage among the first three? Over real compiler errors.
 *
 * tests/llm/errors/NAME.log is what a compiler said about a broken kernel;
 * errors/want.json says for each which declaration explains it and which line
 * the error points at. CuTe's headers are those that building finds, or $CUTE_INCLUDE.
 */
#include "base/fs.h"
#include "base/json.h"
#include "llm/prompt/retrieve.h"
#include "toolchain/tools.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 3 };

static const char *folder(void)
{
    const char *dir = getenv("ERRORS");

    return dir ? dir : "tests/llm/errors";
}

static bool names_have(const char *names, const char *name)
{
    size_t n = strlen(name);

    for (const char *p = names; (p = strstr(p, name)) != NULL; p++)
        if ((p == names || p[-1] == ' ') && (p[n] == 0 || p[n] == ' '))
            return true;
    return false;
}

static bool right_is_there(struct retriever *r, const json_t *c, struct arena *a)
{
    struct passage found[SHOWN];
    struct error err = {0};
    struct text log;
    const json_t *want;
    size_t n, k;

    if (!file_read(arena_printf(a, "%s/%s.log", folder(), json_string_or(c, "name", "")), 1 << 20,
                   a, &log, &err))
        fail_msg("%s", err.text);
    n = retrieve_find(r, log, json_string_or(c, "line", ""), SHOWN, found, a);
    json_array_foreach(json_object_get(c, "want"), k, want)
    {
        for (size_t i = 0; i < n; i++)
            if (names_have(found[i].names, json_string_value(want)))
                return true;
    }
    print_message("missed %s:", json_string_or(c, "name", ""));
    for (size_t i = 0; i < n; i++)
        print_message(" %s (%s)", found[i].where, found[i].names);
    print_message("\n");
    return false;
}

static void the_right_passage_is_among_the_first_three(void **state)
{
    const char *include = getenv("CUTE_INCLUDE");
    struct arena *a = arena_new();
    struct error err = {0};
    struct retriever *r;
    struct text t;
    json_t *list;
    size_t i, right = 0;
    const json_t *c;

    (void)state;
    if (!include || !*include) {
        struct tools tools;

        tools_look(&(struct tools_config){0}, a, &tools);
        include = tools.cutlass_include;
    }
    if (!include) {
        arena_free(a);
        skip();
    }
    if (!retrieve_open(include, &r, &err))
        fail_msg("%s", err.text);
    assert_true(file_read(arena_printf(a, "%s/want.json", folder()), 1 << 20, a, &t, &err));
    assert_true(json_parse(t, "want.json", &list, &err));
    assert_true(json_array_size(list) >= 20);
    json_array_foreach(list, i, c) right += right_is_there(r, c, a);
    print_message("the right passage is among the first %d for %zu of %zu errors\n", SHOWN, right,
                  json_array_size(list));
    assert_true(right * 10 >= json_array_size(list) * 9);
    assert_true(retrieve_text(r, text_of("error: copy_if"), "", SHOWN, a).len > 0);
    json_decref(list);
    retrieve_close(r);
    arena_free(a);
}

/* The error as the verdict has it, not as the compiler printed it. */
static void a_call_that_fits_nothing_gets_the_overloads_that_exist(void **state)
{
    static const char detail[] =
        "candidate.cu:12: error: no instance of overloaded function \"cute::gemm\" matches the "
        "argument list\n    gemm(mma, a(_, _, 0), b, c);\n"
        "  raised at cute/algorithm/gemm.hpp:88: return gemm(mma, C, A, B, C);\n"
        "  in cute::gemm with MMA=UniversalFMA<float,float,float,float>\n";
    struct arena *a = arena_new();
    struct error err = {0};
    struct tools tools;
    struct retriever *r;
    struct text t;

    (void)state;
    tools_look(&(struct tools_config){0}, a, &tools);
    if (!tools.cutlass_include) {
        arena_free(a);
        skip();
    }
    if (!retrieve_open(tools.cutlass_include, &r, &err))
        fail_msg("%s", err.text);
    t = retrieve_text(r, text_of(detail), "gemm(mma, a(_, _, 0), b, c);", SHOWN, a);
    if (!strstr(t.data, "the overloads of gemm, cute/algorithm/gemm.hpp") ||
        !strstr(t.data, "gemm(MMA_Atom<MMA> const& mma, Tensor<TA, ALayout> const& A,") ||
        !strstr(t.data,
                "requires DLayout::rank == 3 && is_rmem<TD>::value && ALayout::rank == 3") ||
        !strstr(t.data, "(V,M,K) x (V,N,K) => (V,M,N)"))
        fail_msg("%s", t.data);
    retrieve_close(r);
    arena_free(a);
}

static void headers_that_are_not_there_are_an_error(void **state)
{
    struct error err = {0};
    struct retriever *r;

    (void)state;
    assert_false(retrieve_open("/no/such/folder", &r, &err));
    assert_non_null(strstr(err.text, "no CuTe headers"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_right_passage_is_among_the_first_three),
        cmocka_unit_test(a_call_that_fits_nothing_gets_the_overloads_that_exist),
        cmocka_unit_test(headers_that_are_not_there_are_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
