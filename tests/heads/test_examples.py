"""Labelled examples from files, and those held out."""

import json

import pytest

from besag.errors import BesagError
from besag.heads.examples import Example, read, split
from besag.heads.recipe import Task


def put(path, text):
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_texts_and_labels_by_their_columns(tmp_path):
    tsv = put(tmp_path / "a.tsv", "id\tsaid\tkind\n1\tA cat.\t0\n2\tA dog.\t1\n")
    assert list(read(tsv, Task(text="said", label="kind"))) == [
        Example(("A cat.",), ("0",)),
        Example(("A dog.",), ("1",)),
    ]
    rows = [{"text": "A cat.", "label": 0}, {"text": "A dog.", "label": "dog"}]
    jsonl = put(tmp_path / "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert [one.labels for one in read(jsonl, Task())] == [("0",), ("dog",)]


def test_words_and_tags_in_lists_or_with_spaces(tmp_path):
    task = Task(kind="tag", text="words", label="tags")
    jsonl = put(tmp_path / "a.jsonl", json.dumps({"words": ["A", "cat"], "tags": ["O", "B-X"]}) + "\n")
    tsv = put(tmp_path / "a.tsv", "words\ttags\nA cat\tO B-X\n")
    assert [*read(jsonl, task)] == [*read(tsv, task)] == [Example(("A", "cat"), ("O", "B-X"))]


def test_what_is_held_out_is_nowhere_else_and_the_seeds_own(tmp_path):
    rows = "".join(f"text {number}\t{'ab'[number % 2]}\n" for number in range(200))
    path = put(tmp_path / "a.tsv", f"text\tlabel\n{rows}")
    found = split(Task(train=path, held_out=0.25), seed=0)
    assert 30 < len(found.valid) < 70
    assert {*found.train} & {*found.valid} == set()
    assert len(found.train) + len(found.valid) == 200
    assert found.names == ("a", "b")
    assert split(Task(train=path, held_out=0.25), seed=0) == found != split(Task(train=path, held_out=0.25), seed=1)


@pytest.mark.parametrize(
    ("rows", "said", "kind"),
    [
        ("text\tlabel\nA cat.\tcat\nA cat.\tcat\n", "has only the label 'cat'", "classify"),
        ("text\tlabels\nA cat.\tcat\n", "has no 'label'.*Did you mean 'labels'", "classify"),
        ("text\tlabel\n \tcat\nA dog\tdog\n", "the text is ' '", "classify"),
        ("text\tlabel\nA cat.\t\nA dog\tdog\n", "the label is ''", "classify"),
        ("text\tlabel\nA cat\tO\nA dog\tO O\n", "2 words and 1 tags", "tag"),
    ],
)
def test_wrong_rows_are_refused_with_their_line(tmp_path, rows, said, kind):
    path = put(tmp_path / "a.tsv", rows)
    with pytest.raises(BesagError, match=said):
        split(Task(train=path, valid=path, kind=kind), seed=0)


def test_a_label_that_nothing_is_learned_of_is_refused(tmp_path):
    train = put(tmp_path / "a.tsv", "text\tlabel\nA cat.\tcat\nA dog.\tdog\n")
    valid = put(tmp_path / "b.tsv", "text\tlabel\nA cow.\tcow\n")
    with pytest.raises(BesagError, match=r"'cow' of 'A cow\.' is held out"):
        split(Task(train=train, valid=valid), seed=0)
    with pytest.raises(BesagError, match="leaves 2 to learn from and 0 to measure on"):
        split(Task(train=train, held_out=1e-9), seed=0)
