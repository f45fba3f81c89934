/* SPDX-License-Identifier: Apache-2.0 */
/* wgmma.h - the kind of a wgmma.mma_async, packed by the writer, read by the device. */
#ifndef SIMT_WGMMA_H
#define SIMT_WGMMA_H

enum wgmma_type { WG_F16, WG_BF16, WG_TF32, WG_E4M3, WG_E5M2, WG_S8, WG_U8, WG_TYPES };
enum wgmma_acc { WG_ACC_F32, WG_ACC_F16, WG_ACC_S32 };

/* n / 8 in the low bits, then the types of the sum and of the factors, then flags. */
enum {
    WG_N = 63,
    WG_ACC = 6,
    WG_ACC_BITS = 3,
    WG_A = 8,
    WG_B = 11,
    WG_TYPE_BITS = 7,
    WG_TRANS_A = 1 << 14,
    WG_TRANS_B = 1 << 15,
    WG_NEG_A = 1 << 16,
    WG_NEG_B = 1 << 17,
    WG_REGS_A = 1 << 18,
    WG_SAT = 1 << 19
};

static inline unsigned wg_n(unsigned kind)
{
    return (kind & WG_N) * 8;
}
static inline enum wgmma_acc wg_acc(unsigned kind)
{
    return (enum wgmma_acc)(kind >> WG_ACC & WG_ACC_BITS);
}
static inline enum wgmma_type wg_a(unsigned kind)
{
    return (enum wgmma_type)(kind >> WG_A & WG_TYPE_BITS);
}
static inline enum wgmma_type wg_b(unsigned kind)
{
    return (enum wgmma_type)(kind >> WG_B & WG_TYPE_BITS);
}

#endif
