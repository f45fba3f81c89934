/*
 * page_test.c - the page, the text and the JSON show what the store holds, and only that.
 *
 * The hostile run has an attack in every string that a task, a model or a
 * compiler can write.
 */
#include "sample.h"

#include "base/clock.h"
#include "base/fs.h"
#include "base/hash.h"
#include "report/report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct place {
    struct arena *a;
    char *dir;
    struct store *s;
    const char *ids[SAMPLE_COUNT];
    struct run_history h[SAMPLE_COUNT];
};

#define assert_ok(call)                                                                            \
    do {                                                                                           \
        if (!(call))                                                                               \
            fail_msg("%s: %s (%s)", #call, err.text, err.hint);                                    \
    } while (0)

static int set_up(void **state)
{
    struct place *p = xmalloc(sizeof(*p));
    struct error err = {0};

    p->a = arena_new();
    assert_ok(dir_temp("cutegen-report", p->a, &p->dir, &err));
    assert_ok(sample_fill(p->dir, p->a, p->ids, &err));
    assert_ok(store_open(p->dir, NULL, STORE_WRITE, &p->s, &err));
    for (int i = 0; i < SAMPLE_COUNT; i++)
        assert_ok(store_run_history(p->s, p->ids[i], p->a, &p->h[i], &err));
    *state = p;
    return 0;
}

static int tear_down(void **state)
{
    struct place *p = *state;
    struct error err = {0};

    for (int i = 0; i < SAMPLE_COUNT; i++)
        run_history_release(&p->h[i]);
    store_close(p->s);
    assert_ok(dir_remove(p->dir, &err));
    arena_free(p->a);
    xfree(p);
    return 0;
}

static const char *page_of(struct place *p, const struct run_history *h, size_t n)
{
    struct buf b = buf_init(64 << 20);
    report_html(h, n, &b);
    assert_false(b.overflowed);
    const char *s = buf_copy(&b, p->a).data;
    buf_release(&b);
    return s;
}

static int times_in(const char *s, const char *what)
{
    int n = 0;
    for (s = strstr(s, what); s; s = strstr(s + 1, what))
        n++;
    return n;
}

static void assert_has(const char *page, const char *const *wanted, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!strstr(page, wanted[i]))
            fail_msg("missing: %s", wanted[i]);
}

/* ---- what is there ---------------------------------------------------------- */

static void a_measured_run_says_its_result_and_its_evidence(void **state)
{
    struct place *p = *state;
    const char *page = page_of(p, &p->h[SAMPLE_GEMM], 1);
    static const char *const wanted[] = {
        "4.42<small>\xc3\x97</small>",
        "faster than PyTorch eager",
        "<section id=\"timeline\">",
        "title=\"attempt 1, depth 0",
        "runs in 611 \xc2\xb5s on NVIDIA H200",
        "85&#8239;% of the roofline",
        "It took 10 depths and 13 attempts",
        "class=\"fail c0\"",
        "profile from here",
        "shared-memory race",
        "kernel.cu:44",
        "Change against attempt 3",
        "class=\"d new\"",
        "class=\"d gone\"",
        "The same 125 bytes as in <a href=\"#call-1\">",
        "stall long scoreboard",
        "142\xe2\x80\xaf\x38\x38\x30",
        "cutegen run /tasks/square_matmul.py --model anthropic:large-1",
        "<dt>torch</dt><dd>2.9.1</dd>",
        "81c3f0aa",
        "max relative 6.0e-8 (reference 3.8e-7)",
    };

    assert_has(page, wanted, ARRAY_LEN(wanted));
    assert_int_equal(times_in(page, "<details class=\"row"), 13);
    assert_int_equal(times_in(page, "<circle class=\"fail c0\" cx"), 5 + 1); /* and the legend */
    assert_null(strstr(page, "class=\"mod\""));
}

