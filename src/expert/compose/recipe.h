/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recipe.h - a recipe file: a ladder of named steps and one kernel text.
 *
 * A recipe is CUDA source whose lines beginning with `//!` are directives
 * (docs/recipes.md has the grammar). Composing it for a scope (the values that a task fills in) and
 * a set of steps gives a kernel without directives; the difference between two compositions is an
 * edit.
 *
 *     recipe_load("pointwise", a, &r, err)
 *     struct scope *s = scope_new(a, NULL);
 *     scope_set(s, "kernel", "swish");
 *     scope_fact(s, "flat");
 *     struct scope *x = scope_item(s, "input");          one iteration of `//! each input`
 *     recipe_compose(&r, s, 1u << VECTORISE, a, &source, err)
 *
 * Everything lives in the arena. An error is a broken recipe, with its line.
 */
#ifndef EXPERT_RECIPE_H
#define EXPERT_RECIPE_H

#include "base/error.h"
#include "base/mem.h"

enum { RECIPE_STEPS = 16, RECIPE_FACTS = 48 };

struct recipe_step {
    const char *name;
    const char *words; /* the change, one line: the identity of the step in a history */
    const char *why;   /* one sentence for people; may be "" */
    const char *when;  /* condition on facts; NULL: always */
    /* condition under which every kernel that has the needed steps also has this one; or NULL */
    const char *always;
    const char *likely; /* condition under which the predicted composition has it; NULL: always */
    unsigned needs;     /* steps that must be taken before it or with it */
    unsigned excludes;  /* steps that cannot be combined with it */
};

struct recipe {
    const char *name, *words, *file;
    struct recipe_step steps[RECIPE_STEPS];
    int step_count;
    const char *facts[RECIPE_FACTS];
    int fact_count;
    struct text body;
    int body_line; /* of the file, for messages */
};

struct scope;
struct scope *scope_new(struct arena *a, const struct scope *parent);
void scope_set(struct scope *s, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void scope_fact(struct scope *s, const char *name);
bool scope_has(const struct scope *s, const char *fact);
const char *scope_get(const struct scope *s, const char *name); /* NULL: not set */
struct scope *scope_item(struct scope *s, const char *list);
/* The same, but the item sees what is around s and not s itself. */
struct scope *scope_item_beside(struct scope *s, const char *list);
bool scope_equal(const struct scope *a, const struct scope *b);

bool recipe_load(const char *name, struct arena *a, struct recipe *out, struct error *err);
bool recipe_parse(const char *file, struct text source, struct arena *a, struct recipe *out,
                  struct error *err);
bool recipe_compose(const struct recipe *r, const struct scope *s, unsigned steps, struct arena *a,
                    struct text *out, struct error *err);
/* Steps whose `when` holds in this scope, as bits, without those that need a step whose `when` does
 * not.
 */
bool recipe_steps(const struct recipe *r, const struct scope *s, unsigned *out, struct error *err);
/* Steps predicted to gain in this scope, as bits; s NULL: only those without a condition. */
bool recipe_likely(const struct recipe *r, const struct scope *s, unsigned *out, struct error *err);

#endif
