// gemm_half_plain.cuh - the plain kernel of 16-bit products. Included by the recipes for sm_90a and sm_100a.
template <int BLK_M, int BLK_N>
__global__ void __launch_bounds__(BLK_M * BLK_N)
    ${kernel}_kernel(int L, $params)
{
    int const m = blockIdx.y * BLK_M + threadIdx.x / BLK_N;
    int const n = blockIdx.x * BLK_N + threadIdx.x % BLK_N;
    int const l = blockIdx.z;
    if (m >= M || n >= N || l >= L)
        return;
    Tensor mA = make_tensor(make_gmem_ptr(A$a_batch), make_shape(M, K), make_stride($a_m, $a_k)); // (M,K)
    Tensor mB = make_tensor(make_gmem_ptr(B$b_batch), make_shape(N, K), make_stride($b_n, $b_k)); // (N,K)
    Tensor mC = make_tensor(make_gmem_ptr(C$c_batch), make_shape(M, N), make_stride($c_m, $c_n)); // (M,N)
//! each leaf
    Tensor m$X = make_tensor(make_gmem_ptr($x$batch), make_shape(M, N), make_stride($m, $n)); // (M,N)
//! end
    float acc = 0.0f;
    for (int k = 0; k < K; ++k)
        acc += float(mA(m, k)) * float(mB(n, k));
//! if epilogue
    mC(m, n) = $c_open${kernel}_finish(acc$finish)$c_close;
//! else
    mC(m, n) = ${c_open}acc$c_close;
//! end
}
