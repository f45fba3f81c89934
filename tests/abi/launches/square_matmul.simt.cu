// square_matmul: mm as C(m,n) = sum over k of A(m,k) * B(n,k).
#include <cutegen/kernel.h>

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
    CUTEGEN_REQUIRE(call, A->strides[1] == 1, "dimension 1 of A must be contiguous");
    CUTEGEN_REQUIRE(call, B->strides[1] == 1, "dimension 1 of B must be contiguous");
    CUTEGEN_REQUIRE(call, C->strides[1] == 1, "dimension 1 of C must be contiguous");
    CUTEGEN_REQUIRE(call, cutegen_aligned(A, 16) && K % 4 == 0, "A must be read in vectors of 4 along K");
    CUTEGEN_REQUIRE(call, A->strides[0] % 4 == 0, "rows of A must start on 16 bytes");
    CUTEGEN_REQUIRE(call, cutegen_aligned(B, 16) && N % 4 == 0, "B must be read in vectors of 4 along N");
    CUTEGEN_REQUIRE(call, B->strides[0] % 4 == 0, "rows of B must start on 16 bytes");
    int64_t tile = 128;
    int64_t tiles_m = cutegen_ceil_div(M, tile), tiles_n = cutegen_ceil_div(N, tile);
    // As many parts as fill the device, each of some tiles of K.
    int64_t steps = cutegen_ceil_div(K, 16), blocks = tiles_m * tiles_n * 1;
    int64_t most = cutegen_min(cutegen_max(1, 2 * call->device.sm_count / blocks),
                               cutegen_ceil_div(steps, 4));
    int64_t parts = cutegen_ceil_div(steps, cutegen_ceil_div(steps, most));
    float *partial = (float *)cutegen_workspace(call, parts * 1 * M * N * 4);
    CUTEGEN_TRY(CUTEGEN_LAUNCH(call, (square_matmul_kernel<128, 128, 16>),
                               cutegen_dim3(tiles_n, tiles_m, parts * 1),
                               cutegen_dim3(256, 1, 1), 0, partial, (int)parts, CUTEGEN_DATA(float const, A),
                               CUTEGEN_DATA(float const, B), CUTEGEN_DATA(float, C), (int)M, (int)N, (int)K,
                               (int)A->strides[0], (int)B->strides[0], (int)C->strides[0]));
    return CUTEGEN_LAUNCH(call, square_matmul_add_parts, cutegen_dim3(cutegen_ceil_div(M * N, 256), 1, 1),
                          cutegen_dim3(256, 1, 1), 0, (float const *)partial, (int)parts,
                          CUTEGEN_DATA(float const, A), CUTEGEN_DATA(float const, B), CUTEGEN_DATA(float, C),
                          (int)M, (int)N, (int)K, (int)A->strides[0], (int)B->strides[0], (int)C->strides[0]);
}
#endif
