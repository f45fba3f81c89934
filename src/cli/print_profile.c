/* SPDX-License-Identifier: Apache-2.0 */
/* print_profile.c - `simt run --profile`: one page per launch, for an engineer. */
#include "base/json.h"
#include "cli/cmd.h"

#include <stdio.h>
#include <string.h>

enum { TOP_LINES = 8, BAR = 24 };

static const char *const parts[] = {"dram", "l2",  "l1",  "shared", "atomics", "fp32",
                                    "fp64", "int", "sfu", "tensor", "issue",   "latency"};

static double part(const json_t *launch, const char *name)
{
    return json_double_or(launch, name, 0);
}

static void print_parts(const json_t *launch)
{
    double most = part(launch, json_string_or(launch, "bound", "dram"));

    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        double us = part(launch, parts[i]);
        int n = most > 0 ? (int)(us / most * BAR + 0.5) : 0;

        if (us < most / 50)
            continue;
        printf("    %-8s %10.2f us  %.*s\n", parts[i], us, n, "########################");
    }
}

static double ratio(const json_t *c, const char *over, const char *under)
{
    double d = json_double_or(c, under, 0);

    return d > 0 ? json_double_or(c, over, 0) / d : 0;
}

static void print_work(const json_t *c)
{
    const char *type;
    json_t *flops;

    if (json_double_or(c, "fp32_flops", 0) > 0)
        printf("  work         %.4g fp32 flops\n", json_double_or(c, "fp32_flops", 0));
    json_object_foreach(json_object_get(c, "tensor_flops_by_type"), type, flops)
        printf("  work         %.4g flops on tensor cores in %s\n", json_number_value(flops), type);
}

static void print_traffic(const json_t *c)
{
    double loads = ratio(c, "global_load_sectors", "global_load_requests");
    double bytes = json_double_or(c, "global_load_bytes", 0);
    double moved = 32 * json_double_or(c, "global_load_sectors", 0);
    double lanes = ratio(c, "thread_instructions", "warp_instructions");

    printf("  instructions %.4g of warps, %.1f of 32 threads active\n",
           json_double_or(c, "warp_instructions", 0), lanes);
    if (moved > 0)
        printf("  loads        %.1f sectors per request, %.0f%% of their bytes used\n", loads,
               100 * (bytes < moved ? bytes / moved : 1));
    if (json_double_or(c, "global_store_requests", 0) > 0)
        printf("  stores       %.1f sectors per request\n",
               ratio(c, "global_store_sectors", "global_store_requests"));
    if (json_double_or(c, "shared_requests", 0) > 0)
        printf("  shared       %.2f wavefronts per request, %.0f%% of them bank conflicts\n",
               ratio(c, "shared_wavefronts", "shared_requests"),
               100 * ratio(c, "shared_conflicts", "shared_wavefronts"));
    print_work(c);
    if (json_double_or(c, "atomics", 0) > 0)
        printf("  atomics      %.4g, %.0f%% of them share an address with another of their warp\n",
               json_double_or(c, "atomics", 0), 100 * ratio(c, "atomic_conflicts", "atomics"));
    if (json_double_or(c, "async_copies", 0) > 0)
        printf("  async copies %.4g of %.0f bytes; %.1f in flight after a wait\n",
               json_double_or(c, "async_copies", 0), ratio(c, "async_bytes", "async_copies"),
               ratio(c, "async_left", "async_waits"));
}

/* Columns that only some lines have: atomics, copies, waits, products. */
static void print_own(const json_t *v)
{
    double atomics = json_double_or(v, "atomics", 0), waits = json_double_or(v, "async_waits", 0);
    const char *type;
    json_t *flops;

    if (atomics > 0)
        printf("  %.3g atomics, %.0f%% meet", atomics,
               100 * ratio(v, "atomic_conflicts", "atomics"));
    if (json_double_or(v, "async_copies", 0) > 0)
        printf("  %.3g copies", json_double_or(v, "async_copies", 0));
    if (waits > 0)
        printf("  %.1f copies in flight", ratio(v, "async_left", "async_waits"));
    json_object_foreach(json_object_get(v, "tensor_flops_by_type"), type, flops)
        printf("  %.3g flops %s", json_number_value(flops), type);
}

