/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proc.c - our side of running a program: pipes, limits on what we keep, the end.
 *
 * The supervisor (supervise.c) does the killing; here it is only told to, by
 * closing the life pipe, and waited for. Programs get a socket as stdin, so
 * that writing to one that has ended is an error and never a SIGPIPE.
 */
#include "base/proc.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/copier.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/supervise.h"
#include "base/vault.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { DEFAULT_OUTPUT = 1 << 20, STOP_POLL_MS = 50, COPY_MS = 5000, LENDER_MS = 60000 };

struct child {
    pid_t supervisor;               /* -1: none, or another process's child */
    int in, out, err, life, report; /* -1: closed */
    int lease;                      /* socket to the lender; -1: it is our own */
    int pid;                        /* of the program */
    char *tmp;                      /* its private folder; NULL: none */
    struct buf out_buf, err_buf;
    size_t scanned; /* bytes of out_buf known to hold no newline */
    size_t err_limit;
};

static bool same_name(const char *a, const char *b)
{
    size_t len = strcspn(a, "=");

    return len == strcspn(b, "=") && strncmp(a, b, len) == 0;
}

/* Our environment without secrets (or nothing), then the additions, which replace earlier
 * entries. */
char **proc_environment(const struct proc_spec *spec, struct arena *a)
{
    size_t ours = 0, extra = 0, n = 0;
    char **env;

    while (environ && environ[ours])
        ours++;
    while (spec->env && spec->env[extra])
        extra++;
    env = arena_array(a, ours + extra + 1, sizeof(*env));
    for (size_t i = 0; i < ours && !spec->clean_env; i++) {
        bool replaced = vault_is_secret_name(environ[i]);

        for (size_t j = 0; j < extra && !replaced; j++)
            replaced = same_name(environ[i], spec->env[j]);
        if (!replaced)
            env[n++] = environ[i];
    }
    for (size_t j = 0; j < extra; j++)
        env[n++] = arena_strdup(a, spec->env[j]);
    return env;
}

/* On disk unless asked otherwise: compilers put large files there. */
static char *make_tmp(const struct proc_spec *spec, struct arena *a)
{
    const char *root = getenv("TMPDIR");
    struct error ignored = {0};
    char *dir;

    if (spec->tmp_in_memory)
        return dir_temp("cutegen-tmp", a, &dir, &ignored) ? dir : NULL;
    return mkdtemp(arena_printf(a, "%s/cutegen-tmp-XXXXXX", root && *root ? root : "/tmp"));
}

/* `entry` replaces the entry of the same name. */
static char **with_entry(char **env, char *entry, struct arena *a)
{
    size_t count = 0, n = 0;
    char **out;

    while (env[count])
        count++;
    out = arena_array(a, count + 2, sizeof(*out));
    for (size_t i = 0; i < count; i++)
        if (!same_name(env[i], entry))
            out[n++] = env[i];
    out[n] = entry;
    return out;
}

static bool child_failed(const struct proc_spec *spec, const struct supervise_report *r,
                         struct error *err)
{
    static const char *const steps[] = {"start a process for", "enter the working folder of",
                                        "cut off the network for", "start", "confine"};

    if (r->why[0])
        return error_set(err, ERROR_MACHINE, "cannot confine %s: %s", spec->argv[0], r->why);

    if (r->step == 1)
        return error_set(err, ERROR_MACHINE, "cannot enter %s to start %s: %s", spec->dir,
                         spec->argv[0], strerror(r->code));
    return error_set(err, ERROR_MACHINE, "cannot %s %s: %s",
                     steps[r->step >= 0 && r->step < (int)ARRAY_LEN(steps) ? r->step : 0],
                     spec->argv[0], strerror(r->code));
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Reads one report; false when the supervisor died without one. */
static bool read_report(int fd, struct supervise_report *r)
{
    size_t have = 0;

    while (have < sizeof(*r)) {
        ssize_t n = read(fd, (char *)r + have, sizeof(*r) - have);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        have += (size_t)n;
    }
    return true;
}

static struct child *child_new(const struct proc_spec *spec)
{
    struct child *c = xmalloc(sizeof(*c));

