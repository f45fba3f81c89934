/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tools.c - find and describe the programs and headers that building needs.
 *
 * Hides where distributions, toolkits and Python wheels put the same file.
 * The places are tables of shell patterns, expanded by glob(3).
 */
#include "toolchain/tools.h"

#include "base/fs.h"
#include "base/json.h"
#include "base/proc.h"

#include <ctype.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ROOTS = 32, VERSION_FILE_LIMIT = 1 << 20, CUDA_H_LIMIT = 8 << 20 };

/* A place that may hold NVRTC and the CUDA headers. */
struct root {
    const char *dir, *from;
    bool wheel; /* site-packages: another layout below */
};

struct roots {
    struct root at[MAX_ROOTS];
    int count;
    int named; /* number of places from the configured toolkit; 0: none is configured */
};

static const char *const library_below[] = {"lib64/libnvrtc.so.1[2-9]*", "lib/libnvrtc.so.1[2-9]*",
                                            "targets/*/lib/libnvrtc.so.1[2-9]*", NULL};
static const char *const library_below_wheel[] = {
    "nvidia/cu1[3-9]/lib/libnvrtc.so.1[2-9]*", "nvidia/cuda_nvrtc/lib/libnvrtc.so.1[2-9]*", NULL};
static const char *const header_below[] = {"include/cuda_fp16.h", "targets/*/include/cuda_fp16.h",
                                           NULL};
static const char *const header_below_wheel[] = {"nvidia/cu1[3-9]/include/cuda_fp16.h",
                                                 "nvidia/cuda_runtime/include/cuda_fp16.h", NULL};
static const char *const cccl_below[] = {
    "include/cccl/cuda/std/cstdint", "include/cuda/std/cstdint",
    "targets/*/include/cccl/cuda/std/cstdint", "targets/*/include/cuda/std/cstdint", NULL};
static const char *const cccl_below_wheel[] = {
    "nvidia/cu1[3-9]/include/cccl/cuda/std/cstdint", "nvidia/cuda_cccl/include/cuda/std/cstdint",
    "nvidia/cuda_cccl/include/cccl/cuda/std/cstdint", NULL};

/* ---- looking ---------------------------------------------------------------- */

static char *first_match(struct arena *a, const char *pattern)
{
    glob_t g;
    char *found = NULL;
    if (glob(pattern, 0, NULL, &g) == 0 && g.gl_pathc > 0)
        found = arena_strdup(a, g.gl_pathv[g.gl_pathc - 1]); /* the highest version sorts last */
    globfree(&g);
    return found;
}

static char *match_below(struct arena *a, const char *dir, const char *const *patterns)
{
    for (int i = 0; patterns[i] != NULL; i++) {
        char *found = first_match(a, arena_printf(a, "%s/%s", dir, patterns[i]));
        if (found != NULL)
            return found;
    }
    return NULL;
}

/* "/x/include/cuda/std/cstdint" without its last `levels` parts. */
static char *above(struct arena *a, const char *path, int levels)
{
    char *copy = arena_strdup(a, path);
    for (; levels > 0; levels--) {
        char *slash = strrchr(copy, '/');
        if (slash == NULL || slash == copy)
            return copy;
        *slash = '\0';
    }
    return copy;
}

