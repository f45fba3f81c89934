/* SPDX-License-Identifier: Apache-2.0 */
/* mma_shapes.c - one row per matrix instruction. */
#include "simt/ptx/mma_shapes.h"

/* Factors of eight bits and fewer, each with each, in bytes: sums in f32 and in f16. */
#define LOW(a, b)                                                                                  \
    {16, 8, 32, PT_##a, PT_##b, PT_F32, PT_F32, 4, 2, 4, 4, MMA_LOW},                              \
    {                                                                                              \
        16, 8, 32, PT_##a, PT_##b, PT_F16, PT_F16, 4, 2, 2, 2, MMA_LOW                             \
    }
#define LOW_ROW(a) LOW(a, E4M3), LOW(a, E5M2), LOW(a, E3M2), LOW(a, E2M3), LOW(a, E2M1)
/* sm_89 has f8 without a kind: k of 32 and 16. */
#define F8(a, b)                                                                                   \
    {16, 8, 32, PT_##a, PT_##b, PT_F32, PT_F32, 4, 2, 4, 4, MMA_MUL},                              \
        {16, 8, 16, PT_##a, PT_##b, PT_F32, PT_F32, 2, 1, 4, 4, MMA_LOW},                          \
    {                                                                                              \
        16, 8, 16, PT_##a, PT_##b, PT_F16, PT_F16, 2, 1, 2, 2, MMA_LOW                             \
    }

static const struct mma_shape table[] = {
    /* mma.sync: floats */
    {16, 8, 16, PT_F16, PT_F16, PT_F32, PT_F32, 4, 2, 4, 4, MMA_MUL},
    {16, 8, 16, PT_F16, PT_F16, PT_F16, PT_F16, 4, 2, 2, 2, MMA_MUL},
    {16, 8, 16, PT_BF16, PT_BF16, PT_F32, PT_F32, 4, 2, 4, 4, MMA_MUL},
    {16, 8, 8, PT_F16, PT_F16, PT_F32, PT_F32, 2, 1, 4, 4, MMA_MUL},
    {16, 8, 8, PT_F16, PT_F16, PT_F16, PT_F16, 2, 1, 2, 2, MMA_MUL},
    {16, 8, 8, PT_BF16, PT_BF16, PT_F32, PT_F32, 2, 1, 4, 4, MMA_MUL},
    {16, 8, 8, PT_TF32, PT_TF32, PT_F32, PT_F32, 4, 2, 4, 4, MMA_MUL},
    {16, 8, 4, PT_TF32, PT_TF32, PT_F32, PT_F32, 2, 1, 4, 4, MMA_MUL},
    F8(E4M3, E4M3),
    F8(E4M3, E5M2),
    F8(E5M2, E4M3),
    F8(E5M2, E5M2),
    {8, 8, 4, PT_F64, PT_F64, PT_F64, PT_F64, 1, 1, 2, 2, MMA_MUL},
    {16, 8, 4, PT_F64, PT_F64, PT_F64, PT_F64, 2, 1, 4, 4, MMA_MUL},
    {16, 8, 8, PT_F64, PT_F64, PT_F64, PT_F64, 4, 2, 4, 4, MMA_MUL},
    {16, 8, 16, PT_F64, PT_F64, PT_F64, PT_F64, 8, 4, 4, 4, MMA_MUL},
    /* of sm_70: four products of 8x8x4, each by eight lanes */
    {8, 8, 4, PT_F16, PT_F16, PT_F32, PT_F32, 2, 2, 8, 8, MMA_QUADS},
    {8, 8, 4, PT_F16, PT_F16, PT_F16, PT_F16, 2, 2, 4, 4, MMA_QUADS},
    /* integers */
    {16, 8, 32, PT_S8, PT_S8, PT_S32, PT_S32, 4, 2, 4, 4, MMA_MUL},
    {16, 8, 16, PT_S8, PT_S8, PT_S32, PT_S32, 2, 1, 4, 4, MMA_MUL},
    {8, 8, 16, PT_S8, PT_S8, PT_S32, PT_S32, 1, 1, 2, 2, MMA_MUL},
    {16, 8, 32, PT_S8, PT_U8, PT_S32, PT_S32, 4, 2, 4, 4, MMA_MUL},
    {16, 8, 16, PT_S8, PT_U8, PT_S32, PT_S32, 2, 1, 4, 4, MMA_MUL},
    {8, 8, 16, PT_S8, PT_U8, PT_S32, PT_S32, 1, 1, 2, 2, MMA_MUL},
    {16, 8, 32, PT_U8, PT_S8, PT_S32, PT_S32, 4, 2, 4, 4, MMA_MUL},
    {16, 8, 16, PT_U8, PT_S8, PT_S32, PT_S32, 2, 1, 4, 4, MMA_MUL},
    {8, 8, 16, PT_U8, PT_S8, PT_S32, PT_S32, 1, 1, 2, 2, MMA_MUL},
    {16, 8, 32, PT_U8, PT_U8, PT_S32, PT_S32, 4, 2, 4, 4, MMA_MUL},
    {16, 8, 16, PT_U8, PT_U8, PT_S32, PT_S32, 2, 1, 4, 4, MMA_MUL},
    {8, 8, 16, PT_U8, PT_U8, PT_S32, PT_S32, 1, 1, 2, 2, MMA_MUL},
    {16, 8, 64, PT_S4, PT_S4, PT_S32, PT_S32, 4, 2, 4, 4, MMA_MUL},
    {16, 8, 32, PT_S4, PT_S4, PT_S32, PT_S32, 2, 1, 4, 4, MMA_MUL},
    {8, 8, 32, PT_S4, PT_S4, PT_S32, PT_S32, 1, 1, 2, 2, MMA_MUL},
    {16, 8, 64, PT_S4, PT_U4, PT_S32, PT_S32, 4, 2, 4, 4, MMA_MUL},
    {16, 8, 32, PT_S4, PT_U4, PT_S32, PT_S32, 2, 1, 4, 4, MMA_MUL},
    {8, 8, 32, PT_S4, PT_U4, PT_S32, PT_S32, 1, 1, 2, 2, MMA_MUL},
    {16, 8, 64, PT_U4, PT_S4, PT_S32, PT_S32, 4, 2, 4, 4, MMA_MUL},
    {16, 8, 32, PT_U4, PT_S4, PT_S32, PT_S32, 2, 1, 4, 4, MMA_MUL},
    {8, 8, 32, PT_U4, PT_S4, PT_S32, PT_S32, 1, 1, 2, 2, MMA_MUL},
    {16, 8, 64, PT_U4, PT_U4, PT_S32, PT_S32, 4, 2, 4, 4, MMA_MUL},
    {16, 8, 32, PT_U4, PT_U4, PT_S32, PT_S32, 2, 1, 4, 4, MMA_MUL},
    {8, 8, 32, PT_U4, PT_U4, PT_S32, PT_S32, 1, 1, 2, 2, MMA_MUL},
    {16, 8, 256, PT_B1, PT_B1, PT_S32, PT_S32, 4, 2, 4, 4, MMA_XOR},
    {16, 8, 128, PT_B1, PT_B1, PT_S32, PT_S32, 2, 1, 4, 4, MMA_XOR},
    {8, 8, 128, PT_B1, PT_B1, PT_S32, PT_S32, 1, 1, 2, 2, MMA_XOR},
    {16, 8, 256, PT_B1, PT_B1, PT_S32, PT_S32, 4, 2, 4, 4, MMA_AND},
    {16, 8, 128, PT_B1, PT_B1, PT_S32, PT_S32, 2, 1, 4, 4, MMA_AND},
    {8, 8, 128, PT_B1, PT_B1, PT_S32, PT_S32, 1, 1, 2, 2, MMA_AND},
    /* of sm_120: f8, f6 and f4 in bytes; f4 packed, with scales */
    LOW_ROW(E4M3),
    LOW_ROW(E5M2),
    LOW_ROW(E3M2),
    LOW_ROW(E2M3),
    LOW_ROW(E2M1),
    {16, 8, 64, PT_E2M1X2, PT_E2M1X2, PT_F32, PT_F32, 4, 2, 4, 4, MMA_LOW},
    /* wmma: registers of a layout of their own */
    {16, 16, 16, PT_F16, PT_F16, PT_F32, PT_F32, 8, 8, 8, 8, MMA_WMMA_ROW},
    {16, 16, 16, PT_F16, PT_F16, PT_F16, PT_F16, 8, 8, 4, 4, MMA_WMMA_ROW},
    {16, 16, 16, PT_F16, PT_F16, PT_F16, PT_F32, 8, 8, 4, 8, MMA_WMMA_ROW},
    {16, 16, 16, PT_F16, PT_F16, PT_F32, PT_F16, 8, 8, 8, 4, MMA_WMMA_ROW},
    {16, 16, 16, PT_BF16, PT_BF16, PT_F32, PT_F32, 4, 4, 8, 8, MMA_WMMA_ROW},
    {16, 16, 16, PT_S8, PT_S8, PT_S32, PT_S32, 2, 2, 8, 8, MMA_WMMA_ROW},
    {16, 16, 16, PT_U8, PT_U8, PT_S32, PT_S32, 2, 2, 8, 8, MMA_WMMA_ROW},
    {32, 8, 16, PT_F16, PT_F16, PT_F32, PT_F32, 8, 8, 8, 8, MMA_WMMA_ROW},
    {32, 8, 16, PT_F16, PT_F16, PT_F16, PT_F16, 8, 8, 4, 4, MMA_WMMA_ROW},
    {32, 8, 16, PT_F16, PT_F16, PT_F16, PT_F32, 8, 8, 4, 8, MMA_WMMA_ROW},
    {32, 8, 16, PT_F16, PT_F16, PT_F32, PT_F16, 8, 8, 8, 4, MMA_WMMA_ROW},
    {32, 8, 16, PT_BF16, PT_BF16, PT_F32, PT_F32, 8, 2, 8, 8, MMA_WMMA_ROW},
    {32, 8, 16, PT_S8, PT_S8, PT_S32, PT_S32, 4, 1, 8, 8, MMA_WMMA_ROW},
    {32, 8, 16, PT_U8, PT_U8, PT_S32, PT_S32, 4, 1, 8, 8, MMA_WMMA_ROW},
    {8, 32, 16, PT_F16, PT_F16, PT_F32, PT_F32, 8, 8, 8, 8, MMA_WMMA_ROW},
    {8, 32, 16, PT_F16, PT_F16, PT_F16, PT_F16, 8, 8, 4, 4, MMA_WMMA_ROW},
    {8, 32, 16, PT_F16, PT_F16, PT_F16, PT_F32, 8, 8, 4, 8, MMA_WMMA_ROW},
    {8, 32, 16, PT_F16, PT_F16, PT_F32, PT_F16, 8, 8, 8, 4, MMA_WMMA_ROW},
    {8, 32, 16, PT_BF16, PT_BF16, PT_F32, PT_F32, 2, 8, 8, 8, MMA_WMMA_ROW},
    {8, 32, 16, PT_S8, PT_S8, PT_S32, PT_S32, 1, 4, 8, 8, MMA_WMMA_ROW},
    {8, 32, 16, PT_U8, PT_U8, PT_S32, PT_S32, 1, 4, 8, 8, MMA_WMMA_ROW},
    {16, 16, 8, PT_TF32, PT_TF32, PT_F32, PT_F32, 4, 4, 8, 8, MMA_WMMA_ROW},
    {8, 8, 4, PT_F64, PT_F64, PT_F64, PT_F64, 1, 1, 2, 2, MMA_WMMA_ROW},
};

const struct mma_shape *mma_row(uint32_t kind)
{
    uint32_t i = (kind & MMA_ROWS) - 1;
    return i < ARRAY_LEN(table) ? &table[i] : NULL;
}

/* .row.col and the like: the first is of A, the second of B. */
static uint32_t layout_flags(const struct insn *in)
{
    uint32_t flags = 0;
    int n = 0;
    for (int i = 0; i < in->mod_count; i++) {
        bool row = in->mods[i] == MOD_ROW;
        if (!row && in->mods[i] != MOD_COL)
            continue;
        if (n == 0 && row)
            flags |= MMA_ROW_A;
        if (n == 1 && !row)
            flags |= MMA_COL_B;
        n++;
    }
    return flags;
}

static bool is_m8n8k4(const struct insn *in)
{
    return in->shape.m == 8 && in->shape.n == 8 && in->shape.k == 4;
}

/* The kinds that need no name. */
static bool is_f8(enum ptx_type t)
{
    return t == PT_E4M3 || t == PT_E5M2;
}

static bool has_shape(const struct insn *in, const struct mma_shape *s)
{
    return in->shape.m == s->m && in->shape.n == s->n && in->shape.k == s->k;
}

/* Which types, shape and scales a kind takes; false: not such an instruction. flags: of its
 * scales. */
static bool kind_of(const struct insn *in, enum ptx_type scale, uint32_t *flags)
{
    static const struct {
        enum ptx_mod kind, vec;
        enum ptx_type scale;
        int k;
        bool usual; /* the vector may be left out */
        uint32_t flags;
    } kinds[] = {
        {MOD_KIND_F8F6F4, MOD_NONE, PT_NONE, 32, true, 0},
        {MOD_KIND_MXF8F6F4, MOD_SCALE_VEC_1X, PT_UE8M0, 32, true, 1 << MMA_SCALE_SHIFT},
        {MOD_KIND_MXF4, MOD_SCALE_VEC_2X, PT_UE8M0, 64, true, 2 << MMA_SCALE_SHIFT},
        {MOD_KIND_MXF4NVF4, MOD_SCALE_VEC_2X, PT_UE8M0, 64, false, 2 << MMA_SCALE_SHIFT},
        {MOD_KIND_MXF4NVF4, MOD_SCALE_VEC_4X, PT_UE8M0, 64, false, 3 << MMA_SCALE_SHIFT},
        {MOD_KIND_MXF4NVF4, MOD_SCALE_VEC_4X, PT_UE4M3, 64, false,
         3 << MMA_SCALE_SHIFT | MMA_UE4M3},
    };
    bool vec = insn_has_any(in, MOD_SCALE_VEC_1X, MOD_SCALE_VEC_2X, MOD_SCALE_VEC_4X);
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (insn_has_mod(in, kinds[i].kind) && kinds[i].scale == scale &&
            kinds[i].k == in->shape.k &&
            (kinds[i].scale != PT_NONE) == insn_has_mod(in, MOD_BLOCK_SCALE) &&
            (vec ? insn_has_mod(in, kinds[i].vec) : kinds[i].usual)) {
            *flags = kinds[i].flags;
            return true;
        }
    return false;
}

uint32_t mma_find(const struct insn *in)
{
    enum ptx_type t[8];
    int n = 0;
    for (int i = 0; i < in->mod_count && n < 8; i++)
        if (ptx_mod_type(in->mods[i]) != PT_NONE)
            t[n++] = ptx_mod_type(in->mods[i]);
    bool is_wmma = in->op == OP_WMMA;
    enum ptx_type d, a, b, c;
    uint32_t scales = 0;
    bool kind =
        insn_has_any(in, MOD_KIND_F8F6F4, MOD_KIND_MXF8F6F4, MOD_KIND_MXF4, MOD_KIND_MXF4NVF4);
    if (kind && (n < 4 || n > 5 || !kind_of(in, n == 5 ? t[4] : PT_NONE, &scales)))
        return 0;
    if (n == 4 || kind) {
        d = t[0], a = t[1], b = t[2], c = t[3];
    } else if (n == 2 && is_wmma) { /* f16 inputs are not written */
        d = t[0], a = b = PT_F16, c = t[1];
    } else {
        return 0;
    }
    enum mma_op op = is_wmma                      ? MMA_WMMA_ROW
                     : insn_has_mod(in, MOD_POPC) ? (insn_has_mod(in, MOD_XOR) ? MMA_XOR : MMA_AND)
                     : is_m8n8k4(in) && a == PT_F16 ? MMA_QUADS
                     : kind                         ? MMA_LOW
                                                    : MMA_MUL;
    if (in->shape.k == 64 && a == PT_E2M1 && b == PT_E2M1)
        a = b = PT_E2M1X2;
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        const struct mma_shape *s = &table[i];
        bool same = s->op == op || (s->op == MMA_LOW && op == MMA_MUL && is_f8(a) && is_f8(b));
        if (!has_shape(in, s) || s->a != a || s->b != b || s->c != c || s->d != d || !same)
            continue;
        uint32_t flags = insn_has_mod(in, MOD_SATFINITE) ? MMA_SAT : 0;
        if (is_wmma)
            return (uint32_t)(i + 1) | flags | MMA_WMMA;
        return (uint32_t)(i + 1) | flags | scales | layout_flags(in);
    }
    return 0;
}

uint32_t wmma_find(const struct insn *in, int *regs)
{
    static const enum ptx_mod parts[] = {MOD_A, MOD_B, MOD_C, MOD_D};
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        const struct mma_shape *s = &table[i];
        if (s->op != MMA_WMMA_ROW || !has_shape(in, s))
            continue;
        for (uint32_t p = 0; p < 4; p++) {
            if (!insn_has_mod(in, parts[p]))
                continue;
            enum ptx_type t[] = {s->a, s->b, s->c, s->d};
            int r[] = {s->a_regs, s->b_regs, s->c_regs, s->d_regs};
            if (t[p] != in->type)
                break;
            *regs = r[p];
            return (uint32_t)(i + 1) | p << WMMA_PART_SHIFT |
                   (insn_has_mod(in, MOD_ROW) ? MMA_ROW_A : 0u);
        }
    }
    return 0;
}
