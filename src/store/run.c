/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c - a run's life: its id, its folder, its lock, its state.
 *
 * Hides the lock: an open-file-description lock on RUNS_DIR/RUN_ID/lock. The
 * kernel drops it when the process dies, however it dies; querying the holder does not take the
 * lock, so `cutegen runs` never disturbs a run that is starting. On a server it is a right of the
 * connection (engine.h, hold) with the same properties.
 *
 * Invariants
 * 1. A struct run exists only while its lock is held.
 * 2. A folder without a row (its process was killed in between) is left alone; its number is not
 *    reused.
 */
#include "store/run.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *const run_state_names[RUN_STATE_COUNT] = {"running", "done", "stopped", "failed"};

enum {
    NAME_MAX_CHARS = 40,
    NUMBERS_MAX = 100000, /* runs of one task on one day */
    TAKE_TRIES = 10,      /* the helpers of a run just killed need a moment to go */
    TAKE_WAIT_MS = 100,
};

/* ---- the lock ----------------------------------------------------------- */

static struct flock whole_file(void)
{
    return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET};
}

bool store_run_driven(struct store *s, const char *id)
{
    struct arena *a = arena_new();
    bool alive = false;
    int fd = -1;

    if (s->engine->is_held)
        alive = s->engine->is_held(s, id);
    else
        fd = open(arena_printf(a, "%s/%s/lock", s->dir, id), O_RDONLY | O_CLOEXEC);
    arena_free(a);
    if (fd >= 0) {
        struct flock lock = whole_file();
        alive = fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
        close(fd);
    }
    return alive;
}

static bool lock_is_held(int error)
{
    return error == EAGAIN || error == EACCES;
}

static bool refuse_held(const char *who, const char *id, struct error *err)
{
    error_set(err, ERROR_USE, "run %s is being driven by another process (%s)", id, who);
    return error_hint(err, "wait for it, or end that process; then `cutegen resume %s`", id);
}

/* Who holds it is in the file, for the message only. */
static bool refuse_locked(int fd, const char *id, struct error *err)
{
    char pid[16] = "", who[32];
    ssize_t n = pread(fd, pid, sizeof(pid) - 1, 0);

    pid[n > 0 ? n : 0] = '\0';
    pid[strspn(pid, "0123456789")] = '\0';
    snprintf(who, sizeof(who), "pid %s", *pid ? pid : "unknown");
    return refuse_held(who, id, err);
}

/* On a server the right belongs to the connection; the kernel's lock would hold on one machine. */
static bool right_take(struct run *r, int tries, struct error *err)
{
    struct store *s = r->store;
    char who[64];

    for (int i = 0; i < tries; i++) {
        if (!s->engine->hold(s, r->id, &r->held_by_other, who, err))
            return false;
        if (!r->held_by_other)
            return true;
        if (i + 1 < tries)
            usleep(TAKE_WAIT_MS * 1000);
    }
    return refuse_held(who, r->id, err);
}

static bool lock_take(struct run *r, int tries, struct error *err)
{
    if (r->store->engine->hold)
        return right_take(r, tries, err);

    struct arena *a = arena_new();
    char *path = path_join(a, r->dir, "lock");
    struct flock lock = whole_file();
    int rc = -1;

    r->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    for (int i = 0; r->lock_fd >= 0 && i < tries; i++) {
        rc = fcntl(r->lock_fd, F_OFD_SETLK, &lock);
        if (rc == 0 || !lock_is_held(errno))
            break;
        if (i + 1 < tries)
            usleep(TAKE_WAIT_MS * 1000);
    }
    bool ok = rc == 0;
    if (ok) {
        /* A lost pid only makes a message poorer. */
        char *pid = arena_printf(a, "%-15d\n", (int)getpid());
        (void)!pwrite(r->lock_fd, pid, strlen(pid), 0);
    } else if (r->lock_fd >= 0 && lock_is_held(errno)) {
        refuse_locked(r->lock_fd, r->id, err);
    } else {
        error_set(err, ERROR_MACHINE, "cannot lock %s: %s", path, strerror(errno));
        error_hint(err, "runs must lie in a folder that you may write");
    }
    arena_free(a);
    return ok;
}

/* ---- create ------------------------------------------------------------- */

/* DATE-TASK-, in letters that need no quoting anywhere. */
static char *id_stem(const char *task, int64_t now_ms, struct arena *a)
{
    char date[11], name[NAME_MAX_CHARS + 1];
    size_t n = 0;

    clock_date(now_ms, date);
    for (const char *p = task; *p && n < NAME_MAX_CHARS; p++) {
        unsigned char c = (unsigned char)*p;
        name[n++] = c < 128 && (isalnum(c) || c == '_') ? (char)tolower(c) : '-';
    }
    name[n] = '\0';
    return arena_printf(a, "%s-%s-", date, n ? name : "task");
}

static bool last_number(struct store *s, const char *stem, int64_t *out, struct error *err)
{
    return sql_int(s, 0, out, err,
                   "SELECT max(CASE WHEN trim(substr(id, length(?1) + 1), '0123456789') = '' "
                   "AND length(id) BETWEEN length(?1) + 1 AND length(?1) + 9 "
                   "THEN CAST(substr(id, length(?1) + 1) AS BIGINT) ELSE 0 END) FROM runs "
                   "WHERE id >= ?1 AND id < ?1 || '~'",
                   "t", stem);
}

