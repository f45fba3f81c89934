/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_cuda_time.c - time a plan on the CUDA device.
 *
 * A sample is one run of the plan between two events: a replay of its graph, or the launch itself
 * where there is only one. A graph adds some percent to a single launch of six microseconds, and by
 * a varying amount.
 *
 *     cold: restore outputs, poison workspace, scrub shared memory, flush L2, wait kernel, [ run ]
 *     warm: run, wait kernel, [ run ]
 *
 * The flush READS a buffer several times the size of L2: a flush that writes
 * leaves dirty lines, and evicting them would be charged to the candidate.
 * The wait kernel holds the GPU for some microseconds, so that the replay is
 * queued before the first event fires and the host's launch time stays out.
 * L2 keeps lines that a kernel marked (evict_last) or read repeatedly, and the flush's reads alone
 * would leave many of them there; so they are first reset to ordinary lines. These steps ensure
 * that no sample can use data of an earlier one, nor detect that it is being timed. Every cold
 * sample's outputs are checked, because a kernel that skips half of its runs would have a short
 * median. After some samples, memory that it must not write is checked (device_cuda_audit.c).
 */
#include "base/clock.h"
#include "runner/device_cuda.h"

#include <stdio.h>

enum { WARM_UP = 3, LEAST_SAMPLES = 5, WALL_REPLAYS = 20, WALL_LEAST = 3, WALL_MS = 5 };
/* Times this long are steady, and dozens of replays would take too long. */
enum { SLOW_US = 20000, LEAST_SLOW = 2 };

static int run_once(struct cuda_device *d, const struct plan *plan)
{
    if (plan->op_count == 1)
        return cuda_enqueue(d, plan, 0);
    return d->api.graph_launch(d->exec, d->stream);
}

/* Earlier work is already in the stream. */
static int sample(struct cuda_device *d, const struct plan *plan, double *out_us)
{
    float ms = 0;
    int result = cuda_enqueue_wait(d);

    if (result == CUDA_OK)
        result = d->api.event_record(d->start, d->stream);
    if (result == CUDA_OK)
        result = run_once(d, plan);
    if (result == CUDA_OK)
        result = d->api.event_record(d->stop, d->stream);
    if (result == CUDA_OK)
        result = d->api.stream_wait(d->stream);
    if (result == CUDA_OK)
        result = d->api.event_elapsed(&ms, d->start, d->stop);
    *out_us = (double)ms * 1000.0;
    return result;
}

static int warm_samples(struct cuda_device *d, const struct plan *plan, struct runner_samples *s,
                        size_t least, int64_t until_ms)
{
    size_t wanted = s->warm_count;
    int result = CUDA_OK;

    for (s->warm_count = 0; s->warm_count < wanted && result == CUDA_OK;) {
        if (s->warm_count >= least && clock_ms() > until_ms)
            break;
        result = run_once(d, plan);
        if (result == CUDA_OK)
            result = sample(d, plan, &s->warm_us[s->warm_count]);
        s->warm_count += result == CUDA_OK;
    }
    return result;
}

/* Erases everything that a kernel could have left for a later run. */
static bool forget(struct cuda_device *d, const struct plan *plan, struct error *err)
{
    int result = CUDA_OK;

    if (d->api.reset_kept)
        /* the stream is empty; fails on a device without persisting L2 */
        (void)d->api.reset_kept();
    if (!cuda_poison(d, plan, err))
        return false;
    for (size_t i = 0; i < plan->buffer_count && result == CUDA_OK; i++)
        if (plan->buffers[i].kind == BUFFER_OUT)
            result =
                cuda_enqueue_fill(d, plan->buffers[i].address, plan->buffers[i].bytes, d->fresh[i]);
    if (result == CUDA_OK) /* even a kernel without shared memory can access some of it */
        result = cuda_enqueue_scrub(d);
    if (result == CUDA_OK && d->local_bytes > 0)
        result = cuda_enqueue_stack_scrub(d);
    return result == CUDA_OK || cuda_error(d, result, "clearing what a run left behind", err);
}

