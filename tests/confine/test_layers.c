/*
 * test_layers.c - the worst case: arbitrary native code inside the confinement of each process.
 *
 * The attempts run in a process that has entered a role's policy, for every role, with every layer
 * and with any one of Landlock and the namespaces left out, where namespaces are refused, as the
 * user who runs the tests and (for root) as an ordinary one. First they run unconfined: an attempt
 * that does not work there would prove nothing.
 */
#include "attempts.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/proc.h"
#include "confine/confine.h"
#include "world.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

enum { NOBODY = 65534, LEAST_ATTEMPTS = 60, NOT_RUN = 0, HELD = 1, WORKED = 2 };

struct outcome {
    size_t at; /* the attempt that runs now */
    char result[256];
    struct confine_report report;
    char why[512];
};

static struct outcome *shared_outcome(void)
{
    struct outcome *o =
        mmap(NULL, sizeof *o, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(o, MAP_FAILED);
    return o;
}

/* ---- where namespaces are refused -------------------------------------------------- */

static void refuse_namespaces(void)
{
    const unsigned flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET;
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_unshare, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, flags, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = (unsigned short)ARRAY_LEN(code), .filter = code};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0)
        abort();
}

/* ---- running the attempts ----------------------------------------------------------- */

static void run_attempts(const struct confine_policy *p, const struct world *w, struct outcome *o)
{
    for (o->at = 0; o->at < attempt_count(); o->at++)
        if (!(p->fork && attempt_at(o->at)->forks))
            o->result[o->at] = attempt_at(o->at)->run(w) ? WORKED : HELD;
}

/* Every role; those that may use a GPU once more with what libcuda needs; and what is made as a
 * copy (confine/copier.h). */
struct cage_case {
    enum confine_role role;
    bool cuda, copy;
};
static const struct cage_case cages[] = {
    {ROLE_BUILDER, false, false},  {ROLE_PLANNER, false, false},  {ROLE_SIMTC, false, false},
    {ROLE_COMPILER, false, false}, {ROLE_RUNNER, false, false},   {ROLE_ORACLE, false, false},
    {ROLE_GUEST, false, false},    {ROLE_WORKSHOP, false, false}, {ROLE_RUNNER, true, false},
    {ROLE_ORACLE, true, false},    {ROLE_GUEST, true, false},     {ROLE_WORKSHOP, true, false},
    {ROLE_COMPOSER, false, false}, {ROLE_ORACLE, false, true},    {ROLE_ORACLE, true, true},
};
_Static_assert(ARRAY_LEN(cages) == CONFINE_ROLES + 6, "a role without a row");

static const char *cage_name(const struct cage_case *c)
{
    static char name[32];

    snprintf(name, sizeof name, "%s%s%s", confine_role_name(c->role), c->cuda ? " on CUDA" : "",
             c->copy ? ", a copy" : "");
    return name;
}

static void policy_of(const struct cage_case *c, const struct world *w, struct arena *a,
                      struct confine_policy *p)
{
    struct confine_place place = {.program = "/usr/bin/env", .work = w->work, .cuda = c->cuda};

    confine_role(p, c->role, &place, a);
}

/* Those that start no programs give up exec once they run (the planner by a filter of its own). */
static bool seals(enum confine_role role)
{
    return role == ROLE_BUILDER || role == ROLE_PLANNER || role == ROLE_RUNNER ||
           role == ROLE_GUEST || role == ROLE_COMPOSER;
}

static pid_t fork_case(const struct cage_case *c, const struct confine_policy *p,
                       struct proc_birth *birth)
{
    struct proc_cage cage;

    *birth = (struct proc_birth){.copy = c->copy};
    return confine_cage(p, &cage)->fork(p, false, birth);
}

