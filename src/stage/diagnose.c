/* SPDX-License-Identifier: Apache-2.0 */
/* diagnose.c - why does it fail: words only, no code yet. */
#include "stage/workshop.h"

bool stage_diagnose(struct stage *st, const struct question *q, struct arena *a,
                    struct proposal *out, struct error *err)
{
    return workshop_ask(st, STAGE_DIAGNOSE, q, a, out, err);
}
