"""Whole models: published numbers, and the sum over modules that really exist."""

import pytest
import torch
from torch import nn

from course_lib.model_sizes import model_parameter_count
from course_lib.models.bert import BERT
from course_lib.models.gpt import GPT

GPT_3 = 175e9
ROUNDING = 0.005  # the paper gives three digits


def parameters(model: nn.Module) -> int:
    return sum(weight.numel() for weight in model.parameters())


@pytest.mark.parametrize(
    ("sizes", "published"),
    [
        ((50257, 1024, 768, 12, 3072), 124_439_808),
        ((50257, 1024, 1024, 24, 4096), 354_823_168),
        ((50257, 1024, 1600, 48, 6400), 1_557_611_200),
        ((30522, 512, 768, 12, 3072, 2, True, False, True), 109_482_240),
        ((30522, 512, 1024, 24, 4096, 2, True, False, True), 335_141_888),
    ],
    ids=["GPT-2", "GPT-2 medium", "GPT-2 XL", "BERT-base", "BERT-large"],
)
def test_published_counts(sizes, published):
    assert model_parameter_count(*sizes) == published


def test_gpt_3_has_175_billion():
    assert abs(model_parameter_count(50257, 2048, 12288, 96, 4 * 12288) / GPT_3 - 1) < ROUNDING


@pytest.mark.parametrize("num_layers", [0, 1, 3])
def test_it_counts_the_courses_gpt(num_layers):
    model = GPT(29, 12, num_heads=3, num_layers=num_layers, max_length=7)
    assert model_parameter_count(29, 7, 12, num_layers, 48) == parameters(model)


def test_it_counts_the_courses_bert_without_the_heads_of_pretraining():
    model = BERT(29, 12, num_heads=3, num_layers=2, max_length=7, segments=5)
    heads = parameters(model.token_head) + model.token_bias.numel() + parameters(model.pair_head)
    wanted = model_parameter_count(29, 7, 12, 2, 48, segments=5, embedding_norm=True, final_norm=False, pooler=True)
    assert wanted == parameters(model) - heads


def test_it_counts_a_framework_stack_of_any_hidden_width():
    layer = nn.TransformerEncoderLayer(12, 3, 31, device="meta")
    stack = nn.TransformerEncoder(layer, 4, norm=nn.LayerNorm(12, device="meta"), enable_nested_tensor=False)
    with torch.device("meta"):
        embeddings = parameters(nn.Embedding(29, 12)) + parameters(nn.Embedding(7, 12))
    assert model_parameter_count(29, 7, 12, 4, 31) == embeddings + parameters(stack)


@pytest.mark.parametrize(
    ("sizes", "name"),
    [
        ((0, 7, 12, 2, 48), "vocab_size"),
        ((29, -1, 12, 2, 48), "max_length"),
        ((29, 7, 12, 2, 0), "d_ff"),
    ],
)
def test_bad_sizes_are_refused(sizes, name):
    with pytest.raises(ValueError, match=f"`{name}`"):
        model_parameter_count(*sizes)
