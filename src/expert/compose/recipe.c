/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recipe.c - read a recipe file and compose it for a set of steps.
 *
 * The head (up to `//! text`) declares facts and steps; the body is kernel
 * text with `if`, `elif`, `else`, `each` and `end` directives and $slots.
 * The body is processed recursively, line by line. A block whose condition is false is processed
 * too, without output, so that the first composition finds a broken directive anywhere.
 *
 * Invariants
 * 1. A name in a condition is a declared fact or step; anything else is an
 *    error with its line, so that a misspelt fact cannot be silently false.
 * 2. A line that was only a slot and became empty is dropped; two blank lines
 *    never follow each other. The result looks hand-written.
 */
#include "expert/compose/recipe.h"

#include "base/buf.h"
#include "base/fs.h"
#include "base/text.h"
#include "expert/compose/format_source.h"
#include "expert/compose/scope.h"

#include <ctype.h>
#include <string.h>

enum { RECIPE_BYTES = 256 * 1024, SOURCE_BYTES = 2 * 1024 * 1024, INCLUDE_DEPTH = 8 };

struct walk {
    const struct recipe *r;
    unsigned steps;
    const char *at; /* next line */
    const char *end;
    int line; /* number of the line last read */
    struct buf out;
    struct arena *a;
    struct error *err;
};

static bool broken(const struct recipe *r, int line, struct error *err, const char *what,
                   const char *name)
{
    return error_set(err, ERROR_MACHINE, "recipe %s line %d: %s '%s'", r->file, line, what, name);
}

static struct text trimmed(const char *from, const char *to)
{
    return text_trim((struct text){from, (size_t)(to - from)});
}

/* The word at the start of t; t moves past it and the blanks behind it. */
static struct text word(struct text *t)
{
    struct text w = {t->data, 0};

    while (w.len < t->len && !isspace((unsigned char)t->data[w.len]))
        w.len++;
    *t = trimmed(t->data + w.len, t->data + t->len);
    return w;
}

static bool is(struct text t, const char *s)
{
    return text_equal(t, text_of(s));
}

/* The next line between the two positions. */
static bool next_line(const char **at, const char *end, struct text *out)
{
    struct text rest = {*at, (size_t)(end - *at)};
    bool there = text_next_line(&rest, out);

    *at = rest.data;
    return there;
}

/* Is the line a directive? Then *out is the text after `//!`. */
static bool directive(struct text line, struct text *out)
{
    struct text t = trimmed(line.data, line.data + line.len);

    if (!text_starts(t, "//!"))
        return false;
    *out = trimmed(t.data + 3, t.data + t.len);
    return true;
}

/* ---- conditions ---------------------------------------------------------- */

static int step_find(const struct recipe *r, struct text name)
{
    for (int i = 0; i < r->step_count; i++)
        if (is(name, r->steps[i].name))
            return i;
    return -1;
}

static bool fact_known(const struct recipe *r, struct text name)
{
    for (int i = 0; i < r->fact_count; i++)
        if (is(name, r->facts[i]))
            return true;
    return false;
}

/* `a and not b or c`: or binds least, no parentheses. */
static bool condition(const struct recipe *r, const struct scope *s, unsigned steps,
                      struct text expr, int line, bool *out, struct error *err)
{
    bool any = false, all = true, negate = false;

    while (expr.len) {
        struct text w = word(&expr);
        int step = step_find(r, w);

        if (is(w, "and")) {
            continue;
        } else if (is(w, "or")) {
            any = any || all;
            all = true;
        } else if (is(w, "not")) {
            negate = !negate;
        } else {
            char name[64];
            bool holds;

            if (w.len >= sizeof(name) || (step < 0 && !fact_known(r, w)))
                return broken(r, line, err, "unknown fact or step in a condition, near",
                              expr.len ? expr.data : "end of line");
            memcpy(name, w.data, w.len);
            name[w.len] = '\0';
            holds = step >= 0 ? (steps >> step & 1) : scope_has(s, name);
            all = all && holds != negate;
            negate = false;
        }
    }
    *out = any || all;
    return true;
}

/* ---- head ---------------------------------------------------------------- */

