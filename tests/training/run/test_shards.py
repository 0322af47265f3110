"""Any state comes back as it was, whatever the size of the files."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file

from besag.errors import BesagError
from besag.training.run import shards

KINDS = (torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.int16, torch.uint8, torch.bool)
SHAPES = st.lists(st.integers(0, 9), max_size=3)


def tensor(shape: list[int], dtype: torch.dtype, seed: int) -> torch.Tensor:
    return (torch.rand(shape, generator=torch.Generator().manual_seed(seed)) * 100).to(dtype)


def equal(one: Any, other: Any) -> bool:
    """Tuples come back as lists, and keys as text."""
    if isinstance(one, torch.Tensor):
        return one.dtype == other.dtype and one.shape == other.shape and torch.equal(one, other)
    if isinstance(one, dict):
        return list(map(str, one)) == list(other) and all(equal(one[key], other[str(key)]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(equal, one, other))
    return type(one) is type(other) and bool(one == other)


@given(
    st.lists(st.tuples(SHAPES, st.sampled_from(KINDS)), max_size=5),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=5,
    ),
    st.integers(400, 3000),
)
def test_any_state_comes_back_from_files_of_any_size(
    kinds: list[tuple[list[int], torch.dtype]], plain: Any, most: int
) -> None:
    state = {
        "plain": plain,
        "nested": {7: [tensor(*kind, seed) for seed, kind in enumerate(kinds)], "more": (1.5, "x")},
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = shards.write(folder, state, most)
        assert equal(state, shards.read(folder, files))
        assert not shards.fault(folder, files)
        assert {path.name for path in folder.iterdir()} == set(files)
        assert all(about["bytes"] <= most for file, about in files.items() if file != shards.TREE)


def test_a_tensor_larger_than_a_file_is_split_by_rows(tmp_path: Path) -> None:
    table = torch.arange(1000.0).view(100, 10)
    files = shards.write(tmp_path, {"first": torch.ones(3), "table": table, "last": torch.zeros(())}, 1500)
    found = [load_file(tmp_path / name) for name in sorted(files) if name != shards.TREE]
    assert [list(shard) for shard in found] == [
        ["first@0", "table@0"],
        ["table@29"],
        ["table@62"],
        ["last@0", "table@95"],
    ]
    assert torch.equal(torch.cat([shard[next(k for k in shard if "table" in k)] for shard in found]), table)
    assert found[1]["table@29"].shape == (33, 10)
    wide = torch.arange(1000.0)[None]  # one row that no file holds: split within it
    files = shards.write(tmp_path, {"wide": wide}, 1500)
    assert torch.equal(shards.read(tmp_path, files)["wide"], wide)


def test_what_shares_its_memory_is_written_once(tmp_path: Path) -> None:
    table = torch.rand(100, 100)
    state = {"embeddings": table, "decoder": table, "part": table[:50], "column": table[:, 0]}
    files = shards.write(tmp_path, state, 10**6)
    assert sum(about["bytes"] for about in files.values()) < 1.6 * 40_000
    assert equal(state, shards.read(tmp_path, files))


def test_what_is_wrong_is_told_by_name(tmp_path: Path) -> None:
    files = shards.write(tmp_path, {str(number): torch.rand(100) for number in range(8)}, 600)
    names = sorted(name for name in files if name != shards.TREE)
    assert len(names) == 8
    (tmp_path / names[1]).unlink()
    assert shards.fault(tmp_path, files) == f"{names[1]} is missing"
    (tmp_path / names[2]).write_bytes((tmp_path / names[3]).read_bytes())
    assert f"{names[2]} is another file than was written" in shards.fault(tmp_path, files)
    for name in names:
        (tmp_path / name).write_bytes(b"")
    assert shards.fault(tmp_path, files).endswith("and 4 more")
    with pytest.raises(BesagError, match=f"{names[0]}' is no file of a checkpoint"):
        shards.read(tmp_path, files)


def test_the_tree_is_json_that_says_what_each_tensor_is(tmp_path: Path) -> None:
    shards.write(tmp_path, {"a": {"b": torch.zeros(2, 3, dtype=torch.bfloat16)}}, 10**6)
    leaf = json.loads((tmp_path / shards.TREE).read_text())["a"]["b"]
    assert leaf == {"$tensor": "a/b", "dtype": "bfloat16", "shape": [2, 3]}
