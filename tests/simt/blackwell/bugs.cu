// Kernels with tcgen05 with one mistake each (OK false) and their correct twins. A finding must name the line that ends in
// "BUG:name kind".
#include "common.h"

#define PARAMS const uint8_t *a, const uint8_t *b, const uint8_t *scales, uint32_t *out
#define BUG(name)                                                                                                           \
    template <bool OK> DI void name(PARAMS);                                                                                \
    KERNEL name##_bug(PARAMS) { name<false>(a, b, scales, out); }                                                           \
    KERNEL name##_ok(PARAMS) { name<true>(a, b, scales, out); }                                                             \
    template <bool OK> DI void name(PARAMS)
// ---- waits ----
BUG(not_waited)
{
    Begun x = start(a, b);
    uint32_t r[8];
    THREAD0 { one(x.t, 0); tc_commit(x.bar); }
    if (OK) mb_wait(x.bar, 0);
    ld8(x.row, r); // BUG:not_waited async_not_waited
    tc_wait_ld();
    out[threadIdx.x] = r[0];
    mb_wait(x.bar, 0);
    __syncthreads();
    WARP0 tc_dealloc(x.t, COLUMNS);
}
BUG(not_committed)
{
    Begun x = start(a, b);
    THREAD0 {
        one(x.t, 0);
        if (OK) tc_commit(x.bar);
        else asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(x.bar) : "memory");
    }
    mb_wait(x.bar, 0);
    uint32_t r[8];
    ld8(x.row, r); // BUG:not_committed async_not_waited
    tc_wait_ld();
    out[threadIdx.x] = r[0];
    __syncthreads();
    THREAD0 if (!OK) tc_commit(x.bar);
    if (!OK) mb_wait(x.bar, 1);
    __syncthreads();
    WARP0 tc_dealloc(x.t, COLUMNS);
}
BUG(load_not_waited)
{
    Begun x = start(a, b);
    uint32_t r[8];
    THREAD0 { one(x.t, 0); tc_commit(x.bar); }
    mb_wait(x.bar, 0);
    ld8(x.row, r);
    if (OK) tc_wait_ld();
    out[threadIdx.x] = r[0] + r[7]; // BUG:load_not_waited wgmma_not_waited
    tc_wait_ld();
    __syncthreads();
    WARP0 tc_dealloc(x.t, COLUMNS);
}
BUG(store_not_waited)
{
    Begun x = start(a, b);
    uint32_t r[8] = {0};
    for (int c = 0; c < N; c += 8) st8(x.row + c, r);
    if (OK) tc_wait_st();
    tc_before();
    __syncthreads();
    tc_after();
    THREAD0 {
        one(x.t, 1); // BUG:store_not_waited async_not_waited
        tc_commit(x.bar);
    }
    mb_wait(x.bar, 0);
    tc_wait_st();
    finish(x, out);
}
BUG(store_no_barrier)
{
    Begun x = start(a, b);
    uint32_t r[8] = {0};
    for (int c = 0; c < N; c += 8) st8(x.row + c, r);
    tc_wait_st();
    tc_before();
    if (OK) __syncthreads();
    else __nanosleep(1000);
    tc_after();
    THREAD0 {
        one(x.t, 1); // BUG:store_no_barrier async_not_waited|uninitialised
        tc_commit(x.bar);
    }
    mb_wait(x.bar, 0);
    __syncthreads();
    finish(x, out);
}
BUG(copy_not_waited)
{
    Begun x = start(a, b);
    uint32_t r[8];
    bring(AT_SA, scales, 512);
    fence_async();
    __syncthreads();
    THREAD0 { tc_cp_scales(x.t, rows_desc(su(sm) + AT_SA)); tc_cp_scales(x.t + 4, rows_desc(su(sm) + AT_SA)); tc_commit(x.bar); }
    if (OK) mb_wait(x.bar, 0);
    ld8(x.row, r); // BUG:copy_not_waited async_not_waited
    tc_wait_ld();
    out[threadIdx.x] = r[0];
    mb_wait(x.bar, 0);
    __syncthreads();
    WARP0 tc_dealloc(x.t, COLUMNS);
}

