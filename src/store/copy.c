/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy.c - copy runs between stores of any engine, and check a store for damage.
 *
 * Rows are copied unchanged, column by column, so that a report of the copy equals that of the
 * original, byte for byte. Rows identified by a number get a new one in the target, and references
 * to them are adjusted. A run that already exists there is left alone.
 *
 * Invariants
 * 1. A run is copied in one transaction: completely or not at all.
 * 2. tables[] names every table of the schema, in an order in which references point backwards
 *    (a test compares it with the schema).
 */
#include "store/copy.h"
#include "base/buf.h"
#include "base/hash.h"
#include "store/read.h"

#include <string.h>

enum { COLUMNS_MAX = 40, SQL_BYTES = 8192 };

/* Tables whose rows have numbers that others refer to. */
enum numbered { NUMBERED_TASK, NUMBERED_CANDIDATE, NUMBERED_CALL, NUMBERED_COUNT, NUMBERED_NONE };

enum extent { OF_STORE, OF_RUN, OF_CALL, OF_QUEUE };

static const struct store_table {
    const char *name;
    enum extent extent;        /* OF_QUEUE: not copied, since it describes the present */
    enum numbered id;          /* the kind of number its rows have */
    const char *refer[2];      /* columns that refer to numbered rows ... */
    enum numbered refer_to[2]; /* ... of these */
} tables[] = {
    {"blobs", OF_STORE, NUMBERED_NONE, {0}, {0}},
    {"tasks", OF_STORE, NUMBERED_TASK, {0}, {0}},
    {"suites", OF_STORE, NUMBERED_NONE, {0}, {0}},
    {"suite_tasks", OF_STORE, NUMBERED_NONE, {0}, {0}},
    {"runs", OF_RUN, NUMBERED_NONE, {"task"}, {NUMBERED_TASK}},
    {"candidates", OF_RUN, NUMBERED_CANDIDATE, {"parent"}, {NUMBERED_CANDIDATE}},
    {"attempts", OF_RUN, NUMBERED_NONE, {"candidate"}, {NUMBERED_CANDIDATE}},
    {"verdicts", OF_RUN, NUMBERED_NONE, {0}, {0}},
    {"findings", OF_RUN, NUMBERED_NONE, {0}, {0}},
    {"builds", OF_RUN, NUMBERED_NONE, {0}, {0}},
    {"tests", OF_RUN, NUMBERED_NONE, {0}, {0}},
    {"measurements", OF_RUN, NUMBERED_NONE, {0}, {0}},
    {"baselines", OF_RUN, NUMBERED_NONE, {0}, {0}},
    {"profiles", OF_RUN, NUMBERED_NONE, {0}, {0}},
    {"acceptances", OF_RUN, NUMBERED_NONE, {0}, {0}},
    {"shapes", OF_RUN, NUMBERED_NONE, {0}, {0}},
    {"calls", OF_RUN, NUMBERED_CALL, {0}, {0}},
    {"messages", OF_CALL, NUMBERED_NONE, {"call"}, {NUMBERED_CALL}},
    {"events", OF_RUN, NUMBERED_NONE, {0}, {0}},
    {"exports", OF_RUN, NUMBERED_NONE, {0}, {0}},
    {"budgets", OF_STORE, NUMBERED_NONE, {0}, {0}},
    {"workers", OF_QUEUE, NUMBERED_NONE, {0}, {0}},
    {"jobs", OF_QUEUE, NUMBERED_NONE, {0}, {0}},
    {"kernels", OF_QUEUE, NUMBERED_NONE, {0}, {0}}, /* a cache */
};

const char *store_table_name(size_t i)
{
    return i < ARRAY_LEN(tables) ? tables[i].name : NULL;
}

/* Old numbers, ascending, with their new ones, for binary search. */
struct numbers {
    int64_t *from, *to;
    size_t count, room;
};

struct copying {
    struct store *from, *to;
    struct arena *a; /* SQL texts: they identify prepared statements, so they must stay */
    struct numbers numbers[NUMBERED_COUNT];
};

