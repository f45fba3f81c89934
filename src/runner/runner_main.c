/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runner_main.c - cutegen-runner: a candidate's process.
 *
 * Reads requests, one JSON line each, and answers each with one line
 * (docs/architecture.md, "Runner"). It lives for one candidate.
 *
 * Invariants
 * 1. Answers go to a private descriptor. Descriptor 1 is stderr: output printed by a kernel cannot
 *    be mistaken for an answer. Descriptor 0 is /dev/null.
 * 2. A fault of the candidate is an outcome; "ok": false is for a broken machine or an invalid
 *    request.
 * 3. After a fatal outcome the answer is sent and the process ends.
 */
#include "base/base64.h"
#include "base/buf.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/vault.h"
#include "runner/device.h"
#include "runner/runner_confine.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { REQUEST_LIMIT = 64 << 20, MODULE_LIMIT = 256 << 20, MAX_SAMPLES = 100000 };

struct session {
    struct arena *a; /* the plan lives here */
    struct run_device *device;
    /* device opened in advance (CUDA only, which needs no settings); NULL: none */
    struct run_device *ready;
    int ready_index;
    struct plan plan;
    bool loaded, bound;
};

/* ---- answers ------------------------------------------------------------ */

static json_t *answer_outcome(const struct outcome *said)
{
    json_t *answer = json_pack("{s:b, s:s, s:o, s:i}", "ok", 1, "outcome", outcome_name(said->kind),
                               "text", json_from_string(said->text), "op", said->op);

    if (said->stopped)
        json_object_set_new(answer, "stopped", json_true());
    if (said->findings)
        json_object_set(answer, "findings", said->findings);
    if (said->counters)
        json_object_set(answer, "counters", said->counters);
    return answer;
}

static json_t *samples_json(const double *v, size_t count)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, json_number(v[i]));
    return list;
}

/* ---- requests ----------------------------------------------------------- */

/* "simt", "cuda:0" */
static const struct device_ops *device_named(const char *name, int *index, struct error *err)
{
    char *end;
    long n;

    *index = 0;
    if (strcmp(name, "simt") == 0)
        return &device_simt_ops;
    if (strcmp(name, "cuda") == 0)
        return &device_cuda_ops;
    if (strncmp(name, "cuda:", 5) == 0 && name[5]) {
        n = strtol(name + 5, &end, 10);
        if (*end == '\0' && n >= 0 && n < 1024) {
            *index = (int)n;
            return &device_cuda_ops;
        }
    }
    error_set(err, ERROR_USE, "no device is called %s (simt, cuda:0, ...)", name);
    return NULL;
}

/* Copies the bytes to a memory file; false if the system has none. */
static bool to_memory(struct session *s, struct text data, const char **path)
{
    int fd = memfd_create("module", MFD_CLOEXEC);
    size_t done = 0;

    while (fd >= 0 && done < data.len) {
        ssize_t n = write(fd, data.data + done, data.len - done);

        if (n <= 0) {
            close(fd);
            fd = -1;
        }
        done += n > 0 ? (size_t)n : 0;
    }
    *path = arena_printf(s->a, "/proc/self/fd/%d", fd);
    /* kept open until exit, so that names stay unique */
    return fd >= 0 && access(*path, R_OK) == 0;
}

/* The module's bytes: from the request, if we cannot open files, or from the file it names. */
static bool take_module(struct session *s, const char *image, const char *path, struct text *out,
                        struct error *err)
{
    size_t chars = image ? strlen(image) : 0, len = 0;
    char *bytes;

    if (!image)
        return file_read(path, MODULE_LIMIT, s->a, out, err) ||
               error_add(err, "loading the candidate's module");
    bytes = arena_alloc(s->a, chars + 1);
    if (!base64_decode(image, chars, bytes, &len))
        return error_set(err, ERROR_USE, "the module in a request is not base64");
    *out = (struct text){bytes, len};
    return true;
}

/* With a hash: *module is a copy of exactly the bytes that were built; otherwise loading
 * fails. */
static bool checked_copy(struct session *s, const json_t *req, const char **module,
                         struct error *err)
{
    const char *hash = json_string_or(req, "sha256", NULL),
               *image = json_string_or(req, "image", NULL), *copy;
    struct text data;
    char hex[65];

    if (!hash && !image)
        return true;
    if (!take_module(s, image, *module, &data, err))
        return false;
    hash_text(data, hex);
    if (hash && strcmp(hex, hash) != 0)
        return error_set(err, ERROR_MACHINE, "%s is not the module that was built", *module);
    if (to_memory(s, data, &copy))
        *module = copy;
    else if (image)
        return error_set(err, ERROR_MACHINE, "no memory file for the module: %s", strerror(errno));
    return true;
}

