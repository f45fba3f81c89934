/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open.c - open and close the store; texts by content.
 *
 * Hides which engine it is: a URL names a server, a folder alone is SQLite's.
 */
#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/vault.h"
#include "store/sql.h"

#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool make_dir(const char *runs_dir, struct error *err)
{
    if (dir_make(runs_dir, err))
        return true;
    error_hint(err, "name a folder that you may write: --runs DIR");
    return error_add(err, "making the folder of runs");
}

/* Tests this with a folder beside it, because another process may be creating the real one. */
bool store_possible(const char *runs_dir, struct error *err)
{
    struct stat st;
    struct arena *a;
    char *beside;
    bool ok;

    if (stat(runs_dir, &st) == 0)
        return S_ISDIR(st.st_mode) || make_dir(runs_dir, err); /* the latter says why not */
    a = arena_new();
    beside = arena_strdup(a, runs_dir);
    for (size_t len = strlen(beside); len > 1 && beside[len - 1] == '/';)
        beside[--len] = '\0';
    beside = arena_printf(a, "%s.try-%ld", beside, (long)getpid());
    ok = make_dir(beside, err);
    if (ok)
        (void)rmdir(beside);
    arena_free(a);
    return ok;
}

bool store_open(const char *runs_dir, const char *url, enum store_mode mode, struct store **out,
                struct error *err)
{
    if (mode != STORE_READ && !make_dir(runs_dir, err))
        return false;
    struct arena *a = arena_new();
    struct store *s = xmalloc(sizeof(*s));
    pthread_mutexattr_t attr;

    s->engine = url && *url ? &postgres_engine : &sqlite_engine;
    s->mode = mode;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&s->turn, &attr);
    pthread_mutexattr_destroy(&attr);
    s->dir = xstrdup(path_absolute(a, runs_dir));
    s->url = url && *url ? xstrdup(url) : NULL;
    arena_free(a);
    if (!s->engine->open(s, err) || !schema_bring_up(s, err)) {
        store_close(s);
        return error_add(err, "opening the store");
    }
    *out = s;
    return true;
}

void store_close(struct store *s)
{
    if (!s)
        return;
    s->engine->close(s);
    pthread_mutex_destroy(&s->turn);
    xfree(s->dir);
    xfree(s->url);
    xfree(s->path);
    xfree(s);
}

int store_version(void)
{
    return schema_version();
}

const char *store_dir(const struct store *s)
{
    return s->dir;
}

static bool one_text(struct store *s, const char *sql, const char *value, struct arena *a,
                     const char **out, struct error *err)
{
    struct query q;
    bool ok = value ? sql_query(s, &q, err, sql, "t", value) : sql_query(s, &q, err, sql, "");

    if (!ok)
        return false;
    if (sql_next(&q, err) && !col_null(&q, 0))
        *out = col_text(&q, 0, a);
    return sql_done(&q);
}

bool store_owner(struct store *s, const char *suite, struct arena *a, const char **out,
                 struct error *err)
{
    const struct passwd *user;

    *out = "";
    if (suite && !one_text(s, "SELECT owner FROM suites WHERE name = ?", suite, a, out, err))
        return false;
    if (**out)
        return true;
    if (s->engine->dialect == DIALECT_POSTGRES)
        return one_text(s, "SELECT CAST(current_user AS TEXT)", NULL, a, out, err);
    user = getpwuid(geteuid());
    *out = user ? arena_strdup(a, user->pw_name) : arena_printf(a, "%d", (int)geteuid());
    return true;
}

/* ---- texts -------------------------------------------------------------- */

bool blob_insert(struct store *s, struct text data, char sha256[65], struct error *err)
{
    struct arena *a = arena_new();
    bool ok;

    data = vault_scrub(data, a);
    hash_text(data, sha256);
    ok = sql_run(s, err,
                 "INSERT INTO blobs (sha256, size, data) VALUES (?, ?, ?) "
                 "ON CONFLICT (sha256) DO NOTHING",
                 "tlb", sha256, (int64_t)data.len, &data);
    arena_free(a);
    return ok;
}

char *json_text(const json_t *v)
{
    if (!v)
        return NULL;
    struct arena *a = arena_new();
    char *s = xstrdup(json_line(v, a));
    arena_free(a);
    return s;
}

/* NULL leaves "" in sha256, which is stored as NULL: see sha_or_null() of write.c. */
bool blob_insert_json(struct store *s, const json_t *v, char sha256[65], struct error *err)
{
    sha256[0] = '\0';
    if (!v)
        return true;
    char *line = json_text(v);
    bool ok = blob_insert(s, text_of(line), sha256, err);
    xfree(line);
    return ok;
}

bool blob_put(struct store *s, struct text data, char sha256[65], struct error *err)
{
    if (!sql_begin(s, err))
        return false;
    return sql_end(s, blob_insert(s, data, sha256, err), err);
}

bool blob_get(struct store *s, const char *sha256, struct arena *a, struct text *out,
              struct error *err)
{
    struct query q;
    bool found = false;

    if (!sql_query(s, &q, err, "SELECT data FROM blobs WHERE sha256 = ?", "t", sha256))
        return false;
    if (sql_next(&q, err)) {
        *out = col_blob(&q, 0, a);
        found = true;
    }
    if (!sql_done(&q))
        return false;
    return found || error_set(err, ERROR_MACHINE, "%s holds no text %.16s...", s->path, sha256);
}
