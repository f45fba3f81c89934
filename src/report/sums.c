/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sums.c - the best kernel against floor and baselines, what the run cost, and how to reproduce it.
 */
#include "base/clock.h"
#include "base/json.h"
#include "report/escape.h"
#include "report/page.h"

#include <math.h>
#include <string.h>

/* ---- standing --------------------------------------------------------------- */

static void put_bar(struct buf *b, const char *name, double us, double most, const char *class,
                    bool modelled, struct arena *a)
{
    if (!(us > 0) || !isfinite(us))
        return;
    buf_printf(b, "<div class=\"standing %s\"><span class=\"name\">", class);
    html_puts(b, name);
    buf_printf(b,
               "</span><span class=\"bar\"><span style=\"width:%.2f%%\"></span></span>"
               "<span class=\"num\">%s%s</span></div>",
               us / most * 100, us_text(us, MICRO, a), modelled_mark(modelled));
}

/* Microseconds by resource, summed over all launches. */
static void put_parts(struct buf *b, const struct measurement *m, struct arena *a)
{
    static const char *const parts[] = {"dram", "l2",  "l1",     "shared", "fp32",   "fp64",
                                        "int",  "sfu", "tensor", "issue",  "latency"};
    double sums[ARRAY_LEN(parts)] = {0}, most = 0;
    json_t *launches = json_object_get(m->parts, "launches"), *v;
    size_t i;

    for (size_t k = 0; k < ARRAY_LEN(parts); k++) {
        json_array_foreach(launches, i, v) sums[k] +=
            json_number_value(json_object_get(v, parts[k]));
        if (!launches)
            sums[k] = json_number_value(json_object_get(m->parts, parts[k]));
        most = fmax(most, sums[k]);
    }
    if (!(most > 0))
        return;
    buf_puts(b, "<h3>By resource</h3><p class=\"hint\">How long each part of the device would be "
                "busy, modelled. The longest is what bounds the kernel.</p>");
    for (size_t k = 0; k < ARRAY_LEN(parts); k++)
        put_bar(b, parts[k], sums[k], most, sums[k] == most ? "best" : "other", true, a);
}

void standing_section(struct buf *b, const struct facts *f, struct arena *a)
{
    const struct measurement *m = f->best ? f->best->outcome.measurement : NULL;
    double most;

    if (!m || !(f->best_us > 0))
        return;
    most = fmax(f->best_us, f->first_us);
    for (int i = 0; i < m->baseline_count && !m->modelled; i++)
        most = fmax(most, m->baselines[i].cold_us);
    buf_puts(b, "<section id=\"standing\"><h2>Where it stands</h2>");
    const char *roof =
        m->bound && *m->bound ? arena_printf(a, "roofline (%s)", m->bound) : "roofline";
    put_bar(b, roof, m->floor_us, most, "floor", false, a);
    put_bar(b, arena_printf(a, "best, depth %d", f->best->candidate.depth), f->best_us, most,
            "best", m->modelled, a);
    for (int i = 0; i < m->baseline_count && !m->modelled; i++)
        put_bar(b, m->baselines[i].name, m->baselines[i].cold_us, most, "other", false, a);
    if (f->first && f->first != f->best)
        put_bar(b, "first correct kernel", f->first_us, most, "other",
                f->first->outcome.measurement->modelled, a);
    if (m->modelled && m->parts)
        put_parts(b, m, a);
    buf_puts(b, "</section>");
}

/* ---- cost and time ----------------------------------------------------------- */

static void put_stage(struct buf *b, const char *name, const struct stage_sum *s, struct arena *a)
{
    buf_printf(b,
               "<tr><th scope=\"row\">%s</th><td>%d</td><td>%s</td><td>%s</td><td>%s</td>"
               "<td>%s</td><td>%s</td></tr>",
               name, s->calls, s->prompt_tokens ? count_text(s->prompt_tokens, a) : DASH,
               s->cached_tokens ? count_text(s->cached_tokens, a) : DASH,
               s->output_tokens ? count_text(s->output_tokens, a) : DASH,
               s->cost_known ? money_text(s->cost_usd, a) : DASH, ms_text(s->ms, a));
}

static void put_stages(struct buf *b, const struct facts *f, struct arena *a)
{
    buf_puts(b, "<div class=\"scroll\"><table class=\"sums\"><thead><tr><th>stage</th>"
                "<th>calls</th><th>tokens in</th><th>of them cached</th><th>tokens out</th>"
                "<th>cost</th><th>time</th></tr></thead><tbody>");
    for (int i = 0; i < STAGE_KIND_COUNT; i++)
        if (f->stages[i].calls)
            put_stage(b, stage_names[i], &f->stages[i], a);
    buf_puts(b, "</tbody><tfoot>");
    put_stage(b, "all", &f->all, a);
    buf_puts(b, "</tfoot></table></div>");
}

static void put_clock(struct buf *b, const struct facts *f, struct arena *a)
{
    int64_t rest = f->wall_ms - f->model_ms - f->build_ms - f->test_ms - f->measure_ms;
    const struct {
        const char *name;
        int64_t ms;
    } rows[] = {
        {"asking the model", f->model_ms},
        {"building", f->build_ms},
        {"testing", f->test_ms},
        {"measuring and profiling", f->measure_ms},
        {"everything else", rest > 0 ? rest : 0},
    };
    int64_t most = 1;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        most = rows[i].ms > most ? rows[i].ms : most;
    buf_printf(b, "<h3>Time</h3><p class=\"hint\">%s from the first step to the last.</p>",
               ms_text(f->wall_ms, a));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (!rows[i].ms)
            continue;
        buf_printf(b,
                   "<div class=\"standing other\"><span class=\"name\">%s</span><span "
                   "class=\"bar\"><span style=\"width:%.2f%%\"></span></span><span "
                   "class=\"num\">%s</span></div>",
                   rows[i].name, (double)rows[i].ms / (double)most * 100, ms_text(rows[i].ms, a));
    }
}

