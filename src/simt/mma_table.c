/* mma_table.c - one row per matrix instruction. */
#include "simt/mma.h"

#include <string.h>

static const struct mma_shape table[] = {
    {"m16n8k16", 16, 8, 16, PT_F16, PT_F16, PT_F32, PT_F32, 4, 2, 4, 4},
    {"m16n8k16", 16, 8, 16, PT_F16, PT_F16, PT_F16, PT_F16, 4, 2, 2, 2},
    {"m16n8k16", 16, 8, 16, PT_BF16, PT_BF16, PT_F32, PT_F32, 4, 2, 4, 4},
    {"m16n8k8", 16, 8, 8, PT_F16, PT_F16, PT_F32, PT_F32, 2, 1, 4, 4},
    {"m16n8k8", 16, 8, 8, PT_F16, PT_F16, PT_F16, PT_F16, 2, 1, 2, 2},
    {"m16n8k8", 16, 8, 8, PT_BF16, PT_BF16, PT_F32, PT_F32, 2, 1, 4, 4},
    {"m16n8k8", 16, 8, 8, PT_TF32, PT_TF32, PT_F32, PT_F32, 4, 2, 4, 4},
    {"m16n8k4", 16, 8, 4, PT_TF32, PT_TF32, PT_F32, PT_F32, 2, 1, 4, 4},
    {"m16n8k32", 16, 8, 32, PT_S8, PT_S8, PT_S32, PT_S32, 4, 2, 4, 4},
    {"m16n8k32", 16, 8, 32, PT_U8, PT_U8, PT_S32, PT_S32, 4, 2, 4, 4},
    {"m16n8k32", 16, 8, 32, PT_S8, PT_U8, PT_S32, PT_S32, 4, 2, 4, 4},
    {"m16n8k32", 16, 8, 32, PT_U8, PT_S8, PT_S32, PT_S32, 4, 2, 4, 4},
    {"m16n8k16", 16, 8, 16, PT_S8, PT_S8, PT_S32, PT_S32, 2, 1, 4, 4},
    {"m16n8k16", 16, 8, 16, PT_U8, PT_U8, PT_S32, PT_S32, 2, 1, 4, 4},
    {"m16n8k16", 16, 8, 16, PT_S8, PT_U8, PT_S32, PT_S32, 2, 1, 4, 4},
    {"m16n8k16", 16, 8, 16, PT_U8, PT_S8, PT_S32, PT_S32, 2, 1, 4, 4},
    {"m8n8k16", 8, 8, 16, PT_S8, PT_S8, PT_S32, PT_S32, 1, 1, 2, 2},
    {"m8n8k16", 8, 8, 16, PT_U8, PT_U8, PT_S32, PT_S32, 1, 1, 2, 2},
    {"m16n8k32", 16, 8, 32, PT_E4M3, PT_E4M3, PT_F32, PT_F32, 4, 2, 4, 4},
    {"m16n8k32", 16, 8, 32, PT_E5M2, PT_E5M2, PT_F32, PT_F32, 4, 2, 4, 4},
    {"m16n8k32", 16, 8, 32, PT_E4M3, PT_E5M2, PT_F32, PT_F32, 4, 2, 4, 4},
    {"m16n8k32", 16, 8, 32, PT_E5M2, PT_E4M3, PT_F32, PT_F32, 4, 2, 4, 4},
    {"m8n8k4", 8, 8, 4, PT_F64, PT_F64, PT_F64, PT_F64, 1, 1, 2, 2},
    {"m16n8k4", 16, 8, 4, PT_F64, PT_F64, PT_F64, PT_F64, 2, 1, 4, 4},
    {"m16n8k8", 16, 8, 8, PT_F64, PT_F64, PT_F64, PT_F64, 4, 2, 4, 4},
    {"m16n8k16", 16, 8, 16, PT_F64, PT_F64, PT_F64, PT_F64, 8, 4, 4, 4},
    /* wmma: registers of an opaque layout, each element of a and b held twice */
    {"m16n16k16", 16, 16, 16, PT_F16, PT_F16, PT_F32, PT_F32, 8, 8, 8, 8},
    {"m16n16k16", 16, 16, 16, PT_F16, PT_F16, PT_F16, PT_F16, 8, 8, 4, 4},
    {"m16n16k16", 16, 16, 16, PT_BF16, PT_BF16, PT_F32, PT_F32, 4, 4, 8, 8},
    {"m32n8k16", 32, 8, 16, PT_F16, PT_F16, PT_F32, PT_F32, 8, 8, 8, 8},
    {"m32n8k16", 32, 8, 16, PT_F16, PT_F16, PT_F16, PT_F16, 8, 8, 4, 4},
    {"m8n32k16", 8, 32, 16, PT_F16, PT_F16, PT_F32, PT_F32, 8, 8, 8, 8},
    {"m8n32k16", 8, 32, 16, PT_F16, PT_F16, PT_F16, PT_F16, 8, 8, 4, 4},
    {"m16n16k16", 16, 16, 16, PT_S8, PT_S8, PT_S32, PT_S32, 2, 2, 8, 8},
    {"m16n16k16", 16, 16, 16, PT_U8, PT_U8, PT_S32, PT_S32, 2, 2, 8, 8},
    {"m16n16k8", 16, 16, 8, PT_TF32, PT_TF32, PT_F32, PT_F32, 4, 4, 8, 8},
    {"m8n8k4", 8, 8, 4, PT_F64, PT_F64, PT_F64, PT_F64, 1, 1, 2, 2},
};

