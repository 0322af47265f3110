"""How fast chains run, beside the loops that people write.

    python benchmarks/sampling.py                       # embedded model: beside one chain after the other
    python benchmarks/sampling.py --shape bert-base     # random weights: beside a batched loop over all logits
    python benchmarks/sampling.py --ancestral           # 1,000 steps with and without the cache

Rates are chains × steps a second, medians of `--rounds`. Both sides draw with temperature 1 from all tokens.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

import besag
from besag.engine import Engine
from besag.samplers import Canvas, Noise, kernel


def load(shape: str, device: str, compiled: bool = False) -> Any:
    """The embedded model, or one of BERT-base's shape with random weights and the same tokenizer."""
    if shape == "embedded":
        return besag.load(device=device, compile=compiled, progress=False)
    from transformers import BertConfig, BertForMaskedLM

    tokenizer = besag.load(device="cpu", progress=False).tokenizer
    torch.manual_seed(0)
    model = BertForMaskedLM(BertConfig(vocab_size=30_522))
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    return besag.load((model.to(device, dtype).eval(), tokenizer), compile=compiled, progress=False)


def canvas(lm: Any, chains: int, length: int) -> Canvas:
    device, mask = lm.conditionals.device, lm.vocabulary.mask_id
    ids = torch.full((chains, length), mask, device=device)
    ids[:, 0], ids[:, -1] = lm.tokenizer.cls_token_id, lm.tokenizer.sep_token_id
    free = torch.ones_like(ids, dtype=torch.bool)
    free[:, 0] = free[:, -1] = False
    return Canvas(ids, free, mask)


def chain(lm: Any, start: Canvas, steps: int, name: str = "gibbs", **options: object) -> Tensor:
    """besag: all chains together, the head on asked rows alone."""
    engine, noise = Engine(lm.conditionals, progress=False), Noise(0, torch.arange(len(start.ids)))
    moves = kernel(name, **options)
    state = moves.init(engine, noise, start)
    while state.step < steps and not moves.done(state):
        state, _ = moves.step(engine, noise, state)
    engine.check()
    return state.ids


@torch.inference_mode()
def plain_loop(lm: Any, start: Canvas, steps: int, together: bool) -> Tensor:
    """What people write: hide a random place, run the model, softmax, draw; one chain after the other, or all."""
    chance = torch.Generator(start.ids.device).manual_seed(0)
    done = []
    for ids in [start.ids.clone()] if together else start.ids.clone().split(1):
        row = torch.arange(len(ids), device=ids.device)
        for _ in range(steps):
            place = torch.randint(1, ids.shape[1] - 1, (len(ids),), generator=chance, device=ids.device)
            ids[row, place] = start.mask_id
            logits = lm.model(input_ids=ids).logits  # (C, L, V)
            ids[row, place] = torch.multinomial(logits[row, place].float().softmax(-1), 1, generator=chance)[:, 0]
        done.append(ids)
    return torch.cat(done)


def seconds(run: Callable[[], Tensor], rounds: int) -> float:
    run()
    times = []
    for _ in range(rounds):
        begun = time.perf_counter()
        run().cpu()
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=["embedded", "bert-base"], default="embedded")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--chains", type=int, nargs="+", default=[64])
    parser.add_argument("--length", type=int, nargs="+", default=[64], help="special tokens included")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--compile", action="store_true", help="besag's layers compiled, the loops' not")
    parser.add_argument("--ancestral", action="store_true")
    parser.add_argument("--grid", type=int, default=1000, help="steps of the diffusion")
    chosen = parser.parse_args()
    lm = load(chosen.shape, chosen.device, chosen.compile)
    plain = load(chosen.shape, chosen.device) if chosen.compile else lm
    for chains in chosen.chains:
        for length in chosen.length:
            start = canvas(lm, chains, length)
            told: dict[str, Any] = {"shape": chosen.shape, "device": chosen.device, "chains": chains, "length": length}
            told |= {"compiled": True} if chosen.compile else {}
            if chosen.ancestral:
                for cache in (True, False):
                    run = lambda c=cache: chain(lm, start, chosen.grid, "ancestral", grid=chosen.grid, cache=c)  # noqa: B023, E731
                    told["cached" if cache else "uncached"] = round(seconds(run, 1), 3)
                told["ratio"] = round(told["uncached"] / told["cached"], 2)
            else:
                ours = seconds(lambda: chain(lm, start, chosen.steps), chosen.rounds)  # noqa: B023
                told["besag"] = round(chains * chosen.steps / ours, 1)
                kinds = {"all at once": True} if chosen.device != "cpu" else {"one by one": False, "all at once": True}
                for name, together in kinds.items():
                    theirs = seconds(lambda t=together: plain_loop(plain, start, chosen.steps, t), chosen.rounds)  # type: ignore[misc] # noqa: B023
                    told[name] = round(chains * chosen.steps / theirs, 1)
                    told[f"over {name}"] = round(theirs / ours, 2)
            print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
