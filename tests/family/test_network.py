"""The family against its formulas in plain loops, and against ModernBERT, which it is with all additions left out."""

import copy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.networks import awake, tiny, vocabulary
from transformers import AutoModel, AutoModelForMaskedLM, ModernBertConfig, ModernBertForMaskedLM

import besag
from besag.family import BesagConfig, BesagForMaskedLM, BesagModel
from besag.family.network import LayerWeights
from besag.training.network.batch import Layout
from besag.training.network.encoder import Encoder

SHAPE = {
    "vocab_size": 50, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 3, "num_attention_heads": 2,
    "initializer_range": 0.5,
}  # fmt: skip
SWITCHES = ("gate", "layer_weights", "qk_norm")
OFF = dict.fromkeys(SWITCHES, False)


def made(seed: int = 0, **changes) -> BesagForMaskedLM:
    """A new network, as the recipe makes it."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return BesagForMaskedLM(BesagConfig(**{**SHAPE, **changes})).eval()


def tokens(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(0, SHAPE["vocab_size"], shape, generator=torch.Generator().manual_seed(seed))


# ---- the formulas in plain loops, in float64


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def normed(x, scale, eps=1e-5):
    return (x - x.mean()) / np.sqrt(x.var() + eps) * scale


def turned(x, place, theta=160_000.0):
    half = len(x) // 2
    result = np.empty_like(x)
    for d in range(half):
        angle = place * theta ** (-2 * d / len(x))
        result[d] = x[d] * np.cos(angle) - x[d + half] * np.sin(angle)
        result[d + half] = x[d + half] * np.cos(angle) + x[d] * np.sin(angle)
    return result


def attended(config, w, name, rows):
    """What each place (L, H) adds by attention: head by head, place by place."""
    heads, length = config.num_attention_heads, len(rows)
    size = config.hidden_size // heads
    q, k, v = (
        np.stack(part) for part in zip(*[np.split(w[f"{name}.Wqkv.weight"] @ row, 3) for row in rows], strict=True)
    )
    answer = np.zeros_like(rows)
    for head in range(heads):
        own = slice(head * size, (head + 1) * size)
        qs, ks = q[:, own], k[:, own]
        if config.qk_norm:
            qs, ks = ([x / np.sqrt((x**2).mean() + 1e-5) for x in part] for part in (qs, ks))
        qs, ks = ([turned(x, place) for place, x in enumerate(part)] for part in (qs, ks))
        for i in range(length):
            scores = np.array([qs[i] @ ks[j] for j in range(length)]) / np.sqrt(size)
            weights = np.exp(scores - scores.max())
            seen = sum(weight * v[j, own] for j, weight in enumerate(weights / weights.sum()))
            if config.gate:
                seen = seen * 2 * sigmoid(w[f"{name}.gate.weight"][head] @ rows[i] + w[f"{name}.gate.bias"][head])
            answer[i, own] = seen
    return answer @ w[f"{name}.Wo.weight"].T


def logits_by_hand(network, ids):  # (L,) -> (L, V)
    config = network.config
    w = {name: weight.detach().double().numpy() for name, weight in network.named_parameters(remove_duplicate=False)}
    norm = lambda rows, name: np.stack([normed(row, w[f"{name}.weight"]) for row in rows])  # noqa: E731
    table = w["model.embeddings.tok_embeddings.weight"]
    x = norm(table[ids], "model.embeddings.norm")
    states = [x]
    for i in range(config.num_hidden_layers):
        name = f"model.layers.{i}"
        y = x + attended(config, w, f"{name}.attn", x if i == 0 else norm(x, f"{name}.attn_norm"))
        u, v = np.split(norm(y, f"{name}.mlp_norm") @ w[f"{name}.mlp.Wi.weight"].T, 2, axis=1)
        h = y + (u * sigmoid(u) * v) @ w[f"{name}.mlp.Wo.weight"].T
        x = h
        if config.layer_weights and ((i + 1) % config.mix_every == 0 or i + 1 == config.num_hidden_layers):
            states.append(h)
            weights = w[f"model.mixes.{len(states) - 2}.weight"]
            x = sum(weight * h for weight, h in zip(weights, states, strict=True))
    rows = norm(x, "model.final_norm") @ w["head.dense.weight"].T
    erf = torch.erf(torch.from_numpy(rows / np.sqrt(2))).numpy()
    return norm(rows * (1 + erf) / 2, "head.norm") @ table.T + w["decoder.bias"]


@settings(max_examples=16)
@given(
    st.fixed_dictionaries({name: st.booleans() for name in SWITCHES}), st.integers(1, 3), st.integers(1, 3),
    st.integers(1, 3), st.integers(1, 3), st.integers(1, 7), st.integers(0, 99),
)  # fmt: skip
def test_it_says_what_the_formulas_say(switches, depth, every, heads, half, length, seed):
    shape = {"num_hidden_layers": depth, "num_attention_heads": heads, "hidden_size": 4 * heads * half}
    network = awake(made(seed, **switches, **shape, mix_every=every))
    ids = tokens(1, length, seed=seed)
    with torch.no_grad():
        said = network.double()(ids).logits[0].numpy()
    np.testing.assert_allclose(said, logits_by_hand(network, ids[0].numpy()), atol=1e-5, rtol=1e-5)


# ---- beside ModernBERT


@pytest.mark.parametrize("activation", ["silu", "gelu"])
def test_without_its_additions_it_is_modernbert_weight_for_weight(activation):
    own = made(**OFF, hidden_activation=activation)
    names = {"hidden_activation": activation, "pad_token_id": None, "global_attn_every_n_layers": 1}
    other = ModernBertForMaskedLM(ModernBertConfig(**SHAPE, **names)).eval()
    own.load_state_dict(other.state_dict())  # strictly: every name and shape
    ids = tokens(3, 9)
    mask = torch.ones_like(ids)
    mask[1, 6:] = 0
    with torch.no_grad():
        for given_mask in (None, mask):
            said, expected = (network(ids, attention_mask=given_mask).logits[mask > 0] for network in (own, other))
            torch.testing.assert_close(said, expected, atol=1e-5, rtol=1e-5)
    assert float(expected.std()) > 0.1


# ---- how it begins


@pytest.mark.parametrize("switch", ["gate", "layer_weights"])
def test_gate_and_layer_weights_change_nothing_at_first_and_something_later(switch):
    new, without = made(), made(**{switch: False})
    without.load_state_dict(new.state_dict(), strict=False)
    ids = tokens(2, 8)
    with torch.no_grad():
        torch.testing.assert_close(new(ids).logits, without(ids).logits, atol=1e-6, rtol=1e-6)
        assert (awake(new)(ids).logits - without(ids).logits).abs().max() > 0.1


def test_what_adds_to_the_residual_stream_begins_smaller():
    network = made(
        hidden_size=64, num_attention_heads=2, intermediate_size=64, num_hidden_layers=8, initializer_range=0.02
    )
    deviation = {name: float(weight.detach().std()) for name, weight in network.named_parameters() if weight.dim() == 2}
    inner = 0.02 * 0.88  # cut at two deviations
    for name, found in deviation.items():
        outer = name.endswith(".Wo.weight") or name == "head.dense.weight"
        expected = 0.0 if ".gate." in name else inner / 4 if outer else inner
        assert found == pytest.approx(expected, rel=0.1), name
    for index, mix in enumerate(network.model.mixes):
        assert mix.weight.tolist() == [0.0] * (index + 1) + [1.0]


@pytest.mark.parametrize("switches", [{}, OFF], ids=["all", "none"])
def test_the_gradient_reaches_every_weight_of_a_new_network(switches):
    network = made(**switches).train()
    ids = torch.arange(SHAPE["vocab_size"])[None]
    network(ids, labels=ids.flip(1)).loss.backward()
    still = [name for name, weight in network.named_parameters() if weight.grad is None or not weight.grad.any()]
    assert still == []


def test_queries_and_keys_of_one_length_are_as_bold_however_large_their_weights_are():
    """QK-norm: the scale of Wqkv's first two thirds does not matter."""
    network, larger = made(num_hidden_layers=1), made(num_hidden_layers=1)
    ids = tokens(1, 8)
    with torch.no_grad():
        larger.model.layers[0].attn.Wqkv.weight[: 2 * SHAPE["hidden_size"]] *= 7
        torch.testing.assert_close(larger(ids).logits, network(ids).logits, atol=1e-3, rtol=1e-3)
        for one in (network, larger):
            one.config.qk_norm = False
        assert (larger(ids).logits - network(ids).logits).abs().max() > 0.1


