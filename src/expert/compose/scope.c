/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scope.c - the values that a task fills into a recipe: slots, facts and lists.
 *
 * Linked lists in an arena: a scope holds a few dozen entries at most.
 * A name that is not found is looked up in the parent, so that lines inside an `each` can use the
 * recipe's own slots.
 */
#include "expert/compose/scope.h"

#include <string.h>

struct scope *scope_new(struct arena *a, const struct scope *parent)
{
    struct scope *s = arena_alloc(a, sizeof(*s));

    s->arena = a;
    s->parent = parent;
    return s;
}

static void entry_add(struct scope *s, enum entry_kind kind, const char *name, const char *value,
                      struct scope *item)
{
    struct scope_entry *e = arena_alloc(s->arena, sizeof(*e)), **at = &s->entries;

    *e = (struct scope_entry){
        .kind = kind, .name = arena_strdup(s->arena, name), .value = value, .item = item};
    while (*at)
        at = &(*at)->next;
    *at = e;
}

static struct scope_entry *entry_find(const struct scope *s, enum entry_kind kind, const char *name)
{
    for (; s; s = s->parent)
        for (struct scope_entry *e = s->entries; e; e = e->next)
            if (e->kind == kind && strcmp(e->name, name) == 0)
                return e;
    return NULL;
}

void scope_set(struct scope *s, const char *name, const char *fmt, ...)
{
    va_list ap;
    char *value;

    va_start(ap, fmt);
    value = arena_vprintf(s->arena, fmt, ap);
    va_end(ap);
    entry_add(s, ENTRY_SLOT, name, value, NULL);
}

void scope_fact(struct scope *s, const char *name)
{
    entry_add(s, ENTRY_FACT, name, NULL, NULL);
}

bool scope_has(const struct scope *s, const char *fact)
{
    return entry_find(s, ENTRY_FACT, fact) != NULL;
}

const char *scope_get(const struct scope *s, const char *name)
{
    const struct scope_entry *e = entry_find(s, ENTRY_SLOT, name);

    return e ? e->value : NULL;
}

struct scope *scope_item(struct scope *s, const char *list)
{
    struct scope *item = scope_new(s->arena, s);

    entry_add(s, ENTRY_ITEM, list, NULL, item);
    return item;
}

struct scope *scope_item_beside(struct scope *s, const char *list)
{
    struct scope *item = scope_new(s->arena, s->parent);

    entry_add(s, ENTRY_ITEM, list, NULL, item);
    return item;
}

bool scope_equal(const struct scope *a, const struct scope *b)
{
    const struct scope_entry *x = a->entries, *y = b->entries;

    for (; x && y; x = x->next, y = y->next)
        if (x->kind != y->kind || strcmp(x->name, y->name) != 0 ||
            (x->kind == ENTRY_SLOT && strcmp(x->value, y->value) != 0) ||
            (x->kind == ENTRY_ITEM && !scope_equal(x->item, y->item)))
            return false;
    return !x && !y;
}
