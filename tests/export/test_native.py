# SPDX-License-Identifier: Apache-2.0
"""The loader in C against a recorded driver: argument blocks, guard, maps, limits of its words; and as torch's kernel, on CPU tensors."""

import ctypes
import hashlib
import json
import os
import shutil
import sys
import tempfile
import threading
import types
import unittest

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "..", "oracle", "exported"))
import launcher  # noqa: E402
import native  # noqa: E402
import torch  # noqa: E402

import loader  # noqa: E402

LIBRARY = os.environ.get("CUTEGEN_LOADER_LIBRARY") or os.path.join(here, "..", "..", "build", "release", "src", "loader", "cutegen-loader.so")
U64, INT, POINTER = ctypes.c_uint64, ctypes.c_int, ctypes.c_void_p
KINDS = {  # of the driver's calls
    "current": [POINTER],
    "push": [POINTER],
    "pop": [POINTER],
    "memset": [U64, ctypes.c_ubyte, ctypes.c_size_t, POINTER],
    "encode": [POINTER, INT, ctypes.c_uint32] + [POINTER] * 5 + [INT] * 4,
    "launch": [POINTER] * 4,
}


def read(kind, address):
    return kind.from_address(address).value


class Driver:
    """Writes down what it is asked. `stack`: contexts, the current one last."""

    def __init__(self, stack=(0xCA,)):
        self.calls, self.stack, self.result = [], list(stack), {}
        for name, kinds in KINDS.items():
            setattr(self, name, ctypes.CFUNCTYPE(INT, *kinds)(lambda *args, name=name: self.note(name, args)))

    def note(self, name, args):
        if name == "current":
            POINTER.from_address(args[0]).value = self.stack[-1] if self.stack else None
        elif name == "push":
            self.stack.append(args[0])
        elif name == "pop":
            self.stack.pop()
        elif name == "launch":
            args = (self.launched(*args),)
        self.calls.append((name, *args))
        return self.result.get(name, 0)

    def launched(self, config, function, params, extra):
        c = launcher._Config.from_address(config)
        attributes = (launcher._Attribute * 2).from_address(c.attributes)
        return types.SimpleNamespace(
            function=function, grid=list(c.grid), block=list(c.block), smem=c.smem, stream=c.stream, context=self.stack[-1],
            attributes=[(a.id, list(a.value)[:3]) for a in attributes[: c.attribute_count]],
            params=list((POINTER * 3).from_address(params)),
        )  # fmt: skip

    def named(self, name):
        return [call[1] if name == "launch" else call[1:] for call in self.calls if call[0] == name]


class NoTorch:
    """In place of torch's functions, for what does not call them."""

    functions = [0] * len(native._TORCH)

    def dtype(self, name):
        return list(native._DTYPES).index(name)

    def cuda(self):
        return 1


def tensor(shape=(4, 8), dtype="f32"):
    strides = [1]
    for n in reversed(shape[1:]):
        strides.insert(0, strides[0] * n)
    return {"dtype": dtype, "shape": list(shape), "strides": strides[: len(shape)], "name": "x", "role": "input"}


def launch(kernel, args, **more):
    return {"op": "launch", "kernel": kernel, "grid": [4, 2, 1], "block": [128, 1, 1], "cluster": [1, 1, 1], "smem": 0, "args": args, **more}


def case(ops, maps=(), workspace=(), inputs=2, shape=(4, 8)):
    return {
        "inputs": [tensor(shape) for _ in range(inputs)], "outputs": [tensor(shape)], "names": {"a<1>": "_Z1a", "b": "_Z1b"},
        "workspace": [{"bytes": n} for n in workspace], "ops": ops, "maps": list(maps), "scalars": [],
    }  # fmt: skip


MAP = {
    "buffer": "in0", "offset": 64, "dtype": "bf16", "dims": [16, 2], "strides_bytes": [32], "box": [16, 2],
    "element_strides": [1, 1], "swizzle": "128", "fill": "nan", "l2": "256",
}  # fmt: skip
ONE = [launch("b", [{"buffer": "in0", "offset": 0}, {"buffer": "in1", "offset": 16}, {"buffer": "out0", "offset": 0}])]
FUNCTIONS = {"a<1>": (0xA0, False), "b": (0xB0, False)}
POINTERS = [0x1000, 0x2000, 0x3000]


def made(*cases, shim=None, asked=None, refused=None):
    return native.Native(native.open_library(LIBRARY), shim or NoTorch(), launcher, {"cases": list(cases), "alignment": 256}, asked, refused)


