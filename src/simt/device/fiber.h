/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fiber.h - coroutines with their own stacks, for x86_64 and aarch64.
 *
 *     fiber_init(&f, bytes)   maps a stack with a guard page below it
 *     fiber_start(&f, fn, x)  the next resume runs fn(x), which must not return
 *     fiber_resume(&f)        runs it until it yields
 *     fiber_yield(&f)         from inside: back to the resumer
 */
#ifndef SIMT_FIBER_H
#define SIMT_FIBER_H

#include <stdbool.h>
#include <stddef.h>

struct fiber {
    void *sp, *back;
    char *stack;
    size_t bytes;
    void (*fn)(void *);
    void *arg;
    /* AddressSanitizer is told of every switch: the fiber's own shadow, and the resumer's stack. */
    void *shadow;
    const void *back_stack;
    size_t back_bytes;
    void *tsan, *tsan_back; /* ThreadSanitizer's names of the fiber and of its resumer */
};

bool fiber_init(struct fiber *f, size_t bytes);
void fiber_release(struct fiber *f);
void fiber_start(struct fiber *f, void (*fn)(void *), void *arg);
void fiber_resume(struct fiber *f);
void fiber_yield(struct fiber *f);

#endif
