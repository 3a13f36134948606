"""The committed runs of the character models: complete, falling, and better than counting by a wide margin."""

import itertools
import math

import pytest

from course_lib import results
from course_lib.documentation_text import documentation_text
from course_lib.model_sizes import model_parameter_count

NEAR = 0.05  # nats; versions of Python differ a little in their documentation
GPT_BAND, BERT_BAND = (1.1, 1.4), (1.2, 1.6)  # nats per character, held out
MARGIN = {"character_gpt": 0.9, "character_bert": 0.3}  # nats below what counting pairs reaches
RUNS = {"character_gpt": "bigram", "character_bert": "neighbors"}


@pytest.fixture(params=RUNS)
def name(request):
    return request.param


def test_the_held_out_loss_lies_in_its_band():
    for name, (low, high) in (("character_gpt", GPT_BAND), ("character_bert", BERT_BAND)):
        assert low < results.load(name)["held_out"] < high


def test_the_model_beats_counting_by_a_wide_margin(name):
    run = results.load(name)
    assert run["held_out"] < run[RUNS[name]] - MARGIN[name]
    assert run["bigram"] < run["single_characters"] < run["uniform"]


def test_the_curve_goes_through_all_steps_and_ends_where_it_says(name):
    run = results.load(name)
    steps, train, held_out = zip(*run["curve"], strict=True)
    assert steps[0] == 0
    assert steps[-1] == run["plan"]["steps"]
    assert list(steps) == sorted(set(steps))
    assert abs(held_out[0] - run["uniform"]) < 0.4  # a fresh model guesses nearly evenly
    assert held_out[-1] == run["held_out"] < min(held_out[: len(held_out) // 2])
    assert all(map(math.isfinite, itertools.chain(train, held_out)))


def test_the_text_is_still_nearly_the_one_that_was_measured(name):
    text, run = documentation_text(), results.load(name)
    assert abs(math.log(text.vocab_size) - run["uniform"]) < NEAR


def test_the_size_is_what_the_plan_gives():
    run = results.load("character_gpt")
    plan, vocab = run["plan"], round(math.exp(run["uniform"]))
    wanted = model_parameter_count(vocab, plan["length"], plan["d_model"], plan["num_layers"], 4 * plan["d_model"])
    assert run["parameters"] == wanted


def test_samples_start_with_one_prompt_and_differ_by_temperature():
    samples = results.load("character_gpt")["samples"]
    texts = [sample["text"] for sample in samples]
    assert len(set(texts)) == len(texts)
    assert {text[:4] for text in texts} == {"The "}
    assert min(sample["temperature"] for sample in samples) == 0
