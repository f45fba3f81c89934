/* SPDX-License-Identifier: Apache-2.0 */
/*
 * budget.c - limits, and what has been spent of them, in memory, in a locked file or a shared text.
 *
 * Hides the storage: the file is one line of JSON under flock(), the text the same line. Threads of
 * this process need a mutex as well, because flock() does not exclude them.
 */
#include "llm/budget.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

enum {
    MAX_RESERVED = 256,
    MAX_FILE = 1 << 16,
    LEAST_OUTPUT = 256, /* a call limited to fewer output tokens is not worth its prompt */
    WAIT_STEP_MS = 50,
    PAD = 1024,
    OWNER = 16,
};

/* We cannot check whether a holder on another machine is alive. No call takes this long, even if
 * clocks are off by an hour. */
static const int64_t LOST_MS = 4LL * 3600 * 1000;

struct reservation {
    uint64_t id;
    int64_t pid, tokens;
    double usd;
    int64_t at_ms;         /* in a shared text */
    char owner[OWNER + 1]; /* likewise; "" in a file */
};

struct state {
    int64_t started_ms, last_ms, calls, tokens; /* last: time of the last write */
    double usd;
    bool usd_unknown;
    uint64_t next_id;
    struct reservation held[MAX_RESERVED];
    size_t held_count;
};

struct budget {
    struct budget_limits limits;
    char *path;
    const struct shared_text *place;
    char owner[OWNER + 1];
    int fd;
    pthread_mutex_t lock;
    struct state state;
};

/* ---- the file ------------------------------------------------------------------ */

static void state_from_json(const json_t *o, struct state *s)
{
    const json_t *list = json_object_get(o, "held"), *r;
    size_t i;

    s->started_ms = json_int_or(o, "started_ms", clock_unix_ms());
    s->last_ms = json_int_or(o, "last_ms", 0);
    s->calls = json_int_or(o, "calls", 0);
    s->tokens = json_int_or(o, "tokens", 0);
    s->usd = json_double_or(o, "usd", 0);
    s->usd_unknown = json_bool_or(o, "usd_unknown", false);
    s->next_id = (uint64_t)json_int_or(o, "next_id", 1);
    s->held_count = 0;
    json_array_foreach(list, i, r)
    {
        if (s->held_count == MAX_RESERVED)
            break;
        struct reservation *to = &s->held[s->held_count++];

        *to = (struct reservation){
            .id = (uint64_t)json_int_or(r, "id", 0),
            .pid = json_int_or(r, "pid", 0),
            .tokens = json_int_or(r, "tokens", 0),
            .usd = json_double_or(r, "usd", 0),
            .at_ms = json_int_or(r, "at_ms", 0),
        };
        snprintf(to->owner, sizeof(to->owner), "%s", json_string_or(r, "owner", ""));
    }
}

static json_t *state_to_json(const struct state *s)
{
    json_t *o = json_object(), *list = json_array();

    json_object_set_new(o, "started_ms", json_integer(s->started_ms));
    json_object_set_new(o, "last_ms", json_integer(clock_unix_ms()));
    json_object_set_new(o, "calls", json_integer(s->calls));
    json_object_set_new(o, "tokens", json_integer(s->tokens));
    json_object_set_new(o, "usd", json_real(s->usd));
    json_object_set_new(o, "usd_unknown", json_boolean(s->usd_unknown));
    json_object_set_new(o, "next_id", json_integer((json_int_t)s->next_id));
    for (size_t i = 0; i < s->held_count; i++)
        json_array_append_new(
            list, json_pack("{s:I, s:I, s:I, s:f, s:I, s:s}", "id", (json_int_t)s->held[i].id,
                            "pid", (json_int_t)s->held[i].pid, "tokens",
                            (json_int_t)s->held[i].tokens, "usd", s->held[i].usd, "at_ms",
                            (json_int_t)s->held[i].at_ms, "owner", s->held[i].owner));
    json_object_set_new(o, "held", list);
    return o;
}

static bool file_load(struct budget *b, struct error *err)
{
    char text[MAX_FILE];
    ssize_t n = pread(b->fd, text, sizeof(text), 0);
    json_t *o;

    if (n < 0)
        return error_set(err, ERROR_MACHINE, "cannot read the budget file %s: %s", b->path,
                         strerror(errno));
    if (n == 0)
        return true; /* new file: the state that budget_open filled in is valid */
    if (!json_parse((struct text){text, (size_t)n}, b->path, &o, err))
        return error_hint(err, "remove the file to start a new budget");
    state_from_json(o, &b->state);
    json_decref(o);
    return true;
}

