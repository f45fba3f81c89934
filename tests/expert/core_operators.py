"""Every operator of the core ATen IR, in every dtype it has: does the built-in engineer write it, and is it right?

    python3 tests/expert/core_operators.py OUT_DIR [COUNT [SEED]]        modules of several operators each; COUNT 0: all of them
    python3 tests/expert/core_operators.py --count
    python3 tests/expert/core_operators.py --table CUTEGEN LADDER        a table of what is refused: nothing is judged

CORE is what native_functions.yaml of PyTorch 2.9 tags `core`; OTHER is what others of the IR's documents and of torch 1.13 call the
same. A row: operator | dtypes (f: floats, w: whole numbers, b: bool, 1: float32 alone, 9: int64 alone) | expression. What the
PyTorch at hand does not have is left out while forward runs. DTYPES="float64 bool": only these. REFUSED: what no kernel can be judged for, each on its own.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

TASK = '''"""Module {number}: core operators, {dtype}: {words}."""
import torch
import torch.nn as nn

aten = torch.ops.aten


def has(name):
    packet, _, overload = name.partition(".")
    return hasattr(aten, packet) and (not overload or hasattr(getattr(aten, packet), overload))


class Model(nn.Module):
    def forward(self, {arguments}):
        made = []
{body}        return made


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
'''
INPUTS = {
    "a": "torch.randn(4, 6)", "b": "torch.randn(4, 6)", "p": "torch.rand(4, 6) * 0.8 + 0.1", "s": "torch.randn(3, 4, 6)", "t": "torch.randn(3, 6, 5)",
    "u": "torch.randn(6, 5)", "x3": "torch.randn(2, 6, 11)", "x4": "torch.randn(2, 6, 8, 9)", "x5": "torch.randn(2, 4, 5, 6, 7)", "w": "torch.randn(5, 6, 3, 3)",
    "v": "torch.rand(6) + 0.5", "g": "torch.tanh(torch.randn(2, 5, 4, 2))", "n": "torch.randint(1, 9, (4, 6))", "o": "torch.randint(1, 9, (4, 6))",
    "k": "torch.randint(0, 4, (3, 6))", "l": "torch.randint(0, 4, (7,))", "m": "torch.rand(4, 6) > 0.5", "q": "torch.rand(4, 6) > 0.3",
}
WHOLE, PLAIN = ("n", "o"), ("k", "l", "m", "q")  # follow the dtype where it is whole; keep their own
FLOAT_TYPES, WHOLE_TYPES = ("float32", "float16", "bfloat16", "float64"), ("int64", "int32", "int16", "int8", "uint8")

# one argument, floats; whole numbers become float32
UNARY = "acos acosh asin asinh atan atanh cos cosh erf exp expm1 log log10 log1p log2 reciprocal rsqrt sigmoid sin sinh sqrt tan tanh".split()
DOMAIN = {"acosh": "p+1", "asin": "p", "acos": "p", "atanh": "p", "log": "p", "log10": "p", "log2": "p", "rsqrt": "p", "sqrt": "p"}
COMPARED = "eq ne ge gt le lt".split()
ROWS = """
abs|fw|aten.abs(A)
add.Tensor|fw|aten.add.Tensor(A,B,alpha=2)
add.Scalar|fw|aten.add.Scalar(A,3)
sub.Tensor|fw|aten.sub.Tensor(A,B,alpha=2)
sub.Scalar|fw|aten.sub.Scalar(A,3)
mul.Tensor|fwb|aten.mul.Tensor(A,B)
mul.Scalar|fw|aten.mul.Scalar(A,3)
div.Tensor|fw|aten.div.Tensor(A,B)
div.Scalar|fw|aten.div.Scalar(A,3)
div.Tensor_mode|fw|aten.div.Tensor_mode(A,B,rounding_mode='floor'),aten.div.Tensor_mode(A,B,rounding_mode='trunc')
div.Scalar_mode|fw|aten.div.Scalar_mode(A,2,rounding_mode='floor'),aten.div.Scalar_mode(A,2,rounding_mode='trunc')
fmod.Tensor|fw|aten.fmod.Tensor(A,B)
fmod.Scalar|fw|aten.fmod.Scalar(A,2)
remainder.Tensor|fw|aten.remainder.Tensor(A,B)
remainder.Scalar|fw|aten.remainder.Scalar(A,2)
maximum|fwb|aten.maximum(A,B)
minimum|fwb|aten.minimum(A,B)
atan2|f9|aten.atan2(A,B)
pow.Tensor_Tensor|1|aten.pow.Tensor_Tensor(p,b)
pow.Tensor_Tensor|9|aten.pow.Tensor_Tensor(n,o)
pow.Scalar|f|aten.pow.Scalar(2,A)
pow.Scalar|9|aten.pow.Scalar(2,n)
pow.Tensor_Scalar|fw|aten.pow.Tensor_Scalar(A,2),aten.pow.Tensor_Scalar(A,3)
neg|fw|aten.neg(A)
sign|fwb|aten.sign(A)
ceil|fw|aten.ceil(A)
floor|fw|aten.floor(A)
trunc|fw|aten.trunc(A)
round|fw|aten.round(A)
round.decimals|1|aten.round.decimals(a,decimals=2)
relu|fw|aten.relu(A)
gelu|f|aten.gelu(A),aten.gelu(A,approximate='tanh')
elu|f|aten.elu(A,0.7)
hardtanh|f|aten.hardtanh(A,-0.5,0.7)
leaky_relu|f|aten.leaky_relu(A,0.2)
clamp|fw|aten.clamp(A,1,2),aten.clamp(A,max=2)
clamp.Tensor|fw|aten.clamp.Tensor(A,B,B+1)
isnan|fw|aten.isnan(A)
isinf|fw|aten.isinf(A)
where.self|fwb|aten.where.self(m,A,B)
logical_not|fwb|aten.logical_not(A)
logical_and|fwb|aten.logical_and(A,B)
logical_or|fwb|aten.logical_or(A,B)
logical_xor|fwb|aten.logical_xor(A,B)
bitwise_not|wb|aten.bitwise_not(A)
bitwise_and.Tensor|wb|aten.bitwise_and.Tensor(A,B)
bitwise_or.Tensor|wb|aten.bitwise_or.Tensor(A,B)
bitwise_xor.Tensor|wb|aten.bitwise_xor.Tensor(A,B)
bitwise_and.Scalar|w|aten.bitwise_and.Scalar(A,6)
bitwise_or.Scalar|w|torch.bitwise_or(A,6)
bitwise_xor.Scalar|w|torch.bitwise_xor(A,6)
any|fwb|aten.any(A)
any.dim|fwb|aten.any.dim(A,1)
any.dims|fwb|aten.any.dims(A,[0,1])
amax|fwb|aten.amax(A,[1]),aten.amax(A)
amin|fwb|aten.amin(A,[0]),aten.amin(A)
max.dim|fwb|aten.max.dim(A,1)
min.dim|fwb|aten.min.dim(A,0)
argmax|fw|aten.argmax(A,1),aten.argmax(A)
argmin|fw|aten.argmin(A,0,True),aten.argmin(A)
mean|f|aten.mean(A)
mean.dim|f|aten.mean.dim(A,[1])
sum.dim_IntList|fwb|aten.sum.dim_IntList(A,[0]),aten.sum.dim_IntList(A,None)
prod|fw|aten.prod(A)
prod.dim_int|fw|aten.prod.dim_int(A,1)
var.dim|f|aten.var.dim(A,[1])
var.correction|f|aten.var.correction(A,[0],correction=0)
cumsum|fw|aten.cumsum(A,1)
sort|fw|aten.sort(A,1)
topk|fw|aten.topk(A,3,1)
mm|f|aten.mm(a,u)
addmm|f|aten.addmm(u[:4],a,u,beta=0.5)
bmm|f|aten.bmm(s,t)
mm|9|aten.mm(n,o.t())
bmm|9|aten.bmm(n[None],o.t()[None])
convolution|f|aten.convolution(x4,w,v[:5],[2,1],[1,1],[1,1],False,[0,0],1)
convolution|1|aten.convolution(x4,w.transpose(0,1),None,[2,2],[1,1],[1,1],True,[1,0],1)
native_layer_norm|f|aten.native_layer_norm(a,[6],v,v,1e-5)
native_group_norm|f|aten.native_group_norm(x4,v,v,2,6,72,3,1e-5)
_native_batch_norm_legit|f|aten._native_batch_norm_legit(x4,v,v,v.clone(),v.clone(),True,0.1,1e-5)[0]
_native_batch_norm_legit_no_training|f|aten._native_batch_norm_legit_no_training(x4,v,v,v,v,0.1,1e-5)[0]
_native_batch_norm_legit.no_stats|f|aten._native_batch_norm_legit.no_stats(x4,v,v,True,0.1,1e-5)
_log_softmax|f|aten._log_softmax(A,1,False)
_softmax|f|aten._softmax(A,0,False)
_cdist_forward|1|aten._cdist_forward(a,b,2.0,None),aten._cdist_forward(a,b,1.0,None),aten._cdist_forward(a,b,3.0,None)
_pdist_forward|1|aten._pdist_forward(a,2.0),aten._pdist_forward(a,1.0)
_fft_r2c|1|aten.view_as_real(aten._fft_r2c(a,[1],0,True))
avg_pool1d|f|aten.avg_pool1d(x3,3,2,1)
adaptive_avg_pool1d|f|aten.adaptive_avg_pool1d(x3,4)
_adaptive_avg_pool2d|f|aten._adaptive_avg_pool2d(x4,[3,4])
_adaptive_avg_pool3d|f|aten._adaptive_avg_pool3d(x5,[2,3,4])
avg_pool2d|f|aten.avg_pool2d(x4,[3,2],[2,1],[1,1],False,False)
avg_pool3d|f|aten.avg_pool3d(x5,[2,2,2])
max_pool2d_with_indices|f|aten.max_pool2d_with_indices(x4,[3,3],[2,2],[1,1])
max_pool3d_with_indices|f|aten.max_pool3d_with_indices(x5,[2,2,2])
reflection_pad1d|f|aten.reflection_pad1d(x3,[2,3])
reflection_pad2d|f|aten.reflection_pad2d(x4,[2,3,1,4])
reflection_pad3d|1|aten.reflection_pad3d(x5,[2,3,1,2,1,1])
replication_pad2d|f|aten.replication_pad2d(x4,[2,3,1,4])
replication_pad3d|1|aten.replication_pad3d(x5,[2,3,1,2,1,1])
constant_pad_nd|fw|aten.constant_pad_nd(A,[1,2,-1,1],2)
upsample_bilinear2d.vec|1|aten.upsample_bilinear2d.vec(x4,[11,13],False,None)
upsample_nearest2d.vec|f|aten.upsample_nearest2d.vec(x4,None,[2.0,1.5])
grid_sampler_2d|1|aten.grid_sampler_2d(x4,g,0,0,False),aten.grid_sampler_2d(x4,g,1,1,True),aten.grid_sampler_2d(x4,g,2,0,False)
col2im|1|aten.col2im(x3[:,:,:4].repeat(1,2,1),[3,3],[2,2],[1,1],[0,0],[1,1])
embedding|f|aten.embedding(A,l)
_embedding_bag|1|aten._embedding_bag(a,l,torch.arange(0,7,3))[0],aten._embedding_bag(a,l,torch.arange(0,7,3),False,1)[0],aten._embedding_bag(a,l,torch.arange(0,7,3),False,2)[0]
index.Tensor|fwb|aten.index.Tensor(A,[l]),aten.index.Tensor(A,[None,l])
index_put|fw|aten.index_put(A,[l[:3]],B[:1].expand(3,6),True)
index_select|fwb|aten.index_select(A,0,l)
gather|fwb|aten.gather(A,0,k)
scatter.src|fw|aten.scatter.src(A,0,k[:1],B[:1])
scatter.value|fwb|aten.scatter.value(A,0,k,1)
scatter_add|fw|aten.scatter_add(A,0,k,B[:3])
scatter_reduce.two|1|aten.scatter_reduce.two(a,0,k,b[:3],'sum'),aten.scatter_reduce.two(a,0,k,b[:3],'amax'),aten.scatter_reduce.two(a,0,k,b[:3],'mean',include_self=False)
scatter_reduce.two|9|aten.scatter_reduce.two(n,0,k,o[:3],'prod'),aten.scatter_reduce.two(n,0,k,o[:3],'amin')
masked_scatter|fw|aten.masked_scatter(A,m,B)
select_scatter|fwb|aten.select_scatter(A,B[0],0,2)
slice_scatter|fwb|aten.slice_scatter(A,B[:,:2],1,1,5,2)
alias|fwb|aten.alias(A)+aten.alias(B)
as_strided|fwb|aten.as_strided(A,[3,2],[6,2],1)
cat|fwb|aten.cat([A,B[:2],A],0)
clone|fwb|aten.clone(A)
copy|fwb|aten.copy(A,B[0])
diagonal|fwb|aten.diagonal(A,1)
expand|fwb|aten.expand(A[None],[3,4,6])
fill.Scalar|fwb|aten.fill.Scalar(A,1)
flip|fwb|aten.flip(A,[0,1])
full_like|fwb|aten.full_like(A,1)
permute|fwb|aten.permute(A[None],[2,0,1])
repeat|fwb|aten.repeat(A,[2,1,2])
select.int|fwb|aten.select.int(A,1,-2)
slice.Tensor|fwb|aten.slice.Tensor(A,1,1,6,2)
split_with_sizes|fwb|aten.split_with_sizes(A,[1,5],1)
squeeze.dim|fwb|aten.squeeze.dim(A[None],0)
squeeze.dims|fwb|aten.squeeze.dims(A[None,:,None],[0,2])
unsqueeze|fwb|aten.unsqueeze(A,1)
view|fwb|aten.view(A,[3,8])
_to_copy|fwb|aten._to_copy(A,dtype=torch.float32),aten._to_copy(A,dtype=torch.int32),aten._to_copy(A,dtype=torch.bool),aten._to_copy(A,dtype=torch.float16)
full|1|aten.full([3,4],2.5)+a[:3,:4]
scalar_tensor|1|aten.scalar_tensor(2.5)*a
arange.start_step|19|aten.arange.start_step(1,7,1)*A,aten.arange.start_step(0.0,3.0,0.5)*A
empty.memory_format|1|aten.empty.memory_format([4,6]).copy_(a)
empty_strided|1|aten.empty_strided([4,6],[1,4]).copy_(a)
resize_|1|aten.resize_(a.clone(),[3,5])
linspace|19|torch.linspace(-3,3,6)*A
convolution_backward|1|aten.convolution_backward(torch.ones(2,5,6,7)*x4[:1,:1,:6,:7],x4,w,None,[1,1],[0,0],[1,1],False,[0,0],1,[True,True,False])[:2]
native_layer_norm_backward|1|aten.native_layer_norm_backward(b,a,[6],*aten.native_layer_norm(a,[6],v,v,1e-5)[1:],v,v,[True,True,True])
native_group_norm_backward|1|aten.native_group_norm_backward(x4.tanh(),x4,*aten.native_group_norm(x4,v,v,2,6,72,3,1e-5)[1:],v,2,6,72,3,[True,True,True])
embedding_dense_backward|1|aten.embedding_dense_backward(a[:1].expand(7,6).contiguous(),l,9,-1,False)
_adaptive_avg_pool2d_backward|1|aten._adaptive_avg_pool2d_backward(x4[:,:,:3,:4],x4)
avg_pool2d_backward|1|aten.avg_pool2d_backward(x4[:,:,:4,:4],x4,[2,2],[2,2],[0,0],False,True,None)
max_pool2d_with_indices_backward|1|aten.max_pool2d_with_indices_backward(x4[:,:,:4,:4],x4,[2,2],[2,2],[0,0],[1,1],False,aten.max_pool2d_with_indices(x4,[2,2])[1])
"""
# not core, but what gradients of tasks are made of
OTHER = """
convolution_backward|1|aten.convolution_backward(x4[:,:4,:5,:4].tanh(),x4,w[:2].repeat(2,1,1,1)[:,:3],None,[2,2],[2,1],[1,2],False,[0,0],2,[True,True,True])
convolution_backward|1|aten.convolution_backward(x3.tanh()[:,:,:9],x3[:,:4,:5].contiguous(),w[:4,:3,:,0],None,[2],[1],[1],True,[0],2,[True,True,False])[:2]
_adaptive_avg_pool3d_backward|1|aten._adaptive_avg_pool3d_backward(x5[:,:,:2,:3,:4],x5)
avg_pool2d_backward|1|aten.avg_pool2d_backward(x4[:,:,:4,:5],x4,[3,2],[2,2],[1,1],False,False,None),aten.avg_pool2d_backward(x4[:,:,:5,:5],x4,[3,2],[2,2],[1,1],True,True,None)
upsample_bilinear2d_backward|1|aten.upsample_bilinear2d_backward(x4,[8,9],[2,6,5,13],False,None,None),aten.upsample_bilinear2d_backward(x4,[8,9],[2,6,5,13],True,None,None)
upsample_nearest2d_backward|1|aten.upsample_nearest2d_backward(x4,[8,9],[2,6,5,4],None,None)
reflection_pad2d_backward|1|aten.reflection_pad2d_backward(x4,x4[:,:,:5,:6].contiguous(),[2,1,1,2])
replication_pad2d_backward|1|aten.replication_pad2d_backward(x4,x4[:,:,:5,:6].contiguous(),[2,1,1,2])
max_pool3d_with_indices_backward|1|aten.max_pool3d_with_indices_backward(x5[:,:,:2,:3,:3].contiguous(),x5,[2,2,2],[2,2,2],[0,0,0],[1,1,1],False,aten.max_pool3d_with_indices(x5,[2,2,2])[1])
select_backward|1|aten.select_backward(a,[4,3,6],1,2)
slice_backward|1|aten.slice_backward(a,[4,13],1,0,12,2)
embedding_dense_backward|1|aten.embedding_dense_backward(b[:1].expand(7,6).contiguous(),l,5,1,True)
_embedding_bag|1|aten._embedding_bag(a,l,torch.arange(0,7,3),False,2,False,None,False,1)[0]
take|1|aten.take(a,k*5),aten.take(a,l-4)
expand_copy|1|aten.expand_copy(a,[2,4,6]),aten.permute_copy(a,[1,0]),aten.view_copy(a,[6,4]),aten.select_copy(a,0,1),aten.slice_copy(a,1,0,4,2),aten.squeeze_copy(a[:1])
"""
REFUSED = """
native_dropout|1|aten.native_dropout(a,0.5,True)[0]
rand|1|aten.rand([4,6])+a
randn|1|aten.randn([4,6])+a
randperm|1|aten.randperm(6)*a
nonzero|1|aten.nonzero(m)
_local_scalar_dense|1|a*aten._local_scalar_dense(a[0,0])
sym_size.int|1|a*aten.sym_size.int(a,1)
sym_numel|1|a*aten.sym_numel(a)
sym_stride.int|1|a*aten.sym_stride.int(a,1)
sym_storage_offset|1|a*(aten.sym_storage_offset(a)+1)
atan2.out|1|aten.atan2.out(a,b,out=a.clone())
"""


def rows():
    found = [f"{name}|f{'9' if name not in DOMAIN else ''}|aten.{name}({DOMAIN.get(name, 'A')})" for name in UNARY]
    for name in COMPARED:
        found += [f"{name}.Tensor|fwb|aten.{name}.Tensor(A,B)", f"{name}.Scalar|fw|aten.{name}.Scalar(A,2)"]
    return [line.split("|", 2) for line in found + ROWS.strip().splitlines() + OTHER.strip().splitlines()]


def dtypes(flags):
    """What a row is written in; what has one type and cannot have others once."""
    return [*(FLOAT_TYPES if "f" in flags else ["float32"] if "1" in flags else []), *(WHOLE_TYPES if "w" in flags else ["int64"] if "9" in flags else []),
            *(["bool"] if "b" in flags else [])]


def expression(text, dtype):
    kind = "mq" if dtype == "bool" else "no" if dtype in WHOLE_TYPES else "ab"
    return re.sub(r"\b[AB]\b", lambda found: kind["AB".index(found.group())], text)


def module(number, dtype, chosen):
    body, used = "", []
    for name, _, text in chosen:
        text = expression(text, dtype)
        used += [word for word in re.findall(r"\b[a-z]\d?\b", text) if word in INPUTS]
        body += f'        if has("{name}"):\n            made.append(({text},))\n'
    used = sorted(set(used)) or ["a"]

    def made(word):
        casts = word in WHOLE and dtype in WHOLE_TYPES or word not in WHOLE + PLAIN and dtype in FLOAT_TYPES
        return (f"({INPUTS[word]})" if casts else INPUTS[word]) + (f".to(torch.{dtype})" if casts and dtype not in ("float32", "int64") else "")

    return TASK.format(number=number, dtype=dtype, words=", ".join(r[0] for r in chosen), arguments=", ".join(used), body=body, inputs=", ".join(map(made, used)))


def groups(most=9):
    """(dtype, rows), few enough for one kernel file."""
    made = []
    for dtype in os.environ.get("DTYPES", "").split() or (*FLOAT_TYPES, *WHOLE_TYPES, "bool"):
        found = [r for r in rows() if dtype in dtypes(r[1])]
        made += [(dtype, found[k : k + most]) for k in range(0, len(found), most)]
    return made


def write(out, count):
    out.mkdir(parents=True, exist_ok=True)
    for number, (dtype, chosen) in enumerate(groups()[: count or None]):
        (out / f"task{number:03d}.py").write_text(module(number, dtype, chosen))


# ---- what is refused ------------------------------------------------------------------------------------------


def refusal(cutegen, ladder, folder, dtype, chosen):
    """Why these are not written; None: they are."""
    task = folder / "core.py"
    task.write_text(module(0, dtype, chosen))
    said = subprocess.run([cutegen, "describe", str(task), "--device", "simt", "--no-scale", "--json"], capture_output=True, text=True)
    if said.returncode:
        return said.stderr.strip().splitlines()[0].split("core.py: ")[-1]
    if not any(n["op"] not in ("input", "output") for n in json.loads(said.stdout)["graph"]):
        return None  # this PyTorch has none of them
    (folder / "core.json").write_text(said.stdout)
    made = subprocess.run([ladder, str(folder / "core.json"), str(folder / "kernels")], capture_output=True, text=True)
    text = (made.stdout + made.stderr).strip().splitlines()
    return text[-1] if "not covered" in text[-1] else None


def sieve(ask, dtype, chosen):
    """(row, reason) of each that is refused."""
    reason = ask(dtype, chosen)
    if reason is None:
        return []
    if len(chosen) == 1:
        return [(chosen[0], reason)]
    half = len(chosen) // 2
    return sieve(ask, dtype, chosen[:half]) + sieve(ask, dtype, chosen[half:])


def table(cutegen, ladder):
    total, bad = 0, 0
    os.environ.setdefault("CUTEGEN_SERVER", "yes")
    with tempfile.TemporaryDirectory() as work:
        folder = pathlib.Path(work)
        (folder / "kernels").mkdir()

        def ask(dtype, chosen):
            return refusal(cutegen, ladder, folder, dtype, chosen)

        print("| operator | dtype | why |\n|---|---|---|")
        for dtype, chosen in [*groups(), *(("float32", [line.split("|", 2)]) for line in REFUSED.strip().splitlines())]:
            found = sieve(ask, dtype, chosen)
            total, bad = total + len(chosen), bad + len(found)
            for (name, _, _), why in found:
                print(f"| `{name}` | {dtype} | {why.replace('|', '/')[:300]} |", flush=True)
    print(f"\n{total} operators in a dtype, {bad} refused")


def main():
    if sys.argv[1:2] == ["--count"]:
        print(len(groups()))
    elif sys.argv[1:2] == ["--table"] and len(sys.argv) == 4:
        table(*sys.argv[2:4])
    elif not sys.argv[1:] or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    else:
        write(pathlib.Path(sys.argv[1]), int((sys.argv[2:3] or ["0"])[0]))


if __name__ == "__main__":
    main()
