/* SPDX-License-Identifier: Apache-2.0 */
/*
 * abi.h - the interface between translated kernels and the device.
 *
 * Its text is part of every translated kernel (embedded at build time), so it includes nothing. A
 * change of any layout or meaning needs a new
 * SIMT_ABI_VERSION: it is part of the cache key and is checked at load.
 */
#ifndef SIMT_ABI_H
#define SIMT_ABI_H

#define SIMT_ABI_VERSION 16

typedef __UINT8_TYPE__ u8;
typedef __UINT16_TYPE__ u16;
typedef __UINT32_TYPE__ u32;
typedef __UINT64_TYPE__ u64;
typedef __INT32_TYPE__ s32;
typedef __INT64_TYPE__ s64;
typedef __INT16_TYPE__ s16;

enum sw_space { SW_GENERIC, SW_GLOBAL, SW_SHARED, SW_CONST, SW_LOCAL, SW_PARAM, SW_CLUSTER };

/* Counter classes of instructions. */
enum sw_class {
    SW_C_FMA,
    SW_C_FADD,
    SW_C_FMUL,
    SW_C_FP64,
    SW_C_HALF,
    SW_C_INT,
    SW_C_SFU,
    SW_C_CVT,
    SW_C_LDG,
    SW_C_STG,
    SW_C_LDS,
    SW_C_STS,
    SW_C_ATOM,
    SW_C_TENSOR,
    SW_C_BAR,
    SW_C_BRANCH,
    SW_C_OTHER,
    SW_C_SHFL,
    SW_C_DIV, /* exact quotients, reciprocals and roots: a dozen instructions each */
    SW_C_COUNT
};

enum sw_site_flag {
    SW_A32 = 1,       /* addresses are u32[32], else u64[32] */
    SW_WIDE = 2,      /* register lanes are u64, else u32 */
    SW_SIGNED = 4,    /* extend the sign of narrow loads */
    SW_STRONG = 8,    /* volatile, relaxed, acquire, release: ordered on purpose */
    SW_READONLY = 16, /* ld.global.nc, ld.const */
    SW_RELEASE = 32,  /* what came before it is visible to whoever sees it */
    SW_UNFENCED = 64, /* a wgmma without wgmma.fence */
    SW_OF_BLOCK = 128 /* an atomic whose scope is the block */
};

/* One memory or collective instruction, as the device needs to know it. */
/* What an instruction is to the counters and checks. */
enum sw_role {
    SW_R_OTHER, /* of those with counters of their own: an asynchronous copy */
    SW_R_STORE,
    SW_R_ATOMIC,
    SW_R_MMA,
    SW_R_WGMMA,
    SW_R_WAIT, /* for asynchronous copies or an mbarrier */
    SW_R_BITS = 7,
    SW_R_PROXY = 8 /* concerns the asynchronous proxy */
};

struct sw_site {
    u8 space, esize, vec, flags;
    u8 role;          /* enum sw_role */
    s32 line;         /* in the PTX text */
    s32 loc;          /* index into sw_kernel.locs, or -1 */
    s64 off;          /* added to the address */
    u32 kind;         /* atom: operation and type; others: their own modifiers */
    u32 addr;         /* where the lanes of its address are in the frame */
    u32 regs;         /* its registers: index into sw_kernel.regs */
    s64 stride, wrap; /* lda, sta: from lane to lane; of lanes behind a wrap */
    const char *op;
    u32 begin, end;    /* shared memory: of the array its address is in; end 0: any place */
    const char *array; /* its name */
};

/* Where an instruction may go without asking the device: an address in [lo, lo + room) has all
 * of its lanes inside one buffer. room is 0 until the device has seen it go there, and stays 0
 * while every access is to be checked. hits and more are what it did alone: calls, and lanes
 * (one place for all) or rows that do not begin at a sector. */
struct sw_fast {
    u64 lo, room, hits, more;
};

/* No register: a result that is not wanted. */
#define SW_NONE 0xffffffffu

struct sw_loc {
    s32 file, line, inlined_at;
};

struct sw_warp;
struct sw_block {
    u32 ctaid[3], nctaid[3], ntid[3], clusterid[3];
    const u8 *params;
    u8 *smem;
    u32 smem_bytes, dyn_bytes, nthreads, nwarps;
    u32 cl_rank, cl_size, cl_ctaid[3], cl_dim[3], is_cluster;
    u64 grid_space; /* of a cooperative launch; or 0 */
};

