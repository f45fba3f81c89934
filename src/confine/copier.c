/* SPDX-License-Identifier: Apache-2.0 */
/* copier.c - make programs as copies of this process; see copier.h. */
#include "confine/copier.h"

#include "base/copier.h"
#include "base/json.h"
#include "confine/confine.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

struct birth {
    const struct copier_hooks *hooks;
    const char *words;
};

static void be_born(void *ctx)
{
    const struct birth *b = ctx;

    if (b->hooks->child)
        b->hooks->child();
    _exit(b->hooks->born(b->words));
}

/* In the new supervisor. */
static _Noreturn void look_after(struct supervise_plan *plan, struct birth *birth)
{
    signal(SIGCHLD, SIG_DFL); /* a copier that does not reap would leave it ignored */
    plan->born = be_born;
    plan->born_ctx = birth;
    supervise(plan);
}

static void close_all(const struct supervise_plan *plan)
{
    const int fds[COPIER_FDS] = {plan->in, plan->out, plan->err, plan->life, plan->report};

    for (int i = 0; i < COPIER_FDS; i++)
        close(fds[i]);
}

bool copier_serve(int fd, const struct copier_hooks *hooks, struct error *err)
{
    struct arena *a = arena_new();
    struct birth birth = {.hooks = hooks};
    struct confine_policy policy;
    struct proc_cage cage;
    struct supervise_plan plan;
    struct proc_spec spec;
    const json_t *confine;
    json_t *request = NULL, *words;
    pid_t pid = -1;
    bool ok = copier_receive(fd, a, &request, &spec, &plan, &confine);

    if (ok && confine && (ok = confine_parse(confine, a, &policy, err)))
        spec.cage = confine_cage(&policy, &cage);
    if (ok) {
        words = json_pack("{s:O, s:O}", "argv", json_object_get(request, "argv"), "env",
                          json_object_get(request, "env"));
        birth.words = json_line(words, a);
        json_decref(words);
        if (hooks->before)
            hooks->before();
        pid = fork();
        if (pid == 0)
            look_after(&plan, &birth);
        if (hooks->parent)
            hooks->parent();
        if (pid < 0)
            ok = error_set(err, ERROR_MACHINE, "making a copy: %s", strerror(errno));
        close_all(&plan);
    }
    json_decref(request);
    arena_free(a);
    return ok;
}