static bool make_folder(struct run *r, const char *stem, int64_t number, struct error *err)
{
    struct arena *a = arena_new();
    bool ok = false;

    for (int i = 0; i < NUMBERS_MAX && !ok; i++) {
        char *id = arena_printf(a, "%s%lld", stem, (long long)number + 1 + i);
        char *dir = path_join(a, r->store->dir, id);
        if (mkdir(dir, 0755) == 0) {
            r->id = xstrdup(id);
            r->dir = xstrdup(dir);
            ok = true;
        } else if (errno != EEXIST) {
            error_set(err, ERROR_MACHINE, "cannot make the run's folder %s: %s", dir,
                      strerror(errno));
            error_hint(err, "runs must lie in a folder that you may write, on a disk with space");
            break;
        }
    }
    arena_free(a);
    return ok || (err->kind == ERROR_NONE &&
                  error_set(err, ERROR_MACHINE, "too many runs %s* in %s", stem, r->store->dir));
}

/* The same task file described the same way is one row. */
static bool task_insert(struct store *s, const struct task *t, int64_t *id, struct error *err)
{
    char source[65], description[65];
    json_t *none = json_object();
    bool ok = blob_insert(s, t->source, source, err) &&
              blob_insert_json(s, t->description ? t->description : none, description, err) &&
              sql_int(s, 0, id, err,
                      "SELECT id FROM tasks WHERE path = ? AND source = ? AND description = ? "
                      "AND name = ?",
                      "tttt", t->path, source, description, t->name);

    json_decref(none);
    if (!ok || *id)
        return ok;
    return sql_int(s, 0, id, err,
                   "INSERT INTO tasks (name, path, source, description, class, evidence, scaled, "
                   "bytes_min, flops_min) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
                   "tttttttdd", t->name, t->path, source, description, class_names[t->class],
                   t->class_evidence ? t->class_evidence : "", t->scaled, t->bytes_min,
                   t->flops_min);
}

static char *device_text(const struct device *d)
{
    json_t *v = json_pack("{s:s, s:i, s:s?, s:s?, s:s?, s:i, s:I, s:I, s:I}", "kind",
                          d->kind == DEVICE_CUDA ? "cuda" : "simt", "index", d->index, "name",
                          d->name, "models", d->models, "arch", d->arch, "sm_count", d->sm_count,
                          "smem_block_bytes", (json_int_t)d->smem_block_bytes, "l2_bytes",
                          (json_int_t)d->l2_bytes, "memory_bytes", (json_int_t)d->memory_bytes);
    if (v && d->cluster_blocks)
        json_object_set_new(v, "cluster_blocks", json_integer(d->cluster_blocks));
    if (!v)
        BUG("device \"%s\" is not UTF-8", d->name ? d->name : "");
    char *s = json_text(v);
    json_decref(v);
    return s;
}

static bool run_insert(struct run *r, const struct run_spec *spec, int64_t now_ms,
                       struct error *err)
{
    int64_t task;
    const char *owner;
    struct arena *a = arena_new();
    char *device = device_text(spec->device);
    char *options = json_text(spec->options), *environment = json_text(spec->environment);
    bool ok = task_insert(r->store, spec->task, &task, err) &&
              store_owner(r->store, spec->suite, a, &owner, err) &&
              sql_run(r->store, err,
                      "INSERT INTO runs (id, task, model, suite, device, options, environment, "
                      "state, reason, started_ms, owner) "
                      "VALUES (?, ?, ?, ?, ?, ?, ?, 'running', '', ?, ?)",
                      "tltttttlt", r->id, task, spec->model, spec->suite, device,
                      options ? options : "{}", environment ? environment : "{}", now_ms, owner);

    arena_free(a);
    xfree(device);
    xfree(options);
    xfree(environment);
    return ok;
}

/* A task of a suite has one run, whoever was asked to begin it: the second to ask is refused. */
static bool check_suite(struct store *s, const struct run_spec *spec, struct error *err)
{
    int64_t n;

    if (!spec->suite)
        return true;
    if (!sql_int(s, 0, &n, err,
                 "SELECT count(*) FROM runs r JOIN tasks t ON t.id = r.task "
                 "WHERE r.suite = ? AND t.path = ?",
                 "tt", spec->suite, spec->task->path))
        return false;
    if (!n)
        return true;
    error_set(err, ERROR_USE, "suite %s has a run of %s already", spec->suite, spec->task->path);
    return error_hint(err, "go on with the suite: cutegen suite --resume %s", spec->suite);
}

/* So does a job by itself. No other process reads or writes it in the meantime: we hold the
 * lock. */
