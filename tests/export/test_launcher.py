# SPDX-License-Identifier: Apache-2.0
"""The loader's launches against a recorded driver: device guard, stream, argument blocks, attributes, memsets, tensor maps, captures, errors."""

import ctypes
import os
import sys
import threading
import types
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "oracle", "exported"))
import launcher  # noqa: E402

import loader  # noqa: E402


def read(kind, address):
    return kind.from_address(address).value


class Recorded:
    """A driver that writes down what it is asked, and does what little must be done."""

    def __init__(self, fail=None):
        self.calls, self.stack, self.fail = [], [], fail or {}
        for name in launcher._CALLS:
            if not hasattr(self, name):
                setattr(self, name, lambda *args, name=name: self._note(name, *args))

    def _note(self, name, *args):
        self.calls.append((name, *args))
        return self.fail.get(name, 0)

    def device(self, out, index):
        ctypes.c_int.from_address(out).value = index + 10
        return self._note("device", index)

    def retain(self, out, device):
        ctypes.c_void_p.from_address(out).value = 0xC0 + device
        return self._note("retain", device)

    def push(self, context):
        self.stack.append(context)
        return self._note("push", context)

    def pop(self, out):
        return self._note("pop", self.stack.pop())

    def load(self, out, image):
        ctypes.c_void_p.from_address(out).value = 0x30
        return self._note("load", ctypes.string_at(image, 4))

    def function(self, out, module, name):
        ctypes.c_void_p.from_address(out).value = {b"_Z1a": 0xA0, b"_Z1b": 0xB0}[name]
        return self._note("function", name)

    def attribute(self, out, which, function):
        ctypes.c_int.from_address(out).value = 0
        return self._note("attribute", which, function)

    def launch(self, config, function, params, extra):
        c = launcher._Config.from_address(config)
        attributes = (launcher._Attribute * max(1, c.attribute_count)).from_address(c.attributes)
        pointers = (ctypes.c_void_p * 3).from_address(params)
        said = {
            "function": function,
            "grid": list(c.grid),
            "block": list(c.block),
            "smem": c.smem,
            "stream": c.stream,
            "attributes": [(a.id, list(a.value)[:3]) for a in attributes[: c.attribute_count]],
            "context": self.stack[-1],
            "params": list(pointers),
        }
        said["pointer"] = read(ctypes.c_uint64, pointers[0])
        return self._note("launch", said)

    def error_name(self, result, out):
        return 0

    def error_text(self, result, out):
        return 0

    def named(self, name):
        return [call for call in self.calls if call[0] == name]


def launch(kernel, args, **more):
    return {"op": "launch", "kernel": kernel, "grid": [4, 2, 1], "block": [128, 1, 1], "cluster": [1, 1, 1], "smem": 0, "args": args, **more}


TENSOR = {"dtype": "f32", "shape": [4, 8], "strides": [8, 1]}


def case(ops, maps=(), workspace=(), tensor=TENSOR):
    return {
        "inputs": [tensor, tensor],
        "outputs": [tensor],
        "names": {"a<1>": "_Z1a", "b": "_Z1b"},
        "workspace": [{"bytes": n} for n in workspace],
        "ops": ops,
        "maps": list(maps),
    }


POINTERS = [0x1000, 0x2000, 0x3000]
MAP = {
    "buffer": "in0", "offset": 64, "dtype": "bf16", "dims": [16, 2], "strides_bytes": [32], "box": [16, 2],
    "element_strides": [1, 1], "swizzle": "128", "fill": "nan", "l2": "256",
}  # fmt: skip