    *c = (struct child){
        .supervisor = -1, .in = -1, .out = -1, .err = -1, .life = -1, .report = -1, .lease = -1};
    c->err_limit = spec->output_limit ? spec->output_limit : DEFAULT_OUTPUT;
    c->out_buf = buf_init(SIZE_MAX / 2);
    c->err_buf = buf_init(2 * c->err_limit);
    return c;
}

/* The supervisor ended without starting the program; report is NULL if it sent none. */
static void child_not_started(struct child *c, const struct supervise_plan *plan,
                              const struct supervise_report *report, struct error *err)
{
    if (c->supervisor > 0)
        waitpid(c->supervisor, NULL, 0);
    c->supervisor = -1;
    if (plan->tmp)
        rmdir(plan->tmp);
    if (report)
        child_failed(plan->spec, report, err);
    else
        error_set(err, ERROR_MACHINE, "cannot start %s: its supervisor was killed",
                  plan->spec->argv[0]); /* or the copier never made one */
}

/* A copier that is in trouble must not hold up its lender; what it makes later finds its life pipe
 * closed. */
static bool answers(int report)
{
    return poll(&(struct pollfd){report, POLLIN, 0}, 1, COPY_MS) > 0;
}

static bool supervisor_start(struct child *c, int copier, const struct supervise_plan *plan,
                             struct error *err)
{
    if (copier >= 0)
        return copier_send(copier, plan, err);
    fflush(NULL);
    c->supervisor = fork();
    if (c->supervisor == 0)
        supervise(plan);
    return c->supervisor > 0 || error_set(err, ERROR_MACHINE, "cannot start %s: %s",
                                          plan->spec->argv[0], strerror(errno));
}

static void child_unblock(const struct child *c)
{
    fcntl(c->in, F_SETFL, O_NONBLOCK);
    fcntl(c->out, F_SETFL, O_NONBLOCK);
    fcntl(c->err, F_SETFL, O_NONBLOCK);
}

/* copier: -1: none, the program is started by exec. */
static bool start(int copier, const struct proc_spec *spec, struct child **out, struct error *err)
{
    struct arena *a = arena_new();
    struct child *c = child_new(spec);
    int in[2] = {-1, -1}, o[2] = {-1, -1}, e[2] = {-1, -1}, life[2] = {-1, -1}, rep[2] = {-1, -1};
    char *program = path_find_program(a, spec->argv[0]);
    struct supervise_report report = {0};
    struct supervise_plan plan;
    bool ok = false, told;

    if (!program) {
        error_set(err, ERROR_MACHINE, "cannot start %s: no such program%s", spec->argv[0],
                  strchr(spec->argv[0], '/') ? "" : " on PATH");
        goto done;
    }
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in) != 0 || pipe2(o, O_CLOEXEC) != 0 ||
        pipe2(e, O_CLOEXEC) != 0 || pipe2(life, O_CLOEXEC) != 0 || pipe2(rep, O_CLOEXEC) != 0) {
        error_set(err, ERROR_MACHINE, "cannot start %s: %s", spec->argv[0], strerror(errno));
        goto done;
    }
    plan = (struct supervise_plan){.spec = spec,
                                   .program = program,
                                   .environment = proc_environment(spec, a),
                                   .in = in[1],
                                   .out = o[1],
                                   .err = e[1],
                                   .life = life[0],
                                   .report = rep[1]};
    if (spec->private_tmp && (plan.tmp = make_tmp(spec, a)))
        plan.environment = with_entry(plan.environment, arena_printf(a, "TMPDIR=%s", plan.tmp), a);
#if defined(__SANITIZE_ADDRESS__)
    if (spec->cage) /* leak checking needs ptrace, which confinement denies */
        plan.environment =
            with_entry(plan.environment, arena_strdup(a, "LSAN_OPTIONS=detect_leaks=0"), a);
