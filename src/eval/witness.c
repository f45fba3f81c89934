/* SPDX-License-Identifier: Apache-2.0 */
/* witness.c - does a ModelNew launch only its own kernels; see witness.h. */
#include "eval/witness.h"

#include "base/buf.h"
#include "base/fs.h"
#include "base/log.h"
#include "eval/foreign.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIPE_BYTES = 1 << 20, RECORD_LIMIT = 4 << 20, NAME_SHOWN = 120 };

/* Libraries whose kernels are not the candidate's. */
static const char *const libraries[] = {"libtorch",    "libcublas",   "libcudnn",    "libcufft",
                                        "libcusolver", "libcusparse", "libcutensor", "libcurand"};
/* Names of their kernels, for when the call stack is inconclusive. */
static const char *const names[] = {"_ZN2at6native", "cublas", "cudnn", "xmma_gemm", "nvjet_"};
/* Kernels that only fill or copy, which is not computing. */
static const char *const harmless[] = {"FillFunctor", "direct_copy_kernel", "CUDAFunctor_copy"};

static bool has_any(const char *text, const char *const *list, size_t count, bool at_begin)
{
    for (size_t i = 0; i < count; i++)
        if (at_begin ? strncmp(text, list[i], strlen(list[i])) == 0 : strstr(text, list[i]) != NULL)
            return true;
    return false;
}

static bool is_foreign(const char *library, const char *kernel)
{
    if (has_any(kernel, harmless, ARRAY_LEN(harmless), false))
        return false;
    return has_any(library, libraries, ARRAY_LEN(libraries), true) ||
           (strcmp(library, "-") == 0 && has_any(kernel, names, ARRAY_LEN(names), false));
}

const char *witness_finds(struct text record, struct arena *a)
{
    const char *end = record.data + record.len;

    for (const char *line = record.data; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        size_t len = (size_t)((stop ? stop : end) - line);
        char *library = arena_strndup(a, line, len), *kernel = strchr(library, ' ');

        if (kernel) {
            *kernel++ = '\0';
            if (is_foreign(library, kernel))
                return arena_printf(a, "%.64s (%.*s)", library, NAME_SHOWN, kernel);
        }
        line += len + 1;
    }
    return NULL;
}

static void drain(int fd, struct buf *out)
{
    char chunk[8192];
    ssize_t n;

    while ((n = read(fd, chunk, sizeof chunk)) > 0)
        if (out)
            buf_add(out, chunk, (size_t)n);
}

/* Instantiates and calls the module; *record is what was recorded during the call. */
static bool watch(const struct judge_config *config, const struct build_result *build,
                  const struct oracle_draw *draw, const struct runner_config *rc, int fd,
                  struct arena *a, struct buf *record, struct error *err)
{
    struct buf before = buf_init(RECORD_LIMIT);
    struct runner_answer said = {.verdict = VERDICT_PASS};
    struct runner *r = NULL;
    bool ok = runner_start(rc, &r, err) && runner_load(r, build, a, &said, err);
    bool good = ok && said.verdict == VERDICT_PASS;

    if (good) {
        runner_answer_release(&said);
        ok = foreign_draw(config->oracle, r, draw, a, &said, err);
        good = ok && said.verdict == VERDICT_PASS;
    }
    drain(fd, &before);
    if (good && !memmem(before.data, before.len, "! recording", 11)) {
        log_info("no record of the module's launches: CUPTI is not there");
        good = false;
    }
    if (good) {
        runner_answer_release(&said);
        ok = runner_witness(r, a, &said, err);
        drain(fd, record);
    }
    runner_answer_release(&said);
    runner_stop(r);
    buf_release(&before);
    return ok;
}

bool witness_launches(const struct judge_config *config, const struct build_result *build,
                      struct oracle_draw draw, struct arena *a, const char **refused,
                      struct error *err)
{
    struct runner_config rc = {.device = config->device};
    struct buf record = buf_init(RECORD_LIMIT);
    const char *seen;
    char *library;
    int fd = -1;
    bool ok = foreign_runner(config, build, a, &rc, err) &&
              home_program("cutegen-recorder.so", a, &library, err);

    *refused = NULL;
    if (ok) {
        rc.recorder = library;
        draw.guest = rc.exchange;
        rc.record = path_join(a, rc.exchange, "launches");
        ok = (mkfifo(rc.record, 0600) == 0 &&
              (fd = open(rc.record, O_RDONLY | O_NONBLOCK | O_CLOEXEC)) >= 0) ||
             error_set(err, ERROR_MACHINE, "making a pipe for launches: %s", strerror(errno));
    }
    if (ok) {
        (void)fcntl(fd, F_SETPIPE_SZ, PIPE_BYTES);
        ok = watch(config, build, &draw, &rc, fd, a, &record, err);
        seen = witness_finds(buf_text(&record), a);
        if (seen)
            *refused = arena_printf(a,
                                    "forward launches kernels of %s; --allow-torch judges it all "
                                    "the same",
                                    seen);
    }
    if (fd >= 0) {
        close(fd);
        unlink(rc.record);
    }
    foreign_end(&rc);
    buf_release(&record);
    return ok || error_add(err, "recording the module's launches");
}
