"""Tags for the words of the toy language: parts of speech, number, and what each word does in its sentence.

python examples/toy_text.py [FOLDER]; python examples/toy_tags.py [FOLDER]
"""

import json
import re
import sys
from pathlib import Path

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "toy")
VERBS, OTHERS = ("sleep", "run", "sing", "smile", "wait"), {"the": "DET", "today": "ADV", ".": "PUNCT"}
OTHERS |= dict.fromkeys(("old", "young", "small"), "ADJ") | dict.fromkeys(("near", "behind", "beside", "at"), "ADP")


def tagged(sentence: str) -> dict[str, object]:
    words = re.findall(r"\w+|\.", sentence)
    plain = [word.lower() for word in words]
    pos = [OTHERS.get(word, "VERB" if word.removesuffix("s") in VERBS else "NOUN") for word in plain]
    many = [word.endswith("s") != (kind == "VERB") for word, kind in zip(plain, pos, strict=True)]  # cats sleep
    number = ["-" if word in OTHERS else ("singular", "plural")[more] for word, more in zip(plain, many, strict=True)]
    role = ["root" if kind == "VERB" else "subject" if n == pos.index("NOUN") else "-" for n, kind in enumerate(pos)]
    return {"text": sentence, "words": words, "tags": {"pos": pos, "number": number, "role": role}}


sentences = (folder / "text.txt").read_text(encoding="utf-8").splitlines()
(folder / "tags.jsonl").write_text("".join(json.dumps(tagged(line)) + "\n" for line in sentences), encoding="utf-8")
print(f"{len(sentences):,} tagged sentences in {folder / 'tags.jsonl'}")
