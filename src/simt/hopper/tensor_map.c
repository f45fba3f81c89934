/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensor_map.c - tensor maps: the driver's rules, and the tiles they describe.
 *
 * Hides: how a box at given coordinates becomes rows of global memory and
 * places in shared memory, with swizzle, fill, traversal strides and im2col.
 */
#include "simt/hopper/hopper.h"

#include "simt/hopper/tensor_map.h"
#include "simt/ptx/atomic_ops.h"

#include <stdio.h>
#include <string.h>

enum { MAX_ROW = 2048 }; /* bytes of one row of a box: 256 elements of 8 */

/* ---- encoding ---- */

static bool refuse(char *why, size_t size, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static bool refuse(char *why, size_t size, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, size, fmt, ap);
    va_end(ap);
    return false;
}

static const struct map_type {
    const char *name;
    uint8_t bytes;
    uint8_t type; /* enum ptx_type, for reductions */
} map_types[] = {{"u8", 1, PT_U8},          {"i8", 1, PT_S8},         {"bool", 1, PT_U8},
                 {"u16", 2, PT_U16},        {"i16", 2, PT_S16},       {"f16", 2, PT_F16},
                 {"bf16", 2, PT_BF16},      {"u32", 4, PT_U32},       {"i32", 4, PT_S32},
                 {"f32", 4, PT_F32},        {"tf32", 4, PT_F32},      {"u64", 8, PT_U64},
                 {"i64", 8, PT_S64},        {"f64", 8, PT_F64},       {"u4", 1, PT_U8},
                 {"u4_align16", 16, PT_U8}, {"u6_align16", 16, PT_U8}};

static bool encode_sizes(const struct simt_map *s, struct tensor_map *t, char *why, size_t size)
{
    if (s->address & 15)
        return refuse(why, size, "the address is not a multiple of 16");
    for (int d = 0; d < s->rank; d++) {
        if (!s->dims[d] || s->dims[d] > UINT64_C(1) << 32)
            return refuse(why, size, "dimension %d has %llu elements; 1 to 2^32 fit", d,
                          (unsigned long long)s->dims[d]);
        if (!s->im2col && (!s->box[d] || s->box[d] > 256))
            return refuse(why, size, "the box has %u elements in dimension %d; 1 to 256 fit",
                          s->box[d], d);
        if (s->element_strides[d] > 8)
            return refuse(why, size, "element stride %u in dimension %d; 1 to 8 are allowed",
                          s->element_strides[d], d);
        if (d > 0 && (s->strides_bytes[d - 1] & 15 || s->strides_bytes[d - 1] >= UINT64_C(1) << 40))
            return refuse(why, size,
                          "the stride of dimension %d is %llu bytes; it must be a multiple of 16",
                          d, (unsigned long long)s->strides_bytes[d - 1]);
        t->dim[d] = (uint32_t)(s->dims[d] - 1);
        t->box[d] = (uint16_t)s->box[d];
        /* the first is ignored, as the driver does without interleaving */
        t->step[d] = (uint8_t)(d > 0 && s->element_strides[d] ? s->element_strides[d] : 1);
        if (d > 0)
            t->stride[d - 1] = s->strides_bytes[d - 1];
    }
    return true;
}

/* Pairs of four bits are copied as bytes. */
static bool encode_nibbles(struct tensor_map *t, char *why, size_t size)
{
    if (t->dim[0] % 2 == 0 || t->box[0] % 2 || t->im2col)
        return refuse(why, size, "elements of four bits must be even in number");
    t->dim[0] = (t->dim[0] + 1) / 2 - 1;
    t->box[0] /= 2;
    t->nibbles = 1;
    return true;
}

