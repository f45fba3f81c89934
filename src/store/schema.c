/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema.c - the tables, and the upgrade from each version to the next.
 *
 * Hides the schema's age from the rest of the store. Written in SQLite's SQL; another engine
 * translates types (engine.h, schema).
 *
 * Invariants
 * 1. steps[n] brings version n to n + 1; a step that was released never
 *    changes. To change the schema, add a step.
 * 2. The version is written in the same transaction.
 */
#include "store/sql.h"

static const char *const steps[] = {
    /* Texts, stored once each. */
    "CREATE TABLE blobs ("
    "  sha256 TEXT PRIMARY KEY,"
    "  size INTEGER NOT NULL,"
    "  data BLOB NOT NULL) STRICT;"

    "CREATE TABLE tasks ("
    "  id INTEGER PRIMARY KEY,"
    "  name TEXT NOT NULL,"
    "  path TEXT NOT NULL,"
    "  source TEXT NOT NULL REFERENCES blobs,"
    "  description TEXT NOT NULL REFERENCES blobs," /* JSON, as the oracle gave it */
    "  class TEXT NOT NULL,"
    "  evidence TEXT NOT NULL,"
    "  scaled TEXT,"
    "  bytes_min REAL,"
    "  flops_min REAL) STRICT;"
    "CREATE INDEX tasks_by_path ON tasks (path);"

    "CREATE TABLE runs ("
    "  id TEXT PRIMARY KEY,"
    "  task INTEGER NOT NULL REFERENCES tasks,"
    "  model TEXT NOT NULL,"
    "  suite TEXT,"
    "  device TEXT NOT NULL,"      /* JSON */
    "  options TEXT NOT NULL,"     /* JSON */
    "  environment TEXT NOT NULL," /* JSON */
    "  state TEXT NOT NULL CHECK (state IN ('running', 'done', 'stopped', 'failed')),"
    "  reason TEXT NOT NULL,"
    "  started_ms INTEGER NOT NULL,"
    "  ended_ms INTEGER) STRICT;"
    "CREATE INDEX runs_by_time ON runs (started_ms);"

    "CREATE TABLE candidates ("
    "  id INTEGER PRIMARY KEY,"
    "  run TEXT NOT NULL REFERENCES runs,"
    "  depth INTEGER NOT NULL,"
    "  change TEXT NOT NULL,"
    "  source TEXT NOT NULL REFERENCES blobs,"
    "  parent INTEGER REFERENCES candidates) STRICT;"
    "CREATE INDEX candidates_by_run ON candidates (run);"
    "CREATE INDEX candidates_by_parent ON candidates (parent);"

    "CREATE TABLE attempts ("
    "  run TEXT NOT NULL REFERENCES runs,"
    "  number INTEGER NOT NULL CHECK (number > 0),"
    "  repair INTEGER NOT NULL,"
    "  stage TEXT NOT NULL,"
    "  candidate INTEGER NOT NULL UNIQUE REFERENCES candidates,"
    "  started_ms INTEGER NOT NULL,"
    "  ended_ms INTEGER," /* NULL: not ended, or cut short */
    "  step TEXT,"        /* which decided the verdict */
    "  kept INTEGER NOT NULL DEFAULT 0,"
    "  PRIMARY KEY (run, number)) STRICT;"

    "CREATE TABLE verdicts ("
    "  run TEXT NOT NULL, attempt INTEGER NOT NULL,"
    "  kind TEXT NOT NULL,"
    "  summary TEXT NOT NULL,"
    "  detail TEXT NOT NULL,"
    "  advice TEXT,"
    "  PRIMARY KEY (run, attempt),"
    "  FOREIGN KEY (run, attempt) REFERENCES attempts) STRICT;"

    /* A table and not JSON: a source line need not be UTF-8. */
    "CREATE TABLE findings ("
    "  run TEXT NOT NULL, attempt INTEGER NOT NULL, number INTEGER NOT NULL,"
    "  kind TEXT NOT NULL,"
    "  place TEXT NOT NULL,"
    "  line TEXT NOT NULL,"
    "  text TEXT NOT NULL,"
    "  PRIMARY KEY (run, attempt, number),"
    "  FOREIGN KEY (run, attempt) REFERENCES verdicts) STRICT;"

    "CREATE TABLE builds ("
    "  run TEXT NOT NULL, attempt INTEGER NOT NULL,"
    "  build_ms INTEGER NOT NULL,"
    "  cached INTEGER NOT NULL,"
    "  launches TEXT REFERENCES blobs,"  /* JSON */
    "  names TEXT REFERENCES blobs,"     /* JSON */
    "  resources TEXT REFERENCES blobs," /* JSON */
    "  PRIMARY KEY (run, attempt),"
    "  FOREIGN KEY (run, attempt) REFERENCES attempts) STRICT;"

    "CREATE TABLE tests ("
    "  run TEXT NOT NULL, attempt INTEGER NOT NULL,"
    "  test_ms INTEGER NOT NULL,"
    "  seed TEXT NOT NULL,"
    "  deterministic INTEGER NOT NULL,"
    "  draws INTEGER NOT NULL,"
    "  distributions INTEGER NOT NULL,"
    "  max_abs REAL, max_rel REAL, rms_rel REAL,"
    "  reference_max_abs REAL, reference_max_rel REAL, reference_rms_rel REAL,"
    "  counters TEXT REFERENCES blobs," /* JSON */
    "  PRIMARY KEY (run, attempt),"
    "  FOREIGN KEY (run, attempt) REFERENCES attempts) STRICT;"

    "CREATE TABLE measurements ("
    "  run TEXT NOT NULL, attempt INTEGER NOT NULL,"
    "  modelled INTEGER NOT NULL,"
    "  time_us REAL, warm_us REAL, spread REAL, floor_us REAL,"
    "  bound TEXT NOT NULL,"
    "  parts TEXT REFERENCES blobs," /* JSON */
    "  PRIMARY KEY (run, attempt),"
    "  FOREIGN KEY (run, attempt) REFERENCES attempts) STRICT;"

    "CREATE TABLE baselines ("
    "  run TEXT NOT NULL, attempt INTEGER NOT NULL, number INTEGER NOT NULL,"
    "  name TEXT NOT NULL,"
    "  cold_us REAL, warm_us REAL,"
    "  PRIMARY KEY (run, attempt, number),"
    "  FOREIGN KEY (run, attempt) REFERENCES measurements) STRICT;"

    "CREATE TABLE profiles ("
    "  run TEXT NOT NULL, attempt INTEGER NOT NULL,"
    "  source TEXT NOT NULL,"
    "  text TEXT NOT NULL REFERENCES blobs,"
    "  data TEXT REFERENCES blobs," /* JSON */
    "  PRIMARY KEY (run, attempt),"
    "  FOREIGN KEY (run, attempt) REFERENCES attempts) STRICT;"

    /* The attempt a call is for has not begun when its reply is stored. */
    "CREATE TABLE calls ("
    "  id INTEGER PRIMARY KEY,"
    "  run TEXT NOT NULL REFERENCES runs,"
    "  attempt INTEGER NOT NULL,"
    "  stage TEXT NOT NULL,"
    "  at_ms INTEGER NOT NULL,"
    "  prompt_hash TEXT NOT NULL,"
    "  model TEXT NOT NULL,"
    "  finish_reason TEXT NOT NULL,"
    "  prompt_tokens INTEGER NOT NULL," /* -1: unknown */
    "  cached_tokens INTEGER NOT NULL,"
    "  output_tokens INTEGER NOT NULL,"
    "  cost_usd REAL NOT NULL," /* < 0: unknown */
    "  latency_ms INTEGER NOT NULL,"
    "  retries INTEGER NOT NULL,"
    "  done INTEGER NOT NULL,"
    "  reply TEXT NOT NULL REFERENCES blobs) STRICT;"
    "CREATE INDEX calls_by_run ON calls (run, attempt);"

    "CREATE TABLE messages ("
    "  call INTEGER NOT NULL REFERENCES calls, number INTEGER NOT NULL,"
    "  role TEXT NOT NULL,"
    "  content TEXT NOT NULL REFERENCES blobs,"
    "  PRIMARY KEY (call, number)) STRICT;"

    "CREATE TABLE events ("
    "  id INTEGER PRIMARY KEY,"
    "  run TEXT NOT NULL REFERENCES runs,"
    "  at_ms INTEGER NOT NULL,"
    "  kind TEXT NOT NULL,"
    "  data TEXT NOT NULL) STRICT;" /* JSON */
    "CREATE INDEX events_by_run ON events (run);",

    /* Many tasks under one name. The run of a task is found by runs.suite and the task's path. */
    "CREATE TABLE suites ("
    "  name TEXT PRIMARY KEY,"
    "  source TEXT NOT NULL," /* the folder or list it was made from */
    "  flags TEXT NOT NULL,"  /* JSON: what every run is started with */
    "  started_ms INTEGER NOT NULL) STRICT;"

    "CREATE TABLE suite_tasks ("
    "  suite TEXT NOT NULL REFERENCES suites,"
    "  number INTEGER NOT NULL,"
    "  path TEXT NOT NULL,"
    "  ended INTEGER NOT NULL DEFAULT 0,"
    "  problem TEXT NOT NULL DEFAULT ''," /* why it has no result */
    "  wall_ms INTEGER NOT NULL DEFAULT 0,"
    "  PRIMARY KEY (suite, number)) STRICT;"
    "CREATE INDEX runs_by_suite ON runs (suite);",

    /* Why a time says nothing: an answer without any work would pass. */
    "ALTER TABLE measurements ADD COLUMN trivial TEXT NOT NULL DEFAULT '';",

    /* Final acceptance of attempts that passed. */
    "CREATE TABLE acceptances ("
    "  run TEXT NOT NULL, attempt INTEGER NOT NULL,"
    "  at_ms INTEGER NOT NULL,"
    "  kind TEXT NOT NULL," /* 'pass': accepted */
    "  summary TEXT NOT NULL,"
    "  detail TEXT NOT NULL,"
    "  note TEXT NOT NULL," /* who checked */
    "  PRIMARY KEY (run, attempt),"
    "  FOREIGN KEY (run, attempt) REFERENCES attempts) STRICT;",

    /* Which steps a kernel of the built-in engineer has; NULL: not known. */
    "ALTER TABLE candidates ADD COLUMN steps TEXT;",

    /* An attempt at each of many shapes. */
    "CREATE TABLE shapes ("
    "  run TEXT NOT NULL, attempt INTEGER NOT NULL, number INTEGER NOT NULL,"
    "  label TEXT NOT NULL,"
    "  weight REAL NOT NULL,"
    "  inputs TEXT REFERENCES blobs,"  /* JSON */
    "  outputs TEXT REFERENCES blobs," /* JSON */
    "  kind TEXT NOT NULL,"
    "  summary TEXT NOT NULL,"
    "  time_us REAL, floor_us REAL,"
    "  launches TEXT REFERENCES blobs," /* JSON */
    "  module_hash TEXT NOT NULL,"
    "  PRIMARY KEY (run, attempt, number),"
    "  FOREIGN KEY (run, attempt) REFERENCES attempts) STRICT;",

    /* Hashes of the judged code (the cubin, or the PTX on simt) and of its PTX. The code itself is
     * in blobs where the attempt passed. */
    "ALTER TABLE builds ADD COLUMN code TEXT;"
    "ALTER TABLE builds ADD COLUMN ptx TEXT;",

    /* The queue: one job per task of a suite, and who works on it. */
    "CREATE TABLE workers ("
    "  id INTEGER PRIMARY KEY,"
    "  host TEXT NOT NULL,"
    "  pid INTEGER NOT NULL,"
    "  kind TEXT NOT NULL," /* simt, cuda */
    "  gpu TEXT NOT NULL,"
    "  memory_bytes INTEGER NOT NULL,"
    "  jobs INTEGER NOT NULL DEFAULT 0," /* ended by it */
    "  started_ms INTEGER NOT NULL,"
    "  seen_ms INTEGER NOT NULL) STRICT;" /* by the database's clock; 0: it said goodbye */

    "CREATE TABLE jobs ("
    "  id INTEGER PRIMARY KEY,"
    "  suite TEXT NOT NULL,"
    "  number INTEGER NOT NULL,"
    "  state TEXT NOT NULL CHECK (state IN ('waiting', 'leased', 'done', 'failed')),"
    "  priority INTEGER NOT NULL,"
    "  needs_kind TEXT NOT NULL,"
    "  needs_gpu TEXT NOT NULL,"
    "  needs_bytes INTEGER NOT NULL,"
    "  tries INTEGER NOT NULL DEFAULT 0,"
    "  problem TEXT NOT NULL DEFAULT '',"
    "  worker INTEGER REFERENCES workers,"
    "  added_ms INTEGER NOT NULL,"
    "  after_ms INTEGER NOT NULL DEFAULT 0," /* not before */
    "  claimed_ms INTEGER,"
    "  lease_ms INTEGER NOT NULL DEFAULT 0," /* ends then */
    "  ended_ms INTEGER,"
    "  UNIQUE (suite, number),"
    "  FOREIGN KEY (suite, number) REFERENCES suite_tasks) STRICT;"
    "CREATE INDEX jobs_by_turn ON jobs (state, priority DESC, id);"
    "CREATE INDEX jobs_by_worker ON jobs (worker);",

    /* Calls of one step that are made at the same time. */
    "ALTER TABLE calls ADD COLUMN slot INTEGER NOT NULL DEFAULT 0;",

    /* How accurate an attempt's results are: fp32, TF32-class, 16-bit. How often a suite's task
     * was begun again because the machine failed. */
    "ALTER TABLE tests ADD COLUMN accuracy_class TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE suite_tasks ADD COLUMN retries INTEGER NOT NULL DEFAULT 0;",

    /* Many runs and many jobs: what is asked often finds its rows without reading all of them.
     * Who began something; what cites an attempt. A suite's budget, where its runs share no
     * folder. Where a time was taken. */
    "DROP INDEX runs_by_suite;"
    "CREATE INDEX runs_by_suite ON runs (suite, task);"
    "CREATE INDEX runs_by_task ON runs (task);"
    "CREATE INDEX tasks_by_source ON tasks (source);"
    "CREATE INDEX suites_by_time ON suites (started_ms);"
    "DROP INDEX jobs_by_turn;"
    "CREATE INDEX jobs_by_turn ON jobs (priority DESC, id) WHERE state = 'waiting';"
    "CREATE INDEX jobs_by_suite ON jobs (suite, priority DESC, id) WHERE state = 'waiting';"
    "CREATE INDEX jobs_by_lease ON jobs (lease_ms) WHERE state = 'leased';"
    "CREATE INDEX jobs_by_end ON jobs (ended_ms) WHERE state IN ('done', 'failed');"
    "CREATE INDEX workers_by_time ON workers (seen_ms);"
    "CREATE INDEX runs_by_end ON runs (ended_ms);"
    "CREATE INDEX calls_by_time ON calls (at_ms);"
    "ALTER TABLE runs ADD COLUMN owner TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE runs ADD COLUMN pruned_ms INTEGER;" /* NULL: it has all its texts */
    "ALTER TABLE suites ADD COLUMN owner TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE measurements ADD COLUMN machine TEXT NOT NULL DEFAULT '';" /* JSON */
    "CREATE TABLE exports ("
    "  id INTEGER PRIMARY KEY,"
    "  run TEXT NOT NULL REFERENCES runs,"
    "  attempt INTEGER NOT NULL,"
    "  at_ms INTEGER NOT NULL,"
    "  path TEXT NOT NULL) STRICT;"
    "CREATE INDEX exports_by_run ON exports (run);"
    "CREATE TABLE budgets ("
    "  suite TEXT PRIMARY KEY,"
    "  state TEXT NOT NULL) STRICT;", /* JSON (llm/budget.c) */

    /* Kernels that were compiled on any machine, by the hash of all that went into them. How many
     * jobs a worker has done, so that they need not be counted. */
    "CREATE TABLE kernels ("
    "  key TEXT PRIMARY KEY,"
    "  sha256 TEXT NOT NULL," /* of the data */
    "  made_ms INTEGER NOT NULL,"
    "  data BLOB NOT NULL) STRICT;"
    "CREATE INDEX kernels_by_time ON kernels (made_ms);"
    "ALTER TABLE workers ADD COLUMN done INTEGER NOT NULL DEFAULT 0;"
    "UPDATE workers SET done = "
    "(SELECT count(*) FROM jobs WHERE jobs.worker = workers.id AND jobs.state = 'done');"
    "CREATE INDEX jobs_by_failure ON jobs (id) WHERE state = 'failed';",

    /* Jobs of several kinds, of a suite or by themselves (queue.h): what is asked, its hash, what
     * came of it. Nothing refers to a job by its number, so they get new ones. */
    "CREATE TABLE jobs_of_kinds ("
    "  id INTEGER PRIMARY KEY,"
    "  kind TEXT NOT NULL DEFAULT 'run',"
    "  suite TEXT," /* NULL: of none; the rest of what is asked is then here */
    "  number INTEGER,"
    "  hash TEXT UNIQUE,"                   /* of all that is asked; NULL: a task of a suite */
    "  path TEXT NOT NULL DEFAULT '',"      /* of the task; '': it has none */
    "  flags TEXT NOT NULL DEFAULT '[]',"   /* JSON */
    "  payload TEXT NOT NULL DEFAULT '{}'," /* JSON, by kind */
    "  source TEXT REFERENCES blobs,"       /* a kernel that is not in the store otherwise */
    "  owner TEXT NOT NULL DEFAULT '',"
    "  run TEXT NOT NULL DEFAULT '',"    /* that it led to; of a suite's task: '' */
    "  result TEXT NOT NULL DEFAULT ''," /* JSON, with the state */
    "  state TEXT NOT NULL CHECK (state IN ('waiting', 'leased', 'done', 'failed')),"
    "  priority INTEGER NOT NULL,"
    "  needs_kind TEXT NOT NULL,"
    "  needs_gpu TEXT NOT NULL,"
    "  needs_bytes INTEGER NOT NULL,"
    "  needs_arch TEXT NOT NULL DEFAULT '',"
    "  tries INTEGER NOT NULL DEFAULT 0,"
    "  problem TEXT NOT NULL DEFAULT '',"
    "  worker INTEGER REFERENCES workers,"
    "  added_ms INTEGER NOT NULL,"
    "  after_ms INTEGER NOT NULL DEFAULT 0,"
    "  claimed_ms INTEGER,"
    "  lease_ms INTEGER NOT NULL DEFAULT 0,"
    "  ended_ms INTEGER,"
    "  UNIQUE (suite, number),"
    "  FOREIGN KEY (suite, number) REFERENCES suite_tasks) STRICT;"
    "INSERT INTO jobs_of_kinds (suite, number, path, state, priority, needs_kind, needs_gpu, "
    "needs_bytes, tries, problem, worker, added_ms, after_ms, claimed_ms, lease_ms, ended_ms) "
    "SELECT j.suite, j.number, t.path, j.state, j.priority, j.needs_kind, j.needs_gpu, "
    "j.needs_bytes, j.tries, j.problem, j.worker, j.added_ms, j.after_ms, j.claimed_ms, "
    "j.lease_ms, j.ended_ms FROM jobs j "
    "JOIN suite_tasks t ON t.suite = j.suite AND t.number = j.number ORDER BY j.id;"
    "DROP TABLE jobs;"
    "ALTER TABLE jobs_of_kinds RENAME TO jobs;"
    "CREATE INDEX jobs_by_worker ON jobs (worker);"
    "CREATE INDEX jobs_by_turn ON jobs (priority DESC, id) "
    "WHERE state = 'waiting' AND kind <> 'compile';"
    "CREATE INDEX jobs_to_compile ON jobs (priority DESC, id) "
    "WHERE state = 'waiting' AND kind = 'compile';"
    "CREATE INDEX jobs_by_suite ON jobs (suite, priority DESC, id) WHERE state = 'waiting';"
    "CREATE INDEX jobs_by_lease ON jobs (lease_ms) WHERE state = 'leased';"
    "CREATE INDEX jobs_by_end ON jobs (ended_ms) WHERE state IN ('done', 'failed');"
    "CREATE INDEX jobs_by_failure ON jobs (id) WHERE state = 'failed';"
    "ALTER TABLE workers ADD COLUMN takes INTEGER NOT NULL DEFAULT 1;", /* enum job_take */
};

