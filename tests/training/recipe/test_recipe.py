"""A recipe is read strictly: every wrong word is answered with the file, the key and what would be right."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import shutil
import subprocess
import sys
import tomllib
import typing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from besag.errors import BesagError
from besag.training import recipe as recipes
from besag.training.recipe import Recipe, differences, read, refuse_changes, template, to_toml
from besag.training.recipe import checks as recipe_checks
from besag.training.recipe import text as recipe_text
from besag.training.recipe import values as recipe_values

SMALL = '[data]\ntrain = ["corpus.txt"]\n[schedule]\nsteps = 100\n'


def put(folder: Path, text: str, name: str = "recipe.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def refusal(folder: Path, text: str, *overrides: str) -> str:
    with pytest.raises(BesagError) as raised:
        read(put(folder, text), overrides)
    return str(raised.value)


# ---- what can be said


def test_what_is_not_said_has_its_default(tmp_path):
    found = read(put(tmp_path, SMALL))
    expected = Recipe(
        data=recipes.Data(train=(str(tmp_path / "corpus.txt"),)),
        schedule=recipes.Schedule(steps=100),
        run=recipes.Run(output=str(tmp_path / "run")),
    )
    assert found == expected


def test_every_kind_of_value_is_read(tmp_path):
    text = """
[data]
train = "one.txt"            # one text is a list of one
max_length = 64
stream = true
[model.config]
hidden_size = 64
rope_parameters = { full_attention = { rope_type = "default", rope_theta = 10000.0 } }
[masking]
rate = 1                     # a whole number is a number
[optimizer]
betas = [0.9, 0.95]
[schedule]
minutes = 20
[evaluation]
minimal_pairs = ["a.jsonl", "b.tsv"]
"""
    found = read(put(tmp_path, text))
    assert found.data.train == (str(tmp_path / "one.txt"),)
    assert (found.data.max_length, found.data.stream, found.masking.rate) == (64, True, 1.0)
    assert isinstance(found.masking.rate, float)
    assert found.optimizer.betas == (0.9, 0.95)
    assert found.model.config["rope_parameters"]["full_attention"]["rope_theta"] == 10000.0
    assert recipe_checks.total(found) == ("minutes", 20.0)
    assert len(found.evaluation.minimal_pairs) == 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("[masking]\nrat = 0.3", "there is no key 'masking.rat'. Did you mean 'rate'?"),
        ("[maskin]\nrate = 0.3", "there is no section 'maskin'. Did you mean 'masking'?"),
        ("[masking]\nrate = 'lots'", "masking.rate = 'lots': a number between 0 and 1, not 0 itself is needed"),
        ("[masking]\nrate = 0", "masking.rate = 0: a number between 0 and 1, not 0 itself is needed"),
        ("[masking]\nrate = 1.5", "masking.rate = 1.5: a number between 0 and 1"),
        ("[masking]\nrate = true", "masking.rate = True: a number"),
        ("[masking]\nrate = nan", "masking.rate = nan: a number"),
        ("[masking]\nmask = 0.8\nrandom = 0.1", "sum to 0.9: they are shares of the hidden tokens, and must sum to 1"),
        ("[masking]\nrate_law = 'cosine'", "masking.rate_law = 'cosine' needs masking.end_rate"),
        ("[masking]\nend_rate = 0.2", "masking.end_rate = 0.2 is of the rate laws 'linear' and 'cosine'"),
        ("[masking]\nrate = 0.4\ncopies = 3", "hides 1.2 of each passage"),
        ("[masking]\nrate_law = 'uniform'\ncopies = 2", "with a rate of up to 1 hides 2 of each passage"),
        ("[masking]\ncopies = 2\n[objective]\nname = 'mdlm'", "the objective 'mdlm' hides tokens in its own way"),
        ("[masking]\nper = 'line'", "masking.per = 'line': one of 'token', 'word', 'run' is needed"),
        ("[masking]\nper = 'word'", "with masking.mask = 1 all is shown as the mask"),
        (
            "[objective]\nname = 'attention_guided'\n[run]\ncompile = true",
            "asks where the network attends, which compiled layers do not say",
        ),
        ("[masking]\nlaw = 'unifrom'", "there is no law of masks 'unifrom'. Did you mean 'uniform'?"),
        ("[masking.options]\ncolour = 'red'", "'uniform' has no option 'colour'"),
        ("[masking]\nlaw = 'span'\noptions.chance = 'x'", "masking.options.chance = 'x': a number is needed"),
        ("[masking]\nlaw = 'span'\noptions.at = 'line'", "masking.options.at = 'line': one of"),
        ("[masking]\nlaw = 'entities'", "is about spans that are given with the text: name their field in data.spans"),
        ("[masking]\nlaw = 'error_aware'", "name their field in data.spans"),
        ("[model]\nsubtokens = 17", "model.subtokens = 17: a whole number between 0 and 16 is needed"),
        ("[objective]\nname = 'distil'", "the objective 'distil' needs objective.options.teacher"),
        (
            "[objective]\nname = 'compatible'\noptions.weight = 'x'",
            "objective.options.weight = 'x': a number is needed",
        ),
        ("[objective]\nname = 'electra'\noptions.share = 1", "objective.options.share = 1: true or false is needed"),
        ("[objective]\nname = 'alternate'\noptions.steps = 1.5", "options.steps = 1.5: a whole number is needed"),
        (
            "[objective]\nname = 'compatible'\n[masking]\nrate = 0.005",
            "compares 2 hidden places of a passage, but masking.rate = 0.005 of data.max_length = 128 tokens never",
        ),
        *(
            (f"[objective]\nname = '{name}'\n[masking]\nmask = 0\nkeep = 1", "masking.mask = 0 shows none")
            for name in ("mae", "late_mask", "maskless")
        ),
        ("[objective]\nname = 'mml'", "there is no objective 'mml'. Did you mean 'mlm'?"),
        ("[objective.options]\nwarmth = 1", "the objective 'mlm' has no option 'warmth'"),
        ("[optimizer]\nname = 'adam'", "optimizer.name = 'adam': one of 'adamw', 'muon', 'lamb' is needed"),
        ("[optimizer]\nlr = 0.0", "optimizer.lr = 0.0: a number between 0 and 1,000,000, not 0 itself is needed"),
        ("[optimizer]\nbetas = [0.9]", "optimizer.betas = [0.9]: a list of 2 numbers"),
        ("[optimizer]\nbetas = [0.9, 1.0]", "a list of 2 numbers between 0 and 1, not 1 itself is needed"),
        ("[run]\naccumulate = 0", "run.accumulate = 0: a whole number between 1 and 65,536 is needed"),
        ("[run]\nseed = 0.5", "run.seed = 0.5: a whole number"),
        ("[run]\ncompile = 'yes'", "run.compile = 'yes': true or false is needed"),
        ("[run]\noutput = 3", "run.output = 3: a text is needed"),
        ("[model]\nconfig = 'big'", "model.config = 'big': a table is needed"),
        ("[model]\nfamily = 'modernbret'", "Did you mean 'modernbert'?"),
        ("[model]\nfamily = 'gpt2'", "is no family of transformers or besag that has a *ForMaskedLM"),
        ("[model.config]\nhiden_size = 64", "is no setting of ModernBertConfig. Did you mean 'hidden_size'?"),
        ("[model.config]\nnum_hidden_layers = 20000", "num_hidden_layers = 20000: a whole number, at most 1,000"),
        ("[model.config]\nhidden_size = 1000000000", "model.config.hidden_size = 1000000000: a whole number, at most"),
        ("[model.config]\nlayer_types = ['full_attention']\nnorm_eps = inf", "model.config.norm_eps = inf: a finite"),
        ("[run]\nworkers = 1000000", "run.workers = 1000000: a whole number between 0 and 1,024 is needed"),
        ("[optimizer]\nlr = inf", "optimizer.lr = inf: a number between"),
        ("[objective]\nname = 'distil'\noptions.teacher = 'x'\noptions.temperature = inf", "temperature = inf: a"),
        ("[masking]\nlaw = 'span'\noptions.longest = 1000000000", "longest is 1000000000"),
        ("[evaluation]\nminimal_pairs = [1]", "evaluation.minimal_pairs = [1]: a list of texts is needed"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(tmp_path, change, said):
    message = refusal(tmp_path, f"{SMALL}{change}\n")
    assert said in message
    assert message.startswith(str(tmp_path / "recipe.toml"))


HOSTILE = [
    math.nan, math.inf, -math.inf, -1, 10**30, 10**400, -(10**400), 1e308, True, None, "", "x", "a\0b", "\ud800", b"b",
    [], [[]], ["\0"], {}, {"a": {}}, {1: 2}, object(), {1, 2}, lambda: 1,
]  # fmt: skip


def test_every_number_has_bounds_and_every_key_stands_whatever_is_given():
    """Any value of any type in any key: a recipe, or an error that besag means."""
    deep: object = 1
    for _ in range(3000):
        deep = [deep]
    around: dict[str, object] = {}
    around["itself"] = around
    base = {"data": {"train": ["a.txt"]}, "schedule": {"steps": 1}}
    for section, kind in typing.get_type_hints(Recipe).items():
        for name, hint in typing.get_type_hints(kind).items():
            key = f"{section}.{name}"
            if {int, float} & {hint, *typing.get_args(hint)}:
                bounds = recipe_checks.BOUNDS[key]
                assert None not in bounds[:2], f"{key} has no end"
                with pytest.raises(BesagError, match=f"{key} = "):
                    recipes.recipe_of(base, {key: 10**30})
            for value in (*HOSTILE, deep, around):
                with contextlib.suppress(BesagError):
                    recipes.recipe_of({**base, section: {**base.get(section, {}), name: value}})


@pytest.mark.parametrize(
    "changes", [5, None, "masking.rate=1", [5], [None], {1: 2}, {"a.b": {1: 2}}, ["masking.rate=" + "[" * 5000],
                {"": 1},
                ["run.seed=" + "9" * 5000], ["a" * 10**6 + ".b=1"], {"masking": 1}, object()],
    ids=lambda value: repr(value)[:20],
)  # fmt: skip
def test_changes_of_other_types_are_told_in_a_line(changes):
    with pytest.raises(BesagError) as told:
        recipes.recipe_of({"data": {"train": ["a.txt"]}, "schedule": {"steps": 1}}, changes)
    assert len(str(told.value)) < 2000


@pytest.mark.parametrize(
    "content",
    ["a = " + "[" * 3000, "a = " + "[" * 3000 + "]" * 3000, "[" + "a." * 3000 + "b]\nc = 1", "a = " + "9" * 5000,
     "[model.config]\nx = " + "{a=" * 100 + "1" + "}" * 100, '[run]\noutput = "a\\u0000b"'],
    ids=lambda content: content[:20],
)  # fmt: skip
def test_a_file_nested_deep_or_with_endless_numbers_is_told(tmp_path, content):
    message = refusal(tmp_path, f"{SMALL}{content}\n")
    assert message.startswith(str(tmp_path))
    assert len(message) < 1000


@pytest.mark.parametrize("recipe", [5, None, [], object(), Recipe(data=5), Recipe(data=recipes.Data(train=5))])
def test_what_is_no_recipe_at_all(recipe):
    with pytest.raises(BesagError):
        recipes.recipe_of(recipe)


def test_a_batch_must_hold_a_sequence_and_data_must_be_named(tmp_path):
    data = "[data]\ntrain = 'a.txt'\nbatch_tokens = 64\nmax_length = 128\n[schedule]\nsteps = 1\n"
    assert "data.batch_tokens = 64 is less than data.max_length = 128" in refusal(tmp_path, data)
    assert "data.train names no files" in refusal(tmp_path, "[schedule]\nsteps = 1\n")
    both = "[data]\ntrain = 'a.txt'\ndataset = 'wikitext'\n[schedule]\nsteps = 1\n"
    assert "give one of the two" in refusal(tmp_path, both)


def test_what_is_read_once_cannot_train_a_tokenizer_first(tmp_path):
    stdin = "[data]\ntrain = '-'\n[schedule]\nsteps = 1\n"
    assert "data.train = '-' can be read only once" in refusal(tmp_path, stdin)
    assert read(put(tmp_path, stdin + "[tokenizer]\npath = 'bert-base-cased'\n")).data.train == ("-",)
    assert read(put(tmp_path, stdin + "[model]\nstart = 'bert-base-cased'\n")).data.train == ("-",)


def test_a_run_has_exactly_one_length(tmp_path):
    assert "give one of schedule.steps" in refusal(tmp_path, "[data]\ntrain = 'a.txt'\n")
    two = refusal(tmp_path, f"{SMALL}minutes = 3\n")
    assert "schedule.steps = 100 and schedule.minutes = 3.0: give one of" in two
    assert "schedule.minutes = 0: a number between 0 and 10,000,000, not 0 itself" in refusal(
        tmp_path, "[schedule]\nminutes = 0\n"
    )


def test_a_file_that_is_no_recipe(tmp_path):
    assert "is empty: `besag train init`" in refusal(tmp_path, "")
    assert "is empty" in refusal(tmp_path, "# nothing but a comment\n")
    assert "is not TOML" in refusal(tmp_path, "[data\n")
    (tmp_path / "bytes.toml").write_bytes(b"[data]\ntrain = '\xff'\n")
    with pytest.raises(BesagError, match="is not UTF-8: byte 16 is 0xff"):
        read(tmp_path / "bytes.toml")
    with pytest.raises(BesagError, match=r"there is no recipe '.*recipes.toml'. Did you mean 'recipe.toml'\?"):
        read(tmp_path / "recipes.toml")
    assert "'rate' stands outside its section: write it below [masking] or [evaluation]" in refusal(
        tmp_path, "rate = 0.3\n"
    )
    assert "masking = 3: a table is needed" in refusal(tmp_path, "masking = 3\n")
    with pytest.raises(BesagError, match="cannot be read"):
        read(tmp_path)


# ---- changes from the command line


def test_overrides_are_toml_and_bare_words_are_text(tmp_path):
    found = read(
        put(tmp_path, SMALL),
        ["masking.rate=0.4", "masking.law = whole_word", "optimizer.betas=[0.8, 0.9]", "run.compile=true",
         "model.config.hidden_size=96", "data.valid=held out.txt", "optimizer.lr=1e-3", 'data.field="a=b"'],
    )  # fmt: skip
    assert (found.masking.rate, found.masking.law, found.optimizer.betas) == (0.4, "whole_word", (0.8, 0.9))
    assert (found.run.compile, found.model.config, found.data.valid) == (True, {"hidden_size": 96}, ("held out.txt",))
    assert (found.optimizer.lr, found.data.field) == (0.001, "a=b")


def test_nothing_after_the_sign_is_the_default_and_a_new_length_replaces_the_old(tmp_path):
    path = put(tmp_path, f"{SMALL}[masking]\nrate = 0.9\n")
    assert read(path, ["masking.rate="]).masking.rate == recipes.Masking.rate
    assert recipe_checks.total(read(path, ["schedule.minutes=3"])) == ("minutes", 3.0)
    with pytest.raises(BesagError, match=r"schedule.tokens = 5 and schedule.minutes = 3"):
        read(path, ["schedule.minutes=3", "schedule.tokens=5"])


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("masking.rate", "--set 'masking.rate': write section.key=value"),
        ("rate=0.3", "--set 'rate=0.3': write section.key=value"),
        ("masking.rate=lots", "masking.rate = 'lots': a number"),
        ("masking.rate.high=1", "--set masking.rate.high: rate is 0.3, which has no keys"),
        ("masking.rate=1\nlaw='span'", "a number between 0 and 1"),
    ],
)
def test_an_override_that_cannot_be(tmp_path, override, said):
    assert said in refusal(tmp_path, f"{SMALL}[masking]\nrate = 0.3\n", override)


# ---- paths


def test_paths_are_relative_to_the_recipe_and_overrides_to_the_working_folder(tmp_path, monkeypatch):
    (tmp_path / "recipes").mkdir()
    (tmp_path / "start").mkdir()
    text = """
