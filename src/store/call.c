/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call.c - model calls, from before they are sent until their reply is stored.
 *
 * A row is written before the request is sent, with the finish reason "in flight" and the most the
 * call can cost. The reply replaces it. The request is made by a process that outlives the run's
 * (src/caller). That process holds a lock on RUN/call-CALL.lock, so that others on its machine see
 * whether it lives; for other machines it updates the row periodically. Its reply is in
 * RUN/reply-CALL.json before anyone uses it. run_calls_settle() stores the reply from that file, or
 * waits while the process lives, or else marks the row as killed, at its upper bound.
 *
 * Invariants
 * 1. The row is committed before run_call_begin() comes back.
 * 2. Keeping a reply needs no lock and no database: one write() of a file,
 *    which survives kill -9. The file is removed only after the row has the reply.
 * 3. A process on another machine counts as alive if its row changes within a time measured here:
 *    clocks of two machines are never compared.
 * 4. A hold is released only after reply and row were written; so after it is seen free, both are
 *    read again.
 */
#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "store/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    MAX_REPLY_BYTES = 64 << 20,
    MAX_IN_FLIGHT = 256,
    LOOK_MS = 200,
    BOOT_BYTES = 64,
    HOLD_WAIT_MS = 60 * 1000,
    HOLD_LOOK_US = 5000,
};

static const char *or_empty(const char *s)
{
    return s ? s : "";
}

static bool messages_insert(struct store *s, int64_t call, const struct request *req,
                            struct error *err)
{
    for (size_t i = 0; i < req->message_count; i++) {
        char sha[65];
        if (!blob_insert(s, req->messages[i].content, sha, err) ||
            !sql_run(s, err,
                     "INSERT INTO messages (call, number, role, content) VALUES (?, ?, ?, ?)",
                     "lltt", call, (int64_t)i, or_empty(req->messages[i].role), sha))
            return false;
    }
    return true;
}

static bool call_insert(struct run *r, int attempt, int slot, const struct request *req,
                        const struct reply *p, int64_t *call, struct error *err)
{
    char sha[65];

    if (!blob_insert(r->store, p->text, sha, err) ||
        !sql_int(r->store, 0, call, err,
                 "INSERT INTO calls (run, attempt, slot, stage, at_ms, prompt_hash, model, "
                 "finish_reason, prompt_tokens, cached_tokens, output_tokens, cost_usd, "
                 "latency_ms, retries, done, reply) "
                 "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
                 "tiitltttllldiiit", r->id, attempt, slot, stage_names[req->stage], clock_unix_ms(),
                 or_empty(req->prompt_hash), or_empty(p->model), or_empty(p->finish_reason),
                 p->prompt_tokens, p->cached_tokens, p->output_tokens, p->cost_usd, p->latency_ms,
                 p->retries, (int)p->done, sha))
        return false;
    return messages_insert(r->store, *call, req, err);
}

#define CALL_SET                                                                                   \
    "UPDATE calls SET at_ms = ?, model = ?, finish_reason = ?, prompt_tokens = ?, "                \
    "cached_tokens = ?, output_tokens = ?, cost_usd = ?, latency_ms = ?, retries = ?, "            \
    "done = ?, reply = ? WHERE id = ? AND run = ?"

/* `sql` begins with CALL_SET; *id is 0 if no row matched. */
static bool call_update(struct store *s, const char *sql, const struct call_place *at,
                        const struct reply *p, int64_t *id, struct error *err)
{
    char sha[65];

    return blob_insert(s, p->text, sha, err) &&
           sql_int(s, 0, id, err, sql, "lttllldiiitlt", clock_unix_ms(), or_empty(p->model),
                   or_empty(p->finish_reason), p->prompt_tokens, p->cached_tokens, p->output_tokens,
                   p->cost_usd, p->latency_ms, p->retries, (int)p->done, sha, at->call, at->run);
}

static struct call_place place_of(const struct run *r, int64_t call)
{
    return (struct call_place){r->dir, r->id, call};
}

bool run_call_add(struct run *r, int attempt, int slot, const struct request *req,
                  const struct reply *reply, struct error *err)
{
    int64_t call;

    return (sql_begin(r->store, err) &&
            sql_end(r->store, call_insert(r, attempt, slot, req, reply, &call, err), err)) ||
           error_add(err, "storing a reply for attempt %d of %s", attempt, r->id);
}

