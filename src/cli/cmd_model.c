/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_model.c - the model's parts as single commands: `ask`, `models`, `prompt`, `edit apply`; and
 * `simt run`. */
#include "base/fs.h"
#include "base/json.h"
#include "cli/cmd.h"
#include "stage/stage.h"

#include <string.h>
#include <unistd.h>

enum { MAX_TEXT_BYTES = 16 << 20 };

static bool read_stdin(struct arena *a, struct text *out, struct error *err)
{
    return stdin_read(MAX_TEXT_BYTES, a, out, err);
}

/* ---- ask -------------------------------------------------------------------- */

static void stream_text(void *ctx, const char *text, size_t len)
{
    (void)ctx;
    fwrite(text, 1, len, stdout);
    fflush(stdout);
}

static struct text join_words(struct cli *cli)
{
    struct buf b = buf_init(MAX_TEXT_BYTES);
    struct text t;

    for (int i = 0; i < cli->word_count; i++)
        buf_printf(&b, "%s%s", i ? " " : "", cli->words[i]);
    t = buf_copy(&b, cli->a);
    buf_release(&b);
    return t;
}

static json_t *count_or_null(int64_t v)
{
    return v >= 0 ? json_integer(v) : json_null();
}

bool cmd_ask(struct cli *cli, int *code, struct error *err)
{
    struct text prompt;
    struct reply reply = {0};

    (void)code;
    if (cli->word_count)
        prompt = join_words(cli);
    else if (isatty(STDIN_FILENO))
        return error_set(err, ERROR_USE, "cutegen ask needs a prompt, as words or on stdin");
    else if (!read_stdin(cli->a, &prompt, err))
        return error_add(err, "reading the prompt");
    cli->settings.interrupts_cut_call = 1; /* there is nothing else to wait for */
    if (!stage_ask(&cli->settings, prompt, cli->json ? NULL : stream_text, NULL, cli->a, &reply,
                   err))
        return false;
    if (!cli->json) {
        putchar('\n');
        return true;
    }
    print_json(json_pack("{s:s%, s:s?, s:s?, s:o, s:o, s:o, s:o, s:i, s:i}", "text",
                         reply.text.data, reply.text.len, "model", reply.model, "finish_reason",
                         reply.finish_reason, "prompt_tokens", count_or_null(reply.prompt_tokens),
                         "cached_tokens", count_or_null(reply.cached_tokens), "output_tokens",
                         count_or_null(reply.output_tokens), "cost_usd",
                         reply.cost_usd >= 0 ? json_real(reply.cost_usd) : json_null(),
                         "latency_ms", reply.latency_ms, "retries", reply.retries));
    return true;
}

/* ---- models ------------------------------------------------------------------ */

static void print_model(const json_t *m)
{
    const char *key = json_string_or(m, "key_env", "");
    const char *state = "";

    if (json_object_get(m, "key_present"))
        state = json_bool_or(m, "key_present", false) ? "key present" : "no key";
    print_fit(13, "%-12s %-48s %s%s%s", json_string_or(m, "provider", "?"),
              json_string_or(m, "title", ""), state, *key ? ": $" : "", key);
}

bool cmd_models(struct cli *cli, int *code, struct error *err)
{
    json_t *report = NULL, *list, *m;
    size_t i;

    (void)code;
    if (!stage_models(&cli->settings, cli->a, &report, err))
        return false;
    if (cli->json) {
        print_json(report);
        return true;
    }
    m = json_object_get(report, "configured");
    printf("configured   %s (%s)\n\n", cli->settings.model, config_where(cli->config, "model"));
    if (json_string_or(m, "problem", NULL))
        printf("  %s\n\n", json_string_or(m, "problem", ""));
    list = json_object_get(report, "providers");
    json_array_foreach(list, i, m) print_model(m);
    json_decref(report);
    return true;
}

/* ---- prompt ------------------------------------------------------------------ */

static bool stage_named(const char *name, enum stage_kind *out, struct error *err)
{
    for (int i = 0; i < STAGE_KIND_COUNT; i++)
        if (!strcmp(stage_names[i], name)) {
            *out = (enum stage_kind)i;
            return true;
        }
    error_set(err, ERROR_USE, "there is no stage '%s'", name);
    return error_hint(err, "one of: synthesize, diagnose, repair, optimize");
}

/* Reads the kernel's verdict from the output of `eval --json`. */
static bool read_judged(const struct cli *cli, const char *path, struct verdict *out,
                        struct error *err)
{
    struct text text;
    json_t *j = NULL, *one;
    const char *name;
    size_t i;

