"""Tasks of the tables of modules: chains with a product, with a convolution or with none, single operators; at full size.

    python3 bench/gpu/modules_tasks.py OUT_DIR [NAME...]            p01.py ... p24.py, v01.py ... v24.py, c01.py ... c16.py, g_NAME.py
"""
import pathlib
import sys

TASK = '''"""{name}: {words}."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
{init}        self.eval()

    def forward(self, {arguments}):
{body}        return {result}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
'''

# inputs | statements; result | layers: products with three to six operators after or around them, fp32
PRODUCTS = """
x=1024,8192|F.gelu(self.l(x)*0.7)+0.3|l=nn.Linear(8192,8192)
x=1024,8192|self.n(F.silu(self.l(x))+self.b)|l=nn.Linear(8192,8192);b=nn.Parameter(torch.randn(8192));n=nn.GroupNorm(64,8192)
x=1024,8192|F.relu(F.gelu(self.n(self.l(x))))|l=nn.Linear(8192,8192);n=nn.BatchNorm1d(8192)
x=1024,8192|(self.l(x)/2).sum(1,keepdim=True)*1.5|l=nn.Linear(8192,8192)
x=1024,8192|y=self.l(x).amax(1,keepdim=True);F.gelu(y-y.mean(1,keepdim=True))|l=nn.Linear(8192,8192)
x=2048,4096|torch.logsumexp(torch.sigmoid(self.l(x)).sum(1,keepdim=True),0)|l=nn.Linear(4096,8192)
x=1024,8192|y=self.l(x);torch.tanh((y*torch.sigmoid(y)/2).clamp(-1,1)).clamp(-0.9,0.9)|l=nn.Linear(8192,8192)
x=2048,8192|F.mish(F.mish(self.l(x)))*0.5|l=nn.Linear(8192,4096)
x=2048,8192|F.gelu(F.hardtanh(self.l(x)*0.5,-2,2))|l=nn.Linear(8192,8192)
x=4096,4096|self.n(F.relu(self.l(x)))|l=nn.Linear(4096,4096);n=nn.LayerNorm(4096)
x=4096,4096|self.n(self.l(x)+x)|l=nn.Linear(4096,4096);n=nn.LayerNorm(4096)
x=4096,4096|torch.softmax(self.l(x)*0.125,1)|l=nn.Linear(4096,4096)
x=4096,4096|torch.softmax(F.gelu(self.l(x)),1)*2|l=nn.Linear(4096,4096)
x=1024,8192|y=torch.logsumexp((self.l(x)*2).clamp(-8,8),1,keepdim=True);y*F.mish(y)|l=nn.Linear(8192,8192)
x=1024,8192|y=F.avg_pool1d(self.l(x)[:,None],16)[:,0];(F.gelu(y)*2).amax(1)|l=nn.Linear(8192,8192)
x=1024,8192|F.max_pool1d(self.l(x)[:,None],2)[:,0].sum(1)*0.5|l=nn.Linear(8192,8192)
x=2048,8192|F.relu((self.l(x)-2)*1.5)|l=nn.Linear(8192,8192)
x=4096,4096|F.leaky_relu(self.l(x),0.1).mean(0)|l=nn.Linear(4096,8192)
x=4096,4096|y=self.l(x);F.silu(y*torch.rsqrt(y.pow(2).mean(1,keepdim=True)+1e-5)*self.g)|l=nn.Linear(4096,4096,bias=False);g=nn.Parameter(torch.randn(4096))
a=64,1024,128;b=64,128,1024|torch.softmax(torch.bmm(a,b)*0.088,2)*0.5|
x=1024,8192|y=self.l(x);z=y-y.mean(1,keepdim=True);(z*torch.rsqrt(y.var(1,unbiased=False,keepdim=True)+1e-5)+y)*y|l=nn.Linear(8192,8192)
x=2048,8192|torch.minimum(self.l(x),self.c)-self.c|l=nn.Linear(8192,8192);c=nn.Parameter(torch.tensor(2.0))
x=1024,8192|y=torch.logsumexp(self.l(x),1,keepdim=True);F.gelu(F.gelu(F.leaky_relu(F.leaky_relu(y))))|l=nn.Linear(8192,8192)
x=4096,4096|F.silu(self.a(x))*self.b(x)+x|a=nn.Linear(4096,4096,bias=False);b=nn.Linear(4096,4096,bias=False)
"""

