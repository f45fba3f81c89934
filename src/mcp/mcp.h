/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp.h - a Model Context Protocol server: the judge's tools for coding agents.
 *
 *     mcp_serve_stdio(&config, err)              until stdin ends
 *     mcp_serve_http(&config, port, ready, err)  until it is interrupted
 *
 * Every tool is a cutegen command with --json in a process of its own: candidates and tasks are
 * confined there, and nothing they do can reach this process. Long work is a job in a thread; other
 * requests are served meanwhile.
 *
 * Revisions: 2025-06-18 and 2025-11-25 (initialize), 2026-07-28 (each request
 * says its own). docs/mcp.md describes tools, resources and prompts.
 */
#ifndef MCP_MCP_H
#define MCP_MCP_H

#include "base/error.h"

#include <signal.h>

struct mcp_config {
    const char *program;                     /* cutegen itself */
    const char *const *env;                  /* NAME=VALUE for every command; ended by NULL */
    const char *const *keys;                 /* the same for a run that may ask a model */
    const char *root;                        /* files below it only; NULL: any the user may read */
    const volatile sig_atomic_t *interrupts; /* > 0: the server must end */
    /* Called before a command starts, from any thread, one call at a time: to keep alive what would
     * otherwise start and end with a command. May be NULL. */
    void (*prepare)(void *ctx);
    void *ctx;
};

bool mcp_serve_stdio(const struct mcp_config *config, struct error *err);
/* `ready` gets address and token once it listens; port 0: any free one. */
bool mcp_serve_http(const struct mcp_config *config, int port,
                    void (*ready)(void *ctx, const char *url, const char *token), void *ctx,
                    struct error *err);

#endif
