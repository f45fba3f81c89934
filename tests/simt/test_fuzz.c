/*
 * test_fuzz.c - PTX cut short or changed at random is an error or a
 * translation, never a crash, and errors name a line.
 *
 *   test_fuzz [SECONDS]    longer runs than the test suite's
 */
#include "support.h"

#include "base/clock.h"

#include <stdio.h>

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
    struct simt_options opt = {.lanes = 8};
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

static void mutated_ptx_is_an_error_or_a_translation(void **state)
{
    (void)state;
    fuzz("bugs.ptx", 60, 0, 12345);
    fuzz("parts.ptx", 60, 0, 54321);
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
        {".func f() { call f, (); ret; } .visible .entry k() { call f, (); }", "recursion"},
        {".visible .entry k() { .reg .b32 %r<4>; tcgen05.mma.b32 %r1, %r2; }", "tcgen05"},
        {".visible .entry k() { .shared .b8 s[99999999999999]; ret; }", "number in range"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct error err = {0};
        struct arena *a = arena_new();
        struct simt_options opt = {.lanes = 8};
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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mutated_ptx_is_an_error_or_a_translation),
        cmocka_unit_test(nonsense_is_refused_with_a_reason),
    };
    if (argc > 1) {
        int64_t until = clock_ms() + 1000 * strtol(argv[1], NULL, 10);
        int n = 0;
        for (uint64_t seed = (uint64_t)clock_us() | 1; clock_ms() < until; seed += 2)
            n += fuzz("bugs.ptx", 50, until, seed) + fuzz("parts.ptx", 50, until, seed);
        printf("%d mutations\n", n);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
