/* test_trust.c - foreign code runs only where files are out of its reach, or when it is trusted. */
#include "eval/trust.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static const struct confine_report neither = {
    .capabilities = true, .no_new_privs = true, .seccomp = true};

static void without_landlock_and_namespaces_it_is_refused(void **state)
{
    struct error err = {0};

    (void)state;
    assert_false(trust_allows(&neither, false, &err));
    assert_int_equal(err.kind, ERROR_USE);
    assert_non_null(strstr(err.text, "files of this user can be read and written"));
    assert_non_null(strstr(err.text, "other processes can be seen"));
    assert_non_null(strstr(err.hint, "--trust"));
}

static void with_trust_it_runs(void **state)
{
    struct error err = {0};

    (void)state;
    assert_true(trust_allows(&neither, true, &err));
}

static void one_of_both_is_enough(void **state)
{
    struct confine_report landlock = neither, namespaces = neither, no_filter = neither;
    struct error err = {0};

    (void)state;
    landlock.landlock_abi = 1;
    namespaces.mount = true;
    no_filter.mount = true;
    no_filter.seccomp = false;
    assert_true(trust_allows(&landlock, false, &err));
    assert_true(trust_allows(&namespaces, false, &err));
    assert_false(trust_allows(&no_filter, false, &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_landlock_and_namespaces_it_is_refused),
        cmocka_unit_test(with_trust_it_runs),
        cmocka_unit_test(one_of_both_is_enough),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
