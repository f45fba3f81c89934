"""What an exported module does on a CPU, through simt: called by export_test.sh with the module's path. Prints one word per fact."""
import importlib.util
import os
import shutil
import sys
import tempfile

import torch


def load(path):
    spec = importlib.util.spec_from_file_location("exported", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main():
    m = load(sys.argv[1])
    load(sys.argv[1])
    print("loads-twice")
    model, new = m.Model(m.N), m.ModelNew(m.N)
    new.load_state_dict(model.state_dict())
    pair = m.get_inputs()[0]
    want, got = model(pair), new(pair)
    if list(got) == ["sum", "difference"] and all(torch.allclose(got[k], want[k], atol=1e-6) for k in want):
        print("same-result")
    if torch.allclose(new(pair, alpha=2.0)["sum"], model(pair, 2.0)["sum"], atol=1e-6):
        print("keyword-scalar")
    for other, word in (([pair[0][:7], pair[1][:7]], "shape"), ([pair[0].double(), pair[1]], "dtype")):
        try:
            new(other)
            print(f"{word}-taken")
        except ValueError as err:
            print(f"{word}-refused" if "built for" in str(err) or "takes" in str(err) else str(err))
        except RuntimeError:
            print(f"{word}-left-to-the-reference")  # which cannot do it either
    operator = getattr(torch.ops, [n for n in dir(m) if n == "_CUTEGEN_LIBRARY"] and m._CUTEGEN_LIBRARY.ns, None)
    if operator and hasattr(operator, "run"):
        print("operator")
    os.environ["TORCH_EXTENSIONS_DIR"] = tempfile.mkdtemp()
    folder = m._cutegen_headers()
    seen = os.stat(os.path.join(folder, "cutegen", "kernel.h"))
    if m._cutegen_headers() == folder and os.stat(os.path.join(folder, "cutegen", "kernel.h")) == seen:
        print("headers-stay")
    shutil.rmtree(os.environ["TORCH_EXTENSIONS_DIR"])
    if hasattr(torch, "compile"):
        shapes = operator.run([t.to("meta") for t in pair] + [model.inner.weight.detach().to("meta")], [1], [0.5], m._CUTEGEN_OUTPUTS)
        print("shape-function" if [list(s.shape) for s in shapes] == [[m.N], [m.N]] else "bad-shapes")


main()
