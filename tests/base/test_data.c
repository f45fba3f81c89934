/* test_data.c - errors, arenas, buffers, hashes, JSON: small things everything rests on. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

static void the_first_cause_wins_and_context_goes_in_front(void **state)
{
    struct error err = {0};

    (void)state;
    assert_false(error_set(&err, ERROR_MACHINE, "disk %d is full", 3));
    assert_false(error_set(&err, ERROR_USE, "something later"));
    assert_false(error_add(&err, "writing %s", "x"));
    assert_string_equal(err.text, "writing x: disk 3 is full");
    assert_int_equal(error_exit_code(&err), 3);
    error_hint(&err, "first");
    error_hint(&err, "second");
    assert_string_equal(err.hint, "first");
}

static void every_kind_of_error_has_its_own_name(void **state)
{
    (void)state;
    assert_string_equal(error_kind_name(ERROR_JUDGED), "judged");
    assert_string_equal(error_kind_name(ERROR_USE), "use");
    assert_string_equal(error_kind_name(ERROR_MACHINE), "machine");
    assert_string_equal(error_kind_name(ERROR_BUSY), "busy");
    assert_string_equal(error_kind_name(ERROR_BUDGET), "budget");
    assert_string_equal(error_kind_name(ERROR_INTERRUPTED), "interrupted");
    assert_string_equal(error_kind_name(ERROR_MEMORY), "memory");
}

static void context_without_end_keeps_the_text_bounded(void **state)
{
    struct error err = {0};
    char long_text[4096];

    (void)state;
    memset(long_text, 'x', sizeof(long_text) - 1);
    long_text[sizeof(long_text) - 1] = '\0';
    error_set(&err, ERROR_MACHINE, "%s", long_text);
    for (int i = 0; i < 50; i++)
        error_add(&err, "level %d %s", i, long_text);
    assert_true(strlen(err.text) < sizeof(err.text));
    assert_non_null(strstr(err.text, "level 49"));
}

static void control_characters_are_shown_and_not_sent(void **state)
{
    static const struct {
        const char *given, *want;
    } cases[] = {
        {"plain\ttext\n", "plain\ttext\n"},
        {"\033[2Jcleared\a\r", "\\x1b[2Jcleared\\x07\\x0d"},
        {"\177 \302\233 31m", "\\x7f \\xc2\\x9b 31m"},
        {"\342\200\256 turned \342\201\246", "\\xe2\\x80\\xae turned \\xe2\\x81\\xa6"},
        {"\303\274 \342\202\254 \360\237\230\200", "\303\274 \342\202\254 \360\237\230\200"},
        {"\377 \302", "\\xff \\xc2"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf b = buf_init(1000);

        buf_put_visible(&b, cases[i].given, strlen(cases[i].given));
        assert_string_equal(b.data, cases[i].want);
        buf_release(&b);
    }
}

/* Of two texts that differ by one byte, one is cut inside a character. */
static void an_error_is_cut_between_characters(void **state)
{
    char accents[4096];

    (void)state;
    for (int shift = 0; shift < 2; shift++) {
        struct error err = {0};
        json_t *v;

        memset(accents, 'x', 2);
        for (size_t i = (size_t)shift; i + 1 < sizeof(accents); i += 2)
            memcpy(accents + i, "\xc3\xa9", 2);
        accents[sizeof(accents) - 2 + (size_t)shift] = '\0';
        error_set(&err, ERROR_USE, "%s", accents);
        error_hint(&err, "%s", accents);
        v = json_string(err.text);
        assert_non_null(v);
        json_decref(v);
        error_add(&err, "%s", accents);
        v = json_pack("[s, s]", err.text, err.hint);
        assert_non_null(v);
        json_decref(v);
    }
}

static void any_bytes_become_a_json_string(void **state)
{
    struct error err = {.kind = ERROR_USE, .text = "path \xff", .hint = "\xc3"};
    json_t *v = json_from_text((struct text){"a\xff\0b\xc3\xa9", 6});

    (void)state;
    assert_string_equal(json_string_value(v), "a\xef\xbf\xbd\xef\xbf\xbd"
                                              "b\xc3\xa9");
    json_decref(v);
    assert_true(json_is_null(json_from_string(NULL)));
    v = json_error(&err);
    assert_string_equal(json_string_or(v, "text", ""), "path \xef\xbf\xbd");
    assert_string_equal(json_string_or(v, "kind", ""), "use");
    json_decref(v);
}

static void arena_memory_is_zeroed_aligned_and_kept(void **state)
{
    struct arena *a = arena_new();
    char *kept[300];

    (void)state;
    for (int i = 0; i < 300; i++) {
        size_t size = (size_t)(i * 97 % 9000 + 1);
        char *p = arena_alloc(a, size);

        assert_int_equal((uintptr_t)p % 16, 0);
        for (size_t j = 0; j < size; j++)
            assert_int_equal(p[j], 0);
        memset(p, i % 120 + 1, size);
        kept[i] = p;
    }
    for (int i = 0; i < 300; i++)
        for (size_t j = 0; j < (size_t)(i * 97 % 9000 + 1); j++)
            assert_int_equal(kept[i][j], i % 120 + 1);
    assert_string_equal(arena_printf(a, "%s-%05d", "a", 42), "a-00042");
    arena_free(a);
}

