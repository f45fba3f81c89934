/*
 * planner_main.c - cutegen-planner PLAN.so: one request line in, one answer out.
 *
 * Hides the order in which privileges are given up. The answer goes to a
 * private copy of stdout; the plan's own stdout, stderr and stdin are
 * /dev/null, so that a plan that prints cannot be taken for an answer.
 */
#include "base/buf.h"
#include "base/json.h"
#include "runner/planner.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { REQUEST_LIMIT = 8 << 20, ANSWER_FD_FLOOR = 64 };

static bool read_line(int fd, struct buf *b, struct error *err)
{
    char chunk[16384];
    for (;;) {
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_set(err, ERROR_MACHINE, "reading the request: %s", strerror(errno));
        if (n == 0)
            break;
        buf_add(b, chunk, (size_t)n);
        if (memchr(chunk, '\n', (size_t)n) != NULL)
            break;
    }
    if (b->overflowed)
        return error_set(err, ERROR_USE, "the request is longer than %d bytes", (int)REQUEST_LIMIT);
    if (b->len == 0)
        return error_set(err, ERROR_USE, "no request on standard input");
    return true;
}

/* Keeps stdout for ourselves and leaves the plan only /dev/null. */
static bool take_stdout(int *answer_fd, struct error *err)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    *answer_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, ANSWER_FD_FLOOR);
    if (null < 0 || *answer_fd < 0)
        return error_set(err, ERROR_MACHINE, "setting up descriptors: %s", strerror(errno));
    for (int fd = 0; fd <= 2; fd++)
        if (dup2(null, fd) < 0)
            return error_set(err, ERROR_MACHINE, "setting up descriptors: %s", strerror(errno));
    close(null);
    return true;
}

static void write_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, data, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return; /* the reader is gone */
        data += n;
        len -= (size_t)n;
    }
}

static void answer(int fd, json_t *v, struct arena *a)
{
    char *line = json_line(v, a);
    write_all(fd, line, strlen(line));
    write_all(fd, "\n", 1);
}

static void answer_error(int fd, const struct error *err, struct arena *a)
{
    answer(fd, json_own(a, json_error(err)), a);
}

static bool plan_open(const char *path, int (**plan)(struct cutegen_call *), struct error *err)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const uint32_t *abi;
    if (library == NULL)
        return error_set(err, ERROR_USE, "loading the plan: %s", dlerror());
    abi = dlsym(library, "cutegen_plan_abi");
    *plan = (int (*)(struct cutegen_call *))(intptr_t)dlsym(library, "cutegen_plan");
    if (abi == NULL || *plan == NULL)
        return error_set(
            err, ERROR_USE,
            "the file has no plan: write CUTEGEN_PLAN(call) { ... } under #ifdef CUTEGEN_HOST");
    if (*abi != CUTEGEN_ABI_VERSION)
        return error_set(err, ERROR_USE, "the plan speaks kernel ABI %u, this planner %d", *abi,
                         CUTEGEN_ABI_VERSION);
    return true;
}

static bool run(const char *path, int *answer_fd, struct arena *a, json_t **out, struct error *err)
{
    struct buf line = buf_init(REQUEST_LIMIT);
    struct planner *p = arena_alloc(a, sizeof *p);
    int (*plan)(struct cutegen_call *) = NULL;
    json_t *request = NULL;

    p->arena = a;
    if (!read_line(STDIN_FILENO, &line, err) || !take_stdout(answer_fd, err) ||
        !json_parse(buf_text(&line), "the request", &request, err))
        return false;
    if (!planner_load(p, request, err) || !confine_limits(err) ||
        !confine_loading(*answer_fd, err) || !plan_open(path, &plan, err) ||
        !confine_running(*answer_fd, err))
        return false;
    *out = planner_answer(p, plan(&p->call));
    return true;
}

#if defined(__SANITIZE_ADDRESS__)
/* A plan that faults must end by its signal; a report would need calls that are forbidden here. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "handle_segv=0:handle_sigbus=0:handle_abort=0:handle_sigill=0:handle_sigfpe=0:"
           "detect_leaks=0:allocator_may_return_null=1";
}
#endif

int main(int argc, char **argv)
{
    struct arena *a = arena_new();
    struct error err = {0};
    int answer_fd = STDOUT_FILENO;
    json_t *out = NULL;

    if (argc != 2) {
        fprintf(stderr, "usage: cutegen-planner PLAN.so < request\n");
        return 2;
    }
    if (run(argv[1], &answer_fd, a, &out, &err))
        answer(answer_fd, out, a);
    else
        answer_error(answer_fd, &err, a);
    _exit(0); /* no destructors: the plan may have registered some */
}
