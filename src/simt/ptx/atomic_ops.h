/* SPDX-License-Identifier: Apache-2.0 */
/* atomic_ops.h - numbers for atomic and mbarrier operations, shared by writer and device. */
#ifndef SIMT_ATOMIC_OPS_H
#define SIMT_ATOMIC_OPS_H

#include "simt/ptx/ptx.h"

enum atom_op {
    ATOM_NONE,
    ATOM_ADD,
    ATOM_MIN,
    ATOM_MAX,
    ATOM_AND,
    ATOM_OR,
    ATOM_XOR,
    ATOM_EXCH,
    ATOM_CAS,
    ATOM_INC,
    ATOM_DEC
};
enum mbar_op {
    MBAR_NONE,
    MBAR_INIT,
    MBAR_INVAL,
    MBAR_ARRIVE,
    MBAR_ARRIVE_DROP,
    MBAR_TEST,
    MBAR_TRY,
    MBAR_PENDING,
    MBAR_EXPECT_TX,
    MBAR_COMPLETE_TX,
    MBAR_PARITY = 256,
    MBAR_NOCOMPLETE = 512,
    MBAR_EXPECT = 1024 /* an arrival that announces bytes */
};

/* The operation in the low bits, above it the type or MBAR_ flags; 0: unknown. */
enum { KIND_OP = 0xff, KIND_TYPE_SHIFT = 8 };
uint32_t atom_kind(const struct insn *in);
uint32_t mbar_kind(const struct insn *in);

static inline enum atom_op atom_op_of(uint32_t kind)
{
    return (enum atom_op)(kind & KIND_OP);
}
static inline enum ptx_type atom_type_of(uint32_t kind)
{
    return (enum ptx_type)(kind >> KIND_TYPE_SHIFT);
}
static inline enum mbar_op mbar_op_of(uint32_t kind)
{
    return (enum mbar_op)(kind & KIND_OP);
}
/* Locks are made of them: they order memory, a sum does not. */
static inline bool atom_locks(uint32_t kind)
{
    return atom_op_of(kind) == ATOM_CAS || atom_op_of(kind) == ATOM_EXCH;
}

#endif
