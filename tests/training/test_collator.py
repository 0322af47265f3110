import numpy as np
import pytest
import torch
from tests import tokenizers
from tests.masks.example_passages import of_texts
from tests.networks import tiny
from torch.utils.data import DataLoader

from besag.errors import BesagError
from besag.masks import Statistics, law
from besag.masks.units import budget
from besag.training.collator import MaskingCollator
from besag.vocabulary import Vocabulary

TEXTS = list(tokenizers.SENTENCES)


class Texts(torch.utils.data.Dataset):
    """Tokenised sentences, each with its number of noise if `drawn`."""

    def __init__(self, tokenizer, drawn=True, times=4):
        self.rows = [dict(tokenizer(text)) for text in TEXTS * times]
        for number, row in enumerate(self.rows):
            row |= {"draw": number + 100} if drawn else {}

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]


def test_what_comes_out_is_padded_and_labelled():
    tokenizer = tokenizers.build("wordpiece-uncased")
    clean = [tokenizer(text)["input_ids"] for text in TEXTS]
    batch = MaskingCollator(tokenizer, rate=0.3, pad_to_multiple_of=8)([{"input_ids": ids} for ids in clean])
    assert set(batch) == {"input_ids", "attention_mask", "labels"}
    assert {tuple(part.shape) for part in batch.values()} == {(6, 24)}
    assert all(part.dtype == torch.int64 for part in batch.values())
    for ids, shown, seen, labels in zip(
        clean, batch["attention_mask"], batch["input_ids"], batch["labels"], strict=True
    ):
        size = len(ids)
        assert shown.tolist() == [1] * size + [0] * (24 - size)
        assert (seen[size:] == tokenizer.pad_token_id).all()
        assert (labels[size:] == -100).all()
        asked = (labels != -100).nonzero()[:, 0].tolist()
        assert asked
        assert {0, size - 1}.isdisjoint(asked)  # [CLS], [SEP]
        assert [labels[at] for at in asked] == [ids[at] for at in asked]
        assert [at for at in range(size) if seen[at] != ids[at]] == asked
        assert all(seen[at] == tokenizer.mask_token_id for at in asked)


@pytest.mark.parametrize("family", tokenizers.FAMILIES)
def test_the_masks_are_those_of_the_law_for_every_tokenizer(family):
    tokenizer = tokenizers.build(family)
    texts = TEXTS if family != "character-slow" else ["L A G V", "S E R"]
    passages = of_texts(Vocabulary(tokenizer), texts)
    if family == "wordpiece-slow":  # the text glues punctuation to words, the tokens do not
        passages = of_texts(Vocabulary(tokenizers.build("wordpiece-uncased")), texts)
    expected = law("whole_word").choose(passages, np.full(len(texts), 0.4), 0.0, seed=7)
    examples = [{"input_ids": tokenizer(text)["input_ids"], "draw": row} for row, text in enumerate(texts)]
    batch = MaskingCollator(tokenizer, rate=0.4, seed=7)(examples)
    asked = (batch["labels"] != -100)[batch["attention_mask"] > 0].numpy()
    assert asked.tolist() == expected.tolist()


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_masks_do_not_depend_on_workers_or_on_the_batch(workers):
    tokenizer = tokenizers.build("bytelevel-untrimmed")
    collator = MaskingCollator(tokenizer, "span", rate=0.4, seed=3, mask=0.8, random=0.1, keep=0.1, predict=0.5)
    texts = Texts(tokenizer)
    expected = {row["draw"]: collator([row]) for row in texts}
    size = 3 + workers
    for epoch in range(2):  # without set_epoch a draw is a draw
        seen = 0
        for start, batch in enumerate(DataLoader(texts, size, num_workers=workers, collate_fn=collator)):
            for row, (ids, labels) in enumerate(zip(batch["input_ids"], batch["labels"], strict=True)):
                one = expected[100 + start * size + row]
                length = one["labels"].shape[1]
                assert ids[:length].tolist() == one["input_ids"][0].tolist(), epoch
                assert labels[:length].tolist() == one["labels"][0].tolist()
                seen += 1
        assert seen == len(texts)


@pytest.mark.parametrize("workers", [0, 2])
def test_another_epoch_has_other_masks(workers):
    tokenizer = tokenizers.build("wordpiece-cased")
    collator = MaskingCollator(tokenizer, rate=0.3)
    loader = DataLoader(Texts(tokenizer), 24, num_workers=workers, collate_fn=collator)
    epochs = []
    for epoch in (0, 1, 0):
        collator.set_epoch(epoch)
        epochs.append(torch.cat([batch["labels"] for batch in loader]))
    assert (epochs[0] == epochs[2]).all()
    assert (epochs[0] != epochs[1]).any()


