/* SPDX-License-Identifier: Apache-2.0 */
/* peer_addresses.c - addresses of shared memory whose bit 24 is cleared: the even block's. */
#include "simt/ir/peer_addresses.h"

#include "simt/ir/ir.h"

/* All of these stay and bit 24 goes; compilers clear low bits that are 0 anyway, too. */
enum { RANK_BITS = 0xfe, RANK_SHIFT = 24, PLACE_BITS = 0xfff000 };

static bool clears_rank(const struct insn *in)
{
    uint32_t mask = in->arg_count == 3 ? (uint32_t)in->args[2].bits : 0;
    return in->op == OP_AND && mask >> RANK_SHIFT == RANK_BITS &&
           (mask & PLACE_BITS) == PLACE_BITS && in->args[0].kind == OPND_REG &&
           in->args[1].kind == OPND_REG && in->args[2].kind == OPND_INT;
}

/* Its result is where its operand is, or next to it. */
static bool moves(const struct insn *in)
{
    return in->op == OP_MOV || in->op == OP_ADD || in->op == OP_SUB || in->op == OP_CVT ||
           in->op == OP_SELP;
}

static bool uses_any(const struct insn *in, const bool *of)
{
    int regs[MAX_INSN_REGS];
    for (int n = insn_uses(in, regs); n-- > 0;)
        if (of[regs[n]])
            return true;
    return false;
}

static bool addresses_by(const struct insn *in, const bool *of)
{
    for (int i = 0; i < in->arg_count; i++)
        if (in->args[i].kind == OPND_ADDR && in->args[i].reg >= 0 && of[in->args[i].reg])
            return true;
    return false;
}

static bool names_address(const struct ptx_kernel *k, int reg, struct arena *a)
{
    bool *of = arena_array(a, (size_t)k->reg_count, sizeof *of);
    int regs[MAX_INSN_REGS];
    of[reg] = true;
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = 0; i < k->insn_count; i++) {
            const struct insn *in = &k->insn[i];
            if (addresses_by(in, of))
                return true;
            if (!moves(in) || !uses_any(in, of))
                continue;
            for (int n = insn_defs(in, regs); n-- > 0;) {
                changed |= !of[regs[n]];
                of[regs[n]] = true;
            }
        }
    }
    return false;
}

void peer_addresses(struct ptx_kernel *k, struct arena *a)
{
    for (int i = 0; i < k->insn_count; i++) {
        struct insn *in = &k->insn[i];
        if (clears_rank(in) && names_address(k, in->args[0].reg, a))
            in->op = OP_EVENBLOCK;
    }
}
