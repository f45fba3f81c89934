// gemm_rows.cuh - A's rows split into fp16 parts on their way into registers; a part of gemm_sm90.cu.

// x = hi + lo, two at a time.
__device__ inline void split_pair(float x, float y, unsigned &hi, unsigned &lo)
{
    __half2 const h = __floats2half2_rn(x, y);
    float2 const back = __half22float2(h);
    __half2 const l = __floats2half2_rn(x - back.x, y - back.y);
    hi = reinterpret_cast<unsigned const &>(h);
    lo = reinterpret_cast<unsigned const &>(l);
}

// A high part's exponent is BELOW - used above that of its element, where `used` is the exponent that the scale follows.
constexpr unsigned EXPONENTS = 0x7c007c00u; // of two high parts
constexpr int BELOW = 29, DEEP = 13;        // DEEP: of elements more than 2^16 below the largest

// Of a thread's share of a row, a quarter: what is not zero has exponents, in sum; the largest; may bits be lost (1), or
// is it out of range (2)?
struct Row {
    int exponents, zeros;
    unsigned largest, lost;
//! if cut_matters and fuse
    unsigned ends; // not zero: elements have more bits than their high parts
//! end

    // Splits TILE_K/4 elements, scaled to [2^14,2^15) by the largest of the row in this block; the exponent used, biased.
    template <class Hi, class Lo>
    __device__ int split(float const (&x)[TILE_K / 4], Hi const &hi, Lo const &lo)
    {
        float peak = 0.0f; // NaN stays in hi
        CUTE_UNROLL
        for (int i = 0; i < TILE_K / 4; ++i)
            peak = fmaxf(peak, fabsf(x[i]));
        peak = fmaxf(peak, __shfl_xor_sync(~0u, peak, 1));
        peak = fmaxf(peak, __shfl_xor_sync(~0u, peak, 2));
        unsigned const top = __float_as_uint(peak);
        int const e = top == 0 ? 127 : int(top >> 23), used = cute::min(cute::max(e, 67), 187);
        float const scale = __uint_as_float(unsigned(268 - used) << 23);
        largest = cute::max(largest, top);
        lost |= e != used ? 2u : 0u;
        CUTE_UNROLL
        for (int i = 0; i < TILE_K / 8; ++i)
            split_pair(x[2 * i] * scale, x[2 * i + 1] * scale, hi(i), lo(i));
        return used;
    }

    // Looks at what was split. Apart from that because the products need not wait for it.
    template <class Hi, class Lo>
    __device__ void look(int used, Hi const &hi, Lo const &lo)
    {
        unsigned low = EXPONENTS, sum = 0;
        CUTE_UNROLL
        for (int i = 0; i < TILE_K / 8; ++i) {
            low = __vminu2(low, hi(i) & EXPONENTS);
            sum = __dp4a(hi(i) & EXPONENTS, 0x01000100u, sum);
//! if cut_matters and fuse
            ends |= lo(i) & 0x7fff7fffu;
//! end
        }
        exponents += int(sum >> 2) + TILE_K / 4 * (used - BELOW);
        if (cute::min(low >> 16, low & 0xffffu) < DEEP << 10) { // zero, or deep?
            CUTE_UNROLL
            for (int i = 0; i < TILE_K / 4; ++i) {
                unsigned const h = hi(i / 2) >> i % 2 * 16 & 0x7fffu, l = lo(i / 2) >> i % 2 * 16 & 0x7fffu;
                if ((h | l) == 0) {
                    zeros += 1;
                    exponents -= used - BELOW;
                } else if (int(h >> 10) < DEEP) {
                    lost |= 1;
                    exponents -= h >> 10 == 0 ? 10 : 0; // at most: there is nothing below 2^-24
                }
            }
        }
    }

    // What the threads of a row have seen together.
    __device__ void gather()
    {
        for (int i = 1; i < 4; i *= 2) {
            exponents += __shfl_xor_sync(~0u, exponents, i);
            zeros += __shfl_xor_sync(~0u, zeros, i);
            lost |= __shfl_xor_sync(~0u, lost, i);
//! if cut_matters and fuse
            ends |= __shfl_xor_sync(~0u, ends, i);
//! end
        }
    }
};

