import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from deadheat.errors import RunFolderError
from deadheat.reports import Page, Section, Tone, render_page, write_page
from deadheat.reports.page import MAX_TEXT, Attempt, Column, Grade, Table, Transcript

VOID = {"meta", "link", "br", "img", "path", "use", "rect", "stop"}


class Structure(HTMLParser):
    """Tags that are open, every tag seen, ids, and text by tag."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open and self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def parsed(html: str) -> Structure:
    structure = Structure()
    structure.feed(html)
    structure.close()
    return structure


def small(*sections: Section) -> Page:
    return Page(title="t", question="q", verdict_sentence="v", verdict_tone=Tone.PLAIN, sections=sections)


def test_hostile_text_adds_no_element_and_closes_none(page: Page) -> None:
    structure = parsed(render_page(page))
    assert structure.open == []
    tags = [tag for tag, _ in structure.seen]
    assert tags.count("script") == 1
    assert "img" not in tags
    assert not any(name.startswith("on") for _, attributes in structure.seen for name in attributes)


def test_hostile_text_is_shown_as_it_was_written_with_hidden_marks_made_visible(page: Page) -> None:
    html = render_page(page)
    html.encode()
    text = parsed(html).text
    assert (
        "‹U+0000›‹U+001B›[31mred‹U+0007›‹U+000D› ‹U+202E›gnp.exe‹U+2066› ‹U+D800› </pre><script>alert(1)</script>"
        in text
    )
    assert "{{ 7 * 7 }}" in text
    assert not set(html) & {chr(code) for code in (*range(9), *range(11, 32), 0x202E, 0x2066)}


def test_a_page_asks_nothing_of_the_network_and_its_policy_allows_only_its_own_script(page: Page) -> None:
    html = render_page(page)
    for _, attributes in parsed(html).seen:
        for name in ("src", "href", "xlink:href", "action", "srcset"):
            assert (attributes.get(name) or "#").startswith(("#", "data:,"))
    script = re.search(r"<script>(.*?)</script>", html, re.DOTALL)
    assert script is not None
    digest = base64.b64encode(hashlib.sha256(script.group(1).encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'" in html
    assert "@import" not in html and not re.search(r"url\((?!#)", html)


def test_ids_of_a_page_are_unique(page: Page) -> None:
    ids = [attributes["id"] for _, attributes in parsed(render_page(page)).seen if "id" in attributes]
    assert len(ids) == len(set(ids)) > 20


def test_the_same_records_give_the_same_page(page: Page) -> None:
    assert render_page(page) == render_page(page)


def test_an_attempt_carries_its_grade_in_words_and_what_was_not_scored_is_no_zero() -> None:
    attempts = (
        Attempt(text="a", grade=Grade.RIGHT, reward=1.0, advantage=1.5, stop="stop", answer="75"),
        Attempt(text="b", grade=Grade.WRONG, reward=-0.25, advantage=-0.5, stop="cap"),
        Attempt(text="c", grade=Grade.UNSCORED, reward=None, advantage=None, stop="stop"),
    )
    html = render_page(small(Section(heading="h", blocks=(Transcript(title="t", prompt="p", attempts=attempts),))))
    words = " ".join(parsed(html).text.split())
    assert "1 of 3 right" in words
    assert "✓ right reward 1 advantage +1.50 ended by stop answer 75" in words
    assert "✗ wrong reward −0.25 advantage −0.50 ended by cap" in words
    assert "– unscored reward none advantage none ended by stop" in words


def test_a_long_completion_is_cut_and_says_by_how_much() -> None:
    attempt = Attempt(text="y" * (MAX_TEXT + 1234), grade=Grade.WRONG, reward=0.0, advantage=0.0, stop="cap")
    html = render_page(small(Section(heading="h", blocks=(Transcript(title="t", prompt="p", attempts=(attempt,)),))))
    assert "y" * MAX_TEXT + " … (1,234 more characters)" in html
    assert "y" * (MAX_TEXT + 1) not in html


def test_pooled_rows_stand_at_the_foot_where_sorting_does_not_reach(page: Page) -> None:
    foot = re.search(r"<tfoot>(.*?)</tfoot>", render_page(page), re.DOTALL)
    assert foot is not None and foot.group(1).count("pooled") == 6


def test_a_row_with_a_cell_too_few_is_refused() -> None:
    with pytest.raises(ValueError, match="1 cells; wanted 2, one for each column"):
        Table(columns=(Column(heading="a"), Column(heading="b")), rows=(("x",),))


def test_a_page_is_written_whole_or_not_at_all(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    write_page(page, path)
    assert path.read_text(encoding="utf-8") == render_page(page)
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]
    blocked = tmp_path / "folder.html"
    (blocked / "inside").mkdir(parents=True)
    with pytest.raises(RunFolderError, match="could not write the report"):
        write_page(page, blocked)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["folder.html", "report.html"]
    with pytest.raises(RunFolderError, match="free some space or name another folder"):
        write_page(page, tmp_path / "missing" / "report.html")
