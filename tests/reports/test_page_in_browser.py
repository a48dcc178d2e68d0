"""The page in a real browser: phone and desktop, light and dark, paper. Skipped where there is no Chromium."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from deadheat.reports import Page, write_page

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

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

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine"),
    # Playwright's event loop closes its pipes after the interpreter has looked for them.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator["sync_api.Browser"]:
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        yield running
        running.close()


@pytest.fixture
def address(page: Page, tmp_path: Path) -> str:
    write_page(page, tmp_path / "report.html")
    return (tmp_path / "report.html").as_uri()


def opened(
    browser: "sync_api.Browser", address: str, width: int, scheme: str
) -> tuple["sync_api.Page", list[str], list[str]]:
    context = browser.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme)
    view = context.new_page()
    complaints: list[str] = []
    requests: list[str] = []
    view.on("console", lambda message: complaints.append(message.text))
    view.on("pageerror", lambda error: complaints.append(str(error)))
    view.on("request", lambda request: requests.append(request.url))
    view.goto(address)
    return view, complaints, requests


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 390, 1280])
def test_the_page_opens_without_complaint_overflow_or_request(
    browser: "sync_api.Browser", address: str, width: int, scheme: str
) -> None:
    view, complaints, requests = opened(browser, address, width, scheme)
    assert complaints == []
    assert [url for url in requests if url != address and not url.startswith("data:")] == []
    assert view.evaluate("document.documentElement.scrollWidth") <= width
    wide = view.evaluate("[...document.querySelectorAll('.scroll')].map(b => b.scrollWidth > b.clientWidth)")
    assert wide == [True], "twelve columns scroll inside their own box"
    shown = view.evaluate(
        "[...document.querySelectorAll('.picture svg')].filter(s => s.getBoundingClientRect().width).length"
    )
    assert shown == 4, "each figure is shown once, at the width that fits"
    view.context.close()


def test_ink_and_paper_change_places_in_the_dark(browser: "sync_api.Browser", address: str) -> None:
    def lightness(scheme: str) -> tuple[int, int, int]:
        view, _, _ = opened(browser, address, 1280, scheme)
        colours = view.evaluate(
            """() => [getComputedStyle(document.documentElement).backgroundColor,
                      getComputedStyle(document.body).color,
                      getComputedStyle(document.querySelector('.picture svg text')).fill]"""
        )
        view.context.close()
        paper, ink, figure = (sum(map(int, colour[4:-1].split(","))) for colour in colours)
        return paper, ink, figure

    paper, ink, figure = lightness("light")
    assert paper > 600 > 200 > ink and figure == ink
    paper, ink, figure = lightness("dark")
    assert paper < 200 < 600 < ink and figure == ink


def test_a_click_on_a_heading_sorts_by_value_and_leaves_the_pooled_row_at_the_foot(
    browser: "sync_api.Browser", address: str
) -> None:
    view, complaints, _ = opened(browser, address, 1280, "light")
    gap = view.locator("th button", has_text="Gap").first
    column = "[...document.querySelectorAll('table tr td:nth-child(2)')].map(cell => cell.textContent.trim())"
    assert view.evaluate(column) == ["+2.5", "−1.0", "+0.8"]
    gap.click()
    assert view.evaluate(column) == ["+2.5", "−1.0", "+0.8"]
    gap.click()
    assert view.evaluate(column) == ["−1.0", "+2.5", "+0.8"]
    gap.click()
    assert view.evaluate(column) == ["+2.5", "−1.0", "+0.8"]
    assert complaints == []
    view.context.close()


def test_on_paper_nothing_is_wider_than_the_sheet(browser: "sync_api.Browser", address: str) -> None:
    view, complaints, _ = opened(browser, address, 1280, "dark")
    view.emulate_media(media="print")
    view.set_viewport_size({"width": 665, "height": 1000})  # A4 less its margins: 176 mm at 96 dots per inch
    widest = view.evaluate(
        """Math.max(...[...document.querySelectorAll('figure.picture svg, pre, .verdict')]
                       .map(element => element.getBoundingClientRect().right))"""
    )
    assert widest <= 665.5
    assert view.evaluate("getComputedStyle(document.querySelector('.picture .wide')).display") == "block"
    assert view.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(255, 255, 255)"
    assert view.pdf(prefer_css_page_size=True).startswith(b"%PDF-")
    assert complaints == []
    view.context.close()
