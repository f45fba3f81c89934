/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warm.c - get processes from the warm server; see warm.h.
 *
 * Hides finding, starting, greeting and replacing the server. One connection per loan, whose end is
 * the end of the loan; so a dead client's loans are freed.
 */
#include "server/warm.h"

#include "base/clock.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "server/leave.h"
#include "server/wire.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { START_MS = 5000, ANSWER_S = 20, TRIES = 16, LEAST_MIB = 1024, READY_FD = 3 };

struct warm {
    struct warm_config config;
    struct child_source source;
    bool off; /* it failed, which was reported once */
};

/* ---- starting the server ----------------------------------------------------- */

static int memory_mib(const struct warm_config *config)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    long long mib = pages > 0 && size > 0 ? (long long)pages * size >> 20 : 0;

    if (config->memory_mib > 0)
        return config->memory_mib;
    mib /= 8;
    return mib < LEAST_MIB ? LEAST_MIB : mib > 32768 ? 32768 : (int)mib;
}

/* Runs in a new process: leaves our terminal and folder, then becomes the server. */
static _Noreturn void become_server(char *const *argv, char *const *env, int ready)
{
    int null = open("/dev/null", O_RDWR);

    setsid();
    if (fork() != 0)
        _exit(0); /* the server has no parent to wait for it */
    if (chdir("/") != 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0)
        _exit(3);
    if (ready != READY_FD)
        dup2(ready, READY_FD);
    else
        fcntl(ready, F_SETFD, 0);
    close_range(READY_FD + 1, ~0U, 0);
    execve(argv[0], argv, env);
    _exit(3);
}

/* True when a server may be listening now: ours, or one that another process started first. */
static bool start_server(const struct warm *w, const char *program, struct arena *a)
{
    char *argv[] = {arena_strdup(a, program),
                    arena_printf(a, "%d", w->config.idle_s > 0 ? w->config.idle_s : 600),
                    arena_printf(a, "%d", memory_mib(&w->config)), arena_printf(a, "%d", READY_FD),
                    NULL};
    /* our environment without keys, since it outlives this command */
    struct proc_spec nothing = {0};
    char **env = proc_environment(&nothing, a);
    int ready[2];
    struct pollfd wait;
    pid_t pid;

    if (pipe2(ready, O_CLOEXEC) != 0)
        return false;
    fflush(NULL);
    pid = fork();
    if (pid == 0)
        become_server(argv, env, ready[1]);
    close(ready[1]);
    if (pid > 0)
        waitpid(pid, NULL, 0);
    wait = (struct pollfd){ready[0], POLLIN, 0};
    poll(&wait, 1, START_MS); /* closed when it listens or has ended */
    close(ready[0]);
    return pid > 0;
}

/* ---- greeting ---------------------------------------------------------------- */

static int dial(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval limit = {.tv_sec = ANSWER_S};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0 && wire_peer_is_us(fd))
        return fd;
    close(fd);
    return -1;
}

/* One request, one answer; descriptors in the answer are stored in fds. false: errno says how the
 * server ended, see has_left(). */
static bool exchange_giving(int fd, json_t *request_take, const int *given, struct arena *a,
                            json_t **answer, int *fds, struct error *err)
{
    int nothing[WIRE_FDS], why;
    struct text packet;

    *answer = NULL;
    if (!wire_send_new(fd, request_take, given) ||
        !wire_receive(fd, a, &packet, fds ? fds : nothing)) {
        why = errno;
        error_set(err, ERROR_MACHINE, "the warm server does not answer: %s", strerror(why));
        errno = why;
        return false;
    }
    if (!json_parse(packet, "the warm server's answer", answer, err))
        return false;
    if (json_bool_or(*answer, "ok", false))
        return true;
    error_set(err, ERROR_MACHINE, "the warm server: %s", json_string_or(*answer, "text", "no"));
    why = json_bool_or(*answer, "ending", false) ? ECONNRESET : 0;
    json_decref(*answer);
    *answer = NULL;
    errno = why;
    return false;
}

/* After a failed exchange: did the server end in between, so that another one may be there? */
static bool has_left(void)
{
    return errno == ECONNRESET || errno == EPIPE;
}

static bool exchange(int fd, json_t *request_take, struct arena *a, json_t **answer, int *fds,
                     struct error *err)
{
    return exchange_giving(fd, request_take, NULL, a, answer, fds, err);
}

static int compare_versions(const char *a, const char *b)
{
    for (int i = 0; i < 3; i++) {
        char *a_end, *b_end;
        long x = strtol(a, &a_end, 10), y = strtol(b, &b_end, 10);

        if (x != y)
            return x < y ? -1 : 1;
        a = *a_end == '.' ? a_end + 1 : "";
        b = *b_end == '.' ? b_end + 1 : "";
    }
    return 0;
}

