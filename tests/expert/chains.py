# SPDX-License-Identifier: Apache-2.0
"""Chains without a product: several reductions, joins, transpositions, in other shapes, types, orders and dimensions.

    python3 tests/expert/chains.py OUT_DIR [COUNT [SEED]]       taskNNN.py, small; SEED 0: at full size, for composing

A row: inputs (NAME=full shape~small shape[:dtype]) | statements; result.
"""
import pathlib
import sys

TASK = '''"""task{number:03d}: {words}"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, {arguments}):
{body}        return {result}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
'''

ROWS = """
x=4096,4096~64,256;y=4096,4096~64,256|F.mse_loss(x,y)+F.l1_loss(x,y)
x=8192,8192~64,256:f16;y=8192,8192~64,256:f16|F.mse_loss(x,y)*0.5+F.smooth_l1_loss(x,y)
x=8192,8192~64,256:bf16|x.sum()*1e-4+x.amax()
x=256,512,512~4,64,128|x.mean()+x.std()
x=8192,8192~64,512;y=8192,8192~64,512|F.huber_loss(x,y)+(x*y).mean()
x=8192,4096~64,256|x.abs().amax()/x.pow(2).mean().sqrt()
x=8192,8192~64,256;y=8192,8192~64,256|F.binary_cross_entropy_with_logits(x,torch.sigmoid(y))+x.pow(2).mean()
x=16,4194304~3,40960|(x.amax(1)-x.amin(1))/x.std(1)
x=4095,4097~63,257;y=4095,4097~63,257|F.mse_loss(x,y)+F.l1_loss(x,y)
x=8192,8192~64,256|torch.logsumexp(x,(0,1))+x.mean()
x=4,32,4096,128~2,2,16,128:f16;c=4096,128~16,128:f16;s=4096,128~16,128:f16|x*c+torch.cat([-x[...,64:],x[...,:64]],-1)*s
x=4,32,4096,128~2,2,16,128:bf16;c=4096,128~16,128:bf16;s=4096,128~16,128:bf16|torch.cat([-x[...,64:],x[...,:64]],-1)*s+x*c
x=8192,1024~32,64;y=8192,1024~32,64;z=8192,3072~32,192|torch.cat([x*2,y,-F.gelu(x)],1)+z
x=8192,1024~32,64;y=8192,1024~32,64;s=1536~96|torch.cat([x,y[:,:{0}]],1)*s
x=4096,4096~32,64;y=4096,4096~32,64;b=4096~64|F.relu(torch.cat([x,y],0)+b)
x=4096,4096~32,64;y=4096,4096~32,64|F.relu(torch.stack([x,y],1))+0.5
x=8192,1022~32,62;s=1022~62|torch.cat([x[:,{1}:],x[:,:{1}]],1)*s
x=16384,4096~32,64|torch.cat([x[:,{2}:],x[:,:{2}]],1)*0.5+1
x=65536,1024~32,64;w=1024~64|a,b=x.chunk(2,-1);torch.cat([a*0.8-b*0.6,b*0.8+a*0.6],-1)*w
x=64,64,128,128~2,8,8,8;y=64,64,128,128~2,8,8,8;b=128,1,1~16,1,1|F.relu(torch.cat([x,y],1)+b)
x=64,256,56,56~2,32,8,8|(x*torch.sigmoid(x.mean((2,3),keepdim=True))).sum(1)
x=64,256,56,56~2,32,8,8|(x-x.mean(1,keepdim=True)).amax((2,3))
x=64,256,56,56~2,32,8,8:f16|(x*torch.sigmoid(x.mean((2,3),keepdim=True))).amax(1)
x=64,256,56,56~2,32,8,8|(x-x.mean((2,3),keepdim=True)).pow(2).sum(1)
x=64,256,56,56~2,32,8,8|torch.softmax(x,1).mean((2,3))
x=32,128,64,256~2,32,4,64|(x*torch.rsqrt(x.pow(2).mean(-1,keepdim=True)+1e-5)).amax(1)
x=64,256,56,56~2,32,8,8|x.mean(1,keepdim=True)+x.amax((2,3),keepdim=True)
x=8192,8192~64,128|(x/x.norm(dim=0,keepdim=True)).sum(1)
x=64,255,55,55~2,31,7,7|(x*torch.sigmoid(x.mean((2,3),keepdim=True))).amax(1)
x=64,256,56,56~2,32,8,8|y=x*torch.sigmoid(x.mean((2,3),keepdim=True));y/(y.amax(1,keepdim=True)+1)
x=4096,4096~1152,1024:f16;b=4096~1024:f16|(x+b).t().contiguous()*2
x=64,1024,1024~18,256,256:bf16;r=64,1024,1024~18,256,256:bf16|F.gelu(x).transpose(1,2)+r
x=64,256,56,56~5,64,56,64|F.relu(x*0.5).permute(0,2,3,1).contiguous()
x=4095,4097~95,97;b=4097~97|(x+b).t().contiguous()*2
x=64,64,64,256~66,2,64,132|(F.gelu(x)*2).permute(3,1,0,2).contiguous()
x=8192,4096~1100,1024;y=4096,8192~1024,1100|(x*y.t()).t().contiguous()
x=8,4096,4096~5,384,768;b=64~64|(x*0.5).view(x.size(0),x.size(1),-1,64).transpose(1,2)+b
x=8192,8192~1152,1024:i32|(x+1).t().contiguous()
x=262144,64~17000,64;b=64~64|(x*2+b).t().contiguous()
x=64,262144~64,17000;b=64,1~64,1|F.silu(x*2+b).t().contiguous()
x=256,1024,256~8,64,32:f16|x-x.amax((0,2),keepdim=True)+x.mean(1,keepdim=True)
x=8192,8192~128,64|x/(x.abs().sum(0,keepdim=True)+1)+x.sum(1,keepdim=True)
x=4096,4096~64,128|torch.softmax(x,0)*torch.softmax(x,1)
x=8192,8192~64,128|x-x.mean(0,keepdim=True)-x.mean(1,keepdim=True)+x.mean()
x=32,32,256,512~2,4,32,64|x-x.amax((0,1,2),keepdim=True)+x.sum(3,keepdim=True)
x=16,4194304~3,40960|(x/x.abs().sum(1,keepdim=True)).std(1)
x=256,1024,256~8,64,32|(x-x.mean(1,keepdim=True))/(x.std((0,2),keepdim=True)+1)
x=8192,8192~64,128|x.sum(0)*2,x.sum(1)
x=1024,256,256~32,8,16|x.sum(0)*x.amax((1,2),keepdim=True)
x=255,1023,257~7,63,33|x-x.amax((0,2),keepdim=True)+x.mean(1,keepdim=True)
x=8192,4096~256,64|x-x.mean(0,keepdim=True)+x.amax(1,keepdim=True)
"""

