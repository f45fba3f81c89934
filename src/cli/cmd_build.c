/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_build.c - `build`: compile the built-in engineer's kernels into the cache, for a GPU that
 * this machine need not have. */
#include "base/clock.h"
#include "base/fs.h"
#include "cli/cmd.h"
#include "stage/stage.h"

#include <stdlib.h>
#include <string.h>

struct sum {
    int tasks, kernels, found, failed, without;
};

static bool build_one(struct cli *cli, const char *path, int depth, struct sum *sum,
                      struct error *err)
{
    struct ladder_built built = {0};
    struct task *task = arena_alloc(cli->a, sizeof(*task));
    struct stage *st = NULL;
    int64_t start = clock_ms();
    bool ok = stage_open(&cli->settings, &st, err) && stage_describe(st, path, cli->a, task, err) &&
              stage_ladder_build(st, task, depth, flag_get(cli, "out"), cli->a, &built, err);
    const char *arch = st ? stage_device(st)->arch : "";
    double s = (double)(clock_ms() - start) / 1000;

    if (ok && cli->json)
        print_json(json_pack("{s:s, s:s, s:i, s:i, s:i, s:s?, s:s?, s:f}", "task", task->name,
                             "arch", arch, "kernels", built.kernels, "found", built.found, "failed",
                             built.failed, "why_not", built.why_not, "why_failed", built.why_failed,
                             "seconds", s));
    else if (ok && built.why_not)
        print_fit(10, "%-24s no kernel: %s", task->name, built.why_not);
    else if (ok)
        print_fit(10, "%-24s %d kernels for %s: %d built, %d found, %d failed  %.1f s%s%s",
                  task->name, built.kernels, arch, built.kernels - built.found - built.failed,
                  built.found, built.failed, s, built.why_failed ? "  " : "",
                  built.why_failed ? built.why_failed : "");
    fflush(stdout);
    stage_close(st);
    sum->tasks++;
    sum->kernels += built.kernels;
    sum->found += built.found;
    sum->failed += built.failed;
    sum->without += built.why_not != NULL;
    return ok;
}

/* A task that cannot be described does not stop the others. */
static bool go_on(const struct cli *cli, int number, struct sum *sum, struct error *err)
{
    if (err->kind != ERROR_USE || cli->word_count == 1 || cli->json)
        return false;
    print_fit(10, "%-24s no kernel: %s", path_base(cli->words[number]), err->text);
    *err = (struct error){0};
    sum->without++;
    return true;
}

bool cmd_build(struct cli *cli, int *code, struct error *err)
{
    const char *said = flag_get(cli, "depth");
    char *end = NULL;
    long depth = said ? strtol(said, &end, 10) : LADDER_MOST;
    struct sum sum = {0};

    if (said && (end == said || *end || depth < 0 || depth > LADDER_MOST)) {
        error_set(err, ERROR_USE, "--depth: '%s' is not a number from 0 to %d", said, LADDER_MOST);
        return error_hint(err, "--depth 0 builds only the first kernel of each task");
    }
    cli->settings.model = "builtin";
    if (strcmp(cli->settings.device, "simt") == 0 ||
        (strcmp(cli->settings.device, "auto") == 0 && !file_exists("/dev/nvidiactl")))
        cli->settings.device = arena_printf(cli->a, "for:%s", cli->settings.models);
    for (int i = 0; i < cli->word_count; i++)
        if (!build_one(cli, cli->words[i], (int)depth, &sum, err) && !go_on(cli, i, &sum, err))
            return false;
    *code = sum.failed || sum.without ? EXIT_JUDGED : EXIT_DONE;
    if (!cli->json && sum.tasks > 1)
        printf("%d tasks, %d kernels: %d built, %d found, %d failed; %d tasks without a kernel\n",
               sum.tasks, sum.kernels, sum.kernels - sum.found - sum.failed, sum.found, sum.failed,
               sum.without);
    return true;
}
