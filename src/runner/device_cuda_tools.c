/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_cuda_tools.c - the runner's own small kernels: flush L2, wait, hash an output, fill it,
 * scrub shared memory.
 *
 * Only the last two write memory that a candidate can see, whose content it must not rely on.
 */
#include "runner/device_cuda.h"

#include <string.h>

enum { FLUSH_L2S = 4, FLUSH_TOLD = 128 /* in the sink, which begins with a hash */ };

static const uint64_t wait_cycles = 40000; /* some 20 us */
static const uint64_t flush_least_bytes = 64u << 20;

/* %r5: this thread's number in the grid; %r6: how many there are. */
#define THREAD_AND_STRIDE                                                                          \
    "mov.u32 %r1, %ctaid.x;\n"                                                                     \
    "mov.u32 %r2, %ntid.x;\n"                                                                      \
    "mov.u32 %r3, %tid.x;\n"                                                                       \
    "mov.u32 %r4, %nctaid.x;\n"                                                                    \
    "mad.lo.u32 %r5, %r1, %r2, %r3;\n"                                                             \
    "mul.lo.u32 %r6, %r4, %r2;\n"

/* Small kernels, compiled by the driver: no NVRTC in this process. */
static const char tools_ptx[] =
    /* clang-format off */
    ".version 7.0\n"
    ".target sm_80\n"
    ".address_size 64\n"
    ".visible .entry cutegen_flush(.param .u64 p, .param .u64 n, .param .u64 sink)\n"
    "{\n"
    ".reg .pred %p<3>;\n"
    ".reg .b32 %r<12>;\n"
    ".reg .b64 %rd<10>;\n"
    "ld.param.u64 %rd1, [p];\n"
    "ld.param.u64 %rd2, [n];\n"
    "ld.param.u64 %rd3, [sink];\n"
    "cvta.to.global.u64 %rd1, %rd1;\n"
    "cvta.to.global.u64 %rd3, %rd3;\n"
    THREAD_AND_STRIDE
    "cvt.u64.u32 %rd4, %r5;\n"
    "cvt.u64.u32 %rd5, %r6;\n"
    "mov.u32 %r7, 0;\n"
    "loop:\n"
    "setp.ge.u64 %p1, %rd4, %rd2;\n"
    "@%p1 bra done;\n"
    "shl.b64 %rd6, %rd4, 4;\n"
    "add.u64 %rd7, %rd1, %rd6;\n"
    "ld.global.v4.u32 {%r8, %r9, %r10, %r11}, [%rd7];\n"
    "xor.b32 %r8, %r8, 0x5a5a5a5a;\n"
    "xor.b32 %r9, %r9, 0x5a5a5a5a;\n"
    "xor.b32 %r10, %r10, 0x5a5a5a5a;\n"
    "xor.b32 %r11, %r11, 0x5a5a5a5a;\n"
    "or.b32 %r8, %r8, %r9;\n"
    "or.b32 %r10, %r10, %r11;\n"
    "or.b32 %r7, %r7, %r8;\n"
    "or.b32 %r7, %r7, %r10;\n"
    "add.u64 %rd4, %rd4, %rd5;\n"
    "bra loop;\n"
    "done:\n"
    "setp.eq.u32 %p2, %r7, 0;\n" /* true: all is unchanged */
    "@%p2 bra end;\n"
    "st.global.u32 [%rd3], %r7;\n"
    "end:\n"
    "ret;\n"
    "}\n"
    ".visible .entry cutegen_wait(.param .u64 cycles)\n"
    "{\n"
    ".reg .pred %p<2>;\n"
    ".reg .b64 %rd<5>;\n"
    "ld.param.u64 %rd1, [cycles];\n"
    "mov.u64 %rd2, %clock64;\n"
    "again:\n"
    "mov.u64 %rd3, %clock64;\n"
    "sub.u64 %rd4, %rd3, %rd2;\n"
    "setp.lt.u64 %p1, %rd4, %rd1;\n"
    "@%p1 bra again;\n"
    "ret;\n"
    "}\n"
    ".visible .entry cutegen_hash(.param .u64 p, .param .u64 n, .param .u64 seed, .param .u64 out)\n"
    "{\n"
    ".reg .pred %p<2>;\n"
    ".reg .b32 %r<7>;\n"
    ".reg .b64 %rd<14>;\n"
    "ld.param.u64 %rd1, [p];\n"
    "ld.param.u64 %rd2, [n];\n"
    "ld.param.u64 %rd3, [seed];\n"
    "ld.param.u64 %rd4, [out];\n"
    "cvta.to.global.u64 %rd1, %rd1;\n"
    "cvta.to.global.u64 %rd4, %rd4;\n"
    THREAD_AND_STRIDE
    "cvt.u64.u32 %rd5, %r5;\n"
    "cvt.u64.u32 %rd6, %r6;\n"
    "mov.u64 %rd7, 0;\n"
    "hash_loop:\n"
    "setp.ge.u64 %p1, %rd5, %rd2;\n"
    "@%p1 bra hash_done;\n"
    "shl.b64 %rd8, %rd5, 3;\n"
    "add.u64 %rd9, %rd1, %rd8;\n"
    "ld.global.u64 %rd10, [%rd9];\n"
    "add.u64 %rd11, %rd5, %rd3;\n" /* the hash covers the position, not only the value */
    "mul.lo.u64 %rd11, %rd11, 0x9e3779b97f4a7c15;\n"
    "xor.b64 %rd10, %rd10, %rd11;\n"
    "shr.u64 %rd12, %rd10, 29;\n"
    "xor.b64 %rd10, %rd10, %rd12;\n"
    "mul.lo.u64 %rd10, %rd10, 0xbf58476d1ce4e5b9;\n"
    "shr.u64 %rd12, %rd10, 32;\n"
    "xor.b64 %rd10, %rd10, %rd12;\n"
    "add.u64 %rd7, %rd7, %rd10;\n"
    "add.u64 %rd5, %rd5, %rd6;\n"
    "bra hash_loop;\n"
    "hash_done:\n"
    "red.global.add.u64 [%rd4], %rd7;\n"
    "ret;\n"
    "}\n"
    ".visible .entry cutegen_fill(.param .u64 p, .param .u64 n, .param .u64 value)\n"
    "{\n"
    ".reg .pred %p<2>;\n"
    ".reg .b32 %r<7>;\n"
    ".reg .b64 %rd<8>;\n"
    "ld.param.u64 %rd1, [p];\n"
    "ld.param.u64 %rd2, [n];\n"
    "ld.param.u64 %rd3, [value];\n"
    "cvta.to.global.u64 %rd1, %rd1;\n"
    THREAD_AND_STRIDE
    "cvt.u64.u32 %rd4, %r5;\n"
    "cvt.u64.u32 %rd5, %r6;\n"
    "fill_loop:\n"
    "setp.ge.u64 %p1, %rd4, %rd2;\n"
    "@%p1 bra fill_done;\n"
    "shl.b64 %rd6, %rd4, 3;\n"
    "add.u64 %rd7, %rd1, %rd6;\n"
    "st.global.u64 [%rd7], %rd3;\n"
    "add.u64 %rd4, %rd4, %rd5;\n"
    "bra fill_loop;\n"
    "fill_done:\n"
    "ret;\n"
    "}\n"
    ".extern .shared .align 16 .b8 all_of_it[];\n"
    ".visible .entry cutegen_scrub(.param .u64 bytes)\n"
    "{\n"
    ".reg .pred %p<2>;\n"
    ".reg .b32 %r<8>;\n"
    ".reg .b64 %rd<2>;\n"
    "ld.param.u64 %rd1, [bytes];\n"
    "cvt.u32.u64 %r1, %rd1;\n"
    "mov.u32 %r2, %tid.x;\n"
    "mov.u32 %r3, %ntid.x;\n"
    "shl.b32 %r2, %r2, 2;\n"
    "shl.b32 %r3, %r3, 2;\n"
    "mov.u32 %r4, all_of_it;\n"
    /* from offset 0: what the driver reserves before it keeps its content, too */
    "add.u32 %r1, %r1, %r4;\n"
    "mov.u32 %r6, -1;\n"
    "scrub_loop:\n"
    "setp.ge.u32 %p1, %r2, %r1;\n"
    "@%p1 bra scrub_done;\n"
    "st.volatile.shared.u32 [%r2], %r6;\n"
    "add.u32 %r2, %r2, %r3;\n"
    "bra scrub_loop;\n"
    "scrub_done:\n"
    "ret;\n"
    "}\n"
    /* clang-format on */;

