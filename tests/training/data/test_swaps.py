"""Words and their counterparts: what is exchanged, what keeps its case, which documents, where the words then stand."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import tokenizers

from besag import masks
from besag.errors import BesagError
from besag.training.data import sources
from besag.training.data.batch_plan import BatchPlan
from besag.training.data.cache import build_cache
from besag.training.data.clock import Clock
from besag.training.data.loader import BatchDataset
from besag.training.data.rows import Document
from besag.training.data.swaps import Swaps
from besag.training.recipe import Data
from besag.vocabulary import Vocabulary

GENDER = Swaps.read("gender", 1.0)


@pytest.mark.parametrize(
    ("text", "swapped"),
    [
        ("He saw her.", "She saw him."),
        ("She gave him her book, and HE gave hers.", "He gave her his book, and SHE gave his."),
        ("The book is his. His wife took it from him.", "The book is hers. Her husband took it from her."),
        ("We met her yesterday with her two sons.", "We met him yesterday with his two daughters."),
        ("Her mother's sister, Mrs. Smith, was an actress.", "His father's brother, Mr. Smith, was an actor."),
        ("The human theme: manage the sheriff.", "The human theme: manage the sheriff."),  # parts of words are none
        ("A hero and a heroine; mr. x misses it.", "A heroine and a hero; mr. x misses it."),
        ("", ""),
    ],
)
def test_by_hand(text, swapped):
    assert GENDER.swapped(text)[0] == swapped


def test_all_at_once_so_that_twice_is_nothing():
    text = "The king and his queen, the boys' fathers, a policewoman; she said that men marry women."
    once, _ = GENDER.swapped(text)
    assert once == "The queen and her king, the girls' mothers, a policeman; he said that women marry men."
    assert GENDER.swapped(once)[0] == text


@settings(max_examples=100, deadline=None)
@given(st.text(st.sampled_from("heHEsr im.'é\n"), max_size=40), st.booleans())
def test_spans_are_where_the_words_stand(text, change):
    """Everything outside them is the text as it was, and every one of them a word of the table."""
    swapped, spans = GENDER.swapped(text, change=change)
    words = {word.lower() for word in GENDER.table}
    assert all(swapped[start:end].lower() in words for start, end in spans)
    if not change:
        assert swapped == text
    _, again = GENDER.swapped(swapped, change=False)
    assert again == spans

    def outside(whole, places):
        ends = [0, *(end for _, end in places)]
        starts = [*(start for start, _ in places), len(whole)]
        return [whole[end:start] for end, start in zip(ends, starts, strict=True)]

    assert outside(swapped, spans) == outside(text, GENDER.swapped(text, change=False)[1])


def test_a_share_of_the_documents_each_as_a_whole():
    texts = [f"He took his hat, number {number}, and she hers." for number in range(2000)]
    half = Swaps.read("gender", 0.25)
    made = [half(Document(text, None, "here")).text for text in texts]
    assert {text.split(",")[0] for text in made} == {"He took his hat", "She took her hat"}
    changed = [text.startswith("She") for text in made]
    assert all(text.endswith("he his." if one else "she hers.") for text, one in zip(made, changed, strict=True))
    assert abs(sum(changed) - 500) < 5 * (2000 * 0.25 * 0.75) ** 0.5
    assert [text for text, one in zip(made, changed, strict=True) if not one] == [
        text for text, one in zip(texts, changed, strict=True) if not one
    ]
    assert not any(Swaps.read("gender", 0.0).chosen(text) for text in texts)


def table(path, text):
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_table_of_ones_own(tmp_path):
    """In lower case it fits any case, with a capital only itself; of several rows the first that fits decides."""
    own = table(tmp_path / "own.tsv", "one\tother\tbefore\nMark\tMary\t\ncup\tglass\t\\s+of tea\ncup\tmug\t\n")
    swaps = Swaps.read(own, 1.0)
    assert swaps.swapped("Mark a mark: a Cup of tea, a CUP.")[0] == "Mary a mark: a Glass of tea, a MUG."
    assert swaps.swapped("a glass of tea, a glass of wine")[0] == "a cup of tea, a glass of wine"
    assert swaps.swapped("a glass of wine")[1] == []  # it has no counterpart there


def test_training_text_is_swapped_and_held_out_text_is_not(tmp_path):
    text = "".join(f"He is number {number}.\n" for number in range(60))
    data = Data(train=(table(tmp_path / "a.txt", text),), held_out=0.3, swap="gender", swap_rate=1.0)
    train, valid = ([*sources.documents(data, side)] for side in ("train", "valid"))
    assert len(train) + len(valid) == 60
    assert len(valid) > 5
    assert {one.text[:3] for one in train} == {"She"}
    assert {one.text[:3] for one in valid} == {"He "}
    assert {tuple(one.spans) for one in train} == {((0, 3),)}
    plain = Data(train=data.train, held_out=0.3)
    assert [one.text for one in sources.documents(plain, "valid")] == [one.text for one in valid]


def test_a_law_about_spans_hides_the_words_of_the_table_and_asks_for_the_counterpart(tmp_path):
    """Of "cats" and "dogs" the mask is at either, and the answer is what stands there after the exchange."""
    vocabulary = Vocabulary(tokenizers.build("wordpiece-cased"))
    own = table(tmp_path / "own.tsv", "one\tother\ncats\tdogs\n")
    file = table(tmp_path / "a.txt", "".join(f"The cats sleep on the mat {'. ' * n}\n" for n in range(1, 20)))
    shown = "The [MASK] sleep on the mat"
    for rate, expected in ((0.0, {"cats"}), (1.0, {"dogs"}), (0.5, {"cats", "dogs"})):
        data = Data(train=(file,), held_out=0.0, swap=own, swap_rate=rate, unit="documents", max_length=40,
                    batch_tokens=400)  # fmt: skip
        cache = build_cache(sources.documents(data), vocabulary, tmp_path / f"cache-{rate}")
        law = masks.law("entities", rest="none")
        masking = masks.Masking(law, masks.rate_named("constant", 1.0), masks.Replacement(vocabulary.mask_id))
        batch = BatchDataset(
            BatchPlan(cache, data, special=2, seed=1, unpadded=False), vocabulary, masking, Clock(steps=1), seed=1
        )[0]
        hidden = (batch.inputs == vocabulary.mask_id).numpy()
        answers = {vocabulary.token(int(id)) for id in batch.ids.numpy()[hidden]}
        assert answers == expected
        for row in range(batch.layout.rows):
            text = vocabulary.tokenizer.decode(batch.inputs[batch.layout.row == row])
            assert shown in " ".join(text.split())


def test_another_table_or_rate_is_another_cache(tmp_path):
    file = table(tmp_path / "a.txt", "He is here.\n")
    own = table(tmp_path / "own.tsv", "one\tother\nhere\tthere\n")
    made = [
        sources.fingerprint(Data(train=(file,), **options))
        for options in ({}, {"swap": "gender"}, {"swap": "gender", "swap_rate": 0.4}, {"swap": own})
    ]
    assert all(one != other for at, one in enumerate(made) for other in made[:at])
    before = made[-1]
    table(tmp_path / "own.tsv", "one\tother\nhere\tyonder\n")
    assert sources.fingerprint(Data(train=(file,), swap=own)) != before
    assert sources.fingerprint(Data(train=(file,), swap=own), "valid") == sources.fingerprint(
        Data(train=(file,)), "valid"
    )


def test_wrong_tables_are_answered(tmp_path):
    with pytest.raises(BesagError, match=r"data.swap = 'gendre' is neither a table of besag \(gender\).*'gender'"):
        Swaps.read("gendre", 0.5)
    with pytest.raises(BesagError, match=r"line 2: 'he' and '': give a word and its counterpart"):
        Swaps.read(table(tmp_path / "a.tsv", "one\tother\nhe\t\n"), 0.5)
    with pytest.raises(BesagError, match=r"before is '\(', which is no regular expression"):
        Swaps.read(table(tmp_path / "b.tsv", "one\tother\tbefore\nhe\tshe\t(\n"), 0.5)
    with pytest.raises(BesagError, match=r"'one'"):
        Swaps.read(table(tmp_path / "c.tsv", "oen\tother\nhe\tshe\n"), 0.5)
