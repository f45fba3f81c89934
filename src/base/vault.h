/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vault.h - the secrets this process knows: read once, out of sight, kept out of every text.
 *
 *     vault_open();                         first thing in main(): see below
 *     value = vault_get("OPENAI_API_KEY");  what getenv() would have said
 *     value = vault_keep("FILE", v, len);   a key that came from elsewhere
 *     t = vault_scrub(t, a);                before a text goes anywhere
 *
 * vault_open() moves every variable with a secret's name out of the
 * environment and overwrites it where it lay: the block that
 * /proc/PID/environ shows no longer has it. The values lie in pages of their
 * own that a forked process does not inherit and that no core dump has.
 *
 * vault_scrub() is the last layer, not the first: texts come from processes
 * that cannot read a key. It finds a secret as it is, in hex, in base64
 * (wherever it begins in what was encoded), URL-encoded and escaped for
 * JSON; also when the text was cut in the middle of it.
 */
#ifndef BASE_VAULT_H
#define BASE_VAULT_H

#include "base/mem.h"

/* "NAME=VALUE" or "NAME": does it end in _API_KEY, _TOKEN, _SECRET, _PASSWORD or _ACCESS_KEY? */
bool vault_is_secret_name(const char *entry);

/* Also makes the process private (vault_private). */
void vault_open(void);
/* No ptrace, no core dump, no reading of /proc/PID of this process by others of this user. For
 * every program of ours; a program that is started begins without it. Who writes a uid_map of its
 * own (a user namespace) must be dumpable for that moment, unless it is root. */
void vault_private(void);

/* NULL: no such secret. Lives as long as the process; a forked process gets NULL. */
const char *vault_get(const char *name);
/* The copy in the vault; NULL: there is no room for it. */
const char *vault_keep(const char *name, const char *value, size_t len);

/* The text itself when it holds no secret, else a copy with "[key]" in its place. */
struct text vault_scrub(struct text t, struct arena *a);
/* The same where it lies; returns the new length. s[len] must be '\0'. */
size_t vault_scrub_in_place(char *s, size_t len);

#endif