/* In a child of its own: forking into a policy changes the caller too. */
static _Noreturn void confined_child(const struct cage_case *c, unsigned off, bool refused,
                                     const struct world *w, struct outcome *o)
{
    struct arena *a = arena_new();
    struct error err = {0};
    struct confine_policy p;
    struct proc_birth birth;
    int status = 0;
    pid_t pid;

    policy_of(c, w, a, &p);
    p.off = off;
    if (refused)
        refuse_namespaces();
    pid = fork_case(c, &p, &birth);
    if (pid == 0) {
        if (!confine_enter(&p, &birth, NULL, &o->report, &err) ||
            (seals(c->role) && !confine_seal(CONFINE_NO_EXEC, &err))) {
            snprintf(o->why, sizeof o->why, "%.500s", err.text);
            _exit(3);
        }
        run_attempts(&p, w, o);
        _exit(0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        _exit(4);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 5);
}

/* Returns how many attempts worked; prints them. `expected`: that is no failure. */
static int try_role(const struct cage_case *c, unsigned off, bool refused, const struct world *w,
                    bool expected)
{
    struct outcome *o = shared_outcome();
    int status = 0, worked = 0, held = 0;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid == 0)
        confined_child(c, off, refused, w, o);
    waitpid(pid, &status, 0);
    if (status != 0) {
        printf("    %s: ended with %x at \"%s\": %s\n", cage_name(c), (unsigned)status,
               o->at < attempt_count() ? attempt_at(o->at)->name : "?", o->why);
        worked++;
    }
    for (size_t i = 0; i < attempt_count(); i++) {
        held += o->result[i] == HELD;
        if (o->result[i] != WORKED)
            continue;
        worked++;
        printf("    %s%s: %s\n", cage_name(c), expected ? ", not held" : ": NOT HELD",
               attempt_at(i)->name);
    }
    printf("  %-15s uid %d, landlock %d, namespaces %s%s: %d held, %d not\n", cage_name(c),
           (int)getuid(), o->report.landlock_abi, o->report.mount ? "yes" : "no",
           refused ? " (refused)" : "", held, worked);
    if (!expected && held < LEAST_ATTEMPTS)
        worked++;
    munmap(o, sizeof *o);
    return worked;
}

/* ---- as root and as an ordinary user -------------------------------------------------- */

static void become_nobody(void)
{
    if (setgroups(0, NULL) != 0 || setresgid(NOBODY, NOBODY, NOBODY) != 0 ||
        setresuid(NOBODY, NOBODY, NOBODY) != 0)
        abort();
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

typedef int suite(const struct world *w);

/* Runs the suite in a world of its own; returns the number of failures. */
static int run_suite(suite *s, bool nobody)
{
    int status = 0;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        struct world w;
        int failures;

        if (nobody)
            become_nobody();
        world_make(&w);
        failures = s(&w);
        world_end(&w);
        fflush(NULL);
        _exit(failures > 100 ? 100 : failures);
    }
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 101;
}

static void run_both(suite *s)
{
    assert_int_equal(run_suite(s, false), 0);
    if (getuid() == 0)
        assert_int_equal(run_suite(s, true), 0);
}

/* ---- the tests ------------------------------------------------------------------------ */

/* May we do here what root with all capabilities may? In a container not. */
static bool is_whole_root(void)
{
    static const int needed[] = {6, 7, 12, 13, 16, 18, 21, 22, 25};
    bool all = getuid() == 0;

    for (size_t i = 0; i < ARRAY_LEN(needed); i++)
        all = all && prctl(PR_CAPBSET_READ, needed[i], 0, 0, 0) == 1;
    return all;
}

static int unconfined(const struct world *w)
{
    int broken = 0, worked = 0;

    for (size_t i = 0; i < attempt_count(); i++) {
        const struct attempt *t = attempt_at(i);
        int status = 0;
        pid_t pid;

        fflush(NULL);
        pid = fork();
        if (pid == 0)
            _exit(t->run(w) ? 0 : 1);
        waitpid(pid, &status, 0);
        worked += status == 0;
        if (status != 0 &&
            (t->works == WORKS_ALWAYS || (t->works == WORKS_AS_ROOT && is_whole_root()))) {
            printf("    does not work unconfined: %s\n", t->name);
            broken++;
        }
    }
    printf("  unconfined, uid %d: %d of %zu attempts work\n", (int)getuid(), worked,
           attempt_count());
    return broken + (worked < LEAST_ATTEMPTS);
}

static void attempts_work_without_confinement(void **state)
{
    (void)state;
    run_both(unconfined);
}

static int all_roles(const struct world *w, unsigned off, bool refused)
{
    int failures = 0;

    for (size_t i = 0; i < ARRAY_LEN(cages); i++)
        failures += try_role(&cages[i], off, refused, w, false);
    return failures;
}

static int with_all(const struct world *w)
{
    return all_roles(w, 0, false);
}

static int without_landlock(const struct world *w)
{
    return all_roles(w, CONFINE_LANDLOCK, false);
}

static int without_namespaces(const struct world *w)
{
    return all_roles(w, CONFINE_NAMESPACES, false);
}

static int refused_namespaces(const struct world *w)
{
    return all_roles(w, 0, true);
}

static bool has_landlock(void)
{
    struct confine_report r;
    struct error err = {0};

    return confine_probe(&r, &err) && r.landlock_abi > 0;
}

