/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tools.h - the tools: a table, and what each of them does. Private to src/mcp.
 *
 * To add a tool: its schemas in tool_schemas.c, a row in tools.c, a function
 * below, a row in docs/mcp.md, a line in tests/mcp/conformance.py.
 */
#ifndef MCP_TOOLS_H
#define MCP_TOOLS_H

#include "base/buf.h"
#include "mcp/command.h"

/* A tool's reply: a few lines for a model's context, the same as data, and links to the rest. */
struct tool_reply {
    struct buf text;
    json_t *data;  /* owned; fits the tool's output schema */
    json_t *links; /* owned; list of resource links */
};

typedef bool tool_call(struct mcp_job *j, const json_t *args, struct tool_reply *out,
                       struct error *why);

tool_call tool_describe, tool_evaluate, tool_compare, tool_profile, tool_start; /* tool_judge.c */
tool_call tool_search, tool_run, tool_status, tool_export;                      /* tool_run.c */

/* JSON with ' for ", to be readable in C. tool_schemas.c */
extern const char *const schema_describe[2], *const schema_evaluate[2], *const schema_compare[2];
extern const char *const schema_profile[2], *const schema_start[2], *const schema_search[2];
extern const char *const schema_run[2], *const schema_status[2], *const schema_export[2];

/* ---- short verdicts (brief.c) ----------------------------------------- */

/* Summary of an answer of `cutegen eval --json`: cause, line, fix; time if it passed. New
 * reference. */
json_t *brief_verdict(const json_t *judged);
void brief_text(const json_t *brief, struct buf *out);
/* "0.61 us (modelled)" */
void brief_time(const json_t *brief, struct buf *out);
/* A link to the full evidence of an attempt, or of a run if attempt is 0. */
void reply_link(struct tool_reply *out, const char *run, int attempt);
/* JSON null instead of NULL, for an unknown value. */
json_t *json_or_null(json_t *v);

#endif