/* Says hello; *older: this server must be replaced. So must one that was started with less freedom:
 * under `ulimit`, `nice` or `taskset`. */
static bool greet(int fd, int64_t our_stamp, struct arena *a, bool *older, struct error *err)
{
    json_t *answer;
    int order;

    if (!exchange(fd,
                  json_pack("{s:s, s:i, s:s}", "do", "hello", "protocol", WIRE_PROTOCOL, "version",
                            CUTEGEN_VERSION),
                  a, &answer, NULL, err))
        return false;
    order = compare_versions(json_string_or(answer, "version", "0"), CUTEGEN_VERSION);
    *older = order < 0 || (order == 0 && (json_int_or(answer, "stamp", 0) < our_stamp ||
                                          wire_is_freer_than(json_object_get(answer, "freedom"))));
    if (!*older && json_int_or(answer, "protocol", 0) != WIRE_PROTOCOL)
        error_set(err, ERROR_MACHINE, "the warm server is version %s and speaks another protocol",
                  json_string_or(answer, "version", "?"));
    json_decref(answer);
    return err->kind == ERROR_NONE;
}

/* A greeted connection, or -1. With `w`, starts or replaces the server if necessary. */
static int reach(const struct warm *w, struct arena *a, struct error *err)
{
    char *socket_path, *lock_path, *program;

    if (!wire_paths(a, &socket_path, &lock_path, err) ||
        !home_program("cutegen-server", a, &program, err))
        return -1;
    for (int i = 0; i < TRIES; i++) {
        struct error why = {0};
        bool older = false, left;
        int fd = dial(socket_path);
        json_t *answer;

        if (fd < 0) {
            if (!w || !start_server(w, program, a))
                break;
            continue;
        }
        errno = 0;
        if (greet(fd, wire_stamp(program), a, &older, &why) && (!older || !w))
            return fd;
        left = has_left();
        if (older && exchange(fd, json_pack("{s:s}", "do", "stop"), a, &answer, NULL, &why))
            json_decref(answer);
        close(fd);
        if (!older && !left) {
            *err = why;
            return -1;
        }
    }
    error_set(err, ERROR_MACHINE, "no warm server can be reached at %s", socket_path);
    return -1;
}

/* ---- borrowing ------------------------------------------------------------------ */

