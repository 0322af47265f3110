"""A task as a text with a gap: what a masked model says there, and which words around the gap make it say it.

    template.py     a row, the trigger tokens and the gap as token ids
    likelihood.py   log p(label | prompt), and its gradient at the triggers
    search.py       AutoPrompt: triggers found by that gradient
    prompt.py       what was found, and what it answers

Knows networks, whose gradients it needs; changes none of their weights.
"""

from besag.prompting.prompt import Prompt
from besag.prompting.search import autoprompt

__all__ = ["Prompt", "autoprompt"]