static void numbers_add(struct numbers *n, int64_t from, int64_t to)
{
    size_t at = n->count;

    if (n->count == n->room) {
        n->room = n->room ? 2 * n->room : 256;
        n->from = xrealloc(n->from, n->room * sizeof(*n->from));
        n->to = xrealloc(n->to, n->room * sizeof(*n->to));
    }
    for (; at > 0 && n->from[at - 1] > from; at--) { /* numbers of concurrent runs interleave */
        n->from[at] = n->from[at - 1];
        n->to[at] = n->to[at - 1];
    }
    n->from[at] = from;
    n->to[at] = to;
    n->count++;
}

static bool numbers_find(const struct numbers *n, int64_t from, int64_t *to)
{
    size_t low = 0, high = n->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (n->from[middle] < from)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == n->count || n->from[low] != from)
        return false;
    *to = n->to[low];
    return true;
}

/* ---- one row ----------------------------------------------------------------- */

struct copied_row {
    const char *names[COLUMNS_MAX];
    struct sql_value values[COLUMNS_MAX];
    int count;
    int64_t id; /* its number in the source store */
};

/* Does nothing refer to the numbers of this table's rows? */
static bool has_loose_number(const struct store_table *t)
{
    return !strcmp(t->name, "events") || !strcmp(t->name, "exports");
}

/* Does the target assign this column's number? */
static bool is_own_number(const struct store_table *t, const char *column)
{
    return !strcmp(column, "rowid") ||
           (!strcmp(column, "id") && (t->id != NUMBERED_NONE || has_loose_number(t)));
}

static bool follow(const struct copying *c, const struct store_table *t, const char *column,
                   struct sql_value *v, struct error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(t->refer) && t->refer[i]; i++) {
        if (strcmp(t->refer[i], column) != 0 || v->null)
            continue;
        if (!numbers_find(&c->numbers[t->refer_to[i]], v->integer, &v->integer))
            return error_set(err, ERROR_MACHINE, "%s: %s.%s refers to a row that is not there",
                             c->from->path, t->name, column);
    }
    return true;
}

static bool row_take(const struct copying *c, const struct store_table *t, const struct query *q,
                     struct copied_row *row, struct error *err)
{
    int columns = q->store->engine->columns(q);

    row->count = 0;
    for (int i = 0; i < columns; i++) {
        struct sql_value v = {.type = q->store->engine->type(q, i), .null = col_null(q, i)};
        const char *name = col_title(q, i);

        if (is_own_number(t, name)) {
            if (!strcmp(name, "id"))
                row->id = col_long(q, i);
            continue;
        }
        if (row->count == COLUMNS_MAX)
            BUG("table %s has more than %d columns", t->name, COLUMNS_MAX);
        if (v.type == 'l')
            v.integer = col_long(q, i);
        else if (v.type == 'd')
            v.real = col_double(q, i);
        else
            v.text = col_bytes(q, i);
        if (!follow(c, t, name, &v, err))
            return false;
        row->names[row->count] = name;
        row->values[row->count++] = v;
    }
    return true;
}

static const char *insert_text(struct copying *c, const struct store_table *t,
                               const struct copied_row *row)
{
    struct buf b = buf_init(SQL_BYTES);
    const char *text;

    buf_printf(&b, "INSERT INTO %s (", t->name);
    for (int i = 0; i < row->count; i++)
        buf_printf(&b, "%s%s", i ? ", " : "", row->names[i]);
    buf_puts(&b, ") VALUES (");
    for (int i = 0; i < row->count; i++)
        buf_puts(&b, i ? ", ?" : "?");
    buf_puts(&b, t->id != NUMBERED_NONE ? ") RETURNING id" : ") ON CONFLICT DO NOTHING");
    text = arena_strndup(c->a, b.data, b.len);
    buf_release(&b);
    return text;
}

static bool row_put(struct copying *c, const struct store_table *t, const char *sql,
                    const struct copied_row *row, struct error *err)
{
    struct query q = {.store = c->to};
    int64_t id = 0;

    if (!query_begin(&q, sql, row->values, row->count, err))
        return false;
    while (sql_next(&q, err))
        if (t->id != NUMBERED_NONE)
            id = col_long(&q, 0);
    if (!sql_done(&q))
        return false;
    if (t->id != NUMBERED_NONE)
        numbers_add(&c->numbers[t->id], row->id, id);
    return true;
}

/* ---- a table ------------------------------------------------------------------- */

/* An identical task description is one row in the target, too. */
static bool task_known(struct copying *c, const struct copied_row *row, bool *known,
                       struct error *err)
{
    static const char *const by[] = {"path", "source", "description", "name"};
    struct sql_value values[ARRAY_LEN(by)];
    struct query q = {.store = c->to};

