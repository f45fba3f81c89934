/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd.h - the command line: one table, one function per command.
 *
 * A command reads its words and flags from a `struct cli`, calls the loop,
 * the store or a stage, and prints. It decides nothing else. False means a struct error, which
 * main.c prints; a bad verdict is an exit code that the command returns in *code.
 *
 * To add a command: a row in the table of main.c and a function here. Help,
 * completion and "did you mean" follow from the row.
 */
#ifndef CLI_CMD_H
#define CLI_CMD_H

#include "base/buf.h"
#include "base/error.h"
#include "cli/config.h"

#include "base/json.h"
#include <stdio.h>

enum {
    EXIT_DONE = 0,
    EXIT_JUDGED = 1,
    EXIT_USE = 2,
    EXIT_MACHINE = 3,
    EXIT_BUDGET = 4,
    EXIT_NOTHING = 5, /* edit apply: the reply holds no edit */
    EXIT_INTERRUPTED = 130
};

enum { CLI_MAX_WORDS = 512, CLI_MAX_FLAGS = 1024 };

struct flag {
    const char *name;
    const char *value; /* placeholder of its value in help; NULL: it takes no value */
    const char *help;
};

/* A command line after parsing. */
struct cli {
    const struct command *command;
    struct arena *a;
    struct config *config;
    struct settings settings;
    const char *words[CLI_MAX_WORDS + 1]; /* arguments that are not flags, NULL-terminated */
    int word_count;
    struct {
        const char *name, *value;
    } given[CLI_MAX_FLAGS]; /* the command's own flags */
    int given_count;
    bool json, quiet;
    bool colour; /* stdout is a terminal, and colour is not switched off */
    bool utf8;
};

struct command {
    const char *name;  /* "run", "edit apply" */
    const char *words; /* "TASK.py" */
    int min_words, max_words;
    int groups; /* groups of configuration keys that it accepts as flags */
    bool json;
    bool signals;             /* Ctrl-C asks the loop to stop instead of killing us */
    const struct flag *flags; /* its own flags, ended by a NULL name */
    bool (*run)(struct cli *cli, int *code, struct error *err);
    const char *summary; /* one line */
    const char *help;    /* the rest */
};

extern const struct command commands[]; /* ended by a NULL name */
const struct command *command_find(const char *name, const char *next);

/* ---- flags (flags.c) ------------------------------------------------- */

bool flags_parse(struct cli *cli, int argc, char **argv, struct error *err);
/* The value of one of the command's own flags ("" if it takes none), or NULL when not given. */
const char *flag_get(const struct cli *cli, const char *name);
/* All values of one of the command's own flags, NULL-terminated. */
const char *const *flag_all(const struct cli *cli, const char *name);
/* "--key=value" for each setting of these groups that was given as a flag, except where to run:
 * runs, store, device. NULL-terminated. */
const char *const *flags_said(const struct cli *cli, int groups);
/* Groups of settings of the commands that judge. */
enum { GROUP_JUDGING = GROUP_STORE | GROUP_DEVICE | GROUP_TOOLS };
bool read_job(struct cli *cli, struct error *err); /* --job (cmd_eval.c) */
/* --require and --priority (cmd_queue.c). */
struct job_needs;
bool flags_needs(const struct cli *cli, struct job_needs *needs, struct error *err);
bool flags_priority(const struct cli *cli, int *priority, struct error *err);
/* print_profile.c: a page per launch of `simt run --profile`. */
void print_profile(const json_t *report);
/* The name most similar to what was written, or NULL when none is similar. */
const char *nearest_name(const char *written, const char *const *names, size_t count);
void help_command(const struct command *c, FILE *out);
void help_all(FILE *out);

/* ---- printing (print.c) ---------------------------------------------- */

enum paint { PAINT_NONE, PAINT_GOOD, PAINT_BAD, PAINT_DIM, PAINT_BOLD };
const char *paint_on(const struct cli *cli, enum paint p); /* "" without colour */
const char *paint_off(const struct cli *cli);
void print_json(json_t *v);                      /* one line; takes the reference */
const char *show_us(double us, struct arena *a); /* "0.611 ms", "3.91 us" */
const char *show_shape(const struct tensor_info *t, struct arena *a); /* "(16, 128) f32" */
const char *show_device(const struct device *d, struct arena *a);     /* "simt as H200" */
/* Relative to the working folder if it is below it, else unchanged. */
const char *short_path(const char *path, struct arena *a);
/* Text of a task, a candidate or a model: control characters are printed as
 * escapes. */
