/* interrupts_test.c - Ctrl-C is counted, and the code that it interrupts does not notice. */
#include "cli/cmd.h"
#include "loop/loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

_Static_assert(_Generic(&loop_interrupts, volatile sig_atomic_t * : 1, default : 0),
               "what a signal handler writes is a sig_atomic_t");

static void a_signal_is_counted_and_errno_stays(void **state)
{
    int told = dup(STDERR_FILENO);

    (void)state;
    interrupts_catch();
    close(STDERR_FILENO); /* so that the handler's own call fails */
    errno = ENOENT;
    raise(SIGINT);
    assert_int_equal(errno, ENOENT);
    dup2(told, STDERR_FILENO);
    close(told);
    assert_int_equal(loop_interrupts, 1);
    raise(SIGTERM);
    assert_int_equal(loop_interrupts, 2);
}

static void the_third_ends_the_process(void **state)
{
    int status;
    pid_t pid = fork();

    (void)state;
    if (pid == 0) {
        raise(SIGINT);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), EXIT_INTERRUPTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signal_is_counted_and_errno_stays),
        cmocka_unit_test(the_third_ends_the_process),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
