"""What is on disk after a run, after one that was stopped at any time, and after one that was refused."""

import contextlib
import json
import shutil

import numpy as np
import pytest
import torch

import besag
from besag.errors import BesagError
from besag.files import writing
from besag.samplers import recording as record
from besag.samplers.kernel import State
from besag.samplers.kernels.metropolis import Metropolis
from besag.samplers.recording import Recording
from besag.samplers.run import restore, save

TEXT = "a [MASK] [MASK] b"


@pytest.fixture(scope="module")
def law():
    weights = np.random.default_rng(1).gamma(0.5, size=(3,) * 4)
    return besag.load(besag.Table(weights, symbols=["a", "b", "c"]))


@pytest.fixture
def run(law):
    def sample(file, **options):
        return law.sample(
            TEXT, **{"kernel": "metropolis", "chains": 2, "steps": 6, "every": 2, "record": file} | options
        )

    return sample


def files(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def rows_of(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def stop(*_):
    raise KeyboardInterrupt


def never(*_):
    raise AssertionError("the network was to be run")


def stop_at(step):
    return lambda at, chains, texts: stop() if at == step else None


# ---- Parquet


@pytest.mark.parametrize("group", [1, 5, 10_000])
def test_parquet_holds_what_json_lines_hold(run, tmp_path, monkeypatch, group):
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(writing, "PARQUET_ROWS", group)
    run(tmp_path / "a.jsonl")
    run(tmp_path / "a.parquet")
    found = parquet.read_table(tmp_path / "a.parquet")
    rows = rows_of(tmp_path / "a.jsonl")
    assert found.column_names == list(rows[-1])
    assert {"changed", "passes", "accepted", "log_ratio", "energy"} < set(found.column_names)
    assert found.to_pylist() == [dict.fromkeys(rows[-1]) | row for row in rows]  # null where step 0 says nothing


@pytest.mark.parametrize(("step", "kept"), [(0, [0, 0]), (1, [0, 0]), (3, [0, 0, 2, 2])])
def test_an_interrupted_run_as_parquet_is_whole(run, tmp_path, step, kept):
    parquet = pytest.importorskip("pyarrow.parquet")
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "a.parquet", watch=stop_at(step))
    found = parquet.read_table(tmp_path / "a.parquet")
    assert found["step"].to_pylist() == kept
    assert ("energy" in found.column_names) == (step > 1)


# ---- stopped


@pytest.mark.parametrize("step", [0, 1, 2, 5])
@pytest.mark.parametrize("saved", [20.0, 0.0])
def test_a_run_killed_after_any_step_goes_on(run, tmp_path, monkeypatch, step, saved):
    monkeypatch.setattr(record, "SAVED", saved)
    folder, killed = tmp_path / "run", tmp_path / "killed"
    folder.mkdir()

    def copied(at, chains, texts):  # what a kill would leave
        if at == step:
            shutil.copytree(folder, killed)

    run(folder / "a.jsonl", watch=copied)
    state = np.load(killed / "a.jsonl.state")
    assert state[".step"] == (step if saved == 0 else 0)
    assert len(rows_of(killed / "a.jsonl")) >= 2 * (1 + state[".step"] // 2)
    run(killed / "a.jsonl", resume=True)
    assert files(killed)["a.jsonl"] == files(folder)["a.jsonl"]


@pytest.mark.parametrize("step", [0, 1, 4])
def test_an_interrupted_run_goes_on(run, tmp_path, step):
    run(tmp_path / "whole.jsonl")
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "a.jsonl", watch=stop_at(step))
    run(tmp_path / "a.jsonl", resume=True)
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
def test_a_run_stopped_before_it_began_leaves_nothing(run, tmp_path, monkeypatch, name):
    pytest.importorskip("pyarrow")
    with monkeypatch.context() as patched:
        patched.setattr(Metropolis, "init", stop)
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path / name)
    assert files(tmp_path) == {}
    (tmp_path / name).touch()  # a kill leaves an empty file
    run(tmp_path / name)
    assert (tmp_path / name).stat().st_size


def test_a_state_whose_trace_is_gone_does_not_outlive_the_next_beginning(run, tmp_path, monkeypatch):
    run(tmp_path / "a.jsonl")
    (tmp_path / "a.jsonl").unlink()
    monkeypatch.setattr(Metropolis, "init", stop)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "a.jsonl")
    assert files(tmp_path) == {}


# ---- refused


def cut_to_three(lines):
    return lines[:3]


def unreadable(lines):
    return [*lines[:3], b"\xff{]\n", *lines[4:]]


def one_missing(lines):
    return [*lines[:2], *lines[3:]]


def no_row(lines):
    return [*lines[:3], b"7\n", *lines[4:]]


def half_a_line(lines):
    return [*lines[:-1], lines[-1][:-9]]


def nothing(lines):
    return []


