/* SPDX-License-Identifier: Apache-2.0 */
/* pool.c - the warm server's processes; see pool.h. */
#include "server/pool.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/proc.h"
#include "confine/confine.h"
#include "server/copiers.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_POOLED = 64, MAX_WORDS = 2048, TEND_MS = 1000, QUIET_MS = 20 };
enum { COPIER_POOL_BYTES = 1 << 30 };

/* How many of a kind may be idle. A judgement takes two runners, one after the other: of four, two
 * are ready for the next judgement while two more are starting. */
static const struct {
    const char *kind;
    int waiting;
} kinds[] = {{"builder", 4}, {"oracle", 3}, {"runner", 4}};

enum pooled_state { LENT, WAITING, ENDING };

struct pooled {
    enum pooled_state state;
    struct child *child;
    json_t *wish;
    int64_t since_ms; /* in this state */
    int uses;
};

struct pool {
    struct pool_limits limits;
    struct pooled *all[MAX_POOLED];
    size_t count;
    struct copiers *copiers;
    json_t *spare;   /* the last wish lent `once`, for which a spare is started; NULL: none */
    int64_t back_ms; /* when the last such loan ended */
};

struct pool *pool_new(const struct pool_limits *limits)
{
    struct pool *pool = xmalloc(sizeof *pool);

    pool->limits = *limits;
    pool->copiers = copiers_new(limits->idle_ms);
    return pool;
}

static const char *wish_text(const struct pooled *p, const char *key)
{
    return json_string_or(p->wish, key, "");
}

static bool same(const struct pooled *p, const json_t *wish, const char *key)
{
    return strcmp(wish_text(p, key), json_string_or(wish, key, "")) == 0;
}

static void set_state(struct pooled *p, enum pooled_state state)
{
    p->state = state;
    p->since_ms = clock_ms();
}

static void end(struct pooled *p)
{
    if (p->state == ENDING)
        return;
    child_end(p->child);
    set_state(p, ENDING);
}

/* ---- starting ------------------------------------------------------------ */

static bool words_of(const json_t *wish, const char *key, struct arena *a, const char *const **out,
                     struct error *err)
{
    json_t *list;
    const char **words;

    if (!json_get_array(wish, key, &list, err))
        return false;
    words = arena_array(a, json_array_size(list) + 1, sizeof *words);
    for (size_t i = 0; i < json_array_size(list); i++) {
        words[i] = json_string_value(json_array_get(list, i));
        if (!words[i] || i == MAX_WORDS)
            return error_set(err, ERROR_USE, "%s of a request is not a list of words", key);
    }
    *out = words;
    return true;
}

static bool start(struct copiers *copiers, json_t *wish, struct child **out, struct error *err)
{
    struct arena *a = arena_new();
    struct proc_spec spec = {
        .dir = json_string_or(wish, "dir", "/"),
        .clean_env = true,
        .no_network = json_bool_or(wish, "no_network", false),
        .private_tmp = json_bool_or(wish, "private_tmp", false),
        .output_limit = (size_t)json_int_or(wish, "output_limit", 64 << 10),
        .address_limit_bytes = (uint64_t)json_int_or(wish, "address_limit", 0),
        .tmp_in_memory = json_bool_or(wish, "tmp_in_memory", false),
        .resident_limit_bytes = (uint64_t)json_int_or(wish, "resident_limit", 0),
        .disk_limit_bytes = (uint64_t)json_int_or(wish, "disk_limit", 0),
    };
    const json_t *confine = json_object_get(wish, "confine");
    struct confine_policy policy;
    struct proc_cage cage;
    bool ok =
        words_of(wish, "argv", a, &spec.argv, err) && words_of(wish, "env", a, &spec.env, err);

    if (ok && confine) {
        ok = confine_parse(confine, a, &policy, err);
        spec.cage = confine_cage(&policy, &cage);
    }

    if (ok && !spec.argv[0])
        ok = error_set(err, ERROR_USE, "a wish without a program");
    ok = ok && (copiers_copy(copiers, wish, &spec, out) || child_start(&spec, out, err));
    arena_free(a);
    return ok;
}

static struct pooled *add(struct pool *pool, json_t *wish, struct error *err)
{
    struct child *child;
    struct pooled *p;

    if (pool->count == MAX_POOLED) {
        error_set(err, ERROR_MACHINE, "the server already has %d processes", MAX_POOLED);
        return NULL;
    }
    if (!start(pool->copiers, wish, &child, err))
        return NULL;
    p = xmalloc(sizeof *p);
    p->child = child;
    p->wish = json_incref(wish);
    set_state(p, WAITING);
    pool->all[pool->count++] = p;
    return p;
}

