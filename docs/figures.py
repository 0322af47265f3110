"""The pictures of the documentation, drawn from the embedded model into docs/img/.

python docs/figures.py [NAME ...]
"""

from __future__ import annotations

import itertools
import json
import math
import os
import sys
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

import besag
from besag.joints import construction

HERE = Path(__file__).parent
INK, GREY, BLUE, ORANGE, GREEN, PURPLE = "#22252b", "#8a8f98", "#3b6fb6", "#d9662b", "#3d8f5f", "#7d5ba6"
STYLE = {
    "font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "axes.titlelocation": "left",
    "axes.titlesize": 10.5, "axes.edgecolor": GREY, "text.color": INK, "axes.labelcolor": INK, "legend.frameon": False,
    "xtick.color": INK, "ytick.color": INK, "figure.dpi": 110, "savefig.facecolor": "white",
}  # fmt: skip
PAIR = ("The keys to the cabinet are here.", "The keys to the cabinet is here.")
AGREEMENT = "The [MASK] [MASK] very tired."
TWO_MASKS = "He lives in [MASK] [MASK]."
TRASTUZUMAB = (
    "EVQLVESGGGLVQPGGSLRLSCAASGFNIKDTYIHWVRQAPGKGLEWVARIYPTNGYTRYADSVKGRFTISADTSKNTAYLQMNSLRAEDTAVYYC"
    "SRWGGDGFYAMDYWGQGTLVTVSS"
)
CDR_H3 = "DGFY"
RESIDUES = "ACDEFGHIKLMNPQRSTVWY"
CASINO = "The man is at the casino."
GARDEN_PATH = ("As the woman read the letter fell to the floor.", "As the woman read, the letter fell to the floor.")


def pair(lm: besag.LanguageModel) -> None:
    """README: surprisal of a minimal pair token by token, and the score difference of each method."""
    _, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.5), width_ratios=(3, 2), layout="constrained")
    for score, colour, name in zip(lm.score(list(PAIR), base=2), (GREY, ORANGE), ("are", "is"), strict=True):
        label = f"… {name} here.   {minus(score.total)} bits"
        left.plot(score.surprisals, "o-", color=colour, ms=4, label=label)
        verb = [token.strip("▁") for token in score.tokens].index(name)
    tokens = [token.replace("▁", "") or "␣" for token in score.tokens]
    tokens[verb] = "are / is"
    left.set_xticks(range(len(tokens)), tokens, rotation=45, ha="right", rotation_mode="anchor")
    left.axvspan(verb - 0.5, verb + 0.5, color=ORANGE, alpha=0.1, lw=0)
    left.set(title="The keys to the cabinet are / is here.   pll", ylabel="surprisal (bits)", ylim=(0, 13))
    left.legend(loc="upper left")

    methods = ("pll", "word_l2r", "whole_word", "chain", "elbo", "unmasked")
    for place, method in enumerate(methods):
        good, bad = lm.score(list(PAIR), method, base=2, **({"samples": "all"} if method == "elbo" else {}))
        gain = good.total - bad.total
        right.barh(place, gain, color=PURPLE if good.normalised else BLUE, alpha=0.8)
        right.text(gain + 0.2, place, f"{gain:.1f}", va="center")
    right.set_yticks(range(len(methods)), methods)
    right.set(title="score difference, are − is (bits)", xlim=(0, 21), ylim=(7.4, -0.6))
    handles = [plt.Rectangle((0, 0), 1, 1, color=colour, alpha=0.8) for colour in (PURPLE, BLUE)]
    right.legend(handles, ["log-probability, or a lower bound", "not a probability"], loc="lower right")
    save("pair")


