// big_half: transpose, mm as C(m,n) = sum over k of A(m,k) * B(n,k).
#include <cutegen/kernel.h>

constexpr int TILE_M = 128; // two warpgroups of 64 rows
constexpr int TILE_N = 256;
constexpr int TILE_K = 64;
constexpr int STAGES = 4;           // tiles in shared memory
constexpr int CLUSTER = 2;          // blocks along m that share B
constexpr int GROUP = 16 / CLUSTER; // tiles of m walked together, or pairs of them
constexpr int STORES = 2;           // parts of 16x64 on their way out, of each warp
constexpr int SMEM_BYTES = 1024 + STAGES * (TILE_M + TILE_N) * TILE_K * 2 + 8 * STORES * 16 * 64 * 2 + 256;
constexpr int A_K_MAJOR = 1;
constexpr int B_K_MAJOR = 1;

#ifdef CUTEGEN_HOST
// A matrix for TMA: (K,rows,L) or (rows,K,L), the contiguous mode first.
static struct cutegen_map matrix_map(struct cutegen_call *call, void *data, int k_major, int64_t rows,
                                     int64_t K,
                                     int64_t L, int64_t slow, int64_t step, int box_rows)
{
    struct cutegen_map_spec s;

    s.data = data;
    s.dtype = CUTEGEN_F16;
    s.rank = 3;
    for (int i = 0; i < 5; i++)
        s.dims[i] = 1, s.strides_bytes[i] = 0, s.box[i] = 1, s.element_strides[i] = 1;
    s.dims[0] = k_major ? K : rows;
    s.dims[1] = k_major ? rows : K;
    s.dims[2] = L;
    s.strides_bytes[0] = slow * 2;
    s.strides_bytes[1] = (step > 0 ? step : slow * s.dims[1]) * 2;
    s.box[0] = 64;
    s.box[1] = k_major ? box_rows : TILE_K;
    s.swizzle = CUTEGEN_SWIZZLE_128;
    s.fill = CUTEGEN_FILL_ZERO;
    s.l2 = CUTEGEN_L2_256;
    return cutegen_map_tiled(call, &s);
}

CUTEGEN_PLAN(call)
{
    const struct cutegen_tensor *A = &call->in[0]; // A
    const struct cutegen_tensor *B = &call->in[1]; // B
    const struct cutegen_tensor *C = &call->out[0];

    CUTEGEN_REQUIRE(call, A->ndim == 2 && B->ndim == 2 && C->ndim == 2,
                    "A, B and C must be 2-, 2- and 2-dimensional");
    int64_t M = C->shape[0];
    int64_t N = C->shape[1];
    int64_t K = A->shape[1];
    int64_t L = 1;
    CUTEGEN_REQUIRE(call, A->strides[1] == 1, "dimension 1 of A must be contiguous");
    CUTEGEN_REQUIRE(call, B->strides[1] == 1, "dimension 1 of B must be contiguous");
    CUTEGEN_REQUIRE(call, C->strides[1] == 1, "dimension 1 of C must be contiguous");
    CUTEGEN_REQUIRE(call, cutegen_aligned(A, 16) && cutegen_aligned(B, 16) && cutegen_aligned(C, 16),
                    "A, B and C must start on 16 bytes");
    CUTEGEN_REQUIRE(call, A->strides[0] % 8 == 0 && B->strides[0] % 8 == 0, "rows must start on 16 bytes");
    struct cutegen_map map_a = matrix_map(call, CUTEGEN_DATA(half_t, A), A_K_MAJOR, M, K, 1, A->strides[0],
                                          0, TILE_M);
    struct cutegen_map map_b = matrix_map(call, CUTEGEN_DATA(half_t, B), B_K_MAJOR, N, K, 1, B->strides[0],
                                          0, TILE_N / CLUSTER);
    CUTEGEN_REQUIRE(call, N % 8 == 0 && C->strides[0] % 8 == 0, "rows of C must start on 16 bytes");
    struct cutegen_map map_c = matrix_map(call, CUTEGEN_DATA(half_t, C), 1, M, N, L, C->strides[0], M * N,
                                          16);
    int64_t tiles = cutegen_ceil_div(M, TILE_M * CLUSTER) * cutegen_ceil_div(N, TILE_N) * L;
    int64_t blocks = cutegen_min(call->device.sm_count / CLUSTER, tiles) * CLUSTER;
    return CUTEGEN_LAUNCH_CLUSTER(call, big_half_product, cutegen_dim3(blocks, 1, 1), cutegen_dim3(384, 1, 1),
                                  cutegen_dim3(CLUSTER, 1, 1), SMEM_BYTES, map_a, map_b,
                                  map_c,
                                  (int)L, CUTEGEN_DATA(half_t const, A), CUTEGEN_DATA(half_t const, B),
                                  CUTEGEN_DATA(half_t, C), (int)M, (int)N, (int)K, (int)A->strides[0],
                                  (int)B->strides[0], (int)C->strides[0]);
}
#endif
