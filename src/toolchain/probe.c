/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe.c - all checks of `cutegen doctor`, in parallel.
 *
 * To add a check: a function that fills a struct check, and a row in `probes`.
 * Children for foreign libraries are forked first, while there is only one thread; then every probe
 * gets a thread.
 *
 * Invariants
 * 1. No probe waits past the deadline all of them share.
 * 2. Keys are never read here: the request says which are set.
 */
#include "toolchain/probe.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/proc.h"
#include "base/text.h"
#include "confine/confine.h"
#include "toolchain/probe_gpu.h"
#include "toolchain/tools.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

struct check {
    const char *state, *text, *todo;
    const char *version, *path;
    json_t *more; /* further members; NULL: none */
};

/* Input of all probes; read-only once the threads run. */
struct scene {
    const struct probe_request *req;
    struct tools tools;
    const char *python; /* NULL: none */
    int64_t until_ms;
    pid_t gpu_pid, confined_pid, nvrtc_pid;
    int gpu_fd, confined_fd, nvrtc_fd;
};

struct probe {
    const struct scene *scene;
    const struct probe_row *row;
    struct arena *a;
    struct check check;
    pthread_t thread;
    bool threaded;
};

struct probe_row {
    const char *name;
    bool needed; /* by `cutegen run` */
    void (*look)(const struct scene *s, struct arena *a, struct check *c);
};

/* ---- helpers ---------------------------------------------------------------- */

/* Runs a program until the shared deadline; returns its first line of output, or NULL. */
static const char *first_line(const struct scene *s, struct arena *a, const char *const *argv,
                              const char **why)
{
    struct proc_spec spec = {.argv = argv,
                             .merge_stderr = true,
                             .deadline_ms = (int)(s->until_ms - clock_ms()),
                             .output_limit = 65536};
    struct proc_result r;
    struct error err = {0};

    if (spec.deadline_ms <= 0)
        spec.deadline_ms = 1;
    if (!proc_run(&spec, a, &r, &err)) {
        *why = arena_strdup(a, err.text);
        return NULL;
    }
    if (r.end != PROC_EXITED || r.code) {
        *why = proc_end_text(&r, a);
        return NULL;
    }
    return r.out.data;
}

/* The first thing in a text that looks like 1.2 or 1.2.3. */
static const char *find_version(const char *text, struct arena *a)
{
    for (const char *p = text; *p; p++) {
        size_t digits = strspn(p, "0123456789"), len = strspn(p, "0123456789.");

        if (digits && p[digits] == '.' && len > digits + 1)
            return arena_strndup(a, p, p[len - 1] == '.' ? len - 1 : len);
        if (digits)
            p += digits - 1;
    }
    return NULL;
}

static void set_missing(struct check *c, const char *text, const char *todo)
{
    c->state = "missing";
    c->text = text;
    c->todo = todo;
}

static void set_broken(struct check *c, const char *text, const char *todo)
{
    c->state = "broken";
    c->text = text;
    c->todo = todo;
}

static void set_ok(struct check *c, const char *text, const char *version, const char *path)
{
    c->state = "ok";
    c->text = text;
    c->todo = "";
    c->version = version;
    c->path = path;
}

/* A program that is only asked for its version. */
static void look_at_program(const struct scene *s, struct arena *a, struct check *c,
                            const char *path, const char *label)
{
    const char *argv[] = {path, "--version", NULL}, *why = "";
    const char *out = first_line(s, a, argv, &why);
    const char *version = out ? find_version(out, a) : NULL;

    if (!out)
        set_broken(c, arena_printf(a, "%s --version: %s", path, why), "reinstall it");
    else
        set_ok(c, arena_printf(a, "%s %s", label, version ? version : "(version unknown)"), version,
               path);
}

/* ---- the probes ------------------------------------------------------------- */

