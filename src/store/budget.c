/* SPDX-License-Identifier: Apache-2.0 */
/*
 * budget.c - a suite's budget as a row, for runs on many machines that share no folder.
 *
 * The content belongs to the caller (llm/budget.c); here it is a text. From begin to end the row is
 * locked, and so is the store for other threads of this process.
 */
#include "base/shared.h"
#include "store/sql.h"

struct budget_row {
    struct store *store;
    const char *suite;
};

static bool read_row(struct budget_row *r, struct arena *a, struct text *text, struct error *err)
{
    struct query q;

    if (!sql_run(r->store, err,
                 "INSERT INTO budgets (suite, state) VALUES (?, '') ON CONFLICT (suite) DO NOTHING",
                 "t", r->suite) ||
        !sql_query(r->store, &q, err,
                   r->store->engine->dialect == DIALECT_POSTGRES
                       ? "SELECT state FROM budgets WHERE suite = ? FOR UPDATE"
                       : "SELECT state FROM budgets WHERE suite = ?",
                   "t", r->suite))
        return false;
    if (sql_next(&q, err))
        *text = text_of(col_text(&q, 0, a));
    return sql_done(&q);
}

static bool row_begin(void *ctx, struct arena *a, struct text *text, struct error *err)
{
    struct budget_row *r = ctx;

    *text = text_of("");
    if (!sql_begin(r->store, err))
        return false;
    if (read_row(r, a, text, err))
        return true;
    sql_end(r->store, false, err);
    return error_add(err, "reading the budget of %s", r->suite);
}

static bool row_end(void *ctx, const char *changed, struct error *err)
{
    struct budget_row *r = ctx;
    bool ok = !changed || sql_run(r->store, err, "UPDATE budgets SET state = ? WHERE suite = ?",
                                  "tt", changed, r->suite);

    return sql_end(r->store, ok, err) || error_add(err, "storing the budget of %s", r->suite);
}

const struct shared_text *suite_budget(struct store *s, const char *suite, const char *owner,
                                       struct arena *a)
{
    struct budget_row *r;
    struct shared_text *t;

    if (!s->url)
        return NULL;
    r = arena_alloc(a, sizeof(*r));
    *r = (struct budget_row){s, arena_strdup(a, suite)};
    t = arena_alloc(a, sizeof(*t));
    *t = (struct shared_text){row_begin, row_end, r, arena_strdup(a, owner)};
    return t;
}