class Launches(unittest.TestCase):
    def ready(self, what, driver=None, device=0, context=0xC0, functions=FUNCTIONS):
        driver, one = driver or Driver(), made(what)
        one.ready(0, device, driver, context, functions)
        self.addCleanup(lambda: (one, driver))  # the library has their addresses
        return driver, one

    def test_arguments_arrive_as_pointers_bytes_and_offsets(self):
        args = [{"buffer": "in1", "offset": 16}, {"bytes": "0a000000"}, {"buffer": "out0", "offset": 0}]
        driver, one = self.ready(case([launch("a<1>", args)]))
        seen = []
        before = driver.launched
        driver.launched = lambda *a: (
            seen.append([read(kind, p) for kind, p in zip((U64, ctypes.c_uint32, U64), (POINTER * 3).from_address(a[2]))]) or before(*a)
        )
        one.launch(0, 0, 0x77, POINTERS, 0)
        said = driver.named("launch")[0]
        self.assertEqual(seen, [[0x2010, 10, 0x3000]])
        self.assertEqual((said.grid, said.block, said.stream, said.function), ([4, 2, 1], [128, 1, 1], 0x77, 0xA0))

    def test_the_devices_context_is_current_while_it_launches_and_the_callers_afterwards(self):
        driver, one = self.ready(case(ONE), context=0xC1, device=1)
        one.launch(0, 1, 0, POINTERS, 0)
        self.assertEqual(driver.named("launch")[0].context, 0xC1)
        self.assertEqual(driver.stack, [0xCA])

    def test_a_context_that_is_current_already_is_left_so(self):
        driver, one = self.ready(case(ONE), context=0xCA)
        one.launch(0, 0, 0, POINTERS, 0)
        self.assertEqual([c[0] for c in driver.calls], ["current", "launch"])

    def test_clusters_overlap_and_shared_memory_are_asked_for(self):
        big = launch("a<1>", [{"bytes": "00"}] * 3, cluster=[4, 2, 1], smem=200000, overlap=True)
        driver, one = self.ready(case([big, launch("b", [{"bytes": "00"}] * 3)]), functions={"a<1>": (1, False), "b": (2, True)})
        one.launch(0, 0, 0, POINTERS, 0)
        said = driver.named("launch")
        self.assertEqual([s.attributes for s in said], [[(4, [4, 2, 1]), (6, [1, 0, 0])], [(4, [1, 1, 1])]])
        self.assertEqual([s.smem for s in said], [200000, 0])

    def test_workspaces_lie_apart_in_one_piece_and_memsets_come_in_order(self):
        ops = [
            {"op": "memset", "buffer": "ws1", "offset": 4, "bytes": 4, "value": 255},
            *ONE,
            {"op": "memset", "buffer": "out0", "offset": 0, "bytes": 0, "value": 0},
        ]
        driver, one = self.ready(case(ops, workspace=[100, 8]))
        one.launch(0, 0, 5, POINTERS, 0x10000)
        self.assertEqual([c[0] for c in driver.calls if c[0] in ("memset", "launch")], ["memset", "launch"])
        self.assertEqual(driver.named("memset"), [(0x10104, 255, 4, 5)])

    def test_launched_from_python_it_knows_its_workspace_and_case(self):
        driver, one = self.ready(case([{"op": "memset", "buffer": "ws1", "offset": 0, "bytes": 4, "value": 1}, *ONE], workspace=[100, 257, 0]))
        launching = one.launching(0, 0)
        self.assertEqual(launching.workspace_bytes, 256 + 512 + 256)
        launching.launch(5, POINTERS, 0x10000)
        self.assertEqual(driver.named("memset"), [(0x10100, 1, 4, 5)])
        self.assertEqual(driver.named("launch")[0].stream, 5)

    def test_tensor_maps_are_encoded_for_the_address_and_again_when_it_changes(self):
        driver, one = self.ready(case([launch("b", [{"map": 0}] * 3)], [MAP]))
        for pointers in (POINTERS, POINTERS, [0x5000, 0, 0]):
            one.launch(0, 0, 0, pointers, 0)
        encoded = driver.named("encode")
        self.assertEqual([c[3] for c in encoded], [0x1040, 0x5040])
        place, dtype, rank, _, dims, strides, box, _, interleave, swizzle, l2, fill = encoded[0]
        self.assertEqual((dtype, rank, interleave, swizzle, l2, fill, place % 64), (9, 2, 0, 3, 3, 1, 0))
        self.assertEqual((list((U64 * 2).from_address(dims)), read(U64, strides)), ([16, 2], 32))
        self.assertEqual(list((ctypes.c_uint32 * 2).from_address(box)), [16, 2])
        self.assertEqual(driver.named("launch")[0].params[0], place)

    def test_a_failed_launch_is_told_and_leaves_the_callers_context(self):
        driver, one = self.ready(case(ONE))
        driver.result["launch"] = 719
        with self.assertRaisesRegex(RuntimeError, "step 0.*719"):
            one.launch(0, 0, 0, POINTERS, 0)
        self.assertEqual(driver.stack, [0xCA])

    def test_threads_do_not_mix_their_addresses(self):
        driver, one = self.ready(case(ONE), context=0xCA)
        wrong = []
        driver.launched = lambda config, function, params, extra: (
            wrong.append(1) if read(U64, (POINTER * 1).from_address(params)[0]) != 0x1000 * launcher._Config.from_address(config).stream else None
        )

        def call(stream):
            for _ in range(100):
                one.launch(0, 0, stream, [stream * 0x1000, 0, 0], 0)

        threads = [threading.Thread(target=call, args=(n,)) for n in (1, 2, 3)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])