static void look_at_cc(const struct scene *s, struct arena *a, struct check *c)
{
    const char *path = s->tools.cc;

    if (!path && s->tools.cc_failure)
        set_broken(c, s->tools.cc_failure,
                   "reinstall it, or name another: --cc PATH; simt needs one");
    else if (!path)
        set_missing(c, "no gcc or clang: simt needs one",
                    "apt-get install gcc, or name one: --cc PATH");
    else
        set_ok(c, arena_printf(a, "%s  %s", s->tools.cc_version, path), s->tools.cc_version, path);
}

static void look_at_nvrtc(const struct scene *s, struct arena *a, struct check *c)
{
    const char *out;

    if (!s->tools.nvrtc) {
        set_missing(c, "no libnvrtc in a toolkit, a torch installation or a wheel",
                    "run `make demo` once, or pip install nvidia-cuda-nvrtc, or --cuda DIR");
        return;
    }
    out = probe_collect(s->nvrtc_pid, s->nvrtc_fd, s->until_ms, a).data;
    if (!strncmp(out, "version ", 8)) {
        const char *version = arena_strndup(a, out + 8, strcspn(out + 8, "\n"));

        set_ok(c, arena_printf(a, "%s (%s)  %s", version, s->tools.nvrtc_from, s->tools.nvrtc),
               version, s->tools.nvrtc);
    } else {
        set_broken(c, *out ? arena_strndup(a, out, strcspn(out, "\n")) : "libnvrtc does not answer",
                   "reinstall it, or choose another: --cuda DIR");
    }
    if (!strcmp(c->state, "ok") && !s->tools.cccl_include)
        set_broken(c, arena_printf(a, "%s, but no CUDA headers beside it", c->text),
                   "pip install nvidia-cuda-runtime nvidia-cuda-cccl, or --cuda DIR");
}

static void look_at_cutlass(const struct scene *s, struct arena *a, struct check *c)
{
    const char *version = s->tools.cutlass_version;

    if (!s->tools.cutlass_include)
        set_missing(c, "no CUTLASS headers",
                    "run `make demo` once, or pip install nvidia-cutlass, or --cutlass DIR");
    else if (!version)
        set_broken(c, arena_printf(a, "%s has no cutlass/version.h", s->tools.cutlass_include),
                   "name an include folder of CUTLASS: --cutlass DIR");
    else
        set_ok(c, arena_printf(a, "CUTLASS %s  %s", version, s->tools.cutlass_include), version,
               s->tools.cutlass_include);
}

static void look_at_nvcc(const struct scene *s, struct arena *a, struct check *c)
{
    const char *argv[] = {s->tools.nvcc, "--version", NULL}, *why = "", *out, *release, *version;

    if (!s->tools.nvcc) {
        set_missing(c, "only needed to compile a kernel file by hand", "");
        return;
    }
    out = first_line(s, a, argv, &why);
    release = out ? strstr(out, "release ") : NULL;
    version = release ? find_version(release, a) : NULL;
    if (version)
        set_ok(c, arena_printf(a, "%s  %s", version, s->tools.nvcc), version, s->tools.nvcc);
    else
        set_broken(c, arena_printf(a, "%s: %s", s->tools.nvcc, why), "reinstall the toolkit");
}

/* Reads torch's version file, because importing torch takes seconds. */
static const char torch_script[] =
    "import importlib.util as u, os, sys\n"
    "s = u.find_spec('torch')\n"
    "if s is None: print('none', sys.executable); sys.exit(0)\n"
    "d = {}\n"
    "exec(open(os.path.join(os.path.dirname(s.origin), 'version.py')).read(), d)\n"
    "v = d.get('__version__', '?'); v = v if isinstance(v, str) else str(v)\n"
    "print('torch', v, d.get('cuda') or 'CPU', sys.executable)\n";

