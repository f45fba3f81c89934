/* SPDX-License-Identifier: Apache-2.0 */
/* test_tunables.c - declarations are read, conditions hold or not, chosen values come first. */
#include "base/tunables.h"

#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const char kernel[] = "#define CUTEGEN_TUNE(x) nothing, 1\n"
                             "// CUTEGEN_TUNE(NOT, 1, 2)\n"
                             "/* CUTEGEN_TUNE(NOR, 1, 2) */ \"CUTEGEN_TUNE(STRING, 1)\"\n"
                             "CUTEGEN_TUNE(BM, 128, 64, 0x100);\n"
                             "MY_CUTEGEN_TUNE(OTHER, 7);\n"
                             "CUTEGEN_TUNE( BN ,16);\n"
                             "CUTEGEN_TUNE_IF(BM * BN <= (2048) && BM % BN == 0);\n";

static void declarations_are_found_and_chosen_values_come_first(void **state)
{
    struct arena *a = arena_new();
    struct error err = {0};
    struct tunables t, again;
    int first[TUNABLES_MAX] = {1, 0}, small[TUNABLES_MAX] = {0, 0}, large[TUNABLES_MAX] = {2, 0};
    struct text out;

    (void)state;
    assert_true(tunables_read(text_of(kernel), a, &t, &err));
    assert_int_equal(t.count, 2);
    assert_string_equal(t.list[0].name, "BM");
    assert_int_equal(t.list[0].count, 3);
    assert_int_equal(t.list[0].values[2], 256);
    assert_int_equal(t.list[0].now, 1); /* 128 */
    assert_string_equal(t.list[1].name, "BN");
    assert_int_equal(t.condition_count, 1);
    assert_true(tunables_hold(&t, first, &err));
    assert_true(tunables_hold(&t, small, &err));
    assert_false(tunables_hold(&t, large, &err));
    assert_int_equal(err.kind, ERROR_NONE);
    out = tunables_set(text_of(kernel), &t, small, a);
    assert_non_null(strstr(out.data, "CUTEGEN_TUNE(BM, 64, 128, 256);\n"));
    assert_non_null(strstr(out.data, "CUTEGEN_TUNE( BN , 16);\n"));
    assert_non_null(strstr(out.data, "// CUTEGEN_TUNE(NOT, 1, 2)\n"));
    assert_true(tunables_read(out, a, &again, &err));
    assert_int_equal(again.list[0].now, 0);
    assert_string_equal(tunables_words(&again, small, a), "BM 64, BN 16");
    arena_free(a);
}

static void what_cannot_be_read_is_an_error(void **state)
{
    static const char *const bad[] = {
        "CUTEGEN_TUNE(BM);",      "CUTEGEN_TUNE(BM, );",      "CUTEGEN_TUNE(BM, 64, 64);",
        "CUTEGEN_TUNE(BM, N);",   "CUTEGEN_TUNE(8, 1);",      "CUTEGEN_TUNE(BM, 1, 2;",
        "CUTEGEN_TUNE(BM, 1 2);", "CUTEGEN_TUNE(BM, 1,, 2);", "CUTEGEN_TUNE(",
        "CUTEGEN_TUNE(BM, 1.5);",
    };
    struct arena *a = arena_new();
    struct tunables t;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct error err = {0};

        assert_false(tunables_read(text_of(bad[i]), a, &t, &err));
        assert_int_equal(err.kind, ERROR_USE);
    }
    arena_free(a);
}

static void a_condition_holds_fails_or_cannot_be_read(void **state)
{
    static const struct {
        const char *text;
        int holds; /* -1: cannot be read */
    } cases[] = {
        {"A == 8", 1},
        {"A!=8", 0},
        {"A < B || A > 100", 1},
        {"!(A > B)", 1},
        {"A / 0 == 0", 0},
        {"A % (B - 32) == 0", 0},
        {"-A + B >= 24", 1},
        {"A * B <= 255", 0},
        {"A && B && !0", 1},
        {"A <= B && A", 1},
        {"C > 1", -1},
        {"(A < B", -1},
        {"A <", -1},
        {"A B", -1},
        {"", -1},
        {"9223372036854775807 + A > 0", 0},
    };
    struct arena *a = arena_new();

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct error err = {0}, why = {0};
        struct tunables t;
        int at[TUNABLES_MAX] = {0};
        char *source = arena_printf(a,
                                    "CUTEGEN_TUNE(A, 8); CUTEGEN_TUNE(B, 32);\n"
                                    "CUTEGEN_TUNE_IF(%s);\n",
                                    cases[i].text);
        bool read = tunables_read(text_of(source), a, &t, &err);
        bool holds = read && tunables_hold(&t, at, &why);

        if (holds != (cases[i].holds == 1) ||
            (!read || why.kind != ERROR_NONE) != (cases[i].holds < 0))
            fail_msg("%s", cases[i].text);
    }
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(declarations_are_found_and_chosen_values_come_first),
        cmocka_unit_test(what_cannot_be_read_is_an_error),
        cmocka_unit_test(a_condition_holds_fails_or_cannot_be_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
