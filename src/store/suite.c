/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suite.c - a suite: its tasks, its flags, and how each task ended.
 *
 * Results belong to the runs; a suite only stores tasks without a run (those that do not load) and
 * how long each took.
 */
#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "store/read.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STEM_MAX = 40, NUMBERS_MAX = 10000 };

/* DATE-suite-STEM-, in characters that never need quoting. */
static char *name_stem(const char *source, struct arena *a)
{
    const char *base = path_base(source);
    char date[11], stem[STEM_MAX + 1];
    size_t n = 0;

    clock_date(clock_unix_ms(), date);
    for (; *base && *base != '.' && n < STEM_MAX; base++) {
        unsigned char c = (unsigned char)*base;

        stem[n++] = c < 128 && (isalnum(c) || c == '_') ? (char)tolower(c) : '-';
    }
    stem[n] = '\0';
    return arena_printf(a, "%s-suite-%s-", date, n ? stem : "tasks");
}

static bool make_folder(struct store *s, const char *source, struct arena *a, const char **name,
                        struct error *err)
{
    const char *stem = name_stem(source, a);

    for (int i = 1; i <= NUMBERS_MAX; i++) {
        char *one = arena_printf(a, "%s%d", stem, i);
        int64_t taken;

        if (!sql_int(s, 0, &taken, err, "SELECT count(*) FROM suites WHERE name = ?", "t", one))
            return false;
        if (taken)
            continue;
        if (mkdir(path_join(a, s->dir, one), 0755) == 0) {
            *name = one;
            return true;
        }
        if (errno != EEXIST)
            break;
    }
    return error_set(err, ERROR_MACHINE, "cannot make a folder for the suite in %s: %s", s->dir,
                     strerror(errno));
}

static bool insert_all(struct store *s, const char *name, const char *source,
                       const char *const *paths, size_t count, const json_t *flags,
                       struct error *err)
{
    char *text = json_text(flags);
    struct arena *a = arena_new();
    const char *owner;
    bool ok = store_owner(s, NULL, a, &owner, err) &&
              sql_run(s, err,
                      "INSERT INTO suites (name, source, flags, started_ms, owner) "
                      "VALUES (?, ?, ?, ?, ?)",
                      "tttlt", name, source, text ? text : "[]", clock_unix_ms(), owner);

    arena_free(a);
    xfree(text);
    for (size_t i = 0; ok && i < count; i++)
        ok = sql_run(s, err, "INSERT INTO suite_tasks (suite, number, path) VALUES (?, ?, ?)",
                     "tit", name, (int)i, paths[i]);
    return ok;
}

bool suite_create(struct store *s, const char *source, const char *const *paths, size_t count,
                  const json_t *flags, struct arena *a, const char **name, struct error *err)
{
    return (sql_begin(s, err) &&
            sql_end(s,
                    s->engine->alone(s, err) && make_folder(s, source, a, name, err) &&
                        insert_all(s, *name, source, paths, count, flags, err),
                    err)) ||
           error_add(err, "starting a suite of %s", source);
}

/* As run ids are found (list.c). */
#define BEGINS_SO "name >= ?1 AND name < ?1 || '~'"

bool suite_find(struct store *s, const char *name, struct arena *a, const char **found,
                struct error *err)
{
    const char *one = NULL;
    int64_t matches = 0;

    if (!strcmp(name, "last")) {
        if (!sql_first_text(s, a, &one, err,
                            "SELECT name FROM suites ORDER BY started_ms DESC, rowid DESC LIMIT 1",
                            NULL))
            return false;
    } else if (!sql_first_text(s, a, &one, err, "SELECT name FROM suites WHERE name = ?1", name)) {
        return false;
    } else if (!one) {
        if (!sql_first_text(s, a, &one, err, "SELECT name FROM suites WHERE " BEGINS_SO " LIMIT 1",
                            name) ||
            !sql_int(s, 0, &matches, err, "SELECT count(*) FROM suites WHERE " BEGINS_SO, "t",
                     name))
            return false;
    }
    if (one && matches <= 1 && *name) {
        *found = one;
        return true;
    }
    error_set(err, ERROR_USE, "%s in %s begins with \"%s\"",
              matches > 1 ? "more than one suite" : "no suite", s->dir, name);
    return error_hint(err, "`cutegen runs` shows suites in their runs; \"last\" is the newest");
}

static bool read_head(struct store *s, const char *name, struct arena *a, struct suite_record *out,
                      struct error *err)
{
    struct query q;
    json_error_t ignored;
    json_t *flags = NULL;
    bool found = false;

    if (!sql_query(s, &q, err,
                   "SELECT name, source, CASE WHEN length(flags) <= 65536 THEN flags "
                   "ELSE '[\"--flags-too-long\"]' END, started_ms FROM suites WHERE name = ?",
                   "t", name))
        return false;
    if (sql_next(&q, err)) {
        found = true;
        out->name = col_text(&q, 0, a);
        out->source = col_text(&q, 1, a);
        flags = json_loads(col_text(&q, 2, a), 0, &ignored);
        out->started_ms = col_long(&q, 3);
    }
    if (!sql_done(&q))
        return false;
    if (!found)
        return error_set(err, ERROR_USE, "there is no suite %s in %s", name, s->dir);
    out->flags = arena_array(a, json_array_size(flags) + 1, sizeof(*out->flags));
    for (size_t i = 0; i < json_array_size(flags); i++) {
        const char *flag = json_string_value(json_array_get(flags, i));

        /* untrusted: any client of the store may have written it */
        out->flags[i] = arena_strdup(a, flag ? flag : "");
    }
    json_decref(flags);
    return true;
}

