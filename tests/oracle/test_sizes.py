# SPDX-License-Identifier: Apache-2.0
"""Sizes that hang together, numbers that a forward makes of them, and what a model is made with."""

from __future__ import annotations

import unittest
from typing import Any

from client import OracleTest, model


class Sizes(OracleTest):
    LIMIT = 1 << 16

    def scaled(self, constants: str, inputs: str, forward: str, init: str) -> dict[str, Any]:
        return self.loaded(model(forward, inputs, init, constants), max_elements=self.LIMIT)

    def test_sizes_that_are_products_of_others_keep_their_proportions(self) -> None:
        """One exponent for all sizes makes DIM, HEADS and HEAD_DIM no longer what they are to each other."""
        constants = "ROWS = 4096\nDIM = 1024\nHEADS = 16\nHEAD_DIM = 64\nHIDDEN = 4096\n"
        init = "assert DIM == HEADS * HEAD_DIM and HIDDEN == 4 * DIM; self.l = nn.Linear(DIM, HIDDEN)"
        task = self.scaled(constants, "[torch.rand(ROWS, DIM)]", "x): return self.l(x)", init)
        rows, columns = task["inputs"][0]["shape"]
        self.assertLessEqual(rows * columns, self.LIMIT)
        self.assertEqual(task["scaled"]["HIDDEN"][1], 4 * columns)

    def test_numbers_that_a_forward_makes_leave_other_sizes_to_shapes_alone(self) -> None:
        """A tensor made of sizes: its numbers are known at other sizes, and so is the whole task, without computing it."""
        forward = "x): return self.l(x) * torch.tensor([x.shape[0], 2.0]) + torch.arange(2)"
        task = self.scaled("N = 1 << 26\n", "[torch.rand(N, 64)]", forward, "self.l = nn.Linear(64, 2)")
        self.assertEqual(task["full"]["outputs"], [[1 << 26, 2]])
        self.assertTrue(any("constant tensor of shape [2] depend on sizes" in fact for fact in task["facts"]), task["facts"])

    def test_arguments_of_the_model_may_be_a_list_and_a_dict(self) -> None:
        """As KernelBook writes them; a Model that takes a list and a dict gets those."""
        init = "pass\n    def __init__(self, n, m=3, {}):\n        super().__init__(); self.w = nn.Parameter(torch.ones({}))"
        for more, shape, given in (
            ("bias=True", "n, m + bias", "[[2], {'m': 4, 'bias': False}]"),
            ("bias=True", "n, m + bias", "[(2, 4), {'bias': False}]"),
            ("*rest", "n[0], m['k']", "[[2], {'k': 4}]"),
        ):
            task = self.loaded(model("x): return x * self.w.sum()", "[torch.rand(5)]", init.format(more, shape), init_inputs=given))
            self.assertEqual(task["inputs"][1]["shape"], [2, 4], given)


if __name__ == "__main__":
    unittest.main()