def test_the_sum_over_layers_and_its_gradient():
    states = [torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    mix = LayerWeights(3).double()
    with torch.no_grad():
        mix.weight.copy_(torch.tensor([0.5, -2.0, 1.5]))
    assert torch.autograd.gradcheck(lambda weight, *parts: run(mix, weight, parts), (mix.weight, *states))
    torch.testing.assert_close(mix(states), 0.5 * states[0] - 2.0 * states[1] + 1.5 * states[2])


def run(mix, weight, states):
    return torch.func.functional_call(mix, {"weight": weight}, (list(states),))


# ---- layouts, precisions, attentions


@settings(max_examples=10)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.integers(0, 99))
def test_end_to_end_padded_and_one_by_one_are_the_same(lengths, seed):
    network, ids = awake(made(seed)), tokens(sum(lengths), seed=seed)
    layout = Layout.of_lengths(torch.tensor(lengths))
    with torch.no_grad():
        alone = torch.cat([network.model(part[None])[0][0] for part in ids.split(lengths)])
        for ragged in (False, True):
            own = copy.deepcopy(network)
            encoder = Encoder(own, mask_id=1, pad_id=0, special_ids=frozenset({0, 1}), ragged=ragged)
            torch.testing.assert_close(encoder.states(ids, layout), alone, atol=1e-4, rtol=1e-4)


