/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vault.c - the secrets of this process; see vault.h.
 *
 * Hides where they are kept and which spellings of them are searched for.
 *
 * Invariants
 * 1. Everything that could reveal a secret is in one mapping that fork() does not copy.
 * 2. A replacement is never longer than what it replaces.
 * 3. A variable whose value could be an ordinary word is taken but not searched for; a key that is
 *    used (vault_keep) always is.
 */
#include "base/vault.h"

#include "base/base64.h"
#include "base/error.h"
#include "base/sanitized.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/prctl.h>

extern char **environ;

enum {
    VAULT_BYTES = 1 << 20,
    MAX_SECRETS = 64,
    MAX_SPELLINGS = 768,
    MAX_VALUE = 8192,
    SHORT = 6,        /* shorter spellings are not searched for; longer than "[key]" */
    NO_WORD = 8,      /* with letters and digits */
    LONG = 16,        /* no ordinary word is this long, whatever its characters */
    LEAST_OF_CUT = 8, /* least part of a spelling that is found at either end of a text */
};

static const char mark[] = "[key]";

struct spelling {
    const char *data;
    size_t len;
};

struct vault {
    struct {
        const char *name, *value;
    } secret[MAX_SECRETS];
    struct spelling spelling[MAX_SPELLINGS];
    size_t secrets, spellings, used;
    char bytes[];
};

static struct vault *vault; /* NULL: never opened */

bool vault_is_secret_name(const char *entry)
{
    static const char *const endings[] = {"_API_KEY", "_TOKEN", "_SECRET", "_PASSWORD",
                                          "_ACCESS_KEY"};
    size_t len = strcspn(entry, "=");

    for (size_t i = 0; i < ARRAY_LEN(endings); i++) {
        size_t n = strlen(endings[i]);

        if (len >= n && strncasecmp(entry + len - n, endings[i], n) == 0)
            return true;
    }
    return false;
}

/* ---- the mapping ---------------------------------------------------------- */

static bool vault_map(void)
{
    void *at;

    if (vault)
        return true;
    at = mmap(NULL, VAULT_BYTES, PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return false;
    madvise(at, VAULT_BYTES, MADV_WIPEONFORK);
    madvise(at, VAULT_BYTES, MADV_DONTDUMP);
    vault = at;
    return true;
}

/* Space for len bytes; NULL when the vault is full. */
static char *vault_room(size_t len)
{
    char *at = vault->bytes + vault->used;

    if (len > VAULT_BYTES - sizeof(*vault) - vault->used)
        return NULL;
    vault->used += len;
    return at;
}

/* ---- spellings ------------------------------------------------------------ */

static void add_spelling(const char *data, size_t len)
{
    char *at;

    if (len < SHORT || vault->spellings == MAX_SPELLINGS)
        return;
    for (size_t i = 0; i < vault->spellings; i++)
        if (vault->spelling[i].len == len && memcmp(vault->spelling[i].data, data, len) == 0)
            return;
    at = vault_room(len);
    if (!at)
        return;
    memcpy(at, data, len);
    vault->spelling[vault->spellings++] = (struct spelling){at, len};
}

static void add_hex(const char *value, size_t len, const char *digits)
{
    char out[2 * MAX_VALUE];

    for (size_t i = 0; i < len; i++) {
        out[2 * i] = digits[(unsigned char)value[i] >> 4];
        out[2 * i + 1] = digits[(unsigned char)value[i] & 15];
    }
    add_spelling(out, 2 * len);
    explicit_bzero(out, sizeof(out));
}

/* The base64 characters that do not depend on what surrounds the value, for one of the three
 * offsets in a group at which it can begin. */
static void add_base64(const char *value, size_t len, size_t skip, const char *last_two)
{
    char out[BASE64_ROOM(MAX_VALUE)];
    size_t whole = len > skip ? (len - skip) / 3 * 3 : 0; /* only whole groups are fully known */

    add_spelling(out, base64_encode(value + skip, whole, last_two, out));
    explicit_bzero(out, sizeof(out));
}

static void add_url(const char *value, size_t len, const char *digits)
{
    char out[3 * MAX_VALUE];
    size_t n = 0;

    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)value[i];

        if (isalnum(c) || strchr("-._~", c)) {
            out[n++] = (char)c;
            continue;
        }
        out[n++] = '%';
        out[n++] = digits[c >> 4];
        out[n++] = digits[c & 15];
    }
    add_spelling(out, n);
    explicit_bzero(out, sizeof(out));
}

static void add_json(const char *value, size_t len)
{
    char out[2 * MAX_VALUE];
    size_t n = 0;

    for (size_t i = 0; i < len; i++) {
        if (value[i] == '"' || value[i] == '\\')
            out[n++] = '\\';
        out[n++] = value[i];
    }
    add_spelling(out, n);
    explicit_bzero(out, sizeof(out));
}

static void add_spellings(const char *value, size_t len)
{
    static const char lower[] = "0123456789abcdef", upper[] = "0123456789ABCDEF";

    add_spelling(value, len);
    add_hex(value, len, lower);
    add_hex(value, len, upper);
    for (size_t skip = 0; skip < 3; skip++) {
        add_base64(value, len, skip, "+/");
        add_base64(value, len, skip, "-_");
    }
    add_url(value, len, lower);
    add_url(value, len, upper);
    add_json(value, len);
}