bool cuda_tools(struct cuda_device *d, struct error *err)
{
    void *module = NULL;
    int result;

    if (d->flush)
        return true;
    result = d->api.module_load(&module, tools_ptx, 0, NULL, NULL);
    if (result == CUDA_OK)
        result = d->api.module_function(&d->flush, module, "cutegen_flush");
    if (result == CUDA_OK)
        result = d->api.module_function(&d->wait, module, "cutegen_wait");
    if (result == CUDA_OK)
        result = d->api.module_function(&d->hash, module, "cutegen_hash");
    if (result == CUDA_OK)
        result = d->api.module_function(&d->fill, module, "cutegen_fill");
    if (result == CUDA_OK)
        result = d->api.module_function(&d->scrub, module, "cutegen_scrub");
    if (result == CUDA_OK)
        result =
            d->api.function_set(d->scrub, CUDA_FUNC_DYNAMIC_SMEM, (int)d->facts.smem_block_bytes);
    if (result == CUDA_OK)
        result = d->api.event_create(&d->start, 0);
    if (result == CUDA_OK)
        result = d->api.event_create(&d->stop, 0);
    d->flush_bytes = d->facts.l2_bytes * FLUSH_L2S;
    if (d->flush_bytes < flush_least_bytes)
        d->flush_bytes = flush_least_bytes;
    if (result == CUDA_OK)
        result = d->api.alloc(&d->flush_address, d->flush_bytes);
    if (result == CUDA_OK)
        result = d->api.alloc(&d->sink_address, 256);
    if (result == CUDA_OK)
        result = d->api.memset8(d->sink_address, 0, 256, d->stream);
    if (result == CUDA_OK)
        result = d->api.memset8(d->flush_address, 0x5a, d->flush_bytes, d->stream);
    if (result == CUDA_OK)
        result = d->api.stream_wait(d->stream);
    if (result == CUDA_OK)
        return true;
    d->flush = NULL;
    return cuda_error(d, result, "setting up the clock", err);
}

