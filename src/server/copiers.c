/* SPDX-License-Identifier: Apache-2.0 */
/* copiers.c - the warm server's copiers; see copiers.h. */
#include "server/copiers.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_COPIERS = 2, ENOUGH_WISHES = 2, A_WHILE_MS = 2000, REQUESTS_FD = 3 };

struct copier {
    json_t *wish;       /* the last one; NULL: this place is free */
    int wishes, copies; /* seen, made */
    pid_t pid;          /* 0: not started */
    int fd;             /* requests; -1: none, it is ending */
    bool ready;
    int64_t used_ms;
};

struct copiers {
    int idle_ms;
    struct copier at[MAX_COPIERS];
};

struct copiers *copiers_new(int idle_ms)
{
    struct copiers *c = xmalloc(sizeof *c);

    *c = (struct copiers){.idle_ms = idle_ms};
    for (int i = 0; i < MAX_COPIERS; i++)
        c->at[i].fd = -1;
    return c;
}

/* ---- which ------------------------------------------------------------------ */

static const char *group_of(const json_t *wish)
{
    return json_string_or(wish, "copies", "");
}

static struct copier *find(struct copiers *c, const json_t *wish)
{
    for (int i = 0; i < MAX_COPIERS; i++)
        if (c->at[i].wish && strcmp(group_of(c->at[i].wish), group_of(wish)) == 0)
            return &c->at[i];
    return NULL;
}

/* Its copies are not ended with it: each has a supervisor that listens to us alone. */
static void end(struct copier *p)
{
    if (p->pid <= 0 || p->fd < 0)
        return;
    close(p->fd);
    p->fd = -1;
    p->ready = false;
    kill(p->pid, SIGKILL);
}

static void reap(struct copier *p)
{
    if (p->pid > 0 && waitpid(p->pid, NULL, WNOHANG) != 0) {
        end(p);
        p->pid = 0;
    }
}

/* A free place, or that of the one not used for longest. NULL: it is still ending. */
static struct copier *place_for(struct copiers *c)
{
    struct copier *oldest = &c->at[0];

    for (int i = 0; i < MAX_COPIERS; i++) {
        if (!c->at[i].wish)
            return &c->at[i];
        if (c->at[i].used_ms < oldest->used_ms)
            oldest = &c->at[i];
    }
    end(oldest);
    reap(oldest);
    if (oldest->pid)
        return NULL;
    json_decref(oldest->wish);
    *oldest = (struct copier){.fd = -1};
    return oldest;
}

static struct copier *note(struct copiers *c, const json_t *wish)
{
    struct copier *p = find(c, wish);

    if (!p && !(p = place_for(c)))
        return NULL;
    json_decref(p->wish);
    p->wish = json_incref((json_t *)(uintptr_t)wish);
    p->wishes++;
    p->used_ms = clock_ms();
    return p;
}

/* ---- starting, asking -------------------------------------------------------- */

bool copiers_copy(struct copiers *c, const json_t *wish, const struct proc_spec *spec,
                  struct child **out)
{
    struct error why = {0};
    struct copier *p;

    if (!json_object_get(wish, "copier") || !(p = note(c, wish)) || !p->ready)
        return false;
    if (child_copy(p->fd, spec, out, &why)) {
        p->copies++;
        return true;
    }
    log_info("%s; it is started instead", why.text); /* its files may have changed */
    end(p);
    return false;
}

/* A list of the wish as words, with room for one more. */
static const char **words_of(const json_t *wish, const char *key, struct arena *a, size_t *count)
{
    const json_t *list = json_object_get(wish, key);
    size_t n = json_array_size(list);
    const char **words = arena_array(a, n + 2, sizeof *words);

    *count = 0;
    for (size_t i = 0; i < n; i++)
        if (json_is_string(json_array_get(list, i)))
            words[(*count)++] = json_string_value(json_array_get(list, i));
    return words;
}