/* Variables that differ between shells and do not matter to compilers or PyTorch. */
static bool noise(const char *entry)
{
    static const char *const names[] = {"PWD",     "OLDPWD",  "SHLVL",   "_",        "TERM",
                                        "COLUMNS", "LINES",   "TTY",     "WINDOWID", "LS_COLORS",
                                        "TMUX",    "STY",     "DISPLAY", "PS1",      "EDITOR",
                                        "PAGER",   "SSH_TTY", "HISTFILE"};
    static const char *const beginnings[] = {"SSH_",    "TMUX_",      "VSCODE_", "GNOME_",
                                             "XDG_SES", "ITERM_",     "TERM_",   "GIT_",
                                             "MESON_T", "CUTEGEN_RUN"};
    size_t len = strcspn(entry, "=");

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strlen(names[i]) == len && strncmp(entry, names[i], len) == 0)
            return true;
    for (size_t i = 0; i < ARRAY_LEN(beginnings); i++)
        if (strncmp(entry, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    return false;
}

static void add_file(struct hash *h, const char *path)
{
    struct stat st;

    if (path[0] != '/' || stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return;
    hash_add(h, &st.st_mtim, sizeof st.st_mtim);
    hash_add(h, &st.st_size, sizeof st.st_size);
}

/* Hashes a script with all modules beside it. */
static void add_folder_of(struct hash *h, const char *script, struct arena *a)
{
    char *dir = arena_strndup(a, script, (size_t)(path_base(script) - script));
    struct dirent **found = NULL;
    int n = scandir(*dir ? dir : ".", &found, NULL, alphasort);

    for (int i = 0; i < n; i++) {
        add_file(h, path_join(a, dir, found[i]->d_name));
        free(found[i]); /* libc's own allocations */
    }
    free(found);
}

/* A process is confined to the files and folders that were there when it started; what was made
 * anew under the same name is another one. */
static void add_confinement(struct hash *h, const json_t *policy)
{
    json_t *path;
    size_t i;

    json_array_foreach(json_object_get(policy, "paths"), i, path)
    {
        struct stat st;

        const char *name = json_string_value(json_array_get(path, 0));

        if (!name || !strncmp(name, "/proc/", 6) || stat(name, &st) != 0 || !S_ISDIR(st.st_mode))
            continue;
        hash_add(h, &st.st_dev, sizeof st.st_dev);
        hash_add(h, &st.st_ino, sizeof st.st_ino);
    }
}

/* The key of a wish: equal keys can be served by the same process. */
static const char *wish_key(const json_t *wish, const struct proc_spec *spec, struct arena *a)
{
    struct hash h = hash_init();
    char hex[65];

    hash_add_text(&h, text_of(json_line(wish, a)));
    add_confinement(&h, json_object_get(wish, "confine"));
    for (size_t i = 0; spec->argv[i]; i++) {
        const char *word = spec->argv[i];
        size_t len = strlen(word);

        add_file(&h, word);
        if (len > 3 && strcmp(word + len - 3, ".py") == 0)
            add_folder_of(&h, word, a);
    }
    hash_hex(&h, hex);
    return arena_strdup(a, hex);
}

/* Copies have the interpreter, the environment and the modules in common; what each is confined to
 * is its own. */
static void add_copier(json_t *wish, const char *script, struct arena *a)
{
    const char *program = json_string_value(json_array_get(json_object_get(wish, "argv"), 0));
    struct error ignored = {0};
    struct hash h = hash_init();
    char *module, hex[65];

    if (!program || !home_program("cutegen-copier.so", a, &module, &ignored))
        return;
    hash_add_text(&h, text_of(program));
    hash_add_text(&h, text_of(json_line(json_object_get(wish, "env"), a)));
    add_file(&h, program);
    add_file(&h, module);
    add_folder_of(&h, script, a);
    hash_hex(&h, hex);
    json_object_set_new(wish, "copies", json_string(hex));
    json_object_set_new(wish, "copier",
                        json_pack("[s, s, s, s, s, s]", program, "-I", "-B", "-u", script, module));
}

static json_t *make_wish(const char *kind, const char *tag, const struct proc_spec *spec,
                         struct arena *a)
{
    char *program = path_find_program(a, spec->argv[0]), **env = proc_environment(spec, a);
    json_t *argv = json_array(), *kept = json_array(), *wish;

    if (program) /* a venv's python is a link, which must not be resolved */
        json_array_append_new(argv, json_string(path_from_here(a, program)));
    for (size_t i = 1; spec->argv[i]; i++)
        json_array_append_new(argv, json_string(spec->argv[i]));
    for (size_t i = 0; env[i]; i++)
        if (!noise(env[i]))
            json_array_append_new(
                kept, json_string(env[i])); /* entries that are not UTF-8 are left out */
    wish = json_pack("{s:s, s:s, s:o, s:o, s:s, s:b, s:b, s:I, s:I, s:I, s:b}", "do", "lend",
                     "kind", kind, "argv", argv, "env", kept, "dir", spec->dir ? spec->dir : "/",
                     "no_network", (int)spec->no_network, "private_tmp", (int)spec->private_tmp,
                     "output_limit", (json_int_t)spec->output_limit, "address_limit",
                     (json_int_t)spec->address_limit_bytes, "resident_limit",
                     (json_int_t)spec->resident_limit_bytes, "once",
                     (int)(strcmp(kind, "runner") == 0));
    json_object_set_new(wish, "tmp_in_memory", json_boolean(spec->tmp_in_memory));
    json_object_set_new(wish, "disk_limit", json_integer((json_int_t)spec->disk_limit_bytes));
    if (spec->copier && program)
        add_copier(wish, spec->copier, a);
    if (spec->cage)
        json_object_set_new(wish, "confine", spec->cage->json(spec->cage->policy));
    json_object_set_new(wish, "key", json_string(wish_key(wish, spec, a)));
    json_object_set_new(wish, "tag", json_string(tag ? tag : ""));
    return program ? wish : (json_decref(wish), NULL);
}

/* *left: another server may lend it. */
static bool borrow(struct warm *w, const char *kind, const char *tag, const struct proc_spec *spec,
                   struct child **out, bool *left, struct error *err)
{
    struct arena *a = arena_new();
    json_t *wish = make_wish(kind, tag, spec, a), *answer = NULL;
    int fds[WIRE_FDS] = {-1, -1, -1}, fd = wish ? reach(w, a, err) : -1;
    bool ok = fd >= 0 && exchange(fd, json_incref(wish), a, &answer, fds, err) && fds[2] >= 0;

    if (ok) {
        *out = child_adopt(fds, fd, (int)json_int_or(answer, "pid", 0),
                           json_string_or(answer, "tmp", NULL));
        log_debug("%s from the warm server: process %d%s", kind, child_pid(*out),
                  json_bool_or(answer, "warm", false) ? ", warm" : "");
    } else {
        *left = fd >= 0 && has_left();
        for (int i = 0; i < WIRE_FDS; i++)
            if (fds[i] >= 0)
                close(fds[i]);
        if (fd >= 0)
            close(fd);
    }
    json_decref(answer);
    json_decref(wish);
    arena_free(a);
    return ok;
}

static bool start(void *self, const char *kind, const char *tag, const struct proc_spec *spec,
                  struct child **out, struct error *err)
{
    struct warm *w = self;
    struct error why = {0};

    if (!w->off) {
        bool left = true;

        for (int i = 0; i < TRIES && left; i++) {
            left = false;
            why = (struct error){0};
            if (borrow(w, kind, tag, spec, out, &left, &why))
                return true;
        }
        w->off = true;
        log_info("continuing without the warm server: %s", why.text);
    }
    return child_start(spec, out, err);
}

/* ---- a program that outlives us ----------------------------------------------- */

static bool leave_by_server(struct warm *w, char *const *argv, char *const *env, const char *dir,
                            const int fds[WIRE_FDS], struct arena *a, struct error *err)
{
    json_t *words = json_array(), *entries = json_array(), *answer = NULL;
    int fd = reach(w, a, err);
    bool ok;

    for (size_t i = 0; argv[i]; i++)
        json_array_append_new(words, json_string(argv[i]));
    for (size_t i = 0; env[i]; i++)
        json_array_append_new(entries,
                              json_string(env[i])); /* entries that are not UTF-8 are left out */
    ok = fd >= 0 && exchange_giving(fd,
                                    json_pack("{s:s, s:O, s:O, s:s}", "do", "leave", "argv", words,
                                              "env", entries, "dir", dir),
                                    fds, a, &answer, NULL, err);
    if (fd >= 0)
        close(fd);
    json_decref(answer);
    json_decref(words);
    json_decref(entries);
    return ok;
}

bool warm_leave(struct warm *w, const char *const *argv, const int fds[3], struct error *err)
{
    struct arena *a = arena_new();
    struct proc_spec nothing = {0}; /* our environment without keys */
    char **env = proc_environment(&nothing, a), *here = getcwd(NULL, 0), **words;
    const char *dir = here ? here : "/";
    struct error why = {0};
    size_t n = 0;
    bool ok;

    while (argv[n])
        n++;
    words = arena_array(a, n + 1, sizeof(*words));
    for (size_t i = 1; i < n; i++)
        words[i] = arena_strdup(a, argv[i]);
    ok = home_program(argv[0], a, &words[0], err);
    if (ok) {
        ok = w && !w->off && leave_by_server(w, words, env, dir, fds, a, &why);
        if (!ok && why.kind != ERROR_NONE)
            log_debug("%s is not started by the warm server: %s", argv[0], why.text);
        ok = ok || leave_start(words, env, dir, fds, err);
    }
    free(here);
    arena_free(a);
    return ok;
}

/* ---- life -------------------------------------------------------------------- */

struct warm *warm_open(const struct warm_config *config)
{
    struct warm *w = xmalloc(sizeof *w);

    w->config = *config;
    w->source = (struct child_source){.start = start, .self = w};
    return w;
}

const struct child_source *warm_source(struct warm *w)
{
    return &w->source;
}

int warm_hold(struct warm *w)
{
    struct arena *a = arena_new();
    struct error ignored = {0};
    int fd = reach(w, a, &ignored);

    arena_free(a);
    return fd;
}

void warm_close(struct warm *w)
{
    xfree(w);
}

/* Asks a running server without starting one; *answer is NULL if there is none. */
static bool tell(const char *what, json_t **answer, struct error *err)
{
    struct arena *a = arena_new();
    struct error none = {0};
    int fd = reach(NULL, a, &none);
    bool ok = true;

    *answer = NULL;
    if (fd >= 0) {
        ok = exchange(fd, json_pack("{s:s}", "do", what), a, answer, NULL, err);
        close(fd);
    }
    arena_free(a);
    return ok;
}

void warm_trim(struct warm *w)
{
    struct error ignored = {0};
    json_t *answer;

    (void)w;
    tell("trim", &answer, &ignored);
    json_decref(answer);
}

bool warm_status(json_t **out, struct error *err)
{
    return tell("status", out, err);
}

bool warm_stop(bool *was_there, struct error *err)
{
    json_t *answer;
    bool ok = tell("stop", &answer, err);

    *was_there = answer != NULL;
    json_decref(answer);
    return ok;
}
