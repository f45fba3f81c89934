/* SPDX-License-Identifier: Apache-2.0 */
/* mma_shapes.c - one row per matrix instruction. */
#include "simt/ptx/mma_shapes.h"

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
    {16, 8, 32, PT_E4M3, PT_E4M3, PT_F32, PT_F32, 4, 2, 4, 4, MMA_MUL},
    {16, 8, 32, PT_E4M3, PT_E5M2, PT_F32, PT_F32, 4, 2, 4, 4, MMA_MUL},
    {16, 8, 32, PT_E5M2, PT_E4M3, PT_F32, PT_F32, 4, 2, 4, 4, MMA_MUL},
    {16, 8, 32, PT_E5M2, PT_E5M2, PT_F32, PT_F32, 4, 2, 4, 4, MMA_MUL},
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

static bool has_shape(const struct insn *in, const struct mma_shape *s)
{
    return in->shape.m == s->m && in->shape.n == s->n && in->shape.k == s->k;
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
    if (n == 4) {
        d = t[0], a = t[1], b = t[2], c = t[3];
    } else if (n == 2 && is_wmma) { /* f16 inputs are not written */
        d = t[0], a = b = PT_F16, c = t[1];
    } else {
        return 0;
    }
    enum mma_op op = is_wmma                      ? MMA_WMMA_ROW
                     : insn_has_mod(in, MOD_POPC) ? (insn_has_mod(in, MOD_XOR) ? MMA_XOR : MMA_AND)
                     : is_m8n8k4(in) && a == PT_F16 ? MMA_QUADS
                                                    : MMA_MUL;
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        const struct mma_shape *s = &table[i];
        if (!has_shape(in, s) || s->a != a || s->b != b || s->c != c || s->d != d || s->op != op)
            continue;
        uint32_t flags = insn_has_mod(in, MOD_SATFINITE) ? MMA_SAT : 0;
        if (is_wmma)
            return (uint32_t)(i + 1) | flags | MMA_WMMA;
        return (uint32_t)(i + 1) | flags | layout_flags(in);
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
