"""Masked networks of many families against a plain loop over their own full forward."""

from __future__ import annotations

import copy
import inspect
from types import SimpleNamespace

import pytest
import torch
from tests.networks import MASKED_FAMILIES, tiny, vocabulary
from transformers import BertForMaskedLM, BertForSequenceClassification, BertForTokenClassification, BertModel

import besag
from besag.conditionals.contract import Conditionals, Questions
from besag.conditionals.network import gap, longest
from besag.conditionals.replay import OFTEN
from besag.conditionals.transformer import Transformer
from besag.errors import BesagError
from besag.vocabulary import Vocabulary

EXOTIC = {
    "big_bird": {"attention_type": "original_full"},
    "convbert": {},
    "deberta-v2": {"legacy": False},  # its head multiplies by the embeddings of its base model
    "esm": {"token_dropout": False, "position_embedding_type": "absolute"},
    "eurobert": {"num_key_value_heads": 2},
    "fnet": {},
    "funnel": {},
    "longformer": {},
    "megatron-bert": {},
    "nystromformer": {},
    "roformer": {},
    "squeezebert": {
        "embedding_size": 32, "q_groups": 1, "k_groups": 1, "v_groups": 1, "post_attention_groups": 1,
        "intermediate_groups": 1, "output_groups": 1,
    },
    "xlm": {},
}  # fmt: skip


class HeadOnIds(BertForMaskedLM):
    """A head that looks at the token ids again: it breaks when it is given hidden rows in their place."""

    def forward(self, input_ids=None, **inputs):
        answer = super().forward(input_ids=input_ids, **inputs)
        answer.logits = answer.logits + self.bert.embeddings.word_embeddings(input_ids).sum(-1, keepdim=True)
        return answer


class HeadOnNeighbours(BertForMaskedLM):
    """A head that mixes neighbouring rows: it runs on rows alone, and says something else."""

    def forward(self, input_ids=None, **inputs):
        answer = super().forward(input_ids=input_ids, **inputs)
        answer.logits = answer.logits + answer.logits.roll(1, dims=1)
        return answer


class OtherPrefix(BertForMaskedLM):
    base_model_prefix = "nowhere"


def network(family: str, **changes) -> Transformer:
    return Transformer(tiny(family, **changes), vocabulary(family))


def random_ids(words: Vocabulary, shape: tuple[int, int], seed: int = 0) -> torch.Tensor:
    ordinary = torch.tensor([token for token in range(words.size) if token not in words.special_ids])
    return ordinary[torch.randint(len(ordinary), shape, generator=torch.Generator().manual_seed(seed))]


def questions(words: Vocabulary, length: int = 9) -> Questions:
    """Three sequences with one, two and three hidden places; asked in no order, one of them twice, one unhidden."""
    ids = random_ids(words, (3, length))
    row, place = torch.tensor([2, 0, 1, 2, 1, 2, 2, 0]), torch.tensor([1, 4, 0, 5, 8, 1, 7, 2])
    ids[row[:-1], place[:-1]] = words.mask_id
    return Questions(ids, row, place)


@torch.no_grad()
def plain_loop(model, asked: Questions, **inputs) -> torch.Tensor:
    """(M, V): one sequence at a time through the whole network, as its own users would run it."""
    said = []
    for row, place in zip(asked.row.tolist(), asked.place.tolist(), strict=True):
        one = {name: value[row : row + 1] for name, value in inputs.items()}
        ids = asked.ids[row : row + 1]
        if "attention_mask" in inspect.signature(model.forward).parameters:
            one.setdefault("attention_mask", torch.ones_like(ids))
        said.append(model(input_ids=ids, **one).logits[0, place])
    return torch.stack(said)


@torch.no_grad()
def answers(who: Transformer, asked: Questions) -> torch.Tensor:
    return who.head(who.rows(asked))