static void a_modelled_run_says_so_at_every_figure(void **state)
{
    struct place *p = *state;
    const char *page = page_of(p, &p->h[SAMPLE_SWISH], 1);
    static const char *const wanted[] = {
        "is modelled at 0.93 \xc2\xb5s on H200",
        "faster than the first correct kernel, <span class=\"mod\">modelled</span>",
        "Time, modelled",
        "Of the roofline, modelled",
        "both modelled",
        "modelled for H200 from what simt counted",
        "scaled: N 2048 -&gt; 256",
    };
    static const char *const times[] = {"3.91", "2.20", "1.31", "0.93"};

    assert_has(page, wanted, ARRAY_LEN(wanted));
    for (size_t i = 0; i < ARRAY_LEN(times); i++)
        if (!strstr(page, arena_printf(p->a,
                                       "class=\"num time\">%s \xc2\xb5s<abbr class=\"mod\" "
                                       "title=\"modelled, not measured\">*</abbr>",
                                       times[i])))
            fail_msg("%s us stands without its mark", times[i]);
}

static void times_for_a_gpu_that_was_never_measured_say_so(void **state)
{
    struct place *p = *state;
    struct run_history h[2] = {p->h[SAMPLE_SWISH], p->h[SAMPLE_NONE]};
    struct live_queue queue = {.runs = 1};
    struct run_info run = {
        .id = "r", .task = "t", .best_us = 1, .modelled = true, .unvalidated = true};
    struct buf b = buf_init(1 << 20);
    static const char *const suite[] = {"<span class=\"mod\">modelled, unvalidated</span>",
                                        "</span> modelled, unvalidated, not measured"};
    static const char *const live[] = {"modelled, unvalidated for all but the H200, not measured"};

    h[0].device.models = "B200";
    assert_has(page_of(p, h, 2), suite, ARRAY_LEN(suite));
    report_live_overview(&queue, &run, 1, NULL, 0, &b);
    assert_has(buf_copy(&b, p->a).data, live, ARRAY_LEN(live));
    buf_release(&b);
}

static void a_run_without_a_kernel_says_that_first(void **state)
{
    struct place *p = *state;
    const char *page = page_of(p, &p->h[SAMPLE_NONE], 1);
    static const char *const wanted[] = {
        "no kernel",
        "has no correct kernel after 3 attempts",
        "The run failed: no correct kernel after 2 repairs",
        "the reply held no fenced block",
    };

    assert_has(page, wanted, ARRAY_LEN(wanted));
    assert_null(strstr(page, "id=\"trajectory\""));
    assert_null(strstr(page, "id=\"kernel\""));
}

static void runs_of_one_task_are_overlaid_and_of_several_listed(void **state)
{
    struct place *p = *state;
    const char *both = page_of(p, &p->h[SAMPLE_GEMM], 2);
    const char *suite = page_of(p, p->h, SAMPLE_COUNT);
    static const char *const listed[] = {
        "3.58<small>",
        "2 of 3</strong> tasks on a GPU",
        "1 more on simt",
        "class=\"spark\"",
        "<span class=\"verdict bad\">not written</span>",
    };

    assert_non_null(strstr(both, "<path class=\"run c1\""));
    assert_non_null(strstr(both, p->ids[SAMPLE_GEMM_2]));
    assert_has(suite, listed, ARRAY_LEN(listed));
}

