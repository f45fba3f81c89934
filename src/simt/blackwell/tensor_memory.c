/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensor_memory.c - columns of tensor memory: their life, loads and stores, and who may touch what.
 *
 * Loads and stores are asynchronous too: a warp's own count of them and how many it has waited for
 * (tcgen05.wait) say whether one is over.
 */
#include "simt/blackwell/blackwell.h"

#include <string.h>

enum { LEAST_COLUMNS = 32 };

struct tensor_memory *tensor_memory_of(struct blk *b)
{
    struct hopper *h = hopper_of(b);
    if (!h->tensor) {
        h->tensor = xmalloc(sizeof *h->tensor);
        h->tensor->time = 1;
        h->tensor->b = b;
    }
    return h->tensor;
}

static bool checks(const struct warp *w)
{
    return w->t->l->dev->config.check != SIMT_CHECK_OFF;
}

static bool full(const struct warp *w)
{
    return w->t->l->dev->config.check == SIMT_CHECK_FULL;
}

static int warp_of_who(u8 who)
{
    return who < MAX_WARPS ? (int)who : -1;
}

#define SAY(w, lane, site, kind, column, who, other, ...)                                          \
    finding_add(&(struct finding_where){w, lane, site}, kind, column, NULL, warp_of_who(who), 0,   \
                other, __VA_ARGS__)
enum { NOBODY = 255 };

/* ---- the life of columns ---- */

static u32 find_room(const struct tensor_memory *t, u32 count)
{
    for (u32 first = 0; first + count <= TM_COLUMNS; first += LEAST_COLUMNS) {
        u32 n = 0;
        while (n < count && !t->owner[first + n])
            n++;
        if (n == count)
            return first;
    }
    return TM_COLUMNS;
}

static u32 columns_free(const struct tensor_memory *t)
{
    u32 n = 0;
    for (u32 i = 0; i < TM_COLUMNS; i++)
        n += !t->owner[i];
    return n;
}

static bool good_count(struct warp *w, u32 site, u64 count)
{
    if (count >= LEAST_COLUMNS && count <= TM_COLUMNS && !(count & (count - 1)))
        return true;
    SAY(w, 0, site, SIMT_TENSOR_MEMORY, 0, NOBODY, -1,
        "%llu columns of tensor memory: the number must be a power of two from 32 to 512",
        (unsigned long long)count);
    return false;
}

static void alloc(struct warp *w, u32 lane, u32 site, const struct sw_tc *x)
{
    struct tensor_memory *t = tensor_memory_of(w->blk);
    u32 count = (u32)x->x[1][lane], first;
    struct place p;
    uint64_t host[WARP];
    if (!place_find(w, lane, site, false, x->x[0][lane], 4, 4, true, &p) ||
        !good_count(w, site, x->x[1][lane]))
        return;
    if (t->relinquished)
        SAY(w, lane, site, SIMT_TENSOR_MEMORY, 0, NOBODY, -1,
            "allocates tensor memory after tcgen05.relinquish_alloc_permit");
    first = find_room(t, count);
    if (first == TM_COLUMNS) {
        SAY(w, lane, site, SIMT_TENSOR_MEMORY, 0, NOBODY, -1,
            "%u columns of tensor memory asked for, %u are free: it waits for ever", count,
            columns_free(t));
        first = 0;
    }
    for (u32 i = first; i < first + count; i++) {
        t->owner[i] = (uint16_t)(first + 1);
        t->freed[i] = false;
        for (u32 q = 0; q < TM_QUARTERS; q++)
            t->cell[q][i] = (struct tm_cell){0};
    }
    t->site[first] = site;
    memcpy(p.b->b.smem + p.at, &first, 4);
    host[lane] = (uint64_t)(uintptr_t)p.b->b.smem + p.at;
    if (p.b == w->blk && w->blk->cell)
        race_access(w, 1u << lane, host, 4, site, true);
}

