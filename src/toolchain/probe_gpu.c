/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe_gpu.c - the driver and NVRTC, examined from a child process.
 *
 * NVML answers in milliseconds and is asked first; cuInit() can take seconds if GPUs are asleep,
 * but shows whether CUDA really works.
 */
#include "toolchain/probe_gpu.h"

#include "base/buf.h"
#include "base/clock.h"
#include "confine/confine.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_ANSWER = 65536 };

pid_t probe_fork(probe_body *body, const char *arg, int *fd)
{
    int ends[2];
    pid_t pid;

    if (pipe(ends))
        return -1;
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ends[0]);
        body(ends[1], arg);
        _exit(0);
    }
    close(ends[1]);
    *fd = ends[0];
    if (pid < 0)
        close(ends[0]);
    return pid;
}

struct text probe_collect(pid_t pid, int fd, int64_t until_ms, struct arena *a)
{
    struct buf b = buf_init(MAX_ANSWER);
    struct text out;
    char chunk[4096];

    if (pid < 0)
        return text_of("");
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int64_t left = until_ms - clock_ms();
        ssize_t n;

        if (left <= 0 || poll(&p, 1, (int)left) == 0)
            break;
        n = read(fd, chunk, sizeof(chunk));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        buf_add(&b, chunk, (size_t)n);
    }
    kill(pid, SIGKILL);
    close(fd);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    out = buf_copy(&b, a);
    buf_release(&b);
    return out;
}

/* dlsym() gives an object pointer; POSIX says that it holds a function. */
#define LOOKUP(library, function, symbol)                                                          \
    do {                                                                                           \
        void *found_ = dlsym(library, symbol);                                                     \
        memcpy(&(function), &found_, sizeof(found_));                                              \
    } while (0)

static void probe_nvml(int fd)
{
    struct {
        unsigned long long total, free, used;
    } memory;
    void *lib = dlopen("libnvidia-ml.so.1", RTLD_NOW), *device;
    int (*init)(void), (*count_of)(unsigned *), (*by_index)(unsigned, void **);
    int (*name_of)(void *, char *, unsigned), (*memory_of)(void *, void *);
    int (*capability_of)(void *, int *, int *);
    unsigned count = 0;

    if (!lib)
        return;
    LOOKUP(lib, init, "nvmlInit_v2");
    LOOKUP(lib, count_of, "nvmlDeviceGetCount_v2");
    LOOKUP(lib, by_index, "nvmlDeviceGetHandleByIndex_v2");
    LOOKUP(lib, name_of, "nvmlDeviceGetName");
    LOOKUP(lib, memory_of, "nvmlDeviceGetMemoryInfo");
    LOOKUP(lib, capability_of, "nvmlDeviceGetCudaComputeCapability");
    if (!init || !count_of || !by_index || !name_of || !memory_of || !capability_of || init() ||
        count_of(&count))
        return;
    for (unsigned i = 0; i < count; i++) {
        char name[96] = "";
        int major = 0, minor = 0;

        if (by_index(i, &device) || name_of(device, name, sizeof(name)) ||
            memory_of(device, &memory) || capability_of(device, &major, &minor))
            continue;
        dprintf(fd, "nvml %s|%d.%d|%llu\n", name, major, minor, memory.total);
    }
}

static void probe_driver(int fd)
{
    void *lib = dlopen("libcuda.so.1", RTLD_NOW);
    int (*init)(unsigned), (*count_of)(int *), (*by_index)(int *, int);
    int (*name_of)(char *, int, int), (*memory_of)(size_t *, int), (*attribute)(int *, int, int);
    int (*version_of)(int *);
    int count = 0, code, version = 0;

    if (!lib) {
        dprintf(fd, "no libcuda\n");
        return;
    }
    LOOKUP(lib, init, "cuInit");
    LOOKUP(lib, count_of, "cuDeviceGetCount");
    LOOKUP(lib, by_index, "cuDeviceGet");
    LOOKUP(lib, name_of, "cuDeviceGetName");
    LOOKUP(lib, memory_of, "cuDeviceTotalMem_v2");
    LOOKUP(lib, attribute, "cuDeviceGetAttribute");
    LOOKUP(lib, version_of, "cuDriverGetVersion");
    if (!init || !count_of || !by_index || !name_of || !memory_of || !attribute || !version_of) {
        dprintf(fd, "no usable libcuda\n");
        return;
    }
    code = init(0);
    if (code || count_of(&count)) {
        dprintf(fd, "error %d\n", code);
        return;
    }
    version_of(&version);
    dprintf(fd, "driver %d.%d\n", version / 1000, version % 1000 / 10);
    for (int i = 0; i < count; i++) {
        char name[96] = "";
        size_t bytes = 0;
        int device, major = 0, minor = 0;

        if (by_index(&device, i) || name_of(name, sizeof(name), device) ||
            memory_of(&bytes, device))
            continue;
        attribute(&major, 75, device); /* compute capability */
        attribute(&minor, 76, device);
        dprintf(fd, "cuda %s|%d.%d|%zu\n", name, major, minor, bytes);
    }
}

void probe_gpus(int fd, const char *unused)
{
    (void)unused;
    probe_nvml(fd);
    probe_driver(fd);
    dprintf(fd, "end\n");
}

/* Creates a context in the confinement of a runner and an oracle: "opened", or why not. */
static _Noreturn void open_confined(const struct confine_policy *p, const struct proc_birth *birth,
                                    int fd)
{
    const int keep[] = {fd, -1};
    struct confine_report report;
    struct error err = {0};
    void *lib, *context = NULL;
    int (*init)(unsigned) = NULL, (*retain)(void **, int) = NULL;
    int code = 0;

    if (!confine_enter(p, birth, keep, &report, &err)) {
        dprintf(fd, "layers %s\n", err.text);
        _exit(0);
    }
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* as after exec */
    lib = dlopen("libcuda.so.1", RTLD_NOW);
    if (lib) {
        LOOKUP(lib, init, "cuInit");
        LOOKUP(lib, retain, "cuDevicePrimaryCtxRetain");
    }
    if (init && retain && (code = init(0)) == 0 && (code = retain(&context, 0)) == 0)
        dprintf(fd, "opened\n");
    else if (!init || !retain)
        dprintf(fd, "no libcuda\n");
    else
        dprintf(fd, "closed CUDA says %d\n", code);
    _exit(0);
}

void probe_confined_gpu(int fd, const char *libraries)
{
    struct confine_place place = {.cuda = true};
    struct confine_policy p;
    struct arena *a = arena_new();
    struct proc_birth birth;
    pid_t pid;

    confine_role(&p, ROLE_RUNNER, &place, a);
    for (const char *at = libraries; at && *at;) {
        size_t len = strcspn(at, ":");

        confine_allow(&p, arena_strndup(a, at, len), CONFINE_READ);
        at += len + (at[len] == ':');
    }
    pid = confine_fork(&p, &birth);
    if (pid == 0)
        open_confined(&p, &birth, fd);
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    dprintf(fd, "end\n");
    arena_free(a);
}

void probe_nvrtc(int fd, const char *library)
{
    void *lib = dlopen(library, RTLD_NOW);
    int (*version)(int *, int *) = NULL;
    int major = 0, minor = 0;

    if (lib)
        LOOKUP(lib, version, "nvrtcVersion");
    if (!lib)
        dprintf(fd, "broken %s\n", dlerror());
    else if (!version || version(&major, &minor))
        dprintf(fd, "broken %s does not answer nvrtcVersion\n", library);
    else
        dprintf(fd, "version %d.%d\n", major, minor);
}