static void a_suite_counts_every_task_in_page_text_csv_and_json(void **state)
{
    static const char *const in_text[] = {"correct   2 of 4 tasks (50 %)",
                                          "fast_p    0.8: 50 %",
                                          "does not load",
                                          "no run",
                                          "PyTorch eager (strict) ",
                                          "compile  ",
                                          "TF32-class ",
                                          "gemm  ",
                                          "retried   3 times",
                                          "per task  "};
    static const char *const in_page[] = {
        "2 of 4</strong> tasks on a GPU", "fast<sub>1.5</sub>", "it does not load, =1+1",
        "PyTorch eager (strict)",         "TF32-class</th>",    "tried again: 3, of 1 tasks"};
    struct place *p = *state;
    struct suite_task *tasks = arena_array(p->a, SAMPLE_COUNT + 1, sizeof(*tasks));
    struct run_history *all = arena_array(p->a, SAMPLE_COUNT + 1, sizeof(*all));
    struct suite_record suite = {.name = "sample-suite", .source = "/s", .tasks = tasks};
    struct suite_view v = {.suite = &suite, .histories = all};
    struct buf text = buf_init(1 << 20), csv = buf_init(1 << 20);
    const char *path = path_join(p->a, p->dir, "suite.html");
    struct error err = {0};
    struct text page;
    json_t *o;

    for (int i = 0; i < SAMPLE_COUNT; i++) {
        all[i] = p->h[i];
        tasks[i] = (struct suite_task){.path = "/s/t.py",
                                       .name = p->h[i].info.task,
                                       .problem = "",
                                       .ended = true,
                                       .run = p->ids[i],
                                       .wall_ms = 1500};
    }
    tasks[SAMPLE_COUNT] = (struct suite_task){
        .path = "/s/bad.py", .name = "bad", .ended = true, .problem = "it does not load, =1+1"};
    tasks[0].retries = 3;
    suite.count = SAMPLE_COUNT + 1;
    report_suite_text(&v, 0, &text);
    assert_has(text.data, in_text, ARRAY_LEN(in_text));
    report_suite_csv(&v, &csv);
    assert_int_equal(times_in(csv.data, "\n"), SAMPLE_COUNT + 2);
    assert_non_null(strstr(csv.data, "\"bad\",\"no run\",\"\","));
    buf_release(&csv);
    report_field_csv(&v, &csv);
    assert_non_null(strstr(csv.data, "\nover,\"compile\",4,2,2,"));
    assert_non_null(strstr(csv.data, "\naccuracy,\"TF32-class\",2,2,2,"));
    assert_ok(report_suite_write(&v, path, &err));
    assert_ok(file_read(path, 64 << 20, p->a, &page, &err));
    assert_has(page.data, in_page, ARRAY_LEN(in_page));
    if (getenv("SUITE_PAGE")) /* for browser_test.py */
        assert_ok(file_write(getenv("SUITE_PAGE"), page, &err));
    o = report_suite_json(&v);
    assert_int_equal(json_array_size(json_object_get(o, "tasks")), SAMPLE_COUNT + 1);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(o, "sums"), "tasks")), 4);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(o, "field"), "retries")),
                     3);
    assert_string_equal(json_string_value(json_object_get(
                            json_array_get(json_object_get(o, "tasks"), 0), "accuracy_class")),
                        "TF32-class");
    json_decref(o);
    buf_release(&text);
    buf_release(&csv);
}

/* An answer without work would pass: page, `show` and the table of a suite say so and claim
 * nothing. */
static void a_trivial_task_is_named_and_claims_no_speed_up(void **state)
{
    static const char *const says[] = {"zeros would pass too"};
    struct place *p = *state;
    struct run_history h = p->h[SAMPLE_GEMM];
    struct suite_task task = {
        .path = "/s/t.py", .name = h.info.task, .problem = "", .ended = true, .run = h.info.id};
    struct suite_record suite = {.name = "s", .source = "/s", .tasks = &task, .count = 1};
    struct suite_view v = {.suite = &suite, .histories = &h};
    struct buf text = buf_init(1 << 20), table = buf_init(1 << 20);
    const char *page;

    h.attempts = arena_array(p->a, h.attempt_count, sizeof(*h.attempts)); /* others read these */
    memcpy(h.attempts, p->h[SAMPLE_GEMM].attempts, h.attempt_count * sizeof(*h.attempts));
    for (size_t i = 0; i < h.attempt_count; i++)
        if (h.attempts[i].outcome.measurement) {
            struct measurement *m = arena_alloc(p->a, sizeof *m);

            *m = *h.attempts[i].outcome.measurement;
            m->trivial = says[0];
            h.attempts[i].outcome.measurement = m;
        }
    page = page_of(p, &h, 1);
    report_text(&h, 0, &text);
    report_suite_text(&v, 0, &table);
    assert_has(page, says, 1);
    assert_has(text.data, says, 1);
    assert_has(table.data, says, 1);
    assert_null(strstr(page, "faster than PyTorch eager"));
    assert_null(strstr(text.data, "4.42x"));
    assert_null(strstr(table.data, "4.42x"));
    buf_release(&text);
    buf_release(&table);
}

