import itertools
import time

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.laws import Arbitrary, Counting

import besag.batches
import besag.buckets
import besag.engine
import besag.pooling
from besag import noise
from besag.conditionals.contract import Questions
from besag.conditionals.table import Table
from besag.engine import IDLE, Engine, Plan, Request
from besag.errors import BesagError
from besag.reductions import Entropy, Logit, Rank, Row, Sample, Target, Top


def random_questions(generator: np.random.Generator, width: int, length: int) -> Questions:
    """Some sequences with hidden places, asked at some of them, several times and in no order."""
    ids = generator.integers(0, width + 1, size=(generator.integers(1, 4), length))
    ids[:, generator.integers(0, length)] = width
    row, place = np.nonzero(ids == width)
    pick = generator.integers(0, len(row), size=generator.integers(1, 6))
    arrays = ids, row[pick], place[pick], generator.integers(0, width, len(pick))
    tensors = [torch.from_numpy(array) for array in arrays]
    return Questions(*tensors, uniform=torch.from_numpy(generator.random(len(pick))))


def one(questions: Questions, *reduce) -> Plan[dict[str, np.ndarray]]:
    ids, row, place, target, context, uniform, _ = questions
    arrays = [None if part is None else part.numpy() for part in (ids, row, place, target, uniform)]
    return (yield Request(reduce, *arrays, {name: part.numpy() for name, part in context.items()}))


WANTED = Target(), Rank(), Entropy(), Row(), Top(2), Sample()


def by_hand(law: Arbitrary, questions: Questions) -> list[dict[str, np.ndarray]]:
    answers = []
    columns = (questions.row, questions.place, questions.target, questions.uniform)
    for row, place, target, uniform in zip(*(column.tolist() for column in columns), strict=True):
        log_probs = law.log_probs(questions.ids[row].tolist(), place)
        order = np.argsort(-log_probs)
        answers.append(
            {
                "target": log_probs[target],
                "rank": 1 + (log_probs > log_probs[target]).sum(),
                "row": log_probs,
                "entropy": -(np.exp(log_probs) * log_probs).sum(),
                "top_ids": order[:2],
                "top_log_probs": log_probs[order[:2]],
                "sample": np.searchsorted(np.cumsum(np.exp(log_probs)), uniform, side="right"),
            }
        )
    return answers


@given(st.integers(0, 10_000), st.integers(1, 40), st.integers(1, 20))
def test_answers_are_right_and_in_order_whatever_the_batch(seed, batch_tokens, count):
    generator = np.random.default_rng(seed)
    law = Arbitrary(3)
    asked = [random_questions(generator, 3, int(generator.integers(1, 5))) for _ in range(count)]
    got = list(Engine(law, batch_tokens=batch_tokens).run(one(questions, *WANTED) for questions in asked))
    for questions, answers in zip(asked, got, strict=True):
        for number, expected in enumerate(by_hand(law, questions)):
            for key, value in expected.items():
                np.testing.assert_allclose(answers[key][number], value, atol=1e-12, err_msg=key)


@given(st.integers(0, 1000), st.randoms(use_true_random=False))
def test_order_of_askers_changes_nothing_exactly(seed, random):
    generator = np.random.default_rng(seed)
    asked = [random_questions(generator, 3, 4) for _ in range(8)]
    shuffled = list(range(8))
    random.shuffle(shuffled)
    law = Table.random(3, 4, seed)
    straight = list(Engine(law, batch_tokens=16).run(one(q, *WANTED) for q in asked))
    mixed = list(Engine(law, batch_tokens=1000).run(one(asked[i], *WANTED) for i in shuffled))
    for position, i in enumerate(shuffled):
        for key in straight[i]:
            np.testing.assert_array_equal(mixed[position][key], straight[i][key])


