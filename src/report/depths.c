/* SPDX-License-Identifier: Apache-2.0 */
/*
 * depths.c - the table of attempts; each row opens to all its evidence.
 *
 * A message that was sent earlier is referred to, not repeated: most of a prompt is the same in
 * every call.
 */
#include "base/json.h"
#include "report/escape.h"
#include "report/page.h"

#include <math.h>
#include <string.h>

struct at {
    struct buf *b;
    const struct facts *f;
    struct arena *a;
};

/* ---- the row -------------------------------------------------------------- */

static void put_verdict(struct buf *b, const struct attempt_record *r)
{
    if (!r->ended_ms) {
        buf_puts(b, "<span class=\"verdict open\">cut short</span>");
        return;
    }
    buf_printf(b, "<span class=\"verdict %s\">%s</span>", attempt_passed(r) ? "pass" : "bad",
               verdict_names[r->outcome.verdict.kind]);
}

/* The gain over the kernel it was made from. */
static void put_gain(struct at *t, const struct attempt_record *r)
{
    const struct attempt_record *from = attempt_base(t->f->h, r);
    double now = attempt_us(r), then = from ? attempt_us(from) : 0;

    if (!(now > 0) || !(then > 0)) {
        buf_puts(t->b, "<span class=\"num gain\"></span>");
        return;
    }
    double gain = then / now;
    buf_printf(t->b, "<span class=\"num gain %s\">%.2f" TIMES "</span>",
               gain > 1.005   ? "up"
               : gain < 0.995 ? "down"
                              : "even",
               gain);
}

static void put_roofline(struct at *t, const struct attempt_record *r)
{
    const struct measurement *m = r->ended_ms ? r->outcome.measurement : NULL;
    double us = attempt_us(r);

    buf_puts(t->b, "<span class=\"roof\">");
    if (us > 0 && m->floor_us > 0) {
        double part = m->floor_us / us;
        buf_printf(t->b,
                   "<span class=\"bar\"><span style=\"width:%.1f%%\"></span></span>"
                   "<span class=\"num\">%.0f&#8239;%%</span>",
                   fmin(part, 1) * 100, part * 100);
    }
    buf_puts(t->b, "</span>");
}

static void put_row(struct at *t, const struct attempt_record *r)
{
    const struct attempt_outcome *o = &r->outcome;
    struct buf *b = t->b;
    int repair = r->candidate.repair;

    buf_printf(b, "<summary><span class=\"num depth\">");
    if (repair)
        buf_puts(b, "&nbsp;");
    else
        buf_printf(b, "%d", r->candidate.depth);
    buf_printf(b, "</span><span class=\"change%s\">", repair ? " repair" : "");
    if (repair)
        buf_printf(b, "<span class=\"dim\">repair %d</span> ", repair);
    html_puts(b, *r->candidate.change ? r->candidate.change : "(no word on the change)");
    if (r == t->f->best)
        buf_puts(b, " <span class=\"tag\">best</span>");
    buf_puts(b, "</span>");
    put_verdict(b, r);
    buf_printf(b, "<span class=\"num build\">%s</span>",
               r->ended_ms && o->build ? ms_text(o->build->build_ms, t->a) : "");
    double us = attempt_us(r);
    buf_printf(b, "<span class=\"num time\">%s%s</span>", us > 0 ? us_text(us, MICRO, t->a) : "",
               us > 0 ? modelled_mark(o->measurement->modelled) : "");
    put_gain(t, r);
    put_roofline(t, r);
    buf_puts(b, "</summary>");
}

/* ---- what it opens to ------------------------------------------------------ */

static void put_finding(struct buf *b, const struct finding *f)
{
    buf_puts(b, "<li><strong>");
    html_puts(b, f->kind && *f->kind ? f->kind : "finding");
    buf_puts(b, "</strong>");
    if (f->where && *f->where) {
        buf_puts(b, " at <code>");
        html_puts(b, f->where);
        buf_puts(b, "</code>");
    }
    if (f->line && *f->line) {
        buf_puts(b, "<pre class=\"quote\">");
        html_puts(b, f->line + strspn(f->line, " \t"));
        buf_puts(b, "</pre>");
    }
    if (f->text && *f->text) {
        buf_puts(b, "<div class=\"evidence\">");
        html_puts(b, f->text);
        buf_puts(b, "</div>");
    }
    buf_puts(b, "</li>");
}