/* Sixteen of four or six bits, packed in global memory, take 16 bytes in shared memory. */
static bool encode_padded(const struct simt_map *s, struct tensor_map *t, char *why, size_t size)
{
    bool strides = !(s->address & 31) && !t->im2col;
    for (int d = 1; d < s->rank; d++)
        strides = strides && !(s->strides_bytes[d - 1] & 31);
    if (!strides)
        return refuse(why, size, "padded elements: address and strides must be multiples of 32");
    if (s->dims[0] % MAP_PADDED || s->box[0] != MAP_PADDED)
        return refuse(why, size,
                      "padded elements: the box must have 128 of them, dimension 0 a multiple");
    t->dim[0] = (uint32_t)(s->dims[0] / 16 - 1);
    t->box[0] = MAP_PADDED / 16;
    t->packed = s->dtype[1] == '4' ? 8 : 12;
    return true;
}

bool simt_map_encode(const struct simt_map *s, unsigned char out[128], char *why, size_t size)
{
    struct tensor_map t = {.magic = TENSOR_MAP_MAGIC, .address = s->address};
    static const unsigned spans[] = {0, 32, 64, 128};
    if (s->rank < 1 || s->rank > 5 || (s->im2col && s->rank < 3))
        return refuse(why, size, "a map has 1 to 5 dimensions (im2col: 3 to 5), not %d", s->rank);
    for (size_t i = 0; i < ARRAY_LEN(map_types); i++)
        if (strcmp(map_types[i].name, s->dtype) == 0) {
            t.esize = map_types[i].bytes;
            t.type = map_types[i].type;
        }
    if (!t.esize)
        return refuse(why, size, "no tensor map of %s", s->dtype);
    if (s->swizzle > 3)
        return refuse(why, size, "no such swizzle");
    t.rank = (uint8_t)s->rank;
    t.swizzle = (uint8_t)s->swizzle;
    t.fill_nan = s->fill_nan;
    t.im2col = s->im2col;
    if (!encode_sizes(s, &t, why, size))
        return false;
    if (strcmp(s->dtype, "u4") == 0 && !encode_nibbles(&t, why, size))
        return false;
    if (strstr(s->dtype, "_align16") && !encode_padded(s, &t, why, size))
        return false;
    if (s->im2col) {
        t.channels = (uint16_t)s->channels;
        t.pixels = (uint16_t)s->pixels;
        for (int i = 0; i < 3; i++) {
            t.lower[i] = (int16_t)s->lower[i];
            t.upper[i] = (int16_t)s->upper[i];
        }
    }
    uint32_t inner = (s->im2col ? s->channels : map_extent(&t, 0)) * t.esize;
    if (inner & 15)
        return refuse(why, size, "the box is %u bytes wide; it must be a multiple of 16", inner);
    if (s->swizzle && inner > spans[s->swizzle])
        return refuse(why, size, "the box is %u bytes wide; swizzle %u takes at most %u", inner,
                      spans[s->swizzle], spans[s->swizzle]);
    if (t.fill_nan && t.type != PT_F16 && t.type != PT_BF16 && t.type != PT_F32 && t.type != PT_F64)
        return refuse(why, size, "only floats can be filled with NaN");
    memset(out, 0, 128);
    memcpy(out, &t, sizeof t);
    return true;
}

/* ---- in a kernel ---- */

/* A map as the hardware has it. The CuTe DSL's host code writes it itself and asks no driver: tiles
 * without steps are known, from what it writes for given tensors. */
