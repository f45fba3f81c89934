/* SPDX-License-Identifier: Apache-2.0 */
/*
 * facts.c - derived figures, and how figures are written.
 *
 * Invariants
 * 1. A modelled time is compared with modelled times only: baselines were
 *    measured elsewhere, so a modelled run is compared with its depth 0.
 * 2. Only attempts that passed have a time that counts.
 */
#include "report/facts.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

bool attempt_passed(const struct attempt_record *r)
{
    return r->ended_ms && r->outcome.verdict.kind == VERDICT_PASS;
}

double attempt_us(const struct attempt_record *r)
{
    const struct measurement *m = attempt_passed(r) ? r->outcome.measurement : NULL;
    return m && isfinite(m->time_us) && m->time_us > 0 ? m->time_us : 0;
}

const struct attempt_record *attempt_find(const struct run_history *h, int number)
{
    for (size_t i = 0; i < h->attempt_count; i++)
        if (h->attempts[i].candidate.attempt == number)
            return &h->attempts[i];
    return NULL;
}

/* A repair is made from a failed attempt: go back to one with a time. */
const struct attempt_record *attempt_base(const struct run_history *h,
                                          const struct attempt_record *r)
{
    const struct attempt_record *from = attempt_find(h, r->parent);

    while (from && !(attempt_us(from) > 0))
        from = from->parent < from->candidate.attempt ? attempt_find(h, from->parent) : NULL;
    return from;
}

const char *state_text(const struct run_info *r)
{
    return r->state == RUN_RUNNING && !r->alive ? "killed" : run_state_names[r->state];
}

static void sum_call(struct stage_sum *s, const struct call_record *c)
{
    const struct reply *p = &c->reply;

    s->calls++;
    s->retries += p->retries;
    s->ms += p->latency_ms;
    s->prompt_tokens += p->prompt_tokens > 0 ? p->prompt_tokens : 0;
    s->cached_tokens += p->cached_tokens > 0 ? p->cached_tokens : 0;
    s->output_tokens += p->output_tokens > 0 ? p->output_tokens : 0;
    if (p->cost_usd >= 0) {
        s->cost_usd += p->cost_usd;
        s->cost_known = true;
    }
}

static void sum_attempt(struct facts *f, const struct attempt_record *r)
{
    const struct attempt_outcome *o = &r->outcome;

    if (r->candidate.depth > f->depth_max)
        f->depth_max = r->candidate.depth;
    if (!r->ended_ms) {
        f->open++;
        return;
    }
    int64_t build = o->build ? o->build->build_ms : 0, test = o->test ? o->test->test_ms : 0;
    int64_t rest = r->ended_ms - r->started_ms - build - test;
    f->build_ms += build;
    f->test_ms += test;
    f->measure_ms += o->measurement && rest > 0 ? rest : 0;
    f->passed += attempt_passed(r);
    f->failed += !attempt_passed(r);
}

static void find_profile(struct facts *f)
{
    const struct run_history *h = f->h;
    int64_t asked =
        json_int_or(h->options, "profile_depth", json_int_or(h->options, "profile_from", -1));

    f->profile_from = -1;
    for (size_t i = 0; i < h->event_count; i++)
        if (strcmp(h->events[i].kind, EVENT_PROFILE_FROM) == 0) {
            f->profile_from = (int)json_int_or(h->events[i].data, "depth", -1);
            return;
        }
    /* A run of an earlier version: the planned depth, if a profile was taken. */
    for (size_t i = 0; i < h->attempt_count; i++) {
        if (!h->attempts[i].profile)
            continue;
        f->profile_from = h->attempts[i].candidate.depth + 1;
        break;
    }
    if (f->profile_from >= 0 && asked > 0 && asked <= f->depth_max)
        f->profile_from = (int)asked;
    if (f->profile_from > f->depth_max)
        f->profile_from = -1; /* no profile was read yet */
}

static double eager_us(const struct attempt_record *r)
{
    const struct measurement *m = r->outcome.measurement;

    for (int i = 0; m && i < m->baseline_count; i++)
        if (m->baselines[i].name && strcmp(m->baselines[i].name, "eager") == 0)
            return m->baselines[i].cold_us > 0 ? m->baselines[i].cold_us : 0;
    return 0;
}

static double compile_us(const struct measurement *m)
{
    double least = 0;

    for (int i = 0; m && i < m->baseline_count; i++)
        if (m->baselines[i].name && strncmp(m->baselines[i].name, "compile", 7) == 0 &&
            m->baselines[i].cold_us > 0 && (least == 0 || m->baselines[i].cold_us < least))
            least = m->baselines[i].cold_us;
    return least;
}

/* The setting under which the task was loaded; older runs, whose settings had no names, say what
 * they allowed. */
static const char *setting_of(const struct run_history *h)
{
    const char *asked = json_string_or(
        h->options, "baseline", json_bool_or(h->options, "allow_tf32", false) ? "tf32" : "strict");

    return json_string_or(h->task.description, "baseline", asked);
}