static bool do_load(struct session *s, const json_t *req, struct outcome *said, json_t **extra,
                    struct error *err)
{
    const char *device, *module;
    json_t *names, *list;
    struct device_config config = {
        .check = json_string_or(req, "check", "full"),
        .counters = json_bool_or(req, "counters", false),
        .profile = json_bool_or(req, "profile", false),
        .sample = (uint64_t)json_int_or(req, "sample", 0),
        .warp_seed = (uint64_t)json_int_or(req, "warp_seed", 0),
        .threads = (int)json_int_or(req, "threads", 0),
        .watchdog_ms = (int)json_int_or(req, "watchdog_ms", 0),
        .smem_block_bytes = (uint64_t)json_int_or(req, "smem_block_bytes", 0),
        .cluster_blocks = (uint64_t)json_int_or(req, "cluster_blocks", 0),
    };
    const struct device_ops *ops;
    struct device_facts facts;

    if (s->device)
        return error_set(err, ERROR_USE, "a runner loads one candidate only");
    if (!json_get_string(req, "device", &device, err) ||
        !json_get_string(req, "module", &module, err) ||
        !json_get_object(req, "names", &names, err) || !json_get_object(req, "plan", &list, err))
        return false;
    ops = device_named(device, &config.index, err);
    if (ops && s->ready && s->ready->ops == ops && s->ready_index == config.index)
        s->device = s->ready;
    else if (!ops || !ops->open(&config, &s->device, err))
        return false;
    if (!checked_copy(s, req, &module, err) || !s->device->ops->load(s->device, module, said, err))
        return false;
    if (ops == &device_simt_ops && !runner_confine(err))
        return false;
    s->device->ops->facts(s->device, &facts);
    *extra = json_pack("{s:o}", "device", device_facts_json(&facts));
    if (said->kind == OUTCOME_OK)
        plan_parse(list, names, s->a, &s->plan, said);
    if (said->kind == OUTCOME_OK)
        plan_check(&s->plan, s->device, said);
    s->loaded = said->kind == OUTCOME_OK;
    return true;
}

/* Describes the device without a candidate, to choose what to build for. */
static bool do_describe(const json_t *req, json_t **extra, struct error *err)
{
    struct device_config config = {.check = "off"};
    const struct device_ops *ops;
    struct device_facts facts;
    struct run_device *d;
    const char *device;

    if (!json_get_string(req, "device", &device, err))
        return false;
    ops = device_named(device, &config.index, err);
    if (!ops || !ops->open(&config, &d, err))
        return false;
    d->ops->facts(d, &facts);
    d->ops->close(d);
    *extra = json_pack("{s:o}", "device", device_facts_json(&facts));
    return true;
}

static bool do_bind(struct session *s, const json_t *req, struct outcome *said, struct error *err)
{
    json_t *buffers;

    s->bound = false;
    if (!s->loaded)
        return error_set(err, ERROR_USE, "bind before a load that went well");
    if (!json_get_object(req, "buffers", &buffers, err) ||
        !s->device->ops->bind(s->device, &s->plan, buffers, said, err))
        return false;
    if (said->kind == OUTCOME_OK)
        plan_bind(&s->plan, s->device, said);
    s->bound = said->kind == OUTCOME_OK;
    return true;
}

static bool do_run(struct session *s, const json_t *req, struct outcome *said, json_t **extra,
                   struct error *err)
{
    uint64_t hash;

    if (!s->bound)
        return error_set(err, ERROR_USE, "run before a bind that went well");
    if (!s->device->ops->run(s->device, &s->plan, said, err))
        return false;
    if (said->kind != OUTCOME_OK || !json_bool_or(req, "hash", false))
        return true;
    if (!s->device->ops->hash(s->device, &s->plan, &hash, err))
        return false;
    *extra = json_pack("{s:o}", "hash", json_sprintf("%016" PRIx64, hash));
    return true;
}

static bool do_time(struct session *s, const json_t *req, struct outcome *said, json_t **extra,
                    struct error *err)
{
    int64_t cold = json_int_or(req, "cold", 20), warm = json_int_or(req, "warm", 20);
    struct runner_samples t = {.budget_ms = (int)json_int_or(req, "budget_ms", 0)};

    if (!s->bound)
        return error_set(err, ERROR_USE, "time before a bind that went well");
    if (cold < 0 || warm < 0 || cold > MAX_SAMPLES || warm > MAX_SAMPLES)
        return error_set(err, ERROR_USE, "at most %d samples", MAX_SAMPLES);
    t.cold_count = (size_t)cold;
    t.warm_count = (size_t)warm;
    t.cold_us = arena_array(s->a, t.cold_count + 1, sizeof *t.cold_us);
    t.warm_us = arena_array(s->a, t.warm_count + 1, sizeof *t.warm_us);
    if (!s->device->ops->time(s->device, &s->plan, &t, said, err))
        return false;
    if (said->kind == OUTCOME_OK)
        *extra = json_pack("{s:o, s:o, s:o, s:i}", "cold_us", samples_json(t.cold_us, t.cold_count),
                           "warm_us", samples_json(t.warm_us, t.warm_count), "wall_us",
                           json_number(t.wall_us), "other_outputs", t.other_outputs);
    return true;
}