def test_in_bfloat16_it_says_nearly_the_same():
    network, ids = awake(made(initializer_range=0.1)), tokens(4, 12)
    with torch.no_grad():
        exact = network(ids).logits.log_softmax(-1)
        rounded = copy.deepcopy(network).bfloat16()
        said = rounded(ids).logits
    assert said.dtype == torch.bfloat16
    assert (said.float().log_softmax(-1) - exact).abs().mean() < 0.02
    rounded.train()(ids, labels=ids).loss.backward()
    assert all(weight.grad.isfinite().all() for weight in rounded.parameters())


def test_places_are_turned_by_in_float32_whatever_the_weights_are():
    """Places 2,000 and 2,001 are one number in bfloat16."""
    network, ids = awake(made(initializer_range=0.1)), tokens(1, 6)
    far = torch.arange(2000, 2006)[None]
    with torch.no_grad():
        exact = network(ids, position_ids=far).logits
        said = copy.deepcopy(network).bfloat16()(ids, position_ids=far).logits.float()
        near = network(ids).logits
    torch.testing.assert_close(exact, near, atol=1e-3, rtol=1e-3)  # distances alone matter
    assert (said - exact).abs().mean() < 0.05


def test_it_says_where_it_attends():
    network, ids = awake(made()), tokens(2, 7)
    with torch.no_grad():
        plain = network(ids).logits
        network.set_attn_implementation("eager")
        said = network(ids, output_attentions=True, output_hidden_states=True)
    torch.testing.assert_close(said.logits, plain, atol=1e-4, rtol=1e-4)
    assert [part.shape for part in said.attentions] == [(2, 2, 7, 7)] * 3
    torch.testing.assert_close(torch.stack(said.attentions).sum(-1), torch.ones(3, 2, 2, 7))
    assert len(said.hidden_states) == 4


# ---- saved and loaded


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("family") / "model"
    tiny("besag", num_hidden_layers=3).save_pretrained(path)
    vocabulary("besag").tokenizer.save_pretrained(path)
    return path


def test_a_saved_folder_scores_as_the_network_does(folder):
    texts = ["the cat sat", "a dog", "the dogs sleep on a mat"]
    network = tiny("besag", num_hidden_layers=3)
    pair = besag.load((network, vocabulary("besag").tokenizer), device="cpu")
    saved = besag.load(folder, device="cpu", dtype="float32")
    assert isinstance(saved.model, BesagForMaskedLM)
    assert saved.conditionals.split
    assert saved.conditionals.pads
    for one, other in zip(saved.score(texts), pair.score(texts), strict=True):
        assert one.status == "ok"
        assert one.total == pytest.approx(other.total, abs=1e-4)
        ids = torch.tensor(vocabulary("besag").tokenizer(one.text)["input_ids"])
        by_hand = 0.0
        with torch.no_grad():
            for place in range(1, len(ids) - 1):
                hidden = ids.clone()
                hidden[place] = vocabulary("besag").mask_id
                by_hand += float(network(hidden[None]).logits[0, place].log_softmax(-1)[ids[place]])
        assert one.total == pytest.approx(by_hand, abs=1e-3)


def test_plain_transformers_loads_it(folder):
    network = AutoModelForMaskedLM.from_pretrained(folder)
    assert type(network) is BesagForMaskedLM
    assert type(AutoModel.from_pretrained(folder)) is BesagModel
    expected = tiny("besag", num_hidden_layers=3)
    assert all(torch.equal(network.state_dict()[name], weight) for name, weight in expected.state_dict().items())
    assert network.decoder.weight is network.get_input_embeddings().weight
