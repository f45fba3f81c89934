#!/usr/bin/env bash
# export_test.sh - an export used without a GPU: results, refusals, gradients, layouts, verify.
#
#     tests/export/export_test.sh PATH-TO-CUTEGEN
set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/export/common.sh
. "$here/common.sh"

said=$("$program" eval "$here/two.py" "$here/two.cu" --draws 2 2>&1)
ok "a kernel with two results, a parameter and a scalar passes" '^pass' "$said"
said=$("$program" export last --output "$work/two" 2>&1)
ok "it is exported" 'module .*two_new.py' "$said"
judged=$("$program" show last --attempt 1 --json | sed -n 's/.*"code":"\([0-9a-f]*\)".*/\1/p')
ok "the exported code has the hash that was judged" "^$judged " "$(sha256sum "$work/two/kernel-0.ptx")"
ok "the record names it too" "\"code\": \"$judged\"" "$(cat "$work/two/record.json")"

facts=$(python "$here/check.py" "$work/two")
ok "importing it takes less CPU time than importing torch" '^import-cheaper-than-torch' "$facts"
ok "it gives the reference's results, arranged as the reference does" '^same-result' "$facts"
ok "non-contiguous inputs are copied" '^non-contiguous-copied' "$facts"
ok "misaligned inputs are copied" '^misaligned-copied' "$facts"
ok "an empty batch gives an empty result" '^empty-batch' "$facts"
ok "it works under no_grad" '^no-grad' "$facts"
ok "deepcopy and state_dict work" '^deepcopy-state-dict' "$facts"
for what in shape rank dtype scalar half operator; do
    ok "another $what is a ValueError that names it" "^$what ValueError\$" "$facts"
done
for what in numpy constructor keyword; do
    ok "a wrong $what is a TypeError that says so" "^$what TypeError\$" "$facts"
done
ok "50 random shapes: none is taken, every refusal is clear" '^random-shapes 0 of 50' "$facts"
ok "gradients are those of the reference" '^gradients-of-the-reference' "$(grep -v wrong-gradient <<<"$facts")"
ok "and none is wrong" '^0$' "$(grep -c wrong-gradient <<<"$facts")"
ok "second derivatives too" '^second-derivatives' "$facts"
if "$here/../torch_at_least.sh" 2.4; then
    facts=$(python "$here/citizen.py" "$work/two")
    ok "opcheck passes" '^opcheck SUCCESS$' "$facts"
    ok "torch.compile(fullgraph=True) takes it" '^compiled True' "$facts"
    ok "and its gradients" '^compiled-gradients True' "$facts"
    ok "torch.export takes it" '^exported True' "$facts"
else
    skip "opcheck, torch.compile and torch.export" "needs torch 2.4 or newer"
fi

"$program" export last --gradients none --output "$work/none" >/dev/null 2>&1
ok "with --gradients none requires_grad is an error" '^none RuntimeError$' "$(python "$here/check.py" "$work/none" none)"
"$program" export last --fallback --output "$work/lenient" >/dev/null 2>&1
facts=$(python "$here/check.py" "$work/lenient" fallback)
ok "with --fallback the reference does what was not judged" '^left-to-model' "$facts"
ok "and one warning says so" '^told 1$' "$facts"
ok "another word for gradients is the name of a run, and there is none of that name" "no run .*some" "$("$program" export last --gradients some 2>&1)"

