"""n-grams predicted by name, each under one mask: explicit n-gram masking (ERNIE-Gram; Xiao et al. 2021).

    units of a text: n-grams of a vocabulary, where two overlap one of them; single tokens elsewhere
    a share `rate` of the units is hidden, and the whole of a hidden unit stands as one mask
    coarse: −Σ_u log softmax([head(h_u); grams(h_u)])[the name of u]       V tokens and N n-grams compete
    fine:   in a share of the passages a hidden unit stands as one mask a token, and its tokens are asked as in `mlm`

Under one mask the network must know "new york" as one thing, and is not told how many tokens are missing: what stands
behind a mask moves up. Fine passages keep it able to answer at masks of single tokens. The n-gram head is thrown away.

n-grams are collocations of tokens in the corpus, by PMI (`pmi_vocabulary.py`); as published they come from a t-test.
The publication asks for both grains in one pass, and draws n-grams from a generator to tell apart from the true ones;
here passages have one grain each, and there is no generator. `masks` is False.

Not to be confused with the law `ngram` (ALBERT), which hides runs of words, a mask and a question for each token.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from besag.arrays import Ints
from besag.errors import BesagError
from besag.masks.law import Statistics
from besag.masks.pmi import Trie
from besag.masks.pmi_vocabulary import build_pmi_vocabulary
from besag.noise import Training
from besag.training.network.batch import Batch, Layout
from besag.training.network.encoder import Encoder
from besag.training.objectives import draws
from besag.training.objectives.mdlm import lowest, per_token, sizes
from besag.training.objectives.objective import OBJECTIVES, Loss, Objective, cross_entropy
from besag.training.objectives.sharing import check_share, generator_for, plain_rows


class Units(NamedTuple):
    """How the tokens of a batch make up units."""

    first: Tensor  # (T,) bool: the first token of a unit
    owner: Tensor  # (T,) the first token of the unit that each token belongs to
    name: Tensor  # (T,) read at first tokens: a token id, or V + the number of an n-gram


@OBJECTIVES.register
class ErnieGram(Objective):
    name = "ernie_gram"
    title = "n-grams by name, each under one mask (ERNIE-Gram)"
    cite = ("xiao2021",)
    masks = False

    def __init__(
        self,
        encoder: Encoder,
        *,
        seed: int = 0,
        rate: Annotated[float, "share of the units that is hidden"] = 0.15,
        fine: Annotated[float, "share of the passages whose hidden units are asked token by token"] = 0.5,
        size: Annotated[int, "n-grams that are known"] = 20_000,
        longest: Annotated[int, "tokens of the longest n-gram, 2 to 5"] = 3,
        min_count: Annotated[int, "least count of an n-gram in the corpus"] = 10,
    ) -> None:
        super().__init__(encoder, seed=seed)
        if not 0 < rate <= 1:
            raise BesagError(f"rate={rate!r}: a share of the units, above 0 and at most 1")
        self.rate, self.fine = rate, check_share(self.name, fine)
        self.size, self.longest, self.min_count = size, longest, min_count
        self.grams: nn.Linear | None = None

    @property
    def purpose(self) -> str:
        return "score" if self.fine > 0 else "encode"

    def prepare(self, statistics: Statistics) -> None:
        """Find the n-grams of the corpus, and make a head for them."""
        how = {"size": self.size, "longest": self.longest, "min_count": self.min_count}
        found = build_pmi_vocabulary(statistics, unit="token", **how)  # type: ignore[arg-type]
        if not len(found):
            raise BesagError(
                f"the corpus has no n-gram of {self.longest} tokens or less that occurs more than {self.min_count} "
                "times: lower min_count of the objective 'ernie_gram', or give it more text"
            )
        self.learn(found.ids)

    def learn(self, grams: Ints) -> None:
        """Know these n-grams, (N, L) token ids, −1 after the end of one."""
        trie = Trie(grams, self.encoder.width)
        self.depth = trie.depth
        ends = np.where(trie.ends, np.cumsum(trie.ends) - 1, -1)  # (nodes,) the number of the n-gram that ends there
        for name, table in (("keys", trie.keys), ("child", trie.child), ("ends", ends)):
            self.register_buffer(name, torch.from_numpy(table.astype(np.int64)), persistent=False)
        model = self.encoder.model
        head = nn.Linear(model.config.hidden_size, int(trie.ends.sum()))
        with torch.no_grad():
            head.weight.normal_(std=0.02, generator=generator_for(self.seed, Training.ERNIE_WEIGHTS))
            head.bias.zero_()
        self.grams = head.to(device=model.device, dtype=model.dtype)

    def forward(self, batch: Batch) -> Loss:
        if self.grams is None:
            raise BesagError("ernie_gram needs an n-gram vocabulary: call prepare(statistics)")
        units = self.units(batch)
        hidden = self.hidden(batch, units)  # (T,)
        fine = plain_rows(batch, self.fine, self.seed, Training.ERNIE_FINE)[batch.layout.row]  # (T,)
        kept = ~hidden | units.first | fine
        lengths = torch.bincount(batch.layout.row[kept], minlength=batch.layout.rows)
        layout = Layout.of_lengths(lengths, batch.layout.longest)  # places are numbered anew
        states = self.encoder.states(batch.ids.masked_fill(hidden, self.encoder.mask_id)[kept], layout)
        single, whole = (hidden & fine)[kept], (hidden & units.first & ~fine)[kept]  # (S,)
        by_token = self.encoder.losses(states[single], batch.ids[kept][single])
        rows = states[whole]
        logits = torch.cat([self.encoder.logits(rows).float(), self.grams(rows).float()], -1)  # (M, V + N)
        by_name = cross_entropy(logits, units.name[kept][whole])
        count = len(by_token) + len(by_name)
        logs = {
            "token_loss": by_token.detach().sum() / max(len(by_token), 1),
            "ngram_loss": by_name.detach().sum() / max(len(by_name), 1),
        }
        return Loss(per_token(by_token.sum() + by_name.sum(), batch, count), logs)

    def hidden(self, batch: Batch, units: Units) -> Tensor:
        """(T,) bool: the tokens of the hidden units."""
        begins = units.first & batch.free
        noise = draws.uniform(self.seed, Training.ERNIE_HIDE, batch.draw[batch.layout.row], batch.layout.column)
        wanted = self.rate * sizes(begins, batch.layout)  # (R,)
        up = draws.uniform(self.seed, Training.ERNIE_ROUNDING, batch.draw) < wanted - wanted.floor()
        return lowest(noise, begins, batch.layout, (wanted.floor() + up).clamp(min=1))[units.owner]

    def units(self, batch: Batch) -> Units:
        """Of n-grams that overlap the one with the lowest lot is a unit; of those with one first token the longest."""
        ids, row = batch.ids, batch.layout.row
        place = torch.arange(len(ids), device=ids.device)
        gram, length = self._matches(batch)
        lot = draws.uniform(self.seed, Training.ERNIE_OVERLAP, batch.draw[row], batch.layout.column)
        lot = lot.masked_fill(gram < 0, 2.0)
        covered = torch.full_like(lot, 2.0)  # the least lot of all that cover a token
        for step in range(self.depth):
            here = (length > step).nonzero()[:, 0]
            covered.scatter_reduce_(0, here + step, lot[here], "amin")
        wins = gram >= 0
        for step in range(self.depth):
            here = (wins & (length > step)).nonzero()[:, 0]
            wins[here] &= covered[here + step] == lot[here]
        owner = place.clone()
        for step in range(1, self.depth):
            here = (wins & (length > step)).nonzero()[:, 0]
            owner[here + step] = here
        return Units(owner == place, owner, torch.where(wins, self.encoder.width + gram, ids))

    def _matches(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """(T,) the longest n-gram that begins at each token, −1 for none, and its length, 0 for none."""
        keys, child, ends = (getattr(self, name) for name in ("keys", "child", "ends"))
        ids, row, total = batch.ids, batch.layout.row, len(batch.ids)
        gram, length = torch.full_like(ids, -1), torch.zeros_like(ids)
        start = batch.free.nonzero()[:, 0]
        node = ids[start]
        for step in range(1, self.depth):
            able = start + step < total
            start, node = start[able], node[able]
            able = (row[start + step] == row[start]) & batch.free[start + step]
            start, node = start[able], node[able]
            key = node * self.encoder.width + ids[start + step]
            at = torch.searchsorted(keys, key).clamp(max=len(keys) - 1)
            found = keys[at] == key
            start, node = start[found], child[at[found]]
            ended = ends[node] >= 0
            gram[start[ended]], length[start[ended]] = ends[node[ended]], step + 1
        return gram, length