/* ---- lending ------------------------------------------------------------- */

static int waiting_limit(const char *kind)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (strcmp(kinds[i].kind, kind) == 0)
            return kinds[i].waiting;
    return 1;
}

static int count_kind(const struct pool *pool, const char *kind)
{
    int n = 0;

    for (size_t i = 0; i < pool->count; i++)
        n += pool->all[i]->state != ENDING && strcmp(wish_text(pool->all[i], "kind"), kind) == 0;
    return n;
}

static int count_waiting(const struct pool *pool, const json_t *wish)
{
    int n = 0;

    for (size_t i = 0; i < pool->count; i++)
        n += pool->all[i]->state == WAITING && same(pool->all[i], wish, "kind") &&
             same(pool->all[i], wish, "key");
    return n;
}

/* The one idle longest among those that fit; with a tag, only those that have loaded it. */
static struct pooled *find(struct pool *pool, const json_t *wish, bool tagged)
{
    struct pooled *best = NULL;

    for (size_t i = 0; i < pool->count; i++) {
        struct pooled *p = pool->all[i];

        if (p->state != WAITING || !same(p, wish, "kind") || !same(p, wish, "key") ||
            (tagged && !same(p, wish, "tag")))
            continue;
        if (!child_quiet(p->child)) {
            end(p);
            continue;
        }
        if (!best || p->since_ms < best->since_ms)
            best = p;
    }
    return best;
}

struct pooled *pool_lend(struct pool *pool, json_t *wish, bool *warm, struct error *err)
{
    const char *kind = json_string_or(wish, "kind", "");
    struct pooled *p = find(pool, wish, true);

    /* A process that has loaded something else is taken only when the limit is reached: what it has
     * loaded is worth more than its memory. */
    if (!p && count_kind(pool, kind) >= waiting_limit(kind))
        p = find(pool, wish, false);
    *warm = p != NULL;
    if (!p)
        p = add(pool, wish, err);
    if (!p)
        return NULL;
    json_incref(wish);
    json_decref(p->wish);
    p->wish = wish;
    p->uses++;
    set_state(p, LENT);
    return p;
}

void pool_streams(const struct pooled *p, int fds[3])
{
    child_streams(p->child, fds);
}

const char *pool_tmp(const struct pooled *p)
{
    return child_tmp(p->child);
}

int pool_pid(const struct pooled *p)
{
    return child_pid(p->child);
}

void pool_back(struct pool *pool, struct pooled *p, bool fit)
{
    bool once = json_bool_or(p->wish, "once", false);

    if (once) {
        pool->back_ms = clock_ms();
        json_incref(p->wish);
        json_decref(pool->spare);
        pool->spare = p->wish;
    }
    if (fit && !once && child_quiet(p->child))
        set_state(p, WAITING);
    else
        end(p);
}

/* Is no timing in progress that a start could disturb? A client that times has borrowed such a
 * process; one with only a builder or an oracle is not yet timing. */
static bool nothing_is_timed(const struct pool *pool)
{
    for (size_t i = 0; i < pool->count; i++)
        if (pool->all[i]->state == LENT && json_bool_or(pool->all[i]->wish, "once", false))
            return false;
    return true;
}

static bool nothing_is_lent(const struct pool *pool)
{
    for (size_t i = 0; i < pool->count; i++)
        if (pool->all[i]->state == LENT)
            return false;
    return true;
}

static bool wants_spare(const struct pool *pool)
{
    return nothing_is_timed(pool) && pool->spare &&
           count_waiting(pool, pool->spare) <
               waiting_limit(json_string_or(pool->spare, "kind", ""));
}

static void add_spares(struct pool *pool)
{
    struct error ignored = {0};

    while (wants_spare(pool) && clock_ms() - pool->back_ms >= QUIET_MS)
        if (!add(pool, pool->spare, &ignored)) {
            json_decref(pool->spare);
            pool->spare = NULL;
        }
}

/* Not beside a timing; and not where it would be most of what may wait. */
static bool may_start_copier(const struct pool *pool)
{
    return nothing_is_timed(pool) && pool->limits.memory_bytes >= COPIER_POOL_BYTES;
}

int pool_wait_ms(const struct pool *pool)
{
    bool copier = may_start_copier(pool) && copiers_wanted(pool->copiers);

    return wants_spare(pool) || copier ? QUIET_MS : TEND_MS;
}

