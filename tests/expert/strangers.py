"""Modules in the styles of public task suites: single operators, fused chains, small networks.

    python3 tests/expert/strangers.py OUT_DIR [COUNT [SEED]]        COUNT 0: all of them; SEED is not used; FULL=1: at full size
    python3 tests/expert/strangers.py --count

A row of OPERATORS and CHAINS: name | sizes | inputs | statements; result | layers. A block of NETWORKS: name; sizes after @;
`init` lines; lines of forward; inputs. NAME=4:128 is a size: here, and at full size. Modules are as people write them: without
.eval() unless something is random, so that batch norms use the statistics of the batch.
"""
import os
import re
import textwrap

import task_files

TASK = '''"""Module {number}: {name}."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

{sizes}
{helpers}
class Model(nn.Module):
    def __init__(self):
        super().__init__()
{init}

    def forward(self, {arguments}):
{body}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
'''

OPERATORS = """
square product|N=33:2048|a=randn(N,N);b=randn(N,N)|torch.matmul(a,b)
product of any shapes|M=17:1024,K=45:4096,N=29:2048|a=randn(M,K);b=randn(K,N)|torch.matmul(a,b)
batched product|B=3:128,M=9:128,K=20:256,N=11:512|a=randn(B,M,K);b=randn(B,K,N)|torch.bmm(a,b)
matrix times vector|M=33:256,K=300:131072|a=randn(M,K);b=randn(K,1)|torch.matmul(a,b)
matrix times a number|M=33:16384,N=65:4096|a=randn(M,N);s=3.14|a*s
product with a large K|M=9:256,K=700:131072|a=randn(M,K);b=randn(K,M)|torch.matmul(a,b)
product with a small K|M=40:16384,K=3:32|a=randn(M,K);b=randn(K,M)|torch.matmul(a,b)
tall and skinny product|M=130:16384,N=4:16|a=randn(M,N);b=randn(N,M)|torch.matmul(a,b)
product of a diagonal|N=17:4096,M=33:4096|a=randn(N);b=randn(N,M)|torch.diag(a)@b
product of symmetric matrices|N=21:4096|a=(lambda x: (x + x.T) / 2)(torch.randn(N,N));b=(lambda x: (x + x.T) / 2)(torch.randn(N,N))|torch.matmul(a,b)
product of upper triangles|N=25:4096|a=torch.triu(torch.randn(N,N));b=torch.triu(torch.randn(N,N))|torch.triu(torch.matmul(a,b))
product of lower triangles|N=25:4096|a=torch.tril(torch.randn(N,N));b=torch.tril(torch.randn(N,N))|torch.tril(torch.matmul(a,b))
product, left transposed|M=17:1024,K=33:4096,N=20:2048|a=randn(K,M);b=randn(K,N)|torch.matmul(a.T,b)
product, right transposed|M=17:1024,K=33:4096,N=20:2048|a=randn(M,K);b=randn(N,K)|torch.matmul(a,b.T)
product, both transposed|M=17:1024,K=33:4096,N=20:2048|a=randn(K,M);b=randn(N,K)|torch.matmul(a.T,b.T)
tensor of rank 3 times matrix|B=3:16,M=9:1024,K=33:2048,N=12:768|a=randn(B,M,K);b=randn(K,N)|torch.matmul(a,b)
tensor of rank 4 times matrix|B=2:8,I=5:256,J=6:512,L=17:256,K=9:768|a=randn(B,I,J,L);b=randn(L,K)|torch.einsum('bijl,lk->bijk',a,b)
relu|B=5:4096,N=97:16384|x=randn(B,N)|torch.relu(x)
leaky relu|B=5:4096,N=97:16384|x=randn(B,N)|F.leaky_relu(x,negative_slope=0.02)
sigmoid|B=5:4096,N=97:16384|x=randn(B,N)|torch.sigmoid(x)
tanh|B=5:4096,N=97:16384|x=randn(B,N)|torch.tanh(x)
softmax|B=5:4096,N=197:16384|x=rand(B,N)|torch.softmax(x,dim=1)
log softmax|B=5:4096,N=197:16384|x=rand(B,N)|torch.log_softmax(x,dim=1)
swish|B=5:4096,N=97:16384|x=randn(B,N)|x*torch.sigmoid(x)
gelu|B=5:4096,N=97:16384|x=randn(B,N)|F.gelu(x)
gelu by tanh, written out|B=5:4096,N=97:16384|x=randn(B,N)|0.5*x*(1.0+torch.tanh(math.sqrt(2.0/math.pi)*(x+0.044715*torch.pow(x,3.0))))
selu|B=5:4096,N=97:16384|x=randn(B,N)|torch.selu(x)
hard sigmoid|B=5:4096,N=97:16384|x=randn(B,N)|F.hardsigmoid(x)
softplus|B=5:4096,N=97:16384|x=randn(B,N)|F.softplus(x)
softsign|B=5:4096,N=97:16384|x=randn(B,N)|x/(1+torch.abs(x))
elu|B=5:4096,N=97:16384|x=randn(B,N)|F.elu(x,alpha=1.0)
hard tanh|B=5:4096,N=97:16384|x=randn(B,N)|F.hardtanh(x,min_val=-1.0,max_val=1.0)
rarer activations|B=5:1024,N=97:8192|x=randn(B,N)|F.celu(x,1.3),F.logsigmoid(x),F.tanhshrink(x),F.softshrink(x,0.3),F.hardshrink(x),F.threshold(x,0.1,20.0),F.relu6(x*4)
more activations|B=4:1024,N=96:8192|x=randn(B,N)|F.mish(x),F.hardswish(x),F.silu(x),F.glu(x,1),self.p(x),F.softmin(x,1)|p=nn.PReLU()
batch norm of a batch|N=4:16,C=6:64,H=9:256,W=11:256|x=rand(N,C,H,W)|self.n(x)|n=nn.BatchNorm2d(C)
instance norm|N=4:16,C=6:64,H=9:256,W=11:256|x=rand(N,C,H,W)|self.n(x)|n=nn.InstanceNorm2d(C)
group norm|N=4:16,C=8:64,H=9:256,W=11:256|x=rand(N,C,H,W)|self.n(x)|n=nn.GroupNorm(num_groups=4,num_channels=C)
rms norm over channels|N=4:16,C=8:64,H=9:256,W=11:256|x=rand(N,C,H,W)|rms=torch.sqrt(torch.mean(x**2,dim=1,keepdim=True)+1e-5);x/rms
frobenius norm|N=4:64,C=8:64,H=9:128,W=11:128|x=rand(N,C,H,W)|norm=torch.norm(x,p='fro');x/norm
l1 norm|B=5:4096,N=97:16384|x=rand(B,N)|x/torch.mean(torch.abs(x),dim=1,keepdim=True)
l2 norm|B=5:4096,N=97:16384|x=rand(B,N)|x/torch.norm(x,p=2,dim=1,keepdim=True)
layer norm of whole samples|N=4:16,C=6:64,H=9:128,W=11:128|x=rand(N,C,H,W)|self.n(x)|n=nn.LayerNorm(normalized_shape=(C,H,W))
max pool 1d|N=3:64,C=5:192,L=70:16384|x=rand(N,C,L)|self.p(x)|p=nn.MaxPool1d(kernel_size=8,stride=1,padding=4,dilation=3)
max pool 2d|N=2:16,C=3:32,H=21:512,W=19:512|x=rand(N,C,H,W)|self.p(x)|p=nn.MaxPool2d(kernel_size=4,stride=1,padding=1,dilation=1)
max pool 3d|N=2:8,C=3:32,D=13:64|x=rand(N,C,D,D,D)|self.p(x)|p=nn.MaxPool3d(kernel_size=3,stride=2,padding=1,dilation=3)
average pool 1d|N=3:64,C=5:128,L=70:32768|x=rand(N,C,L)|self.p(x)|p=nn.AvgPool1d(kernel_size=8,stride=1,padding=4)
average pool 2d|N=2:16,C=3:64,H=36:1024|x=rand(N,C,H,H)|self.p(x)|p=nn.AvgPool2d(kernel_size=11)
max pool of wide windows|N=2:16,C=3:64,H=37:1024,W=100:1024|x=randn(N,C,H,W)|F.max_pool2d(x,(5,9),(6,7),(2,4))|
average pool 3d|N=2:16,C=3:32,D=14:64|x=rand(N,C,D,D,D)|self.p(x)|p=nn.AvgPool3d(kernel_size=3,stride=2,padding=1)
adaptive pools, max with its places|N=2:16,C=3:64,H=15:224,W=13:224|x=rand(N,C,H,W)|F.adaptive_avg_pool2d(x,(7,5)),F.adaptive_max_pool2d(x,4),F.max_pool2d(x,3,2,return_indices=True)[1]
sum over a dimension|B=4:128,M=19:4096,N=23:4095|x=rand(B,M,N)|torch.sum(x,dim=1,keepdim=True)
mean over a dimension|B=4:128,M=19:4096,N=23:4095|x=rand(B,M,N)|torch.mean(x,dim=1)
max over a dimension|B=4:128,M=19:4096,N=23:4095|x=rand(B,M,N)|torch.max(x,dim=1)[0]
min over a dimension|B=4:128,M=19:4096,N=23:4095|x=rand(B,M,N)|torch.min(x,dim=1)[0]
argmax|B=4:128,M=19:4096,N=23:4095|x=rand(B,M,N)|torch.argmax(x,dim=1)
argmin|B=4:128,M=19:4096,N=23:4095|x=rand(B,M,N)|torch.argmin(x,dim=1)
product over a dimension|B=4:64,M=19:1024,N=23:512|x=rand(B,M,N)|torch.prod(x,dim=1)
convolution, square|N=2:16,C=3:64,D=5:128,H=17:256|x=rand(N,C,H,H)|self.c(x)|c=nn.Conv2d(C,D,3,stride=1,padding=0,bias=False)
convolution, kernel not square|N=2:8,C=3:32,D=5:64,H=17:256,W=15:256|x=rand(N,C,H,W)|self.c(x)|c=nn.Conv2d(C,D,(5,7),stride=1,bias=False)
convolution, dilated and padded unequally|N=2:8,C=4:32,D=5:64,H=19:512|x=rand(N,C,H,H)|self.c(x)|c=nn.Conv2d(C,D,(3,5),stride=1,padding=(2,4),dilation=(2,3))
convolution with a stride and groups|N=2:16,C=8:128,D=12:256,H=17:128|x=rand(N,C,H,H)|self.c(x)|c=nn.Conv2d(C,D,3,stride=2,padding=1,groups=4)
convolution 1d, dilated|N=3:64,C=4:64,D=5:128,L=61:16384|x=rand(N,C,L)|self.c(x)|c=nn.Conv1d(C,D,3,stride=3,dilation=4)
convolution 3d, kernel not cubic|N=1:16,C=2:3,D=4:64,W=9:64|x=rand(N,C,W,W,W)|self.c(x)|c=nn.Conv3d(C,D,(3,5,7))
transposed convolution 1d, dilated|N=2:32,C=3:32,D=4:64,L=37:8192|x=rand(N,C,L)|self.c(x)|c=nn.ConvTranspose1d(C,D,5,stride=2,padding=3,dilation=2)
transposed convolution 2d, not square|N=2:16,C=3:32,D=4:64,H=9:128,W=12:256|x=rand(N,C,H,W)|self.c(x)|c=nn.ConvTranspose2d(C,D,(3,5),stride=(2,3),padding=(1,2),output_padding=(1,1))
transposed convolution 2d, groups|N=2:8,C=4:64,D=6:64,H=9:128|x=rand(N,C,H,H)|self.c(x)|c=nn.ConvTranspose2d(C,D,3,stride=2,padding=1,groups=2,dilation=2)
transposed convolution 3d|N=1:8,C=2:32,D=4:32,W=5:32|x=rand(N,C,W,W,W)|self.c(x)|c=nn.ConvTranspose3d(C,D,3,stride=2,padding=1,output_padding=1)
depthwise convolution|N=2:16,C=6:64,H=17:512|x=rand(N,C,H,H)|self.c(x)|c=nn.Conv2d(C,C,3,groups=C,bias=False)
depthwise convolution, kernel of one column|N=2:16,C=6:64,H=17:512|x=rand(N,C,H,H)|self.c(x)|c=nn.Conv2d(C,C,(3,1),groups=C,bias=False)
depthwise, then pointwise|N=2:16,C=5:64,D=7:128,H=15:256|x=rand(N,C,H,H)|self.p(self.d(x))|d=nn.Conv2d(C,C,3,padding=1,groups=C,bias=False);p=nn.Conv2d(C,D,1,bias=False)
pointwise convolution|N=2:16,C=5:64,D=7:128,H=15:512|x=rand(N,C,H,H)|self.c(x)|c=nn.Conv2d(C,D,1,bias=False)
cumulative sum|B=5:4096,N=301:16384|x=rand(B,N)|torch.cumsum(x,dim=1)
cumulative product|B=5:4096,N=301:16384|x=rand(B,N)|torch.cumprod(x,dim=1)
cumulative sum from the end|B=5:4096,N=301:16384|x=rand(B,N)|torch.cumsum(x.flip(1),dim=1).flip(1)
exclusive cumulative sum|B=5:4096,N=301:16384|x=rand(B,N)|e=torch.cat((torch.zeros_like(x.select(1,0).unsqueeze(1)),x),dim=1)[:,:-1];torch.cumsum(e,dim=1)
masked cumulative sum|B=5:4096,N=301:16384|x=rand(B,N);m=torch.randint(0,2,(B,N)).bool()|torch.cumsum(x*m,dim=1)
other scans|B=5:1024,N=301:4096|x=randn(B,N)|torch.cummax(x,1)[0],torch.cummin(x,1)[1],torch.logcumsumexp(x,1),torch.cumsum(x,0)
mean squared error|B=9:4096,N=65:32768|p=rand(B,N);t=rand(B,N)|torch.mean((p-t)**2)
cross entropy|B=33:32768,N=17:4096|p=rand(B,N);t=torch.randint(0,N,(B,))|F.cross_entropy(p,t)
huber loss|B=9:4096,N=65:32768|p=rand(B,N);t=rand(B,N)|F.smooth_l1_loss(p,t)
cosine similarity loss|B=9:4096,N=65:4096|p=rand(B,N);t=rand(B,N)|torch.mean(1-F.cosine_similarity(p,t,dim=1))
kl divergence|B=9:8192,N=65:8192|p=torch.rand(B,N).softmax(dim=-1);t=torch.rand(B,N).softmax(dim=-1)|F.kl_div(torch.log(p),t,reduction='batchmean')
triplet margin loss|B=9:32768,N=65:8192|a=rand(B,N);p=rand(B,N);n=rand(B,N)|self.l(a,p,n)|l=nn.TripletMarginLoss(margin=1.0)
hinge loss|B=9:32768,N=65:4096|p=rand(B,N);t=torch.randint(0,2,(B,1)).float()*2-1|torch.mean(torch.clamp(1-p*t,min=0))
binary cross entropies|B=9:4096,N=65:4096|p=rand(B,N);t=torch.randint(0,2,(B,N)).float()|F.binary_cross_entropy(p,t),F.binary_cross_entropy_with_logits(p,t,pos_weight=torch.tensor(2.0)),F.soft_margin_loss(p,t*2-1),F.multilabel_soft_margin_loss(p,t)
ranking and margin losses|B=9:4096,N=15:1000|p=randn(B,N);q=randn(B,N);i=torch.randint(0,N,(B,))|F.margin_ranking_loss(p,q,torch.ones_like(p),0.1),F.multi_margin_loss(p,i),F.nll_loss(F.log_softmax(p,1),i,reduction='sum'),F.hinge_embedding_loss(p.abs(),torch.sign(q))
losses of distributions|B=9:4096,N=15:1000|p=randn(B,N);q=rand(B,N);v=torch.rand(B,N)+0.1|F.poisson_nll_loss(p,q),F.gaussian_nll_loss(p,q,v),F.cosine_embedding_loss(p,q,torch.ones(B)),F.l1_loss(p,q),F.huber_loss(p,q,delta=0.5)
scaled dot product attention|B=1:16,H=2:16,L=19:512,D=16:64|q=rand(B,H,L,D);k=rand(B,H,L,D);v=rand(B,H,L,D)|F.scaled_dot_product_attention(q,k,v)
"""