#endif
    if (!supervisor_start(c, copier, &plan, err)) {
        if (plan.tmp)
            rmdir(plan.tmp);
        goto done;
    }
    close_fd(&in[1]);
    close_fd(&o[1]);
    close_fd(&e[1]);
    close_fd(&life[0]);
    close_fd(&rep[1]);
    told = (copier < 0 || answers(rep[0])) && read_report(rep[0], &report);
    if (!told || !report.started) {
        child_not_started(c, &plan, told ? &report : NULL, err);
        goto done;
    }
    c->pid = report.started;
    c->tmp = plan.tmp ? xstrdup(plan.tmp) : NULL;
    c->in = in[0];
    c->out = o[0];
    c->err = e[0];
    c->life = life[1];
    c->report = rep[0];
    in[0] = o[0] = e[0] = life[1] = rep[0] = -1;
    child_unblock(c);
    ok = true;
done:
    for (int i = 0; i < 2; i++)
        close_fd(&in[i]), close_fd(&o[i]), close_fd(&e[i]), close_fd(&life[i]), close_fd(&rep[i]);
    arena_free(a);
    if (ok)
        *out = c;
    else
        child_stop(c);
    return ok;
}

bool child_start(const struct proc_spec *spec, struct child **out, struct error *err)
{
    return start(-1, spec, out, err);
}

bool child_copy(int copier, const struct proc_spec *spec, struct child **out, struct error *err)
{
    return start(copier, spec, out, err);
}

/* Keeps the end of stderr: a program's last lines say why it died. */
static void keep_tail(struct child *c, const char *data, size_t len)
{
    if (len >= c->err_limit) {
        data += len - c->err_limit;
        len = c->err_limit;
    }
    if (c->err_buf.len + len > 2 * c->err_limit) {
        size_t keep = c->err_limit;

        memmove(c->err_buf.data, c->err_buf.data + c->err_buf.len - keep, keep);
        c->err_buf.len = keep;
    }
    buf_add(&c->err_buf, data, len);
}

/* One poll round: writes as much of `input` as fits, reads what has arrived. */
static void child_pump(struct child *c, struct text *input, int wait_ms,
                       void (*take_out)(void *self, const char *, size_t),
                       void (*take_err)(void *self, const char *, size_t), void *self)
{
    struct pollfd fds[4] = {{c->out, POLLIN, 0},
                            {c->err, POLLIN, 0},
                            {input && input->len ? c->in : -1, POLLOUT, 0},
                            {c->out < 0 && c->err < 0 ? c->report : -1, POLLIN, 0}};
    char chunk[65536];
    ssize_t n;

    if (poll(fds, 4, wait_ms) <= 0)
        return;
    if (fds[0].revents) {
        n = read(c->out, chunk, sizeof(chunk));
        if (n > 0)
            take_out(self, chunk, (size_t)n);
        else if (n == 0 || (errno != EAGAIN && errno != EINTR))
            close_fd(&c->out);
    }
    if (fds[1].revents) {
        n = read(c->err, chunk, sizeof(chunk));
        if (n > 0)
            take_err(self, chunk, (size_t)n);
        else if (n == 0 || (errno != EAGAIN && errno != EINTR))
            close_fd(&c->err);
    }
    if (fds[2].revents) {
        n = send(c->in, input->data, input->len, MSG_NOSIGNAL);
        if (n > 0) {
            input->data += n;
            input->len -= (size_t)n;
        } else if (errno != EAGAIN && errno != EINTR) {
            input->len = 0; /* it no longer reads; how it ends will say why */
        }
    }
}

static void take_line(void *self, const char *data, size_t len)
{
    buf_add(&((struct child *)self)->out_buf, data, len);
}

static void take_tail(void *self, const char *data, size_t len)
{
    keep_tail(self, data, len);
}

/* Takes the first line off the buffer; false when there is none yet. */
static bool cut_line(struct child *c, struct arena *a, struct text *line)
{
    struct text have = buf_text(&c->out_buf);
    const char *end =
        have.len > c->scanned ? memchr(have.data + c->scanned, '\n', have.len - c->scanned) : NULL;
    size_t len;

    c->scanned = have.len;
    if (!end)
        return false;
    len = (size_t)(end - have.data);
    *line = vault_scrub(arena_text(a, have.data, len), a);
    memmove(c->out_buf.data, c->out_buf.data + len + 1, c->out_buf.len - len - 1);
    c->out_buf.len -= len + 1;
    c->scanned = 0;
    return true;
}