static void dealloc(struct warp *w, u32 lane, u32 site, const struct sw_tc *x)
{
    struct tensor_memory *t = tensor_memory_of(w->blk);
    u32 first = (u32)x->x[0][lane] & 0xffff, count = (u32)x->x[1][lane], n = 0;
    if (!good_count(w, site, x->x[1][lane]))
        return;
    while (first + n < TM_COLUMNS && t->owner[first + n] == first + 1)
        n++;
    if (n != count || x->x[0][lane] >> 16) {
        SAY(w, lane, site, SIMT_TENSOR_MEMORY, first, NOBODY, -1,
            "gives back %u columns of tensor memory from column %u, where %s", count, first,
            n                                       ? "another number was allocated"
            : first < TM_COLUMNS && t->freed[first] ? "they were given back before"
                                                    : "none was allocated");
        return;
    }
    for (u32 i = first; i < first + n; i++) {
        for (u32 q = 0; q < TM_QUARTERS && full(w); q++) {
            const struct tm_cell *c = &t->cell[q][i];
            bool writes = c->written && c->wwho == TENSOR && w->clock[TENSOR] <= c->wtime;
            bool reads = c->read && c->rwho != w->w.id && w->clock[c->rwho] <= c->rtime;
            if (writes || reads) {
                SAY(w, lane, site, SIMT_TENSOR_MEMORY, i, writes ? c->wwho : c->rwho,
                    writes ? (int)c->wsite : (int)c->rsite,
                    "column %u of tensor memory: given back while %s, with nothing in between that "
                    "orders the two",
                    i, writes ? "an asynchronous operation writes it" : "another warp reads it");
                i = TM_COLUMNS - 1;
                break;
            }
        }
    }
    for (u32 i = first; i < first + n; i++) {
        t->owner[i] = 0;
        t->freed[i] = true;
    }
}

void tensor_leave(struct blk *b)
{
    struct tensor_memory *t = b->hop ? b->hop->tensor : NULL;
    for (u32 i = 0; t && i < TM_COLUMNS; i++)
        if (t->owner[i] == i + 1 && b->t->l->dev->config.check != SIMT_CHECK_OFF)
            finding_add(&(struct finding_where){&b->warp[0], 0, t->site[i]}, SIMT_TENSOR_MEMORY, i,
                        NULL, -1, -1, -1,
                        "the block ends and its tensor memory from column %u on was never given "
                        "back (tcgen05.dealloc)",
                        i);
}

bool tm_inside(struct warp *w, u32 lane, u32 site, struct tensor_memory *t, u32 first, u32 count,
               const char *what)
{
    for (u32 i = first; i < first + count; i++) {
        if (i < TM_COLUMNS && t->owner[i] && t->owner[i] == t->owner[first])
            continue;
        SAY(w, lane, site, SIMT_OUT_OF_BOUNDS, i, NOBODY, -1, "%s column %u of tensor memory, %s",
            what, i,
            i >= TM_COLUMNS ? "which has 512"
            : t->owner[i]   ? "which is of another allocation"
            : t->freed[i]   ? "which was given back"
                            : "which is not allocated");
        return false;
    }
    return true;
}

/* ---- what is ordered ---- */

/* Is what a warp wrote by tcgen05.st, or reads by tcgen05.ld, over and known to w? */
static const char *unordered(const struct warp *w, const struct tensor_memory *t, u8 who, u32 time,
                             u32 seq, bool store)
{
    const struct warp *o = &t->b->warp[who];
    if (o->hop && (store ? o->hop->st_over : o->hop->ld_over) < seq)
        return store ? "a tcgen05.st that was not waited for (tcgen05.wait::st)"
                     : "a tcgen05.ld that was not waited for (tcgen05.wait::ld)";
    if (t->b == w->blk ? who == w->w.id || w->clock[who] > time : peer_clock(w, t->b)[who] > time)
        return NULL;
    return t->b == w->blk ? "another warp, with no barrier in between"
                          : "a warp of that block, with no mbarrier or cluster barrier in between";
}

void tensor_learn(struct warp *w, const uint32_t clock[CLOCKS])
{
    struct warp_hopper *h = warp_hopper_of(w);
    for (u32 i = 0; i < CLOCKS; i++)
        if (i != w->w.id && clock[i] > h->tensor[i])
            h->tensor[i] = clock[i];
}

static void fence(struct warp *w, bool after)
{
    struct warp_hopper *h = warp_hopper_of(w);
    clock_tick(w);
    if (after)
        tensor_learn(w, h->tensor_next);
    else
        h->tensor[w->w.id] = w->clock[w->w.id];
}

