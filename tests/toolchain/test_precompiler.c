/* test_precompiler.c - the child that precompiles: asked once it is ready, kept when it became
 * ready late. */
#include "base/text.h"
#include "toolchain/precompiler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char source[] = "#include <cute/tensor.hpp>\n__global__ void k() {}\n";

struct gate {
    int go[2];      /* a byte: learning may end */
    int learned[2]; /* a byte per learning */
};

/* In the child. */
static json_t *compile(void *ctx, const json_t *request, const struct prelude *prelude,
                       struct arena *a)
{
    struct gate *g = ctx;
    char word = 'x';

    (void)a;
    if (json_object_get(request, "source") == NULL) {
        if (read(g->go[0], &word, 1) != 1 || write(g->learned[1], &word, 1) != 1)
            return NULL;
    }
    return json_pack("{s:b, s:b, s:s}", "ok", 1, "compiled", 1, "header", prelude->header);
}

static bool ask(struct precompiler *p, const json_t *request, struct arena *a)
{
    json_t *answer = NULL;
    bool asked =
        precompiler_ask(p, request, text_of(source), text_of("{\"source\": \"s\"}\n"), a, &answer);

    json_decref(answer);
    return asked;
}

static void test_ready_between_question_and_answer(void **state)
{
    struct arena *a = arena_new();
    struct precompiler *p = precompiler_new(1);
    struct gate g;
    json_t *request = json_pack("{s:s, s:s, s:[s], s:[], s:[]}", "source", "s", "arch",
                                "compute_80", "names", "k", "includes", "defines");
    json_t *slow = json_pack("{s:b, s:i}", "compiled", 1, "ms", 1000);
    char words[8];

    (void)state;
    assert_int_equal(pipe(g.go) + pipe(g.learned), 0);
    assert_false(ask(p, request, a));
    precompiler_see(p, request, text_of(source), slow, compile, &g);
    assert_false(ask(p, request, a)); /* the child waits at the gate */
    assert_int_equal(write(g.go[1], "x", 1), 1);
    assert_int_equal(read(g.learned[0], words, 1), 1);
    sleep(1); /* time to say so; a slower machine takes the other path, which is right as well */
    precompiler_see(p, request, text_of(source), slow, compile, &g);
    /* Would another learning begin, it would wait at the gate for ever. */
    while (!ask(p, request, a))
        usleep(10000);
    precompiler_free(p);
    json_decref(slow);
    json_decref(request);
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ready_between_question_and_answer)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