def epistasis(lm: besag.LanguageModel) -> None:
    """Double mutants in CDR-H3 of an antibody by AntiBERTy: their joint effect against the sum of the single ones."""
    model = besag.load(os.environ["BESAG_ANTIBERTY"], device="cpu")
    start = TRASTUZUMAB.index(CDR_H3)
    doubles = [
        f"{TRASTUZUMAB[i]}{i + 1}{a}:{TRASTUZUMAB[j]}{j + 1}{b}"
        for i, j in itertools.combinations(range(start, start + len(CDR_H3)), 2)
        for a, b in itertools.product(RESIDUES, repeat=2)
        if a != TRASTUZUMAB[i] and b != TRASTUZUMAB[j]
    ]
    found = model.variants(TRASTUZUMAB, doubles, "ag")
    _, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4.1), layout="constrained")
    low = float(min(found.additive.min(), found.effect.min()))
    left.plot([low, 2], [low, 2], color=GREY, lw=1)
    left.scatter(found.additive, found.effect, s=2, color=BLUE, alpha=0.25, lw=0, rasterized=True)
    left.set(
        title="double mutants of CDR-H3", xlabel="sum of the two single effects (nats)", ylabel="joint effect (nats)"
    )
    found.plot(right)
    right.set_title("epistasis farthest from 0 of two places")
    size = np.abs(found.epistasis)
    together = np.corrcoef(found.effect, found.additive)[0, 1]
    print(
        f"{len(found):,} double mutants: mean |ε| {size.mean():.3f}, most {size.max():.2f}; correlation {together:.4f}"
    )
    for at in np.argsort(-size)[:5]:
        print(found.variants[at].name, f"{found.effect[at]:.2f} {found.additive[at]:.2f} {found.epistasis[at]:.2f}")
    save("epistasis")


def coloured(lm: besag.LanguageModel) -> None:
    """A text with each token on the colour of its surprisal, as `score.plot(kind="text")` draws it."""
    text = (
        "The language spoken on the island has many words for wind and none for winter. "
        "The hooligan wrecked the harpsichord. It rained all night."
    )
    lm.score(text, "word_l2r", base=2).plot(kind="text")
    save("coloured")


def garden_path(lm: besag.LanguageModel) -> None:
    """From left to right the missing comma costs bits at 'fell'; with both sides in view it costs fewer."""
    _, axes = plt.subplots(1, 2, figsize=(9, 3.3), sharey=True, layout="constrained")
    titles = {"chain": "chain: only the left side is shown", "pll": "pll: both sides are shown"}
    for ax, (method, title) in zip(axes, titles.items(), strict=True):
        plain, comma = (score.by_word() for score in lm.score(list(GARDEN_PATH), method, base=2))
        labels = [word.text for word in comma]
        at = [place for place, label in enumerate(labels) if label != ","]
        ax.plot(range(len(comma)), [-word.value for word in comma], "o-", color=GREY, label="with the comma", ms=4)
        ax.plot(at, [-word.value for word in plain], "o-", color=ORANGE, label="without it", ms=4)
        ax.axvspan(labels.index("fell") - 0.5, labels.index("fell") + 0.5, color=ORANGE, alpha=0.1, lw=0)
        ax.set_xticks(range(len(labels)), labels, rotation=45, ha="right", rotation_mode="anchor")
        verb = labels.index("fell")
        more = [word.text for word in plain].index("fell")
        ax.text(verb + 0.6, 14.4, f"+{comma[verb].value - plain[more].value:.1f} bits", color=ORANGE)
        ax.set(title=title, ylim=(0, 15.6))
    axes[0].set_ylabel("surprisal (bits)")
    axes[1].legend(loc="upper left", bbox_to_anchor=(0.1, 1.0))
    save("garden_path")


def pieces(lm: besag.LanguageModel) -> None:
    """One word of five pieces under four methods."""
    text, word = "The hooligan wrecked the harpsichord.", "harpsichord"
    methods = {"pll": BLUE, "word_l2r": ORANGE, "whole_word": GREEN, "chain": PURPLE}
    _, ax = plt.subplots(figsize=(8, 3.3), layout="constrained")
    for number, (method, colour) in enumerate(methods.items()):
        score = lm.score(text, method, base=2)
        inside = [place for place in range(len(score)) if score.words[place] == score.words[-2]]
        bits = score.surprisals[inside]
        x = np.arange(len(inside)) + 0.2 * (number - 1.5)
        ax.bar(x, bits, 0.18, color=colour, label=f"{method}: {bits.sum():.1f} bits in all")
    ax.set_xticks(range(len(inside)), [score.tokens[place].replace("▁", "(space)") for place in inside])
    ax.set(title=f"the five pieces of “{word}” in “{text}”", ylabel="surprisal (bits)")
    ax.set_ylim(0, 19)
    ax.legend(loc="upper right")
    save("pieces")