/* CPU time of one process so far; 0 when it cannot be read (any more). */
static int64_t cpu_ms_of(int pid)
{
    char path[64], stat[512], *fields;
    unsigned long user = 0, system = 0;
    ssize_t n;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    n = read(fd, stat, sizeof(stat) - 1);
    close(fd);
    stat[n > 0 ? n : 0] = '\0';
    /* The name may hold anything; the fields start after its last ')'. */
    fields = strrchr(stat, ')');
    if (!fields || sscanf(fields + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
                          &system) != 2)
        return 0;
    return (int64_t)(user + system) * 1000 / sysconf(_SC_CLK_TCK);
}

/* How long to wait before the next check; 0: the time is up. */
static int time_left(const struct child *c, struct child_limits limits, int64_t start,
                     int64_t cpu_start)
{
    int64_t left = INT32_MAX;

    if (limits.wall_ms)
        left = start + limits.wall_ms - clock_ms();
    if (limits.cpu_ms && left > 0) {
        int64_t cpu = cpu_start + limits.cpu_ms - cpu_ms_of(c->pid);

        /* With several threads, CPU time advances faster than the clock. */
        if (cpu < left)
            left = cpu <= 0 ? 0 : cpu < 40 ? 10 : cpu / 4;
    }
    return left < 0 ? 0 : (int)left;
}

bool child_ask_within(struct child *c, struct text line, struct child_limits limits,
                      size_t answer_limit, struct arena *a, enum child_answer *how,
                      struct text *answer, struct error *err)
{
    int64_t start = clock_ms(), cpu_start = limits.cpu_ms ? cpu_ms_of(c->pid) : 0;
    struct arena *scratch = arena_new();
    char *copy = arena_alloc(scratch, line.len + 1);
    struct text input = {copy, line.len + 1};
    bool ok = true;

    if (line.len)
        memcpy(copy, line.data, line.len);
    copy[line.len] = '\n';
    *answer = (struct text){"", 0};
    for (;;) {
        int left;

        if (cut_line(c, a, answer)) {
            *how = CHILD_LINE;
            break;
        }
        if (c->out_buf.len > answer_limit) {
            ok = error_set(err, ERROR_MACHINE, "an answer of more than %zu bytes", answer_limit);
            break;
        }
        left = time_left(c, limits, start, cpu_start);
        if (c->out < 0) {
            *how = CHILD_ENDED;
            while (c->err >= 0 && left > 0) {
                child_pump(c, NULL, 50, take_line, take_tail, c);
                left -= 50;
            }
            break;
        }
        if (left == 0) {
            *how = CHILD_LATE;
            break;
        }
        child_pump(c, &input, left == INT32_MAX ? -1 : left, take_line, take_tail, c);
    }
    log_debug("process %d took %d ms for %.*s", c->pid, (int)(clock_ms() - start),
              line.len < 60 ? (int)line.len : 60, line.data);
    arena_free(scratch);
    return ok;
}

bool child_ask(struct child *c, struct text line, int deadline_ms, size_t answer_limit,
               struct arena *a, enum child_answer *how, struct text *answer, struct error *err)
{
    return child_ask_within(c, line, (struct child_limits){.wall_ms = deadline_ms}, answer_limit, a,
                            how, answer, err);
}

struct text child_stderr(const struct child *c, struct arena *a)
{
    struct text t = buf_text(&c->err_buf);
    size_t skip = t.len > c->err_limit ? t.len - c->err_limit : 0;

    return vault_scrub(arena_text(a, t.data + skip, t.len - skip), a);
}

int child_pid(const struct child *c)
{
    return c->pid;
}

const char *child_tmp(const struct child *c)
{
    return c->tmp;
}

void child_end(struct child *c)
{
    close_fd(&c->in);
    close_fd(&c->life); /* the supervisor ends everything now */
    close_fd(&c->out);
    close_fd(&c->err);
    close_fd(&c->lease); /* without CHILD_RETURNED: the lender ends everything */
}

