"""The options that commands share, each with its help, so that a word means the same everywhere."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

import typer

of_model = partial(typer.Option, rich_help_panel="Model")
of_method = partial(typer.Option, rich_help_panel="Method")
of_input = partial(typer.Option, rich_help_panel="Input")
of_result = partial(typer.Option, rich_help_panel="Result")
of_output = partial(typer.Option, rich_help_panel="Output")
of_run = partial(typer.Option, rich_help_panel="Running")

_WHICH_MODEL = "Folder or hub name; if not given, the embedded English model."
_REPEAT_MODEL = "Repeat to compare; NAME=MODEL says what its columns are called."
_WHICH_METHODS = "`besag methods` lists them; if not given, pll. Repeat to compare."
_CONSTRUCTION = "A construction of joints: `besag methods` lists them."
_CONSTRUCTIONS = "Compare this one only; all if not given. Repeat for several."
_SET = "An option of the method, as `besag methods NAME` lists them; METHOD.NAME=VALUE for one of several. Repeat."
_DEVICE = "cpu, cuda, cuda:1, mps; if not given, the fastest there is."
_DTYPE = "float32, bfloat16, float16; int8 (CPU: products of 8-bit numbers); if not given, what suits the device."
_LENGTHS = "File of texts to fit p(n) on, or what `besag lengths` saved: adds log p(n), so that lengths compare."
_AS_COLUMN = "named as in --column"
_COLUMN = "Where the texts are: a name, a number from 1, or a path as in hyps.0.text; if not given, text or sentence."
_ESCAPED = "In a TSV a backslash with t, n or r stands for tab and line ends, as besag writes it."
_SIGN = "What stands between the regions of a text; --per region: | if not given. In JSON, regions may be listed."
_SPANS = f"The column with character spans of each text, as in 3-7,8-12: {_AS_COLUMN}."
_SAFE = "CSV, TSV: an apostrophe before cells that a spreadsheet would run, such as =1+1."
_FORMAT = "If not given, by the ending of --output; else a table for a terminal and TSV for a pipe."

# ---- the model

Model = Annotated[str | None, of_model("--model", "-m", help=_WHICH_MODEL)]
Models = Annotated[list[str] | None, of_model("--model", "-m", help=f"{_WHICH_MODEL} {_REPEAT_MODEL}")]
Device = Annotated[str | None, of_model("--device", help=_DEVICE)]
Dtype = Annotated[str | None, of_model("--dtype", help=_DTYPE)]
Revision = Annotated[str | None, of_model("--revision", help="Branch, tag or commit of a hub model.")]
AllowPickle = Annotated[bool, of_model("--allow-pickle", help="Also load pickled weights, which can run code.")]
Compile = Annotated[bool, of_model("--compile", help="CUDA: ten seconds at the start, faster layers after.")]
Untilt = Annotated[
    bool, of_model("--untilt", help="Take out what a masking law that looks at tokens put in (if it was saved).")
]
Adapter = Annotated[
    str | None, of_model("--adapter", help="Folder of an adapter that was trained beside this model and kept apart.")
]
Source = Annotated[
    str | None, of_model("--source", help="What the model is given, if it answers about a text given its source.")
]

# ---- the method

Set = Annotated[list[str] | None, of_method("--set", metavar="NAME=VALUE", help=_SET, show_default=False)]
Methods = Annotated[list[str] | None, of_method("--method", help=_WHICH_METHODS)]
Construction = Annotated[str, of_method("--method", help=_CONSTRUCTION)]
Constructions = Annotated[list[str] | None, of_method("--method", help=_CONSTRUCTIONS, show_default=False)]
Seed = Annotated[int | None, of_method("--seed", help="Of random draws: --set seed=…")]
Words = Annotated[Literal["tokenizer", "whitespace"], of_method("--words", help="Who says what a word is.")]
Prefix = Annotated[str, of_method("--prefix", help="Context before the text: shown, not scored.")]
Suffix = Annotated[str, of_method("--suffix", help="Context after the text: shown, not scored.")]
PrefixColumn = Annotated[
    str | None, of_method("--prefix-column", help=f"The column with the context before each text: {_AS_COLUMN}.")
]
SuffixColumn = Annotated[
    str | None, of_method("--suffix-column", help=f"The column with the context after each text: {_AS_COLUMN}.")
]
Separator = Annotated[str, of_method("--separator", help="Stands between context and text.")]
SourceColumn = Annotated[
    str | None, of_method("--source-column", help=f"The column with what each text is given: {_AS_COLUMN}.")
]
Lengths = Annotated[str | None, of_method("--lengths", help=_LENGTHS)]

# ---- what comes in

Text = Annotated[bool, of_input("--text", help="Every INPUT is a text, whatever it looks like.")]
InputFormat = Annotated[
    Literal["text", "tsv", "csv", "jsonl", "parquet"] | None,
    of_input("--input-format", help="If not given, by the file's ending; .gz, .xz, .bz2 and .zst are unpacked."),
]
Column = Annotated[str | None, of_input("--column", "--field", help=_COLUMN)]
Header = Annotated[bool, of_input("--header/--no-header", help="Does a TSV or CSV begin with its column names?")]
Escaped = Annotated[bool, of_input("--escaped", help=_ESCAPED)]
RegionSign = Annotated[str | None, of_input("--region-sign", help=_SIGN, show_default=False)]
SpansColumn = Annotated[str | None, of_input("--spans-column", help=_SPANS, show_default=False)]
Skip = Annotated[int, of_input("--skip", min=0, help="Pass over the first N rows.")]
Limit = Annotated[int | None, of_input("--limit", min=1, help="Score at most N rows.")]
Strict = Annotated[bool, of_input("--strict", help="Stop at a row that cannot be scored, such as an empty one.")]

# ---- what goes out

Per = Annotated[
    Literal["sentence", "word", "token", "region", "character-span"],
    of_result("--per", help="What a row of the result is."),
]
Reduction = Annotated[Literal["sum", "mean"], of_result("--reduction", help="Of a sentence: over its tokens.")]
Base = Annotated[Literal["e", "2", "10"], of_result("--base", help="Of the logarithm: nats, bits or hartleys.")]
Surprisal = Annotated[
    bool, of_result("--surprisal", help="Of a sentence: minus the log-probability; others have a column of it.")
]
Rank = Annotated[bool, of_result("--rank", help="Of a token: 1 is the model's first choice.")]
Entropy = Annotated[
    bool, of_result("--entropy", help="Of the model's prediction at a token; of others, at their first token.")
]
Summary = Annotated[bool, of_result("--summary", help="Of all texts: perplexity, bits per character and byte.")]
Keep = Annotated[bool, of_result("--keep/--no-keep", help="Carry a table's other columns along (--format table: no).")]
Format = Annotated[Literal["table", "tsv", "csv", "jsonl", "parquet"] | None, of_output("--format", help=_FORMAT)]
Output = Annotated[str | None, of_output("--output", "-o", help="A file; if not given, stdout.")]
SpreadsheetSafe = Annotated[bool, of_output("--spreadsheet-safe", help=_SAFE)]
Force = Annotated[bool, of_output("--force", help="Write over an existing file.")]
Resume = Annotated[bool, of_output("--resume", help="Go on with an --output that was not finished.")]
Plot = Annotated[
    str | None, of_output("--plot", help="Also save a picture: FILE.png, .pdf or .svg.", show_default=False)
]

# ---- how it runs

BatchTokens = Annotated[int | None, of_run("--batch-tokens", min=1, help="Tokens in a batch; if not given, found.")]
Progress = Annotated[bool | None, of_run("--progress/--quiet", help="A progress bar on stderr.")]