    if (!file_read(path, 16 << 20, cli->a, &text, err) || !json_parse(text, path, &j, err)) {
        err->kind = ERROR_USE;
        return false;
    }
    json_own(cli->a, j);
    *out = (struct verdict){.kind = VERDICT_COUNT,
                            .summary = json_string_or(j, "summary", ""),
                            .detail = json_string_or(j, "detail", ""),
                            .advice = json_string_or(j, "advice", NULL)};
    name = json_string_or(j, "verdict", "");
    for (int v = 0; v < VERDICT_COUNT; v++)
        if (!strcmp(verdict_names[v], name))
            out->kind = (enum verdict_kind)v;
    if (out->kind == VERDICT_COUNT)
        return error_set(err, ERROR_USE, "%s is not output of `cutegen eval --json`", path);
    json_array_foreach(json_object_get(j, "findings"), i, one) if (i < MAX_FINDINGS)
        out->findings[out->finding_count++] =
        (struct finding){.kind = json_string_or(one, "kind", ""),
                         .where = json_string_or(one, "where", ""),
                         .line = json_string_or(one, "line", ""),
                         .text = json_string_or(one, "text", "")};
    return true;
}

bool cmd_prompt(struct cli *cli, int *code, struct error *err)
{
    const char *stage = flag_get(cli, "stage"), *kernel = flag_get(cli, "kernel");
    const char *judged = flag_get(cli, "judged");
    struct verdict *verdict = judged ? arena_alloc(cli->a, sizeof(*verdict)) : NULL;
    enum stage_kind kind = STAGE_SYNTHESIZE;
    struct run_options options;
    struct request req = {0};
    json_t *list;

    (void)code;
    if (stage && !stage_named(stage, &kind, err))
        return false;
    if (kind != STAGE_SYNTHESIZE && !kernel) {
        error_set(err, ERROR_USE, "the stage %s needs a kernel", stage_names[kind]);
        return error_hint(err, "name it: --kernel FILE.cu");
    }
    config_run_options(cli->config, &options);
    if ((judged && !read_judged(cli, judged, verdict, err)) ||
        !loop_prompt(&cli->settings,
                     &(struct prompt_options){kind, cli->words[0], kernel, verdict, options.memory},
                     cli->a, &req, err))
        return false;
    list = json_array();
    for (size_t i = 0; i < req.message_count; i++) {
        const struct message *m = &req.messages[i];

        if (cli->json)
            json_array_append_new(list, json_pack("{s:s, s:o}", "role", m->role, "content",
                                                  json_from_text(m->content)));
        else
            printf("=== %s\n%.*s\n", m->role, (int)m->content.len, m->content.data);
    }
    if (cli->json)
        print_json(json_pack("{s:s, s:O, s:s?}", "stage", stage_names[kind], "messages", list,
                             "prompt_hash", req.prompt_hash));
    json_decref(list);
    return true;
}

/* ---- edit apply -------------------------------------------------------------- */

bool cmd_edit_apply(struct cli *cli, int *code, struct error *err)
{
    const char *source_path = cli->words[0], *reply_path = cli->words[1];
    struct text source, reply, result = {0};
    const char *reason = "";
    json_t *report = NULL;
    enum edit_outcome outcome;

    if (!file_read(source_path, MAX_TEXT_BYTES, cli->a, &source, err)) {
        err->kind = ERROR_USE;
        return error_add(err, "reading the source");
    }
    if (strcmp(reply_path, "-") ? !file_read(reply_path, MAX_TEXT_BYTES, cli->a, &reply, err)
                                : !read_stdin(cli->a, &reply, err)) {
        err->kind = ERROR_USE;
        return error_add(err, "reading the reply");
    }
    outcome = stage_edit(source, reply, cli->a, &result, &reason, &report);
    *code = outcome == EDITED ? EXIT_DONE : outcome == EDIT_NOT_FOUND ? EXIT_NOTHING : EXIT_JUDGED;
    if (outcome == EDITED && flag_get(cli, "write") && !file_write(source_path, result, err)) {
        json_decref(report);
        return false;
    }
    if (cli->json) {
        if (outcome == EDITED)
            json_object_set_new(report, "source", json_from_text(result));
        print_json(json_incref(report));
    } else if (outcome != EDITED) {
        fprintf(stderr, "cutegen: %s\n%s\n",
                outcome == EDIT_NOT_FOUND ? "the reply has no edit in it"
                                          : "the edits do not apply; nothing was changed",
                reason);
    } else if (flag_get(cli, "write")) {
        printf("%s: %s\n", source_path, json_string_or(report, "changes", "edited"));
    } else {
        fwrite(result.data, 1, result.len, stdout);
    }
    json_decref(report);
    return true;
}