/* One answer for one request; *more becomes false when the process must end. */
static json_t *handle(struct session *s, struct text line, bool *more)
{
    struct error err = {0};
    struct outcome said;
    json_t *req = NULL, *extra = NULL, *answer;
    const char *what = NULL;
    bool ok =
        json_parse(line, "the request", &req, &err) && json_get_string(req, "do", &what, &err);

    outcome_init(&said);
    if (ok && strcmp(what, "end") == 0)
        *more = false;
    else if (ok && strcmp(what, "load") == 0)
        ok = do_load(s, req, &said, &extra, &err);
    else if (ok && strcmp(what, "describe") == 0)
        ok = do_describe(req, &extra, &err);
    else if (ok && strcmp(what, "bind") == 0)
        ok = do_bind(s, req, &said, &err);
    else if (ok && strcmp(what, "run") == 0)
        ok = do_run(s, req, &said, &extra, &err);
    else if (ok && strcmp(what, "time") == 0)
        ok = do_time(s, req, &said, &extra, &err);
    else if (ok)
        ok = error_set(&err, ERROR_USE, "the runner cannot do %s", what);
    answer = ok ? answer_outcome(&said) : json_error(&err);
    if (ok && extra)
        json_object_update(answer, extra);
    if (!ok && !s->device) /* so that the client may try in another process */
        json_object_set_new(answer, "opened", json_false());
    if (said.fatal)
        *more = false;
    json_decref(extra);
    json_decref(req);
    outcome_release(&said);
    return answer;
}

/* ---- the line ----------------------------------------------------------- */

/* Opens the device in advance for the candidate's load. A failure here happens again, with a
 * message, when a candidate is loaded. */
static void warm(struct session *s, const char *name)
{
    struct device_config config = {.check = "off"};
    struct error ignored = {0};
    const struct device_ops *ops = device_named(name, &config.index, &ignored);

    if (!ops || !ops->warm || !ops->open(&config, &s->ready, &ignored))
        return;
    s->ready_index = config.index;
    ops->warm(s->ready);
}

/* Moves the protocol's descriptors away from their standard numbers. */
static bool take_descriptors(int *in, FILE **out)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int answers = fcntl(1, F_DUPFD_CLOEXEC, 64);

    *in = fcntl(0, F_DUPFD_CLOEXEC, 64);
    if (null < 0 || answers < 0 || *in < 0 || dup2(null, 0) < 0 || dup2(2, 1) < 0)
        return false;
    close(null);
    *out = fdopen(answers, "w");
    return *out != NULL;
}

static bool send_line(FILE *out, json_t *answer)
{
    char *line = json_dumps(answer, JSON_COMPACT);
    bool ok = line && fputs(line, out) >= 0 && fputc('\n', out) >= 0 && fflush(out) == 0;

    json_decref(answer);
    free(line);
    return ok;
}

/* Reads the next complete line into b; false at the end of input or beyond the limit. */
static bool next_line(int in, struct buf *pending, struct buf *line)
{
    static const size_t chunk_bytes = 65536;
    char *chunk = xmalloc(chunk_bytes);
    bool found = false;

    buf_clear(line);
    for (;;) {
        char *end = pending->len ? memchr(pending->data, '\n', pending->len) : NULL;
        ssize_t n;

        if (end) {
            size_t used = (size_t)(end - pending->data);

            buf_add(line, pending->data, used);
            memmove(pending->data, end + 1, pending->len - used - 1);
            pending->len -= used + 1;
            found = true;
            break;
        }
        n = read(in, chunk, chunk_bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0 || pending->overflowed)
            break;
        buf_add(pending, chunk, (size_t)n);
    }
    xfree(chunk);
    return found;
}

int main(int argc, char **argv)
{
    struct session s = {.a = arena_new()};
    struct buf pending = buf_init(REQUEST_LIMIT), line = buf_init(REQUEST_LIMIT);
    FILE *out = NULL;
    bool more = true;
    int in;

    vault_private();
    if (!take_descriptors(&in, &out)) {
        perror("cutegen-runner");
        return 3;
    }
    if (argc == 3 && strcmp(argv[1], "--warm") == 0)
        warm(&s, argv[2]);
    while (more && next_line(in, &pending, &line)) {
        json_t *answer = handle(&s, buf_text(&line), &more);

        if (!send_line(out, answer))
            return 3;
    }
    if (s.device)
        s.device->ops->close(s.device);
    buf_release(&pending);
    buf_release(&line);
    arena_free(s.a);
    fclose(out);
    _exit(0); /* exit without running handlers of the candidate's module */
}
