/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_eval.c - `eval`: one candidate, one verdict; `describe`: what a task is. */
#include "base/fs.h"
#include "base/json.h"
#include "cli/cmd.h"
#include "report/facts.h"

#include <stdlib.h>
#include <string.h>

static bool want_file(const char *path, const char *what, struct error *err)
{
    if (file_exists(path))
        return true;
    error_set(err, ERROR_USE, "there is no %s %s", what, path);
    return error_hint(err, "check the path; it is relative to the working directory");
}

static bool ends_with(const char *path, const char *end)
{
    size_t len = strlen(path), n = strlen(end);

    return len >= n && strcmp(path + len - n, end) == 0;
}

static bool want_order(const char *task, const char *kernel, struct error *err)
{
    if (!ends_with(task, ".cu"))
        return true;
    error_set(err, ERROR_USE, "%s is a kernel; the task comes first", task);
    return error_hint(err, "cutegen eval %s %s", ends_with(kernel, ".py") ? kernel : "TASK.py",
                      task);
}

/* ---- eval ------------------------------------------------------------------ */

static void print_time(const struct cli *cli, const struct eval_summary *s)
{
    const struct measurement *m = &s->measurement;

    if (m->claimed_us > 0)
        print_fit(12, "  claimed   %s by the module's own process; not judged, never ranked",
                  show_us(m->claimed_us, cli->a));
    if (m->time_us <= 0)
        return;
    if (m->modelled) {
        printf("  time*     %s   %s for %s, not measured\n", show_us(m->time_us, cli->a),
               modelled_words(s->device.models), s->device.models);
    } else {
        printf("  time      %s (cold L2, +-%.1f %%)", show_us(m->time_us, cli->a), m->spread * 100);
        if (m->warm_us > 0)
            printf("    warm L2 %s", show_us(m->warm_us, cli->a));
        putchar('\n');
    }
    if (m->trivial && *m->trivial) {
        print_fit(12, "  trivial   %s", m->trivial);
        return;
    }
    for (int i = 0; i < m->baseline_count && !m->modelled; i++)
        if (m->baselines[i].cold_us > 0)
            printf("%s%.2fx %s%s", i ? "   " : "  speed-up  ", m->baselines[i].cold_us / m->time_us,
                   m->baselines[i].name, i + 1 == m->baseline_count ? "\n" : "");
    if (m->floor_us > 0)
        print_fit(12, "  roofline%s %.0f %% of the %s floor%s%s%s", m->modelled ? "*" : " ",
                  m->floor_us / m->time_us * 100, show_us(m->floor_us, cli->a),
                  m->bound ? " (" : "", m->bound ? m->bound : "", m->bound ? ")" : "");
}

static void print_eval(const struct cli *cli, const struct eval_summary *s)
{
    const struct accuracy *acc = &s->test.accuracy;
    bool simt = s->device.kind == DEVICE_SIMT;

    print_verdict(cli, &s->verdict, false);
    if (s->language && languages[language_named(s->language)].python)
        printf("  language  %s\n", s->language);
    print_time(cli, s);
    if (acc->draws > 0)
        print_fit(12,
                  "  error     relative: max %s, rms %s (reference: %s, %s) against float64, "
                  "%d draw%s x %d distribution%s",
                  error_text(acc->max_rel, cli->a), error_text(acc->rms_rel, cli->a),
                  error_text(acc->reference_max_rel, cli->a),
                  error_text(acc->reference_rms_rel, cli->a), acc->draws,
                  acc->draws == 1 ? "" : "s", acc->distributions,
                  acc->distributions == 1 ? "" : "s");
    if (s->test.accuracy_class && *s->test.accuracy_class)
        print_fit(12, "  class     %s; the baseline is PyTorch's %s", s->test.accuracy_class,
                  json_string_or(s->task.description, "baseline", "defaults"));
    for (int i = 0; i < s->shape_count; i++)
        printf("%s %-24s %s %s\n", i ? "           " : "  shapes   ", s->shapes[i].label,
               verdict_names[s->shapes[i].verdict.kind],
               s->shapes[i].time_us > 0 ? show_us(s->shapes[i].time_us, cli->a) : "");
    if (s->test.unconfined)
        print_fit(
            12,
            "  confined  not %s: the CUDA driver does not start in confinement (cutegen doctor)",
            s->test.unconfined);
    if (s->accepted)
        print_fit(12, "  accepted  %s", s->accepted);
    if (s->profile.text)
        printf("  profile   (%s)\n%s", s->profile.source, s->profile.text);
    print_fit(
        0, "%sbuilt %.1f s (cached: %s)   checked on %s%s%s%s%s%.8s   details: cutegen show %s%s",
        paint_on(cli, PAINT_DIM), s->build.build_ms / 1000.0, s->build.cached ? "yes" : "no",
        show_device(&s->device, cli->a), simt ? " (" : "", simt ? cli->settings.check : "",
        simt ? ")" : "", s->test.seed ? "   seed " : "", s->test.seed ? s->test.seed : "",
        s->run_id ? s->run_id : "last", paint_off(cli));
}