class Limits(unittest.TestCase):
    """What the library in C refuses is not launched from Python instead."""

    def refused(self, what, reason):
        driver = Recorded()
        with self.assertRaisesRegex(RuntimeError, f"{reason}.*launches.json is not what was judged"):
            launcher.Launcher(launcher.Module(driver, 0, b"ELF!"), what)
        self.assertEqual(driver.named("launch"), [])

    def test_places_stay_in_their_buffers(self):
        for arg, reason in (
            ({"buffer": "in0", "offset": 129}, "an offset 129, not 0 to 128"),
            ({"buffer": "in0", "offset": -1}, "an offset -1"),
            ({"buffer": "in0", "offset": 1.0}, "an offset 1.0"),
            ({"buffer": "in0", "offset": True}, "an offset True"),
            ({"buffer": "in2", "offset": 0}, "a buffer 'in2'"),
            ({"buffer": "in-1", "offset": 0}, "a buffer 'in-1'"),
            ({"buffer": ["in0"], "offset": 0}, "a buffer"),
            ({"map": -1}, "a map -1"),
        ):
            self.refused(case([launch("b", [arg])], [MAP]), reason)
        self.refused(case([{"op": "memset", "buffer": "out0", "offset": 64, "bytes": 65, "value": 0}]), "bytes to set 65, not 0 to 64")
        self.refused(case([{"op": "memset", "buffer": "ws0", "offset": 0, "bytes": 9, "value": 0}], workspace=[8]), "bytes to set 9")
        self.refused(case([], workspace=[1 << 62]), "bytes of a workspace")
        self.refused(case([], workspace=[-8]), "bytes of a workspace")
        self.refused(case([{"op": "copy"}]), "a step 'copy'")

    def test_maps_stay_in_their_buffers(self):
        self.refused(case([], [dict(MAP, dims=[16, 4])]), "leaves its buffer")
        self.refused(case([], [dict(MAP, strides_bytes=[1 << 39], dims=[16, 1 << 32])]), "leaves its buffer")
        self.refused(case([], [dict(MAP, strides_bytes=[])]), "a map's stride")
        self.refused(case([], [dict(MAP, box=[512, 1])]), "a map's box 512")
        self.refused(case([], [dict(MAP, swizzle="96")]), "a map's swizzle")

    def test_launches_have_the_hardwares_sizes(self):
        for more, reason in (
            ({"grid": [0, 1, 1]}, "a grid 0"),
            ({"grid": [1, 70000, 1]}, "a grid 70000"),
            ({"grid": [1, 1]}, "a grid"),
            ({"grid": [10**30, 1, 1]}, "a grid 1000"),
            ({"block": [1024, 2, 1]}, "threads of a block 2048"),
            ({"cluster": [17, 1, 1]}, "a cluster 17"),
            ({"smem": 1 << 30}, "shared memory"),
        ):
            self.refused(case([launch("b", [], **more)]), reason)
        self.refused(case([launch("c", [])]), "a kernel 'c'")


