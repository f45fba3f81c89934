/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simt_exec.c - run a program with simt as its GPU, and collect its kernels' findings.
 *
 * The program finds cutegen-cuda.so as its CUDA driver and runtime in a folder made for this one
 * run; nothing of the machine is changed. The library appends a JSON line per launch to a file
 * there, which is read when the program has ended, however it ended.
 */
#include "base/fs.h"
#include "base/json.h"
#include "eval/peaks.h"
#include "stage/settings.h"
#include "stage/stage.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_REPORT = 256 << 20, KIB = 1024 };

extern char **environ;

static bool device_json_for(const struct settings *s, const char *report, struct arena *a,
                            char **out, struct error *err)
{
    const struct gpu *g = gpu_find(s->models);
    json_t *v;

    if (!g) {
        error_set(err, ERROR_USE, "simt cannot stand in for '%s'", s->models);
        return error_hint(err, "--simt-as takes one of %s", gpu_names(a));
    }
    v = json_pack("{s:o, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i}", "name",
                  json_sprintf("NVIDIA %s", g->name), "major", g->arch / 10, "minor", g->arch % 10,
                  "sms", g->sms, "clock_khz", (int)(g->clock_ghz * 1e6), "threads_sm",
                  g->warps_sm * 32, "blocks_sm", g->blocks_sm, "regs_sm", g->regs_sm,
                  "smem_sm_bytes", g->smem_sm_kib * KIB, "smem_block_bytes",
                  g->smem_block_kib * KIB, "l2_bytes", (int)(g->l2_mib * KIB * KIB));
    json_object_set_new(v, "memory_bytes", json_integer((json_int_t)(machine_memory() / 4 * 3)));
    json_object_set_new(v, "check", json_from_string(s->check));
    json_object_set_new(v, "report", json_from_string(report));
    *out = arena_printf(a, "CUTEGEN_SIMT_EXEC=%s", json_line(v, a));
    json_decref(v);
    return true;
}

static bool make_folder(struct arena *a, char **dir, struct error *err)
{
    static const char *const names[] = {"libcuda.so.1", "libcuda.so", "libcudart.so.13"};
    char *library;

    if (!home_program("cutegen-cuda.so", a, &library, err) || !dir_temp("simt-exec", a, dir, err))
        return false;
    library = path_absolute(a, library);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (symlink(library, path_join(a, *dir, names[i])) != 0)
            return error_set(err, ERROR_MACHINE, "linking %s into %s: %s", names[i], *dir,
                             strerror(errno));
    return true;
}

/* "NAME=mine:what it was" */
static char *in_front(const char *name, const char *mine, struct arena *a)
{
    const char *was = getenv(name);

    return arena_printf(a, "%s=%s%s%s", name, mine, was && *was ? ":" : "", was ? was : "");
}

/* Ours with what is changed: where libraries are found, which is loaded first, Python's start,
 * the device. */
static char **make_environment(const char *dir, const char *python, char *device, struct arena *a)
{
    static const char *const own[] = {"LD_LIBRARY_PATH=", "LD_PRELOAD=", "PYTHONPATH=",
                                      "CUTEGEN_SIMT_LIBRARIES=", "CUTEGEN_SIMT_EXEC="};
    size_t n = 0, count = 0;
    char **env;

    while (environ[n])
        n++;
    env = arena_array(a, n + ARRAY_LEN(own) + 1, sizeof *env);
    for (size_t i = 0; i < n; i++) {
        bool mine = false;

        for (size_t k = 0; k < ARRAY_LEN(own); k++)
            mine |= strncmp(environ[i], own[k], strlen(own[k])) == 0;
        if (!mine)
            env[count++] = environ[i];
    }
    env[count++] = in_front("LD_LIBRARY_PATH", dir, a);
    env[count++] = in_front("LD_PRELOAD", path_join(a, dir, "libcudart.so.13"), a);
    env[count++] = in_front("PYTHONPATH", python, a);
    env[count++] = arena_printf(a, "CUTEGEN_SIMT_LIBRARIES=%s", dir);
    env[count++] = device;
    return env;
}