static json_t *eval_json(const struct eval_summary *s, int code)
{
    json_t *o = verdict_json(&s->verdict);

    json_object_set_new(o, "exit", json_integer(code));
    json_object_set_new(o, "claimed_us",
                        s->measurement.claimed_us > 0 ? json_real(s->measurement.claimed_us)
                                                      : json_null());
    json_object_set_new(o, "language", s->language ? json_string(s->language) : json_null());
    json_object_set_new(o, "attested", json_boolean(s->verdict.kind == VERDICT_PASS));
    json_object_set_new(o, "task", task_json(&s->task));
    json_object_set_new(o, "device", device_json(&s->device));
    json_object_set_new(o, "build_ms", json_integer(s->build.build_ms));
    json_object_set_new(o, "cached", json_boolean(s->build.cached));
    json_object_set_new(o, "measurement", measurement_json(&s->measurement));
    json_object_set_new(o, "accuracy",
                        s->test.accuracy.draws ? accuracy_json(&s->test.accuracy) : json_null());
    json_object_set_new(o, "accuracy_class", json_from_string(s->test.accuracy_class));
    json_object_set_new(o, "baseline",
                        json_from_string(json_string_or(s->task.description, "baseline", NULL)));
    json_object_set_new(o, "unconfined",
                        s->test.unconfined ? json_string(s->test.unconfined) : json_null());
    json_object_set_new(o, "compared", s->test.way ? json_string(s->test.way) : json_null());
    json_object_set_new(o, "deterministic",
                        s->test.accuracy.draws ? json_boolean(s->test.deterministic) : json_null());
    json_object_set_new(o, "seed", s->test.seed ? json_string(s->test.seed) : json_null());
    json_object_set_new(o, "accepted", s->accepted ? json_string(s->accepted) : json_null());
    if (s->shape_count) {
        json_t *list = json_array();

        for (int i = 0; i < s->shape_count; i++)
            json_array_append_new(list,
                                  json_pack("{s:s, s:s, s:f}", "label", s->shapes[i].label,
                                            "verdict", verdict_names[s->shapes[i].verdict.kind],
                                            "time_us", s->shapes[i].time_us));
        json_object_set_new(o, "shapes", list);
    }
    if (s->profile.text)
        json_object_set_new(o, "profile",
                            json_pack("{s:o, s:o}", "source", json_from_string(s->profile.source),
                                      "text", json_from_string(s->profile.text)));
    json_object_set_new(o, "run", s->run_id ? json_string(s->run_id) : json_null());
    return o;
}

/* ---- for a CI log ----------------------------------------------------- */

/* In a GitHub workflow command % and line ends must be escaped, in a property also : and ,. */
static void put_escaped(struct buf *out, const char *text, bool property)
{
    for (; text && *text; text++) {
        unsigned char c = (unsigned char)*text;

        if (c == '%' || c == '\r' || c == '\n' || (property && (c == ':' || c == ',')))
            buf_printf(out, "%%%02X", c);
        else
            buf_putc(out, c < 32 ? ' ' : (char)c);
    }
}