static void look_at_torch(const struct scene *s, struct arena *a, struct check *c)
{
    const char *argv[] = {s->python, "-I", "-c", torch_script, NULL}, *why = "", *out;
    char version[64] = "", cuda[32] = "", python[512] = "";

    if (!s->python) {
        set_missing(c, "no Python with PyTorch found",
                    "run `make demo` once, or name a Python that has it: --python PATH");
        return;
    }
    out = first_line(s, a, argv, &why);
    if (!out) {
        set_broken(c, arena_printf(a, "%s: %s", s->python, why),
                   "name another Python: --python PATH");
        return;
    }
    if (sscanf(out, "torch %63s %31s %511[^\n]", version, cuda, python) != 3) {
        set_missing(c, arena_printf(a, "%s has no torch", s->python),
                    "run `make demo` once, or name a Python that has it: --python PATH");
        return;
    }
    set_ok(
        c,
        arena_printf(a, "%s (%s%s)  %s", version, strcmp(cuda, "CPU") ? "CUDA " : "", cuda, python),
        arena_strdup(a, version), arena_strdup(a, python));
}

/* "H200|9.0|150754820096" -> {"name", "capability", "memory_bytes"}; NULL: not such a line. */
static json_t *gpu_json(const char *line)
{
    char name[96], capability[16];
    unsigned long long bytes;

    if (sscanf(line, "%95[^|]|%15[^|]|%llu", name, capability, &bytes) != 3)
        return NULL;
    return json_pack("{s:s, s:s, s:I}", "name", name, "capability", capability, "memory_bytes",
                     (json_int_t)bytes);
}

/* All lines of `out` that begin with `kind`, as a list. */
static json_t *gpu_list(const char *out, const char *kind)
{
    json_t *list = json_array();

    struct text rest = text_of(out);

    for (struct text line; text_next_line(&rest, &line);)
        if (text_starts(line, kind) && line.data[strlen(kind)] == ' ') {
            json_t *gpu = gpu_json(line.data + strlen(kind) + 1);

            if (gpu)
                json_array_append_new(list, gpu);
        }
    return list;
}

static const char *gpu_text(const json_t *list, struct arena *a)
{
    struct buf b = buf_init(2048);
    const char *out;
    json_t *gpu;
    size_t i;

    json_array_foreach(list, i, gpu) buf_printf(
        &b, "%s%s, compute capability %s, %.0f GiB", i ? "; " : "", json_string_or(gpu, "name", ""),
        json_string_or(gpu, "capability", ""), json_double_or(gpu, "memory_bytes", 0) / (1 << 30));
    out = buf_copy(&b, a).data;
    buf_release(&b);
    return out;
}

/* The text after `word` in the line of the probe's answer that begins with it; NULL: none. */
static const char *answer_line(const char *out, const char *word)
{
    struct text rest = text_of(out);

    for (struct text line; text_next_line(&rest, &line);)
        if (text_starts(line, word))
            return line.data + strlen(word);
    return NULL;
}

static void look_at_gpus(const struct scene *s, struct arena *a, struct check *c)
{
    const char *out = probe_collect(s->gpu_pid, s->gpu_fd, s->until_ms, a).data;
    bool ended = answer_line(out, "end") != NULL;
    json_t *cuda = gpu_list(out, "cuda"), *nvml = gpu_list(out, "nvml");
    const char *driver = answer_line(out, "driver "), *code = answer_line(out, "error ");

    if (json_array_size(cuda)) {
        set_ok(c, gpu_text(cuda, a), driver ? find_version(driver, a) : NULL, NULL);
        c->more = json_pack("{s:O}", "gpus", cuda);
    } else if (json_array_size(nvml) && !ended) {
        set_ok(c, arena_printf(a, "%s (the driver is slow to start)", gpu_text(nvml, a)), NULL,
               NULL);
        c->more = json_pack("{s:O}", "gpus", nvml);
    } else if (code) {
        set_broken(c,
                   arena_printf(a, "libcuda is here but cuInit fails with code %ld",
                                strtol(code, NULL, 10)),
                   "is the kernel module loaded, and the device visible? kernels run on simt");
    } else if (!ended && !answer_line(out, "no libcuda")) {
        set_broken(c, "the driver does not answer", "kernels run on simt until it does");
    } else {
        set_missing(c, "no libcuda: kernels run on simt", "");
    }
    json_decref(cuda);
    json_decref(nvml);
}

