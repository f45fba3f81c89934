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

/* operation | type << 8; 0: unknown */
uint32_t atom_kind(const struct insn *in);
uint32_t mbar_kind(const struct insn *in);

#endif
