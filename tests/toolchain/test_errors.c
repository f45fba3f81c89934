/*
 * test_errors.c - the user's line and call are in the summary of every wrong kernel of errors/.
 *
 *     test_errors                       all kept logs: errors/NAME.COMPILER.log of errors/NAME.cu
 *     test_errors KERNEL.cu KERNEL.log  that one, whose verdict is printed when it is poor
 *
 * In a kernel the wrong line ends with `// error: CALL` or `// error: CALL | TEXT`, TEXT being
 * something that the detail must say. errors.py makes the logs.
 */
#include "base/fs.h"
#include "base/text.h"
#include "toolchain/diag.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOG_LIMIT = 4 << 20, AT_LEAST = 80 };

struct mark {
    int line;
    const char *call, *says; /* says may be "" */
};

static struct text read_file(struct arena *a, const char *path)
{
    struct error err = {0};
    struct text out;

    if (!file_read(path, LOG_LIMIT, a, &out, &err)) {
        fprintf(stderr, "%s\n", err.text);
        exit(3);
    }
    return out;
}

static bool find_mark(struct text source, struct arena *a, struct mark *out)
{
    static const char word[] = "// error: ";
    struct text rest = source, line;

    for (int number = 1; text_next_line(&rest, &line); number++) {
        const char *at = memmem(line.data, line.len, word, strlen(word));
        char *call, *bar;

        if (!at)
            continue;
        at += strlen(word);
        call = arena_strndup(a, at, (size_t)(line.data + line.len - at));
        bar = strstr(call, " | ");
        *out = (struct mark){number, call, bar ? bar + 3 : ""};
        if (bar)
            *bar = '\0';
        return true;
    }
    return false;
}

/* NULL: the verdict says what it must. */
static const char *lacks(const struct verdict *v, const struct mark *m, struct arena *a)
{
    const char *where = arena_printf(a, "candidate.cu:%d: ", m->line);

    if (strncmp(v->summary, where, strlen(where)) != 0)
        return arena_printf(a, "the summary lacks '%s'", where);
    if (!v->finding_count || !strstr(v->findings[0].line, m->call) || !strstr(v->summary, m->call))
        return arena_printf(a, "the summary lacks '%s'", m->call);
    if (!strstr(v->detail, v->findings[0].line))
        return "the detail does not quote the line";
    if (!strstr(v->detail, m->says))
        return arena_printf(a, "the detail lacks '%s'", m->says);
    if (strlen(v->detail) > DIAG_DETAIL_MAX || strchr(v->summary, '\n'))
        return "too long";
    return NULL;
}

static bool judge(const char *kernel, const char *log, bool tell)
{
    struct arena *a = arena_new();
    struct text source = read_file(a, kernel);
    struct verdict v;
    struct mark m;
    const char *why;

    if (!find_mark(source, a, &m)) {
        fprintf(stderr, "%s has no '// error: CALL'\n", kernel);
        exit(3);
    }
    diag_compile_error(read_file(a, log), source, "candidate.cu", a, &v);
    why = lacks(&v, &m, a);
    if (why || tell)
        printf("%s: %s\n  %s\n%s\n", log, why ? why : "ok", v.summary, v.detail);
    arena_free(a);
    return why == NULL;
}

/* errors/NAME.nvcc.log -> errors/NAME.cu */
static char *kernel_of(const char *log, struct arena *a)
{
    const char *base = path_base(log), *dot = strchr(base, '.');

    return arena_printf(a, "%.*s.cu", (int)(dot - log), log);
}

int main(int argc, char **argv)
{
    struct arena *a = arena_new();
    int good = 0, bad = 0;
    glob_t found;

    if (argc == 3) {
        bad = !judge(argv[1], argv[2], getenv("TELL") != NULL);
        arena_free(a);
        return bad;
    }
    if (glob(arena_printf(a, "%s/errors/*.log", getenv("TEST_SOURCES")), 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc; i++) {
            bool ok = judge(kernel_of(found.gl_pathv[i], a), found.gl_pathv[i], false);

            good += ok;
            bad += !ok;
        }
    globfree(&found);
    printf("%d passed, %d failed\n", good, bad);
    arena_free(a);
    return bad == 0 && good >= AT_LEAST ? 0 : 1;
}
