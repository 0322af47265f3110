"""Corrections: what is written is shown, what is meant is asked, at the errors too; and errors are never hidden."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import networks
from tests.training.data.test_parallel import two_files

from besag import masks
from besag.training.data import in_place, parallel
from besag.training.data.clock import Clock
from besag.training.data.in_place import InPlaceBatches, aligned

WORDS = networks.vocabulary("bert")
KNOWN = ["the", "cat", "dogs", "mat", "table"]
TOKENS = st.lists(st.integers(0, 3), max_size=7).map(np.array)


def made(
    folder: Path, written: list[str], meant: list[str], law: str = "error_aware", rate: float = 0.4
) -> InPlaceBatches:
    folder.mkdir(exist_ok=True)
    said = two_files(folder, written, meant, max_length=12, batch_tokens=60, held_out=0.0)
    text = parallel.prepare(said, WORDS, folder / "cache", processes=1)
    masking = masks.Masking(masks.law(law), masks.rate_named("constant", rate), masks.Replacement(WORDS.mask_id))
    return in_place.batches(text, said, WORDS, masking, Clock(steps=10), seed=3)


def test_what_is_hidden_shown_and_asked(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    meant = [" ".join(generator.choice(KNOWN, 7)) for _ in range(30)]
    written = [" ".join("mat" if generator.random() < 0.3 else word for word in text.split()) for text in meant]
    batches, errors, hidden = made(tmp_path, written, meant), 0, 0
    of = {WORDS.tokenizer.decode(WORDS.encode([text])[0].ids): line for line, text in enumerate(meant)}
    for index in range(6):
        batch = batches[index]
        for row in range(batch.layout.rows):
            here = batch.layout.row == row
            ids, inputs, free = (part[here].numpy() for part in (batch.ids, batch.inputs, batch.free))
            assert of[WORDS.tokenizer.decode(ids)] >= 0  # what is asked is what was meant
            mask = inputs == WORDS.mask_id
            shown = WORDS.tokenizer.decode(inputs[1:-1]).split()
            assert any(all(a in (b, "[MASK]") for a, b in zip(shown, text.split(), strict=True)) for text in written)
            wrong = (inputs != ids) & ~mask
            errors, hidden = errors + wrong.sum(), hidden + mask.sum()
            assert not mask[~free].any()
        assert np.array_equal(batch.asked.numpy(), np.flatnonzero(batch.free.numpy()))  # every place, errors included
    assert errors > 20
    assert hidden > 20


def test_errors_are_never_hidden_by_the_law_of_the_paper_and_are_by_another(tmp_path: Path) -> None:
    written, meant = ["the cat mat mat mat mat"] * 20, ["the cat dogs table dogs table"] * 20
    for law, among in (("error_aware", {1, 2}), ("uniform", {1, 2, 3, 4, 5, 6})):
        batches = made(tmp_path / law, written, meant, law, 0.5)
        places = set()
        for index in range(12):
            batch = batches[index]
            places |= set(batch.layout.column[batch.inputs == WORDS.mask_id].tolist())
        assert places == among


def test_sides_of_unlike_length_are_aligned(tmp_path: Path) -> None:
    batch = made(tmp_path, ["the cat mat the table"] * 3, ["the dogs mat table"] * 3)[0]
    here = batch.layout.row == 0
    ids = WORDS.tokenizer.convert_ids_to_tokens(batch.ids[here].tolist())
    assert ids == ["[CLS]", "the", "dogs", "mat", "the", "table", "[SEP]"]
    assert batch.free[here].tolist() == [False, True, True, True, False, True, False]  # a word too many: nothing asked


@pytest.mark.parametrize(
    ("written", "meant", "answer", "known"),
    [
        ([1, 2, 3], [1, 9, 3], [1, 9, 3], [1, 1, 1]),
        ([1, 2, 3, 4, 5, 6], [2, 3, 4, 5, 6, 1], [1, 2, 3, 4, 5, 6], [0, 1, 1, 1, 1, 1]),  # a shift
        ([1, 2, 3, 4], [2, 1, 4, 3], [2, 1, 4, 3], [1, 1, 1, 1]),  # neighbours changed places
        ([], [7], [], []),
    ],
)
def test_alignment_by_hand(written: list[int], meant: list[int], answer: list[int], known: list[int]) -> None:
    found = aligned(np.array(written, int), np.array(meant, int))
    assert found[0].tolist() == answer
    assert found[1].astype(int).tolist() == known


@given(TOKENS, TOKENS)
def test_what_is_known_is_of_the_meant_and_all_of_equal_texts_is(written: np.ndarray, meant: np.ndarray) -> None:
    written, meant = written.astype(int), meant.astype(int)
    answer, known = aligned(written, meant)
    assert len(answer) == len(known) == len(written)
    assert (answer[~known] == written[~known]).all()
    assert set(answer[known].tolist()) <= set(meant.tolist())
    assert aligned(written, written)[1].all()


def test_the_unknown_token_is_no_answer(tmp_path: Path) -> None:
    batch = made(tmp_path, ["the cat mat"] * 3, ["the ☃ mat"] * 3)[0]
    here = batch.layout.row == 0
    assert batch.free[here].tolist() == [False, True, False, True, False]
