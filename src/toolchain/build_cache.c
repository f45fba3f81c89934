/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build_cache.c - a cache of builds, keyed by the hash of all their inputs.
 *
 * Invariants
 * 1. An entry is written into a folder of its own and renamed into place; the loser of a race
 *    discards its copy.
 * 2. An entry is also removed by one rename, which a reader notices.
 * 3. An entry's modification time is its last use.
 * 4. Every file is sealed (base/seal.h) and returned as a copy of the checked bytes.
 */
#include "toolchain/build_cache.h"

#include "base/buf.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/seal.h"
#include "base/shared.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    FILE_LIMIT = 256 << 20,
    HEADER_LIMIT = 1 << 20,
    LIST_LIMIT = 4096,
    KEY_LEN = 64,
    LINE_LIMIT = 96
};

static const char list_file[] = "entry"; /* lists the others, so that a missing one is noticed */

static char *entry_dir(const char *key, struct arena *a)
{
    struct error ignored = {0};
    char *root = NULL;
    return home_cache("sealed", a, &root, &ignored) ? path_join(a, root, key) : NULL;
}

/* The seal's name of a file, so that it cannot replace another file or that of another
 * key. */
static const char *seal_name(const char *key, const char *file, struct arena *a)
{
    return arena_printf(a, "build/%s/%s", key, file);
}

static bool listed(struct text list, const char *file)
{
    size_t len = strlen(file);
    const char *at = list.data;

    while ((at = strstr(at, file)) != NULL) {
        if ((at == list.data || at[-1] == '\n') && at[len] == '\n')
            return true;
        at += len;
    }
    return false;
}

/* Copies one file, so that overwriting the copy never affects the cache. */
static bool bring(const char *entry, const char *key, const char *file, const char *dir,
                  struct arena *a)
{
    struct error ignored = {0};
    struct text data;
    return seal_load(path_join(a, entry, file), seal_name(key, file, a), FILE_LIMIT, a, &data) &&
           file_write(path_join(a, dir, file), data, &ignored);
}

/* Renames first, so that the entry vanishes at once however long the removal takes. */
static void drop(const char *entry, struct arena *a)
{
    struct error ignored = {0};
    char *away = arena_printf(a, "%s.gone.%d", entry, (int)getpid());
    if (rename(entry, away) == 0)
        dir_remove(away, &ignored);
}

bool build_cache_fetch(const char *key, const char *dir, const char *const *files, size_t count,
                       struct arena *a)
{
    char *entry = entry_dir(key, a);
    struct stat before, after;
    struct text list;
    bool whole;
    if (entry == NULL || stat(entry, &before) != 0)
        return false;
    whole = seal_load(path_join(a, entry, list_file), seal_name(key, list_file, a), LIST_LIMIT, a,
                      &list);
    for (size_t i = 0; i < count && whole; i++)
        whole = !listed(list, files[i]) || bring(entry, key, files[i], dir, a);
    /* The entry was dropped meanwhile, so some files may be missing. */
    if (stat(entry, &after) != 0 || before.st_ino != after.st_ino)
        return false;
    if (whole)
        utimensat(AT_FDCWD, entry, NULL, 0);
    else
        drop(entry, a); /* of an older version, damaged, or not written by us */
    return whole;
}

void build_cache_keep(const char *key, const char *dir, const char *const *files, size_t count,
                      struct arena *a)
{
    struct error ignored = {0};
    char *entry = entry_dir(key, a);
    char *temp = entry ? arena_printf(a, "%s.%d.XXXXXX", entry, (int)getpid()) : NULL;
    struct buf list = buf_init(LIST_LIMIT);
    bool whole = true;
    if (temp == NULL || mkdtemp(temp) == NULL)
        return;
    for (size_t i = 0; i < count && whole; i++) {
        char *from = path_join(a, dir, files[i]);
        struct text data;
        if (!file_exists(from))
            continue;
        buf_printf(&list, "%s\n", files[i]);
        whole =
            file_read(from, FILE_LIMIT, a, &data, &ignored) &&
            seal_save(path_join(a, temp, files[i]), seal_name(key, files[i], a), data, &ignored);
    }
    whole = whole && seal_save(path_join(a, temp, list_file), seal_name(key, list_file, a),
                               buf_text(&list), &ignored);
    if (!whole || rename(temp, entry) != 0)
        dir_remove(temp, &ignored);
    buf_release(&list);
}

/* ---- shared by machines ------------------------------------------------------- */

/*
 * An entry as one text: its key in the first line, then each file as a line "NAME BYTES" and its
 * bytes. Only names that the reader expects are written. It was made by another machine's builder,
 * which is trusted no more than our own: its code runs confined and is judged.
 */
static const char packed_magic[] = "cutegen kernel 1 ";

static bool pack(const char *key, const char *dir, const char *const *files, size_t count,
                 struct buf *out, struct arena *a)
{
    struct error ignored = {0};

    buf_printf(out, "%s%s\n", packed_magic, key);
    for (size_t i = 0; i < count; i++) {
        char *from = path_join(a, dir, files[i]);
        struct text data;

        if (!file_exists(from))
            continue;
        if (!file_read(from, FILE_LIMIT, a, &data, &ignored))
            return false;
        buf_printf(out, "%s %zu\n", files[i], data.len);
        buf_add(out, data.data, data.len);
    }
    return !out->overflowed;
}

