/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c - device, managed and pinned memory: mappings of this process with guard pages on both
 * sides, registered with simt with exactly the requested size.
 *
 * Freed memory is kept unreadable for a while, so that its address is not reused and a later access
 * is a finding instead of a read of other data.
 */
#include "simt/cuda/cuda.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 65536, QUARANTINE = 128 };

static struct cu_memory *list; /* by address */
static size_t count, cap;
static uint64_t used, next_number = 1;
static struct cu_memory gone[QUARANTINE];
static size_t gone_at;

/* The first whose base is above the address. */
static size_t above(uintptr_t at)
{
    size_t lo = 0, hi = count;

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;

        if (list[mid].base <= at)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

const struct cu_memory *memory_find(const void *at)
{
    size_t i = above((uintptr_t)at);

    if (!i || (uintptr_t)at - list[i - 1].base >= list[i - 1].bytes)
        return NULL;
    return &list[i - 1];
}

bool memory_allows(const void *at, size_t bytes)
{
    const struct cu_memory *m = memory_find(at);

    return !bytes || !m || bytes <= m->bytes - ((uintptr_t)at - m->base);
}

static void insert(const struct cu_memory *m)
{
    size_t i = above(m->base);

    if (count == cap) {
        cap = cap ? cap * 2 : 64;
        list = xrealloc(list, cap * sizeof *list);
    }
    memmove(&list[i + 1], &list[i], (count - i) * sizeof *list);
    list[i] = *m;
    count++;
}

static void take_out(size_t i)
{
    memmove(&list[i], &list[i + 1], (count - i - 1) * sizeof *list);
    count--;
}

void *memory_alloc(struct cuda *c, size_t bytes, enum memory_kind kind)
{
    static const char *const names[] = {"allocation", "managed allocation", "pinned allocation",
                                        ""};
    struct cu_memory m = {.bytes = bytes, .kind = kind, .number = next_number};
    char name[96];
    char *map;

    if (!bytes || bytes > c->gpu.memory_bytes || used > c->gpu.memory_bytes - bytes)
        return NULL;
    m.map_bytes = (bytes + PAGE - 1) / PAGE * PAGE + 2 * (size_t)PAGE;
    map = mmap(NULL, m.map_bytes, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED)
        return NULL;
    mprotect(map, PAGE, PROT_NONE);
    mprotect(map + m.map_bytes - PAGE, PAGE, PROT_NONE);
    m.map = map;
    m.base = (uintptr_t)map + PAGE;
    insert(&m);
    used += bytes;
    snprintf(name, sizeof name, "%s %llu (%zu bytes)", names[kind],
             (unsigned long long)next_number++, bytes);
    /* The host stores to managed and pinned memory without a call. */
    simt_alloc_register(c->simt, (void *)m.base, bytes, name,
                        kind == MEMORY_DEVICE ? 0 : SIMT_ALLOC_WRITTEN);
    return (void *)m.base;
}

static void put_aside(const struct cu_memory *m)
{
    struct cu_memory *old = &gone[gone_at++ % QUARANTINE];

    if (old->map)
        munmap(old->map, old->map_bytes);
    madvise(m->map, m->map_bytes, MADV_DONTNEED);
    mprotect(m->map, m->map_bytes, PROT_NONE);
    *old = *m;
}

int memory_free(struct cuda *c, void *base)
{
    size_t i = above((uintptr_t)base);

    if (!base)
        return CU_OK;
    if (!i || list[i - 1].base != (uintptr_t)base || !list[i - 1].map)
        return CU_INVALID_VALUE;
    simt_alloc_forget(c->simt, base);
    used -= list[i - 1].bytes;
    put_aside(&list[i - 1]);
    take_out(i - 1);
    return CU_OK;
}

int memory_register(struct cuda *c, void *base, size_t bytes, bool written)
{
    struct cu_memory m = {.base = (uintptr_t)base, .bytes = bytes, .kind = MEMORY_REGISTERED};
    const struct cu_memory *was = memory_find(base);
    char name[96];

    if (!base || !bytes)
        return CU_INVALID_VALUE;
    if (was)
        return CU_ALREADY_REGISTERED;
    m.number = next_number++;
    insert(&m);
    snprintf(name, sizeof name, "registered memory %llu (%zu bytes)", (unsigned long long)m.number,
             bytes);
    simt_alloc_register(c->simt, base, bytes, name, written ? SIMT_ALLOC_WRITTEN : 0);
    return CU_OK;
}

int memory_unregister(struct cuda *c, void *base)
{
    size_t i = above((uintptr_t)base);

    if (!i || list[i - 1].base != (uintptr_t)base || list[i - 1].kind != MEMORY_REGISTERED)
        return CU_NOT_REGISTERED;
    simt_alloc_forget(c->simt, base);
    take_out(i - 1);
    return CU_OK;
}

/* Already registered with simt; copies to it are checked here. */
void memory_module_variable(void *base, size_t bytes)
{
    struct cu_memory m = {.base = (uintptr_t)base, .bytes = bytes, .kind = MEMORY_DEVICE};

    if (!memory_find(base) && bytes)
        insert(&m);
}

uint64_t memory_used(void)
{
    return used;
}
