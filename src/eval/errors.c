/* SPDX-License-Identifier: Apache-2.0 */
/*
 * errors.c - everything oracle/compare.py needs to know about an output, in one pass, on the CPU.
 *
 * A shared object for the oracle's Python (oracle/fused.py), the counterpart of oracle/fused.cu:
 * the same blocks, medians, limits and sums from the same arguments. torch needs about forty passes
 * for them. oracle/fused.py checks it against torch before use.
 */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Called by name from Python; no C file includes them. */
int cutegen_errors_f32(const float *got, const float *reference, const double *truth,
                       uint64_t blocks, uint64_t columns, uint64_t segments, double rtol,
                       double rms, double floor, const void *raw, uint64_t raw_bytes, uint64_t mark,
                       double largest, float *excess, double *out);
int cutegen_lean_f32(uint32_t *bits, uint64_t count, int low_bits, int begin);

/* The variant is chosen at load time, because a distributed build must run on every CPU of an
 * architecture. */
#if defined(__x86_64__) && defined(__gnu_linux__)
#define FOR_THIS_MACHINE __attribute__((target_clones("avx2", "default")))
#else
#define FOR_THIS_MACHINE
#endif

enum { MOST = 256, LANES = 8, NO_KEY = INT32_MAX };

/* As in compare.py. */
static const double element_factor = 16.0, own_factor = 8.0, rms_factor = 8.0;

struct error_limits {
    double rtol, rms, floor;
};

/* The output in its own type, of which `got` is a copy in 32 bits. */
struct raw_output {
    const void *at;
    uint64_t bytes, mark; /* bytes of an element; bit pattern of an unwritten one */
    double largest;       /* largest finite number of the type */
};

/* The order is known to fused.py. */
struct error_sums {
    double square, ref_square, most, ref_most, rel, ref_rel;
    double beyond, off, off_blocks, truth_sum, truth_square;
    double misplaced, nan, inf, unwritten;
};

/* Padded with zeros to `full`, a multiple of LANES; the keys to MOST. */
struct error_block {
    double size[MOST], off[MOST], ref_off[MOST];
    int32_t size_key[MOST], ref_key[MOST]; /* ordered like the numbers; NO_KEY: does not count */
    double most, ref_most;
    double square, ref_square, truth_square;
    int misplaced[MOST], misplaced_count; /* places with an infinite error; off is 0 there */
    int full;
};

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static int32_t key_of(double v)
{
    float narrow = (float)v;
    int32_t bits;

    memcpy(&bits, &narrow, sizeof(bits));
    return bits;
}

/* Partial sums that a vector unit adds in parallel. n: a multiple of LANES. */
FOR_THIS_MACHINE
static double sum_of(const double *x, int n)
{
    double part[LANES] = {0}, sum = 0;

    for (int i = 0; i < n; i += LANES)
        for (int j = 0; j < LANES; j++)
            part[j] += x[i + j];
    for (int j = 0; j < LANES; j++)
        sum += part[j];
    return sum;
}

FOR_THIS_MACHINE
static double sum_of_squares(const double *x, int n)
{
    double part[LANES] = {0}, sum = 0;

    for (int i = 0; i < n; i += LANES)
        for (int j = 0; j < LANES; j++)
            part[j] += x[i + j] * x[i + j];
    for (int j = 0; j < LANES; j++)
        sum += part[j];
    return sum;
}

/* Ignores NaN. */
FOR_THIS_MACHINE
static double most_of(const double *x, int n)
{
    double part[LANES] = {0}, most = 0;

    for (int i = 0; i < n; i += LANES)
        for (int j = 0; j < LANES; j++)
            part[j] = larger(x[i + j], part[j]);
    for (int j = 0; j < LANES; j++)
        most = larger(most, part[j]);
    return most;
}

/* Counts keys below `limit`; four sums, to break the dependency chain of additions. */
FOR_THIS_MACHINE
static int keys_below(const int32_t *key, int32_t limit)
{
    enum { STEP = MOST / 4 };
    int one = 0, two = 0, three = 0, four = 0;

    for (int i = 0; i < STEP; i++) {
        one += key[i] < limit;
        two += key[i + STEP] < limit;
        three += key[i + 2 * STEP] < limit;
        four += key[i + 3 * STEP] < limit;
    }
    return one + two + three + four;
}

