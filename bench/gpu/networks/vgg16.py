"""VGG-16, inference: 3x3 convolutions with biases, 224x224 images."""
import torch
import torch.nn as nn

BATCH, SIZE, CLASSES = 10, 224, 1000


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        layers, channels = [], 3
        for results in (64, 64, "M", 128, 128, "M", 256, 256, 256, "M", 512, 512, 512, "M", 512, 512, 512, "M"):
            if results == "M":
                layers.append(nn.MaxPool2d(2, 2))
                continue
            layers += [nn.Conv2d(channels, results, 3, padding=1), nn.ReLU(inplace=True)]
            channels = results
        side = SIZE // 32
        self.features = nn.Sequential(*layers)
        self.head = nn.Sequential(nn.Linear(512 * side * side, 4096), nn.ReLU(), nn.Dropout(), nn.Linear(4096, 4096), nn.ReLU(),
                                  nn.Dropout(), nn.Linear(4096, CLASSES))
        for m in self.modules():  # or little of the image is left of the results, beside biases
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, nonlinearity="relu")
        self.eval()

    def forward(self, x):
        return self.head(torch.flatten(self.features(x), 1))


def get_inputs():
    return [torch.randn(BATCH, 3, SIZE, SIZE)]


def get_init_inputs():
    return []