static bool step_set(struct recipe *r, struct text names, int line, unsigned *bits,
                     struct error *err)
{
    while (names.len) {
        struct text w = word(&names);
        int step = step_find(r, w);

        if (step < 0)
            return broken(r, line, err, "a step must be declared before it is named, near", w.data);
        *bits |= 1u << step;
    }
    return true;
}

/* `step NAME: words` and its attributes `why: needs: when: always: likely: excludes:`. */
static bool head_line(struct recipe *r, struct text d, int line, struct arena *a, struct error *err)
{
    struct text key = word(&d);
    const char *colon = memchr(d.data, ':', d.len);
    struct text name = trimmed(d.data, colon ? colon : d.data + d.len);
    struct text words = colon ? trimmed(colon + 1, d.data + d.len) : (struct text){"", 0};
    struct recipe_step *last = r->step_count ? &r->steps[r->step_count - 1] : NULL;

    if (is(key, "recipe")) {
        r->name = arena_strndup(a, name.data, name.len);
        r->words = arena_strndup(a, words.data, words.len);
    } else if (is(key, "fact") && r->fact_count < RECIPE_FACTS) {
        r->facts[r->fact_count++] = arena_strndup(a, name.data, name.len);
    } else if (is(key, "step") && r->step_count < RECIPE_STEPS) {
        r->steps[r->step_count++] =
            (struct recipe_step){.name = arena_strndup(a, name.data, name.len),
                                 .words = arena_strndup(a, words.data, words.len),
                                 .why = ""};
    } else if (is(key, "why:") && last) {
        last->why = *last->why ? arena_printf(a, "%s %.*s", last->why, (int)d.len, d.data)
                               : arena_strndup(a, d.data, d.len);
    } else if (is(key, "when:") && last) {
        last->when = arena_strndup(a, d.data, d.len);
    } else if (is(key, "likely:") && last) {
        last->likely = arena_strndup(a, d.data, d.len);
    } else if (is(key, "always:") && last) {
        last->always = arena_strndup(a, d.data, d.len);
    } else if (is(key, "needs:") && last) {
        return step_set(r, d, line, &last->needs, err);
    } else if (is(key, "excludes:") && last) {
        return step_set(r, d, line, &last->excludes, err);
    } else {
        return broken(r, line, err, "unknown directive", arena_strndup(a, key.data, key.len));
    }
    return true;
}

bool recipe_parse(const char *file, struct text source, struct arena *a, struct recipe *out,
                  struct error *err)
{
    const char *at = source.data, *end = source.data + source.len;
    struct text line, d;
    int number = 0;

    *out = (struct recipe){.file = file};
    while (next_line(&at, end, &line)) {
        number++;
        if (!directive(line, &d))
            continue; /* the head may carry ordinary comments */
        if (is(d, "text")) {
            if (!out->name)
                return broken(out, number, err, "no `recipe NAME` before", "text");
            out->body = (struct text){at, (size_t)(end - at)};
            out->body_line = number + 1;
            return true;
        }
        if (d.len && !head_line(out, d, number, a, err))
            return false;
    }
    return broken(out, number, err, "the head does not end with", "//! text");
}

static bool recipe_file(const char *name, struct arena *a, struct text *out, struct error *err)
{
    char *path;

    return home_data(arena_printf(a, "recipes/%s", name), a, &path, err) &&
           file_read(path, RECIPE_BYTES, a, out, err);
}

/* Adds the lines of an included file, source lines as much further in as its directive was. */
static void add_indented(struct buf *b, struct text part, size_t blanks)
{
    struct text line, d;

    while (text_next_line(&part, &line)) {
        if (line.len && !directive(line, &d))
            buf_printf(b, "%*s", (int)blanks, "");
        buf_add(b, line.data, line.len);
        buf_putc(b, '\n');
    }
}

/* `//! include NAME` becomes recipes/NAME.cuh without the comment it begins with, as far in as the
 * directive. */
static bool included(struct text source, int depth, struct arena *a, struct text *out,
                     struct error *err)
{
    struct buf b = buf_init(RECIPE_BYTES);
    const char *at = source.data, *end = source.data + source.len;
    struct text line, d, part;
    size_t blanks;
    bool ok = depth < INCLUDE_DEPTH ||
              error_set(err, ERROR_MACHINE, "includes of a recipe go deeper than %d files",
                        INCLUDE_DEPTH);

