/*
 * torture_child.c - a program that does what a bad kernel's process might do.
 *
 * First argument: what to do. Descendants mark themselves by a file lock on
 * the second argument, so that a test can see whether any is left.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void hold(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT, 0600);

    if (fd < 0 || flock(fd, LOCK_SH) != 0)
        _exit(9);
}

static void ignore_signals(void)
{
    for (int s = 1; s < 32; s++)
        signal(s, SIG_IGN);
}

static void sleep_for_ever(void)
{
    for (;;)
        sleep(1000);
}

/* Three children, each with three of its own, `deep` times. Each closes `born` once it is there. */
static void fork_family(const char *path, int deep, int born)
{
    for (int i = 0; i < 3; i++) {
        if (fork() == 0) {
            ignore_signals();
            if (deep % 2)
                setsid();
            hold(path);
            if (deep > 0)
                fork_family(path, deep - 1, born);
            close(born);
            sleep_for_ever();
        }
    }
}

/* Returns when the whole family is there: the last of its ends of the pipe is closed. */
static void found_family(const char *path, int deep)
{
    int born[2];
    char byte;

    if (pipe(born) != 0)
        _exit(9);
    fork_family(path, deep, born[1]);
    close(born[1]);
    if (read(born[0], &byte, 1) != 0)
        _exit(9);
}

static void flood(size_t bytes)
{
    static char block[1 << 16];

    memset(block, 'x', sizeof(block));
    for (size_t sent = 0; sent < bytes; sent += sizeof(block))
        if (write(1, block, sizeof(block)) < 0)
            _exit(8);
}

static void fork_bomb(const char *path)
{
    ignore_signals();
    hold(path);
    for (int i = 0; i < 200; i++) {
        if (fork() == 0) {
            setsid();
            hold(path);
            for (int j = 0; j < 20; j++)
                if (fork() == 0)
                    sleep_for_ever();
            sleep_for_ever();
        }
        usleep(1000);
    }
    sleep_for_ever();
}

/* Takes so much and keeps it: whoever watches finds it held, however seldom it looks. */
static void allocate(size_t limit)
{
    size_t step = 16u << 20;

    for (size_t have = 0; have < limit; have += step) {
        char *p = mmap(NULL, step, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (p == MAP_FAILED)
            _exit(12);
        memset(p, 1, step);
    }
    sleep_for_ever();
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "", *path = argc > 2 ? argv[2] : "";

    if (strcmp(what, "family") == 0) {
        ignore_signals();
        hold(path);
        found_family(path, 2);
        return 5; /* ends while its family lives on */
    }
    if (strcmp(what, "stubborn") == 0) {
        ignore_signals();
        hold(path);
        found_family(path, 1);
        sleep_for_ever();
    }
    if (strcmp(what, "orphans") == 0) { /* double fork, setsid, streams closed */
        int ready[2];
        char byte;

        if (pipe(ready) != 0)
            return 9;
        if (fork() == 0) {
            setsid();
            if (fork() == 0) {
                close(0), close(1), close(2);
                hold(path);
                close(ready[1]);
                sleep_for_ever();
            }
            _exit(0);
        }
        close(ready[1]);
        return read(ready[0], &byte, 1) == 0 ? 0 : 9;
    }
    if (strcmp(what, "bomb") == 0)
        fork_bomb(path);
    if (strcmp(what, "flood") == 0)
        flood((size_t)1 << 30);
    if (strcmp(what, "allocate") == 0)
        allocate((size_t)512 << 20);
    if (strcmp(what, "allocate-family") == 0) { /* each of them less than the limit */
        for (int i = 0; i < 4; i++)
            if (fork() == 0)
                allocate((size_t)128 << 20);
        sleep_for_ever();
    }
    if (strcmp(what, "socket") == 0)
        return socket(AF_INET, SOCK_STREAM, 0) < 0 ? 0 : 1;
    if (strcmp(what, "close-streams") == 0) {
        close(0), close(1), close(2);
        hold(path);
        sleep_for_ever();
    }
    if (strcmp(what, "environment") == 0) {
        extern char **environ;

        for (char **e = environ; *e; e++)
            puts(*e);
    }
    if (strcmp(what, "crash") == 0)
        raise(SIGSEGV);
    return 0;
}