class Launches(unittest.TestCase):
    def made(self, what, device=0, driver=None):
        driver = driver or Recorded()
        return driver, launcher.Launcher(launcher.Module(driver, device, b"ELF!"), what)

    def test_arguments_arrive_as_pointers_bytes_and_offsets(self):
        args = [{"buffer": "in1", "offset": 16}, {"bytes": "0a000000"}, {"buffer": "out0", "offset": 0}]
        driver, launcher = self.made(case([launch("a<1>", args)]))
        launcher.launch(0x77, POINTERS, 0)
        said = driver.named("launch")[0][1]
        self.assertEqual(said["pointer"], 0x2010)
        self.assertEqual(read(ctypes.c_uint32, said["params"][1]), 10)
        self.assertEqual(read(ctypes.c_uint64, said["params"][2]), 0x3000)
        self.assertEqual((said["grid"], said["block"], said["stream"]), ([4, 2, 1], [128, 1, 1], 0x77))

    def test_each_call_has_its_own_addresses_and_stream(self):
        driver, launcher = self.made(case([launch("b", [{"buffer": "in0", "offset": 0}] * 3)]))
        launcher.launch(1, POINTERS, 0)
        launcher.launch(2, [0x9000, 0, 0], 0)
        first, second = (call[1] for call in driver.named("launch"))
        self.assertEqual([(first["stream"], first["pointer"]), (second["stream"], second["pointer"])], [(1, 0x1000), (2, 0x9000)])

    def test_the_device_of_the_tensors_is_current_while_it_launches_and_the_callers_afterwards(self):
        driver = Recorded()
        driver.stack.append(0xCA)  # what the caller has
        _, zero = self.made(case([launch("b", [{"buffer": "in0", "offset": 0}] * 3)]), 0, driver)
        _, one = self.made(case([launch("b", [{"buffer": "in0", "offset": 0}] * 3)]), 1, driver)
        one.launch(0, POINTERS, 0)
        zero.launch(0, POINTERS, 0)
        self.assertEqual([call[1]["context"] for call in driver.named("launch")], [0xC0 + 11, 0xC0 + 10])
        self.assertEqual(driver.stack, [0xCA])

    def test_clusters_shared_memory_and_overlap_are_asked_for(self):
        big = launch("a<1>", [{"bytes": "00"}] * 3, cluster=[16, 1, 1], smem=200000, overlap=True)
        driver, launcher = self.made(case([big, launch("a<1>", [{"bytes": "00"}] * 3, smem=100)]))
        self.assertEqual([c[1:] for c in driver.named("set_attribute")], [(0xA0, 8, 200000), (0xA0, 14, 1)])
        launcher.driver.launch = lambda config, function, params, extra: driver.calls.append(
            ("config", [(a.id, list(a.value)[:3]) for a in self.attributes(config)])
        )
        launcher.launch(0, POINTERS, 0)
        self.assertEqual([c[1] for c in driver.named("config")], [[(4, [16, 1, 1]), (6, [1, 0, 0])], []])

    @staticmethod
    def attributes(config):
        c = launcher._Config.from_address(config)
        return list((launcher._Attribute * 2).from_address(c.attributes))[: c.attribute_count]

    def test_workspaces_lie_apart_in_one_piece_and_memsets_come_in_order(self):
        ops = [
            {"op": "memset", "buffer": "ws1", "offset": 4, "bytes": 8, "value": 255},
            launch("b", [{"buffer": "ws1", "offset": 0}] * 3),
            {"op": "memset", "buffer": "out0", "offset": 0, "bytes": 0, "value": 0},
        ]
        driver, launcher = self.made(case(ops, workspace=[100, 12]))
        self.assertEqual(launcher.workspace_bytes, 512)
        launcher.launch(5, POINTERS, 0x10000)
        self.assertEqual([c[0] for c in driver.calls if c[0] in ("memset", "launch")], ["memset", "launch"])
        self.assertEqual(driver.named("memset")[0][1:], (0x10104, 255, 8, 5))
        self.assertEqual(driver.named("launch")[0][1]["pointer"], 0x10100)

    def test_tensor_maps_are_encoded_for_the_address_and_again_when_it_changes(self):
        one = {
            "buffer": "in0", "offset": 64, "dtype": "bf16", "dims": [64, 32], "strides_bytes": [128], "box": [64, 8],
            "element_strides": [1, 1], "swizzle": "128", "fill": "nan", "l2": "256",
        }  # fmt: skip
        driver, launcher = self.made(case([launch("b", [{"map": 0}] * 3)], [one], tensor=dict(TENSOR, shape=[33, 32], strides=[32, 1])))
        launcher.launch(0, POINTERS, 0)
        launcher.launch(0, POINTERS, 0)
        launcher.launch(0, [0x5000, 0, 0], 0)
        encoded = driver.named("encode")
        self.assertEqual([c[4] for c in encoded], [0x1040, 0x5040])
        place, dtype, rank, _, dims, strides, box, _, interleave, swizzle, l2, fill = encoded[0][1:]
        self.assertEqual((dtype, rank, interleave, swizzle, l2, fill), (9, 2, 0, 3, 3, 1))
        self.assertEqual(place % 64, 0)
        self.assertEqual(list((ctypes.c_uint64 * 2).from_address(dims)), [64, 32])
        self.assertEqual(read(ctypes.c_uint64, strides), 128)
        self.assertEqual(list((ctypes.c_uint32 * 2).from_address(box)), [64, 8])
        self.assertEqual(driver.named("launch")[0][1]["params"][0], place)

    def test_loading_inside_a_capture_is_relaxed_and_restored(self):
        modes = []
        driver = Recorded()
        driver.capture_mode = lambda address: modes.append(read(ctypes.c_int, address)) or 0
        self.made(case([launch("b", [{"bytes": "00"}] * 3)]), 0, driver)
        self.assertEqual(len(modes) % 2, 0)
        self.assertEqual(modes[0], 2)

    def test_a_failed_launch_names_the_kernel_and_leaves_the_callers_context(self):
        driver, launcher = self.made(case([launch("b", [{"bytes": "00"}] * 3)]))
        driver.launch = lambda *args: 719
        with self.assertRaisesRegex(RuntimeError, r"launching b: .*719"):
            launcher.launch(0, POINTERS, 0)
        self.assertEqual(driver.stack, [])
        self.assertFalse(launcher.lock.locked())

    def test_threads_do_not_mix_their_addresses(self):
        driver, launcher = self.made(case([launch("b", [{"buffer": "in0", "offset": 0}] * 3)]))
        wrong = []

        def call(stream):
            for _ in range(200):
                launcher.launch(stream, [stream * 0x1000, 0, 0], 0)

        driver.launch = lambda config, function, params, extra: (
            wrong.append(1)
            if read(ctypes.c_uint64, (ctypes.c_void_p * 1).from_address(params)[0]) != 0x1000 * launcher._Config.from_address(config).stream
            else None
        ) or 0
        threads = [threading.Thread(target=call, args=(n,)) for n in (1, 2, 3)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])


