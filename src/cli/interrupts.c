/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interrupts.c - Ctrl-C: the first lets the attempt finish, the second stops at once, the third
 * exits.
 *
 * Invariant: the handler calls only async-signal-safe functions and restores errno: it may run
 * between a failed call and the check of errno.
 */
#include "cli/cmd.h"
#include "loop/loop.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

static void on_signal(int sig)
{
    static const char first[] = "\ncutegen: finishing this attempt; Ctrl-C again stops at once\n";
    int errno_before = errno;
    ssize_t ignored;

    (void)sig;
    loop_interrupts = loop_interrupts + 1;
    if (loop_interrupts == 1)
        ignored = write(STDERR_FILENO, first, sizeof(first) - 1);
    else if (loop_interrupts > 2)
        _exit(EXIT_INTERRUPTED); /* it did not stop: all rows so far are in the store */
    (void)ignored;
    errno = errno_before;
}

void interrupts_catch(void)
{
    struct sigaction sa = {.sa_handler = on_signal};

    sigemptyset(&sa.sa_mask);
    sigaction(SIGINT, &sa, NULL);
    sigaction(SIGTERM, &sa, NULL);
}