def orders(lm: besag.LanguageModel) -> None:
    """The chain rule in a hundred random orders: one model, many laws."""
    text = "The children play in the garden."
    totals = [lm.score(text, "chain", order="random", seed=seed).total for seed in range(100)]
    figure, ax = plt.subplots(figsize=(8, 3.4), layout="constrained")
    ax.hist(totals, bins=24, color=BLUE, alpha=0.35)
    marks = {
        "left to right": (lm.score(text, "chain"), ORANGE, "-"),
        "right to left": (lm.score(text, "chain", order="right-to-left"), GREEN, "-"),
        "most confident first": (lm.score(text, "chain", order="confident"), PURPLE, "--"),
        "elbo: the mean over all 5,040 orders": (lm.score(text, "elbo", samples="all"), INK, "-"),
    }
    for label, (score, colour, dashes) in marks.items():
        ax.axvline(score.total, color=colour, ls=dashes, lw=1.8, label=f"{label}: {minus(score.total)}")
    figure.legend(loc="outside lower center", ncols=2)
    ax.set(xlabel="log p(x | n) by the chain rule (nats)", ylabel="of 100 random orders", title=f"“{text}”")
    save("orders")


def lengths(lm: besag.LanguageModel) -> None:
    """p(n), fitted on examples/sentences.txt."""
    texts = (HERE.parent / "examples" / "sentences.txt").read_text(encoding="utf-8").splitlines()
    law = lm.length_model(texts)
    n = np.arange(1, 61)
    _, ax = plt.subplots(figsize=(8, 2.9), layout="constrained")
    seen = [law.counts.get(int(i), 0) / law.n_texts for i in n]
    fitted = [math.exp(law.log_prob(int(i))) for i in n]
    ax.bar(n, seen, color=GREY, alpha=0.45, label="share of the 60 sentences")
    ax.plot(n, fitted, "o-", color=ORANGE, ms=3, lw=1.3, label="p(n), smoothed: sums to 1")
    ax.set(xlabel="tokens", ylabel="probability", xlim=(0, 61))
    ax.legend()
    save("lengths")


def sums(lm: besag.LanguageModel) -> None:
    """What a score sums to over all sequences, on exact tables: only a probability gives 1."""
    sequences = [" ".join(f"s{i}" for i in x) for x in itertools.product(range(3), repeat=3)]
    found: dict[str, list[float]] = {"pll": [], "chain": []}
    for seed in range(40):
        exact = besag.load(besag.Table.random(3, 3, seed=seed, concentration=2.0 / (1 + seed % 4)), progress=False)
        for method, values in found.items():
            values.append(sum(math.exp(score.total) for score in exact.score(sequences, method)))
    order = np.argsort(found["pll"])
    _, ax = plt.subplots(figsize=(8, 2.9), layout="constrained")
    for (method, values), colour in zip(found.items(), (BLUE, PURPLE), strict=True):
        ax.plot(np.array(values)[order], "o", color=colour, ms=4.5, label=method)
    ax.axhline(1, color=GREY, lw=0.8, zorder=0)
    ax.set(xlabel="40 random laws of three symbols in a row", ylabel="Σ exp(score), 27 sequences", xticks=[])
    ax.set_ylim(bottom=0)
    ax.legend(loc="upper left")
    save("sums")