CHAINS = """
x=8192,8192|F.gelu(x*1.3+0.2)*torch.sigmoid(x)-0.5|
x=16384,4096;r=16384,4096|self.n(F.gelu(x)+r)|n=nn.LayerNorm(4096)
x=16384,4096;y=16384,4096|x*torch.rsqrt(x.pow(2).mean(1,keepdim=True)+1e-6)*self.g*F.silu(y)|g=nn.Parameter(torch.randn(4096))
x=32,512,64,64|y=self.n(x);y*torch.sigmoid(y)|n=nn.GroupNorm(32,512)
x=16384,4096;m=16384,4096|torch.softmax(x.masked_fill(m>1,float('-inf'))*0.125,1)|
x=8192,16384|F.log_softmax(x*0.5,1).clamp(min=-20)|
x=64,256,56,56|F.relu(self.n(x)+x)|n=nn.BatchNorm2d(256)
x=16384,8192|(x-x.mean(1,keepdim=True)).abs().amax(1)+x.std(1)|
x=16384,8192;y=16384,8192|F.cosine_similarity(x,y,1).mean()|
x=8192,8192;y=8192,8192|F.mse_loss(torch.tanh(x),y)+F.l1_loss(x,y)|
x=4096,16,1024;c=1024;s=1024|torch.cat([-x[...,512:],x[...,:512]],2)*s+x*c|
x=64,256,56,56|(x*torch.sigmoid(x.mean((2,3),keepdim=True))).amax(1)|
x=16384,4096|F.normalize(F.leaky_relu(x),dim=1)*x.amax(1,keepdim=True)|
x=8192,8192|torch.logsumexp(x,1)+x.clamp(0,6).sum(1)|
x=4096,4096;b=4096|F.hardswish((x+b).transpose(0,1).contiguous()*2)|
x=256,1024,256|x-x.amax((0,2),keepdim=True)+x.mean(1,keepdim=True)|
"""

