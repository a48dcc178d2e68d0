"""The page that follows one step quotes the code as it is, and what there is to open is less than half of what it was."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "follow-one-step.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^`(src/\S+\.py)`$|^```python\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
BEFORE = (21, 2879)  # files and lines to open for one GRPO step, counted before the path was rebuilt


def quotes() -> list[tuple[str, str]]:
    """File and text of every block, in the order of the page."""
    found, path = [], ""
    for name, text in BLOCK.findall(PAGE):
        path = name or path
        if text:
            found.append((path, text))
    return found


def to_open() -> list[str]:
    named = [name for name, _ in BLOCK.findall(PAGE) if name]
    return list(dict.fromkeys([*named, "src/deadheat/train/config.py"]))


def test_every_block_stands_in_the_file_it_is_quoted_from() -> None:
    assert len(quotes()) >= 12
    for path, text in quotes():
        assert text in (ROOT / path).read_text(encoding="utf-8"), f"{path} no longer has\n{text}"


def test_the_quotes_reach_from_the_plan_to_the_optimiser_step() -> None:
    together = "".join(text for _, text in quotes())
    for word in (
        "draw_plan",
        ".draw(policy, plan)",
        "rollout_key(",
        "def score(",
        "shaped_G=",
        "CREDITS[",
        "backward()",
    ):
        assert word in together
    assert "self.optimizer.step()" in together


def test_files_and_lines_to_open_are_fewer_than_half() -> None:
    files = to_open()
    lines = sum(len((ROOT / path).read_text(encoding="utf-8").splitlines()) for path in files)
    assert f"| before | {BEFORE[0]} | {BEFORE[1]:,} |" in PAGE
    assert f"| now | {len(files)} | {lines:,} |" in PAGE, f"{len(files)} files, {lines:,} lines"
    assert 2 * len(files) < BEFORE[0] and 2 * lines < BEFORE[1]
