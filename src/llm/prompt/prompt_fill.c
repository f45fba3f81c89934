/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prompt_fill.c - the slots that can be known from a request's own data.
 *
 * Every slot is set, with "" for what is not there, so that a template can ask
 * for any of them with {{?slot}}. Lists are cut where a model would stop reading.
 */
#include "base/buf.h"
#include "base/json.h"
#include "llm/edit/edit.h"
#include "llm/prompt/prompt.h"

#include <string.h>

enum {
    TEXT_LIMIT = 1 << 20,
    TASK_LIMIT = 64 << 10,
    GRAPH_LIMIT = 12000,
    DETAIL_LIMIT = 16000,
    LINE_LIMIT = 600, /* of what stands in a sentence */
    HISTORY_SHOWN = 24
};

/* Foreign text in a sentence of ours: one line, not long, and no fence. */
static const char *one_line(const char *s, struct arena *a)
{
    size_t len = s ? strlen(s) : 0, cut = len < LINE_LIMIT ? len : LINE_LIMIT;
    char *out;

    while (cut < len && cut > 0 && ((unsigned char)s[cut] & 0xC0) == 0x80)
        cut--; /* not in the middle of a UTF-8 sequence */
    out = arena_printf(a, "%.*s%s", (int)cut, s ? s : "", cut < len ? " ..." : "");
    for (char *p = out; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            *p = ' ';
    for (char *p = out; (p = strstr(p, "```")) != NULL;)
        memset(p, '\'', 3);
    return out;
}

static struct text limited(struct text t, size_t limit, struct arena *a)
{
    if (t.len <= limit)
        return t;
    return text_of(
        arena_printf(a, "%.*s\n... (%zu more bytes, cut here)", (int)limit, t.data, t.len - limit));
}

static void set_buf(struct prompt_slots *s, const char *name, struct buf *b, struct arena *a)
{
    prompt_set(s, name, buf_copy(b, a));
    buf_release(b);
}

static void add_shape(struct buf *b, int dims, const int64_t *v)
{
    buf_putc(b, '(');
    for (int i = 0; i < dims; i++)
        buf_printf(b, "%s%lld", i ? ", " : "", (long long)v[i]);
    buf_putc(b, ')');
}

/* `array`: how a plan calls them. */
static void add_tensors(struct buf *b, const char *array, const struct tensor_info *t, int count)
{
    for (int i = 0; i < count; i++) {
        buf_printf(b, "%s[%d]  %s  %s  shape ", array, i, t[i].name ? t[i].name : "", t[i].dtype);
        add_shape(b, t[i].dims, t[i].shape);
        buf_puts(b, "  strides ");
        add_shape(b, t[i].dims, t[i].strides);
        if (t[i].role && strcmp(t[i].role, "output") != 0)
            buf_printf(b, "  (%s)", t[i].role);
        buf_putc(b, '\n');
    }
}

static void fill_scalars(struct prompt_slots *s, const json_t *description, bool python,
                         struct arena *a)
{
    const json_t *list = json_object_get(description, "scalars"), *v;
    struct buf b = buf_init(TEXT_LIMIT);
    size_t i;

    json_array_foreach(list, i, v)
    {
        char *value = json_object_get(v, "value") ? json_line(json_object_get(v, "value"), a) : "";

        buf_printf(&b, "%s[%zu]  %s  %s  here %s\n", python ? "p.scalars" : "call->scalar", i,
                   json_string_or(v, "name", ""), json_string_or(v, "type", ""), value);
    }
    set_buf(s, "scalars", &b, a);
}

static void fill_facts(struct prompt_slots *s, const json_t *description, struct arena *a)
{
    const json_t *list = json_object_get(description, "facts"), *v;
    struct buf b = buf_init(TEXT_LIMIT);
    size_t i;

    json_array_foreach(list, i, v)
    {
        if (json_is_string(v))
            buf_printf(&b, "- %s\n", one_line(json_string_value(v), a));
    }
    set_buf(s, "facts", &b, a);
}

static void fill_graph(struct prompt_slots *s, const json_t *description, struct arena *a)
{
    const json_t *list = json_object_get(description, "graph"), *v;
    struct buf b = buf_init(GRAPH_LIMIT);
    size_t i;

    json_array_foreach(list, i, v)
    {
        if (b.len > GRAPH_LIMIT - 2000) {
            buf_puts(&b, "...\n");
            break;
        }
        buf_printf(&b, "%%%lld = %s", (long long)json_int_or(v, "id", -1),
                   json_string_or(v, "op", "?"));
        if (json_array_size(json_object_get(v, "args")))
            buf_printf(&b, " %s", json_line(json_object_get(v, "args"), a));
        if (json_object_get(v, "shape"))
            buf_printf(&b, " -> %s %s", json_string_or(v, "dtype", ""),
                       json_line(json_object_get(v, "shape"), a));
        buf_putc(&b, '\n');
    }
    set_buf(s, "graph", &b, a);
}

static void fill_task(struct prompt_slots *s, const struct task *t, bool python, struct arena *a)
{
    struct buf b = buf_init(TEXT_LIMIT);

    add_tensors(&b, python ? "p.inputs" : "call->in", t->in, t->in_count);
    set_buf(s, "inputs", &b, a);
    b = buf_init(TEXT_LIMIT);
    add_tensors(&b, python ? "p.outputs" : "call->out", t->out, t->out_count);
    set_buf(s, "outputs", &b, a);
    prompt_set_string(s, "task_name", one_line(t->name, a));
    prompt_set(s, "task_source", limited(t->source, TASK_LIMIT, a));
    prompt_set_string(s, "class", class_names[t->class]);
    prompt_set_string(s, "class_evidence", one_line(t->class_evidence, a));
    prompt_set_string(s, "scaled", t->scaled);
    prompt_set_string(s, "bytes_min", arena_printf(a, "%.4g", t->bytes_min));
    prompt_set_string(s, "flops_min", arena_printf(a, "%.4g", t->flops_min));
    fill_scalars(s, t->description, python, a);
    fill_facts(s, t->description, a);
    fill_graph(s, t->description, a);
}

static void fill_device(struct prompt_slots *s, const struct device *d, struct arena *a)
{
    struct buf b = buf_init(4096);

    if (d && d->kind == DEVICE_SIMT)
        buf_printf(&b,
                   "Built for %s and run on simt, a CUDA device in software that checks every "
                   "access; times are %s for the %s. Code for sm_90 alone (wgmma, TMA, "
                   "clusters) needs that architecture.",
                   d->arch, modelled_words(d->models), d->models ? d->models : "GPU");
    else if (d)
        buf_printf(&b, "%s, built for %s.", d->name, d->arch);
    if (d && d->sm_count)
        buf_printf(&b, " %d SMs.", d->sm_count);
    if (d && d->smem_block_bytes)
        buf_printf(&b, " A block may use %lld bytes of shared memory.",
                   (long long)d->smem_block_bytes);
    prompt_set_string(s, "arch", d ? d->arch : "");
    set_buf(s, "device", &b, a);
}

static void fill_current(struct prompt_slots *s, const struct candidate *c, struct arena *a)
{
    prompt_set(s, "source", c ? c->source : text_of(""));
    prompt_set(s, "source_numbered", c ? edit_numbered(c->source, a) : text_of(""));
    prompt_set_string(s, "change", c ? one_line(c->change, a) : "");
}

static void fill_verdict(struct prompt_slots *s, const struct verdict *v, struct arena *a)
{
    struct buf b = buf_init(DETAIL_LIMIT);

    prompt_set_string(s, "verdict", v ? verdict_names[v->kind] : "");
    prompt_set_string(s, "verdict_help", v ? verdict_helps[v->kind] : "");
    prompt_set_string(s, "summary", v ? one_line(v->summary, a) : "");
    prompt_set_string(s, "advice", v ? one_line(v->advice, a) : "");
    for (int i = 0; v && i < v->finding_count; i++) {
        const struct finding *f = &v->findings[i];

        if (finding_is_told(v, f))
            continue;
        buf_printf(&b, "%d. %s%s%s\n", i + 1, f->kind ? f->kind : "", f->where ? " at " : "",
                   f->where ? f->where : "");
        if (f->line && *f->line)
            buf_printf(&b, "       %s\n", f->line);
        if (f->text && *f->text)
            buf_printf(&b, "   %s\n", f->text);
    }
    set_buf(s, "findings", &b, a);
    b = buf_init(DETAIL_LIMIT);
    buf_puts(&b, v && v->detail ? v->detail : "");
    if (b.overflowed)
        b.len = b.len > 40 ? b.len - 40 : 0, buf_puts(&b, "\n... (cut here)");
    set_buf(s, "detail", &b, a);
}

/* What was tried, oldest first; of a long history only the end. */
static void fill_history(struct prompt_slots *s, const json_t *history, struct arena *a)
{
    size_t n = json_array_size(history), from = n > HISTORY_SHOWN ? n - HISTORY_SHOWN : 0;
    struct buf b = buf_init(TEXT_LIMIT);

    if (from)
        buf_printf(&b, "(%zu earlier steps not shown)\n", from);
    for (size_t i = from; i < n; i++) {
        const json_t *h = json_array_get(history, i);
        double us = json_double_or(h, "time_us", -1);

        buf_printf(&b, "- depth %lld: %s: %s", (long long)json_int_or(h, "depth", 0),
                   one_line(json_string_or(h, "change", ""), a), json_string_or(h, "verdict", ""));
        if (json_int_or(h, "repair", 0) > 0)
            buf_printf(&b, " (repair %lld)", (long long)json_int_or(h, "repair", 0));
        if (us >= 0)
            buf_printf(&b, ", %.4g us", us);
        else if (*json_string_or(h, "why", ""))
            buf_printf(&b, ": %.160s", one_line(json_string_or(h, "why", ""), a));
        if (json_is_false(json_object_get(h, "kept")))
            buf_puts(&b, " (not kept)");
        buf_putc(&b, '\n');
    }
    set_buf(s, "history", &b, a);
}

void prompt_fill(const struct request *req, struct arena *a, struct prompt_slots *s)
{
    static const char *const later[] = {"recipe_name", "recipe",   "diagnosis",
                                        "rejected",    "passages", "time"};

    for (size_t i = 0; i < ARRAY_LEN(later); i++)
        prompt_set_string(s, later[i], "");
    prompt_set_string(s, "stage", stage_names[req->stage]);
    if (languages[req->target].python)
        prompt_set_string(s, "python", "yes");
    prompt_set_string(s, languages[req->target].name, "yes");
    if (req->task)
        fill_task(s, req->task, languages[req->target].python, a);
    fill_device(s, req->device, a);
    fill_current(s, req->current, a);
    fill_verdict(s, req->verdict, a);
    prompt_set(s, "profile",
               limited(text_of(req->profile && req->profile->text ? req->profile->text : ""),
                       DETAIL_LIMIT, a));
    prompt_set_string(s, "profile_source", req->profile ? req->profile->source : "");
    fill_history(s, req->history, a);
}
