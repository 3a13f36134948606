"""The planner tells what the plan counts, at every setting."""

from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from course_lib.memory import bytes_text
from course_lib.training.planning import Layout, Model, plan
from course_lib.widgets.planner import BATCH, MODELS, POWERS, SEQUENCE, SHORT_POWERS, draw, planner

SVG = "{http://www.w3.org/2000/svg}"
settings_of = st.fixed_dictionaries(
    {
        "size": st.sampled_from(list(MODELS)),
        "data": st.sampled_from(POWERS),
        "tensor": st.sampled_from(SHORT_POWERS),
        "pipeline": st.sampled_from(SHORT_POWERS),
        "expert": st.sampled_from(POWERS[:7]),
        "microbatches": st.sampled_from(POWERS),
        "checkpointing": st.booleans(),
    }
)


@given(settings_of)
def test_every_setting_gives_a_sound_picture_and_finite_words(chosen):
    image, text = draw(**chosen)
    root = ElementTree.fromstring(image)
    assert root.get("role") == "img"
    assert root.findtext(f"{SVG}desc") == text
    assert "nan" not in image + text
    assert "inf" not in text


def test_the_words_carry_the_numbers_of_the_plan():
    found = plan(Model(*MODELS["6.7 billion"], SEQUENCE, BATCH), Layout(data=4, tensor=2))
    text = planner().describe(tensor=2)
    assert bytes_text(found.memory) in text
    assert bytes_text(found.traffic) in text


def test_a_device_alone_sends_nothing_and_a_pipeline_waits():
    assert "Nothing is sent." in planner().describe(data=1)
    assert "waits 47% of the time" in planner().describe(data=1, pipeline=8, microbatches=8)


def test_a_setting_that_cannot_be_shared_is_lowered_and_told():
    assert "was lowered" in planner().describe(data=256, expert=4)
