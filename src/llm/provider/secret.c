/* SPDX-License-Identifier: Apache-2.0 */
/*
 * secret.c - load the provider's key, and keep it from leaking.
 *
 * Invariants
 * 1. A key comes from a variable whose name children never inherit (base/proc.h)
 *    or from a file only its owner can read.
 * 2. Whatever text a provider sends back is scrubbed before it leaves this room.
 * 3. It is only in the vault (base/vault.h), and in a header while a call is made.
 */
#include "base/fs.h"
#include "base/text.h"
#include "base/vault.h"
#include "llm/provider/provider.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_KEY = 4096 };

/* A key must be one printable word: anything else could inject headers. */
static bool take(struct secret *out, const char *value, size_t len, struct error *err)
{
    struct text key = text_trim((struct text){value, len});

    value = key.data;
    len = key.len;
    for (size_t i = 0; i < len; i++)
        if (value[i] <= ' ' || value[i] > '~')
            return error_set(err, ERROR_USE, "the key in %s is not one printable word", out->from);
    if (len == 0 || len > MAX_KEY)
        return error_set(err, ERROR_USE, "the key in %s is %s", out->from,
                         len ? "too long" : "empty");
    out->value = vault_keep(out->from, value, len);
    return out->value || error_set(err, ERROR_MACHINE, "no room for the key in %s", out->from);
}

static bool from_file(const char *path, struct secret *out, struct error *err)
{
    struct arena *a;
    struct stat st;
    struct text t;
    bool ok;

    if (stat(path, &st) != 0)
        return error_set(err, ERROR_USE, "cannot read the key file %s: no such file", path);
    if (st.st_mode & 077) {
        error_set(err, ERROR_USE, "the key file %s can be read by others (mode %03o)", path,
                  (unsigned)st.st_mode & 0777);
        return error_hint(err, "chmod 600 %s", path);
    }
    a = arena_new();
    ok = file_read(path, MAX_KEY, a, &t, err);
    if (ok) {
        ok = take(out, t.data, t.len, err);
        explicit_bzero((void *)(uintptr_t)t.data, t.len);
    }
    arena_free(a);
    return ok;
}

bool secret_load(const struct llm_config *c, const struct dialect *d, struct secret *out,
                 struct error *err)
{
    const char *env = c->key_env ? c->key_env : d->key_env;
    const char *value;

    memset(out, 0, sizeof(*out));
    if (c->key_file) {
        snprintf(out->from, sizeof(out->from), "%s", c->key_file);
        return from_file(c->key_file, out, err);
    }
    snprintf(out->from, sizeof(out->from), "$%s", env);
    if (!vault_is_secret_name(env)) {
        error_set(err, ERROR_USE, "a key may not be in $%s: programs we start would inherit it",
                  env);
        return error_hint(err, "use a name that ends in _API_KEY, _TOKEN, _SECRET or _PASSWORD");
    }
    value = vault_get(env);
    if (!value)
        value = getenv(env); /* in a program that did not open the vault: a test */
    if (value && *value)
        return take(out, value, strlen(value), err);
    if (!http_is_official(c, d))
        return true; /* local servers often want none */
    error_set(err, ERROR_USE, "no key for %s: $%s is not set", d->base_url, env);
    return error_hint(err,
                      "set %s, name a key file (mode 0600), or give the base URL of another "
                      "server",
                      env);
}

void secret_release(struct secret *s)
{
    s->value = NULL; /* the vault keeps it, because later texts must still be scrubbed */
}