def test_identical_sequences_share_a_pass_but_never_a_draw():
    law = Counting(Arbitrary(5))
    ids = torch.tensor([[5, 1]])
    zero = torch.tensor([0])
    plans = [
        one(Questions(ids, zero, zero, uniform=torch.from_numpy(noise.uniform(0, chain, [0]))), Sample(), Row())
        for chain in range(300)
    ]
    answers = list(Engine(law).run(plans))
    assert law.sequences == [(5, 1)]
    assert law.head_rows == 1
    counts = np.bincount([int(answer["sample"][0]) for answer in answers], minlength=5)
    expected = np.exp(answers[0]["row"][0]) * 300
    assert ((counts - expected) ** 2 / expected).sum() < 18.5  # chi-square, 4 degrees of freedom: p ≈ 0.001


def test_context_is_part_of_what_makes_questions_identical():
    law = Counting(Arbitrary(3))
    questions = [
        Questions(
            torch.tensor([[3, 1]]),
            torch.tensor([0]),
            torch.tensor([0]),
            torch.tensor([1]),
            {"kind": torch.tensor([[kind]])},
        )
        for kind in (0, 1, 0)
    ]
    list(Engine(law).run(one(q, Target()) for q in questions))
    assert len(law.sequences) == 2


def test_nothing_is_padded_unless_allowed():
    law = Counting(Arbitrary(3))
    asked = [random_questions(np.random.default_rng(n), 3, 2 + n % 3) for n in range(12)]
    list(Engine(law).run(one(q, Target()) for q in asked))
    assert all(len({len(sequence) for sequence in batch}) == 1 for batch in law.batches)
    assert len(law.batches) == 3  # one a length


class Padding(Arbitrary):
    """Understands an attention mask: the padded end is cut off before it is looked at."""

    pads = True

    def rows(self, questions: Questions) -> torch.Tensor:
        mask = questions.context.get("attention_mask", torch.ones_like(questions.ids))
        assert mask.shape == questions.ids.shape
        rows = []
        for row, place in zip(questions.row.tolist(), questions.place.tolist(), strict=True):
            rows.append(torch.from_numpy(self.logits(questions.ids[row][mask[row].bool()].tolist(), place)))
        return torch.stack(rows)


def test_starving_buckets_share_a_padded_batch_and_answers_stay_right():
    law = Counting(Padding(3))
    asked = [random_questions(np.random.default_rng(n), 3, 17 + n % 3) for n in range(9)]
    got = list(Engine(law).run(one(q, *WANTED) for q in asked))
    assert len(law.batches) == 1
    for questions, answers in zip(asked, got, strict=True):
        for number, expected in enumerate(by_hand(law.inner, questions)):
            assert answers["target"][number] == pytest.approx(expected["target"])


def test_padding_never_wastes_more_than_its_share():
    law = Counting(Padding(3))
    asked = [random_questions(np.random.default_rng(n), 3, 2 + 9 * n) for n in range(5)]
    list(Engine(law).run(one(q, Target()) for q in asked))
    assert len(law.batches) == 5


def adaptive(law_width: int, length: int) -> Plan[list[int]]:
    """Fill a sequence place by place with the likeliest token, each step asking from what the last one answered."""
    ids = [law_width] * length
    for place in range(length):
        answers = yield Request((Top(1),), np.array([ids]), np.array([0]), np.array([place]))
        ids[place] = int(answers["top_ids"][0, 0])
    return ids


@given(st.lists(st.integers(0, 6), min_size=1, max_size=12), st.integers(1, 30))
def test_adaptive_plans_of_any_length_run_together(lengths, batch_tokens):
    law = Arbitrary(3)

    def expected(length: int) -> list[int]:
        ids = [3] * length
        for place in range(length):
            ids[place] = int(np.argmax(law.logits(ids, place)))
        return ids

    got = list(Engine(law, batch_tokens=batch_tokens).run(adaptive(3, length) for length in lengths))
    assert got == [expected(length) for length in lengths]


