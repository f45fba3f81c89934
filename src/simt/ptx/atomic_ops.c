/* atomic_ops.c - names of atomic and mbarrier operations to numbers. */
#include "simt/ptx/atomic_ops.h"

#include <string.h>

uint32_t atom_kind(const struct insn *in)
{
    static const struct {
        const char *name;
        enum atom_op op;
    } ops[] = {{"add", ATOM_ADD}, {"min", ATOM_MIN}, {"max", ATOM_MAX},   {"and", ATOM_AND},
               {"or", ATOM_OR},   {"xor", ATOM_XOR}, {"exch", ATOM_EXCH}, {"cas", ATOM_CAS},
               {"inc", ATOM_INC}, {"dec", ATOM_DEC}};
    if (in->type == PT_NONE || insn_has(in, "async"))
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(ops); i++)
        if (insn_has(in, ops[i].name))
            return (uint32_t)ops[i].op | (uint32_t)in->type << 8;
    return 0;
}

uint32_t mbar_kind(const struct insn *in)
{
    static const struct {
        const char *name;
        enum mbar_op op;
    } ops[] = {{"init", MBAR_INIT},
               {"inval", MBAR_INVAL},
               {"arrive", MBAR_ARRIVE},
               {"arrive_drop", MBAR_ARRIVE_DROP},
               {"test_wait", MBAR_TEST},
               {"try_wait", MBAR_TRY},
               {"pending_count", MBAR_PENDING},
               {"expect_tx", MBAR_EXPECT_TX},
               {"complete_tx", MBAR_COMPLETE_TX}};
    for (size_t i = 0; i < ARRAY_LEN(ops); i++)
        if (insn_has(in, ops[i].name))
            return (uint32_t)ops[i].op | (insn_has(in, "parity") ? MBAR_PARITY : 0u) |
                   (insn_has(in, "noComplete") ? MBAR_NOCOMPLETE : 0u) |
                   (insn_has(in, "expect_tx") ? MBAR_EXPECT : 0u);
    return 0;
}