/* ::error file=FILE,line=N,title=TITLE::TEXT, which GitHub shows beside the line. */
static void put_annotation(struct buf *out, const char *file, const char *where, const char *title,
                           const char *text)
{
    const char *colon = where ? strrchr(where, ':') : NULL;
    long line = colon ? strtol(colon + 1, NULL, 10) : 0;

    buf_puts(out, "::error file=");
    put_escaped(out, file, true);
    if (line > 0)
        buf_printf(out, ",line=%ld", line);
    buf_puts(out, ",title=");
    put_escaped(out, title, true);
    buf_puts(out, "::");
    put_escaped(out, text, false);
    buf_putc(out, '\n');
}

static void print_github(const struct cli *cli, const struct eval_summary *s, bool good)
{
    struct buf b = buf_init(1 << 20);
    const struct verdict *v = &s->verdict;
    const char *file = cli->words[1];

    for (int i = 0; i < v->finding_count && i < 10 && !good; i++)
        put_annotation(&b, file, v->findings[i].where, verdict_names[v->kind], v->findings[i].text);
    if (!good && !v->finding_count)
        put_annotation(&b, file, NULL, verdict_names[v->kind], v->summary);
    if (good)
        buf_puts(&b, "::notice file=");
    if (good)
        put_escaped(&b, file, true);
    if (good)
        buf_printf(&b, ",title=cutegen: %s::%s%s\n", verdict_names[v->kind],
                   show_us(s->measurement.time_us, cli->a),
                   s->measurement.modelled ? arena_printf(cli->a, " (%s, not measured)",
                                                          measurement_words(&s->measurement))
                                           : "");
    fwrite(b.data, 1, b.len, stdout);
    if (!good && v->advice)
        printf("try: %s\n", v->advice);
    buf_release(&b);
}

static bool read_format(struct cli *cli, bool *github, struct error *err)
{
    const char *format = flag_get(cli, "format");

    *github = format && !strcmp(format, "github");
    if (format && !strcmp(format, "json"))
        cli->json = true;
    if (!format || *github || cli->json || !strcmp(format, "text"))
        return true;
    error_set(err, ERROR_USE, "--format %s is not text, json or github", format);
    return error_hint(err, "github: workflow commands, which GitHub shows beside the lines");
}

/* Reads --job: a worker says which job it is running. */
bool read_job(struct cli *cli, struct error *err)
{
    const char *text = flag_get(cli, "job");
    char *end;

    if (!text)
        return true;
    cli->settings.job = strtoll(text, &end, 10);
    if (cli->settings.job > 0 && !*end)
        return true;
    return error_set(err, ERROR_USE, "--job: '%s' is not the number of a job", text);
}

bool cmd_eval(struct cli *cli, int *code, struct error *err)
{
    struct eval_summary *s = arena_alloc(cli->a, sizeof(*s));
    struct progress *progress = NULL;
    bool ok, github;

    if (!read_format(cli, &github, err) || !read_job(cli, err))
        return false;
    if (cli->word_count == 2 &&
        (!want_file(cli->words[0], "task file", err) || !want_file(cli->words[1], "kernel", err) ||
         !want_order(cli->words[0], cli->words[1], err)))
        return false;
    if (cli->word_count == 1 && ends_with(cli->words[0], ".py")) {
        error_set(err, ERROR_USE, "%s is a task; which kernel is to be judged?", cli->words[0]);
        return error_hint(err, "cutegen eval %s KERNEL.cu, or cutegen eval RUN", cli->words[0]);
    }
    cli->settings.profile = flag_get(cli, "profile") != NULL;
    cli->settings.all_baselines = flag_get(cli, "all-baselines") != NULL;
    if (cli->json && flag_get(cli, "events"))
        progress = progress_new(cli);
    else if (!cli->json)
        progress = progress_new_live(cli);
    ok = cli->word_count == 1
             ? loop_eval_run(&cli->settings, cli->words[0], progress, cli->a, s, err)
             : loop_eval(&cli->settings, cli->words[0], cli->words[1], progress, cli->a, s, err);
    progress_end(progress);
    if (!ok)
        return false;
    *code = s->verdict.kind == VERDICT_PASS || s->verdict.kind == VERDICT_UNATTESTED ? EXIT_DONE
                                                                                     : EXIT_JUDGED;
    if (cli->json)
        print_json(eval_json(s, *code));
    else if (github)
        print_github(cli, s, *code == EXIT_DONE);
    else
        print_eval(cli, s);
    return true;
}

