/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.c - print a run as it proceeds: a table with a live last line.
 *
 * On a terminal the last line says what is being done and for how long; a thread updates it, and a
 * lock serializes the two writers. When stdout is not a terminal only whole lines are written. With
 * --json every event is one line of JSON (docs/commands.md).
 *
 * Invariants
 * 1. An attempt has exactly one line: the line of an attempt that passed is held back until its
 *    time is known.
 * 2. The column heads carry a * exactly when the times are modelled.
 */
#include "base/clock.h"
#include "base/log.h"
#include "cli/cmd.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum {
    SPARK_MAX = 64,
    CHANGE_WIDTH = 40,
    LIVE_MAX = 160,
    ERASE = 4, /* bytes that erase the line */
    WIDE = 80, /* the table shows all its columns from this width on */
    WIDE_FIXED = 54,
    NARROW_FIXED = 34, /* width of a row without the change */
};

struct live {
    bool on;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t stop;
    bool stopping;
    int columns;         /* of the terminal */
    char text[LIVE_MAX]; /* depth, attempt and stage */
    double speedup;      /* of the best over the first; 0: not yet */
    bool modelled;
    int64_t since_ms;
    int64_t tokens;
    double cost_usd;
};

struct progress_view {
    struct progress progress; /* must be first: the loop passes a pointer to it back to us */
    const struct cli *cli;
    struct live live;
    bool live_only;
    bool head_printed, modelled;
    int columns; /* of the terminal; 0: none */
    const char *models;
    int printed; /* number of the last attempt that was printed */
    struct {     /* passed, its time not yet known */
        int attempt, depth, repair, build_ms;
        char change[256];
    } waiting;
    double spark[SPARK_MAX];
    int spark_count;
};

/* ---- the live line -------------------------------------------------------- */

static void live_erase(struct live *l)
{
    if (l->on && write(STDOUT_FILENO, "\r\033[K", 4) < 0)
        l->on = false;
}

static void live_draw(struct live *l)
{
    char line[LIVE_MAX + 96];
    int64_t s = (clock_ms() - l->since_ms) / 1000;
    int n;

    if (!l->on || !l->text[0])
        return;
    n = snprintf(line, sizeof(line), "\r\033[K%s  %lld:%02lld", l->text, (long long)(s / 60),
                 (long long)(s % 60));
    if (l->speedup > 0)
        n += snprintf(line + n, sizeof(line) - (size_t)n, "  best %.2fx%s", l->speedup,
                      l->modelled ? "*" : "");
    if (l->tokens > 0)
        n += snprintf(line + n, sizeof(line) - (size_t)n, "  %lld tokens", (long long)l->tokens);
    if (l->cost_usd > 0)
        n += snprintf(line + n, sizeof(line) - (size_t)n, "  %.3f USD", l->cost_usd);
    /* A line that wraps could not be erased. */
    if (l->columns > 0 && n - ERASE >= l->columns)
        n = ERASE + l->columns - 1;
    if (write(STDOUT_FILENO, line, (size_t)n) < 0)
        l->on = false;
}

/* Prints a log line above the live line. */
static void live_log(void *ctx, const char *text, size_t len)
{
    struct live *l = ctx;

    pthread_mutex_lock(&l->lock);
    live_erase(l);
    print_log(NULL, text, len);
    live_draw(l);
    pthread_mutex_unlock(&l->lock);
}

static void *live_loop(void *arg)
{
    struct live *l = arg;

    pthread_mutex_lock(&l->lock);
    while (!l->stopping) {
        struct timespec until;

        live_draw(l);
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 250 * 1000 * 1000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&l->stop, &l->lock, &until);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

static void live_start(struct live *l)
{
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->stop, NULL);
    l->since_ms = clock_ms();
    if (l->on && pthread_create(&l->thread, NULL, live_loop, l))
        l->on = false;
    log_set_put(live_log, l);
}