# what rows name as {0}, {1}, ...: at full size, small
PLACES = [("512", "32"), ("511", "31"), ("1000", "20")]
DTYPES = {"f16": ".half()", "bf16": ".bfloat16()", "i32": ".mul(100).int()"}


def source(text, full):
    name, shapes = text.split("=")
    shapes, _, dtype = shapes.partition(":")
    return name, f"torch.randn({shapes.split('~')[0 if full else 1]}){DTYPES.get(dtype, '')}"


def write(number, row, full):
    inputs, text = row.split("|")
    text = text.format(*[place[0 if full else 1] for place in PLACES])
    *before, result = text.split(";")
    named = [source(t, full) for t in inputs.split(";")]
    words = (text + "; " + inputs).replace('"', "'")
    return TASK.format(number=number, words=words, arguments=", ".join(n for n, _ in named),
                       body="".join(f"        {s}\n" for s in before), result=result,
                       inputs=", ".join(t for _, t in named))


def main():
    if not sys.argv[1:]:
        sys.exit(__doc__)
    out, rows = pathlib.Path(sys.argv[1]), ROWS.strip().splitlines()
    count = int(sys.argv[2]) if sys.argv[2:] else len(rows)
    full = sys.argv[3:] == ["0"]
    out.mkdir(parents=True, exist_ok=True)
    for number, row in enumerate(rows[: count or len(rows)]):
        (out / f"task{number:03d}.py").write_text(write(number, row, full))


if __name__ == "__main__":
    main()
