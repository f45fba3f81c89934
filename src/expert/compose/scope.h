/* SPDX-License-Identifier: Apache-2.0 */
/* scope.h - the members of a scope, only for the composer; recipe.h has the functions that fill
 * it. */
#ifndef EXPERT_SCOPE_H
#define EXPERT_SCOPE_H

#include "expert/compose/recipe.h"

enum entry_kind { ENTRY_SLOT, ENTRY_FACT, ENTRY_ITEM };

struct scope_entry {
    struct scope_entry *next;
    enum entry_kind kind;
    const char *name;
    const char *value;  /* of a slot */
    struct scope *item; /* of a list: one round */
};

struct scope {
    struct arena *arena;
    const struct scope *parent;
    struct scope_entry *entries; /* in the order they were added */
};

#endif
