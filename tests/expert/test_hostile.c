/*
 * test_hostile.c - a description is text from a process that runs a task's code: whatever it says,
 * the built-in engineer answers or gives its reason.
 *
 * bodies.json, of an oracle, with one or a few of its values replaced by others, thousands of
 * times, by a generator of its own: the same on every machine.
 */
#include "base/error.h"
#include "base/fs.h"
#include "base/json.h"
#include "expert/expert.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROUNDS = 1500 };

/* What may come in the place of anything. */
static const char *const values[] = {
    "null",
    "true",
    "-1",
    "0",
    "3",
    "2147483648",
    "9223372036854775807",
    "-9223372036854775808",
    "1e308",
    "\"nan\"",
    "\"\"",
    "\"\\\"); asm(\\\"planted\\\");//\\n#include \\\"/etc/passwd\\\"\"",
    "[]",
    "{}",
    "[[[[]]]]",
    "{\"node\": 4}",
    "{\"node\": -1}",
    "{\"node\": 999999999, \"part\": -5}",
    "{\"value\": \"inf\"}",
    "{\"ints\": [-1, 0, 4611686018427387904]}",
    "[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]",
    "[4611686018427387904, 4]",
    "\"aten.add.Tensor\"",
    "\"output\"",
    "\"input\"",
};

struct dice {
    uint64_t state;
};

static size_t roll(struct dice *d, size_t sides)
{
    d->state = d->state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(d->state >> 33) % sides;
}

static size_t count(json_t *v)
{
    size_t n = 1, i;
    const char *key;
    json_t *inner;

    if (json_is_array(v))
        json_array_foreach(v, i, inner) n += count(inner);
    else if (json_is_object(v))
        json_object_foreach(v, key, inner) n += count(inner);
    return n;
}

/* Replaces the `at`-th value below v, counted down to 0; true once it is done. */
static bool replace(json_t *v, size_t *at, json_t *by)
{
    size_t i;
    const char *key;
    json_t *inner;

    if (json_is_array(v))
        json_array_foreach(v, i, inner)
        {
            if ((*at)-- == 0)
                return json_array_set(v, i, by) == 0;
            if (replace(inner, at, by))
                return true;
        }
    else if (json_is_object(v))
        json_object_foreach(v, key, inner)
        {
            if ((*at)-- == 0)
                return json_object_set(v, key, by) == 0;
            if (replace(inner, at, by))
                return true;
        }
    return false;
}

static json_t *hostile(const json_t *good, struct dice *d)
{
    json_t *bad = json_deep_copy(good);

    for (size_t times = 1 + roll(d, 3); times > 0; times--) {
        size_t at = roll(d, count(json_object_get(bad, "graph")));
        json_t *by = json_loads(values[roll(d, ARRAY_LEN(values))], JSON_DECODE_ANY, NULL);

        assert_non_null(by);
        replace(json_object_get(bad, "graph"), &at, by);
        json_decref(by);
    }
    return bad;
}

static void a_hostile_description_gets_an_answer_or_a_reason(void **state)
{
    static const char *const archs[] = {"compute_80", "sm_90a"};
    struct arena *kept = arena_new();
    struct error err = {0};
    struct text text;
    json_t *good;
    struct dice d = {1};
    int answered = 0;

    (void)state;
    assert_true(file_read(getenv("BODIES"), 1 << 20, kept, &text, &err));
    assert_true(json_parse(text, "bodies.json", &good, &err));
    for (int round = 0; round < ROUNDS; round++) {
        struct arena *a = arena_new();
        struct task task = {.name = "t"};
        struct device device = {.sm_count = 132,
                                .arch = archs[round % 2],
                                .kind = round % 2 ? DEVICE_CUDA : DEVICE_SIMT};
        struct request req = {.stage = STAGE_SYNTHESIZE, .task = &task, .device = &device};
        struct reply reply = {0};

        task.description = round == 0 ? json_deep_copy(good) : hostile(good, &d);
        err = (struct error){0};
        if (expert_ask(&req, a, &reply, &err)) {
            assert_null(memmem(reply.text.data, reply.text.len, "asm(\"planted", 12));
            assert_null(memmem(reply.text.data, reply.text.len, "\n#include \"/etc", 15));
            answered++;
        } else {
            assert_true(err.text[0] != '\0');
        }
        json_decref(task.description);
        arena_free(a);
    }
    assert_true(answered > 0);
    json_decref(good);
    arena_free(kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hostile_description_gets_an_answer_or_a_reason),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
