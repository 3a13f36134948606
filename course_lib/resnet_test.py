"""The image network's residual block: its formula, its skip path, and what its norm depends on."""

import torch

from course_lib.resnet import ResNetBlock

TOLERANCE = 1e-12


def block_and_images():
    torch.manual_seed(0)
    return ResNetBlock(3).double(), torch.randn(4, 3, 5, 6, dtype=torch.float64)


def normalized(x):
    mean = x.mean((0, 2, 3), keepdim=True)
    return (x - mean) / (((x - mean) ** 2).mean((0, 2, 3), keepdim=True) + 1e-5).sqrt()


def convolved(x, weight):
    """Sum shifted images, one for each place of the kernel."""
    padded = torch.nn.functional.pad(x, (1, 1, 1, 1))
    rows, columns = x.shape[-2:]
    return sum(
        torch.einsum("oc,bcij->boij", weight[:, :, i, j], padded[:, :, i : i + rows, j : j + columns])
        for i in range(3)
        for j in range(3)
    )


def test_the_norms_stand_in_the_branch_and_the_sum_is_only_bent():
    block, x = block_and_images()
    hidden = normalized(convolved(x, block.conv_1.weight)).clamp(min=0)
    wanted = (x + normalized(convolved(hidden, block.conv_2.weight))).clamp(min=0)
    torch.testing.assert_close(block(x), wanted, rtol=0, atol=TOLERANCE)


def test_with_a_last_gain_of_zero_the_skip_path_is_left():
    block, x = block_and_images()
    torch.nn.init.zeros_(block.norm_2.weight)
    assert torch.equal(block(x), x.clamp(min=0))


def test_in_training_one_image_depends_on_the_others_and_in_use_it_does_not():
    block, x = block_and_images()
    assert not torch.allclose(block(x)[:1], block(x[:1]))
    block.eval()
    torch.testing.assert_close(block(x)[:1], block(x[:1]), rtol=0, atol=TOLERANCE)