// ---- what is not there ----
BUG(first_accumulates)
{
    Begun x = start(a, b);
    THREAD0 {
        one(x.t, OK ? 0 : 1); // BUG:first_accumulates uninitialised
        tc_commit(x.bar);
    }
    mb_wait(x.bar, 0);
    finish(x, out);
}
BUG(load_unwritten)
{
    Begun x = start(a, b);
    uint32_t r[8];
    THREAD0 { one(x.t, 0); tc_commit(x.bar); }
    mb_wait(x.bar, 0);
    ld8(x.row + (OK ? N - 8 : N), r); // BUG:load_unwritten uninitialised
    tc_wait_ld();
    out[threadIdx.x] = r[0];
    __syncthreads();
    WARP0 tc_dealloc(x.t, COLUMNS);
}
BUG(no_scales)
{
    Begun x = start(a, b);
    bring(AT_SA, scales, 512);
    fence_async();
    __syncthreads();
    THREAD0 {
        uint32_t d = x.t, sa = x.t + 96, sb = x.t + 100, i = (N / 8) << 17 | 1u << 23 | 8u << 24;
        int accumulate = 0;
        uint64_t a = plain_desc(su(sm)), b = plain_desc(su(sm) + AT_B);
        tc_cp_scales(sa, rows_desc(su(sm) + AT_SA));
        if (OK) tc_cp_scales(sb, rows_desc(su(sm) + AT_SA));
        MMA_SCALED("mxf8f6f4.block_scale"); // BUG:no_scales uninitialised
        tc_commit(x.bar);
    }
    mb_wait(x.bar, 0);
    finish(x, out);
}
BUG(shared_unwritten)
{
    Begun x = start(a, b);
    THREAD0 {
        one(x.t, 0, IDESC, OK ? 0 : AT_B + N * 32 - 256); // BUG:shared_unwritten uninitialised
        tc_commit(x.bar);
    }
    mb_wait(x.bar, 0);
    finish(x, out);
}

// ---- where ----
BUG(past_columns)
{
    Begun x = start(a, b);
    uint32_t r[8] = {0};
    st8(x.row + (OK ? COLUMNS - 8 : COLUMNS - 4), r); // BUG:past_columns out_of_bounds
    tc_wait_st();
    out[threadIdx.x] = 1;
    __syncthreads();
    WARP0 tc_dealloc(x.t, COLUMNS);
}
BUG(product_past_columns)
{
    Begun x = start(a, b, true, 32);
    THREAD0 {
        one(OK ? x.t : x.t + 8, 0); // BUG:product_past_columns out_of_bounds
        tc_commit(x.bar);
    }
    mb_wait(x.bar, 0);
    out[threadIdx.x] = 1;
    __syncthreads();
    WARP0 tc_dealloc(x.t, 32);
}
BUG(other_lanes)
{
    Begun x = start(a, b);
    uint32_t r[8] = {0};
    st8(OK ? x.row : x.t, r); // BUG:other_lanes tensor_memory
    tc_wait_st();
    out[threadIdx.x] = 1;
    __syncthreads();
    WARP0 tc_dealloc(x.t, COLUMNS);
}
BUG(after_dealloc)
{
    Begun x = start(a, b);
    uint32_t r[8] = {0};
    st8(x.row, r);
    tc_wait_st();
    __syncthreads();
    if (!OK) {
        WARP0 tc_dealloc(x.t, COLUMNS);
        __syncthreads();
    }
    ld8(x.row, r); // BUG:after_dealloc out_of_bounds
    tc_wait_ld();
    out[threadIdx.x] = r[0];
    __syncthreads();
    if (OK) WARP0 tc_dealloc(x.t, COLUMNS);
}
BUG(shared_past_end)
{
    Begun x = start(a, b);
    THREAD0 {
        one(x.t, 0, IDESC, OK ? 0 : 16384); // BUG:shared_past_end out_of_bounds
        tc_commit(x.bar);
    }
    mb_wait(x.bar, 0);
    out[threadIdx.x] = 1;
    __syncthreads();
    WARP0 tc_dealloc(x.t, COLUMNS);
}

