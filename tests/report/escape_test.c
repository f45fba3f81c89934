/* escape_test.c - whatever the bytes, no markup, no control character, valid UTF-8. */
#include "report/escape.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#define BAD "\xef\xbf\xbd" /* U+FFFD */

static const struct escape_case {
    const char *name;
    struct text in;
    const char *html, *plain;
} cases[] = {
#define IN(s)                                                                                      \
    {                                                                                              \
        s, sizeof(s) - 1                                                                           \
    }
    {"plain text stays", IN("a b\tc\n"), "a b\tc\n", "a b\tc\n"},
    {"a script", IN("<script>alert(1)</script>"), "&lt;script&gt;alert(1)&lt;/script&gt;",
     "<script>alert(1)</script>"},
    {"both quotes", IN("\"' onload='x"), "&quot;&#39; onload=&#39;x", "\"' onload='x"},
    {"an entity is not taken for one", IN("&lt;"), "&amp;lt;", "&lt;"},
    {"NUL, escape, bell, delete", IN("\0\x1b[31m\a\x7f"),
     "\xe2\x90\x80\xe2\x90\x9b[31m\xe2\x90\x87\xe2\x90\xa1",
     "\xe2\x90\x80\xe2\x90\x9b[31m\xe2\x90\x87\xe2\x90\xa1"},
    {"C1 controls", IN("\xc2\x9b"), BAD, BAD},
    {"carriage return alone and before a newline", IN("a\rb\r\nc"),
     "a\xe2\x90\x8d"
     "b\nc",
     "a\xe2\x90\x8d"
     "b\nc"},
    {"UTF-8 stays", IN("\xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82"),
     "\xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82"},
    {"bytes that are no UTF-8", IN("\xff<\xc3"), BAD "&lt;" BAD, BAD "<" BAD},
    {"overlong and surrogate", IN("\xc0\xbc\xed\xa0\x80"), BAD BAD BAD BAD BAD,
     BAD BAD BAD BAD BAD},
    {"text that turns its direction",
     IN("a\xe2\x80\xae"
        "b"),
     "a[U+202E]b", "a[U+202E]b"},
    {"a byte order mark and a line separator", IN("\xef\xbb\xbf\xe2\x80\xa8"), "[U+FEFF][U+2028]",
     "[U+FEFF][U+2028]"},
    {"nothing", IN(""), "", ""},
};

static const char *result(void (*f)(struct buf *, struct text), struct text in, struct arena *a)
{
    struct buf b = buf_init(1 << 20);
    f(&b, in);
    const char *s = b.len ? buf_copy(&b, a).data : "";
    buf_release(&b);
    return s;
}

static void each_case_is_made_harmless(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct arena *a = arena_new();
        const char *html = result(html_add, cases[i].in, a);
        const char *text = result(plain_add, cases[i].in, a);
        if (strcmp(html, cases[i].html) || strcmp(text, cases[i].plain))
            fail_msg("%s: html \"%s\", plain \"%s\"", cases[i].name, html, text);
        arena_free(a);
    }
}

static void random_bytes_give_valid_utf8_without_markup(void **state)
{
    unsigned seed = 11;

    (void)state;
    for (int round = 0; round < 20000; round++) {
        struct arena *a = arena_new();
        char bytes[24];
        size_t len = (unsigned)rand_r(&seed) % sizeof(bytes);
        for (size_t i = 0; i < len; i++)
            bytes[i] = (char)rand_r(&seed);
        const char *html = result(html_add, (struct text){bytes, len}, a);
        json_t *v = json_string(html); /* jansson takes valid UTF-8 only */
        if (!v || strpbrk(html, "<>\"'\x1b\r\x7f"))
            fail_msg("round %d: \"%s\"", round, html);
        json_decref(v);
        arena_free(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_case_is_made_harmless),
        cmocka_unit_test(random_bytes_give_valid_utf8_without_markup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