void sums_section(struct buf *b, const struct facts *f, struct arena *a)
{
    buf_puts(b, "<section id=\"cost\"><h2>Cost and time</h2>");
    if (f->all.calls)
        put_stages(b, f, a);
    put_clock(b, f, a);
    buf_puts(b, "</section>");
}

/* ---- environment ---------------------------------------------------------------- */

static void put_object(struct buf *b, const json_t *object, const char *skip, struct arena *a)
{
    const char *key;
    json_t *v;

    json_object_foreach((json_t *)object, key, v)
    {
        if (strcmp(key, skip) == 0)
            continue;
        buf_puts(b, "<dt>");
        html_puts(b, key);
        buf_puts(b, "</dt><dd>");
        html_puts(b, json_is_string(v) ? json_string_value(v) : json_line(v, a));
        buf_puts(b, "</dd>");
    }
}

/* Quoted for a shell. */
static void put_word(struct buf *b, const char *word)
{
    bool bare = *word;

    for (const char *p = word; *p; p++)
        bare = bare && (strchr("-_./:=,+@%", *p) || (*p >= '0' && *p <= '9') ||
                        (*p >= 'A' && *p <= 'Z') || (*p >= 'a' && *p <= 'z'));
    if (bare) {
        html_puts(b, word);
        return;
    }
    html_puts(b, "'");
    for (const char *p = strchr(word, '\''); p; word = p + 1, p = strchr(word, '\'')) {
        html_add(b, (struct text){word, (size_t)(p - word)});
        html_puts(b, "'\\''");
    }
    html_puts(b, word);
    html_puts(b, "'");
}

static void put_option(struct buf *b, const json_t *options, const char *key, const char *flag)
{
    const char *value = json_string_or(options, key, "");

    if (!*value)
        return;
    buf_printf(b, " --%s ", flag);
    put_word(b, value);
}

/* The command as typed if the run stored it; else rebuilt from its options. */
static void put_run_command(struct buf *b, const struct run_history *h)
{
    const json_t *command = json_object_get(h->options, "command");
    bool eval = strcmp(json_string_or(h->options, "kind", "run"), "eval") == 0;
    size_t i;
    json_t *v;

    json_array_foreach((json_t *)command, i, v)
    {
        if (i)
            buf_putc(b, ' ');
        put_word(b, json_is_string(v) ? json_string_value(v) : "");
    }
    if (json_array_size(command))
        return;
    buf_puts(b, eval ? "cutegen eval " : "cutegen run ");
    put_word(b, h->task.path);
    if (eval)
        buf_puts(b, " kernel.cu");
    put_option(b, h->options, "model", "model");
    if (strchr(json_string_or(h->options, "model", ""), ':')) /* not builtin */
        put_option(b, h->options, "base_url", "base-url");
    if (strchr(json_string_or(h->options, "model", ""), ':'))
        put_option(b, h->options, "example", "example");
    put_option(b, h->options, "device", "device");
    if (!eval && json_int_or(h->options, "max_depth", -1) >= 0)
        buf_printf(b, " --depth %d", (int)json_int_or(h->options, "max_depth", 0));
}

static void put_commands(struct buf *b, const struct facts *f)
{
    const char *id = f->h->info.id;

    buf_puts(b, "<pre class=\"quote\">");
    put_run_command(b, f->h);
    buf_puts(b, "\ncutegen show ");
    html_puts(b, id);
    buf_puts(b, f->best ? "\ncutegen export " : "\ncutegen resume ");
    html_puts(b, id);
    buf_puts(b, "</pre>");
}

void record_section(struct buf *b, const struct facts *f, struct arena *a)
{
    const struct run_history *h = f->h;
    char began[25];

    clock_stamp(h->info.started_ms, began);
    buf_puts(b, "<section id=\"record\"><h2>How to do it again</h2>");
    put_commands(b, f);
    buf_puts(b, "<div class=\"columns\"><div><h3>Run</h3><dl class=\"facts\"><dt>run</dt><dd>");
    html_puts(b, h->info.id);
    buf_printf(b, "</dd><dt>began</dt><dd>%s</dd><dt>device</dt><dd>", began);
    html_puts(b, h->info.device);
    if (h->device.arch) {
        buf_puts(b, ", code for ");
        html_puts(b, h->device.arch);
    }
    buf_puts(b, "</dd><dt>engineer</dt><dd>");
    html_puts(b, h->info.model);
    buf_puts(b, "</dd>");
    if (f->best && f->best->outcome.test && *f->best->outcome.test->seed) {
        buf_puts(b, "<dt>seed of the best</dt><dd><code>");
        html_puts(b, f->best->outcome.test->seed);
        buf_puts(b, "</code></dd>");
    }
    put_object(b, h->options, "command", a);
    buf_puts(b, "</dl></div><div><h3>Environment</h3><dl class=\"facts\">");
    put_object(b, h->environment, "", a);
    buf_puts(b, "</dl></div></div><details class=\"more\"><summary>The task, ");
    html_puts(b, h->task.path);
    buf_puts(b, "</summary>");
    code_source(b, h->task.source, a);
    buf_puts(b, "</details></section>");
}
