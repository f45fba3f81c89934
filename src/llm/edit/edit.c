/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edit.c - from a reply to a changed source: choose the blocks, check all edits, apply.
 *
 * Hides which of several blocks counts (docs/edits.md):
 * 1. Blocks in reasoning count only if there is no edit outside it.
 * 2. The last block with edits decides the format; blocks of other formats are
 *    left out and the note says so.
 * 3. All SEARCH/REPLACE and diff blocks count. Of several JSON lists only the last counts, with the
 *    single objects that follow it.
 * 4. Without a fenced edit, the prose itself is searched.
 */
#include "llm/edit/edit.h"

#include "base/text.h"
#include "llm/edit/edit_parse.h"
#include "llm/edit/fence.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_OPS = 20000, REASON_LIMIT = 8192 };

const char *const edit_status_names[3] = {"applied", "nothing", "rejected"};
const char *const edit_format_names[4] = {"none", "json", "search/replace", "diff"};

/* ---- called by the parsers ------------------------------------------------- */

void edit_set_add(struct edit_set *set, struct edit_op op)
{
    if (set->count == MAX_OPS) {
        edit_set_fail(set, op.number, "is one too many (the limit is %d)", MAX_OPS);
        return;
    }
    set->ops = arena_grow(set->arena, set->ops, set->count, &set->cap, sizeof(*set->ops));
    op.block = set->block;
    set->ops[set->count++] = op;
}

void edit_set_add_quoted(struct edit_set *set, int number, size_t line, const struct text *old,
                         size_t old_count, const struct text *new_lines, size_t new_count)
{
    size_t front = 0, back = 0;

    while (front < old_count && front < new_count && text_equal(old[front], new_lines[front]))
        front++;
    while (back < old_count - front && back < new_count - front &&
           text_equal(old[old_count - 1 - back], new_lines[new_count - 1 - back]))
        back++;
    edit_set_add(set, (struct edit_op){
                          .number = number,
                          .line = line + front,
                          .count = old_count - front - back,
                          .new_lines = new_lines ? new_lines + front : NULL,
                          .new_count = new_count - front - back,
                      });
}

void edit_set_fail(struct edit_set *set, int number, const char *fmt, ...)
{
    va_list ap;

    if (set->reasons.len)
        buf_putc(&set->reasons, '\n');
    if (number)
        buf_printf(&set->reasons, "edit %d: ", number);
    va_start(ap, fmt);
    buf_vprintf(&set->reasons, fmt, ap);
    va_end(ap);
}

void edit_set_note(struct edit_set *set, const char *fmt, ...)
{
    va_list ap;

    if (set->notes.len)
        buf_puts(&set->notes, "; ");
    va_start(ap, fmt);
    buf_vprintf(&set->notes, fmt, ap);
    va_end(ap);
}

static int clip(struct text t)
{
    return (int)(t.len < 100 ? t.len : 100);
}

void edit_fail_found(struct edit_set *set, int number, const char *what, const struct text *want,
                     size_t hint, struct edit_found f)
{
    if (f.how == FOUND_TWICE) {
        edit_set_fail(set, number,
                      "%s stand%s at line %zu and at line %zu; quote more lines, so that one "
                      "place is left",
                      what, strcmp(what, "old_code") == 0 ? "s" : "", f.line, f.other);
        return;
    }
    edit_set_fail(set, number, "%s not found in the source (it begins \"%.*s\")", what,
                  clip(want[0]), want[0].data);
    if (hint >= 1 && hint <= set->source->count) {
        struct text is = set->source->lines[hint - 1].text;

        buf_printf(&set->reasons, "; line %zu is \"%.*s\"", hint, clip(is), is.data);
    }
}

/* ---- checks over all edits ------------------------------------------------- */

static int op_compare(const void *x, const void *y)
{
    const struct edit_op *p = x, *q = y;

    if (p->line != q->line)
        return p->line < q->line ? -1 : 1;
    if ((p->count == 0) != (q->count == 0))
        /* an insertion before a line comes before the line's change */
        return p->count == 0 ? -1 : 1;
    return p->number < q->number ? -1 : p->number > q->number;
}

static bool op_same(const struct edit_op *p, const struct edit_op *q)
{
    if (p->line != q->line || p->count != q->count || p->new_count != q->new_count)
        return false;
    for (size_t i = 0; i < p->new_count; i++)
        if (!text_equal(p->new_lines[i], q->new_lines[i]))
            return false;
    return true;
}

static void check_ranges(struct edit_set *set)
{
    size_t total = set->source->count;

    for (size_t i = 0; i < set->count; i++) {
        const struct edit_op *op = &set->ops[i];

        if (op->line < 1)
            edit_set_fail(set, op->number, "line 0: lines are counted from 1");
        else if (op->count == 0 && op->line > total + 1)
            edit_set_fail(set, op->number, "inserts before line %zu of %zu", op->line, total);
        else if (op->count == 1 && op->line > total)
            edit_set_fail(set, op->number, "line %zu of %zu", op->line, total);
        else if (op->count && (op->line > total || op->count > total - (op->line - 1)))
            edit_set_fail(set, op->number, "lines %zu-%zu of %zu", op->line,
                          op->line + op->count - 1, total);
    }
}

