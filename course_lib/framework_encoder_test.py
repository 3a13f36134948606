"""The framework's stack under a causal mask sees no future, in training and in evaluation."""

import pytest
import torch
from torch import nn

from course_lib.dependence import dependence
from course_lib.framework_encoder import causal_encoder
from course_lib.masks import causal_mask

BATCH, LENGTH, WIDTH = 2, 5, 8
TOLERANCE = 1e-5  # float32 through two layers


@pytest.fixture(params=[False, True], ids=["post-norm", "pre-norm"])
def encoder(request):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(WIDTH, 2, 16, dropout=0.0, batch_first=True, norm_first=request.param)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


def drawn():
    return torch.randn(BATCH, LENGTH, WIDTH, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("training", [True, False])
def test_every_place_gives_what_it_gives_when_nothing_follows(encoder, training):
    encoder.train(training)
    x = drawn()
    with torch.no_grad():
        whole = causal_encoder(encoder, x)
        for length in range(1, LENGTH + 1):
            part = causal_encoder(encoder, x[:, :length])
            torch.testing.assert_close(part, whole[:, :length], rtol=0, atol=TOLERANCE)


def test_outputs_depend_on_the_past_alone(encoder):
    found = dependence(lambda x: causal_encoder(encoder, x[None])[0], drawn()[0])
    assert torch.equal(found, ~causal_mask(LENGTH))