static void live_stop(struct live *l)
{
    bool running = l->on;

    log_set_put(print_log, NULL);
    pthread_mutex_lock(&l->lock);
    l->stopping = true;
    pthread_cond_signal(&l->stop);
    pthread_mutex_unlock(&l->lock);
    if (running)
        pthread_join(l->thread, NULL);
    live_erase(l);
    pthread_cond_destroy(&l->stop);
    pthread_mutex_destroy(&l->lock);
}

/* ---- the table ------------------------------------------------------------ */

/* On a narrow terminal build time and roofline are left out and the change is shortened. */
static bool is_narrow(const struct progress_view *v)
{
    return v->columns > 0 && v->columns < WIDE;
}

static int change_width(const struct progress_view *v)
{
    int fixed = is_narrow(v) ? NARROW_FIXED : WIDE_FIXED;

    return v->columns == 0 || v->columns - fixed > CHANGE_WIDTH ? CHANGE_WIDTH : v->columns - fixed;
}

static void print_head(struct progress_view *v)
{
    const char *mark = v->modelled ? "*" : " ";

    if (v->head_printed)
        return;
    v->head_printed = true;
    if (is_narrow(v))
        printf("\n%sdepth  %-*s  %-14s      time%s%s\n", paint_on(v->cli, PAINT_DIM),
               change_width(v), "change", "verdict", mark, paint_off(v->cli));
    else
        printf("\n%sdepth  %-*s    build  %-14s      time%s  roofline%s%s\n",
               paint_on(v->cli, PAINT_DIM), change_width(v), "change", "verdict", mark, mark,
               paint_off(v->cli));
}

/* Prints UTF-8 text, truncated or padded to `width` columns. */
static void print_padded(const char *text, int width)
{
    int columns = 0;
    const char *p = text;

    for (; *p && *p != '\n' && columns < width; columns++)
        do
            p++;
        while ((*p & 0xC0) == 0x80);
    fwrite(text, 1, (size_t)(p - text), stdout);
    printf("%*s", width - columns, "");
}

static void print_spark(const struct progress_view *v)
{
    static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    double top = v->spark[0], bottom = v->spark[0];

    if (v->spark_count < 2 || !v->cli->utf8)
        return;
    for (int i = 0; i < v->spark_count; i++) {
        top = v->spark[i] > top ? v->spark[i] : top;
        bottom = v->spark[i] < bottom ? v->spark[i] : bottom;
    }
    printf("  ");
    for (int i = 0; i < v->spark_count; i++) {
        int level = top > bottom ? (int)((v->spark[i] - bottom) / (top - bottom) * 7.999) : 0;

        fputs(bars[level < 0 ? 0 : level > 7 ? 7 : level], stdout);
    }
}

static void add_spark(struct progress_view *v, double time_us)
{
    if (time_us <= 0)
        return;
    if (v->spark_count == SPARK_MAX) {
        memmove(v->spark, v->spark + 1, sizeof(v->spark) - sizeof(v->spark[0]));
        v->spark_count--;
    }
    v->spark[v->spark_count++] = 1 / time_us;
}

/* One line of the table; `m` NULL: no time. */
static void print_row(struct progress_view *v, const struct verdict *verdict, const char *change,
                      int depth, int repair, int build_ms, const struct measurement *m)
{
    struct arena *a = arena_new();
    bool pass = !verdict || verdict->kind == VERDICT_PASS;
    const char *name = verdict_names[verdict ? verdict->kind : VERDICT_PASS];

    print_head(v);
    if (repair) {
        printf("       %s ", v->cli->utf8 ? "└" : "`");
        print_padded(arena_printf(a, "repair %d: %s", repair, change), change_width(v) - 2);
    } else {
        printf("%5d  ", depth);
        print_padded(change, change_width(v));
    }
    if (build_ms > 0 && !is_narrow(v))
        printf("  %5.1f s", build_ms / 1000.0);
    else if (!is_narrow(v))
        printf("         ");
    printf("  %s%-14s%s", paint_on(v->cli, pass ? PAINT_GOOD : PAINT_BAD), name, paint_off(v->cli));
    if (m && m->time_us > 0) {
        printf("  %9s", show_us(m->time_us, a));
        if (m->floor_us > 0 && !is_narrow(v))
            printf("  %7.0f %%", m->floor_us / m->time_us * 100);
        add_spark(v, m->time_us);
        if (v->columns == 0 || change_width(v) + WIDE_FIXED + 2 + v->spark_count <= v->columns)
            print_spark(v);
    }
    putchar('\n');
    if (!pass && verdict->summary && *verdict->summary) {
        printf("%s         ", paint_on(v->cli, PAINT_DIM));
        print_wrapped(stdout, verdict->summary, strcspn(verdict->summary, "\n"), 9, 9);
        fputs(paint_off(v->cli), stdout);
    }
    arena_free(a);
}

