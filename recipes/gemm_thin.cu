// recipes/gemm_thin.cu - a product with few rows or few columns: its time is that of reading the large operand once.
//
// Lines that begin with //! direct the composer (docs/recipes.md); all else is the kernel's text.
// The large operand, S, has a row r for each of the R long rows of the result; the small one, H, has rows h.
// Warps take 32 rows of S straight from memory to the tensor cores' fragments; the order of k within a chunk is
// that in which the lanes have read, and H is put into the same order beforehand.
//
//! recipe gemm_thin: C(m,n) = sum over k of A(m,k) * B(n,k), where M or N is small, accumulated in fp32
//! fact epilogue: pointwise operators follow the product
//! fact half: elements have 16 bits
//! fact along_k: the large operand is contiguous along k
//! fact swapped: A is the large operand
//! fact long_k: K is long enough to divide
//! fact hopper: a kernel can begin while the one before it ends
//!
//! step ahead: fetch three chunks of k ahead
//!   why: More bytes are on their way to each processor, and none of the warps waits for memory alone.
//! step lines: fetch whole lines of 256 bytes into L2, and keep nothing in L1
//!   why: Neighbouring chunks of a row come from memory at once, and L1 is left to the other operand.
//! step split_k: divide K among blocks and add the parts afterwards
//!   why: There are too few rows to occupy every processor to the end.
//!   when: long_k
//! step overlap: launch each kernel while the one before ends
//!   why: The device has no gaps between the three kernels.
//!   when: hopper
//! text
// $kernel: $ops as C(m,n) = sum over k of A(m,k) * B(n,k), with few ${h}s.
#include <cutegen/kernel.h>

#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
//! if not half
#include <cuda_fp16.h>
//! end

using namespace cute;

constexpr int GROUPS = $groups; // of eight ${h}s, in the sums of a warp
//! if half
constexpr int CHUNK = 32; // terms of a sum that a warp takes at a time
//! else
constexpr int CHUNK = 16; // terms of a sum that a warp takes at a time
//! end
//! if ahead
constexpr int AHEAD = 3; // chunks on their way
//! else
constexpr int AHEAD = 1; // chunks on their way
//! end

//! include gemm_finish
//! if not half
// The power of two that brings the largest of some elements to 2^14, and back.
__device__ inline float scale_of(float largest, float &back)
{
    int const exponent = cute::min(cute::max(int(__float_as_uint(largest) >> 23) - 127, -112), 127);
    back = __uint_as_float(uint32_t(exponent - 14 + 127) << 23);
    return largest == 0.0f ? 1.0f : __uint_as_float(uint32_t(14 - exponent + 127) << 23);
}

// x + y = hi + lo in fp16, each pair in a word: 22 bits of both.
__device__ inline void split(float x, float y, uint32_t &hi, uint32_t &lo)
{
    half2 const h = __floats2half2_rn(x, y);
    half2 const l = __floats2half2_rn(x - __low2float(h), y - __high2float(h));
    hi = reinterpret_cast<uint32_t const &>(h);
    lo = reinterpret_cast<uint32_t const &>(l);
}

//! end
// Puts $h_tensor into the order in which the lanes take it.
__global__ void __launch_bounds__(256)
//! if half
    ${kernel}_pack(uint32_t *packed, int groups, int chunks, $params)
//! else
    ${kernel}_pack(uint32_t *packed, float *back, int groups, int chunks, $params)
//! end
{
    Tensor mH = make_tensor(make_gmem_ptr($h_tensor), make_shape($h_size, K), make_stride($h_row, $h_k)); // (H,K)
    Tensor mF = make_tensor(make_gmem_ptr(reinterpret_cast<uint4 *>(packed)), make_shape(_32{}, groups, chunks)); // (lane,group,chunk)
//! if not half
    Tensor mX = make_tensor(make_gmem_ptr(back), make_shape(groups * 8, chunks)); // (H,chunk)
//! end
    int const i = blockIdx.x * 256 + threadIdx.x, lane = i % 32, group = i / 32 % groups, chunk = i / 32 / groups;
//! if overlap
    cutegen_let_next_begin();
//! end
    if (chunk >= chunks)
        return;
    int const h = group * 8 + lane / 4, k0 = chunk * CHUNK, t = lane % 4;
//! if half
    union {
        $type part[8];
        uint4 all;
    } f;
    CUTE_UNROLL
    for (int j = 0; j < 8; ++j) {
//! if along_k
        int const k = k0 + t * 8 + j;
//! else
        int const k = k0 + j / 2 * 8 + t * 2 + j % 2;
//! end
        f.part[j] = h < $h_size && k < K ? mH(h, k) : $type(0.0f);
    }
    mF(lane, group, chunk) = f.all;
//! else
    float x[4], largest = 0.0f, factor;
    CUTE_UNROLL
    for (int j = 0; j < 4; ++j) {
//! if along_k
        int const k = k0 + t * 4 + j;
//! else
        int const k = k0 + j * 4 + t;
//! end
        x[j] = h < $h_size && k < K ? mH(h, k) : 0.0f;
        largest = fmaxf(largest, fabsf(x[j]));
    }
    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 1)); // of four lanes
    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 2));
    float const scale = scale_of(largest, factor);
    uint4 f;
    split(x[0] * scale, x[1] * scale, f.x, f.z);
    split(x[2] * scale, x[3] * scale, f.y, f.w);
    mF(lane, group, chunk) = f; // hi, hi, lo, lo
    if (t == 0)
        mX(h, chunk) = largest == 0.0f ? 1.0f : factor;
