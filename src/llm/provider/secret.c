/*
 * secret.c - the provider's key: where it comes from, and that it goes nowhere else.
 *
 * Invariants
 * 1. A key comes from a variable whose name children never inherit (base/proc.h)
 *    or from a file only its owner can read.
 * 2. Whatever text a provider sends back is scrubbed before it leaves this room.
 * 3. The memory is wiped when the llm is closed.
 */
#include "base/fs.h"
#include "llm/provider/provider.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_KEY = 4096, MIN_SCRUB = 6 };

static bool name_is_private(const char *name)
{
    static const char *const ends[] = {"_API_KEY", "_TOKEN", "_SECRET", "_PASSWORD"};

    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        size_t n = strlen(name), e = strlen(ends[i]);

        if (n >= e && strcmp(name + n - e, ends[i]) == 0)
            return true;
    }
    return false;
}

/* A key is one printable word: anything else would break out of its header. */
static bool take(struct secret *out, const char *value, size_t len, struct error *err)
{
    while (len && isspace((unsigned char)value[0]))
        value++, len--;
    while (len && isspace((unsigned char)value[len - 1]))
        len--;
    for (size_t i = 0; i < len; i++)
        if (value[i] <= ' ' || value[i] > '~')
            return error_set(err, ERROR_USE, "the key in %s is not one printable word", out->from);
    if (len == 0 || len > MAX_KEY)
        return error_set(err, ERROR_USE, "the key in %s is %s", out->from,
                         len ? "too long" : "empty");
    out->value = xmalloc(len + 1);
    memcpy(out->value, value, len);
    return true;
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
    ok = file_read(path, MAX_KEY, a, &t, err) && take(out, t.data, t.len, err);
    if (ok)
        explicit_bzero((void *)(uintptr_t)t.data, t.len);
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
    if (!name_is_private(env)) {
        error_set(err, ERROR_USE, "a key may not be in $%s: programs we start would inherit it",
                  env);
        return error_hint(err, "use a name that ends in _API_KEY, _TOKEN, _SECRET or _PASSWORD");
    }
    value = getenv(env);
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
    if (s->value)
        explicit_bzero(s->value, strlen(s->value));
    xfree(s->value);
    s->value = NULL;
}

void secret_scrub(const struct secret *key, char *s)
{
    size_t n = key->value ? strlen(key->value) : 0;
    char *p = s;

    if (n < MIN_SCRUB)
        return;
    while ((p = strstr(p, key->value)) != NULL) {
        memcpy(p, "[key]", 5); /* shorter than any key: MIN_SCRUB */
        memmove(p + 5, p + n, strlen(p + n) + 1);
        p += 5;
    }
}

void secret_scrub_text(const struct secret *key, struct text *t, struct arena *a)
{
    if (key->value && t->len && memmem(t->data, t->len, key->value, strlen(key->value))) {
        char *copy = arena_strndup(a, t->data, t->len);

        secret_scrub(key, copy);
        *t = text_of(copy);
    }
}