@pytest.mark.parametrize("workers", [0, 2])
def test_without_draws_masks_are_new_each_time_and_return_with_the_seed(workers):
    tokenizer = tokenizers.build("wordpiece-cased")
    runs = []
    for _ in range(2):
        torch.manual_seed(5)
        collator = MaskingCollator(tokenizer, rate=0.3)
        loader = DataLoader(Texts(tokenizer, drawn=False), 6, num_workers=workers, collate_fn=collator)
        runs.append([torch.stack([batch["labels"] for batch in loader]) for _ in range(2)])  # two epochs
    assert (runs[0][0] == runs[1][0]).all()
    assert (runs[0][1] == runs[1][1]).all()
    assert (runs[0][0] != runs[0][1]).any()  # from epoch to epoch
    first = runs[0][0]  # four batches of the same six sentences
    assert len({str(batch.tolist()) for batch in first}) == 4


def test_progress_moves_the_rate_in_workers_too():
    tokenizer = tokenizers.build("wordpiece-cased")
    collator = MaskingCollator(tokenizer, "uniform", rate=0.6, rate_law="linear", end_rate=0.1)
    loader = DataLoader(Texts(tokenizer), 6, num_workers=1, collate_fn=collator, persistent_workers=True)
    counts = []
    for progress in (0.0, 1.0):
        collator.set_progress(progress)
        counts.append(sum(int((batch["labels"] != -100).sum()) for batch in loader))
    free = sum(sum(id not in tokenizer.all_special_ids for id in row["input_ids"]) for row in loader.dataset)
    assert counts == pytest.approx([0.6 * free, 0.1 * free], rel=0.15)


def test_given_fields_are_obeyed():
    tokenizer = tokenizers.build("wordpiece-uncased")
    tokens = tokenizer("the cats sleep on the souvenir", padding="max_length", max_length=12)
    row = {**tokens, "word_ids": [None, 0, 0, 0, 1, 1, 2, 2, None, None, None, None], "draw": 0}
    assert len(row["input_ids"]) == 12
    for draw in range(30):
        batch = MaskingCollator(tokenizer, rate=0.5)([row | {"draw": draw}])
        asked = (batch["labels"][0] != -100).tolist()
        assert asked[1] == asked[2] == asked[3]
        assert asked[4] == asked[5]
        assert sum(asked) <= 4
        assert not any([asked[0], *asked[8:]])
    assert batch["attention_mask"].tolist() == [row["attention_mask"]]
    assert batch["token_type_ids"].tolist() == [row["token_type_ids"]]
    kept = MaskingCollator(tokenizer, "uniform", rate=1.0)([row | {"special_tokens_mask": [1] * 5 + [0] * 7}])
    assert (kept["labels"][0] != -100).nonzero()[:, 0].tolist() == [5, 6, 7, 8]  # [SEP] too, if it is said to be text


def test_padding_on_the_left_changes_no_mask():
    tokenizer = tokenizers.build("wordpiece-cased")
    rows = [{"input_ids": tokenizer(text)["input_ids"], "draw": row} for row, text in enumerate(TEXTS)]
    right = MaskingCollator(tokenizer)(rows)
    tokenizer.padding_side = "left"
    left = MaskingCollator(tokenizer)(rows)
    assert left["attention_mask"][0, 0] == 0
    for name in ("input_ids", "labels"):
        there, here = (batch[name][batch["attention_mask"] > 0] for batch in (right, left))
        assert (there == here).all()


@pytest.mark.parametrize("family", ["bytelevel-untrimmed", "bytelevel-trimmed", "wordpiece-cased"])
def test_spans_in_characters_become_tokens(family):
    tokenizer = tokenizers.build(family)
    text = "A man is at the casino with the souvenir."
    row = dict(tokenizer(text, return_offsets_mapping=True))
    spans = [(2, 5), (16, 22)]  # man, casino
    batch = MaskingCollator(tokenizer, "entities", 1.0, options={"rest": "none"})([row | {"spans": spans}])
    asked = np.flatnonzero(batch["labels"][0] != -100)
    assert (
        "".join(tokenizer.decode([row["input_ids"][at]]) for at in asked).replace(" ", "").replace("#", "")
        == "mancasino"
    )
    errors = MaskingCollator(tokenizer, "error_aware", 1.0)([row | {"spans": spans}])
    free = np.flatnonzero(~np.isin(row["input_ids"], tokenizer.all_special_ids))
    assert sorted([*asked, *np.flatnonzero(errors["labels"][0] != -100)]) == free.tolist()
    by_token = [0 if at in asked else None for at in range(len(row["input_ids"]))]
    again = MaskingCollator(tokenizer, "error_aware", 1.0)([{"input_ids": row["input_ids"], "span_ids": by_token}])
    assert (again["labels"] == errors["labels"]).all()