    for (size_t k = 0; k < ARRAY_LEN(by); k++)
        for (int i = 0; i < row->count; i++)
            if (!strcmp(row->names[i], by[k]))
                values[k] = row->values[i];
    *known = false;
    if (!query_begin(&q,
                     "SELECT id FROM tasks WHERE path = ? AND source = ? "
                     "AND description = ? AND name = ?",
                     values, ARRAY_LEN(by), err))
        return false;
    if (sql_next(&q, err)) {
        numbers_add(&c->numbers[NUMBERED_TASK], row->id, col_long(&q, 0));
        *known = true;
    }
    return sql_done(&q);
}

static bool rows_put(struct copying *c, const struct store_table *t, struct query *q,
                     struct error *err)
{
    const char *sql = NULL;
    struct copied_row row;
    bool known = false, ok = true;

    while (ok && sql_next(q, err)) {
        ok = row_take(c, t, q, &row, err) &&
             (t->id != NUMBERED_TASK || task_known(c, &row, &known, err));
        if (ok && !sql)
            sql = insert_text(c, t, &row);
        ok = ok && (known || row_put(c, t, sql, &row, err));
    }
    return ok;
}

static const char *select_text(struct copying *c, const struct store_table *t)
{
    bool numbered = t->id != NUMBERED_NONE || has_loose_number(t);
    const char *order = numbered ? "id" : "rowid";

    if (t->extent == OF_RUN)
        return arena_printf(c->a, "SELECT * FROM %s WHERE %s = ? ORDER BY %s", t->name,
                            strcmp(t->name, "runs") ? "run" : "id", order);
    if (t->extent == OF_CALL)
        return arena_printf(c->a,
                            "SELECT * FROM %s WHERE call IN (SELECT id FROM calls WHERE run = ?) "
                            "ORDER BY call, number",
                            t->name);
    return arena_printf(c->a, "SELECT * FROM %s ORDER BY %s", t->name, order);
}

static bool table_copy(struct copying *c, const struct store_table *t, const char *select,
                       const char *run, struct error *err)
{
    struct query q;
    bool ok = run ? sql_query(c->from, &q, err, select, "t", run)
                  : sql_query(c->from, &q, err, select, "");

    if (!ok)
        return false;
    ok = rows_put(c, t, &q, err);
    return sql_done(&q) && ok;
}

/* ---- a store -------------------------------------------------------------------- */

static bool run_copy(struct copying *c, const char *const *selects, const char *run, bool *new,
                     struct error *err)
{
    int64_t there;
    bool ok = true;

    if (!sql_int(c->to, 0, &there, err, "SELECT count(*) FROM runs WHERE id = ?", "t", run))
        return false;
    *new = !there;
    if (there)
        return true;
    if (!sql_begin(c->to, err))
        return false;
    for (size_t i = 0; ok && i < ARRAY_LEN(tables); i++)
        if (tables[i].extent == OF_RUN || tables[i].extent == OF_CALL)
            ok = table_copy(c, &tables[i], selects[i], run, err);
    return sql_end(c->to, ok, err) || error_add(err, "copying run %s", run);
}

static bool runs_copy(struct copying *c, const char *const *selects, struct store_copied *done,
                      struct error *err)
{
    struct query q;
    bool ok = true, new;

    if (!sql_query(c->from, &q, err, "SELECT id FROM runs ORDER BY rowid", ""))
        return false;
    while (ok && sql_next(&q, err)) {
        const char *run = col_text(&q, 0, c->a);

        ok = run_copy(c, selects, run, &new, err);
        done->runs += ok && new;
        done->known += ok && !new;
    }
    return sql_done(&q) && ok;
}

static bool whole_copy(struct copying *c, struct store_copied *done, struct error *err)
{
    const char *selects[ARRAY_LEN(tables)];
    bool ok = sql_begin(c->to, err);

    for (size_t i = 0; i < ARRAY_LEN(tables); i++)
        selects[i] = select_text(c, &tables[i]);
    if (!ok)
        return false;
    for (size_t i = 0; ok && i < ARRAY_LEN(tables); i++)
        if (tables[i].extent == OF_STORE)
            ok = table_copy(c, &tables[i], selects[i], NULL, err);
    return sql_end(c->to, ok, err) && runs_copy(c, selects, done, err);
}