static void a_run_that_just_began_has_a_page(void **state)
{
    struct place *p = *state;
    struct error err = {0};
    struct task t = {.name = "new", .path = "/new.py"};
    struct device d = {.name = "simt", .models = "H200"};
    struct run_spec spec = {.task = &t, .device = &d, .model = "builtin"};
    struct run_history h;
    struct run *r;

    assert_ok(run_create(p->s, &spec, &r, &err));
    assert_ok(store_run_history(p->s, run_id(r), p->a, &h, &err));
    assert_non_null(strstr(page_of(p, &h, 1), "The run is going on"));
    assert_non_null(strstr(page_of(p, &h, 1), "No attempt has begun"));
    run_history_release(&h);
    run_release(r);
}

/* Profiles may be read earlier than planned: the line stands where they were. */
static void the_chart_shows_from_which_depth_a_profile_was_read(void **state)
{
    struct place *p = *state;
    struct event_record early = {.kind = EVENT_PROFILE_FROM,
                                 .data = json_pack("{s:i}", "depth", 4)};
    struct run_history h = p->h[SAMPLE_GEMM];

    assert_non_null(strstr(page_of(p, &h, 1), "<line class=\"profile\" x1=\"841.0\"")); /* 9 */
    h.events = &early;
    h.event_count = 1;
    assert_non_null(strstr(page_of(p, &h, 1), "<line class=\"profile\" x1=\"391.0\"")); /* 4 */
    json_decref(early.data);
}

static void a_running_task_took_the_time_until_now(void **state)
{
    enum { HOURS = 3, MORE_MS = 10000 };
    struct place *p = *state;
    struct error err = {0};
    struct task t = {.name = "new", .path = "/new.py"};
    struct device d = {.name = "simt", .models = "H200"};
    struct run_spec spec = {.task = &t, .device = &d, .model = "builtin"};
    struct suite_task tasks[2] = {{.path = "/s/new.py", .name = "new", .problem = ""},
                                  {.path = "/s/later.py", .name = "later", .problem = ""}};
    struct suite_record suite = {.name = "s", .source = "/s", .tasks = tasks, .count = 2};
    struct run_history h[2] = {0};
    struct suite_view v = {.suite = &suite, .histories = h};
    struct buf page = buf_init(1 << 20), text = buf_init(1 << 20);
    struct run *r;

    assert_ok(run_create(p->s, &spec, &r, &err));
    assert_ok(store_run_history(p->s, run_id(r), p->a, &h[0], &err));
    tasks[0].run = run_id(r);
    h[0].info.started_ms = clock_unix_ms() - HOURS * 3600 * 1000 - MORE_MS;
    report_live_suite(&v, &page);
    report_suite_text(&v, 0, &text);
    assert_non_null(strstr(page.data, "3 h 0 min"));
    assert_non_null(strstr(text.data, "3 h 0 min"));
    assert_null(strstr(page.data, "0 ms"));
    assert_null(strstr(text.data, "0 ms"));
    buf_release(&page);
    buf_release(&text);
    run_history_release(&h[0]);
    run_release(r);
}

/* ---- what is not there -------------------------------------------------------- */