/* Findings that the detail below does not contain. */
static void put_findings(struct buf *b, const struct verdict *v)
{
    bool some = false;

    for (int i = 0; i < v->finding_count; i++) {
        if (finding_is_told(v, &v->findings[i]))
            continue;
        buf_puts(b, some ? "" : "<ul class=\"findings\">");
        put_finding(b, &v->findings[i]);
        some = true;
    }
    buf_puts(b, some ? "</ul>" : "");
}

static void put_judgement(struct at *t, const struct attempt_record *r)
{
    const struct verdict *v = &r->outcome.verdict;
    struct buf *b = t->b;

    buf_printf(b, "<section><h4>Verdict</h4><p>");
    put_verdict(b, r);
    if (r->ended_ms)
        buf_printf(b, " <span class=\"dim\">%s; decided by %s, attempt %d</span>",
                   verdict_helps[v->kind], attempt_step_names[r->outcome.step],
                   r->candidate.attempt);
    buf_puts(b, "</p>");
    if (r->ended_ms && v->summary && *v->summary) {
        buf_puts(b, "<p>");
        html_puts(b, v->summary);
        buf_puts(b, "</p>");
    }
    if (r->ended_ms)
        put_findings(b, v);
    if (r->ended_ms && v->detail && *v->detail) {
        buf_puts(b, "<pre class=\"quote\">");
        html_puts(b, v->detail);
        buf_puts(b, "</pre>");
    }
    if (r->ended_ms && v->advice && *v->advice) {
        buf_puts(b, "<p class=\"advice\">Try: ");
        html_puts(b, v->advice);
        buf_puts(b, "</p>");
    }
    buf_puts(b, "</section>");
}

static void put_accuracy(struct at *t, const struct test_result *r)
{
    const struct accuracy *c = &r->accuracy;
    struct buf *b = t->b;

    if (!c->draws)
        return;
    buf_puts(b, "<dt>Error</dt><dd>");
    buf_printf(
        b,
        "max relative %s (reference %s), relative rms %s (reference %s), against float64; %d "
        "draw%s",
        error_text(c->max_rel, t->a), error_text(c->reference_max_rel, t->a),
        error_text(c->rms_rel, t->a), error_text(c->reference_rms_rel, t->a), c->draws,
        c->draws == 1 ? "" : "s");
    if (c->distributions > 1)
        buf_printf(b, " " TIMES " %d distributions", c->distributions);
    if (r->accuracy_class && *r->accuracy_class) {
        buf_puts(b, "; accuracy class ");
        html_puts(b, r->accuracy_class);
    }
    buf_printf(b, "; %s, seed ", r->deterministic ? "deterministic" : "not bitwise repeatable");
    html_puts(b, r->seed);
    buf_puts(b, "</dd>");
}

static void put_time(struct at *t, const struct measurement *m)
{
    struct buf *b = t->b;

    buf_printf(b, "<dt>Time</dt><dd>%s%s", us_text(m->time_us, MICRO, t->a),
               modelled_mark(m->modelled));
    if (!m->modelled && m->warm_us > 0)
        buf_printf(b, " cold, &plusmn;%.1f&#8239;%%; %s warm", m->spread * 100,
                   us_text(m->warm_us, MICRO, t->a));
    if (m->floor_us > 0) {
        buf_printf(b, "; floor %s", us_text(m->floor_us, MICRO, t->a));
        if (m->bound && *m->bound) {
            buf_puts(b, ", bound by ");
            html_puts(b, m->bound);
        }
    }
    buf_puts(b, "</dd>");
    for (int i = 0; i < m->baseline_count && !m->modelled; i++) {
        buf_puts(b, "<dt>");
        html_puts(b, m->baselines[i].name);
        buf_printf(b, "</dt><dd>%s cold, %s warm</dd>",
                   us_text(m->baselines[i].cold_us, MICRO, t->a),
                   us_text(m->baselines[i].warm_us, MICRO, t->a));
    }
}

