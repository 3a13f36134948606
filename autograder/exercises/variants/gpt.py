"""Check `GPT` by what holds for every right one: what a place sees, what a fresh model guesses, what it learns."""

from autograder.exercise import Exercise
from autograder.exercises.variants import CHAPTER
from autograder.exercises.variants.gpt_forms import ACCEPTED_FORMS
from autograder.exercises.variants.gpt_readings import (
    beginning_alone,
    counted,
    guesses_evenly,
    knows_places,
    learns_as_many,
    logits_everywhere,
    many_tokens,
    one_token_changed,
    places,
    refuses_what_is_too_long,
    repeated_token,
    says_the_same_of_the_beginning,
    sees_the_past_alone,
    taking_part,
    too_long,
    uses_all_parts,
)
from autograder.exercises.variants.invariants import invariant
from course_lib.models import gpt

exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=gpt.GPT,
    cases=[
        invariant("logits for every place", places, logits_everywhere),
        invariant("a token in the middle is changed", one_token_changed, sees_the_past_alone),
        invariant("the same token at every place", repeated_token, knows_places),
        invariant("what a fresh model guesses", many_tokens, guesses_evenly),
        invariant("the number of parameters", counted, learns_as_many),
        invariant("more tokens than positions", too_long, refuses_what_is_too_long),
        invariant("what takes part", taking_part, uses_all_parts),
        invariant("the beginning of a text alone", beginning_alone, says_the_same_of_the_beginning),
        invariant(
            "one layer, one head", lambda draw: places(draw, num_layers=1, num_heads=1), logits_everywhere, hidden=True
        ),
        invariant(
            "a token is changed, one layer", lambda draw: one_token_changed(draw, 1), sees_the_past_alone, hidden=True
        ),
        invariant("parameters of one layer", lambda draw: counted(draw, 1), learns_as_many, hidden=True),
    ],
)

for form in ACCEPTED_FORMS:
    exercise.alternative(form)