static void compare_best(struct facts *f)
{
    const struct measurement *m = f->best ? f->best->outcome.measurement : NULL;
    const struct test_result *t = f->best ? f->best->outcome.test : NULL;

    f->setting = setting_of(f->h);
    f->accuracy_class = t && t->accuracy_class ? t->accuracy_class : "";
    f->compile_us = compile_us(m);

    f->trivial = m && m->trivial ? m->trivial : "";
    f->best_us = f->best ? attempt_us(f->best) : 0;
    f->first_us = f->first ? attempt_us(f->first) : 0;
    f->modelled = m && m->modelled;
    f->reference = "the first correct kernel";
    f->reference_us = f->first_us;
    if (f->best && !f->modelled && eager_us(f->best) > 0) {
        f->reference = "PyTorch eager";
        f->reference_us = eager_us(f->best);
    }
    if (*f->trivial)
        return;
    if (f->best_us > 0 && f->reference_us > 0)
        f->speedup = f->reference_us / f->best_us;
    if (f->best_us > 0 && m->floor_us > 0 && isfinite(m->floor_us))
        f->roofline = m->floor_us / f->best_us;
}

struct facts facts_of(const struct run_history *h)
{
    struct facts f = {.h = h, .depth_max = -1};

    for (size_t i = 0; i < h->attempt_count; i++) {
        sum_attempt(&f, &h->attempts[i]);
        if (!f.first && attempt_us(&h->attempts[i]) > 0)
            f.first = &h->attempts[i];
    }
    for (size_t i = 0; i < h->call_count; i++) {
        sum_call(&f.stages[h->calls[i].stage], &h->calls[i]);
        sum_call(&f.all, &h->calls[i]);
    }
    f.best = attempt_find(h, h->info.best_attempt);
    f.model_ms = f.all.ms;
    int64_t end_ms = h->info.ended_ms;
    if (!end_ms && h->info.alive) { /* whole seconds: a page is sent again when it has changed */
        int64_t passed_ms = clock_unix_ms() - h->info.started_ms;
        end_ms = h->info.started_ms + passed_ms / 1000 * 1000;
    } else if (!end_ms && h->attempt_count) {
        const struct attempt_record *last = &h->attempts[h->attempt_count - 1];
        end_ms = last->ended_ms ? last->ended_ms : last->started_ms;
    }
    f.wall_ms = end_ms > h->info.started_ms ? end_ms - h->info.started_ms : 0;
    find_profile(&f);
    compare_best(&f);
    return f;
}

/* ---- writing figures ------------------------------------------------------ */

const char *us_text(double us, const char *micro, struct arena *a)
{
    if (!(us > 0) || !isfinite(us))
        return "\xe2\x80\x93";
    if (us < 1000)
        return arena_printf(a, "%.*f %ss", us < 10 ? 2 : us < 100 ? 1 : 0, us, micro);
    if (us < 1e6)
        return arena_printf(a, "%.*f ms", us < 1e4 ? 3 : us < 1e5 ? 2 : 1, us / 1e3);
    return arena_printf(a, "%.2f s", us / 1e6);
}

const char *ratio_text(double ratio, struct arena *a)
{
    if (!(ratio > 0) || !isfinite(ratio))
        return "\xe2\x80\x93";
    return arena_printf(a, "%.*f", ratio < 10 ? 2 : ratio < 100 ? 1 : 0, ratio);
}

const char *ms_text(int64_t ms, struct arena *a)
{
    if (ms < 1000)
        return arena_printf(a, "%lld ms", (long long)ms);
    if (ms < 100 * 1000)
        return arena_printf(a, "%.1f s", (double)ms / 1000);
    if (ms < 3600 * 1000)
        return arena_printf(a, "%lld min %lld s", (long long)(ms / 60000),
                            (long long)(ms / 1000 % 60));
    return arena_printf(a, "%lld h %lld min", (long long)(ms / 3600000),
                        (long long)(ms / 60000 % 60));
}

const char *error_text(double v, struct arena *a)
{
    if (isnan(v))
        return "nan";
    char *s = arena_printf(a, "%.1e", v);
    char *e = strchr(s, 'e'); /* 2.1e-07 is shortened to 2.1e-7 */
    if (e && (e[1] == '-' || e[1] == '+') && e[2] == '0') {
        if (e[1] == '+')
            memmove(e + 1, e + 3, strlen(e + 3) + 1);
        else
            memmove(e + 2, e + 3, strlen(e + 3) + 1);
    }
    return v == 0 ? "0" : s;
}

const char *count_text(int64_t n, struct arena *a)
{
    char digits[32];
    int len = snprintf(digits, sizeof(digits), "%lld", (long long)n);
    struct buf b = buf_init(128);

    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0 && digits[i - 1] != '-')
            buf_puts(&b, "\xe2\x80\xaf"); /* a narrow space that does not break */
        buf_putc(&b, digits[i]);
    }
    const char *s = buf_copy(&b, a).data;
    buf_release(&b);
    return s;
}

const char *money_text(double usd, struct arena *a)
{
    return arena_printf(a, "$%.*f", usd < 0.01 && usd > 0 ? 4 : usd < 1 ? 3 : 2, usd);
}

const char *shape_text(const struct tensor_info *t, struct arena *a)
{
    struct buf b = buf_init(512);

    buf_putc(&b, '(');
    for (int i = 0; i < t->dims; i++)
        buf_printf(&b, "%s%lld", i ? ", " : "", (long long)t->shape[i]);
    buf_printf(&b, ") %s", t->dtype ? t->dtype : "");
    const char *s = buf_copy(&b, a).data;
    buf_release(&b);
    return s;
}
