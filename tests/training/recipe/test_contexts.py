"""Headers and contexts in recipes: what does not go together is refused, and says what would."""

from __future__ import annotations

import re

import pytest

from besag.errors import BesagError
from besag.training import recipe as recipes
from besag.training.recipe.contexts import header_parts
from besag.training.recipe.values import as_table, flat

BASE = {"data": {"train": ["a.jsonl"]}, "schedule": {"steps": 1}}
PAIRS = {"data.links": "links", "data.context": "pairs"}
DATED = {"data.header": "{date}:"}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"data.header": "date:"}, "data.header = 'date:' names no field of a row: write its name in braces, '{date}'"),
        ({**DATED, "data.hide": {"dat": 0.5}}, "data.hide.dat is of no field in data.header. Did you mean 'date'?"),
        ({"data.hide": {"date": 0.5}}, "data.hide.date is of no field in data.header"),
        ({**DATED, "data.hide": {"date": 1.5}}, "data.hide.date = 1.5: a chance from 0 to 1 is needed"),
        ({**DATED, "data.hide": {"date": "often"}}, "data.hide.date = 'often': a chance from 0 to 1 is needed"),
        ({**DATED, "data.hide": {"date": True}}, "data.hide.date = True: a chance from 0 to 1 is needed"),
        (
            {**DATED, "data.hide": {"date": 0.5}, "objective.name": "mdlm"},
            "the objective 'mdlm' hides tokens in its own way",
        ),
        ({**DATED, "data.stream": True}, "data.stream = true does not go with data.header"),
        ({**PAIRS, "data.densest": 0.5}, "data.densest does not go with data.context = 'pairs'"),
        ({**PAIRS, "data.group": "topic"}, "data.group and data.links both say which documents belong together"),
        ({"data.group": "topic"}, "and data.context = 'alone' puts none beside another"),
        ({"data.context": "together"}, "name a field in data.group, or one in data.links"),
        ({"data.context": "pairs"}, "name a field in data.group, or one in data.links"),
        ({"data.context": "both"}, "data.context"),
        ({**PAIRS, "data.partners": ["link"]}, "there is no 'link' among contiguous, random, linked"),
        ({**PAIRS, "data.partners": []}, "name some of contiguous, random, linked, each once"),
        ({**PAIRS, "data.partners": ["linked", "linked"]}, "each once"),
        ({"data.partners": ["linked"]}, "data.partners = ['linked'] is of data.context = 'pairs'"),
        ({**PAIRS, "objective.relation": -1.0}, "objective.relation"),
    ],
)
def test_what_does_not_go_together_is_refused(changes, said):
    with pytest.raises(BesagError, match=re.escape(said)):
        recipes.recipe_of(BASE, changes)


@pytest.mark.parametrize(
    "changes",
    [
        PAIRS,
        {**DATED, "data.hide": {"date": 0.75}},
        {**DATED, "data.hide": {"date": 0}, "objective.name": "mdlm"},
        {**DATED, **PAIRS, "data.partners": ("random", "linked"), "objective.relation": 0.0},
        {"data.context": "pairs", "data.partners": ("contiguous", "random")},  # needs no links
        {"data.context": "together", "data.group": "meta.topic"},
    ],
)
def test_what_makes_sense_is_taken_as_it_is_said(changes):
    found = recipes.recipe_of(BASE, changes)
    usual = flat(as_table(recipes.recipe_of(BASE)))
    said = flat(as_table(found))
    assert {key for key, value in said.items() if usual.get(key) != value} == {
        "data.hide.date" if key == "data.hide" else key for key in changes
    }
    assert recipes.recipe_of(as_table(found)) == found


def test_a_header_has_fields_and_what_is_written_as_it_is():
    assert list(header_parts("on {date}, {a.b}:")) == [
        (None, "on "), ("date", ""), (None, ", "), ("a.b", ""), (None, ":"),
    ]  # fmt: skip
    assert list(header_parts("{}")) == [(None, "{}")]
