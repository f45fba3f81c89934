/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peaks.c - the table of GPUs and the floor under a time; see peaks.h.
 *
 * The floor is the larger of two times: the bytes that must move at the rate
 * DRAM reaches for that mix of reads and writes, and the flops that must be
 * done on the fastest unit that can give the accuracy. fp32 products can be
 * split into three fp16 tensor-core products and keep fp32's accuracy, so
 * that is the fp32 unit's rate for matrix work.
 *
 * strict_us decides whether a time is impossible, so it errs on the low side: written data may
 * still be in L2 when the clock stops, reads run at the best rate seen, and a margin covers
 * machines slightly faster than the one that was measured.
 */
#include "eval/peaks.h"

#include "base/fs.h"
#include "base/json.h"
#include "base/seal.h"

#include <ctype.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const double impossible_margin = 0.93;
static const double one_sided = 0.05; /* below this share, traffic counts as one-sided */

static const struct gpu gpus[] = {
#define GPU(name_, matches_, arch_, cluster_, source_, sms_, ghz_, read_, write_, mixed_, l2bw_,   \
            l2_, smem_, block_, regs_, warps_, blocks_, fp32_, int_, fp64_, sfu_, f16_, tf32_,     \
            f8_, f4_, launch_, ns_)                                                                \
    {.name = (name_),                                                                              \
     .matches = (matches_),                                                                        \
     .source = (source_),                                                                          \
     .arch = (arch_),                                                                              \
     .cluster_blocks = (cluster_),                                                                 \
     .sms = (sms_),                                                                                \
     .clock_ghz = (ghz_),                                                                          \
     .read_gbps = (read_),                                                                         \
     .write_gbps = (write_),                                                                       \
     .mixed_gbps = (mixed_),                                                                       \
     .l2_gbps = (l2bw_),                                                                           \
     .l2_mib = (l2_),                                                                              \
     .smem_sm_kib = (smem_),                                                                       \
     .smem_block_kib = (block_),                                                                   \
     .regs_sm = (regs_),                                                                           \
     .warps_sm = (warps_),                                                                         \
     .blocks_sm = (blocks_),                                                                       \
     .fp32_lanes = (fp32_),                                                                        \
     .int_lanes = (int_),                                                                          \
     .fp64_lanes = (fp64_),                                                                        \
     .sfu_lanes = (sfu_),                                                                          \
     .tensor_f16_tflops = (f16_),                                                                  \
     .tensor_tf32_tflops = (tf32_),                                                                \
     .tensor_f8_tflops = (f8_),                                                                    \
     .tensor_f4_tflops = (f4_),                                                                    \
     .launch_us = (launch_),                                                                       \
     .dram_latency_ns = (ns_)},
#include "eval/gpus.def"
#undef GPU
};

const struct gpu *gpu_list(size_t *count)
{
    *count = ARRAY_LEN(gpus);
    return gpus;
}

const char *gpu_names(struct arena *a)
{
    const char *names = "";

    for (size_t i = 0; i < ARRAY_LEN(gpus); i++)
        names = arena_printf(a, "%s%s%s", names, i ? ", " : "", gpus[i].name);
    return names;
}

/* Letters and digits only, in lower case: "RTX 4090" becomes "rtx4090". */
static void plain_name(const char *name, char *out, size_t size)
{
    size_t n = 0;

    for (; *name && n + 1 < size; name++)
        if (isalnum((unsigned char)*name))
            out[n++] = (char)tolower((unsigned char)*name);
    out[n] = '\0';
}

const struct gpu *gpu_find(const char *name)
{
    char wanted[128], known[128];

    if (!name)
        return NULL;
    plain_name(name, wanted, sizeof wanted);
    for (size_t i = 0; i < ARRAY_LEN(gpus); i++) {
        plain_name(gpus[i].matches, known, sizeof known);
        if (strstr(wanted, known))
            return &gpus[i];
    }
    return NULL;
}

/* ---- the floor ---------------------------------------------------------- */

static double element_bytes(const char *dtype)
{
    static const struct {
        const char *name;
        double bytes;
    } sizes[] = {{"f64", 8},  {"i64", 8}, {"f32", 4}, {"i32", 4}, {"f16", 2},
                 {"bf16", 2}, {"i16", 2}, {"i8", 1},  {"u8", 1},  {"bool", 1}};

    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        if (strcmp(dtype, sizes[i].name) == 0)
            return sizes[i].bytes;
    return 4;
}

static double tensors_bytes(const struct tensor_info *t, int count)
{
    double sum = 0;

    for (int i = 0; i < count; i++) {
        double bytes = element_bytes(t[i].dtype);

        for (int k = 0; k < t[i].dims; k++)
            bytes *= (double)t[i].shape[k];
        sum += bytes;
    }
    return sum;
}

