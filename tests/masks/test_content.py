import numpy as np
import pytest
from tests.masks.example_passages import plain, ragged, repeated, statistics

from besag.errors import BesagError
from besag.masks import Statistics, law
from besag.masks.content import by_frequency

TOKENS = ("[MASK]", "the", "a", "cat", "dog", "runs", "eats", "odd")
CORPUS = Statistics(np.array([0, 40, 20, 10, 10, 8, 8, 4]), [], frozenset({0}), TOKENS)
DRAWS = 20_000


@pytest.fixture
def classes(tmp_path) -> str:
    file = tmp_path / "classes.tsv"
    file.write_text("the\tD\na\tD\ncat\tN\ndog\tN\nruns\tV\neats\tV\n")
    return str(file)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def observed(made, *losses):
    ids = np.array([1, 3, 5, 7])[: len(losses)]
    made.observe(ids, np.array(losses), np.zeros(len(ids), bool))
    return made


def test_classes_by_frequency_hold_a_tenth_of_the_text_each():
    share = np.array([0.25, 0.05, 0.3, 0.1, 0.05, 0.25])
    kind = by_frequency(share)
    assert kind.tolist() == [3, 9, 0, 8, 9, 5]
    many = by_frequency(np.full(1000, 1e-3))
    assert np.bincount(many).tolist() == [100] * 10


def test_weights_are_the_published_ones(classes):
    made = law("content", classes=classes, decay=0.9).prepare(CORPUS)
    assert made.weights == pytest.approx([0.5] * 4)  # D, N, V and the rest
    observed(made, 1.0, 3.0, 4.0)
    losses = np.array([1.0, 3.0, 4.0])
    assert made.weights[:3] == pytest.approx(sigmoid(2 * (losses - losses.mean()) / losses.std()))
    assert made.weights[3] == 0.5  # not seen yet
    made.observe(np.array([1, 2, 2]), np.array([2.0, 5.0, 5.0]), np.zeros(3, bool))
    assert made.state()["losses"][:3] == pytest.approx([0.9 * 1 + 0.1 * 4, 3.0, 4.0])


def test_all_alike_is_one_half(classes):
    assert observed(law("content", classes=classes).prepare(CORPUS), 2.0, 2.0, 2.0, 2.0).weights.tolist() == [0.5] * 4


def by_hand(weights, budget, once, rng) -> np.ndarray:
    hidden, left = np.zeros(len(weights), bool), budget
    order = rng.permutation(len(weights))
    while left:
        for word in order:
            if left and not hidden[word] and rng.random() < weights[word]:
                hidden[word] = True
                left -= 1
        if once:
            break
    return hidden


@pytest.mark.parametrize("once", [False, True])
def test_words_enter_as_published(classes, once):
    """Against the procedure itself: shuffled, entering with the chance of the class, until the budget is spent."""
    made = observed(law("content", classes=classes, once=once).prepare(CORPUS), 0.5, 3.0, 1.0, 1.5)
    ids = np.array([1, 2, 3, 4, 5, 7])
    weights = made.weights[made._class[ids]]
    assert weights.max() > 3 * weights.min()
    rng = np.random.default_rng(0)
    wanted = np.mean([by_hand(weights, 3, once, rng) for _ in range(DRAWS)], axis=0)
    hidden = made.choose(repeated(plain(6)._replace(ids=ids), DRAWS), np.full(DRAWS, 0.5), 0.0, 1).reshape(DRAWS, 6)
    assert (hidden.sum(1) <= 3).all()
    assert (hidden.sum(1) == 3).all() != once
    assert abs(hidden.mean(0) - wanted).max() < 4.5 * np.sqrt(2 * 0.25 / DRAWS)


def test_a_word_has_the_class_of_its_first_token_and_is_hidden_whole(classes):
    made = observed(law("content", classes=classes).prepare(CORPUS), 0.1, 4.0, 0.1, 0.1)
    one = plain(6)._replace(ids=np.array([3, 1, 1, 3, 1, 1]), word=np.array([0, 0, 1, 1, 2, 3]))  # cat-the, the-cat
    hidden = made.choose(repeated(one, DRAWS), np.full(DRAWS, 1 / 3), 0.0, 1).reshape(DRAWS, 6)
    assert (hidden[:, 0] == hidden[:, 1]).all()
    assert (hidden[:, 2] == hidden[:, 3]).all()
    assert hidden[:, 0].mean() > 2 * hidden[:, 3].mean()


def test_no_word_is_split():
    passages = ragged([60] * 30, seed=8, joined=0.5)
    hidden = law("content").prepare(statistics()).choose(passages, np.full(30, 0.4), 0.0, 1)
    name = passages.row * 1000 + passages.word
    for number in np.unique(name[passages.free]):
        assert len(set(hidden[(name == number) & passages.free].tolist())) == 1


