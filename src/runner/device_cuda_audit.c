/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_cuda_audit.c - check that memory a plan must not write is unchanged.
 *
 * Such memory is the inputs, the memory around inputs, outputs and workspace, and buffers of
 * earlier rounds, which stay mapped. A kernel that writes there while it is timed could keep
 * answers from one sample to the next and restore everything before the oracle compares, because it
 * can count the runs of a measurement. So the audit runs after randomly chosen samples.
 *
 * The flush's memory needs no audit: every flush reads all of it.
 */
#include "runner/device_cuda.h"

#include <string.h>
#include <sys/random.h>

/* Half of the first samples, since a slow kernel has no others; then one in sixteen. */
enum { FIRST_SAMPLES = 8, ONE_IN_FIRST = 2, ONE_IN = 16 };

bool cuda_audit_due(size_t sample)
{
    unsigned char dice;

    if (getrandom(&dice, sizeof dice, GRND_NONBLOCK) != (ssize_t)sizeof dice)
        return true;
    return dice % (sample < FIRST_SAMPLES ? ONE_IN_FIRST : ONE_IN) == 0;
}

/* Adds the bytes of [from, to) to the hash; unaligned bytes are read through the host. */
static int add_zone(struct cuda_device *d, uint64_t from, uint64_t to, uint64_t *h)
{
    uint64_t part = 0, odd = (sizeof part - from % sizeof part) % sizeof part;
    int result = CUDA_OK;

    if (from >= to)
        return CUDA_OK;
    odd = odd < to - from ? odd : to - from;
    if (odd > 0)
        result = d->api.copy_to_host(&part, from, odd, d->stream);
    if (result == CUDA_OK && (to - from - odd) / sizeof part > 0)
        result = cuda_enqueue_hash(d, from + odd, (to - from - odd) / sizeof part, from);
    if (result == CUDA_OK && odd > 0)
        result = d->api.stream_wait(d->stream);
    *h = device_hash_bytes(*h, &part, sizeof part);
    return result;
}

static int add_buffer(struct cuda_device *d, const struct plan_buffer *b, uint64_t *h)
{
    uint64_t start = b->address, end = b->address + b->bytes;
    size_t size;
    int result;

    if (!b->address)
        return CUDA_OK;
    if (b->kind == BUFFER_WORKSPACE) {
        start -= CUDA_GUARD_BYTES;
        end += cuda_guard_after(b);
    } else if (d->api.address_range(&start, &size, b->address) == CUDA_OK) {
        end = start + size;
    } else {
        start = b->address; /* this driver cannot tell where the allocation ends */
    }
    if (b->kind == BUFFER_IN)
        return add_zone(d, start, end, h);
    result = add_zone(d, start, b->address, h);
    return result == CUDA_OK ? add_zone(d, b->address + b->bytes, end, h) : result;
}

/* Buffers bound earlier, which are no longer used. */
static int add_former(struct cuda_device *d, const struct plan *plan, uint64_t *h)
{
    int result = CUDA_OK;

    for (size_t i = 0; i < d->mapping_count && result == CUDA_OK; i++) {
        uint64_t start = 0;
        size_t size = 0;
        bool bound = d->api.address_range(&start, &size, d->mappings[i].address) != CUDA_OK;

        for (size_t k = 0; k < plan->buffer_count && !bound; k++)
            bound = plan->buffers[k].address >= start && plan->buffers[k].address - start < size;
        if (!bound)
            result = add_zone(d, start, start + size, h);
    }
    return result;
}

static bool audit(struct cuda_device *d, const struct plan *plan, uint64_t *out, struct error *err)
{
    uint64_t h = 1, sum = 0;
    int result = d->api.memset8(d->sink_address, 0, sizeof sum, d->stream);

    for (size_t i = 0; i < plan->buffer_count && result == CUDA_OK; i++)
        result = add_buffer(d, &plan->buffers[i], &h);
    if (result == CUDA_OK)
        result = add_former(d, plan, &h);
    if (result == CUDA_OK)
        result = d->api.copy_to_host(&sum, d->sink_address, sizeof sum, d->stream);
    if (result == CUDA_OK)
        result = d->api.stream_wait(d->stream);
    *out = device_hash_bytes(h, &sum, sizeof sum);
    return result == CUDA_OK || cuda_error(d, result, "reading what the plan may not write", err);
}

bool cuda_audit_begin(struct cuda_device *d, const struct plan *plan, struct error *err)
{
    d->audited = d->audited || audit(d, plan, &d->untouched, err);
    return d->audited;
}

bool cuda_audit(struct cuda_device *d, const struct plan *plan, struct outcome *said,
                struct error *err)
{
    uint64_t now;

    if (!audit(d, plan, &now, err))
        return false;
    if (now == d->untouched || json_array_size(said->findings) > 0)
        return true;
    if (!said->findings)
        said->findings = json_array();
    json_array_append_new(said->findings,
                          json_pack("{s:s, s:s, s:s}", "kind", "out-of-bounds write", "kernel", "",
                                    "text",
                                    "while it was timed, inputs or the memory around its buffers "
                                    "were not as they had been"));
    return true;
}