static void child_free(struct child *c)
{
    close_fd(&c->report);
    buf_release(&c->out_buf);
    buf_release(&c->err_buf);
    xfree(c->tmp);
    xfree(c);
}

bool child_gone(struct child *c)
{
    struct pollfd report = {c->report, POLLIN, 0};

    if (c->supervisor > 0 ? waitpid(c->supervisor, NULL, WNOHANG) == 0
                          : c->report >= 0 && poll(&report, 1, 0) == 0)
        return false;
    child_free(c);
    return true;
}

/* Its last report comes when nothing of the program is left. */
static void await_supervisor(struct child *c)
{
    struct supervise_report last;

    if (c->supervisor > 0)
        while (waitpid(c->supervisor, NULL, 0) < 0 && errno == EINTR)
            ;
    else if (c->report >= 0)
        (void)read_report(c->report, &last);
}

void child_stop(struct child *c)
{
    if (!c)
        return;
    child_end(c);
    await_supervisor(c);
    child_free(c);
}

/* ---- lending --------------------------------------------------------------- */

struct child *child_adopt(const int fds[3], int lease, int pid, const char *tmp)
{
    struct child *c = xmalloc(sizeof(*c));

    *c = (struct child){.supervisor = -1,
                        .in = fds[0],
                        .out = fds[1],
                        .err = fds[2],
                        .life = -1,
                        .report = -1,
                        .lease = lease,
                        .pid = pid,
                        .tmp = tmp ? xstrdup(tmp) : NULL,
                        .err_limit = 64 << 10};
    c->out_buf = buf_init(SIZE_MAX / 2);
    c->err_buf = buf_init(2 * c->err_limit);
    return c;
}

void child_return(struct child *c)
{
    if (c && c->lease >= 0)
        (void)!send(c->lease, CHILD_RETURNED, strlen(CHILD_RETURNED), MSG_NOSIGNAL);
    child_stop(c);
}

bool child_is_lent(const struct child *c)
{
    return c->lease >= 0;
}

bool child_lost(const struct child *c)
{
    struct pollfd fd = {c->lease, POLLIN, 0};
    char first;
    int n;

    if (c->lease < 0)
        return false;
    if (send(c->lease, CHILD_HERE, strlen(CHILD_HERE), MSG_NOSIGNAL) < 0)
        return true;
    while ((n = poll(&fd, 1, LENDER_MS)) < 0 && errno == EINTR)
        ;
    return n > 0 && recv(c->lease, &first, 1, MSG_DONTWAIT) <= 0;
}

void child_streams(const struct child *c, int fds[3])
{
    fds[0] = c->in;
    fds[1] = c->out;
    fds[2] = c->err;
}

static void take_nothing(void *self, const char *data, size_t len)
{
    (void)data;
    *(size_t *)self += len;
}

static void take_anything(void *self, const char *data, size_t len)
{
    (void)self;
    (void)data;
    (void)len;
}

bool child_quiet(struct child *c)
{
    size_t said = 0, before;
    struct pollfd err = {c->err, POLLIN, 0};

    do {
        before = said;
        child_pump(c, NULL, 0, take_nothing, take_anything, &said);
        err.fd = c->err;
    } while (c->out >= 0 && said == before && poll(&err, 1, 0) > 0);
    return c->out >= 0 && c->err >= 0 && said == 0;
}

bool child_obtain(const struct child_source *source, const char *kind, const char *tag,
                  const struct proc_spec *spec, struct child **out, struct error *err)
{
    return source ? source->start(source->self, kind, tag, spec, out, err)
                  : child_start(spec, out, err);
}

struct run_sink {
    struct buf out, err;
};

static void sink_out(void *self, const char *data, size_t len)
{
    buf_add(&((struct run_sink *)self)->out, data, len);
}

static void sink_err(void *self, const char *data, size_t len)
{
    buf_add(&((struct run_sink *)self)->err, data, len);
}