/* One write, padded so that it is never shorter than what it replaces: a killed process leaves
 * the old content or the new one. */
static bool file_save(struct budget *b, struct error *err)
{
    json_t *o = state_to_json(&b->state);
    char *text = json_dumps(o, JSON_COMPACT);
    size_t len = text ? strlen(text) : 0, whole = (len + PAD) / PAD * PAD;
    off_t before = lseek(b->fd, 0, SEEK_END);
    struct buf page = buf_init(MAX_FILE);
    bool ok;

    whole = before > (off_t)whole && before <= MAX_FILE ? (size_t)before : whole;
    buf_puts(&page, text ? text : "");
    while (page.len < whole && !page.overflowed)
        buf_putc(&page, page.len + 1 < whole ? ' ' : '\n');
    ok = text && !page.overflowed && pwrite(b->fd, page.data, page.len, 0) == (ssize_t)page.len;
    json_decref(o);
    free(text);
    buf_release(&page);
    if (!ok)
        return error_set(err, ERROR_MACHINE, "cannot write the budget file %s: %s", b->path,
                         strerror(errno));
    return true;
}

/* ---- the shared text --------------------------------------------------------------- */

static bool place_load(struct budget *b, struct error *err)
{
    struct arena *a = arena_new();
    struct text t;
    json_t *o;
    bool ok = b->place->begin(b->place->ctx, a, &t, err);

    if (ok && t.len) {
        ok = json_parse(t, "the shared budget", &o, err);
        if (ok) {
            state_from_json(o, &b->state);
            json_decref(o);
        } else {
            struct error ignored = {0};
            b->place->end(b->place->ctx, NULL, &ignored);
        }
    }
    arena_free(a);
    return ok;
}

static bool place_save(struct budget *b, bool changed, struct error *err)
{
    json_t *o = changed ? state_to_json(&b->state) : NULL;
    char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;
    bool ok = b->place->end(b->place->ctx, text, err);

    json_decref(o);
    free(text);
    return ok;
}

/* ---- locking ----------------------------------------------------------------- */

static bool begin(struct budget *b, struct error *err)
{
    pthread_mutex_lock(&b->lock);
    if (b->place && !place_load(b, err)) {
        pthread_mutex_unlock(&b->lock);
        return false;
    }
    if (!b->path)
        return true;
    while (flock(b->fd, LOCK_EX) != 0) {
        if (errno == EINTR)
            continue;
        pthread_mutex_unlock(&b->lock);
        return error_set(err, ERROR_MACHINE, "cannot lock the budget file %s: %s", b->path,
                         strerror(errno));
    }
    if (file_load(b, err))
        return true;
    flock(b->fd, LOCK_UN);
    pthread_mutex_unlock(&b->lock);
    return false;
}

static bool end(struct budget *b, bool changed, struct error *err)
{
    bool ok = !b->place || place_save(b, changed, err);

    if (b->path) {
        if (changed)
            ok = file_save(b, err);
        flock(b->fd, LOCK_UN);
    }
    pthread_mutex_unlock(&b->lock);
    return ok;
}

/* ---- the arithmetic --------------------------------------------------------------- */

/* Counts what a dead process had reserved as spent, since the cost of its call is unknown. */
static void bury_dead(struct state *s)
{
    for (size_t i = 0; i < s->held_count;) {
        const struct reservation *r = &s->held[i];
        bool dead = *r->owner ? clock_unix_ms() - r->at_ms > LOST_MS
                              : kill((pid_t)r->pid, 0) != 0 && errno == ESRCH;

        if (!dead) {
            i++;
            continue;
        }
        s->tokens += r->tokens;
        s->usd += r->usd;
        s->held[i] = s->held[--s->held_count];
    }
}

static void held_sum(const struct state *s, int64_t *tokens, double *usd)
{
    *tokens = 0;
    *usd = 0;
    for (size_t i = 0; i < s->held_count; i++) {
        *tokens += s->held[i].tokens;
        *usd += s->held[i].usd;
    }
}

