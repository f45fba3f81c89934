/*
 * modelled.c - from counters to microseconds; see modelled.h.
 *
 * For each launch, what each part of the chip must do is divided by what it
 * can do per microsecond:
 *
 *     dram     distinct 32-byte sectors touched, each moved once; and of the
 *              repeated ones a part that grows as the data, at the task's
 *              true size, outgrow L2
 *     l2       distinct sectors, and half of the repeated ones: L1 is taken to
 *              catch the rest
 *     l1       all sectors, four per clock and SM: uncoalesced access shows here
 *     shared   wavefronts, one per clock and SM: bank conflicts show here
 *     fp32 fp64 int sfu tensor     warp instructions or flops by unit
 *     issue    all warp instructions, four per clock and SM; simt counts PTX,
 *              of which the assembler removes about a third (moves, addresses)
 *     latency  the time all warps spend waiting, over the warps resident at once
 *
 * The launch takes the largest, plus a tenth of the rest: units overlap, but
 * never quite. So a change that relieves the bound shows fully and one that
 * saves instructions elsewhere shows a little, as it does on hardware.
 *
 * Small tasks. simt runs a scaled-down task; taken literally, a handful of
 * blocks on a large chip would be all latency and every variant alike. The
 * question asked here is what this work costs on a chip that is full of it.
 * So throughputs are the whole chip's, and only a grid that would not fill
 * the chip at full size either pays: blocks are scaled up by `share`, and
 * the SMs left empty cost the square root of what they would. The first
 * launch's own cost is left out, as every variant pays it; further launches
 * pay it, scaled like the task.
 */
#include "eval/modelled.h"

#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* To be fitted by bench/simt/calibrate.py; until then these are estimates. */
const struct modelled_constants modelled_h200 = {
    .overlap = 0.1,
    .sass = 0.7,
    .sass_int = 0.7,
    .l1_again = 0.5,
    .l2_again = 0.5,
    .scattered = 0.5,
    .far = 1200,
    .near = 200,
    .shared_wait = 25,
    .arith_wait = 2,
    .sfu_wait = 9,
    .tensor_wait = 18,
    .barrier_wait = 30,
    .atomic_clocks = 0.5,
    .tensor_share = 0.65,
};

static const double chip_from_sms = 0.4; /* this share of the SMs can draw all of DRAM */
static const double flight_global = 3;   /* loads in flight, where batches were not counted */

enum part { DRAM, L2, L1, SHARED, FP32, FP64, INT, SFU, TENSOR, ISSUE, LATENCY, PART_COUNT };

static const char *const part_names[PART_COUNT] = {
    "dram", "l2", "l1", "shared", "fp32", "fp64", "int", "sfu", "tensor", "issue", "latency"};

/* One launch, read from JSON. Instruction counts are of warps. */
struct launch {
    const char *kernel;
    double blocks, threads_block, smem_block, regs_thread;
    double load_requests, load_sectors, store_requests, store_sectors, async_requests;
    double unique_sectors; /* distinct, read or written */
    double shared_wavefronts, shared_requests;
    double fma, fadd, fmul, fp64, half, integer, sfu, cvt, tensor, barriers, atomics, instructions;
    double tensor_flops, load_batches, shared_batches, bulk_requests;
    const struct modelled_constants *k;
};

static double number(const json_t *v, const char *key)
{
    double n = json_double_or(v, key, 0);

    return isfinite(n) && n > 0 ? n : 0;
}

static void read_launch(const json_t *v, const json_t *resources, struct launch *l)
{
    const json_t *classes = json_object_get(v, "warp_instructions_by_class"), *own;

    l->kernel = json_string_or(v, "kernel", "");
    own = json_object_get(resources, json_string_or(v, "lowered", l->kernel));
    l->blocks = fmax(1, number(v, "blocks"));
    l->threads_block = fmax(1, number(v, "threads_block"));
    l->smem_block = number(v, "smem_bytes");
    l->regs_thread = number(own, "registers");
    l->load_requests = number(v, "global_load_requests");
    l->load_sectors = number(v, "global_load_sectors");
    l->store_requests = number(v, "global_store_requests");
    l->store_sectors = number(v, "global_store_sectors");
    l->async_requests = number(v, "async_copy_requests");
    l->unique_sectors = number(v, "unique_sectors");
    l->shared_wavefronts = number(v, "shared_wavefronts");
    l->shared_requests = number(v, "shared_requests");
    l->fma = number(classes, "fp32_fma");
    l->fadd = number(classes, "fp32_add");
    l->fmul = number(classes, "fp32_mul");
    l->fp64 = number(classes, "fp64");
    l->half = number(classes, "half");
    l->integer = number(classes, "int");
    l->sfu = number(classes, "sfu");
    l->cvt = number(classes, "cvt");
    l->tensor = number(classes, "tensor");
    l->barriers = number(v, "barriers");
    l->atomics = number(v, "atomics");
    l->instructions = number(v, "warp_instructions");
    l->tensor_flops = number(v, "tensor_flops");
    l->load_batches = number(v, "global_load_batches");
    l->shared_batches = number(v, "shared_load_batches");
    l->bulk_requests = number(v, "bulk_requests");
    if (l->load_batches <= 0)
        l->load_batches = l->load_requests / flight_global;
    if (l->shared_batches <= 0)
        l->shared_batches = l->shared_requests / flight_global;
    if (l->unique_sectors <= 0) /* not counted: at most all of them */
        l->unique_sectors = l->load_sectors + l->store_sectors;
}