/* An ordinary word must not vanish from every kernel because it is a variable's value. */
static bool worth_looking_for(const char *value, size_t len)
{
    bool digit = false, letter = false;

    for (size_t i = 0; i < len; i++) {
        digit = digit || isdigit((unsigned char)value[i]);
        letter = letter || isalpha((unsigned char)value[i]);
    }
    return len >= LONG || (len >= NO_WORD && digit && letter);
}

/* ---- taking secrets -------------------------------------------------------- */

static const char *keep(const char *name, const char *value, size_t len)
{
    char *kept;

    if (!vault_map() || !len || len > MAX_VALUE)
        return NULL;
    for (size_t i = 0; i < vault->secrets; i++)
        if (strcmp(vault->secret[i].name, name) == 0 && strlen(vault->secret[i].value) == len &&
            memcmp(vault->secret[i].value, value, len) == 0)
            return vault->secret[i].value;
    kept = vault->secrets < MAX_SECRETS ? vault_room(strlen(name) + 1 + len + 1) : NULL;
    if (!kept)
        return NULL;
    memcpy(kept, name, strlen(name) + 1);
    vault->secret[vault->secrets].name = kept;
    kept += strlen(name) + 1;
    memcpy(kept, value, len);
    kept[len] = '\0';
    vault->secret[vault->secrets++].value = kept;
    return kept;
}

const char *vault_keep(const char *name, const char *value, size_t len)
{
    const char *kept = keep(name, value, len);

    if (kept)
        add_spellings(kept, len);
    return kept;
}

/* Removes it from the list and wipes its bytes: /proc shows the bytes, not the list. */
static void take_entry(char *entry)
{
    size_t name = strcspn(entry, "=");
    char *value = entry[name] ? entry + name + 1 : entry + name;

    entry[name] = '\0';
    if (keep(entry, value, strlen(value)) && worth_looking_for(value, strlen(value)))
        add_spellings(value, strlen(value));
    explicit_bzero(value, strlen(value));
    explicit_bzero(entry, name);
}

void vault_open(void)
{
    size_t kept = 0;

    vault_private();
    if (!vault_map())
        return; /* out of memory: the environment stays, and the other layers still protect it */
    for (size_t i = 0; environ && environ[i]; i++) {
        if (vault_is_secret_name(environ[i]))
            take_entry(environ[i]);
        else
            environ[kept++] = environ[i];
    }
    if (environ)
        environ[kept] = NULL;
}

void vault_private(void)
{
#ifndef SANITIZED /* a sanitizer's leak check traces its own process */
    prctl(PR_SET_DUMPABLE, 0);
#endif
}

const char *vault_get(const char *name)
{
    for (size_t i = 0; vault && i < vault->secrets; i++)
        if (strcmp(vault->secret[i].name, name) == 0)
            return vault->secret[i].value;
    return NULL;
}

/* ---- scrubbing -------------------------------------------------------------- */

static bool has_cut_tail(const char *s, size_t len, const struct spelling *p, size_t *cut)
{
    for (size_t n = p->len - 1 < len ? p->len - 1 : len; n >= LEAST_OF_CUT; n--) {
        if (memcmp(s + len - n, p->data, n) == 0) {
            *cut = n;
            return true;
        }
    }
    return false;
}

static bool has_cut_head(const char *s, size_t len, const struct spelling *p, size_t *cut)
{
    for (size_t n = p->len - 1 < len ? p->len - 1 : len; n >= LEAST_OF_CUT; n--) {
        if (memcmp(s, p->data + p->len - n, n) == 0) {
            *cut = n;
            return true;
        }
    }
    return false;
}

static bool holds_secret(struct text t)
{
    size_t cut;

    for (size_t i = 0; vault && i < vault->spellings && t.len >= LEAST_OF_CUT; i++) {
        const struct spelling *p = &vault->spelling[i];

        if (memmem(t.data, t.len, p->data, p->len) || has_cut_tail(t.data, t.len, p, &cut) ||
            has_cut_head(t.data, t.len, p, &cut))
            return true;
    }
    return false;
}

/* Puts the mark over n bytes at `at`; returns the new length. */
static size_t put_mark(char *s, size_t len, size_t at, size_t n)
{
    size_t m = sizeof(mark) - 1;

    memcpy(s + at, mark, m);
    memmove(s + at + m, s + at + n, len - at - n + 1);
    return len - n + m;
}

static size_t scrub_one(char *s, size_t len, const struct spelling *p)
{
    char *at = s;
    size_t cut;

    while ((at = memmem(at, len - (size_t)(at - s), p->data, p->len)) != NULL) {
        len = put_mark(s, len, (size_t)(at - s), p->len);
        at += sizeof(mark) - 1;
    }
    if (has_cut_tail(s, len, p, &cut))
        len = put_mark(s, len, len - cut, cut);
    if (has_cut_head(s, len, p, &cut))
        len = put_mark(s, len, 0, cut);
    return len;
}

size_t vault_scrub_in_place(char *s, size_t len)
{
    /* The order does not matter: no spelling is part of another one's replacement. */
    for (size_t i = 0; vault && i < vault->spellings && len >= LEAST_OF_CUT; i++)
        len = scrub_one(s, len, &vault->spelling[i]);
    return len;
}

struct text vault_scrub(struct text t, struct arena *a)
{
    struct text copy;

    if (!holds_secret(t))
        return t;
    copy = arena_text(a, t.data, t.len);
    copy.len = vault_scrub_in_place((char *)(uintptr_t)copy.data, copy.len);
    return copy;
}
