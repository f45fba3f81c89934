/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suite.c - a suite: which tasks, with which flags, and what became of each.
 *
 * The results are the runs' own; a suite only remembers what has no run (a
 * task that does not load) and how long each took.
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

/* DATE-suite-STEM-, in letters that need no quoting anywhere. */
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
    bool ok =
        sql_run(s, err, "INSERT INTO suites (name, source, flags, started_ms) VALUES (?, ?, ?, ?)",
                "tttl", name, source, text ? text : "[]", clock_unix_ms());

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

bool suite_find(struct store *s, const char *name, struct arena *a, const char **found,
                struct error *err)
{
    bool last = strcmp(name, "last") == 0;
    struct query q;
    int matches = 0;

    if (!sql_query(s, &q, err,
                   "SELECT name FROM suites WHERE ?1 = 1 OR substr(name, 1, length(?2)) = ?2 "
                   "ORDER BY name = ?2 DESC, started_ms DESC, rowid DESC",
                   "it", (int)last, name))
        return false;
    while (sql_next(&q, err)) {
        const char *one = col_text(&q, 0, a);

        if (matches++ == 0)
            *found = one;
        if (last || strcmp(one, name) == 0) {
            matches = 1;
            break;
        }
    }
    if (!sql_done(&q))
        return false;
    if (matches == 1 && *name)
        return true;
    error_set(err, ERROR_USE, "%s in %s begins with \"%s\"",
              matches ? "more than one suite" : "no suite", s->dir, name);
    return error_hint(err, "`cutegen runs` shows suites in their runs; \"last\" is the newest");
}

static bool read_head(struct store *s, const char *name, struct arena *a, struct suite_record *out,
                      struct error *err)
{
    struct query q;
    json_error_t ignored;
    json_t *flags = NULL;
    bool found = false;

    if (!sql_query(s, &q, err, "SELECT name, source, flags, started_ms FROM suites WHERE name = ?",
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
    for (size_t i = 0; i < json_array_size(flags); i++)
        out->flags[i] = arena_strdup(a, json_string_value(json_array_get(flags, i)));
    json_decref(flags);
    return true;
}

static const char *stem_of(const char *path, struct arena *a)
{
    const char *base = path_base(path), *dot = strrchr(base, '.');

    return arena_strndup(a, base, dot ? (size_t)(dot - base) : strlen(base));
}

static bool read_tasks(struct store *s, struct arena *a, struct suite_record *out,
                       struct error *err)
{
    struct query q;
    int64_t count;
    bool ok = true;
    int state;

    if (!sql_int(s, 0, &count, err, "SELECT count(*) FROM suite_tasks WHERE suite = ?", "t",
                 out->name) ||
        !sql_query(
            s, &q, err,
            "SELECT t.path, t.ended, t.problem, t.wall_ms, r.id, coalesce(r.state, 'failed'), "
            "  t.retries"
            " FROM suite_tasks t LEFT JOIN runs r ON r.rowid = "
            "  (SELECT x.rowid FROM runs x JOIN tasks y ON y.id = x.task "
            "   WHERE x.suite = t.suite AND y.path = t.path "
            "   ORDER BY x.started_ms DESC, x.rowid DESC LIMIT 1) "
            "WHERE t.suite = ? ORDER BY t.number",
            "t", out->name))
        return false;
    out->tasks = arena_array(a, (size_t)count + 1, sizeof(*out->tasks));
    while (ok && out->count < (size_t)count && sql_next(&q, err)) {
        struct suite_task *t = &out->tasks[out->count++];

        t->path = col_text(&q, 0, a);
        t->name = stem_of(t->path, a);
        t->ended = col_int(&q, 1) != 0;
        t->problem = col_text(&q, 2, a);
        t->wall_ms = col_long(&q, 3);
        t->run = col_text(&q, 4, a);
        t->retries = col_int(&q, 6);
        ok = col_name(&q, 5, run_state_names, RUN_STATE_COUNT, &state, err);
        t->state = ok ? (enum run_state)state : RUN_FAILED;
    }
    return sql_done(&q) && ok;
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
    const char *path = path_join(a, path_join(a, s->dir, name), "lock");
    bool ok;

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
