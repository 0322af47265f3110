"""The page of findings: whole, safe, with a figure, a table, a verdict and a command for each."""

from html.parser import HTMLParser

from besag.lab.experiment import experiment
from besag.lab.finding import Drawing, Finding
from besag.lab.report import SHORT, page

BAD = "<script>alert(1)</script>"


class Balanced(HTMLParser):
    VOID = frozenset({"meta", "br", "path", "use", "link", "img"})

    def __init__(self, text):
        super().__init__()
        self.open, self.tags = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag


def test_a_page_has_all_of_an_experiment_and_fetches_nothing():
    found = experiment("stutter").run()
    text = page([found], {"besag": "0"})
    whole = Balanced(text)
    assert whole.open == []
    assert whole.tags.count("figure") == len(found.figures) == whole.tags.count("svg")
    assert "besag lab run stutter" in text
    assert "walking walking" in text
    assert all(said in text.replace("&#x27;", "'") for said in found.claims)
    assert "src=" not in text
    assert 'href="http' not in text
    assert "li2024" in text


def test_a_reader_is_told_the_letters_finds_each_experiment_and_opens_long_tables():
    rows = [{"J": at} for at in range(SHORT + 1)]
    finding = Finding("shown", {"so": True}, {"long": rows, "short": rows[1:]}, name="one", title="what it is")
    text = page([finding], {})
    assert '<a href="#one">one</a>' in text
    assert '<h2 id="one">What it is</h2>' in text
    assert text.count("What it is") == 2  # in the list as in the heading
    assert text.count("<details>") == 1
    assert f"<summary>long: a table of {SHORT + 1} rows</summary>" in text
    assert "Poincaré constant" in text
    assert "<ul></ul>" not in text.split("The run")[0]


def test_headlines_come_first():
    text = page([experiment(name).run() for name in ("stutter", "dictionary")], {})
    assert text.index('id="dictionary"') < text.index('id="stutter"')


def test_what_is_dangerous_is_escaped_and_a_refuted_claim_is_told():
    drawing = Drawing(BAD, lambda ax: ax.plot([0, 1], label=BAD))
    finding = Finding(BAD, {BAD: False}, {BAD: [{BAD: BAD}]}, figures={BAD: drawing}, notes=[BAD], name=BAD, title=BAD)
    text = page([finding], {BAD: BAD})
    assert "<script>" not in text
    assert "does not hold" in text
    assert Balanced(text).open == []