/* Sorts edits, drops repetitions in a second block, and finds edits that touch the same lines. */
static void check_overlaps(struct edit_set *set)
{
    size_t kept = 0, busy_to = 0; /* lines below busy_to are already edited */
    int busy_by = 0;

    if (set->count)
        qsort(set->ops, set->count, sizeof(*set->ops), op_compare);
    for (size_t i = 0; i < set->count; i++) {
        struct edit_op *op = &set->ops[i];
        bool again = false;

        for (size_t k = kept; k-- > 0 && set->ops[k].line == op->line && !again;)
            again = set->ops[k].block != op->block && op_same(&set->ops[k], op);
        if (again) {
            edit_set_note(set, "edit %d repeats another block's and counts once", op->number);
            continue;
        }
        if (op->line < busy_to)
            edit_set_fail(set, op->number, "touches line %zu, which edit %d changes too", op->line,
                          busy_by);
        if (op->count && op->line + op->count > busy_to) {
            busy_to = op->line + op->count;
            busy_by = op->number;
        }
        set->ops[kept++] = *op;
    }
    set->count = kept;
}

/* ---- applying --------------------------------------------------------------- */

static struct text assemble(const struct edit_set *set, struct text old, struct edit_result *out)
{
    const struct edit_source *s = set->source;
    size_t limit = old.len + 64, at = 0;
    bool ends = old.len == 0 || old.data[old.len - 1] == '\n';
    struct buf b;
    struct text t;

    for (size_t i = 0; i < set->count; i++)
        for (size_t k = 0; k < set->ops[i].new_count; k++)
            limit += set->ops[i].new_lines[k].len + 2;
    limit += 2 * s->count;
    b = buf_init(limit);
    for (size_t i = 0; i <= set->count; i++) {
        size_t until = i < set->count ? set->ops[i].line - 1 : s->count;

        for (; at < until; at++) {
            struct text end = s->lines[at].end.len ? s->lines[at].end : s->eol;

            buf_add(&b, s->lines[at].text.data, s->lines[at].text.len);
            buf_add(&b, end.data, end.len);
        }
        if (i == set->count)
            break;
        for (size_t k = 0; k < set->ops[i].new_count; k++) {
            buf_add(&b, set->ops[i].new_lines[k].data, set->ops[i].new_lines[k].len);
            buf_add(&b, s->eol.data, s->eol.len);
        }
        at += set->ops[i].count;
        out->lines_removed += (int)set->ops[i].count;
        out->lines_added += (int)set->ops[i].new_count;
    }
    if (!ends && b.len) { /* the source has no final newline, so the result has none */
        size_t cut = b.len >= 2 && b.data[b.len - 2] == '\r' && b.data[b.len - 1] == '\n' ? 2 : 1;

        b.len -= cut;
    }
    t = buf_copy(&b, set->arena);
    buf_release(&b);
    return t;
}

static const char *describe_changes(const struct edit_set *set)
{
    struct buf b = buf_init(400);
    const char *s;

    buf_printf(&b, "%zu edit%s:", set->count, set->count == 1 ? "" : "s");
    for (size_t i = 0; i < set->count && b.len < 300; i++) {
        const struct edit_op *op = &set->ops[i];

        buf_puts(&b, i ? ", " : " ");
        if (op->count == 0)
            buf_printf(&b, "before line %zu", op->line);
        else if (op->count == 1)
            buf_printf(&b, "line %zu", op->line);
        else
            buf_printf(&b, "lines %zu-%zu", op->line, op->line + op->count - 1);
    }
    s = buf_copy(&b, set->arena).data;
    buf_release(&b);
    return s;
}

/* ---- which blocks ----------------------------------------------------------- */

static enum edit_format format_of(struct text block)
{
    if (edit_search_is(block))
        return EDIT_SEARCH;
    if (edit_json_is(block))
        return EDIT_JSON;
    return edit_diff_is(block) ? EDIT_DIFF : EDIT_NONE;
}

static void read_block(struct edit_set *set, enum edit_format format, struct text block)
{
    set->block++;
    if (format == EDIT_JSON)
        edit_json_read(set, block);
    else if (format == EDIT_SEARCH)
        edit_search_read(set, block);
    else
        edit_diff_read(set, block);
}

/* Reads the fenced blocks inside or outside reasoning; EDIT_NONE: none has edits. */
static enum edit_format read_fenced(struct edit_set *set, struct fence_list list, bool reasoning)
{
    enum edit_format format = EDIT_NONE, *kinds;
    size_t begin = 0, left_out = 0;

