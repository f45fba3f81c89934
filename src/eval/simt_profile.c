/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simt_profile.c - simt's counters as ten lines; see simt_profile.h.
 *
 * Invariants
 * 1. Every figure has a unit, and all figures of a line refer to the same size of the task: the
 *    size that was run, unless the line says otherwise.
 * 2. A resource that takes less than a twentieth of the time is left out.
 */
#include "eval/simt_profile.h"

#include "base/fs.h"
#include "base/json.h"
#include "eval/modelled.h"
#include "eval/runner_client.h"
#include "eval/verdict_text.h"

#include <math.h>
#include <string.h>

enum { SHOWN_PARTS = 5, WORST_LINES = 3, QUOTE = 70 };

static const struct profile_part {
    const char *key, *name;
    const char *counter, *unit; /* counter by which source lines are ranked */
} parts[] = {
    {"dram", "DRAM", "sectors", "global memory sectors"},
    {"l2", "L2", "sectors", "global memory sectors"},
    {"l1", "L1", "sectors", "global memory sectors"},
    {"shared", "shared memory", "shared_wavefronts", "shared-memory wavefronts"},
    {"atomics", "atomics", "atomics", "atomics"},
    {"fp32", "FP32 units", "instructions", "instructions"},
    {"fp64", "FP64 units", "instructions", "instructions"},
    {"int", "integer units", "instructions", "instructions"},
    {"sfu", "special function units", "instructions", "instructions"},
    {"tensor", "tensor cores", "instructions", "instructions"},
    {"issue", "instruction issue", "instructions", "instructions"},
    {"latency", "latency (warps that wait)", "requests", "global memory requests"},
};

static double get(const json_t *o, const char *key)
{
    return json_double_or(o, key, 0);
}

static double ratio(const json_t *o, const char *over, const char *under)
{
    return get(o, under) > 0 ? get(o, over) / get(o, under) : 0;
}

/* All resources, the one that takes longest first. */
static void rank_parts(const json_t *launch, const struct profile_part *out[])
{
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        size_t k = i;

        for (; k > 0 && get(launch, out[k - 1]->key) < get(launch, parts[i].key); k--)
            out[k] = out[k - 1];
        out[k] = &parts[i];
    }
}

static void put_parts(const json_t *launch, const struct profile_part *const ranked[],
                      struct buf *out)
{
    double total = get(launch, "time_us");

    buf_puts(out, "  time by resource   ");
    for (int i = 0; i < SHOWN_PARTS; i++) {
        double us = get(launch, ranked[i]->key);

        if (i > 0 && us < total / 20)
            break;
        buf_printf(out, "%s%s %.3g us (%.0f %%)", i ? ", " : "", ranked[i]->name, us,
                   total > 0 ? 100 * us / total : 0);
    }
    buf_puts(out, "; each as if alone; they overlap\n");
}

/* Prints the norm of the parts without the largest (modelled.c). */
static void put_without(const json_t *launch, const struct profile_part *const ranked[],
                        struct buf *out)
{
    double b = modelled_h200.blend, total = get(launch, "time_us");
    double own = get(launch, ranked[0]->key), next = get(launch, ranked[1]->key);
    double rest = fmax(next, pow(fmax(0, pow(total, b) - pow(own, b)), 1 / b));

    if (total > 0)
        buf_printf(out, "  if that were fixed %.3g us (-%.0f %%), then bound by %s\n", rest,
                   100 * (1 - rest / total), ranked[1]->name);
}

/* For a scaled-down task it is unknown how it fills the chip at full size. */
static void put_grid(const json_t *launch, const json_t *c, double share, struct buf *out)
{
    double waves = get(launch, "waves");

    buf_printf(out, "  grid               %.0f blocks of %.0f threads%s; %.0f fit on an SM",
               get(c, "blocks"), get(c, "threads_block"),
               share < 1 ? ", of a task that was scaled down" : "", get(launch, "blocks_sm"));
    if (share >= 1 && waves < 1)
        buf_printf(out, ": %.0f %% of the chip's block slots are used", 100 * waves);
    else if (share >= 1)
        buf_printf(out, ": %.1f waves, the last %.0f %% full", waves,
                   100 * get(launch, "last_wave"));
    buf_printf(out, "\n  occupancy          %.0f %% possible (%.0f warps per SM), limited by %s; ",
               100 * get(launch, "occupancy"), get(launch, "warps_sm"),
               json_string_or(launch, "limiter", "?"));
    buf_printf(out, "%.0f registers per thread, %.0f bytes of shared memory per block\n",
               get(launch, "registers"), get(c, "smem_bytes"));
}

static void put_memory(const json_t *c, struct buf *out)
{
    double moved = 32 * get(c, "global_load_sectors");

    buf_puts(out, "  memory             ");
    if (moved > 0)
        buf_printf(out, "%.1f sectors per load, %.0f %% of the loaded bytes used; ",
                   ratio(c, "global_load_sectors", "global_load_requests"),
                   100 * fmin(1, get(c, "global_load_bytes") / moved));
    if (get(c, "global_store_requests") > 0)
        buf_printf(out, "%.1f sectors per store; ",
                   ratio(c, "global_store_sectors", "global_store_requests"));
    if (get(c, "shared_requests") > 0)
        buf_printf(out, "shared: %.2f wavefronts per request, %.0f %% of them bank conflicts; ",
                   ratio(c, "shared_wavefronts", "shared_requests"),
                   100 * ratio(c, "shared_conflicts", "shared_wavefronts"));
    buf_printf(out, "%.1f of 32 threads active\n",
               ratio(c, "thread_instructions", "warp_instructions"));
}