def test_what_is_learned_is_saved_and_restored(classes):
    made = observed(law("ptw", classes=classes).prepare(CORPUS), 0.5, 3.0)
    other = law("ptw", classes=classes).prepare(CORPUS)
    other.restore(made.state())
    assert other.weights.tolist() == made.weights.tolist()
    assert np.isnan(other.state()["losses"][2:]).all()


def test_a_class_file_without_a_known_word(tmp_path):
    file = tmp_path / "classes.tsv"
    file.write_text("der\tD\n")
    with pytest.raises(BesagError, match="none of the 1 words"):
        law("content", classes=str(file)).prepare(CORPUS)


# ---- parts of speech in context


TAGS = ("NOUN", "VERB")
TAGGED = Statistics(
    CORPUS.counts, [], CORPUS.special, TOKENS,
    np.array([[0, 0], [0, 0], [0, 0], [10, 0], [6, 4], [0, 8], [1, 7], [0, 0]]),  # dog: a noun, or to dog
)  # fmt: skip


def hard_verbs():
    """Of the tokens `dog` and `eats`, verbs are predicted badly and nouns well; words without a tag in between."""
    made = law("content").prepare(TAGGED)
    ids, tag = np.array([4, 4, 1, 6]), np.array([0, 1, -1, 1])
    made.observe(ids, np.array([0.5, 4.0, 2.0, 6.0]), np.zeros(4, bool), tag)
    return made


def test_with_tags_a_class_is_what_a_word_is_in_its_context():
    made = hard_verbs()
    assert made.state()["losses"] == pytest.approx([0.5, 5.0, 2.0])  # nouns, verbs, words without a tag
    losses = np.array([0.5, 5.0, 2.0])
    assert made.weights == pytest.approx(sigmoid(2 * (losses - losses.mean()) / losses.std()))


def test_the_same_word_is_hidden_as_often_as_its_part_of_speech_here():
    """Which no table over the vocabulary can do: all six words are the same token."""
    made = hard_verbs()
    tag = np.array([0, 1, -1, 0, 1, -1])
    weights = made.weights[[0, 1, 2, 0, 1, 2]]
    one = plain(6)._replace(ids=np.full(6, 4), tag=tag)
    hidden = made.choose(repeated(one, DRAWS), np.full(DRAWS, 0.5), 0.0, 1).reshape(DRAWS, 6)
    rng = np.random.default_rng(0)
    wanted = np.mean([by_hand(weights, 3, False, rng) for _ in range(DRAWS)], axis=0)
    assert abs(hidden.mean(0) - wanted).max() < 4.5 * np.sqrt(2 * 0.25 / DRAWS)
    assert hidden[:, 1].mean() > 1.5 * hidden[:, 0].mean()


def test_without_tags_the_classes_are_those_of_the_table():
    made = law("content").prepare(CORPUS)
    assert made._class.tolist() == by_frequency(CORPUS.counts / 100).tolist()
    one = plain(6)._replace(ids=np.array([1, 2, 3, 4, 5, 7]))
    with_tags = one._replace(tag=np.array([0, 1, 0, 1, 0, 1]))
    rate = np.array([0.5])
    assert made.choose(one, rate, 0.0, 1).tolist() == made.choose(with_tags, rate, 0.0, 1).tolist()


def test_tags_that_were_promised_and_are_missing_are_told():
    with pytest.raises(BesagError, match="was made for text with tags: 6 tokens have 0 of them here"):
        law("content").prepare(TAGGED).choose(plain(6), np.array([0.5]), 0.0, 1)


def test_the_tilt_is_the_mean_over_the_tags_that_a_token_has():
    """By hand on a long passage drawn from the corpus: how often each token is hidden, whatever it was there."""
    made, rate, size = hard_verbs(), 0.3, 400_000
    rng = np.random.default_rng(1)
    share = TAGGED.counts / TAGGED.counts.sum()
    ids = rng.choice(len(share), size, p=share)
    each = np.column_stack([TAGGED.tagged, TAGGED.counts - TAGGED.tagged.sum(1)])[ids]
    tag = (rng.random(size)[:, None] * each.sum(1, keepdims=True) >= each.cumsum(1)).sum(1)
    passage = plain(size)._replace(ids=ids, tag=np.where(tag == 2, -1, tag))
    hidden = made.choose(passage, np.array([rate]), 0.0, 1)
    found = np.array([hidden[ids == token].mean() for token in range(1, len(share))])
    expected = np.exp(made.tilt(rate))[1:] * rate
    assert found == pytest.approx(expected, abs=0.02)
    assert expected[3] < expected[5] - 0.1  # the dog is a noun more often than the eater
