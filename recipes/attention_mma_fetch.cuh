// attention_mma_fetch.cuh - rows of a matrix to shared memory by cp.async; included by attention's kernels for sm_80.
// Brings TILE rows of a matrix to shared memory; what lies outside becomes zero.
template <int ROWS_, int COLUMNS, int WIDE, class Global, class Shared>
__device__ inline void fetch_rows(Global const &from, Shared const &to, int first, int rows)
{
//! if vectors
    constexpr int VECTORS = WIDE / 8; // of a row, eight columns each
    for (int i = threadIdx.x; i < ROWS_ * VECTORS; i += 128) {
        int const r = i / VECTORS, c = i % VECTORS * 8;
        bool const inside = first + r < rows && c < COLUMNS;
        SM80_CP_ASYNC_CACHEALWAYS_ZFILL<uint128_t>::copy(
            *reinterpret_cast<uint128_t const *>(&from(inside ? first + r : 0, inside ? c : 0)),
            *reinterpret_cast<uint128_t *>(&to(r, c)), inside);
    }
//! else
    for (int i = threadIdx.x; i < ROWS_ * WIDE; i += 128) {
        int const r = i / WIDE, c = i % WIDE;
        to(r, c) = first + r < rows && c < COLUMNS ? from(first + r, c) : $type(0.0f);
    }
//! end
    cp_async_fence();
}