static bool decode_hardware(const void *at, struct tensor_map *out)
{
    static const struct {
        uint8_t bytes, type;
    } types[] = {{1, PT_U8},  {2, PT_U16}, {4, PT_U32}, {4, PT_S32},  {8, PT_U64}, {8, PT_S64},
                 {2, PT_F16}, {4, PT_F32}, {8, PT_F64}, {2, PT_BF16}, {4, PT_F32}, {4, PT_F32}};
    enum { VERSION = 2, RANK_BIT = 4, TYPE_BIT = 7, SWIZZLE_BIT = 13, KNOWN = 0x657fff };
    uint32_t x[32], rank, type;

    memcpy(x, at, sizeof x);
    rank = (x[2] >> RANK_BIT & 7) + 1;
    type = x[2] >> TYPE_BIT & 15;
    if ((x[2] & 15) != VERSION || x[2] & ~(uint32_t)KNOWN || rank > 5 || type >= ARRAY_LEN(types) ||
        x[2] >> 11 & 3 || x[7] || x[13] & 0xffffff || x[0] & 15)
        return false;
    *out = (struct tensor_map){.magic = TENSOR_MAP_MAGIC,
                               .address = (uint64_t)x[1] << 32 | x[0],
                               .rank = (uint8_t)rank,
                               .esize = types[type].bytes,
                               .type = types[type].type,
                               .swizzle = x[2] >> SWIZZLE_BIT & 3};
    for (uint32_t d = 0; d < 5; d++) {
        out->dim[d] = x[8 + d];
        out->box[d] =
            (uint16_t)((d ? x[14 + (d - 1) / 4] >> 8 * ((d - 1) % 4) & 255 : x[13] >> 24) + 1);
        out->step[d] = 1;
        if (d < 4)
            out->stride[d] = (uint64_t)x[3 + d] * 16;
    }
    return true;
}

/* The map at an address that holds one: itself, or decoded to `own`. NULL: it holds none. */
static const struct tensor_map *map_at(uint64_t addr, struct tensor_map *own)
{
    const struct tensor_map *t = (const struct tensor_map *)(uintptr_t)addr;
    uint64_t magic;

    memcpy(&magic, t, sizeof magic);
    return magic == TENSOR_MAP_MAGIC ? t : decode_hardware(t, own) ? own : NULL;
}

const struct tensor_map *map_of(struct warp *w, uint32_t lane, uint32_t site, uint64_t addr)
{
    const struct tensor_map *t = NULL;
    uint64_t params = (uint64_t)(uintptr_t)w->blk->b.params;
    bool there = addr - params < w->t->l->spec->param_bytes &&
                 w->t->l->spec->param_bytes - (addr - params) >= 128;
    const char *why = NULL;
    there = there || alloc_find(w->t->l->dev, addr, 128);
    if (!there)
        why = "the tensor map is neither a parameter nor in a buffer";
    else if (addr & 63)
        why = "the tensor map is not aligned to 64 bytes; declare the parameter as "
              "const __grid_constant__ CUtensorMap";
    else if (!(t = map_at(addr, &warp_hopper_of(w)->map)))
        why = "what should be a tensor map is none";
    if (!why)
        return t;
    finding_add(&(struct finding_where){w, lane, site}, SIMT_TENSOR_MAP, addr, NULL, -1, -1, -1,
                "%s", why);
    return NULL;
}

/* Rows of a swizzled tile are as far apart as the swizzle is wide. */
static uint32_t row_pitch(const struct tensor_map *t, uint32_t bytes)
{
    uint32_t span = t->swizzle ? 16u << t->swizzle : 0;
    return bytes < span ? span : bytes;
}

uint32_t map_tile_span(const struct tensor_map *t)
{
    uint32_t inner = (t->im2col ? t->channels : map_extent(t, 0)) * t->esize;
    return map_tile_bytes(t) / (t->packed ? inner / 16 * t->packed : inner) * row_pitch(t, inner);
}

uint32_t map_tile_bytes(const struct tensor_map *t)
{
    uint32_t n = t->packed ? t->packed : t->esize;
    if (t->im2col)
        return n * t->channels * t->pixels;
    for (int d = 0; d < t->rank; d++)
        n *= map_extent(t, d);
    return n;
}

/* One row of a tile: `count` elements from coordinate c0 on, at `address` for coordinate 0. */
struct row {
    uint64_t address;
    int64_t c0;
    uint32_t count, at; /* at: in the tile, not swizzled */
    bool inside;        /* the outer coordinates are */
};

typedef void row_fn(void *x, const struct tensor_map *t, const struct row *r);

