"""ResNet-18, inference: basic blocks with batch norms, 224x224 images."""
import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH, SIZE, CLASSES, WIDTH = 8, 224, 1000, 64


class Block(nn.Module):
    def __init__(self, channels, results, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, results, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(results)
        self.conv2 = nn.Conv2d(results, results, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(results)
        self.short = None
        if stride > 1 or channels != results:
            self.short = nn.Sequential(nn.Conv2d(channels, results, 1, stride, bias=False), nn.BatchNorm2d(results))

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + (x if self.short is None else self.short(x)))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, WIDTH, 7, 2, 3, bias=False), nn.BatchNorm2d(WIDTH), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        blocks, channels = [], WIDTH
        for results, stride in ((WIDTH, 1), (2 * WIDTH, 2), (4 * WIDTH, 2), (8 * WIDTH, 2)):
            blocks += [Block(channels, results, stride), Block(results, results, 1)]
            channels = results
        self.blocks, self.head = nn.Sequential(*blocks), nn.Linear(channels, CLASSES)
        for m in self.modules():  # or little of the image is left of the results, beside biases
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, nonlinearity="relu")
        self.eval()

    def forward(self, x):
        return self.head(F.adaptive_avg_pool2d(self.blocks(self.stem(x)), 1).flatten(1))


def get_inputs():
    return [torch.randn(BATCH, 3, SIZE, SIZE)]


def get_init_inputs():
    return []
