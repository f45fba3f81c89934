/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seal.c - files that are trusted only if we wrote them; see seal.h.
 *
 * Hides the key and where the digest is: after the data, so that one rename writes both.
 */
#include "base/seal.h"

#include "base/buf.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEY_BYTES = 32, BLOCK = 64, DIGEST_HEX = 64 };

static const char mark[] = "\ncutegen seal 1 ";
enum { TRAILER = sizeof(mark) - 1 + DIGEST_HEX + 1 };

/* ---- the key ---------------------------------------------------------------- */

static bool key_read(const char *path, unsigned char key[KEY_BYTES])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct stat st;
    bool ok;

    if (fd < 0)
        return false;
    ok = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
         (st.st_mode & 077) == 0 && read(fd, key, KEY_BYTES) == KEY_BYTES;
    close(fd);
    return ok;
}

/* Atomic, and the first of several writers wins: link() does not replace a file. */
static void key_make(const char *path, struct arena *a)
{
    char *temp = arena_printf(a, "%s.XXXXXX", path);
    unsigned char key[KEY_BYTES];
    int fd = mkostemp(temp, O_CLOEXEC); /* 0600 */

    if (fd < 0)
        return;
    if (getrandom(key, sizeof(key), 0) == KEY_BYTES && write(fd, key, sizeof(key)) == KEY_BYTES)
        (void)!link(temp, path);
    explicit_bzero(key, sizeof(key));
    close(fd);
    unlink(temp);
}

static bool key_get(struct arena *a, unsigned char key[KEY_BYTES], struct error *err)
{
    char *dir, *path;

    if (!home_cache("", a, &dir, err))
        return false;
    path = path_join(a, dir, "seal.key");
    if (key_read(path, key))
        return true;
    if (file_exists(path)) {
        log_warn("%s is not a private file of this user: cached results are made again", path);
        unlink(path);
    }
    key_make(path, a);
    return key_read(path, key) ||
           error_set(err, ERROR_MACHINE, "cannot keep a key in %s: %s", path, strerror(errno));
}

/* ---- the digest --------------------------------------------------------------- */

static void hash_bytes(const char hex[65], unsigned char out[32])
{
    for (int i = 0; i < 32; i++) {
        unsigned byte = 0;

        sscanf(hex + 2 * i, "%2x", &byte);
        out[i] = (unsigned char)byte;
    }
}

/* HMAC-SHA-256 (RFC 2104) of the name's length, the name and the data. */
static void digest(const unsigned char key[KEY_BYTES], const char *name, struct text data,
                   char hex[65])
{
    unsigned char pad[BLOCK], inner_bytes[32];
    struct hash inner = hash_init(), outer = hash_init();

    memset(pad, 0x36, sizeof(pad));
    for (int i = 0; i < KEY_BYTES; i++)
        pad[i] ^= key[i];
    hash_add(&inner, pad, sizeof(pad));
    hash_add_text(&inner, text_of(name));
    hash_add(&inner, data.data, data.len);
    hash_hex(&inner, hex);
    hash_bytes(hex, inner_bytes);
    for (int i = 0; i < BLOCK; i++)
        pad[i] ^= 0x36 ^ 0x5c;
    hash_add(&outer, pad, sizeof(pad));
    hash_add(&outer, inner_bytes, sizeof(inner_bytes));
    hash_hex(&outer, hex);
    explicit_bzero(pad, sizeof(pad));
}

/* ---- the interface --------------------------------------------------------------- */

bool seal_save(const char *path, const char *name, struct text data, struct error *err)
{
    struct arena *a = arena_new();
    struct buf b = buf_init(data.len + TRAILER);
    unsigned char key[KEY_BYTES];
    char hex[65];
    bool ok = key_get(a, key, err);

    if (ok) {
        digest(key, name, data, hex);
        buf_add(&b, data.data, data.len);
        buf_printf(&b, "%s%s\n", mark, hex);
        ok = file_write(path, buf_text(&b), err);
    }
    explicit_bzero(key, sizeof(key));
    buf_release(&b);
    arena_free(a);
    return ok;
}

static bool matches(struct text whole, const char *name, struct arena *a)
{
    struct error ignored = {0};
    unsigned char key[KEY_BYTES];
    const char *trailer;
    char hex[65];

    if (whole.len < TRAILER || !key_get(a, key, &ignored))
        return false;
    trailer = whole.data + whole.len - TRAILER;
    digest(key, name, (struct text){whole.data, whole.len - TRAILER}, hex);
    explicit_bzero(key, sizeof(key));
    return memcmp(trailer, mark, sizeof(mark) - 1) == 0 &&
           memcmp(trailer + sizeof(mark) - 1, hex, DIGEST_HEX) == 0 && trailer[TRAILER - 1] == '\n';
}

bool seal_load(const char *path, const char *name, size_t limit, struct arena *a, struct text *out)
{
    struct error why = {0};
    struct text whole = {"", 0};

    if (!file_exists(path))
        return false;
    if (!file_read(path, limit + TRAILER, a, &whole, &why) || !matches(whole, name, a)) {
        log_warn("%s does not match its seal: it is made again", path);
        unlink(path);
        return false;
    }
    ((char *)(uintptr_t)whole.data)[whole.len - TRAILER] = '\0'; /* our own copy */
    *out = (struct text){whole.data, whole.len - TRAILER};
    return true;
}