# Convolutions with three to six operators around them, fp32, 1 to 20 ms.
CONVOLUTIONS = """
x=16,64,256,256|F.relu(self.n(self.c(x)))*0.5|c=nn.Conv2d(64,128,3,padding=1);n=nn.BatchNorm2d(128)
x=16,64,256,256;r=16,64,256,256|F.relu(self.n(self.c(x))+r)|c=nn.Conv2d(64,64,3,padding=1,bias=False);n=nn.BatchNorm2d(64)
x=16,32,256,256|F.gelu(self.c(x)*0.7)+0.3|c=nn.Conv2d(32,64,5,padding=2)
x=16,64,256,256|torch.tanh(self.c(x)).clamp(-0.9,0.9)*self.s|c=nn.Conv2d(64,128,3);s=nn.Parameter(torch.randn(128,1,1))
x=16,64,256,256|F.relu(F.hardswish(self.c(x)))*0.5|c=nn.Conv2d(64,64,3)
x=16,64,256,256|F.max_pool2d(torch.tanh(self.c(x))*2+self.b,2)|c=nn.Conv2d(64,128,3,padding=1);b=nn.Parameter(torch.randn(128,1,1))
x=16,64,256,256|F.avg_pool2d(F.relu(self.n(self.c(x))),2)|c=nn.Conv2d(64,128,3,padding=1);n=nn.BatchNorm2d(128)
x=16,64,256,256|F.relu(self.c(x)+self.b).mean((2,3))*2|c=nn.Conv2d(64,128,3);b=nn.Parameter(torch.randn(128,1,1))
x=16,32,256,256|torch.softmax(self.c(x)*0.125+self.b,1)|c=nn.Conv2d(32,64,3);b=nn.Parameter(torch.randn(64,1,1))
x=16,64,256,256|torch.logsumexp(F.relu(self.c(x)),1,keepdim=True)*0.5|c=nn.Conv2d(64,64,3)
x=16,64,256,256|F.silu(self.n(self.c(x)))|c=nn.Conv2d(64,64,3,padding=1);n=nn.GroupNorm(8,64)
x=16,64,256,256|F.relu(F.instance_norm(self.c(x))/2)|c=nn.Conv2d(64,64,3)
x=8,32,16,128,128|F.leaky_relu(self.c(x)*self.s,0.1).clamp(-3,3)|c=nn.Conv3d(32,64,3,padding=1);s=nn.Parameter(torch.randn(64,1,1,1))
x=16,32,256,256|F.max_pool2d(torch.softmax(self.c(x),1)*2,2)|c=nn.Conv2d(32,64,3)
x=16,64,256,256|((self.c(x)+self.b)*2).clamp(0,1)/2|c=nn.ConvTranspose2d(64,64,3);b=nn.Parameter(torch.randn(64,1,1))
x=8,48,32,64,64|F.relu(self.n(self.c(x)))+1|c=nn.ConvTranspose3d(48,48,3);n=nn.BatchNorm3d(48)
x=16,32,256,256|F.gelu(self.c(x)+self.b)*0.5|c=nn.ConvTranspose2d(32,64,4,stride=2,padding=1);b=nn.Parameter(torch.randn(64,1,1))
x=16,64,512,512|F.relu6(self.n(self.c(x)))*0.5|c=nn.Conv2d(64,64,3,padding=1,groups=64,bias=False);n=nn.BatchNorm2d(64)
x=16,64,512,512|F.silu(self.n(self.c(x)))+0.1|c=nn.Conv2d(64,128,1,bias=False);n=nn.BatchNorm2d(128)
x=32,64,65536;r=32,128,65536|F.gelu(self.c(x))*0.5+r|c=nn.Conv1d(64,128,3,padding=1)
x=8,32,512,512|F.leaky_relu(self.c(x)*0.5-1,0.2)|c=nn.Conv2d(32,64,(5,9),padding=(4,12),dilation=(2,3))
x=256,3,224,224|F.max_pool2d(F.relu(self.c(x)),3,2)|c=nn.Conv2d(3,96,11,stride=4,padding=2)
x=16,3,512,512|F.relu(self.n(self.c(x))*2)|c=nn.Conv2d(3,64,3,padding=1);n=nn.BatchNorm2d(64)
x=64,128,112,112|torch.tanh(torch.tanh(self.c(x).amin(1,keepdim=True)))*2|c=nn.Conv2d(128,128,3)
"""

