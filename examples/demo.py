"""A tour of besag with the bundled model: `make demo`. It needs no network and takes less than a minute.

Each number is printed with its meaning. `besag methods NAME` explains a method; docs/getting-started.md is a tutorial.
"""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

import besag

HERE = Path(__file__).parent
PICTURE = HERE.parent / "build" / "demo.png"
GOOD, BAD = "The keys to the cabinet are here.", "The keys to the cabinet is here."
CORPUS_LINES = 20
CANDIDATES = 30
SAMPLE_LENGTH = 12


def main() -> None:
    lm = besag.load(progress=False)
    print(f"{lm}: the bundled English model")
    minimal_pair(lm)
    token_by_token(lm)
    choice(lm)
    sentence_probability(lm)
    corpus(lm)
    two_masks(lm)
    sampling(lm)
    if find_spec("matplotlib"):
        picture(lm)
    next_steps()


def section(title: str, *lines: str) -> None:
    print(f"\n\n{title}\n{'─' * len(title)}", *lines, sep="\n")


def minimal_pair(lm: besag.LanguageModel) -> None:
    section("1. Scores of a minimal pair", f"   A  {GOOD}", f"   B  {BAD}", "")
    print("method        log A    log B      A − B   what the number is")
    meanings = {
        "pll": "each token given all others: ranks well, is not a probability",
        "word_l2r": "as pll, with the later tokens of a word masked too: better for rare words",
        "whole_word": "as pll, with whole words masked",
        "chain": "the chain rule, left to right: a log-probability over token sequences of length {n}",
        "elbo": "a lower bound on such a log-probability, averaged over orders; standard error of A {error:.1f}",
        "unmasked": "one forward pass with nothing masked: a heuristic",
    }
    for method, meaning in meanings.items():
        a, b = lm.score([GOOD, BAD], method)
        meaning = meaning.format(n=len(a), error=a.standard_error)
        print(f"{method:11}{a.total:8.2f} {b.total:8.2f}   {a.total - b.total:8.2f}   {meaning}")


def token_by_token(lm: besag.LanguageModel) -> None:
    section("2. Log-probability of each token", "log p in nats. Rank 1 is the model's most probable token.", "")
    bad = lm.score(BAD, rank=True)
    print(bad)
    print(f"\nlog p is {bad['is']:.2f} for 'is', and {lm.score(GOOD)['are']:.2f} for 'are' in sentence A.")


def choice(lm: besag.LanguageModel) -> None:
    section(
        "3. Options for a slot",
        "Options may have several tokens. Each is scored by the chain rule, given the rest of the sentence.",
        "",
    )
    options = ["cup of tea", "glass of wine", "bowl of stones", "chair"]
    print(lm.choose("They drank a [MASK] after dinner.", options, "chain", of="option"))
    print("The share is relative to these options. It is not the model's probability of an option.")


def sentence_probability(lm: besag.LanguageModel) -> None:
    section(
        "4. Probability of a sentence: P(x) = p(n) · p(x | n)",
        "The chain rule gives p(x | n), over token sequences of length n.",
        "The length distribution p(n), fitted to examples/sentences.txt, makes different lengths comparable.",
        "",
    )
    lengths = lm.length_model((HERE / "sentences.txt").read_text(encoding="utf-8").splitlines())
    sentences = ["It rained.", "It rained all night.", "It rained all night, and the road was closed.", GOOD]
    print("  n   log p(n)   log p(x|n)   log P(x)   sentence")
    for score in lm.score(sentences, "chain", lengths=lengths):
        given_length = score.total - score.extra["length"]
        print(f"{len(score):3} {score.extra['length']:10.2f} {given_length:12.2f} {score.total:10.2f}   {score.text}")
    print("P(x) is a probability over token sequences of every length, under this model and this p(n).")


def corpus(lm: besag.LanguageModel) -> None:
    section("5. Perplexity of a corpus", f"The first {CORPUS_LINES} lines of examples/sentences.txt.", "")
    texts = (HERE / "sentences.txt").read_text(encoding="utf-8").splitlines()[:CORPUS_LINES]
    pll, chain = (besag.corpus(lm.score(texts, method)) for method in ("pll", "chain"))
    print(f"pseudo-perplexity   {pll.perplexity:6.2f}   per token, by pll: compares corpora under one model")
    print(f"perplexity          {chain.perplexity:6.2f}   per token, by chain: of log-probabilities at given lengths")
    print(f"bits per character  {chain.bits_per_character:6.2f}   by chain: compares models with different tokenizers")


def two_masks(lm: besag.LanguageModel) -> None:
    text = "He lives in [MASK] [MASK]."
    section("6. Joint distribution of two masks", f"   {text}", "")
    meanings = {
        "mlm": "independent predictions, multiplied: the distribution behind fill-mask",
        "ag": f"joint distribution, from {CANDIDATES} candidate tokens for each mask",
    }
    for method, meaning in meanings.items():
        joint = lm.joint(text, method=method, candidates=CANDIDATES)
        print(f"{method:4} {meaning}")
        for pair in joint.top(3):
            print(f"     {pair.prob:7.2%}  {pair.text}")
    print("Each number is a probability over pairs of candidates. `besag compare` compares all joint constructions.")


def sampling(lm: besag.LanguageModel) -> None:
    section(
        "7. Sampling and editing",
        f"Samples of {SAMPLE_LENGTH} tokens and a full stop, one position at a time from left to right (chain rule).",
        "",
    )
    for text in lm.sample(length=SAMPLE_LENGTH, end=".", kernel="ordered", chains=3, seed=5):
        print(f"   {text}")
    edited = lm.edit("The boy lost his keys.", {"boy": "girl"})
    print(f"\nOne word replaced, the context adapted: {edited.original} → {edited.text}")
    print("docs/generation/index.md lists all samplers and decoders, and what each samples from.")


def picture(lm: besag.LanguageModel) -> None:
    axes = lm.score("As the woman read the letter fell to the floor.", "chain", base=2).plot()
    PICTURE.parent.mkdir(exist_ok=True)
    axes.figure.savefig(PICTURE, dpi=120)
    print(f"\n\nFigure: surprisal of each token of a garden-path sentence, in bits: {os.path.relpath(PICTURE)}")


def next_steps() -> None:
    python = min(sys.executable, os.path.relpath(sys.executable), key=len)
    print(f'\n\nnext: {python} -m besag score "The cat sleeps." "The cat sleep." --method chain')
    print("next: docs/getting-started.md")
    print("next: docs/notebooks/psycholinguist.ipynb")


if __name__ == "__main__":
    main()
