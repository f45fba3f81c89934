/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roles.c - what each of our processes needs, and no more.
 *
 * To allow a role more: a row here, a reason in docs/security.md, and an attempt in tests/confine
 * that shows what it does not open.
 */
#include "base/fs.h"
#include "confine/confine.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

/* Paths of a policy left for callers to add: a large machine has dozens of buses. */
enum { LEFT_FREE = 64 };

static const struct role {
    const char *name;
    bool fork;           /* starts programs */
    bool python;         /* `program` is an interpreter with a library of its own */
    unsigned tmp_rights; /* CONFINE_EXECUTE: it runs or loads files that it created there */
    uint64_t data_bytes, file_bytes, tmp_bytes;
    int memory_part; /* in percent of the machine's memory, where that is less; 0: no limit */
} roles[CONFINE_ROLES] = {
    [ROLE_BUILDER] = {"builder", true, false, 0, 24 * GIB, 4 * GIB, 0, 90},
    [ROLE_PLANNER] = {"planner", false, false, 0, GIB, 64 * MIB, 0, 25},
    [ROLE_SIMTC] = {"simtc", true, false, 0, 8 * GIB, GIB, 0, 75},
    [ROLE_COMPILER] = {"compiler", true, false, 0, 8 * GIB, GIB, 0, 75},
    [ROLE_RUNNER] = {"runner", false, false, 0, 64 * GIB, 512 * MIB, 0, 75},
    [ROLE_ORACLE] = {"oracle", true, true, CONFINE_EXECUTE, 512 * GIB, 64 * GIB, 0, 75},
    [ROLE_WORKSHOP] = {"workshop", true, true, CONFINE_EXECUTE, 64 * GIB, 4 * GIB, 0, 75},
    [ROLE_GUEST] = {"guest", false, true, 0, 64 * GIB, 4 * GIB, 0, 50},
    [ROLE_COMPOSER] = {"composer", false, true, 0, 4 * GIB, 256 * MIB, 0, 50},
};

/* Files of the C library and loader: they hold no secrets and are the same on similar machines. */
static const char *const system_read[] = {"/usr",
                                          "/lib",
                                          "/lib32",
                                          "/lib64",
                                          "/bin",
                                          "/sbin",
                                          "/nix/store",
                                          "/gnu/store",
                                          "/etc/ld.so.cache",
                                          "/etc/alternatives",
                                          "/etc/localtime",
                                          "/proc/self",
                                          "/proc/cpuinfo",
                                          "/proc/meminfo",
                                          "/proc/stat",
                                          "/proc/sys/vm/overcommit_memory",
                                          "/sys/devices/system/cpu",
                                          "/sys/devices/system/node"};

/* What libcuda and PyTorch open on a machine with a driver (bench/gpu/layers.py). */
static const char *const cuda_read[] = {"/proc/driver/nvidia",  "/proc/driver/nvidia-caps",
                                        "/proc/devices",        "/proc/modules",
                                        "/proc/version",        "/proc/sys/vm/mmap_min_addr",
                                        "/sys/module/nvidia",   "/sys/module/nvidia_uvm",
                                        "/sys/bus/pci/devices", "/sys/devices/system/memory",
                                        "/run/nvidia",          "/etc/nvidia",
                                        "/opt/nvidia"};

/* Missing paths are ignored when the policy is entered. */
static const char *const cuda_devices[] = {
    "/dev/nvidiactl",   "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset",
    "/dev/nvidia-caps", "/dev/nvidia0",    "/dev/nvidia1",          "/dev/nvidia2",
    "/dev/nvidia3",     "/dev/nvidia4",    "/dev/nvidia5",          "/dev/nvidia6",
    "/dev/nvidia7"};

uint64_t confine_memory(enum confine_role role)
{
    uint64_t part = machine_memory() / 100 * (uint64_t)roles[role].memory_part;

    return part < roles[role].data_bytes ? part : roles[role].data_bytes;
}

const char *confine_role_name(enum confine_role role)
{
    return roles[role].name;
}

static char *folder_of(const char *path, struct arena *a)
{
    size_t len = (size_t)(path_base(path) - path);

    return arena_strndup(a, path, len > 1 ? len - 1 : len);
}

/* Does not allow the whole prefix, which may be a user's home. */
static void allow_prefix(struct confine_policy *p, const char *program, struct arena *a)
{
    static const char *const parts[] = {"bin", "lib", "lib64", "libexec", "include", "pyvenv.cfg"};
    const char *prefix = folder_of(folder_of(program, a), a);

    if (strncmp(prefix, "/usr", 4) == 0)
        return;
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        confine_allow(p, path_join(a, prefix, parts[i]), CONFINE_READ | CONFINE_EXECUTE);
}

