"""Programs are values: adding a step makes a new one."""

from autograder.program import Program, Step, build, call


def test_adding_a_step_leaves_the_program_as_it_was() -> None:
    first = build(2)
    longer = first.call(3, bias=True).read("weight")
    assert [step.action for step in first.steps] == ["call"]
    assert [step.action for step in longer.steps] == ["call", "call", "read"]
    assert longer.steps[1] == Step("call", args=(3,), kwargs={"bias": True})


def test_building_and_loading_show_nothing_and_a_call_does() -> None:
    program = build(2).load({}).call(3)
    assert [step.observe for step in program.steps] == [False, False, True]
    assert [step.becomes_subject for step in program.steps] == [True, False, False]


def test_counting_is_of_the_whole_program_and_survives_later_steps() -> None:
    assert not call(1).counted
    assert call(1).counting().call(2).counted


def test_the_state_that_is_loaded_is_a_copy_of_the_table() -> None:
    state = {}
    program = Program().load(state)
    state["weight"] = None
    assert program.steps[0].args == ({},)