static void the_page_asks_for_nothing_from_outside(void **state)
{
    struct place *p = *state;
    static const char *const banned[] = {
        "http:", "https:", "src=", "@import", "url(", "<link", "<img", "<iframe", "//cdn",
    };

    for (int i = 0; i < SAMPLE_COUNT; i++) {
        const char *page = page_of(p, &p->h[i], 1);
        for (size_t k = 0; k < ARRAY_LEN(banned); k++)
            if (strstr(page, banned[k]))
                fail_msg("run %d: %s", i, banned[k]);
        assert_int_equal(times_in(page, "<script"), 1);
        assert_non_null(strstr(page, "default-src 'none'; style-src 'unsafe-inline'; "
                                     "script-src 'sha256-"));
    }
}

/* ---- hostile ------------------------------------------------------------------- */

#define EVIL                                                                                       \
    "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>&lt; \x1b[31m \x07 \xff\xfe "        \
    "\xe2\x80\xae</pre></title></style>"

/* With a kernel, modelled or measured; with attempts that all failed; with no attempt. */
enum hostile { HOSTILE_MEASURED, HOSTILE_MODELLED, HOSTILE_FAILED, HOSTILE_EMPTY, HOSTILE_COUNT };

static void hostile_run(struct place *p, enum hostile how, struct run_history *h)
{
    static int made;
    json_t *evil = json_pack("{s:s, s:[s, s]}", "<u>key</u>", "<u>v</u>", "command", "cutegen",
                             "';rm <u>'<u>");
    json_t *description = json_pack("{s:[{s:s, s:s, s:[i]}]}", "inputs", "name", "<i>x</i>",
                                    "dtype", "<script>d</script>", "shape", 4);
    struct task t = {.name = EVIL,
                     .path = EVIL,
                     .source = text_of(EVIL "\n# <script>t</script>"),
                     .class_evidence = EVIL,
                     .scaled = EVIL,
                     .description = description};
    struct device d = {
        .name = "<script>n</script>", .models = "<u>m</u>", .arch = "<script>a</script>"};
    struct run_spec spec = {.task = &t,
                            .device = &d,
                            .model = EVIL,
                            .suite =
                                arena_printf(p->a, "%s%d", EVIL, ++made), /* one run of a task */
                            .options = evil,
                            .environment = evil};
    struct error err = {0};
    struct run *r;

    assert_ok(run_create(p->s, &spec, &r, &err));
    json_decref(evil);
    json_decref(description);

    struct message m[] = {{EVIL, text_of(EVIL)}};
    struct request req = {.messages = m, .message_count = 1, .prompt_hash = EVIL};
    struct reply reply = {.text = text_of(EVIL), .model = EVIL, .finish_reason = EVIL};
    struct candidate c = {.source = text_of("/* " EVIL "\n\"" EVIL "\n" EVIL), .change = EVIL};
    struct verdict v = {.summary = EVIL, .detail = EVIL, .advice = EVIL, .finding_count = 1};
    v.findings[0] = (struct finding){EVIL, EVIL, EVIL, EVIL};
    struct measurement time = {.time_us = 5,
                               .floor_us = 4,
                               .modelled = how == HOSTILE_MODELLED,
                               .warm_us = 4,
                               .bound = EVIL,
                               .baselines = {{EVIL, 9, 8}},
                               .baseline_count = 1};
    struct build_result build = {
        .resources = json_pack("{s:{s:s}}", "<script>k</script>", "<script>r</script>", "<u>")};
    struct test_result test = {.seed = EVIL, .accuracy = {.draws = 1}};
    struct attempt_outcome o = {
        .step = STEP_MEASURE, .verdict = v, .build = &build, .test = &test, .measurement = &time};
    struct profile prof = {.source = EVIL, .text = EVIL};
    for (c.attempt = 1; c.attempt <= 3 && how != HOSTILE_EMPTY; c.attempt++) {
        o.verdict.kind = c.attempt == 2 || how == HOSTILE_FAILED ? VERDICT_RACE : VERDICT_PASS;
        assert_ok(run_call_add(r, c.attempt, 0, &req, &reply, &err));
        assert_ok(run_attempt_begin(r, &c, STAGE_OPTIMIZE, c.attempt - 1, &err));
        assert_ok(run_attempt_end(r, c.attempt, &o, &err));
        assert_ok(run_profile_add(r, c.attempt, &prof, &err));
        c.source = text_of(EVIL "\n" EVIL);
    }
    assert_ok(run_end(r, RUN_FAILED, EVIL, &err));
    json_decref(build.resources);
    assert_ok(store_run_history(p->s, run_id(r), p->a, h, &err));
    run_release(r);
}