# name | inputs | statements; result | layers
GENERIC = """
sort|x=4096,4096|torch.sort(x,1)[0]
topk|x=4096,8192|torch.topk(x,64,1)[0]
median|x=4096,2048|torch.median(x,1)[0]
cumsum_inner|x=8192,8192|torch.cumsum(x,1)*2
cumsum_outer|x=8192,8192|torch.cumsum(x,0)
cummax|x=8192,4096|torch.cummax(x,1)[0]
logcumsumexp|x=8192,4096|torch.logcumsumexp(x,1)
gather_rows|x=65536,1024;i=index(65536),65536|x[i]
gather_elements|x=8192,8192;i=index(8192),8192,8192|torch.gather(x,1,i)
embedding|i=index(50000),16384|self.e(i)*2|e=nn.Embedding(50000,1024)
index_add|x=4096,1024;i=index(4096),16384;y=16384,1024|torch.index_add(x,0,i,y)
scatter_add|x=2048,4096;i=index(2048),2048,4096;y=2048,4096|torch.scatter_add(x,0,i,y)
one_hot|i=index(1000),65536|F.one_hot(i,1000).float()
flip_roll|x=8192,8192|x.flip(1)+x.roll(3,0)
concat|x=8192,4096;y=8192,2048|torch.cat([x,y,x[:,:2048]],1)
transpose|x=64,1024,1024|x.transpose(1,2).contiguous()
permute|x=64,64,64,256|x.permute(3,1,0,2).contiguous()
reflect_pad|x=32,64,256,256|F.pad(x,(3,3,3,3),mode='reflect')
circular_pad|x=32,64,256,256|F.pad(x,(3,3,3,3),mode='circular')
pixel_shuffle|x=16,256,128,128|F.pixel_shuffle(x,4)
tril|x=8192,8192|torch.tril(x)*2
sum_middle|x=256,1024,512|x.sum(1)
sum_outer|x=16384,4096|x.sum(0)
sum_ends|x=256,1024,512|x.sum((0,2))
var_ends|x=256,1024,512|x.var((0,2))
prod|x=16384,4096|torch.prod(x,1)
argmax_outer|x=8192,8192|x.argmax(0)
softmax_outer|x=8192,8192|torch.softmax(x,0)
logsumexp_middle|x=256,1024,512|torch.logsumexp(x,1)
bilinear|x=32,64,128,128|F.interpolate(x,scale_factor=2,mode='bilinear')
nearest|x=32,64,128,128|F.interpolate(x,scale_factor=2)
bicubic|x=16,32,128,128|F.interpolate(x,scale_factor=2,mode='bicubic')
adaptive_pool|x=64,256,56,56|F.adaptive_avg_pool2d(x,(7,7))
average_pool|x=64,128,112,112|F.avg_pool2d(x,3,2,1)
unfold|x=16,32,128,128|F.unfold(x,3,padding=1)
instance_norm|x=64,128,64,64|F.instance_norm(x)
grid_sample|x=16,64,128,128;g=16,128,128,2|F.grid_sample(x,torch.tanh(g),align_corners=False)
cdist|x=2048,64;y=2048,64|torch.cdist(x,y,p=1.0)
searchsorted|x=4096;y=4194304|torch.searchsorted(x.sort()[0],y)
digamma|x=8192,8192|torch.digamma(x.abs()+0.1)
"""


def source(text):
    name, shape = text.split("=")
    if shape.startswith("index("):
        most, shape = shape[6:].split("),")
        return name, f"torch.randint(0, {most}, ({shape},))"
    return name, f"torch.randn({shape})"


def write(name, row):
    parts = row.split("|")
    named = [source(t) for t in parts[0].split(";")]
    *before, result = parts[1].split(";")
    init = "".join(f"        self.{layer.split('=', 1)[0]} = {layer.split('=', 1)[1]}\n" for layer in filter(None, (parts[2] if len(parts) > 2 else "").split(";")))
    return TASK.format(name=name, words=parts[1].replace('"', "'"), init=init, arguments=", ".join(n for n, _ in named),
                       body="".join(f"        {s}\n" for s in before), result=result, inputs=", ".join(t for _, t in named))


def tasks():
    found = {}
    for letter, rows in (("p", PRODUCTS), ("c", CHAINS), ("v", CONVOLUTIONS)):
        for k, row in enumerate(rows.strip().splitlines(), 1):
            found[f"{letter}{k:02d}"] = row
    for row in GENERIC.strip().splitlines():
        name, rest = row.split("|", 1)
        found[f"g_{name}"] = rest
    return found


def main():
    if not sys.argv[1:]:
        sys.exit(__doc__)
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    for name, row in tasks().items():
        if not sys.argv[2:] or name in sys.argv[2:]:
            (out / f"{name}.py").write_text(write(name, row))


if __name__ == "__main__":
    main()