[data]
train = ["../corpus/*.txt", "-", "/somewhere/else.txt"]
[model]
start = "../start"
[tokenizer]
path = "hub/name"
[schedule]
steps = 1
[run]
output = "out"
"""
    put(tmp_path / "recipes", text)
    monkeypatch.chdir(tmp_path)
    found = read("recipes/recipe.toml", ["data.valid=held/*.txt"])
    assert found.data.train == ("corpus/*.txt", "-", "/somewhere/else.txt")
    assert found.data.valid == ("held/*.txt",)
    assert (found.model.start, found.tokenizer.path, found.run.output) == ("start", "hub/name", "recipes/out")
    assert read("recipes/recipe.toml", output="mine").run.output == "mine"


def test_the_written_recipe_means_the_same_from_its_own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "start").mkdir()
    before = read(put(tmp_path, f"{SMALL}[run]\noutput = 'runs/a'\n"), ["model.start=start", "masking.rate=0.123"])
    folder = tmp_path / "runs" / "a"
    folder.mkdir(parents=True)
    again = read(put(folder, to_toml(before, beside=folder)))
    assert not differences(before, again)
    assert str(tmp_path) not in to_toml(before, beside=folder)


# ---- writing


def test_a_template_is_a_recipe_with_every_key_and_its_explanation(tmp_path):
    text = template()
    found = read(put(tmp_path, text))
    changed = {one.key for one in differences(Recipe(), found)}
    options = {f"masking.options.{name}" for name in recipe_checks.law_defaults("uniform")}
    sizes = {f"model.config.{name}" for name in recipes.SIZES}
    assert changed - options - sizes == {"data.train", "schedule.minutes", "run.output"}
    for section, kind in typing.get_type_hints(Recipe).items():
        notes = recipe_text.explanations(kind)
        for field in dataclasses.fields(kind):
            assert notes.get(field.name), f"{section}.{field.name} has no explanation in its annotation"
            assert f"{field.name} = " in text or f"{field.name}]" in text
            assert notes[field.name] in text
    assert max(map(len, text.splitlines())) <= recipe_text.WIDTH


def test_explanations_need_no_source(tmp_path):
    """As from an archive of compiled files: nothing of the package's source can be read there."""
    package = Path(recipes.__file__).parents[2]
    place = tmp_path / "besag"
    shutil.copytree(package, place, ignore=shutil.ignore_patterns("models", "__pycache__"))
    subprocess.run([sys.executable, "-m", "compileall", "-q", "-b", str(place / "training" / "recipe")], check=True)
    for file in (place / "training" / "recipe").glob("*.py"):
        file.unlink()
    script = "from besag.training import recipe; print(recipe.__file__); print(recipe.template())"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    said = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, check=True, encoding="utf-8"
    ).stdout
    where, _, found = said.partition("\n")
    assert where == str(place / "training" / "recipe" / "__init__.pyc")
    assert found == template() + "\n"