bool run_call_begin(struct run *r, int attempt, int slot, const struct request *req,
                    const struct reply *bound, int64_t *call, struct error *err)
{
    struct reply row = *bound;

    row.finish_reason = CALL_IN_FLIGHT;
    return (sql_begin(r->store, err) &&
            sql_end(r->store, call_insert(r, attempt, slot, req, &row, call, err), err)) ||
           error_add(err, "storing a call for attempt %d of %s", attempt, r->id);
}

bool run_call_raise(struct run *r, int64_t call, const struct reply *bound, struct error *err)
{
    return (sql_begin(r->store, err) &&
            sql_end(r->store,
                    sql_run(r->store, err,
                            "UPDATE calls SET prompt_tokens = ?, output_tokens = ?, cost_usd = ? "
                            "WHERE id = ?",
                            "lldl", bound->prompt_tokens, bound->output_tokens, bound->cost_usd,
                            call),
                    err)) ||
           error_add(err, "storing a call of %s", r->id);
}

/* ---- reply files ------------------------------ */

static const char *reply_path(const struct call_place *at, struct arena *a)
{
    return arena_printf(a, "%s/reply-%lld.json", at->dir, (long long)at->call);
}

static json_t *reply_json(const struct reply *p)
{
    return json_pack("{s:o, s:o, s:o, s:I, s:I, s:I, s:f, s:i, s:i, s:b}", "text",
                     json_from_text(p->text.data ? p->text : text_of("")), "model",
                     json_from_string(or_empty(p->model)), "finish_reason",
                     json_from_string(or_empty(p->finish_reason)), "prompt_tokens",
                     (json_int_t)p->prompt_tokens, "cached_tokens", (json_int_t)p->cached_tokens,
                     "output_tokens", (json_int_t)p->output_tokens, "cost_usd", p->cost_usd,
                     "latency_ms", p->latency_ms, "retries", p->retries, "done", (int)p->done);
}

void store_call_keep(const struct call_place *at, const struct reply *reply)
{
    struct arena *a = arena_new();
    const char *path = reply_path(at, a);
    json_t *o = reply_json(reply);
    char *text = json_text(o);
    size_t len = strlen(text);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    /* If this fails, a kill right now would only cost the call again. */
    if (fd < 0 || write(fd, text, len) != (ssize_t)len)
        log_warn("cannot keep a reply in %s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    xfree(text);
    json_decref(o);
    arena_free(a);
}

void run_reply_keep(const struct run *r, int64_t call, const struct reply *reply)
{
    struct call_place at = place_of(r, call);

    store_call_keep(&at, reply);
}

/* The reply from its file; false: it had not arrived completely. */
static bool reply_kept(const struct call_place *at, struct arena *a, struct reply *out)
{
    struct error ignored = {0};
    const json_t *text;
    struct text t;
    json_t *o;

    if (!file_read(reply_path(at, a), MAX_REPLY_BYTES, a, &t, &ignored) ||
        !json_parse(t, "a kept reply", &o, &ignored))
        return false;
    text = json_object_get(o, "text");
    *out = (struct reply){
        .text = arena_text(a, or_empty(json_string_value(text)), json_string_length(text)),
        .model = arena_strdup(a, json_string_or(o, "model", "")),
        .finish_reason = arena_strdup(a, json_string_or(o, "finish_reason", "stop")),
        .prompt_tokens = json_int_or(o, "prompt_tokens", -1),
        .cached_tokens = json_int_or(o, "cached_tokens", -1),
        .output_tokens = json_int_or(o, "output_tokens", -1),
        .cost_usd = json_double_or(o, "cost_usd", -1),
        .latency_ms = (int)json_int_or(o, "latency_ms", 0),
        .retries = (int)json_int_or(o, "retries", 0),
        .done = json_bool_or(o, "done", false),
    };
    json_decref(o);
    return true;
}

/* ---- is the asking process alive? ---------------------------------------- */

static const char *hold_path(const struct call_place *at, struct arena *a)
{
    return arena_printf(a, "%s/call-%lld.lock", at->dir, (long long)at->call);
}

/* Identifies the running OS kernel, which holds our locks: locks on another machine tell us
 * nothing. */
static void boot_id(char out[BOOT_BYTES])
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, out, BOOT_BYTES - 1) : 0;

    out[n > 0 ? n : 0] = '\0';
    if (fd >= 0)
        close(fd);
}

