/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python_plan.c - candidates in Python: which .py files are, and from one to something the runner
 * loads.
 *
 *     candidate.py -> plan, PTX -> checks -> cubin -> (simt: .so)
 */
#include "base/fs.h"
#include "base/json.h"
#include "base/text.h"
#include "eval/oracle.h"
#include "stage/workshop.h"
#include "toolchain/composer.h"

#include <ctype.h>
#include <string.h>

/* At the beginning of a line, and the word ends there: "def plan(p):". */
static bool has_line(struct text source, const char *begin)
{
    size_t len = strlen(begin);

    for (struct text rest = source, line; text_next_line(&rest, &line);)
        if (text_starts(line, begin) &&
            (line.len == len || !(isalnum((unsigned char)line.data[len]) || line.data[len] == '_')))
            return true;
    return false;
}

/* By what it imports. No more than a guess: a wrong one is a kernel that does not build. */
static enum language language_of(struct text source)
{
    return has_line(source, "import cutlass") || has_line(source, "from cutlass") ? LANGUAGE_CUTEDSL
                                                                                  : LANGUAGE_TRITON;
}

bool stage_python_door(struct text source, const char *path, enum language *target, bool *foreign,
                       struct error *err)
{
    static const char model[] = "ModelNew";
    bool has_model = source.len > 0 && memmem(source.data, source.len, model, sizeof model - 1);

    *foreign = has_model && !languages[*target].python;
    if (*foreign)
        return true;
    if (has_line(source, "def plan")) {
        if (!languages[*target].python)
            *target = language_of(source);
        return true;
    }
    error_set(err, ERROR_USE, "%s defines neither ModelNew nor plan(p)", path_base(path));
    return error_hint(err,
                      "write a Triton kernel and def plan(p): kernel[grid](*p.inputs, *p.outputs, "
                      "...) (docs/triton.md), one in the CuTe DSL (docs/cutedsl.md), or class "
                      "ModelNew (docs/tasks.md)");
}

bool workshop_find_composer(struct stage *st, struct error *err)
{
    bool own = st->settings.target == LANGUAGE_CUTEDSL && st->settings.dsl_python;
    const char *python = own ? st->settings.dsl_python : st->settings.python;

    st->composer = arena_alloc(st->a, sizeof *st->composer);
    return composer_find(st->settings.target, oracle_python(python, st->a), &st->tools, st->a,
                         st->composer, err);
}

bool workshop_compose(struct stage *st, const struct task *task, const struct candidate *cand,
                      struct arena *a, struct build_result *out, struct error *err)
{
    const struct composer_request req = {
        .source = cand->source,
        .task = task,
        .device = &st->device,
        .work_dir = out->work_dir,
        .share = st->settings.kernels,
        .deadline_ms = st->settings.build_deadline_s * 1000,
    };
    bool ok = composer_build(st->composer, &req, a, out, err);

    json_own(a, out->launches);
    json_own(a, out->names);
    json_own(a, out->resources);
    return ok;
}