static void tiled_rows(const struct tensor_map *t, const int32_t *coord, row_fn *fn, void *x)
{
    uint32_t n[5] = {1, 1, 1, 1, 1}, i[5] = {0}, inner = map_extent(t, 0) * t->esize, rows = 1;
    for (int d = 1; d < t->rank; d++) {
        n[d] = map_extent(t, d);
        rows *= n[d];
    }
    for (uint32_t r = 0; r < rows; r++) {
        struct row row = {.address = t->address,
                          .c0 = coord[0],
                          .count = map_extent(t, 0),
                          .at = r * row_pitch(t, inner),
                          .inside = true};
        for (int d = 1; d < t->rank; d++) {
            int64_t c = coord[d] + (int64_t)i[d] * t->step[d];
            row.inside &= c >= 0 && c <= (int64_t)t->dim[d];
            row.address += (uint64_t)c * t->stride[d - 1];
        }
        fn(x, t, &row);
        for (int d = 1; d < t->rank && ++i[d] == n[d]; d++)
            i[d] = 0;
    }
}

/* im2col: pixels of a bounding box, row after row and image after image, shifted by the filter's
 * offsets; each is one row of channels. */
static void im2col_rows(const struct tensor_map *t, const int32_t *coord, const uint16_t *offset,
                        row_fn *fn, void *x)
{
    int spatial = t->rank - 2;
    int64_t lo[3], hi[3], c[3], image = coord[t->rank - 1];
    for (int d = 0; d < spatial; d++) {
        lo[d] = t->lower[d];
        hi[d] = (int64_t)t->dim[d + 1] + t->upper[d];
        c[d] = coord[d + 1];
    }
    for (uint32_t p = 0; p < t->pixels; p++) {
        struct row row = {.address = t->address,
                          .c0 = coord[0],
                          .count = t->channels,
                          .at = p * row_pitch(t, (uint32_t)t->channels * t->esize),
                          .inside = image >= 0 && image <= (int64_t)t->dim[t->rank - 1]};
        for (int d = 0; d < spatial; d++) {
            int64_t q = c[d] + offset[d];
            row.inside &= q >= 0 && q <= (int64_t)t->dim[d + 1];
            row.address += (uint64_t)q * t->stride[d];
        }
        row.address += (uint64_t)image * t->stride[t->rank - 2];
        fn(x, t, &row);
        int d = 0;
        for (; d < spatial; d++) {
            c[d] += t->step[d + 1];
            if (c[d] <= hi[d])
                break;
            c[d] = lo[d];
        }
        image += d == spatial;
    }
}

/* Elements of the row that the tensor has. */
static void row_range(const struct tensor_map *t, const struct row *r, uint32_t *lo, uint32_t *hi)
{
    *lo = *hi = 0;
    if (!r->inside)
        return;
    for (*lo = 0; *lo < r->count && r->c0 + (int64_t)*lo * t->step[0] < 0;)
        ++*lo;
    int64_t room = (int64_t)t->dim[0] + 1 - r->c0;
    int64_t fit = room <= 0 ? 0 : (room + t->step[0] - 1) / t->step[0];
    *hi = fit < (int64_t)r->count ? (uint32_t)fit : r->count;
    if (*hi < *lo)
        *hi = *lo;
}

/* The same bytes of a tile, here and there: in chunks of 16, as the swizzle moves them. */
static void tile_copy(uint8_t *smem, uint32_t base, uint32_t at, uint8_t *flat, uint32_t bytes,
                      unsigned swizzle, bool in)
{
    while (bytes) {
        uint32_t part = 16 - (at & 15) < bytes ? 16 - (at & 15) : bytes;
        uint8_t *p;
        if (!swizzle)
            part = bytes;
        p = smem + swizzled(base + at, swizzle);
        if (in)
            memcpy(p, flat, part);
        else
            memcpy(flat, p, part);
        at += part;
        flat += part;
        bytes -= part;
    }
}

static void fill_row(const struct tensor_map *t, uint8_t *flat, uint32_t bytes)
{
    static const uint8_t nan[2] = {0xf7, 0x7f}; /* as an H200 fills, whatever the type */
    memset(flat, 0, bytes);
    for (uint32_t i = 0; t->fill_nan && i < bytes; i++)
        flat[i] = nan[i & 1];
}

struct load {
    struct flight *f;
    uint8_t flat[MAX_ROW + 64];
};

