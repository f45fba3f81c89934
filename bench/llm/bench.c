/*
 * bench.c - what a call costs beyond the server's own time.
 *
 *     bench URL sequential N | parallel N PER      (bench.sh starts the server and runs all)
 *
 * Two clients send the same request to the same server over kept connections:
 * the llm room, and a bare socket that writes the bytes and reads to the end of
 * the stream. The difference is the room's overhead.
 */
#include "base/clock.h"
#include "llm/llm.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PROMPT_BYTES = 24000 };

static char prompt[PROMPT_BYTES + 1];

static int compare(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;

    return a < b ? -1 : a > b;
}

static double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof(*v), compare);
    return v[n / 2];
}

static long resident_kib(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    long pages = 0, skip;

    if (f && fscanf(f, "%ld %ld", &skip, &pages) != 2)
        pages = 0;
    if (f)
        fclose(f);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static double cpu_ms(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e3 +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e3;
}

static struct llm *open_llm(const char *url)
{
    struct llm_config c = llm_config_default();
    struct error err = {0};
    struct llm *llm;

    c.model = "openai:bench";
    c.base_url = url;
    if (!llm_open(&c, &llm, &err)) {
        fprintf(stderr, "bench: %s\n", err.text);
        _exit(1);
    }
    return llm;
}

static double one_call(struct llm *llm)
{
    struct message m[] = {{"system", text_of("You are a bench.")}, {"user", text_of(prompt)}};
    struct request req = {.stage = STAGE_REPAIR, .messages = m, .message_count = 2};
    struct arena *a = arena_new();
    struct error err = {0};
    struct reply r;
    int64_t begin = clock_us();
    double us;

    if (!llm_ask(llm, &req, a, &r, &err)) {
        fprintf(stderr, "bench: %s\n", err.text);
        _exit(1);
    }
    us = (double)(clock_us() - begin);
    arena_free(a);
    return us;
}

/* ---- the bare client ----------------------------------------------------------------- */

static int connect_to(const char *url)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

    addr.sin_port = htons((uint16_t)strtol(strrchr(url, ':') + 1, NULL, 10));
    if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) != 0) {
        perror("connect");
        _exit(1);
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return fd;
}

static double bare_call(int fd, const char *request, size_t len)
{
    int64_t begin = clock_us();
    char buf[65536];
    size_t have = 0;

    if (write(fd, request, len) != (ssize_t)len)
        _exit(1);
    while (have < 5 || memcmp(buf + have - 5, "0\r\n\r\n", 5) != 0) {
        ssize_t n = read(fd, buf + have, sizeof(buf) - have);

        if (n <= 0)
            _exit(1);
        have += (size_t)n;
    }
    return (double)(clock_us() - begin);
}

static char *bare_request(const char *url, size_t *len)
{
    char *body, *all;
    const char *path = strchr(strstr(url, "://") + 3, '/');
    int n = asprintf(&body,
                     "{\"model\":\"bench\",\"messages\":[{\"role\":\"system\",\"content\":\"You "
                     "are a bench.\"},{\"role\":\"user\",\"content\":\"%s\"}],\"stream\":true}",
                     prompt);

    *len = (size_t)asprintf(&all,
                            "POST %s/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: "
                            "application/json\r\nContent-Length: %d\r\n\r\n%s",
                            path ? path : "", n, body);
    free(body);
    return all;
}

/* ---- the two measurements ---------------------------------------------------------------- */

static void sequential(const char *url, int n)
{
    double *room = calloc((size_t)n, sizeof(double)), *bare = calloc((size_t)n, sizeof(double));
    struct llm *llm = open_llm(url);
    int fd = connect_to(url);
    size_t len;
    char *request = bare_request(url, &len);
    long first = 0;
    double spent;

    for (int i = 0; i < 20; i++) {
        one_call(llm);
        bare_call(fd, request, len);
    }
    first = resident_kib();
    spent = cpu_ms();
    for (int i = 0; i < n; i++) {
        room[i] = one_call(llm);
        bare[i] = bare_call(fd, request, len);
    }
    spent = cpu_ms() - spent;
    printf("sequential  %d calls: llm room %.3f ms, bare socket %.3f ms, overhead %.3f ms a call "
           "(medians); cpu %.3f ms a call; resident %ld KiB -> %ld KiB\n",
           n, median(room, n) / 1000, median(bare, n) / 1000,
           (median(room, n) - median(bare, n)) / 1000, spent / n, first, resident_kib());
    llm_close(llm);
    close(fd);
    free(request);
    free(room);
    free(bare);
}

struct worker {
    const char *url;
    int calls;
    bool bare;
    pthread_t thread;
};

static void *work(void *arg)
{
    struct worker *w = arg;
    size_t len;
    char *request = bare_request(w->url, &len);

    if (w->bare) {
        int fd = connect_to(w->url);

        for (int i = 0; i < w->calls; i++)
            bare_call(fd, request, len);
        close(fd);
    } else {
        struct llm *llm = open_llm(w->url);

        for (int i = 0; i < w->calls; i++)
            one_call(llm);
        llm_close(llm);
    }
    free(request);
    return NULL;
}

static double parallel_ms(const char *url, int n, int per, bool bare)
{
    struct worker *all = calloc((size_t)n, sizeof(*all));
    int64_t begin = clock_us();
    double ms;

    for (int i = 0; i < n; i++) {
        all[i] = (struct worker){.url = url, .calls = per, .bare = bare};
        pthread_create(&all[i].thread, NULL, work, &all[i]);
    }
    for (int i = 0; i < n; i++)
        pthread_join(all[i].thread, NULL);
    ms = (double)(clock_us() - begin) / 1000;
    free(all);
    return ms;
}

static void parallel(const char *url, int n, int per)
{
    double bare, room, bare_cpu, room_cpu, spent;
    long first;

    parallel_ms(url, n, 1, false);
    first = resident_kib();
    spent = cpu_ms();
    bare = parallel_ms(url, n, per, true);
    bare_cpu = cpu_ms() - spent;
    spent = cpu_ms();
    room = parallel_ms(url, n, per, false);
    room_cpu = cpu_ms() - spent;
    printf("parallel    %d x %d calls, opening included: llm room %.0f ms in all, %.3f ms of cpu a "
           "call; bare sockets %.0f ms, %.3f ms; resident %ld KiB -> %ld KiB\n",
           n, per, room, room_cpu / (n * per), bare, bare_cpu / (n * per), first, resident_kib());
}

int main(int argc, char **argv)
{
    memset(prompt, 'x', PROMPT_BYTES);
    if (argc == 4 && strcmp(argv[2], "sequential") == 0)
        sequential(argv[1], (int)strtol(argv[3], NULL, 10));
    else if (argc == 5 && strcmp(argv[2], "parallel") == 0)
        parallel(argv[1], (int)strtol(argv[3], NULL, 10), (int)strtol(argv[4], NULL, 10));
    else
        return 2;
    return 0;
}
