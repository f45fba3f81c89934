/*
 * options_test.c - a resumed run is judged and steered as it was when it began.
 */
#include "loop/loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

static const struct settings now = {.model = "builtin",
                                    .device = "auto",
                                    .models = "H200",
                                    .simt_arch = "80",
                                    .check = "full",
                                    .example = "best",
                                    .draws = 5,
                                    .scale = true};

static void everything_that_decides_comes_back(void **state)
{
    const char *const set[] = {"N=512", NULL};
    const struct settings then = {.model = "openai:m",
                                  .device = "simt",
                                  .models = "A100",
                                  .simt_arch = "90a",
                                  .check = "memory",
                                  .example = "other",
                                  .draws = 2,
                                  .set = set,
                                  .accept = true,
                                  .baseline = "tf32",
                                  .base_url = "http://127.0.0.1:8000/v1",
                                  .key_env = "MY_API_KEY",
                                  .effort = "high",
                                  .temperature = 0.25,
                                  .max_tokens = 777,
                                  .target = LANGUAGE_TRITON};
    static const struct run_options begun = {.max_depth = 7,
                                             .share_depth = 5,
                                             .max_repairs = 2,
                                             .patience = 3,
                                             .profile_from = 4,
                                             .advance = ADVANCE_LAST,
                                             .width = 6,
                                             .seed_builtin = true};
    struct arena *a = arena_new();
    struct settings s = now;
    struct error err = {0};
    struct run_options o = {0};
    json_t *kept = run_options_json(&then, &begun);

    (void)state;
    assert_non_null(kept);
    assert_true(run_options_restore(kept, a, &s, &o, &err));
    json_decref(kept);
    assert_string_equal(s.model, then.model);
    assert_string_equal(s.device, then.device);
    assert_string_equal(s.models, then.models);
    assert_string_equal(s.example, then.example);
    assert_string_equal(s.base_url, then.base_url);
    assert_string_equal(s.key_env, then.key_env);
    assert_string_equal(s.effort, then.effort);
    assert_null(s.key_file);
    assert_true(s.temperature > 0.24 && s.temperature < 0.26);
    assert_int_equal(s.max_tokens, 777);
    assert_string_equal(s.simt_arch, then.simt_arch);
    assert_string_equal(s.check, then.check);
    assert_string_equal(s.set[0], set[0]);
    assert_null(s.set[1]);
    assert_int_equal(s.draws, then.draws);
    assert_false(s.scale);
    assert_true(s.accept);
    assert_string_equal(s.baseline, "tf32");
    assert_int_equal(s.target, LANGUAGE_TRITON);
    assert_memory_equal(&o, &begun, sizeof(o));
    arena_free(a);
}

static void what_an_older_run_did_not_keep_is_as_it_was_then(void **state)
{
    struct arena *a = arena_new();
    struct settings s = now;
    struct error err = {0};
    struct run_options o = {.max_depth = 9};
    json_t *kept = json_object();

    (void)state;
    s.baseline = "tf32"; /* a flag of today */
    assert_true(run_options_restore(kept, a, &s, &o, &err));
    json_decref(kept);
    assert_string_equal(s.baseline, "strict");
    assert_string_equal(s.simt_arch, "80");
    assert_int_equal(o.max_depth, 9);
    assert_int_equal(o.width, 1);
    arena_free(a);
}

static void a_verdict_is_nothing_to_go_on_with(void **state)
{
    struct arena *a = arena_new();
    struct settings s = now;
    struct run_options o = {.resume_id = "today-swish-1"};
    struct error err = {0};
    json_t *kept = json_pack("{ss}", "kind", "eval");

    (void)state;
    assert_false(run_options_restore(kept, a, &s, &o, &err));
    assert_int_equal(err.kind, ERROR_USE);
    assert_non_null(strstr(err.text, "today-swish-1 is a single verdict"));
    json_decref(kept);
    arena_free(a);
}

static void a_profile_is_taken_for_who_reads_it(void **state)
{
    const struct run_options unasked = {.profile_from = -1, .max_depth = 12};
    const struct run_options asked = {.profile_from = 1, .max_depth = 12};
    const struct run_options brief = {.profile_from = -1, .max_depth = 2};
    struct settings s = now;

    (void)state;
    assert_true(run_profile_depth(&s, &unasked, CLASS_POINTWISE) > 1000);
    assert_int_equal(run_profile_depth(&s, &asked, CLASS_POINTWISE), 1);
    s.model = "openai:m";
    assert_int_equal(run_profile_depth(&s, &unasked, CLASS_POINTWISE), 1);
    assert_int_equal(run_profile_depth(&s, &unasked, CLASS_GEMM), 6);
    assert_int_equal(run_profile_depth(&s, &unasked, CLASS_CONVOLUTION), 6);
    assert_int_equal(run_profile_depth(&s, &brief, CLASS_GEMM), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_that_decides_comes_back),
        cmocka_unit_test(a_verdict_is_nothing_to_go_on_with),
        cmocka_unit_test(what_an_older_run_did_not_keep_is_as_it_was_then),
        cmocka_unit_test(a_profile_is_taken_for_who_reads_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
