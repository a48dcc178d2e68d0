"""report.html: the question, the answer, both arms, the numbers; one file that asks nothing of anybody."""

import re
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser

import pytest

from deadheat.archive import sha256_file
from deadheat.race import RaceResult
from deadheat.race.words import cost_words, pair_sentence
from deadheat.reports.formats import format_bytes
from deadheat.train import read_peaks, read_steps

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


class Reader(HTMLParser):
    """The words of a page, and every address it mentions in a tag."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.addresses: list[str] = []

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value or "" for name, value in attrs if name in {"src", "href", "xlink:href", "action"}]


@pytest.fixture(scope="module")
def page(finished: RaceResult) -> Reader:
    reader = Reader()
    reader.feed((finished.folder / "report.html").read_text(encoding="utf-8"))
    return reader


@pytest.fixture(scope="module")
def said(page: Reader) -> str:
    return re.sub(r"\s+", " ", "".join(page.words))


def test_the_page_says_the_question_the_verdict_and_both_arms(said: str, finished: RaceResult) -> None:
    assert "Does the checker's reward teach more than the same rewards shuffled?" in said
    assert pair_sentence(finished.verdict.pairs[0]) in said
    assert "checker" in said and "plant" in said
    assert "checker and plant are coupled: 24 step-one rollouts over 2 seeds are token-identical" in said


def test_the_page_says_what_differs_what_it_cost_and_on_what_it_ran(said: str, finished: RaceResult) -> None:
    assert "scorer.kind" in said and "update.learning_rate" not in said
    assert cost_words(finished.verdict, 0.0).split(",")[0] in said
    total = sum(
        record.tokens_generated
        for arm in ("checker", "plant")
        for seed in (1, 2)
        for record in read_steps(finished.folder / arm / f"seed-{seed}")
    )
    assert f"{total:,} tokens generated" in said
    for name in ("race.toml", "resolved.json", "verdict.json"):
        assert sha256_file(finished.folder / name) in said


def test_the_page_says_how_far_the_updates_went_and_what_memory_they_took(said: str, finished: RaceResult) -> None:
    assert "How far the updates went" in said
    for arm in ("checker", "plant"):
        for seed in (1, 2):
            folder = finished.folder / arm / f"seed-{seed}"
            assert f"{max(r.grad_norm for r in read_steps(folder) if r.stepped):.3g}" in said
            peak = max(peak["resident_bytes"] for peak in read_peaks(folder).values())
            assert format_bytes(int(peak)) in said


def test_the_page_asks_nothing_of_the_network(page: Reader, finished: RaceResult) -> None:
    assert [address for address in page.addresses if not address.startswith(("#", "data:"))] == []
    text = (finished.folder / "report.html").read_text(encoding="utf-8")
    assert re.findall(r"url\(\s*['\"]?(?!#|data:)[^)]*\)", text) == []
    assert "@import" not in text


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        yield running
        running.close()


@pytest.mark.browser
# Playwright's event loop closes its pipes after the interpreter has looked for them.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_opens_on_a_phone_and_on_a_desk_without_complaint(browser, finished: RaceResult, width: int) -> None:
    address = (finished.folder / "report.html").as_uri()
    view = browser.new_context(viewport={"width": width, "height": 844}).new_page()
    complaints: list[str] = []
    requests: list[str] = []
    view.on("console", lambda message: complaints.append(message.text))
    view.on("pageerror", lambda error: complaints.append(str(error)))
    view.on("request", lambda request: requests.append(request.url))
    view.goto(address)
    assert complaints == []
    assert [url for url in requests if url != address and not url.startswith("data:")] == []
    assert view.evaluate("document.documentElement.scrollWidth") <= width
    assert view.locator("h1").first.inner_text() == "small"
    shown = view.evaluate(
        "[...document.querySelectorAll('.picture svg')].filter(s => s.getBoundingClientRect().width > 100).length"
    )
    assert shown >= 5, "verdict, learning curves, gates, step sizes and cost are drawn"
    view.context.close()