/* Ctrl-C goes to the program, which is in our process group; we wait for its end. */
static bool run(const char *const *argv, char **env, int *status, struct error *err)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN}, was_int, was_quit;
    posix_spawnattr_t attr;
    sigset_t restored;
    pid_t pid;
    int rc;

    sigemptyset(&restored);
    sigaddset(&restored, SIGINT);
    sigaddset(&restored, SIGQUIT);
    sigaction(SIGINT, &ignore, &was_int);
    sigaction(SIGQUIT, &ignore, &was_quit);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setsigdefault(&attr, &restored);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF);
    rc = posix_spawnp(&pid, argv[0], NULL, &attr, (char *const *)(uintptr_t)argv, env);
    posix_spawnattr_destroy(&attr);
    while (rc == 0 && waitpid(pid, status, 0) < 0)
        if (errno != EINTR)
            rc = errno;
    sigaction(SIGINT, &was_int, NULL);
    sigaction(SIGQUIT, &was_quit, NULL);
    if (rc)
        error_set(err, ERROR_USE, "cannot run %s: %s", argv[0], strerror(rc));
    return rc == 0;
}

/* ---- the report ------------------------------------------------------------------ */

static bool same_finding(const json_t *x, const json_t *y)
{
    static const char *const keys[] = {"kind", "kernel", "file", "line"};

    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const json_t *p = json_object_get(x, keys[i]), *q = json_object_get(y, keys[i]);

        if (p != q && !json_equal(p, q))
            return false;
    }
    return true;
}

/* One cause is one finding, however many launches it spoils. */
static void merge_finding(json_t *all, json_t *finding, int64_t launch)
{
    json_t *f;
    size_t i;

    json_array_foreach(all, i, f)
    {
        if (!same_finding(f, finding))
            continue;
        json_object_set_new(
            f, "times",
            json_integer(json_int_or(f, "times", 1) + json_int_or(finding, "times", 1)));
        json_object_set_new(f, "launches", json_integer(json_int_or(f, "launches", 1) + 1));
        return;
    }
    f = json_deep_copy(finding);
    json_object_set_new(f, "launch", json_integer(launch));
    json_object_set_new(f, "launches", json_integer(1));
    json_array_append_new(all, f);
}

static void read_line(json_t *report, struct text line)
{
    json_t *v = NULL, *f, *findings = json_object_get(report, "findings");
    struct error err = {0};
    const char *outcome;
    size_t i;

    if (!json_parse(line, "a line of the report", &v, &err))
        return; /* cut short by a crash */
    outcome = json_string_or(v, "outcome", "");
    json_array_foreach(json_object_get(v, "findings"), i, f)
        merge_finding(findings, f, json_int_or(v, "launch", 0));
    if (strcmp(outcome, "refused") == 0 || strcmp(outcome, "bad_launch") == 0)
        json_array_append_new(json_object_get(report, "refused"),
                              json_pack("{s:O, s:O}", "kernel", json_object_get(v, "kernel"),
                                        "text", json_object_get(v, "text")));
    json_object_set_new(report, "launches", json_integer(json_int_or(report, "launches", 0) + 1));
    json_decref(v);
}

static bool read_report(const char *path, struct arena *a, json_t *report, struct error *err)
{
    struct text all;
    const char *p, *end;

    if (!file_exists(path))
        return true; /* it never opened the device */
    if (!file_read(path, MAX_REPORT, a, &all, err))
        return false;
    for (p = all.data, end = p + all.len; p < end;) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));

        stop = stop ? stop : end;
        if (stop > p)
            read_line(report, (struct text){p, (size_t)(stop - p)});
        p = stop + 1;
    }
    return true;
}

bool stage_simt_exec(const struct settings *settings, const char *const *argv, struct arena *a,
                     json_t **report, struct error *err)
{
    char *dir = NULL, *device = NULL, *lines, *python = NULL;
    struct error ignored = {0};
    int status = 0, code;
    bool ok = make_folder(a, &dir, err) && home_data("oracle/simt_exec", a, &python, err);

    *report = json_pack("{s:[], s:i, s:[], s:[], s:s}", "program", "launches", 0, "findings",
                        "refused", "device", settings->models);
    for (size_t i = 0; argv[i]; i++)
        json_array_append_new(json_object_get(*report, "program"), json_from_string(argv[i]));
    lines = ok ? path_join(a, dir, "launches.jsonl") : NULL;
    ok = ok && device_json_for(settings, lines, a, &device, err) &&
         run(argv, make_environment(dir, path_absolute(a, python), device, a), &status, err) &&
         read_report(lines, a, *report, err);
    if (dir)
        dir_remove(dir, &ignored);
    code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    json_object_set_new(*report, "exit", json_integer(code));
    if (!ok) {
        json_decref(*report);
        *report = NULL;
    }
    return ok;
}