    while (ok && next_line(&at, end, &line)) {
        if (!directive(line, &d) || !is(word(&d), "include")) {
            buf_add(&b, line.data, line.len);
            buf_putc(&b, '\n');
            continue;
        }
        blanks = strspn(line.data, " ");
        ok = recipe_file(arena_printf(a, "%.*s.cuh", (int)d.len, d.data), a, &part, err) &&
             included(part, depth + 1, a, &part, err);
        while (ok && text_starts(part, "// "))
            (void)text_next_line(&part, &line);
        if (ok)
            add_indented(&b, part, blanks);
    }
    if (ok && b.overflowed)
        ok = error_set(err, ERROR_MACHINE, "a recipe and its includes are longer than %d bytes",
                       RECIPE_BYTES);
    if (ok)
        *out = buf_copy(&b, a);
    buf_release(&b);
    return ok;
}

bool recipe_load(const char *name, struct arena *a, struct recipe *out, struct error *err)
{
    struct text source;

    if (!recipe_file(arena_printf(a, "%s.cu", name), a, &source, err) ||
        !included(source, 0, a, &source, err))
        return error_add(err, "reading the recipe '%s'", name);
    return recipe_parse(arena_printf(a, "%s.cu", name), source, a, out, err);
}

/* ---- body ---------------------------------------------------------------- */

/* Length of the slot name after '$'; *name and the bytes to skip. 0: not a slot. */
static size_t slot_at(const char *p, const char *end, struct text *name)
{
    const char *from = p + 1, *to;
    bool braces = from < end && *from == '{';

    from += braces;
    for (to = from; to < end && (isalnum((unsigned char)*to) || *to == '_'); to++)
        ;
    if (to == from || (braces && (to == end || *to != '}')))
        return 0;
    *name = (struct text){from, (size_t)(to - from)};
    return (size_t)(to - p) + braces;
}

/* A value of several lines is indented like the line that contains the slot. */
static void put_value(struct buf *out, const char *value, size_t indent)
{
    for (; *value; value++) {
        buf_putc(out, *value);
        if (*value == '\n' && value[1] != '\n' && value[1])
            for (size_t i = 0; i < indent; i++)
                buf_putc(out, ' ');
    }
}

static bool put_line(struct walk *w, const struct scope *s, struct text line)
{
    const char *p = line.data, *end = line.data + line.len;
    size_t start = w->out.len, indent = 0;
    bool slots = false;

    while (indent < line.len && line.data[indent] == ' ')
        indent++;
    while (p < end) {
        struct text name;
        size_t skip = *p == '$' ? slot_at(p, end, &name) : 0;
        const char *value;

        if (!skip) {
            buf_putc(&w->out, *p++);
            continue;
        }
        value = scope_get(s, arena_strndup(w->a, name.data, name.len));
        if (!value)
            return broken(w->r, w->line, w->err, "nothing fills the slot",
                          arena_strndup(w->a, name.data, name.len));
        put_value(&w->out, value, indent);
        slots = true;
        p += skip;
    }
    if (slots && trimmed(w->out.data + start, w->out.data + w->out.len).len == 0)
        w->out.len = start; /* the line was only an empty slot */
    else
        buf_putc(&w->out, '\n');
    return true;
}

enum stop { STOP_END, STOP_BRANCH, STOP_EOF };

static bool walk_block(struct walk *w, const struct scope *s, bool taken, enum stop *why,
                       struct text *directive_out);

/* `if COND` ... `elif COND` ... `else` ... `end`; the first that holds is taken. */
static bool walk_if(struct walk *w, const struct scope *s, bool taken, struct text d)
{
    int opened = w->line;
    bool done = false;

    for (;;) {
        bool holds = true;
        enum stop why;
        struct text key = word(&d);

        if (!is(key, "else") && !condition(w->r, s, w->steps, d, w->line, &holds, w->err))
            return false;
        holds = holds && !done;
        if (!walk_block(w, s, taken && holds, &why, &d))
            return false;
        done = done || holds;
        if (why == STOP_END)
            return true;
        if (why == STOP_EOF)
            return broken(w->r, opened, w->err, "no `end` for", "if");
    }
}

static bool has_list(const struct scope *s, struct text list)
{
    for (const struct scope_entry *e = s->entries; e; e = e->next)
        if (e->kind == ENTRY_ITEM && is(list, e->name))
            return true;
    return false;
}