static void a_buffer_stops_at_its_limit_and_says_so(void **state)
{
    struct buf b = buf_init(10);

    (void)state;
    assert_string_equal(buf_text(&b).data, "");
    buf_puts(&b, "12345");
    assert_false(b.overflowed);
    buf_printf(&b, "%s", "6789012345");
    assert_true(b.overflowed);
    assert_string_equal(b.data, "1234567890");
    buf_clear(&b);
    buf_putc(&b, 'x');
    assert_string_equal(b.data, "x");
    assert_false(b.overflowed);
    buf_release(&b);
}

static void sha256_gives_the_published_digests(void **state)
{
    static const struct {
        const char *text, *hex;
    } cases[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    char hex[65];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        hash_text(text_of(cases[i].text), hex);
        assert_string_equal(hex, cases[i].hex);
    }
    struct hash h = hash_init();
    for (int i = 0; i < 1000000; i++)
        hash_add(&h, "a", 1);
    hash_hex(&h, hex);
    assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    /* The same at once: many blocks may go another way than single ones. */
    char *many = xmalloc(1000000);
    memset(many, 'a', 1000000);
    hash_text((struct text){many, 1000000}, hex);
    assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    xfree(many);
}

static void many_blocks_and_single_ones_give_one_hash(void **state)
{
    unsigned char *data = xmalloc(100000);
    char one[65], two[65];

    (void)state;
    for (size_t i = 0; i < 100000; i++)
        data[i] = (unsigned char)(i * i >> 7);
    for (size_t len = 16000; len < 100000; len += 7777) {
        struct hash whole = hash_init(), pieces = hash_init();
        hash_add(&whole, data + 1, len);
        for (size_t at = 0; at < len; at += 100)
            hash_add(&pieces, data + 1 + at, len - at < 100 ? len - at : 100);
        hash_hex(&whole, one);
        hash_hex(&pieces, two);
        assert_string_equal(one, two);
    }
    xfree(data);
}

static void mapped_pages_are_zeroed_and_take_no_memory_at_first(void **state)
{
    size_t size = (size_t)1 << 28;
    char *p = xmap(size);

    (void)state;
    assert_int_equal(p[0] | p[size / 2] | p[size - 1], 0);
    p[size - 1] = 1;
    xunmap(p, size);
    xunmap(NULL, 0);
}

static void the_parts_of_a_hash_cannot_be_shifted(void **state)
{
    struct hash one = hash_init(), two = hash_init();
    char a[65], b[65];

    (void)state;
    hash_add_text(&one, text_of("ab"));
    hash_add_text(&one, text_of("c"));
    hash_add_text(&two, text_of("a"));
    hash_add_text(&two, text_of("bc"));
    hash_hex(&one, a);
    hash_hex(&two, b);
    assert_string_not_equal(a, b);
}

static void json_members_are_typed_and_missing_ones_named(void **state)
{
    struct arena *a = arena_new();
    struct error err = {0};
    const char *s;
    int64_t n;
    double d;
    json_t *j;

    (void)state;
    assert_true(
        json_parse(text_of("{\"s\":\"x\",\"n\":7,\"d\":\"nan\",\"i\":\"-inf\"}"), "it", &j, &err));
    assert_true(json_get_string(j, "s", &s, &err) && strcmp(s, "x") == 0);
    assert_true(json_get_int(j, "n", &n, &err) && n == 7);
    assert_true(json_get_double(j, "d", &d, &err) && isnan(d));
    assert_true(json_get_double(j, "i", &d, &err) && d == -INFINITY);
    assert_int_equal(json_int_or(j, "absent", 5), 5);
    assert_false(json_get_int(j, "s", &n, &err));
    assert_non_null(strstr(err.text, "'s'"));
    json_decref(j);
    err = (struct error){0};
    assert_false(json_parse(text_of("{\"a\":1,\"a\":2}"), "it", &j, &err));
    err = (struct error){0};
    assert_false(json_parse(text_of("nonsense"), "the answer", &j, &err));
    assert_non_null(strstr(err.text, "the answer is not JSON"));
    j = json_object();
    json_object_set_new(j, "v", json_number(NAN));
    assert_string_equal(json_line(j, a), "{\"v\":\"nan\"}");
    json_decref(j);
    arena_free(a);
}

static void times_are_written_in_one_form(void **state)
{
    char stamp[25];

    (void)state;
    clock_stamp(1700000000123, stamp);
    assert_string_equal(stamp, "2023-11-14T22:13:20.123Z");
    assert_true(clock_us() <= clock_us());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_cause_wins_and_context_goes_in_front),
        cmocka_unit_test(every_kind_of_error_has_its_own_name),
        cmocka_unit_test(context_without_end_keeps_the_text_bounded),
        cmocka_unit_test(control_characters_are_shown_and_not_sent),
        cmocka_unit_test(an_error_is_cut_between_characters),
        cmocka_unit_test(any_bytes_become_a_json_string),
        cmocka_unit_test(arena_memory_is_zeroed_aligned_and_kept),
        cmocka_unit_test(a_buffer_stops_at_its_limit_and_says_so),
        cmocka_unit_test(sha256_gives_the_published_digests),
        cmocka_unit_test(many_blocks_and_single_ones_give_one_hash),
        cmocka_unit_test(mapped_pages_are_zeroed_and_take_no_memory_at_first),
        cmocka_unit_test(the_parts_of_a_hash_cannot_be_shifted),
        cmocka_unit_test(json_members_are_typed_and_missing_ones_named),
        cmocka_unit_test(times_are_written_in_one_form),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