/* Why an ordinary user may not read GPU counters; NULL: they may. `root_may`: only root may. */
static const char *counter_fault(struct arena *a, bool *root_may)
{
    struct error ignored = {0};
    struct text params;

    if (!file_read("/proc/driver/nvidia/params", 65536, a, &params, &ignored))
        return "no NVIDIA driver to profile with";
    *root_may = strstr(params.data, "RmProfilingAdminOnly: 1") && geteuid() != 0;
    if (*root_may)
        return "the driver lets only root read GPU counters";
    return NULL;
}

static void look_at_ncu(const struct scene *s, struct arena *a, struct check *c)
{
    const char *fault;
    bool root_may = false;

    if (!s->tools.ncu) {
        set_missing(c, "profiles come from simt's counters", "");
        return;
    }
    look_at_program(s, a, c, s->tools.ncu, "ncu");
    if (strcmp(c->state, "ok"))
        return;
    fault = counter_fault(a, &root_may);
    c->more = json_pack("{s:b}", "permitted", !fault);
    c->text = arena_printf(a, "%s, %s", c->text, fault ? fault : "GPU counters permitted");
    if (root_may)
        set_broken(c, c->text,
                   "as root: options nvidia NVreg_RestrictProfilingToAdminUsers=0 in "
                   "/etc/modprobe.d, then reboot");
}

static void look_at_sanitizer(const struct scene *s, struct arena *a, struct check *c)
{
    if (!s->tools.sanitizer)
        set_missing(c, "memory and races are checked on simt", "");
    else
        look_at_program(s, a, c, s->tools.sanitizer, "compute-sanitizer");
}

static void look_at_models(const struct scene *s, struct arena *a, struct check *c)
{
    struct buf b = buf_init(2048);
    size_t i, present = 0;
    json_t *p;

    json_array_foreach((json_t *)(uintptr_t)s->req->providers, i, p)
    {
        if (json_bool_or(p, "key_present", false))
            buf_printf(&b, "%s%s (key in $%s)", present++ ? ", " : "",
                       json_string_or(p, "provider", "?"), json_string_or(p, "key_env", "?"));
    }
    if (present) {
        set_ok(c,
               arena_printf(a, "%s; in use: %s", b.data ? b.data : "",
                            s->req->model ? s->req->model : "builtin"),
               NULL, NULL);
    } else {
        c->state = "none";
        c->text = "builtin only";
        c->todo = "for an LLM set OPENAI_API_KEY or ANTHROPIC_API_KEY, or model and base-url in "
                  "cutegen.ini";
    }
    buf_release(&b);
}

/* The folder, or the nearest one above it that exists. */
static const char *nearest_folder(const char *dir, struct arena *a)
{
    char *path = path_absolute(a, dir);

    while (access(path, F_OK) != 0) {
        char *slash = strrchr(path, '/');

        if (!slash || slash == path)
            return "/";
        *slash = '\0';
    }
    return path;
}

static const double least_free = 500e6;

static double free_bytes(const char *dir)
{
    struct statvfs v;

    return statvfs(dir, &v) ? -1 : (double)v.f_bavail * (double)v.f_frsize;
}

/* Why nothing can be made in a folder; NULL: it can. */
static const char *closed_folder(const char *dir)
{
    struct stat st;

    if (stat(dir, &st) == 0 && !S_ISDIR(st.st_mode))
        return strerror(ENOTDIR);
    return access(dir, W_OK | X_OK) ? strerror(errno) : NULL;
}

