/* SPDX-License-Identifier: Apache-2.0 */
/* runner_outcome.c - the outcome of running a candidate; see runner_outcome.h. */
#include "runner/runner_outcome.h"

#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void outcome_init(struct outcome *o)
{
    memset(o, 0, sizeof *o);
    o->op = -1;
}

void outcome_release(struct outcome *o)
{
    json_decref(o->findings);
    json_decref(o->counters);
    outcome_init(o);
}

bool outcome_set(struct outcome *o, enum outcome_kind kind, int op, const char *fmt, ...)
{
    va_list ap;

    if (o->kind != OUTCOME_OK)
        return false;
    o->kind = kind;
    o->op = op;
    va_start(ap, fmt);
    text_format(o->text, sizeof o->text, fmt, ap);
    va_end(ap);
    return false;
}

const char *outcome_name(enum outcome_kind kind)
{
    static const char *const names[] = {
#define OUTCOME_NAME(id, name) [OUTCOME_##id] = name,
        OUTCOMES(OUTCOME_NAME)
#undef OUTCOME_NAME
    };

    return names[kind];
}
