/* test_answers.c - a process answers that it could not, whatever bytes its reason holds. */
#include "base/json.h"
#include "base/proc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { PATIENCE_MS = 1200000 };

/* NAME: a word of 4000 bytes and more, all of two bytes but the first `shift`. */
static const struct answer_case {
    const char *program;  /* of the environment */
    const char *argument; /* "" : none; %s: NAME */
    const char *request;  /* likewise */
    const char *says;
} cases[] = {
    {"RUNNER", "", "{\"do\":\"describe\",\"device\":\"%s\"}", "no device is called"},
    {"BUILDER", "/nowhere/%s.so", "", "/nowhere/"},
    {"BUILDER", "/nowhere/\xff\xfe.so", "", "/nowhere/"},
    {"PLANNER", "/nowhere/%s.so",
     "{\"inputs\":[],\"outputs\":[],\"scalars\":[],\"device\":{\"arch\":90,\"sm_count\":1,"
     "\"smem_block_bytes\":1,\"l2_bytes\":1}}",
     "/nowhere/"},
    {"PLANNER", "/nowhere/\xff\xfe.so",
     "{\"inputs\":[],\"outputs\":[],\"scalars\":[],\"device\":{\"arch\":90,\"sm_count\":1,"
     "\"smem_block_bytes\":1,\"l2_bytes\":1}}",
     "/nowhere/"},
};

static char *with_name(const char *format, int shift, struct arena *a)
{
    const char *at = strstr(format, "%s");
    char name[4200];

    if (!at)
        return arena_strdup(a, format);
    memset(name, 'x', (size_t)shift);
    for (size_t i = (size_t)shift; i + 1 < sizeof name; i += 2)
        memcpy(name + i, "\xc3\xa9", 2);
    name[4100 + shift] = '\0';
    return arena_printf(a, "%.*s%s%s", (int)(at - format), format, name, at + 2);
}

/* Cut at each of two neighbouring places, of which one is inside a character. */
static void check_case(const struct answer_case *c, int shift)
{
    struct arena *a = arena_new();
    const char *argument = with_name(c->argument, shift, a);
    const char *argv[] = {getenv(c->program), *argument ? argument : NULL, NULL};
    char *request = arena_printf(a, "%s\n", with_name(c->request, shift, a));
    struct error err = {0};
    struct proc_result r;
    json_t *answer;

    assert_non_null(argv[0]);
    if (!proc_run(&(struct proc_spec){.argv = argv,
                                      .input = text_of(request),
                                      .deadline_ms = PATIENCE_MS},
                  a, &r, &err))
        fail_msg("%s", err.text);
    if (!json_parse(r.out, "the answer", &answer, &err))
        fail_msg("%s, shift %d: %s, %s: %s", c->program, shift, err.text, proc_end_text(&r, a),
                 r.err.data);
    assert_false(json_bool_or(answer, "ok", true));
    if (!strstr(json_string_or(answer, "text", ""), c->says))
        fail_msg("%s: %s", c->program, json_string_or(answer, "text", ""));
    json_decref(answer);
    arena_free(a);
}

static void a_reason_of_any_bytes_is_answered(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (int shift = 0; shift < 2; shift++)
            check_case(&cases[i], shift);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_reason_of_any_bytes_is_answered)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
