/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel.h - the kernel ABI: what a candidate file may use.
 *
 * A candidate is one .cu file with two halves. The same text goes through
 * NVRTC twice and, on export, through nvcc:
 *
 *     CUTEGEN_DEVICE   NVRTC          kernels only; CuTe comes in here
 *     CUTEGEN_HOST     NVRTC          the plan: tensors in, launch list out
 *     CUTEGEN_EXPORT   nvcc, C++17    both; the plan then really launches
 *
 * With none of them defined, nvcc means export and a plain C compiler gets the
 * types alone (this is how the planner and C callers include it).
 *
 * Invariants
 * 1. struct cutegen_tensor is laid out as DLPack's DLTensor, byte for byte.
 * 2. A plan calls nothing outside this header: the five functions of plan.h
 *    that have no body are the planner's, everything else is in the file.
 * 3. Structs here only grow at their end, and CUTEGEN_ABI_VERSION tells when.
 */
#ifndef CUTEGEN_KERNEL_H
#define CUTEGEN_KERNEL_H

#define CUTEGEN_ABI_VERSION 2

/*
 * A parameter for the machine to search (docs/kernel-abi.md, Tunables), at file scope and outside
 * of both halves: the first value is in force, `cutegen tune` and `cutegen run` try the others.
 * CUTEGEN_TUNE_IF says which combinations are possible.
 */
#ifdef __cplusplus
#define CUTEGEN_TUNE_FIRST(first, ...) (first)
#define CUTEGEN_TUNE(name, ...)        constexpr int name = CUTEGEN_TUNE_FIRST(__VA_ARGS__, 0)
#define CUTEGEN_TUNE_IF(...)           static_assert(__VA_ARGS__, "CUTEGEN_TUNE_IF")
/*
 * The plan is meant for every value from `least` to `most` of a constant of the task: `cutegen
 * eval` judges the edges and some values between. At file scope, outside of both halves, once per
 * constant.
 */
#define CUTEGEN_SHAPES(name, least, most)                                                          \
    static_assert((least) >= 1 && (least) <= (most), "CUTEGEN_SHAPES: least, then most")
#endif

#if defined(CUTEGEN_EXPORT) || (defined(__CUDACC__) && !defined(__CUDACC_RTC__) &&                 \
                                !defined(CUTEGEN_HOST) && !defined(CUTEGEN_DEVICE))
#undef CUTEGEN_EXPORT
#undef CUTEGEN_HOST
#undef CUTEGEN_DEVICE
#define CUTEGEN_EXPORT 1
#define CUTEGEN_HOST   1
#define CUTEGEN_DEVICE 1
#elif defined(__CUDACC_RTC__) && !defined(CUTEGEN_HOST) && !defined(CUTEGEN_DEVICE)
#define CUTEGEN_DEVICE 1
#elif defined(CUTEGEN_HOST) && !defined(__CUDACC_RTC__)
#error "since version 2 of the kernel ABI a plan is compiled by NVRTC or, exported, by nvcc"
#endif

#if defined(__CUDACC_RTC__) &&                                                                     \
    defined(CUTEGEN_DEVICE) /* ---- kernels: as little as possible ---- */

#include <cuda/std/cstdint>
/* As in cuda.h, which NVRTC cannot read. */
typedef struct CUtensorMap_st {
    alignas(64) unsigned long long opaque[16];
} CUtensorMap;

#else

#if defined(__CUDACC_RTC__)
/* A plan sees no system header at all. Every machine we run on is LP64. */
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;
typedef long intptr_t;
typedef unsigned long uintptr_t;
typedef unsigned long size_t;
typedef long ptrdiff_t;
#undef NULL
#define NULL      nullptr
#define INT32_MAX 0x7fffffff
#define INT64_MAX 0x7fffffffffffffffL
#else
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#endif

/* ---- tensors ------------------------------------------------------------ */

struct cutegen_dtype {
    uint8_t code; /* DLPack: 0 int, 1 uint, 2 float, 4 bfloat, 6 bool */
    uint8_t bits;
    uint16_t lanes; /* 1 */
};

struct cutegen_place {
    int32_t type; /* DLPack: 2 CUDA */
    int32_t id;
};

struct cutegen_tensor {
    void *data; /* use CUTEGEN_DATA: it adds byte_offset */
    struct cutegen_place device;
    int32_t ndim;
    struct cutegen_dtype dtype;
    int64_t *shape;
    int64_t *strides; /* in elements; never NULL inside a plan */
    uint64_t byte_offset;
};

/* cutegen_dtype(t) gives one of these. */
enum cutegen_dtype_code {
    CUTEGEN_I8 = 0x008,
    CUTEGEN_I16 = 0x010,
    CUTEGEN_I32 = 0x020,
    CUTEGEN_I64 = 0x040,
    CUTEGEN_U8 = 0x108,
    CUTEGEN_F16 = 0x210,
    CUTEGEN_F32 = 0x220,
    CUTEGEN_F64 = 0x240,
    CUTEGEN_BF16 = 0x410,
    CUTEGEN_BOOL = 0x608
};