static void flush_waiting(struct progress_view *v, const struct measurement *m)
{
    if (!v->waiting.attempt)
        return;
    v->printed = v->waiting.attempt;
    v->waiting.attempt = 0;
    print_row(v, NULL, v->waiting.change, v->waiting.depth, v->waiting.repair, v->waiting.build_ms,
              m);
}

/* "class     gemm  ..." */
static void print_named(const char *name, const char *text)
{
    printf("%-10s", name);
    print_wrapped(stdout, text, strlen(text), 10, 10);
}

static void show_task(struct progress_view *v, const struct event *ev)
{
    struct arena *a = arena_new();
    const struct task *t = ev->task;
    const char *first = t->in_count ? show_shape(&t->in[0], a) : "", *device = "";

    if (ev->device) {
        v->modelled = ev->device->kind == DEVICE_SIMT;
        v->models = arena_strdup(v->cli->a, ev->device->models ? ev->device->models : "a GPU");
        device = arena_printf(a, "        device  %s", show_device(ev->device, a));
    }
    print_named("task",
                arena_printf(a, "%s  %s%s%s%s", t->name, first, t->in_count > 1 ? ", ..." : "",
                             t->scaled ? "; scaled for simt: " : "", t->scaled ? t->scaled : ""));
    print_named("class", arena_printf(a, "%s  %s", class_names[t->class],
                                      t->class_evidence ? t->class_evidence : ""));
    print_named(
        "engineer",
        arena_printf(a, "%s%s", ev->text && *ev->text ? ev->text : v->cli->settings.model, device));
    arena_free(a);
}

static void show_attempt(struct progress_view *v, const struct event *ev)
{
    const struct candidate *c = ev->candidate;
    const char *change = c->change ? c->change : "";
    bool timed = ev->measurement && ev->measurement->time_us > 0;

    if (c->attempt == v->printed)
        return;
    if (v->waiting.attempt == c->attempt)
        v->waiting.attempt = 0;
    flush_waiting(v, NULL);
    if (ev->verdict->kind == VERDICT_PASS && !timed) {
        v->waiting.attempt = c->attempt;
        v->waiting.depth = c->depth;
        v->waiting.repair = c->repair;
        v->waiting.build_ms = ev->build_ms;
        snprintf(v->waiting.change, sizeof(v->waiting.change), "%s", change);
        return;
    }
    v->printed = c->attempt;
    print_row(v, ev->verdict, change, c->depth, c->repair, ev->build_ms, ev->measurement);
}

static void show_depth(struct progress_view *v, const struct event *ev)
{
    if (v->waiting.attempt)
        flush_waiting(v, ev->measurement);
}

/* ---- events --------------------------------------------------------------- */

