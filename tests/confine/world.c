/* world.c - see world.h. */
#include "world.h"

#include "base/error.h"
#include "base/fs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "the test's world: %s: %s\n", what, strerror(errno));
    abort();
}

static void put_file(const char *dir, const char *name)
{
    char path[256];
    int fd;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    must(fd >= 0 && write(fd, "planted\n", 8) == 8, path);
    close(fd);
}

static void put_folder(const struct world *w, char *out, size_t size, const char *name)
{
    snprintf(out, size, "%.100s/%s", w->dir, name);
    must(mkdir(out, 0700) == 0, out);
}

static int listen_unix(const char *path, int type, size_t abstract_len)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    socklen_t len = sizeof a;

    memcpy(a.sun_path + (abstract_len ? 1 : 0), path, strlen(path));
    if (abstract_len)
        len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + abstract_len);
    must(bind(fd, (void *)&a, len) == 0, "bind a Unix socket");
    if (type == SOCK_STREAM)
        must(listen(fd, 64) == 0, "listen");
    return fd;
}

static int listen_inet(int type, int *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

    must(fd >= 0 && bind(fd, (void *)&a, sizeof a) == 0, "bind to the loopback");
    must(getsockname(fd, (void *)&a, &len) == 0, "getsockname");
    if (type == SOCK_STREAM)
        must(listen(fd, 64) == 0, "listen");
    *port = ntohs(a.sin_port);
    return fd;
}

static void on_signal(int s)
{
    (void)s;
}

/* Execs itself, so that the key stands in the block that /proc shows; then says where. */
static void start_victim(struct world *w)
{
    char self[256], key[96];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    int said[2];

    must(n > 0 && pipe(said) == 0, "start a victim");
    self[n] = '\0';
    snprintf(key, sizeof key, "WORLD_KEY=%s", w->key);
    w->victim = fork();
    if (w->victim == 0) {
        char secret[200], *env[] = {key, (char *)(uintptr_t) "ASAN_OPTIONS=detect_leaks=0", NULL},
                          *argv[] = {self, (char *)(uintptr_t) "--victim", NULL};

        snprintf(secret, sizeof secret, "%.150s/secret", w->home);
        dup2(open(secret, O_RDONLY), 40);
        dup2(said[1], 1);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (chdir(w->home) == 0)
            execve(self, argv, env);
        _exit(9);
    }
    close(said[1]);
    must(read(said[0], &w->address, sizeof w->address) == (ssize_t)sizeof w->address,
         "hear from the victim");
    close(said[0]);
}

/* Lives until it is killed. */
int world_victim(void)
{
    uintptr_t address = (uintptr_t)getenv("WORLD_KEY");

    signal(SIGUSR1, on_signal);
    if (write(1, &address, sizeof address) < 0)
        return 1;
    for (;;)
        pause();
}

void world_make(struct world *w)
{
    *w = (struct world){.dir = "/tmp/confine-XXXXXX"};
    must(mkdtemp(w->dir) != NULL, "a folder in /tmp");
    put_folder(w, w->home, sizeof w->home, "home");
    put_folder(w, w->cache, sizeof w->cache, "cache");
    put_folder(w, w->other_work, sizeof w->other_work, "other");
    put_folder(w, w->work, sizeof w->work, "work");
    put_file(w->home, "secret");
    put_file(w->home, "profile");
    put_file(w->home, "gone");
    put_file(w->cache, "kernel.so");
    put_file(w->other_work, "result");
    put_file(w->dir, "store.db");
    snprintf(w->store, sizeof w->store, "%s/store.db", w->dir);
    snprintf(w->shm, sizeof w->shm, "/dev/shm/confine-%d", (int)getpid());
    if (access("/dev/shm", W_OK) == 0)
        put_file("/dev/shm", strrchr(w->shm, '/') + 1);
    else
        w->shm[0] = '\0';
    snprintf(w->key, sizeof w->key, "sk-planted-%d", (int)getpid());
    snprintf(w->socket_path, sizeof w->socket_path, "%.60s/server", w->dir);
    snprintf(w->dgram_path, sizeof w->dgram_path, "%.60s/log", w->dir);
    snprintf(w->abstract, sizeof w->abstract, "confine-%d", (int)getpid());
    (void)listen_unix(w->socket_path, SOCK_STREAM, 0);
    (void)listen_unix(w->dgram_path, SOCK_DGRAM, 0);
    (void)listen_unix(w->abstract, SOCK_STREAM, strlen(w->abstract));
    (void)listen_inet(SOCK_STREAM, &w->tcp_port);
    (void)listen_inet(SOCK_DGRAM, &w->udp_port);
    start_victim(w);
}

void world_end(struct world *w)
{
    struct error ignored = {0};

    kill(w->victim, SIGKILL);
    waitpid(w->victim, NULL, 0);
    if (w->shm[0])
        unlink(w->shm);
    dir_remove(w->dir, &ignored);
}
