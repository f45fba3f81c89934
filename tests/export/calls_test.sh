#!/usr/bin/env bash
# calls_test.sh - exports called otherwise than they were judged, in all that is not a tensor: right, or refused in words.
#
#     tests/export/calls_test.sh PATH-TO-CUTEGEN
set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/export/common.sh
. "$here/common.sh"

exported() # NAME TASK OPTIONS...: the built-in engineer's first kernel
{
    local name=$1 task=$2
    shift 2
    "$program" run "$task" --depth 0 --ahead 0 --no-report --draws 2 "$@" >"$work/run" 2>&1
    "$program" export last --output "$work/$name" 2>&1
}

# ---- what a call holds beside its tensors ----------------------------------------------
ok "a task with names, None, a text and numbers is exported" '^judged' "$(exported called "$here/called.py")"
facts=$(python "$here/calls.py" "$work/called")
for what in as-judged keywords turned back; do ok "$what: the result is right" "^$what right\$" "$facts"; done
for what in names text list longer; do
    ok "another $what is a ValueError with both calls" "^$what ValueError this kernel was judged with the arguments .*, got " "$facts"
done
ok "another number is one too" '^number ValueError .*scalar arguments .*2.0.*3.0' "$facts"
ok "and another flag" '^flag ValueError .*scalar arguments .*False.*True' "$facts"
ok "a whole number is not taken for a broken one" '^whole ValueError .*2\.0.* got .*2' "$facts"
ok "a surplus name is refused" '^surplus ValueError' "$facts"
ok "a tensor where there was none is refused" '^tensor TypeError 2 tensors are wanted' "$facts"
for what in attribute its-copy its-pickle; do
    ok "an attribute set later ($what) is a ValueError that names it" "^$what ValueError .*shift = 3.0" "$facts"
done
ok "a new attribute too" '^more ValueError .*more = 1' "$facts"
ok "a function that a module is made with, which is another" '^made ValueError .*then = .*neg.* not .*abs' "$facts"
while read -r what name; do
    ok "after a first call, another $what is refused by its name" "^changed-$what ValueError .*$name" "$facts"
done <<'END'
function then = .*abs
part weight
object config = .*scale.*3\.0
list config = .*7
private _hidden = 3\.0
hook hooks of part = 1
pre-hook hooks of part = 1
norm hooks of part = 1
forward part\.forward
weight part\.weight = None
END
ok "what others write into a module, under a private name, is none of its own" '^private right$' "$facts"

# ---- a number of each shape ---------------------------------------------------------------
"$program" eval "$here/scaled.py" "$here/scaled.cu" --draws 2 >"$work/run" 2>&1
said=$("$program" export last --output "$work/scaled" 2>&1)
ok "of two calls with the same tensors one is exported, and the other named" '^left out +inputs 2:' "$said"
facts=$(python - "$work/scaled" <<'END'
import os, sys, torch
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(sys.argv[1]))
import scaled
for n, alpha in ((1000, 2.0), (500, 3.0), (500, 2.0), (500, 4.0), (1000, 3.0)):
    x = torch.randn(n, requires_grad=True)
    try:
        y = scaled.ModelNew()(x, alpha)
        y.sum().backward()
        print(n, alpha, torch.allclose(y, scaled.Model()(x, alpha), atol=1e-6) and x.grad[0].item() == alpha)
    except ValueError as err:
        print(n, alpha, err)
END
)
ok "each shape runs with the number it was judged with, gradients too" '^1000 2.0 True 500 3.0 True ' "$(tr '\n' ' ' <<<"$facts")"
for call in '500 2.0' '500 4.0' '1000 3.0'; do ok "$call is refused" "^$call (this kernel|this combination)" "$facts"; done

# ---- a type of each shape -----------------------------------------------------------------
"$program" eval "$here/words.py" "$here/words.cu" --draws 2 >"$work/run" 2>&1
"$program" export last --output "$work/words" >/dev/null 2>&1
facts=$(python - "$work/words" <<'END'
import os, sys, torch
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(sys.argv[1]))
import words
for n, dtype in ((1000, torch.float32), (500, torch.int32), (500, torch.float32), (1000, torch.int32), (1000, torch.float64)):
    x = torch.arange(n, dtype=dtype)
    try:
        y = words.ModelNew()(x)
        print(n, dtype, y.dtype == dtype and torch.equal(x, y))
    except ValueError as err:
        print(n, dtype, err)
