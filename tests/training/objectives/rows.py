"""One passage of a batch as a batch of its own. Import it as `tests.training.objectives.rows`."""

from __future__ import annotations

import torch

from besag.training.network.batch import Batch, Layout


def alone(batch: Batch, row: int) -> Batch:
    mine = batch.layout.row == row
    first = int(batch.layout.bounds[row])
    asked = mine[batch.asked]
    return batch._replace(
        ids=batch.ids[mine],
        inputs=batch.inputs[mine],
        free=batch.free[mine],
        layout=Layout.of_lengths(torch.tensor([int(mine.sum())])),
        asked=batch.asked[asked] - first,
        weight=batch.weight[asked],
        rate=batch.rate[row : row + 1],
        draw=batch.draw[row : row + 1],
    )