enum cutegen_scalar_type { CUTEGEN_SCALAR_INT, CUTEGEN_SCALAR_FLOAT, CUTEGEN_SCALAR_BOOL };

struct cutegen_scalar {
    int32_t type; /* enum cutegen_scalar_type */
    int32_t reserved;
    int64_t i; /* both are filled, whatever the type */
    double f;
};

struct cutegen_device {
    int32_t arch; /* 90: sm_90 */
    int32_t sm_count;
    int64_t smem_block_bytes; /* the most one block may ask for */
    int64_t l2_bytes;
};

/* ---- what a plan asks for ----------------------------------------------- */

struct cutegen_dim {
    int64_t x, y, z;
};

enum { CUTEGEN_MAX_ARGS = 32, CUTEGEN_MAP_RANK = 5 };

enum cutegen_swizzle {
    CUTEGEN_SWIZZLE_NONE,
    CUTEGEN_SWIZZLE_32,
    CUTEGEN_SWIZZLE_64,
    CUTEGEN_SWIZZLE_128
};
enum cutegen_fill { CUTEGEN_FILL_ZERO, CUTEGEN_FILL_NAN };
enum cutegen_l2 { CUTEGEN_L2_NONE, CUTEGEN_L2_64, CUTEGEN_L2_128, CUTEGEN_L2_256 };

/* A tiled tensor map, with the meaning of cuTensorMapEncodeTiled. */
struct cutegen_map_spec {
    void *data;    /* 16-byte aligned */
    int32_t dtype; /* enum cutegen_dtype_code */
    int32_t rank;
    int64_t dims[CUTEGEN_MAP_RANK];          /* fastest first */
    int64_t strides_bytes[CUTEGEN_MAP_RANK]; /* rank - 1 of them: of dimension 1, 2, ... */
    int32_t box[CUTEGEN_MAP_RANK];
    int32_t element_strides[CUTEGEN_MAP_RANK]; /* 0 means 1 */
    int32_t swizzle, fill, l2;
};

/* Pass it by value; the kernel takes `const __grid_constant__ CUtensorMap`. */
struct cutegen_map {
#ifdef CUTEGEN_EXPORT
    alignas(64)
#endif
        uint64_t opaque[16];
};

enum cutegen_launch_flag {
    /* Programmatic dependent launch on the launch before: it may begin before that one has ended.
     * Nothing happens at the first launch of a plan, and right after a memset. */
    CUTEGEN_OVERLAP = 1
};

/* The flags above this bit are the number of the part that a launch belongs to; 0: none. */
enum { CUTEGEN_PART_SHIFT = 16 };

enum cutegen_arg_kind {
    CUTEGEN_ARG_END,
    CUTEGEN_ARG_INT,
    CUTEGEN_ARG_FLOAT,
    CUTEGEN_ARG_MAP,
    CUTEGEN_ARG_OTHER /* pointers and structs */
};

struct cutegen_arg {
    const void *value;
    uint32_t bytes;
    int32_t kind; /* enum cutegen_arg_kind; CUTEGEN_ARG_END closes the list */
};

struct cutegen_launch {
    const char *kernel; /* as written, maybe in parentheses */
    int32_t line;
    uint32_t flags;
    struct cutegen_dim grid, block, cluster;
    int64_t smem;
    const struct cutegen_arg *args;
};

struct cutegen_call {
    uint32_t abi_version;
    int32_t in_count, out_count, scalar_count;
    const struct cutegen_tensor *in; /* arguments in order, then parameters and buffers */
    struct cutegen_tensor *out;
    const struct cutegen_scalar *scalar;
    struct cutegen_device device;
    void *state;           /* of the exported entry */
    uint32_t launch_flags; /* every launch has these, too */
};

/* The launches that follow belong to part `number` of the plan, from 1: time is shown by part. */
#define cutegen_part(call, number)                                                                 \
    ((void)((call)->launch_flags = ((call)->launch_flags & ((1u << CUTEGEN_PART_SHIFT) - 1)) |     \
                                   (uint32_t)(number) << CUTEGEN_PART_SHIFT))

#if defined(CUTEGEN_HOST)
#include <cutegen/arith.h>
#if defined(CUTEGEN_EXPORT)
#include <cutegen/export.h>
#else
#include <cutegen/plan.h>
#endif
#endif

#endif /* not kernels under NVRTC */

/* ---- kernels that may begin before the launch before them has ended ------- */

#if defined(__CUDACC__) && defined(CUTEGEN_DEVICE)
/* Every launch before this one has ended, if each of those kernels called this, too: it comes
 * before a kernel touches memory that they use. Nothing to wait for: it returns at once. */
static __device__ __forceinline__ void cutegen_wait_for_earlier()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* The next launch may begin as soon as every block here has called this, or has ended. */
static __device__ __forceinline__ void cutegen_let_next_begin()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
#endif

#endif
