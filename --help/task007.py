"""Network 7: vgg: VGG in small."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

def cbr(i, o, k=3, s=1, g=1, act=nn.ReLU):
    return nn.Sequential(nn.Conv2d(i, o, k, s, k // 2, groups=g, bias=False), nn.BatchNorm2d(o), act())


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        layers, i = [], 3
        for o in (8, "M", 12, 12, "M", 16, "M"):
            layers += [nn.MaxPool2d(2, 2)] if o == "M" else [nn.Conv2d(i, o, 3, padding=1), nn.ReLU(inplace=True)]
            i = i if o == "M" else o
        self.features, self.head = nn.Sequential(*layers), nn.Sequential(nn.Linear(64, 20), nn.ReLU(True), nn.Linear(20, 5))

    def forward(self, x):
        return self.head(self.features(x).flatten(1))


class Model(Net):
    def __init__(self):
        super().__init__()
        self.eval()


def get_inputs():
    return [torch.randn(2, 3, 16, 16)]


def get_init_inputs():
    return []
