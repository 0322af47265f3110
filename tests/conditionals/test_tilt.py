"""What a law of masks puts into a network's answers, and taking it out: exactly, in a simulation, from a folder."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tests.laws import Arbitrary
from tests.networks import tiny, vocabulary
from transformers.utils import logging
from typer.testing import CliRunner

import besag
from besag.cli import app
from besag.conditionals.contract import Conditionals, Questions
from besag.conditionals.table import Table
from besag.conditionals.tilt import FILE, Tilt, Untilted, load_tilt, save_tilt
from besag.errors import BesagError
from besag.masks import Passages, Statistics, law

RNG = np.random.default_rng(4)
WIDTH = 4
JOINT = RNG.dirichlet(np.full(WIDTH**3, 0.4)).reshape(WIDTH, WIDTH, WIDTH)
PI = np.array([0.9, 0.1, 0.5, 0.25])


class Tilted:
    """The answers of a perfect network trained on masks that hide v with chance π(v): p·π / Z."""

    def __init__(self, inner: Conditionals, pi: np.ndarray) -> None:
        self.inner, self.pi = inner, torch.from_numpy(pi)

    def __getattr__(self, name: str):
        return getattr(self.inner, name)

    def rows(self, questions: Questions) -> torch.Tensor:
        return self.inner.rows(questions)

    def head(self, rows: torch.Tensor) -> torch.Tensor:
        return torch.log_softmax(self.inner.head(rows), -1) + self.pi.log()


def answers(who: Conditionals, ids: torch.Tensor) -> torch.Tensor:
    row, place = torch.nonzero(ids == who.vocabulary.mask_id, as_tuple=True)
    with torch.no_grad():
        return torch.softmax(who.head(who.rows(Questions(ids, row, place))), -1)


def test_an_exact_table_comes_back():
    table = Table(JOINT, ["a", "b", "c", "d"])
    ids = torch.cartesian_prod(*[torch.arange(WIDTH + 1)] * 3)
    ids = ids[(ids == WIDTH).any(1)]
    tilted = Tilted(table, PI)
    back = Untilted(tilted, Tilt(np.log(PI) + 3.7, "made up"))  # up to a constant
    wanted = answers(table, ids)
    assert (answers(tilted, ids) - wanted).abs().max() > 0.1
    assert (answers(back, ids) - wanted).abs().max() < 1e-10


def test_hidden_tokens_of_a_law_that_looks_at_them_are_tilted_and_untilting_recovers_them():
    """(x, K) is sampled; each place is hidden with chance π(its token). Where only the first is hidden:
    p(x_1 | shown, K) ∝ p(x_1 | shown) π(x_1), by chi-square; the same counts are no sample of p(x_1 | shown)."""
    draws = 200_000
    flat = RNG.choice(WIDTH**3, draws, p=JOINT.ravel())
    x = np.stack(np.unravel_index(flat, JOINT.shape), 1)
    hidden = RNG.random(x.shape) < PI[x]
    alone = hidden[:, 0] & ~hidden[:, 1] & ~hidden[:, 2]
    counts = np.zeros(JOINT.shape)
    np.add.at(counts, tuple(x[alone].T), 1)
    shown = counts.sum(0)
    fair = JOINT / JOINT.sum(0)
    tilted = fair * PI[:, None, None]
    tilted /= tilted.sum(0)
    used = (tilted * shown).min(0) > 5
    freedom = 3 * int(used.sum())
    assert freedom > 10

    def chi_square(law_of_first: np.ndarray) -> float:
        wanted = (law_of_first * shown)[:, used]
        return float(((counts[:, used] - wanted) ** 2 / wanted).sum())

    bound = freedom + 3.1 * np.sqrt(2 * freedom) + 8  # beyond the 0.999 quantile of chi-square
    assert chi_square(tilted) < bound
    assert chi_square(fair) > 20 * bound

    class Counted(Arbitrary):
        """What a network with all the capacity in the world would have learned from these masks."""

        def logits(self, context, place):
            return np.log(np.maximum(counts[:, context[1], context[2]], 1e-9))

    learned = Counted(WIDTH)
    ids = torch.tensor([[WIDTH, second, third] for second, third in zip(*np.nonzero(used), strict=True)])
    back = answers(Untilted(learned, Tilt(np.log(PI), "simulated")), ids).numpy().T
    standard_error = np.sqrt(fair * (1 - fair) / np.maximum(shown, 1) * (PI.max() / PI.min()))[:, used]
    assert (abs(back - fair[:, used]) < 4.5 * standard_error).all()
    assert abs(answers(learned, ids).numpy().T - fair[:, used]).max() > 0.1


def test_the_tilt_of_a_real_law_takes_out_what_it_put_in():
    """Pairs (x_1, x_2) that depend, in passages of other text, hidden by `frequency` at 0.3 to a fixed budget."""
    counts = np.array([0, 20, 2000, 150, 30])
    tokens = ("[MASK]", "a", "b", "c", "d")
    made = law("frequency", theta=1.0).prepare(Statistics(counts, [], frozenset({0}), tokens))
    share, rate = counts / counts.sum(), 0.3
    rows, length = 20_000, 60
    rng = np.random.default_rng(0)
    ids = rng.choice(5, (rows, length), p=share)
    given = np.array([0, 0.1, 0.6, 0.1, 0.2])
    ids[:, 1] = 2  # one context
    ids[:, 0] = rng.choice(5, rows, p=given)
    passages = Passages(ids.ravel(), np.repeat(np.arange(rows), length), np.ones(rows * length, bool),
                        np.tile(np.arange(length), rows), np.full(rows * length, -1), np.arange(rows))  # fmt: skip
    hidden = made.choose(passages, np.full(rows, rate), 0.0, 0).reshape(rows, length)
    learned = np.bincount(ids[hidden[:, 0] & ~hidden[:, 1], 0], minlength=5)[1:]
    learned = learned / learned.sum()
    back = learned * np.exp(-made.tilt(rate)[1:])
    back /= back.sum()
    assert abs(learned - given[1:]).max() > 0.2
    assert back == pytest.approx(given[1:], abs=0.025)


def test_special_tokens_and_ids_beyond_the_tokenizer_stay_as_they_are():
    from besag.conditionals.transformer import Transformer

    known = vocabulary("bert")
    inner = Transformer(tiny("bert", vocab_size=known.size + 7), known)
    log_pi = RNG.normal(size=known.size)
    outer = Untilted(inner, Tilt(log_pi, "made up"))
    rows = torch.randn(3, 32)
    with torch.no_grad():
        change = (inner.head(rows) - outer.head(rows)).numpy()
    ordinary = np.array([id not in known.special_ids for id in range(known.size)])
    assert change[:, : known.size][:, ordinary] == pytest.approx(np.tile(log_pi[ordinary], (3, 1)), abs=1e-5)
    assert (change[:, sorted(known.special_ids)] == 0).all()
    assert (change[:, known.size :] == 0).all()


def test_a_wrapper_is_one_who_answers():
    table = Table(JOINT, ["a", "b", "c", "d"], name="coins")
    outer = Untilted(table, Tilt(np.log(PI), "frequency"))
    assert isinstance(outer, Conditionals)
    assert outer.name == "coins (untilted: frequency)"
    assert outer.places == 3
    scores = [besag.load(who).score("a b c", "pll") for who in (table, outer)]
    assert scores[1].model == "coins (untilted: frequency)"
    assert scores[0].total != pytest.approx(scores[1].total)


@pytest.mark.parametrize("log_pi", [np.zeros(3), np.zeros(9)])
def test_a_tilt_of_another_vocabulary_is_refused(log_pi):
    with pytest.raises(BesagError, match="do not belong together"):
        Untilted(Table(JOINT, ["a", "b", "c", "d"]), Tilt(log_pi, "frequency"))


@pytest.mark.parametrize("log_pi", [np.array([0.0, -np.inf]), np.array([np.nan, 0.0]), np.zeros((2, 2))])
def test_a_tilt_that_is_none_is_not_saved(tmp_path, log_pi):
    with pytest.raises(BesagError, match="one finite number for each token"):
        save_tilt(tmp_path, log_pi, "frequency")


@pytest.fixture
def folder(tmp_path):
    logging.disable_progress_bar()
    tiny("bert").save_pretrained(tmp_path)
    logging.enable_progress_bar()
    vocabulary("bert").tokenizer.save_pretrained(tmp_path)
    return tmp_path


def test_a_folder_keeps_its_tilt(folder):
    assert load_tilt(folder) is None
    log_pi = RNG.normal(size=vocabulary("bert").size)
    assert save_tilt(folder, log_pi, "frequency").name == FILE
    tilt = load_tilt(folder)
    assert (tilt.log_pi == log_pi).all()
    assert tilt.law == "frequency"
    assert load_file(folder / FILE)["log_pi"].dtype == torch.float64
    plain, corrected = (besag.load(folder, device="cpu", untilt=untilt) for untilt in (False, True))
    assert isinstance(corrected.conditionals, Untilted)
    assert corrected.model is not None
    one, other = (lm.score("the cat", "pll") for lm in (plain, corrected))
    assert other.model == f"{folder} (untilted: frequency)"
    assert one.model == str(folder)
    for lm, result in ((plain, one), (corrected, other)):  # against the network itself
        encoded = lm.vocabulary.encode(["the cat"])[0]
        total = 0.0
        for place in encoded.places:
            ids = torch.from_numpy(encoded.ids.copy())[None]
            ids[0, place] = lm.vocabulary.mask_id
            with torch.no_grad():
                logits = lm.model(input_ids=ids).logits[0, place].double()
            if lm is corrected:
                shift = torch.from_numpy(log_pi.copy())
                shift[sorted(lm.vocabulary.special_ids)] = 0
                logits = logits - shift
            total += float(torch.log_softmax(logits, -1)[encoded.ids[place]])
        assert result.total == pytest.approx(total, abs=1e-4)


def test_what_has_no_tilt_cannot_be_untilted(folder):
    with pytest.raises(BesagError, match=f"has no {FILE}"):
        besag.load(folder, device="cpu", untilt=True)
    with pytest.raises(BesagError, match="wrap it yourself"):
        besag.load((tiny("bert"), vocabulary("bert").tokenizer), untilt=True)
    with pytest.raises(BesagError, match="wrap it yourself"):
        besag.load(Table(JOINT, ["a", "b", "c", "d"]), untilt=True)
    (folder / FILE).write_bytes(b"nothing of the kind")
    with pytest.raises(BesagError, match="cannot be read"):
        besag.load(folder, device="cpu", untilt=True)


def test_the_command_line(folder):
    save_tilt(folder, np.linspace(-2, 2, vocabulary("bert").size), "frequency")
    said = {}
    for flags in ([], ["--untilt"]):
        common = ["-m", str(folder), "--device", "cpu", "--format", "jsonl", *flags]
        for command in (["score", "the cat"], ["choose", "the [MASK]", "cat", "dog"]):
            result = CliRunner().invoke(app, [command[0], *command[1:], *common])
            assert result.exit_code == 0, result.output
            said[command[0], bool(flags)] = result.stdout
    assert "(untilted: frequency)" in said["score", True]
    assert "untilted" not in said["score", False]
    assert said["choose", True] != said["choose", False]
