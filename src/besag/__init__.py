"""Score, infill and sample text with masked language models, train them, and report what is a probability.

Names are imported when first used, so `import besag` loads neither torch nor transformers.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from besag.conditionals.given_table import GivenTable
    from besag.conditionals.ising import Ising
    from besag.conditionals.table import Table
    from besag.constraints import Forbidden, Length, Pattern, Predicate, Required, Solutions, Word
    from besag.diagnostics.dependence import DependenceMap
    from besag.diagnostics.rectangle import Rectangles
    from besag.distillation import distil_translations
    from besag.embedding.probe import Probe, probe
    from besag.engine import IDLE
    from besag.errors import BesagError
    from besag.evaluation.evaluate import evaluate
    from besag.evaluation.evaluation import Evaluation
    from besag.evaluation.minimal_pairs import MinimalPairs, minimal_pairs
    from besag.evaluation.overlap import Overlap, overlap
    from besag.explanation.explanation import Explanation
    from besag.fills.fill import Fill
    from besag.heads.head import Classifier, Tagger
    from besag.heads.loading import load_head
    from besag.heads.tuning import HeadResult, train_head
    from besag.joints.block import BlockJoint
    from besag.joints.comparison import Comparison
    from besag.joints.pair import PairJoint
    from besag.language_model import LanguageModel
    from besag.load_model import load
    from besag.matching.matching import Matching
    from besag.prompting import Answers, Prompt, answer, autoprompt
    from besag.rescoring.rescore import rescore
    from besag.rescoring.result import Rescoring
    from besag.samplers.chain import Chain
    from besag.samplers.editing.augmented import Augmentation
    from besag.samplers.editing.correct import Corrections
    from besag.samplers.editing.edit import Edited, Inversion
    from besag.samplers.normalising import Normalised
    from besag.scores.choice import Choice
    from besag.scores.corpora import Corpus, corpus
    from besag.scores.length import LengthModel
    from besag.scores.marginals import Marginals
    from besag.scores.score import Score
    from besag.service.client import connect
    from besag.study.report import Report
    from besag.sweeps import PowerLaw, Sweep, sweep
    from besag.train_model import TrainingResult, train
    from besag.training.collator import MaskingCollator
    from besag.training.data.statistics import masking_statistics
    from besag.training.recipe import Recipe
    from besag.training.tokenizer import train_tokenizer
    from besag.translation.translated import Translations
    from besag.variants.binders import Binders
    from besag.variants.variants import Variants

# what is public, and the file that holds it; the type checker reads the same from the imports above
_HOMES = {
    "Answers": "besag.prompting",
    "Augmentation": "besag.samplers.editing.augmented",
    "BesagError": "besag.errors",
    "Binders": "besag.variants.binders",
    "BlockJoint": "besag.joints.block",
    "Chain": "besag.samplers.chain",
    "Choice": "besag.scores.choice",
    "Classifier": "besag.heads.head",
    "Comparison": "besag.joints.comparison",
    "Corpus": "besag.scores.corpora",
    "Corrections": "besag.samplers.editing.correct",
    "DependenceMap": "besag.diagnostics.dependence",
    "Edited": "besag.samplers.editing.edit",
    "Evaluation": "besag.evaluation.evaluation",
    "Explanation": "besag.explanation.explanation",
    "Fill": "besag.fills.fill",
    "Forbidden": "besag.constraints",
    "GivenTable": "besag.conditionals.given_table",
    "HeadResult": "besag.heads.tuning",
    "IDLE": "besag.engine",
    "Inversion": "besag.samplers.editing.edit",
    "Ising": "besag.conditionals.ising",
    "LanguageModel": "besag.language_model",
    "Length": "besag.constraints",
    "LengthModel": "besag.scores.length",
    "Marginals": "besag.scores.marginals",
    "MaskingCollator": "besag.training.collator",
    "Matching": "besag.matching.matching",
    "MinimalPairs": "besag.evaluation.minimal_pairs",
    "Normalised": "besag.samplers.normalising",
    "Overlap": "besag.evaluation.overlap",
    "PairJoint": "besag.joints.pair",
    "Pattern": "besag.constraints",
    "PowerLaw": "besag.sweeps",
    "Predicate": "besag.constraints",
    "Probe": "besag.embedding.probe",
    "Prompt": "besag.prompting",
    "Recipe": "besag.training.recipe",
    "Rectangles": "besag.diagnostics.rectangle",
    "Report": "besag.study.report",
    "Required": "besag.constraints",
    "Rescoring": "besag.rescoring.result",
    "Score": "besag.scores.score",
    "Solutions": "besag.constraints",
    "Sweep": "besag.sweeps",
    "Table": "besag.conditionals.table",
    "Tagger": "besag.heads.head",
    "TrainingResult": "besag.train_model",
    "Translations": "besag.translation.translated",
    "Variants": "besag.variants.variants",
    "Word": "besag.constraints",
    "answer": "besag.prompting",
    "autoprompt": "besag.prompting",
    "connect": "besag.service.client",
    "corpus": "besag.scores.corpora",
    "distil_translations": "besag.distillation",
    "evaluate": "besag.evaluation.evaluate",
    "load": "besag.load_model",
    "load_head": "besag.heads.loading",
    "masking_statistics": "besag.training.data.statistics",
    "minimal_pairs": "besag.evaluation.minimal_pairs",
    "overlap": "besag.evaluation.overlap",
    "probe": "besag.embedding.probe",
    "rescore": "besag.rescoring.rescore",
    "sweep": "besag.sweeps",
    "train": "besag.train_model",
    "train_head": "besag.heads.tuning",
    "train_tokenizer": "besag.training.tokenizer",
}

__all__ = [
    "IDLE", "Answers", "Augmentation", "BesagError", "Binders", "BlockJoint", "Chain", "Choice", "Classifier",
    "Comparison", "Corpus", "Corrections", "DependenceMap", "Edited", "Evaluation", "Explanation", "Fill",
    "Forbidden", "GivenTable", "HeadResult", "Inversion", "Ising", "LanguageModel", "Length", "LengthModel",
    "Marginals", "MaskingCollator", "Matching", "MinimalPairs", "Normalised", "Overlap", "PairJoint", "Pattern",
    "PowerLaw", "Predicate", "Probe", "Prompt", "Recipe", "Rectangles", "Report", "Required", "Rescoring", "Score",
    "Solutions", "Sweep", "Table", "Tagger", "TrainingResult", "Translations", "Variants", "Word", "answer",
    "autoprompt", "connect", "corpus", "distil_translations", "evaluate", "load", "load_head", "masking_statistics",
    "minimal_pairs", "overlap", "probe", "rescore", "sweep", "train", "train_head", "train_tokenizer",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'besag' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