def test_long_adaptive_plans_do_not_recurse():
    assert len(next(Engine(Arbitrary(2), batch_tokens=1).run([adaptive(2, 1500)]))) == 1500


def test_one_set_of_questions_of_any_integer_type():
    law = Arbitrary(3)
    questions = random_questions(np.random.default_rng(5), 3, 4)
    short = questions._replace(ids=questions.ids.to(torch.int32))
    for asked in (questions, short):
        answers = Engine(law).answer(asked, WANTED)
        for number, expected in enumerate(by_hand(law, questions)):
            assert answers["target"][number] == pytest.approx(expected["target"])


def test_an_empty_request_is_answered_with_nothing():
    def plan() -> Plan[str]:
        empty = np.empty(0, dtype=np.int64)
        answers = yield Request((Target(),), np.empty((0, 3), dtype=np.int64), empty, empty, empty)
        assert answers == {}
        return "done"

    assert list(Engine(Arbitrary(2)).run([plan()])) == ["done"]


def test_an_endless_source_streams_from_a_bounded_number_of_plans(monkeypatch):
    monkeypatch.setattr(besag.engine, "MOST_IN_LINE", 50)
    taken = 0

    def source():
        nonlocal taken
        for number in itertools.count():
            taken += 1
            yield one(random_questions(np.random.default_rng(number), 3, 3), Target())

    results = Engine(Arbitrary(3), batch_tokens=40).run(source())
    for _ in range(200):
        next(results)
    assert taken <= 200 + 50
    results.close()


def test_the_first_in_line_does_not_wait_until_its_bucket_fills():
    taken = 0

    def source():
        nonlocal taken
        for number in itertools.count():
            taken += 1
            yield one(random_questions(np.random.default_rng(number), 3, 3 if number else 2), Target())

    results = Engine(Arbitrary(3), batch_tokens=30).run(source())
    next(results)
    assert taken < 60
    results.close()


def test_identical_questions_without_end_do_not_pile_up():
    taken = 0

    def source():
        nonlocal taken
        while True:
            taken += 1
            yield one(
                Questions(torch.tensor([[2, 0]]), torch.tensor([0]), torch.tensor([0]), torch.tensor([0])), Target()
            )

    results = Engine(Arbitrary(2), batch_tokens=64).run(source())
    next(results)
    assert taken <= 64
    results.close()


def test_an_idle_source_gets_what_waits_at_once():
    seen = []

    def source():
        yield one(random_questions(np.random.default_rng(0), 3, 3), Target())
        yield IDLE
        seen.append("asked for more")
        yield one(random_questions(np.random.default_rng(1), 3, 3), Target())

    results = Engine(Arbitrary(3)).run(source())
    next(results)
    assert seen == []
    assert len(list(results)) == 1


class Narrow(Arbitrary):
    """Runs out of memory beyond a number of sequences."""

    def __init__(self, room: int) -> None:
        super().__init__(3)
        self.room = room

    def rows(self, questions: Questions) -> torch.Tensor:
        if len(questions.ids) > self.room:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return super().rows(questions)


def test_out_of_memory_halves_the_batch_and_changes_no_answer():
    asked = [random_questions(np.random.default_rng(n), 3, 4) for n in range(30)]
    roomy, narrow = Engine(Arbitrary(3)), Engine(Narrow(3))
    expected = list(roomy.run(one(q, *WANTED) for q in asked))
    got = list(narrow.run(one(q, *WANTED) for q in asked))
    assert narrow.batch_tokens <= 3 * 4 * 1.5
    for left, right in zip(expected, got, strict=True):
        for key in left:
            np.testing.assert_array_equal(left[key], right[key])


def test_one_sequence_that_does_not_fit_is_said():
    with pytest.raises(BesagError, match="one sequence of 4 tokens does not fit"):
        Engine(Narrow(0)).answer(random_questions(np.random.default_rng(0), 3, 4), Target())


