/* test_cpus.c - a process uses the cores that it was given, not those of the machine. */
#include "base/cpus.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>

static void a_process_that_was_given_one_core_counts_one(void **state)
{
    cpu_set_t all, one;
    size_t first = 0;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
    assert_int_equal(cpus_usable(), CPU_COUNT(&all));
    while (!CPU_ISSET(first, &all))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    assert_int_equal(cpus_usable(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_that_was_given_one_core_counts_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