bool store_copy(struct store *from, struct store *to, struct store_copied *done, struct error *err)
{
    struct copying c = {.from = from, .to = to, .a = arena_new()};
    bool ok;

    *done = (struct store_copied){0};
    ok = read_begin(from, err) && read_end(from, whole_copy(&c, done, err));
    for (size_t i = 0; i < NUMBERED_COUNT; i++) {
        xfree(c.numbers[i].from);
        xfree(c.numbers[i].to);
    }
    arena_free(c.a);
    return ok || error_add(err, "copying %s to %s", from->path, to->path);
}

/* ---- checking ----------------------------------------------------------- */

/* Finds rows with dangling references; PostgreSQL always refuses them, SQLite only if enabled. */
static const char *const dangling[] = {
    "SELECT 'task ' || t.id FROM tasks t LEFT JOIN blobs b ON b.sha256 = t.source "
    "LEFT JOIN blobs d ON d.sha256 = t.description WHERE b.size IS NULL OR d.size IS NULL",
    "SELECT 'run ' || r.id FROM runs r LEFT JOIN tasks t ON t.id = r.task WHERE t.id IS NULL",
    "SELECT 'candidate ' || c.id FROM candidates c LEFT JOIN blobs b ON b.sha256 = c.source "
    "LEFT JOIN runs r ON r.id = c.run WHERE b.size IS NULL OR r.id IS NULL",
    "SELECT 'attempt ' || a.number || ' of ' || a.run FROM attempts a "
    "LEFT JOIN candidates c ON c.id = a.candidate LEFT JOIN runs r ON r.id = a.run "
    "WHERE c.id IS NULL OR r.id IS NULL",
    "SELECT 'verdict of attempt ' || v.attempt || ' of ' || v.run FROM verdicts v "
    "LEFT JOIN attempts a ON a.run = v.run AND a.number = v.attempt WHERE a.number IS NULL",
    "SELECT 'end of attempt ' || a.number || ' of ' || a.run FROM attempts a "
    "LEFT JOIN verdicts v ON a.run = v.run AND a.number = v.attempt "
    "WHERE a.ended_ms IS NOT NULL AND v.kind IS NULL",
    "SELECT 'call ' || c.id FROM calls c LEFT JOIN blobs b ON b.sha256 = c.reply "
    "LEFT JOIN runs r ON r.id = c.run WHERE b.size IS NULL OR r.id IS NULL",
    "SELECT 'message of call ' || m.call FROM messages m LEFT JOIN calls c ON c.id = m.call "
    "LEFT JOIN blobs b ON b.sha256 = m.content WHERE c.id IS NULL OR b.size IS NULL",
};

static void remember(struct store_faults *f, struct arena *a, const char *what)
{
    if (f->count < ARRAY_LEN(f->first))
        f->first[f->count] = arena_strdup(a, what);
    f->count++;
}

static bool check_texts(struct store *s, struct arena *a, struct store_faults *f, struct error *err)
{
    struct query q;

    if (!sql_query(s, &q, err, "SELECT sha256, data FROM blobs", ""))
        return false;
    while (sql_next(&q, err)) {
        char sha256[65];
        struct text name = col_bytes(&q, 0);

        hash_text(col_bytes(&q, 1), sha256);
        f->texts++;
        if (name.len != 64 || memcmp(name.data, sha256, 64) != 0)
            remember(
                f, a,
                arena_printf(a, "text %.*s is not what its name says", (int)name.len, name.data));
    }
    return sql_done(&q);
}

bool store_check(struct store *s, struct arena *a, struct store_faults *out, struct error *err)
{
    struct query q;
    bool ok;

    *out = (struct store_faults){0};
    if (!read_begin(s, err))
        return false;
    ok = check_texts(s, a, out, err) &&
         sql_int(s, 0, &out->runs, err, "SELECT count(*) FROM runs", "");
    for (size_t i = 0; ok && i < ARRAY_LEN(dangling); i++) {
        ok = sql_query(s, &q, err, dangling[i], "");
        while (ok && sql_next(&q, err))
            remember(out, a, arena_printf(a, "%s refers to what is not there", col_text(&q, 0, a)));
        ok = ok && sql_done(&q);
    }
    return read_end(s, ok) || error_add(err, "checking %s", s->path);
}