/* The largest key that is at most `limit`. */
FOR_THIS_MACHINE
static int32_t largest_below(const int32_t *key, int32_t limit)
{
    enum { STEP = MOST / 2 };
    int32_t one = 0, two = 0;

    for (int i = 0; i < STEP; i++) {
        int32_t a = key[i] > limit ? 0 : key[i], b = key[i + STEP] > limit ? 0 : key[i + STEP];

        one = a > one ? a : one;
        two = b > two ? b : two;
    }
    return one > two ? one : two;
}

/* Selects the key of rank `rank` among `count` keys that agree with `pick` above `bit`: decides bit
 * by bit until one is left. */
static int32_t key_of_rank(const int32_t *key, int32_t pick, int bit, int count, int rank)
{
    int below = 0;

    for (; bit >= 0 && count - below > 1; bit--) {
        int less = keys_below(key, pick | 1 << bit);

        if (rank >= less) {
            pick |= 1 << bit;
            below = less;
        } else {
            count = less;
        }
    }
    return bit >= 0 ? largest_below(key, pick | ((2 << bit) - 1)) : pick;
}

/* The lower median of the keys; 0 if there are none. */
FOR_THIS_MACHINE
static double median(const int32_t *key)
{
    int32_t low = NO_KEY, high, pick;
    int count = 0, bit;
    float found;

    for (int i = 0; i < MOST; i++)
        low = key[i] < low ? key[i] : low;
    count = keys_below(key, NO_KEY);
    if (count == 0)
        return 0;
    high = largest_below(key, NO_KEY - 1);
    pick = low;
    if (low != high) {
        bit = 31 - __builtin_clz((uint32_t)(low ^ high));
        pick = key_of_rank(key, high >> bit >> 1 << bit << 1, bit, count, (count - 1) / 2);
    }
    memcpy(&found, &pick, sizeof(found));
    return found;
}

FOR_THIS_MACHINE
static void take_block(const float *got, const float *reference, const double *truth, int size,
                       struct error_block *b)
{
    b->full = (size + LANES - 1) / LANES * LANES;
    b->misplaced_count = 0;
    for (int i = 0; i < size; i++) {
        b->size[i] = fabs(truth[i]);
        b->off[i] = fabs((double)got[i] - truth[i]);
        b->ref_off[i] = fabs((double)reference[i] - truth[i]);
    }
    for (int i = size; i < b->full; i++)
        b->size[i] = b->off[i] = b->ref_off[i] = 0;
}

static void square_block(struct error_block *b)
{
    b->square = sum_of_squares(b->off, b->full);
    b->ref_square = sum_of_squares(b->ref_off, b->full);
    b->truth_square = sum_of_squares(b->size, b->full);
}

static bool is_unwritten(const struct raw_output *raw, uint64_t i)
{
    uint64_t bits =
        raw->bytes == 2 ? ((const uint16_t *)raw->at)[i] : ((const uint32_t *)raw->at)[i];

    return bits == raw->mark;
}

/* compare.py's _settle_non_finite() for one element: is a non-finite value correct here? */
static bool is_in_place(double got, double reference, double truth, double largest)
{
    double rounded = fabs(truth) > largest ? copysign(HUGE_VAL, truth) : truth;

    if (isnan(got))
        return isnan(reference) || isnan(truth);
    return got == reference || (isinf(got) && got == rounded);
}

/* For a block with non-finite values: no error where such a value is correct, else an infinite one.
 * `begin`: the block's offset in the output. */
static void settle_block(const float *got, const float *reference, const double *truth, int size,
                         const struct raw_output *raw, uint64_t begin, struct error_block *b,
                         struct error_sums *s)
{
    for (int i = 0; i < size; i++) {
        bool unwritten;

        if (isfinite(b->off[i]) && isfinite(b->ref_off[i]))
            continue;
        b->ref_off[i] = isfinite(b->ref_off[i]) ? b->ref_off[i] : 0;
        b->size[i] = isfinite(b->size[i]) ? b->size[i] : 0;
        if (isfinite(got[i]) && fabs(truth[i]) <= raw->largest)
            continue; /* only the reference is not finite */
        b->off[i] = 0;
        unwritten = is_unwritten(raw, begin + (uint64_t)i);
        if (!unwritten && is_in_place(got[i], reference[i], truth[i], raw->largest))
            continue;
        b->misplaced[b->misplaced_count++] = i;
        s->misplaced++;
        s->unwritten += unwritten;
        s->nan += isnan(got[i]) && !unwritten;
        s->inf += isinf(got[i]) != 0;
    }
    square_block(b);
}

/* A number that is not finite, or overflows in this type, must not set the scale of its
 * neighbours. */
