/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transcript.c - record every call as one line of JSON, for people and for replay:.
 *
 * Invariants
 * 1. A line is written with one write() to a file opened for appending, under a
 *    lock: parallel runs may share a file.
 * 2. No key gets into it: the whole line is scrubbed.
 */
#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/vault.h"
#include "llm/provider/provider.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

void record_request_hash(const struct request *req, char out[65])
{
    struct hash h = hash_init();

    hash_add_text(&h, text_of(stage_names[req->stage]));
    for (size_t i = 0; i < req->message_count; i++) {
        hash_add_text(&h, text_of(req->messages[i].role));
        hash_add_text(&h, req->messages[i].content);
    }
    hash_hex(&h, out);
}

static json_t *count(int64_t n)
{
    return n < 0 ? json_null() : json_integer(n);
}

static json_t *string(struct text t)
{
    return json_from_text(t.data ? t : text_of(""));
}

json_t *record_of(const struct llm *llm, const struct request *req, const struct reply *reply,
                  json_t *faults)
{
    json_t *o = json_object(), *messages = json_array();
    char stamp[25], hash[65];

    clock_stamp(clock_unix_ms(), stamp);
    record_request_hash(req, hash);
    for (size_t i = 0; i < req->message_count; i++) {
        json_t *m = json_object();

        json_object_set_new(m, "role", json_string(req->messages[i].role));
        json_object_set_new(m, "content", string(req->messages[i].content));
        json_array_append_new(messages, m);
    }
    json_object_set_new(o, "time", json_string(stamp));
    json_object_set_new(o, "stage", json_string(stage_names[req->stage]));
    json_object_set_new(o, "spec", json_string(llm->config.model));
    json_object_set_new(o, "model", json_string(reply->model));
    json_object_set_new(o, "prompt_hash", json_string(req->prompt_hash ? req->prompt_hash : ""));
    json_object_set_new(o, "request_hash", json_string(hash));
    json_object_set_new(o, "messages", messages);
    json_object_set_new(o, "reply", string(reply->text));
    json_object_set_new(o, "finish_reason", json_string(reply->finish_reason));
    json_object_set_new(o, "prompt_tokens", count(reply->prompt_tokens));
    json_object_set_new(o, "cached_tokens", count(reply->cached_tokens));
    json_object_set_new(o, "output_tokens", count(reply->output_tokens));
    json_object_set_new(o, "cost_usd",
                        reply->cost_usd < 0 ? json_null() : json_real(reply->cost_usd));
    json_object_set_new(o, "latency_ms", json_integer(reply->latency_ms));
    json_object_set_new(o, "retries", json_integer(reply->retries));
    json_object_set_new(o, "faults", json_incref(faults));
    if (reply->done)
        json_object_set_new(o, "done", json_true());
    return o;
}

static bool write_all(int fd, const char *data, size_t len)
{
    while (len) {
        ssize_t n = write(fd, data, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        data += n;
        len -= (size_t)n;
    }
    return true;
}

bool record_append(const char *path, const json_t *record, struct error *err)
{
    char *line = json_dumps(record, JSON_COMPACT | JSON_PRESERVE_ORDER);
    size_t len = line ? vault_scrub_in_place(line, strlen(line)) : 0;
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    bool ok = false;

    if (fd >= 0 && line) {
        line[len] = '\n'; /* replaces the terminator: the line is not used as a string again */
        flock(fd, LOCK_EX);
        ok = write_all(fd, line, len + 1);
        flock(fd, LOCK_UN);
    }
    if (!ok)
        error_set(err, ERROR_MACHINE, "cannot write the record %s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    free(line);
    return ok;
}