// ---- life ----
BUG(never_freed)
{
    if (threadIdx.x < 32) tc_alloc(su(sm) + AT_TM, 32); // BUG:never_freed tensor_memory
    __syncthreads();
    uint32_t t = *(volatile uint32_t *)(sm + AT_TM);
    out[threadIdx.x] = t;
    __syncthreads();
    if (OK) WARP0 tc_dealloc(t, 32);
}
BUG(freed_twice)
{
    Begun x = start(a, b);
    out[threadIdx.x] = 1;
    __syncthreads();
    WARP0 tc_dealloc(x.t, COLUMNS);
    if (!OK) WARP0 tc_dealloc(x.t, COLUMNS); // BUG:freed_twice tensor_memory
}
BUG(freed_in_part)
{
    Begun x = start(a, b);
    out[threadIdx.x] = 1;
    __syncthreads();
    WARP0 tc_dealloc(x.t, OK ? COLUMNS : COLUMNS / 2); // BUG:freed_in_part tensor_memory
    if (!OK) WARP0 tc_dealloc(x.t, COLUMNS);
}
BUG(odd_columns)
{
    WARP0 tc_alloc(su(sm) + AT_TM, OK ? 64 : 48); // BUG:odd_columns tensor_memory
    __syncthreads();
    out[threadIdx.x] = 1;
    if (OK) WARP0 tc_dealloc(*(volatile uint32_t *)(sm + AT_TM), 64);
}
BUG(too_many_columns)
{
    Begun x = start(a, b, true, 512);
    if (!OK) WARP0 tc_alloc(su(sm) + AT_TM2, 32); // BUG:too_many_columns tensor_memory
    out[threadIdx.x] = 1;
    __syncthreads();
    WARP0 tc_dealloc(x.t, OK ? 512 : 32);
    if (!OK) WARP0 tc_dealloc(x.t + 32, 512);
}
BUG(after_permit)
{
    Begun x = start(a, b);
    WARP0 if (!OK) tc_relinquish();
    WARP0 tc_alloc(su(sm) + AT_TM2, 32); // BUG:after_permit tensor_memory
    out[threadIdx.x] = 1;
    __syncthreads();
    WARP0 { tc_dealloc(*(volatile uint32_t *)(sm + AT_TM2), 32); tc_dealloc(x.t, COLUMNS); }
}
BUG(freed_early)
{
    Begun x = start(a, b);
    THREAD0 { one(x.t, 0); tc_commit(x.bar); }
    if (OK) mb_wait(x.bar, 0);
    out[threadIdx.x] = 1;
    __syncthreads();
    WARP0 tc_dealloc(x.t, COLUMNS); // BUG:freed_early tensor_memory
    mb_wait(x.bar, 0);
}

