/* SPDX-License-Identifier: Apache-2.0 */
/* command.c - running cutegen commands for tools; see command.h. */
#include "mcp/command.h"

#include "base/fs.h"
#include "base/proc.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_OUTPUT = 64 << 20, MAX_SOURCE = 4 << 20, MAX_SET = 8 };

struct mcp_command command_of(const struct mcp *m, const char *name)
{
    static const char *const judging[] = {"describe", "eval", "run", "prompt", "export"};
    bool warm = false;

    for (size_t i = 0; i < ARRAY_LEN(judging); i++)
        warm = warm || !strcmp(judging[i], name);
    return (struct mcp_command){.program = m->config.program, .name = name, .warm = warm};
}

void command_word(struct mcp_command *c, const char *word)
{
    if (c->word_count == COMMAND_WORDS)
        BUG("a command of more than %d words", COMMAND_WORDS);
    c->words[c->word_count++] = word;
}

void command_flag(struct mcp_command *c, const char *flag, const char *value)
{
    if (c->flag_count + 2 > COMMAND_FLAGS)
        BUG("a command of more than %d flags", COMMAND_FLAGS);
    c->flags[c->flag_count++] = flag;
    if (value)
        c->flags[c->flag_count++] = value;
}

bool command_where(struct mcp_job *j, struct mcp_command *c, const json_t *args, struct error *why)
{
    static const char *const keys[][2] = {{"device", "--device"}, {"target", "--target"}};
    json_t *set = json_object_get(args, "set"), *value;
    const char *name;

    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (json_string_or(args, keys[i][0], NULL))
            command_flag(c, keys[i][1], json_string_or(args, keys[i][0], ""));
    if (json_object_size(set) > MAX_SET)
        return error_set(why, ERROR_USE, "set has more than %d sizes", MAX_SET);
    json_object_foreach(set, name, value)
    {
        const char *size =
            arena_printf(j->a, "%s=%lld", name, (long long)json_integer_value(value));

        command_flag(c, "--set", size);
    }
    return true;
}

struct listener {
    struct mcp_job *job;
    const struct mcp_command *command;
};

static void on_line(void *ctx, struct text line)
{
    const struct listener *l = ctx;
    struct error ignored = {0};
    json_t *event = NULL;
    const char *kind, *text;

    if (line.len > 1 << 16 || !text_starts(line, "{\"event\"") ||
        !json_parse(line, "an event", &event, &ignored))
        return;
    kind = json_string_or(event, "event", "");
    text = json_string_or(event, "text", "");
    if (!strcmp(kind, "stage") && *text)
        job_progress(l->job, text);
    else if (!strcmp(kind, "attempt"))
        job_progress(l->job, json_string_or(json_object_get(event, "judgement"), "verdict", kind));
    if (l->command->event)
        l->command->event(l->command->ctx, event);
    json_decref(event);
}

/* Additions to the environment: settings of this server, and keys if a model may be asked. */
static const char *const *environment(const struct mcp_job *j, const struct mcp_command *c)
{
    const struct mcp_config *config = &j->mcp->config;
    size_t n = 0, count = 0;
    const char **env;

    for (size_t i = 0; config->env && config->env[i]; i++)
        count++;
    for (size_t i = 0; config->keys && config->keys[i]; i++)
        count++;
    env = arena_array(j->a, count + 1, sizeof(*env));
    for (size_t i = 0; config->env && config->env[i]; i++)
        env[n++] = config->env[i];
    for (size_t i = 0; c->keys && config->keys && config->keys[i]; i++)
        env[n++] = config->keys[i];
    return env;
}

static bool run(struct mcp_job *j, const struct mcp_command *c, bool json, struct proc_result *r,
                struct error *why)
{
    const char *argv[COMMAND_FLAGS + COMMAND_WORDS + 5] = {c->program, c->name};
    struct listener listener = {j, c};
    struct proc_spec spec = {.argv = argv,
                             .env = environment(j, c),
                             .output_limit = MAX_OUTPUT,
                             .stop = job_stopped,
                             .stop_ctx = j,
                             .line = on_line,
                             .line_ctx = &listener};
    int n = 2;

    memcpy(argv + n, c->flags, (size_t)c->flag_count * sizeof(*argv));
    n += c->flag_count;
    if (json)
        argv[n++] = "--json";
    argv[n++] = "--";
    memcpy(argv + n, c->words, (size_t)c->word_count * sizeof(*argv));
    if (j->mcp->config.prepare && c->warm) {
        pthread_mutex_lock(&j->mcp->preparing);
        j->mcp->config.prepare(j->mcp->config.ctx);
        pthread_mutex_unlock(&j->mcp->preparing);
    }
    if (!proc_run(&spec, j->a, r, why))
        return false;
    if (r->end == PROC_STOPPED)
        return error_set(why, ERROR_INTERRUPTED, "cancelled");
    if (r->end != PROC_EXITED || r->out_cut)
        return error_set(why, ERROR_MACHINE, "cutegen %s: %s", c->name,
                         r->out_cut ? "too much output" : proc_end_text(r, j->a));
    return true;
}