int cuda_enqueue_flush(struct cuda_device *d)
{
    uint64_t count = d->flush_bytes / 16, told = d->sink_address + FLUSH_TOLD;
    void *params[] = {&d->flush_address, &count, &told};
    struct cuda_launch_config config = {
        .grid = {(unsigned)d->facts.sm_count * 8, 1, 1}, .block = {256, 1, 1}, .stream = d->stream};

    return d->api.launch_ex(&config, d->flush, params, NULL);
}

/* Local memory keeps its content from launch to launch. Its address depends on the size of a
 * thread's share and on where the thread runs: a kernel with the same share that fills the whole
 * GPU overwrites all of it, and the largest share of all kernels covers every other. */
static const char stack_ptx[] =
    /* clang-format off */
    ".version 7.0\n"
    ".target sm_80\n"
    ".address_size 64\n"
    ".visible .entry cutegen_stack() .maxntid 512 .minnctapersm 4\n"
    "{\n"
    ".local .align 16 .b8 share[%d];\n"
    ".reg .pred %%p<2>;\n"
    ".reg .b32 %%r<2>;\n"
    ".reg .b64 %%rd<3>;\n"
    "mov.u64 %%rd1, share;\n"
    "cvta.local.u64 %%rd1, %%rd1;\n"
    "add.u64 %%rd2, %%rd1, %d;\n"
    "mov.u32 %%r1, -1;\n"
    "stack_loop:\n"
    "st.volatile.u32 [%%rd1], %%r1;\n"
    "add.u64 %%rd1, %%rd1, 4;\n"
    "setp.lt.u64 %%p1, %%rd1, %%rd2;\n"
    "@%%p1 bra stack_loop;\n"
    "ret;\n"
    "}\n"
    /* clang-format on */;

static int make_stack_scrub(struct cuda_device *d)
{
    const char *text = arena_printf(d->a, stack_ptx, d->local_bytes, d->local_bytes);
    void *module = NULL;
    int result = d->api.module_load(&module, text, 0, NULL, NULL);

    if (result == CUDA_OK)
        result = d->api.module_function(&d->stack, module, "cutegen_stack");
    return result;
}