class Limits(unittest.TestCase):
    """A launch list is data from a file: what leaves its limits is refused, with the reason."""

    def refused(self, what, reason):
        with self.assertRaisesRegex(native.Unavailable, reason):
            made(what)

    def test_offsets_buffers_and_memsets_stay_in_their_buffers(self):
        self.refused(case([launch("b", [{"buffer": "in0", "offset": 129}])]), "an offset 129, not 0 to 128")
        self.refused(case([launch("b", [{"buffer": "in0", "offset": -1}])]), "an offset -1")
        self.refused(case([launch("b", [{"buffer": "in3", "offset": 0}])]), "a buffer 3, not 0 to 2")
        self.refused(case([{"op": "memset", "buffer": "out0", "offset": 64, "bytes": 65, "value": 0}]), "bytes to set 65, not 0 to 64")

    def test_maps_stay_in_their_buffers_and_are_there(self):
        self.refused(case([launch("b", [{"map": 1}])], [MAP]), "a map 1, not 0 to 0")
        self.refused(case([], [dict(MAP, dims=[16, 4])]), "leaves its buffer")
        self.refused(case([], [dict(MAP, strides_bytes=[1 << 39], dims=[16, 1 << 32])]), "leaves its buffer")
        self.refused(case([], [dict(MAP, box=[512, 1])]), "a map's box 512")

    def test_launches_have_the_hardwares_sizes(self):
        for more, reason in (
            ({"grid": [0, 1, 1]}, "a grid 0"),
            ({"grid": [1, 70000, 1]}, "a grid 70000"),
            ({"block": [1024, 2, 1]}, "more than 1024 threads"),
            ({"cluster": [17, 1, 1]}, "a cluster 17"),
            ({"smem": 1 << 30}, "shared memory"),
        ):
            self.refused(case([launch("b", [], **more)]), reason)

    def test_a_network_of_many_tensors_is_taken_and_too_many_are_not(self):
        self.assertEqual(len(made(case([launch("b", [{"buffer": "in199", "offset": 0}])], inputs=200)).kernels), 1)
        self.refused(case(ONE, inputs=300), "300 inputs and 1 outputs are not within its limits")

    def test_sizes_that_no_memory_has_are_refused(self):
        self.refused(case(ONE, shape=(1 << 40, 1 << 40)), "larger than memory|a stride")
        self.refused(case(ONE, workspace=[1 << 62]), "bytes of a workspace")

    def test_any_end_and_any_changed_word_is_refused_or_harmless(self):
        library, numbers = native.open_library(LIBRARY), {name: k for k, name in enumerate(native._DTYPES)}
        words, blob, _ = native.case_words(case([*ONE, launch("a<1>", [{"bytes": "0a"}, {"map": 0}])], [MAP], [8]), numbers, launcher)
        slot = made(case(ONE)).slot
        room = ctypes.create_string_buffer(1 << 16)

        def taken(words):
            return library.loader_case(slot, (ctypes.c_int64 * len(words))(*words), len(words), blob, len(blob), room, len(room)) >= 0

        self.assertTrue(all(not taken(words[:n]) for n in range(len(words))))
        self.assertFalse(taken([*words, 0]))
        for at in range(len(words)):
            self.assertFalse(taken([*words[:at], -1, *words[at + 1 :]]), at)
            taken([*words[:at], (1 << 63) - 1, *words[at + 1 :]])
        self.assertTrue(taken(words))

    def test_too_little_memory_is_refused(self):
        library, words = native.open_library(LIBRARY), native.case_words(case(ONE), dict.fromkeys(native._DTYPES, 0), launcher)[0]
        slot, room = made(case(ONE)).slot, ctypes.create_string_buffer(1 << 16)
        taken = [library.loader_case(slot, (ctypes.c_int64 * len(words))(*words), len(words), b"", 0, room, n) >= 0 for n in range(0, 60000, 500)]
        self.assertEqual(sorted(taken), taken)
        self.assertEqual((taken[0], taken[-1]), (False, True))