int run_call_hold(const struct run *r, int64_t call)
{
    struct call_place at = place_of(r, call);
    struct arena *a = arena_new();
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd = open(hold_path(&at, a), O_RDWR | O_CREAT | O_CLOEXEC, 0644), rc = -1;
    /* the process that made the last request is about to end */
    int64_t end = clock_ms() + HOLD_WAIT_MS;
    char boot[BOOT_BYTES];

    boot_id(boot);
    while (fd >= 0 && (rc = fcntl(fd, F_OFD_SETLK, &lock)) != 0 && clock_ms() < end)
        usleep(HOLD_LOOK_US);
    if (fd >= 0 &&
        (rc != 0 || !boot[0] || pwrite(fd, boot, strlen(boot), 0) != (ssize_t)strlen(boot))) {
        close(fd);
        fd = -1;
    }
    arena_free(a);
    return fd;
}

enum life { LIFE_YES, LIFE_NO, LIFE_ELSEWHERE };

static enum life call_life(const struct store *s, const struct call_place *at)
{
    struct arena *a = arena_new();
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char boot[BOOT_BYTES], theirs[BOOT_BYTES] = "";
    int fd = open(hold_path(at, a), O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? pread(fd, theirs, sizeof(theirs) - 1, 0) : 0;
    /* runs of a file store are on this machine */
    enum life life = s->url ? LIFE_ELSEWHERE : LIFE_NO;

    boot_id(boot);
    theirs[n > 0 ? n : 0] = '\0';
    if (fd >= 0 && boot[0] && strcmp(boot, theirs) == 0)
        life = fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK ? LIFE_YES : LIFE_NO;
    if (fd >= 0)
        close(fd);
    arena_free(a);
    return life;
}

void store_call_forget(const struct call_place *at)
{
    struct arena *a = arena_new();

    unlink(reply_path(at, a));
    unlink(hold_path(at, a));
    arena_free(a);
}

bool run_call_end(struct run *r, int64_t call, const struct reply *reply, struct error *err)
{
    struct call_place at = place_of(r, call);
    int64_t id = 0;

    if (!sql_begin(r->store, err) ||
        !sql_end(r->store, call_update(r->store, CALL_SET " RETURNING id", &at, reply, &id, err),
                 err))
        return error_add(err, "storing a reply of %s", r->id);
    if (id != call)
        BUG("call %lld of %s ends, but has not begun", (long long)call, r->id);
    store_call_forget(&at);
    return true;
}

/* ---- for the asking process ------------------------------------------------------ */

bool store_call_beat(struct store *s, const struct call_place *at, int64_t elapsed_ms,
                     struct error *err)
{
    return (sql_begin(s, err) &&
            sql_end(s,
                    sql_run(s, err,
                            "UPDATE calls SET latency_ms = ? WHERE id = ? AND run = ? AND "
                            "finish_reason = '" CALL_IN_FLIGHT "'",
                            "llt", elapsed_ms, at->call, at->run),
                    err)) ||
           error_add(err, "saying that a call of %s lives", at->run);
}

bool store_call_end(struct store *s, const struct call_place *at, const struct reply *reply,
                    struct error *err)
{
    int64_t id;