def test_other_failures_are_not_taken_for_memory():
    class Broken(Arbitrary):
        def rows(self, questions):
            raise RuntimeError("shape mismatch")

    with pytest.raises(RuntimeError, match="shape mismatch"):
        Engine(Broken(3)).answer(random_questions(np.random.default_rng(0), 3, 4), Target())


def test_nan_is_never_silent():
    class Nan(Arbitrary):
        def head(self, rows):
            return rows * float("nan")

    with pytest.raises(BesagError, match="answered with NaN"):
        Engine(Nan(3)).answer(random_questions(np.random.default_rng(0), 3, 4), Target())


def test_the_head_runs_in_chunks(monkeypatch):
    monkeypatch.setitem(besag.batches.HEAD_BYTES, "cpu", 2 * 4 * 3)  # two rows of three
    law = Counting(Arbitrary(3))
    sizes = []
    inner = law.head
    law.head = lambda rows: (sizes.append(len(rows)), inner(rows))[1]  # type: ignore[method-assign]
    asked = [random_questions(np.random.default_rng(n), 3, 4) for n in range(10)]
    got = list(Engine(law).run(one(q, *WANTED) for q in asked))
    assert max(sizes) <= 2
    for questions, answers in zip(asked, got, strict=True):
        for number, expected in enumerate(by_hand(law.inner, questions)):
            assert answers["target"][number] == pytest.approx(expected["target"])


def test_a_plan_that_fails_is_heard_and_the_others_are_closed():
    closed = []

    def failing() -> Plan[None]:
        yield from one(random_questions(np.random.default_rng(0), 3, 3), Target())
        raise BesagError("no")

    def waiting() -> Plan[None]:
        try:
            yield from one(random_questions(np.random.default_rng(0), 3, 2), Target())
        finally:
            closed.append(True)

    with pytest.raises(BesagError, match="no"):
        list(Engine(Arbitrary(3)).run([failing(), waiting()]))
    assert closed == [True]


def test_batch_tokens_must_be_positive():
    with pytest.raises(BesagError, match="batch_tokens=0: give a whole number, at least 1"):
        Engine(Arbitrary(3), batch_tokens=0)


def test_progress_goes_to_stderr_only_when_wanted(capsys):
    asked = [random_questions(np.random.default_rng(n), 3, 4) for n in range(3)]
    list(Engine(Arbitrary(3), progress=False).run(one(q, Target()) for q in asked))
    assert capsys.readouterr() == ("", "")


def test_several_targets_an_ask():
    law = Arbitrary(4)
    generator = np.random.default_rng(3)
    asked = [random_questions(generator, 4, 3)._replace(uniform=None) for _ in range(6)]
    many = [
        q._replace(target=torch.from_numpy(generator.integers(0, 4, (len(q.row), t)))) for t in (1, 2, 5) for q in asked
    ]
    got = list(Engine(law, batch_tokens=20).run(one(q, Target(), Logit()) for q in (*asked, *many)))  # pooled by shape
    for questions, answers in zip((*asked, *many), got, strict=True):
        assert answers["target"].shape == tuple(questions.target.shape)
        for number, (row, place) in enumerate(zip(questions.row.tolist(), questions.place.tolist(), strict=True)):
            context, target = questions.ids[row].tolist(), questions.target[number].numpy()
            np.testing.assert_allclose(answers["target"][number], law.log_probs(context, place)[target], atol=1e-12)
            np.testing.assert_allclose(answers["logit"][number], law.logits(context, place)[target], atol=1e-12)


def streamed(engine: Engine, questions: Questions, *reduce) -> dict[str, torch.Tensor]:
    """What a stream hands over, put together, and a check that every ask comes once in order."""
    parts: list[dict[str, torch.Tensor]] = []
    upcoming = 0

    def take(asks: slice, kept: dict[str, torch.Tensor]) -> None:
        nonlocal upcoming
        assert asks.start == upcoming
        upcoming = asks.stop
        assert all(len(value) == asks.stop - asks.start for value in kept.values())
        parts.append(kept)

    engine.stream(questions, reduce, take)
    assert upcoming == len(questions.row)
    return {key: torch.cat([part[key] for part in parts]) for key in parts[0]}


