/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_mcp.c - `mcp`: the tools as a Model Context Protocol server; `search`: CuTe and the
 * guides. */
#include "base/fs.h"
#include "base/vault.h"
#include "cli/cmd.h"
#include "mcp/mcp.h"
#include "stage/stage.h"

#include <ctype.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Commands that the server runs receive its flags as CUTEGEN_* variables. */
static const char *const *said_as_environment(const struct cli *cli)
{
    const char *const *said = config_said(cli->config);
    const char **env = arena_array(cli->a, config_key_count + 1, sizeof(*env));
    size_t n = 0;

    for (; *said; said++) {
        char *entry = arena_printf(cli->a, "CUTEGEN_%s=%s", *said, config_get(cli->config, *said));

        for (char *p = entry; *p != '='; p++)
            *p = *p == '-' ? '_' : (char)toupper((unsigned char)*p);
        env[n++] = entry;
    }
    return env;
}

static const char *const *keys_as_environment(const struct cli *cli)
{
    const char *const names[] = {"OPENAI_API_KEY", "ANTHROPIC_API_KEY", cli->settings.key_env};
    const char **env = arena_array(cli->a, ARRAY_LEN(names) + 1, sizeof(*env));
    size_t n = 0;

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *value = names[i] ? vault_get(names[i]) : NULL;

        if (value)
            env[n++] = arena_printf(cli->a, "%s=%s", names[i], value);
    }
    return env;
}

struct held {
    const struct cli *cli;
    int fd; /* connection to the warm server; -1: none */
};

/* Starts the warm server here, because one started by a command would end with that command. */
static void hold_server(void *ctx)
{
    struct held *h = ctx;
    struct pollfd lost = {h->fd, POLLIN, 0};

    if (h->fd >= 0 && poll(&lost, 1, 0) == 0)
        return;
    if (h->fd >= 0)
        close(h->fd);
    h->fd = stage_server_hold(&h->cli->settings);
}

static void tell_address(void *ctx, const char *url, const char *token)
{
    const struct cli *cli = ctx;

    if (cli->json)
        print_json(json_pack("{s:s, s:s, s:s}", "event", "mcp", "url", url, "token", token));
    else
        printf("mcp       %s\n"
               "          header  Authorization: Bearer %s\n"
               "          Ctrl-C ends it\n",
               url, token);
    fflush(stdout);
}

bool cmd_mcp(struct cli *cli, int *code, struct error *err)
{
    const char *port = flag_get(cli, "port"), *root = flag_get(cli, "root");
    struct mcp_config config = {.env = said_as_environment(cli),
                                .keys = keys_as_environment(cli),
                                .interrupts = &loop_interrupts,
                                .prepare = hold_server};
    struct held held = {cli, -1};
    char *program = NULL, *end;
    bool ok;
    long number = port ? strtol(port, &end, 10) : 0;

    (void)code;
    if (port && (*end || !*port || number < 0 || number > 65535))
        return error_set(err, ERROR_USE, "--port: '%s' is not a port from 0 to 65535", port);
    if (root && !(config.root = path_absolute(cli->a, root)))
        return error_set(err, ERROR_USE, "--root: there is no folder %s", root);
    if (!home_program("cutegen", cli->a, &program, err))
        return false;
    config.program = program;
    config.ctx = &held;
    interrupts_catch();
    if (flag_get(cli, "http"))
        ok = mcp_serve_http(&config, (int)number, tell_address, cli, err);
    else
        ok = mcp_serve_stdio(&config, err);
    if (held.fd >= 0)
        close(held.fd);
    return ok;
}

/* ---- search -------------------------------------------------------------------- */

bool cmd_search(struct cli *cli, int *code, struct error *err)
{
    const char *max = flag_get(cli, "max");
    struct buf query = buf_init(64 << 10);
    long n = max ? strtol(max, NULL, 10) : 4;
    json_t *found = NULL, *one;
    size_t i;
    bool ok;

    for (int w = 0; w < cli->word_count; w++)
        buf_printf(&query, "%s%s", w ? " " : "", cli->words[w]);
    ok = stage_search(&cli->settings, query.data,
                      n < 1    ? 1
                      : n > 10 ? 10
                               : (int)n,
                      cli->a, &found, err);
    buf_release(&query);
    if (!ok)
        return false;
    *code = json_array_size(json_object_get(found, "passages")) ? EXIT_DONE : EXIT_JUDGED;
    if (cli->json) {
        print_json(found);
        return true;
    }
    json_array_foreach(json_object_get(found, "passages"), i, one)
        printf("%s%s\n%s\n", i ? "\n" : "", json_string_or(one, "where", ""),
               json_string_or(one, "text", ""));
    json_decref(found);
    return true;
}