def test_unknown_tokens_are_text_and_masks_are_not():
    tokenizer = tokenizers.build("wordpiece-cased")
    ids = tokenizer("The [MASK] ☃ sleeps")["input_ids"]
    batch = MaskingCollator(tokenizer, "uniform", 1.0)([ids])
    labels = batch["labels"][0].tolist()
    assert tokenizer.unk_token_id in labels
    assert tokenizer.mask_token_id not in labels
    row = {"input_ids": ids, "special_tokens_mask": [1, *[0] * (len(ids) - 2), 1]}
    assert MaskingCollator(tokenizer, "uniform", 1.0)([row])["labels"][0].tolist() == labels


def test_a_token_that_is_in_no_word_is_one():
    tokenizer = tokenizers.build("wordpiece-cased")
    row = {
        "input_ids": tokenizer("The cat at the mat", add_special_tokens=False)["input_ids"],
        "word_ids": [0, 0, *[None] * 3],
    }
    asked = [MaskingCollator(tokenizer, rate=0.4)([row | {"draw": draw}])["labels"][0] != -100 for draw in range(60)]
    assert {tuple(line.nonzero()[:, 0].tolist()) for line in asked} == {(0, 1), (2, 3), (2, 4), (3, 4)}


def test_a_tokenizer_without_words_is_not_believed_when_it_calls_a_sentence_one():
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    backend = Tokenizer(models.WordLevel({"[MASK]": 0, "▁a": 1, "b": 2, "▁c": 3, "[PAD]": 4}, unk_token="b"))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, mask_token="[MASK]", pad_token="[PAD]")
    ids = [1, 2, 3, 2, 2]
    for draw in range(20):
        batch = MaskingCollator(tokenizer, rate=0.4)([{"input_ids": ids, "word_ids": [0] * 5, "draw": draw}])
        assert (batch["labels"][0] != -100).tolist() == [True, True, False, False, False]  # a word of two, one of three


def test_tables_from_the_corpus_are_used():
    tokenizer = tokenizers.build("wordpiece-uncased")
    documents = [np.array(tokenizer(text, add_special_tokens=False)["input_ids"]) for text in TEXTS * 3]
    counts = np.bincount(np.concatenate(documents), minlength=len(tokenizer))
    told = Statistics(
        counts,
        documents,
        frozenset(tokenizer.all_special_ids),
        tuple(tokenizer.convert_ids_to_tokens(range(len(tokenizer)))),
    )
    batch = MaskingCollator(tokenizer, "frequency", statistics=told)(Texts(tokenizer).rows)
    assert (batch["labels"] != -100).any()
    with pytest.raises(BesagError, match=r"give statistics=besag.masking_statistics"):
        MaskingCollator(tokenizer, "frequency")(Texts(tokenizer).rows)


def test_laws_that_learn_stay_in_the_main_process():
    tokenizer = tokenizers.build("wordpiece-uncased")
    told = Statistics(np.ones(len(tokenizer), int), [np.arange(5, 20)], frozenset(range(5)), ("a",) * len(tokenizer))
    collator = MaskingCollator(tokenizer, "loss_weighted", statistics=told)
    assert (collator(Texts(tokenizer).rows)["labels"] != -100).any()
    with pytest.raises(BesagError, match="num_workers=0"):
        next(iter(DataLoader(Texts(tokenizer), 6, num_workers=1, collate_fn=collator)))


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"ids": [1]}, "needs input_ids; this one has ids"),
        ({"input_ids": [[1, 2]]}, r"got shape \(1, 2\)"),
        ({"input_ids": [1, 2], "word_ids": [0]}, "2 numbers, one for each"),
        ({"input_ids": [1, 10**6]}, "input_ids has 1000000, and the tokenizer knows the ids 0 …"),
        ({"input_ids": [1, -100]}, "input_ids has -100"),
        ({"input_ids": [1, 2], "spans": [(0, 1)]}, "need offset_mapping"),
    ],
)
def test_examples_that_cannot_be_read_are_refused(row, said):
    with pytest.raises(BesagError, match=said):
        MaskingCollator(tokenizers.build("wordpiece-uncased"))([row])


@pytest.mark.parametrize("name", ["entities", "error_aware"])
def test_a_law_about_spans_is_not_left_without_them(name):
    collator = MaskingCollator(tokenizers.build("wordpiece-uncased"), name)
    with pytest.raises(BesagError, match=f"'{name}' is about given spans.*remove_unused_columns=False"):
        collator([{"input_ids": [5, 6, 7]}])
    assert collator([{"input_ids": [5, 6, 7], "span_ids": [-1, -1, -1]}])["input_ids"].shape == (1, 3)


