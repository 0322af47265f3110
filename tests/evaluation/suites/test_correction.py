"""Correction: files in three layouts, the baselines beside, and figures by hand."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import networks

import besag
from besag.errors import BesagError
from besag.evaluation.corrections import gleu, gleu_counts
from besag.evaluation.suite import suite
from besag.samplers.editing.correct import Corrected, Corrections

SHARED = Path(os.environ.get("BESAG_DATA", Path(__file__).parents[4] / "shared" / "data"))
WRITTEN = ["我跟朋唷去玩", "下个星期见", "他很高性", "你号"]
MEANT = ["我跟朋友去玩", "下个星期见", "他很高兴", "你好"]
FOUND = ["我跟朋友去玩", "下个星其见", "他很高行", "你号"]  # mended, a false alarm, found, nothing done


def files(folder: Path) -> Path:
    (folder / "test_error.txt").write_text("\n".join(WRITTEN) + "\n")
    (folder / "test_correct.txt").write_text("\n".join(MEANT) + "\n")
    (folder / "train_error.txt").write_text("你号\n他性\n性\n性\n")
    (folder / "train_correct.txt").write_text("你好\n他性\n性\n性\n")
    return folder


@pytest.fixture
def corrector(monkeypatch: pytest.MonkeyPatch) -> besag.LanguageModel:
    """A model whose corrections are known."""
    lm = besag.load((networks.tiny("bert"), networks.vocabulary("bert").tokenizer), device="cpu")
    known = dict(zip(WRITTEN, FOUND, strict=True))

    def correct(texts: list[str], *, margin: float) -> Any:
        rows = tuple(Corrected(text, known.get(text, text), ()) for text in texts)
        return Corrections(rows, margin, "known", "float32")

    monkeypatch.setattr(lm, "correct", correct)
    return lm


def test_figures_by_hand(tmp_path: Path, corrector: besag.LanguageModel) -> None:
    found = besag.evaluate(corrector, "correction", data=files(tmp_path))
    # sentences: 3 have errors, 3 were changed; places right in 2 (the first, the third), changes in 1
    assert found["sentence detection F1"].value == pytest.approx(100 * 2 * 2 / (3 + 3))
    assert found["sentence correction F1"].value == pytest.approx(100 * 2 * 1 / (3 + 3))
    assert found["character detection F1"].value == pytest.approx(100 * 2 * 2 / (3 + 3))
    assert found["character correction F1"].value == pytest.approx(100 * 2 * 1 / (3 + 3))
    # the table knows 号 → 好 and leaves 性, which mostly stayed
    assert found["sentence correction F1, confusion table"].value == pytest.approx(100 * 2 * 1 / (1 + 3))
    assert found["sentence correction F1, doing nothing"].value == 0.0
    assert found["exact"].value == 25.0
    assert found["exact, doing nothing"].value == 25.0
    sums = np.sum([gleu_counts(*three) for three in zip(WRITTEN, FOUND, MEANT, strict=True)], 0)
    assert found["GLEU"].value == pytest.approx(100 * gleu(sums.astype(float)))
    for name in ("sentence correction F1", "GLEU"):
        figure = found[name]
        assert figure.low <= figure.value <= figure.high
        assert "1,000 draws" in figure.error


def test_jflegs_layout_and_a_table(tmp_path: Path, corrector: besag.LanguageModel) -> None:
    (tmp_path / "dev.src").write_text("a cat sat on teh mat\n")
    (tmp_path / "dev.ref0").write_text("a cat sat on the mat\n")
    (tmp_path / "dev.ref1").write_text("a cat sat on a mat\n")
    (tmp_path / "dev.spellchecked.src").write_text("no reference is called so\n")
    pairs = tmp_path.parent / f"{tmp_path.name}.tsv"
    pairs.write_text("text\tcorrect\nteh dog\tthe dog\n")
    found = besag.evaluate(corrector, suite("correction", pairs=str(pairs)), data=tmp_path)
    assert found["exact, confusion table"].value == 100.0
    assert found["GLEU, confusion table"].value > found["GLEU, doing nothing"].value
    assert "sentence correction F1" not in [figure.name for figure in found.figures]
    alone = besag.evaluate(corrector, "correction", data=pairs)
    assert alone["exact"].n == 1


def test_files_that_do_not_fit_are_refused(tmp_path: Path, corrector: besag.LanguageModel) -> None:
    files(tmp_path)
    (tmp_path / "test_correct.txt").write_text("only one\n")
    with pytest.raises(BesagError, match=r"test_error\.txt, test_correct\.txt do not have the same number of lines"):
        besag.evaluate(corrector, "correction", data=tmp_path)
    (tmp_path / "alone.src").write_text("x\n")
    with pytest.raises(BesagError, match=r"alone\.ref0"):
        besag.evaluate(corrector, "correction", data=tmp_path / "alone.src")


@pytest.mark.skipif(not (SHARED / "spelling_sighan").exists(), reason="SIGHAN is not there: set BESAG_DATA")
def test_the_published_files() -> None:
    from besag.evaluation.source import find

    items = list(suite("correction").read(find(suite("correction"), SHARED / "spelling_sighan")))
    assert {item.group for item in items} == {"test15"}
    assert len(items) == 1100