static bool wanted(const char *name, const char *const *files, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(files[i], name))
            return true;
    return false;
}

static bool unpack(const char *key, struct text data, const char *dir, const char *const *files,
                   size_t count, struct arena *a)
{
    const char *head = arena_printf(a, "%s%s\n", packed_magic, key);
    const char *at = data.data + strlen(head), *end = data.data + data.len;
    struct error ignored = {0};

    if (data.len < strlen(head) || memcmp(data.data, head, strlen(head)) != 0)
        return false;
    while (at < end) {
        const char *line = memchr(at, '\n', (size_t)(end - at));
        size_t bytes;
        char name[64];

        if (!line || line - at > LINE_LIMIT ||
            sscanf(arena_strndup(a, at, (size_t)(line - at)), "%63s %zu", name, &bytes) != 2 ||
            bytes > (size_t)(end - line - 1) || !wanted(name, files, count) ||
            !file_write(path_join(a, dir, name), (struct text){line + 1, bytes}, &ignored))
            return false;
        at = line + 1 + bytes;
    }
    return true;
}

static void offer(const struct shared_files *share, const char *key, const char *dir,
                  const char *const *files, size_t count, struct arena *a)
{
    struct buf packed = buf_init(FILE_LIMIT);

    if (pack(key, dir, files, count, &packed, a))
        share->put(share->ctx, key, buf_text(&packed));
    buf_release(&packed);
}

bool build_cache_find(const struct shared_files *share, const char *key, const char *dir,
                      const char *const *files, size_t count, struct arena *a)
{
    struct text data;

    if (build_cache_fetch(key, dir, files, count, a)) {
        if (share && share->offer)
            offer(share, key, dir, files, count, a);
        return true;
    }
    if (!share || !share->get(share->ctx, key, a, &data) ||
        !unpack(key, data, dir, files, count, a))
        return false;
    build_cache_keep(key, dir, files, count, a);
    return true;
}

void build_cache_add(const struct shared_files *share, const char *key, const char *dir,
                     const char *const *files, size_t count, struct arena *a)
{
    build_cache_keep(key, dir, files, count, a);
    if (share)
        offer(share, key, dir, files, count, a);
}

/* ---- keys and age --------------------------------------------------------------- */

bool build_cache_headers(const char *kernel_include, struct arena *a, char hex[65],
                         struct error *err)
{
    static const char *const names[] = {"kernel.h", "plan.h", "export.h", "arith.h"};
    struct hash h = hash_init();
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct text text;
        char *path = arena_printf(a, "%s/cutegen/%s", kernel_include, names[i]);
        if (!file_read(path, HEADER_LIMIT, a, &text, err))
            return false;
        hash_add_text(&h, text);
    }
    hash_hex(&h, hex);
    return true;
}

/* Adds the files of a folder and of those below, in the order of their names. */
static void add_tree(struct hash *h, const char *dir, int depth, struct arena *a)
{
    struct dirent **names = NULL;
    int count = depth > 0 ? scandir(dir, &names, NULL, alphasort) : 0;

    for (int i = 0; i < count; i++) {
        const char *name = names[i]->d_name, *path = path_join(a, dir, name);
        struct stat st;

        if (*name != '.' && lstat(path, &st) == 0) {
            hash_add_text(h, text_of(name));
            if (S_ISDIR(st.st_mode))
                add_tree(h, path, depth - 1, a);
            else
                hash_add_text(h, text_of(arena_printf(a, "%lld", (long long)st.st_size)));
        }
        free(names[i]);
    }
    free(names);
}

void build_cache_library(const char *include, const char *const folders[2], char hex[65])
{
    enum { DEEPEST = 12 };
    struct arena *scratch = arena_new();
    struct hash h = hash_init();

    for (int i = 0; include != NULL && i < 2; i++)
        add_tree(&h, path_join(scratch, include, folders[i]), DEEPEST, scratch);
    hash_hex(&h, hex);
    arena_free(scratch);
}

struct aged {
    time_t used;
    char *path;
};

static int by_age(const void *x, const void *y)
{
    const struct aged *a = x, *b = y;
    return a->used < b->used ? -1 : a->used > b->used;
}

void build_cache_prune(size_t limit, struct arena *a)
{
    struct error ignored = {0};
    char *root = NULL;
    DIR *d = home_cache("sealed", a, &root, &ignored) ? opendir(root) : NULL;
    struct aged *all = NULL;
    size_t count = 0, cap = 0;
    struct dirent *e;
    if (d == NULL)
        return;
    while ((e = readdir(d)) != NULL) {
        struct stat st;
        char *path = path_join(a, root, e->d_name);
        if (strlen(e->d_name) < KEY_LEN || stat(path, &st) != 0)
            continue;
        if (count == cap) {
            cap = cap ? 2 * cap : 256;
            all = xrealloc(all, cap * sizeof *all);
        }
        all[count++] = (struct aged){st.st_mtime, path};
    }
    closedir(d);
    if (count > limit) {
        qsort(all, count, sizeof *all, by_age);
        for (size_t i = 0; i < count - limit; i++)
            drop(all[i].path, a);
    }
    xfree(all);
}