/* ---- simt run ---------------------------------------------------------------- */

/* "thread (3,0,0)" of a finding or of its other side. */
static void print_spot(const json_t *side, const char *key)
{
    const json_t *at = json_object_get(side, key);

    if (json_array_size(at) == 3)
        printf(" %s (%lld,%lld,%lld)", key, json_integer_value(json_array_get(at, 0)),
               json_integer_value(json_array_get(at, 1)),
               json_integer_value(json_array_get(at, 2)));
}

static void print_finding(const json_t *f)
{
    const json_t *other = json_object_get(f, "other"), *path = json_object_get(f, "path"), *v;
    size_t i;

    printf("  %s at %s:%lld,", json_string_or(f, "kind", "finding"), json_string_or(f, "file", ""),
           (long long)json_int_or(f, "line", 0));
    print_spot(f, "block");
    print_spot(f, "thread");
    if (json_int_or(f, "count", 1) > 1)
        printf(", %lld times", (long long)json_int_or(f, "count", 1));
    printf("\n      %s\n", json_string_or(f, "text", ""));
    if (other) {
        printf("      the other is");
        print_spot(other, "thread");
        printf(" at line %lld\n", (long long)json_int_or(other, "line", 0));
    }
    json_array_foreach(path, i, v) if (json_is_string(v))
        printf("      in %s\n", json_string_value(v));
}

static void print_outputs(const json_t *outputs)
{
    const json_t *out, *v;
    size_t i, k;

    json_array_foreach(outputs, i, out)
    {
        printf("  %s:", json_string_or(out, "name", "out"));
        json_array_foreach(json_object_get(out, "first"), k, v)
            printf(json_is_number(v) ? " %.6g" : " nan", json_number_value(v));
        printf(" ...\n");
    }
}

static void print_simt(const json_t *report)
{
    const json_t *findings = json_object_get(report, "findings"), *counters, *v;
    const char *key;
    size_t i;

    printf("%s\n", json_string_or(report, "outcome", json_string_or(report, "verdict", "?")));
    if (*json_string_or(report, "text", ""))
        printf("  %s\n", json_string_or(report, "text", ""));
    json_array_foreach(findings, i, v) print_finding(v);
    print_outputs(json_object_get(report, "outputs"));
    json_array_foreach(json_object_get(report, "counters"), i, counters)
    {
        printf("  launch %zu: %s\n", i, json_string_or(counters, "kernel", ""));
        json_object_foreach((json_t *)counters, key, v) if (json_is_number(v))
            printf("    %-32s %.6g\n", key, json_number_value(v));
    }
    if (json_double_or(report, "time_us", 0) > 0)
        printf("  time* %.3f us   %s for %s, not measured\n", json_double_or(report, "time_us", 0),
               modelled_words(json_string_or(report, "models", NULL)),
               json_string_or(report, "models", "a GPU"));
}

bool cmd_simt_run(struct cli *cli, int *code, struct error *err)
{
    struct simt_options options = {
        .file = cli->words[0],
        .inputs = flag_all(cli, "input"),
        .outputs = flag_all(cli, "output"),
        .scalars = flag_all(cli, "scalar"),
        .number = flag_get(cli, "case") ? (int)strtol(flag_get(cli, "case"), NULL, 10) : 0,
        .check = cli->settings.check,
        .profile = flag_get(cli, "profile") != NULL,
        .sample = flag_get(cli, "sample") ? (int)strtol(flag_get(cli, "sample"), NULL, 10) : 0,
    };
    json_t *report = NULL;
    const char *outcome;

    if (!options.outputs[0]) {
        error_set(err, ERROR_USE, "no output is named, so nothing can be checked");
        return error_hint(err, "name its tensors: --input f32[1024]=normal --output f32[1024]");
    }
    if (!stage_simt_run(&cli->settings, &options, cli->a, &report, err))
        return false;
    outcome = json_string_or(report, "outcome", json_string_or(report, "verdict", ""));
    *code = (!strcmp(outcome, "ok") || !strcmp(outcome, "pass")) &&
                    !json_array_size(json_object_get(report, "findings"))
                ? EXIT_DONE
                : EXIT_JUDGED;
    if (cli->json)
        print_json(json_incref(report));
    else if (!options.profile || !json_object_get(report, "parts") || *code != EXIT_DONE)
        print_simt(report);
    if (!cli->json && options.profile && json_object_get(report, "parts"))
        print_profile(report);
    json_decref(report);
    return true;
}
