"""The frame of pages."""

from besag.results.page import document


def test_a_page_is_whole_and_escapes_what_it_is_told():
    text = document("a <b>", "<p>body</p>", {"model": "<i>"}, "td{color:red}")
    assert text.startswith("<!doctype html>")
    assert "<title>a &lt;b&gt;</title>" in text
    assert "<p>body</p>" in text
    assert "<li>model: &lt;i&gt;</li>" in text
    assert "td{color:red}" in text
    assert text.rstrip().endswith("</html>")