/* Passes on the lines that arrived since `told`; the last one may be incomplete. */
static void tell_lines(const struct proc_spec *spec, const struct buf *out, size_t *told)
{
    const char *end;

    while (spec->line && *told < out->len &&
           (end = memchr(out->data + *told, '\n', out->len - *told)) != NULL) {
        struct arena *a = arena_new();
        struct text line = {out->data + *told, (size_t)(end - out->data) - *told};

        spec->line(spec->line_ctx, vault_scrub(line, a));
        arena_free(a);
        *told += line.len + 1;
    }
}

bool proc_run(const struct proc_spec *spec, struct arena *a, struct proc_result *out,
              struct error *err)
{
    size_t limit = spec->output_limit ? spec->output_limit : DEFAULT_OUTPUT;
    struct run_sink sink = {buf_init(limit), buf_init(limit)};
    struct supervise_report report = {0};
    struct text input = spec->input;
    struct child *c;
    size_t told = 0;
    bool ok, asked = false, stopped = false;

    if (!child_start(spec, &c, err))
        return false;
    while ((c->out >= 0 || c->err >= 0) && !stopped) {
        if (!input.len)
            close_fd(&c->in);
        child_pump(c, &input, spec->stop ? STOP_POLL_MS : -1, sink_out, sink_err, &sink);
        tell_lines(spec, &sink.out, &told);
        if (spec->ask && !asked && spec->ask(spec->stop_ctx)) {
            asked = true;
            kill(child_pid(c), SIGTERM);
        }
        stopped = spec->stop && spec->stop(spec->stop_ctx);
    }
    close_fd(&c->in);
    if (stopped) {
        close_fd(&c->life); /* the supervisor ends everything now */
        report.end = PROC_STOPPED;
    }
    /* Both streams ended; the program itself may still be running. */
    ok = stopped || read_report(c->report, &report);
    if (!ok)
        error_set(err, ERROR_MACHINE, "the supervisor of %s was killed", spec->argv[0]);
    if (report.left)
        log_warn("process %d of %s does not end, even when killed; it is left behind", report.left,
                 spec->argv[0]);
    *out = (struct proc_result){
        .end = report.end,
        .code = report.code,
        .out = vault_scrub(buf_copy(&sink.out, a), a),
        .err = vault_scrub(buf_copy(&sink.err, a), a),
        .out_cut = sink.out.overflowed,
        .err_cut = sink.err.overflowed,
        .wall_ms = report.wall_ms,
        .cpu_ms = report.cpu_ms,
        .peak_resident_bytes = report.peak_resident_bytes,
    };
    child_stop(c);
    log_debug("%s took %d ms", spec->argv[0], report.wall_ms);
    buf_release(&sink.out);
    buf_release(&sink.err);
    return ok;
}

bool proc_out_of_cpu(const struct proc_result *r)
{
    /* What a compiler driver prints when the compiler itself was killed. */
    static const char *const words[] = {"CPU time limit exceeded", "Killed signal terminated"};

    if (r->end == PROC_SIGNALED)
        return r->code == SIGXCPU || r->code == SIGKILL;
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (memmem(r->out.data, r->out.len, words[i], strlen(words[i])) ||
            memmem(r->err.data, r->err.len, words[i], strlen(words[i])))
            return r->end == PROC_EXITED && r->code != 0;
    return false;
}

const char *proc_end_text(const struct proc_result *r, struct arena *a)
{
    switch (r->end) {
    case PROC_EXITED:
        return arena_printf(a, "exit status %d", r->code);
    case PROC_SIGNALED:
        return arena_printf(a, "killed by SIG%s", sigabbrev_np(r->code));
    case PROC_DEADLINE:
        return arena_printf(a, "no end within %d ms", r->wall_ms);
    case PROC_DISK:
        return "more files than its limit";
    case PROC_CROWD:
        return "more processes than its limit";
    case PROC_STOPPED:
        return "stopped";
    case PROC_MEMORY:
        return arena_printf(a, "more than its memory limit (%llu MiB seen)",
                            (unsigned long long)(r->peak_resident_bytes >> 20));
    }
    BUG("process end %d", (int)r->end);
}