// ---- order ----
BUG(sums_overwritten)
{
    Begun x = start(a, b);
    uint32_t r[8];
    THREAD0 { one(x.t, 0); tc_commit(x.bar); }
    mb_wait(x.bar, 0);
    ld8(x.row, r);
    tc_wait_ld();
    out[threadIdx.x] = r[0];
    tc_before();
    if (OK) __syncthreads();
    else if (threadIdx.x == 0) __nanosleep(1000);
    tc_after();
    THREAD0 {
        one(x.t, 0); // BUG:sums_overwritten async_overwrite
        tc_commit(x.bar);
    }
    mb_wait(x.bar, 1);
    __syncthreads();
    WARP0 tc_dealloc(x.t, COLUMNS);
}
BUG(no_fence_before)
{
    Begun x = start(a, b);
    uint32_t r[8] = {0};
    for (int c = 0; c < N; c += 8) st8(x.row + c, r);
    tc_wait_st();
    if (OK) tc_before();
    __syncthreads();
    tc_after();
    THREAD0 {
        one(x.t, 1); // BUG:no_fence_before missing_tcgen05_fence
        tc_commit(x.bar);
    }
    mb_wait(x.bar, 0);
    finish(x, out);
}
BUG(no_fence_after)
{
    Begun x = start(a, b);
    uint32_t r[8];
    THREAD0 { one(x.t, 0); tc_commit(x.bar); }
    mb_wait(x.bar, 0);
    ld8(x.row, r);
    tc_wait_ld();
    out[threadIdx.x] = r[0];
    tc_before();
    __syncthreads();
    if (OK) tc_after();
    THREAD0 {
        one(x.t, 0); // BUG:no_fence_after missing_tcgen05_fence
        tc_commit(x.bar);
    }
    mb_wait(x.bar, 1);
    __syncthreads();
    WARP0 tc_dealloc(x.t, COLUMNS);
}
BUG(no_proxy_fence)
{
    Begun x = start(a, b, OK);
    THREAD0 {
        one(x.t, 0); // BUG:no_proxy_fence missing_proxy_fence
        tc_commit(x.bar);
    }
    mb_wait(x.bar, 0);
    finish(x, out);
}
BUG(factors_overwritten)
{
    Begun x = start(a, b);
    THREAD0 { one(x.t, 0); tc_commit(x.bar); }
    if (OK) mb_wait(x.bar, 0);
    *(volatile uint32_t *)(sm + threadIdx.x * 4) = 0; // BUG:factors_overwritten race_shared|async_overwrite
    mb_wait(x.bar, 0);
    finish(x, out);
}

// ---- pairs of blocks ----
BUG(pair_release)
{
    Begun x = start_pair(a, b, 256);
    uint32_t r[8];
    EVEN THREAD0 { one_pair(x.t); tc_commit_both(x.bar); }
    mb_wait(x.bar, 0);
    ld8(x.row, r);
    tc_wait_ld();
    mb_arrive(OK ? in_even(x.bar + 8) : x.bar + 8);
    EVEN THREAD0 {
        mb_wait(x.bar + 8, 0); // BUG:pair_release mbarrier
        one_pair(x.t);
        tc_commit_both(x.bar);
    }
    mb_wait(x.bar, 1);
    ld8(x.row, r);
    tc_wait_ld();
    out[rank() * 128 + threadIdx.x] = r[0];
    finish_pair(x);
}
BUG(pair_overwritten)
{
    Begun x = start_pair(a, b, OK ? 256 : 128);
    uint32_t r[8];
    EVEN THREAD0 { one_pair(x.t); tc_commit_both(x.bar); }
    mb_wait(x.bar, 0);
    ld8(x.row, r);
    tc_wait_ld();
    if (OK) mb_arrive(in_even(x.bar + 8));
    else EVEN mb_arrive(x.bar + 8);
    EVEN THREAD0 {
        mb_wait(x.bar + 8, 0);
        for (int i = 0; i < 100; i++) __nanosleep(1); // others first
        one_pair(x.t); // BUG:pair_overwritten async_overwrite
        tc_commit_both(x.bar);
    }
    mb_wait(x.bar, 1);
    ld8(x.row, r);
    tc_wait_ld();
    out[rank() * 128 + threadIdx.x] = r[0];
    finish_pair(x);
}

// ---- descriptors ----
BUG(odd_n)
{
    Begun x = start(a, b);
    THREAD0 {
        one(x.t, 0, OK ? IDESC : (1u << 4 | 3u << 17 | 8u << 24)); // BUG:odd_n tensor_memory
        tc_commit(x.bar);
    }
    mb_wait(x.bar, 0);
    out[threadIdx.x] = 1;
    __syncthreads();
    WARP0 tc_dealloc(x.t, COLUMNS);
}
BUG(odd_type)
{
    Begun x = start(a, b);
    THREAD0 {
        one(x.t, 0, OK ? IDESC : IDESC | 2u << 7); // BUG:odd_type tensor_memory
        tc_commit(x.bar);
    }
    mb_wait(x.bar, 0);
    out[threadIdx.x] = 1;
    __syncthreads();
    WARP0 tc_dealloc(x.t, COLUMNS);
}
