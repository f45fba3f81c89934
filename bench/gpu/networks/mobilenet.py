"""MobileNet of depthwise separable convolutions, inference, 224x224 images."""
import torch
import torch.nn as nn

BATCH, SIZE, CLASSES = 10, 224, 1000


def layer(channels, results, taps, stride, groups=1):
    return [nn.Conv2d(channels, results, taps, stride, taps // 2, groups=groups, bias=False), nn.BatchNorm2d(results), nn.ReLU()]


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        layers, channels = layer(3, 32, 3, 2), 32
        for results, stride in ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1), (512, 1), (512, 1), (512, 1), (512, 1),
                                (1024, 2), (1024, 1)):
            layers += layer(channels, channels, 3, stride, channels) + layer(channels, results, 1, 1)
            channels = results
        self.layers, self.head = nn.Sequential(*layers), nn.Linear(channels, CLASSES)
        for m in self.modules():  # or little of the image is left of the results, beside biases
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, nonlinearity="relu")
        self.eval()

    def forward(self, x):
        return self.head(self.layers(x).mean((2, 3)))


def get_inputs():
    return [torch.randn(BATCH, 3, SIZE, SIZE)]


def get_init_inputs():
    return []
