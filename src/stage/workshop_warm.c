/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workshop_warm.c - where the workshop's processes come from, and whose turn on the GPU it is.
 *
 * With the warm server, builders and oracles outlive this command; without it
 * (--no-server, or when it cannot be reached) they are started here. Nothing
 * else knows the difference.
 */
#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/log.h"
#include "stage/workshop.h"

#include <time.h>
#include <unistd.h>

/* SHARERS: a judgement needs about four times the task's bytes, and there may be some of them. */
enum { LEASE_WAIT_MS = 3600 * 1000, SHARERS = 32 };

/* Waits for memory that another program holds: 1, 2, 4, ... seconds, about ten minutes in all. */
enum { ROOM_ATTEMPTS = 16, ROOM_FIRST_MS = 1000, ROOM_MOST_MS = 60 * 1000 };

const struct child_source *workshop_source(const struct stage *st)
{
    return st->warm ? warm_source(st->warm) : NULL;
}

/* ---- oracle -------------------------------------------------------------- */

/* Same task, sizes and device: an oracle that knows it need not learn it again. */
static const char *load_tag(const struct stage *st, struct arena *a)
{
    char hex[65];

    hash_text(text_of(arena_printf(a, "%s %s %lld%s %s %s %d", st->load.task_path, st->load.device,
                                   (long long)st->load.max_elements,
                                   st->load.as_written ? " as written" : "",
                                   json_line(st->load.set, a), st->load.baseline,
                                   st->load.backward ? -1 - st->load.variant : st->load.variant)),
              hex);
    return arena_printf(a, "%s %.12s", path_base(st->load.task_path), hex);
}

static bool start_and_load(struct stage *st, bool alone, struct arena *a, struct task *out,
                           struct error *err)
{
    bool gpu = st->device.kind == DEVICE_CUDA && !st->device.absent;
    struct oracle_config config = {.python = st->settings.python,
                                   .source = workshop_source(st),
                                   .tag = load_tag(st, a),
                                   .task = st->load.task_path,
                                   .task_network = st->settings.task_network,
                                   .cuda = gpu,
                                   .memory_bytes = (uint64_t)st->settings.task_memory_mib << 20};
    bool ok, held = st->lease != NULL;

    oracle_stop(st->oracle);
    st->oracle = NULL;
    if (!oracle_start(&config, &st->oracle, err))
        return false;
    if (gpu)
        oracle_ready(st->oracle, st->load.device); /* before others have to wait for it */
    if (gpu && !(alone ? workshop_lease(st, err) : workshop_share(st, NULL, err)))
        return false;
    ok = oracle_load(st->oracle, &st->load, a, out, err);
    if (!held)
        workshop_unlease(st);
    return ok;
}

bool workshop_oracle(struct stage *st, struct arena *a, struct task *out, struct error *err)
{
    struct error first = {0};

    for (int attempt = 0; !start_and_load(st, attempt > 0, a, out, &first); attempt++) {
        if (workshop_room(st, attempt, &first))
            continue;
        if (st->oracle && oracle_lost(st->oracle) && workshop_renew(st, err)) {
            *err = (struct error){0};
            return oracle_load(st->oracle, &st->load, a, out, err);
        }
        *err = first;
        return false;
    }
    return true;
}

bool workshop_renew(struct stage *st, struct error *err)
{
    struct arena *scratch;
    struct error why = {0};
    struct task *same;
    bool ok;

    if (!st->warm || !st->oracle || !oracle_lost(st->oracle))
        return false;
    log_warn("the warm server ended; going on without it");
    warm_close(st->warm);
    st->warm = NULL;
    scratch = arena_new();
    same = arena_alloc(scratch, sizeof *same);
    ok = start_and_load(st, st->alone, scratch, same, &why);
    if (ok) {
        json_decref(same->description);
        *err = (struct error){0};
    }
    arena_free(scratch);
    return ok;
}

/* ---- GPU ----------------------------------------------------------------- */

/* One lease per GPU for all users of the machine. */
static bool lease(struct stage *st, bool alone, struct error *err)
{
    const char *dir = access("/run/lock", W_OK) == 0 ? "/run/lock" : "/tmp";
    struct error busy = {0};
    char *path;

    if (st->device.kind != DEVICE_CUDA || (st->lease && (st->alone || !alone)))
        return true;
    workshop_unlease(st);
    if (st->device.absent) {
        error_set(err, ERROR_USE, "nothing runs on a %s that is not here", st->device.name);
        return error_hint(err, "--device for:%s is for `describe` and `build`", st->device.name);
    }
    path = arena_printf(st->a, "%s/cutegen-gpu-%s", dir,
                        st->device.place && *st->device.place
                            ? st->device.place
                            : arena_printf(st->a, "%d", st->device.index));
    if (!lock_enter(path, alone, 0, &st->lease, &busy)) {
        log_info("waiting for the GPU: another cutegen uses it");
        if (!lock_enter(path, alone, LEASE_WAIT_MS, &st->lease, err))
            return false;
    }
    st->alone = alone;
    log_debug(alone ? "the GPU is ours" : "the GPU is shared");
    return true;
}

bool workshop_lease(struct stage *st, struct error *err)
{
    return lease(st, true, err);
}

bool workshop_share(struct stage *st, const struct task *task, struct error *err)
{
    bool large = task && task->bytes_min * SHARERS > (double)st->device.memory_bytes;

    return lease(st, large, err);
}

void workshop_unlease(struct stage *st)
{
    if (st->lease) {
        oracle_rest(st->oracle);
        log_debug("the GPU is given back");
    }
    lock_drop(st->lease);
    st->lease = NULL;
    st->alone = false;
}

/* ---- device memory ------------------------------------------------------- */

/* Who holds the lease alone has the memory alone, as far as cutegen goes: the first attempt ends
 * oracles that wait in the server and those who share, the others wait for strangers. */
bool workshop_room(struct stage *st, int attempt, struct error *err)
{
    int wait_ms = attempt < 6 ? ROOM_FIRST_MS << attempt : ROOM_MOST_MS;
    bool held = st->lease != NULL;

    if (err->kind != ERROR_BUSY || attempt >= ROOM_ATTEMPTS)
        return false;
    if (attempt == 0 && st->warm)
        warm_trim(st->warm);
    log_warn("waiting %d s for memory of the GPU: %s", wait_ms / 1000, err->text);
    workshop_unlease(st);
    nanosleep(&(struct timespec){.tv_sec = wait_ms / 1000, .tv_nsec = wait_ms % 1000 * 1000000L},
              NULL);
    *err = (struct error){0};
    return !held || workshop_lease(st, err);
}
