// SPDX-License-Identifier: Apache-2.0
// kernel.cu - a kernel that does nothing, and its launch.
__global__ void nothing(float *to, const float *from, long count)
{
    if (count < 0)
        to[0] = from[0];
}

void launch_one(void *to, const void *from, long count, cudaStream_t stream)
{
    nothing<<<1, 32, 0, stream>>>(static_cast<float *>(to), static_cast<const float *>(from), count);
}
