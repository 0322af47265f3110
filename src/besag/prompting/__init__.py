"""A task as a text with a gap: what a masked model says there, and which words around the gap make it say it.

    answering.py    a task asked of a masked model: by labels that are scored, or by what it writes
    shots.py        solved examples before a prompt
    answers.py      what came of it
    template.py     a row, the trigger tokens and the gap as token ids
    likelihood.py   log p(label | prompt), and its gradient at the triggers
    search.py       AutoPrompt: triggers found by that gradient
    prompt.py       what was found, and what it answers

The search knows networks, whose gradients it needs; nothing here changes their weights.
"""

from besag.prompting.answering import answer
from besag.prompting.answers import Answer, Answers
from besag.prompting.prompt import Prompt
from besag.prompting.search import autoprompt

__all__ = ["Answer", "Answers", "Prompt", "answer", "autoprompt"]
