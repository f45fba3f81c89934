/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claims.c - how many jobs a second clients can claim and end.
 *
 *     claims DIR JOBS CLIENTS        on $CUTEGEN_TEST_STORE, or the SQLite file in DIR
 *
 * Every client is a process with a connection of its own, as a worker is. Prints one line:
 * CLIENTS JOBS MILLISECONDS JOBS/S, then the CPU time of a job, of its clients and of the server
 * ($PGDATA_OF_TEST): what a machine's cores allow at most, however busy this one is. Fails when a job was had twice or by nobody.
 */
#include "base/clock.h"
#include "store/jobs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static int refuse(const struct error *err)
{
    fprintf(stderr, "claims: %s\n", err->text);
    return 1;
}

static bool add_jobs(struct store *s, size_t count, struct arena *a, const char **suite,
                     struct error *err)
{
    const char **paths = arena_array(a, count, sizeof(*paths));

    for (size_t i = 0; i < count; i++)
        paths[i] = arena_printf(a, "/tasks/t%zu.py", i);
    return suite_create(s, "/bench", paths, count, NULL, a, suite, err) &&
           jobs_add_suite(s, *suite, &(struct job_needs){0}, 0, err);
}

/* Claims and ends until nothing is left; how many it had goes into the pipe. */
static int work(const char *dir, const char *url, const char *suite, int start, int fd)
{
    struct queue_worker w = {.has = {.kind = "simt", .gpu = ""}, .suite = suite};
    struct arena *a = arena_new();
    struct store *s = NULL;
    struct error err = {0};
    struct job j;
    bool found = true;
    int had = 0;
    char go;

    if (!store_open(dir, url, STORE_WRITE, &s, &err) || !worker_begin(s, &w, &err) ||
        read(start, &go, 1) != 0) /* all begin when the writer closes it */
        return refuse(&err);
    while (job_claim(s, &w, a, &j, &found, &err) && found &&
           job_end(s, &w, &j, &(struct job_end){.ended = true}, &err))
        had++;
    store_close(s);
    arena_free(a);
    if (err.kind)
        return refuse(&err);
    return write(fd, &had, sizeof(had)) == sizeof(had) ? 0 : 1;
}

static bool start_clients(const char *dir, const char *url, const char *suite, int clients,
                          const int start[2], const int pipes[2])
{
    for (int i = 0; i < clients; i++) {
        pid_t pid = fork();

        if (pid < 0)
            return false;
        if (pid == 0) {
            close(start[1]);
            close(pipes[0]);
            _exit(work(dir, url, suite, start[0], pipes[1]));
        }
    }
    close(start[0]);
    close(pipes[1]);
    return true;
}

/* Of the server's first process and all of its children that have ended: the connections. */
static double server_cpu_s(void)
{
    const char *data = getenv("PGDATA_OF_TEST");
    char path[4096], line[1024] = "", *end;
    unsigned long t[4] = {0};
    long pid = 0;
    FILE *f;

    snprintf(path, sizeof(path), "%s/postmaster.pid", data ? data : "");
    f = fopen(path, "r");
    if (f) {
        pid = fgets(line, sizeof(line), f) ? strtol(line, NULL, 10) : 0;
        fclose(f);
    }
    snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
    f = pid ? fopen(path, "r") : NULL;
    if (!f)
        return 0;
    end = fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
    fclose(f);
    if (!end || sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %lu %lu", &t[0],
                       &t[1], &t[2], &t[3]) != 4)
        return 0;
    return (double)(t[0] + t[1] + t[2] + t[3]) / (double)sysconf(_SC_CLK_TCK);
}

static double clients_cpu_s(void)
{
    struct rusage u;

    getrusage(RUSAGE_CHILDREN, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

int main(int argc, char **argv)
{
    const char *url = getenv("CUTEGEN_TEST_STORE"), *suite;
    int jobs = argc == 4 ? (int)strtol(argv[2], NULL, 10) : 0;
    int clients = argc == 4 ? (int)strtol(argv[3], NULL, 10) : 0;
    int start[2], pipes[2], had, total = 0, status, bad = 0;
    struct arena *a = arena_new();
    struct store *s = NULL;
    struct error err = {0};
    int64_t began;
    double server;

    if (jobs < 1 || clients < 1) {
        fprintf(stderr, "claims DIR JOBS CLIENTS\n");
        return 2;
    }
    if (!store_open(argv[1], url, STORE_WRITE, &s, &err) ||
        !add_jobs(s, (size_t)jobs, a, &suite, &err))
        return refuse(&err);
    store_close(s);
    if (pipe(start) != 0 || pipe(pipes) != 0 ||
        !start_clients(argv[1], url, suite, clients, start, pipes))
        return 1;
    sleep(1); /* they connect */
    server = server_cpu_s();
    began = clock_ms();
    close(start[1]);
    while (read(pipes[0], &had, sizeof(had)) == sizeof(had))
        total += had;
    began = clock_ms() - began;
    while (wait(&status) > 0)
        bad += status != 0;
    sleep(1); /* the server's processes have ended, too */
    printf("%7d %8d %8lld %10.0f %10.2f %10.2f\n", clients, jobs, (long long)began,
           1000.0 * jobs / (double)(began > 0 ? began : 1), 1000 * clients_cpu_s() / jobs,
           1000 * (server_cpu_s() - server) / jobs);
    arena_free(a);
    return bad || total != jobs;
}
