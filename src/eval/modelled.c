/* SPDX-License-Identifier: Apache-2.0 */
/*
 * modelled.c - from counters to microseconds; see modelled.h.
 *
 * For each launch, the work of each part of the chip is divided by its rate per microsecond:
 *
 *     dram     distinct 32-byte sectors, each moved once; and of those that
 *              several blocks touch a part that grows as the data, at the
 *              task's true size, outgrow L2. DRAM moves 64 bytes: a sector
 *              that a block touches without its neighbour costs more
 *     l2       loads that L1 does not hold, and all stores: L1 writes through;
 *              a store of less than a sector costs more
 *     l1       lines of 128 bytes per request, one per clock and SM; a store's
 *              line takes longer: uncoalesced access shows here
 *     shared   wavefronts, one per clock and SM: bank conflicts show here
 *     atomics  global ones: those to one line queue up, so it counts how many
 *              lines the blocks that run together spread them over
 *     fp32 fp64 int sfu tensor     warp instructions or flops by unit
 *     issue    all warp instructions, four per clock and SM; simt counts PTX,
 *              of which the assembler removes some (moves, addresses), while an
 *              exact quotient or root becomes a dozen
 *     latency  the time all warps spend waiting, over the warps resident at once
 *
 * L1's contents are estimated from blocks that simt observed: loads that a small per-block cache
 * would miss (far), and first loads by the block.
 *
 * The launch takes a norm of the parts (`blend`): roughly the largest, and more if others come
 * close. Units overlap, but not perfectly; so a change that relieves the bound shows fully and one
 * that saves instructions elsewhere shows a little, as on hardware.
 *
 * Small tasks. simt runs a scaled-down task; taken literally, a few blocks on a large chip would be
 * all latency and every variant the same. The model instead asks what this work costs on a chip
 * that is full of it. So it uses the whole chip's throughput, and penalizes only a grid that would
 * not fill the chip at full size either: blocks are scaled up by `share`, and of
 * the slowdown by empty SMs only the square root counts. Launches are scaled like the task.
 */
#include "eval/modelled.h"

#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Fitted by bench/simt/calibrate.py on the F half of its cases, times of an H200. */
const struct modelled_constants modelled_h200 = {
    .blend = 2.61,
    .sass = 0.801,
    .sass_int = 0.348,
    .sass_div = 10.3,
    .sass_sfu = 3.01,
    .l1_again = 0.05,
    .l2_again = 1.05,
    .alone = 3,
    .store_line = 3.19,
    .part_store = 1.81,
    .far = 841,
    .near = 236,
    .l1_wait = 30,
    .shared_wait = 20,
    .arith_wait = 4.5,
    .sfu_wait = 4,
    .tensor_wait = 35,
    .barrier_wait = 15,
    .start = 625,
    .atomic_clocks = 21,
    .atomic_lane = 0.984,
    .tensor_share = 0.55,
};

static const double hot_share = 0.6;     /* share of a cache that reused data can occupy */
static const double wgmma_share = 0.75;  /* share of the tensor cores' peak that libraries reach */
static const double chip_from_sms = 0.4; /* this share of the SMs can saturate DRAM */
static const double flight_global = 3;   /* loads in flight, if batches were not counted */

enum part {
    DRAM,
    L2,
    L1,
    SHARED,
    ATOMICS,
    FP32,
    FP64,
    INT,
    SFU,
    TENSOR,
    ISSUE,
    LATENCY,
    PART_COUNT
};

static const char *const part_names[PART_COUNT] = {"dram",    "l2",     "l1",    "shared",
                                                   "atomics", "fp32",   "fp64",  "int",
                                                   "sfu",     "tensor", "issue", "latency"};

enum { MAX_BUFFERS = 16 };

/* One launch, read from JSON. Instruction counts are of warps. */
struct modelled_launch {
    const char *kernel;
    double blocks, threads_block, smem_block, regs_thread;
    double load_requests, load_sectors, store_requests, store_sectors, store_bytes;
    double load_lines, store_lines;
    double unique_sectors;            /* distinct, read or written */
    double block_loads, block_stores; /* distinct within their block */
    double alone;                     /* share of them whose neighbour the block leaves */
    double far_loads;                 /* loads that miss a small cache */
    struct buffer {
        double bytes, again; /* again: sectors that a block touches after another */
    } buffer[MAX_BUFFERS];
    int buffers; /* most reused first */
    double shared_wavefronts, shared_requests, atomic_conflicts, atomic_lines, atomic_requests,
        atomic_span;
    double fma, fadd, fmul, fp64, half, integer, sfu, div, cvt, tensor, barriers, instructions;
    double tensor_flops, wgmma, load_batches, shared_batches, bulk_requests;
    double async_copies, async_waits, async_left;
    const struct modelled_constants *k;
};

