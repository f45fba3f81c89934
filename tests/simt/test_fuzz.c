/*
 * test_fuzz.c - PTX cut short or changed at random is an error or a
 * translation, never a crash, and errors name a line.
 *
 *   test_fuzz SECONDS        longer runs than the test suite's
 *   test_fuzz SECONDS run    kernels of kernels.def with lines lost, doubled,
 *                            swapped or numbers changed are compiled and run, each
 *                            in a process of its own: none may die of a signal
 */
#include "support.h"

#include "kernels.h"

#include "base/buf.h"
#include "base/clock.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t next(uint64_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    return *s;
}

static bool translate_all(struct text ptx, struct error *err)
{
    struct arena *a = arena_new();
    struct translate_options opt = {.lanes = 8};
    struct text c;
    const char **names;
    size_t n;
    int instructions;
    bool ok = simt_kernel_names(ptx, a, &names, &n, err) && n > 0 &&
              simt_translate(ptx, names, n, &opt, a, &c, &instructions, err);
    arena_free(a);
    return ok;
}

/* One change: a byte, a run cut out, a run doubled, a token swapped. */
static size_t mutate(char *text, size_t len, size_t cap, uint64_t *s)
{
    static const char *const words[] = {"0x7fffffffffffffff",
                                        "%r999999",
                                        "[",
                                        "]",
                                        "{",
                                        "}",
                                        ";",
                                        ".reg",
                                        "bra",
                                        "-",
                                        "%p1",
                                        "call",
                                        ".f64",
                                        ".v4",
                                        ".b8",
                                        "0f3F",
                                        "<99999999>",
                                        ".param",
                                        "@",
                                        "ld.param.u64",
                                        "(",
                                        ")",
                                        ".shared",
                                        ",",
                                        "$L"};
    size_t at = next(s) % len, n = 1 + next(s) % 12;
    switch (next(s) % 5) {
    case 0:
        text[at] = (char)(next(s) & 127);
        return len;
    case 1:
        n = n < len - at ? n : len - at;
        memmove(text + at, text + at + n, len - at - n);
        return len - n > 2 ? len - n : len;
    case 2:
        n = n < len - at ? n : len - at;
        if (len + n > cap)
            return len;
        memmove(text + at + n, text + at, len - at);
        return len + n;
    default: {
        const char *w = words[next(s) % ARRAY_LEN(words)];
        n = strlen(w);
        if (len + n > cap)
            return len;
        memmove(text + at + n, text + at, len - at);
        memcpy(text + at, w, n);
        return len + n;
    }
    }
}

static int fuzz(const char *name, int rounds, int64_t until_ms, uint64_t seed)
{
    struct arena *a = arena_new();
    struct error err = {0};
    struct text ptx;
    if (!file_read(path_join(a, SIMT_TESTS_DIR "/ptx", name), 64 << 20, a, &ptx, &err))
        fail_msg("%s", err.text);
    size_t cap = ptx.len + 4096;
    char *copy = xmalloc(cap + 1);
    int done = 0;
    for (; (rounds < 0 || done < rounds) && (!until_ms || clock_ms() < until_ms); done++) {
        size_t len = ptx.len;
        memcpy(copy, ptx.data, len);
        if (next(&seed) % 4 == 0)
            len = 1 + next(&seed) % len;
        for (uint64_t n = next(&seed) % 6; n; n--)
            len = mutate(copy, len, cap, &seed);
        copy[len] = '\0';
        struct error e = {0};
        if (!translate_all((struct text){copy, len}, &e) && e.kind == ERROR_MACHINE)
            fail_msg("a bad kernel was taken for a bad machine: %s", e.text);
    }
    xfree(copy);
    arena_free(a);
    return done;
}

/* ---- mutants that still make sense, run ---- */

static char *line_at(char *text, size_t len, uint64_t r)
{
    char *p = text + r % len;
    while (p > text && p[-1] != '\n')
        p--;
    return p;
}