print(words.get_inputs()[0].shape)
END
)
ok "each shape runs with the type it was judged with" '^1000 torch.float32 True 500 torch.int32 True ' "$(tr '\n' ' ' <<<"$facts")"
ok "a type that another shape was judged with is refused" '^500 torch.float32 .*judged for x of shape .1000., got .500.' "$facts"
ok "and so is the main shape with the other's" '^1000 torch.int32 .*judged for x of shape .500., got .1000.' "$facts"
ok "a type that none was judged with is refused with those that were" '^1000 torch.float64 .*torch.float32 or torch.int32, got' "$facts"
ok "a task without get_inputs() has that of its first shape" '^torch.Size..1000..$' "$facts"

# ---- a constant that the forward uses --------------------------------------------------------
said=$(exported constant "$here/constant.py" --shapes N=1000,64)
ok "a shape at which reference.py is another function is left out, and named" '^left out +N=64:' "$said"
ok "the main one is exported" '^1 ' "$(python -c 'import json, sys; print(len(json.load(open(sys.argv[1]))["cases"]), "")' "$work/constant/launches.json")"

# ---- constants that are no part of the model ---------------------------------------------------
ok "a task that draws constants while it is imported is exported" '^judged' "$(exported drawn "$here/drawn.py")"
drawn()
{
    python - "$work/drawn" <<'END'
import os, random, sys
import torch
sys.path.insert(0, os.path.dirname(sys.argv[1]))
torch.manual_seed(5)
random.seed(5)
import drawn
mine = torch.rand(3), random.random()
torch.manual_seed(5)
random.seed(5)
print("unmoved" if torch.equal(mine[0], torch.rand(3)) and mine[1] == random.random() else "moved")
x = torch.ones(100)
print("right" if torch.allclose(drawn.ModelNew()(x), drawn.Model()(x), atol=1e-5) else "WRONG")
END
}
facts=$(drawn)
ok "in another process they are the same" '^right$' "$facts"
ok "and the process's own random numbers are not touched" '^unmoved$' "$facts"
ok "a constant that the environment changes is refused by its name" "ValueError: .*judged with the task's SCALE = .2.0., not .3.0." "$(TASK_SCALE=3 drawn)"
ok "it is verified" '^verified' "$("$program" verify "$work/drawn" 2>&1)"

# ---- one tensor under two names ------------------------------------------------------------------
sed 's/^SCALE = .*/SCALE = 2.0/; s/^class Model(Base):/&\n    def __init__(self):\n        super().__init__()\n        self.a = self.b = nn.Parameter(torch.rand(100))\n/; s/+ SHIFT/+ self.a * self.b/' \
    "$here/drawn.py" >"$work/tied.py"
ok "a task with tied parameters is exported" '^judged' "$(exported tied "$work/tied.py")"
facts=$(python - "$work/tied" <<'END'
import copy, os, sys
import torch
sys.path.insert(0, os.path.dirname(sys.argv[1]))
import tied
x, new, model = torch.ones(100), tied.ModelNew(), tied.Model()
new.load_state_dict(model.state_dict())
print("right" if torch.allclose(copy.deepcopy(new)(x), model(x), atol=1e-5) and torch.allclose(new(x), model(x), atol=1e-5) else "WRONG")
new.b = torch.nn.Parameter(torch.zeros(100))
print(torch.allclose(new(x), model(x)))
END
)
ok "tied they are right, also in a copy" '^right$' "$facts"
ok "no longer tied they are refused" "ValueError: .*b._tied_to" "$facts"

# ---- equal names ---------------------------------------------------------------------------------
mkdir "$work/one" "$work/two"
cp "$here/doubled.py" "$work/one/doubled.py"
sed 's/return x \* 2 + 1/return x.detach() * 2 + 1 + 0 * x/' "$here/doubled.py" >"$work/two/doubled.py"
for which in one two; do
    "$program" eval "$work/$which/doubled.py" "$here/doubled.cu" --draws 2 >"$work/run" 2>&1
    "$program" export last --output "$work/$which/doubled" >/dev/null 2>&1
