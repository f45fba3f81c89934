/* bench.c - a task, and the built-in engineer asked about it as the loop does. */
#include "bench.h"

#include "base/fs.h"
#include "base/json.h"
#include "llm/edit/edit.h"
#include "llm/edit/fence.h"

#include <stdlib.h>
#include <string.h>

void bench_open(struct bench *b, const char *task)
{
    size_t len = strcspn(task, "@");
    const char *name;
    struct error err = {0};
    struct text text;
    char *path;

    memset(b, 0, sizeof(*b));
    b->a = arena_new();
    b->history = json_array();
    b->device = (struct device){.arch = task[len] ? task + len + 1 : "compute_80", .sm_count = 132};
    b->device.kind = task[len] ? DEVICE_CUDA : DEVICE_SIMT;
    name = arena_strndup(b->a, task, len);
    path = arena_printf(b->a, "%s/%s.json", getenv("EXPERT_TASKS"), name);
    if (!file_read(path, 1 << 20, b->a, &text, &err) ||
        !json_parse(text, path, &b->task.description, &err))
        fail_msg("%s", err.text);
    b->task.name = arena_strdup(b->a, name);
}

void bench_close(struct bench *b)
{
    json_decref(b->history);
    json_decref(b->task.description);
    arena_free(b->a);
}

struct reply bench_ask_from(struct bench *b, enum stage_kind stage, const struct candidate *current)
{
    struct request req = {.stage = stage,
                          .task = &b->task,
                          .device = &b->device,
                          .current = current,
                          .history = b->history,
                          .predicted = b->predicted};
    struct error err = {0};
    struct reply reply;

    if (!expert_ask(&req, b->a, &reply, &err))
        fail_msg("%s: %s", b->task.name, err.text);
    b->replied = expert_steps(reply.text, b->a);
    return reply;
}

struct reply bench_ask(struct bench *b, enum stage_kind stage, struct text source)
{
    struct candidate current = {.source = source, .steps = b->steps};

    return bench_ask_from(b, stage, source.data ? &current : NULL);
}

struct text bench_synthesize(struct bench *b)
{
    struct reply reply = bench_ask(b, STAGE_SYNTHESIZE, (struct text){NULL, 0});
    struct text source;
    const char *reason;

    assert_false(reply.done);
    if (!fence_code(reply.text, LANGUAGE_CUTE, b->a, &source, &reason))
        fail_msg("%s: %s", b->task.name, reason);
    return source;
}

void bench_remember(struct bench *b, const char *change, const char *verdict)
{
    json_array_append_new(b->history, json_pack("{s:s,s:s}", "change", change, "verdict", verdict));
}

struct text bench_step(struct bench *b, struct text source, const char **change)
{
    struct reply reply = bench_ask(b, STAGE_OPTIMIZE, source);
    struct edit_result r;

    *change = fence_change(reply.text, b->a);
    if (reply.done)
        return (struct text){NULL, 0};
    edit_apply(source, reply.text, b->a, &r);
    if (r.status != EDIT_APPLIED)
        fail_msg("%s: %s\n%s", b->task.name, r.reason, reply.text.data);
    assert_int_equal(r.format, EDIT_SEARCH);
    return r.source;
}