//! end
}

// One of four words, by a constant.
__device__ inline uint32_t word(uint4 const &x, int i)
{
    return i == 0 ? x.x : i == 1 ? x.y : i == 2 ? x.z : x.w;
}

//! if half and not along_k
// The elements of row j at an even k and at the odd one after it, from vectors of both.
__device__ inline uint32_t pair(uint4 const &x, int j)
{
    return __byte_perm(j < 2 ? x.x : x.y, j < 2 ? x.z : x.w, j % 2 ? 0x7632 : 0x5410);
}

//! end
//! if lines
// Elements that are read once, and not kept in L1; L2 fetches what is beside them, which is next.
//! if half and not along_k
__device__ inline uint2 take(uint2 const &from)
{
    uint2 x;
    asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v2.b32 {%0, %1}, [%2];" : "=r"(x.x), "=r"(x.y) : "l"(&from));
    return x;
}
//! else
__device__ inline uint4 take(uint4 const &from)
{
    uint4 x;
    asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                 : "l"(&from));
    return x;
}
//! end

//! end
// A warp sums 32 rows of ${s_tensor} times GROUPS * 8 of $h_tensor, over a part of K.
__global__ void __launch_bounds__(256, GROUPS <= 2 ? 2 : 1)
//! if half
    ${kernel}_kernel(float *partial, uint32_t const *packed, int groups, int chunks, int parts, $params)
//! else
    ${kernel}_kernel(float *partial, uint32_t const *packed, float const *back, int groups, int chunks, int parts, $params)