done
cmp -s "$work/one/doubled/kernel-0.ptx" "$work/two/doubled/kernel-0.ptx" && same=yes || same=no
ok "two tasks of one name have one kernel" yes "$same"
facts=$(python "$here/calls.py" "$work/one/doubled" "$work/two/doubled")
ok "in one process each has its own gradients" '^gradient right 2.0 gradient right 0.0 $' "$(tr '\n' ' ' <<<"$facts")"

# ---- gradients of other constants ------------------------------------------------------------------
sed 's/return x \* 2 + 1/return x * FACTOR + 1/; s/^N = 1000/N = 1000\nFACTOR = 2/' "$here/doubled.py" >"$work/factor.py"
exported forward "$work/factor.py" >/dev/null
forward=$("$program" runs --json | sed 's/.*"runs":\[{"run":"\([^"]*\)".*/\1/')
exported backward "$work/factor.py" --backward --set FACTOR=3 >/dev/null
ok "a backward judged with another constant is refused" 'at other sizes or constants' "$("$program" export "$forward" --gradients last --output "$work/both" 2>&1)"

# ---- more tensors than an operator of torch may have ------------------------------------------------
cat >"$work/many.py" <<'END'
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ParameterList(torch.rand(40) for _ in range(70))

    def forward(self, x):
        for part in self.parts:
            x = x + part
        return x * 2


def get_inputs():
    return [torch.rand(40)]


def get_init_inputs():
    return []
END
ok "a model of 70 tensors is exported" '^judged' "$(exported many "$work/many.py")"
facts=$(python - "$work/many" <<'END'
import os, sys
import torch
sys.path.insert(0, os.path.dirname(sys.argv[1]))
import many
x, new, model = many.get_inputs()[0], many.ModelNew(), many.Model()
new.load_state_dict(model.state_dict())
print("result", torch.allclose(new(x), model(x), atol=1e-4))
new(x).sum().backward()
print("gradients", all(torch.equal(p.grad, torch.full((40,), 2.0)) for p in new.parameters()))
print("operator", torch.equal(many.operator(x, *new.parameters()), new(x)))
if hasattr(torch, "compile"):
    print("compiled", torch.equal(torch.compile(new, fullgraph=True, backend="aot_eager")(x), new(x)))
else:
    print("compiled True")
END
)
for what in result gradients operator compiled; do ok "its $what is right" "^$what True" "$facts"; done

# ---- a wheel -----------------------------------------------------------------------------------------
mkdir "$work/names"
cp "$here/doubled.py" "$work/names/3d-double_.py"
"$program" eval "$work/names/3d-double_.py" "$here/doubled.cu" --draws 2 >"$work/run" 2>&1
"$program" export last --wheel --output "$work/wheels" >/dev/null 2>&1
"$program" eval "$work/names/3d-double_.py" "$here/doubled.cu" --draws 2 >"$work/run" 2>&1
"$program" export last --wheel --output "$work/wheels" >/dev/null 2>&1
ok "each judgement is a version of its own, under a name that pip takes" '^k_3d_double_0-[0-9.]+\+[0-9a-f]{10}-py3-none-any.whl k_3d_double_0-[0-9.]+\+[0-9a-f]{10}-py3-none-any.whl $' \
    "$(cd "$work/wheels" && printf '%s ' *.whl)"
cp "$here/doubled.py" "$work/names/torch.py"
"$program" eval "$work/names/torch.py" "$here/doubled.cu" --draws 2 >"$work/run" 2>&1
"$program" export last --wheel --output "$work/torch" >/dev/null 2>&1
ok "a task named torch does not overwrite that package" '^torch_kernel-.*whl: torch_kernel torch_kernel-.*dist-info $' \
    "$(cd "$work/torch" && python -c 'import sys, zipfile; print(sys.argv[1] + ":", *sorted({n.split("/")[0] for n in zipfile.ZipFile(sys.argv[1]).namelist()}), "")' *.whl)"
echo "1..$n"
exit $failed