const struct mma_shape *mma_row(uint32_t kind)
{
    uint32_t i = (kind & 0xffff) - 1;
    return i < ARRAY_LEN(table) ? &table[i] : NULL;
}

uint32_t mma_find(const struct insn *in)
{
    enum ptx_type t[8];
    int n = 0;
    for (int i = 0; i < in->mod_count && n < 8; i++)
        if (ptx_type_of(in->mods[i]) != PT_NONE)
            t[n++] = ptx_type_of(in->mods[i]);
    bool is_wmma = strcmp(in->op, "wmma") == 0;
    enum ptx_type d, a, b, c;
    if (n == 4) {
        d = t[0], a = t[1], b = t[2], c = t[3];
    } else if (n == 2 && is_wmma) { /* f16 inputs are not written */
        d = t[0], a = b = PT_F16, c = t[1];
    } else {
        return 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        const struct mma_shape *s = &table[i];
        bool wide = s->n == 16 || s->m == 32 || s->n == 32 || i == ARRAY_LEN(table) - 1;
        if (!insn_has(in, s->name) || s->a != a || s->b != b || s->c != c || s->d != d ||
            wide != is_wmma)
            continue;
        uint32_t flags = insn_has(in, "satfinite") ? MMA_SAT : 0;
        if (is_wmma)
            flags |= MMA_WMMA;
        return (uint32_t)(i + 1) | flags;
    }
    return 0;
}

uint32_t wmma_find(const struct insn *in, int *regs)
{
    static const char *const parts[] = {"a", "b", "c", "d"};
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        const struct mma_shape *s = &table[i];
        bool wide = s->n == 16 || s->m == 32 || s->n == 32 || i == ARRAY_LEN(table) - 1;
        if (!wide || !insn_has(in, s->name))
            continue;
        for (uint32_t p = 0; p < 4; p++) {
            if (!insn_has(in, parts[p]))
                continue;
            enum ptx_type t[] = {s->a, s->b, s->c, s->d};
            int r[] = {s->a_regs, s->b_regs, s->c_regs, s->d_regs};
            if (t[p] != in->type)
                break;
            *regs = r[p];
            return (uint32_t)(i + 1) | p << 20 | (insn_has(in, "row") ? MMA_ROW_A : 0u);
        }
    }
    return 0;
}
