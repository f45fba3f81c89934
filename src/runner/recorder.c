/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorder.c - record which kernels a guest launches, and from which library: a library that the
 * CUDA driver loads into the guest (CUDA_INJECTION64_PATH) before any candidate code.
 *
 * CUPTI calls us at every driver call. For a launch we write one line to the judge's pipe, at once:
 *
 *     LIBRARY KERNEL          "libtorch_cuda.so _ZN2at6native..."; "-" for what is not known
 *
 * LIBRARY is the first one up the stack that is neither the driver, nor the runtime, nor CUPTI. The
 * guest cannot change what was written, but its native code can disable the recorder. So a record
 * can convict a candidate but never acquit one (docs/security.md).
 *
 * CUPTI's few types are declared here; its library is found at run time (CUTEGEN_CUPTI, or the
 * loader's own). Nothing of cutegen is linked, because this runs in an untrusted process.
 */
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DRIVER_API = 1, API_ENTER = 0, FRAMES = 32, LINE = 2048 };

struct callback_data {
    int site;
    const char *function;
    const void *parameters;
    void *result;
    const char *symbol;
};

typedef void callback(void *user, int domain, uint32_t id, const struct callback_data *data);
typedef int subscribe(void **subscriber, callback *call, void *user);
typedef int enable(uint32_t on, void *subscriber, int domain);

static int record = -1;

int InitializeInjection(void); /* the driver looks for it */

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static int is_of_cuda(const char *library)
{
    static const char *const own[] = {"libcuda.so", "libcudart", "libcupti", "cutegen-recorder"};

    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strncmp(library, own[i], strlen(own[i])) == 0)
            return 1;
    return 0;
}

static const char *library_above(void)
{
    void *frames[FRAMES];
    int n = backtrace(frames, FRAMES);
    Dl_info info;

    for (int i = 0; i < n; i++)
        if (dladdr(frames[i], &info) && info.dli_fname && !is_of_cuda(base_of(info.dli_fname)))
            return base_of(info.dli_fname);
    return "-";
}

static void on_call(void *user, int domain, uint32_t id, const struct callback_data *data)
{
    char line[LINE];
    int n;

    (void)user;
    (void)id;
    if (domain != DRIVER_API || data->site != API_ENTER ||
        (strncmp(data->function, "cuLaunch", 8) != 0 &&
         strncmp(data->function, "cuGraphLaunch", 13) != 0))
        return;
    n = snprintf(line, sizeof line, "%s %.1500s\n", library_above(),
                 data->symbol ? data->symbol : data->function);
    if (n > 0 && (size_t)n < sizeof line)
        (void)!write(record, line, (size_t)n); /* one write, shorter than PIPE_BUF: never torn */
}

static void *open_cupti(void)
{
    static const char *const names[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};
    const char *given = getenv("CUTEGEN_CUPTI");
    void *lib = given ? dlopen(given, RTLD_NOW) : NULL;

    for (size_t i = 0; !lib && i < sizeof names / sizeof *names; i++)
        lib = dlopen(names[i], RTLD_NOW);
    return lib;
}

int InitializeInjection(void)
{
    const char *path = getenv("CUTEGEN_RECORD");
    void *lib = open_cupti(), *subscriber = NULL, *frame;
    subscribe *begin = lib ? (subscribe *)(uintptr_t)dlsym(lib, "cuptiSubscribe") : NULL;
    enable *switch_on = lib ? (enable *)(uintptr_t)dlsym(lib, "cuptiEnableDomain") : NULL;

    (void)backtrace(&frame, 1); /* makes it load what it needs while no lock is held */
    record = path ? open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC) : -1;
    if (record < 0)
        return 0;
    if (!begin || !switch_on || begin(&subscriber, on_call, NULL) != 0 ||
        switch_on(1, subscriber, DRIVER_API) != 0) {
        (void)!write(record, "! no CUPTI\n", 11);
        return 0;
    }
    (void)!write(record, "! recording\n", 12);
    return 1;
}