def sorted_questions(count: int = 20, length: int = 3) -> Questions:
    """Sequences of one length, each asked about some hidden places, several times and in no order of places."""
    generator = np.random.default_rng(count)
    ids = generator.integers(0, 3, (count, length))
    ids[:, [0, length - 1]] = 3
    row = np.sort(generator.integers(0, count, 2 * count))  # some are not asked at all
    place = generator.choice([0, length - 1], len(row))
    target, uniform = generator.integers(0, 3, len(row)), generator.random(len(row))
    ids, row, place, target, uniform = (torch.from_numpy(part) for part in (ids, row, place, target, uniform))
    return Questions(ids, row, place, target, uniform=uniform)


@given(st.integers(1, 100), st.integers(1, 10))
def test_a_stream_hands_over_what_a_run_answers(batch_tokens, rows_at_a_time):
    questions = sorted_questions()
    expected = Engine(Arbitrary(3)).answer(questions, WANTED)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(besag.batches.HEAD_BYTES, "cpu", rows_at_a_time * 4 * 3)
        got = streamed(Engine(Arbitrary(3), batch_tokens=batch_tokens), questions, *WANTED)
    for key, value in expected.items():
        np.testing.assert_array_equal(got[key].numpy(), value)


def test_a_stream_runs_each_sequence_once_in_full_batches():
    law = Counting(Arbitrary(3))
    questions = Questions(torch.tensor([[3, 1, 2]] * 40), torch.arange(40), torch.zeros(40, dtype=torch.long))
    streamed(Engine(law, batch_tokens=30), questions, Row())
    assert [len(batch) for batch in law.batches] == [10] * 4  # as they are: nothing is shared
    assert law.head_rows == 40


def test_a_stream_survives_running_out_of_memory():
    questions = sorted_questions(30)
    expected = Engine(Arbitrary(3)).answer(questions, Row())["row"]
    engine, got = Engine(Narrow(3)), torch.full(expected.shape, torch.nan, dtype=torch.float64)

    def take(asks: slice, kept: dict[str, torch.Tensor]) -> None:
        got[asks] = kept["row"]

    engine.stream(questions, Row(), take)
    assert engine.batch_tokens <= 3 * 3 * 1.5
    np.testing.assert_array_equal(got.numpy(), expected)
    with pytest.raises(BesagError, match="one sequence of 3 tokens does not fit"):
        Engine(Narrow(0)).stream(questions, Row(), take)


def test_memory_that_runs_out_in_the_taker_halves_the_batch_too():
    questions = Questions(torch.tensor([[3, 1, 2]] * 40), torch.arange(40), torch.zeros(40, dtype=torch.long))
    taken = []

    def take(asks: slice, kept: dict[str, torch.Tensor]) -> None:
        if asks.stop - asks.start > 10:
            raise MemoryError
        taken.append((asks.start, asks.stop))

    Engine(Arbitrary(3)).stream(questions, Row(), take)
    assert taken == [(start, start + 10) for start in range(0, 40, 10)]


def test_a_stream_is_never_silent_about_nan():
    class Nan(Arbitrary):
        def head(self, rows):
            return torch.where(torch.arange(len(rows))[:, None] == 3, torch.nan, rows)

    with pytest.raises(BesagError, match="answered with NaN"):
        streamed(Engine(Nan(3)), sorted_questions(), Row())

    class Zero(Arbitrary):
        def head(self, rows):
            return torch.where(torch.arange(3) == 1, -torch.inf, rows)

    rows = streamed(Engine(Zero(3)), sorted_questions(), Row())["row"]  # probability 0 is a number
    assert bool((rows[:, 1] == -torch.inf).all())