FOR_THIS_MACHINE
static void key_block(struct error_block *b, int size, double largest)
{
    for (int i = 0; i < size; i++) {
        int32_t key = key_of(b->size[i]);

        b->size_key[i] = key > 0 ? key : NO_KEY;
        b->ref_key[i] = key_of(b->ref_off[i]);
    }
    for (int i = size; i < MOST; i++)
        b->size_key[i] = b->ref_key[i] = NO_KEY;
    if (most_of(b->size, b->full) > largest)
        for (int i = 0; i < size; i++)
            b->size_key[i] = b->size[i] > largest ? NO_KEY : b->size_key[i];
}

static void add_block(struct error_block *b, struct error_sums *s)
{
    b->most = most_of(b->off, b->full);
    b->ref_most = most_of(b->ref_off, b->full);
    s->square += b->square;
    s->ref_square += b->ref_square;
    s->truth_sum += sum_of(b->size, b->full);
    s->truth_square += b->truth_square;
    s->most = larger(s->most, b->most);
    s->ref_most = larger(s->ref_most, b->ref_most);
}

/* excess: each element's error over the allowed error; may be NULL. False: the reference's usual
 * error has no key. */
FOR_THIS_MACHINE
static bool judge_block(const struct error_block *b, int size, const struct error_limits *l,
                        float *excess, struct error_sums *s)
{
    double scale = median(b->size_key), usual = median(b->ref_key), base = scale + l->floor;
    double rel[MOST], ref_rel[MOST];
    int64_t far = 0, beyond = 0;

    if (isinf(usual))
        return false;
    if (scale < usual)
        usual = b->ref_most;
    for (int i = 0; i < b->full; i++) {
        double weight = b->size[i] + base, inverse = 1 / weight;
        double allowed =
            larger(larger(weight * l->rtol, usual * element_factor), b->ref_off[i] * own_factor);

        far += b->off[i] > larger(weight * l->rms, usual * rms_factor);
        beyond += b->off[i] > allowed;
        rel[i] = b->off[i] * inverse;
        ref_rel[i] = b->ref_off[i] * inverse;
    }
    for (int i = 0; excess && i < size; i++) {
        double weight = b->size[i] + base;
        double allowed =
            larger(larger(weight * l->rtol, usual * element_factor), b->ref_off[i] * own_factor);

        excess[i] = (float)(b->off[i] / allowed);
    }
    for (int i = 0; excess && i < b->misplaced_count; i++)
        excess[b->misplaced[i]] = HUGE_VALF;
    far += b->misplaced_count;
    beyond += b->misplaced_count;
    s->rel = larger(s->rel, most_of(rel, b->full));
    s->ref_rel = larger(s->ref_rel, most_of(ref_rel, b->full));
    s->beyond += (double)beyond;
    s->off += (double)far;
    s->off_blocks += 2 * far > size;
    return true;
}

/* A row of `columns` elements is divided evenly into `segments` blocks of at most MOST (blocks.py).
 * excess may be NULL. out: the members of struct error_sums, over all blocks; an infinite
 * truth_square means that torch must compare instead. */
int cutegen_errors_f32(const float *got, const float *reference, const double *truth,
                       uint64_t blocks, uint64_t columns, uint64_t segments, double rtol,
                       double rms, double floor, const void *raw, uint64_t raw_bytes, uint64_t mark,
                       double largest, float *excess, double *out)
{
    struct error_limits limits = {rtol, rms, floor};
    struct raw_output output = {raw, raw_bytes, mark, largest};
    struct error_sums sums = {0};
    struct error_block block;

    for (uint64_t b = 0; b < blocks; b++) {
        uint64_t row = b / segments, segment = b % segments;
        uint64_t begin = row * columns + segment * columns / segments;
        uint64_t end = row * columns + (segment + 1) * columns / segments;
        const float *g = got + begin, *r = reference + begin;
        int size = (int)(end - begin);

        if (end - begin > MOST)
            return 1;
        take_block(g, r, truth + begin, size, &block);
        square_block(&block);
        if (!isfinite(block.square + block.ref_square))
            settle_block(g, r, truth + begin, size, &output, begin, &block, &sums);
        key_block(&block, size, largest);
        add_block(&block, &sums);
        if (!judge_block(&block, size, &limits, excess ? excess + begin : NULL, &sums)) {
            sums.truth_square = HUGE_VAL;
            break;
        }
    }
    memcpy(out, &sums, sizeof(sums));
    return 0;
}

/* oracle/draw.py's lean(): moves the low bits of finite numbers into a window, unless these bits
 * are zero. */
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
