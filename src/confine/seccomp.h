/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seccomp.h - a seccomp filter, written directly in BPF so that no library is needed.
 *
 * Call filter_begin() first: it rejects all but the native architecture, since x32 numbers would
 * bypass every comparison. The accumulator holds the call's number between rules. Arguments are 64
 * bits wide; only their low half is compared (little-endian).
 */
#ifndef CONFINE_SECCOMP_H
#define CONFINE_SECCOMP_H

#include "base/error.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#define OUR_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OUR_ARCH AUDIT_ARCH_AARCH64
#else
#error "the filters know the system calls of x86_64 and aarch64 only"
#endif

enum { FILTER_MAX = 640 };

struct filter {
    struct sock_filter code[FILTER_MAX];
    unsigned short len;
};

static inline void filter_emit(struct filter *f, unsigned code, uint32_t k, unsigned char yes,
                               unsigned char no)
{
    if (f->len == FILTER_MAX)
        BUG("the system call filter is longer than %d", FILTER_MAX);
    f->code[f->len++] =
        (struct sock_filter){.code = (unsigned short)code, .jt = yes, .jf = no, .k = k};
}

static inline void filter_load(struct filter *f, size_t offset)
{
    filter_emit(f, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static inline void filter_load_argument(struct filter *f, int index)
{
    filter_load(f, offsetof(struct seccomp_data, args) + (size_t)index * sizeof(uint64_t));
}

static inline void filter_give(struct filter *f, unsigned action)
{
    filter_emit(f, BPF_RET | BPF_K, action, 0, 0);
}

/* `otherwise`: what x32 numbers get. */
static inline void filter_begin(struct filter *f, unsigned otherwise)
{
    filter_load(f, offsetof(struct seccomp_data, arch));
    filter_emit(f, BPF_JMP | BPF_JEQ | BPF_K, OUR_ARCH, 1, 0);
    filter_give(f, SECCOMP_RET_KILL_PROCESS);
    filter_load(f, offsetof(struct seccomp_data, nr));
#ifdef __x86_64__
    filter_emit(f, BPF_JMP | BPF_JGE | BPF_K, 0x40000000u, 0, 1);
    filter_give(f, otherwise);
#else
    (void)otherwise;
#endif
}

static inline void filter_on(struct filter *f, long call, unsigned action)
{
    filter_emit(f, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 1);
    filter_give(f, action);
}

#endif