def joint(lm: besag.LanguageModel) -> None:
    """Front page of the docs: two masks, independent predictions and their joint distribution, on the same tokens."""
    ag = lm.joint(AGREEMENT, candidates=200)
    mlm = ag.by(construction("mlm"))
    named = [*mlm.top(3), *ag.top(9)]
    rows, columns = (sorted({pair.tokens[side] for pair in named}, key=str.lower) for side in (0, 1))
    _, axes = plt.subplots(1, 2, figsize=(9.6, 4.0), sharey=True, layout="constrained")
    titles = {"independent predictions (mlm): p(x) · p(y)": mlm, "joint distribution (ag)": ag}
    for ax, (title, law) in zip(axes, titles.items(), strict=True):
        cells = np.exp([[law.log_prob(x, y) for y in columns] for x in rows])
        ax.imshow(np.sqrt(cells), cmap="Oranges", vmin=0, vmax=0.27, aspect="auto")
        for (x, y), cell in np.ndenumerate(cells):
            if cell >= 0.005:
                ink = "white" if cell > 0.03 else INK
                ax.text(y, x, f"{cell:.1%}", ha="center", va="center", fontsize=8, color=ink)
        words = [[token.replace("▁", "␣") for token in tokens] for tokens in (rows, columns)]
        ax.set_yticks(range(len(rows)), words[0])
        ax.set_xticks(range(len(columns)), words[1], rotation=45, ha="right", rotation_mode="anchor")
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        ax.set_title(title)
    axes[0].set_ylabel("first mask")
    for ax in axes:
        ax.set_xlabel("second mask")
    plt.gcf().suptitle(f"“{AGREEMENT}”   200 × 200 candidates, bundled model", x=0.01, ha="left", fontsize=10.5)
    save("joint")


def heatmap(lm: besag.LanguageModel) -> None:
    """A joint as `joint.plot()` draws it."""
    lm.joint(TWO_MASKS, candidates=200).plot(n=10)
    save("heatmap", bbox_inches="tight")


def casino(lm: besag.LanguageModel) -> None:
    """All constructions on one pair, as `comparison.plot()` draws them."""
    lm.joint(CASINO, positions=("man", "is"), candidates=50).compare().plot()
    save("casino", bbox_inches="tight")


def rectangles(lm: besag.LanguageModel) -> None:
    """The odds ratios of 2 × 2 minors, seen from either place."""
    lm.rectangles(CASINO, positions=("man", "is"), minors=100).plot()
    save("rectangles", bbox_inches="tight")


def dependence(lm: besag.LanguageModel) -> None:
    """The mutual information of every two tokens."""
    lm.dependence(PAIR[0], method="stationary", candidates=10).plot()
    save("dependence", bbox_inches="tight")


def explanation(lm: besag.LanguageModel) -> None:
    """What a filling rests on, and the curve of faithfulness."""
    lm.explain("The capital of France is [MASK].", "Paris", method="mask", curve=True).plot()
    save("explanation", bbox_inches="tight")


def decoding(_: besag.LanguageModel) -> None:
    """Adaptive decoding beside others at equal passes, from benchmarks/results/decoding.json."""
    told = json.loads((HERE.parent / "benchmarks/results/decoding.json").read_text("utf-8"))
    colours = {"plain": GREY, "confident": PURPLE, "entropy_bound": GREEN, "adaptive": ORANGE}
    _, axes = plt.subplots(1, 3, figsize=(9.6, 3.4), layout="constrained", width_ratios=(3, 3, 2.4))
    for axis, passes in zip(axes, (4, 8), strict=False):
        for name, colour in colours.items():
            cells = [cell for cell in told["cells"] if (cell["method"], cell["rounds"]) == (name, passes)]
            entropy, loss = ([cell[key] for cell in cells] for key in ("entropy", "loss"))
            axis.plot(entropy, loss, "o-", color=colour, ms=4, label=name)
        axis.plot(told["real"]["entropy"], told["real"]["loss"], "*", color=INK, ms=9, label="real text")
        axis.set(title=f"{passes} passes", xlabel="entropy of tokens (nats)", xlim=(5, 7.1), ylim=(3.2, 7))
    axes[0].set_ylabel("loss under the judge (nats a token)")
    axes[0].legend(loc="upper left")
    for name, colour in colours.items():
        cells = [cell for cell in told["cells"] if (cell["method"], cell["rounds"]) == (name, 4)]
        rate = [100 * cell["stutter"]["words"] for cell in cells]
        axes[2].plot([cell["temperature"] for cell in cells], rate, "o-", color=colour, ms=4)
    axes[2].set(title="words said twice (%), 4 passes", xlabel="temperature", ylim=(0, None))
    save("decoding")


