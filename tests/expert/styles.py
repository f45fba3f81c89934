"""Modules in the styles people write them: odd dimensions, in-place operators, masks, gathers, losses, gating.

    python3 tests/expert/styles.py OUT_DIR [COUNT [SEED]]        COUNT 0: all of them; SEED is not used
    python3 tests/expert/styles.py --count

A block of STYLES is one module: its name; `init` lines; lines of forward; after `inputs`, what get_inputs returns.
"""
import textwrap

import task_files

TASK = '''"""Module {number}: {name}."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
{init}
        self.eval()

    def forward(self, {arguments}):
{body}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
'''

# the first twenty were run and repaired; the others were held back until then
STYLES = """
== RMSNorm with a gain and a residual, channels first
self.gain = nn.Parameter(torch.rand(6) + 0.5)
--
rms = x.pow(2).mean(dim=1, keepdim=True).add_(1e-6).sqrt_()
y = x.div(rms).mul(self.gain.view(1, -1, 1, 1))
y += x
return y
-- x=torch.randn(3, 6, 7, 9)
== rotary embedding by halves, with a table of angles
self.register_buffer("inv", 1.0 / (10000 ** (torch.arange(0, 8, 2).float() / 8)))
--
b, h, t, d = q.shape
freqs = torch.outer(torch.arange(t, device=q.device).float(), self.inv)
emb = torch.cat((freqs, freqs), dim=-1)
cos, sin = emb.cos()[None, None], emb.sin()[None, None]
turned = torch.cat((-q[..., d // 2:], q[..., : d // 2]), dim=-1)
return q * cos + turned * sin
-- q=torch.randn(2, 3, 11, 8)
== mixture of experts: two of five by a softmax over the chosen, dense dispatch
self.gate = nn.Linear(12, 5, bias=False)
self.w1 = nn.Parameter(torch.randn(5, 12, 20) * 0.2)
self.w2 = nn.Parameter(torch.randn(5, 20, 12) * 0.2)
--
logits = self.gate(x)
top, which = logits.topk(2, dim=-1)
weight = torch.zeros_like(logits).scatter_(1, which, top.softmax(dim=-1))
h = F.silu(torch.einsum("nd,edh->neh", x, self.w1))
y = torch.einsum("neh,ehd->ned", h, self.w2)
return (y * weight.unsqueeze(-1)).sum(dim=1), weight.mean(dim=0)
-- x=torch.randn(17, 12)
== focal loss of many classes with class weights
self.register_buffer("alpha", torch.linspace(0.5, 1.5, 7))
--
logp = F.log_softmax(logits, dim=1)
p = logp.exp().gather(1, target[:, None]).squeeze(1)
at = self.alpha[target]
loss = -at * (1 - p) ** 2.0 * logp.gather(1, target.view(-1, 1)).view(-1)
return loss.mean()
-- logits=torch.randn(33, 7); target=torch.randint(0, 7, (33,))
== soft dice loss per class, background left out
--
probs = torch.softmax(logits, dim=1)
hot = F.one_hot(target, logits.shape[1]).permute(0, 3, 1, 2).to(probs.dtype)
inter = (probs * hot).flatten(2).sum(-1)
denom = probs.flatten(2).sum(-1) + hot.flatten(2).sum(-1)
dice = (2 * inter + 1.0) / (denom + 1.0)
return 1 - dice[:, 1:].mean(dim=1)
-- logits=torch.randn(3, 5, 9, 10); target=torch.randint(0, 5, (3, 9, 10))
== contrastive loss of both views, the diagonal masked (NT-Xent)
--
z = F.normalize(torch.cat([a, b], dim=0), dim=1)
n = a.shape[0]
sim = z @ z.t() / 0.1
sim = sim.masked_fill(torch.eye(2 * n, dtype=torch.bool), -1e9)
labels = torch.cat([torch.arange(n, 2 * n), torch.arange(0, n)])
return F.cross_entropy(sim, labels)
-- a=torch.randn(9, 13); b=torch.randn(9, 13)
== triplet loss with the hardest pairs of the batch
--
d = (x.unsqueeze(0) - x.unsqueeze(1)).pow(2).sum(-1).clamp_min(1e-12).sqrt()
same = labels[:, None] == labels[None, :]
far = torch.where(same, d, torch.zeros_like(d)).max(dim=1)[0]
near = torch.where(same, torch.full_like(d, float("inf")), d).min(dim=1)[0]
near = torch.where(torch.isinf(near), torch.zeros_like(near), near)
return F.relu(far - near + 0.3).mean()
-- x=torch.randn(12, 10); labels=torch.randint(0, 3, (12,))
== quantiles of rows and values clipped to them
--
lo = torch.quantile(x, 0.1, dim=1, keepdim=True)
hi = torch.quantile(x, 0.9, dim=1, keepdim=True)
return torch.max(torch.min(x, hi), lo), hi - lo
-- x=torch.randn(6, 37)
== Kronecker factored linear layer
self.a = nn.Parameter(torch.randn(3, 4) * 0.5)
self.b = nn.Parameter(torch.randn(5, 2) * 0.5)
--
return F.linear(x, torch.kron(self.a, self.b))
-- x=torch.randn(7, 8)
== tensordot over two dimensions, then a mean over another
self.t = nn.Parameter(torch.randn(5, 4, 6) * 0.3)
--
y = torch.tensordot(x, self.t, dims=([2, 1], [1, 0]))
return y.mean(dim=0, keepdim=True) + y
-- x=torch.randn(3, 5, 4, 7)
== means of segments by ids
--
total = torch.zeros(6, x.shape[1]).index_add_(0, ids, x)
count = torch.zeros(6).index_add_(0, ids, torch.ones_like(ids, dtype=x.dtype))
return total / count.clamp(min=1).unsqueeze(1)
-- x=torch.randn(40, 5); ids=torch.randint(0, 6, (40,))
== polynomial features of degree two
--
n = x.shape[1]
i, j = torch.triu_indices(n, n)
return torch.cat([torch.ones(x.shape[0], 1), x, x[:, i] * x[:, j]], dim=1)
-- x=torch.randn(9, 6)
== complex rotation by polar numbers
self.theta = nn.Parameter(torch.rand(5) * 6)
--
z = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2).contiguous())
r = torch.polar(torch.ones_like(self.theta), self.theta)
return torch.view_as_real(z * r).flatten(-2)
-- x=torch.randn(4, 3, 10)
== label smoothing written out, padding ignored
--
n = logits.size(-1)
logp = logits.log_softmax(-1)
nll = -logp.gather(-1, target.unsqueeze(-1)).squeeze(-1)
smooth = -logp.mean(-1)
keep = target.ne(0).float()
return ((0.9 * nll + 0.1 * smooth) * keep).sum() / keep.sum().clamp(min=1)
-- logits=torch.randn(5, 8, 11); target=torch.randint(0, 11, (5, 8))
== Gumbel softmax with noise that is an input, straight through
--
g = -torch.log(-torch.log(u.clamp(1e-6, 1 - 1e-6)))
y = ((logits + g) / 0.7).softmax(dim=-1)
index = y.max(dim=-1, keepdim=True)[1]
hard = torch.zeros_like(logits).scatter_(-1, index, 1.0)
return hard - y + y * 2, y
-- logits=torch.randn(8, 9); u=torch.rand(8, 9)
== a step of beam search: scores of all words of all beams, the best kept, parents and words
--
b, k, v = logp.shape
total = scores.unsqueeze(-1) + logp.log_softmax(-1)
best, flat = total.view(b, k * v).topk(k, dim=-1)
parent = torch.div(flat, v, rounding_mode="floor")
word = flat % v
kept = tokens.gather(1, parent.unsqueeze(-1).expand(-1, -1, tokens.size(-1)))
return best, torch.cat([kept, word.unsqueeze(-1)], dim=-1)
-- logp=torch.randn(3, 4, 13); scores=torch.randn(3, 4); tokens=torch.randint(0, 13, (3, 4, 5))
== group-wise top-k: two groups of four, three of the chosen experts
--
n, e = x.shape
s = x.sigmoid()
group = s.view(n, 4, e // 4).topk(2, dim=-1)[0].sum(dim=-1)
chosen = group.topk(2, dim=-1)[1]
mask = torch.zeros_like(group).scatter(1, chosen, 1.0)
mask = mask.unsqueeze(-1).expand(n, 4, e // 4).reshape(n, e)
w, idx = s.masked_fill(mask == 0, 0.0).topk(3, dim=-1)
return w / w.sum(dim=-1, keepdim=True), idx
-- x=torch.randn(9, 20)
== local windows by unfold, weighted by their distance, folded back
--
p = F.unfold(x, kernel_size=3, padding=1)
b, _, l = p.shape
p = p.view(b, x.shape[1], 9, l)
w = torch.exp(-(p - p[:, :, 4:5]).abs())
y = (p * w).view(b, -1, l)
return F.fold(y, x.shape[-2:], kernel_size=3, padding=1) / w.sum(2).view_as(x)
-- x=torch.randn(2, 3, 7, 6)
== histogram equalization by bucketize, cumulative sum and gather
--
edges = torch.linspace(-3, 3, 17)
bin = torch.bucketize(x, edges).clamp(1, 16) - 1
counts = F.one_hot(bin, 16).sum(1).float()
cdf = counts.cumsum(-1) / x.shape[1]
return cdf.gather(1, bin)
-- x=torch.randn(5, 50)
== linear attention with ELU features, causal by cumulative sums
--
q, k = F.elu(q) + 1, F.elu(k) + 1
kv = torch.einsum("bhtd,bhte->bhtde", k, v).cumsum(dim=2)
norm = torch.einsum("bhtd,bhtd->bht", q, k.cumsum(2)).unsqueeze(-1)
return torch.einsum("bhtd,bhtde->bhte", q, kv) / (norm + 1e-6)
-- q=torch.randn(2, 2, 9, 4); k=torch.randn(2, 2, 9, 4); v=torch.randn(2, 2, 9, 5)
== weight standardized convolution with a group norm and a shortcut
self.conv = nn.Conv2d(6, 6, 3, padding=1)
self.norm = nn.GroupNorm(2, 6)
--
w = self.conv.weight
mean = w.mean(dim=[1, 2, 3], keepdim=True)
var = w.var(dim=[1, 2, 3], keepdim=True, unbiased=False)
y = F.conv2d(x, (w - mean) / (var + 1e-5).sqrt(), self.conv.bias, padding=1)
return F.relu_(self.norm(y)).add_(x)
-- x=torch.randn(2, 6, 7, 9)
== squeeze and excitation with hard gates
self.fc = nn.Sequential(nn.Linear(8, 3), nn.ReLU(inplace=True), nn.Linear(3, 8), nn.Hardsigmoid())
--
b, c, _, _ = x.size()
y = F.adaptive_avg_pool2d(x, 1).view(b, c)
y = self.fc(y).view(b, c, 1, 1)
return x * y.expand_as(x)
-- x=torch.randn(3, 8, 5, 7)
== relative position bias by buckets of the logarithm (T5)
self.bias = nn.Embedding(8, 3)
--
t = scores.shape[-1]
ctx, mem = torch.arange(t)[:, None], torch.arange(t)[None, :]
n = -(mem - ctx)
ret = (n < 0).long() * 4
n = n.abs()
large = 2 + (torch.log(n.float().clamp(min=1) / 2) / math.log(8 / 2) * 2).long()
bucket = ret + torch.where(n < 2, n, torch.min(large, torch.full_like(large, 3)))
return (scores + self.bias(bucket).permute(2, 0, 1)).softmax(-1)
-- scores=torch.randn(2, 3, 9, 9)
== nucleus filter: the smallest set of words with nine tenths of the weight
--
s, order = torch.sort(logits, descending=True, dim=-1)
cum = s.softmax(dim=-1).cumsum(dim=-1)
drop = cum > 0.9
drop[..., 1:] = drop[..., :-1].clone()
drop[..., 0] = False
out = torch.zeros_like(drop).scatter(-1, order, drop)
return logits.masked_fill(out, -1e4).softmax(-1)
-- logits=torch.randn(6, 23)
== selective state space scan, five steps written as a loop
self.a = nn.Parameter(-torch.rand(4, 3) - 0.1)
--
h = torch.zeros(x.shape[0], 4, 3)
ys = []
for t in range(x.shape[1]):
    dt = F.softplus(delta[:, t]).unsqueeze(-1)
    h = torch.exp(dt * self.a) * h + dt * b[:, t].unsqueeze(1) * x[:, t].unsqueeze(-1)
    ys.append((h * c[:, t].unsqueeze(1)).sum(-1))
return torch.stack(ys, dim=1)
-- x=torch.randn(2, 5, 4); delta=torch.randn(2, 5, 4); b=torch.randn(2, 5, 3); c=torch.randn(2, 5, 3)
== capsules: squashed votes, two rounds of routing by agreement
self.w = nn.Parameter(torch.randn(6, 3, 4, 5) * 0.3)
--
u = torch.einsum("bik,ijkl->bijl", x, self.w)
logit = u.new_zeros(u.shape[:3])
for _ in range(2):
    c = logit.softmax(dim=2)
    s = (c.unsqueeze(-1) * u).sum(dim=1)
    sq = (s * s).sum(-1, keepdim=True)
    v = sq / (1 + sq) * s / (sq + 1e-8).sqrt()
    logit = logit + (u * v.unsqueeze(1)).sum(-1)
return v.norm(dim=-1), v
-- x=torch.randn(2, 6, 4)
== boxes: pairwise intersection over union and the best box of each
--
area_a = (a[:, 2] - a[:, 0]) * (a[:, 3] - a[:, 1])
area_b = (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
lt = torch.max(a[:, None, :2], b[None, :, :2])
rb = torch.min(a[:, None, 2:], b[None, :, 2:])
wh = (rb - lt).clamp(min=0)
inter = wh[..., 0] * wh[..., 1]
iou = inter / (area_a[:, None] + area_b - inter)
best, which = iou.max(dim=1)
return best, b[which]
-- a=torch.rand(7, 4).cumsum(1); b=torch.rand(9, 4).cumsum(1)
== deformable sampling: a base grid with learned offsets
self.off = nn.Conv2d(3, 2, 3, padding=1)
--
n, _, h, w = x.shape
ys, xs = torch.meshgrid(torch.linspace(-1, 1, h), torch.linspace(-1, 1, w), indexing="ij")
grid = torch.stack((xs, ys), dim=-1).unsqueeze(0).expand(n, -1, -1, -1)
grid = grid + 0.1 * torch.tanh(self.off(x)).permute(0, 2, 3, 1)
return F.grid_sample(x, grid, mode="bilinear", padding_mode="border", align_corners=True)
-- x=torch.randn(2, 3, 6, 7)
== vector quantization: the nearest code, its residual and the loss
self.code = nn.Parameter(torch.randn(11, 4))
--
flat = x.permute(0, 2, 3, 1).reshape(-1, 4)
d = flat.pow(2).sum(1, keepdim=True) - 2 * flat @ self.code.t() + self.code.pow(2).sum(1)
idx = d.argmin(dim=1)
q = F.embedding(idx, self.code).view(x.shape[0], x.shape[2], x.shape[3], 4).permute(0, 3, 1, 2)
return q, (q - x).pow(2).mean(), idx.view(x.shape[0], -1)
-- x=torch.randn(2, 4, 3, 5)
== minibatch discrimination: distances between samples, exponentials, a concatenation
self.t = nn.Parameter(torch.randn(8, 5 * 3) * 0.2)
--
m = x.mm(self.t).view(-1, 5, 3)
d = (m.unsqueeze(0) - m.unsqueeze(1)).abs().sum(3)
return torch.cat([x, torch.exp(-d).sum(0) - 1], 1)
-- x=torch.randn(9, 8)
== blur pool with a fixed binomial filter after a max pool
--
k = torch.tensor([1.0, 2.0, 1.0])
k = (k[:, None] * k[None, :]) / 16
y = F.max_pool2d(x, 2, stride=1)
y = F.pad(y, (1, 1, 1, 1), mode="reflect")
return F.conv2d(y, k[None, None].repeat(x.shape[1], 1, 1, 1), stride=2, groups=x.shape[1])
-- x=torch.randn(2, 3, 9, 8)
== a masked mean over tokens and a masked maximum, lengths given
--
t = x.shape[1]
mask = torch.arange(t)[None, :] < lengths[:, None]
mean = (x * mask[..., None]).sum(1) / lengths[:, None].clamp(min=1)
most = x.masked_fill(~mask[..., None], float("-inf")).amax(1)
return torch.cat([mean, torch.nan_to_num(most, neginf=0.0)], dim=-1)
-- x=torch.randn(5, 9, 6); lengths=torch.randint(1, 10, (5,))
== Sinkhorn: rows and columns normalized in turn in the logarithm
--
z = cost / -0.5
for _ in range(4):
    z = z - torch.logsumexp(z, dim=1, keepdim=True)
    z = z - torch.logsumexp(z, dim=0, keepdim=True)
return z.exp()
-- cost=torch.rand(9, 9)
== a spectral filter of a signal, real transform and back
self.w = nn.Parameter(torch.rand(17))
--
f = torch.fft.rfft(x, dim=-1, norm="ortho")
y = torch.fft.irfft(f * self.w, n=x.shape[-1], dim=-1, norm="ortho")
return F.gelu(y) + x
-- x=torch.randn(3, 4, 32)
== coordinates appended, a 1x1 convolution, spatial softmax to expected positions
self.c = nn.Conv2d(5, 4, 1)
--
b, _, h, w = x.shape
ys = torch.linspace(-1, 1, h).view(1, 1, h, 1).expand(b, 1, h, w)
xs = torch.linspace(-1, 1, w).view(1, 1, 1, w).expand(b, 1, h, w)
y = self.c(torch.cat([x, ys, xs], dim=1))
p = y.flatten(2).softmax(-1).view_as(y)
return torch.stack([(p * xs).sum((2, 3)), (p * ys).sum((2, 3))], dim=-1)
-- x=torch.randn(2, 3, 6, 5)
== pairwise ranking loss over valid pairs, sorted by relevance
--
order = rel.argsort(dim=1, descending=True)
s = scores.gather(1, order)
diff = s.unsqueeze(2) - s.unsqueeze(1)
valid = torch.triu(torch.ones(s.shape[1], s.shape[1]), diagonal=1).bool()
loss = F.softplus(-diff) * valid
return loss.sum((1, 2)) / valid.sum()
-- scores=torch.randn(4, 9); rel=torch.rand(4, 9)
== graph attention over an adjacency matrix, two heads averaged
self.w = nn.Parameter(torch.randn(2, 6, 5) * 0.4)
self.a = nn.Parameter(torch.randn(2, 10) * 0.4)
--
h = torch.matmul(x.unsqueeze(0), self.w)
left, right = torch.chunk(self.a, 2, dim=1)
e = F.leaky_relu((h * left[:, None]).sum(-1)[:, :, None] + (h * right[:, None]).sum(-1)[:, None, :], 0.2)
e = torch.where(adj > 0, e, torch.full_like(e, -9e15))
return F.elu(torch.matmul(e.softmax(dim=-1), h).mean(0))
-- x=torch.randn(8, 6); adj=torch.eye(8).add(torch.randint(0, 2, (8, 8))).clamp(max=1)
== integer image statistics: counts, ranges, sums by column in whole numbers
--
top = img.amax(dim=(1, 2)) - img.amin(dim=(1, 2))
bright = (img > 100).sum(dim=2)
levels = torch.div(img, 32, rounding_mode="floor").flatten(1)
counts = F.one_hot(levels, 8).sum(1)
return top, bright, counts, (img.float() / 255).std(dim=(1, 2))
-- img=torch.randint(0, 256, (3, 7, 9))
== pixels to patches, tokens mixed by a transposed MLP, back to pixels
self.mix = nn.Sequential(nn.Linear(6, 9), nn.GELU(), nn.Linear(9, 6))
self.norm = nn.LayerNorm(12)
--
b = x.shape[0]
p = x.reshape(b, 3, 2, 2, 3, 2).permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)
p = p + self.mix(self.norm(p).transpose(1, 2)).transpose(1, 2)
return p.view(b, 2, 3, 3, 2, 2).permute(0, 3, 1, 4, 2, 5).reshape(b, 3, 4, 6)
-- x=torch.randn(2, 3, 4, 6)
== exponential moving average by powers, warm-up bias removed
--
t = x.shape[-1]
power = torch.arange(t)[:, None] - torch.arange(t)[None, :]
kernel = torch.where(power >= 0, 0.9 ** power.clamp(min=0).float(), torch.zeros(t, t)) * 0.1
return (x @ kernel.t()) / (1 - 0.9 ** torch.arange(1, t + 1).float())
-- x=torch.randn(3, 4, 15)
"""


def blocks():
    for text in STYLES.strip().split("\n== "):
        name, _, rest = text.partition("\n")
        lines, _, inputs = rest.rpartition("\n-- ")
        init, _, body = lines.rpartition("--\n")
        yield name.removeprefix("== "), init.strip("\n"), body.strip("\n"), [one.split("=", 1) for one in inputs.strip().split("; ")]


def module(number, name, init, body, inputs):
    return TASK.format(
        number=number, name=name, init=textwrap.indent(init, " " * 8), body=textwrap.indent(body, " " * 8),
        arguments=", ".join(n for n, _ in inputs), inputs=", ".join(t for _, t in inputs))


task_files.command(__doc__, [module(number, *parts) for number, parts in enumerate(blocks())])
