"""Many runs as one question: recipes × keys that vary, trained, judged by suites, and put into one table.

    cells.py      which runs there are: names, recipes, values
    running.py    each trained and judged in a process of its own, a few at a time; what is done is not done again
    power_law.py  a number that falls with size: y = a · x^(−b), with an interval of b
    table.py      what came of it: a row a run, means over seeds, a curve

Knows recipes and folders. Training and judging are done by `besag train` and `besag eval`.
"""

from besag.sweeps.door import sweep
from besag.sweeps.power_law import PowerLaw
from besag.sweeps.table import Sweep

__all__ = ["PowerLaw", "Sweep", "sweep"]
