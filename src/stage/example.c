/* SPDX-License-Identifier: Apache-2.0 */
/* example.c - the worked example of a synthesis prompt, in the language that is asked for. */
#include "base/fs.h"
#include "expert/expert.h"
#include "stage/workshop.h"

enum { MAX_EXAMPLE = 1 << 20 };

/* Of examples/LANGUAGE/NAME.py; tests/e2e/target_test.sh has each of them judged. */
static const char *const names[CLASS_COUNT] = {"swish",  "softmax",   "matmul",
                                               "conv2d", "attention", "softmax"};

/* One of the class; other: one of another class, for comparison. */
static bool python_example(const struct stage *st, const struct task *task, bool other,
                           struct arena *a, const char **name, struct text *out, struct error *err)
{
    enum kernel_class class = !other                           ? task->class
                              : task->class == CLASS_REDUCTION ? CLASS_POINTWISE
                                                               : CLASS_REDUCTION;
    const char *folder = languages[st->settings.target].name;
    struct error none = {0};
    char *path = NULL;

    *name = names[class];
    if (!home_data(arena_printf(a, "examples/%s/%s.py", folder, *name), a, &path, &none)) {
        *name = names[CLASS_REDUCTION]; /* a language that has no example of this class */
        if (!home_data(arena_printf(a, "examples/%s/%s.py", folder, *name), a, &path, &none))
            return true;
    }
    return file_read(path, MAX_EXAMPLE, a, out, err);
}

bool workshop_example(const struct stage *st, const struct task *task, bool other, struct arena *a,
                      const char **name, struct text *out, struct error *err)
{
    switch (st->settings.target) {
    case LANGUAGE_CUTE:
        return expert_recipe_text(task, other, a, name, out, err);
    case LANGUAGE_TRITON:
    case LANGUAGE_CUTEDSL:
        return python_example(st, task, other, a, name, out, err);
    default:
        return true; /* no examples of it */
    }
}
