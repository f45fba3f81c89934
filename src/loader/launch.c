/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.c - a case on one device: its argument blocks, and the calls of the driver.
 *
 * Everything but addresses is laid out once. A call fills in addresses and the stream, encodes the
 * tensor maps whose address changed, makes the device's context current, queues the launches, and
 * restores the caller's context.
 */
#include "loader/loader.h"

#include <string.h>

enum { MAP_BYTES = 128, MAP_ALIGN = 64, ATTRIBUTE_CLUSTER = 4, ATTRIBUTE_SERIALIZATION = 6 };

/* ---- layout ---------------------------------------------------------------------- */

static void lay_attributes(const struct loader_step *s, bool must, struct loader_launch_block *b)
{
    uint32_t n = 0;

    if (must || s->cluster[0] * s->cluster[1] * s->cluster[2] > 1) {
        b->attributes[n].id = ATTRIBUTE_CLUSTER;
        memcpy(b->attributes[n++].value, s->cluster, sizeof s->cluster);
    }
    if (s->overlap) {
        b->attributes[n].id = ATTRIBUTE_SERIALIZATION;
        b->attributes[n++].value[0] = 1;
    }
    b->config.attributes = b->attributes;
    b->config.attribute_count = n;
}

static bool lay_launch(const struct loader_step *s, struct loader_device *d, uint64_t **slot,
                       struct loader_launch_block *b, struct loader_room *room)
{
    memcpy(b->config.grid, s->grid, sizeof s->grid);
    memcpy(b->config.block, s->block, sizeof s->block);
    b->config.smem = s->smem;
    b->params = room_take(room, (size_t)s->argument_count + 1, sizeof *b->params, 16);
    if (!b->params)
        return false;
    for (int32_t i = 0; i < s->argument_count; i++) {
        const struct loader_argument *a = &s->arguments[i];

        if (a->kind == ARGUMENT_POINTER)
            b->params[i] = (*slot)++;
        else if (a->kind == ARGUMENT_BYTES)
            b->params[i] = (void *)(uintptr_t)a->bytes; /* the driver reads it */
        else
            b->params[i] = d->maps + (size_t)a->map * MAP_BYTES;
    }
    return true;
}

static size_t pointer_count(const struct loader_case *c)
{
    size_t n = 0;

    for (int32_t i = 0; i < c->step_count; i++)
        for (int32_t k = 0; c->steps[i].is_launch && k < c->steps[i].argument_count; k++)
            n += c->steps[i].arguments[k].kind == ARGUMENT_POINTER;
    return n;
}

struct loader_device *device_lay(const struct loader_case *c, void *context,
                                 const uint64_t *functions, const int32_t *must_cluster,
                                 struct loader_room *room)
{
    struct loader_device *d = room_take(room, 1, sizeof *d, 16);
    uint64_t *slot;

    if (!d)
        return NULL;
    d->maps = room_take(room, (size_t)c->map_count + 1, MAP_BYTES, MAP_ALIGN);
    d->map_addresses = room_take(room, (size_t)c->map_count + 1, sizeof *d->map_addresses, 16);
    d->slots = room_take(room, pointer_count(c) + 1, sizeof *d->slots, 16);
    d->launches = room_take(room, (size_t)c->step_count + 1, sizeof *d->launches, 16);
    if (!d->maps || !d->map_addresses || !d->slots || !d->launches ||
        pthread_mutex_init(&d->lock, NULL))
        return NULL;
    d->context = context;
    slot = d->slots;
    for (int32_t i = 0; i < c->step_count; i++) {
        const struct loader_step *s = &c->steps[i];
        struct loader_launch_block *b = &d->launches[i];

        if (!s->is_launch)
            continue;
        b->function = (void *)(uintptr_t)functions[s->function]; /* the driver's handle */
        lay_attributes(s, must_cluster[s->function], b);
        if (!lay_launch(s, d, &slot, b, room))
            return NULL;
    }
    return d;
}

/* ---- a call -------------------------------------------------------------------------- */

static uint64_t address_of(const uint64_t *addresses, const struct loader_source *s)
{
    return addresses[s->buffer] + (uint64_t)s->offset;
}

static void fill_slots(const struct loader_case *c, struct loader_device *d,
                       const uint64_t *addresses)
{
    uint64_t *slot = d->slots;

    for (int32_t i = 0; i < c->step_count; i++)
        for (int32_t k = 0; c->steps[i].is_launch && k < c->steps[i].argument_count; k++)
            if (c->steps[i].arguments[k].kind == ARGUMENT_POINTER)
                *slot++ = address_of(addresses, &c->steps[i].arguments[k].at);
}

static int encode_maps(const struct driver_calls *driver, const struct loader_case *c,
                       struct loader_device *d, const uint64_t *addresses)
{
    for (int32_t i = 0; i < c->map_count; i++) {
        const struct loader_map *m = &c->maps[i];
        uint64_t at = address_of(addresses, &m->at);
        int result;

        if (at == d->map_addresses[i])
            continue;
        d->map_addresses[i] = 0;
        result = driver->encode(d->maps + (size_t)i * MAP_BYTES, m->dtype, (uint32_t)m->rank,
                                (void *)(uintptr_t)at, m->dims, m->strides, m->box,
                                m->element_strides, 0, m->swizzle, m->l2, m->fill);
        if (result) {
            loader_tell("encoding a tensor map: driver error %d", result);
            return result;
        }
        d->map_addresses[i] = at;
    }
    return 0;
}

static int queue_steps(const struct driver_calls *driver, const struct loader_case *c,
                       struct loader_device *d, void *stream, const uint64_t *addresses)
{
    for (int32_t i = 0; i < c->step_count; i++) {
        const struct loader_step *s = &c->steps[i];
        struct loader_launch_block *b = &d->launches[i];
        int result = 0;

        if (s->is_launch) {
            b->config.stream = stream;
            result = driver->launch(&b->config, b->function, b->params, NULL);
        } else if (s->bytes) {
            result = driver->set(address_of(addresses, &s->at), s->value, (size_t)s->bytes, stream);
        }
        if (result) {
            loader_tell("launching step %d: driver error %d", (int)i, result);
            return result;
        }
    }
    return 0;
}

int device_launch(const struct driver_calls *driver, const struct loader_case *c,
                  struct loader_device *d, void *stream, uint64_t *addresses, uint64_t workspace)
{
    void *before = NULL;
    int result, first = c->input_count + c->output_count;
    bool pushed;

    for (int32_t i = 0; i < c->workspace_count; i++)
        addresses[first + i] = workspace + (uint64_t)c->workspace_at[i];
    pushed = driver->current(&before) || before != d->context;
    if (pushed && (result = driver->push(d->context))) {
        loader_tell("making the context current: driver error %d", result);
        return result;
    }
    pthread_mutex_lock(&d->lock);
    fill_slots(c, d, addresses);
    result = encode_maps(driver, c, d, addresses);
    if (!result)
        result = queue_steps(driver, c, d, stream, addresses);
    pthread_mutex_unlock(&d->lock);
    if (pushed)
        driver->pop(&before);
    return result;
}