static bool cold_samples(struct cuda_device *d, const struct plan *plan, struct runner_samples *s,
                         size_t least, int64_t until_ms, int *result, struct outcome *said,
                         struct error *err)
{
    size_t wanted = s->cold_count;
    uint64_t first = 0, hash = 0;

    *result = CUDA_OK;
    for (s->cold_count = 0; s->cold_count < wanted && *result == CUDA_OK;) {
        if (s->cold_count >= least && clock_ms() > until_ms)
            break;
        if (!forget(d, plan, err))
            return false;
        *result = cuda_enqueue_flush(d);
        if (*result == CUDA_OK)
            *result = sample(d, plan, &s->cold_us[s->cold_count]);
        if (*result == CUDA_OK && !cuda_hash(&d->base, plan, &hash, err))
            return false;
        if (*result == CUDA_OK && cuda_audit_due(s->cold_count) && !cuda_audit(d, plan, said, err))
            return false;
        if (s->cold_count == 0)
            first = hash;
        s->other_outputs += hash != first;
        s->cold_count += *result == CUDA_OK;
    }
    return true;
}

/* Host time over several consecutive replays, as many as are useful. */
static int wall_time(struct cuda_device *d, const struct plan *plan, int replays, double *out_us)
{
    int64_t start = clock_us();
    int result = CUDA_OK;

    for (int i = 0; i < replays && result == CUDA_OK; i++)
        result = run_once(d, plan);
    if (result == CUDA_OK)
        result = d->api.stream_wait(d->stream);
    *out_us = (double)(clock_us() - start) / replays;
    return result;
}

static int wall_replays(double once_us)
{
    double fit = once_us > 0 ? WALL_MS * 1000.0 / once_us : WALL_REPLAYS;

    return fit < WALL_LEAST ? WALL_LEAST : fit > WALL_REPLAYS ? WALL_REPLAYS : (int)fit;
}

static bool look_at_flush(struct cuda_device *d, struct outcome *said, struct error *err)
{
    bool spoilt;

    if (!cuda_flush_spoilt(d, &spoilt, err))
        return false;
    if (!spoilt)
        return true;
    if (!said->findings)
        said->findings = json_array();
    json_array_append_new(said->findings,
                          json_pack("{s:s, s:s, s:s}", "kind", "out-of-bounds write", "kernel", "",
                                    "text", "memory that is none of its buffers was overwritten"));
    return true;
}

/* Cold samples last, because the oracle compares the outputs of a cold replay afterwards. */
bool cuda_time(struct run_device *base, struct plan *plan, struct runner_samples *s,
               struct outcome *said, struct error *err)
{
    struct cuda_device *d = (struct cuda_device *)base;
    int budget_ms = s->budget_ms > 0 ? s->budget_ms : INT32_MAX;
    int64_t start_ms = clock_ms();
    size_t least = LEAST_SAMPLES;
    int result = CUDA_OK;

    if (!cuda_tools(d, err) || !cuda_audit_begin(d, plan, err))
        return false;
    if (!cuda_prepare(d, plan, said, err))
        return said->kind != OUTCOME_OK;
    result =
        wall_time(d, plan, 1, &s->wall_us); /* the first replay may take longer than later ones */
    if (result == CUDA_OK)
        result = wall_time(d, plan, 1, &s->wall_us);
    if (result == CUDA_OK && s->wall_us > SLOW_US)
        least = LEAST_SLOW;
    else if (result == CUDA_OK)
        result = wall_time(d, plan, WARM_UP - 2, &s->wall_us);
    if (result == CUDA_OK && least == LEAST_SAMPLES)
        result = wall_time(d, plan, wall_replays(s->wall_us), &s->wall_us);
    if (result == CUDA_OK)
        result = warm_samples(d, plan, s, least, start_ms + budget_ms / 2);
    if (result == CUDA_OK &&
        !cold_samples(d, plan, s, least, start_ms + budget_ms, &result, said, err))
        return false;
    if (result != CUDA_OK)
        return cuda_fault(d, plan, -1, result, said), true;
    return look_at_flush(d, said, err);
}
