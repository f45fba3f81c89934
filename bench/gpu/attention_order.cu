// attention_order.cu - what racecheck says of an order that is there: the one of attention's gradients in shared memory.
//
//     nvcc -arch=sm_90a -o attention_order bench/gpu/attention_order.cu
//     compute-sanitizer --tool racecheck ./attention_order FORM
//
// Threads read a tile; all that read meet at a named barrier; then one of them arrives at an mbarrier, and the thread
// that waits for it copies the next tile over the first. FORM 0: so. 1: without the named barrier, each reader arrives
// itself, which orders as much. 2: one lane of each warp arrives, behind __syncwarp. 3: only two readers are waited for,
// a race.
#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

__device__ unsigned at(void const *p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void init(uint64_t *b, int n) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at(b)), "r"(n)); }
__device__ void arrive(uint64_t *b) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at(b)) : "memory"); }
__device__ void expect(uint64_t *b, int n) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(b)), "r"(n) : "memory"); }
__device__ void wait(uint64_t *b, int turn)
{
    asm volatile("{\n.reg .pred p;\nL: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra D;\nbra L;\nD:\n}" ::"r"(at(b)), "r"(turn) : "memory");
}

template <int FORM>
__global__ void order(float const *from, float *to, int rounds)
{
    __shared__ alignas(128) float tile[64];
    __shared__ uint64_t full, empty;
    if (threadIdx.x == 0) {
        init(&full, 1), init(&empty, FORM == 1 ? 256 : FORM == 2 ? 8 : 2);
        asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        if (threadIdx.x == 0)
            for (int i = 0, turn = 1; i < rounds; i++, turn ^= 1) {
                wait(&empty, turn);
                expect(&full, 256);
                asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];" ::"r"(at(tile)), "l"(from + i * 64), "r"(at(&full)) : "memory");
            }
    } else {
        float sum = 0.0f;
        int const t = threadIdx.x - 32;
        for (int i = 0, turn = 0; i < rounds; i++, turn ^= 1) {
            wait(&full, turn);
            sum += tile[t % 64];
            if (FORM == 0)
                asm volatile("bar.sync 1, 256;" ::: "memory");
            if (FORM == 2)
                __syncwarp();
            if (FORM == 1 || (FORM == 2 ? t % 32 == 0 : t % 128 == 0))
                arrive(&empty);
            __syncwarp();
        }
        to[t] = sum;
    }
}

int main(int argc, char **argv)
{
    float *from, *to;
    cudaMalloc(&from, 64 * 64 * 4), cudaMalloc(&to, 256 * 4), cudaMemset(from, 0, 64 * 64 * 4);
    switch (argc > 1 ? atoi(argv[1]) : 0) {
    case 0: order<0><<<1, 288>>>(from, to, 64); break;
    case 1: order<1><<<1, 288>>>(from, to, 64); break;
    case 2: order<2><<<1, 288>>>(from, to, 64); break;
    default: order<3><<<1, 288>>>(from, to, 64); break;
    }
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    return 0;
}
