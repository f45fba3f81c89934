/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hash.c - SHA-256 after FIPS 180-4.
 *
 * Written here because base links only libc and jansson: every process of ours uses it, including
 * confined ones and those of the relocatable build, for which libcrypto would be one more large
 * library. The published test vectors are in tests/base/test_data.c.
 */
#include "base/hash.h"

#include <stdio.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

/* cpuid may be slow (a virtual machine traps it): used only for inputs of at least this many
 * blocks. */
enum { QUICK_BLOCKS = 256 };

static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

struct hash hash_init(void)
{
    return (struct hash){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                                   0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

static uint32_t rotate(uint32_t x, int n)
{
    return (x >> n) | (x << (32 - n));
}

/* One round with a..h at s[first], s[first + 1], ... modulo 8. */
static inline void hash_round(uint32_t s[8], int first, uint32_t input)
{
    uint32_t a = s[first & 7], b = s[(first + 1) & 7], c = s[(first + 2) & 7];
    uint32_t e = s[(first + 4) & 7], f = s[(first + 5) & 7], g = s[(first + 6) & 7];
    uint32_t t1 = s[(first + 7) & 7] + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +
                  ((e & f) ^ (~e & g)) + input;

    s[(first + 3) & 7] += t1;
    s[(first + 7) & 7] =
        t1 + (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
}

static void hash_block(uint32_t state[8], const unsigned char *p)
{
    uint32_t w[64], s[8];

    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 |
               (uint32_t)p[4 * i + 2] << 8 | (uint32_t)p[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ (w[i - 15] >> 3);
        uint32_t s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ (w[i - 2] >> 10);

        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    memcpy(s, state, sizeof(s));
    for (int i = 0; i < 64; i += 8) { /* rotates the names instead of the values */
        hash_round(s, 0, w[i] + round_constants[i]);
        hash_round(s, 7, w[i + 1] + round_constants[i + 1]);
        hash_round(s, 6, w[i + 2] + round_constants[i + 2]);
        hash_round(s, 5, w[i + 3] + round_constants[i + 3]);
        hash_round(s, 4, w[i + 4] + round_constants[i + 4]);
        hash_round(s, 3, w[i + 5] + round_constants[i + 5]);
        hash_round(s, 2, w[i + 6] + round_constants[i + 6]);
        hash_round(s, 1, w[i + 7] + round_constants[i + 7]);
    }
    for (int i = 0; i < 8; i++)
        state[i] += s[i];
}

#if defined(__x86_64__)
/* With the processor's SHA instructions, which most have; about six times as fast. */
__attribute__((target("sha,sse4.1"))) static void
hash_blocks_quickly(uint32_t state[8], const unsigned char *p, size_t blocks)
{
    const __m128i order = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    __m128i low = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)state), 0xb1); /* CDAB */
    __m128i high = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(state + 4)), 0x1b);
    __m128i abef = _mm_alignr_epi8(low, high, 8), cdgh = _mm_blend_epi16(high, low, 0xf0);

    for (; blocks; blocks--, p += 64) {
        __m128i w[4], abef_before = abef, cdgh_before = cdgh;

        for (int i = 0; i < 4; i++)
            w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)(p + 16 * i)),
                                    order);
        for (int i = 0; i < 16; i++) { /* four rounds each */
            __m128i sum = _mm_loadu_si128((const __m128i *)(round_constants + 4 * i));
            __m128i last = w[(i + 3) & 3];

            if (i >= 4)
                w[i & 3] = _mm_sha256msg2_epu32(
                    _mm_add_epi32(_mm_sha256msg1_epu32(w[i & 3], w[(i + 1) & 3]),
                                  _mm_alignr_epi8(last, w[(i + 2) & 3], 4)),
                    last);
            sum = _mm_add_epi32(sum, w[i & 3]);
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    low = _mm_shuffle_epi32(abef, 0x1b);
    high = _mm_shuffle_epi32(cdgh, 0xb1);
    _mm_storeu_si128((__m128i *)state, _mm_blend_epi16(low, high, 0xf0));
    _mm_storeu_si128((__m128i *)(state + 4), _mm_alignr_epi8(high, low, 8));
}

static bool has_instructions(void)
{
    unsigned a, b, c, d;

    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && b >> 29 & 1;
}
#endif

static void hash_blocks(uint32_t state[8], const unsigned char *p, size_t blocks)
{
#if defined(__x86_64__)
    if (blocks >= QUICK_BLOCKS && has_instructions()) {
        hash_blocks_quickly(state, p, blocks);
        return;
    }
#endif
    for (; blocks; blocks--, p += 64)
        hash_block(state, p);
}

void hash_add(struct hash *h, const void *data, size_t len)
{
    const unsigned char *p = data;

    while (len) {
        size_t have = h->bytes % 64, take = 64 - have;

        if (take > len)
            take = len;
        if (have == 0 && len >= 64) { /* whole blocks where they lie */
            size_t whole = len / 64 * 64;

            hash_blocks(h->state, p, len / 64);
            h->bytes += whole;
            p += whole;
            len -= whole;
            continue;
        }
        memcpy(h->block + have, p, take);
        h->bytes += take;
        p += take;
        len -= take;
        if (h->bytes % 64 == 0)
            hash_block(h->state, h->block);
    }
}

void hash_add_text(struct hash *h, struct text t)
{
    char length[32];
    int n = snprintf(length, sizeof(length), "%zu:", t.len);

    hash_add(h, length, (size_t)n);
    hash_add(h, t.data, t.len);
}

void hash_hex(struct hash *h, char out[65])
{
    uint64_t bits = h->bytes * 8;
    unsigned char length[8];

    hash_add(h, "\x80", 1);
    while (h->bytes % 64 != 56)
        hash_add(h, "", 1);
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)(bits >> (56 - 8 * i));
    hash_add(h, length, 8);
    for (int i = 0; i < 8; i++)
        snprintf(out + 8 * i, 9, "%08x", h->state[i]);
}

void hash_text(struct text t, char out[65])
{
    struct hash h = hash_init();

    hash_add(&h, t.data, t.len);
    hash_hex(&h, out);
}
