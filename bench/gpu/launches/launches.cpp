// SPDX-License-Identifier: Apache-2.0
// launches.cpp - an operator of PyTorch in C++: what the host time of an export's call is compared with.
//
//     torch.ops.cpp_launches.run(x, count)        a new tensor like x; `count` kernels of one warp on the current stream
//
// It does what any operator in C++ does for a call: dispatch, device guard, one allocation, launches by the runtime.
// build.sh compiles it.
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

void launch_one(void *to, const void *from, long count, cudaStream_t stream); // kernel.cu

static at::Tensor run(const at::Tensor &x, int64_t count)
{
    const c10::cuda::CUDAGuard guard(x.device());
    at::Tensor out = at::empty_like(x);
    cudaStream_t stream = c10::cuda::getCurrentCUDAStream();

    for (int64_t i = 0; i < count; i++)
        launch_one(out.mutable_data_ptr(), x.const_data_ptr(), x.numel(), stream);
    return out;
}

TORCH_LIBRARY(cpp_launches, m)
{
    m.def("run(Tensor x, int count) -> Tensor");
}

TORCH_LIBRARY_IMPL(cpp_launches, CUDA, m)
{
    m.impl("run", &run);
}