/* Within [from, to): a line lost, doubled or put elsewhere, or a number changed. */
static size_t mutate_line(char *text, size_t len, size_t cap, size_t from, size_t to, uint64_t *s)
{
    static const char *const numbers[] = {"0", "1", "-1", "4", "31", "64", "4096", "2147483647"};
    char line[512], *at = line_at(text + from, to - from, next(s));
    size_t n = strcspn(at, "\n") + 1;
    if (n >= sizeof line || len + n + 16 > cap || at + n > text + len)
        return len;
    memcpy(line, at, n);
    switch (next(s) % 4) {
    case 0: /* lost */
        memmove(at, at + n, (size_t)(text + len - at) - n);
        return len - n;
    case 1: { /* doubled somewhere else */
        char *dst = line_at(text + from, to - from, next(s));
        memmove(dst + n, dst, (size_t)(text + len - dst));
        memcpy(dst, line, n);
        return len + n;
    }
    default: {
        char *d = at;
        for (uint64_t skip = next(s) % 4; *d != '\n'; d++)
            if (*d >= '0' && *d <= '9' && (d == at || d[-1] < '0' || d[-1] > '9') && !skip--)
                break;
        if (*d == '\n')
            return len;
        const char *w = numbers[next(s) % ARRAY_LEN(numbers)];
        size_t old = strspn(d, "0123456789"), want = strlen(w);
        if (d[-1] == 'r' || d[-1] == 'f' || d[-1] == 'd' || d[-1] == 'p') /* a register */
            w = old > 1 ? "12" : "3", want = strlen(w);
        memmove(d + want, d + old, (size_t)(text + len - d) - old);
        memcpy(d, w, want);
        return len + want - old;
    }
    }
}

/* In a child: whatever the kernel does, the process must live. */
static void run_mutant(const struct kernel_row *r, struct text ptx)
{
    struct arena *a = arena_new();
    struct error err = {0};
    struct translate_options opt = {.cache_dir = cache_dir(a)};
    struct simt_config config = {.threads = 1, .check = SIMT_CHECK_FULL, .watchdog_ms = 1000};
    struct simt_built built;
    struct simt *dev;
    struct simt_module *mod;
    struct simt_result res;
    struct bench_args x = {0};
    if (!simt_compile(ptx, &r->name, 1, &opt, a, &built, &err) || !simt_open(&config, &dev, &err))
        _exit(1);
    for (int i = 0; i < 4; i++) {
        size_t bytes = (size_t)r->count[i] * kernel_bytes(r->types[i]);
        void *p = aligned_alloc(256, (bytes + 255) / 256 * 256);
        memset(p, 0, bytes);
        if (i < 3)
            kernel_fill(r, i, p);
        simt_alloc_register(dev, p, bytes, "x", SIMT_ALLOC_WRITTEN);
        put_arg(&x, &p, 8);
    }
    put_arg(&x, &r->m, 4);
    put_arg(&x, &r->n, 4);
    put_arg(&x, &r->k, 4);
    struct simt_launch l = {.kernel = r->name,
                            .grid = {r->grid[0], r->grid[1], r->grid[2]},
                            .block = {r->block[0], r->block[1], 1},
                            .shared_bytes = r->shared_bytes,
                            .params = x.data,
                            .param_bytes = x.len};
    bool ran =
        simt_load(dev, built.so_path, &mod, &err) && simt_launch(dev, mod, &l, a, &res, &err);
    unlink(built.so_path);
    _exit(ran ? (res.outcome == SIMT_OK ? 0 : 2) : 3);
}

/* Which mutant it was goes to a file, so that it can be examined. */
static void keep_mutant(const struct kernel_row *r, struct text ptx, int sig)
{
    char path[128];
    snprintf(path, sizeof path, "mutant-%s-%d.ptx", r->name, sig);
    FILE *f = fopen(path, "w");
    if (f) {
        fwrite(ptx.data, 1, ptx.len, f);
        fclose(f);
    }
    print_error("%s died of signal %d; kept as %s\n", r->name, sig, path);
}