@pytest.mark.parametrize("family", MASKED_FAMILIES)
@torch.no_grad()
def test_head_on_asked_rows_says_what_the_whole_network_says(family):
    who = network(family)
    asked = questions(who.vocabulary)
    assert isinstance(who, Conditionals)
    assert (who.sees, who.split, who.pads) == ("both", True, True)
    assert who.rows(asked).shape[0] == 8
    said, right = answers(who, asked), plain_loop(who.model, asked)
    assert said.shape == (8, who.width)
    assert gap(said, right) < 1e-4
    assert right.std() > 0.1  # the numbers do differ


@pytest.mark.parametrize("family", EXOTIC)
@torch.no_grad()
def test_exotic_families_split_or_fall_back_with_the_same_numbers(family):
    who = network(family, **EXOTIC[family])
    asked = questions(who.vocabulary)
    assert gap(answers(who, asked), plain_loop(who.model, asked)) < 1e-4


@pytest.mark.parametrize("odd", [HeadOnIds, HeadOnNeighbours, OtherPrefix])
@torch.no_grad()
def test_a_head_that_cannot_be_split_falls_back_to_full_logits(odd):
    model = tiny("bert")
    model.__class__ = odd
    who = Transformer(model, vocabulary("bert"))
    asked = questions(who.vocabulary)
    rows = who.rows(asked)
    assert not who.split
    assert who.head(rows) is rows
    assert rows.shape == (8, who.width)
    assert gap(rows, plain_loop(model, asked)) < 1e-5


def with_pads(words: Vocabulary, asked: Questions) -> Questions:
    """The same with the pad token in the midst of each text, and at the start of the first."""
    ids = asked.ids.clone()
    ids[:, 3] = ids[0, 0] = words.pad_id
    return asked._replace(ids=ids)


@pytest.mark.parametrize("family", [*MASKED_FAMILIES, "xlm", "longformer"])
@pytest.mark.parametrize("padding", [0, 4])
@torch.no_grad()
def test_a_pad_token_in_a_text_is_read_as_transformers_reads_it(family, padding):
    """Whether and where it counts as a place is the network's affair, padded or not."""
    who = network(family)
    asked = with_pads(who.vocabulary, questions(who.vocabulary))
    right = plain_loop(who.model, asked)
    more = torch.full((3, padding), who.vocabulary.pad_id)
    if padding:
        mask = torch.cat([torch.ones_like(asked.ids), torch.zeros_like(more)], 1)
        asked = asked._replace(ids=torch.cat([asked.ids, more], 1), context={"attention_mask": mask})
    assert gap(answers(who, asked), right) < 1e-4


@pytest.mark.parametrize("family", ["roberta", "xlm-roberta", "xlm-roberta-xl", "mpnet", "longformer", "camembert"])
@torch.no_grad()
def test_where_pad_tokens_are_no_places_they_move_what_follows(family):
    who = network(family)
    asked = with_pads(who.vocabulary, questions(who.vocabulary))
    counted = torch.arange(9).expand(3, 9) + who.model.config.pad_token_id + 1
    assert gap(answers(who, asked), plain_loop(who.model, asked, position_ids=counted)) > 1e-2


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
@torch.inference_mode()
def test_a_pad_token_in_a_text_is_replayed_as_transformers_reads_it():
    who = Transformer(tiny("roberta").cuda(), vocabulary("roberta"))
    asked = with_pads(who.vocabulary, questions(who.vocabulary))
    asked = Questions(*(part.cuda() for part in asked[:3]))
    right = plain_loop(who.model, asked)
    for _ in range(OFTEN + 3):
        assert gap(answers(who, asked), right) < 1e-4
    assert who.replay.graphs


@pytest.mark.parametrize("family", [*MASKED_FAMILIES, "xlm", "longformer"])
@torch.no_grad()
def test_padding_on_the_right_changes_nothing(family):
    who = network(family)
    assert who.pads
    words = who.vocabulary
    asked = questions(words)
    right = answers(who, asked)
    padding = torch.full((3, 4), words.pad_id)
    mask = torch.cat([torch.ones_like(asked.ids), torch.zeros_like(padding)], dim=1)
    padded = asked._replace(ids=torch.cat([asked.ids, padding], dim=1), context={"attention_mask": mask})
    assert gap(answers(who, padded), right) < 1e-5