/* The most output that fits beside what is spent and reserved; < 0: not even the prompt fits. */
static int64_t output_that_fits(const struct budget *b, const struct budget_want *w,
                                int64_t tokens_gone, double usd_gone)
{
    int64_t out = w->output_tokens, left;
    double money;

    if (b->limits.tokens > 0) {
        left = b->limits.tokens - tokens_gone - w->prompt_tokens;
        out = left < out ? left : out;
    }
    if (b->limits.usd > 0 && w->usd_per_prompt_token >= 0) {
        money = b->limits.usd - usd_gone - (double)w->prompt_tokens * w->usd_per_prompt_token;
        if (money < 0)
            out = -1;
        else if (w->usd_per_output_token > 0 && money / w->usd_per_output_token < (double)out)
            out = (int64_t)(money / w->usd_per_output_token);
    }
    return out;
}

static bool refuse(const struct budget *b, const struct budget_want *w, struct error *err)
{
    const struct state *s = &b->state;

    if (b->limits.usd > 0 && output_that_fits(&(struct budget){.limits = {.usd = b->limits.usd}}, w,
                                              0, s->usd) < LEAST_OUTPUT)
        error_set(err, ERROR_BUDGET,
                  "the money budget is spent: $%.4f of $%.4f, and the next call does not fit "
                  "into the rest",
                  s->usd, b->limits.usd);
    else
        error_set(err, ERROR_BUDGET,
                  "the token budget is spent: %lld of %lld, and the next call (a prompt of about "
                  "%lld) does not fit into the rest",
                  (long long)s->tokens, (long long)b->limits.tokens, (long long)w->prompt_tokens);
    return error_hint(err, "raise the budget and resume");
}

enum verdict { GRANTED, WAIT, REFUSED };

static enum verdict try_reserve(struct budget *b, const struct budget_want *w,
                                struct budget_grant *out, struct error *err)
{
    struct state *s = &b->state;
    int64_t held_tokens, fits,
        least = w->output_tokens < LEAST_OUTPUT ? w->output_tokens : LEAST_OUTPUT;
    int64_t elapsed = clock_unix_ms() - s->started_ms;
    double held_usd;

    bury_dead(s);
    if (b->limits.calls > 0 && s->calls >= b->limits.calls) {
        error_set(err, ERROR_BUDGET, "the budget of %lld calls is spent",
                  (long long)b->limits.calls);
        return REFUSED;
    }
    if (b->limits.minutes > 0 && (double)elapsed >= b->limits.minutes * 60000) {
        error_set(err, ERROR_BUDGET, "the budget of %.4g minutes is spent", b->limits.minutes);
        return REFUSED;
    }
    if (output_that_fits(b, w, s->tokens, s->usd) < least) {
        refuse(b, w, err);
        return REFUSED;
    }
    held_sum(s, &held_tokens, &held_usd);
    fits = output_that_fits(b, w, s->tokens + held_tokens, s->usd + held_usd);
    if (fits < least || s->held_count == MAX_RESERVED)
        return WAIT;
    out->id = s->next_id++;
    out->prompt_tokens = w->prompt_tokens;
    out->output_tokens = fits;
    out->usd = 0;
    if (w->usd_per_prompt_token >= 0 && w->usd_per_output_token >= 0)
        out->usd = (double)w->prompt_tokens * w->usd_per_prompt_token +
                   (double)fits * w->usd_per_output_token;
    out->minutes_left_ms =
        b->limits.minutes > 0 ? (int64_t)(b->limits.minutes * 60000) - elapsed : -1;
    s->calls++;
    s->held[s->held_count++] = (struct reservation){
        .id = out->id,
        .pid = getpid(),
        .tokens = out->prompt_tokens + fits,
        .usd = out->usd,
        .at_ms = clock_unix_ms(),
    };
    memcpy(s->held[s->held_count - 1].owner, b->owner, sizeof(b->owner));
    return GRANTED;
}

/* ---- the interface ------------------------------------------------------------------ */

/* Opens without changing the file. */
static bool budget_attach(const char *path, const struct budget_limits *limits, struct budget **out,
                          struct error *err)
{
    struct budget *b = xmalloc(sizeof(*b));

    b->limits = *limits;
    b->fd = -1;
    b->state.started_ms = clock_unix_ms();
    b->state.next_id = 1;
    pthread_mutex_init(&b->lock, NULL);
    if (path) {
        b->path = xstrdup(path);
        b->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
        if (b->fd < 0) {
            error_set(err, ERROR_MACHINE, "cannot open the budget file %s: %s", path,
                      strerror(errno));
            budget_close(b);
            return false;
        }
    }
    *out = b;
    return true;
}

bool budget_open(const char *path, const struct budget_limits *limits, struct budget **out,
                 struct error *err)
{
    struct budget *b;

