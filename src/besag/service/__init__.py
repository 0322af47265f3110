"""A server that existing clients speak to: besag's verbs and OpenAI's completions over HTTP, for many callers at once.

Knows HTTP, and who may ask for how much. Refuses to know mathematics: whatever is asked is a verb of `lm` on an engine
of the scheduler, so what is answered is what `lm` would say.
"""