/* {"registers": 40, "smem": 0} as "registers 40, smem 0". */
static void put_members(struct at *t, json_t *object)
{
    const char *key, *between = "";
    json_t *v;

    json_object_foreach(object, key, v)
    {
        buf_puts(t->b, between);
        html_puts(t->b, key);
        buf_putc(t->b, ' ');
        html_puts(t->b, json_is_string(v) ? json_string_value(v) : json_line(v, t->a));
        between = ", ";
    }
}

static void put_build(struct at *t, const struct build_result *r)
{
    const char *kernel;
    json_t *v;

    buf_printf(t->b, "<dt>Build</dt><dd>%s%s</dd>", ms_text(r->build_ms, t->a),
               r->cached ? ", from the cache" : "");
    json_object_foreach(r->resources, kernel, v)
    {
        buf_puts(t->b, "<dt>Kernel</dt><dd><code>");
        html_puts(t->b, kernel);
        buf_puts(t->b, "</code> <span class=\"dim\">");
        put_members(t, v);
        buf_puts(t->b, "</span></dd>");
    }
}

static void put_figures(struct at *t, const struct attempt_record *r)
{
    const struct attempt_outcome *o = &r->outcome;

    if (!r->ended_ms || (!o->build && !o->test && !o->measurement))
        return;
    buf_puts(t->b, "<section><h4>Figures</h4><dl class=\"figures\">");
    if (o->measurement && o->measurement->time_us > 0)
        put_time(t, o->measurement);
    if (o->test)
        put_accuracy(t, o->test);
    if (o->build)
        put_build(t, o->build);
    buf_puts(t->b, "</dl></section>");
}

static void put_change(struct at *t, const struct attempt_record *r)
{
    const struct attempt_record *from = attempt_find(t->f->h, r->parent);

    if (from && from->candidate.source.len && r->candidate.source.len) {
        buf_printf(t->b, "<section><h4>Change against attempt %d</h4>", r->parent);
        code_diff(t->b, from->candidate.source, r->candidate.source, t->a);
        buf_puts(t->b, "</section>");
    }
    if (r->candidate.source.len) {
        buf_puts(t->b, "<details class=\"more\"><summary>The whole kernel</summary>");
        code_source(t->b, r->candidate.source, t->a);
        buf_puts(t->b, "</details>");
    }
}

static void put_profile(struct at *t, const struct profile *p)
{
    if (!p)
        return;
    buf_puts(t->b, "<details class=\"more\"><summary>Profile <span class=\"dim\">");
    html_puts(t->b, p->source);
    buf_puts(t->b, "</span></summary><pre class=\"quote\">");
    html_puts(t->b, p->text);
    buf_puts(t->b, "</pre></details>");
}

/* ---- prompts and replies ---------------------------------------------------- */

/* The call, from 0, in which this message was sent first. */
static size_t first_sent(const struct run_history *h, size_t call, size_t message)
{
    struct text t = h->calls[call].messages[message].content;

    for (size_t i = 0; i < call; i++)
        if (message < h->calls[i].message_count &&
            text_equal(h->calls[i].messages[message].content, t))
            return i;
    return call;
}

static void put_messages(struct at *t, size_t call)
{
    const struct call_record *c = &t->f->h->calls[call];

    for (size_t i = 0; i < c->message_count; i++) {
        size_t first = first_sent(t->f->h, call, i);
        buf_puts(t->b, "<h5>");
        html_puts(t->b, c->messages[i].role);
        buf_puts(t->b, "</h5>");
        if (first != call) {
            buf_printf(t->b,
                       "<p class=\"dim\">The same %s bytes as in <a href=\"#call-%zu\">call "
                       "%zu</a>.</p>",
                       count_text((int64_t)c->messages[i].content.len, t->a), first + 1, first + 1);
            continue;
        }
        buf_puts(t->b, "<pre class=\"quote\">");
        html_add(t->b, c->messages[i].content);
        buf_puts(t->b, "</pre>");
    }
}