static int fuzz_run(int64_t until_ms, uint64_t seed)
{
    int count[4] = {0}, died = 0, n = 0;
    for (; clock_ms() < until_ms; n++) {
        const struct kernel_row *r = &kernel_rows[next(&seed) % KERNELS];
        struct arena *a = arena_new();
        struct error err = {0};
        struct text ptx;
        char *name = arena_printf(a, "%s/ptx/%s.ptx", SIMT_TESTS_DIR, r->file);
        if (!file_read(name, 64 << 20, a, &ptx, &err))
            fail_msg("%s", err.text);
        size_t len = ptx.len, cap = len + 8192;
        char *copy = arena_alloc(a, cap + 1);
        memcpy(copy, ptx.data, len);
        char *body = strstr(copy, arena_printf(a, ".entry %s(", r->name));
        body = body ? strstr(body, "\n{") : NULL;
        char *end = body ? strstr(body, "\n}") : NULL;
        for (uint64_t k = 1 + next(&seed) % 3; end && k; k--) {
            size_t before = len;
            len =
                mutate_line(copy, len, cap, (size_t)(body + 2 - copy), (size_t)(end - copy), &seed);
            end += (ptrdiff_t)len - (ptrdiff_t)before;
        }
        copy[len] = '\0';
        fflush(NULL);
        pid_t pid = fork();
        if (pid == 0) {
            alarm(120);
            run_mutant(r, (struct text){copy, len});
        }
        int status = 0;
        waitpid(pid, &status, 0);
        if (WIFSIGNALED(status) && WTERMSIG(status) != SIGALRM) {
            keep_mutant(r, (struct text){copy, len}, WTERMSIG(status));
            died++;
        } else if (WIFEXITED(status) && WEXITSTATUS(status) < 4) {
            count[WEXITSTATUS(status)]++;
        }
        arena_free(a);
    }
    printf("%d mutants: %d ran, %d refused, %d stopped by the checker, %d not launched, %d died\n",
           n, count[0], count[1], count[2], count[3], died);
    return died != 0;
}

static void mutated_ptx_is_an_error_or_a_translation(void **state)
{
    (void)state;
    fuzz("bugs.ptx", 50, 0, 12345);
    fuzz("parts.ptx", 50, 0, 54321);
    fuzz("tile.ptx", 10, 0, 777);
}

static void nonsense_is_refused_with_a_reason(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "no kernel"},
        {"hello", "a directive"},
        {".version 8.0 .target sm_80 .address_size 64 .visible .entry k() {", "no end"},
        {".visible .entry k() { bra NOWHERE; }", "no label NOWHERE"},
        {".visible .entry k() { frobnicate.b32 %r1; }", "frobnicate"},
        {".visible .entry k() { .reg .b32 %r<4>; frobnicate.b32 %r1, %r2; }",
         "frobnicate.b32 %r1, %r2"},
        {".visible .entry k() { .reg .b32 %r<4>; add.s32 %r1, %r2; }", "operands"},
        {".visible .entry k() { .reg .b32 %r<4>; add.s32 %r1, %r2, %r9; }", "%r9"},
        {".func f() { call g, (); call g, (); } .func g() { call f, (); call f, (); } "
         ".visible .entry k() { call f, (); }",
         "nested too deep"},
        {".visible .entry k() { .reg .b32 %r<4>; tcgen05.mma.b32 %r1, %r2; }", "tcgen05"},
        {".visible .entry k() { .shared .b8 s[99999999999999]; ret; }", "number in range"},
        /* Words nobody knows have no default, and those of the passes are no words of PTX. */
        {"\n.visible .entry k() {\n.reg .b32 %r<4>; .reg .b64 %d<4>; ld.globalev4.u32 %r1, [%d1]; "
         "}",
         "PTX line 3: this device does not know the modifier .globalev4"},
        {".visible .entry k() { .reg .b32 %r<4>; add.s32.fast %r1, %r2, %r3; }", "modifier .fast"},
        {".visible .entry k() { .reg .b32 %r<4>; wgtouch %r1; }", "does not know the instruction"},
        {".visible .entry k() { .reg .b32 %r<4>; cmp.eq.s32 %r1, %r2, %r3; }",
         "does not know the instruction"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct error err = {0};
        struct arena *a = arena_new();
        struct translate_options opt = {.lanes = 8};
        struct text c;
        int instructions;
        const char *name = "k";
        if (simt_translate(text_of(cases[i].text), &name, 1, &opt, a, &c, &instructions, &err))
            fail_msg("took '%s'", cases[i].text);
        if (!strstr(err.text, cases[i].says))
            fail_msg("'%s' gives '%s', which does not say '%s'", cases[i].text, err.text,
                     cases[i].says);
        arena_free(a);
    }
}

