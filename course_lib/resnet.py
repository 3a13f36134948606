"""The residual block of image networks: norms inside the branch, a sum, and a bend after it; no norm follows the sum.

It is what document B compares the transformer's residual connections with.
"""

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

KERNEL = 3  # He et al. 2016, fig. 5: two convolutions of 3 × 3


class ResNetBlock(nn.Module):
    """Add what two convolutions, each with a batch norm, make of x, and bend: relu(x + branch(x)).

    A block whose last gain is 0 returns relu(x).

    Source: He et al. 2016, *Deep Residual Learning for Image Recognition*, §3.4 and fig. 2, arXiv 1512.03385. The
    paper also has blocks that change the width or the size of the image; here both stay.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv_1 = nn.Conv2d(channels, channels, KERNEL, padding=KERNEL // 2, bias=False)
        self.norm_1 = nn.BatchNorm2d(channels)
        self.conv_2 = nn.Conv2d(channels, channels, KERNEL, padding=KERNEL // 2, bias=False)
        self.norm_2 = nn.BatchNorm2d(channels)

    def forward(self, x: Float[Tensor, "batch channel row column"]) -> Float[Tensor, "batch channel row column"]:
        """Pass images through branch and skip path."""
        hidden = F.relu(self.norm_1(self.conv_1(x)))
        return F.relu(x + self.norm_2(self.conv_2(hidden)))