static bool name_run(struct run *r, const struct run_spec *spec, struct error *err)
{
    int64_t job = 0;

    if (!spec->job)
        return true;
    if (!sql_int(r->store, 0, &job, err,
                 "UPDATE jobs SET run = ? WHERE id = ? AND run = '' RETURNING id", "tl", r->id,
                 spec->job))
        return false;
    if (job)
        return true;
    error_set(err, ERROR_USE, "job %lld has a run already, or is not there", (long long)spec->job);
    return error_hint(err, "`cutegen queue list` shows jobs and their runs");
}

static struct run *run_new(struct store *s)
{
    struct run *r = xmalloc(sizeof(*r));
    r->store = s;
    r->lock_fd = -1;
    return r;
}

/* A folder whose row did not come to be. */
static void folder_undo(const struct run *r)
{
    struct error ignored = {0};
    if (r->dir)
        dir_remove(r->dir, &ignored);
}

bool run_create(struct store *s, const struct run_spec *spec, struct run **out, struct error *err)
{
    struct arena *a = arena_new();
    struct run *r = run_new(s);
    int64_t now_ms = clock_unix_ms(), number;
    char *stem = id_stem(spec->task->name, now_ms, a);
    bool ok = sql_begin(s, err);

    if (ok) {
        ok = s->engine->alone(s, err) && check_suite(s, spec, err) &&
             last_number(s, stem, &number, err) && make_folder(r, stem, number, err) &&
             lock_take(r, 1, err) && run_insert(r, spec, now_ms, err) && name_run(r, spec, err);
        ok = sql_end(s, ok, err);
    }
    arena_free(a);
    if (!ok) {
        folder_undo(r);
        run_release(r);
        return error_add(err, "starting a run of %s", spec->task->name);
    }
    *out = r;
    return true;
}

/* ---- take, release, end ------------------------------------------------- */

static bool run_exists(struct store *s, const char *id, struct error *err)
{
    int64_t n, pruned;

    if (!sql_int(s, 0, &n, err, "SELECT count(*) FROM runs WHERE id = ?", "t", id) ||
        !sql_int(s, 0, &pruned, err, "SELECT pruned_ms FROM runs WHERE id = ?", "t", id))
        return false;
    if (pruned) {
        error_set(err, ERROR_USE, "run %s was pruned: its kernels are gone, but for the best", id);
        return error_hint(err, "start a new run of its task");
    }
    if (n)
        return true;
    error_set(err, ERROR_USE, "there is no run %s in %s", id, s->dir);
    return error_hint(err, "`cutegen runs` lists them");
}

bool run_take(struct store *s, const char *id, struct run **out, struct error *err)
{
    if (!run_exists(s, id, err))
        return false;
    struct arena *a = arena_new();
    struct run *r = run_new(s);

    r->id = xstrdup(id);
    r->dir = xstrdup(path_join(a, s->dir, id));
    arena_free(a);
    bool ok = dir_make(r->dir, err) && lock_take(r, TAKE_TRIES, err) && sql_begin(s, err);
    if (ok)
        ok = sql_end(s,
                     sql_run(s, err,
                             "UPDATE runs SET state = 'running', reason = '', ended_ms = NULL "
                             "WHERE id = ?",
                             "t", id),
                     err);
    if (!ok) {
        run_release(r);
        return error_add(err, "taking up run %s", id);
    }
    *out = r;
    return true;
}

void run_release(struct run *r)
{
    if (!r)
        return;
    if (r->lock_fd >= 0)
        close(r->lock_fd);
    if (r->store->engine->let_go && r->id && !r->held_by_other)
        r->store->engine->let_go(r->store, r->id);
    xfree(r->id);
    xfree(r->dir);
    xfree(r);
}

const char *run_id(const struct run *r)
{
    return r->id;
}

const char *run_dir(const struct run *r)
{
    return r->dir;
}

bool run_set_options(struct run *r, const json_t *options, struct error *err)
{
    if (!sql_begin(r->store, err))
        return error_add(err, "storing the options of %s", r->id);
    char *text = json_text(options);
    bool ok = sql_run(r->store, err, "UPDATE runs SET options = ? WHERE id = ?", "tt",
                      text ? text : "{}", r->id);
    xfree(text);
    return sql_end(r->store, ok, err) || error_add(err, "storing the options of %s", r->id);
}

bool run_end(struct run *r, enum run_state state, const char *reason, struct error *err)
{
    if (!sql_begin(r->store, err))
        return error_add(err, "ending run %s", r->id);
    bool ok =
        sql_run(r->store, err, "UPDATE runs SET state = ?, reason = ?, ended_ms = ? WHERE id = ?",
                "ttlt", run_state_names[state], reason ? reason : "", clock_unix_ms(), r->id);
    return sql_end(r->store, ok, err) || error_add(err, "ending run %s", r->id);
}

bool run_event_add(struct run *r, const char *kind, const json_t *data, struct error *err)
{
    if (!sql_begin(r->store, err))
        return error_add(err, "storing an event of %s", r->id);
    char *text = json_text(data);
    bool ok =
        sql_run(r->store, err, "INSERT INTO events (run, at_ms, kind, data) VALUES (?, ?, ?, ?)",
                "tltt", r->id, clock_unix_ms(), kind, text ? text : "null");
    xfree(text);
    return sql_end(r->store, ok, err) || error_add(err, "storing an event of %s", r->id);
}