/* In a new process. It dies with us: a supervisor in between would end its copies with it. */
static _Noreturn void become_copier(const char *const *argv, const char *const *env, int fd)
{
    int null = open("/dev/null", O_RDWR);
    sigset_t none;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int s = 1; s < 32; s++)
        signal(s, SIG_DFL);
    if (chdir("/") != 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0)
        _exit(3);
    if (fd != REQUESTS_FD)
        dup2(fd, REQUESTS_FD);
    else
        fcntl(fd, F_SETFD, 0);
    close_range(REQUESTS_FD + 1, ~0U, 0);
    execve(argv[0], (char *const *)(uintptr_t)argv, (char *const *)(uintptr_t)env);
    _exit(3);
}

static bool begin(struct copier *p)
{
    struct arena *a = arena_new();
    int pair[2] = {-1, -1};
    size_t n, ignored;
    const char **argv = words_of(p->wish, "copier", a, &n);
    const char **env = words_of(p->wish, "env", a, &ignored);

    argv[n] = arena_printf(a, "%d", REQUESTS_FD);
    p->wishes = 0; /* one that fails is not tried again at once */
    p->used_ms = clock_ms();
    if (n > 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0) {
        p->pid = fork();
        if (p->pid == 0)
            become_copier(argv, env, pair[1]);
        close(pair[1]);
        if (p->pid > 0)
            p->fd = pair[0];
        else
            close(pair[0]);
    }
    arena_free(a);
    return p->fd >= 0;
}

/* ---- tending ------------------------------------------------------------------ */

static bool is_wanted(const struct copier *p)
{
    return p->wish && !p->pid && p->wishes >= ENOUGH_WISHES;
}

static bool is_worth_a_start(const struct copier *p, bool idle)
{
    return is_wanted(p) ||
           (p->wish && !p->pid && p->wishes > 0 && idle && clock_ms() - p->used_ms > A_WHILE_MS);
}

bool copiers_wanted(const struct copiers *c)
{
    for (int i = 0; i < MAX_COPIERS; i++)
        if (is_wanted(&c->at[i]))
            return true;
    return false;
}

static void look_at(struct copier *p)
{
    struct pollfd fd = {p->fd, POLLIN, 0};
    char word;

    if (p->fd < 0 || poll(&fd, 1, 0) <= 0)
        return;
    if (!p->ready && read(p->fd, &word, 1) == 1)
        p->ready = true;
    else
        end(p); /* it says nothing more but by ending */
}

void copiers_tend(struct copiers *c, bool quiet, bool idle)
{
    for (int i = 0; i < MAX_COPIERS; i++) {
        struct copier *p = &c->at[i];

        look_at(p);
        if (clock_ms() - p->used_ms > c->idle_ms)
            end(p);
        reap(p);
        if (quiet && is_worth_a_start(p, idle) && !begin(p))
            log_info("no copier can be started");
    }
}

uint64_t copiers_memory(const struct copiers *c)
{
    uint64_t sum = 0;

    for (int i = 0; i < MAX_COPIERS; i++)
        sum += c->at[i].pid ? proc_resident_bytes(c->at[i].pid) : 0;
    return sum;
}

void copiers_trim(struct copiers *c)
{
    for (int i = 0; i < MAX_COPIERS; i++) {
        end(&c->at[i]);
        c->at[i].wishes = 0;
    }
}

void copiers_free(struct copiers *c)
{
    copiers_trim(c);
    for (int i = 0; i < MAX_COPIERS; i++) {
        while (c->at[i].pid && (reap(&c->at[i]), c->at[i].pid))
            usleep(1000);
        json_decref(c->at[i].wish);
    }
    xfree(c);
}

json_t *copiers_status(const struct copiers *c)
{
    json_t *list = json_array();

    for (int i = 0; i < MAX_COPIERS; i++) {
        const struct copier *p = &c->at[i];

        if (p->pid)
            json_array_append_new(
                list, json_pack("{s:s, s:s, s:s, s:i, s:i, s:I, s:I}", "kind", "copier", "state",
                                p->fd < 0  ? "ending"
                                : p->ready ? "waiting"
                                           : "starting",
                                "tag", "", "pid", (int)p->pid, "uses", p->copies, "seconds",
                                (json_int_t)((clock_ms() - p->used_ms) / 1000), "resident_mib",
                                (json_int_t)(proc_resident_bytes(p->pid) >> 20)));
    }
    return list;
}
