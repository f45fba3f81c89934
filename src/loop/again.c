/* SPDX-License-Identifier: Apache-2.0 */
/*
 * again.c - judge the best kernel of a run again, on this machine and with the current settings.
 *
 * The task is the run's: its file, or the store's copy if the file has changed. Sizes and PyTorch's
 * arithmetic are the run's, too, unless others are asked for.
 */
#include "base/fs.h"
#include "base/json.h"
#include "base/text.h"
#include "loop/loop.h"
#include "store/store.h"

#include <string.h>

static bool task_file(const struct run_history *h, const char *dir, struct arena *a,
                      const char **path, struct error *err)
{
    struct error ignored = {0};
    struct text now;

    *path = h->task.path;
    if (file_read(h->task.path, h->task.source.len + 1, a, &now, &ignored) &&
        text_equal(now, h->task.source))
        return true;
    *path = path_join(a, dir, arena_printf(a, "%s.py", h->task.name));
    return file_write(*path, h->task.source, err);
}

static const char *const *words_of(const json_t *list, struct arena *a)
{
    const char **out = arena_array(a, json_array_size(list) + 1, sizeof(*out));

    for (size_t i = 0; i < json_array_size(list); i++)
        out[i] = arena_strdup(a, json_string_value(json_array_get(list, i)));
    return json_array_size(list) ? out : NULL;
}

/* The run's settings that its verdict and its columns depend on. */
static struct settings as_the_run(const struct settings *given, const struct run_history *h,
                                  struct arena *a)
{
    struct settings s = *given;

    if (!s.set)
        s.set = words_of(json_object_get(h->options, "set"), a);
    if (!s.shapes)
        s.shapes = words_of(json_object_get(h->options, "shapes"), a);
    if (json_object_get(h->options, "baseline") && (!s.baseline || !strcmp(s.baseline, "defaults")))
        s.baseline = arena_strdup(a, json_string_or(h->options, "baseline", "defaults"));
    s.backward = s.backward || json_bool_or(h->task.description, "backward", false);
    if (s.target == LANGUAGE_CUTE)
        s.target = language_named(
            json_string_or(h->options, "target",
                           json_bool_or(h->options, "target_cuda", false) ? "cuda" : "cute"));
    return s;
}

static bool judge(const struct settings *settings, const struct run_history *h,
                  struct progress *progress, struct arena *a, struct eval_summary *out,
                  struct error *err)
{
    const struct candidate *best = &h->attempts[h->info.best_attempt - 1].candidate;
    struct settings own = as_the_run(settings, h, a);
    const char *task, *kernel;
    struct error ignored = {0};
    char *dir = NULL;
    bool ok;

    if (!dir_temp("cutegen-again", a, &dir, err))
        return false;
    kernel = path_join(
        a, dir, arena_printf(a, "%s.%s", h->task.name, languages[own.target].python ? "py" : "cu"));
    ok = file_write(kernel, best->source, err) && task_file(h, dir, a, &task, err) &&
         loop_eval(&own, task, kernel, progress, a, out, err);
    dir_remove(dir, &ignored);
    return ok;
}

bool loop_eval_run(const struct settings *settings, const char *run, struct progress *progress,
                   struct arena *a, struct eval_summary *out, struct error *err)
{
    struct run_history h = {0};
    struct store *store = NULL;
    const char *id = NULL;
    bool ok = store_open(settings->runs_dir, settings->store_url, STORE_READ, &store, err) &&
              store_run_find(store, run, a, &id, err) && store_run_history(store, id, a, &h, err);

    store_close(store); /* the judgement opens it for writing */
    if (ok && h.info.best_attempt == 0) {
        ok = error_set(err, ERROR_JUDGED, "run %s has no correct kernel", id);
        error_hint(err, "see why: cutegen show %s", id);
    }
    ok = ok && judge(settings, &h, progress, a, out, err);
    run_history_release(&h);
    return ok;
}
