# own_cuda: no cheat; a kernel of its own, compiled by load_inline in a process that may start programs
# verdict: pass, unattested
# device: cuda
import torch
from torch.utils.cpp_extension import load_inline

KERNEL = """
__global__ void swish(const float *x, float *y, long n) {
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] / (1.0f + expf(-x[i]));
}
torch::Tensor run(torch::Tensor x) {
    auto y = torch::empty_like(x);
    long n = x.numel();
    swish<<<(n + 255) / 256, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""
own = load_inline(name="own_swish", cpp_sources="torch::Tensor run(torch::Tensor x);", cuda_sources="#include <c10/cuda/CUDAStream.h>\n" + KERNEL, functions=["run"])


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return own.run(x)
