/* SPDX-License-Identifier: Apache-2.0 */
/* trust.c - see trust.h. */
#include "eval/trust.h"

#include "base/log.h"

bool trust_allows(const struct confine_report *layers, bool trusted, struct error *err)
{
    struct arena *a;

    if (trusted || confine_holds_files(layers))
        return true;
    a = arena_new();
    error_set(err, ERROR_USE,
              "a ModelNew is not run here: this kernel offers neither Landlock nor namespaces "
              "around it\n%s",
              confine_missing(layers, a));
    arena_free(a);
    return error_hint(err, "use Linux 5.13 or newer with Landlock, or permit user namespaces; "
                           "--trust runs it anyway, with your rights");
}

bool trust_here(bool trusted, struct error *err)
{
    struct confine_report layers;
    struct error why = {0};

    if (!confine_probe(&layers, &why))
        log_debug("the layers: %s", why.text);
    return trust_allows(&layers, trusted, err);
}
