"""The audit's page in a real browser: no error, nothing wider than the screen, groups open without a script."""

import shutil

import polars as pl
import pytest

from deadheat.archive import read, write_table
from deadheat.audit import AuditOptions, audit
from deadheat.audit.examples import example_groups
from deadheat.audit.page import audit_page
from deadheat.reports import write_page

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine"),
    # Playwright's event loop closes its pipes after the interpreter has looked for them.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.mark.parametrize("scripts", [True, False])
def test_the_page_shows_every_part_on_a_phone_and_a_group_opens(tmp_path, archive, scripts):
    write_table(tmp_path / "rollouts.parquet", archive(1, num_groups=40).with_columns(run=pl.lit("r")))
    log = read(tmp_path)
    page_file = tmp_path / "page.html"
    write_page(audit_page(audit(log), example_groups(log.rows, AuditOptions())), page_file)
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        context = browser.new_context(java_script_enabled=scripts, viewport={"width": 390, "height": 800})
        page = context.new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.goto(page_file.as_uri())
        if scripts:
            assert page.evaluate("document.documentElement.scrollWidth") <= 390
        group = page.locator("details.transcript").first
        assert not group.locator("li").first.is_visible()
        group.locator("summary").click()
        assert group.locator("li").first.is_visible()
        assert "advantage" in group.inner_text()
        assert errors == []
        browser.close()