/* ---- compile ---------------------------------------------------------------- */

bool cmd_compile(struct cli *cli, int *code, struct error *err)
{
    struct compile_request req = {cli->words[0], flag_get(cli, "arch"), cli->words + 1};
    struct compile_summary s;

    if (!want_file(req.file, "kernel", err))
        return false;
    if (!req.arch)
        req.arch = "sm_90a";
    if (!loop_compile(&cli->settings, &req, cli->a, &s, err))
        return false;
    *code = s.verdict.kind == VERDICT_PASS ? EXIT_DONE : EXIT_JUDGED;
    if (cli->json) {
        json_t *o = verdict_json(&s.verdict);

        json_object_set_new(o, "build_ms", json_integer(s.build_ms));
        json_object_set_new(o, "cached", json_boolean(s.cached));
        print_json(o);
        return true;
    }
    print_verdict(cli, &s.verdict, true);
    printf("built %.1f s (cached: %s) for %s\n", s.build_ms / 1000.0, s.cached ? "yes" : "no",
           req.arch);
    return true;
}

/* ---- describe -------------------------------------------------------------- */

static void print_operators(const json_t *graph)
{
    json_t *node;
    size_t i;
    int column = 0;

    json_array_foreach(graph, i, node)
    {
        const char *op = json_string_value(json_object_get(node, "op"));

        if (!op || !strcmp(op, "input") || !strcmp(op, "output"))
            continue;
        if (column > 70) {
            printf("\n         ");
            column = 0;
        }
        column += printf("%s%s", column ? " " : "", op);
    }
    putchar('\n');
}

static void print_task(const struct task *t, struct arena *a)
{
    json_t *facts = json_object_get(t->description, "facts"), *fact;
    size_t i;

    printf("task      %s\n", t->name);
    for (int k = 0; k < t->in_count; k++)
        printf("%s %-8s %s  %s\n", k ? "         " : "inputs   ", t->in[k].name,
               show_shape(&t->in[k], a), strcmp(t->in[k].role, "input") ? t->in[k].role : "");
    for (int k = 0; k < t->out_count; k++)
        printf("%s %-8s %s\n", k ? "         " : "outputs  ", t->out[k].name,
               show_shape(&t->out[k], a));
    printf("operators ");
    print_operators(json_object_get(t->description, "graph"));
    print_fit(10, "class     %s: %s", class_names[t->class],
              t->class_evidence ? t->class_evidence : "");
    printf("floor     %.4g bytes must move, %.4g flops must be done\n", t->bytes_min, t->flops_min);
    if (t->scaled)
        print_fit(10, "scaled    %s (for simt; --no-scale keeps the sizes)", t->scaled);
    json_array_foreach(facts, i, fact)
        print_fit(10, "%s %s", i ? "         " : "facts    ", json_string_value(fact));
}

bool cmd_describe(struct cli *cli, int *code, struct error *err)
{
    struct task *t = arena_alloc(cli->a, sizeof(*t));

    (void)code;
    if (!want_file(cli->words[0], "task file", err) ||
        !loop_describe(&cli->settings, cli->words[0], cli->a, t, err))
        return false;
    if (cli->json)
        print_json(json_incref(t->description));
    else
        print_task(t, cli->a);
    return true;
}