static const char *stem_of(const char *path, struct arena *a)
{
    const char *base = path_base(path), *dot = strrchr(base, '.');

    return arena_strndup(a, base, dot ? (size_t)(dot - base) : strlen(base));
}

/* By id, which has an index on both engines; a rowid has none on a server. */
#define TASK_COLUMNS                                                                               \
    "SELECT substr(t.path, 1, 5000), t.ended, substr(t.problem, 1, 4000), t.wall_ms, r.id, "       \
    "coalesce(r.state, 'failed'), t.retries "                                                      \
    "FROM suite_tasks t LEFT JOIN runs r ON r.id = "                                               \
    "  (SELECT x.id FROM runs x JOIN tasks y ON y.id = x.task "                                    \
    "   WHERE x.suite = t.suite AND y.path = t.path "                                              \
    "   ORDER BY x.started_ms DESC, x.rowid DESC LIMIT 1) "

static bool fill_suite_task(struct query *q, struct arena *a, struct suite_task *t,
                            struct error *err)
{
    int state;

    t->path = col_text(q, 0, a);
    t->name = stem_of(t->path, a);
    t->ended = col_int(q, 1) != 0;
    t->problem = col_text(q, 2, a);
    t->wall_ms = col_long(q, 3);
    t->run = col_text(q, 4, a);
    t->retries = col_int(q, 6);
    if (!col_name(q, 5, run_state_names, RUN_STATE_COUNT, &state, err))
        return false;
    t->state = (enum run_state)state;
    return true;
}

static bool read_tasks(struct store *s, struct arena *a, struct suite_record *out,
                       struct error *err)
{
    struct query q;
    int64_t count;
    bool ok = true;

    if (!sql_int(s, 0, &count, err, "SELECT count(*) FROM suite_tasks WHERE suite = ?", "t",
                 out->name) ||
        !sql_query(s, &q, err, TASK_COLUMNS "WHERE t.suite = ? ORDER BY t.number", "t", out->name))
        return false;
    out->tasks = arena_array(a, (size_t)count + 1, sizeof(*out->tasks));
    while (ok && out->count < (size_t)count && sql_next(&q, err))
        ok = fill_suite_task(&q, a, &out->tasks[out->count++], err);
    return sql_done(&q) && ok;
}

static bool read_one_task(struct store *s, int number, struct arena *a, struct suite_record *out,
                          struct error *err)
{
    struct query q;
    bool ok = true;

    if (!sql_query(s, &q, err, TASK_COLUMNS "WHERE t.suite = ? AND t.number = ?", "ti", out->name,
                   number))
        return false;
    out->tasks = arena_array(a, 1, sizeof(*out->tasks));
    if (sql_next(&q, err))
        ok = fill_suite_task(&q, a, &out->tasks[out->count++], err);
    if (!sql_done(&q) || !ok)
        return false;
    return out->count == 1 ||
           error_set(err, ERROR_MACHINE, "suite %s has no task %d", out->name, number);
}

bool suite_read_task(struct store *s, const char *name, int number, struct arena *a,
                     struct suite_record *out, struct error *err)
{
    *out = (struct suite_record){0};
    if (!read_begin(s, err))
        return false;
    return read_end(s, read_head(s, name, a, out, err) && read_one_task(s, number, a, out, err));
}

bool suite_read(struct store *s, const char *name, struct arena *a, struct suite_record *out,
                struct error *err)
{
    *out = (struct suite_record){0};
    if (!read_begin(s, err))
        return false;
    return read_end(s, read_head(s, name, a, out, err) && read_tasks(s, a, out, err));
}

bool suite_task_set(struct store *s, const char *name, size_t number, bool ended,
                    const char *problem, int64_t wall_ms, struct error *err)
{
    return (sql_begin(s, err) &&
            sql_end(s,
                    sql_run(s, err,
                            "UPDATE suite_tasks SET ended = ?, problem = ?, wall_ms = wall_ms + ? "
                            "WHERE suite = ? AND number = ?",
                            "itlti", (int)ended, problem ? problem : "", wall_ms, name,
                            (int)number),
                    err)) ||
           error_add(err, "storing a task of %s", name);
}

bool suite_task_retry(struct store *s, const char *name, size_t number, struct error *err)
{
    return (sql_begin(s, err) && sql_end(s,
                                         sql_run(s, err,
                                                 "UPDATE suite_tasks SET retries = retries + 1 "
                                                 "WHERE suite = ? AND number = ?",
                                                 "ti", name, (int)number),
                                         err)) ||
           error_add(err, "storing a retry of %s", name);
}

static bool refuse_driven(const char *name, struct error *err)
{
    error_set(err, ERROR_USE, "the suite %s is being driven by another process", name);
    return error_hint(err, "wait for it, or end that process");
}

/* On a server the right belongs to the connection, and there is no descriptor. */
static bool right_take(struct store *s, const char *name, struct error *err)
{
    char who[64];
    bool held;

    return s->engine->hold(s, name, &held, who, err) && (!held || refuse_driven(name, err));
}

bool suite_lock(struct store *s, const char *name, int *fd, struct error *err)
{
    *fd = -1;
    if (s->engine->hold)
        return right_take(s, name, err);
    struct arena *a = arena_new();
    const char *dir = path_join(a, s->dir, name), *path = path_join(a, dir, "lock");
    bool ok;

    if (!dir_make(dir, err)) {
        arena_free(a);
        return false;
    }
    *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    ok = *fd >= 0 && flock(*fd, LOCK_EX | LOCK_NB) == 0;
    if (!ok && *fd >= 0) {
        refuse_driven(name, err);
        close(*fd);
        *fd = -1;
    } else if (!ok) {
        error_set(err, ERROR_MACHINE, "cannot lock %s: %s", path, strerror(errno));
    }
    arena_free(a);
    return ok;
}