static void put_call_figures(struct at *t, const struct call_record *c)
{
    const struct reply *r = &c->reply;

    html_puts(t->b, r->model);
    buf_printf(t->b, ", %s", ms_text(r->latency_ms, t->a));
    if (r->prompt_tokens >= 0)
        buf_printf(t->b, ", %s tokens in", count_text(r->prompt_tokens, t->a));
    if (r->cached_tokens > 0)
        buf_printf(t->b, " (%s cached)", count_text(r->cached_tokens, t->a));
    if (r->output_tokens >= 0)
        buf_printf(t->b, ", %s out", count_text(r->output_tokens, t->a));
    if (r->cost_usd > 0)
        buf_printf(t->b, ", %s", money_text(r->cost_usd, t->a));
    if (r->retries)
        buf_printf(t->b, ", %d retr%s", r->retries, r->retries == 1 ? "y" : "ies");
    if (r->finish_reason && *r->finish_reason && strcmp(r->finish_reason, "stop") != 0) {
        buf_puts(t->b, ", ended by ");
        html_puts(t->b, r->finish_reason);
    }
}

static void put_call(struct at *t, size_t i)
{
    const struct call_record *c = &t->f->h->calls[i];

    buf_printf(t->b,
               "<details class=\"more\" id=\"call-%zu\"><summary>Call %zu: %s <span "
               "class=\"dim\">",
               i + 1, i + 1, stage_names[c->stage]);
    put_call_figures(t, c);
    buf_puts(t->b, "</span></summary>");
    put_messages(t, i);
    buf_puts(t->b, "<h5>reply</h5><pre class=\"quote reply\">");
    html_add(t->b, c->reply.text);
    buf_puts(t->b, "</pre></details>");
}

static void put_calls(struct at *t, int attempt)
{
    for (size_t i = 0; i < t->f->h->call_count; i++)
        if (t->f->h->calls[i].attempt == attempt)
            put_call(t, i);
}

/* ---- the table --------------------------------------------------------------- */

static void put_attempt(struct at *t, const struct attempt_record *r)
{
    buf_printf(t->b, "<details class=\"row%s\" id=\"attempt-%d\">",
               r->candidate.repair ? " sub" : "", r->candidate.attempt);
    put_row(t, r);
    buf_puts(t->b, "<div class=\"inside\">");
    put_judgement(t, r);
    put_figures(t, r);
    put_change(t, r);
    put_profile(t, r->profile);
    put_calls(t, r->candidate.attempt);
    buf_puts(t->b, "</div></details>");
}

/* Replies without an attempt: the model said STOP, or the run was interrupted. */
static void put_unused_calls(struct at *t)
{
    bool any = false;

    for (size_t i = 0; i < t->f->h->call_count; i++) {
        if (attempt_find(t->f->h, t->f->h->calls[i].attempt))
            continue;
        if (!any)
            buf_puts(t->b, "<div class=\"after\"><h4>After the last attempt</h4>");
        any = true;
        put_call(t, i);
    }
    if (any)
        buf_puts(t->b, "</div>");
}

static void put_head(struct buf *b, const char *mark)
{
    buf_printf(b,
               "<p class=\"hint\">Each row opens to its change, verdict, evidence, prompt and "
               "reply. <button type=\"button\" id=\"open-all\" hidden>open all</button></p>"
               "<div class=\"rows\"><div class=\"head\"><span class=\"num\">depth</span>"
               "<span>change</span><span>verdict</span><span class=\"num build\">build</span>"
               "<span class=\"num\">time%s</span><span class=\"num gain\">step%s</span>"
               "<span class=\"roof\">of roofline%s</span></div>",
               mark, mark, mark);
}

void depths_section(struct buf *b, const struct facts *f, struct arena *a)
{
    struct at t = {.b = b, .f = f, .a = a};

    buf_puts(b, "<section id=\"depths\"><h2>Depths</h2>");
    if (!f->h->attempt_count)
        buf_puts(b, "<p class=\"dim\">No attempt has begun.</p>");
    else
        put_head(b, modelled_mark(f->modelled));
    for (size_t i = 0; i < f->h->attempt_count; i++)
        put_attempt(&t, &f->h->attempts[i]);
    if (f->h->attempt_count)
        buf_puts(b, "</div>");
    if (f->modelled) {
        buf_printf(b, "<p class=\"note\"><span class=\"mod\">*</span> %s for ",
                   modelled_words(f->h->device.models));
        html_puts(b, f->h->device.models ? f->h->device.models : "a GPU");
        buf_puts(b, " from what simt counted; run on a GPU to measure.</p>");
    }
    put_unused_calls(&t);
    buf_puts(b, "</section>");
}
