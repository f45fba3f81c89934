/* wgmma.h - the kind of a wgmma.mma_async, packed by the writer, read by the device. */
#ifndef SIMT_WGMMA_H
#define SIMT_WGMMA_H

enum wgmma_type { WG_F16, WG_BF16, WG_TF32, WG_E4M3, WG_E5M2, WG_S8, WG_U8, WG_TYPES };
enum wgmma_acc { WG_ACC_F32, WG_ACC_F16, WG_ACC_S32 };

/* n / 8 in bits 0..5 */
enum {
    WG_ACC = 6, /* 2 bits */
    WG_A = 8,   /* 3 bits */
    WG_B = 11,  /* 3 bits */
    WG_TRANS_A = 1 << 14,
    WG_TRANS_B = 1 << 15,
    WG_NEG_A = 1 << 16,
    WG_NEG_B = 1 << 17,
    WG_REGS_A = 1 << 18,
    WG_SAT = 1 << 19
};

#endif