static double number(const json_t *v, const char *key)
{
    double n = json_double_or(v, key, 0);

    return isfinite(n) && n > 0 ? n : 0;
}

/* Orders buffers by how often a byte is reused. */
static int hotter(const void *x, const void *y)
{
    const struct buffer *a = x, *b = y;
    double p = a->again / fmax(1, a->bytes), q = b->again / fmax(1, b->bytes);

    return p < q ? 1 : p > q ? -1 : 0;
}

static void read_buffers(const json_t *list, struct modelled_launch *l)
{
    const json_t *pair;
    double unique = 0;
    size_t i;

    l->buffers = 0;
    json_array_foreach(list, i, pair)
    {
        double bytes = json_number_value(json_array_get(pair, 0));
        double sectors = json_number_value(json_array_get(pair, 1)),
               own = fmin(sectors, bytes / 32);

        if (i == MAX_BUFFERS)
            break;
        l->buffer[l->buffers++] = (struct buffer){own * 32, sectors - own};
        unique += own;
    }
    if (l->buffers) {
        l->unique_sectors = unique;
    } else { /* not known per buffer */
        l->buffers = 1;
        l->buffer[0] = (struct buffer){
            l->unique_sectors * 32, fmax(0, l->block_loads + l->block_stores - l->unique_sectors)};
    }
    qsort(l->buffer, (size_t)l->buffers, sizeof *l->buffer, hotter);
}

/* Counters of an older simt lack these: then no reuse is assumed. */
static void read_reuse(const json_t *v, struct modelled_launch *l)
{
    bool known = json_object_get(v, "block_load_sectors") != NULL;
    double chunks = number(v, "block_load_chunks") + number(v, "block_store_chunks"), block;

    l->block_loads = known ? number(v, "block_load_sectors") : l->load_sectors;
    l->block_stores = known ? number(v, "block_store_sectors") : l->store_sectors;
    l->far_loads = known ? number(v, "far_load_sectors") : l->load_sectors;
    if (!known) {
        l->load_lines = fmax(l->load_requests, l->load_sectors / 4);
        l->store_lines = fmax(l->store_requests, l->store_sectors / 4);
        l->atomic_lines = number(v, "atomics");
    }
    block = l->block_loads + l->block_stores;
    l->alone = known && block > 0 ? fmin(1, fmax(0, 2 * chunks / block - 1)) : 0;
    if (l->unique_sectors <= 0 || l->unique_sectors > block) /* at most all of them */
        l->unique_sectors = block;
    read_buffers(json_object_get(v, "buffers"), l);
}

/* In units of 16-bit flops; other types are scaled by their rates. */
static double tensor_work(const json_t *v)
{
    static const struct {
        const char *type;
        double cost;
    } rates[] = {{"f16", 1},   {"bf16", 1},  {"tf32", 2}, {"f8", 0.5},
                 {"f4", 0.25}, {"int", 0.5}, {"f64", 15}};
    const json_t *by_type = json_object_get(v, "tensor_flops_by_type");
    double work = 0;

    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        work += rates[i].cost * number(by_type, rates[i].type);
    return work > 0 ? work : number(v, "tensor_flops");
}

static void read_launch(const json_t *v, const json_t *resources, struct modelled_launch *l)
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
    l->store_bytes = number(v, "global_store_bytes");
    l->load_lines = number(v, "global_load_lines");
    l->store_lines = number(v, "global_store_lines");
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
    l->div = number(classes, "division");
    l->cvt = number(classes, "cvt");
    l->tensor = number(classes, "tensor");
    l->barriers = number(v, "barriers");
    l->instructions = number(v, "warp_instructions");
    l->tensor_flops = tensor_work(v);
    l->wgmma =
        number(v, "tensor_flops") > 0 ? number(v, "wgmma_flops") / number(v, "tensor_flops") : 0;
    l->load_batches = number(v, "global_load_batches");
    l->shared_batches = number(v, "shared_load_batches");
    l->bulk_requests = number(v, "bulk_requests");
    l->atomic_conflicts = number(v, "global_atomic_conflicts");
    l->atomic_requests = number(v, "global_atomic_requests");
    l->atomic_lines = number(v, "global_atomic_lines");
    l->atomic_span = number(v, "atomic_span");
    l->async_copies = number(v, "async_copies");
    l->async_waits = number(v, "async_waits");
    l->async_left = number(v, "async_left");
    if (l->load_batches <= 0)
        l->load_batches = l->load_requests / flight_global;
    if (l->shared_batches <= 0)
        l->shared_batches = l->shared_requests / flight_global;
    read_reuse(v, l);
}