/* Every '<' of the page opens or closes an element we write, and nothing else. */
static void assert_only_our_elements(const char *page)
{
    static const char *const ours =
        " !doctype html head meta title style body header main footer section div span b small "
        "strong h1 h2 h3 h4 h5 p a abbr figure figcaption svg line text path circle ul li dl dt dd "
        "details summary pre code button table thead tbody tfoot tr th td sub script ";

    for (const char *at = strchr(page, '<'); at; at = strchr(at + 1, '<')) {
        char name[24] = " ";
        size_t n = strcspn(at + 1 + (at[1] == '/'), " >/");
        if (n > 20)
            n = 20;
        memcpy(name + 1, at + 1 + (at[1] == '/'), n);
        name[n + 1] = ' ';
        if (!strstr(ours, name))
            fail_msg("an element that is not ours: %.40s", at);
    }
    assert_int_equal(times_in(page, "<script"), 1);
    assert_int_equal(times_in(page, "</title><style>"), 1);
    assert_int_equal(times_in(page, "<title"), times_in(page, "</title>")); /* marks have some */
    assert_int_equal(times_in(page, "</style"), 1);
    assert_int_equal(times_in(page, "<pre"), times_in(page, "</pre>"));
    assert_null(strstr(page, " onerror=alert(2)>"));
}

static void assert_harmless(struct place *p, const struct run_history *h, size_t n)
{
    const char *page = page_of(p, h, n);
    json_t *utf8 = json_string(page); /* jansson takes valid UTF-8 only */

    assert_non_null(utf8);
    json_decref(utf8);
    assert_only_our_elements(page);
    assert_null(strpbrk(page, "\x1b\x07"));
    assert_non_null(strstr(page, "&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&gt;"));
}

static void a_hostile_run_stays_text_on_page_terminal_and_in_json(void **state)
{
    struct place *p = *state;

    for (int how = 0; how < HOSTILE_COUNT; how++) {
        struct run_history h[3];
        struct buf b = buf_init(1 << 20);

        hostile_run(p, (enum hostile)how, &h[0]);
        hostile_run(p, (enum hostile)how, &h[1]);
        h[2] = p->h[SAMPLE_NONE];
        assert_harmless(p, h, 1); /* a run */
        assert_harmless(p, h, 2); /* two of one task */
        assert_harmless(p, h, 3); /* a suite */
        assert_non_null(strstr(page_of(p, h, 1), "cutegen &#39;&#39;\\&#39;&#39;;rm &lt;u&gt;"));
        report_text(&h[0], 0, &b);
        report_runs_text(&h[0].info, 1, 0, &b);
        assert_null(strpbrk(b.data, "\x1b\x07\xff"));
        json_t *v = report_run_json(&h[0]);
        assert_true(json_is_string(json_object_get(v, "reason")));
        assert_true(json_is_string(json_object_get(v, "task")));
        json_decref(v);
        buf_release(&b);
        run_history_release(&h[0]);
        run_history_release(&h[1]);
    }
}

/* ---- text, JSON, file ------------------------------------------------------------ */