CHAINS = """
convolution, relu, bias|N=2:64,C=3:64,D=5:128,H=13:128|x=rand(N,C,H,H)|torch.relu(self.c(x))+self.b|c=nn.Conv2d(C,D,3);b=nn.Parameter(torch.randn(D,1,1))
transposed convolution, bias, two clamps and a scale|N=2:32,C=3:64,D=4:64,H=8:64|x=rand(N,C,H,H)|y=torch.clamp(self.c(x)+self.b,min=0.0,max=1.0)*2.0;torch.clamp(y,min=0.0,max=1.0)/2.0|c=nn.ConvTranspose2d(C,D,3,stride=2,padding=1,output_padding=1);b=nn.Parameter(torch.randn(D,1,1))
convolution 3d, multiply, norm, clamp, max over channels|N=2:16,C=2:3,D=4:16,W=7:32|x=rand(N,C,W,W,W)|y=self.n(self.c(x)*self.m);torch.max(torch.clamp(y,-1.0,1.0)*self.m,dim=1)[0]|c=nn.Conv3d(C,D,3);m=nn.Parameter(torch.randn(D,1,1,1));n=nn.InstanceNorm3d(D)
convolution, mish twice|N=2:64,C=3:64,D=5:128,H=13:256|x=rand(N,C,H,H)|F.mish(F.mish(self.c(x)))|c=nn.Conv2d(C,D,3)
linear, subtract, multiply, relu|B=9:1024,K=33:8192,N=21:8192|x=rand(B,K)|torch.relu((self.l(x)-2.0)*1.5)|l=nn.Linear(K,N)
linear, group norm, leaky relu, doubled|B=9:1024,K=33:8192,N=24:8192|x=rand(B,K)|y=F.leaky_relu(self.n(self.l(x)),0.01);y+y|l=nn.Linear(K,N);n=nn.GroupNorm(8,N)
convolution, minimum over channels, tanh twice|N=2:128,C=3:16,D=6:64,H=13:256|x=rand(N,C,H,H)|torch.tanh(torch.tanh(torch.min(self.c(x),dim=1,keepdim=True)[0]))|c=nn.Conv2d(C,D,3)
transposed convolution 3d, norms, poolings|N=1:16,C=2:32,D=3:64,W=5:16|x=rand(N,C,W,W,W)|self.q(self.p(self.n(self.c(x))))|c=nn.ConvTranspose3d(C,D,3,stride=2,padding=1);n=nn.BatchNorm3d(D);p=nn.AvgPool3d(2);q=nn.AvgPool3d(2)
linear, matrix times scale, residual|B=9:16384,K=33:4096|x=rand(B,K)|y=self.l(x);o=y.clone().detach();y*0.5+o|l=nn.Linear(K,K)
product, scale, batch norm|B=9:16384,K=33:4096,N=21:4096|x=rand(B,K)|self.n(self.l(x)*self.s)|l=nn.Linear(K,N);s=nn.Parameter(torch.randn(N));n=nn.BatchNorm1d(N)
convolution, softmax 3d, two max pools|N=1:128,C=2:3,D=4:16,W=14:32|x=rand(N,C,W,W,W)|y=torch.softmax(self.c(x),dim=1);self.p(self.p(y))|c=nn.Conv3d(C,D,3);p=nn.MaxPool3d(2)
transposed convolution, softmax, bias, scale, sigmoid|N=2:128,C=3:64,D=4:128,H=7:64|x=rand(N,C,H,H)|torch.sigmoid((torch.softmax(self.c(x),dim=1)+self.b)*2.0)|c=nn.ConvTranspose2d(C,D,4,stride=2,padding=1,output_padding=1);b=nn.Parameter(torch.randn(D,1,1))
linear, swish, divide, clamp, tanh, clamp|B=9:1024,K=33:8192,N=21:8192|x=rand(B,K)|y=self.l(x);y=y*torch.sigmoid(y)/2.0;torch.clamp(torch.tanh(torch.clamp(y,min=-1.0,max=1.0)),min=-1.0,max=1.0)|l=nn.Linear(K,N)
transposed convolution 3d, logsumexp, hard swish, subtract, clamp|N=1:128,C=2:3,D=4:16,W=6:16|x=rand(N,C,W,W,W)|y=torch.logsumexp(self.c(x),dim=1,keepdim=True);y=y*torch.sigmoid(y+3)/6;torch.clamp(y-self.b,min=-1,max=1)|c=nn.ConvTranspose3d(C,D,3,stride=2,padding=1);b=nn.Parameter(torch.randn(1,1,1,1))
convolution, subtract twice, tanh, average pool|N=2:128,C=3:64,D=5:128,H=14:128|x=rand(N,C,H,H)|self.p(torch.tanh(self.c(x)-0.5)-0.2)|c=nn.Conv2d(C,D,3);p=nn.AvgPool2d(2)
product, average pool, gelu, scale, max|B=9:1024,K=33:8192,N=32:8192|x=rand(B,K)|y=self.p(self.l(x).unsqueeze(1)).squeeze(1);torch.max(F.gelu(y)*2.0,dim=1)[0]|l=nn.Linear(K,N);p=nn.AvgPool1d(kernel_size=16)
product, max pool, sum, scale|B=9:128,K=33:32768,N=32:32768|x=rand(B,K)|y=self.p(self.l(x).unsqueeze(1)).squeeze(1);torch.sum(y,dim=1)*0.5|l=nn.Linear(K,N);p=nn.MaxPool1d(2)
convolution, group norm, tanh, hard swish, residual, logsumexp|N=2:128,C=3:8,D=8:64,H=12:128|x=rand(N,C,H,H)|y=self.c(x);z=self.h(torch.tanh(self.n(y)));torch.logsumexp(y+z,dim=1,keepdim=True)|c=nn.Conv2d(C,D,3);n=nn.GroupNorm(4,D);h=nn.Hardswish()
linear, dropout off, softmax|B=9:128,K=33:16384,N=21:16384|x=rand(B,K)|torch.softmax(self.d(self.l(x)),dim=1)|l=nn.Linear(K,N);d=nn.Dropout(0.2).eval()
product with sums and logsumexps of one column|B=9:1024,K=33:8192,N=21:8192|x=rand(B,K)|y=torch.sum(self.l(x),dim=1,keepdim=True);y=torch.max(y,dim=1,keepdim=True)[0];y=torch.mean(y,dim=1,keepdim=True);torch.logsumexp(torch.logsumexp(y,dim=1,keepdim=True),dim=1,keepdim=True)|l=nn.Linear(K,N)
convolution, hard swish, relu|N=2:128,C=3:8,D=5:64,H=13:128|x=rand(N,C,H,H)|torch.relu(F.hardswish(self.c(x)))|c=nn.Conv2d(C,D,3)
linear, sigmoid, sum, logsumexp over the batch|B=9:16384,K=33:2048,N=21:4096|x=rand(B,K)|torch.logsumexp(torch.sum(torch.sigmoid(self.l(x)),dim=1),dim=0)|l=nn.Linear(K,N)
batched product as instance norm, sum, residual, multiply|B=9:1024,N=21:8192|x=rand(B,N);y=rand(B,N)|z=self.n(self.l(x).unsqueeze(1).unsqueeze(1)).squeeze(1).squeeze(1);(z+y)*y|l=nn.Linear(N,N);n=nn.InstanceNorm2d(N)
transposed convolution, global average pool, bias, logsumexp, sum|N=2:16,C=3:64,D=4:128,H=9:256|x=rand(N,C,H,H)|y=torch.mean(self.c(x),dim=(2,3),keepdim=True)+self.b;torch.sum(torch.logsumexp(y,dim=1,keepdim=True),dim=(2,3))*10.0|c=nn.ConvTranspose2d(C,D,3);b=nn.Parameter(torch.randn(D,1,1))
convolution, divide, leaky relu|N=2:128,C=3:8,D=5:64,H=13:128|x=rand(N,C,H,H)|F.leaky_relu(self.c(x)/2,negative_slope=0.01)|c=nn.Conv2d(C,D,3)
convolution 3d, leaky relu, sum with a tensor, clamp, gelu|N=1:128,C=2:8,D=4:64,W=7:16|x=rand(N,C,W,W,W)|F.gelu(torch.clamp(F.leaky_relu(self.c(x),0.2)+self.s,min=-1.0,max=1.0))|c=nn.Conv3d(C,D,3);s=nn.Parameter(torch.randn(D,1,1,1))
product, batch norm, bias, divide, swish|B=9:1024,K=33:8192,N=21:8192|x=rand(B,K)|y=(self.n(self.l(x))+self.b)/1.0;y*torch.sigmoid(y)|l=nn.Linear(K,N);n=nn.BatchNorm1d(N,eps=1e-5,momentum=0.1);b=nn.Parameter(torch.randn(1))
transposed convolution 3d, sum, layer norm, average pool, gelu|N=1:32,C=2:32,D=4:64,W=5:16|x=rand(N,C,W,W,W)|F.gelu(self.p(self.n(self.c(x)+self.s)))|c=nn.ConvTranspose3d(C,D,3,stride=2,padding=1,output_padding=1);s=nn.Parameter(torch.tensor(1.0));n=nn.LayerNorm((2*W));p=nn.AvgPool3d(2)
convolution, tanh, scale, bias, max pool|N=2:128,C=3:8,D=5:64,H=19:256|x=rand(N,C,H,H)|self.p(torch.tanh(self.c(x))*2.0+self.b)|c=nn.Conv2d(C,D,3);b=nn.Parameter(torch.randn(D,1,1));p=nn.MaxPool2d(4)
linear, group norm, hard tanh|B=9:1024,K=33:8192,N=24:8192|x=rand(B,K)|self.h(self.n(self.l(x)))|l=nn.Linear(K,N);n=nn.GroupNorm(4,N);h=nn.Hardtanh(min_val=-2.0,max_val=2.0)
product, bias, hard tanh, mish, group norm|B=9:1024,K=33:8192,N=24:8192|x=rand(B,K)|self.n(F.mish(F.hardtanh(self.l(x)+self.b)))|l=nn.Linear(K,N);b=nn.Parameter(torch.randn(N));n=nn.GroupNorm(8,N)
convolution, minimum with a number, bias, scale|N=2:128,C=3:64,D=5:128,H=13:128|x=rand(N,C,H,H)|(torch.min(self.c(x),torch.tensor(0.5))+self.b)*2.0|c=nn.Conv2d(C,D,3);b=nn.Parameter(torch.randn(D,1,1))
transposed convolution, add, minimum over a dimension, gelu, sum|N=2:16,C=3:64,D=4:128,H=9:128|x=rand(N,C,H,H)|y=torch.sum(torch.min(self.c(x),dim=1,keepdim=True)[0],dim=2,keepdim=True);F.gelu(y)+self.b|c=nn.ConvTranspose2d(C,D,3,stride=2,padding=1,output_padding=1);b=nn.Parameter(torch.randn(1,1,1))
convolution, average pool, sigmoid, sum of all|N=2:128,C=3:8,D=5:64,H=15:384|x=rand(N,C,H,H)|torch.sum(torch.sigmoid(self.p(self.c(x))),dim=[1,2,3])|c=nn.Conv2d(C,D,3);p=nn.AvgPool2d(4)
product, swish, bias, group norm|B=9:32768,K=33:1024,N=24:4096|x=rand(B,K)|y=self.l(x);self.n(torch.sigmoid(y)*y+self.b)|l=nn.Linear(K,N);b=nn.Parameter(torch.randn(N));n=nn.GroupNorm(8,N)
product, max, subtract the mean, gelu|B=9:1024,K=33:8192,N=21:8192|x=rand(B,K)|y=torch.max(self.l(x),dim=1,keepdim=True).values;F.gelu(y-y.mean(dim=1,keepdim=True))|l=nn.Linear(K,N)
product, scale, residual, clamp, logsumexp, mish|B=9:1024,K=33:8192,N=21:8192|x=rand(B,K)|y=self.l(x)*2.0;y=torch.clamp(y+y,-10.0,10.0);y=torch.logsumexp(y,dim=1,keepdim=True);y*F.mish(y)|l=nn.Linear(K,N)
linear, subtract, global average pool, logsumexp, gelu, residual|B=9:2048,K=33:8192,N=21:8192|x=rand(B,K)|o=x.clone().detach();y=self.l(x)-self.s;y=torch.mean(y,dim=1,keepdim=True);F.gelu(torch.logsumexp(y,dim=1,keepdim=True))+o|l=nn.Linear(K,N);s=nn.Parameter(torch.randn(N))
transposed convolution, multiply, two global averages|N=2:16,C=3:64,D=4:128,H=9:128|x=rand(N,C,H,H)|y=torch.mean(self.c(x)*0.5,dim=[2,3],keepdim=True);torch.mean(y,dim=[2,3],keepdim=True)|c=nn.ConvTranspose2d(C,D,3,stride=2,padding=1,output_padding=1)
transposed convolution, max pool, hard tanh, mean, tanh|N=2:128,C=3:64,D=4:64,H=9:128|x=rand(N,C,H,H)|y=self.h(self.p(self.c(x)));torch.tanh(torch.mean(y,dim=(2,3),keepdim=True))|c=nn.ConvTranspose2d(C,D,3,stride=1,padding=1);p=nn.MaxPool2d(2,stride=2);h=nn.Hardtanh(-1,1)
convolution, instance norm, divide|N=2:128,C=3:64,D=5:128,H=13:128|x=rand(N,C,H,H)|self.n(self.c(x))/2.0|c=nn.Conv2d(C,D,3);n=nn.InstanceNorm2d(D)
convolution, group norm, scale, max pool, clamp|N=2:128,C=3:8,D=8:64,H=15:128|x=rand(N,C,H,H)|torch.clamp(self.p(self.n(self.c(x))*self.s),0.0,1.0)|c=nn.Conv2d(C,D,3);n=nn.GroupNorm(4,D);s=nn.Parameter(torch.ones(D,1,1));p=nn.MaxPool2d(4)
convolution 3d, group norm, minimum, clamp, dropout off|N=1:128,C=2:3,D=4:16,W=8:16|x=rand(N,C,W,W,W)|y=self.n(self.c(x));self.d(torch.clamp(torch.min(y,torch.tensor(0.0)),min=0.0,max=1.0))|c=nn.Conv3d(C,D,3);n=nn.GroupNorm(2,D);d=nn.Dropout(0.2).eval()
convolution 3d, max pool, logsumexp, relu|N=1:4,C=2:32,D=4:64,W=8:32|x=rand(N,C,W,W,W)|torch.relu(torch.logsumexp(self.p(self.c(x)),dim=1,keepdim=True))|c=nn.Conv3d(C,D,3,padding=1);p=nn.MaxPool3d(2,stride=2)
transposed convolution 3d, max pools, sum|N=1:16,C=2:32,D=4:64,W=6:32|x=rand(N,C,W,W,W)|torch.sum(self.q(self.p(self.c(x))),dim=1,keepdim=True)|c=nn.ConvTranspose3d(C,D,5,stride=2,padding=2);p=nn.MaxPool3d(2);q=nn.MaxPool3d(3)
convolution 3d, hard swish, group norm, mean|N=2:64,C=2:3,D=8:16,W=7:32|x=rand(N,C,W,W,W)|torch.mean(self.n(F.hardswish(self.c(x))),dim=[2,3,4])|c=nn.Conv3d(C,D,3);n=nn.GroupNorm(4,D)
convolution 3d, divide, max pool, global average, bias, sum|N=2:128,C=2:8,D=4:16,W=8:16|x=rand(N,C,W,W,W)|y=self.a(self.p(self.c(x)/2.0))+self.b;torch.sum(y,dim=1)|c=nn.Conv3d(C,D,3);p=nn.MaxPool3d((2,2,2));a=nn.AdaptiveAvgPool3d((1,1,1));b=nn.Parameter(torch.randn(D,1,1,1))
product, batch norm, gelu, relu|B=9:16384,K=33:4096,N=21:4096|x=rand(B,K)|torch.relu(F.gelu(self.n(self.l(x))))|l=nn.Linear(K,N);n=nn.BatchNorm1d(N)
convolution, activation times softplus of it, batch norm|N=2:64,C=3:64,D=5:128,H=13:128|x=rand(N,C,H,H)|y=self.c(x);self.n(torch.multiply(torch.tanh(F.softplus(y)),y))|c=nn.Conv2d(C,D,3);n=nn.BatchNorm2d(D,eps=1e-5)
convolution, batch norm, scale by a number|N=2:128,C=3:8,D=5:64,H=13:128|x=rand(N,C,H,H)|self.n(self.c(x))*2.0|c=nn.Conv2d(C,D,3);n=nn.BatchNorm2d(D)
transposed convolution, batch norm, tanh, max pool, group norm|N=4:512,C=3:64,D=8:128,H=9:32|x=rand(N,C,H,H)|self.g(self.p(torch.tanh(self.n(self.c(x)))))|c=nn.ConvTranspose2d(C,D,5,stride=1,padding=1);n=nn.BatchNorm2d(D);p=nn.MaxPool2d(2);g=nn.GroupNorm(4,D)
transposed convolution 3d, batch norm, subtract the mean|N=2:16,C=2:16,D=4:32,W=5:32|x=rand(N,C,W,W,W)|y=self.n(self.c(x));y-torch.mean(y,dim=(2,3,4),keepdim=True)|c=nn.ConvTranspose3d(C,D,3,stride=2,padding=1);n=nn.BatchNorm3d(D)
transposed convolution 3d, softmax, sigmoid|N=1:16,C=2:32,D=4:64,W=5:32|x=rand(N,C,W,W,W)|torch.sigmoid(torch.softmax(self.c(x),dim=1))|c=nn.ConvTranspose3d(C,D,3,stride=2,padding=1,output_padding=1)
transposed convolution, subtract a bias, tanh|N=2:32,C=3:64,D=4:64,H=9:256|x=rand(N,C,H,H)|torch.tanh(self.c(x)-self.b)|c=nn.ConvTranspose2d(C,D,4,stride=2,padding=1,output_padding=1);b=nn.Parameter(torch.randn(D,1,1))
transposed convolution 3d, swish, group norm, hard swish|N=1:64,C=2:3,D=8:16,W=5:32|x=rand(N,C,W,W,W)|y=self.c(x);F.hardswish(self.n(torch.sigmoid(y)*y))|c=nn.ConvTranspose3d(C,D,3,stride=2,padding=1);n=nn.GroupNorm(4,D,eps=1e-5)
"""

