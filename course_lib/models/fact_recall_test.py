"""The table holds every pair once, and the model reads both tokens of a fact."""

import pytest
import torch
import torch.nn.functional as F

from course_lib.models.fact_recall import FactRecall, fact_table

SUBJECTS, RELATIONS, OBJECTS = 5, 3, 4


def table():
    return fact_table(SUBJECTS, RELATIONS, OBJECTS, torch.Generator().manual_seed(0))


def model():
    torch.manual_seed(0)
    return FactRecall(SUBJECTS, RELATIONS, OBJECTS, d_ff=32)


def test_every_pair_of_subject_and_relation_stands_once_in_the_table():
    tokens, answers = table()
    assert len({tuple(pair) for pair in tokens.tolist()}) == SUBJECTS * RELATIONS == len(answers)
    assert tokens[:, 0].max() < SUBJECTS <= tokens[:, 1].min()
    assert tokens.max() == SUBJECTS + RELATIONS - 1
    assert 0 <= answers.min() <= answers.max() < OBJECTS


def test_the_same_generator_gives_the_same_facts():
    assert all(torch.equal(first, second) for first, second in zip(table(), table(), strict=True))


def test_a_count_below_one_is_refused():
    with pytest.raises(ValueError, match="`relations` must be at least 1, got 0"):
        fact_table(5, 0, 4)


def test_the_answer_depends_on_subject_and_relation():
    tokens = torch.tensor([[0, 5], [1, 5], [0, 6]])
    first, other_subject, other_relation = model()(tokens)
    assert not torch.allclose(first, other_subject)
    assert not torch.allclose(first, other_relation)


def test_what_the_network_reads_leads_to_the_logits():
    recall, (tokens, _) = model(), table()
    mixed = recall.mixed(tokens)
    logits = recall.head(recall.block.norm_2(mixed + recall.block.ffn(mixed)))
    torch.testing.assert_close(logits, recall(tokens))


def test_a_few_steps_store_a_small_table():
    recall, (tokens, answers) = model(), table()
    optimizer = torch.optim.Adam(recall.parameters(), lr=1e-2)
    for _ in range(60):
        optimizer.zero_grad()
        F.cross_entropy(recall(tokens), answers).backward()
        optimizer.step()
    assert (recall(tokens).argmax(-1) == answers).double().mean() == 1
