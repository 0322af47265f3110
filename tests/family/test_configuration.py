"""Which settings make a network, and that a saved config says all of them."""

import pytest
import torch

from besag.family import BesagConfig, BesagForMaskedLM


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"hidden_size": 30, "num_attention_heads": 4}, "hidden_size = 30 does not give 4 heads an even number each"),
        ({"hidden_size": 20, "num_attention_heads": 4}, "a multiple of 8 is needed"),
        ({"num_attention_heads": 0}, "num_attention_heads = 0: 1 or more is needed"),
        ({"num_hidden_layers": 0}, "num_hidden_layers = 0: 1 or more is needed"),
        ({"mix_every": 0}, "mix_every = 0: 1 or more is needed"),
        ({"vocab_size": -1}, "vocab_size = -1: 1 or more is needed"),
        ({"gate": "yes"}, "gate"),
        ({"hidden_size": 2.5}, "hidden_size"),
    ],
)
def test_what_makes_no_network_is_refused(settings, said):
    with pytest.raises(Exception, match=said):
        BesagConfig(**settings)


def test_an_activation_that_nobody_knows_makes_no_network():
    config = BesagConfig(
        num_hidden_layers=1, hidden_size=8, num_attention_heads=2, intermediate_size=8, vocab_size=9,
        hidden_activation="sulu",
    )  # fmt: skip
    with pytest.raises(KeyError, match="sulu"):
        BesagForMaskedLM(config)


def test_what_is_saved_is_what_was_said(tmp_path):
    said = BesagConfig(gate=False, qk_norm=False, num_hidden_layers=3, hidden_activation="gelu", mask_token_id=7)
    said.save_pretrained(tmp_path)
    read = BesagConfig.from_pretrained(tmp_path)
    assert read.to_dict() == said.to_dict()
    assert (read.gate, read.layer_weights, read.qk_norm, read.mask_token_id) == (False, True, False, 7)


@pytest.mark.parametrize(("depth", "width", "heads"), [(12, 512, 8), (16, 448, 7)])
def test_the_weights_of_both_shapes_fit_40_million(depth, width, heads):
    """By hand: a layer, its gate and its norms (the first lacks one), the sums over layers, the table and its bias."""
    inner, words = 2 * width, 12_288
    layer = 4 * width**2 + 3 * width * inner + heads * (width + 1) + 2 * width
    sums = sum(range(2, -(-depth // 2) + 2))  # after every other layer
    ends = words * width + words + width**2 + 3 * width  # norms of the embeddings, of the last layer and of the head
    with torch.device("meta"):
        network = BesagForMaskedLM(
            BesagConfig(
                num_hidden_layers=depth,
                hidden_size=width,
                num_attention_heads=heads,
                intermediate_size=inner,
                vocab_size=words,
            )
        )
    assert network.num_parameters() == depth * layer - width + sums + ends <= 40_000_000
