/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vault.h - the secrets of this process: read once, hidden, and scrubbed from every text.
 *
 *     vault_open();                         first thing in main(): see below
 *     value = vault_get("OPENAI_API_KEY");  what getenv() would have returned
 *     value = vault_keep("FILE", v, len);   a key from another source
 *     t = vault_scrub(t, a);                before a text goes anywhere
 *
 * vault_open() moves every variable with a secret's name out of the environment and overwrites its
 * memory, so that /proc/PID/environ no longer shows it. The values are in pages of their own that a
 * forked process does not inherit and no core dump contains.
 *
 * vault_scrub() is the last layer, not the first: texts come from processes
 * that cannot read a key. It finds a secret verbatim, in hex, in base64 (at any offset of the
 * encoded data), URL-encoded and escaped for JSON; also when either end of the text truncates it.
 */
#ifndef BASE_VAULT_H
#define BASE_VAULT_H

#include "base/mem.h"

/* "NAME=VALUE" or "NAME": does it end in _API_KEY, _TOKEN, _SECRET, _PASSWORD or _ACCESS_KEY? */
bool vault_is_secret_name(const char *entry);

/* Also makes the process private (vault_private). */
void vault_open(void);
/* Forbids ptrace, core dumps, and reading /proc/PID of this process by other processes of this
 * user. Every program of ours calls it; a program it starts does not inherit it. A process that
 * writes its own uid_map (a user namespace) must be dumpable meanwhile, unless it is root. */
void vault_private(void);

/* NULL: no such secret. Valid as long as the process lives; NULL in a forked process. */
const char *vault_get(const char *name);
/* Returns the copy in the vault; NULL: the vault is full. */
const char *vault_keep(const char *name, const char *value, size_t len);

/* The text itself if it holds no secret, else a copy with "[key]" in place of each. */
struct text vault_scrub(struct text t, struct arena *a);
/* The same in place; returns the new length. s[len] must be '\0'. */
size_t vault_scrub_in_place(char *s, size_t len);

#endif