/* ---- tending ------------------------------------------------------------- */

/* Memory of the process and its children: a builder's second process uses more than the builder. */
static uint64_t resident_bytes(int pid)
{
    char path[64], list[512], *at = list;
    uint64_t sum = proc_resident_bytes(pid);
    ssize_t n = 0;
    int fd;

    snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        n = read(fd, list, sizeof list - 1);
        close(fd);
    }
    list[n > 0 ? n : 0] = '\0';
    for (long child; (child = strtol(at, &at, 10)) > 0;)
        sum += proc_resident_bytes((int)child);
    return sum;
}

static struct pooled *oldest_waiting(const struct pool *pool, const char *kind)
{
    struct pooled *oldest = NULL;

    for (size_t i = 0; i < pool->count; i++) {
        struct pooled *p = pool->all[i];

        if (p->state == WAITING && (!kind || strcmp(wish_text(p, "kind"), kind) == 0) &&
            (!oldest || p->since_ms < oldest->since_ms))
            oldest = p;
    }
    return oldest;
}

static void end_too_many(struct pool *pool)
{
    for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
        int waiting = 0;

        for (size_t i = 0; i < pool->count; i++)
            waiting += pool->all[i]->state == WAITING &&
                       strcmp(wish_text(pool->all[i], "kind"), kinds[k].kind) == 0;
        for (; waiting > kinds[k].waiting; waiting--)
            end(oldest_waiting(pool, kinds[k].kind));
    }
}

static void end_too_big(struct pool *pool)
{
    uint64_t sum = copiers_memory(pool->copiers);

    for (size_t i = 0; i < pool->count; i++)
        if (pool->all[i]->state == WAITING)
            sum += resident_bytes(pool_pid(pool->all[i]));
    while (sum > pool->limits.memory_bytes) {
        struct pooled *p = oldest_waiting(pool, NULL);
        uint64_t bytes;

        if (!p)
            return;
        bytes = resident_bytes(pool_pid(p));
        end(p);
        sum -= bytes < sum ? bytes : sum;
    }
}

void pool_tend(struct pool *pool)
{
    int64_t now = clock_ms();
    size_t kept = 0;

    for (size_t i = 0; i < pool->count; i++) {
        struct pooled *p = pool->all[i];

        if (p->state == WAITING &&
            (now - p->since_ms > pool->limits.idle_ms || !child_quiet(p->child)))
            end(p);
    }
    end_too_many(pool);
    end_too_big(pool);
    for (size_t i = 0; i < pool->count; i++) {
        struct pooled *p = pool->all[i];

        if (p->state != ENDING || !child_gone(p->child)) {
            pool->all[kept++] = p;
            continue;
        }
        json_decref(p->wish);
        xfree(p);
    }
    pool->count = kept;
    add_spares(pool);
    copiers_tend(pool->copiers, may_start_copier(pool), nothing_is_lent(pool));
}

void pool_trim(struct pool *pool)
{
    copiers_trim(pool->copiers);
    json_decref(pool->spare);
    pool->spare = NULL;
    for (size_t i = 0; i < pool->count; i++)
        if (pool->all[i]->state == WAITING)
            end(pool->all[i]);
}

void pool_free(struct pool *pool)
{
    json_decref(pool->spare);
    pool->spare = NULL;
    for (size_t i = 0; i < pool->count; i++)
        end(pool->all[i]);
    while (pool->count > 0) {
        pool_tend(pool);
        usleep(1000);
    }
    copiers_free(pool->copiers);
    xfree(pool);
}

json_t *pool_status(const struct pool *pool)
{
    static const char *const states[] = {"lent", "waiting", "ending"};
    json_t *list = json_array(), *copiers = copiers_status(pool->copiers);

    for (size_t i = 0; i < pool->count; i++) {
        const struct pooled *p = pool->all[i];

        json_array_append_new(
            list,
            json_pack("{s:s, s:s, s:s, s:i, s:i, s:I, s:I}", "kind", wish_text(p, "kind"), "state",
                      states[p->state], "tag", wish_text(p, "tag"), "pid", pool_pid(p), "uses",
                      p->uses, "seconds", (json_int_t)((clock_ms() - p->since_ms) / 1000),
                      "resident_mib", (json_int_t)(resident_bytes(pool_pid(p)) >> 20)));
    }
    json_array_extend(list, copiers);
    json_decref(copiers);
    return list;
}