static bool has_private_root(void)
{
    struct confine_report r;
    struct error err = {0};

    return confine_probe(&r, &err) && r.mount;
}

static void every_role_holds_with_all_layers(void **state)
{
    (void)state;
    if (!has_landlock() && !has_private_root())
        skip();
    run_both(with_all);
}

static void every_role_holds_without_landlock(void **state)
{
    (void)state;
    if (!has_private_root())
        skip();
    run_both(without_landlock);
}

static void every_role_holds_without_namespaces(void **state)
{
    (void)state;
    if (!has_landlock())
        skip();
    run_both(without_namespaces);
}

static void every_role_holds_where_namespaces_are_refused(void **state)
{
    (void)state;
    if (!has_landlock())
        skip();
    run_both(refused_namespaces);
}

static int with_neither(const struct world *w)
{
    struct confine_report none = {.seccomp = true, .no_new_privs = true, .capabilities = true};
    const struct cage_case guest = {ROLE_GUEST, false, false};
    int worked = try_role(&guest, CONFINE_LANDLOCK | CONFINE_NAMESPACES, false, w, true);

    return worked == 0 || confine_holds_files(&none);
}

static void without_both_layers_foreign_code_is_not_held(void **state)
{
    struct confine_report none = {.seccomp = true, .no_new_privs = true, .capabilities = true};
    struct arena *a = arena_new();

    (void)state;
    run_both(with_neither);
    assert_non_null(strstr(confine_missing(&none, a), "can be read and written"));
    arena_free(a);
}

/* ---- through the supervisor: memory, disk, processes, descriptors, environment -------- */

static int run_self(enum confine_role role, unsigned off, const char *what, const struct world *w,
                    struct proc_spec spec, struct arena *a, struct proc_result *r)
{
    char *self = path_absolute(a, "/proc/self/exe");
    const char *argv[] = {self, what, w->work, NULL};
    static const char *const env[] = {"LC_ALL=C", "ASAN_OPTIONS=detect_leaks=0", NULL};
    struct confine_place place = {.program = self, .work = w->work};
    struct confine_policy p;
    struct proc_cage cage;
    struct error err = {0};

    confine_role(&p, role, &place, a);
    p.off = off;
    spec.argv = argv;
    spec.env = env;
    spec.clean_env = true;
    spec.deadline_ms = 600000;
    spec.cage = confine_cage(&p, &cage);
    if (!proc_run(&spec, a, r, &err)) {
        printf("    %s %s: %s\n", confine_role_name(role), what, err.text);
        return 1;
    }
    return 0;
}

static const unsigned offs[] = {0, CONFINE_LANDLOCK, CONFINE_NAMESPACES};

/* The supervisor's limits do not depend on layers; one role is shown with each left out. */
static size_t variants(int role)
{
    return role == ROLE_GUEST ? ARRAY_LEN(offs) : 1;
}

static int memory_ends(const struct world *w)
{
    int failures = 0;

    for (int role = 0; role < CONFINE_ROLES; role++)
        for (size_t i = 0; i < variants(role); i++) {
            struct arena *a = arena_new();
            struct proc_result r;
            struct proc_spec spec = {.resident_limit_bytes = 256 << 20};

            failures += run_self((enum confine_role)role, offs[i], "--memory", w, spec, a, &r);
            if (r.end != PROC_MEMORY || !strstr(r.err.data, "more than 256 MiB of memory")) {
                printf("    %s: memory without end: %s, %.200s\n",
                       confine_role_name((enum confine_role)role), proc_end_text(&r, a),
                       r.err.data);
                failures++;
            }
            arena_free(a);
        }
    return failures;
}

/* Processes without end, each of which forks on; so many in all, should nobody end it. */
static _Noreturn void use_processes(void)
{
    atomic_int *all =
        mmap(NULL, sizeof(*all), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    while (all != MAP_FAILED && atomic_fetch_add(all, 1) < 3000)
        (void)!fork();
    for (;;)
        pause();
}

static int processes_end(const struct world *w)
{
    struct arena *a = arena_new();
    struct proc_result r;
    struct proc_spec spec = {.resident_limit_bytes = UINT64_C(8) << 30};
    int failures = run_self(ROLE_WORKSHOP, 0, "--processes", w, spec, a, &r);

    if (r.end != PROC_CROWD || !strstr(r.err.data, "processes\n")) {
        printf("    processes without end: %s, %.200s\n", proc_end_text(&r, a), r.err.data);
        failures++;
    }
    arena_free(a);
    return failures;
}

static int disk_ends(const struct world *w)
{
    int failures = 0;

    for (int role = 0; role < CONFINE_ROLES; role++)
        for (size_t i = 0; i < variants(role); i++) {
            struct arena *a = arena_new();
            struct proc_result r;
            struct proc_spec spec = {.disk_limit_bytes = 64 << 20, .watch_dir = w->work};

            failures += run_self((enum confine_role)role, offs[i], "--disk", w, spec, a, &r);
            if (r.end != PROC_DISK || !strstr(r.err.data, "more than 64 MiB of files")) {
                printf("    %s: disk without end: %s, %.200s\n",
                       confine_role_name((enum confine_role)role), proc_end_text(&r, a),
                       r.err.data);
                failures++;
            }
            arena_free(a);
        }
    return failures;
}

/* Does somebody hold the lock of leave_daemon()? */
static bool is_locked(const char *path)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool locked = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0;

    if (fd >= 0)
        close(fd);
    return locked;
}

