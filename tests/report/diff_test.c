/* diff_test.c - a diff rebuilds both texts, is shortest, and numbers its lines. */
#include "base/diff.h"
#include "base/text.h"

#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct diff_case {
    const char *name, *before, *after, *want;
} cases[] = {
    {"nothing from nothing", "", "", ""},
    {"the same text", "a\nb\n", "a\nb\n", "=a =b "},
    {"all new", "", "a\nb\n", "+a +b "},
    {"all gone", "a\nb\n", "", "-a -b "},
    {"one line changed", "a\nb\nc\n", "a\nB\nc\n", "=a -b +B =c "},
    {"a line put in", "a\nc\n", "a\nb\nc\n", "=a +b =c "},
    {"a line taken out", "a\nb\nc\n", "a\nc\n", "=a -b =c "},
    {"no newline at the end", "a\nb", "a\nc", "=a -b +c "},
    {"empty lines count", "\n\n", "\n", "= - "},
    {"the classic", "a\nb\nc\na\nb\nb\na\n", "c\nb\na\nb\na\nc\n", "-a -b =c +b =a =b -b =a +c "},
};

/* Checks the numbers on the way. */
static const char *spelled(const struct diff *d, struct arena *a)
{
    struct buf b = buf_init(1 << 20);
    int old_at = 0, new_at = 0;

    buf_puts(&b, "");
    for (size_t i = 0; i < d->count; i++) {
        const struct diff_line *l = &d->lines[i];
        assert_int_equal(l->old_at, l->kind == DIFF_NEW ? 0 : ++old_at);
        assert_int_equal(l->new_at, l->kind == DIFF_GONE ? 0 : ++new_at);
        buf_printf(&b, "%c%.*s ", "=-+"[l->kind], (int)l -> text.len, l->text.data);
    }
    const char *s = buf_copy(&b, a).data;
    buf_release(&b);
    return s;
}

static void each_case_gives_its_script(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct arena *a = arena_new();
        struct diff d = diff_make(text_of(cases[i].before), text_of(cases[i].after), a);
        const char *got = spelled(&d, a);
        if (strcmp(got, cases[i].want) != 0)
            fail_msg("%s: %s, not %s", cases[i].name, got, cases[i].want);
        arena_free(a);
    }
}

static const char *random_text(unsigned *seed, int lines, int letters, struct arena *a)
{
    char *s = arena_alloc(a, (size_t)lines * 2 + 1);
    for (int i = 0; i < lines; i++) {
        s[2 * i] = (char)('a' + (int)((unsigned)rand_r(seed) % (unsigned)letters));
        s[2 * i + 1] = '\n';
    }
    return s;
}

/* Longest common subsequence by the table, to compare with. */
static int common(const char *x, const char *y, struct arena *a)
{
    size_t n = strlen(x) / 2, m = strlen(y) / 2;
    int *row = arena_array(a, m + 1, sizeof(int));
    for (size_t i = 0; i < n; i++) {
        int corner = 0;
        for (size_t k = 0; k < m; k++) {
            int above = row[k + 1];
            row[k + 1] = x[2 * i] == y[2 * k] ? corner + 1 : above > row[k] ? above : row[k];
            corner = above;
        }
    }
    return row[m];
}

static void random_texts_come_back_and_no_script_is_shorter(void **state)
{
    unsigned seed = 7;

    (void)state;
    for (int round = 0; round < 3000; round++) {
        struct arena *a = arena_new();
        const char *x = random_text(&seed, (int)((unsigned)rand_r(&seed) % 30), 4, a);
        const char *y = random_text(&seed, (int)((unsigned)rand_r(&seed) % 30), 4, a);
        struct diff d = diff_make(text_of(x), text_of(y), a);
        char *old = arena_alloc(a, 128), *new = arena_alloc(a, 128);
        int same = 0;
        spelled(&d, a);
        for (size_t i = 0; i < d.count; i++) {
            const struct diff_line *l = &d.lines[i];
            if (l->kind != DIFF_NEW)
                memcpy(old + strlen(old), l->text.data, 2);
            if (l->kind != DIFF_GONE)
                memcpy(new + strlen(new), l->text.data, 2);
            same += l->kind == DIFF_SAME;
        }
        assert_string_equal(old, x);
        assert_string_equal(new, y);
        assert_int_equal(same, common(x, y, a));
        arena_free(a);
    }
}

static void texts_with_nothing_in_common_end_soon(void **state)
{
    struct arena *a = arena_new();
    struct buf x = buf_init(1 << 24), y = buf_init(1 << 24);

    (void)state;
    for (int i = 0; i < 30000; i++) {
        buf_printf(&x, "old %d\n", i);
        buf_printf(&y, "new %d\n", i);
    }
    struct diff d = diff_make(buf_text(&x), buf_text(&y), a);
    assert_int_equal(d.gone, 30000);
    assert_int_equal(d.added, 30000);
    buf_release(&x);
    buf_release(&y);
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_case_gives_its_script),
        cmocka_unit_test(random_texts_come_back_and_no_script_is_shorter),
        cmocka_unit_test(texts_with_nothing_in_common_end_soon),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