    return (sql_begin(s, err) &&
            sql_end(s,
                    call_update(s,
                                CALL_SET " AND (finish_reason = '" CALL_IN_FLIGHT "' OR "
                                         "(finish_reason = '" CALL_KILLED "' AND NOT EXISTS "
                                         "(SELECT 1 FROM calls n WHERE n.run = calls.run AND "
                                         "n.attempt = calls.attempt AND n.slot = calls.slot AND "
                                         "n.id > calls.id))) RETURNING id",
                                at, reply, &id, err),
                    err)) ||
           error_add(err, "storing a reply of %s", at->run);
}

/* ---- after a kill -------------------------------------------------------------- */

struct waited {
    struct call_place at;
    int64_t seen, changed_ms; /* the last heartbeat, and when it was seen */
    bool done;
};

/* *flying: the row says "in flight"; *seen: the value that a heartbeat changes. */
static bool row_look(struct store *s, const struct call_place *at, bool *flying, int64_t *seen,
                     struct error *err)
{
    if (!sql_int(s, -1, seen, err,
                 "SELECT latency_ms FROM calls WHERE id = ? AND finish_reason = ?", "lt", at->call,
                 CALL_IN_FLIGHT))
        return false;
    *flying = *seen >= 0;
    return true;
}

static bool give_up(struct run *r, struct waited *w, struct settle_how *how, struct error *err)
{
    int64_t id = 0;

    if (!sql_begin(r->store, err) ||
        !sql_end(r->store,
                 sql_int(r->store, 0, &id, err,
                         "UPDATE calls SET finish_reason = ? WHERE id = ? AND finish_reason = ? "
                         "RETURNING id",
                         "tlt", CALL_KILLED, w->at.call, CALL_IN_FLIGHT),
                 err))
        return false;
    if (id) {
        store_call_forget(&w->at);
        how->killed++;
    }
    w->done = true; /* else its reply arrived just now */
    return true;
}

/* Checks a call once; w->done: it is settled. */
static bool settle_one(struct run *r, struct waited *w, struct settle_how *how, struct arena *a,
                       struct error *err)
{
    enum life life = call_life(r->store, &w->at); /* before the reads below: invariant 4 */
    struct reply kept;
    int64_t seen;
    bool flying;

    if (!row_look(r->store, &w->at, &flying, &seen, err))
        return false;
    if (!flying) {
        w->done = true;
        return true;
    }
    if (reply_kept(&w->at, a, &kept)) {
        w->done = true;
        return run_call_end(r, w->at.call, &kept, err);
    }
    if (life == LIFE_NO)
        return give_up(r, w, how, err);
    if (life == LIFE_YES || seen != w->seen) {
        w->seen = seen;
        w->changed_ms = clock_ms();
    }
    if (clock_ms() - w->changed_ms >= (how->silent_ms ? how->silent_ms : CALL_SILENT_MS))
        return give_up(r, w, how, err);
    return true;
}

static bool calls_in_flight(struct store *s, const char *dir, const char *run, struct waited *list,
                            size_t *n, struct error *err)
{
    struct query q;

    *n = 0;
    if (!sql_query(s, &q, err,
                   "SELECT id FROM calls WHERE run = ? AND finish_reason = ? ORDER BY id", "tt",
                   run, CALL_IN_FLIGHT))
        return false;
    while (*n < MAX_IN_FLIGHT && sql_next(&q, err)) {
        list[*n] = (struct waited){
            .at = {dir, run, col_long(&q, 0)}, .seen = -1, .changed_ms = clock_ms()};
        ++*n;
    }
    return sql_done(&q);
}

bool store_replies_collect(struct store *s, const char *run, struct error *err)
{
    struct waited list[MAX_IN_FLIGHT];
    struct arena *a = arena_new();
    size_t n = 0;
    bool ok = calls_in_flight(s, path_join(a, s->dir, run), run, list, &n, err);

    for (size_t i = 0; ok && i < n; i++) {
        struct reply kept;

        if (!reply_kept(&list[i].at, a, &kept))
            continue;
        ok = store_call_end(s, &list[i].at, &kept, err);
        if (ok)
            store_call_forget(&list[i].at);
    }
    arena_free(a);
    return ok;
}

bool run_calls_settle(struct run *r, struct settle_how *how, struct error *err)
{
    struct waited list[MAX_IN_FLIGHT];
    struct arena *a = arena_new();
    size_t n = 0, open;
    bool ok = calls_in_flight(r->store, r->dir, r->id, list, &n, err), told = false;

    how->count = (int)n;
    how->killed = 0;
    for (open = n; ok && open > 0;) {
        open = 0;
        for (size_t i = 0; ok && i < n; i++) {
            if (!list[i].done)
                ok = settle_one(r, &list[i], how, a, err);
            open += !list[i].done;
        }
        if (!ok || !open)
            break;
        if (!told)
            log_warn("waiting for %zu model calls that %s has under way", open, r->id);
        told = true;
        if (how->stop && how->stop(how->stop_ctx))
            ok = error_set(err, ERROR_INTERRUPTED, "stopped while a model call is under way");
        else
            usleep(LOOK_MS * 1000);
    }
    arena_free(a);
    return ok || error_add(err, "settling the calls of %s", r->id);
}
