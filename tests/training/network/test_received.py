import pytest
import torch
from tests.networks import tiny, vocabulary

from besag.training.network.batch import Batch, Layout
from besag.training.network.encoder import Encoder
from besag.training.network.received import attention_received


def encoder(family: str) -> Encoder:
    known = vocabulary(family)
    return Encoder(
        tiny(family), mask_id=known.mask_id, pad_id=known.pad_id, special_ids=known.special_ids, ragged=False
    )


def batch(lengths) -> Batch:
    layout = Layout.of_lengths(torch.tensor(lengths))
    ids = torch.arange(len(layout.row)) % 20 + 10
    free = torch.ones(len(ids), dtype=torch.bool)
    free[layout.bounds[:-1].long()] = False
    nothing = torch.zeros(0, dtype=torch.int64)
    return Batch(
        ids, ids, free, layout, nothing, nothing.float(), torch.ones(len(lengths)), torch.arange(len(lengths)), 0, 0.0
    )


@pytest.mark.parametrize("family", ["bert", "roberta", "modernbert", "besag"])
def test_it_is_the_mean_of_what_the_network_gives(family):
    made, asked = encoder(family), batch([7, 4, 6])
    before = made.model.config._attn_implementation
    made.model.train()
    seen = attention_received(made, asked)
    assert made.model.config._attn_implementation == before
    assert made.model.training
    made.model.config._attn_implementation = "eager"
    made.model.eval()
    for first, last in ((0, 7), (7, 11), (11, 17)):
        with torch.no_grad():
            answer = made.body(input_ids=asked.ids[None, first:last], output_attentions=True)
        wanted = torch.stack(answer.attentions).mean((0, 1, 2)).sum(0)
        torch.testing.assert_close(seen[first:last], wanted, rtol=0, atol=1e-5)
    assert float(seen.max() - seen.min()) > 1e-4
