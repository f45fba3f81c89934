# SPDX-License-Identifier: Apache-2.0
"""A plan in Python without its language: tensors that have sizes, and the PTX of several kernels as one module."""

import ctypes
import struct
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from oracle.plan_launch import arguments_of, map_of  # noqa: E402
from oracle.plan_objects import SIZES, Plan, PlanError  # noqa: E402
from oracle.plan_ptx import Joined, parameter_count, parameters  # noqa: E402

OWN = "/w/candidate.py"


def module(name: str, align: int, files: str) -> str:
    return f""".version 8.7
.target sm_80
.address_size 64

\t// .globl\t{name}
.extern .shared .align {align} .b8 global_smem[];
.global .align 4 .b8 table[2] = {{1, 2}};
.visible .entry {name}(
\t.param .u64 .ptr .global .align 1 {name}_param_0,
\t.param .u32 {name}_param_1
)
.reqntid 128
{{
\t.loc\t1 9 0                           // candidate.py:9:0
\tld.param.b64 \t%rd5, [{name}_param_0];
\tmov.b64 \t%rd6, table;
\t.loc\t2 261 15                        // standard.py:261:15 @[ candidate.py:12:18 ]
\tret;
\t.loc\t2 30 1                          // standard.py:30:1
}}
{files}\t.section\t.debug_info
\t{{
.b8 1                                   // text
\t}}
\t.section\t.debug_macinfo\t{{\t}}
"""


FILES = f'\t.file\t1 "{OWN}"\n\t.file\t2 "/lib/standard.py"\n'
TURNED = f'\t.file\t2 "{OWN}"\n\t.file\t1 "/lib/standard.py"\n'


class Modules(unittest.TestCase):
    def test_names_that_two_modules_have_get_a_number(self) -> None:
        joined = Joined(OWN)
        self.assertEqual([joined.add(module("k", 16, FILES)), joined.add(module("k", 128, FILES))], ["k", "k_2"])
        text = joined.text()
        self.assertIn("[k_param_0]", text)
        self.assertIn("[k_2_param_0]", text)
        self.assertIn("mov.b64 \t%rd6, table_2;", text)
        self.assertEqual(text.count(".version"), 1)
        self.assertEqual(text.count("global_smem[]"), 1)
        self.assertIn(".align 128 .b8 global_smem", text)

    def test_lines_are_the_candidates_own_where_it_called(self) -> None:
        joined = Joined(OWN)
        joined.add(module("k", 16, FILES))
        text = joined.text()
        self.assertIn(".loc\t1 9 0\n", text)
        self.assertIn(".loc\t1 12 18\n", text)
        self.assertIn(".loc\t2 30 1\n", text)
        self.assertNotIn(".section", text)

    def test_lines_of_assembly_count_for_the_statement_that_has_it(self) -> None:
        joined = Joined(OWN)
        inner = "\t// begin inline asm\n\t.loc\t1 9 0\n\tmov.u32 %r1, 0x0;\n\t.loc\t1 10 0\n\tmov.u32 %r2, 0x0;\n\t// end inline asm\n"
        joined.add(module("k", 16, FILES).replace("\tret;\n", inner + "\tret;\n"))
        text = joined.text()
        self.assertIn("asm\n\tmov.u32 %r1, 0x0;\n\tmov.u32 %r2, 0x0;\n\t// end", text)
        self.assertNotIn(".loc\t1 10 0", text)
        self.assertIn(".loc\t1 9 0\n", text)

    def test_files_are_known_by_name_not_by_number(self) -> None:
        joined = Joined(OWN)
        joined.add(module("k", 16, TURNED))
        self.assertIn(".loc\t1 261 15\n", joined.text())

    def test_a_module_has_several_kernels_and_they_get_the_names_wanted(self) -> None:
        two = module("long_one", 16, "") + module("long_two", 32, "").split(".address_size 64\n")[1].replace("table", "other")
        joined = Joined(OWN)
        self.assertEqual(joined.add_all(two, lambda name: "k"), {"long_one": "k", "long_two": "k_2"})
        self.assertIn("[k_2_param_0]", joined.text())
        self.assertNotIn("long", joined.text().replace("// .globl\tlong", ""))

    def test_parameters_have_sizes(self) -> None:
        text = ".visible .entry k(\n\t.param .align 64 .b8 k_param_0[128],\n\t.param .f32 k_param_1,\n\t.param .u64 .ptr .global .align 1 k_param_2\n)\n{"
        self.assertEqual(parameters(text, "k"), [(128, ""), (4, "float"), (8, "int")])

    def test_parameters_are_counted(self) -> None:
        self.assertEqual(parameter_count(module("k", 16, FILES)), 2)


