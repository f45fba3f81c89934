/* SPDX-License-Identifier: Apache-2.0 */
/*
 * errors.c - what oracle/compare.py needs to know of an output in one pass over it, on the host.
 *
 * A shared object for the oracle's Python (oracle/fused.py), the twin of oracle/fused.cu: the same
 * blocks, medians, limits and sums, from the same arguments. torch takes some forty passes over
 * small pieces for it. oracle/fused.py holds it against torch before it is used.
 */
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Called by name, from Python; no C includes them. */
int cutegen_errors_f32(const float *got, const float *reference, const double *truth,
                       uint64_t blocks, uint64_t columns, uint64_t segments, double rtol,
                       double rms, double floor, float *excess, double *out);
int cutegen_lean_f32(uint32_t *bits, uint64_t count, int low_bits, int begin);

/* Chosen when the object is loaded: distributed builds are for every machine of a kind. */
#if defined(__x86_64__) && defined(__gnu_linux__)
#define FOR_THIS_MACHINE __attribute__((target_clones("avx2", "default")))
#else
#define FOR_THIS_MACHINE
#endif

enum { MOST = 256, BITS = 31 };

/* As in compare.py. */
static const double element_factor = 16.0, own_factor = 8.0, rms_factor = 8.0;

struct error_limits {
    double rtol, rms, floor;
};

/* In the order in which fused.py reads them. */
struct error_sums {
    double square, ref_square, most, ref_most, rel, ref_rel;
    double beyond, off, off_blocks, truth_sum, truth_square, odd;
};

struct error_block {
    double size[MOST], off[MOST], ref_off[MOST];
    uint32_t size_key[MOST], ref_key[MOST]; /* in the order of the numbers; ~0: does not count */
};

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static uint32_t key_of(double v)
{
    float narrow = (float)v;
    uint32_t bits;

    memcpy(&bits, &narrow, sizeof(bits));
    return bits;
}

/* The lower median of the keys below 2^31, bit by bit; 0: there are none. */
FOR_THIS_MACHINE
static double median(const uint32_t *key)
{
    uint32_t pick = 0;
    int count = 0, rank;
    float found;

    for (int i = 0; i < MOST; i++)
        count += key[i] >> BITS == 0;
    if (count == 0)
        return 0;
    rank = (count - 1) / 2;
    for (int bit = BITS - 1; bit >= 0; bit--) {
        uint32_t wanted = pick >> bit;
        int below = 0;

        for (int i = 0; i < MOST; i++)
            below += key[i] >> bit == wanted;
        if (rank >= below) {
            rank -= below;
            pick |= 1u << bit;
        }
    }
    memcpy(&found, &pick, sizeof(found));
    return found;
}

FOR_THIS_MACHINE
static void take_block(const float *got, const float *reference, const double *truth, int size,
                       struct error_block *b, struct error_sums *s)
{
    int odd = 0;

    for (int i = 0; i < size; i++) {
        b->size[i] = fabs(truth[i]);
        b->off[i] = fabs((double)got[i] - truth[i]);
        b->ref_off[i] = fabs((double)reference[i] - truth[i]);
        odd += !(b->off[i] <= (double)FLT_MAX) + !(b->ref_off[i] <= (double)FLT_MAX) +
               !(b->size[i] <= (double)FLT_MAX);
    }
    for (int i = 0; i < size; i++) {
        uint32_t key = key_of(b->size[i]);

        b->size_key[i] = key > 0 ? key : UINT32_MAX;
        b->ref_key[i] = key_of(b->ref_off[i]);
    }
    for (int i = size; i < MOST; i++)
        b->size_key[i] = b->ref_key[i] = UINT32_MAX;
    s->odd += odd;
}

FOR_THIS_MACHINE
static void judge_block(const struct error_block *b, int size, const struct error_limits *l,
                        float *excess, struct error_sums *s)
{
    double scale = median(b->size_key), usual = median(b->ref_key);
    double most = 0, ref_most = 0, rel = 0, ref_rel = 0;
    int far = 0, beyond = 0;

    for (int i = 0; i < size; i++) {
        most = larger(most, b->off[i]);
        ref_most = larger(ref_most, b->ref_off[i]);
    }
    if (scale < usual)
        usual = ref_most;
    for (int i = 0; i < size; i++) {
        double weight = b->size[i] + (scale + l->floor);
        double allowed =
            larger(larger(weight * l->rtol, usual * element_factor), b->ref_off[i] * own_factor);
        double part = b->off[i] / allowed;

        far += b->off[i] > larger(weight * l->rms, usual * rms_factor);
        beyond += b->off[i] > allowed;
        rel = larger(rel, b->off[i] / weight);
        ref_rel = larger(ref_rel, b->ref_off[i] / weight);
        excess[i] = (float)part;
    }
    for (int i = 0; i < size; i++) {
        s->square += b->off[i] * b->off[i];
        s->ref_square += b->ref_off[i] * b->ref_off[i];
        s->truth_sum += b->size[i];
        s->truth_square += b->size[i] * b->size[i];
    }
    s->most = larger(s->most, most);
    s->ref_most = larger(s->ref_most, ref_most);
    s->rel = larger(s->rel, rel);
    s->ref_rel = larger(s->ref_rel, ref_rel);
    s->beyond += beyond;
    s->off += far;
    s->off_blocks += 2 * far > size;
}

/* A row of `columns` elements is divided evenly into `segments` blocks of at most MOST (blocks.py).
 * out: the members of struct error_sums, over all blocks. */
int cutegen_errors_f32(const float *got, const float *reference, const double *truth,
                       uint64_t blocks, uint64_t columns, uint64_t segments, double rtol,
                       double rms, double floor, float *excess, double *out)
{
    struct error_limits limits = {rtol, rms, floor};
    struct error_sums sums = {0};
    struct error_block block;

    for (uint64_t b = 0; b < blocks; b++) {
        uint64_t row = b / segments, segment = b % segments;
        uint64_t begin = row * columns + segment * columns / segments;
        uint64_t end = row * columns + (segment + 1) * columns / segments;

        if (end - begin > MOST)
            return 1;
        take_block(got + begin, reference + begin, truth + begin, (int)(end - begin), &block,
                   &sums);
        if (sums.odd > 0)
            break; /* torch must do it */
        judge_block(&block, (int)(end - begin), &limits, excess + begin, &sums);
    }
    memcpy(out, &sums, sizeof(sums));
    return 0;
}

/* oracle/draw.py's lean(): low bits of numbers moved into a window, where they are not zero. */
FOR_THIS_MACHINE
int cutegen_lean_f32(uint32_t *bits, uint64_t count, int low_bits, int begin)
{
    uint32_t mask = (1u << low_bits) - 1, exponent = 0x7f800000u;

    for (uint64_t i = 0; i < count; i++) {
        uint32_t low = bits[i] & mask, window = (low * 3 >> 3) + (uint32_t)begin;
        uint32_t moved = (bits[i] & ~mask) + window;

        bits[i] = low != 0 && (bits[i] & exponent) != exponent ? moved : bits[i];
    }
    return 0;
}
