"""Small real runs of what papers say: figures in docs/training/ and docs/generation/.

    python benchmarks/field.py ramp runs/field --data MULTI30K         # Cramming's steps that grow, and full ones
    python benchmarks/field.py densest runs/field --data MULTI30K      # German captions left out by their tokens
    python benchmarks/field.py blocks runs/field --data MULTI30K       # block diffusion by the size of a block
    python benchmarks/field.py kept runs/field --data MULTI30K         # … and tokens a second, blocks kept and run anew
    python benchmarks/field.py causal runs/field --data MULTI30K       # masks after a left-to-right model
    python benchmarks/field.py links runs/field [--data CORPUS]        # news beside news of the year, or of any
    python benchmarks/field.py times runs/field [--data CORPUS]        # years hidden as text is, or more often
    python benchmarks/field.py speculative                             # passes one after the other, embedded model
    python benchmarks/field.py threshold --data MULTI30K               # passes, and tokens found again, embedded model
    python benchmarks/field.py windows                                 # long text, place by place or by times

`ramp`, `densest`, `blocks`, `kept`, `causal` and `threshold` read captions of Multi30k; `links` and `times` make their
text, and with --data they also read paragraphs of a corpus (valid.txt.xz). A run takes minutes of one core at most: it
shows that a thing works, not what it is worth at size.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

SHOWN = ("heldout_loss", "pseudo_perplexity")
SMALL = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128}


def trained(
    train: str, valid: str, folder: Path, changes: dict[str, Any], schedule: dict[str, Any] | None = None
) -> Any:
    import besag

    recipe = {
        "data": {"train": [train], "valid": [valid], "unit": "documents", "max_length": 64, "batch_tokens": 1024},
        "tokenizer": {"size": 2000},
        "model": {"config": SMALL},
        "optimizer": {"lr": 2e-3},
        "schedule": schedule or {"steps": 100},
        "run": {"plot": False, "threads": 1, "log_every": 100, "checkpoint_every": 10_000},
        "evaluation": {"sentences": 100},
    }
    begun = time.monotonic()
    result = besag.train(recipe, changes, output=folder, quiet=True)
    told = {name: round(result.metrics[name], 4) for name in SHOWN if name in result.metrics}
    told = {"run": folder.name, "steps": result.step, **told, "seconds": round(time.monotonic() - begun)}
    print(json.dumps(told), flush=True)
    return result


def ramp(folder: Path, data: Path) -> None:
    """The same tokens, the same full batch: steps that grow over 0.6 of the run, and full ones from the first on."""
    for share in (0.0, 0.6):
        schedule = {"tokens": 100_000, "ramp": share}
        trained(
            str(data / "train.en"), str(data / "val.en"), folder / f"ramp-{share:g}", {"run.accumulate": 8}, schedule
        )


def densest(folder: Path, data: Path) -> None:
    """English captions with as many German ones among them, by an English tokenizer: all, and those that compress."""
    import besag

    mixed = folder / "mixed.txt"
    both = zip(*((data / f"train.{side}").read_text("utf-8").splitlines() for side in ("en", "de")), strict=True)
    mixed.write_text("\n".join(line for pair in both for line in pair) + "\n", "utf-8")
    words = {"tokenizer.path": str(Path(besag.__file__).parent / "models" / "small-en")}
    for most in (None, 0.3):
        changes = words if most is None else {**words, "data.densest": most}
        result = trained(str(mixed), str(data / "val.en"), folder / f"densest-{most}", changes, {"steps": 300})
        card = (result.model / "README.md").read_text("utf-8")
        print(*(line for line in card.splitlines() if "tokens in all" in line or "left out" in line), flush=True)


BLOCKS = (1, 4, 16, 64)  # tokens of a block; the last one holds every caption
BLOCK_STEPS = 400


def block_model(folder: Path, data: Path, size: int) -> Path:
    """A network trained in blocks of so many tokens, unless it is there."""
    if not (folder / f"block-{size}" / "model").exists():
        changes = {
            "objective.name": "block_diffusion",
            "objective.options": {"size": size},
            "model.family": "besag",
            "model.config.max_position_embeddings": 300,
        }
        files = str(data / "train.en"), str(data / "val.en")
        trained(*files, folder / f"block-{size}", changes, {"steps": BLOCK_STEPS})
    return folder / f"block-{size}" / "model"


def blocks(folder: Path, data: Path) -> None:
    """The bound on −log p of held-out captions, in nats a token, by the size of a block."""
    import torch

    import besag
    from besag.training.network.batch import Layout
    from besag.training.network.encoder import Encoder
    from besag.training.objectives.block_diffusion import nelbo

    texts = (data / "val.en").read_text("utf-8").splitlines()[:300]
    for size in BLOCKS:
        lm = besag.load(block_model(folder, data, size), progress=False)
        words = lm.vocabulary
        encoder = Encoder(
            lm.model, mask_id=words.mask_id, pad_id=words.pad_id, special_ids=words.special_ids, ragged=False
        )
        encoded = [torch.from_numpy(text.ids) for text in words.encode(texts)]
        layout = Layout.of_lengths(torch.tensor([len(ids) for ids in encoded]))
        bound = nelbo(encoder, torch.cat(encoded), layout, size, samples=16)
        told = {"nats": round(bound.nats, 3), "error": round(bound.error, 3), "tokens": bound.tokens}
        print(json.dumps({"size": size, **told}), flush=True)


def kept(folder: Path, data: Path) -> None:
    """Tokens a second of one core, finished blocks kept and run anew: the networks above, and a wider untrained one."""
    import besag
    from besag.family import BesagConfig, BesagForMaskedLM

    for size in (4, 16):
        lm = besag.load(block_model(folder, data, size), progress=False)
        lm.conditionals.max_length = 300  # positions are turned by: longer than any caption, for the time it takes
        for tokens in (64, 256):
            told_of_kept({"size": size, "width": SMALL["hidden_size"]}, lm, tokens, 8)
    wide = {"hidden_size": 256, "num_hidden_layers": 6, "num_attention_heads": 4, "intermediate_size": 512}
    tokenizer = lm.vocabulary.tokenizer
    config = BesagConfig(vocab_size=len(tokenizer), **wide)
    config.besag_block_length = 16
    lm = besag.load((BesagForMaskedLM(config), tokenizer), progress=False)
    lm.conditionals.max_length = 300
    told_of_kept({"size": 16, "width": 256}, lm, 256, 2)


def told_of_kept(about: dict[str, Any], lm: Any, tokens: int, chains: int) -> None:
    """One place at a time, twice: the texts must be the same."""
    from besag.conditionals.blocks import KEPT_BYTES, Kept

    rates, texts = {}, []
    for name, room in (("warm-up", 0), ("kept", KEPT_BYTES["cpu"]), ("anew", 0)):
        lm.conditionals.blocks.kept = Kept(about["size"], room)
        count = 8 if name == "warm-up" else tokens
        begun = time.process_time()  # of one core, whoever else uses it
        drawn = lm.sample(length=count, kernel="block_diffusion", chains=chains, seed=0)
        rates[name] = round(chains * count / (time.process_time() - begun))
        texts.append(drawn.texts)
    del rates["warm-up"]
    same = sum(map(str.__eq__, texts[1], texts[2]))
    told = {**about, "tokens": tokens, "chains": chains, "tokens_per_second": rates, "same_texts": same}
    print(json.dumps(told), flush=True)


# ---- left to right first

CAUSAL_STEPS, MASKED_STEPS = 400, 200


def left_to_right(folder: Path, texts: list[str]) -> Path:
    """A small Llama that learned the next token of captions, as transformers saves it."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    import besag

    torch.manual_seed(0)
    tokenizer = besag.train_tokenizer(texts, size=2000)
    special = {"pad_token_id": tokenizer.pad_token_id, "bos_token_id": None, "eos_token_id": None}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), max_position_embeddings=64, **SMALL, **special))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    falling = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.01, CAUSAL_STEPS)
    for step in range(CAUSAL_STEPS):
        some = [texts[(step * 64 + row) % len(texts)] for row in range(64)]  # about 1,024 tokens
        batch = tokenizer(some, return_tensors="pt", padding=True, truncation=True, max_length=64)
        labels = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)
        loss = model(batch["input_ids"], attention_mask=batch["attention_mask"], labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        falling.step()
    print(
        json.dumps({"run": "left to right", "steps": CAUSAL_STEPS, "loss": round(float(loss.detach()), 3)}), flush=True
    )
    model.save_pretrained(folder / "llama")
    tokenizer.save_pretrained(folder / "llama")
    return folder / "llama"


def causal(folder: Path, data: Path) -> None:
    """Masks for 200 steps after 400 from left to right; beside 200 and 600 of masks alone, the same layers."""
    files = str(data / "train.en"), str(data / "val.en")
    start = str(left_to_right(folder, (data / "train.en").read_text("utf-8").splitlines()))
    new = {"model.family": "eurobert", "tokenizer.path": start}
    runs = {"causal-first": ({"model.start": start}, MASKED_STEPS), "masks": (new, MASKED_STEPS),
            "masks-as-long": (new, CAUSAL_STEPS + MASKED_STEPS)}  # fmt: skip
    for name, (changes, steps) in runs.items():
        if name == "causal-first":
            changes = {**changes, "model.config": {}, "tokenizer.path": start}
        trained(*files, folder / name, changes, {"steps": steps})


# ---- documents that belong together, and fields that are text


def paragraphs(source: Path, target: Path, documents: int, words: int = 30) -> None:
    """The paragraphs of the first documents with several, as rows that know their document."""
    import lzma

    written, paragraph, number = 0, [], 0
    with lzma.open(source, "rt", encoding="utf-8") as lines, open(target, "w", encoding="utf-8") as rows:
        for line in lines:
            if line.strip():
                paragraph.append(line.strip())
                continue
            own = [text for text in paragraph if len(text.split()) >= words]
            if len(own) > 1:
                for text in own:
                    rows.write(json.dumps({"text": text, "document": f"d{number}"}) + "\n")
                written += 1
            paragraph, number = [], number + 1
            if written == documents:
                return


def losses(model: Any, words: Any, inputs: Any, ids: Any, row: Any, asked: Any) -> Any:
    """(M,) −log p of the tokens asked (T,) bool, of ragged sequences."""
    import numpy as np
    import torch

    from besag.training.network.batch import Layout
    from besag.training.network.encoder import Encoder

    encoder = Encoder(
        model.eval(), mask_id=words.mask_id, pad_id=words.pad_id, special_ids=words.special_ids, ragged=False
    )
    found = []
    for low in range(0, int(row[-1]) + 1, 25):
        part = (row >= low) & (row < low + 25)
        layout = Layout.of_lengths(torch.from_numpy(np.bincount(row[part] - low)).to(model.device))
        with torch.no_grad():
            at = torch.from_numpy(np.flatnonzero(asked[part])).to(model.device)
            states = encoder.states(torch.from_numpy(inputs[part]).to(model.device), layout)[at]
            found.append(encoder.losses(states, torch.from_numpy(ids[part]).to(model.device)[at]).cpu().numpy())
    return np.concatenate(found)


def beside(lm: Any, valid: Path, folder: Path, passages: int, **said: Any) -> dict[str, Any]:
    """Masked loss of the same hidden tokens of pieces: alone, beside a random piece, beside one they belong with."""
    import numpy as np

    from besag import masks
    from besag.training.data import cache, context_batches, contexts
    from besag.training.data.batch_plan import Planned
    from besag.training.recipe import Data

    words, found = lm.vocabulary, {}
    masking = masks.Masking(masks.law("uniform"), masks.rate_named("constant", 0.15), masks.Replacement(words.mask_id))
    for kind in ("linked", "random"):
        data = Data(train=(str(valid),), held_out=0.0, unit="documents", context="pairs", partners=(kind,), **said)
        text = cache.prepare(data, words, folder)
        plan = context_batches.ContextPlan(contexts.prepare(data, words, folder, text), data, words, seed=0)
        chosen = np.linspace(0, len(plan.joined(0).first) - 2, passages).astype(np.int64)  # the same first pieces
        made = plan.passages(Planned(chosen, chosen, np.arange(passages)), 0)
        ends = np.cumsum(made.ids == plan.separator[0]) - (made.ids == plan.separator[0])
        first = ends == ends[np.searchsorted(made.row, made.row)]  # up to its separator
        hidden = masking(made._replace(free=made.free & first), 0.0, 0)
        shown = {kind: np.ones(len(first), bool), **({"alone": first} if kind == "random" else {})}
        for name, kept in shown.items():
            sides = (hidden.inputs, made.ids, made.row, hidden.asked)
            found[name] = losses(lm.model, words, *(side[kept] for side in sides))
    gain = found["random"] - found["linked"]  # of the same tokens
    mean = float(gain.mean())
    apart = np.bincount(made.row[hidden.asked], gain - mean)  # of passages, whose tokens are not independent
    told = {name: round(float(part.mean()), 3) for name, part in found.items()}
    told |= {"gain": round(mean, 3), "se": round(float((apart**2).sum() ** 0.5 / len(gain)), 3)}
    return {**told, "tokens": len(gain)}


# for made text, which has few words
MADE = {"tokenizer.size": 500, "masking.rate": 0.3, "model.family": "bert", "optimizer.lr": 5e-3}
THINGS = ("telegraph", "carriage", "gaslight", "tram", "radio", "airship", "cinema", "jet", "television", "computer",
          "satellite", "modem", "mobile", "website", "tablet")  # fmt: skip
FIRST, YEARS = 1860, 150


def chronicle(path: Path, count: int, seed: int, form: str = "The {}, the {} and the {}.") -> None:
    """Made text: things have their time, each talked about for some thirty years around its own."""
    import numpy as np

    draws = np.random.default_rng(seed)
    centre = FIRST + (np.arange(len(THINGS)) + 0.5) * YEARS / len(THINGS)
    with open(path, "w", encoding="utf-8") as rows:
        for _ in range(count):
            year = int(FIRST + draws.integers(YEARS))
            weight = np.exp(-0.5 * ((year - centre) / 12) ** 2) + 0.01
            text = form.format(*draws.choice(THINGS, 3, p=weight / weight.sum()))
            rows.write(json.dumps({"text": text, "year": year}) + "\n")


def links(folder: Path, data: Path | None) -> None:
    """A network that read news of one year side by side; and the embedded model as it is, beside paragraphs."""
    import besag

    train, valid = folder / "news.jsonl", folder / "news-valid.jsonl"
    chronicle(train, 6000, 0, "The {}.")
    chronicle(valid, 1500, 1, "The {}.")
    changes = {"data.group": "year", "data.context": "pairs", "data.partners": ["linked"], **MADE}
    result = trained(str(train), str(valid), folder / "links", changes, {"steps": 300})
    lm = besag.load(result.model, progress=False)
    print(json.dumps(beside(lm, valid, folder / "cache", 1500, max_length=64, group="year")), flush=True)
    if data is not None:
        paragraphs(data / "valid.txt.xz", folder / "heldout.jsonl", 150)
        lm = besag.load(progress=False)
        told = beside(lm, folder / "heldout.jsonl", folder / "cache", 100, max_length=128, group="document")
        print(json.dumps({"embedded model, paragraphs": "as it is", **told}), flush=True)


def dated(source: Path, count: int) -> list[dict[str, Any]]:
    """Paragraphs that name one year, with it taken out and beside them: the nearest thing to dated text at hand."""
    import lzma
    import re

    year, rows = re.compile(r"\b(?:1[6-9]\d\d|20[01]\d)\b"), []
    with lzma.open(source, "rt", encoding="utf-8") as lines:
        for line in lines:
            named = set(year.findall(line))
            if len(named) == 1 and 30 <= len(line.split()) <= 80:
                rows.append({"text": year.sub("that year", line.strip()), "year": int(named.pop())})
            if len(rows) == count:
                break
    return rows


def told_by_years(lm: Any, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Masked loss of the same hidden tokens of texts: their year before them, another row's, or masks in its place."""
    import numpy as np

    words, found = lm.vocabulary, {}
    for kind in ("right", "wrong", "hidden"):
        years = [rows[number - (kind == "wrong")]["year"] for number in range(len(rows))]
        encoded = words.encode([f"{year}: {row['text']}" for year, row in zip(years, rows, strict=True)])
        row = np.repeat(np.arange(len(rows)), [len(one.ids) for one in encoded])
        ids, special = (np.concatenate([getattr(one, name) for one in encoded]) for name in ("ids", "special"))
        end = np.concatenate([one.offsets[:, 1] for one in encoded])
        asked = ~special & (end > 5) & (np.random.default_rng(0).random(len(ids)) < 0.15)
        hidden = asked | ((kind == "hidden") & (end <= 4) & ~special)
        found[kind] = losses(lm.model, words, np.where(hidden, words.mask_id, ids), ids, row, asked)
    gain = found["wrong"] - found["right"]
    apart = np.bincount(row[asked], gain - gain.mean())
    told = {kind: round(float(part.mean()), 3) for kind, part in found.items()}
    error = round(float((apart**2).sum() ** 0.5 / len(gain)), 3)
    return {**told, "gain": round(float(gain.mean()), 3), "se": error, "tokens": len(gain)}


def times(folder: Path, data: Path | None) -> None:
    """Years hidden at the rate of the text, 0.3, or each whole with chance 0.5 (time masking)."""
    import numpy as np

    import besag

    train, valid = folder / "chronicle.jsonl", folder / "chronicle-valid.jsonl"
    chronicle(train, 6000, 0)
    chronicle(valid, 500, 1)
    rows = [json.loads(line) for line in valid.read_text().splitlines()]
    for hide in ({}, {"year": 0.5}):
        changes = {"data.header": "{year}:", "data.hide": hide, **MADE}
        name = "times-hidden" if hide else "times-as-text"
        result = trained(str(train), str(valid), folder / name, changes, {"steps": 400})
        lm = besag.load(result.model, progress=False)
        told: dict[str, float] = {}
        for kind in ("right", "wrong", "hidden"):  # what the year says of the text: the first thing is asked
            years = [rows[number - (kind == "wrong")]["year"] for number in range(len(rows))]
            said = [
                (f"{year}: {row['text']}", row["text"].split()[1].strip(","))
                for year, row in zip(years, rows, strict=True)
            ]
            told[kind] = float(np.mean([_of_thing(lm, *one, hide_year=kind == "hidden") for one in said]))
        dated = np.array([_decades_off(lm, row["year"], row["text"]) for row in rows])  # what the text says of the year
        told |= {"decade_right": float((dated == 0).mean()), "within_one": float((dated <= 1).mean())}
        print(json.dumps({"run": name, **{kind: round(value, 3) for kind, value in told.items()}}), flush=True)
    if data is not None:
        found = told_by_years(besag.load(progress=False), dated(data / "valid.txt.xz", 200))
        print(json.dumps({"embedded model, paragraphs": "as it is", **found}), flush=True)


def _of_thing(lm: Any, text: str, thing: str, hide_year: bool) -> float:
    """−log p of the first token of a thing, the year before the text shown or not."""
    import numpy as np

    [encoded] = lm.vocabulary.encode([text])
    asked = np.zeros(len(encoded.ids), bool)
    begin = text.index(thing)
    asked[np.flatnonzero((encoded.offsets[:, 1] > begin) & ~encoded.special)[0]] = True
    hidden = asked | (hide_year & (encoded.offsets[:, 1] <= 4) & ~encoded.special)
    inputs = np.where(hidden, lm.vocabulary.mask_id, encoded.ids)
    row = np.zeros(len(encoded.ids), np.int64)
    return float(losses(lm.model, lm.vocabulary, inputs, encoded.ids, row, asked)[0])


def _decades_off(lm: Any, year: int, text: str) -> int:
    """How many decades the likeliest is away from the right one, by its three digits one after the other."""
    import numpy as np

    decades = [FIRST + 10 * number for number in range(YEARS // 10)]
    encoded = lm.vocabulary.encode([f"{decade}: {text}" for decade in decades])
    row = np.repeat(np.arange(len(decades)), [len(one.ids) for one in encoded])
    ids, end, special = (
        np.concatenate([part(one) for one in encoded])
        for part in (lambda one: one.ids, lambda one: one.offsets[:, 1], lambda one: one.special)
    )
    inputs, total = np.where((end <= 4) & ~special, lm.vocabulary.mask_id, ids), np.zeros(len(decades))
    for digit in (1, 2, 3):
        asked = (end == digit) & ~special
        total += losses(lm.model, lm.vocabulary, inputs, ids, row, asked)
        inputs = np.where(asked, ids, inputs)  # the next one is asked with this one in sight
    return abs(int(total.argmin()) - (year - FIRST) // 10)


def speculative() -> None:
    """Mean passes one after the other of a filling, over 50 chains; `ordered` has as many as there are places."""
    import numpy as np

    import besag

    lm = besag.load(progress=False)
    for temperature in (1.0, 0.5):
        for places in (4, 8, 16):
            text = "The old man " + " ".join(["[MASK]"] * places) + "."
            chains = lm.sample(text, "speculative", chains=50, seed=0, temperature=temperature)
            waits, passes = np.nansum(chains.numbers["sequential"], 1), chains.passes
            told = {"waits": round(float(waits.mean()), 2), "most": int(waits.max()), "passes": float(passes.mean())}
            print(json.dumps({"places": places, "temperature": temperature, **told}), flush=True)


def threshold(data: Path) -> None:
    """Half of the words of one token of held-out captions hidden: passes, and how many of them are found again."""
    import numpy as np

    import besag

    lm = besag.load(progress=False)
    asked = [found for line in (data / "val.en").read_text("utf-8").splitlines()[:80] if (found := _gapped(lm, line))]
    ways = [("ordered", {"order": "confidence"}), *(("threshold", {"least": least}) for least in (0.9, 0.5, 0.2, 0.0)),
            *(("g_ipd", {"groups": groups}) for groups in (4, 2))]  # fmt: skip
    for kernel, options in ways:
        passes, right, size = [], [], []
        for text, ids, hidden in asked:
            drawn = lm.sample(text, kernel, chains=1, seed=0, pick="argmax", **options)
            passes.append(float(drawn.passes.mean()))
            right.append(int((drawn.ids[0][hidden] == ids[hidden]).sum()))
            size.append(int(hidden.sum()))
        share, places = sum(right) / sum(size), np.array(size)
        error = float((((np.array(right) - share * places) ** 2).sum()) ** 0.5 / places.sum())  # over captions
        told = {"passes": round(float(np.mean(passes)), 2), "found": round(share, 4), "error": round(error, 4)}
        print(json.dumps({"kernel": kernel, **options, "texts": len(asked), "hidden": sum(size), **told}), flush=True)


def windows() -> None:
    """48 tokens through windows of 24 by the embedded model: passes, seconds, and what it thinks of what it wrote."""
    import numpy as np

    import besag

    lm = besag.load(progress=False)
    for grid in (None, 16, 8, 4, 2):
        begun = time.monotonic()
        drawn = lm.sample(length=48, kernel="semi_ar", window=24, stride=12, grid=grid, chains=16, seed=0)
        seconds = time.monotonic() - begun
        nats = np.array([-one.total / len(one.tokens) for one in lm.score(drawn.texts, "pll")])
        told = {"passes": round(float(drawn.passes.mean()), 1), "seconds": round(seconds, 1)}
        told |= {"nats": round(float(nats.mean()), 3), "error": round(float(nats.std(ddof=1) / len(nats) ** 0.5), 3)}
        print(json.dumps({"grid": grid, **told}), flush=True)


def _gapped(lm: Any, line: str) -> tuple[str, Any, Any] | None:
    """A caption with every second of its words of one token hidden, its tokens (L,), and which are asked (L,)."""
    import numpy as np

    words = lm.vocabulary
    [encoded] = words.encode([line])
    alone = [place for place, word in enumerate(encoded.words) if word >= 0 and (encoded.words == word).sum() == 1]
    chosen = [place for place in alone if line[encoded.offsets[place][0]].isalpha()][::2]
    hidden = np.isin(np.arange(len(encoded.ids)), chosen)
    text = line
    for place in np.flatnonzero(hidden)[::-1].tolist():
        start, end = encoded.offsets[place].tolist()
        text = text[:start] + words.tokenizer.mask_token + text[end:]
    [masked] = words.encode([text])
    same = len(masked.ids) == len(encoded.ids) and ((masked.ids == words.mask_id) == hidden).all()
    return (text, encoded.ids, hidden) if same and hidden.sum() >= 3 else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    about = ["ramp", "densest", "blocks", "kept", "causal", "links", "times", "speculative", "threshold", "windows"]
    parser.add_argument("what", choices=about)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--data", type=Path)
    chosen = parser.parse_args()
    if chosen.what in ("speculative", "windows"):
        {"speculative": speculative, "windows": windows}[chosen.what]()
        return
    if chosen.what == "threshold":
        threshold(chosen.data)
        return
    chosen.folder.mkdir(parents=True, exist_ok=True)
    if chosen.what in ("ramp", "densest", "blocks", "kept", "causal") and chosen.data is None:
        parser.error(f"{chosen.what} needs --data, a folder with train.en and val.en")
    if chosen.what == "times":
        times(chosen.folder, chosen.data)
    else:
        jobs = {"ramp": ramp, "densest": densest, "blocks": blocks, "kept": kept, "causal": causal, "links": links}
        jobs[chosen.what](chosen.folder, chosen.data)


if __name__ == "__main__":
    main()
