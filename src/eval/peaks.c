/*
 * peaks.c - the table of GPUs and the floor under a time; see peaks.h.
 *
 * The floor is the larger of two times: the bytes that must move at the rate
 * DRAM reaches for that mix of reads and writes, and the flops that must be
 * done on the fastest unit that can give the accuracy. fp32 products can be
 * split into three fp16 tensor-core products and keep fp32's accuracy, so
 * that is the fp32 unit's rate for matrix work.
 *
 * strict_us is for calling a time impossible, so it gives every benefit of
 * the doubt: what is written may still be in L2 when the clock stops, reads go
 * at the best rate seen, and a margin covers machines a little faster than
 * the one that was measured.
 */
#include "eval/peaks.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static const double impossible_margin = 0.93;
static const double one_sided = 0.05; /* below this share, traffic counts as one-sided */

static const struct gpu gpus[] = {
#define GPU(name_, matches_, sms_, ghz_, read_, write_, mixed_, l2bw_, l2_, smem_, block_, regs_,  \
            warps_, blocks_, fp32_, int_, fp64_, sfu_, f16_, tf32_, launch_, ns_)                  \
    {.name = (name_),                                                                              \
     .matches = (matches_),                                                                        \
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

/* Letters and digits only, in small letters: "RTX 4090" is "rtx4090". */
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
    bool matrix = task->class == CLASS_GEMM || task->class == CLASS_OTHER;

    if (strcmp(dtype, "f64") == 0) {
        *unit = "fp64";
        return lanes * g->fp64_lanes * (matrix ? 2 : 1);
    }
    if (!matrix) {
        *unit = "fp32";
        return lanes * g->fp32_lanes;
    }
    if (strcmp(dtype, "f16") == 0 || strcmp(dtype, "bf16") == 0) {
        *unit = "tensor (f16)";
        return g->tensor_f16_tflops * 1e6;
    }
    *unit = "tensor (3 x f16)";
    return g->tensor_f16_tflops * 1e6 / 3;
}

struct floor peaks_floor(const struct gpu *gpu, const struct task *task)
{
    double in = tensors_bytes(task->in, task->in_count);
    double out = tensors_bytes(task->out, task->out_count);
    double read_share = in + out > 0 ? in / (in + out) : 1;
    double read = task->bytes_min * read_share, write = task->bytes_min - read;
    double l2 = gpu->l2_mib * 1048576, held = write < l2 ? write : l2;
    double rate = read_share > 1 - one_sided ? gpu->read_gbps
                  : read_share < one_sided   ? gpu->write_gbps
                                             : gpu->mixed_gbps;
    double best = gpu->read_gbps > gpu->write_gbps ? gpu->read_gbps : gpu->write_gbps;
    const char *unit;
    double memory_us = task->bytes_min / (rate * 1e3);
    double strict_us = (read + write - held) / (best * 1e3);
    double flops_us = task->flops_min / flop_rate(gpu, task, &unit);
    struct floor f = {.us = memory_us, .bound = "memory"};

    if (flops_us > memory_us) {
        f.us = flops_us;
        f.bound = unit;
    }
    f.strict_us = impossible_margin * (flops_us > strict_us ? flops_us : strict_us);
    return f;
}