static void print_lines(const json_t *c)
{
    double all = json_double_or(c, "warp_instructions", 0);
    const json_t *list = json_object_get(c, "lines"), *v;
    size_t i;

    if (!json_array_size(list))
        return;
    printf("  line                 instr  threads   sectors  per req  wavefronts  conflicts\n");
    json_array_foreach(list, i, v)
    {
        const char *file = json_string_or(v, "file", "?"), *base = strrchr(file, '/');

        if (i == TOP_LINES)
            break;
        if (!json_int_or(v, "line", 0) && json_double_or(v, "instructions", 0) <= 0.005 * all)
            continue; /* no source line: the compiler's own code */
        char place[64];

        snprintf(place, sizeof place, "%s:%d", base ? base + 1 : file,
                 (int)json_int_or(v, "line", 0));
        printf("  %-20s %4.0f%%  %7.1f  %8.3g  %7.1f  %10.3g  %9.3g", place,
               all > 0 ? 100 * json_double_or(v, "instructions", 0) / all : 0,
               ratio(v, "thread_instructions", "instructions"), json_double_or(v, "sectors", 0),
               ratio(v, "sectors", "requests"), json_double_or(v, "shared_wavefronts", 0),
               json_double_or(v, "shared_conflicts", 0));
        print_own(v);
        printf("\n");
    }
}

/* What the counters suggest, in the order an engineer would try it. */
static void print_advice(const json_t *launch, const json_t *c)
{
    const char *bound = json_string_or(launch, "bound", "");
    double used = 32 * json_double_or(c, "global_load_sectors", 0);
    double conflicts = ratio(c, "shared_conflicts", "shared_wavefronts");
    double waves = json_double_or(launch, "waves", 1), occupancy = part(launch, "occupancy");
    double lanes = ratio(c, "thread_instructions", "warp_instructions");

    used = used > 0 ? json_double_or(c, "global_load_bytes", 0) / used : 1;
    printf("  try\n");
    if (used < 0.6)
        printf("    - neighbouring threads should read neighbouring addresses: %.0f%% of what is "
               "loaded is used\n",
               100 * used);
    if (conflicts > 0.2)
        printf(
            "    - pad or swizzle the shared tile: %.0f%% of its wavefronts are bank conflicts\n",
            100 * conflicts);
    if (strcmp(bound, "latency") == 0)
        printf("    - more loads in flight (unroll, vectors, asynchronous copies)%s%s\n",
               occupancy < 0.5 ? ", or more warps: occupancy is limited by " : "",
               occupancy < 0.5 ? json_string_or(launch, "limiter", "") : "");
    if (waves < 1)
        printf("    - more blocks: only %.0f%% of the chip's block slots are used\n", 100 * waves);
    else if (waves < 4 && json_double_or(launch, "last_wave", 1) < 0.5)
        printf("    - another tile or grid: %.1f waves, the last is %.0f%% full\n", waves,
               100 * json_double_or(launch, "last_wave", 1));
    if (strcmp(bound, "atomics") == 0)
        printf("    - fewer atomics to one place: add up in the warp or block first, or spread "
               "them\n");
    if (lanes < 20)
        printf("    - divergence: %.0f of 32 threads are active on average; see column threads\n",
               lanes);
    if (json_double_or(c, "async_waits", 0) > 0 && ratio(c, "async_left", "async_waits") < 1)
        printf("    - more stages: no copy is in flight while the block computes\n");
    if (strcmp(bound, "dram") == 0)
        printf("    - fewer bytes: fuse with a neighbour, keep in 16 bits, read once\n");
    if (strcmp(bound, "issue") == 0 || strcmp(bound, "int") == 0)
        printf("    - fewer instructions: wider accesses, addresses out of the loop\n");
    if (strcmp(bound, "fp32") == 0)
        printf("    - tensor cores, if the accuracy allows\n");
    if (strcmp(bound, "shared") == 0 && conflicts <= 0.2)
        printf("    - more work per value in registers: larger tiles per thread\n");
    if (strcmp(bound, "l1") == 0 || strcmp(bound, "l2") == 0)
        printf("    - keep what is read again in shared memory or registers\n");
}

void print_profile(const json_t *report)
{
    const json_t *launches = json_object_get(json_object_get(report, "parts"), "launches"), *c;
    size_t i;

    json_array_foreach(json_object_get(report, "counters"), i, c)
    {
        const json_t *l = json_array_get(launches, i);

        printf("\n%s: %.2f us on %s, %s, not measured; bound by %s\n",
               json_string_or(c, "kernel", ""), json_double_or(l, "time_us", 0),
               json_string_or(report, "models", "a GPU"),
               modelled_words(json_string_or(report, "models", NULL)),
               json_string_or(l, "bound", "?"));
        printf("  occupancy    %.0f%% (%.0f warps per SM, limited by %s; %.0f registers), %.1f "
               "waves\n",
               100 * part(l, "occupancy"), part(l, "warps_sm"), json_string_or(l, "limiter", "?"),
               part(l, "registers"), part(l, "waves"));
        print_traffic(c);
        printf("  parts\n");
        print_parts(l);
        print_lines(c);
        print_advice(l, c);
    }
}
