/* SPDX-License-Identifier: Apache-2.0 */
/* synthesize.c - the first kernel: a whole file out of a reply. */
#include "llm/edit/fence.h"
#include "stage/workshop.h"

bool stage_synthesize(struct stage *st, const struct question *q, struct arena *a,
                      struct proposal *out, struct error *err)
{
    const char *reason = "";

    if (!workshop_ask(st, STAGE_SYNTHESIZE, q, a, out, err))
        return false;
    if (!out->done && !fence_code(out->reply.text, out->request.target, a, &out->source, &reason))
        workshop_no_code(out,
                         st->settings.target == LANGUAGE_CUTE
                             ? "the reply holds no kernel"
                             : arena_printf(a, "the reply holds no kernel in %s",
                                            languages[st->settings.target].words),
                         reason);
    return true;
}
