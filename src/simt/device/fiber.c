/* SPDX-License-Identifier: Apache-2.0 */
/* fiber.c - saves what the ABI says a callee must keep, and swaps stacks. */
#include "simt/device/fiber.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define LEAVE(shadow, stack, bytes) __sanitizer_start_switch_fiber(shadow, stack, bytes)
#define ENTER(shadow, stack, bytes) __sanitizer_finish_switch_fiber(shadow, stack, bytes)
#define FORGET(stack, bytes)        __asan_unpoison_memory_region(stack, bytes)
#define HERE(fiber)                 ((void)0)
#define THERE(fiber)                ((void)0)
#elif defined(__SANITIZE_THREAD__)
/* To ThreadSanitizer a fiber is a thread that runs on its resumer's. */
#include <sanitizer/tsan_interface.h>
#define LEAVE(shadow, stack, bytes) ((void)0)
#define ENTER(shadow, stack, bytes) ((void)0)
#define FORGET(stack, bytes)        ((void)0)
#define HERE(fiber)                 ((fiber) = __tsan_get_current_fiber())
#define THERE(fiber)                __tsan_switch_to_fiber(fiber, 0)
#else
#define HERE(fiber)                 ((void)0)
#define THERE(fiber)                ((void)0)
#define LEAVE(shadow, stack, bytes) ((void)0)
#define ENTER(shadow, stack, bytes) ((void)0)
#define FORGET(stack, bytes)        ((void)0)
#endif

/* Below a stack nothing can be touched: pages of every size that machines have fit into it. */
enum { GUARD = 256 << 10 };

void simt_fiber_switch(void **save, void *to);
void simt_fiber_entry(void);

#if defined(__x86_64__)
__asm__(".text\n"
        ".globl simt_fiber_switch\n.hidden simt_fiber_switch\n.type simt_fiber_switch,@function\n"
        "simt_fiber_switch:\n"
        "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
        "  movq %rsp, (%rdi)\n"
        "  movq %rsi, %rsp\n"
        "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
        "  ret\n"
        ".size simt_fiber_switch,.-simt_fiber_switch\n"
        ".globl simt_fiber_entry\n.hidden simt_fiber_entry\n.type simt_fiber_entry,@function\n"
        "simt_fiber_entry:\n"
        "  movq %r13, %rdi\n"
        "  callq *%r12\n"
        "  ud2\n"
        ".size simt_fiber_entry,.-simt_fiber_entry\n");

static void prepare(struct fiber *f, void (*fn)(void *), void *arg)
{
    uint64_t *top = (uint64_t *)(void *)(f->stack + f->bytes);
    /* Seven words are popped on the way in; the stack must be 16-byte aligned before the call. */
    uint64_t *sp = top - 9;
    memset(sp, 0, 8 * sizeof *sp);
    sp[2] = (uint64_t)(uintptr_t)arg; /* r13 */
    sp[3] = (uint64_t)(uintptr_t)fn;  /* r12 */
    sp[6] = (uint64_t)(uintptr_t)simt_fiber_entry;
    f->sp = sp;
}
#elif defined(__aarch64__)
__asm__(".text\n"
        ".globl simt_fiber_switch\n.hidden simt_fiber_switch\n.type simt_fiber_switch,%function\n"
        "simt_fiber_switch:\n"
        "  sub sp, sp, #176\n"
        "  stp x19, x20, [sp, #0]\n  stp x21, x22, [sp, #16]\n  stp x23, x24, [sp, #32]\n"
        "  stp x25, x26, [sp, #48]\n  stp x27, x28, [sp, #64]\n  stp x29, x30, [sp, #80]\n"
        "  stp d8, d9, [sp, #96]\n  stp d10, d11, [sp, #112]\n  stp d12, d13, [sp, #128]\n"
        "  stp d14, d15, [sp, #144]\n"
        "  mov x9, sp\n  str x9, [x0]\n  mov sp, x1\n"
        "  ldp x19, x20, [sp, #0]\n  ldp x21, x22, [sp, #16]\n  ldp x23, x24, [sp, #32]\n"
        "  ldp x25, x26, [sp, #48]\n  ldp x27, x28, [sp, #64]\n  ldp x29, x30, [sp, #80]\n"
        "  ldp d8, d9, [sp, #96]\n  ldp d10, d11, [sp, #112]\n  ldp d12, d13, [sp, #128]\n"
        "  ldp d14, d15, [sp, #144]\n"
        "  add sp, sp, #176\n  ret\n"
        ".globl simt_fiber_entry\n.hidden simt_fiber_entry\n.type simt_fiber_entry,%function\n"
        "simt_fiber_entry:\n"
        "  mov x0, x20\n  blr x19\n  brk #1\n");

static void prepare(struct fiber *f, void (*fn)(void *), void *arg)
{
    uint64_t *sp = (uint64_t *)(void *)(f->stack + f->bytes) - 22 - 2;
    memset(sp, 0, 22 * sizeof *sp);
    sp[0] = (uint64_t)(uintptr_t)fn;
    sp[1] = (uint64_t)(uintptr_t)arg;
    sp[11] = (uint64_t)(uintptr_t)simt_fiber_entry;
    f->sp = sp;
}
#else
#error "fiber.c has no switch for this machine"
#endif

bool fiber_init(struct fiber *f, size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    bytes = (bytes + page - 1) / page * page;
    char *p = mmap(NULL, bytes + GUARD, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return false;
    mprotect(p, GUARD, PROT_NONE);
    *f = (struct fiber){.stack = p + GUARD, .bytes = bytes};
#if defined(__SANITIZE_THREAD__)
    f->tsan = __tsan_create_fiber(0);
#endif
    return true;
}

void fiber_release(struct fiber *f)
{
    if (f->stack)
        munmap(f->stack - GUARD, f->bytes + GUARD);
#if defined(__SANITIZE_THREAD__)
    if (f->tsan)
        __tsan_destroy_fiber(f->tsan);
#endif
    *f = (struct fiber){0};
}

static void enter(void *self)
{
    struct fiber *f = self;

    ENTER(NULL, &f->back_stack, &f->back_bytes);
    f->fn(f->arg);
}

void fiber_start(struct fiber *f, void (*fn)(void *), void *arg)
{
    f->fn = fn;
    f->arg = arg;
    f->shadow = NULL;
    FORGET(f->stack, f->bytes);
    prepare(f, enter, f);
}

void fiber_resume(struct fiber *f)
{
    void *ours = NULL;

    LEAVE(&ours, f->stack, f->bytes);
    HERE(f->tsan_back);
    THERE(f->tsan);
    simt_fiber_switch(&f->back, f->sp);
    ENTER(ours, NULL, NULL);
    (void)ours;
}

void fiber_yield(struct fiber *f)
{
    LEAVE(&f->shadow, f->back_stack, f->back_bytes);
    THERE(f->tsan_back);
    simt_fiber_switch(&f->sp, f->back);
    ENTER(f->shadow, &f->back_stack, &f->back_bytes);
}