//! end
{
    Tensor mS = make_tensor(make_gmem_ptr($s_tensor), make_shape($s_size, K), make_stride($s_row, $s_k)); // (R,K)
//! if half and not along_k
    Tensor vS = recast<uint2 const>(mS); // (R/4,K)
//! elif along_k
    Tensor vS = recast<uint4 const>(mS); // (R,K/vector)
//! else
    Tensor vS = recast<uint4 const>(mS); // (R/4,K)
//! end
    Tensor mF = make_tensor(make_gmem_ptr(reinterpret_cast<uint4 const *>(packed)), make_shape(_32{}, groups, chunks)); // (lane,group,chunk)
//! if not half
    Tensor mX = make_tensor(make_gmem_ptr(reinterpret_cast<float2 const *>(back)), make_shape(groups * 4, chunks)); // (H/2,chunk)
//! end
    int const turns = groups / GROUPS, first_group = blockIdx.x % turns * GROUPS;
    int const lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    int const r0 = (blockIdx.x / turns * 8 + threadIdx.x / 32) * 32;
    int const share = ceil_div(chunks, parts), first = blockIdx.y * share, end = cute::min(first + share, chunks);

    auto const fetch = [&](int chunk, uint4 *x) {
        CUTE_UNROLL
        for (int q = 0; q < 4; ++q) {
            x[q] = make_uint4(0, 0, 0, 0);
//! if along_k
            int const r = r0 + g + q * 8, c = chunk * 4 + t;
            if (chunk < end && r < $s_size && c < K / $vector)
//! if lines
                x[q] = take(vS(r, c));
//! else
                x[q] = vS(r, c);
//! end
//! elif half
            int const r = r0 + g * 4, k = chunk * CHUNK + q * 8 + t * 2;
            if (chunk < end && r < $s_size && k < K) {
//! if lines
                uint2 const even = take(vS(r / 4, k));
//! else
                uint2 const even = vS(r / 4, k);
//! end
                uint2 odd = make_uint2(0, 0);
                if (k + 1 < K)
//! if lines
                    odd = take(vS(r / 4, k + 1));
//! else
                    odd = vS(r / 4, k + 1);
//! end
                x[q] = make_uint4(even.x, even.y, odd.x, odd.y);
            }
//! else
            int const r = r0 + g * 4, k = chunk * CHUNK + q * 4 + t;
            if (chunk < end && r < $s_size && k < K)
//! if lines
                x[q] = take(vS(r / 4, k));
//! else
                x[q] = vS(r / 4, k);
//! end
//! end
        }
    };
//! if half
    // Word e of the fragment of 16 rows (tile) and half a chunk (step).
    auto const fragment = [&](uint4 const *x, int tile, int step, int e) {
//! if along_k
        return word(x[tile * 2 + e % 2], step * 2 + e / 2);
//! else
        return pair(x[step * 2 + e / 2], tile * 2 + e % 2);
//! end
    };
//! else
    // Term j of those that this lane has of one of its rows.
    auto const element = [&](uint4 const *x, int row, int j) {
//! if along_k
        return word(x[row], j);
//! else
        return word(x[j], row);
//! end
    };
//! end

    Tensor sum = make_tensor<float>(Shape<_4, _2, Int<GROUPS>>{}); // (element,tile,group)
    clear(sum);
    auto const multiply = [&](uint4 const *x, int chunk) {
        uint4 next = mF(lane, first_group, chunk); // of the group after the one at hand
//! if not half
        float2 next_factor = mX(first_group * 4 + t, chunk);
//! end
//! if half
        uint32_t a[2][2][4];
        CUTE_UNROLL
        for (int i = 0; i < 16; ++i)
            a[i / 8][i / 4 % 2][i % 4] = fragment(x, i / 8, i / 4 % 2, i % 4);
        CUTE_UNROLL
        for (int group = 0; group < GROUPS; ++group) {
            uint4 const b = next;
            next = mF(lane, first_group + cute::min(group + 1, GROUPS - 1), chunk);
            CUTE_UNROLL
            for (int i = 0; i < 4; ++i) { // steps after tiles: what follows does not wait for what is before
                int const tile = i % 2, step = i / 2;
                $atom::fma(sum(0, tile, group), sum(1, tile, group), sum(2, tile, group), sum(3, tile, group),
                    a[tile][step][0], a[tile][step][1], a[tile][step][2], a[tile][step][3],
                    word(b, step * 2), word(b, step * 2 + 1),
                    sum(0, tile, group), sum(1, tile, group), sum(2, tile, group), sum(3, tile, group));
            }
        }
//! else
        // Scales of the rows, each of the chunk's 16 terms; rows of a tile are (g, g + 8) of the fragment.
        float back_of[2][2];
        uint32_t hi[2][4], lo[2][4];
        CUTE_UNROLL
        for (int i = 0; i < 4; ++i) {
            int const tile = i / 2, row = i % 2;
            float v[4], largest = 0.0f;
            CUTE_UNROLL
            for (int j = 0; j < 4; ++j) {
                v[j] = __uint_as_float(element(x, i, j));
                largest = fmaxf(largest, fabsf(v[j]));
            }
            largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 1)); // of the lanes that share the row
            largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 2));
            float const scale = scale_of(largest, back_of[tile][row]);
            split(v[0] * scale, v[1] * scale, hi[tile][row], lo[tile][row]);
            split(v[2] * scale, v[3] * scale, hi[tile][row + 2], lo[tile][row + 2]);
        }
        CUTE_UNROLL
        for (int group = 0; group < GROUPS; ++group) {
            uint4 const b = next;
            float2 const factor = next_factor;
            next = mF(lane, first_group + cute::min(group + 1, GROUPS - 1), chunk);
            next_factor = mX((first_group + cute::min(group + 1, GROUPS - 1)) * 4 + t, chunk);
            // The tensor cores truncate: sums of 16 terms are added in fp32.
            Tensor now = make_tensor<float>(Shape<_4, _2>{}); // (element,tile)
            clear(now);
            CUTE_UNROLL
            for (int i = 0; i < 6; ++i) { // small terms first
                int const tile = i % 2, kind = i / 2;
                uint32_t const *a = kind == 0 ? lo[tile] : hi[tile];
                $atom::fma(now(0, tile), now(1, tile), now(2, tile), now(3, tile), a[0], a[1], a[2], a[3],
                    kind == 1 ? b.z : b.x, kind == 1 ? b.w : b.y, now(0, tile), now(1, tile), now(2, tile), now(3, tile));
            }
            CUTE_UNROLL
            for (int i = 0; i < 8; ++i) {
                float const f = back_of[i / 4][i % 4 / 2] * (i % 2 ? factor.y : factor.x);
                sum(i % 4, i / 4, group) = fmaf(now(i % 4, i / 4), f, sum(i % 4, i / 4, group));
            }
        }
