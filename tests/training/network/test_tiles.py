import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from besag.training.network.tiles import TILE, best_order, cut

LENGTHS = st.lists(st.integers(1, TILE), min_size=1, max_size=200)


@given(LENGTHS, st.booleans())
def test_every_sequence_stands_whole_in_one_tile(lengths, ordered):
    sizes = np.array(lengths)
    order = best_order(sizes)
    assert sorted(order.tolist()) == list(range(len(sizes)))
    sizes = sizes[order] if ordered else sizes
    tiles = cut(sizes)
    assert tiles[0] == 0
    assert tiles[-1] == sizes.sum()
    assert (np.diff(tiles) <= TILE).all()
    assert (np.diff(tiles) > 0).all()
    assert set(tiles.tolist()) <= {0, *np.cumsum(sizes).tolist()}  # a tile ends where a sequence ends


def test_tiles_of_real_segments_are_nearly_full():
    draw = np.random.default_rng(0)
    sizes = (8 * 16 ** draw.random(3000)).astype(np.int64)
    assert sizes.sum() / (TILE * (len(cut(sizes[best_order(sizes)])) - 1)) > 0.99
