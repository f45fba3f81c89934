/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verdict_text.c - the texts of verdicts; see verdict_text.h.
 *
 * Every text says, in this order: what, where (the user's own line, quoted), how often, and what
 * was observed.
 */
#include "eval/verdict_text.h"

#include "base/buf.h"
#include "base/json.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { DETAIL_LIMIT = 16 << 10, SHOWN_FINDINGS = 8, SHOWN_WORST = 8 };

const char *words_source_line(struct text source, int line, struct arena *a)
{
    struct text t = text_trim(text_line(source, line));

    return arena_strndup(a, t.data, t.len);
}

static bool in_header(const char *file)
{
    size_t len = strlen(file);

    return len >= 3 && strcmp(file + len - 3, ".cu") != 0 && strcmp(file + len - 3, ".py") != 0;
}

/* "my.cu:87": the user's name for the candidate's file, a header's own name otherwise. */
static const char *where(const struct evidence *e, const char *file, int line)
{
    if (line <= 0)
        return "";
    return arena_printf(e->a, "%s:%d", in_header(file) ? file : e->source_name, line);
}

/* ---- findings ----------------------------------------------------------- */

void words_finding(const struct evidence *e, const struct seen *s, struct finding *out)
{
    struct buf b = buf_init(4096);

    out->kind = s->name;
    out->where = where(e, s->file, s->line);
    out->line = in_header(s->file) ? "" : words_source_line(e->source, s->line, e->a);
    buf_puts(&b, s->text);
    if (*s->block || *s->thread)
        buf_printf(&b, "%s%s%s%s%s", b.len ? "; " : "", *s->block ? "block " : "", s->block,
                   *s->thread ? " thread " : "", s->thread);
    if (s->other_line > 0)
        buf_printf(&b, "; the other side: %s%s%s: %s", where(e, s->file, s->other_line),
                   *s->other_thread ? ", thread " : "", s->other_thread,
                   words_source_line(e->source, s->other_line, e->a));
    if (*s->path)
        buf_printf(&b, "; inside %s", s->path);
    if (*s->callers)
        buf_printf(&b, "; called from %s", s->callers);
    if (s->count > 1)
        buf_printf(&b, "; seen %" PRId64 " times", s->count);
    out->text = buf_copy(&b, e->a).data;
    buf_release(&b);
}

static const struct seen *first_of(const struct evidence *e, enum verdict_kind kind)
{
    for (int i = 0; i < e->seen_count; i++)
        if (e->seen[i].verdict == kind)
            return &e->seen[i];
    return NULL;
}

static void add_findings(const struct evidence *e, struct buf *b)
{
    int shown = e->seen_count < SHOWN_FINDINGS ? e->seen_count : SHOWN_FINDINGS;

    for (int i = 0; i < shown; i++) {
        struct finding f;

        words_finding(e, &e->seen[i], &f);
        buf_printf(b, "%s%s%s%s%s\n", f.kind, *e->seen[i].kernel ? " in " : "", e->seen[i].kernel,
                   *f.where ? " at " : "", f.where);
        if (*f.line)
            buf_printf(b, "    %s\n", f.line);
        if (*f.text)
            buf_printf(b, "    %s\n", f.text);
    }
    if (e->seen_count + e->seen_more > shown)
        buf_printf(b, "and %d more findings\n", e->seen_count + e->seen_more - shown);
}

/* ---- comparisons -------------------------------------------------------- */

/* "y (64, 8192) f32" */
static const char *output_text(const struct evidence *e, int index, const char *name)
{
    const struct tensor_info *t = &e->task->out[index];
    const char *shape = "";

    if (index >= e->task->out_count)
        return name;
    for (int i = 0; i < t->dims; i++)
        shape = arena_printf(e->a, "%s%s%" PRId64, shape, i ? ", " : "", t->shape[i]);
    return arena_printf(e->a, "out%d '%s' (%s) %s", index, name, shape, t->dtype);
}

static void add_worst(const struct comparison *c, struct buf *b)
{
    if (c->worst_count == 0)
        return;
    buf_puts(b, "    worst elements: [index] expected -> got\n");
    for (int i = 0; i < c->worst_count && i < SHOWN_WORST; i++) {
        const struct worst_element *w = &c->worst[i];

        buf_puts(b, "      [");
        for (int k = 0; k < w->dims; k++)
            buf_printf(b, "%s%" PRId64, k ? ", " : "", w->index[k]);
        buf_printf(b, "] %.9g -> %.9g\n", w->expected, w->got);
    }
}

static void add_output(const struct evidence *e, int index, struct buf *b)
{
    const struct comparison *c = &e->worst->outputs[index];
    const struct accuracy *acc = &c->accuracy;

    if (c->wrong == 0 && c->nan == 0 && c->inf == 0 && c->unwritten == 0 && !c->imprecise)
        return;
    buf_printf(b, "%s, inputs %s:\n", output_text(e, index, c->name), e->worst_distribution);
    if (c->unwritten > 0)
        buf_printf(b, "    %" PRId64 " of %" PRId64 " elements were never written\n", c->unwritten,
                   c->elements);
    if (c->nan > 0 || c->inf > 0)
        buf_printf(b,
                   "    %" PRId64 " NaN and %" PRId64 " infinite where the reference has numbers\n",
                   c->nan, c->inf);
    if (c->wrong > 0)
        buf_printf(b, "    %" PRId64 " of %" PRId64 " elements are wrong (rtol %.3g, atol %.3g)\n",
                   c->wrong, c->elements, c->rtol, c->atol);
    if (*c->pattern)
        buf_printf(b, "    pattern: %s\n", c->pattern);
    if (c->nan + c->inf + c->unwritten < c->elements)
        buf_printf(b,
                   "    error%s against float64: max %.3g absolute, %.3g relative, rms %.3g; the "
                   "reference's own: %.3g, %.3g, rms %.3g\n",
                   c->nan + c->inf + c->unwritten > 0 ? " of the finite elements" : "",
                   acc->max_abs, acc->max_rel, acc->rms_rel, acc->reference_max_abs,
                   acc->reference_max_rel, acc->reference_rms_rel);
    add_worst(c, b);
}

static void add_comparison(const struct evidence *e, struct buf *b)
{
    const struct comparison_set *set = e->worst;

    if (!set)
        return;
    for (int i = 0; i < set->guard_count; i++)
        buf_printf(b, "%" PRId64 " bytes %s %s were overwritten\n", set->guards[i].bytes,
                   set->guards[i].side, set->guards[i].buffer);
    for (int i = 0; i < set->modified_count; i++)
        buf_printf(b, "input %s was changed\n", set->inputs_modified[i]);
    for (int i = 0; i < set->output_count; i++)
        add_output(e, i, b);
}

/* The plan line of the launch that failed, quoted. */
static void add_fatal(const struct evidence *e, struct buf *b)
{
    const json_t *op = json_array_get(json_object_get(e->launches, "ops"),
                                      e->fatal_op >= 0 ? (size_t)e->fatal_op : SIZE_MAX);
    int line = (int)json_int_or(op, "line", 0);
    const char *quoted = words_source_line(e->source, line, e->a);

    buf_printf(b, "%s\n", e->fatal_text);
    if (*quoted)
        buf_printf(b, "    %s\n    %s\n", where(e, "", line), quoted);
}

const char *words_detail(const struct evidence *e, enum verdict_kind kind)
{
    struct buf b = buf_init(DETAIL_LIMIT);
    const char *text;
    bool some = false;

    if (kind == VERDICT_PASS)
        return "";
    if (e->fatal != VERDICT_PASS)
        add_fatal(e, &b);
    add_findings(e, &b);
    add_comparison(e, &b);
    for (int i = VERDICT_PASS + 1; i < VERDICT_COUNT; i++) {
        if (e->draws_with[i] == 0)
            continue;
        buf_printf(&b, "%s%s in %d", some ? ", " : "seen: ", verdict_names[i], e->draws_with[i]);
        some = true;
    }
    if (some)
        buf_printf(&b, " of %d draw%s\n", e->draws, e->draws == 1 ? "" : "s");
    if (e->stopped > 0)
        buf_printf(&b,
                   "the kernel was stopped in %d of %d draw%s because it could not go on: its "
                   "outputs there are not judged\n",
                   e->stopped, e->draws, e->draws == 1 ? "" : "s");
    text = buf_copy(&b, e->a).data;
    buf_release(&b);
    return text;
}

/* ---- one line ----------------------------------------------------------- */

/* Adds up the outputs of the gravest draw. */
static void totals(const struct evidence *e, struct comparison *sum)
{
    memset(sum, 0, sizeof *sum);
    for (int i = 0; e->worst && i < e->worst->output_count; i++) {
        const struct comparison *c = &e->worst->outputs[i];

        sum->elements += c->elements;
        sum->wrong += c->wrong;
        sum->nan += c->nan;
        sum->inf += c->inf;
        sum->unwritten += c->unwritten;
        if (!sum->pattern && *c->pattern) {
            sum->pattern = c->pattern;
            sum->relation = c->relation;
        }
    }
}

static const char *finding_summary(const struct evidence *e, const struct seen *s)
{
    const char *at = where(e, s->file, s->line);

    return arena_printf(e->a, "%s%s%s%s%s", s->name, *s->kernel ? " in " : "", s->kernel,
                        *at ? " at " : "", at);
}

static const char *values_summary(const struct evidence *e, enum verdict_kind kind)
{
    static const char said[] = "never written: "; /* the sentence says so already */
    struct comparison sum;
    const char *tail;

    totals(e, &sum);
    if (kind == VERDICT_NOT_WRITTEN && sum.pattern && !strncmp(sum.pattern, said, strlen(said)))
        sum.pattern += strlen(said);
    tail = sum.pattern ? arena_printf(e->a, ": %s", sum.pattern) : "";
    if (kind == VERDICT_NOT_WRITTEN)
        return arena_printf(e->a, "%" PRId64 " of %" PRId64 " output elements were never written%s",
                            sum.unwritten, sum.elements, tail);
    if (kind == VERDICT_NON_FINITE)
        return arena_printf(
            e->a, "%" PRId64 " NaN and %" PRId64 " infinite of %" PRId64 " output elements%s",
            sum.nan, sum.inf, sum.elements, tail);
    if (kind == VERDICT_IMPRECISE)
        return arena_printf(e->a, "rms error %.3g, the reference's own is %.3g",
                            e->accuracy.rms_rel, e->accuracy.reference_rms_rel);
    return arena_printf(e->a, "%" PRId64 " of %" PRId64 " output elements are wrong%s", sum.wrong,
                        sum.elements, tail);
}

const char *words_summary(const struct evidence *e, enum verdict_kind kind)
{
    const struct seen *s = first_of(e, kind);

    if (kind == VERDICT_PASS)
        return arena_printf(
            e->a, "%d draw%s of %d distributions, max relative error %.3g (reference %.3g)",
            e->draws, e->draws == 1 ? "" : "s", e->distribution_count, e->accuracy.max_rel,
            e->accuracy.reference_max_rel);
    if (s) /* a finding has a source line; an outcome has none */
        return finding_summary(e, s);
    if (kind == e->fatal)
        return e->fatal_text;
    if (kind == VERDICT_GUARD_HIT && e->worst && e->worst->guard_count > 0)
        return arena_printf(e->a, "%" PRId64 " bytes %s %s were overwritten",
                            e->worst->guards[0].bytes, e->worst->guards[0].side,
                            e->worst->guards[0].buffer);
    if (kind == VERDICT_INPUT_MODIFIED && e->worst && e->worst->modified_count > 0)
        return arena_printf(e->a, "input %s was changed", e->worst->inputs_modified[0]);
    return values_summary(e, kind);
}

/* ---- what to try -------------------------------------------------------- */

static const char *const plain_advice[VERDICT_COUNT] = {
    [VERDICT_BAD_LAUNCH] = "make the launch in the plan agree with the kernel's parameters and the "
                           "device's limits",
    [VERDICT_CRASH] = "check every index against the tensor's extents, alignment of vector "
                      "accesses, and shared memory sizes; simt (--device simt) names the line",
    [VERDICT_HANG] = "look for a loop that does not end, or a barrier that not every thread "
                     "of the block reaches",
    [VERDICT_OUT_OF_MEMORY] = "request less workspace",
    [VERDICT_UNSAFE_MEMORY] = "bound the index (tails of the last tile, row ends), or align the "
                              "vector access",
    [VERDICT_RACE] = "synchronise between the two accesses, or give each its own buffer",
    [VERDICT_GUARD_HIT] = "predicate the stores of the last tile: they reach past the output",
    [VERDICT_INPUT_MODIFIED] = "inputs are read-only: write to the output or to a workspace",
    [VERDICT_NOT_WRITTEN] = "check that the grid covers every element, also when the size is no "
                            "multiple of the tile",
    [VERDICT_NON_FINITE] = "look for uninitialised accumulators, exp() without subtracting the "
                           "maximum, division by zero, and sums over elements out of bounds",
    [VERDICT_WRONG_VALUES] =
        "compare the worst elements' indices with the tiling and their values with the formula",
    [VERDICT_IMPRECISE] =
        "accumulate in float32, split fp32 products (not TF32), sum pairwise, and "
        "avoid approximate functions where they cost accuracy",
};

/* Advice that follows from how the outputs differ. */
static const char *relation_advice(const struct evidence *e)
{
    static const char *const advice[] = {
        [RELATION_FACTOR] =
            "the elements are all off by the same factor: look for a scale that is missing, "
            "applied twice or inverted; their indices are right",
        [RELATION_OFFSET] = "the elements are all off by the same amount: look for a term that is "
                            "missing or added twice; their indices are right",
        [RELATION_ZEROS] = "zeros were stored: look for a sum that is never added up or a "
                           "predicate that is never true",
        [RELATION_TRANSPOSED] =
            "rows and columns are exchanged: check the strides of the output's layout",
        [RELATION_SHIFTED] = "the index is off by one along that dimension",
        [RELATION_REVERSED] = NULL,
    };
    struct comparison sum;

    totals(e, &sum);
    return advice[sum.relation];
}

const char *words_advice(const struct evidence *e, enum verdict_kind kind)
{
    const struct seen *s = first_of(e, kind);

    if (kind == VERDICT_WRONG_VALUES && relation_advice(e))
        return relation_advice(e);
    if (s && s->kind == FINDING_DIVERGENT_BARRIER)
        return "every thread of the block must reach this barrier: move it out of the branch";
    if (s && s->kind == FINDING_DIVERGENT_COLLECTIVE)
        return "every lane that the mask names must reach it: move it out of the branch, or narrow "
               "the mask";
    if (s && s->kind == FINDING_UNINITIALISED)
        return "write it before it is read: initialise it, or check which threads or tiles were to "
               "fill it";

    if (kind == VERDICT_RACE && s && s->line > 0 && s->other_line > 0 && s->line != s->other_line) {
        int first = s->line < s->other_line ? s->line : s->other_line;
        int last = s->line < s->other_line ? s->other_line : s->line;

        return arena_printf(e->a, "__syncthreads() between lines %d and %d (or a second buffer)",
                            first, last);
    }
    return plain_advice[kind];
}