static int daemons_end(const struct world *w)
{
    int failures = 0;

    for (int role = 0; role < CONFINE_ROLES; role++)
        for (size_t i = 0; i < ARRAY_LEN(offs); i++) {
            struct arena *a = arena_new();
            struct proc_result r;
            struct proc_spec spec = {.output_limit = 4096};
            char path[256];

            failures += run_self((enum confine_role)role, offs[i], "--daemon", w, spec, a, &r);
            snprintf(path, sizeof path, "%s/daemon", w->work);
            if (r.end != PROC_EXITED || is_locked(path)) {
                printf("    %s: a daemon lives: %s\n", confine_role_name((enum confine_role)role),
                       proc_end_text(&r, a));
                failures++;
            }
            unlink(path);
            arena_free(a);
        }
    return failures;
}

static int nothing_inherited(const struct world *w)
{
    int failures = 0, fd = open("/etc/passwd", O_RDONLY); /* not close-on-exec */

    dup2(fd, 77);
    setenv("CONFINE_TEST_API_KEY", "sk-planted", 1);
    for (int role = 0; role < CONFINE_ROLES; role++)
        for (size_t i = 0; i < ARRAY_LEN(offs); i++) {
            struct arena *a = arena_new();
            struct proc_result r;
            struct proc_spec spec = {.output_limit = 4096};

            failures += run_self((enum confine_role)role, offs[i], "--look", w, spec, a, &r);
            if (r.end != PROC_EXITED || r.code != 0) {
                printf("    %s: inherited: %s: %.200s\n",
                       confine_role_name((enum confine_role)role), proc_end_text(&r, a),
                       r.out.data);
                failures++;
            }
            arena_free(a);
        }
    return failures;
}

static void memory_without_end_is_ended(void **state)
{
    (void)state;
    run_both(memory_ends);
}

static void processes_without_end_are_ended(void **state)
{
    (void)state;
    run_both(processes_end);
}

static void disk_without_end_is_ended(void **state)
{
    (void)state;
    run_both(disk_ends);
}

static void daemons_do_not_outlive_their_program(void **state)
{
    (void)state;
    run_both(daemons_end);
}

static void descriptors_and_environment_are_empty(void **state)
{
    (void)state;
    run_both(nothing_inherited);
}

/* The first steps of libcuda: a thread gets a name, a socket of its own listens. Ends with 0. */
static int as_libcuda(void)
{
    const char name[] = "confine-test-0";
    struct sockaddr_un own = {.sun_family = AF_UNIX};
    char path[64];
    int fd, s;

    snprintf(path, sizeof path, "/proc/self/task/%d/comm", (int)gettid());
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0 || write(fd, name, sizeof name) != (ssize_t)sizeof name)
        return 1;
    s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    snprintf(own.sun_path + 1, 64, "confine-test-%d", (int)getpid());
    return s < 0 || bind(s, (void *)&own, sizeof own) != 0 || listen(s, 8) != 0;
}

static int cuda_begins(const struct world *w)
{
    int failures = 0;

    for (size_t i = 0; i < ARRAY_LEN(cages); i++)
        for (size_t k = 0; k < ARRAY_LEN(offs); k++) {
            struct arena *a = arena_new();
            struct confine_report report;
            struct error err = {0};
            struct confine_policy p;
            struct proc_birth birth;
            int status = 0;
            pid_t pid;

            policy_of(&cages[i], w, a, &p);
            p.off = offs[k];
            fflush(NULL);
            pid = fork_case(&cages[i], &p, &birth);
            if (pid == 0)
                _exit(confine_enter(&p, &birth, NULL, &report, &err) ? as_libcuda() : 2);
            waitpid(pid, &status, 0);
            if (!WIFEXITED(status) || WEXITSTATUS(status) != (cages[i].cuda ? 0 : 1)) {
                printf("    %s: libcuda's first steps end with %x\n", cage_name(&cages[i]),
                       (unsigned)status);
                failures++;
            }
            arena_free(a);
        }
    return failures;
}

