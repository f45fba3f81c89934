/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec.c - exec:COMMAND: the prompt on its stdin, the reply from its stdout.
 *
 * The command is run by sh, so it may be a pipeline. It gets the messages in
 * order, an empty line between them, and in its environment CUTEGEN_STAGE and
 * CUTEGEN_MAX_TOKENS; never a key. Retrying is left to the command: an exit status other than 0 is
 * not retried.
 */
#include "base/proc.h"
#include "llm/provider/provider.h"

#include <stdio.h>
#include <string.h>

enum { STDERR_SHOWN = 400 };

static bool exec_open(struct llm *llm, struct error *err)
{
    if (!*llm->model) {
        error_set(err, ERROR_USE, "exec: without a command");
        return error_hint(err, "for example --model 'exec:./answer.sh'");
    }
    return true;
}

static struct text join_messages(const struct wire *w)
{
    struct buf b = buf_init(SIZE_MAX / 2);
    struct text t;

    for (size_t i = 0; i < w->message_count; i++) {
        if (i)
            buf_puts(&b, "\n\n");
        buf_add(&b, w->messages[i].content.data, w->messages[i].content.len);
    }
    t = buf_copy(&b, w->arena);
    buf_release(&b);
    return t;
}

/* The end of its stderr, on one line. */
static const char *last_words(struct text t, struct arena *a)
{
    size_t from = t.len > STDERR_SHOWN ? t.len - STDERR_SHOWN : 0;

    while (t.len > from && (t.data[t.len - 1] == '\n' || t.data[t.len - 1] == ' '))
        t.len--;
    return arena_strndup(a, t.data + from, t.len - from);
}

static bool exec_attempt(struct llm *llm, struct wire *w, struct answer *out, struct fault *f)
{
    const char *argv[] = {"sh", "-c", llm->model, NULL};
    const char *env[] = {
        arena_printf(w->arena, "CUTEGEN_STAGE=%s", stage_names[w->req->stage]),
        arena_printf(w->arena, "CUTEGEN_MAX_TOKENS=%d", w->max_output_tokens),
        NULL,
    };
    struct proc_spec spec = {
        .argv = argv,
        .env = env,
        .input = join_messages(w),
        .deadline_ms = w->total_ms,
        .output_limit = llm->config.reply_limit_bytes,
        .stop = llm->config.interrupted,
        .stop_ctx = llm->config.interrupted_ctx,
    };
    struct proc_result r;
    struct error err = {0};

    if (!proc_run(&spec, w->arena, &r, &err))
        return fault_set(f, false, "%s", err.text);
    if (r.end == PROC_STOPPED) {
        fault_set(f, false, "interrupted");
        f->kind = ERROR_INTERRUPTED;
        return false;
    }
    if (r.end != PROC_EXITED || r.code != 0)
        return fault_set(f, false, "the command failed (%s): %s", proc_end_text(&r, w->arena),
                         last_words(r.err, w->arena));
    if (r.out_cut)
        return fault_set(f, false, "the command wrote more than %zu bytes",
                         llm->config.reply_limit_bytes);
    buf_add(&out->text, r.out.data, r.out.len);
    if (llm->config.on_text && r.out.len)
        llm->config.on_text(llm->config.on_text_ctx, r.out.data, r.out.len);
    snprintf(out->model, sizeof(out->model), "exec");
    snprintf(out->finish, sizeof(out->finish), "stop");
    out->finished = true;
    return true;
}

static void exec_close(struct llm *llm)
{
    (void)llm;
}

const struct provider exec_provider = {
    .scheme = "exec",
    .title = "a command: prompt on stdin, reply on stdout",
    .open = exec_open,
    .attempt = exec_attempt,
    .close = exec_close,
};
