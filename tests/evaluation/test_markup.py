"""The statement as HTML: what the page needs beyond a Markdown library, and names that attack."""

from likeness.report.formats import to_html

HOSTILE = (
    '<script src="https://evil.example/x.js"></script> [a](https://evil.example) ![b](c.png) <https://evil.example>'
)


def test_everything_is_escaped_and_links_stay_text() -> None:
    page = to_html(f"{HOSTILE} & more\n\n<div onclick=x>\n\n| {HOSTILE} |\n| --- |\n| {HOSTILE} |\n\n[a]: /x\n\n[a]")
    assert not [tag for tag in ("<script", "<a", "<img", "<div onclick") if tag in page]
    assert page.count("&lt;script") == 3 and "&amp; more" in page


def test_headings_keep_the_outline_of_the_page() -> None:
    assert to_html("## Top\n\n### Below", top=3) == "<h3>Top</h3>\n<h4>Below</h4>\n"
    assert to_html("# A\n## B\n### C\n#### D\n##### E", top=3).count("<h6>") == 2


def test_tables_scroll_and_name_their_columns() -> None:
    page = to_html("| a | b |\n| --- | ---: |\n| 1 | **2** |")
    assert page.startswith('<div class="scroll"><table>') and page.endswith("</table></div>\n")
    assert '<th scope="col">a</th>' in page and '<td class="n"><strong>2</strong></td>' in page