void print_visible(FILE *to, const char *text, size_t len);
/* Width of the terminal; 0: not a terminal. */
int terminal_columns(FILE *to);
/* Prints a line that begins at column `used`; on a terminal it is wrapped between words, indented
 * by `indent`. */
void print_fit(int indent, const char *fmt, ...) __attribute__((format(printf, 2, 3))); /* a line */
void print_wrapped(FILE *to, const char *text, size_t len, int used, int indent);
/* The same; without a terminal it is wrapped at 80 columns. */
void print_help(FILE *to, const char *text, size_t len, int used, int indent);
/* Lines that are safe to print, each wrapped as needed. */
void print_page(const struct buf *page, int indent);
/* A line of the log (base/log.h). */
void print_log(void *ctx, const char *text, size_t len);
void print_verdict(const struct cli *cli, const struct verdict *v, bool detail);
json_t *verdict_json(const struct verdict *v);
json_t *measurement_json(const struct measurement *m);
json_t *accuracy_json(const struct accuracy *acc);
json_t *task_json(const struct task *t);
json_t *device_json(const struct device *d);

/* ---- live progress (progress.c) -------------------------------------- */

/* Prints a run as it proceeds: a table with a live last line, plain lines, or JSON events. */
struct progress *progress_new(const struct cli *cli);
/* Only the live line, for a single step whose result is printed at the end. */
struct progress *progress_new_live(const struct cli *cli);
void progress_end(struct progress *p); /* NULL is fine */

/* The page of these runs; `path` NULL: in the folder of the first. */
bool write_report(const struct cli *cli, const char *const *runs, int count, const char *path,
                  const char **written, struct error *err);

/* From here on Ctrl-C is counted in loop_interrupts. interrupts.c */
void interrupts_catch(void);

/* ---- the commands -------------------------------------------------------- */

bool cmd_run(struct cli *cli, int *code, struct error *err);
bool cmd_suite(struct cli *cli, int *code, struct error *err);
bool cmd_worker(struct cli *cli, int *code, struct error *err);
bool cmd_queue_add(struct cli *cli, int *code, struct error *err);
bool cmd_queue_wait(struct cli *cli, int *code, struct error *err);
bool cmd_queue_list(struct cli *cli, int *code, struct error *err);
bool cmd_queue_cancel(struct cli *cli, int *code, struct error *err);
bool cmd_compile(struct cli *cli, int *code, struct error *err);
bool cmd_top(struct cli *cli, int *code, struct error *err);
bool cmd_store_copy(struct cli *cli, int *code, struct error *err);
bool cmd_store_prune(struct cli *cli, int *code, struct error *err);
bool cmd_store_upgrade(struct cli *cli, int *code, struct error *err);
bool cmd_store_check(struct cli *cli, int *code, struct error *err);
bool cmd_resume(struct cli *cli, int *code, struct error *err);
bool cmd_tune(struct cli *cli, int *code, struct error *err);
bool cmd_build(struct cli *cli, int *code, struct error *err);
bool cmd_eval(struct cli *cli, int *code, struct error *err);
bool cmd_describe(struct cli *cli, int *code, struct error *err);
bool cmd_runs(struct cli *cli, int *code, struct error *err);
bool cmd_show(struct cli *cli, int *code, struct error *err);
bool cmd_report(struct cli *cli, int *code, struct error *err);
bool cmd_export(struct cli *cli, int *code, struct error *err);
bool cmd_verify(struct cli *cli, int *code, struct error *err);
bool cmd_simt_exec(struct cli *cli, int *code, struct error *err);
bool cmd_simt_run(struct cli *cli, int *code, struct error *err);
bool cmd_edit_apply(struct cli *cli, int *code, struct error *err);
bool cmd_ask(struct cli *cli, int *code, struct error *err);
bool cmd_models(struct cli *cli, int *code, struct error *err);
bool cmd_prompt(struct cli *cli, int *code, struct error *err);
bool cmd_server_status(struct cli *cli, int *code, struct error *err);
bool cmd_server_stop(struct cli *cli, int *code, struct error *err);
bool cmd_agent_install(struct cli *cli, int *code, struct error *err);
bool cmd_watch(struct cli *cli, int *code, struct error *err);
bool cmd_mcp(struct cli *cli, int *code, struct error *err);
bool cmd_search(struct cli *cli, int *code, struct error *err);
bool cmd_live(struct cli *cli, int *code, struct error *err);
bool cmd_peaks(struct cli *cli, int *code, struct error *err);
bool cmd_doctor(struct cli *cli, int *code, struct error *err);
bool cmd_config(struct cli *cli, int *code, struct error *err);
bool cmd_help(struct cli *cli, int *code, struct error *err);
bool cmd_version(struct cli *cli, int *code, struct error *err);

#endif
