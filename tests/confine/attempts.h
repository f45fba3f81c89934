/* attempts.h - what hostile native code would try; each says whether it worked. */
#ifndef TESTS_CONFINE_ATTEMPTS_H
#define TESTS_CONFINE_ATTEMPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A small world with things worth stealing, all of the same user. */
struct world {
    char dir[128];        /* holds all that follows */
    char home[160];       /* with `secret`, `profile` */
    char cache[160];      /* with `kernel.so` */
    char store[160];      /* a file */
    char shm[160];        /* a file in /dev/shm; "" without one */
    char other_work[160]; /* another candidate's folder, with `result` */
    char work[160];       /* our own */
    char socket_path[104], dgram_path[104], abstract[32];
    int tcp_port, udp_port;
    pid_t victim; /* holds WORLD_KEY in its environment and at `address`, and `secret` open at 40 */
    uintptr_t address;
    char key[64];
};

/* When it must work without confinement, or the attempt itself is broken. */
enum attempt_works {
    WORKS_ALWAYS,
    WORKS_AS_ROOT,   /* with all capabilities */
    WORKS_SOMEWHERE, /* depends on the kernel, the container or the file system */
};

struct attempt {
    const char *name;
    bool (*run)(const struct world *w); /* true: it worked */
    enum attempt_works works;
    bool forks; /* a role that may make processes may do this */
};

#define ROW(name, run)                                                                             \
    {                                                                                              \
        name, run, WORKS_ALWAYS, false                                                             \
    }
#define ROOT(name, run)                                                                            \
    {                                                                                              \
        name, run, WORKS_AS_ROOT, false                                                            \
    }
#define MAYBE(name, run)                                                                           \
    {                                                                                              \
        name, run, WORKS_SOMEWHERE, false                                                          \
    }
#define FORK(name, run)                                                                            \
    {                                                                                              \
        name, run, WORKS_ALWAYS, true                                                              \
    }

struct attempt_list {
    const struct attempt *rows;
    size_t count;
};

extern const struct attempt_list attempts_victim, attempts_sockets, attempts_kernel, attempts_files,
    attempts_processes;

/* All lists as one. */
size_t attempt_count(void);
const struct attempt *attempt_at(size_t index);

#endif