HELPERS = {
    "ConvBn": '''
class ConvBn(nn.Sequential):
    def __init__(self, cin, cout, k, stride=1, groups=1, act=None):
        pads = tuple(n // 2 for n in k) if isinstance(k, tuple) else k // 2
        layers = [nn.Conv2d(cin, cout, k, stride, pads, groups=groups, bias=False), nn.BatchNorm2d(cout)]
        super().__init__(*layers, *([act] if act else []))
''',
    "Basic": '''
class Basic(nn.Module):
    def __init__(self, cin, cout, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, kernel_size=3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(cout)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(cout, cout, kernel_size=3, stride=1, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout)
        self.downsample = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))

    def forward(self, x):
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += self.downsample(identity)
        return self.relu(out)
''',
    "Attention": '''
class Attention(nn.Module):
    def __init__(self, dim, heads, causal=None, relu=False):
        super().__init__()
        self.heads, self.causal, self.relu = heads, causal, relu
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        if causal:
            self.register_buffer("mask", torch.tril(torch.ones(causal, causal)).view(1, 1, causal, causal))

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.qkv(x).split(C, dim=2)
        q, k, v = (t.view(B, T, self.heads, C // self.heads).transpose(1, 2) for t in (q, k, v))
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        if self.causal:
            att = att.masked_fill(self.mask[:, :, :T, :T] == 0, float("-inf"))
        att = F.relu(att) if self.relu else F.softmax(att, dim=-1)
        y = (att @ v).transpose(1, 2).contiguous().view(B, T, C)
        return self.proj(y)
''',
}