/* A venv names the Python it was made from: "home = /opt/python/bin". */
static void allow_python(struct confine_policy *p, const char *python, struct arena *a)
{
    const char *config = path_join(a, folder_of(folder_of(python, a), a), "pyvenv.cfg");
    struct error ignored = {0};
    struct text text;
    const char *home;
    char line[PATH_MAX];

    allow_prefix(p, python, a);
    allow_prefix(p, path_absolute(a, python), a);
    if (!file_read(config, 1 << 16, a, &text, &ignored))
        return;
    home = strstr(text.data, "home = ");
    if (home && sscanf(home, "home = %4095[^\r\n]", line) == 1) {
        allow_prefix(p, path_join(a, line, "python3"), a);
        allow_prefix(p, path_absolute(a, path_join(a, line, "python3")), a);
    }
}

/* The entries of /sys/bus/pci/devices are links into these. */
static void allow_buses(struct confine_policy *p, struct arena *a)
{
    DIR *d = opendir("/sys/devices");
    struct dirent *e;

    while (d && (e = readdir(d)))
        if (strncmp(e->d_name, "pci", 3) == 0 && p->paths + LEFT_FREE < CONFINE_MAX_PATHS)
            confine_allow(p, path_join(a, "/sys/devices", e->d_name), CONFINE_READ);
    if (d)
        closedir(d);
}

static void allow_cuda(struct confine_policy *p, struct arena *a)
{
    for (size_t i = 0; i < ARRAY_LEN(cuda_read); i++)
        confine_allow(p, cuda_read[i], CONFINE_READ);
    for (size_t i = 0; i < ARRAY_LEN(cuda_devices); i++)
        if (access(cuda_devices[i], F_OK) == 0)
            confine_allow(p, cuda_devices[i], CONFINE_READ | CONFINE_DEVICE);
    /* It opens /proc/self/task/N/comm with O_TRUNC to name its threads, and gives up (error 304)
     * where it cannot. Other files that can be written there belong to the process itself. */
    confine_allow(p, "/proc/self/task", CONFINE_READ | CONFINE_WRITE);
    allow_buses(p, a);
}

void confine_role(struct confine_policy *p, enum confine_role role,
                  const struct confine_place *place, struct arena *a)
{
    const struct role *r = &roles[role];
    const char *real = place->program ? path_absolute(a, place->program) : NULL;

    *p = (struct confine_policy){.name = r->name,
                                 .fork = r->fork,
                                 .network = place->network,
                                 .cuda = place->cuda,
                                 .data_bytes = place->cuda ? 0 : confine_memory(role),
                                 .file_bytes = r->file_bytes,
                                 .tmp_bytes = r->tmp_bytes,
                                 .tmp_rights = r->tmp_rights};
    for (size_t i = 0; i < ARRAY_LEN(system_read); i++)
        confine_allow(p, system_read[i], CONFINE_READ | (i < 8 ? CONFINE_EXECUTE : 0U));
    confine_allow(p, "/dev/null", CONFINE_READ | CONFINE_DEVICE);
    confine_allow(p, "/dev/zero", CONFINE_READ | CONFINE_DEVICE);
    confine_allow(p, "/dev/urandom", CONFINE_READ | (r->python ? CONFINE_DEVICE : 0U)); /* torch */
    if (place->program) {
        confine_allow(p, place->program, CONFINE_READ | CONFINE_EXECUTE);
        confine_allow(p, real, CONFINE_READ | CONFINE_EXECUTE);
    }
    if (place->program && r->python) {
        allow_python(p, place->program, a);
    } else if (place->program) {
        /* a relocatable bundle has its libraries beside its programs */
        confine_allow(p, path_join(a, folder_of(folder_of(real, a), a), "lib"), CONFINE_READ);
        confine_allow(p, path_join(a, folder_of(folder_of(folder_of(real, a), a), a), "lib"),
                      CONFINE_READ);
    }
    if (place->compiler) {
        allow_prefix(p, place->compiler, a);
        allow_prefix(p, path_absolute(a, place->compiler), a);
    }
    for (size_t i = 0; place->read && place->read[i]; i++)
        confine_allow(p, path_from_here(a, place->read[i]), CONFINE_READ);
    if (place->cuda)
        allow_cuda(p, a);
    if (place->network) {
        confine_allow(p, "/etc/resolv.conf", CONFINE_READ);
        confine_allow(p, "/etc/hosts", CONFINE_READ);
        confine_allow(p, "/etc/nsswitch.conf", CONFINE_READ);
        confine_allow(p, "/etc/ssl", CONFINE_READ);
        confine_allow(p, "/etc/ca-certificates", CONFINE_READ);
        confine_allow(p, "/etc/pki", CONFINE_READ);
    }
    if (place->buffers)
        confine_allow(p, path_absolute(a, place->buffers), CONFINE_READ | CONFINE_MODIFY);
    if (place->work)
        confine_allow(p, path_absolute(a, place->work), CONFINE_READ | CONFINE_WRITE);
}
