/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print.c - print the nouns of model.h for people and as JSON.
 *
 * A modelled time is never shown without its mark. JSON keys are stable:
 * docs/commands.md lists them.
 */
#include "base/fs.h"
#include "base/text.h"
#include "cli/cmd.h"

#include <math.h>
#include <string.h>

const char *paint_on(const struct cli *cli, enum paint p)
{
    static const char *const codes[] = {"", "\033[32m", "\033[31m", "\033[2m", "\033[1m"};

    return cli->colour ? codes[p] : "";
}

const char *paint_off(const struct cli *cli)
{
    return cli->colour ? "\033[0m" : "";
}

void print_json(json_t *v)
{
    if (!v)
        BUG("JSON that could not be built");
    json_dumpf(v, stdout, JSON_COMPACT | JSON_ENCODE_ANY);
    putchar('\n');
    fflush(stdout);
    json_decref(v);
}

const char *show_us(double us, struct arena *a)
{
    if (us <= 0)
        return "-";
    if (us < 1000)
        return arena_printf(a, "%.*f us", us < 10 ? 2 : us < 100 ? 1 : 0, us);
    if (us < 1e6)
        return arena_printf(a, "%.*f ms", us < 1e4 ? 3 : us < 1e5 ? 2 : 1, us / 1e3);
    return arena_printf(a, "%.2f s", us / 1e6);
}

const char *show_shape(const struct tensor_info *t, struct arena *a)
{
    struct buf b = buf_init(512);
    const char *out;

    buf_putc(&b, '(');
    for (int i = 0; i < t->dims; i++)
        buf_printf(&b, "%s%lld", i ? ", " : "", (long long)t->shape[i]);
    buf_printf(&b, ") %s", t->dtype ? t->dtype : "");
    out = buf_copy(&b, a).data;
    buf_release(&b);
    return out;
}

const char *show_device(const struct device *d, struct arena *a)
{
    if (d->kind == DEVICE_SIMT)
        return arena_printf(a, "simt as %s", d->models ? d->models : "no GPU");
    return arena_printf(a, "%s (cuda:%d)", d->name, d->index);
}

/* A path as the user would write it: relative if it is below the working directory. */
const char *short_path(const char *path, struct arena *a)
{
    const char *here = path_absolute(a, ".");
    size_t len = strlen(here);

    if (path && !strncmp(path, here, len) && path[len] == '/')
        return path + len + 1;
    return path;
}

void print_visible(FILE *to, const char *text, size_t len)
{
    struct buf b = buf_init(SIZE_MAX / 2);

    buf_put_visible(&b, text, len);
    fwrite(b.data ? b.data : "", 1, b.len, to);
    buf_release(&b);
}

/* Prints at most `limit` lines of text, each with the same indent. */
static void print_lines(const char *text, const char *indent, int limit)
{
    struct text rest = text_of(text ? text : ""), line;

    while (limit-- > 0 && text_next_line(&rest, &line)) {
        size_t own = 0;

        while (own < line.len && line.data[own] == ' ')
            own++;
        fputs(indent, stdout);
        print_wrapped(stdout, line.data, line.len, (int)strlen(indent),
                      (int)(strlen(indent) + own) + 2);
    }
    if (rest.len)
        printf("%s...\n", indent);
}

static void print_finding(const struct finding *f)
{
    printf("  %s%s", f->kind ? f->kind : "finding", f->where && *f->where ? " at " : "");
    print_visible(stdout, f->where ? f->where : "", f->where ? strlen(f->where) : 0);
    putchar('\n');
    if (f->line && *f->line)
        print_lines(f->line + strspn(f->line, " \t"), "      ", 1);
    print_lines(f->text, "      ", 4);
}

void print_verdict(const struct cli *cli, const struct verdict *v, bool detail)
{
    int shown = v->finding_count < 5 ? v->finding_count : 5;

    printf("%s%s%s\n",
           paint_on(cli, v->kind == VERDICT_PASS         ? PAINT_GOOD
                         : v->kind == VERDICT_UNATTESTED ? PAINT_DIM
                                                         : PAINT_BAD),
           verdict_names[v->kind], paint_off(cli));
    if (v->summary && *v->summary && strcmp(v->summary, verdict_names[v->kind]))
        print_lines(v->summary, "  ", 3);
    for (int i = 0; i < shown; i++)
        if (!detail || !finding_is_told(v, &v->findings[i]))
            print_finding(&v->findings[i]);
    if (v->finding_count > shown && !detail)
        printf("  and %d more: cutegen show last\n", v->finding_count - shown);
    if (detail || !v->finding_count)
        print_lines(v->detail, "  ", detail ? 400 : 24);
    if (v->advice && *v->advice) {
        printf("  try: ");
        print_wrapped(stdout, v->advice, strlen(v->advice), 7, 7);
    }
}