/* Blocks an SM holds at once, and what keeps it from holding more. */
static double resident_blocks(const struct gpu *g, const struct launch *l, const char **limiter)
{
    double warps_block = ceil(l->threads_block / 32);
    double regs = fmax(16, ceil((l->regs_thread > 0 ? l->regs_thread : 32) / 8) * 8);
    /* 1 KiB per block is the system's */
    const struct {
        const char *name;
        double blocks;
    } limits[] = {{"blocks", g->blocks_sm},
                  {"warps", floor(g->warps_sm / warps_block)},
                  {"registers", floor(g->regs_sm / (regs * 32 * warps_block))},
                  {"shared memory", floor(g->smem_sm_kib * 1024.0 / (l->smem_block + 1024))}};
    double least = limits[0].blocks;

    *limiter = limits[0].name;
    for (size_t i = 1; i < sizeof limits / sizeof *limits; i++)
        if (limits[i].blocks < least) {
            least = limits[i].blocks;
            *limiter = limits[i].name;
        }
    return fmax(1, least);
}

/* Clocks that all warps of the launch wait, added up. Loads of one basic block wait together. */
static double waiting_cycles(const struct launch *l)
{
    const struct modelled_constants *k = l->k;
    double sectors = l->load_sectors + l->store_sectors;
    double first = sectors > 0 ? fmin(1, l->unique_sectors / sectors) : 1;
    double load_cycles = k->far * first + k->near * (1 - first);
    double arith = l->fma + l->fadd + l->fmul + l->half + l->integer + l->cvt + l->fp64;

    return l->load_batches * load_cycles + l->shared_batches * k->shared_wait +
           arith * k->sass * k->arith_wait + l->sfu * k->sfu_wait + l->tensor * k->tensor_wait +
           l->barriers * ceil(l->threads_block / 32) * k->barrier_wait;
}

/* How much longer the fullest SM works than one would with blocks evenly spread. A task that was
 * scaled down is asked about at its own size, and then only for SMs that stay empty. */
static void fill_penalty(const struct gpu *g, const struct launch *l, double share, double *sms,
                         double *dram)
{
    double blocks = l->blocks / share, empty = g->sms / blocks;

    if (share >= 1) {
        *sms = ceil(blocks / g->sms) * g->sms / blocks;
        *dram = fmax(1, empty * chip_from_sms);
        return;
    }
    *sms = empty > 1 ? sqrt(empty) : 1;
    *dram = empty * chip_from_sms > 1 ? sqrt(empty * chip_from_sms) : 1;
}

/* The part of repeated sectors that L2 no longer holds at the task's true size. */
static double outgrown(const struct gpu *g, const struct launch *l, double share)
{
    double l2_bytes = g->l2_mib * 1048576, bytes = l->unique_sectors * 32 / share;

    return bytes > l2_bytes ? l->k->l2_again * (1 - l2_bytes / bytes) : 0;
}

/* Clocks of L1: a row of 128 bytes takes one; sectors that lie alone take longer. */
static double l1_cycles(const struct launch *l, double requests, double sectors)
{
    double each = requests > 0 ? sectors / requests : 0;

    return each <= 16 ? fmax(requests, sectors / 4) : sectors * l->k->scattered;
}