static bool walk_each(struct walk *w, const struct scope *s, bool taken, struct text list)
{
    const char *at = w->at;
    int line = w->line;
    bool walked = false;
    enum stop why;
    struct text d;

    while (taken && s->parent && !has_list(s, list))
        s = s->parent; /* the innermost scope that has the list */
    for (const struct scope_entry *e = s->entries; taken && e; e = e->next) {
        if (e->kind != ENTRY_ITEM || !is(list, e->name))
            continue;
        w->at = at;
        w->line = line;
        walked = true;
        if (!walk_block(w, e->item, true, &why, &d))
            return false;
        if (why != STOP_END)
            return broken(w->r, line, w->err, "no `end` for", "each");
    }
    if (!walked && !walk_block(w, s, false, &why, &d))
        return false;
    return true;
}

static bool walk_block(struct walk *w, const struct scope *s, bool taken, enum stop *why,
                       struct text *d)
{
    struct text line;

    while (next_line(&w->at, w->end, &line)) {
        struct text rest, key;

        w->line++;
        if (!directive(line, d)) {
            if (taken && !put_line(w, s, line))
                return false;
            continue;
        }
        rest = *d;
        key = word(&rest);
        if (is(key, "end") || is(key, "elif") || is(key, "else")) {
            *why = is(key, "end") ? STOP_END : STOP_BRANCH;
            return true;
        } else if (is(key, "if")) {
            if (!walk_if(w, s, taken, *d))
                return false;
        } else if (is(key, "each")) {
            if (!walk_each(w, s, taken, rest))
                return false;
        } else {
            return broken(w->r, w->line, w->err, "unknown directive",
                          arena_strndup(w->a, d->data, d->len));
        }
    }
    *why = STOP_EOF;
    return true;
}

/* Steps that are always taken for this task, faster or not, as soon as the steps they need are. */
static bool add_always(const struct recipe *r, const struct scope *s, unsigned *steps,
                       struct error *err)
{
    for (int i = 0; i < r->step_count; i++) {
        const struct recipe_step *step = &r->steps[i];
        bool holds = false;

        if (step->always && !condition(r, s, 0, text_of(step->always), 0, &holds, err))
            return false;
        if (holds && (step->needs & ~*steps) == 0)
            *steps |= 1u << i;
    }
    return true;
}

bool recipe_compose(const struct recipe *r, const struct scope *s, unsigned steps, struct arena *a,
                    struct text *out, struct error *err)
{
    if (!add_always(r, s, &steps, err))
        return false;

    struct walk w = {.r = r,
                     .steps = steps,
                     .at = r->body.data,
                     .end = r->body.data + r->body.len,
                     .line = r->body_line - 1,
                     .out = buf_init(SOURCE_BYTES),
                     .a = a,
                     .err = err};
    enum stop why;
    struct text d;
    bool ok = walk_block(&w, s, true, &why, &d);

    if (ok && why != STOP_EOF)
        ok = broken(r, w.line, err, "without an `if` or `each`:", "end");
    if (ok && w.out.overflowed)
        ok = broken(r, w.line, err, "the kernel is too long:", r->name);
    if (ok)
        *out = tidy_source(buf_text(&w.out), a);
    buf_release(&w.out);
    return ok;
}

bool recipe_steps(const struct recipe *r, const struct scope *s, unsigned *out, struct error *err)
{
    unsigned bits = 0;

    for (int i = 0; i < r->step_count; i++) {
        const struct recipe_step *step = &r->steps[i];
        bool holds = true;

        if (step->when && !condition(r, s, 0, text_of(step->when), 0, &holds, err))
            return false;
        if (holds && (step->needs & ~bits) == 0)
            bits |= 1u << i;
    }
    *out = bits;
    return true;
}

bool recipe_likely(const struct recipe *r, const struct scope *s, unsigned *out, struct error *err)
{
    *out = 0;
    for (int i = 0; i < r->step_count; i++) {
        const char *likely = r->steps[i].likely;
        bool holds = !likely;

        if (likely && strcmp(likely, "never") != 0 && s &&
            !condition(r, s, 0, text_of(likely), 0, &holds, err))
            return false;
        *out |= holds ? 1u << i : 0;
    }
    return true;
}
