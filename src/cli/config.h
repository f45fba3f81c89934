/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.h - the configuration, and where each value came from.
 *
 * Precedence: flags, the environment, ./cutegen.ini, the user's cutegen.ini, the defaults. One
 * table in config.c lists every key; a key `build-deadline` is the flag --build-deadline, the
 * variable CUTEGEN_BUILD_DEADLINE and the line `build-deadline = 60` of a cutegen.ini.
 *
 *     struct config *c = config_new(a);
 *     config_load(c, err);                               ini files and environment
 *     config_set(c, "model", "builtin", ORIGIN_FLAG, "--model", err);
 *     config_settings(c, &settings);
 *
 * Invariants
 * 1. A value is checked when it is set: config_settings() cannot fail.
 * 2. An API key is never a value here: keys live in the environment or in a
 *    file of their own, and only their location is configured.
 */
#ifndef CLI_CONFIG_H
#define CLI_CONFIG_H

#include "loop/loop.h"

enum config_origin { ORIGIN_DEFAULT, ORIGIN_USER, ORIGIN_PROJECT, ORIGIN_ENVIRONMENT, ORIGIN_FLAG };

/* Which commands a key is a flag of. */
enum config_group {
    GROUP_STORE = 1 << 0,
    GROUP_TOOLS = 1 << 1,
    GROUP_DEVICE = 1 << 2,
    GROUP_MODEL = 1 << 3,
    GROUP_LOOP = 1 << 4,
    GROUP_ALL = (1 << 5) - 1,
};

struct config_key {
    const char *name;
    enum config_group group;
    const char *value; /* placeholder of the value in help; NULL: yes or no */
    const char *preset;
    const char *help;
};

extern const struct config_key config_keys[];
extern const size_t config_key_count;

struct config;
struct config *config_new(struct arena *a);
/* Reads the user's and the project's cutegen.ini and CUTEGEN_* variables. A missing file is fine;
 * an unknown key is ERROR_USE with file and line. */
bool config_load(struct config *c, struct error *err);
/* The same from one file, for tests. */
bool config_read_file(struct config *c, const char *path, enum config_origin origin,
                      struct error *err);
/* `where` is shown as the origin: "--model", "cutegen.ini". Values of the key `set`
 * accumulate. */
bool config_set(struct config *c, const char *key, const char *value, enum config_origin origin,
                const char *where, struct error *err);

const struct config_key *config_find(const char *key); /* NULL: there is none */
/* What replaced a key of an earlier version, as a hint; NULL: there was no such key. */
const char *config_was(const char *key);
void config_settings(const struct config *c, struct settings *out);
void config_run_options(const struct config *c, struct run_options *out);
/* The keys that were given as flags, NULL-terminated. */
const char *const *config_said(const struct config *c);

/* The effective text of a key ("" when unset) and where it came from. */
const char *config_get(const struct config *c, const char *key);
const char *config_where(const struct config *c, const char *key);

#endif
