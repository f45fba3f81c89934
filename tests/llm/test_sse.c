/* test_sse.c - the event stream: any pieces, any line ends, nothing lost, nothing too large. */
#include "llm/provider/sse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static void keep(void *ctx, const char *event, struct text data)
{
    buf_printf(ctx, "<%s|%.*s>", event, (int)data.len, data.data);
}

static const struct sse_case {
    const char *name, *stream, *want;
} cases[] = {
    {"one event", "data: a\n\n", "<|a>"},
    {"a name", "event: x\ndata: a\n\n", "<x|a>"},
    {"the name holds for one event", "event: x\ndata: a\n\ndata: b\n\n", "<x|a><|b>"},
    {"several data lines", "data: a\ndata: b\n\n", "<|a\nb>"},
    {"no blank after the colon", "data:a\n\n", "<|a>"},
    {"only one blank is taken off", "data:  a\n\n", "<| a>"},
    {"carriage returns", "data: a\r\n\r\ndata: b\r\r", "<|a><|b>"},
    {"comments and other fields", ": hi\nid: 3\nretry: 9\nnonsense\ndata: a\n\n", "<|a>"},
    {"an event without data is none", "event: x\n\ndata: a\n\n", "<|a>"},
    {"empty data is an event", "data:\n\n", "<|>"},
    {"a byte order mark",
     "\xef\xbb\xbf"
     "data: a\n\n",
     "<|a>"},
    {"what the end cuts off is not delivered", "data: a\n\ndata: b\n", "<|a>"},
    {"a field that only begins like data", "database: x\n\n", ""},
};

static void streams_read_the_same_in_pieces_of_any_size(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        for (size_t step = 1; step <= 16; step++) {
            struct buf got = buf_init(4096);
            struct sse s = sse_init(1000, keep, &got);
            size_t len = strlen(cases[i].stream);

            buf_puts(&got, "");
            for (size_t at = 0; at < len; at += step)
                assert_true(sse_feed(&s, cases[i].stream + at, len - at < step ? len - at : step));
            if (got.len != strlen(cases[i].want) ||
                (got.len && strcmp(got.data, cases[i].want) != 0))
                fail_msg("%s in pieces of %zu: %s", cases[i].name, step, got.data);
            sse_release(&s);
            buf_release(&got);
        }
    }
}

static void an_event_over_the_limit_is_refused(void **state)
{
    struct buf got = buf_init(4096);
    struct sse s = sse_init(100, keep, &got);
    bool ok = true;

    (void)state;
    for (int i = 0; i < 50 && ok; i++)
        ok = sse_feed(&s, "data: 0123456789\n", 17);
    assert_false(ok);
    assert_int_equal(got.len, 0);
    sse_release(&s);
    buf_release(&got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_read_the_same_in_pieces_of_any_size),
        cmocka_unit_test(an_event_over_the_limit_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