def a_plan() -> Plan:
    tensor = {"name": "x", "dtype": "f16", "shape": [4, 6], "strides": [6, 1]}
    request = {"inputs": [tensor], "outputs": [{**tensor, "strides": [1, 4]}], "scalars": [{"value": 3}], "device": {"arch": 90}}
    return Plan(request, {code: code for code in SIZES}, OWN)


class Plans(unittest.TestCase):
    def test_a_tensor_has_sizes(self) -> None:
        p = a_plan()
        (x,), (y,) = p.inputs, p.outputs
        self.assertEqual((x.shape, x.stride(0), x.numel(), x.element_size(), x.ndim), ((4, 6), 6, 24, 2, 2))
        self.assertTrue(x.is_contiguous())
        self.assertFalse(y.is_contiguous())
        self.assertEqual(x.at(3).offset, 6)
        self.assertEqual((p.scalars, p.device.arch), ((3,), 90))

    def test_a_tensor_has_no_data(self) -> None:
        with self.assertRaisesRegex(AttributeError, "no data"):
            a_plan().inputs[0].cpu()

    def test_workspace_is_counted_and_cleared(self) -> None:
        p = a_plan()
        p.workspace(2, 3).zero_()
        p.add({"op": "launch"})
        self.assertEqual(p.launches()["workspace"], [{"bytes": 24}])
        self.assertEqual(p.launches()["ops"][0]["bytes"], 24)

    def test_a_plan_launches_something(self) -> None:
        with self.assertRaisesRegex(PlanError, "launches no kernel"):
            a_plan().launches()

    def test_an_address_is_known_again(self) -> None:
        p = a_plan()
        (x,), (y,) = p.inputs, p.outputs
        self.assertEqual(x.data_ptr() % 256, 0)
        self.assertEqual(p.place_of(y.at(5).data_ptr()), {"buffer": "out0", "offset": 10})
        self.assertEqual(p.place_of(x.data_ptr()), {"buffer": "in0", "offset": 0})
        self.assertIsNone(p.place_of(12))
        self.assertIsNone(p.place_of(x.data_ptr() | 1 << 60))
        self.assertEqual((x.alignment(), x.at(1).alignment(), x.at(24).alignment()), (256, 2, 16))
        for far in (-1, 1 << 40):
            with self.assertRaisesRegex(PlanError, "has no byte"):
                x.at(far).data_ptr()

    def test_parameters_in_memory_become_arguments(self) -> None:
        p = a_plan()
        (x,), (y,) = p.inputs, p.outputs
        data = [struct.pack("<Q", x.data_ptr()), struct.pack("<f", 1.0), struct.pack("<QQ", 7, y.at(1).data_ptr())]
        kept = [ctypes.create_string_buffer(d) for d in data]
        args = (ctypes.c_uint64 * 3)(*map(ctypes.addressof, kept))
        made = arguments_of(p, [(8, ""), (4, "float"), (16, "")], ctypes.addressof(args))
        self.assertEqual(made[0], {"buffer": "in0", "offset": 0})
        self.assertEqual(made[1], {"bytes": "0000803f", "type": "float"})
        self.assertEqual(made[2], {"bytes": data[2].hex(), "pointers": [{"at": 8, "buffer": "out0", "offset": 2}]})

    def test_a_tensor_map_is_what_it_describes(self) -> None:
        p = a_plan()
        at = p.inputs[0].data_ptr()
        words = [at & 0xFFFFFFFF, at >> 32, 0x46312, 16, *[0] * 4, 127, 63, 0, 0, 0, 63 << 24, 31, 0]  # as the DSL wrote one
        found = map_of(p, struct.pack("<16I", *words))
        assert found is not None
        self.assertEqual((found["buffer"], found["dtype"], found["swizzle"]), ("in0", "f16", "128"))
        self.assertEqual((found["dims"], found["strides_bytes"], found["box"]), ([128, 64], [256], [64, 32]))
        self.assertIsNone(map_of(p, b"\0" * 128))
        words[1] = 0
        with self.assertRaisesRegex(PlanError, "no tensor of this plan"):
            map_of(p, struct.pack("<16I", *words))

    def test_what_is_required_is_told(self) -> None:
        with self.assertRaisesRegex(PlanError, "rows of 8"):
            a_plan().require(False, "rows of 8")


if __name__ == "__main__":
    unittest.main()
