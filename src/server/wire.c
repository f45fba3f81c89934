/* SPDX-License-Identifier: Apache-2.0 */
/* wire.c - packets between the warm server and its clients; see wire.h. */
#include "server/wire.h"

#include "base/fs.h"
#include "base/json.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

bool wire_paths(struct arena *a, char **socket_path, char **lock_path, struct error *err)
{
    struct sockaddr_un address;
    char *dir;

    if (!home_runtime(a, &dir, err))
        return false;
    *socket_path = path_join(a, dir, "server.socket");
    *lock_path = path_join(a, dir, "server.lock");
    if (strlen(*socket_path) < sizeof(address.sun_path))
        return true;
    error_set(err, ERROR_MACHINE, "%s is too long a name for a socket", *socket_path);
    return error_hint(err, "name a shorter folder: CUTEGEN_RUNTIME=DIR");
}

int64_t wire_stamp(const char *program)
{
    struct stat st;

    return stat(program, &st) == 0 ? (int64_t)st.st_mtime : 0;
}

json_t *wire_freedom(void)
{
    static const int limits[] = {RLIMIT_NOFILE, RLIMIT_STACK, RLIMIT_AS,    RLIMIT_DATA,
                                 RLIMIT_RSS,    RLIMIT_FSIZE, RLIMIT_NPROC, RLIMIT_CPU};
    json_t *list = json_array();
    cpu_set_t cores;

    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        struct rlimit r;
        bool some = getrlimit((unsigned)limits[i], &r) == 0 && r.rlim_cur < (rlim_t)INT64_MAX;

        json_array_append_new(list, json_integer(some ? (json_int_t)r.rlim_cur : INT64_MAX));
    }
    json_array_append_new(list, json_integer(-getpriority(PRIO_PROCESS, 0)));
    json_array_append_new(list, json_integer(sched_getaffinity(0, sizeof cores, &cores) == 0
                                                 ? CPU_COUNT(&cores)
                                                 : INT64_MAX));
    return list;
}

bool wire_is_freer_than(const json_t *freedom)
{
    json_t *ours = wire_freedom(), *value;
    bool freer = false;
    size_t i;

    json_array_foreach(ours, i, value)
    {
        const json_t *theirs = json_array_get(freedom, i);

        freer |= json_is_integer(theirs) && json_integer_value(value) > json_integer_value(theirs);
    }
    json_decref(ours);
    return freer;
}

bool wire_peer_is_us(int socket)
{
    struct ucred who;
    socklen_t len = sizeof(who);

    return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 && who.uid == geteuid();
}

/* Room for the descriptors, aligned as the system wants it. */
union control {
    char bytes[CMSG_SPACE(WIRE_FDS * sizeof(int))];
    struct cmsghdr align;
};

bool wire_send(int socket, const json_t *message, const int *fds)
{
    struct arena *a = arena_new();
    char *line = json_line(message, a);
    struct iovec part = {line, strlen(line)};
    union control control = {{0}};
    struct msghdr head = {.msg_iov = &part, .msg_iovlen = 1};
    ssize_t sent = -1;

    if (fds) {
        struct cmsghdr *c = &control.align;

        head.msg_control = control.bytes;
        head.msg_controllen = sizeof(control.bytes);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(WIRE_FDS * sizeof(int));
        memcpy(CMSG_DATA(c), fds, WIRE_FDS * sizeof(int));
    }
    if (part.iov_len <= WIRE_PACKET_BYTES)
        do
            sent = sendmsg(socket, &head, MSG_NOSIGNAL);
        while (sent < 0 && errno == EINTR);
    arena_free(a);
    return sent == (ssize_t)part.iov_len;
}

bool wire_send_new(int socket, json_t *message_take, const int *fds)
{
    bool ok = wire_send(socket, message_take, fds);

    json_decref(message_take);
    return ok;
}

/* Keeps the expected descriptors; surplus or truncated ones are closed. */
static void take_fds(struct msghdr *head, int fds[WIRE_FDS])
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(head); c; c = CMSG_NXTHDR(head, c)) {
        size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; i < count; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
            if (i < WIRE_FDS && fds[i] < 0)
                fds[i] = fd;
            else
                close(fd);
        }
    }
}

bool wire_receive(int socket, struct arena *a, struct text *out, int fds[WIRE_FDS])
{
    char *data = xmalloc(WIRE_PACKET_BYTES);
    struct iovec part = {data, WIRE_PACKET_BYTES};
    union control control;
    struct msghdr head = {.msg_iov = &part,
                          .msg_iovlen = 1,
                          .msg_control = control.bytes,
                          .msg_controllen = sizeof(control.bytes)};
    ssize_t n;

    for (int i = 0; i < WIRE_FDS; i++)
        fds[i] = -1;
    do
        n = recvmsg(socket, &head, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n > 0) {
        take_fds(&head, fds);
        *out = arena_text(a, data, (size_t)n);
    } else if (n == 0) {
        errno = ECONNRESET;
    }
    xfree(data);
    return n > 0;
}