def test_collators_that_cannot_be_are_refused():
    tokenizer = tokenizers.build("wordpiece-uncased")
    with pytest.raises(BesagError, match="Did you mean 'whole_word'"):
        MaskingCollator(tokenizer, "whole-word")
    with pytest.raises(BesagError, match="no option 'longst'"):
        MaskingCollator(tokenizer, "span", options={"longst": 3})
    with pytest.raises(BesagError, match="has its options already"):
        MaskingCollator(tokenizer, law("span"), options={"longest": 3})
    with pytest.raises(BesagError, match="at least one example"):
        MaskingCollator(tokenizer)([])
    tokenizer.mask_token = None
    with pytest.raises(BesagError, match="no mask token"):
        MaskingCollator(tokenizer)


def test_a_trainer_trains_with_it(tmp_path):
    pytest.importorskip("accelerate")
    from transformers import Trainer, TrainingArguments

    tokenizer = tokenizers.build("wordpiece-uncased")
    collator = MaskingCollator(tokenizer, rate=0.6, rate_law="linear", end_rate=0.2)
    rates, epochs = [], []

    def spy(features):
        assert all("draw" in feature for feature in features)
        rates.append(collator.masking.rate.at(float(collator._clock[0]), np.zeros(1), 0)[0])
        epochs.append(int(collator._clock[1]))
        return collator(features)

    arguments = TrainingArguments(
        str(tmp_path), max_steps=8, per_device_train_batch_size=6, learning_rate=3e-3, logging_steps=1, seed=1,
        save_strategy="no", report_to=[], use_cpu=True, remove_unused_columns=False, disable_tqdm=True,
    )  # fmt: skip
    trainer = Trainer(
        tiny("bert", initializer_range=0.02), arguments, data_collator=spy, train_dataset=Texts(tokenizer),
        callbacks=[collator.callback()],
    )  # fmt: skip
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert len(losses) == 8
    assert np.isfinite(losses).all()
    assert losses[-1] < losses[0]
    assert rates[0] > rates[-1] > 0.2
    assert sorted(set(epochs)) == [0, 1]  # four batches an epoch


def test_the_budget_holds_for_a_batch_of_everything():
    tokenizer = tokenizers.build("unigram")
    passages = of_texts(Vocabulary(tokenizer), TEXTS)
    examples = [{"input_ids": tokenizer(text)["input_ids"], "draw": row} for row, text in enumerate(TEXTS)]
    batch = MaskingCollator(tokenizer, "ngram", rate=0.25, seed=2)(examples)
    counts = (batch["labels"] != -100).sum(1).numpy()
    assert (counts <= budget(passages, np.full(6, 0.25), 2)).all()
    assert counts.sum() > 10


@pytest.mark.parametrize(
    "options",
    [{"tokenizer": 5}, {"law": 5}, {"law": "span", "options": 5}, {"law": "span", "options": {1: 2}}, {"rate": "much"},
     {"rate": None}, {"rate_law": 5}, {"rate_law": "linear", "end_rate": "x"}, {"hold": "x", "rate_law": "linear",
     "end_rate": 0.1}, {"mask": "all"}, {"mask": None}, {"per": 5}, {"predict": "x"}, {"statistics": 5}, {"seed": 0.5},
     {"seed": 10**30}, {"seed": None}, {"pad_to_multiple_of": 0}, {"pad_to_multiple_of": 10**9},
     {"rate": float("nan")}],
    ids=str,
)  # fmt: skip
def test_arguments_of_other_types_are_told(options):
    with pytest.raises(BesagError):
        MaskingCollator(**{"tokenizer": tokenizers.build("wordpiece-uncased"), **options})


@pytest.mark.parametrize(
    "batch",
    [5, None, "text", {"input_ids": [1]}, [5], [None], ["text"], [[1.5]], [{"input_ids": None}], [{"input_ids": ["a"]}],
     [{"input_ids": [1, 2], "draw": "x"}], [{"input_ids": [1, 2], "draw": -1}], [{"input_ids": [1, 2], "draw": 10**30}],
     [{"input_ids": [1, 2], "attention_mask": "ab"}], [{"input_ids": [[1], [1, 2]]}],
     [{"input_ids": [1, 2], "spans": 5, "offset_mapping": [(0, 1), (1, 2)]}],
     [{"input_ids": [1, 2], "spans": [(0, 1)], "offset_mapping": [(0, 1)]}], [{"input_ids": [10**30]}]],
    ids=str,
)  # fmt: skip
def test_batches_of_other_types_are_told(batch):
    collator = MaskingCollator(tokenizers.build("wordpiece-uncased"), "uniform")
    with pytest.raises(BesagError):
        collator(batch)
    for setter, value in ((collator.set_progress, "x"), (collator.set_progress, 2.0), (collator.set_epoch, 0.5)):
        with pytest.raises(BesagError):
            setter(value)
