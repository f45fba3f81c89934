/*
 * table.c - the injected bugs of bugs.cu and attacks.cu: found or not, on which line, and what
 * their twins give.
 *
 *     test_simt_bug_table [ORDERS [FILE]]
 *
 * Prints one row per bug and a line of sums; fails unless every bug is found as (one of) its kinds
 * and on its line and no twin has a finding. ORDERS (1 unless given) is how many orders of warps
 * each runs in, FILE "bugs", "attacks" or "attacks_async", all unless given. The PTX is checked in:
 * ../ptx.sh makes it.
 */
#include "../support.h"

#include <stdio.h>

enum { INPUT = 256, WORDS = 1024, N = 200, MAX_BUGS = 100, KIND = 80 };

struct bug {
    char name[40], kind[KIND]; /* kinds: with a | between them */
    unsigned grid, block, shared, cluster, cooperative;
    int line, caller; /* caller: of a helper's line, 0: none */
};

struct sums {
    int found, on_line, false_findings, kinds;
};

static const char *so;

/* The word after `mark` on a line, if it is there. */
static bool word_after(const char *line, const char *mark, char out[40])
{
    const char *at = strstr(line, mark);
    return at && sscanf(at + strlen(mark), "%39s", out) == 1;
}

static void number_after(const char *line, const char *mark, unsigned *out)
{
    char text[40];
    if (word_after(line, mark, text))
        *out = (unsigned)strtoul(text, NULL, 10);
}

static void read_bug(const char *line, int number, struct bug *b)
{
    *b = (struct bug){.grid = 1, .block = 64, .line = number};
    const char *at = strstr(line, "// BUG:");
    if (!at || sscanf(at, "// BUG:%39s %79s", b->name, b->kind) != 2)
        fail_msg("line %d: not a bug", number);
    number_after(at, " grid=", &b->grid);
    number_after(at, " block=", &b->block);
    number_after(at, " shared=", &b->shared);
    number_after(at, " cluster=", &b->cluster);
    number_after(at, " cooperative=", &b->cooperative);
}

static size_t read_bugs(const char *file, struct bug *bugs, struct arena *a)
{
    struct error err = {0};
    struct text src;
    size_t n = 0;
    int number = 0;
    if (!file_read(arena_printf(a, SIMT_TESTS_DIR "/bugs/%s.cu", file), 1 << 20, a, &src, &err))
        fail_msg("%s", err.text);
    for (char *line = arena_strndup(a, src.data, src.len), *end; line && *line;
         line = end ? end + 1 : NULL) {
        char caller[40];
        end = strchr(line, '\n');
        if (end)
            *end = '\0';
        number++;
        if (strstr(line, "; // BUG:") || strstr(line, "} // BUG:")) {
            assert_true(n < MAX_BUGS);
            read_bug(line, number, &bugs[n++]);
        }
        for (size_t i = 0; word_after(line, "// CALLER:", caller) && i < n; i++)
            if (strcmp(bugs[i].name, caller) == 0)
                bugs[i].caller = number;
    }
    return n;
}

static struct simt_result run(const struct bug *b, const char *kernel, uint64_t seed,
                              struct arena *a)
{
    /* Between the buffers lies memory that belongs to none. */
    static float memory[INPUT + 2 * WORDS + 4 * 512] __attribute__((aligned(256)));
    float *in = memory + 512, *out = in + INPUT + 512;
    int *w = (int *)(void *)(out + WORDS + 512), n = N;
    struct simt_config c = {
        .threads = 2, .check = SIMT_CHECK_FULL, .watchdog_ms = 600000, .warp_order_seed = seed};
    struct error err = {0};
    struct bench_args x = {0};
    struct simt *dev;
    struct simt_module *mod;
    struct simt_result r = {0};
    memset(memory, 0, sizeof memory);
    assert_true(simt_open(&c, &dev, &err));
    simt_alloc_register(dev, in, INPUT * sizeof *in, "in",
                        SIMT_ALLOC_READONLY | SIMT_ALLOC_WRITTEN);
    simt_alloc_register(dev, out, WORDS * sizeof *out, "out", 0);
    simt_alloc_register(dev, w, WORDS * sizeof *w, "w", SIMT_ALLOC_WRITTEN);
    put_arg(&x, &in, 8);
    put_arg(&x, &out, 8);
    put_arg(&x, &w, 8);
    put_arg(&x, &n, 4);
    struct simt_launch l = {.kernel = kernel,
                            .grid = {b->grid, 1, 1},
                            .block = {b->block, 1, 1},
                            .cluster = {b->cluster, 1, 1},
                            .shared_bytes = b->shared,
                            .cooperative = b->cooperative != 0,
                            .params = x.data,
                            .param_bytes = x.len};
    if (!simt_load(dev, so, &mod, &err) || !simt_launch(dev, mod, &l, a, &r, &err))
        fail_msg("%s: %s", kernel, err.text);
    simt_close(dev);
    return r;
}

