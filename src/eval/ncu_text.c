/* SPDX-License-Identifier: Apache-2.0 */
/* ncu_text.c - a profile as text, in the terms of prompts/profile-reading.md; see ncu.h. */
#include "eval/ncu.h"

#include "base/json.h"

#include <math.h>
#include <string.h>

enum { MAX_STALLS = 4 };

static double get(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);

    return json_is_number(v) ? json_number_value(v) : NAN;
}

/* Appends "compute 45 %, " if the value is known. */
static void put_pct(struct buf *b, const json_t *o, const char *key, const char *name)
{
    double v = get(o, key);

    if (!isnan(v))
        buf_printf(b, "%s %.0f %%, ", name, v);
}

/* Replaces the last ", " by a line end. */
static void end_line(struct buf *b)
{
    while (b->len && (b->data[b->len - 1] == ' ' || b->data[b->len - 1] == ','))
        b->data[--b->len] = '\0';
    buf_putc(b, '\n');
}

static void put_bytes(struct buf *b, double v)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    size_t i = 0;

    for (; v >= 1000 && i + 1 < ARRAY_LEN(units); i++)
        v /= 1000;
    buf_printf(b, "%.3g %s", v, units[i]);
}

static void put_shape(struct buf *b, const char *name, const json_t *shape)
{
    if (json_array_size(shape) == 3)
        buf_printf(b, "  %s (%lld, %lld, %lld)", name,
                   (long long)json_integer_value(json_array_get(shape, 0)),
                   (long long)json_integer_value(json_array_get(shape, 1)),
                   (long long)json_integer_value(json_array_get(shape, 2)));
}

static void put_launch(struct buf *b, const json_t *o)
{
    double smem = get(o, "smem_static") + get(o, "smem_dynamic");

    buf_printf(b, "kernel %s", json_string_or(o, "kernel", "?"));
    put_shape(b, "grid", json_object_get(o, "grid"));
    put_shape(b, "block", json_object_get(o, "block"));
    buf_printf(b, "\n  duration           %.2f us under the profiler\n", get(o, "time_us"));
    buf_printf(b, "  resources          %.0f registers per thread, ", get(o, "registers"));
    if (!isnan(smem)) {
        put_bytes(b, smem);
        buf_puts(b, " of shared memory per block, ");
    }
    if (!isnan(get(o, "waves")))
        buf_printf(b, "%.2f waves, ", get(o, "waves"));
    end_line(b);
}

static void put_throughput(struct buf *b, const json_t *o)
{
    buf_puts(b, "  of peak            ");
    put_pct(b, o, "compute_pct", "compute");
    put_pct(b, o, "memory_pct", "memory");
    put_pct(b, o, "dram_pct", "DRAM");
    put_pct(b, o, "l2_pct", "L2");
    put_pct(b, o, "l1_pct", "L1/shared");
    put_pct(b, o, "fma_pct", "FMA pipe");
    put_pct(b, o, "tensor_pct", "tensor pipe");
    end_line(b);
    if (isnan(get(o, "dram_read_bytes")))
        return;
    buf_puts(b, "  DRAM traffic       ");
    put_bytes(b, get(o, "dram_read_bytes"));
    buf_puts(b, " read, ");
    put_bytes(b, get(o, "dram_write_bytes"));
    buf_printf(b, " written, %.0f GB/s, ", get(o, "dram_gbps"));
    put_pct(b, o, "l1_hit_pct", "L1 hits");
    put_pct(b, o, "l2_hit_pct", "L2 hits");
    end_line(b);
}

static void put_stalls(struct buf *b, const json_t *stalls)
{
    bool shown[64] = {0};

    for (int n = 0; n < MAX_STALLS; n++) {
        const char *key, *top = NULL;
        double most = 0.01; /* smaller shares are left out */
        size_t i = 0, at = 0;
        json_t *v;

        json_object_foreach((json_t *)(uintptr_t)stalls, key, v)
        {
            if (i < ARRAY_LEN(shown) && !shown[i] && json_real_value(v) > most) {
                most = json_real_value(v);
                top = key;
                at = i;
            }
            i++;
        }
        if (!top)
            break;
        shown[at] = true;
        buf_printf(b, "%s%s %.0f %%", n ? ", " : "  warps wait for     ", top, most * 100);
        if (n == MAX_STALLS - 1)
            break;
    }
    if (shown[0] || json_object_size(stalls))
        buf_putc(b, '\n');
}

static void put_occupancy(struct buf *b, const json_t *o)
{
    if (!isnan(get(o, "occupancy_pct")))
        buf_printf(b, "  occupancy          %.0f %% achieved of %.0f %% possible, limited by %s\n",
                   get(o, "occupancy_pct"), get(o, "occupancy_theoretical_pct"),
                   json_string_or(o, "occupancy_limit", "nothing known"));
    if (!isnan(get(o, "ipc")))
        buf_printf(b, "  issue              %.2f instructions per cycle and SM (4 at most)\n",
                   get(o, "ipc"));
    put_stalls(b, json_object_get(o, "stalls"));
}

static void put_accesses(struct buf *b, const json_t *o)
{
    double load = get(o, "load_sectors_per_request"), store = get(o, "store_sectors_per_request");
    double over = get(o, "shared_wavefronts_over_ideal");

    if (!isnan(load) || !isnan(store)) {
        buf_puts(b, "  global memory      ");
        if (!isnan(load))
            buf_printf(b, "%.1f sectors per load, ", load);
        if (!isnan(store))
            buf_printf(b, "%.1f per store, ", store);
        end_line(b);
    }
    if (over > 0)
        buf_printf(b,
                   "  shared memory      %.2f wavefronts for each that is needed; bank conflicts: "
                   "%.3g in loads, %.3g in stores\n",
                   over, get(o, "shared_load_conflicts"), get(o, "shared_store_conflicts"));
    if (get(o, "local_requests") > 0)
        buf_printf(b, "  local memory       %.3g requests: spilled registers or indexed arrays\n",
                   get(o, "local_requests"));
    if (get(o, "tflops_fp32") > 0)
        buf_printf(b, "  roofline           %.2f TFLOP/s in fp32 at %.2f flops per DRAM byte\n",
                   get(o, "tflops_fp32"), get(o, "flops_per_byte"));
}

void ncu_text(const json_t *kernels, struct buf *out)
{
    size_t i, k;
    json_t *o, *tip;

    json_array_foreach(kernels, i, o)
    {
        put_launch(out, o);
        put_throughput(out, o);
        put_occupancy(out, o);
        put_accesses(out, o);
        json_array_foreach(json_object_get(o, "advice"), k, tip)
        {
            double promise = json_double_or(tip, "speedup_pct", 0);

            buf_puts(out, "  ncu's advice       ");
            if (promise > 0)
                buf_printf(out, "(up to %.0f %%) ", promise);
            buf_printf(out, "%s\n", json_string_or(tip, "text", ""));
        }
    }
}