@pytest.mark.parametrize("family", ["convbert", "fnet", "funnel"])
def test_families_that_padding_changes_are_not_padded(family):
    assert not network(family).pads


@pytest.mark.parametrize("family", ["bert", "roberta", "esm", "deberta-v2"])
@torch.no_grad()
def test_nothing_is_changed_in_the_users_model(family):
    model = tiny(family).eval()
    asked = questions(vocabulary(family))
    before = model(asked.ids, attention_mask=torch.ones_like(asked.ids)).logits
    weights = {name: weight.clone() for name, weight in model.state_dict().items()}
    modules = [(name, id(module), type(module)) for name, module in model.named_modules()]
    own = {name: id(value) for name, value in vars(model).items()}
    config = model.config.to_dict()
    who = Transformer(model, vocabulary(family))
    answers(who, asked)
    assert who.model is model
    assert modules == [(name, id(module), type(module)) for name, module in model.named_modules()]
    assert own == {name: id(value) for name, value in vars(model).items()}
    assert config == model.config.to_dict()
    assert weights.keys() == model.state_dict().keys()
    assert all(torch.equal(weight, model.state_dict()[name]) for name, weight in weights.items())
    assert torch.equal(before, model(asked.ids, attention_mask=torch.ones_like(asked.ids)).logits)


def test_the_network_is_set_to_evaluation_and_still_learns():
    model = tiny("bert", hidden_dropout_prob=0.5).train()
    who = Transformer(model, vocabulary("bert"))
    assert not model.training
    asked = questions(who.vocabulary)
    who.head(who.rows(asked)).logsumexp(-1).sum().backward()
    touched = {name for name, weight in model.named_parameters() if weight.grad is not None and weight.grad.abs().sum()}
    assert {"bert.encoder.layer.0.attention.self.query.weight", "cls.predictions.transform.dense.weight"} <= touched


def test_a_small_network_is_probed_on_one_thread_and_runs_on_all():
    """Threads that wait for one another would cost more than loading does."""
    before, threads, model = torch.get_num_threads(), [], tiny("bert")
    model.bert.register_forward_pre_hook(lambda *_: threads.append(torch.get_num_threads()))
    torch.set_num_threads(3)
    try:
        who = Transformer(model, vocabulary("bert"))
        probes = len(threads)
        answers(who, questions(who.vocabulary))
    finally:
        torch.set_num_threads(before)
    assert probes > 0
    assert threads == [1] * probes + [3] * (len(threads) - probes)
    assert len(threads) > probes


def given_to_the_base_model(who: Transformer, asked: Questions) -> set[str]:
    """The names of the inputs that are not None when the base model runs."""
    seen: set[str] = set()
    base = getattr(who.model, who.model.base_model_prefix)
    hook = base.register_forward_pre_hook(
        lambda _, __, inputs: seen.update(name for name, value in inputs.items() if value is not None), with_kwargs=True
    )
    answers(who, asked)
    hook.remove()
    return seen - {"use_cache"}


@pytest.mark.parametrize(
    ("family", "given"),
    [
        ("bert", {"input_ids"}),
        ("modernbert", {"input_ids"}),
        ("besag", {"input_ids"}),
        ("roberta", {"input_ids"}),
        ("mpnet", {"input_ids"}),
        ("xlm", {"input_ids", "attention_mask"}),
    ],
)
def test_a_mask_is_given_only_where_a_pad_token_would_mislead(family, given):
    who = network(family)
    assert given_to_the_base_model(who, questions(who.vocabulary)) == given


@torch.no_grad()
def test_token_types_reach_a_network_that_has_them():
    who = network("bert")
    asked = questions(who.vocabulary)
    types = (torch.arange(9) > 4).long().expand(3, 9)
    said = answers(who, asked._replace(context={"token_type_ids": types}))
    assert gap(said, plain_loop(who.model, asked, token_type_ids=types)) < 1e-4
    assert gap(said, answers(who, asked)) > 1e-2
    other = network("distilbert")
    asked = questions(other.vocabulary)
    assert torch.equal(answers(other, asked._replace(context={"token_type_ids": types})), answers(other, asked))


