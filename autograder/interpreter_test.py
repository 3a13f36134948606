"""What the interpreter shows of a program's run over a solution."""

import numpy as np
import pytest
import torch

from autograder.interpreter import run
from autograder.program import Program, build, call
from autograder.values import Generator, Named, Raised, Result


class Scale(torch.nn.Module):
    """Multiply by a learned factor and count the calls."""

    def __init__(self, width: int):
        super().__init__()
        self.linear = torch.nn.Linear(width, width, bias=False)
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        if x.shape[-1] != self.linear.in_features:
            raise ValueError(f"width {x.shape[-1]}")
        return self.linear(x)


WEIGHT = torch.tensor([[2.0, 0.0], [0.0, 3.0]])


def test_a_class_is_built_loaded_called_and_read() -> None:
    program = build(2).load({"linear.weight": WEIGHT}).call(torch.ones(1, 2)).read("calls")
    found = run(program, Scale, {})
    assert found.outcomes[0].tolist() == [[2, 3]]
    assert found.outcomes[1] == 1


def test_steps_go_on_after_a_call_that_raises() -> None:
    found = run(build(2).call(torch.ones(1, 3)).read("calls"), Scale, {})
    assert found.outcomes[0] == Raised("ValueError", "width 3")
    assert found.outcomes[1] == 1


def test_a_class_that_cannot_be_built_ends_the_program() -> None:
    found = run(build("two").call(torch.ones(1, 2)), Scale, {})
    assert len(found.outcomes) == 1
    assert isinstance(found.outcomes[0], Raised)


def test_weights_under_other_names_are_refused() -> None:
    found = run(build(2).load({"layer.weight": WEIGHT}), Scale, {})
    assert "layer.weight" in found.outcomes[0].message


def test_gradients_of_arguments_and_of_parameters_are_observed() -> None:
    program = build(2).load({"linear.weight": WEIGHT}).gradients(torch.ones(1, 2), wrt=(0, "linear.weight"))
    found = run(program, Scale, {})
    assert found.outcomes[0][0].tolist() == [[2, 3]]
    assert found.outcomes[0][1].tolist() == [[1, 1], [1, 1]]


def test_an_argument_without_influence_has_zero_gradient() -> None:
    found = run(
        call(torch.ones(2), torch.ones(3)).gradients(torch.ones(2), torch.ones(3), wrt=(1,)),
        lambda a, b: a * 2,
        {},
    )
    assert found.outcomes[1][0].tolist() == [0, 0, 0]


@pytest.mark.parametrize("make", [np.zeros, torch.zeros], ids=["numpy", "torch"])
def test_an_argument_edited_in_place_is_noticed_by_name(make) -> None:
    def edit(scores, mask):
        scores += 1
        return scores

    found = run(call(make(2), make(2)), edit, {})
    assert found.changed == ("scores",)


def test_every_run_gets_fresh_copies() -> None:
    def edit(scores):
        scores += 1
        return scores

    program = call(np.zeros(1))
    assert run(program, edit, {}).outcomes[0].tolist() == [1]
    assert run(program, edit, {}).outcomes[0].tolist() == [1]


def test_generators_start_anew_in_every_run() -> None:
    program = call(Generator("torch", 7)).call(Generator("numpy", 7))

    def draw(generator):
        return generator.random(2) if isinstance(generator, np.random.Generator) else torch.rand(2, generator=generator)

    first, second = run(program, draw, {}).outcomes, run(program, draw, {}).outcomes
    assert torch.equal(first[0], second[0])
    assert np.array_equal(first[1], second[1])


def test_named_functions_are_counted_and_named_classes_are_built() -> None:
    def twice(x, function, module):
        return module(function(function(x)))

    program = call(torch.ones(1, 2), Named("double"), Named("Scale", (2,), {"linear.weight": WEIGHT}))
    found = run(program, twice, {"double": lambda x: 2 * x, "Scale": Scale})
    assert found.outcomes[0].tolist() == [[8, 12]]
    assert found.calls == {"double": 2, "Scale": 1}


def test_a_result_can_be_an_argument_of_a_later_step() -> None:
    found = run(call(np.ones(2)).call(Result(0)), lambda x: x + 1, {})
    assert found.outcomes[1].tolist() == [3, 3]


