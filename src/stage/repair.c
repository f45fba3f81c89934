/* SPDX-License-Identifier: Apache-2.0 */
/* repair.c - ask for a small patch for what the diagnosis found. */
#include "stage/workshop.h"

bool stage_repair(struct stage *st, const struct question *q, struct arena *a, struct proposal *out,
                  struct error *err)
{
    if (!workshop_ask(st, STAGE_REPAIR, q, a, out, err))
        return false;
    workshop_take_edits(q->current, a, out);
    return true;
}
