/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention_decode.c - decide which attention is bound by reading K and V
 * (recipes/attention_decode.cu).
 *
 * Few queries, counted over the heads that share K and V, and so many keys
 * that they can be divided. The innermost mode of the batch is such a group of
 * heads where neither K nor V (nor a table of pages) has a stride along it.
 */
#include "expert/match/attention.h"

#include <string.h>

enum {
    FIRST_ARCH = 80,      /* cp.async, mma.sync */
    FIRST_DEPENDENT = 90, /* griddepcontrol */
    TMA = 90,             /* which reaches the speed of memory sooner than cp.async does */
    FEWEST_KEYS = 128,
    WIDEST = 256,
    MOST_ROWS = 16,      /* of one tile of mma.sync */
    MOST_ROWS_WORDS = 8, /* on the FMA units: memory is the limit up to about here */
    TILE = 16            /* keys; a page must hold whole ones */
};

static bool shares(const struct attention *q)
{
    const struct attention_mode *m = &q->modes[0];

    return q->mode_count > 0 && m->at[AT_K].stride == 0 && m->at[AT_V].stride == 0 &&
           (!q->page || m->at[AT_TABLE].stride == 0);
}

/* Rows of a tile: a power of two on the FMA units, half or all of mma.sync's rows on tensor
 * cores. */
static int rows_of_tile(int64_t rows, bool words)
{
    int tile = words ? 1 : MOST_ROWS / 2;

    while (tile < rows)
        tile *= 2;
    return tile;
}

/* Bytes of shared memory that a block can have. Code for sm_80 also runs on GPUs with less than an
 * A100 has, so that counts only where the GPU is known. */
static int shared_memory(const struct graph *g)
{
    enum { LEAST = 98000, A100 = 160000, HOPPER = 226000 };
    int most = g->arch == 90 || g->arch == 100 ? HOPPER : g->smem_block_bytes ? A100 : LEAST;

    return g->smem_block_bytes && g->smem_block_bytes < most ? LEAST : most;
}

bool attention_fill_decode(struct attention *q, struct match *out)
{
    struct scope *s = out->scope;
    bool words = scope_has(s, "words"), shared = shares(q);
    int64_t rows = q->queries * (shared ? q->modes[0].size : 1);

    if (q->g->arch < FIRST_ARCH || !scope_has(s, "vectors") || q->keys < FEWEST_KEYS ||
        q->head > WIDEST || q->head_v > WIDEST || rows > (words ? MOST_ROWS_WORDS : MOST_ROWS) ||
        q->page % TILE)
        return false;
    scope_set(s, "shared", "%s", shared ? "n0" : "1");
    scope_set(s, "rows", "%d", rows_of_tile(rows, words));
    scope_set(s, "fit", "%d", shared_memory(q->g));
    if (q->g->arch >= FIRST_DEPENDENT)
        scope_fact(s, "dependent");
    if (q->g->arch == TMA && !words && !q->page) {
        scope_fact(s, "tma");
        attention_fill_map(q, s, AT_K);
        attention_fill_map(q, s, AT_V);
    }
    out->recipe = "attention_decode";
    return true;
}