static double sum_of(const json_t *lines, const char *counter)
{
    const json_t *v;
    double sum = 0;
    size_t i;

    json_array_foreach(lines, i, v) sum += get(v, counter);
    return sum;
}

/* The line with the largest `counter` not shown yet; lines without a number come from the
 * compiler. */
static size_t next_line(const json_t *lines, const char *counter, const size_t *shown, int count)
{
    size_t most = SIZE_MAX, i;
    const json_t *v;

    json_array_foreach(lines, i, v)
    {
        bool again = json_int_or(v, "line", 0) <= 0 || get(v, counter) <= 0;

        for (int k = 0; k < count; k++)
            again |= shown[k] == i;
        if (!again &&
            (most == SIZE_MAX || get(v, counter) > get(json_array_get(lines, most), counter)))
            most = i;
    }
    return most;
}

static void put_line(const struct simt_profile_input *in, const json_t *v, double percent,
                     const char *unit, struct arena *a, struct buf *out)
{
    const char *file = path_base(json_string_or(v, "file", "?"));
    size_t len = strlen(file);
    bool own = len > 3 && (!strcmp(file + len - 3, ".cu") || !strcmp(file + len - 3, ".py"));
    int line = (int)json_int_or(v, "line", 0);

    buf_printf(out, "%s:%d, %.0f %% of the %s: %.*s\n", own ? in->source_name : file, line, percent,
               unit, QUOTE, own ? words_source_line(in->source, line, a) : "");
}

/* Ranks lines by the counter behind the bound; if that names fewer than three, by instructions. */
static void put_lines(const struct simt_profile_input *in, const json_t *lines,
                      const struct profile_part *bound, struct arena *a, struct buf *out)
{
    const char *const counters[] = {bound->counter, "instructions"};
    const char *const units[] = {bound->unit, "instructions"};
    size_t shown[WORST_LINES];
    int count = 0;

    for (size_t by = 0; by < ARRAY_LEN(counters); by++) {
        double all = sum_of(lines, counters[by]);

        while (count < WORST_LINES) {
            size_t i = next_line(lines, counters[by], shown, count);

            if (i == SIZE_MAX)
                break;
            buf_puts(out, count ? "                     " : "  worst lines        ");
            put_line(in, json_array_get(lines, i),
                     100 * get(json_array_get(lines, i), counters[by]) / all, units[by], a, out);
            shown[count++] = i;
        }
    }
}

/* The launch that takes longest. */
static size_t heaviest(const json_t *launches)
{
    size_t most = 0, i;
    const json_t *v;

    json_array_foreach(launches, i, v) if (get(v, "time_us") >
                                           get(json_array_get(launches, most), "time_us")) most = i;
    return most;
}

static void put_others(const json_t *launches, size_t but, struct buf *out)
{
    const json_t *v;
    bool some = false;
    size_t i;

    json_array_foreach(launches, i, v)
    {
        if (i == but)
            continue;
        buf_printf(out, "%s%s %.3g us (bound by %s)",
                   some ? ", " : "other launches: ", json_string_or(v, "kernel", "?"),
                   get(v, "time_us"), json_string_or(v, "bound", "?"));
        some = true;
    }
    buf_puts(out, some ? "\n" : "");
}

void simt_profile_text(const struct simt_profile_input *in, struct arena *a, struct buf *out)
{
    const json_t *launches = json_object_get(in->modelled, "launches");
    size_t index = heaviest(launches);
    const json_t *launch = json_array_get(launches, index),
                 *c = json_array_get(in->counters, index);
    const struct profile_part *ranked[ARRAY_LEN(parts)];
    double share = get(in->modelled, "share");

    if (!launch || !c)
        return;
    rank_parts(launch, ranked);
    buf_printf(out, "kernel %s: %.3g us%s, bound by %s\n", json_string_or(launch, "kernel", "?"),
               get(launch, "time_us"), share > 0 && share < 1 ? " at the sizes run here" : "",
               ranked[0]->name);
    put_parts(launch, ranked, out);
    put_without(launch, ranked, out);
    put_grid(launch, c, share > 0 ? share : 1, out);
    put_memory(c, out);
    put_lines(in, json_object_get(c, "lines"), ranked[0], a, out);
    put_others(launches, index, out);
}

/* Load, one draw, one run, with counters by line and without checks, which ran before. */
bool simt_profile(const struct judge_config *config, const struct build_result *build,
                  const struct test_result *test, struct arena *a, json_t **out, struct error *err)
{
    struct runner_config rc = {.device = config->device,
                               .program = config->runner_program,
                               .check = "off",
                               .counters = true,
                               .profile = true,
                               .threads = config->threads,
                               .run_ms = config->run_ms,
                               .module = build->module_path,
                               .buffers = oracle_folder(config->oracle),
                               .source = config->source};
    struct oracle_draw wanted = {.seed = test->seed, .distribution = "task"};
    struct runner_answer said = {0};
    struct runner *r = NULL;
    json_t *buffers = NULL;
    bool ok = runner_start(&rc, &r, err) && runner_load(r, build, a, &said, err) &&
              oracle_draw(config->oracle, &wanted, &buffers, err);

    runner_answer_release(&said);
    ok = ok && runner_bind(r, buffers, a, &said, err);
    runner_answer_release(&said);
    ok = ok && runner_run(r, false, a, &said, err);
    if (ok && (said.verdict != VERDICT_PASS || !said.counters))
        ok = error_set(err, ERROR_MACHINE, "the profiled run: %s", said.text ? said.text : "");
    if (ok)
        *out = json_incref(said.counters);
    runner_answer_release(&said);
    json_decref(buffers);
    runner_stop(r);
    return ok;
}