@torch.no_grad()
def test_a_head_wider_than_the_tokenizer():
    who = network("bert", vocab_size=vocabulary("bert").size + 29)
    asked = questions(who.vocabulary)
    assert who.width == who.vocabulary.size + 29
    assert gap(answers(who, asked), plain_loop(who.model, asked)) < 1e-4


@torch.no_grad()
def test_a_pad_row_that_the_tokenizer_does_not_know_of():
    """The tokenizer has an ordinary token where the network keeps its padding row: read as transformers reads it."""
    words = Vocabulary.of_symbols([f"w{index}" for index in range(20)])
    model = tiny("roberta", vocab_size=words.size)
    asked = questions(words)
    asked.ids[:, 3] = model.config.pad_token_id
    said = answers(Transformer(model, words), asked)
    assert gap(said, plain_loop(model, asked)) < 1e-4


@pytest.mark.parametrize(
    ("family", "changes", "limit"),
    [
        ("bert", {}, 40),
        ("deberta-v2", {}, 40),
        ("modernbert", {}, 40),
        ("besag", {}, 40),
        ("esm", {}, 40),
        ("esm", {"position_embedding_type": "absolute"}, 38),
        ("roberta", {}, 38),
        ("xlm-roberta", {}, 38),
        ("xlm-roberta-xl", {}, 38),
        ("camembert", {}, 38),
        ("mpnet", {}, 38),
        ("longformer", {}, 38),
    ],
)
@torch.no_grad()
def test_the_longest_sequence_runs(family, changes, limit):
    who = network(family, **changes)
    assert who.max_length == limit
    asked = questions(who.vocabulary, length=limit)
    assert gap(answers(who, asked), plain_loop(who.model, asked)) < 1e-4


def test_the_longest_sequence_is_the_smaller_of_two_limits():
    model = tiny("bert")
    assert longest(model, SimpleNamespace(model_max_length=int(1e30))) == 40
    assert longest(model, SimpleNamespace(model_max_length=16)) == 16
    assert longest(model, SimpleNamespace(model_max_length=64)) == 40
    endless = SimpleNamespace(config=SimpleNamespace(), named_modules=model.named_modules)
    assert longest(endless, SimpleNamespace(model_max_length=int(1e30))) is None
    assert longest(endless, SimpleNamespace(model_max_length=512)) == 512


@torch.no_grad()
def test_a_network_with_few_places_and_few_tokens():
    words = Vocabulary.of_symbols(["a", "b"])
    who = Transformer(tiny("bert", vocab_size=3, max_position_embeddings=4, pad_token_id=None), words)
    asked = Questions(torch.tensor([[0, 2, 1, 0]]), torch.tensor([0]), torch.tensor([1]))
    assert gap(answers(who, asked), plain_loop(who.model, asked)) < 1e-4


def test_float64_stays_float64():
    who = Transformer(tiny("bert").double(), vocabulary("bert"))
    assert who.dtype == torch.float64
    assert who.split
    assert answers(who, questions(who.vocabulary)).dtype == torch.float64


def test_name():
    assert network("bert").name == "BertForMaskedLM"
    assert Transformer(tiny("bert"), vocabulary("bert"), name="my model").name == "my model"


def refusal(model, words: Vocabulary) -> str:
    with pytest.raises(BesagError) as caught:
        Transformer(model, words, name="this one")
    assert "'this one'" in str(caught.value)
    return str(caught.value)


def test_refused_without_a_mask_token():
    words = Vocabulary(copy.deepcopy(vocabulary("bert").tokenizer))
    words.mask_id = words.mask_token = None
    assert "no mask token, so it cannot be asked about a hidden place" in refusal(tiny("bert"), words)


@pytest.mark.parametrize("headless", [BertModel, BertForSequenceClassification, BertForTokenClassification])
def test_refused_without_a_head_over_the_vocabulary(headless):
    message = refusal(headless(tiny("bert").config), vocabulary("bert"))
    assert headless.__name__ in message
    assert "has no head that gives every place a logit" in message
    assert "ForMaskedLM" in message


def test_refused_when_causal():
    assert "is a causal model" in refusal(tiny("bert", is_decoder=True), vocabulary("bert"))