static const char *environment(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

static void add_root(struct roots *r, const char *dir, const char *from, bool wheel)
{
    if (dir != NULL && r->count < MAX_ROOTS)
        r->at[r->count++] = (struct root){dir, from, wheel};
}

/* site-packages of a venv or a Python at `prefix`, all versions. */
static void add_site_packages(struct roots *r, struct arena *a, const char *prefix)
{
    static const char *const below[] = {"lib/python3*/site-packages",
                                        "lib64/python3*/site-packages", "lib/python3/dist-packages",
                                        NULL};
    for (int i = 0; below[i] != NULL; i++)
        add_root(r, first_match(a, arena_printf(a, "%s/%s", prefix, below[i])), "wheel", true);
}

/* Asks the Python itself, for packages in other places (user sites, Conda). */
static void add_python_paths(struct roots *r, struct arena *a, const char *python)
{
    /* Isolated mode: nothing in a user site is executed; only its folder is printed. */
    const char *argv[] = {python, "-I", "-c",
                          "import site, sys; print('\\n'.join([p for p in sys.path if p] + "
                          "[site.getusersitepackages()]))",
                          NULL};
    struct proc_spec spec = {.argv = argv, .deadline_ms = 10000, .output_limit = 65536};
    struct proc_result result;
    struct error err = {0};
    char *line, *rest;
    if (!proc_run(&spec, a, &result, &err) || result.end != PROC_EXITED || result.code != 0)
        return;
    rest = arena_strdup(a, result.out.data);
    while ((line = strsep(&rest, "\n")) != NULL)
        if (strstr(line, "-packages") != NULL)
            add_root(r, line, "wheel", true);
}

/* `pip install cutegen` puts dependencies beside itself: returns the site-packages that contains
 * cutegen/_tree/share/cutegen/wheel, a file that only a wheel has. NULL: not from a wheel. */
static const char *wheel_site(struct arena *a)
{
    enum { LEVELS = 5 };
    struct error absent = {0};
    char *mark = NULL;
    return home_data("wheel", a, &mark, &absent) ? above(a, mark, LEVELS) : NULL;
}

/* A configured toolkit is the only place for CUDA; the others may still have CuTe. */
static void collect_roots(const struct tools_config *config, struct arena *a, struct roots *r)
{
    struct error ignored = {0};
    char *nvcc = path_find_program(a, "nvcc"), *venv = NULL;
    add_root(r, config->cuda, "configured", false);
    if (config->cuda != NULL) {
        add_site_packages(r, a, config->cuda);
        r->named = r->count;
    }
    add_root(r, environment("CUDA_HOME"), "toolkit", false);
    add_root(r, environment("CUDA_PATH"), "toolkit", false);
    add_root(r, "/usr/local/cuda", "toolkit", false);
    if (nvcc != NULL)
        add_root(r, above(a, path_absolute(a, nvcc), 2), "toolkit", false);
    add_root(r, wheel_site(a), "wheel", true);
    if (home_tools("venv", a, &venv, &ignored))
        add_site_packages(r, a, venv);
    if (config->python != NULL && strchr(config->python, '/') != NULL)
        add_site_packages(r, a, above(a, config->python, 2));
    add_root(r, "/opt/cuda", "toolkit", false);
    add_root(r, "/usr", "system", false);
}

/* ---- NVRTC and headers -------------------------------------------------------- */

static char *find_library(struct arena *a, const struct root *r)
{
    char *found = match_below(a, r->dir, r->wheel ? library_below_wheel : library_below);
    if (found == NULL && strcmp(r->from, "system") == 0)
        found = first_match(a, "/usr/lib/*-linux-gnu/libnvrtc.so.1[2-9]*");
    return found;
}

static bool find_headers(struct arena *a, const struct root *r, struct tools *out)
{
    char *header = match_below(a, r->dir, r->wheel ? header_below_wheel : header_below);
    char *cccl = match_below(a, r->dir, r->wheel ? cccl_below_wheel : cccl_below);
    struct error absent = {0};
    /* torch does not include it; our tarballs do. */
    if (cccl == NULL && !home_data("cccl/include/cuda/std/cstdint", a, &cccl, &absent))
        cccl = NULL;
    if (header == NULL || cccl == NULL)
        return false;
    out->cuda_include = above(a, header, 1);
    out->cccl_include = above(a, cccl, 3);
    return true;
}

static long define_value(struct text file, const char *name)
{
    const char *p = memmem(file.data, file.len, name, strlen(name));
    return p ? strtol(p + strlen(name), NULL, 10) : -1;
}

/* Does CUTLASS support this version? Assumed if the version is unknown. */
static bool fits_cutlass(struct arena *a, const struct root *r)
{
    char *header = match_below(a, r->dir, r->wheel ? header_below_wheel : header_below);
    struct error ignored = {0};
    struct text file;
    long version;
    if (header == NULL ||
        !file_read(path_join(a, above(a, header, 1), "cuda.h"), CUDA_H_LIMIT, a, &file, &ignored))
        return true;
    version = define_value(file, "#define CUDA_VERSION");
    return version < 0 || (version >= CUTEGEN_CUDA_MIN && version <= CUTEGEN_CUDA_MAX);
}

/* Prefers a place with both, because NVRTC and its headers belong together. A version that CUTLASS
 * does not support is used only if configured, or if there is no other. */
static void find_cuda(const struct roots *roots, struct arena *a, struct tools *out)
{
    int count = roots->named ? roots->named : roots->count;
    for (int i = 0; i < count && out->nvrtc == NULL; i++) {
        char *library = find_library(a, &roots->at[i]);
        if (library != NULL && (roots->named || fits_cutlass(a, &roots->at[i])) &&
            find_headers(a, &roots->at[i], out)) {
            out->nvrtc = library;
            out->nvrtc_from = roots->at[i].from;
        }
    }
    for (int i = 0; i < count; i++) {
        char *library = out->nvrtc ? NULL : find_library(a, &roots->at[i]);
        if (library != NULL) {
            out->nvrtc = library;
            out->nvrtc_from = roots->at[i].from;
        }
        if (out->cuda_include == NULL)
            find_headers(a, &roots->at[i], out);
    }
}

/* The builtins library beside it carries the full version in its name; else ask NVRTC. */
static void find_nvrtc_version(struct arena *a, struct tools *out)
{
    char *dir, *builtins, *builder = NULL;
    struct error ignored = {0};
    struct proc_result result;
    json_t *answer = NULL;
    if (out->nvrtc == NULL)
        return;
    dir = above(a, out->nvrtc, 1);
    builtins = first_match(a, arena_printf(a, "%s/libnvrtc-builtins.so.[0-9]*.[0-9]*", dir));
    if (builtins != NULL) {
        char *parts = strstr(builtins, ".so.") + 4;
        char *end = parts;
        int dots = 0;
        while (isdigit((unsigned char)*end) || (*end == '.' && dots++ == 0))
            end++;
        out->nvrtc_version = arena_strndup(a, parts, (size_t)(end - parts));
        return;
    }
    if (!home_program("cutegen-builder", a, &builder, &ignored))
        return;
    const char *argv[] = {builder, out->nvrtc, "--version", NULL};
    struct proc_spec spec = {.argv = argv, .deadline_ms = 20000};
    if (proc_run(&spec, a, &result, &ignored) && result.end == PROC_EXITED && result.code == 0 &&
        json_parse(result.out, "NVRTC's version", &answer, &ignored))
        out->nvrtc_version = arena_printf(a, "%d.%d", (int)json_int_or(answer, "major", 0),
                                          (int)json_int_or(answer, "minor", 0));
    json_decref(answer);
}

/* ---- CUTLASS ------------------------------------------------------------------ */

static const char *cutlass_at(struct arena *a, const char *dir)
{
    static const char *const below[] = {"cute/tensor.hpp", "include/cute/tensor.hpp",
                                        "cutlass_library/source/include/cute/tensor.hpp", NULL};
    char *found = dir ? match_below(a, dir, below) : NULL;
    return found ? above(a, found, 2) : NULL;
}

static void find_cutlass(const struct tools_config *config, const struct roots *roots,
                         struct arena *a, struct tools *out)
{
    struct error ignored = {0};
    char *bundled = NULL;
    out->cutlass_include = cutlass_at(a, config->cutlass);
    if (config->cutlass != NULL)
        return; /* a configured one is the only candidate */
    if (out->cutlass_include == NULL)
        out->cutlass_include = cutlass_at(a, environment("CUTLASS_PATH"));
    if (out->cutlass_include == NULL && home_data("cutlass/include", a, &bundled, &ignored))
        out->cutlass_include = cutlass_at(a, bundled);
    for (int i = 0; i < roots->count && out->cutlass_include == NULL; i++)
        out->cutlass_include = cutlass_at(a, roots->at[i].dir);
}

static void find_cutlass_version(struct arena *a, struct tools *out)
{
    struct error ignored = {0};
    struct text file;
    if (out->cutlass_include == NULL ||
        !file_read(path_join(a, out->cutlass_include, "cutlass/version.h"), VERSION_FILE_LIMIT, a,
                   &file, &ignored))
        return;
    out->cutlass_version = arena_printf(
        a, "%ld.%ld.%ld", define_value(file, "#define CUTLASS_MAJOR"),
        define_value(file, "#define CUTLASS_MINOR"), define_value(file, "#define CUTLASS_PATCH"));
}

/* ---- the C compiler ------------------------------------------------------------ */

/* "gcc (Debian 12.2.0-14) 12.2.0" -> "gcc 12.2.0": the last word that is a version. */
static const char *compiler_version(struct arena *a, const char *cc, const char **failure)
{
    const char *argv[] = {cc, "--version", NULL};
    struct proc_spec spec = {.argv = argv, .deadline_ms = 10000, .merge_stderr = true};
    struct proc_result r;
    struct error err = {0};
    const char *kind, *version = "";
    char *line, *word;
    if (!proc_run(&spec, a, &r, &err)) {
        *failure = arena_strdup(a, err.text);
        return NULL;
    }
    if (r.end != PROC_EXITED || r.code != 0) {
        *failure = arena_printf(a, "%s --version fails: %.*s", cc, (int)strcspn(r.out.data, "\n"),
                                r.out.data);
        return NULL;
    }
    line = arena_strndup(a, r.out.data, strcspn(r.out.data, "\n"));
    kind = strstr(line, "clang") ? "clang" : "gcc";
    while ((word = strsep(&line, " ")) != NULL)
        if (isdigit((unsigned char)word[0]) && strchr(word, '.') != NULL)
            version = word;
    return arena_printf(a, "%s %s", kind, version);
}

static void find_compiler(const struct tools_config *config, struct arena *a, struct tools *out)
{
    const char *const names[] = {config->cc, config->cc ? NULL : environment("CC"), "cc", "gcc",
                                 "clang"};
    size_t count = config->cc ? 1 : ARRAY_LEN(names);

    for (size_t i = 0; i < count && out->cc_version == NULL; i++) {
        char *path = names[i] ? path_find_program(a, names[i]) : NULL;
        const char *failure = NULL;
        if (path != NULL && (out->cc_version = compiler_version(a, path, &failure)) != NULL)
            out->cc = path;
        if (out->cc_failure == NULL)
            out->cc_failure = failure; /* the first one was meant */
    }
    if (out->cc != NULL)
        out->cc_failure = NULL;
}

/* ---- NVIDIA's programs ----------------------------------------------------------- */

static const char *find_program(const struct roots *roots, struct arena *a, const char *name)
{
    static const char *const below[] = {"bin/%s", "nvidia/cu13/bin/%s", "nvidia/cuda_nvcc/bin/%s",
                                        "nsight-compute-*/%s", "compute-sanitizer/%s"};
    for (int i = 0; i < roots->count; i++)
        for (size_t k = 0; k < ARRAY_LEN(below); k++) {
            const char *s = strstr(below[k], "%s");
            char *found = first_match(a, arena_printf(a, "%s/%.*s%s", roots->at[i].dir,
                                                      (int)(s - below[k]), below[k], name));
            if (found != NULL && path_find_program(a, found) != NULL)
                return found;
        }
    return path_find_program(a, name);
}

static void add_include(struct tools *t, const char *dir)
{
    int n = 0;
    while (t->includes[n] != NULL) {
        if (dir != NULL && strcmp(t->includes[n], dir) == 0)
            return;
        n++;
    }
    if (dir != NULL && n + 1 < (int)ARRAY_LEN(t->includes))
        t->includes[n] = dir;
}

void tools_look(const struct tools_config *config, struct arena *a, struct tools *out)
{
    struct roots roots = {.count = 0};
    struct error ignored = {0};
    char *kernel_h = NULL;

    memset(out, 0, sizeof *out);
    collect_roots(config, a, &roots);
    find_compiler(config, a, out);
    find_cuda(&roots, a, out);
    find_cutlass(config, &roots, a, out);
    if ((out->nvrtc == NULL || out->cuda_include == NULL || out->cutlass_include == NULL) &&
        config->python != NULL) {
        add_python_paths(&roots, a, config->python);
        find_cuda(&roots, a, out);
        find_cutlass(config, &roots, a, out);
    }
    find_nvrtc_version(a, out);
    find_cutlass_version(a, out);
    if (home_data("include/cutegen/kernel.h", a, &kernel_h, &ignored))
        out->kernel_include = above(a, kernel_h, 2);
    out->nvcc = find_program(&roots, a, "nvcc");
    out->ptxas = find_program(&roots, a, "ptxas");
    out->ncu = find_program(&roots, a, "ncu");
    out->sanitizer = find_program(&roots, a, "compute-sanitizer");
    add_include(out, out->kernel_include);
    add_include(out, out->cutlass_include);
    add_include(out, out->cuda_include);
    add_include(out, out->cccl_include);
}

bool tools_find(const struct tools_config *config, struct arena *a, struct tools *out,
                struct error *err)
{
    const char *demo = wheel_site(a) != NULL
                           ? "install what cutegen depends on (pip install cutegen), or"
                           : "run `make demo` once (it installs what is missing), or";
    tools_look(config, a, out);
    if (out->nvrtc == NULL) {
        error_set(err, ERROR_MACHINE, "no NVRTC (libnvrtc.so, CUDA 12 or newer): tried %s%s",
                  config->cuda ? config->cuda : "",
                  config->cuda ? ""
                               : "$CUDA_HOME, /usr/local/cuda, the tools venv, Python's wheels");
        return error_hint(err, "%s name a toolkit: --cuda PATH, or cuda = PATH in cutegen.ini",
                          demo);
    }
    if (out->cuda_include == NULL || out->cccl_include == NULL) {
        error_set(err, ERROR_MACHINE,
                  "NVRTC is %s, but no CUDA headers (cuda_fp16.h, cuda/std/) are found",
                  out->nvrtc);
        return error_hint(err, "%s install the wheels nvidia-cuda-runtime and nvidia-cuda-cccl",
                          demo);
    }
    if (out->cutlass_include == NULL) {
        error_set(err, ERROR_MACHINE, "no CuTe headers (cute/tensor.hpp): tried %s",
                  config->cutlass ? config->cutlass
                                  : "$CUTLASS_PATH, the bundled ones, the tools venv");
        return error_hint(err, "%s name CUTLASS's include folder: --cutlass PATH", demo);
    }
    if (out->kernel_include == NULL) {
        error_set(err, ERROR_MACHINE, "cannot find the product's own include/cutegen/kernel.h");
        return error_hint(
            err, "the installation is not whole: build it again (make) or unpack it again");
    }
    return true;
}

bool tools_for_simt(const struct tools_config *config, const struct tools *t, struct error *err)
{
    if (t->cc != NULL)
        return true;
    if (t->cc_failure != NULL) {
        error_set(err, ERROR_MACHINE, "simt needs a C compiler: %s", t->cc_failure);
        return error_hint(err, "reinstall it, or name another: --cc PATH; if no process can be "
                               "started, too many run (ulimit -u)");
    }
    error_set(err, ERROR_MACHINE, "simt needs a C compiler: tried %s",
              config->cc ? config->cc : "$CC, cc, gcc and clang");
    return error_hint(err, "install gcc (apt-get install gcc), or name a compiler: --cc PATH, or "
                           "cc = PATH in cutegen.ini");
}