static void the_text_is_the_table_of_a_run(void **state)
{
    struct place *p = *state;
    struct buf b = buf_init(1 << 20);
    static const char *const wanted[] = {
        "task     swish    (256, 256) f32; scaled: N 2048 -> 256\n",
        "engineer builtin        device  simt as H200\n",
        "  0    plain: one element per thread              5.7 s   pass              3.91 us",
        "\n       \xe2\x94\x94 repair 1: guard the tail ",
        "* modelled for H200; run on a GPU to measure\n",
        ("best     depth 3, 4.20x over depth 0 (modelled)\nchecked  5 draws, max relative error "
         "6.0e-8"),
        "89 %  \xe2\x96\x82\xe2\x96\x84\xe2\x96\x86\xe2\x96\x88\n",
    };

    report_text(&p->h[SAMPLE_SWISH], 0, &b);
    assert_has(b.data, wanted, ARRAY_LEN(wanted));
    buf_release(&b);
}

static void the_json_has_its_keys(void **state)
{
    struct place *p = *state;
    json_t *v = report_run_json(&p->h[SAMPLE_GEMM]);
    json_t *race = json_array_get(json_object_get(v, "attempts"), 3);
    json_t *pass = json_array_get(json_object_get(v, "attempts"), 12);

    assert_string_equal(json_string_value(json_object_get(race, "verdict")), "race");
    assert_int_equal(json_array_size(json_object_get(race, "findings")), 2);
    assert_true(json_number_value(json_object_get(pass, "time_us")) == 611);
    assert_true(json_is_false(json_object_get(pass, "modelled")));
    assert_true(json_number_value(json_object_get(json_object_get(pass, "baselines"), "eager")) ==
                2700);
    assert_int_equal(json_array_size(json_object_get(v, "calls")), 16);
    assert_int_equal(json_integer_value(json_object_get(v, "best_depth")), 9);
    json_decref(v);
    v = report_runs_json(&p->h[SAMPLE_NONE].info, 1);
    assert_true(json_is_null(json_object_get(json_array_get(v, 0), "best_us")));
    assert_string_equal(json_string_value(json_object_get(json_array_get(v, 0), "state")),
                        "failed");
    json_decref(v);
}

static void a_page_that_cannot_be_written_is_an_error(void **state)
{
    struct place *p = *state;
    struct error err = {0};

    assert_ok(report_write(&p->h[0], 1, path_join(p->a, p->dir, "report.html"), &err));
    assert_true(file_exists(path_join(p->a, p->dir, "report.html")));
    assert_false(report_write(&p->h[0], 1, path_join(p->a, p->dir, "no/such/report.html"), &err));
    assert_int_equal(err.kind, ERROR_MACHINE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_measured_run_says_its_result_and_its_evidence),
        cmocka_unit_test(the_chart_shows_from_which_depth_a_profile_was_read),
        cmocka_unit_test(a_modelled_run_says_so_at_every_figure),
        cmocka_unit_test(times_for_a_gpu_that_was_never_measured_say_so),
        cmocka_unit_test(a_run_without_a_kernel_says_that_first),
        cmocka_unit_test(runs_of_one_task_are_overlaid_and_of_several_listed),
        cmocka_unit_test(a_suite_counts_every_task_in_page_text_csv_and_json),
        cmocka_unit_test(a_trivial_task_is_named_and_claims_no_speed_up),
        cmocka_unit_test(a_run_that_just_began_has_a_page),
        cmocka_unit_test(a_running_task_took_the_time_until_now),
        cmocka_unit_test(the_page_asks_for_nothing_from_outside),
        cmocka_unit_test(a_hostile_run_stays_text_on_page_terminal_and_in_json),
        cmocka_unit_test(the_text_is_the_table_of_a_run),
        cmocka_unit_test(the_json_has_its_keys),
        cmocka_unit_test(a_page_that_cannot_be_written_is_an_error),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
