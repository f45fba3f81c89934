// cluster_tma.cu - clusters and the tensor memory accelerator of sm_90a; with BUG:
// async_not_waited, the tile is read before its copy has landed.
#include "check.h"
#include <cooperative_groups.h>
#include <cuda.h>

namespace cg = cooperative_groups;

enum { ROWS = 16, COLS = 32 };

// A block of the cluster sums its tile, block 0 adds up both sums through distributed memory.
__global__ void sums(const __grid_constant__ CUtensorMap map, float *out)
{
    __shared__ alignas(128) float tile[ROWS][COLS];
    __shared__ alignas(8) unsigned long long bar;
    __shared__ float sum;
    unsigned at = (unsigned)__cvta_generic_to_shared(&bar), to = (unsigned)__cvta_generic_to_shared(tile);
    cg::cluster_group cluster = cg::this_cluster();
    int rank = (int)cluster.block_rank();

    if (threadIdx.x == 0) {
        sum = 0;
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at));
        asm volatile("fence.mbarrier_init.release.cluster;");
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at),
                     "r"((unsigned)sizeof tile));
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%2, %3}], [%4];" ::"r"(to),
                     "l"(&map), "r"(0), "r"(rank * ROWS), "r"(at)
                     : "memory");
    }
#ifndef BUG
    asm volatile("{\n.reg .pred p;\n"
                 "wait: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n@!p bra wait;\n}" ::"r"(at)
                 : "memory");
#endif
    float part = 0;
    for (int i = threadIdx.x; i < ROWS * COLS; i += blockDim.x)
        part += tile[i / COLS][i % COLS]; // here
    atomicAdd(&sum, part);
    cluster.sync();
    if (rank == 0 && threadIdx.x == 0)
        *out = sum + *cluster.map_shared_rank(&sum, 1);
    cluster.sync();
}

typedef CUresult (*encode_fn)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *,
                              const cuuint64_t *, const cuuint64_t *, const cuuint32_t *,
                              const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                              CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

int main()
{
    float host[2 * ROWS * COLS], *x, *out, got = 0, want = 0;
    cuuint64_t dims[] = {COLS, 2 * ROWS}, strides[] = {COLS * 4};
    cuuint32_t box[] = {COLS, ROWS}, steps[] = {1, 1};
    cudaDriverEntryPointQueryResult found;
    void *encode = nullptr;
    CUtensorMap map;

    for (int i = 0; i < 2 * ROWS * COLS; i++)
        want += host[i] = (float)(i % 11);
    CHECK(cudaMalloc(&x, sizeof host));
    CHECK(cudaMalloc(&out, 4));
    CHECK(cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice));
    CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12000,
                                           cudaEnableDefault, &found));
    EXPECT(((encode_fn)encode)(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, x, dims, strides, box, steps,
                               CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                               CU_TENSOR_MAP_L2_PROMOTION_NONE,
                               CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS);
    cudaLaunchConfig_t config = {};
    cudaLaunchAttribute attribute;
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = 2;
    attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    config.gridDim = dim3(2);
    config.blockDim = dim3(64);
    config.attrs = &attribute;
    config.numAttrs = 1;
    CHECK(cudaLaunchKernelEx(&config, sums, map, out));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(&got, out, 4, cudaMemcpyDeviceToHost));
#ifndef BUG
    EXPECT(got == want);
#endif
    std::puts("ok");
}
