"""What PyTorch takes for tasks: eager, eager with TF32 allowed, torch.compile. Milliseconds, for the table of products.

    python3 bench/gpu/gemm_torch.py TASK.py ...

CUDA events around one call, L2 flushed by reading before each, median of 11. `cutegen eval` has its own eager baseline; this
adds what it does not run.
"""
import importlib.util
import os
import sys
import warnings

import torch
from memory import cold_ms

warnings.filterwarnings("ignore")


def load(path):
    spec = importlib.util.spec_from_file_location("task", path)
    task = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(task)
    torch.manual_seed(1)
    model = task.Model(*task.get_init_inputs()).cuda().eval()
    return model, [x.cuda() if torch.is_tensor(x) else x for x in task.get_inputs()]


def main():
    flush = torch.empty(64 << 20, device="cuda")
    for path in sys.argv[1:]:
        name = os.path.basename(path)[:-3]
        with torch.no_grad():
            model, inputs = load(path)
            eager = cold_ms(lambda: model(*inputs), flush)
            torch.backends.cuda.matmul.allow_tf32 = True
            tf32 = cold_ms(lambda: model(*inputs), flush)
            torch.backends.cuda.matmul.allow_tf32 = False
            try:
                torch._dynamo.reset()
                compiled = torch.compile(model)
                fast = cold_ms(lambda: compiled(*inputs), flush)
            except Exception as err:  # what cannot be compiled has no figure
                fast = float("nan")
                print(f"{name}: torch.compile: {str(err).splitlines()[0]}", file=sys.stderr)
        print(f"{name} eager {eager:.4f} tf32 {tf32:.4f} ({eager / tf32:.2f}) compile {fast:.4f} ({eager / fast:.2f})", flush=True)
        del model, inputs
        torch.cuda.empty_cache()


main()
