"""More rows of networks.py: styles of generators, recommenders, graphs, sets, volumes and sequences."""

NETWORKS = r'''
== vae | a variational autoencoder with its loss, noise given | | torch.randn(5, 20), torch.randn(5, 6)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.mu, self.lv = nn.Linear(20, 24), nn.Linear(24, 6), nn.Linear(24, 6)
        self.d = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 20), nn.Sigmoid())

    def forward(self, x, noise):
        h = F.relu(self.e(x))
        mu, lv = self.mu(h), self.lv(h)
        y = self.d(mu + noise * torch.exp(0.5 * lv))
        kl = -0.5 * torch.mean(torch.sum(1 + lv - mu.pow(2) - lv.exp(), dim=1))
        return y, F.mse_loss(y, x) + kl
== seq2seq_attention | a decoder whose states attend to an encoder's | | torch.randn(3, 9, 8), torch.randn(3, 5, 8)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.d = nn.GRU(8, 12, batch_first=True, bidirectional=True), nn.GRU(8, 24, batch_first=True)
        self.w, self.c = nn.Linear(24, 24, bias=False), nn.Linear(48, 10)

    def forward(self, x, y):
        states, last = self.e(x)
        y, _ = self.d(y, torch.cat([last[0], last[1]], -1).unsqueeze(0))
        scores = torch.bmm(self.w(y), states.transpose(1, 2))
        context = torch.bmm(F.softmax(scores, -1), states)
        return F.log_softmax(self.c(torch.tanh(torch.cat([y, context], -1))), -1)
== additive_attention | Bahdanau's attention over states | | torch.randn(3, 7, 10), torch.randn(3, 6)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.k, self.q, self.v = nn.Linear(10, 8, bias=False), nn.Linear(6, 8), nn.Linear(8, 1, bias=False)
        self.cell = nn.GRUCell(10, 6)

    def forward(self, states, h):
        for _ in range(3):
            a = torch.softmax(self.v(torch.tanh(self.k(states) + self.q(h)[:, None])).squeeze(-1), -1)
            h = self.cell(torch.einsum("bt,btd->bd", a, states), h)
        return h
== cbam | attention over channels and over places | cbr | torch.randn(2, 8, 9, 9)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = cbr(8, 16)
        self.mlp, self.conv = nn.Sequential(nn.Linear(16, 4), nn.ReLU(), nn.Linear(4, 16)), nn.Conv2d(2, 1, 7, padding=3, bias=False)

    def forward(self, x):
        x = self.a(x)
        c = self.mlp(x.mean((2, 3))) + self.mlp(x.amax((2, 3)))
        x = x * torch.sigmoid(c)[:, :, None, None]
        s = torch.cat([x.mean(1, keepdim=True), x.max(1, keepdim=True)[0]], 1)
        return x * torch.sigmoid(self.conv(s))
== deeplab | dilated branches side by side, and a whole-picture branch | cbr | torch.randn(1, 8, 14, 14)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.b = nn.ModuleList([nn.Conv2d(8, 6, 1), *[nn.Conv2d(8, 6, 3, padding=r, dilation=r) for r in (2, 4, 6)]])
        self.pool, self.last = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(8, 6, 1), nn.ReLU()), cbr(30, 5, 1)

    def forward(self, x):
        parts = [F.relu(b(x)) for b in self.b]
        parts.append(F.interpolate(self.pool(x), size=x.shape[2:], mode="bilinear", align_corners=False))
        return F.interpolate(self.last(torch.cat(parts, 1)), scale_factor=2, mode="bilinear", align_corners=False)
== fpn | a pyramid of features, top down | cbr | torch.randn(1, 3, 24, 24)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = cbr(3, 8, s=2), cbr(8, 12, s=2), cbr(12, 16, s=2)
        self.l = nn.ModuleList([nn.Conv2d(i, 10, 1) for i in (8, 12, 16)])
        self.o = nn.ModuleList([nn.Conv2d(10, 10, 3, padding=1) for _ in range(3)])

    def forward(self, x):
        a = self.a(x)
        b = self.b(a)
        c = self.c(b)
        p = self.l[2](c)
        q = self.l[1](b) + F.interpolate(p, scale_factor=2, mode="nearest")
        r = self.l[0](a) + F.interpolate(q, scale_factor=2, mode="nearest")
        return self.o[0](r), self.o[1](q), self.o[2](p)
== hourglass | two resolutions that exchange, as HRNet does | cbr | torch.randn(1, 4, 12, 12)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.h, self.l = cbr(4, 6), cbr(4, 8, s=2)
        self.hl, self.lh = nn.Conv2d(6, 8, 3, 2, 1), nn.Conv2d(8, 6, 1)
        self.h2, self.l2 = cbr(6, 6), cbr(8, 8)

    def forward(self, x):
        h, l = self.h(x), self.l(x)
        h, l = F.relu(h + F.interpolate(self.lh(l), scale_factor=2)), F.relu(l + self.hl(h))
        return self.h2(h), self.l2(l)
== espcn | super resolution by a pixel shuffle | | torch.randn(1, 1, 10, 10)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Conv2d(1, 12, 5, padding=2), nn.Conv2d(12, 8, 3, padding=1), nn.Conv2d(8, 9, 3, padding=1)

    def forward(self, x):
        return torch.sigmoid(F.pixel_shuffle(self.c(torch.tanh(self.b(torch.tanh(self.a(x))))), 3))
== edsr | residual blocks without norms, scaled | | torch.randn(1, 3, 10, 10)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Conv2d(3, 12, 3, padding=1)
        self.body = nn.ModuleList([nn.Sequential(nn.Conv2d(12, 12, 3, padding=1), nn.ReLU(), nn.Conv2d(12, 12, 3, padding=1)) for _ in range(3)])
        self.up, self.tail = nn.Conv2d(12, 48, 3, padding=1), nn.Conv2d(12, 3, 3, padding=1)

    def forward(self, x):
        y = z = self.head(x)
        for b in self.body:
            z = z + 0.1 * b(z)
        return self.tail(F.pixel_shuffle(self.up(z + y), 2))
== generator | transposed convolutions with skips and tanh, and its judge | | torch.randn(2, 12)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(12, 16 * 3 * 3)
        self.g = nn.Sequential(nn.BatchNorm2d(16), nn.ConvTranspose2d(16, 12, 4, 2, 1), nn.BatchNorm2d(12), nn.LeakyReLU(0.2),
                               nn.ConvTranspose2d(12, 6, 3, 2, 1, output_padding=1), nn.InstanceNorm2d(6, affine=True), nn.ReLU(), nn.ConvTranspose2d(6, 3, 3, 1, 1), nn.Tanh())
        self.d = nn.Sequential(nn.Conv2d(3, 8, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(8, 1, 6))

    def forward(self, z):
        x = self.g(self.l(z).view(-1, 16, 3, 3))
        return x, self.d(x).flatten()
== stylegan | a convolution whose weights a style scales and a norm restores | | torch.randn(2, 6, 8, 8), torch.randn(2, 10)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.s = nn.Parameter(torch.randn(8, 6, 3, 3) * 0.2), nn.Linear(10, 6)

    def forward(self, x, z):
        w = self.w[None] * (self.s(z) + 1)[:, None, :, None, None]
        w = w * torch.rsqrt(w.pow(2).sum((2, 3, 4), keepdim=True) + 1e-8)
        y = F.conv2d(x.reshape(1, 12, 8, 8), w.reshape(16, 6, 3, 3), padding=1, groups=2)
        return F.leaky_relu(y.reshape(2, 8, 8, 8), 0.2)
== textcnn | embeddings, windows of three widths, the largest of each | | torch.randint(0, 40, (3, 14))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(40, 12)
        self.c, self.o = nn.ModuleList([nn.Conv1d(12, 8, k) for k in (2, 3, 4)]), nn.Linear(24, 5)

    def forward(self, t):
        x = self.e(t).transpose(1, 2)
        return self.o(torch.cat([F.relu(c(x)).max(-1).values for c in self.c], 1))
== dlrm | embeddings, a tower, products of all pairs | | torch.randn(4, 6), torch.randint(0, 20, (4, 3))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.ModuleList([nn.Embedding(20, 8) for _ in range(3)])
        self.bottom, self.top = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 8), nn.ReLU()), nn.Sequential(nn.Linear(14, 16), nn.ReLU(), nn.Linear(16, 1))
        i, j = torch.tril_indices(4, 4, -1)
        self.register_buffer("i", i)
        self.register_buffer("j", j)

    def forward(self, x, c):
        x = self.bottom(x)
        t = torch.stack([x, *[e(c[:, k]) for k, e in enumerate(self.e)]], 1)
        z = torch.bmm(t, t.transpose(1, 2))
        return torch.sigmoid(self.top(torch.cat([x, z[:, self.i, self.j]], 1)))
== deepfm | factorization beside a perceptron | | torch.randint(0, 30, (5, 4))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.l = nn.Embedding(30, 6), nn.Embedding(30, 1)
        self.m = nn.Sequential(nn.Linear(24, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, c):
        v = self.e(c)
        fm = 0.5 * (v.sum(1).pow(2) - v.pow(2).sum(1)).sum(1, keepdim=True)
        return torch.sigmoid(self.l(c).sum(1) + fm + self.m(v.flatten(1)))
== pointnet | a perceptron for every point, the largest over points | | torch.randn(2, 3, 20)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.t = nn.Sequential(nn.Conv1d(3, 16, 1), nn.BatchNorm1d(16), nn.ReLU())
        self.f, self.c = nn.Linear(16, 9), nn.Sequential(nn.Conv1d(3, 16, 1), nn.BatchNorm1d(16), nn.ReLU(), nn.Conv1d(16, 24, 1))
        self.o = nn.Sequential(nn.Linear(24, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Dropout(0.3), nn.Linear(12, 4))

    def forward(self, x):
        m = self.f(self.t(x).max(2)[0]).view(-1, 3, 3) + torch.eye(3, device=x.device)
        x = torch.bmm(x.transpose(2, 1), m).transpose(2, 1)
        return F.log_softmax(self.o(self.c(x).max(2)[0]), 1)
== gcn | graph convolutions with a given adjacency | | torch.randn(9, 8), torch.rand(9, 9)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 12), nn.Linear(12, 4)

    def forward(self, x, adj):
        adj = adj + torch.eye(9, device=x.device)
        d = adj.sum(1).rsqrt()
        adj = d[:, None] * adj * d[None]
        return F.log_softmax(adj @ self.b(F.relu(adj @ self.a(x))), 1)
== gat | graph attention of two heads | | torch.randn(8, 6), torch.rand(8, 8)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.l, self.r = nn.Linear(6, 10, bias=False), nn.Parameter(torch.randn(2, 5)), nn.Parameter(torch.randn(2, 5))

    def forward(self, x, adj):
        h = self.w(x).view(8, 2, 5)
        e = F.leaky_relu((h * self.l).sum(-1)[:, None] + (h * self.r).sum(-1)[None], 0.2)
        a = torch.softmax(e.masked_fill((adj < 0.4)[..., None], -1e9), 1)
        return F.elu(torch.einsum("ijh,jhd->ihd", a, h).flatten(1))
== highway | gated layers that carry | | torch.randn(6, 20)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.h, self.t = nn.ModuleList([nn.Linear(20, 20) for _ in range(4)]), nn.ModuleList([nn.Linear(20, 20) for _ in range(4)])

    def forward(self, x):
        for h, t in zip(self.h, self.t):
            g = torch.sigmoid(t(x))
            x = g * F.relu(h(x)) + (1 - g) * x
        return x
== siren | sines of coordinates | | torch.rand(40, 2)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.ModuleList([nn.Linear(2, 24), nn.Linear(24, 24), nn.Linear(24, 24)])
        self.o = nn.Linear(24, 3)

    def forward(self, x):
        for l in self.l:
            x = torch.sin(5.0 * l(x))
        return self.o(x)
== nerf | frequencies of positions, a skip, two heads | | torch.randn(18, 3), torch.randn(18, 3)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(27, 24), nn.Linear(24 + 27, 24)
        self.s, self.f, self.c1, self.c2 = nn.Linear(24, 1), nn.Linear(24, 24), nn.Linear(24 + 15, 12), nn.Linear(12, 3)

    def encode(self, x, n):
        parts = [x]
        for k in range(n):
            parts += [torch.sin(2.0**k * x), torch.cos(2.0**k * x)]
        return torch.cat(parts, -1)

    def forward(self, x, d):
        e = self.encode(x, 4)
        h = F.relu(self.b(torch.cat([F.relu(self.a(e)), e], -1)))
        c = F.relu(self.c1(torch.cat([self.f(h), self.encode(d, 2)], -1)))
        return torch.cat([torch.sigmoid(self.c2(c)), F.relu(self.s(h))], -1)
== tcn | causal residual convolutions, weights normed | | torch.randn(2, 6, 20)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.ModuleList([nn.utils.weight_norm(nn.Conv1d(i, 8, 3, dilation=d, padding=2 * d)) for i, d in ((6, 1), (8, 2), (8, 4))])
        self.s, self.o = nn.Conv1d(6, 8, 1), nn.Linear(8, 3)

    def forward(self, x):
        for k, c in enumerate(self.a):
            y = F.relu(c(x)[..., : -2 * 2**k])
            x = F.relu(y + (self.s(x) if k == 0 else x))
        return self.o(x[..., -1])
== crnn | convolutions, then both directions over columns | cbr | torch.randn(2, 1, 16, 24)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Sequential(cbr(1, 8), nn.MaxPool2d(2), cbr(8, 12), nn.MaxPool2d((4, 2)))
        self.r, self.o = nn.LSTM(24, 10, bidirectional=True), nn.Linear(20, 7)

    def forward(self, x):
        y = self.c(x)
        b, c, h, w = y.shape
        y, _ = self.r(y.permute(3, 0, 1, 2).reshape(w, b, c * h))
        return F.log_softmax(self.o(y), -1)
== conformer | a feed-forward, attention, and a gated convolution | Attend | torch.randn(2, 12, 16)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = nn.ModuleList([nn.LayerNorm(16) for _ in range(4)])
        self.f, self.attend = nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 16)), Attend(16, 2)
        self.p, self.d, self.b, self.q = nn.Conv1d(16, 32, 1), nn.Conv1d(16, 16, 5, padding=2, groups=16), nn.BatchNorm1d(16), nn.Conv1d(16, 16, 1)

    def forward(self, x):
        x = x + 0.5 * self.f(self.n[0](x))
        x = x + self.attend(self.n[1](x))
        y = F.glu(self.p(self.n[2](x).transpose(1, 2)), 1)
        return self.n[3](x + self.q(F.silu(self.b(self.d(y)))).transpose(1, 2))
== linear_attention | attention by feature maps, no softmax | | torch.randn(2, 10, 16)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(16, 16) for _ in range(4))

    def forward(self, x):
        q, k, v = (f(x).view(2, 10, 2, 8).transpose(1, 2) for f in (self.q, self.k, self.v))
        q, k = F.elu(q) + 1, F.elu(k) + 1
        y = torch.einsum("bhld,bhde->bhle", q, torch.einsum("bhld,bhle->bhde", k, v))
        y = y / (torch.einsum("bhld,bhd->bhl", q, k.sum(2))[..., None] + 1e-6)
        return self.o(y.transpose(1, 2).reshape(2, 10, 16))
== retention | products decayed by distance, normed by groups | | torch.randn(2, 9, 16)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.g, self.o, self.n = nn.Linear(16, 48, bias=False), nn.Linear(16, 16, bias=False), nn.Linear(16, 16, bias=False), nn.GroupNorm(2, 16)

    def forward(self, x):
        q, k, v = (y.view(2, 9, 2, 8).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
        t = torch.arange(9, device=x.device)
        d = (t[:, None] - t[None]).float()
        g = 1 - 2.0 ** (-5 - torch.arange(2, device=x.device).float())
        m = torch.where(d >= 0, g[:, None, None] ** d.clamp(min=0), torch.zeros_like(d))
        y = ((q @ k.transpose(-1, -2) / 8**0.5) * m @ v).transpose(1, 2).reshape(18, 16)
        return self.o(F.silu(self.g(x)) * self.n(y).view(2, 9, 16))
== perceiver | a few latents that attend to many inputs, then to themselves | Attend | torch.randn(2, 20, 12)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.z, self.n1, self.n2 = nn.Parameter(torch.randn(4, 16)), nn.LayerNorm(12), nn.LayerNorm(16)
        self.q, self.kv, self.attend, self.o = nn.Linear(16, 16), nn.Linear(12, 32), Attend(16, 2), nn.Linear(16, 5)

    def forward(self, x):
        k, v = self.kv(self.n1(x)).chunk(2, -1)
        q = self.q(self.n2(self.z)).expand(2, -1, -1)
        z = self.z + F.softmax(q @ k.mT / 4, -1) @ v
        return self.o((z + self.attend(z)).mean(1))
== coatnet | convolutions, then attention with a table of positions | cbr Inverted | torch.randn(2, 8, 8, 8)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m, self.qkv, self.t = Inverted(8, 16, 2, squeeze=True), nn.Linear(16, 48), nn.Parameter(torch.randn(2, 49))
        c = torch.stack(torch.meshgrid(torch.arange(4), torch.arange(4), indexing="ij")).flatten(1)
        d = c[:, :, None] - c[:, None] + 3
        self.register_buffer("i", d[0] * 7 + d[1])

    def forward(self, x):
        x = self.m(x).flatten(2).transpose(1, 2)
        q, k, v = self.qkv(x).view(2, 16, 3, 2, 8).permute(2, 0, 3, 1, 4)
        a = (q @ k.transpose(-1, -2) * 8**-0.5 + self.t[:, self.i]).softmax(-1)
        return x + (a @ v).transpose(1, 2).reshape(2, 16, 16)
== ghost | half of the channels made cheaply from the other half | cbr | torch.randn(2, 8, 10, 10)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = cbr(8, 8, 1), cbr(8, 8, 3, g=8)
        self.c, self.d = cbr(16, 8, 1, act=nn.Identity), cbr(8, 8, 3, g=8, act=nn.Hardswish)

    def forward(self, x):
        y = self.a(x)
        y = self.c(torch.cat([y, self.b(y)], 1))
        return x + torch.cat([y[:, :4], self.d(y)[:, :4]], 1)
== unet3d | volumes, down and up, with instance norms | | torch.randn(1, 2, 8, 8, 8)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Sequential(nn.Conv3d(2, 6, 3, padding=1), nn.InstanceNorm3d(6), nn.LeakyReLU(0.01)), nn.Sequential(nn.Conv3d(6, 12, 3, 2, 1), nn.InstanceNorm3d(12), nn.LeakyReLU(0.01))
        self.u, self.o = nn.ConvTranspose3d(12, 6, 2, 2), nn.Conv3d(12, 3, 1)

    def forward(self, x):
        x = self.a(x)
        return self.o(torch.cat([x, self.u(self.b(x))], 1)).softmax(1)
== siamese | one tower twice, the distance between both | | torch.randn(2, 1, 12, 12), torch.randn(2, 1, 12, 12)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.t = nn.Sequential(nn.Conv2d(1, 6, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(72, 10))
        self.o = nn.Linear(10, 1)

    def forward(self, x, y):
        a, b = F.normalize(self.t(x), dim=1), F.normalize(self.t(y), dim=1)
        return torch.sigmoid(self.o((a - b).abs())), F.pairwise_distance(a, b)
== rwkv | a token shift and gates, a running sum by steps | | torch.randn(2, 6, 12)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.n, self.m = nn.LayerNorm(12), nn.Parameter(torch.rand(3, 12))
        self.k, self.v, self.r, self.o = (nn.Linear(12, 12, bias=False) for _ in range(4))
        self.w, self.u = nn.Parameter(torch.rand(12)), nn.Parameter(torch.rand(12))

    def forward(self, x):
        y = self.n(x)
        p = F.pad(y, (0, 0, 1, -1))
        k, v, r = (f(y * m + p * (1 - m)) for f, m in zip((self.k, self.v, self.r), self.m))
        a = b = torch.zeros_like(k[:, 0])
        out = []
        for t in range(6):
            e = torch.exp(self.u + k[:, t])
            out.append((a + e * v[:, t]) / (b + e))
            a, b = torch.exp(-self.w) * a + torch.exp(k[:, t]) * v[:, t], torch.exp(-self.w) * b + torch.exp(k[:, t])
        return x + self.o(torch.sigmoid(r) * torch.stack(out, 1))
== diffusion | a step's embedding scales the norms of a residual block | | torch.randn(2, 8, 8, 8), torch.randint(0, 1000, (2,))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.t, self.n1, self.n2 = nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 32)), nn.GroupNorm(4, 8), nn.GroupNorm(4, 16)
        self.c1, self.c2, self.s = nn.Conv2d(8, 16, 3, padding=1), nn.Conv2d(16, 16, 3, padding=1), nn.Conv2d(8, 16, 1)

    def forward(self, x, t):
        f = torch.exp(-math.log(10000.0) * torch.arange(8, device=x.device) / 8)
        a = t[:, None].float() * f[None]
        scale, shift = self.t(torch.cat([a.cos(), a.sin()], -1))[:, :, None, None].chunk(2, 1)
        h = self.c1(F.silu(self.n1(x)))
        h = self.n2(h) * (1 + scale) + shift
        return self.s(x) + self.c2(F.silu(h))
'''
