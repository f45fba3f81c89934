/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vec_waits.h - lanes that wait (emit_flow.c) and what each block counts, after vec_lanes.h.
 *
 * Every block has some of it, so what seldom happens is out of line or once in a kernel.
 */
struct waits {
    u32 *pend, *cw;   /* per block: lanes that wait to run it; parked at its collective */
    u64 *pset, *cset; /* which of them are not 0 */
    int low, words, turn, parked;
};
#define SET(s, b)   ((s)[(b) >> 6] |= 1ull << ((b)&63))
#define UNSET(s, b) ((s)[(b) >> 6] &= ~(1ull << ((b)&63)))
NI int lowest(const u64 *s, int n)
{
    for (int i = 0; i < n; i++)
        if (s[i])
            return i * 64 + __builtin_ctzll(s[i]);
    return 1 << 30;
}
NI void wait_at(struct waits *d, int b, u32 lanes)
{
    d->pend[b] |= lanes;
    SET(d->pset, b);
    if (b < d->low)
        d->low = b;
}
/* Of m, the others go on. */
NI u32 part_at(struct waits *d, int b, u32 lanes, u32 m)
{
    wait_at(d, b, lanes);
    return m & ~lanes;
}
/* Lanes that wait for this block join; 0: others go first. */
NI u32 meet_at(struct waits *d, int b, u32 m)
{
    if (d->low != b) {
        wait_at(d, b, m);
        return 0;
    }
    m |= d->pend[b];
    d->pend[b] = 0;
    UNSET(d->pset, b);
    d->low = lowest(d->pset, d->words);
    return m;
}
NI void park_at(struct waits *d, int b, u32 m)
{
    d->parked += !d->cw[b];
    d->cw[b] = m;
    SET(d->cset, b);
}
NI u32 unpark(struct waits *d, int b)
{
    u32 m = d->cw[b];
    d->parked -= m != 0;
    d->cw[b] = 0;
    UNSET(d->cset, b);
    return m;
}
#define HEAD(b)                                                                                    \
    if (UNLIKELY(D.low <= (b))) {                                                                  \
        at = b;                                                                                    \
        goto meet;                                                                                 \
    }
#define HEAD_ALL(b)                                                                                \
    if (UNLIKELY(D.low <= (b) || D.parked)) {                                                      \
        at = b;                                                                                    \
        goto meet_all;                                                                             \
    }
/* Back to a block, where a turn takes fuel. */
#define TURN(b, where)                                                                             \
    {                                                                                              \
        if (UNLIKELY(--W->fuel < 0)) {                                                             \
            at = b;                                                                                \
            goto where;                                                                            \
        }                                                                                          \
        goto B##b;                                                                                 \
    }
#if defined(__x86_64__) && defined(__POPCNT__) && !defined(__clang__)
/* In one piece: each block has one, and gcc looks at each of its instructions twenty times. */
#define COUNT(b)                                                                                   \
    {                                                                                              \
        u64 lanes_;                                                                                \
        __asm__("addq $1, %0\n\tpopcntl %3, %k2\n\taddq %2, %1"                                    \
                : "+m"(C[2 * (b)]), "+m"(C[2 * (b) + 1]), "=&r"(lanes_)                            \
                : "r"(m)                                                                           \
                : "cc");                                                                           \
    }
#else
#define COUNT(b)                                                                                   \
    C[2 * (b)] += 1;                                                                               \
    C[2 * (b) + 1] += (u64)(u32)__builtin_popcount(m);
#endif
