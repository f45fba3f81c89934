/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proc.h - run other programs and leave none of them behind.
 *
 * proc_run() runs a program to its end: bounded time, memory and output.
 * child_start() keeps one running and talks to it in lines (the oracle, the
 * builders). In both, a small supervisor process stands between: it reaps everything the program
 * starts, so that when the program ends, its time is up or we die, all of it is killed, including
 * what called setsid() or was forked twice.
 *
 * Invariants
 * 1. When proc_run() or child_stop() returns, no process of that program runs.
 * 2. If cutegen dies, even by SIGKILL, the supervisor kills the program.
 * 3. Output beyond the limit is read and dropped: the program does not block and our memory does
 *    not grow.
 * 4. "Could not be started" (struct error) is distinguished from "ran and failed"
 *    (struct proc_result): exec failure comes back over a close-on-exec pipe.
 * 5. The child's environment is what the spec says: only `env` when
 *    clean_env, else ours without anything that looks like a key (NAME ends
 *    in _API_KEY, _TOKEN, _SECRET, _PASSWORD or _ACCESS_KEY: base/vault.h).
 * 6. Everything a program prints is scrubbed of known secrets before it is read here.
 */
#ifndef BASE_PROC_H
#define BASE_PROC_H

#include "base/error.h"
#include "base/mem.h"

#include "base/sanitized.h"

#include <jansson.h>
#include <stdint.h>
#include <sys/types.h>

/* RLIMIT_AS for one of our programs; a sanitizer's shadow alone is larger than any such limit. */
#if defined(SANITIZED)
#define PROC_OWN_ADDRESS_LIMIT(bytes) ((uint64_t)0 * (bytes))
#else
#define PROC_OWN_ADDRESS_LIMIT(bytes) ((uint64_t)(bytes))
#endif

/*
 * How a program is confined; made by src/confine. `fork` runs in the supervisor (with `plain`
 * without namespaces), `enter` in the new process before exec; `tmp` is its private folder or NULL,
 * `keep` the descriptors that stay open, ended by -1.
 */
struct proc_birth {
    bool copy;           /* set by the caller: it will not exec, so libc must know of the fork */
    unsigned namespaces; /* CLONE_NEW* that were made */
    unsigned uid, gid;
};
struct proc_cage {
    const void *policy;
    bool alone; /* it cannot start processes: watching its own memory is enough */
    pid_t (*fork)(const void *policy, bool plain, struct proc_birth *birth);
    bool (*enter)(const void *policy, const struct proc_birth *birth, const char *tmp,
                  const int *keep, struct error *err);
    json_t *(*json)(const void *policy); /* for a process that starts it elsewhere */
};

struct proc_spec {
    const char *const *argv; /* argv[0] is looked up on PATH; NULL-terminated */
    const char *const *env;  /* NAME=VALUE additions, NULL-terminated; may be NULL */
    const char *dir;         /* working directory; NULL: ours */
    struct text input;       /* stdin; empty: /dev/null */
    const int *keep_fds;     /* descriptors the program inherits at the same number */
    size_t keep_fd_count;
    bool clean_env;
    /* a network namespace of its own where allowed, else seccomp on socket() */
    bool no_network;
    /* TMPDIR is a folder of its own, removed when all its processes have ended */
    bool private_tmp;
    bool tmp_in_memory;            /* that folder is on tmpfs where there is one */
    bool merge_stderr;             /* stderr goes where stdout goes */
    int deadline_ms;               /* 0: none */
    size_t output_limit;           /* per stream; 0: 1 MiB */
    uint64_t address_limit_bytes;  /* RLIMIT_AS; 0: none */
    uint64_t resident_limit_bytes; /* sum over all its processes, sampled; 0: none */
    uint64_t file_limit_bytes;     /* RLIMIT_FSIZE; 0: none */
    uint64_t disk_limit_bytes;     /* in its private folder and watch_dir, sampled; 0: none */
    const char *watch_dir;         /* may be NULL */
    const struct proc_cage *cage;  /* NULL: not confined */
    /* The script whose process makes such programs as copies of itself, where a lender keeps one.
     * NULL: none. */
    const char *copier;
    int cpu_limit_s; /* RLIMIT_CPU; 0: none */
    int ending_ms;   /* after the kill: give up when no process has died for this long; 0: 30 s */
    /* proc_run() asks a few times a second; true kills the program. May be NULL. */
    bool (*stop)(void *ctx);
    /* Once it returns true, the program gets SIGTERM and may end by itself until stop() ends it.
     * NULL: no SIGTERM. */
    bool (*ask)(void *ctx);
    void *stop_ctx; /* of both */
    /* proc_run(): called with each complete line of stdout as it arrives, scrubbed; the result has
     * it too. May be NULL. */
    void (*line)(void *ctx, struct text line);
    void *line_ctx;
};