static bool is_kind(const char *kinds, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = strstr(kinds, name); at; at = strstr(at + 1, name))
        if ((at == kinds || at[-1] == '|') && (at[n] == '\0' || at[n] == '|'))
            return true;
    return false;
}

static bool called_from(const struct simt_finding *f, int line)
{
    for (size_t i = 0; i < f->caller_count; i++)
        if (f->callers[i].line == line)
            return true;
    return false;
}

/* The mistake is in the line, or, if no caller is marked, in the call of a helper there. */
static bool at_line(const struct simt_finding *f, const struct bug *b)
{
    bool there = f->path_len && f->path[0].line == b->line;
    return b->caller ? there && called_from(f, b->caller) : there || called_from(f, b->line);
}

static void row(const struct bug *b, uint64_t seed, struct sums *s)
{
    struct arena *a = arena_new();
    struct simt_result r = run(b, b->name, seed, a);
    const char *twin = arena_printf(a, "%s_ok", b->name);
    bool found = false, on_line = false;
    for (size_t i = 0; i < r.finding_count; i++) {
        const struct simt_finding *f = &r.findings[i];
        bool kind = is_kind(b->kind, simt_finding_name(f->kind));
        found |= kind;
        on_line |= kind && at_line(f, b);
    }
    if (!on_line)
        for (size_t i = 0; i < r.finding_count; i++)
            print_message("    %s: %s\n", simt_finding_name(r.findings[i].kind),
                          r.findings[i].text);
    r = run(b, twin, seed, a);
    print_message("%-20s %-22s %-6s %-5s %zu\n", b->name, b->kind, found ? "found" : "MISSED",
                  on_line ? "line" : "-", r.finding_count);
    for (size_t i = 0; i < r.finding_count; i++)
        print_message("    %s: %s\n", twin, r.findings[i].text);
    s->found += found;
    s->on_line += on_line;
    s->false_findings += (int)r.finding_count + (r.outcome != SIMT_OK);
    arena_free(a);
}

static int kinds_of(const struct bug *bugs, size_t n)
{
    int kinds = 0;
    for (size_t i = 0; i < n; i++) {
        bool before = false;
        for (size_t k = 0; k < i; k++)
            before |= strcspn(bugs[k].kind, "|") == strcspn(bugs[i].kind, "|") &&
                      strncmp(bugs[k].kind, bugs[i].kind, strcspn(bugs[i].kind, "|")) == 0;
        kinds += !before;
    }
    return kinds;
}

/* All bugs of a file, in so many orders; false: one was missed, or a twin had a finding. */
static bool table(const char *file, size_t least, int orders, struct arena *a)
{
    static struct bug bugs[MAX_BUGS];
    struct error err = {0};
    struct text ptx;
    struct sums s = {0};
    size_t n = read_bugs(file, bugs, a);
    if (!file_read(arena_printf(a, SIMT_TESTS_DIR "/bugs/%s.ptx", file), 64 << 20, a, &ptx, &err))
        fail_msg("%s", err.text);
    so = compile_text(ptx, a);
    print_message("%-20s %-22s %-6s %-5s %s\n", "bug", "kind", "found", "line", "of its twin");
    for (int order = 0; order < orders; order++)
        for (size_t i = 0; i < n; i++)
            row(&bugs[i], (uint64_t)order, &s);
    int all = (int)n * orders;
    print_message(
        "%zu bugs of %d kinds of finding, %d orders of warps: %d of %d found, %d on their "
        "line, %d false findings\n",
        n, kinds_of(bugs, n), orders, s.found, all, s.on_line, s.false_findings);
    return n >= least && s.found == all && s.on_line == all && s.false_findings == 0;
}

int main(int argc, char **argv)
{
    struct arena *a = arena_new();
    int orders = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 1;
    const char *file = argc > 2 ? argv[2] : "";
    bool good = true;
    static const struct {
        const char *name;
        size_t bugs;
    } files[] = {{"bugs", 60}, {"attacks", 35}, {"attacks_async", 20}};
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        if (!*file || strcmp(file, files[i].name) == 0)
            good &= table(files[i].name, files[i].bugs, orders, a);
    arena_free(a);
    return good ? 0 : 1;
}
