/* SPDX-License-Identifier: Apache-2.0 */
/* model.c - the printed names of what model.h lists. */
#include "model.h"

#include "base/json.h"

#include <string.h>

const char *const verdict_names[VERDICT_COUNT] = {
#define VERDICT_NAME(id, name, help) name,
    VERDICTS(VERDICT_NAME)
#undef VERDICT_NAME
};

const char *const verdict_helps[VERDICT_COUNT] = {
#define VERDICT_HELP(id, name, help) help,
    VERDICTS(VERDICT_HELP)
#undef VERDICT_HELP
};

const struct language_facts languages[LANGUAGE_COUNT] = {
    [LANGUAGE_CUTE] = {"cute", "CuTe", "candidate.cu", NULL, false},
    [LANGUAGE_CUDA] = {"cuda", "plain CUDA", "candidate.cu", NULL, false},
    [LANGUAGE_TRITON] = {"triton", "Triton", "candidate.py", "docs/triton.md", true},
    [LANGUAGE_CUTEDSL] = {"cutedsl", "the CuTe DSL", "candidate.py", "docs/cutedsl.md", true},
};

enum language language_named(const char *name)
{
    for (int i = 0; i < LANGUAGE_COUNT; i++)
        if (strcmp(name, languages[i].name) == 0)
            return (enum language)i;
    return LANGUAGE_CUTE;
}

const char *const class_names[CLASS_COUNT] = {"pointwise",   "reduction", "gemm",
                                              "convolution", "attention", "other"};

const char *const stage_names[STAGE_KIND_COUNT] = {"synthesize", "diagnose", "repair", "optimize"};

/* Long texts are clipped in a detail: only their beginning is compared. */
bool finding_is_told(const struct verdict *v, const struct finding *f)
{
    enum { DECIDES = 80 };
    char begin[DECIDES + 1] = "";

    if (!v->detail || (f->where && *f->where && !strstr(v->detail, f->where)))
        return false;
    strncat(begin, f->text ? f->text : "", DECIDES);
    return strstr(v->detail, begin) != NULL;
}

/* The model's constants were fitted and checked on this GPU only (docs/simt.md, modelled time). */
bool modelled_validated(const char *models)
{
    return !models || strcmp(models, "H200") == 0;
}

const char *modelled_words(const char *models)
{
    return modelled_validated(models) ? "modelled" : "modelled, unvalidated";
}

const char *measurement_words(const struct measurement *m)
{
    return modelled_words(json_string_or(m->parts, "gpu", NULL));
}