    kinds = arena_array(set->arena, list.count + 1, sizeof(*kinds));
    for (size_t i = 0; i < list.count; i++) {
        if (list.items[i].reasoning != reasoning)
            continue;
        kinds[i] = format_of(list.items[i].body);
        if (kinds[i] != EDIT_NONE)
            format = kinds[i];
    }
    if (format == EDIT_NONE)
        return format;
    for (size_t i = 0; i < list.count; i++)
        if (format == EDIT_JSON && kinds[i] == EDIT_JSON && edit_json_is_list(list.items[i].body))
            begin = i;
    for (size_t i = 0; i < list.count; i++) {
        if (kinds[i] == format && i >= begin)
            read_block(set, format, list.items[i].body);
        else
            left_out += kinds[i] != EDIT_NONE;
    }
    if (left_out)
        edit_set_note(set, "%zu other block%s of edits left out: the last one counts", left_out,
                      left_out == 1 ? "" : "s");
    return format;
}

/* The reply without its fenced blocks: this text may contain edits without a fence. */
static struct text prose_of(struct text reply, struct fence_list list, struct arena *a)
{
    struct buf b = buf_init(reply.len + list.count + 1);
    size_t at = 0;
    struct text t;

    for (size_t i = 0; i < list.count; i++) {
        if (list.items[i].begin < at)
            continue;
        buf_add(&b, reply.data + at, list.items[i].begin - at);
        buf_putc(&b, '\n');
        at = list.items[i].end;
    }
    buf_add(&b, reply.data + at, reply.len - at);
    t = buf_copy(&b, a);
    buf_release(&b);
    return t;
}

/* Reads edits without a fence. A fence inside code quoted by a SEARCH block or diff may have been
 * taken for a block of the reply, so these two formats search the whole reply. */
static enum edit_format read_unfenced(struct edit_set *set, struct text reply,
                                      struct fence_list list)
{
    struct text prose = prose_of(reply, list, set->arena), json;

    if (edit_search_is(prose)) {
        read_block(set, EDIT_SEARCH, reply);
        return EDIT_SEARCH;
    }
    if (edit_diff_is(prose)) {
        read_block(set, EDIT_DIFF, prose);
        return EDIT_DIFF;
    }
    if (edit_json_unfenced(prose, &json)) {
        read_block(set, EDIT_JSON, json);
        return EDIT_JSON;
    }
    return EDIT_NONE;
}

static void judge(struct edit_set *set, struct text source, struct edit_result *out)
{
    struct text changed;

    if (!set->reasons.len)
        check_ranges(set);
    if (!set->reasons.len)
        check_overlaps(set);
    if (!set->reasons.len && set->count == 0) {
        out->status = EDIT_NOTHING;
        out->reason = "the list of edits is empty";
        return;
    }
    if (!set->reasons.len) {
        changed = assemble(set, source, out);
        if (!text_equal(changed, source)) {
            out->status = EDIT_APPLIED;
            out->source = changed;
            out->reason = "";
            out->changes = describe_changes(set);
            return;
        }
        edit_set_fail(set, 0, "no effect: these edits leave the source unchanged");
        out->lines_added = out->lines_removed = 0;
    }
    out->status = EDIT_REJECTED;
    out->reason = text_clean(buf_copy(&set->reasons, set->arena), set->arena).data;
}

void edit_apply(struct text source, struct text reply, struct arena *a, struct edit_result *out)
{
    struct edit_source lines = edit_source_of(source, a);
    struct edit_set set = {.source = &lines, .arena = a};
    struct fence_list list = fence_find(reply, a);

    memset(out, 0, sizeof(*out));
    out->source = source;
    out->changes = "";
    set.reasons = buf_init(REASON_LIMIT);
    set.notes = buf_init(REASON_LIMIT);
    out->format = read_fenced(&set, list, false);
    if (out->format == EDIT_NONE)
        out->format = read_unfenced(&set, reply, list);
    if (out->format == EDIT_NONE)
        out->format = read_fenced(&set, list, true);
    if (out->format == EDIT_NONE) {
        out->status = EDIT_NOTHING;
        out->reason = "no edits in the reply: no fenced block has JSON edits, SEARCH/REPLACE "
                      "blocks or a unified diff";
    } else {
        judge(&set, source, out);
    }
    out->edits = set.edits;
    out->note = text_clean(buf_copy(&set.notes, a), a).data;
    buf_release(&set.reasons);
    buf_release(&set.notes);
}

json_t *edit_json(const struct edit_result *r)
{
    json_t *o = json_object();

    json_object_set_new(o, "status", json_string(edit_status_names[r->status]));
    json_object_set_new(o, "format", json_string(edit_format_names[r->format]));
    json_object_set_new(o, "edits", json_integer(r->edits));
    json_object_set_new(o, "reason", json_string(r->reason));
    json_object_set_new(o, "changes", json_string(r->changes));
    json_object_set_new(o, "note", json_string(r->note));
    json_object_set_new(o, "lines_added", json_integer(r->lines_added));
    json_object_set_new(o, "lines_removed", json_integer(r->lines_removed));
    return o;
}
