/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call.c - model calls, from before they are sent until their reply is stored.
 *
 * A row is there before the request goes out, with the finish reason "in
 * flight" and the most the call can cost. The reply takes its place. Whoever is
 * killed in between leaves either the row or, when the reply had arrived,
 * also the file RUN/reply-CALL.json; run_calls_settle() makes a stored reply of
 * the second and a call "killed", at its upper bound, of the first.
 *
 * Invariants
 * 1. The row is committed before run_call_begin() comes back.
 * 2. run_reply_keep() needs no lock and no database: one write() of a file,
 *    which outlives kill -9. The file is removed only after the row has it.
 */
#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "store/run.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { MAX_REPLY_BYTES = 64 << 20, MAX_IN_FLIGHT = 256 };

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

static bool call_update(struct run *r, int64_t call, const struct reply *p, struct error *err)
{
    char sha[65];
    int64_t id;

    if (!blob_insert(r->store, p->text, sha, err) ||
        !sql_int(r->store, 0, &id, err,
                 "UPDATE calls SET at_ms = ?, model = ?, finish_reason = ?, prompt_tokens = ?, "
                 "cached_tokens = ?, output_tokens = ?, cost_usd = ?, latency_ms = ?, retries = ?, "
                 "done = ?, reply = ? WHERE id = ? AND run = ? RETURNING id",
                 "lttllldiiitlt", clock_unix_ms(), or_empty(p->model), or_empty(p->finish_reason),
                 p->prompt_tokens, p->cached_tokens, p->output_tokens, p->cost_usd, p->latency_ms,
                 p->retries, (int)p->done, sha, call, r->id))
        return false;
    if (id != call)
        BUG("call %lld of %s ends, but has not begun", (long long)call, r->id);
    return true;
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

/* ---- a reply between its arrival and the store ------------------------------ */

static const char *reply_path(const struct run *r, int64_t call, struct arena *a)
{
    return arena_printf(a, "%s/reply-%lld.json", r->dir, (long long)call);
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

void run_reply_keep(const struct run *r, int64_t call, const struct reply *reply)
{
    struct arena *a = arena_new();
    const char *path = reply_path(r, call, a);
    json_t *o = reply_json(reply);
    char *text = json_text(o);
    size_t len = strlen(text);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    /* Without it a kill in the next moment costs the call again, and nothing else. */
    if (fd < 0 || write(fd, text, len) != (ssize_t)len)
        log_warn("cannot keep a reply in %s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    xfree(text);
    json_decref(o);
    arena_free(a);
}

/* The reply as it was kept; false: it had not arrived, or not whole. */
static bool reply_kept(const struct run *r, int64_t call, struct arena *a, struct reply *out)
{
    struct error ignored = {0};
    const json_t *text;
    struct text t;
    json_t *o;

    if (!file_read(reply_path(r, call, a), MAX_REPLY_BYTES, a, &t, &ignored) ||
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

static void reply_forget(const struct run *r, int64_t call)
{
    struct arena *a = arena_new();

    unlink(reply_path(r, call, a));
    arena_free(a);
}

bool run_call_end(struct run *r, int64_t call, const struct reply *reply, struct error *err)
{
    if (!sql_begin(r->store, err) || !sql_end(r->store, call_update(r, call, reply, err), err))
        return error_add(err, "storing a reply of %s", r->id);
    reply_forget(r, call);
    return true;
}

/* ---- after a kill -------------------------------------------------------------- */

static bool settle_one(struct run *r, int64_t call, struct arena *a, struct error *err)
{
    struct reply kept;

    if (reply_kept(r, call, a, &kept))
        return run_call_end(r, call, &kept, err);
    reply_forget(r, call);
    return sql_begin(r->store, err) &&
           sql_end(r->store,
                   sql_run(r->store, err, "UPDATE calls SET finish_reason = ? WHERE id = ?", "tl",
                           CALL_KILLED, call),
                   err);
}

bool run_calls_settle(struct run *r, int *count, struct error *err)
{
    int64_t calls[MAX_IN_FLIGHT];
    struct arena *a = arena_new();
    struct query q;
    size_t n = 0;
    bool ok = sql_query(r->store, &q, err,
                        "SELECT id FROM calls WHERE run = ? AND finish_reason = ? ORDER BY id",
                        "tt", r->id, CALL_IN_FLIGHT);

    while (ok && n < ARRAY_LEN(calls) && sql_next(&q, err))
        calls[n++] = col_long(&q, 0);
    ok = ok && sql_done(&q);
    for (size_t i = 0; ok && i < n; i++)
        ok = settle_one(r, calls[i], a, err);
    arena_free(a);
    *count = (int)n;
    return ok || error_add(err, "settling the calls of %s", r->id);
}
