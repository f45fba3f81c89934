/* SPDX-License-Identifier: Apache-2.0 */
/* optimize.c - ask for exactly one change to a correct kernel, as edits. */
#include "stage/workshop.h"

bool stage_optimize(struct stage *st, const struct question *q, struct arena *a,
                    struct proposal *out, struct error *err)
{
    if (!workshop_ask(st, STAGE_OPTIMIZE, q, a, out, err))
        return false;
    workshop_take_edits(q->current, a, out);
    return true;
}