enum proc_end {
    PROC_EXITED,   /* code is the exit status */
    PROC_SIGNALED, /* code is the signal */
    PROC_DEADLINE, /* killed: out of time */
    PROC_MEMORY,   /* killed: over resident_limit_bytes */
    PROC_DISK,     /* killed: over disk_limit_bytes */
    PROC_CROWD,    /* killed: more processes than any compiler needs; where memory is watched */
    PROC_STOPPED,  /* killed: stop() returned true */
};

struct proc_result {
    enum proc_end end;
    int code;
    struct text out, err; /* '\0'-terminated, in the arena */
    bool out_cut, err_cut;
    int wall_ms, cpu_ms;
    uint64_t peak_resident_bytes;
};

bool proc_run(const struct proc_spec *spec, struct arena *a, struct proc_result *out,
              struct error *err);
/* The program, or a compiler that it started, reached cpu_limit_s. */
bool proc_out_of_cpu(const struct proc_result *r);
/* "exit status 3", "killed by SIGSEGV", "no answer within 2000 ms", ... */
const char *proc_end_text(const struct proc_result *r, struct arena *a);

/*
 * A program that keeps running: one request line out, one answer line back. The last output_limit
 * bytes of its stderr are kept for messages.
 */
struct child;
enum child_answer { CHILD_LINE, CHILD_ENDED, CHILD_LATE };

bool child_start(const struct proc_spec *spec, struct child **out, struct error *err);
/* The same, as a copy of the process that serves the other end of `copier` (base/copier.h). */
bool child_copy(int copier, const struct proc_spec *spec, struct child **out, struct error *err);
/* Sends a line (no newline inside) and waits for one. CHILD_ENDED and
 * CHILD_LATE are answers, not errors: the caller decides what they mean. */
bool child_ask(struct child *c, struct text line, int deadline_ms, size_t answer_limit,
               struct arena *a, enum child_answer *how, struct text *answer, struct error *err);
/* The same with a limit on CPU time besides the one on wall time, so that a program that waits for
 * a core on a busy machine is not late. */
struct child_limits {
    int cpu_ms, wall_ms; /* 0: none */
};
bool child_ask_within(struct child *c, struct text line, struct child_limits limits,
                      size_t answer_limit, struct arena *a, enum child_answer *how,
                      struct text *answer, struct error *err);
struct text child_stderr(const struct child *c, struct arena *a);
int child_pid(const struct child *c);         /* of the program */
const char *child_tmp(const struct child *c); /* its private folder; NULL: none */
void child_stop(struct child *c);             /* NULL is fine; also after errors */

/*
 * Lending. A process that started a program may let another process talk to it: the three streams
 * are passed on, the supervisor stays. The borrower's `lease` is a socket to the lender; when it
 * closes without the word CHILD_RETURNED, the program is in an unknown state and the lender ends
 * it. The lender answers CHILD_HERE with any packet.
 */
#define CHILD_RETURNED "returned"
#define CHILD_HERE     "here"

/* The borrower's handle; takes the descriptors. `tmp` may be NULL. */
struct child *child_adopt(const int fds[3], int lease, int pid, const char *tmp);
/* Returns a lent program, ready for the next borrower; stops one of our own. NULL is fine. */
void child_return(struct child *c);
bool child_is_lent(const struct child *c);
/* It was lent and the lender has died. Asks the lender: one that is killed closes its descriptors
 * one by one, so that its programs may end before the lease does. */
bool child_lost(const struct child *c);
void child_streams(const struct child *c, int fds[3]); /* the lender's, borrowed */
/* For a lender between two borrowers: false when the program ended or wrote something unasked. */
bool child_quiet(struct child *c);
/* child_stop() in two steps, for callers that cannot wait: child_gone() frees it when it returns
 * true. */
void child_end(struct child *c);
bool child_gone(struct child *c);

/* Where a program that keeps running comes from. NULL as the source: child_start(). `kind` and
 * `tag` say what it is and what it has already loaded, so that a lender can choose among
 * several. */
struct child_source {
    bool (*start)(void *self, const char *kind, const char *tag, const struct proc_spec *spec,
                  struct child **out, struct error *err);
    void *self;
};
bool child_obtain(const struct child_source *source, const char *kind, const char *tag,
                  const struct proc_spec *spec, struct child **out, struct error *err);

/* Resident memory of one process; 0: there is none such. */
uint64_t proc_resident_bytes(int pid);
/* The environment a program of this spec gets, NULL-terminated. */
char **proc_environment(const struct proc_spec *spec, struct arena *a);

#endif