/* Flops per microsecond of the fastest unit that can give the accuracy. */
static double flop_rate(const struct gpu *g, const struct task *task, const char **unit)
{
    const char *dtype = task->out_count > 0 ? task->out[0].dtype : "f32";
    double lanes = 2e3 * g->sms * g->clock_ghz;
    double fp32 = g->fp32_tflops > 0 ? g->fp32_tflops * 1e6 : lanes * g->fp32_lanes;
    double fp64 = g->fp64_tflops > 0 ? g->fp64_tflops * 1e6 : lanes * g->fp64_lanes;
    bool matrix = task->class == CLASS_GEMM || task->class == CLASS_CONVOLUTION ||
                  task->class == CLASS_ATTENTION || task->class == CLASS_OTHER;

    if (strcmp(dtype, "f64") == 0) {
        *unit = "fp64";
        return fp64 * (matrix ? 2 : 1);
    }
    if (!matrix) {
        *unit = "fp32";
        return fp32;
    }
    if (strcmp(dtype, "f16") == 0 || strcmp(dtype, "bf16") == 0) {
        *unit = "tensor (f16)";
        return g->tensor_f16_tflops * 1e6;
    }
    if (json_bool_or(task->description, "tf32", false)) {
        *unit = "tensor (f16)"; /* one scaled f16 product has as many bits as a TF32 factor */
        return g->tensor_f16_tflops * 1e6;
    }
    *unit = "tensor (3 x f16)";
    return g->tensor_f16_tflops * 1e6 / 3;
}

struct floor peaks_floor(const struct gpu *gpu, const struct gpu *best_gpu, const struct task *task)
{
    double in = tensors_bytes(task->in, task->in_count);
    double out = tensors_bytes(task->out, task->out_count);
    double read_share = in + out > 0 ? in / (in + out) : 1;
    double read = task->bytes_min * read_share, write = task->bytes_min - read;
    double l2 = gpu->l2_mib * 1048576, held = write < l2 ? write : l2;
    double rate = read_share > 1 - one_sided ? gpu->read_gbps
                  : read_share < one_sided   ? gpu->write_gbps
                                             : gpu->mixed_gbps;
    double best =
        best_gpu->read_gbps > best_gpu->write_gbps ? best_gpu->read_gbps : best_gpu->write_gbps;
    const char *unit;
    double memory_us = task->bytes_min / (rate * 1e3);
    double strict_us = (read + write - held) / (best * 1e3);
    double best_us = task->flops_min / flop_rate(best_gpu, task, &unit);
    double flops_us = task->flops_min / flop_rate(gpu, task, &unit);
    struct floor f = {.us = memory_us, .bound = "memory"};

    if (flops_us > memory_us) {
        f.us = flops_us;
        f.bound = unit;
    }
    f.strict_us = impossible_margin * (best_us > strict_us ? best_us : strict_us);
    return f;
}

/* ---- measured ------------------------------------------------------------ */

/* The measured figures: where each is stored and its plausible range on any GPU. Relative to
 * the table's row of the same GPU it must be between slack_low and slack_high: a busy machine gives
 * low figures. */
static const struct kept {
    const char *name;
    size_t at; /* in struct gpu; SIZE_MAX: only reported */
    double least, most;
} kept[] = {
    {"read_gbps", offsetof(struct gpu, read_gbps), 20, 50000},
    {"write_gbps", offsetof(struct gpu, write_gbps), 20, 50000},
    {"mixed_gbps", offsetof(struct gpu, mixed_gbps), 20, 50000},
    {"l2_gbps", offsetof(struct gpu, l2_gbps), 50, 200000},
    {"fp32_tflops", offsetof(struct gpu, fp32_tflops), 0.5, 1000},
    {"fp64_tflops", offsetof(struct gpu, fp64_tflops), 0.01, 1000},
    {"tensor_sync_f16_tflops", SIZE_MAX, 1, 20000},
    {"tensor_f16_tflops", offsetof(struct gpu, tensor_f16_tflops), 1, 20000},
    {"tensor_bf16_tflops", SIZE_MAX, 1, 20000},
    {"tensor_tf32_tflops", offsetof(struct gpu, tensor_tf32_tflops), 1, 20000},
    {"launch_us", offsetof(struct gpu, launch_us), 0.1, 100},
};
static const double slack_low = 0.5, slack_high = 1.3;

static double *field(struct gpu *g, const struct kept *k)
{
    return k->at == SIZE_MAX ? NULL : (double *)(void *)((char *)g + k->at);
}

/* Converts lanes and clock to rates, so that the table's row has every measured figure. */
static struct gpu with_rates(const struct gpu *row)
{
    struct gpu g = *row;
    double lanes = 2e-3 * g.sms * g.clock_ghz;

    g.fp32_tflops = lanes * g.fp32_lanes;
    g.fp64_tflops = lanes * g.fp64_lanes;
    return g;
}

