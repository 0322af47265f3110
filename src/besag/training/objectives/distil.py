"""Learning from a teacher's conditionals: all of its answer at each asked place, not only the true token.

    loss_i = a · τ² · KL( p_T^{1/τ} ‖ p_S^{1/τ} )  −  (1 − a) · log p_S(x_i)        p_T, p_S the answers at place i

τ is the temperature (both are renormalised), a is `alpha`; τ² keeps the size of the gradient as τ grows. The teacher is
shown what the student is shown. It is frozen, answers without dropout, and is no part of this module: neither saved,
averaged nor trained with it. Teacher and student must have the same vocabulary, token for token.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import torch
from torch import Tensor
from torch.nn import functional as F

from besag.errors import BesagError
from besag.training.network.batch import Batch
from besag.training.network.encoder import Encoder
from besag.training.network.networks import found
from besag.training.objectives.mdlm import predictions
from besag.training.objectives.objective import OBJECTIVES, Loss, Objective, cross_entropy
from besag.vocabulary import Vocabulary


class Teacher:
    """A frozen network that answers; kept out of whichever module holds it, since it is none."""

    def __init__(self, encoder: Encoder, longest: int | None = None) -> None:
        self.encoder = encoder.eval().requires_grad_(False)
        self.longest = longest

    @torch.no_grad()
    def logits(self, inputs: Tensor, batch: Batch, asked: Tensor, like: Encoder) -> Tensor:  # (M, V)
        """Answers at `asked`, computed where the batch is and in the precision of `like`."""
        if self.longest is not None and batch.layout.longest > self.longest:
            raise BesagError(
                f"the teacher takes {self.longest} tokens at most, but sequences have up to {batch.layout.longest}; "
                f"lower data.max_length"
            )
        if self.encoder.model.device != inputs.device or self.encoder.model.dtype != like.model.dtype:
            self.encoder.to(device=inputs.device, dtype=like.model.dtype)
        return self.encoder.logits(self.encoder.states(inputs, batch.layout)[asked])


def divergence(teacher: Tensor, student: Tensor, temperature: float = 1.0) -> Tensor:  # (M, V), (M, V) -> (M,)
    """τ² KL(teacher ‖ student) of two rows of logits, in float32."""
    said = F.log_softmax(student.float() / temperature, -1)
    wanted = F.log_softmax(teacher.float() / temperature, -1)
    return F.kl_div(said, wanted, reduction="none", log_target=True).sum(-1) * temperature**2


@OBJECTIVES.register
class Distil(Objective):
    name = "distil"
    title = "a teacher's whole answer at each asked place"
    cite = ("hinton2015",)

    def __init__(
        self,
        encoder: Encoder,
        *,
        seed: int = 0,
        teacher: Annotated[Any, "a folder or hub name (in Python also a network)"],
        alpha: Annotated[float, "share of the teacher's answer in the loss"] = 0.5,
        temperature: Annotated[float, "τ, of both answers"] = 1.0,
    ) -> None:
        """`teacher` is a folder, a hub name, a built `*ForMaskedLM` or an Encoder."""
        super().__init__(encoder, seed=seed)
        if not 0 <= alpha <= 1:
            raise BesagError(f"alpha={alpha!r}: the weight of the teacher lies between 0 and 1")
        if not 0 < temperature < math.inf:
            raise BesagError(f"temperature={temperature!r}: above 0")
        self.alpha, self.temperature = alpha, temperature
        self.called = str(teacher) if isinstance(teacher, str | Path) else type(teacher).__name__
        self.vocabulary: Vocabulary | None = None  # of a teacher that came with one
        self.teacher = self._teacher(teacher)
        self.shared = self._shared()

    def forward(self, batch: Batch) -> Loss:
        target = batch.ids[batch.asked]
        states = self.encoder.states(batch.inputs, batch.layout)
        logits = self.encoder.logits(states[batch.asked])  # (M, V)
        taught = self.teacher.logits(batch.inputs, batch, batch.asked, self.encoder)
        hard = cross_entropy(logits, target)
        soft = divergence(taught[:, : self.shared], logits[:, : self.shared], self.temperature)
        losses = self.alpha * soft + (1 - self.alpha) * hard
        with torch.no_grad():
            count = batch.weight.sum().clamp(min=1)
            logs = {
                "masked_loss": (hard * batch.weight).sum() / count,
                "teacher_kl": (soft * batch.weight).sum() / count,
            }
        return Loss((losses * batch.weight).sum(), logs, predictions(self.encoder, target, hard, logits))

    def meet(self, vocabulary: Vocabulary) -> None:
        """Refuse a teacher that has another token anywhere than the student, whose vocabulary this is."""
        if self.vocabulary is None:
            return
        if self.vocabulary.size != vocabulary.size:
            raise self._other(f"it has {self.vocabulary.size} tokens, the student {vocabulary.size}")
        for id in range(vocabulary.size):
            if (theirs := self.vocabulary.token(id)) != (own := vocabulary.token(id)):
                raise self._other(f"its token {id} is {theirs!r}, the student's {own!r}")
        self.shared = vocabulary.size

    def _other(self, difference: str) -> BesagError:
        return BesagError(
            f"the teacher {self.called!r} has another vocabulary: {difference}. Distillation needs the same one: set "
            f"tokenizer.path to the teacher's"
        )

    def _teacher(self, given: Any) -> Teacher:
        if isinstance(given, Encoder):
            return Teacher(given)
        longest = None
        if isinstance(given, str | Path):
            from besag.conditionals.loading import load_conditionals
            from besag.conditionals.transformer import Transformer

            answering = load_conditionals(found(str(given)), device="cpu")
            if not isinstance(answering, Transformer):
                raise BesagError(f"the teacher {self.called!r} is a causal model; a teacher fills in hidden places")
            given, self.vocabulary, longest = answering.model, answering.vocabulary, answering.max_length
        if not hasattr(given, "config"):
            raise BesagError(
                f"a teacher is a folder, a name on the hub or a masked model of transformers, not a {self.called}"
            )
        own = self.encoder
        if given is own.model:
            raise BesagError("the teacher is the student itself; a teacher is frozen, so give a copy")
        # end to end only where that is known to work: on a network of the student's family
        ragged = own.ragged and given.config.model_type == own.model.config.model_type
        teacher = Encoder(given, mask_id=own.mask_id, pad_id=own.pad_id, special_ids=own.special_ids, ragged=ragged)
        return Teacher(teacher, longest)

    def _shared(self) -> int:
        """How many answers the two have in common; refused where they plainly are not the same."""
        theirs, own = self.teacher.encoder.width, self.encoder.width
        if self.vocabulary is None:
            if theirs != own:
                raise self._other(f"it answers over {theirs} tokens, the student over {own}")
            return own
        if self.vocabulary.mask_id != self.encoder.mask_id:
            raise self._other(f"its mask is token {self.vocabulary.mask_id}, the student's {self.encoder.mask_id}")
        return min(theirs, own)
