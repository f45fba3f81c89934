/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pch_memory.c - load precompiled headers into large pages.
 *
 * NVRTC parses in one heap of nvrtcSetPCHHeapSize() bytes. It takes a
 * precompiled header back by mapping its file into that heap, 64 KB at a
 * time, and then writes to most of it: every page is a fault and a copy, 150,000 of them for a
 * precompiled GEMM (precompiled_source.h). mmap() as NVRTC calls it is this one: the heap asks for
 * large pages, and pieces of the file are read into it. Such a file never changes, so reading it is
 * equivalent to mapping it.
 */
#undef _FILE_OFFSET_BITS /* we need to define mmap() itself, not an alias of mmap64() */

#include "toolchain/pch_memory.h"

#include "base/sanitized.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SANITIZED /* which has an mmap() of its own */

static char *heap; /* NULL: not seen yet */

static bool is_heap(size_t len, int flags, int fd)
{
    return fd < 0 && (flags & MAP_ANONYMOUS) && len == PCH_HEAP_BYTES;
}

static bool lies_in_heap(const void *at, size_t len)
{
    uintptr_t from = (uintptr_t)at - (uintptr_t)heap;

    return heap != NULL && (uintptr_t)at >= (uintptr_t)heap && from <= PCH_HEAP_BYTES &&
           len <= PCH_HEAP_BYTES - from;
}

static bool read_whole(int fd, char *to, size_t len, off_t offset)
{
    while (len > 0) {
        ssize_t n = pread(fd, to, len, offset);

        if (n <= 0)
            return false;
        to += n;
        len -= (size_t)n;
        offset += n;
    }
    return true;
}

static void *kernel_mmap(void *at, size_t len, int prot, int flags, int fd, off_t offset)
{
    return (void *)syscall(SYS_mmap, at, len, prot, flags, fd, offset);
}

void *mmap(void *at, size_t len, int prot, int flags, int fd, off_t offset)
{
    const int piece = MAP_PRIVATE | MAP_FIXED;
    void *p;

    if (fd >= 0 && flags == piece && prot == (PROT_READ | PROT_WRITE) && lies_in_heap(at, len) &&
        read_whole(fd, at, len, offset))
        return at;
    p = kernel_mmap(at, len, prot, flags, fd, offset);
    if (p != MAP_FAILED && is_heap(len, flags, fd)) {
        heap = p;
        madvise(p, len, MADV_HUGEPAGE); /* a machine without them uses small ones */
    }
    return p;
}

void *mmap64(void *at, size_t len, int prot, int flags, int fd, off_t offset)
    __attribute__((alias("mmap")));

#endif