def test_products_and_allocations_are_counted_and_expansions_are_not() -> None:
    def product(a, b):
        return (a @ b).transpose(0, 1).expand(4, 2, 3)

    found = run(call(torch.ones(3, 5), torch.ones(5, 2)).counting(), product, {})
    assert found.counts is not None
    assert found.counts.matrix_products == 1
    assert found.counts.allocated_ending_in(3, 2)
    assert found.counts.allocated_ending_in(2, 3)
    assert not found.counts.allocated_ending_in(4, 2, 3)
    assert sorted(found.counts.largest) == [2, 3]


def test_an_exception_names_the_line_of_the_solution() -> None:
    def wrong(x):
        y = x
        return y / np.array(["no"])

    found = run(call(np.ones(2)), wrong, {})
    assert found.outcomes[0].line == 'line 3 of `wrong`, `return y / np.array(["no"])`'


def test_leaving_the_interpreter_is_an_outcome() -> None:
    assert run(call(1), lambda x: exit(), {}).outcomes[0].type_name == "SystemExit"


def test_a_weighted_sum_has_a_gradient_where_a_plain_sum_is_constant() -> None:
    scores = torch.tensor([[0.0, 1.0, 2.0]], dtype=torch.float64)
    program = Program().gradients(scores, wrt=(0,)).gradients(scores, wrt=(0,), weighted=True)
    plain_sum, weighted_sum = (outcome[0] for outcome in run(program, lambda x: x.softmax(-1), {}).outcomes)
    assert plain_sum.abs().max() < 1e-12
    weights = scores.softmax(-1)
    uneven = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64).cos()
    assert torch.allclose(weighted_sum, weights * (uneven - (weights * uneven).sum()))


class Meter:
    """Two parts that share a count."""

    def __init__(self, start: int):
        self.count = start

    def step(self) -> None:
        self.count += 1

    def read(self) -> int:
        return self.count


def test_parts_of_one_named_object_share_it_within_a_run_and_only_there() -> None:
    def stepped(step, read):
        step()
        return read()

    program = call(Named("meter", (5,), part="step"), Named("meter", (5,), part="read"))
    for _ in range(2):
        found = run(program, stepped, {"meter": Meter})
        assert found.outcomes == (6,)
        assert found.calls == {"meter.step": 1, "meter.read": 1}


def test_what_became_of_a_part_can_be_seen_although_nothing_calls_it() -> None:
    class Shelf:
        def __init__(self, first: float) -> None:
            self.books = [torch.tensor([first])]

    program = call(Named("shelf", (2.0,), part="books")).see(Named("shelf", (2.0,), part="books"), "the shelf")
    found = run(program, lambda books: books[0].mul_(3).item(), {"shelf": Shelf})
    assert found.outcomes[0] == 6.0
    assert found.outcomes[1][0].tolist() == [6.0]
    assert program.steps[1].name == "the shelf"


def test_parts_of_objects_with_other_args_do_not_share() -> None:
    def stepped(step, read):
        step()
        return read()

    found = run(call(Named("meter", (5,), part="step"), Named("meter", (8,), part="read")), stepped, {"meter": Meter})
    assert found.outcomes == (8,)


def test_a_weight_that_is_used_twice_is_counted_once() -> None:
    class Tied(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.head = torch.nn.Embedding(7, 3), torch.nn.Linear(3, 7)
            self.head.weight = self.embedding.weight

    assert run(build().count(), Tied, {}).outcomes == (7 * 3 + 7,)


def test_weights_that_take_no_part_in_a_call_are_left_out_where_a_call_is_asked_for() -> None:
    class Forgetful(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.forgotten = torch.nn.Linear(3, 2), torch.nn.Linear(5, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.used(x)

    assert run(build().count().count(torch.ones(1, 3)), Forgetful, {}).outcomes == (3 * 2 + 2 + 5 * 4 + 4, 3 * 2 + 2)


def test_nothing_takes_part_in_a_result_without_gradients() -> None:
    class Cut(torch.nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x).detach()

    assert run(build(3, 2).count(torch.ones(1, 3)), Cut, {}).outcomes == (0,)


def test_counting_what_has_no_parameters_is_an_outcome_too() -> None:
    (outcome,) = run(build().count(), dict, {}).outcomes
    assert isinstance(outcome, Raised)
    assert outcome.message == "dict is not an nn.Module, so it has no parameters to count"