/* ---- JSON ----------------------------------------------------------------- */

json_t *verdict_json(const struct verdict *v)
{
    json_t *findings = json_array();

    for (int i = 0; i < v->finding_count; i++)
        json_array_append_new(findings, json_pack("{s:o, s:o, s:o, s:o}", "kind",
                                                  json_from_string(v->findings[i].kind), "where",
                                                  json_from_string(v->findings[i].where), "line",
                                                  json_from_string(v->findings[i].line), "text",
                                                  json_from_string(v->findings[i].text)));
    return json_pack("{s:s, s:o, s:o, s:o, s:o}", "verdict", verdict_names[v->kind], "summary",
                     json_from_string(v->summary), "detail", json_from_string(v->detail), "advice",
                     json_from_string(v->advice), "findings", findings);
}

/* 0 means that it was not measured: null. */
static json_t *positive(double v)
{
    return v > 0 && isfinite(v) ? json_real(v) : json_null();
}

json_t *measurement_json(const struct measurement *m)
{
    json_t *baselines = json_array();

    if (m->time_us <= 0) {
        json_decref(baselines);
        return json_null();
    }
    for (int i = 0; i < m->baseline_count; i++)
        json_array_append_new(baselines, json_pack("{s:o, s:o, s:o}", "name",
                                                   json_from_string(m->baselines[i].name),
                                                   "cold_us", positive(m->baselines[i].cold_us),
                                                   "warm_us", positive(m->baselines[i].warm_us)));
    return json_pack("{s:f, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:O?, s:b}", "time_us", m->time_us,
                     "modelled", m->modelled, "warm_us", positive(m->warm_us), "spread",
                     positive(m->spread), "floor_us", positive(m->floor_us), "bound",
                     json_from_string(m->bound), "trivial",
                     m->trivial && *m->trivial ? json_from_string(m->trivial) : json_null(),
                     "baselines", baselines, "parts", m->parts, "unvalidated",
                     m->modelled && !modelled_validated(json_string_or(m->parts, "gpu", NULL)));
}

json_t *accuracy_json(const struct accuracy *acc)
{
    static const char *const keys[] = {"max_abs", "max_rel", "rms_rel"};
    const double ours[] = {acc->max_abs, acc->max_rel, acc->rms_rel};
    const double theirs[] = {acc->reference_max_abs, acc->reference_max_rel,
                             acc->reference_rms_rel};
    json_t *v = json_object(), *reference = json_object();

    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        json_object_set_new(v, keys[i], isfinite(ours[i]) ? json_real(ours[i]) : json_null());
        json_object_set_new(reference, keys[i],
                            isfinite(theirs[i]) ? json_real(theirs[i]) : json_null());
    }
    json_object_set_new(v, "reference", reference);
    json_object_set_new(v, "draws", json_integer(acc->draws));
    json_object_set_new(v, "distributions", json_integer(acc->distributions));
    return v;
}

static json_t *tensors_json(const struct tensor_info *t, int count)
{
    json_t *list = json_array();

    for (int i = 0; i < count; i++) {
        json_t *shape = json_array(), *strides = json_array();

        for (int d = 0; d < t[i].dims; d++) {
            json_array_append_new(shape, json_integer(t[i].shape[d]));
            json_array_append_new(strides, json_integer(t[i].strides[d]));
        }
        json_array_append_new(
            list, json_pack("{s:o, s:o, s:o, s:o, s:o}", "name", json_from_string(t[i].name),
                            "role", json_from_string(t[i].role), "dtype",
                            json_from_string(t[i].dtype), "shape", shape, "strides", strides));
    }
    return list;
}

json_t *task_json(const struct task *t)
{
    return json_pack("{s:o, s:o, s:s, s:o, s:o, s:f, s:f, s:o, s:o}", "name",
                     json_from_string(t->name), "path", json_from_string(t->path), "class",
                     class_names[t->class], "evidence", json_from_string(t->class_evidence),
                     "scaled", json_from_string(t->scaled), "bytes_min", t->bytes_min, "flops_min",
                     t->flops_min, "inputs", tensors_json(t->in, t->in_count), "outputs",
                     tensors_json(t->out, t->out_count));
}

json_t *device_json(const struct device *d)
{
    return json_pack("{s:s, s:o, s:o, s:o}", "kind", d->kind == DEVICE_SIMT ? "simt" : "cuda",
                     "name", json_from_string(d->name), "models", json_from_string(d->models),
                     "arch", json_from_string(d->arch));
}