static void json_event(const struct event *ev)
{
    static const char *const names[] = {"task", "stage", "attempt", "depth", "note", "end"};
    json_t *o = json_pack("{s:s, s:s?, s:o}", "event", names[ev->kind], "run", ev->run_id, "text",
                          json_from_string(ev->text));

    if (ev->kind == EVENT_TASK && ev->task)
        json_object_set_new(o, "task", task_json(ev->task));
    if (ev->kind == EVENT_TASK && ev->device)
        json_object_set_new(o, "device", device_json(ev->device));
    if (ev->candidate) {
        json_object_set_new(o, "depth", json_integer(ev->candidate->depth));
        json_object_set_new(o, "attempt", json_integer(ev->candidate->attempt));
        json_object_set_new(o, "repair", json_integer(ev->candidate->repair));
        json_object_set_new(o, "change", json_from_string(ev->candidate->change));
    }
    if (ev->verdict)
        json_object_set_new(o, "judgement", verdict_json(ev->verdict));
    if (ev->measurement)
        json_object_set_new(o, "measurement", measurement_json(ev->measurement));
    if (ev->build_ms > 0)
        json_object_set_new(o, "build_ms", json_integer(ev->build_ms));
    if (ev->tokens > 0)
        json_object_set_new(o, "tokens", json_integer(ev->tokens));
    if (ev->cost_usd > 0)
        json_object_set_new(o, "cost_usd", json_real(ev->cost_usd));
    print_json(o);
}

static void set_live(struct live *l, const struct event *ev)
{
    if (ev->kind == EVENT_STAGE && ev->attempt_now > 0)
        snprintf(l->text, sizeof(l->text), "depth %d  attempt %d  %s", ev->depth_now,
                 ev->attempt_now, ev->text ? ev->text : "");
    else if (ev->kind == EVENT_STAGE)
        snprintf(l->text, sizeof(l->text), "%s", ev->text ? ev->text : "");
    if (ev->first_us > 0 && ev->best_us > 0)
        l->speedup = ev->first_us / ev->best_us;
    l->modelled = ev->device && ev->device->kind == DEVICE_SIMT;
    if (ev->tokens > 0)
        l->tokens = ev->tokens;
    if (ev->cost_usd > 0)
        l->cost_usd = ev->cost_usd;
}

static void show_event(struct progress_view *v, const struct event *ev)
{
    switch (ev->kind) {
    case EVENT_TASK:
        show_task(v, ev);
        break;
    case EVENT_ATTEMPT:
        show_attempt(v, ev);
        break;
    case EVENT_DEPTH:
        show_depth(v, ev);
        break;
    case EVENT_NOTE:
        print_named("note", ev->text ? ev->text : "");
        break;
    case EVENT_STAGE:
        break;
    case EVENT_END:
        flush_waiting(v, NULL);
        v->live.text[0] = '\0';
        break;
    }
}

static void on_event(struct progress *self, const struct event *ev)
{
    struct progress_view *v = (struct progress_view *)self;

    if (v->cli->json) {
        json_event(ev);
        return;
    }
    if (v->cli->quiet)
        return;
    pthread_mutex_lock(&v->live.lock);
    set_live(&v->live, ev);
    live_erase(&v->live);
    if (!v->live_only)
        show_event(v, ev);
    fflush(stdout);
    live_draw(&v->live);
    pthread_mutex_unlock(&v->live.lock);
}

struct progress *progress_new(const struct cli *cli)
{
    struct progress_view *v = xmalloc(sizeof(*v));

    v->progress.event = on_event;
    v->cli = cli;
    v->columns = v->live.columns = terminal_columns(stdout);
    v->live.on = !cli->json && !cli->quiet && isatty(STDOUT_FILENO);
    /* Shown until the first event, which comes after PyTorch has started. */
    snprintf(v->live.text, sizeof(v->live.text), "reading the task");
    live_start(&v->live);
    return &v->progress;
}

struct progress *progress_new_live(const struct cli *cli)
{
    struct progress *p = progress_new(cli);

    ((struct progress_view *)p)->live_only = true;
    return p;
}

void progress_end(struct progress *p)
{
    struct progress_view *v = (struct progress_view *)p;

    if (!v)
        return;
    live_stop(&v->live);
    if (!v->cli->json && !v->cli->quiet) {
        flush_waiting(v, NULL);
        if (v->modelled && v->spark_count)
            print_fit(2, "%s* %s for %s by simt, not measured: run on a GPU to measure%s",
                      paint_on(v->cli, PAINT_DIM), modelled_words(v->models), v->models,
                      paint_off(v->cli));
    }
    fflush(stdout);
    xfree(v);
}