@pytest.mark.parametrize("damage", [cut_to_three, unreadable, one_missing, no_row, half_a_line, nothing])
def test_a_trace_that_lost_rows_is_refused_and_left_alone(run, tmp_path, monkeypatch, damage):
    file = tmp_path / "a.jsonl"
    run(file)
    file.write_bytes(b"".join(damage(file.read_bytes().splitlines(keepends=True))))
    before = files(tmp_path)
    monkeypatch.setattr(Metropolis, "init", never)
    with pytest.raises(BesagError, match=r"'.*a\.jsonl' has lost rows, .* saved at step 6, and line \d is not a whole"):
        run(file, steps=10, resume=True)
    assert files(tmp_path) == before


@pytest.mark.parametrize("more", [b'{"step": 8, "chain": 0, "te', b'{"step": 8}\n', b"\xff\n"])
def test_what_stands_after_the_saved_state_is_written_again(run, tmp_path, more):
    run(tmp_path / "whole.jsonl", steps=10)
    run(tmp_path / "a.jsonl", steps=7)
    with open(tmp_path / "a.jsonl", "ab") as file:
        file.write(more)
    run(tmp_path / "a.jsonl", steps=10, resume=True)
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_the_network_is_not_run_for_another_run(run, tmp_path, monkeypatch):
    run(tmp_path / "a.jsonl")
    monkeypatch.setattr(Metropolis, "init", never)
    with pytest.raises(BesagError, match="is a run with other settings: seed is 1, and was 0"):
        run(tmp_path / "a.jsonl", seed=1, resume=True)


@pytest.mark.parametrize("left", ["nothing", "an empty file", "rows without a step", "a state without rows"])
def test_a_run_that_never_began_is_begun_by_resuming(run, tmp_path, left):
    """As after a kill before the first state was saved: whoever always says resume need not look."""
    run(tmp_path / "whole.jsonl")
    file = tmp_path / "a.jsonl"
    if left == "an empty file":
        file.touch()
    elif left != "nothing":
        run(file)
        save(None, f"{file}.state", json.loads(str(np.load(f"{file}.state")["about"])))
        file.write_bytes(file.read_bytes()[:50] if left == "rows without a step" else b"")
    with pytest.warns(UserWarning, match=r"there is no run to go on with in '.*a\.jsonl': it begins"):
        run(file, resume=True)
    assert file.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_two_at_once_are_refused_and_the_first_is_undisturbed(run, tmp_path):
    run(tmp_path / "whole.jsonl")
    file, refused = tmp_path / "a.jsonl", []

    def meanwhile(step, chains, texts):
        for resume in (False, True):
            with pytest.raises(BesagError, match="is being written by another process") as told:
                run(file, resume=resume)
            refused.append(told)

    run(file, watch=meanwhile)
    assert len(refused) == 2 * 7
    assert file.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert sorted(files(tmp_path)) == ["a.jsonl", "a.jsonl.state", "whole.jsonl", "whole.jsonl.state"]


def test_only_what_can_be_gone_on_with_is_offered_for_it(run, tmp_path):
    pytest.importorskip("pyarrow")
    run(tmp_path / "a.parquet")
    with pytest.raises(BesagError, match=r"a\.parquet' exists already: choose another file\.$"):
        run(tmp_path / "a.parquet")
    run(tmp_path / "a.jsonl")
    with pytest.raises(BesagError, match=r"exists already: go on with it \(resume\), or choose another file\.$"):
        Recording(tmp_path / "a.jsonl", about={}, every=1)
    (tmp_path / "a.jsonl.state").unlink()
    with pytest.raises(BesagError, match=r"a\.jsonl' exists already: choose another file\.$"):
        run(tmp_path / "a.jsonl")


@pytest.mark.parametrize("damage", [lambda old: b"", lambda old: old[: len(old) // 2], lambda old: b"garbage " * 40])
def test_a_damaged_state_is_told_by_its_name(run, tmp_path, damage):
    state = tmp_path / "a.jsonl.state"
    run(tmp_path / "a.jsonl")
    state.write_bytes(damage(state.read_bytes()))
    before = files(tmp_path)
    with pytest.raises(BesagError, match=r"'.*a\.jsonl\.state' cannot be read as the state of a run: .* whole copy"):
        run(tmp_path / "a.jsonl", steps=10, resume=True)
    assert files(tmp_path) == before


def test_no_damage_of_a_state_gives_another_error_or_another_state(tmp_path):
    file, canvas = tmp_path / "state", State(torch.arange(4)[None], None, 3)
    save(canvas, file, {"seed": 7})
    whole = bytearray(file.read_bytes())
    for at in range(0, len(whole), 5):
        for damaged in (whole[:at], whole[:at] + bytes([whole[at] ^ 0x5A]) + whole[at + 1 :]):
            file.write_bytes(damaged)
            with contextlib.suppress(BesagError):  # unless the byte says nothing, such as a date
                found, about = restore(canvas, file)
                assert (found.ids.tolist(), found.step, about) == ([[0, 1, 2, 3]], 3, {"seed": 7})


def test_arrays_that_are_no_state_are_refused(tmp_path):
    np.savez(tmp_path / "other.npz", about=np.array("{}"), x=np.arange(3))
    np.save(tmp_path / "other.npy", np.arange(3))
    for name in ("other.npz", "other.npy", "missing"):
        with pytest.raises(BesagError, match=f"{name}' cannot be read as the state of a run"):
            restore(None, tmp_path / name)