struct sw_warp {
    u32 tid[3][32];
    u32 lane[32];
    u32 live;          /* lanes that have not left */
    u32 id;            /* in its block */
    u32 tx0, ty0, tz0; /* thread of lane 0 */
    s32 fuel;          /* loop turns until the device wants to look */
    const struct sw_block *b;
    u8 *fr;               /* lanes of the kernel's registers; offsets count from here */
    u64 *counts;          /* per basic block: runs, lanes */
    struct sw_fast *fast; /* per site */
    u8 *local;            /* local memory of lane 0 */
    u64 local_bytes;      /* per lane */
    u64 *log, *log_end;   /* loads of shared memory without a call: site << 32 | where; or NULL */
} __attribute__((aligned(64)));

/* The operands of a bulk copy, 32 lanes each; NULL where the form has none. */
struct sw_bulk {
    const u64 *dst, *src, *mbar, *map;
    const u32 *size, *mask, *coord[5], *offset[3];
};

/* The operands of a tcgen05, 32 lanes each as 64 bits: address, descriptors and others; the
 * registers of a load or store; the lanes whose predicate is set. */
struct sw_tc {
    const u64 *x[6];
    void *const *regs;
    u32 count, pred, masked; /* masked: some lanes of D are not to be written */
};

/* What the device does for a kernel. m: active lanes. */
struct sw_ops {
    void (*ld)(struct sw_warp *, u32 m, u32 site);
    void (*st)(struct sw_warp *, u32 m, u32 site);
    /* n loads alike but for their offsets, which are in [lo, hi) with their widths */
    void (*lds)(struct sw_warp *, u32 m, u32 site, u32 n, s64 lo, s64 hi);
    void (*sts)(struct sw_warp *, u32 m, u32 site, u32 n, s64 lo, s64 hi); /* stores likewise */
    /* May each chunk of kind >> 8 lanes be read side by side (kind 2) or at one place (1)?
     * 0: it is done, for all of them. */
    u32 (*strip)(struct sw_warp *, u32 m, u32 site, u32 n, s64 lo, s64 hi, u32 kind);
    /* Lane l is at base + stride * l, and by `wrap` off where its bit in w is set. */
    void (*lda)(struct sw_warp *, u32 m, u64 base, u32 w, u32 site);
    void (*sta)(struct sw_warp *, u32 m, u64 base, u32 w, u32 site);
    /* Where all 32 lanes have 16 bytes each, side by side, and may touch them; NULL: use ld or
     * st. */
    u8 *(*quads)(struct sw_warp *, u32 m, u32 site, u32 write);
    u64 (*ldu)(struct sw_warp *, u32 m, u64 addr, u32 site); /* one place for all lanes */
    void (*ldun)(struct sw_warp *, u32 m, u64 addr, u32 site, u64 *out);
    void (*atom)(struct sw_warp *, u32 m, const void *addr, u32 site, void *dst, const void *b,
                 const void *c);
    u32 (*shfl)(struct sw_warp *, u32 m, u32 mode, void *dst, const void *src, const u32 *b,
                const u32 *c, u32 members, u32 site);
    u32 (*shflu)(struct sw_warp *, u32 m, u32 mode, void *dst, const void *src, u32 b, u32 c,
                 u32 members, u32 site); /* b and c alike for all lanes */
    void (*match)(struct sw_warp *, u32 m, u32 kind, u32 *dst, u32 *pred, const void *src,
                  u32 members);
    u32 (*redux)(struct sw_warp *, u32 m, u32 kind, const u32 *src, u32 members);
    void (*sync)(struct sw_warp *, u32 m, u32 members, u32 site);
    u32 (*bar)(struct sw_warp *, u32 m, u32 kind, u32 id, u32 threads, u32 pred, u32 site);
    void (*fence)(struct sw_warp *, u32 site);
    void (*grid)(struct sw_warp *, u32 wait); /* griddepcontrol; 0: launch_dependents */
    void (*cp_async)(struct sw_warp *, u32 m, const void *dst, const u64 *src, const u32 *bytes,
                     u32 site);
    void (*cp_commit)(struct sw_warp *);
    void (*cp_wait)(struct sw_warp *, u32 left, u32 site);
    void (*cp_mbar)(struct sw_warp *, u32 m, const void *addr, u32 site);
    void (*ldmatrix)(struct sw_warp *, u32 m, u32 site);
    void (*stmatrix)(struct sw_warp *, u32 m, u32 site);
    void (*movmatrix)(struct sw_warp *, u32 *dst, const u32 *src);
    void (*mma)(struct sw_warp *, u32 site); /* registers: d, a, b, c */
    void (*wmma)(struct sw_warp *, u32 m, u64 addr, u32 stride, u32 site);
    u32 (*mbar)(struct sw_warp *, u32 m, const u64 *addr, u32 site, u64 *state, const u32 *count);
    void (*trap)(struct sw_warp *, u32 m, u32 asserted, u32 site);
    void (*print)(struct sw_warp *, u32 m, const u64 *format, const u64 *args);
    s32 (*tick)(struct sw_warp *, u32 waiting, u32 site); /* 1: let other lanes go first */
    void (*cvta_check)(struct sw_warp *, u32 m, const u64 *addr, u32 site);
    u64 (*clock)(struct sw_warp *);
    u32 (*isspace)(struct sw_warp *, u32 space, u64 addr);
    /* scalar arithmetic with a rounding mode: 0 rn, 1 rz, 2 rm, 3 rp */
    float (*f32_op)(u32 op, u32 mode, float, float, float);
    double (*f64_op)(u32 op, u32 mode, double, double, double);
    u64 (*cvt)(u32 how, u64 bits);
    float (*math)(u32 fn, float);
    /* sm_90: other blocks of the cluster, bulk copies, wgmma */
    void (*cl_ld)(struct sw_warp *, u32 m, const u64 *addr, u32 site, void *const *dst);
    void (*cl_st)(struct sw_warp *, u32 m, const u64 *addr, u32 site, void *const *src);
    void (*cl_atom)(struct sw_warp *, u32 m, const u64 *addr, u32 site, void *dst, const void *b,
                    const void *c);
    void (*cl_bar)(struct sw_warp *, u32 m, u32 kind, u32 site);
    u64 (*mapa)(struct sw_warp *, u64 addr, u32 rank, u32 kind);
    void (*st_async)(struct sw_warp *, u32 m, const u64 *addr, u32 site, void *const *src,
                     const u64 *mbar);
    void (*bulk)(struct sw_warp *, u32 m, u32 site, const struct sw_bulk *);
    void (*bulk_group)(struct sw_warp *, u32 m, u32 kind, u32 left, u32 site);
    void (*wgmma)(struct sw_warp *, u32 m, u32 site, void *const *d, const void *const *a,
                  u64 adesc, u64 bdesc, u32 scale_d);
    void (*wg_sync)(struct sw_warp *, u32 kind, u32 left, u32 site);
    void (*wg_touch)(struct sw_warp *, u32 m, const void *reg, u32 site);
    void (*proxy)(struct sw_warp *, u32 kind, u32 site);
    void (*tc)(struct sw_warp *, u32 m, u32 site, const struct sw_tc *); /* sm_100: tcgen05 */
};

