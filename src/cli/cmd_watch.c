/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_watch.c - `watch`: judge again at every save of the kernel or its task.
 *
 * Folders are watched, not files: many editors save by renaming another file
 * into place. Saves while a kernel is being judged lead to one more judgement afterwards, however
 * many there were.
 */
#include "base/clock.h"
#include "base/fs.h"
#include "base/hash.h"
#include "cli/cmd.h"
#include "loop/loop.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

enum { WAIT_MS = 1000, SETTLE_MS = 20, SETTLE_TIMES = 50, MAX_FILE = 64 << 20 };

struct save_watch {
    const struct cli *cli;
    int fd;
    bool unread;      /* the reader of our output has ended */
    char seen[2][65]; /* hashes of the task and the kernel */
    enum verdict_kind last;
    double last_us;
    int number;
};

static bool watch_open(struct save_watch *w, struct error *err)
{
    w->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (w->fd < 0)
        return error_set(err, ERROR_MACHINE, "cannot watch files: %s", strerror(errno));
    for (int i = 0; i < 2; i++) {
        const char *path = path_from_here(w->cli->a, w->cli->words[i]);
        size_t len = (size_t)(path_base(path) - path);

        if (inotify_add_watch(w->fd, arena_strndup(w->cli->a, path, len ? len : 1),
                              IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE) < 0)
            return error_set(err, ERROR_MACHINE, "cannot watch the folder of %s: %s",
                             w->cli->words[i], strerror(errno));
    }
    return true;
}

/* Whether the content of a file differs from what was seen last; a missing file does not count. */
static bool take_content(struct save_watch *w)
{
    bool changed = false;

    for (int i = 0; i < 2; i++) {
        struct arena *a = arena_new();
        struct error ignored = {0};
        struct text bytes;
        char hex[65];

        if (file_read(w->cli->words[i], MAX_FILE, a, &bytes, &ignored)) {
            hash_text(bytes, hex);
            changed = changed || strcmp(hex, w->seen[i]) != 0;
            memcpy(w->seen[i], hex, sizeof(hex));
        }
        arena_free(a);
    }
    return changed;
}

/* Whether there is something new to judge. A save may be half done, so it waits until nothing more
 * changes, but not for a file that never comes to rest. */
static bool take_change(struct save_watch *w)
{
    bool changed = take_content(w);

    for (int n = 0; changed && n < SETTLE_TIMES && !loop_interrupts; n++) {
        (void)poll(NULL, 0, SETTLE_MS);
        if (!take_content(w))
            break;
    }
    return changed;
}

static void wait_for_events(struct save_watch *w)
{
    struct pollfd in[2] = {{w->fd, POLLIN, 0}, {STDOUT_FILENO, 0, 0}};
    char events[4096];

    if (poll(in, 2, WAIT_MS) <= 0)
        return;
    w->unread = in[1].revents & POLLERR;
    while (read(w->fd, events, sizeof(events)) > 0)
        ;
}

static const char *change_words(const struct save_watch *w, const struct eval_summary *s,
                                struct arena *a)
{
    double us = s->measurement.time_us;

    if (w->number == 1)
        return "first";
    if (s->verdict.kind != w->last)
        return arena_printf(a, "was %s", verdict_names[w->last]);
    if (us > 0 && w->last_us > 0 && us != w->last_us)
        return arena_printf(a, "%.2fx %s than before",
                            us < w->last_us ? w->last_us / us : us / w->last_us,
                            us < w->last_us ? "faster" : "slower");
    return "as before";
}

static void show_verdict(struct save_watch *w, const struct eval_summary *s, int64_t took_ms,
                         struct arena *a)
{
    const struct cli *cli = w->cli;
    const char *change = change_words(w, s, a);
    bool pass = s->verdict.kind == VERDICT_PASS;

    if (cli->json) {
        json_t *o = verdict_json(&s->verdict);

        json_object_set_new(o, "event", json_string("verdict"));
        json_object_set_new(o, "number", json_integer(w->number));
        json_object_set_new(o, "measurement", measurement_json(&s->measurement));
        json_object_set_new(o, "change", json_from_string(change));
        json_object_set_new(o, "took_ms", json_integer(took_ms));
        json_object_set_new(o, "run", json_from_string(s->run_id));
        print_json(o);
        return;
    }
    printf("%s#%d  %s  %s%s%s, %s  (judged in %.1f s)%s\n", paint_on(cli, PAINT_BOLD), w->number,
           verdict_names[s->verdict.kind], show_us(s->measurement.time_us, a),
           s->measurement.modelled ? " " : "",
           s->measurement.modelled ? measurement_words(&s->measurement) : "", change,
           (double)took_ms / 1000, paint_off(cli));
    if (!pass)
        print_verdict(cli, &s->verdict, false);
    fflush(stdout);
}

/* A broken task or machine is reported and the watch continues: the next save may fix it. */
static void judge_now(struct save_watch *w)
{
    struct arena *a = arena_new();
    struct eval_summary *s = arena_alloc(a, sizeof(*s));
    struct error why = {0};
    int64_t begin = clock_ms();
    struct progress *progress = w->cli->json ? NULL : progress_new_live(w->cli);
    bool ok =
        loop_eval(&w->cli->settings, w->cli->words[0], w->cli->words[1], progress, a, s, &why);

    progress_end(progress);
    w->number++;
    if (ok) {
        show_verdict(w, s, clock_ms() - begin, a);
        w->last = s->verdict.kind;
        w->last_us = s->measurement.time_us;
    } else if (w->cli->json) {
        print_json(json_pack("{s:s, s:i, s:o, s:o}", "event", "problem", "number", w->number,
                             "text", json_from_string(why.text), "hint",
                             json_from_string(why.hint)));
    } else {
        printf("#%d  not judged: %s%s%s\n", w->number, why.text, why.hint[0] ? "\n    " : "",
               why.hint);
        fflush(stdout);
    }
    arena_free(a);
}

bool cmd_watch(struct cli *cli, int *code, struct error *err)
{
    struct save_watch w = {.cli = cli, .fd = -1};
    bool ok;

    (void)code;
    for (int i = 0; i < 2; i++)
        if (!file_exists(cli->words[i]))
            return error_set(err, ERROR_USE, "there is no file %s", cli->words[i]);
    ok = watch_open(&w, err); /* before the first judgement, so that no save is missed */
    if (ok && !cli->json)
        printf("watching %s and %s; Ctrl-C ends it\n", cli->words[0], cli->words[1]);
    while (ok && !loop_interrupts && !w.unread) {
        if (take_change(&w))
            judge_now(&w);
        else
            wait_for_events(&w);
    }
    if (w.fd >= 0)
        close(w.fd);
    return ok;
}
