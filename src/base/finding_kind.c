/* SPDX-License-Identifier: Apache-2.0 */
/* finding_kind.c - kinds of findings and their names. */
#include "base/finding_kind.h"

#include "base/mem.h"

#include <string.h>

static const char *const names[] = {[FINDING_UNKNOWN] = "finding",
#define FINDING_KIND_NAME(kind, name) [FINDING_##kind] = name,
                                    FINDING_KIND_TABLE(FINDING_KIND_NAME)
#undef FINDING_KIND_NAME
};

const char *finding_kind_name(enum finding_kind kind)
{
    return names[kind];
}

enum finding_kind finding_kind_of(const char *name)
{
    for (size_t i = 1; i < ARRAY_LEN(names); i++)
        if (strcmp(name, names[i]) == 0)
            return (enum finding_kind)i;
    return FINDING_UNKNOWN;
}
