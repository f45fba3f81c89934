/* config_test.c - the configuration: every key is a value of its own kind, and order decides. */
#include "cli/config.h"

#include "base/fs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const struct value_case {
    const char *key, *value;
    bool good;
} values[] = {
    {"depth", "0", true},
    {"depth", "12", true},
    {"depth", "auto", true},
    {"depth", "-1", false},
    {"depth", "1.5", false},
    {"depth", "", false},
    {"depth", "99999999999999999999", false},
    {"profile-from", "auto", true},
    {"profile-from", "11", true},
    {"profile-from", "soon", false},
    {"advance", "best", true},
    {"advance", "last", true},
    {"advance", "las", false},
    {"advance", "", false},
    {"check", "memory", true},
    {"check", "memory|full", false},
    {"scale", "yes", true},
    {"scale", "off", true},
    {"scale", "perhaps", false},
    {"set", "N=512", true},
    {"set", "=512", false},
    {"set", "N", false},
    {"budget-usd", "0.25", true},
    {"budget-usd", "free", false},
    {"temperature", "0.7", true},
    {"run-deadline", "0", false},
    {"run-deadline", "30", true},
    {"target", "cuda", true},
    {"target", "hip", false},
    {"seed", "builtin", true},
    {"seed", "42", false},
    {"fresh", "yes", true},
    {"fresh", "maybe", false},
    {"stall", "0", false},
    {"stall", "20", true},
    {"model", "exec:anything at all", true},
    {"no-such-key", "1", false},
};

static void a_value_is_checked_when_it_is_set(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        struct arena *a = arena_new();
        struct error err = {0};
        bool ok =
            config_set(config_new(a), values[i].key, values[i].value, ORIGIN_FLAG, "--x", &err);

        if (ok != values[i].good)
            print_error("%s = '%s'\n", values[i].key, values[i].value);
        assert_int_equal(ok, values[i].good);
        assert_int_equal(err.kind, values[i].good ? ERROR_NONE : ERROR_USE);
        arena_free(a);
    }
}

static void every_default_is_a_value_of_its_key(void **state)
{
    struct arena *a = arena_new();
    struct config *c = config_new(a);

    (void)state;
    for (size_t i = 0; i < config_key_count; i++) {
        struct error err = {0};

        if (*config_keys[i].preset)
            assert_true(
                config_set(c, config_keys[i].name, config_keys[i].preset, ORIGIN_FLAG, "", &err));
    }
    arena_free(a);
}

static void settings_come_out_as_they_went_in(void **state)
{
    struct arena *a = arena_new();
    struct config *c = config_new(a);
    struct settings s;
    struct run_options o;
    struct error err = {0};

    (void)state;
    config_settings(c, &s);
    assert_string_equal(s.model, "builtin");
    assert_null(s.python);
    assert_null(s.set);
    assert_true(s.scale);
    assert_true(s.temperature < 0);
    assert_true(config_set(c, "set", "N=1", ORIGIN_FLAG, "--set", &err));
    assert_true(config_set(c, "set", "M=2", ORIGIN_FLAG, "--set", &err));
    assert_true(config_set(c, "scale", "no", ORIGIN_FLAG, "--no-scale", &err));
    assert_true(config_set(c, "budget-usd", "2.5", ORIGIN_FLAG, "", &err));
    assert_true(config_set(c, "profile-from", "3", ORIGIN_FLAG, "", &err));
    assert_true(config_set(c, "advance", "last", ORIGIN_FLAG, "", &err));
    config_settings(c, &s);
    config_run_options(c, &o);
    assert_string_equal(s.set[0], "N=1");
    assert_string_equal(s.set[1], "M=2");
    assert_null(s.set[2]);
    assert_false(s.scale);
    assert_true(s.budget_usd > 2.4 && s.budget_usd < 2.6);
    assert_int_equal(o.profile_from, 3);
    assert_int_equal(o.advance, ADVANCE_LAST);
    arena_free(a);
}

static void a_path_in_a_file_is_seen_from_that_file(void **state)
{
    struct arena *a = arena_new();
    struct config *c = config_new(a);
    struct error err = {0};
    char *dir, *path;

    (void)state;
    assert_true(dir_temp("cutegen-config", a, &dir, &err));
    path = path_join(a, dir, "cutegen.ini");
    assert_true(file_write(path,
                           text_of("; a comment\n[cutegen]\nkey-file = keys/one\npython = python3\n"
                                   "prompts = /abs\n"),
                           &err));
    assert_true(config_read_file(c, path, ORIGIN_USER, &err));
    assert_string_equal(config_get(c, "key-file"), path_join(a, dir, "keys/one"));
    assert_string_equal(config_get(c, "python"), "python3");
    assert_string_equal(config_get(c, "prompts"), "/abs");
    assert_string_equal(config_where(c, "prompts"), path);
    assert_true(dir_remove(dir, &err));
    arena_free(a);
}

static void a_wrong_line_is_named_and_the_value_is_not_shown(void **state)
{
    struct arena *a = arena_new();
    struct error err = {0};
    char *dir, *path;

    (void)state;
    assert_true(dir_temp("cutegen-config", a, &dir, &err));
    path = path_join(a, dir, "cutegen.ini");
    assert_true(file_write(path, text_of("depth = 3\n\napi_key = sk-secret\n"), &err));
    assert_false(config_read_file(config_new(a), path, ORIGIN_PROJECT, &err));
    assert_non_null(strstr(err.text, "cutegen.ini:3: unknown key 'api_key'"));
    assert_null(strstr(err.text, "sk-secret"));
    assert_int_equal(err.kind, ERROR_USE);
    assert_true(dir_remove(dir, &(struct error){0}));
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_is_checked_when_it_is_set),
        cmocka_unit_test(every_default_is_a_value_of_its_key),
        cmocka_unit_test(settings_come_out_as_they_went_in),
        cmocka_unit_test(a_path_in_a_file_is_seen_from_that_file),
        cmocka_unit_test(a_wrong_line_is_named_and_the_value_is_not_shown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