# ---- layouts ----------------------------------------------------------------------
said=$("$program" export last --wheel --output "$work/wheel" 2>&1)
ok "a wheel is written" 'wheel .*two-.*-py3-none-any.whl' "$said"
facts=$(python - "$work"/wheel/*.whl "$work/two" <<'END'
import base64, hashlib, os, sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
print("sound" if wheel.testzip() is None else "damaged")
rows = [r.split(",") for r in wheel.read(next(n for n in wheel.namelist() if n.endswith("RECORD"))).decode().splitlines()]
ok = all(not d or d == "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(wheel.read(n)).digest()).decode().rstrip("=") for n, d, _ in rows)
print("record" if ok and {r[0] for r in rows} == set(wheel.namelist()) else "bad record")
print("same" if all(wheel.read("two/" + n) == open(os.path.join(sys.argv[2], n), "rb").read() for n in os.listdir(sys.argv[2]) if n != "__pycache__") else "other")
END
)
ok "it is a sound archive with a right RECORD and the same files" '^sound record same $' "$(tr '\n' ' ' <<<"$facts")"
"$program" export last --layout hf --output "$work/hf" >/dev/null 2>&1
ok "the layout of Hugging Face kernels" 'build/torch-universal/two/__init__.py' "$(cd "$work/hf" && find . -name '__init__.py')"
ok "with the metadata that its package reads" '^two _two_[0-9a-f]{10} 1 cuda$' \
    "$(python -c 'import json, sys; m = json.load(open(sys.argv[1])); print(m["name"], m["id"], m["version"], m["backend"]["type"])' "$work/hf/build/torch-universal/metadata.json")"
ok "other layouts are refused" "there is no layout 'flat'" "$("$program" export last --layout flat 2>&1)"

# ---- verify -----------------------------------------------------------------------
said=$("$program" verify "$work/two" 2>&1)
ok "verify: files, store, source and launch list are the same, and it passes" \
    '^files ok python ok store ok source ok launches ok judge ok verified' "$(awk '{printf "%s %s ", $1, $2}' <<<"$said")"
cp -r "$work/two" "$work/imported"
mkdir "$work/imported/__pycache__"
ok "verify: a __pycache__ is to be removed first" 'python +DIFFERS +__pycache__ .*remove it' "$("$program" verify "$work/imported" 2>&1)"
cp -r "$work/two" "$work/changed"
echo '// changed' >>"$work/changed/kernel-0.ptx"
said=$("$program" verify "$work/changed" 2>&1)
ok "verify: other code is found" 'files +DIFFERS +kernel-0.ptx' "$said"
ok "and not run" 'judge +DIFFERS .*not the code that was judged' "$said"
ok "nor does the loader run it" 'is not the code that was judged' "$(python "$here/check.py" "$work/changed")"
cp -r "$work/two" "$work/lists"
sed -i '/"grid": \[/{n;s/[0-9]\+/1/}' "$work/lists/launches.json"
said=$("$program" verify "$work/lists" 2>&1)
code=$?
ok "verify: another launch list is found, by hash and by the plan" 'launches +DIFFERS' "$said"
ok "with exit code 1" '^1$' "$code"
# A table from outside that says nothing where its readers expect something: wrong use, not a crash.
for change in 't["cases"][0]["names"]["two"] = None' 't["cases"][0]["names"]["two"] = 5' 'del t["cases"][0]["names"]' 't["cases"][0]["ops"] = {}' \
    't["modules"][0]["file"] = "none"' 't["name"] = "other"' 't["cases"][0] = 7'; do
    rm -rf "$work/broken"
    cp -r "$work/two" "$work/broken"
    python -c 'import json, sys
t = json.load(open(sys.argv[1]))
exec(sys.argv[2])
json.dump(t, open(sys.argv[1], "w"))' "$work/broken/launches.json" "$change"
    "$program" verify "$work/broken" >"$work/said" 2>&1
    code=$?
    ok "verify of a table with $change ends with a message" '^(1|2) .*cutegen:' "$code $(tr '\n' ' ' <"$work/said")"
done
for _ in 1 2 3; do # a warm oracle is confined to the folder that was there
    rm -rf "$work/again"
    cp -r "$work/two" "$work/again"
    said=$("$program" verify "$work/again" 2>&1)
    ok "a folder that was made anew under its name is verified" '^verified' "$said"
done
ok "a folder that is none is told" 'name a folder that .cutegen export. wrote' "$("$program" verify "$work" 2>&1)"

verdict=$("$program" eval "$here/two.py" "$work/two/two_new.py" --draws 2 2>&1)
ok "as a foreign candidate it cannot start simt, which is told" '^(crash|compile error)' "$verdict"

# ---- many shapes ------------------------------------------------------------------
said=$("$program" eval "$here/doubled.py" "$here/doubled.cu" --shapes N=1000,64,4096 --draws 2 2>&1)
ok "a kernel is judged at three shapes" '^pass' "$said"
"$program" export last --output "$work/doubled" >/dev/null 2>&1
facts=$(python - "$work/doubled" <<'END'
import os, sys
import torch
sys.path.insert(0, os.path.dirname(sys.argv[1]))
import doubled
new, model = doubled.ModelNew(), doubled.Model()
print("right", [n for n in (64, 1000, 4096) if torch.allclose(new(torch.ones(n)), model(torch.ones(n)))])
try:
    new(torch.ones(65))
except ValueError as err:
    print(err)
END
)
ok "the export runs at all of them" '^right \[64, 1000, 4096\]' "$facts"
ok "and names them when it is given another" 'of shape \[64\] or \[1000\] or \[4096\] .*, got \[65\]' "$facts"

ok "verify judges every shape of it" '^cases +ok +all 3 judged shapes' "$("$program" verify "$work/doubled" 2>&1)"
# forge FOLDER CHANGE: a copy with another table, and a record that agrees with it
forge()
{
    local forged
    forged=$(mktemp -d "$work/forged.XXXX")/$(basename "$1")
    cp -r "$1" "$forged"
    python -c 'import hashlib, json, sys
folder, change = sys.argv[1:]
t, r = (json.load(open(f"{folder}/{n}.json")) for n in ("launches", "record"))
exec(change)
text = json.dumps(t)
r["files"]["launches.json"] = hashlib.sha256(text.encode()).hexdigest()
open(f"{folder}/launches.json", "w").write(text)
json.dump(r, open(f"{folder}/record.json", "w"))' "$forged" "$2"
    "$program" verify "$forged" 2>&1
}
ok "another launch list of a further shape is found" '^cases +DIFFERS +case 1: launches' "$(forge "$work/doubled" 't["cases"][1]["ops"][0]["grid"][0] += 1')"
ok "and another size" '^cases +DIFFERS +case 2: shapes' "$(forge "$work/doubled" 't["cases"][2]["inputs"][0]["shape"][0] += 1')"
ok "results that are exchanged are found" '^table +DIFFERS +returns' "$(forge "$work/two" 't["returns"] = {"dict": {"sum": 1, "difference": 0}}')"
ok "arguments that are exchanged are found" '^table +DIFFERS +call' \
    "$(forge "$work/two" 'p = t["call"]["list"][0]["list"][0]["list"]; p[0], p[1] = p[1], p[0]')"
ok "another number is found" '^shapes +DIFFERS' "$(forge "$work/two" 't["cases"][0]["scalars"][0]["value"] = 0.25')"
ok "a looser alignment is found" '^table +DIFFERS +alignment' "$(forge "$work/two" 't["alignment"] = 4')"

# ---- uses it was not made for ---------------------------------------------------
facts=$(python "$here/hostile.py" "$work/doubled")
for what in pickled saved copied traced expanded negative tangent moved; do
    ok "$what: the result is right" "^$what right\$" "$facts"
done
if "$here/../torch_at_least.sh" 2.4; then
    for what in jvp grad vmap; do ok "torch.func.$what is right" "^$what right\$" "$facts"; done
else
    skip "transforms of torch.func" "needs torch 2.4 or newer"
fi
ok "the operator has no tangents, and says so" '^tangent-operator RuntimeError .*call ModelNew' "$facts"
ok "a sparse tensor is refused" '^sparse ValueError .*to_dense' "$facts"
ok "an argument that is no tensor is refused" '^nothing TypeError 1 tensors are wanted' "$facts"
ok "a table that was changed is refused" '^changed-table RuntimeError .*changed after the export' "$facts"
ok "a folder without its record is refused" '^no-record RuntimeError .*not a whole export' "$facts"
ok "without cutegen a simt export says what it needs" '^no-cutegen RuntimeError .*CUTEGEN_PROGRAM' "$facts"

# ---- many at once ------------------------------------------------------------------
facts=$(python "$here/together.py" "$work/doubled")
ok "eight threads load a copy each" '^copies loaded$' "$facts"
ok "and share one operator" '^operators 1$' "$facts"
for what in threads-first-call child-before-first-call child-after-calls parent-after-fork; do
    ok "$what: the result is right" "^$what right\$" "$facts"
done
ok "threads with numbers of their own get their own results" '^threads-own-numbers 0 wrong$' "$facts"

sed 's|^#ifdef CUTEGEN_DEVICE|CUTEGEN_SHAPES(N, 7, 5000);\n&|' "$here/doubled.cu" >"$work/ranged.cu"
said=$("$program" eval "$here/doubled.py" "$work/ranged.cu" --draws 2 2>&1)
ok "a plan that declares its range of shapes is judged at the edges and between" '^pass' "$said"
"$program" export last --output "$work/ranged" >/dev/null 2>&1
ok "and exported for those" '^7 [0-9]+ [0-9]+ 5000 $' \
    "$(python -c 'import json, sys; print(*sorted(c["inputs"][0]["shape"][0] for c in json.load(open(sys.argv[1]))["cases"]), "")' "$work/ranged/launches.json")"
sed -i 's/(N, 7, 5000)/(N, 7, 5001)/; s|/\* PLAN LINES \*/|if (n > 5000) n = 5000;|' "$work/ranged.cu"
said=$("$program" eval "$here/doubled.py" "$work/ranged.cu" --draws 2 2>&1)
ok "one that is wrong at an edge of its range is found there" 'N=5001' "$said"
ok "a range that runs backwards is refused" 'NAME=LEAST..MOST' "$("$program" eval "$here/doubled.py" "$here/doubled.cu" --shapes N=9..3 2>&1)"

# ---- gradients by a judged kernel ----------------------------------------------------
said=$("$here/layers.sh" "$program" "$work/net" 8 6 5 3 linear2 loss 2>&1)
ok "two layers are exported, each with the kernel of its gradients" '^2$' "$(grep -c '^record' <<<"$said")"
ok "a run of depth 0 compiles nothing ahead" '^0$' "$(cat "$work"/net/tasks/*.log | grep -c 'compiled ahead')"
facts=$(python "$here/train.py" "$work/net" 3)
ok "trained, their loss is that of PyTorch within rounding" '^follows' "$facts"
ok "and every gradient is the judged kernel's" '^kernels of every step' "$facts"
forward=$(sed -n 's/^ "run": "\(.*\)",/\1/p' "$work/net/loss/record.json")
backward=$(sed -n 's/^ "run": "\(.*\)",/\1/p' "$work/net/loss/backward/record.json")
other=$(sed -n 's/^ "run": "\(.*\)",/\1/p' "$work/net/linear2/backward/record.json")
ok "the record names both runs" "\"run\": \"$backward\"" "$(grep -A3 '"backward"' "$work/net/loss/record.json")"
said=$("$program" verify "$work/net/loss" 2>&1)
ok "verify judges both kernels" '^files ok python ok store ok source ok launches ok judge ok gradients files ok python ok store ok source ok launches ok judge ok verified' \
    "$(awk '{printf "%s %s ", $1, $1 == "gradients" ? "" : $2}' <<<"$said" | tr -s ' ')"
echo '// changed' >>"$work/net/loss/backward/kernel-0.ptx"
ok "other code of the gradients is found" 'files +DIFFERS +backward/kernel-0.ptx' "$("$program" verify "$work/net/loss" 2>&1)"
ok "and not run" 'is not the code that was judged' "$(python "$here/train.py" "$work/net" 1)"
ok "a forward is not a kernel of gradients" 'does not judge the gradients' "$("$program" export "$forward" --gradients "$forward" 2>&1)"
ok "nor is the backward of another task" 'are of different tasks' "$("$program" export "$forward" --gradients "$other" 2>&1)"
"$program" export "$backward" --output "$work/only" >/dev/null 2>&1
facts=$(python - "$work/only" <<'END'
import os, sys
import torch
sys.path.insert(0, os.path.dirname(sys.argv[1]))
import only
x, target = only.get_inputs()
grads = []
for kind in (only.ModelNew, only.Model):
    leaf = x.clone().requires_grad_()
    kind()(leaf, target).backward()
    grads.append(leaf.grad)
print("same-gradient" if torch.allclose(*grads, atol=1e-6) else "other-gradient")
with torch.no_grad():
    print("forward-of-the-reference" if only.ModelNew()(x, target) == only.Model()(x, target) else "other-forward")
try:
    only.ModelNew()(torch.randn(2, 3, requires_grad=True), target[:2])
except ValueError as err:
    print(err)
END
)
ok "a backward alone: Model's forward with the kernel's gradients" '^same-gradient' "$facts"
ok "without gradients it is Model" '^forward-of-the-reference' "$facts"
ok "and another shape is refused" 'was judged for x of shape \[8, 3\].*got \[2, 3\]' "$facts"

echo "1..$n"
exit $failed