def test_streamed_asks_come_sorted():
    questions = sorted_questions()
    with pytest.raises(BesagError, match="sorted"):
        streamed(Engine(Arbitrary(3)), questions._replace(row=questions.row.flip(0)), Row())


def test_a_stream_of_nothing():
    empty = torch.empty(0, dtype=torch.long)
    engine = Engine(Arbitrary(3))
    engine.stream(Questions(empty.view(0, 4), empty, empty), Row(), lambda asks, kept: pytest.fail("taken"))
    assert engine.tokens_run == 0


def test_a_stream_shows_its_progress_only_when_wanted(capsys):
    class Slow(Arbitrary):
        def rows(self, questions):
            time.sleep(0.06)
            return super().rows(questions)

    streamed(Engine(Arbitrary(3), batch_tokens=3, progress=False), sorted_questions(), Row())
    assert capsys.readouterr() == ("", "")
    streamed(Engine(Slow(3), batch_tokens=3, progress=True), sorted_questions(), Row())
    out, err = capsys.readouterr()
    assert out == ""
    assert "/20 [" in err
    assert "sequence/s" in err


# ---- answers that stay where the network is


@given(st.integers(0, 100), st.integers(1, 30))
@settings(max_examples=20, deadline=None)
def test_asking_gives_what_answering_gives(seed, batch):
    law = Table.random(3, 4, seed=seed)
    chance = np.random.default_rng(seed)
    ids = torch.from_numpy(np.where(chance.random((5, 4)) < 0.5, 3, chance.integers(0, 3, (5, 4))))
    ids[:, 0] = 3
    row, place = (ids == 3).nonzero(as_tuple=True)
    questions = Questions(ids, row, place)
    asked = Engine(law, batch_tokens=batch, progress=False).ask(questions, [Row(), Entropy()])
    answered = Engine(law, progress=False).answer(questions, [Row(), Entropy()])
    for key, values in answered.items():
        assert np.array_equal(asked[key].numpy(), values)


def test_asking_is_never_silent_about_nan():
    class Broken(Arbitrary):
        def head(self, rows):
            return rows * float("nan")

    engine = Engine(Broken(3), progress=False)
    engine.check()
    engine.ask(Questions(torch.tensor([[3, 3]]), torch.tensor([0]), torch.tensor([0])), Row())
    with pytest.raises(BesagError, match="NaN"):
        engine.check()
    engine.check()  # told once


@pytest.mark.parametrize("steady", [False, True])
def test_a_steady_engine_does_not_look_at_the_clock(monkeypatch, steady):
    """What runs together must not depend on how fast a device is, where the same bytes are wanted again."""
    monkeypatch.setattr(besag.pooling.Work, "_device_idles", lambda self: len(launched) < 1)
    law, launched, seen = Arbitrary(3), [], []
    engine = Engine(law, batch_tokens=9, progress=False)
    if steady:
        engine.repeat()
    launch = engine.launch
    monkeypatch.setattr(engine, "launch", lambda group: (launched.append(len(group.lengths)), launch(group))[1])

    def plan(length):
        hidden = np.full((1, length), 3)
        return (yield Request((Target(),), hidden, np.array([0]), np.array([0]), np.array([1])))

    def plans():
        for length in (3, 4, 5):  # no bucket fills a batch, all of them together do
            yield plan(length)
        seen.append(len(launched))

    assert len(list(engine.run(plans()))) == 3
    assert (seen[-1] > 0) != steady


@pytest.mark.parametrize("measured", [False, True])
def test_an_engine_repeats_what_another_has_found(measured):
    one, other = (Engine(Arbitrary(3), progress=False) for _ in range(2))
    one.batch_tokens, one.measured = 1234, measured
    other.repeat(one.found)
    assert (other.batch_tokens, other.measured, other.steady) == (1234, measured, True)
    assert other.found == one.found
