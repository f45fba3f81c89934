/* attempts_sockets.c - sockets and other ways to talk that hostile code tries. */
#include "attempts.h"
#include "tools.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

static bool try_connect(int fd, const void *address, size_t len)
{
    bool ok = fd >= 0 && connect(fd, address, (socklen_t)len) == 0;

    close_if(fd);
    return ok;
}

static struct sockaddr_in loopback(int port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static bool tcp(const struct world *w)
{
    struct sockaddr_in to = loopback(w->tcp_port);

    return try_connect(socket(AF_INET, SOCK_STREAM, 0), &to, sizeof to);
}

static bool tcp_serves(const struct world *w)
{
    struct sockaddr_in at = loopback(0);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    bool ok = fd >= 0 && bind(fd, (void *)&at, sizeof at) == 0 && listen(fd, 1) == 0;

    (void)w;
    close_if(fd);
    return ok;
}

static bool udp(const struct world *w)
{
    struct sockaddr_in to = loopback(w->udp_port);
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    bool ok = fd >= 0 && sendto(fd, "x", 1, 0, (void *)&to, sizeof to) == 1;

    close_if(fd);
    return ok;
}

static bool inet6(const struct world *w)
{
    (void)w;
    return close_if(socket(AF_INET6, SOCK_DGRAM, 0));
}

static struct sockaddr_un unix_at(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};

    snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
    return a;
}

static bool server_socket(const struct world *w)
{
    struct sockaddr_un to = unix_at(w->socket_path);

    return try_connect(socket(AF_UNIX, SOCK_STREAM, 0), &to, sizeof to);
}

static bool abstract_socket(const struct world *w)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};

    memcpy(to.sun_path + 1, w->abstract, strlen(w->abstract));
    return try_connect(socket(AF_UNIX, SOCK_STREAM, 0), &to,
                       offsetof(struct sockaddr_un, sun_path) + 1 + strlen(w->abstract));
}

/* libcuda makes such sockets. Here a stream socket listens, so the kernel says that once it looks.
 */
static bool packet_connects(const struct world *w)
{
    struct sockaddr_un to = unix_at(w->socket_path);
    int s = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    bool ok = s >= 0 && connect(s, (void *)&to, sizeof to) != 0 && errno == EPROTOTYPE;

    close_if(s);
    return ok;
}

/* A pair needs no address; a datagram one may be given one later. */
static bool datagram_pair(const struct world *w)
{
    struct sockaddr_un to = unix_at(w->dgram_path);
    int s[2] = {-1, -1};
    bool ok = socketpair(AF_UNIX, SOCK_DGRAM, 0, s) == 0 &&
              sendto(s[0], "x", 1, MSG_DONTWAIT, (void *)&to, sizeof to) == 1;

    close_if(s[0]);
    close_if(s[1]);
    return ok;
}

static bool stream_pair_sends(const struct world *w)
{
    struct sockaddr_un to = unix_at(w->socket_path);
    struct iovec data = {(void *)(uintptr_t) "x", 1};
    struct msghdr m = {
        .msg_name = &to, .msg_namelen = sizeof to, .msg_iov = &data, .msg_iovlen = 1};
    int s[2] = {-1, -1};
    bool ok = socketpair(AF_UNIX, SOCK_STREAM, 0, s) == 0 && sendmsg(s[0], &m, MSG_NOSIGNAL) == 1;

    close_if(s[0]);
    close_if(s[1]);
    return ok;
}

static bool packet_pair(const struct world *w)
{
    int s[2] = {-1, -1};
    bool ok = socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s) == 0;

    (void)w;
    close_if(s[0]);
    close_if(s[1]);
    return ok;
}

static bool netlink(const struct world *w)
{
    (void)w;
    return close_if(socket(AF_NETLINK, SOCK_RAW, 0));
}

static bool raw_packets(const struct world *w)
{
    (void)w;
    return close_if(socket(AF_PACKET, SOCK_RAW, 0));
}

static bool raw_ip(const struct world *w)
{
    (void)w;
    return close_if(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP));
}

static bool kernel_crypto(const struct world *w)
{
    (void)w;
    return close_if(socket(AF_ALG, SOCK_SEQPACKET, 0));
}

static bool machine_socket(const struct world *w)
{
    (void)w;
    return close_if(socket(AF_VSOCK, SOCK_STREAM, 0));
}

static bool uring(const struct world *w)
{
    char parameters[256] = {0};

    (void)w;
    return close_if((int)syscall(SYS_io_uring_setup, 2, parameters));
}

static bool sysv_memory(const struct world *w)
{
    int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);

    (void)w;
    if (id >= 0)
        shmctl(id, IPC_RMID, NULL);
    return id >= 0;
}

static bool sysv_queue(const struct world *w)
{
    int id = (int)syscall(SYS_msgget, IPC_PRIVATE, 01000 | 0600);

    (void)w;
    if (id >= 0)
        syscall(SYS_msgctl, id, IPC_RMID, NULL);
    return id >= 0;
}

static bool sysv_semaphore(const struct world *w)
{
    int id = semget(IPC_PRIVATE, 1, IPC_CREAT | 0600);

    (void)w;
    if (id >= 0)
        semctl(id, 0, IPC_RMID);
    return id >= 0;
}

static bool posix_queue(const struct world *w)
{
    mqd_t q = mq_open("/cutegen-confine-test", O_CREAT | O_RDWR, 0600, NULL);

    (void)w;
    if (q == (mqd_t)-1)
        return false;
    mq_close(q);
    mq_unlink("/cutegen-confine-test");
    return true;
}

static const struct attempt rows[] = {
    ROW("TCP: connect", tcp),
    ROW("TCP: listen", tcp_serves),
    ROW("UDP: send", udp),
    MAYBE("IPv6", inet6),
    ROW("connect to the warm server's socket", server_socket),
    ROW("connect to an abstract socket", abstract_socket),
    ROW("connect a packet socket to the warm server's", packet_connects),
    ROW("send a datagram from a socket pair", datagram_pair),
    MAYBE("send to an address from a stream pair", stream_pair_sends),
    ROW("a pair of packet sockets", packet_pair),
    ROW("netlink", netlink),
    ROOT("raw packets", raw_packets),
    ROOT("raw IP", raw_ip),
    MAYBE("kernel crypto sockets", kernel_crypto),
    MAYBE("sockets to the hypervisor", machine_socket),
    MAYBE("io_uring", uring),
    MAYBE("System V shared memory", sysv_memory),
    MAYBE("System V message queue", sysv_queue),
    MAYBE("System V semaphore", sysv_semaphore),
    MAYBE("POSIX message queue", posix_queue),
};
const struct attempt_list attempts_sockets = {rows, sizeof rows / sizeof rows[0]};