def test_refused_when_encoder_decoder():
    from transformers import BartConfig, BartForConditionalGeneration

    config = BartConfig(
        vocab_size=200, d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16, max_position_embeddings=40,
    )  # fmt: skip
    assert "encoder-decoder" in refusal(BartForConditionalGeneration(config), vocabulary("bert"))


def test_refused_when_the_tokenizer_has_ids_beyond_the_embeddings():
    message = refusal(tiny("bert", vocab_size=vocabulary("bert").size - 3), vocabulary("bert"))
    assert f"the id {vocabulary('bert').size - 1}" in message


def test_refused_when_it_answers_with_nan():
    model = tiny("bert")
    model.bert.embeddings.word_embeddings.weight.data.fill_(float("nan"))
    assert "NaN" in refusal(model, vocabulary("bert"))


def test_refused_when_it_needs_more_than_ids():
    assert "cannot be run on token ids alone" in refusal(tiny("xmod", languages=("en_XX",)), vocabulary("xmod"))


# ---- compiled layers


@pytest.fixture
def fresh_compiler():
    """Nothing that was compiled before, or that broke, is remembered."""
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.slow
@pytest.mark.parametrize("family", ["bert", "modernbert", "besag"])
@pytest.mark.usefixtures("fresh_compiler")
def test_compiled_layers_say_the_same_for_all_shapes(family):
    plain, compiled = (Transformer(tiny(family), vocabulary(family)) for _ in range(2))
    compiled.compile(backend="aot_eager")
    assert any(layer._compiled_call_impl for layer in compiled.model.modules())
    for shape in ((3, 5), (1, 9), (4, 12)):
        ids = torch.randint(5, 20, shape)
        questions = Questions(ids=ids, row=torch.arange(shape[0]), place=torch.full((shape[0],), 2))
        with torch.inference_mode():
            torch.testing.assert_close(compiled.rows(questions), plain.rows(questions), atol=1e-5, rtol=1e-5)


@pytest.mark.usefixtures("fresh_compiler")
def test_a_sum_over_layers_is_compiled_in_each_however_many_there_are():
    """torch by itself gives up after eight."""
    graphs = []

    def counting(graph, inputs):
        graphs.append(graph)
        return graph.forward

    plain, compiled = (Transformer(tiny("besag", num_hidden_layers=12), vocabulary("besag")) for _ in range(2))
    compiled.compile(backend=counting)
    sums = [graph for graph in graphs if "addcmul_" in graph.code and "linear" not in graph.code]
    assert sorted(graph.code.count("addcmul_(") for graph in sums) == list(range(1, 13))
    asked = questions(plain.vocabulary)
    with torch.inference_mode():
        torch.testing.assert_close(compiled.rows(asked), plain.rows(asked), atol=1e-5, rtol=1e-5)


def breaks(graph, inputs):
    raise RuntimeError("no compiler here")


def lies(graph, inputs):
    return lambda *values: [part * 3 if part.is_floating_point() else part for part in graph(*values)]


@pytest.mark.parametrize(
    ("backend", "why"), [(breaks, "it broke: .*no compiler here"), (lies, "its numbers differ by")]
)
@pytest.mark.usefixtures("fresh_compiler")
def test_what_cannot_be_compiled_runs_as_it_is(backend, why):
    plain, other = (Transformer(tiny("bert"), vocabulary("bert")) for _ in range(2))
    with pytest.warns(UserWarning, match=rf"(?s)runs as it is, not compiled: {why}"):
        other.compile(backend=backend)
    questions = Questions(ids=torch.randint(5, 20, (2, 6)), row=torch.arange(2), place=torch.tensor([1, 3]))
    with torch.inference_mode():
        torch.testing.assert_close(other.rows(questions), plain.rows(questions))


def test_compiling_is_for_cuda():
    with pytest.warns(UserWarning, match="compile=True is for CUDA, and this is cpu: not compiled"):
        lm = besag.load((tiny("bert"), vocabulary("bert").tokenizer), compile=True)
    assert not any(layer._compiled_call_impl for layer in lm.model.modules())
