"""The pages, by Sphinx: `make docs` writes them into site/html/. MyST reads the Markdown, notebooks are pages as they
stand, and the reference in api/ is made from the docstrings."""

from __future__ import annotations

import re
from typing import Any

import besag

project, author, release = "besag", "The besag authors", besag.__version__
project_copyright = author
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["**/__pycache__"]

html_theme, html_title = "furo", "besag"
html_static_path, html_css_files = ["style.css"], ["style.css"]
html_show_sourcelink = False

myst_heading_anchors = 4  # [text](page.md#a-heading) leads to it, here and in a checkout
nb_execution_mode = "off"  # docs/notebooks.py runs them, and a test compares

smartquotes = False  # what is typed in code has straight ones
default_role = "literal"  # docstrings write `code` with one tick, as the pages do
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True}
python_maximum_signature_line_length = 88
napoleon_numpy_docstring = False

BAR = re.compile(r"\|(?=[^`]*(?:`[^`]*`[^`]*)*$)")  # in no code: |D| is a size, and no name to replace


def bars_as_bars(app: Any, what: str, name: str, thing: object, options: Any, lines: list[str]) -> None:
    lines[:] = [line if line.lstrip().startswith((">>>", "...")) else BAR.sub(r"\\|", line) for line in lines]


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", bars_as_bars)
