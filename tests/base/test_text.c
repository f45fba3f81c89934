/* test_text.c - lines, white space, UTF-8 and base64 of bytes that may be anything. */
#include "base/base64.h"
#include "base/buf.h"
#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#define BAD "\xef\xbf\xbd"

static void a_text_is_its_lines(void **state)
{
    static const struct {
        const char *text, *lines;
    } cases[] = {{"", ""},           {"a", "<a>"},
                 {"a\n", "<a>"},     {"\n", "<>"},
                 {"a\nb", "<a><b>"}, {"\n\na\n\n", "<><><a><>"},
                 {"a\r\n", "<a\r>"}, {"long line\nx", "<long line><x>"}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf b = buf_init(1000);
        struct text rest = text_of(cases[i].text);

        for (struct text line; text_next_line(&rest, &line);)
            buf_printf(&b, "<%.*s>", (int)line.len, line.data);
        assert_string_equal(b.data ? b.data : "", cases[i].lines);
        buf_release(&b);
    }
}

/* Every other reader of lines gives what text_next_line() gives. */
static void lines_by_number_place_and_list_agree(void **state)
{
    static const char *const texts[] = {"", "a", "a\n", "\n", "a\nb", "\n\na\n\n", "ab\r\nc\n"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct arena *a = arena_new();
        struct text all = text_of(texts[i]), rest = all, whole = all, line, with_end;
        size_t count, n = 0;
        struct text *lines = text_lines(all, a, &count);

        assert_int_equal(text_line_count(all), count);
        for (; text_next_line(&rest, &line); n++) {
            size_t at = (size_t)(line.data - all.data);

            assert_true(n < count && text_equal(lines[n], line));
            assert_true(text_equal(text_line(all, (int)n + 1), line));
            assert_true(text_equal(text_line_around(all, at), line));
            assert_true(text_equal(text_line_around(all, at + line.len), line));
            assert_true(text_next_whole_line(&whole, &with_end));
            assert_ptr_equal(with_end.data, line.data);
            assert_int_equal(with_end.len, rest.data - line.data);
        }
        assert_int_equal(n, count);
        assert_false(text_next_whole_line(&whole, &with_end));
        assert_int_equal(text_line(all, (int)count + 1).len, 0);
        assert_int_equal(text_line(all, 0).len, 0);
        arena_free(a);
    }
}

static void white_space_goes_from_both_ends_only(void **state)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"", ""}, {" \t\r\n\v\f", ""}, {" a b ", "a b"}, {"a", "a"}, {"\n\xc2\xa0\n", "\xc2\xa0"}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_true(text_equal(text_trim(text_of(cases[i].text)), text_of(cases[i].want)));
}

static void every_bad_byte_becomes_one_sign(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        const char *want;
    } cases[] = {
        {"", 0, ""},
        {"plain ASCII of some length", 26, "plain ASCII of some length"},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"a\0b", 3, "a" BAD "b"},
        {"12345678\0x", 10, "12345678" BAD "x"},
        {"\xc3", 1, BAD},
        {"\xe2\x82", 2, BAD BAD},
        {"\xc0\x80", 2, BAD BAD},                 /* NUL, too long */
        {"\xe0\x80\xaf", 3, BAD BAD BAD},         /* '/', too long */
        {"\xed\xa0\x80", 3, BAD BAD BAD},         /* a surrogate */
        {"\xf4\x90\x80\x80", 4, BAD BAD BAD BAD}, /* past the last */
        {"\xff\xfe", 2, BAD BAD},
        {"\x80x", 2, BAD "x"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct arena *a = arena_new();
        struct text in = {cases[i].bytes, cases[i].len}, out = text_clean(in, a);

        if (!text_equal(out, text_of(cases[i].want)))
            fail_msg("case %zu", i);
        assert_true(text_equal(text_clean(out, a), out));
        arena_free(a);
    }
}

static void a_cut_leaves_no_half_character(void **state)
{
    static const char all[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z";
    static const size_t want[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11};

    (void)state;
    for (size_t most = 0; most < ARRAY_LEN(want); most++)
        assert_int_equal(text_cut(text_of(all), most).len, want[most]);
    assert_int_equal(text_cut(text_of("x\xe2\x82"), 100).len, 1); /* cut by somebody else */
    assert_int_equal(text_cut(text_of("\x80\x80\x80\x80\x80"), 5).len, 5); /* not ours to judge */
}

static void format(char *out, size_t size, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    text_format(out, size, fmt, ap);
    va_end(ap);
}

static void what_is_formatted_fits_and_is_whole(void **state)
{
    char out[6];

    (void)state;
    format(out, sizeof(out), "%s", "abcde");
    assert_string_equal(out, "abcde");
    format(out, sizeof(out), "%s", "abc\xe2\x82\xac");
    assert_string_equal(out, "abc");
    format(out, sizeof(out), "%s",
           "abc\xc3\xa9"
           "d");
    assert_string_equal(out, "abc\xc3\xa9");
}

/* The vectors of RFC 4648, and the two letters that differ. */
static void base64_gives_the_published_text(void **state)
{
    static const struct {
        const char *bytes, *last_two, *want;
    } cases[] = {{"", "+/", ""},
                 {"f", "+/", "Zg=="},
                 {"fo", "+/", "Zm8="},
                 {"foo", "+/", "Zm9v"},
                 {"foob", "+/", "Zm9vYg=="},
                 {"fooba", "+/", "Zm9vYmE="},
                 {"foobar", "+/", "Zm9vYmFy"},
                 {"\xfb\xff\xbf", "+/", "+/+/"},
                 {"\xfb\xff\xbf", "-_", "-_-_"}};
    char out[BASE64_ROOM(6)];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        size_t n = base64_encode(cases[i].bytes, strlen(cases[i].bytes), cases[i].last_two, out);

        assert_string_equal(out, cases[i].want);
        assert_int_equal(n, strlen(out));
    }
}

static void base64_comes_back_or_is_refused(void **state)
{
    static const char *const good[] = {"", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "+/+/"};
    static const char *const bad[] = {"Z",         "Zg=",  "Zg",   "Z===",     "====", "Zg==Zg==",
                                      "Zm9v\nZm9", "-_-_", "Zm 9", "Zm9vY=Vy", "=Zm9"};
    unsigned char bytes[BASE64_BYTES(8)];
    char again[BASE64_ROOM(sizeof bytes)];
    size_t n;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        assert_true(base64_decode(good[i], strlen(good[i]), bytes, &n));
        base64_encode(bytes, n, "+/", again);
        assert_string_equal(again, good[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_false(base64_decode(bad[i], strlen(bad[i]), bytes, &n));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_is_its_lines),
        cmocka_unit_test(lines_by_number_place_and_list_agree),
        cmocka_unit_test(white_space_goes_from_both_ends_only),
        cmocka_unit_test(every_bad_byte_becomes_one_sign),
        cmocka_unit_test(a_cut_leaves_no_half_character),
        cmocka_unit_test(what_is_formatted_fits_and_is_whole),
        cmocka_unit_test(base64_gives_the_published_text),
        cmocka_unit_test(base64_comes_back_or_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
