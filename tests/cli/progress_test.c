/* progress_test.c - a run as it is printed: one line per attempt, modelled times marked. */
#include "cli/cmd.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct task task = {.name = "softmax",
                           .class = CLASS_REDUCTION,
                           .class_evidence = "along dim 1",
                           .in = {{.dtype = "f32", .dims = 2, .shape = {64, 8192}}},
                           .in_count = 1};

/* One attempt of a made-up run. */
struct step {
    int depth, repair;
    const char *change;
    enum verdict_kind verdict;
    double time_us;
    bool late; /* its time comes with the depth and not with the attempt */
};

static void play(struct progress *p, const struct device *device, const struct step *steps,
                 int count)
{
    p->event(p, &(struct event){.kind = EVENT_TASK, .task = &task, .device = device, .text = "me"});
    for (int i = 0; i < count; i++) {
        const struct step *s = &steps[i];
        struct candidate c = {
            .depth = s->depth, .attempt = i + 1, .repair = s->repair, .change = s->change};
        struct verdict v = {.kind = s->verdict, .summary = "because"};
        struct measurement m = {
            .time_us = s->time_us, .floor_us = 1, .modelled = device->kind == DEVICE_SIMT};
        struct event ev = {.kind = EVENT_ATTEMPT,
                           .candidate = &c,
                           .verdict = &v,
                           .measurement = s->time_us > 0 && !s->late ? &m : NULL,
                           .build_ms = 400,
                           .device = device};

        p->event(p, &(struct event){.kind = EVENT_STAGE, .text = "build", .candidate = &c});
        p->event(p, &ev);
        if (s->verdict == VERDICT_PASS) {
            ev.kind = EVENT_DEPTH;
            ev.measurement = &m;
            p->event(p, &ev);
        }
    }
    p->event(p, &(struct event){.kind = EVENT_END, .text = "done"});
}

/* What is printed for these steps. */
static const char *printed(struct cli *cli, enum device_kind kind, const struct step *steps,
                           int count)
{
    struct device device = {.kind = kind, .name = "NVIDIA H200", .models = "H200"};
    static char out[8192];
    FILE *file = tmpfile();
    int saved = dup(STDOUT_FILENO);
    struct progress *p;
    size_t n;

    fflush(stdout);
    dup2(fileno(file), STDOUT_FILENO);
    p = progress_new(cli);
    play(p, &device, steps, count);
    progress_end(p);
    fflush(stdout);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    rewind(file);
    n = fread(out, 1, sizeof(out) - 1, file);
    out[n] = '\0';
    fclose(file);
    return out;
}

static const struct step steps[] = {
    {0, 0, "plain: one block per row", VERDICT_PASS, 4, false},
    {1, 0, "online max and sum", VERDICT_WRONG_VALUES, 0, false},
    {1, 1, "rescale the sum", VERDICT_PASS, 2, true},
};

static int count_of(const char *text, const char *what)
{
    int n = 0;

    for (const char *p = text; (p = strstr(p, what)); p += strlen(what))
        n++;
    return n;
}

static void an_attempt_has_one_line_and_a_repair_stands_under_its_step(void **state)
{
    struct cli cli = {.a = arena_new(), .utf8 = true};
    const char *out = printed(&cli, DEVICE_SIMT, steps, 3);

    (void)state;
    assert_int_equal(count_of(out, "plain: one block per row"), 1);
    assert_int_equal(count_of(out, "online max and sum"), 1);
    assert_int_equal(count_of(out, "└ repair 1: rescale the sum"), 1);
    assert_int_equal(count_of(out, "wrong values"), 1);
    assert_int_equal(count_of(out, "because"), 1);
    assert_non_null(strstr(out, "25 %"));
    assert_non_null(strstr(out, "50 %  ▁█"));
    assert_int_equal(count_of(out, "\033"), 0);
    arena_free(cli.a);
}

static void modelled_times_are_marked_and_explained(void **state)
{
    struct cli cli = {.a = arena_new()};
    const char *out = printed(&cli, DEVICE_SIMT, steps, 3);

    (void)state;
    assert_non_null(strstr(out, "time*  roofline*"));
    assert_non_null(strstr(out, "* modelled for H200"));
    assert_null(strstr(out, "▁")); /* no UTF-8, no sparkline */
    arena_free(cli.a);
}

static void measured_times_carry_no_mark(void **state)
{
    struct cli cli = {.a = arena_new()};
    const char *out = printed(&cli, DEVICE_CUDA, steps, 3);

    (void)state;
    assert_null(strchr(out, '*'));
    assert_non_null(strstr(out, "4.00 us"));
    arena_free(cli.a);
}

static void quiet_prints_nothing_and_json_one_object_per_line(void **state)
{
    struct cli quiet = {.a = arena_new(), .quiet = true};
    struct cli json = {.a = arena_new(), .json = true};
    char *out, *line;
    int lines = 0;

    (void)state;
    assert_string_equal(printed(&quiet, DEVICE_SIMT, steps, 3), "");
    out = arena_strdup(json.a, printed(&json, DEVICE_SIMT, steps, 3));
    while ((line = strsep(&out, "\n")) && *line) {
        json_t *v = json_loads(line, 0, NULL);

        assert_true(json_is_object(v));
        assert_true(json_is_string(json_object_get(v, "event")));
        json_decref(v);
        lines++;
    }
    assert_int_equal(lines, 1 + 3 + 3 + 2 + 1);
    arena_free(quiet.a);
    arena_free(json.a);
}

static void times_are_shown_in_their_own_unit(void **state)
{
    static const struct {
        double us;
        const char *text;
    } cases[] = {{0, "-"},           {0.934, "0.93 us"},  {12.34, "12.3 us"}, {611, "611 us"},
                 {4567, "4.567 ms"}, {45678, "45.68 ms"}, {2e6, "2.00 s"}};
    struct arena *a = arena_new();

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_string_equal(show_us(cases[i].us, a), cases[i].text);
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_attempt_has_one_line_and_a_repair_stands_under_its_step),
        cmocka_unit_test(modelled_times_are_marked_and_explained),
        cmocka_unit_test(measured_times_carry_no_mark),
        cmocka_unit_test(quiet_prints_nothing_and_json_one_object_per_line),
        cmocka_unit_test(times_are_shown_in_their_own_unit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
