/*
 * fuzz.c - libFuzzer targets for what reads text from outside; one is chosen by -DTARGET_...
 *
 *     clang -fsanitize=fuzzer,address,undefined -DTARGET_EDIT tests/llm/fuzz.c src/llm/...
 *
 * tests/llm/fuzz.sh builds and runs them all; the corpus is in tests/llm/corpus. A target checks
 * more than "no crash": what edit.h and fence.h promise must hold for any bytes.
 */
#include "base/json.h"
#include "base/text.h"
#include "llm/edit/edit.h"
#include "llm/edit/fence.h"
#include "llm/provider/provider.h"
#include "llm/provider/sse.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

#if defined(TARGET_EDIT)

/* Source and reply with a line "%%" between them. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *a = arena_new();
    const char *all = (const char *)data, *cut = size ? memmem(all, size, "\n%%\n", 4) : NULL;
    size_t n = cut ? (size_t)(cut + 1 - all) : 0, skip = cut ? n + 3 : 0;
    struct text source = arena_text(a, all, n), reply = arena_text(a, all + skip, size - skip);
    struct edit_result r;
    json_t *o;
    char *s;

    edit_apply(source, reply, a, &r);
    check(r.status == EDIT_APPLIED || text_equal(r.source, source));
    check(r.status != EDIT_APPLIED || !text_equal(r.source, source));
    check((r.status == EDIT_APPLIED) == !r.reason[0]);
    o = edit_json(&r);
    s = json_dumps(o, 0);
    check(s != NULL);
    free(s);
    json_decref(o);
    edit_numbered(source, a);
    arena_free(a);
    return 0;
}

#elif defined(TARGET_FENCE)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *a = arena_new();
    struct text reply = arena_text(a, (const char *)data, size), code = {0}, clean;
    struct fence_list list = fence_find(reply, a);
    const char *reason = NULL;

    for (size_t i = 0; i < list.count; i++) {
        check(list.items[i].begin <= list.items[i].end && list.items[i].end <= size);
        check(list.items[i].body.len <= size);
    }
    if (fence_code(reply, LANGUAGE_CUTE, a, &code, &reason))
        check(code.len <= size);
    else
        check(reason && reason[0]);
    fence_change(reply, a);
    clean = text_clean(reply, a);
    check(text_equal(text_clean(clean, a), clean)); /* what is clean stays */
    arena_free(a);
    return 0;
}

#elif defined(TARGET_STREAM)

static const struct dialect *dialect_of(uint8_t byte)
{
    static const struct provider *const all[] = {&openai_provider, &responses_provider,
                                                 &anthropic_provider};

    return all[byte % 3]->dialect;
}

struct sink {
    const struct dialect *dialect;
    struct answer *answer;
};

static void on_event(void *ctx, const char *event, struct text data)
{
    struct sink *s = ctx;
    json_t *v = json_loadb(data.data, data.len, 0, NULL);

    (void)event;
    if (v)
        s->dialect->event(s->answer, v);
    json_decref(v);
}

/* First byte: the dialect; second: the size of the pieces; the rest is the stream, and read as a
 * whole answer too. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct answer a = {.text = buf_init(1 << 16)}, b = {.text = buf_init(1 << 16)};
    struct sink sink;
    struct sse s;
    json_t *v;
    size_t step;

    if (size < 2)
        return 0;
    sink = (struct sink){dialect_of(data[0]), &a};
    step = 1 + data[1] % 64;
    s = sse_init(1 << 14, on_event, &sink);
    for (size_t at = 2; at < size; at += step)
        if (!sse_feed(&s, (const char *)data + at, size - at < step ? size - at : step))
            break;
    sse_release(&s);
    v = json_loadb((const char *)data + 2, size - 2, 0, NULL);
    if (json_is_object(v))
        sink.dialect->whole(&b, v);
    json_decref(v);
    check(memchr(a.problem, 0, sizeof(a.problem)) && memchr(a.model, 0, sizeof(a.model)) &&
          memchr(b.finish, 0, sizeof(b.finish)));
    buf_release(&a.text);
    buf_release(&b.text);
    return 0;
}

#else
#error "choose a target: TARGET_EDIT, TARGET_FENCE or TARGET_STREAM"
#endif
