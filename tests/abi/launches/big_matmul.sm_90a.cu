// big_matmul: mm as C(m,n) = sum over k of A(m,k) * B(n,k).
#include <cutegen/kernel.h>

constexpr int TILE_M = 128;  // two warpgroups of 64 rows
constexpr int PIECE_N = 128; // columns of one accumulator
constexpr int PIECES = 1;    // of a warpgroup, side by side
constexpr int TILE_N = PIECE_N * PIECES;
constexpr int TILE_K = 64;       // of a slot
constexpr int TERMS = 64;        // of K, between two additions into fp32 registers
constexpr int STAGES_A = 2;      // slots of 128x64, fp32
constexpr int STAGES_B = 4;      // slots of 128x64, fp32 and then hi and lo
constexpr int STORES = 2;        // parts of 16x32 on their way out, of each warp
constexpr int LEAD = 2 * TILE_K; // so far a warpgroup may begin a tile while the other still stores
constexpr int CLUSTER = 1;       // blocks along m that share B
constexpr int GROUP = 16;        // tiles of m walked together
constexpr int SMEM_BYTES = 1024 + (STAGES_A * TILE_M + STAGES_B * TILE_N) * TILE_K * 4 + 8 * STORES * 16 * 32 * 4 + 256;
constexpr int A_K_MAJOR = 1;
constexpr int B_K_MAJOR = 0;

#ifdef CUTEGEN_HOST

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
    CUTEGEN_REQUIRE(call, cutegen_aligned(A, 16) && K % 4 == 0, "A must be read in vectors of 4 along K");
    CUTEGEN_REQUIRE(call, A->strides[0] % 4 == 0, "rows of A must start on 16 bytes");
    CUTEGEN_REQUIRE(call, cutegen_aligned(B, 16) && N % 4 == 0, "B must be read in vectors of 4 along N");
    CUTEGEN_REQUIRE(call, B->strides[0] % 4 == 0, "rows of B must start on 16 bytes");
    CUTEGEN_REQUIRE(call, cutegen_aligned(C, 16), "C must start on 16 bytes");
    int64_t processors = call->device.sm_count;
    uint32_t flags = CUTEGEN_OVERLAP;
    struct cutegen_dim one = cutegen_dim3(1, 1, 1);
    int64_t K_all = K * L;

    int64_t L_a = 1, step_a = 0, L_b = 1, step_b = 0;

    // The product.
    struct cutegen_map_spec spec;
    for (int i = 0; i < 5; i++)
        spec.dims[i] = 1, spec.strides_bytes[i] = 0, spec.box[i] = 1, spec.element_strides[i] = 1;
    spec.data = CUTEGEN_DATA(float, A);
    spec.dtype = CUTEGEN_F32;
    spec.rank = 3;
    spec.dims[0] = K, spec.dims[1] = M, spec.dims[2] = L_a;
    spec.strides_bytes[0] = A->strides[0] * 4;
    spec.strides_bytes[1] = (step_a > 0 ? step_a : M * A->strides[0]) * 4;
    spec.box[0] = 32, spec.box[1] = TILE_M;
    spec.swizzle = CUTEGEN_SWIZZLE_128;
    spec.fill = CUTEGEN_FILL_ZERO;
    spec.l2 = CUTEGEN_L2_256;
    struct cutegen_map map_a = cutegen_map_tiled(call, &spec);
    spec.data = CUTEGEN_DATA(float, B);
    spec.dims[0] = N, spec.dims[1] = K, spec.dims[2] = L_b;
    spec.strides_bytes[0] = B->strides[0] * 4;
    spec.strides_bytes[1] = (step_b > 0 ? step_b : K * B->strides[0]) * 4;
    spec.box[0] = TILE_N, spec.box[1] = TILE_K;
    spec.swizzle = CUTEGEN_SWIZZLE_NONE;
    struct cutegen_map map_b = cutegen_map_tiled(call, &spec);
    int64_t tiles = cutegen_ceil_div(M, TILE_M * CLUSTER) * cutegen_ceil_div(N, TILE_N) * L;
    struct cutegen_map_spec spec_c;
    for (int i = 0; i < 5; i++)
        spec_c.dims[i] = 1, spec_c.strides_bytes[i] = 0, spec_c.box[i] = 1, spec_c.element_strides[i] = 1;
    spec_c.dtype = CUTEGEN_F32;
    spec_c.rank = 3;
    spec_c.dims[0] = N, spec_c.dims[1] = M, spec_c.dims[2] = L;
    spec_c.data = CUTEGEN_DATA(float, C);
    spec_c.strides_bytes[0] = C->strides[0] * 4, spec_c.strides_bytes[1] = M * N * 4;
    spec_c.box[0] = 32, spec_c.box[1] = 16;
    spec_c.swizzle = CUTEGEN_SWIZZLE_128;
    spec_c.fill = CUTEGEN_FILL_ZERO;
    spec_c.l2 = CUTEGEN_L2_NONE;
    struct cutegen_map map_c = cutegen_map_tiled(call, &spec_c);
    int64_t part_k = K;
    int64_t blocks = cutegen_min(processors / CLUSTER, tiles) * CLUSTER;
    int64_t count_a = blocks, count_b = blocks;
    int32_t *guard_a = (int32_t *)cutegen_workspace(call, blocks * 16),
    *guard_b = (int32_t *)cutegen_workspace(call, blocks * 16);
    CUTEGEN_TRY(CUTEGEN_LAUNCH(call, big_matmul_product, cutegen_dim3(blocks, 1, 1), cutegen_dim3(512, 1, 1),
                               SMEM_BYTES, map_a, map_b,
                               map_c, guard_a, guard_b, (int)L, CUTEGEN_DATA(float const, A),
                               CUTEGEN_DATA(float const, B), CUTEGEN_DATA(float, C), (int)M, (int)N, (int)K,
                               (int)A->strides[0], (int)B->strides[0], (int)C->strides[0]));
    return CUTEGEN_LAUNCH_EX(call, big_matmul_repeat, cutegen_dim3(processors, 1, 1), cutegen_dim3(256, 1, 1),
                             one, 0, flags,
                             (int32_t const *)guard_a, (int32_t const *)guard_b, (int)count_a, (int)count_b,
                             (int)part_k, (int)L,
                             CUTEGEN_DATA(float const, A), CUTEGEN_DATA(float const, B),
                             CUTEGEN_DATA(float, C), (int)M, (int)N, (int)K, (int)A->strides[0],
                             (int)B->strides[0], (int)C->strides[0]);
}
#endif