enum sw_arith { SW_ADD, SW_SUB, SW_MUL, SW_DIV, SW_FMA, SW_SQRT };
enum sw_math { SW_LG2, SW_SIN, SW_COS, SW_TANH, SW_EX2, SW_RSQRT, SW_RCP64, SW_RSQRT64 };

struct sw_param {
    u32 offset, bytes, align;
};

struct sw_var {
    const char *name;
    void *data;
    u64 bytes;
    u32 readonly;
};

/* What a basic block holds of one place of the source. */
struct sw_line {
    u32 block;
    s32 loc;
    u16 cls, count;
};

/* One translation of a kernel, with what its basic blocks hold. */
struct sw_form {
    void (*fn)(struct sw_warp *);
    u32 block_count;
    const u16 (*classes)[SW_C_COUNT]; /* per basic block */
    const u32 *tensor_flops;          /* per basic block, of one warp */
    const struct sw_line *lines;
    u32 line_count;
};

/* What a kernel does on purpose in global memory. */
enum sw_kernel_flag {
    SW_K_SPINS = 1, /* atomics or volatile accesses: it may wait for other blocks */
    SW_K_ORDERS = 2 /* fences, locks, volatile accesses: blocks may be ordered by them */
};

/* The translations of a kernel: whole warps lie along x or the block is one row; any shape. */
enum sw_forms { SW_ROWS = 1, SW_GENERAL = 2 };

static inline u32 sw_form_for(const u32 *block)
{
    return block[0] % 32 == 0 || block[1] * block[2] == 1 ? SW_ROWS : SW_GENERAL;
}

struct sw_kernel {
    const char *name;
    struct sw_form rows, general; /* one of them may be missing: fn is NULL */
    const struct sw_param *params;
    u32 param_count, param_bytes;
    u32 static_smem, smem_align, uses_dynamic, local_bytes;
    u32 max_threads, req[3];
    u32 insn_count, frame_bytes, strong;
    const struct sw_site *sites;
    u32 site_count;
    const u32 *regs; /* frame offsets, or SW_NONE */
    const struct sw_loc *locs;
    u32 loc_count;
};

/* In front of stack_bytes, so that the translator finds it in the file that the compiler wrote. */
#define SW_STACK_MARK 0x9d1f4e63b7a2c805ull

struct sw_module {
    u64 stack_mark, stack_bytes; /* largest frame of a function, from the compiler; 0: unknown */
    u32 abi, kernel_count, file_count, var_count;
    const struct sw_kernel *kernels;
    const char *const *files;
    struct sw_var *vars;
    const struct sw_ops **ops; /* the device stores its table here */
};

#endif
