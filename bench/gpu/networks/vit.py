"""A vision transformer, inference: 12 blocks of width 384 on patches of 16x16, 224x224 images."""
import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH, SIZE, PATCH, WIDTH, HEADS, BLOCKS, CLASSES = 8, 224, 16, 384, 6, 12, 1000


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.fc1, self.fc2 = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).reshape(b, t, 3, HEADS, d // HEADS).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, d))
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x))))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, PATCH, PATCH)
        self.token = nn.Parameter(torch.randn(1, 1, WIDTH) * 0.02)
        self.place = nn.Parameter(torch.randn(1, (SIZE // PATCH) ** 2 + 1, WIDTH) * 0.02)
        self.blocks, self.norm, self.head = nn.Sequential(*(Block() for _ in range(BLOCKS))), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, CLASSES)
        self.eval()

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.place
        return self.head(self.norm(self.blocks(x))[:, 0])


def get_inputs():
    return [torch.randn(BATCH, 3, SIZE, SIZE)]


def get_init_inputs():
    return []