class Places(unittest.TestCase):
    """Which GPUs a kernel runs on."""

    def export(self, ptx=None, **device):
        made = loader.Export.__new__(loader.Export)
        made.device = {"kind": "cuda", "name": "NVIDIA H200", "arch": "sm_90a", "sm_count": 132}
        made.cases = [{"module": 0}]
        made.table = {"modules": [{"file": "kernel-0.cubin", **({} if ptx is None else {"ptx": ptx})}]}
        made.warned = set()
        here = types.SimpleNamespace(name=device.get("name", "NVIDIA H200"), multi_processor_count=device.get("sms", 132))
        self.before = loader.torch.cuda.get_device_capability, loader.torch.cuda.get_device_properties
        self.addCleanup(self.restore)
        loader.torch.cuda.get_device_capability = lambda index: device.get("capability", (9, 0))
        loader.torch.cuda.get_device_properties = lambda index: here
        return made

    def restore(self):
        loader.torch.cuda.get_device_capability, loader.torch.cuda.get_device_properties = self.before

    def test_its_own_gpu(self):
        self.assertEqual(self.export()._code_for(0, 0), 0)

    def test_another_architecture_is_refused(self):
        with self.assertRaisesRegex(RuntimeError, r"sm_90a.*that architecture only; this is NVIDIA A100 \(sm_80\).*cutegen export"):
            self.export(capability=(8, 0), name="NVIDIA A100")._code_for(0, 0)

    def test_ptx_is_used_only_where_it_was_asked_for_and_is_called_not_judged(self):
        with self.assertWarnsRegex(UserWarning, "NOT judged"):
            self.assertEqual(self.export(1, capability=(10, 0), name="NVIDIA B200")._code_for(0, 0), 1)

    def test_fewer_multiprocessors_are_refused(self):
        with self.assertRaisesRegex(RuntimeError, "132 SMs; NVIDIA H100 PCIe has 114"):
            self.export(name="NVIDIA H100 PCIe", sms=114)._code_for(0, 0)

    def test_another_gpu_of_the_same_architecture_is_told(self):
        with self.assertWarnsRegex(UserWarning, "judged on NVIDIA H200, not on NVIDIA H100"):
            self.export(name="NVIDIA H100", sms=132)._code_for(0, 0)



class Stub:
    """As much of a tensor on a GPU as is asked of one."""

    def __init__(self, shape=(4, 8), stride=(8, 1), dtype=loader.torch.float32, pointer=0x1000, device=0, requires_grad=False, negative=False):
        self.shape, self.dtype, self.requires_grad, self.device = shape, dtype, requires_grad, f"cuda:{device}"
        self.is_neg = lambda: negative
        self.stride, self.data_ptr, self.get_device = lambda: stride, lambda: pointer, lambda: device


class Direct(unittest.TestCase):
    """Launched without the operator's dispatch: only what was judged, and nobody of torch's looks on."""

    def setUp(self):
        self.before = loader._PLAIN_TENSORS
        loader._PLAIN_TENSORS = (Stub,)
        self.made = loader.Export.__new__(loader.Export)
        kind = ((4, 8), loader.torch.float32, (8, 1))
        self.made.kinds = [[((2, 8), loader.torch.float32, (8, 1)), kind], [kind, kind]]
        self.made.alignment, self.made.modes, self.made.native = 256, (lambda: 0, lambda: None), None
        self.made._queued = lambda number, place, device, pointers: (number, place, device, pointers)

    def tearDown(self):
        loader._PLAIN_TENSORS = self.before

    def test_the_case_of_these_shapes_is_launched_where_the_tensors_are(self):
        self.assertEqual(self.made._directly([Stub(device=1), Stub(pointer=0x2000, device=1)]), (1, "cuda:1", 1, [0x1000, 0x2000]))
        self.assertEqual(self.made._directly([Stub(shape=(2, 8)), Stub()])[0], 0)

    def test_what_has_to_be_copied_or_refused_is_left_to_the_operator(self):
        for other in ({"shape": (5, 8)}, {"stride": (1, 4)}, {"dtype": loader.torch.float16}, {"pointer": 0x1080}, {"device": 1}, {"negative": True}, {"pointer": 0}):
            self.assertIsNone(self.made._directly([Stub(), Stub(**other)]), other)
        self.assertIsNone(self.made._directly([Stub(device=-1), Stub(device=-1)]))

    def test_so_is_what_autograd_a_mode_a_subclass_or_a_tangent_wants_to_see(self):
        self.assertIsNone(self.made._directly([Stub(), Stub(requires_grad=True)]))
        with loader.torch.no_grad():
            self.assertIsNotNone(self.made._directly([Stub(), Stub(requires_grad=True)]))
        self.assertIsNone(self.made._directly([Stub(), type("Sub", (Stub,), {})()]))
        with loader.forward_ad.dual_level():
            self.assertIsNone(self.made._directly([Stub(), Stub()]))
        self.made.modes = (lambda: 0, lambda: object())
        self.assertIsNone(self.made._directly([Stub(), Stub()]))


if __name__ == "__main__":
    unittest.main()
