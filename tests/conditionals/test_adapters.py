"""Adapters as folders: put on the base they were trained beside, switched without a trace, refused by any other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests import networks

import besag
from besag.conditionals import adapters, additions
from besag.errors import BesagError

TEXT = "the dog saw a cat"


@pytest.fixture(scope="module")
def base(tmp_path_factory: Any) -> Path:
    return stored(tmp_path_factory.mktemp("models") / "base")


def stored(folder: Path, seed: int = 0, **shape: Any) -> Path:
    networks.tiny("bert", seed=seed, **shape).save_pretrained(folder)
    networks.vocabulary("bert").tokenizer.save_pretrained(folder)
    return folder


def made(folder: Path, base: Path, kind: additions.Kind = "bottleneck", seed: int = 0) -> Path:
    """The folder of an adapter with random weights."""
    network = networks.tiny("bert")
    if kind == "bottleneck":
        additions.attach_bottlenecks(network, 3)
    else:
        additions.attach_low_rank(network, 3, 6.0, [name for name in additions.linear(network) if "query" in name])
    added = additions.added(network)
    random = torch.Generator().manual_seed(seed)
    about = adapters.Adapter(kind, 3, 6.0, "base", adapters.digest_of(base, "base"))
    folder.mkdir()
    adapters.save(folder, about, {name: torch.randn(weight.shape, generator=random) for name, weight in added.items()})
    return folder


def score(lm: besag.LanguageModel) -> list[float]:
    return lm.score(TEXT).log_probs.tolist()


@pytest.mark.parametrize("kind", additions.KINDS)
def test_adapters_are_switched_back_and_forth_without_a_trace(base, tmp_path, kind):
    first, second = made(tmp_path / "a", base, kind), made(tmp_path / "b", base, kind, seed=1)
    plain = besag.load(base, device="cpu")
    alone = score(plain)
    one = plain.adapted(first)
    a = score(one)
    b = score(one.adapted(second))
    assert len({tuple(alone), tuple(a), tuple(b)}) == 3
    assert score(one.adapted(second).adapted(first)) == a == score(one)
    assert score(one.adapted(None)) == alone == score(plain)
    assert score(besag.load(base, device="cpu", adapter=first)) == a
    assert one.name == f"{base} (adapter: {first})"
    assert one.adapted(None).name == str(base)
    weight, again = (lm.model.bert.embeddings.word_embeddings.weight for lm in (plain, one))
    assert weight is again  # the base is in memory once


def test_the_numbers_are_those_of_the_weights_in_the_file(base, tmp_path):
    folder = made(tmp_path / "a", base)
    network = networks.tiny("bert")
    additions.attach_bottlenecks(network, 3)
    for name, weight in load_file(folder / adapters.FILE).items():
        network.get_parameter(name).data.copy_(weight)
    by_hand = besag.load((network, networks.vocabulary("bert").tokenizer))
    assert score(besag.load(base, device="cpu", adapter=folder)) == pytest.approx(score(by_hand), abs=1e-6)


def test_loading_draws_nothing(base, tmp_path):
    lm, folder = besag.load(base, device="cpu"), made(tmp_path / "a", base)
    torch.manual_seed(3)
    before = torch.get_rng_state()
    lm.adapted(folder)
    assert torch.equal(torch.get_rng_state(), before)


def test_another_base_is_refused(base, tmp_path):
    folder = made(tmp_path / "a", base)
    other, wide = stored(tmp_path / "other", seed=1), stored(tmp_path / "wide", hidden_size=16)
    right, wrong = (adapters.digest_of(one, "base")[:12] for one in (base, other))
    with pytest.raises(BesagError, match=rf"beside 'base', whose weights have the digest {right}….*{wrong}…"):
        besag.load(other, device="cpu", adapter=folder)
    with pytest.raises(BesagError, match=r"does not fit '.*wide'.*down\.weight' is \(3, 32\), and should be \(3, 16\)"):
        besag.load(wide, device="cpu", adapter=folder)


def test_what_takes_no_adapter_says_so(base, tmp_path):
    folder = made(tmp_path / "a", base)
    pair = (networks.tiny("bert"), networks.vocabulary("bert").tokenizer)
    with pytest.raises(BesagError, match="a pair has the weights"):
        besag.load(pair, adapter=folder)
    with pytest.raises(BesagError, match="takes no adapter: that is for a masked network, read from a folder"):
        besag.load(pair).adapted(folder)
    with pytest.raises(BesagError, match="is built already"):
        besag.load(besag.Table([[0.4, 0.1], [0.1, 0.4]]), adapter=folder)
    with pytest.raises(BesagError, match="8-bit numbers takes none"):
        besag.load(base, device="cpu", dtype="int8", adapter=folder)
    with pytest.raises(BesagError, match=r"is no adapter: it holds no adapter\.safetensors"):
        besag.load(base, device="cpu", adapter=base)
    with pytest.raises(BesagError, match="is an adapter, and no model"):
        besag.load(folder, device="cpu")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"besag_adapter": "prefix"}, "besag_adapter is 'prefix', and should be 'bottleneck' or 'lora'"),
        ({"rank": 10**9}, "rank is 1000000000, and should be a number from 1 to 65536"),
        ({"rank": True}, "rank is True"),
        ({"rank": 4}, r"is \(3,\), and should be \(4,\)"),
        ({"alpha": "much"}, "alpha is 'much'"),
        ({"base_sha256": "00"}, "base_sha256 '00', and should be a name and 64 hexadecimal digits"),
    ],
)
def test_a_config_that_says_something_else_is_refused(base, tmp_path, change, told):
    file = made(tmp_path / "a", base) / adapters.CONFIG
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(BesagError, match=told):
        besag.load(base, device="cpu", adapter=tmp_path / "a")


def test_weights_that_are_not_its_own_are_refused(base, tmp_path):
    file = made(tmp_path / "a", base) / adapters.FILE
    whole = load_file(file)
    name = next(iter(whole))
    for wrong, told in (
        ({key: weight for key, weight in whole.items() if key != name}, "is not there, and should be"),
        ({**whole, "bert.pooler": torch.zeros(2)}, r"'bert\.pooler' is \(2,\), and should be not there"),
        ({**whole, name: torch.full_like(whole[name], torch.nan)}, "something else than finite numbers"),
    ):
        save_file(wrong, file)
        with pytest.raises(BesagError, match=told):
            besag.load(base, device="cpu", adapter=tmp_path / "a")
    file.write_bytes(b"\x80\x04K\x01.")  # a pickle
    with pytest.raises(BesagError, match="cannot be read"):
        besag.load(base, device="cpu", adapter=tmp_path / "a")


def test_additions_beside_layers_that_are_not_there_are_refused(base, tmp_path):
    file = made(tmp_path / "a", base, "lora") / adapters.FILE
    save_file({key.replace("layer.0", "layer.7"): weight for key, weight in load_file(file).items()}, file)
    with pytest.raises(BesagError, match=r"beside 'bert\.encoder\.layer\.7\..*query', which is no linear layer of it"):
        besag.load(base, device="cpu", adapter=tmp_path / "a")
