"""The examples run, and the documentation shows what its code prints. `python docs/outputs.py` renews stale outputs."""

import importlib.util
import json
import operator
import re
import runpy
import shlex
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"docs_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


pages = _load(ROOT / "docs" / "outputs.py")


@pytest.fixture
def stage() -> Iterator[None]:
    with pages.stage():
        yield


# ---- examples


def run(name: str, *arguments: object, capsys: pytest.CaptureFixture[str]) -> str:
    sys.argv[:] = [name, *map(str, arguments)]
    runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")
    return capsys.readouterr().out


@pytest.fixture(autouse=True)
def own_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["pytest"])


@pytest.mark.slow
def test_the_demo_prints_every_section_and_its_picture(stage, capsys):
    picture = ROOT / "build" / "demo.png"
    picture.unlink(missing_ok=True)
    said = run("demo.py", capsys=capsys)
    assert [line[:2] for line in said.splitlines() if re.match(r"\d\. ", line)] == [f"{n}." for n in range(1, 8)]
    numbers = re.search(r"^pll +(\S+) +(\S+) ", said, re.MULTILINE)
    assert float(numbers[1]) > float(numbers[2])  # the good sentence of the pair is the better one
    assert "demo.png" in said
    assert picture.stat().st_size > 1000
    command, page, notebook = (line.removeprefix("next: ") for line in said.splitlines()[-3:])
    assert (ROOT / page).suffix == ".md"
    assert (ROOT / notebook).suffix == ".ipynb"
    assert (ROOT / page).is_file()
    assert (ROOT / notebook).is_file()
    python, module, *rest = shlex.split(command)
    assert Path(python).samefile(sys.executable)
    assert module == "-m"
    pages.command_line(shlex.join(rest))
    assert "The cat sleep." in capsys.readouterr().out


def test_a_file_is_scored_line_by_line_and_summed_up(stage, capsys, tmp_path):
    texts = tmp_path / "texts.txt"
    texts.write_text("It rained all night.\n\nThe door was open.\n", encoding="utf-8")
    said = run("score_a_file.py", texts, "chain", capsys=capsys).splitlines()
    assert [line.split("\t")[2] for line in said[:3]] == ["It rained all night.", "empty", "The door was open."]
    assert any(line.split() == ["texts", "2"] for line in said)
    lm = pages.embedded()
    assert float(said[0].split("\t")[0]) == pytest.approx(lm.score("It rained all night.", "chain").total, abs=2e-3)


def test_on_a_table_only_the_probabilities_sum_to_one(capsys):
    said = run("exact_table.py", capsys=capsys)
    sums = {line.split()[0]: float(re.search(r"sum +(\S+)", line)[1]) for line in said.splitlines()[1:]}
    assert sums["chain"] == sums["elbo"] == 1
    assert sums["pll"] > 1.5