static void launch_parts(const struct gpu *g, const struct launch *l, double share,
                         double us[PART_COUNT])
{
    const struct modelled_constants *k = l->k;
    double sm_us = 1e3 * g->sms * g->clock_ghz; /* SM clocks per microsecond, whole chip */
    double all = l->load_sectors + l->store_sectors, repeated = fmax(0, all - l->unique_sectors);
    double past_l1 = repeated * k->l1_again;
    double writes = all > 0 ? l->store_sectors / all : 0;
    double dram_gbps = writes < 0.05 ? g->read_gbps : writes > 0.95 ? g->write_gbps : g->mixed_gbps;
    double warps = ceil(l->threads_block / 32), sm_fill, dram_fill;
    const char *limiter;
    double resident = fmin(resident_blocks(g, l, &limiter), fmax(1, l->blocks / share / g->sms));

    fill_penalty(g, l, share, &sm_fill, &dram_fill);
    us[DRAM] =
        (l->unique_sectors + repeated * outgrown(g, l, share)) * 32 / (dram_gbps * 1e3) * dram_fill;
    us[L2] = (l->unique_sectors + past_l1) * 32 / (g->l2_gbps * 1e3) * dram_fill +
             l->atomics * 32 * k->atomic_clocks / (1e3 * g->clock_ghz * 64);
    us[L1] = (l1_cycles(l, l->load_requests, l->load_sectors) +
              l1_cycles(l, l->store_requests, l->store_sectors)) /
             sm_us * sm_fill;
    us[SHARED] = l->shared_wavefronts / sm_us * sm_fill;
    us[FP32] = (l->fma + l->fadd + l->fmul + l->half) * 32 / g->fp32_lanes / sm_us * sm_fill;
    us[FP64] = l->fp64 * 32 / g->fp64_lanes / sm_us * sm_fill;
    us[INT] = l->integer * k->sass_int * 32 / g->int_lanes / sm_us * sm_fill;
    us[SFU] = (l->sfu + l->cvt) * 32 / g->sfu_lanes / sm_us * sm_fill;
    us[TENSOR] = l->tensor_flops / (g->tensor_f16_tflops * k->tensor_share * 1e6) * sm_fill;
    us[ISSUE] = l->instructions * k->sass / 4 / sm_us * sm_fill;
    us[LATENCY] = waiting_cycles(l) / (resident * warps) / sm_us * fmax(1, sm_fill);
}

static double combine(const struct launch *l, const double us[PART_COUNT], int *bound)
{
    double sum = 0;

    *bound = 0;
    for (int i = 0; i < PART_COUNT; i++) {
        sum += us[i];
        if (us[i] > us[*bound])
            *bound = i;
    }
    return us[*bound] + l->k->overlap * (sum - us[*bound]);
}

static json_t *launch_json(const struct gpu *g, const struct launch *l, double share,
                           const double us[PART_COUNT], double total, int bound)
{
    const char *limiter;
    double blocks = resident_blocks(g, l, &limiter), warps = ceil(l->threads_block / 32);
    double all = l->blocks / share, waves = all / (g->sms * blocks);
    json_t *v = json_pack(
        "{s:s, s:f, s:s, s:f, s:f, s:f, s:s, s:f, s:f, s:f}", "kernel", l->kernel, "time_us", total,
        "bound", part_names[bound], "warps_sm", blocks * warps, "blocks_sm", blocks, "occupancy",
        blocks * warps / g->warps_sm, "limiter", limiter, "waves", waves, "last_wave",
        waves - floor(waves) > 0 ? waves - floor(waves) : 1.0, "registers", l->regs_thread);

    for (int i = 0; i < PART_COUNT; i++)
        json_object_set_new(v, part_names[i], json_real(us[i]));
    return v;
}

bool modelled_time(const struct modelled_input *in, struct modelled *out, struct error *err)
{
    double share = in->share > 0 && in->share < 1 ? in->share : 1, longest = -1;
    size_t count = json_array_size(in->counters);
    json_t *launches;

    memset(out, 0, sizeof *out);
    if (count == 0)
        return error_set(err, ERROR_MACHINE, "simt gave no counters to model a time from");
    launches = json_array();
    for (size_t i = 0; i < count; i++) {
        double us[PART_COUNT], total;
        struct launch l;
        int bound;

        l.k = in->constants ? in->constants : &modelled_h200;
        read_launch(json_array_get(in->counters, i), in->resources, &l);
        launch_parts(in->gpu, &l, share, us);
        total = combine(&l, us, &bound);
        out->time_us += total;
        if (total > longest) {
            longest = total;
            out->bound = part_names[bound];
        }
        json_array_append_new(launches, launch_json(in->gpu, &l, share, us, total, bound));
    }
    out->time_us += (double)(count - 1) * in->gpu->launch_us * share;
    out->parts =
        json_pack("{s:f, s:s, s:s, s:b, s:f, s:o}", "total_us", out->time_us, "bound", out->bound,
                  "gpu", in->gpu->name, "modelled", 1, "share", share, "launches", launches);
    return true;
}

double modelled_share(const struct task *task)
{
    const json_t *scaled = json_object_get(task->description, "scaled");
    double share = 1;
    const char *key;
    json_t *v;

    json_object_foreach((json_t *)scaled, key, v)
    {
        double from = json_number_value(json_array_get(v, 0));
        double to = json_number_value(json_array_get(v, 1));

        if (from > 0 && to > 0)
            share *= to / from;
    }
    return fmin(1, share);
}