/* Where dir_temp() makes the folder that buffers lie in. */
static const char *buffers_folder(void)
{
    const char *env = getenv("TMPDIR");

    return env && *env && !closed_folder(env) ? env : "/dev/shm";
}

static void look_at_disk(const struct scene *s, struct arena *a, struct check *c)
{
    const char *dir = s->req->runs_dir ? s->req->runs_dir : ".", *place = nearest_folder(dir, a);
    const char *buffers = buffers_folder(), *closed = closed_folder(place);
    double runs = free_bytes(place), shared = free_bytes(buffers);
    const char *text = arena_printf(a, "%.1f GB free for runs in %s, %.1f GB for buffers in %s",
                                    runs / 1e9, dir, shared / 1e9, buffers);

    if (closed)
        set_broken(c, arena_printf(a, "cannot write runs to %s: %s", dir, closed),
                   "choose a folder you may write to: --runs DIR");
    else if (runs >= 0 && runs < least_free)
        set_broken(c, text, "free some space, or choose another folder: --runs DIR");
    else
        set_ok(c, text, NULL, dir);
    if (!strcmp(c->state, "ok") && shared >= 0 && shared < least_free)
        c->todo =
            "larger tasks need more for their buffers: name a folder with more room in TMPDIR";
    c->more = json_pack("{s:f, s:f}", "free_bytes", runs, "free_memory_bytes", shared);
}

/* How a GPU's driver behaves in confinement: NULL: it starts; "": there is none; else its
 * message. */
static const char *closed_driver(const struct scene *s, struct arena *a)
{
    const char *out = probe_collect(s->confined_pid, s->confined_fd, s->until_ms, a).data;
    const char *why = answer_line(out, "closed "), *layers = answer_line(out, "layers ");

    if (answer_line(out, "opened"))
        return NULL;
    if (why || layers)
        return arena_strndup(a, why ? why : layers, strcspn(why ? why : layers, "\n"));
    if (access("/dev/nvidiactl", F_OK) != 0)
        return ""; /* no GPU */
    return answer_line(out, "no libcuda") ? "libcuda is not found there" : "it does not answer";
}

/* Which confinement layers work here, found by trying them. */
static void look_at_layers(const struct scene *s, struct arena *a, struct check *c)
{
    struct confine_report r;
    struct error err = {0};
    bool entered = confine_probe(&r, &err);
    const char *landlock = r.landlock_abi ? arena_printf(a, "Landlock %d", r.landlock_abi) : "";
    const char *text =
        arena_printf(a, "%s%s%s%s", r.seccomp ? "seccomp" : "no seccomp",
                     r.landlock_abi ? ", " : ", no ", r.landlock_abi ? landlock : "Landlock",
                     r.mount ? ", private root and namespaces" : ", no namespaces");
    const char *missing = confine_missing(&r, a), *closed = closed_driver(s, a);

    if (!entered)
        text = arena_printf(a, "%s (%s)", text, err.text);
    if (!closed)
        text = arena_printf(a, "%s; CUDA starts inside", text);
    else if (*closed)
        text = arena_printf(
            a, "%s; CUDA does not start inside (%s): on the GPU tasks and kernels run outside",
            text, closed);
    if (confine_holds_files(&r))
        set_ok(c, text, NULL, NULL);
    else
        set_missing(c, text,
                    "a ModelNew is run only with --trust; .cu candidates are not affected");
    c->more = json_pack("{s:b, s:i, s:b, s:b, s:b, s:s, s:b}", "seccomp", r.seccomp, "landlock",
                        r.landlock_abi, "private_root", r.mount, "network_namespace", r.net,
                        "holds_files", confine_holds_files(&r), "not_held", missing ? missing : "",
                        "cuda_inside", !closed);
}

