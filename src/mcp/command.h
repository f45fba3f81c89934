/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command.h - cutegen commands in processes of their own, and what a tool's arguments name.
 * Private to src/mcp.
 */
#ifndef MCP_COMMAND_H
#define MCP_COMMAND_H

#include "mcp/server.h"

enum { COMMAND_FLAGS = 40, COMMAND_WORDS = 4 };

/* Strings are borrowed until it has run. Words are placed after "--", so none can be a flag. */
struct mcp_command {
    const char *program, *name;
    const char *flags[COMMAND_FLAGS], *words[COMMAND_WORDS];
    int flag_count, word_count;
    bool keys; /* it may ask a model */
    bool warm; /* it uses the warm server */
    void (*event)(void *ctx, const json_t *event);
    void *ctx;
};

struct mcp_command command_of(const struct mcp *m, const char *name);
void command_word(struct mcp_command *c, const char *word);
void command_flag(struct mcp_command *c, const char *flag,
                  const char *value); /* value NULL: none */
/* Adds the device, target and sizes that a tool's arguments name. */
bool command_where(struct mcp_job *j, struct mcp_command *c, const json_t *args, struct error *why);
/*
 * Runs it and returns the JSON object on its last line, in j->a. False: it failed; `why` has the
 * message and what to do next, or says that it was cancelled. The command's steps become the job's
 * progress.
 */
bool command_run(struct mcp_job *j, const struct mcp_command *c, const json_t **out,
                 struct error *why);
/* The same without --json: returns its output. */
bool command_text(struct mcp_job *j, const struct mcp_command *c, struct text *out,
                  struct error *why);

/* How a kernel given as text is called, by its language; NULL or "": CuTe. */
const char *kernel_file_name(const char *target);
/*
 * A file that a tool's arguments give: a path in `path_key`, or its text in `text_key`, which is
 * written to a folder of its own that the job's arena removes.
 */
bool argument_file(struct mcp_job *j, const json_t *args, const char *path_key,
                   const char *text_key, const char *name, const char **out, struct error *why);
/* A folder that is removed with the job. */
bool job_folder(struct mcp_job *j, char **out, struct error *why);
/* Accepts "last" or an id, nothing that could be a flag. */
bool argument_run(const json_t *args, const char **out, struct error *why);
/* May this path be read or written? If there is a root, it must be below it. */
bool path_allowed(const struct mcp *m, const char *path, struct arena *a, struct error *why);

#endif
