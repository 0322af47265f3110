"""How often words come back where they were after two exchanges by the table `gender`: what its rules get wrong.

    PYTHONPATH=src python3 benchmarks/swaps.py FILE [FILE …]

The texts may be packed. "him" and "his" both become "her", which must be told apart again by what follows.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter

from besag.files.lines import lines_of
from besag.training.data.swaps import Swaps

WORD = re.compile(r"\w+")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    swaps, met, right = Swaps.read("gender", 1.0), Counter[str](), Counter[str]()
    words = 0
    for file in parser.parse_args().files:
        for _, line in lines_of(file):
            there = swaps.swapped(line)[0]
            before, after = WORD.findall(line), WORD.findall(swaps.swapped(there)[0])
            words += len(before)
            known = [(one.lower(), other.lower()) for one, other in zip(before, after, strict=True)
                     if one.lower() in swaps.table or one in swaps.table]  # fmt: skip
            met.update(one for one, _ in known)
            right.update(one for one, other in known if one == other)
    told = {"words": words, "of_the_table": met.total(), "come_back": right.total() / met.total()}
    wrong = {one: [count - right[one], count] for one, count in met.most_common() if right[one] < count}
    rows = sum(map(len, swaps.table.values())) // 2
    print(json.dumps({"rows": rows, **told, "his": met["his"], "him": met["him"], "wrong": wrong}, ensure_ascii=False))


if __name__ == "__main__":
    main()
