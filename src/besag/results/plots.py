"""What pictures share: colours, and fonts for letters that the default one lacks. Imports matplotlib late."""

from __future__ import annotations

from besag.errors import require

COLOURS = "OrRd"
GREY = "0.4"
WIDE_COVERAGE = ("Noto Sans CJK JP", "Noto Sans CJK SC", "Source Han Sans", "Noto Sans Arabic", "Noto Sans Hebrew",
                 "Noto Sans Devanagari", "Noto Emoji", "Symbola", "Arial Unicode MS", "Segoe UI Emoji", "Yu Gothic",
                 "Microsoft YaHei", "Hiragino Sans", "PingFang SC")  # fmt: skip


def fonts() -> list[str]:
    """The reader's own font first, then those installed that know more letters."""
    matplotlib = require("matplotlib", extra="plot")
    installed = set(require("matplotlib.font_manager", extra="plot").fontManager.get_font_names())
    return [*matplotlib.rcParams["font.family"], *(name for name in WIDE_COVERAGE if name in installed)]