NETWORKS = """
== shallow, wide perceptron
@ B=3:128 I=33:16384 H=40:32768 O=17:16384
self.network = nn.Sequential(nn.Linear(I, H), nn.ReLU(), nn.Linear(H, H), nn.ReLU(), nn.Linear(H, O))
--
return self.network(x)
-- x=torch.rand(B, I)
== deep, narrow perceptron
@ B=5:1024 I=33:8192 H=12:1024 O=7:8192
layers, size = [], I
for _ in range(16):
    layers += [nn.Linear(size, H), nn.ReLU()]
    size = H
self.network = nn.Sequential(*layers, nn.Linear(size, O))
--
return self.network(x)
-- x=torch.rand(B, I)
== LeNet 5
@ B=2:4096
self.conv1, self.conv2 = nn.Conv2d(1, 6, 5), nn.Conv2d(6, 16, 5)
self.fc1, self.fc2, self.fc3 = nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 20)
--
x = F.max_pool2d(F.relu(self.conv1(x)), kernel_size=2, stride=2)
x = F.max_pool2d(F.relu(self.conv2(x)), kernel_size=2, stride=2)
x = x.view(-1, 16 * 5 * 5)
return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))
-- x=torch.rand(B, 1, 32, 32)
== AlexNet, thin
@ B=1:1024 S=67:224 C=4:96 K=20:4096 P=4:6400
self.conv1 = nn.Conv2d(3, C, 11, stride=4, padding=2)
self.conv2 = nn.Conv2d(C, 2 * C, 5, padding=2)
self.pool = nn.MaxPool2d(3, stride=2)
self.fc = nn.Linear(2 * C * ((((S + 4 - 11) // 4 + 1 - 3) // 2 + 1 - 3) // 2 + 1) ** 2, K)
self.drop = nn.Dropout(p=0.0)
--
x = self.pool(F.relu(self.conv1(x)))
x = self.pool(F.relu(self.conv2(x)))
return F.relu(self.drop(self.fc(torch.flatten(x, 1))))
-- x=torch.rand(B, 3, S, S)
== two stages of a VGG with its classifier
@ B=1:64 S=16:64 C=4:64 K=11:1000
self.features = nn.Sequential(
    nn.Conv2d(3, C, 3, padding=1), nn.ReLU(inplace=True), nn.Conv2d(C, C, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2, 2),
    nn.Conv2d(C, 2 * C, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2, 2))
self.classifier = nn.Sequential(nn.Linear(2 * C * (S // 4) ** 2, 64), nn.ReLU(inplace=True), nn.Dropout(p=0.0), nn.Linear(64, K))
--
x = self.features(x)
x = torch.flatten(x, 1)
return self.classifier(x)
-- x=torch.rand(B, 3, S, S)
== fire module of a SqueezeNet
@ B=2:128 C=3:96 S=4:16 E=6:64 H=11:256
self.squeeze, self.act = nn.Conv2d(C, S, kernel_size=1), nn.ReLU(inplace=True)
self.e1, self.e3 = nn.Conv2d(S, E, kernel_size=1), nn.Conv2d(S, E, kernel_size=3, padding=1)
--
x = self.act(self.squeeze(x))
return torch.cat([self.act(self.e1(x)), self.act(self.e3(x))], 1)
-- x=torch.rand(B, C, H, H)
== dense block
@ B=2:10 C=4:32 G=3:32 H=9:224
self.layers = nn.ModuleList([nn.Sequential(
    nn.BatchNorm2d(C + k * G), nn.ReLU(inplace=True), nn.Conv2d(C + k * G, G, kernel_size=3, padding=1, bias=False), nn.Dropout(0.0))
    for k in range(6)])
--
features = [x]
for layer in self.layers:
    features.append(layer(x))
    x = torch.cat(features, 1)
return x
-- x=torch.rand(B, C, H, H)
== transition layer of a DenseNet
@ B=2:128 C=6:32 D=4:64 H=11:256
self.transition = nn.Sequential(nn.BatchNorm2d(C), nn.ReLU(inplace=True), nn.Conv2d(C, D, kernel_size=1, bias=False), nn.AvgPool2d(2, 2))
--
return self.transition(x)
-- x=torch.rand(B, C, H, H)
== unit of a ShuffleNet
@ B=2:10 C=6:240 D=12:480 H=9:224
mid = D // 4
self.conv1, self.bn1 = nn.Conv2d(C, mid, 1, groups=3, bias=False), nn.BatchNorm2d(mid)
self.conv2, self.bn2 = nn.Conv2d(mid, mid, 3, padding=1, groups=mid, bias=False), nn.BatchNorm2d(mid)
self.conv3, self.bn3 = nn.Conv2d(mid, D, 1, groups=3, bias=False), nn.BatchNorm2d(D)
self.shortcut = nn.Sequential(nn.Conv2d(C, D, 1, bias=False), nn.BatchNorm2d(D))
--
out = F.relu(self.bn1(self.conv1(x)))
b, c, h, w = out.size()
out = out.view(b, 3, c // 3, h, w).transpose(1, 2).contiguous().view(b, -1, h, w)
out = self.bn2(self.conv2(out))
out = F.relu(self.bn3(self.conv3(out)))
out += self.shortcut(x)
return out
-- x=torch.rand(B, C, H, H)
== inverted residual with squeeze and excitation (MBConv)
@ B=2:10 C=4:112 X=12:672 R=2:28 H=9:224
act = nn.SiLU()
self.expand, self.depth = ConvBn(C, X, 1, act=act), ConvBn(X, X, 5, stride=1, groups=X, act=act)
self.reduce, self.grow, self.project = nn.Conv2d(X, R, 1), nn.Conv2d(R, X, 1), ConvBn(X, C, 1)
--
y = self.depth(self.expand(x))
s = F.adaptive_avg_pool2d(y, 1)
y = y * torch.sigmoid(self.grow(F.silu(self.reduce(s))))
return self.project(y) + x
-- x=torch.rand(B, C, H, H)
== inception block
@ B=2:10 C=5:480 A=3:192 M=2:96 D=4:208 E=2:16 G=3:48 H=9:224
self.b1 = nn.Conv2d(C, A, kernel_size=1)
self.b3 = nn.Sequential(nn.Conv2d(C, M, kernel_size=1), nn.Conv2d(M, D, kernel_size=3, padding=1))
self.b5 = nn.Sequential(nn.Conv2d(C, E, kernel_size=1), nn.Conv2d(E, G, kernel_size=5, padding=2))
self.pool = nn.Sequential(nn.MaxPool2d(kernel_size=3, stride=1, padding=1), nn.Conv2d(C, G, kernel_size=1))
--
return torch.cat([self.b1(x), self.b3(x), self.b5(x), self.pool(x)], 1)
-- x=torch.rand(B, C, H, H)
== basic block of a ResNet
@ B=2:10 C=3:3 D=6:64 H=9:224
self.block = Basic(C, D, 1)
--
return self.block(x)
-- x=torch.rand(B, C, H, H)
== bottleneck of a ResNet, stride 2
@ B=2:16 C=5:256 M=3:128 D=8:512 H=11:56
self.a, self.b, self.c = ConvBn(C, M, 1, act=nn.ReLU()), ConvBn(M, M, 3, 2, act=nn.ReLU()), ConvBn(M, D, 1)
self.down = ConvBn(C, D, 1, 2)
--
return F.relu(self.c(self.b(self.a(x))) + self.down(x))
-- x=torch.rand(B, C, H, H)
== ResNet of two stages with its head
@ B=1:64 S=33:224 C=4:64 K=9:1000
self.conv1, self.bn1 = nn.Conv2d(3, C, 7, stride=2, padding=3, bias=False), nn.BatchNorm2d(C)
self.pool = nn.MaxPool2d(3, stride=2, padding=1)
self.layer1, self.layer2 = Basic(C, C), Basic(C, 2 * C, 2)
self.fc = nn.Linear(2 * C, K)
self.eval()
--
x = self.pool(F.relu(self.bn1(self.conv1(x))))
x = self.layer2(self.layer1(x))
return self.fc(torch.flatten(F.adaptive_avg_pool2d(x, (1, 1)), 1))
-- x=torch.rand(B, 3, S, S)
== MobileNet: two separable stages
@ B=2:16 C=4:32 D=6:64 H=13:112
self.first = ConvBn(3, C, 3, 2, act=nn.ReLU(inplace=True))
self.dw, self.pw = ConvBn(C, C, 3, groups=C, act=nn.ReLU6(inplace=True)), ConvBn(C, D, 1, act=nn.ReLU6(inplace=True))
self.pool = nn.AvgPool2d(7 if H > 20 else 2)
--
return self.pool(self.pw(self.dw(self.first(x)))).flatten(1)
-- x=torch.rand(B, 3, H, H)
== stage of a RegNet with grouped convolutions
@ B=1:8 C=4:64 D=8:128 H=9:224
self.a, self.b = ConvBn(C, D, 3, groups=4, act=nn.ReLU()), ConvBn(D, D, 3, groups=4, act=nn.ReLU())
self.pool = nn.MaxPool2d(2, 2)
--
return torch.mean(self.pool(self.b(self.a(x))), dim=[2, 3])
-- x=torch.rand(B, C, H, H)
== U-Net of depth one with softmax
@ B=1:8 C=2:64 H=8:64 W=12:512
f = 4 if C == 2 else 64
self.enc = nn.Sequential(nn.Conv2d(C, f, 3, padding=1), nn.BatchNorm2d(f), nn.Softmax(dim=-1))
self.pool = nn.MaxPool2d(2, 2)
self.mid = nn.Sequential(nn.Conv2d(f, 2 * f, 3, padding=1), nn.BatchNorm2d(2 * f), nn.Softmax(dim=-1))
self.up = nn.ConvTranspose2d(2 * f, f, 2, stride=2)
self.dec, self.last = nn.Conv2d(2 * f, f, 3, padding=1), nn.Conv2d(f, 3, 1)
--
e = self.enc(x)
y = self.up(self.mid(self.pool(e)))
return self.last(F.softmax(self.dec(torch.cat([y, e], dim=1)), dim=-1))
-- x=torch.rand(B, C, H, W)
== vision transformer, tiny
@ B=1:10 S=8:224 P=4:16 D=12:512 K=5:10 L=2:6
n = (S // P) ** 2
self.embed = nn.Linear(3 * P * P, D)
self.pos, self.cls = nn.Parameter(torch.randn(1, n + 1, D)), nn.Parameter(torch.randn(1, 1, D))
layer = nn.TransformerEncoderLayer(d_model=D, nhead=2 if D == 12 else 8, dim_feedforward=2 * D, dropout=0.0)
self.transformer = nn.TransformerEncoder(layer, num_layers=L)
self.head = nn.Sequential(nn.Linear(D, 2 * D), nn.GELU(), nn.Linear(2 * D, K))
--
x = x.unfold(2, P, P).unfold(3, P, P).reshape(x.shape[0], -1, P * P * 3)
x = self.embed(x)
x = torch.cat((self.cls.expand(x.shape[0], -1, -1), x), dim=1) + self.pos
x = self.transformer(x)
return self.head(x[:, 0])
-- x=torch.rand(B, 3, S, S)
== convolutional vision transformer
@ B=2:10 S=16:32 D=12:128 K=7:1000 H=4:4
self.conv1 = nn.Conv2d(3, D, kernel_size=4, stride=4)
self.linear = nn.Linear(D * (S // 4) ** 2, D)
self.layers = nn.ModuleList([nn.TransformerEncoderLayer(D, H, 4 * D, dropout=0.0, batch_first=True) for _ in range(2)])
self.token = nn.Parameter(torch.zeros(1, 1, D))
self.out = nn.Linear(D, K)
--
b = x.size(0)
x = self.linear(self.conv1(x).flatten(start_dim=1))
x = torch.cat((self.token.expand(b, -1, -1), x.unsqueeze(1)), dim=1)
for layer in self.layers:
    x = layer(x)
return self.out(x[:, 0])
-- x=torch.rand(B, 3, S, S)
== shifted windows (Swin): one block
@ B=1:10 H=8:56 W=4:7 C=8:96 N=2:3
self.norm1, self.norm2 = nn.LayerNorm(C), nn.LayerNorm(C)
self.attn = Attention(C, N)
self.mlp = nn.Sequential(nn.Linear(C, 4 * C), nn.GELU(), nn.Linear(4 * C, C))
self.bias = nn.Parameter(torch.zeros(1))
--
b = x.shape[0]
y = self.norm1(x).view(b, H, H, C)
y = torch.roll(y, shifts=(-(W // 2), -(W // 2)), dims=(1, 2))
y = y.view(b, H // W, W, H // W, W, C).permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, W * W, C)
y = self.attn(y) + self.bias
y = y.view(b, H // W, H // W, W, W, C).permute(0, 1, 3, 2, 4, 5).contiguous().view(b, H, H, C)
y = torch.roll(y, shifts=(W // 2, W // 2), dims=(1, 2)).view(b, H * H, C)
x = x + y
return x + self.mlp(self.norm2(x))
-- x=torch.rand(B, H * H, C)
== mixer of tokens and channels
@ B=2:16 T=9:196 C=12:512
self.n1, self.n2 = nn.LayerNorm(C), nn.LayerNorm(C)
self.tokens = nn.Sequential(nn.Linear(T, 2 * T), nn.GELU(), nn.Linear(2 * T, T))
self.channels = nn.Sequential(nn.Linear(C, 2 * C), nn.GELU(), nn.Linear(2 * C, C))
--
x = x + self.tokens(self.n1(x).transpose(1, 2)).transpose(1, 2)
return x + self.channels(self.n2(x))
-- x=torch.rand(B, T, C)
== block of a GPT with the new GELU
@ B=2:128 T=11:512 C=16:768 N=2:8
self.ln1, self.ln2 = nn.LayerNorm(C), nn.LayerNorm(C)
self.attn = Attention(C, N, causal=T)
self.fc, self.proj = nn.Linear(C, 4 * C), nn.Linear(4 * C, C)
--
x = x + self.attn(self.ln1(x))
y = self.fc(self.ln2(x))
y = 0.5 * y * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (y + 0.044715 * torch.pow(y, 3.0))))
return x + self.proj(y)
-- x=torch.rand(B, T, C)
== causal self attention with relu
@ B=2:16 T=13:1024 C=16:768 N=2:12
self.attn = Attention(C, N, causal=T, relu=True)
--
return self.attn(x)
-- x=torch.rand(B, T, C)
== multi-head attention module of an image, norm after it
@ B=2:2 C=8:128 H=5:128 N=2:4
self.attn = nn.MultiheadAttention(C, N)
self.norm = nn.LayerNorm(C)
--
b, c, h, w = x.shape
x = x.view(b, c, h * w).permute(2, 0, 1)
out, _ = self.attn(x, x, x)
x = self.norm(out + x)
return x.permute(1, 2, 0).view(b, c, h, w)
-- x=torch.rand(B, C, H, H)
== GRU, outputs and last state
@ T=5:512 B=2:10 I=7:128 H=6:256 L=2:6
self.gru = nn.GRU(I, H, L, bias=True, batch_first=False)
--
out, h = self.gru(x, h0)
return out, h
-- x=torch.rand(T, B, I); h0=torch.rand(L, B, H)
== GRU in both directions, the last state
@ T=5:512 B=2:10 I=7:128 H=6:256 L=2:6
self.gru = nn.GRU(I, H, L, bidirectional=True)
--
return self.gru(x, h0)[1]
-- x=torch.rand(T, B, I); h0=torch.rand(2 * L, B, H)
== LSTM with a linear layer on the last step
@ T=5:512 B=2:10 I=7:128 H=6:256 L=2:6 O=4:10
self.lstm = nn.LSTM(I, H, L, batch_first=True, dropout=0.0)
self.fc = nn.Linear(H, O)
--
out, state = self.lstm(x, (h0, c0))
return self.fc(out[:, -1, :])
-- x=torch.rand(B, T, I); h0=torch.rand(L, B, H); c0=torch.rand(L, B, H)
== LSTM in both directions, all outputs and the cell state
@ T=5:512 B=2:10 I=7:128 H=6:256 L=2:6
self.lstm = nn.LSTM(I, H, L, batch_first=True, bidirectional=True)
--
out, (h, c) = self.lstm(x)
return out, c
-- x=torch.rand(B, T, I)
== one step of a recurrent network written by hand
@ B=4:256 I=33:16384 H=17:16384 O=9:8192
self.i2h, self.h2o, self.tanh = nn.Linear(I + H, H), nn.Linear(H, O), nn.Tanh()
--
hidden = self.tanh(self.i2h(torch.cat((x, h), dim=1)))
return self.h2o(hidden)
-- x=torch.rand(B, I); h=torch.rand(B, H)
== recurrent network over a sequence, written as a loop
@ T=6:256 B=2:8 I=9:1024 H=7:256 O=5:128
self.i2h, self.h2o = nn.Linear(I + H, H), nn.Linear(H, O)
--
out = []
for t in range(x.size(0)):
    h = torch.tanh(self.i2h(torch.cat((x[t], h), dim=1)))
    out.append(self.h2o(h))
return torch.stack(out, dim=0)
-- x=torch.rand(T, B, I); h=torch.rand(B, H)
== NetVLAD
@ B=2:2048 N=7:100 D=9:512 K=5:32 G=0:0
self.clusters = nn.Parameter((1 / math.sqrt(D)) * torch.randn(D, K + G))
self.bn = nn.BatchNorm1d(K + G)
self.clusters2 = nn.Parameter((1 / math.sqrt(D)) * torch.randn(1, D, K))
--
n = x.size(1)
flat = x.view(-1, D)
a = F.softmax(self.bn(torch.matmul(flat, self.clusters)), dim=1)
a = a[:, :K].view(-1, n, K)
a_sum = torch.sum(a, dim=1, keepdim=True)
vlad = torch.matmul(a.transpose(1, 2), x.view(-1, n, D)).transpose(1, 2)
vlad = F.normalize(vlad - a_sum * self.clusters2)
vlad = vlad.reshape(-1, K * D)
return F.normalize(vlad)
-- x=torch.rand(B, N, D)
== NetVLAD with ghost clusters
@ B=2:2048 N=7:100 D=9:512 K=5:32 G=2:16
self.clusters = nn.Parameter((1 / math.sqrt(D)) * torch.randn(D, K + G))
self.bn = nn.BatchNorm1d(K + G)
self.clusters2 = nn.Parameter((1 / math.sqrt(D)) * torch.randn(1, D, K))
--
n = x.size(1)
a = F.softmax(self.bn(torch.matmul(x.view(-1, D), self.clusters)), dim=1)
a = a[:, :K].view(-1, n, K)
a_sum = torch.sum(a, dim=1, keepdim=True)
vlad = torch.matmul(a.transpose(1, 2), x.view(-1, n, D)).transpose(1, 2)
vlad = F.normalize(vlad - a_sum * self.clusters2)
return F.normalize(vlad.reshape(-1, K * D))
-- x=torch.rand(B, N, D)
== state space layer in chunks (Mamba 2), the output
@ B=1:2048 T=8:128 H=2:8 P=3:64 S=4:16 Q=4:64
self.A, self.B, self.C = (nn.Parameter(torch.randn(B, T, *s)) for s in ((H,), (H, S), (H, S)))
--
c = T // Q
def segsum(v):
    t = v.size(-1)
    total = torch.cumsum(v, dim=-1)
    diff = total[..., :, None] - total[..., None, :]
    return diff.masked_fill(~torch.tril(torch.ones(t, t, dtype=bool, device=v.device), diagonal=0), -torch.inf)
X, A, Bs, Cs = (v.reshape(v.shape[0], c, Q, *v.shape[2:]) for v in (x, self.A, self.B, self.C))
A = A.permute(0, 3, 1, 2)
total = torch.cumsum(A, dim=-1)
L = torch.exp(segsum(A))
diag = torch.einsum("bclhn,bcshn,bhcls,bcshp->bclhp", Cs, Bs, L, X)
decay = torch.exp(total[:, :, :, -1:] - total)
states = torch.einsum("bclhn,bhcl,bclhp->bchpn", Bs, decay, X)
states = torch.cat([torch.zeros_like(states[:, :1]), states], dim=1)
chunk = torch.exp(segsum(F.pad(total[:, :, :, -1], (1, 0))))
states = torch.einsum("bhzc,bchpn->bzhpn", chunk, states)[:, :-1]
off = torch.einsum("bclhn,bchpn,bhcl->bclhp", Cs, states, torch.exp(total))
return (diag + off).reshape(x.shape)
-- x=torch.rand(B, T, H, P)
== state space layer in chunks (Mamba 2), the last state
@ B=1:2048 T=8:128 H=2:8 P=3:64 S=4:16 Q=4:64
self.A, self.B = nn.Parameter(torch.randn(B, T, H)), nn.Parameter(torch.randn(B, T, H, S))
--
c = T // Q
X, A, Bs = (v.reshape(v.shape[0], c, Q, *v.shape[2:]) for v in (x, self.A, self.B))
A = A.permute(0, 3, 1, 2)
total = torch.cumsum(A, dim=-1)
decay = torch.exp(total[:, :, :, -1:] - total)
states = torch.einsum("bclhn,bhcl,bclhp->bchpn", Bs, decay, X)
states = torch.cat([torch.zeros_like(states[:, :1]), states], dim=1)
last = F.pad(total[:, :, :, -1], (1, 0))
sums = torch.cumsum(last, dim=-1)
diff = (sums[..., :, None] - sums[..., None, :]).tril(diagonal=0)
mask = torch.tril(torch.ones(c + 1, c + 1, dtype=torch.bool, device=x.device))
chunk = torch.exp(diff.masked_fill(~mask, float("-inf")))
return torch.einsum("bhzc,bchpn->bzhpn", chunk, states)[:, -1]
-- x=torch.rand(B, T, H, P)
== feed forward of a Llama block with its norm
@ B=2:8 T=7:1024 C=16:1024 H=24:2816
self.w1, self.w2, self.w3 = nn.Linear(C, H, bias=False), nn.Linear(H, C, bias=False), nn.Linear(C, H, bias=False)
self.weight = nn.Parameter(torch.ones(C))
--
n = x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)
n = n.type_as(x) * self.weight
return x + self.w2(F.silu(self.w1(n)) * self.w3(n))
-- x=torch.rand(B, T, C)
== autoencoder with a reparameterized code, the noise given
@ B=4:512 I=30:784 H=20:400 Z=5:20
self.fc1, self.mu, self.var, self.fc3, self.fc4 = nn.Linear(I, H), nn.Linear(H, Z), nn.Linear(H, Z), nn.Linear(Z, H), nn.Linear(H, I)
--
h = F.relu(self.fc1(x))
mu, logvar = self.mu(h), self.var(h)
z = mu + eps * torch.exp(0.5 * logvar)
out = torch.sigmoid(self.fc4(F.relu(self.fc3(z))))
kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
return out, F.binary_cross_entropy(out, x, reduction="sum") + kld
-- x=torch.rand(B, I); eps=torch.randn(B, Z)
== generator of images by transposed convolutions
@ B=2:64 Z=10:100 C=4:64
self.main = nn.Sequential(
    nn.ConvTranspose2d(Z, 2 * C, 4, 1, 0, bias=False), nn.BatchNorm2d(2 * C), nn.ReLU(True),
    nn.ConvTranspose2d(2 * C, C, 4, 2, 1, bias=False), nn.BatchNorm2d(C), nn.ReLU(True),
    nn.ConvTranspose2d(C, 3, 4, 2, 1, bias=False), nn.Tanh())
--
return self.main(x)
-- x=torch.randn(B, Z, 1, 1)
"""