static bool plausible(const struct kept *k, double v, const struct gpu *row)
{
    struct gpu known = row ? with_rates(row) : (struct gpu){0};
    double *usual = row ? field(&known, k) : NULL;

    if (!isfinite(v) || v < k->least || v > k->most)
        return false;
    if (!usual || *usual <= 0 || k->at == offsetof(struct gpu, launch_us) ||
        k->at == offsetof(struct gpu, l2_gbps)) /* the table has only rounded figures here */
        return true;
    return v > slack_low * *usual && v < slack_high * *usual;
}

static bool peaks_path(const char *device, struct arena *a, char **out, struct error *err)
{
    char name[128];

    plain_name(device, name, sizeof name);
    return home_tools(arena_printf(a, "peaks/%s.json", name), a, out, err);
}

/* Binds the file to its device: another device's figures could let an impossible time pass. */
static const char *seal_name(const char *path, struct arena *a)
{
    return arena_printf(a, "peaks/%s", path_base(path));
}

bool peaks_save(const char *device, json_t *figures, struct arena *a, struct error *err)
{
    const struct gpu *row = gpu_find(device);
    json_t *bad = json_object();
    char *path, *text;
    bool ok;

    for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
        json_t *v = json_object_get(figures, kept[i].name);

        if (v && !plausible(&kept[i], json_number_value(v), row)) {
            json_object_set(bad, kept[i].name, v);
            json_object_del(figures, kept[i].name);
        }
    }
    if (json_object_size(bad))
        json_object_set(figures, "implausible", bad);
    json_decref(bad);
    text = json_line(figures, a);
    if (!peaks_path(device, a, &path, err))
        return false;
    ok = dir_make(arena_strndup(a, path, (size_t)(path_base(path) - path)), err) &&
         seal_save(path, seal_name(path, a), text_of(arena_printf(a, "%s\n", text)), err);
    return ok ? true : error_add(err, "keeping the peaks of %s", device);
}

/* The figures stored for this device; NULL: none, or unreadable. A new reference. */
static json_t *load(const char *device, struct arena *a)
{
    struct error ignored = {0};
    struct text t;
    json_t *j = NULL;
    char *path;

    if (!device || !peaks_path(device, a, &path, &ignored) ||
        !seal_load(path, seal_name(path, a), 64 << 10, a, &t) ||
        !json_parse(t, "peaks", &j, &ignored))
        return NULL;
    return j;
}

bool peaks_measured(const char *device, struct arena *a)
{
    json_t *kept_figures = load(device, a);
    bool known = kept_figures != NULL;

    json_decref(kept_figures);
    return known;
}

bool peaks_find(const char *device, struct arena *a, struct gpu *out, struct gpu *best)
{
    const struct gpu *row = gpu_find(device);
    json_t *measured = load(device, a);
    int taken = 0;

    *out = *best = row ? with_rates(row) : (struct gpu){.name = device, .matches = device};
    for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
        double v = json_number_value(json_object_get(measured, kept[i].name));
        double *to = field(out, &kept[i]), *top = field(best, &kept[i]);

        if (!to || !plausible(&kept[i], v, row))
            continue;
        *to = v;
        if (v > *top)
            *top = v;
        taken++;
    }
    json_decref(measured);
    /* without a row, all figures that a floor needs must have been measured */
    return row || (taken > 0 && out->read_gbps > 0 && out->write_gbps > 0 && out->mixed_gbps > 0 &&
                   out->fp32_tflops > 0 && out->fp64_tflops > 0 && out->tensor_f16_tflops > 0);
}

json_t *peaks_report(const struct device *device, struct arena *a)
{
    const char *name = device->kind == DEVICE_SIMT ? device->models : device->name;
    json_t *measured = device->kind == DEVICE_SIMT ? NULL : load(name, a);
    json_t *figures = json_object(), *out;
    struct gpu g, best;
    bool known = peaks_find(device->kind == DEVICE_SIMT ? NULL : name, a, &g, &best);

    if (device->kind == DEVICE_SIMT) {
        known = gpu_find(name) != NULL;
        if (known)
            g = with_rates(gpu_find(name));
    }
    for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
        double v = json_number_value(json_object_get(measured, kept[i].name));
        double *from = field(&g, &kept[i]);

        if (v <= 0 && from && known)
            v = *from;
        if (v > 0)
            json_object_set_new(figures, kept[i].name, json_real(v));
    }
    out =
        json_pack("{s:s, s:s, s:s, s:o}", "device", device->name, "gpu", name ? name : "", "source",
                  measured ? "measured"
                  : known  ? "table"
                           : "none",
                  "figures", figures);
    if (!measured && known && gpu_find(name))
        json_object_set_new(out, "from", json_string(gpu_find(name)->source));
    if (measured && json_object_get(measured, "measured"))
        json_object_set(out, "measured", json_object_get(measured, "measured"));
    if (measured && json_object_get(measured, "implausible"))
        json_object_set(out, "implausible", json_object_get(measured, "implausible"));
    json_decref(measured);
    return out;
}
