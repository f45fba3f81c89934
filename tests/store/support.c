/* support.c - what the store's tests share. */
#include "support.h"

#include "base/fs.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

const struct device small_device = {
    .kind = DEVICE_SIMT,
    .name = "simt",
    .models = "H200",
    .arch = "compute_80",
    .sm_count = 132,
    .smem_block_bytes = 232448,
    .memory_bytes = 1 << 30,
};

const char *test_url(void)
{
    return getenv("CUTEGEN_TEST_STORE");
}

void place_reopen(struct place *p)
{
    struct error err = {0};

    store_close(p->s);
    p->s = NULL;
    assert_ok(store_open(p->dir, test_url(), STORE_WRITE, &p->s, &err));
}

void place_empty(struct place *p)
{
    struct error err = {0};

    store_close(p->s);
    p->s = NULL;
    if (file_exists(p->dir))
        assert_ok(dir_remove(p->dir, &err));
    if (test_url())
        assert_int_equal(system("psql -q -d \"$CUTEGEN_TEST_STORE\" -c 'SET client_min_messages = "
                                "warning; DROP SCHEMA public CASCADE; CREATE SCHEMA public'"),
                         0);
}

int place_set_up(void **state)
{
    struct place *p = xmalloc(sizeof(*p));
    struct error err = {0};
    char *top;

    p->a = arena_new();
    assert_ok(dir_temp("cutegen-store", p->a, &top, &err));
    p->dir = path_join(p->a, top, "runs");
    place_empty(p);
    place_reopen(p);
    *state = p;
    return 0;
}

int place_tear_down(void **state)
{
    struct place *p = *state;
    struct error err = {0};

    store_close(p->s);
    *strrchr(p->dir, '/') = '\0';
    assert_ok(dir_remove(p->dir, &err));
    arena_free(p->a);
    xfree(p);
    return 0;
}

struct task small_task(struct arena *a)
{
    struct task t = {
        .name = "swish",
        .path = "/tasks/swish.py",
        .source = text_of("import torch\n"),
        .class = CLASS_POINTWISE,
        .class_evidence = "every node is elementwise",
        .scaled = "N 2048 -> 256",
        .bytes_min = 8192,
        .flops_min = 4096,
        .description = json_pack(
            "{s:[{s:s, s:s, s:s, s:[i, i], s:[i, i]}], s:[{s:s, s:s, s:s, s:[i], s:[i]}]}",
            "inputs", "name", "x", "role", "input", "dtype", "f32", "shape", 16, 128, "strides",
            128, 1, "outputs", "name", "out", "role", "output", "dtype", "f32", "shape", 2048,
            "strides", 1),
    };
    (void)a;
    return t;
}

struct run *small_run(struct place *p)
{
    struct task t = small_task(p->a);
    struct run_spec spec = {.task = &t, .device = &small_device, .model = "builtin"};
    struct error err = {0};
    struct run *r;

    assert_ok(run_create(p->s, &spec, &r, &err));
    json_decref(t.description);
    return r;
}

const char *reply_text(struct arena *a, int number)
{
    return arena_printf(a, "reply %d %0*d", number, 100 * (number % 90), 7);
}

const char *source_text(struct arena *a, int number)
{
    return arena_printf(a, "// kernel %d\n%0*d\n", number, 40 * (number % 70), 9);
}

static const struct attempt_outcome *small_outcome(int number, struct arena *a)
{
    struct attempt_outcome *o = arena_alloc(a, sizeof(*o));
    struct build_result *b = arena_alloc(a, sizeof(*b));
    struct measurement *m = arena_alloc(a, sizeof(*m));

    o->step = STEP_MEASURE;
    o->verdict = (struct verdict){.kind = VERDICT_PASS, .summary = "right", .detail = ""};
    b->build_ms = number;
    m->time_us = 100.0 / number;
    m->modelled = true;
    m->bound = "memory";
    o->build = b;
    o->measurement = m;
    return o;
}

bool whole_attempt(struct run *r, int number, struct error *err)
{
    struct arena *a = arena_new();
    struct message m[2] = {{"system", text_of("You write kernels.")},
                           {"user", text_of(arena_printf(a, "attempt %d", number))}};
    struct request req = {.stage = STAGE_OPTIMIZE, .messages = m, .message_count = 2};
    struct reply reply = {.text = text_of(reply_text(a, number)), .model = "small", .cost_usd = -1};
    struct candidate c = {.depth = number - 1,
                          .attempt = number,
                          .source = text_of(source_text(a, number)),
                          .change = "one change"};
    bool ok = run_call_add(r, number, 0, &req, &reply, err) &&
              run_attempt_begin(r, &c, STAGE_OPTIMIZE, number - 1, err) &&
              run_attempt_end(r, number, small_outcome(number, a), err);

    arena_free(a);
    return ok;
}

static const char *first_row(sqlite3 *db, const char *sql, struct arena *a)
{
    sqlite3_stmt *stmt;
    const char *row = NULL;

    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK)
        return arena_strdup(a, sqlite3_errmsg(db));
    int rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW)
        row = arena_strdup(a, (const char *)sqlite3_column_text(stmt, 0));
    else if (rc != SQLITE_DONE)
        row = arena_strdup(a, sqlite3_errmsg(db));
    sqlite3_finalize(stmt);
    return row;
}

const char *store_health(const char *runs_dir, struct arena *a)
{
    sqlite3 *db;
    const char *health = "cannot open", *keys;

    if (test_url()) /* the server checks its keys itself */
        return "ok";
    if (sqlite3_open(path_join(a, runs_dir, "store.db"), &db) == SQLITE_OK) {
        sqlite3_busy_timeout(db, 600000);
        health = first_row(db, "PRAGMA integrity_check", a);
        keys = first_row(db, "PRAGMA foreign_key_check", a);
        if (keys)
            health = arena_printf(a, "%s; foreign keys of %s", health, keys);
    }
    sqlite3_close(db);
    return health;
}
