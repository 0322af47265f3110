"""Models by name, loaded when asked for, within a budget."""

import copy
import threading
import time
import weakref

import pytest
from tests.networks import tiny, vocabulary
from tests.service.serving import bert, table

import besag
from besag.admission import Busy, Stopped
from besag.asking import Asking
from besag.errors import BesagError
from besag.service import shelf as module
from besag.service.desk import through
from besag.service.shelf import Shelf, UnknownModel, size


@pytest.fixture
def counted(monkeypatch):
    """Three models of 10 bytes each, and which were loaded."""
    loaded = []
    monkeypatch.setattr(module, "size", lambda lm: 10)
    return loaded, {name: (lambda name=name: loaded.append(name) or table()) for name in ("a", "b", "c")}


def ask(shelf, name):
    with shelf.borrowed(name) as (lm, _):
        return lm.score("s0 s1 s2 s0").total


def test_names_and_methods():
    shelf = Shelf({"one": table, "two:pll": table})
    assert shelf.known(None) == ("one", None)
    assert shelf.known("one:word_l2r") == ("one", "word_l2r")
    assert shelf.known("two:pll") == ("two:pll", None)
    with pytest.raises(UnknownModel, match=r"no model 'onne' .* Did you mean 'one'\? There are: one, two:pll"):
        shelf.known("onne")


def test_a_model_is_loaded_once_and_when_it_is_asked(counted):
    loaded, loaders = counted
    shelf = Shelf(loaders)
    threads = [threading.Thread(target=ask, args=(shelf, "b")) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert loaded == ["b"]
    assert shelf.close(5)


def test_what_was_asked_longest_ago_makes_room(counted):
    loaded, loaders = counted
    shelf = Shelf(loaders, memory=20)
    for name in "abacab":
        ask(shelf, name)
    assert loaded == ["a", "b", "c", "b"]
    assert [shelf.loaded(name) is not None for name in "abc"] == [True, True, False]
    shelf.close(5)


def test_a_model_that_is_asked_stays(counted):
    _, loaders = counted
    shelf = Shelf(loaders, memory=10)
    with shelf.borrowed("a"), pytest.raises(Busy), shelf.borrowed("b"):
        pass
    assert ask(shelf, "b")
    shelf.close(5)


def test_what_can_never_fit_is_said(counted):
    _, loaders = counted
    with pytest.raises(BesagError, match="takes 10 bytes, and models may take 5"):
        ask(Shelf(loaders, memory=5), "a")


def test_what_can_never_fit_is_loaded_once(counted, monkeypatch):
    loaded, loaders = counted
    shelf = Shelf(loaders, memory=15)
    ask(shelf, "a")
    monkeypatch.setattr(module, "size", lambda lm: 20)
    for _ in range(2):
        with pytest.raises(BesagError, match="serve it with more"):
            ask(shelf, "b")
    assert loaded == ["a", "b"]
    assert shelf.loaded("a")  # nobody was put away for it
    shelf.close(5)


def test_two_that_are_loaded_at_once_keep_to_the_budget(counted):
    _, loaders = counted

    def slowly(load):
        return lambda: time.sleep(0.1) or load()

    shelf = Shelf({name: slowly(load) for name, load in loaders.items()}, memory=10)
    beside = []  # of each that was borrowed: who else was there, while it could not be put away

    def try_again(name):
        while True:
            try:
                with shelf.borrowed(name) as (lm, _):
                    lm.score("s0 s1 s2 s0")
                    beside.append([other for other in "abc" if other != name and shelf.loaded(other)])
                return
            except Busy:
                time.sleep(0.01)

    threads = [threading.Thread(target=try_again, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert beside == [[], [], []]
    shelf.close(5)


def test_what_is_put_away_is_gone():
    made = []

    def load():
        network = copy.deepcopy(tiny("bert")).eval()
        made.append(weakref.ref(network))
        return besag.load((network, vocabulary("bert").tokenizer), device="cpu", progress=False)

    shelf = Shelf({"a": load, "b": load}, memory=1.5 * size(bert()))
    for name in "ab":
        with shelf.borrowed(name) as (lm, scheduler), scheduler.admit(100) as ticket:
            assert through(lm, Asking(lm.engine, scheduler, ticket)).score("the cat sat").total
            del lm
    end = time.monotonic() + 5
    while made[0]() is not None and time.monotonic() < end:
        time.sleep(0.01)  # the thread of the device has heard of it
    assert [one() is None for one in made] == [True, False]
    shelf.close(5)


def test_a_closed_shelf_lends_nothing():
    shelf = Shelf({"one": table})
    assert shelf.close(1)
    with pytest.raises(Stopped):
        ask(shelf, "one")


def test_a_table_has_no_weights():
    assert size(table()) == 0
