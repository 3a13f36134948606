"""The training loop: it learns, it shortens, it says what goes wrong."""

import itertools

import pytest
import torch
from IPython.display import HTML
from torch import nn

from course_lib.training import loop
from course_lib.training.loop import forever, train


class Line(nn.Module):
    """Logits of two classes from one number."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(1, 2)

    def forward(self, x):
        return self.linear(x)


def sign_batch():
    x = torch.linspace(-1, 1, 8).reshape(4, 2, 1)
    return x, (x.squeeze(-1) > 0).long()


@pytest.fixture(autouse=True)
def full_length(monkeypatch):
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
    monkeypatch.delenv("COURSE_QUICK", raising=False)


def test_the_loss_falls_and_the_first_one_is_that_of_the_untrained_model():
    expected = torch.nn.functional.cross_entropy(Line()(sign_batch()[0]).flatten(0, 1), sign_batch()[1].flatten())
    history = train(Line(), forever(sign_batch), steps=20, learning_rate=0.1)
    assert len(history) == 20
    assert history[0] == pytest.approx(expected.item(), rel=1e-6)
    assert history[-1] < history[0] / 2


def test_a_schedule_scales_the_rate_of_every_step():
    asked = []

    def never(done: float) -> float:
        asked.append(done)
        return 0.0

    history = train(Line(), forever(sign_batch), steps=4, learning_rate=0.1, schedule=never)
    assert asked == [0, 0.25, 0.5, 0.75]
    assert len(set(history)) == 1
    constant = train(Line(), forever(sign_batch), steps=4, learning_rate=0.1, schedule=lambda done: 1.0)
    assert constant == train(Line(), forever(sign_batch), steps=4, learning_rate=0.1)


def test_a_model_may_return_its_weights_as_well():
    class WithWeights(Line):
        def forward(self, x):
            return self.linear(x), torch.ones(1)

    assert train(WithWeights(), forever(sign_batch), 3, 0.1) == train(Line(), forever(sign_batch), 3, 0.1)


def test_outside_a_notebook_one_plain_line_tells_the_result(capsys):
    history = train(Line(), forever(sign_batch), steps=3, learning_rate=0.1)
    printed = capsys.readouterr()
    assert printed.out == f"3 steps, loss {history[0]:.3g} → {history[-1]:.3g}\n"
    assert printed.err == ""


def test_a_grading_run_takes_a_few_steps(monkeypatch, capsys):
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    assert len(train(Line(), forever(sign_batch), steps=500, learning_rate=0.1, short=2)) == 2
    assert capsys.readouterr().out.startswith("2 steps, loss ")


def test_a_run_that_is_shorter_than_the_short_one_stays_as_it_is(monkeypatch):
    monkeypatch.setenv("COURSE_QUICK", "1")
    assert len(train(Line(), forever(sign_batch), steps=1, learning_rate=0.1)) == 1


def test_in_a_notebook_a_labeled_bar_moves_to_its_end(monkeypatch):
    shown = []

    class Handle:
        def display(self, html: HTML):
            shown.append(html.data)

        update = display

    monkeypatch.setattr(loop, "interactive", lambda: True)
    monkeypatch.setattr(loop, "DisplayHandle", Handle)
    history = train(Line(), forever(sign_batch), steps=200, learning_rate=0.1)
    assert len(shown) <= loop.REDRAWS + 2
    assert 'value="100" max="200" aria-label="training"' in "".join(shown)
    assert 'value="200"' in shown[-1]
    assert f"{history[-1]:.3g}" in shown[-1]


def test_a_loss_that_is_not_finite_stops_the_run():
    with pytest.raises(ValueError, match=r"The loss became nan at step 0; try a lower `learning_rate`"):
        train(Line(), forever(sign_batch), 5, 0.1, loss=lambda model, batch: model(batch[0]).sum() * torch.nan)


def test_batches_that_run_out_are_named():
    with pytest.raises(ValueError, match="`batches` ended after 2 of 5 steps"):
        train(Line(), itertools.islice(forever(sign_batch), 2), steps=5, learning_rate=0.1)
