/* SPDX-License-Identifier: Apache-2.0 */
/* test.c - is it right: several secret draws, checked by the judge. */
#include "base/json.h"
#include "stage/workshop.h"

static bool test(struct stage *st, const struct task *task, const struct candidate *cand,
                 const struct build_result *build, bool accept, struct arena *a,
                 struct test_result *out, struct error *err)
{
    struct judge_config config = workshop_judge_config(st, task);
    int attempt = 0;
    bool ok;

    config.accept = accept;
    if (!workshop_share(st, task, err))
        return false;
    do
        ok = judge_test(&config, cand, build, a, out, err);
    while (!ok && workshop_room(st, attempt++, err));
    if (!ok && workshop_renew(st, err)) {
        config = workshop_judge_config(st, task);
        config.accept = accept;
        ok = judge_test(&config, cand, build, a, out, err);
    }
    workshop_unlease(st);
    if (!ok)
        return error_add(err, "testing attempt %d of %s", cand->attempt, task->name);
    json_own(a, out->counters);
    return true;
}

bool stage_test(struct stage *st, const struct task *task, const struct candidate *cand,
                const struct build_result *build, struct arena *a, struct test_result *out,
                struct error *err)
{
    return test(st, task, cand, build, false, a, out, err);
}

bool stage_accept(struct stage *st, const struct task *task, const struct candidate *cand,
                  const struct build_result *build, struct arena *a, struct test_result *out,
                  struct error *err)
{
    return test(st, task, cand, build, true, a, out, err);
}