def has_shim():
    try:
        return native.Shim()
    except native.Unavailable as err:
        return err


SHIM = has_shim()


class Opening(unittest.TestCase):
    """Which exports have their operator in C, and what the others say."""

    def opened(self, damage=b"", name=None, **more):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        path = os.path.join(folder, name or native.file_name())
        shutil.copy(LIBRARY, path)
        with open(path, "rb") as file:
            known = hashlib.sha256(file.read()).hexdigest()
        with open(path, "ab") as file:
            file.write(damage)
        with open(os.path.join(folder, "record.json"), "w") as file:
            json.dump({"files": {os.path.basename(path): known}}, file)
        one = loader.Export.__new__(loader.Export)
        one.folder, one.launcher, one.native, one.namespace = folder, launcher, None, f"cutegen_opening_{os.path.basename(folder)}"
        one.table, one.listed = {"cases": [case(ONE, **more)], "alignment": 256}, False
        self.library = torch.library.Library(one.namespace, "DEF")
        self.library.define("run(Tensor a, Tensor b) -> Tensor")
        keep.append((one, self.library))
        one._open_native(native)
        return one.how

    def test_without_the_processors_file_it_is_python_and_says_so(self):
        self.assertRegex(self.opened(name="loader-pdp11.so"), f"^python: this export has no {native.file_name()}")

    def test_it_can_be_asked_for(self):
        os.environ["CUTEGEN_LOADER"] = "python"
        self.addCleanup(os.environ.pop, "CUTEGEN_LOADER")
        self.assertRegex(self.opened(), "^python: CUTEGEN_LOADER")

    def test_another_file_than_the_records_is_not_loaded(self):
        if isinstance(SHIM, native.Unavailable):
            self.assertRegex(self.opened(b"x"), "^python: this PyTorch")
        else:
            with self.assertRaisesRegex(RuntimeError, "was changed after the export"):
                self.opened(b"x")

    def test_it_is_native_where_torch_has_the_functions_and_the_list_passes(self):
        if isinstance(SHIM, native.Unavailable):
            self.assertRegex(self.opened(), "^python: this PyTorch.* has no ")
        else:
            self.assertEqual(self.opened(), "native")
            self.assertRegex(self.opened(workspace=[1 << 62]), "^python: the launch list has bytes of a workspace")


