"""A whole HTML page of results: nothing is fetched, and light and dark screens both work.

Knows what pages share, a head, a style and what was run; what stands between is whoever's markup, already escaped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from besag.results.grid import written

STYLE = """
:root{color-scheme:light dark;--ink:#1c1c1c;--soft:#767676;--rule:#d8d8d8;--page:#fff}
@media(prefers-color-scheme:dark){:root{--ink:#e8e8e8;--soft:#a0a0a0;--rule:#3c3c3c;--page:#161616}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--page);max-width:62rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.2rem;margin-top:2.5rem}p,li{max-width:48rem}small,.soft{color:var(--soft)}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;margin:.8rem 0}td,th{padding:.15rem .7rem;text-align:right;
border-bottom:1px solid var(--rule)}
"""  # noqa: E501 (a style sheet)


def document(title: str, body: str, about: Mapping[str, Any], style: str = "") -> str:
    """The page: a title, the body, and the settings of the run below; `style` is what this kind of page adds."""
    said = "".join(f"<li>{written(f'{name}: {value}')}</li>" for name, value in about.items())
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{written(title)}</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<style>{STYLE}{style}</style></head>\n<body><h1>{written(title)}</h1>\n"
        f"{body}<h2>The run</h2><ul>{said}</ul></body></html>\n"
    )