static void libcuda_begins_where_a_gpu_is_allowed(void **state)
{
    (void)state;
    if (!has_landlock() && !has_private_root())
        skip();
    run_both(cuda_begins);
}

static void a_policy_survives_json(void **state)
{
    struct arena *a = arena_new();
    struct confine_place place = {.program = "/usr/bin/env", .work = "/tmp", .network = true};
    struct confine_policy p, q;
    struct error err = {0};
    json_t *j, *k;

    (void)state;
    confine_role(&p, ROLE_ORACLE, &place, a);
    p.off = CONFINE_LANDLOCK;
    j = confine_json(&p);
    assert_true(confine_parse(j, a, &q, &err));
    k = confine_json(&q);
    assert_true(json_equal(j, k));
    assert_int_equal(q.off, 0); /* what is left out does not travel */
    json_decref(j);
    json_decref(k);
    j = json_pack("{s:s, s:[[s, i]]}", "name", "x", "paths", "relative", 1);
    assert_false(confine_parse(j, a, &q, &err));
    json_decref(j);
    arena_free(a);
}

/* ---- what this program does inside ------------------------------------------------------ */

static _Noreturn void use_memory(void)
{
    for (;;) {
        char *p = mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        if (p != MAP_FAILED)
            memset(p, 1, 4 << 20);
    }
}

static _Noreturn void use_disk(const char *dir)
{
    static char chunk[128 << 10];

    for (int n = 0;; n++) {
        char path[256];
        int fd;

        snprintf(path, sizeof path, "%s/part%d", dir, n);
        fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        for (int i = 0; fd >= 0 && i < 4; i++)
            if (write(fd, chunk, sizeof chunk) < 0)
                break;
        if (fd >= 0)
            close(fd);
    }
}

/* Leaves a process behind that holds a lock for as long as it lives. */
static int leave_daemon(const char *dir)
{
    char path[256], byte;
    int p[2];

    snprintf(path, sizeof path, "%s/daemon", dir);
    if (pipe(p) != 0)
        return 1;
    if (fork() == 0) {
        setsid();
        if (fork() == 0) {
            (void)!flock(open(path, O_CREAT | O_WRONLY, 0600), LOCK_EX);
            (void)!write(p[1], "r", 1);
            for (;;)
                pause();
        }
        _exit(0);
    }
    close(p[1]);
    (void)!read(p[0], &byte, 1); /* also when nothing could be started */
    return 0;
}

static int look_around(void)
{
    int open_fds = 0;

    for (int fd = 3; fd < 4096; fd++)
        open_fds += fcntl(fd, F_GETFD) >= 0;
    printf("%d descriptors, key %s\n", open_fds, getenv("CONFINE_TEST_API_KEY"));
    return open_fds > 0 || getenv("CONFINE_TEST_API_KEY") != NULL;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attempts_work_without_confinement),
        cmocka_unit_test(every_role_holds_with_all_layers),
        cmocka_unit_test(every_role_holds_without_landlock),
        cmocka_unit_test(every_role_holds_without_namespaces),
        cmocka_unit_test(every_role_holds_where_namespaces_are_refused),
        cmocka_unit_test(without_both_layers_foreign_code_is_not_held),
        cmocka_unit_test(memory_without_end_is_ended),
        cmocka_unit_test(processes_without_end_are_ended),
        cmocka_unit_test(disk_without_end_is_ended),
        cmocka_unit_test(daemons_do_not_outlive_their_program),
        cmocka_unit_test(descriptors_and_environment_are_empty),
        cmocka_unit_test(libcuda_begins_where_a_gpu_is_allowed),
        cmocka_unit_test(a_policy_survives_json),
    };

    if (argc > 1 && strcmp(argv[1], "--victim") == 0)
        return world_victim();
    if (argc > 1 && strcmp(argv[1], "--memory") == 0)
        use_memory();
    if (argc > 1 && strcmp(argv[1], "--processes") == 0)
        use_processes();
    if (argc > 2 && strcmp(argv[1], "--disk") == 0)
        use_disk(argv[2]);
    if (argc > 2 && strcmp(argv[1], "--daemon") == 0)
        return leave_daemon(argv[2]);
    if (argc > 1 && strcmp(argv[1], "--look") == 0)
        return look_around();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