def test_models_and_methods_are_compared(stage, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    said = run("compare_models.py", capsys=capsys)
    totals = {line.split()[1]: float(line.split()[-1]) for line in said.splitlines()}
    assert set(totals) == {"pll", "word_l2r", "chain"}
    assert totals["pll"] < totals["word_l2r"] < totals["chain"]  # bits, of a sentence with rare words
    assert (tmp_path / "build" / "compare.png").stat().st_size > 1000


def test_two_masks_are_filled_each_for_itself_and_together(stage, capsys):
    said = run("joint.py", capsys=capsys)
    likeliest = re.findall(r"nats\n +\S+% +(.*)", said)
    assert likeliest == ["He lives in the York.", "He lives in Los Angeles."]
    distances = dict(re.findall(r"^  (\S+(?: \S+)?) +([\d.]+)   likeliest", said, re.MULTILINE))
    assert min(distances, key=lambda name: float(distances[name])) == "ag"
    assert len(distances) == 11
    assert run("joint.py", "The [MASK] and the [MASK].", capsys=capsys).startswith("mlm, mutual information 0.00 nats")


@pytest.mark.slow
def test_a_tiny_network_is_trained_and_whole_words_are_hidden(stage, capsys):
    said = run("train.py", capsys=capsys).splitlines()
    assert re.match(r"150 steps, loss 0\.\d", said[0])
    good, bad = (float(line.split()[0]) for line in said[1:3])
    assert good > bad + 2  # the verb agrees
    assert any("[MASK]" in line for line in said[3:])
    assert not any("▁sleep[MASK]" in line or "[MASK]s" in line for line in said[3:])  # sleep·s is one word


def test_words_of_the_toy_language_are_tagged(capsys, tmp_path):
    run("toy_text.py", tmp_path / "toy", capsys=capsys)
    run("toy_tags.py", tmp_path / "toy", capsys=capsys)
    lines = (tmp_path / "toy" / "tags.jsonl").read_text(encoding="utf-8").splitlines()
    rows = {row["text"]: row for row in map(json.loads, lines)}
    assert list(rows) == (tmp_path / "toy" / "text.txt").read_text(encoding="utf-8").splitlines()
    tags = rows["The bird behind the boy runs at night."]["tags"]
    assert tags["pos"] == ["DET", "NOUN", "ADP", "DET", "NOUN", "VERB", "ADP", "NOUN", "PUNCT"]
    assert tags["number"] == ["-", "singular", "-", "-", "singular", "singular", "-", "singular", "-"]
    assert tags["role"] == ["-", "subject", "-", "-", "-", "root", "-", "-", "-"]
    for row in rows.values():  # a verb has the number of its subject
        named = dict(zip(row["tags"]["role"], row["tags"]["number"], strict=True))
        assert named["root"] == named["subject"]


def test_the_toy_language_keeps_its_pairs_out_of_its_text(capsys, tmp_path):
    run("toy_text.py", tmp_path / "toy", capsys=capsys)
    text = (tmp_path / "toy" / "text.txt").read_text(encoding="utf-8").splitlines()
    header, *pairs = [
        line.split("\t") for line in (tmp_path / "toy" / "pairs.tsv").read_text(encoding="utf-8").splitlines()
    ]
    assert header == ["good", "bad", "paradigm"]
    assert len(text) > 4500
    assert len(pairs) == 200
    assert not set(text) & {sentence for good, bad, _ in pairs for sentence in (good, bad)}
    assert all(good.replace("s ", " ").replace("s.", ".") == bad.replace("s ", " ").replace("s.", ".")
               for good, bad, _ in pairs)  # fmt: skip


def test_examples_are_short():
    for path in (ROOT / "examples").glob("*.py"):
        if path.name != "demo.py":
            code = [line for line in path.read_text(encoding="utf-8").split('"""')[2].splitlines() if line.strip()]
            assert len(code) < 25, path.name


# ---- README


README = (ROOT / "README.md").read_text(encoding="utf-8")


def cells(page: str) -> list[list[str]]:
    """The cells of every row of every table."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("|")]


def test_the_readme_is_read_in_a_few_minutes():
    words = [word for word in README.replace("|", " ").split() if re.search(r"\w", word)]
    assert len(words) <= 900


def test_the_readme_states_of_every_score_whether_it_is_a_probability():
    from besag.scores import METHODS

    stated = {named[1]: row for row in cells(README) if (named := re.fullmatch(r"\[`(\w+)`\]\(.*\)", row[0]))}
    assert stated.keys() == METHODS.keys()
    for name, method in METHODS.items():
        answer = "lower bound on one" if method.bound else "**yes**" if method.normalised else "no"
        assert stated[name][2].partition(",")[0] == answer, name


def test_the_readme_names_methods_and_commands_that_exist():
    import typer

    import besag
    from besag.cli import app

    commands = typer.main.get_command(app).commands.keys()
    calls = {f"besag.{name}" for name in [*besag.__all__, "bulk"]} | {f"lm.{name}" for name in dir(besag.LanguageModel)}
    rows = cells(README[README.index("## Features") : README.index("## Scores")])[2:]
    assert len(rows) == 10
    for row in rows:
        used, named = (set(re.findall(r"`([^`]+)`", cell)) for cell in row[1:])
        assert used
        assert named
        assert used <= calls
        assert named <= commands


def test_the_speed_in_the_readme_is_what_the_benchmarks_measured():
    results = ROOT / "benchmarks" / "results"
    rows = {row[0].strip("`"): row[1:] for row in cells(README)}

    def times(name: str) -> list[str]:
        [case] = json.loads((results / f"{name}.json").read_text(encoding="utf-8"))["cases"]
        seconds = {who: run["seconds"] for who, run in case["contenders"].items()}
        own = seconds.pop("besag")
        ratios = {who: statistics.median(map(operator.truediv, spent, own)) for who, spent in seconds.items()}
        return [f"{statistics.median(own):.1f} s"] + [
            f"{who.replace('lm-pub-quiz, ', '')}: {statistics.median(spent):.1f} s (× {ratios[who]:.1f})"
            for who, spent in seconds.items()
        ]

    for name, row in (("bert-snli", "pll`, BERT-base shape, 48 SNLI sentences"),
                      ("xlmr-snli", "pll`, XLM-R-base shape, 12 SNLI sentences")):  # fmt: skip
        besag, *others = times(name)
        assert rows[row] == [besag, "; ".join(others)]
    small, _ = json.loads((results / "training_peers.json").read_text(encoding="utf-8"))
    own, other = (f"{small['tokens_per_second'][who]:,.0f} tokens/s" for who in ("besag", "run_mlm"))
    ratio = f"run_mlm of transformers: {other} (× {small['ratio']:.1f})"
    assert rows[f"training, ModernBERT 10 × 384, V = {small['vocabulary']:,}"] == [own, ratio]


# ---- the index of the documentation


TASKS = [row for row in cells((ROOT / "docs" / "index.md").read_text(encoding="utf-8")) if "](" in row[-1]]
SEARCHES = {  # the words that a person searches for, and the command or call to find
    "score a TSV": "besag score",
    "perplexity of a corpus": "besag.corpus",
    "surprisal per word": "besag score",
    "fill two masks jointly": "lm.joint",
    "generate text under constraints": "lm.solve",
    "sample text Gibbs": "lm.sample",
    "rescore an n-best list": "besag rescore",
    "evaluate BLiMP": "besag.evaluate",
    "few-shot cloze prompt": "besag answer",
    "embeddings": "lm.embed",
    "mutations of a protein": "lm.variants",
    "train on my corpus": "besag train",
    "fine-tune a classifier": "besag train head",
    "load a model from Hugging Face": "besag.load",
    "serve a model": "besag serve",
    "large corpus on a Ray cluster": "besag bulk",
    "quantise int8": "besag export",
}


def words(text: str) -> set[str]:
    return set(re.findall(r"[\w-]+", text.lower())) - {"a", "an", "of", "on", "from", "the"}


def opening(link: str) -> str:
    """The first 40 lines of the page that a cell links to."""
    page = ROOT / "docs" / re.search(r"\]\(([^)#]+)", link)[1]
    return "\n".join(page.read_text(encoding="utf-8").splitlines()[:40])


@pytest.mark.parametrize("search", SEARCHES)
def test_the_index_leads_from_a_task_to_its_call(search):
    [(_, calls, link)] = [row for row in TASKS if words(search) <= words(row[0] + row[-1])]
    assert f"`{SEARCHES[search]}`" in calls
    assert SEARCHES[search] in opening(link)


def test_a_page_shows_the_calls_of_its_task_at_the_top():
    rows = [row for row in TASKS if len(row) == 3]
    assert len(rows) > 30
    for task, calls, link in rows:
        missing = [call for call in re.findall(r"`([^`]+)`", calls) if call not in opening(link)]
        assert not missing, f"{task}: {link} does not show {missing} in its first 40 lines"


# ---- pages


LONG = {"ag", "ag_chain", "blocks-and-fill", "cli", "compatibility", "objectives"}  # several seconds each


def case(page: Path):
    """Pages on generation run chains, which takes long, too."""
    marks = [pytest.mark.slow] if page.parent.name == "generation" or page.stem in LONG else []
    return pytest.param(page, id=str(page.relative_to(ROOT)), marks=marks)


@pytest.mark.parametrize("page", map(case, pages.PAGES))
def test_a_page_shows_what_its_code_prints(page, stage):
    for output in pages.outputs(page):
        if output.shown is not None:
            assert pages.alike(*map(settled, (output.shown, output.printed))), (
                f"{page.name} shows\n{output.shown}\nbut its code\n{output.code}\nprints\n{output.printed}"
            )


def settled(text: str) -> str:
    """Without how often an iteration went round: the last digit of a sum decides that, the answer stays the same."""
    return re.sub(r"\biterations [\d,]+", "iterations", text)


def test_stale_outputs_are_noticed():
    shown = "total −25.28 nats · 12 tokens"
    assert pages.alike(shown, "total  −25.285 nats · 12 tokens")
    assert not pages.alike(shown, "total −25.31 nats · 12 tokens")
    assert not pages.alike(shown, "total −25.28 nats · 13 tokens")
    assert not pages.alike(shown, "total −25.28 bits · 12 tokens")
    assert not pages.alike("", "something")


def test_every_option_of_the_command_line_is_documented():
    import typer

    from besag.cli import app

    said = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    for name, command in typer.main.get_command(app).commands.items():
        assert f"## besag {name}\n" in said
        missing = [flag for parameter in command.params for flag in parameter.opts + parameter.secondary_opts
                   if flag.startswith("--") and flag != "--help" and f"`{flag}`" not in said]  # fmt: skip
        assert not missing, f"docs/cli.md does not mention {missing} of besag {name}"


def test_every_method_has_a_page_that_states_its_standing():
    from besag.scores import METHODS

    for name, method in METHODS.items():
        page = (ROOT / "docs" / "scores" / f"{name}.md").read_text(encoding="utf-8")
        assert ("is not a probability" in page or "not a probability, and" in page) == (not method.normalised), name
        assert f"`besag cite {name}`" in page
        assert all(f"`{alias}`" in page for alias in method.aliases), name


def test_every_construction_has_a_page_that_states_its_standing():
    import dataclasses

    from besag.joints import CONSTRUCTIONS

    overview = (ROOT / "docs" / "joints" / "index.md").read_text(encoding="utf-8")
    navigation = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for name, kind in CONSTRUCTIONS.items():
        page = (ROOT / "docs" / "joints" / f"{name}.md").read_text(encoding="utf-8")
        assert page.startswith(f"# `{name}`: ")
        assert ("**Exact when the conditionals belong to one joint" in page) == kind.exact, name
        assert ("**Not exact, even when" in page) == (not kind.exact), name
        [line] = [line for line in overview.splitlines() if line.startswith(f"| [`{name}`]({name}.md) |")]
        assert ("**yes**" in line) == kind.exact, name
        assert f"`besag cite {name}`" in page
        for field in dataclasses.fields(kind):
            assert re.search(rf"`{field.name}\b", page), f"docs/joints/{name}.md does not mention {field.name}"
        assert f"<joints/{name}.md>" in navigation


def test_every_law_and_objective_has_a_section_with_its_options():
    import dataclasses
    import inspect

    from besag.masks import LAWS
    from besag.training.objectives import OBJECTIVES

    masking, objectives, overview = (
        (ROOT / "docs" / "training" / f"{name}.md").read_text(encoding="utf-8")
        for name in ("masking", "objectives", "index")
    )
    options = {name: [field.name for field in dataclasses.fields(kind)] for name, kind in LAWS.items()}
    for name, own in options.items():
        assert re.search(rf"^###+ `{name}`$", masking, re.MULTILINE), name
        assert f"| [`{name}`](masking.md#{name}) |" in overview
        assert all(re.search(rf"`{option}\b", masking) for option in own), (name, own)
    for name, kind in OBJECTIVES.items():
        section = re.search(rf"^###? `{name}`: .*?(?=^###? |\Z)", objectives, re.MULTILINE | re.DOTALL)
        assert section, name
        assert f"| [`{name}`](objectives.md#{name}-" in overview
        for option in set(inspect.signature(kind.__init__).parameters) - {"self", "encoder", "seed"}:
            assert re.search(rf"`{option}\b", section[0]), f"docs/training/objectives.md: {name} has {option}"


def test_links_between_pages_lead_somewhere():
    for page in pages.PAGES:
        prose = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        for target in re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", prose):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