def sizes_of(text):
    """{name: value} of `N=4:128 M=3`"""
    full = 1 if os.environ.get("FULL") else 0
    pairs = (one.split("=") for one in re.split(r"[ ,]+", text.strip()) if one)
    return {name: (values.split(":") * 2)[full] for name, values in pairs}


def module(number, name, sizes, init, body, inputs):
    helpers = "".join(f"\n{text.strip()}\n\n" for word, text in HELPERS.items() if re.search(rf"\b{word}\(", init))
    return TASK.format(
        number=number, name=name, sizes="\n".join(f"{k} = {v}" for k, v in sizes_of(sizes).items()), helpers=f"{helpers}\n",
        init=textwrap.indent(init, " " * 8) if init else "        pass", body=textwrap.indent(body, " " * 8),
        arguments=", ".join(n for n, _ in inputs), inputs=", ".join(t for _, t in inputs)).replace("\n        pass\n", "\n")


def rows(text):
    for row in text.strip().splitlines():
        name, sizes, inputs, words, layers = (row.split("|") + [""])[:5]
        *statements, result = words.split(";")
        given = [one.split("=", 1) for one in re.sub(r"(?<![.\w])(randn?)\(", r"torch.\1(", inputs).split(";")]
        init = "\n".join(f"self.{one}" for one in layers.split(";") if one)
        yield name, sizes, init, "\n".join([*(s.strip() for s in statements), f"return {result.strip()}"]), given


def blocks():
    for text in NETWORKS.strip().split("\n== "):
        name, _, rest = text.partition("\n")
        lines, _, inputs = rest.rpartition("\n-- ")
        init, _, body = lines.rpartition("--\n")
        sizes = ""
        if init.startswith("@"):
            sizes, _, init = init[1:].partition("\n")
        yield name.removeprefix("== "), sizes, init.strip("\n"), body.strip("\n"), [one.split("=", 1) for one in inputs.strip().split("; ")]


found = [*rows(OPERATORS), *rows(CHAINS), *blocks()]
task_files.command(__doc__, [module(number, *parts) for number, parts in enumerate(found)])
