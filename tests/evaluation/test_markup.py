from likeness.report.markup import to_html


def test_everything_is_escaped_and_links_stay_text() -> None:
    page = to_html('<script src="https://evil.example/x.js"></script> [a](https://evil.example) ![b](c.png) & more')
    assert "<script" not in page and "<a" not in page and "<img" not in page
    assert "&lt;script" in page and "&amp; more" in page


def test_headings_keep_the_outline_of_the_page() -> None:
    assert to_html("## Top\n\n### Below", top=3) == "<h3>Top</h3>\n<h4>Below</h4>"
    assert to_html("# A\n## B\n### C\n#### D\n##### E", top=3).count("<h6>") == 2


def test_lists_tables_quotes_and_code() -> None:
    page = to_html(
        "- one\n  goes on\n- `two`\n1. first\n2. **second**\n\n| a | b |\n| --- | ---: |\n| 1 | *2* |\n\n> said"
    )
    assert "<ul><li>one goes on</li><li><code>two</code></li></ul>" in page
    assert "<ol><li>first</li><li><strong>second</strong></li></ol>" in page
    assert '<th scope="col">a</th>' in page and '<td>1</td><td class="n"><em>2</em></td>' in page
    assert "<blockquote><p>said</p></blockquote>" in page


def test_code_blocks_are_left_as_they_are() -> None:
    assert "<pre><code># no heading\n- no &lt;list&gt;\n</code></pre>" in to_html(
        "```sh\n# no heading\n- no <list>\n```\n"
    )


def test_paragraphs_join_lines_and_plain_stars_stay() -> None:
    assert to_html("2 * 3\nis 6") == "<p>2 * 3 is 6</p>"
    assert to_html("text\n- item") == "<p>text</p>\n<ul><li>item</li></ul>"
    assert to_html("") == ""