@unittest.skipIf(isinstance(SHIM, native.Unavailable), f"the operator in C: {SHIM}")
class Operator(unittest.TestCase):
    """As torch's kernel: on CPU tensors that pass for a GPU's, with the recorded driver."""

    count = 0

    def setUp(self):
        Operator.count += 1
        self.space, self.driver, self.asked, self.refusals = f"cutegen_native_{Operator.count}", Driver(), [], []
        self.index = ctypes.CFUNCTYPE(ctypes.c_int32, POINTER, POINTER)(self._index)
        self.stream = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32, POINTER)(self._stream)
        self.shim = shim = native.Shim()
        shim.functions[native._TORCH.index("aoti_torch_get_device_index")] = native.address(self.index)
        shim.functions[native._TORCH.index("aoti_torch_get_current_cuda_stream")] = native.address(self.stream)
        shim.cuda = shim.find("aoti_torch_device_type_cpu")
        self.case = case(ONE, workspace=[64])
        self.native = made(self.case, case(ONE, shape=(2, 8)), shim=shim, asked=self.prepare, refused=self.refuse)
        self.library = torch.library.Library(self.space, "DEF")
        self.library.define("run(Tensor a, Tensor b) -> Tensor")
        self.native.register(self.space, "run", "CPU")
        self.run_ = getattr(torch.ops, self.space).run.default
        keep.append((self.native, self.driver, self.index, self.stream, self.library))

    def _index(self, tensor, out):
        ctypes.c_int32.from_address(out).value = 0
        return 0

    def _stream(self, device, out):
        POINTER.from_address(out).value = 0x57
        return 0

    def prepare(self, number, device):
        self.asked.append((number, device))
        self.native.ready(number, device, self.driver, 0xC0, FUNCTIONS)

    def refuse(self, tensors):
        self.refusals.append([(t.dtype, t.shape, t.dim()) for t in tensors])
        raise ValueError(f"judged for [4, 8], got {list(tensors[0].shape)}")

    def aligned(self, shape=(4, 8), shift=0):
        room = torch.zeros(256 + 64 + 4 * shape[0] * shape[1], dtype=torch.uint8)
        at = -room.data_ptr() % 256 + shift
        return room[at : at + 4 * shape[0] * shape[1]].view(torch.float32).view(shape)

    def pointers(self):
        return [read(U64, p) for p in self.driver.named("launch")[-1].params]

    def test_a_call_prepares_once_and_launches_on_torchs_stream_with_the_tensors_addresses(self):
        a, b = self.aligned(), self.aligned()
        out = self.run_(a, b)
        self.run_(a, b)
        self.assertEqual(self.asked, [(0, 0)])
        self.assertEqual((tuple(out.shape), out.stride(), out.dtype), ((4, 8), (8, 1), torch.float32))
        self.assertEqual([s.stream for s in self.driver.named("launch")], [0x57, 0x57])
        again = self.run_(a, b)
        self.assertEqual(self.pointers(), [a.data_ptr(), b.data_ptr() + 16, again.data_ptr()])
        self.run_(self.aligned((2, 8)), self.aligned((2, 8)))
        self.assertEqual(self.asked, [(0, 0), (1, 0)])

    def test_other_strides_and_addresses_are_copied(self):
        b = self.aligned()
        for a in (self.aligned((8, 4)).t(), self.aligned(shift=4)):
            self.run_(a, b)
            first, second, _ = self.pointers()
            self.assertNotEqual(first, a.data_ptr())
            self.assertEqual(second, b.data_ptr() + 16)

    def test_the_inputs_belong_to_their_owners_again_afterwards(self):
        a, b = self.aligned(), self.aligned()
        before = sys.getrefcount(a), a._use_count() if hasattr(a, "_use_count") else 0
        for _ in range(50):
            self.run_(a, b)
        self.assertEqual((sys.getrefcount(a), a._use_count() if hasattr(a, "_use_count") else 0), before)

    def test_what_was_not_judged_is_refused_in_the_loaders_words(self):
        with self.assertRaisesRegex(RuntimeError, r"judged for \[4, 8\], got \[5, 8\]"):
            self.run_(torch.zeros(5, 8), self.aligned())
        with self.assertRaisesRegex(RuntimeError, "judged for"):
            self.run_(self.aligned().half(), self.aligned())
        self.assertEqual(self.refusals[1][0], (torch.float16, (4, 8), 2))
        self.assertEqual(self.driver.named("launch"), [])

    def test_an_error_while_loading_reaches_the_caller_and_the_next_call_tries_again(self):
        before, self.native.asked = self.native.asked, lambda number, device: (_ for _ in ()).throw(RuntimeError("not the code that was judged"))
        with self.assertRaisesRegex(RuntimeError, "not the code that was judged"):
            self.run_(self.aligned(), self.aligned())
        self.native.asked = before
        self.run_(self.aligned(), self.aligned())

    def test_a_failed_launch_raises(self):
        self.driver.result["launch"] = 719
        with self.assertRaisesRegex(RuntimeError, "driver error 719"):
            self.run_(self.aligned(), self.aligned())

    def test_memory_that_torch_does_not_give_is_told_and_the_next_call_works(self):
        none = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int64, POINTER, POINTER, *[ctypes.c_int32] * 3, POINTER)(lambda *args: 1)
        keep.append(none)

        def torch_has(functions):
            self.native.library.loader_torch(native.table(functions), len(functions), self.shim.cuda(), self.native.dtypes["u8"])

        self.addCleanup(torch_has, self.shim.functions)
        functions = list(self.shim.functions)
        functions[native._TORCH.index("aoti_torch_empty_strided")] = native.address(none)
        torch_has(functions)
        with self.assertRaisesRegex(RuntimeError, "torch gave no memory, 128 bytes on cuda:0.*fork"):
            self.run_(self.aligned(), self.aligned())
        self.assertEqual(self.driver.named("launch"), [])
        torch_has(self.shim.functions)
        self.assertEqual(tuple(self.run_(self.aligned(), self.aligned()).shape), (4, 8))


keep = []  # torch keeps the kernels; their functions must stay

if __name__ == "__main__":
    unittest.main()