def test_a_template_of_a_law_has_its_options(tmp_path):
    from besag.masks.law import LAWS

    for name in LAWS:
        table = tomllib.loads(template(name))
        assert table["masking"]["law"] == name
        assert set(table["masking"]["options"]) <= set(LAWS.options(name))
    with pytest.raises(BesagError, match="Did you mean 'span'"):
        template("spam")


texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=20)
values = st.recursive(
    st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


@given(values)
def test_any_value_is_read_back_as_it_was_written(value):
    assert tomllib.loads(f"value = {recipe_text.value(value)}")["value"] == value


@given(
    st.builds(
        Recipe,
        masking=st.builds(recipes.Masking, rate=st.floats(0.01, 1), hold=st.floats(0, 0.99)),
        optimizer=st.builds(recipes.Optimizer, lr=st.floats(1e-6, 1), betas=st.tuples(*[st.floats(0, 0.999)] * 2)),
        run=st.builds(recipes.Run, seed=st.integers(0, 2**40), output=st.just("out"), compile=st.booleans()),
        card=st.builds(recipes.Card, about=st.none() | texts, limits=st.lists(texts, max_size=3).map(tuple)),
    )
)
def test_a_whole_recipe_is_read_back_as_it_was_written(recipe):
    table = tomllib.loads(to_toml(recipe))
    assert recipe_values.fill(Recipe, table, "it", recipe_checks.BOUNDS) == recipe


# ---- going on


def test_only_what_does_not_touch_the_past_may_change(tmp_path):
    path = put(tmp_path, SMALL)
    before = read(path)
    free = ["run.log_every=5", "run.workers=2", "evaluation.every=10", "schedule.steps=200", "card.license=mit"]
    assert {one.key for one in refuse_changes(before, read(path, free))} == {one.split("=")[0] for one in free}
    with pytest.raises(BesagError, match=r"masking.rate is 0.4, and was 0.3; run.seed is 1, and was 0. Take the old"):
        refuse_changes(before, read(path, ["masking.rate=0.4", "run.seed=1", "run.workers=2"]))
    with pytest.raises(
        BesagError, match=r"schedule.steps is not set, and was 100; schedule.minutes is 3.0, and was not"
    ):
        refuse_changes(before, read(path, ["schedule.minutes=3"]))
    more = read(path, ["run.accumulate=2"])
    with pytest.raises(BesagError, match=r"run.accumulate"):
        refuse_changes(before, more)
    assert refuse_changes(before, more, also=["run.accumulate"])


def test_paths_are_compared_by_where_they_lead(tmp_path, monkeypatch):
    path = put(tmp_path, SMALL)
    absolute = read(path)
    monkeypatch.chdir(tmp_path)
    assert not differences(absolute, read("recipe.toml"))
    assert differences(absolute, read("recipe.toml", ["data.train=other.txt"]))
    assert os.path.isabs(absolute.data.train[0])
    assert not os.path.isabs(read("recipe.toml").data.train[0])


def test_files_may_lie_elsewhere_on_another_machine(tmp_path):
    path = put(tmp_path, SMALL)
    before = read(path)
    moved = read(path, [f"data.train={tmp_path / 'moved' / Path(before.data.train[0]).name}"])
    assert differences(before, moved)
    assert not refuse_changes(before, moved)  # its text is compared by checksum
    with pytest.raises(BesagError, match=r"data.train is .*other.txt.*, and was"):
        refuse_changes(before, read(path, ["data.train=other.txt"]))
    streams = [read(path, ["data.stream=true", *more]) for more in ([], [f"data.train={moved.data.train[0]}"])]
    with pytest.raises(BesagError, match=r"data\.train is"):  # a stream has no checksum
        refuse_changes(*streams)


# ---- the page and the examples

ROOT = Path(__file__).parents[3]


def test_the_page_shows_the_template():
    assert template() in (ROOT / "docs" / "training" / "recipes.md").read_text(encoding="utf-8")


def test_the_recipe_of_the_embedded_model_makes_a_network_of_at_most_40_million_weights():
    from besag.conditionals.loading import read_vocabulary
    from besag.training.network.networks import check_shape

    found = read(ROOT / "recipes" / "small-en.toml")
    sketch = check_shape(found)
    assert type(sketch).__name__ == "BesagForMaskedLM"
    assert 38_000_000 < sketch.num_parameters() <= 40_000_000
    assert read_vocabulary(found.tokenizer.path, "its tokenizer").size <= sketch.config.vocab_size


@pytest.mark.parametrize("name", ["continue", "adapt-lora", "cramming", "spelling"])
def test_the_examples_are_recipes(name):
    found = read(ROOT / "recipes" / f"{name}.toml")
    assert Path(found.data.train[0]).exists()
    assert Path(found.run.output).parent == ROOT / "runs"