//! end
    };

    uint4 x[AHEAD][4];
    CUTE_UNROLL
    for (int i = 0; i < AHEAD; ++i)
        fetch(first + i, x[i]);
//! if overlap
    cutegen_let_next_begin();
    cutegen_wait_for_earlier();
//! end
    for (int chunk = first; chunk < end; chunk += AHEAD) {
        CUTE_UNROLL
        for (int i = 0; i < AHEAD; ++i) {
            if (chunk + i < end)
                multiply(x[i], chunk + i);
            fetch(chunk + i + AHEAD, x[i]);
        }
    }

    Tensor mP = make_tensor(make_gmem_ptr(partial), make_shape($h_size, $s_size, parts),
                            make_stride($s_size, _1{}, int64_t($h_size) * $s_size)); // (H,R,parts)
    CUTE_UNROLL
    for (int i = 0; i < size(sum); ++i) {
        int const e = i % 4, tile = i / 4 % 2, h = (first_group + i / 8) * 8 + t * 2 + e % 2;
//! if along_k
        int const r = r0 + tile * 16 + g + e / 2 * 8;
//! else
        int const r = r0 + g * 4 + tile * 2 + e / 2;
//! end
        if (h < $h_size && r < $s_size)
            mP(h, r, int(blockIdx.y)) = sum(i);
    }
}

// Adds the parts of every element, in order and in float64, and finishes it.
__global__ void __launch_bounds__(256)
    ${kernel}_add_parts(float const *partial, int parts, $params)
{
//! include gemm_thin_part
    double total = 0.0;
    for (int part = 0; part < parts && r < $s_size; ++part)
        total += double(mP(h, r, part));
    float acc = float(total);
//! if not half
    // Infinities have no low part, and sums may overflow on their way: such elements once more, in fp32.
//! include gemm_thin_again
//! end
    if (r >= $s_size)
        return;
//! include gemm_thin_store
}
#endif

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
//! include gemm_thin_head
    int64_t groups = cutegen_round_up(cutegen_ceil_div($h_size, 8), $groups), chunks = cutegen_ceil_div(K, $chunk);
    int64_t blocks = cutegen_ceil_div($s_size, 256) * (groups / $groups);
//! if split_k

    // As many parts as keep every processor busy to the end. Counted are chunks, and what it costs to write and add parts.
    int64_t slots = call->device.sm_count * ($groups <= 2 ? 2 : 1), parts = 1, least = 0;
    for (int64_t p = 1; p <= cutegen_min(64, cutegen_max(1, chunks / 8)); p++) {
        int64_t cost = cutegen_ceil_div(blocks * p, slots) * cutegen_ceil_div(chunks, p) * 1024 +
                       p * $h_size * $s_size / (2 * slots);
        if (!least || cost < least)
            least = cost, parts = p;
    }
    parts = cutegen_ceil_div(chunks, cutegen_ceil_div(chunks, parts));
//! else
    int64_t parts = 1;
//! end
    float *partial = (float *)cutegen_workspace(call, parts * $h_size * $s_size * 4);
    uint32_t *packed = (uint32_t *)cutegen_workspace(call, groups * chunks * 512);
//! if not half
    float *back = (float *)cutegen_workspace(call, groups * 8 * chunks * 4);
//! end
//! if overlap
    uint32_t flags = CUTEGEN_OVERLAP;
//! else
    uint32_t flags = 0;
//! end
    struct cutegen_dim one = cutegen_dim3(1, 1, 1), threads = cutegen_dim3(256, 1, 1);
    CUTEGEN_TRY(CUTEGEN_LAUNCH(call, ${kernel}_pack, cutegen_dim3(cutegen_ceil_div(groups * chunks, 8), 1, 1), threads, 0, packed,
//! if not half
                               back,
//! end
                               (int)groups, (int)chunks, $args));
    CUTEGEN_TRY(CUTEGEN_LAUNCH_EX(call, ${kernel}_kernel, cutegen_dim3(blocks, parts, 1), threads, one, 0, flags, partial,
                                  (uint32_t const *)packed,
//! if not half
                                  (float const *)back,
//! end
                                  (int)groups, (int)chunks, (int)parts, $args));
    return CUTEGEN_LAUNCH_EX(call, ${kernel}_add_parts, cutegen_dim3(cutegen_ceil_div($s_size, 256), $h_size, 1), threads, one, 0,
                             flags, (float const *)partial, (int)parts, $args);
}
#endif
