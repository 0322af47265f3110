"""One tiny tokenizer of each family, built in memory, for every test that needs text turned into ids.

Knows how each family is laid out in transformers; knows no model. Import it as `tests.tokenizers`: a bare
`import tokenizers` is the library.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    BertTokenizer,
    EsmTokenizer,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
    RobertaTokenizer,
    XLMRobertaTokenizer,
)
from transformers.models.bert.tokenization_bert_legacy import BertTokenizerLegacy

SENTENCES = (
    "The cats sleep on the mat.",
    "The cat sleeps, and the dogs don't sleep!",
    "A man is at the casino with the souvenir.",
    "She put the traveller's carpet on the table, didn't she?",
    "Dogs bark at cats; cats sleep at night.",
    "Une café déjà vu: naïve résumé.",
)
BRACKETS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
ANGLES = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
RESIDUES = "LAGVSERTIDPKQNFYMHWCXBUZO"
NAMED = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), BRACKETS, strict=True))


def _wordpieces(lowercase: bool) -> tuple[str, ...]:
    """Short words whole, long ones in two pieces, and letters: a trained table differs from run to run."""
    clean = normalizers.BertNormalizer(lowercase=lowercase).normalize_str(" ".join(SENTENCES))
    pieces = set()
    for word, _ in pre_tokenizers.BertPreTokenizer().pre_tokenize_str(clean):
        pieces |= {word} if len(word) < 6 else {word[:3], f"##{word[3:]}"}
        pieces |= {word[0], *(f"##{letter}" for letter in word)}
    return BRACKETS + tuple(sorted(pieces))


def _wordpiece(lowercase: bool) -> PreTrainedTokenizerBase:
    table = {token: index for index, token in enumerate(_wordpieces(lowercase))}
    return BertTokenizer(vocab=table, do_lower_case=lowercase)


def _wordpiece_slow() -> PreTrainedTokenizerBase:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "vocab.txt")
        file.write_text("\n".join(_wordpieces(True)), encoding="utf-8")
        return BertTokenizerLegacy(str(file))


def _byte_pairs(specials: tuple[str, ...]) -> Tokenizer:
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=360,
        special_tokens=list(specials),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    backend.train_from_iterator(SENTENCES, trainer)
    return backend


def _bytelevel_trimmed() -> PreTrainedTokenizerBase:
    trained = json.loads(_byte_pairs(ANGLES).to_str())["model"]
    return RobertaTokenizer(vocab=trained["vocab"], merges=[tuple(pair) for pair in trained["merges"]])


def _bytelevel_untrimmed() -> PreTrainedTokenizerBase:
    """The layout of ModernBERT: the space before a word stays inside the offsets of its first token."""
    backend = _byte_pairs(BRACKETS)
    backend.normalizer = normalizers.NFC()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(tokenizer_object=backend, **NAMED)


def _unigram() -> PreTrainedTokenizerBase:
    """Words, some of their beginnings, and letters, each as likely as it is frequent: a trained one differs by run."""
    count: Counter[str] = Counter(letter for letter in "".join(SENTENCES) if letter != " ")
    for word in " ".join(SENTENCES).split():
        count.update({"▁": 1, f"▁{word[:2]}": 1, f"▁{word}": 1})
    scores = [(piece, math.log(times / count.total())) for piece, times in sorted(count.items()) if times > 1]
    return XLMRobertaTokenizer(vocab=[*((token, 0.0) for token in ANGLES), *scores])


def _character_slow() -> PreTrainedTokenizerBase:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "vocab.txt")
        file.write_text(
            "\n".join(["<cls>", "<pad>", "<eos>", "<unk>", *RESIDUES, ".", "-", "<mask>"]), encoding="utf-8"
        )
        return EsmTokenizer(str(file))


def _no_specials() -> PreTrainedTokenizerBase:
    """Nothing is added around the text: place 0 is the first token of the text."""
    words = sorted(
        {word for sentence in SENTENCES for word, _ in pre_tokenizers.Whitespace().pre_tokenize_str(sentence)}
    )
    table = {token: index for index, token in enumerate(["[PAD]", "[UNK]", "[MASK]", *words])}
    backend = Tokenizer(models.WordLevel(table, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=backend, pad_token="[PAD]", unk_token="[UNK]", mask_token="[MASK]")


BUILDERS: dict[str, Callable[[], PreTrainedTokenizerBase]] = {
    "wordpiece-cased": lambda: _wordpiece(lowercase=False),
    "wordpiece-uncased": lambda: _wordpiece(lowercase=True),
    "bytelevel-trimmed": _bytelevel_trimmed,
    "bytelevel-untrimmed": _bytelevel_untrimmed,
    "unigram": _unigram,
    "character-slow": _character_slow,
    "wordpiece-slow": _wordpiece_slow,
    "no-specials": _no_specials,
}
FAMILIES: tuple[str, ...] = tuple(BUILDERS)


def build(name: str) -> PreTrainedTokenizerBase:
    """A fresh tokenizer of the family `name`: yours to change."""
    return BUILDERS[name]()