/* A barrier orders what another warp did before what w does now, and it is not fenced. */
static bool unfenced(struct warp *w, u32 lane, u32 site, u8 who, u32 time, u32 osite, u32 col)
{
    if (who >= MAX_WARPS || who == w->w.id || warp_hopper_of(w)->tensor[who] > time)
        return false;
    SAY(w, lane, site, SIMT_TENSOR_FENCE, col, who, (int)osite,
        "column %u of tensor memory: used by another warp before a barrier that orders tcgen05 "
        "only "
        "with tcgen05.fence::before_thread_sync before it and ::after_thread_sync after it",
        col);
    return true;
}

/* w, or what it starts, reads these lanes of a cell. */
static bool readable(struct warp *w, u32 lane, u32 site, const struct tensor_memory *t,
                     const struct tm_cell *c, u32 lanes, u32 col, bool by_tensor)
{
    const char *who;
    if ((c->known & lanes) != lanes) {
        SAY(w, lane, site, SIMT_UNINITIALISED, col, NOBODY, -1,
            "column %u of tensor memory: read before anything wrote it", col);
        return false;
    }
    if (c->wwho == TENSOR) {
        if (by_tensor || w->clock[TENSOR] > c->wtime)
            return true;
        SAY(w, lane, site, SIMT_ASYNC_NOT_WAITED, col, c->wwho, (int)c->wsite,
            "column %u of tensor memory: read while what writes it has not been waited for "
            "(tcgen05.commit and its mbarrier)",
            col);
        return false;
    }
    who = unordered(w, t, c->wwho, c->wtime, c->wseq, true);
    if (who)
        SAY(w, lane, site, SIMT_ASYNC_NOT_WAITED, col, c->wwho, (int)c->wsite,
            "column %u of tensor memory: read after %s wrote it", col, who);
    return !who && (t->b != w->blk || !unfenced(w, lane, site, c->wwho, c->wtime, c->wsite, col));
}

static bool writable(struct warp *w, u32 lane, u32 site, const struct tensor_memory *t,
                     const struct tm_cell *c, u32 col, bool by_tensor)
{
    const char *who = NULL;
    bool write = false;
    if (c->read && c->rwho == TENSOR && !by_tensor && w->clock[TENSOR] <= c->rtime)
        who = "an asynchronous operation, which has not been waited for,";
    else if (c->read && c->rwho != TENSOR)
        who = unordered(w, t, c->rwho, c->rtime, c->rseq, false);
    if (!who && c->written) {
        write = true;
        if (c->wwho == TENSOR && !by_tensor && w->clock[TENSOR] <= c->wtime)
            who = "an asynchronous operation, which has not been waited for,";
        else if (c->wwho != TENSOR && (by_tensor || c->wwho != w->w.id))
            who = unordered(w, t, c->wwho, c->wtime, c->wseq, true);
    }
    if (who)
        SAY(w, lane, site, SIMT_ASYNC_OVERWRITE, col, write ? c->wwho : c->rwho,
            write ? (int)c->wsite : (int)c->rsite,
            "column %u of tensor memory: overwritten after %s %s it", col, who,
            write ? "wrote" : "read");
    if (who || t->b != w->blk) /* what orders blocks orders their tcgen05 */
        return !who;
    return !(c->read && unfenced(w, lane, site, c->rwho, c->rtime, c->rsite, col)) &&
           !(c->written && unfenced(w, lane, site, c->wwho, c->wtime, c->wsite, col));
}

bool tm_async_read(struct warp *w, u32 lane, u32 site, struct tensor_memory *t,
                   const uint32_t lanes[TM_QUARTERS], u32 first, u32 count, const char *what)
{
    if (!tm_inside(w, lane, site, t, first, count, what))
        return false;
    bool quiet = !full(w);
    for (u32 q = 0; q < TM_QUARTERS; q++)
        for (u32 i = first; i < first + count && lanes[q]; i++) {
            struct tm_cell *c = &t->cell[q][i];
            quiet = quiet || !readable(w, lane, site, t, c, lanes[q], i, true);
            c->read = true;
            c->rwho = TENSOR;
            c->rtime = t->time;
            c->rsite = (uint16_t)site;
        }
    return true;
}

