/* SPDX-License-Identifier: Apache-2.0 */
/*
 * confine.h - what a process that touches a candidate's or a task's bytes may do.
 *
 * A policy lists what a role needs (roles.c has one per role); everything else is denied by several
 * layers, each of which works independently, as far as the kernel supports it:
 *
 *     struct confine_policy p;
 *     confine_role(&p, ROLE_GUEST, &place, arena);
 *     spec.cage = confine_cage(&p, &cage);             base/proc.c enters it between fork and exec
 *     ...
 *     if (!confine_seal(CONFINE_NO_EXEC, err)) ...     in the program itself, once it is started
 *
 * Without base/proc.c: confine_fork(), then confine_enter() in the child, then exec.
 *
 * Invariants
 * 1. No layer gives back what an earlier one took away, and no access survives in a descriptor: all
 *    but those asked for are closed.
 * 2. Which layers are left out is decided by the caller's code alone (`off`, for tests). It is
 *    neither in the JSON form of a policy nor in any environment variable.
 * 3. A path that does not exist is left out, not an error: roles name what may be needed.
 *
 * Strings in a policy are borrowed. docs/security.md says what is promised and how it is tested.
 */
#ifndef CONFINE_CONFINE_H
#define CONFINE_CONFINE_H

#include "base/error.h"
#include "base/proc.h"

#include <jansson.h>
#include <stdint.h>
#include <sys/types.h>

enum { CONFINE_MAX_PATHS = 192 };

/* What may be done below a path. Whatever may be read may also be mapped as code. */
enum confine_right {
    CONFINE_READ = 1,
    CONFINE_EXECUTE = 2, /* start programs */
    CONFINE_WRITE = 4,   /* also create and remove */
    CONFINE_DEVICE = 8,  /* a device node: read, write, ioctl */
    CONFINE_MODIFY = 16, /* write existing files; create and remove nothing (Landlock only) */
};

enum confine_layer {
    CONFINE_LANDLOCK = 1,
    CONFINE_NAMESPACES = 2, /* all of them, with the private root */
};

struct confine_path {
    const char *path;
    unsigned rights;
};

struct confine_policy {
    const char *name; /* of the role */
    struct confine_path path[CONFINE_MAX_PATHS];
    size_t paths;
    bool fork;    /* may create processes; without it only threads */
    bool network; /* may connect to the Internet; never to other programs of this machine */
    /* what libcuda needs besides files: Unix sockets that listen and do not connect, locked memory,
     * the user's groups */
    bool cuda;
    uint64_t data_bytes; /* RLIMIT_DATA: private memory of one process; 0: none */
    uint64_t file_bytes; /* RLIMIT_FSIZE; 0: none */
    uint64_t tmp_bytes;  /* size of the private /tmp and /dev/shm; 0: a small default */
    /* rights in the folder that base/proc.c provides, besides reading and writing */
    unsigned tmp_rights;
    unsigned off; /* enum confine_layer: left out. For tests. */
};

/* The layers in force after confine_enter(). */
struct confine_report {
    bool capabilities, no_new_privs, seccomp;
    bool user, mount, net, ipc, uts; /* namespaces */
    int landlock_abi;                /* 0: none */
};

/* ---- making a policy (policy.c) ---- */
void confine_allow(struct confine_policy *p, const char *path, unsigned rights);
json_t *confine_json(const struct confine_policy *p);
bool confine_parse(const json_t *j, struct arena *a, struct confine_policy *out, struct error *err);

/* The kinds of processes of this product; each is allowed what it needs and no more (roles.c). */
enum confine_role {
    ROLE_BUILDER,  /* NVRTC and headers */
    ROLE_PLANNER,  /* interprets a plan's PTX */
    ROLE_SIMTC,    /* PTX to C, and the C compiler that it starts */
    ROLE_COMPILER, /* a C compiler alone */
    ROLE_RUNNER,   /* a candidate's kernels, on simt or through libcuda */
    ROLE_ORACLE,   /* a task: the user's Python */
    ROLE_GUEST,    /* a ModelNew: foreign Python */
    ROLE_WORKSHOP, /* the same while it compiles: has compilers, but no inputs */
    ROLE_COMPOSER, /* a candidate in Triton: foreign Python that has shapes and no data */
    CONFINE_ROLES
};
struct confine_place {
    const char *program;     /* what is started; for Python the interpreter */
    const char *compiler;    /* the compiler that it starts; NULL: none */
    const char *const *read; /* files and folders, NULL-terminated; may be NULL */
    const char *buffers;     /* a folder whose files it may write; NULL: none */
    const char *work;        /* a folder to write in; NULL: only the one of proc_spec.private_tmp */
    bool cuda, network;
};
const char *confine_role_name(enum confine_role role);
void confine_role(struct confine_policy *p, enum confine_role role,
                  const struct confine_place *place, struct arena *a);

/* Memory that all its processes may hold together; for proc_spec.resident_limit_bytes. */
uint64_t confine_memory(enum confine_role role);

/* ---- entering it (enter.c) ---- */
/* fork() into the policy's namespaces where the kernel permits, else without them. */
pid_t confine_fork(const struct confine_policy *p, struct proc_birth *birth);
/* In the child. Descriptors from 3 on are closed at exec but for `keep` (-1 ends it; may be NULL).
 * false: a layer that every kernel has could not be entered; do not go on. */
bool confine_enter(const struct confine_policy *p, const struct proc_birth *birth, const int *keep,
                   struct confine_report *out, struct error *err);

/* For a program's own start, or after its opening phase; filters accumulate. */
enum confine_seal_bits { CONFINE_NO_EXEC = 1, CONFINE_NO_FORK = 2 };
bool confine_seal(unsigned bits, struct error *err);

/* For struct proc_spec; p and cage live as long as the spec. Returns cage. */
const struct proc_cage *confine_cage(const struct confine_policy *p, struct proc_cage *cage);

/* ---- what this machine supports (probe.c), found by trying it in a child ---- */
bool confine_probe(struct confine_report *out, struct error *err);
/* May foreign code run here without --trust? Yes if it cannot reach the user's files. */
bool confine_holds_files(const struct confine_report *r);
/* One line per layer that this machine lacks, with what it leaves unprotected; NULL: none is
 * missing. */
const char *confine_missing(const struct confine_report *r, struct arena *a);

#endif