LAB = {  # the experiment and the figure of it that a page shows
    "lab-masking-more": ("masking_more", "both losses"),
    "lab-efficiency": ("efficiency_curves", "block loss, θ = couplings and fields"),
    "lab-best-masks": ("best_masks", "blocks"),
}


def lab(lm: besag.LanguageModel) -> None:
    """docs/lab/: figures of the training side, exact."""
    from besag.lab.experiment import experiment

    for name, (called, figure) in LAB.items():
        experiment(called).run().plot(figure=figure)
        save(name)


def lab_trained(lm: besag.LanguageModel) -> None:
    """docs/lab/trained.md: networks trained on exact systems; minutes."""
    from besag.lab.experiment import experiment

    rates = experiment("trained_rates").run()
    for figure in ("one hidden", "any number hidden"):
        rates.plot(figure=figure)
        save(f"lab-trained-{figure.split()[0].lower()}")
    experiment("trained_laws").run().plot()
    save("lab-trained-laws")
    experiment("trained_dependence").run().plot()
    save("lab-trained-mixing")


LAB_JOINTS = {
    "lab-joints-logits": ("joints_under_noise", "nearest, logits"),
    "lab-joints-counts": ("joints_under_noise", "nearest, counts"),
    "lab-heads": ("one_pass_heads", "components"),
    "lab-modes": ("escape_from_modes", "passes"),
    "lab-modes-mixing": ("escape_from_modes", "mixing"),
    "lab-modes-map": ("escape_from_modes", "dependence"),
}


def lab_joints(lm: besag.LanguageModel) -> None:
    """docs/lab/: joints, heads and modes; minutes."""
    from besag.lab.experiment import experiment

    once = dict.fromkeys(called for called, _ in LAB_JOINTS.values())
    found = {called: experiment(called).run() for called in once}
    for name, (called, figure) in LAB_JOINTS.items():
        found[called].plot(figure=figure)
        save(name)


def lab_antibody(lm: besag.LanguageModel) -> None:
    """docs/lab/modes.md: two neighbours of CDR-H3 by AntiBERTy, masked together; minutes."""
    from besag.lab.experiment import experiment

    for hidden in ("GD", "AM"):
        text = " ".join(TRASTUZUMAB).replace(" ".join(hidden), "[MASK] [MASK]")
        found = experiment(
            "escape_from_modes", model=os.environ["BESAG_ANTIBERTY"], text=text, candidates=len(RESIDUES)
        ).run()
        print(found)
    for figure, name in {"passes": "", "mixing": "-mixing"}.items():  # the map would tell in which folder the model is
        found.plot(figure=figure)
        save(f"lab-antibody{name}")


def minus(value: float) -> str:
    return f"{value:.1f}".replace("-", "−")


def save(name: str, **options: str) -> None:
    path = HERE / "img" / f"{name}.png"
    path.parent.mkdir(exist_ok=True)
    plt.savefig(path, dpi=130, metadata={"Software": None}, **options)
    plt.close()
    print(f"docs/img/{name}.png  {path.stat().st_size / 1000:.0f} kB")


FIGURES = (
    pair, coloured, garden_path, pieces, orders, lengths, sums,
    joint, heatmap, casino, rectangles, dependence, explanation, decoding, lab, lab_trained,
    lab_joints,
    *([epistasis, lab_antibody] if "BESAG_ANTIBERTY" in os.environ else []),
)  # fmt: skip

if __name__ == "__main__":
    model = besag.load(progress=False)
    with mpl.rc_context(STYLE):
        for figure in FIGURES:
            if not sys.argv[1:] or figure.__name__ in sys.argv[1:]:
                figure(model)
