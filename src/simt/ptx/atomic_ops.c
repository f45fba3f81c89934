/* SPDX-License-Identifier: Apache-2.0 */
/* atomic_ops.c - names of atomic and mbarrier operations to numbers. */
#include "simt/ptx/atomic_ops.h"

uint32_t atom_kind(const struct insn *in)
{
    static const struct {
        enum ptx_mod mod;
        enum atom_op op;
    } ops[] = {{MOD_ADD, ATOM_ADD}, {MOD_MIN, ATOM_MIN}, {MOD_MAX, ATOM_MAX},   {MOD_AND, ATOM_AND},
               {MOD_OR, ATOM_OR},   {MOD_XOR, ATOM_XOR}, {MOD_EXCH, ATOM_EXCH}, {MOD_CAS, ATOM_CAS},
               {MOD_INC, ATOM_INC}, {MOD_DEC, ATOM_DEC}};
    if (in->type == PT_NONE || insn_has_mod(in, MOD_ASYNC))
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(ops); i++)
        if (insn_has_mod(in, ops[i].mod))
            return (uint32_t)ops[i].op | (uint32_t)in->type << KIND_TYPE_SHIFT;
    return 0;
}

uint32_t mbar_kind(const struct insn *in)
{
    static const struct {
        enum ptx_mod mod;
        enum mbar_op op;
    } ops[] = {{MOD_INIT, MBAR_INIT},
               {MOD_INVAL, MBAR_INVAL},
               {MOD_ARRIVE, MBAR_ARRIVE},
               {MOD_ARRIVE_DROP, MBAR_ARRIVE_DROP},
               {MOD_TEST_WAIT, MBAR_TEST},
               {MOD_TRY_WAIT, MBAR_TRY},
               {MOD_PENDING_COUNT, MBAR_PENDING},
               {MOD_EXPECT_TX, MBAR_EXPECT_TX},
               {MOD_COMPLETE_TX, MBAR_COMPLETE_TX}};
    for (size_t i = 0; i < ARRAY_LEN(ops); i++)
        if (insn_has_mod(in, ops[i].mod))
            return (uint32_t)ops[i].op | (insn_has_mod(in, MOD_PARITY) ? MBAR_PARITY : 0u) |
                   (insn_has_mod(in, MOD_NOCOMPLETE) ? MBAR_NOCOMPLETE : 0u) |
                   (insn_has_mod(in, MOD_EXPECT_TX) ? MBAR_EXPECT : 0u);
    return 0;
}
