/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_files.h - what `agent install` writes into a project for a coding agent.
 *
 * Each function computes the new text of a file from its present text; nothing is written here.
 * What is not ours is kept: byte for byte in TOML, member for member in JSON.
 */
#ifndef CLI_AGENT_FILES_H
#define CLI_AGENT_FILES_H

#include "base/error.h"
#include "base/mem.h"

/* {"mcpServers": {"cutegen": {"command": PROGRAM, "args": ["mcp"]}}} in a JSON file, or without it.
 * A file that is not JSON is ERROR_USE. */
bool agent_json_entry(struct text now, const char *program, bool remove, struct arena *a,
                      struct text *out, struct error *err);
/* [mcp_servers.cutegen] in a TOML file, between two marks of ours. A table of that name that is not
 * between them is the user's: ERROR_USE. */
bool agent_toml_entry(struct text now, const char *program, bool remove, struct arena *a,
                      struct text *out, struct error *err);
/* The skill; a file that does not have our mark is the user's: ERROR_USE. Removed: empty. */
bool agent_skill(struct text now, bool remove, struct arena *a, struct text *out,
                 struct error *err);

#endif