/* Groups of sixteen packed elements; the padding behind each is 0. */
static void load_packed(struct flight *f, const struct tensor_map *t, const struct row *r,
                        uint32_t lo, uint32_t hi, uint8_t *flat)
{
    uint64_t from = r->address + (uint64_t)(r->c0 + lo) * t->packed;
    memset(flat + lo * t->esize, 0, (hi - lo) * t->esize);
    if (!global_span(f->by, f->lane, f->site, from, (hi - lo) * t->packed, flight_kind(f),
                     f->earlier))
        return;
    for (uint32_t i = lo; i < hi; i++, from += t->packed)
        memcpy(flat + i * t->esize, (const void *)(uintptr_t)from, t->packed);
}

static void load_row(void *x, const struct tensor_map *t, const struct row *r)
{
    struct load *l = x;
    struct flight *f = l->f;
    uint32_t lo, hi, bytes = r->count * t->esize;
    if (bytes > MAX_ROW)
        return;
    row_range(t, r, &lo, &hi);
    if (lo || hi < r->count)
        fill_row(t, l->flat, bytes);
    if (hi > lo && t->packed) {
        load_packed(f, t, r, lo, hi, l->flat);
    } else if (hi > lo && t->step[0] == 1) {
        uint64_t from = r->address + (uint64_t)(r->c0 + lo) * t->esize;
        if (global_span(f->by, f->lane, f->site, from, (hi - lo) * t->esize, flight_kind(f),
                        f->earlier))
            memcpy(l->flat + lo * t->esize, (const void *)(uintptr_t)from, (hi - lo) * t->esize);
    }
    for (uint32_t i = lo; i < hi && t->step[0] > 1; i++) {
        uint64_t from = r->address + (uint64_t)(r->c0 + (int64_t)i * t->step[0]) * t->esize;
        if (global_span(f->by, f->lane, f->site, from, t->esize, flight_kind(f), f->earlier))
            memcpy(l->flat + i * t->esize, (const void *)(uintptr_t)from, t->esize);
    }
    tile_copy(f->dst->b.smem, f->at, r->at, l->flat, bytes, t->swizzle, true);
}

void map_load(struct flight *f)
{
    struct tensor_map own;
    const struct tensor_map *t = map_at(f->src, &own);
    struct load l;
    l.f = f;
    if (!t)
        return; /* overwritten since */
    if (t->im2col)
        im2col_rows(t, f->coord, f->offset, load_row, &l);
    else
        tiled_rows(t, f->coord, load_row, &l);
}

struct map_write {
    struct warp *w;
    const struct leaving *l;
    uint8_t flat[MAX_ROW + 64];
};

static void store_row(void *x, const struct tensor_map *t, const struct row *r)
{
    struct map_write *s = x;
    uint32_t lo, hi, bytes = r->count * t->esize;
    if (bytes > MAX_ROW)
        return;
    row_range(t, r, &lo, &hi);
    if (hi == lo)
        return;
    tile_copy(s->w->blk->b.smem, s->l->at, r->at, s->flat, bytes, t->swizzle, false);
    if (t->step[0] == 1) {
        global_put(s->w, s->l, r->address + (uint64_t)(r->c0 + lo) * t->esize,
                   s->flat + lo * t->esize, (hi - lo) * t->esize, t->esize);
        return;
    }
    for (uint32_t i = lo; i < hi; i++)
        global_put(s->w, s->l, r->address + (uint64_t)(r->c0 + (int64_t)i * t->step[0]) * t->esize,
                   s->flat + i * t->esize, t->esize, t->esize);
}

void map_store(struct warp *w, const struct leaving *l)
{
    struct tensor_map own;
    const struct tensor_map *t = map_at(l->dst, &own);
    struct map_write s;
    s.w = w;
    s.l = l;
    if (!t)
        return; /* overwritten since */
    if (t->im2col)
        im2col_rows(t, l->coord, l->offset, store_row, &s);
    else
        tiled_rows(t, l->coord, store_row, &s);
}
