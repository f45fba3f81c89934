/*
 * ladder.c - walk a recipe's ladder by hand: a description in, a kernel per step out.
 *
 *     ladder DESCRIPTION.json OUT_DIR [ARCH [WORDS...]]
 *
 * ARCH: sm_90a; the default is what simt runs. With the first word `predicted` one kernel is
 * written, the one that is predicted to be best; with `neighbours` those that are tried after it
 * as well, as if none of them were better.
 *
 * Asks the built-in engineer as the loop would, each answer judged a pass,
 * and writes OUT_DIR/NAME.0.cu, NAME.1.cu, ... A step whose change begins with
 * one of WORDS is passed over, as one that brought nothing: the kernel stays as
 * it was. For looking at recipes, and for compiling every form of them.
 */
#include "base/error.h"
#include "base/fs.h"
#include "base/json.h"
#include "expert/expert.h"
#include "llm/edit/edit.h"
#include "llm/edit/fence.h"

#include <stdio.h>
#include <string.h>

static int complain(const struct error *err)
{
    fprintf(stderr, "ladder: %s\n%s\n", err->text, err->hint);
    return 1;
}

static bool first_line(struct text t, struct arena *a, char **out)
{
    const char *nl = memchr(t.data, '\n', t.len);

    *out = arena_strndup(a, t.data, nl ? (size_t)(nl - t.data) : t.len);
    return true;
}

/* Is it one of the steps to pass over? */
static bool unwanted(const char *change, char **words)
{
    const char *said = strncmp(change, "CHANGE: ", 8) == 0 ? change + 8 : change;

    for (; *words; words++)
        if (strncmp(said, *words, strlen(*words)) == 0)
            return true;
    return false;
}

int main(int argc, char **argv)
{
    struct arena *a = arena_new();
    struct error err = {0};
    struct text text, source, made;
    struct task task = {0};
    struct device device = {.sm_count = 132};
    json_t *history = json_array();
    bool near = argc > 4 && strcmp(argv[4], "neighbours") == 0;
    bool predicted = near || (argc > 4 && strcmp(argv[4], "predicted") == 0);

    if (argc < 3)
        return fprintf(stderr, "usage: ladder DESCRIPTION.json OUT_DIR [ARCH [WORDS...]]\n"), 2;
    device.arch = argc > 3 ? argv[3] : "compute_80";
    device.kind = argc > 3 ? DEVICE_CUDA : DEVICE_SIMT;
    if (!file_read(argv[1], 1 << 20, a, &text, &err) ||
        !json_parse(text, argv[1], &task.description, &err) || !dir_make(argv[2], &err))
        return complain(&err);
    task.name = json_string_or(task.description, "name", "task");
    for (int depth = 0; depth < (predicted && !near ? 1 : 20); depth++) {
        struct candidate current = {.depth = depth, .source = source};
        struct request req = {.stage = depth ? STAGE_OPTIMIZE : STAGE_SYNTHESIZE,
                              .task = &task,
                              .device = &device,
                              .current = depth ? &current : NULL,
                              .history = history,
                              .predicted = predicted};
        struct reply reply;
        const char *reason;
        char *change;

        if (!expert_ask(&req, a, &reply, &err))
            return complain(&err);
        first_line(reply.text, a, &change);
        printf("%s %d: %s\n", task.name, depth, change);
        if (reply.done)
            break;
        json_array_append_new(history, json_pack("{s:s,s:s}", "change", change, "verdict", "pass"));
        if (depth && unwanted(change, argv + (argc > 4 ? 4 : argc)))
            continue;
        if (depth == 0) {
            if (!fence_code(reply.text, LANGUAGE_CUTE, a, &made, &reason))
                return fprintf(stderr, "ladder: %s\n", reason), 1;
        } else {
            struct edit_result r;

            edit_apply(source, reply.text, a, &r);
            if (r.status != EDIT_APPLIED)
                return fprintf(stderr, "ladder: edits: %s\n%s\n", r.reason, reply.text.data), 1;
            made = r.source;
        }
        if (depth == 0 || !near)
            source = made;
        if (!file_write(arena_printf(a, "%s/%s.%d.cu", argv[2], task.name, depth), made, &err))
            return complain(&err);
    }
    json_decref(history);
    json_decref(task.description);
    arena_free(a);
    return 0;
}
