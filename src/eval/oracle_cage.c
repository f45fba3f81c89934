/* SPDX-License-Identifier: Apache-2.0 */
/* oracle_cage.c - confinement of the oracle's process; see oracle_cage.h. */
#include "eval/oracle_cage.h"

#include "base/fs.h"
#include "base/vault.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BESIDE = 12, MAX_LIBRARIES = 8, MAX_ENTRIES = 128 };

extern char **environ;

static char *folder_of(const char *path, struct arena *a)
{
    size_t len = (size_t)(path_base(path) - path);

    return arena_strndup(a, path, len > 1 ? len - 1 : len);
}

/* Is `path` equal to `folder` or below it? */
static bool is_in(const char *path, const char *folder)
{
    size_t len = strlen(folder);

    return strncmp(path, folder, len) == 0 &&
           (path[len] == '\0' || path[len] == '/' || strcmp(folder, "/") == 0);
}

/* Folders that hold too much else: a user's home, temporary files of all users, system folders. */
static bool is_shared(const char *folder, struct arena *a)
{
    static const char *const whole[] = {"/etc", "/proc", "/sys", "/run"};
    static const char *const places[] = {"/tmp", "/var/tmp", "/dev/shm", "/dev", "/var"};
    const char *home = getenv("HOME");

    if (home && *home && is_in(path_absolute(a, home), folder)) /* or a folder above a home */
        return true;
    for (size_t i = 0; i < ARRAY_LEN(whole); i++)
        if (is_in(folder, whole[i]))
            return true;
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        if (strcmp(folder, places[i]) == 0)
            return true;
    return strcmp(folder, "/") == 0;
}

/* Modules beside a task: files, and folders that are packages. */
static void allow_modules(struct confine_policy *p, const char *folder, struct arena *a)
{
    static const char *const patterns[] = {"*.py", "*/__init__.py"};

    for (size_t k = 0; k < ARRAY_LEN(patterns); k++) {
        glob_t found;

        if (glob(path_join(a, folder, patterns[k]), 0, NULL, &found) == 0)
            for (size_t i = 0; i < found.gl_pathc && i < MAX_BESIDE; i++)
                confine_allow(p,
                              k == 0 ? arena_strdup(a, found.gl_pathv[i])
                                     : folder_of(found.gl_pathv[i], a),
                              CONFINE_READ);
        globfree(&found);
    }
}

/* Allows the task's folder; if that is shared, only the task and the modules beside it. */
static void allow_task(struct confine_policy *p, const char *task, struct arena *a)
{
    const char *folder = path_absolute(a, folder_of(path_from_here(a, task), a));

    confine_allow(p, path_from_here(a, task), CONFINE_READ);
    if (is_shared(folder, a))
        allow_modules(p, folder, a);
    else
        confine_allow(p, folder, CONFINE_READ);
}

static void allow_libraries(struct confine_policy *p, struct arena *a)
{
    const char *list = getenv("LD_LIBRARY_PATH");

    for (int i = 0; list && *list && i < MAX_LIBRARIES; i++) {
        size_t len = strcspn(list, ":");
        const char *folder = arena_strndup(a, list, len);

        if (*folder == '/' && !is_shared(folder, a))
            confine_allow(p, folder, CONFINE_READ);
        list += len + (list[len] == ':');
    }
}

/* Variables that the loader, PyTorch and its libraries read; none that identifies the user. */
static bool is_passed_on(const char *entry)
{
    static const char *const beginnings[] = {"PATH=",         "LD_LIBRARY_PATH=",
                                             "LANG=",         "TZ=",
                                             "CC=",           "CXX=",
                                             "ASAN_OPTIONS=", "LC_",
                                             "OMP_",          "KMP_",
                                             "MKL_",          "ATEN_",
                                             "OPENBLAS_",     "TORCH_",
                                             "PYTORCH_",      "CUDA_",
                                             "NVIDIA_"};

    for (size_t i = 0; i < ARRAY_LEN(beginnings); i++)
        if (strncmp(entry, beginnings[i], strlen(beginnings[i])) == 0)
            return !vault_is_secret_name(entry);
    return false;
}

static const char *const *environment(struct arena *a)
{
    const char **out = arena_array(a, MAX_ENTRIES + 1, sizeof *out);
    size_t n = 0;

    for (size_t i = 0; environ[i] && n < MAX_ENTRIES; i++)
        if (is_passed_on(environ[i]))
            out[n++] = environ[i];
    return out;
}

/* The compiler that Triton, and so torch.compile, would choose: CC, or one on PATH. NULL: none. */
static const char *compiler(struct arena *a)
{
    static const char *const names[] = {"gcc", "cc", "clang"};
    const char *found = getenv("CC");

    found = found && *found ? path_find_program(a, found) : NULL;
    for (size_t i = 0; !found && i < ARRAY_LEN(names); i++)
        found = path_find_program(a, names[i]);
    return found;
}

void oracle_confine(const struct oracle_config *config, const char *script, const char *errors,
                    struct arena *a, struct oracle_cage *c, struct proc_spec *spec)
{
    const char *package = strchr(script, '/') ? folder_of(path_from_here(a, script), a) : NULL;
    const char *const read[] = {package ? package : errors, package ? errors : NULL, NULL};
    struct confine_place place = {.program = path_from_here(a, spec->argv[0]),
                                  .compiler = compiler(a),
                                  .read = read,
                                  .cuda = config->cuda,
                                  .network = config->task_network};

    confine_role(&c->policy, ROLE_ORACLE, &place, a);
    c->policy.data_bytes = 0; /* it enforces its own limit, which the user may have set */
    if (config->task)
        allow_task(&c->policy, config->task, a);
    allow_libraries(&c->policy, a);
    spec->cage = confine_cage(&c->policy, &c->cage);
    spec->env = environment(a);
    spec->clean_env = true;
    spec->dir = "/";
}
