/*
 * device_cuda_time.c - the clock of the CUDA device.
 *
 * A sample is one replay of the plan's graph between two events.
 *
 *     cold: poison outputs and workspace, flush L2, wait kernel, [ graph ]
 *     warm: graph, wait kernel, [ graph ]
 *
 * The flush READS a buffer several times the size of L2: a flush that writes
 * leaves dirty lines, and evicting them would be charged to the candidate.
 * The wait kernel holds the GPU for some microseconds, so that the replay is
 * queued before the first event fires and the host's launch time stays out.
 * Poisoning before each cold sample means that no sample can live on what an
 * earlier one left behind.
 */
#include "base/clock.h"
#include "runner/device_cuda.h"

#include <stdio.h>

enum { WARM_UP = 3, LEAST_SAMPLES = 5, FLUSH_L2S = 4, WALL_REPLAYS = 20 };

static const uint64_t wait_cycles = 40000; /* some 20 us */
static const uint64_t flush_least_bytes = 64u << 20;

/* Two small kernels, compiled by the driver: no NVRTC in this process. */
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
    "mov.u32 %r1, %ctaid.x;\n"
    "mov.u32 %r2, %ntid.x;\n"
    "mov.u32 %r3, %tid.x;\n"
    "mov.u32 %r4, %nctaid.x;\n"
    "mad.lo.u32 %r5, %r1, %r2, %r3;\n"
    "mul.lo.u32 %r6, %r4, %r2;\n"
    "cvt.u64.u32 %rd4, %r5;\n"
    "cvt.u64.u32 %rd5, %r6;\n"
    "mov.u32 %r7, 0;\n"
    "loop:\n"
    "setp.ge.u64 %p1, %rd4, %rd2;\n"
    "@%p1 bra done;\n"
    "shl.b64 %rd6, %rd4, 4;\n"
    "add.u64 %rd7, %rd1, %rd6;\n"
    "ld.global.v4.u32 {%r8, %r9, %r10, %r11}, [%rd7];\n"
    "xor.b32 %r8, %r8, %r9;\n"
    "xor.b32 %r10, %r10, %r11;\n"
    "xor.b32 %r8, %r8, %r10;\n"
    "xor.b32 %r7, %r7, %r8;\n"
    "add.u64 %rd4, %rd4, %rd5;\n"
    "bra loop;\n"
    "done:\n"
    "setp.ne.u32 %p2, %r7, 2654435769;\n"
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
    /* clang-format on */;

static bool load_tools(struct cuda_device *d, struct error *err)
{
    void *module = NULL;
    int result = d->api.module_load(&module, tools_ptx, 0, NULL, NULL);

    if (result == CUDA_OK)
        result = d->api.module_function(&d->flush, module, "cutegen_flush");
    if (result == CUDA_OK)
        result = d->api.module_function(&d->wait, module, "cutegen_wait");
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
        result = d->api.memset8(d->flush_address, 0x5a, d->flush_bytes, d->stream);
    if (result == CUDA_OK)
        result = d->api.stream_wait(d->stream);
    if (result == CUDA_OK)
        return true;
    d->flush = NULL;
    return cuda_error(d, result, "setting up the clock", err);
}

static int enqueue_flush(struct cuda_device *d)
{
    uint64_t count = d->flush_bytes / 16;
    void *params[] = {&d->flush_address, &count, &d->sink_address};
    struct cuda_launch_config config = {
        .grid = {(unsigned)d->facts.sm_count * 8, 1, 1}, .block = {256, 1, 1}, .stream = d->stream};

    return d->api.launch_ex(&config, d->flush, params, NULL);
}

static int enqueue_wait(struct cuda_device *d)
{
    uint64_t cycles = wait_cycles;
    void *params[] = {&cycles};
    struct cuda_launch_config config = {.grid = {1, 1, 1}, .block = {1, 1, 1}, .stream = d->stream};

    return d->api.launch_ex(&config, d->wait, params, NULL);
}

/* What went before is in the stream already. */
static int sample(struct cuda_device *d, double *out_us)
{
    float ms = 0;
    int result = enqueue_wait(d);

    if (result == CUDA_OK)
        result = d->api.event_record(d->start, d->stream);
    if (result == CUDA_OK)
        result = d->api.graph_launch(d->exec, d->stream);
    if (result == CUDA_OK)
        result = d->api.event_record(d->stop, d->stream);
    if (result == CUDA_OK)
        result = d->api.stream_wait(d->stream);
    if (result == CUDA_OK)
        result = d->api.event_elapsed(&ms, d->start, d->stop);
    *out_us = (double)ms * 1000.0;
    return result;
}

static int warm_samples(struct cuda_device *d, struct time_samples *s, int64_t until_ms)
{
    size_t wanted = s->warm_count;
    int result = CUDA_OK;

    for (s->warm_count = 0; s->warm_count < wanted && result == CUDA_OK;) {
        if (s->warm_count >= LEAST_SAMPLES && clock_ms() > until_ms)
            break;
        result = d->api.graph_launch(d->exec, d->stream);
        if (result == CUDA_OK)
            result = sample(d, &s->warm_us[s->warm_count]);
        s->warm_count += result == CUDA_OK;
    }
    return result;
}

static bool cold_samples(struct cuda_device *d, const struct plan *plan, struct time_samples *s,
                         int64_t until_ms, int *result, struct error *err)
{
    size_t wanted = s->cold_count;

    *result = CUDA_OK;
    for (s->cold_count = 0; s->cold_count < wanted && *result == CUDA_OK;) {
        if (s->cold_count >= LEAST_SAMPLES && clock_ms() > until_ms)
            break;
        if (!cuda_poison(d, plan, true, err))
            return false;
        *result = enqueue_flush(d);
        if (*result == CUDA_OK)
            *result = sample(d, &s->cold_us[s->cold_count]);
        s->cold_count += *result == CUDA_OK;
    }
    return true;
}

static int wall_time(struct cuda_device *d, double *out_us)
{
    int64_t start = clock_us();
    int result = CUDA_OK;

    for (int i = 0; i < WALL_REPLAYS && result == CUDA_OK; i++)
        result = d->api.graph_launch(d->exec, d->stream);
    if (result == CUDA_OK)
        result = d->api.stream_wait(d->stream);
    *out_us = (double)(clock_us() - start) / WALL_REPLAYS;
    return result;
}

/* Cold last: the outputs the oracle compares afterwards are of a cold replay. */
bool cuda_time(struct run_device *base, struct plan *plan, struct time_samples *s,
               struct outcome *said, struct error *err)
{
    struct cuda_device *d = (struct cuda_device *)base;
    int budget_ms = s->budget_ms > 0 ? s->budget_ms : INT32_MAX;
    int64_t start_ms = clock_ms();
    int result = CUDA_OK;

    if (!cuda_prepare(d, plan, said, err))
        return said->kind != OUTCOME_OK;
    if (!d->flush && !load_tools(d, err))
        return false;
    for (int i = 0; i < WARM_UP && result == CUDA_OK; i++)
        result = d->api.graph_launch(d->exec, d->stream);
    if (result == CUDA_OK)
        result = d->api.stream_wait(d->stream);
    if (result == CUDA_OK)
        result = wall_time(d, &s->wall_us);
    if (result == CUDA_OK)
        result = warm_samples(d, s, start_ms + budget_ms / 2);
    if (result == CUDA_OK && !cold_samples(d, plan, s, start_ms + budget_ms, &result, err))
        return false;
    if (result != CUDA_OK)
        cuda_fault(d, plan, -1, result, said);
    return true;
}