static struct text last_line(struct text t)
{
    while (t.len && t.data[t.len - 1] == '\n')
        t.len--;
    for (size_t i = t.len; i > 0; i--)
        if (t.data[i - 1] == '\n')
            return (struct text){t.data + i, t.len - i};
    return t;
}

bool command_run(struct mcp_job *j, const struct mcp_command *c, const json_t **out,
                 struct error *why)
{
    struct proc_result r;
    struct error broken = {0};
    json_t *answer = NULL, *error;

    if (!run(j, c, true, &r, why))
        return false;
    if (!json_parse(last_line(r.out), "its answer", &answer, &broken) || !json_is_object(answer)) {
        json_decref(answer);
        return error_set(why, ERROR_MACHINE, "cutegen %s gave no answer: %.600s", c->name,
                         r.err.len ? r.err.data : broken.text);
    }
    *out = json_own(j->a, answer);
    error = json_object_get(answer, "error");
    if (!error)
        return true;
    error_set(why, ERROR_USE, "%s", json_string_or(error, "text", "it failed"));
    return error_hint(why, "%s", json_string_or(error, "hint", ""));
}

bool command_text(struct mcp_job *j, const struct mcp_command *c, struct text *out,
                  struct error *why)
{
    struct proc_result r;
    struct text said;

    if (!run(j, c, false, &r, why))
        return false;
    *out = r.out;
    if (r.code == 0)
        return true;
    said = text_trim(r.err);
    if (text_starts(said, "cutegen: "))
        said = (struct text){said.data + strlen("cutegen: "), said.len - strlen("cutegen: ")};
    return error_set(why, ERROR_USE, "%.*s", said.len < 1000 ? (int)said.len : 1000, said.data);
}

/* ---- arguments ----------------------------------------------------------------- */

static bool is_below(const char *path, const char *root)
{
    size_t len = strlen(root);

    return !strncmp(path, root, len) &&
           (path[len] == '/' || path[len] == '\0' || (len && root[len - 1] == '/'));
}

/* The path with links resolved. For a path that does not exist, the nearest existing folder is
 * resolved and the rest must not contain "..". NULL: unknown. */
static char *real_place(const char *path, struct arena *a)
{
    char *at = path_from_here(a, path), *real, *out, *slash;

    for (;;) {
        real = realpath(at, NULL);
        if (real)
            break;
        slash = strrchr(at, '/');
        if (!slash || slash == at || !strcmp(slash, "/.."))
            return NULL;
        *slash = '\0';
    }
    out = arena_strdup(a, real);
    free(real);
    return out;
}

bool path_allowed(const struct mcp *m, const char *path, struct arena *a, struct error *why)
{
    const char *root = m->config.root, *real = root ? real_place(path, a) : NULL;

    if (!root || (real && is_below(real, root)))
        return true;
    error_set(why, ERROR_USE, "%s is not below %s, where this server may work", path, root);
    return error_hint(why, "move it there, or start `cutegen mcp` with another --root");
}

static void remove_folder(void *path)
{
    struct error ignored = {0};

    dir_remove(path, &ignored);
}

bool job_folder(struct mcp_job *j, char **out, struct error *why)
{
    if (!dir_temp("cutegen-mcp", j->a, out, why))
        return false;
    arena_defer(j->a, remove_folder, *out);
    return true;
}

const char *kernel_file_name(const char *target)
{
    bool python = target && (!strcmp(target, "triton") || !strcmp(target, "cutedsl"));

    return python ? "candidate.py" : "candidate.cu";
}

bool argument_file(struct mcp_job *j, const json_t *args, const char *path_key,
                   const char *text_key, const char *name, const char **out, struct error *why)
{
    const char *path = json_string_or(args, path_key, NULL);
    json_t *text = json_object_get(args, text_key);
    char *dir = NULL;

    if ((path != NULL) == (text != NULL))
        return error_set(why, ERROR_USE, "give either %s (a path) or %s (the text)", path_key,
                         text_key);
    if (path) {
        if (!path_allowed(j->mcp, path, j->a, why))
            return false;
        /* links are resolved, so that changing one after the check has no effect */
        *out = path_absolute(j->a, path);
        if (file_exists(*out))
            return true;
        return error_set(why, ERROR_USE, "there is no file %s", path);
    }
    if (json_string_length(text) > MAX_SOURCE)
        return error_set(why, ERROR_USE, "%s has more than %d bytes", text_key, MAX_SOURCE);
    if (!job_folder(j, &dir, why))
        return false;
    *out = path_join(j->a, dir, name);
    return file_write(*out, (struct text){json_string_value(text), json_string_length(text)}, why);
}

bool argument_run(const json_t *args, const char **out, struct error *why)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

    *out = json_string_or(args, "run", "last");
    if (**out && **out != '-' && **out != '.' && strlen(*out) < 120 &&
        strspn(*out, letters) == strlen(*out))
        return true;
    error_set(why, ERROR_USE, "that is not the id of a run");
    return error_hint(why, "cutegen://runs lists them; `last` is the newest");
}
