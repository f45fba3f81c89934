"""Modules of every operator family for the built-in engineer: single operators, chains, small networks.

    python3 tests/expert/modules.py OUT_DIR [COUNT [SEED]]        COUNT 0: all of them
    python3 tests/expert/modules.py --count

Each row of ROWS is one module: family, inputs, expression, layers. Sizes are small and odd. FLOATS and WHOLE are written
once per dtype. The order is shuffled by SEED, so that a prefix is a sample of all families. FAMILY: only that one.
"""
import os
import pathlib
import random
import sys

TASK = '''"""Module {number}: {family}: {words}."""
import torch
import torch.nn as nn
import torch.nn.functional as F

SCALE = 1


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

# family | inputs | expression (statements before it end with ;) | layers
ROWS = """
reduce over any dimensions|a=randn(5,7,12)|a.sum((0,2))
reduce over any dimensions|a=randn(5,7,12)|a.mean(0)+a.mean((1,2),keepdim=True).squeeze(2).mean(0)[:,None].sum()
reduce over any dimensions|a=randn(5,7,12)|a.amax((0,1))-a.amin((0,1))
reduce over any dimensions|a=randn(5,7,12)|a.sum(0).amax(1)+a.sum(2).amin(0)
reduce over any dimensions|a=randn(5,7,12)|(a-a.mean(1,keepdim=True))/(a.std(2,keepdim=True)+0.5)
reduce over any dimensions|a=randn(5,7,12)|a.argmax(1),a.argmin()
reduce over any dimensions|a=randn(5,7,12)|a.max(1)
reduce over any dimensions|a=randn(5,7,12)|a.min(0)
reduce over any dimensions|a=randn(5,7,12)|torch.var(a,(0,2)),torch.std(a,1,unbiased=False)
reduce over any dimensions|a=randn(5,7,12)|torch.var_mean(a,(0,1))
reduce over any dimensions|a=randn(5,7,12)|torch.logsumexp(a,(0,2))
reduce over any dimensions|a=randn(5,7,12)|torch.norm(a,p=1,dim=0),torch.norm(a,p=3,dim=(1,2)),torch.norm(a,p=float('inf'),dim=1)
reduce over any dimensions|a=randn(5,7,12)|(a>0).any(1),(a>-3).all(0)
reduce over any dimensions|a=randn(5,7,12)|torch.count_nonzero(a>0.5,dim=1)
reduce over any dimensions|a=randn(3,4,5)|torch.prod(a,1)
reduce over any dimensions|a=randn(5,7,12)|torch.aminmax(a)
reduce over any dimensions|a=randn(9,9)|torch.trace(a)
reduce over any dimensions|a=randn(700,33)|a.sum(0)*a.sum()
reduce over any dimensions|a=randn(3,5000)|a.exp().sum(1).log()+a.amax(1)
reduce over any dimensions|a=randn(5,7,12)|torch.softmax(a,1)+torch.softmax(a,2)*a.amax(0)
reduce over any dimensions|a=randn(5,7,12)|torch.softmax(a.sum(0),0)@torch.softmax(a.sum(1),0).t()
reduce over any dimensions|a=randn(5,7,12)|a.median(1)[0]
norms|x=randn(2,6,9,11)|self.n(x)+x.mean((2,3),keepdim=True)|n=nn.GroupNorm(3,6)
norms|x=randn(2,6,9,11)|F.relu(self.n(x)).amax(1)|n=nn.InstanceNorm2d(6,affine=True)
norms|x=randn(4,6,10)|self.n(x).sum(0)|n=nn.LayerNorm([6,10])
norms|x=randn(4,6,10)|self.n(x).mean(1)|n=nn.BatchNorm1d(6)
norms|x=randn(2,6,9,11)|self.n(x).amax((2,3))|n=nn.BatchNorm2d(6)
norms|x=randn(2,6,5,4,3)|self.n(x).sum(1)|n=nn.BatchNorm3d(6)
norms|x=randn(4,6,10)|x/(x.pow(2).mean(-1,keepdim=True)+1e-5).sqrt()*c+x.mean(0)|c=P(10)
norms|x=randn(4,6,10)|F.normalize(x,dim=1)+F.normalize(x,p=1,dim=2)
norms|x=randn(2,6,9,11)|F.local_response_norm(x,3)
norms|x=randn(2,6,9,11)|F.batch_norm(x,None,None,training=True)
views and joins|a=randn(5,7,12)|a.transpose(0,2).reshape(12,35)*2+1
views and joins|a=randn(5,7,12)|torch.cat([a,a[:,:3]*2,a.flip(1)],1)
views and joins|a=randn(5,7,12)|torch.stack([a.sum(0),a[1],a.amax(0)],2)
views and joins|a=randn(5,7,12)|a.roll((2,-3),(0,2))+a.roll(5)
views and joins|a=randn(5,7,12)|a.repeat(2,1,3)
views and joins|a=randn(5,7,12)|a.unfold(2,4,3).sum(-1)
views and joins|a=randn(7,7)|torch.tril(a)@torch.triu(a,1)+torch.diag(torch.diagonal(a))
views and joins|a=randn(5,7,12)|a.permute(2,0,1).contiguous().view(6,2,35).flip((0,2))
views and joins|a=randn(5,7,12)|torch.split(a,[2,5,5],2)[1]*a.chunk(4,2)[0].sum()
views and joins|a=randn(5,7,12)|torch.unbind(a,1)[3].repeat_interleave(3,1)
views and joins|a=randn(4,1,6);b=randn(3,1)|torch.broadcast_tensors(a,b)[0]*b
views and joins|a=randn(5,7)|torch.diag_embed(a)+torch.eye(7)
views and joins|a=randn(3,4,6)|torch.rot90(a,1,(1,2)).sum(0)
views and joins|a=randn(2,8,6,6)|F.pixel_shuffle(a,2)
views and joins|a=randn(2,2,6,6)|F.pixel_unshuffle(a,3)
views and joins|a=randn(2,6,4,4)|self.s(a)|s=nn.ChannelShuffle(3)
views and joins|a=randn(2,3,6,7)|F.unfold(a,3,padding=1,stride=2)
views and joins|a=randn(6,8)|torch.arange(8)*a+torch.linspace(0,1,8)
views and joins|a=randn(6,8)|a.as_strided((3,4),(16,2),1)*2
views and joins|a=randn(6,8);b=randn(6)|torch.meshgrid(b,a[0],indexing='ij')[0]+torch.outer(b,a[1])
padding|x=randn(2,6,9,11)|F.pad(x,(1,2,3,0),value=0.5)
padding|x=randn(2,6,9,11)|F.pad(x,(-1,2,3,-2))
padding|x=randn(2,6,9,11)|F.pad(x,(2,3,1,4),mode='reflect')
padding|x=randn(2,6,9,11)|F.pad(x,(2,3,1,4),mode='replicate')
padding|x=randn(2,6,13)|F.pad(x,(2,3),mode='reflect').sum(1)
padding|x=randn(2,3,5,6,7)|F.pad(x,(1,2,2,1,0,3),mode='replicate')
padding|x=randn(2,6,9,11)|F.pad(x,(2,3,1,4),mode='circular')
gathers|a=randn(9,12);i=index(9,5,12)|torch.gather(a,0,i)*2
gathers|a=randn(9,12);i=index(9,7)|a[i]+torch.index_select(a,0,i)
gathers|a=randn(9,12);i=index(9,3,4);j=index(12,3,4)|a[i,j]
gathers|a=randn(6,9,12);i=index(6,5);j=index(12,5)|a[i,:,j]
gathers|a=randn(6,9,12);j=index(9,5)|a[:,j]*a[:,:1]
gathers|i=index(20,4,6)|self.e(i).sum(1)|e=nn.Embedding(20,10)
gathers|i=index(20,4,6)|self.e(i).relu()@self.l.weight.t()|e=nn.Embedding(20,10);l=nn.Linear(10,7)
gathers|a=randn(9,12);i=index(12,9)|torch.take_along_dim(a,i[:,None],1)
gathers|i=index(7,5)|F.one_hot(i,7).float()*2
gathers|a=randn(9,12)|torch.index_select(a,1,a.sum(0).argmax().reshape(1))
gathers|a=randn(9,12);i=index(9,5)|a.index_fill(0,i,2.0)
writes through views|a=randn(4,6)|y=a*2;y[:,1:3]=a[:,:2];v=y.view(-1);v[3]=7.0;y[0]+=1;y,v*2
writes through views|a=randn(4,6)|y=a.clone();l,r=y.chunk(2,1);t=y.t();r.mul_(3);l+=r;t.relu(),y
writes through views|a=randn(5,7)|o=torch.zeros(5,3,4);o[:,0]=a[:,:4];o[:,1]=a[:,1:5]*2;o[:,2]=a[:,2:6].exp();o,o[:,-1]
writes through views|a=randn(4,6)|y=a.clone();z=y.unsqueeze(1).permute(2,0,1);z[-1].fill_(5.0);z[::2]*=2;y[y>1]=0.0;y,z
writes through views|a=randn(3,5,5)|y=a@a;y.diagonal(0,1,2).fill_(float('-inf'));torch.softmax(y,-1)
writes through views|a=randn(2,3,8,8)|F.conv2d(F.pad(a,(1,1,2,2),mode='circular'),self.c.weight)|c=nn.Conv2d(3,4,3,bias=False)
constant tensors|a=randn(5,7,12)|a[:,[0,5,-1]]*torch.tensor([0.5,float('inf'),-2.0]).clamp(max=7)[:,None]
constant tensors|a=randn(9,5)|a.index_select(1,torch.tensor([3,1,4,1]))@torch.tensor([[0.1,0.2],[0.3,-0.4],[0.5,0.6],[0.7,-0.8]])
constant tensors|a=randn(9,12)|(a[...,None]>torch.tensor([-1,0,1],dtype=torch.int32)).sum(-1),a+torch.tensor([1,-2,3]*4)
constant tensors|a=randn(2,3,9,8)|F.conv2d(a,torch.tensor([[1.,0.,-1.],[2.,0.,-2.],[1.,0.,-1.]]).expand(3,1,3,3),groups=3)
constant tensors|a=randn(5,7)|a[:,torch.tensor([True,False,True,True,False,False,True])]*2,a[torch.arange(5)%2==0].sum(0)
constant tensors|a=randn(2,3,9,8)|(a-torch.tensor([0.485,0.456,0.406]).view(3,1,1))/torch.tensor([0.229,0.224,0.225]).view(3,1,1)
gathers|a=randn(9,12);v=randn(7)|torch.searchsorted(a.cumsum(1).abs().cumsum(1)[0],v.abs()),torch.bucketize(v,c)|c=nn.Parameter(torch.arange(5.0))
gathers|a=randn(9,12);i=index(144,4)|torch.take(torch.cat([a,a]).reshape(-1)[:108],i%108)
scatters|a=randn(9,12);i=index(9,5,12);b=randn(5,12)|torch.scatter_add(a,0,i,b)
scatters|a=randn(9,12);i=index(9,5);b=randn(5,12)|torch.index_add(a,0,i,b)
scatters|a=randn(9,12);b=randn(1,12)|torch.scatter(a,0,torch.arange(12)[None]%9,b)
scatters|a=randn(9,12);i=index(9,5);b=randn(5,12)|a.index_put((i,),b,accumulate=True)
scatters|a=randn(9,12);b=randn(3,12)|a.index_copy(0,torch.arange(3)*2,b)
scatters|a=randn(9,12);i=index(9,5,12);b=randn(5,12)|torch.scatter_reduce(a,0,i,b,'amax')
scatters|a=randn(9,12);b=randn(12)|torch.select_scatter(a,b,0,3)+torch.slice_scatter(a,a[:3]*2,0,1,7,2)
scatters|a=randn(9,12)|a.masked_fill(a>0.5,0.25).sum(1),torch.where(a>0,a,a*0.1)
rarer|a=rand(2,2,8,12)|F.fold(F.unfold(a,3,padding=1),(8,12),3,padding=1)
rarer|a=rand(2,12,16)|F.fold(a,(5,5),(2,2))
rarer|a=rand(2,3,9,7);b=randn(2,5,6,2)|F.grid_sample(a,torch.tanh(b),align_corners=False)
rarer|a=rand(2,3,9,7);b=randn(2,5,6,2)|F.grid_sample(a,torch.tanh(b)*1.3,padding_mode='border',mode='nearest',align_corners=True)
rarer|a=rand(2,3,9,7);b=randn(2,5,6,2)|F.grid_sample(a,torch.tanh(b)*1.5,padding_mode='reflection',align_corners=False)
rarer|a=randn(2,2,3)|F.affine_grid(a,(2,1,4,5),align_corners=False)
rarer|a=rand(6,9)|F.pdist(a)
rarer|a=randn(4,5,6)|torch.renorm(a,2,0,1.0)
rarer|a=randn(4,5,3);b=randn(4,5,3)|torch.cross(a,b,dim=2)
rarer|a=randn(3,5);b=randn(3,7)|F.bilinear(a,b,self.w)|w=nn.Parameter(torch.randn(4,5,7))
rarer|a=rand(6,9)|torch.masked_scatter(a,a>0.5,a*2)
rarer|a=randn(5,9)|torch.nanmedian(torch.where(a>1,a*float('nan'),a),1)[0]
rarer|a=rand(40,3)|torch.histc(a,10,0,1)
rarer|a=rand(2,2,8,6)|F.max_unpool2d(*F.max_pool2d(a,2,return_indices=True),2)
rarer|a=rand(7,4)|i=torch.tril_indices(4,4);a[:,i[0]]*a[:,i[1]]
special functions|a=randn(5,12)|torch.i0(a),torch.special.i0e(a*20),torch.special.i1(a),torch.special.i1e(a*20)
special functions|a=randn(5,12)|torch.digamma(a*3),torch.polygamma(1,a),torch.digamma(a.abs()+0.1).sum(1)
special functions|a=rand(5,12)|torch.polygamma(2,a+0.2),torch.special.zeta(a*4+1.5,a+0.5),torch.polygamma(3,a*8+1)
special functions|a=rand(5,12);b=rand(12)|torch.igamma(a*9+0.1,b*12),torch.igammac(a*9+0.1,b*12)
special functions|a=randn(5,12)|torch.special.erfcx(a),torch.special.log_ndtr(a*4),torch.special.ndtri(torch.sigmoid(a)),torch.special.ndtr(a)
special functions|a=rand(5,12)|torch.special.entr(a),torch.special.xlog1py(a,a*2),torch.logaddexp2(a,a*3),torch.special.multigammaln(a+2,3)
special functions|a=randn(5,12)|torch.special.bessel_j0(a*9)+torch.special.bessel_j1(a*3)
small systems|a=randn(3,5,5)|torch.linalg.inv(a+6*torch.eye(5))
small systems|a=randn(4,6,6);b=randn(4,6,3)|torch.linalg.solve(a+6*torch.eye(6),b)
small systems|a=randn(6,6);b=randn(6)|torch.linalg.solve(a+6*torch.eye(6),b)@a
small systems|a=randn(7,4,4)|torch.linalg.det(a),torch.linalg.slogdet(a)
small systems|a=randn(3,5,5)|torch.linalg.cholesky(a@a.transpose(1,2)+torch.eye(5))
small systems|a=randn(3,5,5);b=randn(3,5,2)|torch.linalg.solve_triangular(torch.tril(a)+4*torch.eye(5),b,upper=False)
small systems|a=randn(3,5);b=randn(5,5)|torch.logdet(b@b.t()+torch.eye(5))-(a@torch.cholesky_inverse(torch.linalg.cholesky(b@b.t()+torch.eye(5)))*a).sum(1)
counts|i=index(5,3,17)|torch.mode(i,1)
sort and top-k|i=index(5,3,19)|torch.topk(i,4,1),torch.sort(i,1),i.kthvalue(7,1)
counts|a=randn(6,9)|torch.mode((a*2).round(),0)[0]
counts|i=index(9,40);w=rand(40)|torch.bincount(i,minlength=9),torch.bincount(i,w,minlength=9)
losses|a=randn(4,6);t=index(6,4,6)|F.multilabel_margin_loss(a,t)+F.multilabel_margin_loss(a,t-1,reduction='sum')
losses|a=randn(9,3,5)|F.ctc_loss(F.log_softmax(a,2),t,torch.full((3,),9),torch.full((3,),3))|t=nn.Parameter(torch.tensor([[1,2,3],[4,4,1],[2,1,2]]),requires_grad=False)
losses|a=randn(9,3,5);t=index(4,3,4)|F.ctc_loss(F.log_softmax(a,2),t+1,(9,8,9),(4,2,3),reduction='sum')
transforms|a=randn(3,12)|torch.fft.rfft(a).abs(),torch.fft.rfft(a).angle().cos()
transforms|a=randn(3,20);w=randn(11)|torch.fft.irfft(torch.fft.rfft(a)*w,20)
transforms|a=randn(2,6,10)|torch.fft.fft2(a).real+torch.fft.fft2(a).imag
transforms|a=randn(2,9,10)|torch.fft.fft(torch.fft.fft(a,dim=-1),dim=-2).real
transforms|a=randn(2,128)|f=torch.fft.rfft(a,norm='ortho');f=f*torch.view_as_complex(self.w);torch.fft.irfft(f,128,norm='ortho')|w=nn.Parameter(torch.randn(65,2))
transforms|a=randn(2,90)|torch.stft(a,30,15,30,torch.hann_window(30),return_complex=True).abs()
transforms|a=randn(5,8);b=randn(5,8)|z=torch.complex(a,b);z=z*z.conj()/(1+z*2j);torch.view_as_real(z.exp()),z.abs()
transforms|x=randn(2,4,6,8)|h=x.reshape(2,4,6,4,2);c=torch.view_as_complex(h)*torch.polar(torch.ones(6,4),torch.outer(torch.arange(6.),1/10**torch.arange(4.)));torch.view_as_real(c).flatten(3)
transforms|a=randn(3,4,97)|torch.fft.ifft(torch.fft.fft(a)).real
sort and top-k|a=randn(9,12)|torch.sort(a,1)
sort and top-k|a=randn(9,12)|torch.sort(a,0,descending=True)[0].cumsum(0)
sort and top-k|a=randn(9,40)|torch.topk(a,5,1)
sort and top-k|a=randn(9,40)|torch.topk(a,3,0,largest=False)[0].sum(0)
sort and top-k|a=randn(9,12)|torch.argsort(a,1),torch.kthvalue(a,4,1)[0]
sort and top-k|a=randn(3,300)|torch.sort(a*2,1)[0]
sort and top-k|a=randn(4,100)|torch.quantile(a,0.3,dim=1)
sort and top-k|a=randn(4,101)|torch.median(a,1)
sort and top-k|a=randn(6,16)|p=torch.softmax(a,1);v,i=torch.topk(p,2,1);v/v.sum(1,keepdim=True)+torch.gather(p,1,i)
scans|a=randn(5,7,12)|torch.cumsum(a,1)*2+a
scans|a=randn(5,7,12)|torch.cumsum(F.pad(a,(1,0)),2)[...,:-1]
scans|a=randn(5,7,12);m=mask(5,7,12)|torch.cumsum(a*m,2)
scans|a=randn(5,7,12)|torch.cumsum(a.flip(1),1).flip(1)-a.cumsum(1)
scans|a=rand(5,7,12)|torch.cumprod(a+0.5,2).sum(1)
scans|a=randn(5,7,12)|torch.cummax(a,1),torch.cummin(a,2)[0]
scans|a=randn(5,7,12)|torch.logcumsumexp(a,2)
scans|a=randn(3,5,12)|s=torch.cumsum(a,2);d=s[...,:,None]-s[...,None,:];torch.exp(d.masked_fill(~torch.tril(torch.ones(12,12,dtype=torch.bool)),float('-inf')))
pools|x=randn(2,6,9,11)|F.max_pool2d(x,3,2,1)
pools|x=randn(2,6,9,11)|F.max_pool2d(x,3,2,1,return_indices=True)
pools|x=randn(2,6,9,11)|F.avg_pool2d(x,3,2,1,count_include_pad=False)+F.avg_pool2d(x,3,2,1,ceil_mode=False)
pools|x=randn(2,6,9,11)|F.avg_pool2d(x,(2,3),ceil_mode=True).relu().sum(1)
pools|x=randn(2,6,13)|F.max_pool1d(x,4,2)*F.avg_pool1d(x,4,2)
pools|x=randn(2,3,6,7,8)|F.max_pool3d(x,2)+F.avg_pool3d(x,2)
pools|x=randn(2,6,9,11)|F.adaptive_avg_pool2d(x,(4,5))
pools|x=randn(2,6,9,11)|F.adaptive_max_pool2d(x,(4,5))
pools|x=randn(2,6,9,11)|F.adaptive_avg_pool2d(x,1).flatten(1)@self.l.weight.t()|l=nn.Linear(6,5)
pools|x=randn(2,6,13)|F.adaptive_avg_pool1d(x,5)+F.adaptive_max_pool1d(x,5)
pools|x=randn(2,3,6,7,8)|F.adaptive_avg_pool3d(x,(2,3,4))
pools|x=randn(2,6,9,11)|F.lp_pool2d(x.abs(),2,3)
pools|x=randn(2,6,9,11)|F.max_pool2d(x,2,dilation=2)
convolution|x=randn(2,6,9,11)|self.c(x)|c=nn.Conv2d(6,8,3)
convolution|x=randn(2,6,9,11)|F.relu(self.c(x)+1)|c=nn.Conv2d(6,8,(3,5),stride=(2,1),padding=(1,2))
convolution|x=randn(2,6,9,11)|self.c(x)|c=nn.Conv2d(6,9,3,groups=3,dilation=2,bias=False)
convolution|x=randn(2,6,9,11)|self.c(x).sigmoid()|c=nn.Conv2d(6,12,3,padding=1,groups=6)
convolution|x=randn(2,6,9,11)|self.c(x)|c=nn.Conv2d(6,8,1)
convolution|x=randn(2,6,23)|self.c(x)|c=nn.Conv1d(6,8,5,stride=2,padding=2)
convolution|x=randn(2,3,6,7,8)|self.c(x)|c=nn.Conv3d(3,4,3,padding=1)
convolution|x=randn(2,6,9,11)|self.c(x)|c=nn.ConvTranspose2d(6,8,3,stride=2,padding=1,output_padding=1)
convolution|x=randn(2,6,9,11)|self.c(x)|c=nn.ConvTranspose2d(6,9,3,groups=3,dilation=2)
convolution|x=randn(2,6,13)|self.c(x)|c=nn.ConvTranspose1d(6,4,4,stride=3)
convolution|x=randn(1,3,4,5,6)|self.c(x)|c=nn.ConvTranspose3d(3,4,3,stride=2,padding=1)
convolution|x=randn(2,6,9,11)|self.c(x)|c=nn.Conv2d(6,8,3,padding=1,padding_mode='reflect')
convolution|x=randn(2,6,9,11)|self.c(x)|c=nn.Conv2d(6,8,3,padding='same')
convolution|x=randn(2,6,9,11)|F.max_pool2d(F.relu(self.b(self.c(x))),2)|c=nn.Conv2d(6,8,3,padding=1);b=nn.BatchNorm2d(8)
convolution|x=randn(2,6,9,11)|F.softmax(self.c(x),1).mean((2,3))|c=nn.Conv2d(6,8,3)
convolution|x=randn(2,6,9,11)|self.n(self.c(x)*2).amin(1,keepdim=True).tanh()|c=nn.Conv2d(6,8,3);n=nn.GroupNorm(4,8)
convolution|x=randn(2,6,9,11)|torch.logsumexp(self.c(x),1).clamp(-1,1)|c=nn.ConvTranspose2d(6,8,3)
products|a=randn(3,9,8);b=randn(3,8,5)|torch.bmm(a,b).amax(2)
products|a=randn(9,8);b=randn(8,5)|(a@b).sum(0)*2
products|a=randn(4,9,8);b=randn(4,9,5)|torch.einsum('bij,bik->jk',a,b)
products|a=randn(2,3,4,5);b=randn(2,3,4,6)|torch.einsum('bhqd,bhqe->bde',a,b)
products|a=randn(9,8);v=randn(8)|a@v+torch.dot(v,v)
products|a=randn(9,8)|self.l(a).softmax(0).cumsum(1)|l=nn.Linear(8,6)
products|a=randn(9,8)|F.avg_pool1d(self.l(a)[None],2)[0].amax(1)|l=nn.Linear(8,6)
products|a=randn(9,8)|self.n(self.l(a)[...,None,None]).flatten(1)*2|l=nn.Linear(8,6);n=nn.GroupNorm(2,6)
products|a=randn(9,8);b=randn(9,8)|torch.cdist(a,b)
products|a=randn(9,8);b=randn(7,8)|F.bilinear(a,a,w)|w=P(5,8,8)
products|a=randn(9,8);b=randn(8,8);c=randn(9,8)|torch.tanh(a@b)*a+(c@b)*b[:1]-c
products|a=randn(9,8)|torch.addmm(a[:,:5],a,w,beta=0.5,alpha=2).logsumexp(1)|w=P(8,5)
products|a=randn(6,5);b=randn(3,4)|torch.kron(a,b)
attention|q=randn(2,3,9,8);k=randn(2,3,11,8);v=randn(2,3,11,5)|torch.softmax(q@k.transpose(-2,-1)/8**0.5,-1)@v
attention|q=randn(2,3,9,8);k=randn(2,3,11,8);v=randn(2,3,11,8)|F.scaled_dot_product_attention(q,k,v) if hasattr(F,'scaled_dot_product_attention') else torch.softmax(q@k.transpose(-2,-1)/8**0.5,-1)@v
attention|q=randn(2,3,9,8)|F.scaled_dot_product_attention(q,q,q,is_causal=True) if hasattr(F,'scaled_dot_product_attention') else q*2
attention|q=randn(2,3,9,8);m=mask(9,9)|s=(q@q.transpose(-2,-1)).masked_fill(m==0,-1e4);torch.softmax(s,-1)@q
attention|x=randn(2,7,16)|self.a(x,x,x,need_weights=False)[0]|a=nn.MultiheadAttention(16,4,batch_first=True)
attention|x=randn(7,2,16)|self.a(x,x,x)|a=nn.MultiheadAttention(16,2)
losses|a=randn(9,8);t=index(8,9)|F.cross_entropy(a,t)
losses|a=randn(9,8);t=index(8,9)|F.cross_entropy(a,t,weight=w)+F.cross_entropy(a,t,label_smoothing=0.1)|w=nn.Parameter(torch.arange(1.0,9.0))
losses|a=randn(2,8,5,6);t=index(8,2,5,6)|F.nll_loss(F.log_softmax(a,1),t)
losses|a=randn(9,8);b=randn(9,8)|F.mse_loss(a,b)+F.l1_loss(a,b)+F.smooth_l1_loss(a,b)+F.huber_loss(a,b)
losses|a=randn(9,8);b=rand(9,8)|F.binary_cross_entropy_with_logits(a,b)+F.binary_cross_entropy(torch.sigmoid(a),b)
losses|a=randn(9,8);b=rand(9,8)|F.kl_div(F.log_softmax(a,1),F.softmax(b,1),reduction='batchmean')
losses|a=randn(9,8);b=randn(9,8);c=randn(9,8)|F.triplet_margin_loss(a,b,c)
losses|a=randn(9,8);b=randn(9,8)|F.cosine_embedding_loss(a,b,torch.ones(9))+F.cosine_similarity(a,b,1).sum()
losses|a=randn(9,8);b=rand(9)|F.hinge_embedding_loss(a[:,0],torch.sign(b-0.5))+F.soft_margin_loss(a[:,1],torch.sign(b-0.5))
losses|a=randn(9,8);t=index(8,9)|F.multi_margin_loss(a,t)
losses|a=randn(9,8);b=rand(9,8)|F.poisson_nll_loss(a,b)+F.gaussian_nll_loss(a,b,b*b+0.1)
losses|a=randn(9,8);b=randn(9,8)|F.margin_ranking_loss(a,b,torch.ones(9,8))
interpolation|x=randn(2,3,6,7)|F.interpolate(x,scale_factor=2)
interpolation|x=randn(2,3,6,7)|F.interpolate(x,size=(9,5),mode='nearest')
interpolation|x=randn(2,3,6,7)|F.interpolate(x,scale_factor=2,mode='bilinear')
interpolation|x=randn(2,3,6,7)|F.interpolate(x,size=(4,13),mode='bilinear',align_corners=True)
interpolation|x=randn(2,3,6,7)|F.interpolate(x,size=(9,11),mode='bicubic')
interpolation|x=randn(2,3,9)|F.interpolate(x,size=14,mode='linear')
interpolation|x=randn(1,2,4,5,6)|F.interpolate(x,scale_factor=2,mode='trilinear')
interpolation|x=randn(2,3,6,7)|F.interpolate(x,size=(9,5),mode='nearest-exact')
interpolation|x=randn(2,3,6,7)|F.interpolate(x,size=(3,4),mode='area')
activations|a=randn(5,12)|F.glu(a,1)+F.glu(a,-1)
activations|a=randn(5,12)|F.logsigmoid(a)*F.softmin(a,0)
activations|a=randn(5,12)|F.prelu(a,w)*F.softmin(a,0)|w=P(12)
activations|a=randn(4,5,5,5)|F.prelu(a,w).sum(-1)*F.prelu(a,w)[...,0]|w=P(5)
activations|a=randn(4,9,7)|self.p(self.l(a))|l=nn.Linear(7,9);p=nn.PReLU(9)
activations|a=randn(5,12)|torch.nan_to_num(a/0.0*0.0+a,1.0)+torch.isfinite(a)
activations|a=randn(5,12)|F.softmax(a.sum(0),0)+F.tanhshrink(a)+F.hardshrink(a)+F.softshrink(a)
activations|a=randn(5,12)|torch.heaviside(a,a[:1])+torch.copysign(a,a.flip(0))+torch.hypot(a,a.flip(1))
activations|a=randn(5,12)|torch.sinc(a)+torch.logit(torch.sigmoid(a))
networks|x=randn(2,1,16,16)|x=F.max_pool2d(F.relu(self.a(x)),2);x=F.max_pool2d(F.relu(self.b(x)),2);self.d(F.relu(self.c(x.flatten(1))))|a=nn.Conv2d(1,4,3);b=nn.Conv2d(4,6,3);c=nn.Linear(24,10);d=nn.Linear(10,5)
networks|x=randn(2,4,8,8)|F.relu(self.nb(self.b(F.relu(self.na(self.a(x)))))+x)|a=nn.Conv2d(4,4,3,padding=1);b=nn.Conv2d(4,4,3,padding=1);na=nn.BatchNorm2d(4);nb=nn.BatchNorm2d(4)
networks|x=randn(2,4,8,8)|torch.cat([self.a(x),self.b(F.relu(self.c(x))),F.max_pool2d(x,3,1,1)],1)|a=nn.Conv2d(4,3,1);b=nn.Conv2d(2,5,3,padding=1);c=nn.Conv2d(4,2,1)
networks|x=randn(2,4,8,8)|s=torch.sigmoid(self.b(F.relu(self.a(x.mean((2,3))))));x*s[:,:,None,None]|a=nn.Linear(4,2);b=nn.Linear(2,4)
networks|x=randn(2,4,8,8)|F.relu6(self.n(self.p(F.relu6(self.d(x)))))|d=nn.Conv2d(4,4,3,padding=1,groups=4);p=nn.Conv2d(4,8,1);n=nn.BatchNorm2d(8)
networks|x=randn(2,7,16)|self.t(x)|t=nn.TransformerEncoderLayer(16,4,32,batch_first=True)
networks|x=randn(2,7,16)|h=x+self.a(self.n(x)).tanh();h+self.b(F.gelu(self.a(self.m(h))))|n=nn.LayerNorm(16);m=nn.LayerNorm(16);a=nn.Linear(16,16);b=nn.Linear(16,16)
networks|x=randn(5,3,6)|self.r(x)|r=nn.LSTM(6,4)
networks|x=randn(3,5,6)|self.r(x)[0]|r=nn.GRU(6,4,batch_first=True)
networks|x=randn(5,3,6)|self.r(x)[0].sum(0)|r=nn.RNN(6,4,num_layers=2)
networks|x=randn(5,3,6)|self.r(x)[0]|r=nn.LSTM(6,4,num_layers=2,bidirectional=True)
networks|x=randn(3,6);h=randn(3,4)|self.r(x,h)|r=nn.GRUCell(6,4)
networks|x=randn(3,6);h=randn(3,4);c=randn(3,4)|self.r(x,(h,c))|r=nn.LSTMCell(6,4)
networks|x=randn(2,3,8,8)|p=self.p(x).flatten(2).transpose(1,2);p=torch.cat([self.c.expand(2,-1,-1),p],1)+self.e;self.h(self.n(p)[:,0])|p=nn.Conv2d(3,8,4,stride=4);c=P(1,1,8);e=P(1,5,8);n=nn.LayerNorm(8);h=nn.Linear(8,5)
networks|x=randn(2,4,8,8)|a=F.relu(self.a(x));b=F.relu(self.b(F.max_pool2d(a,2)));self.c(torch.cat([a,self.u(b)],1))|a=nn.Conv2d(4,4,3,padding=1);b=nn.Conv2d(4,6,3,padding=1);u=nn.ConvTranspose2d(6,4,2,stride=2);c=nn.Conv2d(8,2,1)
networks|x=randn(2,9,6)|a=torch.softmax(x@self.w,-1);v=a.transpose(1,2)@x-a.sum(1)[...,None]*self.k;F.normalize(F.normalize(v,dim=2).flatten(1),dim=1)|w=P(6,4);k=P(4,6)
networks|x=randn(2,6,5);b=randn(2,6,3);a=rand(2,6,5)|s=torch.cumsum(-a,1);l=torch.exp((s[:,:,None]-s[:,None]).masked_fill(~torch.tril(torch.ones(6,6,dtype=torch.bool))[None,:,:,None],float('-inf')));torch.einsum('btn,bsn,btsd,bsd->btd',b,b,l,x)
"""

# written once per floating point dtype: DT
FLOATS = """
pointwise in each dtype|a=randn(5,12,dtype=DT);b=randn(12,dtype=DT)|torch.exp(-a.abs())*b+torch.where(a>b,a,b)
reduce in each dtype|a=randn(5,7,12,dtype=DT)|a.sum((0,2))+a.amax((0,2))
softmax in each dtype|a=randn(5,7,12,dtype=DT)|torch.softmax(a,1)*a.mean(2,keepdim=True)
norms in each dtype|a=randn(5,6,12,dtype=DT)|F.group_norm(a,2)+F.layer_norm(a,(6,12))
views in each dtype|a=randn(5,7,12,dtype=DT)|torch.cat([a.flip(1),a.roll(1,2)],0).transpose(0,2)
gathers in each dtype|a=randn(9,12,dtype=DT);i=index(9,5)|a[i]*2
scans in each dtype|a=randn(5,7,12,dtype=DT)|torch.cumsum(a,1)
pools in each dtype|x=randn(2,6,9,11,dtype=DT)|F.max_pool2d(x,3,2,1)+F.avg_pool2d(x,3,2,1)
convolution in each dtype|x=randn(2,6,9,11,dtype=DT)|F.conv2d(x,w,padding=1)|w=P(4,6,3,3,dtype=DT)
products in each dtype|a=randn(4,9,8,dtype=DT);b=randn(4,8,5,dtype=DT)|torch.bmm(a,b).sum(0)
sort in each dtype|a=randn(5,31,dtype=DT)|torch.sort(a,1)[0]
scatters in each dtype|a=randn(9,12,dtype=DT);i=index(9,5);b=randn(5,12,dtype=DT)|torch.index_add(a,0,i,b)
losses in each dtype|a=randn(9,8,dtype=DT);b=randn(9,8,dtype=DT)|F.smooth_l1_loss(a,b)
casts in each dtype|a=randn(9,8,dtype=DT)|a.float().sum(0).to(DT)+a.to(torch.int32).to(DT).sum(0)
"""

# written once per integer dtype: DT
WHOLE = """
integers|a=whole(5,12);b=whole(12)|a*2+b.clamp(min=1)
integers|a=whole(5,7,12)|a.sum(1)+a.amax(1)
integers|a=whole(5,7,12)|a.float()/(1+a.sum(0)).float()
integers|a=whole(5,12)|torch.cat([a.flip(1),a],0).t()
integers|a=whole(5,12);i=index(5,7)|a[i].cumsum(1)
integers|a=whole(5,12)|torch.sort(a,1)[0],(a>2).any(1)
integers|a=whole(5,12)|a.argmax(1),a//3,a%3
"""

# so many results that a thread has several; at the end, whatever the seed
LARGE = """
large|a=randn(1030,1021)|a.flip(1)+a.roll(3,0)
large|a=randn(1024,640);b=randn(1024,512)|torch.cat([a,b[:,:384]],1)
large|a=randn(1024,1032);b=randn(1032)|F.hardswish((a+b).transpose(0,1).contiguous()*2)
large|a=randn(8,64,2049)|a.permute(1,2,0).contiguous()+1
by blocks|a=randn(3,150);b=index(4,70,2);i=index(9,60);c=randn(9,7);d=randn(60,7)|torch.sort(a,1,descending=True)[0],torch.topk(b.float(),9,0)[0],torch.kthvalue(a,40,1),torch.index_add(c,0,i,d)
by blocks|a=randn(2,20001)|torch.sort(a,1),torch.topk(a,5,1)[0],a.median(1)[0]
by blocks|a=randn(2,1500);b=index(4,3,40)|torch.sort(a,1)[0],torch.sort(b*(1<<33)-b,stable=True,dim=1),torch.topk(b.float(),35,1,largest=False)[0]
by blocks|a=index(3,2,9001)|torch.sort(a.float(),stable=True,dim=1,descending=True)
by blocks|x=randn(9,7);i=index(9,60,7);d=randn(60,7)|torch.scatter_reduce(x,0,i,d,'mean',include_self=False),x.half().index_add(0,i[:,0],d.half()),torch.bincount(i[:,1],minlength=9)
by blocks|x=randn(9,7);i=index(9,60,7);d=randn(60,7)|torch.scatter_reduce(x,0,i,d,'amax'),torch.scatter_reduce(x,0,i,d,'amin',include_self=False),torch.scatter_reduce(x,0,i[:20],d[:20],'prod'),torch.histc(x,5,-1.0,1.5)
by blocks|a=randn(300);x=randn(40,9);w=randn(30,8);i=index(30,50)|torch.searchsorted(a.sort()[0],x,right=True),torch.bucketize(x,a.sort()[0]),F.embedding_bag(i,w,torch.arange(0,50,7),mode='mean')
by blocks|a=randn(3,2,150);b=index(4,3,70)|torch.cummax(a,2),torch.cummin(b,1),torch.logcumsumexp(a*30,2),torch.cummax(a.half().float(),2)[0]
by blocks|x=index(9,6,7);i=index(6,40);d=index(99,40,7)|x.index_add(0,i,d),x.to(torch.uint8).index_add(0,i,d.to(torch.uint8)),x.index_put((i[:5]%2,i[:5]),d[:5,0],accumulate=True)
by blocks|x=randn(50,7);d=randn(20,7)|x.index_copy(0,torch.arange(20)*2,d),x.scatter(1,torch.arange(50)[:,None]%7,2.5)
"""


def chains(rng, count):
    """Two to eight operators of different families, one after the other."""
    steps = [
        "torch.relu(x)", "x*2-0.5", "torch.tanh(x)", "F.gelu(x)", "x.softmax(-1)", "x-x.mean(1,keepdim=True)",
        "x/(x.abs().amax(-1,keepdim=True)+1)", "x.transpose(1,2)", "x.flip(1)", "F.pad(x,(1,1))", "x.cumsum(1)",
        "F.avg_pool1d(x,2)", "F.max_pool1d(x,3,1,1)", "torch.cat([x,x[:,:1]],1)", "x+x.sum((1,2),keepdim=True)*0.01",
        "F.layer_norm(x,x.shape[1:])", "x@x.transpose(1,2)", "x.roll(2,2)", "torch.where(x>0,x,-0.1*x)",
        "x.sort(2)[0]", "F.normalize(x,dim=1)", "x[:,::2]", "x.logsumexp(2,keepdim=True)+x", "x.clamp(-1,1)",
        "F.interpolate(x,scale_factor=2)", "x.repeat(1,2,1)", "torch.topk(x,3,2)[0]", "x.var(1,keepdim=True)*x",
    ]
    for _ in range(count):
        length = rng.randrange(2, 9)
        yield "chains|x=randn(3,8,12)|" + ";".join(f"x={rng.choice(steps)}" for _ in range(length)) + ";x"


def source_of(text):
    """Inputs as PyTorch writes them."""
    name, call = text.split("=", 1)
    kind, rest = call.split("(", 1)
    sizes = rest[:-1]
    if kind == "index":
        most, shape = sizes.split(",", 1)
        return name, f"torch.randint(0, {most}, ({shape},))"
    if kind == "mask":
        return name, f"torch.randint(0, 2, ({sizes},))"
    if kind == "whole":
        return name, f"torch.randint(0, 9, ({sizes},), dtype=DT)"
    if "dtype" in sizes:
        shape, dtype = sizes.rsplit(",dtype=", 1)
        return name, f"torch.{kind}({shape}).to({dtype})"
    return name, f"torch.{kind}({sizes})"


def write(row, number):
    parts = row.split("|")
    family, inputs, code, layers = parts[0], parts[1].split(";"), parts[2], parts[3] if len(parts) > 3 else ""
    named = [source_of(i) for i in inputs]
    init = ""
    for layer in filter(None, layers.split(";")):
        name, made = layer.split("=", 1)
        if made.startswith("P("):
            args, _, dtype = made[2:-1].partition(",dtype=")
            made = f"nn.Parameter(torch.randn({args}){f'.to({dtype})' if dtype else ''} * 0.5)"
        init += f"        self.{name} = {made}\n"
        if not made.startswith("nn.") or made.startswith("nn.Parameter"):
            code = code.replace(f"self.{name}", name)
            code = f"{name}=self.{name};{code}" if f"{name}=self" not in code else code
    *before, result = code.split(";")
    return TASK.format(
        number=number,
        family=family,
        words=code.replace("\\", "").replace('"', "'"),
        init=init,
        arguments=", ".join(n for n, _ in named),
        body="".join(f"        {s}\n" for s in before),
        result=result,
        inputs=", ".join(t for _, t in named),
    )


def rows(seed):
    rng = random.Random(seed)
    found = [r for r in ROWS.strip().splitlines() if r]
    for dtype in ("torch.float32", "torch.float16", "torch.bfloat16"):
        found += [r.replace("DT", dtype) for r in FLOATS.strip().splitlines()]
    for dtype in ("torch.int64", "torch.int32", "torch.int16", "torch.int8", "torch.uint8"):
        found += [r + f"#{dtype}" for r in WHOLE.strip().splitlines()]
    found += list(chains(rng, 60))
    rng.shuffle(found)
    found += LARGE.strip().splitlines()
    return [r for r in found if os.environ.get("FAMILY", "") in ("", r.split("|")[0])]


def main():
    if sys.argv[1:2] == ["--count"]:
        print(len(rows(1)))
        return
    if not sys.argv[1:] or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    out, count, seed = pathlib.Path(sys.argv[1]), int((sys.argv[2:3] or ["0"])[0]), int((sys.argv[3:4] or ["1"])[0])
    out.mkdir(parents=True, exist_ok=True)
    found = rows(seed)
    for number, row in enumerate(found[: count or len(found)]):
        row, _, dtype = row.partition("#")
        text = write(row, number).replace("DT", dtype) if dtype else write(row, number)
        (out / f"task{number:03d}.py").write_text(text)


main()
