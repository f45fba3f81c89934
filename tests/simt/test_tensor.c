/* test_tensor.c - the fast matrix products, bit by bit as sums in order of k, rounded once each. */
#include "support.h"

#include "simt/device/mma_half.h"

#include <math.h>

static uint32_t next(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* Zeros, subnormals and numbers of every size whose products f32 can hold. */
static uint16_t any_half(uint32_t *seed, bool bf)
{
    uint32_t x = next(seed) & 0xffffu, e = next(seed) % 31;
    return (uint16_t)(bf ? (x & 0x807fu) | (112 + e) << 7 : (x & 0x83ffu) | e << 10);
}

static float value(uint16_t h, bool bf)
{
    uint32_t u = (uint32_t)h << 16;
    float f = ldexpf((float)((h & 0x3ff) + (h & 0x7c00 ? 1024 : 0)),
                     (h & 0x7c00 ? h >> 10 & 31 : 1) - 25);
    if (bf)
        memcpy(&f, &u, sizeof f);
    return bf || !(h & 0x8000) ? f : -f;
}

struct case_of {
    uint16_t a[16][16], b[16][8];
    float c[16][8];
    union {
        uint16_t half[10][64];
        float word[10][32];
    } reg; /* a0..a3, b0, b1, c0..c3 */
};

/* Fragments as PTX describes them, element by element. */
static void spread(struct case_of *x, uint32_t *seed, int k, bool bf)
{
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < k; j++)
            x->a[i][j] = x->reg.half[i / 8 + j / 8 * 2][8 * (i % 8) + j % 8] = any_half(seed, bf);
    for (int i = 0; i < k; i++)
        for (int j = 0; j < 8; j++)
            x->b[i][j] = x->reg.half[4 + i / 8][8 * j + i % 8] = any_half(seed, bf);
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 8; j++)
            x->c[i][j] = x->reg.word[6 + i / 8 * 2 + j % 2][4 * (i % 8) + j / 2] =
                value(any_half(seed, false), false);
}

static void expect(const struct case_of *x, float *const *d, int k, bool bf)
{
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 8; j++) {
            float sum = x->c[i][j], got = d[i / 8 * 2 + j % 2][4 * (i % 8) + j / 2];
            for (int n = 0; n < k; n++)
                sum = fmaf(value(x->a[i][n], bf), value(x->b[n][j], bf), sum);
            assert_memory_equal(&got, &sum, sizeof sum);
        }
}

/* first: the registers the result goes to, which may be those of an operand. */
static void products_hold(int first)
{
    uint32_t seed = 1;
    for (int turn = 0; turn < 800; turn++) {
        struct case_of x;
        int k = turn & 1 ? 8 : 16;
        bool bf = turn & 2;
        spread(&x, &seed, k, bf);
        float *d[4];
        const void *a[4], *b[2], *c[4];
        for (int i = 0; i < 4; i++) {
            a[i] = x.reg.half[i];
            b[i / 2] = x.reg.half[4 + i / 2];
            c[i] = x.reg.half[6 + i];
            d[i] = x.reg.word[first + i];
        }
        mma_half((void *const *)d, a, b, c, k, bf);
        expect(&x, d, k, bf);
    }
}

static void products_of_halves_are_sums_in_order(void **state)
{
    (void)state;
    products_hold(6);
}

static void a_result_may_take_the_place_of_an_operand(void **state)
{
    (void)state;
    products_hold(0);
    products_hold(2);
    products_hold(5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_of_halves_are_sums_in_order),
        cmocka_unit_test(a_result_may_take_the_place_of_an_operand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