static const struct probe_row probes[] = {
    {"C compiler", true, look_at_cc},
    {"NVRTC", true, look_at_nvrtc},
    {"CuTe", true, look_at_cutlass},
    {"PyTorch", true, look_at_torch},
    {"GPU", false, look_at_gpus},
    {"nvcc", false, look_at_nvcc},
    {"ncu", false, look_at_ncu},
    {"compute-sanitizer", false, look_at_sanitizer},
    {"models", false, look_at_models},
    {"disk", true, look_at_disk},
    {"confinement", false, look_at_layers},
};

/* ---- the whole ---------------------------------------------------------------- */

static void find_tools(struct scene *s, struct arena *a)
{
    const struct probe_request *req = s->req;
    struct tools_config config = {
        .cc = req->cc, .cuda = req->cuda, .cutlass = req->cutlass, .python = req->python};

    s->python = path_find_program(a, req->python ? req->python : "python3");
    tools_look(&config, a, &s->tools);
}

static void *probe_thread(void *arg)
{
    struct probe *p = arg;

    p->row->look(p->scene, p->a, &p->check);
    return NULL;
}

static json_t *check_json(const struct probe *p)
{
    const struct check *c = &p->check;
    json_t *o = json_pack("{s:s, s:s, s:o, s:o, s:b}", "name", p->row->name, "state", c->state,
                          "text", json_from_string(c->text), "todo",
                          json_from_string(c->todo ? c->todo : ""), "needed", p->row->needed);

    if (c->version)
        json_object_set_new(o, "version", json_from_string(c->version));
    if (c->path)
        json_object_set_new(o, "path", json_from_string(c->path));
    if (c->more)
        json_object_update(o, c->more);
    json_decref(c->more);
    return o;
}

/* Collects the results in the order of the table. */
static json_t *conclude(const struct probe *all, size_t count)
{
    json_t *checks = json_array(), *report;
    struct buf missing = buf_init(512);

    for (size_t i = 0; i < count; i++) {
        json_array_append_new(checks, check_json(&all[i]));
        if (all[i].row->needed && strcmp(all[i].check.state, "ok"))
            buf_printf(&missing, "%s%s", missing.len ? ", " : "", all[i].row->name);
    }
    report = json_pack("{s:b, s:o, s:o}", "ok", missing.len == 0, "summary",
                       missing.len ? json_sprintf("`cutegen run` still needs: %s.", missing.data)
                                   : json_string("Everything needed for `cutegen run` is here."),
                       "checks", checks);
    buf_release(&missing);
    return report;
}

bool probe_machine(const struct probe_request *req, struct arena *a, json_t **report,
                   struct error *err)
{
    struct scene scene = {.req = req, .until_ms = clock_ms() + PROBE_DEADLINE_MS};
    struct probe all[ARRAY_LEN(probes)] = {0};

    (void)err;
    find_tools(&scene, a);
    scene.gpu_pid = probe_fork(probe_gpus, NULL, &scene.gpu_fd);
    scene.confined_pid =
        probe_fork(probe_confined_gpu, getenv("LD_LIBRARY_PATH"), &scene.confined_fd);
    scene.nvrtc_pid = -1;
    if (scene.tools.nvrtc)
        scene.nvrtc_pid = probe_fork(probe_nvrtc, scene.tools.nvrtc, &scene.nvrtc_fd);
    for (size_t i = 0; i < ARRAY_LEN(probes); i++) {
        all[i] = (struct probe){.scene = &scene, .row = &probes[i], .a = arena_new()};
        all[i].threaded = !pthread_create(&all[i].thread, NULL, probe_thread, &all[i]);
        if (!all[i].threaded)
            probe_thread(&all[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(probes); i++)
        if (all[i].threaded)
            pthread_join(all[i].thread, NULL);
    *report = conclude(all, ARRAY_LEN(probes));
    for (size_t i = 0; i < ARRAY_LEN(probes); i++)
        arena_free(all[i].a);
    return true;
}