static size_t text_bytes(const char *ptx, const char *without)
{
    struct arena *a = arena_new();
    struct translate_options opt = {.lanes = 16};
    struct error err = {0};
    struct text c = {0};
    int instructions;
    const char *name = "k";
    if (!simt_translate(text_of(ptx), &name, 1, &opt, a, &c, &instructions, &err))
        fail_msg("%s", err.text);
    if (without && memmem(c.data, c.len, without, strlen(without)))
        fail_msg("a kernel that has no use for it carries %s", without);
    size_t bytes = c.len;
    arena_free(a);
    return bytes;
}

/* What the C compiler need not read takes none of its time. */
static void text_has_what_it_uses(void **state)
{
    (void)state;
    text_bytes(".visible .entry k() { .reg .b32 %r<4>; add.u32 %r1, %r2, %r3; ret; }", "fma_hx2");
}

/* A pair of halves is a call where there are many: in full, gcc takes minutes for 20,000. */
static void many_pairs_of_halves_are_calls(void **state)
{
    static const char *const ops[] = {"fma.rn.f16x2 %r1, %r1, %r2, %r3;",
                                      "add.f16x2 %r2, %r1, %r3;", "max.bf16x2 %r3, %r1, %r2;"};
    size_t bytes[2];
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct buf b = buf_init(1 << 20);
        buf_puts(&b,
                 ".visible .entry k(.param .u64 p) { .reg .b32 %r<5>; .reg .b64 %d<4>;\n"
                 "ld.param.u64 %d1, [p]; mov.u32 %r4, %tid.x; mul.wide.u32 %d2, %r4, 12;\n"
                 "add.u64 %d3, %d1, %d2; ld.global.u32 %r1, [%d3]; ld.global.u32 %r2, [%d3+4];\n"
                 "ld.global.u32 %r3, [%d3+8];\n");
        for (int n = 0; n < 300 * (i + 1); n++)
            buf_puts(&b, ops[n % 3]);
        buf_puts(&b,
                 "st.global.u32 [%d3], %r1; st.global.u32 [%d3], %r2; st.global.u32 [%d3], %r3; }");
        bytes[i] = text_bytes(b.data, NULL);
        buf_release(&b);
    }
    assert_in_range(bytes[1] - bytes[0], 300 * 20, 300 * 100);
}

/* An instruction with more registers than the passes keep is refused, not cut. */
static void too_many_registers_are_refused(void **state)
{
    struct arena *a = arena_new();
    struct buf b = buf_init(1 << 16);
    struct translate_options opt = {.lanes = 8};
    struct error err = {0};
    struct text c;
    int instructions;
    const char *name = "k";
    (void)state;
    buf_puts(&b,
             ".visible .entry k() { .reg .b32 %r<200>;\nmma.sync.aligned.m16n8k16.row.col.f32.f16."
             "f16.f32 {%r0}");
    for (int list = 0; list < 2; list++) {
        for (int i = 0; i < 90; i++)
            buf_printf(&b, "%s%%r%d", i ? "," : ", {", list * 90 + i);
        buf_puts(&b, "}");
    }
    buf_puts(&b, "; }");
    assert_false(simt_translate(buf_copy(&b, a), &name, 1, &opt, a, &c, &instructions, &err));
    if (!strstr(err.text, "PTX line 2: an instruction with more than"))
        fail_msg("says '%s'", err.text);
    buf_release(&b);
    arena_free(a);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mutated_ptx_is_an_error_or_a_translation),
        cmocka_unit_test(nonsense_is_refused_with_a_reason),
        cmocka_unit_test(text_has_what_it_uses),
        cmocka_unit_test(many_pairs_of_halves_are_calls),
        cmocka_unit_test(too_many_registers_are_refused),
    };
    if (argc > 1) {
        int64_t until = clock_ms() + 1000 * strtol(argv[1], NULL, 10);
        int n = 0;
        if (argc > 2)
            return fuzz_run(until, (uint64_t)clock_us() | 1);
        for (uint64_t seed = (uint64_t)clock_us() | 1; clock_ms() < until; seed += 2)
            n += fuzz("bugs.ptx", 50, until, seed) + fuzz("parts.ptx", 50, until, seed) +
                 fuzz("reduce.ptx", 20, until, seed) + fuzz("tile.ptx", 20, until, seed) +
                 fuzz("intrinsics.ptx", 20, until, seed) + fuzz("gemm.ptx", 5, until, seed) +
                 fuzz("bugs_cute.ptx", 5, until, seed);
        printf("%d mutations\n", n);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