int cuda_enqueue_stack_scrub(struct cuda_device *d)
{
    struct cuda_launch_config config = {
        .grid = {(unsigned)d->facts.sm_count * 4, 1, 1}, .block = {512, 1, 1}, .stream = d->stream};
    int result = d->stack ? CUDA_OK : make_stack_scrub(d);

    return result == CUDA_OK ? d->api.launch_ex(&config, d->stack, NULL, NULL) : result;
}

bool cuda_flush_spoilt(struct cuda_device *d, bool *spoilt, struct error *err)
{
    uint32_t word = 0;
    int result = d->api.copy_to_host(&word, d->sink_address + FLUSH_TOLD, sizeof word, d->stream);

    if (result == CUDA_OK)
        result = d->api.stream_wait(d->stream);
    *spoilt = word != 0;
    return result == CUDA_OK || cuda_error(d, result, "reading the sink", err);
}

/* One block on every multiprocessor, since each takes all of its shared memory. */
int cuda_enqueue_scrub(struct cuda_device *d)
{
    uint64_t bytes = d->facts.smem_block_bytes;
    void *params[] = {&bytes};
    struct cuda_launch_config config = {.grid = {(unsigned)d->facts.sm_count, 1, 1},
                                        .block = {1024, 1, 1},
                                        .smem = (unsigned)bytes,
                                        .stream = d->stream};

    return d->api.launch_ex(&config, d->scrub, params, NULL);
}

int cuda_enqueue_fill(struct cuda_device *d, uint64_t address, uint64_t bytes, uint64_t value)
{
    uint64_t words = bytes / sizeof value;
    void *params[] = {&address, &words, &value};
    struct cuda_launch_config config = {
        .grid = {(unsigned)d->facts.sm_count * 8, 1, 1}, .block = {256, 1, 1}, .stream = d->stream};
    int result = words > 0 ? d->api.launch_ex(&config, d->fill, params, NULL) : CUDA_OK;

    for (uint64_t i = words * sizeof value; i < bytes && result == CUDA_OK; i++)
        result = d->api.memset8(address + i, (unsigned char)(value >> 8 * (i % sizeof value)), 1,
                                d->stream);
    return result;
}

int cuda_enqueue_wait(struct cuda_device *d)
{
    uint64_t cycles = wait_cycles;
    void *params[] = {&cycles};
    struct cuda_launch_config config = {.grid = {1, 1, 1}, .block = {1, 1, 1}, .stream = d->stream};

    return d->api.launch_ex(&config, d->wait, params, NULL);
}

int cuda_enqueue_hash(struct cuda_device *d, uint64_t address, uint64_t words, uint64_t seed)
{
    void *params[] = {&address, &words, &seed, &d->sink_address};
    struct cuda_launch_config config = {
        .grid = {(unsigned)d->facts.sm_count * 8, 1, 1}, .block = {256, 1, 1}, .stream = d->stream};

    return d->api.launch_ex(&config, d->hash, params, NULL);
}

/* Adds up every word mixed with its position, so that the order of threads does not matter. */
bool cuda_hash(struct run_device *base, const struct plan *plan, uint64_t *out, struct error *err)
{
    struct cuda_device *d = (struct cuda_device *)base;
    uint64_t h = 1, sum = 0, tail;
    int result;

    if (!cuda_tools(d, err))
        return false;
    result = d->api.memset8(d->sink_address, 0, sizeof sum, d->stream);
    for (size_t i = 0; i < plan->buffer_count && result == CUDA_OK; i++) {
        const struct plan_buffer *b = &plan->buffers[i];
        size_t rest = b->bytes % sizeof tail;

        if (b->kind != BUFFER_OUT)
            continue;
        tail = i;
        if (b->bytes >= sizeof tail)
            result = cuda_enqueue_hash(d, b->address, b->bytes / sizeof tail, (uint64_t)i << 48);
        if (result == CUDA_OK && rest > 0)
            result = d->api.copy_to_host(&tail, b->address + b->bytes - rest, rest, d->stream);
        if (result == CUDA_OK)
            result = d->api.stream_wait(d->stream);
        h = device_hash_bytes(h, &tail, sizeof tail);
    }
    if (result == CUDA_OK)
        result = d->api.copy_to_host(&sum, d->sink_address, sizeof sum, d->stream);
    if (result == CUDA_OK)
        result = d->api.stream_wait(d->stream);
    *out = device_hash_bytes(h, &sum, sizeof sum);
    return result == CUDA_OK || cuda_error(d, result, "reading the outputs", err);
}
