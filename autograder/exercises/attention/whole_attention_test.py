"""A mask may be laid on after the softmax, where what is left is shared out anew."""

from autograder import evaluate
from autograder.exercises.attention.whole_attention import mask_after_softmax_and_renormalized


def test_masking_after_the_softmax_is_right_when_renormalized_though_the_hidden_key_is_loud() -> None:
    for seed in range(30):
        verdict = evaluate(mask_after_softmax_and_renormalized, "scaled_dot_product_attention", hidden=True, seed=seed)
        assert verdict.passed, verdict.message