/* Blocks that an SM holds at once, and what limits them. */
static double resident_blocks(const struct gpu *g, const struct modelled_launch *l,
                              const char **limiter)
{
    double warps_block = ceil(l->threads_block / 32);
    double regs = fmax(16, ceil((l->regs_thread > 0 ? l->regs_thread : 32) / 8) * 8);
    /* the system reserves 1 KiB per block */
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

/* The share of `bytes`, read repeatedly, that a cache of `room` bytes has evicted meanwhile. */
static double outgrown(double bytes, double room)
{
    return bytes > room ? 1 - room / bytes : 0;
}

static double block_bytes(const struct modelled_launch *l)
{
    return l->block_loads * 32 / l->blocks;
}

/* Blocks that an SM holds, if the grid has that many. */
static double resident_now(const struct gpu *g, const struct modelled_launch *l, double share)
{
    const char *limiter;

    return fmin(resident_blocks(g, l, &limiter), fmax(1, l->blocks / share / g->sms));
}

/* Loads that reach L2: first loads by the block, and some that a small cache missed. Small buffers
 * that every block reads stay in L1 between blocks. */
static double past_l1(const struct gpu *g, const struct modelled_launch *l)
{
    const char *limiter;
    double used = resident_blocks(g, l, &limiter) * l->smem_block, kept = 0;
    double room = fmax(0, g->smem_sm_kib * 1024 - used) * hot_share;

    for (int i = 0; i < l->buffers && l->buffer[i].bytes <= room; i++) {
        kept += l->buffer[i].again;
        room -= l->buffer[i].bytes;
    }
    double lost = fmax(l->k->l1_again, outgrown(block_bytes(l) * resident_now(g, l, 1), room));

    return fmax(0, l->block_loads - kept) + lost * fmax(0, l->far_loads - l->block_loads);
}

/* Sectors that DRAM moves: L2 keeps the most reused data, as far as it fits. */
static double dram_sectors(const struct gpu *g, const struct modelled_launch *l, double share)
{
    double room = g->l2_mib * 1048576 * hot_share, sectors = l->unique_sectors;
    double together = resident_now(g, l, share) * fmin(g->sms, l->blocks / share);

    double own = l->unique_sectors / fmax(1, l->block_loads + l->block_stores);

    /* What concurrent blocks reread themselves, as far as each block has data of its own. */
    sectors +=
        fmax(0, l->far_loads - l->block_loads) * own * outgrown(block_bytes(l) * together, room);

    for (int i = 0; i < l->buffers; i++) {
        double bytes = l->buffer[i].bytes / share;
        double lost = fmin(1, l->k->l2_again * outgrown(bytes, room));

        sectors += l->buffer[i].again * lost * (1 + l->k->alone * l->alone);
        room = fmax(0, room - bytes);
    }
    return sectors;
}

/* Total clocks that all warps of the launch wait. Loads of one basic block overlap; asynchronous
 * copies cost at their wait, and less the more of them remain in flight. */
static double waiting_cycles(const struct gpu *g, const struct modelled_launch *l, double share)
{
    const struct modelled_constants *k = l->k;
    double loads = fmax(1, l->load_sectors), all = loads + l->store_sectors;
    double l2 = fmin(1, past_l1(g, l) / loads), dram = fmin(l2, dram_sectors(g, l, share) / all);
    double load_cycles = k->far * dram + k->near * (l2 - dram) + k->l1_wait * (1 - l2);
    double arith = l->fma + l->fadd + l->fmul + l->half + l->integer + l->cvt + l->fp64;
    double warps = l->blocks * ceil(l->threads_block / 32);
    double depth = l->async_copies > 0 ? l->async_left / l->async_copies : 0;
    double sync = l->async_copies > 0 ? fmax(0, l->load_batches - l->async_waits) : l->load_batches;

    return sync * load_cycles + l->async_waits * k->near / ((1 + depth) * (1 + depth)) +
           l->shared_batches * k->shared_wait + arith * k->sass * k->arith_wait +
           (l->sfu + l->div) * k->sfu_wait + l->tensor * k->tensor_wait +
           l->barriers * ceil(l->threads_block / 32) * k->barrier_wait + warps * k->start;
}

/* How much longer the fullest SM works than with evenly spread blocks. For a scaled-down task this
 * is computed at full size, and only for SMs that stay empty. */
static void fill_penalty(const struct gpu *g, const struct modelled_launch *l, double share,
                         double *sms, double *dram)
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

/* Global atomics serialize per line; the resident blocks spread them over several lines. */
static double atomic_us(const struct gpu *g, const struct modelled_launch *l, double resident,
                        double share)
{
    double lines = fmax(1, l->atomic_span / 128), blocks = l->blocks / share;
    double each = l->atomic_requests > 0 ? l->atomic_lines / l->atomic_requests : 1;
    double at_once = fmin(lines, fmax(each, lines * fmin(1, resident * g->sms / blocks)));

    double clocks = l->atomic_lines * l->k->atomic_clocks + l->atomic_conflicts * l->k->atomic_lane;

    return clocks / fmin(at_once, 64) / (1e3 * g->clock_ghz);
}

static void launch_parts(const struct gpu *g, const struct modelled_launch *l, double share,
                         double us[PART_COUNT])
{
    const struct modelled_constants *k = l->k;
    double sm_us = 1e3 * g->sms * g->clock_ghz; /* SM clocks per microsecond, whole chip */
    double all = l->load_sectors + l->store_sectors;
    double writes = all > 0 ? l->store_sectors / all : 0;
    double dram_gbps = writes < 0.05 ? g->read_gbps : writes > 0.95 ? g->write_gbps : g->mixed_gbps;
    double part = l->store_sectors > 0 ? fmax(0, 1 - l->store_bytes / 32 / l->store_sectors) : 0;
    double warps = ceil(l->threads_block / 32), sm_fill, dram_fill;
    double issued = l->instructions * k->sass + l->div * k->sass_div + l->sfu * k->sass_sfu;
    double resident = resident_now(g, l, share);

    fill_penalty(g, l, share, &sm_fill, &dram_fill);
    us[DRAM] = dram_sectors(g, l, share) * 32 / (dram_gbps * 1e3) * dram_fill;
    us[L2] = (past_l1(g, l) + l->store_sectors * (1 + part * (k->part_store - 1))) * 32 /
             (g->l2_gbps * 1e3) * dram_fill;
    us[L1] = (l->load_lines + l->store_lines * k->store_line) / sm_us * sm_fill;
    us[SHARED] = l->shared_wavefronts / sm_us * sm_fill;
    us[ATOMICS] = atomic_us(g, l, resident, share);
    us[FP32] =
        (l->fma + l->fadd + l->fmul + l->half + l->div * 6) * 32 / g->fp32_lanes / sm_us * sm_fill;
    us[FP64] = l->fp64 * 32 / g->fp64_lanes / sm_us * sm_fill;
    us[INT] = l->integer * k->sass_int * 32 / g->int_lanes / sm_us * sm_fill;
    us[SFU] = (l->sfu + l->div + l->cvt) * 32 / g->sfu_lanes / sm_us * sm_fill;
    us[TENSOR] = l->tensor_flops * ((1 - l->wgmma) / k->tensor_share + l->wgmma / wgmma_share) /
                 (g->tensor_f16_tflops * 1e6) * sm_fill;
    us[ISSUE] = issued / 4 / sm_us * sm_fill;
    us[LATENCY] = waiting_cycles(g, l, share) / (resident * warps) / sm_us * fmax(1, sm_fill);
}

static double combine(const struct modelled_launch *l, const double us[PART_COUNT], int *bound)
{
    double sum = 0;

    *bound = 0;
    for (int i = 0; i < PART_COUNT; i++) {
        sum += pow(us[i], l->k->blend);
        if (us[i] > us[*bound])
            *bound = i;
    }
    return pow(sum, 1 / l->k->blend);
}

static json_t *launch_json(const struct gpu *g, const struct modelled_launch *l, double share,
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
        return error_set(err, ERROR_MACHINE, "simt returned no counters to model a time from");
    launches = json_array();
    for (size_t i = 0; i < count; i++) {
        double us[PART_COUNT], total;
        struct modelled_launch l;
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
    out->time_us += (double)count * in->gpu->launch_us * share;
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