int schema_version(void)
{
    return (int)ARRAY_LEN(steps);
}

static bool step_up(struct store *s, int64_t from, struct error *err)
{
    struct arena *a = arena_new();
    bool ok = true;

    for (int64_t v = from; ok && v < schema_version(); v++)
        ok = s->engine->script(s, s->engine->schema(steps[v], a), err) ||
             error_add(err, "bringing the store from version %lld to %lld", (long long)v,
                       (long long)v + 1);
    arena_free(a);
    return ok && s->engine->set_version(s, schema_version(), err);
}

bool schema_bring_up(struct store *s, struct error *err)
{
    int64_t version;

    if (!s->engine->version(s, &version, err))
        return false;
    if (version > schema_version()) {
        error_set(err, ERROR_MACHINE,
                  "%s was written by a newer cutegen (its version is %lld, this program knows %d)",
                  s->path, (long long)version, schema_version());
        return error_hint(err, "use the newer cutegen, or name another folder: --runs DIR");
    }
    if (version == schema_version())
        return true;
    if (version == 0 && s->mode == STORE_READ) {
        error_set(err, ERROR_USE, "no runs yet: %s is empty", s->path);
        return error_hint(err, "make one: cutegen run TASK.py");
    }
    if (version > 0 && !s->engine->back_up(s, version, err))
        return false;
    if (!sql_begin(s, err))
        return false;
    /* Another process may have been faster. */
    bool ok = s->engine->alone(s, err) && s->engine->version(s, &version, err);
    if (ok && version < schema_version())
        ok = step_up(s, version, err);
    return sql_end(s, ok, err);
}
