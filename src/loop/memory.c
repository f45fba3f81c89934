/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c - what other runs of the class learnt on this device, in a few lines for the prompt.
 *
 * Only judged attempts count, with their judged figures. Changes and reasons were written by other
 * models: one line each, of limited length. The text is made once, when a run begins, and stored
 * with it, so that a resumed run sends the same prompt.
 */
#include "base/buf.h"
#include "base/json.h"
#include "base/text.h"
#include "loop/state.h"

#include <string.h>

enum { MAX_TEXT = 4096, MAX_WORDS = 110, GAINS = 4, FAILURES = 3 };

/* Appends one line of printable text, truncated. */
static void put_line(struct buf *b, const char *text)
{
    struct text whole = text_of(text ? text : ""), t = text_cut(whole, MAX_WORDS);

    for (size_t i = 0; i < t.len; i++)
        buf_putc(b, (unsigned char)t.data[i] < ' ' ? ' ' : t.data[i]);
    if (t.len < whole.len)
        buf_puts(b, " ...");
}

static void put_gains(struct buf *b, const struct lessons *l)
{
    for (size_t i = 0; i < l->gain_count && i < GAINS; i++) {
        const struct lesson *g = &l->gains[i];

        buf_printf(b, "- %.2fx (%.4g -> %.4g us, ", g->before_us / g->after_us, g->before_us,
                   g->after_us);
        put_line(b, g->task);
        buf_puts(b, "): ");
        put_line(b, g->change);
        buf_putc(b, '\n');
    }
}

static void put_failures(struct buf *b, const struct lessons *l)
{
    for (size_t i = 0; i < l->failure_count && i < FAILURES; i++) {
        const struct lesson *f = &l->failures[i];

        buf_printf(b, "- failed, %s", f->verdict);
        if (f->times > 1)
            buf_printf(b, " %d times", f->times);
        buf_puts(b, " (");
        put_line(b, f->task);
        buf_puts(b, "): ");
        put_line(b, f->change);
        buf_puts(b, ": ");
        put_line(b, f->why);
        buf_putc(b, '\n');
    }
}

static const char *lessons_text(const struct lessons *l, const struct task *task,
                                const struct device *d, enum language target, struct arena *a)
{
    struct buf b = buf_init(MAX_TEXT);
    bool modelled = d->kind == DEVICE_SIMT;
    const char *text;

    if (!l->gain_count && !l->failure_count && !l->has_best) {
        buf_release(&b);
        return NULL;
    }
    buf_printf(&b,
               "Judged in other runs of the class %s in %s on %s%s%s. They are other kernels: take "
               "what fits.\n",
               class_names[task->class], languages[target].words, modelled ? "simt as " : d->name,
               modelled && d->models ? d->models : "",
               !modelled                       ? ", measured"
               : modelled_validated(d->models) ? ", times modelled"
                                               : ", times modelled, unvalidated");
    put_gains(&b, l);
    put_failures(&b, l);
    if (l->has_best) {
        buf_printf(&b, "The best kernel known of this class reaches %.0f %% of its floor (",
                   100 * l->best.before_us / l->best.after_us);
        put_line(&b, l->best.task);
        buf_puts(&b, ").\n");
    }
    text = b.overflowed ? NULL : buf_copy(&b, a).data;
    buf_release(&b);
    return text;
}

bool memory_read(struct store *store, const struct task *task, const struct device *d,
                 enum language target, const char *not_run, struct arena *a, const char **text,
                 struct error *err)
{
    struct lesson_query want = {.class = class_names[task->class],
                                .device = d->name,
                                .models = d->models ? d->models : "",
                                .target = languages[target].name,
                                .not_run = not_run};
    struct lessons lessons;

    *text = NULL;
    if (!store_lessons(store, &want, a, &lessons, err))
        return false;
    *text = lessons_text(&lessons, task, d, target, a);
    return true;
}

/* Not for a replayed transcript: it must not depend on the contents of this store. */
static bool wants_memory(const struct loop *l)
{
    const char *model = l->settings->model;

    return l->opt.memory && !l->settings->record && strcmp(model, "builtin") != 0 &&
           strncmp(model, "replay:", strlen("replay:")) != 0;
}

bool loop_memory(struct loop *l, struct store *store, struct error *err)
{
    json_t *data;
    bool ok;

    for (size_t i = 0; i < l->past.event_count; i++)
        if (strcmp(l->past.events[i].kind, "memory") == 0)
            l->known = arena_strdup(l->a, json_string_or(l->past.events[i].data, "text", ""));
    if (l->opt.resume_id || !wants_memory(l))
        return true;
    if (!memory_read(store, &l->task, stage_device(l->st), l->settings->target, run_id(l->run),
                     l->a, &l->known, err))
        return false;
    if (!l->known)
        return true;
    data = json_pack("{s:o}", "text", json_from_string(l->known));
    ok = run_event_add(l->run, "memory", data, err);
    json_decref(data);
    return ok;
}