    if (!budget_attach(path, limits, &b, err))
        return false;
    if (path && (!begin(b, err) || !end(b, true, err))) { /* writes started_ms */
        budget_close(b);
        return false;
    }
    *out = b;
    return true;
}

/* Counts what we had reserved before we were killed as spent. */
static void bury_own(struct budget *b)
{
    struct state *s = &b->state;

    for (size_t i = 0; i < s->held_count;) {
        if (strcmp(s->held[i].owner, b->owner) != 0) {
            i++;
            continue;
        }
        s->tokens += s->held[i].tokens;
        s->usd += s->held[i].usd;
        s->held[i] = s->held[--s->held_count];
    }
}

bool budget_open_shared(const struct shared_text *place, const struct budget_limits *limits,
                        struct budget **out, struct error *err)
{
    struct budget *b;
    char sha256[65];

    if (!budget_attach(NULL, limits, &b, err))
        return false;
    b->place = place;
    hash_text(text_of(place->owner), sha256);
    memcpy(b->owner, sha256, OWNER);
    if (!begin(b, err)) {
        budget_close(b);
        return false;
    }
    bury_own(b);
    if (!end(b, true, err)) {
        budget_close(b);
        return false;
    }
    *out = b;
    return true;
}

bool budget_has_money(const struct budget *b)
{
    return b && b->limits.usd > 0;
}

bool budget_reserve(struct budget *b, const struct budget_want *want, struct budget_grant *out,
                    struct error *err)
{
    const struct timespec step = {0, WAIT_STEP_MS * 1000000L};

    memset(out, 0, sizeof(*out));
    for (;;) {
        enum verdict v;

        if (!begin(b, err))
            return false;
        v = try_reserve(b, want, out, err);
        if (!end(b, v == GRANTED, err))
            return false;
        if (v != WAIT)
            return v == GRANTED;
        nanosleep(&step, NULL);
    }
}

void budget_settle(struct budget *b, const struct budget_grant *grant, int64_t tokens, double usd)
{
    struct error ignored = {0};
    struct state *s = &b->state;

    if (!begin(b, &ignored))
        return; /* the reservation stays and counts, to be safe */
    for (size_t i = 0; i < s->held_count; i++) {
        if (s->held[i].id != grant->id)
            continue;
        s->tokens += tokens >= 0 ? tokens : s->held[i].tokens;
        s->usd += usd >= 0 ? usd : tokens == 0 ? 0 : s->held[i].usd;
        s->usd_unknown |= usd < 0 && tokens != 0;
        s->held[i] = s->held[--s->held_count];
        break;
    }
    end(b, true, &ignored);
}

void budget_charge(struct budget *b, int64_t tokens, double usd)
{
    struct error ignored = {0};

    if (b->path || b->place || !begin(b, &ignored))
        return;
    b->state.calls++;
    b->state.tokens += tokens;
    b->state.usd += usd;
    end(b, true, &ignored);
}

static bool unpause(struct budget *b, struct error *err)
{
    int64_t now = clock_unix_ms();

    if (!begin(b, err))
        return false;
    b->state.started_ms += b->state.last_ms && now > b->state.last_ms ? now - b->state.last_ms : 0;
    return end(b, true, err);
}

bool budget_unpause(const char *path, struct error *err)
{
    struct budget_limits none = {0};
    struct budget *b = NULL;
    bool ok = budget_attach(path, &none, &b, err) && unpause(b, err);

    budget_close(b);
    return ok;
}

bool budget_unpause_shared(const struct shared_text *place, struct error *err)
{
    struct budget_limits none = {0};
    struct budget *b = NULL;
    bool ok = budget_attach(NULL, &none, &b, err);

    if (ok) {
        b->place = place;
        ok = unpause(b, err);
    }
    budget_close(b);
    return ok;
}

bool budget_spent(struct budget *b, struct budget_spent *out, struct error *err)
{
    if (!begin(b, err))
        return false;
    *out = (struct budget_spent){
        .calls = b->state.calls,
        .tokens = b->state.tokens,
        .usd = b->state.usd,
        .usd_unknown = b->state.usd_unknown,
        .elapsed_ms = clock_unix_ms() - b->state.started_ms,
    };
    return end(b, false, err);
}

void budget_close(struct budget *b)
{
    if (!b)
        return;
    if (b->fd >= 0)
        close(b->fd);
    pthread_mutex_destroy(&b->lock);
    xfree(b->path);
    xfree(b);
}
