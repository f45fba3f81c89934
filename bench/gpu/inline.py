"""The usual way to judge a kernel: torch's load_inline in a fresh process, 5 draws compared, 100 timed runs.

    python3 bench/gpu/inline.py TASK.py KERNEL.cu CUTLASS_INCLUDE

The device half of KERNEL.cu is taken as it is; only the launch is written again, as torch wants it.
"""
import importlib.util
import os
import re
import sys
import tempfile
import time

start = time.time()
task_path, kernel_path, cutlass = sys.argv[1:4]
os.environ["TORCH_EXTENSIONS_DIR"] = tempfile.mkdtemp()  # nothing from an earlier build
os.environ.setdefault("TORCH_CUDA_ARCH_LIST", "9.0a")

import torch  # noqa: E402
from torch.utils.cpp_extension import load_inline  # noqa: E402

LAUNCH = {
    "swish": """
torch::Tensor run(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int64_t n = x.numel();
    swish<256><<<(unsigned)((n / 4 + n % 4 + 255) / 256), 256, 0, at::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}""",
    "gemm": """
torch::Tensor run(torch::Tensor A, torch::Tensor B) {
    int M = (int)A.size(0), K = (int)A.size(1), N = (int)B.size(1);
    auto C = torch::empty({M, N}, A.options());
    ::gemm<128, 128, 8, 3><<<dim3(N / 128, M / 128), 256, 0, at::cuda::getCurrentCUDAStream()>>>(
        A.data_ptr<float>(), B.data_ptr<float>(), C.data_ptr<float>(), M, N, K);
    return C;
}""",
}
text = open(kernel_path).read()
device = re.search(r"#ifdef CUTEGEN_DEVICE\n(.*?)#endif", text, re.S).group(1)
name = "swish" if "swish" in device else "gemm"
arguments = "torch::Tensor x" if name == "swish" else "torch::Tensor A, torch::Tensor B"
module = load_inline(
    name="candidate",
    cpp_sources=f"torch::Tensor run({arguments});",
    cuda_sources="#include <ATen/cuda/CUDAContext.h>\n#include <cstdint>\n" + device + LAUNCH[name],
    functions=["run"],
    extra_include_paths=[cutlass],
    extra_cuda_cflags=["-O3", "-std=c++17", "--expt-relaxed-constexpr"],
)
built = time.time()

spec = importlib.util.spec_from_file_location("task", task_path)
task = importlib.util.module_from_spec(spec)
spec.loader.exec_module(task)
with torch.device("cuda"), torch.no_grad():
    model = task.Model(*task.get_init_inputs()).cuda()
    for seed in range(5):
        torch.manual_seed(seed)
        inputs = [x.cuda() for x in task.get_inputs()]
        torch.testing.assert_close(module.run(*inputs), model(*inputs), rtol=1e-3, atol=1e-3)
    tested = time.time()
    times = []
    for _ in range(100):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        module.run(*inputs)
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
print(
    f"{name}: build {built - start:.1f} s, 5 draws {tested - built:.1f} s, 100 runs {time.time() - tested:.1f} s, "
    f"median {sorted(times)[50] * 1000:.1f} us"
)
