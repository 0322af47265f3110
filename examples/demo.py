"""What besag does, on the embedded model: `make demo`. No network, half a minute at most.

Every number is printed with what it means. The pages in docs/ say more; `besag methods NAME` says it in the terminal.
"""

import os
from importlib.util import find_spec
from pathlib import Path

import besag

HERE = Path(__file__).parent
PICTURE = HERE.parent / "build" / "demo.png"
GOOD, BAD = "The keys to the cabinet are here.", "The keys to the cabinet is here."


def main() -> None:
    lm = besag.load(progress=False)
    print(f"{lm}: the model that ships with besag")
    minimal_pair(lm)
    token_by_token(lm)
    choice(lm)
    sentence_probability(lm)
    corpus(lm)
    several_masks(lm)
    writing(lm)
    if find_spec("matplotlib"):
        picture(lm)


def section(title: str, *said: str) -> None:
    print(f"\n\n{title}\n{'─' * len(title)}", *said, sep="\n")


def minimal_pair(lm: besag.LanguageModel) -> None:
    section("1. Two sentences, several numbers", f"   A  {GOOD}", f"   B  {BAD}", "")
    print("method        log A    log B      A − B   what the number is")
    meanings = {
        "pll": "every token given all the others: ranks well, no probability",
        "word_l2r": "the same, but the rest of a word is hidden too: fair to rare words",
        "whole_word": "the same, but the whole word is hidden",
        "chain": "the chain rule from left to right: a probability, of 9 tokens in a row",
        "elbo": "a bound over all orders, from 64 random masks: an estimate, with its error",
        "unmasked": "one pass, nothing hidden: the model sees the answer; a heuristic",
    }
    for method, meaning in meanings.items():
        a, b = lm.score([GOOD, BAD], method)
        error = f" ±{a.standard_error:.1f}" if a.standard_error else ""
        print(f"{method:11}{a.total:8.2f} {b.total:8.2f}   {a.total - b.total:8.2f}   {meaning}{error}")


def token_by_token(lm: besag.LanguageModel) -> None:
    section("2. Token by token", "log p in nats; rank 1 is the model's own first choice. Where does B go wrong?", "")
    bad = lm.score(BAD, rank=True)
    print(bad)
    print(f"\nThe word 'is' alone: {bad['is']:.2f}. In A, 'are' has {lm.score(GOOD)['are']:.2f}.")


def choice(lm: besag.LanguageModel) -> None:
    section(
        "3. Which option fits?",
        "Options may have several tokens. Each is scored by the chain rule, given the rest.",
        "",
    )
    print(lm.choose("They drank a [MASK] after dinner.", ["cup of tea", "glass of wine", "bowl of stones", "chair"],
                    "chain", of="option"))  # fmt: skip
    print("The share is over these four options only; it is not the model's probability of the option.")


def sentence_probability(lm: besag.LanguageModel) -> None:
    section(
        "4. P(sentence) = p(n) · p(x | n)",
        "The chain rule compares sentences of one length. With p(n), from examples/sentences.txt, lengths compare.",
        "",
    )
    lengths = lm.length_model((HERE / "sentences.txt").read_text(encoding="utf-8").splitlines())
    print("  n   log p(n)   log p(x|n)   log P(x)   sentence")
    for score in lm.score(["It rained.", "It rained all night.", "It rained all night, and the road was closed.", GOOD],
                          "chain", lengths=lengths):  # fmt: skip
        given_length = score.total - score.extra["length"]
        print(f"{len(score):3} {score.extra['length']:10.2f} {given_length:12.2f} {score.total:10.2f}   {score.text}")
    print("Each log P(x) is the log-probability of a token sequence of any length, under this model and this p(n).")


def corpus(lm: besag.LanguageModel) -> None:
    section("5. A whole corpus", "The first 20 lines of examples/sentences.txt.", "")
    texts = (HERE / "sentences.txt").read_text(encoding="utf-8").splitlines()[:20]
    pll, chain = (besag.corpus(lm.score(texts, method)) for method in ("pll", "chain"))
    print(f"pseudo-perplexity   {pll.perplexity:6.2f} a token, by pll: to compare corpora under one model")
    print(f"perplexity          {chain.perplexity:6.2f} a token, by chain: of true probabilities, at given lengths")
    print(f"bits per character  {chain.bits_per_character:6.2f} by chain: to compare models with different tokenizers")


def several_masks(lm: besag.LanguageModel) -> None:
    text = "He lives in [MASK] [MASK]."
    section("6. Two masks together", f"   {text}", "")
    meanings = {
        "mlm": "each mask for itself, multiplied: what fill-mask does",
        "ag": "the joint of both, over 30 candidates",
    }
    for method, meaning in meanings.items():
        joint = lm.joint(text, method=method, candidates=30)
        print(f"{method:4} {meaning}")
        for pair in joint.top(3):
            print(f"     {pair.prob:7.2%}  {pair.text}")
    print("Each is a probability of pairs of candidates; `besag compare` puts all such joints side by side.")


def writing(lm: besag.LanguageModel) -> None:
    section("7. Let it write", "Twelve tokens from nothing, one place at a time: the chain rule, drawn.", "")
    for text in lm.sample(length=12, end=".", kernel="ordered", chains=3, seed=5):
        print(f"   {text}")
    edited = lm.edit("The boy lost his keys.", {"boy": "girl"})
    print(f"\nEdited with the noise that made it: {edited.original} → {edited.text}")
    print("All kernels, what each samples from, and what comes out: docs/generation/.")


def picture(lm: besag.LanguageModel) -> None:
    axes = lm.score("As the woman read the letter fell to the floor.", "chain", base=2).plot()
    PICTURE.parent.mkdir(exist_ok=True)
    axes.figure.savefig(PICTURE, dpi=120)
    print(f"\n\nA surprisal plot of a garden-path sentence: {os.path.relpath(PICTURE)}")


if __name__ == "__main__":
    main()