bool tm_async_write(struct warp *w, u32 lane, u32 site, struct tensor_memory *t,
                    const uint32_t lanes[TM_QUARTERS], u32 first, u32 count, bool accumulate)
{
    if (!tm_inside(w, lane, site, t, first, count, "writes"))
        return false;
    bool quiet = !full(w);
    for (u32 q = 0; q < TM_QUARTERS; q++)
        for (u32 i = first; i < first + count && lanes[q]; i++) {
            struct tm_cell *c = &t->cell[q][i];
            if (accumulate)
                quiet = quiet || !readable(w, lane, site, t, c, lanes[q], i, true);
            quiet = quiet || !writable(w, lane, site, t, c, i, true);
            c->known |= lanes[q];
            c->written = true;
            c->wwho = TENSOR;
            c->wtime = t->time;
            c->wsite = (uint16_t)site;
        }
    return true;
}

/* ---- loads and stores of a warp ---- */

/* Lane (of 16 or 32) and column of register r of thread i, by shape. Two halves of 16 bits in a
 * register (pack) are as far apart as columns are. */
static void place_of(enum tc_shape shape, u32 i, u32 r, bool pack, u32 split, u32 *lane,
                     u32 *column)
{
    switch (shape) {
    case TC_16X64:
        *lane = 8 * (i & 1) + i / 4;
        *column = (i >> 1 & 1) + 2 * r;
        break;
    case TC_16X128:
        *lane = i / 4 + 8 * (r & 1);
        *column = i % 4 + 4 * (r / 2);
        break;
    case TC_16X256:
        *lane = i / 4 + 8 * (r >> 1 & 1);
        *column = 2 * (i % 4) + (r & 1) + 8 * (r / 4);
        break;
    case TC_16X32X2:
        *lane = i & 15;
        *column = r;
        break;
    default:
        *lane = i;
        *column = r;
        break;
    }
    *column = *column * (pack ? 2 : 1) + (shape == TC_16X32X2 ? (i >> 4) * split : 0);
}

static u32 columns_of(enum tc_shape shape, u32 times, bool pack)
{
    static const u32 each[] = {
        [TC_32X32] = 1, [TC_16X64] = 2, [TC_16X128] = 4, [TC_16X256] = 8, [TC_16X32X2] = 1};
    return each[shape] * times * (pack ? 2 : 1);
}

/* The lanes a warp may touch, and those that the address names. */
static bool own_lanes(struct warp *w, u32 site, u32 address, bool all, u32 *lanes)
{
    u32 quarter = w->w.id & 3, first = address >> 16, in = first - 32 * quarter;
    *lanes = all ? ~0u : in == 16 ? 0xffff0000u : 0xffffu;
    if (in == 0 || (in == 16 && !all))
        return true;
    if (in > 31)
        SAY(w, 0, site, SIMT_TENSOR_MEMORY, first, NOBODY, -1,
            "lane %u of tensor memory: this warp (%u, number %u of its four) may touch lanes %u to "
            "%u only",
            first, w->w.id, quarter, 32 * quarter, 32 * quarter + 31);
    else
        SAY(w, 0, site, SIMT_TENSOR_MEMORY, first, NOBODY, -1,
            "lane %u of tensor memory: such a load or store begins at lane %u%s", first,
            32 * quarter, all ? "" : ", or 16 further on");
    return false;
}

static void note_access(struct warp *w, u32 site, struct tensor_memory *t, u32 lanes, u32 first,
                        u32 count, bool load)
{
    struct warp_hopper *h = warp_hopper_of(w);
    u32 q = w->w.id & 3, seq = load ? ++h->ld_seq : ++h->st_seq;
    bool quiet = !full(w);
    clock_tick(w);
    for (u32 i = first; i < first + count; i++) {
        struct tm_cell *c = &t->cell[q][i];
        if (load) {
            quiet = quiet || !readable(w, 0, site, t, c, lanes, i, false);
            c->read = true;
            c->rwho = (u8)w->w.id;
            c->rtime = w->clock[w->w.id];
            c->rseq = seq;
            c->rsite = (uint16_t)site;
        } else {
            quiet = quiet || !writable(w, 0, site, t, c, i, false);
            c->known |= lanes;
            c->written = true;
            c->wwho = (u8)w->w.id;
            c->wtime = w->clock[w->w.id];
            c->wseq = seq;
            c->wsite = (uint16_t)site;
        }
    }
}

static void move_words(struct warp *w, u32 kind, struct tensor_memory *t, u32 address, u32 split,
                       void *const *regs, u32 count)
{
    enum tc_shape shape = (enum tc_shape)(kind >> TC_KIND_SHIFT & TC_KINDS);
    bool load = (kind & TC_OP) == TC_LD, pack = kind & TC_PACK;
    (void)w;
    for (u32 r = 0; r < count; r++)
        for (u32 i = 0; i < WARP && regs[r]; i++) {
            u32 lane, column, *reg = (u32 *)regs[r] + i;
            place_of(shape, i, r, pack, split, &lane, &column);
            u32 *at = &t->word[(address >> 16) + lane][(address & 0xffff) + column];
            if (load)
                *reg = pack ? (at[0] & 0xffff) | at[1] << 16 : at[0];
            else if (pack)
                at[0] = *reg & 0xffff, at[1] = *reg >> 16;
            else
                at[0] = *reg;
        }
}

static void load_store(struct warp *w, u32 m, u32 site, const struct sw_tc *x)
{
    const struct sw_site *s = site_of(w, site);
    u32 first = (u32)__builtin_ctz(m), address = (u32)x->x[0][first], lanes;
    enum tc_shape shape = (enum tc_shape)(s->kind >> TC_KIND_SHIFT & TC_KINDS);
    u32 times = 1u << (s->kind >> TC_TIMES_SHIFT & TC_TIMES), column = address & 0xffff;
    u32 split = x->x[1] ? (u32)x->x[1][first] : 0;
    u32 count = columns_of(shape, times, s->kind & TC_PACK);
    struct tensor_memory *t = tensor_memory_of(w->blk);
    bool load = (s->kind & TC_OP) == TC_LD;
    const char *what = load ? "reads" : "writes";
    bool ok = own_lanes(w, site, address, shape == TC_32X32, &lanes) &&
              tm_inside(w, first, site, t, column, count, what) &&
              (shape != TC_16X32X2 || tm_inside(w, first, site, t, column + split, count, what));
    for (u32 r = 0; !ok && load && r < x->count; r++)
        if (x->regs[r])
            memset(x->regs[r], 0, WARP * sizeof(u32));
    if (!ok)
        return;
    note_access(w, site, t, lanes, column, count, load);
    if (shape == TC_16X32X2)
        note_access(w, site, t, lanes, column + split, count, load);
    move_words(w, s->kind, t, address, split, x->regs, x->count);
    if (load && w->blk->cell)
        results_note(w, site, x->regs, x->count);
}

static void wait_over(struct warp *w, bool load)
{
    struct warp_hopper *h = warp_hopper_of(w);
    if (load) {
        h->ld_over = h->ld_seq;
        h->results = 0;
    } else {
        h->st_over = h->st_seq;
    }
    clock_tick(w);
}

void dev_tc(struct sw_warp *sw, u32 m, u32 site, const struct sw_tc *x)
{
    struct warp *w = warp_of(sw);
    u32 first = (u32)__builtin_ctz(m);
    enum tc_op op = (enum tc_op)(site_of(w, site)->kind & TC_OP);
    w->last_site = site;
    bool alone =
        op == TC_MMA || op == TC_CP || op == TC_SHIFT || op == TC_COMMIT || op >= TC_FENCE_BEFORE;
    if (checks(w) && !alone && m != sw->live)
        SAY(w, first, site, SIMT_DIVERGENT_COLLECTIVE, 0, NOBODY, -1,
            "only some threads of the warp reach it");
    switch (op) {
    case TC_ALLOC:
        alloc(w, first, site, x);
        break;
    case TC_DEALLOC:
        dealloc(w, first, site, x);
        break;
    case TC_RELINQUISH:
        tensor_memory_of(w->blk)->relinquished = true;
        break;
    case TC_LD:
    case TC_ST:
        load_store(w, m, site, x);
        break;
    case TC_WAIT_LD:
    case TC_WAIT_ST:
        wait_over(w, op == TC_WAIT_LD);
        break;
    case TC_FENCE_BEFORE:
    case TC_FENCE_AFTER:
        fence(w, op == TC_FENCE_AFTER);
        break;
    default:
        for (; m; m &= m - 1) {
            u32 lane = (u32)__builtin_ctz(m);
            if (op == TC_MMA)
                tc_mma(w, lane, site, x);
            else if (op == TC_CP)
                tc_copy(w, lane, site, x);
            else if (op == TC_SHIFT)
                tc_shift(w, lane, site, x);
            else
                tc_commit(w, lane, site, x);
        }
    }
}
